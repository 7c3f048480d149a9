//! Graceful shutdown: requests that all tasks stop, waits for them, and names those that do not.
//!
//! A [`Shutdown`] does all of it. Tasks are spawned through it, and a [token](Shutdown::token)
//! notifies them when they should stop. [`drain`](Shutdown::drain) cancels the tokens, waits until
//! the last task has ended or the time limit has passed, aborts the remaining tasks, and returns a
//! [`Report`] that names them.
//!
//! | method | effect |
//! |---|---|
//! | [`begin`](Shutdown::begin) | requests that all tasks stop, and does not wait |
//! | [`drain`](Shutdown::drain) | requests it, waits up to a time limit, and aborts the rest |
//! | [`cut_short`](Shutdown::cut_short) | ends the wait of `drain` at once |
//! | [`trigger`](Shutdown::trigger) | begins at the first call, cuts short at the second |
//! | [`on`](Shutdown::on) | triggers whenever an event occurs, such as a signal |
//! | [`progress`](Shutdown::progress) | reports the phase and how many tasks are left |
//!
//! # Examples
//!
//! A server that completes the requests that it has accepted:
//!
//! ```
//! use blitz_io::{
//!     io::{AsyncReadExt, AsyncWriteExt},
//!     net::{TcpListener, TcpStream},
//!     shutdown::Shutdown,
//!     time::Duration,
//! };
//!
//! # blitz_io::run(async {
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let addr = listener.local_addr()?;
//!
//! let shutdown = Shutdown::new();
//! let connections = shutdown.clone();
//! shutdown.spawn_with(async move |token| {
//!     // Accept connections until the shutdown begins.
//!     while let Some(Ok((mut stream, _))) = token.run_until_cancelled(listener.accept()).await {
//!         connections.spawn(async move {
//!             let byte = stream.read_u8().await?;
//!             stream.write_u8(byte + 1).await
//!         });
//!     }
//! });
//!
//! let mut client = TcpStream::connect(addr).await?;
//! client.write_u8(1).await?;
//! assert_eq!(client.read_u8().await?, 2);
//!
//! let report = shutdown.drain(Duration::from_secs(10)).await;
//! assert!(report.is_clean(), "{report}");
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

#![forbid(unsafe_code)]

mod member;
mod members;
mod report;
mod trigger;

use std::{
    collections::BTreeMap,
    fmt,
    future::{Future, poll_fn},
    panic::Location,
    sync::{Arc, OnceLock},
};

pub use self::report::{AbortedTask, Phase, Progress, Report};
use self::{
    member::Membership,
    members::{Members, Outcome},
    report::TaskInfo,
};
use crate::{
    channel::watch,
    runtime::Handle,
    sync::CancellationToken,
    task::{self, AbortHandle, JoinHandle},
    time::{Duration, Instant, timeout},
};

/// How long `drain` waits for aborted tasks before it writes the report. The value was chosen, not
/// measured: a task that waits ends within microseconds, and one that does not return from its poll
/// may take for ever.
const GRACE: Duration = Duration::from_millis(100);

/// A group of tasks that are stopped and waited for together; see [the module](self).
///
/// All clones refer to the same shutdown. Dropping them ends nothing: tasks that were spawned
/// through it go on.
///
/// Compared to a plain task, a task of a shutdown additionally takes a lock briefly when it is
/// spawned and when it ends.
///
/// # Examples
///
/// ```
/// use blitz_io::{shutdown::Shutdown, time::Duration};
///
/// # blitz_io::run(async {
/// let shutdown = Shutdown::new();
/// for worker in 0..3 {
///     shutdown.spawn_with(async move |token| {
///         token.cancelled().await;
///         println!("worker {worker} has put everything away");
///     });
/// }
/// let report = shutdown.drain(Duration::from_secs(10)).await;
/// assert_eq!((report.finished, report.aborted.len()), (3, 0));
/// # });
/// ```
#[derive(Clone)]
pub struct Shutdown {
    shared: Arc<Shared>,
}

struct Shared {
    /// Cancelled when the shutdown begins.
    begin_token: CancellationToken,
    /// Cancelled when the shutdown is cut short.
    cut_token: CancellationToken,
    /// Cancelled when the shutdown is over.
    over_token: CancellationToken,
    begun_at: OnceLock<Instant>,
    members: Members<AbortHandle, TaskInfo>,
    progress: watch::Sender<Progress>,
}

impl Shutdown {
    /// Creates a shutdown that has not begun and has no tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// assert!(!shutdown.has_begun() && shutdown.is_empty());
    /// ```
    pub fn new() -> Self {
        let progress = Progress { phase: Phase::Running, remaining: 0 };
        Self {
            shared: Arc::new(Shared {
                begin_token: CancellationToken::new(),
                cut_token: CancellationToken::new(),
                over_token: CancellationToken::new(),
                begun_at: OnceLock::new(),
                members: Members::new(),
                progress: watch::Sender::new(progress),
            }),
        }
    }

