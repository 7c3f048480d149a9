//! A descriptor of a child, which becomes readable when the child ends.

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

/// The descriptor and its place at a driver.
#[derive(Debug)]
pub(in crate::process) struct Pidfd {
    /// Gone only while `into_fd` and `drop` run.
    fd: Option<OwnedFd>,
    registration: Registration,
}

const HERE: &str = "a descriptor leaves only with its owner";

/// Whether the program is told to do without.
fn is_forbidden() -> bool {
    static FORBIDDEN: OnceLock<bool> = OnceLock::new();
    *FORBIDDEN.get_or_init(|| std::env::var_os("BLITZ_IO_NO_PIDFD").is_some_and(|it| it == "1"))
}

impl Pidfd {
    /// That of a child that was not waited for, watched by the runtime of this thread; `None`
    /// if the system has none.
    pub(super) fn of(child: &StdChild) -> Option<io::Result<Self>> {
        if is_forbidden() {
            return None;
        }
        let fd = raw::pidfd_open(child.id())?;
        Some(fd.and_then(Self::watch))
    }

    fn watch(fd: OwnedFd) -> io::Result<Self> {
        let registration = context::io_driver().register(fd.as_fd(), Interest::READABLE)?;
        Ok(Self { fd: Some(fd), registration })
    }

    pub(super) fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Waits until the child has ended. It is asked after each event: a child that is traced
    /// may be told of before its parent can wait for it.
    pub(super) fn poll_end(
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
                Err(ended) => self.move_here(ended)?,
            }
        }
    }

    /// The driver has ended: that of this thread's runtime goes on, if it is another.
    #[cold]
    fn move_here(&mut self, ended: io::Error) -> io::Result<()> {
        let Some(driver) = context::with_io_driver(|driver| driver.clone()) else {
            return Err(ended);
        };
        let fd = self.fd.as_ref().expect(HERE);
        // The old one does not watch any more, whatever it says.
        let _ = self.registration.deregister(fd.as_fd());
        self.registration = driver.register(fd.as_fd(), Interest::READABLE)?;
        Ok(())
    }

    /// The descriptor alone.
    pub(super) fn into_fd(mut self) -> OwnedFd {
        let fd = self.fd.take().expect(HERE);
        let _ = self.registration.deregister(fd.as_fd());
        fd
    }
}

impl Drop for Pidfd {
    fn drop(&mut self) {
        if let Some(fd) = &self.fd {
            // It is closed next, whatever the answer is.
            let _ = self.registration.deregister(fd.as_fd());
        }
    }
}
