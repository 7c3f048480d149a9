//! A stream whose reads and writes are both buffered.

use std::{
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{
    AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, BufReader, BufWriter, ReadBuf, buf_reader,
    buf_writer, window::DEFAULT_SIZE,
};

pin_project! {
    /// Wraps a stream that is read and written, and buffers both ways.
    ///
    /// See [`BufReader`] and [`BufWriter`] for what that means. Dropped, it forgets what
    /// it has read and not handed out, and what was written and not flushed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
    ///
    /// # blitz_io::run(async {
    /// let (client, mut server) = blitz_io::io::duplex(64);
    /// let mut client = BufStream::new(client);
    /// client.write_all(b"ping\n").await?;
    /// client.flush().await?;
    /// server.write_all(b"pong\n").await?;
    /// let mut line = String::new();
    /// client.read_line(&mut line).await?;
    /// assert_eq!(line, "pong\n");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[derive(Debug)]
    pub struct BufStream<RW> {
        #[pin]
        inner: BufReader<BufWriter<RW>>,
    }
}

impl<RW: AsyncRead + AsyncWrite> BufStream<RW> {
    /// Wraps a stream, with the default buffers of 8 KiB.
    ///
    /// # Examples
    ///
    /// ```
    /// let (one, _other) = blitz_io::io::duplex(64);
    /// let stream = blitz_io::io::BufStream::new(one);
    /// # drop(stream);
    /// ```
    pub fn new(stream: RW) -> BufStream<RW> {
        Self::with_capacity(DEFAULT_SIZE, DEFAULT_SIZE, stream)
    }

    /// Wraps a stream, with buffers of so many bytes.
    ///
    /// # Panics
    ///
    /// If `reader_capacity` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let (one, _other) = blitz_io::io::duplex(64);
    /// let stream = blitz_io::io::BufStream::with_capacity(16, 32, one);
    /// # drop(stream);
    /// ```
    #[track_caller]
    pub fn with_capacity(
        reader_capacity: usize,
        writer_capacity: usize,
        stream: RW,
    ) -> BufStream<RW> {
        let writer = BufWriter::with_capacity(writer_capacity, stream);
        Self { inner: BufReader::with_capacity(reader_capacity, writer) }
    }

    /// Gets a reference to the underlying stream.
    ///
    /// # Examples
    ///
    /// ```
    /// let stream = blitz_io::io::BufStream::new(std::io::Cursor::new(vec![1]));
    /// assert_eq!(stream.get_ref().get_ref(), &[1]);
    /// ```
    pub fn get_ref(&self) -> &RW {
        self.inner.get_ref().get_ref()
    }

    /// Gets a mutable reference to the underlying stream, past both buffers.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut stream = blitz_io::io::BufStream::new(std::io::Cursor::new(vec![1]));
    /// stream.get_mut().set_position(1);
    /// assert_eq!(stream.into_inner().position(), 1);
    /// ```
    pub fn get_mut(&mut self) -> &mut RW {
        self.inner.get_mut().get_mut()
    }

    /// Gets a pinned mutable reference to the underlying stream, past both buffers.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    ///
    /// let stream = blitz_io::io::BufStream::new(std::io::Cursor::new(vec![1]));
    /// let mut stream = pin!(stream);
    /// assert_eq!(stream.as_mut().get_pin_mut().position(), 0);
    /// ```
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut RW> {
        self.project().inner.get_pin_mut().get_pin_mut()
    }

    /// Consumes this `BufStream`, returning the underlying stream.
    ///
    /// What either buffer holds is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// let stream = blitz_io::io::BufStream::new(std::io::Cursor::new(vec![1]));
    /// assert_eq!(stream.into_inner().into_inner(), [1]);
    /// ```
    pub fn into_inner(self) -> RW {
        self.inner.into_inner().into_inner()
    }
}

impl<RW> From<BufReader<BufWriter<RW>>> for BufStream<RW> {
    fn from(inner: BufReader<BufWriter<RW>>) -> Self {
        Self { inner }
    }
}

impl<RW> From<BufWriter<BufReader<RW>>> for BufStream<RW> {
    /// Turns the two inside out; both keep what they hold, and a seek that was asked
    /// for and is not complete.
    fn from(outer: BufWriter<BufReader<RW>>) -> Self {
        let BufWriter { target: reader, bytes, written, seek: writing } = outer;
        let BufReader { source, window, seek: reading } = reader;
        // The one that was outside is asked first.
        let seek = match writing {
            buf_writer::Seek::Idle => reading,
            buf_writer::Seek::Asked(position) => buf_reader::Seek::Asked(position),
            // It had handed the seek on.
            buf_writer::Seek::Moving => match reading {
                buf_reader::Seek::Idle => buf_reader::Seek::Moving,
                begun => begun,
            },
        };
        let target = BufWriter { target: source, bytes, written, seek: buf_writer::Seek::Idle };
        Self { inner: BufReader { source: target, window, seek } }
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncWrite for BufStream<RW> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncRead for BufStream<RW> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buf)
    }
}

/// What is buffered for writing is written first, what is buffered of reading is
/// forgotten.
impl<RW: AsyncRead + AsyncWrite + AsyncSeek> AsyncSeek for BufStream<RW> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.project().inner.start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.project().inner.poll_complete(cx)
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncBufRead for BufStream<RW> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().inner.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().inner.consume(amt);
    }
}
