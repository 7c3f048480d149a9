//! The readiness of one file descriptor, and the tasks that wait for it to change.
//!
//! A record is one atomic word, a waker for each direction, and wait queues of futures. It lies in
//! the table of `record_table.rs` for as long as the driver lives. Registrations use it one after
//! another; the generation in the word says which of them it belongs to.
//!
//! # Protocol
//! ```text
//! | generation | events  | unused | SHUTDOWN | WAITERS | ready  |
//! |  32 bits   | 16 bits | 6 bits |  1 bit   |  1 bit  | 8 bits |
//! ```
//! ```text
//! the driver has an event                   a task wants to read
//! E1 exchanges the word: sets bits, adds    T1 loads the word: if ready, returns
//!    one to `events`; if the generation     T2 registers its waker in the cell
//!    differs, the event is dropped          T3 loads the word again: if ready, returns
//! E2 if the bits for this direction were    T4 sleeps
//!    all clear: takes the waker from the
//!    cell
//! E3 if the word had WAITERS: locks the wait
//!    queues and dismisses the waiters that
//!    the event concerns
//! ```
//! T2 and E2 exchange the cell, so one comes first. If E2, T3 sees E1; if T2, E2 finds the waker.
//! An event that finds a bit set already need not take a waker: a task sleeps only if T3 saw the
//! bit clear, and the event that sets a clear bit takes the waker.
//!
//! A future that waits does T2 and T3 in one step: while it holds the lock of the wait queues it
//! exchanges the word, which is not ready, for one with WAITERS, and joins a queue. E1 exchanges
//! the same word. If E1 is first, the future sees the bits; otherwise E1 finds WAITERS, and E3
//! waits for the lock until the future has joined.
//!
//! An operation that would block clears the bits that it relied on, but only if the event count
//! (`events`) is the same as when it loaded the word. An event in between has changed the event
//! count; then nothing is cleared, and the operation is tried once more. Closed ends stay set,
//! except when one of the runtime's own operations, which would have completed had the end been
//! closed, finds that it would block.
//!
//! A record ends with its registration: the exchange that changes its generation comes before the
//! record is given to the next registration. An event that did E1 before that exchange may do E2
//! and E3 after it and wake a task of the next registration; that task finds nothing ready and
//! waits again.
//!
//! # Invariants
//! - Whenever the lock is free, WAITERS is set exactly if some wait queue is not empty; it changes
//!   only under the lock.
//! - Once set, SHUTDOWN stays set until the driver is dropped.
//! - No waker is cloned, called or dropped under the lock.
//!
//! # Rejected
//! - A lock around the wakers: every event would take it, though most events find one waker or
//!   none.
//! - Waking for each event: on a socket that is registered for both directions, every arriving byte
//!   is an event that also says 'writable'.
//! - One wait queue for all interests: each readable byte would pass over, or wake, the tasks that
//!   wait to write. The few waiters with any other interest share one queue; they are woken for
//!   every event, and join again.
//! - The event count as the mark of which waiters joined before an event: it wraps around while one
//!   task waits to write and another reads. The wait queues have a counter of their own.
//!
//! # Checked by
//! `an_event_against_a_poll_is_not_lost`, `an_event_against_a_wait_is_not_lost`,
//! `two_events_against_two_directions_wake_both`,
//! `a_wait_dropped_against_an_event_leaves_the_queue_in_order`,
//! `an_event_against_a_clear_is_not_lost`, `an_event_against_a_refutation_is_not_lost`,
//! `refuted_readiness_is_open_again`, `an_event_of_the_last_registration_does_not_reach_the_next`,
//! `a_record_that_ends_against_an_event_keeps_no_waker`,
//! `leaked_waits_leave_with_their_registration`,
//! `more_leaked_waits_than_a_wake_list_leave_against_an_event`,
//! `a_shutdown_against_a_poll_ends_it`, `a_shutdown_against_a_wait_ends_it`,
//! `a_clear_against_a_shutdown_keeps_it`, `a_full_wake_list_against_a_wait_that_joins_again`,
//! `a_new_waker_against_an_event_is_woken`, `writes_before_an_event_are_seen_after_it`;
//! weakened as `ready_poll_checks_again`, `ready_wait_checks_again`, `ready_event_sees_waiters`,
//! `ready_clear_minds_the_event_count`, `ready_refute_minds_the_event_count`, `ready_refute_opens`,
//! `ready_event_minds_the_generation`, `ready_end_dismisses`, `ready_end_takes_wakers`,
//! `ready_shutdown_wakes`, `ready_clear_keeps_shutdown`, `ready_drop_leaves_the_queue`,
//! `ready_publishes`.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::{interest::Interest, ready::Ready};
use crate::engine::{
    prim::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
        store_lock::{StoreLock, StoreLockGuard},
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::WakeList,
        waker_cell::WakerCell,
    },
};

