//! Measures the time of queue operations: ours, our variants, and other crates'.
//!
//! All cases live in one process. A round runs each case once, rounds alternate
//! between forward and backward order so that drift hits all alike, and a case's
//! figure is the median over the rounds. Cases marked 'again' are their neighbour
//! a second time: the distance between the two is the noise floor.

mod contenders;
mod report;
mod rings;
mod injectors;
mod lifo;
mod shares;
mod jobs;

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use harness::{Case, Comparison, Effort, Order, Row};

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    packages: &["crossbeam-deque", "st3"],
    // Its queues are compiled in from its sources.
    has_blitz: false,
    profile: "thin LTO, one codegen unit",
    cases: Some(cases),
    counted: None,
    quick: Effort { rounds: 5, slow_rounds: 5, budget: Duration::ZERO },
    // 31 rounds put the median's own scatter below the noise floor of a quiet machine; picked by
    // trying.
    full: Effort { rounds: 31, slow_rounds: 31, budget: Duration::ZERO },
    order: Order::RoundByRound,
    noise: None,
    how: harness::case::how,
    table: report::table,
    intro: "Medians over rounds, with the quartiles; nanoseconds per unit of the row.",
    ..Comparison::new("queues", env!("CARGO_MANIFEST_DIR"))
};

const ROWS: [Row; 20] = [
    Row::new("ring_push_pop", "push+pop, per pair"),
    Row::new("ring_steal", "steal of half, per item"),
    Row::new("ring_mixed", "8 pushes, 4 pops, 1 steal, per operation"),
    Row::new("ring_robbed", "push+pop under a thief, per pair"),
    Row::new("ring_robbing", "steal of half from a busy owner, per item"),
    Row::new("injector_1", "injector, one thread, per item in and out"),
    Row::new("injector_2", "injector, two threads push and fetch, per item in and out"),
    Row::new("lifo_push_pop", "lifo: push+pop, per pair"),
    Row::new("lifo_burst", "lifo: 4 woken, then 4 run, per item"),
    Row::new("lifo_robbed", "lifo: push+pop under a thief, per pair"),
    Row::new("touch_cache", "pop and touch, items in the cache, per item"),
    Row::new("touch_memory", "pop and touch, items in memory, per item"),
    Row::new("steal_pop", "steal and pop what was stolen, one thread, per item"),
    Row::new("shared_work", "owner and thief run items of 100 ns, per item"),
    Row::new("overflow", "overflow: 600 pushed, then run, one thread, per item"),
    Row::new("overflow_helped", "overflow: 600 pushed, a second thread helps, per item"),
    Row::new("jobs_push_pop", "jobs: push+pop of an empty deque, per pair"),
    Row::new("jobs_push_pop_64", "jobs: push+pop above 64, per pair"),
    Row::new("jobs_steal", "jobs: steal of public ones, per job"),
    Row::new("jobs_steal_silent", "jobs: steal of all from a silent owner, per job"),
];

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn cases() -> Vec<Case> {
    let parts = [rings::cases, injectors::cases, lifo::cases, shares::cases, jobs::cases];
    parts.into_iter().flat_map(|cases| cases()).collect()
}

/// Returns the nanoseconds per operation of a loop that does `operations` of them.
pub(crate) fn ns_per(operations: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// A gate that holds threads back until all of them run, because woken threads would start one by
/// one.
pub(crate) struct Gate {
    missing: AtomicUsize,
}

impl Gate {
    pub(crate) fn new(threads: usize) -> Self {
        Self { missing: AtomicUsize::new(threads) }
    }

    pub(crate) fn pass(&self) {
        // Relaxed: it only counts running threads; what they share is ordered by their spawn and
        // their join.
        self.missing.fetch_sub(1, Relaxed);
        while self.missing.load(Relaxed) > 0 {
            std::hint::spin_loop();
        }
    }
}

/// Makes the other thread stop when dropped, also by a panic, because a scope would wait for that
/// thread forever.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        // Relaxed: a flag to stop; the join orders the rest.
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPARISON, ROWS, cases};

    #[test]
    fn row_names_are_unique_and_each_row_has_cases() {
        harness::check::names(&COMPARISON);
        let cases = cases();
        assert!(ROWS.iter().all(|row| cases.iter().any(|case| case.row == row.name)));
        assert!(cases.iter().all(|case| ROWS.iter().any(|row| case.row == row.name)));
    }
}
