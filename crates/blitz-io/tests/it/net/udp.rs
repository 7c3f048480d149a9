//! Tests UDP sockets: whole, truncated and empty datagrams, with and without a peer.

use std::{
    future::poll_fn,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use blitz_io::{
    io::{Interest, ReadBuf},
    net::UdpSocket,
};

use crate::support::{
    manual_poll::waiting,
    runtimes::{on_all_kinds, on_one_thread},
    sockets::{ANY, udp_pair, when_ready, would_block},
};

async fn bound() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[test]
fn a_datagram_arrives_whole_with_the_address_of_its_sender() {
    on_all_kinds(|| async {
        let ((a, a_address), (b, b_address)) = (bound().await, bound().await);
        assert_eq!(a.send_to(b"hello", b_address).await.unwrap(), 5);
        let mut buffer = [0; 64];
        assert_eq!(b.recv_from(&mut buffer).await.unwrap(), (5, a_address));
        assert_eq!(&buffer[..5], b"hello");
    });
}

#[test]
fn datagrams_do_not_run_together() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        for part in [&b"one"[..], b"", b"three"] {
            assert_eq!(a.send(part).await.unwrap(), part.len());
        }
        let mut buffer = [9; 64];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 3);
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 0, "an empty one is one");
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 5);
        assert_eq!(&buffer[..5], b"three");
    });
}

/// Windows returns an error for a datagram that does not fit instead.
#[cfg(unix)]
#[test]
fn a_datagram_that_does_not_fit_is_truncated() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        a.send(b"abcdef").await.unwrap();
        a.send(b"next").await.unwrap();
        let mut buffer = [0; 3];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 3);
        assert_eq!(&buffer, b"abc");
        let mut buffer = [0; 64];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
        assert_eq!(&buffer[..4], b"next");
    });
}

#[test]
fn peek_shows_and_takes_nothing() {
    on_all_kinds(|| async {
        let ((a, a_address), (b, b_address)) = (bound().await, bound().await);
        a.send_to(b"hello", b_address).await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(b.peek_from(&mut buffer).await.unwrap(), (5, a_address));
        assert_eq!(b.peek_sender().await.unwrap(), a_address);
        assert_eq!(b.peek(&mut buffer).await.unwrap(), 5);
        assert_eq!(b.try_peek_from(&mut buffer).unwrap(), (5, a_address));
        assert_eq!(b.try_peek_sender().unwrap(), a_address);
        assert_eq!(b.try_peek(&mut buffer).unwrap(), 5);
        let mut room = [0; 64];
        let mut buf = ReadBuf::new(&mut room);
        assert_eq!(poll_fn(|cx| b.poll_peek_from(cx, &mut buf)).await.unwrap(), a_address);
        assert_eq!(buf.filled(), b"hello");
        assert_eq!(b.recv_from(&mut buffer).await.unwrap(), (5, a_address));
        assert_eq!(b.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_connected_socket_receives_only_from_its_peer() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        assert_eq!(a.peer_addr().unwrap(), b.local_addr().unwrap());
        let (stranger, _) = bound().await;
        stranger.send_to(b"hey", b.local_addr().unwrap()).await.unwrap();
        a.send(b"friend").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 6);
        assert_eq!(&buffer[..6], b"friend");
    });
}

#[test]
fn sending_without_a_peer_is_an_error() {
    on_all_kinds(|| async {
        let (a, _) = bound().await;
        assert!(a.send(b"x").await.is_err());
        assert!(a.peer_addr().is_err());
    });
}

#[test]
fn more_than_a_datagram_holds_is_an_error() {
    on_all_kinds(|| async {
        let (a, _b) = udp_pair().await;
        assert!(a.send(&[0; 70_000]).await.is_err());
        assert_eq!(a.send(&[0; 60_000]).await.unwrap(), 60_000);
    });
}

/// Windows need not report it.
#[cfg(unix)]
#[test]
fn a_peer_that_is_gone_is_an_error_of_the_next_operation() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        drop(b);
        a.send(b"x").await.unwrap();
        let error = a.recv(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // The socket itself can be used as before.
        let (c, c_address) = bound().await;
        a.connect(c_address).await.unwrap();
        a.send(b"y").await.unwrap();
        assert_eq!(c.recv(&mut [0; 8]).await.unwrap(), 1);
    });
}

