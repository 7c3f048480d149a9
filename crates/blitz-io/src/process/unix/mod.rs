//! Notices the exit of children, and reaps those that were dropped.
//!
//! - [`pidfd`]: a descriptor that becomes readable when the child exits (Linux).
//! - [`reaper`]: the thread that reaps children that were dropped.
//!
//! # Ownership of a child
//! A child process is owned by its `Child` until that is dropped, then by the reaper thread. The
//! descriptor is closed with the `Child`, so a dropped child costs no descriptor, however long it
//! runs.
//!
//! A child that was started runs, whether or not its exit can be noticed: without a pidfd `SIGCHLD`
//! reports it, and if there is no descriptor left for that either, `wait` tries both again and
//! returns the error.
//!
//! The standard library's `Child` has one owner at a time, and a child is only ever waited for
//! through it: by its process ID, and never after it was reaped. So the ID of an unrelated child is
//! never waited for or killed, and no other code loses the exit of its child.
//!
//! # Checked by
//! `tests/os/processes.rs`, with descriptors and without.

mod pidfd;
mod reaper;

use std::{
    io,
    process::{Child as StdChild, ExitStatus},
    task::{Context, Poll},
};

use self::pidfd::Pidfd;
use crate::signal::unix::{Signal, SignalKind, signal};

/// A child, and the means by which its exit is noticed.
#[derive(Debug)]
pub(super) struct WatchedChild {
    /// `None` only while `drop` runs.
    child: Option<StdChild>,
    exit_source: Option<ExitSource>,
    kill_on_drop: bool,
    /// True once the child was waited for.
    is_reaped: bool,
}

#[derive(Debug)]
pub(super) enum ExitSource {
    Pidfd(Pidfd),
    /// `SIGCHLD`, a single signal for any number of children.
    Signal(Signal),
    /// Nothing yet, because there were no descriptors left.
    Nothing,
}

/// Starts to watch a child, in the runtime of this thread.
fn watch(child: &StdChild) -> io::Result<ExitSource> {
    match Pidfd::of(child) {
        Some(pidfd) => Ok(ExitSource::Pidfd(pidfd)),
        None => Ok(ExitSource::Signal(signal(SignalKind::child())?)),
    }
}

/// Panic message for a missing child, which is present from `new` to `drop`.
const NO_CHILD: &str = "a child leaves only with its owner";

impl WatchedChild {
    /// Starts to watch a child, in the runtime of this thread, if that is possible now.
    #[allow(clippy::unnecessary_wraps, reason = "Windows can fail")]
    pub(super) fn watch(child: &StdChild) -> io::Result<ExitSource> {
        Ok(watch(child).unwrap_or(ExitSource::Nothing))
    }

    pub(super) fn new(child: StdChild, exit_source: ExitSource, kill_on_drop: bool) -> Self {
        Self { child: Some(child), exit_source: Some(exit_source), kill_on_drop, is_reaped: false }
    }

    pub(super) fn child(&self) -> &StdChild {
        self.child.as_ref().expect(NO_CHILD)
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.as_mut().expect(NO_CHILD).kill()
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.as_mut().expect(NO_CHILD).try_wait()?;
        self.is_reaped |= status.is_some();
        Ok(status)
    }

    pub(super) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let child = self.child.as_mut().expect(NO_CHILD);
        if let Some(ExitSource::Nothing) = self.exit_source {
            // A child that has exited does not have to be watched.
            if let Some(status) = child.try_wait()? {
                self.is_reaped = true;
                return Poll::Ready(Ok(status));
            }
            self.exit_source = Some(watch_late(child)?);
        }
        let status = match self.exit_source.as_mut().expect(NO_CHILD) {
            ExitSource::Pidfd(pidfd) => pidfd.poll_exit(cx, child),
            ExitSource::Signal(signal) => poll_by_signal(cx, signal, child),
            ExitSource::Nothing => Poll::Ready(Err(no_exit_source())),
        };
        self.is_reaped |= matches!(status, Poll::Ready(Ok(_)));
        status
    }
}

/// Starts to watch a child that could not be watched when it was started.
#[cold]
fn watch_late(child: &mut StdChild) -> io::Result<ExitSource> {
    if crate::runtime::context::with_io_driver(|_| ()).is_none() {
        return Err(no_exit_source());
    }
    watch(child)
}

/// Waits for the child's exit by `SIGCHLD`. The waker must be registered before the check, so that
/// an exit after the check wakes it.
fn poll_by_signal(
    cx: &mut Context<'_>,
    signal: &mut Signal,
    child: &mut StdChild,
) -> Poll<io::Result<ExitStatus>> {
    loop {
        let received = signal.poll_recv(cx);
        if let Some(status) = child.try_wait()? {
            return Poll::Ready(Ok(status));
        }
        match received {
            Poll::Ready(Some(())) => {}
            Poll::Ready(None) => return Poll::Ready(Err(no_exit_source())),
            Poll::Pending => return Poll::Pending,
        }
    }
}

#[cold]
fn no_exit_source() -> io::Error {
    io::Error::other(
        "this runtime cannot be notified when a child exits: there are no descriptors left, so \
         close some",
    )
}

impl Drop for WatchedChild {
    fn drop(&mut self) {
        let (Some(mut child), Some(exit_source)) = (self.child.take(), self.exit_source.take())
        else {
            return;
        };
        if self.is_reaped {
            return;
        }
        if self.kill_on_drop {
            // An error means that the child has exited, or that we may not kill it: it is reaped
            // anyway.
            let _ = child.kill();
        }
        // A child that was killed may take a moment to exit; others have often exited already. An
        // error means that other code has already waited for the child.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        // Dropped first, because the reaper thread may need the descriptor.
        drop(exit_source);
        abandon(child);
    }
}

/// Hands a child that nothing else watches to the reaper thread.
pub(super) fn abandon(child: StdChild) {
    reaper::reap_in_background(child);
}
