//! Reads and writes with owned buffers, which the operation returns at its end.
//!
//! Where the runtime has an io_uring instance (a `Uring`), each step is an operation of the kernel,
//! which has the buffer until the operation completes. Where there is none (io_uring is refused, or
//! the runtime was configured to use another mechanism), the future has the buffer, and the step is
//! a plain call once the driver reports readiness. A caller sees only one difference: if the future
//! of an io_uring operation is dropped, the operation may have transferred bytes.
//!
//! A step on io_uring is started again when the kernel reports a failure that was not about the
//! operation (see `engine/uring`), and is made by readiness instead when it would block or the
//! instance has become unusable.

#![forbid(unsafe_code)]

use std::{future::poll_fn, io};

#[cfg(target_os = "linux")]
use super::raw::{FdKind, read_by_uring, write_by_uring};
use super::{
    evented::{Evented, Source},
    raw::{Destination, Filling},
    transfer::{Bytes, Datagrams, NO_FLAGS},
};
#[cfg(target_os = "linux")]
use crate::engine::uring::{SubmitError, Uring, closed_error, op_future::must_resubmit};
use crate::{
    buf::{OwnedBuf, OwnedBufMut},
    engine::work::task::budget,
    io::Interest,
};

/// Result of an operation, and the buffer that was passed to it.
type BufResult<T, B> = (io::Result<T>, B);

/// Descriptor that can be read and written with owned buffers.
pub(crate) trait OwnedTransfer: Source {
    #[cfg(target_os = "linux")]
    const KIND: FdKind;
    /// True if a read into a buffer without room can return zero bytes without a call. A datagram
    /// must be received even then.
    const IS_STREAM: bool;
    /// Interest to wait for before a read.
    const READING: Interest = Interest::READABLE;

    fn read_into(&self, into: &mut impl Destination) -> io::Result<usize>;
    fn write_from(&self, bytes: &[u8]) -> io::Result<usize>;
}

