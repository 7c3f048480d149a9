//! The I/O driver and the timers of a pool: which worker is responsible for them while all sleep,
//! and how they are polled and fired.
//!
//! # The poller
//! One of the sleeping workers is the *poller*: it sleeps in the driver, where there is one, until
//! an event comes, and for the wheel of the threads without a core; and no longer than 5 ms past
//! the next deadline of any other wheel, because its core may be stuck in a poll. That is its
//! *role*, which any worker may take: the first that falls asleep while no other has it, unless it is
//! *spared* (see `park`, which decides where a worker sleeps). A worker that is awake does *maintenance* whenever its coarse
//! clock says so: it checks its wheel and fires timers, and polls the driver if no other thread
//! does.
//!
//! A poller that has something to do gives the role up first, and the next worker that falls asleep
//! takes it. While no worker has it, at least one is awake, which polls the driver by its clock and
//! takes the role before it sleeps. If that worker gets stuck in a poll while all others sleep, no
//! worker polls the driver until the monitor (`preempt`) hands its core to another thread; without
//! preemption, until the poll has ended, as on Tokio. `idle` does not wake the poller for work if
//! it can wake another one, which makes this rare.
//!
//! # Protocol
//! ```text
//! a worker that falls asleep              a thread that arms a timer of another wheel
//! D1 takes the role: writes its index     A1 publishes the wheel's next deadline
//! D2 fence(SeqCst)                        A2 fence(SeqCst)
//! D3 reads the deadlines, and sleeps      A3 reads the index, and unparks the worker
//!    until the first of them                 that it finds
//! ```
//! One fence comes first: D3 sees the deadline, or A3 sees the index. A worker that is unparked and
//! has nothing to do begins again at D1. D3 is `SleepingCore::sleep_limit` in `park`.
//!
//! # Rejected
//! Remedies for a poller that gives up the role and gets stuck while all others sleep. It cannot
//! report that itself, and a thread that is to detect it needs a clock, which threads that sleep
//! without a time-out do not have:
//! - Waking another worker whenever the role is given up: 10 to 14 µs of the waking thread's time
//!   for each event, before it can run the task that the event is for. Doing so once in some
//!   milliseconds spares a busy pool, but not one in which events are rare, where each would pay.
//! - A time-out for all sleepers as long as no worker is the poller: those that fell asleep while
//!   one was would not notice, unless they always had a time-out, and an idle pool must make no
//!   system calls.
//! - Two workers that wait in the driver at once: the kernel gives the second every event that
//!   comes while the first runs tasks, so each is dispatched on another core than its task was on.
//! - A deputy that sleeps by a timer of the kernel's, which the worker that gives up the role sets,
//!   once in some milliseconds. This is the only remedy that costs next to nothing. But it is a
//!   second place to sleep in, other than a futex, and it helps events alone: tasks in the queue of
//!   the stuck worker would still wait. The monitor hands off the whole core instead, and with it
//!   the queue, the wheel and this role.
//!
//! # Checked by
//! `an_earlier_timer_is_slept_for`; weakened as `poller_fence`, `poller_alarm`.

#[cfg(feature = "net")]
use std::time::Duration;

use super::{Pool, held_core};
#[cfg(feature = "net")]
use crate::engine::driver::{Driver, TurnGuard};
#[cfg(feature = "time")]
use crate::engine::prim::Arc;
use crate::engine::prim::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
    pad::CachePadded,
    weakened,
};
#[cfg(feature = "time")]
use crate::engine::wheel::{GRACE_NS, Timers, TimersRef};

/// The interval at which an awake core polls the driver: a poll that finds no event costs 0.2 µs,
/// so this is half a percent.
#[cfg(feature = "net")]
const MAINTENANCE_NS: u64 = 50_000;

