//! `yield_now`: lets other tasks run.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::engine::work::{task::waker, thread_context};

/// Yields to the runtime: moves the current task to the end of its run queue.
///
/// Nothing is guaranteed about which other tasks run before this one runs again. If an enclosing
/// future polls this one together with others (`join!`), that future decides when it is polled
/// again.
///
/// # Cancel safety
///
/// Dropping the future after it was polled leaves a pending wake-up behind. It is harmless: the
/// task is polled once more than necessary.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// for _ in 0..3 {
///     blitz_io::task::yield_now().await; // others run here
/// }
/// # });
/// ```
pub async fn yield_now() {
    YieldNow { yielded: false }.await;
}

struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        if waker::is_current(cx.waker()) {
            // The fast path: the thread that polls this task puts it back into the queue after the
            // poll.
            thread_context::set_yielded();
        } else {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
