//! Tests `chain` and `take`, which make a reader out of readers.

use std::{
    io::{self},
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, ErrorKind, ReadBuf, repeat};

use crate::support::{
    manual_io::kind,
    manual_poll::{finish_after, now},
    scripted_io::{
        Source,
        Step::{Bytes, Fail, Wait},
    },
};

#[test]
fn a_chain_is_one_source_after_the_other() {
    let first = Source::new([Wait, Bytes(b"ab"), Fail(ErrorKind::Other)]);
    let mut both = first.chain(Source::new([Wait, Bytes(b"cd")]));
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
    let mut both = Source::new([]).chain(Source::new([Bytes(b"a"), Bytes(b"b")]));
    let mut buf = Vec::new();
    now(both.read_to_end(&mut buf)).unwrap();
    assert_eq!((&buf[..], both.get_ref().0.rooms.len()), (&b"ab"[..], 1));
}

#[test]
fn take_ends_at_its_limit_without_polling_the_source() {
    let mut limited =
        Source::new([Bytes(b"abc"), Wait, Bytes(b"defg"), Fail(ErrorKind::Other)]).take(5);
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

#[test]
fn chain_reads_one_source_after_the_other() {
    let mut chained = Source::byte_by_byte(b"ab").chain(&b"cd"[..]);
    let mut all = String::new();
    now(chained.read_to_string(&mut all)).unwrap();
    assert_eq!(all, "abcd");
    let (_, second) = chained.into_inner();
    assert_eq!(second, b"");
    let mut lines = (&b"a\nb"[..]).chain(&b"c\nd"[..]).lines();
    let mut found = Vec::new();
    while let Some(line) = now(lines.next_line()).unwrap() {
        found.push(line);
    }
    assert_eq!(found, ["a", "bc", "d"]);
}

#[test]
fn take_stops_at_its_limit_and_leaves_the_rest() {
    let mut source: &[u8] = b"hello world";
    let mut part = (&mut source).take(5);
    let mut all = Vec::new();
    assert_eq!(now(part.read_to_end(&mut all)).unwrap(), 5);
    assert_eq!((part.limit(), &all[..]), (0, &b"hello"[..]));
    part.set_limit(2);
    assert_eq!(now(part.read_to_end(&mut all)).unwrap(), 2);
    assert_eq!(source, b"orld");
    let mut nothing = repeat(1).take(0);
    assert_eq!(now(nothing.read(&mut [0; 4])).unwrap(), 0);
    let mut all = (&b"xyz"[..]).take(u64::MAX);
    let mut found = Vec::new();
    assert_eq!(now(all.read_to_end(&mut found)).unwrap(), 3);
    assert_eq!(all.limit(), u64::MAX - 3);
}
