//! Tests that bytes in a socket's buffer are read by the first poll, even if no event reports them,
//! and whatever earlier reads have found.

use std::{
    future::Future,
    os::fd::{AsFd, AsRawFd},
    pin::pin,
    task::Poll,
    time::Duration,
};

use blitz_io::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    select,
    sync::CancellationToken,
    time::timeout,
};

use crate::support::{
    manual_poll::{foreign_block_on, now, once},
    runtimes::{on_all_kinds, one_thread_with_drivers, workers_with_drivers},
    sockets::{self, local_pair},
    watchdog,
};

/// The number of messages that come one at a time, before those that come together.
const ALONE: usize = 32;

/// The size of a message and of the buffer that it is read into, which it fills.
const SIZE: usize = 64;

/// Waits until the kernel has something to read, without the runtime.
fn arrived(socket: &impl AsFd) {
    let fd = socket.as_fd().as_raw_fd();
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the array is one `pollfd`, which this function owns. A signal may interrupt the call.
    watchdog::until(|| unsafe { libc::poll(&raw mut entry, 1, -1) } == 1);
}

/// Polls a future that has to wait, then runs `then`, which completes it.
async fn alone<F: Future>(waits: F, then: impl Future) -> F::Output {
    let mut waits = pin!(waits);
    let first = std::future::poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx))).await;
    assert!(first.is_pending(), "there is nothing yet");
    then.await;
    waits.await
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(near: &mut S, far: &mut S) {
    for _ in 0..ALONE {
        let mut message = [0; SIZE];
        let read = alone(near.read(&mut message), far.write_all(&[1; SIZE])).await;
        assert_eq!(read.unwrap(), SIZE);
    }
}

/// Returns two ends that have exchanged messages.
async fn tcp() -> (TcpStream, TcpStream) {
    let (mut near, mut far) = sockets::tcp_pair().await;
    far.set_nodelay(true).unwrap();
    talk(&mut near, &mut far).await;
    (near, far)
}

/// Returns two ends that have exchanged messages.
async fn udp() -> (UdpSocket, UdpSocket) {
    let (near, far) = sockets::udp_pair().await;
    for _ in 0..ALONE {
        let received = alone(near.recv(&mut [0; SIZE]), far.send(&[1; SIZE])).await;
        assert_eq!(received.unwrap(), SIZE);
    }
    (near, far)
}

async fn drain<S: AsyncRead + AsyncWrite + AsFd + Unpin>(mut near: S, mut far: S) {
    far.write_all(&[2; 4 * SIZE]).await.unwrap();
    for _ in 0..4 {
        arrived(&near);
        assert_eq!(now(near.read(&mut [0; SIZE])).unwrap(), SIZE);
    }
}

#[test]
fn bytes_of_a_connection_are_read_by_the_first_poll() {
    on_all_kinds(|| async {
        let (near, far) = tcp().await;
        drain(near, far).await;
    });
}

#[test]
fn bytes_of_a_unix_stream_are_read_by_the_first_poll() {
    on_all_kinds(|| async {
        let (mut near, mut far) = local_pair().await;
        talk(&mut near, &mut far).await;
        drain(near, far).await;
    });
}

#[test]
fn datagrams_are_received_by_the_first_poll() {
    on_all_kinds(|| async {
        let (near, far) = udp().await;
        for number in 0..4 {
            far.send(&[number; SIZE]).await.unwrap();
        }
        for number in 0..4 {
            let mut datagram = [9; SIZE];
            arrived(&near);
            assert_eq!(now(near.recv(&mut datagram)).unwrap(), SIZE);
            assert_eq!(datagram, [number; SIZE]);
        }
    });
}

#[test]
fn connections_are_accepted_by_the_first_poll() {
    on_all_kinds(|| async {
        let (listener, address) = sockets::listener().await;
        for _ in 0..ALONE {
            let connect = async { TcpStream::connect(address).await.unwrap() };
            alone(listener.accept(), connect).await.unwrap();
        }
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        for client in &clients {
            arrived(&listener);
            let (_, peer) = now(listener.accept()).unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
    });
}

#[test]
fn bytes_that_were_peeked_are_read_by_the_first_poll() {
    on_all_kinds(|| async {
        let (mut near, mut far) = tcp().await;
        far.write_all(&[2; SIZE]).await.unwrap();
        assert_eq!(near.peek(&mut [0; SIZE]).await.unwrap(), SIZE);
        now(near.readable()).unwrap();
        assert_eq!(now(near.read(&mut [0; SIZE])).unwrap(), SIZE);
    });
}

#[test]
fn a_timeout_of_nothing_is_enough_for_what_is_there() {
    on_all_kinds(|| async {
        let (mut near, mut far) = tcp().await;
        far.write_all(&[2; 4 * SIZE]).await.unwrap();
        for _ in 0..4 {
            arrived(&near);
            let read = timeout(Duration::ZERO, near.read(&mut [0; SIZE])).await;
            assert_eq!(read.expect("it is there").unwrap(), SIZE);
        }
    });
}

#[test]
fn a_cancellation_does_not_overtake_datagrams_that_are_there() {
    on_all_kinds(|| async {
        let ((near, far), token) = (udp().await, CancellationToken::new());
        for _ in 0..19 {
            far.send(&[2; SIZE]).await.unwrap();
        }
        token.cancel();
        let (mut received, mut datagram) = (0, [0; SIZE]);
        loop {
            if received < 19 {
                arrived(&near);
            }
            select! {
                biased;
                datagram = near.recv(&mut datagram) => received += usize::from(datagram.is_ok()),
                () = token.cancelled() => break,
            }
        }
        assert_eq!(received, 19);
    });
}

/// The other executor occupies the only thread that could poll for events.
#[test]
fn another_executor_inside_a_task_reads_what_is_there() {
    on_all_kinds(|| async {
        let (mut near, mut far) = tcp().await;
        far.write_all(&[2; 4 * SIZE]).await.unwrap();
        for _ in 0..4 {
            arrived(&near);
            assert_eq!(foreign_block_on(near.read(&mut [0; SIZE])).unwrap(), SIZE);
        }
    });
}

/// The first runtime's `block_on` ends with messages unread, and then polls for no events.
#[test]
fn another_runtime_reads_what_is_left() {
    let _watch = watchdog::start();
    for second in [one_thread_with_drivers(), workers_with_drivers(1)] {
        let first = one_thread_with_drivers();
        let (mut near, _far, mut read) = first.block_on(async {
            let (mut near, mut far) = tcp().await;
            far.write_all(&[2; 4 * SIZE]).await.unwrap();
            arrived(&near);
            let mut read = near.read(&mut [0; SIZE]).await.unwrap();
            if let Poll::Ready(more) = once(near.read(&mut [0; SIZE])) {
                read += more.unwrap();
            }
            (near, far, read)
        });
        let rest = second.spawn(async move {
            while read < 4 * SIZE {
                read += near.read(&mut [0; SIZE]).await.unwrap();
            }
            read
        });
        assert_eq!(second.block_on(rest).unwrap(), 4 * SIZE);
    }
}
