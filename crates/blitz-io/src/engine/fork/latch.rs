//! A flag that notifies one waiting thread that something has ended, though the latch may vanish at
//! that moment.
//!
//! # Protocol
//! ```text
//!         the waiting thread           the setting thread
//! UNSET   --> ASLEEP, then parks       --> SET
//! ASLEEP  --> UNSET, awake again       --> SET, and must unpark
//! SET     (returns, the frame goes)
//! ```
//! A latch lies in the frame of the waiting thread, which may leave that frame as soon as it has
//! seen `SET`. So the swap to `SET` must be the last touch by the setting thread: what it needs to
//! unpark the other thread it must have read *before* (`set` takes a pointer, and returns whether
//! the caller must unpark). All transitions are read-modify-writes of one word, so no fence is
//! needed: either the setter finds `ASLEEP`, or the sleeper finds `SET` and does not park. The
//! token of a parker outlives both.
//!
//! Every value but two means unset, so that the thread that creates a latch can keep a number in it
//! until the latch is set ([`Latch::with`]): a join keeps the index of its job there, so that it
//! reads one word instead of two when it comes back. The number is gone once the waiting thread has
//! slept.
//!
//! [`Countdown`] is a latch that the last of many jobs sets. It counts the jobs that have yet to
//! end; the one that lowers the count to zero sets the latch, and no thread waits for the count
//! itself.
//!
//! # Checked by
//! `a_set_latch_wakes_the_waiting_thread`, `writes_before_set_are_seen`,
//! `a_frame_goes_once_its_latch_is_set`, `the_last_of_a_countdown_sets`,
//! `a_countdown_that_grows_meanwhile_waits_for_all`; weakened as `latch_set_release`,
//! `latch_set_duty`, `latch_last_touch`, `countdown_release`, `countdown_early`.

use std::time::{Duration, Instant};

use super::registry::AbortIfPanic;
use crate::engine::{
    pool::awake,
    preempt::handoff::{Blocked, is_worker},
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

/// A flag that is set once, and for which one thread waits.
#[derive(Debug)]
pub(crate) struct Latch(AtomicU64);

impl Latch {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self::with(UNSET)
    }

    /// Creates a latch that keeps a number until it is set or the waiting thread sleeps. The two
    /// highest numbers are reserved.
    #[inline(always)]
    pub(crate) fn with(number: u64) -> Self {
        debug_assert!(number < ASLEEP);
        Self(AtomicU64::new(number))
    }

    /// Returns whether the latch is set.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Acquire: sees what was done before `set`. Pairs with the swap there.
        self.0.load(Acquire) == SET
    }

    /// Returns the number, unless the latch is set. Only for the waiting thread, before it has
    /// slept.
    #[inline(always)]
    pub(crate) fn number(&self) -> Option<u64> {
        // Relaxed: no other memory is read because of it. `is_set` is the method that synchronizes.
        let number = self.0.load(Relaxed);
        debug_assert_ne!(number, UNSET, "a number was kept, and the waiting thread has not slept");
        (number < ASLEEP).then_some(number)
    }

    /// Records that the waiting thread is about to park. Returns `false` if the latch is set.
    #[must_use]
    pub(crate) fn fall_asleep(&self) -> bool {
        // AcqRel, and Acquire on failure: if it is set, sees what was done before. Pairs with the
        // swap in `set`.
        let fell = self.0.fetch_update(AcqRel, Acquire, |word| (word != SET).then_some(ASLEEP));
        fell.is_ok()
    }

    /// Records that the waiting thread no longer parks.
    pub(crate) fn wake_up(&self) {
        // AcqRel, and Acquire on failure: if it is set, sees what was done before. Pairs with the
        // swap in `set`.
        let _ = self.0.compare_exchange(ASLEEP, UNSET, AcqRel, Acquire);
    }

    /// Sets the latch. Returns `true` if the caller must unpark the waiting thread.
    ///
    /// # Safety
    /// 1. The latch exists when this is called. It may be gone when this returns.
    #[must_use = "the waiting thread must be unparked"]
    pub(crate) unsafe fn set(this: *const Self) -> bool {
        let order = if weakened!("latch_set_release") { Relaxed } else { AcqRel };
        // SAFETY: 1. the caller says that the latch exists, and the reference is not used after the
        // swap.
        let word = unsafe { &(*this).0 };
        // AcqRel: publishes what was done before. Pairs with the Acquire in `is_set`.
        let was = word.swap(SET, order);
        debug_assert_ne!(was, SET, "a latch is set once");
        was == ASLEEP && !weakened!("latch_set_duty")
    }
}

