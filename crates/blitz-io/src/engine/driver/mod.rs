//! The I/O driver: waits for readiness events of descriptors and wakes the tasks that wait for
//! them.
//!
//! Each runtime has one driver. A descriptor is registered once and then used directly: an
//! operation is tried first, and its task waits for an event only if the operation would block. The
//! kernel never holds a pointer to a task's memory, so tasks may be dropped, moved and aborted at
//! any time.
//!
//! - [`interest`], [`ready`]: the events that a caller waits for, and the readiness that is known.
//! - [`readiness`]: the record of one descriptor, with its wakers and wait queues.
//! - [`record_table`]: the table of records, and the tokens by which the kernel names them.
//! - [`registration`]: the owner's handle to a registered descriptor.
//! - `event_reporter`, `overlapped`: events that do not come from the selector, and named pipes,
//!   which are the source of such events (Windows).
//! - [`try_lock`]: the lock around the right to wait for events; no thread blocks for it.
//! - [`nudge`]: how other threads end the wait of the thread that takes a turn.
//! - [`backend`]: the selectors and the choice between them: `epoll`, `uring`, `poll`, and
//!   `polling_selector` where there is no epoll. `poll_flags`: what the Unix selectors have in
//!   common.
//!
//! # The contract
//! 1. The thread that holds the [`TurnGuard`] takes turns. A turn waits for events for at most the
//!    given timeout, then sets the readiness that they report in the records, and wakes the tasks
//!    while no lock is held.
//! 2. An event of a registration that has ended is dropped. It makes no other registration ready,
//!    whichever has its slot in the table or its descriptor number now.
//! 3. [`Driver::wake`] ends a turn that waits, or the next turn that would wait. A turn that does
//!    not wait leaves the wake-up to the next turn that does.
//! 4. After [`Driver::shutdown`] no task waits any more: every operation that would wait returns an
//!    error that says so.
//! 5. A turn may end early without any events. A signal that interrupts a turn is not an error.
//!
//! # Checked by
//! `driver/tests.rs`, on each selector; the models are in the files of the parts.

#[cfg(unix)]
use std::os::fd::BorrowedFd;
#[cfg(windows)]
use std::os::windows::io::BorrowedSocket;
use std::{any::Any, io, sync::Arc, time::Duration};

pub(crate) mod interest;
pub(crate) mod ready;
pub(crate) mod readiness;
pub(crate) mod record_table;
pub(crate) mod registration;
#[cfg(windows)]
mod event_reporter;
#[cfg(windows)]
pub(crate) mod overlapped;
mod try_lock;
mod nudge;
pub(crate) mod backend;
#[cfg(unix)]
mod poll_flags;
#[cfg(target_os = "linux")]
mod epoll;
// The architectures for which the `io-uring` crate is a dependency; the manifest has the same list.
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "loongarch64",
        target_arch = "powerpc64"
    )),
    path = "no_uring.rs"
)]
#[cfg(target_os = "linux")]
mod uring;
#[cfg(unix)]
mod poll;
// Also built for tests on Linux, where the `polling` crate has the same interface.
#[cfg(any(test, not(target_os = "linux")))]
mod polling_selector;

#[cfg(all(test, not(blitz_loom)))]
pub(crate) mod limits;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub(crate) use self::{backend::IoBackend, readiness::Direction, registration::Registration};

use self::{
    backend::{Events, Selector},
    interest::Interest,
    nudge::Nudge,
    record_table::{OpenError, OpenRecord, RecordTable},
    try_lock::{TryLock, TryLockGuard},
};
use crate::engine::{
    prim::{AtomicU64, OnceLock, Ordering::Relaxed},
    wait::wake_list::WakeList,
};

/// The borrowed handle that can be registered: a file descriptor.
#[cfg(unix)]
pub(crate) type Fd<'a> = BorrowedFd<'a>;
/// The borrowed handle that can be registered: a socket.
#[cfg(windows)]
pub(crate) type Fd<'a> = BorrowedSocket<'a>;

/// Settings of a new driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DriverConfig {
    /// The selector to use; `None` chooses the best one that the system has.
    pub(crate) backend: Option<IoBackend>,
    /// The maximum number of events that one turn takes.
    pub(crate) events_per_turn: usize,
}

