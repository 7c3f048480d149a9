//! Wakers that count, that call back, and that panic.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::make::one_thread;

/// Counts its calls, and does something at each.
pub(crate) struct Calls {
    count: AtomicUsize,
    action: Box<dyn Fn() + Send + Sync>,
}

impl Calls {
    /// Only counts.
    pub(crate) fn new() -> Arc<Self> {
        Self::doing(|| ())
    }

    pub(crate) fn doing(action: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), action: Box::new(action) })
    }

    pub(crate) fn panicking() -> Arc<Self> {
        Self::doing(|| panic!("this waker was told to panic"))
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Polls once with this waker.
    pub(crate) fn poll<F: Future + ?Sized>(
        self: &Arc<Self>,
        future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Relaxed);
        (self.action)();
    }
}

/// Polls once, with a waker that does nothing.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// How many of these futures a task can complete before it must let others run.
pub(crate) fn completed_in_one_poll<F: Future>(mut make: impl FnMut() -> F) -> usize {
    let mut count = 0;
    let polls = std::future::poll_fn(|cx| {
        // Twice what is expected ends a test in which nothing ends it.
        while count < 256 && pin!(make()).poll(cx).is_ready() {
            count += 1;
        }
        Poll::Ready(())
    });
    let local = blitz_io::task::LocalSet::new();
    // A task's budget begins with its poll; `block_on` has one too.
    one_thread().block_on(local.run_until(polls));
    count
}
