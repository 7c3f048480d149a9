//! The channel itself: an array of slots with stamps, the handle counts, and the wait queues.
//!
//! # Protocol
//! A position is a lap and an index. `tail` is where the next value is written, `head` where the
//! next one is read. The stamp of a slot says which side may use it:
//!
//! ```text
//! a sender                                    a receiver
//! S1 the stamp is `tail`: free. Moves `tail`  R1 the stamp is `head` + 1: full. Moves
//!    on; the slot is its own                     `head` on; the slot is its own
//! S2 writes the value                         R2 reads the value
//! S3 stamp := position + 1                    R3 stamp := position + a lap
//! S4 a task waits for a message: wakes one    R4 a task waits for room: wakes one
//! ```
//! A lap is a power of two and at least twice the capacity, so 'full in this lap' and 'free in
//! the next' differ for every capacity, one included, and the capacity itself need not be a
//! power of two. Stamps and positions are compared by their difference, which may wrap.
//!
//! A stamp that is behind means 'full' (or 'empty'), or that another thread is between S1 and
//! S3, or R1 and R3. No thread waits for those by spinning, beyond a short backoff: for it the
//! channel is full or empty, and it waits in the wait queue. S3 and S4 (R3 and R4) of the thread
//! in the middle end that wait, by the argument in `queue.rs`: the slot that a waiter looked at
//! last is the slot that gets the next stamp.
//!
//! The bit MARK of `tail` means 'closed'. S1 is an exchange of `tail`, so no thread begins to
//! send after a close; and a receiver that finds `head` equal to the marked `tail` knows that
//! there will never be another message.
//!
//! Receivers that wait while the channel is closed, with a sender in the middle of S2, are woken
//! by S4 one at a time; the first of them to find the end wakes all.
//!
//! # Invariants
//! - A slot belongs to the thread that moved a position past it, until that thread writes the
//!   stamp.
//! - `head` is never past `tail`, and at most a capacity behind it.
//! - No position has MARK except the `tail` of a closed channel, which does not move.
//! - Positions wrap. A thread that stalls between its load and its exchange while the others go all
//!   the way round would not notice: with 32-bit words and a capacity of one that is 2^31 messages,
//!   with 64-bit words it is out of reach.
//!
//! # Which side frees what
//! All senders together hold one share of the allocation, all receivers another, and each weak
//! handle one of its own. When the last receiver is dropped, it closes, sets GONE, and drops the
//! queued messages. A sender in the middle of a send finds GONE at S4, and drops them as well:
//! after GONE and a fence each such thread receives and drops until nothing is ready, so the
//! last one leaves nothing. No value lives until the end of the allocation.
//!
//! # Rejected
//! - A sequence that is position + 1 when full and position + capacity when free again: with a
//!   capacity of one these are the same number.
//! - One lock around a `VecDeque`: simple, and slower with many tasks on each side.
//! - Comparing `head` and `tail` to find out whether the array is full: a value between R1 and R3
//!   is still in its slot.
//!
//! # Checked by
//! `two_senders_share_the_only_slot`, `the_array_wraps_while_it_is_used`,
//! `close_against_send_and_recv_agrees`, `the_last_sender_goes_while_a_receiver_waits`,
//! `a_waiter_dropped_against_a_wake_passes_it_on`,
//! `a_sender_dropped_in_the_wait_queue_passes_the_room_on`,
//! `the_last_receiver_goes_while_two_send`, `a_sender_waits_for_room`,
//! `two_receivers_wait_for_two_messages`, `two_receivers_learn_of_the_close`,
//! `two_senders_wait_for_two_places`, `two_receivers_take_each_message_once`,
//! `closed_against_the_last_receiver_ends`, `a_new_waker_of_a_receiver_is_woken`,
//! `a_weak_sender_against_the_last_strong_one`, `a_length_counts_only_what_was_sent`; weakened as
//! `mpmc_publish_fences`, `mpmc_send_publishes`, `mpmc_recv_publishes`, `mpmc_slot_acquires`,
//! `mpmc_lap_is_larger`, `mpmc_close_marks_the_tail`, `mpmc_gone_is_seen`, `mpmc_gone_fences`,
//! `mpmc_waiter_passes_on`, `mpmc_room_passes_on`, `mpmc_end_wakes_all`, `mpmc_weak_sees_the_end`,
//! `mpmc_head_releases`. In sequence: `a_channel_behaves_as_a_simple_model`; under load:
//! `every_value_arrives_once`.

