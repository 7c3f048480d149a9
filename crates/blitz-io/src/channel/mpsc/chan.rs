//! What a bounded and an unbounded channel have in common: handles, the receiver, the end.
//!
//! A channel is one block of memory: this header, and behind it the slots, if it is a
//! ring. The receiver's own place (the cursor) is in the receiver.
//!
//! # Protocol
//! *Memory.* `handles` has a bit for the receiver, a bit for all senders together, and
//! counts the weak senders above. Who clears or takes away the last of these frees the
//! channel. So to clone or drop a sender is one exchange, on `senders`.
//!
//! *The receiver waits.*
//! ```text
//! R1 the slot of the next message is ready: takes it, done
//! R2 lends its waker
//! R3 marks the slot AWAITED; found READY instead: as R1
//! R4 looks whether the channel is over: closed, and nothing can come any more
//! R5 looks whether there are senders; none: looks at the slot a last time
//! ```
//! What happens after R3 wakes it: a message (see `slot.rs`), the last permit of a closed
//! channel (see `room.rs`), and the drop of the last sender. After the last two nobody
//! sends any more. So the receiver waits, if it does, for the slot at the tail, and whoever
//! did it exchanges that slot (E2) after it (E1).
//!
//! One of E2 and R3 comes first in the order of the slot. If R3, E2 finds AWAITED, and
//! wakes. If E2, R3 sees E1, unless the receiver stored EMPTY in between, for a message
//! that was in that slot: the ring was full. Therefore E1 ends with an exchange of the
//! room's word, and the receiver exchanges that word after its messages and before R2. If
//! that exchange comes first, E2 sees the slot emptied, and nothing is in between; if E1,
//! the receiver sees it by that. (Where the receiver hands its room over to one in line, or
//! somebody else has collected it, and so exchanges nothing, the lock of the line does
//! the same.) Blocks have a fresh slot at the tail.
//!
//! R5: a sender puts its messages before it is dropped, with Release; who sees zero
//! senders, with Acquire, sees all messages. From zero no sender comes back: a weak one
//! adds only to what is not zero.
//!
//! *Who waits for the close* looks again under the lock of its line. The closer closes
//! first and takes that lock then: it dismisses who joined before, and is seen by
//! who comes after.
//!
//! *The receiver leaves*: it closes, seals, and takes what is left. A position that was
//! claimed but not put yet will be in a few instructions: it waits for these. So every
//! message is dropped by the receiver, or refused to its sender and dropped there, and no
//! message is left in a channel without a receiver.
//!
//! # Invariants
//! - No user code between the claim of a position and the put, nor under a lock.
//! - A message is the receiver's once it is taken; its slot and its permit are given back
//!   before any of its code runs. So its drop may panic, or use the channel.
//!
//! # Rejected
//! - `Arc`, and counts beside it: two more words, and two exchanges for each clone.
//! - Leaving what was sent too late to the one who frees the channel, as Tokio does: a
//!   message with a way to answer in it would keep its own sender waiting for ever.
//! - To sleep in `try_recv` until a message that was claimed is put: it is a copy and an
//!   exchange away, and only a thread that lost its core there makes anybody wait.
//!
//! # Checked by
//! `the_last_sender_dropped_against_a_recv_ends_it`,
//! `the_receiver_dropped_against_a_send_drops_the_value_once`,
//! `upgrade_against_the_drop_of_the_last_sender`, `close_against_send_against_recv`,
//! `closed_against_close_is_never_left_waiting`,
//! `handles_dropped_at_once_free_the_channel_once`; weakened as `chan_last_sender_wakes`,
//! `chan_end_looks_again`, `chan_upgrade_from_zero`, `chan_closed_looks_again`,
//! `chan_leave_waits`, `chan_senders_release`, `chan_wait_settles`.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    future::Future,
    marker::PhantomData,
    ops::Deref,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, ready},
};

use super::{blocks::Cursor, error::TryRecvError, sleeper::Sleeper, slot::Slot};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
        backoff::Backoff,
        bolt::Bolted,
        discard, weakened,
    },
    wait::{
        batch::{Batch, wake_each},
        keep::keep_waker,
        line::{Line, Place, Waiter},
    },
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

