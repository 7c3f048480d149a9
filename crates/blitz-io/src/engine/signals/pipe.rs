//! The descriptor behind a notifier: a pipe with a byte in it, or none. On Linux it is an eventfd,
//! a number that is zero or not, which costs half: one descriptor, no buffer.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use super::notifiers::Notifies;

/// A pipe or eventfd; both ends are non-blocking, and children do not inherit them.
#[derive(Debug)]
pub(crate) struct WakePipe {
    reader: File,
    /// The writing end; `None` if the reader is both, as in an eventfd.
    writer: Option<OwnedFd>,
}

/// The bytes that a notification writes: an eventfd takes eight bytes, for a number that is not
/// zero.
const NOTIFY: [u8; 8] = 1_u64.to_ne_bytes();

impl WakePipe {
    #[cfg(target_os = "linux")]
    pub(crate) fn new() -> io::Result<Self> {
        use std::os::fd::FromRawFd;

        // SAFETY: the call accesses no memory of ours.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created, and belongs to us alone.
        Ok(Self { reader: unsafe { File::from_raw_fd(fd) }, writer: None })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        socket2::SockRef::from(&reader).set_nonblocking(true)?;
        socket2::SockRef::from(&writer).set_nonblocking(true)?;
        Ok(Self { reader: reader.into(), writer: Some(writer) })
    }

    /// Returns the descriptor that becomes readable when the notifier is notified.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Reads everything that is in the pipe. Bytes that stayed would be found by the next owner.
    pub(crate) fn drain(&self) {
        // An eventfd returns eight bytes and is empty then, so there is no second call.
        let mut bytes = [0; 64];
        // Every error means that there is nothing to read: the pipe is empty, because it is never
        // closed.
        while matches!((&self.reader).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}

impl Notifies for WakePipe {
    fn notify(&self) {
        let writer =
            self.writer.as_ref().map_or_else(|| self.reader.as_raw_fd(), AsRawFd::as_raw_fd);
        // SAFETY: the bytes are read before the call returns. `write` is one of the calls that a
        // signal handler may make; `errno` is preserved by the code that called the handler.
        let _ = unsafe { libc::write(writer, NOTIFY.as_ptr().cast(), NOTIFY.len()) };
        // The only possible error is a full pipe, and that will be read anyway.
    }
}
