//! What a bell is made of: a pipe with a byte in it, or none.

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
    writer: OwnedFd,
}

impl Pipe {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        socket2::SockRef::from(&reader).set_nonblocking(true)?;
        socket2::SockRef::from(&writer).set_nonblocking(true)?;
        Ok(Self { reader: reader.into(), writer })
    }

    /// What becomes readable.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Takes out what is in it. A byte that stays would be found by the next who looks.
    pub(crate) fn drain(&self) {
        let mut bytes = [0; 64];
        // All errors mean that there is nothing to take: it is empty, for nobody closes it.
        while matches!((&self.reader).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}

impl Rings for Pipe {
    fn ring(&self) {
        let byte = 1_u8;
        // SAFETY: one byte is read from `byte`, before the call returns. It is one of the
        // calls that a handler may make; `errno` is kept by who called the handler.
        let _ = unsafe { libc::write(self.writer.as_raw_fd(), (&raw const byte).cast(), 1) };
        // A full pipe, the only error that there can be, is one that will be read.
    }
}
