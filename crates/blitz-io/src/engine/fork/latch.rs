//! Tells one waiting thread that something has ended, though the latch may vanish at once.
//!
//! # Protocol
//! ```text
//!         who waits                    who sets
//! UNSET   --> ASLEEP, then parks       --> SET
//! ASLEEP  --> UNSET, awake again       --> SET, and must unpark
//! SET     (returns, the frame goes)
//! ```
//! A latch lies in the frame of the one who waits, which ends when it has seen `SET`. So
//! the swap to `SET` is the last touch of whoever sets: what it needs to unpark the other
//! it must have *before* (`set` takes a pointer, and its answer is that duty). All
//! transitions are read-modify-writes of one word, so no fence is needed: either the
//! setter finds `ASLEEP`, or the sleeper finds `SET` and does not park. A token of a
//! parker outlives both.
//!
//! Unset is every value but two, so that one who puts a latch where others may set it can keep
//! a number in it until then ([`Latch::with`]): a join keeps the place of its job there,
//! and need not look at two words when it comes back. The number is gone once the waiting thread
//! has slept.
//!
//! [`Countdown`] is set by the last of many. It counts how many have yet to end; who brings
//! that to zero sets the latch, and nobody waits for the count itself.
//!
//! # Checked by
//! `a_set_latch_wakes_who_waits`, `what_was_done_before_set_is_seen`,
//! `a_frame_goes_once_its_latch_is_set`, `the_last_of_a_countdown_sets`,
//! `a_countdown_that_grows_meanwhile_waits_for_all`; weakened as `latch_set_release`,
//! `latch_set_duty`, `latch_last_touch`, `countdown_release`, `countdown_early`.

use std::time::{Duration, Instant};

use super::registry::AbortOnUnwind;
use crate::engine::{
    pool::{
        crowd,
        handoff::{Blocked, is_worker},
    },
    prim::{
        AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
        parker::Parker,
        spin_loop, thread, weakened,
    },
};

const UNSET: u64 = 0;
const ASLEEP: u64 = u64::MAX - 1;
const SET: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct Latch(AtomicU64);

impl Latch {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self::with(UNSET)
    }

    /// A latch that keeps a number for as long as nobody sets it or sleeps. The two highest
    /// numbers are taken.
    #[inline(always)]
    pub(crate) fn with(number: u64) -> Self {
        debug_assert!(number < ASLEEP);
        Self(AtomicU64::new(number))
    }

    /// Whether it was set.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Acquire: what was done before `set`. Pairs with the swap there.
        self.0.load(Acquire) == SET
    }

    /// The number, if the latch is not set. For the waiting thread, before it has slept.
    #[inline(always)]
    pub(crate) fn number(&self) -> Option<u64> {
        // Relaxed: nothing is read for its sake. That it is set is asked by `is_set`.
        let number = self.0.load(Relaxed);
        debug_assert_ne!(number, UNSET, "it was kept, and nobody has slept");
        (number < ASLEEP).then_some(number)
    }

    /// The waiting thread is about to park; `false` if the latch is set.
    #[must_use]
    pub(crate) fn fall_asleep(&self) -> bool {
        // AcqRel, and Acquire on failure: if it is set, what was done before. Pairs with
        // the swap in `set`.
        let fell = self.0.fetch_update(AcqRel, Acquire, |word| (word != SET).then_some(ASLEEP));
        fell.is_ok()
    }

    /// The waiting thread parks no more.
    pub(crate) fn wake_up(&self) {
        // AcqRel, and Acquire on failure: as in `fall_asleep`.
        let _ = self.0.compare_exchange(ASLEEP, UNSET, AcqRel, Acquire);
    }

    /// Sets it; `true` if the waiting thread must be unparked.
    ///
    /// # Safety
    /// 1. The latch is there when this is called. It may be gone when this returns.
    #[must_use = "who waits must be unparked"]
    pub(crate) unsafe fn set(this: *const Self) -> bool {
        let order = if weakened!("latch_set_release") { Relaxed } else { AcqRel };
        // SAFETY: 1.
        let word = unsafe { &(*this).0 };
        // AcqRel: shows what was done before. Pairs with the Acquire in `is_set`.
        let was = word.swap(SET, order);
        debug_assert_ne!(was, SET, "a latch is set once");
        was == ASLEEP && !weakened!("latch_set_duty")
    }
}

