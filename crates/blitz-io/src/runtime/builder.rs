//! [`Builder`], which configures and creates runtimes.

mod drivers;
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod fibers;
mod metrics;
mod panics;
mod preemption;
mod seed;

use std::{
    fmt, io,
    sync::{Arc, Weak},
    time::Duration,
};

use self::drivers::Drivers;
pub use self::{panics::UnhandledPanic, preemption::Preemption, seed::RngSeed};
use super::{
    Handle, Runtime, RuntimeFlavor,
    admission::{Admission, Limits},
    context::Entered,
    handle::{Id, Inner},
    histogram::Choice,
    machine,
};
use crate::engine::{
    blocking::{BlockingConfig, BlockingPool},
    pool::{Config, Pool},
    preempt::stall::OnStall,
    threads::{Hook, ThreadConfig, ThreadWrapper},
    wait::permits::MAX,
    work::{
        task::hooks::{Hooks, TaskMeta},
        thread_context::blocking::NoBlocking,
    },
};

/// The number of polls in a worker's tick, after which the worker takes back the cells that other
/// threads have returned. The number comes from the design.
const TICK_POLLS: u32 = 128;

/// The default name of the runtime's threads.
const THREAD_NAME: &str =
    if cfg!(feature = "tokio-names") { "tokio-rt-worker" } else { "blitz-worker" };

/// How long an idle blocking thread is kept before it ends. Tokio has the same number.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A builder that configures and creates a [`Runtime`].
///
/// Methods can be chained, and [`build`](Self::build) ends the chain. Names and defaults are
/// Tokio's; where an option has another meaning here, its documentation says so.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Builder;
///
/// let rt = Builder::new_multi_thread()
///     .worker_threads(2)
///     .thread_name("my-worker")
///     .enable_all()
///     .build()?;
/// assert_eq!(rt.block_on(async { 1 + 1 }), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Builder {
    pub(super) flavor: RuntimeFlavor,
    workers: Option<usize>,
    name: Option<String>,
    thread_config: ThreadConfig,
    on_park: Option<Hook>,
    on_unpark: Option<Hook>,
    hooks: Hooks,
    max_blocking_threads: usize,
    keep_alive: Option<Duration>,
    global_queue_interval: Option<u32>,
    event_interval: u32,
    drivers: Drivers,
    lifo_slot: bool,
    lazy: bool,
    poll_times: Choice,
    latencies: Choice,
    seed: Option<RngSeed>,
    ends_on_panic: bool,
    preemption: Option<Preemption>,
    on_stall: Option<OnStall>,
    limits: Limits,
    #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    fibers: fibers::FiberOptions,
}

