//! [`Preemption`] and the builder options for tasks that do not yield.

use std::{env, ffi::OsStr, io, sync::Arc, time::Duration};

use super::Builder;
use crate::engine::preempt::{Settings, stack::StackCapture, stall::StallReport};

/// The default slice: how long a poll may last before its worker is handed off. Go uses the same
/// number, and the timers of most programs tolerate a worker that is away for that long.
const SLICE: Duration = Duration::from_millis(10);

/// The shortest slice allowed. With shorter ones the monitor would take a noticeable share of the
/// processor's time for itself.
const SHORTEST: Duration = Duration::from_micros(100);

/// The longest slice allowed. A longer one would have no effect in practice.
const LONGEST: Duration = Duration::from_secs(60);

/// The default limit for threads that compute without a core. They share the processors with all
/// other threads, so more of them would only slow each other down.
const MAX_DETACHED: usize = 64;

/// The default for multi-thread runtimes if neither the builder nor the environment sets it.
const ENABLED_BY_DEFAULT: bool = true;

/// The environment variable for runtimes whose builder does not set preemption: `off`, `on`, or a
/// slice (`1ms`, `500us`).
const VARIABLE: &str = "BLITZ_PREEMPTION";

/// Preemption of tasks that stay in one poll for too long.
///
/// Preemption is on for multi-thread runtimes unless the [builder](Builder::preemption) or the
/// environment variable `BLITZ_PREEMPTION` disables it.
///
/// When a task on a multi-thread runtime computes for long, or blocks, its worker is handed off to
/// another thread within about a slice: the worker's queue, its timers and its part of the I/O
/// driver continue there. The task itself continues on its own thread, scheduled by the operating
/// system, and that thread returns to the runtime when the poll ends. The task needs no changes for
/// this, and the cause does not matter: a loop without an `.await`, [`std::thread::sleep`], a
/// [`std::sync::Mutex`] that is held for long, file I/O, name resolution, or a deadlock.
///
/// Preemption does not replace [`spawn_blocking`](crate::task::spawn_blocking). Code that is known
/// to block belongs there, because preemption acts only after the task has delayed others for a
/// slice.
///
/// # Where it cannot work
///
/// Tasks of a current-thread runtime, of a [`LocalSet`](crate::task::LocalSet) and of a
/// [`LocalRuntime`](crate::runtime::LocalRuntime) cannot run on another thread. For them there are
/// only the [report](Builder::on_task_stall) and the mark that
/// [`should_yield`](crate::task::should_yield) reads, and only if the builder requests preemption
/// or reports. The same holds for fibers, which cannot leave their thread: the other fibers of that
/// thread wait. The future of [`block_on`](crate::runtime::Runtime::block_on) is not watched, and
/// neither are wakers of other runtimes and the hooks for threads: they delay their worker.
///
/// # What a program may notice
///
/// - **The number of workers does not bound how many polls run at once.** While tasks are stuck
///   there are more threads than workers, up to [`max_detached`](Self::max_detached) that compute
///   and [`max_blocking_threads`](Builder::max_blocking_threads) that block. A program that relies
///   on a single worker for mutual exclusion between two `.await`s, or on the number of workers as
///   a limit of memory or connections, should use a [`Semaphore`](crate::sync::Semaphore) or
///   [`disabled`](Self::disabled).
/// - The additional threads call [`on_thread_start`](Builder::on_thread_start) and
///   [`on_thread_stop`](Builder::on_thread_stop) as all threads do, and count as blocking threads
///   in the [metrics](crate::runtime::RuntimeMetrics::num_blocking_threads). They have the same
///   name as the others, or `blitz-spare` if a [function](Builder::thread_name_fn) names those.
/// - Inside a poll whose worker was handed off, [`worker_index`](crate::runtime::worker_index)
///   returns `None`.
/// - Debug builds write a line to standard error for a task that was caught, unless
///   [`on_task_stall`](Builder::on_task_stall) sets a function that receives the report.
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
    stacks: StackCapture,
}

