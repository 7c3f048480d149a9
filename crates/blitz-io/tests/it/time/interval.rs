//! Tests `interval`, and each `MissedTickBehavior`.

use std::{future::poll_fn, time::Duration};

use blitz_io::time::{self, Instant, Interval, MissedTickBehavior, interval, interval_at};

use crate::support::{
    caught_panic::panic_of,
    clock::{ms, paused},
    manual_poll::{by_hand, now},
    runtimes::{on_all_kinds, others_wait},
};

/// Returns the times of the next ticks, in milliseconds from `start`, each awaited as soon as the
/// one before has come.
async fn ticks(interval: &mut Interval, start: Instant, count: usize) -> Vec<u128> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(interval.tick().await.duration_since(start).as_millis());
    }
    seen
}

#[test]
fn the_first_tick_is_immediate_and_the_others_a_period_apart() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(10));
        assert_eq!(now(interval.tick()), start);
        assert_eq!(ticks(&mut interval, start, 3).await, [10, 20, 30]);
        assert!(start.elapsed() >= ms(30) && start.elapsed() <= ms(31));
    });
}

#[test]
fn an_interval_is_never_early() {
    on_all_kinds(|| async {
        let start = std::time::Instant::now();
        let mut interval = interval(ms(1));
        for number in 0..5_u64 {
            interval.tick().await;
            assert!(start.elapsed() >= ms(number));
        }
    });
}

#[test]
fn an_interval_may_start_later() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval_at(start + ms(25), ms(10));
        assert!(by_hand(interval.tick()).poll().is_pending());
        assert_eq!(ticks(&mut interval, start, 3).await, [25, 35, 45]);
    });
}

#[test]
fn an_interval_may_have_started_earlier() {
    paused(async {
        time::advance(ms(100)).await;
        let start = Instant::now() - ms(25);
        let mut interval = interval_at(start, ms(10));
        // Burst: all missed ticks come at once.
        assert_eq!(ticks(&mut interval, start, 5).await, [0, 10, 20, 30, 40]);
    });
}

#[test]
fn a_period_of_zero_panics() {
    paused(async {
        panic_of(|| interval(Duration::ZERO)).says(&["`period` must be non-zero."]);
        panic_of(|| interval_at(Instant::now(), Duration::ZERO)).says(&["non-zero"]);
    });
}

#[test]
fn a_period_that_no_instant_holds_ticks_once() {
    paused(async {
        let mut interval = interval(Duration::MAX);
        now(interval.tick());
        let mut second = by_hand(interval.tick());
        second.pending();
        time::advance(Duration::from_secs(365 * 24 * 3600)).await;
        second.pending();
    });
}

/// Returns the ticks after 25 ms were slept through, with a period of 10 ms, from the start on.
async fn after_a_gap(behavior: MissedTickBehavior, count: usize) -> Vec<u128> {
    let start = Instant::now();
    let mut interval = interval(ms(10));
    interval.set_missed_tick_behavior(behavior);
    assert_eq!(interval.missed_tick_behavior(), behavior);
    interval.tick().await;
    time::advance(ms(25)).await;
    let mut seen = Vec::new();
    for _ in 0..count {
        interval.tick().await;
        seen.push(start.elapsed().as_millis());
    }
    seen
}

#[test]
fn burst_catches_up_at_once() {
    paused(async {
        assert_eq!(after_a_gap(MissedTickBehavior::Burst, 4).await, [25, 25, 30, 40]);
    });
}

#[test]
fn delay_counts_from_the_late_tick() {
    paused(async {
        assert_eq!(after_a_gap(MissedTickBehavior::Delay, 4).await, [25, 35, 45, 55]);
    });
}

#[test]
fn skip_goes_on_at_the_next_multiple() {
    paused(async {
        assert_eq!(after_a_gap(MissedTickBehavior::Skip, 4).await, [25, 30, 40, 50]);
    });
}

#[test]
fn burst_is_the_default() {
    paused(async {
        assert_eq!(MissedTickBehavior::default(), MissedTickBehavior::Burst);
        assert_eq!(interval(ms(1)).missed_tick_behavior(), MissedTickBehavior::Burst);
    });
}

#[test]
fn a_tick_that_is_less_than_five_ms_late_is_not_missed() {
    paused(async {
        for behavior in [MissedTickBehavior::Delay, MissedTickBehavior::Skip] {
            let start = Instant::now();
            let mut interval = interval(ms(10));
            interval.set_missed_tick_behavior(behavior);
            interval.tick().await;
            time::advance(ms(14)).await;
            interval.tick().await;
            interval.tick().await;
            assert_eq!(start.elapsed().as_millis(), 20, "{behavior:?}");
        }
    });
}

#[test]
fn reset_starts_a_period_now() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(10));
        interval.tick().await;
        time::advance(ms(7)).await;
        interval.reset();
        assert_eq!(ticks(&mut interval, start, 2).await, [17, 27]);
    });
}

#[test]
fn reset_immediately_ticks_now() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(10));
        interval.tick().await;
        time::advance(ms(7)).await;
        interval.reset_immediately();
        assert_eq!(ticks(&mut interval, start, 2).await, [7, 17]);
    });
}

#[test]
fn reset_after_and_reset_at_set_the_time_of_the_next_tick() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(10));
        interval.tick().await;
        time::advance(ms(5)).await;
        interval.reset_after(ms(20));
        assert_eq!(ticks(&mut interval, start, 2).await, [25, 35]);
        interval.reset_at(start + ms(100));
        assert_eq!(ticks(&mut interval, start, 2).await, [100, 110]);
    });
}

#[test]
fn a_tick_that_is_dropped_is_not_lost() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(10));
        interval.tick().await;
        for _ in 0..3 {
            assert!(by_hand(interval.tick()).poll().is_pending());
        }
        time::advance(ms(10)).await;
        // The tick has woken its task, and has not been taken.
        others_wait().await;
        assert_eq!(ticks(&mut interval, start, 2).await, [10, 20]);
    });
}

#[test]
fn poll_tick_is_tick() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(10));
        poll_fn(|cx| interval.poll_tick(cx)).await;
        let second = poll_fn(|cx| interval.poll_tick(cx)).await;
        assert_eq!(second, start + ms(10));
        assert_eq!(interval.period(), ms(10));
    });
}

#[test]
fn without_a_runtime_it_panics() {
    panic_of(|| interval(ms(1))).says(&["there is no reactor running"]);
}
