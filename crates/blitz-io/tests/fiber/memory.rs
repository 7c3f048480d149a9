//! What ended fibers leave behind while their runtime has nothing to do.

use std::{
    thread,
    time::{Duration, Instant},
};

use blitz_io::{fiber, runtime::Builder, task::JoinHandle};

use crate::{child, count::Live};

const FIBERS: usize = 500;
/// What each gives back, in its task's memory.
const RESULT: usize = 64 << 10;
/// What may stay: a mebibyte waits for its thread, and a few more are on their way.
const STAYS: isize = 2 << 20;

/// Waits until the carrier, which nobody calls, has given memory back.
#[track_caller]
fn assert_given_back(before: Live, what: &str) {
    let begin = Instant::now();
    loop {
        let more = Live::now().since(before).bytes;
        if more < STAYS {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}: {more} bytes are kept");
        thread::yield_now();
    }
}

#[test]
fn large_results_do_not_stay_for_long() {
    const NAME: &str = "memory::large_results_do_not_stay_for_long";
    if child::role().is_none() {
        child::succeed(&mut child::command(NAME, "child"));
        return;
    }
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .fiber_threads(1)
        // Builds that are not optimised copy results a few times.
        .fiber_stack_size(16 * RESULT)
        .build()
        .unwrap();
    let spawn = || -> JoinHandle<[u8; RESULT]> {
        fiber::Builder::new().spawn_on(|| [1; RESULT], rt.handle()).unwrap()
    };
    drop(rt.block_on(spawn()));
    let before = Live::now();
    for _ in 0..FIBERS {
        drop(rt.block_on(spawn()));
    }
    assert_given_back(before, "one after the other");
    // Given back by this thread, while the carrier sleeps.
    let fibers: Vec<_> = (0..FIBERS).map(|_| spawn()).collect();
    fibers.iter().for_each(|fiber| {
        while !fiber.is_finished() {
            thread::yield_now();
        }
    });
    drop(fibers);
    assert_given_back(before, "all at once");
}
