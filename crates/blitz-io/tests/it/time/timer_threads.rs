//! Tests that a runtime always has a thread that sleeps until the next timer.

use std::time::{Duration, Instant};

use blitz_io::time::{sleep, timeout};

use crate::support::{runtimes::all_kinds_with_drivers, watchdog};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_sleep_ends_and_never_early() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let begun = Instant::now();
        rt.block_on(async { sleep(SHORT).await });
        assert!(begun.elapsed() >= SHORT);
        let begun = Instant::now();
        rt.block_on(rt.spawn(async { sleep(SHORT).await })).unwrap();
        assert!(begun.elapsed() >= SHORT);
    }
}

#[test]
fn many_sleeps_on_all_workers_end() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let tasks: Vec<_> = (0..1_000_u64)
            .map(|n| rt.spawn(async move { sleep(Duration::from_micros(n * 37 % 9_000)).await }))
            .collect();
        rt.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn a_timeout_ends_what_never_does() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let ended = rt.block_on(async { timeout(SHORT, std::future::pending::<()>()).await });
        assert!(ended.is_err());
        assert_eq!(rt.block_on(async { timeout(SHORT, async { 7 }).await }), Ok(7));
    }
}

/// A root future that yields all the time leaves the thread no chance to park.
#[test]
fn a_busy_root_does_not_stop_the_time() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let sleeper = blitz_io::spawn(sleep(SHORT));
            while !sleeper.is_finished() {
                blitz_io::task::yield_now().await;
            }
        });
    }
}

/// The core that armed the timer is stuck in a poll when another worker goes to sleep, which must
/// then wait for that timer. (A worker that slept before the timer was armed does not know of it,
/// because the timer was left to its core, which was awake.)
#[test]
fn a_stuck_core_does_not_stop_its_timers() {
    let _watch = watchdog::start();
    let rt = blitz_io::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        for _ in 0..20 {
            let (sender, receiver) = std::sync::mpsc::channel();
            blitz_io::spawn(async move {
                let armed = std::sync::Arc::new(blitz_io::sync::Notify::new());
                let there = armed.clone();
                blitz_io::spawn(async move {
                    let mut sleep = std::pin::pin!(sleep(Duration::from_millis(1)));
                    std::future::poll_fn(|cx| {
                        let poll = sleep.as_mut().poll(cx);
                        there.notify_one();
                        poll
                    })
                    .await;
                    sender.send(()).unwrap();
                });
                armed.notified().await;
                wake_another_worker();
                receiver.recv().unwrap();
            })
            .await
            .unwrap();
        }
    });
}

/// Blocks this worker until another worker has run a task.
fn wake_another_worker() {
    let runtime = blitz_io::runtime::Handle::current();
    let (sender, receiver) = std::sync::mpsc::channel();
    let outside =
        std::thread::spawn(move || runtime.spawn(async move { sender.send(()).unwrap() }));
    receiver.recv().unwrap();
    drop(outside.join().unwrap());
}
