//! Futures that write.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;

use super::retry_interrupted;
use crate::io::AsyncWrite;

/// The most chunks of a `Buf` written at a time: Tokio's value. The kernel accepts 1,024,
/// but each takes sixteen bytes of stack that are cleared for every write.
const CHUNKS: usize = 64;

future! {
    /// Future of [`write`](super::AsyncWriteExt::write).
    Write<'a, W> { writer: &'a mut W, buf: &'a [u8] }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Write<'_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        Pin::new(&mut **this.writer).poll_write(cx, this.buf)
    }
}

future! {
    /// Future of [`write_vectored`](super::AsyncWriteExt::write_vectored).
    WriteVectored<'a, 'b, W> { writer: &'a mut W, bufs: &'a [IoSlice<'b>] }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteVectored<'_, '_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        Pin::new(&mut **this.writer).poll_write_vectored(cx, this.bufs)
    }
}

future! {
    /// Future of [`write_all`](super::AsyncWriteExt::write_all).
    WriteAll<'a, W> { writer: &'a mut W, rest: &'a [u8] }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteAll<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        poll_write_all(&mut **this.writer, cx, this.rest)
    }
}

/// Writes until `rest` is empty. `rest` always holds the bytes that are still to be
/// written, also after an error or a wait.
pub(super) fn poll_write_all<W: AsyncWrite + Unpin + ?Sized>(
    writer: &mut W,
    cx: &mut Context<'_>,
    rest: &mut &[u8],
) -> Poll<io::Result<()>> {
    while !rest.is_empty() {
        let n = ready!(retry_interrupted(|| Pin::new(&mut *writer).poll_write(cx, rest)))?;
        if n == 0 {
            return Poll::Ready(Err(ErrorKind::WriteZero.into()));
        }
        *rest = &rest[n..];
    }
    Poll::Ready(Ok(()))
}

future! {
    /// Future of [`write_buf`](super::AsyncWriteExt::write_buf).
    WriteBuf<'a, W, B> { writer: &'a mut W, buf: &'a mut B }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteBuf<'_, W, B> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        if !this.buf.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        poll_write_chunks(&mut **this.writer, cx, &mut **this.buf)
    }
}

future! {
    /// Future of [`write_all_buf`](super::AsyncWriteExt::write_all_buf).
    WriteAllBuf<'a, W, B> { writer: &'a mut W, buf: &'a mut B }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteAllBuf<'_, W, B> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        while this.buf.has_remaining() {
            let attempt = || poll_write_chunks(&mut **this.writer, cx, &mut **this.buf);
            if ready!(retry_interrupted(attempt))? == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes once from `buf`, from several of its chunks if the writer supports vectored
/// writes, and advances `buf` by the bytes written.
fn poll_write_chunks<W: AsyncWrite + Unpin, B: Buf>(
    writer: &mut W,
    cx: &mut Context<'_>,
    buf: &mut B,
) -> Poll<io::Result<usize>> {
    let writer = Pin::new(writer);
    let n = if writer.is_write_vectored() {
        let mut chunks = [IoSlice::new(&[]); CHUNKS];
        let count = buf.chunks_vectored(&mut chunks);
        ready!(writer.poll_write_vectored(cx, &chunks[..count]))?
    } else {
        ready!(writer.poll_write(cx, buf.chunk()))?
    };
    buf.advance(n);
    Poll::Ready(Ok(n))
}

future! {
    /// Future of [`flush`](super::AsyncWriteExt::flush).
    Flush<'a, W> { writer: &'a mut W }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Flush<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut **self.project().writer).poll_flush(cx)
    }
}

future! {
    /// Future of [`shutdown`](super::AsyncWriteExt::shutdown).
    Shutdown<'a, W> { writer: &'a mut W }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Shutdown<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut **self.project().writer).poll_shutdown(cx)
    }
}
