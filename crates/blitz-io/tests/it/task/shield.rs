//! Tests each sentence of the documentation of `task::shield`.

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::{Arc, mpsc},
    task::Poll,
};

use blitz_io::task::{self, Shield, shield};

use crate::support::{
    caught_panic::message,
    drop_tally::Tally,
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds, run_until, workers},
    watchdog,
};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Polls `future` once with the task's own waker, and returns the result without waiting.
async fn once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

#[test]
fn an_abort_inside_a_shield_waits_for_its_end() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, tally, (sender, receiver)) = (Gate::new(), Tally::new(), mpsc::channel());
    let (opened, token) = (gate.opened(), tally.token());
    let task = rt.spawn(async move {
        shield(async {
            opened.await;
            sender.send("went on").unwrap();
            task::yield_now().await;
            sender.send("ended").unwrap();
        })
        .await;
        sender.send("left").unwrap();
        pending::<()>().await;
        token.keep();
    });
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    task.abort();
    gate.knock();
    watchdog::until(|| gate.waiting() == 1);
    assert!(!task.is_finished());
    assert_eq!(tally.dropped(), 0);
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    let said: Vec<_> = receiver.iter().collect();
    assert_eq!(said, ["went on", "ended", "left"], "it ends at the next await outside");
    tally.assert_all_dropped(1);
}

#[test]
fn a_task_that_ends_with_its_shield_completes_although_aborted() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let task = rt.spawn(shield(async move {
        opened.await;
        6
    }));
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    gate.open();
    assert_eq!(rt.block_on(task).unwrap(), 6);
}

#[test]
fn an_abort_before_the_first_poll_is_not_deferred() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let task = rt.spawn(async move {
        let shielded = shield(pending::<()>()); // created, and not polled yet
        opened.await;
        shielded.await;
    });
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn dropping_a_shield_lets_the_abort_through() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
    let opened = gate.opened();
    let task = rt.spawn(async move {
        let mut shielded = Box::pin(shield(pending::<()>()));
        assert!(once(&mut shielded).await.is_pending());
        opened.await; // still inside: the shield has begun and not ended
        sender.send("deferred").unwrap();
        drop(shielded);
        pending::<()>().await;
    });
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    assert_eq!(receiver.recv(), Ok("deferred"));
}

#[test]
fn a_shield_that_panics_lets_the_abort_through() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, caught) = (Gate::new(), Gate::new());
    let (opened, survived) = (gate.opened(), caught.clone());
    let task = rt.spawn(async move {
        let mut shielded: Boxed<()> = Box::pin(shield(async move {
            opened.await;
            panic!("inside");
        }));
        poll_fn(|cx| {
            let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                shielded.as_mut().poll(cx)
            }));
            if polled.is_err() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(shielded);
        survived.open();
        pending::<()>().await;
    });
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    assert!(caught.is_open(), "the abort came through too early");
}

#[test]
fn shields_nest_and_the_outermost_decides() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (inner, outer, (sender, receiver)) = (Gate::new(), Gate::new(), mpsc::channel());
    let (in_inner, in_outer) = (inner.opened(), outer.opened());
    let task = rt.spawn(async move {
        shield(async {
            shield(shield(in_inner)).await;
            sender.send("inner ended").unwrap();
            in_outer.await;
            sender.send("outer ended").unwrap();
        })
        .await;
        pending::<()>().await;
    });
    watchdog::until(|| inner.waiting() == 1);
    task.abort();
    inner.open();
    assert_eq!(receiver.recv(), Ok("inner ended"));
    watchdog::until(|| outer.waiting() == 1);
    assert!(!task.is_finished());
    outer.open();
    assert_eq!(receiver.recv(), Ok("outer ended"));
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn shields_that_end_out_of_order_defer_until_the_last() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
    let opened = gate.opened();
    let task = rt.spawn(async move {
        let mut one = Box::pin(shield(pending::<()>()));
        let mut two = Box::pin(shield(pending::<()>()));
        assert!(once(&mut one).await.is_pending());
        assert!(once(&mut two).await.is_pending());
        drop(one);
        opened.await;
        sender.send("deferred").unwrap();
        drop(two);
        pending::<()>().await;
    });
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    assert_eq!(receiver.recv(), Ok("deferred"));
}

#[test]
fn a_shield_after_a_shield_defers_anew() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let task = rt.spawn(async move {
        for _ in 0..1_000 {
            shield(task::yield_now()).await; // leaves no trace
        }
        shield(opened).await;
        5
    });
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    gate.open();
    assert_eq!(rt.block_on(task).unwrap(), 5);
}

#[test]
fn outside_a_task_a_shield_does_nothing() {
    let _watch = watchdog::start();
    let mut alone = Box::pin(shield(async { 1 }));
    assert_eq!(poll_once(&mut alone), Poll::Ready(1));
    let mut never = Box::pin(shield(pending::<()>()));
    assert!(poll_once(&mut never).is_pending());
    drop(never);
    for rt in all_kinds() {
        let inside = rt.block_on(shield(async {
            task::yield_now().await;
            2
        }));
        assert_eq!(inside, 2);
    }
}

#[test]
fn polled_outside_first_a_shield_protects_the_task_that_polls_it_next() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let mut shielded = Box::pin(shield(async move {
        opened.await;
        4
    }));
    assert!(poll_once(&mut shielded).is_pending());
    gate.knock();
    let task = rt.spawn(shielded);
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    gate.open();
    assert_eq!(rt.block_on(task).unwrap(), 4);
}

