//! The methods of `AsyncReadExt`, `AsyncWriteExt` and their kin.

use crate::probe::{sockets::*, *};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use std::io::{self, ErrorKind, IoSlice, SeekFrom};
use std::mem::MaybeUninit;
use std::panic::catch_unwind;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, ReadBuf,
};
use tokio::time::timeout;

use std::io::Cursor;

// `read_exact`, `read_to_end`, `read_to_string`.
fn read_exact_at_eof() {
    current_thread().block_on(async {
        let mut rd1: &[u8] = b"abc";
        let mut x = *b".....";
        println!("{} {}", described(&rd1.read_exact(&mut x).await), lossy(&x));
        println!("left {}", rd1.len());
        println!("{}", shown(&rd1.read_exact(&mut []).await));
        println!("{}", shown(&tokio::io::empty().read_exact(&mut [0; 1]).await));
        println!("{}", shown(&Mock::rd([Fail(ErrorKind::TimedOut)]).read_exact(&mut []).await));
    });
}

fn read_exact_retries_interrupted() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"ab"), Fail(ErrorKind::Interrupted), Wait, data(b"cdef")]);
        let mut x = [0; 4];
        println!("{} {}", shown(&m.read_exact(&mut x).await), lossy(&x));
        println!("{:?}", m.log);
    });
}

fn read_exact_error_in_the_middle_keeps_the_bytes() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"ab"), Fail(ErrorKind::TimedOut), data(b"cd")]);
        let mut x = *b"....";
        println!("{} {}", shown(&m.read_exact(&mut x).await), lossy(&x));
        println!("{} {}", shown(&m.read_exact(&mut x[..2]).await), lossy(&x));
    });
}

fn read_does_not_retry_interrupted() {
    current_thread().block_on(async {
        let mut m = Mock::rd([Fail(ErrorKind::Interrupted), data(b"x")]);
        println!("{} {}", shown(&m.read(&mut [0; 4]).await), shown(&m.read(&mut [0; 4]).await));
        let mut m = Mock::rd([Fail(ErrorKind::Interrupted), data(b"x")]);
        println!("{}", shown(&m.read_buf(&mut Vec::new()).await));
    });
}

fn read_to_end_appends() {
    current_thread().block_on(async {
        let mut v = b"head ".to_vec();
        println!("{} {}", shown(&(&b"tail"[..]).read_to_end(&mut v).await), lossy(&v));
        println!("{} {}", shown(&tokio::io::empty().read_to_end(&mut v).await), v.len());
    });
}

fn read_to_end_does_not_grow_an_exact_buffer() {
    current_thread().block_on(async {
        for n in [0usize, 1, 31, 32, 33, 64, 100] {
            let data = vec![1u8; n];
            let mut v = Vec::with_capacity(n);
            let c = v.capacity();
            (&data[..]).read_to_end(&mut v).await.unwrap();
            println!("{n} {}", if v.capacity() == c { "same" } else { "grew" });
        }
    });
}

fn read_to_end_small_reads_probe_with_32_bytes() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(&[1; 64]), data(&[2; 10])]);
        let mut v = Vec::with_capacity(64);
        println!("{} {}", shown(&m.read_to_end(&mut v).await), v.len());
        println!("{:?}", m.log);
    });
}

fn read_to_end_error_keeps_what_was_read() {
    current_thread().block_on(async {
        let mut m = Mock::rd([
            data(b"abc"),
            Fail(ErrorKind::Interrupted),
            data(b"d"),
            Fail(ErrorKind::BrokenPipe),
            data(b"e"),
        ]);
        let mut v = b"0".to_vec();
        println!("{} {}", shown(&m.read_to_end(&mut v).await), lossy(&v));
        println!("{} {}", shown(&m.read_to_end(&mut v).await), lossy(&v));
    });
}

fn read_to_end_cancelled_keeps_what_was_read() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"abc"), Wait, data(b"def")]);
        let mut v = vec![];
        {
            let mut f = pin!(m.read_to_end(&mut v));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", lossy(&v));
        println!("{} {}", shown(&m.read_to_end(&mut v).await), lossy(&v));
    });
}

fn read_to_string_invalid_utf8_puts_the_original_back() {
    current_thread().block_on(async {
        let mut t = String::from("orig");
        println!("{} {t:?}", described(&(&b"good\xffbad"[..]).read_to_string(&mut t).await));
        let mut t = String::new();
        println!("{} {t:?}", described(&(&b"\xe2\x82"[..]).read_to_string(&mut t).await));
    });
}

fn read_to_string_error_drops_what_was_read() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"abc"), Fail(ErrorKind::TimedOut)]);
        let mut t = String::from("orig");
        println!("{} {t:?}", shown(&m.read_to_string(&mut t).await));
        let mut m = Mock::rd([data(b"ab\xff"), Fail(ErrorKind::TimedOut)]);
        println!("{} {t:?}", shown(&m.read_to_string(&mut t).await));
    });
}