#[test]
fn readiness_is_cleared_by_a_try_that_finds_nothing() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        let mut buffer = [0; 8];
        assert_eq!(b.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(b.try_recv_from(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        a.writable().await.unwrap();
        assert_eq!(a.try_send(b"abc").unwrap(), 3);
        b.readable().await.unwrap();
        assert_eq!(b.try_recv(&mut buffer).unwrap(), 3);
        assert_eq!(b.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        let target = b.local_addr().unwrap();
        let (c, c_address) = bound().await;
        c.writable().await.unwrap();
        drop((a, b));
        assert!(c.try_send_to(b"x", target).is_ok());
        let ready = c.ready(Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable());
        assert_eq!(c.local_addr().unwrap(), c_address);
    });
}

#[test]
fn polls_do_what_the_futures_do() {
    on_all_kinds(|| async {
        let ((a, a_address), (b, b_address)) = (bound().await, bound().await);
        let sent = poll_fn(|cx| a.poll_send_to(cx, b"one", b_address)).await.unwrap();
        assert_eq!(sent, 3);
        poll_fn(|cx| b.poll_recv_ready(cx)).await.unwrap();
        let mut room = [0; 8];
        let mut buf = ReadBuf::new(&mut room);
        assert_eq!(poll_fn(|cx| b.poll_recv_from(cx, &mut buf)).await.unwrap(), a_address);
        assert_eq!(buf.filled(), b"one");
        b.connect(a_address).await.unwrap();
        a.connect(b_address).await.unwrap();
        poll_fn(|cx| b.poll_send_ready(cx)).await.unwrap();
        assert_eq!(poll_fn(|cx| b.poll_send(cx, b"two")).await.unwrap(), 3);
        let mut room = [0; 8];
        let mut buf = ReadBuf::new(&mut room);
        poll_fn(|cx| a.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"two");
    });
}

#[test]
fn buffers_of_bytes_are_filled_where_they_end() {
    on_all_kinds(|| async {
        let ((a, a_address), (b, b_address)) = (bound().await, bound().await);
        let mut buffer = Vec::with_capacity(64);
        a.send_to(b"one", b_address).await.unwrap();
        assert_eq!(b.recv_buf_from(&mut buffer).await.unwrap(), (3, a_address));
        a.connect(b_address).await.unwrap();
        a.send(b"two").await.unwrap();
        assert_eq!(b.recv_buf(&mut buffer).await.unwrap(), 3);
        assert_eq!(buffer, b"onetwo");
        a.send(b"three").await.unwrap();
        b.readable().await.unwrap();
        assert_eq!(b.try_recv_buf(&mut buffer).unwrap(), 5);
        assert_eq!(buffer, b"onetwothree");
    });
}

#[test]
fn two_tasks_use_one_socket_at_once_without_a_lock() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        let a = Arc::new(a);
        let sender = a.clone();
        let echo = blitz_io::spawn(async move {
            let mut buffer = [0; 8];
            for _ in 0..200 {
                let count = b.recv(&mut buffer).await.unwrap();
                b.send(&buffer[..count]).await.unwrap();
            }
        });
        // One at a time, so that no datagram is dropped for lack of room.
        let receiving = a.clone();
        let (received, mut turn) = blitz_io::sync::mpsc::channel(1);
        let receiver = blitz_io::spawn(async move {
            let mut buffer = [0; 8];
            for number in 0..200_u32 {
                assert_eq!(receiving.recv(&mut buffer).await.unwrap(), 4);
                assert_eq!(buffer[..4], number.to_be_bytes());
                received.send(()).await.unwrap();
            }
        });
        for number in 0..200_u32 {
            sender.send(&number.to_be_bytes()).await.unwrap();
            turn.recv().await.unwrap();
        }
        receiver.await.unwrap();
        echo.await.unwrap();
    });
}

