//! Wakers that do more than wake.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Wake, Waker},
};

type Action = Box<dyn FnMut() + Send>;

struct Acting {
    on_wake: Mutex<Option<Action>>,
    on_drop: Mutex<Option<Action>>,
    woken: Arc<AtomicUsize>,
}

fn run(action: &Mutex<Option<Action>>) {
    // Taken out, so that an action that wakes this waker again finds nothing to do.
    let taken = action.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut act) = taken {
        act();
    }
}

impl Wake for Acting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.fetch_add(1, Relaxed);
        run(&self.on_wake);
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        run(&self.on_drop);
    }
}

/// Creates a waker that runs `act` when it is first woken.
pub(crate) fn on_wake(act: impl FnMut() + Send + 'static) -> Waker {
    let on_wake = Mutex::new(Some(Box::new(act) as Action));
    Arc::new(Acting { on_wake, on_drop: Mutex::new(None), woken: Arc::default() }).into()
}

/// Creates a waker that runs `act` when its last clone is dropped.
pub(crate) fn on_drop(act: impl FnMut() + Send + 'static) -> Waker {
    let on_drop = Mutex::new(Some(Box::new(act) as Action));
    Arc::new(Acting { on_wake: Mutex::new(None), on_drop, woken: Arc::default() }).into()
}

/// Creates a waker that panics when it is first woken.
pub(crate) fn panics() -> Waker {
    on_wake(|| panic!("{WAKER_PANIC}"))
}

/// The message of the panic of [`panics`].
pub(crate) const WAKER_PANIC: &str = "this waker panics";
