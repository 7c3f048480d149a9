//! `copy`, `copy_buf` and `copy_bidirectional`, from readers to writers.

use std::{
    future::Future,
    io::ErrorKind,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use blitz_io::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf, copy,
    copy_bidirectional, copy_bidirectional_with_sizes, copy_buf, duplex, empty, repeat, sink,
};

use crate::{
    by_hand::{now, poll},
    caught::panic_of,
    io::by_hand::{
        Scripted,
        Step::{Bytes, Fails, Takes, Waits},
    },
    make, watch,
};

#[test]
fn a_copy_moves_all_and_flushes_once_at_the_end() {
    let mut reader = Scripted::reads([
        Bytes(b"ab".to_vec()),
        Fails(ErrorKind::Interrupted),
        Bytes(b"cde".to_vec()),
    ]);
    let mut writer = Scripted::writes([Takes(1), Fails(ErrorKind::Interrupted), Takes(1)]);
    assert_eq!(now(copy(&mut reader, &mut writer)).unwrap(), 5);
    assert_eq!((&writer.taken[..], writer.flushed), (&b"abcde"[..], 1));
}

#[test]
fn a_reader_that_waits_has_the_writer_flushed_first() {
    let mut reader = Scripted::reads([Bytes(b"ab".to_vec()), Waits, Waits]);
    let mut writer = Scripted::default();
    {
        let mut copying = pin!(copy(&mut reader, &mut writer));
        assert!(poll(copying.as_mut()).is_pending());
        assert!(poll(copying.as_mut()).is_pending());
        assert_eq!(now(copying).unwrap(), 2);
    }
    assert_eq!(writer.flushed, 2, "once when it waited, not again for nothing, once at the end");
}

#[test]
fn while_a_write_waits_more_is_read() {
    let mut reader = Scripted::reads([Bytes(b"ab".to_vec()), Bytes(b"cd".to_vec()), Waits]);
    let mut writer = Scripted::writes([Waits]);
    {
        let mut copying = pin!(copy(&mut reader, &mut writer));
        assert!(poll(copying.as_mut()).is_pending());
        assert_eq!(now(copying).unwrap(), 4);
    }
    assert_eq!((&writer.taken[..], writer.slices.len()), (&b"abcd"[..], 2), "in one write");
}

