//! Timers: futures that wait for a time, and when their wheels must be advanced.
//!
//! There is one wheel for each core and one for threads that hold no core, each behind a lock of
//! its own. A [`Timer`] is part of the future that waits. It is armed in the wheel of the core that
//! polls it, remembers which one that was, and is found there by the thread that cancels or moves
//! it. No operation locks anything but that one wheel.
//!
//! - [`slots`]: the wheel.
//! - [`timer_entry`]: a node in it.
//! - [`timer`]: the owner's side.
//! - [`clock`]: the current time.
//!
//! # Protocol
//! Arming, cancelling, firing and shutting down change a wheel under its lock. A timer fires once:
//! it belongs to the thread that takes it out of the wheel under the lock, which is either its
//! owner's thread or the one that fires. Wakers are called and dropped after the lock was released,
//! in wake lists; if a list is full, or many entries must be moved to other slots, the lock is
//! released and taken again.
//!
//! The time at which a wheel must be advanced is read without the lock: `next` of each wheel, which
//! is written under it. It is not later than the first deadline, except by up to a granule where
//! many entries share a slot (see [`slots`]), and it may be earlier: cancelling a timer does not
//! change it, unless that was the last one.
//!
//! A thread that arms a timer in the wheel of the core that it holds checks that wheel itself
//! before it sleeps. No thread does so for the wheel of threads without a core, hence the alarm:
//!
//! ```text
//! a thread without a core arms              a thread sleeps for that wheel
//! I1 stores an earlier `next`, unlocks      S1 records that where the alarm reads it
//! I2 fence(SeqCst)                          S2 fence(SeqCst)
//! I3 calls the alarm, which wakes the       S3 reads `next`, and sleeps until then
//!    thread that S1 has recorded
//! ```
//! One of I2 and S2 comes first. If I2, S3 reads what I1 stored; if S2, I3 finds the sleeper.
//!
//! One thread also watches the wheels of cores that are late, for example because they are stuck in
//! a poll. It records until when it sleeps, and a timer that would wait longer than the grace
//! period wakes it. That is advice, without a fence.
//!
//! # Invariants
//! - A timer that is in a wheel is in the one that `Timer::wheel` names, among the timers of its
//!   `TimersRef`.
//! - `next` of a wheel changes only under its lock.
//! - Once a wheel was shut down, nothing is inserted into it.
//!
//! # Rejected
//! - One wheel for all cores: timeouts of two workers would contend for one lock, which is where
//!   Tokio loses half of its speed from one worker to two.
//! - Cancelling by a mark, to be swept when the time comes: an entry would have to outlive its
//!   future, so each would be an allocation.
//! - Keeping `next` exact at each cancellation: most timers are cancelled, and one needless check
//!   of a wheel costs less than the sum of the searches.
//!
//! # Checked by
//! `fire_against_cancel_wakes_or_forgets`, `a_new_waker_against_fire_is_woken`,
//! `a_timer_armed_from_outside_wakes_the_sleeper`, `arm_against_shutdown_ends`,
//! `a_timer_that_moves_to_another_wheel_fires_once`, `reset_against_fire_is_not_lost`,
//! `a_full_wake_list_against_a_cancellation_fires_the_rest`,
//! `two_threads_that_fire_wake_each_once_and_see_the_rest`, `fire_against_shutdown_wakes_once`,
//! `a_timer_that_is_over_against_fire_wakes_once`,
//! `a_timer_that_is_over_against_shutdown_wakes_once`, `a_timer_armed_against_fire_is_checked`,
//! `a_timer_armed_against_a_cancellation_is_checked`; weakened as `wheel_alarm_fence`,
//! `wheel_alarm_called`, `wheel_publishes_next`, `wheel_fire_publishes_the_rest`,
//! `wheel_fire_publishes_under_the_lock`, `wheel_remove_publishes_under_the_lock`, `wheel_ends`,
//! `timer_renew_checks_again`, `timer_moves_its_waker`, `timer_fire_now_takes_out`,
//! `timer_fire_now_wakes`.

mod clock;
mod timer_entry;
mod slots;
mod timer;

use std::{fmt, ops::Deref, pin::Pin, task::Waker};

#[cfg(feature = "test-util")]
pub(crate) use self::clock::any_was_paused;
pub(crate) use self::{
    clock::Clock,
    timer::{Timer, TimerShutdown},
};
use self::{
    slots::{Inserted, LATEST_NS, Progress, WheelSlots},
    timer_entry::TimerEntry,
};
use super::{
    prim::{
        Arc, AtomicU64, OnceLock,
        Ordering::{Relaxed, SeqCst},
        fence,
        pad::CachePadded,
        store_lock::StoreLock,
        weakened,
    },
    wait::wake_list::WakeList,
};

/// The value of `next` in a wheel that is empty.
const NEVER: u64 = u64::MAX;

/// A callback for a wheel that must be advanced earlier than before; receives the wheel's index.
pub(crate) type Alarm = Box<dyn Fn(usize) + Send + Sync>;