impl Default for DriverConfig {
    fn default() -> Self {
        // Tokio's default, which programs may have been tuned to.
        Self { backend: None, events_per_turn: 1024 }
    }
}

/// The I/O driver of one runtime; the module documentation has its contract.
#[derive(Debug)]
pub(crate) struct Driver {
    selector: Selector,
    record_table: RecordTable,
    events: TryLock<Events>,
    nudge: Nudge,
    counters: DriverCounters,
    /// Set unless the program or the environment chose a selector other than io_uring.
    uring_allowed: bool,
    extension: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Driver {
    /// Creates a driver.
    ///
    /// # Errors
    /// Returns the system's error, or `Unsupported` if the requested selector does not exist here.
    pub(crate) fn new(config: DriverConfig) -> io::Result<Arc<Self>> {
        let uring_allowed =
            matches!(IoBackend::chosen(config.backend)?, IoBackend::Auto | IoBackend::Uring);
        Ok(Self::with(Selector::new(config.backend)?, config.events_per_turn, uring_allowed))
    }

    /// Returns the selector by which the driver learns of events.
    pub(crate) fn backend(&self) -> IoBackend {
        self.selector.backend()
    }

    fn with(selector: Selector, events_per_turn: usize, uring_allowed: bool) -> Arc<Self> {
        Arc::new(Self {
            selector,
            record_table: RecordTable::new(),
            events: TryLock::new(Events::new(events_per_turn)),
            nudge: Nudge::new(),
            counters: DriverCounters::default(),
            uring_allowed,
            extension: OnceLock::new(),
        })
    }

    /// Watches a non-blocking descriptor until the returned registration ends.
    ///
    /// # Errors
    /// Returns the system's error, or the shutdown error if the driver has ended.
    pub(crate) fn register(
        self: &Arc<Self>,
        fd: Fd<'_>,
        interest: Interest,
    ) -> io::Result<Registration> {
        let open_record = self.open()?;
        if let Err(why) = self.selector.add(fd, open_record.token, interest) {
            self.record_table.close(open_record);
            return Err(why);
        }
        self.counters.registered();
        Ok(Registration::new(self.clone(), open_record))
    }

    /// Creates a registration that no selector watches; its events are reported through the
    /// returned [`EventReporter`](event_reporter::EventReporter).
    ///
    /// # Errors
    /// Returns the shutdown error if the driver has ended.
    #[cfg(windows)]
    pub(crate) fn register_external(
        self: &Arc<Self>,
    ) -> io::Result<(Registration, event_reporter::EventReporter)> {
        let open_record = self.open()?;
        self.counters.registered();
        let reporter = event_reporter::EventReporter::new(self.clone(), open_record.token);
        Ok((Registration::new(self.clone(), open_record), reporter))
    }

    fn open(&self) -> io::Result<OpenRecord> {
        self.record_table.open().map_err(|why| match why {
            OpenError::Closed => shut_down_error(),
            OpenError::Full => io::Error::other("too many descriptors are registered: close some"),
        })
    }

    /// Acquires the right to take turns; returns `None` if another thread holds it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<TurnGuard<'_>> {
        self.events.try_lock().map(|events| TurnGuard { driver: self, events })
    }

    /// Returns true if any thread that takes a turn finds all pending events. With io_uring, a
    /// completion is written by the thread that submitted the poll, so that thread must run before
    /// others see it.
    pub(crate) fn any_thread_sees_events(&self) -> bool {
        #[cfg(target_os = "linux")]
        return !matches!(self.selector, Selector::Uring(_));
        #[cfg(not(target_os = "linux"))]
        true
    }

    /// Ends a turn that waits, or the next one that would. Several calls may end only one wait.
    #[inline]
    pub(crate) fn wake(&self) {
        self.nudge.nudge(|| self.selector.signal());
    }

    /// Wakes every waiter with the shutdown error and makes all later waits fail with it.
    pub(crate) fn shutdown(&self) {
        self.record_table.shut_down();
        self.wake();
    }

    /// Returns how many descriptors have been registered since the driver was created.
    pub(crate) fn registered_count(&self) -> u64 {
        // Relaxed: a metric, which orders nothing.
        self.counters.registered.load(Relaxed)
    }

