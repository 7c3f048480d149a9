//! Stream connection between processes of one machine.

#![forbid(unsafe_code)]

use std::{future::poll_fn, io, net::Shutdown, os::unix::net, path::Path};

use socket2::{Domain, SockAddr, Socket, Type};

use super::{
    SocketAddr, UCred, addr,
    split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf},
};
use crate::{
    engine::driver::Direction,
    io::Ready,
    net::evented::{self, Evented},
};

/// A stream connection between two Unix sockets.
///
/// A stream is created by [`connect`](Self::connect), by [`pair`](Self::pair), or by
/// [`UnixListener::accept`](crate::net::UnixListener::accept). It is read and written as a
/// [`TcpStream`](crate::net::TcpStream) is.
///
/// # Examples
///
/// ```
/// use blitz_io::net::UnixStream;
///
/// # blitz_io::run(async {
/// let (one, other) = UnixStream::pair()?;
/// one.writable().await?;
/// one.try_write(b"hello")?;
///
/// other.readable().await?;
/// assert_eq!(other.try_read(&mut [0; 16])?, 5);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
pub struct UnixStream {
    io: Evented<net::UnixStream>,
}

std_methods!(
    UnixStream,
    net::UnixStream,
    "```
use std::os::unix::net;
use blitz_io::net::UnixStream;

# blitz_io::run(async {
let (stream, _peer) = net::UnixStream::pair()?;
stream.set_nonblocking(true)?;
let stream = UnixStream::from_std(stream)?;

let stream: net::UnixStream = stream.into_std()?;
stream.set_nonblocking(false)?;
# Ok::<(), std::io::Error>(())
# }).unwrap();
```"
);

impl UnixStream {
    /// Connects to the socket at the path.
    ///
    /// On Linux a path that begins with a zero byte is a name in the abstract namespace.
    ///
    /// # Errors
    ///
    /// Returns the error of the failed attempt. `WouldBlock` means that the listener's backlog
    /// has no room for another connection. There is no event to wait for in that case: try again
    /// later.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the attempt ends and the socket is closed.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let stream = UnixStream::connect(&path).await?;
    ///
    /// let error = UnixStream::connect(dir.join("missing")).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # drop((listener, stream));
    #[doc = example_end!()]
    pub async fn connect<P>(path: P) -> io::Result<UnixStream>
    where
        P: AsRef<Path>,
    {
        Self::connect_raw(&addr::of_path_or_name(path.as_ref())?).await
    }

    /// Connects to the socket with the given address.
    ///
    /// # Errors
    ///
    /// Fails as [`connect`](Self::connect) does.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the attempt ends and the socket is closed.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let listener = UnixListener::bind(dir.join("socket"))?;
    /// let stream = UnixStream::connect_addr(&listener.local_addr()?).await?;
    /// # drop(stream);
    #[doc = example_end!()]
    pub async fn connect_addr(socket_addr: &SocketAddr) -> io::Result<UnixStream> {
        Self::connect_raw(&socket_addr.to_raw()?).await
    }

    async fn connect_raw(address: &SockAddr) -> io::Result<UnixStream> {
        let socket = evented::open(Domain::UNIX, Type::STREAM, None)?;
        Self::connecting(socket, address).await
    }

    /// Starts to connect a socket, and waits until it is connected.
    pub(super) async fn connecting(socket: Socket, address: &SockAddr) -> io::Result<UnixStream> {
        evented::start_connecting(&socket, address)?;
        let io: Evented<net::UnixStream> = Evented::new(socket.into())?;
        poll_fn(|cx| io.poll_ready(cx, Direction::Write)).await?;
        match io.take_error()? {
            Some(error) => Err(error),
            None => Ok(UnixStream { io }),
        }
    }

    /// Registers a socket that was accepted.
    pub(super) fn accepted(socket: net::UnixStream) -> io::Result<UnixStream> {
        Ok(UnixStream { io: Evented::new_ready(socket, Ready::READABLE | Ready::WRITABLE)? })
    }

    /// Creates two sockets that are connected to each other.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// stream.writable().await?;
    /// stream.try_write(b"hello")?;
    /// # drop(peer);
    #[doc = example_end!()]
    #[track_caller]
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = evented::open_pair(Type::STREAM)?;
        let one = Evented::new_ready(one.into(), Ready::WRITABLE)?;
        let other = Evented::new_ready(other.into(), Ready::WRITABLE)?;
        Ok((UnixStream { io: one }, UnixStream { io: other }))
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
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert!(stream.local_addr()?.is_unnamed());
    /// # drop(peer);
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr::from)
    }

    /// Returns the address of the other end.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let stream = UnixStream::connect(&path).await?;
    /// assert_eq!(stream.peer_addr()?.as_pathname(), Some(path.as_path()));
    /// # drop(listener);
    #[doc = example_end!()]
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr().map(SocketAddr::from)
    }

    /// Returns the credentials of the process at the other end.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// println!("user {}", stream.peer_cred()?.uid());
    /// # drop(peer);
    #[doc = example_end!()]
    pub fn peer_cred(&self) -> io::Result<UCred> {
        UCred::of_peer(self)
    }

    take_error_method!(unix_pair!("stream"), "stream");

    ready_method!(
        unix_pair!("stream"),
        "let ready = stream.ready(Interest::READABLE | Interest::WRITABLE).await?;\n\
         if ready.is_writable() {\n    \
             stream.try_write(b\"hello\")?;\n\
         }\n\
         # drop(peer);"
    );
    reading_methods!(unix_pair!("reader"));
    owned_reading_methods!(unix_pair!("reader"));
    poll_ready_method!(
        poll_read_ready,
        Read,
        "read",
        concat!(unix_pair!("stream"), "\npeer.try_write(b\"hello\")?;"),
        "stream"
    );
    writing_methods!(unix_pair!("writer"));
    owned_writing_methods!(unix_pair!("writer"));
    poll_ready_method!(poll_write_ready, Write, "write", unix_pair!("stream"), "stream");
    io_methods!(unix_pair!("stream"), "stream");

    /// Splits the stream into a read half and a write half, which borrow it, for use within one
    /// task.
    ///
    /// For two tasks use [`into_split`](Self::into_split).
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("mut stream"))]
    /// let (reader, writer) = stream.split();
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
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// let (reader, writer) = stream.into_split();
    /// let writes = blitz_io::spawn(async move { writer.try_write(b"hello") });
    /// assert_eq!(writes.await??, 5);
    /// # drop((reader, peer));
    #[doc = example_end!()]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
    }
}

async_read!(UnixStream);
async_write!(UnixStream);

impl AsRef<Self> for UnixStream {
    fn as_ref(&self) -> &Self {
        self
    }
}
