//! Rayon, whichever core it is linked with, and the rows that only its iterators have.

use std::hint::black_box;
use std::time::Duration;

use rayon::prelude::*;

use crate::measure::{Metric, per_op};
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

/// Numbers that differ and do not come in order.
fn scattered(count: u64) -> Vec<u64> {
    (0..count).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// Measures a row; `None` if there is no such row.
pub(crate) fn child(row: &str, threads: usize, budget: Duration) -> Option<Vec<Metric>> {
    const COUNT: usize = 10_000_000;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.expect("threads can be started");
    Some(match row {
        "par_sum" => {
            let numbers: Vec<f64> = (0..COUNT).map(|n| n as f64).collect();
            per_op(budget, COUNT, || {
                let sum = || numbers.par_iter().map(|x| x * 0.5).sum::<f64>();
                assert!(black_box(pool.install(sum)) > 0.0);
            })
        }
        "par_sort" => {
            let numbers = scattered(COUNT as u64);
            let mut copy = numbers.clone();
            per_op(budget, COUNT, || {
                copy.copy_from_slice(&numbers);
                pool.install(|| copy.par_sort_unstable());
                assert!(copy[0] <= copy[1]);
            })
        }
        _ => return workloads::run(&Rayon(pool), row, budget),
    })
}
