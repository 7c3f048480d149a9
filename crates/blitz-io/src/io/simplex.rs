//! `simplex`: a pipe in memory with one direction, in one piece or in two halves.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use super::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf, pipe::Pipe, split};
use crate::engine::prim::Arc;

/// A pipe in memory with one direction.
///
/// [`simplex`] creates a pipe in two halves; [`new_unsplit`](Self::new_unsplit) creates one
/// in one piece, which reads the bytes written to it.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (mut receiver, mut sender) = blitz_io::io::simplex(64);
/// sender.write_all(b"ping").await?;
/// let mut buf = [0; 4];
/// receiver.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"ping");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct SimplexStream {
    pipe: Arc<Pipe>,
}

/// Creates a pipe in memory with one direction, and returns its two halves.
///
/// The pipe buffers up to `max_buf_size` bytes; a write that finds no room waits. The
/// halves are put together again with [`ReadHalf::unsplit`].
///
/// When the writing half is shut down or dropped, the reading half reads the bytes written
/// before, then the end. When the reading half is dropped, writes fail with `BrokenPipe`.
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
/// let (mut receiver, mut sender) = blitz_io::io::simplex(64);
/// sender.write_all(b"all").await?;
/// drop(sender);
/// let mut text = String::new();
/// receiver.read_to_string(&mut text).await?;
/// assert_eq!(text, "all");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn simplex(max_buf_size: usize) -> (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) {
    let stream = SimplexStream::new_unsplit(max_buf_size);
    let pipe = stream.pipe.clone();
    split::of_pipe(stream, pipe)
}

impl SimplexStream {
    /// Creates a pipe as one value that both reads and writes; [`simplex`] returns two halves.
    ///
    /// # Panics
    ///
    /// Panics if `max_buf_size` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncReadExt, AsyncWriteExt, SimplexStream};
    ///
    /// # blitz_io::run(async {
    /// let mut stream = SimplexStream::new_unsplit(64);
    /// stream.write_all(b"hello").await?;
    /// let mut buf = [0; 5];
    /// stream.read_exact(&mut buf).await?;
    /// assert_eq!(&buf, b"hello");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn new_unsplit(max_buf_size: usize) -> SimplexStream {
        Self { pipe: Pipe::new(max_buf_size) }
    }
}

impl AsyncRead for SimplexStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.pipe.poll_read(cx, buf)
    }
}

impl AsyncWrite for SimplexStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pipe.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.pipe.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        drop(self.pipe.close());
        Poll::Ready(Ok(()))
    }
}