use std::{
    alloc::{self, Layout},
    mem::MaybeUninit,
    ptr::NonNull,
};

use super::{
    error::{TryRecvError, TrySendError},
    queue::{GONE, Queue, WAITING},
};
use crate::engine::prim::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    UnsafeCell,
    backoff::Backoff,
    discard, fence,
    pad::CachePadded,
    weakened,
};

/// The size of the slots in bytes from which `head` and `tail` have cache lines of their own.
///
/// From this size the padding is at most a third of the whole. Picked, not measured.
const SPREAD_FROM: usize = 512;

/// The most handles that a channel counts; more can only be leaked ones, and the count must not
/// wrap.
const MOST_HANDLES: usize = isize::MAX as usize;

/// The header of a channel; the ends and the slots follow in the same allocation.
pub(super) struct Chan<T> {
    capacity: usize,
    /// The smallest power of two that is not below the capacity: the bit above the index.
    ///
    /// In `tail` it means 'closed'. A lap is twice this number.
    mark: usize,
    tail: NonNull<AtomicUsize>,
    head: NonNull<AtomicUsize>,
    slots: NonNull<Slot<T>>,
    /// Receivers that wait for a message.
    pub(super) for_message: Queue,
    /// Senders that wait for free capacity.
    pub(super) for_room: Queue,
    /// Senders that wait for the close.
    pub(super) for_close: Queue,
    /// The number of shares of the allocation.
    shares: AtomicUsize,
    pub(super) senders: Count,
    pub(super) receivers: Count,
}

// SAFETY: a value is sent on one thread and received on another, so `T: Send` is required; it is
// accessed only by the thread that moved a position past its slot.
unsafe impl<T: Send> Send for Chan<T> {}
// SAFETY: a shared reference hands out no `&T`; a value is accessed only by the thread that
// moved a position past its slot.
unsafe impl<T: Send> Sync for Chan<T> {}

struct Slot<T> {
    stamp: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// The numbers of strong and weak handles of one side.
pub(super) struct Count {
    strong: AtomicUsize,
    weak: AtomicUsize,
}

/// Layout of the allocation, and the offsets of its parts.
struct Parts {
    whole: Layout,
    tail: usize,
    head: usize,
    slots: usize,
}

/// A claimed slot, and the stamp that gives it to the other side.
struct Claimed<'a, T> {
    slot: &'a Slot<T>,
    stamp: usize,
}

/// Reason why no slot was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The channel is full, or empty, or another thread is in the middle of using the slot.
    NotNow,
    /// The channel is closed; for a receiver also: it is empty.
    Closed,
}

