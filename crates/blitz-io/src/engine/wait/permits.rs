//! Permits: some at a time out of a fixed number, first come, first served.
//!
//! The counting semaphore on which locks, channels and bounded spawns stand. Taking
//! permits that are there, and giving some back while nobody waits, is one exchange
//! on one word. The lock of the line is taken only by those who wait, and by
//! those who serve them.
//!
//! # Protocol
//! The word holds the free permits and two bits: CLOSED, and WAITING for 'the line
//! is not empty'.
//!
//! ```text
//! who wants some                            who gives some back
//! A1 enough are free: takes them, done      R1 not WAITING: adds them, done
//! A2 locks the line                         R2 WAITING: locks the line
//! A3 enough are free now: takes them, done  R3 gives them to the first in line, who
//! A4 takes what is free and sets WAITING,      leaves when it has all it wants; then to
//!    in one exchange                           the next
//! A5 joins the line; it misses the rest     R4 the line is empty: clears WAITING and adds
//!                                              the rest, in one exchange
//! ```
//! A4 and R1 exchange the same word, so one comes first. If R1, A4 fails and looks
//! again (A3): no permit slips through between a failed try and queueing. If A4, R1
//! fails, finds WAITING, and waits for the lock until A5 is done.
//!
//! Closing sets CLOSED under the lock and dismisses the whole line. A3 looks for
//! CLOSED under that lock, so nobody joins behind it.
//!
//! A task without budget takes its place in line if there has to be one, and else comes
//! back at its next turn, without permits. Who has waited in line completes also without
//! budget: it has let others run, and what it was given is kept from all of them.
//!
//! A waiter that is dropped in line passes what it was given on to the next (R3),
//! and what was granted to one that never looked is given back (R1).
//!
//! # Invariants
//! - WAITING is set exactly if the line is not empty, whenever the lock is free, and
//!   changes only under the lock.
//! - While WAITING is set no permit is free. So nobody overtakes the line, and the
//!   word changes only under the lock.
//! - Only the first in line has been given a part of what it wants.
//!
//! # Rejected
//! Taking the lock for each release, as Tokio does: the word knows whether somebody
//! waits. Letting a release put permits into the word and wake the first in line to
//! fetch them: somebody else may be quicker, again and again.
//!
//! # Checked by
//! `acquire_against_release_is_never_left_waiting`, `acquire_against_close_ends`,
//! `a_waiter_dropped_against_a_release_loses_no_permit`,
//! `a_part_of_many_is_passed_on_when_its_waiter_is_dropped`,
//! `two_waiters_are_served_in_the_order_they_came`,
//! `many_permits_are_collected_from_two_releases`,
//! `a_permit_guards_as_a_lock_does`, `a_waiter_is_handed_what_the_releaser_wrote`,
//! `a_new_waker_against_a_release_is_woken`, `close_against_release_keeps_the_count`,
//! `a_full_batch_against_a_drop_serves_the_rest`,
//! `a_task_without_budget_takes_its_place_in_line`,
//! `a_task_without_budget_against_a_release_is_served`,
//! `a_task_without_budget_takes_no_permit_that_is_free`;
//! weakened as `permits_queue_looks_again`, `permits_release_sees_waiting`,
//! `permits_queue_sees_closed`, `permits_drop_passes_on`, `permits_drop_gives_back`,
//! `permits_take_acquire`, `permits_add_release`, `permits_part_counts`,
//! `permits_close_refunds`, `permits_without_budget_queue`,
//! `permits_without_budget_give_back`. In sequence:
//! `permits_behave_as_a_simple_model`; under load: `no_permit_is_lost_or_made`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{
    batch::{Batch, wake_each},
    keep::keep_waker,
    line::{Line, Place, Waiter},
};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        bolt::Bolted,
        weakened,
    },
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

const CLOSED: usize = 1;
const WAITING: usize = 1 << 1;
const SHIFT: u32 = 2;
const ONE: usize = 1 << SHIFT;

/// The most permits there may be: Tokio's figure. One bit less than fits, so that
/// no sum of two of them wraps.
pub(crate) const MAX: usize = usize::MAX >> 3;

/// See the module.
pub(crate) struct Permits {
    word: AtomicUsize,
    line: Bolted<Line<Need>>,
}

