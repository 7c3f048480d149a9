//! The workloads. A pool is a macro's argument, not a type parameter, so the compiled code is what
//! a user of that pool would write.
//!
//! `recursion!` defines the functions that join, in the form that a pool has: `plain` calls a
//! function, `passed` passes a handle along. The rest is generic over [`Pool`].

use std::hint::black_box;
use std::time::{Duration, Instant};

use harness::Metric;
use harness::measure::{Of, cpu_ns, median, others_sleep, per_op, percentile};

/// A tree; `None` if empty.
pub(crate) type Tree = Option<Box<Node>>;

/// The child of a node that is visited first, as far as a pool follows the request.
#[derive(Clone, Copy)]
pub(crate) enum First {
    Left,
    /// In the order of memory.
    Right,
}

/// A node of a tree, with its children allocated before it.
pub(crate) struct Node {
    pub(crate) value: u64,
    pub(crate) left: Tree,
    pub(crate) right: Tree,
}

impl Node {
    /// Creates a full tree of this many levels.
    pub(crate) fn tree(levels: u32) -> Tree {
        if levels == 0 {
            return None;
        }
        let (left, right) = (Node::tree(levels - 1), Node::tree(levels - 1));
        Some(Box::new(Node { value: 1, left, right }))
    }
}

/// The operations that a contender must support. Each runs on a pool with its number of threads,
/// and enters it once: repetitions are made inside.
pub(crate) trait Pool: Sync {
    fn fibonacci(&self, n: u32) -> u64;
    /// Computes the sum of a tree `times` times, and returns the total.
    fn sums(&self, tree: &Tree, first: First, times: usize) -> u64;
    /// Joins two closures.
    fn both(&self, a: &(impl Fn() + Sync), b: &(impl Fn() + Sync));
    /// Runs a closure for each number below `count`, as a balanced tree.
    fn leaves(&self, count: usize, leaf: &(impl Fn() + Sync));
    /// Runs a closure for each number below `count`, as a list.
    fn chain(&self, count: usize, leaf: &(impl Fn() + Sync));
    /// Runs an empty closure on the pool.
    fn install(&self);
}

/// Defines the functions that join.
#[macro_export]
macro_rules! recursion {
    (plain $join:path) => {
        fn fibonacci(n: u32) -> u64 {
            if n < 2 {
                return n.into();
            }
            let (a, b) = $join(|| fibonacci(n - 1), || fibonacci(n - 2));
            a + b
        }

        fn sum_left(node: &$crate::workloads::Tree) -> u64 {
            let Some(node) = node else { return 0 };
            let (a, b) = $join(|| sum_left(&node.left), || sum_left(&node.right));
            node.value + a + b
        }

        fn sum_right(node: &$crate::workloads::Tree) -> u64 {
            let Some(node) = node else { return 0 };
            let (a, b) = $join(|| sum_right(&node.right), || sum_right(&node.left));
            node.value + a + b
        }

        fn sums(
            tree: &$crate::workloads::Tree,
            first: $crate::workloads::First,
            times: usize,
        ) -> u64 {
            let mut total = 0;
            for _ in 0..times {
                let tree = std::hint::black_box(tree);
                total += match first {
                    $crate::workloads::First::Left => sum_left(tree),
                    $crate::workloads::First::Right => sum_right(tree),
                };
            }
            total
        }

        fn leaves(count: usize, leaf: &(impl Fn() + Sync)) {
            if count == 1 {
                return leaf();
            }
            $join(|| leaves(count / 2, leaf), || leaves(count - count / 2, leaf));
        }

        fn chain(count: usize, leaf: &(impl Fn() + Sync)) {
            if count == 1 {
                return leaf();
            }
            $join(|| chain(count - 1, leaf), leaf);
        }
    };
    (passed $handle:ty, $join:ident) => {
        #[allow(unused_mut, reason = "one contender's handle is borrowed, another's copied")]
        fn fibonacci(mut handle: $handle, n: u32) -> u64 {
            if n < 2 {
                return n.into();
            }
            let (a, b) = handle.$join(|h| fibonacci(h, n - 1), |h| fibonacci(h, n - 2));
            a + b
        }

        #[allow(unused_mut, reason = "as above")]
        fn sum_left(mut handle: $handle, node: &$crate::workloads::Tree) -> u64 {
            let Some(node) = node else { return 0 };
            let (a, b) = handle.$join(|h| sum_left(h, &node.left), |h| sum_left(h, &node.right));
            node.value + a + b
        }

        #[allow(unused_mut, reason = "as above")]
        fn sum_right(mut handle: $handle, node: &$crate::workloads::Tree) -> u64 {
            let Some(node) = node else { return 0 };
            let (a, b) = handle.$join(|h| sum_right(h, &node.right), |h| sum_right(h, &node.left));
            node.value + a + b
        }

        #[allow(unused_mut, reason = "as above")]
        fn sums(
            mut handle: $handle,
            tree: &$crate::workloads::Tree,
            first: $crate::workloads::First,
            times: usize,
        ) -> u64 {
            let mut total = 0;
            for _ in 0..times {
                let tree = std::hint::black_box(tree);
                total += match first {
                    $crate::workloads::First::Left => sum_left(handle, tree),
                    $crate::workloads::First::Right => sum_right(handle, tree),
                };
            }
            total
        }

        #[allow(unused_mut, reason = "as above")]
        fn leaves(mut handle: $handle, count: usize, leaf: &(impl Fn() + Sync)) {
            if count == 1 {
                return leaf();
            }
            handle.$join(|h| leaves(h, count / 2, leaf), |h| leaves(h, count - count / 2, leaf));
        }

        #[allow(unused_mut, reason = "as above")]
        fn chain(mut handle: $handle, count: usize, leaf: &(impl Fn() + Sync)) {
            if count == 1 {
                return leaf();
            }
            handle.$join(|h| chain(h, count - 1, leaf), |_| leaf());
        }
    };
}

