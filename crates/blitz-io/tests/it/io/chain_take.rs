//! `chain` and `take`: sources made of sources.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, ErrorKind, ReadBuf};

use crate::io::script::{
    Give::{Bytes, Fail, Wait},
    finish_after, kind, now, source,
};

#[test]
fn a_chain_is_one_source_after_the_other() {
    let first = source([Wait, Bytes(b"ab"), Fail(ErrorKind::Other)]);
    let mut both = first.chain(source([Wait, Bytes(b"cd")]));
    let mut buf = Vec::new();
    let (read, waits) = finish_after(both.read_to_end(&mut buf));
    assert_eq!((kind(read), waits, &buf[..]), (ErrorKind::Other, 1, &b"ab"[..]));
    let (read, waits) = finish_after(both.read_to_end(&mut buf));
    assert_eq!((read.unwrap(), waits, &buf[..]), (2, 1, &b"abcd"[..]));
}

#[test]
fn a_read_of_a_chain_does_not_pass_the_seam() {
    let mut both = b"ab".as_slice().chain(b"cd".as_slice());
    let mut buf = [0; 4];
    assert_eq!(now(both.read(&mut buf)).unwrap(), 2);
    assert_eq!(now(both.read(&mut buf)).unwrap(), 2);
    assert_eq!(now(both.read(&mut buf)).unwrap(), 0);
}

#[test]
fn an_empty_buffer_is_not_the_end_of_the_first_source() {
    let mut both = b"ab".as_slice().chain(b"cd".as_slice());
    assert_eq!(now(both.read(&mut [])).unwrap(), 0);
    let mut text = String::new();
    now(both.read_to_string(&mut text)).unwrap();
    assert_eq!(text, "abcd");
}

#[test]
fn consume_on_a_chain_reaches_the_right_reader() {
    let mut both = b"ab".as_slice().chain(b"c\nd".as_slice());
    assert_eq!(now(both.fill_buf()).unwrap(), b"ab");
    both.consume(1);
    let mut line = Vec::new();
    now(both.read_until(b'\n', &mut line)).unwrap();
    assert_eq!(line, b"bc\n");
    assert_eq!(both.get_ref(), (&&b""[..], &&b"d"[..]));
    *both.get_mut().1 = b"e";
    assert_eq!(format!("{both:?}"), "Chain { t: [], u: [101] }");
    assert_eq!(both.into_inner(), (&b""[..], &b"e"[..]));
}

#[test]
fn a_source_that_has_ended_is_not_polled_again() {
    let mut both = source([]).chain(source([Bytes(b"a"), Bytes(b"b")]));
    let mut buf = Vec::new();
    now(both.read_to_end(&mut buf)).unwrap();
    assert_eq!((&buf[..], both.get_ref().0.rooms.len()), (&b"ab"[..], 1));
}

#[test]
fn take_ends_at_its_limit_without_polling_the_source() {
    let mut limited = source([Bytes(b"abc"), Wait, Bytes(b"defg"), Fail(ErrorKind::Other)]).take(5);
    let mut buf = Vec::new();
    assert_eq!(finish_after(limited.read_to_end(&mut buf)).0.unwrap(), 5);
    assert_eq!((&buf[..], limited.limit()), (&b"abcde"[..], 0));
    assert_eq!(now(limited.read(&mut [0; 4])).unwrap(), 0);
    assert_eq!(now(limited.fill_buf()).unwrap(), b"");
    limited.set_limit(1);
    assert_eq!(now(limited.read_u8()).unwrap(), b'f');
    assert_eq!(now(limited.get_mut().read_u8()).unwrap(), b'g');
    assert_eq!(kind(now(limited.into_inner().read_u8())), ErrorKind::Other);
}

#[test]
fn a_limit_beyond_memory_is_no_limit() {
    let mut limited = b"abc".as_slice().take(u64::MAX);
    let mut buf = Vec::new();
    assert_eq!(now(limited.fill_buf()).unwrap(), b"abc");
    limited.consume(1);
    assert_eq!(now(limited.read_to_end(&mut buf)).unwrap(), 2);
    assert_eq!((&buf[..], limited.limit()), (&b"bc"[..], u64::MAX - 3));
}

#[test]
fn to_consume_more_than_the_limit_does_not_reset_it() {
    let mut limited = b"abcdef".as_slice().take(4);
    assert_eq!(now(limited.fill_buf()).unwrap(), b"abcd");
    limited.consume(6);
    assert_eq!((limited.limit(), *limited.get_ref()), (0, &b"ef"[..]));
}

#[test]
fn take_appends_behind_what_is_filled_and_knows_what_is_initialised() {
    let mut bytes = [7; 6];
    let mut buf = ReadBuf::new(&mut bytes);
    buf.put_slice(b"x");
    let mut limited = b"abcdef".as_slice().take(3);
    let polled = std::future::poll_fn(|cx| Pin::new(&mut limited).poll_read(cx, &mut buf));
    now(polled).unwrap();
    assert_eq!((buf.filled(), buf.initialized()), (&b"xabc"[..], &b"xabc\x07\x07"[..]));
}

/// A reader that replaces the caller's buffer by one of its own.
struct Swapping;

impl AsyncRead for Swapping {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        *buf = ReadBuf::new(Box::leak(vec![0; buf.capacity()].into_boxed_slice()));
        buf.advance(buf.capacity());
        Poll::Ready(Ok(()))
    }
}

#[test]
#[should_panic]
fn take_finds_out_a_reader_that_swaps_its_buffer() {
    let _ = now(Swapping.take(8).read(&mut [0; 16]));
}

#[test]
#[should_panic]
fn read_buf_finds_out_a_reader_that_swaps_its_buffer() {
    let _ = now(Swapping.read_buf(&mut Vec::with_capacity(64)));
}

#[test]
#[should_panic]
fn read_to_end_finds_out_a_reader_that_swaps_its_buffer() {
    let _ = now(Swapping.read_to_end(&mut Vec::new()));
}
