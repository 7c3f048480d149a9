//! Provides wakers that count their calls, run an action, panic, or unpark a thread.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Poll, Wake, Waker},
    thread::{self, Thread},
};

use super::manual_poll::poll_with;

/// The message of the panic of a waker that panics.
pub(crate) const WAKER_PANIC: &str = "this waker panics";

/// A waker that counts its calls, and runs an action at each.
#[derive(Default)]
pub(crate) struct WakeCount {
    count: AtomicUsize,
    action: Option<Box<dyn Fn() + Send + Sync>>,
}

impl WakeCount {
    /// Creates a waker that only counts.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Creates a waker that counts and runs `action` at each call.
    pub(crate) fn doing(action: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { action: Some(Box::new(action)), ..Self::default() })
    }

    /// Creates a waker that counts and panics with [`WAKER_PANIC`] at each call.
    pub(crate) fn panicking() -> Arc<Self> {
        Self::doing(|| panic!("{WAKER_PANIC}"))
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        self.clone().into()
    }

    /// Returns how often the waker was called.
    pub(crate) fn count(&self) -> usize {
        self.count.load(SeqCst)
    }

    /// Polls `future` once with this waker.
    pub(crate) fn poll<F: Future + Unpin>(self: &Arc<Self>, mut future: F) -> Poll<F::Output> {
        poll_with(&mut future, &self.waker())
    }
}

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.count.fetch_add(1, SeqCst);
        if let Some(action) = &self.action {
            action();
        }
    }
}

/// Creates a waker that only counts, and returns it with its count.
pub(crate) fn counted() -> (Arc<WakeCount>, Waker) {
    let count = WakeCount::new();
    (count.clone(), count.into())
}

type Action = Box<dyn FnOnce() + Send>;

/// A waker that runs an action when it is first woken, and one when its last clone is dropped.
#[derive(Default)]
struct Acting {
    on_wake: Mutex<Option<Action>>,
    on_drop: Mutex<Option<Action>>,
}

fn run(action: &Mutex<Option<Action>>) {
    // Taken out, so that an action that wakes this waker again finds nothing to do.
    let taken = action.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(act) = taken {
        act();
    }
}

impl Wake for Acting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        run(&self.on_wake);
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        run(&self.on_drop);
    }
}

/// Creates a waker that runs `act` when it is first woken.
pub(crate) fn on_wake(act: impl FnOnce() + Send + 'static) -> Waker {
    let on_wake = Mutex::new(Some(Box::new(act) as Action));
    Arc::new(Acting { on_wake, on_drop: Mutex::default() }).into()
}

/// Creates a waker that runs `act` when its last clone is dropped.
pub(crate) fn on_drop(act: impl FnOnce() + Send + 'static) -> Waker {
    let on_drop = Mutex::new(Some(Box::new(act) as Action));
    Arc::new(Acting { on_wake: Mutex::default(), on_drop }).into()
}

/// Creates a waker that panics with [`WAKER_PANIC`] when it is first woken.
pub(crate) fn panics() -> Waker {
    on_wake(|| panic!("{WAKER_PANIC}"))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Creates a waker that unparks the calling thread.
pub(crate) fn unparks_this_thread() -> Waker {
    Arc::new(Unpark(thread::current())).into()
}
