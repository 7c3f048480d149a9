//! Tests handles, wakers and join handles that outlive their runtime.

use std::{
    future::poll_fn,
    sync::mpsc,
    task::{Poll, Waker},
};

use crate::support::{
    drop_tally::Tally,
    manual_poll::poll_once,
    runtimes::{all_kinds, workers},
    watchdog,
};

#[test]
fn a_spawn_after_the_end_is_cancelled_at_once() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (handle, tally) = (rt.handle().clone(), Tally::new());
        drop(rt);
        for _ in 0..10 {
            let token = tally.token();
            let mut task = handle.spawn(async move {
                token.keep();
                unreachable!("polled after the end");
            });
            assert!(task.is_finished());
            let Poll::Ready(Err(error)) = poll_once::<blitz_io::task::JoinHandle<()>>(&mut task)
            else {
                panic!("not cancelled at once");
            };
            assert!(error.is_cancelled());
            assert_eq!(error.id(), task.id());
        }
        tally.assert_all_dropped(10);
        assert_eq!(handle.metrics().num_alive_tasks(), 0);
    }
}

#[test]
fn a_handle_still_blocks_and_enters_after_the_end() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let handle = rt.handle().clone();
        drop(rt);
        assert_eq!(handle.block_on(async { 5 }), 5);
        let _entered = handle.enter();
        let mut task = blitz_io::spawn(async {});
        assert!(matches!(poll_once(&mut task), Poll::Ready(Err(error)) if error.is_cancelled()));
    }
}

#[test]
fn wakers_outlive_their_runtime_and_do_nothing() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tally, (sender, receiver)) = (Tally::new(), mpsc::channel::<Waker>());
        for _ in 0..10 {
            let (sender, token) = (sender.clone(), tally.token());
            rt.spawn(poll_fn(move |cx| {
                token.keep();
                sender.send(cx.waker().clone()).unwrap();
                Poll::<()>::Pending
            }));
        }
        drop(sender);
        rt.block_on(rt.spawn(async {})).unwrap();
        if rt.metrics().num_workers() > 1 {
            watchdog::until(|| rt.metrics().num_alive_tasks() == 10);
        }
        drop(rt);
        let wakers: Vec<_> = receiver.iter().collect();
        tally.assert_all_dropped(10);
        for waker in wakers {
            waker.wake_by_ref();
            let copy = waker.clone();
            assert!(copy.will_wake(&waker));
            std::thread::spawn(move || copy.wake()).join().unwrap();
        }
    }
}

#[test]
fn a_waker_of_a_task_that_ended_does_nothing() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let waker = rt.block_on(rt.spawn(poll_fn(|cx| Poll::Ready(cx.waker().clone())))).unwrap();
    let others: Vec<_> = (0..100).map(|n| rt.spawn(async move { n })).collect();
    let polls = rt.metrics().worker_poll_count(0);
    for _ in 0..1_000 {
        waker.wake_by_ref();
        waker.clone().wake();
    }
    for (n, task) in others.into_iter().enumerate() {
        assert_eq!(rt.block_on(task).unwrap(), n);
    }
    assert!(rt.metrics().worker_poll_count(0) - polls <= 100);
}

#[test]
fn abort_handles_outlive_their_runtime_and_do_nothing() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let task = rt.spawn(std::future::pending::<()>());
        let abort = task.abort_handle();
        drop((rt, task));
        assert!(abort.is_finished());
        abort.abort();
        assert!(abort.is_finished());
    }
}

#[test]
fn a_join_handle_is_awaited_on_another_runtime_after_the_end_of_its_own() {
    let _watch = watchdog::start();
    let other = workers(1);
    for rt in all_kinds() {
        let done = rt.spawn(async { 4 });
        let abort = done.abort_handle();
        crate::support::runtimes::run_until(&rt, move || abort.is_finished());
        let cancelled = rt.spawn(std::future::pending::<()>());
        drop(rt);
        let (done, cancelled) =
            other.block_on(other.spawn(async { (done.await, cancelled.await) })).unwrap();
        assert_eq!(done.unwrap(), 4);
        assert!(cancelled.unwrap_err().is_cancelled());
    }
}

#[test]
fn a_waiter_on_another_runtime_is_woken_by_the_end() {
    let _watch = watchdog::start();
    let other = workers(1);
    for rt in all_kinds() {
        let waits = rt.spawn(std::future::pending::<()>());
        let (sender, receiver) = mpsc::channel();
        let waiter = other.spawn(async move {
            sender.send(()).unwrap();
            waits.await
        });
        receiver.recv().unwrap();
        drop(rt);
        assert!(other.block_on(waiter).unwrap().unwrap_err().is_cancelled());
    }
}
