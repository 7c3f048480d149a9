//! Futures that a test polls by hand, with a waker that counts.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

/// A waker that counts how often it was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A future, and the wake-ups it got since it was last polled.
pub(crate) struct Polled<F> {
    future: Pin<Box<F>>,
    count: Arc<Count>,
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

/// Returns the output of a future that must be ready at its first poll.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    by_hand(future).ready()
}

/// Polls a future once and drops it, ready or not.
pub(crate) fn once<F: Future>(future: F) -> Poll<F::Output> {
    by_hand(future).poll()
}

impl<F: Future> Polled<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        self.seen = self.count.0.load(Relaxed);
        let waker = Waker::from(self.count.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
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
        self.count.0.load(Relaxed) > self.seen
    }

    /// Asserts that the future was woken, and is ready: a real executor polls only after a wake-up.
    #[track_caller]
    pub(crate) fn woken_and_ready(&mut self) -> F::Output {
        assert!(self.woken(), "nobody woke it");
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
