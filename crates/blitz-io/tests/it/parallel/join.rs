//! Tests joins: both halves run once each, and a panic is propagated when both are done.
//!
//! No test depends on how jobs are stored; `pool` creates the pools of all of them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread::ThreadId,
};

use blitz_io::parallel::{
    FnContext, ThreadPoolBuilder, Worker, call, current_thread_index, join, join_context, scope,
    spawn, yield_local,
};

use crate::support::{
    gate::Gate,
    pools::{pool, reserve_temporary_worker},
    watchdog,
};

fn here() -> ThreadId {
    std::thread::current().id()
}

fn fibonacci(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

#[test]
fn a_tree_of_joins_has_the_sum_of_its_leaves_on_any_number_of_threads() {
    let _watch = watchdog::start();
    for threads in [1, 2, 8, 64] {
        assert_eq!(pool(threads).install(|| fibonacci(18)), 2584, "{threads} threads");
    }
}

#[test]
fn both_halves_run_at_once_if_there_are_two_threads() {
    let _watch = watchdog::start();
    let (pool, both) = (pool(2), Barrier::new(2));
    for _ in 0..50 {
        // Neither half goes on without the other.
        let (a, b) = pool.join(
            || {
                both.wait();
                here()
            },
            || {
                both.wait();
                here()
            },
        );
        assert_ne!(a, b);
    }
}

#[test]
fn a_half_that_is_busy_for_long_is_relieved_of_all_that_waits() {
    let _watch = watchdog::start();
    let (pool, left) = (pool(2), AtomicUsize::new(7));
    let gate = Gate::new();
    // The first half of each join blocks until all second halves have run, on the other thread,
    // which is not notified of them.
    fn nest(depth: usize, left: &AtomicUsize, gate: &Gate) {
        if depth == 0 {
            gate.block();
            return;
        }
        join(
            || nest(depth - 1, left, gate),
            || {
                if left.fetch_sub(1, SeqCst) == 1 {
                    gate.open();
                }
            },
        );
    }
    pool.install(|| nest(7, &left, &gate));
    assert_eq!(left.into_inner(), 0);
}

#[test]
fn a_panic_of_either_half_waits_for_the_other() {
    let _watch = watchdog::start();
    for threads in [1, 2] {
        let pool = pool(threads);
        for panicking in ["a", "b", "ab"] {
            let ran = AtomicUsize::new(0);
            let half = |name: &'static str| {
                ran.fetch_add(1, SeqCst);
                if panicking.contains(name) {
                    resume_unwind(Box::new(name));
                }
            };
            let both = || pool.join(|| half("a"), || half("b"));
            let payload = catch_unwind(AssertUnwindSafe(both)).unwrap_err();
            // The panic of the first half is propagated.
            assert_eq!(payload.downcast_ref::<&str>(), Some(&&panicking[..1]));
            assert_eq!(ran.into_inner(), 2, "both run, whatever becomes of the other");
        }
    }
}

#[test]
fn a_pool_is_as_good_as_new_after_panics_at_any_depth() {
    let _watch = watchdog::start();
    fn explode(depth: u32, at: u32) -> u64 {
        if depth == at {
            resume_unwind(Box::new(depth));
        }
        if depth == 0 {
            return 1;
        }
        let (a, b) = join(|| explode(depth - 1, at), || explode(depth - 1, at + 1));
        a + b
    }
    for threads in [1, 2, 4] {
        let pool = pool(threads);
        for at in 0..8 {
            let outcome = catch_unwind(AssertUnwindSafe(|| pool.install(|| explode(8, at))));
            assert!(outcome.is_err());
            assert_eq!(pool.install(|| fibonacci(14)), 377);
        }
    }
}

#[test]
fn the_thread_is_not_panicking_while_the_second_half_runs() {
    let _watch = watchdog::start();
    let outcome = catch_unwind(|| {
        pool(1).join(
            || resume_unwind(Box::new(())),
            || assert!(!std::thread::panicking(), "it runs like any other code"),
        )
    });
    assert!(outcome.is_err());
}

#[test]
fn a_closure_knows_whether_it_moved() {
    let _watch = watchdog::start();
    let moved = |context: FnContext| context.migrated();
    let one = pool(1);
    // From outside both halves are sent to the pool; inside, no other thread can take the second.
    assert_eq!(join_context(moved, moved), (true, true));
    assert_eq!(one.install(|| join_context(moved, moved)), (false, false));
    let (two, gate) = (pool(2), Gate::new());
    let moves = two.install(|| {
        join_context(
            |context| {
                gate.block();
                context.migrated()
            },
            |context| {
                gate.open();
                context.migrated()
            },
        )
    });
    assert_eq!(moves, (false, true));
}

#[test]
fn a_second_half_that_a_nested_wait_ran_counts_as_moved() {
    let _watch = watchdog::start();
    let moves = pool(1).install(|| {
        join_context(
            |_| {
                // Takes the job on top of the stack: the second half.
                assert!(yield_local().is_some());
            },
            |context| context.migrated(),
        )
    });
    assert!(moves.1);
}

