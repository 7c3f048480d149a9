//! An unbounded queue: a linked list of blocks of slots.
//!
//! # Protocol
//! The word `tail` holds the position of the next message and two bits: SEALED, and GROWING for
//! 'the last slot of a block was claimed, and `last` is about to move'.
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
//! **Which block.** `last` moves only between the exchange that sets GROWING and the one that
//! clears it. If S2 succeeds, the tail was what S1 read, without GROWING, so `last` was and is
//! the block of this position. (It is stored with Release and read with Acquire, so S1 cannot
//! see a move that begins after S2.) The position has 62 bits: it does not return to the same
//! value while a sender is between S1 and S2.
//!
//! **Which thread frees.** A sender accesses a block only between S2 and S4, for the position
//! that it claimed. R2 comes after all positions of the block were filled, so after the last
//! access of every sender; and the next block was linked before the last slot was filled. So
//! only the receiver frees blocks, without any further synchronization.
//!
//! **The end.** Sealing sets a bit in the tail. Positions that were claimed before will be
//! filled; later claims are refused at S2, so the position in the tail is final. So the receiver
//! knows whether a message is still on its way, and no message is added after it has looked.
//!
//! **Which thread waits for which.** A sender that finds GROWING waits for S3 of another sender.
//! A receiver that needs a message that was claimed (to find out whether the queue is empty, or
//! to take all that is left) waits for S4. These waits have no bound of their own, but they end:
//! from S2 to S4 a sender moves a message and stores two or three words. It runs no user code,
//! locks and allocates nothing (the next block was made before S2), and cannot panic. It can
//! only be preempted, and the waiting thread yields its CPU after a microsecond.
//!
//! # Invariants
//! - Positions are claimed in order, and each is filled by the sender that claimed it, without
//!   any user code in between.
//! - All slots of a block that is spare or new are empty, and the block is linked to nothing.
//! - Positions are compared by their distance, because they wrap around.
//!
//! # Rejected
//! - Claiming by an addition, and walking to the block afterwards: a sender that has claimed but
//!   not walked yet keeps `last` where it is, so that every sender walks further and further;
//!   and to free a block one must know which senders may still walk through it. Tokio does so.
//! - Letting other senders continue while the tail is GROWING: they would have to access a block
//!   in which they have no position. GROWING lasts two stores, once per block; a sender that
//!   finds it spins, then yields to the other thread.
//! - More than one spare block: one is enough as long as the queue is shorter than a block, and
//!   a longer queue has time to allocate.
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

/// Number of slots in a block: Tokio's number. A model uses two, so that it covers the end of a
/// block.
pub(super) const BLOCK: usize = if cfg!(blitz_loom) { 2 } else { 32 };

const SEALED: u64 = 1;
const GROWING: u64 = 1 << 1;
const SHIFT: u32 = 2;
const ONE: u64 = 1 << SHIFT;

/// A block of slots, and the link to the next block.
pub(super) struct Block<T> {
    next: AtomicPtr<Block<T>>,
    slots: [Slot<T>; BLOCK],
}

impl<T> Block<T> {
    fn new() -> Box<Self> {
        let mut block = Box::<Self>::new_uninit();
        let memory = block.as_mut_ptr();
        // Initialized in place, because a block of large messages may not fit on a stack.
        // SAFETY: both fields are written, slot by slot, before `assume_init`.
        unsafe {
            (&raw mut (*memory).next).write(AtomicPtr::new(ptr::null_mut()));
            let first = (&raw mut (*memory).slots).cast::<Slot<T>>();
            (0..BLOCK).for_each(|index| first.add(index).write(Slot::new()));
            block.assume_init()
        }
    }
}

/// The receiver's position in the queue: the next one that it takes.
///
/// Each queue has exactly one cursor, created together with it.
pub(super) struct Cursor<T> {
    pub(super) head: u64,
    /// The block of that position; null for a queue that has no blocks.
    pub(super) block: *mut Block<T>,
}

