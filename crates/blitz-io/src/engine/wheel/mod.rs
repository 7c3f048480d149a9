//! Timers: who waits for which time, and when somebody must look.
//!
//! One wheel for each core and one for threads that hold none, each behind a lock of its
//! own. A [`Timer`] is part of the future that waits. It is armed in the wheel of the core
//! that polls it, remembers which one that was, and is found there by whoever cancels it or
//! moves it, on any thread. Nothing is ever locked but that one wheel.
//!
//! - [`slots`]: the wheel. - [`entry`]: what lies in it. - [`timer`]: the owner's side.
//! - [`clock`]: what time it is.
//!
//! # Protocol
//! Arm, cancel, fire and shut down change a wheel under its lock. A timer fires once: who
//! takes it out of the wheel under the lock, the owner or who fires, has it. Wakers are
//! called and dropped after the lock was let go, in batches, and a batch that is full or
//! many entries to be put again mean letting go and coming back.
//!
//! When to look is read without the lock: `next` of each wheel, which is written under it.
//! It is never later than the first deadline (see [`slots`] for what a crowded tick may
//! add), and it may be earlier: a timer that is cancelled leaves it alone, unless it was
//! the last one.
//!
//! Who arms a timer in the wheel of the core that it holds looks at that wheel itself
//! before it sleeps. Nobody does so for threads without a core, hence the alarm:
//!
//! ```text
//! who arms, without a core                  who sleeps for that wheel
//! I1 stores an earlier `next`, unlocks      S1 says so where the alarm looks
//! I2 fence(SeqCst)                          S2 fence(SeqCst)
//! I3 calls the alarm, which wakes whoever   S3 reads `next`, and sleeps until then
//!    has said that it sleeps
//! ```
//! One of I2 and S2 comes first. If I2, S3 reads what I1 stored; if S2, I3 finds the
//! sleeper.
//!
//! Somebody also looks after the wheels of cores that are late, stuck in a poll say. It
//! says until when it sleeps, and a timer that would wait longer than the grace calls it.
//! That is advice, without a fence.
//!
//! # Invariants
//! - A timer that is in a wheel is in that of `Timer::wheel`, of the timers of its seat.
//! - `next` of a wheel changes only under its lock.
//! - Once a wheel was shut down, nothing is put into it.
//!
//! # Rejected
//! - One wheel for all: timeouts of two workers would wait for one lock, which is where
//!   Tokio loses half of its speed from one worker to two.
//! - Cancelling by a mark, to be swept when its time comes: an entry would have to outlive
//!   its future, so each would be an allocation.
//! - Keeping `next` exact at each cancellation: most timers are cancelled, and a look in
//!   vain costs less than the sum of the searches.
//!
//! # Checked by
//! `fire_against_cancel_wakes_or_forgets`, `a_new_waker_against_fire_is_woken`,
//! `a_timer_armed_from_outside_wakes_the_sleeper`, `arm_against_shutdown_ends`,
//! `a_timer_that_moves_to_another_wheel_fires_once`, `reset_against_fire_is_not_lost`,
//! `a_full_batch_against_a_cancellation_fires_the_rest`,
//! `two_who_fire_wake_each_once_and_see_the_rest`, `fire_against_shutdown_wakes_once`,
//! `a_timer_that_is_over_against_fire_wakes_once`,
//! `a_timer_that_is_over_against_shutdown_wakes_once`,
//! `a_timer_armed_against_fire_is_looked_at`,
//! `a_timer_armed_against_a_cancellation_is_looked_at`; weakened as `wheel_alarm_fence`,
//! `wheel_alarm_rings`, `wheel_publishes_next`, `wheel_fire_publishes_the_rest`,
//! `wheel_fire_publishes_under_the_lock`, `wheel_remove_publishes_under_the_lock`,
//! `wheel_ends`, `timer_renew_looks_again`, `timer_moves_its_waker`,
//! `timer_fire_now_takes_out`, `timer_fire_now_wakes`.

mod clock;
mod entry;
mod slots;
mod timer;

use std::{fmt, ops::Deref, pin::Pin, task::Waker};

#[cfg(feature = "test-util")]
pub(crate) use self::clock::any_was_paused;
pub(crate) use self::{
    clock::Clock,
    timer::{Ended, Timer},
};
use self::{
    entry::Entry,
    slots::{Inserted, LATEST_NS, Progress, Slots},
};
use super::{
    prim::{
        Arc, AtomicU64, OnceLock,
        Ordering::{Relaxed, SeqCst},
        bolt::Bolted,
        fence,
        pad::CachePadded,
        weakened,
    },
    wait::batch::Batch,
};

/// `next` of a wheel that is empty.
const NEVER: u64 = u64::MAX;

/// Called with the number of a wheel that must be looked at earlier than before.
pub(crate) type Alarm = Box<dyn Fn(usize) + Send + Sync>;

