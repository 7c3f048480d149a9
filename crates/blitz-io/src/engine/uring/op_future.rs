//! The future of an operation that is under way.
//!
//! Its output is the kernel's result, negative for an error, and the payload. Two errors say
//! nothing about the operation itself: [`must_resubmit`] recognises them. Then the caller must
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
    SystemUring, Uring, UringKernel,
    op::{AbandonDuty, Op},
    op_table::OpId,
};
use crate::engine::work::{task::timestamp::WaitReason, thread_context};

/// Future of an operation under way. Dropping it requests a cancel, and waits for nothing.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct OpFuture<'a, P: Send + 'static, K: UringKernel = SystemUring> {
    /// A borrow, so that a leaked future does not leak the uring.
    uring: &'a Uring<K>,
    /// `None` once the result has been returned.
    op: Option<Arc<Op<P>>>,
    id: OpId,
}

impl<'a, P: Send + 'static, K: UringKernel> OpFuture<'a, P, K> {
    pub(super) fn new(uring: &'a Uring<K>, op: Arc<Op<P>>, id: OpId) -> Self {
        Self { uring, op: Some(op), id }
    }

    /// Reaps on this thread until the result is there, after the uring has closed and no other
    /// thread reaps. The future cannot be ready without its payload.
    #[cold]
    fn wait_for_result(uring: &Uring<K>, op: &Op<P>) -> i32 {
        loop {
            if let Some(result) = op.result() {
                return result;
            }
            uring.wait_and_reap();
        }
    }
}

impl<P: Send + 'static, K: UringKernel> Future for OpFuture<'_, P, K> {
    type Output = (i32, P);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<(i32, P)> {
        let op = self.op.as_ref().expect("a future is not polled after it was ready");
        let result = match op.poll(cx) {
            Poll::Ready(result) => result,
            Poll::Pending if self.uring.is_over() => Self::wait_for_result(self.uring, op),
            Poll::Pending => {
                thread_context::waits_for(WaitReason::Event);
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
impl<P: Send + 'static, K: UringKernel> Unpin for OpFuture<'_, P, K> {}

impl<P: Send + 'static, K: UringKernel> Drop for OpFuture<'_, P, K> {
    fn drop(&mut self) {
        if let Some(op) = self.op.take()
            && op.abandon() == AbandonDuty::Cancel
        {
            self.uring.cancel(self.id);
        }
    }
}

impl<P: Send + 'static, K: UringKernel> std::fmt::Debug for OpFuture<'_, P, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpFuture").field("op", &self.op).finish_non_exhaustive()
    }
}

/// Returns true if a result says nothing about the operation: the thread that submitted it has
/// exited, or a signal interrupted it.
pub(crate) fn must_resubmit(result: i32) -> bool {
    matches!(-result, libc::ECANCELED | libc::EINTR)
}
