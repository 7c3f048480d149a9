//! Sorts in parallel: partition, then join the two sides.
//!
//! This is what `join` is for. Both sides are borrowed from one slice, both may run at once, and
//! neither has to: if no other thread is free, the caller sorts one side after the other, for the
//! price of a function call. The partition itself is sequential, so two threads never halve the
//! time; the first pass over the slice is made by one thread.
//!
//! Each input is sorted by std as well, the results are compared, and both times are shown.
//! `quicksort 5000000` sorts that many elements; use `--release` for meaningful times.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use blitz_io::parallel;

/// The number of elements by default.
const ELEMENTS: usize = 400_000;
/// The largest number of elements that fits into the memory of a small machine: there are three
/// copies, of 8 bytes each.
const MOST: usize = 100_000_000;

/// The length up to which pieces are sorted by std, on the current thread.
///
/// A join costs next to nothing if it is not stolen from. A theft costs some microseconds, so a
/// piece that is worth stealing takes some tens of them, and a few thousand numbers do. There are
/// still hundreds of pieces in a million, enough to keep many threads equally busy. Picked so, not
/// measured.
const CUT_OFF: usize = 4_096;

fn main() -> Result<(), Box<dyn Error>> {
    let count = count(std::env::args().nth(1).as_deref())?;
    println!("{count} numbers, {} threads", parallel::current_num_threads());
    println!("{:<10} {:>12} {:>12}", "input", "std", "quicksort");
    for (name, numbers) in inputs(count) {
        let (mut expected, mut sorted) = (numbers.clone(), numbers);
        let std = timed(|| expected.sort_unstable());
        let ours = timed(|| quicksort(&mut sorted));
        println!("{name:<10} {:>9.2} ms {:>9.2} ms", ms(std), ms(ours));
        assert!(sorted == expected, "the input `{name}` was sorted otherwise than by std");
    }
    println!("all were sorted as by std");
    Ok(())
}

fn quicksort<T: Ord + Copy + Send>(items: &mut [T]) {
    // Good pivots leave half, so this many levels are twice the expected number.
    sort(items, 2 * items.len().max(1).ilog2());
}

fn sort<T: Ord + Copy + Send>(items: &mut [T], levels: u32) {
    // Running out of levels means that the input was constructed against our choice of pivots.
    if items.len() <= CUT_OFF || levels == 0 {
        return items.sort_unstable();
    }
    let pivot = pivot(items);
    let less = partition(items, |item| item < pivot);
    if less == 0 {
        // The pivot is the minimum, and the elements that equal it are in place afterwards: many
        // equal elements make the work less, not more.
        let equal = partition(items, |item| item <= pivot);
        return sort(&mut items[equal..], levels - 1);
    }
    let (less, rest) = items.split_at_mut(less);
    parallel::join(|| sort(less, levels - 1), || sort(rest, levels - 1));
}

/// Returns the median of three elements that are far apart, so that sorted inputs are split in
/// halves. None is at an end, because partitions leave the first and the last element they met
/// there.
fn pivot<T: Ord + Copy>(items: &[T]) -> T {
    let quarter = items.len() / 4;
    let mut three = [items[quarter], items[2 * quarter], items[3 * quarter]];
    three.sort_unstable();
    three[1]
}

/// Moves the elements that belong to the front there; returns their number.
fn partition<T: Copy>(items: &mut [T], belongs: impl Fn(T) -> bool) -> usize {
    let mut front = 0;
    for at in 0..items.len() {
        let is_one = belongs(items[at]);
        // Unconditional, and so without a branch, because a processor mispredicts half of such
        // branches.
        items.swap(front, at);
        front += usize::from(is_one);
    }
    front
}

/// Returns the inputs on which quicksorts differ.
fn inputs(count: usize) -> [(&'static str, Vec<u64>); 5] {
    let random: Vec<u64> = numbers().take(count).collect();
    let few = random.iter().map(|number| number % 10).collect();
    let ascending = 0..count as u64;
    [
        ("random", random),
        ("sorted", ascending.clone().collect()),
        ("reversed", ascending.rev().collect()),
        ("few values", few),
        ("equal", vec![7; count]),
    ]
}

/// Returns the same numbers in each run, in no order (xorshift, with Marsaglia's constants).
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(88_172_645_463_325_252), |&last: &u64| {
        let next = last ^ (last << 13);
        let next = next ^ (next >> 7);
        Some(next ^ (next << 17))
    })
}

fn count(argument: Option<&str>) -> Result<usize, String> {
    let Some(argument) = argument else { return Ok(ELEMENTS) };
    match argument.parse() {
        Ok(count) if count <= MOST => Ok(count),
        _ => Err(format!(
            "`{argument}` is no number of elements: give one from 0 to {MOST}, or none for {ELEMENTS}"
        )),
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
