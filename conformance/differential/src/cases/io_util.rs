//! Codecs, streams of bytes and bridges of tokio-util.

use crate::probe::{sockets::*, *};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use tokio_util::io::{
    InspectReader, InspectWriter, ReaderStream, StreamReader, SyncIoBridge, read_exact_arc,
};

// `InspectReader` and `InspectWriter`.
fn inspect_reader_sees_each_read_once() {
    current_thread().block_on(async {
        let mut seen = vec![];
        let mut rd1 = InspectReader::new(Mock::rd([data(b"abc"), Wait, data(b"de")]), |b| {
            seen.push(lossy(b))
        });
        let mut v = vec![];
        println!("{} {}", shown(&rd1.read_to_end(&mut v).await), lossy(&v));
        drop(rd1);
        println!("{seen:?}");
    });
}

fn inspect_reader_sees_only_new_bytes_and_no_errors() {
    current_thread().block_on(async {
        let mut seen = vec![];
        let mut rd1 = InspectReader::new(
            Mock::rd([data(b"ab"), Fail(ErrorKind::TimedOut), data(b"cd")]),
            |b| seen.push(lossy(b)),
        );
        let mut m = [0; 8];
        let mut rb = ReadBuf::new(&mut m);
        rb.put_slice(b"xx");
        for _ in 0..3 {
            println!(
                "{}",
                polled(poll_fn(|cx| Poll::Ready(Pin::new(&mut rd1).poll_read(cx, &mut rb))).await)
            );
        }
        println!("{}", lossy(rb.filled()));
        drop(rd1);
        println!("{seen:?}");
    });
}

fn inspect_reader_cancelled_read() {
    current_thread().block_on(async {
        let mut seen = vec![];
        let mut rd1 = InspectReader::new(Mock::rd([Wait, data(b"abc")]), |b| seen.push(lossy(b)));
        {
            let mut x = [0; 2];
            let mut f = pin!(rd1.read(&mut x));
            println!("{}", polled(once(f.as_mut()).await));
        }
        let mut x = [0; 2];
        println!("{} {}", shown(&rd1.read(&mut x).await), shown(&rd1.read(&mut x).await));
        println!("{}", rd1.get_ref().reads);
        drop(rd1);
        println!("{seen:?}");
    });
}

fn inspect_writer_sees_what_was_taken() {
    current_thread().block_on(async {
        let mut seen = vec![];
        let mut w = InspectWriter::new(
            Mock::wr([Accept(2), Wait, Fail(ErrorKind::Interrupted), Accept(0)]),
            |b| seen.push(lossy(b)),
        );
        println!("{}", described(&w.write_all(b"abcdef").await));
        println!("{}", shown(&w.write(b"xyz").await));
        println!("{} {}", outcome(&w.flush().await), outcome(&w.shutdown().await));
        println!("{:?}", w.into_inner().log);
        println!("{seen:?}");
    });
}

fn inspect_writer_vectored() {
    current_thread().block_on(async {
        for v in [false, true] {
            let mut seen = vec![];
            let mut w = InspectWriter::new(Mock { vectored: v, ..Default::default() }, |b| {
                seen.push(lossy(b))
            });
            println!(
                "{} {}",
                w.is_write_vectored(),
                shown(
                    &w.write_vectored(&[
                        IoSlice::new(b"ab"),
                        IoSlice::new(b""),
                        IoSlice::new(b"c")
                    ])
                    .await
                )
            );
            drop(w);
            println!("{seen:?}");
        }
    });
}

// `ReaderStream` and `StreamReader`.
fn reader_stream_chunks_and_end() {
    current_thread().block_on(async {
        let mut st = ReaderStream::with_capacity(&b"0123456789"[..], 4);
        while let Some(x) = st.next().await {
            println!("{}", shown(&x.map(|b| lossy(&b))));
        }
        println!("{:?}", st.next().await.is_none());
        println!("{:?}", ReaderStream::new(tokio::io::empty()).next().await.is_none());
    });
}

fn reader_stream_error_ends_it() {
    current_thread().block_on(async {
        let mut st =
            ReaderStream::new(Mock::rd([data(b"ab"), Fail(ErrorKind::TimedOut), data(b"cd")]));
        for _ in 0..3 {
            println!("{:?}", st.next().await.map(|x| shown(&x.map(|b| lossy(&b)))));
        }
    });
}

