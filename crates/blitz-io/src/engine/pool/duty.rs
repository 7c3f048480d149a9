//! What a pool looks after beside its tasks: the driver and the timers.
//!
//! # Who sleeps for what
//! A core that sleeps does so until its own wheel is due. One of the sleepers is *on
//! duty*: it sleeps in the driver, where there is one, until an event comes, and for the
//! wheel of the threads without a core; and for those of cores that are awake but late,
//! since they may be stuck in a poll. Any worker may be on duty: the first that falls
//! asleep while nobody is. One that is awake looks at its wheel, and into the driver if
//! nobody is there, whenever its coarse clock says so.
//!
//! Who is on duty and has something to do leaves the duty before it does it, and whoever
//! falls asleep next takes it. While nobody has it somebody is awake, who looks by its
//! clock and takes the duty before it sleeps. If that one gets stuck in a poll while all
//! others sleep, nobody looks until it is through, as in Tokio; `idle` spares who is on
//! duty when it wakes one for work, which makes this rare.
//!
//! # Who is spared
//! One who sleeps in the driver is woken by every event, also by those that a task next door
//! has just caused, whose worker would have found them a moment later. Two tasks that send
//! each other messages then change cores with each. So who is woken for events and finds all
//! others idle, several times in a row, does not take the duty again while somebody is
//! awake, but sleeps for [`BRIEF`] and then looks whether that one has looked. If so, it goes
//! on; if not, that one is stuck, and the duty is taken. The last who falls asleep sees that
//! all do (W1 of `idle`), and is not spared. Nor is anybody where events come to the thread
//! that waited for them last (io_uring).
//!
//! # Protocol
//! ```text
//! who falls asleep                        who arms a timer that is not its core's
//! D1 takes the duty: writes its name      A1 publishes the wheel's next deadline
//! D2 fence(SeqCst)                        A2 fence(SeqCst)
//! D3 reads the deadlines, and sleeps      A3 reads the name, and unparks whom it finds
//!    until the first of them
//! ```
//! One fence comes first: D3 sees the deadline, or A3 the name. Who is unparked and has
//! nothing to do begins again at D2.
//!
//! # Rejected
//! For a worker that leaves the duty and gets stuck while all others sleep. It cannot say so
//! itself, and whoever is to find out needs a clock, which those who sleep for ever have not:
//! - To call another one whenever the duty is left: 10 to 14 µs of the caller's time for each
//!   event, before it can run the task that the event is for. To do so once in some
//!   milliseconds spares a busy pool, but not one in which events are rare, where each
//!   would pay.
//! - That all sleepers have a time-out as long as nobody is on duty: those who fell asleep
//!   while somebody was would not know, unless they always had one, and an idle pool is to
//!   make no system calls.
//! - That two wait in the driver at once: the kernel gives the second every event that comes
//!   while the first runs tasks, so each is told on another core than its task was on.
//! - That the deputy sleeps by a timer of the kernel's, which who leaves the duty sets, once in
//!   some milliseconds. It is the only one that costs next to nothing. But it is a second place
//!   to sleep in, other than a futex, and it helps events alone: what lies in the queue of
//!   the worker that is stuck would still wait. A thread that watches for such workers, set
//!   by the same timer, hands their core on, and with it the queue, the wheel and this duty.
//!
//! # Checked by
//! `an_earlier_timer_is_slept_for`, `an_event_is_told_whoever_sleeps_in_the_driver`,
//! `the_last_who_falls_asleep_sees_that_all_do`; weakened as `duty_fence`, `duty_alarm`,
//! `duty_is_taken`, `idle_counts_in_one_step`.

use std::time::Duration;

use super::{Pool, core::Core, current};
#[cfg(feature = "net")]
use crate::engine::driver::{Driver, Role, postponed::Which};
#[cfg(feature = "time")]
use crate::engine::prim::Arc;
use crate::engine::prim::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
    pad::CachePadded,
    parker::Parker,
    weakened,
};
#[cfg(feature = "time")]
use crate::engine::wheel::{GRACE_NS, Seat, Timers};

