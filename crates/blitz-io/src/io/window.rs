//! A buffer of fixed size that is filled at one end and taken from at the other: what
//! readers and copies stand on.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncRead, ReadBuf};

/// Bytes per buffer where a caller names no size: Tokio's figure and std's.
pub(super) const DEFAULT_SIZE: usize = 8 * 1024;

/// The bytes from `start` to `end` were read and are not taken yet.
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

    /// What was read and not taken.
    pub(super) fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether a read could add something.
    pub(super) fn has_room(&self) -> bool {
        self.is_empty() || self.end < self.bytes.len()
    }

    /// Takes so many bytes; all of them, if that is more than there are.
    pub(super) fn take(&mut self, amount: usize) {
        self.start += amount.min(self.end - self.start);
    }

    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Reads once with a reader that blocks, up to so many bytes, into a window that
    /// holds nothing and becomes as large as it must. An interrupted read is tried again.
    #[cfg(feature = "io-std")]
    pub(super) fn read(&mut self, reader: &mut impl io::Read, wanted: usize) -> io::Result<()> {
        if self.bytes.len() < wanted {
            *self = Self::new(wanted);
        }
        self.clear();
        let room = &mut self.bytes[..wanted];
        self.end = loop {
            match reader.read(room) {
                Ok(came) => break came.min(wanted),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        Ok(())
    }

    /// Reads once, behind what is held; answers with how many bytes came.
    ///
    /// # Panics
    /// If the reader claims more than there was room for: it has put another buffer in
    /// the place of ours.
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
        let came = buf.filled().len();
        assert!(
            came <= size,
            "a reader filled {came} bytes of {size}: it must fill the buffer it was given"
        );
        self.end += came;
        Poll::Ready(Ok(came))
    }
}
