//! A ring in which the owner pops with plain loads and stores, and the thief pays for it.
//!
//! # Protocol
//! `real` has two writers, so one of them must know that the other is not about to write. The
//! owner announces with `busy` that it is inside a pop, and the thief announces with `word` that
//! it is about to claim. Each reads the other's flag after setting its own, across the asymmetric
//! barrier:
//!
//! ```text
//! The owner's pop                      A thief
//! B1 sets `busy`                       T1 word: IDLE -> CLAIMING (a CAS: one thief at a time)
//! B2 light()                           T2 heavy()
//! B3 reads `word`                      T3 reads `busy`; gives up if it is set
//! B4 CLAIMING: clears `busy` and       T4 claims: moves `real` by CAS
//!    pops by CAS, as T4                T5 word: COPYING from the first claimed slot
//!    else: `real` += 1, plainly        T6 copies
//! B5 clears `busy`                     T7 word: IDLE
//! ```
//! B2 or T2 comes first. If B2, T3 sees B1: the thief gives up, or waits for B5, and then all of
//! the pop is done and visible. If T2, B3 sees T1 or something later: CLAIMING, and both sides use
//! CAS; or COPYING or IDLE, and the claim is done and visible, because T5 is a Release and B3 an
//! Acquire. So plain stores to `real` never meet a CAS on it. The owner never waits.
//!
//! A push needs none of this, because it writes a slot and `tail`, which are the owner's. It only
//! must not write a slot that is being copied. The owner knows `oldest`, a position at or before
//! the oldest slot that a thread may read. To learn more it reads `real` and then `word`, in that
//! order: a thread that sees a claim's `real` sees the CLAIMING before it, so IDLE after it means
//! that the copy is over. COPYING carries the position; CLAIMING carries nothing, and the old
//! `oldest` stays.
//!
//! # Invariants
//! The same as in `ring.rs` of blitz-io, with the position in `word` in place of `steal`.
//!
//! # Rejected
//! Waiting for the thief in B4, because `heavy` takes microseconds and a CAS takes nanoseconds.
//!
//! # Checked by
//! `an_unfenced_pop_and_a_claim_never_meet`, `an_unfenced_ring_overflows_under_a_thief`,
//! `two_thieves_of_an_unfenced_ring_take_each_item_once`,
//! `an_unfenced_slot_is_not_overwritten_before_it_is_copied`, `an_unfenced_ring_wraps`;
//! weakened as `unfenced_light`, `unfenced_heavy`, `unfenced_busy_check`,
//! `unfenced_word_check`, `unfenced_copying_release`, `unfenced_done_release`,
//! `unfenced_refresh_acquire`, `unfenced_refresh_order`, `unfenced_tail_release`,
//! `unfenced_claiming_room`.
//! The Release of B5 has no negative control: without it the processor could let a thief see B5
//! before the store to `real`, but loom runs stores in program order.
//! And `an_unfenced_ring_behaves_as_a_deque`, `a_million_items_pass_an_unfenced_ring_once`.

use std::{marker::PhantomData, mem::MaybeUninit, ptr::NonNull};

use crate::engine::{
    prim::{
        Arc, AtomicBool, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        UnsafeCell,
        barrier::{heavy, light},
        pad::CachePadded,
        spin_loop, weakened,
    },
    queue::{
        Chain, Linked,
        ring::{CAPACITY, Pushed, Stolen},
    },
};

const MASK: u32 = CAPACITY - 1;

/// Number of items that overflow at once, and the room that a thief wants in its own ring.
const HALF: u32 = CAPACITY / 2;

/// How often a thief reads `busy` again: long enough for one pop, which is a handful of
/// instructions. Picked, not measured. A model tries once.
const CHECKS: u32 = if cfg!(blitz_loom) { 1 } else { 64 };

/// `word` while no thief is active.
const IDLE: u64 = 0;
/// `word` while a thief is about to claim.
const CLAIMING: u64 = 1 << 32;
/// `word` while a thief copies; the lower half holds the first position that it copies.
const COPYING: u64 = 2 << 32;

type Slot<N> = UnsafeCell<MaybeUninit<NonNull<N>>>;

/// The words that the owner writes all the time; thieves read them when they steal.
struct OwnerWords {
    tail: AtomicU32,
    real: AtomicU32,
    busy: AtomicBool,
}

/// The shared part of a ring.
struct Ring<T: Linked> {
    owner: CachePadded<OwnerWords>,
    /// Written by thieves only, so the owner's copy of the line stays valid.
    word: CachePadded<AtomicU64>,
    slots: CachePadded<[Slot<T::Node>; CAPACITY as usize]>,
    owns: PhantomData<T>,
}

