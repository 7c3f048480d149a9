//! Starts, ends and detaches tasks in every way.

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Waker},
    thread,
};

use blitz_io::{
    join, select,
    task::{self, JoinHandle, coop, shield, unconstrained, yield_now},
    try_join,
};

use crate::{
    ON_PURPOSE, Scenario,
    support::{
        gate::Gate,
        manual_poll::{poll_once, poll_with},
        runtimes::{all_kinds, run_until, workers},
        watchdog,
    },
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("spawn and join", spawn_and_join),
    ("large futures and outputs", large),
    ("detach", detach),
    ("abort", abort),
    ("abort of a task that runs", abort_of_a_running_task),
    ("a panic, joined and not", panic),
    ("a panic in the drop of a future, an output and a waker", panic_in_drop),
    ("join handles polled with several wakers", several_wakers),
    ("join handles awaited by tasks that are aborted", joiners_aborted),
    ("a task that holds its own waker and handle", own_waker),
    ("shield", shielded),
    ("yield, budget, unconstrained", cooperation),
    ("task locals", locals),
    ("join! and try_join!", joins),
    ("select!", selects),
    ("wakes from other threads", wakes),
];

fn spawn_and_join() {
    for rt in all_kinds() {
        let outside: Vec<_> = (0..50).map(|n| rt.spawn(async move { n.to_string() })).collect();
        let inside = rt.spawn(async {
            let tasks: Vec<_> = (0..50)
                .map(|n| {
                    blitz_io::spawn(async move {
                        yield_now().await;
                        vec![n; 8]
                    })
                })
                .collect();
            for task in tasks {
                assert_eq!(task.await.unwrap().len(), 8);
            }
        });
        rt.block_on(async {
            for task in outside {
                task.await.unwrap();
            }
            inside.await.unwrap();
        });
        assert_eq!(rt.spawn_blocking(|| 1).blocking_join().unwrap(), 1);
    }
    assert_eq!(blitz_io::run(async { blitz_io::spawn(async { 1 }).await.unwrap() }), 1);
}

fn large() {
    for rt in all_kinds() {
        let (inside, output) = ([1_u8; 64 * 1024], [2_u8; 64 * 1024]);
        let task = rt.spawn(async move {
            yield_now().await;
            assert_eq!(inside[5], 1);
            output
        });
        assert_eq!(rt.block_on(task).unwrap()[7], 2);
        drop(rt.spawn(async move { output }));
    }
}

fn detach() {
    for rt in all_kinds() {
        let gate = Gate::new();
        for n in 0..20 {
            let (opened, text) = (gate.opened(), n.to_string());
            drop(rt.spawn(async move {
                opened.await;
                text
            }));
        }
        gate.open();
        let handle = rt.handle().clone();
        run_until(&rt, move || handle.metrics().num_alive_tasks() == 1);
    }
}

/// Waits for ever, with a value on the heap.
pub(crate) async fn for_ever() {
    let text = ON_PURPOSE.to_owned();
    pending::<()>().await;
    drop(text);
}

fn abort() {
    for rt in all_kinds() {
        // Before the first poll, after it, twice, by the other handle, and after the end.
        let tasks: Vec<_> = (0..20).map(|_| rt.spawn(for_ever())).collect();
        let others: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        tasks.iter().step_by(2).for_each(JoinHandle::abort);
        rt.block_on(rt.spawn(async {})).unwrap();
        others.iter().for_each(|other| other.abort());
        for task in tasks {
            assert!(rt.block_on(task).unwrap_err().is_cancelled());
        }
        others[0].clone().abort();
        let done = rt.spawn(async { "done".to_owned() });
        let other = done.abort_handle();
        run_until(&rt, move || other.is_finished());
        done.abort();
    }
}