/// What one in line waits for.
struct Need {
    wanted: usize,
    /// Of these it has not been given so many. Not zero for one who was dismissed
    /// by a close, and such a one has nothing.
    missing: usize,
}

/// The permits were closed: nobody gets any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

/// Why there are no permits now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// Closed: there never will be.
    Closed,
    /// Too few are free, or others wait for them.
    TooFew,
}

/// How an attempt to queue ended.
#[must_use]
enum Queued {
    /// They are the caller's: nothing to wait for.
    Taken,
    Closed,
    /// So many are missing: join the line.
    Missing(usize),
}

impl Permits {
    /// So many permits, all free.
    ///
    /// # Panics
    /// If these are more than [`MAX`].
    #[cfg(not(blitz_loom))]
    #[track_caller]
    pub(crate) const fn new(count: usize) -> Self {
        assert_countable(count);
        Self { word: AtomicUsize::new(count << SHIFT), line: Bolted::new(Line::new()) }
    }

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    #[track_caller]
    pub(crate) fn new(count: usize) -> Self {
        assert_countable(count);
        Self { word: AtomicUsize::new(count << SHIFT), line: Bolted::new(Line::new()) }
    }

    /// How many are free now; none while somebody waits.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "semaphores tell it"))]
    pub(crate) fn available(&self) -> usize {
        // Acquire: who counts sees what was done before the permits came back. Pairs
        // with the Release in `add`.
        self.word.load(Acquire) >> SHIFT
    }

    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "as `available`"))]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with the AcqRel in `close`.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// A1: takes `count` permits if they are free and nobody waits.
    ///
    /// # Panics
    /// If `count` is more than [`MAX`].
    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire(&self, count: usize) -> Result<(), NotNow> {
        assert_countable(count);
        let order = if weakened!("permits_take_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: who sees CLOSED, or takes a permit, sees what was
        // done before. Pairs with the AcqRel in `close` and the Release in `add`.
        let mut now = self.word.load(order);
        loop {
            if now & CLOSED != 0 {
                return Err(NotNow::Closed);
            }
            // While somebody waits none is free.
            if now >> SHIFT < count {
                return Err(NotNow::TooFew);
            }
            match self.word.compare_exchange_weak(now, now - count * ONE, order, order) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes `count` permits, or waits for them in line. Its output makes them the
    /// caller's, who gives them back with [`release`](Self::release).
    ///
    /// Dropping the future at any moment is safe: it then has none.
    ///
    /// # Panics
    /// If `count` is more than [`MAX`].
    #[track_caller]
    pub(crate) fn acquire(&self, count: usize) -> Wish<'_> {
        assert_countable(count);
        Wish { permits: self, waiter: Waiter::new(Need { wanted: count, missing: count }) }
    }

    /// Gives permits back, or adds new ones: to those who wait first.
    ///
    /// # Panics
    /// If there would be more than [`MAX`] free ones.
    #[inline]
    #[track_caller]
    pub(crate) fn release(&self, count: usize) {
        assert_countable(count);
        if count > 0 && !self.add(count) {
            self.serve_and_add(count);
        }
    }

    /// R1; `false` if somebody waits.
    #[inline]
    #[track_caller]
    fn add(&self, count: usize) -> bool {
        let order = if weakened!("permits_add_release") { Relaxed } else { Release };
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & WAITING != 0 && !weakened!("permits_release_sees_waiting") {
                return false;
            }
            assert!(
                (now >> SHIFT) + count <= MAX,
                "number of added permits ({count}) would overflow MAX_PERMITS ({MAX}): release \
                 each permit once"
            );
            // Release: what we did happens before whatever the next holder does.
            // Pairs with the Acquire in `try_acquire` and `queue`. Relaxed on
            // failure: a better guess.
            match self.word.compare_exchange_weak(now, now + count * ONE, order, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// R2 to R4, as often as a batch of wakers is full, or R1 after all.
    #[cold]
    #[track_caller]
    fn serve_and_add(&self, mut count: usize) {
        let mut batch = Batch::new();
        loop {
            let left = self.serve(&mut self.line.lock(), count, &mut batch);
            batch.wake_all();
            // Whoever emptied the line meanwhile cleared WAITING.
            if left == 0 || self.add(left) {
                return;
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
            if part < need.missing {
                need.missing -= if weakened!("permits_part_counts") { 0 } else { part };
                return 0;
            }
            need.missing = 0;
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
        // Release: as in `add`. No permit was free, so nothing can overflow; without a
        // rest the sum wraps, and so clears the bit.
        let before = self.word.fetch_add((rest * ONE).wrapping_sub(WAITING), Release);
        debug_assert!(before & WAITING != 0 && before >> SHIFT == 0, "nobody waited: {before:#x}");
    }

    /// A3 and A4, under the lock.
    fn queue(&self, wanted: usize) -> Queued {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & CLOSED != 0 && !weakened!("permits_queue_sees_closed") {
                // The closer had the lock before us, so we see what it did.
                return Queued::Closed;
            }
            let free = now >> SHIFT;
            let taken = free.min(wanted);
            let enough = taken == wanted && !weakened!("permits_queue_looks_again");
            let taken = if weakened!("permits_queue_looks_again") { 0 } else { taken };
            let mark = if enough { 0 } else { WAITING };
            // Acquire: what was done before the permits came back, also for the part
            // of them. Pairs with the Release in `add`.
            let next = (now - taken * ONE) | mark;
            match self.word.compare_exchange_weak(now, next, Acquire, Relaxed) {
                Ok(_) if enough => return Queued::Taken,
                Ok(_) => return Queued::Missing(wanted - taken),
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes up to `count` free permits away for good; answers with how many.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "semaphores have it"))]
    pub(crate) fn forget(&self, count: usize) -> usize {
        // Relaxed: nobody holds what is forgotten, and an exchange keeps what
        // releases before it published for those who take the rest.
        let mut now = self.word.load(Relaxed);
        loop {
            let gone = count.min(now >> SHIFT);
            match self.word.compare_exchange_weak(now, now - gone * ONE, Relaxed, Relaxed) {
                Ok(_) => return gone,
                Err(seen) => now = seen,
            }
        }
    }

    /// Refuses everybody who waits, and who will come. Permits may still be given back.
    pub(crate) fn close(&self) {
        let line = self.line.lock();
        // AcqRel: what was done before the close is seen by those who are refused.
        // Pairs with the Acquire in `try_acquire` and `is_closed`.
        self.word.fetch_or(CLOSED, AcqRel);
        let mut refund = 0;
        wake_each(
            line,
            || self.line.lock(),
            |line| {
                let need = line.first()?;
                refund += need.wanted - need.missing;
                let waker = line.dismiss_first();
                if line.is_empty() {
                    self.end_waiting(0);
                }
                Some(waker)
            },
        );
        if !weakened!("permits_close_refunds") {
            self.release(refund);
        }
    }
}

/// Refuses numbers that the word cannot count.
#[inline]
#[track_caller]
const fn assert_countable(count: usize) {
    assert!(
        count <= MAX,
        "a semaphore may not have more than MAX_PERMITS permits (usize::MAX >> 3): ask for fewer"
    );
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a look.
        let now = self.word.load(Relaxed);
        f.debug_struct("Permits")
            .field("available", &(now >> SHIFT))
            .field("waiting", &(now & WAITING != 0))
            .field("closed", &(now & CLOSED != 0))
            .finish()
    }
}

/// Future of [`Permits::acquire`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct Wish<'a> {
    permits: &'a Permits,
    waiter: Waiter<Need>,
}

impl<'a> Wish<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a Permits, Pin<&Waiter<Need>>) {
        let permits = self.permits;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (permits, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// A1 to A5.
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Result<(), Closed>> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        let wanted = unsafe { waiter.with_data(|need| need.wanted) };
        match permits.try_acquire(wanted) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(NotNow::Closed) => return Poll::Ready(Err(Closed)),
            Err(NotNow::TooFew) => {}
        }
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut line = permits.line.lock();
        let missing = match permits.queue(wanted) {
            Queued::Missing(missing) => missing,
            ended => {
                // The lock first, then the waker.
                drop(line);
                drop(waker);
                let taken = matches!(ended, Queued::Taken);
                return Poll::Ready(if taken { Ok(()) } else { Err(Closed) });
            }
        };
        // SAFETY: 1. and 2. as above.
        unsafe { waiter.with_data(|need| need.missing = missing) };
        // SAFETY: 1. as above. 2. `Drop` does.
        unsafe { line.join(waiter, waker) };
        Poll::Pending
    }

    /// A1 to A5 for a task without budget: it may not complete, but it takes its place in
    /// line, or those who come later would be served before it.
    #[cold]
    fn begin_without_budget(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        let wanted = unsafe { waiter.with_data(|need| need.wanted) };
        // There is no line, or no more of it. To hold permits while others run would make
        // these wait for nothing.
        let need_not_wait = permits.is_closed() || permits.available() >= wanted;
        if !need_not_wait && !weakened!("permits_without_budget_queue") {
            match self.begin(cx) {
                Poll::Pending => {
                    current::waits_for(Wait::Permit);
                    return Poll::Pending;
                }
                // They came back a moment ago.
                Poll::Ready(Ok(())) if !weakened!("permits_without_budget_give_back") => {
                    permits.release(wanted);
                }
                Poll::Ready(_) => {}
            }
        }
        // There is none, so this makes the task run again after the others.
        if budget::proceed(cx).is_ready() {
            // A waker's clone has left some.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// In line, as far as we know: sees that the right task will be woken.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own it. 2. It joined this line.
        let left = unsafe { keep_waker(&permits.line, |line| line, waiter, cx.waker()) };
        if left { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether it waits for permits, and not for its next turn.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "locks ask"))]
    pub(crate) fn is_in_line(&self) -> bool {
        self.waiter.place() == Place::In
    }

    /// Dismissed: served, or refused by a close.
    fn end(self: Pin<&Self>) -> Result<(), Closed> {
        let (_, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it has LEFT. 2. It does not.
        let missing = unsafe { waiter.with_data(|need| need.missing) };
        waiter.settle();
        if missing == 0 { Ok(()) } else { Err(Closed) }
    }

    /// Leaves the line; what it was given goes to the next.
    #[cold]
    fn give_up(self: Pin<&Self>) {
        let (permits, waiter) = self.waiter();
        let mut batch = Batch::new();
        let mut line = permits.line.lock();
        // SAFETY: 1. we own the waiter. 2. This is the line it joined.
        let Some(waker) = (unsafe { line.remove(waiter) }) else {
            // Dismissed a moment ago.
            drop(line);
            return self.give_back();
        };
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        let held = unsafe { waiter.with_data(|need| need.wanted - need.missing) };
        let held = if weakened!("permits_drop_passes_on") { 0 } else { held };
        let left = if line.is_empty() {
            permits.end_waiting(held);
            0
        } else {
            permits.serve(&mut line, held, &mut batch)
        };
        drop(line);
        batch.wake_all();
        permits.release(left);
        // Last: dropping it may panic, and everything is done by now.
        drop(waker);
    }

    /// Gives back what was granted and nobody looked at.
    #[cold]
    fn give_back(self: Pin<&Self>) {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it has LEFT. 2. It does not.
        let wanted = unsafe { waiter.with_data(|need| need.wanted) };
        if self.end().is_ok() && !weakened!("permits_drop_gives_back") {
            permits.release(wanted);
        }
    }
}

impl Future for Wish<'_> {
    type Output = Result<(), Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_ref();
        let place = this.waiter.place();
        // Who only waits needs no budget: that is for what completes at once.
        if place == Place::Out && !budget::is_left() {
            return this.begin_without_budget(cx);
        }
        if place == Place::In && this.go_on(cx).is_pending() {
            current::waits_for(Wait::Permit);
            return Poll::Pending;
        }
        if place != Place::Out {
            // It has left, or has just now. A future that is polled before it may use up
            // the budget of every poll: if it had to wait for some, nobody would ever get
            // what it was given.
            if let Some(unit) = budget::take() {
                unit.spend();
            }
            return Poll::Ready(this.end());
        }
        let unit = ready!(budget::proceed(cx));
        let polled = this.begin(cx);
        if polled.is_ready() {
            unit.spend();
        } else {
            current::waits_for(Wait::Permit);
        }
        polled
    }
}

impl Drop for Wish<'_> {
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

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