/// Whom a latch belongs to; cheap to clone, and good for as long as the clone lives.
pub(crate) trait Waiter: Clone {
    /// Leaves a token.
    fn unpark(&self);
}

impl Waiter for std::sync::Arc<Parker> {
    fn unpark(&self) {
        Parker::unpark(self);
    }
}

/// Pauses before a thread lets others run: three to four microseconds, which a small
/// closure takes.
const PAUSES: u32 = if cfg!(blitz_loom) { 0 } else { 90 };

/// How long it lets others run between two looks, before it parks: about what a park and a
/// wake-up take in a virtual machine, so that waiting in vain at most doubles the price. A
/// worker that was called and given this processor begins meanwhile.
const YIELDS: Duration = Duration::from_micros(if cfg!(blitz_loom) { 0 } else { 20 });

/// Waits until the latch is set, for a moment awake and then parked. A worker of a runtime
/// gives its core away before it parks.
pub(crate) fn block(latch: &Latch, parker: &Parker) {
    for _ in 0..PAUSES {
        if latch.is_set() {
            return;
        }
        spin_loop();
    }
    let start = Instant::now();
    // Others may have long turns: a thread on which tasks wait does not ask for those.
    while start.elapsed() < YIELDS && (!is_worker() || crowd::has_room()) {
        if latch.is_set() {
            return;
        }
        thread::yield_now();
    }
    // The latch is in a frame that must not go before it is set.
    let abort = AbortOnUnwind("a bug in the runtime");
    // Only now: most closures end sooner than another thread could take a core over.
    let blocked = Blocked::if_worker();
    while !latch.is_set() {
        if latch.fall_asleep() {
            parker.park();
            latch.wake_up();
        }
    }
    drop(blocked);
    std::mem::forget(abort);
}

/// A latch for the end of many.
#[derive(Debug)]
pub(crate) struct Countdown<W> {
    left: AtomicUsize,
    latch: Latch,
    waiter: W,
}

impl<W: Waiter> Countdown<W> {
    /// `left` have yet to end.
    pub(crate) fn new(left: usize, waiter: W) -> Self {
        Self { left: AtomicUsize::new(left), latch: Latch::new(), waiter }
    }

    /// What is set at the end.
    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Who waits for that.
    pub(crate) fn waiter(&self) -> &W {
        &self.waiter
    }

    /// One more has yet to end. The caller is one of those, so there is no zero to miss.
    pub(crate) fn add(&self, count: usize) {
        // Relaxed: the caller counts until it has ended itself.
        let before = self.left.fetch_add(count, Relaxed);
        debug_assert!(before > 0, "who adds to a countdown is part of it");
        assert!(before <= usize::MAX / 2, "too many jobs in one scope: wait for some");
    }

    /// One has ended.
    ///
    /// # Safety
    /// 1. The countdown is there when this is called, and the caller one of those that it
    ///    counts. It may be gone when this returns.
    pub(crate) unsafe fn end_one(this: *const Self) {
        let order = if weakened!("countdown_release") { Relaxed } else { AcqRel };
        // SAFETY: 1.
        let left = unsafe { &(*this).left };
        // AcqRel: the last one sees what all others did, and shows it by its `set`.
        if left.fetch_sub(1, order) != if weakened!("countdown_early") { 2 } else { 1 } {
            return;
        }
        // SAFETY: 1. nobody leaves before the latch is set, and only we set it.
        let waiter = unsafe { (*this).waiter.clone() };
        // SAFETY: as above, and this is the last touch.
        if unsafe { Latch::set(&raw const (*this).latch) } {
            waiter.unpark();
        }
    }
}

#[cfg(test)]
mod models {
    use std::sync::Arc as StdArc;

    use super::{Countdown, Latch, block};
    use crate::engine::prim::{
        Arc, AtomicUsize, Ordering::Relaxed, UnsafeCell, model, parker::Parker, thread, weakened,
    };

    /// A latch with a value that was made before it is set.
    struct Frame {
        latch: Latch,
        value: UnsafeCell<u32>,
    }

    // SAFETY: the value is written before the latch is set and read after; the model looks.
    unsafe impl Sync for Frame {}

