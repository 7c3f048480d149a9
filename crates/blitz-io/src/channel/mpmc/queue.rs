//! Who waits on one side of a channel, and how they are not missed.
//!
//! # Protocol
//! Whoever makes something (a message, or room) does not take a lock to find out that
//! nobody waits for it:
//!
//! ```text
//! who makes something at a place             who waits for something at that place
//! M1 writes the place's stamp, SeqCst        W1 joins the line and sets WAITING, locked
//! M2 reads the flags, SeqCst                 W2 fence(SeqCst)
//! M3 WAITING: locks, dismisses the first     W3 looks at the place's stamp once more
//! ```
//! M1 and W2 are in one total order. If M1 is before W2, W3 sees what was made. If W2 is
//! before M1, M2 is behind it too and sees WAITING, for as long as the waiter is in line.
//!
//! One who was dismissed looks again. It may find nothing, because somebody who never
//! waited was quicker; it then joins the line anew, at its end. If it finds something it
//! looks whether there is more for the next one (`Chan::pass_on`), since several
//! things may have become available at once while those who made them saw nobody
//! wait: the place that all the waiters looked at was a place before theirs.
//! One who was dismissed and goes without looking dismisses the next.
//!
//! # Invariants
//! - WAITING is set exactly if the line is not empty, whenever the lock is free.
//! - GONE is never cleared.
//!
//! # Rejected
//! - The asymmetric barrier (`prim/barrier.rs`): to wait would be a system call, and
//!   tasks that pass messages to and fro wait all the time.
//! - To hand the value over to the first in line: whoever sends would take the lock and
//!   wait for whoever is in the middle of a receive. It would be fair; see the module's
//!   documentation for what is promised instead.
//! - That newcomers queue up behind a line that is not empty: with many on each side
//!   everybody would then go through the lock.
//!
//! # Checked by
//! See `chan.rs`; weakened as `mpmc_waiter_fences`, `mpmc_waiter_looks_again`,
//! `mpmc_dismissed_passes_on`.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::engine::{
    prim::{
        AtomicU32,
        Ordering::{Relaxed, SeqCst},
        bolt::Bolted,
        fence, weakened,
    },
    wait::{
        batch::{Batch, wake_each},
        keep::keep_waker,
        line::{Line, Place, Waiter},
    },
    work::task::budget::{self, Unit},
};

/// The line is not empty.
pub(super) const WAITING: u32 = 1;
/// Nobody will ever wait here again: all of that side are gone.
pub(super) const GONE: u32 = 1 << 1;

/// Those who wait for one kind of thing.
pub(super) struct Queue {
    flags: AtomicU32,
    line: Bolted<Line<()>>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { flags: AtomicU32::new(0), line: Bolted::new(Line::new()) }
    }

    /// M2.
    #[inline]
    pub(super) fn flags(&self) -> u32 {
        // SeqCst: comes after the stamp in the one total order. Pairs with the fence in
        // `join`.
        self.flags.load(SeqCst)
    }

    /// All of that side are gone.
    pub(super) fn set_gone(&self) {
        // SeqCst: as the flag in `join`; whoever calls this looks behind a fence.
        self.flags.fetch_or(GONE, SeqCst);
    }

    /// M3: dismisses the first in line, if there is one.
    #[cold]
    pub(super) fn wake_one(&self) {
        let mut batch = Batch::new();
        let mut line = self.line.lock();
        if !line.is_empty() {
            batch.push(line.dismiss_first());
            self.note(&line);
        }
        drop(line);
        batch.wake_all();
    }

    /// Dismisses everybody, a batch at a time.
    #[cold]
    pub(super) fn wake_all(&self) {
        let lock = || self.line.lock();
        wake_each(lock(), lock, |line| {
            line.first()?;
            let waker = line.dismiss_first();
            self.note(line);
            Some(waker)
        });
    }

    /// Clears WAITING if the line is empty; under the lock.
    fn note(&self, line: &Line<()>) {
        if line.is_empty() {
            // Relaxed: who sets it again does so under the lock.
            self.flags.fetch_and(!WAITING, Relaxed);
        }
    }
}

