//! Runs, queues, aborts, refuses and detaches blocking jobs.

use std::{sync::Arc, sync::Barrier, thread, time::Duration};

use blitz_io::{
    runtime::{Builder, Handle, Runtime},
    task::{self, JoinHandle, block_in_place, yield_now},
};

use crate::{
    ON_PURPOSE, Scenario,
    support::{
        gate::Gate,
        runtimes::{all_kinds, run_until, workers},
        watchdog,
    },
    tasks::for_ever,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("blocking work that runs, panics and is large", runs),
    ("blocking work that is aborted while it waits and while it runs", aborted),
    ("blocking work that waits when its runtime ends", waits_at_the_end),
    ("blocking work that a runtime which is gone refuses", refused),
    ("blocking threads that leave when idle", threads_leave),
    ("blocking work left by shutdown_background and shutdown_timeout", left),
    ("blocking work that drops its own runtime", drops_its_runtime),
    ("block_in_place", in_place),
    ("block_in_place when its runtime ends", in_place_at_the_end),
];

/// Creates a runtime with at most one blocking thread.
fn one_at_a_time() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).max_blocking_threads(1).build().unwrap()
}

/// Spawns a closure that has started and waits at the gate.
fn started(rt: &Runtime) -> (JoinHandle<String>, Arc<Gate>) {
    let (inside, go_on) = (Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let handle = rt.spawn_blocking(move || {
        entered.open();
        wait.block();
        "done".to_owned()
    });
    inside.block();
    (handle, go_on)
}

fn runs() {
    for rt in all_kinds() {
        let jobs: Vec<_> = (0..10).map(|n| rt.spawn_blocking(move || n.to_string())).collect();
        rt.block_on(async {
            for job in jobs {
                job.await.unwrap();
            }
        });
        let error = rt.block_on(rt.spawn_blocking(|| panic!("{ON_PURPOSE}"))).unwrap_err();
        assert!(error.is_panic());
        let large = [1_u8; 20_000];
        assert_eq!(rt.block_on(rt.spawn_blocking(move || large)).unwrap()[3], 1);
        drop(rt.spawn_blocking(|| "dropped".to_owned()));
        let nested = rt.spawn_blocking(|| {
            let inner = task::spawn_blocking(|| 1);
            Handle::current().block_on(async { inner.await.unwrap() })
        });
        assert_eq!(nested.blocking_join().unwrap(), 1);
    }
}

fn aborted() {
    let rt = one_at_a_time();
    let (runs, go_on) = started(&rt);
    let text = ON_PURPOSE.to_owned();
    let waits = rt.spawn_blocking(move || text);
    let detached = rt.spawn_blocking(|| String::from("detached"));
    let other = detached.abort_handle();
    drop(detached);
    other.abort();
    waits.abort();
    runs.abort();
    go_on.open();
    assert!(waits.blocking_join().unwrap_err().is_cancelled());
    runs.blocking_join().unwrap();
}

fn waits_at_the_end() {
    let rt = one_at_a_time();
    let (runs, go_on) = started(&rt);
    let waiting: Vec<_> = (0..10).map(|n| rt.spawn_blocking(move || n.to_string())).collect();
    let task = rt.spawn(async { drop(task::spawn_blocking(|| String::from("from a task"))) });
    rt.block_on(task).unwrap();
    let dropper = thread::spawn(move || drop(rt));
    go_on.open();
    for handle in waiting {
        handle.blocking_join().unwrap();
    }
    dropper.join().unwrap();
    runs.blocking_join().unwrap();
}

fn refused() {
    for rt in all_kinds() {
        let handle = rt.handle().clone();
        drop(rt);
        let text = ON_PURPOSE.to_owned();
        assert!(handle.spawn_blocking(move || text).is_finished());
    }
}

fn threads_leave() {
    let rt = Builder::new_current_thread().thread_keep_alive(Duration::ZERO).build().unwrap();
    for _ in 0..3 {
        let meeting = Arc::new(Barrier::new(3));
        let jobs: Vec<_> = (0..3)
            .map(|_| {
                let meeting = meeting.clone();
                rt.spawn_blocking(move || meeting.wait().is_leader())
            })
            .collect();
        let led = |job: JoinHandle<bool>| job.blocking_join().unwrap();
        assert_eq!(jobs.into_iter().map(led).filter(|led| *led).count(), 1);
        watchdog::until(|| rt.metrics().num_blocking_threads() == 0);
    }
}

fn left() {
    let ways: [fn(Runtime); 2] =
        [Runtime::shutdown_background, |rt| rt.shutdown_timeout(Duration::from_millis(1))];
    for end in ways {
        for rt in all_kinds() {
            let (runs, go_on) = started(&rt);
            let (detached, detached_too) = started(&rt);
            drop(detached);
            end(rt);
            go_on.open();
            detached_too.open();
            runs.blocking_join().unwrap();
        }
    }
}

fn drops_its_runtime() {
    let rt = workers(2);
    let handle = rt.handle().clone();
    let other = handle.spawn_blocking(|| String::from("other"));
    let job = handle.spawn_blocking(move || drop(rt));
    job.blocking_join().unwrap();
    drop(other);
}

fn in_place() {
    for count in [1, 2] {
        let rt = workers(count);
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                rt.spawn(async {
                    let others: Vec<_> =
                        (0..5).map(|n| blitz_io::spawn(async move { n.to_string() })).collect();
                    let texts = block_in_place(|| {
                        let join = |other: JoinHandle<String>| other.blocking_join().unwrap();
                        others.into_iter().map(join).collect::<Vec<_>>()
                    });
                    yield_now().await;
                    block_in_place(|| Handle::current().block_on(yield_now()));
                    texts
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(rt.block_on(task).unwrap().len(), 5);
        }
        let falls = rt.spawn(async { block_in_place(|| panic!("{ON_PURPOSE}")) });
        assert!(rt.block_on(falls).unwrap_err().is_panic());
    }
}

fn in_place_at_the_end() {
    let ways: [fn(Runtime); 3] =
        [drop, Runtime::shutdown_background, |rt| rt.shutdown_timeout(Duration::from_millis(1))];
    for end in ways {
        let rt = workers(2);
        let (inside, go_on) = (Gate::new(), Gate::new());
        let (entered, wait) = (inside.clone(), go_on.clone());
        let task = rt.spawn(async move {
            block_in_place(|| {
                entered.open();
                wait.block();
            });
            for_ever().await;
        });
        inside.block();
        rt.spawn(for_ever());
        run_until(&rt, || true);
        let dropper = thread::spawn(move || end(rt));
        go_on.open();
        dropper.join().unwrap();
        assert!(task.blocking_join().unwrap_err().is_cancelled());
    }
}