/// A queue of messages, of one kind or the other.
///
/// # Safety
/// 1. `slot` and `advance` go through the slots in the order of their positions.
/// 2. A position that was claimed is put without waiting for anybody.
/// 3. After `seal` no position is claimed.
pub(super) unsafe trait Queue<T> {
    /// The slots behind the header: where, and how many.
    fn ring(&self) -> (NonNull<Slot<T>>, usize);

    /// The slot of the next message.
    ///
    /// # Safety
    /// 1. The cursor was made with this queue, and the receiver has not left.
    unsafe fn slot(&self, cursor: &Cursor<T>) -> &Slot<T>;

    /// On to the next slot.
    ///
    /// # Safety
    /// 1. As `slot`. 2. The message at the cursor was taken.
    unsafe fn advance(&self, cursor: &mut Cursor<T>);

    /// So many messages were taken, and their slots are empty.
    fn give_back(&self, count: usize);

    /// The receiver is about to wait: what it has given back must be told.
    fn settle(&self);

    /// How many positions were claimed and not taken.
    fn len(&self, cursor: &Cursor<T>) -> usize;

    /// Closed, nothing is queued, and nobody may send any more.
    fn is_over(&self, cursor: &Cursor<T>) -> bool;

    fn is_closed(&self) -> bool;

    /// Refuses those who want to send from now on.
    fn close(&self);

    /// Refuses also those who were allowed to before.
    fn seal(&self);

    /// The slot of the next position that would be claimed, after an exchange that orders
    /// the caller among the give-backs of the receiver.
    ///
    /// # Safety
    /// 1. Nobody is sending, and nobody will.
    unsafe fn tail_slot(&self) -> &Slot<T>;

    /// Who waits for messages.
    fn receiver(&self) -> &Sleeper;
}

/// Wakes the receiver if it waits: no message will do that any more.
///
/// # Safety
/// 1. Nobody is sending, and nobody will.
#[cold]
pub(super) unsafe fn rouse<T, Q: Queue<T>>(queue: &Q) {
    // A batch, since this happens in drops, where a waker must not panic.
    let mut batch = Batch::new();
    // SAFETY: 1. by 1. 1. of `take`: `rouse` took AWAITED off.
    unsafe {
        if queue.tail_slot().rouse() {
            queue.receiver().take().into_iter().for_each(|waker| batch.push(waker));
        }
    }
    batch.wake_all();
}

const SENDERS: usize = 1;
const RECEIVER: usize = 1 << 1;
const WEAK: usize = 1 << 2;

/// See the module.
///
/// It begins on a cache line of its own, with what senders exchange for each message.
#[repr(C, align(64))]
pub(super) struct Chan<Q> {
    pub(super) queue: Q,
    senders: AtomicUsize,
    handles: AtomicUsize,
    closing: Bolted<Line<()>>,
}

impl<Q> Chan<Q> {
    /// The memory of a channel with so many slots, and where these begin.
    ///
    /// # Panics
    /// If there is not so much memory in the world.
    pub(super) fn layout<T>(slots: usize) -> (Layout, usize) {
        let slots = Layout::array::<Slot<T>>(slots);
        let whole = slots.and_then(|slots| Layout::new::<Self>().extend(slots));
        let (whole, at) = whole.expect("the slots of a ring are few");
        (whole.pad_to_align(), at)
    }

