//! Rayon, with whichever core it is linked.

use std::time::Duration;

use harness::Metric;

use crate::iterators;
use crate::workloads::{self, First, Pool, Tree};

crate::recursion!(plain rayon::join);

struct Rayon(rayon::ThreadPool);

impl Pool for Rayon {
    fn fibonacci(&self, n: u32) -> u64 {
        self.0.install(|| fibonacci(n))
    }

    fn sums(&self, tree: &Tree, first: First, times: usize) -> u64 {
        self.0.install(|| sums(tree, first, times))
    }

    fn both(&self, a: &(impl Fn() + Sync), b: &(impl Fn() + Sync)) {
        self.0.join(a, b);
    }

    fn leaves(&self, count: usize, leaf: &(impl Fn() + Sync)) {
        self.0.install(|| leaves(count, leaf));
    }

    fn chain(&self, count: usize, leaf: &(impl Fn() + Sync)) {
        self.0.install(|| chain(count, leaf));
    }

    fn install(&self) {
        self.0.install(|| ());
    }
}

/// Measures a row; `None` if there is no such row.
pub(crate) fn child(row: &str, threads: usize, budget: Duration) -> Option<Vec<Metric>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("threads can be started");
    match row.starts_with("par_") {
        true => iterators::run(&pool, row, budget),
        false => workloads::run(&Rayon(pool), row, budget),
    }
}
