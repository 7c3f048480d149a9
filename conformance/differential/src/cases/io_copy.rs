//! `copy`, `copy_buf` and `copy_bidirectional`.

use crate::probe::{sockets::*, *};
use std::io::ErrorKind;
use std::pin::pin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use tokio::io::{
    BufReader, BufWriter, copy, copy_bidirectional, copy_bidirectional_with_sizes, copy_buf, duplex,
};

fn copy_counts_and_flushes_once() {
    current_thread().block_on(async {
        let mut w = Mock::default();
        println!("{}", shown(&copy(&mut &b"hello"[..], &mut w).await));
        println!("{:?} {}", w.log, lossy(&w.out));
        let mut w = Mock::default();
        println!("{} {:?}", shown(&copy(&mut tokio::io::empty(), &mut w).await), w.log);
    });
}

fn copy_uses_an_8k_buffer() {
    current_thread().block_on(async {
        let mut rd1 = Mock::rd([data(&[1; 20_000])]);
        let mut w = Mock::default();
        println!("{}", shown(&copy(&mut rd1, &mut w).await));
        println!("{:?} {:?}", rd1.log, w.log);
    });
}

fn copy_reads_on_while_the_writer_is_blocked() {
    current_thread().block_on(async {
        let mut rd1 = Mock::rd([data(b"abc"), data(b"def"), data(b"ghi")]);
        let mut w = Mock::wr([Wait, Wait]);
        println!("{}", shown(&copy(&mut rd1, &mut w).await));
        println!("{:?} {:?} {}", rd1.log, w.log, lossy(&w.out));
    });
}

fn copy_flushes_when_the_reader_stalls() {
    current_thread().block_on(async {
        let mut rd1 = Mock::rd([data(b"abc"), Wait, data(b"def"), Wait, Wait]);
        let mut w = BufWriter::new(Mock::default());
        println!("{}", shown(&copy(&mut rd1, &mut w).await));
        println!("{:?} {}", w.get_ref().log, w.get_ref().flushes);
    });
}

fn copy_read_error_loses_nothing_already_written() {
    current_thread().block_on(async {
        let mut rd1 = Mock::rd([
            data(b"abc"),
            Fail(ErrorKind::Interrupted),
            data(b"d"),
            Fail(ErrorKind::TimedOut),
            data(b"ef"),
        ]);
        let mut w = Mock::default();
        println!("{} {}", shown(&copy(&mut rd1, &mut w).await), lossy(&w.out));
        println!("{} {}", shown(&copy(&mut rd1, &mut w).await), lossy(&w.out));
    });
}

fn copy_write_errors() {
    current_thread().block_on(async {
        let mut w =
            Mock::wr([Accept(2), Fail(ErrorKind::Interrupted), Fail(ErrorKind::BrokenPipe)]);
        println!("{} {}", shown(&copy(&mut &b"abcdef"[..], &mut w).await), lossy(&w.out));
        let mut w = Mock::wr([Accept(2), Accept(0)]);
        println!("{} {}", described(&copy(&mut &b"abcdef"[..], &mut w).await), lossy(&w.out));
        let mut w = Mock::wr([Accept(2), Accept(0)]);
        println!("{} {}", described(&copy_buf(&mut &b"abcdef"[..], &mut w).await), lossy(&w.out));
    });
}

