//! Helpers of the network tests: runtimes with I/O, and connected pairs.

use std::{
    io,
    pin::pin,
    task::{Context, Poll, Waker},
};

use blitz_io::{
    net::{TcpListener, TcpStream, UdpSocket},
    runtime::{Builder, Runtime},
};

use crate::watch;

/// Creates a current-thread runtime with I/O.
pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Creates a runtime with two workers and I/O.
pub(crate) fn workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Runs `fact` on every kind of runtime.
pub(crate) fn on_each(fact: impl AsyncFn()) {
    let _watch = watch::begin();
    for rt in [one_thread(), workers()] {
        rt.block_on(fact());
    }
}

pub(crate) async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

/// Returns the two ends of a connection: the one that connected, and the one that was accepted.
pub(crate) async fn tcp() -> (TcpStream, TcpStream) {
    let listener = listener().await;
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, server)
}

/// Returns two sockets that are connected to each other.
pub(crate) async fn udp() -> (UdpSocket, UdpSocket) {
    let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    one.connect(other.local_addr().unwrap()).await.unwrap();
    other.connect(one.local_addr().unwrap()).await.unwrap();
    (one, other)
}

/// Polls a future once, and drops it.
pub(crate) fn once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
pub(crate) fn would_block<T: std::fmt::Debug>(answer: io::Result<T>) {
    assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Calls `attempt` until it no longer returns `WouldBlock`, and waits for readiness in between.
pub(crate) async fn when_ready<T>(
    ready: impl AsyncFn() -> io::Result<()>,
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
