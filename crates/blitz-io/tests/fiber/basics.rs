//! Tests what fibers can do: wait in the middle of a call, return values, panic, and use the
//! runtime.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use blitz_io::{
    channel::{mpsc as channel, oneshot},
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task,
    time::sleep,
};

use crate::{
    fiber,
    support::runtimes::{one_thread_with_drivers, workers_with_drivers},
};

pub(crate) fn both(test: impl Fn(&Runtime)) {
    test(&workers_with_drivers(2));
    test(&one_thread_with_drivers());
}

#[test]
fn a_fiber_waits_in_the_middle_of_a_call() {
    fn deep(depth: u32, receiver: oneshot::Receiver<u32>) -> u32 {
        if depth == 0 { fiber::wait(receiver).unwrap() } else { deep(depth - 1, receiver) + 1 }
    }
    both(|rt| {
        let (sender, receiver) = oneshot::channel();
        let got = rt.block_on(async {
            let fiber = fiber::spawn(move || deep(50, receiver));
            task::yield_now().await;
            sender.send(7).unwrap();
            fiber.await.unwrap()
        });
        assert_eq!(got, 57);
    });
}

#[test]
fn timers_tasks_and_other_fibers_can_be_waited_for() {
    both(|rt| {
        let sum = rt.block_on(async {
            fiber::spawn(|| {
                fiber::wait(sleep(Duration::from_millis(2)));
                let task = blitz_io::spawn(async {
                    sleep(Duration::from_millis(1)).await;
                    1
                });
                let fiber = fiber::spawn(|| {
                    fiber::wait(sleep(Duration::from_millis(1)));
                    2
                });
                fiber::wait(task).unwrap() + fiber::wait(fiber).unwrap()
            })
            .await
            .unwrap()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_fiber_stays_on_its_thread_and_keeps_what_is_not_send() {
    both(|rt| {
        let fibers: Vec<_> = (0..64)
            .map(|_| {
                fiber::Builder::new()
                    .spawn_on(
                        || {
                            let (thread, shared) = (thread::current().id(), Rc::new(Cell::new(0)));
                            for round in 0..50 {
                                let clone = shared.clone();
                                fiber::wait(blitz_io::spawn(async {})).unwrap();
                                fiber::wait(task::yield_now());
                                clone.set(clone.get() + round);
                                assert_eq!(thread::current().id(), thread);
                            }
                            shared.get()
                        },
                        rt.handle(),
                    )
                    .unwrap()
            })
            .collect();
        rt.block_on(async {
            for fiber in fibers {
                assert_eq!(fiber.await.unwrap(), 49 * 50 / 2);
            }
        });
    });
}

#[test]
fn fibers_spread_over_their_threads_and_no_further() {
    let rt = Builder::new_multi_thread().worker_threads(2).fiber_threads(3).build().unwrap();
    let seen = rt.block_on(async {
        let fibers: Vec<_> = (0..60)
            .map(|_| {
                fiber::spawn(|| {
                    fiber::wait(task::yield_now());
                    thread::current().id()
                })
            })
            .collect();
        let mut seen = std::collections::HashSet::new();
        for fiber in fibers {
            seen.insert(fiber.await.unwrap());
        }
        seen
    });
    assert!((1..=3).contains(&seen.len()), "{seen:?}");
    // While all 60 fibers are alive, each of the three threads has some.
    let (sender, receiver) = mpsc::channel();
    let fibers: Vec<_> = (0..60)
        .map(|_| {
            let sender = sender.clone();
            let f = move || {
                sender.send(thread::current().id()).unwrap();
                fiber::wait(std::future::pending::<()>());
            };
            fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()
        })
        .collect();
    let seen: std::collections::HashSet<_> = receiver.iter().take(60).collect();
    assert_eq!(seen.len(), 3);
    drop((rt, fibers));
}

#[test]
fn wakes_from_every_thread_reach_the_fiber() {
    both(|rt| {
        const SENDERS: usize = 4;
        const MESSAGES: usize = 2_000;
        let (sender, mut receiver) = channel::channel(8);
        let fiber = fiber::Builder::new()
            .spawn_on(
                move || {
                    let mut sum = 0;
                    while let Some(value) = fiber::wait(receiver.recv()) {
                        sum += value;
                    }
                    sum
                },
                rt.handle(),
            )
            .unwrap();
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let sender = sender.clone();
                thread::spawn(move || {
                    (0..MESSAGES).for_each(|value| sender.blocking_send(value).unwrap());
                })
            })
            .collect();
        drop(sender);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(rt.block_on(fiber).unwrap(), SENDERS * MESSAGES * (MESSAGES - 1) / 2);
    });
}

#[test]
fn the_runtime_the_task_and_the_budget_are_the_fibers_own() {
    both(|rt| {
        rt.block_on(async {
            let flavor = Handle::current().runtime_flavor();
            let handle = fiber::spawn(move || {
                let id = task::id();
                for _ in 0..300 {
                    // More operations than one budget allows. Each is ready at once, so the fiber
                    // waits only when its budget is used up.
                    fiber::wait(task::consume_budget());
                }
                fiber::wait(task::yield_now());
                assert_eq!(Handle::current().runtime_flavor(), flavor);
                assert_eq!(task::id(), id);
                id
            });
            assert_eq!(handle.id(), handle.await.unwrap());
        });
    });
}

#[test]
fn a_runtime_that_was_entered_stays_entered_in_its_fiber_alone() {
    let outer = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let inner = Builder::new_current_thread().build().unwrap();
    let entered = inner.handle().clone();
    let (go, gone) = oneshot::channel::<()>();
    let first = fiber::Builder::new()
        .spawn_on(
            move || {
                let outside = Handle::current().runtime_flavor();
                let guard = entered.enter();
                assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::CurrentThread);
                fiber::wait(gone).unwrap();
                assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::CurrentThread);
                drop(guard);
                assert_eq!(Handle::current().runtime_flavor(), outside);
            },
            outer.handle(),
        )
        .unwrap();
    let second = fiber::Builder::new()
        .spawn_on(
            move || {
                for _ in 0..10 {
                    assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::MultiThread);
                    fiber::wait(task::yield_now());
                }
                go.send(()).unwrap();
            },
            outer.handle(),
        )
        .unwrap();
    outer.block_on(async {
        second.await.unwrap();
        first.await.unwrap();
    });
}

