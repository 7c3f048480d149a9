//! Instruction counts of the run queue's operations: one thread, each operation a thousand times.

use std::hint::black_box;

use gungraun::prelude::*;
use queue_variants::queues::{Item, Ring, RingThief};

const OPERATIONS: usize = 1000;

/// Returns a ring whose indices have wrapped around once, and items for it.
fn warm() -> (Ring, RingThief, Vec<Item>) {
    let (mut ring, thief) = Ring::pair();
    let mut items = Item::many(128, 1);
    for _ in 0..4 {
        items.drain(..).for_each(|item| assert!(ring.push(item).is_none()));
        items.extend(std::iter::from_fn(|| ring.pop()));
    }
    (ring, thief, items)
}

#[library_benchmark]
#[bench::warm(warm())]
fn push_and_pop((mut ring, thief, mut items): (Ring, RingThief, Vec<Item>)) -> impl Sized {
    let mut item = items.pop();
    for _ in 0..OPERATIONS {
        if let Some(item) = item.take() {
            black_box(ring.push(item));
        }
        item = black_box(ring.pop());
    }
    (ring, thief, items, item)
}

/// Returns a victim's ring with a hundred and twenty-eight items, and a ring for the thief.
fn full() -> (Ring, RingThief, Ring) {
    let (mut ring, thief, items) = warm();
    items.into_iter().for_each(|item| assert!(ring.push(item).is_none()));
    (ring, thief, Ring::pair().0)
}

#[library_benchmark]
#[bench::full(full())]
fn steal_half_of_128((ring, thief, mut target): (Ring, RingThief, Ring)) -> impl Sized {
    let stolen = black_box(thief.steal_half(&mut target));
    (ring, thief, target, stolen)
}

library_benchmark_group!(name = queues, benchmarks = [push_and_pop, steal_half_of_128]);
main!(library_benchmark_groups = queues);
