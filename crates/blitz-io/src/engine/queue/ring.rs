//! The run queue of one core: a ring that its owner fills and empties, and from which other workers
//! may steal half.
//!
//! # Protocol
//! Positions are counters that only grow and wrap at 2^32; a position's slot is its remainder.
//! `head` packs two of them, `tail` is a third:
//!
//! ```text
//!      steal          real                tail
//!        |  a thief's   |   free to take    |
//!  ------+--------------+-------------------+------
//! ```
//! `real` is the next item to be taken. `steal` is the oldest slot that a thread may still be
//! reading: behind `real` while one thief copies, else equal to it.
//!
//! ```text
//! The owner                            A thief
//! push: writes the slot at `tail`,     T1 claims half: moves `real`, leaves `steal`
//!   then moves `tail`                  T2 copies what it claimed into its own ring
//! pop: moves `real` (and `steal`, if   T3 releases the claim: moves `steal` up to
//!   no thief copies), then reads          wherever `real` is by then
//! ```
//! A slot is read only by the thread that moved `real` past it, so no read is a race, and the
//! owner writes a slot only once `steal` is past it. There is one thief at a time: a second one
//! sees `steal != real` and tries another ring. The owner never waits: while a thief copies, the
//! owner pops what lies behind the claim, and pushes into the room that is left.
//!
//! The owner keeps copies of `tail`, which only it writes, and of the `head` it saw last. An old
//! `head` is safe: both of its counters only grow, so it shows less room than there is, and a
//! `pop` that starts from it fails its CAS.
//!
//! A push that finds no room returns the items that must go to the injector: half of the ring in
//! one chain, or the pushed item alone while a thief copies.
//!
//! # Invariants
//! 1. `steal <= real <= tail <= steal + CAPACITY`, in wrapping arithmetic.
//! 2. Slots of `[real, tail)` hold items that no thread has claimed; slots of `[steal, real)`
//!    belong to a thief. Others hold nothing.
//! 3. A thread that has read a `real` reads a `tail` that is not before it.
//!
//! # Rejected
//! - Popping without an RMW, with the asymmetric barrier: `unfenced.rs` in bench/queues/variants.
//! - Moving the oldest half in an overflow, stealing one item, and prefetching the next one:
//!   `choices.rs` in bench/queues/variants.
//! - Reading a slot before its claim, as a Chase-Lev deque does: formally a race.
//! - A Release in T1, because a claim publishes nothing: other thieves that see it try another
//!   ring, and the owner reads only what it wrote itself.
//! - `fetch_add` to claim, because it cannot be undone when there was nothing to claim.
//!
//! # Checked by
//! `models.rs`: `a_pushed_item_is_taken_once`, `the_last_item_goes_to_one_of_two`,
//! `overflow_during_a_steal_loses_nothing`, `counters_wrap_under_a_thief`,
//! `two_thieves_take_each_item_once`, `a_ring_may_be_stolen_from_while_it_receives`,
//! `the_owner_pops_while_a_thief_copies`, `a_slot_is_not_overwritten_before_it_is_copied`,
//! `a_pushed_chain_is_taken_once`, `a_full_thief_takes_what_fits`,
//! `a_thief_after_a_thief_sees_what_the_owner_popped`,
//! `a_thief_that_lost_a_race_sees_what_was_pushed`, `a_length_is_one_that_the_ring_once_had`,
//! `an_item_pushed_before_a_fence_is_seen_after_one`; weakened as `ring_tail_release`,
//! `ring_tail_acquire`, `ring_pop_release`, `ring_pop_acquire`, `ring_refresh_acquire`,
//! `ring_thief_acquire`, `ring_thief_retry_acquire`, `ring_release_is_ordered`, `ring_release_checks`,
//! `ring_busy_check`, `ring_spill_check`, `ring_room_from_real`, `ring_target_room`,
//! `ring_newest_release`, `ring_length_acquire`.
//! `tests.rs`: against a deque, and exactly-once under load.

