//! A queue without an end: blocks of slots, one after the other.
//!
//! # Protocol
//! The word `tail` holds the position of the next message and two bits: SEALED, and
//! GROWING for 'the last slot of a block was claimed, and `last` is about to move'.
//!
//! ```text
//! a sender                                     the receiver
//! S1 reads the tail, then `last`               R1 its slot is ready: takes the message
//! S2 exchanges the tail for the next; at the   R2 that was the last one of the block: goes
//!    last slot of a block with GROWING            on to the next, and keeps the block as
//! S3 had the last slot: links the next block,     the spare one, or frees it
//!    moves `last` to it, clears GROWING
//! S4 puts the message into its slot
//! ```
//! **Which block.** `last` moves only between the exchange that sets GROWING and the one
//! that clears it. If S2 succeeds, the tail was what S1 read, without GROWING, so `last`
//! was and is the block of this position. (It is stored with Release and read with
//! Acquire, so S1 cannot see a move that begins after S2.) The position has 62 bits: it
//! does not come back to the same value while a sender is between S1 and S2.
//!
//! **Who frees.** A sender reaches into a block only between S2 and S4, for the position
//! that it claimed. R2 comes after all positions of the block were put, so after the last
//! touch of every sender; and the next block was linked before the last one was put.
//! So the receiver alone frees, without asking anybody.
//!
//! **The end.** Sealing sets a bit in the tail. What was claimed before will be put, what
//! comes after is refused at S2: the position in the tail is final. So the receiver knows
//! whether a message is still on its way, and no message goes in behind its back.
//!
//! **Who waits for whom.** A sender that finds GROWING waits for S3 of another; the receiver
//! that needs a message which was claimed (to tell whether the queue is empty, or to take all
//! that is left) for S4. These waits have no bound of their own, but end: from S2 to S4 a
//! sender moves a message and stores two or three words. It runs none of the user's code,
//! locks and allocates nothing (the next block was made before S2), and cannot panic. It can
//! only lose its processor, and who waits lets others run after a microsecond.
//!
//! # Invariants
//! - Positions are claimed in order and each is put, by the one who claimed it, without
//!   any of the user's code in between.
//! - All slots of a block that is spare or new are empty, and it is linked to nothing.
//! - Positions are compared by their distance: they wrap round.
//!
//! # Rejected
//! - Claiming by an addition, and walking to the block afterwards: who has claimed but not
//!   walked yet keeps `last` where it is, so that everybody walks further and further;
//!   and to free a block one must know who may still walk through it. Tokio does so.
//! - Letting others go on while the tail is GROWING: they would have to reach into a block
//!   in which they have no position. It is two stores long, once a block; who finds it
//!   spins, then lets the other thread run.
//! - More than one spare block: one is enough as long as the queue is shorter than a block,
//!   and a longer queue has time to allocate.
//!
//! # Checked by
//! `two_senders_at_the_end_of_a_block_lose_nothing`, `a_spare_block_is_used_again_empty`,
//! `seal_against_two_sends_loses_nothing`, `positions_wrap_round`,
//! `a_queue_that_wraps_round_loses_nothing`; weakened as `blocks_growing_waits`,
//! `blocks_last_release`, `blocks_spare_release`, `blocks_sealed_refuses`.

use std::ptr;

use super::slot::Slot;
use crate::engine::prim::{
    AtomicPtr, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    backoff::Backoff,
    thread, weakened,
};

/// Slots of a block: Tokio's figure. Two in a model, so that it gets to see the end of one.
pub(super) const BLOCK: usize = if cfg!(blitz_loom) { 2 } else { 32 };

const SEALED: u64 = 1;
const GROWING: u64 = 1 << 1;
const SHIFT: u32 = 2;
const ONE: u64 = 1 << SHIFT;

/// See the module.
pub(super) struct Block<T> {
    next: AtomicPtr<Block<T>>,
    slots: [Slot<T>; BLOCK],
}

