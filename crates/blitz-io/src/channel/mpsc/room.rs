//! The room of a bounded channel: who may send, and into which slot.
//!
//! The protocol is that of the engine's permits (`engine/wait/permits.rs`), in one word
//! with the position of the next message. So to send while there is room is one exchange,
//! which takes a permit and a position together.
//!
//! # Protocol
//! The word holds three bits, the free permits, and the tail: the position of the next
//! message. A short channel is a ring, and its tail runs through the ring twice (so that
//! full and empty differ) and begins again. A long one has blocks, which count their
//! positions themselves: then the permits have the whole word.
//!
//! ```text
//! who wants to send                         who gives permits back: the receiver
//! A1 a permit is free: takes it, and the    R1 not WAITING: adds them, done
//!    position too if the message is there   R2 WAITING: locks the line
//! A2 locks the line                         R3 gives them to the first in line, who
//! A3 enough are free now: takes them           leaves when it has all it wants; then to
//! A4 takes what is free and sets WAITING,      the next
//!    in one exchange                        R4 the line is empty: clears WAITING and adds
//! A5 joins the line                            the rest, in one exchange
//! A6 has a permit, and now a message:
//!    takes a position, if not SEALED
//! ```
//! A4 and R1 exchange the same word, so one comes first. If R1, A4 fails and looks again
//! (A3): no permit slips through. If A4, R1 finds WAITING and comes to the lock after A5.
//!
//! CLOSED is set under the lock, where A3 looks for it: nobody joins behind it, and nobody
//! takes a permit. (A long line is dismissed in batches; in between, R3 may still serve one
//! of it.) Who was in line is refused when it looks, whatever it was given, and gives that
//! back. Who has a permit may still send (A6), until the receiver is gone: SEALED.
//! Then each position below the tail is put, or will be in a few instructions, and
//! there will be no other: the receiver drops all of them, whoever comes later its own.
//!
//! A task without budget may not complete. It takes its place in line if there has to be
//! one, and else comes back at its next turn, without permits.
//!
//! Free permits, permits held, and messages between head and tail are as many as the
//! capacity, always, but for what a receiver has taken and not told (below). So 'CLOSED and
//! all free' says at one look that nothing is queued and nobody may send. Whoever gives the
//! last permit back then wakes the receiver, which lent its waker before that look.
//!
//! **The receiver of a long channel gives back late.** An exchange of the word for each
//! message would make the receiver's core and the senders' fight for one cache line. So it
//! only counts what it has taken, on a line of its own, and whoever finds too few permits
//! collects them from that count. The two must not miss each other:
//!
//! ```text
//! who waits, under the lock                 the receiver
//! C1 joins the line and sets `wanted`       T1 counts what it took
//! C2 fence                                  T2 fence
//! C3 collects: the count is not what it     T3 reads `wanted`: set, so it collects
//!    was told, and the rest goes to the        under the lock
//!    first in line
//! ```
//! One of C2 and T2 comes first: C3 sees T1, or T3 sees C1. What was told is kept under
//! the lock, so nothing is collected twice. After a close `wanted` stays set, and before
//! the receiver waits it collects itself: what follows holds for every channel then.
//!
//! **The slot is free.** A position is taken in the order of the word, after the receiver
//! gave back the permit of the message that was there before: by the sum above, not more
//! than the capacity is between head and tail. The new sender must also see that the slot
//! was emptied. A permit comes back through the word, by a Release; or it is handed over
//! under the lock (R3), and the word does not change. Then only its new holder has seen the
//! slot emptied, and another one may get that slot. Therefore A6 is a Release, too: who
//! takes a position sees where the permits of all positions before it came from. By the
//! sum, these are the permits of all messages that had to leave before.
//!
//! # Invariants
//! - WAITING is set exactly if the line is not empty, whenever the lock is free; and while
//!   it is set no permit is free. So nobody overtakes the line.
//! - Only the first in line has been given a part of what it wants.
//!
//! # Rejected
//! - Permits as they are, and a tail beside them: one more exchange per message.
//! - The asymmetric barrier instead of the fence: who waits would pay with a system call
//!   for each wait, and the fence costs the receiver no more than the exchange did.
//! - Handing a position to who waits, with the permit: the receiver, and every other
//!   sender behind it, would wait for a task that may sleep for long.
//! - A ring for every capacity: programs ask for millions to say 'practically unbounded'.
//!
//! # Checked by
//! `two_senders_and_room_for_one_hand_over`, `a_waiting_sender_dropped_against_a_recv`,
//! `a_permit_dropped_after_close_ends_the_receiver`, `close_against_a_waiting_sender`,
//! `close_of_a_long_line_against_a_permit_that_comes_back`,
//! `the_last_permit_of_a_long_channel_against_a_recv_ends_it`,
//! `a_permit_sent_against_the_drop_of_the_receiver_is_dropped_once`,
//! `a_part_of_many_against_close_ends_the_receiver`,
//! `a_slot_emptied_for_one_in_line_is_seen_by_whoever_claims_it`,
//! `the_last_sender_of_a_full_channel_dropped_against_a_recv_ends_it`,
//! `the_last_sender_against_a_recv_that_serves_the_forgotten_ends_it`,
//! `a_sender_without_budget_takes_its_place_in_line`,
//! `a_sender_without_budget_against_a_recv_is_served`,
//! `a_sender_that_waits_against_a_late_give_back_is_served`,
//! `the_last_sender_dropped_against_a_late_give_back_ends_it`; weakened as
//! `room_queue_looks_again`, `room_release_sees_waiting`, `room_queue_sees_closed`,
//! `room_drop_passes_on`, `room_drop_gives_back`, `room_idle_wakes`,
//! `room_take_acquire`, `room_sealed_refuses`, `room_close_refunds`,
//! `room_claim_passes_on`, `room_without_budget_queue`, `room_without_budget_give_back`,
//! `room_touch_exchanges`, `room_touch_sees_the_forgotten`, `room_late_fence`,
//! `room_late_looks_again`, `room_late_is_wanted`, `room_late_told`.
//! In sequence: `a_bounded_channel_behaves_as_a_simple_model`.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::engine::{
    prim::{
        AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        bolt::Bolted,
        discard, fence, weakened,
    },
    wait::{
        batch::Batch,
        keep::keep_waker,
        line::{Line, Place, Waiter},
    },
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