use std::{cell::Cell, marker::PhantomData, mem::MaybeUninit, ptr::NonNull};

use super::{Chain, Linked};
use crate::engine::prim::{
    Arc, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell,
    pad::CachePadded,
    weakened,
};

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
// For bench/queues/variants, which compiles this file into a crate of its own and sets this cfg.
// Choices that lost their measurement need the private parts of the ring that they are measured in.
#[cfg(blitz_variants)]
#[path = "../../../../../bench/queues/variants/src/choices.rs"]
pub(crate) mod choices;

/// Number of slots of a ring. 256 is what Go and Tokio settled on (2 KiB of pointers); picked,
/// not measured. A model reaches full and wrapped rings with four.
pub(crate) const CAPACITY: u32 = if cfg!(blitz_loom) { 4 } else { 256 };
const MASK: u32 = CAPACITY - 1;
const _: () = assert!(CAPACITY.is_power_of_two());

/// Number of items that overflow at once, and the most that one steal takes. The newest half
/// overflows: that was 5 % faster in two-worker hand-overs and 8 % in push and pop of a full ring
/// than the oldest half, and an item runs 110 items late on average instead of 276 (bench/record,
/// 'overflow').
const HALF: u32 = CAPACITY / 2;

/// Packs `steal` into the upper half of a word and `real` into the lower.
#[inline(always)]
const fn pack(steal: u32, real: u32) -> u64 {
    (steal as u64) << 32 | real as u64
}

/// Splits a word into `steal` and `real`.
#[inline(always)]
const fn unpack(head: u64) -> (u32, u32) {
    ((head >> 32) as u32, head as u32)
}

type RingSlot<N> = UnsafeCell<MaybeUninit<NonNull<N>>>;

/// The shared part of a ring. Each field has cache lines of its own, because each has its own
/// kind of traffic: the CAS of all threads on `head`, the owner's store per push, and the items.
struct Ring<T: Linked> {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU32>,
    slots: CachePadded<[RingSlot<T::Node>; CAPACITY as usize]>,
    owns: PhantomData<T>,
}

// SAFETY: a ring owns its items and hands each to one taker (invariant 2), so sending the ring is
// sending its items.
unsafe impl<T: Linked + Send> Send for Ring<T> {}
// SAFETY: slots are touched only under the protocol of this file, which hands each item to one
// taker, so sharing the ring is sending its items.
unsafe impl<T: Linked + Send> Sync for Ring<T> {}

impl<T: Linked> Ring<T> {
    #[inline(always)]
    fn slot(&self, position: u32) -> &RingSlot<T::Node> {
        &self.slots[(position & MASK) as usize]
    }

    /// Reads a slot.
    ///
    /// # Safety
    /// 1. The caller moved `real` past `position`, and `steal` is not past it (or the caller is
    ///    the owner, which alone could overwrite the slot).
    /// 2. The node is taken from the slot once.
    #[inline(always)]
    unsafe fn read(&self, position: u32) -> NonNull<T::Node> {
        // SAFETY: by obligation 1 the slot was in `[real, tail)`, so it is initialised, and no
        // thread writes it now.
        self.slot(position).with(|slot| unsafe { (*slot).assume_init() })
    }

    /// Writes a slot.
    ///
    /// # Safety
    /// 1. The caller is the owner.
    /// 2. `position` is in `[tail, steal + CAPACITY)`.
    #[inline(always)]
    unsafe fn write(&self, position: u32, node: NonNull<T::Node>) {
        // SAFETY: by obligation 2 the slot holds nothing and no thread reads it; by obligation 1
        // no other thread writes it.
        self.slot(position).with_mut(|slot| unsafe { *slot = MaybeUninit::new(node) });
    }

    /// Returns the number of waiting items. Any thread may call this.
    #[inline]
    fn len(&self) -> u32 {
        self.span().len()
    }

