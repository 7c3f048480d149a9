//! Polls futures by hand, without a runtime.

use std::{
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    thread,
};

use super::wakers::{WakeCount, unparks_this_thread};

/// A future, and the wake-ups it got since it was last polled.
pub(crate) struct Polled<F> {
    future: Pin<Box<F>>,
    count: Arc<WakeCount>,
    seen: usize,
}

/// Wraps a future without polling it.
pub(crate) fn by_hand<F: Future>(future: F) -> Polled<F> {
    Polled { future: Box::pin(future), count: Arc::default(), seen: 0 }
}

/// Wraps a future and polls it once; it must be pending.
#[track_caller]
pub(crate) fn waiting<F: Future>(future: F) -> Polled<F> {
    let mut polled = by_hand(future);
    polled.pending();
    polled
}

/// Polls `future` once with this waker. A future that is not `Unpin` must be pinned before:
/// `Pin<&mut F>` and `Pin<Box<F>>` are futures, too.
pub(crate) fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls `future` once with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_with(future, Waker::noop())
}

/// Polls a future once and drops it, ready or not.
pub(crate) fn once<F: Future>(future: F) -> Poll<F::Output> {
    poll_once(&mut pin!(future))
}

/// Returns the output of a future that must be ready at its first poll.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match once(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is not ready"),
    }
}

/// Polls a future once, which must be pending, and drops it.
#[track_caller]
pub(crate) fn give_up<F: Future>(future: F)
where
    F::Output: fmt::Debug,
{
    let polled = once(future);
    assert!(polled.is_pending(), "{polled:?}");
}

/// Polls until the future completes; returns its output and the number of polls that were pending.
pub(crate) fn finish_after<F: Future>(future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    for waits in 0..1_000 {
        if let Poll::Ready(output) = poll_once(&mut future) {
            return (output, waits);
        }
    }
    panic!("a thousand polls, and not done")
}

/// Blocks this thread on a future like an executor that knows nothing of the runtime.
pub(crate) fn foreign_block_on<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), unparks_this_thread());
    loop {
        match poll_with(&mut future, &waker) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

impl<F: Future> Polled<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        self.seen = self.count.count();
        self.count.poll(self.future.as_mut())
    }

    /// Polls with another waker; the wake-ups of that waker are not counted.
    pub(crate) fn poll_with(&mut self, waker: &Waker) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(waker))
    }

    /// Polls the future, which must be ready.
    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it is not ready"),
        }
    }

    /// Polls the future, which must be pending.
    #[track_caller]
    pub(crate) fn pending(&mut self) {
        assert!(self.poll().is_pending(), "it is ready");
    }

    /// Returns true if the future was woken since it was last polled by its own waker.
    pub(crate) fn woken(&self) -> bool {
        self.count.count() > self.seen
    }

    /// Asserts that the future was woken, and is ready: a real executor polls only after a wake-up.
    #[track_caller]
    pub(crate) fn woken_and_ready(&mut self) -> F::Output {
        assert!(self.woken(), "it was not woken");
        self.ready()
    }

    /// Asserts that the future was not woken, and is pending.
    #[track_caller]
    pub(crate) fn still_waits(&mut self) {
        assert!(!self.woken(), "it was woken");
        self.pending();
    }

    pub(crate) fn pin(&mut self) -> Pin<&mut F> {
        self.future.as_mut()
    }
}