/// How long a core sleeps that could not tell whether somebody is on duty, which is rare; or
/// that leaves it to somebody who may get stuck: events wait for so long then, and its
/// processor pays a wake-up for each.
#[cfg(feature = "net")]
const BRIEF: Duration = Duration::from_millis(1);

/// Events in a row that found everybody idle, after which who was on duty for them is spared.
const NEEDLESS: u64 = 4;

/// Whether it was of use that a core was on duty. See 'Who is spared'.
#[derive(Debug, Default)]
pub(crate) struct Usefulness(AtomicU64);

impl Usefulness {
    /// Events have ended its sleep. Only for who holds the core.
    #[cfg(any(test, feature = "net"))]
    pub(crate) fn learn(&self, others_are_idle: bool) {
        // Relaxed: one writer, and nobody else reads it.
        let needless = if others_are_idle { self.0.load(Relaxed) + 1 } else { 0 };
        // Relaxed: as above.
        self.0.store(needless, Relaxed);
    }

    /// Whether others would have been in time as well. Only for who holds the core.
    pub(crate) fn is_doubtful(&self) -> bool {
        // Relaxed: as above.
        self.0.load(Relaxed) >= NEEDLESS
    }
}

/// How often a core that is awake looks for events: a look that finds none costs 0.2 µs,
/// so this is half a percent.
#[cfg(feature = "net")]
const LOOK_NS: u64 = 50_000;

/// See the module.
pub(crate) struct Duties {
    #[cfg(feature = "net")]
    driver: Option<std::sync::Arc<Driver>>,
    #[cfg(feature = "time")]
    timers: Option<Seated>,
    /// Apart: beside it is what every worker reads.
    on_duty: CachePadded<OnDuty>,
}

/// Timers, with a seat for each core and one for who has none.
#[cfg(feature = "time")]
struct Seated {
    timers: Arc<Timers>,
    seats: Box<[Arc<Seat>]>,
}

impl Duties {
    /// Nothing to look after.
    pub(crate) fn none() -> Self {
        Self {
            #[cfg(feature = "net")]
            driver: None,
            #[cfg(feature = "time")]
            timers: None,
            on_duty: CachePadded::new(OnDuty::new()),
        }
    }

    #[cfg(feature = "net")]
    pub(crate) fn with_driver(mut self, driver: std::sync::Arc<Driver>) -> Self {
        self.driver = Some(driver);
        self
    }

    #[cfg(feature = "time")]
    pub(crate) fn with_timers(mut self, timers: Arc<Timers>) -> Self {
        let seats = Timers::seats(&timers);
        self.timers = Some(Seated { timers, seats });
        self
    }

    #[cfg(feature = "net")]
    pub(crate) fn driver(&self) -> Option<&std::sync::Arc<Driver>> {
        self.driver.as_ref()
    }

    #[cfg(feature = "time")]
    pub(crate) fn timers(&self) -> Option<&Arc<Timers>> {
        self.timers.as_ref().map(|seated| &seated.timers)
    }

    /// The seat of a core, or of who has none.
    #[cfg(feature = "time")]
    #[inline]
    pub(crate) fn seat(&self, core: Option<usize>) -> Option<&Arc<Seat>> {
        let Seated { timers, seats } = self.timers.as_ref()?;
        Some(&seats[core.unwrap_or_else(|| timers.outside())])
    }

    pub(crate) fn has_timers(&self) -> bool {
        #[cfg(feature = "time")]
        return self.timers.is_some();
        #[cfg(not(feature = "time"))]
        false
    }

    /// Who is on duty, if anybody is.
    pub(crate) fn on_duty(&self) -> Option<usize> {
        self.on_duty.name()
    }