macro_rules! streams {
    ($($(#[$meta:meta])* $stream:ty: $kind:ident),* $(,)?) => {$(
        $(#[$meta])*
        impl OwnedTransfer for $stream {
            #[cfg(target_os = "linux")]
            const KIND: FdKind = FdKind::$kind;
            const IS_STREAM: bool = true;

            fn read_into(&self, into: &mut impl Destination) -> io::Result<usize> {
                into.fill_from(|room| Bytes::read(self, room))
            }

            fn write_from(&self, bytes: &[u8]) -> io::Result<usize> {
                Bytes::write(self, bytes)
            }
        }
    )*};
}

macro_rules! datagrams {
    ($($(#[$meta:meta])* $socket:ty: $reading:expr),* $(,)?) => {$(
        $(#[$meta])*
        impl OwnedTransfer for $socket {
            #[cfg(target_os = "linux")]
            const KIND: FdKind = FdKind::Socket;
            const IS_STREAM: bool = false;
            const READING: Interest = $reading;

            fn read_into(&self, into: &mut impl Destination) -> io::Result<usize> {
                into.fill_from(|room| Datagrams::recv(self, room, NO_FLAGS))
            }

            fn write_from(&self, bytes: &[u8]) -> io::Result<usize> {
                Datagrams::send(self, bytes)
            }
        }
    )*};
}

streams!(
    std::net::TcpStream: Socket,
    #[cfg(unix)]
    std::os::unix::net::UnixStream: Socket,
    #[cfg(unix)]
    std::fs::File: File,
);

datagrams!(
    std::net::UdpSocket: super::udp::RECEIVING,
    #[cfg(unix)]
    std::os::unix::net::UnixDatagram: Interest::READABLE,
);

/// Outcome of a step on io_uring, which may have to be made again.
#[cfg(target_os = "linux")]
enum Step<P> {
    Done(io::Result<usize>, P),
    /// The step must be made again, in the same way.
    Retry(P),
    /// The step must be made by readiness instead.
    ByReadiness(P),
}

#[cfg(target_os = "linux")]
impl<P> Step<P> {
    fn of(result: Result<(i32, P), (SubmitError, P)>) -> Self {
        match result {
            Ok((count, payload)) if count >= 0 => Self::Done(Ok(count as usize), payload),
            Ok((error, payload)) if must_resubmit(error) => Self::Retry(payload),
            Ok((error, payload)) if -error == libc::EAGAIN => Self::ByReadiness(payload),
            Ok((error, payload)) => Self::Done(Err(io::Error::from_raw_os_error(-error)), payload),
            Err((SubmitError::Closed, payload)) => Self::Done(Err(closed_error()), payload),
            Err((SubmitError::Unusable, payload)) => Self::ByReadiness(payload),
        }
    }
}

impl<T: OwnedTransfer> Evented<T> {
    /// Reads once into the part of the buffer that is not filled.
    async fn read_step<B: OwnedBufMut>(
        &self,
        mut filling: Filling<B>,
    ) -> BufResult<usize, Filling<B>> {
        #[cfg(target_os = "linux")]
        while let Some(uring) = Uring::of(self.driver()) {
            let unit = poll_fn(budget::poll_proceed).await;
            match Step::of(read_by_uring(uring, (T::KIND, self.fd()), filling).await) {
                Step::Done(result, filling) => {
                    unit.spend();
                    return (result, filling);
                }
                Step::Retry(back) => filling = back,
                Step::ByReadiness(back) => {
                    filling = back;
                    break;
                }
            }
        }
        let result = self.async_io(T::READING, |io| io.read_into(&mut filling)).await;
        (result, filling)
    }

    /// Writes once from the bytes after the first `from`. Usually there is room, and a plain call
    /// finds it at less cost than io_uring, so only a write that has to wait becomes an io_uring
    /// operation.
    #[cfg_attr(not(target_os = "linux"), allow(unused_mut, reason = "a uring returns it"))]
    async fn write_step<B: OwnedBuf>(&self, mut buf: B, from: usize) -> BufResult<usize, B> {
        #[cfg(target_os = "linux")]
        loop {
            let unit = poll_fn(budget::poll_proceed).await;
            let written =
                self.try_io(Interest::WRITABLE, |io| io.write_from(&buf.as_slice()[from..]));
            if !matches!(&written, Err(why) if why.kind() == io::ErrorKind::WouldBlock) {
                unit.spend();
                return (written, buf);
            }
            let Some(uring) = Uring::of(self.driver()) else { break };
            match Step::of(write_by_uring(uring, (T::KIND, self.fd()), buf, from).await) {
                Step::Done(result, buf) => {
                    unit.spend();
                    return (result, buf);
                }
                Step::Retry(back) => buf = back,
                Step::ByReadiness(back) => {
                    buf = back;
                    break;
                }
            }
        }
        let result =
            self.async_io(Interest::WRITABLE, |io| io.write_from(&buf.as_slice()[from..])).await;
        (result, buf)
    }

    /// Reads once. Without room in the buffer, a stream returns zero bytes immediately; a
    /// datagram is received anyway.
    pub(super) async fn read_owned<B: OwnedBufMut>(&self, buf: B) -> BufResult<usize, B> {
        let filling = Filling::new(buf);
        if filling.is_full() && T::IS_STREAM {
            // There is nothing to wait for, but the budget makes a task that loops here yield at
            // times.
            poll_fn(budget::poll_proceed).await.spend();
            return (Ok(0), filling.finish(true));
        }
        let (result, filling) = self.read_step(filling).await;
        let failed = result.is_err();
        (result, filling.finish(failed))
    }

    pub(super) async fn read_exact_owned<B: OwnedBufMut>(&self, buf: B) -> BufResult<usize, B> {
        let mut filling = Filling::new(buf);
        let result = loop {
            if filling.is_full() {
                break Ok(filling.filled());
            }
            let (result, back) = self.read_step(filling).await;
            filling = back;
            match result {
                Ok(0) => break Err(io::Error::new(io::ErrorKind::UnexpectedEof, "early eof")),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        let failed = result.is_err();
        (result, filling.finish(failed))
    }

    pub(super) async fn write_owned<B: OwnedBuf>(&self, buf: B) -> BufResult<usize, B> {
        self.write_step(buf, 0).await
    }

    pub(super) async fn write_all_owned<B: OwnedBuf>(&self, mut buf: B) -> BufResult<(), B> {
        let mut written = 0;
        while written < buf.bytes_init() {
            let (result, back) = self.write_step(buf, written).await;
            buf = back;
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), buf),
                Ok(count) => written += count,
                Err(error) => return (Err(error), buf),
            }
        }
        (Ok(()), buf)
    }
}

/// Defines `read_owned` and `read_exact_owned`. The example's first part defines `reader` and a
/// `peer` that writes.
macro_rules! owned_reading_methods {
    ($begin:expr) => {
        /// Reads once into an owned buffer, and returns the number of bytes read, with the
        /// buffer. Zero means the end of the stream, unless the buffer has no room.
        ///
        /// The bytes are written to the beginning of the buffer, over what is there: a `Vec`
        /// offers its whole capacity, and afterwards its length is the number of bytes read;
        /// after an error it is unchanged. On Linux the kernel performs the read with io_uring
        /// where that is allowed, and has the buffer meanwhile.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, the kernel is requested to cancel the
        /// operation, and the buffer is dropped once the operation has ended. Bytes that were
        /// read by then are lost. Run the read in its own task if you wait for other events
        /// besides.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.writable().await?;
        /// peer.try_write(b"hello")?;
        ///
        /// let (result, buf) = reader.read_owned(Vec::with_capacity(1024)).await;
        /// assert_eq!(result?, 5);
        /// assert_eq!(buf, b"hello");
        #[doc = example_end!()]
        pub async fn read_owned<B: $crate::buf::OwnedBufMut>(
            &self,
            buf: B,
        ) -> (std::io::Result<usize>, B) {
            self.evented().read_owned(buf).await
        }

        /// Reads until the buffer is full, and returns the number of bytes read, with the buffer.
        ///
        /// A `Vec` is full when its whole capacity is filled; to read a certain number of bytes,
        /// pass a [`slice`](crate::buf::OwnedBuf::slice).
        ///
        /// # Errors
        ///
        /// `UnexpectedEof` if the stream ends first. The bytes that were read before an error are
        /// in the buffer, and a buffer that has a length has their number as its length.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, the bytes that it has read are lost.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse blitz_io::buf::OwnedBuf;\n", $begin)]
        /// peer.writable().await?;
        /// peer.try_write(b"hello")?;
        ///
        /// let buf = vec![0; 1024].slice(..4);
        /// let (result, buf) = reader.read_exact_owned(buf).await;
        /// assert_eq!(result?, 4);
        /// assert_eq!(buf.as_slice(), b"hell");
        #[doc = example_end!()]
        pub async fn read_exact_owned<B: $crate::buf::OwnedBufMut>(
            &self,
            buf: B,
        ) -> (std::io::Result<usize>, B) {
            self.evented().read_exact_owned(buf).await
        }
    };
}

/// Defines `write_owned` and `write_all_owned`. The example's first part defines `writer` and a
/// `peer` that reads.
macro_rules! owned_writing_methods {
    ($begin:expr) => {
        /// Writes an owned buffer, or a part of it, and returns the number of bytes written, with
        /// the buffer.
        ///
        /// On Linux the kernel performs a write that has to wait with io_uring where that is
        /// allowed, and has the buffer meanwhile.
        ///
        /// # Errors
        ///
        /// `BrokenPipe` if the other end reads no more.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, the kernel is requested to cancel the
        /// operation, and the buffer is dropped once the operation has ended. A part of it may
        /// have been written by then, or all.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let (result, buf) = writer.write_owned(String::from("hello")).await;
        /// assert_eq!(result?, 5);
        /// assert_eq!(buf, "hello");
        #[doc = example_end!()]
        pub async fn write_owned<B: $crate::buf::OwnedBuf>(
            &self,
            buf: B,
        ) -> (std::io::Result<usize>, B) {
            self.evented().write_owned(buf).await
        }

        /// Writes all of an owned buffer, and returns the buffer.
        ///
        /// Two such writes at the same time may interleave their bytes, if the bytes are too many
        /// to be written in one step.
        ///
        /// # Errors
        ///
        /// `BrokenPipe` if the other end reads no more. The number of bytes that were written
        /// before an error is not known.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, a part may have been written, or all.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let (result, _buf) = writer.write_all_owned("hello").await;
        /// result?;
        #[doc = example_end!()]
        pub async fn write_all_owned<B: $crate::buf::OwnedBuf>(
            &self,
            buf: B,
        ) -> (std::io::Result<()>, B) {
            self.evented().write_all_owned(buf).await
        }
    };
}

/// Defines `recv_owned` and `send_owned`. The example's first part defines `socket` and `peer`,
/// connected to each other.
macro_rules! owned_datagram_methods {
    ($begin:expr) => {
        /// Receives a datagram into an owned buffer, and returns its length, with the buffer.
        /// Bytes that do not fit are discarded.
        ///
        /// The datagram is written to the beginning of the buffer, over what is there: a `Vec`
        /// offers its whole capacity, and afterwards its length is the number of bytes received;
        /// after an error it is unchanged. On Linux the kernel performs the receive with io_uring
        /// where that is allowed, and has the buffer meanwhile.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, the kernel is requested to cancel the
        /// operation, and the buffer is dropped once the operation has ended. A datagram that was
        /// received by then is lost.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.send(b"hello").await?;
        ///
        /// let (result, buf) = socket.recv_owned(Vec::with_capacity(1024)).await;
        /// assert_eq!(result?, 5);
        /// assert_eq!(buf, b"hello");
        #[doc = example_end!()]
        pub async fn recv_owned<B: $crate::buf::OwnedBufMut>(
            &self,
            buf: B,
        ) -> (std::io::Result<usize>, B) {
            self.evented().read_owned(buf).await
        }

        /// Sends an owned buffer as a datagram to the connected address, and returns the number
        /// of bytes sent, with the buffer.
        ///
        /// On Linux the kernel performs a send that has to wait with io_uring where that is
        /// allowed, and has the buffer meanwhile.
        ///
        /// # Cancel safety
        ///
        /// If the future is dropped before it completes, the datagram may have been sent or not.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// let (result, _buf) = socket.send_owned("hello").await;
        /// assert_eq!(result?, 5);
        ///
        /// let mut buf = [0; 16];
        /// assert_eq!(peer.recv(&mut buf).await?, 5);
        #[doc = example_end!()]
        pub async fn send_owned<B: $crate::buf::OwnedBuf>(
            &self,
            buf: B,
        ) -> (std::io::Result<usize>, B) {
            self.evented().write_owned(buf).await
        }
    };
}
