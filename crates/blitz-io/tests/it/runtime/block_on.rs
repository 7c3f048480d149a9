//! Tests that `block_on` lets tasks run beside its own future.

use blitz_io::{
    runtime::{RuntimeFlavor, worker_index},
    task::yield_now,
};

use crate::support::{runtimes::all_kinds, watchdog};

/// Guards against a `block_on` that polls its own future again and again and nothing else.
#[test]
fn a_yielding_block_on_lets_tasks_run() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        for inside in [false, true] {
            let handle = rt.handle().clone();
            let outside = (!inside).then(|| rt.spawn(async {}));
            let polls = rt.block_on(async move {
                let task = outside.unwrap_or_else(|| handle.spawn(async {}));
                let mut polls = 0_u64;
                // The bound makes the test fail on one thread instead of hanging; other threads get
                // processor time only by the system's scheduling.
                while !task.is_finished() && (polls < 100_000 || worker_index().is_none()) {
                    polls += 1;
                    yield_now().await;
                }
                polls
            });
            let threaded = rt.handle().runtime_flavor() == RuntimeFlavor::MultiThread;
            assert!(polls < 100_000 || threaded, "{polls} polls");
        }
    }
}
