//! The word of a oneshot channel, its value, and the wakers of its two halves.
//!
//! Both kinds of channel stand on this file: the one whose halves share an allocation
//! ([`Heap`]), and the one whose halves borrow a slot ([`Lent`]).
//!
//! # Protocol
//! The word begins EMPTY. Each half decides once, by one exchange:
//!
//! ```text
//! the sender                               the receiver
//! S1 writes the value                      R1 finds DONE: takes the value, if SENT
//! S2 EMPTY -> DONE SENT TX_OUT             R2 closes: sets CLOSED, unless DONE or CLOSED
//!    (without a value: DONE TX_OUT)        R3 goes: sets CLOSED RX_OUT, unless DONE;
//! S3 finds CLOSED: the value is still         then as R1
//!    its own, and goes back                R4 waits: writes its waker, sets RX_WAKER,
//! S4 waits for CLOSED: writes its waker,      unless DONE
//!    sets TX_WAKER, unless CLOSED
//! ```
//! DONE and CLOSED exclude each other: both are set by an exchange that fails if the
//! other one is there. So whoever sees CLOSED knows that the value never became the
//! receiver's, and whoever sees SENT knows that it is not the sender's any more. There
//! is no moment at which both could reach it.
//!
//! A waker belongs to whoever clears its bit. S2 and R2 and R3 clear both bits; each
//! then takes both wakers out, calls the other half's and drops its own. A half that
//! is polled with another waker clears its own bit first, and sets it again.
//!
//! TX_OUT and RX_OUT say that a half does not touch the core any more. The second one
//! to say so frees the allocation. Whoever finds the other's bit by a mere load frees it
//! without an exchange: send and receive with nobody waiting is one exchange in all.
//! A half that has wakers to take out says so by a second exchange. A lent core is not
//! freed; its halves leave these bits alone after they have decided.
//!
//! # Invariants
//! - The value is there exactly if SENT is set; then it is the receiver's.
//! - RX_WAKER and TX_WAKER are clear once DONE or CLOSED is set.
//! - A slot for a waker is written only by its own half, while its bit is clear. While
//!   the bit is set both halves may read it; the reference that the receiver compares
//!   with may be of a waker that the sender has just moved out, of which it reads two
//!   pointers and nothing behind them.
//! - No user code between two steps: a waker is cloned before its bit is cleared, and
//!   wakers and values are called or dropped after the core was let go.
//!
//! # Rejected
//! - SENT by a plain 'or': a receiver that closed a moment ago and looks again would
//!   take the value that the sender takes back. That was Tokio's RUSTSEC-2021-0124.
//! - Two reference counts beside the word, as an `Arc` has: two exchanges more for each
//!   channel and 16 bytes.
//! - A state in which the sender moves the waker out before it says SENT: the receiver
//!   would have to wait for the sender's next step.
//!
//! # Checked by
//! `a_value_sent_is_received_or_dropped_once`, `send_against_close_and_try_recv_agree`,
//! `send_against_the_drop_of_the_receiver_drops_the_value_once`,
//! `closed_against_the_drop_of_the_receiver_ends`, `closed_against_close_ends`,
//! `a_new_waker_against_send_is_woken`, `a_new_waker_against_the_drop_of_the_sender_is_woken`,
//! `a_new_waker_of_the_sender_against_close_is_woken`,
//! `both_halves_wait_and_both_go`, `a_slot_is_used_twice`, `a_thread_waits_for_a_value`,
//! `every_pair_of_methods_agrees_on_who_has_the_value`; weakened as
//! `oneshot_send_release`, `oneshot_recv_acquire`, `oneshot_send_sees_closed`,
//! `oneshot_close_sees_done`, `oneshot_register_sees_the_end`, `oneshot_claims_wakers`,
//! `oneshot_out_orders`, `oneshot_renews_the_waker`, `oneshot_taken_is_noted`.

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
        current,
        task::{budget, moment::Wait},
    },
};

