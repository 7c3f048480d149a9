//! Macros that define the methods which several kinds of sockets share.
//!
//! The API has the same methods on each socket type. Each macro here puts one family of them into
//! an `impl` block; the work is done by [`Evented`](super::evented::Evented), which a type
//! returns from its private method `evented()`.
//!
//! The examples in the documentation differ only in how the two ends are created. A macro takes
//! that part as an argument: lines that begin with `use` and define `reader` (or `writer`, or
//! `socket`) and `peer`, inside of `blitz_io::run(async {`.

#![forbid(unsafe_code)]

/// Ends each example, closing what its first part opened.
macro_rules! example_end {
    () => {
        "# Ok::<(), std::io::Error>(())\n# }).unwrap();\n```"
    };
}

/// Defines `ready`. The example begins with `$begin` and waits with `$waits`.
macro_rules! ready_method {
    ($begin:expr, $waits:literal) => {
        /// Waits until at least one of the states that `interest` names is reached.
        ///
        /// A call of this is usually followed by a `try_` method, in a loop: the reported readiness
        /// may be stale, because another task was quicker or because the state of the socket has
        /// changed, and then the `try_` method fails with `WouldBlock`. If the other end has
        /// closed, the result includes the closed states even if they were not part of `interest`.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if the future is dropped: the next wait sees the same readiness.
        ///
        /// # Errors
        ///
        /// Fails if the runtime that the socket belongs to has shut down.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::io::Interest;\n", $begin, "\n", $waits, "\n", example_end!())]
        pub async fn ready(&self, interest: $crate::io::Interest) -> std::io::Result<$crate::io::Ready> {
            self.evented().ready(interest).await
        }
    };
}

/// Defines `readable`, for types that have `ready`.
macro_rules! readable_method {
    ($begin:expr, $waits:literal) => {
        /// Waits until there may be something to read.
        ///
        /// Equivalent to `ready(Interest::READABLE)`.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if the future is dropped: the next wait sees the same readiness.
        ///
        /// # Errors
        ///
        /// Fails if the runtime that the socket belongs to has shut down.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin, "\n", $waits, "\n", example_end!())]
        pub async fn readable(&self) -> std::io::Result<()> {
            self.evented().ready($crate::io::Interest::READABLE).await.map(drop)
        }
    };
}

/// Defines `writable`, for types that have `ready`.
macro_rules! writable_method {
    ($begin:expr, $waits:literal) => {
        /// Waits until there may be room to write.
        ///
        /// Equivalent to `ready(Interest::WRITABLE)`.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if the future is dropped: the next wait sees the same readiness.
        ///
        /// # Errors
        ///
        /// Fails if the runtime that the socket belongs to has shut down.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin, "\n", $waits, "\n", example_end!())]
        pub async fn writable(&self) -> std::io::Result<()> {
            self.evented().ready($crate::io::Interest::WRITABLE).await.map(drop)
        }
    };
}

/// Defines `poll_read_ready`, `poll_write_ready` or a method of the same kind, named `$name`.
macro_rules! poll_ready_method {
    ($name:ident, $direction:ident, $what:literal, $begin:expr, $this:literal) => {
        #[doc = concat!("Polls for being ready to ", $what, ".")]
        ///
        /// If the socket is not ready, the waker of `cx` is stored and woken when the socket may
        /// be ready. One waker is stored for each direction, that of the most recent call; any
        /// number of tasks can wait with the corresponding asynchronous method.
        ///
        /// # Errors
        ///
        /// Fails if the runtime that the socket belongs to has shut down.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::future::poll_fn;\n", $begin)]
        #[doc = concat!("poll_fn(|cx| ", $this, ".", stringify!($name), "(cx)).await?;")]
        #[doc = example_end!()]
        pub fn $name(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            self.evented().poll_ready(cx, $crate::engine::driver::Direction::$direction)
        }
    };
}

