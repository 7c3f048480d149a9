//! Streams, between our traits and hyper's.
//!
//! hyper passes uninitialised buffers, which unsafe code must advance. They could be zeroed before
//! they are passed to our reader, but hyper creates a new buffer again and again, and would pay for
//! the zeroes each time. So they are passed uninitialised: the only place of this crate with unsafe
//! code.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use blitz_io::io as ours;
use hyper::rt as theirs;

wrapper! {
    /// Adapts a stream between our I/O traits and hyper's.
    ///
    /// A stream that implements our [`AsyncRead`](ours::AsyncRead) or
    /// [`AsyncWrite`](ours::AsyncWrite) implements hyper's [`Read`](theirs::Read) or
    /// [`Write`](theirs::Write) in this wrapper. The other direction is for streams that hyper
    /// returns, such as an upgraded connection.
    ///
    /// # Examples
    ///
    /// A server and a client, each at one end of a pipe:
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use blitz_io_compat::HyperIo;
    /// use bytes::Bytes;
    /// use http_body_util::{BodyExt, Empty, Full};
    /// use hyper::{Request, Response, body::Incoming, service::service_fn};
    ///
    /// async fn greet(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    ///     let text = format!("hello from {}", request.uri().path());
    ///     Ok(Response::new(Full::new(text.into())))
    /// }
    ///
    /// # blitz_io::run(async {
    /// let (near, far) = blitz_io::io::duplex(4096);
    /// blitz_io::spawn(async move {
    ///     let http = hyper::server::conn::http1::Builder::new();
    ///     http.serve_connection(HyperIo::new(far), service_fn(greet)).await
    /// });
    ///
    /// let (mut client, connection) =
    ///     hyper::client::conn::http1::handshake(HyperIo::new(near)).await?;
    /// blitz_io::spawn(connection);
    /// let request = Request::get("/here").header("host", "pipe").body(Empty::<Bytes>::new());
    /// let response = client.send_request(request.expect("it is well-formed")).await?;
    /// let body = response.into_body().collect().await?.to_bytes();
    /// assert_eq!(body, "hello from /here");
    /// # Ok::<(), hyper::Error>(())
    /// # }).unwrap();
    /// ```
    HyperIo {}
}

impl<T: ours::AsyncRead> theirs::Read for HyperIo<T> {
    #[allow(unsafe_code, reason = "see the file's story")]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: theirs::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let count = {
            // SAFETY: the caller must not make initialised bytes uninitialised, and the bytes go
            // only into a `ReadBuf`, which never does that.
            let bytes = unsafe { buf.as_mut() };
            let (start, len) = (bytes.as_ptr().cast::<u8>(), bytes.len());
            let mut buffer = ours::ReadBuf::uninit(bytes);
            ready!(self.project().inner.poll_read(cx, &mut buffer))?;
            // Safe code can replace a `ReadBuf` by any other one, whose filled length says nothing
            // about hyper's bytes. Two buffers that are not empty never begin at the same address.
            let same = buffer.filled().as_ptr() == start && buffer.capacity() == len;
            assert!(same, "a reader swapped its buffer: it must fill the one that it was given");
            buffer.filled().len()
        };
        // SAFETY: the reader filled `count` bytes at the start of this very buffer, as asserted
        // above, so they are initialised.
        unsafe { buf.advance(count) };
        Poll::Ready(Ok(()))
    }
}

impl<T: theirs::Read> ours::AsyncRead for HyperIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ours::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut buffer = theirs::ReadBuf::new(buf.initialize_unfilled());
        ready!(self.project().inner.poll_read(cx, buffer.unfilled()))?;
        let count = buffer.filled().len();
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Implements `Write`, whose methods have the same names on both sides.
macro_rules! bridge {
    ($from:path => $to:path) => {
        impl<T: $from> $to for HyperIo<T> {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.project().inner.poll_write(cx, buf)
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.project().inner.poll_flush(cx)
            }

            #[inline]
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.project().inner.poll_shutdown(cx)
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                self.get_ref().is_write_vectored()
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.project().inner.poll_write_vectored(cx, bufs)
            }
        }
    };
}

bridge!(ours::AsyncWrite => theirs::Write);
bridge!(theirs::Write => ours::AsyncWrite);
