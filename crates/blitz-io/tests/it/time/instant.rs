//! Tests `Instant`: arithmetic that saturates, refuses or panics where it must.

use std::time::Duration;

use blitz_io::time::{self, Instant};

use crate::support::{
    caught_panic::panic_of,
    clock::{ms, paused},
};

#[test]
fn instants_work_without_a_runtime() {
    let start = Instant::now();
    assert!(Instant::now() >= start);
    assert!(start.elapsed() < Duration::from_secs(3600));
}

#[test]
fn an_instant_converts_to_std_and_back() {
    let now = Instant::now();
    assert_eq!(Instant::from_std(now.into_std()), now);
    assert_eq!(Instant::from(std::time::Instant::from(now)), now);
}

#[test]
fn sums_and_differences_undo_each_other() {
    let now = Instant::now();
    let mut later = now + ms(5);
    assert_eq!(later - now, ms(5));
    assert_eq!(later - ms(5), now);
    later += ms(7);
    later -= ms(12);
    assert_eq!(later, now);
    assert!(now + ms(1) > now);
}

#[test]
fn a_difference_that_would_be_negative_is_zero_or_none() {
    let now = Instant::now();
    let later = now + ms(5);
    assert_eq!(now.duration_since(later), Duration::ZERO);
    assert_eq!(now.saturating_duration_since(later), Duration::ZERO);
    assert_eq!(now.checked_duration_since(later), None);
    assert_eq!(later.checked_duration_since(now), Some(ms(5)));
    assert_eq!(now - later, Duration::ZERO);
    assert_eq!(later.elapsed(), Duration::ZERO);
}

#[test]
fn overflow_is_none_or_a_panic() {
    let now = Instant::now();
    assert_eq!(now.checked_add(Duration::MAX), None);
    assert_eq!(now.checked_sub(Duration::MAX), None);
    assert_eq!(now.checked_add(ms(3)), Some(now + ms(3)));
    assert_eq!(now.checked_sub(Duration::ZERO), Some(now));
    panic_of(|| now + Duration::MAX);
    panic_of(|| now - Duration::MAX);
}

#[test]
fn an_instant_is_ordered_and_hashed() {
    use std::collections::{BTreeSet, HashSet};
    let now = Instant::now();
    assert_eq!(HashSet::from([now, now, now + ms(1)]).len(), 2);
    assert_eq!(BTreeSet::from([now + ms(1), now]).first(), Some(&now));
    assert!(!format!("{now:?}").is_empty());
}

#[test]
fn an_instant_follows_the_paused_clock() {
    paused(async {
        let start = Instant::now();
        let real = std::time::Instant::now();
        while real.elapsed() < ms(3) {}
        assert_eq!(Instant::now(), start);
        time::advance(ms(1234)).await;
        assert_eq!(start.elapsed(), ms(1234));
    });
}

#[test]
fn other_threads_keep_the_real_clock() {
    paused(async {
        time::advance(Duration::from_secs(1_000_000)).await;
        let here = Instant::now();
        let there = std::thread::spawn(Instant::now).join().unwrap();
        assert!(there < here, "a thread without a runtime sees real time");
    });
}