    /// Returns the positions at which the ring begins and ends.
    #[inline]
    fn span(&self) -> RingSpan {
        let order = if weakened!("ring_length_acquire") { Relaxed } else { Acquire };
        // Acquire: a `tail` loaded after this is not before this `real`. Pairs with the Release
        // of `pop`, `spill_newest` and `release_claim`.
        let (_, real) = unpack(self.head.load(order));
        // Relaxed: only the number matters; a thread that takes an item loads it again.
        let tail = self.tail.load(Relaxed);
        RingSpan { real, tail }
    }
}

/// The range of positions that a ring held at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingSpan {
    real: u32,
    tail: u32,
}

impl RingSpan {
    /// Returns the number of items in the range.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        // `real` may be old by now, and then the distance is too long.
        self.tail.wrapping_sub(self.real).min(CAPACITY)
    }

    /// Returns true if the range has no items.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if an item has come or left since `earlier`.
    #[inline]
    pub(crate) fn has_moved_since(&self, earlier: &Self) -> bool {
        self.real != earlier.real || self.tail != earlier.tail
    }

    /// Returns true if all items that were there at `earlier` have left.
    #[inline]
    pub(crate) fn has_passed(&self, earlier: &Self) -> bool {
        self.real.wrapping_sub(earlier.tail) <= u32::MAX / 2
    }
}

/// Creates a ring. Returns the end for its owner and the end for the other workers.
pub(crate) fn ring<T: Linked>() -> (RingOwner<T>, Thief<T>) {
    ring_from(0)
}

/// Creates a ring with counters that start at `start`, so that tests can begin near the end of
/// their range.
pub(crate) fn ring_from<T: Linked>(start: u32) -> (RingOwner<T>, Thief<T>) {
    let head = pack(start, start);
    let ring = Arc::new(Ring {
        head: CachePadded::new(AtomicU64::new(head)),
        tail: CachePadded::new(AtomicU32::new(start)),
        slots: CachePadded::new(std::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit()))),
        owns: PhantomData,
    });
    let thief = Thief { ring: ring.clone() };
    (RingOwner { ring, tail: start, head, not_sync: PhantomData }, thief)
}

/// The outcome of a push.
#[must_use = "what overflows must go to the injector"]
#[derive(Debug)]
pub(crate) enum Pushed<T: Linked> {
    /// The ring had room for the item.
    Kept,
    /// The ring was full: these items must go to the injector.
    Overflow(Chain<T>),
}

/// The owner's end of a ring. Methods take `&mut self`, because there is one owner at a time.
pub(crate) struct RingOwner<T: Linked> {
    ring: Arc<Ring<T>>,
    /// Copy of `tail`, which only this owner writes.
    tail: u32,
    /// The `head` that this owner saw last, with Acquire or written by itself.
    head: u64,
    not_sync: PhantomData<Cell<()>>,
}

