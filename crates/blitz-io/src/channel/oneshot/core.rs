//! The state word of a oneshot channel, its value, and the wakers of its two halves.
//!
//! Both kinds of channel are built on this file: the one with halves that share an allocation
//! ([`Heap`]), and the one with halves that borrow a slot ([`Borrowed`]).
//!
//! # Protocol
//! The word starts as EMPTY. Each half decides once, by one exchange:
//!
//! ```text
//! the sender                               the receiver
//! S1 writes the value                      R1 finds DONE: takes the value, if SENT
//! S2 EMPTY -> DONE SENT TX_OUT             R2 closes: sets CLOSED, unless DONE or CLOSED
//!    (without a value: DONE TX_OUT)        R3 is dropped: sets CLOSED RX_OUT, unless DONE;
//! S3 finds CLOSED: the value is still         then as R1
//!    its own, and goes back                R4 waits: writes its waker, sets RX_WAKER,
//! S4 waits for CLOSED: writes its waker,      unless DONE
//!    sets TX_WAKER, unless CLOSED
//! ```
//! DONE and CLOSED exclude each other: both are set by an exchange that fails if the other one
//! is there. So a half that sees CLOSED knows that the value never became the receiver's, and a
//! half that sees SENT knows that it is not the sender's any more. There is no moment at which
//! both could access it.
//!
//! A waker belongs to the thread that clears its bit. S2, R2 and R3 clear both bits; each then
//! takes both wakers out, calls the other half's and drops its own. A half that is polled with
//! another waker clears its own bit first, and sets it again.
//!
//! TX_OUT and RX_OUT mean that a half does not access the core any more. The second half to set
//! its bit frees the allocation. A half that finds the other's bit by a mere load frees it
//! without an exchange: a send and a receive with no half waiting take one exchange in all. A
//! half that has wakers to take out sets its bit by a second exchange. A borrowed core is not
//! freed; its halves leave these bits alone after they have decided.
//!
//! # Invariants
//! - The value is there exactly if SENT is set; then it is the receiver's.
//! - RX_WAKER and TX_WAKER are clear once DONE or CLOSED is set.
//! - The cell of a waker is written only by its own half, while its bit is clear. While the bit
//!   is set both halves may read it; the reference that the receiver compares with may be of a
//!   waker that the sender has just moved out, of which it reads two pointers and nothing behind
//!   them.
//! - No user code runs between two steps: a waker is cloned before its bit is cleared, and
//!   wakers and values are called or dropped after the half has left the core.
//!
//! # Rejected
//! - SENT by a plain 'or': a receiver that closed a moment ago and looks again would take the
//!   value that the sender takes back. That was Tokio's RUSTSEC-2021-0124.
//! - Two reference counts beside the word, as an `Arc` has: two more exchanges for each channel,
//!   and 16 bytes.
//! - A state in which the sender moves the waker out before it sets SENT: the receiver would
//!   have to wait for the sender's next step.
//!
//! # Checked by
//! `a_value_sent_is_received_or_dropped_once`, `send_against_close_and_try_recv_agree`,
//! `send_against_the_drop_of_the_receiver_drops_the_value_once`,
//! `closed_against_the_drop_of_the_receiver_ends`, `closed_against_close_ends`,
//! `a_new_waker_against_send_is_woken`, `a_new_waker_against_the_drop_of_the_sender_is_woken`,
//! `a_new_waker_of_the_sender_against_close_is_woken`, `both_halves_wait_and_both_go`,
//! `a_slot_is_used_twice`, `a_thread_waits_for_a_value`,
//! `every_pair_of_methods_agrees_on_which_half_has_the_value`; weakened as `oneshot_send_release`,
//! `oneshot_recv_acquire`, `oneshot_send_sees_closed`, `oneshot_close_sees_done`,
//! `oneshot_register_sees_the_end`, `oneshot_claims_wakers`, `oneshot_out_orders`,
//! `oneshot_renews_the_waker`, `oneshot_taken_is_noted`.

use std::{
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
    ptr::NonNull,
    task::{Context, Poll, Waker, ready},
};