    impl Frame {
        fn new() -> Self {
            Self { latch: Latch::new(), value: UnsafeCell::new(0) }
        }
    }

    #[test]
    fn a_set_latch_wakes_who_waits() {
        model(|| {
            let shared = Arc::new((Latch::new(), StdArc::new(Parker::new())));
            let setter = thread::spawn({
                let shared = shared.clone();
                move || {
                    // SAFETY: 1. both threads hold it.
                    if unsafe { Latch::set(&raw const shared.0) } {
                        shared.1.unpark();
                    }
                }
            });
            block(&shared.0, &shared.1);
            setter.join().unwrap();
        });
    }

    #[test]
    fn what_was_done_before_set_is_seen() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let frame = Arc::new(Frame::new());
            let setter = thread::spawn({
                let (frame, parker) = (frame.clone(), parker.clone());
                move || {
                    // SAFETY: nobody reads before the latch is set.
                    frame.value.with_mut(|value| unsafe { *value = 7 });
                    // SAFETY: 1. both threads hold it.
                    if unsafe { Latch::set(&raw const frame.latch) } {
                        parker.unpark();
                    }
                }
            });
            block(&frame.latch, &parker);
            // SAFETY: the latch is set.
            frame.value.with(|value| assert_eq!(unsafe { *value }, 7));
            setter.join().unwrap();
        });
    }

    /// The frame is a cell that its owner takes back after the wait: a touch of the setter
    /// after `set` would be a race, which the model finds.
    #[test]
    fn a_frame_goes_once_its_latch_is_set() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let frame = Arc::new(Frame::new());
            let setter = thread::spawn({
                let (frame, parker) = (frame.clone(), parker.clone());
                move || {
                    let touch = || {
                        // SAFETY: read before the latch is set.
                        frame.value.with(|value| unsafe { *value })
                    };
                    let first = touch();
                    // SAFETY: 1. both threads hold it.
                    let duty = unsafe { Latch::set(&raw const frame.latch) };
                    if weakened!("latch_last_touch") {
                        assert_eq!(touch(), first);
                    }
                    if duty {
                        parker.unpark();
                    }
                }
            });
            block(&frame.latch, &parker);
            // SAFETY: the latch is set, so nobody else touches the frame.
            frame.value.with_mut(|value| unsafe { *value = 9 });
            setter.join().unwrap();
        });
    }

    #[test]
    fn the_last_of_a_countdown_sets() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let shared = Arc::new((Countdown::new(2, parker.clone()), Frame::new()));
            let ends = [1, 2].map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if number == 1 {
                        // SAFETY: nobody else touches it until the latch is set.
                        shared.1.value.with_mut(|value| unsafe { *value = 5 });
                    }
                    // SAFETY: 1. all threads hold it, and each is one of the two.
                    unsafe { Countdown::end_one(&raw const shared.0) };
                })
            });
            block(shared.0.latch(), &parker);
            // SAFETY: both have ended.
            shared.1.value.with(|value| assert_eq!(unsafe { *value }, 5));
            for end in ends {
                end.join().unwrap();
            }
        });
    }

    #[test]
    fn a_countdown_that_grows_meanwhile_waits_for_all() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let shared = Arc::new((Countdown::new(2, parker.clone()), AtomicUsize::new(0)));
            let first = thread::spawn({
                let shared = shared.clone();
                move || {
                    // As a job that spawns another one into its scope.
                    shared.0.add(1);
                    let second = thread::spawn({
                        let shared = shared.clone();
                        move || {
                            // Relaxed: the countdown orders it.
                            shared.1.fetch_add(1, Relaxed);
                            // SAFETY: 1. counted by `add`.
                            unsafe { Countdown::end_one(&raw const shared.0) };
                        }
                    });
                    shared.1.fetch_add(1, Relaxed);
                    // SAFETY: 1. one of the two that were counted at first.
                    unsafe { Countdown::end_one(&raw const shared.0) };
                    second.join().unwrap();
                }
            });
            // SAFETY: 1. the other one: the body of the scope.
            unsafe { Countdown::end_one(&raw const shared.0) };
            block(shared.0.latch(), &parker);
            assert_eq!(shared.1.load(Relaxed), 2);
            first.join().unwrap();
        });
    }
}