/// Nobody has decided, nobody waits.
const EMPTY: u32 = 0;
/// The sender has sent, or gone.
const DONE: u32 = 1;
/// There is a value; only with DONE.
const SENT: u32 = 1 << 1;
/// The receiver wants none; never with DONE.
const CLOSED: u32 = 1 << 2;
/// The receiver waits.
const RX_WAKER: u32 = 1 << 3;
/// The sender waits for CLOSED.
const TX_WAKER: u32 = 1 << 4;
/// The sender does not touch the core any more.
const TX_OUT: u32 = 1 << 5;
/// The receiver does not touch the core any more.
const RX_OUT: u32 = 1 << 6;

/// One of them is set once a half has decided.
const ENDED: u32 = DONE | CLOSED;
const WAKERS: u32 = RX_WAKER | TX_WAKER;

/// What the two halves share.
pub(super) struct Core<T> {
    word: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
    rx_waker: UnsafeCell<MaybeUninit<Waker>>,
    tx_waker: UnsafeCell<MaybeUninit<Waker>>,
}

// SAFETY: the value and the wakers have one owner at a time (the invariants), and what
// is in them may move between threads. A shared reference gives no access to a `&T`.
unsafe impl<T: Send> Send for Core<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Core<T> {}

/// Where a core is, and so who ends it.
pub(super) trait Home {
    /// The last half that goes frees it.
    const FREED_BY_LAST: bool;
}

/// In an allocation of the two halves.
#[derive(Debug)]
pub(super) enum Heap {}

/// In a slot that the two halves borrow.
#[derive(Debug)]
pub(super) enum Lent {}

impl Home for Heap {
    const FREED_BY_LAST: bool = true;
}

impl Home for Lent {
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

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU32::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            rx_waker: UnsafeCell::new(MaybeUninit::uninit()),
            tx_waker: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Two halves in an allocation of their own.
    #[inline]
    pub(super) fn on_heap() -> (Tx<T, Heap>, Rx<T, Heap>) {
        let core = NonNull::from(Box::leak(Box::new(Self::new())));
        // SAFETY: 1. it is new, and has one half of each kind. 2. The halves keep it.
        // 3. It is a box's.
        unsafe { (Tx::new(core), Rx::new(core)) }
    }

    /// Two halves that borrow it, as if it were new.
    #[inline]
    pub(super) fn lend(&mut self) -> (Tx<T, Lent>, Rx<T, Lent>) {
        self.reset();
        let core = NonNull::from(self);
        // SAFETY: 1. it is as new, and what halves it had are gone or forgotten: we have
        // it alone. 2. Callers see to it by a lifetime. 3. `Lent` frees nothing.
        unsafe { (Tx::new(core), Rx::new(core)) }
    }

    /// Drops what forgotten halves have left.
    #[inline]
    pub(super) fn reset(&mut self) {
        // Relaxed, here and below: it is ours alone.
        let now = self.word.load(Relaxed);
        if now != EMPTY {
            self.word.store(EMPTY, Relaxed);
            // SAFETY: 1. the bits said what is there; they are clear now, so it is taken
            // once.
            drop(unsafe { (self.wakers(now), self.value_if(now)) });
        }
    }

    /// The wakers of which `now` has the bits: the receiver's, the sender's.
    ///
    /// # Safety
    /// 1. The caller has cleared those bits.
    #[inline]
    unsafe fn wakers(&self, now: u32) -> (Option<Waker>, Option<Waker>) {
        // SAFETY: 1.: a set bit means that it is there, and who clears it owns it.
        unsafe {
            let rx = (now & RX_WAKER != 0).then(|| Side::RECEIVER.take(self));
            let tx = (now & TX_WAKER != 0).then(|| Side::SENDER.take(self));
            (rx, tx)
        }
    }

    /// The value, if `now` says SENT.
    ///
    /// # Safety
    /// 1. The caller is the receiver, or alone; it takes the value once.
    #[inline]
    unsafe fn value_if(&self, now: u32) -> Option<T> {
        // SAFETY: 1. of `take_value`: SENT says that it is there; 1. that it is ours.
        (now & SENT != 0).then(|| unsafe { self.take_value() })
    }

