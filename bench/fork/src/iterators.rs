//! The rows that only Rayon's iterators have: sums, sorts, searches that end early, adaptors.
//!
//! The pool is called from outside for each operation, as from a program's main thread. Every
//! result is checked. Searches that end early are given per call, the rest per element.

use std::hint::black_box;
use std::time::{Duration, Instant};

use harness::measure::{Metric, Of, cpu_ns, median, per_op};
use rayon::ThreadPool;
use rayon::prelude::*;

/// The number of elements, unless a row says otherwise.
const COUNT: usize = 10_000_000;
/// The number of elements of the small sorts.
const MILLION: usize = 1_000_000;
/// The position at which a search that ends early finds something: within the first leaf of any
/// split.
const EARLY: u64 = 1_000;
/// The first element of the right half: a thread that begins there finds it at once.
const MIDDLE: u64 = COUNT as u64 / 2;

/// Measures a row; `None` if there is no such row.
pub(crate) fn run(pool: &ThreadPool, row: &str, budget: Duration) -> Option<Vec<Metric>> {
    match row {
        "par_sort" => Some(sort(pool, budget, &scattered(COUNT))),
        "par_sort_random" => Some(sort(pool, budget, &scattered(MILLION))),
        "par_sort_sorted" => Some(sort(pool, budget, &counted(MILLION))),
        "par_sort_reverse" => Some(sort(pool, budget, &backwards(MILLION))),
        "par_sort_equal" => Some(sort(pool, budget, &vec![7; MILLION])),
        "par_enumerate" => Some(enumerate(pool, budget)),
        _ => {
            let numbers = counted(COUNT);
            search(pool, row, budget, &numbers).or_else(|| whole(pool, row, budget, &numbers))
        }
    }
}

/// Returns the numbers from 0, in order.
fn counted(count: usize) -> Vec<u64> {
    (0..count as u64).collect()
}

/// Returns the numbers below `count` in reverse order.
fn backwards(count: usize) -> Vec<u64> {
    (0..count as u64).rev().collect()
}

/// Maps a number to another one in a scattered, collision-free order.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns numbers that are distinct and not in order.
fn scattered(count: usize) -> Vec<u64> {
    (0..count as u64).map(scatter).collect()
}

/// Sorts a copy; making the copy is not measured.
fn sort(pool: &ThreadPool, budget: Duration, numbers: &[u64]) -> Vec<Metric> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let (mut walls, mut copies_ns) = (Vec::new(), 0);
    let (start, cpu) = (Instant::now(), cpu_ns(Of::Process));
    // As in `per_op`: two unmeasured, and at least three measured.
    while walls.len() < 5 || start.elapsed() < budget {
        let before = cpu_ns(Of::ThisThread);
        let mut copy = numbers.to_vec();
        copies_ns += cpu_ns(Of::ThisThread) - before;
        let start = Instant::now();
        pool.install(|| copy.par_sort_unstable());
        walls.push(start.elapsed().as_nanos() as f64 / numbers.len() as f64);
        let before = cpu_ns(Of::ThisThread);
        assert!(copy == sorted, "it is not sorted");
        copies_ns += cpu_ns(Of::ThisThread) - before;
    }
    let cpu = (cpu_ns(Of::Process) - cpu - copies_ns) as f64 / (walls.len() * numbers.len()) as f64;
    vec![Metric::new("", "ns", median(&mut walls[2..]), Some(cpu))]
}

/// Measures searches that need not visit all elements; per call.
fn search(pool: &ThreadPool, row: &str, budget: Duration, numbers: &[u64]) -> Option<Vec<Metric>> {
    let is = |wanted: u64| {
        let wanted = black_box(wanted);
        move |number: &u64| *number == wanted
    };
    let find: &(dyn Fn() -> Option<u64> + Sync) = match row {
        "par_find_any" => &|| numbers.par_iter().copied().find_any(is(EARLY)),
        "par_find_first" => &|| numbers.par_iter().copied().find_first(is(EARLY)),
        "par_position_early" => &|| position(numbers, EARLY),
        "par_position_middle" => &|| position(numbers, MIDDLE),
        "par_any_early" => &|| numbers.par_iter().any(is(EARLY)).then_some(EARLY),
        _ => return None,
    };
    let wanted = if row == "par_position_middle" { MIDDLE } else { EARLY };
    let metrics = per_op(budget, 1, || assert_eq!(pool.install(find), Some(wanted)));
    Some(metrics.into_iter().map(Metric::in_us).collect())
}

