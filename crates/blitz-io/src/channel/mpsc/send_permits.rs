//! Permits and positions of a bounded channel: which sender may send, and into which slot.
//!
//! The protocol is that of the engine's permits (`engine/wait/permits.rs`), but one word holds
//! both the permits and the position of the next message. So a send into a channel that is not
//! full is one exchange, which takes a permit and a position together.
//!
//! # Protocol
//! The word holds three bits, the number of free permits, and the tail: the position of the next
//! message. A channel with a small capacity has one array of slots. Its tail goes through the array
//! twice before it starts again at zero, so that full and empty differ. A channel with a large
//! capacity has blocks, which count their positions themselves, so the permits have the whole word.
//!
//! In the tables, 'the queue' is the wait queue of senders.
//!
//! ```text
//! a sender                                  a thread that gives permits back: the receiver
//! A1 a permit is free: takes it, and the    R1 not WAITING: adds them, done
//!    position too if the message is there   R2 WAITING: locks the queue
//! A2 locks the queue                        R3 gives them to the first waiter, which
//! A3 enough are free now: takes them           leaves when it has all it wants; then to
//! A4 takes what is free and sets WAITING,      the next
//!    in one exchange                        R4 the queue is empty: clears WAITING and adds
//! A5 joins the queue                           the rest, in one exchange
//! A6 has a permit, and now a message:
//!    takes a position, if not SEALED
//! ```
//! A4 and R1 exchange the same word, so one comes first. If R1 does, A4 fails and the sender
//! looks again (A3): no permit is missed. If A4 does, R1 finds WAITING and gets the lock after
//! A5.
//!
//! CLOSED is set under the lock, and A3 checks it under the lock: after the close no sender joins
//! the wait queue, and none takes a permit. (A long wait queue is dismissed one wake list at a
//! time; in between, R3 may still serve one of its waiters.) A sender that was in the wait queue is
//! refused when it is polled, whatever it was given, and gives that back. A sender that holds a
//! permit may still send (A6), until the receiver is gone: SEALED. Then each position below the
//! tail is filled, or will be within a few instructions, and no other position is claimed: the
//! receiver drops the messages of all of them, and a sender that comes later drops its own message.
//!
//! A task without budget must not complete. It joins the wait queue if it would have to wait
//! anyway; otherwise it returns at its next turn, without permits.
//!
//! The free permits, the permits held, and the messages between head and tail always add up to
//! the capacity, except for messages that a receiver has taken and not reported (below). So
//! 'CLOSED and all permits free' shows in a single read that nothing is queued and no sender may
//! send. The thread that gives the last permit back then wakes the receiver, which had handed over
//! its waker before it read the word.
//!
//! **The receiver of a long channel gives back late.** With an exchange of the word for each
//! message, the receiver's CPU core and the senders' would contend for one cache line. So the
//! receiver only counts the messages that it has taken, on a cache line of its own, and a thread
//! that finds too few permits collects them from that count. The two must not miss each other:
//!
//! ```text
//! a waiter, under the lock                  the receiver
//! C1 joins the queue and sets `wanted`       T1 counts what it took
//! C2 fence                                  T2 fence
//! C3 collects: the count is not what it     T3 reads `wanted`: set, so it collects
//!    was given back; the rest goes to the      under the lock
//!    first waiter
//! ```
//! One of C2 and T2 comes first: either C3 sees T1, or T3 sees C1. The count that was last
//! reported is kept under the lock, so nothing is collected twice. After a close `wanted` stays
//! set, and before the receiver waits it collects by itself. So from then on the argument that
//! follows holds for every channel.
//!
//! **The slot is free.** Positions are claimed in the order of the word, each after the receiver
//! gave back the permit of the message that was in the slot before: by the sum above, no more
//! than the capacity lies between head and tail. The new sender must also see that the slot was
//! emptied. A permit comes back through the word, by a Release; or it is handed over under the
//! lock (R3), and the word does not change. In the second case only the new holder of the permit
//! has seen the slot emptied, but another sender may get that slot. Therefore A6 is a Release,
//! too: a sender that claims a position sees where the permits of all positions before it came
//! from. By the sum, these are the permits of all messages that had to leave before.
//!
//! # Invariants
//! - WAITING is set exactly if the wait queue is not empty, whenever the lock is free; and while
//!   it is set no permit is free. So no sender overtakes the wait queue.
//! - Only the first waiter has been given a part of the permits it wants.
//!
//! # Rejected
//! - Permits in their own word, and a tail beside it: one more exchange per message.
//! - The asymmetric barrier instead of the fence: each wait would cost the sender a system call,
//!   and the fence costs the receiver no more than the exchange did.
//! - Handing a position to a waiting sender, together with the permit: the receiver, and every
//!   sender behind it, would wait for a task that may not run for a long time.
//! - An array for every capacity: programs pass capacities of millions to mean 'practically
//!   unbounded'.
//!
//! # Checked by
//! `two_senders_and_room_for_one_hand_over`, `a_waiting_sender_dropped_against_a_recv`,
//! `a_permit_dropped_after_close_ends_the_receiver`, `close_against_a_waiting_sender`,
//! `close_of_a_long_wait_queue_against_a_permit_that_comes_back`,
//! `the_last_permit_of_a_long_channel_against_a_recv_ends_it`,
//! `a_permit_sent_against_the_drop_of_the_receiver_is_dropped_once`,
//! `a_part_of_many_against_close_ends_the_receiver`,
//! `a_slot_emptied_for_a_waiter_is_seen_by_the_sender_that_claims_it`,
//! `the_last_sender_of_a_full_channel_dropped_against_a_recv_ends_it`,
//! `the_last_sender_against_a_recv_that_serves_the_forgotten_ends_it`,
//! `a_sender_without_budget_joins_the_wait_queue`,
//! `a_sender_without_budget_against_a_recv_is_served`,
//! `a_sender_that_waits_against_a_late_give_back_is_served`,
//! `the_last_sender_dropped_against_a_late_give_back_ends_it`; weakened as
//! `send_permits_queue_looks_again`, `send_permits_release_sees_waiting`,
//! `send_permits_queue_sees_closed`, `send_permits_drop_passes_on`, `send_permits_drop_gives_back`,
//! `send_permits_idle_wakes`, `send_permits_take_acquire`, `send_permits_sealed_refuses`,
//! `send_permits_close_refunds`, `send_permits_claim_passes_on`,
//! `send_permits_without_budget_queue`, `send_permits_without_budget_give_back`,
//! `send_permits_touch_exchanges`, `send_permits_touch_sees_the_forgotten`,
//! `send_permits_late_fence`, `send_permits_late_looks_again`, `send_permits_late_is_wanted`,
//! `send_permits_late_is_reported`. In sequence: `a_bounded_channel_behaves_as_a_simple_model`.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::engine::{
    prim::{
        AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        discard, fence,
        store_lock::StoreLock,
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::WakeList,
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

const CLOSED: u64 = 1;
const WAITING: u64 = 1 << 1;
const SEALED: u64 = 1 << 2;
const SHIFT: u32 = 3;
const ONE: u64 = 1 << SHIFT;

/// The shift of the tail, which has the upper bits and counts twice as many positions as slots.
const TAIL_SHIFT: u32 = 33;
const TAIL_ONE: u64 = 1 << TAIL_SHIFT;

/// The longest array that the word could count; the channel sets a much lower limit.
pub(super) const MOST_OF_AN_ARRAY: usize = (1 << (TAIL_SHIFT - SHIFT)) - 1;

/// The smallest capacity at which the receiver gives permits back late.
///
/// The number was picked, not measured. In a shorter channel senders would collect every few
/// messages.
const LATE_FROM: usize = if cfg!(blitz_loom) { 2 } else { 16 };

/// Bits of `wanted`: a sender is in the wait queue, or (`BY_CLOSE`) the channel is closed.
const BY_WAITERS: u32 = 1;
const BY_CLOSE: u32 = 1 << 1;

/// Permits, positions and wait queue of a bounded channel.
///
/// The fields that a sender needs for each message come first, and share a cache line.
#[repr(C)]
pub(super) struct SendPermits {
    word: AtomicU64,
    /// The bits of the word that count the free permits.
    mask: u64,
    /// The position at which the tail wraps to zero; zero for a channel that has blocks.
    lap: u64,
    capacity: usize,
    state: StoreLock<SendPermitsState>,
    /// The number of messages that the receiver has taken, if it gives permits back late.
    ///
    /// Only the receiver writes it.
    taken: AtomicUsize,
    /// Nonzero if the receiver must collect what it counts, for waiting senders or after a
    /// close.
    ///
    /// Written under the lock.
    wanted: AtomicU32,
}

/// The data behind the lock of [`SendPermits`].
struct SendPermitsState {
    waiters: WaitQueue<Need>,
    /// The part of `taken` that was already given back as permits.
    given_back: usize,
}

/// A bounded queue: one that has [`SendPermits`].
pub(super) trait BoundedQueue {
    fn permits(&self) -> &SendPermits;

    /// Wakes the receiver, because the channel is closed and the last permit came back.
    fn wake_receiver(&self);

    /// Gives permits back, to waiting senders first.
    #[inline]
    fn release(&self, count: usize) {
        if self.permits().release(count) {
            self.wake_receiver();
        }
    }

    /// Takes what `request` says, without waiting, and collects late permits if it has to.
    #[inline]
    fn try_reserve(&self, request: ReserveRequest) -> Result<Reserved, TryReserveError> {
        match self.permits().try_reserve(request) {
            Err(TryReserveError::Full) if self.permits().is_late() => {
                self.collect_and_reserve(request)
            }
            reserved => reserved,
        }
    }

    #[cold]
    fn collect_and_reserve(&self, request: ReserveRequest) -> Result<Reserved, TryReserveError> {
        self.collect();
        self.permits().try_reserve(request)
    }

    /// Returns the number of free permits; zero while any sender waits.
    fn free(&self) -> usize {
        self.collect();
        self.permits().free()
    }

    fn collect(&self) {
        if self.permits().is_late() {
            let remaining = self.permits().collect_all();
            self.release(remaining);
        }
    }
}

/// The number of permits that a waiter wants and has not got yet.
struct Need {
    wanted: usize,
    /// The part of `wanted` that was not granted yet.
    ///
    /// Nonzero in a waiter that was dismissed by a close: it gives its granted part back itself.
    missing: usize,
}

/// Error: the channel was closed by its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// Reason why a sender may not send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TryReserveError {
    Closed,
    /// Too few permits are free, or other senders wait for them.
    Full,
}