#[test]
fn options_are_what_was_set() {
    on_one_thread(async {
        let (socket, _) = bound().await;
        for on in [true, false] {
            socket.set_broadcast(on).unwrap();
            socket.set_multicast_loop_v4(on).unwrap();
            assert_eq!(socket.broadcast().unwrap(), on);
            assert_eq!(socket.multicast_loop_v4().unwrap(), on);
        }
        socket.set_ttl(23).unwrap();
        socket.set_multicast_ttl_v4(29).unwrap();
        assert_eq!((socket.ttl().unwrap(), socket.multicast_ttl_v4().unwrap()), (23, 29));
        assert!(socket.take_error().unwrap().is_none());
        assert!(
            socket.leave_multicast_v4(Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::LOCALHOST).is_err()
        );
    });
}

#[test]
fn a_std_socket_converts_in_and_out() {
    on_all_kinds(|| async {
        let socket = std::net::UdpSocket::bind(ANY).unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let socket = UdpSocket::from_std(socket).unwrap();
        socket.send_to(b"self", address).await.unwrap();
        let mut buffer = [0; 8];
        assert_eq!(socket.recv_from(&mut buffer).await.unwrap(), (4, address));
        let socket = socket.into_std().unwrap();
        assert_eq!(socket.recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

/// Windows returns an error for a datagram that does not fit instead.
#[cfg(unix)]
#[test]
fn a_buffer_without_room_takes_a_datagram_all_the_same() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        a.send(b"gone").await.unwrap();
        a.send(b"next").await.unwrap();
        b.readable().await.unwrap();
        assert_eq!(b.recv(&mut []).await.unwrap(), 0);
        let mut buffer = [0; 8];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
        assert_eq!(&buffer[..4], b"next");
    });
}

#[test]
fn two_waiters_each_get_a_datagram() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        let b = Arc::new(b);
        let wait = |socket: Arc<UdpSocket>| {
            blitz_io::spawn(async move {
                let mut buffer = [0; 8];
                let count = socket.recv(&mut buffer).await.unwrap();
                buffer[..count].to_vec()
            })
        };
        let (first, second) = (wait(b.clone()), wait(b.clone()));
        a.send(b"1").await.unwrap();
        a.send(b"2").await.unwrap();
        let mut got = [first.await.unwrap(), second.await.unwrap()];
        got.sort();
        assert_eq!(got, [b"1", b"2"]);
        waiting(async { b.recv(&mut [0; 8]).await }).still_waits();
    });
}

#[test]
fn datagrams_arrive_with_their_bounds_and_their_sender() {
    on_all_kinds(|| async {
        let ((one, _), (other, _)) = (bound().await, bound().await);
        let to = other.local_addr().unwrap();
        for length in [0, 1, 9, 1400] {
            assert_eq!(one.send_to(&vec![3; length], to).await.unwrap(), length);
        }
        for length in [0, 1, 9, 1400] {
            let mut buf = [0; 2000];
            let (count, from) = other.recv_from(&mut buf).await.unwrap();
            assert_eq!((count, from), (length, one.local_addr().unwrap()));
            assert!(buf[..count].iter().all(|byte| *byte == 3));
        }
    });
}

#[test]
fn peeking_leaves_the_datagram_there() {
    on_all_kinds(|| async {
        let (one, other) = udp_pair().await;
        let from = one.local_addr().unwrap();
        one.send(b"abc").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(other.peek(&mut buf).await.unwrap(), 3);
        assert_eq!(other.peek_from(&mut buf).await.unwrap(), (3, from));
        assert_eq!(other.peek_sender().await.unwrap(), from);
        assert_eq!(other.try_peek(&mut buf).unwrap(), 3);
        assert_eq!(other.try_peek_from(&mut buf).unwrap(), (3, from));
        assert_eq!(other.try_peek_sender().unwrap(), from);
        let mut peeked = ReadBuf::new(&mut buf);
        poll_fn(|cx| other.poll_peek(cx, &mut peeked)).await.unwrap();
        assert_eq!(peeked.filled(), b"abc");
        assert_eq!(poll_fn(|cx| other.poll_peek_sender(cx)).await.unwrap(), from);
        assert_eq!(other.recv(&mut buf).await.unwrap(), 3);
        would_block(other.try_peek(&mut buf));
        would_block(other.try_recv(&mut buf));
    });
}

