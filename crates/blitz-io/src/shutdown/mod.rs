//! Graceful shutdown: tell every task, wait for them, and name those that do not end.
//!
//! A [`Shutdown`] is one object for all of it. Tasks are spawned through it, and know by a
//! [token](Shutdown::token) when to stop. [`drain`](Shutdown::drain) tells them, waits until
//! the last has ended or the time is over, aborts those that are left, and reports who they
//! were.
//!
//! | | |
//! |---|---|
//! | [`begin`](Shutdown::begin) | tells the tasks, and does not wait |
//! | [`drain`](Shutdown::drain) | tells them and waits, for so long |
//! | [`cut_short`](Shutdown::cut_short) | ends the wait now |
//! | [`trigger`](Shutdown::trigger), [`on`](Shutdown::on) | the first time begins, the second cuts short |
//! | [`progress`](Shutdown::progress) | how many are left |
//!
//! # Examples
//!
//! A server that finishes what it has begun:
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
//!     // Until it is told to stop, it accepts.
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

pub use self::report::{Phase, Progress, Report, TaskLeft};
use self::{
    member::Seat,
    members::{Members, Outcome},
    report::About,
};
use crate::{
    channel::watch,
    runtime::Handle,
    sync::CancellationToken,
    task::{self, AbortHandle, JoinHandle},
    time::{Duration, Instant, timeout},
};

/// How long tasks that were aborted have to end before the report is written: picked. A task
/// that waits ends within microseconds; one that does not return from its poll may take for
/// ever.
const GRACE: Duration = Duration::from_millis(100);

/// Tasks that end together; see [the module](self).
///
/// Clones are the same shutdown. Dropping it ends nothing: tasks that were spawned through it
/// go on.
///
/// A task of a shutdown costs a lock for a moment when it is spawned and when it ends, beside
/// what a task costs anyway.
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
    /// Cancelled when it begins.
    told: CancellationToken,
    /// Cancelled when it is cut short.
    cut: CancellationToken,
    /// Cancelled when it is over.
    over: CancellationToken,
    begun: OnceLock<Instant>,
    members: Members<AbortHandle, About>,
    progress: watch::Sender<Progress>,
}

impl Shutdown {
    /// Creates a new shutdown, which has not begun.
    ///
    /// # Examples
    ///
    /// ```
    /// let shutdown = blitz_io::shutdown::Shutdown::new();
    /// assert!(!shutdown.has_begun() && shutdown.is_empty());
    /// ```
    pub fn new() -> Self {
        let progress = Progress { phase: Phase::Running, left: 0 };
        Self {
            shared: Arc::new(Shared {
                told: CancellationToken::new(),
                cut: CancellationToken::new(),
                over: CancellationToken::new(),
                begun: OnceLock::new(),
                members: Members::new(),
                progress: watch::Sender::new(progress),
            }),
        }
    }