fn read_to_string_cancelled_empties_the_string() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"abc"), Wait, data(b"def")]);
        let mut t = String::from("orig");
        {
            let mut f = pin!(m.read_to_string(&mut t));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{t:?}");
        println!("{} {t:?}", shown(&m.read_to_string(&mut t).await));
    });
}

fn read_to_string_multibyte_split_over_reads() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"\xe2"), data(b"\x82"), data(b"\xac!")]);
        let mut t = String::from("=");
        println!("{} {t}", shown(&m.read_to_string(&mut t).await));
    });
}

// `lines`, `read_line`, `read_until`, `split`.
fn read_line_forms() {
    current_thread().block_on(async {
        let mut rd1: &[u8] = b"one\ntwo\r\n\n\rthree";
        for _ in 0..6 {
            let mut t = String::from(">");
            println!("{} {t:?}", shown(&rd1.read_line(&mut t).await));
        }
    });
}

fn read_line_invalid_utf8_consumes_the_line() {
    current_thread().block_on(async {
        let mut rd1: &[u8] = b"b\xffd\ngood\n";
        let mut t = String::from("orig");
        println!("{} {t:?}", described(&rd1.read_line(&mut t).await));
        println!("{} {t:?}", shown(&rd1.read_line(&mut t).await));
    });
}

fn read_line_error_keeps_what_was_read() {
    current_thread().block_on(async {
        let mut m = tokio::io::BufReader::new(Mock::rd([
            data(b"par"),
            Fail(ErrorKind::TimedOut),
            data(b"tial\n"),
        ]));
        let mut t = String::from("<");
        println!("{} {t:?}", shown(&m.read_line(&mut t).await));
        println!("{} {t:?}", shown(&m.read_line(&mut t).await));
    });
}

