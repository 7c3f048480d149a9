//! Wakers that count, that use the primitive again, and that panic.

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

/// A waker that counts its calls, and runs an action at each.
pub(crate) struct Calls {
    count: AtomicUsize,
    action: Box<dyn Fn() + Send + Sync>,
}

impl Calls {
    /// Creates a waker that only counts.
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

    /// Polls `future` once with this waker.
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

/// Polls `future` once with a waker that does nothing.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns how many of these futures a task can complete before it must yield.
pub(crate) fn completed_in_one_poll<F: Future>(mut make: impl FnMut() -> F) -> usize {
    let mut count = 0;
    let polls = std::future::poll_fn(|cx| {
        // A limit of twice the expected number ends a test in which the budget does not.
        while count < 256 && pin!(make()).poll(cx).is_ready() {
            count += 1;
        }
        Poll::Ready(())
    });
    let local = blitz_io::task::LocalSet::new();
    // A task's budget is reset with each poll; `block_on` has a budget too.
    one_thread().block_on(local.run_until(polls));
    count
}