const READY: u64 = 0xff;
const WAITERS: u64 = 1 << 8;
const SHUTDOWN: u64 = 1 << 9;
const EVENT_COUNT_SHIFT: u32 = 16;
const EVENT_COUNT: u64 = 0xffff << EVENT_COUNT_SHIFT;
const GENERATION_SHIFT: u32 = 32;

/// The bits for closed ends.
const CLOSED: Ready = Ready::READ_CLOSED.with(Ready::WRITE_CLOSED);

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    /// Returns the readiness that ends a wait in this direction.
    #[inline]
    pub(crate) const fn mask(self) -> Ready {
        match self {
            Self::Read => Interest::READABLE.mask(),
            Self::Write => Interest::WRITABLE.mask(),
        }
    }
}

/// A snapshot of a record's readiness, which is cleared only if no event has come since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyEvent {
    ready: Ready,
    event_count: u16,
    is_shutdown: bool,
}

impl ReadyEvent {
    #[inline]
    fn new(word: u64, mask: Ready) -> Self {
        Self {
            ready: ready_of(word) & mask,
            event_count: (word >> EVENT_COUNT_SHIFT) as u16,
            is_shutdown: word & SHUTDOWN != 0,
        }
    }

    #[inline]
    pub(crate) fn ready(&self) -> Ready {
        self.ready
    }

    #[inline]
    pub(crate) fn is_shutdown(&self) -> bool {
        self.is_shutdown
    }

    /// Returns a snapshot of the same event count, restricted to `ready`.
    #[cfg(unix)]
    pub(crate) fn only(self, ready: Ready) -> Self {
        Self { ready: self.ready & ready, ..self }
    }

    /// Returns true if the caller need not wait: something is ready, or the driver has ended.
    #[inline]
    fn ends_wait(&self) -> bool {
        self.is_shutdown || !self.ready.is_empty()
    }
}

#[inline]
fn ready_of(word: u64) -> Ready {
    Ready::from_bits((word & READY) as u8)
}

#[inline]
fn generation_of(word: u64) -> u32 {
    (word >> GENERATION_SHIFT) as u32
}

/// The readiness and the waiters of one registered descriptor.
pub(crate) struct Record {
    word: AtomicU64,
    reader: WakerCell,
    writer: WakerCell,
    queues: StoreLock<WaitQueues>,
}

/// The wait queues of a record, one for each kind of interest.
struct WaitQueues {
    /// The queues for reading, for writing, and for every other interest.
    by_interest: [WaitQueue<WaiterData>; 3],
    /// The number of waiters that have ever joined.
    joined: u64,
}

/// A waiter's data; its interest is implied by the queue that it is in.
struct WaiterData {
    /// The number of waiters that had joined before this one.
    number: u64,
}

impl WaitQueues {
    fn is_empty(&self) -> bool {
        self.by_interest.iter().all(WaitQueue::is_empty)
    }

    fn of(&mut self, interest: Interest) -> &mut WaitQueue<WaiterData> {
        &mut self.by_interest[match interest {
            Interest::READABLE => 0,
            Interest::WRITABLE => 1,
            _ => 2,
        }]
    }
}

/// Returns true if an event sets a bit of a mask that had no bit set before.
#[inline]
fn begins(before: Ready, event: Ready, mask: Ready) -> bool {
    !before.meets(mask) && event.meets(mask)
}

