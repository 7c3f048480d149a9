//! Sleeps and timeouts on timers that are fired by hand, without a runtime.

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{
    Duration, Instant, MissedTickBehavior, Sleep, Timeout, at_most_30_years, timeout::Delay,
};
use crate::engine::{
    prim::Arc,
    wait::test_waker::CountingWaker,
    wheel::{Clock, Timers, TimersRef},
    work::task::budget::{self, Budget},
};

/// A duration so long that no test reaches its end by itself.
const HOUR: Duration = Duration::from_secs(3600);

fn timers() -> (Arc<Timers>, Arc<TimersRef>) {
    let timers = Timers::new(1, Clock::new(false));
    let timers_ref = Timers::refs(&timers)[0].clone();
    (timers, timers_ref)
}

/// Creates a sleep of `duration` from now.
fn sleep(timers_ref: &Arc<TimersRef>, duration: Duration) -> Sleep {
    Sleep::new(Instant::now() + duration, duration.is_zero(), timers_ref.clone())
}

fn timeout<F: Future>(timers_ref: &Arc<TimersRef>, duration: Duration, value: F) -> Timeout<F> {
    Timeout { value, delay: Delay::Created { sleep: Some(sleep(timers_ref, duration)) } }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Fires all timers that are due at `at`.
fn fire(timers: &Timers, at: Instant) -> usize {
    timers.fire_all(timers.clock().ns_of(at.into_std()))
}

#[test]
fn a_sleep_is_done_at_its_deadline_and_not_a_nanosecond_before() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let mut sleep = pin!(sleep(&timers_ref, HOUR));
    let deadline = sleep.deadline();
    assert_eq!(timers.next_of_all(), None, "it was not polled");
    assert!(poll(sleep.as_mut(), &counter.waker()).is_pending());
    assert_eq!(fire(&timers, deadline - Duration::from_nanos(1)), 0);
    assert!(poll(sleep.as_mut(), &counter.waker()).is_pending() && !sleep.is_elapsed());
    assert_eq!((fire(&timers, deadline), counter.wake_count()), (1, 1));
    assert!(sleep.is_elapsed());
    assert!(poll(sleep.as_mut(), &counter.waker()).is_ready());
    assert!(poll(sleep.as_mut(), &counter.waker()).is_ready(), "and stays done");
    assert_eq!(sleep.deadline(), deadline);
}

#[test]
fn a_deadline_in_the_past_is_over_at_the_first_poll() {
    let (timers, timers_ref) = timers();
    let mut zero = pin!(sleep(&timers_ref, Duration::ZERO));
    assert!(!zero.is_elapsed(), "it was not polled");
    assert!(poll(zero.as_mut(), Waker::noop()).is_ready());
    assert!(zero.is_elapsed());
    let mut past = pin!(sleep(&timers_ref, HOUR));
    past.as_mut().reset_unarmed(Instant::now());
    assert!(poll(past.as_mut(), Waker::noop()).is_ready());
    assert_eq!(timers.next_of_all(), None, "neither came into a wheel");
}

#[test]
fn a_reset_counts_and_the_old_deadline_does_not() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let mut sleep = pin!(sleep(&timers_ref, HOUR));
    let first = sleep.deadline();
    assert!(poll(sleep.as_mut(), &counter.waker()).is_pending());
    sleep.as_mut().reset(first + HOUR);
    assert_eq!(sleep.deadline(), first + HOUR);
    assert_eq!((fire(&timers, first), counter.wake_count()), (0, 0));
    assert_eq!((fire(&timers, first + HOUR), counter.wake_count()), (1, 1));
    assert!(sleep.is_elapsed());
    sleep.as_mut().reset_unarmed(first + HOUR * 2);
    assert!(!sleep.is_elapsed());
    assert_eq!(timers.next_of_all(), None, "no task waits for it");
}

/// The wheel has not been advanced since the beginning, so it alone would not notice.
#[test]
fn a_reset_to_what_is_over_wakes_and_is_done_at_once() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let mut sleep = pin!(sleep(&timers_ref, HOUR));
    assert!(poll(sleep.as_mut(), &counter.waker()).is_pending());
    sleep.as_mut().reset(Instant::now());
    assert!(sleep.is_elapsed());
    assert_eq!((counter.wake_count(), timers.next_of_all()), (1, None));
    assert!(poll(sleep.as_mut(), Waker::noop()).is_ready());
}

