//! The part that bounded and unbounded channels share: handles, the receiver, and the end.
//!
//! A channel is one allocation: this header, followed by the slots if it has an array. The
//! receiver's own position (the cursor) is in the receiver.
//!
//! # Protocol
//! *Memory.* `handles` has a bit for the receiver, a bit for all senders together, and counts
//! the weak senders above. The thread that clears or subtracts the last of these frees the
//! channel. So cloning or dropping a sender is one exchange, of `senders`.
//!
//! *The receiver waits.*
//! ```text
//! R1 the slot of the next message is ready: takes it, done
//! R2 hands over its waker
//! R3 marks the slot AWAITED; if it finds READY instead: as R1
//! R4 checks whether the channel is over: closed, and nothing can come any more
//! R5 checks whether there are senders; none: reads the slot a last time
//! ```
//! An event after R3 wakes the receiver: a message (see `slot.rs`), the last permit of a closed
//! channel (see `send_permits.rs`), or the drop of the last sender. After the last two, nothing is
//! sent any more. So if the receiver waits, it waits for the slot at the tail, and the thread that
//! caused the event (E1) exchanges that slot afterwards (E2).
//!
//! One of E2 and R3 comes first in the order of the slot. If R3 does, E2 finds AWAITED, and
//! wakes. If E2 does, R3 sees E1, unless the receiver stored EMPTY in between, for a message
//! that was in that slot: the array was full. Therefore E1 ends with an exchange of the permits'
//! word, and the receiver exchanges that word after its messages and before R2. If the
//! receiver's exchange comes first, E2 sees the slot emptied, and nothing is in between; if E1
//! does, the receiver sees it by its own exchange. (Where the receiver hands its permits over to
//! a sender in the wait queue, or another thread has collected them, the receiver exchanges
//! nothing; then the lock of the wait queue gives the same order.) Blocks have a fresh slot at
//! the tail.
//!
//! R5: a sender puts its messages before it is dropped, with Release; a thread that sees zero
//! senders, with Acquire, sees all messages. From zero the count never rises, because a weak
//! sender is upgraded only if the count is not zero.
//!
//! *Waiting for the close.* The waiting future checks again under the lock of its wait queue.
//! The closing thread first closes and then takes that lock: it dismisses the waiters that
//! joined before, and a later one sees the close.
//!
//! *The receiver leaves*: it closes, seals, and takes what is left. A position that was claimed
//! but not filled yet will be filled within a few instructions, and the receiver waits for
//! these. So every message is dropped by the receiver, or is refused to its sender and dropped
//! there, and no message is left in a channel without a receiver.
//!
//! # Invariants
//! - No user code runs between the claim of a position and the put, nor under a lock.
//! - A message is the receiver's once it is taken; its slot and its permit are given back before
//!   any of its code runs. So its drop may panic, or use the channel.
//!
//! # Rejected
//! - `Arc`, and counts beside it: two more words, and two exchanges for each clone.
//! - Leaving messages that were sent too late to the thread that frees the channel, as Tokio
//!   does: a message that contains a reply channel would keep its own sender waiting forever.
//! - Sleeping in `try_recv` until a message that was claimed is put: it is a copy and an
//!   exchange away, and only a sender that was preempted there makes a receiver wait.
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

use super::{blocks::Cursor, error::TryRecvError, receiver_waker::ReceiverWaker, slot::Slot};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
        backoff::Backoff,
        discard,
        store_lock::StoreLock,
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::{WakeList, wake_each},
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

/// A queue of messages, bounded or unbounded.
///
/// # Safety
/// 1. `slot` and `advance` go through the slots in the order of their positions.
/// 2. A position that was claimed is filled without waiting for any other thread.
/// 3. After `seal` no position is claimed.
pub(super) unsafe trait Queue<T> {
    /// Returns the address and the number of the slots behind the header.
    fn array(&self) -> (NonNull<Slot<T>>, usize);

    /// Returns the slot of the next message.
    ///
    /// # Safety
    /// 1. The cursor was created with this queue, and the receiver has not left.
    unsafe fn slot(&self, cursor: &Cursor<T>) -> &Slot<T>;

    /// Moves the cursor to the next slot.
    ///
    /// # Safety
    /// 1. The cursor was created with this queue, and the receiver has not left. 2. The message
    ///    at the cursor was taken.
    unsafe fn advance(&self, cursor: &mut Cursor<T>);

