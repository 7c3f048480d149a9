//! Tests that ended fibers leave little memory behind while their runtime is idle.

use std::{
    thread,
    time::{Duration, Instant},
};

use blitz_io::{runtime::Builder, task::JoinHandle};

use crate::{counting_allocator::Live, fiber, support::child};

const FIBERS: usize = 500;
/// The size of each fiber's result, which lies in its task's memory.
const RESULT: usize = 64 << 10;
/// The number of bytes that may stay allocated: up to a mebibyte waits for the carrier thread to
/// free it, and a little more is on its way there.
const STAYS: isize = 2 << 20;

/// Waits until the carrier has freed memory although no task wakes it.
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
        // Unoptimised builds copy results a few times.
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
    // This thread frees the memory while the carrier sleeps.
    let fibers: Vec<_> = (0..FIBERS).map(|_| spawn()).collect();
    fibers.iter().for_each(|fiber| {
        while !fiber.is_finished() {
            thread::yield_now();
        }
    });
    drop(fibers);
    assert_given_back(before, "all at once");
}