/// The reservation of a sender: a permit, perhaps with a position.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserved {
    /// A permit and a position, which must be filled with a message immediately.
    Position(u64),
    /// Permits without a position.
    Permit,
}

/// Request of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReserveRequest {
    /// Sends one message, which is at hand. In an array that claims the position, too.
    Send,
    /// Reserves this number of permits.
    Permits(usize),
}

impl ReserveRequest {
    #[inline]
    fn count(self) -> usize {
        match self {
            ReserveRequest::Send => 1,
            ReserveRequest::Permits(count) => count,
        }
    }
}

/// Result of an attempt to queue.
#[must_use]
enum Queued {
    /// The caller has got its permits, so there is nothing to wait for.
    Taken,
    Closed,
    /// This number of permits is missing: the caller must join the wait queue.
    Missing(usize),
}

impl SendPermits {
    /// Creates permits that are all free; the first position of an array is zero.
    pub(super) fn new(capacity: usize, is_array: bool) -> Self {
        debug_assert!(!is_array || capacity <= MOST_OF_AN_ARRAY);
        // The permits of an array use the bits below its tail; with blocks there is no tail.
        let mask = if is_array { TAIL_ONE - ONE } else { !(ONE - 1) };
        Self {
            word: AtomicU64::new((capacity as u64) << SHIFT),
            mask,
            lap: if is_array { 2 * capacity as u64 } else { 0 },
            capacity,
            state: StoreLock::new(SendPermitsState { waiters: WaitQueue::new(), given_back: 0 }),
            taken: AtomicUsize::new(0),
            wanted: AtomicU32::new(0),
        }
    }

