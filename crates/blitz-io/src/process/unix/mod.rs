//! How the end of a child is noticed, and who waits for one that was dropped.
//!
//! - [`pidfd`]: a descriptor that becomes readable when the child ends (Linux).
//! - [`orphan`]: a dropped child that its runtime's driver still watches.
//! - [`reaper`]: the thread for those whom no runtime watches.
//!
//! # Who has a child
//! ```text
//! Child --dropped, has a pidfd--> the driver that watches it (`orphan`)
//!                                     --the driver ends--> the thread (`reaper`)
//! Child --dropped, has none-----> the thread
//! ```
//! One at a time has the standard library's `Child`, and only through that is a child ever
//! waited for: by its number, and never after it was. So no number of somebody else's child
//! is waited for or killed, and nobody else's end is taken away.
//!
//! # Checked by
//! `tests/os/processes.rs`, with descriptors and without.

mod pidfd;
mod orphan;
mod reaper;

use std::{
    io,
    process::{Child as StdChild, ExitStatus},
    task::{Context, Poll},
};

use self::pidfd::Pidfd;
use crate::signal::unix::{Signal, SignalKind, signal};

/// A child, and by what its end is noticed.
#[derive(Debug)]
pub(super) struct Watched {
    /// Gone only while `drop` runs.
    child: Option<StdChild>,
    by: Option<By>,
    kill_on_drop: bool,
    /// Its end was waited for.
    is_reaped: bool,
}

#[derive(Debug)]
pub(super) enum By {
    Pidfd(Pidfd),
    /// `SIGCHLD`, of which there is one for any number of children.
    Signal(Signal),
}

/// The child is there from `new` to `drop`.
const HERE: &str = "a child leaves only with its owner";

impl Watched {
    /// Begins to watch, in the runtime of this thread.
    pub(super) fn watch(child: &StdChild) -> io::Result<By> {
        match Pidfd::of(child) {
            Some(pidfd) => Ok(By::Pidfd(pidfd?)),
            None => Ok(By::Signal(signal(SignalKind::child())?)),
        }
    }

    pub(super) fn new(child: StdChild, by: By, kill_on_drop: bool) -> Self {
        Self { child: Some(child), by: Some(by), kill_on_drop, is_reaped: false }
    }

    pub(super) fn child(&self) -> &StdChild {
        self.child.as_ref().expect(HERE)
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.as_mut().expect(HERE).kill()
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.as_mut().expect(HERE).try_wait()?;
        self.is_reaped |= status.is_some();
        Ok(status)
    }

    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let child = self.child.as_mut().expect(HERE);
        let status = match self.by.as_mut().expect(HERE) {
            By::Pidfd(pidfd) => pidfd.poll_end(cx, child),
            By::Signal(signal) => poll_by_signal(cx, signal, child),
        };
        self.is_reaped |= matches!(status, Poll::Ready(Ok(_)));
        status
    }
}

/// Listens first and asks then: an end after the question is told.
fn poll_by_signal(
    cx: &mut Context<'_>,
    signal: &mut Signal,
    child: &mut StdChild,
) -> Poll<io::Result<ExitStatus>> {
    loop {
        let told = signal.poll_recv(cx);
        if let Some(status) = child.try_wait()? {
            return Poll::Ready(Ok(status));
        }
        match told {
            Poll::Ready(Some(())) => {}
            Poll::Ready(None) => return Poll::Ready(Err(unheard())),
            Poll::Pending => return Poll::Pending,
        }
    }
}

#[cold]
fn unheard() -> io::Error {
    io::Error::other(
        "this runtime cannot hear of the ends of children: there are no descriptors left, so \
         close some",
    )
}

impl Drop for Watched {
    fn drop(&mut self) {
        let (Some(mut child), Some(by)) = (self.child.take(), self.by.take()) else { return };
        if self.is_reaped {
            return;
        }
        if self.kill_on_drop {
            // An error says that it has ended, or that we may not: it is waited for anyway.
            let _ = child.kill();
        }
        // One that was killed may need a moment; others are often gone already. An error
        // says that somebody else has waited for it.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        match by {
            By::Pidfd(pidfd) => orphan::leave(child, pidfd),
            By::Signal(_) => abandon(child),
        }
    }
}

/// Has a child waited for whom nothing watches.
pub(super) fn abandon(child: StdChild) {
    reaper::adopt(child, None);
}
