//! Tests a system that refuses to start blocking threads: a job waits for a thread that exists, or
//! the spawner gets an error.
#![cfg(target_os = "linux")]

use blitz_io::{
    runtime::{Builder, Runtime},
    task::block_in_place,
};

use crate::support::{
    caught_panic::panic_of,
    child,
    drop_tally::Tally,
    gate::Gate,
    runtimes::{on_every_worker, workers},
    thread_limit::allow_threads,
    watchdog,
};

/// Runs `f` in a child process that can start no further thread.
fn without_threads(name: &str, f: impl FnOnce()) {
    let _watch = watchdog::start();
    if child::role().is_none() {
        child::succeed(&mut child::command(name, "is refused"));
        return;
    }
    f();
}

#[track_caller]
fn assert_refused(rt: &Runtime) {
    let tally = Tally::new();
    let token = tally.token();
    panic_of(|| drop(rt.spawn_blocking(move || token.keep())))
        .says(&["OS can't spawn worker thread", "raise the limit"]);
    tally.assert_all_dropped(1);
    let figures = (rt.metrics().num_blocking_threads(), rt.metrics().blocking_queue_depth());
    assert_eq!(figures, (0, 0), "something is left of it");
}

#[test]
fn with_no_thread_alive_the_spawner_panics_and_nothing_is_left() {
    let name = "runtime::blocking_thread_limit::\
                with_no_thread_alive_the_spawner_panics_and_nothing_is_left";
    without_threads(name, || {
        let multi = workers(2);
        assert_eq!(on_every_worker(&multi, || 1).len(), 2, "all workers are there");
        let single = Builder::new_current_thread().build().unwrap();
        allow_threads(0);
        for _ in 0..100 {
            assert_refused(&multi);
            assert_refused(&single);
        }
        // Several tasks at once, each of which panics for its own job and leaves none in the queue.
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                multi.spawn(async {
                    panic_of(|| drop(blitz_io::task::spawn_blocking(|| ())))
                        .says(&["OS can't spawn worker thread"]);
                })
            })
            .collect();
        for task in tasks {
            multi.block_on(task).unwrap();
        }
        assert_eq!(multi.metrics().blocking_queue_depth(), 0);
    });
}

#[test]
fn with_a_thread_alive_the_work_waits_for_it() {
    let name = "runtime::blocking_thread_limit::with_a_thread_alive_the_work_waits_for_it";
    without_threads(name, || {
        let rt = workers(1);
        let (inside, gate) = (Gate::new(), Gate::new());
        let (entered, wait) = (inside.clone(), gate.clone());
        let busy = rt.spawn_blocking(move || {
            entered.open();
            wait.block();
        });
        inside.block();
        allow_threads(0);
        let waiting: Vec<_> = (0..50).map(|n| rt.spawn_blocking(move || n)).collect();
        assert_eq!(rt.metrics().num_blocking_threads(), 1);
        assert_eq!(rt.metrics().blocking_queue_depth(), 50);
        gate.open();
        busy.blocking_join().unwrap();
        for (n, job) in waiting.into_iter().enumerate() {
            assert_eq!(job.blocking_join().unwrap(), n);
        }
        // The thread is idle, so it is woken and no thread has to be started.
        watchdog::until(|| rt.metrics().num_idle_blocking_threads() == 1);
        assert_eq!(rt.spawn_blocking(|| 1).blocking_join().unwrap(), 1);
    });
}

#[test]
fn without_a_thread_to_be_had_block_in_place_blocks_in_place() {
    let name = "runtime::blocking_thread_limit::\
                without_a_thread_to_be_had_block_in_place_blocks_in_place";
    without_threads(name, || {
        let rt = workers(2);
        assert_eq!(on_every_worker(&rt, || 1).len(), 2, "all workers are there");
        allow_threads(0);
        for _ in 0..50 {
            let task = rt.spawn(async {
                // The other worker must steal this task, which was in the LIFO slot.
                let other = blitz_io::spawn(async { 6 });
                let inside = block_in_place(|| other.blocking_join().unwrap());
                assert!(blitz_io::runtime::worker_index().is_some(), "the core came back");
                inside + blitz_io::spawn(async { 1 }).await.unwrap()
            });
            assert_eq!(rt.block_on(task).unwrap(), 7);
        }
        assert_eq!(on_every_worker(&rt, || 1).len(), 2, "a worker was lost");
    });
}
