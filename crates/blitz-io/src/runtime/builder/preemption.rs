//! What is done about tasks that do not let others run.

use std::{env, ffi::OsStr, io, sync::Arc, time::Duration};

use super::Builder;
use crate::engine::pool::vigil::{Settings, stack::Stacks, stall::StallReport};

/// How long a poll may last unless the builder says otherwise: what Go takes. A worker that is
/// called away for so long is what the timers of most programs forgive.
const SLICE: Duration = Duration::from_millis(10);

/// Shorter slices would be the monitor's own time.
const SHORTEST: Duration = Duration::from_micros(100);

/// Longer ones would be none.
const LONGEST: Duration = Duration::from_secs(60);

/// Threads that compute without a core, at the most. They share the processors with everybody
/// else, so many more would only be slower, each of them.
const MAX_DETACHED: usize = 64;

/// Whether runtimes with several threads that were told nothing have it.
const UNLESS_TOLD: bool = true;

/// Decides for runtimes whose builder was not told: `off`, `on`, or a slice (`1ms`, `500us`).
const VARIABLE: &str = "BLITZ_PREEMPTION";

/// What is done about tasks that stay in one poll for too long.
///
/// Multi-thread runtimes have it unless the [builder](Builder::preemption) or the environment
/// says otherwise.
///
/// On a multi-thread runtime a worker whose task computes for long, or blocks, is given another
/// thread within about a slice: its queue, its timers and its part of the I/O driver go on
/// there. The task itself goes on where it is, under the operating system, and gives its
/// thread back when its poll ends. It need not know: a loop without an `await`,
/// [`std::thread::sleep`], a [`std::sync::Mutex`] that is held for long, a file, a look-up of a
/// name, a deadlock are all alike.
///
/// It is no replacement for [`spawn_blocking`](crate::task::spawn_blocking): what is known to
/// block belongs there, and costs no slice of others' time.
///
/// # Where it cannot work
///
/// Tasks of a current-thread runtime, of a [`LocalSet`](crate::task::LocalSet) and of a
/// [`LocalRuntime`](crate::runtime::LocalRuntime) are never moved: there only the
/// [report](Builder::on_task_stall) and the mark that
/// [`should_yield`](crate::task::should_yield) asks for are left, if the builder asks for them.
/// So it is with fibers, which cannot leave their thread: the other ones there wait.
/// The future of [`block_on`](crate::runtime::Runtime::block_on) is not watched. Wakers that
/// are not the runtime's, and hooks of threads, run in the runtime's own time.
///
/// # What a program may notice
///
/// - **The number of workers is no bound on what runs at once.** While tasks are stuck there are
///   more threads than workers, up to [`max_detached`](Self::max_detached) that compute and
///   [`max_blocking_threads`](Builder::max_blocking_threads) that block. Who counts on one worker
///   for mutual exclusion between two `.await`s, or on their number as a limit of memory or of
///   connections, wants a [`Semaphore`](crate::sync::Semaphore), or
///   [`disabled`](Self::disabled).
/// - Those threads run [`on_thread_start`](Builder::on_thread_start) and
///   [`on_thread_stop`](Builder::on_thread_stop) as all others do, and count as blocking
///   threads in the [metrics](crate::runtime::RuntimeMetrics::num_blocking_threads). They have
///   the name of the others, or `blitz-spare` if a
///   [function](Builder::thread_name_fn) names those.
/// - Inside of a poll that has lost its worker, [`worker_index`](crate::runtime::worker_index)
///   is `None`.
/// - Debug builds write a line to standard error for a task that was caught, unless
///   [`on_task_stall`](Builder::on_task_stall) says who is told.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use blitz_io::{runtime::{Builder, Preemption}, time};
///
/// let rt = Builder::new_multi_thread()
///     .worker_threads(1)
///     .preemption(Preemption::new().slice(Duration::from_millis(5)))
///     .enable_time()
///     .build()?;
/// rt.block_on(async {
///     let sleepy = blitz_io::spawn(async { thread::sleep(Duration::from_millis(300)) });
///     blitz_io::spawn(time::sleep(Duration::from_millis(1))).await.unwrap();
///     assert!(!sleepy.is_finished(), "the only worker went on without it");
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Preemption {
    slice: Duration,
    hands_off: bool,
    max_detached: usize,
    learns: bool,
    stacks: Stacks,
}

