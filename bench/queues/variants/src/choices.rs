//! Choices of the ring that lost, as further methods of its two ends.
//!
//! This is a child module of `ring.rs` in blitz-io, because the methods need its private parts. Only
//! bench/queues/variants builds it.
//!
//! - An overflow moves the *oldest* half and keeps the items that are warm in the cache. The ring
//!   moves the newest half.
//! - A thief steals *one* item. The ring's thieves take half.
//! - A *hint* says where the next item is, so that it can be prefetched.
//!
//! # Checked by
//! `oldest_overflow_during_a_steal_loses_nothing`, weakened as `ring_spill_release`;
//! `a_hint_survives_the_item_it_points_at`; and `the_choices_behave_as_a_deque`.

use std::ptr::NonNull;

use super::{ClaimOutcome, HALF, Pushed, RingOwner, Stolen, Thief, pack, unpack};
use crate::engine::{
    prim::{
        Ordering::{Relaxed, Release},
        weakened,
    },
    queue::{Chain, Linked},
};

impl<T: Linked> RingOwner<T> {
    /// Appends an item. If the ring is full, the oldest half overflows.
    #[inline(always)]
    pub(crate) fn push_spilling_oldest(&mut self, item: T) -> Pushed<T> {
        if self.known_room() == 0 {
            return self.push_slowly_spilling_oldest(item);
        }
        self.put(item);
        Pushed::Kept
    }

    /// Pushes an item for which the known room does not suffice.
    #[cold]
    fn push_slowly_spilling_oldest(&mut self, item: T) -> Pushed<T> {
        loop {
            self.refresh();
            if self.known_room() > 0 {
                self.put(item);
                return Pushed::Kept;
            }
            let (steal, real) = unpack(self.head);
            if steal != real {
                // A thief is making room right now, but the owner does not wait for it.
                return Pushed::Overflow(Chain::one(item));
            }
            // `None` means that a thief came first, so try again.
            let Some(chain) = self.spill_oldest(real) else { continue };
            self.put(item);
            return Pushed::Overflow(chain);
        }
    }

    /// Takes the older half of a full ring that no thief steals from. Returns `None` if a thief
    /// came first.
    fn spill_oldest(&mut self, real: u32) -> Option<Chain<T>> {
        let order = if weakened!("ring_spill_release") { Relaxed } else { Release };
        let next = real.wrapping_add(HALF);
        let head = pack(next, next);
        // Release: upholds invariant 3; pairs with the Acquire loads of `head` in `claim` and
        // `span`. Relaxed: on failure the caller refreshes.
        self.ring.head.compare_exchange(self.head, head, order, Relaxed).ok()?;
        self.head = head;
        Some(self.chain_of(real, HALF))
    }

    /// Returns the address of the item that the next `pop` may return: a hint, because a thief
    /// may have it already.
    #[inline]
    pub(crate) fn next_hint(&self) -> Option<NonNull<T::Node>> {
        let (_, real) = unpack(self.head);
        // SAFETY: 1. the slot is not claimed, but only the owner could overwrite it, and the
        // owner wrote it before it moved `tail` past it. 2. nothing is taken, because the address
        // is not used as an owner.
        (real != self.tail).then(|| unsafe { self.ring.read(real) })
    }
}

impl<T: Linked> Thief<T> {
    /// Takes the oldest item.
    pub(crate) fn steal_one(&self) -> Stolen<T> {
        let claim = match self.claim(1) {
            ClaimOutcome::Some(claim) => claim,
            ClaimOutcome::Empty => return Stolen { first: None, moved: 0, busy: false },
            ClaimOutcome::Busy => return Stolen { first: None, moved: 0, busy: true },
        };
        // SAFETY: for `read`: 1. the claim moved `real` past its only position, and `steal` stays
        // until `release_claim`. 2. it is read once. For `from_ptr`: 1. slots hold what `into_ptr`
        // returned. 2. this node has left the ring, once.
        let first = unsafe { T::from_ptr(self.ring.read(claim.first)) };
        self.release_claim(claim);
        Stolen { first: Some(first), moved: 0, busy: false }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{
        prim::{model, thread},
        queue::{
            ring::{CAPACITY, Pushed, RingOwner, ring},
            test_node::{TestNode, values},
        },
    };

    fn push(owner: &mut RingOwner<TestNode>, value: u32) -> Vec<u32> {
        match owner.push_spilling_oldest(TestNode::new(value)) {
            Pushed::Kept => Vec::new(),
            Pushed::Overflow(chain) => values(chain),
        }
    }

    fn drain(owner: &mut RingOwner<TestNode>) -> Vec<u32> {
        std::iter::from_fn(|| owner.pop()).map(|test_node| test_node.value()).collect()
    }

    #[test]
    fn oldest_overflow_during_a_steal_loses_nothing() {
        model(|| {
            let (mut owner, victim) = ring();
            let thief = thread::spawn(move || {
                let (mut target, _) = ring();
                let stolen = victim.steal_half_into(&mut target);
                let mut loot: Vec<_> = stolen.first.iter().map(TestNode::value).collect();
                loot.extend(drain(&mut target));
                loot
            });
            let mut seen: Vec<_> =
                (0..CAPACITY + 2).flat_map(|value| push(&mut owner, value)).collect();
            seen.extend(drain(&mut owner));
            seen.extend(thief.join().unwrap());
            seen.sort_unstable();
            assert_eq!(seen, (0..CAPACITY + 2).collect::<Vec<_>>());
        });
    }

    #[cfg(not(blitz_loom))]
    mod real {
        use std::collections::VecDeque;

        use proptest::prelude::*;

        use super::push;
        use crate::engine::queue::{
            ring::{CAPACITY, HALF, ring_from},
            test_node::TestNode,
        };

        proptest! {
            /// Positive steps push that many, negative ones pop, zero loses one to a thief.
            #[test]
            fn the_choices_behave_as_a_deque(
                start in prop_oneof![Just(0), u32::MAX - 600..=u32::MAX],
                steps in prop::collection::vec(-150i32..200, 0..40),
            ) {
                let (mut owner, thief) = ring_from(start);
                let (mut deque, mut next) = (VecDeque::new(), 0);
                for step in steps {
                    for _ in 0..step.max(0) {
                        let full = deque.len() == CAPACITY as usize;
                        let spilt = if full { HALF as usize } else { 0 };
                        prop_assert_eq!(push(&mut owner, next), deque.drain(..spilt).collect::<Vec<u32>>());
                        deque.push_back(next);
                        next += 1;
                    }
                    for _ in step..0 {
                        prop_assert_eq!(owner.pop().map(|test_node| test_node.value()), deque.pop_front());
                    }
                    if step == 0 {
                        let stolen = thief.steal_one().first.as_ref().map(TestNode::value);
                        prop_assert_eq!(stolen, deque.pop_front());
                    }
                }
            }
        }
    }
}