    /// Returns `true` if the receiver gives permits back late.
    #[inline]
    fn is_late(&self) -> bool {
        self.capacity >= LATE_FROM
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn count_free(&self, now: u64) -> usize {
        // The cast loses nothing: the number is at most the capacity.
        ((now & self.mask) >> SHIFT) as usize
    }

    /// Returns the number of free permits, after [`collect_all`](Self::collect_all).
    ///
    /// Zero while any sender waits.
    fn free(&self) -> usize {
        // Acquire: the caller sees what was done before these permits were given back. Pairs
        // with the Release in `add`.
        self.count_free(self.word.load(Acquire))
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: the caller sees what was done before the close. Pairs with the AcqRel in
        // `close`.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// Returns `true` if nothing is queued, no sender may send, and none ever will.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in the `add` of senders that gave their permits back.
        self.is_idle(self.word.load(Acquire))
    }

    #[inline]
    fn is_idle(&self, now: u64) -> bool {
        now & CLOSED != 0 && self.count_free(now) == self.capacity
    }

    /// Returns the number of messages between `head` and the tail of an array.
    pub(super) fn distance(&self, head: u64) -> usize {
        // Acquire: sees what other threads sent. Pairs with the exchanges in `try_reserve`.
        let tail = self.word.load(Acquire) >> TAIL_SHIFT;
        let distance = if tail >= head { tail - head } else { tail + self.lap - head };
        // The cast loses nothing: the number is at most the capacity.
        distance as usize
    }

    /// Returns the position that follows `head` in an array.
    #[inline]
    pub(super) fn after(&self, head: u64) -> u64 {
        if head + 1 == self.lap { 0 } else { head + 1 }
    }

    /// Returns the index of a position's slot in an array.
    #[inline]
    pub(super) fn slot_index(&self, position: u64) -> usize {
        // The cast loses nothing: a position is less than twice the capacity.
        let position = position as usize;
        if position >= self.capacity { position - self.capacity } else { position }
    }

    /// Returns the word with the tail moved by one position.
    #[inline]
    fn step(&self, now: u64) -> u64 {
        if (now >> TAIL_SHIFT) + 1 == self.lap { now & (TAIL_ONE - 1) } else { now + TAIL_ONE }
    }

    /// Returns the word after a reservation, and what was reserved; the word must have enough free
    /// permits.
    #[inline]
    fn word_after(&self, now: u64, request: ReserveRequest) -> (u64, Reserved) {
        let next = now - request.count() as u64 * ONE;
        if request == ReserveRequest::Send && self.lap != 0 {
            (self.step(next), Reserved::Position(now >> TAIL_SHIFT))
        } else {
            (next, Reserved::Permit)
        }
    }

    /// Takes permits if enough are free, and with [`ReserveRequest::Send`] a position of an array
    /// (A1).
    #[inline]
    pub(super) fn try_reserve(&self, request: ReserveRequest) -> Result<Reserved, TryReserveError> {
        let order = if weakened!("send_permits_take_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: a thread that sees CLOSED sees what was done before, and one
        // that takes a permit sees the slot emptied. Pairs with the AcqRel in `close` and the
        // Release in `add`.
        let mut now = self.word.load(order);
        loop {
            if now & CLOSED != 0 {
                return Err(TryReserveError::Closed);
            }
            // While any sender waits no permit is free.
            if self.count_free(now) < request.count() {
                return Err(TryReserveError::Full);
            }
            let (next, reserved) = self.word_after(now, request);
            match self.word.compare_exchange_weak(now, next, order, order) {
                Ok(_) => return Ok(reserved),
                Err(seen) => now = seen,
            }
        }
    }

    /// Accounts for `count` messages that the receiver took out of their slots.
    ///
    /// Counts them for a late give-back (T1 to T3), or gives the permits back immediately.
    #[inline]
    pub(super) fn taken(&self, count: usize) {
        if !self.is_late() {
            // The receiver itself gives back, so it need not be woken.
            let _ = self.release(count);
            return;
        }
        // Relaxed: only the receiver, which is this thread, writes it.
        let taken = self.taken.load(Relaxed).wrapping_add(count);
        // Release: the slots were emptied. Pairs with the Acquire in `collect`.
        self.taken.store(taken, Release);
        if !weakened!("send_permits_late_fence") {
            // SeqCst: T2. Pairs with the fence in `check_again`.
            fence(SeqCst);
        }
        // Relaxed: the fence orders this load.
        if self.wanted.load(Relaxed) != 0 && !weakened!("send_permits_late_is_wanted") {
            self.collect_own();
        }
    }

    /// Collects what the receiver has counted, called by the receiver itself.
    ///
    /// So the receiver exchanges the word, or, if another thread has collected before, sees
    /// through the lock what that thread did.
    #[cold]
    pub(super) fn collect_own(&self) {
        if self.is_late() {
            let remaining = self.collect_all();
            // The receiver itself gives back, so it need not be woken.
            let _ = self.release(remaining);
        }
    }

    /// Gives back all permits of messages that were taken and not reported.
    ///
    /// Returns the number that the caller must still release, because there are more waiters than
    /// one wake list holds.
    fn collect_all(&self) -> usize {
        let mut wake_list = WakeList::new();
        let remaining = self.collect(&mut self.state.lock(), &mut wake_list);
        wake_list.wake_all();
        remaining
    }

    /// Gives back, under the lock, what was taken and not reported: to waiters, or to the word.
    ///
    /// Returns the number that is left because the wake list is full.
    fn collect(&self, state: &mut SendPermitsState, wake_list: &mut WakeList) -> usize {
        // Acquire: the slots were emptied. Pairs with the Release in `taken`.
        let taken = self.taken.load(Acquire);
        let count = taken.wrapping_sub(state.given_back);
        if !weakened!("send_permits_late_is_reported") {
            state.given_back = taken;
        }
        if count == 0 {
            return 0;
        }
        if !state.waiters.is_empty() {
            return self.serve(&mut state.waiters, count, wake_list);
        }
        // AcqRel: for the same reasons as the exchange in `add`. No sender begins to wait
        // meanwhile, because that takes the lock.
        self.word.fetch_add(count as u64 * ONE, AcqRel);
        0
    }

    /// Claims a position in the array for a permit holder (A6); `None` if the receiver is gone.
    #[inline]
    pub(super) fn claim(&self) -> Option<u64> {
        let order = if weakened!("send_permits_claim_passes_on") { Acquire } else { AcqRel };
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & SEALED != 0 && !weakened!("send_permits_sealed_refuses") {
                return None;
            }
            // Acquire: the slot was emptied, perhaps for another permit than this sender's.
            // Release: this sender's permit may have come from the lock, and another claim gets
            // the slot that was emptied for it. Pairs with the exchange in `add`, with itself,
            // and with those in `try_reserve` and `queue`.
            match self.word.compare_exchange_weak(now, self.step(now), order, Relaxed) {
                Ok(_) => return Some(now >> TAIL_SHIFT),
                Err(seen) => now = seen,
            }
        }
    }

    /// Gives permits back, to waiting senders first.
    ///
    /// Returns `true` if this ended the channel, so that the caller must wake the receiver.
    #[inline]
    #[must_use]
    pub(super) fn release(&self, count: usize) -> bool {
        if count == 0 {
            return false;
        }
        match self.add(count) {
            Some(next) => {
                next & CLOSED != 0 && self.is_idle(next) && !weakened!("send_permits_idle_wakes")
            }
            None => self.serve_and_add(count),
        }
    }

    /// Adds permits to the word and returns the new word (R1); `None` if any sender waits.
    #[inline]
    fn add(&self, count: usize) -> Option<u64> {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & WAITING != 0 && !weakened!("send_permits_release_sees_waiting") {
                return None;
            }
            let next = now + count as u64 * ONE;
            debug_assert!(self.count_free(next) <= self.capacity, "a permit was made: {next:#x}");
            // AcqRel: the slots were emptied, for the Acquire in `try_reserve`, `claim`, `queue`
            // and `touch`; and the thread that finds all permits free, or that comes after `touch`,
            // sees what was done before. Relaxed on failure: the value is only a better guess.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return Some(next),
                Err(seen) => now = seen,
            }
        }
    }

    /// Orders the end of all senders among the give-backs of the receiver; see `Chan`.
    ///
    /// Returns the position of the next message in an array.
    pub(super) fn touch(&self) -> u64 {
        if weakened!("send_permits_touch_exchanges") {
            return self.word.load(Relaxed) >> TAIL_SHIFT;
        }
        // AcqRel: pairs with the exchange in `add`, in both directions. Setting SEALED has no
        // other effect, because there is no sender left to claim anything.
        let before = self.word.fetch_or(SEALED, AcqRel);
        if before & WAITING != 0 && !weakened!("send_permits_touch_sees_the_forgotten") {
            // Without senders, only futures that were forgotten are in the wait queue. The
            // receiver gives permits to them under the lock, and without an exchange of the
            // word.
            drop(self.state.lock());
        }
        before >> TAIL_SHIFT
    }

    /// Serves waiters with the returned permits, or adds them to the word (R2 to R4, or R1).
    ///
    /// Repeats as often as the wake list fills up. Returns `true` if this ended the channel.
    #[cold]
    fn serve_and_add(&self, mut count: usize) -> bool {
        let mut wake_list = WakeList::new();
        loop {
            let remaining = self.serve(&mut self.state.lock().waiters, count, &mut wake_list);
            wake_list.wake_all();
            if remaining == 0 {
                return false;
            }
            // A thread that emptied the wait queue meanwhile has cleared WAITING.
            if let Some(next) = self.add(remaining) {
                return self.is_idle(next);
            }
            count = remaining;
        }
    }

    /// Gives permits to the waiters in order, under the lock (R3 and R4).
    ///
    /// Returns the number that is left because the wake list is full or no sender waits.
    fn serve(
        &self,
        waiters: &mut WaitQueue<Need>,
        mut count: usize,
        wake_list: &mut WakeList,
    ) -> usize {
        while let Some(need) = waiters.first() {
            if wake_list.is_full() {
                return count;
            }
            let part = count.min(need.missing);
            count -= part;
            need.missing -= part;
            if need.missing > 0 {
                return 0;
            }
            wake_list.push(waiters.dismiss_first());
            if waiters.is_empty() {
                self.end_waiting(count);
                return 0;
            }
        }
        count
    }

    /// Clears WAITING and adds the rest, under the lock, because the wait queue is empty now
    /// (R4).
    fn end_waiting(&self, rest: usize) {
        // Release: the slots were emptied, as in `add`. No permit was free, so the addition does
        // not carry into the tail; if the rest is zero, the sum wraps and so clears the bit.
        let before = self.word.fetch_add((rest as u64 * ONE).wrapping_sub(WAITING), Release);
        // Relaxed, both: `wanted` is written under the lock.
        self.wanted.store(self.wanted.load(Relaxed) & !BY_WAITERS, Relaxed);
        debug_assert!(
            before & WAITING != 0 && self.count_free(before) == 0,
            "no sender waited: {before:#x}"
        );
    }

    /// Takes the free permits or sets WAITING, under the lock (A3 and A4).
    ///
    /// Claims no position, because a position must be used immediately, and the caller must
    /// first drop a waker.
    fn queue(&self, wanted: usize) -> Queued {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & CLOSED != 0 && !weakened!("send_permits_queue_sees_closed") {
                // The closer held the lock before us, so we see what it did.
                return Queued::Closed;
            }
            let taken = self.count_free(now).min(wanted);
            let enough = taken == wanted && !weakened!("send_permits_queue_looks_again");
            let taken = if weakened!("send_permits_queue_looks_again") { 0 } else { taken };
            let mark = if enough { 0 } else { WAITING };
            let next = (now - taken as u64 * ONE) | mark;
            // Acquire: the slots were emptied, also those of a part of the permits. Pairs with
            // the exchange in `add`.
            match self.word.compare_exchange_weak(now, next, Acquire, Relaxed) {
                Ok(_) if enough => return Queued::Taken,
                Ok(_) => return Queued::Missing(wanted - taken),
                Err(seen) => now = seen,
            }
        }
    }

    /// Refuses all waiting senders, and all that will come.
    pub(super) fn close(&self) {
        let mut wake_list = WakeList::new();
        let mut state = self.state.lock();
        // AcqRel: senders that are refused see what was done before the close. Pairs with the
        // Acquire in `try_reserve` and `is_closed`.
        self.word.fetch_or(CLOSED, AcqRel);
        while state.waiters.first().is_some() {
            wake_list.push(state.waiters.dismiss_first());
            if state.waiters.is_empty() {
                self.end_waiting(0);
            }
            if wake_list.is_full() {
                drop(state);
                wake_list.wake_all();
                state = self.state.lock();
            }
        }
        // Relaxed: only the receiver reads it, which is this thread. From now on it gives back
        // immediately.
        self.wanted.store(BY_CLOSE, Relaxed);
        let remaining = self.collect(&mut state, &mut wake_list);
        drop(state);
        wake_list.wake_all();
        // The receiver itself closes, so it need not be woken.
        let _ = self.release(remaining);
    }

    /// Sets `wanted` and collects once more, after a sender joined the wait queue (C1 to C3).
    fn check_again(&self, state: &mut SendPermitsState, wake_list: &mut WakeList) -> usize {
        // Relaxed, both: `wanted` is written under the lock, and the fence orders it.
        self.wanted.store(self.wanted.load(Relaxed) | BY_WAITERS, Relaxed);
        if !weakened!("send_permits_late_fence") {
            // SeqCst: C2. Pairs with the fence in `taken`.
            fence(SeqCst);
        }
        if weakened!("send_permits_late_looks_again") { 0 } else { self.collect(state, wake_list) }
    }

    /// Refuses further claims: the receiver is gone, so permit holders cannot send any more.
    pub(super) fn seal(&self) {
        // AcqRel: orders the seal among the claims. Pairs with the exchanges in `try_reserve` and
        // `claim`.
        self.word.fetch_or(SEALED, AcqRel);
    }
}

