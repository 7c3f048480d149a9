//! Reading and writing with buffers that are given away.
//!
//! Where there is a ring, each step is an operation of the kernel's, which has the buffer
//! until it answers. Where there is none (io_uring is refused, or the runtime was told to
//! use another mechanism), the future has the buffer, and the step is made when the driver
//! says that it can be. A caller sees no difference but one: the future of a ring's
//! operation that is dropped may have moved bytes.
//!
//! A step of a ring is begun again when the kernel says that it was not about the
//! operation (see `engine/ring`), and made the other way when it would block or the ring
//! has become unusable.

#![forbid(unsafe_code)]

use std::{future::poll_fn, io};

#[cfg(target_os = "linux")]
use super::raw::{Kind, read_by, write_by};
use super::{
    evented::{Evented, Source},
    raw::{Destination, Filling},
    transfer::{Bytes, Datagrams, PLAIN},
};
#[cfg(target_os = "linux")]
use crate::engine::ring::{NoRing, Ring, closed_error, flight::must_begin_again};
use crate::{
    buf::{OwnedBuf, OwnedBufMut},
    engine::work::task::budget,
    io::Interest,
};

/// A result, and the buffer back.
type Answer<T, B> = (io::Result<T>, B);

/// What can be read and written in this way.
pub(crate) trait Moves: Source {
    #[cfg(target_os = "linux")]
    const KIND: Kind;
    /// Whether no bytes are as good as none read.
    const IS_STREAM: bool;
    /// What is waited for to read.
    const READING: Interest = Interest::READABLE;

    fn take(&self, into: &mut impl Destination) -> io::Result<usize>;
    fn give(&self, bytes: &[u8]) -> io::Result<usize>;
}

