//! `Window`: a buffer of fixed size that is filled at its end and consumed from its start.
//! Buffered readers and copies are built on it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncRead, ReadBuf};

/// The size of a buffer in bytes if the caller gives none: the value of Tokio and of std.
pub(super) const DEFAULT_SIZE: usize = 8 * 1024;

/// A buffer of which the bytes from `start` to `end` were read and are not taken yet.
#[derive(Debug)]
pub(super) struct Window {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Window {
    pub(super) fn new(size: usize) -> Self {
        Self { bytes: vec![0; size].into_boxed_slice(), start: 0, end: 0 }
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes that were read and not taken.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns true if a read could add bytes.
    pub(super) fn has_room(&self) -> bool {
        self.is_empty() || self.end < self.bytes.len()
    }

    /// Takes `amount` bytes, or all of them if there are fewer.
    pub(super) fn take(&mut self, amount: usize) {
        self.start += amount.min(self.end - self.start);
    }

    /// Discards the bytes that were read.
    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Reads at most `wanted` bytes, once, with a reader that blocks.
    ///
    /// The window must hold nothing; it grows if it is smaller than `wanted`. An
    /// interrupted read is tried again.
    #[cfg(feature = "io-std")]
    pub(super) fn read(&mut self, reader: &mut impl io::Read, wanted: usize) -> io::Result<()> {
        if self.bytes.len() < wanted {
            *self = Self::new(wanted);
        }
        self.clear();
        let room = &mut self.bytes[..wanted];
        self.end = loop {
            match reader.read(room) {
                Ok(count) => break count.min(wanted),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        Ok(())
    }

    /// Reads once, appends to the buffered bytes, and returns how many bytes were read.
    ///
    /// # Panics
    /// Panics if the reader reports more bytes than there was room for, because then it
    /// replaced the buffer that it was given by another.
    pub(super) fn poll_fill<R: AsyncRead + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        reader: Pin<&mut R>,
    ) -> Poll<io::Result<usize>> {
        if self.is_empty() {
            self.clear();
        }
        let room = &mut self.bytes[self.end..];
        let size = room.len();
        let mut buf = ReadBuf::new(room);
        ready!(reader.poll_read(cx, &mut buf))?;
        let count = buf.filled().len();
        assert!(
            count <= size,
            "a reader filled {count} bytes of {size}: it must fill the buffer it was given"
        );
        self.end += count;
        Poll::Ready(Ok(count))
    }
}
