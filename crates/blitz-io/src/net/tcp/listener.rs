//! A TCP server's door.

#![forbid(unsafe_code)]

use std::{
    io, net,
    net::SocketAddr,
    task::{Context, Poll, ready},
};

use super::{socket::TcpSocket, stream::TcpStream};
use crate::{
    engine::driver::Direction,
    io::Interest,
    net::{
        ToSocketAddrs,
        addr::first_of,
        evented::{self, Evented},
        transfer::internet,
    },
};

/// How many connections wait to be accepted before the kernel refuses more, for a
/// listener that does not say. Tokio's number; the kernel may take less
/// (`net.core.somaxconn`).
pub(in crate::net) const BACKLOG: u32 = 1024;

/// A TCP socket server, listening for connections.
///
/// # Examples
///
/// ```
/// use blitz_io::net::{TcpListener, TcpStream};
///
/// # blitz_io::run(async {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let addr = listener.local_addr()?;
/// let client = blitz_io::spawn(TcpStream::connect(addr));
///
/// let (stream, from) = listener.accept().await?;
/// assert_eq!(client.await??.local_addr()?, from);
/// # drop(stream);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub struct TcpListener {
    io: Evented<net::TcpListener>,
}

std_methods!(
    TcpListener,
    net::TcpListener,
    "```
use std::net;
use blitz_io::net::TcpListener;

# blitz_io::run(async {
let listener = net::TcpListener::bind(\"127.0.0.1:0\")?;
listener.set_nonblocking(true)?;
let listener = TcpListener::from_std(listener)?;

let listener: net::TcpListener = listener.into_std()?;
listener.set_nonblocking(false)?;
# Ok::<(), std::io::Error>(())
# }).unwrap();
```"
);

impl TcpListener {
    /// Makes a listener that is bound to the address.
    ///
    /// Port 0 has the system choose one; see [`local_addr`](Self::local_addr). If the
    /// address stands for several, they are tried one after the other until one can be
    /// bound. The address may be one whose last connections are not quite gone
    /// (`SO_REUSEADDR`, except on Windows, where it means something else); at most 1024
    /// connections wait to be accepted. To have it otherwise, use
    /// [`TcpSocket`](crate::net::TcpSocket).
    ///
    /// # Errors
    ///
    /// The last failure, if no address can be bound; its text has the address.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped before it is done, nothing is bound. For a name, see
    /// [`lookup_host`](crate::net::lookup_host).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpListener;
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let taken = listener.local_addr()?;
    ///
    /// let error = TcpListener::bind(taken).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    /// assert!(error.to_string().contains(&taken.to_string()));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<TcpListener> {
        first_of(addr, |addr| {
            let socket = TcpSocket::for_address(addr)?;
            #[cfg(not(windows))]
            socket.set_reuseaddr(true)?;
            socket.bind(addr)?;
            socket.listen(BACKLOG)
        })
        .await
    }

    /// A socket that listens.
    pub(super) fn listening(socket: net::TcpListener) -> io::Result<TcpListener> {
        Ok(TcpListener { io: Evented::new(socket)? })
    }

    /// Accepts a connection: the stream, and the address of its other end.
    ///
    /// # Errors
    ///
    /// What the kernel says, as it says it. Most of it concerns one connection that was
    /// given up before it was accepted, and the next call goes on. If the process has no
    /// file descriptor left (`EMFILE`), it says that at once, each time: the connection
    /// waits until one is free, and a server that calls again should close something or
    /// wait a while first.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped before it is done, no connection was accepted.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::{TcpListener, TcpStream};
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let (stream, addr) = listener.accept().await?;
    /// assert_eq!(stream.peer_addr()?, addr);
    /// # drop(client);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        accepted(self.io.async_io(Interest::READABLE, evented::accept).await?)
    }

    /// Polls to accept a connection.
    ///
    /// One waker is kept, the last one.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use blitz_io::net::{TcpListener, TcpStream};
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let (_stream, addr) = poll_fn(|cx| listener.poll_accept(cx)).await?;
    /// assert_eq!(client.local_addr()?, addr);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        Poll::Ready(accepted(ready!(self.io.poll_io(cx, Direction::Read, evented::accept))?))
    }

    /// Answers the address that it is bound to.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpListener;
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// How many routers a packet of its connections may pass (`IP_TTL`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpListener;
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// listener.set_ttl(100)?;
    /// assert_eq!(listener.ttl()?, 100);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.ttl()
    }

    /// Sets how many routers a packet of its connections may pass (`IP_TTL`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpListener;
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// listener.set_ttl(100)?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }
}

fn accepted(
    (socket, address): (socket2::Socket, socket2::SockAddr),
) -> io::Result<(TcpStream, SocketAddr)> {
    Ok((TcpStream::accepted(socket.into())?, internet(&address)?))
}
