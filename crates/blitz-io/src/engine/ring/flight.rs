//! An operation under way, as its future sees it.
//!
//! The answer is the kernel's number, negative for an error, and the payload. Two errors are
//! none of the operation's: [`must_begin_again`] says which. The caller has the descriptor
//! borrowed, and so the caller begins again.
//!
//! # Invariants
//! A flight that was answered has no payload, and is not polled again.

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
use crate::engine::work::{current, task::moment::Wait};

/// See the module. Dropping it asks the kernel to end the operation, and waits for nothing.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct InFlight<'a, P: Send + 'static, K: Kernel = System> {
    /// Borrowed: a future that is leaked leaks no ring.
    ring: &'a Ring<K>,
    /// `None` when it was answered.
    op: Option<Arc<Op<P>>>,
    number: Number,
}

impl<'a, P: Send + 'static, K: Kernel> InFlight<'a, P, K> {
    pub(super) fn new(ring: &'a Ring<K>, op: Arc<Op<P>>, number: Number) -> Self {
        Self { ring, op: Some(op), number }
    }

    /// After the ring's end nobody reaps for us, and so this thread does until the answer is
    /// there. We cannot be ready without the payload.
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
                current::waits_for(Wait::Event);
                return Poll::Pending;
            }
        };
        // SAFETY: 1. we have seen it. 2. `op` is gone below.
        let payload = unsafe { op.take() };
        self.op = None;
        Poll::Ready((result, payload))
    }
}

// The payload is never pinned: it lies in the operation.
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

/// Whether an answer says nothing of the operation: the thread that submitted it has exited,
/// or a signal came between.
pub(crate) fn must_begin_again(result: i32) -> bool {
    matches!(-result, libc::ECANCELED | libc::EINTR)
}
