//! A future that is polled by hand and records whether it was woken.

use std::{
    fmt,
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Wraps a future (or another value that is polled with a context) to be polled by hand.
pub fn spawn<T>(task: T) -> Spawn<T> {
    Spawn { task: Box::pin(task), flag: Arc::new(WakeFlag(AtomicBool::new(false))) }
}

/// The task that [`spawn`] returns.
pub struct Spawn<T> {
    task: Pin<Box<T>>,
    flag: Arc<WakeFlag>,
}

/// A flag that every wake-up sets and every poll resets.
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        // SeqCst: the simplest ordering for a test harness. Pairs with the load in `is_woken`.
        self.0.store(true, SeqCst);
    }
}

impl<T> Spawn<T> {
    /// Returns the wrapped value.
    pub fn into_inner(self) -> T
    where
        T: Unpin,
    {
        *Pin::into_inner(self.task)
    }

    /// Returns true if it was woken since it was polled last.
    pub fn is_woken(&self) -> bool {
        // SeqCst: pairs with the store in `wake`.
        self.flag.0.load(SeqCst)
    }

    /// Returns the number of references to its flag: its own and one for each of its wakers.
    pub fn waker_ref_count(&self) -> usize {
        Arc::strong_count(&self.flag)
    }

    /// Calls `f` with a context that has this task's waker.
    pub fn enter<F, R>(&mut self, f: F) -> R
    where
        F: FnOnce(&mut Context<'_>, Pin<&mut T>) -> R,
    {
        // SeqCst: resets the flag before the poll. Pairs with the store in `wake`.
        self.flag.0.store(false, SeqCst);
        let waker = Waker::from(self.flag.clone());
        f(&mut Context::from_waker(&waker), self.task.as_mut())
    }
}

impl<T: Future> Spawn<T> {
    /// Polls once.
    pub fn poll(&mut self) -> Poll<T::Output> {
        self.enter(|context, task| task.poll(context))
    }
}

impl<T: Future> Future for Spawn<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T::Output> {
        self.task.as_mut().poll(context)
    }
}

impl<T: Unpin> Deref for Spawn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.task
    }
}

impl<T: Unpin> DerefMut for Spawn<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.task
    }
}

impl<T: fmt::Debug> fmt::Debug for Spawn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spawn").field(&self.task).finish()
    }
}
