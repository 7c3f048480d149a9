//! Tests the paused clock: which code may pause it, what advances it, and in which order timers
//! fire.

use std::{
    cell::RefCell,
    future::pending,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Builder,
    sync::{Notify, oneshot},
    task,
    time::{self, Instant, advance, interval, sleep, timeout},
};

use crate::support::{
    caught_panic::panic_of,
    clock::{ms, paused},
    gate::Gate,
    manual_poll::{once, waiting},
    runtimes::{on_one_thread, others_wait, workers_with_drivers},
    sockets, watchdog,
};

#[test]
fn a_sleep_of_years_takes_no_real_time() {
    paused(async {
        let start = Instant::now();
        let years = Duration::from_secs(2 * 365 * 24 * 3600 - 24 * 3600);
        sleep(years).await;
        assert!(start.elapsed() >= years);
    });
}

#[test]
fn the_clock_advances_only_when_nothing_else_can_run() {
    paused(async {
        let start = Instant::now();
        let worker = task::spawn(async move {
            for _ in 0..1000 {
                task::yield_now().await;
                assert_eq!(start.elapsed(), Duration::ZERO, "work is left, yet time moved");
            }
        });
        sleep(ms(10)).await;
        assert!(worker.is_finished());
        assert!(start.elapsed() >= ms(10) && start.elapsed() <= ms(11));
    });
}

#[test]
fn timers_fire_in_the_order_of_their_deadlines() {
    let order = Rc::new(RefCell::new(Vec::new()));
    let seen = order.clone();
    paused(async move {
        let local = task::LocalSet::new();
        for when in [50_u64, 10, 40, 20, 70_000, 30, 4_000_000, 65, 64, 63] {
            let order = order.clone();
            local.spawn_local(async move {
                sleep(ms(when)).await;
                order.borrow_mut().push(when);
            });
        }
        local.await;
    });
    assert!(seen.borrow().is_sorted() && seen.borrow().len() == 10, "{:?}", seen.borrow());
}

#[test]
fn advance_moves_the_clock_by_exactly_so_much() {
    paused(async {
        let start = Instant::now();
        let mut sum = Duration::ZERO;
        for step in [0, 1, 999, 1_000_000, 1_500_000, 123_456_789, 5_000_000_000] {
            let step = Duration::from_nanos(step);
            advance(step).await;
            sum += step;
            assert_eq!(start.elapsed(), sum);
        }
    });
}

#[test]
fn advance_past_a_timer_wakes_it() {
    paused(async {
        let mut sleeper = waiting(sleep(ms(10)));
        let mut later = waiting(sleep(ms(1000)));
        advance(ms(20)).await;
        others_wait().await;
        sleeper.woken_and_ready();
        later.still_waits();
    });
}

#[test]
fn advance_lets_tasks_see_what_was_due() {
    paused(async {
        let done = Arc::new(AtomicBool::new(false));
        let fired = done.clone();
        task::spawn(async move {
            sleep(ms(5)).await;
            fired.store(true, Relaxed);
        });
        others_wait().await;
        advance(ms(6)).await;
        others_wait().await;
        assert!(done.load(Relaxed));
    });
}

#[test]
fn pause_stops_a_running_clock_and_resume_lets_it_go_on() {
    on_one_thread(async {
        time::pause();
        let stopped = Instant::now();
        sleep(Duration::from_secs(100)).await;
        assert!(stopped.elapsed() >= Duration::from_secs(100));
        time::resume();
        let resumed = Instant::now();
        assert!(resumed >= stopped + Duration::from_secs(100), "time does not jump back");
        let real = std::time::Instant::now();
        sleep(ms(3)).await;
        assert!(real.elapsed() >= ms(3), "the clock is real again");
        time::pause();
        sleep(Duration::from_secs(100)).await;
    });
}

#[test]
fn invalid_arguments_panic() {
    on_one_thread(async {
        panic_of(time::resume).says(&["time is not frozen"]);
        panic_of(|| once(advance(ms(1)))).says(&["time is not frozen"]);
        time::pause();
        panic_of(time::pause).says(&["time is already frozen"]);
    });
    panic_of(time::pause).says(&["time cannot be frozen from outside the Tokio runtime"]);
    panic_of(time::resume).says(&["time cannot be frozen from outside the Tokio runtime"]);
}

