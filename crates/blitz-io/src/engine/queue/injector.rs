//! The injector: a shared queue for work that comes from outside a worker, or that overflowed a run
//! queue.
//!
//! There is one list behind one lock, because items come and go in chains: a worker that
//! overflows or fetches pays for the lock once per batch. A length beside the lock lets every
//! thread see that the queue is empty without taking the lock.
//!
//! # Protocol
//! Items move under the lock. After a push, `len` counts the items before the lock is free. After
//! a fetch, `len` counts them until they are *stored*: the thread that fetches a batch first puts
//! it where others can see it and then uncounts it, so an item is always visible here or there.
//! Nothing is dropped under the lock, because the destructor of an item may run a user's code.
//!
//! ```text
//! A producer                           A worker that is about to sleep
//! P1 pushes                            W1 announces that it sleeps
//! P2 fence(SeqCst)                     W2 fence(SeqCst)
//! P3 checks for sleepers               W3 calls `is_empty`
//! ```
//! One of P2 and W2 comes first. If P2, W3 sees the item; if W2, P3 sees the sleeper. The callers
//! must place the fences, because one fence serves all queues.
//!
//! Without fences an `is_empty` or a `pop` may be late: it may miss a push that has just returned
//! on another thread. A taker that synchronises with the push (through a wake-up, a join, a
//! message) sees it.
//!
//! Closing is final. A push and a close are ordered by the lock: an item pushed first stays and
//! can be popped; one pushed later is refused and returned to the pusher, which must end it.
//!
//! # Invariants
//! `len` is never less than the chain's length while the lock is free, and more only by the items
//! that a thread is just storing.
//!
//! # Rejected
//! - A lock-free queue: it moves single items, and an intrusive one cannot distinguish 'empty'
//!   from 'a producer is half way'.
//! - Shards and inboxes per worker: `sharded_injector.rs` in bench/queues/variants, with the
//!   figures in bench/record.
//!
//! # Checked by
//! `models.rs`: `a_push_that_races_a_close_is_refused_or_popped`,
//! `a_chain_that_races_a_close_is_refused_whole_or_popped_whole`,
//! `a_producer_or_a_sleeper_sees_the_other`, `two_takers_share_a_batch`,
//! `the_length_is_right_once_the_lock_is_free`,
//! `a_batch_on_its_way_to_a_ring_is_never_out_of_sight`; weakened as `inject_close_check`,
//! `inject_chain_close_check`, `inject_producer_fence`, `inject_sleeper_fence`, `inject_push_len`,
//! `inject_store_first`, `inject_len_acquire`.

use super::{Chain, Linked};
use crate::engine::prim::{
    AtomicU64, AtomicUsize, Mutex,
    Ordering::{Acquire, Relaxed, Release},
    lock,
    pad::CachePadded,
    weakened,
};

#[cfg(test)]
mod models;

/// Bounds of a batch. The lower one pays for the lock; the upper one is a quarter of a ring, so
/// that a fetch leaves room for what the fetched work spawns. Picked, not measured.
const BATCH: std::ops::RangeInclusive<usize> = 4..=64;

/// A queue into which every thread may put work, and from which every worker may fetch it.
pub(crate) struct Injector<T: Linked> {
    /// The chain's length, for threads that do not hold the lock. On a cache line of its own,
    /// because every idle worker polls it.
    len: CachePadded<AtomicUsize>,
    /// Number of items that were pushed one by one.
    pushed: AtomicU64,
    state: Mutex<State<T>>,
}

struct State<T: Linked> {
    chain: Chain<T>,
    closed: bool,
}

impl<T: Linked> Injector<T> {
    pub(crate) fn new() -> Self {
        Self {
            len: CachePadded::new(AtomicUsize::new(0)),
            pushed: AtomicU64::new(0),
            state: Mutex::new(State { chain: Chain::new(), closed: false }),
        }
    }

