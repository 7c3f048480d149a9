//! A door for processes of the same machine.

#![forbid(unsafe_code)]

use std::{
    io,
    os::unix::net,
    path::Path,
    task::{Context, Poll, ready},
};

use socket2::{Domain, SockAddr, Type};

use super::{SocketAddr, addr, stream::UnixStream};
use crate::{
    engine::driver::Direction,
    io::Interest,
    net::{
        error,
        evented::{self, Evented},
        tcp::listener::BACKLOG,
    },
};

/// A Unix socket which can accept connections from other Unix sockets.
///
/// The file at its path stays when the listener is gone, and a path that has a file
/// cannot be bound: remove it before, or use a name in the abstract namespace (on Linux).
///
/// # Examples
///
#[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
/// let path = dir.join("socket");
/// let listener = UnixListener::bind(&path)?;
/// let client = UnixStream::connect(&path).await?;
///
/// let (stream, addr) = listener.accept().await?;
/// assert!(addr.is_unnamed());
/// # drop((client, stream));
#[doc = example_end!()]
pub struct UnixListener {
    io: Evented<net::UnixListener>,
}

std_methods!(
    UnixListener,
    net::UnixListener,
    "```
use std::os::unix::net;
use blitz_io::net::UnixListener;

# blitz_io::run(async {
# let dir = tempfile::tempdir()?;
let listener = net::UnixListener::bind(dir.path().join(\"socket\"))?;
listener.set_nonblocking(true)?;
let listener = UnixListener::from_std(listener)?;

let listener: net::UnixListener = listener.into_std()?;
listener.set_nonblocking(false)?;
# Ok::<(), std::io::Error>(())
# }).unwrap();
```"
);

impl UnixListener {
    /// Makes a listener at the path. At most 1024 connections wait to be accepted.
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
    #[doc = concat!("```\n", in_folder!("UnixListener"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    ///
    /// let error = UnixListener::bind(&path).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    /// # drop(listener);
    #[doc = example_end!()]
    #[track_caller]
    pub fn bind<P>(path: P) -> io::Result<UnixListener>
    where
        P: AsRef<Path>,
    {
        let path = path.as_ref();
        let failed = |cause| error::at("listen at", addr::shown(path), cause);
        let io = bound(addr::raw(path)).map_err(failed)?;
        Ok(UnixListener { io: Evented::new(io)? })
    }

    /// Makes a listener with the address.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// If that fails; the text has the address.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixListener"))]
    /// let addr = std::os::unix::net::SocketAddr::from_pathname(dir.join("socket"))?;
    /// let listener = UnixListener::bind_addr(&addr.into())?;
    /// # drop(listener);
    #[doc = example_end!()]
    #[track_caller]
    pub fn bind_addr(socket_addr: &SocketAddr) -> io::Result<UnixListener> {
        let failed = |cause| error::at("listen at", format_args!("{socket_addr:?}"), cause);
        let io = bound(socket_addr.to_raw()).map_err(failed)?;
        Ok(UnixListener { io: Evented::new(io)? })
    }

    /// A socket that listens.
    #[track_caller]
    pub(super) fn listening(socket: net::UnixListener) -> io::Result<UnixListener> {
        Ok(UnixListener { io: Evented::new(socket)? })
    }

    /// Answers the address that it is bound to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixListener"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    take_error_method!(
        concat!(
            in_folder!("UnixListener"),
            "\nlet listener = UnixListener::bind(dir.join(\"socket\"))?;"
        ),
        "listener"
    );

    /// Accepts a connection: the stream, and the address of its other end, which most
    /// often is unnamed.
    ///
    /// # Errors
    ///
    /// What the kernel says, as it says it; see
    /// [`TcpListener::accept`](crate::net::TcpListener::accept).
    ///
    /// # Cancel safety
    ///
    /// If it is dropped before it is done, no connection was accepted.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let client = UnixStream::connect(&path).await?;
    /// let (stream, _addr) = listener.accept().await?;
    /// # drop((client, stream));
    #[doc = example_end!()]
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        accepted(self.io.async_io(Interest::READABLE, evented::accept).await?)
    }

    /// Polls to accept a connection.
    ///
    /// One waker is kept, the last one.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\nuse std::future::poll_fn;\n", in_folder!("{UnixListener, UnixStream}"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let client = UnixStream::connect(&path).await?;
    /// let (stream, _addr) = poll_fn(|cx| listener.poll_accept(cx)).await?;
    /// # drop((client, stream));
    #[doc = example_end!()]
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        Poll::Ready(accepted(ready!(self.io.poll_io(cx, Direction::Read, evented::accept))?))
    }
}

fn bound(address: io::Result<SockAddr>) -> io::Result<net::UnixListener> {
    let socket = evented::open(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&address?)?;
    socket.listen(BACKLOG as i32)?;
    Ok(socket.into())
}

fn accepted(
    (socket, address): (socket2::Socket, SockAddr),
) -> io::Result<(UnixStream, SocketAddr)> {
    Ok((UnixStream::accepted(socket.into())?, SocketAddr::from_raw(&address)?))
}