/// Defines the methods that read bytes: `readable`, `try_read`, `try_read_vectored`,
/// `try_read_buf`. The example's first part defines `reader` and a `peer` that writes.
macro_rules! reading_methods {
    ($begin:expr) => {
        readable_method!(
            $begin,
            "peer.writable().await?;\n\
             peer.try_write(b\"hello\")?;\n\
             \n\
             let mut buf = [0; 16];\n\
             let count = loop {\n    \
                 reader.readable().await?;\n    \
                 match reader.try_read(&mut buf) {\n        \
                     Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,\n        \
                     done => break done?,\n    \
                 }\n\
             };\n\
             assert_eq!(&buf[..count], b\"hello\");"
        );

        /// Tries to read into the buffer without waiting, and returns the number of bytes read.
        ///
        /// Zero means that the other end will write no more, or that the buffer is empty.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is nothing to read yet.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let mut buf = [0; 16];
        /// let error = reader.try_read(&mut buf).unwrap_err();
        /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        ///
        /// peer.writable().await?;
        /// peer.try_write(b"hello")?;
        /// let count = loop {
        ///     reader.readable().await?;
        ///     match reader.try_read(&mut buf) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        /// assert_eq!(&buf[..count], b"hello");
        #[doc = example_end!()]
        pub fn try_read(&self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.evented().try_read(buf)
        }

        /// Tries to read into several buffers, in order, without waiting, and returns the number
        /// of bytes read.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is nothing to read yet.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::io::IoSliceMut;\n", $begin)]
        /// peer.writable().await?;
        /// peer.try_write(b"abcde")?;
        ///
        /// let (mut head, mut rest) = ([0; 2], [0; 8]);
        /// let count = loop {
        ///     reader.readable().await?;
        ///     let mut bufs = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut rest)];
        ///     match reader.try_read_vectored(&mut bufs) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        /// assert_eq!((count, &head, &rest[..3]), (5, b"ab", &b"cde"[..]));
        #[doc = example_end!()]
        pub fn try_read_vectored(
            &self,
            bufs: &mut [std::io::IoSliceMut<'_>],
        ) -> std::io::Result<usize> {
            self.evented().try_read_vectored(bufs)
        }

        /// Tries to read and append to the buffer without waiting, and returns the number of
        /// bytes read. The buffer's spare capacity need not be initialised.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is nothing to read yet.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.writable().await?;
        /// peer.try_write(b"hello")?;
        ///
        /// let mut buf = Vec::with_capacity(64);
        /// loop {
        ///     reader.readable().await?;
        ///     match reader.try_read_buf(&mut buf) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        /// assert_eq!(buf, b"hello");
        #[doc = example_end!()]
        #[cfg(feature = "io-util")]
        pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
            self.evented().try_read(&mut $crate::net::raw::Chunk(buf))
        }
    };
}

/// Defines the methods that write bytes: `writable`, `try_write`, `try_write_vectored`. The
/// example's first part defines `writer` and a `peer` that reads.
macro_rules! writing_methods {
    ($begin:expr) => {
        writable_method!(
            $begin,
            "loop {\n    \
                 writer.writable().await?;\n    \
                 match writer.try_write(b\"hello\") {\n        \
                     Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,\n        \
                     done => break assert_eq!(done?, 5),\n    \
                 }\n\
             }"
        );

        /// Tries to write the buffer, or a part of it, without waiting, and returns the number of
        /// bytes written.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is no room; `BrokenPipe` if the other end reads no more.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let mut wrote = 0;
        /// while wrote < 5 {
        ///     writer.writable().await?;
        ///     match writer.try_write(&b"hello"[wrote..]) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => wrote += done?,
        ///     }
        /// }
        #[doc = example_end!()]
        pub fn try_write(&self, buf: &[u8]) -> std::io::Result<usize> {
            self.evented().try_write(buf)
        }

        /// Tries to write several buffers, in order, without waiting, and returns the number of
        /// bytes written. That may be a part of them.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is no room; `BrokenPipe` if the other end reads no more.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::io::IoSlice;\n", $begin)]
        /// writer.writable().await?;
        /// let count = writer.try_write_vectored(&[IoSlice::new(b"hel"), IoSlice::new(b"lo")])?;
        /// assert_eq!(count, 5);
        #[doc = example_end!()]
        pub fn try_write_vectored(&self, bufs: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
            self.evented().try_write_vectored(bufs)
        }
    };
}

