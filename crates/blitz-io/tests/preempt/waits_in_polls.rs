//! Tests code that waits in the middle of a long poll: by `block_in_place`, by another executor, or
//! by fork-join. It goes on, whatever happened to its worker.

use std::{sync::mpsc, thread, time::Duration};

use blitz_io::{
    runtime::{Builder, Handle, Preemption, RuntimeFlavor, StallReport},
    sync::{mpsc as channel, oneshot},
    task, time,
};

use crate::support::{
    manual_poll::foreign_block_on, preemption::preempting_with_drivers, watchdog,
};

/// Blocks this thread until its core has been handed off.
fn lose_worker() {
    watchdog::until(|| {
        thread::sleep(Duration::from_millis(1));
        blitz_io::runtime::worker_index().is_none()
    });
}

/// Waits, and then performs several hundred operations.
async fn many_operations() -> usize {
    let (send, mut receive) = channel::channel(4);
    let sender = blitz_io::spawn(async move {
        for n in 0..300 {
            send.send(n).await.unwrap();
        }
    });
    time::sleep(Duration::from_millis(1)).await;
    let mut count = 0;
    while receive.recv().await.is_some() {
        count += 1;
    }
    sender.await.unwrap();
    count
}

#[test]
fn blocking_in_place_after_the_worker_was_lost() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, Duration::from_millis(10));
    let task = rt.spawn(async {
        lose_worker();
        let bridged = task::block_in_place(|| Handle::current().block_on(many_operations()));
        let (send, receive) = oneshot::channel();
        drop(blitz_io::spawn(async move { send.send(7).unwrap() }));
        let received = task::block_in_place(|| receive.blocking_recv());
        (bridged, received, many_operations().await)
    });
    assert_eq!(rt.block_on(task).unwrap(), (300, Ok(7), 300));
}

#[test]
fn blocking_in_place_in_a_poll_that_has_no_worker_from_the_start() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, Duration::from_millis(1));
    let task = task::Builder::new().long_running().spawn_on(
        async {
            while !task::should_yield() {
                thread::sleep(Duration::from_millis(1));
            }
            let same = task::block_in_place(|| Handle::current().block_on(many_operations()));
            let other = task::block_in_place(|| {
                let rt = Builder::new_current_thread().enable_all().build().unwrap();
                rt.block_on(async {
                    let local = task::LocalSet::new();
                    local
                        .run_until(async { task::spawn_local(many_operations()).await.unwrap() })
                        .await
                        + blitz_io::spawn(many_operations()).await.unwrap()
                })
            });
            assert!(task::should_yield(), "its slice has not begun anew");
            (same, other)
        },
        rt.handle(),
    );
    assert_eq!(rt.block_on(task.unwrap()).unwrap(), (300, 600));
}

#[test]
fn another_executor_inside_of_a_task() {
    let _watch = watchdog::start();
    for preemption in [Preemption::new(), Preemption::disabled()] {
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .preemption(preemption)
            .on_task_stall(|_| ())
            .enable_all()
            .build()
            .unwrap();
        let task = rt.spawn(async {
            // A sleep that is longer than a slice, and operations after it.
            foreign_block_on(async {
                time::sleep(Duration::from_millis(30)).await;
                let semaphore = blitz_io::sync::Semaphore::new(1);
                for _ in 0..100 {
                    drop(semaphore.acquire().await.unwrap());
                }
                7
            })
        });
        assert_eq!(rt.block_on(task).unwrap(), 7);
    }
}

/// Local tasks whose polls are longer than a slice, in a set that a `block_on` polls.
#[test]
fn a_set_of_local_tasks_is_reported_where_that_is_requested() {
    let _watch = watchdog::start();
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let (sender, reports) = mpsc::channel();
        builder.on_task_stall(move |stall| drop(sender.send(stall.clone()))).enable_all();
        let rt = builder.worker_threads(2).build().unwrap();
        let marked = is_marked_and_goes_on(move || reports.recv().unwrap());
        let stall = rt.block_on(task::LocalSet::new().run_until(marked));
        assert!(stall.spawned_at().file().ends_with("waits_in_polls.rs"));
        assert!(!stall.was_handed_off());
        // This thread is a worker of the current-thread runtime, and none of the multi-thread one.
        let is_worker = rt.handle().runtime_flavor() == RuntimeFlavor::CurrentThread;
        assert_eq!(stall.worker().is_some(), is_worker);
        assert_eq!(stall.to_string().contains("of a `block_on`"), !is_worker, "{stall}");
    }
}

/// Runs a local task that computes until it should yield, and then calls `then`.
async fn is_marked_and_goes_on<R: 'static>(then: impl FnOnce() -> R + 'static) -> R {
    let task = task::spawn_local(async {
        while !task::should_yield() {
            std::hint::spin_loop();
        }
        then()
    });
    task.await.unwrap()
}

/// More threads run local sets than the monitor has watch records for, some of them inside of polls
/// of other sets. Every set completes, and stalls of watched sets are reported.
#[test]
fn sets_on_many_threads_and_inside_of_each_other_get_on() {
    let _watch = watchdog::start();
    let (sender, reports) = mpsc::channel();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .on_task_stall(move |stall| drop(sender.send(stall.clone())))
        .enable_all()
        .build()
        .unwrap();
    fn inner() {
        let set = task::LocalSet::new();
        let sleeps = set.run_until(async {
            task::spawn_local(async { thread::sleep(Duration::from_millis(30)) }).await
        });
        Handle::current().block_on(sleeps).unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let set = task::LocalSet::new();
                rt.block_on(set.run_until(async {
                    task::spawn_local(async {
                        // A set inside of the poll of another set's task, through `block_in_place`.
                        blitz_io::spawn(async move { task::block_in_place(inner) }).await.unwrap();
                        thread::sleep(Duration::from_millis(30));
                    })
                    .await
                }))
                .unwrap();
            });
        }
    });
    // The seats are free again.
    let is_of_set = |stall: &StallReport| stall.to_string().contains("of a `block_on`");
    let marked = is_marked_and_goes_on(move || reports.iter().any(|stall| is_of_set(&stall)));
    assert!(rt.block_on(task::LocalSet::new().run_until(marked)));
}

#[cfg(feature = "parallel")]
#[test]
fn fork_join_sections_in_tasks_that_lose_their_workers() {
    use blitz_io::parallel;

    fn sum(numbers: &[u64]) -> u64 {
        if numbers.len() <= 64 {
            let end = std::time::Instant::now() + Duration::from_micros(100);
            while std::time::Instant::now() < end {
                std::hint::spin_loop();
            }
            return numbers.iter().sum();
        }
        let (left, right) = numbers.split_at(numbers.len() / 2);
        let (left, right) = parallel::join(|| sum(left), || sum(right));
        left + right
    }

    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, Duration::from_millis(1));
    let tasks: Vec<_> = (0..20)
        .map(|n: u64| {
            rt.spawn(async move {
                let numbers: Vec<u64> = (n..n + 2048).collect();
                if n.is_multiple_of(2) {
                    thread::sleep(Duration::from_millis(3));
                }
                let first = sum(&numbers);
                task::yield_now().await;
                first + sum(&numbers)
            })
        })
        .collect();
    for (n, task) in (0..).zip(tasks) {
        let expected: u64 = (n..n + 2048).sum();
        assert_eq!(rt.block_on(task).unwrap(), 2 * expected);
    }
}
