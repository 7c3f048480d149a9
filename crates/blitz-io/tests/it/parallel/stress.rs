//! Runs random programs: however joins, spawns, waits and panics are nested, each closure runs
//! once.

use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use blitz_io::parallel::{
    ThreadPoolBuilder, join, scope, scope_fifo, spawn, yield_local, yield_now,
};

use crate::support::watchdog;

/// The numbers of closures that were created, and that have run.
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

/// Creates and counts a closure. Its run is counted as well, and goes on with the program.
fn counted<'a>(count: &'a Count, seed: u64, depth: u32) -> impl FnOnce() + Send + use<'a> {
    count.made.fetch_add(1, Relaxed);
    move || {
        count.ran.fetch_add(1, Relaxed);
        storm(count, seed, depth);
    }
}

/// Returns the next seed and a random number from it (Splitmix).
fn next(seed: u64) -> (u64, u64) {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = seed;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (seed, word ^ (word >> 31))
}

/// Runs a random program: some steps, each of any kind.
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
                // Detached: any thread that finds this job runs it.
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
    // Breadth first, the oldest job first, is the other way in which jobs are stored.
    let kinds = [(1, false), (2, false), (3, false), (8, false), (2, true), (3, true)];
    for (threads, breadth_first) in kinds {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        #[allow(deprecated, reason = "kept for programs that still use it")]
        let builder = if breadth_first { builder.breadth_first() } else { builder };
        let (pool, count) = (builder.build().unwrap(), Count::default());
        for seed in 0..rounds {
            pool.install(|| storm(&count, seed * 77 + threads as u64, 7));
            let (made, ran) = (count.made.load(Relaxed), count.ran.load(Relaxed));
            assert_eq!(made, ran, "{threads} threads, seed {seed}");
        }
        assert!(count.ran.into_inner() > 0);
    }
    watchdog::until(|| LEFT.made.load(Relaxed) == LEFT.ran.load(Relaxed));
}

#[test]
fn in_any_program_each_closure_runs_once() {
    let _watch = watchdog::start();
    rage(60);
}

/// Runs the same programs in a process whose barriers are fences, because push and pop take another
/// path there.
#[cfg(target_os = "linux")]
#[test]
fn in_any_program_each_closure_runs_once_where_barriers_are_fences() {
    use crate::support::child;

    let _watch = watchdog::start();
    const NAME: &str =
        "parallel::stress::in_any_program_each_closure_runs_once_where_barriers_are_fences";
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
    let _watch = watchdog::start_for(Duration::from_secs(30 * 60));
    rage(6_000);
}

/// Numbered jobs, some of which panic.
struct ManyJobs {
    /// One bit for each job that has run.
    ran: Vec<AtomicU64>,
    panics: AtomicUsize,
}

impl ManyJobs {
    /// The size below which a node catches panics. Jobs are divided down to one, so a panic passes
    /// through some ten joins up to the first such node.
    const CATCHES: usize = 2_000;

    /// Creates a many_jobs; `jobs` must be a multiple of 64.
    fn new(jobs: usize) -> Self {
        let ran = (0..jobs / 64).map(|_| AtomicU64::new(0)).collect();
        Self { ran, panics: AtomicUsize::new(0) }
    }

    /// Returns true for one job in ten thousand, in no order: many in all, and few nodes have two.
    fn panics(job: usize) -> bool {
        next(job as u64).1.is_multiple_of(10_000)
    }

    fn run(&self, job: usize) {
        let bit = 1 << (job % 64);
        let before = self.ran[job / 64].fetch_or(bit, Relaxed);
        assert_eq!(before & bit, 0, "job {job} runs again");
        if Self::panics(job) {
            resume_unwind(Box::new(job));
        }
    }

    fn divide(&self, jobs: Range<usize>) {
        match jobs.len() {
            1 => self.run(jobs.start),
            count if (Self::CATCHES / 2..Self::CATCHES).contains(&count) => self.catch(jobs),
            _ => self.halve(jobs),
        }
    }

    fn halve(&self, jobs: Range<usize>) {
        let middle = jobs.start.midpoint(jobs.end);
        join(|| self.divide(jobs.start..middle), || self.divide(middle..jobs.end));
    }

    /// Catches the panic of `jobs`. Each join propagates the panic of its first half, so it must be
    /// that of the lowest number.
    fn catch(&self, jobs: Range<usize>) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.halve(jobs.clone())));
        let panicked = outcome.err().map(|payload| match payload.downcast::<usize>() {
            Ok(job) => *job,
            Err(other) => resume_unwind(other),
        });
        assert_eq!(panicked, jobs.clone().find(|job| Self::panics(*job)), "of {jobs:?}");
        self.panics.fetch_add(panicked.is_some().into(), Relaxed);
    }
}

fn many_jobs(jobs: usize) {
    let many_jobs = ManyJobs::new(jobs);
    let pool = ThreadPoolBuilder::new().num_threads(16).build().unwrap();
    pool.install(|| many_jobs.divide(0..jobs));
    let lost = many_jobs.ran.iter().position(|bits| bits.load(Relaxed) != u64::MAX);
    assert_eq!(lost, None, "the 64 jobs of this number");
    let panics = many_jobs.panics.into_inner();
    // All panics but those that share a node with another.
    assert!(panics > jobs / 10_000 / 2, "{panics} panics");
}

#[test]
fn a_hundred_thousand_jobs_of_which_some_panic_run_once_each() {
    let _watch = watchdog::start();
    many_jobs(100_032);
}

#[test]
#[ignore = "minutes"]
fn a_hundred_million_jobs_of_which_some_panic_run_once_each_on_more_threads_than_processors() {
    let _watch = watchdog::start_for(Duration::from_secs(30 * 60));
    many_jobs(100_000_000);
}
