//! What several kinds of sockets share, written once.
//!
//! The interface wants the same methods on each type. Each macro here puts one family of
//! them into an `impl` block; the work is done by [`Evented`](super::evented::Evented),
//! which a type answers with from its private `evented()`.
//!
//! The examples in the documentation differ only in how the two ends are made. A macro
//! takes that part: lines that begin with `use` and define `reader` (or `writer`, or
//! `socket`) and `peer`, inside of `blitz_io::run(async {`.

#![forbid(unsafe_code)]

/// The end of each example: the other half of what the given part began.
macro_rules! example_end {
    () => {
        "# Ok::<(), std::io::Error>(())\n# }).unwrap();\n```"
    };
}

/// `ready`. The example begins with a given part and waits for a given interest.
macro_rules! ready_method {
    ($begin:expr, $waits:literal) => {
        /// Waits for any of the requested ready states.
        ///
        /// This is usually followed by a `try_` method, in a loop: the answer may be
        /// stale, because another task was quicker or because the kernel changed its
        /// mind, and then the method says `WouldBlock`. If the other end has closed, the
        /// closed states are part of the answer, whether they were asked for or not.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if it is dropped: who waits next sees the same readiness.
        ///
        /// # Errors
        ///
        /// If the runtime that the socket belongs to is gone.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::io::Interest;\n", $begin, "\n", $waits, "\n", example_end!())]
        pub async fn ready(&self, interest: $crate::io::Interest) -> std::io::Result<$crate::io::Ready> {
            self.evented().ready(interest).await
        }
    };
}

/// `readable`, for what has `ready`.
macro_rules! readable_method {
    ($begin:expr, $waits:literal) => {
        /// Waits until there may be something to read.
        ///
        /// The same as `ready(Interest::READABLE)`.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if it is dropped: who waits next sees the same readiness.
        ///
        /// # Errors
        ///
        /// If the runtime that the socket belongs to is gone.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin, "\n", $waits, "\n", example_end!())]
        pub async fn readable(&self) -> std::io::Result<()> {
            self.evented().ready($crate::io::Interest::READABLE).await.map(drop)
        }
    };
}

/// `writable`, for what has `ready`.
macro_rules! writable_method {
    ($begin:expr, $waits:literal) => {
        /// Waits until there may be room to write.
        ///
        /// The same as `ready(Interest::WRITABLE)`.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if it is dropped: who waits next sees the same readiness.
        ///
        /// # Errors
        ///
        /// If the runtime that the socket belongs to is gone.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin, "\n", $waits, "\n", example_end!())]
        pub async fn writable(&self) -> std::io::Result<()> {
            self.evented().ready($crate::io::Interest::WRITABLE).await.map(drop)
        }
    };
}

/// `poll_read_ready`, or however the type calls it.
macro_rules! poll_ready_method {
    ($name:ident, $direction:ident, $what:literal, $begin:expr, $this:literal) => {
        #[doc = concat!("Polls for being ready to ", $what, ".")]
        ///
        /// If it is not, the waker of `cx` is kept and woken when it may be. One waker is
        /// kept for each direction, the last one; any number of tasks can wait with the
        /// asynchronous method of the same meaning.
        ///
        /// # Errors
        ///
        /// If the runtime that the socket belongs to is gone.
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

/// What reads bytes: `readable`, `try_read`, `try_read_vectored`, `try_read_buf`. The
/// example's first part defines `reader` and a `peer` that writes.
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

        /// Reads into the buffer if there is something to read now, and answers how much
        /// it was.
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

        /// Reads into several buffers, one after the other, if there is something to read
        /// now, and answers how much it was.
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

        /// Reads behind what the buffer has, if there is something to read now, and
        /// answers how much it was. The buffer's memory need not be initialised.
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

/// What writes bytes: `writable`, `try_write`, `try_write_vectored`. The example's first
/// part defines `writer` and a `peer` that reads.
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

        /// Writes the buffer, or a part of it, if there is room for some now, and answers
        /// how much it was.
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

        /// Writes several buffers, one after the other, as far as there is room now, and
        /// answers how much it was.
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

/// `try_io` and `async_io` of sockets. The example's first part defines a socket by the
/// name given, which can write.
macro_rules! io_methods {
    ($begin:expr, $this:literal) => {
        /// Calls `f`, which does I/O on this socket by other means, if the socket is
        /// ready for it.
        ///
        /// If `f` says `WouldBlock`, the readiness is forgotten, and the next wait is for
        /// a new event. So `f` must say that only if this socket said so, and must try
        /// nothing but what `interest` names.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if the socket is not ready or `f` found it so; else what `f`
        /// answers.
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
            self.evented().try_io_of_user(interest, f)
        }

        /// Waits until the socket is ready, calls `f`, which does I/O on it by other
        /// means, and waits again for as long as `f` says `WouldBlock`.
        ///
        /// As with `try_io`, `f` must say `WouldBlock` only if this socket said so.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost by the waiting; what `f` has done is done.
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
            self.evented().async_io_of_user(interest, f).await
        }
    };
}