const CLOSED: u64 = 1;
const WAITING: u64 = 1 << 1;
const SEALED: u64 = 1 << 2;
const SHIFT: u32 = 3;
const ONE: u64 = 1 << SHIFT;

/// The tail of a ring has the upper bits, twice as many positions as it has slots.
const TAIL_SHIFT: u32 = 33;
const TAIL_ONE: u64 = 1 << TAIL_SHIFT;

/// The longest ring that the word could count. The channel sets a much lower limit.
pub(super) const MOST_OF_A_RING: usize = (1 << (TAIL_SHIFT - SHIFT)) - 1;

/// The shortest channel whose receiver gives back late: picked. In a shorter one senders
/// would collect every few messages.
const LATE_FROM: usize = if cfg!(blitz_loom) { 2 } else { 16 };

/// Bits of `wanted`: somebody waits, the channel is closed.
const BY_THE_LINE: u32 = 1;
const BY_THE_CLOSE: u32 = 1 << 1;

/// See the module. What each message needs of a sender comes first, and shares a cache
/// line.
#[repr(C)]
pub(super) struct Room {
    word: AtomicU64,
    /// The bits of the word that count the free permits.
    mask: u64,
    /// Where the tail begins again; zero for a channel that has blocks.
    lap: u64,
    capacity: usize,
    desk: Bolted<Desk>,
    /// How many messages the receiver has taken, if it gives back late. It alone writes it.
    taken: AtomicUsize,
    /// Whether the receiver has to collect for others what it counts. Written under the
    /// lock.
    wanted: AtomicU32,
}

/// What is behind the lock.
struct Desk {
    line: Line<Need>,
    /// So many of what was taken were given back.
    told: usize,
}

/// What has a room: a bounded queue.
pub(super) trait Roomy {
    fn room(&self) -> &Room;

    /// Wakes the receiver: the channel is closed, and the last permit came back.
    fn rouse(&self);