impl<T> Chan<T> {
    /// Creates a channel, with one handle on each side.
    ///
    /// # Panics
    /// If the capacity is zero, or larger than what fits into memory.
    #[track_caller]
    pub(super) fn allocate(capacity: usize) -> NonNull<Self> {
        assert!(capacity > 0, "mpmc channel requires capacity > 0: pass at least 1");
        let Some(parts) = Self::parts(capacity) else {
            panic!("capacity overflow: {capacity} slots do not fit into memory; use fewer");
        };
        // SAFETY: the layout is not of size zero, because it contains the header.
        let whole = unsafe { alloc::alloc(parts.whole) };
        let Some(whole) = NonNull::new(whole) else { alloc::handle_alloc_error(parts.whole) };
        // SAFETY: each part lies inside the allocation, aligned, by `parts`, and no other thread
        // knows the allocation yet.
        unsafe {
            let (tail, head) = (whole.add(parts.tail).cast(), whole.add(parts.head).cast());
            let slots = whole.add(parts.slots).cast::<Slot<T>>();
            tail.write(AtomicUsize::new(0));
            head.write(AtomicUsize::new(0));
            for index in 0..capacity {
                let value = UnsafeCell::new(MaybeUninit::uninit());
                slots.add(index).write(Slot { stamp: AtomicUsize::new(index), value });
            }
            let chan = whole.cast::<Self>();
            chan.write(Self {
                capacity,
                mark: capacity.next_power_of_two(),
                tail,
                head,
                slots,
                for_message: Queue::new(),
                for_room: Queue::new(),
                for_close: Queue::new(),
                shares: AtomicUsize::new(2),
                senders: Count::new(),
                receivers: Count::new(),
            });
            chan
        }
    }

    /// Returns the size of the allocation.
    #[cfg(all(test, not(blitz_loom)))]
    pub(super) fn bytes(capacity: usize) -> Option<usize> {
        Self::parts(capacity).map(|parts| parts.whole.size())
    }

    /// Returns the layout of a channel; `None` if it overflows.
    fn parts(capacity: usize) -> Option<Parts> {
        // A position needs bits for the index, MARK, and some laps.
        if capacity > usize::MAX >> 4 {
            return None;
        }
        let slots = Layout::array::<Slot<T>>(capacity).ok()?;
        let end = if slots.size() >= SPREAD_FROM {
            Layout::new::<CachePadded<AtomicUsize>>()
        } else {
            Layout::new::<AtomicUsize>()
        };
        let (whole, tail) = Layout::new::<Self>().extend(end).ok()?;
        let (whole, head) = whole.extend(end).ok()?;
        let (whole, slots) = whole.extend(slots).ok()?;
        Some(Parts { whole, tail, head, slots })
    }