fn reader_stream_cancelled_next() {
    current_thread().block_on(async {
        let mut st = ReaderStream::new(Mock::rd([Wait, data(b"ab"), Wait, data(b"cd")]));
        for _ in 0..4 {
            let x = {
                let mut f = pin!(st.next());
                once(f.as_mut()).await
            };
            println!(
                "{}",
                match x {
                    Poll::Pending => "Pending".into(),
                    Poll::Ready(x) => format!("{:?}", x.map(|x| shown(&x.map(|b| lossy(&b))))),
                }
            );
        }
    });
}

fn reader_stream_over_tcp() {
    multi_thread(2).block_on(async {
        let (mut a, b) = tcp_pair().await;
        let t = tokio::spawn(async move {
            a.write_all(&vec![5; 50_000]).await.unwrap();
        });
        let mut st = ReaderStream::with_capacity(b, 1000);
        let (mut n, mut max) = (0, 0);
        while let Some(x) = st.next().await {
            let k = x.unwrap().len();
            n += k;
            max = max.max(k);
        }
        println!("{n} {}", max <= 1000);
        t.await.unwrap();
    });
}

fn stream_reader_joins_chunks() {
    current_thread().block_on(async {
        let st = tokio_stream::iter(vec![
            Ok::<_, io::Error>(Bytes::from_static(b"ab")),
            Ok(Bytes::new()),
            Ok(Bytes::from_static(b"cd\nef")),
        ]);
        let mut rd1 = StreamReader::new(st);
        let mut l = String::new();
        println!("{} {l:?}", shown(&rd1.read_line(&mut l).await));
        let (_st, rest) = rd1.into_inner_with_chunk();
        println!("{:?}", rest);
    });
}

fn stream_reader_error_in_the_middle() {
    current_thread().block_on(async {
        let st = tokio_stream::iter(vec![
            Ok(Bytes::from_static(b"ab")),
            Err(io::Error::from(ErrorKind::TimedOut)),
            Ok(Bytes::from_static(b"cd")),
        ]);
        let mut rd1 = StreamReader::new(st);
        let mut v = vec![];
        println!("{} {}", shown(&rd1.read_to_end(&mut v).await), lossy(&v));
        println!("{} {}", shown(&rd1.read_to_end(&mut v).await), lossy(&v));
        println!("{}", shown(&rd1.read(&mut [0; 2]).await));
    });
}

fn stream_reader_zero_length_read_and_small_reads() {
    current_thread().block_on(async {
        let st = tokio_stream::iter(vec![Ok::<_, io::Error>(Bytes::from_static(b"abcde"))]);
        let mut rd1 = StreamReader::new(st);
        println!("{}", shown(&rd1.read(&mut []).await));
        println!("{} {}", shown(&rd1.read(&mut [0; 3]).await), shown(&rd1.read(&mut [0; 3]).await));
    });
}

// Other helpers.
fn read_exact_arc_forms() {
    current_thread().block_on(async {
        println!("{}", shown(&read_exact_arc(&b"abcdef"[..], 4).await.map(|x| lossy(&x))));
        println!("{}", shown(&read_exact_arc(&b"ab"[..], 4).await.map(|x| lossy(&x))));
        println!("{}", shown(&read_exact_arc(&b""[..], 0).await.map(|x| lossy(&x))));
    });
}

fn util_read_buf_and_poll_write_buf() {
    current_thread().block_on(async {
        let mut bm = BytesMut::new();
        println!(
            "{} {}",
            shown(&tokio_util::io::read_buf(&mut &b"abc"[..], &mut bm).await),
            lossy(&bm)
        );
        let mut b = Bytes::from_static(b"hello");
        let mut m = Mock::wr([Accept(2)]);
        println!(
            "{} {}",
            shown(
                &poll_fn(|cx| tokio_util::io::poll_write_buf(Pin::new(&mut m), cx, &mut b)).await
            ),
            lossy(&b)
        );
        let mut none = Bytes::new();
        println!(
            "{}",
            shown(
                &poll_fn(|cx| tokio_util::io::poll_write_buf(Pin::new(&mut m), cx, &mut none))
                    .await
            )
        );
    });
}

fn sync_bridge_in_spawn_blocking() {
    multi_thread(2).block_on(async {
        let (a, mut b) = tokio::io::duplex(4);
        let t = tokio::task::spawn_blocking(move || {
            use std::io::{Read, Write};
            let mut a = SyncIoBridge::new(a);
            let mut x = [0; 10];
            a.read_exact(&mut x).unwrap();
            a.write_all(b"0123456789").unwrap();
            a.flush().unwrap();
            (outcome(&a.shutdown()), lossy(&x))
        });
        b.write_all(b"abcdefghij").await.unwrap();
        let mut v = vec![];
        println!("{}", shown(&b.read_to_end(&mut v).await));
        println!("{:?}", t.await.unwrap());
    });
}