    /// Returns how many registrations have been removed since the driver was created.
    pub(crate) fn deregistered_count(&self) -> u64 {
        // Relaxed: a metric, which orders nothing.
        self.counters.deregistered.load(Relaxed)
    }

    /// Returns how many readiness events have been dispatched.
    pub(crate) fn ready_count(&self) -> u64 {
        // Relaxed: a metric, which orders nothing.
        self.counters.ready.load(Relaxed)
    }

    /// Returns how many turns were taken; each is a system call that polls for events.
    pub(crate) fn turn_count(&self) -> u64 {
        // Relaxed: a metric, which orders nothing.
        self.counters.turns.load(Relaxed)
    }
}

/// For the `uring` layer above, which runs operations on io_uring.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has io_uring"))]
impl Driver {
    /// Returns true if the runtime may use io_uring for operations, whichever selector reports
    /// readiness.
    #[inline]
    pub(crate) fn allows_uring(&self) -> bool {
        self.uring_allowed
    }

    /// Returns the value that a layer above keeps with the driver. The first call creates it, and
    /// it is dropped with the driver. It may hold a registration with this driver if it ends that
    /// registration at shutdown, because the registration keeps the driver alive.
    ///
    /// # Panics
    /// Panics if it is called with two different types.
    #[inline]
    pub(crate) fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let kept = self.extension.get_or_init(|| Box::new(make()));
        kept.downcast_ref().expect("the driver's extension is set once")
    }
}

/// Counters for metrics.
#[derive(Debug, Default)]
struct DriverCounters {
    registered: AtomicU64,
    deregistered: AtomicU64,
    ready: AtomicU64,
    turns: AtomicU64,
}

// Relaxed throughout: metrics, which order nothing.
impl DriverCounters {
    fn registered(&self) {
        self.registered.fetch_add(1, Relaxed);
    }

    fn deregistered(&self) {
        self.deregistered.fetch_add(1, Relaxed);
    }

    fn ready(&self, count: usize) {
        if count > 0 {
            self.ready.fetch_add(count as u64, Relaxed);
        }
    }

    /// Counts a turn. Must be called only by the holder of the [`TurnGuard`]: with a single writer,
    /// a plain load and store are enough, and no locked instruction is needed.
    fn turn(&self) {
        self.turns.store(self.turns.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The right to take turns, held until this guard is dropped.
pub(crate) struct TurnGuard<'a> {
    driver: &'a Driver,
    events: TryLockGuard<'a, Events>,
}

impl TurnGuard<'_> {
    /// Takes one turn: [`wait`](Self::wait), then [`dispatch`](Self::dispatch).
    #[cfg(test)]
    pub(crate) fn turn(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let found = self.wait(timeout)?;
        self.dispatch();
        Ok(found)
    }

    /// Waits for events for at most `timeout` (`None`: without limit; zero: does not wait). Returns
    /// the number of events found, which the caller must dispatch with
    /// [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    /// Returns the system's error for this wait; the caller may try again.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let Self { driver, events } = self;
        let events = &mut **events;
        driver.counters.turn();
        if timeout == Some(Duration::ZERO) {
            driver.selector.wait(events, timeout)?;
        } else {
            driver.nudge.wait(|may_wait| {
                let timeout = if may_wait { timeout } else { Some(Duration::ZERO) };
                driver.selector.wait(events, timeout)
            })?;
        }
        Ok(self.events.found.len())
    }

    /// Dispatches the events to their records and wakes the tasks, so wakers of users run here.
    /// Returns the number of events.
    pub(crate) fn dispatch(&mut self) -> usize {
        let mut wake_list = WakeList::new();
        for event in &self.events.found {
            self.driver.record_table.dispatch(event.token, event.ready, &mut wake_list);
        }
        wake_list.wake_all();
        self.driver.counters.ready(self.events.found.len());
        self.events.found.len()
    }
}

impl std::fmt::Debug for TurnGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnGuard").finish_non_exhaustive()
    }
}

/// The message of the error that operations return after their runtime has ended. It must be
/// exactly Tokio's text, because programs and `runtime::is_rt_shutdown_err` compare with it.
pub(crate) const SHUT_DOWN: &str = "A Tokio 1.x context was found, but it is being shutdown.";

/// Returns the error that every operation fails with after its runtime has ended.
#[cold]
pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other(SHUT_DOWN)
}
