//! Server and client ends of a named pipe. Their creation from a raw handle is in `net/raw.rs`.

#![forbid(unsafe_code)]

use std::{
    io::{self, IoSlice, IoSliceMut},
    os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, RawHandle},
    pin::Pin,
    task::{Context, Poll},
};

use windows_sys::Win32::System::Pipes::{PIPE_SERVER_END, PIPE_TYPE_MESSAGE};

use super::{PipeEnd, PipeInfo, PipeMode};
use crate::{
    engine::driver::{Direction, overlapped::OverlappedPipe},
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready},
};

/// Server end of a named pipe, which waits for a client; created by
/// [`ServerOptions`](super::ServerOptions).
///
/// # Examples
///
/// A server that always has an instance for the next client:
///
/// ```no_run
/// use blitz_io::net::windows::named_pipe::ServerOptions;
///
/// # async fn example() -> std::io::Result<()> {
/// let name = r"\\.\pipe\my-service";
/// let mut server = ServerOptions::new().first_pipe_instance(true).create(name)?;
/// loop {
///     server.connect().await?;
///     let client = server;
///     server = ServerOptions::new().create(name)?;
///     blitz_io::spawn(async move { /* serve the client */ drop(client) });
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct NamedPipeServer {
    pipe: OverlappedPipe,
}

/// Client end of a named pipe; created by [`ClientOptions`](super::ClientOptions).
///
/// # Examples
///
/// ```
/// use blitz_io::{
///     io::{AsyncReadExt, AsyncWriteExt},
///     net::windows::named_pipe::{ClientOptions, ServerOptions},
/// };
///
/// # blitz_io::run(async {
/// let name = format!(r"\\.\pipe\blitz-io-client-{}", std::process::id());
/// let mut server = ServerOptions::new().create(&name)?;
/// let mut client = ClientOptions::new().open(&name)?;
/// server.connect().await?;
/// server.write_all(b"hello").await?;
/// drop(server);
///
/// let mut all = Vec::new();
/// client.read_to_end(&mut all).await?;
/// assert_eq!(all, b"hello");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct NamedPipeClient {
    pipe: OverlappedPipe,
}

impl NamedPipeServer {
    /// Waits until a client has connected. Each instance has one client at a time.
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call reports a client that connected
    /// meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::windows::named_pipe::{ClientOptions, ServerOptions};
    ///
    /// # blitz_io::run(async {
    /// let name = format!(r"\\.\pipe\blitz-io-connect-{}", std::process::id());
    /// let server = ServerOptions::new().create(&name)?;
    /// let task = blitz_io::spawn(async move { server.connect().await });
    /// let _client = ClientOptions::new().open(&name)?;
    /// task.await??;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect(&self) -> io::Result<()> {
        self.pipe.registration.async_op(Interest::WRITABLE, || self.pipe.connect()).await
    }

    /// Disconnects the client: its reads and writes fail from now on, and bytes that it has not
    /// read yet are lost. Another client may [`connect`](Self::connect).
    ///
    /// # Errors
    /// Returns the system's error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::windows::named_pipe::{ClientOptions, ServerOptions};
    ///
    /// # blitz_io::run(async {
    /// let name = format!(r"\\.\pipe\blitz-io-disconnect-{}", std::process::id());
    /// let server = ServerOptions::new().create(&name)?;
    /// let first = ClientOptions::new().open(&name)?;
    /// server.connect().await?;
    /// server.disconnect()?;
    /// drop(first);
    /// let task = blitz_io::spawn(async move { server.connect().await });
    /// # blitz_io::task::yield_now().await;
    /// # drop(task);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn disconnect(&self) -> io::Result<()> {
        self.pipe.disconnect()
    }
}

/// Example in which `pipe` is the end that has the method, and `peer` the other end.
macro_rules! example {
    ($mine:literal, $peer:literal, $name:literal, $body:literal) => {
        concat!(
            "```\n",
            "# use blitz_io::{io::Interest, net::windows::named_pipe::{ClientOptions, ServerOptions}};\n",
            "# let _ = Interest::READABLE;\n",
            "# blitz_io::run(async {\n",
            "# let name = format!(r\"\\\\.\\pipe\\blitz-io-",
            $mine,
            "-",
            $name,
            "-{}\", std::process::id());\n",
            "# let server = ServerOptions::new().create(&name)?;\n",
            "# let client = ClientOptions::new().open(&name)?;\n",
            "# server.connect().await?;\n",
            "# let (pipe, peer) = (",
            $mine,
            ", ",
            $peer,
            ");\n",
            $body,
            "\n# drop(peer);\n",
            "# Ok::<(), std::io::Error>(())\n",
            "# }).unwrap();\n",
            "```"
        )
    };
}