/// Defines `try_io` and `async_io` of sockets. The example's first part defines a socket named
/// `$this`, which can write.
macro_rules! io_methods {
    ($begin:expr, $this:literal) => {
        /// Calls `f` if the socket is ready; `f` performs the I/O itself, for example through another
        /// library.
        ///
        /// If `f` returns `WouldBlock`, the readiness is cleared, and the next wait is for a new
        /// event. So `f` must return `WouldBlock` only if this socket returned it, and must try
        /// only operations that `interest` names.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if the socket is not ready or `f` found that it is not; otherwise the
        /// error of `f`.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::io::Interest;\n", $begin)]
        #[doc = concat!($this, ".writable().await?;")]
        #[doc = concat!("let sent = ", $this, ".try_io(Interest::WRITABLE, || {")]
        #[doc = concat!("    // Another library's call on the same descriptor.\n    socket2::SockRef::from(&", $this, ").send(b\"hello\")")]
        /// })?;
        /// assert_eq!(sent, 5);
        #[doc = example_end!()]
        pub fn try_io<R>(
            &self,
            interest: $crate::io::Interest,
            f: impl FnOnce() -> std::io::Result<R>,
        ) -> std::io::Result<R> {
            self.evented().user_try_io(interest, f)
        }

        /// Waits until the socket is ready and calls `f`, which performs the I/O itself, again and
        /// again while `f` returns `WouldBlock`.
        ///
        /// `f` must return `WouldBlock` only if this socket returned it, as for `try_io`.
        ///
        /// # Cancel safety
        ///
        /// Waiting loses nothing; what a call of `f` has done stays done.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::io::Interest;\n", $begin)]
        #[doc = concat!("let sent = ", $this, ".async_io(Interest::WRITABLE, || {")]
        #[doc = concat!("    // Another library's call on the same descriptor.\n    socket2::SockRef::from(&", $this, ").send(b\"hello\")")]
        /// }).await?;
        /// assert_eq!(sent, 5);
        #[doc = example_end!()]
        pub async fn async_io<R>(
            &self,
            interest: $crate::io::Interest,
            f: impl FnMut() -> std::io::Result<R>,
        ) -> std::io::Result<R> {
            self.evented().user_async_io(interest, f).await
        }
    };
}

/// Defines `take_error`. The example's first part defines a socket named `$this`.
macro_rules! take_error_method {
    ($begin:expr, $this:literal) => {
        /// Returns the pending error of this socket (`SO_ERROR`), if there is one, and clears it.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        #[doc = concat!("assert!(", $this, ".take_error()?.is_none());")]
        #[doc = example_end!()]
        pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
            self.evented().take_error()
        }
    };
}

/// Defines the conversions from and to the standard library's type: `from_std`, `into_std`,
/// `TryFrom`.
macro_rules! std_methods {
    ($socket:ident, $std:ty, $example:expr) => {
        impl $socket {
            /// Creates a socket from the standard library's type, which must be in non-blocking mode,
            /// and registers it with the current runtime.
            ///
            /// # Panics
            ///
            /// Panics if there is no runtime on this thread, or its I/O is not enabled; in debug
            /// builds also if the socket is in blocking mode, because then every read would block
            /// its worker.
            ///
            /// # Errors
            ///
            /// Fails if the driver cannot watch the socket.
            ///
            /// # Examples
            ///
            #[doc = $example]
            #[track_caller]
            pub fn from_std(socket: $std) -> std::io::Result<Self> {
                $crate::net::evented::check_mode(&socket)?;
                Ok(Self { io: $crate::net::evented::Evented::new(socket)? })
            }

            /// Deregisters the socket from its runtime and converts it to the standard library's
            /// type. The result is still in non-blocking mode.
            ///
            /// # Errors
            ///
            /// Fails if the driver cannot deregister the socket.
            ///
            /// # Examples
            ///
            #[doc = $example]
            pub fn into_std(self) -> std::io::Result<$std> {
                self.io.into_inner()
            }

            #[inline]
            #[allow(dead_code, reason = "not every kind has a family of methods that uses it")]
            pub(crate) fn evented(&self) -> &$crate::net::evented::Evented<$std> {
                &self.io
            }
        }

        impl TryFrom<$std> for $socket {
            type Error = std::io::Error;

            /// Converts and registers the socket as `from_std` does.
            #[track_caller]
            fn try_from(socket: $std) -> Result<Self, Self::Error> {
                Self::from_std(socket)
            }
        }

        impl std::fmt::Debug for $socket {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.io.fmt(f)
            }
        }

        descriptor!($socket, io);
    };
}