    /// # Safety
    /// 1. The value is there, and the caller's.
    #[inline]
    unsafe fn take_value(&self) -> T {
        // SAFETY: 1.
        self.value.with_mut(|value| unsafe { (*value).assume_init_read() })
    }

    /// Leaves a waker for the other half; the answer is the word if a half has ended by
    /// now, and then no waker is left.
    fn register(&self, side: Side, mut now: u32, waker: &Waker) -> Result<(), u32> {
        if now & side.bit != 0 {
            // SAFETY: 1. the bit was set by us, so it was written by us.
            let same = unsafe { side.would_wake(self, waker) };
            if same || weakened!("oneshot_renews_the_waker") {
                return Ok(());
            }
        }
        // A user's code, and so before the bit is cleared.
        let waker = waker.clone();
        let mut stale = None;
        let ended = if weakened!("oneshot_register_sees_the_end") { 0 } else { ENDED };
        while now & side.bit != 0 {
            // Acquire: if the other half has ended, we read what it left. Pairs with the
            // Release of its exchange. It needs no Release: the waker was written by us.
            match self.word.compare_exchange(now, now & !side.bit, Acquire, Acquire) {
                Ok(_) => {
                    // SAFETY: 1. the exchange cleared the bit.
                    stale = Some(unsafe { side.take(self) });
                    now &= !side.bit;
                }
                Err(seen) if seen & ENDED != 0 => return Err(seen),
                Err(seen) => now = seen,
            }
        }
        // SAFETY: 1. our bit is clear, and only we set it.
        unsafe { side.put(self, waker) };
        loop {
            if now & ended != 0 {
                // SAFETY: 1. the bit is still clear.
                drop((unsafe { side.take(self) }, stale));
                return Err(now);
            }
            // Release: publishes the waker. Pairs with the Acquire of the exchange that
            // clears the bit, in `Tx::end` and `Rx::end_undecided`. Acquire on failure: as
            // above.
            match self.word.compare_exchange(now, now | side.bit, Release, Acquire) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }
}

impl<T> fmt::Debug for Core<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a look.
        let now = self.word.load(Relaxed);
        f.debug_struct("State")
            .field("is_complete", &(now & DONE != 0))
            .field("is_closed", &(now & CLOSED != 0))
            .field("is_rx_task_set", &(now & RX_WAKER != 0))
            .field("is_tx_task_set", &(now & TX_WAKER != 0))
            .finish()
    }
}

/// A half's waker: its bit and its place.
#[derive(Clone, Copy)]
struct Side {
    bit: u32,
}

impl Side {
    const RECEIVER: Self = Self { bit: RX_WAKER };
    const SENDER: Self = Self { bit: TX_WAKER };

    #[inline]
    fn place<T>(self, core: &Core<T>) -> &UnsafeCell<MaybeUninit<Waker>> {
        if self.bit == RX_WAKER { &core.rx_waker } else { &core.tx_waker }
    }

    /// # Safety
    /// 1. The caller is that half, and its bit is clear.
    unsafe fn put<T>(self, core: &Core<T>, waker: Waker) {
        // SAFETY: 1.: nobody else reads or writes it.
        self.place(core).with_mut(|place| unsafe { (*place).write(waker) });
    }

    /// # Safety
    /// 1. A waker is there, and the caller's: it cleared the bit, or put it there.
    unsafe fn take<T>(self, core: &Core<T>) -> Waker {
        // SAFETY: 1. It is a read, since the half itself may be comparing.
        self.place(core).with(|place| unsafe { (*place).assume_init_read() })
    }

    /// # Safety
    /// 1. The caller is that half and has put a waker there.
    unsafe fn would_wake<T>(self, core: &Core<T>, waker: &Waker) -> bool {
        // SAFETY: 1. It compares two pointers: the other half may have moved the waker
        // out, and nothing of it is followed.
        self.place(core).with(|place| unsafe { (*place).assume_init_ref() }.will_wake(waker))
    }
}