    /// Returns a token that is cancelled when the shutdown begins.
    ///
    /// Each call returns a new token. Cancelling one affects only the tasks that have that token.
    ///
    /// # Examples
    ///
    /// ```
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// let token = shutdown.token();
    /// shutdown.begin();
    /// assert!(token.is_cancelled() && shutdown.token().is_cancelled());
    /// ```
    pub fn token(&self) -> CancellationToken {
        self.shared.begin_token.child_token()
    }

    /// Spawns a task that the shutdown waits for.
    ///
    /// After the shutdown has begun, tasks can still be spawned, because a request may need another
    /// task to be completed. Once the shutdown aborts its tasks or is over, the future is dropped,
    /// and the handle returns a cancellation error.
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// assert_eq!(shutdown.spawn(async { 1 }).await.unwrap(), 1);
    /// shutdown.drain(Duration::ZERO).await;
    /// assert!(shutdown.spawn(async { 1 }).await.unwrap_err().is_cancelled());
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(None, future, Location::caller(), None)
    }

    /// Spawns a task that gets a [token](Self::token) and that the shutdown waits for.
    ///
    /// Apart from the token this is [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread, or if `f` panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::shutdown::Shutdown;
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// let task = shutdown.spawn_with(async |token| {
    ///     token.cancelled().await;
    ///     "stopped"
    /// });
    /// shutdown.begin();
    /// assert_eq!(task.await.unwrap(), "stopped");
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_with<C, F>(&self, f: C) -> JoinHandle<F::Output>
    where
        C: FnOnce(CancellationToken) -> F,
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(None, f(self.token()), Location::caller(), None)
    }

    /// Spawns a task with a name, which [reports](Report) and [dumps](crate::runtime::dump) show.
    ///
    /// Apart from the name this is [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn_named("deaf", std::future::pending::<()>());
    /// let report = shutdown.drain(Duration::from_millis(1)).await;
    /// assert!(report.to_string().contains("\"deaf\""));
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_named<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(Some(name), future, Location::caller(), None)
    }

    /// Spawns a task on the runtime of `handle`; the shutdown waits for it as for one of
    /// [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn_on(async {}, rt.handle());
    /// assert!(rt.block_on(shutdown.drain(Duration::from_secs(10))).is_clean());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(&self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_as(None, future, Location::caller(), Some(handle))
    }

    /// Spawns a task on the current [`LocalSet`](crate::task::LocalSet) or `LocalRuntime`; the
    /// shutdown waits for it as for one of [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// If called outside of both, as [`task::spawn_local`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, task::LocalSet, time::Duration};
    ///
    /// # blitz_io::run(LocalSet::new().run_until(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn_local(async {});
    /// assert!(shutdown.drain(Duration::from_secs(10)).await.is_clean());
    /// # }));
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let info = TaskInfo::new(None, Location::caller());
        match Membership::enter(&self.shared, info) {
            Some((membership, spawning)) => {
                spawning.done(task::spawn_local(membership.wrap(future)))
            }
            None => {
                drop(future);
                let never = task::spawn_local(std::future::pending());
                never.abort();
                never
            }
        }
    }

    /// Runs a function on a thread where blocking is allowed; the shutdown waits for it as for a
    /// task of [`spawn`](Self::spawn).
    ///
    /// A function that has started cannot be aborted: when the time limit has passed, the
    /// [report](Report) names it, and it goes on.
    ///
    /// # Panics
    ///
    /// If [`task::spawn_blocking`] panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// let token = shutdown.token();
    /// shutdown.spawn_blocking(move || {
    ///     while !token.is_cancelled() {
    ///         std::thread::yield_now();
    ///     }
    /// });
    /// assert_eq!(shutdown.drain(Duration::from_secs(10)).await.finished, 1);
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let info = TaskInfo::new(None, Location::caller());
        match Membership::enter(&self.shared, info) {
            Some((membership, spawning)) => {
                let call = member::Call::new(membership, f);
                spawning.done(task::spawn_blocking(move || call.run()))
            }
            None => {
                drop(f);
                refused(None)
            }
        }
    }

    #[track_caller]
    fn spawn_as<F>(
        &self,
        name: Option<&str>,
        future: F,
        spawned_at: &'static Location<'static>,
        handle: Option<&Handle>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Some((membership, spawning)) =
            Membership::enter(&self.shared, TaskInfo::new(name, spawned_at))
        else {
            drop(future);
            return refused(handle);
        };
        let member = membership.wrap(future);
        spawning.done(match (name, handle) {
            (None, None) => task::spawn(member),
            (None, Some(handle)) => handle.spawn(member),
            (Some(name), _) => {
                let builder = task::Builder::new().name(name);
                builder.spawn(member).expect("a task with a name is spawned as any other")
            }
        })
    }

    /// Returns the number of tasks that have not ended.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// shutdown.spawn(std::future::pending::<()>());
    /// assert_eq!(shutdown.len(), 1);
    /// # });
    /// ```
    pub fn len(&self) -> usize {
        self.shared.members.len()
    }

    /// Returns true if all tasks have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(blitz_io::shutdown::Shutdown::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a receiver for the progress of the shutdown: its phase, and how many tasks are left.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::{Phase, Shutdown}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn_with(async |token| token.cancelled().await);
    /// let mut progress = shutdown.progress();
    /// let shows = blitz_io::spawn(async move {
    ///     while progress.borrow_and_update().phase < Phase::Over {
    ///         println!("{}", *progress.borrow());
    ///         if progress.changed().await.is_err() {
    ///             break;
    ///         }
    ///     }
    /// });
    /// shutdown.drain(Duration::from_secs(10)).await;
    /// shows.await.unwrap();
    /// # });
    /// ```
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }

    /// Begins the shutdown and waits until all tasks have ended or `limit` has passed. Then aborts
    /// the remaining tasks, and returns a report.
    ///
    /// Aborted tasks have another 100 ms to end, of which a task that waits needs next to nothing.
    /// What they were doing is recorded before the abort: see [`AbortedTask`].
    ///
    /// This method may be called several times, also concurrently: the call with the limit that
    /// passes first aborts the tasks, and all calls return the same report.
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread, or the runtime was built without
    /// [`enable_time`](crate::runtime::Builder::enable_time).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the shutdown has begun all the same, and the tokens are cancelled.
    /// Tasks are not aborted then until `drain` is called again, unless the abort had already
    /// begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn_with(async |token| token.cancelled().await);
    /// shutdown.spawn_named("deaf", std::future::pending::<()>());
    /// let report = shutdown.drain(Duration::from_millis(50)).await;
    /// assert_eq!((report.finished, report.aborted.len()), (1, 1));
    /// println!("{report}");
    /// # });
    /// ```
    pub async fn drain(&self, limit: Duration) -> Report {
        self.begin();
        let shared = &*self.shared;
        let in_time = timeout(limit, shared.cut_token.run_until_cancelled(shared.drained())).await;
        if !matches!(in_time, Ok(Some(()))) {
            shared.abort_all();
            // A task that has not ended by then is stuck, and the report says so.
            let _ = timeout(GRACE, shared.wait()).await;
        }
        shared.publish_progress(Some(Phase::Over));
        shared.over_token.cancel();
        shared.report()
    }
}

