//! Between our traits and those of futures-io.
//!
//! Theirs read into initialised bytes and answer with a count, close where ours shut down,
//! and seek in one step where ours take two. The step between two polls is kept here.

#![forbid(unsafe_code)]

use std::{
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

use blitz_io::io as ours;
use futures_io as theirs;

wrapper! {
    /// Carries a value between our traits and those of futures-io.
    ///
    /// What is [`AsyncRead`](ours::AsyncRead), [`AsyncBufRead`](ours::AsyncBufRead),
    /// [`AsyncWrite`](ours::AsyncWrite) or [`AsyncSeek`](ours::AsyncSeek) by our traits is
    /// so by futures-io's in this wrapper, and the other way round. To close is to shut
    /// down.
    ///
    /// # Cancel safety
    ///
    /// A seek of futures-io that is given up half-way goes on underneath. If the next one
    /// asks for the same position it takes over that one, which matters for
    /// `SeekFrom::Current`: both together move once. Any other waits for it to end first.
    ///
    /// # Examples
    ///
    /// A file of ours, for code that asks for the traits of futures-io:
    ///
    /// ```
    /// use std::io::{Cursor, SeekFrom};
    /// use blitz_io_compat::FuturesIo;
    /// use futures_util::{AsyncReadExt, AsyncSeekExt};
    ///
    /// # blitz_io::run(async {
    /// // A type that has our traits alone.
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
    /// A reader of theirs, for code that asks for our traits:
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
        // The move that was begun, and whose end has not been seen.
        seek: Option<SeekFrom>,
        // Where the last move ended.
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
        let mut lent = ours::ReadBuf::new(buf);
        ready!(self.project().inner.poll_read(cx, &mut lent))?;
        Poll::Ready(Ok(lent.filled().len()))
    }
}

impl<T: theirs::AsyncRead> ours::AsyncRead for FuturesIo<T> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ours::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let lent = buf.initialize_unfilled();
        let count = ready!(self.project().inner.poll_read(cx, lent))?;
        // A reader that claims more than it was lent is found out here.
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// What both sides call by the same names.
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

// Whether a writer gathers, futures-io cannot say, so `is_write_vectored` stays at no: a
// writer that does is then handed the pieces one by one, which is right if not the best.
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
            // One that was given up may still be under way, and ours may refuse a second.
            // How it ends is nobody's concern any more.
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
