//! Tests the end of a runtime that has blocking jobs: jobs that were queued before are run, as on
//! Tokio, and the end waits for them and reports their names.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Runtime},
    task::{self, JoinHandle},
};

use crate::support::{
    child,
    drop_tally::Tally,
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds, one_thread, workers},
    watchdog,
};

fn one_at_a_time() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).max_blocking_threads(1).build().unwrap()
}

/// Spawns a closure that has started and waits at the second gate.
fn started(rt: &Runtime) -> (JoinHandle<()>, Arc<Gate>) {
    let (inside, go_on) = (Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let handle = rt.spawn_blocking(move || {
        entered.open();
        wait.block();
    });
    inside.block();
    (handle, go_on)
}

#[track_caller]
fn assert_cancelled(mut handle: JoinHandle<()>) {
    let std::task::Poll::Ready(Err(error)) = poll_once(&mut handle) else {
        panic!("it is neither run nor cancelled");
    };
    assert!(error.is_cancelled());
}

#[test]
fn a_drop_waits_for_what_runs_and_for_what_is_queued() {
    let _watch = watchdog::start();
    let rt = one_at_a_time();
    let tally = Tally::new();
    let (runs, go_on) = started(&rt);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let token = tally.token();
            rt.spawn_blocking(move || token.keep())
        })
        .collect();
    // One from a worker too, because its cell comes from that core's arena.
    let token = tally.token();
    let from_a_task =
        rt.block_on(rt.spawn(async { task::spawn_blocking(move || token.keep()) })).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let dropper = thread::spawn(move || {
        drop(rt);
        ended.store(true, Relaxed);
    });
    assert!(!over.load(Relaxed), "the drop did not wait");
    go_on.open();
    for handle in waiting.into_iter().chain([from_a_task]) {
        handle.blocking_join().unwrap();
    }
    tally.assert_all_dropped(101);
    dropper.join().unwrap();
    assert!(runs.is_finished(), "the drop did not wait");
    runs.blocking_join().unwrap();
}

#[test]
fn a_shutdown_in_the_background_leaves_what_runs_to_itself() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (runs, go_on) = started(&rt);
        rt.shutdown_background();
        assert!(!runs.is_finished());
        go_on.open();
        runs.blocking_join().unwrap();
    }
}

#[test]
fn a_shutdown_with_a_time_out_waits_so_long_and_no_longer() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (runs, go_on) = started(&rt);
        let (begun, limit) = (Instant::now(), Duration::from_millis(20));
        rt.shutdown_timeout(limit);
        assert!(begun.elapsed() >= limit && !runs.is_finished());
        go_on.open();
        runs.blocking_join().unwrap();
        // An end that has no job to wait for returns at once.
        let rt = one_thread();
        rt.block_on(rt.spawn_blocking(|| ())).unwrap();
        rt.shutdown_timeout(Duration::from_secs(3600));
    }
}

#[test]
fn idle_threads_are_gone_when_a_drop_returns() {
    let _watch = watchdog::start();
    for _ in 0..50 {
        let (starts, stops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (started, stopped) = (starts.clone(), stops.clone());
        let rt = Builder::new_current_thread()
            .on_thread_start(move || {
                started.fetch_add(1, Relaxed);
            })
            .on_thread_stop(move || {
                stopped.fetch_add(1, Relaxed);
            })
            .build()
            .unwrap();
        let jobs: Vec<_> = (0..4).map(|_| rt.spawn_blocking(|| ())).collect();
        jobs.into_iter().for_each(|job| job.blocking_join().unwrap());
        drop(rt);
        assert!(starts.load(Relaxed) >= 1);
        assert_eq!(starts.load(Relaxed), stops.load(Relaxed), "a thread is left");
        assert_eq!(Arc::strong_count(&starts), 1, "a hook is left");
    }
}

#[test]
fn after_a_shutdown_a_closure_is_dropped_and_its_handle_returns_cancelled() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let handle = rt.handle().clone();
        let tally = Tally::new();
        drop(rt);
        let token = tally.token();
        assert_cancelled(handle.spawn_blocking(move || token.keep()));
        tally.assert_all_dropped(1);
    }
}

