//! Streams in memory: `duplex`, `simplex`, `join`, slices and cursors.

use crate::probe::{sockets::*, *};
use futures_util::future::FutureExt;
use std::io::IoSlice;
use std::pin::pin;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use tokio::io::{SimplexStream, duplex, join, simplex, split};

fn duplex_zero_capacity_panics() {
    println!("{}", panics(|| duplex(0)));
    println!("{}", panics(|| simplex(0)));
    println!("{}", panics(|| SimplexStream::new_unsplit(0)));
}

fn duplex_needs_no_runtime() {
    let (mut a, mut b) = duplex(4);
    println!("{:?}", a.write(b"abcdef").now_or_never().unwrap().unwrap());
    println!("{}", a.write(b"x").now_or_never().is_none());
    let mut x = [0; 3];
    println!("{:?}", b.read(&mut x).now_or_never().unwrap().unwrap());
    println!("{:?}", a.write(b"xyzw").now_or_never().unwrap().unwrap());
    println!("{:?}", b.read(&mut [0; 9]).now_or_never().unwrap().unwrap());
    println!("{}", b.read(&mut [0; 9]).now_or_never().is_none());
}

fn duplex_wakes_the_other_side() {
    let (mut a, mut b) = duplex(2);
    let (nr, wr) = counter();
    let (nw, ww) = counter();
    let mut x = [0; 2];
    {
        let mut f = pin!(b.read(&mut x));
        println!("{} {}", polled(poll_with(f.as_mut(), &wr)), nr.get());
        println!("{}", a.write(b"ab").now_or_never().unwrap().unwrap());
        println!("{} {}", nr.get(), polled(poll_with(f.as_mut(), &wr)));
    }
    println!("{}", a.write(b"cd").now_or_never().unwrap().unwrap());
    {
        let mut f = pin!(a.write(b"ef"));
        println!("{} {}", polled(poll_with(f.as_mut(), &ww)), nw.get());
        println!("{}", b.read(&mut [0; 1]).now_or_never().unwrap().unwrap());
        println!("{} {}", nw.get(), polled(poll_with(f.as_mut(), &ww)));
    }
}

fn duplex_only_the_last_waker_is_kept() {
    let (mut a, mut b) = duplex(2);
    let (n1, w1) = counter();
    let (n2, w2) = counter();
    let mut x = [0; 2];
    {
        let mut f = pin!(b.read(&mut x));
        let _ = poll_with(f.as_mut(), &w1);
    }
    {
        let mut f = pin!(b.read(&mut x));
        let _ = poll_with(f.as_mut(), &w2);
    }
    a.write(b"a").now_or_never();
    println!("{} {}", n1.get(), n2.get());
}

fn duplex_drop_is_eof_and_broken_pipe() {
    current_thread().block_on(async {
        let (mut a, mut b) = duplex(16);
        a.write_all(b"last").await.unwrap();
        drop(a);
        println!("{}", described(&b.write(b"x").await));
        println!("{}", shown(&b.write(b"").await));
        let mut v = vec![];
        println!("{} {}", shown(&b.read_to_end(&mut v).await), lossy(&v));
        println!("{}", shown(&b.read(&mut [0; 2]).await));
        println!("{} {}", outcome(&b.flush().await), outcome(&b.shutdown().await));
    });
}

fn duplex_drop_wakes_both_waiters() {
    let (mut a, b) = duplex(1);
    let (nr, wr) = counter();
    let (nw, ww) = counter();
    let _ = a.write(b"x").now_or_never();
    let (mut ar, mut aw) = split(a);
    let mut x = [0; 1];
    let mut fr = Box::pin(ar.read(&mut x));
    let mut fw = Box::pin(aw.write(b"y"));
    println!("{} {}", polled(poll_with(fr.as_mut(), &wr)), polled(poll_with(fw.as_mut(), &ww)));
    drop(b);
    println!("{} {}", nr.get(), nw.get());
    println!("{} {}", polled(poll_with(fr.as_mut(), &wr)), polled(poll_with(fw.as_mut(), &ww)));
}