    /// Whether events that come to one who sleeps could be left to one who is awake.
    #[cfg(feature = "net")]
    pub(crate) fn can_be_left(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.tells_anybody())
    }

    /// How often somebody has looked for events.
    pub(crate) fn looks(&self) -> u64 {
        #[cfg(feature = "net")]
        return self.driver.as_ref().map_or(0, |driver| driver.turn_count());
        #[cfg(not(feature = "net"))]
        0
    }

    /// Wakes who sleeps in the driver.
    pub(crate) fn wake(&self) {
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            driver.wake();
        }
    }

    /// Whether a core that is awake, and looked so long ago, has to look.
    #[inline]
    pub(crate) fn are_due(&self, index: usize, since_look_ns: u64) -> bool {
        #[cfg(feature = "net")]
        if self.driver.is_some() && since_look_ns >= LOOK_NS {
            return true;
        }
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            let next = earlier(timers.next(index), timers.next(timers.outside()));
            return next.is_some_and(|next| next <= timers.clock().now_ns());
        }
        let _ = (index, since_look_ns);
        false
    }

    /// The end: who waits for an event or a time is told that neither comes.
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

    /// Sleeps once, as the core `index`: until a token comes, or there is something to
    /// look after. `spared`: somebody else is about to look for events.
    pub(crate) fn rest(&self, parker: &Parker, index: usize, spared: bool) -> Rest<'_> {
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            if spared {
                return self.rest_briefly(parker, index);
            }
            return match driver.try_hold() {
                Some(role) if !weakened!("duty_is_taken") => self.rest_in(role, parker, index),
                Some(_) => self.rest_outside(parker, index, false),
                None if self.on_duty.name().is_some() => self.rest_outside(parker, index, false),
                None => self.rest_briefly(parker, index),
            };
        }
        let _ = spared;
        if !self.has_timers() {
            parker.park();
            return Rest::Called;
        }
        if !self.on_duty.try_begin(index) {
            return self.rest_outside(parker, index, false);
        }
        self.watch();
        let rest = self.rest_outside(parker, index, true);
        self.end_duty();
        rest
    }

    /// Somebody who is awake looks into the driver just now, or is about to, so nobody is on
    /// duty, and that one may get stuck before it is: not for long.
    #[cfg(feature = "net")]
    #[cold]
    fn rest_briefly(&self, parker: &Parker, index: usize) -> Rest<'_> {
        match self.left(index, false) {
            Left::Nothing => return Rest::Due,
            Left::Some(left) if left < BRIEF => return self.rest_outside(parker, index, false),
            _ => parker.park_timeout(BRIEF),
        };
        Rest::Called
    }

    /// In the driver, and on duty.
    #[cfg(feature = "net")]
    fn rest_in<'a>(&'a self, mut role: Role<'a>, parker: &Parker, index: usize) -> Rest<'a> {
        self.on_duty.begin(index);
        self.watch();
        let left = self.left(index, true);
        if left == Left::Nothing || !parker.leave() {
            self.end_duty();
            return if left == Left::Nothing { Rest::Due } else { Rest::Called };
        }
        let timeout = match left {
            // Where time stands still only an event or a call ends this.
            Left::Endless | Left::Paused => None,
            Left::Some(left) => Some(left),
            Left::Nothing | Left::Movable => Some(Duration::ZERO),
        };
        let mut events = look(&mut role, timeout);
        if left == Left::Movable && events == 0 && !self.advance() {
            events = look(&mut role, None);
        }
        let called = parker.come_back();
        self.end_duty();
        if events > 0 {
            Rest::Events(role)
        } else if called {
            Rest::Called
        } else {
            Rest::Due
        }
    }

    /// On a parker, on duty or not.
    fn rest_outside(&self, parker: &Parker, index: usize, on_duty: bool) -> Rest<'_> {
        match self.left(index, on_duty) {
            Left::Some(left) if parker.park_timeout(left) => Rest::Called,
            Left::Some(_) | Left::Nothing => Rest::Due,
            Left::Movable if parker.try_take() => Rest::Called,
            Left::Movable if self.advance() => Rest::Due,
            Left::Endless | Left::Paused | Left::Movable => {
                parker.park();
                Rest::Called
            }
        }
    }

    /// Who is on duty wants to know of all timers, until it has decided how long to sleep.
    fn watch(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.watch_until(u64::MAX);
        }
    }

    fn end_duty(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.watch_until(0);
        }
        self.on_duty.end();
    }

    /// How long the core may sleep.
    #[cfg(feature = "time")]
    fn left(&self, index: usize, on_duty: bool) -> Left {
        let Some(timers) = self.timers() else { return Left::Endless };
        let mut until = timers.next(index);
        if on_duty {
            until = earlier(until, timers.next(timers.outside()));
            let others = (0..timers.outside()).filter(|&other| other != index);
            let late = others.filter_map(|other| timers.next(other)).min();
            until = earlier(until, late.map(|late| late.saturating_add(GRACE_NS)));
            timers.watch_until(until.unwrap_or(u64::MAX));
        }
        let Some(until) = until else { return Left::Endless };
        if timers.clock().is_paused() {
            let due = until <= timers.clock().now_ns();
            return match self.may_advance() {
                _ if due => Left::Nothing,
                true => Left::Movable,
                false => Left::Paused,
            };
        }
        match until.checked_sub(timers.clock().now_ns()) {
            None | Some(0) => Left::Nothing,
            Some(left) => Left::Some(Duration::from_nanos(left)),
        }
    }

    #[cfg(not(feature = "time"))]
    fn left(&self, _index: usize, _on_duty: bool) -> Left {
        Left::Endless
    }

    /// Whether a clock that stands still may be moved. Whoever forbade it wakes whom it
    /// concerns before it allows it again: so this is asked first, and for a token then.
    #[cfg(feature = "test-util")]
    fn may_advance(&self) -> bool {
        self.timers().is_some_and(|timers| timers.clock().can_auto_advance())
    }

    #[cfg(all(feature = "time", not(feature = "test-util")))]
    fn may_advance(&self) -> bool {
        false
    }

    /// Moves a clock that stands still to the next deadline, if it may be moved; `true` if
    /// somebody was woken.
    #[cfg(feature = "test-util")]
    fn advance(&self) -> bool {
        self.timers().is_some_and(|timers| timers.auto_advance() > 0)
    }

    #[cfg(not(feature = "test-util"))]
    fn advance(&self) -> bool {
        false
    }

    /// Fires what is due: the wheels of core `index` and of nobody, and those of cores
    /// that are late.
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