/// The interval at which a core with a long queue polls the driver. The tasks that an event wakes
/// go behind those that are queued, so while the queue gets shorter an earlier poll would gain them
/// little; and a worker with nothing to do polls the driver itself, or steals from this core. Where
/// the queue stays long, because its tasks yield, an event waits for up to 200 µs longer.
#[cfg(feature = "net")]
const LONG_MAINTENANCE_NS: u64 = 250_000;

/// The right to wait in the driver. In a build without a driver no value of it exists.
#[cfg(feature = "net")]
pub(super) type DriverTurn<'a> = TurnGuard<'a>;
#[cfg(not(feature = "net"))]
pub(super) type DriverTurn<'a> = (std::convert::Infallible, std::marker::PhantomData<&'a ()>);

/// The I/O driver and the timers of a pool, and the worker that sleeps for them.
pub(crate) struct PoolDrivers {
    #[cfg(feature = "net")]
    driver: Option<std::sync::Arc<Driver>>,
    #[cfg(feature = "time")]
    timers: Option<TimerRefs>,
    /// Padded, because the fields beside it are read by every worker.
    role: CachePadded<PollerRole>,
}

/// The timers, with a [`TimersRef`] for each core and one for threads without a core.
#[cfg(feature = "time")]
struct TimerRefs {
    timers: Arc<Timers>,
    refs: Box<[Arc<TimersRef>]>,
}

impl PoolDrivers {
    /// Creates the state without a driver and without timers.
    pub(crate) fn none() -> Self {
        Self {
            #[cfg(feature = "net")]
            driver: None,
            #[cfg(feature = "time")]
            timers: None,
            role: CachePadded::new(PollerRole::new()),
        }
    }

    #[cfg(feature = "net")]
    pub(crate) fn with_driver(mut self, driver: std::sync::Arc<Driver>) -> Self {
        self.driver = Some(driver);
        self
    }

    #[cfg(feature = "time")]
    pub(crate) fn with_timers(mut self, timers: Arc<Timers>) -> Self {
        let refs = Timers::refs(&timers);
        self.timers = Some(TimerRefs { timers, refs });
        self
    }

    #[cfg(feature = "net")]
    pub(crate) fn driver(&self) -> Option<&std::sync::Arc<Driver>> {
        self.driver.as_ref()
    }

    #[cfg(feature = "time")]
    pub(crate) fn timers(&self) -> Option<&Arc<Timers>> {
        self.timers.as_ref().map(|timer_refs| &timer_refs.timers)
    }

    /// Returns the [`TimersRef`] of a core, or that of threads without a core.
    #[cfg(feature = "time")]
    #[inline]
    pub(crate) fn timers_ref(&self, core: Option<usize>) -> Option<&Arc<TimersRef>> {
        let TimerRefs { timers, refs } = self.timers.as_ref()?;
        Some(&refs[core.unwrap_or_else(|| timers.outside())])
    }

    pub(crate) fn has_timers(&self) -> bool {
        #[cfg(feature = "time")]
        return self.timers.is_some();
        #[cfg(not(feature = "time"))]
        false
    }

    /// Returns the index of the poller, if there is one.
    pub(crate) fn poller(&self) -> Option<usize> {
        self.role.holder()
    }

