//! A counting semaphore: tasks take permits out of a limited number, first come, first served.
//!
//! Locks, channels and bounded spawns are built on it. Taking permits that are free, and releasing
//! some while no task waits, is one exchange on one word. Only tasks that wait, and those that
//! serve them, take the lock of the wait queue.
//!
//! # Protocol
//! The word holds the number of free permits and two bits: CLOSED, and WAITING for 'the queue is
//! not empty'.
//!
//! ```text
//! acquire                                   release
//! A1 enough are free: takes them, done      R1 not WAITING: adds them, done
//! A2 locks the queue                        R2 WAITING: locks the queue
//! A3 enough are free now: takes them, done  R3 gives them to the first waiter, which
//! A4 takes what is free and sets WAITING,      leaves when it has all it wants; then to
//!    in one exchange                           the next
//! A5 joins the queue, missing the rest      R4 the queue is empty: clears WAITING and
//!                                              adds the rest, in one exchange
//! ```
//! A4 and R1 exchange the same word, so one comes first. If R1, A4 fails and checks again (A3): no
//! permit slips through between a failed attempt and queueing. If A4, R1 fails, finds WAITING, and
//! waits for the lock until A5 is done.
//!
//! Closing sets CLOSED under the lock and dismisses all waiters. A3 checks CLOSED under that lock,
//! so no waiter joins after it.
//!
//! A task without budget joins the queue if it has to wait anyway; otherwise it comes back at its
//! next turn, without permits. A task that has waited in the queue completes also without budget:
//! it has let others run, and the permits that it was given are kept from all of them.
//!
//! A waiter that is dropped while it is in the queue passes the permits that it was given on to the
//! next (R3). Permits that were granted to a future that was not polled again before its drop are
//! released (R1).
//!
//! # Invariants
//! - WAITING is set exactly if the queue is not empty, whenever the lock is free, and changes only
//!   under the lock.
//! - While WAITING is set no permit is free. So no task overtakes the queue, and the word changes
//!   only under the lock.
//! - Only the first waiter has been given a part of what it wants.
//!
//! # Rejected
//! Taking the lock for each release, as Tokio does: the word knows whether a task waits. Letting a
//! release add permits to the word and wake the first waiter to fetch them: other tasks may be
//! quicker, again and again.
//!
//! # Checked by
//! `acquire_against_release_is_never_left_waiting`, `acquire_against_close_ends`,
//! `a_waiter_dropped_against_a_release_loses_no_permit`,
//! `a_part_of_many_is_passed_on_when_its_waiter_is_dropped`,
//! `two_waiters_are_served_in_the_order_they_came`,
//! `many_permits_are_collected_from_two_releases`,
//! `a_permit_guards_as_a_lock_does`, `a_waiter_is_handed_what_the_releaser_wrote`,
//! `a_new_waker_against_a_release_is_woken`, `close_against_release_keeps_the_count`,
//! `a_full_wake_list_against_a_drop_serves_the_rest`,
//! `a_task_without_budget_enters_the_wait_queue`,
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
    update_waker::update_waker,
    wait_queue::{WaitQueue, Waiter, WaiterState},
    wake_list::{WakeList, wake_each},
};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        store_lock::StoreLock,
        weakened,
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

const CLOSED: usize = 1;
const WAITING: usize = 1 << 1;
const SHIFT: u32 = 2;
const ONE: usize = 1 << SHIFT;

/// The largest number of permits, which is Tokio's. It is one bit less than would fit, so that no
/// sum of two such numbers wraps.
pub(crate) const MAX: usize = usize::MAX >> 3;

/// A counting semaphore with a FIFO wait queue.
pub(crate) struct Permits {
    word: AtomicUsize,
    waiters: StoreLock<WaitQueue<PermitRequest>>,
}

/// The request of one waiter.
struct PermitRequest {
    wanted: usize,
    /// The number of wanted permits that it has not been given yet. Not zero for a waiter that was
    /// dismissed by a close, which has no permits.
    missing: usize,
}

/// The error of a semaphore that was closed: no more permits are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

/// The reason why there are no permits now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPermits {
    /// The semaphore was closed, so there never will be.
    Closed,
    /// Too few are free, or other tasks wait for them.
    TooFew,
}

/// The result of an attempt to join the wait queue.
#[must_use]
enum JoinResult {
    /// The permits belong to the caller, which need not wait.
    Taken,
    Closed,
    /// This number of permits is missing, so the caller must join the queue.
    Missing(usize),
}

impl Permits {
    /// Creates `count` permits, all free.
    ///
    /// # Panics
    /// If `count` is more than [`MAX`].
    #[cfg(not(blitz_loom))]
    #[track_caller]
    pub(crate) const fn new(count: usize) -> Self {
        assert_countable(count);
        Self { word: AtomicUsize::new(count << SHIFT), waiters: StoreLock::new(WaitQueue::new()) }
    }

