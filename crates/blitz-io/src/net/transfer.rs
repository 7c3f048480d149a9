//! Transfers bytes and datagrams between memory and the kernel, with one system call each.
//!
//! A call that a signal interrupted is repeated immediately, because no caller could do better.
//! No call on a socket raises SIGPIPE: where the platform has a flag for that, each call passes
//! it; elsewhere the sockets were created such that they raise no signal.

#![forbid(unsafe_code)]

use std::{
    ffi::c_int,
    io::{self, IoSlice, IoSliceMut, Read},
    net,
};

use socket2::{SockAddr, SockRef};

use super::{
    evented::Source,
    nonblocking::NO_SIGNAL,
    raw::{self, KernelBuf},
};

/// No flags: a plain receive.
pub(super) const NO_FLAGS: c_int = 0;

/// Flag that leaves the received bytes in the queue.
#[cfg(unix)]
pub(super) const PEEK: c_int = libc::MSG_PEEK;
/// Flag that leaves the received bytes in the queue. The number is Winsock's `MSG_PEEK`.
#[cfg(not(unix))]
pub(super) const PEEK: c_int = 2;

/// Maximum number of pieces that one call takes: `IOV_MAX` of Linux and the BSDs. More pieces are
/// an error there, and writing only a part is allowed.
const MAX_IOVECS: usize = 1024;

/// Repeats a call until no signal interrupts it.
#[inline]
pub(super) fn retry_interrupted<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Returns as many of `pieces` as one call takes.
#[inline]
pub(super) fn first_iovecs<'a, 'b>(pieces: &'a [IoSlice<'b>]) -> &'a [IoSlice<'b>] {
    &pieces[..pieces.len().min(MAX_IOVECS)]
}