/// # Safety
/// 1. The core is a box's. 2. Both halves are out of it, and we see what they did.
#[inline]
unsafe fn free<T>(core: NonNull<Core<T>>) {
    #[cfg(blitz_loom)]
    // SAFETY: 1. and 2. To free is to write: the model checker would not know.
    unsafe {
        core.as_ref().value.with_mut(|_| ());
        core.as_ref().rx_waker.with_mut(|_| ());
        core.as_ref().tx_waker.with_mut(|_| ());
    }
    // SAFETY: 1. and 2. What is in it was taken before: it is all `MaybeUninit`.
    drop(unsafe { Box::from_raw(core.as_ptr()) });
}

/// The half that sends.
pub(super) struct Tx<T, H: Home> {
    core: NonNull<Core<T>>,
    home: PhantomData<H>,
}

// SAFETY: it is a reference to a `Core<T>`, and `T` may come out at the other end.
unsafe impl<T: Send, H: Home> Send for Tx<T, H> {}
// SAFETY: as above; a shared one only looks at the word.
unsafe impl<T: Send, H: Home> Sync for Tx<T, H> {}

impl<T, H: Home> Tx<T, H> {
    /// # Safety
    /// 1. The core is EMPTY and has no other half of this kind.
    /// 2. It lives until both halves are out.
    /// 3. It is a box's, if the last one frees it.
    #[inline]
    unsafe fn new(core: NonNull<Core<T>>) -> Self {
        Self { core, home: PhantomData }
    }

    #[inline]
    pub(super) fn core(&self) -> &Core<T> {
        // SAFETY: the core lives as long as we are not out.
        unsafe { self.core.as_ref() }
    }

    /// S1 to S3.
    #[inline]
    pub(super) fn send(self, value: T) -> Result<(), T> {
        // Its drop would decide a second time.
        let core = ManuallyDrop::new(self).core;
        // SAFETY: it lives until we are out; the reference is not used after that.
        let this = unsafe { core.as_ref() };
        // SAFETY: SENT is clear: the place is the sender's.
        this.value.with_mut(|place| unsafe { (*place).write(value) });
        let order = if weakened!("oneshot_send_release") { Relaxed } else { Release };
        // Release: publishes the value. Pairs with the Acquire loads of the receiver.
        // Acquire on failure: we read what the receiver left.
        match this.word.compare_exchange(EMPTY, DONE | SENT | TX_OUT, order, Acquire) {
            Ok(_) => Ok(()),
            // SAFETY: 1. the exchange failed. 2. It is above.
            Err(now) => unsafe { Self::send_to_waiting(core, now) },
        }
    }

    /// The rest of `send` if the word was not EMPTY.
    ///
    /// # Safety
    /// 1. The sender has not decided, and is used up. 2. It has written the value.
    #[cold]
    unsafe fn send_to_waiting(core: NonNull<Core<T>>, now: u32) -> Result<(), T> {
        // SAFETY: 1. of `end`: 1.
        let Err(now) = (unsafe { Self::end(core, now, DONE | SENT) }) else { return Ok(()) };
        // SAFETY: CLOSED is set: the value did not become the receiver's, and is there by
        // 2. We are not out.
        let value = unsafe { core.as_ref().take_value() };
        // SAFETY: 1. by 1.; this is the last use.
        unsafe { Self::leave(core, now) };
        Err(value)
    }