impl Default for Preemption {
    fn default() -> Self {
        Self::new()
    }
}

impl Preemption {
    /// With a slice of 10 ms and at most 64 threads that compute without a worker.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let mut builder = Builder::new_multi_thread();
    /// let rt = builder.worker_threads(1).preemption(Preemption::new()).build()?;
    /// let (send, receive) = mpsc::channel();
    /// let waits = rt.spawn(async move { receive.recv().unwrap() });
    /// // Without, it would wait for the only worker, and that one for it.
    /// rt.spawn(async move { send.send(7).unwrap() });
    /// assert_eq!(rt.block_on(waits)?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Self {
        Self {
            slice: SLICE,
            hands_off: true,
            max_detached: MAX_DETACHED,
            learns: true,
            stacks: Stacks::Nobodys,
        }
    }

    /// None: whoever waits for a worker waits for the poll that it is in, as in Tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let rt = Builder::new_multi_thread().preemption(Preemption::disabled()).build()?;
    /// rt.block_on(rt.spawn(async { thread::sleep(Duration::from_millis(30)) }))?;
    /// assert_eq!(rt.metrics().preemption_handoff_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disabled() -> Self {
        Self { hands_off: false, ..Self::new() }
    }

    /// How long a poll may last before its worker goes on with another thread: 10 ms unless
    /// set. It is looked at twice in that time. [`Builder::build`] refuses less than 100 µs and
    /// more than a minute.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let with = |slice| Builder::new_multi_thread().preemption(Preemption::new().slice(slice)).build();
    /// let rt = with(Duration::from_millis(2))?;
    /// let error = with(Duration::ZERO).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn slice(mut self, slice: Duration) -> Self {
        self.slice = slice;
        self
    }

    /// The most threads that compute without a worker: 64 unless set. For those that block it
    /// is [`max_blocking_threads`](Builder::max_blocking_threads). At the limit others wait, as
    /// they would without preemption, and a line says so, once for each limit and in every build:
    /// to `tracing`, if the feature of that name is on and a subscriber is there, else to standard
    /// error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let preemption = Preemption::new().max_detached(0);
    /// let rt = Builder::new_multi_thread().preemption(preemption).build()?;
    /// let metrics = rt.metrics();
    /// rt.block_on(rt.spawn(async move { while metrics.preemption_refused_count() == 0 {} }))?;
    /// assert_eq!(rt.metrics().preemption_handoff_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_detached(mut self, threads: usize) -> Self {
        self.max_detached = threads;
        self
    }

    /// Whether a task that was caught is polled by threads without a worker from then on, until
    /// four polls in a row were short: so it is unless set.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let preemption = Preemption::new().learning(false);
    /// let rt = Builder::new_multi_thread().preemption(preemption).build()?;
    /// let metrics = rt.metrics();
    /// rt.block_on(rt.spawn(async move {
    ///     while metrics.preemption_stall_count() == 0 {}
    ///     blitz_io::task::yield_now().await;
    /// }))?;
    /// assert_eq!(rt.metrics().preemption_lent_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn learning(mut self, learns: bool) -> Self {
        self.learns = learns;
        self
    }

    /// Whether a [report](Builder::on_task_stall) of a task that computes tells the calls that
    /// it is in: [`StallReport::frames`]. Not unless set.
    ///
    /// The thread is sent SIGURG, once for a report that is going to be told, by the thread
    /// that tells it, and its handler notes the addresses. The feature `stall-stacks` finds
    /// their names. Works on Linux with x86-64 and aarch64; elsewhere there are no frames.
    ///
    /// # How much is told
    ///
    /// The innermost address is always right. The rest follows frame pointers, which compilers
    /// leave out unless asked for: `RUSTFLAGS="-C force-frame-pointers=yes"` gives whole stacks,
    /// up to 64 frames. There is none if the poll is over by then, or the thread does not answer
    /// within 50 ms: it is not let run, has SIGURG blocked, or is inside of another runtime's
    /// `block_on`.
    ///
    /// # What a program may notice
    ///
    /// From [`build`](Builder::build) on there is a handler for SIGURG, to the end of the
    /// process. A handler that was there before still gets all signals but these; one that is
    /// installed later and does not pass them on takes the place of this one, and there are no
    /// frames any more. SIGURG that somebody else sends to the same thread in the same moment
    /// may become one with ours, and is not passed on then.
    ///
    /// A task that computes is in no system call, as a rule. One that makes short ones may be
    /// interrupted in one of those that give an error then (`EINTR`) though the handler asks
    /// for them to go on: `poll`, `epoll_wait`, `select`, or a `recv` with a time limit. If a
    /// handler was there before that did not ask for that, no call goes on.
    ///
    /// Not for programs that have this crate in a shared object which is loaded while they run
    /// (a module for Python, say) with a glibc before 2.39: there the handler may come to take
    /// memory, and hang.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.clone())))
    ///     .build()?;
    /// let waits = rt.spawn(async move { told.recv().unwrap() });
    /// let stall = rt.block_on(waits)?;
    /// assert!(stall.frames().is_empty(), "it did not compute");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capture_stacks(mut self, captures: bool) -> Self {
        self.stacks = if captures { Stacks::Computing } else { Stacks::Nobodys };
        self
    }

    /// [`capture_stacks`](Self::capture_stacks), also of tasks that block their thread. Not
    /// unless set.
    ///
    /// That is a setting of its own because the signal ends some calls early, and what they
    /// answer reaches users: `poll`, `epoll_wait`, `select`, `semop`, a `recv` with a time limit
    /// (`TcpStream::set_read_timeout`) fail with `EINTR`
    /// ([`Interrupted`](std::io::ErrorKind::Interrupted)), large reads are short. Sleeps, locks,
    /// channels, and reads and writes without a limit of the standard library go on as if
    /// nothing had been. What a task waits for is told without a signal, by
    /// [`StallReport::waits_in`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_blocked_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.clone())))
    ///     .build()?;
    /// let waits = rt.spawn(async move { told.recv().unwrap() });
    /// let stall = rt.block_on(waits)?;
    /// // None on other systems.
    /// assert!(stall.frames().len() <= 64, "{:#?}", stall.frames());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capture_blocked_stacks(mut self, captures: bool) -> Self {
        self.stacks = match captures {
            true => Stacks::Everybodys,
            false if self.stacks == Stacks::Everybodys => Stacks::Computing,
            false => self.stacks,
        };
        self
    }

    /// What a variable says.
    fn parse(wish: &OsStr) -> io::Result<Option<Self>> {
        let slice = match wish.to_str().map(str::trim) {
            Some("") => return Ok(None),
            Some("off") => return Ok(Some(Self::disabled())),
            Some("on") => return Ok(Some(Self::new())),
            Some(text) => parse_slice(text),
            None => None,
        };
        let Some(slice) = slice else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{VARIABLE} is {wish:?}: write `on`, `off`, or a slice as in `10ms` or \
                     `500us`, or unset it"
                ),
            ));
        };
        Ok(Some(Self::new().slice(slice)))
    }
}

