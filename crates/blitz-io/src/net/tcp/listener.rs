//! TCP listener: accepts connections.

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

/// Default limit of connections that wait to be accepted before the kernel takes no more;
/// [`TcpSocket::listen`] sets another. Tokio's default was the same until mio 1.2, which uses
/// 128, as the standard library does. A burst of more connections than the limit makes clients
/// wait for a second before they retry, so the larger number stays; the kernel may lower it
/// (`net.core.somaxconn`).
const BACKLOG: u32 = 1024;

/// A TCP socket that listens for connections and accepts them.
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
    /// Creates a listener that is bound to the address.
    ///
    /// With port 0 the system chooses a port; [`local_addr`](Self::local_addr) returns it. If
    /// `addr` resolves to several addresses, they are tried in order until one can be bound. An
    /// address with connections that are not quite closed (in `TIME_WAIT`) can be bound
    /// (`SO_REUSEADDR`, except on Windows, where the option means something else). At most 1024
    /// connections wait to be accepted. For other options use
    /// [`TcpSocket`](crate::net::TcpSocket).
    ///
    /// # Errors
    ///
    /// Returns the last failure if no address can be bound.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is bound. If `addr` is a name, see
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
    /// # #[cfg(unix)]
    /// assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE));
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

    /// Registers a socket that listens already.
    pub(super) fn listening(socket: net::TcpListener) -> io::Result<TcpListener> {
        Ok(TcpListener { io: Evented::new(socket)? })
    }

    /// Accepts a connection, and returns its stream and the address of its other end.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error unchanged. Most errors concern one connection that was aborted
    /// before it was accepted, so the next call can succeed. If the process has no file
    /// descriptor left (`EMFILE`), each call fails immediately: the connection waits until a
    /// descriptor is free, so a server should close something or wait a while before it calls
    /// again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, no connection was accepted.
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
    /// The listener stores one waker, that of the most recent call.
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

    /// Returns the local address that the listener is bound to.
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

    /// Returns the time to live of packets of accepted connections (`IP_TTL`): how many routers
    /// they may pass.
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

    /// Sets the time to live of packets of accepted connections (`IP_TTL`): how many routers they
    /// may pass.
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
