//! What is known of one file descriptor, and who waits to know more.
//!
//! A record is one word, a waker for each direction, and a line of futures. It lies in
//! the table of `sources.rs` for as long as the driver lives, and one registration after
//! another has it: the word says which by its generation.
//!
//! # Protocol
//! ```text
//! | generation | tick    | POSTPONED | SHUTDOWN | LINE  | ready  |
//! |  32 bits   | 16 bits |   1 bit   |  1 bit   | 1 bit | 6 bits |
//! ```
//! ```text
//! the driver has an event                   a task wants to read
//! E1 exchanges the word: sets bits, adds    T1 looks at the word: ready, done
//!    one to the tick; another generation:   T2 registers its waker in the cell
//!    nothing happens                        T3 looks again: ready, done
//! E2 if nobody could have read before:      T4 sleeps
//!    takes the waker from the cell
//! E3 if the word had LINE: locks the lines
//!    and dismisses those it concerns
//! ```
//! T2 and E2 exchange the cell, so one comes first. If E2, T3 sees E1; if T2, E2 finds the
//! waker. An event that finds the bit set need not look for a waker: nobody sleeps unless
//! T3 saw the bit clear, and whoever sets a clear bit looks.
//!
//! A future that waits does T2 and T3 in one: under the lock of the lines it exchanges the
//! word, which is not ready, for one with LINE, and joins. E1 exchanges the same word: if
//! it is first, the future sees the bits; else E1 finds LINE, and waits for the lock until
//! the future has joined.
//!
//! An operation that would block clears what it relied on, if the tick is as it was when
//! it looked. An event in between has changed the tick, and nothing is cleared: the
//! operation is tried once more. What is closed stays closed, unless an operation of our own
//! that a closed end would have answered finds that it would block.
//!
//! POSTPONED says that a read was not tried, for it would likely have found nothing
//! (`postponed`): what was known is cleared as above, and the mark set, in one exchange. An
//! event that something can be read takes the mark away. So does whoever takes the postponement back, and sets the bit
//! that was cleared as E1 does, but with the same tick: nothing has come. Operations that do
//! not wait take the mark for the bit.
//!
//! A record ends with its registration: the exchange that makes its generation another
//! one comes before it is given to the next. An event that did E1 before that may do E2
//! and E3 later, and wake somebody of the next registration, who finds nothing and waits
//! again.
//!
//! # Invariants
//! - LINE is set exactly if a line is not empty, whenever the lock is free, and changes
//!   only under the lock.
//! - SHUTDOWN stays until the driver ends.
//! - No waker is cloned, called or dropped under the lock.
//!
//! # Rejected
//! - A lock round the wakers: every event takes it, where most find one waker or none.
//! - Waking for each event: on a socket that is registered both ways every byte that comes
//!   is an event that says 'writable' too.
//! - One line for all interests: who waits to write would be passed, or woken, for each
//!   byte that can be read. The few who wait for something else share a line, are woken for
//!   anything, and join again.
//! - The tick as the mark of who joined before an event: it comes round while somebody
//!   waits to write and another reads. The lines count on their own.
//!
//! # Checked by
//! `an_event_against_a_poll_is_not_lost`, `an_event_against_a_wait_is_not_lost`,
//! `two_events_against_two_directions_wake_both`,
//! `a_wait_dropped_against_an_event_leaves_the_line_in_order`,
//! `an_event_against_a_clear_is_not_lost`, `an_event_against_a_refutation_is_not_lost`,
//! `what_was_refuted_is_open_again`,
//! `an_event_of_the_last_registration_does_not_reach_the_next`,
//! `a_record_that_ends_against_an_event_keeps_no_waker`,
//! `waits_that_were_forgotten_leave_with_their_registration`,
//! `more_forgotten_waits_than_a_batch_leave_against_an_event`,
//! `a_shutdown_against_a_poll_ends_it`, `a_shutdown_against_a_wait_ends_it`,
//! `a_clear_against_a_shutdown_keeps_it`, `a_full_batch_against_a_wait_that_joins_again`,
//! `a_new_waker_against_an_event_is_woken`, `what_was_done_before_an_event_is_seen_after_it`,
//! `an_event_against_a_postponement_is_not_lost`,
//! `a_postponement_taken_back_against_an_event_wakes`;
//! weakened as `ready_poll_looks_again`, `ready_wait_looks_again`, `ready_event_sees_line`,
//! `ready_clear_minds_the_tick`, `ready_refute_minds_the_tick`, `ready_refute_opens`,
//! `ready_event_minds_the_generation`, `ready_end_dismisses`,
//! `ready_end_takes_wakers`, `ready_shutdown_wakes`, `ready_clear_keeps_shutdown`,
//! `ready_drop_leaves_the_line`, `ready_publishes`, `ready_postpone_minds_the_tick`,
//! `ready_take_back_wakes`.

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
        bolt::{Bolted, Opened},
        weakened,
    },
    wait::{
        batch::Batch,
        keep::keep_waker,
        line::{Line, Place, Waiter},
        waker_cell::WakerCell,
    },
};

