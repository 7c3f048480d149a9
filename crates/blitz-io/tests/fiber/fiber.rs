//! Wraps `blitz_io::fiber` for these tests, so that the safety argument of `spawn` is made once.

use std::io;

pub(crate) use blitz_io::fiber::{checkpoint, is_fiber, wait};
use blitz_io::{fiber, runtime::Handle, task::JoinHandle};

#[track_caller]
pub(crate) fn spawn<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    // SAFETY: obligations 1 and 2 forbid a wait in an initialiser or a scope of a thread-local.
    // No test does that, besides those of `hazards`, which touch no value that is gone.
    unsafe { fiber::spawn(f) }
}

#[derive(Clone, Copy)]
pub(crate) struct Builder<'a>(fiber::Builder<'a>);

impl<'a> Builder<'a> {
    pub(crate) fn new() -> Self {
        Self(fiber::Builder::new())
    }

    pub(crate) fn name(self, name: &'a str) -> Self {
        Self(self.0.name(name))
    }

    pub(crate) fn stack_size(self, bytes: usize) -> Self {
        Self(self.0.stack_size(bytes))
    }

    #[track_caller]
    pub(crate) fn spawn<F, R>(self, f: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_on(f, &Handle::current())
    }

    #[track_caller]
    pub(crate) fn spawn_on<F, R>(self, f: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        // SAFETY: obligations 1 and 2 forbid a wait in an initialiser or a scope of a thread-local.
        // No test does that, besides those of `hazards`, which touch no value that is gone.
        unsafe { self.0.spawn_on(f, handle) }
    }
}
