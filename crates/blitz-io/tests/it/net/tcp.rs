//! Tests TCP streams and listeners: connecting, accepting, transfer, closing and resets.

use std::{
    future::poll_fn,
    io::{ErrorKind, IoSlice, IoSliceMut, Read, Write},
    net::Ipv4Addr,
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
};

use crate::support::{
    caught_panic::panic_of,
    runtimes::{on_all_kinds, on_one_thread},
    sockets::{ANY, listener, tcp_pair},
};

#[test]
fn bytes_go_both_ways() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        client.write_all(b"ping").await.unwrap();
        let mut four = [0; 4];
        server.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"ping");
        server.write_all(b"pong").await.unwrap();
        client.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"pong");
    });
}

#[test]
fn accept_returns_the_address_of_the_peer() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let client = TcpStream::connect(address).await.unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        let client = TcpStream::connect(address).await.unwrap();
        let (_, from) = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
    });
}

#[test]
fn a_connection_made_before_accept_waits_in_the_backlog() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let mut clients = Vec::new();
        for number in 0..50_u8 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_u8(number).await.unwrap();
            clients.push(client);
        }
        let mut seen = Vec::new();
        for _ in 0..50 {
            let (mut server, _) = listener.accept().await.unwrap();
            seen.push(server.read_u8().await.unwrap());
        }
        assert_eq!(seen, (0..50).collect::<Vec<u8>>(), "in the order of their coming");
    });
}

#[test]
fn a_pending_accept_is_woken() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let accepting = blitz_io::spawn(async move { listener.accept().await.unwrap().1 });
        let client = TcpStream::connect(address).await.unwrap();
        assert_eq!(accepting.await.unwrap(), client.local_addr().unwrap());
    });
}

#[test]
fn a_connect_without_a_listener_is_refused() {
    on_all_kinds(|| async {
        // Bound and never listening, so connections are refused, and no other socket gets the port.
        let deserted = blitz_io::net::TcpSocket::new_v4().unwrap();
        deserted.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = deserted.local_addr().unwrap();
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_port_in_use_is_an_error_until_it_is_free() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let error = TcpListener::bind(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(listener);
        let again = TcpListener::bind(address).await.unwrap();
        assert_eq!(again.local_addr().unwrap(), address);
    });
}

#[test]
fn a_port_can_be_bound_again_although_connections_of_it_linger() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        // The server closes first, so its port stays in TIME_WAIT.
        drop((server, listener));
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        drop(client);
        TcpListener::bind(address).await.unwrap();
    });
}

#[test]
fn a_dropped_peer_is_the_end() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        server.write_all(b"last words").await.unwrap();
        drop(server);
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "last words");
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0, "the end stays the end");
    });
}

#[test]
fn shutdown_ends_one_way_and_the_other_goes_on() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        client.write_all(b"request").await.unwrap();
        client.shutdown().await.unwrap();
        let mut request = String::new();
        server.read_to_string(&mut request).await.unwrap();
        assert_eq!(request, "request");
        server.write_all(b"reply").await.unwrap();
        drop(server);
        let mut reply = String::new();
        client.read_to_string(&mut reply).await.unwrap();
        assert_eq!(reply, "reply");
        client.shutdown().await.unwrap();
        let error = client.write_all(b"more").await.unwrap_err();
        // Windows has a number of its own for this error, which has no kind.
        if cfg!(unix) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    });
}

#[test]
fn a_pending_read_is_woken_by_the_end() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        let reading = blitz_io::spawn(async move { client.read(&mut [0; 8]).await });
        drop(server);
        assert_eq!(reading.await.unwrap().unwrap(), 0);
    });
}

/// Wine shuts a socket down before it closes it, so no reset is sent there.
#[cfg(unix)]
#[test]
fn a_reset_is_an_error_for_the_reader() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        server.set_zero_linger().unwrap();
        let reading = blitz_io::spawn(async move { client.read(&mut [0; 8]).await });
        drop(server);
        let error = reading.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

/// Wine shuts a socket down before it closes it, so no reset is sent there.
#[cfg(unix)]
#[test]
fn unread_bytes_at_a_close_are_a_reset_too() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        client.write_all(b"never read").await.unwrap();
        server.readable().await.unwrap();
        drop(server);
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn writing_to_a_peer_that_is_gone_ends_in_an_error_and_no_signal() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        server.set_zero_linger().unwrap();
        drop(server);
        let error = loop {
            if let Err(error) = client.write_all(&[0; 1024]).await {
                break error;
            }
        };
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
    });
}

#[test]
fn more_than_the_system_holds_waits_for_the_reader() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        let bytes: Vec<u8> = (0..8_000_000_u32).map(|at| (at / 3) as u8).collect();
        let sent = bytes.clone();
        let writing = blitz_io::spawn(async move {
            client.write_all(&sent).await.unwrap();
            client
        });
        let mut got = vec![0; bytes.len()];
        server.read_exact(&mut got).await.unwrap();
        assert!(got == bytes);
        drop(writing.await.unwrap());
        assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0);
    });
}

#[test]
fn vectors_are_written_and_read_as_one() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        client.writable().await.unwrap();
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")];
        assert_eq!(client.try_write_vectored(&parts).unwrap(), 5);
        assert_eq!(client.write_vectored(&parts).await.unwrap(), 5);
        let mut got: Vec<u8> = Vec::new();
        while got.len() < 10 {
            server.readable().await.unwrap();
            let (mut a, mut b) = ([0; 3], [0; 16]);
            match server.try_read_vectored(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)])
            {
                Ok(count) => got.extend(a.iter().chain(&b).take(count)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        assert_eq!(got, b"abcdeabcde");
    });
}

