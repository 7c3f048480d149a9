//! [`RuntimeMetrics`], which reads the counters of a runtime.

mod histograms;

use std::{fmt, time::Duration};

use super::Handle;
#[cfg(feature = "net")]
use crate::engine::driver::Driver;
use crate::engine::{
    pool::counters::CoreCounters,
    preempt::read,
    prim::{ThreadId, lock},
};

/// A handle from which the counters and gauges of a runtime can be read.
///
/// All values are read from counters that each worker keeps for itself, so reading them does not
/// slow the workers down. Values of different workers are read one after the other and need not
/// belong to the same moment. The two histograms need additional readings of the clock, so they are
/// disabled unless the [`Builder`](super::Builder) enables them.
///
/// # Which figure is which
///
/// *Sum* means over all workers, from 0 to [`num_workers`](Self::num_workers) - 1.
///
/// | value | method |
/// |---|---|
/// | workers | [`num_workers`](Self::num_workers) |
/// | tasks spawned | [`spawned_tasks_count`](Self::spawned_tasks_count) |
/// | tasks alive | [`num_alive_tasks`](Self::num_alive_tasks) |
/// | polls | [`worker_poll_count`](Self::worker_poll_count), and its sum |
/// | steals | [`worker_steal_operations`](Self::worker_steal_operations), and its sum |
/// | tasks stolen | [`worker_steal_count`](Self::worker_steal_count), and its sum |
/// | times a worker slept | [`worker_park_count`](Self::worker_park_count), and its sum |
/// | tasks from the LIFO slot | [`worker_lifo_hit_count`](Self::worker_lifo_hit_count) |
/// | batches from the global queue | [`worker_batch_fetch_count`](Self::worker_batch_fetch_count) |
/// | tasks in a worker's queue | [`worker_local_queue_depth`](Self::worker_local_queue_depth) |
/// | tasks in the global queue | [`global_queue_depth`](Self::global_queue_depth) |
/// | tasks scheduled by a worker | [`worker_local_schedule_count`][scheduled] |
/// | tasks scheduled from outside | [`remote_schedule_count`](Self::remote_schedule_count) |
/// | yields forced by a budget | [`budget_forced_yield_count`](Self::budget_forced_yield_count) |
/// | time awake | [`worker_total_busy_duration`](Self::worker_total_busy_duration) |
/// | average poll time | [`worker_mean_poll_time`](Self::worker_mean_poll_time) |
/// | histogram of poll times | [`poll_time_histogram_bucket_count`][poll times] |
/// | histogram of schedule latencies | [`schedule_latency_histogram_bucket_count`][latencies] |
/// | descriptors registered | `io_driver_fd_registered_count` |
/// | descriptors deregistered | `io_driver_fd_deregistered_count` |
/// | I/O events | `io_driver_ready_count` |
/// | polls of the I/O driver | `io_driver_turn_count` |
/// | workers handed off to another thread | [`preemption_handoff_count`][handoffs] |
/// | threads without their worker, now | [`preemption_detached_threads`][detached] |
/// | threads without their worker, peak | [`preemption_detached_peak`][peak] |
/// | polls that lasted too long | [`preemption_stall_count`](Self::preemption_stall_count) |
/// | hand-offs for which there was no thread | [`preemption_refused_count`][refused] |
/// | polls of hogs on spare threads | [`preemption_offload_count`][offloads] |
/// | checks by the monitor | [`preemption_scan_count`](Self::preemption_scan_count) |
/// | polls that ended during their hand-off | [`preemption_late_count`][late] |
/// | blocking threads | `num_blocking_threads` |
/// | idle blocking threads | `num_idle_blocking_threads` |
/// | blocking work that waits for a thread | `blocking_queue_depth` |
///
/// [scheduled]: Self::worker_local_schedule_count
/// [poll times]: Self::poll_time_histogram_bucket_count
/// [latencies]: Self::schedule_latency_histogram_bucket_count
/// [handoffs]: Self::preemption_handoff_count
/// [detached]: Self::preemption_detached_threads
/// [peak]: Self::preemption_detached_peak
/// [refused]: Self::preemption_refused_count
/// [offloads]: Self::preemption_offload_count
/// [late]: Self::preemption_late_count
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let metrics = blitz_io::runtime::Handle::current().metrics();
/// blitz_io::spawn(async {}).await.unwrap();
/// let polls: u64 = (0..metrics.num_workers()).map(|w| metrics.worker_poll_count(w)).sum();
/// assert!(polls >= 1);
/// # });
/// ```
#[derive(Clone)]
pub struct RuntimeMetrics {
    handle: Handle,
}