    /// Gives up one share of the allocation; the last one frees it.
    ///
    /// # Safety
    /// 1. The caller has a share, and does not use the channel after this call.
    pub(super) unsafe fn give_up(chan: NonNull<Self>) {
        // SAFETY: by our obligation 1 the caller has a share, so the channel is alive.
        let this = unsafe { chan.as_ref() };
        // AcqRel: the thread that frees sees what all the others did. Each `fetch_sub` pairs
        // with the others.
        if this.shares.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: 1. of `free`: that was the last share, and the AcqRel above sees what the
            // others did.
            unsafe { Self::free(chan) };
        }
    }

    /// Frees the channel.
    ///
    /// # Safety
    /// 1. No other thread uses the channel any more, and the caller sees what all of them did.
    #[cold]
    unsafe fn free(chan: NonNull<Self>) {
        // SAFETY: by our obligation 1 this thread is alone with the channel; each part is
        // dropped once. There are no values left, because the last receiver, and senders that
        // came after it, dropped them.
        unsafe {
            let this = chan.as_ref();
            debug_assert_eq!(this.len(), 0, "a channel ended with values in it");
            let (tail, head, capacity) = (this.tail, this.head, this.capacity);
            let slots = NonNull::slice_from_raw_parts(this.slots, capacity);
            slots.drop_in_place();
            tail.drop_in_place();
            head.drop_in_place();
            chan.drop_in_place();
            let parts = Self::parts(capacity).expect("it was allocated with these");
            alloc::dealloc(chan.cast().as_ptr(), parts.whole);
        }
    }

    /// Adds a share of the allocation.
    pub(super) fn share(&self) {
        count_up(&self.shares);
    }

    #[inline]
    fn tail(&self) -> &AtomicUsize {
        // SAFETY: `tail` points into our own allocation.
        unsafe { self.tail.as_ref() }
    }

    #[inline]
    fn head(&self) -> &AtomicUsize {
        // SAFETY: `head` points into our own allocation.
        unsafe { self.head.as_ref() }
    }

    #[inline]
    fn slot(&self, position: usize) -> &Slot<T> {
        let index = position & (self.mark - 1);
        debug_assert!(index < self.capacity, "{index} of {}", self.capacity);
        // SAFETY: the index is below the capacity, because `after` never produces another.
        unsafe { self.slots.add(index).as_ref() }
    }

    /// Returns the difference between a position and the same index one lap later.
    #[inline]
    fn lap(&self) -> usize {
        if weakened!("mpmc_lap_is_larger") { self.mark } else { self.mark << 1 }
    }

    /// Returns the position that follows.
    #[inline]
    fn after(&self, position: usize) -> usize {
        let index = position & (self.mark - 1);
        if index + 1 < self.capacity {
            position + 1
        } else {
            (position - index).wrapping_add(self.lap())
        }
    }

    /// Claims a free slot for a send (S1).
    #[inline]
    fn claim_free(&self) -> Result<Claimed<'_, T>, Refused> {
        let mut backoff = Backoff::default();
        // Acquire, here and below: a sender that is refused sees what was done before the close.
        // Pairs with the AcqRel in `close`.
        let mut tail = self.tail().load(Acquire);
        loop {
            if tail & self.mark != 0 {
                return Err(Refused::Closed);
            }
            let slot = self.slot(tail);
            let order = if weakened!("mpmc_slot_acquires") { Relaxed } else { Acquire };
            // Acquire: we overwrite a slot that another thread has read. Pairs with R3.
            let stamp = slot.stamp.load(order);
            match stamp.wrapping_sub(tail).cast_signed() {
                0 => {
                    let next = self.after(tail);
                    // Relaxed: the stamp orders the access to the slot. Acquire on failure: a
                    // refused sender sees what was done before the close.
                    match self.tail().compare_exchange_weak(tail, next, Relaxed, Acquire) {
                        Ok(_) => return Ok(Claimed { slot, stamp: tail.wrapping_add(1) }),
                        Err(seen) => {
                            tail = seen;
                            pause(&mut backoff);
                        }
                    }
                }
                // A lap behind: the channel is full, or another thread is in the middle of using
                // the slot.
                ..0 => {
                    // Acquire: a refused sender sees what was done before the close.
                    let seen = self.tail().load(Acquire);
                    // Relaxed: a guess at whether it is worth waiting a moment.
                    let full = self.head().load(Relaxed).wrapping_add(self.lap()) == tail;
                    if seen == tail && (full || !pause(&mut backoff)) {
                        return Err(Refused::NotNow);
                    }
                    tail = seen;
                }
                // Other senders have moved on; together with that stamp we see their `tail`.
                // Acquire: a refused sender sees what was done before the close.
                1.. => tail = self.tail().load(Acquire),
            }
        }
    }

    /// Claims a full slot for a receive (R1).
    #[inline]
    fn claim_full(&self) -> Result<Claimed<'_, T>, Refused> {
        let mut backoff = Backoff::default();
        // Relaxed, here and at the loads below: the stamp orders the access to the slot.
        let mut head = self.head().load(Relaxed);
        loop {
            let slot = self.slot(head);
            let order = if weakened!("mpmc_slot_acquires") { Relaxed } else { Acquire };
            // Acquire: we read what another thread has written. Pairs with S3.
            let stamp = slot.stamp.load(order);
            match stamp.wrapping_sub(head.wrapping_add(1)).cast_signed() {
                0 => {
                    let next = self.after(head);
                    let order = if weakened!("mpmc_head_releases") { Relaxed } else { Release };
                    // Release: a thread that sees this message received also sees it sent. Pairs
                    // with the Acquire in `len`.
                    match self.head().compare_exchange_weak(head, next, order, Relaxed) {
                        Ok(_) => {
                            return Ok(Claimed { slot, stamp: head.wrapping_add(self.lap()) });
                        }
                        Err(seen) => {
                            head = seen;
                            pause(&mut backoff);
                        }
                    }
                }
                // Not written in this lap: the channel is empty, or another thread is in the
                // middle of using the slot.
                ..0 => {
                    // Acquire: a receiver that finds the end sees what was done before the
                    // close. Pairs with the AcqRel in `close`.
                    let tail = self.tail().load(Acquire);
                    if tail & !self.mark == head {
                        let closed = tail & self.mark != 0;
                        return Err(if closed { Refused::Closed } else { Refused::NotNow });
                    }
                    let seen = self.head().load(Relaxed);
                    if seen == head && !pause(&mut backoff) {
                        return Err(Refused::NotNow);
                    }
                    head = seen;
                }
                // Other receivers have moved on; together with that stamp we see their `head`.
                1.. => head = self.head().load(Relaxed),
            }
        }
    }

    /// Writes a stamp, which gives the slot to the other side (M1 of `queue.rs`).
    ///
    /// The flags must be read after this.
    #[inline]
    fn publish(stamp: &AtomicUsize, to: usize, planted: bool) {
        if cfg!(blitz_loom) {
            // The model checker has no total order of stores, but it has one of fences, and a
            // fence is as strong here. Release: publishes the slot. Pairs with the Acquire in S1
            // and R1.
            stamp.store(to, if planted { Relaxed } else { Release });
            if !weakened!("mpmc_publish_fences") {
                // SeqCst: pairs with the fence in `QueueWaiter::wait`.
                fence(SeqCst);
            }
        } else {
            // SeqCst: publishes the slot, which pairs with the Acquire in S1 and R1, and comes
            // before the flags in the one total order, which pairs with the fence in
            // `QueueWaiter::wait`.
            stamp.store(to, SeqCst);
        }
    }

    /// Writes a value into a claimed slot and publishes it (S2 to S4).
    #[inline]
    fn write(&self, claimed: &Claimed<'_, T>, value: T) {
        // SAFETY: S1 gave the slot to this thread alone, and no value is in it.
        claimed.slot.value.with_mut(|slot| unsafe { (*slot).write(value) });
        Self::publish(&claimed.slot.stamp, claimed.stamp, weakened!("mpmc_send_publishes"));
        if self.for_message.flags() != 0 {
            self.notify_receivers();
        }
    }

    /// Reads the value out of a claimed slot and frees the slot (R2 to R4).
    #[inline]
    fn read(&self, claimed: &Claimed<'_, T>) -> T {
        // SAFETY: R1 gave the slot to this thread alone, and the stamp showed that a value is in
        // it. It is taken once.
        let value = claimed.slot.value.with_mut(|slot| unsafe { (*slot).assume_init_read() });
        Self::publish(&claimed.slot.stamp, claimed.stamp, weakened!("mpmc_recv_publishes"));
        if self.for_room.flags() != 0 {
            self.for_room.wake_one();
        }
        value
    }

    /// Wakes a waiting receiver, or drops the messages if all receivers are gone (S4).
    #[cold]
    fn notify_receivers(&self) {
        let flags = self.for_message.flags();
        if flags & WAITING != 0 {
            self.for_message.wake_one();
        }
        if flags & GONE != 0 && !weakened!("mpmc_gone_is_seen") {
            self.drop_queued();
        }
    }

    /// Sends the message in `value`, and takes it out, if there is free capacity.
    #[inline]
    pub(super) fn send_from(&self, value: &mut Option<T>) -> Result<(), Refused> {
        // Checked before a slot is claimed, because a slot that is never written blocks all
        // threads.
        assert!(value.is_some(), "a send was polled after it has completed: drop it by then");
        let claimed = self.claim_free()?;
        let value = value.take().expect("looked at above");
        self.write(&claimed, value);
        Ok(())
    }

    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match self.claim_free() {
            Ok(claimed) => {
                self.write(&claimed, value);
                Ok(())
            }
            Err(Refused::NotNow) => Err(TrySendError::Full(value)),
            Err(Refused::Closed) => Err(TrySendError::Closed(value)),
        }
    }

    #[inline]
    pub(super) fn recv_now(&self) -> Result<T, Refused> {
        self.claim_full().map(|claimed| self.read(&claimed))
    }

    #[inline]
    pub(super) fn try_recv(&self) -> Result<T, TryRecvError> {
        self.recv_now().map_err(|refused| match refused {
            Refused::NotNow => TryRecvError::Empty,
            Refused::Closed => TryRecvError::Disconnected,
        })
    }

    /// Wakes the next receiver, if there is something for it.
    ///
    /// Called by a receiver that was dismissed and has completed.
    #[cold]
    pub(super) fn pass_on_messages(&self) {
        if self.for_message.flags() & WAITING == 0 || weakened!("mpmc_waiter_passes_on") {
            return;
        }
        if self.is_closed() {
            if !weakened!("mpmc_end_wakes_all") {
                self.for_message.wake_all();
            }
        } else if self.has_message() {
            self.for_message.wake_one();
        }
    }

    /// Wakes the next sender, if there is free capacity for it.
    ///
    /// Called by a sender that was dismissed and has completed. After a close it is not needed:
    /// the closing thread wakes all waiting senders, and none of them waits for a thread in the
    /// middle of an operation.
    #[cold]
    pub(super) fn pass_on_room(&self) {
        let waiting = self.for_room.flags() & WAITING != 0;
        if waiting && self.has_room() && !weakened!("mpmc_room_passes_on") {
            self.for_room.wake_one();
        }
    }

    /// Returns `true` if R1 would succeed.
    fn has_message(&self) -> bool {
        loop {
            // Relaxed: as in R1, a stale `head` leads to a stamp that shows it.
            let head = self.head().load(Relaxed);
            // Acquire: together with a stamp of the next lap we see the `head` that belongs to
            // it. Pairs with R3.
            let stamp = self.slot(head).stamp.load(Acquire);
            match stamp.wrapping_sub(head.wrapping_add(1)).cast_signed() {
                0 => return true,
                ..0 => return false,
                1.. => {}
            }
        }
    }

    /// Returns `true` if S1 would succeed, or fail for good because of a close.
    fn has_room(&self) -> bool {
        loop {
            // Relaxed: a stale `tail` leads to a stamp that shows it.
            let tail = self.tail().load(Relaxed);
            if tail & self.mark != 0 {
                return true;
            }
            // Acquire: together with a newer stamp we see the `tail` that belongs to it. Pairs
            // with S3.
            let stamp = self.slot(tail).stamp.load(Acquire);
            match stamp.wrapping_sub(tail).cast_signed() {
                0 => return true,
                ..0 => return false,
                1.. => {}
            }
        }
    }

    /// Closes the channel: no thread begins to send any more, and all waiters are woken.
    pub(super) fn close(&self) {
        // AcqRel: a sender that is refused sees what was done before the close. Pairs with the
        // Acquire loads of `tail`.
        let before = if weakened!("mpmc_close_marks_the_tail") {
            self.tail().load(Acquire)
        } else {
            self.tail().fetch_or(self.mark, AcqRel)
        };
        if before & self.mark != 0 {
            return;
        }
        self.for_close.wake_all();
        self.for_room.wake_all();
        self.for_message.wake_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        // Acquire: the caller sees what was done before the close. Pairs with the AcqRel in
        // `close`.
        self.tail().load(Acquire) & self.mark != 0
    }

    /// Closes the channel and drops the queued messages, because the last receiver was dropped.
    #[cold]
    pub(super) fn end_receivers(&self) {
        self.close();
        self.for_message.set_gone();
        self.drop_queued();
    }

    /// Drops all messages that can be received; a sender in the middle of a send does it again.
    #[cold]
    fn drop_queued(&self) {
        if !weakened!("mpmc_gone_fences") {
            // SeqCst: the role of W2 in `queue.rs`, with GONE in place of WAITING. Pairs with
            // the store in `publish`.
            fence(SeqCst);
        }
        while let Ok(value) = self.recv_now() {
            // A panic in one drop would leave the other messages, and this may run on a sender's
            // thread.
            discard(value);
        }
    }

    pub(super) fn len(&self) -> usize {
        // Acquire: messages that were received are seen as sent. Pairs with the Release in R1.
        let head = self.head().load(Acquire);
        // Acquire: pairs with the AcqRel in `close`. Loaded second, so that `tail` is not behind
        // `head`.
        let tail = self.tail().load(Acquire) & !self.mark;
        let index = |position: usize| position & (self.mark - 1);
        let laps = (tail - index(tail)).wrapping_sub(head - index(head)) / (self.mark << 1);
        let len = (laps.wrapping_mul(self.capacity) + index(tail)).wrapping_sub(index(head));
        // Other threads may have moved both between the two loads.
        len.min(self.capacity)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T> std::fmt::Debug for Chan<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chan")
            .field("len", &self.len())
            .field("max_capacity", &self.capacity)
            .field("closed", &self.is_closed())
            .field("senders", &self.senders.strong())
            .field("receivers", &self.receivers.strong())
            .finish()
    }
}

