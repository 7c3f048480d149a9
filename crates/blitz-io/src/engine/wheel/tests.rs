//! Compares wheels with a sorted map, and tests what they promise to threads that check them
//! seldom.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Wake, Waker},
};

use proptest::prelude::*;

use super::{Clock, Timer, TimerShutdown, Timers, TimersRef};
use crate::engine::{prim::lock, wait::test_waker::CountingWaker};

/// A granule of the lowest level.
const GRANULE: u64 = 1 << 14;

type Log = Arc<Mutex<Vec<usize>>>;

/// A waker that writes its number into the log.
struct LoggingWaker(usize, Log);

impl Wake for LoggingWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.1).push(self.0);
    }
}

fn timers() -> (Arc<Timers>, Arc<TimersRef>) {
    let timers = Timers::new(2, Clock::new(false));
    let timers_ref = Timers::refs(&timers)[0].clone();
    (timers, timers_ref)
}

fn timer(timers_ref: &Arc<TimersRef>) -> Pin<Box<Timer>> {
    Box::pin(Timer::new(timers_ref.clone()))
}

/// Stands for a thread that holds core `wheel`.
fn core(wheel: usize) -> impl FnOnce(&Timers) -> (Option<usize>, ()) {
    move |_| (Some(wheel), ())
}

/// Stands for a thread that holds no core.
fn outside(_: &Timers) -> (Option<usize>, ()) {
    (None, ())
}

fn armed(timers_ref: &Arc<TimersRef>, waker: &Waker, deadline_ns: u64) -> Pin<Box<Timer>> {
    let mut timer = timer(timers_ref);
    assert!(timer.as_mut().poll(waker, deadline_ns, core(0)).is_pending());
    timer
}

#[test]
fn a_timer_is_small() {
    assert!(size_of::<Timer>() <= 104, "{}", size_of::<Timer>());
}

#[test]
fn a_timer_that_is_never_polled_touches_no_wheel() {
    let (timers, timers_ref) = timers();
    drop(timer(&timers_ref));
    assert_eq!(timers.next_of_all(), None);
}

#[test]
fn one_timer_fires_once_and_exactly_at_its_deadline() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    for deadline in [1, GRANULE, 1_000_000_007, 86_400_000_000_001, 40 * 86_400_000_000_000] {
        let armed = armed(&timers_ref, &counter.waker(), deadline);
        assert_eq!(timers.next(0), Some(deadline));
        assert_eq!(timers.fire(0, deadline - 1), 0);
        assert!(!armed.is_fired());
        assert_eq!(timers.fire(0, deadline), 1);
        assert!(armed.is_fired());
        assert_eq!(timers.next(0), None);
    }
    assert_eq!(counter.wake_count(), 5);
}

#[test]
fn within_a_tick_each_fires_at_its_own_time() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let all: Vec<_> =
        (1..=10).map(|n| armed(&timers_ref, &counter.waker(), 5 * GRANULE + n * 7)).collect();
    for n in 1..=10 {
        assert_eq!(timers.next(0), Some(5 * GRANULE + n * 7));
        assert_eq!(timers.fire(0, 5 * GRANULE + n * 7), 1);
        assert!(all[n as usize - 1].is_fired());
    }
}

#[test]
fn a_crowded_tick_is_at_most_a_tick_late() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let _all: Vec<_> =
        (0..1_000).map(|n| armed(&timers_ref, &counter.waker(), 5 * GRANULE + 1_000 - n)).collect();
    let early = timers.fire(0, 5 * GRANULE + 500);
    assert!(early <= 500, "{early} of 500 were due");
    let next = timers.next(0).unwrap();
    assert!(next > 5 * GRANULE + 500 && next <= 6 * GRANULE, "no look in vain: {next}");
    assert_eq!(timers.fire(0, next) + early, 1_000);
    assert_eq!(counter.wake_count(), 1_000);
}

#[test]
fn a_deadline_that_was_passed_is_over_at_once() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let first = armed(&timers_ref, &counter.waker(), 10 * GRANULE);
    timers.fire(0, 10 * GRANULE);
    assert!(first.is_fired());
    let mut late = timer(&timers_ref);
    assert!(late.as_mut().poll(&counter.waker(), 10 * GRANULE, core(0)).is_ready());
    assert!(late.is_fired() && timers.next(0).is_none());
    let mut zero = timer(&timers_ref);
    assert!(zero.as_mut().poll(&counter.waker(), 0, core(1)).is_ready());
}

