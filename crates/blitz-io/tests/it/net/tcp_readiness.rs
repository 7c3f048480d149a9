//! Tests the readiness of TCP streams, tries that do not wait, and peeks.

use std::{
    future::poll_fn,
    io::{self, ErrorKind},
    pin::Pin,
    sync::Arc,
};

use blitz_io::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf};

use crate::support::{
    manual_poll::{by_hand, once},
    runtimes::{on_all_kinds, on_one_thread, others_wait},
    sockets::{tcp_pair, when_ready, would_block},
};

#[test]
fn peek_shows_and_takes_nothing() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
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
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
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
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        let mut buffer = [0; 16];
        assert_eq!(server.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        for round in 0..20_u8 {
            // The kernel may report the same bytes twice, the second time after they were read; but
            // that must end.
            let mut repeats = 0;
            while once(server.readable()).is_ready() {
                let none = server.try_read(&mut buffer).unwrap_err();
                assert_eq!(none.kind(), ErrorKind::WouldBlock);
                repeats += 1;
                assert!(repeats < 3, "it does not wait");
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
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
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
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
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

/// Only Linux distinguishes a closed direction from data.
#[cfg(target_os = "linux")]
#[test]
fn ready_distinguishes_every_kind() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
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
fn try_io_runs_when_ready_and_clears_what_was_not() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
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
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
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
fn polls_by_hand_wake_the_last_waker() {
    on_one_thread(async {
        let (mut client, mut server) = tcp_pair().await;
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
fn peeking_leaves_the_bytes_there() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
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
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        assert_eq!(server.try_write(b"hello").unwrap(), 5);
        let mut buf = [0; 5];
        client.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"hello");
    });
}

#[test]
fn trying_fills_a_connection_and_empties_it() {
    on_all_kinds(|| async {
        let (client, server) = tcp_pair().await;
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
            read +=
                when_ready(|| server.readable(), || server.try_read_buf(&mut buf)).await.unwrap();
            assert!(buf.iter().all(|byte| *byte == 7));
        }
        assert_eq!(read, wrote);
        client.writable().await.unwrap();
    });
}

#[test]
fn any_number_of_tasks_wait_for_one_stream() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
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

/// Only Linux distinguishes a closed direction from data.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_direction_is_among_the_ready_states() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
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
