//! A connection between processes of one machine.

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
    net::{
        error,
        evented::{self, Evented},
    },
};

/// A structure representing a connected Unix socket.
///
/// It is made by [`connect`](Self::connect), by [`pair`](Self::pair), or by
/// [`UnixListener::accept`](crate::net::UnixListener::accept). It reads and writes as a
/// [`TcpStream`](crate::net::TcpStream) does.
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
    /// If that fails; the text has the path. `WouldBlock` means that the listener has no
    /// room for one more that waits to be accepted, and that there is nothing to wait
    /// for: try again later.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the attempt ends and the socket is closed.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let stream = UnixStream::connect(&path).await?;
    ///
    /// let error = UnixStream::connect(dir.join("nobody")).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # drop((listener, stream));
    #[doc = example_end!()]
    pub async fn connect<P>(path: P) -> io::Result<UnixStream>
    where
        P: AsRef<Path>,
    {
        let path = path.as_ref();
        let failed = |cause| error::at("connect to", addr::shown(path), cause);
        let address = addr::raw(path).map_err(failed)?;
        Self::connect_raw(&address).await.map_err(failed)
    }

    /// Connects to the socket with the address.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the attempt ends and the socket is closed.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let listener = UnixListener::bind(dir.join("socket"))?;
    /// let stream = UnixStream::connect_addr(&listener.local_addr()?).await?;
    /// # drop(stream);
    #[doc = example_end!()]
    pub async fn connect_addr(socket_addr: &SocketAddr) -> io::Result<UnixStream> {
        let failed = |cause| error::at("connect to", format_args!("{socket_addr:?}"), cause);
        let address = socket_addr.to_raw().map_err(failed)?;
        Self::connect_raw(&address).await.map_err(failed)
    }

    async fn connect_raw(address: &SockAddr) -> io::Result<UnixStream> {
        let socket = evented::open(Domain::UNIX, Type::STREAM, None)?;
        Self::connecting(socket, address).await
    }

    /// Has a socket connect, and waits until it has.
    pub(super) async fn connecting(socket: Socket, address: &SockAddr) -> io::Result<UnixStream> {
        evented::start_connecting(&socket, address)?;
        let io: Evented<net::UnixStream> = Evented::new(socket.into())?;
        poll_fn(|cx| io.poll_ready(cx, Direction::Write)).await?;
        match io.take_error()? {
            Some(error) => Err(error),
            None => Ok(UnixStream { io }),
        }
    }

    /// A socket that was accepted.
    pub(super) fn accepted(socket: net::UnixStream) -> io::Result<UnixStream> {
        Ok(UnixStream { io: Evented::new_open(socket, Ready::READABLE | Ready::WRITABLE)? })
    }

    /// Makes two sockets that are connected to each other.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
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
        let one = Evented::new_open(one.into(), Ready::WRITABLE)?;
        let other = Evented::new_open(other.into(), Ready::WRITABLE)?;
        Ok((UnixStream { io: one }, UnixStream { io: other }))
    }

    /// Ends the direction that writes; the connection may be gone already.
    pub(super) fn shut_writing(&self) -> io::Result<()> {
        match self.io.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }

    fn end_writing(&mut self) -> io::Result<()> {
        self.shut_writing()
    }

    /// Answers the address of this end.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", unix_pair!("stream"))]
    /// assert!(stream.local_addr()?.is_unnamed());
    /// # drop(peer);
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// Answers the address of the other end.
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
        self.io.peer_addr().map(SocketAddr)
    }

    /// Answers who is at the other end.
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

    /// Splits the stream into a half that reads and a half that writes, for two parts of
    /// one task.
    ///
    /// For two tasks there is [`into_split`](Self::into_split).
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

    /// Splits the stream into a half that reads and a half that writes, which go to
    /// different tasks.
    ///
    /// When the half that writes is dropped, the direction ends, and the other end reads
    /// that; the connection is closed when both halves are dropped.
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
