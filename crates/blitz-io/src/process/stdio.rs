//! The parent's ends of the pipes to a child.
//!
//! On Unix they are pipes that the driver watches. On Windows the standard library's pipes cannot
//! be watched, so each call is a job on the blocking pool.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    process::Stdio,
    task::{Context, Poll},
};

#[cfg(unix)]
use self::unix_ext::{Reader, Writer};
#[cfg(windows)]
use self::windows_ext::{Reader, Writer};
use crate::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Writing end of a child's standard input.
///
/// The child sees the end of its input when this is dropped.
///
/// # Examples
///
/// ```
/// use std::process::Stdio;
/// use blitz_io::{io::AsyncWriteExt, process::Command};
///
/// # blitz_io::run(async {
/// let mut child = Command::new("wc").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
/// child.stdin.take().unwrap().write_all(b"hello").await?;
/// assert_eq!(child.wait_with_output().await?.stdout.trim_ascii(), b"5");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStdin {
    io: Writer,
}

/// Reading end of a child's standard output.
///
/// # Examples
///
/// ```
/// use std::process::Stdio;
/// use blitz_io::{io::AsyncReadExt, process::Command};
///
/// # blitz_io::run(async {
/// let mut child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
/// let mut text = String::new();
/// child.stdout.take().unwrap().read_to_string(&mut text).await?;
/// assert_eq!(text, "hello\n");
/// # child.wait().await?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStdout {
    io: Reader,
}

/// Reading end of a child's standard error.
///
/// # Examples
///
/// ```
/// use std::process::Stdio;
/// use blitz_io::{io::AsyncReadExt, process::Command};
///
/// # blitz_io::run(async {
/// let mut command = Command::new("sh");
/// let mut child = command.args(["-c", "echo oh >&2"]).stderr(Stdio::piped()).spawn()?;
/// let mut text = String::new();
/// child.stderr.take().unwrap().read_to_string(&mut text).await?;
/// assert_eq!(text, "oh\n");
/// # child.wait().await?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStderr {
    io: Reader,
}

