//! A slot for one message, in which its sender and the receiver synchronize.
//!
//! # Protocol
//! ```text
//! EMPTY    --put: writes, then exchanges-->    READY
//! EMPTY    --expect, the receiver-->           AWAITED
//! AWAITED  --put: and the receiver is woken--> READY
//! READY    --take, the receiver-->             EMPTY
//! AWAITED  --wake_receiver: and the receiver is woken--> EMPTY
//! ```
//! The receiver always waits for one slot, that of the next message. It hands over its waker (R1)
//! and then exchanges EMPTY for AWAITED (R2). A sender writes the value and exchanges the current
//! state for READY (S1). One of R2 and S1 comes first. If S1 does, R2 finds READY and the
//! message is there. If R2 does, S1 finds AWAITED and sees R1: the sender wakes the receiver. A
//! message for which the receiver does not wait costs no read of the waker and no fence.
//!
//! # Invariants
//! - One sender at a time has a slot: it claimed the slot's position, and the receiver gave back
//!   the previous position in the same slot.
//! - The value is there exactly if the slot is READY. It belongs to its sender before, and to
//!   the receiver from then on.
//!
//! # Rejected
//! - One word of bits for all slots of a block: each message would contend with its neighbours
//!   for that word.
//! - A store instead of the exchange, and a fence before a read of the waker: as expensive as
//!   the exchange, plus a second cache line.
//! - `wake_receiver` by one `fetch_and`, which would write READY over READY. It is correct: such an
//!   exchange comes directly after the one it reads, in the order of the word, and so before the
//!   EMPTY of `take`. But loom orders stores only by what their threads have seen. It lets the
//!   receiver read that READY after its own EMPTY, and take the message a second time, which no
//!   machine does. And the extra write would inform no thread of anything.
//!
//! # Checked by
//! `a_message_against_a_receiver_that_goes_to_sleep_is_seen`,
//! `a_new_waker_against_a_send_is_woken`,
//! `a_new_waker_against_the_drop_of_the_last_sender_is_woken`; weakened as
//! `slot_put_publishes`, `slot_put_sees_awaited`, `slot_take_acquire`,
//! `slot_rouse_exchanges`.

use std::mem::MaybeUninit;

use crate::engine::prim::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
    UnsafeCell, weakened,
};

const EMPTY: u32 = 0;
const AWAITED: u32 = 1;
const READY: u32 = 2;

/// A slot for one message: its state, and the value if the state is READY.
pub(super) struct Slot<T> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Self { state: AtomicU32::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Puts a message into the slot.
    ///
    /// Returns `true` if the receiver waits for this message, so that the caller must wake it.
    ///
    /// Takes a raw pointer, because a reference would have to stay valid until the end of the
    /// call, and the receiver may free the slot as soon as the exchange is done.
    ///
    /// # Safety
    /// 1. The caller claimed this slot, and puts one value into it.
    /// 2. The caller does not touch the slot after this call, because the receiver may free it.
    #[inline]
    #[must_use]
    pub(super) unsafe fn put(this: *const Self, value: T) -> bool {
        // SAFETY: by our obligation 1 the caller claimed the slot, so it lives until the
        // exchange below.
        let (cell, state) = unsafe { (&(*this).value, &(*this).state) };
        // SAFETY: by our obligation 1 the slot is this sender's, so there is no other reference
        // to the value.
        cell.with_mut(|slot| unsafe { (*slot).write(value) });
        let order = if weakened!("slot_put_publishes") { Relaxed } else { AcqRel };
        // AcqRel: publishes the value for the Acquire in `is_ready` and `expect`, and sees
        // the waker that was registered before `expect`.
        let before = state.swap(READY, order);
        debug_assert_ne!(before, READY, "two senders have one slot");
        before == AWAITED && !weakened!("slot_put_sees_awaited")
    }

    /// Returns `true` if there is a message to take.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        let order = if weakened!("slot_take_acquire") { Relaxed } else { Acquire };
        // Acquire: the receiver reads the value. Pairs with the AcqRel in `put`.
        self.state.load(order) == READY
    }

    /// Marks the slot AWAITED, so that its sender wakes the receiver, which has handed over its
    /// waker.
    ///
    /// Returns `true` if there is a message already.
    #[inline]
    pub(super) fn expect(&self) -> bool {
        // AcqRel: hands the waker over to the exchange in `put` or `wake_receiver`, and sees what
        // was done before a `wake_receiver` that came first. Acquire on failure: the value, as in
        // `is_ready`.
        self.state.compare_exchange(EMPTY, AWAITED, AcqRel, Acquire) == Err(READY)
    }

    /// Removes the AWAITED mark, and returns `true` if it was there.
    ///
    /// A caller that gets `true` owns the receiver's waker.
    ///
    /// This is an exchange even if the slot is EMPTY, so that the next `expect` sees what the
    /// caller did before. A READY slot is left alone: the receiver takes its message by a plain
    /// store of EMPTY, without an exchange, and so would not see what the caller did anyway.
    pub(super) fn wake_receiver(&self) -> bool {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.state.load(Relaxed);
        while now != READY {
            if now == EMPTY && weakened!("slot_rouse_exchanges") {
                break;
            }
            // AcqRel: publishes what the caller did to the exchange in `expect`, and sees the
            // waker that was handed over before it. Relaxed on failure: the value is only a better
            // guess.
            match self.state.compare_exchange(now, EMPTY, AcqRel, Relaxed) {
                Ok(_) => return now == AWAITED,
                Err(seen) => now = seen,
            }
        }
        false
    }

    /// Takes the message out.
    ///
    /// # Safety
    /// 1. The caller is the receiver and has seen that the slot is ready.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: by our obligation 1 the slot is ready and the caller is the receiver, so the
        // value is there and the receiver's. After the store below it is not taken again.
        let value = self.value.with_mut(|slot| unsafe { (*slot).assume_init_read() });
        // Relaxed: the next sender gets this slot through what gives the slot back (see
        // `send_permits`), or through the block that is recycled, and these order it.
        self.state.store(EMPTY, Relaxed);
        value
    }
}
