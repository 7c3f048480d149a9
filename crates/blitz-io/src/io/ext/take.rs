//! `Take`: a source with a limit.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::io::{AsyncBufRead, AsyncRead, ReadBuf};

pin_project! {
    /// A source limited to its first bytes; created by [`take`](super::AsyncReadExt::take).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut body = b"body and more".as_slice().take(4);
    /// let mut bytes = Vec::new();
    /// body.read_to_end(&mut bytes).await?;
    /// assert_eq!(bytes, b"body");
    /// assert_eq!(body.into_inner(), b" and more");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    #[must_use = "a source does nothing unless it is read"]
    #[derive(Debug)]
    pub struct Take<R> {
        #[pin]
        reader: R,
        left: u64,
    }
}

impl<R: AsyncRead> Take<R> {
    pub(super) fn new(reader: R, limit: u64) -> Self {
        Self { reader, left: limit }
    }

    /// Returns the number of bytes that can still be read, if the source has that many.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut part = b"abcdef".as_slice().take(4);
    /// part.read_u8().await?;
    /// assert_eq!(part.limit(), 3);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn limit(&self) -> u64 {
        self.left
    }

    /// Sets the number of bytes that can still be read, regardless of how many were read
    /// before.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut part = b"abcdef".as_slice().take(0);
    /// assert_eq!(part.read(&mut [0; 9]).await?, 0);
    /// part.set_limit(2);
    /// assert_eq!(part.read(&mut [0; 9]).await?, 2);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn set_limit(&mut self, limit: u64) {
        self.left = limit;
    }

    /// Returns a reference to the source.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// assert_eq!(*b"abc".as_slice().take(1).get_ref(), b"abc");
    /// ```
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Returns a mutable reference to the source. Bytes read from it directly do not count
    /// towards the limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut part = b"abc".as_slice().take(2);
    /// part.get_mut().read_u8().await?;
    /// assert_eq!(part.limit(), 2);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns a pinned mutable reference to the source.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// let part = pin!(b"abc".as_slice().take(2));
    /// assert_eq!(*part.get_pin_mut(), b"abc");
    /// ```
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().reader
    }

    /// Consumes this `Take` and returns the source, with the bytes that were not read.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// assert_eq!(b"abc".as_slice().take(1).into_inner(), b"abc");
    /// ```
    pub fn into_inner(self) -> R {
        self.reader
    }
}

impl<R: AsyncRead> AsyncRead for Take<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        // At the limit the source is not polled, because it might have to wait.
        if *this.left == 0 {
            return Poll::Ready(Ok(()));
        }
        // A limit that exceeds `usize` cannot limit a buffer in memory.
        let limit = usize::try_from(*this.left).unwrap_or(usize::MAX);
        let (polled, n) = buf.with_limit(limit, |part| this.reader.poll_read(cx, part));
        *this.left -= n as u64;
        polled
    }
}

impl<R: AsyncBufRead> AsyncBufRead for Take<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if *this.left == 0 {
            return Poll::Ready(Ok(&[]));
        }
        let limit = usize::try_from(*this.left).unwrap_or(usize::MAX);
        let shown = ready!(this.reader.poll_fill_buf(cx))?;
        Poll::Ready(Ok(&shown[..shown.len().min(limit)]))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        // A caller that consumes more bytes than it was shown must not get past the limit.
        let amt = amt.min(usize::try_from(*this.left).unwrap_or(usize::MAX));
        *this.left -= amt as u64;
        this.reader.consume(amt);
    }
}