// SAFETY: the protocol gives each item to one taker, so sending the ring is sending its items.
unsafe impl<T: Linked + Send> Send for Ring<T> {}
// SAFETY: the protocol gives each item to one taker, so sharing the ring is sending its items.
unsafe impl<T: Linked + Send> Sync for Ring<T> {}

impl<T: Linked> Ring<T> {
    #[inline(always)]
    fn slot(&self, position: u32) -> &Slot<T::Node> {
        &self.slots[(position & MASK) as usize]
    }

    /// Reads a slot.
    ///
    /// # Safety
    /// 1. The caller moved `real` past `position`, and the slot was not released for writing
    ///    since.
    /// 2. The node is taken from the slot once.
    #[inline(always)]
    unsafe fn read(&self, position: u32) -> NonNull<T::Node> {
        // SAFETY: by obligation 1 the slot is initialised and no thread writes it now.
        self.slot(position).with(|slot| unsafe { (*slot).assume_init() })
    }

    /// Writes a slot.
    ///
    /// # Safety
    /// 1. The caller is the owner, and found room for `position`.
    #[inline(always)]
    unsafe fn write(&self, position: u32, node: NonNull<T::Node>) {
        // SAFETY: by obligation 1 no other thread reads or writes the slot.
        self.slot(position).with_mut(|slot| unsafe { *slot = MaybeUninit::new(node) });
    }
}

/// Creates a ring with counters that start at `start`.
pub(crate) fn unfenced<T: Linked>(start: u32) -> (UnfencedOwner<T>, UnfencedThief<T>) {
    let (tail, real) = (AtomicU32::new(start), AtomicU32::new(start));
    let ring = Arc::new(Ring {
        owner: CachePadded::new(OwnerWords { tail, real, busy: AtomicBool::new(false) }),
        word: CachePadded::new(AtomicU64::new(IDLE)),
        slots: CachePadded::new(std::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit()))),
        owns: PhantomData,
    });
    let thief = UnfencedThief { ring: ring.clone() };
    (UnfencedOwner { ring, tail: start, oldest: start }, thief)
}

/// The worker's end of a ring.
pub(crate) struct UnfencedOwner<T: Linked> {
    ring: Arc<Ring<T>>,
    /// Copy of `tail`, which only this owner writes.
    tail: u32,
    /// A position at or before the oldest slot that a thread may be reading.
    oldest: u32,
}

