//! Tests aborts in every state of a task.

use std::{
    future::pending,
    sync::{Arc, Barrier, mpsc},
};

use blitz_io::task::{self, AbortHandle, JoinHandle};

use crate::support::{
    drop_tally::{Tally, Token},
    gate::Gate,
    runtimes::{all_kinds, one_thread, run_until, workers, workers_and_threads},
    watchdog,
};

/// Holds `token` and never completes.
async fn hold(token: Token) {
    pending::<()>().await;
    token.keep();
}

#[test]
fn aborted_before_its_first_poll_a_future_is_never_polled() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let tally = Tally::new();
    let token = tally.token();
    let task = rt.spawn(async move {
        token.keep();
        unreachable!("polled after its abort");
    });
    task.abort();
    assert!(!task.is_finished(), "its future is not dropped yet");
    assert_eq!(tally.dropped(), 0, "the aborting thread does not drop it");
    let error: task::JoinError = rt.block_on(task).unwrap_err();
    assert!(error.is_cancelled());
    tally.assert_all_dropped(1);
}

#[test]
fn aborted_before_its_first_poll_behind_a_busy_worker() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(1);
    let (gate, tally) = (Gate::new(), Tally::new());
    let busy = {
        let gate = gate.clone();
        rt.spawn(async move { gate.block() })
    };
    let token = tally.token();
    let task = rt.spawn(async move {
        token.keep();
        unreachable!("polled after its abort");
    });
    task.abort();
    assert_eq!(tally.dropped(), 0);
    gate.open();
    let error: task::JoinError = rt.block_on(task).unwrap_err();
    assert!(error.is_cancelled());
    rt.block_on(busy).unwrap();
    assert_eq!(tally.dropped_on(), threads);
}

#[test]
fn aborted_while_it_waits() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (gate, tally) = (Gate::new(), Tally::new());
        let (opened, token) = (gate.opened(), tally.token());
        let task = rt.spawn(async move {
            opened.await;
            token.keep();
        });
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 1);
        task.abort();
        let error = rt.block_on(task).unwrap_err();
        assert!(error.is_cancelled() && !error.is_panic());
        tally.assert_all_dropped(1);
        gate.open(); // calls the waker of a task that no longer exists
    }
}

/// Spawns a task that is inside a poll until `gate` opens, and then runs `rest`.
fn running<F: Future<Output = u32> + Send + 'static>(
    rt: &blitz_io::runtime::Runtime,
    gate: &Arc<Gate>,
    rest: F,
) -> JoinHandle<u32> {
    let (gate, inside) = (gate.clone(), Gate::new());
    let entered = inside.clone();
    let task = rt.spawn(async move {
        entered.open();
        gate.block();
        rest.await
    });
    inside.block();
    task
}

#[test]
fn aborted_inside_a_poll_it_ends_at_the_next_await() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(1);
    let (gate, tally) = (Gate::new(), Tally::new());
    let token = tally.token();
    let task = running(&rt, &gate, async move {
        hold(token).await;
        1
    });
    task.abort();
    assert!(!task.is_finished());
    assert_eq!(tally.dropped(), 0);
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    assert_eq!(tally.dropped_on(), threads);
}

#[test]
fn aborted_inside_its_last_poll_it_completes() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let task = running(&rt, &gate, async { 7 });
    task.abort();
    gate.open();
    assert_eq!(rt.block_on(task).unwrap(), 7);
}

#[test]
fn aborted_inside_a_poll_that_yields() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let task = running(&rt, &gate, async {
        task::yield_now().await;
        unreachable!("it went on after its abort");
    });
    task.abort();
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn aborted_inside_a_poll_that_panics_it_carries_the_panic() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let task = running(&rt, &gate, async { panic!("boom") });
    task.abort();
    gate.open();
    assert!(rt.block_on(task).unwrap_err().is_panic());
}