blitz_io::task_local! {
    static NUMBER: u32;
}

#[test]
fn task_locals_stay_with_their_fiber() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let fibers: Vec<_> = (0..20)
        .map(|number| {
            let f = move || {
                assert!(NUMBER.try_with(|_| ()).is_err());
                NUMBER.sync_scope(number, || {
                    for round in 0..20 {
                        fiber::wait(task::yield_now());
                        assert_eq!(NUMBER.get(), number);
                        NUMBER.sync_scope(1000 + round, || {
                            fiber::wait(task::yield_now());
                            assert_eq!(NUMBER.get(), 1000 + round);
                        });
                        // Through a future, and from inside of its poll.
                        fiber::wait(NUMBER.scope(2000, async {
                            fiber::wait(task::yield_now());
                            task::yield_now().await;
                            assert_eq!(NUMBER.get(), 2000);
                        }));
                    }
                });
                assert!(NUMBER.try_with(|_| ()).is_err());
            };
            fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()
        })
        .collect();
    rt.block_on(async {
        for fiber in fibers {
            fiber.await.unwrap();
        }
    });
}

#[test]
fn a_borrowed_task_local_is_borrowed_by_its_fiber_alone() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let (go, gone) = oneshot::channel::<()>();
    let spawn =
        |f: Box<dyn FnOnce() + Send>| fiber::Builder::new().spawn_on(f, rt.handle()).unwrap();
    let first = spawn(Box::new(move || {
        NUMBER.sync_scope(1, || NUMBER.with(|_| fiber::wait(gone).unwrap()));
    }));
    let second = spawn(Box::new(move || {
        // This would panic if the other fiber's borrow counted here.
        NUMBER.sync_scope(2, || fiber::wait(task::yield_now()));
        go.send(()).unwrap();
    }));
    rt.block_on(async {
        second.await.unwrap();
        first.await.unwrap();
    });
}

#[test]
fn a_future_that_is_being_polled_may_wait() {
    both(|rt| {
        let got = rt.block_on(async {
            fiber::spawn(|| {
                fiber::wait(async {
                    let one = fiber::wait(async {
                        task::yield_now().await;
                        1
                    });
                    task::yield_now().await;
                    one + 1
                })
            })
            .await
            .unwrap()
        });
        assert_eq!(got, 2);
    });
}

#[test]
fn a_checkpoint_lets_others_run_when_the_slice_is_over() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    let computing = {
        let turns = turns.clone();
        let f = move || {
            // The loop ends only if the other fiber, on the same thread, has run.
            while turns.load(SeqCst) == 0 {
                fiber::checkpoint();
            }
        };
        fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()
    };
    let other =
        fiber::Builder::new().spawn_on(move || turns.fetch_add(1, SeqCst), rt.handle()).unwrap();
    rt.block_on(async {
        computing.await.unwrap();
        other.await.unwrap();
    });
}

#[test]
fn a_yield_lets_fibers_run_that_other_threads_spawned() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    let (sent, is_sent) = mpsc::channel();
    let yields = {
        let turns = turns.clone();
        let f = move || {
            is_sent.recv().unwrap();
            fiber::wait(task::yield_now());
            turns.load(SeqCst)
        };
        fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()
    };
    let others = [(); 3].map(|()| {
        let turns = turns.clone();
        fiber::Builder::new().spawn_on(move || turns.fetch_add(1, SeqCst), rt.handle()).unwrap()
    });
    sent.send(()).unwrap();
    assert_eq!(rt.block_on(yields).unwrap(), 3, "it ran again before others had run");
    for other in others {
        rt.block_on(other).unwrap();
    }
}

