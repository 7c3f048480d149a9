//! UDP sockets.

use std::{future::poll_fn, io::ErrorKind, sync::Arc};

use blitz_io::{io::ReadBuf, net::UdpSocket};

use crate::net::connected::{on_each, once, udp, when_ready, would_block};

async fn bound() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

#[test]
fn datagrams_arrive_with_their_bounds_and_their_sender() {
    on_each(async || {
        let (one, other) = (bound().await, bound().await);
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

/// Windows returns an error for a datagram that does not fit instead.
#[cfg(unix)]
#[test]
fn the_rest_of_a_long_datagram_is_discarded() {
    on_each(async || {
        let (one, other) = udp().await;
        one.send(b"abcdef").await.unwrap();
        one.send(b"gh").await.unwrap();
        let mut buf = [0; 3];
        assert_eq!(other.recv(&mut buf).await.unwrap(), 3);
        assert_eq!(&buf, b"abc");
        assert_eq!(other.recv(&mut buf).await.unwrap(), 2);
        assert_eq!(&buf[..2], b"gh");
    });
}

#[test]
fn peeking_leaves_the_datagram_there() {
    on_each(async || {
        let (one, other) = udp().await;
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
    on_each(async || {
        let (one, other) = udp().await;
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
    on_each(async || {
        let (one, other) = udp().await;
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
fn a_receive_that_was_given_up_loses_no_datagram() {
    on_each(async || {
        let (one, other) = udp().await;
        for round in 0..64u8 {
            let mut buf = [0; 4];
            assert!(once(other.recv(&mut buf)).is_pending());
            one.send(&[round]).await.unwrap();
            assert_eq!(other.recv(&mut buf).await.unwrap(), 1);
            assert_eq!(buf[0], round);
        }
    });
}

#[test]
fn tasks_that_share_a_socket_get_a_datagram_each() {
    on_each(async || {
        let (one, other) = udp().await;
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

/// Windows need not report it.
#[cfg(unix)]
#[test]
fn a_connected_socket_gets_an_error_when_its_peer_is_closed() {
    let _no_child = crate::child::none_starts();
    on_each(async || {
        let (one, other) = udp().await;
        drop(other);
        one.send(b"anybody?").await.unwrap();
        let error = one.recv(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_connected_socket_receives_only_from_its_peer() {
    on_each(async || {
        let (one, other) = udp().await;
        let stranger = bound().await;
        stranger.send_to(b"stranger", other.local_addr().unwrap()).await.unwrap();
        one.send(b"friend").await.unwrap();
        let mut buf = [0; 16];
        let count = other.recv(&mut buf).await.unwrap();
        assert_eq!(&buf[..count], b"friend");
    });
}

#[test]
fn trying_and_waiting_send_and_receive() {
    on_each(async || {
        let (one, other) = (bound().await, bound().await);
        let to = other.local_addr().unwrap();
        let sent = when_ready(async || one.writable().await, || one.try_send_to(b"abc", to)).await;
        assert_eq!(sent.unwrap(), 3);
        let mut buf = [0; 8];
        let got = when_ready(async || other.readable().await, || other.try_recv_from(&mut buf));
        assert_eq!(got.await.unwrap(), (3, one.local_addr().unwrap()));
    });
}

#[test]
fn options_are_kept() {
    on_each(async || {
        let socket = bound().await;
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
    on_each(async || {
        let (one, other) = udp().await;
        let one = UdpSocket::from_std(one.into_std().unwrap()).unwrap();
        one.send(b"abc").await.unwrap();
        assert_eq!(other.recv(&mut [0; 8]).await.unwrap(), 3);
    });
}
