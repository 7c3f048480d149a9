//! Sorts in parallel: partition, then join the two sides.
//!
//! This is what `join` is for. Both sides are borrowed from one slice, both may run at once, and
//! neither has to: who is alone sorts one side after the other, for the price of a function
//! call. The partition itself is sequential, so two threads never halve the time; the first pass
//! over the slice is one thread's.
//!
//! Each input is sorted by std as well, the results are compared, and both times are shown.
//! `quicksort 5000000` takes that many elements; try `--release` for times that mean something.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use blitz_io::parallel;

/// How many elements are sorted if no argument says so.
const ELEMENTS: usize = 400_000;
/// More would not fit into the memory of a small machine: there are three copies, of 8 bytes each.
const MOST: usize = 100_000_000;

/// Shorter pieces are sorted by std, on the thread that has them.
///
/// A join costs next to nothing if nobody steals from it. A theft costs some microseconds, so a
/// piece that is worth stealing takes some tens of them, and a few thousand numbers do. There are
/// still hundreds of pieces in a million, enough to keep many threads equally busy. Picked so,
/// not measured.
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
    // Good pivots leave half, so this many levels are twice what is to be expected.
    sort(items, 2 * items.len().max(1).ilog2());
}

fn sort<T: Ord + Copy + Send>(items: &mut [T], levels: u32) {
    // Whoever runs out of levels has met an input that is made against our choice of pivots.
    if items.len() <= CUT_OFF || levels == 0 {
        return items.sort_unstable();
    }
    let pivot = pivot(items);
    let less = partition(items, |item| item < pivot);
    if less == 0 {
        // The pivot is the least, and what equals it is in its place then: many equal elements
        // make the work less, not more.
        let equal = partition(items, |item| item <= pivot);
        return sort(&mut items[equal..], levels - 1);
    }
    let (less, rest) = items.split_at_mut(less);
    parallel::join(|| sort(less, levels - 1), || sort(rest, levels - 1));
}

/// The middle one of three that are far apart: sorted inputs are then split in halves. None is at
/// an end, because partitions leave what they met first and last there.
fn pivot<T: Ord + Copy>(items: &[T]) -> T {
    let quarter = items.len() / 4;
    let mut three = [items[quarter], items[2 * quarter], items[3 * quarter]];
    three.sort_unstable();
    three[1]
}

/// Moves what belongs to the front there; returns how much that is.
fn partition<T: Copy>(items: &mut [T], belongs: impl Fn(T) -> bool) -> usize {
    let mut front = 0;
    for at in 0..items.len() {
        let is_one = belongs(items[at]);
        // Always, and so without a branch: a processor guesses half of such branches wrong.
        items.swap(front, at);
        front += usize::from(is_one);
    }
    front
}

/// The inputs on which quicksorts differ.
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

/// The same numbers in each run, without an order (xorshift, with Marsaglia's constants).
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