    /// Gives permits back: to those who wait first.
    #[inline]
    fn release(&self, count: usize) {
        if self.room().release(count) {
            self.rouse();
        }
    }

    /// Enters now or not at all, also with what was not given back yet.
    #[inline]
    fn try_enter(&self, want: Want) -> Result<Entry, NotNow> {
        match self.room().enter(want) {
            Err(NotNow::Full) if self.room().is_late() => self.try_enter_again(want),
            entered => entered,
        }
    }

    #[cold]
    fn try_enter_again(&self, want: Want) -> Result<Entry, NotNow> {
        self.collect();
        self.room().enter(want)
    }

    /// How many permits are free now; none while somebody waits.
    fn free(&self) -> usize {
        self.collect();
        self.room().free()
    }

    fn collect(&self) {
        if self.room().is_late() {
            let left = self.room().collect_all();
            self.release(left);
        }
    }
}

/// What one in line waits for.
struct Need {
    wanted: usize,
    /// Of these it has not been given so many. Not zero for one who was dismissed by a
    /// close: it gives its part back itself.
    missing: usize,
}

/// The channel was closed by its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// Why one may not send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotNow {
    Closed,
    /// Too few permits are free, or others wait for them.
    Full,
}

/// What one got.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// A permit and a position, into which a message must be put at once.
    At(u64),
    /// Permits only.
    Permit,
}

/// What one wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// To send one message, which is there. In a ring that takes the position, too.
    Send,
    /// So many permits.
    Permits(usize),
}

impl Want {
    #[inline]
    fn count(self) -> usize {
        match self {
            Want::Send => 1,
            Want::Permits(count) => count,
        }
    }
}

/// How an attempt to queue ended.
#[must_use]
enum Queued {
    /// The permits are the caller's: nothing to wait for.
    Taken,
    Closed,
    /// So many are missing: join the line.
    Missing(usize),
}

impl Room {
    /// All of it free. The first position of a ring is zero.
    pub(super) fn new(capacity: usize, is_ring: bool) -> Self {
        debug_assert!(!is_ring || capacity <= MOST_OF_A_RING);
        // A ring has the bits below its tail; otherwise there is no tail.
        let mask = if is_ring { TAIL_ONE - ONE } else { !(ONE - 1) };
        Self {
            word: AtomicU64::new((capacity as u64) << SHIFT),
            mask,
            lap: if is_ring { 2 * capacity as u64 } else { 0 },
            capacity,
            desk: Bolted::new(Desk { line: Line::new(), told: 0 }),
            taken: AtomicUsize::new(0),
            wanted: AtomicU32::new(0),
        }
    }