impl<T: Linked> RingOwner<T> {
    /// Appends an item, without an RMW. Reads `head` only when the room seems to be used up.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Pushed<T> {
        if self.known_room() == 0 {
            return self.push_slowly(item);
        }
        self.put(item);
        Pushed::Kept
    }

    /// Moves items from the chain until the chain or the room ends. Returns how many were moved.
    pub(crate) fn push_chain(&mut self, chain: &mut Chain<T>) -> u32 {
        let wanted = u32::try_from(chain.len()).unwrap_or(u32::MAX);
        let count = wanted.min(self.room_for(wanted));
        for offset in 0..count {
            let node = chain.pop_front_ptr().expect("a chain is as long as it says");
            // SAFETY: 1. `self` is the owner. 2. `count` is at most the room.
            unsafe { self.ring.write(self.tail.wrapping_add(offset), node) };
        }
        if count > 0 {
            self.publish(count);
        }
        count
    }

    /// Takes the oldest item, with one CAS.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let success = if weakened!("ring_pop_release") { Relaxed } else { Release };
        let failure = if weakened!("ring_pop_acquire") { Relaxed } else { Acquire };
        loop {
            let (steal, real) = unpack(self.head);
            // An old `real` is not past the true one, which is not past `tail`.
            if real == self.tail {
                return None;
            }
            let next = real.wrapping_add(1);
            let freed = if steal == real { next } else { steal };
            let head = pack(freed, next);
            // Release: upholds invariant 3; pairs with the Acquire loads of `head` in `claim` and
            // `span`. Acquire, on failure: the copy of `head` becomes room, as in `refresh`;
            // pairs with the Release in `release_claim`. Success needs no Acquire, because we know
            // the value already, and no value of `head` comes twice.
            match self.ring.head.compare_exchange_weak(self.head, head, success, failure) {
                Ok(_) => {
                    self.head = head;
                    // SAFETY: for `read`: 1. the CAS moved `real` past the slot, and we are the
                    // owner. 2. no other thread reads it, because only our CAS moved `real` past
                    // it. For `from_ptr`: 1. slots hold what `into_ptr` returned. 2. the node has
                    // left the ring, once.
                    return Some(unsafe { T::from_ptr(self.ring.read(real)) });
                }
                Err(actual) => self.head = actual,
            }
        }
    }

    /// Returns the number of waiting items.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.ring.len()
    }

    /// Returns true if no items wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if `tail` is a multiple of `step` and at least `step` items wait. Most calls
    /// read only the owner's own copy of `tail`.
    #[inline]
    pub(crate) fn is_long(&self, step: u32) -> bool {
        self.tail.is_multiple_of(step) && self.len() >= step
    }

    /// Returns how many items fit now; more may fit if a thief releases its claim meanwhile.
    #[inline]
    pub(crate) fn room(&mut self) -> u32 {
        self.room_for(CAPACITY)
    }

    /// Returns the known room, after a fresh load of `head` if it is less than `wanted`.
    #[inline]
    fn room_for(&mut self, wanted: u32) -> u32 {
        if self.known_room() < wanted {
            self.refresh();
        }
        self.known_room()
    }

    /// Returns the room by the copy of `head`, which is never more than the true room.
    #[inline(always)]
    fn known_room(&self) -> u32 {
        let (steal, real) = unpack(self.head);
        let oldest = if weakened!("ring_room_from_real") { real } else { steal };
        CAPACITY - self.tail.wrapping_sub(oldest)
    }

    /// Loads `head` afresh.
    #[inline]
    fn refresh(&mut self) {
        let order = if weakened!("ring_refresh_acquire") { Relaxed } else { Acquire };
        // Acquire: a thief's reads are over before we write where it read. Pairs with the Release
        // in `release_claim`.
        self.head = self.ring.head.load(order);
    }

    /// Writes an item into a slot that is known to be free, and publishes it.
    #[inline(always)]
    fn put(&mut self, item: T) {
        // SAFETY: 1. `self` is the owner. 2. callers found room for one item.
        unsafe { self.ring.write(self.tail, item.into_ptr()) };
        self.publish(1);
    }

    /// Publishes `count` written slots to the thieves.
    #[inline(always)]
    fn publish(&mut self, count: u32) {
        let order = if weakened!("ring_tail_release") { Relaxed } else { Release };
        self.tail = self.tail.wrapping_add(count);
        // Release: publishes the slots, and what the items point at. Pairs with the Acquire of
        // `tail` in `claim`.
        self.ring.tail.store(self.tail, order);
    }

    /// Pushes an item for which the known room does not suffice.
    #[cold]
    fn push_slowly(&mut self, item: T) -> Pushed<T> {
        loop {
            self.refresh();
            if self.known_room() > 0 {
                self.put(item);
                return Pushed::Kept;
            }
            let (steal, real) = unpack(self.head);
            if steal != real && !weakened!("ring_spill_check") {
                // A thief is making room right now, but the owner does not wait for it.
                return Pushed::Overflow(Chain::one(item));
            }
            // `None` means that a thief came first, so try again.
            let Some(mut chain) = self.spill_newest(real) else { continue };
            chain.push_back(item);
            return Pushed::Overflow(chain);
        }
    }

    /// Takes the newer half of a full ring that no thief steals from. Returns `None` if a thief
    /// came first.
    ///
    /// `tail` must not move back, because a thief may act on the `tail` that it has read. So all
    /// positions are claimed, and the older half, which stays in its slots, gets new positions a
    /// whole ring further.
    fn spill_newest(&mut self, real: u32) -> Option<Chain<T>> {
        let order = if weakened!("ring_newest_release") { Relaxed } else { Release };
        let end = real.wrapping_add(CAPACITY);
        // Relaxed: like a thief's claim this publishes nothing, and it keeps thieves out.
        self.ring.head.compare_exchange(self.head, pack(real, end), Relaxed, Relaxed).ok()?;
        let chain = self.chain_of(real.wrapping_add(HALF), HALF);
        self.publish(HALF);
        self.head = pack(end, end);
        // Release: upholds invariant 3; pairs with the Acquire loads of `head` in `claim` and
        // `span`. A store is enough, because only the claimant and the owner change a claimed
        // `head`, and this thread is both.
        self.ring.head.store(self.head, order);
        Some(chain)
    }

    /// Returns a chain of the `count` items from `position` on, which the caller has just
    /// claimed.
    fn chain_of(&self, position: u32, count: u32) -> Chain<T> {
        let mut chain = Chain::new();
        for offset in 0..count {
            // SAFETY: 1. the caller's CAS moved `real` past the slots, and we are the owner. 2.
            // each slot is read here once.
            chain.push_back_ptr(unsafe { self.ring.read(position.wrapping_add(offset)) });
        }
        chain
    }
}

