//! `BufWriter`: collects small writes and passes them to its target in large pieces.

use std::{
    fmt,
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf, window::DEFAULT_SIZE};

pin_project! {
    /// Buffers the writes to any writer.
    ///
    /// Without a buffer, every write of a few bytes costs a call of the target. A
    /// `BufWriter` collects small writes. A write at least as large as the buffer goes to
    /// the target directly, after the bytes collected before it.
    ///
    /// A `BufWriter` that is dropped loses the bytes that it holds: call
    /// [`flush`](crate::io::AsyncWriteExt::flush) or
    /// [`shutdown`](crate::io::AsyncWriteExt::shutdown) first.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncWriteExt, BufWriter};
    ///
    /// # blitz_io::run(async {
    /// let mut writer = BufWriter::new(Vec::new());
    /// writer.write_all(b"gathered").await?;
    /// assert!(writer.get_ref().is_empty());
    /// writer.flush().await?;
    /// assert_eq!(writer.get_ref(), b"gathered");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub struct BufWriter<W> {
        #[pin]
        pub(super) target: W,
        // Never grows past its initial capacity.
        pub(super) bytes: Vec<u8>,
        // The number of these bytes that the target already has. A flush that has to wait,
        // or that was cancelled, continues from there.
        pub(super) written: usize,
        pub(super) seek: Seek,
    }
}

/// The state of a seek.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seek {
    /// No seek was requested.
    Idle,
    /// A seek was requested; the collected bytes are written first.
    Requested(SeekFrom),
    /// The target is seeking to the requested position.
    Moving,
}

impl<W: AsyncWrite> BufWriter<W> {
    /// Creates a new `BufWriter` with the default buffer of 8 KiB.
    ///
    /// # Examples
    ///
    /// ```
    /// let writer = blitz_io::io::BufWriter::new(Vec::new());
    /// assert!(writer.buffer().is_empty());
    /// ```
    pub fn new(inner: W) -> Self {
        Self::with_capacity(DEFAULT_SIZE, inner)
    }

    /// Creates a new `BufWriter` with a buffer of `cap` bytes.
    ///
    /// With a capacity of zero, every write goes to the target directly.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncWriteExt, BufWriter};
    ///
    /// # blitz_io::run(async {
    /// let mut writer = BufWriter::with_capacity(4, Vec::new());
    /// writer.write_all(b"abc").await?;
    /// writer.write_all(b"de").await?;
    /// assert_eq!((writer.get_ref().as_slice(), writer.buffer()), (&b"abc"[..], &b"de"[..]));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn with_capacity(cap: usize, inner: W) -> Self {
        Self { target: inner, bytes: Vec::with_capacity(cap), written: 0, seek: Seek::Idle }
    }

    /// Returns a reference to the underlying writer.
    ///
    /// # Examples
    ///
    /// ```
    /// let writer = blitz_io::io::BufWriter::new(vec![1, 2]);
    /// assert_eq!(writer.get_ref(), &[1, 2]);
    /// ```
    pub fn get_ref(&self) -> &W {
        &self.target
    }

    /// Returns a mutable reference to the underlying writer.
    ///
    /// Bytes written through it overtake the buffered ones.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut writer = blitz_io::io::BufWriter::new(Vec::new());
    /// writer.get_mut().push(1);
    /// assert_eq!(writer.into_inner(), [1]);
    /// ```
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.target
    }

    /// Returns a pinned mutable reference to the underlying writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    ///
    /// let mut writer = pin!(blitz_io::io::BufWriter::new(vec![1]));
    /// assert_eq!(*writer.as_mut().get_pin_mut(), [1]);
    /// ```
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().target
    }

    /// Consumes this `BufWriter` and returns the underlying writer.
    ///
    /// Bytes left in the buffer are lost, so flush first.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncWriteExt, BufWriter};
    ///
    /// # blitz_io::run(async {
    /// let mut writer = BufWriter::new(Vec::new());
    /// writer.write_all(b"kept").await?;
    /// writer.flush().await?;
    /// assert_eq!(writer.into_inner(), b"kept");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn into_inner(self) -> W {
        self.target
    }

    /// Returns the buffered bytes that the underlying writer does not have yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncWriteExt, BufWriter};
    ///
    /// # blitz_io::run(async {
    /// let mut writer = BufWriter::new(Vec::new());
    /// writer.write_all(b"abc").await?;
    /// assert_eq!(writer.buffer(), b"abc");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn buffer(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Writes all collected bytes to the target.
    fn poll_empty(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        while *this.written < this.bytes.len() {
            let rest = &this.bytes[*this.written..];
            let error = match ready!(this.target.as_mut().poll_write(cx, rest)) {
                Ok(0) => io::Error::new(
                    io::ErrorKind::WriteZero,
                    "failed to write the buffered data: the writer took none of it",
                ),
                Ok(amount) => {
                    *this.written += amount;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            // The remaining bytes stay buffered, and the capacity of the written ones is
            // free again.
            this.bytes.drain(..*this.written);
            *this.written = 0;
            return Poll::Ready(Err(error));
        }
        this.bytes.clear();
        *this.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite> AsyncWrite for BufWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.len() > self.room() {
            ready!(self.as_mut().poll_empty(cx))?;
        }
        let this = self.project();
        if buf.len() >= this.bytes.capacity() {
            return this.target.poll_write(cx, buf);
        }
        this.bytes.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.target.is_write_vectored() {
            return self.poll_gather(cx, bufs);
        }
        let total = bufs.iter().fold(0_usize, |total, buf| total.saturating_add(buf.len()));
        if total > self.room() {
            ready!(self.as_mut().poll_empty(cx))?;
        }
        let this = self.project();
        if total >= this.bytes.capacity() {
            return this.target.poll_write_vectored(cx, bufs);
        }
        bufs.iter().for_each(|buf| this.bytes.extend_from_slice(buf));
        Poll::Ready(Ok(total))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_empty(cx))?;
        self.get_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_empty(cx))?;
        self.get_pin_mut().poll_shutdown(cx)
    }
}