    /// A token that is cancelled when the shutdown begins.
    ///
    /// Each call gives another one: to cancel one stops only those who have it.
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
        self.shared.told.child_token()
    }

    /// Spawns a task, which is waited for.
    ///
    /// While the shutdown is under way it is a task like all others: a request may need one
    /// more to be finished. When the shutdown is over, or aborts, the future is dropped, and
    /// the handle says that it was cancelled.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
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

    /// Spawns a task that is given a [token](Self::token); otherwise as [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn), and if `f` does.
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

    /// Spawns a task with a name, by which [reports](Report) and
    /// [dumps](crate::runtime::dump) know it; otherwise as [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
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

    /// Spawns a task on the runtime of `handle`; otherwise as [`spawn`](Self::spawn).
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

    /// Spawns a task on the current [`LocalSet`](crate::task::LocalSet) or `LocalRuntime`;
    /// otherwise as [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// Outside of both, as [`task::spawn_local`].
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
        let about = About::new(None, Location::caller());
        match Seat::take(&self.shared, about) {
            Some((seat, spawning)) => spawning.done(task::spawn_local(seat.hold(future))),
            None => {
                drop(future);
                let never = task::spawn_local(std::future::pending());
                never.abort();
                never
            }
        }
    }

    /// Runs the closure on a thread where blocking is acceptable, and waits for it; otherwise
    /// as [`spawn`](Self::spawn).
    ///
    /// A closure that has started cannot be aborted: when the time is over it is named in the
    /// [report](Report), and goes on.
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`].
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
        let about = About::new(None, Location::caller());
        match Seat::take(&self.shared, about) {
            Some((seat, spawning)) => {
                let call = member::Call::new(seat, f);
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
        let Some((seat, spawning)) = Seat::take(&self.shared, About::new(name, spawned_at)) else {
            drop(future);
            return refused(handle);
        };
        let member = seat.hold(future);
        spawning.done(match (name, handle) {
            (None, None) => task::spawn(member),
            (None, Some(handle)) => handle.spawn(member),
            (Some(name), _) => {
                let builder = task::Builder::new().name(name);
                builder.spawn(member).expect("a task with a name is spawned as any other")
            }
        })
    }

    /// How many tasks have not ended.
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

    /// Whether all tasks have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(blitz_io::shutdown::Shutdown::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far the shutdown is, as it changes: the phase, and how many tasks are left.
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

    /// Begins the shutdown, and waits until all tasks have ended, or for so long; then aborts
    /// those that are left, and reports.
    ///
    /// Tasks that were aborted have another 100 ms to end; those that wait need next to
    /// nothing of it. What they were doing is looked up before: see [`TaskLeft`].
    ///
    /// It may be called several times, also at the same time: the first to reach its limit
    /// aborts, and all report the same.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or it was built without
    /// [`enable_time`](crate::runtime::Builder::enable_time).
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the shutdown has begun all the same: the tasks were told. Nothing is
    /// aborted then until it is called again, unless that had begun already.
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
        let in_time = timeout(limit, shared.cut.run_until_cancelled(shared.drained())).await;
        if !matches!(in_time, Ok(Some(()))) {
            shared.abort_all();
            // Whoever has not ended by then is stuck, and the report says so.
            let _ = timeout(GRACE, shared.wait()).await;
        }
        shared.tell(Some(Phase::Over));
        shared.over.cancel();
        shared.report()
    }
}

/// A task that was not let in: cancelled, and nothing of the user's is left of it.
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
    /// Waits until all who were there have ended, once.
    async fn wait(&self) {
        struct Waiting<'a>(&'a Shared, crate::engine::work::task::tracker::Wait);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.members.end_wait(&mut self.1);
            }
        }
        let mut waiting = Waiting(self, self.members.wait());
        poll_fn(|cx| self.members.poll_wait(&mut waiting.1, cx)).await;
    }

    /// Waits until all have ended and nobody is let in any more.
    async fn drained(&self) {
        loop {
            self.wait().await;
            if self.members.close_if_empty() {
                return;
            }
        }
    }

    /// Closes it, and aborts everybody who is left.
    fn abort_all(&self) {
        self.tell(Some(Phase::Aborting));
        let left = self.members.close();
        if left.is_empty() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let dump = runtime.dump_now();
            let tasks: BTreeMap<_, _> = dump.tasks().iter().map(|task| (task.id(), task)).collect();
            let seen = left.iter().filter_map(|(key, place)| {
                let task = tasks.get(&place.handle.as_ref()?.id()).copied();
                Some((*key, place.about.clone().seen_as(task)))
            });
            self.members.note(seen.collect());
        }
        for (_, place) in left {
            if let Some(handle) = place.handle {
                handle.abort();
            }
        }
    }

    /// Says how far it is: the phase, if that is a later one, and how many are left.
    fn tell(&self, phase: Option<Phase>) {
        self.progress.send_modify(|progress| {
            progress.phase = phase.unwrap_or(Phase::Draining).max(progress.phase);
            // Under the lock of the channel, so that a later value is a later one.
            progress.left = self.members.len();
        });
    }

    fn report(&self) -> Report {
        let Outcome { finished, ended, stuck } = self.members.outcome();
        let gone = ended.into_iter().map(|place| TaskLeft::new(place, true));
        let stuck = stuck.into_iter().map(|place| TaskLeft::new(place, false));
        let mut aborted: Vec<_> = gone.chain(stuck).collect();
        aborted.sort_by_key(TaskLeft::id);
        let elapsed = self.begun.get().map_or(Duration::ZERO, Instant::elapsed);
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