/// All timers of a runtime.
pub(crate) struct Timers {
    clock: Clock,
    /// One wheel for each core, then the one for threads without a core.
    wheels: Box<[CachePadded<Wheel>]>,
    alarm: OnceLock<Alarm>,
    /// The time until which the thread sleeps that watches the wheels of late cores, or 0 if no
    /// thread does. It is on a cache line of its own, because it is read whenever a wheel has a new
    /// first timer.
    watched_until: CachePadded<AtomicU64>,
}

/// The time by which a core that is awake may be late with its wheel before another thread fires
/// its timers: well above the time between two checks by the core, and well below what a user would
/// call stuck. It is also the shortest interval at which the thread that watches a busy core wakes
/// up for nothing.
pub(crate) const GRACE_NS: u64 = 5_000_000;

struct Wheel {
    /// The time at which it must be advanced; [`NEVER`] if it is empty.
    next: AtomicU64,
    slots: StoreLock<WheelSlots>,
}

/// A core's share in the [`Timers`]. A [`Timer`] counts its reference here, not in one word for all
/// cores, because two cores that count in one word would contend for its cache line with each timer
/// they create.
pub(crate) struct TimersRef(CachePadded<Arc<Timers>>);

impl Deref for TimersRef {
    type Target = Timers;

    #[inline]
    fn deref(&self) -> &Timers {
        &self.0
    }
}

impl Timers {
    /// Creates the timers of a runtime with `cores` cores.
    pub(crate) fn new(cores: usize, clock: Clock) -> Arc<Self> {
        let wheel =
            || Wheel { next: AtomicU64::new(NEVER), slots: StoreLock::new(WheelSlots::new()) };
        Arc::new(Self {
            clock,
            wheels: (0..=cores).map(|_| CachePadded::new(wheel())).collect(),
            alarm: OnceLock::new(),
            watched_until: CachePadded::new(AtomicU64::new(0)),
        })
    }

    /// Returns a reference for each wheel, in their order.
    pub(crate) fn refs(timers: &Arc<Self>) -> Box<[Arc<TimersRef>]> {
        let new_ref = || Arc::new(TimersRef(CachePadded::new(timers.clone())));
        timers.wheels.iter().map(|_| new_ref()).collect()
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the index of the wheel of threads that hold no core.
    #[inline]
    pub(crate) fn outside(&self) -> usize {
        self.wheels.len() - 1
    }

    /// Sets the callback for when the wheel of threads without a core must be advanced earlier. It
    /// is called outside of locks, on any thread, after a fence (I3). It must be set once, before
    /// there are timers.
    pub(crate) fn set_alarm(&self, alarm: Alarm) {
        assert!(self.alarm.set(alarm).is_ok(), "timers have one alarm");
    }

    /// Returns when a wheel must be advanced, in nanoseconds of the clock, or `None` if it is
    /// empty.
    #[inline]
    pub(crate) fn next(&self, wheel: usize) -> Option<u64> {
        // Relaxed: a time; a thread that sleeps until then has fenced (S2), and one that fires
        // locks.
        let next = self.wheels[wheel].next.load(Relaxed);
        (next != NEVER).then_some(next)
    }

    /// Returns when the first of all wheels must be advanced.
    pub(crate) fn next_of_all(&self) -> Option<u64> {
        (0..self.wheels.len()).filter_map(|wheel| self.next(wheel)).min()
    }

    /// Wakes what is due in a wheel, outside of its lock, and returns how many timers fired.
    #[inline]
    pub(crate) fn fire(&self, wheel: usize, now_ns: u64) -> usize {
        match self.next(wheel) {
            Some(next) if next <= now_ns => self.turn(wheel, now_ns),
            _ => 0,
        }
    }

    /// Wakes what is due in all wheels, and returns how many timers fired.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn fire_all(&self, now_ns: u64) -> usize {
        (0..self.wheels.len()).map(|wheel| self.fire(wheel, now_ns)).sum()
    }

    fn turn(&self, wheel: usize, now_ns: u64) -> usize {
        let exact = self.clock.is_paused();
        self.serve(wheel, |slots, wake_list| slots.advance(now_ns, exact, wake_list))
    }

    /// Ends all timers, and takes no new ones.
    pub(crate) fn shutdown(&self) {
        for wheel in 0..self.wheels.len() {
            self.serve(wheel, WheelSlots::end);
        }
    }

    /// Repeats `step` under the wheel's lock until it is done, waking after each; returns how many
    /// entries left the wheel.
    fn serve(
        &self,
        wheel: usize,
        mut step: impl FnMut(&mut WheelSlots, &mut WakeList) -> Progress,
    ) -> usize {
        let exact = self.clock.is_paused();
        let wheel = &self.wheels[wheel];
        let (mut wake_list, mut served) = (WakeList::new(), 0);
        loop {
            let mut slots = wheel.slots.lock();
            let before = slots.len();
            let progress = step(&mut slots, &mut wake_list);
            served += before - slots.len();
            let rest = slots
                .next_expiration(exact)
                .filter(|_| !weakened!("wheel_fire_publishes_the_rest"));
            let slots = (!weakened!("wheel_fire_publishes_under_the_lock")).then_some(slots);
            // Relaxed: a thread that must know of it is ordered by the lock, or reads it again
            // before it sleeps.
            wheel.next.store(rest.unwrap_or(NEVER), Relaxed);
            drop(slots);
            wake_list.wake_all();
            if progress == Progress::Done {
                return served;
            }
        }
    }