    /// Appends an item, or returns it if the injector is closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut state = lock(&self.state);
        if state.closed && !weakened!("inject_close_check") {
            drop(state);
            return Err(item);
        }
        state.chain.push_back(item);
        // Relaxed: a figure that only lock holders write.
        self.pushed.store(self.pushed.load(Relaxed) + 1, Relaxed);
        if !weakened!("inject_push_len") {
            self.count(1);
        }
        drop(state);
        Ok(())
    }

    /// Appends a whole chain under one lock, or returns it if the injector is closed.
    pub(crate) fn push_chain(&self, chain: Chain<T>) -> Result<(), Chain<T>> {
        if chain.is_empty() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        if state.closed && !weakened!("inject_chain_close_check") {
            drop(state);
            return Err(chain);
        }
        let len = chain.len();
        state.chain.append(chain);
        self.count(len);
        Ok(())
    }

    /// Takes the oldest item. Takes no lock if the queue is empty.
    pub(crate) fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let item = lock(&self.state).chain.pop_front();
        if item.is_some() {
            self.uncount(1);
        }
        item
    }

    /// Removes one item, wherever it stands. Returns `None` if another thread took it.
    pub(crate) fn take_out(&self, node: std::ptr::NonNull<T::Node>) -> Option<T> {
        let item = lock(&self.state).chain.take_out(node);
        if item.is_some() {
            self.uncount(1);
        }
        item
    }

    /// Takes up to `max` of the oldest items under one lock.
    #[cfg(test)]
    pub(crate) fn pop_batch(&self, max: usize) -> Chain<T> {
        if self.is_empty() {
            return Chain::new();
        }
        self.pop_batch_into(max, |batch| batch)
    }

    /// Takes up to `max` of the oldest items and passes them to `store` before the length is
    /// reduced. So a thread that checks this queue first, and then the queue in which they are
    /// stored, sees them in one of the two. Callers should check `is_empty` first.
    pub(crate) fn pop_batch_into<R>(&self, max: usize, store: impl FnOnce(Chain<T>) -> R) -> R {
        let batch = lock(&self.state).chain.split_front(max);
        let taken = batch.len();
        if weakened!("inject_store_first") {
            self.uncount(taken);
            return store(batch);
        }
        let stored = store(batch);
        self.uncount(taken);
        stored
    }

    /// Returns how many items were ever pushed one by one.
    pub(crate) fn pushed(&self) -> u64 {
        // Relaxed: a figure that orders nothing.
        self.pushed.load(Relaxed)
    }

    /// Returns how many items one of `workers` should fetch now: a fair share, within bounds.
    pub(crate) fn batch_size(&self, workers: usize) -> usize {
        (self.len() / workers.max(1)).clamp(*BATCH.start(), *BATCH.end())
    }

    /// Returns the number of waiting items. Without a fence it may miss a push that has just
    /// returned on another thread.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let order = if weakened!("inject_len_acquire") { Relaxed } else { Acquire };
        // Acquire: a thread that sees that a batch is gone sees where it went. Pairs with the
        // Release in `uncount`. A thread that must not miss a push has a fence before this.
        self.len.load(order)
    }

    /// Returns true if no items wait, with the limits of [`len`](Self::len).
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Refuses pushes from now on. Returns `true` if this call closed the injector.
    pub(crate) fn close(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).closed, true)
    }

    #[cfg(test)]
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Adds items to the length.
    #[inline]
    fn count(&self, items: usize) {
        // Relaxed: the lock and the callers' fences order it.
        self.len.fetch_add(items, Relaxed);
    }

    /// Removes items from the length, once they are stored elsewhere.
    #[inline]
    fn uncount(&self, items: usize) {
        // Release: publishes where the items went. Pairs with the Acquire in `len`.
        self.len.fetch_sub(items, Release);
    }
}

impl<T: Linked> std::fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injector").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::Injector;
    use crate::engine::queue::{
        Chain,
        test_node::{DropCounter, TestNode, values},
    };

    #[test]
    fn an_injector_is_first_in_first_out_however_items_come_and_go() {
        let injector = Injector::new();
        injector.push(TestNode::new(0)).ok().unwrap();
        injector.push_chain((1..6).map(TestNode::new).collect()).unwrap();
        injector.push_chain(Chain::new()).unwrap();
        assert_eq!(injector.len(), 6);
        assert_eq!(injector.pop().map(|item| item.value()), Some(0));
        assert_eq!(values(injector.pop_batch(3)), [1, 2, 3]);
        assert_eq!(values(injector.pop_batch(64)), [4, 5]);
        assert!(
            injector.is_empty() && injector.pop().is_none() && injector.pop_batch(1).is_empty()
        );
    }

    #[test]
    fn a_batch_is_a_fair_share_between_four_and_sixty_four() {
        let injector = Injector::new();
        assert_eq!(injector.batch_size(8), 4);
        injector.push_chain((0..80).map(TestNode::new).collect()).unwrap();
        assert_eq!(injector.batch_size(8), 10);
        assert_eq!(injector.batch_size(1), 64);
        assert_eq!(injector.batch_size(0), 64, "zero workers count as one");
        assert_eq!(injector.batch_size(1_000), 4);
    }

    #[test]
    fn a_closed_injector_refuses_and_can_still_be_emptied() {
        let counter = DropCounter::new(4);
        let injector = Injector::new();
        injector.push(TestNode::counted(0, &counter)).ok().unwrap();
        injector.push(TestNode::counted(1, &counter)).ok().unwrap();
        assert!(!injector.is_closed() && injector.close());
        assert!(injector.is_closed() && !injector.close(), "only one closes");
        assert_eq!(
            injector.push(TestNode::counted(2, &counter)).err().map(|item| item.value()),
            Some(2)
        );
        let refused = injector.push_chain(Chain::one(TestNode::counted(3, &counter))).unwrap_err();
        assert_eq!(values(refused), [3]);
        assert_eq!(injector.pop().map(|item| item.value()), Some(0));
        drop(injector);
        counter.assert_each_dropped_once();
    }
}