impl Default for Preemption {
    fn default() -> Self {
        Self::new()
    }
}

impl Preemption {
    /// Creates settings with a slice of 10 ms and at most 64 threads that compute without a worker.
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
    /// // Without preemption the only worker would wait here for a task that waits for a worker.
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
            stacks: StackCapture::Off,
        }
    }

    /// Creates settings without preemption: tasks wait until their worker's current poll ends, or
    /// until another worker steals them, as on Tokio.
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

    /// Sets how long a poll may last before its worker is handed off to another thread: 10 ms by
    /// default.
    ///
    /// Polls are checked twice in that time. [`Builder::build`] returns an error for less than 100
    /// µs and for more than a minute.
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

    /// Sets the maximum number of threads that compute without a worker: 64 by default.
    ///
    /// For threads that block, the limit is
    /// [`max_blocking_threads`](Builder::max_blocking_threads). When a limit is reached, other
    /// tasks wait as they would without preemption, and a line reports it, once for each limit and
    /// in every build: to `tracing`, if the feature of that name is on and there is a subscriber,
    /// else to standard error.
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

    /// Sets whether later polls of a task that was caught run on threads without a worker, until
    /// four polls in a row were short: true by default.
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
    /// assert_eq!(rt.metrics().preemption_offload_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn learning(mut self, learns: bool) -> Self {
        self.learns = learns;
        self
    }

    /// Sets whether a [report](Builder::on_task_stall) of a task that computes contains a stack
    /// trace ([`StallReport::frames`]): false by default.
    ///
    /// The reporter thread sends SIGURG to the task's thread, once for each report that is going to
    /// be delivered, and the signal handler records the addresses. The feature `stall-stacks`
    /// resolves them to names. This works on Linux with x86-64 and aarch64; elsewhere there are no
    /// frames.
    ///
    /// # How much is reported
    ///
    /// The innermost address is always right. The others are found by frame pointers, which
    /// compilers omit by default: `RUSTFLAGS="-C force-frame-pointers=yes"` gives complete stacks,
    /// up to 64 frames. There are no frames if the poll has ended by then, or if the thread does
    /// not handle the signal within 50 ms, because it is not scheduled, has SIGURG blocked, or is
    /// inside the `block_on` of another runtime.
    ///
    /// # What a program may notice
    ///
    /// [`build`](Builder::build) installs a handler for SIGURG, which stays until the end of the
    /// process. A handler that was installed before still gets all signals except those of the
    /// runtime. A handler that is installed later and does not call the previous one replaces it,
    /// and there are no frames from then on. If SIGURG is sent to the same thread from elsewhere at
    /// the same moment, the system may merge it with the runtime's signal, and then it is not
    /// passed on.
    ///
    /// A task that computes is usually in no system call. If it makes short ones, the signal may
    /// interrupt one of those that return an error (`EINTR`) although the handler requests that
    /// calls be restarted (`SA_RESTART`): `poll`, `epoll_wait`, `select`, or a `recv` with a time
    /// limit. If a handler was installed before without that request, no call is restarted.
    ///
    /// Do not use this where this crate is part of a shared object that is loaded at run time (a
    /// Python module, for example) with a glibc before 2.39: there the handler may have to allocate
    /// memory, and hang.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.clone())))
    ///     .build()?;
    /// let waits = rt.spawn(async move { reports.recv().unwrap() });
    /// let stall = rt.block_on(waits)?;
    /// assert!(stall.frames().is_empty(), "it did not compute");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capture_stacks(mut self, captures: bool) -> Self {
        self.stacks = if captures { StackCapture::Computing } else { StackCapture::Off };
        self
    }

    /// Sets whether tasks that block their thread get a stack trace, too, as tasks that compute do
    /// by [`capture_stacks`](Self::capture_stacks): false by default.
    ///
    /// This is a separate setting because the signal ends some system calls early, and their
    /// callers notice: `poll`, `epoll_wait`, `select`, `semop` and a `recv` with a time limit
    /// (`TcpStream::set_read_timeout`) fail with `EINTR`
    /// ([`Interrupted`](std::io::ErrorKind::Interrupted)), and large reads are short. The standard
    /// library's sleeps, locks, channels, and reads and writes without a time limit are not
    /// affected. [`StallReport::waits_in`] reports what a task waits for without any signal.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new().capture_blocked_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.clone())))
    ///     .build()?;
    /// let waits = rt.spawn(async move { reports.recv().unwrap() });
    /// let stall = rt.block_on(waits)?;
    /// // There are no frames on other systems.
    /// assert!(stall.frames().len() <= 64, "{:#?}", stall.frames());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capture_blocked_stacks(mut self, captures: bool) -> Self {
        self.stacks = match captures {
            true => StackCapture::All,
            false if self.stacks == StackCapture::All => StackCapture::Computing,
            false => self.stacks,
        };
        self
    }

    /// Parses the value of `BLITZ_PREEMPTION`; `None` if it is empty.
    fn parse(value: &OsStr) -> io::Result<Option<Self>> {
        let slice = match value.to_str().map(str::trim) {
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
                    "{VARIABLE} is {value:?}: write `on`, `off`, or a slice as in `10ms` or \
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
    /// Sets how the runtime treats tasks that stay in one poll for too long; see [`Preemption`].
    ///
    /// By default, on multi-thread runtimes, the environment variable `BLITZ_PREEMPTION` decides
    /// (`on`, `off`, or a slice such as `10ms`); without it preemption is on, with a slice of 10
    /// ms.
    ///
    /// The tasks of a current-thread runtime are never moved to another thread. Such a runtime
    /// watches for stuck tasks only if this method or [`on_task_stall`](Self::on_task_stall) is
    /// called.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// // As in Tokio, a task that blocks its thread blocks its worker.
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

    /// Calls `f` with a report on each task that has been in one poll for longer than a
    /// [slice](Preemption::slice), once for each such poll.
    ///
    /// There is no report on tasks that were declared as
    /// [long-running](crate::task::Builder::long_running) and are polled by threads without a
    /// worker.
    ///
    /// `f` is called on a reporter thread, one for the whole process, while the poll is still
    /// running. It may block, but that delays the reports on other tasks. A panic in it is reported
    /// and goes no further. It is also called where [preemption](Self::preemption) is disabled or
    /// cannot work.
    ///
    /// Without this function, and if preemption is on, the runtime writes one line a minute for
    /// each source location at which such a task was spawned: to `tracing`, if the feature of that
    /// name is on and there is a subscriber; else to standard error, in builds with debug
    /// assertions.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.to_string())))
    ///     .build()?;
    /// // The task blocks in its poll until its own report arrives.
    /// let report = rt.block_on(rt.spawn(async move { reports.recv().unwrap() }))?;
    /// assert!(report.contains("spawned at"), "{report}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_task_stall<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&StallReport) + Send + Sync + 'static,
    {
        self.on_stall = Some(Arc::new(f));
        self
    }

    /// Returns the settings of the monitor that watches the pool, or `None` if the pool is not
    /// watched.
    pub(super) fn preempt_settings(
        &self,
        threaded: bool,
        carriers: usize,
    ) -> io::Result<Option<Settings>> {
        let is_requested = self.preemption.is_some() || self.on_stall.is_some();
        let preemption = match &self.preemption {
            Some(preemption) => preemption.clone(),
            None => match env::var_os(VARIABLE).map(|value| Preemption::parse(&value)) {
                Some(value) => value?.unwrap_or_else(Preemption::unset),
                None => Preemption::unset(),
            },
        };
        let watches = self.on_stall.is_some() || preemption.hands_off;
        if !watches || (!threaded && !is_requested) {
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
    /// Returns the settings for a runtime where neither the builder nor the environment sets any.
    fn unset() -> Self {
        if ENABLED_BY_DEFAULT { Self::new() } else { Self::disabled() }
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
