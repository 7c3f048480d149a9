//! Buffered readers and writers.

use crate::probe::{sockets::*, *};
use std::io::{ErrorKind, IoSlice, SeekFrom};
use std::pin::pin;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt};

use std::io::Cursor;
use tokio::io::{BufReader, BufStream, BufWriter};

// `BufReader`.
fn bufreader_zero_capacity_panics() {
    println!("{}", panics(|| BufReader::with_capacity(0, &b""[..])));
    println!("{}", panics(|| BufStream::with_capacity(0, 1, tokio::io::duplex(1).0)));
    println!("{}", panics(|| BufStream::with_capacity(1, 0, tokio::io::duplex(1).0)));
    println!("{}", panics(|| BufWriter::with_capacity(0, Vec::new())));
}

fn bufreader_default_capacity_and_debug() {
    current_thread().block_on(async {
        let mut b = BufReader::new(Mock::rd([data(b"abc")]));
        b.read_u8().await.unwrap();
        println!("{:?}", b.get_ref().log);
        println!("{:?}", BufReader::with_capacity(7, tokio::io::empty()));
    });
}

fn bufreader_large_reads_bypass_the_buffer() {
    current_thread().block_on(async {
        let mut b = BufReader::with_capacity(4, Mock::rd([data(b"abcdefghij"), data(b"k")]));
        let mut x = [0; 8];
        println!("{}", shown(&b.read(&mut x[..3]).await));
        println!("{} {}", shown(&b.read(&mut x).await), lossy(b.buffer()));
        println!("{} {}", shown(&b.read(&mut x[..4]).await), lossy(b.buffer()));
        println!("{}", shown(&b.read(&mut x).await));
        println!("{:?}", b.get_ref().log);
    });
}

fn bufreader_zero_length_read_fills_the_buffer() {
    current_thread().block_on(async {
        let mut b = BufReader::with_capacity(4, Mock::rd([data(b"abcdef")]));
        println!("{} {:?} {}", shown(&b.read(&mut []).await), b.get_ref().log, lossy(b.buffer()));
    });
}

fn bufreader_error_keeps_nothing_and_goes_on() {
    current_thread().block_on(async {
        let mut b = BufReader::with_capacity(
            4,
            Mock::rd([data(b"ab"), Fail(ErrorKind::TimedOut), data(b"cd")]),
        );
        let mut x = [0; 3];
        println!(
            "{} {} {} {}",
            shown(&b.read(&mut x).await),
            shown(&b.read(&mut x).await),
            shown(&b.read(&mut x).await),
            shown(&b.read(&mut x).await)
        );
    });
}

