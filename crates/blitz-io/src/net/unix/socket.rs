//! A Unix socket before it is connected or listens.

#![forbid(unsafe_code)]

use std::{io, path::Path};

use socket2::{Domain, Socket, Type};

use super::{addr, datagram::UnixDatagram, listener::UnixListener, stream::UnixStream};
use crate::net::{error, evented};

/// A Unix socket that has not yet been converted to a [`UnixStream`], [`UnixDatagram`],
/// or [`UnixListener`].
///
/// It is for those who bind it before they connect, or choose the backlog.
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
    /// Makes a socket for datagrams.
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

    /// Makes a socket for streams.
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
    /// # Errors
    ///
    /// If that fails; the text has the path.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixSocket"))]
    /// UnixSocket::new_stream()?.bind(dir.join("socket"))?;
    #[doc = example_end!()]
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        addr::raw(path)
            .and_then(|address| self.inner.bind(&address))
            .map_err(|cause| error::at("bind to", addr::shown(path), cause))
    }

    /// Listens, with room for `backlog` connections that wait to be accepted.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If it is a socket for datagrams, or the kernel refuses.
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

    /// Connects the socket to the one at the path.
    ///
    /// # Errors
    ///
    /// If it is a socket for datagrams, or if connecting fails; the text has the path.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the attempt ends and the socket is closed.
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
        let path = path.as_ref();
        let failed = |cause| error::at("connect to", addr::shown(path), cause);
        let address = addr::raw(path).map_err(failed)?;
        UnixStream::connecting(self.inner, &address).await.map_err(failed)
    }

    /// Makes a [`UnixDatagram`] of it.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If it is a socket for streams.
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

    /// Fails if the socket is of this kind.
    fn refuse(&self, kind: Type, why: &'static str) -> io::Result<()> {
        if self.inner.r#type()? == kind { Err(io::Error::other(why)) } else { Ok(()) }
    }
}

raw_socket!(UnixSocket);
