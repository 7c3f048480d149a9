//! Programs at random: whatever joins, spawns, waits and panics are nested, each closure
//! runs once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use blitz_io::parallel::{
    ThreadPoolBuilder, join, scope, scope_fifo, spawn, yield_local, yield_now,
};

use crate::watch;

/// Closures that were made, and that have run.
#[derive(Default)]
struct Count {
    made: AtomicUsize,
    ran: AtomicUsize,
}

impl Count {
    const fn new() -> Self {
        Self { made: AtomicUsize::new(0), ran: AtomicUsize::new(0) }
    }
}

/// A closure that is made counts; its run counts, and goes on with the program.
fn counted<'a>(count: &'a Count, seed: u64, depth: u32) -> impl FnOnce() + Send + use<'a> {
    count.made.fetch_add(1, Relaxed);
    move || {
        count.ran.fetch_add(1, Relaxed);
        storm(count, seed, depth);
    }
}

/// Splitmix: the next seed and a number of it.
fn next(seed: u64) -> (u64, u64) {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = seed;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (seed, word ^ (word >> 31))
}

/// A program: some steps, each of them anything.
fn storm(count: &Count, seed: u64, depth: u32) {
    if depth == 0 {
        return;
    }
    let (mut seed, word) = next(seed);
    for _ in 0..word % 3 + 1 {
        let word;
        (seed, word) = next(seed);
        let (a, b) = (word, word.rotate_left(17));
        let depth = depth - 1;
        match word >> 60 {
            0 => _ = yield_local(),
            1 => _ = yield_now(),
            2 => scope(|scope| {
                for number in 0..word % 4 {
                    let run = counted(count, a ^ number, depth.min(2));
                    scope.spawn(move |_| run());
                }
                storm(count, b, depth);
            }),
            3 => scope_fifo(|scope| {
                let run = counted(count, a, depth);
                scope.spawn_fifo(move |_| run());
            }),
            4 => {
                // Left behind: whoever comes to it runs it.
                LEFT.made.fetch_add(1, Relaxed);
                spawn(|| _ = LEFT.ran.fetch_add(1, Relaxed));
            }
            5 => {
                let run = counted(count, a, depth);
                let panics = || join::<_, _, (), ()>(run, || resume_unwind(Box::new(7u8)));
                let payload = catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
                assert!(payload.is::<u8>());
            }
            6 => {
                let run = counted(count, a, depth);
                let panics = || join::<_, _, (), ()>(|| resume_unwind(Box::new(7u8)), run);
                let payload = catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
                assert!(payload.is::<u8>());
            }
            _ => _ = join(counted(count, a, depth), counted(count, b, depth)),
        }
    }
}

static LEFT: Count = Count::new();

fn rage(rounds: u64) {
    // The oldest job first is the other way in which jobs are kept.
    let kinds = [(1, false), (2, false), (3, false), (8, false), (2, true), (3, true)];
    for (threads, breadth_first) in kinds {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        #[allow(deprecated, reason = "it is there for those who still use it")]
        let builder = if breadth_first { builder.breadth_first() } else { builder };
        let (pool, count) = (builder.build().unwrap(), Count::default());
        for seed in 0..rounds {
            pool.install(|| storm(&count, seed * 77 + threads as u64, 7));
            let (made, ran) = (count.made.load(Relaxed), count.ran.load(Relaxed));
            assert_eq!(made, ran, "{threads} threads, seed {seed}");
        }
        assert!(count.ran.into_inner() > 0);
    }
    watch::until(|| LEFT.made.load(Relaxed) == LEFT.ran.load(Relaxed));
}

#[test]
fn in_any_program_each_closure_runs_once() {
    let _watch = watch::begin();
    rage(60);
}

/// The same in a process whose barriers are fences: push and pop take another path there.
#[cfg(target_os = "linux")]
#[test]
fn in_any_program_each_closure_runs_once_where_barriers_are_fences() {
    use crate::child;

    let _watch = watch::begin();
    const NAME: &str =
        "parallel_storm::in_any_program_each_closure_runs_once_where_barriers_are_fences";
    if child::role().is_some() {
        let machine = blitz_io::runtime::machine::Machine::probe();
        assert_eq!(machine.barrier, blitz_io::runtime::machine::Barrier::Fences);
        rage(60);
        return;
    }
    child::succeed(child::command(NAME, "rages").env("BLITZ_BARRIER", "fences"));
}

#[test]
#[ignore = "minutes"]
fn in_any_program_each_of_very_many_closures_runs_once() {
    let _watch = watch::begin_for(Duration::from_secs(30 * 60));
    rage(6_000);
}

#[test]
#[ignore = "minutes"]
fn a_hundred_million_jobs_on_more_threads_than_processors_run_once_each() {
    let _watch = watch::begin_for(Duration::from_secs(30 * 60));
    const JOBS: usize = 100_000_000;
    let ran = AtomicUsize::new(0);
    fn divide(count: usize, ran: &AtomicUsize) -> usize {
        if count == 1 {
            ran.fetch_add(1, Relaxed);
            return 1;
        }
        let (a, b) = join(|| divide(count / 2, ran), || divide(count - count / 2, ran));
        a + b
    }
    let pool = ThreadPoolBuilder::new().num_threads(16).build().unwrap();
    assert_eq!(pool.install(|| divide(JOBS, &ran)), JOBS);
    assert_eq!(ran.into_inner(), JOBS);
}
