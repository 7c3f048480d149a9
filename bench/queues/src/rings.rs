//! Compares rings: push and pop, steal, and a mixture on one thread; then an owner and a thief on
//! two.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Instant,
};

use harness::Case;
use queue_variants::queues::{Item, OneList};

use crate::{
    Gate, Stop,
    contenders::{Contender, Crossbeam, FenceFree, Ours, St3},
    ns_per,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (row, make) in [
        ("ring_push_pop", push_pop as fn(&'static str) -> [Case; 5]),
        ("ring_steal", steal),
        ("ring_mixed", mixed),
        ("ring_robbed", robbed),
        ("ring_robbing", robbing),
    ] {
        cases.extend(make(row));
    }
    cases
}

/// Creates the five contenders of a row by `$new`: `$loop` is generic over the contender.
macro_rules! contenders {
    ($row:expr, $loop:ident) => {
        contenders!($row, $loop, Case::new)
    };
    ($row:expr, $loop:ident, $new:path) => {
        [
            $new($row, "ours (CAS)", $loop::<Ours>()),
            $new($row, "ours (CAS) again", $loop::<Ours>()),
            $new($row, "ours (fence-free owner)", $loop::<FenceFree>()),
            $new($row, "crossbeam-deque FIFO", $loop::<Crossbeam>()),
            $new($row, "st3 FIFO", $loop::<St3>()),
        ]
    };
}

fn push_pop(row: &'static str) -> [Case; 5] {
    contenders!(row, push_pop_loop)
}

fn push_pop_loop<C: Contender>() -> impl FnMut() -> f64 {
    const PAIRS: u64 = 100_000;
    let (mut ring, _thief) = C::pair();
    // Some items stay, so that a pop never returns the one just pushed.
    Item::many(16, 1).into_iter().for_each(|item| ring.push(item));
    let mut hand = Item::many(1, 1).pop();
    move || {
        ns_per(PAIRS, || {
            for _ in 0..PAIRS {
                if let Some(item) = hand.take() {
                    ring.push(black_box(item));
                }
                hand = ring.pop();
            }
        })
    }
}

fn steal(row: &'static str) -> [Case; 5] {
    contenders!(row, steal_loop)
}

fn steal_loop<C: Contender>() -> impl FnMut() -> f64 {
    const RINGS: usize = 16;
    const REPEATS: usize = 40;
    let mut pairs: Vec<_> = (0..RINGS).map(|_| (C::pair(), C::pair().0)).collect();
    let mut pool = Item::many(RINGS * 256, 2);
    move || {
        let (mut time, mut items) = (0.0, 0u64);
        for _ in 0..REPEATS {
            for ((source, _), _) in &mut pairs {
                (0..256).for_each(|_| source.push(pool.pop().expect("256 for each ring")));
            }
            time += ns_per(1, || {
                for ((_, thief), target) in &mut pairs {
                    if let Some((item, count)) = C::steal_half(thief, target) {
                        pool.push(item);
                        items += u64::from(count);
                    }
                }
            });
            for ((source, _), target) in &mut pairs {
                pool.extend(std::iter::from_fn(|| source.pop()));
                pool.extend(std::iter::from_fn(|| target.pop()));
            }
        }
        assert_eq!(pool.len(), RINGS * 256, "a contender lost items");
        time / items as f64
    }
}

fn mixed(row: &'static str) -> [Case; 5] {
    contenders!(row, mixed_loop)
}

fn mixed_loop<C: Contender>() -> impl FnMut() -> f64 {
    // A steal takes four or five here, so the target stays below 256.
    const CYCLES: u64 = 32;
    const REPEATS: u64 = 200;
    const OPERATIONS: u64 = 8 + 4 + 1;
    let ((mut source, thief), (mut target, _)) = (C::pair(), C::pair());
    let mut pool = Item::many(1024, 3);
    move || {
        let mut time = 0.0;
        for _ in 0..REPEATS {
            time += ns_per(1, || {
                for _ in 0..CYCLES {
                    for _ in 0..8 {
                        source.push(pool.pop().expect("the pool is larger than both rings"));
                    }
                    for _ in 0..4 {
                        pool.extend(source.pop());
                    }
                    if let Some((item, _)) = C::steal_half(&thief, &mut target) {
                        pool.push(item);
                    }
                }
            });
            pool.extend(std::iter::from_fn(|| target.pop()));
        }
        time / (REPEATS * CYCLES * OPERATIONS) as f64
    }
}

fn robbed(row: &'static str) -> [Case; 5] {
    contenders!(row, robbed_loop)
}

fn robbed_loop<C: Contender>() -> impl FnMut() -> f64 {
    let mut arena = Arena::<C>::new();
    move || arena.run().0
}

fn robbing(row: &'static str) -> [Case; 5] {
    contenders!(row, robbing_loop, Case::that_may_fail)
}

/// The number of runs until one is given up in which the thief takes something. On a busy machine
/// one thread may run while the other does not, for a whole run of some ten milliseconds; so these
/// are about a second. Picked, not measured.
const ATTEMPTS: usize = 100;

fn robbing_loop<C: Contender>() -> impl FnMut() -> Option<f64> {
    let mut arena = Arena::<C>::new();
    move || (0..ATTEMPTS).find_map(|_| arena.run().1)
}

/// An owner that pushes 64 items and pops 64, over and over, and a thief that comes every few
/// microseconds, as a searching worker does. Stolen items go back through an injector.
struct Arena<C: Contender> {
    pool: Vec<Item>,
    rings: std::marker::PhantomData<C>,
}

impl<C: Contender> Arena<C> {
    fn new() -> Self {
        Self { pool: Item::many(1024, 13), rings: std::marker::PhantomData }
    }

    /// Returns the owner's time per pair, and the thief's time per item if it took any.
    fn run(&mut self) -> (f64, Option<f64>) {
        const BLOCKS: u64 = 20_000;
        let ((mut ring, thief), (mut target, _)) = (C::pair(), C::pair());
        let (done, gate, returned) = (&AtomicBool::new(false), &Gate::new(2), &OneList::new());
        // A thief that is descheduled in the middle of a copy keeps its slots, and then even 64
        // items may find no room.
        let (pool, mut spilt) = (&mut self.pool, Vec::new());
        let times = std::thread::scope(|scope| {
            let thief = scope.spawn(move || {
                gate.pass();
                let (mut time, mut items) = (0.0, 0);
                // Relaxed: a flag to stop; the join orders the rest.
                while !done.load(Relaxed) {
                    let start = Instant::now();
                    let stolen = C::steal_half(&thief, &mut target);
                    let took = start.elapsed();
                    // Only steals that take something count.
                    if let Some((item, count)) = stolen {
                        time += took.as_nanos() as f64;
                        items += count;
                        returned.push(item);
                    }
                    std::iter::from_fn(|| target.pop()).for_each(|item| returned.push(item));
                    for _ in 0..100 {
                        std::hint::spin_loop();
                    }
                }
                (items > 0).then(|| time / f64::from(items))
            });
            let stop = Stop(done);
            gate.pass();
            let pairs = ns_per(BLOCKS * 64, || {
                for _ in 0..BLOCKS {
                    let mut back = returned.fetch(1);
                    pool.extend(std::iter::from_fn(|| back.pop()));
                    let wanted = pool.len().saturating_sub(64);
                    for item in pool.drain(wanted..) {
                        ring.push_or_spill(item, &mut spilt);
                    }
                    pool.append(&mut spilt);
                    (0..64).for_each(|_| pool.extend(ring.pop()));
                }
            });
            drop(stop);
            (pairs, thief.join().expect("no loop panics"))
        });
        self.pool.extend(std::iter::from_fn(|| ring.pop()));
        self.pool.extend(std::iter::from_fn(|| returned.pop()));
        assert_eq!(self.pool.len(), 1024, "a contender lost items");
        times
    }
}