impl Record {
    /// Creates a record with no readiness known and no registration.
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            reader: WakerCell::new(),
            writer: WakerCell::new(),
            queues: StoreLock::new(WaitQueues {
                by_interest: [const { WaitQueue::new() }; 3],
                joined: 0,
            }),
        }
    }

    /// Returns the generation, which identifies the registration that the record belongs to.
    pub(crate) fn generation(&self) -> u32 {
        // Relaxed: the caller has the record's registration, so no other thread changes this part.
        generation_of(self.word.load(Relaxed))
    }

    /// Applies an event for the registration of that generation (E1 to E3). Wakers go into the wake
    /// list, which is woken when it is full. Returns false if the registration has ended.
    #[inline]
    pub(crate) fn set(&self, generation: u32, event: Ready, wake_list: &mut WakeList) -> bool {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let same = generation_of(now) == generation;
            if !same && !weakened!("ready_event_minds_the_generation") {
                return false;
            }
            let next = (now & !EVENT_COUNT)
                | (now.wrapping_add(1 << EVENT_COUNT_SHIFT) & EVENT_COUNT)
                | u64::from(event.bits());
            let order = if weakened!("ready_publishes") { Relaxed } else { AcqRel };
            // AcqRel: a thread that sees the bits sees all that was done before the event, and we
            // see a WAITERS bit that a waiter has set. Pairs with the Acquire in `snapshot` and the
            // exchange in `queue`.
            match self.word.compare_exchange_weak(now, next, order, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        self.collect_wakers(ready_of(now), event, now & WAITERS != 0, wake_list);
        true
    }

    /// Collects the wakers of the tasks that the event concerns (E2 and E3).
    #[inline]
    fn collect_wakers(
        &self,
        before: Ready,
        event: Ready,
        has_waiters: bool,
        wake_list: &mut WakeList,
    ) {
        let reads = begins(before, event, Direction::Read.mask());
        let writes = begins(before, event, Direction::Write.mask());
        let cells = [(reads, &self.reader), (writes, &self.writer)];
        for (_, cell) in cells.into_iter().filter(|(wakes, _)| *wakes) {
            if let Some(waker) = cell.take() {
                push(wake_list, waker);
            }
        }
        if has_waiters && !weakened!("ready_event_sees_waiters") {
            let others = !(event - before).is_empty();
            self.dismiss([reads, writes, others], wake_list);
        }
    }

    /// Dismisses the waiters that joined before this call took the lock (E3).
    #[cold]
    fn dismiss(&self, which: [bool; 3], wake_list: &mut WakeList) {
        let mut queues = self.queues.lock();
        let joined = queues.joined;
        for at in (0..3).filter(|at| which[*at]) {
            while queues.by_interest[at].first().is_some_and(|data| data.number < joined) {
                if wake_list.is_full() {
                    self.unlock(queues);
                    wake_list.wake_all();
                    queues = self.queues.lock();
                    // While the lock was free other waiters may have left, so the first one is
                    // another.
                    continue;
                }
                wake_list.push(queues.by_interest[at].dismiss_first());
            }
        }
        self.unlock(queues);
    }

    /// Unlocks the wait queues, clearing WAITERS if they have become empty.
    fn unlock(&self, queues: StoreLockGuard<'_, WaitQueues>) {
        if queues.is_empty() {
            // Relaxed: a waiter that joins holds the lock, which orders the two.
            self.word.fetch_and(!WAITERS, Relaxed);
        }
        drop(queues);
    }

    /// Sets readiness without an event, as a guess, which an operation that would block clears like
    /// any other. Must be called before any task waits.
    pub(crate) fn assume(&self, ready: Ready) {
        // Relaxed: no task waits, and nothing is published.
        self.word.fetch_or(u64::from(ready.bits()), Relaxed);
    }

    /// Returns the readiness that is known now, restricted to `mask`.
    #[inline]
    pub(crate) fn snapshot(&self, mask: Ready) -> ReadyEvent {
        // Acquire: pairs with the AcqRel in `set`.
        ReadyEvent::new(self.word.load(Acquire), mask)
    }

    /// Returns the readiness in a direction, or registers the task's waker (T1 to T4).
    #[inline]
    pub(crate) fn poll(&self, cx: &Context<'_>, direction: Direction) -> Poll<ReadyEvent> {
        let event = self.snapshot(direction.mask());
        if event.ends_wait() { Poll::Ready(event) } else { self.register(cx, direction) }
    }

    /// Registers the task's waker and checks the word once more (T2 and T3).
    fn register(&self, cx: &Context<'_>, direction: Direction) -> Poll<ReadyEvent> {
        let cell = match direction {
            Direction::Read => &self.reader,
            Direction::Write => &self.writer,
        };
        cell.register(cx.waker());
        let event = self.snapshot(direction.mask());
        if event.ends_wait() && !weakened!("ready_poll_checks_again") {
            return Poll::Ready(event);
        }
        Poll::Pending
    }

    /// Returns a future that waits for readiness; any number of them may wait at once.
    pub(crate) fn wait(&self, interest: Interest) -> RecordWait<'_> {
        RecordWait { record: self, interest, waiter: Waiter::new(WaiterData { number: 0 }) }
    }

    /// Returns the readiness, or sets WAITERS and returns `Pending`; then the future must join the
    /// queue. Called with the lock held (T2 and T3).
    fn queue(&self, mask: Ready) -> Poll<ReadyEvent> {
        // Acquire, here and on failure: sees what was done before the event. Pairs with the AcqRel
        // in `set`.
        let mut now = self.word.load(Acquire);
        loop {
            let event = ReadyEvent::new(now, mask);
            if event.ends_wait() && !weakened!("ready_wait_checks_again") {
                return Poll::Ready(event);
            }
            // Acquire: pairs with the AcqRel in `set`; that exchange comes before or
            // after this one.
            match self.word.compare_exchange_weak(now, now | WAITERS, Acquire, Acquire) {
                Ok(_) => return Poll::Pending,
                Err(seen) => now = seen,
            }
        }
    }

    /// Clears the readiness that an operation relied on and found wrong, except closed ends, unless
    /// an event has come since. Returns the bits that were cleared.
    #[inline]
    pub(crate) fn clear(&self, event: ReadyEvent) -> Ready {
        let unless_stale = !weakened!("ready_clear_minds_the_event_count");
        self.clear_bits(event, event.ready - CLOSED, unless_stale)
    }

    /// Clears readiness including closed ends, unless an event has come since, and returns the bits
    /// that were cleared. For one of the runtime's own operations that would block although the
    /// snapshot covers everything that could complete it: then no end is closed either. A FIFO has
    /// a writer again, or the error of a datagram socket was fetched.
    #[inline]
    pub(crate) fn refute(&self, event: ReadyEvent) -> Ready {
        let unless_stale = !weakened!("ready_refute_minds_the_event_count");
        let kept = if weakened!("ready_refute_opens") { CLOSED } else { Ready::EMPTY };
        self.clear_bits(event, event.ready - kept, unless_stale)
    }

    #[inline]
    fn clear_bits(&self, event: ReadyEvent, gone: Ready, unless_stale: bool) -> Ready {
        // Relaxed throughout: nothing is published here, and a read-modify-write continues the
        // release sequence of earlier exchanges, so readers still see what those published.
        let mut now = self.word.load(Relaxed);
        loop {
            let stale = (now >> EVENT_COUNT_SHIFT) as u16 != event.event_count;
            if stale && unless_stale {
                return Ready::EMPTY;
            }
            let kept = if weakened!("ready_clear_keeps_shutdown") { !SHUTDOWN } else { !0 };
            let next = now & !u64::from(gone.bits()) & kept;
            match self.word.compare_exchange_weak(now, next, Relaxed, Relaxed) {
                Ok(_) => return ready_of(now) & gone,
                Err(seen) => now = seen,
            }
        }
    }

    /// Marks the driver as ended: wakes every waiter, and makes all later waits return at once.
    pub(crate) fn shut_down(&self, wake_list: &mut WakeList) {
        // AcqRel: publishes the shutdown, and sees a WAITERS bit that a waiter has set. Pairs with
        // the Acquire in `snapshot` and the exchange in `queue`.
        let now = self.word.fetch_or(SHUTDOWN, AcqRel);
        if !weakened!("ready_shutdown_wakes") {
            self.collect_wakers(Ready::EMPTY, Ready::ALL, now & WAITERS != 0, wake_list);
        }
    }

    /// Ends the record's registration: later events of it are ignored, and the next registration
    /// starts with no readiness. Only futures that were leaked can still wait; they are dismissed,
    /// and woken for nothing. The caller must drop the returned wakers.
    #[must_use = "a waker is a user's: drop it outside of locks"]
    pub(crate) fn end(&self) -> [Option<Waker>; 2] {
        // Relaxed: every waiter joined through this registration, so before this call. Futures that
        // were leaked would stay in the wait queue for ever: they are dismissed here, so that the
        // next registration finds the queues empty.
        if self.word.load(Relaxed) & WAITERS != 0 && !weakened!("ready_end_dismisses") {
            self.dismiss([true; 3], &mut WakeList::new());
        }
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            debug_assert_eq!(now & WAITERS, 0, "a registration ended while a future waited for it");
            let generation = u64::from(generation_of(now).wrapping_add(1));
            let next = (now & SHUTDOWN) | (generation << GENERATION_SHIFT);
            // AcqRel: orders this after the events before it. Pairs with the AcqRel in `set`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if weakened!("ready_end_takes_wakers") {
            return [None, None];
        }
        [self.reader.take(), self.writer.take()]
    }
}

