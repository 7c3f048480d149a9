//! Connects sockets of this process with each other, and checks calls that would block.

use std::{io, net::SocketAddr};

use blitz_io::net::{TcpListener, TcpStream, UdpSocket};

/// A free port on the loopback interface.
pub(crate) const ANY: &str = "127.0.0.1:0";

pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(ANY).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

/// Returns the two ends of a connection: the one that connected, and the one that was accepted.
pub(crate) async fn tcp_pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listener().await;
    let (client, server) = blitz_io::join!(TcpStream::connect(address), listener.accept());
    (client.expect("it connects"), server.expect("it accepts").0)
}

/// Returns the two ends of a Unix stream, or of a TCP stream where there are none.
#[cfg(unix)]
pub(crate) async fn local_pair() -> (blitz_io::net::UnixStream, blitz_io::net::UnixStream) {
    blitz_io::net::UnixStream::pair().expect("it makes a pair")
}

/// Returns the two ends of a Unix stream, or of a TCP stream where there are none.
#[cfg(not(unix))]
pub(crate) async fn local_pair() -> (TcpStream, TcpStream) {
    tcp_pair().await
}

/// Returns two sockets that are connected to each other.
pub(crate) async fn udp_pair() -> (UdpSocket, UdpSocket) {
    let a = UdpSocket::bind(ANY).await.expect("a free port");
    let b = UdpSocket::bind(ANY).await.expect("a free port");
    a.connect(b.local_addr().expect("it is bound")).await.expect("it connects");
    b.connect(a.local_addr().expect("it is bound")).await.expect("it connects");
    (a, b)
}

/// Asserts that a call returned `WouldBlock`.
#[track_caller]
pub(crate) fn would_block<T: std::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Calls `attempt` until it no longer returns `WouldBlock`, and waits for readiness in between.
pub(crate) async fn when_ready<T, F: Future<Output = io::Result<()>>>(
    ready: impl Fn() -> F,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        ready().await?;
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}