#[test]
fn a_runtime_with_several_threads_cannot_be_paused() {
    let _watch = watchdog::start();
    workers_with_drivers(1).block_on(async {
        panic_of(time::pause)
            .says(&["`time::pause()` requires the `current_thread` Tokio runtime"]);
    });
}

#[test]
fn a_blocking_task_holds_the_clock() {
    paused(async {
        let start = Instant::now();
        let gate = Gate::new();
        let opened = gate.clone();
        let blocking = task::spawn_blocking(move || opened.block());
        let mut sleeper = waiting(sleep(ms(10)));
        others_wait().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        gate.open();
        blocking.await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
        sleeper.pin().await;
        assert!(start.elapsed() >= ms(10));
    });
}

/// A runtime that parks just when the blocking task ends must see that a task is woken, and not
/// only that the clock may advance again.
#[test]
fn the_end_of_a_blocking_task_comes_before_the_next_timer() {
    paused(async {
        let mut sleeper = waiting(sleep(ms(10)));
        let start = Instant::now();
        for round in 0..3_000 {
            task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(start.elapsed(), Duration::ZERO, "round {round}");
        }
        sleeper.pin().await;
    });
}

#[test]
fn a_timeout_round_a_blocking_task_is_not_cut_short() {
    paused(async {
        let slow = task::spawn_blocking(|| {
            let start = std::time::Instant::now();
            while start.elapsed() < ms(5) {}
            7
        });
        assert_eq!(timeout(ms(1000), slow).await.unwrap().unwrap(), 7);
    });
}

#[test]
fn a_timer_that_is_never_reached_does_not_hold_up_the_rest() {
    paused(async {
        let forever = task::spawn(sleep(Duration::MAX));
        sleep(ms(10)).await;
        forever.abort();
        assert!(forever.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn wake_ups_from_other_threads_are_seen_while_no_timer_is_armed() {
    paused(async {
        let start = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::spawn(move || sender.send(3).unwrap());
        assert_eq!(receiver.await, Ok(3));
        thread.join().unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

#[test]
fn sockets_work_beside_it() {
    paused(async {
        let (mut a, mut b) = sockets::tcp_pair().await;
        a.write_all(b"hello").await.unwrap();
        let mut buffer = [0; 5];
        b.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"hello");
    });
}

#[test]
fn an_interval_keeps_its_period_on_it() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(ms(100));
        for number in 0..50 {
            interval.tick().await;
            let (now, due) = (start.elapsed(), ms(100 * number));
            assert!(now >= due && now <= due + ms(1));
        }
    });
}

#[test]
fn a_clock_starts_paused_only_when_configured() {
    let rt = Builder::new_current_thread().enable_time().start_paused(false).build().unwrap();
    rt.block_on(async {
        panic_of(time::resume).says(&["time is not frozen"]);
    });
}

#[test]
fn a_yielding_task_beside_it_does_not_stop_it() {
    // A task that waits for a notification does not count as work.
    paused(async {
        let notify = Arc::new(Notify::new());
        let waiter = task::spawn({
            let notify = notify.clone();
            async move { notify.notified().await }
        });
        sleep(ms(5)).await;
        assert!(!waiter.is_finished());
        notify.notify_one();
        waiter.await.unwrap();
    });
}

#[test]
fn timeouts_of_many_tasks_all_fire() {
    paused(async {
        let tasks: Vec<_> = (0..300_u64)
            .map(|number| task::spawn(timeout(ms(number * 7 % 401), pending::<()>())))
            .collect();
        for task in tasks {
            assert!(task.await.unwrap().is_err());
        }
    });
}

#[test]
fn clocks_of_two_runtimes_are_their_own() {
    let _watch = watchdog::start();
    let make = || Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (a, b) = (make(), make());
    let start = a.block_on(async { Instant::now() });
    a.block_on(advance(Duration::from_secs(500)));
    let there = b.block_on(async { Instant::now() });
    assert!(there < start + Duration::from_secs(400));
    assert!(a.block_on(async { start.elapsed() }) == Duration::from_secs(500));
}