macro_rules! streams {
    ($($stream:ident, $io:ident, $field:literal;)*) => {$(
        impl $stream {
            /// Converts a stream of a child that was started by the standard library.
            ///
            /// # Panics
            ///
            /// If there is no runtime on this thread, or the runtime's I/O is not enabled.
            ///
            /// # Errors
            ///
            /// Returns an error if the driver cannot watch the pipe.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::process::{Command, Stdio};
            ///
            /// # blitz_io::run(async {
            #[doc = concat!("let mut child = Command::new(\"true\").", $field, "(Stdio::piped()).spawn()?;")]
            #[doc = concat!("let stream = blitz_io::process::", stringify!($stream), "::from_std(child.", $field, ".take().unwrap())?;")]
            /// # drop(stream);
            /// # child.wait()?;
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            #[track_caller]
            pub fn from_std(inner: std::process::$stream) -> io::Result<Self> {
                Ok(Self { io: $io::new(inner)? })
            }
        }

        #[cfg(unix)]
        impl $stream {
            /// Deregisters the stream from its runtime and returns its descriptor, in blocking
            /// mode, for another child or for code that uses no runtime.
            ///
            /// # Errors
            ///
            /// Returns an error if the driver fails to deregister the pipe, or the mode cannot be
            /// set.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::process::Stdio;
            ///
            /// # blitz_io::run(async {
            #[doc = concat!("let mut child = blitz_io::process::Command::new(\"true\").", $field, "(Stdio::piped()).spawn()?;")]
            #[doc = concat!("let fd = child.", $field, ".take().unwrap().into_owned_fd()?;")]
            /// # drop(fd);
            /// # child.wait().await?;
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            pub fn into_owned_fd(self) -> io::Result<std::os::fd::OwnedFd> {
                self.io.into_owned_fd()
            }
        }

        /// Converts the stream for use by another child, in blocking mode.
        #[cfg(unix)]
        impl TryInto<Stdio> for $stream {
            type Error = io::Error;

            fn try_into(self) -> Result<Stdio, Self::Error> {
                Ok(self.into_owned_fd()?.into())
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $stream {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.io.as_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $stream {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&self.io.as_fd())
            }
        }

        #[cfg(windows)]
        impl $stream {
            /// Returns an owned duplicate of the stream's handle.
            ///
            /// # Errors
            ///
            /// Returns an error if the handle cannot be duplicated.
            ///
            /// # Examples
            ///
            /// ```no_run
            /// use std::process::Stdio;
            ///
            /// # blitz_io::run(async {
            #[doc = concat!("let mut child = blitz_io::process::Command::new(\"cmd\").", $field, "(Stdio::piped()).spawn()?;")]
            #[doc = concat!("let handle = child.", $field, ".take().unwrap().into_owned_handle()?;")]
            /// # drop(handle);
            /// # Ok::<(), std::io::Error>(())
            /// # }).unwrap();
            /// ```
            pub fn into_owned_handle(self) -> io::Result<std::os::windows::io::OwnedHandle> {
                self.io.into_owned_handle()
            }
        }

        /// Converts the stream for use by another child.
        #[cfg(windows)]
        impl TryInto<Stdio> for $stream {
            type Error = io::Error;

            fn try_into(self) -> Result<Stdio, Self::Error> {
                Ok(self.into_owned_handle()?.into())
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsHandle for $stream {
            fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
                self.io.as_handle()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawHandle for $stream {
            fn as_raw_handle(&self) -> std::os::windows::io::RawHandle {
                std::os::windows::io::AsRawHandle::as_raw_handle(&self.io.as_handle())
            }
        }
    )*};
}

streams! {
    ChildStdin, Writer, "stdin";
    ChildStdout, Reader, "stdout";
    ChildStderr, Reader, "stderr";
}

macro_rules! reads {
    ($($stream:ident),*) => {$(
        impl AsyncRead for $stream {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.io.poll_read(cx, buf)
            }
        }
    )*};
}

reads!(ChildStdout, ChildStderr);

impl AsyncWrite for ChildStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_flush(cx)
    }

    /// Flushes only, because the single direction of a pipe is closed when this is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

#[cfg(unix)]
mod unix_ext {
    //! Pipes that the driver watches.

    use std::{
        fs::File,
        io::{self, IoSlice},
        os::fd::{AsFd, BorrowedFd, OwnedFd},
        task::{Context, Poll},
    };

    use socket2::SockRef;

    use crate::{
        io::{Interest, ReadBuf},
        net::evented::Evented,
    };

    macro_rules! ends {
        ($($end:ident, $interest:expr;)*) => {$(
            #[derive(Debug)]
            pub(super) struct $end(Evented<File>);

            impl $end {
                #[track_caller]
                pub(super) fn new(inner: impl Into<OwnedFd>) -> io::Result<Self> {
                    let fd = inner.into();
                    SockRef::from(&fd).set_nonblocking(true)?;
                    Ok(Self(Evented::with_interest(File::from(fd), $interest)?))
                }

                pub(super) fn into_owned_fd(self) -> io::Result<OwnedFd> {
                    let fd = OwnedFd::from(self.0.into_inner()?);
                    SockRef::from(&fd).set_nonblocking(false)?;
                    Ok(fd)
                }

                pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
                    (*self.0).as_fd()
                }
            }
        )*};
    }

    ends! {
        Reader, Interest::READABLE;
        Writer, Interest::WRITABLE;
    }

    impl Reader {
        pub(super) fn poll_read(
            &mut self,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.0.poll_read(cx, buf)
        }
    }

    impl Writer {
        pub(super) fn poll_write(
            &mut self,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.poll_write(cx, buf)
        }

        pub(super) fn poll_write_vectored(
            &mut self,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.0.poll_write_vectored(cx, bufs)
        }

        pub(super) fn is_write_vectored(&self) -> bool {
            true
        }

        /// Completes immediately: nothing is buffered here, because the kernel has all bytes
        /// already.
        pub(super) fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(windows)]
mod windows_ext {
    //! Pipes that block, used on the blocking pool.

    use std::{
        fs::File,
        io::{self, IoSlice, Read, Write},
        os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle},
        pin::Pin,
        sync::Arc,
        task::{Context, Poll},
    };

    use crate::io::{
        AsyncRead, AsyncWrite, ReadBuf,
        stdio::blocking::{BlockingReader, BlockingWriter},
    };

    /// One of two owners of the pipe: this one does the I/O, in a job, and the other keeps the
    /// handle.
    #[derive(Debug)]
    struct Shared(Arc<File>);

    impl Read for Shared {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            (&*self.0).read(buf)
        }
    }

    impl Write for Shared {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            (&*self.0).write(buf)
        }

        fn flush(&mut self) -> io::Result<()> {
            (&*self.0).flush()
        }
    }

    macro_rules! ends {
        ($($end:ident, $blocking:ident;)*) => {$(
            #[derive(Debug)]
            pub(super) struct $end {
                file: Arc<File>,
                io: $blocking<Shared>,
            }

            impl $end {
                pub(super) fn new(inner: impl Into<OwnedHandle>) -> io::Result<Self> {
                    let file = Arc::new(File::from(inner.into()));
                    Ok(Self { io: $blocking::new(Shared(file.clone())), file })
                }

                pub(super) fn into_owned_handle(self) -> io::Result<OwnedHandle> {
                    self.file.as_handle().try_clone_to_owned()
                }

                pub(super) fn as_handle(&self) -> BorrowedHandle<'_> {
                    self.file.as_handle()
                }
            }
        )*};
    }

    ends! {
        Reader, BlockingReader;
        Writer, BlockingWriter;
    }

    impl Reader {
        pub(super) fn poll_read(
            &mut self,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_read(cx, buf)
        }
    }

    impl Writer {
        pub(super) fn poll_write(
            &mut self,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.io).poll_write(cx, buf)
        }

        pub(super) fn poll_write_vectored(
            &mut self,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
        }

        pub(super) fn is_write_vectored(&self) -> bool {
            false
        }

        pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_flush(cx)
        }
    }
}