    /// A channel with one sender. `make` is told where the slots are.
    pub(super) fn create<T>(
        slots: usize,
        make: impl FnOnce(NonNull<Slot<T>>) -> (Q, Cursor<T>),
    ) -> (Strong<T, Q>, Owner<T, Q>)
    where
        Q: Queue<T>,
    {
        let (layout, at) = Self::layout::<T>(slots);
        // SAFETY: the layout is not empty: it has the header.
        let Some(memory) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        let chan = memory.cast::<Self>();
        // SAFETY: the layout has room for so many slots there, aligned, and nobody else
        // knows the memory.
        let first = unsafe {
            let first = memory.add(at).cast::<Slot<T>>();
            (0..slots).for_each(|index| first.add(index).write(Slot::new()));
            first
        };
        let (queue, cursor) = make(first);
        debug_assert_eq!(queue.ring().1, slots, "what is allocated is freed");
        // SAFETY: as above, for the header.
        unsafe {
            chan.write(Self {
                queue,
                senders: AtomicUsize::new(1),
                handles: AtomicUsize::new(SENDERS | RECEIVER),
                closing: Bolted::new(Line::new()),
            });
        }
        (Strong { chan, _messages: PhantomData }, Owner { chan, cursor, awaited: None })
    }

    /// Gives up a part of `handles`, and the memory with the last.
    ///
    /// # Safety
    /// 1. The part is the caller's, and it does not use the channel after this.
    #[inline]
    unsafe fn let_go<T>(chan: NonNull<Self>, part: usize)
    where
        Q: Queue<T>,
    {
        // AcqRel: what everybody did with the channel happens before it is freed. Pairs
        // with itself.
        // SAFETY: 1.: it lives.
        if unsafe { chan.as_ref() }.handles.fetch_sub(part, AcqRel) == part {
            // SAFETY: 1. that was the last part.
            unsafe { Self::free(chan) };
        }
    }

    /// # Safety
    /// 1. Nobody else has the channel.
    #[cold]
    unsafe fn free<T>(chan: NonNull<Self>)
    where
        Q: Queue<T>,
    {
        // SAFETY: 1.: everything in it was written by `create` and is dropped once;
        // the layout is the same. Slots have no messages: the receiver took them when it
        // left, and nobody puts any behind it.
        unsafe {
            let (slots, count) = chan.as_ref().queue.ring();
            (0..count).for_each(|index| slots.add(index).drop_in_place());
            chan.drop_in_place();
            dealloc(chan.cast().as_ptr(), Self::layout::<T>(count).0);
        }
    }

    /// Closes, and tells those who wait for that.
    #[cold]
    fn close<T>(&self)
    where
        Q: Queue<T>,
    {
        self.queue.close();
        let lock = || self.closing.lock();
        wake_each(lock(), lock, |line| {
            line.first()?;
            Some(line.dismiss_first())
        });
    }

    pub(super) fn strong_count(&self) -> usize {
        // Acquire: who sees no sender sees what they sent. Pairs with the drop of `Strong`.
        self.senders.load(Acquire)
    }

    pub(super) fn weak_count(&self) -> usize {
        // Relaxed: a look.
        self.handles.load(Relaxed) / WEAK
    }

    /// Of the word that counts who has it.
    #[cfg(all(test, not(blitz_loom)))]
    pub(super) fn handles(&self) -> usize {
        self.handles.load(Relaxed)
    }

    /// One weak sender more.
    fn count_weak(&self) {
        // Relaxed: who counts has a part of it already.
        if self.handles.fetch_add(WEAK, Relaxed) > usize::MAX / 2 {
            // Only handles that were forgotten can be so many.
            std::process::abort();
        }
    }

    /// Waits until the receiver closes or leaves.
    pub(super) fn closed<T>(&self) -> WhenClosed<'_, T, Q> {
        WhenClosed { chan: self, waiter: Waiter::new(()), _messages: PhantomData }
    }
}

/// One of the senders.
pub(super) struct Strong<T, Q: Queue<T>> {
    chan: NonNull<Chan<Q>>,
    _messages: PhantomData<fn(T) -> T>,
}

/// Knows a channel without being one of its senders.
pub(super) struct Weak<T, Q: Queue<T>> {
    chan: NonNull<Chan<Q>>,
    _messages: PhantomData<fn(T) -> T>,
}

/// The receiver.
pub(super) struct Owner<T, Q: Queue<T>> {
    chan: NonNull<Chan<Q>>,
    cursor: Cursor<T>,
    /// The position at which it asked to be woken last. The waker is lent since.
    awaited: Option<u64>,
}