/// A place in a queue, pinned in a future.
pub(super) struct Stand<'a> {
    queue: &'a Queue,
    /// A waiter of that queue and of no other.
    waiter: Waiter<()>,
}

impl<'a> Stand<'a> {
    #[inline]
    pub(super) fn new(queue: &'a Queue) -> Self {
        Self { queue, waiter: Waiter::new(()) }
    }

    fn waiter(self: Pin<&Self>) -> Pin<&Waiter<()>> {
        // SAFETY: the waiter is pinned with us: nothing moves it, and its destructor
        // runs in place.
        unsafe { self.map_unchecked(|this| &this.waiter) }
    }

    /// A unit of the budget, to be spent with the answer. One who has waited needs none:
    /// nobody else is woken for what it is dismissed for, and what is polled beside it
    /// may use up the budget of every poll.
    #[inline]
    pub(super) fn proceed(&self, cx: &mut Context<'_>) -> Poll<Option<Unit>> {
        if self.waiter.place() != Place::Out && !budget::is_left() {
            return Poll::Ready(None);
        }
        budget::proceed(cx).map(Some)
    }

    /// Attempts, waits in line, attempts again. The answer comes with whether somebody
    /// has dismissed us on the way: then the caller sees to the next one.
    #[inline]
    pub(super) fn poll<R>(
        self: Pin<&Self>,
        cx: &Context<'_>,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<(R, bool)> {
        if self.waiter.place() == Place::In && self.stays(cx.waker()) {
            return Poll::Pending;
        }
        match attempt() {
            Some(answer) => Poll::Ready((answer, self.settle())),
            None => self.wait(cx.waker(), attempt),
        }
    }

    /// W1 to W3.
    #[cold]
    fn wait<R>(
        self: Pin<&Self>,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<(R, bool)> {
        // A user's code, and so before the lock; also before we forget that we were
        // dismissed, should it panic.
        let waker = waker.clone();
        let dismissed = self.settle();
        let mut line = self.queue.line.lock();
        // SAFETY: 1. we own the waiter, and it is OUT. 2. `Drop` does.
        unsafe { line.join(self.waiter(), waker) };
        // SeqCst: ordered before the fence for whoever looks at the flags. Pairs with
        // the load in `flags`.
        self.queue.flags.fetch_or(WAITING, SeqCst);
        drop(line);
        if !weakened!("mpmc_waiter_fences") {
            // SeqCst: comes before or after the stamp of whoever makes something. Pairs
            // with the SeqCst store in `Chan::publish`.
            fence(SeqCst);
        }
        if weakened!("mpmc_waiter_looks_again") {
            return Poll::Pending;
        }
        match attempt() {
            Some(answer) => Poll::Ready((answer, self.leave() || dismissed)),
            None => Poll::Pending,
        }
    }

    /// In line, as far as we know: sees that the right task will be woken. `false` if it
    /// was dismissed meanwhile.
    #[cold]
    fn stays(self: Pin<&Self>, waker: &Waker) -> bool {
        let waiter = self.waiter();
        // SAFETY: 1. we own it. 2. It joined this line.
        !unsafe { keep_waker(&self.queue.line, |line| line, waiter, waker) }
    }

    /// May wait again; whether it was dismissed.
    #[inline]
    fn settle(&self) -> bool {
        let dismissed = self.waiter.place() == Place::Left;
        if dismissed {
            self.waiter.settle();
        }
        dismissed
    }

    /// Leaves the line; whether it was dismissed before.
    #[cold]
    fn leave(self: Pin<&Self>) -> bool {
        let mut line = self.queue.line.lock();
        // SAFETY: 1. we own the waiter. 2. This is the line it joined.
        let waker = unsafe { line.remove(self.waiter()) };
        self.queue.note(&line);
        drop(line);
        // Outside the lock: it is a user's code.
        drop(waker);
        self.settle()
    }
}

impl Drop for Stand<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        let dismissed = match this.waiter.place() {
            Place::Out => false,
            Place::In => this.leave(),
            Place::Left => true,
        };
        // It goes without having looked: what it was woken for is the next one's.
        if dismissed && !weakened!("mpmc_dismissed_passes_on") {
            this.queue.wake_one();
        }
    }
}
