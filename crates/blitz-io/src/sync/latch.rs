//! Something that happens once, and those who wait for it.
//!
//! # Protocol
//! ```text
//! who waits                               who opens the latch
//! L1 open: done                           M1 stores OPEN
//! L2 locks the line                       M2 locks the line
//! L3 open now: done                       M3 dismisses all, in batches, the lock let
//! L4 joins the line                          go between them
//! ```
//! One of L2 and M2 has the lock first. If M2, L3 sees M1; if L2, M3 finds the one who
//! waits. Nobody joins after M2, so M3 ends.
//!
//! M1 may itself be under the lock ([`Latch::open_with`]): then whoever opens first has
//! done so completely before another one is refused.
//!
//! A task without budget waits in line all the same. If the latch is open at its first
//! poll it is put off, once: a loop over open latches lets others run. It is not put off
//! twice, nor after it has waited. What is polled beside it may use up the budget of every
//! poll, and would keep it from ever seeing that the latch is open.
//!
//! # Checked by
//! The models of `set_once.rs`: `an_opening_is_not_missed`, `all_who_wait_are_told_in_batches`,
//! `a_waiter_dropped_against_an_opening_breaks_nothing`,
//! `a_new_waker_against_an_opening_is_woken`, `who_comes_late_sees_what_was_done`;
//! weakened as `latch_looks_again`, `latch_wakes`, `latch_release`,
//! `latch_acquire`, `latch_wakes_batches`.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::{
    prim::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
        bolt::Bolted,
        weakened,
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

/// See the module.
pub(super) struct Latch {
    open: AtomicBool,
    line: Bolted<Line<bool>>,
}

/// One who waits: a part of its future, which is pinned with it. Its data is whether it
/// was put off for want of budget.
pub(super) struct Stay(Waiter<bool>);

impl Latch {
    #[cfg(not(blitz_loom))]
    pub(super) const fn new(open: bool) -> Self {
        Self { open: AtomicBool::new(open), line: Bolted::new(Line::new()) }
    }

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    pub(super) fn new(open: bool) -> Self {
        Self { open: AtomicBool::new(open), line: Bolted::new(Line::new()) }
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        let order = if weakened!("latch_acquire") { Relaxed } else { Acquire };
        // Acquire: what was done before it opened. Pairs with the Release in `mark`.
        self.open.load(order)
    }

    /// M1. What waits is dismissed by [`dismiss`](Self::dismiss).
    #[inline]
    pub(super) fn mark(&self) {
        let order = if weakened!("latch_release") { Relaxed } else { Release };
        // Release: publishes what was done before. Pairs with the Acquire in `is_open`.
        self.open.store(true, order);
    }

    /// M3, until the batch is full: `true` then, and the caller wakes and comes again.
    #[must_use]
    pub(super) fn dismiss(&self, batch: &mut Batch) -> bool {
        self.dismiss_from(&mut self.line.lock(), batch)
    }

    fn dismiss_from(&self, line: &mut Line<bool>, batch: &mut Batch) -> bool {
        while !line.is_empty() {
            if batch.is_full() {
                return !weakened!("latch_wakes_batches");
            }
            batch.push(line.dismiss_first());
        }
        false
    }

    /// Opens the latch after a step that one caller does, under the lock; `false` if it
    /// was open.
    #[inline]
    pub(super) fn open_with(&self, step: impl FnOnce()) -> bool {
        let mut line = self.line.lock();
        // Relaxed: it is written under the lock, which we hold.
        if self.open.load(Relaxed) {
            return false;
        }
        step();
        self.mark();
        if weakened!("latch_wakes") {
            return true;
        }
        let mut batch = Batch::new();
        while self.dismiss_from(&mut line, &mut batch) {
            drop(line);
            batch.wake_all();
            line = self.line.lock();
        }
        drop(line);
        batch.wake_all();
        true
    }

    /// The latch is as new: for one who has the only reference.
    pub(super) fn shut(&mut self) {
        // Relaxed: nobody else looks.
        self.open.store(false, Relaxed);
    }

    /// L1 to L4, or what comes after; with a unit of the task's budget, if there is one.
    ///
    /// # Safety
    /// 1. The stay is at this latch only. 2. The caller calls `leave` before it ends.
    #[inline]
    pub(super) unsafe fn poll(
        &self,
        stay: Pin<&Stay>,
        cx: &mut Context<'_>,
        what: Wait,
    ) -> Poll<()> {
        let unit = budget::take();
        // SAFETY: 1. by 1.
        if unit.is_none() && self.is_open() && unsafe { self.puts_off(stay) } {
            ready!(budget::available(cx));
        }
        // SAFETY: 1. and 2. by 1. and 2.
        if !self.is_open() && unsafe { self.stay(stay, cx) }.is_pending() {
            current::waits_for(what);
            return Poll::Pending;
        }
        if let Some(unit) = unit {
            unit.spend();
        }
        Poll::Ready(())
    }

    /// Whether one who comes without budget has to wait for its task's next turn: the
    /// first time, unless it has waited in line.
    ///
    /// # Safety
    /// 1. The stay is at this latch only.
    #[cold]
    unsafe fn puts_off(&self, stay: Pin<&Stay>) -> bool {
        let waiter = stay.waiter();
        waiter.place() == Place::Out
            // SAFETY: 1. the caller owns it, and it is OUT. 2. It does not.
            && !unsafe { waiter.with_data(|put_off| std::mem::replace(put_off, true)) }
    }

    /// L2 to L4: it was not open a moment ago.
    ///
    /// # Safety
    /// 1. and 2. as `poll`.
    #[cold]
    unsafe fn stay(&self, stay: Pin<&Stay>, cx: &Context<'_>) -> Poll<()> {
        let waiter = stay.waiter();
        if waiter.place() != Place::Out {
            // SAFETY: 1. the caller owns it. 2. By 1.
            let left = unsafe { keep_waker(&self.line, |line| line, waiter, cx.waker()) };
            return if left { Poll::Ready(()) } else { Poll::Pending };
        }
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut line = self.line.lock();
        if self.is_open() && !weakened!("latch_looks_again") {
            // The lock first, then the waker.
            drop(line);
            drop(waker);
            return Poll::Ready(());
        }
        // SAFETY: 1. the caller owns it, and it is OUT. 2. By 2.
        unsafe { line.join(waiter, waker) };
        Poll::Pending
    }

    /// The stay ends.
    ///
    /// # Safety
    /// 1. The stay is at this latch only.
    #[inline]
    pub(super) unsafe fn leave(&self, stay: Pin<&Stay>) {
        if stay.0.place() == Place::In {
            // SAFETY: 1. the caller owns it. 2. By 1.
            let waker = unsafe { self.line.lock().remove(stay.waiter()) };
            // The lock was let go at the end of the statement above.
            drop(waker);
        }
    }
}

impl Stay {
    #[inline]
    pub(super) fn new() -> Self {
        Self(Waiter::new(false))
    }

    fn waiter(self: Pin<&Self>) -> Pin<&Waiter<bool>> {
        // SAFETY: the waiter is pinned with the stay: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.0) }
    }
}