/// Defines the methods and traits that both ends have.
macro_rules! pipe_end {
    ($end:ident, $mine:literal, $peer:literal) => {
        impl $end {
            pub(in crate::net) fn new(pipe: OverlappedPipe) -> Self {
                Self { pipe }
            }

            /// Returns the properties of the pipe that the system reports.
            ///
            /// # Errors
            /// Returns the system's error.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "info",
                "assert_eq!(pipe.info()?.max_instances, 255);"
            )]
            pub fn info(&self) -> io::Result<PipeInfo> {
                info(&self.pipe)
            }

            /// Waits for one of the states of `interest`; the result may include other states,
            /// too.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            ///
            /// # Errors
            /// Fails if the runtime has shut down.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "ready",
                "peer.try_write(b\"x\")?;\n\
                 let ready = pipe.ready(Interest::READABLE).await?;\n\
                 assert!(ready.is_readable());"
            )]
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                Ok(self.pipe.registration.readiness(interest).await?.ready())
            }

            /// Waits until there is something to read, or the other end is closed.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            ///
            /// # Errors
            /// Fails if the runtime has shut down.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "readable",
                "peer.try_write(b\"x\")?;\n\
                 pipe.readable().await?;\n\
                 assert_eq!(pipe.try_read(&mut [0; 8])?, 1);"
            )]
            pub async fn readable(&self) -> io::Result<()> {
                self.ready(Interest::READABLE).await.map(drop)
            }

            /// Waits until the previous write has completed, so that the next one can be started.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            ///
            /// # Errors
            /// Fails if the runtime has shut down.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "writable",
                "pipe.writable().await?;\n\
                 assert_eq!(pipe.try_write(b\"abc\")?, 3);"
            )]
            pub async fn writable(&self) -> io::Result<()> {
                self.ready(Interest::WRITABLE).await.map(drop)
            }

            /// Polls for being [`readable`](Self::readable). Only one task at a time can wait in
            /// this way.
            ///
            /// # Errors
            /// Fails if the runtime has shut down.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "poll_read_ready",
                "peer.try_write(b\"x\")?;\n\
                 std::future::poll_fn(|cx| pipe.poll_read_ready(cx)).await?;\n\
                 assert_eq!(pipe.try_read(&mut [0; 8])?, 1);"
            )]
            pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.pipe.registration.poll_ready(cx, Direction::Read).map_ok(drop)
            }

            /// Polls for being [`writable`](Self::writable). Only one task at a time can wait in
            /// this way.
            ///
            /// # Errors
            /// Fails if the runtime has shut down.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "poll_write_ready",
                "std::future::poll_fn(|cx| pipe.poll_write_ready(cx)).await?;\n\
                 assert_eq!(pipe.try_write(b\"abc\")?, 3);"
            )]
            pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.pipe.registration.poll_ready(cx, Direction::Write).map_ok(drop)
            }

            /// Tries to read into the buffer without waiting, and returns the number of bytes
            /// read. Zero means the end of the stream.
            ///
            /// # Errors
            /// `WouldBlock` if there is nothing to read yet; otherwise the system's error.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "try_read",
                "let mut buf = [0; 8];\n\
                 let error = pipe.try_read(&mut buf).unwrap_err();\n\
                 assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);\n\
                 peer.try_write(b\"abc\")?;\n\
                 pipe.readable().await?;\n\
                 assert_eq!(pipe.try_read(&mut buf)?, 3);"
            )]
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.try_read_vectored(&mut [IoSliceMut::new(buf)])
            }

            /// Tries to read into several buffers, in order, as [`try_read`](Self::try_read)
            /// does.
            ///
            /// # Errors
            /// Fails as [`try_read`](Self::try_read) does.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "try_read_vectored",
                "let (mut head, mut body) = ([0; 1], [0; 8]);\n\
                 peer.try_write(b\"abc\")?;\n\
                 pipe.readable().await?;\n\
                 let mut bufs = [&mut head[..], &mut body[..]].map(std::io::IoSliceMut::new);\n\
                 assert_eq!(pipe.try_read_vectored(&mut bufs)?, 3);\n\
                 assert_eq!((&head, &body[..2]), (b\"a\", &b\"bc\"[..]));"
            )]
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                let read = || self.pipe.read(|bytes| scatter(bytes, bufs));
                self.pipe.registration.try_op(Interest::READABLE, read)
            }

            /// Tries to read and append to `buf`, as [`try_read`](Self::try_read) does.
            ///
            /// # Errors
            /// Fails as [`try_read`](Self::try_read) does.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "try_read_buf",
                "let mut buf = Vec::new();\n\
                 peer.try_write(b\"abc\")?;\n\
                 pipe.readable().await?;\n\
                 pipe.try_read_buf(&mut buf)?;\n\
                 assert_eq!(buf, b\"abc\");"
            )]
            #[cfg(feature = "io-util")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                // The bytes are copied through a buffer of ours, because user code must not run
                // under the pipe's lock.
                let mut bytes = vec![0; buf.remaining_mut().min(COPIED)];
                let count = self.try_read(&mut bytes)?;
                buf.put_slice(&bytes[..count]);
                Ok(count)
            }

            /// Starts to write `buf`, and returns the number of bytes accepted. In a pipe of
            /// messages, `buf` is one message.
            ///
            /// # Errors
            /// `WouldBlock` if the previous write has not completed yet; otherwise the system's
            /// error, which may be that of the previous write.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "try_write",
                "assert_eq!(pipe.try_write(b\"abc\")?, 3);\n\
                 let mut buf = [0; 8];\n\
                 peer.readable().await?;\n\
                 assert_eq!(peer.try_read(&mut buf)?, 3);"
            )]
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.pipe.registration.try_op(Interest::WRITABLE, || self.pipe.write(buf))
            }

            /// Starts to write several buffers as one message, as [`try_write`](Self::try_write)
            /// does.
            ///
            /// # Errors
            /// Fails as [`try_write`](Self::try_write) does.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "try_write_vectored",
                "let bufs = [&b\"a\"[..], b\"bc\"].map(std::io::IoSlice::new);\n\
                 assert_eq!(pipe.try_write_vectored(&bufs)?, 3);"
            )]
            pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
                self.pipe.registration.try_op(Interest::WRITABLE, || self.pipe.write_pieces(buf))
            }

            /// Calls `f` if the pipe is in one of the states of `interest`, and clears that
            /// readiness if `f` returns `WouldBlock`.
            ///
            /// # Errors
            /// `WouldBlock` if the pipe is in none of the states; otherwise the error of `f`.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "try_io",
                "let ready = pipe.try_io(Interest::WRITABLE, || Ok(true))?;\n\
                 assert!(ready);"
            )]
            pub fn try_io<R>(
                &self,
                interest: Interest,
                f: impl FnOnce() -> io::Result<R>,
            ) -> io::Result<R> {
                self.pipe.registration.try_io(interest, f)
            }

            /// Waits until the pipe is in one of the states of `interest` and calls `f`, again
            /// and again while `f` returns `WouldBlock`.
            ///
            /// # Errors
            /// Returns the error of `f`; also fails if the runtime has shut down.
            ///
            /// # Examples
            ///
            #[doc = example!(
                $mine,
                $peer,
                "async_io",
                "let ready = pipe.async_io(Interest::WRITABLE, || Ok(true)).await?;\n\
                 assert!(ready);"
            )]
            pub async fn async_io<R>(
                &self,
                interest: Interest,
                f: impl FnMut() -> io::Result<R>,
            ) -> io::Result<R> {
                self.pipe.registration.async_io(interest, f).await
            }
        }

        impl AsyncRead for $end {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                if buf.remaining() == 0 {
                    return Poll::Ready(Ok(()));
                }
                let pipe = &self.pipe;
                let read = || {
                    pipe.read(|bytes| {
                        let count = bytes.len().min(buf.remaining());
                        buf.put_slice(&bytes[..count]);
                        count
                    })
                };
                pipe.registration.poll_io(cx, Direction::Read, read).map_ok(|_| ())
            }
        }

        impl AsyncWrite for $end {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                let pipe = &self.pipe;
                pipe.registration.poll_io(cx, Direction::Write, || pipe.write(buf))
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let pipe = &self.pipe;
                pipe.registration.poll_io(cx, Direction::Write, || pipe.write_pieces(bufs))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Completes immediately, because a write that was started completes by itself.
            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Completes immediately, because a pipe has no half that could be closed.
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush(cx)
            }
        }

        impl AsHandle for $end {
            fn as_handle(&self) -> BorrowedHandle<'_> {
                self.pipe.handle()
            }
        }

        impl AsRawHandle for $end {
            fn as_raw_handle(&self) -> RawHandle {
                self.pipe.handle().as_raw_handle()
            }
        }
    };
}

