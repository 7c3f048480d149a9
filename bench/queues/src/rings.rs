//! Compares rings: push and pop, steal, and a mixture on one thread; then an owner and a thief on
//! two.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Instant,
};

use queue_variants::queues::{Item, OneList};

use crate::{
    Case, Gate, Stop,
    contenders::{Contender, Crossbeam, FenceFree, Ours, St3},
    ns_per,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (group, make) in [
        ("push+pop, per pair", push_pop as fn(&'static str) -> [Case; 5]),
        ("steal of half, per item", steal),
        ("8 pushes, 4 pops, 1 steal, per operation", mixed),
        ("push+pop under a thief, per pair", robbed),
        ("steal of half from a busy owner, per item", robbing),
    ] {
        cases.extend(make(group));
    }
    cases
}

/// Creates the five contenders of a group: `$loop` is generic over the contender.
macro_rules! contenders {
    ($group:expr, $loop:ident) => {
        [
            Case::new($group, "ours (CAS)", $loop::<Ours>()),
            Case::new($group, "ours (CAS), again", $loop::<Ours>()),
            Case::new($group, "ours (fence-free owner)", $loop::<FenceFree>()),
            Case::new($group, "crossbeam-deque FIFO", $loop::<Crossbeam>()),
            Case::new($group, "st3 FIFO", $loop::<St3>()),
        ]
    };
}

fn push_pop(group: &'static str) -> [Case; 5] {
    contenders!(group, push_pop_loop)
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

fn steal(group: &'static str) -> [Case; 5] {
    contenders!(group, steal_loop)
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

fn mixed(group: &'static str) -> [Case; 5] {
    contenders!(group, mixed_loop)
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

fn robbed(group: &'static str) -> [Case; 5] {
    contenders!(group, robbed_loop)
}

fn robbed_loop<C: Contender>() -> impl FnMut() -> f64 {
    let mut arena = Arena::<C>::new();
    move || arena.run().0
}

fn robbing(group: &'static str) -> [Case; 5] {
    contenders!(group, robbing_loop)
}

fn robbing_loop<C: Contender>() -> impl FnMut() -> f64 {
    let mut arena = Arena::<C>::new();
    move || arena.run().1
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

    /// Returns the owner's time per pair, and the thief's time per item.
    fn run(&mut self) -> (f64, f64) {
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
                // NaN if the threads never ran at the same time.
                time / f64::from(items)
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
