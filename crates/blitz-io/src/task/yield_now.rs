//! Letting others run.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::engine::work::{current, task::waker};

/// Yields execution back to the runtime: the task goes to the end of its queue.
///
/// When it runs again nothing is said about which others ran in between. If an
/// enclosing future polls it together with others (`join!`), that future decides.
///
/// # Cancel safety
///
/// Dropping the future after it was polled leaves a wake-up behind, which does no
/// harm.
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
            // The short way: the thread that polls us queues the task again.
            current::set_yielded();
        } else {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
