//! Bridges between our I/O traits and those of futures-io.
//!
//! Theirs read into initialised bytes and return a count, close where ours shut down, and seek in
//! one call where ours take two. The state between two polls of a seek is kept here.

#![forbid(unsafe_code)]

use std::{
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

use blitz_io::io as ours;
use futures_io as theirs;

wrapper! {
    /// Adapts a value between our I/O traits and those of futures-io.
    ///
    /// A value that implements our [`AsyncRead`](ours::AsyncRead),
    /// [`AsyncBufRead`](ours::AsyncBufRead), [`AsyncWrite`](ours::AsyncWrite) or
    /// [`AsyncSeek`](ours::AsyncSeek) implements futures-io's trait of that name in this wrapper,
    /// and the other way round. Closing by futures-io's traits is a shutdown by ours.
    ///
    /// # Cancel safety
    ///
    /// A seek by futures-io's trait that is dropped half-way continues underneath. If the next one
    /// requests the same position it takes over that seek, which matters for `SeekFrom::Current`:
    /// both together move once. Any other seek waits for it to end first.
    ///
    /// # Examples
    ///
    /// A file of ours, for code that requires the traits of futures-io:
    ///
    /// ```
    /// use std::io::{Cursor, SeekFrom};
    /// use blitz_io_compat::FuturesIo;
    /// use futures_util::{AsyncReadExt, AsyncSeekExt};
    ///
    /// # blitz_io::run(async {
    /// // A type that implements only our traits.
    /// let file = blitz_io::io::BufReader::new(Cursor::new("0123456789"));
    /// let mut file = FuturesIo::new(file);
    /// assert_eq!(file.seek(SeekFrom::End(-3)).await?, 7);
    /// let mut rest = String::new();
    /// file.read_to_string(&mut rest).await?;
    /// assert_eq!(rest, "789");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// A reader of theirs, for code that requires our traits:
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    /// use blitz_io_compat::FuturesIo;
    ///
    /// # blitz_io::run(async {
    /// let theirs = futures_util::io::BufReader::new(&b"one\ntwo\n"[..]);
    /// let mut lines = FuturesIo::new(theirs).lines();
    /// assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
    /// assert_eq!(lines.next_line().await?.as_deref(), Some("two"));
    /// assert_eq!(lines.next_line().await?, None);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    FuturesIo {
        // The seek that was started and has not been seen to end.
        seek: Option<SeekFrom>,
        // The position after the last seek.
        position: u64,
    }
}

impl<T: ours::AsyncRead> theirs::AsyncRead for FuturesIo<T> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ours::ReadBuf::new(buf);
        ready!(self.project().inner.poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<T: theirs::AsyncRead> ours::AsyncRead for FuturesIo<T> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ours::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let buffer = buf.initialize_unfilled();
        let count = ready!(self.project().inner.poll_read(cx, buffer))?;
        // Panics if a reader claims to have read more than fits into the buffer.
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Implements the methods that have the same names on both sides.
macro_rules! bridge {
    ($from:ident, $end:ident => $to:ident, $to_end:ident) => {
        impl<T: $from::AsyncBufRead> $to::AsyncBufRead for FuturesIo<T> {
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

        impl<T: $from::AsyncWrite> $to::AsyncWrite for FuturesIo<T> {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.project().inner.poll_write(cx, buf)
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
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.project().inner.poll_flush(cx)
            }

            #[inline]
            fn $to_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.project().inner.$end(cx)
            }
        }
    };
}

// futures-io has no method that reports whether a writer is vectored, so `is_write_vectored` stays
// false: a vectored writer then gets the buffers one by one, which is correct if not optimal.
bridge!(ours, poll_shutdown => theirs, poll_close);
bridge!(theirs, poll_close => ours, poll_shutdown);

impl<T: ours::AsyncSeek> theirs::AsyncSeek for FuturesIo<T> {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pos: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        if *this.seek != Some(pos) {
            // A cancelled seek may still be under way, and ours may refuse a second one. Its result
            // is discarded, because its caller is gone.
            let _ = ready!(this.inner.as_mut().poll_complete(cx));
            *this.seek = None;
            this.inner.as_mut().start_seek(pos)?;
            *this.seek = Some(pos);
        }
        let moved = ready!(this.inner.poll_complete(cx));
        *this.seek = None;
        Poll::Ready(moved)
    }
}

impl<T: theirs::AsyncSeek> ours::AsyncSeek for FuturesIo<T> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let this = self.project();
        if this.seek.is_some() {
            return Err(io::Error::other(
                "an earlier seek is under way: call poll_complete until it has ended",
            ));
        }
        *this.seek = Some(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.project();
        if let Some(position) = *this.seek {
            let moved = ready!(this.inner.poll_seek(cx, position));
            *this.seek = None;
            *this.position = moved?;
        }
        Poll::Ready(Ok(*this.position))
    }
}