impl<T> Block<T> {
    fn new() -> Box<Self> {
        let mut block = Box::<Self>::new_uninit();
        let place = block.as_mut_ptr();
        // In its place: a block of large messages is larger than a stack.
        // SAFETY: both fields are written, slot by slot, before it is a block.
        unsafe {
            (&raw mut (*place).next).write(AtomicPtr::new(ptr::null_mut()));
            let first = (&raw mut (*place).slots).cast::<Slot<T>>();
            (0..BLOCK).for_each(|index| first.add(index).write(Slot::new()));
            block.assume_init()
        }
    }
}

/// Where the receiver is: the next position it takes. It has one, made with the queue.
pub(super) struct Cursor<T> {
    pub(super) head: u64,
    /// Null for a queue that has no blocks.
    pub(super) block: *mut Block<T>,
}

/// See the module.
pub(super) struct Blocks<T> {
    tail: AtomicU64,
    last: AtomicPtr<Block<T>>,
    spare: AtomicPtr<Block<T>>,
}

/// The place of a position.
#[inline]
fn offset(position: u64) -> usize {
    // The remainder by a power of two fits.
    (position % BLOCK as u64) as usize
}

impl<T> Blocks<T> {
    /// An empty queue whose first message has position `start`.
    pub(super) fn new(start: u64) -> (Self, Cursor<T>) {
        let head = start << SHIFT >> SHIFT;
        let block = Box::into_raw(Block::new());
        let queue = Self {
            tail: AtomicU64::new(head << SHIFT),
            last: AtomicPtr::new(block),
            spare: AtomicPtr::new(ptr::null_mut()),
        };
        (queue, Cursor { head, block })
    }

    /// Puts a message at the end; `true` if the receiver has to be woken. A sealed queue
    /// gives the message back.
    #[inline]
    pub(super) fn push(&self, value: T) -> Result<bool, T> {
        let Some((block, position)) = self.claim() else { return Err(value) };
        // SAFETY: the block lives until all its positions were put, and ours was not. 1. We
        // claimed the slot. 2. Nothing follows.
        Ok(unsafe { Slot::put(&raw const (*block).slots[offset(position)], value) })
    }

    /// S1 to S3; `None` if the queue is sealed.
    #[inline]
    fn claim(&self) -> Option<(*mut Block<T>, u64)> {
        let (mut next, mut backoff) = (None, Backoff::default());
        loop {
            // Acquire: `last` is at least as new. Pairs with the Release in `grow`.
            let now = self.tail.load(Acquire);
            if now & SEALED != 0 && !weakened!("blocks_sealed_refuses") {
                return None;
            }
            if now & GROWING != 0 && !weakened!("blocks_growing_waits") {
                backoff.pause();
                continue;
            }
            // Acquire: see 'Which block'. Pairs with the Release in `grow`.
            let block = self.last.load(Acquire);
            let is_last = offset(now >> SHIFT) == BLOCK - 1;
            if is_last && next.is_none() {
                // Before the claim: others wait for us after it.
                next = Some(self.fresh());
            }
            let step = now.wrapping_add(ONE) | if is_last { GROWING } else { 0 };
            // AcqRel: orders those who move `last` one after the other. Pairs with itself.
            // Relaxed on failure: it is read again.
            if self.tail.compare_exchange_weak(now, step, AcqRel, Relaxed).is_ok() {
                if let Some(next) = next {
                    self.settle(block, next, is_last);
                }
                return Some((block, now >> SHIFT));
            }
            // A copy for the next round would be as old.
            if cfg!(blitz_loom) {
                thread::yield_now();
            }
        }
    }

    /// What becomes of the block that was made ready: it is the next, or somebody else's was.
    #[cold]
    fn settle(&self, block: *mut Block<T>, next: Box<Block<T>>, is_last: bool) {
        if is_last {
            self.grow(block, Box::into_raw(next));
        } else {
            self.keep(Box::into_raw(next));
        }
    }

    /// S3.
    fn grow(&self, block: *mut Block<T>, next: *mut Block<T>) {
        // Relaxed: the receiver reads it after it saw our message, which we put later.
        // SAFETY: the block lives, as in `push`.
        unsafe { (*block).next.store(next, Relaxed) };
        let order = if weakened!("blocks_last_release") { Relaxed } else { Release };
        // Release, both: who sees that we are done sees the new block, and that it is
        // empty. Pair with the Acquires in `claim`.
        self.last.store(next, order);
        self.tail.fetch_and(!GROWING, order);
    }