    /// Gives the capacity of `count` messages back, which were taken and left their slots empty.
    fn give_back(&self, count: usize);

    /// Publishes everything that was given back, because the receiver is about to wait.
    fn publish_returned(&self);

    /// Returns the number of positions that were claimed and not taken.
    fn len(&self, cursor: &Cursor<T>) -> usize;

    /// Returns `true` if the queue is closed and empty, and no sender may send any more.
    fn is_over(&self, cursor: &Cursor<T>) -> bool;

    fn is_closed(&self) -> bool;

    /// Closes the queue: refuses senders from now on, except those that hold a permit.
    fn close(&self);

    /// Seals the queue: refuses permit holders, too.
    fn seal(&self);

    /// Returns the slot of the position that would be claimed next.
    ///
    /// Before that, makes an exchange that orders the caller among the give-backs of the
    /// receiver.
    ///
    /// # Safety
    /// 1. No sender is sending, and none will.
    unsafe fn tail_slot(&self) -> &Slot<T>;

    /// Returns the cell of the receiver's waker.
    fn receiver(&self) -> &ReceiverWaker;
}

/// Wakes the receiver if it waits, because no message will do that any more.
///
/// # Safety
/// 1. No sender is sending, and none will.
#[cold]
pub(super) unsafe fn wake_receiver<T, Q: Queue<T>>(queue: &Q) {
    // A wake list contains panics of wakers, which is required because this runs in drops.
    let mut wake_list = WakeList::new();
    // SAFETY: 1. of `tail_slot`: by our obligation 1 no sender is sending and none will. 1. of
    // `take`: `Slot::wake_receiver` removed AWAITED.
    unsafe {
        if queue.tail_slot().wake_receiver() {
            queue.receiver().take().into_iter().for_each(|waker| wake_list.push(waker));
        }
    }
    wake_list.wake_all();
}

const SENDERS: usize = 1;
const RECEIVER: usize = 1 << 1;
const WEAK: usize = 1 << 2;

/// A channel: the header of its allocation, followed by the slots of an array.
///
/// The header begins on its own cache line, with the fields that senders exchange for each
/// message.
#[repr(C, align(64))]
pub(super) struct Chan<Q> {
    pub(super) queue: Q,
    senders: AtomicUsize,
    handles: AtomicUsize,
    closing: StoreLock<WaitQueue<()>>,
}

impl<Q> Chan<Q> {
    /// Returns the layout of a channel with `slots` slots, and the offset of the first.
    ///
    /// # Panics
    /// If the size overflows, because no memory is that large.
    pub(super) fn layout<T>(slots: usize) -> (Layout, usize) {
        let slots = Layout::array::<Slot<T>>(slots);
        let whole = slots.and_then(|slots| Layout::new::<Self>().extend(slots));
        let (whole, at) = whole.expect("an array has few slots");
        (whole.pad_to_align(), at)
    }

    /// Creates a channel with one sender; `make` gets the address of the slots.
    pub(super) fn create<T>(
        slots: usize,
        make: impl FnOnce(NonNull<Slot<T>>) -> (Q, Cursor<T>),
    ) -> (Strong<T, Q>, Owner<T, Q>)
    where
        Q: Queue<T>,
    {
        let (layout, at) = Self::layout::<T>(slots);
        // SAFETY: the layout is not of size zero, because it contains the header.
        let Some(memory) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        let chan = memory.cast::<Self>();
        // SAFETY: the layout has space for this number of slots at that offset, aligned, and no
        // other thread knows the memory.
        let first = unsafe {
            let first = memory.add(at).cast::<Slot<T>>();
            (0..slots).for_each(|index| first.add(index).write(Slot::new()));
            first
        };
        let (queue, cursor) = make(first);
        debug_assert_eq!(queue.array().1, slots, "what is allocated is freed");
        // SAFETY: the layout begins with space for the header, aligned, and no other thread
        // knows the memory.
        unsafe {
            chan.write(Self {
                queue,
                senders: AtomicUsize::new(1),
                handles: AtomicUsize::new(SENDERS | RECEIVER),
                closing: StoreLock::new(WaitQueue::new()),
            });
        }
        (Strong { chan, _messages: PhantomData }, Owner { chan, cursor, awaited: None })
    }

