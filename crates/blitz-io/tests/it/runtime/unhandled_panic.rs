//! Tests that a panic of a task ends the runtime where the builder is configured so.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
};

use blitz_io::{
    runtime::{Builder, Runtime, UnhandledPanic},
    task::yield_now,
};

use crate::support::{
    caught_panic::{message, panic_of},
    drop_tally::Tally,
    manual_poll::poll_once,
    watchdog,
};

const TEXT: &str =
    "a spawned task panicked and the runtime is configured to shut down on unhandled panic";

fn with(policy: &UnhandledPanic) -> [Runtime; 3] {
    let build = |mut builder: Builder, workers| {
        builder.worker_threads(workers).unhandled_panic(policy.clone()).build().unwrap()
    };
    [
        build(Builder::new_current_thread(), 1),
        build(Builder::new_multi_thread(), 1),
        build(Builder::new_multi_thread(), 3),
    ]
}

fn strict() -> [Runtime; 3] {
    with(&UnhandledPanic::ShutdownRuntime)
}

/// Panics like a task, without the report of the panic hook.
fn boom() {
    std::panic::resume_unwind(Box::new("boom"));
}

/// Returns the message with which a `block_on` panicked.
fn block_on_fails<F: Future>(rt: &Runtime, future: F) -> String {
    let caught = catch_unwind(AssertUnwindSafe(|| drop(rt.block_on(future))));
    message(&*caught.expect_err("block_on goes on"))
}

#[test]
fn panics_are_ignored_unless_configured() {
    let _watch = watchdog::start();
    for rt in with(&UnhandledPanic::Ignore).into_iter().chain(crate::support::runtimes::all_kinds())
    {
        let bad = rt.spawn(async { boom() });
        let good = rt.spawn(async { 7 });
        assert!(rt.block_on(bad).unwrap_err().is_panic());
        assert_eq!(rt.block_on(good).unwrap(), 7);
    }
}

#[test]
fn a_panic_of_a_task_makes_block_on_panic() {
    let _watch = watchdog::start();
    for rt in strict() {
        let waits = async {
            blitz_io::spawn(async { boom() });
            pending::<()>().await;
        };
        assert!(block_on_fails(&rt, waits).starts_with(TEXT));
        assert!(block_on_fails(&rt, async {}).starts_with(TEXT), "and every later one");
        let later = catch_unwind(AssertUnwindSafe(|| rt.handle().block_on(async {})));
        assert!(message(&*later.unwrap_err()).starts_with(TEXT));
    }
}

#[test]
fn a_block_on_that_joins_the_panicked_task_panics_in_either_order() {
    let _watch = watchdog::start();
    for _ in 0..50 {
        for rt in strict() {
            let task = rt.spawn(async { boom() });
            assert!(block_on_fails(&rt, task).starts_with(TEXT));
        }
    }
}

#[test]
fn a_block_on_that_wakes_itself_all_the_time_panics_too() {
    let _watch = watchdog::start();
    for rt in strict() {
        rt.spawn(async { boom() });
        let spins = async {
            loop {
                yield_now().await;
            }
        };
        assert!(block_on_fails(&rt, spins).starts_with(TEXT));
    }
}

#[test]
fn the_panic_of_block_on_names_its_caller() {
    let _watch = watchdog::start();
    for rt in strict() {
        rt.spawn(async { boom() });
        let caught = panic_of(|| rt.block_on(pending::<()>()));
        caught.says(&[TEXT]).at(file!(), line!() - 1);
    }
}

#[test]
fn every_task_ends_and_is_dropped_once() {
    let _watch = watchdog::start();
    for rt in strict() {
        let tally = Tally::new();
        let mut tasks: Vec<_> = (0..100)
            .map(|_| {
                let token = tally.token();
                rt.spawn(async move {
                    let _token = token;
                    pending::<()>().await;
                })
            })
            .collect();
        let token = tally.token();
        let bad = rt.spawn(async move {
            token.keep();
            boom();
        });
        assert!(block_on_fails(&rt, pending::<()>()).starts_with(TEXT));
        watchdog::until(|| bad.is_finished() && tasks.iter().all(|task| task.is_finished()));
        for task in &mut tasks {
            let std::task::Poll::Ready(Err(error)) = poll_once(task) else { panic!("it goes on") };
            assert!(error.is_cancelled());
        }
        tally.assert_all_dropped(101);
        drop(rt);
        tally.assert_all_dropped(101);
    }
}

#[test]
fn tasks_spawned_after_the_panic_are_cancelled() {
    let _watch = watchdog::start();
    for rt in strict() {
        rt.spawn(async { boom() });
        assert!(block_on_fails(&rt, pending::<()>()).starts_with(TEXT));
        let mut task = rt.spawn(async { 1 });
        // A worker that was in a poll may not have finished it yet.
        watchdog::until(|| task.is_finished());
        let std::task::Poll::Ready(Err(error)) = poll_once(&mut task) else { panic!("it ran") };
        assert!(error.is_cancelled());
    }
}

#[test]
fn all_threads_in_block_on_panic() {
    let _watch = watchdog::start();
    for rt in strict() {
        let rt = Arc::new(rt);
        let (sender, receiver) = mpsc::channel();
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let (rt, sender) = (rt.clone(), sender.clone());
                std::thread::spawn(move || {
                    let waits = async {
                        sender.send(()).unwrap();
                        pending::<()>().await;
                    };
                    if n % 2 == 0 { rt.block_on(waits) } else { rt.handle().block_on(waits) }
                })
            })
            .collect();
        (0..4).for_each(|_| receiver.recv().unwrap());
        rt.spawn(async { boom() });
        // On a current-thread runtime the task runs once a thread drives it.
        for thread in threads {
            assert!(message(&*thread.join().unwrap_err()).starts_with(TEXT));
        }
    }
}

#[test]
fn a_panic_in_the_drop_of_a_future_counts() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            boom();
        }
    }
    let _watch = watchdog::start();
    for rt in strict() {
        let bad = Bad;
        let task = rt.spawn(async move {
            let _bad = bad;
            pending::<()>().await;
        });
        task.abort();
        assert!(block_on_fails(&rt, pending::<()>()).starts_with(TEXT));
    }
}

#[test]
fn a_panic_of_block_ons_own_future_is_its_own() {
    let _watch = watchdog::start();
    for rt in strict() {
        let caught = catch_unwind(AssertUnwindSafe(|| rt.block_on(async { boom() })));
        assert_eq!(message(&*caught.unwrap_err()), "boom");
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1, "the runtime goes on");
    }
}

#[test]
fn a_cancelled_task_is_no_panic() {
    let _watch = watchdog::start();
    for rt in strict() {
        let task = rt.spawn(pending::<()>());
        task.abort();
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_runtime_can_be_dropped_while_its_panic_unwinds() {
    let _watch = watchdog::start();
    for index in 0..3 {
        let caught = catch_unwind(|| {
            let rt = strict().into_iter().nth(index).unwrap();
            rt.spawn(async { boom() });
            rt.block_on(pending::<()>());
        });
        assert!(message(&*caught.unwrap_err()).starts_with(TEXT));
    }
}

#[blitz_io::test(flavor = "current_thread", unhandled_panic = "shutdown_runtime")]
#[should_panic(expected = "configured to shut down on unhandled panic")]
async fn the_attribute_shuts_down() {
    let _ = blitz_io::spawn(async { boom() }).await;
}

#[blitz_io::test(flavor = "current_thread", unhandled_panic = "ignore")]
async fn the_attribute_ignores() {
    assert!(blitz_io::spawn(async { boom() }).await.unwrap_err().is_panic());
}