// SAFETY: a channel moves messages between threads, and gives out no reference to
// one. The cursor is used with an exclusive reference to the owner, or only looked at.
unsafe impl<T: Send, Q: Queue<T>> Send for Strong<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q: Queue<T>> Sync for Strong<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q: Queue<T>> Send for Weak<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q: Queue<T>> Sync for Weak<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q: Queue<T>> Send for Owner<T, Q> {}
// SAFETY: as above.
unsafe impl<T: Send, Q: Queue<T>> Sync for Owner<T, Q> {}

// A channel has no state that a panic in the middle of the user's code could break.
impl<T, Q: Queue<T>> UnwindSafe for Strong<T, Q> {}
impl<T, Q: Queue<T>> RefUnwindSafe for Strong<T, Q> {}
impl<T, Q: Queue<T>> UnwindSafe for Weak<T, Q> {}
impl<T, Q: Queue<T>> RefUnwindSafe for Weak<T, Q> {}
impl<T, Q: Queue<T>> UnwindSafe for Owner<T, Q> {}
impl<T, Q: Queue<T>> RefUnwindSafe for Owner<T, Q> {}

impl<T, Q: Queue<T>> Deref for Strong<T, Q> {
    type Target = Chan<Q>;

    #[inline]
    fn deref(&self) -> &Chan<Q> {
        // SAFETY: it lives as long as one of its senders.
        unsafe { self.chan.as_ref() }
    }
}

impl<T, Q: Queue<T>> Deref for Weak<T, Q> {
    type Target = Chan<Q>;

    #[inline]
    fn deref(&self) -> &Chan<Q> {
        // SAFETY: it lives as long as one who knows it.
        unsafe { self.chan.as_ref() }
    }
}

impl<T, Q: Queue<T>> Deref for Owner<T, Q> {
    type Target = Chan<Q>;

    #[inline]
    fn deref(&self) -> &Chan<Q> {
        // SAFETY: it lives as long as its receiver.
        unsafe { self.chan.as_ref() }
    }
}

impl<T, Q: Queue<T>> Strong<T, Q> {
    pub(super) fn same_channel(&self, other: &Self) -> bool {
        self.chan == other.chan
    }

    pub(super) fn downgrade(&self) -> Weak<T, Q> {
        self.count_weak();
        Weak { chan: self.chan, _messages: PhantomData }
    }

    /// There are no senders any more.
    #[cold]
    fn end(&self) {
        if weakened!("chan_last_sender_wakes") {
            return;
        }
        // SAFETY: 1. nobody can send without a sender.
        unsafe { rouse(&self.queue) };
    }
}

impl<T, Q: Queue<T>> Clone for Strong<T, Q> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: it cannot become zero meanwhile, since we are one.
        if self.senders.fetch_add(1, Relaxed) > usize::MAX / 2 {
            // Only senders that were forgotten can be so many.
            std::process::abort();
        }
        Self { chan: self.chan, _messages: PhantomData }
    }
}

impl<T, Q: Queue<T>> Drop for Strong<T, Q> {
    #[inline]
    fn drop(&mut self) {
        let order = if weakened!("chan_senders_release") { Relaxed } else { AcqRel };
        // AcqRel: the receiver that sees zero sees what was sent. Pairs with itself and
        // with the Acquire in `strong_count`.
        if self.senders.fetch_sub(1, order) == 1 {
            self.end();
            // SAFETY: 1. the last sender gives up the part of all.
            unsafe { Chan::let_go::<T>(self.chan, SENDERS) };
        }
    }
}

impl<T, Q: Queue<T>> Weak<T, Q> {
    pub(super) fn upgrade(&self) -> Option<Strong<T, Q>> {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.senders.load(Relaxed);
        loop {
            if now == 0 && !weakened!("chan_upgrade_from_zero") {
                return None;
            }
            // Acquire: as if it had been cloned from a sender that is there. Pairs with
            // the AcqRel of those who were dropped.
            match self.senders.compare_exchange_weak(now, now + 1, Acquire, Relaxed) {
                Ok(_) => return Some(Strong { chan: self.chan, _messages: PhantomData }),
                Err(seen) => now = seen,
            }
        }
    }
}

