//! From a reader to a writer, until the reader ends.
//!
//! The buffer begins small and becomes large when reads fill it: what streams is moved
//! with an eighth of the calls, and what sends a few lines, or has sent its last and
//! waits, holds no more memory than it needs.
//!
//! A round reads once and writes all it has. Each round takes a unit of the budget, so
//! that a copy between two that are always ready lets others run, whatever they are.
//!
//! # Rejected
//! Growing by doubling: three buffers are made and freed on the way, for streams that
//! reach the last of them anyway. Growing at the first full read: then every answer of
//! nine kilobytes would make the large one.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{
    AsyncRead, AsyncWrite,
    window::{DEFAULT_SIZE, Window},
};
use crate::engine::work::task::budget;

/// What a stream gets: on loopback the largest segment is 64 KiB, so one read takes what
/// one wake-up brought.
const LARGE: usize = 64 * 1024;

/// Full reads in a row after which it is a stream: picked, not measured.
const FULL_READS: u8 = 2;

/// Copies the entire contents of a reader into a writer.
///
/// Reads until the reader ends, writes everything, flushes the writer, and answers with
/// the number of bytes. Whenever the reader has nothing, what was written is flushed, so
/// that whoever the reader waits for gets to see it. `Interrupted` is tried again.
///
/// The buffer begins with 8 KiB and grows to 64 KiB while reads fill it.
///
/// # Errors
///
/// The first that the reader or the writer answers with; `WriteZero` if the writer takes
/// nothing. Bytes that were read by then and not written are lost.
///
/// # Cancel safety
///
/// Not cancel safe: what was read and not written is lost with the future.
///
/// # Examples
///
/// ```
/// use blitz_io::io;
///
/// # blitz_io::run(async {
/// let mut reader = &b"hello"[..];
/// let mut writer = Vec::new();
/// assert_eq!(io::copy(&mut reader, &mut writer).await?, 5);
/// assert_eq!(writer, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut transfer = Transfer::adaptive();
    std::future::poll_fn(|cx| transfer.poll(cx, Pin::new(&mut *reader), Pin::new(&mut *writer)))
        .await
}

/// A copy under way.
#[derive(Debug)]
pub(super) struct Transfer {
    window: Window,
    /// The window may change its size.
    adapts: bool,
    /// Reads in a row that filled the window.
    full_reads: u8,
    /// Bytes of the last read into an empty window.
    last_read: usize,
    /// The reader has ended.
    ended: bool,
    /// Something was written since the last flush.
    unflushed: bool,
    /// Bytes written.
    total: u64,
}

impl Transfer {
    /// With the buffer that grows.
    pub(super) fn adaptive() -> Self {
        Self { adapts: true, ..Self::with_size(DEFAULT_SIZE) }
    }

    /// With a buffer of a size that the caller asked for.
    pub(super) fn with_size(size: usize) -> Self {
        Self {
            window: Window::new(size),
            adapts: false,
            full_reads: 0,
            last_read: 0,
            ended: false,
            unflushed: false,
            total: 0,
        }
    }

    /// Moves what can be moved; answers with the number of bytes at the end.
    pub(super) fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + ?Sized,
        W: AsyncWrite + ?Sized,
    {
        loop {
            let unit = ready!(budget::proceed(cx));
            if self.wants_more() {
                match self.poll_read(cx, reader.as_mut()) {
                    Poll::Ready(result) => {
                        unit.spend();
                        result?;
                    }
                    Poll::Pending if self.window.is_empty() => {
                        return self.poll_idle(cx, writer, &unit);
                    }
                    Poll::Pending => {}
                }
            }
            while !self.window.is_empty() {
                ready!(self.poll_write(cx, reader.as_mut(), writer.as_mut()))?;
                unit.spend();
            }
            if self.ended {
                ready!(writer.as_mut().poll_flush(cx))?;
                unit.spend();
                return Poll::Ready(Ok(self.total));
            }
        }
    }

    /// The reader has nothing and all is written: whoever it waits for may wait for
    /// what the writer holds back.
    fn poll_idle<W: AsyncWrite + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        writer: Pin<&mut W>,
        unit: &budget::Unit,
    ) -> Poll<io::Result<u64>> {
        if self.unflushed {
            ready!(writer.poll_flush(cx))?;
            unit.spend();
            self.unflushed = false;
        }
        self.shrink();
        Poll::Pending
    }

    fn wants_more(&self) -> bool {
        !self.ended && self.window.has_room()
    }

    /// Reads once; only while it wants more.
    fn poll_read<R: AsyncRead + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
    ) -> Poll<io::Result<()>> {
        self.grow();
        let was_empty = self.window.is_empty();
        let came = loop {
            match self.window.poll_fill(cx, reader.as_mut()) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(came) => break came?,
                Poll::Pending => return Poll::Pending,
            }
        };
        self.ended = came == 0;
        if was_empty {
            self.last_read = came;
            let is_full = came == self.window.size();
            self.full_reads = if is_full { FULL_READS.min(self.full_reads + 1) } else { 0 };
        }
        Poll::Ready(Ok(()))
    }

    /// After reads that filled the small window: the large one. A window that holds
    /// something stays.
    fn grow(&mut self) {
        let is_stream = self.full_reads == FULL_READS && self.window.is_empty();
        if self.adapts && is_stream && self.window.size() < LARGE {
            self.window = Window::new(LARGE);
        }
    }

    /// While the reader has nothing: the small window again, if that would have held
    /// the last read. Idle connections are many.
    fn shrink(&mut self) {
        if self.adapts && self.window.size() > DEFAULT_SIZE && self.last_read <= DEFAULT_SIZE {
            self.window = Window::new(DEFAULT_SIZE);
            self.full_reads = 0;
        }
    }

    /// Writes once; while that has to wait, reads on.
    fn poll_write<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: Pin<&mut R>,
        writer: Pin<&mut W>,
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + ?Sized,
        W: AsyncWrite + ?Sized,
    {
        match writer.poll_write(cx, self.window.held()) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "write zero byte into writer: it takes nothing more",
            ))),
            Poll::Ready(Ok(amount)) => {
                let held = self.window.held().len();
                assert!(amount <= held, "a writer took {amount} bytes of {held}");
                self.window.take(amount);
                self.total += amount as u64;
                self.unflushed = true;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                // The next write is larger for it.
                if self.wants_more()
                    && let Poll::Ready(Err(error)) = self.poll_read(cx, reader)
                {
                    return Poll::Ready(Err(error));
                }
                Poll::Pending
            }
        }
    }
}
