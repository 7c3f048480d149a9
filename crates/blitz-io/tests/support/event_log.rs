//! Records the order of events, and provides futures that record their polls and their drop.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A log of events, in order.
#[derive(Default)]
pub(crate) struct Log(RefCell<Vec<String>>);

impl Log {
    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }

    /// Returns a future with this output, which logs its polls and its drop.
    pub(crate) fn ready<'a, T>(&'a self, name: &'a str, output: T) -> Logged<'a, T> {
        self.ready_at(name, 1, output)
    }

    /// Returns a future like that of [`Log::ready`] that completes at the `polls`th poll.
    pub(crate) fn ready_at<'a, T>(&'a self, name: &'a str, polls: u32, output: T) -> Logged<'a, T> {
        Logged { log: self, name, polls, output: Some(output) }
    }
}

/// A future that logs its polls and its drop, created by [`Log::ready`].
pub(crate) struct Logged<'a, T> {
    log: &'a Log,
    name: &'a str,
    polls: u32,
    output: Option<T>,
}

impl<T> Unpin for Logged<'_, T> {}

impl<T> Future for Logged<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        self.log.add(format!("poll {}", self.name));
        self.polls -= 1;
        if self.polls > 0 {
            return Poll::Pending;
        }
        Poll::Ready(self.output.take().expect("it is polled after it was done"))
    }
}

impl<T> Drop for Logged<'_, T> {
    fn drop(&mut self) {
        self.log.add(format!("drop {}", self.name));
    }
}
