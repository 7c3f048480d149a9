//! What a runtime counted.

mod histograms;

use std::{fmt, time::Duration};

use super::Handle;
#[cfg(feature = "net")]
use crate::engine::driver::Driver;
use crate::engine::{
    pool::{counters::Counters, vigil::read},
    prim::{ThreadId, lock},
};

/// Handle to the runtime's metrics.
///
/// Every figure is read from counters that the workers keep for themselves, so
/// reading costs them nothing. Figures of different workers are read one after
/// the other and need not be of the same moment. The two histograms need readings
/// of the clock and are off unless the [`Builder`](super::Builder) enables them.
///
/// # Which figure is which
///
/// *Sum* means over all workers, from 0 to [`num_workers`](Self::num_workers) - 1.
///
/// | what | method |
/// |---|---|
/// | workers | [`num_workers`](Self::num_workers) |
/// | tasks ever spawned | [`spawned_tasks_count`](Self::spawned_tasks_count) |
/// | tasks alive | [`num_alive_tasks`](Self::num_alive_tasks) |
/// | polls | [`worker_poll_count`](Self::worker_poll_count), and its sum |
/// | steals | [`worker_steal_operations`](Self::worker_steal_operations), and its sum |
/// | tasks stolen | [`worker_steal_count`](Self::worker_steal_count), and its sum |
/// | times slept | [`worker_park_count`](Self::worker_park_count), and its sum |
/// | tasks from the LIFO slot | [`worker_lifo_hit_count`](Self::worker_lifo_hit_count) |
/// | batches from the intake | [`worker_batch_fetch_count`](Self::worker_batch_fetch_count) |
/// | tasks waiting for a worker | [`worker_local_queue_depth`](Self::worker_local_queue_depth) |
/// | tasks waiting in the intake | [`global_queue_depth`](Self::global_queue_depth) |
/// | tasks scheduled by workers, by others | [`worker_local_schedule_count`](Self::worker_local_schedule_count), [`remote_schedule_count`](Self::remote_schedule_count) |
/// | yields forced by a budget | [`budget_forced_yield_count`](Self::budget_forced_yield_count) |
/// | time awake, average poll | [`worker_total_busy_duration`](Self::worker_total_busy_duration), [`worker_mean_poll_time`](Self::worker_mean_poll_time) |
/// | distribution of polls | [`poll_time_histogram_bucket_count`](Self::poll_time_histogram_bucket_count) |
/// | distribution of waiting times | [`schedule_latency_histogram_bucket_count`](Self::schedule_latency_histogram_bucket_count) |
/// | descriptors watched, no longer watched | `io_driver_fd_registered_count`, `io_driver_fd_deregistered_count` |
/// | events of descriptors, turns that asked for them | `io_driver_ready_count`, `io_driver_turn_count` |
/// | workers that went on with another thread, threads without a worker now and at the most | [`preemption_handoff_count`](Self::preemption_handoff_count), [`preemption_detached_threads`](Self::preemption_detached_threads), [`preemption_detached_peak`](Self::preemption_detached_peak) |
/// | polls that lasted too long, that kept their worker, polls by threads without a worker | [`preemption_stall_count`](Self::preemption_stall_count), [`preemption_refused_count`](Self::preemption_refused_count), [`preemption_lent_count`](Self::preemption_lent_count) |
/// | looks of the monitor, polls that ended just when it came | [`preemption_look_count`](Self::preemption_look_count), [`preemption_late_count`](Self::preemption_late_count) |
/// | threads for blocking work, idle ones, work that waits for one | `num_blocking_threads`, `num_idle_blocking_threads`, `blocking_queue_depth` |
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
            ///     // It stays in its poll until that was counted.
            ///     while metrics.preemption_stall_count() == 0 {}
            /// }))?;
            #[doc = concat!("let figure: u64 = rt.metrics().", stringify!($name), "();")]
            #[doc = concat!("assert!(", $holds, ");")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn $name(&self) -> u64 {
                let watched = self.handle.inner.pool.watched.as_ref();
                watched.map_or(0, |watched| read(&watched.figures.$field))
            }
        )+
    };
}

