//! Tests `sleep`, `sleep_until`, and the methods of `Sleep`.

use std::{future::Future, pin::pin, task::Waker, thread, time::Duration};

use blitz_io::{
    runtime::Builder,
    task,
    time::{self, Instant, sleep, sleep_until},
};

use crate::support::{
    caught_panic::panic_of,
    clock::{ms, paused},
    manual_poll::{by_hand, waiting},
    runtimes::{on_all_kinds, one_thread_with_drivers, others_wait, workers_with_drivers},
    watchdog,
};

#[test]
fn a_sleep_is_never_early() {
    on_all_kinds(|| async {
        for duration in [Duration::ZERO, Duration::from_micros(100), ms(1), ms(3)] {
            let start = std::time::Instant::now();
            sleep(duration).await;
            assert!(start.elapsed() >= duration, "{:?} of {duration:?}", start.elapsed());
        }
    });
}

#[test]
fn many_at_once_are_never_early() {
    on_all_kinds(|| async {
        let start = std::time::Instant::now();
        let tasks: Vec<_> = (0..500_u64)
            .map(|number| {
                blitz_io::spawn(async move {
                    let duration = Duration::from_micros(number * 37 % 5000);
                    sleep(duration).await;
                    assert!(start.elapsed() >= duration);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_deadline_that_has_passed_does_not_wait() {
    paused(async {
        time::advance(ms(50)).await;
        let start = Instant::now();
        sleep_until(start - ms(20)).await;
        assert!(start.elapsed() <= ms(1));
        sleep(Duration::ZERO).await;
        assert!(start.elapsed() <= ms(2));
    });
}

#[test]
fn the_deadline_is_the_sum_of_now_and_the_duration() {
    paused(async {
        let now = Instant::now();
        assert_eq!(sleep(ms(7)).deadline(), now + ms(7));
        assert_eq!(sleep_until(now + ms(9)).deadline(), now + ms(9));
    });
}

#[test]
fn a_duration_beyond_what_an_instant_holds_is_far_in_the_future() {
    paused(async {
        let mut sleep = Box::pin(sleep(Duration::MAX));
        let year = Duration::from_secs(365 * 24 * 3600);
        assert!(sleep.deadline() > Instant::now() + year);
        assert!(
            sleep.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())).is_pending()
        );
        time::advance(year).await;
        assert!(!sleep.is_elapsed());
    });
}

#[test]
fn far_deadlines_come_at_their_time_and_not_before() {
    // Beyond two years Tokio's own wheel rounds; these deadlines stay below.
    for days in [1, 9, 13, 14, 40, 300, 600] {
        paused(async move {
            let duration = Duration::from_secs(days * 24 * 3600) + ms(3);
            let start = Instant::now();
            let mut sleeper = waiting(sleep(duration));
            time::advance(duration - ms(2)).await;
            others_wait().await;
            assert!(!sleeper.woken(), "{days} days");
            sleeper.pin().await;
            assert!(start.elapsed() >= duration && start.elapsed() <= duration + ms(1));
        });
    }
}

#[test]
fn a_sleep_is_elapsed_only_after_it_fired() {
    paused(async {
        let mut sleeper = pin!(sleep(ms(5)));
        assert!(!sleeper.is_elapsed());
        sleeper.as_mut().await;
        assert!(sleeper.is_elapsed());
        // Polled again, it is still ready.
        sleeper.as_mut().await;
        sleeper.as_mut().reset(Instant::now() + ms(5));
        assert!(!sleeper.is_elapsed());
    });
}

#[test]
fn a_sleep_may_be_reset_to_a_later_time() {
    paused(async {
        let start = Instant::now();
        let mut sleeper = waiting(sleep(ms(10)));
        time::advance(ms(5)).await;
        sleeper.pin().reset(start + ms(100));
        assert_eq!(sleeper.pin().deadline(), start + ms(100));
        time::advance(ms(50)).await;
        others_wait().await;
        sleeper.pending();
        sleeper.pin().await;
        assert!(start.elapsed() >= ms(100) && start.elapsed() <= ms(101));
    });
}

#[test]
fn a_sleep_may_be_reset_to_an_earlier_time() {
    paused(async {
        let start = Instant::now();
        let mut sleeper = waiting(sleep(ms(1000)));
        sleeper.pin().reset(start + ms(10));
        sleeper.pin().await;
        assert!(start.elapsed() >= ms(10) && start.elapsed() <= ms(11));
    });
}

#[test]
fn reset_into_the_past_ends_it() {
    paused(async {
        time::advance(ms(100)).await;
        let mut sleeper = waiting(sleep(ms(1000)));
        let now = Instant::now();
        sleeper.pin().reset(now - ms(50));
        sleeper.pin().await;
        assert!(now.elapsed() <= ms(1));
    });
}

#[test]
fn reset_before_the_first_poll_counts() {
    paused(async {
        let start = Instant::now();
        let mut sleeper = pin!(sleep(ms(10)));
        sleeper.as_mut().reset(start + ms(30));
        sleeper.await;
        assert!(start.elapsed() >= ms(30));
    });
}

#[test]
fn a_sleep_may_be_reset_after_it_fired() {
    paused(async {
        let mut sleeper = pin!(sleep(ms(10)));
        for _ in 0..5 {
            let start = Instant::now();
            sleeper.as_mut().reset(start + ms(10));
            sleeper.as_mut().await;
            assert!(start.elapsed() >= ms(10) && start.elapsed() <= ms(11));
        }
    });
}

#[test]
fn the_last_waker_is_woken() {
    paused(async {
        let mut sleeper = by_hand(sleep(ms(10)));
        assert!(sleeper.poll_with(Waker::noop()).is_pending());
        sleeper.pending();
        time::advance(ms(11)).await;
        others_wait().await;
        sleeper.woken_and_ready();
    });
}

#[test]
fn a_sleep_polled_in_one_task_completes_in_another() {
    let _watch = watchdog::start();
    let rt = workers_with_drivers(2);
    rt.block_on(async {
        let start = std::time::Instant::now();
        let mut sleeper = Box::pin(sleep(ms(5)));
        let first = task::spawn(async move {
            let polled = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(sleeper.as_mut().poll(cx).is_ready())
            });
            (polled.await, sleeper)
        });
        let (_, sleeper) = first.await.unwrap();
        task::spawn(sleeper).await.unwrap();
        assert!(start.elapsed() >= ms(5));
    });
}

#[test]
fn a_dropped_sleep_wakes_no_task() {
    paused(async {
        let sleeper = waiting(sleep(ms(10)));
        let mut other = waiting(sleep(ms(20)));
        drop(sleeper);
        time::advance(ms(15)).await;
        others_wait().await;
        other.still_waits();
    });
}

#[test]
fn thousands_that_are_dropped_leave_the_others_in_order() {
    paused(async {
        let start = Instant::now();
        let mut kept = Vec::new();
        for number in 0..5000 {
            let sleeper = waiting(sleep(ms(1 + number % 1000)));
            if number % 10 == 0 {
                kept.push((1 + number % 1000, sleeper));
            }
        }
        kept.sort_by_key(|(when, _)| *when);
        for (when, mut sleeper) in kept {
            sleeper.pin().await;
            assert!(start.elapsed() >= ms(when) && start.elapsed() <= ms(when + 1));
        }
    });
}

#[test]
fn a_runtime_driven_from_outside_fires_for_its_own_tasks() {
    // Armed by a thread that is not a worker, awaited by a worker.
    let _watch = watchdog::start();
    let rt = workers_with_drivers(2);
    let entered = rt.enter();
    let start = std::time::Instant::now();
    let sleeper = sleep(ms(5));
    drop(entered);
    rt.block_on(rt.spawn(sleeper)).unwrap();
    assert!(start.elapsed() >= ms(5));
}

#[test]
fn a_sleep_is_woken_while_all_else_is_idle() {
    // Deadlines in falling order: each must shorten the sleep of the thread that sleeps.
    let _watch = watchdog::start();
    for rt in [one_thread_with_drivers(), workers_with_drivers(1), workers_with_drivers(2)] {
        rt.block_on(async {
            let start = std::time::Instant::now();
            let late: Vec<_> =
                [30_u64, 20, 10, 5, 2].map(|count| task::spawn(sleep(ms(count)))).into();
            for (task, least) in late.into_iter().rev().zip([2, 5, 10, 20, 30]) {
                task.await.unwrap();
                assert!(start.elapsed() >= ms(least));
            }
        });
    }
}

#[test]
fn a_thread_that_blocks_on_the_handle_is_woken() {
    let _watch = watchdog::start();
    let rt = workers_with_drivers(1);
    let handle = rt.handle().clone();
    let thread = thread::spawn(move || {
        let start = std::time::Instant::now();
        handle.block_on(async { sleep(ms(3)).await });
        assert!(start.elapsed() >= ms(3));
    });
    thread.join().unwrap();
}

#[test]
fn without_a_runtime_it_panics() {
    let caught = panic_of(|| sleep(ms(1)));
    caught.at(file!(), line!() - 1);
    caught.says(&["there is no reactor running, must be called from the context of a Tokio 1.x"]);
}

#[test]
fn with_time_disabled_the_panic_names_enable_time() {
    let rt = Builder::new_current_thread().build().unwrap();
    let _entered = rt.enter();
    panic_of(|| sleep(ms(1))).says(&["timers are disabled", "enable_time"]);
}

#[test]
fn debug_of_a_sleep_names_its_type() {
    paused(async {
        assert!(format!("{:?}", sleep(ms(1))).starts_with("Sleep"));
    });
}