    /// Returns true if an awake worker can take the events for a sleeping one.
    #[cfg(feature = "net")]
    pub(crate) fn any_worker_can_take_events(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.any_thread_sees_events())
    }

    /// Returns how often threads have polled the driver.
    pub(crate) fn driver_polls(&self) -> u64 {
        #[cfg(feature = "net")]
        return self.driver.as_ref().map_or(0, |driver| driver.turn_count());
        #[cfg(not(feature = "net"))]
        0
    }

    /// Wakes the worker that sleeps in the driver.
    pub(crate) fn wake(&self) {
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            driver.wake();
        }
    }

    /// Returns true if an awake core must do its maintenance, given the time since it last did, and
    /// the time that the tasks in its queue will take.
    #[inline]
    pub(crate) fn is_maintenance_due(&self, index: usize, since_ns: u64, queued_ns: u64) -> bool {
        #[cfg(feature = "net")]
        if self.driver.is_some()
            && since_ns >= MAINTENANCE_NS
            && (queued_ns < MAINTENANCE_NS || since_ns >= LONG_MAINTENANCE_NS)
        {
            return true;
        }
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            let next = earlier(timers.next(index), timers.next(timers.outside()));
            return next.is_some_and(|next| next <= timers.clock().now_ns());
        }
        let _ = (index, since_ns, queued_ns);
        false
    }

    /// Shuts driver and timers down: every waiter for an event or a time gets an error.
    pub(crate) fn shut_down(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.shutdown();
        }
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            driver.shutdown();
        }
    }

    /// Makes core `index` the poller (D1 and D2). Its worker holds the driver, and must call
    /// [`end_role`](Self::end_role) after its sleep.
    #[cfg(feature = "net")]
    pub(super) fn take_role(&self, index: usize) {
        self.role.take(index);
        self.watch_deadlines();
    }

    /// Makes core `index` the poller (D1 and D2), in a pool without a driver. Returns false if
    /// another core is; otherwise the worker must call [`end_role`](Self::end_role) after its
    /// sleep.
    #[must_use]
    pub(super) fn try_take_role(&self, index: usize) -> bool {
        let taken = self.role.try_take(index);
        if taken {
            self.watch_deadlines();
        }
        taken
    }

    /// Gives the poller's role up.
    pub(super) fn end_role(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.watch_until(0);
        }
        self.role.end();
    }

    /// Makes the timers notify the poller of every new deadline, until it has decided how long to
    /// sleep.
    fn watch_deadlines(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.watch_until(u64::MAX);
        }
    }

    /// Fires the timers that are due: in the wheel of core `index`, in that of threads without a
    /// core, and in those of cores that are late.
    #[cfg(feature = "time")]
    fn fire(&self, index: usize) {
        let Some(timers) = self.timers() else { return };
        if timers.next_of_all().is_none() {
            return;
        }
        let now = timers.clock().now_ns();
        for wheel in 0..=timers.outside() {
            let grace = if wheel == index || wheel == timers.outside() { 0 } else { GRACE_NS };
            if timers.next(wheel).is_some_and(|next| next.saturating_add(grace) <= now) {
                timers.fire(wheel, now);
            }
        }
    }
}

/// Waits for events and returns their number.
///
/// # Panics
/// If the system call fails, because nothing that waits for events could go on.
#[cfg(feature = "net")]
pub(super) fn wait_for_events(turn: &mut TurnGuard<'_>, timeout: Option<Duration>) -> usize {
    match turn.wait(timeout) {
        Ok(events) => events,
        Err(error) => panic!(
            "unexpected error when polling the I/O driver: {error} (was a descriptor closed that \
             is the runtime's?)"
        ),
    }
}

#[cfg(feature = "time")]
pub(super) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The reason why a core polls the driver and fires timers.
pub(crate) enum Maintenance<'a> {
    /// Between two tasks: it is time to, or there is no task to run.
    BetweenTasks,
    /// The core has a new thread, and no thread has done its maintenance meanwhile. The task that
    /// is woken last runs next, and does not wait behind those that may have cost the last thread
    /// its core.
    NewThread,
    /// A timer has ended the sleep of the core.
    TimerDue,
    /// Events have ended the sleep of the core, and have not been dispatched yet.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "without a driver none come"))]
    Events(DriverTurn<'a>),
}