fn copy_cancelled_loses_what_it_had_read() {
    current_thread().block_on(async {
        let mut rd1 = Mock::rd([data(b"abc"), data(b"def")]);
        let mut w = Mock::wr([Accept(1), Wait]);
        {
            let mut f = pin!(copy(&mut rd1, &mut w));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", lossy(&w.out));
        println!("{} {}", shown(&copy(&mut rd1, &mut w).await), lossy(&w.out));
    });
}

fn copy_buf_cancelled_loses_nothing() {
    current_thread().block_on(async {
        let mut rd1 = BufReader::new(Mock::rd([data(b"abc"), data(b"def")]));
        let mut w = Mock::wr([Accept(1), Wait]);
        {
            let mut f = pin!(copy_buf(&mut rd1, &mut w));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", lossy(&w.out));
        println!("{} {}", shown(&copy_buf(&mut rd1, &mut w).await), lossy(&w.out));
    });
}

fn copy_buf_flushes_when_the_reader_stalls() {
    current_thread().block_on(async {
        let mut rd1 = BufReader::new(Mock::rd([data(b"abc"), Wait, data(b"def")]));
        let mut w = Mock::default();
        println!("{} {:?}", shown(&copy_buf(&mut rd1, &mut w).await), w.log);
    });
}

fn copy_buf_errors() {
    current_thread().block_on(async {
        let mut rd1 = BufReader::new(Mock::rd([
            data(b"abc"),
            Fail(ErrorKind::Interrupted),
            data(b"d"),
            Fail(ErrorKind::TimedOut),
            data(b"ef"),
        ]));
        let mut w = Mock::wr([Fail(ErrorKind::Interrupted)]);
        println!("{} {}", shown(&copy_buf(&mut rd1, &mut w).await), lossy(&w.out));
        println!("{} {}", shown(&copy_buf(&mut rd1, &mut w).await), lossy(&w.out));
        let mut rd1: &[u8] = b"abcdef";
        let mut w = Mock::wr([Accept(2), Fail(ErrorKind::BrokenPipe)]);
        println!("{} {}", shown(&copy_buf(&mut rd1, &mut w).await), lossy(rd1));
    });
}

fn copy_of_an_endless_source_yields() {
    current_thread().block_on(async {
        println!(
            "{}",
            timeout(millis(50), copy(&mut tokio::io::repeat(1), &mut tokio::io::sink()))
                .await
                .is_err()
        );
        let mut b = BufReader::new(tokio::io::repeat(1));
        println!(
            "{}",
            timeout(millis(50), copy_buf(&mut b, &mut tokio::io::sink())).await.is_err()
        );
    });
}

fn copy_over_tcp_with_half_close() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        let t = tokio::spawn(async move {
            let mut v = vec![];
            let n = copy(&mut b, &mut v).await.unwrap();
            (n, v.len())
        });
        println!("{}", shown(&copy(&mut &vec![1u8; 1_000_000][..], &mut a).await));
        a.shutdown().await.unwrap();
        println!("{:?}", t.await.unwrap());
    });
}

// Both ways.
fn bidirectional_counts_and_shuts_down() {
    current_thread().block_on(async {
        let (mut a, mut a2) = duplex(64);
        let (mut b, mut b2) = duplex(64);
        a2.write_all(b"from a").await.unwrap();
        b2.write_all(b"from bb").await.unwrap();
        a2.shutdown().await.unwrap();
        b2.shutdown().await.unwrap();
        println!("{}", shown(&copy_bidirectional(&mut a, &mut b).await));
        let (mut v, mut w) = (vec![], vec![]);
        println!(
            "{} {}",
            shown(&a2.read_to_end(&mut v).await),
            shown(&b2.read_to_end(&mut w).await)
        );
        println!("{} {}", lossy(&v), lossy(&w));
    });
}

fn bidirectional_goes_on_after_one_side_ended() {
    multi_thread(2).block_on(async {
        let (mut a, mut a2) = duplex(64);
        let (mut b, mut b2) = duplex(64);
        let t = tokio::spawn(async move { shown(&copy_bidirectional(&mut a, &mut b).await) });
        a2.write_all(b"q").await.unwrap();
        a2.shutdown().await.unwrap();
        let mut v = vec![];
        println!("{}", shown(&b2.read_to_end(&mut v).await));
        println!("finished {}", t.is_finished());
        b2.write_all(b"answer").await.unwrap();
        let mut x = [0; 6];
        println!("{}", shown(&a2.read_exact(&mut x).await));
        drop(b2);
        println!("{}", t.await.unwrap());
    });
}

