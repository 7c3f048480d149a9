//! The channel itself: a ring of slots with stamps, the counts, and who waits.
//!
//! # Protocol
//! A position is a lap and an index. `tail` is where the next value is written, `head`
//! where the next one is read. The stamp of a slot says whose turn it is:
//!
//! ```text
//! who sends                                   who receives
//! S1 the stamp is `tail`: free. Moves `tail`  R1 the stamp is `head` + 1: full. Moves
//!    on; the slot is its own                     `head` on; the slot is its own
//! S2 writes the value                         R2 reads the value
//! S3 stamp := position + 1                    R3 stamp := position + a lap
//! S4 somebody waits for a message: wakes one  R4 somebody waits for room: wakes one
//! ```
//! A lap is a power of two and at least twice the capacity, so 'full in this lap' and
//! 'free in the next' differ for every capacity, one included, and the capacity itself
//! need not be a power of two. Stamps and positions are compared by their difference,
//! which may wrap.
//!
//! A stamp that is behind means 'full' (or 'empty'), or that somebody is between S1 and
//! S3, or R1 and R3. Nobody waits for those by spinning, beyond a short backoff: to them
//! the channel is full or empty, and they wait in line. S3 and S4 (R3 and R4) of the one
//! in the middle end that wait, by the argument in `queue.rs`: the place that a waiter
//! looked at last is the place whose stamp is written next.
//!
//! The bit MARK of `tail` says 'closed'. S1 is an exchange of `tail`, so nobody begins to
//! send behind a close; and a receiver that finds `head` where the marked `tail` is knows
//! that there will never be anything more.
//!
//! Receivers that wait while the channel is closed, with somebody in the middle of S2,
//! are woken by S4 one at a time; whoever of them finds the end wakes all.
//!
//! # Invariants
//! - A slot belongs to whoever moved a position past it, until it writes the stamp.
//! - `head` is never past `tail`, and at most a capacity behind it.
//! - No position has MARK but the `tail` of a closed channel, which does not move.
//! - Positions wrap. A thread that stalls between its look and its exchange while the
//!   others go all the way round would not notice: with 32-bit words and a capacity of
//!   one that is 2^31 messages, with 64-bit words it is out of reach.
//!
//! # Who frees what
//! All the senders together hold one share of the allocation, all the receivers another,
//! and each weak handle one of its own. When the last receiver goes it closes, says GONE,
//! and drops what is queued. Whoever was in the middle of a send finds GONE at S4, and
//! drops it as well: behind GONE and a fence everybody receives and drops until there is
//! nothing ready, so whoever comes last leaves nothing. No value waits for the end of the
//! allocation.
//!
//! # Rejected
//! - A sequence that is position + 1 when full and position + capacity when free again:
//!   with a capacity of one these are the same number.
//! - One lock round a `VecDeque`: simple, and slower with many on each side.
//! - To compare `head` and `tail` to find out what is full: a value between R1 and R3
//!   is still in its slot.
//!
//! # Checked by
//! `two_senders_share_the_only_slot`, `the_ring_wraps_while_it_is_used`,
//! `close_against_send_and_recv_agrees`, `the_last_sender_goes_while_a_receiver_waits`,
//! `a_waiter_dropped_against_a_wake_passes_it_on`,
//! `a_sender_dropped_in_line_passes_the_room_on`,
//! `the_last_receiver_goes_while_two_send`, `a_sender_waits_for_room`,
//! `two_receivers_wait_for_two_messages`, `two_receivers_learn_of_the_close`,
//! `two_senders_wait_for_two_places`, `two_receivers_take_each_message_once`,
//! `closed_against_the_last_receiver_ends`, `a_new_waker_of_a_receiver_is_woken`,
//! `a_weak_sender_against_the_last_strong_one`, `a_length_counts_only_what_was_sent`;
//! weakened as `mpmc_publish_fences`,
//! `mpmc_send_publishes`, `mpmc_recv_publishes`, `mpmc_slot_acquires`, `mpmc_lap_is_larger`,
//! `mpmc_close_marks_the_tail`, `mpmc_gone_is_seen`,
//! `mpmc_gone_fences`, `mpmc_waiter_passes_on`,
//! `mpmc_room_passes_on`,
//! `mpmc_end_wakes_all`, `mpmc_weak_sees_the_end`, `mpmc_head_releases`. In sequence:
//! `a_channel_behaves_as_a_simple_model`; under load: `every_value_arrives_once`.

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