/// `take_error`. The example's first part defines a socket by the name given.
macro_rules! take_error_method {
    ($begin:expr, $this:literal) => {
        /// Takes the error that the kernel keeps for this socket, if there is one.
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

/// The same socket in the standard library: `from_std`, `into_std`, `TryFrom`.
macro_rules! std_methods {
    ($socket:ident, $std:ty, $example:expr) => {
        impl $socket {
            /// Makes this of a socket of the standard library, which must be in
            /// non-blocking mode, and registers it with the current runtime.
            ///
            /// # Panics
            ///
            /// If there is no runtime on this thread, or its I/O is not enabled; in debug
            /// builds also if the socket is in blocking mode, in which every read would
            /// hold up its worker.
            ///
            /// # Errors
            ///
            /// If the driver cannot watch it.
            ///
            /// # Examples
            ///
            #[doc = $example]
            #[track_caller]
            pub fn from_std(socket: $std) -> std::io::Result<Self> {
                $crate::net::evented::check_mode(&socket)?;
                Ok(Self { io: $crate::net::evented::Evented::new(socket)? })
            }

            /// Takes it from its runtime, and makes a socket of the standard library of
            /// it. It is still in non-blocking mode.
            ///
            /// # Errors
            ///
            /// If the driver would not let it go.
            ///
            /// # Examples
            ///
            #[doc = $example]
            pub fn into_std(self) -> std::io::Result<$std> {
                self.io.into_inner()
            }

            #[inline]
            #[allow(dead_code, reason = "not every kind has a family of methods that asks")]
            pub(crate) fn evented(&self) -> &$crate::net::evented::Evented<$std> {
                &self.io
            }
        }

        impl TryFrom<$std> for $socket {
            type Error = std::io::Error;

            /// As `from_std`.
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

/// The descriptor of a socket that has one in a field.
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

/// The descriptor of a socket that is not registered, in its field `inner`. Taking one
/// over by its number is in `raw.rs`.
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

/// `AsyncRead` by `evented()`.
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

/// `AsyncWrite` by `evented()`; the type's `end_writing` is its shutdown.
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

            /// There is nothing here to flush: the kernel has it all.
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

/// What connected datagram sockets share. The example's first part defines `socket` and
/// `peer`, connected to each other.
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

        /// Sends a datagram to the address that the socket is connected to, and answers
        /// its length.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, nothing was sent.
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

        /// Sends a datagram to the address that the socket is connected to if there is
        /// room for it now.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is no room.
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

        /// Polls to send a datagram to the address that the socket is connected to.
        ///
        /// One waker is kept for sending, the last one.
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

        /// Receives a datagram and answers its length. What does not fit into the buffer
        /// is thrown away.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, nothing was received.
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
            self.io.async_io($interest, |io| buf.take_in(|room| Datagrams::recv(io, room, PLAIN))).await
        }

        /// Receives a datagram if there is one now. What does not fit into the buffer is
        /// thrown away.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is none yet.
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
                buf.take_in(|room| Datagrams::recv(io, room, PLAIN))
            })
        }

        /// Polls to receive a datagram. What does not fit into the buffer is thrown away.
        ///
        /// One waker is kept for receiving, the last one.
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
                    buf.take_in(|room| Datagrams::recv(io, room, PLAIN))
                })
                .map_ok(|_| ())
        }

        /// Receives a datagram behind what the buffer has, and answers its length. The
        /// buffer's memory need not be initialised.
        ///
        /// A `Vec` offers the room that it has reserved, and at least some more if it has
        /// none; what does not fit into that is thrown away.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, nothing was received.
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
                    Chunk(buf).take_in(|room| Datagrams::recv(io, room, PLAIN))
                })
                .await
        }

        /// Receives a datagram behind what the buffer has, if there is one now.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is none yet.
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
                Chunk(buf).take_in(|room| Datagrams::recv(io, room, PLAIN))
            })
        }
    };
}

/// What datagram sockets receive with the sender's address. The example's first part
/// defines `socket` and `peer` as before, and `from`, the address of the peer; the last
/// argument says how an address is compared with it.
macro_rules! datagram_from_methods {
    ($begin:expr, $interest:expr, $address:ty, $is_from:literal) => {
        /// Receives a datagram, and answers its length and who sent it. What does not fit
        /// into the buffer is thrown away.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, nothing was received.
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
                    buf.take_in(|room| Datagrams::recv_from(io, room, PLAIN))
                })
                .await
        }

        /// Receives a datagram if there is one now, and answers its length and who sent
        /// it.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is none yet.
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
                buf.take_in(|room| Datagrams::recv_from(io, room, PLAIN))
            })
        }

        /// Polls to receive a datagram, and answers who sent it.
        ///
        /// One waker is kept for receiving, the last one.
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
                    buf.take_in(|room| Datagrams::recv_from(io, room, PLAIN))
                })
                .map_ok(|(_, address)| address)
        }

        /// Receives a datagram behind what the buffer has, and answers its length and who
        /// sent it. The buffer's memory need not be initialised.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, nothing was received.
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
                    Chunk(buf).take_in(|room| Datagrams::recv_from(io, room, PLAIN))
                })
                .await
        }

        /// Receives a datagram behind what the buffer has, if there is one now, and
        /// answers its length and who sent it.
        ///
        /// # Errors
        ///
        /// `WouldBlock` if there is none yet.
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
                Chunk(buf).take_in(|room| Datagrams::recv_from(io, room, PLAIN))
            })
        }
    };
}