    /// Gives up a part of `handles`, and frees the channel with the last part.
    ///
    /// # Safety
    /// 1. The part is the caller's, which does not use the channel after this call.
    #[inline]
    unsafe fn let_go<T>(chan: NonNull<Self>, part: usize)
    where
        Q: Queue<T>,
    {
        // AcqRel: what every handle did with the channel happens before it is freed. Pairs with
        // itself.
        // SAFETY: by our obligation 1 the caller still has its part, so the channel is alive.
        if unsafe { chan.as_ref() }.handles.fetch_sub(part, AcqRel) == part {
            // SAFETY: 1. of `free`: that was the last part, so no other handle exists.
            unsafe { Self::free(chan) };
        }
    }

    /// Frees the channel.
    ///
    /// # Safety
    /// 1. No other handle of the channel exists.
    #[cold]
    unsafe fn free<T>(chan: NonNull<Self>)
    where
        Q: Queue<T>,
    {
        // SAFETY: by our obligation 1 this thread is alone with the channel. Everything in it
        // was written by `create` and is dropped once, and the layout is the same. Slots hold no
        // messages: the receiver took them when it left, and nothing is put after that.
        unsafe {
            let (slots, count) = chan.as_ref().queue.array();
            (0..count).for_each(|index| slots.add(index).drop_in_place());
            chan.drop_in_place();
            dealloc(chan.cast().as_ptr(), Self::layout::<T>(count).0);
        }
    }

    /// Closes the channel and wakes the futures that wait for the close.
    #[cold]
    fn close<T>(&self)
    where
        Q: Queue<T>,
    {
        self.queue.close();
        let lock = || self.closing.lock();
        wake_each(lock(), lock, |waiters| {
            waiters.first()?;
            Some(waiters.dismiss_first())
        });
    }

    pub(super) fn strong_count(&self) -> usize {
        // Acquire: a thread that sees no sender sees what they sent. Pairs with the drop of
        // `Strong`.
        self.senders.load(Acquire)
    }

    pub(super) fn weak_count(&self) -> usize {
        // Relaxed: only a snapshot.
        self.handles.load(Relaxed) / WEAK
    }

    /// Returns the word that counts the handles of the channel.
    #[cfg(all(test, not(blitz_loom)))]
    pub(super) fn handles(&self) -> usize {
        self.handles.load(Relaxed)
    }

    /// Counts one more weak sender.
    fn count_weak(&self) {
        // Relaxed: the caller already has a part of the channel, so the count cannot reach zero.
        if self.handles.fetch_add(WEAK, Relaxed) > usize::MAX / 2 {
            // Only leaked handles can reach this number.
            std::process::abort();
        }
    }

    /// Waits until the receiver closes the channel or is dropped.
    pub(super) fn closed<T>(&self) -> WhenClosed<'_, T, Q> {
        WhenClosed { chan: self, waiter: Waiter::new(()), _messages: PhantomData }
    }
}

/// A handle of one sender.
pub(super) struct Strong<T, Q: Queue<T>> {
    chan: NonNull<Chan<Q>>,
    _messages: PhantomData<fn(T) -> T>,
}

/// A handle of a weak sender, which does not keep the channel open.
pub(super) struct Weak<T, Q: Queue<T>> {
    chan: NonNull<Chan<Q>>,
    _messages: PhantomData<fn(T) -> T>,
}

/// The handle of the receiver.
pub(super) struct Owner<T, Q: Queue<T>> {
    chan: NonNull<Chan<Q>>,
    cursor: Cursor<T>,
    /// The position at which the receiver marked its slot AWAITED; its waker is handed over since
    /// then.
    awaited: Option<u64>,
}

// SAFETY: a channel moves messages between threads, so `T: Send` suffices, and hands out no
// reference to one.
unsafe impl<T: Send, Q: Queue<T>> Send for Strong<T, Q> {}
// SAFETY: a shared `Strong` only moves messages into the channel and hands out no reference to
// one, so `T: Send` suffices.
unsafe impl<T: Send, Q: Queue<T>> Sync for Strong<T, Q> {}
// SAFETY: a `Weak` only counts, and can become a `Strong`, which is `Send`.
unsafe impl<T: Send, Q: Queue<T>> Send for Weak<T, Q> {}
// SAFETY: a shared `Weak` only counts, and can become a `Strong`, which is `Send`.
unsafe impl<T: Send, Q: Queue<T>> Sync for Weak<T, Q> {}
// SAFETY: an `Owner` moves messages of type `T: Send` out of the channel, and its cursor moves
// along with it.
unsafe impl<T: Send, Q: Queue<T>> Send for Owner<T, Q> {}
// SAFETY: a shared `Owner` only reads the cursor; everything that changes it takes an exclusive
// reference. No reference to a message is handed out.
unsafe impl<T: Send, Q: Queue<T>> Sync for Owner<T, Q> {}

