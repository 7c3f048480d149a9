//! Datagrams between processes of one machine.

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
        error,
        evented::{self, Evented},
        raw::Destination,
        transfer::{Datagrams, PLAIN},
    },
};

/// The first part of examples: two sockets, connected to each other.
macro_rules! datagram_pair {
    () => {
        "use blitz_io::net::UnixDatagram;

# blitz_io::run(async {
let (socket, peer) = UnixDatagram::pair()?;"
    };
}

/// The first part of examples: a socket with a path, and one without.
macro_rules! datagram_at {
    () => {
        concat!(
            in_folder!("UnixDatagram"),
            "\nlet path = dir.join(\"socket\");\nlet socket = UnixDatagram::bind(&path)?;\n",
            "let peer = UnixDatagram::unbound()?;"
        )
    };
}

/// An I/O object representing a Unix datagram socket.
///
/// It exchanges messages with others at a path by [`send_to`](Self::send_to) and
/// [`recv_from`](Self::recv_from), or with the one that it is connected to by
/// [`send`](Self::send) and [`recv`](Self::recv). Messages are neither lost nor put out
/// of order: who sends waits until there is room. What does not fit into the buffer of
/// who receives is thrown away.
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
    /// Makes a socket that is bound to the path.
    ///
    /// On Linux a path that begins with a zero byte is a name in the abstract namespace.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If that fails; the text has the path.
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
        addr::raw(path)
            .and_then(|address| socket.bind(&address))
            .map_err(|cause| error::at("bind to", addr::shown(path), cause))?;
        Self::of(socket.into())
    }

    /// Makes two sockets that are connected to each other.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
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
        let one = Evented::new_open(one.into(), Ready::WRITABLE)?;
        let other = Evented::new_open(other.into(), Ready::WRITABLE)?;
        Ok((UnixDatagram { io: one }, UnixDatagram { io: other }))
    }

    /// Makes a socket that is bound to nothing: it can send, and be answered by none.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
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

    /// Connects the socket: [`send`](Self::send) sends to this path, and only what comes
    /// from there is received.
    ///
    /// # Errors
    ///
    /// If that fails; the text has the path.
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
        addr::raw(path)
            .and_then(|address| Datagrams::socket(&*self.io).connect(&address))
            .map_err(|cause| error::at("connect to", addr::shown(path), cause))
    }

    datagram_methods!(datagram_pair!(), Interest::READABLE);
    owned_datagram_methods!(datagram_pair!());
    datagram_from_methods!(datagram_pair!(), Interest::READABLE, SocketAddr, "addr.is_unnamed()");

    /// Sends a datagram to the socket at the path, and answers its length.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped before it is done, nothing was sent.
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
        let target = addr::raw(target.as_ref())?;
        self.io.async_io(Interest::WRITABLE, |io| Datagrams::send_to(io, buf, &target)).await
    }

    /// Sends a datagram to the socket at the path if there is room for it now.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is no room.
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
        let target = addr::raw(target.as_ref())?;
        self.io.try_io(Interest::WRITABLE, |io| Datagrams::send_to(io, buf, &target))
    }

    /// Polls to send a datagram to the socket at the path.
    ///
    /// One waker is kept for sending, the last one.
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
        let target = addr::raw(target.as_ref())?;
        self.io.poll_io(cx, Direction::Write, |io| Datagrams::send_to(io, buf, &target))
    }

    /// Answers the address that it is bound to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// assert_eq!(socket.local_addr()?.as_pathname(), Some(path.as_path()));
    /// assert!(peer.local_addr()?.is_unnamed());
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// Answers the address that it is connected to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", datagram_at!())]
    /// peer.connect(&path)?;
    /// assert_eq!(peer.peer_addr()?.as_pathname(), Some(path.as_path()));
    /// # drop(socket);
    #[doc = example_end!()]
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr().map(SocketAddr)
    }

    /// Ends one direction, or both: sending then fails, and receiving answers with
    /// nothing.
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