#[test]
fn errors_end_a_copy() {
    let mut reader = Scripted::reads([Bytes(b"ab".to_vec()), Fails(ErrorKind::TimedOut)]);
    let mut writer = Scripted::default();
    assert_eq!(now(copy(&mut reader, &mut writer)).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(writer.taken, b"ab");
    let mut writer = Scripted::writes([Fails(ErrorKind::BrokenPipe)]);
    let error = now(copy(&mut &b"ab"[..], &mut writer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    let error = now(copy(&mut &b"ab"[..], &mut Scripted::writes([Takes(0)]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
}

#[test]
fn a_stream_gets_a_larger_buffer_and_one_that_waits_gives_it_back() {
    const SMALL: usize = 8 * 1024;
    const LARGE: usize = 64 * 1024;
    // The amount that sockets may buffer while the peer does not read.
    const BEFORE: usize = 8 * 1024 * 1024;
    let few = || Bytes(vec![1; 100]);
    let mut steps = vec![few(), Bytes(vec![2; SMALL - 100])];
    steps.extend((1..BEFORE / SMALL).map(|_| Bytes(vec![2; SMALL])));
    // A read that does not fill the buffer, so that the count restarts.
    steps.extend([few(), Bytes(vec![2; 2 * SMALL + LARGE]), few(), Waits, few()]);
    let mut reader = Scripted::reads(steps);
    let mut writer = Scripted::default();
    {
        let mut copying = pin!(copy(&mut reader, &mut writer));
        let unconstrained = blitz_io::task::unconstrained(copying.as_mut());
        assert!(poll(pin!(unconstrained)).is_pending());
        assert_eq!(now(copying).unwrap() as usize, BEFORE + 300 + 2 * SMALL + LARGE);
    }
    let early = 1 + BEFORE / SMALL;
    assert!(reader.asked[..early].iter().all(|asked| *asked == SMALL), "nobody may have read");
    // The first of these had grown, because reads were full and enough bytes were copied.
    let asked = [LARGE, LARGE, LARGE, LARGE, LARGE, SMALL, SMALL];
    assert_eq!(reader.asked[early..], asked);
}

#[test]
fn a_buffered_copy_takes_what_the_reader_holds() {
    let source = Scripted::reads([Bytes(b"abcdef".to_vec()), Waits, Bytes(b"g".to_vec())]);
    let mut reader = BufReader::with_capacity(4, source);
    let mut writer = Scripted::writes([Takes(1), Fails(ErrorKind::Interrupted)]);
    {
        let mut copying = pin!(copy_buf(&mut reader, &mut writer));
        assert!(poll(copying.as_mut()).is_pending());
        assert_eq!(now(copying).unwrap(), 7);
    }
    assert_eq!((&writer.taken[..], writer.flushed), (&b"abcdefg"[..], 2));
    assert_eq!(writer.slices.len(), 5, "a, interrupted, bcd, ef, g");
}

#[test]
fn unwritten_bytes_of_a_buffered_copy_stay_in_the_reader() {
    let mut reader = BufReader::new(&b"abcd"[..]);
    let mut writer = Scripted::writes([Takes(1), Waits, Fails(ErrorKind::TimedOut), Takes(0)]);
    assert!(poll(pin!(copy_buf(&mut reader, &mut writer))).is_pending());
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
    let _watch = watch::begin();
    make::one_thread().block_on(async {
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
    let _watch = watch::begin();
    make::one_thread().block_on(async {
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
    let _watch = watch::begin();
    for rt in make::all_kinds() {
        rt.block_on(async {
            let (mut client, mut a) = duplex(8);
            let (mut b, mut server) = duplex(8);
            let proxy = blitz_io::spawn(async move { copy_bidirectional(&mut a, &mut b).await });
            let asking = blitz_io::spawn(async move {
                client.write_all(&[1; 100]).await.unwrap();
                client.shutdown().await.unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.unwrap();
                answer
            });
            let mut question = Vec::new();
            server.read_to_end(&mut question).await.unwrap();
            assert_eq!(question, [1; 100]);
            server.write_all(&[2; 50]).await.unwrap();
            drop(server);
            assert_eq!(asking.await.unwrap(), [2; 50]);
            assert_eq!(proxy.await.unwrap().unwrap(), (100, 50));
        });
    }
}

#[test]
fn each_way_is_shut_down_once_at_its_end() {
    let mut a = Scripted::reads([Bytes(b"ab".to_vec())]);
    let mut b = Scripted::reads([Waits, Bytes(b"c".to_vec())]);
    {
        let mut copying = pin!(copy_bidirectional_with_sizes(&mut a, &mut b, 1, 16));
        assert!(poll(copying.as_mut()).is_pending());
        assert_eq!(now(copying).unwrap(), (2, 1));
    }
    assert!(a.shut && b.shut && a.taken == b"c" && b.taken == b"ab");
    assert_eq!((&a.asked[..], &b.asked[..]), (&[1, 1, 1][..], &[16, 16, 16][..]));
}

#[test]
fn an_error_of_one_way_ends_both() {
    let mut a = Scripted::reads([Waits]);
    let mut b = Scripted::reads([Fails(ErrorKind::ConnectionReset)]);
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
        assert!(poll(pin!(future)).is_pending());
    }
    let (mut one, mut two) = duplex(1);
    polled(sent(copy(&mut one, &mut sink())));
    polled(sent(copy_bidirectional(&mut one, &mut two)));
    polled(sent(copy_buf(&mut BufReader::new(&mut one), &mut sink())));
}