/// A handle to the thread that waits for a latch; cheap to clone, and valid for as long as the
/// clone lives.
pub(crate) trait Unpark: Clone {
    /// Wakes the thread, by leaving a token for its parker.
    fn unpark(&self);
}

impl Unpark for std::sync::Arc<Parker> {
    fn unpark(&self) {
        Parker::unpark(self);
    }
}

/// The number of pauses before a waiting thread yields its processor: three to four microseconds,
/// which a small closure takes.
const PAUSES: u32 = if cfg!(blitz_loom) { 0 } else { 90 };

/// How long a waiting thread yields between checks before it parks: about the time of a park and a
/// wake-up in a virtual machine, so that waiting in vain at most doubles the price. A worker that
/// was woken and given this processor begins meanwhile.
const YIELDS: Duration = Duration::from_micros(if cfg!(blitz_loom) { 0 } else { 20 });

/// Waits until the latch is set, awake at first and then parked. A worker of a runtime hands off
/// its core before it parks.
pub(crate) fn block(latch: &Latch, parker: &Parker) {
    for _ in 0..PAUSES {
        if latch.is_set() {
            return;
        }
        spin_loop();
    }
    let start = Instant::now();
    // Other threads may run long once they have the processor, so a thread on which tasks wait does
    // not yield to them.
    while start.elapsed() < YIELDS && (!is_worker() || awake::has_room()) {
        if latch.is_set() {
            return;
        }
        thread::yield_now();
    }
    // The latch lies in a frame that must not be left before it is set.
    let abort = AbortIfPanic("a bug in the runtime");
    // The core is handed off only now, because most closures end sooner than another thread could
    // take a core over.
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

/// A latch that is set when the last of many jobs has ended.
#[derive(Debug)]
pub(crate) struct Countdown<W> {
    remaining: AtomicUsize,
    latch: Latch,
    waiter: W,
}

impl<W: Unpark> Countdown<W> {
    /// Creates a countdown for `remaining` jobs that have yet to end.
    pub(crate) fn new(remaining: usize, waiter: W) -> Self {
        Self { remaining: AtomicUsize::new(remaining), latch: Latch::new(), waiter }
    }

    /// Returns the latch that the last job sets.
    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Returns the handle of the thread that waits for the latch.
    pub(crate) fn waiter(&self) -> &W {
        &self.waiter
    }

    /// Adds `count` jobs that have yet to end. The caller is itself one of those counted, so the
    /// count cannot be zero before.
    pub(crate) fn add(&self, count: usize) {
        // Relaxed: the caller is counted until it has ended itself.
        let before = self.remaining.fetch_add(count, Relaxed);
        debug_assert!(before > 0, "the caller must be one of the jobs that are counted");
        assert!(before <= usize::MAX / 2, "too many jobs in one scope: wait for some");
    }

    /// Records that one job has ended; the last one sets the latch.
    ///
    /// # Safety
    /// 1. The countdown exists when this is called, and the caller is one of those that it counts.
    ///    It may be gone when this returns.
    pub(crate) unsafe fn end_one(this: *const Self) {
        let order = if weakened!("countdown_release") { Relaxed } else { AcqRel };
        // SAFETY: 1. the countdown exists, because the caller is still counted, and the reference
        // is not used after the subtraction.
        let remaining = unsafe { &(*this).remaining };
        // AcqRel: the last one sees what all others did, and publishes it by its `set`.
        if remaining.fetch_sub(1, order) != if weakened!("countdown_early") { 2 } else { 1 } {
            return;
        }
        // SAFETY: 1. the waiting thread does not leave before the latch is set, and only we set it.
        let waiter = unsafe { (*this).waiter.clone() };
        // SAFETY: 1. the latch exists, because only this call sets it. It is the last touch.
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

    /// A latch, with a value that is written before the latch is set.
    struct LatchFrame {
        latch: Latch,
        value: UnsafeCell<u32>,
    }

    // SAFETY: the value is written before the latch is set and read after; the model checks that.
    unsafe impl Sync for LatchFrame {}

    impl LatchFrame {
        fn new() -> Self {
            Self { latch: Latch::new(), value: UnsafeCell::new(0) }
        }
    }

    #[test]
    fn a_set_latch_wakes_the_waiting_thread() {
        model(|| {
            let shared = Arc::new((Latch::new(), StdArc::new(Parker::new())));
            let setter = thread::spawn({
                let shared = shared.clone();
                move || {
                    // SAFETY: 1. the latch exists, because both threads hold it.
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
    fn writes_before_set_are_seen() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let frame = Arc::new(LatchFrame::new());
            let setter = thread::spawn({
                let (frame, parker) = (frame.clone(), parker.clone());
                move || {
                    // SAFETY: no thread reads the value before the latch is set.
                    frame.value.with_mut(|value| unsafe { *value = 7 });
                    // SAFETY: 1. the latch exists, because both threads hold it.
                    if unsafe { Latch::set(&raw const frame.latch) } {
                        parker.unpark();
                    }
                }
            });
            block(&frame.latch, &parker);
            // SAFETY: the latch is set, so the setter no longer touches the value.
            frame.value.with(|value| assert_eq!(unsafe { *value }, 7));
            setter.join().unwrap();
        });
    }

    /// The frame is a cell that its owner takes back after the wait: a touch by the setter after
    /// `set` would be a race, which the model finds.
    #[test]
    fn a_frame_goes_once_its_latch_is_set() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let frame = Arc::new(LatchFrame::new());
            let setter = thread::spawn({
                let (frame, parker) = (frame.clone(), parker.clone());
                move || {
                    let touch = || {
                        // SAFETY: the value is read before the latch is set, so its owner does not
                        // write it yet.
                        frame.value.with(|value| unsafe { *value })
                    };
                    let first = touch();
                    // SAFETY: 1. the latch exists, because both threads hold it.
                    let must_unpark = unsafe { Latch::set(&raw const frame.latch) };
                    if weakened!("latch_last_touch") {
                        assert_eq!(touch(), first);
                    }
                    if must_unpark {
                        parker.unpark();
                    }
                }
            });
            block(&frame.latch, &parker);
            // SAFETY: the latch is set, so no other thread touches the frame.
            frame.value.with_mut(|value| unsafe { *value = 9 });
            setter.join().unwrap();
        });
    }

    #[test]
    fn the_last_of_a_countdown_sets() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let shared = Arc::new((Countdown::new(2, parker.clone()), LatchFrame::new()));
            let ends = [1, 2].map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if number == 1 {
                        // SAFETY: no other thread touches the value until the latch is set.
                        shared.1.value.with_mut(|value| unsafe { *value = 5 });
                    }
                    // SAFETY: 1. the countdown exists, because all threads hold it, and each is one
                    // of the two that are counted.
                    unsafe { Countdown::end_one(&raw const shared.0) };
                })
            });
            block(shared.0.latch(), &parker);
            // SAFETY: both jobs have ended, so no thread writes the value.
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
                    // This is what a job does that spawns another one into its scope.
                    shared.0.add(1);
                    let second = thread::spawn({
                        let shared = shared.clone();
                        move || {
                            // Relaxed: the countdown orders it.
                            shared.1.fetch_add(1, Relaxed);
                            // SAFETY: 1. this job was counted by `add`, and all threads hold the
                            // countdown.
                            unsafe { Countdown::end_one(&raw const shared.0) };
                        }
                    });
                    shared.1.fetch_add(1, Relaxed);
                    // SAFETY: 1. this is one of the two jobs that were counted at first.
                    unsafe { Countdown::end_one(&raw const shared.0) };
                    second.join().unwrap();
                }
            });
            // SAFETY: 1. this is the other one that was counted at first: the body of the scope.
            unsafe { Countdown::end_one(&raw const shared.0) };
            block(shared.0.latch(), &parker);
            assert_eq!(shared.1.load(Relaxed), 2);
            first.join().unwrap();
        });
    }
}
