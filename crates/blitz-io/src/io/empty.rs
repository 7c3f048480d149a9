//! `empty`: a stream with nothing to read that discards everything written to it.

use std::{
    fmt,
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf, sink::taken};
use crate::engine::work::task::budget;

/// A stream that is always at its end for reads, and discards all bytes written to it;
/// created by [`empty`](empty()).
///
/// # Examples
///
/// ```
/// assert_eq!(format!("{:?}", blitz_io::io::empty()), "Empty { .. }");
/// ```
pub struct Empty {
    _private: (),
}

/// Creates a stream that is always at its end for reads, and discards all bytes written to
/// it.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let mut text = String::new();
/// assert_eq!(io::empty().read_to_string(&mut text).await?, 0);
/// assert_eq!(io::empty().write(b"gone").await?, 4);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn empty() -> Empty {
    Empty { _private: () }
}

impl AsyncRead for Empty {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(budget::poll_proceed(cx)).spend();
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for Empty {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        ready!(budget::poll_proceed(cx)).spend();
        Poll::Ready(Ok(&[]))
    }

    fn consume(self: Pin<&mut Self>, _: usize) {}
}

impl AsyncWrite for Empty {
    taken!();
}

impl AsyncSeek for Empty {
    fn start_seek(self: Pin<&mut Self>, _: SeekFrom) -> io::Result<()> {
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        ready!(budget::poll_proceed(cx)).spend();
        Poll::Ready(Ok(0))
    }
}

impl fmt::Debug for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Empty { .. }")
    }
}