/// Adds a waker to the wake list; a full one is woken first.
#[inline]
fn push(wake_list: &mut WakeList, waker: Waker) {
    if wake_list.is_full() {
        wake_list.wake_all();
    }
    wake_list.push(waker);
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a snapshot for debugging.
        let now = self.word.load(Relaxed);
        f.debug_struct("Record")
            .field("generation", &generation_of(now))
            .field("ready", &ready_of(now))
            .field("waiting", &(now & WAITERS != 0))
            .field("shutdown", &(now & SHUTDOWN != 0))
            .finish_non_exhaustive()
    }
}

/// Future of [`Record::wait`]. It may be dropped at any time.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct RecordWait<'a> {
    record: &'a Record,
    interest: Interest,
    waiter: Waiter<WaiterData>,
}

impl<'a> RecordWait<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a Record, Pin<&Waiter<WaiterData>>) {
        let record = self.record;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (record, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Checks the readiness, and joins a wait queue if there is none.
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<ReadyEvent> {
        let (record, waiter) = self.waiter();
        let (interest, mask) = (self.interest, self.interest.mask());
        let event = record.snapshot(mask);
        if event.ends_wait() {
            return Poll::Ready(event);
        }
        // Cloning a waker is user code, so it happens before the lock is taken.
        let waker = cx.waker().clone();
        let mut queues = record.queues.lock();
        if let Poll::Ready(event) = record.queue(mask) {
            // The lock is released before the waker is dropped, because that is user code.
            drop(queues);
            drop(waker);
            return Poll::Ready(event);
        }
        let number = queues.joined;
        queues.joined += 1;
        // SAFETY: 1. this future owns the waiter, which is OUT. 2. The closure only writes a
        // number.
        unsafe { waiter.with_data(|data| data.number = number) };
        // SAFETY: 1. this future owns the waiter, which is OUT. 2. `Drop` removes it from this
        // queue.
        unsafe { queues.of(interest).join(waiter, waker) };
        Poll::Pending
    }

    /// Continues a wait: makes sure that the wait queue has the current task's waker. Ready if the
    /// waiter has been dismissed.
    fn poll_queued(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (record, waiter) = self.waiter();
        let interest = self.interest;
        // SAFETY: 1. this future owns the waiter. 2. `of(interest)` is the queue that it joined.
        let dismissed = unsafe {
            update_waker(&record.queues, |queues| queues.of(interest), waiter, cx.waker())
        };
        if dismissed { Poll::Ready(()) } else { Poll::Pending }
    }

    #[cold]
    fn leave_queue(self: Pin<&Self>) {
        let (record, waiter) = self.waiter();
        let mut queues = record.queues.lock();
        // SAFETY: 1. this future owns the waiter. 2. `of(interest)` is the queue that it joined.
        let waker = unsafe { queues.of(self.interest).remove(waiter) };
        if weakened!("ready_drop_leaves_the_queue") {
            drop(queues);
        } else {
            record.unlock(queues);
        }
        // Dropping the waker comes last because it may panic, and everything else is done by now.
        drop(waker);
    }
}

impl Future for RecordWait<'_> {
    type Output = ReadyEvent;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ReadyEvent> {
        let this = self.as_ref();
        match this.waiter.state() {
            WaiterState::Out => {}
            WaiterState::In if this.poll_queued(cx).is_pending() => return Poll::Pending,
            // Dismissed: checks the readiness again, and joins again if another task used it up.
            WaiterState::In | WaiterState::Dismissed => this.waiter.settle(),
        }
        this.begin(cx)
    }
}

impl Drop for RecordWait<'_> {
    fn drop(&mut self) {
        if self.waiter.state() == WaiterState::In {
            // SAFETY: the future was pinned when it joined, and it is not moved from here on.
            unsafe { Pin::new_unchecked(&*self) }.leave_queue();
        }
    }
}

#[cfg(test)]
mod models;