    /// Whether the receiver gives back late.
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
        // It is at most the capacity.
        ((now & self.mask) >> SHIFT) as usize
    }

    /// How many permits are free now, after [`collect_all`](Self::collect_all); none while
    /// somebody waits.
    fn free(&self) -> usize {
        // Acquire: who counts sees what was done before they came back. Pairs with the
        // Release in `add`.
        self.count_free(self.word.load(Acquire))
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: pairs with the AcqRel in `close`.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// Whether nothing is queued, nobody may send, and nobody ever will.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in `add` of those who gave up.
        self.is_idle(self.word.load(Acquire))
    }

    #[inline]
    fn is_idle(&self, now: u64) -> bool {
        now & CLOSED != 0 && self.count_free(now) == self.capacity
    }

    /// In a ring: how many messages are between `head` and the tail.
    pub(super) fn distance(&self, head: u64) -> usize {
        // Acquire: a look at what others sent. Pairs with the exchanges in `enter`.
        let tail = self.word.load(Acquire) >> TAIL_SHIFT;
        let distance = if tail >= head { tail - head } else { tail + self.lap - head };
        // It is at most the capacity.
        distance as usize
    }

    /// The head of a ring after this one.
    #[inline]
    pub(super) fn after(&self, head: u64) -> u64 {
        if head + 1 == self.lap { 0 } else { head + 1 }
    }

    /// The slot of a position in a ring.
    #[inline]
    pub(super) fn place(&self, position: u64) -> usize {
        // It is less than twice the capacity.
        let position = position as usize;
        if position >= self.capacity { position - self.capacity } else { position }
    }

    /// The word after one more position.
    #[inline]
    fn step(&self, now: u64) -> u64 {
        if (now >> TAIL_SHIFT) + 1 == self.lap { now & (TAIL_ONE - 1) } else { now + TAIL_ONE }
    }

    /// The word after an entry, which the word has room for.
    #[inline]
    fn entered(&self, now: u64, want: Want) -> (u64, Entry) {
        let next = now - want.count() as u64 * ONE;
        if want == Want::Send && self.lap != 0 {
            (self.step(next), Entry::At(now >> TAIL_SHIFT))
        } else {
            (next, Entry::Permit)
        }
    }

    /// A1.
    #[inline]
    pub(super) fn enter(&self, want: Want) -> Result<Entry, NotNow> {
        let order = if weakened!("room_take_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: who sees CLOSED sees what was done before, and who takes
        // a permit sees the slot emptied. Pairs with the AcqRel in `close` and the Release
        // in `add`.
        let mut now = self.word.load(order);
        loop {
            if now & CLOSED != 0 {
                return Err(NotNow::Closed);
            }
            // While somebody waits none is free.
            if self.count_free(now) < want.count() {
                return Err(NotNow::Full);
            }
            let (next, entry) = self.entered(now, want);
            match self.word.compare_exchange_weak(now, next, order, order) {
                Ok(_) => return Ok(entry),
                Err(seen) => now = seen,
            }
        }
    }

    /// T1 to T3, or a give-back at once: the receiver took `count` messages, whose slots are
    /// empty.
    #[inline]
    pub(super) fn taken(&self, count: usize) {
        if !self.is_late() {
            // It is the receiver who gives back: it need not be told.
            let _ = self.release(count);
            return;
        }
        // Relaxed: only we write it.
        let taken = self.taken.load(Relaxed).wrapping_add(count);
        // Release: the slots were emptied. Pairs with the Acquire in `collect`.
        self.taken.store(taken, Release);
        if !weakened!("room_late_fence") {
            // SeqCst: T2. Pairs with the fence in `join`.
            fence(SeqCst);
        }
        // Relaxed: the fence orders it.
        if self.wanted.load(Relaxed) != 0 && !weakened!("room_late_is_wanted") {
            self.settle();
        }
    }

    /// The receiver collects itself, and so exchanges the word, or sees by the lock what
    /// the one did who collected before.
    #[cold]
    pub(super) fn settle(&self) {
        if self.is_late() {
            let left = self.collect_all();
            // As in `taken`.
            let _ = self.release(left);
        }
    }

    /// What was taken and not told is free again. The caller releases what is left: there
    /// are more in line than one batch of wakers.
    fn collect_all(&self) -> usize {
        let mut batch = Batch::new();
        let left = self.collect(&mut self.desk.lock(), &mut batch);
        batch.wake_all();
        left
    }

    /// The same under the lock: for the first in line, or for all.
    fn collect(&self, desk: &mut Desk, batch: &mut Batch) -> usize {
        // Acquire: the slots were emptied. Pairs with the Release in `taken`.
        let taken = self.taken.load(Acquire);
        let count = taken.wrapping_sub(desk.told);
        if !weakened!("room_late_told") {
            desk.told = taken;
        }
        if count == 0 {
            return 0;
        }
        if !desk.line.is_empty() {
            return self.serve(&mut desk.line, count, batch);
        }
        // AcqRel: as in `add`. Nobody begins to wait meanwhile: that takes the lock.
        self.word.fetch_add(count as u64 * ONE, AcqRel);
        0
    }

    /// A6: a position in the ring for one who has a permit; `None` if the receiver is gone.
    #[inline]
    pub(super) fn claim(&self) -> Option<u64> {
        let order = if weakened!("room_claim_passes_on") { Acquire } else { AcqRel };
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & SEALED != 0 && !weakened!("room_sealed_refuses") {
                return None;
            }
            // Acquire: the slot was emptied, perhaps for another permit than ours. Release:
            // our permit may have come from the lock, and another claim gets the slot that
            // was emptied for it. Pairs with the exchange in `add`, with itself and with
            // those in `enter` and `queue`.
            match self.word.compare_exchange_weak(now, self.step(now), order, Relaxed) {
                Ok(_) => return Some(now >> TAIL_SHIFT),
                Err(seen) => now = seen,
            }
        }
    }

    /// Gives permits back: to those who wait first. `true` if the channel is over by this,
    /// and the receiver must be told.
    #[inline]
    #[must_use]
    pub(super) fn release(&self, count: usize) -> bool {
        if count == 0 {
            return false;
        }
        match self.add(count) {
            Some(next) => next & CLOSED != 0 && self.is_idle(next) && !weakened!("room_idle_wakes"),
            None => self.serve_and_add(count),
        }
    }

    /// R1, with the word after it; `None` if somebody waits.
    #[inline]
    fn add(&self, count: usize) -> Option<u64> {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & WAITING != 0 && !weakened!("room_release_sees_waiting") {
                return None;
            }
            let next = now + count as u64 * ONE;
            debug_assert!(self.count_free(next) <= self.capacity, "a permit was made: {next:#x}");
            // AcqRel: the slots were emptied, for the Acquire in `enter`, `claim`, `queue` and
            // `touch`; and who sees the last of all or `touch` sees what was done before.
            // Relaxed on failure: a better guess.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return Some(next),
                Err(seen) => now = seen,
            }
        }
    }

    /// Orders the end of all senders among the give-backs of the receiver: see `Chan`.
    /// Answers with the position of the next message in a ring.
    pub(super) fn touch(&self) -> u64 {
        if weakened!("room_touch_exchanges") {
            return self.word.load(Relaxed) >> TAIL_SHIFT;
        }
        // AcqRel: pairs with the exchange in `add`, in both directions. The bit that is set
        // matters to nobody: there is no sender to claim anything.
        let before = self.word.fetch_or(SEALED, AcqRel);
        if before & WAITING != 0 && !weakened!("room_touch_sees_the_forgotten") {
            // Without senders only futures that were forgotten are in line. What the receiver
            // gives to them it gives under the lock, and without an exchange of the word.
            drop(self.desk.lock());
        }
        before >> TAIL_SHIFT
    }

    /// R2 to R4, as often as a batch of wakers is full, or R1 after all.
    #[cold]
    fn serve_and_add(&self, mut count: usize) -> bool {
        let mut batch = Batch::new();
        loop {
            let left = self.serve(&mut self.desk.lock().line, count, &mut batch);
            batch.wake_all();
            if left == 0 {
                return false;
            }
            // Whoever emptied the line meanwhile cleared WAITING.
            if let Some(next) = self.add(left) {
                return self.is_idle(next);
            }
            count = left;
        }
    }

    /// R3 and R4, under the lock. Answers with what is left to give: the batch is full,
    /// or nobody waits.
    fn serve(&self, line: &mut Line<Need>, mut count: usize, batch: &mut Batch) -> usize {
        while let Some(need) = line.first() {
            if batch.is_full() {
                return count;
            }
            let part = count.min(need.missing);
            count -= part;
            need.missing -= part;
            if need.missing > 0 {
                return 0;
            }
            batch.push(line.dismiss_first());
            if line.is_empty() {
                self.end_waiting(count);
                return 0;
            }
        }
        count
    }

    /// R4, under the lock: the line is empty now.
    fn end_waiting(&self, rest: usize) {
        // Release: as in `add`. No permit was free, so nothing reaches into the tail;
        // without a rest the sum wraps, and so clears the bit.
        let before = self.word.fetch_add((rest as u64 * ONE).wrapping_sub(WAITING), Release);
        // Relaxed, both: it is written under the lock.
        self.wanted.store(self.wanted.load(Relaxed) & !BY_THE_LINE, Relaxed);
        debug_assert!(
            before & WAITING != 0 && self.count_free(before) == 0,
            "nobody waited: {before:#x}"
        );
    }

    /// A3 and A4, under the lock. It takes no position: that must be used at once, and the
    /// caller has a waker to drop first.
    fn queue(&self, wanted: usize) -> Queued {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & CLOSED != 0 && !weakened!("room_queue_sees_closed") {
                // The closer had the lock before us, so we see what it did.
                return Queued::Closed;
            }
            let taken = self.count_free(now).min(wanted);
            let enough = taken == wanted && !weakened!("room_queue_looks_again");
            let taken = if weakened!("room_queue_looks_again") { 0 } else { taken };
            let mark = if enough { 0 } else { WAITING };
            let next = (now - taken as u64 * ONE) | mark;
            // Acquire: the slots were emptied, also for the part of them. Pairs with the
            // exchange in `add`.
            match self.word.compare_exchange_weak(now, next, Acquire, Relaxed) {
                Ok(_) if enough => return Queued::Taken,
                Ok(_) => return Queued::Missing(wanted - taken),
                Err(seen) => now = seen,
            }
        }
    }

    /// Refuses everybody who waits, and who will come.
    pub(super) fn close(&self) {
        let mut batch = Batch::new();
        let mut desk = self.desk.lock();
        // AcqRel: what was done before the close is seen by those who are refused. Pairs
        // with the Acquire in `enter` and `is_closed`.
        self.word.fetch_or(CLOSED, AcqRel);
        while desk.line.first().is_some() {
            batch.push(desk.line.dismiss_first());
            if desk.line.is_empty() {
                self.end_waiting(0);
            }
            if batch.is_full() {
                drop(desk);
                batch.wake_all();
                desk = self.desk.lock();
            }
        }
        // Relaxed: we are the receiver, who reads it. From now on it gives back at once.
        self.wanted.store(BY_THE_CLOSE, Relaxed);
        let left = self.collect(&mut desk, &mut batch);
        drop(desk);
        batch.wake_all();
        // The receiver is the one who closes: it need not be told.
        let _ = self.release(left);
    }

    /// The rest of C1, then C2 and C3, after somebody joined the line.
    fn look_again(&self, desk: &mut Desk, batch: &mut Batch) -> usize {
        // Relaxed, both: it is written under the lock, and the fence orders it.
        self.wanted.store(self.wanted.load(Relaxed) | BY_THE_LINE, Relaxed);
        if !weakened!("room_late_fence") {
            // SeqCst: C2. Pairs with the fence in `taken`.
            fence(SeqCst);
        }
        if weakened!("room_late_looks_again") { 0 } else { self.collect(desk, batch) }
    }

    /// The receiver is gone: who has a permit cannot use it any more.
    pub(super) fn seal(&self) {
        // AcqRel: orders it among the claims. Pairs with the exchanges in `enter` and
        // `claim`.
        self.word.fetch_or(SEALED, AcqRel);
    }
}