impl<T: Linked> UnfencedOwner<T> {
    /// Appends an item, or returns the items that overflow.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Pushed<T> {
        if self.known_room() == 0 {
            return self.push_slowly(item);
        }
        self.put(item);
        Pushed::Kept
    }

    /// Takes the oldest item, with plain loads and stores unless a thief is about to claim.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.enter() == Entered::Contended {
            return self.pop_by_cas();
        }
        let words = &*self.ring.owner;
        // Relaxed: we wrote it, or `enter` saw the claim that did.
        let real = words.real.load(Relaxed);
        let taken = (real != self.tail).then(|| {
            // Release: a thread that sees this `real` sees a `tail` not before it. Pairs with the
            // Acquire of `real` in `claim`.
            words.real.store(real.wrapping_add(1), Release);
            // SAFETY: for `read`: 1. the store moved `real` past the slot, no thief claims now,
            // and only the owner overwrites slots. 2. `real` moved, so no other thread reads it.
            // For `from_ptr`: 1. slots hold what `into_ptr` returned. 2. this node has left the
            // ring, once.
            unsafe { T::from_ptr(self.ring.read(real)) }
        });
        self.leave();
        taken
    }

    /// Begins a pop and checks for thieves: steps B1 to B3.
    #[inline(always)]
    fn enter(&self) -> Entered {
        // Relaxed: the light barrier (B2) orders it before the load of `word`.
        self.ring.owner.busy.store(true, Relaxed);
        if !weakened!("unfenced_light") {
            light();
        }
        // Acquire: sees a finished claim. Pairs with the Release of T5 and T7.
        let word = self.ring.word.load(Acquire);
        if word == CLAIMING && !weakened!("unfenced_word_check") {
            return Entered::Contended;
        }
        if word == IDLE { Entered::Alone } else { Entered::Copied }
    }

    /// Ends a pop: step B5.
    #[inline(always)]
    fn leave(&self) {
        // Release: the pop is done. Pairs with the Acquire of T3.
        self.ring.owner.busy.store(false, Release);
    }

    /// Pops while a thief is about to claim (step B4): both use CAS on `real`.
    #[cold]
    fn pop_by_cas(&mut self) -> Option<T> {
        self.leave();
        let words = &*self.ring.owner;
        // Relaxed: a guess that the CAS checks.
        let mut real = words.real.load(Relaxed);
        while real != self.tail {
            let next = real.wrapping_add(1);
            // Release: a thread that sees this `real` sees a `tail` not before it; pairs with the
            // Acquire of `real` in `claim`. Relaxed, on failure: we only follow the thief's
            // `real`.
            match words.real.compare_exchange_weak(real, next, Release, Relaxed) {
                // SAFETY: for `read`: 1. the CAS moved `real` past the slot, and only the owner
                // overwrites slots. 2. only our CAS moved past it. For `from_ptr`: 1. slots hold
                // what `into_ptr` returned. 2. this node has left the ring, once.
                Ok(_) => return Some(unsafe { T::from_ptr(self.ring.read(real)) }),
                Err(actual) => real = actual,
            }
        }
        None
    }

    /// Returns the room by `oldest`, which is never more than the true room.
    #[inline(always)]
    fn known_room(&self) -> u32 {
        CAPACITY - self.tail.wrapping_sub(self.oldest)
    }

    /// Advances `oldest` as far as slots are known to be free.
    fn refresh(&mut self) {
        let order = if weakened!("unfenced_refresh_acquire") { Relaxed } else { Acquire };
        let early = self.ring.word.load(Relaxed);
        // Acquire: a thread that sees a claim's `real` sees its CLAIMING below. Pairs with the
        // fence in T2, which is before T4.
        let real = self.ring.owner.real.load(order);
        // Acquire: the copy is over. Pairs with the Release of T7.
        let late = self.ring.word.load(order);
        let word = if weakened!("unfenced_refresh_order") { early } else { late };
        match word {
            IDLE => self.oldest = real,
            CLAIMING if weakened!("unfenced_claiming_room") => self.oldest = real,
            CLAIMING => {}
            copying => self.oldest = copying as u32,
        }
    }

    /// Writes an item into a slot that is known to be free, and publishes it.
    #[inline(always)]
    fn put(&mut self, item: T) {
        // SAFETY: 1. `self` is the owner, and the callers found room.
        unsafe { self.ring.write(self.tail, item.into_ptr()) };
        self.publish(1);
    }

    /// Publishes `count` written slots to the thieves.
    #[inline(always)]
    fn publish(&mut self, count: u32) {
        let order = if weakened!("unfenced_tail_release") { Relaxed } else { Release };
        self.tail = self.tail.wrapping_add(count);
        // Release: publishes the slots and the items. Pairs with the Acquire of `tail` in
        // `claim`.
        self.ring.owner.tail.store(self.tail, order);
    }

    /// Pushes an item for which the known room does not suffice.
    #[cold]
    fn push_slowly(&mut self, item: T) -> Pushed<T> {
        self.refresh();
        if self.known_room() > 0 {
            self.put(item);
            return Pushed::Kept;
        }
        if self.enter() != Entered::Alone {
            self.leave();
            return Pushed::Overflow(Chain::one(item));
        }
        // No thief is active and `busy` is set, so `real` belongs to this thread, and so does
        // every slot before it.
        let words = &*self.ring.owner;
        // Relaxed: we wrote it, or `enter` saw the claim that did.
        let real = words.real.load(Relaxed);
        let full = self.tail.wrapping_sub(real) == CAPACITY;
        // A thief may have finished since the refresh, and then nothing overflows.
        let count = if full { HALF } else { 0 };
        self.oldest = real.wrapping_add(count);
        // Release: a thread that sees this `real` sees a `tail` not before it. Pairs with the
        // Acquire of `real` in `claim`.
        words.real.store(self.oldest, Release);
        self.leave();
        let mut chain = Chain::new();
        for offset in 0..count {
            // SAFETY: for `read`: 1. the store above moved `real` past the slots, and only the
            // owner overwrites slots. 2. each is read once. For `from_ptr`: 1. slots hold what
            // `into_ptr` returned. 2. each node has left the ring, once.
            chain.push_back(unsafe { T::from_ptr(self.ring.read(real.wrapping_add(offset))) });
        }
        self.put(item);
        if !full {
            return Pushed::Kept;
        }
        Pushed::Overflow(chain)
    }
}

/// The state of the thieves' `word` that the owner found when it entered a pop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// No thief is active.
    Alone,
    /// A thief has claimed and copies, so it does not touch `real` any more.
    Copied,
    /// A thief may claim now.
    Contended,
}

impl<T: Linked> Drop for UnfencedOwner<T> {
    fn drop(&mut self) {
        let mut left = Chain::new();
        while let Some(item) = self.pop() {
            left.push_back(item);
        }
    }
}

