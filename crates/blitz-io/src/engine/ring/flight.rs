//! The future of an operation that is under way.
//!
//! Its output is the kernel's result, negative for an error, and the payload. Two errors say
//! nothing about the operation itself: [`must_begin_again`] recognises them. Then the caller must
//! submit it again, because it is the caller that borrows the descriptor.
//!
//! # Invariants
//! A future that has returned its result has no payload any more, and is not polled again.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    Kernel, Ring, System,
    flights::Number,
    op::{Left, Op},
};
use crate::engine::work::{current, task::timestamp::WaitReason};

/// Future of an operation under way. Dropping it requests a cancel, and waits for nothing.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct InFlight<'a, P: Send + 'static, K: Kernel = System> {
    /// A borrow, so that a leaked future does not leak the ring.
    ring: &'a Ring<K>,
    /// `None` once the result has been returned.
    op: Option<Arc<Op<P>>>,
    number: Number,
}

impl<'a, P: Send + 'static, K: Kernel> InFlight<'a, P, K> {
    pub(super) fn new(ring: &'a Ring<K>, op: Arc<Op<P>>, number: Number) -> Self {
        Self { ring, op: Some(op), number }
    }

    /// Reaps on this thread until the result is there, after the ring has closed and no other
    /// thread reaps. The future cannot be ready without its payload.
    #[cold]
    fn outlast(ring: &Ring<K>, op: &Op<P>) -> i32 {
        loop {
            if let Some(result) = op.look() {
                return result;
            }
            ring.glance();
        }
    }
}

impl<P: Send + 'static, K: Kernel> Future for InFlight<'_, P, K> {
    type Output = (i32, P);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<(i32, P)> {
        let op = self.op.as_ref().expect("a future is not polled after it was ready");
        let result = match op.poll(cx) {
            Poll::Ready(result) => result,
            Poll::Pending if self.ring.is_over() => Self::outlast(self.ring, op),
            Poll::Pending => {
                current::waits_for(WaitReason::Event);
                return Poll::Pending;
            }
        };
        // SAFETY: 1. this is the future, and it has seen the result. 2. It is called once, because
        // `op` is cleared below.
        let payload = unsafe { op.take() };
        self.op = None;
        Poll::Ready((result, payload))
    }
}

// The payload is never pinned, because it lies in the operation.
impl<P: Send + 'static, K: Kernel> Unpin for InFlight<'_, P, K> {}

impl<P: Send + 'static, K: Kernel> Drop for InFlight<'_, P, K> {
    fn drop(&mut self) {
        if let Some(op) = self.op.take()
            && op.abandon() == Left::Cancel
        {
            self.ring.cancel(self.number);
        }
    }
}

impl<P: Send + 'static, K: Kernel> std::fmt::Debug for InFlight<'_, P, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InFlight").field("op", &self.op).finish_non_exhaustive()
    }
}

/// Returns true if a result says nothing about the operation: the thread that submitted it has
/// exited, or a signal interrupted it.
pub(crate) fn must_begin_again(result: i32) -> bool {
    matches!(-result, libc::ECANCELED | libc::EINTR)
}