fn parse_slice(text: &str) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return Some(Duration::from_millis(millis.parse().ok()?));
    }
    Some(Duration::from_micros(text.strip_suffix("us")?.parse().ok()?))
}

impl Builder {
    /// Sets what is done about tasks that stay in one poll for too long; see [`Preemption`].
    ///
    /// Unset, it is what the environment variable `BLITZ_PREEMPTION` says (`on`, `off`, or a
    /// slice as in `10ms`) of multi-thread runtimes; and if that says nothing it is on, with a
    /// slice of 10 ms.
    ///
    /// A current-thread runtime, whose tasks are never moved, watches for such tasks if it is
    /// asked to by this or by [`on_task_stall`](Self::on_task_stall).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// // As in Tokio: a task that blocks, blocks its worker.
    /// let mut builder = Builder::new_multi_thread();
    /// let rt = builder.worker_threads(1).preemption(Preemption::disabled()).build()?;
    /// let sleepy = rt.spawn(async { thread::sleep(Duration::from_millis(30)) });
    /// rt.block_on(rt.spawn(async {}))?;
    /// assert!(sleepy.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn preemption(&mut self, preemption: Preemption) -> &mut Self {
        self.preemption = Some(preemption);
        self
    }

    /// Executes function `f` for each task that has been in one poll for longer than a
    /// [slice](Preemption::slice), once for that poll; not for those that were said to be
    /// [long](crate::task::Builder::long_running) and are polled by threads that are no workers.
    ///
    /// It runs on a thread of its own, one for the process, while the poll goes on; it may
    /// block, but then others wait to be told. A panic in it is reported and ends there. It is
    /// told also where [preemption](Self::preemption) is disabled or cannot work.
    ///
    /// Unset, and where there is preemption, a line is written for each place in the source
    /// where such a task was spawned, once a minute: to `tracing`, if the feature of that name is
    /// on and a subscriber is there; else to standard error, in builds with debug assertions.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.to_string())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let told = rt.block_on(rt.spawn(async move { told.recv().unwrap() }))?;
    /// assert!(told.contains("spawned at"), "{told}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_task_stall<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&StallReport) + Send + Sync + 'static,
    {
        self.on_stall = Some(Arc::new(f));
        self
    }

    /// How the pool is watched, if it is.
    pub(super) fn vigil(&self, threaded: bool, carriers: usize) -> io::Result<Option<Settings>> {
        let asked = self.preemption.is_some() || self.on_stall.is_some();
        let preemption = match &self.preemption {
            Some(preemption) => preemption.clone(),
            None => match env::var_os(VARIABLE).map(|wish| Preemption::parse(&wish)) {
                Some(wish) => wish?.unwrap_or_else(Preemption::unset),
                None => Preemption::unset(),
            },
        };
        let watches = self.on_stall.is_some() || preemption.hands_off;
        if !watches || (!threaded && !asked) {
            return Ok(None);
        }
        let Preemption { slice, hands_off, max_detached, learns, stacks } = preemption;
        if !(SHORTEST..=LONGEST).contains(&slice) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "a slice of {slice:?} is not between {SHORTEST:?} and {LONGEST:?}: 10 ms suits \
                     most, and `Preemption::disabled` does without"
                ),
            ));
        }
        Ok(Some(Settings {
            slice,
            hands_off: hands_off && threaded,
            max_computing: max_detached,
            max_blocked: self.max_blocking_threads,
            learns,
            on_stall: self.on_stall.clone(),
            stacks,
            carriers,
        }))
    }
}

impl Preemption {
    /// Where nobody has said anything.
    fn unset() -> Self {
        if UNLESS_TOLD { Self::new() } else { Self::disabled() }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{ffi::OsStr, time::Duration};

    use super::Preemption;

    #[test]
    fn the_variable_is_read_or_refused() {
        let slice = |text: &str| Preemption::parse(OsStr::new(text)).unwrap().unwrap().slice;
        assert_eq!(slice("1ms"), Duration::from_millis(1));
        assert_eq!(slice(" 500us "), Duration::from_micros(500));
        assert_eq!(slice("on"), Duration::from_millis(10));
        assert!(!Preemption::parse(OsStr::new("off")).unwrap().unwrap().hands_off);
        assert!(Preemption::parse(OsStr::new("")).unwrap().is_none());
        for bad in ["ms", "1s", "-1ms", "1.5ms", "yes", "99999999999999999999ms"] {
            let error = Preemption::parse(OsStr::new(bad)).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }
}