fn read_line_cancelled_empties_the_string() {
    current_thread().block_on(async {
        let mut m = tokio::io::BufReader::new(Mock::rd([data(b"par"), Wait, data(b"tial\n")]));
        let mut t = String::from("orig");
        {
            let mut f = pin!(m.read_line(&mut t));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{t:?}");
        println!("{} {t:?}", shown(&m.read_line(&mut t).await));
    });
}

fn read_until_cancelled_keeps_the_bytes() {
    current_thread().block_on(async {
        let mut m = tokio::io::BufReader::new(Mock::rd([data(b"par"), Wait, data(b"tial;rest")]));
        let mut v = b"orig ".to_vec();
        {
            let mut f = pin!(m.read_until(b';', &mut v));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", lossy(&v));
        println!("{} {}", shown(&m.read_until(b';', &mut v).await), lossy(&v));
        println!("{} {}", shown(&m.read_until(b';', &mut v).await), lossy(&v));
        println!("{} {}", shown(&m.read_until(b';', &mut v).await), lossy(&v));
    });
}

fn read_until_delimiters() {
    current_thread().block_on(async {
        let mut rd1: &[u8] = b"\0a\0\0b\xff";
        for del in [0u8, 0, 0, 0xff, 0] {
            let mut v = vec![];
            println!("{} {v:?}", shown(&rd1.read_until(del, &mut v).await));
        }
    });
}

fn lines_forms() {
    current_thread().block_on(async {
        let mut l = (&b"a\r\nb\n\r\n\nc\rd\r"[..]).lines();
        while let Some(x) = l.next_line().await.unwrap() {
            println!("{x:?}");
        }
        println!("{:?}", l.next_line().await.unwrap());
    });
}

fn lines_invalid_utf8_goes_on_with_the_next() {
    current_thread().block_on(async {
        let mut l = (&b"ok\nb\xffd\nfine\n"[..]).lines();
        println!("{}", described(&l.next_line().await));
        let x = l.next_line().await.unwrap_err();
        println!("{} {x}", error(&x));
        println!(
            "{:?}",
            x.into_inner()
                .and_then(|b| b.downcast::<std::string::FromUtf8Error>().ok())
                .map(|f| f.into_bytes())
        );
        println!("{} {}", described(&l.next_line().await), described(&l.next_line().await));
    });
}

fn lines_partial_line_survives_an_error() {
    current_thread().block_on(async {
        let mut l = tokio::io::BufReader::new(Mock::rd([
            data(b"par"),
            Fail(ErrorKind::TimedOut),
            data(b"tial\nnext"),
        ]))
        .lines();
        println!(
            "{} {} {} {}",
            shown(&l.next_line().await),
            shown(&l.next_line().await),
            shown(&l.next_line().await),
            shown(&l.next_line().await)
        );
    });
}

fn lines_cancelled_loses_nothing() {
    current_thread().block_on(async {
        let mut l = tokio::io::BufReader::new(Mock::rd([
            data(b"par"),
            Wait,
            data(b"ti"),
            Wait,
            data(b"al\n"),
        ]))
        .lines();
        for _ in 0..2 {
            let mut f = pin!(l.next_line());
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", shown(&l.next_line().await));
    });
}

fn lines_get_mut_and_into_inner() {
    current_thread().block_on(async {
        let mut l = tokio::io::BufReader::new(&b"a\nb\nc"[..]).lines();
        l.next_line().await.unwrap();
        println!("{}", lossy(l.get_ref().buffer()));
        l.get_mut().consume(2);
        println!("{}", lossy(l.into_inner().buffer()));
    });
}

fn split_forms() {
    current_thread().block_on(async {
        for src in [&b""[..], b",", b",,", b"a", b"a,", b",a", b"a,,b"] {
            let mut sp = AsyncBufReadExt::split(src, b',');
            let mut v = vec![];
            while let Some(x) = sp.next_segment().await.unwrap() {
                v.push(lossy(&x));
            }
            println!("{:?} {v:?}", lossy(src));
        }
    });
}

fn split_cancelled_and_error_lose_nothing() {
    current_thread().block_on(async {
        let mut sp = tokio::io::BufReader::new(Mock::rd([
            data(b"ab"),
            Wait,
            data(b"c"),
            Fail(ErrorKind::TimedOut),
            data(b"d,e"),
        ]))
        .split(b',');
        {
            let mut f = pin!(sp.next_segment());
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", shown(&sp.next_segment().await.map(|x| x.map(|v| lossy(&v)))));
        println!("{}", shown(&sp.next_segment().await.map(|x| x.map(|v| lossy(&v)))));
        println!("{}", shown(&sp.next_segment().await.map(|x| x.map(|v| lossy(&v)))));
        println!("{}", shown(&sp.next_segment().await.map(|x| x.map(|v| lossy(&v)))));
    });
}

fn lines_stream_and_split_stream() {
    current_thread().block_on(async {
        let v: Vec<_> = tokio_stream::wrappers::LinesStream::new((&b"x\ny\r\nz"[..]).lines())
            .map(|x| x.unwrap())
            .collect()
            .await;
        println!("{v:?}");
        let v: Vec<_> =
            tokio_stream::wrappers::SplitStream::new(AsyncBufReadExt::split(&b"x|y|"[..], b'|'))
                .map(|x| lossy(&x.unwrap()))
                .collect()
                .await;
        println!("{v:?}");
    });
}

// Integers.
fn integers_are_read() {
    current_thread().block_on(async {
        let b: Vec<u8> = (1..=200).collect();
        let mut c = Cursor::new(b);
        println!("{} {}", c.read_u8().await.unwrap(), c.read_i8().await.unwrap());
        println!("{:#x} {:#x}", c.read_u16().await.unwrap(), c.read_u16_le().await.unwrap());
        println!("{:#x} {:#x}", c.read_u32().await.unwrap(), c.read_i32_le().await.unwrap());
        println!("{:#x} {:#x}", c.read_u64().await.unwrap(), c.read_i64_le().await.unwrap());
        println!("{:#x} {:#x}", c.read_u128().await.unwrap(), c.read_i128_le().await.unwrap());
        println!("{:e} {:e}", c.read_f32().await.unwrap(), c.read_f64_le().await.unwrap());
        println!("{}", c.position());
    });
}

fn integers_at_eof() {
    current_thread().block_on(async {
        println!("{}", described(&(&b""[..]).read_u8().await));
        let mut t: &[u8] = b"abc";
        println!("{}", described(&t.read_u32().await));
        println!("the bytes are gone {}", t.len());
        println!("{}", shown(&(&b"\xff\xfe"[..]).read_i16().await));
    });
}

fn integers_cancelled_lose_the_bytes() {
    current_thread().block_on(async {
        let mut m = Mock::rd([data(b"\x01"), Wait, data(b"\x02\x03")]);
        {
            let mut f = pin!(m.read_u16());
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", shown(&m.read_u16().await));
        let mut m = Mock::rd([data(b"\x01"), Fail(ErrorKind::Interrupted), Wait, data(b"\x02")]);
        println!("{}", shown(&m.read_u16().await));
    });
}

fn integers_are_written() {
    current_thread().block_on(async {
        let mut v = Vec::new();
        v.write_u8(1).await.unwrap();
        v.write_i8(-1).await.unwrap();
        v.write_u16(0x0203).await.unwrap();
        v.write_u16_le(0x0203).await.unwrap();
        v.write_i32(-2).await.unwrap();
        v.write_u64_le(7).await.unwrap();
        v.write_f32(1.5).await.unwrap();
        v.write_f64_le(-0.0).await.unwrap();
        println!("{v:?}");
        let mut v = Vec::new();
        v.write_u128(u128::MAX - 1).await.unwrap();
        v.write_i128_le(-3).await.unwrap();
        println!("{v:?}");
    });
}

fn integers_written_to_a_full_sink() {
    current_thread().block_on(async {
        let mut b = [0u8; 3];
        let mut c = Cursor::new(&mut b[..]);
        println!("{}", described(&c.write_u16(0x0102).await));
        println!("{}", described(&c.write_u32(0x03040506).await));
        println!("{}", described(&c.write_u8(9).await));
        println!("{b:?}");
        let mut m = Mock::wr([Accept(1), Fail(ErrorKind::Interrupted), Wait, Accept(1), Accept(0)]);
        println!("{} {:?}", described(&m.write_u32(0x01020304).await), m.out);
    });
}

// Writing.
fn write_all_zero_is_an_error() {
    current_thread().block_on(async {
        let mut b = [0u8; 4];
        let c: &mut [u8] = &mut b;
        let mut c = Cursor::new(c);
        println!("{}", described(&c.write_all(b"abcdef").await));
        println!("{} {}", c.position(), lossy(&b));
        println!("{}", shown(&Mock::wr([Accept(0)]).write_all(b"").await));
        println!("{}", shown(&Mock::wr([Accept(0)]).write(b"x").await));
    });
}

fn write_all_retries_interrupted() {
    current_thread().block_on(async {
        let mut m = Mock::wr([Accept(2), Fail(ErrorKind::Interrupted), Wait, Accept(1)]);
        println!("{} {} {:?}", shown(&m.write_all(b"abcdef").await), lossy(&m.out), m.log);
        let mut m = Mock::wr([Fail(ErrorKind::Interrupted)]);
        println!("{}", shown(&m.write(b"x").await));
    });
}

fn write_all_error_in_the_middle() {
    current_thread().block_on(async {
        let mut m = Mock::wr([Accept(2), Fail(ErrorKind::BrokenPipe)]);
        println!("{} {}", shown(&m.write_all(b"abcdef").await), lossy(&m.out));
    });
}

fn write_all_buf_keeps_its_place_on_error_and_cancel() {
    current_thread().block_on(async {
        let mut b = Bytes::from_static(b"abcdef");
        let mut m = Mock::wr([Accept(2), Fail(ErrorKind::BrokenPipe), Accept(1), Wait, Accept(9)]);
        println!("{} {}", shown(&m.write_all_buf(&mut b).await), lossy(&b));
        {
            let mut f = pin!(m.write_all_buf(&mut b));
            println!("{}", polled(once(f.as_mut()).await));
        }
        println!("{}", lossy(&b));
        println!("{} {} {}", shown(&m.write_all_buf(&mut b).await), b.len(), lossy(&m.out));
        println!("{}", shown(&m.write_all_buf(&mut b).await));
        let mut b = Bytes::from_static(b"x");
        println!("{} {}", described(&Mock::wr([Accept(0)]).write_all_buf(&mut b).await), b.len());
    });
}

fn write_buf_uses_vectored_only_if_supported() {
    use bytes::Buf;
    current_thread().block_on(async {
        for v in [false, true] {
            let mut m = Mock { vectored: v, ..Default::default() };
            let mut b = Bytes::from_static(b"abc").chain(Bytes::from_static(b"de"));
            println!("{} {} {:?}", shown(&m.write_buf(&mut b).await), b.remaining(), m.log);
            println!("{} {:?}", shown(&m.write_all_buf(&mut b).await), m.log);
            println!("{}", shown(&m.write_buf(&mut b).await));
        }
    });
}

fn write_vectored_default_takes_the_first_nonempty() {
    current_thread().block_on(async {
        let mut m = Mock::default();
        println!(
            "{} {}",
            shown(
                &m.write_vectored(&[IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"c")])
                    .await
            ),
            m.is_write_vectored()
        );
        let mut v = Vec::new();
        println!(
            "{} {} {}",
            AsyncWrite::is_write_vectored(&v),
            shown(
                &AsyncWriteExt::write_vectored(
                    &mut v,
                    &[IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"c")]
                )
                .await
            ),
            lossy(&v)
        );
        println!("{}", shown(&AsyncWriteExt::write_vectored(&mut v, &[]).await));
    });
}

fn cursor_writes_over_and_past_the_end() {
    current_thread().block_on(async {
        let mut c = Cursor::new(vec![1u8, 2, 3]);
        c.set_position(2);
        println!("{}", shown(&AsyncWriteExt::write(&mut c, b"xy").await));
        c.set_position(6);
        println!("{} {:?}", shown(&AsyncWriteExt::write(&mut c, b"z").await), c.get_ref());
        let mut c = Cursor::new(vec![0u8; 2].into_boxed_slice());
        println!(
            "{} {}",
            shown(&AsyncWriteExt::write(&mut c, b"xyz").await),
            shown(&AsyncWriteExt::write(&mut c, b"q").await)
        );
        let mut two = [0u8; 2];
        let mut c = Cursor::new(&mut two[..]);
        c.set_position(9);
        println!("{}", shown(&AsyncWriteExt::write(&mut c, b"q").await));
        println!(
            "{} {}",
            AsyncWrite::is_write_vectored(&c),
            outcome(&AsyncWriteExt::shutdown(&mut c).await)
        );
    });
}

fn cursor_reads_past_the_end() {
    current_thread().block_on(async {
        let mut c = Cursor::new(b"abc");
        c.set_position(10);
        println!("{}", shown(&AsyncReadExt::read(&mut c, &mut [0; 4]).await));
        println!("{}", shown(&AsyncBufReadExt::fill_buf(&mut c).await.map(|x| x.len())));
        c.set_position(u64::MAX);
        println!("{}", shown(&AsyncReadExt::read(&mut c, &mut [0; 4]).await));
    });
}

fn cursor_seeks() {
    current_thread().block_on(async {
        let mut c = Cursor::new(vec![0u8; 10]);
        println!("{}", shown(&AsyncSeekExt::seek(&mut c, SeekFrom::End(-3)).await));
        println!("{}", shown(&AsyncSeekExt::seek(&mut c, SeekFrom::Current(-2)).await));
        println!("{}", described(&AsyncSeekExt::seek(&mut c, SeekFrom::Current(-6)).await));
        println!("{}", shown(&AsyncSeekExt::stream_position(&mut c).await));
        println!("{}", shown(&AsyncSeekExt::seek(&mut c, SeekFrom::Start(u64::MAX)).await));
        println!("{}", described(&AsyncSeekExt::seek(&mut c, SeekFrom::Current(1)).await));
        println!("{}", outcome(&AsyncSeekExt::rewind(&mut c).await));
        println!("{}", c.position());
        println!("{}", shown(&tokio::io::empty().seek(SeekFrom::End(44)).await));
    });
}

// Take and chain.
fn take_limits() {
    current_thread().block_on(async {
        let mut t = (&b"0123456789"[..]).take(4);
        let mut x = [0; 3];
        println!("{} {}", shown(&t.read(&mut x).await), t.limit());
        println!("{} {}", shown(&t.read(&mut x).await), t.limit());
        println!("{} {}", shown(&t.read(&mut x).await), t.limit());
        t.set_limit(2);
        let mut v = vec![];
        println!("{} {}", shown(&t.read_to_end(&mut v).await), lossy(&v));
        println!("{}", lossy(t.into_inner()));
        let mut t = tokio::io::repeat(7).take(u64::MAX);
        println!("{} {}", shown(&t.read(&mut x).await), t.limit() == u64::MAX - 3);
        let mut t = Mock::rd([Fail(ErrorKind::TimedOut)]).take(0);
        println!("not asked {} {}", shown(&t.read(&mut x).await), t.get_ref().reads);
    });
}

fn take_of_a_buffered_reader() {
    current_thread().block_on(async {
        let mut t = (&b"one\ntwo\n"[..]).take(6);
        println!("{}", shown(&t.fill_buf().await.map(|x| lossy(x))));
        t.consume(100);
        println!("{} {}", t.limit(), t.get_ref().len());
        let mut l = (&b"one\ntwo\n"[..]).take(6).lines();
        while let Some(x) = l.next_line().await.unwrap() {
            println!("{x:?}");
        }
    });
}

fn take_read_exact_beyond_the_limit() {
    current_thread().block_on(async {
        let mut src: &[u8] = b"abcdef";
        let mut x = [0; 5];
        println!("{}", described(&(&mut src).take(3).read_exact(&mut x).await));
        println!("{} {}", lossy(&x[..3]), src.len());
    });
}

fn take_of_an_evil_reader_panics() {
    // tokio-rs/tokio#4428: a reader that swaps the buffer
    struct Evil;
    impl AsyncRead for Evil {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let mut other = ReadBuf::new(Box::leak(Box::new([1u8; 8])));
            other.set_filled(4);
            // SAFETY: only the lifetime changes, and the bytes of `other` are leaked, so they live
            // forever.
            *buf = unsafe { std::mem::transmute::<ReadBuf<'_>, ReadBuf<'_>>(other) };
            Poll::Ready(Ok(()))
        }
    }
    quiet();
    let x = catch_unwind(|| {
        current_thread().block_on(async {
            let _ = Evil.take(4).read(&mut [0; 8]).await;
        })
    });
    println!("{}", x.is_err());
}

fn chain_goes_on_after_the_first() {
    current_thread().block_on(async {
        let mut c = (&b"ab"[..]).chain(&b"cd"[..]);
        let mut x = [0; 8];
        println!(
            "{} {} {}",
            shown(&c.read(&mut x).await),
            shown(&c.read(&mut x).await),
            shown(&c.read(&mut x).await)
        );
        let mut v = vec![];
        println!(
            "{} {}",
            shown(&(&b"ab"[..]).chain(&b""[..]).chain(&b"cd"[..]).read_to_end(&mut v).await),
            lossy(&v)
        );
    });
}

fn chain_zero_length_read_does_not_end_the_first() {
    current_thread().block_on(async {
        let mut c = (&b"ab"[..]).chain(&b"cd"[..]);
        println!("{}", shown(&c.read(&mut []).await));
        let mut v = vec![];
        println!("{} {}", shown(&c.read_to_end(&mut v).await), lossy(&v));
    });
}

fn chain_error_of_the_first_is_not_its_end() {
    current_thread().block_on(async {
        let mut c = Mock::rd([data(b"a"), Fail(ErrorKind::TimedOut), data(b"b")]).chain(&b"c"[..]);
        let mut v = vec![];
        println!("{} {}", shown(&c.read_to_end(&mut v).await), lossy(&v));
        println!("{} {}", shown(&c.read_to_end(&mut v).await), lossy(&v));
    });
}

fn chain_buffered() {
    current_thread().block_on(async {
        let c = (&b"one\ntw"[..]).chain(&b"o\nthree"[..]);
        let mut l = c.lines();
        while let Some(x) = l.next_line().await.unwrap() {
            println!("{x:?}");
        }
        let c = (&b"ab"[..]).chain(&b"cd"[..]);
        println!("{:?}", c.get_ref());
        println!("{:?}", c.into_inner());
    });
}

// `read_buf`, `fill_buf`.
fn read_buf_growth() {
    current_thread().block_on(async {
        let src = vec![1u8; 1000];
        let mut rd1 = &src[..];
        let mut v: Vec<u8> = Vec::new();
        println!("{} {}", shown(&rd1.read_buf(&mut v).await), v.capacity());
        let mut bm = BytesMut::new();
        println!("{} {}", shown(&rd1.read_buf(&mut bm).await), bm.len());
        let mut bm = BytesMut::with_capacity(100);
        println!("{} {}", shown(&rd1.read_buf(&mut bm).await), bm.capacity());
        println!("{} {}", shown(&rd1.read_buf(&mut bm).await), bm.len());
        let mut a = [0; 3];
        let mut sl = &mut a[..];
        println!("{} {}", shown(&rd1.read_buf(&mut sl).await), shown(&rd1.read_buf(&mut sl).await));
        println!(
            "{}",
            shown(&tokio::io::repeat(3).read_buf(&mut Vec::<u8>::with_capacity(10)).await)
        );
    });
}

fn fill_buf_and_consume() {
    current_thread().block_on(async {
        let mut m = tokio::io::BufReader::with_capacity(4, &b"0123456789"[..]);
        println!("{}", lossy(m.fill_buf().await.unwrap()));
        m.consume(1);
        println!("{}", lossy(m.fill_buf().await.unwrap()));
        m.consume(3);
        println!("{}", lossy(m.fill_buf().await.unwrap()));
        m.consume(1000);
        println!("{}", lossy(m.fill_buf().await.unwrap()));
        m.consume(2);
        println!("{:?}", lossy(m.fill_buf().await.unwrap()));
    });
}

fn fill_buf_polled_after_completion_panics() {
    current_thread().block_on(async {
        let mut m = &b"x"[..];
        let mut f = Box::pin(m.fill_buf());
        let _ = once(f.as_mut()).await;
        println!(
            "{}",
            panics(|| {
                let _ = poll_with(f.as_mut(), Waker::noop());
            })
        );
    });
}

// Empty, repeat, sink.
fn empty_repeat_sink() {
    current_thread().block_on(async {
        let mut x = [1; 4];
        println!("{} {x:?}", shown(&tokio::io::empty().read(&mut x).await));
        println!("{}", shown(&tokio::io::empty().write(b"abc").await));
        println!("{} {x:?}", shown(&tokio::io::repeat(9).read(&mut x).await),);
        println!("{} {x:?}", shown(&tokio::io::repeat(9).read_exact(&mut x).await));
        println!(
            "{} {}",
            shown(&tokio::io::sink().write(b"abc").await),
            shown(&tokio::io::sink().write(b"").await)
        );
        println!(
            "{} {}",
            tokio::io::sink().is_write_vectored(),
            shown(
                &tokio::io::sink().write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"c")]).await
            )
        );
        println!(
            "{} {}",
            tokio::io::empty().is_write_vectored(),
            shown(
                &tokio::io::empty()
                    .write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"c")])
                    .await
            )
        );
        println!("{:?} {:?} {:?}", tokio::io::empty(), tokio::io::sink(), tokio::io::repeat(1));
    });
}

