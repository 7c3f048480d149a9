//! What a bell is made of: a pipe with a byte in it, or none. On Linux it is a number that is
//! zero or not (eventfd), which costs half: one descriptor, no buffer.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use super::bells::Rings;

/// Both ends, which do not block, and which children do not inherit.
#[derive(Debug)]
pub(crate) struct Pipe {
    reader: File,
    /// `None` if it is the reader too.
    writer: Option<OwnedFd>,
}

/// What is written: an eventfd takes eight bytes, for a number that is not zero.
const RING: [u8; 8] = 1_u64.to_ne_bytes();

impl Pipe {
    #[cfg(target_os = "linux")]
    pub(crate) fn new() -> io::Result<Self> {
        use std::os::fd::FromRawFd;

        // SAFETY: no memory is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was made above, for us alone.
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

    /// What becomes readable.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Takes out what is in it. What stays would be found by the next who looks.
    pub(crate) fn drain(&self) {
        // An eventfd gives eight bytes and is empty then: there is no second call.
        let mut bytes = [0; 64];
        // All errors mean that there is nothing to take: it is empty, for nobody closes it.
        while matches!((&self.reader).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}

impl Rings for Pipe {
    fn ring(&self) {
        let writer =
            self.writer.as_ref().map_or_else(|| self.reader.as_raw_fd(), AsRawFd::as_raw_fd);
        // SAFETY: the bytes are read before the call returns. It is one of the calls that a
        // handler may make; `errno` is kept by who called the handler.
        let _ = unsafe { libc::write(writer, RING.as_ptr().cast(), RING.len()) };
        // Fullness, the only error that there can be, is of one that will be read.
    }
}