    /// Creates `count` permits, in model builds, where atomics cannot be created in constants.
    #[cfg(blitz_loom)]
    #[track_caller]
    pub(crate) fn new(count: usize) -> Self {
        assert_countable(count);
        Self { word: AtomicUsize::new(count << SHIFT), waiters: StoreLock::new(WaitQueue::new()) }
    }

    /// Returns the number of free permits, which is zero while a task waits.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "semaphores report it"))]
    pub(crate) fn available(&self) -> usize {
        // Acquire: the caller sees what was done before the permits were released. Pairs with the
        // Release in `add`.
        self.word.load(Acquire) >> SHIFT
    }

    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "as `available`"))]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: sees what was done before the close. Pairs with the AcqRel in `close`.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// Performs A1: takes `count` permits if they are free and no task waits.
    ///
    /// # Panics
    /// If `count` is more than [`MAX`].
    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire(&self, count: usize) -> Result<(), NoPermits> {
        assert_countable(count);
        let order = if weakened!("permits_take_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: a caller that sees CLOSED or takes a permit sees what was done
        // before. Pairs with the AcqRel in `close` and the Release in `add`.
        let mut now = self.word.load(order);
        loop {
            if now & CLOSED != 0 {
                return Err(NoPermits::Closed);
            }
            // While a task waits, no permit is free.
            if now >> SHIFT < count {
                return Err(NoPermits::TooFew);
            }
            match self.word.compare_exchange_weak(now, now - count * ONE, order, order) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes `count` permits, or waits for them in the queue. When the future has completed, the
    /// caller has the permits, and must give them back with [`release`](Self::release).
    ///
    /// The future can be dropped at any time: it then holds no permits.
    ///
    /// # Panics
    /// If `count` is more than [`MAX`].
    #[track_caller]
    pub(crate) fn acquire(&self, count: usize) -> AcquireFuture<'_> {
        assert_countable(count);
        AcquireFuture {
            permits: self,
            waiter: Waiter::new(PermitRequest { wanted: count, missing: count }),
        }
    }

    /// Gives permits back, or adds new ones; tasks that wait are served first.
    ///
    /// # Panics
    /// If more than [`MAX`] would be free.
    #[inline]
    #[track_caller]
    pub(crate) fn release(&self, count: usize) {
        assert_countable(count);
        if count > 0 && !self.add(count) {
            self.serve_and_add(count);
        }
    }

    /// Performs R1. Returns `false` if a task waits.
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
            // Release: what we did happens before whatever the next holder does. Pairs with the
            // Acquire in `try_acquire` and `queue`. Relaxed on failure: a better guess.
            match self.word.compare_exchange_weak(now, now + count * ONE, order, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// Performs R2 to R4, once for each full wake list, or R1 after all.
    #[cold]
    #[track_caller]
    fn serve_and_add(&self, mut count: usize) {
        let mut wake_list = WakeList::new();
        loop {
            let rest = self.serve(&mut self.waiters.lock(), count, &mut wake_list);
            wake_list.wake_all();
            // If the queue was emptied meanwhile, WAITING was cleared.
            if rest == 0 || self.add(rest) {
                return;
            }
            count = rest;
        }
    }

    /// Performs R3 and R4, under the lock. Returns the number of permits that are left to give: the
    /// wake list is full, or no task waits.
    fn serve(
        &self,
        waiters: &mut WaitQueue<PermitRequest>,
        mut count: usize,
        wake_list: &mut WakeList,
    ) -> usize {
        while let Some(request) = waiters.first() {
            if wake_list.is_full() {
                return count;
            }
            let part = count.min(request.missing);
            count -= part;
            if part < request.missing {
                request.missing -= if weakened!("permits_part_counts") { 0 } else { part };
                return 0;
            }
            request.missing = 0;
            wake_list.push(waiters.dismiss_first());
            if waiters.is_empty() {
                self.end_waiting(count);
                return 0;
            }
        }
        count
    }

    /// Performs R4, under the lock: the queue has just become empty.
    fn end_waiting(&self, rest: usize) {
        // Release: as in `add`, publishes what was done before the release. No permit was free, so
        // nothing can overflow; if `rest` is zero, the sum wraps and so clears the bit.
        let before = self.word.fetch_add((rest * ONE).wrapping_sub(WAITING), Release);
        debug_assert!(before & WAITING != 0 && before >> SHIFT == 0, "no task waited: {before:#x}");
    }

    /// Performs A3 and A4, under the lock.
    fn queue(&self, wanted: usize) -> JoinResult {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & CLOSED != 0 && !weakened!("permits_queue_sees_closed") {
                // The closing thread had the lock before us, so we see what it did.
                return JoinResult::Closed;
            }
            let free = now >> SHIFT;
            let taken = free.min(wanted);
            let enough = taken == wanted && !weakened!("permits_queue_looks_again");
            let taken = if weakened!("permits_queue_looks_again") { 0 } else { taken };
            let mark = if enough { 0 } else { WAITING };
            // Acquire: sees what was done before the permits were released, also if they are only a
            // part. Pairs with the Release in `add`.
            let next = (now - taken * ONE) | mark;
            match self.word.compare_exchange_weak(now, next, Acquire, Relaxed) {
                Ok(_) if enough => return JoinResult::Taken,
                Ok(_) => return JoinResult::Missing(wanted - taken),
                Err(seen) => now = seen,
            }
        }
    }

    /// Removes up to `count` free permits for good, and returns how many.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "semaphores have it"))]
    pub(crate) fn forget(&self, count: usize) -> usize {
        // Relaxed: no task holds what is forgotten, and an exchange preserves what earlier releases
        // published for the tasks that take the rest.
        let mut now = self.word.load(Relaxed);
        loop {
            let gone = count.min(now >> SHIFT);
            match self.word.compare_exchange_weak(now, now - gone * ONE, Relaxed, Relaxed) {
                Ok(_) => return gone,
                Err(seen) => now = seen,
            }
        }
    }

    /// Closes the semaphore: tasks that wait, or come later, are refused. Permits may still be
    /// released.
    pub(crate) fn close(&self) {
        let waiters = self.waiters.lock();
        // AcqRel: tasks that are refused see what was done before the close. Pairs with the Acquire
        // in `try_acquire` and `is_closed`.
        self.word.fetch_or(CLOSED, AcqRel);
        let mut refund = 0;
        wake_each(
            waiters,
            || self.waiters.lock(),
            |waiters| {
                let request = waiters.first()?;
                refund += request.wanted - request.missing;
                let waker = waiters.dismiss_first();
                if waiters.is_empty() {
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

/// Panics for numbers that the word cannot count.
#[inline]
#[track_caller]
const fn assert_countable(count: usize) {
    assert!(count <= MAX, "{}", TOO_MANY);
}

/// The panic message with [`MAX`] as a number, as Tokio prints it: a constant function cannot
/// format one.
const TOO_MANY: &str = if usize::BITS == 64 {
    "a semaphore may not have more than MAX_PERMITS permits (2305843009213693951): use fewer"
} else {
    "a semaphore may not have more than MAX_PERMITS permits (536870911): use fewer"
};

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for debug output.
        let now = self.word.load(Relaxed);
        f.debug_struct("Permits")
            .field("available", &(now >> SHIFT))
            .field("waiting", &(now & WAITING != 0))
            .field("closed", &(now & CLOSED != 0))
            .finish()
    }
}

/// The future that [`Permits::acquire`] returns.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct AcquireFuture<'a> {
    permits: &'a Permits,
    waiter: Waiter<PermitRequest>,
}

impl<'a> AcquireFuture<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a Permits, Pin<&Waiter<PermitRequest>>) {
        let permits = self.permits;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (permits, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Takes the permits, or joins the wait queue (A1 to A5).
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Result<(), Closed>> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it is OUT. 2. The closure does not call `with_data`.
        let wanted = unsafe { waiter.with_data(|request| request.wanted) };
        match permits.try_acquire(wanted) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(NoPermits::Closed) => return Poll::Ready(Err(Closed)),
            Err(NoPermits::TooFew) => {}
        }
        // Cloning a waker is user code, and so comes before the lock.
        let waker = cx.waker().clone();
        let mut waiters = permits.waiters.lock();
        let missing = match permits.queue(wanted) {
            JoinResult::Missing(missing) => missing,
            ended => {
                // The lock is released before the waker is dropped, which is user code.
                drop(waiters);
                drop(waker);
                let taken = matches!(ended, JoinResult::Taken);
                return Poll::Ready(if taken { Ok(()) } else { Err(Closed) });
            }
        };
        // SAFETY: 1. we own the waiter, and it is OUT. 2. The closure does not call `with_data`.
        unsafe { waiter.with_data(|request| request.missing = missing) };
        // SAFETY: 1. we own the waiter, and it is OUT. 2. Our `Drop` removes it.
        unsafe { waiters.join(waiter, waker) };
        Poll::Pending
    }

    /// Performs A1 to A5 for a task without budget: it may not complete, but must join the queue,
    /// because tasks that come later would be served before it otherwise.
    #[cold]
    fn begin_without_budget(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it is OUT. 2. The closure does not call `with_data`.
        let wanted = unsafe { waiter.with_data(|request| request.wanted) };
        // There is no queue to join. The task does not take the permits either: to hold them while
        // others run would make those wait for nothing.
        let need_not_wait = permits.is_closed() || permits.available() >= wanted;
        if !need_not_wait && !weakened!("permits_without_budget_queue") {
            match self.begin(cx) {
                Poll::Pending => {
                    thread_context::waits_for(WaitReason::Permit);
                    return Poll::Pending;
                }
                // Permits were released between the check above and the attempt.
                Poll::Ready(Ok(())) if !weakened!("permits_without_budget_give_back") => {
                    permits.release(wanted);
                }
                Poll::Ready(_) => {}
            }
        }
        // There is no budget, so this makes the task run again after the others.
        if budget::poll_proceed(cx).is_ready() {
            // The clone of a waker, which is user code, has left some budget.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Handles a poll of a waiter that was IN: makes sure that the right task will be woken, and
    /// returns `Ready` if the waiter was dismissed.
    fn poll_queued(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter. 2. It joined this queue.
        let rest = unsafe { update_waker(&permits.waiters, |waiters| waiters, waiter, cx.waker()) };
        if rest { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns whether the future waits in the queue for permits, and not for the task's next turn.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "locks call it"))]
    pub(crate) fn is_queued(&self) -> bool {
        self.waiter.state() == WaiterState::In
    }

    /// Returns the result of a dismissed waiter: it was served, or refused by a close.
    fn end(self: Pin<&Self>) -> Result<(), Closed> {
        let (_, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it is DISMISSED. 2. The closure does not call
        // `with_data`.
        let missing = unsafe { waiter.with_data(|request| request.missing) };
        waiter.settle();
        if missing == 0 { Ok(()) } else { Err(Closed) }
    }

    /// Leaves the queue; the permits that the waiter was given go to the next.
    #[cold]
    fn leave_queue(self: Pin<&Self>) {
        let (permits, waiter) = self.waiter();
        let mut wake_list = WakeList::new();
        let mut waiters = permits.waiters.lock();
        // SAFETY: 1. we own the waiter. 2. This is the queue that it joined.
        let Some(waker) = (unsafe { waiters.remove(waiter) }) else {
            // The waiter was dismissed after `state` was read.
            drop(waiters);
            return self.give_back();
        };
        // SAFETY: 1. we own the waiter, and it is OUT. 2. The closure does not call `with_data`.
        let granted = unsafe { waiter.with_data(|request| request.wanted - request.missing) };
        let granted = if weakened!("permits_drop_passes_on") { 0 } else { granted };
        let rest = if waiters.is_empty() {
            permits.end_waiting(granted);
            0
        } else {
            permits.serve(&mut waiters, granted, &mut wake_list)
        };
        drop(waiters);
        wake_list.wake_all();
        permits.release(rest);
        // This comes last, because dropping a waker may panic, and everything else is done by now.
        drop(waker);
    }

    /// Releases permits that were granted to a future that is dropped without being polled again.
    #[cold]
    fn give_back(self: Pin<&Self>) {
        let (permits, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter, and it is DISMISSED. 2. The closure does not call
        // `with_data`.
        let wanted = unsafe { waiter.with_data(|request| request.wanted) };
        if self.end().is_ok() && !weakened!("permits_drop_gives_back") {
            permits.release(wanted);
        }
    }
}

impl Future for AcquireFuture<'_> {
    type Output = Result<(), Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_ref();
        let state = this.waiter.state();
        // A future that only waits needs no budget: budget is for operations that complete at once.
        if state == WaiterState::Out && !budget::has_remaining_for(cx) {
            return this.begin_without_budget(cx);
        }
        if state == WaiterState::In && this.poll_queued(cx).is_pending() {
            thread_context::waits_for(WaitReason::Permit);
            return Poll::Pending;
        }
        if state != WaiterState::Out {
            // The waiter has been dismissed. Another future that is polled before this one may use
            // up the budget of every poll: if this one had to wait for budget, no task would ever
            // get the permits that it was given.
            if let Some(unit) = budget::take() {
                unit.spend();
            }
            return Poll::Ready(this.end());
        }
        let unit = ready!(budget::poll_proceed(cx));
        let polled = this.begin(cx);
        if polled.is_ready() {
            unit.spend();
        } else {
            thread_context::waits_for(WaitReason::Permit);
        }
        polled
    }
}

impl Drop for AcquireFuture<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        match this.waiter.state() {
            WaiterState::Out => {}
            WaiterState::In => this.leave_queue(),
            WaiterState::Dismissed => this.give_back(),
        }
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