fn bidirectional_read_error_ends_it_without_shutdown() {
    current_thread().block_on(async {
        let mut a = Mock::rd([data(b"abc"), Fail(ErrorKind::TimedOut)]);
        let mut b = Mock::rd([data(b"12"), Wait, data(b"3")]);
        println!("{}", shown(&copy_bidirectional(&mut a, &mut b).await));
        println!("{:?} {:?}", a.log, b.log);
    });
}

fn bidirectional_write_error_ends_it() {
    current_thread().block_on(async {
        let mut a = Mock::rd([data(b"abc"), Wait, data(b"d")]);
        let mut b = Mock {
            rd: [data(b"1"), Wait].into_iter().collect(),
            wr: [Accept(1), Fail(ErrorKind::BrokenPipe)].into_iter().collect(),
            ..Default::default()
        };
        println!("{}", shown(&copy_bidirectional(&mut a, &mut b).await));
        println!("{:?} {:?} {}", a.log, b.log, lossy(&b.out));
    });
}

fn bidirectional_mock_log() {
    current_thread().block_on(async {
        let mut a = Mock::rd([data(b"abc"), Wait, data(b"de")]);
        let mut b = Mock::rd([data(b"1")]);
        println!("{}", shown(&copy_bidirectional(&mut a, &mut b).await));
        println!("{:?}", a.log);
        println!("{:?}", b.log);
    });
}

fn bidirectional_sizes() {
    current_thread().block_on(async {
        let mut a = Mock::rd([data(b"abcdefg")]);
        let mut b = Mock::rd([data(b"12345")]);
        println!("{}", shown(&copy_bidirectional_with_sizes(&mut a, &mut b, 3, 2).await));
        println!("{:?}", a.log);
        println!("{:?}", b.log);
    });
    println!(
        "{}",
        panics(|| current_thread().block_on(async {
            copy_bidirectional_with_sizes(&mut Mock::default(), &mut Mock::default(), 0, 1).await
        }))
    );
    println!(
        "{}",
        panics(|| current_thread().block_on(async {
            copy_bidirectional_with_sizes(&mut Mock::default(), &mut Mock::default(), 1, 0).await
        }))
    );
}

fn bidirectional_reset_in_the_middle_over_tcp() {
    multi_thread(2).block_on(async {
        let (mut c, mut p1) = tcp_pair().await;
        let (mut p2, mut sv) = tcp_pair().await;
        let t = tokio::spawn(async move { shown(&copy_bidirectional(&mut p1, &mut p2).await) });
        c.write_all(b"hello").await.unwrap();
        sv.read_exact(&mut [0; 5]).await.unwrap();
        c.set_zero_linger().unwrap();
        drop(c);
        println!("{}", t.await.unwrap());
        // the proxy's sockets are dropped with its task
        println!("{}", shown(&sv.read(&mut [0; 4]).await));
    });
}

fn bidirectional_proxy_over_tcp() {
    multi_thread(4).block_on(async {
        let (mut c, mut p1) = tcp_pair().await;
        let (mut p2, mut sv) = tcp_pair().await;
        let t = tokio::spawn(async move { shown(&copy_bidirectional(&mut p1, &mut p2).await) });
        let srv = tokio::spawn(async move {
            let mut v = vec![];
            sv.read_to_end(&mut v).await.unwrap();
            sv.write_all(&v).await.unwrap();
            sv.write_all(b"!").await.unwrap();
            v.len()
        });
        c.write_all(&vec![3; 300_000]).await.unwrap();
        c.shutdown().await.unwrap();
        let mut v = vec![];
        println!("{}", shown(&c.read_to_end(&mut v).await));
        println!("{} {}", srv.await.unwrap(), t.await.unwrap());
    });
}

fn bidirectional_peer_closed_at_once() {
    // tokio-rs/tokio#3876
    multi_thread(1).block_on(async {
        let (mut a, a2) = duplex(8);
        let (mut b, b2) = duplex(8);
        drop(a2);
        drop(b2);
        println!(
            "{}",
            shown(&timeout(millis(1000), copy_bidirectional(&mut a, &mut b)).await.unwrap())
        );
    });
}