const READY: u64 = 0xff;
const LINE: u64 = 1 << 8;
const SHUTDOWN: u64 = 1 << 9;
const POSTPONED: u64 = 1 << 10;
const TICK_SHIFT: u32 = 16;
const TICK: u64 = 0xffff << TICK_SHIFT;
const GENERATION_SHIFT: u32 = 32;

/// What the closed ends of a resource are.
const CLOSED: Ready = Ready::READ_CLOSED.with(Ready::WRITE_CLOSED);

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    /// What ends a wait in this direction.
    #[inline]
    pub(crate) const fn mask(self) -> Ready {
        match self {
            Self::Read => Interest::READABLE.mask(),
            Self::Write => Interest::WRITABLE.mask(),
        }
    }
}

/// What was known at a moment; to be cleared only if nothing has come since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyEvent {
    ready: Ready,
    tick: u16,
    is_shutdown: bool,
}

impl ReadyEvent {
    #[inline]
    fn new(word: u64, mask: Ready) -> Self {
        Self {
            ready: ready_of(word) & mask,
            tick: (word >> TICK_SHIFT) as u16,
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

    /// When it was, in events.
    #[inline]
    pub(super) fn tick(&self) -> u16 {
        self.tick
    }

    /// The same moment, with less to be cleared.
    #[cfg(unix)]
    pub(crate) fn only(self, ready: Ready) -> Self {
        Self { ready: self.ready & ready, ..self }
    }

    /// Nobody has to wait.
    #[inline]
    fn is_answer(&self) -> bool {
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

/// See the module.
pub(crate) struct Record {
    word: AtomicU64,
    reader: WakerCell,
    writer: WakerCell,
    lines: Bolted<Lines>,
}

/// Those who wait, by what for.
struct Lines {
    /// To read, to write, and for anything else.
    lines: [Line<Want>; 3],
    /// How many have ever joined.
    joined: u64,
}

/// One in line, who waits for what the line is for.
struct Want {
    /// How many had joined before.
    number: u64,
}

impl Lines {
    fn is_empty(&self) -> bool {
        self.lines.iter().all(Line::is_empty)
    }

    fn of(&mut self, interest: Interest) -> &mut Line<Want> {
        &mut self.lines[match interest {
            Interest::READABLE => 0,
            Interest::WRITABLE => 1,
            _ => 2,
        }]
    }
}

/// Whether an event sets the first bit of a mask.
#[inline]
fn begins(before: Ready, event: Ready, mask: Ready) -> bool {
    !before.meets(mask) && event.meets(mask)
}

impl Record {
    /// Nothing is known, and nobody has it.
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            reader: WakerCell::new(),
            writer: WakerCell::new(),
            lines: Bolted::new(Lines { lines: [const { Line::new() }; 3], joined: 0 }),
        }
    }

    /// Which registration has it.
    pub(crate) fn generation(&self) -> u32 {
        // Relaxed: who asks has the record, so that nobody changes it.
        generation_of(self.word.load(Relaxed))
    }

    /// E1 to E3: an event of the registration of that generation. Wakers are put into
    /// the batch, and woken when it is full. `false` if the registration has ended.
    #[inline]
    pub(crate) fn set(&self, generation: u32, event: Ready, batch: &mut Batch) -> bool {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let same = generation_of(now) == generation;
            if !same && !weakened!("ready_event_minds_the_generation") {
                return false;
            }
            let told = event.meets(Direction::Read.mask());
            let postponed = if told { POSTPONED } else { 0 };
            let next = (now & !(TICK | postponed))
                | (now.wrapping_add(1 << TICK_SHIFT) & TICK)
                | u64::from(event.bits());
            let order = if weakened!("ready_publishes") { Relaxed } else { AcqRel };
            // AcqRel: who sees the bits sees what was before the event, and we see who
            // has set LINE. Pairs with the Acquire in `look` and the exchange in `queue`.
            match self.word.compare_exchange_weak(now, next, order, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        self.tell(ready_of(now), event, now & LINE != 0, batch);
        true
    }

    /// E2 and E3.
    #[inline]
    fn tell(&self, before: Ready, event: Ready, line: bool, batch: &mut Batch) {
        let reads = begins(before, event, Direction::Read.mask());
        let writes = begins(before, event, Direction::Write.mask());
        let cells = [(reads, &self.reader), (writes, &self.writer)];
        for (_, cell) in cells.into_iter().filter(|(tell, _)| *tell) {
            if let Some(waker) = cell.take() {
                push(batch, waker);
            }
        }
        if line && !weakened!("ready_event_sees_line") {
            let others = !(event - before).is_empty();
            self.dismiss([reads, writes, others], batch);
        }
    }

    /// E3: those leave who joined before we have the lock.
    #[cold]
    fn dismiss(&self, which: [bool; 3], batch: &mut Batch) {
        let mut lines = self.lines.lock();
        let joined = lines.joined;
        for at in (0..3).filter(|at| which[*at]) {
            while lines.lines[at].first().is_some_and(|want| want.number < joined) {
                if batch.is_full() {
                    self.let_go(lines);
                    batch.wake_all();
                    lines = self.lines.lock();
                    // Others may have left meanwhile, and those behind them are first.
                    continue;
                }
                batch.push(lines.lines[at].dismiss_first());
            }
        }
        self.let_go(lines);
    }

    /// Lets the lock go, after somebody may have left.
    fn let_go(&self, lines: Opened<'_, Lines>) {
        if lines.is_empty() {
            // Relaxed: who joins has the lock, which orders it.
            self.word.fetch_and(!LINE, Relaxed);
        }
        drop(lines);
    }

    /// Says that it is ready without an event: a guess, which an operation that would
    /// block clears as any other. Before anybody waits.
    pub(crate) fn assume(&self, ready: Ready) {
        // Relaxed: nobody waits, and nothing is published.
        self.word.fetch_or(u64::from(ready.bits()), Relaxed);
    }

    /// What is known now.
    #[inline]
    pub(crate) fn look(&self, mask: Ready) -> ReadyEvent {
        // Acquire: pairs with the AcqRel in `set`.
        ReadyEvent::new(self.word.load(Acquire), mask)
    }

    /// The same, where a read that was postponed may be tried all the same.
    #[inline]
    pub(crate) fn look_closely(&self, mask: Ready) -> ReadyEvent {
        // Acquire: as in `look`.
        let now = self.word.load(Acquire);
        let postponed = if now & POSTPONED != 0 { u64::from(Ready::READABLE.bits()) } else { 0 };
        ReadyEvent::new(now | postponed, mask)
    }

    /// A read by that event is not tried: forgets that it can be, and marks it, unless
    /// something has come since. `false` if it has, or if an end is closed.
    pub(crate) fn postpone(&self, event: ReadyEvent) -> bool {
        if event.ready != Ready::READABLE || event.is_shutdown {
            return false;
        }
        // Relaxed throughout: as in `forget`.
        let mut now = self.word.load(Relaxed);
        loop {
            let stale = (now >> TICK_SHIFT) as u16 != event.tick;
            if stale && !weakened!("ready_postpone_minds_the_tick") {
                return false;
            }
            let next = now & !u64::from(Ready::READABLE.bits()) | POSTPONED;
            match self.word.compare_exchange_weak(now, next, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes a postponement back, if it is one still: the read is tried.
    pub(crate) fn take_back(&self, generation: u32, batch: &mut Batch) {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if generation_of(now) != generation || now & POSTPONED == 0 {
                return;
            }
            let next = now & !POSTPONED | u64::from(Ready::READABLE.bits());
            // AcqRel: as in `set`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if !weakened!("ready_take_back_wakes") {
            self.tell(ready_of(now), Ready::READABLE, now & LINE != 0, batch);
        }
    }

    /// T1 to T4.
    #[inline]
    pub(crate) fn poll(&self, cx: &Context<'_>, direction: Direction) -> Poll<ReadyEvent> {
        let event = self.look(direction.mask());
        if event.is_answer() { Poll::Ready(event) } else { self.register(cx, direction) }
    }

    /// T2 and T3.
    fn register(&self, cx: &Context<'_>, direction: Direction) -> Poll<ReadyEvent> {
        let cell = match direction {
            Direction::Read => &self.reader,
            Direction::Write => &self.writer,
        };
        cell.register(cx.waker());
        let event = self.look(direction.mask());
        if event.is_answer() && !weakened!("ready_poll_looks_again") {
            return Poll::Ready(event);
        }
        Poll::Pending
    }

    /// The future of a wait; any number at a time.
    pub(crate) fn wait(&self, interest: Interest) -> Waited<'_> {
        Waited { record: self, interest, waiter: Waiter::new(Want { number: 0 }) }
    }

    /// T2 and T3 of a future, under the lock: it joins if this answers `Pending`.
    fn queue(&self, mask: Ready) -> Poll<ReadyEvent> {
        // Acquire, here and on failure: as in `look`.
        let mut now = self.word.load(Acquire);
        loop {
            let event = ReadyEvent::new(now, mask);
            if event.is_answer() && !weakened!("ready_wait_looks_again") {
                return Poll::Ready(event);
            }
            // Acquire: pairs with the AcqRel in `set`, whose exchange comes before or
            // after this one.
            match self.word.compare_exchange_weak(now, now | LINE, Acquire, Acquire) {
                Ok(_) => return Poll::Pending,
                Err(seen) => now = seen,
            }
        }
    }

    /// Forgets what an operation relied on and found wrong, unless something has come
    /// since; answers with what was forgotten.
    #[inline]
    pub(crate) fn clear(&self, event: ReadyEvent) -> Ready {
        let unless_stale = !weakened!("ready_clear_minds_the_tick");
        self.forget(event, event.ready - CLOSED, unless_stale)
    }

    /// The same, after an operation for which the event said all that there is to say, and
    /// which would block: then no end is closed either. A FIFO has a writer again, or an
    /// error of a datagram socket was fetched.
    #[inline]
    pub(crate) fn refute(&self, event: ReadyEvent) -> Ready {
        let unless_stale = !weakened!("ready_refute_minds_the_tick");
        let kept = if weakened!("ready_refute_opens") { CLOSED } else { Ready::EMPTY };
        self.forget(event, event.ready - kept, unless_stale)
    }

    #[inline]
    fn forget(&self, event: ReadyEvent, gone: Ready, unless_stale: bool) -> Ready {
        // Relaxed throughout: nothing is published, and an exchange keeps what those
        // before it have published for those who read it.
        let mut now = self.word.load(Relaxed);
        loop {
            let stale = (now >> TICK_SHIFT) as u16 != event.tick;
            if stale && unless_stale {
                return Ready::EMPTY;
            }
            let kept = if weakened!("ready_clear_keeps_shutdown") { !SHUTDOWN } else { !0 };
            // A read that was tried is not postponed any more.
            let tried = if gone.meets(Ready::READABLE) { !POSTPONED } else { !0 };
            let next = now & !u64::from(gone.bits()) & kept & tried;
            match self.word.compare_exchange_weak(now, next, Relaxed, Relaxed) {
                Ok(_) => return ready_of(now) & gone,
                Err(seen) => now = seen,
            }
        }
    }

    /// The driver ends: everybody who waits is woken, and nobody waits any more.
    pub(crate) fn shut_down(&self, batch: &mut Batch) {
        // AcqRel: as in `set`.
        let now = self.word.fetch_or(SHUTDOWN, AcqRel);
        if !weakened!("ready_shutdown_wakes") {
            self.tell(Ready::EMPTY, Ready::ALL, now & LINE != 0, batch);
        }
    }

    /// Its registration ends; nobody waits through it but futures that were forgotten, which
    /// are woken in vain. Events of it are not heeded from now on, and the next registration
    /// knows nothing. The wakers are the caller's to drop.
    #[must_use = "a waker is a user's: drop it outside of locks"]
    pub(crate) fn end(&self) -> [Option<Waker>; 2] {
        // Relaxed: who joined did so through this registration, before. Futures that were
        // leaked stand in line for ever: they leave here, so that the next one finds none.
        if self.word.load(Relaxed) & LINE != 0 && !weakened!("ready_end_dismisses") {
            self.dismiss([true; 3], &mut Batch::new());
        }
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            debug_assert_eq!(now & LINE, 0, "a registration ended while a future waited for it");
            let generation = u64::from(generation_of(now).wrapping_add(1));
            let next = (now & SHUTDOWN) | (generation << GENERATION_SHIFT);
            // AcqRel: events before this one are over. Pairs with the AcqRel in `set`.
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

/// Into the batch, which is woken before if it is full.
#[inline]
fn push(batch: &mut Batch, waker: Waker) {
    if batch.is_full() {
        batch.wake_all();
    }
    batch.push(waker);
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a look.
        let now = self.word.load(Relaxed);
        f.debug_struct("Record")
            .field("generation", &generation_of(now))
            .field("ready", &ready_of(now))
            .field("waiting", &(now & LINE != 0))
            .field("shutdown", &(now & SHUTDOWN != 0))
            .finish_non_exhaustive()
    }
}

/// Future of [`Record::wait`]. Dropping it at any moment is safe.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct Waited<'a> {
    record: &'a Record,
    interest: Interest,
    waiter: Waiter<Want>,
}

impl<'a> Waited<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a Record, Pin<&Waiter<Want>>) {
        let record = self.record;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (record, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Looks, and joins the line if there is nothing to see.
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<ReadyEvent> {
        let (record, waiter) = self.waiter();
        let (interest, mask) = (self.interest, self.interest.mask());
        let event = record.look(mask);
        if event.is_answer() {
            return Poll::Ready(event);
        }
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut lines = record.lines.lock();
        if let Poll::Ready(event) = record.queue(mask) {
            // The lock first, then the waker.
            drop(lines);
            drop(waker);
            return Poll::Ready(event);
        }
        let number = lines.joined;
        lines.joined += 1;
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        unsafe { waiter.with_data(|want| want.number = number) };
        // SAFETY: 1. as above. 2. `Drop` does.
        unsafe { lines.of(interest).join(waiter, waker) };
        Poll::Pending
    }

    /// In line, as far as we know: sees that the right task will be woken.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (record, waiter) = self.waiter();
        let interest = self.interest;
        // SAFETY: 1. we own it. 2. It joined this line.
        let left =
            unsafe { keep_waker(&record.lines, |lines| lines.of(interest), waiter, cx.waker()) };
        if left { Poll::Ready(()) } else { Poll::Pending }
    }

    #[cold]
    fn give_up(self: Pin<&Self>) {
        let (record, waiter) = self.waiter();
        let mut lines = record.lines.lock();
        // SAFETY: 1. we own the waiter. 2. This is the line it joined.
        let waker = unsafe { lines.of(self.interest).remove(waiter) };
        if weakened!("ready_drop_leaves_the_line") {
            drop(lines);
        } else {
            record.let_go(lines);
        }
        // Last: dropping it may panic, and everything is done by now.
        drop(waker);
    }
}

impl Future for Waited<'_> {
    type Output = ReadyEvent;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ReadyEvent> {
        let this = self.as_ref();
        match this.waiter.place() {
            Place::Out => {}
            Place::In if this.go_on(cx).is_pending() => return Poll::Pending,
            // Dismissed: it looks, and joins again if another was quicker.
            Place::In | Place::Left => this.waiter.settle(),
        }
        this.begin(cx)
    }
}

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        if self.waiter.place() == Place::In {
            // SAFETY: it was pinned when it joined, and is not moved from here on.
            unsafe { Pin::new_unchecked(&*self) }.give_up();
        }
    }
}

#[cfg(test)]
mod models;
