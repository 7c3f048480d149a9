//! `copy`: moves bytes from a reader to a writer until the reader ends.
//!
//! The buffer begins small. It becomes large when reads fill it and the writer's peer has
//! evidently read. So a long stream needs an eighth of the calls, while a connection uses
//! no more memory than it needs if it sends a few lines, or is idle after its last bytes,
//! or has a peer that reads nothing.
//!
//! A round reads once and writes everything it has. Each round takes a unit of the budget,
//! so a copy between a reader and a writer that are always ready yields to other tasks,
//! whatever their types are.
//!
//! # Rejected
//! Growing by doubling: three buffers are allocated and freed on the way, for streams that
//! reach the last of them anyway. Growing at the first full read: then every response of
//! nine kilobytes would allocate the large buffer. Growing regardless of how much was
//! copied: a peer that reads nothing would get the large buffer too, because its socket
//! accepts the first megabytes, and many such peers are how a server runs out of memory.

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

/// The buffer size for a long stream: on loopback the largest segment is 64 KiB, so one
/// read takes everything that one wake-up brought.
const LARGE: usize = 64 * 1024;

/// Full reads in a row after which a copy counts as a long stream: chosen, not measured.
const FULL_READS: u8 = 2;

/// Bytes written after which the peer must have read some: twice what a TCP connection
/// accepts on loopback while nothing reads from it (4.1 MiB with Linux's defaults). With
/// the small buffer these bytes cost about a millisecond more than with the large one.
const MORE_THAN_SOCKETS_HOLD: u64 = 8 * 1024 * 1024;

/// Copies everything from a reader to a writer.
///
/// Reads until the reader ends, writes all bytes, flushes the writer, and returns the
/// number of bytes. Whenever the reader has nothing to read, the writer is flushed, because
/// the peer that the reader waits for may need those bytes first. Operations that return
/// `Interrupted` are tried again.
///
/// The buffer has 8 KiB. Once 8 MiB were copied it has 64 KiB while reads fill it.
///
/// # Errors
///
/// Returns the first error of the reader or the writer; `WriteZero` if the writer accepts
/// no more bytes. Bytes that were read by then and not written are lost.
///
/// # Cancel safety
///
/// This function is not cancel safe: bytes that were read and not written are lost with the
/// future.
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

/// The state of a copy.
#[derive(Debug)]
pub(super) struct Transfer {
    window: Window,
    /// True if the window may change its size.
    adapts: bool,
    /// The number of reads in a row that filled the window.
    full_reads: u8,
    /// The size in bytes of the last read into an empty window.
    last_read: usize,
    /// True once the reader has ended.
    ended: bool,
    /// True if bytes were written since the last flush.
    unflushed: bool,
    /// The number of bytes written.
    total: u64,
}

impl Transfer {
    /// Creates a copy with a buffer that adapts its size.
    pub(super) fn adaptive() -> Self {
        Self { adapts: true, ..Self::with_size(DEFAULT_SIZE) }
    }

    /// Creates a copy with a buffer of the size that the caller requested.
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

    /// Copies as much as possible, and returns the number of bytes once the reader has
    /// ended.
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
            let unit = ready!(budget::poll_proceed(cx));
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

    /// Flushes the writer and shrinks the window when the reader has nothing and everything
    /// is written. The flush is needed because the peer that the reader waits for may
    /// itself wait for bytes that the writer buffers.
    fn poll_idle<W: AsyncWrite + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        writer: Pin<&mut W>,
        unit: &budget::BudgetUnit,
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

    /// Reads once. The caller must have checked `wants_more`.
    fn poll_read<R: AsyncRead + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
    ) -> Poll<io::Result<()>> {
        self.grow();
        let was_empty = self.window.is_empty();
        let count = loop {
            match self.window.poll_fill(cx, reader.as_mut()) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(count) => break count?,
                Poll::Pending => return Poll::Pending,
            }
        };
        self.ended = count == 0;
        if was_empty {
            self.last_read = count;
            let is_full = count == self.window.size();
            self.full_reads = if is_full { FULL_READS.min(self.full_reads + 1) } else { 0 };
        }
        Poll::Ready(Ok(()))
    }

    /// Replaces the small window by the large one after reads that filled it, if the
    /// writer's peer reads. A window that holds bytes stays.
    fn grow(&mut self) {
        let is_read = self.total >= MORE_THAN_SOCKETS_HOLD;
        let is_stream = is_read && self.full_reads == FULL_READS && self.window.is_empty();
        if self.adapts && is_stream && self.window.size() < LARGE {
            self.window = Window::new(LARGE);
        }
    }

    /// Replaces the large window by the small one while the reader has nothing, if the
    /// small one would have held the last read. This matters because idle connections are
    /// many.
    fn shrink(&mut self) {
        if self.adapts && self.window.size() > DEFAULT_SIZE && self.last_read <= DEFAULT_SIZE {
            self.window = Window::new(DEFAULT_SIZE);
            self.full_reads = 0;
        }
    }

    /// Writes once; while the write has to wait, reads more.
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
        match writer.poll_write(cx, self.window.buffered()) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "write zero byte into writer: it takes nothing more",
            ))),
            Poll::Ready(Ok(amount)) => {
                let buffered = self.window.buffered().len();
                assert!(amount <= buffered, "a writer took {amount} bytes of {buffered}");
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
                // Reading more now makes the next write larger.
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
