//! Several injectors instead of one: eight shards, or an inbox per worker.
//!
//! The two differ only in how the part is chosen. A producer of *shards* pushes to the shard of
//! its own thread, so producers contend rarely; a worker starts at a shard that advances with
//! each search. A producer of *inboxes* picks a worker, and a worker checks its own inbox first.
//! Both check all parts before they report that there is nothing.
//!
//! # Protocol
//! Each part is an injector with all its guarantees. Emptiness is checked part by part after one
//! fence, and each part shows its own pushes (see `injector.rs`), so the idle protocol holds for
//! the whole.
//!
//! Compared with one list, the order between parts is lost, and a batch that crosses parts takes
//! several locks.
//!
//! # Checked by
//! `a_producer_to_any_part_or_a_sleeper_sees_the_other`,
//! `a_part_is_closed_with_the_whole`; weakened as `sharded_injector_skips_part`.

#[cfg(test)]
use crate::engine::prim::weakened;
use crate::engine::queue::{Chain, Linked, injector::Injector};

/// Number of shards in the seed design.
pub(crate) const SHARDS: usize = 8;

/// Takes up to `max` of the oldest items under one lock, or without a lock if there are none.
pub(crate) fn pop_batch<T: Linked>(inject: &Injector<T>, max: usize) -> Chain<T> {
    if inject.is_empty() {
        return Chain::new();
    }
    inject.pop_batch_into(max, |batch| batch)
}

/// An injector in several parts.
pub(crate) struct ShardedInjector<T: Linked> {
    /// Each part contains a padded word, so its alignment keeps it on cache lines of its own.
    parts: Box<[Injector<T>]>,
}

impl<T: Linked> ShardedInjector<T> {
    pub(crate) fn new(parts: usize) -> Self {
        Self { parts: (0..parts.max(1)).map(|_| Injector::new()).collect() }
    }

    /// Pushes to the part `to`, modulo the number of parts. Returns the item if that part is
    /// closed.
    pub(crate) fn push(&self, to: usize, item: T) -> Result<(), T> {
        self.parts[to % self.parts.len()].push(item)
    }

    /// Takes a batch from the first part, from `from` on, that has one.
    pub(crate) fn pop_batch(&self, from: usize, max: usize) -> Chain<T> {
        for offset in 0..self.parts.len() {
            let batch = pop_batch(&self.parts[(from + offset) % self.parts.len()], max);
            if !batch.is_empty() {
                return batch;
            }
        }
        Chain::new()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let skip = usize::from(weakened!("sharded_injector_skips_part"));
        self.parts.iter().skip(skip).all(Injector::is_empty)
    }

    #[cfg(test)]
    pub(crate) fn close(&self) {
        for part in &self.parts {
            part.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ShardedInjector;
    use crate::engine::{
        prim::{
            Arc, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
            fence, model, thread,
        },
        queue::test_node::{TestNode, values},
    };

    #[test]
    fn a_producer_to_any_part_or_a_sleeper_sees_the_other() {
        model(|| {
            let shared = Arc::new((ShardedInjector::new(2), AtomicUsize::new(0)));
            let sleeper = thread::spawn({
                let shared = shared.clone();
                move || {
                    shared.1.store(1, Relaxed);
                    // SeqCst: pairs with the fence below.
                    fence(SeqCst);
                    !shared.0.is_empty()
                }
            });
            shared.0.push(0, TestNode::new(0)).ok().unwrap();
            // SeqCst: pairs with the fence above.
            fence(SeqCst);
            let seen = shared.1.load(Relaxed) == 1;
            assert!(sleeper.join().unwrap() || seen, "they missed each other");
        });
    }

    #[test]
    fn a_part_is_closed_with_the_whole() {
        model(|| {
            let sharded_injector = Arc::new(ShardedInjector::new(2));
            let pusher = thread::spawn({
                let sharded_injector = sharded_injector.clone();
                move || sharded_injector.push(1, TestNode::new(1)).is_err()
            });
            sharded_injector.close();
            let popped = values(sharded_injector.pop_batch(0, usize::MAX));
            let refused = pusher.join().unwrap();
            assert_eq!(popped.len() + usize::from(refused), 1);
            assert!(sharded_injector.is_empty());
        });
    }
}