fn bufreader_cancelled_read_loses_nothing() {
    current_thread().block_on(async {
        let mut b = BufReader::with_capacity(4, Mock::rd([Wait, data(b"ab"), Wait, data(b"cd")]));
        let mut x = [0; 3];
        {
            let mut f = pin!(b.read(&mut x));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", shown(&b.read(&mut x).await));
        {
            let mut f = pin!(b.fill_buf());
            println!("{}", once(f.as_mut()).await.is_pending());
        }
        println!("{}", lossy(b.fill_buf().await.unwrap()));
    });
}

fn bufreader_into_inner_drops_the_buffer() {
    current_thread().block_on(async {
        let mut b = BufReader::with_capacity(4, &b"abcdef"[..]);
        b.read_u8().await.unwrap();
        println!("{}", lossy(b.buffer()));
        println!("{}", lossy(b.into_inner()));
    });
}

fn bufreader_seek_drops_the_buffer() {
    current_thread().block_on(async {
        let mut b = BufReader::with_capacity(4, Cursor::new(b"0123456789".to_vec()));
        println!("{}", b.read_u8().await.unwrap());
        println!("{}", shown(&b.seek(SeekFrom::Current(0)).await));
        println!("{:?} {}", lossy(b.buffer()), b.get_ref().position());
        println!("{}", lossy(b.fill_buf().await.unwrap()));
        println!("{}", shown(&b.seek(SeekFrom::Current(2)).await));
        println!("{}", shown(&b.stream_position().await));
        println!("{}", shown(&b.seek(SeekFrom::End(-1)).await));
        println!("{}", lossy(b.fill_buf().await.unwrap()));
        println!("{}", described(&b.seek(SeekFrom::Current(-100)).await));
        println!("{}", described(&b.seek(SeekFrom::Current(i64::MIN)).await));
        println!("{}", lossy(b.fill_buf().await.unwrap()));
    });
}

fn bufreader_seek_of_a_file() {
    multi_thread(1).block_on(async {
        std::fs::write("f", b"abcdefghijklmnopqrstuvwxyz").unwrap();
        let mut b = BufReader::with_capacity(8, tokio::fs::File::open("f").await.unwrap());
        let mut x = [0; 3];
        b.read_exact(&mut x).await.unwrap();
        println!("{} {}", lossy(&x), lossy(b.buffer()));
        println!("{}", shown(&b.seek(SeekFrom::Current(-1)).await));
        b.read_exact(&mut x).await.unwrap();
        println!("{}", lossy(&x));
        println!("{}", shown(&b.stream_position().await));
        println!("{}", shown(&b.seek(SeekFrom::Start(24)).await));
        let mut v = vec![];
        println!("{} {}", shown(&b.read_to_end(&mut v).await), lossy(&v));
        println!("{}", shown(&b.seek(SeekFrom::Current(-100)).await));
        println!("{}", outcome(&b.rewind().await));
        println!("{}", b.read_u8().await.unwrap());
    });
}

fn bufreader_writes_go_straight_through() {
    current_thread().block_on(async {
        let mut b = BufReader::new(Mock::default());
        println!(
            "{} {} {}",
            shown(&b.write(b"abc").await),
            lossy(&b.get_ref().out),
            b.is_write_vectored()
        );
        println!("{} {}", outcome(&b.flush().await), outcome(&b.shutdown().await));
        println!("{:?}", b.get_ref().log);
    });
}

// `BufWriter`.
fn bufwriter_buffers_until_full() {
    current_thread().block_on(async {
        let mut w = BufWriter::with_capacity(4, Mock::default());
        for b in [&b"ab"[..], b"cd", b"e", b"fghi", b"jklmn", b"", b"o"] {
            println!("{} {} {:?}", shown(&w.write(b).await), lossy(w.buffer()), w.get_ref().log);
        }
        println!("{} {}", outcome(&w.flush().await), lossy(&w.get_ref().out));
        println!("{:?}", w.get_ref().log);
    });
}

fn bufwriter_capacity_zero_writes_through() {
    current_thread().block_on(async {
        let mut w = BufWriter::with_capacity(0, Mock::default());
        println!("{} {}", shown(&w.write(b"ab").await), shown(&w.write(b"").await));
        println!("{:?}", w.get_ref().log);
    });
}

fn bufwriter_drop_and_into_inner_lose_the_buffer() {
    current_thread().block_on(async {
        let mut v = Vec::new();
        {
            let mut w = BufWriter::new(&mut v);
            w.write_all(b"lost").await.unwrap();
        }
        println!("{}", v.len());
        let mut w = BufWriter::new(Vec::new());
        w.write_all(b"lost").await.unwrap();
        println!("{}", w.into_inner().len());
    });
}

fn bufwriter_shutdown_flushes() {
    current_thread().block_on(async {
        let mut w = BufWriter::new(Mock::default());
        w.write_all(b"abc").await.unwrap();
        println!(
            "{} {} {:?}",
            outcome(&w.shutdown().await),
            lossy(&w.get_ref().out),
            w.get_ref().log
        );
    });
}

fn bufwriter_cancelled_flush_writes_nothing_twice() {
    current_thread().block_on(async {
        let mut w = BufWriter::new(Mock::wr([Accept(2), Wait, Accept(1), Wait]));
        w.write_all(b"abcdef").await.unwrap();
        {
            let mut f = pin!(w.flush());
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{} {}", lossy(w.buffer()), lossy(&w.get_ref().out));
        {
            let mut f = pin!(w.flush());
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{} {}", lossy(w.buffer()), lossy(&w.get_ref().out));
        println!("{}", shown(&w.write(b"gh").await));
        println!("{} {}", outcome(&w.flush().await), lossy(&w.get_ref().out));
    });
}

fn bufwriter_cancelled_write_that_had_to_flush() {
    current_thread().block_on(async {
        let mut w = BufWriter::with_capacity(4, Mock::wr([Accept(1), Wait]));
        w.write_all(b"abc").await.unwrap();
        {
            let mut f = pin!(w.write(b"de"));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{} {}", lossy(w.buffer()), lossy(&w.get_ref().out));
        println!("{} {}", shown(&w.write(b"de").await), lossy(w.buffer()));
        w.flush().await.unwrap();
        println!("{}", lossy(&w.get_ref().out));
    });
}

fn bufwriter_flush_error_keeps_the_rest() {
    current_thread().block_on(async {
        let mut w = BufWriter::new(Mock::wr([
            Accept(2),
            Fail(ErrorKind::Interrupted),
            Fail(ErrorKind::TimedOut),
            Accept(1),
            Accept(0),
        ]));
        w.write_all(b"abcdef").await.unwrap();
        println!("{} {}", shown(&w.flush().await), lossy(w.buffer()));
        println!("{} {}", described(&w.flush().await), lossy(w.buffer()));
        println!("{} {}", shown(&w.flush().await), lossy(&w.get_ref().out));
    });
}

fn bufwriter_write_error_while_making_room() {
    current_thread().block_on(async {
        let mut w = BufWriter::with_capacity(4, Mock::wr([Fail(ErrorKind::BrokenPipe)]));
        w.write_all(b"abc").await.unwrap();
        println!("{} {}", shown(&w.write(b"de").await), lossy(w.buffer()));
        println!("{} {}", shown(&w.write(b"de").await), lossy(w.buffer()));
    });
}

fn bufwriter_vectored() {
    current_thread().block_on(async {
        for v in [false, true] {
            let mut w = BufWriter::with_capacity(4, Mock { vectored: v, ..Default::default() });
            println!("{}", w.is_write_vectored());
            println!(
                "{} {}",
                shown(
                    &w.write_vectored(&[
                        IoSlice::new(b""),
                        IoSlice::new(b"ab"),
                        IoSlice::new(b"c"),
                        IoSlice::new(b"de")
                    ])
                    .await
                ),
                lossy(w.buffer())
            );
            println!(
                "{} {}",
                shown(&w.write_vectored(&[IoSlice::new(b"xy"), IoSlice::new(b"z")]).await),
                lossy(w.buffer())
            );
            println!(
                "{} {}",
                shown(&w.write_vectored(&[IoSlice::new(b""), IoSlice::new(b"")]).await),
                lossy(w.buffer())
            );
            println!(
                "{} {:?}",
                shown(&w.write_vectored(&[IoSlice::new(b"12345"), IoSlice::new(b"6")]).await),
                w.get_ref().log
            );
            w.flush().await.unwrap();
            println!("{}", lossy(&w.get_ref().out));
        }
    });
}

fn bufwriter_seek_flushes_first() {
    current_thread().block_on(async {
        let mut w = BufWriter::new(Cursor::new(Vec::new()));
        w.write_all(b"abcdef").await.unwrap();
        println!("{}", w.get_ref().get_ref().len());
        println!("{}", shown(&w.seek(SeekFrom::Start(1)).await));
        println!("{}", lossy(w.get_ref().get_ref()));
        w.write_all(b"X").await.unwrap();
        println!("{}", shown(&w.stream_position().await));
        println!("{}", lossy(w.get_ref().get_ref()));
        println!("{}", described(&w.seek(SeekFrom::Current(-9)).await));
        println!("{}", shown(&w.seek(SeekFrom::End(0)).await));
    });
}

fn bufwriter_seek_of_a_file() {
    multi_thread(2).block_on(async {
        let mut w = BufWriter::new(tokio::fs::File::create("f").await.unwrap());
        w.write_all(b"hello world").await.unwrap();
        println!("{}", shown(&w.seek(SeekFrom::Start(6)).await));
        w.write_all(b"W").await.unwrap();
        w.flush().await.unwrap();
        println!("{}", std::fs::read_to_string("f").unwrap());
    });
}

fn bufwriter_debug() {
    current_thread().block_on(async {
        let mut w = BufWriter::with_capacity(10, Vec::new());
        w.write_all(b"abc").await.unwrap();
        println!("{w:?}");
    });
}

// `BufStream`.
fn bufstream_reads_and_writes_apart() {
    current_thread().block_on(async {
        let mut b = BufStream::with_capacity(4, 4, Mock::rd([data(b"abcdef")]));
        println!("{}", b.read_u8().await.unwrap());
        println!("{}", shown(&b.write(b"xyz").await));
        println!("{:?}", b.get_ref().log);
        println!("{}", lossy(b.fill_buf().await.unwrap()));
        b.flush().await.unwrap();
        println!("{}", lossy(&b.get_ref().out));
        println!("{}", b.is_write_vectored());
        println!("{}", b.into_inner().rd.len());
    });
}

fn bufstream_from_both_nestings() {
    current_thread().block_on(async {
        let mut a = BufReader::new(BufWriter::new(Mock::rd([data(b"abc")])));
        a.read_u8().await.unwrap();
        a.write_all(b"1").await.unwrap();
        let mut a: BufStream<Mock> = a.into();
        println!("{}", lossy(a.fill_buf().await.unwrap()));
        a.flush().await.unwrap();
        println!("{}", lossy(&a.get_ref().out));
        let mut b = BufWriter::new(BufReader::new(Mock::rd([data(b"abc")])));
        b.read_u8().await.unwrap();
        b.write_all(b"2").await.unwrap();
        let mut b: BufStream<Mock> = b.into();
        println!("{}", lossy(b.fill_buf().await.unwrap()));
        b.flush().await.unwrap();
        println!("{}", lossy(&b.get_ref().out));
    });
}

fn bufstream_request_reply_over_tcp() {
    multi_thread(2).block_on(async {
        let (a, b) = tcp_pair().await;
        let t = tokio::spawn(async move {
            let mut b = BufStream::new(b);
            let mut l = String::new();
            while b.read_line(&mut l).await.unwrap() > 0 {
                b.write_all(format!("echo {l}").as_bytes()).await.unwrap();
                b.flush().await.unwrap();
                l.clear();
            }
            b.shutdown().await.unwrap();
        });
        let mut a = BufStream::new(a);
        for w in ["one\n", "two\n"] {
            a.write_all(w.as_bytes()).await.unwrap();
            a.flush().await.unwrap();
            let mut l = String::new();
            println!("{} {l:?}", shown(&a.read_line(&mut l).await));
        }
        a.shutdown().await.unwrap();
        let mut v = vec![];
        println!("{}", shown(&a.read_to_end(&mut v).await));
        t.await.unwrap();
    });
}

fn bufstream_seek() {
    current_thread().block_on(async {
        let mut b = BufStream::with_capacity(4, 4, Cursor::new(b"0123456789".to_vec()));
        let mut x = [0; 2];
        b.read_exact(&mut x).await.unwrap();
        println!("{}", shown(&b.seek(SeekFrom::Current(1)).await));
        b.write_all(b"X").await.unwrap();
        println!("{}", shown(&b.seek(SeekFrom::Start(0)).await));
        println!("{}", lossy(b.get_ref().get_ref()));
        println!("{}", lossy(b.fill_buf().await.unwrap()));
    });
}

/// A target whose seeks take a second poll.
#[derive(Default)]
struct Slow {
    seeking: Option<usize>,
    log: Vec<String>,
}

impl AsyncWrite for Slow {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        self.log.push(format!("write {}", lossy(bytes)));
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        self.log.push("flush".into());
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        self.poll_flush(context)
    }
}

impl tokio::io::AsyncSeek for Slow {
    fn start_seek(mut self: std::pin::Pin<&mut Self>, to: SeekFrom) -> std::io::Result<()> {
        self.log.push(format!("seek {to:?}"));
        self.seeking = Some(1);
        Ok(())
    }

    fn poll_complete(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<u64>> {
        let seeking = self.seeking;
        self.log.push(format!("complete {seeking:?}"));
        match seeking {
            Some(polls @ 1..) => {
                self.seeking = Some(polls - 1);
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            }
            _ => {
                self.seeking = None;
                std::task::Poll::Ready(Ok(7))
            }
        }
    }
}

fn bufwriter_cancelled_seek_then_more_is_gathered() {
    current_thread().block_on(async {
        for capacity in [4, 100] {
            let mut w = BufWriter::with_capacity(capacity, Slow::default());
            w.write_all(b"ab").await.unwrap();
            println!("{}", polled(once(pin!(w.seek(SeekFrom::Start(5)))).await));
            w.write_all(b"cde").await.unwrap();
            println!("{:?}", lossy(w.buffer()));
            let position =
                std::future::poll_fn(|cx| tokio::io::AsyncSeek::poll_complete(pin!(&mut w), cx));
            println!("{}", shown(&position.await));
            println!("{:?}", lossy(w.buffer()));
            w.write_all(b"fg").await.unwrap();
            println!("{}", polled(once(pin!(w.seek(SeekFrom::End(1)))).await));
            w.write_all(b"h").await.unwrap();
            println!("{}", shown(&w.seek(SeekFrom::Current(2)).await));
            println!("{:#?}", w.get_ref().log);
        }
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("bufreader_zero_capacity_panics", bufreader_zero_capacity_panics),
    ("bufreader_default_capacity_and_debug", bufreader_default_capacity_and_debug),
    ("bufreader_large_reads_bypass_the_buffer", bufreader_large_reads_bypass_the_buffer),
    ("bufreader_zero_length_read_fills_the_buffer", bufreader_zero_length_read_fills_the_buffer),
    ("bufreader_error_keeps_nothing_and_goes_on", bufreader_error_keeps_nothing_and_goes_on),
    ("bufreader_cancelled_read_loses_nothing", bufreader_cancelled_read_loses_nothing),
    ("bufreader_into_inner_drops_the_buffer", bufreader_into_inner_drops_the_buffer),
    ("bufreader_seek_drops_the_buffer", bufreader_seek_drops_the_buffer),
    ("bufreader_seek_of_a_file", bufreader_seek_of_a_file),
    ("bufreader_writes_go_straight_through", bufreader_writes_go_straight_through),
    ("bufwriter_buffers_until_full", bufwriter_buffers_until_full),
    ("bufwriter_capacity_zero_writes_through", bufwriter_capacity_zero_writes_through),
    (
        "bufwriter_drop_and_into_inner_lose_the_buffer",
        bufwriter_drop_and_into_inner_lose_the_buffer,
    ),
    ("bufwriter_shutdown_flushes", bufwriter_shutdown_flushes),
    (
        "bufwriter_cancelled_flush_writes_nothing_twice",
        bufwriter_cancelled_flush_writes_nothing_twice,
    ),
    ("bufwriter_cancelled_write_that_had_to_flush", bufwriter_cancelled_write_that_had_to_flush),
    ("bufwriter_flush_error_keeps_the_rest", bufwriter_flush_error_keeps_the_rest),
    ("bufwriter_write_error_while_making_room", bufwriter_write_error_while_making_room),
    ("bufwriter_vectored", bufwriter_vectored),
    ("bufwriter_seek_flushes_first", bufwriter_seek_flushes_first),
    ("bufwriter_seek_of_a_file", bufwriter_seek_of_a_file),
    ("bufwriter_debug", bufwriter_debug),
    ("bufstream_reads_and_writes_apart", bufstream_reads_and_writes_apart),
    ("bufstream_from_both_nestings", bufstream_from_both_nestings),
    ("bufstream_request_reply_over_tcp", bufstream_request_reply_over_tcp),
    ("bufstream_seek", bufstream_seek),
    (
        "bufwriter_cancelled_seek_then_more_is_gathered",
        bufwriter_cancelled_seek_then_more_is_gathered,
    ),
];
