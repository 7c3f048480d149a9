//! What is spawned: a future, or a closure, that has a place until it was dropped.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{
    Shared,
    members::{Armed, End, Key},
    report::About,
};
use crate::task::{AbortHandle, JoinHandle};

pin_project! {
    /// A future that is a member until it was dropped.
    pub(super) struct Member<F> {
        // Before the seat: what is over has nothing left.
        #[pin]
        future: F,
        seat: Seat,
    }
}

/// A member's place. Given up when this is dropped.
pub(super) struct Seat {
    shared: Arc<Shared>,
    key: Key,
    end: End,
}

/// The part of who spawns, until it is done.
pub(super) struct Spawning {
    shared: Arc<Shared>,
    key: Key,
}

impl Seat {
    /// S1: a place, and the part of who spawns; `None` if the shutdown is over.
    pub(super) fn take(shared: &Arc<Shared>, about: About) -> Option<(Self, Spawning)> {
        let key = shared.members.enter(about).ok()?;
        let seat = Self { shared: shared.clone(), key, end: End::Dropped };
        Some((seat, Spawning { shared: shared.clone(), key }))
    }

    /// It holds the place for as long as it lives.
    pub(super) fn hold<F: Future>(self, future: F) -> Member<F> {
        Member { future, seat: self }
    }

    /// Calls `f`, which is a member until it has returned.
    pub(super) fn call<R>(mut self, f: impl FnOnce() -> R) -> R {
        let answer = f();
        self.end = End::Done;
        answer
    }
}

impl Spawning {
    /// S3.
    pub(super) fn done<T>(self, task: JoinHandle<T>) -> JoinHandle<T> {
        match self.shared.members.arm(self.key, task.abort_handle()) {
            Armed::Member => {}
            Armed::Gone(handle) => drop::<AbortHandle>(handle),
            Armed::Late(handle) => handle.abort(),
        }
        task
    }
}

impl Drop for Spawning {
    /// Also if nothing was spawned, because that panicked.
    fn drop(&mut self) {
        self.shared.members.spawned();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        /// E2, also if a waker of those who watch panics.
        struct Leaving<'a>(&'a Shared);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                self.0.members.left();
            }
        }
        let leaving = Leaving(&self.shared);
        // Counted from the beginning of the shutdown on, which is also when others want to
        // know.
        let begun = self.shared.told.is_cancelled();
        self.shared.members.leave(self.key, self.end, begun);
        // Once more: if it began in between, it may have looked before we left.
        if begun || self.shared.told.is_cancelled() {
            self.shared.tell(None);
        }
        drop(leaving);
    }
}

impl<F: Future> Future for Member<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        this.seat.end = End::Done;
        Poll::Ready(output)
    }
}

/// A closure that is a member until it has returned, or was dropped.
pub(super) struct Call<F> {
    // Dropped before the seat, also if it is never called. What a closure captures is dropped
    // in no certain order, so these two are one.
    f: F,
    seat: Seat,
}

impl<F: FnOnce() -> R, R> Call<F> {
    pub(super) fn new(seat: Seat, f: F) -> Self {
        Self { f, seat }
    }

    pub(super) fn run(self) -> R {
        let Self { f, seat } = self;
        seat.call(f)
    }
}