/// Wants something, and waits for it in line.
///
/// Dropping the future at any moment is safe: it then has nothing.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(super) struct Wish<'a, R: Roomy> {
    queue: &'a R,
    want: Want,
    waiter: Waiter<Need>,
}

impl<'a, R: Roomy> Wish<'a, R> {
    pub(super) fn new(queue: &'a R, want: Want) -> Self {
        let count = want.count();
        Self { queue, want, waiter: Waiter::new(Need { wanted: count, missing: count }) }
    }

    fn waiter(self: Pin<&Self>) -> (&'a Room, Pin<&Waiter<Need>>) {
        let room = self.queue.room();
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (room, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// A2 to A5.
    #[cold]
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Result<Entry, Closed>> {
        let (room, waiter) = self.waiter();
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut batch = Batch::new();
        let mut desk = room.desk.lock();
        let left = room.collect(&mut desk, &mut batch);
        let missing = match room.queue(self.want.count()) {
            Queued::Missing(missing) => missing,
            ended => {
                // The lock first, then the waker: its drop may panic, and must not lose the
                // permits, so it is dropped where nothing can come of it.
                drop(desk);
                batch.wake_all();
                self.queue.release(left);
                discard(waker);
                let taken = matches!(ended, Queued::Taken);
                return Poll::Ready(if taken { Ok(Entry::Permit) } else { Err(Closed) });
            }
        };
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        unsafe { waiter.with_data(|need| need.missing = missing) };
        // SAFETY: 1. as above. 2. `Drop` does.
        unsafe { desk.line.join(waiter, waker) };
        let more = if room.is_late() { room.look_again(&mut desk, &mut batch) } else { 0 };
        drop(desk);
        batch.wake_all();
        self.queue.release(left + more);
        match waiter.place() {
            Place::Left => Poll::Ready(self.end()),
            _ => Poll::Pending,
        }
    }

    /// A2 to A5 without budget: the task may not complete, and runs again after the others.
    /// If it has to wait it takes its place now, so that nobody who comes later is served
    /// before it. It takes no permit that is free: others would wait while it cannot use it.
    #[cold]
    fn queue_up(self: Pin<&Self>, cx: &Context<'_>) {
        let (room, waiter) = self.waiter();
        let count = self.want.count();
        let need_not_wait = room.is_closed() || room.free() >= count;
        if waiter.place() != Place::Out || need_not_wait || weakened!("room_without_budget_queue") {
            return;
        }
        let polled = self.begin(cx);
        if polled == Poll::Ready(Ok(Entry::Permit)) && !weakened!("room_without_budget_give_back") {
            // They came back a moment ago.
            self.queue.release(count);
        }
    }

    /// In line, as far as we know: sees that the right task will be woken.
    #[cold]
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Result<Entry, Closed>> {
        let (room, waiter) = self.waiter();
        // SAFETY: 1. we own it. 2. It joined this line.
        let left = unsafe { keep_waker(&room.desk, |desk| &mut desk.line, waiter, cx.waker()) };
        if left { Poll::Ready(self.end()) } else { Poll::Pending }
    }

    /// Dismissed: served, or refused by a close, which also refuses who was served and has
    /// not looked. What that one was given comes back, and may be the last.
    fn end(self: Pin<&Self>) -> Result<Entry, Closed> {
        let (room, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it has LEFT. 2. It does not.
        let (held, missing) =
            unsafe { waiter.with_data(|need| (need.wanted - need.missing, need.missing)) };
        waiter.settle();
        if missing == 0 && !room.is_closed() {
            return Ok(Entry::Permit);
        }
        if !weakened!("room_close_refunds") {
            self.queue.release(held);
        }
        Err(Closed)
    }

    /// Leaves the line; what it was given goes to the next.
    #[cold]
    fn give_up(self: Pin<&Self>) {
        let (room, waiter) = self.waiter();
        let mut batch = Batch::new();
        let mut desk = room.desk.lock();
        // SAFETY: 1. we own the waiter. 2. This is the line it joined.
        let Some(waker) = (unsafe { desk.line.remove(waiter) }) else {
            // Dismissed a moment ago.
            drop(desk);
            return self.give_back();
        };
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        let held = unsafe { waiter.with_data(|need| need.wanted - need.missing) };
        let held = if weakened!("room_drop_passes_on") { 0 } else { held };
        let left = if desk.line.is_empty() {
            room.end_waiting(held);
            0
        } else {
            room.serve(&mut desk.line, held, &mut batch)
        };
        drop(desk);
        batch.wake_all();
        self.queue.release(left);
        // Last: dropping it may panic, and everything is done by now.
        drop(waker);
    }

    /// Gives back what was granted and nobody looked at.
    #[cold]
    fn give_back(self: Pin<&Self>) {
        if self.end().is_ok() && !weakened!("room_drop_gives_back") {
            self.queue.release(self.want.count());
        }
    }
}

impl<R: Roomy> Future for Wish<'_, R> {
    type Output = Result<Entry, Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_ref();
        let Poll::Ready(unit) = budget::proceed(cx) else {
            this.queue_up(cx);
            return Poll::Pending;
        };
        let polled = match this.waiter.place() {
            Place::Out => match this.queue.room().enter(this.want) {
                Ok(entry) => Poll::Ready(Ok(entry)),
                Err(NotNow::Closed) => Poll::Ready(Err(Closed)),
                Err(NotNow::Full) => this.begin(cx),
            },
            Place::In => this.go_on(cx),
            Place::Left => Poll::Ready(this.end()),
        };
        if polled.is_ready() {
            unit.spend();
        } else {
            current::waits_for(Wait::Room);
        }
        polled
    }
}

impl<R: Roomy> Drop for Wish<'_, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        match this.waiter.place() {
            Place::Out => {}
            Place::In => this.give_up(),
            Place::Left => this.give_back(),
        }
    }
}