fn empty_and_sink_yield_now_and_then() {
    current_thread().block_on(async {
        let n = timeout(millis(50), async {
            loop {
                let _ = tokio::io::empty().read(&mut [0; 1]).await;
            }
        })
        .await;
        println!("{}", n.is_err());
        let n = timeout(millis(50), async {
            loop {
                let _ = tokio::io::sink().write(&[0; 1]).await;
            }
        })
        .await;
        println!("{}", n.is_err());
        let n = timeout(millis(50), async {
            loop {
                let _ = tokio::io::repeat(1).read(&mut [0; 1]).await;
            }
        })
        .await;
        println!("{}", n.is_err());
    });
}

// `ReadBuf`.
fn readbuf_new_and_uninit() {
    let mut a = [5u8; 4];
    let b = ReadBuf::new(&mut a);
    println!("{b:?} {} {:?} {:?}", b.remaining(), b.filled(), b.initialized());
    let mut u = [MaybeUninit::<u8>::uninit(); 4];
    let mut b = ReadBuf::uninit(&mut u);
    println!("{b:?}");
    println!("{:?}", b.initialize_unfilled_to(2));
    println!("{b:?}");
    println!("{:?}", b.initialize_unfilled());
    println!("{b:?}");
}

fn readbuf_put_advance_clear() {
    let mut a = [0u8; 4];
    let mut b = ReadBuf::new(&mut a);
    b.put_slice(b"ab");
    b.advance(1);
    println!("{b:?} {:?}", b.filled());
    b.filled_mut()[0] = b'X';
    b.clear();
    println!("{b:?} {:?}", b.initialized());
    b.set_filled(4);
    println!("{b:?} {}", b.remaining());
}

