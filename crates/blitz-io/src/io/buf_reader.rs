//! `BufReader`: reads large pieces from its source and serves small reads from memory.

use std::{
    fmt,
    io::{self, IoSlice, SeekFrom},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{
    AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf,
    window::{DEFAULT_SIZE, Window},
};

pin_project! {
    /// Buffers the reads from any reader.
    ///
    /// Without a buffer, every read of a few bytes costs a call of the source. A
    /// `BufReader` reads its source in large pieces and serves small reads from memory. If
    /// the buffer is empty, a read at least as large as the buffer goes to the source
    /// directly. Buffered bytes are lost when the `BufReader` is dropped or consumed by
    /// [`into_inner`](Self::into_inner).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncBufReadExt, BufReader};
    ///
    /// # blitz_io::run(async {
    /// let mut reader = BufReader::new(&b"first\nsecond\n"[..]);
    /// let mut line = String::new();
    /// reader.read_line(&mut line).await?;
    /// assert_eq!(line, "first\n");
    /// assert_eq!(reader.buffer(), b"second\n");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub struct BufReader<R> {
        #[pin]
        pub(super) source: R,
        pub(super) window: Window,
        pub(super) seek: Seek,
    }
}

/// The state of a seek. The position of the source is ahead of the position that callers
/// see by the number of bytes in the window.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seek {
    /// No seek was requested.
    Idle,
    /// A seek was requested and has not begun.
    Requested(SeekFrom),
    /// The source seeks back over the bytes in the window; then comes the requested seek,
    /// by this relative distance.
    SeekingBack(i64),
    /// The source is seeking to the requested position.
    Moving,
}

impl<R: AsyncRead> BufReader<R> {
    /// Creates a new `BufReader` with the default buffer of 8 KiB.
    ///
    /// # Examples
    ///
    /// ```
    /// let reader = blitz_io::io::BufReader::new(&b"abc"[..]);
    /// assert!(reader.buffer().is_empty());
    /// ```
    pub fn new(inner: R) -> Self {
        Self::with_capacity(DEFAULT_SIZE, inner)
    }

    /// Creates a new `BufReader` with a buffer of `capacity` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `capacity` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncBufReadExt, BufReader};
    ///
    /// # blitz_io::run(async {
    /// let mut reader = BufReader::with_capacity(2, &b"abc"[..]);
    /// assert_eq!(reader.fill_buf().await?, b"ab");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn with_capacity(capacity: usize, inner: R) -> Self {
        assert!(capacity > 0, "capacity must be greater than zero: give at least one byte");
        Self { source: inner, window: Window::new(capacity), seek: Seek::Idle }
    }

    /// Returns a reference to the underlying reader.
    ///
    /// # Examples
    ///
    /// ```
    /// let reader = blitz_io::io::BufReader::new(&b"abc"[..]);
    /// assert_eq!(*reader.get_ref(), b"abc");
    /// ```
    pub fn get_ref(&self) -> &R {
        &self.source
    }

    /// Returns a mutable reference to the underlying reader.
    ///
    /// Reads through it bypass the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut reader = blitz_io::io::BufReader::new(&b"abc"[..]);
    /// *reader.get_mut() = b"xyz";
    /// assert_eq!(reader.into_inner(), b"xyz");
    /// ```
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Returns a pinned mutable reference to the underlying reader.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    ///
    /// let mut reader = pin!(blitz_io::io::BufReader::new(&b"abc"[..]));
    /// assert_eq!(*reader.as_mut().get_pin_mut(), b"abc");
    /// ```
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().source
    }

    /// Consumes this `BufReader` and returns the underlying reader.
    ///
    /// Bytes left in the buffer are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// let reader = blitz_io::io::BufReader::new(&b"abc"[..]);
    /// assert_eq!(reader.into_inner(), b"abc");
    /// ```
    pub fn into_inner(self) -> R {
        self.source
    }

    /// Returns the buffered bytes that are not yet consumed, without reading.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncReadExt, BufReader};
    ///
    /// # blitz_io::run(async {
    /// let mut reader = BufReader::new(&b"abc"[..]);
    /// assert_eq!(reader.read_u8().await?, b'a');
    /// assert_eq!(reader.buffer(), b"bc");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn buffer(&self) -> &[u8] {
        self.window.buffered()
    }
}

impl<R: AsyncRead> AsyncRead for BufReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.window.is_empty() && buf.remaining() >= self.window.size() {
            // Going through the window would copy the bytes once more, and in smaller
            // pieces.
            return self.project().source.poll_read(cx, buf);
        }
        let buffered = ready!(self.as_mut().poll_fill_buf(cx))?;
        let amount = buffered.len().min(buf.remaining());
        buf.put_slice(&buffered[..amount]);
        self.consume(amount);
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead> AsyncBufRead for BufReader<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if this.window.is_empty() {
            ready!(this.window.poll_fill(cx, this.source))?;
        }
        Poll::Ready(Ok(this.window.buffered()))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().window.take(amt);
    }
}

/// A seek discards the buffered bytes, even if it stays within them. A seek relative to the
/// current position counts from the position that callers see.
impl<R: AsyncRead + AsyncSeek> AsyncSeek for BufReader<R> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        // The seek begins in `poll_complete`, because the source may have to seek back
        // first.
        *self.project().seek = Seek::Requested(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        loop {
            // After an error no seek is in progress.
            let now = mem::replace(this.seek, Seek::Idle);
            let source = this.source.as_mut();
            *this.seek = match now {
                Seek::Idle => return source.poll_complete(cx),
                Seek::Requested(SeekFrom::Current(by)) => {
                    let buffered = this.window.buffered().len() as i64;
                    if let Some(by) = by.checked_sub(buffered) {
                        source.start_seek(SeekFrom::Current(by))?;
                        Seek::Moving
                    } else {
                        source.start_seek(SeekFrom::Current(-buffered))?;
                        Seek::SeekingBack(by)
                    }
                }
                Seek::Requested(position) => {
                    source.start_seek(position)?;
                    Seek::Moving
                }
                Seek::SeekingBack(_) | Seek::Moving => {
                    let Poll::Ready(position) = source.poll_complete(cx)? else {
                        *this.seek = now;
                        return Poll::Pending;
                    };
                    this.window.clear();
                    let Seek::SeekingBack(by) = now else { return Poll::Ready(Ok(position)) };
                    Seek::Requested(SeekFrom::Current(by))
                }
            };
        }
    }
}

/// Writes bypass the buffer.
impl<R: AsyncRead + AsyncWrite> AsyncWrite for BufReader<R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_pin_mut().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_pin_mut().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.source.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_shutdown(cx)
    }
}

impl<R: fmt::Debug> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (buffered, size) = (self.window.buffered().len(), self.window.size());
        f.debug_struct("BufReader")
            .field("reader", &self.source)
            .field("buffer", &format_args!("{buffered}/{size}"))
            .finish()
    }
}