fn duplex_shutdown_is_half_close() {
    current_thread().block_on(async {
        let (mut a, mut b) = duplex(16);
        a.write_all(b"q").await.unwrap();
        a.shutdown().await.unwrap();
        println!("{}", shown(&a.write(b"x").await));
        println!("{} {}", shown(&b.read(&mut [0; 4]).await), shown(&b.read(&mut [0; 4]).await));
        b.write_all(b"ans").await.unwrap();
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("{}", outcome(&a.shutdown().await));
    });
}

fn duplex_zero_length_operations_complete_at_once() {
    // tokio-rs/tokio#8323
    let (mut a, mut b) = duplex(1);
    println!("{:?}", b.read(&mut []).now_or_never().map(|x| shown(&x)));
    println!("{:?}", a.write(b"x").now_or_never().map(|x| shown(&x)));
    println!("full {:?}", a.write(b"").now_or_never().map(|x| shown(&x)));
    println!(
        "full {:?}",
        a.write_vectored(&[IoSlice::new(b""), IoSlice::new(b"")]).now_or_never().map(|x| shown(&x))
    );
    println!("full {:?}", a.write(b"y").now_or_never().map(|x| shown(&x)));
}

fn duplex_vectored() {
    let (mut a, mut b) = duplex(4);
    println!("{}", a.is_write_vectored());
    println!(
        "{:?}",
        a.write_vectored(&[
            IoSlice::new(b"a"),
            IoSlice::new(b""),
            IoSlice::new(b"bcdef"),
            IoSlice::new(b"g")
        ])
        .now_or_never()
        .map(|x| shown(&x))
    );
    println!("{:?}", a.write_vectored(&[IoSlice::new(b"a")]).now_or_never().map(|x| shown(&x)));
    let mut x = [0; 8];
    println!("{:?} {}", b.read(&mut x).now_or_never().map(|x| shown(&x)), lossy(&x[..4]));
}

fn duplex_cancelled_operations_lose_nothing() {
    current_thread().block_on(async {
        let (mut a, mut b) = duplex(4);
        {
            let mut x = [0; 4];
            let mut f = pin!(b.read(&mut x));
            println!("{}", polled(once(f.as_mut()).await));
        }
        a.write_all(b"abcd").await.unwrap();
        {
            let mut f = pin!(a.write(b"zz"));
            println!("{}", polled(once(f.as_mut()).await));
        }
        {
            let mut f = pin!(a.write_all(b"yy"));
            println!("{}", polled_outcome(once(f.as_mut()).await));
        }
        drop(a);
        let mut v = vec![];
        println!("{} {}", shown(&b.read_to_end(&mut v).await), lossy(&v));
    });
}

fn duplex_large_transfer_through_a_tiny_pipe() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = duplex(3);
        let t = tokio::spawn(async move {
            for i in 0..5000u16 {
                a.write_u16(i).await.unwrap();
            }
        });
        let mut good = true;
        for i in 0..5000u16 {
            good &= b.read_u16().await.unwrap() == i;
        }
        println!("{good} {}", shown(&b.read_u16().await));
        t.await.unwrap();
    });
}

fn duplex_is_cooperative() {
    current_thread().block_on(async {
        let (mut a, mut b) = duplex(64);
        let n = timeout(millis(60), async {
            loop {
                a.write_all(b"x").await.unwrap();
                b.read(&mut [0; 1]).await.unwrap();
            }
        })
        .await;
        println!("{}", n.is_err());
    });
}

// Simplex.
fn simplex_passes_bytes_and_ends_on_shutdown() {
    current_thread().block_on(async {
        let (mut rd1, mut wr) = simplex(16);
        wr.write_all(b"one way").await.unwrap();
        wr.shutdown().await.unwrap();
        println!("{}", described(&wr.write(b"x").await));
        let mut v = vec![];
        println!("{} {}", shown(&rd1.read_to_end(&mut v).await), lossy(&v));
    });
}

fn simplex_dropping_a_half_ends_nothing() {
    current_thread().block_on(async {
        let (mut rd1, wr) = simplex(16);
        drop(wr);
        println!("{}", stuck(rd1.read(&mut [0; 2])).await);
        let (rd1, mut wr) = simplex(16);
        drop(rd1);
        println!("{}", shown(&wr.write(b"x").await));
    });
}