/// From so many bytes of slots on, `head` and `tail` have cache lines of their own: the
/// padding is then at most a third of the whole. Picked, not measured.
const SPREAD_FROM: usize = 512;

/// More handles than this have been forgotten, not kept: the count must not wrap.
const MOST_HANDLES: usize = isize::MAX as usize;

/// The header; the ends and the slots follow in the same allocation.
pub(super) struct Chan<T> {
    capacity: usize,
    /// The power of two that is not below the capacity: the bit above the index. In
    /// `tail` it says 'closed'; a lap is twice that.
    mark: usize,
    tail: NonNull<AtomicUsize>,
    head: NonNull<AtomicUsize>,
    slots: NonNull<Slot<T>>,
    /// Receivers that wait for a message.
    pub(super) for_message: Queue,
    /// Senders that wait for room.
    pub(super) for_room: Queue,
    /// Senders that wait for the close.
    pub(super) for_close: Queue,
    /// Shares of the allocation.
    shares: AtomicUsize,
    pub(super) senders: Count,
    pub(super) receivers: Count,
}

// SAFETY: a value goes in on one thread and comes out on another, and is reached by
// whoever moved a position past its slot; nobody gets a `&T`.
unsafe impl<T: Send> Send for Chan<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Chan<T> {}

struct Slot<T> {
    stamp: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// The handles of one side.
pub(super) struct Count {
    strong: AtomicUsize,
    weak: AtomicUsize,
}

/// Where the parts are.
struct Parts {
    whole: Layout,
    tail: usize,
    head: usize,
    slots: usize,
}

/// A slot that was claimed: where it is, and the stamp that gives it to the other side.
struct Claimed<'a, T> {
    slot: &'a Slot<T>,
    stamp: usize,
}

/// Why nothing was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Full, or empty, or somebody is in the middle of it.
    NotNow,
    /// Closed; to a receiver: and there is nothing more.
    Closed,
}

