//! Queues in which work waits. They know nothing about the items that they hold.
//!
//! - [`ring`]: the run queue of one core; other workers may steal half of it.
//! - [`injector`]: the shared queue, for work that comes from outside a worker or overflows a ring.
//! - [`list`]: all members of an arena or a set, with removal from the middle.
//! - [`Chain`]: a batch on its way from one of them to another.
//!
//! Alternatives to these that were measured and lost are in bench/queues/variants.
//!
//! An item is a pointer-sized owner ([`Linked`]). Queues hold the pointer; the link that chains
//! and the injector need is part of the pointee, so that moving a thousand items allocates
//! nothing.
//!
//! # Invariants
//! The owner of an item owns its link. An item is at one location at a time: in one slot of one
//! ring, in one chain, in one injector, or in a variable of one thread.

use std::ptr::NonNull;

use crate::engine::prim::UnsafeCell;

pub(crate) mod ring;
pub(crate) mod injector;
pub(crate) mod list;

#[cfg(test)]
pub(crate) mod test_node;

/// An item that a queue can hold: a pointer-sized owner with a link in its pointee.
///
/// # Safety
/// An implementation must ensure:
/// 1. `from_ptr(into_ptr(item))` is `item`, and `into_ptr` gives up ownership
///    without ending it.
/// 2. The node stays where it is, and alive, from `into_ptr` until `from_ptr`.
/// 3. `link` returns the same address every time, inside the node, and nothing but the queues of
///    this module accesses that address while the node is between `into_ptr` and `from_ptr`.
pub(crate) unsafe trait Linked: Sized {
    /// The type that the owner points at.
    type Node;

    /// Converts the owner into its pointer, giving up ownership.
    fn into_ptr(self) -> NonNull<Self::Node>;

    /// Takes ownership back from a pointer.
    ///
    /// # Safety
    /// 1. `ptr` came from `into_ptr`.
    /// 2. It is taken back once.
    unsafe fn from_ptr(ptr: NonNull<Self::Node>) -> Self;

    /// Returns the address of the node's link.
    ///
    /// # Safety
    /// 1. `ptr` came from `into_ptr` and was not taken back since.
    unsafe fn link(ptr: NonNull<Self::Node>) -> NonNull<Link<Self::Node>>;
}

/// The field of a node that holds the address of the next node.
#[derive(Debug)]
pub(crate) struct Link<N>(UnsafeCell<Option<NonNull<N>>>);

// SAFETY: no safe code reads or writes the cell. The queues do, and only for items that they own
// (see `Linked`), so a link may go wherever its node goes.
unsafe impl<N> Send for Link<N> {}
// SAFETY: no safe code reads or writes the cell, so a shared link alone gives access to nothing.
unsafe impl<N> Sync for Link<N> {}

impl<N> Link<N> {
    /// Creates a link to nothing.
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Returns the next node, for an owner that keeps its nodes in no queue.
    ///
    /// # Safety
    /// 1. The caller owns the node.
    #[inline]
    pub(crate) unsafe fn get(&self) -> Option<NonNull<N>> {
        // SAFETY: the caller owns the node (obligation 1), and the owner of an item owns its
        // link.
        self.0.with(|link| unsafe { *link })
    }

    /// Sets the next node, for an owner that keeps its nodes in no queue.
    ///
    /// # Safety
    /// 1. The caller owns the node.
    #[inline]
    pub(crate) unsafe fn set(&self, next: Option<NonNull<N>>) {
        // SAFETY: the caller owns the node (obligation 1), and the owner of an item owns its
        // link.
        self.0.with_mut(|link| unsafe { *link = next });
    }
}

impl<N> Default for Link<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// The first and the last node of a chain, or `None` if it is empty.
type ChainEnds<N> = Option<(NonNull<N>, NonNull<N>)>;

/// Items in first-in, first-out order, owned by the holder of the chain.
pub(crate) struct Chain<T: Linked> {
    /// First and last node; the link of the last one is `None`.
    ends: ChainEnds<T::Node>,
    len: usize,
}

// SAFETY: a chain owns its items and nothing else, so sending it is sending items.
unsafe impl<T: Linked + Send> Send for Chain<T> {}