fn simplex_unsplit() {
    current_thread().block_on(async {
        let mut one = SimplexStream::new_unsplit(4);
        println!("{}", shown(&one.write(b"abcdef").await));
        let mut x = [0; 2];
        println!("{} {}", shown(&one.read(&mut x).await), lossy(&x));
        println!("{}", shown(&one.write(b"ef").await));
        println!("{} {}", outcome(&one.shutdown().await), shown(&one.write(b"z").await));
        println!("{} {}", shown(&one.read(&mut [0; 9]).await), shown(&one.read(&mut [0; 9]).await));
        let (rd1, wr) = simplex(5);
        println!("{}", rd1.is_pair_of(&wr));
        let mut one = rd1.unsplit(wr);
        println!("{}", shown(&one.write(b"abcdefgh").await));
    });
}

fn simplex_wakes_the_reader_on_shutdown() {
    let (mut rd1, mut wr) = simplex(4);
    let (n, w) = counter();
    let mut x = [0; 1];
    let mut f = Box::pin(rd1.read(&mut x));
    println!("{}", polled(poll_with(f.as_mut(), &w)));
    wr.shutdown().now_or_never().unwrap().unwrap();
    println!("{} {}", n.get(), polled(poll_with(f.as_mut(), &w)));
}

// Split, unsplit, join.
fn split_and_unsplit() {
    current_thread().block_on(async {
        let (a, mut b) = duplex(16);
        let (rd1, mut wr) = split(a);
        println!("{} {}", rd1.is_pair_of(&wr), wr.is_pair_of(&rd1));
        wr.write_all(b"x").await.unwrap();
        println!("{}", shown(&b.read(&mut [0; 2]).await));
        println!("{}", wr.is_write_vectored());
        println!("{rd1:?} {wr:?}");
        let mut a = rd1.unsplit(wr);
        a.write_all(b"yy").await.unwrap();
        println!("{}", shown(&b.read(&mut [0; 4]).await));
    });
}

fn unsplit_mismatch_panics() {
    let (r1, w1) = split(duplex(1).0);
    let (r2, w2) = split(duplex(1).0);
    println!("{} {}", r1.is_pair_of(&w2), w1.is_pair_of(&r2));
    println!("{}", panics(move || r1.unsplit(w2)));
    println!("{}", panics(move || r2.unsplit(w1)));
}

fn split_half_dropped_keeps_the_stream_open() {
    current_thread().block_on(async {
        let (a, mut b) = duplex(16);
        let (rd1, wr) = split(a);
        drop(wr);
        println!("{}", stuck(b.read(&mut [0; 1])).await);
        drop(rd1);
        println!("{}", shown(&b.read(&mut [0; 1]).await));
    });
}

fn split_of_tcp_does_not_shut_down_on_drop() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (mut rd1, mut wr) = split(a);
        wr.write_all(b"abc").await.unwrap();
        println!("{}", shown(&b.read(&mut [0; 8]).await));
        drop(wr);
        println!("{}", stuck(b.read(&mut [0; 1])).await);
        b.write_all(b"d").await.unwrap();
        println!("{}", shown(&rd1.read(&mut [0; 8]).await));
    });
}

fn split_halves_in_two_tasks() {
    multi_thread(4).block_on(async {
        let (a, b) = duplex(7);
        let (mut ar, mut aw) = split(a);
        let (mut br, mut bw) = split(b);
        let e1 = tokio::spawn(async move {
            let n = tokio::io::copy(&mut br, &mut bw).await.unwrap();
            bw.shutdown().await.unwrap();
            n
        });
        let w = tokio::spawn(async move {
            aw.write_all(&[1; 5000]).await.unwrap();
            aw.shutdown().await.unwrap();
        });
        let mut v = vec![];
        println!("{} {}", shown(&ar.read_to_end(&mut v).await), e1.await.unwrap());
        w.await.unwrap();
    });
}