// A channel has no state that a panic in user code could leave inconsistent.
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
        // SAFETY: the senders have a part of the channel while one of them exists, so it is
        // alive.
        unsafe { self.chan.as_ref() }
    }
}

impl<T, Q: Queue<T>> Deref for Weak<T, Q> {
    type Target = Chan<Q>;

    #[inline]
    fn deref(&self) -> &Chan<Q> {
        // SAFETY: each weak sender has a part of the channel, so it is alive.
        unsafe { self.chan.as_ref() }
    }
}

impl<T, Q: Queue<T>> Deref for Owner<T, Q> {
    type Target = Chan<Q>;

    #[inline]
    fn deref(&self) -> &Chan<Q> {
        // SAFETY: the receiver has a part of the channel, so it is alive.
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

    /// Wakes the receiver, because the last sender was dropped.
    #[cold]
    fn end(&self) {
        if weakened!("chan_last_sender_wakes") {
            return;
        }
        // SAFETY: 1. of `wake_receiver`: all senders were dropped, so none is sending and none
        // will.
        unsafe { wake_receiver(&self.queue) };
    }
}

impl<T, Q: Queue<T>> Clone for Strong<T, Q> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: the count cannot become zero meanwhile, because it includes this sender.
        if self.senders.fetch_add(1, Relaxed) > usize::MAX / 2 {
            // Only leaked senders can reach this number.
            std::process::abort();
        }
        Self { chan: self.chan, _messages: PhantomData }
    }
}

impl<T, Q: Queue<T>> Drop for Strong<T, Q> {
    #[inline]
    fn drop(&mut self) {
        let order = if weakened!("chan_senders_release") { Relaxed } else { AcqRel };
        // AcqRel: a receiver that sees zero sees what was sent. Pairs with itself and with the
        // Acquire in `strong_count`.
        if self.senders.fetch_sub(1, order) == 1 {
            self.end();
            // SAFETY: 1. of `let_go`: the last sender gives up the part that all senders share,
            // and does not use the channel any more.
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
            // Acquire: orders this as if the sender had been cloned from an existing one. Pairs
            // with the AcqRel of senders that were dropped.
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
        // SAFETY: 1. of `let_go`: this weak sender was counted, and is being dropped.
        unsafe { Chan::let_go::<T>(self.chan, WEAK) };
    }
}

impl<T, Q: Queue<T>> Owner<T, Q> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: 1. of `Queue::slot`: the cursor was created with the queue, and the receiver
        // leaves only in `drop`.
        unsafe { self.queue.slot(&self.cursor) }
    }

    /// Takes the next message if it is ready, without giving its capacity back (R1).
    #[inline]
    fn take(&mut self) -> Option<T> {
        if !self.slot().is_ready() {
            return None;
        }
        // SAFETY: 1. of `Slot::take`: we are the receiver, and the slot is ready.
        let value = unsafe { self.slot().take() };
        // SAFETY: the receiver has a part of the channel, so it is alive. `Deref` is not used,
        // because it would borrow the cursor as well. 1. of `advance`: the cursor was created
        // with the queue, and the receiver has not left. 2. The message was taken above.
        unsafe { self.chan.as_ref().queue.advance(&mut self.cursor) };
        Some(value)
    }

    /// Takes the next message if it is ready, and gives its capacity back (R1).
    #[inline]
    fn next(&mut self) -> Option<T> {
        let value = self.take()?;
        self.queue.give_back(1);
        Some(value)
    }

    /// Appends up to `limit` messages that are ready to `buffer`, and returns their number (R1).
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

    /// Prepares to wait (R2 to R5); returns `Ready` if the caller must look for a message again.
    #[cold]
    fn wait(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.take_waker_back();
        if !weakened!("chan_wait_settles") {
            self.queue.publish_returned();
        }
        // SAFETY: 1. of `hand_over`: we are the receiver, and `take_waker_back` got the waker back.
        unsafe { self.queue.receiver().hand_over(cx.waker()) };
        if self.slot().expect() {
            return Poll::Ready(());
        }
        self.awaited = Some(self.cursor.head);
        if self.is_at_the_end() {
            return Poll::Ready(());
        }
        thread_context::waits_for(WaitReason::Message);
        Poll::Pending
    }

    /// Gets the waker back, if it is handed over.
    #[inline]
    fn take_waker_back(&mut self) {
        let Some(position) = self.awaited.take() else { return };
        // If the position has changed, the sender that filled the slot has the waker, or had it.
        let ours = position == self.cursor.head && self.slot().wake_receiver();
        if !ours {
            self.queue.receiver().wait_for_taker();
        }
    }

    /// Returns `true` if no message can come that is not queued by now (R4 and R5).
    ///
    /// The caller must then read the slot once more, as R5 requires.
    fn is_at_the_end(&self) -> bool {
        self.queue.is_over(&self.cursor) || self.strong_count() == 0
    }

    #[inline]
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let unit = ready!(budget::poll_proceed(cx));
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
        let unit = ready!(budget::poll_proceed(cx));
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
            // A position was claimed, and positions behind it may be filled already, so the
            // queue is not empty.
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
        // Only the receiver closes, so there is no close between the check and the call.
        if !self.queue.is_closed() {
            Chan::close::<T>(self);
        }
    }

    /// Returns the next message that is left in a sealed queue.
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

