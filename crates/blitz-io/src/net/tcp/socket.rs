//! TCP socket that is neither connected nor listening yet.

#![forbid(unsafe_code)]

use std::{fmt, io, net, net::SocketAddr, time::Duration};

use socket2::{Domain, Protocol, Socket, Type};

use super::{listener::TcpListener, stream::TcpStream};
use crate::net::{evented, transfer::internet};

/// A TCP socket before it becomes a [`TcpStream`] or a [`TcpListener`].
///
/// Use this to set options before [`connect`](Self::connect) or [`listen`](Self::listen);
/// [`TcpStream::connect`] and [`TcpListener::bind`] do what most programs need.
///
/// # Examples
///
/// ```
/// use blitz_io::net::TcpSocket;
///
/// # blitz_io::run(async {
/// let socket = TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// socket.bind("127.0.0.1:0".parse().unwrap())?;
/// let listener = socket.listen(128)?;
///
/// let stream = TcpSocket::new_v4()?.connect(listener.local_addr()?).await?;
/// # drop(stream);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub struct TcpSocket {
    inner: Socket,
}

impl TcpSocket {
    /// Creates an IPv4 socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// # drop(socket);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_v4() -> io::Result<TcpSocket> {
        Self::new(Domain::IPV4)
    }

    /// Creates an IPv6 socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v6()?;
    /// # drop(socket);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_v6() -> io::Result<TcpSocket> {
        Self::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<TcpSocket> {
        let inner = evented::open(domain, Type::STREAM, Some(Protocol::TCP))?;
        Ok(TcpSocket { inner })
    }

    /// Creates a socket of the address's family.
    pub(super) fn for_address(address: SocketAddr) -> io::Result<TcpSocket> {
        Self::new(Domain::for_address(address))
    }

    pub(in crate::net) fn from_socket(inner: Socket) -> TcpSocket {
        TcpSocket { inner }
    }

    /// Sets whether the kernel probes an idle connection for a dead peer (`SO_KEEPALIVE`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_keepalive(true)?;
    /// assert!(socket.keepalive()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.inner.set_keepalive(keepalive)
    }

    /// Returns whether the kernel probes an idle connection for a dead peer (`SO_KEEPALIVE`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_keepalive(true)?;
    /// assert!(socket.keepalive()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn keepalive(&self) -> io::Result<bool> {
        self.inner.keepalive()
    }

    /// Sets whether the socket may bind an address with connections that are not quite closed
    /// (`SO_REUSEADDR`).
    ///
    /// The option differs between systems: on Windows it also allows an address that another
    /// socket listens on.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_reuseaddr(true)?;
    /// assert!(socket.reuseaddr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.inner.set_reuse_address(reuseaddr)
    }

    /// Returns whether the socket may bind an address with connections that are not quite closed
    /// (`SO_REUSEADDR`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_reuseaddr(true)?;
    /// assert!(socket.reuseaddr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.inner.reuse_address()
    }

    /// Sets whether several sockets may bind the same address (`SO_REUSEPORT`).
    ///
    /// All of these sockets must set it. Linux distributes the connections among them.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_reuseport(true)?;
    /// assert!(socket.reuseport()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos"))))]
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.inner.set_reuse_port(reuseport)
    }

    /// Returns whether several sockets may bind the same address (`SO_REUSEPORT`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_reuseport(true)?;
    /// assert!(socket.reuseport()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos"))))]
    pub fn reuseport(&self) -> io::Result<bool> {
        self.inner.reuse_port()
    }

    /// Sets whether small writes are sent immediately (`TCP_NODELAY`), instead of being collected
    /// while earlier ones are unacknowledged.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_nodelay(true)?;
    /// assert!(socket.nodelay()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.inner.set_tcp_nodelay(nodelay)
    }

    /// Returns whether small writes are sent immediately (`TCP_NODELAY`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_nodelay(true)?;
    /// assert!(socket.nodelay()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inner.tcp_nodelay()
    }

    /// Sets the traffic class of sent packets (`IPV6_TCLASS`) of an IPv6 socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v6()?;
    /// socket.set_tclass_v6(96)?;
    /// assert_eq!(socket.tclass_v6()?, 96);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(any(
        target_os = "android",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "linux",
        target_os = "macos",
        target_os = "netbsd",
        target_os = "openbsd",
    ))]
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.inner.set_tclass_v6(tclass)
    }

    /// Returns the traffic class of sent packets (`IPV6_TCLASS`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v6()?;
    /// socket.set_tclass_v6(96)?;
    /// assert_eq!(socket.tclass_v6()?, 96);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(any(
        target_os = "android",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "linux",
        target_os = "macos",
        target_os = "netbsd",
        target_os = "openbsd",
    ))]
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.inner.tclass_v6()
    }

    /// Sets the type of service of sent packets (`IP_TOS`) of an IPv4 socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_tos_v4(96)?;
    /// assert_eq!(socket.tos_v4()?, 96);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(not(any(target_os = "redox", target_os = "solaris", target_os = "illumos")))]
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.inner.set_tos_v4(tos)
    }

    /// Returns the type of service of sent packets (`IP_TOS`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_tos_v4(96)?;
    /// assert_eq!(socket.tos_v4()?, 96);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(not(any(target_os = "redox", target_os = "solaris", target_os = "illumos")))]
    pub fn tos_v4(&self) -> io::Result<u32> {
        self.inner.tos_v4()
    }

    /// Sets the size of the kernel's send buffer (`SO_SNDBUF`).
    ///
    /// The size is a hint: Linux doubles it for its own needs, and there is a limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_send_buffer_size(16 * 1024)?;
    /// assert!(socket.send_buffer_size()? >= 16 * 1024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.inner.set_send_buffer_size(size as usize)
    }

    /// Returns the size of the kernel's send buffer (`SO_SNDBUF`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// assert!(TcpSocket::new_v4()?.send_buffer_size()? > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        Ok(self.inner.send_buffer_size()?.try_into().unwrap_or(u32::MAX))
    }

    /// Sets the size of the kernel's receive buffer (`SO_RCVBUF`).
    ///
    /// The size is a hint: Linux doubles it for its own needs, and there is a limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_recv_buffer_size(16 * 1024)?;
    /// assert!(socket.recv_buffer_size()? >= 16 * 1024);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.inner.set_recv_buffer_size(size as usize)
    }

    /// Returns the size of the kernel's receive buffer (`SO_RCVBUF`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// assert!(TcpSocket::new_v4()?.recv_buffer_size()? > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        Ok(self.inner.recv_buffer_size()?.try_into().unwrap_or(u32::MAX))
    }

    /// Returns the type of service; deprecated name of [`tos_v4`](Self::tos_v4).
    #[doc(hidden)]
    #[deprecated(
        note = "`tos` related methods have been renamed `tos_v4` since they are IPv4-specific."
    )]
    #[cfg(not(any(target_os = "redox", target_os = "solaris", target_os = "illumos")))]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// Sets the type of service; deprecated name of [`set_tos_v4`](Self::set_tos_v4).
    #[doc(hidden)]
    #[deprecated(
        note = "`tos` related methods have been renamed `tos_v4` since they are IPv4-specific."
    )]
    #[cfg(not(any(target_os = "redox", target_os = "solaris", target_os = "illumos")))]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }

    /// Sets how long closing waits for unsent data (`SO_LINGER`).
    ///
    /// The drop of the stream blocks for that time, and with it the worker on which it happens;
    /// so only [`set_zero_linger`](Self::set_zero_linger) is harmless.
    ///
    /// # Examples
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use blitz_io::net::TcpSocket;
    ///
    /// TcpSocket::new_v4()?.set_linger(None)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[deprecated = "`SO_LINGER` causes the socket to block the thread on drop"]
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.inner.set_linger(dur)
    }

    /// Makes closing reset the connection instead of ending it in order (`SO_LINGER` of zero):
    /// unsent data are discarded, and the other end gets an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_zero_linger()?;
    /// assert_eq!(socket.linger()?, Some(Duration::ZERO));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.inner.set_linger(Some(Duration::ZERO))
    }

    /// Returns how long closing waits for unsent data (`SO_LINGER`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// assert_eq!(TcpSocket::new_v4()?.linger()?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.inner.linger()
    }

    /// Returns the name of the interface that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// assert_eq!(TcpSocket::new_v4()?.device()?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        self.inner.device()
    }

    /// Binds the socket to an interface by its name (`SO_BINDTODEVICE`), or to none.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use blitz_io::net::TcpSocket;
    ///
    /// TcpSocket::new_v4()?.bind_device(Some(b"eth0"))?; // may need a privilege
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        self.inner.bind_device(interface)
    }

    /// Returns the local address that the socket is bound to.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// assert!(socket.local_addr()?.ip().is_loopback());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(&self.inner.local_addr()?)
    }

    /// Returns the pending error of this socket (`SO_ERROR`), if there is one, and clears it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// assert!(TcpSocket::new_v4()?.take_error()?.is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.inner.take_error()
    }

    /// Binds the socket to an address.
    ///
    /// # Errors
    ///
    /// Fails if the address is taken, is not one of this machine, or is not of the socket's
    /// family.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.inner.bind(&addr.into())
    }

    /// Connects the socket to the address of a remote host.
    ///
    /// # Errors
    ///
    /// Returns the error of the failed attempt.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the attempt ends and the socket is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::{TcpListener, TcpSocket};
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let stream = TcpSocket::new_v4()?.connect(listener.local_addr()?).await?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        evented::start_connecting(&self.inner, &addr.into())?;
        TcpStream::connecting(self.inner.into()).await
    }

    /// Turns the socket into a listener with room for `backlog` connections that wait to be
    /// accepted.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if the kernel refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// # blitz_io::run(async {
    /// let socket = TcpSocket::new_v4()?;
    /// socket.bind("127.0.0.1:0".parse().unwrap())?;
    /// let listener = socket.listen(1024)?;
    /// # drop(listener);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.inner.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        TcpListener::listening(self.inner.into())
    }

    /// Creates a socket from a stream of the standard library, in any state.
    ///
    /// The stream should be in non-blocking mode; no method of `TcpSocket` changes its mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::TcpSocket;
    ///
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// stream.set_nonblocking(true)?;
    /// let socket = TcpSocket::from_std_stream(stream);
    /// socket.set_nodelay(true)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std_stream(std_stream: net::TcpStream) -> TcpSocket {
        TcpSocket { inner: std_stream.into() }
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

raw_socket!(TcpSocket);
