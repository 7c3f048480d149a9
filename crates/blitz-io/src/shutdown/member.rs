//! The tasks of a shutdown: futures and closures that hold a place until they are dropped.

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
    /// A future that is a member of a shutdown until it is dropped.
    pub(super) struct Member<F> {
        // Declared before the seat, so that the future is dropped before the place is given up.
        #[pin]
        future: F,
        seat: Seat,
    }
}

/// A member's place, which is given up when this is dropped.
pub(super) struct Seat {
    shared: Arc<Shared>,
    key: Key,
    end: End,
}

/// The spawning thread's part in the tracker, which ends when this is dropped.
pub(super) struct Spawning {
    shared: Arc<Shared>,
    key: Key,
}

impl Seat {
    /// Takes a place for a task that is about to be spawned (S1). Returns `None` if the members are
    /// closed.
    pub(super) fn take(shared: &Arc<Shared>, about: About) -> Option<(Self, Spawning)> {
        let key = shared.members.enter(about).ok()?;
        let seat = Self { shared: shared.clone(), key, end: End::Dropped };
        Some((seat, Spawning { shared: shared.clone(), key }))
    }

    /// Wraps `future`, so that it holds the place for as long as it lives.
    pub(super) fn hold<F: Future>(self, future: F) -> Member<F> {
        Member { future, seat: self }
    }

    /// Calls `f`, which is a member until it returns.
    pub(super) fn call<R>(mut self, f: impl FnOnce() -> R) -> R {
        let answer = f();
        self.end = End::Done;
        answer
    }
}

impl Spawning {
    /// Stores the handle of the spawned task, and aborts the task if the members were closed
    /// meanwhile (S3).
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
    /// Runs also if the spawn panicked and there is no task.
    fn drop(&mut self) {
        self.shared.members.spawned();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        /// Leaves the tracker when it is dropped (E2), even if a waker of a progress receiver
        /// panics.
        struct Leaving<'a>(&'a Shared);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                self.0.members.left();
            }
        }
        let leaving = Leaving(&self.shared);
        // Members that end are counted, and progress is published, from the beginning of the
        // shutdown on.
        let begun = self.shared.told.is_cancelled();
        self.shared.members.leave(self.key, self.end, begun);
        // Check once more: if the shutdown began in between, `begin` may have read the number of
        // members before this one left.
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

/// A closure that is a member of a shutdown until it has returned or was dropped.
pub(super) struct Call<F> {
    // Declared before the seat, so that it is dropped first, even if it is never called. They are
    // fields of one struct because a closure drops its captures in no defined order.
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