    /// S2, with wakers to take out. If the receiver does not want anything the answer is
    /// the word, and the core is not left.
    ///
    /// # Safety
    /// 1. The sender has not decided, and is used up.
    unsafe fn end(core: NonNull<Core<T>>, mut now: u32, how: u32) -> Result<(), u32> {
        // SAFETY: by 1. we are not out.
        let this = unsafe { core.as_ref() };
        loop {
            if now & CLOSED != 0 && !weakened!("oneshot_send_sees_closed") {
                return Err(now);
            }
            let kept = if weakened!("oneshot_claims_wakers") { WAKERS } else { 0 };
            let out = if now & WAKERS == 0 { TX_OUT } else { 0 };
            let next = now & !(WAKERS & !kept) | how | out;
            // AcqRel: publishes the value, and sees the receiver's waker. Pairs with the
            // Acquire loads of the receiver and the Release in `register`. Acquire on
            // failure: we may read what the receiver left.
            match this.word.compare_exchange(now, next, AcqRel, Acquire) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if now & WAKERS != 0 {
            // SAFETY: 1. the exchange cleared the bits.
            let (theirs, ours) = unsafe { this.wakers(now) };
            // SAFETY: 1. we have not said that we are out; this is the last use.
            unsafe { Self::leave(core, now) };
            if let Some(waker) = theirs {
                waker.wake();
            }
            drop(ours);
        }
        Ok(())
    }

    /// The sender does not touch the core any more.
    ///
    /// # Safety
    /// 1. It has not said so before, and does not from here on.
    #[inline]
    unsafe fn leave(core: NonNull<Core<T>>, now: u32) {
        if !H::FREED_BY_LAST {
            return;
        }
        // Release: the receiver may free what we have used. Acquire: we may free what it
        // has used. Each side's pairs with the other's, and with the Acquire loads that
        // `now` is from.
        // SAFETY: by 1. it lives.
        let last = now & RX_OUT != 0
            || unsafe { core.as_ref() }.word.fetch_or(TX_OUT, AcqRel) & RX_OUT != 0;
        if last {
            // SAFETY: 1. a core that the last one frees is a box's. 2. Both are out.
            unsafe { free(core) };
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: what the receiver did before it closed has happened. Pairs with the
        // Release of its exchange in `Rx::end_undecided`.
        self.core().word.load(Acquire) & CLOSED != 0
    }

    /// S4.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::proceed(cx));
        let core = self.core();
        // Acquire: as in `is_closed`.
        let now = core.word.load(Acquire);
        if now & CLOSED == 0 && core.register(Side::SENDER, now, cx.waker()).is_ok() {
            current::waits_for(Wait::Close);
            return Poll::Pending;
        }
        unit.spend();
        Poll::Ready(())
    }
}

impl<T, H: Home> Drop for Tx<T, H> {
    #[inline]
    fn drop(&mut self) {
        // Release: what we did has happened for a receiver that finds us gone, and it may
        // free the core. Pairs with its Acquire loads. Acquire on failure: as in `send`.
        let end = self.core().word.compare_exchange(EMPTY, DONE | TX_OUT, Release, Acquire);
        let Err(now) = end else { return };
        // SAFETY: 1. of both: the exchange failed, and this is the end of the sender.
        unsafe {
            if let Err(now) = Self::end(self.core, now, DONE) {
                Self::leave(self.core, now);
            }
        }
    }
}

/// The half that receives; without a core once it has answered.
pub(super) struct Rx<T, H: Home> {
    core: Option<NonNull<Core<T>>>,
    home: PhantomData<H>,
}

// SAFETY: it is a reference to a `Core<T>` that moves a `T` out.
unsafe impl<T: Send, H: Home> Send for Rx<T, H> {}
// SAFETY: as above; a shared one only looks at the word.
unsafe impl<T: Send, H: Home> Sync for Rx<T, H> {}

impl<T, H: Home> Rx<T, H> {
    /// # Safety
    /// As [`Tx::new`].
    #[inline]
    unsafe fn new(core: NonNull<Core<T>>) -> Self {
        Self { core: Some(core), home: PhantomData }
    }

    #[inline]
    pub(super) fn core(&self) -> Option<&Core<T>> {
        // SAFETY: the core lives as long as we have it.
        self.core.map(|core| unsafe { core.as_ref() })
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.core.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        // Acquire: what the sender did before has happened. Pairs with its exchange.
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
        self.answer(now).ok_or(TryRecvError::Closed)
    }

    /// R1 or R4.
    #[inline]
    #[track_caller]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let Some(core) = self.core() else { called_after_complete() };
        let unit = ready!(budget::proceed(cx));
        let order = if weakened!("oneshot_recv_acquire") { Relaxed } else { Acquire };
        // Acquire: as in `try_recv`.
        let mut now = core.word.load(order);
        if now & ENDED == 0 {
            match core.register(Side::RECEIVER, now, cx.waker()) {
                Ok(()) => {
                    current::waits_for(Wait::Message);
                    return Poll::Pending;
                }
                Err(seen) => now = seen,
            }
        }
        unit.spend();
        Poll::Ready(self.answer(now).ok_or(RecvError(())))
    }

