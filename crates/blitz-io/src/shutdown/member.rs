//! The tasks of a shutdown: futures and closures that are members until they are dropped.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{
    Shared,
    members::{End, HandleStored, Key},
    report::TaskInfo,
};
use crate::task::{AbortHandle, JoinHandle};

pin_project! {
    /// A future that is a member of a shutdown until it is dropped.
    pub(super) struct Member<F> {
        // Declared before the membership, so that the future is dropped before the membership ends.
        #[pin]
        future: F,
        membership: Membership,
    }
}

/// A member's entry, which is removed when this is dropped.
pub(super) struct Membership {
    shared: Arc<Shared>,
    key: Key,
    end: End,
}

/// The spawning thread's part in the tracker, which ends when this is dropped.
pub(super) struct Spawning {
    shared: Arc<Shared>,
    key: Key,
}

impl Membership {
    /// Adds an entry for a task that is about to be spawned (S1). Returns `None` if the members are
    /// closed.
    pub(super) fn enter(shared: &Arc<Shared>, info: TaskInfo) -> Option<(Self, Spawning)> {
        let key = shared.members.enter(info).ok()?;
        let membership = Self { shared: shared.clone(), key, end: End::Dropped };
        Some((membership, Spawning { shared: shared.clone(), key }))
    }

    /// Wraps `future`, so that it is a member for as long as it lives.
    pub(super) fn wrap<F: Future>(self, future: F) -> Member<F> {
        Member { future, membership: self }
    }

    /// Calls `f`, which is a member until it returns.
    pub(super) fn call<R>(mut self, f: impl FnOnce() -> R) -> R {
        let output = f();
        self.end = End::Done;
        output
    }
}

impl Spawning {
    /// Stores the handle of the spawned task, and aborts the task if the members were closed
    /// meanwhile (S3).
    pub(super) fn done<T>(self, task: JoinHandle<T>) -> JoinHandle<T> {
        match self.shared.members.store_handle(self.key, task.abort_handle()) {
            HandleStored::Member => {}
            HandleStored::Ended(handle) => drop::<AbortHandle>(handle),
            HandleStored::Closed(handle) => handle.abort(),
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

impl Drop for Membership {
    fn drop(&mut self) {
        /// Leaves the tracker when it is dropped (E2), even if a waker of a progress receiver
        /// panics.
        struct LeaveTracker<'a>(&'a Shared);
        impl Drop for LeaveTracker<'_> {
            fn drop(&mut self) {
                self.0.members.leave_tracker();
            }
        }
        let leaving = LeaveTracker(&self.shared);
        // Members that end are counted, and progress is published, from the beginning of the
        // shutdown on.
        let begun = self.shared.begin_token.is_cancelled();
        self.shared.members.leave(self.key, self.end, begun);
        // Check once more: if the shutdown began in between, `begin` may have read the number of
        // members before this one left.
        if begun || self.shared.begin_token.is_cancelled() {
            self.shared.publish_progress(None);
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
        this.membership.end = End::Done;
        Poll::Ready(output)
    }
}

/// A closure that is a member of a shutdown until it has returned or was dropped.
pub(super) struct Call<F> {
    // Declared before the membership, so that it is dropped first, even if it is never called. They
    // are fields of one struct because a closure drops its captures in no defined order.
    f: F,
    membership: Membership,
}

impl<F: FnOnce() -> R, R> Call<F> {
    pub(super) fn new(membership: Membership, f: F) -> Self {
        Self { f, membership }
    }

    pub(super) fn run(self) -> R {
        let Self { f, membership } = self;
        membership.call(f)
    }
}