fn abort_of_a_running_task() {
    let rt = workers(2);
    let (inside, go_on) = (Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let task = rt.spawn(async move {
        entered.open();
        wait.block();
        for_ever().await;
    });
    inside.block();
    task.abort();
    go_on.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}

async fn falls() {
    let _text = ON_PURPOSE.to_owned();
    yield_now().await;
    panic!("{ON_PURPOSE}, with a number: {}", 7);
}

fn panic() {
    for rt in all_kinds() {
        let error = rt.block_on(rt.spawn(falls())).unwrap_err();
        assert!(error.to_string().contains(ON_PURPOSE));
        drop(error.into_panic());
        drop(rt.block_on(rt.spawn(falls())));
        let (left, dropped) = (rt.spawn(falls()), rt.spawn(falls()));
        drop(dropped);
        let abort = left.abort_handle();
        run_until(&rt, move || abort.is_finished());
        crate::panics(|| rt.block_on(falls()));
    }
}

/// Panics when it is dropped.
struct Bomb(#[allow(dead_code, reason = "something on the heap")] String);

impl Bomb {
    fn new() -> Self {
        Self("a bomb".to_owned())
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("{ON_PURPOSE}");
        }
    }
}

/// A waker that panics when it is dropped.
struct BadWaker(#[allow(dead_code, reason = "its drop is what it is for")] Bomb);

impl std::task::Wake for BadWaker {
    fn wake(self: Arc<Self>) {}
}

fn panic_in_drop() {
    for rt in all_kinds() {
        let bomb = Bomb::new();
        let aborted = rt.spawn(async move {
            let _bomb = bomb;
            for_ever().await;
        });
        aborted.abort();
        assert!(rt.block_on(aborted).unwrap_err().is_panic());
        // An output whose handle was dropped.
        let output = rt.spawn(async { Bomb::new() });
        let abort = output.abort_handle();
        drop(output);
        run_until(&rt, move || abort.is_finished());
        // An output whose handle is dropped later.
        let output = rt.spawn(async { Bomb::new() });
        let abort = output.abort_handle();
        run_until(&rt, move || abort.is_finished());
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(output)));
        // A waker that is dropped together with a join handle.
        let waker = Waker::from(Arc::new(BadWaker(Bomb::new())));
        let mut left = rt.spawn(for_ever());
        assert!(poll_with(&mut left, &waker).is_pending());
        drop((waker, left));
        // A future that panics when it is dropped, and so does its output.
        let bomb = Bomb::new();
        let both = rt.spawn(poll_fn(move |_| {
            let _ = &bomb;
            Poll::Ready(Bomb::new())
        }));
        assert!(rt.block_on(both).err().is_some_and(|error| error.is_panic()));
        // A future that the shutdown drops.
        let bomb = Bomb::new();
        rt.spawn(async move {
            let _bomb = bomb;
            for_ever().await;
        });
    }
}

/// Returns a waker that is a block on the heap.
fn a_waker() -> Waker {
    struct HeapWaker(#[allow(dead_code, reason = "something on the heap")] String);
    impl std::task::Wake for HeapWaker {
        fn wake(self: Arc<Self>) {}
    }
    Waker::from(Arc::new(HeapWaker("rings".to_owned())))
}

fn several_wakers() {
    for rt in all_kinds() {
        let gate = Gate::new();
        let mut tasks: Vec<_> = (0..10).map(|_| rt.spawn(gate.opened())).collect();
        for task in &mut tasks {
            for _ in 0..3 {
                let waker = a_waker();
                let _ = Pin::new(&mut *task).poll(&mut Context::from_waker(&waker));
            }
        }
        // Some handles are dropped with a waker inside, some tasks end with one.
        tasks.truncate(5);
        gate.open();
        for task in tasks {
            rt.block_on(task).unwrap();
        }
    }
}

fn joiners_aborted() {
    for rt in all_kinds() {
        let gate = Gate::new();
        let inner = rt.spawn(gate.opened());
        let joiner = rt.spawn(inner);
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 1);
        joiner.abort();
        assert!(rt.block_on(joiner).unwrap_err().is_cancelled());
        gate.open();
    }
}

fn own_waker() {
    for rt in all_kinds() {
        let slot: Arc<Mutex<Option<JoinHandle<()>>>> = Arc::default();
        let (own, waiting) = (slot.clone(), Gate::new());
        let entered = waiting.clone();
        let task = rt.spawn(async move {
            let mut kept = Vec::new();
            poll_fn(|cx| {
                kept.push((cx.waker().clone(), own.clone()));
                entered.open();
                Poll::<()>::Pending
            })
            .await;
        });
        *slot.lock().unwrap() = Some(task);
        let opened = waiting.clone();
        run_until(&rt, move || opened.is_open());
    }
}

fn shielded() {
    for rt in all_kinds() {
        let gate = Gate::new();
        let ends: Vec<_> = (0..4)
            .map(|_| {
                let opened = gate.opened();
                rt.spawn(async move {
                    shield(opened).await;
                    for_ever().await;
                })
            })
            .collect();
        let begun = gate.clone();
        run_until(&rt, move || begun.waiting() == 4);
        ends.iter().for_each(JoinHandle::abort);
        gate.open();
        for task in ends {
            assert!(rt.block_on(task).unwrap_err().is_cancelled());
        }
        // Never polled, dropped inside the shield, and ended by the runtime inside the shield.
        drop(shield(for_ever()));
        let dropped = rt.spawn(async {
            let mut section = Box::pin(shield(for_ever()));
            poll_fn(|cx| Poll::Ready(section.as_mut().poll(cx).is_pending())).await
        });
        assert!(rt.block_on(dropped).unwrap());
        let stuck = rt.spawn(shield(for_ever()));
        rt.block_on(rt.spawn(async {})).unwrap();
        stuck.abort();
    }
}

