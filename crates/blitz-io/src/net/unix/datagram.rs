//! Datagram socket between processes of one machine.

#![forbid(unsafe_code)]

use std::{
    io,
    net::Shutdown,
    os::unix::net,
    path::Path,
    task::{Context, Poll},
};

use socket2::{Domain, Type};

use super::{SocketAddr, addr};
#[cfg(feature = "io-util")]
use crate::net::raw::Chunk;
use crate::{
    engine::driver::Direction,
    io::{Interest, Ready},
    net::{
        evented::{self, Evented},
        raw::Destination,
        transfer::{Datagrams, NO_FLAGS},
    },
};

/// Begins examples: defines two sockets, connected to each other.
macro_rules! datagram_pair {
    () => {
        "use blitz_io::net::UnixDatagram;

# blitz_io::run(async {
let (socket, peer) = UnixDatagram::pair()?;"
    };
}

/// Begins examples: defines a socket with a path, and one without.
macro_rules! datagram_at {
    () => {
        concat!(
            in_folder!("UnixDatagram"),
            "\nlet path = dir.join(\"socket\");\nlet socket = UnixDatagram::bind(&path)?;\n",
            "let peer = UnixDatagram::unbound()?;"
        )
    };
}

/// A Unix datagram socket, for messages between processes of one machine.
///
/// A socket exchanges messages with sockets at other paths by [`send_to`](Self::send_to) and
/// [`recv_from`](Self::recv_from), or with the socket that it is connected to by
/// [`send`](Self::send) and [`recv`](Self::recv). Messages are neither lost nor reordered:
/// sending waits until there is room. Bytes that do not fit into the receiver's buffer are
/// discarded.
///
/// # Examples
///
#[doc = concat!("```\n", datagram_at!())]
/// peer.send_to(b"hello", &path).await?;
///
/// let mut buf = [0; 16];
/// let (count, from) = socket.recv_from(&mut buf).await?;
/// assert_eq!(&buf[..count], b"hello");
/// assert!(from.is_unnamed());
#[doc = example_end!()]
pub struct UnixDatagram {
    io: Evented<net::UnixDatagram>,
}

