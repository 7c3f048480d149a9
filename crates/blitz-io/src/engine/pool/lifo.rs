//! The slot for the task that was woken last: it runs next, while what it was
//! woken for is in the cache.
//!
//! # Protocol
//! Only the owner puts, when it finds the slot empty, with a plain store: nobody
//! else can fill it meanwhile. To replace, to take and to steal is an exchange,
//! so each entry leaves the slot once.
//!
//! A thief looks here only in its last pass, before it would sleep, and nobody
//! sends a wake-up for what is here: Tokio measured that those wake-ups cost
//! more than the stealing gains (its 1.51 to 1.52.2).
//!
//! # Rejected
//! Four slots: `bench/record` has the comparison.
//!
//! # Checked by
//! `a_slot_is_emptied_once`, `a_replaced_entry_is_not_lost`;
//! weakened as `lifo_put_publishes`, `lifo_take_sees`.

use std::ptr::{self, NonNull};

use crate::engine::{
    prim::{
        AtomicPtr,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        weakened,
    },
    queue::Linked,
};

/// See the module.
pub(crate) struct Slot<T: Linked>(AtomicPtr<T::Node>);

/// The slot of a core.
pub(crate) type LifoSlot = Slot<crate::engine::work::task::cell::Task>;

impl<T: Linked> Slot<T> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts an entry in and answers with the one that was there.
    ///
    /// # Safety
    /// 1. The caller is the owner: no other thread puts.
    #[inline]
    pub(crate) unsafe fn put(&self, item: T) -> Option<T> {
        let node = item.into_ptr().as_ptr();
        // Relaxed: only we make it non-null.
        if self.0.load(Relaxed).is_null() {
            let order = if weakened!("lifo_put_publishes") { Relaxed } else { Release };
            // Release: the entry's contents. Pairs with the Acquire in `take`.
            self.0.store(node, order);
            return None;
        }
        // AcqRel: as `store` above and as `take`, for the one that was there.
        Self::entry(self.0.swap(node, AcqRel))
    }

    /// Takes what is there, for the owner and for thieves alike.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        // Relaxed: empty, most of the time.
        if self.0.load(Relaxed).is_null() {
            return None;
        }
        let order = if weakened!("lifo_take_sees") { Relaxed } else { Acquire };
        // Acquire: the entry's contents. Pairs with the Release in `put`.
        Self::entry(self.0.swap(ptr::null_mut(), order))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Relaxed).is_null()
    }

    fn entry(node: *mut T::Node) -> Option<T> {
        // SAFETY: 1. `put` got it from `into_ptr`. 2. An exchange took it out of
        // the slot, which happens once for each time it is put.
        NonNull::new(node).map(|node| unsafe { T::from_ptr(node) })
    }
}

impl<T: Linked> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(test)]
mod tests {
    use super::Slot;
    use crate::engine::{
        prim::{Arc, model, thread},
        queue::{Chain, bead::Bead},
    };

    /// Touches what is the bead's owner's alone, where the model can see it.
    fn touched(bead: Bead) -> Bead {
        Chain::one(bead).pop_front().expect("it is in there")
    }

    #[test]
    fn a_slot_is_emptied_once() {
        model(|| {
            let slot = Arc::new(Slot::new());
            let thief = thread::spawn({
                let slot = slot.clone();
                move || slot.take().map(|bead: Bead| touched(bead).value())
            });
            // SAFETY: this thread is the only one that puts.
            assert!(unsafe { slot.put(touched(Bead::new(7))) }.is_none());
            let here = slot.take().map(|bead| touched(bead).value());
            let there = thief.join().unwrap();
            assert_eq!(here.or(there), Some(7));
            assert!(here.is_none() || there.is_none());
        });
    }

    #[test]
    fn a_replaced_entry_is_not_lost() {
        model(|| {
            let slot = Arc::new(Slot::new());
            // SAFETY: this thread is the only one that puts.
            assert!(unsafe { slot.put(Bead::new(1)) }.is_none());
            let thief = thread::spawn({
                let slot = slot.clone();
                move || slot.take().map(|bead: Bead| bead.value())
            });
            // SAFETY: as above.
            let replaced = unsafe { slot.put(Bead::new(2)) }.map(|bead| bead.value());
            let here = slot.take().map(|bead| bead.value());
            let there = thief.join().unwrap();
            let mut seen: Vec<_> = [replaced, here, there].into_iter().flatten().collect();
            seen.sort_unstable();
            assert_eq!(seen, [1, 2]);
        });
    }
}
