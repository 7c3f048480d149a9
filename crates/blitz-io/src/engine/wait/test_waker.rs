//! Helpers for models: a waker that counts its calls, and a thread that sleeps until it is woken.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::engine::prim::parker::Parker;

/// A waker that counts its calls and unparks the thread that waits for it.
///
/// The count is an atomic of std, because it is not part of what a model explores.
pub(crate) struct CountingWaker {
    parker: Parker,
    wake_count: AtomicUsize,
}

impl CountingWaker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { parker: Parker::new(), wake_count: AtomicUsize::new(0) })
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        self.clone().into()
    }

    /// Returns how often the waker was called.
    pub(crate) fn wake_count(&self) -> usize {
        self.wake_count.load(Relaxed)
    }

    /// Sleeps until the waker is called.
    pub(crate) fn wait(&self) {
        self.parker.park();
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_count.fetch_add(1, Relaxed);
        self.parker.unpark();
    }
}

/// Polls the future to its end and sleeps in between. A lost wake-up is a deadlock, which the model
/// checker finds.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let (counter, mut future) = (CountingWaker::new(), pin!(future));
    let waker = counter.waker();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => counter.wait(),
        }
    }
}