impl<T> Chan<T> {
    /// A new channel, with one handle on each side.
    ///
    /// # Panics
    /// If the capacity is zero, or more than memory can hold.
    #[track_caller]
    pub(super) fn allocate(capacity: usize) -> NonNull<Self> {
        assert!(capacity > 0, "mpmc channel requires capacity > 0: ask for one slot at least");
        let Some(parts) = Self::parts(capacity) else {
            panic!("capacity overflow: {capacity} slots do not fit into memory; ask for fewer");
        };
        // SAFETY: the layout is not of size zero: the header is not.
        let whole = unsafe { alloc::alloc(parts.whole) };
        let Some(whole) = NonNull::new(whole) else { alloc::handle_alloc_error(parts.whole) };
        // SAFETY: each part lies inside the allocation, aligned, by `parts`; nobody else
        // knows it yet.
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

    /// How large the allocation is.
    #[cfg(all(test, not(blitz_loom)))]
    pub(super) fn bytes(capacity: usize) -> Option<usize> {
        Self::parts(capacity).map(|parts| parts.whole.size())
    }

    /// `None` if there is no such layout.
    fn parts(capacity: usize) -> Option<Parts> {
        // A position needs the index, MARK, and some laps.
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

    /// Gives one share of the allocation up; the last one frees it.
    ///
    /// # Safety
    /// 1. The caller has a share, and does not use the channel from here on.
    pub(super) unsafe fn give_up(chan: NonNull<Self>) {
        // SAFETY: by 1. it lives.
        let this = unsafe { chan.as_ref() };
        // AcqRel: whoever frees it sees what all the others did. Each pairs with the rest.
        if this.shares.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: 1. nobody has a share any more.
            unsafe { Self::free(chan) };
        }
    }

    /// # Safety
    /// 1. Nobody uses the channel any more, and we see what everybody did.
    #[cold]
    unsafe fn free(chan: NonNull<Self>) {
        // SAFETY: by 1. it is ours alone; each part is dropped once. The values are gone:
        // the last receiver saw to that.
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

    /// One share more.
    pub(super) fn share(&self) {
        count_up(&self.shares);
    }

    #[inline]
    fn tail(&self) -> &AtomicUsize {
        // SAFETY: it is a part of our allocation.
        unsafe { self.tail.as_ref() }
    }

    #[inline]
    fn head(&self) -> &AtomicUsize {
        // SAFETY: it is a part of our allocation.
        unsafe { self.head.as_ref() }
    }

    #[inline]
    fn slot(&self, position: usize) -> &Slot<T> {
        let index = position & (self.mark - 1);
        debug_assert!(index < self.capacity, "{index} of {}", self.capacity);
        // SAFETY: an index is below the capacity: `after` sees to it.
        unsafe { self.slots.add(index).as_ref() }
    }

    /// The difference of two laps.
    #[inline]
    fn lap(&self) -> usize {
        if weakened!("mpmc_lap_is_larger") { self.mark } else { self.mark << 1 }
    }

    /// The position that follows.
    #[inline]
    fn after(&self, position: usize) -> usize {
        let index = position & (self.mark - 1);
        if index + 1 < self.capacity {
            position + 1
        } else {
            (position - index).wrapping_add(self.lap())
        }
    }

    /// S1.
    #[inline]
    fn claim_free(&self) -> Result<Claimed<'_, T>, Refused> {
        let mut backoff = Backoff::default();
        // Acquire, here and below: who is refused sees what was done before the close.
        // Pairs with the AcqRel in `close`.
        let mut tail = self.tail().load(Acquire);
        loop {
            if tail & self.mark != 0 {
                return Err(Refused::Closed);
            }
            let slot = self.slot(tail);
            let order = if weakened!("mpmc_slot_acquires") { Relaxed } else { Acquire };
            // Acquire: we write over what was read there. Pairs with R3.
            let stamp = slot.stamp.load(order);
            match stamp.wrapping_sub(tail).cast_signed() {
                0 => {
                    let next = self.after(tail);
                    // Relaxed: the stamp orders what is in the slot. Acquire on failure:
                    // as above.
                    match self.tail().compare_exchange_weak(tail, next, Relaxed, Acquire) {
                        Ok(_) => return Ok(Claimed { slot, stamp: tail.wrapping_add(1) }),
                        Err(seen) => {
                            tail = seen;
                            pause(&mut backoff);
                        }
                    }
                }
                // A lap behind: it is full, or somebody is in the middle of it.
                ..0 => {
                    // Acquire: as above.
                    let seen = self.tail().load(Acquire);
                    // Relaxed: a guess at whether it is worth waiting a moment.
                    let full = self.head().load(Relaxed).wrapping_add(self.lap()) == tail;
                    if seen == tail && (full || !pause(&mut backoff)) {
                        return Err(Refused::NotNow);
                    }
                    tail = seen;
                }
                // Others have moved on; with that stamp comes their `tail`. Acquire: as
                // above.
                1.. => tail = self.tail().load(Acquire),
            }
        }
    }

    /// R1.
    #[inline]
    fn claim_full(&self) -> Result<Claimed<'_, T>, Refused> {
        let mut backoff = Backoff::default();
        // Relaxed, here and below where it is read: the stamp orders what is in the slot.
        let mut head = self.head().load(Relaxed);
        loop {
            let slot = self.slot(head);
            let order = if weakened!("mpmc_slot_acquires") { Relaxed } else { Acquire };
            // Acquire: we read what was written there. Pairs with S3.
            let stamp = slot.stamp.load(order);
            match stamp.wrapping_sub(head.wrapping_add(1)).cast_signed() {
                0 => {
                    let next = self.after(head);
                    let order = if weakened!("mpmc_head_releases") { Relaxed } else { Release };
                    // Release: who finds the message received finds it sent. Pairs with the
                    // Acquire in `len`.
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
                // Not written in this lap: it is empty, or somebody is in the middle of it.
                ..0 => {
                    // Acquire: who finds the end sees what was done before the close.
                    // Pairs with the AcqRel in `close`.
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
                // Others have moved on; with that stamp comes their `head`.
                1.. => head = self.head().load(Relaxed),
            }
        }
    }

    /// M1 of `queue.rs`: gives a slot to the other side. The flags are read after this.
    #[inline]
    fn publish(stamp: &AtomicUsize, to: usize, planted: bool) {
        if cfg!(blitz_loom) {
            // The model checker has no total order of stores; a fence has one, and is as
            // strong here.
            // Release: publishes the slot. Pairs with the Acquire in S1 and R1.
            stamp.store(to, if planted { Relaxed } else { Release });
            if !weakened!("mpmc_publish_fences") {
                // SeqCst: pairs with the fence in `Stand::wait`.
                fence(SeqCst);
            }
        } else {
            // SeqCst: publishes the slot, which pairs with the Acquire in S1 and R1, and
            // comes before the flags in the one total order, which pairs with the fence
            // in `Stand::wait`.
            stamp.store(to, SeqCst);
        }
    }

    /// S2 to S4.
    #[inline]
    fn write(&self, claimed: &Claimed<'_, T>, value: T) {
        // SAFETY: S1 made the slot ours, and there is nothing in it.
        claimed.slot.value.with_mut(|place| unsafe { (*place).write(value) });
        Self::publish(&claimed.slot.stamp, claimed.stamp, weakened!("mpmc_send_publishes"));
        if self.for_message.flags() != 0 {
            self.tell_receivers();
        }
    }

    /// R2 to R4.
    #[inline]
    fn read(&self, claimed: &Claimed<'_, T>) -> T {
        // SAFETY: R1 made the slot ours, and the stamp said that a value is in it. It is
        // taken once.
        let value = claimed.slot.value.with_mut(|place| unsafe { (*place).assume_init_read() });
        Self::publish(&claimed.slot.stamp, claimed.stamp, weakened!("mpmc_recv_publishes"));
        if self.for_room.flags() != 0 {
            self.for_room.wake_one();
        }
        value
    }

    /// S4, with somebody to tell.
    #[cold]
    fn tell_receivers(&self) {
        let flags = self.for_message.flags();
        if flags & WAITING != 0 {
            self.for_message.wake_one();
        }
        if flags & GONE != 0 && !weakened!("mpmc_gone_is_seen") {
            self.drop_queued();
        }
    }

    /// Sends what `value` holds, and takes it, if there is room.
    #[inline]
    pub(super) fn send_from(&self, value: &mut Option<T>) -> Result<(), Refused> {
        // Before a slot is claimed: one that is never written holds everybody up.
        assert!(value.is_some(), "a send was polled after it has answered: drop it by then");
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

    /// A receiver was dismissed and has its answer: sees to the next one, if there is
    /// something for it.
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

    /// The same for a sender and room. On a close all of them are woken by whoever
    /// closes: none of them waits for anybody in the middle then.
    #[cold]
    pub(super) fn pass_on_room(&self) {
        let waiting = self.for_room.flags() & WAITING != 0;
        if waiting && self.has_room() && !weakened!("mpmc_room_passes_on") {
            self.for_room.wake_one();
        }
    }

    /// Whether R1 would succeed.
    fn has_message(&self) -> bool {
        loop {
            // Relaxed: as in R1. A stale one leads to a stamp that says so.
            let head = self.head().load(Relaxed);
            // Acquire: with a stamp of the next lap comes the `head` that goes with it.
            // Pairs with R3.
            let stamp = self.slot(head).stamp.load(Acquire);
            match stamp.wrapping_sub(head.wrapping_add(1)).cast_signed() {
                0 => return true,
                ..0 => return false,
                1.. => {}
            }
        }
    }

    /// Whether S1 would succeed, or be refused for good.
    fn has_room(&self) -> bool {
        loop {
            // Relaxed: as in `has_message`.
            let tail = self.tail().load(Relaxed);
            if tail & self.mark != 0 {
                return true;
            }
            // Acquire: as in `has_message`. Pairs with S3.
            let stamp = self.slot(tail).stamp.load(Acquire);
            match stamp.wrapping_sub(tail).cast_signed() {
                0 => return true,
                ..0 => return false,
                1.. => {}
            }
        }
    }

    /// Nobody begins to send any more.
    pub(super) fn close(&self) {
        // AcqRel: what was done before the close is seen by who is refused. Pairs with
        // the Acquire loads of `tail`.
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
        // Acquire: as in `close`, with which it pairs.
        self.tail().load(Acquire) & self.mark != 0
    }

    /// The last receiver goes.
    #[cold]
    pub(super) fn end_receivers(&self) {
        self.close();
        self.for_message.set_gone();
        self.drop_queued();
    }

    /// Drops what can be received. Whoever is in the middle of a send does it again.
    #[cold]
    fn drop_queued(&self) {
        if !weakened!("mpmc_gone_fences") {
            // SeqCst: as W2 of `queue.rs`, with GONE for WAITING. Pairs with the store in
            // `publish`.
            fence(SeqCst);
        }
        while let Ok(value) = self.recv_now() {
            // A panic of one would leave the others; and it may be a sender's thread.
            discard(value);
        }
    }

    pub(super) fn len(&self) -> usize {
        // Acquire: what was received was sent. Pairs with the Release in R1.
        let head = self.head().load(Acquire);
        // Acquire: pairs with `close`. It comes second, so that it is not behind.
        let tail = self.tail().load(Acquire) & !self.mark;
        let index = |position: usize| position & (self.mark - 1);
        let laps = (tail - index(tail)).wrapping_sub(head - index(head)) / (self.mark << 1);
        let len = (laps.wrapping_mul(self.capacity) + index(tail)).wrapping_sub(index(head));
        // Others may have moved both on in between.
        len.min(self.capacity)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T> std::fmt::Debug for Chan<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
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
        // Acquire: who finds the others gone sees what they did. Pairs with `remove`.
        self.strong.load(Acquire)
    }

    pub(super) fn weak(&self) -> usize {
        // Relaxed: a figure.
        self.weak.load(Relaxed)
    }

    /// One handle more, made from one that is there.
    #[inline]
    pub(super) fn add(&self) {
        count_up(&self.strong);
    }

    /// One handle more, made from a weak one: `false` if all are gone.
    pub(super) fn add_unless_gone(&self) -> bool {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.strong.load(Relaxed);
        loop {
            if now == 0 && !weakened!("mpmc_weak_sees_the_end") {
                return false;
            }
            assert_countable(now);
            // Relaxed: a count alone; what handles do is ordered by the channel.
            match self.strong.compare_exchange_weak(now, now + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// One handle less; whether it was the last.
    #[inline]
    #[must_use]
    pub(super) fn remove(&self) -> bool {
        // AcqRel: the last one closes after all that the others did. Each pairs with the
        // rest.
        self.strong.fetch_sub(1, AcqRel) == 1
    }

    pub(super) fn add_weak(&self) {
        count_up(&self.weak);
    }

    pub(super) fn remove_weak(&self) {
        // Relaxed: a figure; the share orders the end.
        self.weak.fetch_sub(1, Relaxed);
    }
}

#[inline]
fn count_up(count: &AtomicUsize) {
    // Relaxed: it is made from one that is there.
    assert_countable(count.fetch_add(1, Relaxed));
}

/// Ends the process before a count wraps: to go on would free what is used.
#[inline]
fn assert_countable(count: usize) {
    if count > MOST_HANDLES {
        std::process::abort();
    }
}

/// Waits a moment for somebody in the middle; `false` when it was long enough. A model
/// does not wait.
#[inline]
fn pause(backoff: &mut Backoff) -> bool {
    !cfg!(blitz_loom) && backoff.spin()
}