    /// R1: a half has ended, as `now` says, and the receiver does too.
    #[inline]
    fn answer(&mut self, now: u32) -> Option<T> {
        let core = self.core.take()?;
        // SAFETY: 1. the sender has ended, and we take it once: the core is taken.
        // We are not out.
        let value = unsafe { core.as_ref().value_if(now) };
        // SAFETY: 1. the core was taken; this is the last use.
        unsafe { Self::leave(core, now) };
        value
    }

    /// R2.
    pub(super) fn close(&mut self) {
        let Some(core) = self.core else { return };
        // SAFETY: 1. it lives. The receiver stays in.
        let _ = unsafe { Self::end_undecided(core, 0) };
    }

    /// R2 and R3: sets CLOSED, with or without RX_OUT, and wakes a sender that waits for
    /// it. If a half has ended before, the answer is the word.
    ///
    /// # Safety
    /// 1. The receiver is not out; with RX_OUT it is, from here on, unless it is refused.
    unsafe fn end_undecided(core: NonNull<Core<T>>, out: u32) -> Result<(), u32> {
        // SAFETY: by 1.
        let this = unsafe { core.as_ref() };
        let ended = if weakened!("oneshot_close_sees_done") { 0 } else { ENDED };
        // Acquire: we may take the value. Pairs with the Release of the sender's exchange.
        let mut now = this.word.load(Acquire);
        loop {
            if now & ended != 0 {
                return Err(now);
            }
            let next = now & !WAKERS | CLOSED | if now & WAKERS == 0 { out } else { 0 };
            // AcqRel: the sender learns what we did before, and we see its waker. Pairs
            // with its Acquire loads and the Release in `register`. Acquire on failure:
            // as above.
            match this.word.compare_exchange(now, next, AcqRel, Acquire) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if now & WAKERS != 0 {
            // SAFETY: 1. the exchange cleared the bits.
            let (ours, theirs) = unsafe { this.wakers(now) };
            if out != 0 {
                // SAFETY: 1. we have not said that we are out; this is the last use.
                unsafe { Self::leave(core, CLOSED) };
            }
            if let Some(waker) = theirs {
                waker.wake();
            }
            drop(ours);
        }
        Ok(())
    }

    /// The receiver does not touch the core any more; a half ended as `now` says.
    ///
    /// # Safety
    /// 1. It has not said so before, and does not from here on.
    #[inline]
    unsafe fn leave(core: NonNull<Core<T>>, now: u32) {
        // SAFETY: by 1. it lives.
        let this = unsafe { core.as_ref() };
        if !H::FREED_BY_LAST {
            if now & SENT != 0 && !weakened!("oneshot_taken_is_noted") {
                // Relaxed: the sender is done with a lent core, and whoever resets it
                // comes after us.
                this.word.store(now & !SENT, Relaxed);
            }
            return;
        }
        let order = if weakened!("oneshot_out_orders") { Relaxed } else { AcqRel };
        // Release and Acquire: as in `Tx::leave`, with which it pairs.
        if now & TX_OUT != 0 || this.word.fetch_or(RX_OUT, order) & TX_OUT != 0 {
            // SAFETY: 1. a core that the last one frees is a box's. 2. Both are out.
            unsafe { free(core) };
        }
    }
}

impl<T, H: Home> Drop for Rx<T, H> {
    #[inline]
    fn drop(&mut self) {
        let Some(core) = self.core else { return };
        // SAFETY: 1. it lives, and this is the end of the receiver.
        if let Err(now) = unsafe { Self::end_undecided(core, RX_OUT) } {
            // The value is dropped after the core was left: its drop may panic.
            drop(self.answer(now));
        }
    }
}

#[cold]
#[track_caller]
fn called_after_complete() -> ! {
    panic!("called after complete: a oneshot receiver answers once; keep its answer")
}
