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

/// See the module.
pub(super) struct Kernel {
    /// A byte that is written here ends a wait.
    bell: UnixStream,
    /// And comes out here.
    heard: UnixStream,
}

impl Kernel {
    pub(super) fn new() -> io::Result<Self> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Self { bell, heard })
    }

    /// What has input after a signal.
    pub(super) fn heard(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    /// Ends a wait for [`heard`](Self::heard), or the next one.
    pub(super) fn signal(&self) {
        // A full buffer ends the wait as well.
        let _ = (&self.bell).write(&[1]);
    }

    /// Takes the bytes of all signals.
    pub(super) fn hear(&self) {
        let mut bytes = [0; 64];
        while (&self.heard).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }

    /// Refuses files, of which `poll` says that they are ready: others refuse them as well.
    pub(super) fn admit(&self, fd: Fd<'_>) -> io::Result<()> {
        let kind = kind_of(fd)?;
        if kind.is_file() || kind.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(())
    }

    /// As [`poll`].
    pub(super) fn poll(
        &self,
        fds: &mut [libc::pollfd],
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        poll(fds, timeout)
    }
}

/// What a descriptor is. No copy of it is made, because there may be no number left for one:
/// whoever has accepted a socket with the last one must be able to use it.
pub(in crate::engine::driver) fn kind_of(fd: Fd<'_>) -> io::Result<FileType> {
    // SAFETY: the descriptor is open as long as it is borrowed, and this never closes it.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd.as_raw_fd()) });
    Ok(file.metadata()?.file_type())
}

/// Waits until one of them is ready, with as exact a time as the system can.
#[cfg(target_os = "linux")]
pub(in crate::engine::driver) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        // Both have 32 bits or 64, as the C library has it. 68 years are enough for a turn,
        // which may end early, and a thousand million is less than 2^30.
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice is as long as we say and is ours during the call; the time is null,
    // or a local that outlives the call. No signal mask is given.
    let answer = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until one of them is ready, in milliseconds.
#[cfg(not(target_os = "linux"))]
pub(in crate::engine::driver) fn poll(
    fds: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> io::Result<()> {
    let timeout = timeout.map_or(-1, crate::engine::driver::signs::rounded_up);
    // SAFETY: the slice is as long as we say and is ours during the call.
    let answer = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
