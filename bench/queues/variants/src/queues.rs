//! The queues and their alternatives, made public for the benchmarks.
//!
//! Everything here is a thin, inlined wrapper with one concrete item type, so that the
//! benchmark's own code needs no unsafe.

use std::ptr::NonNull;

use crate::{
    engine::queue::{
        Chain, Link, Linked,
        injector::Injector,
        ring::{Pushed, RingOwner, Stolen, Thief, ring},
    },
    variants::{
        lifo::{LifoOwner, LifoThief, lifo},
        prefetch,
        sharded_injector::{SHARDS, ShardedInjector, pop_batch},
        unfenced::{UnfencedOwner, UnfencedThief, unfenced},
    },
};

/// A node as large as a small task: a header line and a line that its poll touches.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Node {
    link: Link<Node>,
    header: u64,
    payload: [u64; 12],
}

/// The owner of a node. Nodes of a benchmark are never freed.
#[derive(Debug)]
pub struct Item(NonNull<Node>);

// SAFETY: an item is the only owner of its node, and a node's parts are all `Send`.
unsafe impl Send for Item {}

impl Item {
    /// Creates items with their nodes in one block, shuffled by `seed`, so that the next item's
    /// node is not the next in memory.
    pub fn many(count: usize, seed: u64) -> Vec<Self> {
        let node = |header| Node { link: Link::new(), header, payload: [0; 12] };
        let nodes: &'static mut [Node] = (0..count as u64).map(node).collect::<Vec<_>>().leak();
        let mut items: Vec<_> = nodes.iter_mut().map(|node| Self(NonNull::from(node))).collect();
        let mut rng = crate::engine::prim::rng::Rng::new(seed);
        for last in (1..items.len()).rev() {
            items.swap(last, rng.below(last as u32 + 1) as usize);
        }
        items
    }

    /// Returns the item's number, from zero, in the order of the nodes in memory.
    #[inline]
    pub fn number(&self) -> u64 {
        // SAFETY: an item is the only owner of its node, which is never freed, and nothing writes
        // the header.
        unsafe { self.0.as_ref() }.header
    }

    /// Does the least that a poll would do: reads the header and writes the payload.
    #[inline]
    pub fn touch(&mut self) -> u64 {
        // SAFETY: an item is the only owner of its node, which is never freed.
        let node = unsafe { self.0.as_mut() };
        node.payload[8] = node.payload[8].wrapping_add(node.header);
        node.payload[8]
    }
}

// SAFETY: 1. an item is its pointer. 2. nodes never move and are never freed.
// 3. nothing but the queues touches the link.
unsafe impl Linked for Item {
    type Node = Node;

    #[inline(always)]
    fn into_ptr(self) -> NonNull<Node> {
        self.0
    }

    #[inline(always)]
    unsafe fn from_ptr(ptr: NonNull<Node>) -> Self {
        Self(ptr)
    }

    #[inline(always)]
    unsafe fn link(ptr: NonNull<Node>) -> NonNull<Link<Node>> {
        // SAFETY: the node is alive (obligation 1 of `link`), so its field has an address.
        unsafe { NonNull::new_unchecked(&raw mut (*ptr.as_ptr()).link) }
    }
}

/// A chain of items.
#[derive(Debug)]
pub struct Bundle(Chain<Item>);

impl Bundle {
    /// Takes the first item.
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        self.0.pop_front()
    }

    /// Returns the number of items that are left.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no items are left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Item> for Bundle {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

#[inline]
fn overflow(pushed: Pushed<Item>) -> Option<Bundle> {
    match pushed {
        Pushed::Kept => None,
        Pushed::Overflow(chain) => Some(Bundle(chain)),
    }
}

#[inline]
fn loot(stolen: Stolen<Item>) -> Option<(Item, u32)> {
    let moved = stolen.moved;
    stolen.first.map(|first| (first, moved))
}

/// The ring, as the runtime uses it.
#[derive(Debug)]
pub struct Ring(RingOwner<Item>);

/// The thieves' end of a [`Ring`].
#[derive(Debug)]
pub struct RingThief(Thief<Item>);

impl Ring {
    /// Creates a ring. Returns the owner's and the thieves' end.
    pub fn pair() -> (Self, RingThief) {
        let (owner, thief) = ring();
        (Self(owner), RingThief(thief))
    }

    /// Pushes an item. If the ring is full, the newest half overflows and is returned.
    #[inline]
    pub fn push(&mut self, item: Item) -> Option<Bundle> {
        overflow(self.0.push(item))
    }

    /// Pushes an item. If the ring is full, the oldest half overflows and is returned.
    #[inline]
    pub fn push_spilling_oldest(&mut self, item: Item) -> Option<Bundle> {
        overflow(self.0.push_spilling_oldest(item))
    }

    /// Moves as many items as fit, and returns how many.
    #[inline]
    pub fn push_bundle(&mut self, bundle: &mut Bundle) -> u32 {
        self.0.push_chain(&mut bundle.0)
    }

