//! Tests `copy`, `copy_buf` and `copy_bidirectional`.

use std::{
    future::Future,
    io::ErrorKind,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use blitz_io::io::{
    self as bio, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf, copy,
    copy_bidirectional, copy_bidirectional_with_sizes, copy_buf, duplex, empty, repeat, sink,
};

use crate::support::{
    caught_panic::panic_of,
    manual_poll::{by_hand, now, once, poll_once},
    runtimes::{self, on_all_kinds},
    scripted_io::{
        Scripted, Sink, Source,
        Step::{Bytes, Fail, Most, Wait},
    },
    sockets, watchdog,
};

#[test]
fn a_copy_moves_all_and_flushes_once_at_the_end() {
    let mut reader = Source::new([Bytes(b"ab"), Fail(ErrorKind::Interrupted), Bytes(b"cde")]);
    let mut writer = Sink::new([Most(1), Fail(ErrorKind::Interrupted), Most(1)]);
    assert_eq!(now(copy(&mut reader, &mut writer)).unwrap(), 5);
    assert_eq!((&writer.taken[..], writer.flushed), (&b"abcde"[..], 1));
}

#[test]
fn a_reader_that_waits_has_the_writer_flushed_first() {
    let mut reader = Source::new([Bytes(b"ab"), Wait, Wait]);
    let mut writer = Sink::default();
    {
        let mut copying = pin!(copy(&mut reader, &mut writer));
        assert!(poll_once(&mut copying).is_pending());
        assert!(poll_once(&mut copying).is_pending());
        assert_eq!(now(copying).unwrap(), 2);
    }
    assert_eq!(writer.flushed, 2, "once when it waited, not again for nothing, once at the end");
}

#[test]
fn while_a_write_waits_more_is_read() {
    let mut reader = Source::new([Bytes(b"ab"), Bytes(b"cd"), Wait]);
    let mut writer = Sink::new([Wait]);
    {
        let mut copying = pin!(copy(&mut reader, &mut writer));
        assert!(poll_once(&mut copying).is_pending());
        assert_eq!(now(copying).unwrap(), 4);
    }
    assert_eq!((&writer.taken[..], writer.buffers.len()), (&b"abcd"[..], 2), "in one write");
}

#[test]
fn errors_end_a_copy() {
    let mut reader = Source::new([Bytes(b"ab"), Fail(ErrorKind::TimedOut)]);
    let mut writer = Sink::default();
    assert_eq!(now(copy(&mut reader, &mut writer)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(writer.taken, b"ab");
    let mut writer = Sink::new([Fail(ErrorKind::BrokenPipe)]);
    let error = now(copy(&mut &b"ab"[..], &mut writer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    let error = now(copy(&mut &b"ab"[..], &mut Sink::new([Most(0)]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
}

#[test]
fn a_stream_gets_a_larger_buffer_and_one_that_waits_gives_it_back() {
    const SMALL: usize = 8 * 1024;
    const LARGE: usize = 64 * 1024;
    // The amount that sockets may buffer while the peer does not read.
    const BEFORE: usize = 8 * 1024 * 1024;
    static MUCH: [u8; 2 * SMALL + LARGE] = [2; 2 * SMALL + LARGE];
    let few = || Bytes(&[1; 100]);
    let mut steps = vec![few(), Bytes(&MUCH[..SMALL - 100])];
    steps.extend((1..BEFORE / SMALL).map(|_| Bytes(&MUCH[..SMALL])));
    // A read that does not fill the buffer, so that the count restarts.
    steps.extend([few(), Bytes(&MUCH), few(), Wait, few()]);
    let mut reader = Source::new(steps);
    let mut writer = Sink::default();
    {
        let mut copying = pin!(copy(&mut reader, &mut writer));
        let unconstrained = blitz_io::task::unconstrained(copying.as_mut());
        assert!(once(unconstrained).is_pending());
        assert_eq!(now(copying).unwrap() as usize, BEFORE + 300 + 2 * SMALL + LARGE);
    }
    let early = 1 + BEFORE / SMALL;
    assert!(
        reader.rooms[..early].iter().all(|bytes| *bytes == SMALL),
        "the peer may have read nothing"
    );
    // The first of these had grown, because reads were full and enough bytes were copied.
    let wanted = [LARGE, LARGE, LARGE, LARGE, LARGE, SMALL, SMALL];
    assert_eq!(reader.rooms[early..], wanted);
}

#[test]
fn a_buffered_copy_takes_what_the_reader_holds() {
    let source = Source::new([Bytes(b"abcdef"), Wait, Bytes(b"g")]);
    let mut reader = BufReader::with_capacity(4, source);
    let mut writer = Sink::new([Most(1), Fail(ErrorKind::Interrupted)]);
    {
        let mut copying = pin!(copy_buf(&mut reader, &mut writer));
        assert!(poll_once(&mut copying).is_pending());
        assert_eq!(now(copying).unwrap(), 7);
    }
    assert_eq!((&writer.taken[..], writer.flushed), (&b"abcdefg"[..], 2));
    assert_eq!(writer.buffers.len(), 5, "a, interrupted, bcd, ef, g");
}

#[test]
fn unwritten_bytes_of_a_buffered_copy_stay_in_the_reader() {
    let mut reader = BufReader::new(&b"abcd"[..]);
    let mut writer = Sink::new([Most(1), Wait, Fail(ErrorKind::TimedOut), Most(0)]);
    assert!(once(copy_buf(&mut reader, &mut writer)).is_pending());
    assert_eq!(reader.buffer(), b"bcd");
    assert_eq!(
        [0, 0].map(|_| now(copy_buf(&mut reader, &mut writer)).unwrap_err().kind()),
        [ErrorKind::TimedOut, ErrorKind::WriteZero]
    );
    assert_eq!(reader.buffer(), b"bcd");
    assert_eq!(now(copy_buf(&mut reader, &mut writer)).unwrap(), 3);
    assert_eq!(writer.taken, b"abcd");
}

/// A reader that is always ready, and knows nothing of budgets.
struct Endless;

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        buf.put_slice(b"x");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Beyond Tokio, where a copy between a reader and a writer that are always ready never yields.
#[test]
fn an_endless_copy_lets_others_run() {
    let _watch = watchdog::start();
    runtimes::one_thread().block_on(async {
        let copies = [
            blitz_io::spawn(async { copy(&mut repeat(1), &mut sink()).await.map(drop) }),
            blitz_io::spawn(async { copy(&mut Endless, &mut Endless).await.map(drop) }),
            blitz_io::spawn(async {
                copy_buf(&mut BufReader::new(Endless), &mut Endless).await.map(drop)
            }),
            blitz_io::spawn(async {
                copy_bidirectional(&mut Endless, &mut Endless).await.map(drop)
            }),
        ];
        for _ in 0..10 {
            blitz_io::spawn(async {}).await.unwrap();
        }
        copies.iter().for_each(blitz_io::task::JoinHandle::abort);
        for copy in copies {
            assert!(copy.await.unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn neither_way_keeps_the_other_from_moving() {
    let _watch = watchdog::start();
    runtimes::one_thread().block_on(async {
        let (mut near, mut far) = duplex(16);
        // `Endless` never ends, so that direction uses up the budget of every poll.
        let proxy = blitz_io::spawn(async move {
            let mut both = blitz_io::io::join(Endless, Vec::new());
            let mut other = blitz_io::io::join(&mut far, sink());
            copy_bidirectional(&mut both, &mut other).await.map(drop)
        });
        near.write_all(&[7; 1000]).await.unwrap();
        proxy.abort();
    });
}

#[test]
fn an_end_is_passed_on_and_the_other_way_goes_on() {
    let _watch = watchdog::start();
    for rt in runtimes::all_kinds() {
        rt.block_on(async {
            let (mut client, mut a) = duplex(8);
            let (mut b, mut server) = duplex(8);
            let proxy = blitz_io::spawn(async move { copy_bidirectional(&mut a, &mut b).await });
            let requesting = blitz_io::spawn(async move {
                client.write_all(&[1; 100]).await.unwrap();
                client.shutdown().await.unwrap();
                let mut reply = Vec::new();
                client.read_to_end(&mut reply).await.unwrap();
                reply
            });
            let mut request = Vec::new();
            server.read_to_end(&mut request).await.unwrap();
            assert_eq!(request, [1; 100]);
            server.write_all(&[2; 50]).await.unwrap();
            drop(server);
            assert_eq!(requesting.await.unwrap(), [2; 50]);
            assert_eq!(proxy.await.unwrap().unwrap(), (100, 50));
        });
    }
}

#[test]
fn each_way_is_shut_down_once_at_its_end() {
    let mut a = Scripted::reads([Bytes(b"ab")]);
    let mut b = Scripted::reads([Wait, Bytes(b"c")]);
    {
        let mut copying = pin!(copy_bidirectional_with_sizes(&mut a, &mut b, 1, 16));
        assert!(poll_once(&mut copying).is_pending());
        assert_eq!(now(copying).unwrap(), (2, 1));
    }
    assert_eq!((a.sink.shut, b.sink.shut), (1, 1));
    assert_eq!((&a.sink.taken[..], &b.sink.taken[..]), (&b"c"[..], &b"ab"[..]));
    assert_eq!((&a.source.rooms[..], &b.source.rooms[..]), (&[1, 1, 1][..], &[16, 16, 16][..]));
}

#[test]
fn an_error_of_one_way_ends_both() {
    let mut a = Scripted::reads([Wait]);
    let mut b = Scripted::reads([Fail(ErrorKind::ConnectionReset)]);
    let error = now(copy_bidirectional(&mut a, &mut b)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn buffers_of_no_size_are_refused() {
    for (sizes, name) in [((0, 1), "a_to_b"), ((1, 0), "b_to_a")] {
        let (mut a, mut b) = (empty(), empty());
        let copying = copy_bidirectional_with_sizes(&mut a, &mut b, sizes.0, sizes.1);
        let caught = panic_of(|| now(copying));
        assert_eq!(caught.message, format!("`{name}_buf_size` must be greater than 0"));
    }
}

/// A copy is a future like any other: it can be sent to another thread and dropped after any poll.
#[test]
fn copies_are_sent_between_threads() {
    fn sent<T: Send>(future: T) -> T {
        future
    }
    fn polled(future: impl Future) {
        assert!(once(future).is_pending());
    }
    let (mut one, mut two) = duplex(1);
    polled(sent(copy(&mut one, &mut sink())));
    polled(sent(copy_bidirectional(&mut one, &mut two)));
    polled(sent(copy_buf(&mut BufReader::new(&mut one), &mut sink())));
}

#[test]
fn copy_copies_to_the_end_and_flushes() {
    for size in [0, 1, 100, 8191, 8192, 8193, 70_000, 1_000_000] {
        let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
        let mut to = Sink::limited(5000, size);
        assert_eq!(now(copy(&mut &bytes[..], &mut to)).unwrap(), size as u64);
        assert!(to.taken == bytes && to.flushed > 0, "{size}");
    }
}

#[test]
fn copy_buf_copies_what_is_buffered() {
    let bytes = vec![3; 50_000];
    let mut to = Sink::limited(777, 100_000);
    let mut from = BufReader::with_capacity(1000, &bytes[..]);
    assert_eq!(now(copy_buf(&mut from, &mut to)).unwrap(), 50_000);
    assert!(to.taken == bytes);
}

#[test]
fn errors_of_either_side_end_a_copy() {
    let mut broken = Source::new([Bytes(b"ab"), Fail(ErrorKind::ConnectionReset)]);
    let error = now(copy(&mut broken, &mut sink())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let error = now(copy(&mut &b"abc"[..], &mut Sink::limited(1, 2))).unwrap_err();
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
    on_all_kinds(|| async {
        let (mut client, mut proxy_client) = sockets::tcp_pair().await;
        let (mut proxy_server, mut server) = sockets::tcp_pair().await;
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
