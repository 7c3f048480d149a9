//! UDP socket.

#![forbid(unsafe_code)]

use std::{
    io, net,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    task::{Context, Poll},
};

use socket2::{Domain, Protocol, SockRef, Type};

#[cfg(feature = "io-util")]
use super::raw::Chunk;
use super::{
    ToSocketAddrs,
    addr::{first_of, resolve},
    evented::{self, Evented},
    raw::Destination,
    transfer::{Datagrams, NO_FLAGS, PEEK, internet, retry_interrupted},
};
use crate::{
    engine::driver::Direction,
    io::{Interest, ReadBuf},
};

/// Interest for receives: a datagram, or a pending ICMP error from an earlier send.
pub(super) const RECEIVING: Interest = Interest::READABLE.add(Interest::ERROR);

/// Begins examples: defines two sockets, connected to each other.
macro_rules! udp_pair {
    () => {
        "use blitz_io::net::UdpSocket;

# blitz_io::run(async {
let socket = UdpSocket::bind(\"127.0.0.1:0\").await?;
let peer = UdpSocket::bind(\"127.0.0.1:0\").await?;
let from = peer.local_addr()?;
socket.connect(from).await?;
peer.connect(socket.local_addr()?).await?;"
    };
}

/// Begins examples about one IPv4 socket.
macro_rules! udp_one {
    () => {
        "use blitz_io::net::UdpSocket;

# blitz_io::run(async {
let socket = UdpSocket::bind(\"127.0.0.1:0\").await?;"
    };
}

/// Begins examples about one IPv6 socket.
macro_rules! udp_one_v6 {
    () => {
        "use blitz_io::net::UdpSocket;

# blitz_io::run(async {
let socket = UdpSocket::bind(\"[::1]:0\").await?;"
    };
}

/// A UDP socket.
///
/// UDP has no connections: one socket exchanges datagrams with many others by
/// [`send_to`](Self::send_to) and [`recv_from`](Self::recv_from), or, once it is
/// [`connect`](Self::connect)ed, with one other by [`send`](Self::send) and [`recv`](Self::recv).
/// Every method takes `&self`, so tasks can share a socket in an `Arc`.
///
/// Each receive takes one whole datagram: bytes that do not fit into the buffer are discarded,
/// not kept for the next receive.
///
/// # Examples
///
/// ```
/// use blitz_io::net::UdpSocket;
///
/// # blitz_io::run(async {
/// let server = UdpSocket::bind("127.0.0.1:0").await?;
/// let client = UdpSocket::bind("127.0.0.1:0").await?;
/// client.send_to(b"hello", server.local_addr()?).await?;
///
/// let mut buf = [0; 1500];
/// let (count, from) = server.recv_from(&mut buf).await?;
/// assert_eq!((&buf[..count], from), (&b"hello"[..], client.local_addr()?));
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub struct UdpSocket {
    io: Evented<net::UdpSocket>,
}

std_methods!(
    UdpSocket,
    net::UdpSocket,
    "```
use std::net;
use blitz_io::net::UdpSocket;

# blitz_io::run(async {
let socket = net::UdpSocket::bind(\"127.0.0.1:0\")?;
socket.set_nonblocking(true)?;
let socket = UdpSocket::from_std(socket)?;

let socket: net::UdpSocket = socket.into_std()?;
socket.set_nonblocking(false)?;
# Ok::<(), std::io::Error>(())
# }).unwrap();
```"
);

impl UdpSocket {
    /// Creates a socket that is bound to the address.
    ///
    /// With port 0 the system chooses a port; [`local_addr`](Self::local_addr) returns it. If
    /// `addr` resolves to several addresses, they are tried in order until one can be bound.
    ///
    /// # Errors
    ///
    /// Returns the last failure if no address can be bound.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is bound. If `addr` is a name, see
    /// [`lookup_host`](super::lookup_host).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::UdpSocket;
    ///
    /// # blitz_io::run(async {
    /// let socket = UdpSocket::bind("127.0.0.1:0").await?;
    /// let error = UdpSocket::bind(socket.local_addr()?).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<UdpSocket> {
        first_of(addr, |addr| {
            let domain = Domain::for_address(addr);
            let socket = evented::open(domain, Type::DGRAM, Some(Protocol::UDP))?;
            socket.bind(&addr.into())?;
            Ok(UdpSocket { io: Evented::new(socket.into())? })
        })
        .await
    }

    /// Returns the local address that the socket is bound to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// assert_ne!(socket.local_addr()?.port(), 0);
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Returns the address that the socket is connected to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// assert_eq!(socket.peer_addr()?, peer.local_addr()?);
    #[doc = example_end!()]
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr()
    }

    /// Connects the socket: [`send`](Self::send) sends to this address, and only datagrams from
    /// there are received.
    ///
    /// If `addr` resolves to several addresses, the first that the system accepts is used. The
    /// peer is not contacted.
    ///
    /// # Errors
    ///
    /// Returns the last failure if the system accepts no address.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, the socket is unchanged. If `addr` is a
    /// name, see [`lookup_host`](super::lookup_host).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// let peer = UdpSocket::bind("127.0.0.1:0").await?;
    /// socket.connect(peer.local_addr()?).await?;
    /// assert_eq!(socket.send(b"hello").await?, 5);
    #[doc = example_end!()]
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        first_of(addr, |addr| self.io.connect(addr)).await
    }

    datagram_methods!(udp_pair!(), RECEIVING);
    owned_datagram_methods!(udp_pair!());
    datagram_from_methods!(udp_pair!(), RECEIVING, SocketAddr, "addr == from");

    /// Sends a datagram to the address, and returns the number of bytes sent.
    ///
    /// If `addr` resolves to several addresses, the first is used.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error; `InvalidInput` if there is no address.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing was sent.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// let addr = socket.local_addr()?;
    /// assert_eq!(socket.send_to(b"hello", addr).await?, 5); // to itself
    #[doc = example_end!()]
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        let target = resolve(addr).await?.next().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "no addresses to send data to: the name has none, or the list is empty",
            )
        })?;
        let target = target.into();
        self.io.async_io(Interest::WRITABLE, |io| Datagrams::send_to(io, buf, &target)).await
    }

    /// Tries to send a datagram to the address without waiting, and returns the number of bytes
    /// sent.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the send buffer has no room.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.writable().await?;
    /// assert_eq!(socket.try_send_to(b"hello", socket.local_addr()?)?, 5);
    #[doc = example_end!()]
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        let target = target.into();
        self.io.try_io(Interest::WRITABLE, |io| Datagrams::send_to(io, buf, &target))
    }

    /// Polls to send a datagram to the address.
    ///
    /// The socket stores one waker for sending, that of the most recent call.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\n", udp_one!())]
    /// let addr = socket.local_addr()?;
    /// assert_eq!(poll_fn(|cx| socket.poll_send_to(cx, b"hello", addr)).await?, 5);
    #[doc = example_end!()]
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        let target = target.into();
        self.io.poll_io(cx, Direction::Write, |io| Datagrams::send_to(io, buf, &target))
    }

    /// Receives a datagram from the connected address without removing it from the queue, and
    /// returns its length.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    ///
    /// let mut buf = [0; 16];
    /// assert_eq!(socket.peek(&mut buf).await?, 5);
    /// assert_eq!(socket.recv(&mut buf).await?, 5); // still there
    #[doc = example_end!()]
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .async_io(RECEIVING, |io| buf.fill_from(|room| Datagrams::recv(io, room, PEEK)))
            .await
    }

    /// Polls to receive a datagram without removing it from the queue.
    ///
    /// The socket stores one waker for receiving, that of the most recent call.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\nuse blitz_io::io::ReadBuf;\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    ///
    /// let mut memory = [0; 16];
    /// let mut buf = ReadBuf::new(&mut memory);
    /// poll_fn(|cx| socket.poll_peek(cx, &mut buf)).await?;
    /// assert_eq!(buf.filled(), b"hello");
    #[doc = example_end!()]
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_io(cx, Direction::Read, |io| {
                buf.fill_from(|room| Datagrams::recv(io, room, PEEK))
            })
            .map_ok(|_| ())
    }

    /// Tries to receive a datagram without waiting or removing it from the queue, and returns its
    /// length.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if no datagram has arrived.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    /// socket.peek(&mut []).await?; // waits for it
    ///
    /// let mut buf = [0; 16];
    /// assert_eq!(socket.try_peek(&mut buf)?, 5);
    #[doc = example_end!()]
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, |io| buf.fill_from(|room| Datagrams::recv(io, room, PEEK)))
    }

    /// Receives a datagram without removing it from the queue, and returns its length and the
    /// address of its sender.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    ///
    /// let mut buf = [0; 16];
    /// assert_eq!(socket.peek_from(&mut buf).await?, (5, from));
    #[doc = example_end!()]
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .async_io(RECEIVING, |io| buf.fill_from(|room| Datagrams::recv_from(io, room, PEEK)))
            .await
    }

    /// Polls to receive a datagram without removing it from the queue, and returns the address of
    /// its sender.
    ///
    /// The socket stores one waker for receiving, that of the most recent call.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\nuse blitz_io::io::ReadBuf;\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    ///
    /// let mut memory = [0; 16];
    /// let mut buf = ReadBuf::new(&mut memory);
    /// assert_eq!(poll_fn(|cx| socket.poll_peek_from(cx, &mut buf)).await?, from);
    /// assert_eq!(buf.filled(), b"hello");
    #[doc = example_end!()]
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.io
            .poll_io(cx, Direction::Read, |io| {
                buf.fill_from(|room| Datagrams::recv_from(io, room, PEEK))
            })
            .map_ok(|(_, address)| address)
    }

    /// Tries to receive a datagram without waiting or removing it from the queue, and returns its
    /// length and the address of its sender.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if no datagram has arrived.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    /// socket.peek(&mut []).await?; // waits for it
    ///
    /// let mut buf = [0; 16];
    /// assert_eq!(socket.try_peek_from(&mut buf)?, (5, from));
    #[doc = example_end!()]
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.try_io(Interest::READABLE, |io| {
            buf.fill_from(|room| Datagrams::recv_from(io, room, PEEK))
        })
    }

    /// Waits for a datagram and returns the address of its sender, without removing the datagram
    /// from the queue.
    ///
    /// The datagram may be empty, or come from a sender that this socket does not want; the code
    /// that receives it later must decide that.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    /// assert_eq!(socket.peek_sender().await?, from);
    #[doc = example_end!()]
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.async_io(RECEIVING, sender).await
    }

    /// Polls for a datagram and returns the address of its sender, without removing the datagram
    /// from the queue.
    ///
    /// The socket stores one waker for receiving, that of the most recent call.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    /// assert_eq!(poll_fn(|cx| socket.poll_peek_sender(cx)).await?, from);
    #[doc = example_end!()]
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_io(cx, Direction::Read, sender)
    }

    /// Returns the address of the sender of the next datagram, without waiting or removing the
    /// datagram from the queue.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if no datagram has arrived.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_pair!())]
    /// peer.send(b"hello").await?;
    /// socket.peek(&mut []).await?; // waits for it
    /// assert_eq!(socket.try_peek_sender()?, from);
    #[doc = example_end!()]
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.try_io(Interest::READABLE, sender)
    }

    /// Returns whether the socket may send to a broadcast address (`SO_BROADCAST`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_broadcast(true)?;
    /// assert!(socket.broadcast()?);
    #[doc = example_end!()]
    pub fn broadcast(&self) -> io::Result<bool> {
        self.io.broadcast()
    }

    /// Sets whether the socket may send to a broadcast address (`SO_BROADCAST`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_broadcast(true)?;
    #[doc = example_end!()]
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.io.set_broadcast(on)
    }

    /// Returns whether sent multicast datagrams are looped back to this machine
    /// (`IP_MULTICAST_LOOP`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_multicast_loop_v4(false)?;
    /// assert!(!socket.multicast_loop_v4()?);
    #[doc = example_end!()]
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.io.multicast_loop_v4()
    }

    /// Sets whether sent multicast datagrams are looped back to this machine
    /// (`IP_MULTICAST_LOOP`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_multicast_loop_v4(false)?;
    #[doc = example_end!()]
    pub fn set_multicast_loop_v4(&self, on: bool) -> io::Result<()> {
        self.io.set_multicast_loop_v4(on)
    }

    /// Returns the time to live of multicast datagrams (`IP_MULTICAST_TTL`): how many routers
    /// they may pass.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_multicast_ttl_v4(3)?;
    /// assert_eq!(socket.multicast_ttl_v4()?, 3);
    #[doc = example_end!()]
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        self.io.multicast_ttl_v4()
    }

    /// Sets the time to live of multicast datagrams (`IP_MULTICAST_TTL`): how many routers they
    /// may pass.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_multicast_ttl_v4(3)?;
    #[doc = example_end!()]
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.io.set_multicast_ttl_v4(ttl)
    }

    /// Returns whether sent multicast datagrams are looped back to this machine
    /// (`IPV6_MULTICAST_LOOP`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\n", udp_one_v6!())]
    /// socket.set_multicast_loop_v6(false)?;
    /// assert!(!socket.multicast_loop_v6()?);
    #[doc = example_end!()]
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.io.multicast_loop_v6()
    }

    /// Sets whether sent multicast datagrams are looped back to this machine
    /// (`IPV6_MULTICAST_LOOP`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\n", udp_one_v6!())]
    /// socket.set_multicast_loop_v6(false)?;
    #[doc = example_end!()]
    pub fn set_multicast_loop_v6(&self, on: bool) -> io::Result<()> {
        self.io.set_multicast_loop_v6(on)
    }

    /// Returns the time to live of sent datagrams (`IP_TTL`): how many routers they may pass.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_ttl(60)?;
    /// assert_eq!(socket.ttl()?, 60);
    #[doc = example_end!()]
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.ttl()
    }

    /// Sets the time to live of sent datagrams (`IP_TTL`): how many routers they may pass.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_ttl(60)?;
    #[doc = example_end!()]
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }

    /// Returns the traffic class of sent datagrams (`IPV6_TCLASS`) of an IPv6 socket.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\n", udp_one_v6!())]
    /// socket.set_tclass_v6(96)?;
    /// assert_eq!(socket.tclass_v6()?, 96);
    #[doc = example_end!()]
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
        SockRef::from(self).tclass_v6()
    }

    /// Sets the traffic class of sent datagrams (`IPV6_TCLASS`) of an IPv6 socket.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\n", udp_one_v6!())]
    /// socket.set_tclass_v6(96)?;
    #[doc = example_end!()]
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
        SockRef::from(self).set_tclass_v6(tclass)
    }

    /// Returns the type of service of sent datagrams (`IP_TOS`) of an IPv4 socket.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_tos_v4(96)?;
    /// assert_eq!(socket.tos_v4()?, 96);
    #[doc = example_end!()]
    #[cfg(not(any(target_os = "redox", target_os = "solaris", target_os = "illumos")))]
    pub fn tos_v4(&self) -> io::Result<u32> {
        SockRef::from(self).tos_v4()
    }

    /// Sets the type of service of sent datagrams (`IP_TOS`) of an IPv4 socket.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// socket.set_tos_v4(96)?;
    #[doc = example_end!()]
    #[cfg(not(any(target_os = "redox", target_os = "solaris", target_os = "illumos")))]
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        SockRef::from(self).set_tos_v4(tos)
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

    /// Returns the name of the interface that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", udp_one!())]
    /// assert_eq!(socket.device()?, None);
    #[doc = example_end!()]
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        SockRef::from(self).device()
    }

    /// Binds the socket to an interface by its name (`SO_BINDTODEVICE`), or to none.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\n", udp_one!())]
    /// socket.bind_device(Some(b"eth0"))?; // may need a privilege
    #[doc = example_end!()]
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        SockRef::from(self).bind_device(interface)
    }

    /// Joins a multicast group (`IP_ADD_MEMBERSHIP`) on the interface with the given address;
    /// with `0.0.0.0` the system chooses one.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\nuse std::net::Ipv4Addr;\n", udp_one!())]
    /// socket.join_multicast_v4(Ipv4Addr::new(224, 0, 0, 123), Ipv4Addr::UNSPECIFIED)?;
    #[doc = example_end!()]
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.join_multicast_v4(&multiaddr, &interface)
    }

    /// Joins a multicast group (`IPV6_ADD_MEMBERSHIP`) on the interface with the given index;
    /// with 0 the system chooses one.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\nuse std::net::Ipv6Addr;\n", udp_one_v6!())]
    /// socket.join_multicast_v6(&Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x123), 0)?;
    #[doc = example_end!()]
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.join_multicast_v6(multiaddr, interface)
    }

    /// Leaves a multicast group (`IP_DROP_MEMBERSHIP`) that was joined with the same arguments.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\nuse std::net::Ipv4Addr;\n", udp_one!())]
    /// socket.leave_multicast_v4(Ipv4Addr::new(224, 0, 0, 123), Ipv4Addr::UNSPECIFIED)?;
    #[doc = example_end!()]
    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.leave_multicast_v4(&multiaddr, &interface)
    }

    /// Leaves a multicast group (`IPV6_DROP_MEMBERSHIP`) that was joined with the same arguments.
    ///
    /// # Examples
    ///
    #[doc = concat!("```no_run\nuse std::net::Ipv6Addr;\n", udp_one_v6!())]
    /// socket.leave_multicast_v6(&Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x123), 0)?;
    #[doc = example_end!()]
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.leave_multicast_v6(multiaddr, interface)
    }
}

/// Returns the address of the sender of the next datagram, without removing the datagram.
fn sender(io: &net::UdpSocket) -> io::Result<SocketAddr> {
    internet(&retry_interrupted(|| SockRef::from(io).peek_sender())?)
}
