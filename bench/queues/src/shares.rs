//! Measures how much to take, and which: prefetch on pop, one or half in a steal, the oldest or the
//! newest half in an overflow.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use harness::Case;
use queue_variants::queues::{Bundle, Item, OneList, Ring, RingThief};

use crate::{Gate, Stop, ns_per};

type Push = fn(&mut Ring, Item) -> Option<Bundle>;
type Pop = fn(&mut Ring) -> Option<Item>;
type Steal = fn(&RingThief, &mut Ring) -> Option<(Item, u32)>;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (row, nodes) in [
        // 128 bytes each: 32 KiB and 32 MiB.
        ("touch_cache", 256),
        ("touch_memory", 1 << 18),
    ] {
        cases.push(Case::new(row, "no prefetch", pop_and_touch(nodes, Ring::pop)));
        cases.push(Case::new(row, "no prefetch again", pop_and_touch(nodes, Ring::pop)));
        cases.push(Case::new(row, "prefetch", pop_and_touch(nodes, Ring::pop_prefetching)));
    }
    let row = "steal_pop";
    cases.push(Case::new(row, "half", steal_and_pop(RingThief::steal_half)));
    cases.push(Case::new(row, "one", steal_and_pop(|thief, _| thief.steal_one())));
    let row = "shared_work";
    cases.push(Case::new(row, "half", shared_work(RingThief::steal_half)));
    cases.push(Case::new(row, "half again", shared_work(RingThief::steal_half)));
    cases.push(Case::new(row, "one", shared_work(|thief, _| thief.steal_one())));
    let row = "overflow";
    cases.push(Case::new(row, "oldest", overflow(Ring::push_spilling_oldest)));
    cases.push(Case::new(row, "oldest again", overflow(Ring::push_spilling_oldest)));
    cases.push(Case::new(row, "newest", overflow(Ring::push)));
    let row = "overflow_helped";
    cases.push(Case::new(row, "oldest", helped_overflow(Ring::push_spilling_oldest)));
    cases.push(Case::new(row, "newest", helped_overflow(Ring::push)));
    cases
}

fn pop_and_touch(nodes: usize, pop: Pop) -> impl FnMut() -> f64 {
    const FILLS: usize = 64;
    let (mut ring, _thief) = Ring::pair();
    let mut pool: std::collections::VecDeque<_> = Item::many(nodes, 7).into();
    move || {
        let mut time = 0.0;
        for _ in 0..FILLS {
            for item in pool.drain(..256) {
                assert!(ring.push(item).is_none());
            }
            time += ns_per(1, || {
                while let Some(mut item) = pop(&mut ring) {
                    black_box(item.touch());
                    pool.push_back(item);
                }
            });
        }
        time / (FILLS * 256) as f64
    }
}

fn steal_and_pop(steal: Steal) -> impl FnMut() -> f64 {
    const FILLS: usize = 64;
    let (mut source, thief) = Ring::pair();
    let (mut target, _) = Ring::pair();
    let mut pool = Item::many(256, 8);
    move || {
        let mut time = 0.0;
        for _ in 0..FILLS {
            for item in pool.drain(..) {
                assert!(source.push(item).is_none());
            }
            time += ns_per(1, || {
                while let Some((item, _)) = steal(&thief, &mut target) {
                    pool.push(item);
                    pool.extend(std::iter::from_fn(|| target.pop()));
                }
            });
        }
        time / (FILLS * 256) as f64
    }
}

/// Does some 100 ns of work that does not contend with anything.
fn run(item: &mut Item) {
    let mut value = item.touch();
    for _ in 0..25 {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value >> 29);
    }
}

/// Measures an owner that pushes all items and runs some, while a thief runs what it can get.
fn shared_work(steal: Steal) -> impl FnMut() -> f64 {
    const ITEMS: usize = 50_000;
    let mut pool = Item::many(ITEMS, 9);
    move || {
        let (mut owner, thief) = Ring::pair();
        let (done, gate) = (&AtomicBool::new(false), &Gate::new(2));
        let mut ran = Vec::with_capacity(ITEMS);
        let (time, stolen) = std::thread::scope(|scope| {
            let thief = scope.spawn(move || {
                let (mut target, _) = Ring::pair();
                let mut ran = Vec::with_capacity(ITEMS);
                gate.pass();
                // Relaxed: a flag to stop; the join orders the rest.
                while !done.load(Relaxed) {
                    let first = steal(&thief, &mut target).map(|(item, _)| item);
                    for mut item in first.into_iter().chain(std::iter::from_fn(|| target.pop())) {
                        run(&mut item);
                        ran.push(item);
                    }
                }
                ran
            });
            let stop = Stop(done);
            gate.pass();
            let start = Instant::now();
            for (count, item) in pool.drain(..).enumerate() {
                let mut spilt = owner.push(item);
                let popped = if count % 4 == 0 { owner.pop() } else { None };
                for mut item in
                    popped.into_iter().chain(std::iter::from_fn(|| spilt.as_mut()?.pop()))
                {
                    run(&mut item);
                    ran.push(item);
                }
            }
            while let Some(mut item) = owner.pop() {
                run(&mut item);
                ran.push(item);
            }
            drop(stop);
            // The thief finishes what it has before it sees the flag.
            let stolen = thief.join().expect("no loop panics");
            (start.elapsed().as_nanos() as f64, stolen)
        });
        pool.extend(ran);
        pool.extend(stolen);
        assert_eq!(pool.len(), ITEMS, "items were lost");
        time / ITEMS as f64
    }
}