/// The end of a ring for the other workers.
pub(crate) struct UnfencedThief<T: Linked> {
    ring: Arc<Ring<T>>,
}

impl<T: Linked> Clone for UnfencedThief<T> {
    fn clone(&self) -> Self {
        Self { ring: self.ring.clone() }
    }
}

impl<T: Linked> UnfencedThief<T> {
    /// Moves half of the items to `target`, as far as it has room.
    pub(crate) fn steal_half_into(&self, target: &mut UnfencedOwner<T>) -> Stolen<T> {
        // A ring that looks empty is not worth a barrier.
        if self.is_empty() {
            return Stolen { first: None, moved: 0, busy: false };
        }
        if target.known_room() < HALF {
            target.refresh();
        }
        if !self.announce() {
            return Stolen { first: None, moved: 0, busy: true };
        }
        let (first, count) = self.claim(target.known_room() + 1);
        if count == 0 {
            self.done();
            return Stolen { first: None, moved: 0, busy: false };
        }
        let order = if weakened!("unfenced_copying_release") { Relaxed } else { Release };
        // T5. Release: publishes the claim. Pairs with the Acquire in `enter`.
        self.ring.word.store(COPYING | u64::from(first), order);
        for offset in 1..count {
            // SAFETY: for `read`: 1. T4 moved `real` past the position, and the slots are
            // released only in T7. 2. each is read once. For `write`: 1. `target` is borrowed
            // from its owner, and the claim is no larger than its room plus the one item that is
            // not written.
            unsafe {
                let node = self.ring.read(first.wrapping_add(offset));
                target.ring.write(target.tail.wrapping_add(offset - 1), node);
            }
        }
        // SAFETY: for `read`: 1. T4 moved `real` past the first position. 2. it is read once. For
        // `from_ptr`: 1. slots hold what `into_ptr` returned. 2. this node has left the ring,
        // once.
        let item = unsafe { T::from_ptr(self.ring.read(first)) };
        if count > 1 {
            target.publish(count - 1);
        }
        self.done();
        Stolen { first: Some(item), moved: count - 1, busy: false }
    }

    /// Returns true if the ring looks empty.
    fn is_empty(&self) -> bool {
        // Relaxed: a guess, which only saves work.
        self.ring.owner.real.load(Relaxed) == self.ring.owner.tail.load(Relaxed)
    }

    /// Announces a claim and checks for the owner: steps T1 to T3. Returns `false` if another
    /// thief or the owner is active.
    fn announce(&self) -> bool {
        let words = &*self.ring.owner;
        // Acquire: sees what the previous thief did. Pairs with the Release of T7.
        if self.ring.word.compare_exchange(IDLE, CLAIMING, Acquire, Relaxed).is_err() {
            return false;
        }
        if !weakened!("unfenced_heavy") {
            heavy();
        }
        for _ in 0..CHECKS {
            // Acquire: sees the pop that ended. Pairs with the Release of B5.
            if !words.busy.load(Acquire) || weakened!("unfenced_busy_check") {
                return true;
            }
            spin_loop();
        }
        self.done();
        false
    }

    /// Claims at most `most` items (step T4). Returns the first position and the number of items.
    fn claim(&self, most: u32) -> (u32, u32) {
        let words = &*self.ring.owner;
        // Acquire: a `tail` loaded after this is not before it. Pairs with the Release in `pop`.
        let mut real = words.real.load(Acquire);
        loop {
            // Acquire: sees the slots and the items. Pairs with the Release in `publish`.
            let available = words.tail.load(Acquire).wrapping_sub(real);
            let count = (available - available / 2).min(most);
            if count == 0 {
                return (real, 0);
            }
            let next = real.wrapping_add(count);
            // Relaxed: the fence in `heavy` lies between our CLAIMING and this, so a thread that
            // sees this `real` with the Acquire in `refresh` sees the CLAIMING. Acquire, on
            // failure: pairs with the Release in `pop`, like the load above.
            match words.real.compare_exchange_weak(real, next, Relaxed, Acquire) {
                Ok(_) => {
                    assert!(available <= CAPACITY, "a thief claimed past the tail at {real:#x}");
                    return (real, count);
                }
                Err(actual) => real = actual,
            }
        }
    }

    /// Releases the claimed slots and ends the steal: step T7.
    fn done(&self) {
        let order = if weakened!("unfenced_done_release") { Relaxed } else { Release };
        // Release: our reads are over. Pairs with the Acquire in `refresh`, in `enter`, and in
        // the next thief's `announce`.
        self.ring.word.store(IDLE, order);
    }
}

#[cfg(test)]
mod tests;
