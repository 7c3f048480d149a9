//! `join`: a reader and a writer as one stream.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// Joins a reader and a writer into one stream.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let mut stream = io::join(&b"in"[..], Vec::new());
/// stream.write_all(b"out").await?;
/// let mut text = String::new();
/// stream.read_to_string(&mut text).await?;
/// assert_eq!((text.as_str(), stream.writer().as_slice()), ("in", &b"out"[..]));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn join<R, W>(reader: R, writer: W) -> Join<R, W>
where
    R: AsyncRead,
    W: AsyncWrite,
{
    Join { reader, writer }
}

pin_project! {
    /// A reader and a writer as one stream; created by [`join`](join()).
    ///
    /// # Examples
    ///
    /// ```
    /// let stream = blitz_io::io::join(blitz_io::io::empty(), blitz_io::io::sink());
    /// let (_empty, _sink) = stream.into_inner();
    /// ```
    #[derive(Debug)]
    pub struct Join<R, W> {
        #[pin]
        reader: R,
        #[pin]
        writer: W,
    }
}

impl<R, W> Join<R, W>
where
    R: AsyncRead,
    W: AsyncWrite,
{
    /// Consumes this `Join` and returns its reader and its writer.
    ///
    /// # Examples
    ///
    /// ```
    /// let stream = blitz_io::io::join(&b"in"[..], vec![1]);
    /// assert_eq!(stream.into_inner(), (&b"in"[..], vec![1]));
    /// ```
    pub fn into_inner(self) -> (R, W) {
        (self.reader, self.writer)
    }

    /// Returns a reference to the inner reader.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(*blitz_io::io::join(&b"in"[..], vec![1]).reader(), b"in");
    /// ```
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// Returns a reference to the inner writer.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(*blitz_io::io::join(&b"in"[..], vec![1]).writer(), [1]);
    /// ```
    pub fn writer(&self) -> &W {
        &self.writer
    }

    /// Returns a mutable reference to the inner reader.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut stream = blitz_io::io::join(&b"in"[..], vec![1]);
    /// *stream.reader_mut() = b"other";
    /// assert_eq!(*stream.reader(), b"other");
    /// ```
    pub fn reader_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns a mutable reference to the inner writer.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut stream = blitz_io::io::join(&b"in"[..], vec![1]);
    /// stream.writer_mut().push(2);
    /// assert_eq!(*stream.writer(), [1, 2]);
    /// ```
    pub fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Returns a pinned mutable reference to the inner reader.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut stream = std::pin::pin!(blitz_io::io::join(&b"in"[..], vec![1]));
    /// assert_eq!(*stream.as_mut().reader_pin_mut(), b"in");
    /// ```
    pub fn reader_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().reader
    }

    /// Returns a pinned mutable reference to the inner writer.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut stream = std::pin::pin!(blitz_io::io::join(&b"in"[..], vec![1]));
    /// assert_eq!(*stream.as_mut().writer_pin_mut(), [1]);
    /// ```
    pub fn writer_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().writer
    }
}

impl<R, W> AsyncRead for Join<R, W>
where
    R: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().reader.poll_read(cx, buf)
    }
}

impl<R, W> AsyncWrite for Join<R, W>
where
    W: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().writer.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().writer.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.writer.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().writer.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().writer.poll_shutdown(cx)
    }
}

impl<R, W> AsyncBufRead for Join<R, W>
where
    R: AsyncBufRead,
{
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().reader.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().reader.consume(amt);
    }
}
