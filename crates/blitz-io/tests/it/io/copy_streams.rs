//! `copy`, `copy_buf`, `copy_bidirectional`.

use std::{
    io::{self, ErrorKind},
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{
    self as bio, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy,
    copy_bidirectional, copy_bidirectional_with_sizes, copy_buf, duplex, empty, repeat, sink,
};

use crate::{
    io::read_slow::Parts,
    io::write_slow::Slow,
    net::pairs,
    on::{each, one},
    polled::{by_hand, now, waiting},
};

#[test]
fn copy_copies_to_the_end_and_flushes() {
    for size in [0, 1, 100, 8191, 8192, 8193, 70_000, 1_000_000] {
        let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
        let mut to = Slow::new(5000, size);
        assert_eq!(now(copy(&mut &bytes[..], &mut to)).unwrap(), size as u64);
        assert!(to.taken == bytes && to.flushed > 0, "{size}");
    }
}

#[test]
fn copy_buf_copies_what_is_buffered() {
    let bytes = vec![3; 50_000];
    let mut to = Slow::new(777, 100_000);
    let mut from = BufReader::with_capacity(1000, &bytes[..]);
    assert_eq!(now(copy_buf(&mut from, &mut to)).unwrap(), 50_000);
    assert!(to.taken == bytes);
}

#[test]
fn errors_of_either_side_end_a_copy() {
    let mut broken = Parts::new(&[Ok(b"ab"), Err(ErrorKind::ConnectionReset)]);
    let error = now(copy(&mut broken, &mut sink())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let error = now(copy(&mut &b"abc"[..], &mut Slow::new(1, 2))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
}

#[test]
fn copy_flushes_while_the_source_has_nothing() {
    // A buffered sink must not keep bytes back while the source is silent.
    let (mut feed, mut from) = duplex(64);
    let (near, mut far) = duplex(64);
    let mut to = bio::BufWriter::new(near);
    let mut copying = by_hand(async move { copy(&mut from, &mut to).await });
    now(feed.write_all(b"hello")).unwrap();
    copying.pending();
    let mut got = [0; 5];
    now(far.read_exact(&mut got)).unwrap();
    assert_eq!(&got, b"hello");
}

#[test]
fn an_endless_copy_lets_others_run() {
    one(async {
        let copying = blitz_io::spawn(async { copy(&mut repeat(1), &mut sink()).await });
        for _ in 0..10 {
            blitz_io::task::yield_now().await;
        }
        copying.abort();
        assert!(copying.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn both_ways_until_both_have_ended() {
    let (mut a, mut a_end) = duplex(64);
    let (mut b, mut b_end) = duplex(64);
    let mut copying = by_hand(async move { copy_bidirectional(&mut a_end, &mut b_end).await });
    now(a.write_all(b"ping")).unwrap();
    now(b.write_all(b"pong!")).unwrap();
    copying.pending();
    let (mut to_b, mut to_a) = ([0; 4], [0; 5]);
    now(b.read_exact(&mut to_b)).unwrap();
    now(a.read_exact(&mut to_a)).unwrap();
    assert_eq!((&to_b, &to_a), (b"ping", b"pong!"));
    now(a.shutdown()).unwrap();
    assert!(copying.woken());
    copying.pending();
    // The end of one direction has reached the other side, whose own direction is still open.
    assert_eq!(now(b.read(&mut to_b)).unwrap(), 0);
    now(b.write_all(b"more")).unwrap();
    copying.pending();
    drop(b);
    assert_eq!(copying.woken_and_ready().unwrap(), (4, 9));
}

#[test]
fn both_ways_over_sockets_of_the_system() {
    each(|| async {
        let (mut client, mut proxy_client) = pairs::tcp().await;
        let (mut proxy_server, mut server) = pairs::tcp().await;
        let proxy = blitz_io::spawn(async move {
            copy_bidirectional_with_sizes(&mut proxy_client, &mut proxy_server, 100, 300_000).await
        });
        let there: Vec<u8> = (0..300_000_u32).map(|at| at as u8).collect();
        let sent = there.clone();
        let serving = blitz_io::spawn(async move {
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            assert!(got == sent);
            server.write_all(b"done").await.unwrap();
        });
        client.write_all(&there).await.unwrap();
        client.shutdown().await.unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, b"done");
        serving.await.unwrap();
        assert_eq!(proxy.await.unwrap().unwrap(), (300_000, 4));
    });
}

/// A stream whose reads return an error.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut bio::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(ErrorKind::BrokenPipe.into()))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn an_error_of_one_way_ends_both() {
    let (mut near, _far) = duplex(8);
    let error = now(copy_bidirectional(&mut near, &mut Broken)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_joined_stream_reads_from_the_reader_and_writes_to_the_writer() {
    let mut joined = bio::join(&b"in"[..], Vec::new());
    let mut text = String::new();
    now(joined.read_to_string(&mut text)).unwrap();
    now(joined.write_all(b"out")).unwrap();
    assert_eq!(text, "in");
    assert_eq!(joined.reader(), b"");
    let (_, written) = joined.into_inner();
    assert_eq!(written, b"out");
}

#[test]
fn nothing_is_in_empty_and_no_end_in_repeat() {
    assert_eq!(now(empty().read(&mut [0; 8])).unwrap(), 0);
    assert_eq!(now(empty().write(b"gone")).unwrap(), 4);
    let mut bytes = [0; 8];
    now(repeat(7).read_exact(&mut bytes)).unwrap();
    assert_eq!(bytes, [7; 8]);
    let mut never = waiting(copy_never());
    never.still_waits();
}

async fn copy_never() {
    let (mut near, _far) = duplex(8);
    copy(&mut near, &mut sink()).await.unwrap();
}