    /// Inserts an entry that has a waker into a wheel. `own` means that the wheel is that of the
    /// core which the calling thread holds, so that no other thread has to be notified.
    ///
    /// # Safety
    /// 1. The caller owns the entry, it is OUT, and has a waker.
    /// 2. The caller calls `remove` for this wheel before the entry ends, unless the entry has
    ///    left.
    unsafe fn insert(
        &self,
        wheel: usize,
        own: bool,
        entry: Pin<&TimerEntry>,
        deadline_ns: u64,
    ) -> Inserted {
        let at = &self.wheels[wheel];
        let mut slots = at.slots.lock();
        // SAFETY: 1. our caller owns the entry, which is OUT and has a waker. 2. It removes the
        // entry from this wheel before the entry ends.
        let inserted = unsafe { slots.insert(entry, deadline_ns) };
        let deadline_ns = deadline_ns.min(LATEST_NS);
        // Relaxed: `next` changes only under the lock.
        let earlier = inserted == Inserted::Waits && deadline_ns < at.next.load(Relaxed);
        if earlier && !weakened!("wheel_publishes_next") {
            // Relaxed: I1; the fence of `raise_alarm` orders it before the alarm.
            at.next.store(deadline_ns, Relaxed);
        }
        drop(slots);
        if earlier && !own {
            self.raise_alarm(wheel);
        } else if earlier && self.is_unwatched(deadline_ns) {
            self.raise_alarm(self.outside());
        }
        inserted
    }

    /// Records until when the thread sleeps that watches late wheels, or 0 if no thread does.
    pub(crate) fn watch_until(&self, until_ns: u64) {
        // Relaxed: advice. If a thread that arms a timer just misses it, its own core fires the
        // timer, unless that core gets stuck; then the timer waits until another thread checks.
        self.watched_until.store(until_ns, Relaxed);
    }

    /// Returns whether the thread that watches late wheels would come too late, if the core of a
    /// wheel with this first timer got stuck.
    #[inline]
    fn is_unwatched(&self, deadline_ns: u64) -> bool {
        // Relaxed: advice.
        self.watched_until.load(Relaxed) > deadline_ns.saturating_add(GRACE_NS)
    }

    /// Wakes the thread that sleeps for this wheel (I2 and I3).
    #[cold]
    fn raise_alarm(&self, wheel: usize) {
        if !weakened!("wheel_alarm_fence") {
            // SeqCst: orders I1 before the alarm's check for sleepers. Pairs with the fence of the
            // thread that sleeps, S2.
            fence(SeqCst);
        }
        if let Some(alarm) = self.alarm.get().filter(|_| !weakened!("wheel_alarm_called")) {
            alarm(wheel);
        }
    }

    /// Removes an entry from a wheel, and returns its waker, or `None` if it has left before.
    ///
    /// # Safety
    /// 1. The caller owns the entry. 2. If the entry is in a wheel, it is in this one.
    unsafe fn remove(&self, wheel: usize, entry: Pin<&TimerEntry>) -> Option<Waker> {
        let wheel = &self.wheels[wheel];
        let mut slots = wheel.slots.lock();
        // SAFETY: 1. our caller owns the entry. 2. No wheel but this one has it.
        let waker = unsafe { slots.remove(entry) };
        let is_empty = slots.is_empty();
        let slots = (!weakened!("wheel_remove_publishes_under_the_lock")).then_some(slots);
        if is_empty {
            // Relaxed: it only spares an idle runtime a needless wake-up.
            wheel.next.store(NEVER, Relaxed);
        }
        drop(slots);
        waker
    }

    /// Gives an entry another waker, as [`WheelSlots::renew`] does, and returns the one to be
    /// dropped.
    ///
    /// # Safety
    /// 1. The caller owns the entry. 2. If the entry is in a wheel, it is in this one.
    unsafe fn renew(&self, wheel: usize, entry: Pin<&TimerEntry>, waker: Waker) -> Option<Waker> {
        // SAFETY: 1. our caller owns the entry. 2. No wheel but this one has it.
        unsafe { self.wheels[wheel].slots.lock().renew(entry, waker) }
    }
}

#[cfg(feature = "test-util")]
impl Timers {
    /// Advances a paused clock, if that is allowed, to the first timer, fires it and returns how
    /// many were woken. The runtime calls this when there is nothing else to do, before it sleeps.
    pub(crate) fn auto_advance(&self) -> usize {
        if !self.clock.can_auto_advance() {
            return 0;
        }
        let exactly = |wheel: &CachePadded<Wheel>| {
            let slots = wheel.slots.lock();
            let next = slots.next_expiration(true).unwrap_or(NEVER);
            // Relaxed: ordered by the lock, as in `serve`. A timer that was cancelled may have left
            // an earlier time.
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

impl fmt::Debug for TimersRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimersRef").finish()
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
