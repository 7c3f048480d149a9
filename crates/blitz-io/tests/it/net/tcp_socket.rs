//! Tests `TcpSocket`, and the options of TCP streams and listeners.

#[cfg(unix)]
use std::os::fd::AsRawFd;
use std::{io::ErrorKind, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};

use crate::support::{
    runtimes::{on_all_kinds, on_one_thread},
    sockets::{ANY, listener, tcp_pair},
};

#[test]
fn a_socket_becomes_a_listener_and_another_a_stream() {
    on_all_kinds(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        assert!(socket.reuseaddr().unwrap());
        socket.bind(ANY.parse().unwrap()).unwrap();
        let listener = socket.listen(16).unwrap();
        let address = listener.local_addr().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(ANY.parse().unwrap()).unwrap();
        let from = socket.local_addr().unwrap();
        let (client, server) = blitz_io::join!(socket.connect(address), listener.accept());
        assert_eq!(client.unwrap().local_addr().unwrap(), from);
        assert_eq!(server.unwrap().1, from);
    });
}

#[test]
fn options_that_were_set_are_read_back() {
    on_one_thread(async {
        let socket = TcpSocket::new_v4().unwrap();
        for on in [true, false] {
            socket.set_reuseaddr(on).unwrap();
            socket.set_keepalive(on).unwrap();
            socket.set_nodelay(on).unwrap();
            assert_eq!(
                (
                    socket.reuseaddr().unwrap(),
                    socket.keepalive().unwrap(),
                    socket.nodelay().unwrap()
                ),
                (on, on, on)
            );
            #[cfg(unix)]
            {
                socket.set_reuseport(on).unwrap();
                assert_eq!(socket.reuseport().unwrap(), on);
            }
        }
        socket.set_zero_linger().unwrap();
        socket.set_send_buffer_size(50_000).unwrap();
        socket.set_recv_buffer_size(60_000).unwrap();
        // The system may round up, and Linux doubles the size.
        assert!(socket.send_buffer_size().unwrap() >= 50_000);
        assert!(socket.recv_buffer_size().unwrap() >= 60_000);
        assert!(socket.take_error().unwrap().is_none());
        #[cfg(unix)]
        assert!(socket.as_raw_fd() >= 0);
    });
}

#[test]
fn options_of_a_stream_are_what_was_set() {
    on_one_thread(async {
        let (client, _server) = tcp_pair().await;
        for on in [true, false] {
            client.set_nodelay(on).unwrap();
            assert_eq!(client.nodelay().unwrap(), on);
        }
        client.set_ttl(17).unwrap();
        assert_eq!(client.ttl().unwrap(), 17);
        client.set_zero_linger().unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
        assert!(client.take_error().unwrap().is_none());
    });
}

#[test]
fn options_of_a_listener_are_what_was_set() {
    on_one_thread(async {
        let (listener, _) = listener().await;
        listener.set_ttl(19).unwrap();
        assert_eq!(listener.ttl().unwrap(), 19);
    });
}

#[cfg(unix)]
#[test]
fn two_listeners_share_a_port_when_both_set_reuseport() {
    on_one_thread(async {
        let make = |address: std::net::SocketAddr| {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseport(true).unwrap();
            socket.bind(address).unwrap();
            socket.listen(128).unwrap()
        };
        let first = make(ANY.parse().unwrap());
        let second = make(first.local_addr().unwrap());
        assert_eq!(first.local_addr().unwrap(), second.local_addr().unwrap());
        let address = first.local_addr().unwrap();
        // The system distributes the connections; with this many, each listener gets one.
        let mut clients = Vec::new();
        for _ in 0..64 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let (a, b) = blitz_io::join!(first.accept(), second.accept());
        a.unwrap();
        b.unwrap();
    });
}

#[test]
fn a_socket_of_another_family_cannot_connect_there() {
    on_one_thread(async {
        let (_listener, address) = listener().await;
        let error = TcpSocket::new_v6().unwrap().connect(address).await.unwrap_err();
        assert_ne!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn version_six_works_where_the_machine_has_it() {
    on_one_thread(async {
        let Ok(listener) = TcpListener::bind("[::1]:0").await else {
            // This machine has no such address, so there is nothing to test.
            assert!(std::net::TcpListener::bind("[::1]:0").is_err());
            return;
        };
        let address = listener.local_addr().unwrap();
        let (client, server) = blitz_io::join!(TcpStream::connect(address), listener.accept());
        let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
        client.write_all(b"six").await.unwrap();
        let mut three = [0; 3];
        server.read_exact(&mut three).await.unwrap();
        assert_eq!(&three, b"six");
    });
}

#[cfg(unix)]
#[test]
fn a_stream_of_std_that_is_not_connected_becomes_a_socket() {
    on_one_thread(async {
        let (listener, address) = listener().await;
        let raw = {
            use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
            let socket = TcpSocket::new_v4().unwrap();
            let fd = socket.into_raw_fd();
            // SAFETY: 1. `into_raw_fd` gave up the ownership of the descriptor. 2. It is used once.
            std::net::TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) })
        };
        let socket = TcpSocket::from_std_stream(raw);
        let (client, server) = blitz_io::join!(socket.connect(address), listener.accept());
        client.unwrap();
        server.unwrap();
    });
}

#[test]
fn options_are_kept() {
    on_all_kinds(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.set_keepalive(true).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_send_buffer_size(64 << 10).unwrap();
        socket.set_recv_buffer_size(64 << 10).unwrap();
        socket.set_tos_v4(0x10).unwrap();
        assert!(socket.reuseaddr().unwrap());
        #[cfg(unix)]
        {
            socket.set_reuseport(true).unwrap();
            assert!(socket.reuseport().unwrap());
        }
        assert!(socket.keepalive().unwrap() && socket.nodelay().unwrap());
        assert!(socket.send_buffer_size().unwrap() >= 64 << 10);
        assert!(socket.recv_buffer_size().unwrap() >= 64 << 10);
        assert_eq!(socket.tos_v4().unwrap(), 0x10);
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(4).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stream.set_ttl(99).unwrap();
        stream.set_nodelay(true).unwrap();
        assert_eq!((stream.ttl().unwrap(), stream.nodelay().unwrap()), (99, true));
        assert!(stream.take_error().unwrap().is_none());
    });
}

#[test]
fn a_bound_socket_connects_from_its_address() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let from = socket.local_addr().unwrap();
        let _client = socket.connect(address).await.unwrap();
        assert_eq!(listener.accept().await.unwrap().1, from);
    });
}
