//! The queue of the blocking pool: several lists, each behind a lock of its own.
//!
//! A spawner pushes onto the shard of its core, or of its thread's number, so concurrent spawners
//! do not contend for one lock. A thread of the pool takes the oldest job of the first shard that
//! has one, and starts its next search one shard further: so jobs of a shard run in the order of
//! spawning, and no shard waits for another to become empty. A job is a task's queue entry, linked
//! through the task itself, so pushing allocates nothing.
//!
//! # Invariants
//! A shard that is closed stays so, and once it is empty it stays empty: a push and the close come
//! in one order, that of the shard's lock.
//!
//! # Checked by
//! `concurrent_spawners_do_not_contend_for_one_lock`, `no_shard_waits_for_another`; the shard
//! itself is the injector of the pool, with its models.

use std::ptr::NonNull;

use crate::engine::{
    prim::pad::CachePadded,
    queue::{Linked, injector::Injector},
};

/// Minimum and maximum number of shards. At least four, so that a small runtime that is fed from
/// outside has some; more than 64 would only lengthen a search through all of them. Picked, not
/// measured.
const COUNT: std::ops::RangeInclusive<usize> = 4..=64;

/// Job queue made of shards, each an injector with its own lock.
pub(crate) struct Shards<T: Linked> {
    shards: Box<[CachePadded<Injector<T>>]>,
}

impl<T: Linked> Shards<T> {
    /// Creates a queue for the given number of cores that spawn.
    pub(crate) fn new(cores: usize) -> Self {
        let count = cores.clamp(*COUNT.start(), *COUNT.end());
        Self { shards: (0..count).map(|_| CachePadded::new(Injector::new())).collect() }
    }

    /// Appends to the shard of spawner `number`; returns the item as an error if the shard is
    /// closed.
    pub(crate) fn push(&self, number: usize, item: T) -> Result<(), T> {
        self.shard(number).push(item)
    }

    /// Returns true if the shard of spawner `number` is not empty. If it is empty, all that this
    /// spawner pushed has been taken.
    pub(crate) fn is_waiting(&self, number: usize) -> bool {
        !self.shard(number).is_empty()
    }

    /// Takes one item of that spawner out again; returns `None` if another thread has taken it.
    pub(crate) fn take_out(&self, number: usize, node: NonNull<T::Node>) -> Option<T> {
        self.shard(number).take_out(node)
    }

    /// Takes the oldest item of the first shard from `from` on that has one, and moves `from` on.
    pub(crate) fn pop(&self, from: &mut usize) -> Option<T> {
        let count = self.shards.len();
        for step in 0..count {
            let index = (*from + step) % count;
            if let Some(item) = self.shards[index].pop() {
                *from = (index + 1) % count;
                return Some(item);
            }
        }
        None
    }

    /// Returns true if no item is queued. A caller that must not miss a push needs a fence before.
    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.is_empty())
    }

    /// Returns the number of queued items.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Refuses pushes from now on; queued items can still be taken out.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            shard.close();
        }
    }

    fn shard(&self, number: usize) -> &Injector<T> {
        &self.shards[number % self.shards.len()]
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::Shards;
    use crate::engine::{prim::thread_number, queue::test_node::TestNode};

    /// Counts pushes for the claim 'no single contended lock': every push takes one lock, and
    /// pushes of a thread always take the same one.
    #[test]
    fn concurrent_spawners_do_not_contend_for_one_lock() {
        const THREADS: usize = 64;
        const EACH: u64 = 500;
        let shards = Arc::new(Shards::new(16));
        let start = Arc::new(Barrier::new(THREADS));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (shards, start) = (shards.clone(), start.clone());
                std::thread::spawn(move || {
                    start.wait();
                    for value in 0..EACH as u32 {
                        shards.push(thread_number(), TestNode::new(value)).ok().unwrap();
                    }
                    thread_number()
                })
            })
            .collect();
        let mut expected = [0; 16];
        for thread in threads {
            expected[thread.join().unwrap() % 16] += EACH;
        }
        let locked: Vec<u64> = shards.shards.iter().map(|shard| shard.pushed()).collect();
        assert_eq!(locked, expected, "a push went to another shard");
        // Thread numbers are assigned in sequence, and other tests take some: so not all 64 are
        // consecutive, but no lock ever sees as much as a quarter of all pushes.
        assert!(locked.iter().all(|count| count * 4 <= THREADS as u64 * EACH), "{locked:?}");
        // Sixteen cores, by their index: exactly a sixteenth each.
        let shards = Shards::new(16);
        for value in 0..16 * 100 {
            shards.push(value as usize % 16, TestNode::new(value)).ok().unwrap();
        }
        assert!(shards.shards.iter().all(|shard| shard.pushed() == 100));
    }

    #[test]
    fn no_shard_waits_for_another() {
        let shards = Shards::new(4);
        for value in 0..8 {
            shards.push(if value < 6 { 0 } else { 2 }, TestNode::new(value)).ok().unwrap();
        }
        let mut from = 0;
        let order: Vec<u32> =
            std::iter::from_fn(|| shards.pop(&mut from)).map(|item| item.value()).collect();
        assert_eq!(order, [0, 6, 1, 7, 2, 3, 4, 5]);
        assert_eq!((shards.is_empty(), shards.len()), (true, 0));
    }

    #[test]
    fn pushed_jobs_can_be_removed_and_a_closed_queue_refuses_more() {
        let shards = Shards::new(4);
        let items: Vec<_> = (0..4).map(TestNode::new).collect();
        let nodes: Vec<_> = items.iter().map(TestNode::ptr).collect();
        for item in items {
            shards.push(1, item).ok().unwrap();
        }
        assert_eq!(shards.take_out(1, nodes[2]).map(|item| item.value()), Some(2));
        assert!(shards.take_out(1, nodes[2]).is_none(), "it is out already");
        assert_eq!(shards.take_out(1, nodes[3]).map(|item| item.value()), Some(3));
        assert_eq!(shards.len(), 2);
        shards.push(1, TestNode::new(4)).ok().unwrap();
        shards.close();
        let mut from = 1;
        let left = std::iter::from_fn(|| shards.pop(&mut from)).map(|item| item.value());
        assert_eq!(left.collect::<Vec<_>>(), [0, 1, 4]);
        assert!(shards.push(1, TestNode::new(5)).is_err() && shards.is_empty());
    }
}
