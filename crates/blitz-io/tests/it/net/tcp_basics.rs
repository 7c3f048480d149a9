//! TCP streams and listeners.

use std::{
    future::poll_fn,
    io::{ErrorKind, IoSlice},
    net::Ipv4Addr,
    sync::Arc,
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, ReadBuf},
    net::{TcpSocket, TcpStream},
};

use crate::net::connected::{listener, on_each, once, tcp, when_ready, would_block};

/// More bytes than the kernel buffers for a connection, so that both ends have to wait.
const MUCH: usize = 8 << 20;

fn much() -> Vec<u8> {
    (0..MUCH).map(|n| (n % 251) as u8).collect()
}

#[test]
fn written_bytes_are_read_in_order() {
    on_each(async || {
        let (mut client, mut server) = tcp().await;
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
    on_each(async || {
        let (client, server) = tcp().await;
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
    on_each(async || {
        let listener = listener().await;
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert_eq!(server.peer_addr().unwrap(), from);
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    });
}

#[test]
fn every_form_of_an_address_connects() {
    on_each(async || {
        let listener = listener().await;
        let addr = listener.local_addr().unwrap();
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
fn the_end_of_one_direction_leaves_the_other_open() {
    on_each(async || {
        let (mut client, mut server) = tcp().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer");
        client.shutdown().await.unwrap();
    });
}

#[test]
fn a_dropped_owned_writer_ends_the_writing_and_a_forgotten_one_does_not() {
    on_each(async || {
        let (client, mut server) = tcp().await;
        let (reader, writer) = client.into_split();
        writer.forget();
        assert!(once(server.readable()).is_pending() || server.try_read(&mut [0]).is_err());
        drop(reader);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);

        let (client, mut server) = tcp().await;
        let (_reader, writer) = client.into_split();
        drop(writer);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn a_borrowed_writer_does_not_end_the_writing() {
    on_each(async || {
        let (mut client, mut server) = tcp().await;
        {
            let (_reader, _writer) = client.split();
        }
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn halves_come_together_only_with_their_own() {
    on_each(async || {
        let (client, server) = tcp().await;
        let addr = client.local_addr().unwrap();
        let (client_reader, client_writer) = client.into_split();
        let (server_reader, server_writer) = server.into_split();
        let error = client_reader.reunite(server_writer).unwrap_err();
        assert!(error.to_string().starts_with("tried to reunite halves"), "{error}");
        let mut client = client_writer.reunite(error.0).unwrap();
        let mut server = server_reader.reunite(error.1).unwrap();
        assert_eq!(client.local_addr().unwrap(), addr);
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn peeking_leaves_the_bytes_there() {
    on_each(async || {
        let (mut client, mut server) = tcp().await;
        client.write_all(b"abc").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(server.peek(&mut buf[..2]).await.unwrap(), 2);
        let mut peeked = ReadBuf::new(&mut buf);
        let count = poll_fn(|cx| server.poll_peek(cx, &mut peeked)).await.unwrap();
        assert_eq!((count, peeked.filled()), (3, &b"abc"[..]));
        let (mut reader, _) = server.split();
        assert_eq!(reader.peek(&mut buf).await.unwrap(), 3);
        assert_eq!(server.read(&mut buf).await.unwrap(), 3);
        would_block(server.try_read(&mut buf));
    });
}

#[test]
fn an_accepted_stream_can_be_written_to_at_once() {
    on_each(async || {
        let (mut client, server) = tcp().await;
        assert_eq!(server.try_write(b"hello").unwrap(), 5);
        let mut buf = [0; 5];
        client.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"hello");
    });
}

#[test]
fn trying_fills_a_connection_and_empties_it() {
    on_each(async || {
        let (client, server) = tcp().await;
        let mut wrote = 0;
        client.writable().await.unwrap();
        loop {
            match client.try_write(&[7; 4096]) {
                Ok(count) => wrote += count,
                Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        let mut read = 0;
        while read < wrote {
            let mut buf = Vec::with_capacity(16 << 10);
            read += when_ready(async || server.readable().await, || server.try_read_buf(&mut buf))
                .await
                .unwrap();
            assert!(buf.iter().all(|byte| *byte == 7));
        }
        assert_eq!(read, wrote);
        client.writable().await.unwrap();
    });
}

#[test]
fn any_number_of_tasks_wait_for_one_stream() {
    on_each(async || {
        let (mut client, server) = tcp().await;
        let server = Arc::new(server);
        // Until an operation has returned `WouldBlock`, a new stream may be reported as readable.
        would_block(server.try_read(&mut [0]));
        let waiting: Vec<_> = (0..16)
            .map(|_| {
                let server = server.clone();
                blitz_io::spawn(async move { server.readable().await.unwrap() })
            })
            .collect();
        client.write_all(b"x").await.unwrap();
        for task in waiting {
            task.await.unwrap();
        }
    });
}

#[test]
fn more_pieces_than_one_call_takes_are_all_written() {
    on_each(async || {
        let (mut client, mut server) = tcp().await;
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
fn a_read_that_was_given_up_loses_nothing() {
    on_each(async || {
        let (mut client, mut server) = tcp().await;
        for round in 0..32 {
            let mut buf = [0; 4];
            assert!(once(server.read(&mut buf)).is_pending());
            client.write_u32(round).await.unwrap();
            assert_eq!(server.read_u32().await.unwrap(), round);
        }
    });
}

#[test]
fn an_accept_that_was_given_up_takes_no_connection() {
    on_each(async || {
        let listener = listener().await;
        for _ in 0..32 {
            assert!(once(listener.accept()).is_pending());
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (_, from) = listener.accept().await.unwrap();
            assert_eq!(from, client.local_addr().unwrap());
        }
    });
}

#[test]
fn a_number_that_is_used_again_gets_no_event_of_before() {
    on_each(async || {
        let listener = listener().await;
        let addr = listener.local_addr().unwrap();
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
    on_each(async || {
        let (mut client, server) = tcp().await;
        server.set_zero_linger().unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        let error = client.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

/// Only Linux distinguishes a closed direction from data.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_direction_is_among_the_ready_states() {
    on_each(async || {
        let (client, mut server) = tcp().await;
        server.shutdown().await.unwrap();
        let ready = loop {
            let ready = client.ready(blitz_io::io::Interest::READABLE).await.unwrap();
            if ready.is_read_closed() {
                break ready;
            }
        };
        assert!(ready.is_readable());
        assert_eq!(client.try_read(&mut [0]).unwrap(), 0);
        assert_eq!(client.try_read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_stream_goes_to_std_and_comes_back() {
    on_each(async || {
        let (client, mut server) = tcp().await;
        let client = client.into_std().unwrap();
        let mut client = TcpStream::from_std(client).unwrap();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        let mut server: TcpStream = server.into_std().unwrap().try_into().unwrap();
        server.write_all(b"y").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'y');
    });
}

#[test]
fn options_are_kept() {
    on_each(async || {
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

#[cfg(unix)]
#[test]
fn several_sockets_share_a_port_if_all_set_reuseport() {
    on_each(async || {
        let open = |addr| {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseport(true).unwrap();
            socket.bind(addr).map(|()| socket.listen(4).unwrap())
        };
        let one: blitz_io::net::TcpListener = open("127.0.0.1:0".parse().unwrap()).unwrap();
        let other = open(one.local_addr().unwrap()).unwrap();
        assert_eq!(one.local_addr().unwrap(), other.local_addr().unwrap());
    });
}

#[test]
fn a_bound_socket_connects_from_its_address() {
    on_each(async || {
        let listener = listener().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let from = socket.local_addr().unwrap();
        let _client = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        assert_eq!(listener.accept().await.unwrap().1, from);
    });
}