impl<T: Linked> Chain<T> {
    /// Creates an empty chain.
    pub(crate) const fn new() -> Self {
        Self { ends: None, len: 0 }
    }

    /// Creates a chain of one item.
    pub(crate) fn one(item: T) -> Self {
        let mut chain = Self::new();
        chain.push_back(item);
        chain
    }

    /// Returns the number of items.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the chain has no items.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Appends an item.
    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        self.push_back_ptr(item.into_ptr());
    }

    /// Appends a node; the caller gives up its ownership, as `into_ptr` did.
    #[inline]
    fn push_back_ptr(&mut self, node: NonNull<T::Node>) {
        // SAFETY: obligation 1 of `set_link`: the caller hands over the node that it owned.
        unsafe { Self::set_link(node, None) };
        self.ends = Some(match self.ends {
            None => (node, node),
            Some((first, last)) => {
                // SAFETY: obligation 1 of `set_link`: `last` is in this chain, which owns it.
                unsafe { Self::set_link(last, Some(node)) };
                (first, node)
            }
        });
        self.len += 1;
    }

    /// Takes the first item.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let node = self.pop_front_ptr()?;
        // SAFETY: 1. every node of a chain came from `into_ptr`. 2. the node has just left the
        // chain, so it is taken back once.
        Some(unsafe { T::from_ptr(node) })
    }

    /// Takes the first node, with its ownership.
    #[inline]
    fn pop_front_ptr(&mut self) -> Option<NonNull<T::Node>> {
        let (first, last) = self.ends?;
        // SAFETY: obligation 1 of `next`: `first` is in this chain, and its link was set when it
        // joined.
        self.ends = unsafe { Self::next(first) }.map(|second| (second, last));
        self.len -= 1;
        Some(first)
    }

    /// Appends all items of `other`, in constant time.
    pub(crate) fn append(&mut self, mut other: Self) {
        let Some((other_first, other_last)) = other.ends.take() else { return };
        self.len += std::mem::take(&mut other.len);
        self.ends = Some(match self.ends {
            None => (other_first, other_last),
            Some((first, last)) => {
                // SAFETY: obligation 1 of `set_link`: `last` is in this chain, which owns it.
                unsafe { Self::set_link(last, Some(other_first)) };
                (first, other_last)
            }
        });
    }

    /// Removes the item at `node`, if it is here. Walks the chain, for the rare case that the
    /// thread that put an item in wants it back.
    pub(crate) fn take_out(&mut self, node: NonNull<T::Node>) -> Option<T> {
        let mut rest = Self::new();
        let mut found = None;
        while let Some(next) = self.pop_front_ptr() {
            if next == node {
                // SAFETY: 1. every node of a chain came from `into_ptr`. 2. the node has just
                // left the chain, so it is taken back once.
                found = Some(unsafe { T::from_ptr(next) });
                break;
            }
            rest.push_back_ptr(next);
        }
        rest.append(std::mem::take(self));
        *self = rest;
        found
    }

    /// Splits off the first `count` items, or all if there are fewer.
    pub(crate) fn split_front(&mut self, count: usize) -> Self {
        if count >= self.len {
            return std::mem::take(self);
        }
        let mut front = Self::new();
        let Some((first, last)) = self.ends.filter(|_| count > 0) else { return front };
        let mut cut = first;
        for _ in 1..count {
            // SAFETY: obligation 1 of `next`: `cut` is in this chain, and not its last, because
            // count < len.
            cut = unsafe { Self::next(cut) }.expect("a chain is as long as it says");
        }
        // SAFETY: obligation 1 of `next` and `set_link`: `cut` is in this chain. Its link is
        // reset to end the front.
        let rest = unsafe {
            let rest = Self::next(cut);
            Self::set_link(cut, None);
            rest
        };
        front.ends = Some((first, cut));
        front.len = count;
        self.ends = rest.map(|rest| (rest, last));
        self.len -= count;
        front
    }

    /// Sets the link of a node.
    ///
    /// # Safety
    /// 1. The caller owns the node: it came from `into_ptr`, was not taken back, and no other
    ///    queue holds it.
    #[inline]
    unsafe fn set_link(node: NonNull<T::Node>, next: Option<NonNull<T::Node>>) {
        // SAFETY: the link is inside a live node (obligations 2 and 3 of `Linked`), and only the
        // node's owner touches it, which is the caller (obligation 1).
        unsafe { T::link(node).as_ref().0.with_mut(|link| *link = next) }
    }

    /// Returns the link of a node.
    ///
    /// # Safety
    /// 1. The caller owns the node, as for `set_link`, and has set its link since it became the
    ///    owner.
    #[inline]
    unsafe fn next(node: NonNull<T::Node>) -> Option<NonNull<T::Node>> {
        // SAFETY: the link is inside a live node (obligations 2 and 3 of `Linked`), and only the
        // node's owner touches it, which is the caller (obligation 1).
        unsafe { T::link(node).as_ref().0.with(|link| *link) }
    }
}