std_methods!(
    UnixDatagram,
    net::UnixDatagram,
    "```
use std::os::unix::net;
use blitz_io::net::UnixDatagram;

# blitz_io::run(async {
let (socket, _peer) = net::UnixDatagram::pair()?;
socket.set_nonblocking(true)?;
let socket = UnixDatagram::from_std(socket)?;

let socket: net::UnixDatagram = socket.into_std()?;
socket.set_nonblocking(false)?;
# Ok::<(), std::io::Error>(())
# }).unwrap();
```"
);

impl UnixDatagram {
    /// Creates a socket that is bound to the path.
    ///
    /// For a name in the abstract namespace (on Linux) use
    /// [`UnixSocket::bind`](crate::net::UnixSocket::bind): here, as on Tokio, a path must not
    /// contain zero bytes.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if the path cannot be bound.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixDatagram"))]
    /// let socket = UnixDatagram::bind(dir.join("socket"))?;
    /// # drop(socket);
    #[doc = example_end!()]
    #[track_caller]
    pub fn bind<P>(path: P) -> io::Result<UnixDatagram>
    where
        P: AsRef<Path>,
    {
        let path = path.as_ref();
        let socket = evented::open(Domain::UNIX, Type::DGRAM, None)?;
        addr::of_path(path).and_then(|address| socket.bind(&address))?;
        Self::of(socket.into())
    }

    /// Creates two sockets that are connected to each other.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_pair!())]
    /// socket.send(b"hello").await?;
    /// assert_eq!(peer.recv(&mut [0; 16]).await?, 5);
    #[doc = example_end!()]
    #[track_caller]
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (one, other) = evented::open_pair(Type::DGRAM)?;
        let one = Evented::new_ready(one.into(), Ready::WRITABLE)?;
        let other = Evented::new_ready(other.into(), Ready::WRITABLE)?;
        Ok((UnixDatagram { io: one }, UnixDatagram { io: other }))
    }

    /// Creates a socket that is not bound to an address: it can send, but no socket can reply to
    /// it.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// peer.send_to(b"hello", &path).await?;
    /// # drop(socket);
    #[doc = example_end!()]
    #[track_caller]
    pub fn unbound() -> io::Result<UnixDatagram> {
        Self::of(evented::open(Domain::UNIX, Type::DGRAM, None)?.into())
    }

    #[track_caller]
    pub(super) fn of(socket: net::UnixDatagram) -> io::Result<UnixDatagram> {
        Ok(UnixDatagram { io: Evented::new(socket)? })
    }

    /// Connects the socket: [`send`](Self::send) sends to this path, and only messages from there
    /// are received.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be connected to the path.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// peer.connect(&path)?;
    /// peer.send(b"hello").await?;
    /// # drop(socket);
    #[doc = example_end!()]
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let path = path.as_ref();
        addr::of_path(path).and_then(|address| Datagrams::socket(&*self.io).connect(&address))
    }

    datagram_methods!(datagram_pair!(), Interest::READABLE);
    owned_datagram_methods!(datagram_pair!());
    datagram_from_methods!(datagram_pair!(), Interest::READABLE, SocketAddr, "addr.is_unnamed()");

    /// Sends a datagram to the socket at the path, and returns the number of bytes sent.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing was sent.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// assert_eq!(peer.send_to(b"hello", &path).await?, 5);
    /// # drop(socket);
    #[doc = example_end!()]
    pub async fn send_to<P>(&self, buf: &[u8], target: P) -> io::Result<usize>
    where
        P: AsRef<Path>,
    {
        let target = addr::of_path(target.as_ref())?;
        self.io.async_io(Interest::WRITABLE, |io| Datagrams::send_to(io, buf, &target)).await
    }

    /// Tries to send a datagram to the socket at the path without waiting, and returns the number
    /// of bytes sent.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room for the datagram.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// peer.writable().await?;
    /// assert_eq!(peer.try_send_to(b"hello", &path)?, 5);
    /// # drop(socket);
    #[doc = example_end!()]
    pub fn try_send_to<P>(&self, buf: &[u8], target: P) -> io::Result<usize>
    where
        P: AsRef<Path>,
    {
        let target = addr::of_path(target.as_ref())?;
        self.io.try_io(Interest::WRITABLE, |io| Datagrams::send_to(io, buf, &target))
    }

    /// Polls to send a datagram to the socket at the path.
    ///
    /// The socket stores one waker for sending, that of the most recent call.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\n", datagram_at!())]
    /// assert_eq!(poll_fn(|cx| peer.poll_send_to(cx, b"hello", &path)).await?, 5);
    /// # drop(socket);
    #[doc = example_end!()]
    pub fn poll_send_to<P>(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: P,
    ) -> Poll<io::Result<usize>>
    where
        P: AsRef<Path>,
    {
        let target = addr::of_path(target.as_ref())?;
        self.io.poll_io(cx, Direction::Write, |io| Datagrams::send_to(io, buf, &target))
    }

    /// Returns the local address that the socket is bound to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// assert_eq!(socket.local_addr()?.as_pathname(), Some(path.as_path()));
    /// assert!(peer.local_addr()?.is_unnamed());
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr::from)
    }

    /// Returns the address that the socket is connected to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// peer.connect(&path)?;
    /// assert_eq!(peer.peer_addr()?.as_pathname(), Some(path.as_path()));
    /// # drop(socket);
    #[doc = example_end!()]
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr().map(SocketAddr::from)
    }

    /// Shuts down one direction or both: sending then fails, and receiving returns zero bytes.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_pair!())]
    /// socket.shutdown(std::net::Shutdown::Both)?;
    /// assert!(peer.send(b"hello").await.is_err());
    #[doc = example_end!()]
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.shutdown(how)
    }
}