fn sync_bridge_in_async_context_panics() {
    let m = panics(|| {
        current_thread().block_on(async {
            use std::io::Read;
            let mut a = SyncIoBridge::new(&b"x"[..]);
            let _ = Read::read(&mut a, &mut [0; 1]);
        })
    });
    println!("{}", m.starts_with("Cannot start a runtime from within a runtime"));
}

fn framed_lines_over_duplex() {
    use tokio_util::codec::{FramedRead, LinesCodec};
    current_thread().block_on(async {
        let (mut a, b) = tokio::io::duplex(8);
        let t = async move {
            a.write_all(b"one\r\ntwo\nthree").await.unwrap();
        };
        let rdr = async move {
            let mut f = FramedRead::new(b, LinesCodec::new());
            let mut v = vec![];
            while let Some(x) = f.next().await {
                v.push(x.unwrap());
            }
            v
        };
        let (_, v) = tokio::join!(t, rdr);
        println!("{v:?}");
    });
}

fn framed_line_too_long_goes_on() {
    use tokio_util::codec::{FramedRead, LinesCodec};
    current_thread().block_on(async {
        let mut f =
            FramedRead::new(&b"ok\nmuch too long\nfine\n"[..], LinesCodec::new_with_max_length(5));
        for _ in 0..6 {
            println!("{:?}", f.next().await.map(|x| x.map_err(|x| x.to_string())));
        }
    });
}

fn framed_length_delimited_errors() {
    use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
    current_thread().block_on(async {
        let mut f =
            FramedRead::new(&b"\0\0\0\x03abc\0\0\0\0\0\0\0\x05xy"[..], LengthDelimitedCodec::new());
        for _ in 0..4 {
            println!("{:?}", f.next().await.map(|x| described(&x.map(|b| lossy(&b)))));
        }
        let mut f = FramedRead::new(&b"\x7f\xff\xff\xffabc"[..], LengthDelimitedCodec::new());
        for _ in 0..2 {
            println!("{:?}", f.next().await.map(|x| described(&x.map(|b| lossy(&b)))));
        }
    });
}

fn compat_with_futures_io_names() {
    use tokio_util::compat::TokioAsyncReadCompatExt;
    current_thread().block_on(async {
        let c = (&b"abc"[..]).compat();
        println!("{}", c.get_ref().len());
        println!("{}", c.into_inner().len());
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("inspect_reader_sees_each_read_once", inspect_reader_sees_each_read_once),
    (
        "inspect_reader_sees_only_new_bytes_and_no_errors",
        inspect_reader_sees_only_new_bytes_and_no_errors,
    ),
    ("inspect_reader_cancelled_read", inspect_reader_cancelled_read),
    ("inspect_writer_sees_what_was_taken", inspect_writer_sees_what_was_taken),
    ("inspect_writer_vectored", inspect_writer_vectored),
    ("reader_stream_chunks_and_end", reader_stream_chunks_and_end),
    ("reader_stream_error_ends_it", reader_stream_error_ends_it),
    ("reader_stream_cancelled_next", reader_stream_cancelled_next),
    ("reader_stream_over_tcp", reader_stream_over_tcp),
    ("stream_reader_joins_chunks", stream_reader_joins_chunks),
    ("stream_reader_error_in_the_middle", stream_reader_error_in_the_middle),
    (
        "stream_reader_zero_length_read_and_small_reads",
        stream_reader_zero_length_read_and_small_reads,
    ),
    ("read_exact_arc_forms", read_exact_arc_forms),
    ("util_read_buf_and_poll_write_buf", util_read_buf_and_poll_write_buf),
    ("sync_bridge_in_spawn_blocking", sync_bridge_in_spawn_blocking),
    ("sync_bridge_in_async_context_panics", sync_bridge_in_async_context_panics),
    ("framed_lines_over_duplex", framed_lines_over_duplex),
    ("framed_line_too_long_goes_on", framed_line_too_long_goes_on),
    ("framed_length_delimited_errors", framed_length_delimited_errors),
    ("compat_with_futures_io_names", compat_with_futures_io_names),
];
