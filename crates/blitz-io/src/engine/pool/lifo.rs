//! The slot for the task that was woken last: it runs next, while the data that it was woken for is
//! in the cache.
//!
//! # Protocol
//! Only the owner puts an entry in. When it finds the slot empty it uses a plain store, because no
//! other thread can fill the slot meanwhile. Replacing, taking and stealing are exchanges, so each
//! entry leaves the slot once.
//!
//! A thief checks the slots of other cores after all their rings, or that of a core that is stuck
//! after the ring of that core. No wake-up is sent for an entry here, because Tokio measured that
//! those wake-ups cost more than the stealing gains (its versions 1.51 to 1.52.2).
//!
//! # Rejected
//! Four slots: `bench/record` has the comparison.
//!
//! # Checked by
//! `a_slot_is_emptied_once`, `a_replaced_entry_is_not_lost`; weakened as `lifo_put_publishes`,
//! `lifo_take_sees`.

use std::ptr::{self, NonNull};

use crate::engine::{
    prim::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        weakened,
    },
    queue::Linked,
};

/// A slot for one entry, filled by its owner and emptied by any thread.
pub(crate) struct LifoSlot<T: Linked>(AtomicPtr<T::Node>);

/// The LIFO slot of a core.
pub(crate) type TaskLifoSlot = LifoSlot<crate::engine::work::task::cell::Task>;

impl<T: Linked> LifoSlot<T> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts an entry in and returns the one that was there.
    ///
    /// # Safety
    /// 1. The caller is the owner: no other thread puts.
    #[inline]
    pub(crate) unsafe fn put(&self, item: T) -> Option<T> {
        let node = item.into_ptr().as_ptr();
        // Relaxed: only this thread makes it non-null.
        if self.0.load(Relaxed).is_null() {
            let order = if weakened!("lifo_put_publishes") { Relaxed } else { Release };
            // Release: publishes the entry's contents. Pairs with the Acquire in `take`.
            self.0.store(node, order);
            return None;
        }
        // AcqRel: publishes the new entry like the store above, and sees the contents of the old
        // one like `take`.
        Self::entry(self.0.swap(node, AcqRel))
    }

    /// Takes the entry that is there, for the owner and for thieves alike.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        // Relaxed: only a check, because the slot is empty most of the time.
        if self.0.load(Relaxed).is_null() {
            return None;
        }
        let order = if weakened!("lifo_take_sees") { Relaxed } else { Acquire };
        // Acquire: sees the entry's contents. Pairs with the Release in `put`.
        Self::entry(self.0.swap(ptr::null_mut(), order))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: only a hint.
        self.0.load(Relaxed).is_null()
    }

    fn entry(node: *mut T::Node) -> Option<T> {
        // SAFETY: 1. `put` got the pointer from `into_ptr`. 2. An exchange took it out of the slot,
        // which happens once for each time it is put.
        NonNull::new(node).map(|node| unsafe { T::from_ptr(node) })
    }
}

impl<T: Linked> Drop for LifoSlot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(test)]
mod tests {
    use super::LifoSlot;
    use crate::engine::{
        prim::{Arc, model, thread},
        queue::{Chain, test_node::TestNode},
    };

    /// Touches the data that only the node's owner may touch, where the model can see it.
    fn touched(item: TestNode) -> TestNode {
        Chain::one(item).pop_front().expect("it is in there")
    }

    #[test]
    fn a_slot_is_emptied_once() {
        model(|| {
            let slot = Arc::new(LifoSlot::new());
            let thief = thread::spawn({
                let slot = slot.clone();
                move || slot.take().map(|item: TestNode| touched(item).value())
            });
            // SAFETY: this thread is the only one that puts.
            assert!(unsafe { slot.put(touched(TestNode::new(7))) }.is_none());
            let here = slot.take().map(|item| touched(item).value());
            let there = thief.join().unwrap();
            assert_eq!(here.or(there), Some(7));
            assert!(here.is_none() || there.is_none());
        });
    }

    #[test]
    fn a_replaced_entry_is_not_lost() {
        model(|| {
            let slot = Arc::new(LifoSlot::new());
            // SAFETY: this thread is the only one that puts.
            assert!(unsafe { slot.put(TestNode::new(1)) }.is_none());
            let thief = thread::spawn({
                let slot = slot.clone();
                move || slot.take().map(|item: TestNode| item.value())
            });
            // SAFETY: this thread is the only one that puts.
            let replaced = unsafe { slot.put(TestNode::new(2)) }.map(|item| item.value());
            let here = slot.take().map(|item| item.value());
            let there = thief.join().unwrap();
            let mut seen: Vec<_> = [replaced, here, there].into_iter().flatten().collect();
            seen.sort_unstable();
            assert_eq!(seen, [1, 2]);
        });
    }
}