impl<T, Q: Queue<T>> Clone for Weak<T, Q> {
    fn clone(&self) -> Self {
        self.count_weak();
        Self { chan: self.chan, _messages: PhantomData }
    }
}

impl<T, Q: Queue<T>> Drop for Weak<T, Q> {
    fn drop(&mut self) {
        // SAFETY: 1. it was counted.
        unsafe { Chan::let_go::<T>(self.chan, WEAK) };
    }
}

impl<T, Q: Queue<T>> Owner<T, Q> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: 1. the cursor was made with the queue; the receiver leaves in `drop`.
        unsafe { self.queue.slot(&self.cursor) }
    }

    /// R1, without giving its room back.
    #[inline]
    fn take(&mut self) -> Option<T> {
        if !self.slot().is_ready() {
            return None;
        }
        // SAFETY: 1. we are the receiver, and it is ready.
        let value = unsafe { self.slot().take() };
        // SAFETY: the channel lives as long as we; not through `Deref`, which would borrow
        // the cursor as well. 1. As in `slot`. 2. It was taken.
        unsafe { self.chan.as_ref().queue.advance(&mut self.cursor) };
        Some(value)
    }

    /// R1.
    #[inline]
    fn next(&mut self) -> Option<T> {
        let value = self.take()?;
        self.queue.give_back(1);
        Some(value)
    }

    /// R1, as often as there is something. Answers with how many were added.
    fn next_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        let before = buffer.len();
        while buffer.len() - before < limit {
            let Some(value) = self.take() else { break };
            buffer.push(value);
        }
        let count = buffer.len() - before;
        if count > 0 {
            self.queue.give_back(count);
        }
        count
    }

    /// R2 to R5; what is worth another look, or `Pending`.
    #[cold]
    fn wait(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.reclaim();
        if !weakened!("chan_wait_settles") {
            self.queue.settle();
        }
        // SAFETY: 1. we are the receiver, and got it back.
        unsafe { self.queue.receiver().lend(cx.waker()) };
        if self.slot().expect() {
            return Poll::Ready(());
        }
        self.awaited = Some(self.cursor.head);
        if self.is_at_the_end() {
            return Poll::Ready(());
        }
        current::waits_for(Wait::Message);
        Poll::Pending
    }

    /// Gets the waker back, if it is lent.
    #[inline]
    fn reclaim(&mut self) {
        let Some(position) = self.awaited.take() else { return };
        // Another slot by now: whoever put the message has it, or had it.
        let ours = position == self.cursor.head && self.slot().rouse();
        if !ours {
            self.queue.receiver().wait_for_taker();
        }
    }

    /// R4 and R5, without the last look: nothing will come that is not there by now.
    fn is_at_the_end(&self) -> bool {
        self.queue.is_over(&self.cursor) || self.strong_count() == 0
    }

    #[inline]
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let unit = ready!(budget::proceed(cx));
        let mut next = self.next();
        if next.is_none() {
            ready!(self.wait(cx));
            if !weakened!("chan_end_looks_again") || !self.is_at_the_end() {
                next = self.next();
            }
        }
        unit.spend();
        Poll::Ready(next)
    }

    pub(super) fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        let unit = ready!(budget::proceed(cx));
        let mut count = self.next_many(buffer, limit);
        if count == 0 && limit > 0 {
            ready!(self.wait(cx));
            count = self.next_many(buffer, limit);
        }
        unit.spend();
        Poll::Ready(count)
    }

    pub(super) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(value) = self.next() {
                return Ok(value);
            }
            if self.is_at_the_end() {
                return self.next().ok_or(TryRecvError::Disconnected);
            }
            if self.len() == 0 {
                return Err(TryRecvError::Empty);
            }
            // A position was claimed, and perhaps others behind it were put: it is not
            // empty.
            backoff.pause();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len(&self.cursor)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed() || self.strong_count() == 0
    }

    pub(super) fn close(&self) {
        // Only we close, so nobody does in between.
        if !self.queue.is_closed() {
            Chan::close::<T>(self);
        }
    }

    /// The next of those that are left in a sealed queue.
    fn rest(&mut self) -> Option<T> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(value) = self.next() {
                return Some(value);
            }
            if self.len() == 0 || weakened!("chan_leave_waits") {
                return None;
            }
            backoff.pause();
        }
    }
}