/// Implements the traits that return the descriptor of the socket in a field.
macro_rules! descriptor {
    ($socket:ident, $field:ident) => {
        #[cfg(unix)]
        impl std::os::fd::AsFd for $socket {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                std::os::fd::AsFd::as_fd(&*self.$field)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $socket {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&*self.$field)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $socket {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                std::os::windows::io::AsSocket::as_socket(&*self.$field)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $socket {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                std::os::windows::io::AsRawSocket::as_raw_socket(&*self.$field)
            }
        }
    };
}

/// Implements the traits that return the descriptor of a socket that is not registered, in its
/// field `inner`. The conversion from a raw descriptor is in `raw.rs`.
macro_rules! raw_socket {
    ($socket:ident) => {
        #[cfg(unix)]
        impl std::os::fd::AsFd for $socket {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                std::os::fd::AsFd::as_fd(&self.inner)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $socket {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&self.inner)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::IntoRawFd for $socket {
            fn into_raw_fd(self) -> std::os::fd::RawFd {
                std::os::fd::IntoRawFd::into_raw_fd(self.inner)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $socket {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                std::os::windows::io::AsSocket::as_socket(&self.inner)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $socket {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                std::os::windows::io::AsRawSocket::as_raw_socket(&self.inner)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::IntoRawSocket for $socket {
            fn into_raw_socket(self) -> std::os::windows::io::RawSocket {
                std::os::windows::io::IntoRawSocket::into_raw_socket(self.inner)
            }
        }
    };
}

/// Implements `AsyncRead` with `evented()`.
macro_rules! async_read {
    ($type:ty) => {
        impl $crate::io::AsyncRead for $type {
            #[inline]
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut $crate::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.evented().poll_read(cx, buf)
            }
        }
    };
}

/// Implements `AsyncWrite` with `evented()`; the type's `end_writing` is its shutdown.
macro_rules! async_write {
    ($type:ty) => {
        impl $crate::io::AsyncWrite for $type {
            #[inline]
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.evented().poll_write(cx, buf)
            }

            #[inline]
            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.evented().poll_write_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Completes immediately, because every write goes to the kernel directly.
            #[inline]
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn poll_shutdown(
                self: std::pin::Pin<&mut Self>,
                _cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(self.get_mut().end_writing())
            }
        }
    };
}

/// Defines the methods that connected datagram sockets share. The example's first part defines
/// `socket` and `peer`, connected to each other.
macro_rules! datagram_methods {
    ($begin:expr, $interest:expr) => {
        ready_method!(
            $begin,
            "let ready = socket.ready(Interest::READABLE | Interest::WRITABLE).await?;\n\
             assert!(ready.is_writable());"
        );
        readable_method!(
            $begin,
            "peer.send(b\"hello\").await?;\n\
             \n\
             let mut buf = [0; 16];\n\
             let count = loop {\n    \
                 socket.readable().await?;\n    \
                 match socket.try_recv(&mut buf) {\n        \
                     Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,\n        \
                     done => break done?,\n    \
                 }\n\
             };\n\
             assert_eq!(&buf[..count], b\"hello\");"
        );
        writable_method!(
            $begin,
            "loop {\n    \
                 socket.writable().await?;\n    \
                 match socket.try_send(b\"hello\") {\n        \
                     Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,\n        \
                     done => break assert_eq!(done?, 5),\n    \
                 }\n\
             }"
        );
        poll_ready_method!(poll_send_ready, Write, "send", $begin, "socket");
        poll_ready_method!(
            poll_recv_ready,
            Read,
            "receive",
            concat!($begin, "\npeer.send(b\"hello\").await?;"),
            "socket"
        );
        io_methods!($begin, "socket");
        take_error_method!($begin, "socket");

        /// Sends a datagram to the connected address, and returns the number of bytes sent.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, nothing was sent.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// assert_eq!(socket.send(b"hello").await?, 5);
        ///
        /// let mut buf = [0; 16];
        /// assert_eq!(peer.recv(&mut buf).await?, 5);
        #[doc = example_end!()]
        pub async fn send(&self, buf: &[u8]) -> std::io::Result<usize> {
            self.io.async_io($crate::io::Interest::WRITABLE, |io| Datagrams::send(io, buf)).await
        }

        /// Tries to send a datagram to the connected address without waiting, and returns the
        /// number of bytes sent.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if the send buffer has no room.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// socket.writable().await?;
        /// assert_eq!(socket.try_send(b"hello")?, 5);
        #[doc = example_end!()]
        pub fn try_send(&self, buf: &[u8]) -> std::io::Result<usize> {
            self.io.try_io($crate::io::Interest::WRITABLE, |io| Datagrams::send(io, buf))
        }

        /// Polls to send a datagram to the connected address.
        ///
        /// The socket stores one waker for sending, that of the most recent call.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::future::poll_fn;\n", $begin)]
        /// assert_eq!(poll_fn(|cx| socket.poll_send(cx, b"hello")).await?, 5);
        #[doc = example_end!()]
        pub fn poll_send(
            &self,
            cx: &mut std::task::Context<'_>,
            buf: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            self.io.poll_io(cx, Direction::Write, |io| Datagrams::send(io, buf))
        }

        /// Receives a datagram, and returns its length. Bytes that do not fit into the buffer are
        /// discarded.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, nothing was received.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = [0; 16];
        /// let count = socket.recv(&mut buf).await?;
        /// assert_eq!(&buf[..count], b"hello");
        #[doc = example_end!()]
        pub async fn recv(&self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.io.async_io($interest, |io| buf.fill_from(|room| Datagrams::recv(io, room, NO_FLAGS))).await
        }

        /// Tries to receive a datagram without waiting, and returns its length. Bytes that do not
        /// fit into the buffer are discarded.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if no datagram has arrived.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = [0; 16];
        /// let count = loop {
        ///     socket.readable().await?;
        ///     match socket.try_recv(&mut buf) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        /// assert_eq!(&buf[..count], b"hello");
        #[doc = example_end!()]
        pub fn try_recv(&self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.io.try_io($crate::io::Interest::READABLE, |io| {
                buf.fill_from(|room| Datagrams::recv(io, room, NO_FLAGS))
            })
        }

        /// Polls to receive a datagram. Bytes that do not fit into the buffer are discarded.
        ///
        /// The socket stores one waker for receiving, that of the most recent call.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::future::poll_fn;\nuse blitz_io::io::ReadBuf;\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut memory = [0; 16];
        /// let mut buf = ReadBuf::new(&mut memory);
        /// poll_fn(|cx| socket.poll_recv(cx, &mut buf)).await?;
        /// assert_eq!(buf.filled(), b"hello");
        #[doc = example_end!()]
        pub fn poll_recv(
            &self,
            cx: &mut std::task::Context<'_>,
            buf: &mut $crate::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            self.io
                .poll_io(cx, Direction::Read, |io| {
                    buf.fill_from(|room| Datagrams::recv(io, room, NO_FLAGS))
                })
                .map_ok(|_| ())
        }

        /// Receives a datagram, appends it to the buffer, and returns its length. The buffer's
        /// spare capacity need not be initialised.
        ///
        /// A `Vec` offers the spare capacity that it has, and reserves some if it has none; bytes
        /// that do not fit into that are discarded.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, nothing was received.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = Vec::with_capacity(64);
        /// assert_eq!(socket.recv_buf(&mut buf).await?, 5);
        /// assert_eq!(buf, b"hello");
        #[doc = example_end!()]
        #[cfg(feature = "io-util")]
        pub async fn recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
            self.io
                .async_io($interest, |io| {
                    Chunk(buf).fill_from(|room| Datagrams::recv(io, room, NO_FLAGS))
                })
                .await
        }

        /// Tries to receive a datagram without waiting, appends it to the buffer, and returns its
        /// length.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if no datagram has arrived.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = Vec::with_capacity(64);
        /// loop {
        ///     socket.readable().await?;
        ///     match socket.try_recv_buf(&mut buf) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        /// assert_eq!(buf, b"hello");
        #[doc = example_end!()]
        #[cfg(feature = "io-util")]
        pub fn try_recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
            self.io.try_io($crate::io::Interest::READABLE, |io| {
                Chunk(buf).fill_from(|room| Datagrams::recv(io, room, NO_FLAGS))
            })
        }
    };
}

/// Defines the methods of datagram sockets that receive a datagram and the address of its sender.
/// The example's first part defines `socket` and `peer`, connected to each other, and `from`, the
/// address of the peer; `$is_from` compares an address with it.
macro_rules! datagram_from_methods {
    ($begin:expr, $interest:expr, $address:ty, $is_from:literal) => {
        /// Receives a datagram, and returns its length and the address of its sender. Bytes that
        /// do not fit into the buffer are discarded.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, nothing was received.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = [0; 16];
        /// let (count, addr) = socket.recv_from(&mut buf).await?;
        #[doc = concat!("assert_eq!(&buf[..count], b\"hello\");\nassert!(", $is_from, ");")]
        #[doc = example_end!()]
        pub async fn recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $address)> {
            self.io
                .async_io($interest, |io| {
                    buf.fill_from(|room| Datagrams::recv_from(io, room, NO_FLAGS))
                })
                .await
        }

        /// Tries to receive a datagram without waiting, and returns its length and the address of
        /// its sender.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if no datagram has arrived.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = [0; 16];
        /// let (count, addr) = loop {
        ///     socket.readable().await?;
        ///     match socket.try_recv_from(&mut buf) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        #[doc = concat!("assert_eq!(&buf[..count], b\"hello\");\nassert!(", $is_from, ");")]
        #[doc = example_end!()]
        pub fn try_recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $address)> {
            self.io.try_io($crate::io::Interest::READABLE, |io| {
                buf.fill_from(|room| Datagrams::recv_from(io, room, NO_FLAGS))
            })
        }

        /// Polls to receive a datagram, and returns the address of its sender.
        ///
        /// The socket stores one waker for receiving, that of the most recent call.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::future::poll_fn;\nuse blitz_io::io::ReadBuf;\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut memory = [0; 16];
        /// let mut buf = ReadBuf::new(&mut memory);
        /// let addr = poll_fn(|cx| socket.poll_recv_from(cx, &mut buf)).await?;
        #[doc = concat!("assert_eq!(buf.filled(), b\"hello\");\nassert!(", $is_from, ");")]
        #[doc = example_end!()]
        pub fn poll_recv_from(
            &self,
            cx: &mut std::task::Context<'_>,
            buf: &mut $crate::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<$address>> {
            self.io
                .poll_io(cx, Direction::Read, |io| {
                    buf.fill_from(|room| Datagrams::recv_from(io, room, NO_FLAGS))
                })
                .map_ok(|(_, address)| address)
        }

        /// Receives a datagram, appends it to the buffer, and returns its length and the address
        /// of its sender. The buffer's spare capacity need not be initialised.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, nothing was received.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = Vec::with_capacity(64);
        /// let (count, addr) = socket.recv_buf_from(&mut buf).await?;
        #[doc = concat!("assert_eq!((count, &buf[..]), (5, &b\"hello\"[..]));\nassert!(", $is_from, ");")]
        #[doc = example_end!()]
        #[cfg(feature = "io-util")]
        pub async fn recv_buf_from<B: bytes::BufMut>(
            &self,
            buf: &mut B,
        ) -> std::io::Result<(usize, $address)> {
            self.io
                .async_io($interest, |io| {
                    Chunk(buf).fill_from(|room| Datagrams::recv_from(io, room, NO_FLAGS))
                })
                .await
        }

        /// Tries to receive a datagram without waiting, appends it to the buffer, and returns its
        /// length and the address of its sender.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if no datagram has arrived.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let mut buf = Vec::with_capacity(64);
        /// let (count, addr) = loop {
        ///     socket.readable().await?;
        ///     match socket.try_recv_buf_from(&mut buf) {
        ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
        ///         done => break done?,
        ///     }
        /// };
        #[doc = concat!("assert_eq!((count, &buf[..]), (5, &b\"hello\"[..]));\nassert!(", $is_from, ");")]
        #[doc = example_end!()]
        #[cfg(feature = "io-util")]
        pub fn try_recv_buf_from<B: bytes::BufMut>(
            &self,
            buf: &mut B,
        ) -> std::io::Result<(usize, $address)> {
            self.io.try_io($crate::io::Interest::READABLE, |io| {
                Chunk(buf).fill_from(|room| Datagrams::recv_from(io, room, NO_FLAGS))
            })
        }
    };
}