use super::error::{RecvError, TryRecvError};
use crate::engine::{
    prim::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        UnsafeCell, weakened,
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

/// Initial state: no half has decided, and none waits.
const EMPTY: u32 = 0;
/// The sender has sent, or was dropped.
const DONE: u32 = 1;
/// There is a value; only with DONE.
const SENT: u32 = 1 << 1;
/// The receiver wants no value; never with DONE.
const CLOSED: u32 = 1 << 2;
/// The receiver waits.
const RX_WAKER: u32 = 1 << 3;
/// The sender waits for CLOSED.
const TX_WAKER: u32 = 1 << 4;
/// The sender does not access the core any more.
const TX_OUT: u32 = 1 << 5;
/// The receiver does not access the core any more.
const RX_OUT: u32 = 1 << 6;

/// Mask: one of these bits is set once a half has decided.
const ENDED: u32 = DONE | CLOSED;
const WAKERS: u32 = RX_WAKER | TX_WAKER;

/// The state that the two halves share.
pub(super) struct Core<T> {
    word: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
    rx_waker: UnsafeCell<MaybeUninit<Waker>>,
    tx_waker: UnsafeCell<MaybeUninit<Waker>>,
}

// SAFETY: the value and the wakers have one owner at a time (see the invariants), and both may
// move between threads.
unsafe impl<T: Send> Send for Core<T> {}
// SAFETY: a shared reference gives no access to a `&T`; the value and the wakers have one owner
// at a time (see the invariants).
unsafe impl<T: Send> Sync for Core<T> {}

/// Where a core is stored, which decides what frees it.
pub(super) trait Storage {
    /// `true` if the last half to leave frees the core.
    const FREED_BY_LAST: bool;
}

/// A core in an allocation that the two halves share.
#[derive(Debug)]
pub(super) enum Heap {}

/// A core in a slot that the two halves borrow.
#[derive(Debug)]
pub(super) enum Borrowed {}

impl Storage for Heap {
    const FREED_BY_LAST: bool = true;
}

impl Storage for Borrowed {
    const FREED_BY_LAST: bool = false;
}

impl<T> Core<T> {
    #[cfg(not(blitz_loom))]
    #[inline]
    pub(super) const fn new() -> Self {
        Self {
            word: AtomicU32::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            rx_waker: UnsafeCell::new(MaybeUninit::uninit()),
            tx_waker: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Creates an EMPTY core; not `const`, because the model checker's atomics have no `const`
    /// constructor.
    #[cfg(blitz_loom)]
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU32::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            rx_waker: UnsafeCell::new(MaybeUninit::uninit()),
            tx_waker: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Creates two halves in an allocation of their own.
    #[inline]
    pub(super) fn on_heap() -> (Tx<T, Heap>, Rx<T, Heap>) {
        let core = NonNull::from(Box::leak(Box::new(Self::new())));
        // SAFETY: of both `new`: 1. the core is new, and gets one half of each kind. 2. It lives
        // until the last half frees it. 3. It came from a box.
        unsafe { (Tx::new(core), Rx::new(core)) }
    }

    /// Creates two halves that borrow this core, after resetting it.
    #[inline]
    pub(super) fn borrow(&mut self) -> (Tx<T, Borrowed>, Rx<T, Borrowed>) {
        self.reset();
        let core = NonNull::from(self);
        // SAFETY: of both `new`: 1. the core was reset, and earlier halves were dropped or
        // forgotten, because we have an exclusive reference. 2. Callers bind the halves to a
        // lifetime. 3. `Borrowed` frees nothing.
        unsafe { (Tx::new(core), Rx::new(core)) }
    }

    /// Drops the value and the wakers that forgotten halves have left.
    #[inline]
    pub(super) fn reset(&mut self) {
        // Relaxed, here and below: we have an exclusive reference.
        let now = self.word.load(Relaxed);
        if now != EMPTY {
            self.word.store(EMPTY, Relaxed);
            // SAFETY: 1. of `wakers` and `value_if`: the bits say what is there, they are clear
            // now, and no half exists, so everything is taken once.
            drop(unsafe { (self.wakers(now), self.value_if(now)) });
        }
    }

    /// Takes the wakers that have their bits set in `now`: the receiver's, the sender's.
    ///
    /// # Safety
    /// 1. The caller has cleared those bits.
    #[inline]
    unsafe fn wakers(&self, now: u32) -> (Option<Waker>, Option<Waker>) {
        // SAFETY: 1. of `take`: a set bit means that the waker is there, and by our obligation 1
        // the caller cleared it and so owns the waker.
        unsafe {
            let rx = (now & RX_WAKER != 0).then(|| Side::RECEIVER.take(self));
            let tx = (now & TX_WAKER != 0).then(|| Side::SENDER.take(self));
            (rx, tx)
        }
    }

    /// Takes the value, if `now` contains SENT.
    ///
    /// # Safety
    /// 1. The caller is the receiver, or alone with the core; it takes the value once.
    #[inline]
    unsafe fn value_if(&self, now: u32) -> Option<T> {
        // SAFETY: 1. of `take_value`: SENT means that the value is there, and by our obligation
        // 1 it is the caller's.
        (now & SENT != 0).then(|| unsafe { self.take_value() })
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// 1. The value is there, and belongs to the caller.
    #[inline]
    unsafe fn take_value(&self) -> T {
        // SAFETY: by our obligation 1 the value is initialized and belongs to the caller.
        self.value.with_mut(|value| unsafe { (*value).assume_init_read() })
    }

    /// Registers a waker for the other half to wake.
    ///
    /// If a half has ended by now, leaves no waker and returns the word as an error.
    fn register(&self, side: Side, mut now: u32, waker: &Waker) -> Result<(), u32> {
        if now & side.bit != 0 {
            // SAFETY: 1. of `would_wake`: only this half sets its bit, so this half put the
            // waker there.
            let same = unsafe { side.would_wake(self, waker) };
            if same || weakened!("oneshot_renews_the_waker") {
                return Ok(());
            }
        }
        // Cloned before the bit is cleared, because a waker's clone runs user code.
        let waker = waker.clone();
        let mut stale = None;
        let ended = if weakened!("oneshot_register_sees_the_end") { 0 } else { ENDED };
        while now & side.bit != 0 {
            // Acquire: if the other half has ended, we read what it left. Pairs with the Release
            // of its exchange. No Release is needed, because this half wrote the waker itself.
            match self.word.compare_exchange(now, now & !side.bit, Acquire, Acquire) {
                Ok(_) => {
                    // SAFETY: 1. of `take`: the exchange cleared the bit, so the waker is ours.
                    stale = Some(unsafe { side.take(self) });
                    now &= !side.bit;
                }
                Err(seen) if seen & ENDED != 0 => return Err(seen),
                Err(seen) => now = seen,
            }
        }
        // SAFETY: 1. of `put`: our bit is clear, and only this half sets it.
        unsafe { side.put(self, waker) };
        loop {
            if now & ended != 0 {
                // SAFETY: 1. of `take`: this half put the waker there, and the bit is still
                // clear.
                drop((unsafe { side.take(self) }, stale));
                return Err(now);
            }
            // Release: publishes the waker. Pairs with the Acquire of the exchange that clears
            // the bit, in `Tx::end` and `Rx::end_undecided`. Acquire on failure: if the other
            // half has ended, we read what it left.
            match self.word.compare_exchange(now, now | side.bit, Release, Acquire) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }
}

impl<T> fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: only a snapshot.
        let now = self.word.load(Relaxed);
        f.debug_struct("State")
            .field("is_complete", &(now & DONE != 0))
            .field("is_closed", &(now & CLOSED != 0))
            .field("is_rx_task_set", &(now & RX_WAKER != 0))
            .field("is_tx_task_set", &(now & TX_WAKER != 0))
            .finish()
    }
}

/// One half's waker, identified by its bit in the word.
#[derive(Clone, Copy)]
struct Side {
    bit: u32,
}

impl Side {
    const RECEIVER: Self = Self { bit: RX_WAKER };
    const SENDER: Self = Self { bit: TX_WAKER };

    #[inline]
    fn waker_cell<T>(self, core: &Core<T>) -> &UnsafeCell<MaybeUninit<Waker>> {
        if self.bit == RX_WAKER { &core.rx_waker } else { &core.tx_waker }
    }

    /// Writes the half's waker.
    ///
    /// # Safety
    /// 1. The caller is that half, and its bit is clear.
    unsafe fn put<T>(self, core: &Core<T>, waker: Waker) {
        // SAFETY: by our obligation 1 the bit is clear, so no other thread reads or writes the
        // waker.
        self.waker_cell(core).with_mut(|slot| unsafe { (*slot).write(waker) });
    }

    /// Takes the half's waker out.
    ///
    /// # Safety
    /// 1. A waker is there, and belongs to the caller: it cleared the bit, or put the waker
    ///    there.
    unsafe fn take<T>(self, core: &Core<T>) -> Waker {
        // SAFETY: by our obligation 1 the waker is initialized and the caller's. This only reads
        // the cell, because the half itself may be comparing.
        self.waker_cell(core).with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Returns `true` if the half's waker wakes the same task as `waker`.
    ///
    /// # Safety
    /// 1. The caller is that half and has put a waker there.
    unsafe fn would_wake<T>(self, core: &Core<T>, waker: &Waker) -> bool {
        // SAFETY: by our obligation 1 the cell was initialized. Only two pointers are compared:
        // the other half may have moved the waker out, and neither pointer is followed.
        self.waker_cell(core).with(|slot| unsafe { (*slot).assume_init_ref() }.will_wake(waker))
    }
}

/// Frees a core that came from a box.
///
/// # Safety
/// 1. The core came from a box. 2. Both halves are out of it, and the caller sees what they did.
#[inline]
unsafe fn free<T>(core: NonNull<Core<T>>) {
    #[cfg(blitz_loom)]
    // SAFETY: by our obligation 2 no half accesses the core. The empty writes show the model
    // checker that freeing counts as a write.
    unsafe {
        core.as_ref().value.with_mut(|_| ());
        core.as_ref().rx_waker.with_mut(|_| ());
        core.as_ref().tx_waker.with_mut(|_| ());
    }
    // SAFETY: by our obligation 1 the core came from a box, and by 2 no half uses it. The value
    // and the wakers were taken before, and `MaybeUninit` drops nothing.
    drop(unsafe { Box::from_raw(core.as_ptr()) });
}

/// The sending half.
pub(super) struct Tx<T, H: Storage> {
    core: NonNull<Core<T>>,
    storage: PhantomData<H>,
}

// SAFETY: the half is a reference to a `Core<T>`, through which a `T` may reach another thread.
unsafe impl<T: Send, H: Storage> Send for Tx<T, H> {}
// SAFETY: a shared `Tx` only reads the word of a `Core<T>`.
unsafe impl<T: Send, H: Storage> Sync for Tx<T, H> {}

impl<T, H: Storage> Tx<T, H> {
    /// Creates the sending half of a core.
    ///
    /// # Safety
    /// 1. The core is EMPTY and has no other half of this kind.
    /// 2. It lives until both halves are out.
    /// 3. It came from a box, if the last half frees it.
    #[inline]
    unsafe fn new(core: NonNull<Core<T>>) -> Self {
        Self { core, storage: PhantomData }
    }

    #[inline]
    pub(super) fn core(&self) -> &Core<T> {
        // SAFETY: the core lives until both halves are out, and this one is not.
        unsafe { self.core.as_ref() }
    }

    /// Sends the value, or returns it if the receiver has closed (S1 to S3).
    #[inline]
    pub(super) fn send(self, value: T) -> Result<(), T> {
        // Not dropped, because the drop would decide a second time.
        let core = ManuallyDrop::new(self).core;
        // SAFETY: the core lives until both halves are out; the reference is not used after this
        // half is.
        let this = unsafe { core.as_ref() };
        // SAFETY: SENT is clear, so the cell of the value is the sender's.
        this.value.with_mut(|slot| unsafe { (*slot).write(value) });
        let order = if weakened!("oneshot_send_release") { Relaxed } else { Release };
        // Release: publishes the value. Pairs with the Acquire loads of the receiver. Acquire on
        // failure: we read what the receiver left.
        match this.word.compare_exchange(EMPTY, DONE | SENT | TX_OUT, order, Acquire) {
            Ok(_) => Ok(()),
            // SAFETY: 1. of `send_to_waiting`: the exchange failed, so the sender has not
            // decided, and `self` is used up. 2. The value was written above.
            Err(now) => unsafe { Self::send_to_waiting(core, now) },
        }
    }

    /// Completes `send` if the word was not EMPTY.
    ///
    /// # Safety
    /// 1. The sender has not decided, and is used up. 2. It has written the value.
    #[cold]
    unsafe fn send_to_waiting(core: NonNull<Core<T>>, now: u32) -> Result<(), T> {
        // SAFETY: 1. of `end`: by our obligation 1 the sender has not decided, and is used up.
        let Err(now) = (unsafe { Self::end(core, now, DONE | SENT) }) else { return Ok(()) };
        // SAFETY: 1. of `take_value`: CLOSED is set, so the value did not become the receiver's,
        // and by our obligation 2 it was written. The sender is not out, so the core is alive.
        let value = unsafe { core.as_ref().take_value() };
        // SAFETY: 1. of `leave`: by our obligation 1 the sender has not left before, and this is
        // its last access.
        unsafe { Self::leave(core, now) };
        Err(value)
    }

    /// Ends the sender with `how`, and takes out and wakes the wakers (S2).
    ///
    /// If the receiver has closed, returns the word as an error, and the sender has not left the
    /// core.
    ///
    /// # Safety
    /// 1. The sender has not decided, and is used up.
    unsafe fn end(core: NonNull<Core<T>>, mut now: u32, how: u32) -> Result<(), u32> {
        // SAFETY: by our obligation 1 the sender is not out, so the core is alive.
        let this = unsafe { core.as_ref() };
        loop {
            if now & CLOSED != 0 && !weakened!("oneshot_send_sees_closed") {
                return Err(now);
            }
            let kept = if weakened!("oneshot_claims_wakers") { WAKERS } else { 0 };
            let out = if now & WAKERS == 0 { TX_OUT } else { 0 };
            let next = now & !(WAKERS & !kept) | how | out;
            // AcqRel: publishes the value, and sees the receiver's waker. Pairs with the Acquire
            // loads of the receiver and the Release in `register`. Acquire on failure: we may
            // read what the receiver left.
            match this.word.compare_exchange(now, next, AcqRel, Acquire) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if now & WAKERS != 0 {
            // SAFETY: 1. of `wakers`: the exchange cleared the bits.
            let (theirs, ours) = unsafe { this.wakers(now) };
            // SAFETY: 1. of `leave`: the exchange did not set TX_OUT, and this is the last
            // access.
            unsafe { Self::leave(core, now) };
            if let Some(waker) = theirs {
                waker.wake();
            }
            drop(ours);
        }
        Ok(())
    }

    /// Leaves the core: the sender does not access it any more. The last half frees it.
    ///
    /// # Safety
    /// 1. The sender has not left before, and does not access the core after this call.
    #[inline]
    unsafe fn leave(core: NonNull<Core<T>>, now: u32) {
        if !H::FREED_BY_LAST {
            return;
        }
        // Release: the receiver may free what we have used. Acquire: we may free what it has
        // used. The exchanges of both halves pair with each other, and with the Acquire loads
        // that `now` comes from.
        // SAFETY: by our obligation 1 the sender is not out, so the core is alive.
        let last = now & RX_OUT != 0
            || unsafe { core.as_ref() }.word.fetch_or(TX_OUT, AcqRel) & RX_OUT != 0;
        if last {
            // SAFETY: 1. of `free`: a core that is freed by its last half came from a box. 2.
            // Both halves are out.
            unsafe { free(core) };
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: we see what the receiver did before it closed. Pairs with the Release of its
        // exchange in `Rx::end_undecided`.
        self.core().word.load(Acquire) & CLOSED != 0
    }

    /// Polls for the close of the receiver (S4).
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::poll_proceed(cx));
        let core = self.core();
        // Acquire: we see what the receiver did before it closed, as in `is_closed`.
        let now = core.word.load(Acquire);
        if now & CLOSED == 0 && core.register(Side::SENDER, now, cx.waker()).is_ok() {
            thread_context::waits_for(WaitReason::Close);
            return Poll::Pending;
        }
        unit.spend();
        Poll::Ready(())
    }
}

impl<T, H: Storage> Drop for Tx<T, H> {
    #[inline]
    fn drop(&mut self) {
        // Release: a receiver that finds the sender gone sees what we did, and may free the
        // core. Pairs with its Acquire loads. Acquire on failure: we read what the receiver
        // left.
        let end = self.core().word.compare_exchange(EMPTY, DONE | TX_OUT, Release, Acquire);
        let Err(now) = end else { return };
        // SAFETY: 1. of `end` and `leave`: the exchange failed, so the sender has neither
        // decided nor left, and it is being dropped.
        unsafe {
            if let Err(now) = Self::end(self.core, now, DONE) {
                Self::leave(self.core, now);
            }
        }
    }
}

/// The receiving half; without a core once it has completed.
pub(super) struct Rx<T, H: Storage> {
    core: Option<NonNull<Core<T>>>,
    storage: PhantomData<H>,
}

// SAFETY: the half is a reference to a `Core<T>` that moves a `T` out.
unsafe impl<T: Send, H: Storage> Send for Rx<T, H> {}
// SAFETY: a shared `Rx` only reads the word of a `Core<T>`.
unsafe impl<T: Send, H: Storage> Sync for Rx<T, H> {}

impl<T, H: Storage> Rx<T, H> {
    /// Creates the receiving half of a core.
    ///
    /// # Safety
    /// The obligations are those of [`Tx::new`].
    #[inline]
    unsafe fn new(core: NonNull<Core<T>>) -> Self {
        Self { core: Some(core), storage: PhantomData }
    }

    #[inline]
    pub(super) fn core(&self) -> Option<&Core<T>> {
        // SAFETY: the core lives until both halves are out, and this one is not while it has the
        // core.
        self.core.map(|core| unsafe { core.as_ref() })
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.core.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        // Acquire: we see what the sender did before it sent. Pairs with its exchange.
        self.core().is_none_or(|core| core.word.load(Acquire) & SENT == 0)
    }

    #[inline]
    pub(super) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(core) = self.core() else { return Err(TryRecvError::Closed) };
        let order = if weakened!("oneshot_recv_acquire") { Relaxed } else { Acquire };
        // Acquire: we take the value, and may free the core. Pairs with the Release of the
        // sender's exchange.
        let now = core.word.load(order);
        if now & ENDED == 0 {
            return Err(TryRecvError::Empty);
        }
        self.take_outcome(now).ok_or(TryRecvError::Closed)
    }

    /// Polls for the value: takes it or registers the waker (R1 or R4).
    #[inline]
    #[track_caller]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let Some(core) = self.core() else { called_after_complete() };
        let unit = ready!(budget::poll_proceed(cx));
        let order = if weakened!("oneshot_recv_acquire") { Relaxed } else { Acquire };
        // Acquire: we take the value, and may free the core, as in `try_recv`.
        let mut now = core.word.load(order);
        if now & ENDED == 0 {
            match core.register(Side::RECEIVER, now, cx.waker()) {
                Ok(()) => {
                    thread_context::waits_for(WaitReason::Message);
                    return Poll::Pending;
                }
                Err(seen) => now = seen,
            }
        }
        unit.spend();
        Poll::Ready(self.take_outcome(now).ok_or(RecvError(())))
    }

    /// Completes the receiver with the value, if any, after a half has ended with the word `now`
    /// (R1).
    #[inline]
    fn take_outcome(&mut self, now: u32) -> Option<T> {
        let core = self.core.take()?;
        // SAFETY: 1. of `value_if`: we are the receiver, and take the value once, because the
        // core is taken out of `self`. The receiver is not out, so the core is alive.
        let value = unsafe { core.as_ref().value_if(now) };
        // SAFETY: 1. of `leave`: the core was taken out of `self`, so the receiver has not left
        // before, and this is its last access.
        unsafe { Self::leave(core, now) };
        value
    }

    /// Closes the channel for the sender (R2).
    pub(super) fn close(&mut self) {
        let Some(core) = self.core else { return };
        // SAFETY: 1. of `end_undecided`: the receiver has the core, so it is not out; without
        // RX_OUT it stays in.
        let _ = unsafe { Self::end_undecided(core, 0) };
    }

    /// Sets CLOSED, and RX_OUT if `out` says so, and wakes a sender that waits for it (R2 and
    /// R3).
    ///
    /// If a half has ended before, returns the word as an error.
    ///
    /// # Safety
    /// 1. The receiver is not out; with RX_OUT it is out after this call, unless that returns an
    ///    error.
    unsafe fn end_undecided(core: NonNull<Core<T>>, out: u32) -> Result<(), u32> {
        // SAFETY: by our obligation 1 the receiver is not out, so the core is alive.
        let this = unsafe { core.as_ref() };
        let ended = if weakened!("oneshot_close_sees_done") { 0 } else { ENDED };
        // Acquire: we may take the value. Pairs with the Release of the sender's exchange.
        let mut now = this.word.load(Acquire);
        loop {
            if now & ended != 0 {
                return Err(now);
            }
            let next = now & !WAKERS | CLOSED | if now & WAKERS == 0 { out } else { 0 };
            // AcqRel: the sender sees what we did before, and we see its waker. Pairs with its
            // Acquire loads and the Release in `register`. Acquire on failure: we may take the
            // value.
            match this.word.compare_exchange(now, next, AcqRel, Acquire) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if now & WAKERS != 0 {
            // SAFETY: 1. of `wakers`: the exchange cleared the bits.
            let (ours, theirs) = unsafe { this.wakers(now) };
            if out != 0 {
                // SAFETY: 1. of `leave`: the exchange did not set RX_OUT, and this is the last
                // access.
                unsafe { Self::leave(core, CLOSED) };
            }
            if let Some(waker) = theirs {
                waker.wake();
            }
            drop(ours);
        }
        Ok(())
    }

    /// Leaves the core after a half ended with the word `now`. The last half frees it.
    ///
    /// # Safety
    /// 1. The receiver has not left before, and does not access the core after this call.
    #[inline]
    unsafe fn leave(core: NonNull<Core<T>>, now: u32) {
        // SAFETY: by our obligation 1 the receiver is not out, so the core is alive.
        let this = unsafe { core.as_ref() };
        if !H::FREED_BY_LAST {
            if now & SENT != 0 && !weakened!("oneshot_taken_is_noted") {
                // Relaxed: the sender is done with a borrowed core, and a reset comes after this,
                // because it takes an exclusive reference.
                this.word.store(now & !SENT, Relaxed);
            }
            return;
        }
        let order = if weakened!("oneshot_out_orders") { Relaxed } else { AcqRel };
        // Release and Acquire: either half may free what the other has used. Pairs with the
        // exchange in `Tx::leave`.
        if now & TX_OUT != 0 || this.word.fetch_or(RX_OUT, order) & TX_OUT != 0 {
            // SAFETY: 1. of `free`: a core that is freed by its last half came from a box. 2.
            // Both halves are out.
            unsafe { free(core) };
        }
    }
}

impl<T, H: Storage> Drop for Rx<T, H> {
    #[inline]
    fn drop(&mut self) {
        let Some(core) = self.core else { return };
        // SAFETY: 1. of `end_undecided`: the receiver has the core, so it is not out, and it is
        // being dropped.
        if let Err(now) = unsafe { Self::end_undecided(core, RX_OUT) } {
            // The value is dropped after the core was left, because that drop may panic.
            drop(self.take_outcome(now));
        }
    }
}

#[cold]
#[track_caller]
fn called_after_complete() -> ! {
    panic!("called after complete: a oneshot receiver returns its value once; keep it")
}