#[test]
fn a_timeout_around_a_ready_future_arms_nothing() {
    let (timers, timers_ref) = timers();
    let mut ready = pin!(timeout(&timers_ref, HOUR, async { 7 }));
    assert_eq!(poll(ready.as_mut(), Waker::noop()), Poll::Ready(Ok(7)));
    assert_eq!(timers.next_of_all(), None);
    let mut over = pin!(timeout(&timers_ref, Duration::ZERO, async { 7 }));
    assert_eq!(poll(over.as_mut(), Waker::noop()), Poll::Ready(Ok(7)), "the future is first");
}

#[test]
fn a_timeout_that_is_dropped_leaves_the_wheel_empty() {
    let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
    let mut waiting = Box::pin(timeout(&timers_ref, HOUR, pending::<()>()));
    assert!(poll(waiting.as_mut(), &counter.waker()).is_pending());
    assert!(timers.next_of_all().is_some());
    drop(waiting);
    assert_eq!((timers.next_of_all(), std::sync::Arc::strong_count(&counter)), (None, 1));
}

#[test]
fn a_future_that_spends_all_its_budget_does_not_outlive_its_timeout() {
    let (timers, timers_ref) = timers();
    let hungry = poll_fn(|cx| {
        while let Poll::Ready(unit) = budget::poll_proceed(cx) {
            unit.spend();
        }
        Poll::<()>::Pending
    });
    let mut hungry = pin!(timeout(&timers_ref, HOUR, hungry));
    let mut turn =
        || budget::with_budget(Budget::per_poll(), || poll(hungry.as_mut(), Waker::noop()));
    assert!(turn().is_pending());
    assert_eq!(fire(&timers, Instant::now() + HOUR), 1);
    assert!(matches!(turn(), Poll::Ready(Err(_))));
}

#[test]
fn sleeps_that_are_over_spend_the_budget() {
    let (_timers, timers_ref) = timers();
    budget::with_budget(Budget::per_poll(), || {
        let mut done = 0;
        while poll(pin!(sleep(&timers_ref, Duration::ZERO)), Waker::noop()).is_ready() {
            done += 1;
        }
        assert_eq!(done, 128);
    });
}

#[test]
#[should_panic = "it is being shutdown. (the timer is shutdown"]
fn a_sleep_whose_runtime_has_ended_panics() {
    let (timers, timers_ref) = timers();
    let mut sleep = pin!(sleep(&timers_ref, HOUR));
    assert!(poll(sleep.as_mut(), Waker::noop()).is_pending());
    timers.shutdown();
    let _ = poll(sleep.as_mut(), Waker::noop());
}

#[test]
fn missed_ticks_follow_the_missed_tick_behavior() {
    let (tick, period) = (Instant::now(), Duration::from_millis(100));
    let after = |missed: MissedTickBehavior, late_ms| {
        missed.after(tick, tick + Duration::from_millis(late_ms), period) - tick
    };
    for (late, burst, delay, skip) in
        [(70, 100, 170, 100), (170, 100, 270, 200), (100, 100, 200, 200), (999, 100, 1099, 1000)]
    {
        assert_eq!(after(MissedTickBehavior::Burst, late), Duration::from_millis(burst));
        assert_eq!(after(MissedTickBehavior::Delay, late), Duration::from_millis(delay));
        assert_eq!(after(MissedTickBehavior::Skip, late), Duration::from_millis(skip));
    }
}

#[test]
fn the_longest_duration_fits_in_an_instant() {
    let longest = at_most_30_years(Duration::MAX);
    assert!(Instant::now().checked_add(longest).is_some());
    assert_eq!(at_most_30_years(HOUR), HOUR);
}

#[cfg(feature = "test-util")]
#[test]
fn on_a_paused_clock_a_sleep_is_over_exactly_when_the_clock_gets_there() {
    let timers = Timers::new(1, Clock::new(true));
    timers.clock().pause().unwrap();
    let (timers_ref, counter) = (Timers::refs(&timers)[1].clone(), CountingWaker::new());
    let start = Instant::from_std(timers.clock().now());
    let mut sleep = pin!(Sleep::new(start + HOUR, false, timers_ref));
    assert!(poll(sleep.as_mut(), &counter.waker()).is_pending());
    assert_eq!((timers.auto_advance(), counter.wake_count()), (1, 1));
    assert_eq!(Instant::from_std(timers.clock().now()), start + HOUR);
    assert!(poll(sleep.as_mut(), &counter.waker()).is_ready());
}
