//! One LIFO slot against four, in front of a ring.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use harness::Case;
use queue_variants::queues::{Item, Lifo, Ring};

use crate::{Gate, Stop, ns_per};

pub(crate) fn cases() -> Vec<Case> {
    let pair = "lifo_push_pop";
    let burst = "lifo_burst";
    let robbed = "lifo_robbed";
    vec![
        Case::new(pair, "1 slot", push_pop::<1>()),
        Case::new(pair, "1 slot again", push_pop::<1>()),
        Case::new(pair, "4 slots", push_pop::<4>()),
        Case::new(burst, "1 slot", bursts::<1>()),
        Case::new(burst, "4 slots", bursts::<4>()),
        Case::new(robbed, "1 slot", under_a_thief::<1>),
        Case::new(robbed, "4 slots", under_a_thief::<4>),
    ]
}

fn push_pop<const N: usize>() -> impl FnMut() -> f64 {
    const PAIRS: u64 = 100_000;
    let (mut slots, _thief) = Lifo::<N>::pair();
    let mut hand = Item::many(1, 4).pop();
    move || {
        ns_per(PAIRS, || {
            for _ in 0..PAIRS {
                if let Some(item) = hand.take() {
                    assert!(slots.push(black_box(item)).is_none());
                }
                hand = slots.pop();
            }
        })
    }
}

/// Measures a task that wakes four others; what the slots evict goes through the ring.
fn bursts<const N: usize>() -> impl FnMut() -> f64 {
    const BURSTS: u64 = 20_000;
    let (mut slots, _slots_thief) = Lifo::<N>::pair();
    let (mut ring, _ring_thief) = Ring::pair();
    // 512 nodes of 128 bytes: the pool is larger than the first-level cache.
    let mut pool: std::collections::VecDeque<_> = Item::many(512, 5).into();
    move || {
        ns_per(BURSTS * 4, || {
            for _ in 0..BURSTS {
                for _ in 0..4 {
                    let mut item = pool.pop_front().expect("items come back");
                    black_box(item.touch());
                    if let Some(evicted) = slots.push(item) {
                        assert!(ring.push(evicted).is_none());
                    }
                }
                for _ in 0..4 {
                    let mut item = slots.pop().or_else(|| ring.pop()).expect("four were pushed");
                    black_box(item.touch());
                    pool.push_back(item);
                }
            }
        })
    }
}

/// Measures the owner's pairs while another thread tries to take what is in the slots.
fn under_a_thief<const N: usize>() -> f64 {
    const PAIRS: u64 = 500_000;
    let (mut slots, thief) = Lifo::<N>::pair();
    // Nodes are never freed, so they are allocated once per thread and not per round.
    thread_local!(static POOL: std::cell::RefCell<Vec<Item>> = std::cell::RefCell::new(Item::many(64, 6)));
    let mut pool = POOL.take();
    let (done, gate) = (&AtomicBool::new(false), &Gate::new(2));
    let (sender, receiver) = std::sync::mpsc::channel();
    let time = std::thread::scope(|scope| {
        scope.spawn(move || {
            gate.pass();
            // Relaxed: a flag to stop; the scope's join orders the rest.
            while !done.load(Relaxed) {
                if let Some(item) = thief.steal() {
                    let _ = sender.send(item);
                }
                // A real thief looks at other places too, so it is not here all the time.
                for _ in 0..50 {
                    std::hint::spin_loop();
                }
            }
        });
        let stop = Stop(done);
        gate.pass();
        let time = ns_per(PAIRS, || {
            for _ in 0..PAIRS {
                let Some(item) = pool.pop() else {
                    pool.extend(receiver.try_iter());
                    continue;
                };
                pool.extend(slots.push(item));
                pool.extend(slots.pop());
            }
        });
        drop(stop);
        time
    });
    pool.extend(receiver.try_iter());
    POOL.set(pool);
    time
}