/// Returns whether `writev` would have nothing to write. The kernel returns zero for such a call
/// without reaching the socket, whereas `sendmsg` fails after a shutdown, and sends an empty
/// packet if the socket preserves message boundaries. Tokio calls `writev`, and we call
/// `sendmsg`, because it raises no signal. On Windows both make the same call.
#[inline]
fn is_empty_write(pieces: &[IoSlice<'_>]) -> bool {
    cfg!(unix) && pieces.iter().all(|piece| piece.is_empty())
}

/// Descriptor that carries a stream of bytes.
pub(crate) trait Bytes: Source {
    /// True if a read that did not fill its memory has taken all bytes there were. Then the next
    /// read can wait for the next edge, without a call that would only return `WouldBlock`.
    const SHORT_READ_IS_ALL: bool;
    /// True if a write that took only a part has left no room. Then the next write can wait for
    /// the next edge in the same way.
    const SHORT_WRITE_IS_ALL: bool;

    fn read(&self, room: &mut KernelBuf<'_>) -> io::Result<usize>;
    fn read_vectored(&self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Writes at most as many pieces as [`first_iovecs`] returns.
    fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
}

macro_rules! stream_sockets {
    ($($(#[$meta:meta])* $socket:ty: $short_read_is_all:literal),* $(,)?) => {$(
        $(#[$meta])*
        impl Bytes for $socket {
            const SHORT_READ_IS_ALL: bool = $short_read_is_all;
            const SHORT_WRITE_IS_ALL: bool = true;

            #[inline]
            fn read(&self, room: &mut KernelBuf<'_>) -> io::Result<usize> {
                retry_interrupted(|| room.recv(&SockRef::from(self), NO_FLAGS))
            }

            #[inline]
            fn read_vectored(&self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                retry_interrupted(|| { let mut socket = self; Read::read_vectored(&mut socket, pieces) })
            }

            #[inline]
            fn write(&self, bytes: &[u8]) -> io::Result<usize> {
                retry_interrupted(|| raw::send(&SockRef::from(self), bytes, NO_SIGNAL))
            }

            #[inline]
            fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
                let pieces = first_iovecs(pieces);
                if is_empty_write(pieces) {
                    return Ok(0);
                }
                retry_interrupted(|| SockRef::from(self).send_vectored_with_flags(pieces, NO_SIGNAL))
            }
        }
    )*};
}

stream_sockets!(
    net::TcpStream: true,
    #[cfg(unix)]
    // A read ends after bytes that came with descriptors, or from another sender.
    std::os::unix::net::UnixStream: false,
);

/// Pipes. A `File` may be any descriptor that the user passed as a pipe: a read of a terminal
/// returns a line at a time, that of a pipe in packet mode a packet, so a short read says nothing
/// about what is left.
#[cfg(unix)]
impl Bytes for std::fs::File {
    const SHORT_READ_IS_ALL: bool = false;
    const SHORT_WRITE_IS_ALL: bool = false;

    #[inline]
    fn read(&self, room: &mut KernelBuf<'_>) -> io::Result<usize> {
        use std::os::fd::AsFd;
        retry_interrupted(|| room.read(self.as_fd()))
    }

    #[inline]
    fn read_vectored(&self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut file = self;
        retry_interrupted(|| Read::read_vectored(&mut file, pieces))
    }

    #[inline]
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self;
        retry_interrupted(|| io::Write::write(&mut file, bytes))
    }

    #[inline]
    fn write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut file = self;
        retry_interrupted(|| io::Write::write_vectored(&mut file, first_iovecs(pieces)))
    }
}

/// Socket that sends and receives messages with an address each.
pub(crate) trait Datagrams: Source {
    /// Type of the addresses of this family.
    type Address;

    fn address(raw: &SockAddr) -> io::Result<Self::Address>;

    /// Returns this socket as `socket2` sees it.
    fn socket(&self) -> SockRef<'_>;

    #[inline]
    fn recv(&self, room: &mut KernelBuf<'_>, flags: c_int) -> io::Result<usize> {
        retry_interrupted(|| room.recv(&self.socket(), flags))
    }

    #[inline]
    fn recv_from(
        &self,
        room: &mut KernelBuf<'_>,
        flags: c_int,
    ) -> io::Result<(usize, Self::Address)> {
        let (count, address) = retry_interrupted(|| room.recv_from(&self.socket(), flags))?;
        Ok((count, Self::address(&address)?))
    }

    #[inline]
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        retry_interrupted(|| raw::send(&self.socket(), bytes, NO_SIGNAL))
    }

    #[inline]
    fn send_to(&self, bytes: &[u8], address: &SockAddr) -> io::Result<usize> {
        retry_interrupted(|| self.socket().send_to_with_flags(bytes, address, NO_SIGNAL))
    }
}

/// Converts the kernel's form of an address to an internet address. A socket of that family
/// reports only such addresses.
pub(super) fn internet(raw: &SockAddr) -> io::Result<net::SocketAddr> {
    raw.as_socket().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "invalid address family (not IPv4 or IPv6): the socket is of another kind",
        )
    })
}

impl Datagrams for net::UdpSocket {
    type Address = net::SocketAddr;

    #[inline]
    fn address(raw: &SockAddr) -> io::Result<net::SocketAddr> {
        internet(raw)
    }

    #[inline]
    fn socket(&self) -> SockRef<'_> {
        SockRef::from(self)
    }
}

#[cfg(unix)]
impl Datagrams for std::os::unix::net::UnixDatagram {
    type Address = super::unix::SocketAddr;

    #[inline]
    fn address(raw: &SockAddr) -> io::Result<super::unix::SocketAddr> {
        Ok(super::unix::SocketAddr::from_raw(raw))
    }

    #[inline]
    fn socket(&self) -> SockRef<'_> {
        SockRef::from(self)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::retry_interrupted;

    #[test]
    fn an_interrupted_call_is_made_again() {
        let mut results =
            [Err(io::ErrorKind::Interrupted.into()), Err(io::ErrorKind::Interrupted.into()), Ok(3)]
                .into_iter();
        assert_eq!(retry_interrupted(|| results.next().unwrap()).unwrap(), 3);
        assert_eq!(results.len(), 0);
    }
}
