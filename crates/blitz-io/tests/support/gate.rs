//! Provides a gate at which threads and tasks wait until it is opened.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// A gate that is closed when it is created, and stays open once it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    wakers: Vec<Waker>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets through all threads and tasks that wait now or come later.
    pub(crate) fn open(&self) {
        let wakers = {
            let mut state = self.lock();
            state.open = true;
            std::mem::take(&mut state.wakers)
        };
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().open
    }

    /// Wakes the tasks that wait, without opening the gate.
    pub(crate) fn knock(&self) {
        let wakers = std::mem::take(&mut self.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of tasks that wait at the gate.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().wakers.len()
    }

    /// Blocks the thread until the gate is open.
    pub(crate) fn block(&self) {
        let mut state = self.lock();
        while !state.open {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns a future that waits until the gate is open.
    pub(crate) fn opened(self: &Arc<Self>) -> Opened {
        Opened(self.clone())
    }
}

pub(crate) struct Opened(Arc<Gate>);

impl Future for Opened {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.open {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
