//! A list of all members of an arena or a set of tasks, from which any member can be removed.
//!
//! The list is doubly linked through the members themselves, so that inserting and removing take
//! constant time and allocate nothing. There is no lock inside; threads that share a list must
//! put one around it.
//!
//! # Invariants
//! A node is a member exactly if it has a neighbour or is the first. Both links of a node that is
//! not a member are `None`.
//!
//! # Rejected
//! A slab with indices: one more allocation that grows, and an index in each member, which is as
//! large as half of the links.

use std::{marker::PhantomData, ptr::NonNull};

use crate::engine::prim::UnsafeCell;

/// An item that a list can hold: a pointer-sized owner with links in its pointee.
///
/// # Safety
/// An implementation must ensure the same as for [`Linked`](super::Linked):
/// 1. `from_ptr(into_ptr(item))` is `item`, and `into_ptr` gives up ownership
///    without ending it.
/// 2. The node stays where it is, and alive, from `into_ptr` until `from_ptr`.
/// 3. `links` returns the same address every time, inside the node, and nothing but one list
///    accesses that address.
pub(crate) unsafe trait Listed: Sized {
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

    /// Returns the address of the node's links.
    ///
    /// # Safety
    /// 1. The node is alive.
    unsafe fn links(ptr: NonNull<Self::Node>) -> NonNull<Links<Self::Node>>;
}

/// The field of a node that holds the addresses of its neighbours.
#[derive(Debug)]
pub(crate) struct Links<N>(UnsafeCell<Neighbours<N>>);

#[derive(Debug)]
struct Neighbours<N> {
    prev: Option<NonNull<N>>,
    next: Option<NonNull<N>>,
}

// SAFETY: no safe code reads or writes the cell; one list does, for its members, so links may go
// wherever their node goes.
unsafe impl<N> Send for Links<N> {}
// SAFETY: no safe code reads or writes the cell, so shared links alone give access to nothing.
unsafe impl<N> Sync for Links<N> {}

impl<N> Links<N> {
    /// Creates the links of a node that is not a member.
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(Neighbours { prev: None, next: None }))
    }
}

// In a model the drop of a node counts as a write to its links. So a model fails if a node is freed
// by a thread that does not come after the last change of its list.
#[cfg(blitz_loom)]
impl<N> Drop for Links<N> {
    fn drop(&mut self) {
        self.0.with_mut(|_| ());
    }
}

impl<N> Default for Links<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// A list that owns its members. Single-owner: no lock inside, so not `Sync`.
pub(crate) struct List<T: Listed> {
    first: Option<NonNull<T::Node>>,
    len: usize,
    owns: PhantomData<T>,
}

// SAFETY: a list owns its members and nothing else, so sending it is sending members.
unsafe impl<T: Listed + Send> Send for List<T> {}

impl<T: Listed> List<T> {
    pub(crate) const fn new() -> Self {
        Self { first: None, len: 0, owns: PhantomData }
    }

    /// Returns true if the list has no members.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the number of members.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds `item` as the youngest member.
    pub(crate) fn push_front(&mut self, item: T) {
        let node = item.into_ptr();
        // SAFETY: obligation 1 of `neighbours`: we owned `item`, which is in no other list, and
        // the members of this list are alive.
        unsafe {
            Self::neighbours(node, |of| {
                debug_assert!(of.prev.is_none() && of.next.is_none(), "already in a list");
                of.next = self.first;
            });
            if let Some(first) = self.first {
                Self::neighbours(first, |of| of.prev = Some(node));
            }
        }
        self.first = Some(node);
        self.len += 1;
    }

    /// Calls `f` with every member, the youngest first. The members stay in the list, because `f`
    /// cannot reach it.
    pub(crate) fn for_each(&self, mut f: impl FnMut(NonNull<T::Node>)) {
        let mut next = self.first;
        while let Some(node) = next {
            // SAFETY: obligation 1 of `neighbours`: members are alive, and in this list.
            next = unsafe { Self::neighbours(node, |of| of.next) };
            f(node);
        }
    }