impl Count {
    fn new() -> Self {
        Self { strong: AtomicUsize::new(1), weak: AtomicUsize::new(0) }
    }

    pub(super) fn strong(&self) -> usize {
        // Acquire: a thread that finds the others gone sees what they did. Pairs with the AcqRel
        // in `remove`.
        self.strong.load(Acquire)
    }

    pub(super) fn weak(&self) -> usize {
        // Relaxed: only a number to report.
        self.weak.load(Relaxed)
    }

    /// Counts one more handle, cloned from an existing one.
    #[inline]
    pub(super) fn add(&self) {
        count_up(&self.strong);
    }

    /// Counts one more handle, upgraded from a weak one; returns `false` if all were dropped.
    pub(super) fn add_unless_gone(&self) -> bool {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.strong.load(Relaxed);
        loop {
            if now == 0 && !weakened!("mpmc_weak_sees_the_end") {
                return false;
            }
            assert_countable(now);
            // Relaxed: only a count; the channel itself orders what handles do.
            match self.strong.compare_exchange_weak(now, now + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// Counts one handle less, and returns `true` if it was the last.
    #[inline]
    #[must_use]
    pub(super) fn remove(&self) -> bool {
        // AcqRel: the last handle closes after everything that the others did. Each `fetch_sub`
        // pairs with the others.
        self.strong.fetch_sub(1, AcqRel) == 1
    }

    pub(super) fn add_weak(&self) {
        count_up(&self.weak);
    }

    pub(super) fn remove_weak(&self) {
        // Relaxed: only a number to report; giving up the share orders the end.
        self.weak.fetch_sub(1, Relaxed);
    }
}

#[inline]
fn count_up(count: &AtomicUsize) {
    // Relaxed: the new handle is made from an existing one, which keeps the count above zero.
    assert_countable(count.fetch_add(1, Relaxed));
}

/// Aborts the process before a count wraps, because otherwise memory in use would be freed.
#[inline]
fn assert_countable(count: usize) {
    if count > MOST_HANDLES {
        std::process::abort();
    }
}

/// Pauses briefly for a thread in the middle of an operation; returns `false` once that was long
/// enough.
///
/// A model does not pause.
#[inline]
fn pause(backoff: &mut Backoff) -> bool {
    !cfg!(blitz_loom) && backoff.spin()
}
