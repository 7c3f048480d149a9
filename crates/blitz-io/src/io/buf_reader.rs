//! A reader that asks its source for much at a time and hands it out in pieces.

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
    /// Adds buffering to any reader.
    ///
    /// Reads of a few bytes at a time cost a call of the source each; a `BufReader`
    /// reads its source in large pieces and serves small reads from memory. A read at
    /// least as large as an empty buffer goes to the source directly. What lies in the
    /// buffer is lost when the `BufReader` is dropped or taken apart.
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

/// Where a seek is. The source stands behind what was handed out, by as much as the
/// window holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seek {
    /// None is asked for.
    Idle,
    /// Asked for, and not begun.
    Asked(SeekFrom),
    /// The source goes back over what the window holds; then comes the seek itself.
    GoingBack(i64),
    /// The source is on its way.
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

    /// Creates a new `BufReader` with a buffer of so many bytes.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
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

    /// Gets a reference to the underlying reader.
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

    /// Gets a mutable reference to the underlying reader.
    ///
    /// Whatever is read through it does not pass the buffer.
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

    /// Gets a pinned mutable reference to the underlying reader.
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

    /// Consumes this `BufReader`, returning the underlying reader.
    ///
    /// What is left in the buffer is lost.
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

    /// Returns what is buffered and not yet consumed, without reading.
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
        self.window.held()
    }
}

impl<R: AsyncRead> AsyncRead for BufReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.window.is_empty() && buf.remaining() >= self.window.size() {
            // Through the window it would be copied once more, and in more pieces.
            return self.project().source.poll_read(cx, buf);
        }
        let held = ready!(self.as_mut().poll_fill_buf(cx))?;
        let amount = held.len().min(buf.remaining());
        buf.put_slice(&held[..amount]);
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
        Poll::Ready(Ok(this.window.held()))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().window.take(amt);
    }
}

/// A seek forgets what is buffered, also one that stays inside of it. One relative to
/// the current position counts from what was handed out.
impl<R: AsyncRead + AsyncSeek> AsyncSeek for BufReader<R> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        // It begins when it is polled: going back may have to come first.
        *self.project().seek = Seek::Asked(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        loop {
            // An error leaves no seek behind.
            let now = mem::replace(this.seek, Seek::Idle);
            let source = this.source.as_mut();
            *this.seek = match now {
                Seek::Idle => return source.poll_complete(cx),
                Seek::Asked(SeekFrom::Current(by)) => {
                    let held = this.window.held().len() as i64;
                    if let Some(by) = by.checked_sub(held) {
                        source.start_seek(SeekFrom::Current(by))?;
                        Seek::Moving
                    } else {
                        source.start_seek(SeekFrom::Current(-held))?;
                        Seek::GoingBack(by)
                    }
                }
                Seek::Asked(position) => {
                    source.start_seek(position)?;
                    Seek::Moving
                }
                Seek::GoingBack(_) | Seek::Moving => {
                    let Poll::Ready(position) = source.poll_complete(cx)? else {
                        *this.seek = now;
                        return Poll::Pending;
                    };
                    this.window.clear();
                    let Seek::GoingBack(by) = now else { return Poll::Ready(Ok(position)) };
                    Seek::Asked(SeekFrom::Current(by))
                }
            };
        }
    }
}

/// Writes pass the buffer by.
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
        let (held, size) = (self.window.held().len(), self.window.size());
        f.debug_struct("BufReader")
            .field("reader", &self.source)
            .field("buffer", &format_args!("{held}/{size}"))
            .finish()
    }
}
