//! Bytes that are in a socket's buffer are read by the first poll, even if no event reports them,
//! and whatever earlier reads have found.

use std::{
    future::Future,
    os::fd::{AsFd, AsRawFd},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread::{self, Thread},
    time::Duration,
};

use blitz_io::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    select,
    sync::CancellationToken,
    time::timeout,
};

use crate::{
    net::pairs::{self, near},
    on::{each, one_thread, workers},
    polled::{now, once},
    watch,
};

/// The number of messages that come one at a time, before those that come together.
const ALONE: usize = 32;

/// The size of a message and of the buffer that it is read into, which it fills.
const SIZE: usize = 64;

/// Waits until the kernel has something to read, without the runtime.
fn arrived(socket: &impl AsFd) {
    let fd = socket.as_fd().as_raw_fd();
    let mut asked = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the array is one `pollfd`, which this function owns. A signal may interrupt the call.
    watch::until(|| unsafe { libc::poll(&raw mut asked, 1, -1) } == 1);
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
    let (mut near, mut far) = pairs::tcp().await;
    far.set_nodelay(true).unwrap();
    talk(&mut near, &mut far).await;
    (near, far)
}

/// Returns two ends that have exchanged messages.
async fn udp() -> (UdpSocket, UdpSocket) {
    let (near, far) = pairs::udp().await;
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
    each(|| async {
        let (near, far) = tcp().await;
        drain(near, far).await;
    });
}

#[test]
fn bytes_of_a_unix_stream_are_read_by_the_first_poll() {
    each(|| async {
        let (mut near, mut far) = near().await;
        talk(&mut near, &mut far).await;
        drain(near, far).await;
    });
}

#[test]
fn datagrams_are_received_by_the_first_poll() {
    each(|| async {
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
    each(|| async {
        let (listener, address) = pairs::listener().await;
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
    each(|| async {
        let (mut near, mut far) = tcp().await;
        far.write_all(&[2; SIZE]).await.unwrap();
        assert_eq!(near.peek(&mut [0; SIZE]).await.unwrap(), SIZE);
        now(near.readable()).unwrap();
        assert_eq!(now(near.read(&mut [0; SIZE])).unwrap(), SIZE);
    });
}

#[test]
fn a_timeout_of_nothing_is_enough_for_what_is_there() {
    each(|| async {
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
    each(|| async {
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

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks on a future like an executor that knows nothing of runtimes.
fn park_until_ready<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), Arc::new(Unpark(thread::current())).into());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// The other executor occupies the only thread that could poll for events.
#[test]
fn another_executor_inside_a_task_reads_what_is_there() {
    each(|| async {
        let (mut near, mut far) = tcp().await;
        far.write_all(&[2; 4 * SIZE]).await.unwrap();
        for _ in 0..4 {
            arrived(&near);
            assert_eq!(park_until_ready(near.read(&mut [0; SIZE])).unwrap(), SIZE);
        }
    });
}

/// The first runtime's `block_on` ends with messages unread, and then polls for no events.
#[test]
fn another_runtime_reads_what_is_left() {
    let _watch = watch::begin();
    for second in [one_thread(), workers(1)] {
        let first = one_thread();
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
