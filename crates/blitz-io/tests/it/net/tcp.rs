//! TCP: connecting, accepting, transfer, closing, resets, readiness.

use std::{
    future::poll_fn,
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write},
    pin::Pin,
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::Builder,
};

use crate::{
    caught::panic_of,
    net::pairs::{self, ANY},
    on::{each, one, others_wait},
    polled::{by_hand, once},
};

#[test]
fn bytes_go_both_ways() {
    each(|| async {
        let (mut client, mut server) = pairs::tcp().await;
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
fn each_end_knows_both_addresses() {
    each(|| async {
        let (client, server) = pairs::tcp().await;
        assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    });
}

#[test]
fn accept_returns_the_address_of_the_peer() {
    each(|| async {
        let (listener, address) = pairs::listener().await;
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
    each(|| async {
        let (listener, address) = pairs::listener().await;
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
    each(|| async {
        let (listener, address) = pairs::listener().await;
        let accepting = blitz_io::spawn(async move { listener.accept().await.unwrap().1 });
        let client = TcpStream::connect(address).await.unwrap();
        assert_eq!(accepting.await.unwrap(), client.local_addr().unwrap());
    });
}

#[test]
fn a_connect_without_a_listener_is_refused() {
    each(|| async {
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
    let _no_child = crate::child::none_starts();
    each(|| async {
        let (listener, address) = pairs::listener().await;
        let error = TcpListener::bind(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(listener);
        let again = TcpListener::bind(address).await.unwrap();
        assert_eq!(again.local_addr().unwrap(), address);
    });
}

#[test]
fn a_port_can_be_bound_again_although_connections_of_it_linger() {
    let _no_child = crate::child::none_starts();
    each(|| async {
        let (listener, address) = pairs::listener().await;
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
    each(|| async {
        let (mut client, mut server) = pairs::tcp().await;
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
    each(|| async {
        let (mut client, mut server) = pairs::tcp().await;
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
        let error = client.write_all(b"more").await.unwrap_err();
        // Windows has a number of its own for this error, which has no kind.
        if cfg!(unix) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    });
}

#[test]
fn a_pending_read_is_woken_by_the_end() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        let reading = blitz_io::spawn(async move { client.read(&mut [0; 8]).await });
        drop(server);
        assert_eq!(reading.await.unwrap().unwrap(), 0);
    });
}

/// Wine shuts a socket down before it closes it, so no reset is sent there.
#[cfg(unix)]
#[test]
fn a_reset_is_an_error_for_the_reader() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
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
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        client.write_all(b"never read").await.unwrap();
        server.readable().await.unwrap();
        drop(server);
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn writing_to_a_peer_that_is_gone_ends_in_an_error_and_no_signal() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
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
    each(|| async {
        let (mut client, mut server) = pairs::tcp().await;
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
fn peek_shows_and_takes_nothing() {
    each(|| async {
        let (mut client, mut server) = pairs::tcp().await;
        client.write_all(b"hello").await.unwrap();
        let mut part = [0; 3];
        for _ in 0..3 {
            assert_eq!(server.peek(&mut part).await.unwrap(), 3);
            assert_eq!(&part, b"hel");
        }
        let mut room = [0; 2];
        let mut buf = ReadBuf::new(&mut room);
        assert_eq!(poll_fn(|cx| server.poll_peek(cx, &mut buf)).await.unwrap(), 2);
        assert_eq!(buf.filled(), b"he");
        let mut all = [0; 5];
        server.read_exact(&mut all).await.unwrap();
        assert_eq!(&all, b"hello");
        drop(client);
        assert_eq!(server.peek(&mut part).await.unwrap(), 0);
    });
}

#[test]
fn peek_waits_for_bytes() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        let peeking = blitz_io::spawn(async move {
            let mut part = [0; 3];
            let count = server.peek(&mut part).await.unwrap();
            (count, part)
        });
        client.write_all(b"abc").await.unwrap();
        let (count, part) = peeking.await.unwrap();
        assert!(count >= 1 && part.starts_with(b"a"));
    });
}

#[test]
fn try_read_would_block_until_readable_reports_more() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        let mut buffer = [0; 16];
        assert_eq!(server.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        for round in 0..20_u8 {
            // The kernel may report the same bytes twice, the second time after they were read; but
            // that must end.
            let mut told_again = 0;
            while once(server.readable()).is_ready() {
                let none = server.try_read(&mut buffer).unwrap_err();
                assert_eq!(none.kind(), ErrorKind::WouldBlock);
                told_again += 1;
                assert!(told_again < 3, "it does not wait");
            }
            client.write_all(&[round; 3]).await.unwrap();
            loop {
                server.readable().await.unwrap();
                match server.try_read(&mut buffer) {
                    Ok(count) => break assert_eq!(&buffer[..count], &[round; 3]),
                    Err(none) => assert_eq!(none.kind(), ErrorKind::WouldBlock),
                }
            }
            assert_eq!(server.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    });
}

#[test]
fn readiness_lasts_until_a_read_finds_nothing() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        client.write_all(b"ab").await.unwrap();
        server.readable().await.unwrap();
        // Without a read in between, the socket is still readable.
        server.readable().await.unwrap();
        let mut one = [0; 1];
        assert_eq!(server.try_read(&mut one).unwrap(), 1);
        server.readable().await.unwrap();
        assert_eq!(server.try_read(&mut one).unwrap(), 1);
        assert_eq!(server.try_read(&mut one).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn try_write_would_block_when_buffers_are_full_and_writable_waits_for_room() {
    each(|| async {
        let (client, mut server) = pairs::tcp().await;
        client.writable().await.unwrap();
        let mut sent = 0;
        let chunk = [7; 65536];
        loop {
            match client.try_write(&chunk) {
                Ok(count) => sent += count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        let mut writable = by_hand(client.writable());
        writable.pending();
        let mut got = vec![0; sent];
        server.read_exact(&mut got).await.unwrap();
        writable.pin().await.unwrap();
        assert!(client.try_write(&chunk).unwrap() > 0);
    });
}

#[test]
fn vectors_are_written_and_read_as_one() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
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

/// Only Linux distinguishes a closed direction from data.
#[cfg(target_os = "linux")]
#[test]
fn ready_distinguishes_every_kind() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        let ready = server.ready(Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable());
        client.write_all(b"x").await.unwrap();
        let ready = server.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_readable() && !ready.is_read_closed());
        server.try_read(&mut [0; 8]).unwrap();
        drop(client);
        // The cached readiness may be old, so the driver must be polled.
        while !server.ready(Interest::READABLE).await.unwrap().is_read_closed() {
            blitz_io::task::yield_now().await;
        }
        assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 0);
    });
}

#[test]
fn a_buffer_without_room_reads_nothing_and_means_no_end() {
    each(|| async {
        let (mut client, mut server) = pairs::tcp().await;
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.read(&mut []).await.unwrap(), 0);
        assert_eq!(server.write(&[]).await.unwrap(), 0);
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn try_io_runs_when_ready_and_clears_what_was_not() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        let mut calls = 0;
        let blocked: io::Result<()> = server.try_io(Interest::READABLE, || {
            calls += 1;
            Err(ErrorKind::WouldBlock.into())
        });
        assert_eq!(blocked.unwrap_err().kind(), ErrorKind::WouldBlock);
        // The readiness was cleared, so the closure is not even called.
        let before = calls;
        let blocked: io::Result<()> = server.try_io(Interest::READABLE, || {
            calls += 1;
            Ok(())
        });
        assert_eq!(blocked.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(calls, before);
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.try_io(Interest::READABLE, || Ok(5)).unwrap(), 5);
    });
}

#[test]
fn async_io_calls_again_until_it_does_not_block() {
    each(|| async {
        let (mut client, server) = pairs::tcp().await;
        let task = blitz_io::spawn(async move {
            let mut buffer = [0; 4];
            let count =
                server.async_io(Interest::READABLE, || server.try_read(&mut buffer)).await.unwrap();
            (count, buffer)
        });
        client.write_all(b"abcd").await.unwrap();
        let (count, buffer) = task.await.unwrap();
        assert!(count > 0 && buffer.starts_with(b"a"));
    });
}

#[test]
fn a_std_stream_converts_in_and_out() {
    each(|| async {
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
fn polls_by_hand_wake_the_last_waker() {
    one(async {
        let (mut client, mut server) = pairs::tcp().await;
        let mut room = [0; 8];
        let mut reading = by_hand(poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut room);
            blitz_io::io::AsyncRead::poll_read(Pin::new(&mut server), cx, &mut buf)
                .map_ok(|()| buf.filled().len())
        }));
        assert!(reading.poll_with(std::task::Waker::noop()).is_pending());
        reading.pending();
        client.write_all(b"abc").await.unwrap();
        while !reading.woken() {
            others_wait().await;
        }
        assert_eq!(reading.ready().unwrap(), 3);
    });
}

#[test]
fn a_stream_shows_itself_for_debugging() {
    one(async {
        let (client, _server) = pairs::tcp().await;
        assert!(format!("{client:?}").contains("TcpStream"));
    });
}
