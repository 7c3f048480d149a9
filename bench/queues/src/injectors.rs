//! The injector (`InjectorVariant`) as one list, as eight shards, and as an inbox per worker.

use std::time::Instant;

use harness::Case;
use queue_variants::queues::{Bundle, Item, OneList, Parts};

use crate::Gate;

/// An injector as a producer and a worker see it. `id` is the caller's number, `turn` counts its
/// operations.
trait InjectorVariant: Send + Sync + 'static {
    fn push(&self, id: usize, turn: usize, item: Item);
    fn fetch(&self, id: usize, turn: usize) -> Bundle;
}

const WORKERS: usize = 2;

/// The number of items that the shards and inboxes return at once: the lower bound of the one
/// list's batch. The loops keep injectors short, so all three take the same.
const BATCH: usize = 4;

struct One(OneList);

impl InjectorVariant for One {
    fn push(&self, _: usize, _: usize, item: Item) {
        self.0.push(item);
    }

    fn fetch(&self, _: usize, _: usize) -> Bundle {
        self.0.fetch(WORKERS)
    }
}

struct Shards(Parts);

impl InjectorVariant for Shards {
    fn push(&self, id: usize, _: usize, item: Item) {
        self.0.push(id, item);
    }

    fn fetch(&self, _: usize, turn: usize) -> Bundle {
        self.0.fetch(turn, BATCH)
    }
}

struct Inboxes(Parts);

impl InjectorVariant for Inboxes {
    fn push(&self, _: usize, turn: usize, item: Item) {
        self.0.push(turn, item);
    }

    fn fetch(&self, id: usize, _: usize) -> Bundle {
        self.0.fetch(id, BATCH)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (row, threads) in [("injector_1", 1), ("injector_2", 2)] {
        let one = || One(OneList::new());
        cases.push(Case::new(row, "one list", in_and_out(one(), threads)));
        cases.push(Case::new(row, "one list again", in_and_out(one(), threads)));
        cases.push(Case::new(row, "8 shards", in_and_out(Shards(Parts::shards()), threads)));
        let inboxes = Inboxes(Parts::inboxes(WORKERS));
        cases.push(Case::new(row, "inbox per worker", in_and_out(inboxes, threads)));
    }
    cases
}

/// Measures threads that each push four items, one by one, fetch a batch, and repeat.
fn in_and_out(injector: impl InjectorVariant, threads: usize) -> impl FnMut() -> f64 {
    // Some milliseconds, so that a thread that starts late matters little.
    const TURNS: usize = 50_000;
    let mut pools: Vec<_> = (0..threads).map(|id| Item::many(4096, id as u64)).collect();
    move || {
        let (injector, gate) = (&injector, &Gate::new(threads));
        // The pushes are counted, because a thread that runs out of items pushes fewer.
        let sums: Vec<(Instant, Instant, u64)> = std::thread::scope(|scope| {
            let run = |(id, pool): (usize, &mut Vec<Item>)| {
                gate.pass();
                let start = Instant::now();
                let mut pushed = 0;
                for turn in 0..TURNS {
                    for step in 0..4 {
                        let Some(item) = pool.pop() else { break };
                        injector.push(id, turn * 4 + step, item);
                        pushed += 1;
                    }
                    let mut batch = injector.fetch(id, turn);
                    while let Some(item) = batch.pop() {
                        pool.push(item);
                    }
                }
                (start, Instant::now(), pushed)
            };
            let handles: Vec<_> =
                pools.iter_mut().enumerate().map(|one| scope.spawn(move || run(one))).collect();
            handles.into_iter().map(|handle| handle.join().expect("no loop panics")).collect()
        });
        // The remaining items are taken out, for the next round.
        for turn in 0.. {
            let mut batch = injector.fetch(0, turn);
            if batch.is_empty() {
                break;
            }
            while let Some(item) = batch.pop() {
                let shortest = pools.iter_mut().min_by_key(|pool| pool.len());
                shortest.expect("there is a thread").push(item);
            }
        }
        let start = sums.iter().map(|sum| sum.0).min().expect("there is a thread");
        let end = sums.iter().map(|sum| sum.1).max().expect("there is a thread");
        (end - start).as_nanos() as f64 / sums.iter().map(|sum| sum.2).sum::<u64>() as f64
    }
}