impl<T: Linked> Drop for RingOwner<T> {
    /// Drops the items that are left. A thief that is copying keeps those that it claimed.
    fn drop(&mut self) {
        let mut left = Chain::new();
        while let Some(item) = self.pop() {
            left.push_back(item);
        }
    }
}

impl<T: Linked> std::fmt::Debug for RingOwner<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingOwner").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The outcome of a steal.
#[must_use = "the first stolen item is in here and nowhere else"]
#[derive(Debug)]
pub(crate) struct Stolen<T> {
    /// The oldest of the stolen items, for the thief to run at once.
    pub(crate) first: Option<T>,
    /// Number of further items that went into the thief's own ring.
    pub(crate) moved: u32,
    /// True if nothing was taken because another thief is copying. The ring may well hold more
    /// items, but trying another ring is better than waiting.
    pub(crate) busy: bool,
}

/// The end of a ring for the other workers.
pub(crate) struct Thief<T: Linked> {
    ring: Arc<Ring<T>>,
}

impl<T: Linked> Clone for Thief<T> {
    fn clone(&self) -> Self {
        Self { ring: self.ring.clone() }
    }
}

/// The slots that a thief may read, until it releases them.
#[must_use = "claimed slots must be copied and let go"]
struct SlotClaim {
    first: u32,
    count: u32,
}

/// The outcome of a try to claim slots.
enum ClaimOutcome {
    Some(SlotClaim),
    Empty,
    Busy,
}