/// Guard that takes the remaining messages, even if the drop of one panics, and then lets go of
/// the channel.
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
        // SAFETY: 1. of `let_go`: the owner is being dropped, and gives up its part.
        unsafe { Chan::let_go::<T>(chan, RECEIVER) };
    }
}

impl<T, Q: Queue<T>> Drop for Owner<T, Q> {
    fn drop(&mut self) {
        self.close();
        self.queue.seal();
        self.take_waker_back();
        if !weakened!("chan_wait_settles") {
            self.queue.publish_returned();
        }
        // SAFETY: 1. of `remove`: we are the receiver, and `take_waker_back` got the waker back.
        let waker = unsafe { self.queue.receiver().remove() };
        let mut leaving = Leaving(self);
        // A waker's drop runs user code, and there is no caller to which a panic could be
        // reported.
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
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its destructor
        // runs in place.
        (chan, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Joins the wait queue, unless the channel is closed by now.
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (chan, waiter) = self.waiter();
        if chan.queue.is_closed() {
            return Poll::Ready(());
        }
        // Cloned before the lock is taken, because a waker's clone runs user code.
        let waker = cx.waker().clone();
        let mut waiters = chan.closing.lock();
        if chan.queue.is_closed() && !weakened!("chan_closed_looks_again") {
            // The lock is released before the waker is dropped, because that drop runs user
            // code.
            drop(waiters);
            drop(waker);
            return Poll::Ready(());
        }
        // SAFETY: 1. of `join`: we own the waiter, and it is OUT. 2. `Drop` removes it.
        unsafe { waiters.join(waiter, waker) };
        Poll::Pending
    }

    /// Makes sure that the current waker is woken, for a waiter that is still in the wait queue.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (chan, waiter) = self.waiter();
        // SAFETY: 1. of `update_waker`: we own the waiter. 2. It joined the wait queue behind this
        // lock.
        let is_dismissed =
            unsafe { update_waker(&chan.closing, |waiters| waiters, waiter, cx.waker()) };
        if is_dismissed { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<T, Q: Queue<T>> Future for WhenClosed<'_, T, Q> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = budget::poll_proceed(cx);
        let this = self.as_ref();
        let state = this.waiter.state();
        let polled = match state {
            WaiterState::Out => this.begin(cx),
            WaiterState::In => this.go_on(cx),
            WaiterState::Dismissed => Poll::Ready(()),
        };
        match unit {
            Poll::Ready(unit) if polled.is_ready() => unit.spend(),
            Poll::Ready(_) => thread_context::waits_for(WaitReason::Close),
            // A future that has waited completes even without budget, because a busy future that
            // is polled beside it could postpone it forever.
            Poll::Pending if state == WaiterState::Out => return Poll::Pending,
            Poll::Pending => {}
        }
        polled
    }
}

impl<T, Q> Drop for WhenClosed<'_, T, Q> {
    fn drop(&mut self) {
        if self.waiter.state() == WaiterState::In {
            // SAFETY: the future was pinned if it was ever polled, and is not moved from here
            // on.
            let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
            // SAFETY: 1. of `remove`: we own the waiter. 2. This is the wait queue that it
            // joined.
            let waker = unsafe { self.chan.closing.lock().remove(waiter) };
            // The lock was released at the end of the statement above.
            drop(waker);
        }
    }
}