#[test]
fn polled_by_another_task_the_shield_moves_with_the_future() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, tally) = (Gate::new(), Tally::new());
    let opened = gate.opened();
    let (sender, receiver) = mpsc::channel::<Pin<Box<Shield<_>>>>();
    let (polled, token) = (Gate::new(), tally.token());
    let sent = polled.clone();
    let one = rt.spawn(async move {
        let mut shielded = Box::pin(shield(async move {
            opened.await;
            3
        }));
        assert!(once(&mut shielded).await.is_pending());
        sender.send(shielded).unwrap();
        sent.open();
        pending::<()>().await;
        token.keep();
    });
    polled.block();
    gate.knock(); // drops the waker of `one`
    let two = rt.spawn(receiver.recv().unwrap());
    watchdog::until(|| gate.waiting() == 1);
    one.abort();
    assert!(rt.block_on(one).unwrap_err().is_cancelled(), "`one` is protected no more");
    tally.assert_all_dropped(1);
    two.abort();
    gate.open();
    assert_eq!(rt.block_on(two).unwrap(), 3, "`two` is protected now");
}

#[test]
fn an_abort_deferred_in_one_task_stays_there_when_the_shield_moves_on() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let (sender, receiver) = mpsc::channel::<Pin<Box<Shield<_>>>>();
    let one = rt.spawn(async move {
        let mut shielded = Box::pin(shield(async move {
            opened.await;
            3
        }));
        assert!(once(&mut shielded).await.is_pending());
        sender.send(shielded).unwrap();
        pending::<()>().await;
    });
    let shielded = receiver.recv().unwrap();
    one.abort();
    gate.knock();
    let two = rt.spawn(shielded);
    watchdog::until(|| gate.waiting() == 1);
    assert!(rt.block_on(one).unwrap_err().is_cancelled(), "nothing protects `one` any more");
    assert!(!two.is_finished());
    gate.open();
    assert_eq!(rt.block_on(two).unwrap(), 3, "`two` was never aborted");
}

#[test]
fn a_shield_that_outlives_its_task_is_harmless() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (sender, receiver) = mpsc::channel::<Pin<Box<Shield<_>>>>();
    let task = rt.spawn(async move {
        let mut shielded = Box::pin(shield(task::yield_now()));
        assert!(once(&mut shielded).await.is_pending());
        sender.send(shielded).unwrap();
    });
    rt.block_on(task).unwrap();
    let shielded = receiver.recv().unwrap();
    // Other tasks may get the memory of the task that is gone.
    let others: Vec<_> = (0..100).map(|_| rt.spawn(pending::<()>())).collect();
    drop(shielded);
    for task in others {
        task.abort();
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_forgotten_shield_leaves_its_task_unabortable_until_shutdown() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (gate, tally, (sender, receiver)) = (Gate::new(), Tally::new(), mpsc::channel());
        let (opened, token) = (gate.opened(), tally.token());
        let task = rt.spawn(async move {
            let mut shielded = Box::pin(shield(pending::<()>()));
            assert!(once(&mut shielded).await.is_pending());
            std::mem::forget(shielded);
            opened.await;
            sender.send("went on").unwrap();
            pending::<()>().await;
            token.keep();
        });
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 1);
        task.abort();
        gate.open();
        run_until(&rt, move || receiver.try_recv().is_ok());
        task.abort();
        for _ in 0..100 {
            rt.block_on(rt.spawn(async {})).unwrap();
        }
        assert!(!task.is_finished());
        drop(rt);
        tally.assert_all_dropped(1);
        let mut task = task;
        assert!(matches!(poll_once(&mut task), Poll::Ready(Err(error)) if error.is_cancelled()));
    }
}

#[test]
fn shutdown_drops_shielded_tasks() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (gate, tally) = (Gate::new(), Tally::new());
        for _ in 0..10 {
            let (opened, token) = (gate.opened(), tally.token());
            rt.spawn(shield(async move {
                shield(opened).await;
                token.keep();
            }));
        }
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 10);
        drop(rt);
        tally.assert_all_dropped(10);
    }
}

/// Wraps `inner` in `depth` shields.
fn nested(depth: u32, inner: Boxed<u32>) -> Boxed<u32> {
    (0..depth).fold(inner, |inside, _| Box::pin(shield(inside)))
}

#[test]
fn two_hundred_and_fifty_five_shields_nest_and_one_more_panics() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let gate = Gate::new();
        let opened = gate.opened();
        let task = rt.spawn(nested(
            255,
            Box::pin(async move {
                opened.await;
                1
            }),
        ));
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 1);
        task.abort();
        gate.open();
        assert_eq!(rt.block_on(task).unwrap(), 1);

        let tally = Tally::new();
        let token = tally.token();
        let task = rt.spawn(nested(
            256,
            Box::pin(async move {
                token.keep();
                2
            }),
        ));
        let error = rt.block_on(task).unwrap_err();
        assert!(error.is_panic());
        let said = message(&*error.into_panic());
        assert!(said.contains("shield"), "{said}");
        tally.assert_all_dropped(1);
        assert_eq!(rt.block_on(rt.spawn(async { 3 })).unwrap(), 3, "the runtime goes on");
    }
}

#[test]
fn the_panic_of_one_shield_too_many_leaves_the_count_as_it_was() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, caught) = (Gate::new(), Arc::new(Gate::default()));
    let (opened, survived) = (gate.opened(), caught.clone());
    let task = rt.spawn(async move {
        let mut deep = nested(256, Box::pin(async { 0 }));
        poll_fn(|cx| {
            let polled =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| deep.as_mut().poll(cx)));
            assert!(polled.is_err());
            Poll::Ready(())
        })
        .await;
        drop(deep);
        survived.open();
        opened.await; // no shield is left, so the task can be aborted here
    });
    caught.block();
    watchdog::until(|| gate.waiting() == 1);
    task.abort();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}