#[test]
fn polling_receives_into_memory_that_was_not_initialised() {
    on_all_kinds(|| async {
        let (one, other) = udp_pair().await;
        let mut memory = [std::mem::MaybeUninit::uninit(); 32];
        let mut buf = ReadBuf::uninit(&mut memory);
        assert_eq!(poll_fn(|cx| one.poll_send(cx, b"abc")).await.unwrap(), 3);
        let from = poll_fn(|cx| other.poll_recv_from(cx, &mut buf)).await.unwrap();
        assert_eq!((from, buf.filled()), (one.local_addr().unwrap(), &b"abc"[..]));
        one.send(b"def").await.unwrap();
        poll_fn(|cx| other.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"abcdef");
    });
}

#[test]
fn a_growing_buffer_gets_datagrams_behind_what_it_has() {
    on_all_kinds(|| async {
        let (one, other) = udp_pair().await;
        let mut buf = Vec::with_capacity(64);
        one.send(b"ab").await.unwrap();
        one.send(b"cd").await.unwrap();
        assert_eq!(other.recv_buf(&mut buf).await.unwrap(), 2);
        let from = one.local_addr().unwrap();
        assert_eq!(other.recv_buf_from(&mut buf).await.unwrap(), (2, from));
        assert_eq!(buf, b"abcd");
        would_block(other.try_recv_buf(&mut buf));
        assert_eq!(buf, b"abcd");
    });
}

#[test]
fn tasks_that_share_a_socket_get_a_datagram_each() {
    on_all_kinds(|| async {
        let (one, other) = udp_pair().await;
        let other = Arc::new(other);
        let receiving: Vec<_> = (0..8)
            .map(|_| {
                let other = other.clone();
                blitz_io::spawn(async move {
                    let mut buf = [0; 4];
                    assert_eq!(other.recv(&mut buf).await.unwrap(), 1);
                    buf[0]
                })
            })
            .collect();
        for n in 0..8 {
            one.send(&[n]).await.unwrap();
        }
        let mut got = Vec::new();
        for task in receiving {
            got.push(task.await.unwrap());
        }
        got.sort_unstable();
        assert_eq!(got, (0..8).collect::<Vec<u8>>());
    });
}

#[test]
fn trying_and_waiting_send_and_receive() {
    on_all_kinds(|| async {
        let ((one, _), (other, _)) = (bound().await, bound().await);
        let to = other.local_addr().unwrap();
        let sent = when_ready(|| one.writable(), || one.try_send_to(b"abc", to)).await;
        assert_eq!(sent.unwrap(), 3);
        let mut buf = [0; 8];
        let got = when_ready(|| other.readable(), || other.try_recv_from(&mut buf));
        assert_eq!(got.await.unwrap(), (3, one.local_addr().unwrap()));
    });
}

#[test]
fn options_are_kept() {
    on_all_kinds(|| async {
        let (socket, _) = bound().await;
        assert!(!socket.broadcast().unwrap());
        let error = socket.send_to(b"x", "255.255.255.255:9").await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NetworkUnreachable),
            "{error:?}"
        );
        socket.set_broadcast(true).unwrap();
        assert!(socket.broadcast().unwrap());
        socket.set_ttl(77).unwrap();
        socket.set_multicast_ttl_v4(3).unwrap();
        socket.set_multicast_loop_v4(false).unwrap();
        socket.set_tos_v4(0x10).unwrap();
        assert_eq!((socket.ttl().unwrap(), socket.multicast_ttl_v4().unwrap()), (77, 3));
        assert!(!socket.multicast_loop_v4().unwrap());
        assert_eq!(socket.tos_v4().unwrap(), 0x10);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.device().unwrap(), None);
        assert!(socket.take_error().unwrap().is_none());
    });
}

#[test]
fn a_socket_goes_to_std_and_comes_back() {
    on_all_kinds(|| async {
        let (one, other) = udp_pair().await;
        let one = UdpSocket::from_std(one.into_std().unwrap()).unwrap();
        one.send(b"abc").await.unwrap();
        assert_eq!(other.recv(&mut [0; 8]).await.unwrap(), 3);
    });
}