/// A future that takes what `request` says, and waits for it in the wait queue.
///
/// Dropping the future at any moment is safe: it gives back everything it was granted.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(super) struct Reserve<'a, R: BoundedQueue> {
    queue: &'a R,
    request: ReserveRequest,
    waiter: Waiter<Need>,
}

impl<'a, R: BoundedQueue> Reserve<'a, R> {
    pub(super) fn new(queue: &'a R, request: ReserveRequest) -> Self {
        let count = request.count();
        Self { queue, request, waiter: Waiter::new(Need { wanted: count, missing: count }) }
    }

    fn waiter(self: Pin<&Self>) -> (&'a SendPermits, Pin<&Waiter<Need>>) {
        let permits = self.queue.permits();
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its destructor
        // runs in place.
        (permits, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Takes the permits or joins the wait queue (A2 to A5).
    #[cold]
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Result<Reserved, Closed>> {
        let (permits, waiter) = self.waiter();
        // Cloned before the lock is taken, because a waker's clone runs user code.
        let waker = cx.waker().clone();
        let mut wake_list = WakeList::new();
        let mut state = permits.state.lock();
        let remaining = permits.collect(&mut state, &mut wake_list);
        let missing = match permits.queue(self.request.count()) {
            Queued::Missing(missing) => missing,
            ended => {
                // Release the lock before the waker is dropped. That drop may panic and must not
                // lose the permits, so the waker is discarded, which contains the panic.
                drop(state);
                wake_list.wake_all();
                self.queue.release(remaining);
                discard(waker);
                let taken = matches!(ended, Queued::Taken);
                return Poll::Ready(if taken { Ok(Reserved::Permit) } else { Err(Closed) });
            }
        };
        // SAFETY: 1. of `with_data`: we own the waiter, and it is OUT. 2. The closure does not
        // call `with_data`.
        unsafe { waiter.with_data(|need| need.missing = missing) };
        // SAFETY: 1. of `join`: we own the waiter, and it is OUT. 2. `Drop` removes it.
        unsafe { state.waiters.join(waiter, waker) };
        let more =
            if permits.is_late() { permits.check_again(&mut state, &mut wake_list) } else { 0 };
        drop(state);
        wake_list.wake_all();
        self.queue.release(remaining + more);
        match waiter.state() {
            WaiterState::Dismissed => Poll::Ready(self.end()),
            _ => Poll::Pending,
        }
    }

    /// Joins the wait queue for a task without budget, which must not complete now (A2 to A5).
    ///
    /// If the task has to wait, it joins the wait queue now, so that no later sender is served
    /// before it. It takes no free permit, because others would wait while this task cannot use it.
    #[cold]
    fn queue_up(self: Pin<&Self>, cx: &Context<'_>) {
        let (permits, waiter) = self.waiter();
        let count = self.request.count();
        let need_not_wait = permits.is_closed() || permits.free() >= count;
        if waiter.state() != WaiterState::Out
            || need_not_wait
            || weakened!("send_permits_without_budget_queue")
        {
            return;
        }
        let polled = self.begin(cx);
        if polled == Poll::Ready(Ok(Reserved::Permit))
            && !weakened!("send_permits_without_budget_give_back")
        {
            // The permits became free after the check above, so give them back.
            self.queue.release(count);
        }
    }

    /// Makes sure that the current waker is woken, for a waiter that is still in the wait queue.
    ///
    /// If the waiter was dismissed meanwhile, returns its result.
    #[cold]
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Result<Reserved, Closed>> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. of `update_waker`: we own the waiter. 2. It joined the wait queue behind this
        // lock.
        let is_dismissed =
            unsafe { update_waker(&permits.state, |state| &mut state.waiters, waiter, cx.waker()) };
        if is_dismissed { Poll::Ready(self.end()) } else { Poll::Pending }
    }

    /// Returns the result of a dismissed waiter: served, or refused by a close.
    ///
    /// A close also refuses a waiter that was served and not polled since. Its permits are given
    /// back, and may be the last.
    fn end(self: Pin<&Self>) -> Result<Reserved, Closed> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. of `with_data`: we own the waiter, and it is DISMISSED. 2. The closure does
        // not call `with_data`.
        let (acquired, missing) =
            unsafe { waiter.with_data(|need| (need.wanted - need.missing, need.missing)) };
        waiter.settle();
        if missing == 0 && !permits.is_closed() {
            return Ok(Reserved::Permit);
        }
        if !weakened!("send_permits_close_refunds") {
            self.queue.release(acquired);
        }
        Err(Closed)
    }