macro_rules! worker_counters {
    ($($(#[doc = $doc:literal])+ $name:ident: $field:ident,)+) => {
        $(
            $(#[doc = $doc])+
            ///
            /// # Panics
            ///
            /// If `worker` is not below [`num_workers`](Self::num_workers).
            ///
            /// # Examples
            ///
            /// ```
            /// # blitz_io::run(async {
            /// let metrics = blitz_io::runtime::Handle::current().metrics();
            #[doc = concat!("let figure: u64 = metrics.", stringify!($name), "(0);")]
            /// println!("{figure}");
            /// # });
            /// ```
            #[track_caller]
            pub fn $name(&self, worker: usize) -> u64 {
                self.counters(worker).$field.get()
            }
        )+
    };
}

macro_rules! preemption_counters {
    ($($(#[doc = $doc:literal])+ $name:ident: $field:ident, $holds:literal;)+) => {
        $(
            $(#[doc = $doc])+
            ///
            /// # Examples
            ///
            /// ```
            /// use blitz_io::runtime::{Builder, Preemption};
            ///
            /// let mut builder = Builder::new_multi_thread();
            /// let rt = builder.worker_threads(1).preemption(Preemption::new()).build()?;
            /// let metrics = rt.metrics();
            /// rt.block_on(rt.spawn(async move {
            ///     // The task stays in its poll until the poll has been counted as stalled.
            ///     while metrics.preemption_stall_count() == 0 {}
            /// }))?;
            #[doc = concat!("let figure: u64 = rt.metrics().", stringify!($name), "();")]
            #[doc = concat!("assert!(", $holds, ");")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn $name(&self) -> u64 {
                let watched = self.handle.inner.pool.watched.as_ref();
                watched.map_or(0, |watched| read(&watched.counters.$field))
            }
        )+
    };
}

impl RuntimeMetrics {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Returns the number of workers; 1 on a current-thread runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    /// assert_eq!(rt.metrics().num_workers(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn num_workers(&self) -> usize {
        self.handle.inner.pool.remotes.len()
    }

    preemption_counters! {
        /// Returns how often a worker was handed off to another thread because a task had been in
        /// one poll for too long; see [`Preemption`](super::Preemption).
        preemption_handoff_count: handoffs, "figure == 1";
        /// Returns the maximum number of threads that were in an overlong poll at once after their
        /// worker was handed off.
        preemption_detached_peak: peak, "figure == 1";
        /// Returns how many polls have lasted for longer than a slice.
        preemption_stall_count: stalls, "figure == 1";
        /// Returns how often a worker could not be handed off because there was no thread for it.
        preemption_refused_count: refused, "figure == 0";
        /// Returns how many polls of known hogs, which had overlong polls before, ran on spare
        /// threads.
        preemption_offload_count: offloaded, "figure == 0";
        /// Returns how many overlong polls ended just when their worker was about to be handed off.
        preemption_late_count: too_late, "figure <= 1";
        /// Returns how often the monitor has checked this runtime. It does not check while no task
        /// runs.
        preemption_scan_count: scans, "figure > 1";
    }

    /// Returns the number of threads that are still in an overlong poll after their worker was
    /// handed off.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().preemption_detached_threads(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn preemption_detached_threads(&self) -> usize {
        self.handle.inner.pool.watched.as_ref().map_or(0, |watched| watched.detached_threads())
    }

    /// Returns the number of live tasks: spawned and not completed.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().num_alive_tasks(), 0);
    /// let task = rt.spawn(std::future::pending::<()>());
    /// assert_eq!(rt.metrics().num_alive_tasks(), 1);
    /// # drop(task);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn num_alive_tasks(&self) -> usize {
        let pool = &self.handle.inner.pool;
        // `completed` is read before `spawned`, so a task that ends between the two readings is
        // counted as alive, and the difference is never negative.
        let completed: u64 = pool.counters().map(|counters| counters.completed.get()).sum();
        let completed = completed + pool.outside_counters.completed();
        let spawned: u64 = pool.counters().map(|counters| counters.spawned.get()).sum();
        let spawned = spawned + pool.outside_counters.spawned();
        usize::try_from(spawned.saturating_sub(completed)).unwrap_or(usize::MAX)
    }

    /// Returns the number of tasks that were ever spawned on the runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// blitz_io::spawn(async {}).await.unwrap();
    /// assert_eq!(metrics.spawned_tasks_count(), 1);
    /// # });
    /// ```
    pub fn spawned_tasks_count(&self) -> u64 {
        let pool = &self.handle.inner.pool;
        let spawned: u64 = pool.counters().map(|counters| counters.spawned.get()).sum();
        spawned + pool.outside_counters.spawned()
    }

    /// Returns the number of threads for blocking work, idle ones included and workers excluded.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().num_blocking_threads(), 0);
    /// rt.block_on(rt.spawn_blocking(|| ())).unwrap();
    /// assert_eq!(rt.metrics().num_blocking_threads(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn num_blocking_threads(&self) -> usize {
        self.handle.inner.blocking.threads()
    }

    /// Returns the number of idle blocking threads.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().num_idle_blocking_threads(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn num_idle_blocking_threads(&self) -> usize {
        self.handle.inner.blocking.idle_threads()
    }

    /// Returns the number of functions of `spawn_blocking` that wait for a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().blocking_queue_depth(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn blocking_queue_depth(&self) -> usize {
        self.handle.inner.blocking.queued()
    }

    /// Returns the number of tasks in the global queue, which holds tasks that come from outside of
    /// the workers or do not fit into their queues.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().global_queue_depth(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn global_queue_depth(&self) -> usize {
        self.handle.inner.pool.injector.len()
    }

    /// Returns the number of tasks in the given worker's local queue.
    ///
    /// The task in the worker's LIFO slot is not counted, as on Tokio.
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers).
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().worker_local_queue_depth(0), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn worker_local_queue_depth(&self, worker: usize) -> usize {
        let remote = self.remote(worker);
        let pool = &self.handle.inner.pool;
        if pool.config.threaded {
            return remote.thief.len() as usize;
        }
        if pool.is_stopping() {
            // The queued tasks have been dropped.
            return 0;
        }
        // Only its holder uses the queue of a current-thread pool, and it counts every push and
        // pop. The length is the difference. The pops are read first, so it is not negative.
        let polled = remote.counters.polled.get();
        let put = remote.counters.placed.get() + remote.counters.fetched.get();
        usize::try_from(put.saturating_sub(polled)).unwrap_or(usize::MAX)
    }

    /// Returns how often tasks were scheduled from outside of the runtime's workers.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// rt.block_on(rt.spawn(async {})).unwrap();
    /// assert_eq!(rt.metrics().remote_schedule_count(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn remote_schedule_count(&self) -> u64 {
        self.handle.inner.pool.injector.pushed()
    }

    /// Returns how often tasks, and futures of `block_on`, were forced to yield because their
    /// [budget](crate::task::coop) was used up.
    ///
    /// A task that completes with the last unit of its budget was not forced, and is not counted.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// for _ in 0..200 {
    ///     blitz_io::task::consume_budget().await;
    /// }
    /// assert_eq!(metrics.budget_forced_yield_count(), 1);
    /// # });
    /// ```
    pub fn budget_forced_yield_count(&self) -> u64 {
        let pool = &self.handle.inner.pool;
        let tasks: u64 = pool.counters().map(|counters| counters.forced_yields.get()).sum();
        tasks + pool.outside_counters.forced_yields().get()
    }

    /// Returns how long the given worker has spent on finding and running tasks.
    ///
    /// The value is updated every few dozen polls, and when the worker goes to sleep.
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// println!("busy for {:?}", metrics.worker_total_busy_duration(0));
    /// # });
    /// ```
    #[track_caller]
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        Duration::from_nanos(self.counters(worker).busy_ns.get())
    }

    /// Returns the average duration of a poll on the given worker; zero until it has polled some
    /// tasks.
    ///
    /// This is the weighted average by which the worker tunes itself, in which recent polls count
    /// most. The time is measured over up to a few dozen polls at once and includes what the worker
    /// does between them.
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// println!("a poll takes {:?}", metrics.worker_mean_poll_time(0));
    /// # });
    /// ```
    #[track_caller]
    pub fn worker_mean_poll_time(&self, worker: usize) -> Duration {
        Duration::from_nanos(self.counters(worker).mean_poll_ns.get())
    }

    /// Returns the ID of the thread that runs the given worker or ran it last; `None` if no thread
    /// has run it yet.
    ///
    /// The worker of a current-thread runtime runs on the thread inside
    /// [`Runtime::block_on`](super::Runtime::block_on).
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers).
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().build()?;
    /// assert_eq!(rt.metrics().worker_thread_id(0), None);
    /// rt.block_on(async {});
    /// assert_eq!(rt.metrics().worker_thread_id(0), Some(std::thread::current().id()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn worker_thread_id(&self, worker: usize) -> Option<ThreadId> {
        *lock(&self.remote(worker).thread)
    }

    /// Returns how many file descriptors have been registered with the I/O driver; zero if there is
    /// no driver.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// let before = metrics.io_driver_fd_registered_count();
    /// let _listener = blitz_io::net::TcpListener::bind("127.0.0.1:0").await?;
    /// assert_eq!(metrics.io_driver_fd_registered_count(), before + 1);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[cfg(feature = "net")]
    pub fn io_driver_fd_registered_count(&self) -> u64 {
        self.driver().map_or(0, Driver::registered_count)
    }

    /// Returns how many file descriptors have been deregistered from the I/O driver; zero if there
    /// is no driver.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// let before = metrics.io_driver_fd_deregistered_count();
    /// drop(blitz_io::net::TcpListener::bind("127.0.0.1:0").await?);
    /// assert_eq!(metrics.io_driver_fd_deregistered_count(), before + 1);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[cfg(feature = "net")]
    pub fn io_driver_fd_deregistered_count(&self) -> u64 {
        self.driver().map_or(0, Driver::deregistered_count)
    }

    /// Returns how many events the I/O driver has processed; zero if there is no driver.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::{TcpListener, TcpStream};
    ///
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let client = blitz_io::spawn(TcpStream::connect(listener.local_addr()?));
    /// // No client had connected when this began to wait, so an event has reported the connection.
    /// listener.accept().await?;
    /// client.await.expect("it does not panic")?;
    /// println!("{} events", metrics.io_driver_ready_count());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[cfg(feature = "net")]
    pub fn io_driver_ready_count(&self) -> u64 {
        self.driver().map_or(0, Driver::ready_count)
    }

    /// Returns how often the I/O driver has requested events from the system, with or without
    /// waiting.
    ///
    /// Each request is at most one system call. Tokio has no such value.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// println!("{} turns", metrics.io_driver_turn_count());
    /// # });
    /// ```
    #[cfg(feature = "net")]
    pub fn io_driver_turn_count(&self) -> u64 {
        self.driver().map_or(0, Driver::turn_count)
    }

    #[cfg(feature = "net")]
    fn driver(&self) -> Option<&Driver> {
        self.handle.inner.pool.drivers.driver().map(|driver| &**driver)
    }

    /// Returns the number of live tasks, under the older name of
    /// [`num_alive_tasks`](Self::num_alive_tasks).
    #[deprecated(note = "renamed to `num_alive_tasks`")]
    #[doc(hidden)]
    pub fn active_tasks_count(&self) -> usize {
        self.num_alive_tasks()
    }

    /// Returns the length of the global queue, under the older name of
    /// [`global_queue_depth`](Self::global_queue_depth).
    #[deprecated(note = "renamed to `global_queue_depth`")]
    #[doc(hidden)]
    pub fn injection_queue_depth(&self) -> usize {
        self.global_queue_depth()
    }

    /// Returns how often the given worker parked and unparked, added up: odd while it sleeps.
    ///
    /// # Panics
    ///
    /// If `worker` is not below [`num_workers`](Self::num_workers).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// println!("{}", if metrics.worker_park_unpark_count(0) % 2 == 1 { "asleep" } else { "awake" });
    /// # });
    /// ```
    #[track_caller]
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        let counters = self.counters(worker);
        let unparked = counters.unparked.get();
        unparked + counters.parked.get().max(unparked)
    }

    worker_counters! {
        /// Returns how often the given worker went to sleep.
        worker_park_count: parked,
        /// Returns how often the given worker woke up, or was started, and went to sleep again
        /// without having polled a task.
        worker_noop_count: idle_wakeups,
        /// Returns how many polls of tasks the given worker has made.
        worker_poll_count: polled,
        /// Returns how many tasks the given worker stole from other workers.
        worker_steal_count: stolen,
        /// Returns how often the given worker stole tasks from another worker.
        worker_steal_operations: steals,
        /// Returns how many tasks were scheduled on the given worker from within the runtime.
        worker_local_schedule_count: placed,
        /// Returns how often the given worker's local queue was full and half of it moved to the
        /// global queue.
        worker_overflow_count: overflows,
        /// Returns how many entries the given worker pushed onto its local queue.
        worker_push_count: pushed,
        /// Returns how many entries the given worker popped from its local queue.
        worker_pop_count: popped,
        /// Returns how many tasks the given worker took from its LIFO slot.
        worker_lifo_hit_count: lifo_hits,
        /// Returns how many batches the given worker took from the global queue.
        worker_batch_fetch_count: batch_fetches,
        /// Returns how many sleeping workers the given worker has woken.
        worker_wakeup_count: wakeups_sent,
    }

    #[track_caller]
    fn remote(&self, worker: usize) -> &crate::engine::pool::core::Remote {
        let workers = self.num_workers();
        match self.handle.inner.pool.remotes.get(worker) {
            Some(remote) => remote,
            None => panic!(
                "index out of bounds: the len is {workers} but the index is {worker} (there is no \
                 worker {worker}: they are numbered from 0)"
            ),
        }
    }

    #[track_caller]
    fn counters(&self, worker: usize) -> &CoreCounters {
        &self.remote(worker).counters
    }
}

impl fmt::Debug for RuntimeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeMetrics")
            .field("num_workers", &self.num_workers())
            .field("num_alive_tasks", &self.num_alive_tasks())
            .field("global_queue_depth", &self.global_queue_depth())
            .finish_non_exhaustive()
    }
}
