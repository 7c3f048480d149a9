//! TCP, UDP and Unix sockets, and pipes.
//!
//! - [`TcpListener`] and [`TcpStream`] speak TCP; a [`TcpSocket`] becomes either of them after
//!   socket options were set.
//! - [`UdpSocket`] sends and receives datagrams.
//! - [`UnixListener`], [`UnixStream`], [`UnixDatagram`] and [`UnixSocket`] are their counterparts
//!   between processes of one machine (on Unix); [`unix::pipe`] has pipes.
//!
//! Each socket belongs to the runtime in which it was created, because that runtime's driver
//! watches it. Other runtimes and threads may use the socket too; once its own runtime has shut
//! down, waiting for the socket fails with an error.
//!
//! Several tasks may use a socket at once, by reference: any number of tasks can wait with the
//! asynchronous methods. The `poll_` methods keep one waker for each direction.
//!
//! # Examples
//!
//! An echo server:
//!
//! ```
//! use blitz_io::{io::Interest, net::{TcpListener, TcpStream}};
//!
//! async fn echo(stream: TcpStream) -> std::io::Result<()> {
//!     let mut buf = [0; 1024];
//!     loop {
//!         stream.readable().await?;
//!         match stream.try_read(&mut buf) {
//!             Ok(0) => return Ok(()),
//!             Ok(count) => {
//!                 stream.writable().await?;
//!                 stream.try_write(&buf[..count])?;
//!             }
//!             Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
//!             Err(error) => return Err(error),
//!         }
//!     }
//! }
//!
//! # blitz_io::run(async {
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let addr = listener.local_addr()?;
//! blitz_io::spawn(async move {
//!     while let Ok((stream, _)) = listener.accept().await {
//!         blitz_io::spawn(echo(stream));
//!     }
//! });
//!
//! let client = TcpStream::connect(addr).await?;
//! client.writable().await?;
//! client.try_write(b"hello")?;
//! client.ready(Interest::READABLE).await?;
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

#[macro_use]
mod methods;
#[macro_use]
mod halves;
#[macro_use]
mod owned;
pub(crate) mod error;
mod raw;
#[cfg_attr(
    not(any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd",
        target_os = "dragonfly",
    )),
    path = "nonblocking_portable.rs"
)]
mod nonblocking;
mod transfer;
pub(crate) mod evented;
mod lookup;
mod addr;
pub mod tcp;
mod udp;
#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;

pub(crate) use self::lookup::max_lookups;
#[cfg(unix)]
pub use self::unix::{
    datagram::UnixDatagram, listener::UnixListener, socket::UnixSocket, stream::UnixStream,
};
pub use self::{
    addr::{ToSocketAddrs, lookup_host},
    tcp::{listener::TcpListener, socket::TcpSocket, stream::TcpStream},
    udp::UdpSocket,
};
