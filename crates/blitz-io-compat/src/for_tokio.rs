//! Bridges between our I/O traits and the real Tokio's, which have the same methods.
//!
//! Only the buffers are different types. A buffer is passed to the other side as initialised bytes,
//! so that no unsafe code is needed: bytes that have not been written yet are zeroed once, and a
//! buffer records that they are.

#![forbid(unsafe_code)]

use std::{
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

use blitz_io::io as ours;
use tokio::io as theirs;

wrapper! {
    /// Adapts a value between our I/O traits and those of the real Tokio.
    ///
    /// A value that implements our [`AsyncRead`](ours::AsyncRead),
    /// [`AsyncBufRead`](ours::AsyncBufRead), [`AsyncWrite`](ours::AsyncWrite) or
    /// [`AsyncSeek`](ours::AsyncSeek) implements Tokio's trait of that name in this wrapper, and
    /// the other way round.
    ///
    /// A socket of Tokio's needs Tokio's runtime, wrapped or not. A type that is only built on the
    /// traits, such as a protocol or a codec, needs none.
    ///
    /// # Examples
    ///
    /// A pipe of ours, for code that requires Tokio's traits:
    ///
    /// ```
    /// use blitz_io_compat::TokioIo;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # blitz_io::run(async {
    /// let (near, far) = blitz_io::io::duplex(64);
    /// let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
    /// near.write_all(b"hello").await?;
    /// near.shutdown().await?;
    /// let mut heard = Vec::new();
    /// far.read_to_end(&mut heard).await?;
    /// assert_eq!(heard, b"hello");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// A pipe of Tokio's, for code that requires our traits:
    ///
    /// ```
    /// use blitz_io::io::{AsyncReadExt, AsyncWriteExt};
    /// use blitz_io_compat::TokioIo;
    ///
    /// # blitz_io::run(async {
    /// let (near, far) = tokio::io::duplex(64);
    /// let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
    /// near.write_all(b"hello").await?;
    /// near.shutdown().await?;
    /// let mut heard = Vec::new();
    /// far.read_to_end(&mut heard).await?;
    /// assert_eq!(heard, b"hello");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    TokioIo {}
}

/// Implements one direction: a value that has the traits of `$from` gets those of `$to`.
macro_rules! bridge {
    ($from:ident => $to:ident) => {
        impl<T: $from::AsyncRead> $to::AsyncRead for TokioIo<T> {
            #[inline]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut $to::ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let mut buffer = $from::ReadBuf::new(buf.initialize_unfilled());
                ready!(self.project().inner.poll_read(cx, &mut buffer))?;
                let count = buffer.filled().len();
                buf.advance(count);
                Poll::Ready(Ok(()))
            }
        }

        impl<T: $from::AsyncBufRead> $to::AsyncBufRead for TokioIo<T> {
            #[inline]
            fn poll_fill_buf(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<&[u8]>> {
                self.project().inner.poll_fill_buf(cx)
            }

            #[inline]
            fn consume(self: Pin<&mut Self>, amt: usize) {
                self.project().inner.consume(amt);
            }
        }

        impl<T: $from::AsyncWrite> $to::AsyncWrite for TokioIo<T> {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.project().inner.poll_write(cx, buf)
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.project().inner.poll_flush(cx)
            }

            #[inline]
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.project().inner.poll_shutdown(cx)
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.project().inner.poll_write_vectored(cx, bufs)
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                self.get_ref().is_write_vectored()
            }
        }

        impl<T: $from::AsyncSeek> $to::AsyncSeek for TokioIo<T> {
            #[inline]
            fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
                self.project().inner.start_seek(position)
            }

            #[inline]
            fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
                self.project().inner.poll_complete(cx)
            }
        }
    };
}

bridge!(ours => theirs);
bridge!(theirs => ours);
