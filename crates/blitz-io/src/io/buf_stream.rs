//! `BufStream`: a stream with buffered reads and writes.

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
    /// Buffers both the reads from and the writes to a stream.
    ///
    /// See [`BufReader`] and [`BufWriter`] for the effect on each direction. A `BufStream`
    /// that is dropped loses the bytes that it has read ahead, and those that were written
    /// and not flushed.
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
    /// Wraps a stream, with two buffers of the default size of 8 KiB.
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

    /// Wraps a stream, with buffers of the given sizes.
    ///
    /// # Panics
    ///
    /// Panics if `reader_capacity` is zero.
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

    /// Returns a reference to the underlying stream.
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

    /// Returns a mutable reference to the underlying stream; its reads and writes bypass
    /// both buffers.
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

    /// Returns a pinned mutable reference to the underlying stream; its reads and writes
    /// bypass both buffers.
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

    /// Consumes this `BufStream` and returns the underlying stream.
    ///
    /// The bytes in both buffers are lost.
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
    /// Swaps the two layers. Both keep their buffered bytes, and a seek that was requested
    /// and is not complete stays in progress.
    fn from(outer: BufWriter<BufReader<RW>>) -> Self {
        let BufWriter { target: reader, bytes, written, seek: writing } = outer;
        let BufReader { source, window, seek: reading } = reader;
        // The writer was the outer layer, so its seek came first and takes precedence.
        let seek = match writing {
            buf_writer::Seek::Idle => reading,
            buf_writer::Seek::Requested(position) => buf_reader::Seek::Requested(position),
            // The writer had already passed the seek on to the reader.
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

/// A seek writes the bytes buffered for writing first, and discards the bytes read ahead.
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
