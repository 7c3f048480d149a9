//! The state of `join!` and `try_join!`: each future until it completes, then its output;
//! and which future is polled first.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

pin_project! {
    /// A future, then its output, then nothing.
    // With C's layout the tag has memory of its own. Otherwise it could be in a niche of
    // the future, and reading it would access the future's memory from outside while the
    // future keeps pointers into itself.
    #[repr(C)]
    #[project = Projected]
    #[project_replace = Replaced]
    pub enum Joined<F: Future> {
        Waiting { #[pin] future: F },
        Done { output: F::Output },
        Taken,
    }
}

impl<F: Future> Joined<F> {
    #[inline]
    pub fn new(future: impl IntoFuture<IntoFuture = F, Output = F::Output>) -> Self {
        Self::Waiting { future: future.into_future() }
    }

    /// Polls the future unless it is done; drops it as soon as it is.
    #[inline]
    pub fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Projected::Waiting { future } = self.as_mut().project() {
            let output = ready!(future.poll(cx));
            self.set(Self::Done { output });
        }
        Poll::Ready(())
    }

    /// Takes the output, once.
    #[inline]
    pub fn take(self: Pin<&mut Self>) -> Option<F::Output> {
        match self.project_replace(Self::Taken) {
            Replaced::Done { output } => Some(output),
            Replaced::Waiting { .. } | Replaced::Taken => None,
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Joined<F> {
    /// Polls the future unless it is done, like `poll`, but returns an error at once.
    #[inline]
    pub fn poll_ok(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        if let Projected::Waiting { future } = self.as_mut().project() {
            match ready!(future.poll(cx)) {
                Ok(value) => self.set(Self::Done { output: Ok(value) }),
                Err(error) => {
                    self.set(Self::Taken);
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the value, once.
    #[inline]
    pub fn take_ok(self: Pin<&mut Self>) -> Option<T> {
        self.take().and_then(Result::ok)
    }
}

impl<F: Future> fmt::Debug for Joined<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting { .. } => "Waiting",
            Self::Done { .. } => "Done",
            Self::Taken => "Taken",
        })
    }
}

/// An order in which each poll begins one future further on than the one before, so that a
/// future that always uses up the task's budget does not starve the others.
#[derive(Debug, Default)]
pub struct Rotating {
    first: u32,
}

impl Rotating {
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    #[inline]
    pub fn advance(&mut self, count: u32) {
        self.first = (self.first + 1) % count;
    }
}

/// An order in which each poll begins with the first future: `biased;`.
#[derive(Debug, Default)]
pub struct Declared;

impl Declared {
    #[inline]
    pub fn first(&self) -> u32 {
        0
    }

    #[inline]
    pub fn advance(&mut self, _: u32) {}
}