#[test]
fn timers_beyond_the_top_level_cascade_down() {
    let ((timers, timers_ref), log) = (timers(), Log::default());
    let day = 86_400_000_000_000;
    let deadlines = [20, 14, 400, 13, 3_650, 27, 210_000].map(|days: u64| days * day + 5);
    let deadlines = deadlines.into_iter().chain([u64::MAX, u64::MAX - 1]);
    let all: Vec<_> = deadlines
        .enumerate()
        .map(|(n, deadline)| {
            (deadline, armed(&timers_ref, &Arc::new(LoggingWaker(n, log.clone())).into(), deadline))
        })
        .collect();
    while let Some(next) = timers.next(0) {
        timers.fire(0, next);
        for (deadline, timer) in &all {
            assert_eq!(timer.is_fired(), *deadline <= next || next == u64::MAX - 1);
        }
    }
    assert_eq!(*lock(&log), [3, 1, 0, 5, 2, 4, 6, 7, 8]);
}

#[test]
fn a_far_jump_fires_everything_in_order() {
    let ((timers, timers_ref), log) = (timers(), Log::default());
    // A step that is coprime to the count visits all of them.
    let deadline = |n: usize| (n * 7_919 % 5_000) as u64 * 700_000_000 + 1;
    let all: Vec<_> = (0..5_000)
        .map(|n| armed(&timers_ref, &Arc::new(LoggingWaker(n, log.clone())).into(), deadline(n)))
        .collect();
    assert_eq!(timers.fire(0, u64::MAX - 1), 5_000);
    assert!(all.iter().all(|timer| timer.is_fired()));
    assert!(lock(&log).is_sorted_by_key(|n| deadline(*n)));
}

/// A slot of level 2 is 4096 granules.
#[test]
fn a_slot_cascaded_early_is_not_cascaded_again_when_it_is_due() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let is_bare = |level| timers.wheels[0].slots.lock().is_bare(level);
    let deadline = |n: u64| (4096 + n * 7_919 % 4096) * GRANULE;
    let all: Vec<_> =
        (0..1_000).map(|n| armed(&timers_ref, &counter.waker(), deadline(n))).collect();
    let before: Vec<_> =
        (1..=40).map(|n| armed(&timers_ref, &counter.waker(), n * 100 * GRANULE)).collect();
    assert!(!is_bare(2));
    for n in 1..=40 {
        assert_eq!(timers.fire(0, n * 100 * GRANULE), 1);
    }
    assert!(before.iter().all(|timer| timer.is_fired()));
    assert!(is_bare(2), "it has been put down, some at a time");
    while let Some(next) = timers.next(0) {
        timers.fire(0, next);
        for (n, timer) in all.iter().enumerate() {
            assert_eq!(timer.is_fired(), deadline(n as u64) <= next);
        }
    }
    assert_eq!(counter.wake_count(), 1_040);
}

/// Wakers find the wheel unlocked, also in the middle of much work.
#[test]
fn work_under_one_lock_is_bounded() {
    struct UnlockedWaker(Arc<Timers>, Arc<CountingWaker>);
    impl Wake for UnlockedWaker {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.wheels[0].slots.is_locked());
            self.1.waker().wake();
        }
    }
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let waker = Waker::from(Arc::new(UnlockedWaker(timers.clone(), counter.clone())));
    let all: Vec<_> = (0..2_000).map(|n| armed(&timers_ref, &waker, 1_000_000_000 + n)).collect();
    let mut wake_list = super::WakeList::new();
    let step = timers.wheels[0].slots.lock().advance(2_000_000_000, false, &mut wake_list);
    assert_eq!(step, super::Progress::More, "two thousand are not put again at once");
    drop(wake_list);
    // Some timers are cancelled while they are being moved to other slots.
    let kept: Vec<_> = all.into_iter().enumerate().filter(|(n, _)| n % 3 != 0).collect();
    timers.fire(0, 2_000_000_000);
    assert!(kept.iter().all(|(_, timer)| timer.is_fired()));
    assert!(counter.wake_count() >= kept.len() && timers.next(0).is_none());
}

