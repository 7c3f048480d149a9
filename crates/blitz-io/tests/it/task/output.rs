//! Tests that an output is dropped exactly once, whatever happens to its task and handle.

use crate::support::{
    drop_tally::Tally,
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds, one_thread, run_until, workers, workers_and_threads},
    watchdog,
};

#[test]
fn a_joined_output_is_dropped_by_the_joiner() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let token = tally.token();
        let output = rt.block_on(rt.spawn(async move { token })).unwrap();
        assert_eq!(tally.dropped(), 0);
        drop(output);
        tally.assert_all_dropped(1);
        drop(rt);
        tally.assert_all_dropped(1);
    }
}

#[test]
fn an_output_without_a_handle_is_dropped_by_the_runtime() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(1);
    let (gate, tally) = (Gate::new(), Tally::new());
    let (opened, token) = (gate.opened(), tally.token());
    let task = rt.spawn(async move {
        opened.await;
        token
    });
    let abort = task.abort_handle();
    drop(task);
    gate.open();
    watchdog::until(|| abort.is_finished() && tally.dropped() == 1);
    drop(rt);
    tally.assert_all_dropped(1);
    assert_eq!(tally.dropped_on(), threads);
}

#[test]
fn an_output_whose_handle_is_dropped_after_completion_is_dropped_with_it() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let tally = Tally::new();
    let token = tally.token();
    let task = rt.spawn(async move { token });
    watchdog::until(|| task.is_finished());
    assert_eq!(tally.dropped(), 0);
    drop(task);
    tally.assert_all_dropped(1);
    assert_eq!(tally.dropped_on(), [std::thread::current().id()]);
}

#[test]
fn an_output_of_an_aborted_task_that_completed_first_is_dropped_once() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let token = tally.token();
        let task = rt.spawn(async move { token });
        let ends = task.abort_handle();
        run_until(&rt, move || ends.is_finished());
        task.abort();
        assert_eq!(tally.dropped(), 0);
        drop(task);
        tally.assert_all_dropped(1);
    }
}

#[test]
fn an_output_whose_handle_was_polled_before_is_dropped_once() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (gate, tally) = (Gate::new(), Tally::new());
    let (opened, token) = (gate.opened(), tally.token());
    let mut task = rt.spawn(async move {
        opened.await;
        token
    });
    assert!(poll_once(&mut task).is_pending());
    gate.open();
    watchdog::until(|| task.is_finished());
    drop(task);
    tally.assert_all_dropped(1);
}

#[test]
fn an_output_is_dropped_once_when_the_handle_goes_as_the_task_completes() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let tally = Tally::new();
    for round in 0..2_000 {
        let token = tally.token();
        let task = rt.spawn(async move { token });
        // Moves the drop across the moment of completion.
        for _ in 0..round % 97 {
            std::hint::spin_loop();
        }
        drop(task);
    }
    drop(rt);
    tally.assert_all_dropped(2_000);
}

#[test]
fn an_output_that_was_not_joined_outlives_its_runtime_in_the_handle() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let token = tally.token();
        let task = rt.spawn(async move { token });
        let ends = task.abort_handle();
        run_until(&rt, move || ends.is_finished());
        drop(rt);
        assert_eq!(tally.dropped(), 0);
        drop(task);
        tally.assert_all_dropped(1);
    }
}

#[test]
fn a_handle_may_be_the_output_of_another_task() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let tally = Tally::new();
    let token = tally.token();
    let inner = rt.spawn(async move { token });
    let outer = rt.spawn(async move { inner });
    let inner = rt.block_on(outer).unwrap();
    drop(rt.block_on(inner).unwrap());
    tally.assert_all_dropped(1);
}