#[test]
fn jobs_that_the_first_half_left_behind_run_before_the_second() {
    let _watch = watchdog::start();
    let (sender, receiver) = std::sync::mpsc::channel();
    pool(1).install(|| {
        let (first, second) = (sender.clone(), sender);
        join(
            move || {
                for name in ["a", "b"] {
                    let first = first.clone();
                    spawn(move || first.send(name).unwrap());
                }
            },
            move || second.send("second half").unwrap(),
        );
    });
    // The newest job first.
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), ["b", "a", "second half"]);
}

#[test]
fn a_job_in_the_place_of_one_that_was_run_is_not_taken_for_it() {
    let _watch = watchdog::start();
    let (sender, receiver) = std::sync::mpsc::channel();
    pool(1).install(|| {
        let (first, second) = (sender.clone(), sender);
        join(
            move || {
                // Runs the second half, and pushes another job in its place.
                assert!(yield_local().is_some());
                spawn(move || first.send("other").unwrap());
            },
            move || second.send("second half").unwrap(),
        );
    });
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), ["second half", "other"]);
}

/// Runs a join whose first half is a join, and so on.
fn nest(depth: usize) -> usize {
    if depth == 0 {
        return 0;
    }
    let (deeper, one) = join(|| nest(depth - 1), || 1);
    deeper + one
}

fn nest_on(threads: usize, stack_size: usize, depth: usize) {
    let builder = ThreadPoolBuilder::new().num_threads(threads).stack_size(stack_size);
    assert_eq!(builder.build().unwrap().install(|| nest(depth)), depth);
}

#[test]
fn joins_nest_as_deep_as_the_threads_stack_allows() {
    let _watch = watchdog::start();
    for threads in [1, 2] {
        nest_on(threads, 512 << 20, 100_000);
    }
}

#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[cfg_attr(debug_assertions, ignore = "frames are several times as large without optimisation")]
fn a_million_joins_nest_on_a_large_enough_stack() {
    let _watch = watchdog::start();
    for threads in [1, 2] {
        nest_on(threads, 1 << 30, 1_000_000);
    }
}

#[test]
fn results_are_dropped_if_the_other_half_panics() {
    let _watch = watchdog::start();
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    for threads in [1, 2] {
        let (pool, drops) = (pool(threads), AtomicUsize::new(0));
        for first in [true, false] {
            let half = |panics: bool| {
                if panics {
                    resume_unwind(Box::new(()));
                }
                Counted(&drops)
            };
            let both = || pool.join(|| half(first), || half(!first));
            assert!(catch_unwind(AssertUnwindSafe(both)).is_err());
        }
        assert_eq!(drops.into_inner(), 2);
    }
}

#[test]
fn a_caller_takes_part_and_is_no_thread_of_the_pool() {
    let _watch = watchdog::start();
    let _reserved = reserve_temporary_worker();
    fn sum(worker: Worker<'_>, range: std::ops::Range<u64>) -> u64 {
        if range.end - range.start < 8 {
            return range.sum();
        }
        let middle = range.start.midpoint(range.end);
        let (start, end) = (range.start, range.end);
        let (a, b) = worker.join(|w| sum(w, start..middle), |w| sum(w, middle..end));
        a + b
    }
    let caller = here();
    let total = call(|worker| {
        assert_eq!((here(), current_thread_index()), (caller, None));
        // A temporary worker's jobs are not lost, and the pool runs the closure of a second caller.
        let (sender, receiver) = std::sync::mpsc::channel();
        spawn(move || sender.send(()).unwrap());
        let other = std::thread::scope(|scope| {
            scope.spawn(|| call(|_| current_thread_index())).join().unwrap()
        });
        assert!(other.is_some());
        (sum(worker, 0..10_000), receiver)
    });
    assert_eq!(total.0, 49_995_000);
    assert!(total.1.recv().is_ok(), "jobs spawned by a temporary worker run");
    let outcome = catch_unwind(|| call(|_| resume_unwind(Box::new(7))));
    assert_eq!(outcome.map_err(|payload| *payload.downcast::<i32>().unwrap()), Err::<(), _>(7));
    assert_eq!(call(|_| here()), caller, "a panic frees the temporary worker");
}

#[test]
fn a_join_inside_a_scope_inside_a_join_waits_for_all() {
    let _watch = watchdog::start();
    let ran = AtomicUsize::new(0);
    pool(2).install(|| {
        join(
            || {
                scope(|scope| {
                    for _ in 0..10 {
                        scope.spawn(|scope| {
                            scope.spawn(|_| _ = ran.fetch_add(1, SeqCst));
                            join(|| ran.fetch_add(1, SeqCst), || ran.fetch_add(1, SeqCst));
                        });
                    }
                });
                assert!(ran.load(SeqCst) >= 30);
            },
            || ran.fetch_add(1, SeqCst),
        );
    });
    assert_eq!(ran.into_inner(), 31);
}