fn bidirectional_write_to_a_gone_peer_is_an_error() {
    current_thread().block_on(async {
        let (mut a, mut a2) = duplex(8);
        let (mut b, b2) = duplex(8);
        a2.write_all(b"x").await.unwrap();
        drop(b2);
        println!("{}", shown(&copy_bidirectional(&mut a, &mut b).await));
    });
}

fn bidirectional_cancelled_leaves_the_streams_usable() {
    current_thread().block_on(async {
        let (mut a, mut a2) = duplex(64);
        let (mut b, mut b2) = duplex(64);
        a2.write_all(b"one").await.unwrap();
        println!("{}", stuck(copy_bidirectional(&mut a, &mut b)).await);
        let mut x = [0; 3];
        println!("{} {}", shown(&b2.read_exact(&mut x).await), lossy(&x));
        a2.write_all(b"two").await.unwrap();
        println!("{}", stuck(copy_bidirectional(&mut a, &mut b)).await);
        println!("{} {}", shown(&b2.read_exact(&mut x).await), lossy(&x));
    });
}

fn bidirectional_backpressure() {
    current_thread().block_on(async {
        let (mut a, mut a2) = duplex(4);
        let (mut b, mut b2) = duplex(4);
        let w = async {
            a2.write_all(&[1; 1000]).await.unwrap();
            a2.shutdown().await.unwrap();
            a2
        };
        let rdr = async {
            let mut v = vec![];
            b2.read_to_end(&mut v).await.unwrap();
            b2.shutdown().await.unwrap();
            v.len()
        };
        let (c, n, _k) = tokio::join!(copy_bidirectional_with_sizes(&mut a, &mut b, 7, 7), rdr, w);
        println!("{} {n}", shown(&c));
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("copy_counts_and_flushes_once", copy_counts_and_flushes_once),
    ("copy_uses_an_8k_buffer", copy_uses_an_8k_buffer),
    ("copy_reads_on_while_the_writer_is_blocked", copy_reads_on_while_the_writer_is_blocked),
    ("copy_flushes_when_the_reader_stalls", copy_flushes_when_the_reader_stalls),
    (
        "copy_read_error_loses_nothing_already_written",
        copy_read_error_loses_nothing_already_written,
    ),
    ("copy_write_errors", copy_write_errors),
    ("copy_cancelled_loses_what_it_had_read", copy_cancelled_loses_what_it_had_read),
    ("copy_buf_cancelled_loses_nothing", copy_buf_cancelled_loses_nothing),
    ("copy_buf_flushes_when_the_reader_stalls", copy_buf_flushes_when_the_reader_stalls),
    ("copy_buf_errors", copy_buf_errors),
    ("copy_of_an_endless_source_yields", copy_of_an_endless_source_yields),
    ("copy_over_tcp_with_half_close", copy_over_tcp_with_half_close),
    ("bidirectional_counts_and_shuts_down", bidirectional_counts_and_shuts_down),
    ("bidirectional_goes_on_after_one_side_ended", bidirectional_goes_on_after_one_side_ended),
    (
        "bidirectional_read_error_ends_it_without_shutdown",
        bidirectional_read_error_ends_it_without_shutdown,
    ),
    ("bidirectional_write_error_ends_it", bidirectional_write_error_ends_it),
    ("bidirectional_mock_log", bidirectional_mock_log),
    ("bidirectional_sizes", bidirectional_sizes),
    ("bidirectional_reset_in_the_middle_over_tcp", bidirectional_reset_in_the_middle_over_tcp),
    ("bidirectional_proxy_over_tcp", bidirectional_proxy_over_tcp),
    ("bidirectional_peer_closed_at_once", bidirectional_peer_closed_at_once),
    (
        "bidirectional_write_to_a_gone_peer_is_an_error",
        bidirectional_write_to_a_gone_peer_is_an_error,
    ),
    (
        "bidirectional_cancelled_leaves_the_streams_usable",
        bidirectional_cancelled_leaves_the_streams_usable,
    ),
    ("bidirectional_backpressure", bidirectional_backpressure),
];
