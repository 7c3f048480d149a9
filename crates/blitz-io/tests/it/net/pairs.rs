//! Connected sockets, and helpers for their two ends.

use std::net::SocketAddr;
#[cfg(unix)]
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use blitz_io::net::{TcpListener, TcpStream, UdpSocket};

/// A free port on the loopback interface.
pub(crate) const ANY: &str = "127.0.0.1:0";

pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(ANY).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

/// Returns the two ends of a connection: the one that connected, and the one that was accepted.
pub(crate) async fn tcp() -> (TcpStream, TcpStream) {
    let (listener, address) = listener().await;
    let (client, server) = blitz_io::join!(TcpStream::connect(address), listener.accept());
    (client.expect("it connects"), server.expect("it accepts").0)
}

/// Returns the two ends of a stream within this machine.
#[cfg(unix)]
pub(crate) async fn near() -> (blitz_io::net::UnixStream, blitz_io::net::UnixStream) {
    blitz_io::net::UnixStream::pair().expect("it makes a pair")
}

/// Returns the two ends of a stream within this machine.
#[cfg(not(unix))]
pub(crate) async fn near() -> (TcpStream, TcpStream) {
    tcp().await
}

/// Returns two sockets that are connected to each other.
pub(crate) async fn udp() -> (UdpSocket, UdpSocket) {
    let a = UdpSocket::bind(ANY).await.expect("a free port");
    let b = UdpSocket::bind(ANY).await.expect("a free port");
    a.connect(b.local_addr().expect("it is bound")).await.expect("it connects");
    b.connect(a.local_addr().expect("it is bound")).await.expect("it connects");
    (a, b)
}

/// A path at which no file exists; a file that is created there is removed on drop.
#[cfg(unix)]
pub(crate) struct Path(PathBuf);

#[cfg(unix)]
pub(crate) fn path() -> Path {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let name = format!("blitz-net-time-{}-{number}", std::process::id());
    Path(std::env::temp_dir().join(name))
}

#[cfg(unix)]
impl AsRef<std::path::Path> for Path {
    fn as_ref(&self) -> &std::path::Path {
        &self.0
    }
}

#[cfg(unix)]
impl Drop for Path {
    fn drop(&mut self) {
        // There is nothing to remove if the test created nothing.
        let _ = std::fs::remove_file(&self.0);
    }
}
