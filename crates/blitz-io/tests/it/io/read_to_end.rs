//! Tests `read_to_end` and `read_to_string`.

use std::{
    io::{self},
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{AsyncRead, AsyncReadExt, ErrorKind, ReadBuf};

use crate::support::{
    manual_io::kind,
    manual_poll::{finish_after, give_up, now},
    scripted_io::{
        Source,
        Step::{Bytes, Fail, Wait},
    },
};

#[test]
fn everything_is_appended() {
    let mut reader =
        Source::new([Bytes(b"ab"), Wait, Fail(ErrorKind::Interrupted), Bytes(b"cd"), Wait]);
    let mut buf = b"x".to_vec();
    let (read, waits) = finish_after(reader.read_to_end(&mut buf));
    assert_eq!((read.unwrap(), waits), (4, 2));
    assert_eq!(buf, b"xabcd");
    assert_eq!(now(reader.read_to_end(&mut buf)).unwrap(), 0);
}

#[test]
fn much_is_read_in_few_reads() {
    const MIB: usize = 1 << 20;
    let much: &'static [u8] = Vec::leak((0..MIB).map(|n| n as u8).collect());
    let mut reader = Source::new([Bytes(much)]);
    let mut buf = Vec::new();
    assert_eq!(now(reader.read_to_end(&mut buf)).unwrap(), MIB);
    assert!(buf == much);
    assert!(reader.rooms.len() < 32, "{} reads: {:?}", reader.rooms.len(), reader.rooms);
}

#[test]
fn a_vector_made_to_measure_does_not_grow() {
    const TEXT: &[u8] = b"as long as the probe, and a little more";
    for spare in [0, 1, 31] {
        let mut buf = Vec::with_capacity(TEXT.len() + spare);
        let capacity = buf.capacity();
        assert_eq!(now(Source::new([Bytes(TEXT)]).read_to_end(&mut buf)).unwrap(), TEXT.len());
        assert_eq!((&buf[..], buf.capacity()), (TEXT, capacity));
    }
}

#[test]
fn a_vector_that_is_too_small_grows() {
    const TEXT: &[u8] = b"as long as the probe, and a little more than that";
    let mut buf = Vec::with_capacity(TEXT.len() - 1);
    let mut reader = Source::new([Bytes(TEXT), Wait]);
    assert_eq!(finish_after(reader.read_to_end(&mut buf)).0.unwrap(), TEXT.len());
    assert_eq!(buf, TEXT);
}

#[test]
fn bytes_read_before_an_error_or_a_drop_are_kept() {
    let mut reader =
        Source::new([Bytes(b"ab"), Fail(ErrorKind::ConnectionReset), Bytes(b"c"), Wait]);
    let mut buf = Vec::new();
    assert_eq!(kind(now(reader.read_to_end(&mut buf))), ErrorKind::ConnectionReset);
    assert_eq!(buf, b"ab");
    give_up(reader.read_to_end(&mut buf));
    assert_eq!(buf, b"abc");
    assert_eq!(now(reader.read_to_end(&mut buf)).unwrap(), 0);
}

/// A reader that requires zeroed memory, and fills one byte of it in each read.
struct Zeroing {
    left: usize,
    zeroed: usize,
}

impl AsyncRead for Zeroing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left > 0 {
            self.left -= 1;
            self.zeroed += buf.capacity() - buf.initialized().len();
            buf.initialize_unfilled();
            buf.advance(1);
        }
        Poll::Ready(Ok(()))
    }
}

#[test]
fn memory_is_not_zeroed_for_each_read() {
    let mut buf = Vec::with_capacity(10_000);
    let mut reader = Zeroing { left: 9_000, zeroed: 0 };
    assert_eq!(now(reader.read_to_end(&mut buf)).unwrap(), 9_000);
    assert_eq!(buf, [0; 9_000]);
    assert_eq!(reader.zeroed, buf.capacity());
}

#[test]
fn text_is_appended() {
    let mut reader = Source::new([Bytes("ü".as_bytes()), Wait, Bytes(b"\xc3"), Bytes(b"\xa4")]);
    let mut text = "x".to_owned();
    let (read, waits) = finish_after(reader.read_to_string(&mut text));
    assert_eq!((read.unwrap(), waits, &text[..]), (4, 1, "xüä"));
}

#[test]
fn invalid_utf8_leaves_the_string_unchanged() {
    for bad in [&b"ab\xff"[..], b"\xc3", b"\xa4bc"] {
        let mut text = "before".to_owned();
        let error = now(Source::new([Bytes(bad)]).read_to_string(&mut text)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.get_ref().is_some_and(|inner| inner.is::<std::str::Utf8Error>()), "{error}");
        assert_eq!(text, "before");
    }
}

#[test]
fn an_error_leaves_the_string_as_it_was() {
    for read in [&b"ab"[..], b"ab\xff"] {
        let mut text = "before".to_owned();
        let mut reader = Source::new([Bytes(read), Fail(ErrorKind::ConnectionReset)]);
        assert_eq!(kind(now(reader.read_to_string(&mut text))), ErrorKind::ConnectionReset);
        assert_eq!(text, "before");
    }
}

#[test]
fn read_to_end_appends_all() {
    for size in [0, 1, 31, 32, 33, 63, 64, 1000, 8192, 100_000] {
        let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
        for room in [0, 1, size, size + 1, 2 * size] {
            let mut all = Vec::with_capacity(room);
            all.push(9);
            assert_eq!(now((&bytes[..]).read_to_end(&mut all)).unwrap(), size);
            assert_eq!((all[0], &all[1..]), (9, &bytes[..]));
        }
    }
    let mut all = Vec::new();
    let mut broken = Source::new([Bytes(b"he"), Fail(ErrorKind::Other)]);
    assert!(now(broken.read_to_end(&mut all)).is_err());
    assert_eq!(all, b"he", "what came before an error is kept");
}

#[test]
fn read_to_string_wants_utf_8_and_leaves_the_string_if_it_is_not() {
    let mut text = String::from("a");
    assert_eq!(now(Source::byte_by_byte("öß€".as_bytes()).read_to_string(&mut text)).unwrap(), 7);
    assert_eq!(text, "aöß€");
    let error = now(Source::byte_by_byte(b"b\xff").read_to_string(&mut text)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert_eq!(text, "aöß€");
}
