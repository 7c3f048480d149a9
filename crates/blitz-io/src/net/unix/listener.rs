//! Unix listener: accepts connections from processes of the same machine.

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
    net::evented::{self, Evented},
};

/// Limit of connections that wait to be accepted. The number is that of the standard library and
/// of Tokio: -1 stands for as many as the system allows (`net.core.somaxconn` on Linux).
const BACKLOG: i32 = if cfg!(any(
    target_os = "linux",
    target_os = "freebsd",
    target_os = "openbsd",
    target_vendor = "apple"
)) {
    -1
} else {
    libc::SOMAXCONN
};

/// A Unix socket that listens for connections and accepts them.
///
/// The file at the listener's path remains when the listener is dropped, and a path that has a
/// file cannot be bound: remove the file first, or use a name in the abstract namespace (on
/// Linux).
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
    /// Creates a listener that is bound to the path.
    ///
    /// The backlog of connections that wait to be accepted is as long as the system allows
    /// (`net.core.somaxconn` on Linux); for a shorter one use
    /// [`UnixSocket`](crate::net::UnixSocket).
    ///
    /// On Linux a path that begins with a zero byte is a name in the abstract namespace.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if the path cannot be bound.
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
        let io = bound(addr::of_path_or_name(path.as_ref()))?;
        Ok(UnixListener { io: Evented::new(io)? })
    }

    /// Creates a listener that is bound to the address.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or its I/O is not enabled.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound.
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
        let io = bound(socket_addr.to_raw())?;
        Ok(UnixListener { io: Evented::new(io)? })
    }

    /// Registers a socket that listens already.
    #[track_caller]
    pub(super) fn listening(socket: net::UnixListener) -> io::Result<UnixListener> {
        Ok(UnixListener { io: Evented::new(socket)? })
    }

    /// Returns the local address that the listener is bound to.
    ///
    /// # Examples
    ///
    #[doc = concat!("```\n", in_folder!("UnixListener"))]
    /// let path = dir.join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    #[doc = example_end!()]
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr::from)
    }

    take_error_method!(
        concat!(
            in_folder!("UnixListener"),
            "\nlet listener = UnixListener::bind(dir.join(\"socket\"))?;"
        ),
        "listener"
    );

    /// Accepts a connection, and returns its stream and the address of its other end, which is
    /// usually unnamed.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error unchanged; see
    /// [`TcpListener::accept`](crate::net::TcpListener::accept).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, no connection was accepted.
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
    /// The listener stores one waker, that of the most recent call.
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
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn accepted(
    (socket, address): (socket2::Socket, SockAddr),
) -> io::Result<(UnixStream, SocketAddr)> {
    Ok((UnixStream::accepted(socket.into())?, SocketAddr::from_raw(&address)))
}
