//! Newest-first slots in front of a ring: one, or several.
//!
//! # Protocol
//! Each slot is one word: an item's address, or null. The owner alone writes addresses, and alone
//! knows which slot is the newest; that index is a plain number of its own. Every thread takes an
//! item by swapping null in. So an item is in one slot, and the thread that swaps it out owns it:
//! there is no second word that could disagree with the first, and a slot that a thief emptied is
//! a hole that the owner passes over.
//!
//! The slots behind the newest one hold ever older items, holes aside. A push goes to the slot
//! after the newest, which holds the oldest item or nothing, and returns the item that it evicts.
//!
//! # Rejected
//! A shared `top` beside the slots: owner and thieves change two words one after
//! the other, and a thief between them makes the owner overwrite or skip items.
//!
//! # Checked by
//! `a_slot_goes_to_its_owner_or_to_a_thief`, `a_push_evicts_or_a_thief_has_taken`;
//! weakened as `lifo_push_release`, `lifo_steal_acquire`, `lifo_take_blind`.

use std::{marker::PhantomData, ptr};

use crate::engine::{
    prim::{
        Arc, AtomicPtr,
        Ordering::{Acquire, Relaxed, Release},
        weakened,
    },
    queue::Linked,
};

/// The shared slots.
struct Slots<T: Linked, const N: usize> {
    slots: [AtomicPtr<T::Node>; N],
    owns: PhantomData<T>,
}

// SAFETY: each item goes to the thread that swaps it out, so sending the slots is sending items.
unsafe impl<T: Linked + Send, const N: usize> Send for Slots<T, N> {}
// SAFETY: each item goes to the thread that swaps it out, so sharing the slots is sending items.
unsafe impl<T: Linked + Send, const N: usize> Sync for Slots<T, N> {}

/// The worker's end of the slots.
pub(crate) struct LifoOwner<T: Linked, const N: usize> {
    shared: Arc<Slots<T, N>>,
    newest: usize,
}

/// The end of the slots for the other workers.
pub(crate) struct LifoThief<T: Linked, const N: usize> {
    shared: Arc<Slots<T, N>>,
}

/// Creates empty slots. Returns the worker's end and the end for the other workers.
pub(crate) fn lifo<T: Linked, const N: usize>() -> (LifoOwner<T, N>, LifoThief<T, N>) {
    let slots = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
    let shared = Arc::new(Slots { slots, owns: PhantomData });
    (LifoOwner { shared: shared.clone(), newest: 0 }, LifoThief { shared })
}

impl<T: Linked, const N: usize> LifoOwner<T, N> {
    /// Makes `item` the newest. Returns the oldest item if all slots were taken.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Option<T> {
        let order = if weakened!("lifo_push_release") { Relaxed } else { Release };
        self.newest = (self.newest + 1) % N;
        let node = item.into_ptr().as_ptr();
        // Release: publishes the item. Pairs with the Acquire in `steal`. No Acquire is needed,
        // because this thread wrote what it gets back.
        own(self.shared.slots[self.newest].swap(node, order))
    }

    /// Takes the newest item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        for offset in 0..N {
            let index = (self.newest + N - offset) % N;
            let slot = &self.shared.slots[index];
            // Relaxed, twice: only this thread fills slots, so a null stays null, and this thread
            // wrote what it swaps out.
            let seen = slot.load(Relaxed);
            if seen.is_null() {
                continue;
            }
            let taken = if weakened!("lifo_take_blind") {
                slot.store(ptr::null_mut(), Relaxed);
                seen
            } else {
                slot.swap(ptr::null_mut(), Relaxed)
            };
            if let Some(item) = own(taken) {
                self.newest = (index + N - 1) % N;
                return Some(item);
            }
        }
        None
    }
}

impl<T: Linked, const N: usize> LifoThief<T, N> {
    /// Takes any item.
    pub(crate) fn steal(&self) -> Option<T> {
        let order = if weakened!("lifo_steal_acquire") { Relaxed } else { Acquire };
        // Relaxed load: a check before the swap, which decides. Acquire: sees the item. Pairs
        // with the Release in `push`.
        self.shared
            .slots
            .iter()
            .filter(|slot| !slot.load(Relaxed).is_null())
            .find_map(|slot| own(slot.swap(ptr::null_mut(), order)))
    }
}

/// Returns the owner of the node that a swap took out of a slot, or `None` if it was null.
#[inline]
fn own<T: Linked>(taken: *mut T::Node) -> Option<T> {
    // SAFETY: 1. slots hold what `into_ptr` returned. 2. a swap takes a node out once.
    ptr::NonNull::new(taken).map(|node| unsafe { T::from_ptr(node) })
}

impl<T: Linked, const N: usize> Drop for LifoOwner<T, N> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::lifo;
    use crate::engine::{
        prim::{model, thread},
        queue::test_node::TestNode,
    };

    fn slots_are_exactly_once<const N: usize>(items: u32) {
        model(move || {
            let (mut owner, thief) = lifo::<TestNode, N>();
            let thief = thread::spawn(move || {
                // The node goes through a link, so that a model sees whether the item was
                // published.
                let chain = thief.steal().map(crate::engine::queue::Chain::one);
                chain.map(crate::engine::queue::test_node::values).unwrap_or_default()
            });
            let mut seen = Vec::new();
            for value in 0..items {
                let mut chain = crate::engine::queue::Chain::one(TestNode::new(value));
                let item = chain.pop_front().expect("it was pushed just now");
                seen.extend(owner.push(item).map(|item| item.value()));
            }
            seen.extend(std::iter::from_fn(|| owner.pop()).map(|item| item.value()));
            seen.extend(thief.join().unwrap());
            seen.sort_unstable();
            assert_eq!(seen, (0..items).collect::<Vec<_>>());
        });
    }

    #[test]
    fn a_slot_goes_to_its_owner_or_to_a_thief() {
        slots_are_exactly_once::<1>(1);
        slots_are_exactly_once::<4>(2);
    }

    #[test]
    fn a_push_evicts_or_a_thief_has_taken() {
        slots_are_exactly_once::<1>(2);
        slots_are_exactly_once::<2>(4);
    }

    #[test]
    fn slots_are_newest_first_and_evict_the_oldest() {
        model(|| {
            let (mut owner, thief) = lifo::<TestNode, 4>();
            let evicted: Vec<_> = (0..6)
                .filter_map(|value| owner.push(TestNode::new(value)))
                .map(|b| b.value())
                .collect();
            assert_eq!(evicted, [0, 1]);
            assert_eq!(owner.pop().map(|item| item.value()), Some(5));
            assert!(thief.steal().is_some(), "a hole, to be passed over");
            assert!(owner.push(TestNode::new(6)).is_none());
            assert_eq!(owner.pop().map(|item| item.value()), Some(6));
        });
    }
}
