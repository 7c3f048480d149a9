//! Waiting for a lock or a semaphore: the part that their futures share.
//!
//! An [`Acquisition`] first tries to take the permits. If they are available, that is one exchange
//! and a unit of budget, and the [`AcquireFuture`], with its waiter and its place in the wait
//! queue, is never created: the future of an uncontended lock writes two words.
//!
//! # Invariants
//! - When permits are taken, the caller's next step wraps them in a guard: nothing that can
//!   panic lies in between.
//! - Dropping an acquisition at any time gives up its place in the wait queue, and the permits that
//!   it was given there.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::engine::{
    wait::{
        holders::{CallSite, LockId, WaitEntry},
        permits::{AcquireFuture, Closed, NoPermits, Permits},
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

pin_project! {
    /// Acquisition of permits in progress; has a place in the wait queue only if it must wait.
    pub(crate) struct Acquisition<'a> {
        #[pin]
        acquire: Option<AcquireFuture<'a>>,
        awaiting: WaitEntry,
    }
}

/// A lock's name in the record of lock holders, and the source location at which it was
/// requested; `None` for semaphores.
pub(crate) type LockRequest<'a> = Option<(&'a LockId, CallSite)>;

impl<'a> Acquisition<'a> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { acquire: None, awaiting: WaitEntry::new() }
    }

    /// Takes `count` permits, at once or after earlier requests. Must always be called with the
    /// same `permits` and `count`.
    #[inline]
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        permits: &'a Permits,
        count: usize,
        request: LockRequest<'_>,
    ) -> Poll<Result<(), Closed>> {
        // Without budget the task may still have to join the wait queue, so `wait` decides.
        if self.acquire.is_none() && budget::has_remaining_for(cx) {
            let unit = ready!(budget::poll_proceed(cx));
            match permits.try_acquire(count) {
                Err(NoPermits::TooFew) => {}
                done => {
                    unit.spend();
                    return Poll::Ready(done.map_err(|_| Closed));
                }
            }
        }
        self.wait(cx, permits, count, request)
    }

    /// Waits in the wait queue, which the acquisition joins first if necessary.
    #[cold]
    fn wait(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        permits: &'a Permits,
        count: usize,
        request: LockRequest<'_>,
    ) -> Poll<Result<(), Closed>> {
        let mut this = self.project();
        if this.acquire.is_none() {
            this.acquire.set(Some(permits.acquire(count)));
        }
        let mut acquire = this.acquire.as_pin_mut().expect("it was made above");
        let polled = acquire.as_mut().poll(cx);
        match request {
            _ if polled.is_ready() => this.awaiting.end(),
            // Otherwise it is not in the queue but was deferred to its task's next poll for want of
            // budget, which has been recorded.
            Some((name, caller)) if acquire.is_queued() => {
                thread_context::waits_for(WaitReason::Lock);
                this.awaiting.note(name, caller);
            }
            _ => {}
        }
        polled
    }
}

pin_project! {
    /// An [`Acquisition`] with its permits and count, for futures that own the lock themselves.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) struct Taking<'a> {
        permits: &'a Permits,
        count: usize,
        request: LockRequest<'a>,
        #[pin]
        acquisition: Acquisition<'a>,
    }
}

impl<'a> Taking<'a> {
    #[inline]
    pub(crate) fn new(permits: &'a Permits, count: usize, request: LockRequest<'a>) -> Self {
        Self { permits, count, request, acquisition: Acquisition::new() }
    }
}

impl Future for Taking<'_> {
    type Output = Result<(), Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.acquisition.poll(cx, this.permits, *this.count, *this.request)
    }
}

/// Unwraps the result for locks, because their permits are never closed.
#[inline]
pub(crate) fn open(taken: Result<(), Closed>) {
    if taken.is_err() {
        never_closed();
    }
}

#[cold]
fn never_closed() -> ! {
    unreachable!("a lock's semaphore is closed, which no code does: its memory was overwritten")
}