macro_rules! streams {
    ($($(#[$meta:meta])* $stream:ty: $kind:ident),* $(,)?) => {$(
        $(#[$meta])*
        impl Moves for $stream {
            #[cfg(target_os = "linux")]
            const KIND: Kind = Kind::$kind;
            const IS_STREAM: bool = true;

            fn take(&self, into: &mut impl Destination) -> io::Result<usize> {
                into.take_in(|room| Bytes::read(self, room))
            }

            fn give(&self, bytes: &[u8]) -> io::Result<usize> {
                Bytes::write(self, bytes)
            }
        }
    )*};
}

macro_rules! datagrams {
    ($($(#[$meta:meta])* $socket:ty: $reading:expr),* $(,)?) => {$(
        $(#[$meta])*
        impl Moves for $socket {
            #[cfg(target_os = "linux")]
            const KIND: Kind = Kind::Socket;
            const IS_STREAM: bool = false;
            const READING: Interest = $reading;

            fn take(&self, into: &mut impl Destination) -> io::Result<usize> {
                into.take_in(|room| Datagrams::recv(self, room, PLAIN))
            }

            fn give(&self, bytes: &[u8]) -> io::Result<usize> {
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

/// What came of a step of a ring, which may not have been one.
#[cfg(target_os = "linux")]
enum Step<P> {
    Done(io::Result<usize>, P),
    /// To be made again, in the same way.
    Again(P),
    /// To be made by readiness.
    Otherwise(P),
}

#[cfg(target_os = "linux")]
impl<P> Step<P> {
    fn of(answer: Result<(i32, P), (NoRing, P)>) -> Self {
        match answer {
            Ok((count, payload)) if count >= 0 => Self::Done(Ok(count as usize), payload),
            Ok((error, payload)) if must_begin_again(error) => Self::Again(payload),
            Ok((error, payload)) if -error == libc::EAGAIN => Self::Otherwise(payload),
            Ok((error, payload)) => Self::Done(Err(io::Error::from_raw_os_error(-error)), payload),
            Err((NoRing::Closed, payload)) => Self::Done(Err(closed_error()), payload),
            Err((NoRing::Unusable, payload)) => Self::Otherwise(payload),
        }
    }
}

impl<T: Moves> Evented<T> {
    /// One read into what is not filled.
    async fn read_step<B: OwnedBufMut>(
        &self,
        mut filling: Filling<B>,
    ) -> Answer<usize, Filling<B>> {
        #[cfg(target_os = "linux")]
        while let Some(ring) = Ring::of(self.driver()) {
            let unit = poll_fn(budget::proceed).await;
            match Step::of(read_by(ring, (T::KIND, self.fd()), filling).await) {
                Step::Done(result, filling) => {
                    unit.spend();
                    return (result, filling);
                }
                Step::Again(again) => filling = again,
                Step::Otherwise(again) => {
                    filling = again;
                    break;
                }
            }
        }
        let result = self.async_io(T::READING, |io| io.take(&mut filling)).await;
        (result, filling)
    }

    /// One write of what is behind the first `from` bytes. There is room as a rule, and a plain
    /// call finds it at less cost than a ring: only what has to wait is an operation.
    #[cfg_attr(not(target_os = "linux"), allow(unused_mut, reason = "a ring gives it back"))]
    async fn write_step<B: OwnedBuf>(&self, mut buf: B, from: usize) -> Answer<usize, B> {
        #[cfg(target_os = "linux")]
        loop {
            let unit = poll_fn(budget::proceed).await;
            let written = self.try_io(Interest::WRITABLE, |io| io.give(&buf.as_slice()[from..]));
            if !matches!(&written, Err(why) if why.kind() == io::ErrorKind::WouldBlock) {
                unit.spend();
                return (written, buf);
            }
            let Some(ring) = Ring::of(self.driver()) else { break };
            match Step::of(write_by(ring, (T::KIND, self.fd()), buf, from).await) {
                Step::Done(result, buf) => {
                    unit.spend();
                    return (result, buf);
                }
                Step::Again(again) => buf = again,
                Step::Otherwise(again) => {
                    buf = again;
                    break;
                }
            }
        }
        let result = self.async_io(Interest::WRITABLE, |io| io.give(&buf.as_slice()[from..])).await;
        (result, buf)
    }

    /// Reads once. A stream has nothing to say about no room; a datagram is taken anyway.
    pub(super) async fn read_owned<B: OwnedBufMut>(&self, buf: B) -> Answer<usize, B> {
        let filling = Filling::new(buf);
        if filling.is_full() && T::IS_STREAM {
            // Nothing to wait for; but not for ever without letting others run.
            poll_fn(budget::proceed).await.spend();
            return (Ok(0), filling.finish(true));
        }
        let (result, filling) = self.read_step(filling).await;
        let failed = result.is_err();
        (result, filling.finish(failed))
    }

    pub(super) async fn read_exact_owned<B: OwnedBufMut>(&self, buf: B) -> Answer<usize, B> {
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

    pub(super) async fn write_owned<B: OwnedBuf>(&self, buf: B) -> Answer<usize, B> {
        self.write_step(buf, 0).await
    }

    pub(super) async fn write_all_owned<B: OwnedBuf>(&self, mut buf: B) -> Answer<(), B> {
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

/// `read_owned` and `read_exact_owned`. The example's first part defines `reader` and a
/// `peer` that writes.
macro_rules! owned_reading_methods {
    ($begin:expr) => {
        /// Reads once into a buffer that is given away, and answers how much it was, with
        /// the buffer. Zero is the end, unless the buffer has no room.
        ///
        /// What is read goes to the beginning of the buffer, over what is there: a `Vec`
        /// offers all that it has reserved, and is as long as what was read afterwards; after
        /// an error it is as it was. On Linux the kernel does it by io_uring where it lets us,
        /// and has the buffer meanwhile.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, the kernel is asked to end it, and the buffer
        /// is dropped when it has. It may have read something by then, which is lost. Let it
        /// be a task of its own if others are waited for besides.
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

        /// Reads until the buffer is full, and answers how much that was, with the buffer.
        ///
        /// A `Vec` is full when all that it has reserved is; to read a certain number of
        /// bytes, give a [`slice`](crate::buf::OwnedBuf::slice).
        ///
        /// # Errors
        ///
        /// `UnexpectedEof` if the end comes first. What was read before an error is in the
        /// buffer, and is the length of one that has a length.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, what it has read is lost.
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

/// `write_owned` and `write_all_owned`. The example's first part defines `writer` and a
/// `peer` that reads.
macro_rules! owned_writing_methods {
    ($begin:expr) => {
        /// Writes a buffer that is given away, or a part of it, and answers how much it was,
        /// with the buffer.
        ///
        /// On Linux the kernel does it by io_uring where it lets us, and has the buffer
        /// meanwhile.
        ///
        /// # Errors
        ///
        /// `BrokenPipe` if the other end reads no more.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, the kernel is asked to end it, and the buffer
        /// is dropped when it has. Something may have been written by then, or all.
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

        /// Writes all of a buffer that is given away, and answers with the buffer.
        ///
        /// Two of them at a time may mix their bytes, if they are too many to be written at
        /// once.
        ///
        /// # Errors
        ///
        /// `BrokenPipe` if the other end reads no more. How much was written before an error
        /// is not known.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, a part may have been written, or all.
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

/// `recv_owned` and `send_owned`. The example's first part defines `socket` and `peer`,
/// connected to each other.
macro_rules! owned_datagram_methods {
    ($begin:expr) => {
        /// Receives a datagram into a buffer that is given away, and answers its length, with
        /// the buffer. What does not fit is thrown away.
        ///
        /// It goes to the beginning of the buffer, over what is there: a `Vec` offers all
        /// that it has reserved, and is as long as what was received afterwards; after an
        /// error it is as it was. On Linux the kernel does it by io_uring where it lets us,
        /// and has the buffer meanwhile.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, the kernel is asked to end it, and the buffer
        /// is dropped when it has. It may have received a datagram by then, which is lost.
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

        /// Sends a buffer that is given away as a datagram to the address that the socket is
        /// connected to, and answers its length, with the buffer.
        ///
        /// On Linux the kernel does it by io_uring where it lets us, and has the buffer
        /// meanwhile.
        ///
        /// # Cancel safety
        ///
        /// If it is dropped before it is done, the datagram may have been sent or not.
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
