//! Tests `read`, `read_buf` and `read_exact`.

use blitz_io::io::{AsyncReadExt, ErrorKind, empty};
use bytes::{BufMut, BytesMut};

use crate::support::{
    manual_io::kind,
    manual_poll::{finish_after, give_up, now},
    scripted_io::{
        Source,
        Step::{Bytes, Fail, Wait},
    },
};

#[test]
fn read_is_one_read() {
    let mut reader = Source::new([Bytes(b"ab"), Wait, Bytes(b"cdef")]);
    let mut buf = [0; 3];
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 2);
    assert_eq!(finish_after(reader.read(&mut buf)).1, 1);
    assert_eq!(buf, *b"cde");
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 1);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 0);
    assert_eq!(reader.rooms, [3; 5]);
}

#[test]
fn read_passes_every_error_on() {
    let mut reader =
        Source::new([Fail(ErrorKind::Interrupted), Fail(ErrorKind::Other), Bytes(b"a")]);
    assert_eq!(kind(now(reader.read(&mut [0]))), ErrorKind::Interrupted);
    assert_eq!(kind(now(reader.read(&mut [0]))), ErrorKind::Other);
    assert_eq!(now(reader.read(&mut [0])).unwrap(), 1);
}

#[test]
fn a_read_into_an_empty_buffer_polls_the_source_and_takes_nothing() {
    let mut reader = Source::new([Bytes(b"ab")]);
    assert_eq!(now(reader.read(&mut [])).unwrap(), 0);
    assert_eq!(reader.rooms, [0]);
    assert_eq!(now(reader.read_u16()).unwrap(), 0x6162);
}

#[test]
fn read_buf_appends() {
    let mut reader = Source::new([Bytes(b"abc"), Wait, Bytes(b"d")]);
    let mut buf = BytesMut::from(&b"x"[..]);
    assert_eq!(now(reader.read_buf(&mut buf)).unwrap(), 3);
    assert_eq!(finish_after(reader.read_buf(&mut buf)).0.unwrap(), 1);
    assert_eq!(now(reader.read_buf(&mut buf)).unwrap(), 0);
    assert_eq!(buf, &b"xabcd"[..]);
}

#[test]
fn read_buf_without_room_does_not_poll_the_source() {
    let mut reader = Source::new([Fail(ErrorKind::Other)]);
    let mut buf = Vec::new().limit(0);
    assert_eq!(now(reader.read_buf(&mut buf)).unwrap(), 0);
    assert!(!reader.is_used_up());
}

#[test]
fn read_buf_stays_within_its_limit_and_takes_unsized_buffers() {
    let mut reader = Source::new([Bytes(b"abcdef")]);
    let mut limited = Vec::new().limit(4);
    let buf: &mut dyn BufMut = &mut limited;
    assert_eq!(now(reader.read_buf(buf)).unwrap(), 4);
    assert_eq!(limited.into_inner(), b"abcd");
    let mut array = [0; 8];
    assert_eq!(now(reader.read_buf(&mut &mut array[..])).unwrap(), 2);
    assert_eq!(&array[..2], b"ef");
}

#[test]
fn read_buf_that_fails_or_is_dropped_appends_nothing() {
    let mut reader = Source::new([Fail(ErrorKind::Interrupted), Wait, Bytes(b"a")]);
    let mut buf = Vec::new();
    assert_eq!(kind(now(reader.read_buf(&mut buf))), ErrorKind::Interrupted);
    give_up(reader.read_buf(&mut buf));
    assert!(buf.is_empty());
    assert_eq!(now(reader.read_buf(&mut buf)).unwrap(), 1);
}

#[test]
fn read_exact_reads_on_until_it_is_full() {
    let mut reader = Source::new([Bytes(b"a"), Wait, Fail(ErrorKind::Interrupted), Bytes(b"bcd")]);
    let mut buf = [0; 3];
    let (read, waits) = finish_after(reader.read_exact(&mut buf));
    assert_eq!((read.unwrap(), waits, buf), (3, 1, *b"abc"));
    assert_eq!(reader.rooms, [3, 2, 2, 2]);
    assert_eq!(now(reader.read_u8()).unwrap(), b'd');
}

#[test]
fn read_exact_of_nothing_does_not_poll_the_source() {
    let mut reader = Source::new([Fail(ErrorKind::Other)]);
    assert_eq!(now(reader.read_exact(&mut [])).unwrap(), 0);
    assert!(!reader.is_used_up());
}

#[test]
fn read_exact_returns_an_error_at_an_early_end() {
    let mut buf = [0; 3];
    let error = now(Source::new([Bytes(b"ab")]).read_exact(&mut buf)).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::UnexpectedEof, "early eof".into()));
    assert_eq!(buf, *b"ab\0");
    let mut reader = Source::new([Bytes(b"a"), Fail(ErrorKind::ConnectionReset)]);
    assert_eq!(kind(now(reader.read_exact(&mut buf))), ErrorKind::ConnectionReset);
}

#[test]
fn read_gives_what_is_there_and_zero_at_the_end() {
    let mut source: &[u8] = b"hello";
    let mut buffer = [0; 3];
    assert_eq!(now(source.read(&mut buffer)).unwrap(), 3);
    assert_eq!(&buffer, b"hel");
    assert_eq!(now(source.read(&mut buffer)).unwrap(), 2);
    assert_eq!(now(source.read(&mut buffer)).unwrap(), 0);
    assert_eq!(now((&b"x"[..]).read(&mut [])).unwrap(), 0, "no room is no end");
}

#[test]
fn read_buf_appends_to_what_has_room() {
    let mut source: &[u8] = b"hello world";
    let mut buffer = Vec::with_capacity(4);
    buffer.push(b'>');
    assert!(now(source.read_buf(&mut buffer)).unwrap() > 0);
    while now(source.read_buf(&mut buffer)).unwrap() > 0 {}
    assert_eq!(buffer, b">hello world");
    let mut full = &mut [0_u8; 0][..];
    assert_eq!(now((&b"x"[..]).read_buf(&mut full)).unwrap(), 0);
}

#[test]
fn read_exact_fills_or_fails() {
    let mut buffer = [0; 5];
    assert_eq!(now(Source::byte_by_byte(b"hello").read_exact(&mut buffer)).unwrap(), 5);
    assert_eq!(&buffer, b"hello");
    let short = now(Source::byte_by_byte(b"hell").read_exact(&mut buffer)).unwrap_err();
    assert_eq!(short.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(now(empty().read_exact(&mut [])).unwrap(), 0);
    let mut broken = Source::new([Bytes(b"he"), Fail(ErrorKind::ConnectionReset), Bytes(b"llo")]);
    let error = now(broken.read_exact(&mut buffer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
