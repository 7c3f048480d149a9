//! Unix socket that is neither connected nor listening yet.

#![forbid(unsafe_code)]

use std::{io, path::Path};

use socket2::{Domain, Socket, Type};

use super::{addr, datagram::UnixDatagram, listener::UnixListener, stream::UnixStream};
use crate::net::evented;

/// A Unix socket before it becomes a [`UnixStream`], [`UnixDatagram`] or [`UnixListener`].
///
/// Use this to bind a socket before it connects, or to choose the backlog.
///
/// # Examples
///
#[doc = concat!("```\n", in_folder!("{UnixSocket, UnixStream}"))]
/// let path = dir.join("socket");
/// let socket = UnixSocket::new_stream()?;
/// socket.bind(&path)?;
/// let listener = socket.listen(16)?;
///
/// let stream = UnixStream::connect(&path).await?;
/// # drop((listener, stream));
#[doc = example_end!()]
#[derive(Debug)]
pub struct UnixSocket {
    inner: Socket,
}

impl UnixSocket {
    /// Creates a datagram socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::UnixSocket;
    ///
    /// # blitz_io::run(async {
    /// let datagrams = UnixSocket::new_datagram()?.datagram()?;
    /// # drop(datagrams);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn new_datagram() -> io::Result<UnixSocket> {
        Ok(UnixSocket { inner: evented::open(Domain::UNIX, Type::DGRAM, None)? })
    }

    /// Creates a stream socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::UnixSocket;
    ///
    /// let socket = UnixSocket::new_stream()?;
    /// # drop(socket);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_stream() -> io::Result<UnixSocket> {
        Ok(UnixSocket { inner: evented::open(Domain::UNIX, Type::STREAM, None)? })
    }

    pub(in crate::net) fn from_socket(inner: Socket) -> UnixSocket {
        UnixSocket { inner }
    }

    /// Binds the socket to the path.
    ///
    /// On Linux a path that begins with a zero byte is a name in the abstract namespace. Any
    /// other path ends before its first zero byte.
    ///
    /// # Errors
    ///
    /// Fails if the path cannot be bound.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixSocket"))]
    /// UnixSocket::new_stream()?.bind(dir.join("socket"))?;
    #[doc = example_end!()]
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        addr::of_bytes(path).and_then(|address| self.inner.bind(&address))
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
    /// Fails if this is a datagram socket, or if the kernel refuses.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixSocket"))]
    /// let socket = UnixSocket::new_stream()?;
    /// socket.bind(dir.join("socket"))?;
    /// let listener = socket.listen(16)?;
    /// # drop(listener);
    #[doc = example_end!()]
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.refuse(Type::DGRAM, "listen cannot be called on a datagram socket")?;
        self.inner.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        UnixListener::listening(self.inner.into())
    }

    /// Connects the socket to the listener at the path.
    ///
    /// # Errors
    ///
    /// Fails if this is a datagram socket, or if connecting fails.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the attempt ends and the socket is closed.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixSocket}"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let socket = UnixSocket::new_stream()?;
    /// socket.bind(dir.join("client"))?;
    /// let stream = socket.connect(&path).await?;
    /// # drop((listener, stream));
    #[doc = example_end!()]
    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        self.refuse(Type::DGRAM, "connect cannot be called on a datagram socket")?;
        UnixStream::connecting(self.inner, &addr::of_bytes(path.as_ref())?).await
    }

    /// Converts the socket to a [`UnixDatagram`].
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if this is a stream socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::net::UnixSocket;
    ///
    /// # blitz_io::run(async {
    /// assert!(UnixSocket::new_datagram()?.datagram().is_ok());
    /// assert!(UnixSocket::new_stream()?.datagram().is_err());
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.refuse(Type::STREAM, "datagram cannot be called on a stream socket")?;
        match self.inner.take_error()? {
            Some(error) => Err(error),
            None => UnixDatagram::of(self.inner.into()),
        }
    }

    /// Returns an error with the text `why` if the socket is of this kind.
    fn refuse(&self, kind: Type, why: &'static str) -> io::Result<()> {
        if self.inner.r#type()? == kind { Err(io::Error::other(why)) } else { Ok(()) }
    }
}

raw_socket!(UnixSocket);