/// The number of items that a burst pushes: more than a ring, twice over.
const BURST: usize = 600;

/// Pushes a burst into the ring and, as it overflows, into the injector.
fn burst(ring: &mut Ring, injector: &OneList, items: impl Iterator<Item = Item>, push: Push) {
    for mut item in items {
        black_box(item.touch());
        if let Some(spilt) = push(ring, item) {
            injector.push_bundle(spilt);
        }
    }
}

/// Fetches a batch into the ring, as a worker does when its ring is empty.
fn refill(ring: &mut Ring, injector: &OneList) -> bool {
    let mut batch = injector.fetch(1);
    ring.push_bundle(&mut batch) > 0
}

fn overflow(push: Push) -> impl FnMut() -> f64 {
    const BURSTS: usize = 50;
    let (mut ring, _thief) = Ring::pair();
    let injector = OneList::new();
    let mut pool = Item::many(BURST, 10);
    move || {
        ns_per((BURSTS * BURST) as u64, || {
            for _ in 0..BURSTS {
                burst(&mut ring, &injector, pool.drain(..), push);
                loop {
                    while let Some(mut item) = ring.pop() {
                        black_box(item.touch());
                        pool.push(item);
                    }
                    if !refill(&mut ring, &injector) {
                        break;
                    }
                }
            }
        })
    }
}

fn helped_overflow(push: Push) -> impl FnMut() -> f64 {
    const BURSTS: usize = 200;
    let mut pool = Item::many(BURST, 11);
    move || {
        let (mut ring, _thief) = Ring::pair();
        let (injector, returned) = (&OneList::new(), &OneList::new());
        let (done, gate) = (&AtomicBool::new(false), &Gate::new(2));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                gate.pass();
                // Relaxed: a flag to stop; the scope's join orders the rest.
                while !done.load(Relaxed) {
                    let mut batch = injector.fetch(2);
                    let ran = std::iter::from_fn(|| batch.pop()).map(|mut item| {
                        run(&mut item);
                        item
                    });
                    returned.push_bundle(ran.collect());
                }
            });
            let stop = Stop(done);
            gate.pass();
            let time = ns_per((BURSTS * BURST) as u64, || {
                for _ in 0..BURSTS {
                    burst(&mut ring, injector, pool.drain(..), push);
                    while pool.len() < BURST {
                        if let Some(mut item) = ring.pop() {
                            run(&mut item);
                            pool.push(item);
                        } else if !refill(&mut ring, injector) {
                            let mut back = returned.fetch(1);
                            pool.extend(std::iter::from_fn(|| back.pop()));
                        }
                    }
                }
            });
            drop(stop);
            time
        })
    }
}

/// Returns how far from its place in the order of arrival an item runs, on average. This is not a
/// time, so there are no rounds.
pub(crate) fn order_after_overflow() -> String {
    let mut text =
        String::from("\n| overflow of 600 | mean distance from its turn, in items |\n|---|--:|\n");
    for (name, push) in [("oldest", Ring::push_spilling_oldest as Push), ("newest", Ring::push)] {
        let (mut ring, _thief) = Ring::pair();
        let injector = OneList::new();
        let mut distance = 0;
        // In the order of their numbers, so that a number is the item's turn.
        let mut items = Item::many(BURST, 12);
        items.sort_unstable_by_key(Item::number);
        burst(&mut ring, &injector, items.into_iter(), push);
        let mut turn = 0;
        loop {
            while let Some(item) = ring.pop() {
                distance += item.number().abs_diff(turn);
                turn += 1;
            }
            if !refill(&mut ring, &injector) {
                break;
            }
        }
        let _ = writeln!(text, "| {name} | {:.1} |", distance as f64 / BURST as f64);
    }
    text
}