fn cooperation() {
    for rt in all_kinds() {
        let task = rt.spawn(async {
            for _ in 0..300 {
                task::consume_budget().await;
            }
            let text = unconstrained(async {
                yield_now().await;
                "free".to_owned()
            });
            coop::cooperative(text).await
        });
        assert_eq!(rt.block_on(task).unwrap(), "free");
    }
}

blitz_io::task_local! {
    static NAME: String;
}

fn locals() {
    for rt in all_kinds() {
        let task = rt.spawn(NAME.scope("outer".to_owned(), async {
            yield_now().await;
            let inner = NAME.scope("inner".to_owned(), async { NAME.get() }).await;
            (NAME.get(), inner)
        }));
        assert_eq!(rt.block_on(task).unwrap(), ("outer".to_owned(), "inner".to_owned()));
        let mut taken = Box::pin(NAME.scope("taken".to_owned(), for_ever()));
        assert!(poll_once(&mut taken).is_pending());
        assert!(taken.as_mut().take_value().is_some());
        drop(NAME.scope("never polled".to_owned(), for_ever()));
        NAME.sync_scope("sync".to_owned(), || NAME.with(String::len));
        let aborted = rt.spawn(NAME.scope("aborted".to_owned(), for_ever()));
        rt.block_on(rt.spawn(async {})).unwrap();
        aborted.abort();
        rt.spawn(NAME.scope("left".to_owned(), for_ever()));
        let falls = rt.spawn(NAME.scope("falls".to_owned(), falls()));
        assert!(rt.block_on(falls).unwrap_err().is_panic());
    }
}

fn joins() {
    for rt in all_kinds() {
        let task = rt.spawn(async {
            let text = || async {
                yield_now().await;
                "text".to_owned()
            };
            let (one, two, three) = join!(text(), blitz_io::spawn(text()), text());
            assert_eq!(one.len() + two.unwrap().len() + three.len(), 12);
            let failed = try_join!(
                async { Ok::<_, String>(text().await) },
                async { Err::<(), _>(text().await) },
                async {
                    for_ever().await;
                    Ok(())
                },
            );
            assert!(failed.is_err());
            try_join!(async { Ok::<_, ()>(text().await) }, async { Ok(text().await) }).unwrap()
        });
        rt.block_on(task).unwrap();
        let left = rt.spawn(async { join!(for_ever(), async { "done".to_owned() }) });
        rt.block_on(rt.spawn(async {})).unwrap();
        drop(left);
    }
}

fn selects() {
    for rt in all_kinds() {
        let task = rt.spawn(async {
            let text = select! {
                _ = for_ever() => unreachable!(),
                text = async { yield_now().await; "won".to_owned() } => text,
            };
            let none = select! {
                biased;
                Some(text) = async { None::<String> } => text,
                else => "none".to_owned(),
            };
            let mut kept = pin!(for_ever());
            for _ in 0..3 {
                select! {
                    () = &mut kept => unreachable!(),
                    () = yield_now() => {}
                }
            }
            (text, none)
        });
        assert_eq!(rt.block_on(task).unwrap(), ("won".to_owned(), "none".to_owned()));
    }
}

fn wakes() {
    for rt in all_kinds() {
        let (sender, receiver) = mpsc::channel::<Waker>();
        let waker = thread::spawn(move || {
            for (number, waker) in receiver.iter().enumerate() {
                match number % 3 {
                    0 => waker.wake(),
                    1 => waker.wake_by_ref(),
                    _ => {
                        let copy = waker.clone();
                        drop(waker);
                        copy.wake();
                    }
                }
            }
        });
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let (sender, mut polls) = (sender.clone(), 0);
                rt.spawn(poll_fn(move |cx| {
                    polls += 1;
                    if polls > 5 {
                        return Poll::Ready(());
                    }
                    sender.send(cx.waker().clone()).unwrap();
                    Poll::Pending
                }))
            })
            .collect();
        drop(sender);
        for task in tasks {
            rt.block_on(task).unwrap();
        }
        watchdog::until(|| waker.is_finished());
        waker.join().unwrap();
    }
}