#[test]
fn a_waker_may_drop_other_timers_and_arm_new_ones() {
    type KeptTimers = Arc<Mutex<Vec<Pin<Box<Timer>>>>>;
    struct DroppingWaker(KeptTimers, Arc<TimersRef>);
    impl Wake for DroppingWaker {
        fn wake(self: Arc<Self>) {
            let old = std::mem::take(&mut *lock(&self.0));
            drop(old);
            lock(&self.0).push(armed(&self.1, Waker::noop(), 1 << 40));
        }
    }
    let ((timers, timers_ref), kept) = (timers(), KeptTimers::default());
    let waker = Waker::from(Arc::new(DroppingWaker(kept.clone(), timers_ref.clone())));
    let all = (0..100).map(|_| armed(&timers_ref, &waker, GRANULE)).collect();
    *lock(&kept) = all;
    timers.fire(0, 2 * GRANULE);
    assert_eq!(timers.next(0), Some(1 << 40));
    assert_eq!(lock(&kept).len(), 1);
}

#[test]
fn a_reset_timer_wakes_at_its_new_deadline_and_at_once_if_that_has_passed() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let mut timer = armed(&timers_ref, &counter.waker(), 100 * GRANULE);
    timer.as_mut().reset(50 * GRANULE, core(1));
    assert_eq!((timers.next(0), timers.next(1)), (None, Some(50 * GRANULE)), "it has moved");
    timers.fire(1, 60 * GRANULE);
    assert!(timer.is_fired());
    assert_eq!(counter.wake_count(), 1);
    timer.as_mut().reset(70 * GRANULE, core(1));
    assert!(!timer.is_fired());
    assert!(timer.as_mut().poll(&counter.waker(), 70 * GRANULE, core(1)).is_pending());
    timer.as_mut().reset(10 * GRANULE, core(1));
    assert!(timer.is_fired());
    assert_eq!((counter.wake_count(), Arc::strong_count(&counter)), (2, 1));
}

#[test]
fn an_unpolled_timer_that_is_reset_fires_all_the_same() {
    let (timers, timers_ref) = timers();
    let mut timer = timer(&timers_ref);
    timer.as_mut().reset(GRANULE, outside);
    assert_eq!(timers.next(timers.outside()), Some(GRANULE));
    timers.fire_all(GRANULE);
    assert!(timer.is_fired());
}

#[test]
fn the_alarm_is_raised_for_earlier_timers_armed_from_outside() {
    let ((timers, timers_ref), alarms) = (timers(), Arc::new(Mutex::new(Vec::new())));
    timers.set_alarm(Box::new({
        let alarms = alarms.clone();
        move |wheel| lock(&alarms).push(wheel)
    }));
    let _own = armed(&timers_ref, Waker::noop(), 50);
    assert!(lock(&alarms).is_empty(), "the holder of the core checks by itself");
    let arm = |deadline_ns| {
        let mut timer = timer(&timers_ref);
        assert!(timer.as_mut().poll(Waker::noop(), deadline_ns, outside).is_pending());
        timer
    };
    let _outside = [arm(100), arm(200), arm(90)];
    assert_eq!(*lock(&alarms), [timers.outside(); 2]);
    assert_eq!(timers.next_of_all(), Some(50));
}

#[test]
fn after_the_shutdown_all_timers_end() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let mut all: Vec<_> =
        (0..100).map(|n| armed(&timers_ref, &counter.waker(), GRANULE << (n % 45))).collect();
    timers.shutdown();
    timers.shutdown();
    assert_eq!((counter.wake_count(), timers.next_of_all()), (100, None));
    all.push(timer(&timers_ref));
    for timer in &mut all {
        let polled = timer.as_mut().poll(&counter.waker(), 1 << 60, core(0));
        assert_eq!(polled, std::task::Poll::Ready(Err(TimerShutdown)));
        assert!(!timer.is_fired());
    }
}