#[test]
fn during_a_shutdown_a_closure_is_run_or_cancelled_and_never_lost() {
    let _watch = watchdog::start();
    for round in 0..100 {
        let rt = if round % 2 == 0 { one_at_a_time() } else { one_thread() };
        let (handle, tally) = (rt.handle().clone(), Tally::new());
        let count = Arc::new(AtomicUsize::new(0));
        let spawner = {
            let (tally, count) = (tally.clone(), count.clone());
            thread::spawn(move || {
                let mut handles: Vec<JoinHandle<()>> = Vec::new();
                // Spawns until some closures were refused, because the shutdown is complete then.
                let mut refused = 0;
                while refused < 10 {
                    let (token, count) = (tally.token(), count.clone());
                    let job = handle.spawn_blocking(move || {
                        token.keep();
                        count.fetch_add(1, Relaxed);
                    });
                    refused += usize::from(handles.len() > 10 && job.is_finished());
                    handles.push(job);
                }
                handles
            })
        };
        drop(rt);
        let mut ran = 0;
        let handles = spawner.join().unwrap();
        let made = handles.len();
        for job in handles {
            match job.blocking_join() {
                Ok(()) => ran += 1,
                Err(error) => assert!(error.is_cancelled()),
            }
        }
        assert_eq!(ran, count.load(Relaxed));
        tally.assert_all_dropped(made);
    }
}

#[test]
fn a_closure_that_is_refused_after_a_shutdown_may_spawn_and_panic() {
    let _watch = watchdog::start();
    struct Nasty(mpsc::Sender<JoinHandle<()>>);
    impl Drop for Nasty {
        fn drop(&mut self) {
            self.0.send(task::spawn_blocking(|| ())).unwrap();
            panic!("in a drop");
        }
    }
    let rt = one_at_a_time();
    let handle = rt.handle().clone();
    drop(rt);
    let _entered = handle.enter();
    let (send, receive) = mpsc::channel();
    let nasty = Nasty(send);
    let refused = handle.spawn_blocking(move || {
        let _nasty = nasty;
    });
    assert_cancelled(receive.recv().unwrap());
    assert!(refused.blocking_join().unwrap_err().is_panic());
}

#[test]
fn a_closure_may_drop_its_own_runtime() {
    let _watch = watchdog::start();
    for _ in 0..20 {
        let rt = workers(2);
        let handle = rt.handle().clone();
        let other = handle.spawn_blocking(|| 1);
        let job = handle.spawn_blocking(move || drop(rt));
        job.blocking_join().unwrap();
        assert!(other.is_finished());
    }
}

#[test]
fn a_closure_may_drop_its_own_runtime_on_a_thread_that_was_a_worker() {
    let _watch = watchdog::start();
    let rt = workers(1);
    // The worker's core is handed off to another thread, and the worker becomes a blocking thread.
    let loses = rt.spawn(async {
        task::block_in_place(|| task::spawn(async {}).blocking_join().unwrap());
        let worker = thread::current().id();
        task::yield_now().await;
        worker
    });
    let worker = rt.block_on(loses).unwrap();
    watchdog::until(|| rt.metrics().num_idle_blocking_threads() == 1);
    let handle = rt.handle().clone();
    let job = handle.spawn_blocking(move || {
        drop(rt);
        thread::current().id()
    });
    assert_eq!(job.blocking_join().unwrap(), worker, "it ran elsewhere");
}

#[test]
fn a_shutdown_that_waits_names_the_jobs() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let name = "runtime::shutdown_blocking::a_shutdown_that_waits_names_the_jobs";
        let output = child::confirm_each(&mut child::command(name, "waits"), "has run for");
        let text = child::has_succeeded(&output.unwrap());
        let reports: Vec<&str> = text.lines().filter(|line| line.contains("blitz-io:")).collect();
        assert_eq!(reports.len(), 1, "{text}");
        for word in ["has waited ", "2 blocking tasks", "shutdown_timeout"] {
            assert!(reports[0].contains(word), "`{word}` is not in: {text}");
        }
        let tasks: Vec<&str> = text.lines().filter(|line| line.contains("spawned at")).collect();
        assert_eq!(tasks.len(), 2, "{text}");
        for task in tasks {
            let named = task.contains("shutdown_blocking.rs:") && task.contains("has run for ");
            assert!(named, "{text}");
        }
        let id = text.lines().find_map(|line| line.split("the id is ").nth(1)).expect("an id");
        assert!(text.contains(&format!("task {id}, spawned at")), "{text}");
        return;
    }
    let rt = workers(1);
    let (one, go_on) = started(&rt);
    let (two, go_on_too) = started(&rt);
    println!("the id is {}", one.id());
    // Releases the jobs only when both were reported.
    let opener = thread::spawn(move || {
        child::until_confirmed();
        child::until_confirmed();
        go_on.open();
        go_on_too.open();
    });
    drop(rt);
    opener.join().unwrap();
    assert!(one.is_finished() && two.is_finished());
    // A short wait is not reported.
    let rt = workers(1);
    let (_, go_on) = started(&rt);
    go_on.open();
    drop(rt);
}