#[test]
fn a_panic_reaches_the_joiner() {
    both(|rt| {
        let (sender, receiver) = oneshot::channel::<()>();
        let error = rt
            .block_on(async {
                let fiber: task::JoinHandle<()> = fiber::spawn(move || {
                    fiber::wait(receiver).unwrap();
                    panic!("with {}", std::hint::black_box(7))
                });
                sender.send(()).unwrap();
                fiber.await
            })
            .unwrap_err();
        assert!(error.is_panic());
        assert_eq!(error.into_panic().downcast_ref::<String>().unwrap(), "with 7");
        // The stack of the fiber that panicked can be used by another fiber.
        assert_eq!(rt.block_on(async { fiber::spawn(|| 1).await.unwrap() }), 1);
    });
}

#[test]
fn a_panic_that_is_caught_stays_in_its_fiber() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    rt.block_on(async {
        let fibers: Vec<_> = (0..8)
            .map(|number| {
                fiber::spawn(move || {
                    let caught = std::panic::catch_unwind(|| {
                        fiber::wait(task::yield_now());
                        std::panic::resume_unwind(Box::new(number));
                    });
                    assert!(!thread::panicking());
                    fiber::wait(task::yield_now());
                    *caught.unwrap_err().downcast::<i32>().unwrap()
                })
            })
            .collect();
        for (number, fiber) in fibers.into_iter().enumerate() {
            assert_eq!(fiber.await.unwrap() as usize, number);
        }
    });
}

#[test]
fn hooks_are_called_for_fibers_with_their_names() {
    let calls = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = |what: &'static str| {
        let calls = calls.clone();
        move |meta: &blitz_io::runtime::TaskMeta<'_>| {
            calls.lock().unwrap().push((what, meta.name().map(str::to_owned)));
        }
    };
    let rt = Builder::new_current_thread()
        .on_task_spawn(hook("spawn"))
        .on_task_terminate(hook("end"))
        .build()
        .unwrap();
    rt.block_on(async {
        fiber::Builder::new().name("named").spawn(|| {}).unwrap().await.unwrap();
    });
    drop(rt);
    let named = Some("named".to_owned());
    assert_eq!(*calls.lock().unwrap(), [("spawn", named.clone()), ("end", named)]);
}

#[test]
fn closures_and_results_of_any_size_come_through() {
    fn check<const N: usize>() {
        both(|rt| {
            let large = [7u8; N];
            let fiber = fiber::Builder::new().spawn_on(move || large, rt.handle()).unwrap();
            assert!(rt.block_on(fiber).unwrap().iter().all(|byte| *byte == 7));
        });
    }
    check::<0>();
    check::<512>();
    check::<513>();
    check::<1016>();
    check::<1024>();
    check::<1500>();
    check::<10_000>();
}

#[test]
fn closures_of_any_alignment_come_through() {
    #[derive(Clone, Copy)]
    #[repr(align(256))]
    struct Aligned(u64);
    both(|rt| {
        let value = Aligned(7);
        let f = move || {
            let value = value;
            assert!((&raw const value).is_aligned());
            value.0
        };
        let fiber = fiber::Builder::new().spawn_on(f, rt.handle()).unwrap();
        assert_eq!(rt.block_on(fiber).unwrap(), 7);
    });
}

/// Polls `future` on a fiber and returns the number of polls it took.
fn polls(future: impl Future<Output = ()>) -> u32 {
    let mut future = std::pin::pin!(future);
    let mut polls = 0;
    fiber::wait(std::future::poll_fn(|cx| {
        polls += 1;
        future.as_mut().poll(cx)
    }));
    polls
}

/// Completes more operations than one poll may, all of which are ready.
fn much() -> impl Future<Output = ()> {
    const MUCH: u32 = 1000;
    let (sender, mut receiver) = channel::unbounded_channel();
    (0..MUCH).for_each(|number| sender.send(number).unwrap());
    async move {
        for number in 0..MUCH {
            assert_eq!(receiver.recv().await, Some(number));
        }
    }
}

#[test]
fn a_fiber_without_a_budget_has_none_after_a_wait_either() {
    both(|rt| {
        let counts = rt.block_on(async {
            fiber::spawn(|| {
                let waits = || fiber::wait(task::yield_now());
                let in_place = || {
                    waits();
                    polls(much())
                };
                let unconstrained = task::unconstrained(async {
                    waits();
                    much().await;
                });
                [polls(unconstrained), task::block_in_place(in_place), polls(much())]
            })
            .await
            .unwrap()
        });
        assert_eq!(counts[..2], [1, 1]);
        assert!(counts[2] > 1, "and what has one keeps it");
    });
}