/// Takes what is left, also after one of the messages panicked, and then lets go.
struct Leaving<'a, T, Q: Queue<T>>(&'a mut Owner<T, Q>);

impl<T, Q: Queue<T>> Leaving<'_, T, Q> {
    fn drain(&mut self) {
        while let Some(value) = self.0.rest() {
            drop(value);
        }
    }
}

impl<T, Q: Queue<T>> Drop for Leaving<'_, T, Q> {
    fn drop(&mut self) {
        self.drain();
        let chan = self.0.chan;
        // SAFETY: 1. the owner is being dropped, and its part with it.
        unsafe { Chan::let_go::<T>(chan, RECEIVER) };
    }
}

impl<T, Q: Queue<T>> Drop for Owner<T, Q> {
    fn drop(&mut self) {
        self.close();
        self.queue.seal();
        self.reclaim();
        if !weakened!("chan_wait_settles") {
            self.queue.settle();
        }
        // SAFETY: 1. we are the receiver, and got it back.
        let waker = unsafe { self.queue.receiver().remove() };
        let mut leaving = Leaving(self);
        // A user's code, and nobody to tell.
        discard(waker);
        leaving.drain();
    }
}

/// Future of [`Chan::closed`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(super) struct WhenClosed<'a, T, Q> {
    chan: &'a Chan<Q>,
    waiter: Waiter<()>,
    _messages: PhantomData<fn(T)>,
}

impl<'a, T, Q: Queue<T>> WhenClosed<'a, T, Q> {
    fn waiter(self: Pin<&Self>) -> (&'a Chan<Q>, Pin<&Waiter<()>>) {
        let chan = self.chan;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (chan, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Joins the line, unless it is closed by now.
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (chan, waiter) = self.waiter();
        if chan.queue.is_closed() {
            return Poll::Ready(());
        }
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut line = chan.closing.lock();
        if chan.queue.is_closed() && !weakened!("chan_closed_looks_again") {
            // The lock first, then the waker.
            drop(line);
            drop(waker);
            return Poll::Ready(());
        }
        // SAFETY: 1. we own the waiter, and it is OUT. 2. `Drop` does.
        unsafe { line.join(waiter, waker) };
        Poll::Pending
    }

    /// In line, as far as we know: sees that the right task will be woken.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (chan, waiter) = self.waiter();
        // SAFETY: 1. we own it. 2. It joined this line.
        let left = unsafe { keep_waker(&chan.closing, |line| line, waiter, cx.waker()) };
        if left { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<T, Q: Queue<T>> Future for WhenClosed<'_, T, Q> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = budget::proceed(cx);
        let this = self.as_ref();
        let place = this.waiter.place();
        let polled = match place {
            Place::Out => this.begin(cx),
            Place::In => this.go_on(cx),
            Place::Left => Poll::Ready(()),
        };
        match unit {
            Poll::Ready(unit) if polled.is_ready() => unit.spend(),
            Poll::Ready(_) => current::waits_for(Wait::Close),
            // Without budget who has waited is done all the same: beside a busy future it
            // would be put off for ever.
            Poll::Pending if place == Place::Out => return Poll::Pending,
            Poll::Pending => {}
        }
        polled
    }
}

impl<T, Q> Drop for WhenClosed<'_, T, Q> {
    fn drop(&mut self) {
        if self.waiter.place() == Place::In {
            // SAFETY: it was pinned if it was ever polled, and is not moved from here on.
            let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
            // SAFETY: 1. we own the waiter. 2. This is the line it joined.
            let waker = unsafe { self.chan.closing.lock().remove(waiter) };
            // The lock was let go at the end of the statement above.
            drop(waker);
        }
    }
}