/// Returns the handle of a task that was refused: the task is cancelled, and nothing of the user's
/// future is left.
#[track_caller]
fn refused<T: Send + 'static>(handle: Option<&Handle>) -> JoinHandle<T> {
    let never = std::future::pending();
    let never = match handle {
        Some(handle) => handle.spawn(never),
        None => task::spawn(never),
    };
    never.abort();
    never
}

impl Shared {
    /// Waits until all present members have ended. New ones may have come by the time it returns.
    async fn wait(&self) {
        struct Waiting<'a>(&'a Shared, crate::engine::work::task::tracker::TrackerWait);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.members.end_wait(&mut self.1);
            }
        }
        let mut waiting = Waiting(self, self.members.wait());
        poll_fn(|cx| self.members.poll_wait(&mut waiting.1, cx)).await;
    }

    /// Waits until all members have ended, and closes the shutdown, so that no further one can
    /// enter.
    async fn drained(&self) {
        loop {
            self.wait().await;
            if self.members.close_if_empty() {
                return;
            }
        }
    }

    /// Closes the shutdown, and aborts all remaining members.
    fn abort_all(&self) {
        self.publish_progress(Some(Phase::Aborting));
        let remaining = self.members.close();
        if remaining.is_empty() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let dump = runtime.dump_now();
            let tasks: BTreeMap<_, _> = dump.tasks().iter().map(|task| (task.id(), task)).collect();
            let dumped = remaining.iter().filter_map(|(key, entry)| {
                let task = tasks.get(&entry.handle.as_ref()?.id()).copied();
                Some((*key, entry.info.clone().with_dump(task)))
            });
            self.members.update_info(dumped.collect());
        }
        for (_, entry) in remaining {
            if let Some(handle) = entry.handle {
                handle.abort();
            }
        }
    }

    /// Publishes the progress: the phase, unless a later one was published, and the number of
    /// remaining members.
    fn publish_progress(&self, phase: Option<Phase>) {
        self.progress.send_modify(|progress| {
            progress.phase = phase.unwrap_or(Phase::Draining).max(progress.phase);
            // The number is read under the lock of the channel, so that values are published in the
            // order in which they were read.
            progress.remaining = self.members.len();
        });
    }

    fn report(&self) -> Report {
        let Outcome { finished, ended, stuck } = self.members.outcome();
        let ended = ended.into_iter().map(|entry| AbortedTask::new(entry, true));
        let stuck = stuck.into_iter().map(|entry| AbortedTask::new(entry, false));
        let mut aborted: Vec<_> = ended.chain(stuck).collect();
        aborted.sort_by_key(AbortedTask::id);
        let elapsed = self.begun_at.get().map_or(Duration::ZERO, Instant::elapsed);
        Report { finished, aborted, elapsed }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown")
            .field("has_begun", &self.has_begun())
            .field("is_over", &self.shared.members.is_closed())
            .field("len", &self.len())
            .finish()
    }
}
