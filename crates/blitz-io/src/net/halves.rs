//! Read and write halves of a stream.
//!
//! Borrowed halves are a reference each; owned halves share the stream. The kernel allows one
//! thread to read while another writes, so nothing is locked. Dropping an owned write half shuts
//! down the write direction, so the other end reads the end of the stream, while the read half
//! can still read.

#![forbid(unsafe_code)]

/// Defines `ReadHalf`, `WriteHalf`, `OwnedReadHalf`, `OwnedWriteHalf` and `ReuniteError`
/// for a stream that has `evented()` and `end_writing()`. The example's first part
/// defines a `stream` and its `peer`.
macro_rules! halves {
    ($stream:ident, $std:ty, $address:ty, $begin:expr) => {
        /// Borrowed read half of a stream, created by
        #[doc = concat!("[`", stringify!($stream), "::split`].")]
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::io::AsyncRead;\n", $begin)]
        /// let (reader, _writer) = stream.split();
        /// fn reads(_: impl AsyncRead) {}
        /// reads(reader);
        #[doc = example_end!()]
        #[derive(Debug)]
        pub struct ReadHalf<'a>(&'a $stream);

        /// Borrowed write half of a stream, created by
        #[doc = concat!("[`", stringify!($stream), "::split`].")]
        ///
        /// Dropping this half does not shut down the write direction;
        /// [`poll_shutdown`](crate::io::AsyncWrite::poll_shutdown) does.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::io::AsyncWrite;\n", $begin)]
        /// let (_reader, writer) = stream.split();
        /// fn writes(_: impl AsyncWrite) {}
        /// writes(writer);
        #[doc = example_end!()]
        #[derive(Debug)]
        pub struct WriteHalf<'a>(&'a $stream);

        /// Owned read half of a stream, created by
        #[doc = concat!("[`", stringify!($stream), "::into_split`].")]
        ///
        /// The stream is closed when both halves are dropped.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let (reader, writer) = stream.into_split();
        /// let reads = blitz_io::spawn(async move { reader.readable().await });
        /// drop(peer); // so there is an end to read
        /// reads.await??;
        /// # drop(writer);
        #[doc = example_end!()]
        #[derive(Debug)]
        pub struct OwnedReadHalf {
            stream: std::sync::Arc<$stream>,
        }

        /// Owned write half of a stream, created by
        #[doc = concat!("[`", stringify!($stream), "::into_split`].")]
        ///
        /// Dropping this half shuts down the write direction, so the other end reads the end of
        /// the stream; [`forget`](Self::forget) drops the half without that.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let (_reader, writer) = stream.into_split();
        /// drop(writer);
        ///
        /// peer.readable().await?;
        /// assert_eq!(peer.try_read(&mut [0; 8])?, 0);
        #[doc = example_end!()]
        #[derive(Debug)]
        pub struct OwnedWriteHalf {
            stream: std::sync::Arc<$stream>,
            ends_writing: bool,
        }

        /// Error of `reunite`: the halves belong to different streams. The error contains both of
        /// them.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let (reader, _writer) = stream.into_split();
        /// let (_other_reader, other_writer) = peer.into_split();
        /// let error = reader.reunite(other_writer).unwrap_err();
        /// let (_reader, _other_writer) = (error.0, error.1);
        #[doc = example_end!()]
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        impl std::fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "tried to reunite halves that are not from the same socket: both are in the \
                     error",
                )
            }
        }

        impl std::error::Error for ReuniteError {}

        pub(super) fn borrowed(stream: &mut $stream) -> (ReadHalf<'_>, WriteHalf<'_>) {
            (ReadHalf(stream), WriteHalf(stream))
        }

        pub(super) fn owned(stream: $stream) -> (OwnedReadHalf, OwnedWriteHalf) {
            let stream = std::sync::Arc::new(stream);
            let reader = OwnedReadHalf { stream: stream.clone() };
            (reader, OwnedWriteHalf { stream, ends_writing: true })
        }

        fn reunited(
            reader: OwnedReadHalf,
            writer: OwnedWriteHalf,
        ) -> Result<$stream, ReuniteError> {
            if !std::sync::Arc::ptr_eq(&reader.stream, &writer.stream) {
                return Err(ReuniteError(reader, writer));
            }
            writer.forget();
            // There were two references, and `forget` has dropped one.
            Ok(std::sync::Arc::into_inner(reader.stream).expect("a stream has two halves"))
        }

        impl ReadHalf<'_> {
            #[inline]
            fn evented(&self) -> &$crate::net::evented::Evented<$std> {
                self.0.evented()
            }

            ready_method!(
                concat!($begin, "\nlet (reader, _writer) = stream.split();"),
                "peer.writable().await?;\npeer.try_write(b\"hello\")?;\n\
                 let ready = reader.ready(Interest::READABLE).await?;\n\
                 assert!(ready.is_readable());"
            );
            reading_methods!(concat!($begin, "\nlet (reader, _writer) = stream.split();"));
            address_methods!($address, concat!($begin, "\nlet (half, _writer) = stream.split();"));
        }

        impl OwnedReadHalf {
            #[inline]
            fn evented(&self) -> &$crate::net::evented::Evented<$std> {
                self.stream.evented()
            }

            /// Puts the two halves together into the original stream.
            ///
            /// # Errors
            ///
            /// Fails if the halves belong to different streams.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", $begin)]
            /// let (reader, writer) = stream.into_split();
            /// let stream = reader.reunite(writer).expect("they belong together");
            /// # drop((stream, peer));
            #[doc = example_end!()]
            pub fn reunite(self, other: OwnedWriteHalf) -> Result<$stream, ReuniteError> {
                reunited(self, other)
            }

            ready_method!(
                concat!($begin, "\nlet (reader, _writer) = stream.into_split();"),
                "peer.writable().await?;\npeer.try_write(b\"hello\")?;\n\
                 let ready = reader.ready(Interest::READABLE).await?;\n\
                 assert!(ready.is_readable());"
            );
            reading_methods!(concat!($begin, "\nlet (reader, _writer) = stream.into_split();"));
            address_methods!(
                $address,
                concat!($begin, "\nlet (half, _writer) = stream.into_split();")
            );
        }

        impl WriteHalf<'_> {
            #[inline]
            fn evented(&self) -> &$crate::net::evented::Evented<$std> {
                self.0.evented()
            }

            fn end_writing(&mut self) -> std::io::Result<()> {
                self.0.shut_writing()
            }

            ready_method!(
                concat!($begin, "\nlet (_reader, writer) = stream.split();"),
                "let ready = writer.ready(Interest::WRITABLE).await?;\n\
                 assert!(ready.is_writable());"
            );
            writing_methods!(concat!($begin, "\nlet (_reader, writer) = stream.split();"));
            address_methods!($address, concat!($begin, "\nlet (_reader, half) = stream.split();"));
        }

        impl OwnedWriteHalf {
            #[inline]
            fn evented(&self) -> &$crate::net::evented::Evented<$std> {
                self.stream.evented()
            }

            fn end_writing(&mut self) -> std::io::Result<()> {
                self.stream.shut_writing()?;
                self.ends_writing = false;
                Ok(())
            }

            /// Puts the two halves together into the original stream.
            ///
            /// # Errors
            ///
            /// Fails if the halves belong to different streams.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", $begin)]
            /// let (reader, writer) = stream.into_split();
            /// let stream = writer.reunite(reader).expect("they belong together");
            /// # drop((stream, peer));
            #[doc = example_end!()]
            pub fn reunite(self, other: OwnedReadHalf) -> Result<$stream, ReuniteError> {
                reunited(other, self)
            }

            /// Drops this half without shutting down the write direction: the other end sees no
            /// end of the stream until the read half is dropped as well.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\n", $begin)]
            /// let (_reader, writer) = stream.into_split();
            /// writer.forget();
            ///
            /// let error = peer.try_read(&mut [0; 8]).unwrap_err();
            /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
            #[doc = example_end!()]
            pub fn forget(mut self) {
                self.ends_writing = false;
            }

            ready_method!(
                concat!($begin, "\nlet (_reader, writer) = stream.into_split();"),
                "let ready = writer.ready(Interest::WRITABLE).await?;\n\
                 assert!(ready.is_writable());"
            );
            writing_methods!(concat!($begin, "\nlet (_reader, writer) = stream.into_split();"));
            address_methods!(
                $address,
                concat!($begin, "\nlet (_reader, half) = stream.into_split();")
            );
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                if self.ends_writing {
                    // The drop has no caller that could receive the error.
                    let _ = self.stream.shut_writing();
                }
            }
        }

        async_read!(ReadHalf<'_>);
        async_read!(OwnedReadHalf);
        async_write!(WriteHalf<'_>);
        async_write!(OwnedWriteHalf);

        impl AsRef<$stream> for ReadHalf<'_> {
            fn as_ref(&self) -> &$stream {
                self.0
            }
        }

        impl AsRef<$stream> for WriteHalf<'_> {
            fn as_ref(&self) -> &$stream {
                self.0
            }
        }

        impl AsRef<$stream> for OwnedReadHalf {
            fn as_ref(&self) -> &$stream {
                &self.stream
            }
        }

        impl AsRef<$stream> for OwnedWriteHalf {
            fn as_ref(&self) -> &$stream {
                &self.stream
            }
        }
    };
}

/// Defines `local_addr` and `peer_addr` of a half. The example's first part defines `half`.
macro_rules! address_methods {
    ($address:ty, $begin:expr) => {
        /// Returns the address of the other end.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// println!("{:?}", half.peer_addr()?);
        #[doc = example_end!()]
        pub fn peer_addr(&self) -> std::io::Result<$address> {
            self.as_ref().peer_addr()
        }

        /// Returns the local address of the stream.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// println!("{:?}", half.local_addr()?);
        #[doc = example_end!()]
        pub fn local_addr(&self) -> std::io::Result<$address> {
            self.as_ref().local_addr()
        }
    };
}
