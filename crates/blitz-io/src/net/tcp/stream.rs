//! TCP connection.

#![forbid(unsafe_code)]

use std::{
    future::poll_fn,
    io, net,
    net::{Shutdown, SocketAddr},
    task::{Context, Poll},
    time::Duration,
};

use socket2::SockRef;

use super::{
    socket::TcpSocket,
    split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf},
};
use crate::{
    engine::driver::Direction,
    io::{Interest, ReadBuf, Ready},
    net::{
        ToSocketAddrs,
        addr::resolve,
        error,
        evented::Evented,
        raw::Destination,
        transfer::{PEEK, retry_interrupted},
    },
};

/// A TCP connection: a stream of bytes in each direction.
///
/// A stream is created by [`connect`](Self::connect), by
/// [`TcpListener::accept`](crate::net::TcpListener::accept), or by
/// [`TcpSocket::connect`](crate::net::TcpSocket::connect).
///
/// The stream is read and written with [`AsyncRead`](crate::io::AsyncRead) and
/// [`AsyncWrite`](crate::io::AsyncWrite). To use both directions at once, use
/// [`split`](Self::split) or [`into_split`](Self::into_split), or the methods that take `&self`.
///
/// Dropping the stream closes the connection in both directions. To close only the write
/// direction, call `shutdown` of `AsyncWriteExt`.
///
/// # Examples
///
/// ```
/// use blitz_io::net::{TcpListener, TcpStream};
///
/// # blitz_io::run(async {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let stream = TcpStream::connect(listener.local_addr()?).await?;
///
/// stream.writable().await?;
/// stream.try_write(b"hello")?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub struct TcpStream {
    io: Evented<net::TcpStream>,
}