fn position(numbers: &[u64], wanted: u64) -> Option<u64> {
    let wanted = black_box(wanted);
    let position = numbers.par_iter().position_any(|number| *number == wanted);
    position.map(|position| position as u64)
}

/// Measures operations that visit all elements; per element.
fn whole(pool: &ThreadPool, row: &str, budget: Duration, numbers: &[u64]) -> Option<Vec<Metric>> {
    // Their sum, and the sum of their squares modulo 2^64.
    const SUM: u64 = COUNT as u64 * (COUNT as u64 - 1) / 2;
    let squares = (0..COUNT as u64).fold(0_u64, |sum, n| sum.wrapping_add(n.wrapping_mul(n)));
    let per_element = |work: &(dyn Fn() -> u64 + Sync), wanted: u64| {
        Some(per_op(budget, COUNT, || assert_eq!(pool.install(work), wanted)))
    };
    let key = |number: &&u64| scatter(**number);
    match row {
        "par_sum" => {
            let numbers: Vec<f64> = numbers.iter().map(|n| *n as f64).collect();
            // Halves of integers below 2^53, so every order of addition gives the same result.
            let sum = || numbers.par_iter().map(|x| x * 0.5).sum::<f64>() as u64;
            per_element(&sum, SUM / 2)
        }
        "par_sum_int" => per_element(&|| numbers.par_iter().sum(), SUM),
        "par_any_full" => {
            per_element(&|| numbers.par_iter().any(|n| *n == u64::MAX).into(), false.into())
        }
        "par_all" => per_element(&|| numbers.par_iter().all(|n| *n < u64::MAX).into(), true.into()),
        "par_min_by_key" => {
            let least = numbers.iter().min_by_key(key).copied()?;
            per_element(&|| *numbers.par_iter().min_by_key(key).expect("it has elements"), least)
        }
        "par_max_by_key" => {
            let most = numbers.iter().max_by_key(key).copied()?;
            per_element(&|| *numbers.par_iter().max_by_key(key).expect("it has elements"), most)
        }
        "par_chunks_sum" => {
            let sum = || numbers.par_chunks(1000).map(|chunk| chunk.iter().sum::<u64>()).sum();
            per_element(&sum, SUM)
        }
        "par_chain" => {
            let (left, right) = numbers.split_at(COUNT / 2);
            per_element(&|| left.par_iter().chain(right.par_iter()).sum(), SUM)
        }
        "par_zip_dot" => {
            let others = numbers.to_vec();
            let product = |(a, b): (&u64, &u64)| a.wrapping_mul(*b);
            let dot = || {
                let products = numbers.par_iter().zip(others.par_iter()).map(product);
                products.reduce(|| 0, u64::wrapping_add)
            };
            per_element(&dot, squares)
        }
        "par_flatten" => {
            let lists: Vec<Vec<u64>> = numbers.chunks(10_000).map(<[u64]>::to_vec).collect();
            per_element(&|| lists.par_iter().flatten().sum(), SUM)
        }
        _ => None,
    }
}

/// Measures a loop that gives each element its index.
fn enumerate(pool: &ThreadPool, budget: Duration) -> Vec<Metric> {
    let mut numbers = vec![0_u64; MILLION];
    let mut first = 0;
    let metrics = per_op(budget, MILLION, || {
        first += 1;
        let number = |(index, place): (usize, &mut u64)| *place = first + index as u64;
        pool.install(|| numbers.par_iter_mut().enumerate().for_each(number));
    });
    assert!(numbers.iter().copied().eq(first..first + MILLION as u64), "an element was left out");
    metrics
}