/// An unbounded queue of messages.
pub(super) struct Blocks<T> {
    tail: AtomicU64,
    last: AtomicPtr<Block<T>>,
    spare: AtomicPtr<Block<T>>,
}

/// Returns the index of a position's slot within its block.
#[inline]
fn offset(position: u64) -> usize {
    // The cast loses nothing: the remainder is below `BLOCK`.
    (position % BLOCK as u64) as usize
}

impl<T> Blocks<T> {
    /// Creates an empty queue, with `start` as the position of the first message.
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

    /// Adds a message at the end, and returns `true` if the caller must wake the receiver.
    ///
    /// A sealed queue returns the message as an error.
    #[inline]
    pub(super) fn push(&self, value: T) -> Result<bool, T> {
        let Some((block, position)) = self.claim() else { return Err(value) };
        // SAFETY: the block lives until all its positions were filled, and ours was not. 1. of
        // `put`: we claimed the slot. 2. of `put`: nothing touches the slot after the call.
        Ok(unsafe { Slot::put(&raw const (*block).slots[offset(position)], value) })
    }

    /// Claims a position, and adds a block if it is the last of its block (S1 to S3).
    ///
    /// Returns `None` if the queue is sealed.
    #[inline]
    fn claim(&self) -> Option<(*mut Block<T>, u64)> {
        let (mut next, mut backoff) = (None, Backoff::default());
        loop {
            // Acquire: `last` is at least as new as this tail. Pairs with the Release in `grow`.
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
                // Allocated before the claim, because other threads wait for us after it.
                next = Some(self.fresh());
            }
            let step = now.wrapping_add(ONE) | if is_last { GROWING } else { 0 };
            // AcqRel: orders the senders that move `last` one after the other. Pairs with
            // itself. Relaxed on failure: the tail is read again.
            if self.tail.compare_exchange_weak(now, step, AcqRel, Relaxed).is_ok() {
                if let Some(next) = next {
                    self.use_allocated(block, next, is_last);
                }
                return Some((block, now >> SHIFT));
            }
            // In a model the next load may return a value that is as old, so let other threads
            // run.
            if cfg!(blitz_loom) {
                thread::yield_now();
            }
        }
    }

    /// Uses the block that was allocated: as the next one, or as the spare if another sender was
    /// faster.
    #[cold]
    fn use_allocated(&self, block: *mut Block<T>, next: Box<Block<T>>, is_last: bool) {
        if is_last {
            self.grow(block, Box::into_raw(next));
        } else {
            self.keep(Box::into_raw(next));
        }
    }

    /// Links the next block, moves `last` to it, and clears GROWING (S3).
    fn grow(&self, block: *mut Block<T>, next: *mut Block<T>) {
        // Relaxed: the receiver reads the link after it saw our message, which we put later.
        // SAFETY: the block lives until all its positions were filled, and ours was not.
        unsafe { (*block).next.store(next, Relaxed) };
        let order = if weakened!("blocks_last_release") { Relaxed } else { Release };
        // Release, both: a thread that sees GROWING cleared sees the new block, and that it is
        // empty. Pair with the Acquires in `claim`.
        self.last.store(next, order);
        self.tail.fetch_and(!GROWING, order);
    }

    /// Returns a block that is empty and linked to nothing: the spare one, or a new one.
    #[cold]
    fn fresh(&self) -> Box<Block<T>> {
        // Acquire: the slots were emptied. Pairs with the exchange in `keep`.
        let spare = self.spare.swap(ptr::null_mut(), Acquire);
        if spare.is_null() {
            return Block::new();
        }
        // SAFETY: a spare block came from a box, and after the exchange it is ours alone.
        unsafe { Box::from_raw(spare) }
    }

    /// Keeps an empty block as the spare one, and frees the previous spare.
    #[cold]
    fn keep(&self, block: *mut Block<T>) {
        let order = if weakened!("blocks_spare_release") { Relaxed } else { AcqRel };
        // AcqRel: we emptied the slots of this block, and another thread emptied those of the
        // other. Pairs with itself and with the exchange in `fresh`.
        let other = self.spare.swap(block, order);
        if !other.is_null() {
            // SAFETY: a spare block came from a box, and after the exchange it is ours alone.
            drop(unsafe { Box::from_raw(other) });
        }
    }

    /// Returns the slot of the next message.
    ///
    /// # Safety
    /// 1. The cursor was created with this queue, and the receiver has not left.
    #[inline]
    pub(super) unsafe fn slot(&self, cursor: &Cursor<T>) -> &Slot<T> {
        // SAFETY: by our obligation 1 the cursor is this queue's, and its block lives until the
        // cursor moves on.
        unsafe { &(&(*cursor.block).slots)[offset(cursor.head)] }
    }

    /// Moves the cursor past a message that was taken, and recycles a finished block (R2).
    ///
    /// # Safety
    /// 1. The cursor was created with this queue, and the receiver has not left. 2. The message
    ///    at the cursor was taken.
    #[inline]
    pub(super) unsafe fn advance(&self, cursor: &mut Cursor<T>) {
        let is_last = offset(cursor.head) == BLOCK - 1;
        cursor.head = (cursor.head + 1) << SHIFT >> SHIFT;
        if is_last {
            let block = cursor.block;
            // Relaxed: the block was linked before its last message was put, which we saw.
            // SAFETY: by our obligations 1 and 2 the cursor is this queue's and all messages of
            // the block were taken, so no sender accesses it any more; see 'Which thread frees'.
            unsafe {
                cursor.block = (*block).next.load(Relaxed);
                (*block).next.store(ptr::null_mut(), Relaxed);
            }
            self.keep(block);
        }
    }

    /// Returns the number of positions that were claimed and not taken.
    pub(super) fn len(&self, cursor: &Cursor<T>) -> usize {
        // Acquire: sees what other threads sent. Pairs with the exchange in `claim`.
        let tail = self.tail.load(Acquire) & !(SEALED | GROWING);
        let distance = tail.wrapping_sub(cursor.head << SHIFT) >> SHIFT;
        usize::try_from(distance).unwrap_or(usize::MAX)
    }

    pub(super) fn is_sealed(&self) -> bool {
        // Acquire: a sender that is refused sees what was done before. Pairs with the AcqRel in
        // `seal`.
        self.tail.load(Acquire) & SEALED != 0
    }

    /// Seals the queue: no message is added from now on.
    pub(super) fn seal(&self) {
        // AcqRel: orders the seal among the claims, and publishes what the receiver did to the
        // senders that are refused. Pairs with the exchange and the Acquire in `claim`.
        self.tail.fetch_or(SEALED, AcqRel);
    }

    /// Returns the slot of the position that would be claimed next.
    ///
    /// No sender may be about to claim it. Then its block stays, because only a block with all
    /// its positions taken is recycled.
    ///
    /// # Safety
    /// 1. No sender is in the middle of a push, and none begins one.
    pub(super) unsafe fn tail_slot(&self) -> &Slot<T> {
        // Acquire, both: they see the block and that it is empty, as in `claim`. Pair with the
        // Release in `grow`.
        let position = self.tail.load(Acquire) >> SHIFT;
        // SAFETY: by our obligation 1 the tail does not change, so `last` is the block of this
        // position, and it is freed with the queue.
        unsafe { &(&(*self.last.load(Acquire)).slots)[offset(position)] }
    }
}

impl<T> Drop for Blocks<T> {
    fn drop(&mut self) {
        // The receiver took everything before it left, and so its cursor was in the last block.
        // Relaxed: the thread that frees the channel has seen everything that was done with it.
        for block in [self.last.load(Relaxed), self.spare.load(Relaxed)] {
            if !block.is_null() {
                // SAFETY: both came from boxes, they are different blocks, and no other thread
                // has them.
                drop(unsafe { Box::from_raw(block) });
            }
        }
    }
}