std_methods!(
    TcpStream,
    net::TcpStream,
    "```
use std::net;
use blitz_io::net::TcpStream;

# blitz_io::run(async {
let listener = net::TcpListener::bind(\"127.0.0.1:0\")?;
let stream = net::TcpStream::connect(listener.local_addr()?)?;
stream.set_nonblocking(true)?;
let stream = TcpStream::from_std(stream)?;

let stream: net::TcpStream = stream.into_std()?;
stream.set_nonblocking(false)?;
# Ok::<(), std::io::Error>(())
# }).unwrap();
```"
);

impl TcpStream {
    /// Opens a connection to a remote host.
    ///
    /// If `addr` resolves to several addresses, they are tried in order until one connects.
    ///
    /// # Errors
    ///
    /// Returns the last failure if no address connects, and `InvalidInput` if there was no
    /// address to try.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the attempt in progress ends and its socket is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::{TcpListener, TcpStream};
    ///
    /// # blitz_io::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let addr = listener.local_addr()?;
    /// let stream = TcpStream::connect(addr).await?;
    /// assert_eq!(stream.peer_addr()?, addr);
    ///
    /// drop(listener);
    /// let error = TcpStream::connect(addr).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    /// # #[cfg(unix)]
    /// assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {
        let mut last = None;
        for addr in resolve(addr).await? {
            match Self::connect_to(addr).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(error::no_address))
    }

    async fn connect_to(addr: SocketAddr) -> io::Result<TcpStream> {
        TcpSocket::for_address(addr)?.connect(addr).await
    }

    /// Registers a socket that has begun to connect, and waits until it is connected.
    pub(super) async fn connecting(socket: net::TcpStream) -> io::Result<TcpStream> {
        let io = Evented::new(socket)?;
        poll_fn(|cx| io.poll_ready(cx, Direction::Write)).await?;
        match io.take_error()? {
            Some(error) => Err(error),
            None => Ok(TcpStream { io }),
        }
    }

    /// Registers a socket that was accepted.
    pub(super) fn accepted(socket: net::TcpStream) -> io::Result<TcpStream> {
        Ok(TcpStream { io: Evented::new_ready(socket, Ready::READABLE | Ready::WRITABLE)? })
    }

    /// Shuts down the write direction. A connection that is gone already is no error.
    pub(super) fn shut_writing(&self) -> io::Result<()> {
        match self.io.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }

    fn end_writing(&mut self) -> io::Result<()> {
        self.shut_writing()
    }

    /// Returns the local address of the stream.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// assert_eq!(stream.local_addr()?, listener.local_addr()?);
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Returns the address of the other end.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// assert_eq!(stream.peer_addr()?, peer.local_addr()?);
    #[doc = example_end!()]
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr()
    }

    take_error_method!(tcp_pair!("stream"), "stream");

    ready_method!(
        tcp_pair!("stream"),
        "let ready = stream.ready(Interest::READABLE | Interest::WRITABLE).await?;\n\
         if ready.is_readable() {\n    \
             match stream.try_read(&mut [0; 64]) {\n        \
                 Ok(count) => println!(\"read {count}\"),\n        \
                 Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),\n    \
             }\n\
         }\n\
         if ready.is_writable() {\n    \
             stream.try_write(b\"hello\")?;\n\
         }\n\
         # drop(peer);"
    );
    reading_methods!(tcp_pair!("reader"));
    owned_reading_methods!(tcp_pair!("reader"));
    poll_ready_method!(
        poll_read_ready,
        Read,
        "read",
        concat!(tcp_pair!("stream"), "\npeer.writable().await?;\npeer.try_write(b\"hello\")?;"),
        "stream"
    );
    writing_methods!(tcp_pair!("writer"));
    owned_writing_methods!(tcp_pair!("writer"));
    poll_ready_method!(poll_write_ready, Write, "write", tcp_pair!("stream"), "stream");
    io_methods!(tcp_pair!("stream"), "stream");

    /// Reads without removing the bytes from the stream, and returns their number.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// peer.writable().await?;
    /// peer.try_write(b"hello")?;
    ///
    /// let mut buf = [0; 16];
    /// assert_eq!(stream.peek(&mut buf).await?, 5);
    /// assert_eq!(stream.try_read(&mut buf)?, 5); // still there
    #[doc = example_end!()]
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.async_io(Interest::READABLE, |io| peek(io, buf)).await
    }

    /// Polls to read without removing the bytes from the stream, and returns their number.
    ///
    /// The stream stores one waker for reading, that of the most recent call.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\nuse blitz_io::io::ReadBuf;\n", tcp_pair!("stream"))]
    /// peer.writable().await?;
    /// peer.try_write(b"hello")?;
    ///
    /// let mut memory = [0; 16];
    /// let mut buf = ReadBuf::new(&mut memory);
    /// assert_eq!(poll_fn(|cx| stream.poll_peek(cx, &mut buf)).await?, 5);
    /// assert_eq!(buf.filled(), b"hello");
    #[doc = example_end!()]
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        self.io.poll_io(cx, Direction::Read, |io| peek(io, buf))
    }

    /// Returns whether small writes are sent immediately (`TCP_NODELAY`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// assert!(!stream.nodelay()?);
    #[doc = example_end!()]
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.nodelay()
    }

    /// Sets whether small writes are sent immediately (`TCP_NODELAY`), instead of being collected
    /// while earlier ones are unacknowledged.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// stream.set_nodelay(true)?;
    /// assert!(stream.nodelay()?);
    #[doc = example_end!()]
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.set_nodelay(nodelay)
    }

    /// Returns whether received data are acknowledged immediately (`TCP_QUICKACK`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// stream.set_quickack(true)?;
    /// assert!(stream.quickack()?);
    #[doc = example_end!()]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn quickack(&self) -> io::Result<bool> {
        SockRef::from(self).tcp_quickack()
    }

    /// Sets whether received data are acknowledged immediately (`TCP_QUICKACK`). The kernel may
    /// change the option again during the connection.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// stream.set_quickack(true)?;
    #[doc = example_end!()]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        SockRef::from(self).set_tcp_quickack(quickack)
    }

    /// Returns how long closing waits for unsent data (`SO_LINGER`).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// assert_eq!(stream.linger()?, None);
    #[doc = example_end!()]
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self).linger()
    }

    /// Sets how long closing waits for unsent data (`SO_LINGER`).
    ///
    /// The drop of the stream blocks for that time, and with it the worker on which it happens;
    /// so only [`set_zero_linger`](Self::set_zero_linger) is harmless.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n# #![allow(deprecated)]\n", tcp_pair!("stream"))]
    /// stream.set_linger(None)?;
    #[doc = example_end!()]
    #[deprecated = "`SO_LINGER` causes the socket to block the thread on drop"]
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(dur)
    }

    /// Makes closing reset the connection instead of ending it in order (`SO_LINGER` of zero):
    /// unsent data are discarded, and the other end gets an error.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// stream.set_zero_linger()?;
    /// drop(stream);
    /// let error = loop {
    ///     peer.readable().await?;
    ///     match peer.try_read(&mut [0; 8]) {
    ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
    ///         done => break done.unwrap_err(),
    ///     }
    /// };
    /// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    #[doc = example_end!()]
    pub fn set_zero_linger(&self) -> io::Result<()> {
        SockRef::from(self).set_linger(Some(Duration::ZERO))
    }

    /// Returns the time to live of packets of this stream (`IP_TTL`): how many routers they may
    /// pass.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// stream.set_ttl(123)?;
    /// assert_eq!(stream.ttl()?, 123);
    #[doc = example_end!()]
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.ttl()
    }

    /// Sets the time to live of packets of this stream (`IP_TTL`): how many routers they may
    /// pass.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// stream.set_ttl(123)?;
    #[doc = example_end!()]
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }

    /// Splits the stream into a read half and a write half, which borrow it, for use within one
    /// task.
    ///
    /// For two tasks use [`into_split`](Self::into_split).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("mut stream"))]
    /// let (reader, writer) = stream.split();
    /// writer.writable().await?;
    /// writer.try_write(b"hello")?;
    /// assert!(reader.try_read(&mut [0; 8]).is_err()); // nothing there yet
    /// # drop(peer);
    #[doc = example_end!()]
    #[allow(clippy::needless_lifetimes, reason = "the signature is Tokio's")]
    pub fn split<'a>(&'a mut self) -> (ReadHalf<'a>, WriteHalf<'a>) {
        split::borrowed(self)
    }

    /// Splits the stream into a read half and a write half, which can be moved to different
    /// tasks.
    ///
    /// Dropping the write half shuts down the write direction, so the other end reads the end of
    /// the stream; the connection is closed when both halves are dropped.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", tcp_pair!("stream"))]
    /// let (reader, writer) = stream.into_split();
    /// let writes = blitz_io::spawn(async move {
    ///     writer.writable().await?;
    ///     writer.try_write(b"hello")
    /// });
    /// assert_eq!(writes.await??, 5);
    /// # drop((reader, peer));
    #[doc = example_end!()]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
    }
}

/// Receives bytes without removing them from the stream.
fn peek(io: &net::TcpStream, into: &mut (impl Destination + ?Sized)) -> io::Result<usize> {
    into.fill_from(|room| retry_interrupted(|| room.recv(&SockRef::from(io), PEEK)))
}

async_read!(TcpStream);
async_write!(TcpStream);

impl AsRef<Self> for TcpStream {
    fn as_ref(&self) -> &Self {
        self
    }
}