fn readbuf_panics() {
    let _a = [0u8; 2];
    println!("{}", panics(|| ReadBuf::new(&mut [0u8; 2]).put_slice(b"abc")));
    println!("{}", panics(|| ReadBuf::new(&mut [0u8; 2]).advance(3)));
    println!("{}", panics(|| ReadBuf::new(&mut [0u8; 2]).set_filled(3)));
    println!(
        "{}",
        panics(|| {
            let mut u = [MaybeUninit::uninit(); 2];
            ReadBuf::uninit(&mut u).advance(1)
        })
    );
    println!(
        "{}",
        panics(|| {
            ReadBuf::new(&mut [0u8; 2]).initialize_unfilled_to(3);
        })
    );
    println!(
        "{}",
        panics(|| {
            let mut b = [0u8; 2];
            let mut b = ReadBuf::new(&mut b);
            b.set_filled(1);
            b.advance(usize::MAX)
        })
    );
}

fn readbuf_take_is_a_view() {
    let mut a = [0u8; 8];
    let mut b = ReadBuf::new(&mut a);
    b.put_slice(b"ab");
    {
        let mut t = b.take(3);
        println!("{t:?}");
        t.put_slice(b"xy");
        println!("{t:?}");
    }
    println!("{b:?}");
    println!("{:?}", b.take(100));
    b.advance(2);
    println!("{:?}", lossy(b.filled()));
}

