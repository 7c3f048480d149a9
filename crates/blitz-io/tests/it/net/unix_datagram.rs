//! Tests Unix datagram sockets.

use std::{future::poll_fn, io::ErrorKind, net::Shutdown};

use blitz_io::{
    io::ReadBuf,
    net::{UnixDatagram, UnixSocket},
};

use crate::support::{
    manual_poll::{once, waiting},
    runtimes::on_all_kinds,
    temp_files::{folder, unused_path},
};

#[test]
fn a_pair_is_connected() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        a.send(b"one").await.unwrap();
        a.send(b"").await.unwrap();
        a.send(b"three").await.unwrap();
        let mut buffer = [0; 4];
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 3);
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 0);
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 4, "what does not fit is cut off");
        assert_eq!(&buffer, b"thre");
        drop(a);
        assert!(b.send(b"x").await.is_err());
    });
}

#[test]
fn paths_are_addresses() {
    on_all_kinds(|| async {
        let (a_path, b_path) = (unused_path(), unused_path());
        let a = UnixDatagram::bind(&a_path).unwrap();
        let b = UnixDatagram::bind(&b_path).unwrap();
        a.send_to(b"hello", &b_path).await.unwrap();
        let mut buffer = [0; 8];
        let (count, from) = b.recv_from(&mut buffer).await.unwrap();
        assert_eq!((count, from.as_pathname()), (5, Some(a_path.as_ref())));
        let unbound = UnixDatagram::unbound().unwrap();
        assert!(unbound.local_addr().unwrap().is_unnamed());
        unbound.connect(&b_path).unwrap();
        unbound.send(b"hey").await.unwrap();
        let (count, from) = b.recv_from(&mut buffer).await.unwrap();
        assert!(count == 3 && from.is_unnamed());
    });
}

#[test]
fn a_path_without_a_socket_is_an_error() {
    on_all_kinds(|| async {
        let a = UnixDatagram::unbound().unwrap();
        let error = a.send_to(b"x", &unused_path()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(a.connect(unused_path()).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(a.send(b"x").await.is_err());
    });
}

#[test]
fn tries_would_block() {
    on_all_kinds(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let mut buffer = [0; 64];
        assert_eq!(b.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        a.writable().await.unwrap();
        let mut sent = 0;
        while let Ok(count) = a.try_send(&[1; 32]) {
            assert_eq!(count, 32);
            sent += 1;
        }
        let mut sending = waiting(a.send(&[2; 32]));
        for _ in 0..sent {
            b.readable().await.unwrap();
            assert_eq!(b.try_recv(&mut buffer).unwrap(), 32);
        }
        sending.pin().await.unwrap();
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 32);
        assert_eq!(buffer[0], 2);
    });
}

#[test]
fn polls_do_what_the_futures_do() {
    on_all_kinds(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        poll_fn(|cx| a.poll_send_ready(cx)).await.unwrap();
        assert_eq!(poll_fn(|cx| a.poll_send(cx, b"one")).await.unwrap(), 3);
        poll_fn(|cx| b.poll_recv_ready(cx)).await.unwrap();
        let mut room = [0; 8];
        let mut buf = ReadBuf::new(&mut room);
        poll_fn(|cx| b.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"one");
    });
}

#[test]
fn shutdown_ends_the_given_direction() {
    on_all_kinds(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        b.shutdown(Shutdown::Read).unwrap();
        assert_eq!(a.send(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        b.send(b"y").await.unwrap();
        assert_eq!(a.recv(&mut [0; 8]).await.unwrap(), 1, "the other way goes on");
        let (a, b) = UnixDatagram::pair().unwrap();
        a.send(b"before").await.unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        assert_eq!(a.send(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(b.recv(&mut [0; 8]).await.unwrap(), 6);
    });
}

#[test]
fn a_socket_becomes_a_datagram_socket() {
    on_all_kinds(|| async {
        let path = unused_path();
        let socket = UnixSocket::new_datagram().unwrap();
        socket.bind(&path).unwrap();
        let b = socket.datagram().unwrap();
        let a = UnixDatagram::unbound().unwrap();
        a.send_to(b"x", &path).await.unwrap();
        assert_eq!(b.recv(&mut [0; 8]).await.unwrap(), 1);
        let b = b.into_std().unwrap();
        assert_eq!(b.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        UnixDatagram::from_std(b).unwrap();
    });
}

#[test]
fn datagrams_arrive_with_their_bounds_and_their_sender() {
    on_all_kinds(|| async {
        let dir = folder();
        let (at_one, at_other) = (dir.path().join("one"), dir.path().join("other"));
        let one = UnixDatagram::bind(&at_one).unwrap();
        let other = UnixDatagram::bind(&at_other).unwrap();
        one.send_to(b"abcdef", &at_other).await.unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"", &at_other).await.unwrap();
        let mut buf = [0; 4];
        let (count, from) = other.recv_from(&mut buf).await.unwrap();
        assert_eq!((count, &buf, from.as_pathname()), (4, b"abcd", Some(at_one.as_path())));
        let (count, from) = other.recv_from(&mut buf).await.unwrap();
        assert!(count == 0 && from.is_unnamed());
        other.connect(&at_one).unwrap();
        other.send(b"back").await.unwrap();
        let mut back = Vec::new();
        let (count, from) = one.recv_buf_from(&mut back).await.unwrap();
        assert_eq!(
            (count, &back[..], from.as_pathname()),
            (4, &b"back"[..], Some(at_other.as_path()))
        );
    });
}

#[test]
fn a_send_waits_until_there_is_room() {
    on_all_kinds(|| async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let mut sent = 0;
        while one.try_send(&[1; 64]).is_ok() {
            sent += 1;
        }
        assert!(sent > 0);
        assert!(once(one.send(b"more")).is_pending());
        let sends = blitz_io::spawn(async move { one.send(b"more").await.unwrap() });
        let mut buf = [0; 64];
        for _ in 0..sent {
            assert_eq!(other.recv(&mut buf).await.unwrap(), 64);
        }
        assert_eq!(other.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(sends.await.unwrap(), 4);
    });
}

#[test]
fn polling_datagrams_sends_and_receives() {
    on_all_kinds(|| async {
        let (one, other) = UnixDatagram::pair().unwrap();
        assert_eq!(poll_fn(|cx| one.poll_send(cx, b"abc")).await.unwrap(), 3);
        let mut memory = [std::mem::MaybeUninit::uninit(); 8];
        let mut buf = ReadBuf::uninit(&mut memory);
        poll_fn(|cx| other.poll_recv_ready(cx)).await.unwrap();
        let from = poll_fn(|cx| other.poll_recv_from(cx, &mut buf)).await.unwrap();
        assert!(from.is_unnamed());
        assert_eq!(buf.filled(), b"abc");
    });
}