    /// Leaves the wait queue; the permits that were granted go to the next waiter.
    #[cold]
    fn give_up(self: Pin<&Self>) {
        let (permits, waiter) = self.waiter();
        let mut wake_list = WakeList::new();
        let mut state = permits.state.lock();
        // SAFETY: 1. of `remove`: we own the waiter. 2. This is the wait queue that it joined.
        let Some(waker) = (unsafe { state.waiters.remove(waiter) }) else {
            // The waiter was dismissed after the caller looked.
            drop(state);
            return self.give_back();
        };
        // SAFETY: 1. of `with_data`: we own the waiter, and it is OUT. 2. The closure does not
        // call `with_data`.
        let acquired = unsafe { waiter.with_data(|need| need.wanted - need.missing) };
        let acquired = if weakened!("send_permits_drop_passes_on") { 0 } else { acquired };
        let remaining = if state.waiters.is_empty() {
            permits.end_waiting(acquired);
            0
        } else {
            permits.serve(&mut state.waiters, acquired, &mut wake_list)
        };
        drop(state);
        wake_list.wake_all();
        self.queue.release(remaining);
        // The waker is dropped last, because its drop may panic, and everything else is done by
        // now.
        drop(waker);
    }

    /// Gives back the permits of a waiter that was served and never polled again.
    #[cold]
    fn give_back(self: Pin<&Self>) {
        if self.end().is_ok() && !weakened!("send_permits_drop_gives_back") {
            self.queue.release(self.request.count());
        }
    }
}

impl<R: BoundedQueue> Future for Reserve<'_, R> {
    type Output = Result<Reserved, Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_ref();
        let Poll::Ready(unit) = budget::poll_proceed(cx) else {
            this.queue_up(cx);
            return Poll::Pending;
        };
        let polled = match this.waiter.state() {
            WaiterState::Out => match this.queue.permits().try_reserve(this.request) {
                Ok(reserved) => Poll::Ready(Ok(reserved)),
                Err(TryReserveError::Closed) => Poll::Ready(Err(Closed)),
                Err(TryReserveError::Full) => this.begin(cx),
            },
            WaiterState::In => this.go_on(cx),
            WaiterState::Dismissed => Poll::Ready(this.end()),
        };
        if polled.is_ready() {
            unit.spend();
        } else {
            thread_context::waits_for(WaitReason::Room);
        }
        polled
    }
}

impl<R: BoundedQueue> Drop for Reserve<'_, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        match this.waiter.state() {
            WaiterState::Out => {}
            WaiterState::In => this.give_up(),
            WaiterState::Dismissed => this.give_back(),
        }
    }
}