impl Builder {
    /// Returns a builder for a current-thread runtime: it has no worker threads, and its tasks run
    /// inside [`Runtime::block_on`].
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().build()?;
    /// rt.block_on(async { println!("on the main thread") });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_current_thread() -> Builder {
        Self::new(RuntimeFlavor::CurrentThread)
    }

    /// Returns a builder for a multi-thread runtime: its tasks run on worker threads.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().build()?;
    /// assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "rt-multi-thread")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rt-multi-thread")))]
    pub fn new_multi_thread() -> Builder {
        Self::new(RuntimeFlavor::MultiThread)
    }

    fn new(flavor: RuntimeFlavor) -> Self {
        let name: Arc<dyn Fn() -> String + Send + Sync> = Arc::new(|| THREAD_NAME.to_owned());
        Self {
            flavor,
            workers: None,
            name: None,
            thread_config: ThreadConfig {
                one_name: Some(name().into()),
                name,
                stack_size: None,
                on_start: None,
                on_stop: None,
            },
            on_park: None,
            on_unpark: None,
            hooks: Hooks::default(),
            max_blocking_threads: 512,
            keep_alive: None,
            global_queue_interval: None,
            event_interval: TICK_POLLS,
            drivers: Drivers::none(),
            lifo_slot: true,
            lazy: false,
            poll_times: Choice::off(),
            latencies: Choice::off(),
            seed: None,
            ends_on_panic: false,
            preemption: None,
            on_stall: None,
            limits: Limits::default(),
            #[cfg(all(
                feature = "fiber",
                unix,
                any(target_arch = "x86_64", target_arch = "aarch64")
            ))]
            fibers: fibers::FiberOptions::default(),
        }
    }

    /// Sets the number of worker threads.
    ///
    /// The default is the value of `BLITZ_WORKER_THREADS`, else of `TOKIO_WORKER_THREADS`, else the
    /// number of processors that this process may use: those of its affinity mask, or its cgroup's
    /// CPU quota rounded up, whichever is smaller. A current-thread runtime ignores this setting.
    ///
    /// At most this many threads run tasks at once, plus those that are still in an overlong poll
    /// after their worker was handed off to another thread ([`preemption`](Self::preemption)).
    ///
    /// # Panics
    ///
    /// If `val` is zero. [`build`](Self::build) returns an error if it is more than 32,768.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().worker_threads(4).build()?;
    /// assert_eq!(rt.metrics().num_workers(), 4);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn worker_threads(&mut self, val: usize) -> &mut Self {
        assert!(
            val > 0,
            "Worker threads cannot be set to 0: leave it unset for one per processor, or use \
             `Builder::new_current_thread`"
        );
        self.workers = Some(val);
        self
    }

    /// Sets the maximum number of threads for blocking work: 512 by default, and at most 32,767.
    ///
    /// The threads are started on demand, when work arrives and none is idle; when all of them are
    /// busy, further work waits in a queue. Worker threads are not counted, and neither is a thread
    /// that replaces a worker inside [`block_in_place`](crate::task::block_in_place).
    ///
    /// This number is also a second, separate limit: at most this many polls may block at once
    /// without a worker, after theirs was handed off ([`Preemption`](super::Preemption)). Plus the
    /// number of workers, it also limits the threads that replace workers in `block_in_place`.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_blocking_threads(8).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    #[doc(alias = "max_threads")]
    pub fn max_blocking_threads(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "Max blocking threads cannot be set to 0: blocking work needs one");
        self.max_blocking_threads = val;
        self
    }

    /// Sets how long an idle blocking thread is kept before it ends: 10 s by default.
    ///
    /// This also applies to threads that replaced a worker. See
    /// [`max_blocking_threads`](Self::max_blocking_threads).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .thread_keep_alive(Duration::from_secs(1))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_keep_alive(&mut self, duration: Duration) -> &mut Self {
        self.keep_alive = Some(duration);
        self
    }

    /// Sets the name of the runtime, which [`Handle::name`] returns.
    ///
    /// # Panics
    ///
    /// If the name is empty or consists of white space.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().name("batch").build()?;
    /// assert_eq!(rt.handle().name(), Some("batch"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn name(&mut self, val: impl Into<String>) -> &mut Self {
        let name = val.into();
        assert!(!name.trim().is_empty(), "runtime name shouldn't be empty: give one, or none");
        self.name = Some(name);
        self
    }

    /// Sets the name of the runtime's threads: `blitz-worker` by default.
    ///
    /// In a program that uses the `tokio` drop-in the default is `tokio-rt-worker`, as on Tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().thread_name("crunch").build()?;
    /// let name = rt.spawn(async { std::thread::current().name().map(str::to_owned) });
    /// assert_eq!(rt.block_on(name).unwrap().as_deref(), Some("crunch"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_name(&mut self, val: impl Into<String>) -> &mut Self {
        let name = val.into();
        self.thread_config.one_name = Some(name.as_str().into());
        self.thread_config.name = Arc::new(move || name.clone());
        self
    }

    /// Sets a function that returns the name of each thread that the runtime starts.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .thread_name_fn(|| {
    ///         static NEXT: AtomicUsize = AtomicUsize::new(0);
    ///         format!("crunch-{}", NEXT.fetch_add(1, Ordering::Relaxed))
    ///     })
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_name_fn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.thread_config.one_name = None;
        self.thread_config.name = Arc::new(f);
        self
    }

    /// Sets the stack size of the runtime's threads in bytes: the standard library's default unless
    /// set.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .thread_stack_size(4 * 1024 * 1024)
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_stack_size(&mut self, val: usize) -> &mut Self {
        self.thread_config.stack_size = Some(val);
        self
    }

    /// Calls `f` on each thread that the runtime starts, before the thread does any work.
    ///
    /// This includes threads that are started later to take over the worker of a task that does not
    /// yield.
    ///
    /// A panic in `f` is reported and goes no further: the thread still does its work.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .on_thread_start(|| println!("thread started"))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_start<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.thread_config.on_start = Some(Arc::new(f));
        self
    }

    /// Calls `f` on each thread of the runtime before the thread ends.
    ///
    /// A panic in `f` is reported and goes no further.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .on_thread_stop(|| println!("thread stopping"))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_stop<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.thread_config.on_stop = Some(Arc::new(f));
        self
    }

    /// Calls `f` on a worker thread just before it goes to sleep.
    ///
    /// A panic in `f` is reported and goes no further. If `f` blocks, it blocks its worker, because
    /// [preemption](Self::preemption) applies to tasks only.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .on_thread_park(|| println!("going to sleep"))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_park<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.on_park = Some(Arc::new(f));
        self
    }

    /// Calls `f` on a worker thread just after it wakes up.
    ///
    /// A panic in `f` is reported and goes no further. If `f` blocks, it blocks its worker, because
    /// [preemption](Self::preemption) applies to tasks only.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread()
    ///     .on_thread_unpark(|| println!("awake"))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_unpark<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.on_unpark = Some(Arc::new(f));
        self
    }

    /// Calls `f` when a task is spawned, before its first poll. `f` is not called for blocking
    /// work.
    ///
    /// `f` is called on the thread that spawns the task, inside the runtime. It should be short and
    /// must not block. A panic in it is reported and goes no further.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let counted = calls.clone();
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_task_spawn(move |_| {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .build()?;
    /// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    /// assert_eq!(calls.load(Ordering::Relaxed), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_spawn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.hooks.on_spawn = Some(Arc::new(f));
        self
    }

    /// Calls `f` before each poll of a task. `f` is not called for blocking work, which has no
    /// polls.
    ///
    /// `f` is called on the thread that polls the task, inside the runtime. It should be short and
    /// must not block. A panic in it is reported and goes no further.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let counted = calls.clone();
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_before_task_poll(move |_| {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .build()?;
    /// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    /// assert_eq!(calls.load(Ordering::Relaxed), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_before_task_poll<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.hooks.before_poll = Some(Arc::new(f));
        self
    }

    /// Calls `f` after each poll of a task. `f` is not called for blocking work, which has no
    /// polls.
    ///
    /// `f` is called on the thread that polls the task, inside the runtime. It should be short and
    /// must not block. A panic in it is reported and goes no further.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let counted = calls.clone();
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_after_task_poll(move |_| {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .build()?;
    /// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    /// assert_eq!(calls.load(Ordering::Relaxed), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_after_task_poll<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.hooks.after_poll = Some(Arc::new(f));
        self
    }

    /// Calls `f` when a task or a piece of blocking work has ended.
    ///
    /// `f` is called on the thread on which the task ends, inside the runtime. It should be short
    /// and must not block. A panic in it is reported and goes no further. When it is called, the
    /// task has completed, panicked or been cancelled and its future has been dropped, but its
    /// `JoinHandle` has not been woken yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let counted = calls.clone();
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_task_terminate(move |_| {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .build()?;
    /// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    /// assert_eq!(calls.load(Ordering::Relaxed), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_terminate<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.hooks.on_terminate = Some(Arc::new(f));
        self
    }

    /// Sets the number of polls after which a worker checks the global queue before its own. The
    /// global queue holds tasks that are spawned or woken outside of the workers.
    ///
    /// By default the interval follows the measured duration of polls, so that a task waits in that
    /// queue for about a millisecond at most while workers are busy.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().global_queue_interval(31).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn global_queue_interval(&mut self, val: u32) -> &mut Self {
        assert!(
            val > 0,
            "global_queue_interval must be greater than 0: with 1, it is checked before every poll"
        );
        self.global_queue_interval = Some(val);
        self
    }

    /// Sets the number of polls in a worker's tick: 128 by default.
    ///
    /// After a tick, a worker takes back the memory of tasks that ended on other threads, and checks
    /// whether another worker is stuck. On a current-thread runtime the future of `block_on` is
    /// polled at the latest then. The I/O driver
    /// and the timers do not depend on it, unlike on Tokio: they are polled by the clock.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().event_interval(31).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn event_interval(&mut self, val: u32) -> &mut Self {
        assert!(val > 0, "event_interval must be greater than 0: with 1, a tick is one poll");
        self.event_interval = val;
        self
    }

    /// Raises the number of I/O events that are taken in one poll of the driver to `capacity`.
    ///
    /// Tokio has a number of its own for ticks that also run tasks. Here there is one number for
    /// all, that of [`max_io_events_per_tick`](Self::max_io_events_per_tick); it is raised if it is
    /// smaller.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt =
    ///     blitz_io::runtime::Builder::new_multi_thread().max_io_events_per_busy_tick(64).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn max_io_events_per_busy_tick(&mut self, capacity: usize) -> &mut Self {
        assert!(capacity > 0, "max_io_events_per_busy_tick must be non-zero: leave it unset");
        self.drivers.raise_events(capacity);
        self
    }

    /// Disables the LIFO slot, from which a worker runs the most recently woken task
    /// next.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().disable_lifo_slot().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn disable_lifo_slot(&mut self) -> &mut Self {
        self.lifo_slot = false;
        self
    }

    /// Starts the worker threads when the first task is spawned instead of in
    /// [`build`](Self::build).
    ///
    /// If the operating system then refuses to start a thread, that first `spawn` panics, because
    /// it cannot return the error that `build` would have returned.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().lazy_start().build()?;
    /// assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn lazy_start(&mut self) -> &mut Self {
        self.lazy = true;
        self
    }

    /// Sets the number of waiting tasks per worker from which
    /// [`spawn_reporting`](crate::task::spawn_reporting) reports pressure.
    ///
    /// From twice that number on, `spawn_reporting` rejects tasks. By default it does neither.
    ///
    /// A current-thread runtime counts as one worker. Plain [`spawn`](crate::task::spawn) is not
    /// affected.
    ///
    /// # Panics
    ///
    /// If `per_worker` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().backpressure_threshold(1000).build()?;
    /// assert!(rt.spawn_reporting(async {}).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn backpressure_threshold(&mut self, per_worker: usize) -> &mut Self {
        assert!(
            per_worker > 0,
            "backpressure_threshold must be greater than 0: 1 reports as soon as a task waits"
        );
        self.limits.threshold = Some(per_worker);
        self
    }

    /// Sets how many tasks of [`spawn_bounded`](crate::task::spawn_bounded) may exist at the same
    /// time. By default there is no limit.
    ///
    /// Plain [`spawn`](crate::task::spawn) is not affected.
    ///
    /// # Panics
    ///
    /// If `val` is zero, or more than `usize::MAX >> 3`.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_bounded_tasks(10_000).build()?;
    /// let task = rt.block_on(rt.spawn_bounded(async { 1 })).unwrap();
    /// assert_eq!(rt.block_on(task).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn max_bounded_tasks(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "max_bounded_tasks must be greater than 0: no task could be spawned");
        assert!(
            val <= MAX,
            "max_bounded_tasks must not be greater than usize::MAX >> 3: leave it unset for no limit"
        );
        self.limits.bounded = Some(val);
        self
    }

    /// Sets how many functions of
    /// [`spawn_blocking_bounded`](crate::task::spawn_blocking_bounded) may wait for a thread at the
    /// same time. By default there is no limit.
    ///
    /// Plain [`spawn_blocking`](crate::task::spawn_blocking) is not affected: its queue has no
    /// limit.
    ///
    /// # Panics
    ///
    /// If `val` is zero, or more than `usize::MAX >> 3`.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_blocking_queue(64).build()?;
    /// let work = rt.block_on(rt.handle().spawn_blocking_bounded(|| 1)).unwrap();
    /// assert_eq!(rt.block_on(work).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn max_blocking_queue(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "max_blocking_queue must be greater than 0: no work could be spawned");
        assert!(
            val <= MAX,
            "max_blocking_queue must not be greater than usize::MAX >> 3: leave it unset for no \
             limit"
        );
        self.limits.blocking = Some(val);
        self
    }

    /// Creates the configured [`Runtime`].
    ///
    /// # Errors
    ///
    /// If the operating system refuses to start a worker thread (the threads that were started have
    /// ended by then) or to create the I/O driver, if [`worker_threads`](Self::worker_threads) is
    /// more than 32,768, or if the setting for [preemption](Self::preemption) is not valid.
    ///
    /// # Panics
    ///
    /// If the number of workers comes from an environment variable whose value is not a valid
    /// number, or if a multi-thread runtime is to start with a paused clock.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().build()?;
    /// rt.block_on(async {});
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn build(&mut self) -> io::Result<Runtime> {
        let threaded = self.flavor == RuntimeFlavor::MultiThread;
        let workers = if threaded { self.count_workers()? } else { 1 };
        let drivers = self.drivers.build(workers, threaded)?;
        #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        let carriers = self.fibers.carriers(workers);
        #[cfg(not(all(
            feature = "fiber",
            unix,
            any(target_arch = "x86_64", target_arch = "aarch64")
        )))]
        let carriers = 0;
        let config = Config {
            workers,
            threaded,
            lazy: self.lazy,
            lifo_slot: self.lifo_slot,
            global_queue_interval: self.global_queue_interval.or(self.steady_interval(threaded)),
            tick_polls: self.event_interval,
            thread_config: self.thread_config.clone(),
            on_park: self.on_park.clone(),
            on_unpark: self.on_unpark.clone(),
            hooks: (!self.hooks.is_empty()).then(|| Arc::new(self.hooks.clone())),
            poll_times: self.poll_times.scale(),
            latencies: self.latencies.scale(),
            seed: self.seed.as_ref().map(RngSeed::word),
            ends_on_panic: self.ends_on_panic,
            preempt: self.preempt_settings(threaded, carriers)?,
        };
        let pool = Pool::with_drivers(config, drivers);
        #[cfg(feature = "time")]
        drivers::alarm(&pool);
        let blocking = BlockingPool::new(BlockingConfig {
            cap: self.max_blocking_threads,
            keep_alive: self.keep_alive.unwrap_or(KEEP_ALIVE),
            cores: workers,
            thread_config: self.thread_config.clone(),
            unit: pool.config.unit(),
        });
        #[cfg(feature = "test-util")]
        drivers::hold_clock(&pool, &blocking);
        let spare_threads: Weak<BlockingPool> = Arc::downgrade(&blocking);
        pool.set_spare_threads(spare_threads);
        #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        let fibers = self.fibers.make(&pool, &self.thread_config, workers);
        let inner = Arc::new(Inner {
            pool,
            blocking,
            #[cfg(all(
                feature = "fiber",
                unix,
                any(target_arch = "x86_64", target_arch = "aarch64")
            ))]
            fibers,
            flavor: self.flavor,
            id: Id::next(),
            name: self.name.clone(),
            admission: Admission::new(self.limits, workers, self.max_blocking_threads),
        });
        #[cfg(feature = "time")]
        super::context::know(&inner);
        inner.pool.wrap_threads(entering(Arc::downgrade(&inner)));
        inner.blocking.wrap_threads(entering(Arc::downgrade(&inner)));
        #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        inner.fibers.wrap_threads(entering(Arc::downgrade(&inner)));
        let runtime = Runtime::from_handle(Handle { inner });
        if threaded
            && !self.lazy
            && let Err(error) = runtime.handle().inner.pool.start()
        {
            if NoBlocking::is_allowed_to_block() {
                drop(runtime);
            } else {
                // The threads that were started end by themselves; this thread is not allowed to
                // wait for them.
                runtime.shutdown_background();
            }
            return Err(error);
        }
        Ok(runtime)
    }

    #[track_caller]
    fn count_workers(&self) -> io::Result<usize> {
        let Some(workers) = self.workers else {
            return match machine::workers() {
                Ok(workers) => Ok(workers.count),
                Err(error) => panic!("{error}"),
            };
        };
        if workers > machine::MAX_WORKERS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{workers} worker threads are more than the limit of {}: use about one \
                     per processor",
                    machine::MAX_WORKERS
                ),
            ));
        }
        Ok(workers)
    }
}

/// Returns the wrapper around the life of each of the runtime's threads: it makes the runtime the
/// current one of the thread.
fn entering(inner: Weak<Inner>) -> ThreadWrapper {
    Arc::new(move |life| {
        // If the runtime was dropped before its thread came up, there is nothing to enter; the
        // thread only has to end its core.
        let entered = inner.upgrade().map(Entered::new);
        life();
        if let Some(entered) = entered {
            entered.leave_with_all_inside();
        }
    })
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("flavor", &self.flavor)
            .field("worker_threads", &self.workers)
            .field("name", &self.name)
            .field("max_blocking_threads", &self.max_blocking_threads)
            .field("thread_keep_alive", &self.keep_alive)
            .field("thread_stack_size", &self.thread_config.stack_size)
            .field("global_queue_interval", &self.global_queue_interval)
            .field("event_interval", &self.event_interval)
            .field("backpressure_threshold", &self.limits.threshold)
            .field("max_bounded_tasks", &self.limits.bounded)
            .finish_non_exhaustive()
    }
}