#[cfg(feature = "test-util")]
#[test]
fn a_paused_clock_goes_from_timer_to_timer_exactly() {
    let timers = Timers::new(1, Clock::new(true));
    timers.clock().pause().unwrap();
    let (timers_ref, counter, start) =
        (Timers::refs(&timers)[0].clone(), CountingWaker::new(), timers.clock().now_ns());
    // There are more timers in a granule than would be searched otherwise, and one that was
    // cancelled.
    let deadlines: Vec<_> = (0..100).map(|n| start + 100_000_000 - n * 11).collect();
    let all: Vec<_> =
        deadlines.iter().map(|at| armed(&timers_ref, &counter.waker(), *at)).collect();
    drop(armed(&timers_ref, &counter.waker(), start + 1));
    for at in deadlines.iter().rev() {
        assert_eq!(timers.auto_advance(), 1);
        assert_eq!(timers.clock().now_ns(), *at);
    }
    assert!(all.iter().all(|timer| timer.is_fired()));
    assert_eq!(timers.auto_advance(), 0);
    assert_eq!(timers.clock().now_ns(), deadlines[0], "without timers it stands");
    let _one = armed(&timers_ref, &counter.waker(), start + 200_000_000);
    timers.clock().inhibit_auto_advance();
    assert_eq!(timers.auto_advance(), 0);
    timers.clock().allow_auto_advance();
    timers.clock().advance(std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(timers.fire_all(timers.clock().now_ns()), 1);
}

/// A step of the comparison with a sorted map.
#[derive(Debug, Clone)]
enum WheelStep {
    Arm { ahead: u64 },
    Cancel { which: usize },
    Reset { which: usize, ahead: u64, wheel: usize },
    Advance { by: u64 },
}

/// Generates spans in which all magnitudes are equally likely, from nanoseconds to two months.
fn span() -> impl Strategy<Value = u64> {
    (0u32..52, any::<u64>()).prop_map(|(bits, random)| (1 << bits) | (random & ((1 << bits) - 1)))
}

fn step() -> impl Strategy<Value = WheelStep> {
    prop_oneof![
        4 => span().prop_map(|ahead| WheelStep::Arm { ahead }),
        1 => any::<usize>().prop_map(|which| WheelStep::Cancel { which }),
        1 => (any::<usize>(), span(), 0usize..3)
            .prop_map(|(which, ahead, wheel)| WheelStep::Reset { which, ahead, wheel }),
        2 => span().prop_map(|by| WheelStep::Advance { by }),
    ]
}

/// Timers that were armed and have not fired, by their number.
type ArmedTimers = BTreeMap<usize, (u64, Pin<Box<Timer>>)>;

fn key_of(waiting: &ArmedTimers, which: usize) -> Option<usize> {
    waiting.keys().nth(which % waiting.len().max(1)).copied()
}

proptest! {
    #[test]
    fn a_wheel_behaves_as_a_sorted_map(steps in prop::collection::vec(step(), 0..300)) {
        let ((timers, timers_ref), log) = (timers(), Log::default());
        let (mut now, mut waiting) = (0, ArmedTimers::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                WheelStep::Arm { ahead } => {
                    let waker = Arc::new(LoggingWaker(number, log.clone())).into();
                    waiting.insert(number, (now + ahead, armed(&timers_ref, &waker, now + ahead)));
                }
                WheelStep::Cancel { which } => {
                    key_of(&waiting, which).and_then(|key| waiting.remove(&key));
                }
                WheelStep::Reset { which, ahead, wheel } => {
                    if let Some(key) = key_of(&waiting, which) {
                        let (deadline, timer) = waiting.get_mut(&key).unwrap();
                        *deadline = now + ahead;
                        let wheel = (wheel != 2).then_some(wheel);
                        timer.as_mut().reset(*deadline, |_| (wheel, ()));
                    }
                }
                WheelStep::Advance { by } => {
                    now += by;
                    for wheel in 0..3 {
                        timers.fire(wheel, now);
                        let fired = std::mem::take(&mut *lock(&log));
                        let mut granule = 0;
                        for key in fired {
                            let (deadline, timer) = waiting.remove(&key).unwrap();
                            prop_assert!(timer.is_fired());
                            prop_assert!(deadline <= now, "never early");
                            prop_assert!(deadline / GRANULE >= granule, "in order");
                            granule = deadline / GRANULE;
                        }
                    }
                    let late = |deadline: u64| deadline + GRANULE <= now;
                    prop_assert!(!waiting.values().any(|(deadline, _)| late(*deadline)));
                }
            }
            let first = waiting.values().map(|(deadline, _)| *deadline).min();
            prop_assert_eq!(timers.next_of_all().is_some(), first.is_some());
            if let (Some(next), Some(first)) = (timers.next_of_all(), first) {
                prop_assert!(next < first + GRANULE, "the wheel is checked in time");
            }
        }
    }
}
