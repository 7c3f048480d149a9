//! The system call `poll(2)`, and the pair of sockets by which a wait in it is ended.

use std::{
    fs::{File, FileType},
    io::{self, Read, Write},
    mem::ManuallyDrop,
    os::{
        fd::{AsRawFd, FromRawFd, RawFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use super::Fd;
#[cfg(target_os = "linux")]
use crate::engine::driver::{epoll::Epoll, interest::Interest, record_table::Token};

/// The system calls of the `poll(2)` selector, with the socket pair that ends a wait.
pub(super) struct PollKernel {
    /// The sending side: a byte that is written here ends a wait.
    wake_sender: UnixStream,
    /// The receiving side, which every wait includes.
    wake_fd: UnixStream,
}

impl PollKernel {
    pub(super) fn new() -> io::Result<Self> {
        let (wake_sender, wake_fd) = UnixStream::pair()?;
        wake_sender.set_nonblocking(true)?;
        wake_fd.set_nonblocking(true)?;
        Ok(Self { wake_sender, wake_fd })
    }

    /// Returns the descriptor that becomes readable after a signal.
    pub(super) fn wake_fd(&self) -> RawFd {
        self.wake_fd.as_raw_fd()
    }

    /// Ends a wait for [`wake_fd`](Self::wake_fd), or the next one.
    pub(super) fn signal(&self) {
        // If the buffer is full, the pending bytes end the wait as well.
        let _ = (&self.wake_sender).write(&[1]);
    }

    /// Drains the bytes of all signals.
    pub(super) fn drain_signals(&self) {
        let mut bytes = [0; 64];
        while (&self.wake_fd).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }

    /// Refuses files that `poll` always reports as ready, as epoll does.
    pub(super) fn admit(&self, fd: Fd<'_>) -> io::Result<()> {
        let kind = kind_of(fd)?;
        if (kind.is_file() || kind.is_dir()) && !supports_waiting(fd) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(())
    }

    /// Waits by the system call [`poll`].
    pub(super) fn poll(
        &self,
        fds: &mut [libc::pollfd],
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        poll(fds, timeout)
    }
}

/// Returns true if a file supports waiting, as some files in `/proc` and `/sys` do. `poll` cannot
/// detect that, so a temporary epoll instance does; such files are rare. Where a sandbox refuses
/// epoll, no file can be waited for.
#[cfg(target_os = "linux")]
fn supports_waiting(fd: Fd<'_>) -> bool {
    Epoll::new().is_ok_and(|epoll| epoll.add(fd, Token::NUDGE, Interest::PRIORITY).is_ok())
}

/// Returns false, because no system but Linux is known to have such files.
#[cfg(not(target_os = "linux"))]
fn supports_waiting(_: Fd<'_>) -> bool {
    false
}

/// Returns the type of a descriptor's file. The descriptor is not duplicated, because the process
/// may have none left: a task that has accepted a socket with the last one must be able to use it.
pub(in crate::engine::driver) fn kind_of(fd: Fd<'_>) -> io::Result<FileType> {
    // SAFETY: the descriptor stays open while it is borrowed, and `ManuallyDrop` never closes it.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd.as_raw_fd()) });
    Ok(file.metadata()?.file_type())
}

/// Waits until a descriptor is ready, with a timeout in nanoseconds.
#[cfg(target_os = "linux")]
pub(in crate::engine::driver) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        // Both fields have 32 or 64 bits, depending on the C library. 68 years are enough for a
        // turn, which may end early, and 10^9 nanoseconds fit into 30 bits.
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and length come from a slice that is borrowed mutably during the call; the
    // timeout is null or points to a local that outlives the call; a null signal mask is allowed.
    let result = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until a descriptor is ready, with a timeout in milliseconds.
#[cfg(not(target_os = "linux"))]
pub(in crate::engine::driver) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map_or(-1, crate::engine::driver::poll_flags::rounded_up);
    // SAFETY: pointer and length come from a slice that is borrowed mutably during the call.
    let result = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