    /// Removes and returns the youngest member.
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = self.first?;
        // SAFETY: 1. the first node is a member, so it is alive. 2. it is a member of this list.
        unsafe { self.remove(first) }
    }

    /// Removes a member. Returns `None` if the node is not a member of any list.
    ///
    /// # Safety
    /// 1. The node is alive.
    /// 2. If it is a member of a list, then of this one.
    pub(crate) unsafe fn remove(&mut self, node: NonNull<T::Node>) -> Option<T> {
        // SAFETY: for `neighbours`: our own obligations 1 and 2 say that the node is alive and in
        // no other list, and neighbours of a member are members. For `from_ptr`: 1. members came
        // from `into_ptr`. 2. the node has just left the list.
        unsafe {
            let (prev, next) = Self::neighbours(node, |of| (of.prev.take(), of.next.take()));
            match prev {
                Some(prev) => Self::neighbours(prev, |of| of.next = next),
                None if self.first == Some(node) => self.first = next,
                // No neighbour before it and not the first, so it is not a member.
                None => return None,
            }
            if let Some(next) = next {
                Self::neighbours(next, |of| of.prev = prev);
            }
            self.len -= 1;
            // The node has left the list, so its ownership goes to the caller.
            Some(T::from_ptr(node))
        }
    }

    /// Calls `f` with the links of a node.
    ///
    /// # Safety
    /// 1. The node is alive, and no other list has it as a member.
    unsafe fn neighbours<R>(
        node: NonNull<T::Node>,
        f: impl FnOnce(&mut Neighbours<T::Node>) -> R,
    ) -> R {
        // SAFETY: the links are inside a live node, and only its list touches them. A list is not
        // `Sync`, so that is one thread at a time, and `f` is our own code, which reaches no other
        // links.
        unsafe { T::links(node).as_ref().0.with_mut(|of| f(&mut *of)) }
    }
}

impl<T: Listed> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Listed> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Listed> Drop for List<T> {
    /// Drops the members that are left. If one panics, the rest leaks, which is acceptable
    /// because an `Arena` empties its list itself and catches the panics of its members.
    fn drop(&mut self) {
        while let Some(item) = self.pop_front() {
            drop(item);
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::List;
    use crate::engine::queue::test_node::{DropCounter, TestNode};

    #[test]
    fn a_list_drops_each_member_once() {
        let counter = DropCounter::new(4);
        let mut list = List::new();
        let items: Vec<_> = (0..4).map(|value| TestNode::counted(value, &counter)).collect();
        let second = items[1].ptr();
        items.into_iter().for_each(|item| list.push_front(item));
        // SAFETY: 1. the member is alive. 2. this is its list.
        let removed = unsafe { list.remove(second) }.expect("it is a member");
        assert_eq!((removed.value(), list.len()), (1, 3));
        drop(list);
        assert_eq!(counter.dropped(1), 0, "the remover owns the node");
        drop(removed);
        counter.assert_each_dropped_once();
    }

    #[test]
    fn removing_a_node_that_is_no_member_does_nothing() {
        let mut list = List::new();
        list.push_front(TestNode::new(0));
        let stranger = TestNode::new(1);
        // SAFETY: 1. `stranger` is alive. 2. it is in no list.
        assert!(unsafe { list.remove(stranger.ptr()) }.is_none());
        assert_eq!(list.len(), 1);
    }

    proptest! {
        /// Each of `choices` selects a step: 0 pops the youngest, 1 to 6 push, others remove a
        /// member.
        #[test]
        fn a_list_behaves_as_a_vector(choices in prop::collection::vec(0usize..12, 0..200)) {
            let (mut list, mut members) = (List::new(), Vec::new());
            for (value, choice) in choices.into_iter().enumerate() {
                match choice {
                    0 => {
                        let popped = list.pop_front().map(|item: TestNode| item.value());
                        prop_assert_eq!(popped, members.pop().map(|(value, _)| value));
                    }
                    1..=6 => {
                        let item = TestNode::new(value as u32);
                        members.push((value as u32, item.ptr()));
                        list.push_front(item);
                    }
                    _ if members.is_empty() => prop_assert!(list.is_empty()),
                    _ => {
                        let (value, ptr) = members.remove(choice * value % members.len());
                        // SAFETY: 1. members are alive. 2. this is their list.
                        let removed = unsafe { list.remove(ptr) };
                        prop_assert_eq!(removed.map(|item| item.value()), Some(value));
                    }
                }
                prop_assert_eq!(list.len(), members.len());
            }
            while let Some((value, _)) = members.pop() {
                prop_assert_eq!(list.pop_front().map(|item: TestNode| item.value()), Some(value));
            }
            prop_assert!(list.is_empty());
        }
    }
}