/// Waits for events; answers with how many there are.
///
/// # Panics
/// If the system refuses to tell: nothing that waits for it could go on.
#[cfg(feature = "net")]
fn look(role: &mut Role<'_>, timeout: Option<Duration>) -> usize {
    match role.wait(timeout) {
        Ok(events) => events,
        Err(error) => panic!(
            "unexpected error when polling the I/O driver: {error} (was a descriptor closed that \
             is the runtime's?)"
        ),
    }
}

/// How the sleep of a core ended.
#[must_use]
pub(crate) enum Rest<'a> {
    /// By a token, or for no reason.
    Called,
    /// A timer is due.
    Due,
    /// Events came, which have not been looked at.
    #[cfg(feature = "net")]
    Events(Role<'a>),
    #[cfg(not(feature = "net"))]
    #[allow(dead_code, reason = "keeps the lifetime in use")]
    Never(std::convert::Infallible, std::marker::PhantomData<&'a ()>),
}

/// How long a core may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "time"), allow(dead_code, reason = "without timers it is endless"))]
enum Left {
    Endless,
    Some(Duration),
    /// Something is due.
    Nothing,
    /// Until somebody moves the clock.
    Paused,
    /// Until the clock is moved, which we may do if there is nothing else to do.
    Movable,
}

#[cfg(feature = "time")]
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Why a core looks after driver and timers.
pub(crate) enum Look<'a> {
    /// It is time to, between two tasks.
    Between,
    /// The core has a new thread, and nobody has looked for it meanwhile: what was woken last
    /// runs next, and does not stand behind those that may have cost the last thread its core.
    First,
    /// There is nothing else to do; what was postponed is taken back, unless events come.
    WhenIdle,
    /// It has slept, and that is how it ended.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "without events it says nothing"))]
    After(Rest<'a>),
}

/// Whether a core that has nothing to run looks for events before it searches: if some came
/// lately, or reads were postponed until some do. What it finds is its own already, and a
/// look costs less than a search.
#[inline]
pub(crate) fn looks_first(core: &Core) -> bool {
    core.events_come || has_postponed(&core.pool, core.index)
}

/// Whether core `index` has postponed reads: then it does not sleep before it has looked.
#[inline]
pub(crate) fn has_postponed(pool: &Pool, index: usize) -> bool {
    #[cfg(feature = "net")]
    return pool.duties.driver().is_some_and(|driver| driver.has_postponed(index));
    #[cfg(not(feature = "net"))]
    {
        let _ = (pool, index);
        false
    }
}

/// Looks after driver and timers, or does what `rest` came back for. This thread holds core
/// `index` and is awake; what becomes runnable goes to that core.
pub(crate) fn attend(pool: &Pool, index: usize, why: Look<'_>) {
    if !matches!(why, Look::First) {
        current::with_core(|core| core.begin_batch());
    }
    #[cfg(feature = "net")]
    if let Some(driver) = pool.duties.driver() {
        let is_last = matches!(why, Look::WhenIdle);
        let events = match why {
            Look::After(Rest::Events(mut role)) => role.tell(),
            // Also if a timer ended the sleep: one that is always due must not shut out
            // events.
            _ => driver.try_hold().map_or(0, |mut role| {
                let events = look(&mut role, Some(Duration::ZERO));
                if events > 0 { role.tell() } else { 0 }
            }),
        };
        if current::holds_core_of(pool) {
            current::with_core(|core| core.events_come = events > 0);
        }
        if is_last && events == 0 {
            driver.take_back(index, Which::All);
        } else if current::holds_core_of(pool) && current::with_core(Core::begins_round) {
            driver.take_back(index, Which::Old);
        }
    }
    #[cfg(not(feature = "net"))]
    let _ = why;
    #[cfg(feature = "time")]
    pool.duties.fire(index);
    let _ = index;
    // Users' wakers ran, and may have given the core away.
    if current::holds_core_of(pool) {
        current::with_core(|core| core.end_batch());
    }
}

/// Who is on duty. See the module.
struct OnDuty(AtomicUsize);

impl OnDuty {
    fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// D1 and D2, where nothing else decides who it is; `false` if somebody is.
    fn try_begin(&self, index: usize) -> bool {
        // Acquire: what the last one did is done. Pairs with the Release in `end`.
        if self.0.compare_exchange(0, index + 1, Acquire, Relaxed).is_err() {
            return false;
        }
        self.fence();
        true
    }

    /// D1 and D2, for who holds the driver.
    #[cfg(feature = "net")]
    fn begin(&self, index: usize) {
        // Relaxed: the fence orders it.
        self.0.store(index + 1, Relaxed);
        self.fence();
    }

    fn fence(&self) {
        if !weakened!("duty_fence") {
            // SeqCst: D2. Pairs with A2 in `to_alarm`.
            fence(SeqCst);
        }
    }

    fn end(&self) {
        // Release: pairs with `try_begin`.
        self.0.store(0, Release);
    }

    /// A2 and A3: who has to be unparked.
    #[cfg_attr(not(feature = "time"), allow(dead_code, reason = "timers alarm"))]
    fn to_alarm(&self) -> Option<usize> {
        // SeqCst: A2. Pairs with D2 in `fence`.
        fence(SeqCst);
        self.name()
    }

    fn name(&self) -> Option<usize> {
        // Relaxed: ordered by the fence before, where that matters.
        self.0.load(Relaxed).checked_sub(1)
    }
}

impl Pool {
    /// Leaves a token for core `index`, and wakes it wherever it sleeps.
    #[inline]
    pub(crate) fn unpark(&self, index: usize) {
        self.remotes[index].parker.unpark_or(|| self.duties.wake());
    }

    /// A wheel that is not the caller's own got an earlier deadline.
    #[cfg(feature = "time")]
    pub(crate) fn alarm(&self, wheel: usize) {
        if weakened!("duty_alarm") {
            return;
        }
        if wheel < self.remotes.len() {
            // Its own core sleeps for it, if it sleeps.
            self.unpark(wheel);
        }
        if let Some(index) = self.duties.on_duty.to_alarm() {
            self.unpark(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OnDuty;
    #[cfg(not(blitz_loom))]
    use super::Usefulness;
    use crate::engine::prim::{
        Arc, AtomicBool, Ordering::Relaxed, model, parker::Parker, thread, weakened,
    };

    #[cfg(not(blitz_loom))]
    #[test]
    fn who_was_needless_several_times_in_a_row_is_spared() {
        let duty = Usefulness::default();
        for others_are_idle in [true, true, true, false, true, true, true] {
            duty.learn(others_are_idle);
            assert!(!duty.is_doubtful());
        }
        duty.learn(true);
        assert!(duty.is_doubtful());
        duty.learn(false);
        assert!(!duty.is_doubtful(), "it was of use");
    }

    #[test]
    fn an_earlier_timer_is_slept_for() {
        model(|| {
            let shared = Arc::new((OnDuty::new(), Parker::new(), AtomicBool::new(false)));
            let armer = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the fences order it, as they do a wheel's next deadline.
                    shared.2.store(true, Relaxed);
                    if let Some(_who) = shared.0.to_alarm().filter(|_| !weakened!("duty_alarm")) {
                        shared.1.unpark();
                    }
                }
            });
            assert!(shared.0.try_begin(0));
            // Without a time-out: a deadline that is not seen is a deadlock here.
            while !shared.2.load(Relaxed) {
                shared.1.park();
            }
            shared.0.end();
            armer.join().unwrap();
        });
    }
}

#[cfg(all(test, blitz_loom, feature = "net"))]
mod models {
    use super::{Driver, Duties, Rest};
    use crate::engine::prim::{
        Arc, AtomicBool,
        Ordering::{Acquire, Release},
        model,
        parker::Parker,
        thread,
    };

    /// Two workers that have nothing to do but to wait for one event.
    struct Workers {
        duties: Duties,
        parkers: [Parker; 2],
        told: AtomicBool,
    }

    impl Workers {
        fn unpark(&self, index: usize) {
            self.parkers[index].unpark_or(|| self.duties.wake());
        }

        /// Rests until the event was told, by this one or the other.
        fn work(&self, index: usize) {
            // Acquire: pairs with the Release below.
            while !self.told.load(Acquire) {
                let rest = self.duties.rest(&self.parkers[index], index, false);
                if let Rest::Events(mut role) = rest {
                    role.tell();
                    // Release: pairs with the Acquire above.
                    self.told.store(true, Release);
                    drop(role);
                    self.unpark(1 - index);
                }
            }
        }
    }

    /// Worker 0 is called away, once, from wherever it sleeps: before the event, while it is
    /// on its way, or after. If both slept on their parkers, this were a deadlock.
    #[test]
    fn an_event_is_told_whoever_sleeps_in_the_driver() {
        model(|| {
            let driver = Driver::of_a_model();
            let registration = driver.registered(0, 0);
            let workers = Arc::new(Workers {
                duties: Duties::none().with_driver(driver.clone()),
                parkers: [Parker::new(), Parker::new()],
                told: AtomicBool::new(false),
            });
            let other = thread::spawn({
                let workers = workers.clone();
                move || workers.work(1)
            });
            let world = thread::spawn({
                let workers = workers.clone();
                move || {
                    workers.unpark(0);
                    driver.kernel().set(0, libc::POLLIN);
                }
            });
            workers.work(0);
            other.join().unwrap();
            world.join().unwrap();
            drop(registration);
        });
    }
}
