//! The two ends of a pipe. Taking one over by its handle is in `net/raw.rs`.

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
    engine::driver::{Direction, overlapped::Pipe},
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready},
};

/// The end of a pipe that waits for a client; made by
/// [`ServerOptions`](super::ServerOptions).
///
/// # Examples
///
/// A server that always has an instance to be found:
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
    pipe: Pipe,
}

/// The end of a pipe that was opened by [`ClientOptions`](super::ClientOptions).
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
    pipe: Pipe,
}

impl NamedPipeServer {
    /// Waits until a client is there. Each instance has one client at a time.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call learns of a client that came
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

    /// Lets the client go, whose reads and writes fail from now on. What it has not read yet
    /// is lost. Another client may [`connect`](Self::connect).
    ///
    /// # Errors
    /// What the system says.
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

/// An example: `pipe` is what the method is of, and `peer` the other end.
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

/// What both ends have.
macro_rules! pipe_end {
    ($end:ident, $mine:literal, $peer:literal) => {
        impl $end {
            pub(in crate::net) fn new(pipe: Pipe) -> Self {
                Self { pipe }
            }

            /// What the system knows of the pipe.
            ///
            /// # Errors
            /// What the system says.
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

            /// Waits for one of the states of `interest`; others may be in the answer, too.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            ///
            /// # Errors
            /// When the runtime has ended.
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
            /// When the runtime has ended.
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

            /// Waits until what was written before is on its way.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            ///
            /// # Errors
            /// When the runtime has ended.
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

            /// [`readable`](Self::readable) for those who poll: one task at a time.
            ///
            /// # Errors
            /// When the runtime has ended.
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

            /// [`writable`](Self::writable) for those who poll: one task at a time.
            ///
            /// # Errors
            /// When the runtime has ended.
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

            /// Reads what is there, as far as it fits. Nothing is the end.
            ///
            /// # Errors
            /// `WouldBlock` if nothing is there; what the system says.
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

            /// [`try_read`](Self::try_read) into several pieces, one after the other.
            ///
            /// # Errors
            /// As there.
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

            /// [`try_read`](Self::try_read), at the end of what is in `buf`.
            ///
            /// # Errors
            /// As there.
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
                // Through memory of ours: a user's code must not run under the pipe's lock.
                let mut bytes = vec![0; buf.remaining_mut().min(COPIED)];
                let count = self.try_read(&mut bytes)?;
                buf.put_slice(&bytes[..count]);
                Ok(count)
            }

            /// Hands `buf` over to be written. In a pipe of messages it is one.
            ///
            /// # Errors
            /// `WouldBlock` if what was written before is not on its way yet; what the system
            /// said of that.
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

            /// [`try_write`](Self::try_write) of several pieces, which are one message.
            ///
            /// # Errors
            /// As there.
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

            /// Calls `f` if the pipe is in one of the states of `interest`, and forgets that
            /// if `f` would block.
            ///
            /// # Errors
            /// `WouldBlock` if it is in none; what `f` says.
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

            /// Calls `f` when the pipe is in one of the states of `interest`, and again as
            /// long as it would block.
            ///
            /// # Errors
            /// What `f` says; when the runtime has ended.
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

            /// What was handed over goes its way by itself.
            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// A pipe has no half that could be closed.
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

/// Bytes of a `try_read_buf` at most: as many as a read brings.
#[cfg(feature = "io-util")]
const COPIED: usize = 8 * 1024;

fn info(pipe: &Pipe) -> io::Result<PipeInfo> {
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

/// Copies as much as there is room for; answers how much.
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
