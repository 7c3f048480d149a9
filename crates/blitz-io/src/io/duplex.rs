//! `duplex`: two streams in memory, each of which reads the bytes that the other writes.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use super::{AsyncRead, AsyncWrite, ReadBuf, pipe::Pipe};
use crate::engine::prim::Arc;

/// One of two connected streams in memory.
///
/// Streams are created in pairs by [`duplex`]: bytes written to one are read from the
/// other, as if they were connected sockets.
///
/// # Closing
///
/// When one stream of a pair is dropped, the other one reads the bytes that were already
/// written, then the end; its writes, including one that waits, fail with `BrokenPipe`.
/// [`shutdown`](crate::io::AsyncWriteExt::shutdown) ends one direction only.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (mut client, mut server) = blitz_io::io::duplex(64);
/// client.write_all(b"ping").await?;
/// let mut buf = [0; 4];
/// server.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"ping");
///
/// drop(client);
/// assert_eq!(server.read(&mut buf).await?, 0);
/// assert!(server.write_all(b"pong").await.is_err());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct DuplexStream {
    read: Arc<Pipe>,
    write: Arc<Pipe>,
}

/// Creates a pair of streams in memory that behave like two connected sockets.
///
/// Each direction buffers up to `max_buf_size` bytes; a write that finds no room waits.
/// Memory is allocated as it is needed.
///
/// # Panics
///
/// Panics if `max_buf_size` is zero.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (mut one, mut other) = blitz_io::io::duplex(8);
/// let writing = blitz_io::spawn(async move { one.write_all(&[7; 100]).await });
/// let mut all = Vec::new();
/// other.read_to_end(&mut all).await?;
/// assert_eq!(all, [7; 100]);
/// writing.await.unwrap()
/// # }).unwrap();
/// ```
#[track_caller]
pub fn duplex(max_buf_size: usize) -> (DuplexStream, DuplexStream) {
    let (one, two) = (Pipe::new(max_buf_size), Pipe::new(max_buf_size));
    let first = DuplexStream { read: one.clone(), write: two.clone() };
    (first, DuplexStream { read: two, write: one })
}

impl Drop for DuplexStream {
    fn drop(&mut self) {
        // Both pipes are closed before any task is woken, so a task woken by one close
        // finds the other pipe closed as well.
        let _wakes = (self.write.close(), self.read.close());
    }
}

impl AsyncRead for DuplexStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.read.poll_read(cx, buf)
    }
}

impl AsyncWrite for DuplexStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        drop(self.write.close());
        Poll::Ready(Ok(()))
    }
}