impl<W: AsyncWrite> BufWriter<W> {
    /// Writes from several slices to a target without vectored writes: takes the first
    /// slice that is not empty, and as many of the following ones as there is room for.
    fn poll_gather(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut bufs = bufs.iter().skip_while(|buf| buf.is_empty());
        let Some(first) = bufs.next() else { return Poll::Ready(Ok(0)) };
        let mut total = ready!(self.as_mut().poll_write(cx, first))?;
        let this = self.project();
        if first.len() >= this.bytes.capacity() {
            // The first slice went to the target, which may have taken only a part of it.
            return Poll::Ready(Ok(total));
        }
        for buf in bufs {
            if buf.len() > this.bytes.capacity() - this.bytes.len() {
                break;
            }
            this.bytes.extend_from_slice(buf);
            total += buf.len();
        }
        Poll::Ready(Ok(total))
    }
}

/// The buffered bytes are written before the target seeks.
impl<W: AsyncWrite + AsyncSeek> AsyncSeek for BufWriter<W> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        // The seek begins in `poll_complete`, because writing the collected bytes may have
        // to wait.
        *self.project().seek = Seek::Requested(position);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if !matches!(self.seek, Seek::Idle) {
            // This includes bytes collected after a seek that was begun and cancelled,
            // because Tokio writes them before it completes that seek.
            ready!(self.as_mut().poll_empty(cx))?;
        }
        if let Seek::Requested(position) = self.seek {
            let mut this = self.as_mut().project();
            // An earlier seek of the target itself has to complete first.
            ready!(this.target.as_mut().poll_complete(cx))?;
            *this.seek = Seek::Idle;
            this.target.start_seek(position)?;
            *this.seek = Seek::Moving;
        }
        let this = self.project();
        let position = ready!(this.target.poll_complete(cx));
        *this.seek = Seek::Idle;
        Poll::Ready(position)
    }
}

/// Reads bypass the buffer.
impl<W: AsyncWrite + AsyncRead> AsyncRead for BufWriter<W> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_read(cx, buf)
    }
}

/// Reads bypass the buffer.
impl<W: AsyncWrite + AsyncBufRead> AsyncBufRead for BufWriter<W> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_pin_mut().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.get_pin_mut().consume(amt);
    }
}

impl<W: fmt::Debug> fmt::Debug for BufWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        f.debug_struct("BufWriter")
            .field("writer", &self.target)
            .field("buffer", &format_args!("{len}/{capacity}"))
            .field("written", &self.written)
            .finish()
    }
}