fn readbuf_as_bufmut() {
    let mut u = [MaybeUninit::<u8>::uninit(); 6];
    let mut b = ReadBuf::uninit(&mut u);
    println!("{}", b.remaining_mut());
    b.put_u16(0x4142);
    b.put_bytes(b'z', 2);
    println!("{b:?} {}", lossy(b.filled()));
    println!("{}", b.has_remaining_mut());
}

// Box, &mut and pin forward; dyn works.
fn forwarding_impls() {
    current_thread().block_on(async {
        let mut b: Box<dyn AsyncRead + Unpin> = Box::new(&b"boxed"[..]);
        let mut t = String::new();
        println!("{} {t}", shown(&b.read_to_string(&mut t).await));
        let mut src = &b"pinned"[..];
        let mut pn = Pin::new(&mut src);
        let mut x = [0; 6];
        println!("{} {}", shown(&pn.read_exact(&mut x).await), lossy(&x));
        let mut w: Box<dyn AsyncWrite + Unpin> = Box::new(Vec::new());
        println!("{} {}", shown(&w.write(b"abc").await), w.is_write_vectored());
        let mut v = Vec::new();
        (&mut v).write_all(b"x").await.unwrap();
        println!("{}", v.len());
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("read_exact_at_eof", read_exact_at_eof),
    ("read_exact_retries_interrupted", read_exact_retries_interrupted),
    (
        "read_exact_error_in_the_middle_keeps_the_bytes",
        read_exact_error_in_the_middle_keeps_the_bytes,
    ),
    ("read_does_not_retry_interrupted", read_does_not_retry_interrupted),
    ("read_to_end_appends", read_to_end_appends),
    ("read_to_end_does_not_grow_an_exact_buffer", read_to_end_does_not_grow_an_exact_buffer),
    ("read_to_end_small_reads_probe_with_32_bytes", read_to_end_small_reads_probe_with_32_bytes),
    ("read_to_end_error_keeps_what_was_read", read_to_end_error_keeps_what_was_read),
    ("read_to_end_cancelled_keeps_what_was_read", read_to_end_cancelled_keeps_what_was_read),
    (
        "read_to_string_invalid_utf8_puts_the_original_back",
        read_to_string_invalid_utf8_puts_the_original_back,
    ),
    ("read_to_string_error_drops_what_was_read", read_to_string_error_drops_what_was_read),
    ("read_to_string_cancelled_empties_the_string", read_to_string_cancelled_empties_the_string),
    ("read_to_string_multibyte_split_over_reads", read_to_string_multibyte_split_over_reads),
    ("read_line_forms", read_line_forms),
    ("read_line_invalid_utf8_consumes_the_line", read_line_invalid_utf8_consumes_the_line),
    ("read_line_error_keeps_what_was_read", read_line_error_keeps_what_was_read),
    ("read_line_cancelled_empties_the_string", read_line_cancelled_empties_the_string),
    ("read_until_cancelled_keeps_the_bytes", read_until_cancelled_keeps_the_bytes),
    ("read_until_delimiters", read_until_delimiters),
    ("lines_forms", lines_forms),
    ("lines_invalid_utf8_goes_on_with_the_next", lines_invalid_utf8_goes_on_with_the_next),
    ("lines_partial_line_survives_an_error", lines_partial_line_survives_an_error),
    ("lines_cancelled_loses_nothing", lines_cancelled_loses_nothing),
    ("lines_get_mut_and_into_inner", lines_get_mut_and_into_inner),
    ("split_forms", split_forms),
    ("split_cancelled_and_error_lose_nothing", split_cancelled_and_error_lose_nothing),
    ("lines_stream_and_split_stream", lines_stream_and_split_stream),
    ("integers_are_read", integers_are_read),
    ("integers_at_eof", integers_at_eof),
    ("integers_cancelled_lose_the_bytes", integers_cancelled_lose_the_bytes),
    ("integers_are_written", integers_are_written),
    ("integers_written_to_a_full_sink", integers_written_to_a_full_sink),
    ("write_all_zero_is_an_error", write_all_zero_is_an_error),
    ("write_all_retries_interrupted", write_all_retries_interrupted),
    ("write_all_error_in_the_middle", write_all_error_in_the_middle),
    (
        "write_all_buf_keeps_its_place_on_error_and_cancel",
        write_all_buf_keeps_its_place_on_error_and_cancel,
    ),
    ("write_buf_uses_vectored_only_if_supported", write_buf_uses_vectored_only_if_supported),
    (
        "write_vectored_default_takes_the_first_nonempty",
        write_vectored_default_takes_the_first_nonempty,
    ),
    ("cursor_writes_over_and_past_the_end", cursor_writes_over_and_past_the_end),
    ("cursor_reads_past_the_end", cursor_reads_past_the_end),
    ("cursor_seeks", cursor_seeks),
    ("take_limits", take_limits),
    ("take_of_a_buffered_reader", take_of_a_buffered_reader),
    ("take_read_exact_beyond_the_limit", take_read_exact_beyond_the_limit),
    ("take_of_an_evil_reader_panics", take_of_an_evil_reader_panics),
    ("chain_goes_on_after_the_first", chain_goes_on_after_the_first),
    (
        "chain_zero_length_read_does_not_end_the_first",
        chain_zero_length_read_does_not_end_the_first,
    ),
    ("chain_error_of_the_first_is_not_its_end", chain_error_of_the_first_is_not_its_end),
    ("chain_buffered", chain_buffered),
    ("read_buf_growth", read_buf_growth),
    ("fill_buf_and_consume", fill_buf_and_consume),
    ("fill_buf_polled_after_completion_panics", fill_buf_polled_after_completion_panics),
    ("empty_repeat_sink", empty_repeat_sink),
    ("empty_and_sink_yield_now_and_then", empty_and_sink_yield_now_and_then),
    ("readbuf_new_and_uninit", readbuf_new_and_uninit),
    ("readbuf_put_advance_clear", readbuf_put_advance_clear),
    ("readbuf_panics", readbuf_panics),
    ("readbuf_take_is_a_view", readbuf_take_is_a_view),
    ("readbuf_as_bufmut", readbuf_as_bufmut),
    ("forwarding_impls", forwarding_impls),
];