#[test]
fn aborted_after_completion_the_output_stays() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let task = rt.spawn(async { 3 });
        let abort = task.abort_handle();
        let ends = task.abort_handle();
        run_until(&rt, move || ends.is_finished());
        task.abort();
        abort.abort();
        assert_eq!(rt.block_on(task).unwrap(), 3);
        abort.abort(); // after the task has been joined
    }
}

/// Spawns a task that gets its own abort handle.
fn with_own_handle<F>(
    rt: &blitz_io::runtime::Runtime,
    body: impl FnOnce(AbortHandle) -> F + Send + 'static,
) -> JoinHandle<u32>
where
    F: Future<Output = u32> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel();
    let task = rt.spawn(async move {
        let own: AbortHandle = receiver.recv().unwrap();
        body(own).await
    });
    sender.send(task.abort_handle()).unwrap();
    task
}

#[test]
fn a_task_that_aborts_itself_ends_at_its_next_await() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let token = tally.token();
        let task = with_own_handle(&rt, |own| async move {
            own.abort();
            assert!(!own.is_finished());
            hold(token).await;
            1
        });
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
        tally.assert_all_dropped(1);

        let task = with_own_handle(&rt, |own| async move {
            own.abort();
            8
        });
        assert_eq!(rt.block_on(task).unwrap(), 8, "it reached no await any more");
    }
}

#[test]
fn aborting_twice_is_aborting_once() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let task = rt.spawn(hold(tally.token()));
        let abort = task.abort_handle();
        task.abort();
        task.abort();
        abort.abort();
        abort.clone().abort();
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
        abort.abort();
        tally.assert_all_dropped(1);
    }
}

#[test]
fn aborts_from_many_threads_at_once_end_a_task_once() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(2);
    for _ in 0..200 {
        let tally = Tally::new();
        let task = rt.spawn(hold(tally.token()));
        let start = Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let abort = task.abort_handle();
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    abort.abort();
                });
            }
        });
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
        tally.assert_all_dropped(1);
        assert!(threads.contains(&tally.dropped_on()[0]), "dropped by an aborting thread");
    }
}

#[test]
fn an_aborted_future_is_dropped_by_its_runtime_and_never_by_the_aborting_thread() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(2);
    let (other, _) = workers_and_threads(1);
    let tally = Tally::new();
    for round in 0..300 {
        let task = rt.spawn(hold(tally.token()));
        let abort = task.abort_handle();
        if round % 2 == 0 {
            // From a worker of another runtime.
            other.block_on(other.spawn(async move { abort.abort() })).unwrap();
        } else {
            abort.abort();
        }
        rt.block_on(task).unwrap_err();
    }
    tally.assert_all_dropped(300);
    assert!(tally.dropped_on().iter().all(|thread| threads.contains(thread)));
}

#[test]
fn a_task_that_was_aborted_has_finished_only_when_its_future_is_dropped() {
    let _watch = watchdog::start();
    struct Slow(Arc<Gate>, Arc<Gate>);
    impl Drop for Slow {
        fn drop(&mut self) {
            self.0.open();
            self.1.block();
        }
    }
    let rt = workers(1);
    let (dropping, go_on) = (Gate::new(), Gate::new());
    let slow = Slow(dropping.clone(), go_on.clone());
    let task = rt.spawn(async move {
        let _slow = slow;
        pending::<()>().await;
    });
    task.abort();
    dropping.block();
    assert!(!task.is_finished() && !task.abort_handle().is_finished());
    go_on.open();
    watchdog::until(|| task.is_finished());
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn an_abort_handle_outlives_the_join_handle_and_still_aborts() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(1);
    let tally = Tally::new();
    let task = rt.spawn(hold(tally.token()));
    let abort = task.abort_handle();
    drop(task);
    assert!(!abort.is_finished());
    abort.abort();
    watchdog::until(|| abort.is_finished());
    assert_eq!(tally.dropped_on(), threads);
}

#[test]
fn dropping_an_abort_handle_does_nothing_to_the_task() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let task = rt.spawn(gate.opened());
    drop(task.abort_handle());
    watchdog::until(|| gate.waiting() == 1);
    gate.open();
    rt.block_on(task).unwrap();
}
