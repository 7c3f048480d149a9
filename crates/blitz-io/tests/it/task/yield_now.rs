//! Tests that `yield_now` lets the other tasks have their turn.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Poll, Waker},
};

use blitz_io::{
    runtime::{Builder, Runtime},
    task::yield_now,
};

use crate::support::{
    gate::Gate,
    runtimes::{all_kinds, one_thread, workers},
    watchdog,
};

#[test]
fn two_yielders_on_one_thread_alternate() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let order: Arc<Mutex<Vec<u8>>> = Arc::default();
    let yielder = |name| {
        let order = order.clone();
        async move {
            for _ in 0..100 {
                order.lock().unwrap().push(name);
                yield_now().await;
            }
        }
    };
    let (one, two) = (rt.spawn(yielder(1)), rt.spawn(yielder(2)));
    rt.block_on(async { (one.await.unwrap(), two.await.unwrap()) });
    assert_eq!(*order.lock().unwrap(), [1, 2].repeat(100));
}

/// Spawns yielders on the one worker of `rt`, lets each yield `yields` times once all have begun,
/// and returns the largest lead of one over another.
fn largest_lead(rt: &Runtime, yielders: usize, yields: u64) -> u64 {
    let counts: Arc<Vec<AtomicU64>> = Arc::new((0..yielders).map(|_| AtomicU64::new(0)).collect());
    let begun = Arc::new(AtomicU64::new(0));
    let lead = Arc::new(AtomicU64::new(0));
    let all = counts.clone();
    let largest = lead.clone();
    rt.block_on(rt.spawn(async move {
        let tasks: Vec<_> = (0..yielders)
            .map(|index| {
                let (counts, begun, lead) = (all.clone(), begun.clone(), lead.clone());
                blitz_io::spawn(async move {
                    begun.fetch_add(1, Relaxed);
                    while begun.load(Relaxed) < counts.len() as u64 {
                        yield_now().await;
                    }
                    for _ in 0..yields {
                        let mine = counts[index].fetch_add(1, Relaxed) + 1;
                        let least = counts.iter().map(|count| count.load(Relaxed)).min().unwrap();
                        lead.fetch_max(mine - least, Relaxed);
                        yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }))
    .unwrap();
    largest.load(Relaxed)
}

#[test]
fn yielders_on_one_worker_go_on_evenly() {
    let _watch = watchdog::start();
    let rt = workers(1);
    // A task that yields is queued behind all the others: one round of lead, and a second for the
    // task that ran before the last had begun.
    let lead = largest_lead(&rt, 2, 1_000);
    assert!(lead <= 2, "one of two is {lead} rounds ahead");
    let lead = largest_lead(&rt, 100, 200);
    assert!(lead <= 2, "one of a hundred is {lead} rounds ahead");
}

#[test]
fn yielders_that_do_not_fit_into_one_queue_all_go_on() {
    let _watch = watchdog::start();
    // For tasks that wait in two queues there is no promise of evenness, only that none is left
    // out. The number of yields is chosen: ten times what is nearly always enough.
    let (yielders, yields) = (1_000, 300);
    let rt = workers(1);
    let counts: Arc<Vec<AtomicU64>> = Arc::new((0..yielders).map(|_| AtomicU64::new(0)).collect());
    rt.block_on(rt.spawn(async move {
        let tasks: Vec<_> = (0..yielders)
            .map(|index| {
                let counts = counts.clone();
                blitz_io::spawn(async move {
                    for _ in 0..yields {
                        counts[index].fetch_add(1, Relaxed);
                        yield_now().await;
                    }
                    counts.iter().filter(|count| count.load(Relaxed) == 0).count()
                })
            })
            .collect();
        for task in tasks {
            let left_out = task.await.unwrap();
            assert_eq!(left_out, 0, "one ran to its end before others had begun");
        }
    }))
    .unwrap();
}

#[test]
fn yielding_alone_comes_back() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let yields = async {
            for _ in 0..10_000 {
                yield_now().await;
            }
        };
        rt.block_on(rt.spawn(yields)).unwrap();
        rt.block_on(async {
            for _ in 0..10_000 {
                yield_now().await;
            }
        });
    }
}

/// Returns the largest number of polls of tasks of `rt` between the return of a spawn from outside
/// and the first poll of the spawned task, while `yielders` tasks yield.
fn longest_wait(rt: &Runtime, yielders: usize) -> u64 {
    let (yields, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    for _ in 0..yielders {
        let (yields, stop) = (yields.clone(), stop.clone());
        rt.spawn(async move {
            while !stop.load(Relaxed) {
                yields.fetch_add(1, Relaxed);
                yield_now().await;
            }
        });
    }
    watchdog::until(|| yields.load(Relaxed) > 1_000);
    let mut longest = 0;
    for _ in 0..200 {
        let (ran, at) = (Gate::new(), Arc::new(AtomicU64::new(0)));
        let (done, count, seen) = (ran.clone(), yields.clone(), at.clone());
        rt.spawn(async move {
            seen.store(count.load(Relaxed), Relaxed);
            done.open();
        });
        let spawned_at = yields.load(Relaxed);
        ran.block();
        longest = longest.max(at.load(Relaxed).saturating_sub(spawned_at));
    }
    stop.store(true, Relaxed);
    longest
}

#[test]
fn yielders_do_not_starve_what_comes_from_outside() {
    let _watch = watchdog::start();
    let interval = 31;
    for yielders in [1, 50] {
        let rt = Builder::new_multi_thread()
            .worker_threads(1)
            .global_queue_interval(interval)
            .build()
            .unwrap();
        let longest = longest_wait(&rt, yielders as usize);
        // The task is taken out of the injector after at most `interval` polls, and is then queued
        // behind the tasks in the worker's queue.
        let bound = u64::from(interval + yielders) * 2;
        assert!(longest <= bound, "{longest} polls went by, and {bound} are the bound");
    }
}

#[test]
fn yielders_do_not_starve_what_comes_from_outside_with_a_tuned_interval() {
    let _watch = watchdog::start();
    let rt = workers(1);
    // The interval is tuned for about a millisecond; ten thousand polls take several.
    let longest = longest_wait(&rt, 1);
    assert!(longest <= 10_000, "{longest} polls went by");
}

#[test]
fn yielders_do_not_starve_what_comes_from_outside_on_one_thread() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let stop = Gate::new();
    std::thread::scope(|scope| {
        scope.spawn(|| rt.block_on(stop.opened()));
        let longest = longest_wait(&rt, 3);
        stop.open();
        assert!(longest <= 10_000, "{longest} polls went by");
    });
}

#[test]
fn two_that_wake_each_other_do_not_starve_a_third() {
    let _watch = watchdog::start();
    for rt in [workers(1), one_thread()] {
        let rounds = Arc::new(AtomicU64::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let slots: Arc<[Mutex<Option<Waker>>; 2]> = Arc::default();
        let player = |me: usize| {
            let (rounds, done, slots) = (rounds.clone(), done.clone(), slots.clone());
            poll_fn(move |cx| {
                *slots[me].lock().unwrap() = Some(cx.waker().clone());
                rounds.fetch_add(1, Relaxed);
                let other = slots[1 - me].lock().unwrap().take();
                match other {
                    Some(waker) => waker.wake(),
                    None => cx.waker().wake_by_ref(),
                }
                if done.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
            })
        };
        let (one, two) = (player(0), player(1));
        let (count, over) = (rounds.clone(), done.clone());
        let waited = rt
            .block_on(rt.spawn(async move {
                blitz_io::spawn(one);
                blitz_io::spawn(two);
                let before = count.load(Relaxed);
                let third = blitz_io::spawn(async move { count.load(Relaxed) - before });
                let waited = third.await.unwrap();
                over.store(true, Relaxed);
                waited
            }))
            .unwrap();
        assert!(waited <= 1_000, "the third waited for {waited} polls of the other two");
    }
}
