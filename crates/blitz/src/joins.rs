//! Measures a tree of joins, and the same tree by plain calls.
//!
//! Fibonacci numbers without a cut-off: a node does next to nothing but join, so this measures the
//! cost of joins. No real program is like that; it shows what a program with small pieces pays.

use std::{
    hint::black_box,
    sync::mpsc,
    time::{Duration, Instant},
};

use blitz_io::parallel::{self, ThreadPoolBuilder};

/// The number to compute, as in the row `fib` of `bench/fork`.
pub(crate) const N: u32 = 27;
/// The number of measurements of each tree. Picked: the median of five contains neither a warm-up
/// nor a hiccup.
const ROUNDS: usize = 5;

/// The result of the measurement.
#[derive(Debug)]
pub(crate) struct Joins {
    pub(crate) threads: usize,
    /// The values that the trees returned: joined, and by plain calls.
    pub(crate) results: (u64, u64),
    pub(crate) joined: Duration,
    pub(crate) called: Duration,
    /// True if the second half of a join ran while the first one waited for it; `None` with one
    /// thread, where that is impossible.
    pub(crate) shared: Option<bool>,
}

/// Returns the number of joins in the tree.
pub(crate) fn count() -> u64 {
    // One less than there are leaves, and the number of leaves is the next Fibonacci number.
    called(N + 1) - 1
}

/// Measures both, on the global pool, which this starts.
pub(crate) fn run(patience: Duration) -> Result<Joins, String> {
    ThreadPoolBuilder::new().build_global().map_err(|error| error.to_string())?;
    let threads = parallel::current_num_threads();
    let (joined, result) = measured(joined);
    let (called, expected) = measured(called);
    let results = (result, expected);
    let shared = (threads > 1).then(|| second_half_is_taken(patience));
    Ok(Joins { threads, results, joined, called, shared })
}

fn measured(fibonacci: fn(u32) -> u64) -> (Duration, u64) {
    let mut result = 0;
    let mut times = [(); ROUNDS].map(|()| {
        let start = Instant::now();
        result = fibonacci(black_box(N));
        start.elapsed()
    });
    times.sort_unstable();
    (times[ROUNDS / 2], result)
}

fn joined(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = parallel::join(|| joined(n - 1), || joined(n - 2));
    a + b
}

fn called(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = both(|| called(n - 1), || called(n - 2));
    a + b
}

/// Runs both closures in turn: a join without a pool.
fn both<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

/// Returns true if another thread takes the second half of a join. The first half waits for it and
/// does not return to the pool meanwhile, so another thread must take it.
fn second_half_is_taken(patience: Duration) -> bool {
    let (done, wait) = mpsc::channel();
    let (heard, _) =
        parallel::join(move || wait.recv_timeout(patience).is_ok(), move || done.send(()));
    heard
}

#[cfg(test)]
mod tests {
    use super::{called, joined};

    #[test]
    fn both_trees_give_the_same_number() {
        assert_eq!((joined(12), called(12)), (144, 144));
    }

    #[test]
    fn the_joins_of_a_tree_are_one_less_than_the_next_number() {
        fn joins(n: u32) -> u64 {
            if n < 2 { 0 } else { 1 + joins(n - 1) + joins(n - 2) }
        }
        for n in 1..15 {
            assert_eq!(joins(n), called(n + 1) - 1, "{n}");
        }
    }
}
