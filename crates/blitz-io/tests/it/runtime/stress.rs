//! Runs a large mix of operations at once, and accounts for every task.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Poll, Waker},
    time::Duration,
};

use blitz_io::task::{self, AbortHandle, JoinHandle};

use crate::support::{
    drop_tally::{Tally, Token},
    runtimes::{one_thread, workers},
    watchdog,
};

/// Marsaglia's xorshift: the same seed repeats a storm, as far as the threads' timing allows.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// The counts of completed and cancelled tasks, as the tasks count them themselves.
#[derive(Clone, Default)]
struct Ends(Arc<(AtomicUsize, AtomicUsize)>);

/// Counts a completion or, if it is dropped before, a cancellation.
struct End(Ends, bool, #[expect(dead_code, reason = "counted in its drop")] Token);

impl Drop for End {
    fn drop(&mut self) {
        let (completed, cancelled) = &*self.0.0;
        if self.1 { completed } else { cancelled }.fetch_add(1, Relaxed);
    }
}

async fn body(mut end: End, yields: u64, output: Token) -> Token {
    for _ in 0..yields {
        task::yield_now().await;
    }
    end.1 = true;
    output
}

/// Spawns, aborts, joins and detaches `count` tasks from inside and outside.
fn spawn_abort_and_join_at_random(count: usize, worker_count: usize, seed: u64) {
    println!("{count} tasks on {worker_count} workers, seed {seed:#x}");
    let rt = workers(worker_count);
    let (futures, outputs, ends) = (Tally::new(), Tally::new(), Ends::default());
    let (joined_ok, joined_cancelled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let throwers = 2;
    std::thread::scope(|scope| {
        for thrower in 0..throwers {
            let (rt, futures, outputs, ends) = (&rt, &futures, &outputs, &ends);
            let (joined_ok, joined_cancelled) = (&joined_ok, &joined_cancelled);
            scope.spawn(move || {
                let mut dice = Dice(seed + thrower as u64 + 1);
                let mut handles: Vec<JoinHandle<Token>> = Vec::new();
                let mut aborts: Vec<AbortHandle> = Vec::new();
                let join = |handle: JoinHandle<Token>| match rt.block_on(handle) {
                    Ok(output) => {
                        output.keep();
                        joined_ok.fetch_add(1, Relaxed);
                    }
                    Err(error) => {
                        assert!(error.is_cancelled(), "{error}");
                        joined_cancelled.fetch_add(1, Relaxed);
                    }
                };
                for _ in 0..count / throwers {
                    let end = End(ends.clone(), false, futures.token());
                    let never = dice.roll(16) == 0;
                    let future = body(end, dice.roll(4), outputs.token());
                    let handle = if dice.roll(4) == 0 {
                        // From inside: a worker spawns the task.
                        let spawned = rt.spawn(async move { blitz_io::spawn(future) });
                        rt.block_on(spawned).unwrap()
                    } else if never {
                        rt.spawn(async move {
                            std::future::pending::<()>().await;
                            future.await
                        })
                    } else {
                        rt.spawn(future)
                    };
                    match dice.roll(8) {
                        0 => handle.abort(),
                        1 => aborts.push(handle.abort_handle()),
                        2 if !aborts.is_empty() => {
                            aborts.swap_remove(dice.roll(aborts.len() as u64) as usize).abort();
                        }
                        _ => {}
                    }
                    if never {
                        handle.abort();
                    }
                    match dice.roll(4) {
                        0 => drop(handle),
                        1 => join(handle),
                        _ => handles.push(handle),
                    }
                    if handles.len() > 256 {
                        handles.drain(..).for_each(&join);
                    }
                }
                aborts.drain(..).for_each(|abort| abort.abort());
                handles.drain(..).for_each(&join);
            });
        }
    });
    let spawned = count / throwers * throwers;
    drop(rt);
    futures.assert_all_dropped(spawned);
    outputs.assert_all_dropped(spawned);
    let (completed, cancelled) = (ends.0.0.load(Relaxed), ends.0.1.load(Relaxed));
    assert_eq!(completed + cancelled, spawned);
    assert!(joined_ok.load(Relaxed) <= completed && joined_cancelled.load(Relaxed) <= cancelled);
    assert!(completed > spawned / 4 && cancelled > spawned / 50, "{completed}, {cancelled}");
}

#[test]
fn a_hundred_thousand_tasks_spawned_aborted_and_joined_at_random() {
    let _watch = watchdog::start_for(Duration::from_secs(120));
    for worker_count in [1, 2, 8] {
        spawn_abort_and_join_at_random(100_000 / 3, worker_count, 0x5EED);
    }
}

#[test]
#[ignore = "long: run by `cargo xtask stress`"]
fn a_million_tasks_spawned_aborted_and_joined_at_random() {
    let _watch = watchdog::start_for(Duration::from_secs(30 * 60));
    for (round, worker_count) in [1, 2, 8].into_iter().enumerate() {
        spawn_abort_and_join_at_random(1_000_000, worker_count, 0xB1172 << round);
    }
}

/// Runs tasks that wait until they were woken a given number of times, and threads that wake them.
fn storm_of_wakes(rt: &blitz_io::runtime::Runtime, tasks: usize, wakes: usize, run: impl Fn()) {
    struct Target {
        count: AtomicUsize,
        waker: Mutex<Option<Waker>>,
    }
    let threads = 3;
    let targets: Arc<Vec<Target>> = Arc::new(
        (0..tasks)
            .map(|_| Target { count: AtomicUsize::new(0), waker: Mutex::new(None) })
            .collect(),
    );
    let handles: Vec<_> = (0..tasks)
        .map(|index| {
            let targets = targets.clone();
            rt.spawn(poll_fn(move |cx| {
                let target = &targets[index];
                // The waker is stored before the count is read, so a wake in between is seen.
                *target.waker.lock().unwrap() = Some(cx.waker().clone());
                let count = target.count.load(Relaxed);
                if count == threads * wakes { Poll::Ready(count) } else { Poll::Pending }
            }))
        })
        .collect();
    std::thread::scope(|scope| {
        for seed in 1..=threads {
            let targets = targets.clone();
            scope.spawn(move || {
                let mut dice = Dice(seed as u64);
                for _ in 0..wakes {
                    for target in &*targets {
                        target.count.fetch_add(1, Relaxed);
                        let waker = target.waker.lock().unwrap().clone();
                        match (waker, dice.roll(3)) {
                            (Some(waker), 0) => waker.wake(),
                            (Some(waker), _) => waker.wake_by_ref(),
                            (None, _) => {}
                        }
                    }
                }
            });
        }
        run();
    });
    for handle in handles {
        assert_eq!(rt.block_on(handle).unwrap(), threads * wakes);
    }
}

#[test]
fn a_storm_of_wakes_from_outside_loses_none() {
    let _watch = watchdog::start();
    for count in [1, 2, 8] {
        storm_of_wakes(&workers(count), 50, 200, || {});
        storm_of_wakes(&workers(count), 1, 5_000, || {});
    }
    let rt = one_thread();
    storm_of_wakes(&rt, 50, 200, || {});
}

#[test]
fn shutdown_in_the_middle_of_a_storm_drops_every_task_once() {
    let _watch = watchdog::start_for(Duration::from_secs(120));
    for round in 0..200_u64 {
        let rt = if round % 5 == 4 { one_thread() } else { workers(1 + (round % 3) as usize) };
        let (tally, stop) = (Tally::new(), Arc::new(AtomicBool::new(false)));
        let wakers: Arc<Mutex<Vec<Waker>>> = Arc::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let throwers: Vec<_> = (0..2)
            .map(|thrower| {
                let (handle, tally, stop) = (rt.handle().clone(), tally.clone(), stop.clone());
                let (awake, begun) = (wakers.clone(), begun.clone());
                std::thread::spawn(move || {
                    let mut dice = Dice(round * 2 + thrower + 1);
                    let mut handles = Vec::new();
                    // Goes on for a while after the end, too.
                    let mut after = 0;
                    while after < 20 {
                        after += u32::from(stop.load(Relaxed));
                        let (token, wakers) = (tally.token(), awake.clone());
                        let mut yields = dice.roll(4);
                        let task = handle.spawn(poll_fn(move |cx| {
                            token.keep();
                            if yields == 3 {
                                wakers.lock().unwrap().push(cx.waker().clone());
                                return Poll::Pending;
                            }
                            if yields == 0 {
                                return Poll::Ready(());
                            }
                            yields -= 1;
                            cx.waker().wake_by_ref();
                            Poll::Pending
                        }));
                        begun.fetch_add(1, Relaxed);
                        match dice.roll(4) {
                            0 => task.abort(),
                            1 => drop(task),
                            _ => handles.push(task),
                        }
                        let woken = awake.lock().unwrap().pop();
                        if let Some(waker) = woken {
                            waker.wake();
                        }
                    }
                    handles
                })
            })
            .collect();
        watchdog::until(|| begun.load(Relaxed) >= 50);
        drop(rt);
        stop.store(true, Relaxed);
        for thrower in throwers {
            for mut handle in thrower.join().unwrap() {
                assert!(
                    crate::support::manual_poll::poll_once(&mut handle).is_ready(),
                    "a task was lost"
                );
            }
        }
        assert_eq!(tally.made(), tally.dropped(), "round {round}");
        wakers.lock().unwrap().drain(..).for_each(Waker::wake);
    }
}