pipe_end!(NamedPipeServer, "server", "client");
pipe_end!(NamedPipeClient, "client", "server");

/// Limit of the bytes of a `try_read_buf`: as many as one read returns.
#[cfg(feature = "io-util")]
const COPIED: usize = 8 * 1024;

fn info(pipe: &OverlappedPipe) -> io::Result<PipeInfo> {
    let info = pipe.info()?;
    let is_server = info.flags & PIPE_SERVER_END != 0;
    let has_messages = info.flags & PIPE_TYPE_MESSAGE != 0;
    Ok(PipeInfo {
        mode: if has_messages { PipeMode::Message } else { PipeMode::Byte },
        end: if is_server { PipeEnd::Server } else { PipeEnd::Client },
        max_instances: info.max_instances,
        out_buffer_size: info.out_buffer_size,
        in_buffer_size: info.in_buffer_size,
    })
}

/// Copies as many bytes as the pieces have room for, and returns their number.
fn scatter(mut bytes: &[u8], pieces: &mut [IoSliceMut<'_>]) -> usize {
    let before = bytes.len();
    for piece in pieces {
        let count = bytes.len().min(piece.len());
        let (now, later) = bytes.split_at(count);
        piece[..count].copy_from_slice(now);
        bytes = later;
    }
    before - bytes.len()
}