/// All timers of a runtime.
pub(crate) struct Timers {
    clock: Clock,
    /// One for each core, then the one for threads without a core.
    wheels: Box<[CachePadded<Wheel>]>,
    alarm: OnceLock<Alarm>,
    /// Until when the one sleeps who looks after wheels whose cores are late; 0 if nobody
    /// does. On a line of its own: it is read whenever a wheel has a new first timer.
    watched_until: CachePadded<AtomicU64>,
}

/// How late a core that is awake may be with its wheel before another one fires its timers:
/// well above what a core needs between two looks, well below what a user would call stuck.
/// It is also how often who watches a busy core wakes up for nothing, at the most.
pub(crate) const GRACE_NS: u64 = 5_000_000;

struct Wheel {
    /// When it must be looked at; [`NEVER`] if it is empty.
    next: AtomicU64,
    slots: Bolted<Slots>,
}

/// A share in the timers, one for each core: who keeps one is counted there. Two cores that
/// count in one word would wait for each other's cache line, for each timer they make.
pub(crate) struct Seat(CachePadded<Arc<Timers>>);

impl Deref for Seat {
    type Target = Timers;

    #[inline]
    fn deref(&self) -> &Timers {
        &self.0
    }
}

impl Timers {
    /// Timers for so many cores.
    pub(crate) fn new(cores: usize, clock: Clock) -> Arc<Self> {
        let wheel = || Wheel { next: AtomicU64::new(NEVER), slots: Bolted::new(Slots::new()) };
        Arc::new(Self {
            clock,
            wheels: (0..=cores).map(|_| CachePadded::new(wheel())).collect(),
            alarm: OnceLock::new(),
            watched_until: CachePadded::new(AtomicU64::new(0)),
        })
    }

    /// A seat for each wheel, in their order.
    pub(crate) fn seats(timers: &Arc<Self>) -> Box<[Arc<Seat>]> {
        let seat = || Arc::new(Seat(CachePadded::new(timers.clone())));
        timers.wheels.iter().map(|_| seat()).collect()
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The wheel of threads that hold no core.
    #[inline]
    pub(crate) fn outside(&self) -> usize {
        self.wheels.len() - 1
    }

    /// Who is told when the wheel of threads without a core must be looked at earlier. It
    /// is called outside of locks, on any thread, after a fence (I3). It is set once,
    /// before there are timers.
    pub(crate) fn set_alarm(&self, alarm: Alarm) {
        assert!(self.alarm.set(alarm).is_ok(), "timers have one alarm");
    }

    /// When a wheel must be looked at, in nanoseconds of the clock; `None`: it is empty.
    #[inline]
    pub(crate) fn next(&self, wheel: usize) -> Option<u64> {
        // Relaxed: a time; whoever sleeps by it has fenced (S2), and who looks locks.
        let next = self.wheels[wheel].next.load(Relaxed);
        (next != NEVER).then_some(next)
    }

    /// The same of all wheels together.
    pub(crate) fn next_of_all(&self) -> Option<u64> {
        (0..self.wheels.len()).filter_map(|wheel| self.next(wheel)).min()
    }

    /// Wakes what is due in a wheel, outside of its lock; answers how many.
    #[inline]
    pub(crate) fn fire(&self, wheel: usize, now_ns: u64) -> usize {
        match self.next(wheel) {
            Some(next) if next <= now_ns => self.turn(wheel, now_ns),
            _ => 0,
        }
    }

    /// The same in all wheels.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn fire_all(&self, now_ns: u64) -> usize {
        (0..self.wheels.len()).map(|wheel| self.fire(wheel, now_ns)).sum()
    }

    fn turn(&self, wheel: usize, now_ns: u64) -> usize {
        let exact = self.clock.is_paused();
        self.serve(wheel, |slots, batch| slots.advance(now_ns, exact, batch))
    }

    /// All timers end, and none is taken any more.
    pub(crate) fn shutdown(&self) {
        for wheel in 0..self.wheels.len() {
            self.serve(wheel, Slots::end);
        }
    }

    /// Batch by batch; answers how many were woken.
    fn serve(
        &self,
        wheel: usize,
        mut step: impl FnMut(&mut Slots, &mut Batch) -> Progress,
    ) -> usize {
        let exact = self.clock.is_paused();
        let wheel = &self.wheels[wheel];
        let (mut batch, mut served) = (Batch::new(), 0);
        loop {
            let mut slots = wheel.slots.lock();
            let before = slots.len();
            let progress = step(&mut slots, &mut batch);
            served += before - slots.len();
            let rest = slots.look_at(exact).filter(|_| !weakened!("wheel_fire_publishes_the_rest"));
            let slots = (!weakened!("wheel_fire_publishes_under_the_lock")).then_some(slots);
            // Relaxed: whoever has to know of it was fenced off by the lock, or reads it again
            // before it sleeps.
            wheel.next.store(rest.unwrap_or(NEVER), Relaxed);
            drop(slots);
            batch.wake_all();
            if progress == Progress::Done {
                return served;
            }
        }
    }