/// Polls the driver and fires timers, or dispatches the events that ended a sleep. This thread
/// holds core `index` and is awake; tasks that become runnable go to that core.
pub(crate) fn maintain(pool: &Pool, index: usize, maintenance: Maintenance<'_>) {
    if !matches!(maintenance, Maintenance::NewThread) {
        held_core::with_core(|core| core.begin_batch());
    }
    #[cfg(feature = "net")]
    if let Some(driver) = pool.drivers.driver() {
        let events = match maintenance {
            Maintenance::Events(mut turn) => turn.dispatch(),
            // Also if a timer ended the sleep, because a timer that is always due must not starve
            // events.
            _ => driver.try_lock().map_or(0, |mut turn| {
                let events = wait_for_events(&mut turn, Some(Duration::ZERO));
                if events > 0 { turn.dispatch() } else { 0 }
            }),
        };
        if held_core::holds_core_of(pool) {
            held_core::with_core(|core| core.expects_events = events > 0);
        }
    }
    #[cfg(not(feature = "net"))]
    let _ = maintenance;
    #[cfg(feature = "time")]
    pool.drivers.fire(index);
    let _ = index;
    // User wakers ran, and may have handed the core off.
    if held_core::holds_core_of(pool) {
        held_core::with_core(|core| core.end_batch());
    }
}

/// The index of the poller, plus one; zero if none is.
struct PollerRole(AtomicUsize);

impl PollerRole {
    fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes the role (D1 and D2), in a pool without a driver. Returns false if another worker has
    /// it.
    fn try_take(&self, index: usize) -> bool {
        // Acquire: what the last poller did is visible. Pairs with the Release in `end`.
        if self.0.compare_exchange(0, index + 1, Acquire, Relaxed).is_err() {
            return false;
        }
        self.fence();
        true
    }

    /// Takes the role (D1 and D2), for the worker that holds the driver.
    #[cfg(feature = "net")]
    fn take(&self, index: usize) {
        // Relaxed: the fence orders it.
        self.0.store(index + 1, Relaxed);
        self.fence();
    }

    fn fence(&self) {
        if !weakened!("poller_fence") {
            // SeqCst: D2. Pairs with A2 in `to_alarm`.
            fence(SeqCst);
        }
    }

    fn end(&self) {
        // Release: pairs with `try_take`.
        self.0.store(0, Release);
    }

    /// Returns the worker that must be unparked for an earlier deadline (A2 and A3).
    #[cfg_attr(not(feature = "time"), allow(dead_code, reason = "timers alarm"))]
    fn to_alarm(&self) -> Option<usize> {
        // SeqCst: A2. Pairs with D2 in `fence`.
        fence(SeqCst);
        self.holder()
    }

    fn holder(&self) -> Option<usize> {
        // Relaxed: ordered by the fence before, where that matters.
        self.0.load(Relaxed).checked_sub(1)
    }
}

impl Pool {
    /// Leaves a token for core `index`, and wakes its thread wherever it sleeps.
    #[inline]
    pub(crate) fn unpark(&self, index: usize) {
        self.remotes[index].parker.unpark_or(|| self.drivers.wake());
    }

    /// Wakes the workers that sleep for a wheel, not the caller's own, that got an earlier
    /// deadline.
    #[cfg(feature = "time")]
    pub(crate) fn alarm(&self, wheel: usize) {
        if weakened!("poller_alarm") {
            return;
        }
        if wheel < self.remotes.len() {
            // The wheel's own core sleeps for it, if it sleeps.
            self.unpark(wheel);
        }
        if let Some(index) = self.drivers.role.to_alarm() {
            self.unpark(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PollerRole;
    use crate::engine::prim::{
        Arc, AtomicBool, Ordering::Relaxed, model, parker::Parker, thread, weakened,
    };

    #[test]
    fn an_earlier_timer_is_slept_for() {
        model(|| {
            let shared = Arc::new((PollerRole::new(), Parker::new(), AtomicBool::new(false)));
            let armer = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the fences order it, as they do a wheel's next deadline.
                    shared.2.store(true, Relaxed);
                    if let Some(_poller) =
                        shared.0.to_alarm().filter(|_| !weakened!("poller_alarm"))
                    {
                        shared.1.unpark();
                    }
                }
            });
            assert!(shared.0.try_take(0));
            // Without a time-out: a deadline that is not seen is a deadlock in this model.
            while !shared.2.load(Relaxed) {
                shared.1.park();
            }
            shared.0.end();
            armer.join().unwrap();
        });
    }
}
