//! Notices the exit of a child: the system calls a function of ours, on a thread of its own pool.
//! Windows has no zombies, so a dropped child does not have to be reaped.

use std::{
    io,
    process::{Child as StdChild, ExitStatus},
    task::{Context, Poll},
};

pub(super) use super::raw::ExitCallback as ExitSource;

/// A child, and the means by which its exit is noticed.
#[derive(Debug)]
pub(super) struct WatchedChild {
    /// Declared first, so that the callback is unregistered before the child's handle is closed.
    exit_source: ExitSource,
    child: StdChild,
    kill_on_drop: bool,
    has_ended: bool,
}

impl WatchedChild {
    pub(super) fn watch(child: &StdChild) -> io::Result<ExitSource> {
        ExitSource::at_exit_of(child)
    }

    pub(super) fn new(child: StdChild, exit_source: ExitSource, kill_on_drop: bool) -> Self {
        Self { exit_source, child, kill_on_drop, has_ended: false }
    }

    pub(super) fn child(&self) -> &StdChild {
        &self.child
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.has_ended |= status.is_some();
        Ok(status)
    }

    pub(super) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        // The waker must be registered before the check, so that an exit after the check wakes it.
        self.exit_source.register(cx.waker());
        match self.try_wait()? {
            Some(status) => Poll::Ready(Ok(status)),
            None => Poll::Pending,
        }
    }
}

impl Drop for WatchedChild {
    fn drop(&mut self) {
        if self.kill_on_drop && !self.has_ended {
            // An error means that the child has exited, or that we may not kill it.
            let _ = self.child.kill();
        }
    }
}

/// Drops the child's handle; Windows has no zombies, so nothing else has to be done.
pub(super) fn abandon(child: StdChild) {
    drop(child);
}