impl<T: Linked> Default for Chain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Linked> std::fmt::Debug for Chain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Linked> FromIterator<T> for Chain<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut chain = Self::new();
        items.into_iter().for_each(|item| chain.push_back(item));
        chain
    }
}

impl<T: Linked> Drop for Chain<T> {
    /// Drops the items that are left, also those behind an item that panics when it is dropped.
    fn drop(&mut self) {
        struct DropRest<'a, T: Linked>(&'a mut Chain<T>);
        impl<T: Linked> Drop for DropRest<'_, T> {
            fn drop(&mut self) {
                while let Some(item) = self.0.pop_front() {
                    drop(item);
                }
            }
        }
        let rest = DropRest(self);
        while let Some(item) = rest.0.pop_front() {
            drop(item);
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        collections::VecDeque,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    use proptest::prelude::*;

    use super::{
        Chain,
        test_node::{DropCounter, TestNode, values},
    };

    #[test]
    fn a_chain_drops_each_item_once() {
        let counter = DropCounter::new(5);
        drop((0..5).map(|value| TestNode::counted(value, &counter)).collect::<Chain<_>>());
        counter.assert_each_dropped_once();
    }

    #[test]
    fn a_panic_in_one_drop_does_not_leak_the_items_behind_it() {
        let counter = DropCounter::new(5);
        let mut chain = Chain::new();
        for value in 0..5 {
            chain.push_back(if value == 1 {
                TestNode::that_panics(value, &counter)
            } else {
                TestNode::counted(value, &counter)
            });
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(chain))).is_err());
        counter.assert_each_dropped_once();
    }

    #[derive(Debug, Clone)]
    enum ChainStep {
        Push,
        Pop,
        AppendTo(usize),
        Split(usize),
    }

    fn step() -> impl Strategy<Value = ChainStep> {
        prop_oneof![
            4 => Just(ChainStep::Push),
            2 => Just(ChainStep::Pop),
            1 => (0usize..4).prop_map(ChainStep::AppendTo),
            2 => (0usize..12).prop_map(ChainStep::Split),
        ]
    }

    proptest! {
        #[test]
        fn a_chain_behaves_as_a_deque(steps in prop::collection::vec(step(), 0..200)) {
            let (mut chain, mut deque) = (Chain::new(), VecDeque::new());
            let mut next = 0u32;
            for step in steps {
                match step {
                    ChainStep::Push => {
                        chain.push_back(TestNode::new(next));
                        deque.push_back(next);
                        next += 1;
                    }
                    ChainStep::Pop => {
                        prop_assert_eq!(chain.pop_front().map(|item| item.value()), deque.pop_front());
                    }
                    ChainStep::AppendTo(count) => {
                        let new = (next..).take(count);
                        chain.append(new.clone().map(TestNode::new).collect());
                        deque.extend(new);
                        next += count as u32;
                    }
                    ChainStep::Split(count) => {
                        let front = chain.split_front(count);
                        let expected: Vec<_> = deque.drain(..count.min(deque.len())).collect();
                        prop_assert_eq!(front.len(), expected.len());
                        prop_assert_eq!(values(front), expected);
                    }
                }
                prop_assert_eq!(chain.len(), deque.len());
                prop_assert_eq!(chain.is_empty(), deque.is_empty());
            }
            prop_assert_eq!(values(chain), Vec::from(deque));
        }
    }
}