fn join_of_a_reader_and_a_writer() {
    current_thread().block_on(async {
        let mut j = join(&b"line one\nrest"[..], Vec::new());
        let mut l = String::new();
        println!("{} {l:?}", shown(&j.read_line(&mut l).await));
        println!("{} {}", shown(&j.write(b"out").await), j.is_write_vectored());
        println!("{} {}", outcome(&j.flush().await), outcome(&j.shutdown().await));
        println!("{} {}", lossy(j.reader()), lossy(j.writer()));
        *j.reader_mut() = b"new";
        j.writer_mut().clear();
        let mut t = String::new();
        j.read_to_string(&mut t).await.unwrap();
        let (a, b) = j.into_inner();
        println!("{t} {} {}", a.len(), b.len());
    });
}

fn simplex_write_to_a_dropped_reader_is_stuck_when_full() {
    // tokio-rs/tokio#6914
    current_thread().block_on(async {
        let (rx, mut tx) = simplex(64);
        drop(rx);
        println!("{}", stuck(tx.write_all(&[0; 1024])).await);
    });
}

fn simplex_cancelled_write_all_has_written_a_part() {
    // tokio-rs/tokio#6877
    current_thread().block_on(async {
        let (mut rx, mut tx) = simplex(5);
        tx.write_all(b"abc").await.unwrap();
        {
            let mut f = pin!(tx.write_all(b"defg"));
            println!("{}", polled_outcome(once(f.as_mut()).await));
        }
        let mut x = [0; 9];
        println!("{} {}", shown(&rx.read(&mut x).await), lossy(&x[..5]));
    });
}

fn duplex_in_a_biased_select_yields() {
    // tokio-rs/tokio#4470
    current_thread().block_on(async {
        let (mut tx, mut rx) = duplex(8 * 1024);
        tokio::select! {
            biased;
            _ = async { loop { let _ = tx.write_all(&[3u8; 4096]).await; let _ = rx.read(&mut [0u8; 4096]).await; } } => println!("never"),
            _ = tokio::task::yield_now() => println!("yielded"),
        }
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("duplex_zero_capacity_panics", duplex_zero_capacity_panics),
    ("duplex_needs_no_runtime", duplex_needs_no_runtime),
    ("duplex_wakes_the_other_side", duplex_wakes_the_other_side),
    ("duplex_only_the_last_waker_is_kept", duplex_only_the_last_waker_is_kept),
    ("duplex_drop_is_eof_and_broken_pipe", duplex_drop_is_eof_and_broken_pipe),
    ("duplex_drop_wakes_both_waiters", duplex_drop_wakes_both_waiters),
    ("duplex_shutdown_is_half_close", duplex_shutdown_is_half_close),
    (
        "duplex_zero_length_operations_complete_at_once",
        duplex_zero_length_operations_complete_at_once,
    ),
    ("duplex_vectored", duplex_vectored),
    ("duplex_cancelled_operations_lose_nothing", duplex_cancelled_operations_lose_nothing),
    ("duplex_large_transfer_through_a_tiny_pipe", duplex_large_transfer_through_a_tiny_pipe),
    ("duplex_is_cooperative", duplex_is_cooperative),
    ("simplex_passes_bytes_and_ends_on_shutdown", simplex_passes_bytes_and_ends_on_shutdown),
    ("simplex_dropping_a_half_ends_nothing", simplex_dropping_a_half_ends_nothing),
    ("simplex_unsplit", simplex_unsplit),
    ("simplex_wakes_the_reader_on_shutdown", simplex_wakes_the_reader_on_shutdown),
    ("split_and_unsplit", split_and_unsplit),
    ("unsplit_mismatch_panics", unsplit_mismatch_panics),
    ("split_half_dropped_keeps_the_stream_open", split_half_dropped_keeps_the_stream_open),
    ("split_of_tcp_does_not_shut_down_on_drop", split_of_tcp_does_not_shut_down_on_drop),
    ("split_halves_in_two_tasks", split_halves_in_two_tasks),
    ("join_of_a_reader_and_a_writer", join_of_a_reader_and_a_writer),
    (
        "simplex_write_to_a_dropped_reader_is_stuck_when_full",
        simplex_write_to_a_dropped_reader_is_stuck_when_full,
    ),
    (
        "simplex_cancelled_write_all_has_written_a_part",
        simplex_cancelled_write_all_has_written_a_part,
    ),
    ("duplex_in_a_biased_select_yields", duplex_in_a_biased_select_yields),
];