impl<T: Linked> Thief<T> {
    /// Moves half of the items to `target`, as far as it has room.
    ///
    /// `target` may be stolen from meanwhile, and may be the owner's end of the same ring.
    pub(crate) fn steal_half_into(&self, target: &mut RingOwner<T>) -> Stolen<T> {
        let room = if weakened!("ring_target_room") { HALF } else { target.room_for(HALF) };
        // One item needs no room, because it is returned to the caller.
        let claim = match self.claim(room + 1) {
            ClaimOutcome::Some(claim) => claim,
            ClaimOutcome::Empty => return Stolen { first: None, moved: 0, busy: false },
            ClaimOutcome::Busy => return Stolen { first: None, moved: 0, busy: true },
        };
        let moved = claim.count - 1;
        for offset in 0..moved {
            // SAFETY: for `read`: 1. the claim moved `real` past the position, and `steal` stays
            // until `release_claim`. 2. each position is read once. For `write`: 1. `target` is
            // borrowed from its owner. 2. the claim is no larger than the room plus the one item
            // that is not written.
            unsafe {
                let node = self.ring.read(claim.first.wrapping_add(1 + offset));
                target.ring.write(target.tail.wrapping_add(offset), node);
            }
        }
        // SAFETY: for `read`: 1. the claim covers its first position. 2. it is read once. For
        // `from_ptr`: 1. slots hold what `into_ptr` returned. 2. this node has left the ring,
        // once.
        let first = unsafe { T::from_ptr(self.ring.read(claim.first)) };
        if moved > 0 {
            target.publish(moved);
        }
        self.release_claim(claim);
        Stolen { first: Some(first), moved, busy: false }
    }

    /// Returns the number of waiting items, which may have changed by now.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.ring.len()
    }

    /// Returns true if no items wait, which may have changed by now.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns where the ring begins and ends now, so that a later [`RingSpan`] shows its progress.
    #[inline]
    pub(crate) fn span(&self) -> RingSpan {
        self.ring.span()
    }

    /// Claims half of the items, rounded up, `most` at most, by moving `real` over them (step T1).
    #[inline(always)]
    fn claim(&self, most: u32) -> ClaimOutcome {
        let order = if weakened!("ring_thief_acquire") { Relaxed } else { Acquire };
        let failure = if weakened!("ring_thief_retry_acquire") { Relaxed } else { Acquire };
        let tail_order = if weakened!("ring_tail_acquire") { Relaxed } else { Acquire };
        // Acquire, here and when the CAS fails: upholds invariant 3. Pairs with the Release in
        // `pop`, `spill_newest` and `release_claim`.
        let mut head = self.ring.head.load(order);
        loop {
            let (steal, real) = unpack(head);
            if steal != real && !weakened!("ring_busy_check") {
                return ClaimOutcome::Busy;
            }
            // Acquire: sees the slots and the items. Pairs with the Release in `publish`.
            let available = self.ring.tail.load(tail_order).wrapping_sub(real);
            // If `head` is old this may be too many, and then the CAS fails.
            let count = (available - available / 2).min(most);
            if count == 0 {
                return ClaimOutcome::Empty;
            }
            let claimed = pack(steal, real.wrapping_add(count));
            // Relaxed: the claim publishes nothing, and what we read was published through
            // `tail`.
            match self.ring.head.compare_exchange_weak(head, claimed, Relaxed, failure) {
                Ok(_) => {
                    assert!(
                        available <= CAPACITY,
                        "a thief claimed {count} of {available} items at {head:#x}: \
                         invariant 3 of the ring is broken, please report this"
                    );
                    return ClaimOutcome::Some(SlotClaim { first: real, count });
                }
                Err(actual) => head = actual,
            }
        }
    }

    /// Releases the claimed slots, so that the owner may write them (step T3).
    #[inline(always)]
    fn release_claim(&self, claim: SlotClaim) {
        let order = if weakened!("ring_release_is_ordered") { Relaxed } else { Release };
        let end = claim.first.wrapping_add(claim.count);
        let mut head = pack(claim.first, end);
        loop {
            let real = if weakened!("ring_release_checks") { end } else { unpack(head).1 };
            // Release: our reads come before the owner's next write there; pairs with the Acquire
            // in `refresh` and `pop`. It also upholds invariant 3, for the next thief; pairs with
            // the Acquire in `claim`. Relaxed, on failure: the owner popped, and we only follow
            // its `real`.
            match self.ring.head.compare_exchange_weak(head, pack(real, real), order, Relaxed) {
                Ok(_) => return,
                Err(actual) => head = actual,
            }
        }
    }
}

impl<T: Linked> std::fmt::Debug for Thief<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thief").field("len", &self.len()).finish_non_exhaustive()
    }
}
