//! Futures that read once, or a known number of bytes.

use std::{
    io::{self, ErrorKind},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::BufMut;

use super::retry_interrupted;
use crate::io::{AsyncRead, ReadBuf, raw};

future! {
    /// Future of [`read`](super::AsyncReadExt::read).
    Read<'a, R> { reader: &'a mut R, buf: &'a mut [u8] }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for Read<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let mut buf = ReadBuf::new(this.buf);
        ready!(Pin::new(&mut **this.reader).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

future! {
    /// Future of [`read_buf`](super::AsyncReadExt::read_buf).
    ReadInto<'a, R, B> { reader: &'a mut R, buf: &'a mut B }
}

impl<R, B> Future for ReadInto<'_, R, B>
where
    R: AsyncRead + Unpin + ?Sized,
    B: BufMut + ?Sized,
{
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        if !this.buf.has_remaining_mut() {
            return Poll::Ready(Ok(0));
        }
        let reader = Pin::new(&mut **this.reader);
        let (polled, n) = raw::fill(&mut **this.buf, |buf| reader.poll_read(cx, buf));
        ready!(polled)?;
        Poll::Ready(Ok(n))
    }
}

future! {
    /// Future of [`read_exact`](super::AsyncReadExt::read_exact).
    ReadExact<'a, R> { reader: &'a mut R, buf: ReadBuf<'a> }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadExact<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        Poll::Ready(match ready!(poll_fill(&mut **this.reader, cx, this.buf))? {
            Reached::Full => Ok(this.buf.capacity()),
            Reached::End => Err(io::Error::new(ErrorKind::UnexpectedEof, "early eof")),
        })
    }
}

/// The reason why [`poll_fill`] is done.
pub(super) enum Reached {
    /// The buffer is full.
    Full,
    /// The source has no more.
    End,
}

/// Reads until `buf` is full or the source ends. Bytes read before an error or a wait are
/// in `buf`.
pub(super) fn poll_fill<R: AsyncRead + Unpin + ?Sized>(
    reader: &mut R,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<Reached>> {
    while buf.remaining() > 0 {
        let before = buf.remaining();
        ready!(retry_interrupted(|| Pin::new(&mut *reader).poll_read(cx, buf)))?;
        if buf.remaining() == before {
            return Poll::Ready(Ok(Reached::End));
        }
    }
    Poll::Ready(Ok(Reached::Full))
}