impl RuntimeMetrics {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Returns the number of worker threads used by the runtime; 1 on a
    /// current-thread runtime.
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
        /// Returns how often a worker went on with another thread because a task had been in one
        /// poll for too long; see [`Preemption`](super::Preemption).
        preemption_handoff_count: handoffs, "figure == 1";
        /// Returns the most threads that were without a worker at once.
        preemption_detached_peak: peak, "figure == 1";
        /// Returns how many polls have lasted for too long.
        preemption_stall_count: stalls, "figure == 1";
        /// Returns how often a worker did not go on, because there was no thread for it.
        preemption_refused_count: refused, "figure == 0";
        /// Returns how many polls of tasks that were caught before were given to threads without
        /// a worker.
        preemption_lent_count: lent, "figure == 0";
        /// Returns how many polls that lasted for too long ended just when their worker was to
        /// go on without them.
        preemption_late_count: too_late, "figure <= 1";
        /// Returns how often the monitor has looked at this runtime. It does not while nothing
        /// runs.
        preemption_look_count: looks, "figure > 1";
    }

    /// Returns how many threads are without the worker that they were, inside of a poll that
    /// lasts too long.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().preemption_detached_threads(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn preemption_detached_threads(&self) -> usize {
        self.handle.inner.pool.watched.as_ref().map_or(0, |watched| watched.detached())
    }

    /// Returns the current number of alive tasks in the runtime: spawned and not
    /// completed.
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
        // Completed first: a task that ends between the readings is counted as
        // alive, and never as less than nothing.
        let completed: u64 = pool.counters().map(|counters| counters.completed.get()).sum();
        let completed = completed + pool.outside_counters.completed();
        let spawned: u64 = pool.counters().map(|counters| counters.spawned.get()).sum();
        let spawned = spawned + pool.outside_counters.spawned();
        usize::try_from(spawned.saturating_sub(completed)).unwrap_or(usize::MAX)
    }

    /// Returns the number of tasks ever spawned onto the runtime.
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

    /// Returns the number of additional threads spawned by the runtime: those for
    /// blocking work, workers excluded.
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

    /// Returns the number of threads for blocking work that have none.
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

    /// Returns the number of functions of `spawn_blocking` that no thread has started.
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

    /// Returns the number of tasks currently scheduled in the runtime's intake, the
    /// queue for what comes from outside of the workers or does not fit into
    /// theirs.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.metrics().global_queue_depth(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn global_queue_depth(&self) -> usize {
        self.handle.inner.pool.intake.len()
    }

    /// Returns the number of tasks currently scheduled in the given worker's local
    /// queue.
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
            return remote.thief.len() as usize + usize::from(!remote.lifo.is_empty());
        }
        if pool.is_stopping() {
            // What was queued has been dropped.
            return 0;
        }
        // The queue of a pool without thieves is its holder's alone: what went in,
        // less what came out, and what came out is read first.
        let polled = remote.counters.polled.get();
        let put = remote.counters.placed.get() + remote.counters.fetched.get();
        usize::try_from(put.saturating_sub(polled)).unwrap_or(usize::MAX)
    }

    /// Returns the number of times that tasks were scheduled from outside of the
    /// runtime's workers.
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
        self.handle.inner.pool.intake.pushed()
    }

    /// Returns the number of times that tasks, and futures of `block_on`, were forced
    /// to yield because their [budget](crate::task::coop) was used up.
    ///
    /// One that ends with its last unit was not forced and is not counted.
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

    /// Returns the time the given worker has spent finding and running tasks.
    ///
    /// It is brought up to date every few dozen polls, and when the worker sleeps.
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

    /// Returns the average duration of a task's poll on the given worker; zero until
    /// it has polled some.
    ///
    /// It is the average by which the worker tunes itself, in which the latest count
    /// most: taken over up to a few dozen polls at a time, with what is done in between.
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

    /// Returns the ID of the thread that the given worker runs on, or ran on last;
    /// `None` if it never ran.
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

    /// Returns the number of file descriptors that have been registered with the I/O
    /// driver; zero without one.
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

    /// Returns the number of file descriptors that have been deregistered from the I/O
    /// driver; zero without one.
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

    /// Returns the number of ready events that the I/O driver has processed; zero
    /// without one.
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
    /// // Nobody was there when this began to wait, so an event has told of the client.
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

    /// Returns how often the I/O driver has asked the system for events: each is one
    /// system call at the most, whether it waited or only looked. Tokio has no such figure.
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
        self.handle.inner.pool.duties.driver().map(|driver| &**driver)
    }

    /// The older name of [`num_alive_tasks`](Self::num_alive_tasks).
    #[deprecated(note = "renamed to `num_alive_tasks`")]
    #[doc(hidden)]
    pub fn active_tasks_count(&self) -> usize {
        self.num_alive_tasks()
    }

    /// The older name of [`global_queue_depth`](Self::global_queue_depth).
    #[deprecated(note = "renamed to `global_queue_depth`")]
    #[doc(hidden)]
    pub fn injection_queue_depth(&self) -> usize {
        self.global_queue_depth()
    }

    /// Returns the number of times the given worker parked and unparked: odd while
    /// it sleeps.
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
        /// Returns the total number of times the given worker went to sleep.
        worker_park_count: parked,
        /// Returns the number of times the given worker unparked but performed no
        /// work before parking again.
        worker_noop_count: idle_wakeups,
        /// Returns the number of tasks the given worker has polled.
        worker_poll_count: polled,
        /// Returns the number of tasks the given worker stole from other workers.
        worker_steal_count: stolen,
        /// Returns the number of times the given worker stole from another one.
        worker_steal_operations: steals,
        /// Returns the number of tasks scheduled from within the runtime on the
        /// given worker.
        worker_local_schedule_count: placed,
        /// Returns the number of times the given worker's local queue was full and
        /// half of it moved to the intake.
        worker_overflow_count: overflows,
        /// Returns the number of entries the given worker pushed onto its local queue.
        worker_push_count: pushed,
        /// Returns the number of entries the given worker popped from its local queue.
        worker_pop_count: popped,
        /// Returns the number of tasks the given worker took from its LIFO slot.
        worker_lifo_hit_count: lifo_hits,
        /// Returns the number of batches the given worker fetched from the intake.
        worker_batch_fetch_count: batch_fetches,
        /// Returns the number of sleeping workers the given worker has woken.
        worker_wakeup_count: wakeups_sent,
    }

    #[track_caller]
    fn remote(&self, worker: usize) -> &crate::engine::pool::core::Remote {
        let workers = self.num_workers();
        match self.handle.inner.pool.remotes.get(worker) {
            Some(remote) => remote,
            None => panic!("there is no worker {worker}: this runtime has {workers}, from 0 on"),
        }
    }

    #[track_caller]
    fn counters(&self, worker: usize) -> &Counters {
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
