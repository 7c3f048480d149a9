//! To wait for one's turn at a lock or a semaphore: what their futures are made of.
//!
//! A [`Turn`] looks at the permits before it makes anything to wait with. If they are
//! there it is one exchange and a unit of budget, and the [`Wish`], with its waiter and
//! its place in line, is never made: the future of an uncontended lock writes two words.
//!
//! # Invariants
//! - Where permits are taken, the caller's next step makes them a guard: nothing that
//!   can panic lies in between.
//! - Dropping a turn at any moment gives up its place in line, and what it was given
//!   there.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::engine::{
    wait::{
        holders::{Awaiting, Caller, Name},
        permits::{Closed, NotNow, Permits, Wish},
    },
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

pin_project! {
    /// The place in line, if there has to be one.
    pub(crate) struct Turn<'a> {
        #[pin]
        wish: Option<Wish<'a>>,
        awaiting: Awaiting,
    }
}

/// A lock's name in the book, and where it was asked for; none for semaphores.
pub(crate) type Asked<'a> = Option<(&'a Name, Caller)>;

impl<'a> Turn<'a> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { wish: None, awaiting: Awaiting::new() }
    }

    /// Takes `count` permits, at once or after the others. Always called with the same
    /// permits and count.
    #[inline]
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        permits: &'a Permits,
        count: usize,
        asked: Asked<'_>,
    ) -> Poll<Result<(), Closed>> {
        // Without budget it may still have to take its place in line.
        if self.wish.is_none() && budget::is_left() {
            let unit = ready!(budget::proceed(cx));
            match permits.try_acquire(count) {
                Err(NotNow::TooFew) => {}
                done => {
                    unit.spend();
                    return Poll::Ready(done.map_err(|_| Closed));
                }
            }
        }
        self.wait(cx, permits, count, asked)
    }

    /// In line.
    #[cold]
    fn wait(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        permits: &'a Permits,
        count: usize,
        asked: Asked<'_>,
    ) -> Poll<Result<(), Closed>> {
        let mut this = self.project();
        if this.wish.is_none() {
            this.wish.set(Some(permits.acquire(count)));
        }
        let mut wish = this.wish.as_pin_mut().expect("it was made above");
        let polled = wish.as_mut().poll(cx);
        match asked {
            _ if polled.is_ready() => this.awaiting.end(),
            // Else it waits for its next turn on a worker, and has said so.
            Some((name, caller)) if wish.is_in_line() => {
                current::waits_for(Wait::Lock);
                this.awaiting.note(name, caller);
            }
            _ => {}
        }
        polled
    }
}

pin_project! {
    /// A turn that knows what it waits for: for futures that own the lock beside it.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) struct Taking<'a> {
        permits: &'a Permits,
        count: usize,
        asked: Asked<'a>,
        #[pin]
        turn: Turn<'a>,
    }
}

impl<'a> Taking<'a> {
    #[inline]
    pub(crate) fn new(permits: &'a Permits, count: usize, asked: Asked<'a>) -> Self {
        Self { permits, count, asked, turn: Turn::new() }
    }
}

impl Future for Taking<'_> {
    type Output = Result<(), Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.turn.poll(cx, this.permits, *this.count, *this.asked)
    }
}

/// What locks do with the answer: their permits are never closed.
#[inline]
pub(crate) fn open(taken: Result<(), Closed>) {
    if taken.is_err() {
        never_closed();
    }
}

#[cold]
fn never_closed() -> ! {
    unreachable!("a lock was closed: nothing can do that, so its memory was overwritten")
}