    /// Puts an entry that has a waker into a wheel. `own`: it is that of the core which the
    /// calling thread holds, so nobody else has to know.
    ///
    /// # Safety
    /// 1. The caller owns the entry, it is OUT, and has a waker.
    /// 2. It calls `remove` for this wheel before the entry ends, unless that has left.
    unsafe fn insert(
        &self,
        wheel: usize,
        own: bool,
        entry: Pin<&Entry>,
        deadline_ns: u64,
    ) -> Inserted {
        let at = &self.wheels[wheel];
        let mut slots = at.slots.lock();
        // SAFETY: 1. and 2. are the caller's.
        let inserted = unsafe { slots.insert(entry, deadline_ns) };
        let deadline_ns = deadline_ns.min(LATEST_NS);
        // Relaxed: `next` changes under the lock only.
        let earlier = inserted == Inserted::Waits && deadline_ns < at.next.load(Relaxed);
        if earlier && !weakened!("wheel_publishes_next") {
            // Relaxed: I1; the fence of `ring` orders it before the alarm.
            at.next.store(deadline_ns, Relaxed);
        }
        drop(slots);
        if earlier && !own {
            self.ring(wheel);
        } else if earlier && self.is_unwatched(deadline_ns) {
            self.ring(self.outside());
        }
        inserted
    }

    /// Until when somebody sleeps who looks after late wheels; 0: nobody does.
    pub(crate) fn watch_until(&self, until_ns: u64) {
        // Relaxed: advice. One who has just missed it arms in vain: its own core fires the
        // timer, unless that gets stuck, and then until somebody else looks.
        self.watched_until.store(until_ns, Relaxed);
    }

    /// Whether somebody sleeps who would come too late if the core of a wheel with this
    /// first timer got stuck.
    #[inline]
    fn is_unwatched(&self, deadline_ns: u64) -> bool {
        // Relaxed: advice.
        self.watched_until.load(Relaxed) > deadline_ns.saturating_add(GRACE_NS)
    }

    /// I2 and I3.
    #[cold]
    fn ring(&self, wheel: usize) {
        if !weakened!("wheel_alarm_fence") {
            // SeqCst: orders I1 before the look of the alarm. Pairs with the fence of who
            // sleeps, S2.
            fence(SeqCst);
        }
        if let Some(alarm) = self.alarm.get().filter(|_| !weakened!("wheel_alarm_rings")) {
            alarm(wheel);
        }
    }

    /// Takes an entry out of a wheel, with its waker; `None` if it has left before.
    ///
    /// # Safety
    /// 1. The caller owns the entry. 2. If it is in a wheel, then in this one.
    unsafe fn remove(&self, wheel: usize, entry: Pin<&Entry>) -> Option<Waker> {
        let wheel = &self.wheels[wheel];
        let mut slots = wheel.slots.lock();
        // SAFETY: 1. and 2. are the caller's.
        let waker = unsafe { slots.remove(entry) };
        let is_empty = slots.is_empty();
        let slots = (!weakened!("wheel_remove_publishes_under_the_lock")).then_some(slots);
        if is_empty {
            // Relaxed: an idle runtime has nothing to wake up for; that is all.
            wheel.next.store(NEVER, Relaxed);
        }
        drop(slots);
        waker
    }

    /// Gives an entry another waker; see [`Slots::renew`].
    ///
    /// # Safety
    /// 1. The caller owns the entry. 2. If it is in a wheel, then in this one.
    unsafe fn renew(&self, wheel: usize, entry: Pin<&Entry>, waker: Waker) -> Option<Waker> {
        // SAFETY: 1. and 2. are the caller's.
        unsafe { self.wheels[wheel].slots.lock().renew(entry, waker) }
    }
}

#[cfg(feature = "test-util")]
impl Timers {
    /// If the time stands still, and may be moved: moves it to the first timer and fires
    /// that. Answers how many were woken. The runtime calls it when there is nothing else to
    /// do, before it sleeps.
    pub(crate) fn auto_advance(&self) -> usize {
        if !self.clock.can_auto_advance() {
            return 0;
        }
        let exactly = |wheel: &CachePadded<Wheel>| {
            let slots = wheel.slots.lock();
            let next = slots.look_at(true).unwrap_or(NEVER);
            // Relaxed: as in `serve`. What was cancelled may have left an earlier one.
            wheel.next.store(next, Relaxed);
            next
        };
        let first = self.wheels.iter().map(exactly).min().unwrap_or(NEVER);
        if first == NEVER {
            return 0;
        }
        self.clock.advance_to(first);
        self.fire_all(self.clock.now_ns())
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("clock", &self.clock)
            .field("next_ns", &self.next_of_all())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seat").finish()
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
