//! Watches a child by a descriptor (pidfd) that becomes readable when the child exits.

#![forbid(unsafe_code)]

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    process::{Child as StdChild, ExitStatus},
    sync::OnceLock,
    task::{Context, Poll, ready},
};

use crate::{
    engine::driver::{Direction, Registration, interest::Interest},
    process::raw,
    runtime::context,
};

/// A pidfd and its registration with a driver.
#[derive(Debug)]
pub(in crate::process) struct Pidfd {
    fd: OwnedFd,
    registration: Registration,
}

/// Returns true if `BLITZ_IO_NO_PIDFD` is set to 1.
fn is_forbidden() -> bool {
    static FORBIDDEN: OnceLock<bool> = OnceLock::new();
    *FORBIDDEN.get_or_init(|| std::env::var_os("BLITZ_IO_NO_PIDFD").is_some_and(|it| it == "1"))
}

impl Pidfd {
    /// Opens the pidfd of a child that was not waited for yet, and registers it with the runtime of
    /// this thread; `None` if the system has no pidfd, or the driver cannot watch it.
    pub(super) fn of(child: &StdChild) -> Option<Self> {
        if is_forbidden() {
            return None;
        }
        Self::watch(raw::pidfd_open(child.id())?).ok()
    }

    fn watch(fd: OwnedFd) -> io::Result<Self> {
        let registration = context::io_driver().register(fd.as_fd(), Interest::READABLE)?;
        Ok(Self { fd, registration })
    }

    /// Waits until the child has exited. Checks the child after each event, because the event for a
    /// traced child may come before its parent can wait for it.
    pub(super) fn poll_exit(
        &mut self,
        cx: &mut Context<'_>,
        child: &mut StdChild,
    ) -> Poll<io::Result<ExitStatus>> {
        loop {
            match ready!(self.registration.poll_ready(cx, Direction::Read)) {
                Ok(event) => {
                    if let Some(status) = child.try_wait()? {
                        return Poll::Ready(Ok(status));
                    }
                    self.registration.clear_readiness(event);
                }
                Err(ended) => self.move_to_current_runtime(ended)?,
            }
        }
    }

    /// Registers with the runtime of this thread, if there is one, after the old driver has shut
    /// down.
    #[cold]
    fn move_to_current_runtime(&mut self, ended: io::Error) -> io::Result<()> {
        let Some(driver) = context::with_io_driver(|driver| driver.clone()) else {
            return Err(ended);
        };
        let fd = &self.fd;
        // The old driver no longer watches the descriptor, whatever this returns.
        let _ = self.registration.deregister(fd.as_fd());
        self.registration = driver.register(fd.as_fd(), Interest::READABLE)?;
        Ok(())
    }
}

impl Drop for Pidfd {
    fn drop(&mut self) {
        // The descriptor is closed next, whatever this returns.
        let _ = self.registration.deregister(self.fd.as_fd());
    }
}