    /// A block that is empty and linked to nothing.
    #[cold]
    fn fresh(&self) -> Box<Block<T>> {
        // Acquire: the slots were emptied. Pairs with the exchange in `keep`.
        let spare = self.spare.swap(ptr::null_mut(), Acquire);
        if spare.is_null() {
            return Block::new();
        }
        // SAFETY: what is spare was a box, and by the exchange it is ours alone.
        unsafe { Box::from_raw(spare) }
    }

    /// Keeps an empty block for the next one who needs it.
    #[cold]
    fn keep(&self, block: *mut Block<T>) {
        let order = if weakened!("blocks_spare_release") { Relaxed } else { AcqRel };
        // AcqRel: we emptied its slots, and somebody emptied those of the other. Pairs
        // with itself and with the exchange in `fresh`.
        let other = self.spare.swap(block, order);
        if !other.is_null() {
            // SAFETY: as in `fresh`.
            drop(unsafe { Box::from_raw(other) });
        }
    }

    /// The slot of the next message.
    ///
    /// # Safety
    /// 1. The cursor is the one that was made with this queue, and not left.
    #[inline]
    pub(super) unsafe fn slot(&self, cursor: &Cursor<T>) -> &Slot<T> {
        // SAFETY: 1.: the cursor's block lives until the cursor moves on.
        unsafe { &(&(*cursor.block).slots)[offset(cursor.head)] }
    }

    /// R2, after the message was taken.
    ///
    /// # Safety
    /// 1. As `slot`. 2. The message at the cursor was taken.
    #[inline]
    pub(super) unsafe fn advance(&self, cursor: &mut Cursor<T>) {
        let is_last = offset(cursor.head) == BLOCK - 1;
        cursor.head = (cursor.head + 1) << SHIFT >> SHIFT;
        if is_last {
            let block = cursor.block;
            // Relaxed: it was linked before the last message was put, which we saw.
            // SAFETY: 1. and 2.: see 'Who frees'.
            unsafe {
                cursor.block = (*block).next.load(Relaxed);
                (*block).next.store(ptr::null_mut(), Relaxed);
            }
            self.keep(block);
        }
    }

    /// How many were claimed and not taken.
    pub(super) fn len(&self, cursor: &Cursor<T>) -> usize {
        // Acquire: a look at what others sent. Pairs with the exchange in `claim`.
        let tail = self.tail.load(Acquire) & !(SEALED | GROWING);
        let distance = tail.wrapping_sub(cursor.head << SHIFT) >> SHIFT;
        usize::try_from(distance).unwrap_or(usize::MAX)
    }

    pub(super) fn is_sealed(&self) -> bool {
        // Acquire: who is refused sees what was done before. Pairs with `seal`.
        self.tail.load(Acquire) & SEALED != 0
    }

    /// Nothing goes in from now on.
    pub(super) fn seal(&self) {
        // AcqRel: orders it among the claims, and shows what the receiver did to those who
        // are refused. Pairs with the exchange and the Acquire in `claim`.
        self.tail.fetch_or(SEALED, AcqRel);
    }

    /// The slot of the position that is claimed next. Nobody may be about to claim it: then
    /// its block stays, since only a block whose positions were all taken is passed on.
    ///
    /// # Safety
    /// 1. No sender is in the middle of a push, and none begins one.
    pub(super) unsafe fn tail_slot(&self) -> &Slot<T> {
        // Acquire, both: as in `claim`. Pair with the Release in `grow`.
        let position = self.tail.load(Acquire) >> SHIFT;
        // SAFETY: 1.: `last` is the block of this position, and is freed with the queue.
        unsafe { &(&(*self.last.load(Acquire)).slots)[offset(position)] }
    }
}

impl<T> Drop for Blocks<T> {
    fn drop(&mut self) {
        // The receiver took everything before it left, and so it was in the last block.
        // Relaxed: whoever frees the channel has seen all that was done with it.
        for block in [self.last.load(Relaxed), self.spare.load(Relaxed)] {
            if !block.is_null() {
                // SAFETY: they were boxes, are two, and nobody else has them.
                drop(unsafe { Box::from_raw(block) });
            }
        }
    }
}