    /// Takes the oldest item.
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }

    /// Takes the oldest item and prefetches the next item's header.
    #[inline]
    pub fn pop_prefetching(&mut self) -> Option<Item> {
        prefetch::pop(&mut self.0)
    }
}

impl RingThief {
    /// Steals half. Returns the first item and how many more moved to `target`.
    #[inline]
    pub fn steal_half(&self, target: &mut Ring) -> Option<(Item, u32)> {
        loot(self.0.steal_half_into(&mut target.0))
    }

    /// Steals one item.
    #[inline]
    pub fn steal_one(&self) -> Option<(Item, u32)> {
        loot(self.0.steal_one())
    }
}

/// The ring in which the owner pops without an RMW.
pub struct Unfenced(UnfencedOwner<Item>);

/// The thieves' end of an [`Unfenced`] ring.
pub struct UnfencedRobber(UnfencedThief<Item>);

impl std::fmt::Debug for Unfenced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unfenced").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for UnfencedRobber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnfencedRobber").finish_non_exhaustive()
    }
}

impl Unfenced {
    /// Creates a ring. Returns the owner's and the thieves' end.
    pub fn pair() -> (Self, UnfencedRobber) {
        let (owner, thief) = unfenced(0);
        (Self(owner), UnfencedRobber(thief))
    }

    /// Pushes an item and returns the items that overflow.
    #[inline]
    pub fn push(&mut self, item: Item) -> Option<Bundle> {
        overflow(self.0.push(item))
    }

    /// Takes the oldest item.
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }
}

impl UnfencedRobber {
    /// Steals half. Returns the first item and how many more moved to `target`.
    #[inline]
    pub fn steal_half(&self, target: &mut Unfenced) -> Option<(Item, u32)> {
        loot(self.0.steal_half_into(&mut target.0))
    }
}

/// The injector with one list, as the runtime uses it.
#[derive(Debug)]
pub struct OneList(Injector<Item>);

impl OneList {
    /// Creates an empty injector.
    pub fn new() -> Self {
        Self(Injector::new())
    }

    /// Pushes one item.
    #[inline]
    pub fn push(&self, item: Item) {
        assert!(self.0.push(item).is_ok(), "benchmarks do not close sharded_injector");
    }

    /// Pushes a bundle under one lock.
    #[inline]
    pub fn push_bundle(&self, bundle: Bundle) {
        assert!(self.0.push_chain(bundle.0).is_ok(), "benchmarks do not close sharded_injector");
    }

    /// Pops one item.
    #[inline]
    pub fn pop(&self) -> Option<Item> {
        self.0.pop()
    }

    /// Takes a worker's fair share.
    #[inline]
    pub fn fetch(&self, workers: usize) -> Bundle {
        Bundle(pop_batch(&self.0, self.0.batch_size(workers)))
    }
}

impl Default for OneList {
    fn default() -> Self {
        Self::new()
    }
}

/// An injector in parts: shards or inboxes.
pub struct Parts(ShardedInjector<Item>);

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Parts {
    /// Creates an injector of eight shards.
    pub fn shards() -> Self {
        Self(ShardedInjector::new(SHARDS))
    }

    /// Creates an injector with an inbox per worker.
    pub fn inboxes(workers: usize) -> Self {
        Self(ShardedInjector::new(workers))
    }

    /// Pushes to the part `to`, modulo the number of parts.
    #[inline]
    pub fn push(&self, to: usize, item: Item) {
        assert!(self.0.push(to, item).is_ok(), "benchmarks do not close sharded_injector");
    }

    /// Takes up to `max` items from the first part, from `from` on, that has some.
    #[inline]
    pub fn fetch(&self, from: usize, max: usize) -> Bundle {
        Bundle(self.0.pop_batch(from, max))
    }
}

/// Newest-first slots in front of a ring.
pub struct Lifo<const N: usize>(LifoOwner<Item, N>);

/// The thieves' end of the slots of a [`Lifo`].
pub struct LifoRobber<const N: usize>(LifoThief<Item, N>);

impl<const N: usize> std::fmt::Debug for Lifo<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lifo").finish_non_exhaustive()
    }
}

impl<const N: usize> std::fmt::Debug for LifoRobber<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LifoRobber").finish_non_exhaustive()
    }
}

impl<const N: usize> Lifo<N> {
    /// Creates slots. Returns the owner's and the thieves' end.
    pub fn pair() -> (Self, LifoRobber<N>) {
        let (owner, thief) = lifo();
        (Self(owner), LifoRobber(thief))
    }

    /// Pushes an item and returns the one that it evicts.
    #[inline]
    pub fn push(&mut self, item: Item) -> Option<Item> {
        self.0.push(item)
    }

    /// Takes the newest item.
    #[inline]
    pub fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }
}

impl<const N: usize> LifoRobber<N> {
    /// Steals any item.
    #[inline]
    pub fn steal(&self) -> Option<Item> {
        self.0.steal()
    }
}
