//! Tests `timeout` and `timeout_at`, mostly on a paused clock.

use std::{
    future::{pending, poll_fn, ready},
    io,
    task::Poll,
    time::Duration,
};

use blitz_io::{
    sync::oneshot,
    task,
    time::{self, Instant, error::Elapsed, sleep, timeout, timeout_at},
};

use crate::support::{
    caught_panic::panic_of,
    clock::{ms, paused},
    drop_tally::Tally,
    manual_poll::{now, waiting},
    runtimes::{on_all_kinds, others_wait},
};

#[test]
fn a_future_that_is_ready_wins_even_with_no_time_at_all() {
    paused(async {
        assert_eq!(now(timeout(Duration::ZERO, ready(1))), Ok(1));
        let past = Instant::now() - ms(10);
        assert_eq!(now(timeout_at(past, ready(2))), Ok(2));
        assert_eq!(now(timeout(Duration::MAX, ready(3))), Ok(3));
    });
}

#[test]
fn a_future_that_is_not_ready_in_time_gives_elapsed() {
    paused(async {
        let start = Instant::now();
        let late = timeout(ms(20), pending::<()>()).await;
        assert!(late.is_err());
        assert!(start.elapsed() >= ms(20) && start.elapsed() <= ms(21));
        assert!(timeout_at(start + ms(40), pending::<()>()).await.is_err());
        assert!(start.elapsed() >= ms(40) && start.elapsed() <= ms(41));
    });
}

#[test]
fn a_timeout_is_never_early() {
    on_all_kinds(|| async {
        let start = std::time::Instant::now();
        assert!(timeout(ms(3), pending::<()>()).await.is_err());
        assert!(start.elapsed() >= ms(3));
    });
}

#[test]
fn a_result_that_comes_in_time_is_returned() {
    paused(async {
        let (sender, receiver) = oneshot::channel();
        let mut timed = waiting(timeout(ms(20), receiver));
        time::advance(ms(10)).await;
        sender.send(5).unwrap();
        assert_eq!(timed.woken_and_ready(), Ok(Ok(5)));
    });
}

#[test]
fn both_at_once_is_in_time() {
    paused(async {
        let (sender, receiver) = oneshot::channel();
        let mut timed = waiting(timeout(ms(20), receiver));
        time::advance(ms(50)).await;
        sender.send(5).unwrap();
        assert_eq!(timed.ready(), Ok(Ok(5)));
    });
}

#[test]
fn a_time_that_is_too_long_for_an_instant_never_ends_it() {
    paused(async {
        let mut timed = waiting(timeout(Duration::MAX, pending::<()>()));
        time::advance(Duration::from_secs(365 * 24 * 3600)).await;
        timed.pending();
    });
}

#[test]
fn the_future_lives_until_the_timeout_is_dropped() {
    paused(async {
        let tally = Tally::new();
        let token = tally.token();
        let mut timed = Box::pin(timeout(ms(1), async move {
            token.keep();
            pending::<()>().await;
            drop(token);
        }));
        assert!(timed.as_mut().await.is_err());
        assert_eq!(tally.dropped(), 0);
        drop(timed);
        tally.assert_all_dropped(1);
    });
}

#[test]
fn a_future_that_never_yields_by_itself_is_still_ended() {
    // The future spends the whole budget in each poll; the timer needs none of it.
    paused(async {
        let busy = async {
            loop {
                task::consume_budget().await;
            }
        };
        let advancing = async {
            time::advance(ms(100)).await;
            pending::<()>().await
        };
        blitz_io::select! {
            ended = timeout(ms(50), busy) => assert!(ended.is_err()),
            () = advancing => unreachable!(),
        }
    });
}

#[test]
fn timeouts_may_be_nested_and_the_shorter_one_ends_it() {
    paused(async {
        let start = Instant::now();
        let inner_first = timeout(ms(30), timeout(ms(10), pending::<()>())).await;
        assert!(matches!(inner_first, Ok(Err(_))));
        let outer_first = timeout(ms(10), timeout(ms(30), pending::<()>())).await;
        assert!(outer_first.is_err());
        assert!(start.elapsed() >= ms(20) && start.elapsed() <= ms(22));
    });
}

#[test]
fn the_inner_future_can_be_reached() {
    paused(async {
        let mut timed = timeout(ms(1), ready(1));
        assert_eq!(now(timed.get_mut()), 1);
        *timed.get_mut() = ready(2);
        let _: &std::future::Ready<i32> = timed.get_ref();
        assert_eq!(now(timed.into_inner()), 2);
    });
}

#[test]
fn the_error_says_what_happened_and_becomes_an_io_error() {
    paused(async {
        let error: Elapsed = timeout(ms(1), pending::<()>()).await.unwrap_err();
        assert_eq!(error.to_string(), "deadline has elapsed");
        let _: &dyn std::error::Error = &error;
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
    });
}

#[test]
fn a_panic_of_the_future_comes_through() {
    paused(async {
        let caught = panic_of(|| now(timeout(ms(1), async { panic!("inside") })));
        caught.says(&["inside"]);
    });
}

#[test]
fn the_future_is_polled_before_the_clock_is_read() {
    paused(async {
        let mut polls = 0;
        let past = Instant::now() - ms(1);
        let polled = poll_fn(|_| {
            polls += 1;
            Poll::<()>::Pending
        });
        assert!(timeout_at(past, polled).await.is_err());
        assert!(polls >= 1);
    });
}

#[test]
fn a_dropped_timeout_leaves_no_wake_up_behind() {
    paused(async {
        let timed = waiting(timeout(ms(10), pending::<()>()));
        drop(timed);
        let mut other = waiting(sleep(ms(30)));
        time::advance(ms(20)).await;
        others_wait().await;
        other.still_waits();
    });
}

#[test]
fn without_a_runtime_it_panics() {
    panic_of(|| timeout(ms(1), ready(()))).says(&["there is no reactor running"]);
}