#[test]
fn a_buffer_without_room_reads_nothing_and_means_no_end() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.read(&mut []).await.unwrap(), 0);
        assert_eq!(server.write(&[]).await.unwrap(), 0);
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn a_std_stream_converts_in_and_out() {
    on_all_kinds(|| async {
        let std_listener = std::net::TcpListener::bind(ANY).unwrap();
        std_listener.set_nonblocking(true).unwrap();
        let address = std_listener.local_addr().unwrap();
        let listener = TcpListener::from_std(std_listener).unwrap();
        let (client, server) = blitz_io::join!(TcpStream::connect(address), listener.accept());
        let (client, (mut server, _)) = (client.unwrap(), server.unwrap());
        let mut client = client.into_std().unwrap();
        // The socket stays in non-blocking mode.
        assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
        client.set_nonblocking(false).unwrap();
        client.write_all(b"abc").unwrap();
        let mut three = [0; 3];
        server.read_exact(&mut three).await.unwrap();
        assert_eq!(&three, b"abc");
        client.set_nonblocking(true).unwrap();
        let mut client = TcpStream::from_std(client).unwrap();
        server.write_all(b"def").await.unwrap();
        client.read_exact(&mut three).await.unwrap();
        assert_eq!(&three, b"def");
        let std_listener = listener.into_std().unwrap();
        assert_eq!(std_listener.local_addr().unwrap(), address);
    });
}

#[test]
fn without_a_runtime_a_socket_panics() {
    let std_listener = std::net::TcpListener::bind(ANY).unwrap();
    std_listener.set_nonblocking(true).unwrap();
    panic_of(|| TcpListener::from_std(std_listener)).says(&["there is no reactor running"]);
}

#[test]
fn with_io_disabled_the_panic_names_enable_io() {
    let rt = Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = rt.enter();
    let std_listener = std::net::TcpListener::bind(ANY).unwrap();
    std_listener.set_nonblocking(true).unwrap();
    panic_of(|| TcpListener::from_std(std_listener)).says(&["IO is disabled", "enable_io"]);
}

#[test]
fn a_stream_shows_itself_for_debugging() {
    on_one_thread(async {
        let (client, _server) = tcp_pair().await;
        assert!(format!("{client:?}").contains("TcpStream"));
    });
}

/// More bytes than the kernel buffers for a connection, so that both ends have to wait.
const MUCH: usize = 8 << 20;

fn much() -> Vec<u8> {
    (0..MUCH).map(|n| (n % 251) as u8).collect()
}

#[test]
fn written_bytes_are_read_in_order() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        let writes = blitz_io::spawn(async move {
            client.write_all(&much()).await.unwrap();
            client.shutdown().await.unwrap();
            client
        });
        let mut read = Vec::new();
        server.read_to_end(&mut read).await.unwrap();
        assert!(read == much());
        drop(writes.await.unwrap());
    });
}

#[test]
fn both_directions_go_on_at_once_on_different_tasks() {
    on_all_kinds(|| async {
        let (client, server) = tcp_pair().await;
        let ends = [client, server].map(|stream| {
            let (mut reader, mut writer) = stream.into_split();
            let writes = blitz_io::spawn(async move { writer.write_all(&much()).await.unwrap() });
            let reads = blitz_io::spawn(async move {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).await.unwrap();
                read
            });
            (writes, reads)
        });
        for (writes, reads) in ends {
            writes.await.unwrap();
            assert!(reads.await.unwrap() == much());
        }
    });
}

#[test]
fn both_ends_agree_on_their_addresses() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        let client = TcpStream::connect(address).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert_eq!(server.peer_addr().unwrap(), from);
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    });
}

#[test]
fn every_form_of_an_address_connects() {
    on_all_kinds(|| async {
        let (_listener, addr) = listener().await;
        let port = addr.port();
        TcpStream::connect(addr).await.unwrap();
        TcpStream::connect(&addr).await.unwrap();
        TcpStream::connect(addr.to_string()).await.unwrap();
        TcpStream::connect(addr.to_string().as_str()).await.unwrap();
        TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        TcpStream::connect(("127.0.0.1".to_owned(), port)).await.unwrap();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        TcpStream::connect(&[addr][..]).await.unwrap();
        TcpStream::connect(("localhost", port)).await.unwrap();
    });
}

#[test]
fn more_pieces_than_one_call_takes_are_all_written() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        let bytes: Vec<u8> = (0..5000).map(|n| n as u8).collect();
        let sent = bytes.clone();
        let writes = blitz_io::spawn(async move {
            let mut done = 0;
            while done < sent.len() {
                let pieces: Vec<_> = sent[done..].chunks(1).map(IoSlice::new).collect();
                done += client.write_vectored(&pieces).await.unwrap();
            }
        });
        let mut read = Vec::new();
        server.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, bytes);
        writes.await.unwrap();
    });
}

#[test]
fn a_number_that_is_used_again_gets_no_event_of_before() {
    on_all_kinds(|| async {
        let (listener, addr) = listener().await;
        for round in 0..200u32 {
            let mut client = TcpStream::connect(addr).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            client.write_u32(round).await.unwrap();
            assert_eq!(server.read_u32().await.unwrap(), round);
            // Both ends are closed while an event is pending.
            client.write_u32(round).await.unwrap();
        }
    });
}

/// Wine shuts a socket down before it closes it, so no reset is sent there.
#[cfg(unix)]
#[test]
fn a_reset_is_an_error_for_the_reader_and_the_writer() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        server.set_zero_linger().unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        let error = client.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_stream_goes_to_std_and_comes_back() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
        let client = client.into_std().unwrap();
        let mut client = TcpStream::from_std(client).unwrap();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        let mut server: TcpStream = server.into_std().unwrap().try_into().unwrap();
        server.write_all(b"y").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'y');
    });
}