/// Returns the number of calls that join in `fibonacci(n)`.
fn joins(n: u32) -> usize {
    let (mut this, mut next) = (0, 0);
    for _ in 1..n {
        (this, next) = (next, 1 + this + next);
    }
    next
}

/// Keeps a processor busy for this time.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Measures a row; `None` if there is no such row.
pub(crate) fn run(pool: &impl Pool, row: &str, budget: Duration) -> Option<Vec<Metric>> {
    Some(match row {
        "fib" => {
            let n = 27;
            per_op(budget, joins(n), || assert_eq!(pool.fibonacci(black_box(n)), 196_418))
        }
        "tree_1k" => tree(pool, 10, 1 << 10, First::Left, budget),
        "tree_1k_called" => tree(pool, 10, 1, First::Left, budget),
        "tree_131k" => tree(pool, 17, 1 << 3, First::Left, budget),
        "tree_1m" => tree(pool, 20, 4, First::Left, budget),
        "tree_1m_right" => tree(pool, 20, 4, First::Right, budget),
        "tree_8m" => tree(pool, 23, 2, First::Left, budget),
        "tree_8m_right" => tree(pool, 23, 2, First::Right, budget),
        "join_10ms" => {
            let leaf = || spin(Duration::from_millis(10));
            per_op(budget, 1, || pool.both(&leaf, &leaf))
        }
        "leaves_200us" => {
            per_op(budget, 1, || pool.leaves(16, &|| spin(Duration::from_micros(200))))
        }
        "chain_50us" => per_op(budget, 1, || pool.chain(100, &|| spin(Duration::from_micros(50)))),
        "install_awake" => latencies(|| pool.install(), budget, false),
        "install_asleep" => latencies(|| pool.install(), budget, true),
        "to_sleep" => {
            until_asleep(budget, || pool.leaves(16, &|| spin(Duration::from_micros(50))), || ())
        }
        "sleep_cycle" => until_asleep(budget, pause, || pool.install()),
        _ => return None,
    })
}

/// Measures the sum of a tree. Small trees are visited so often for one call of the pool that
/// entering it is negligible: a batch is a million nodes, some milliseconds. Large ones are visited
/// more than once, so that it does not matter which thread of a pool begins: a caller that takes
/// part is always the same, and finds its earlier data in its caches.
fn tree(
    pool: &impl Pool,
    levels: u32,
    times: usize,
    first: First,
    budget: Duration,
) -> Vec<Metric> {
    let tree = Node::tree(levels);
    let nodes = times * ((1 << levels) - 1);
    per_op(budget, nodes, || assert_eq!(pool.sums(&tree, first, times), nodes as u64))
}

/// Waits until all workers sleep: they do within a millisecond, dozing or not.
fn pause() {
    std::thread::sleep(Duration::from_millis(3));
}

/// Measures latencies of a call.
pub(crate) fn latencies(call: impl Fn(), budget: Duration, asleep: bool) -> Vec<Metric> {
    (0..100).for_each(|_| call());
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 100 || start.elapsed() < budget {
        if asleep {
            pause();
        }
        let start = Instant::now();
        call();
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    let figures = [("p10", 10), ("p50", 50), ("p99", 99)];
    figures.map(|(name, rank)| Metric::new(name, "us", percentile(&mut times, rank), None)).into()
}

/// Runs `before`, then measures the time from `measured` until all workers sleep, and the processor
/// time that they use meanwhile.
fn until_asleep(budget: Duration, before: impl Fn(), measured: impl Fn()) -> Vec<Metric> {
    let (mut times, mut burnt) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while times.len() < 20 || start.elapsed() < budget {
        before();
        let (start, cpu) = (Instant::now(), cpu_ns(Of::Process) - cpu_ns(Of::ThisThread));
        measured();
        // Without a pause, because a call takes some tens of microseconds itself.
        while !others_sleep() {}
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
        burnt.push((cpu_ns(Of::Process) - cpu_ns(Of::ThisThread) - cpu) as f64 / 1e3);
    }
    vec![
        Metric::new("time", "us", median(&mut times), None),
        Metric::new("cpu", "us", median(&mut burnt), None),
    ]
}

#[cfg(test)]
mod tests {
    use super::joins;

    #[test]
    fn the_joins_of_small_trees_are_counted() {
        // fib(2) joins once, fib(3) twice, fib(4) four times.
        assert_eq!([1, 2, 3, 4, 5].map(joins), [0, 1, 2, 4, 7]);
    }
}
