//! `AsyncReadExt` and `AsyncBufReadExt`, on sources that provide little at a time.

use std::{
    io::{self, Cursor, ErrorKind},
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, BufReader, ReadBuf, SeekFrom, duplex,
    empty, repeat,
};

use crate::polled::{by_hand, now};

/// A reader that provides its parts one at a time: bytes, or an error.
pub(crate) struct Parts(Vec<Result<&'static [u8], ErrorKind>>);

impl Parts {
    pub(crate) fn new(parts: &[Result<&'static [u8], ErrorKind>]) -> Self {
        Self(parts.iter().rev().copied().collect())
    }

    /// Creates a reader that provides each byte alone.
    pub(crate) fn single(bytes: &'static [u8]) -> Self {
        Self(bytes.chunks(1).rev().map(Ok).collect())
    }
}

impl AsyncRead for Parts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0.pop() {
            None => Poll::Ready(Ok(())),
            Some(Err(kind)) => Poll::Ready(Err(kind.into())),
            Some(Ok(part)) => {
                let (now, later) = part.split_at(part.len().min(buf.remaining()));
                buf.put_slice(now);
                if !later.is_empty() {
                    self.0.push(Ok(later));
                }
                Poll::Ready(Ok(()))
            }
        }
    }
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
    assert_eq!(now(Parts::single(b"hello").read_exact(&mut buffer)).unwrap(), 5);
    assert_eq!(&buffer, b"hello");
    let short = now(Parts::single(b"hell").read_exact(&mut buffer)).unwrap_err();
    assert_eq!(short.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(now(empty().read_exact(&mut [])).unwrap(), 0);
    let mut broken = Parts::new(&[Ok(b"he"), Err(ErrorKind::ConnectionReset), Ok(b"llo")]);
    let error = now(broken.read_exact(&mut buffer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
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
    let mut broken = Parts::new(&[Ok(b"he"), Err(ErrorKind::Other)]);
    assert!(now(broken.read_to_end(&mut all)).is_err());
    assert_eq!(all, b"he", "what came before an error is kept");
}

#[test]
fn read_to_string_wants_utf_8_and_leaves_the_string_if_it_is_not() {
    let mut text = String::from("a");
    assert_eq!(now(Parts::single("öß€".as_bytes()).read_to_string(&mut text)).unwrap(), 7);
    assert_eq!(text, "aöß€");
    let error = now(Parts::single(b"b\xff").read_to_string(&mut text)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert_eq!(text, "aöß€");
}

/// Reads each integer in both byte orders, complete and truncated.
macro_rules! integers {
    ($($read:ident $read_le:ident $kind:ty),* $(,)?) => {$(
        let size = size_of::<$kind>();
        let bytes: Vec<u8> = (0x81..).take(size).collect();
        let found = now((&bytes[..]).$read()).unwrap();
        assert_eq!(found.to_be_bytes(), bytes[..], stringify!($read));
        let found = now((&bytes[..]).$read_le()).unwrap();
        assert_eq!(found.to_le_bytes(), bytes[..], stringify!($read_le));
        for short in 0..size {
            let error = now((&bytes[..short]).$read()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, stringify!($read));
            let error = now((&bytes[..short]).$read_le()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, stringify!($read_le));
        }
    )*};
}

#[test]
fn numbers_are_read_in_both_orders_and_never_by_half() {
    integers!(
        read_u16 read_u16_le u16, read_u32 read_u32_le u32, read_u64 read_u64_le u64,
        read_u128 read_u128_le u128, read_i16 read_i16_le i16, read_i32 read_i32_le i32,
        read_i64 read_i64_le i64, read_i128 read_i128_le i128, read_f32 read_f32_le f32,
        read_f64 read_f64_le f64,
    );
    assert_eq!(now((&[200_u8][..]).read_u8()).unwrap(), 200);
    assert_eq!(now((&[200_u8][..]).read_i8()).unwrap(), -56);
    assert_eq!(now(empty().read_u8()).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(now(Parts::single(b"\0\0\x01\x02").read_u32()).unwrap(), 0x102);
}

#[test]
fn chain_reads_one_source_after_the_other() {
    let mut chained = Parts::single(b"ab").chain(&b"cd"[..]);
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

#[test]
fn read_until_keeps_the_byte_and_ends_at_the_end() {
    let mut source = BufReader::with_capacity(2, &b"ab-cd--e"[..]);
    let mut found = Vec::new();
    for (size, all) in [(3, "ab-"), (3, "ab-cd-"), (1, "ab-cd--"), (1, "ab-cd--e"), (0, "ab-cd--e")]
    {
        assert_eq!(now(source.read_until(b'-', &mut found)).unwrap(), size);
        assert_eq!(found, all.as_bytes());
    }
}

#[test]
fn read_line_appends_and_restores_the_string_when_it_is_not_utf_8() {
    let mut source = BufReader::with_capacity(3, Parts::single(b"one\r\ntwo\n\xff\nthree"));
    let mut line = String::new();
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 5);
    assert_eq!(line, "one\r\n");
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 4);
    assert_eq!(line, "one\r\ntwo\n");
    let error = now(source.read_line(&mut line)).unwrap_err();
    assert_eq!((error.kind(), line.as_str()), (ErrorKind::InvalidData, "one\r\ntwo\n"));
    line.clear();
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 5);
    assert_eq!(line, "three");
    assert_eq!(now(source.read_line(&mut line)).unwrap(), 0);
}

#[test]
fn lines_are_without_their_ends() {
    let mut lines = BufReader::new(&b"one\r\ntwo\n\nthree"[..]).lines();
    let mut found = Vec::new();
    while let Some(line) = now(lines.next_line()).unwrap() {
        found.push(line);
    }
    assert_eq!(found, ["one", "two", "", "three"]);
    assert_eq!(now(lines.next_line()).unwrap(), None);
}

#[test]
fn next_line_that_is_dropped_loses_nothing() {
    let (mut writer, reader) = duplex(64);
    let mut lines = BufReader::new(reader).lines();
    use blitz_io::io::AsyncWriteExt;
    for part in ["he", "ll", "o"] {
        now(writer.write_all(part.as_bytes())).unwrap();
        assert!(by_hand(lines.next_line()).poll().is_pending());
    }
    now(writer.write_all(b"\n")).unwrap();
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("hello"));
}

#[test]
fn split_cuts_at_every_byte_of_its_kind() {
    let mut split = AsyncBufReadExt::split(&b"a,b,,c"[..], b',');
    let mut found = Vec::new();
    while let Some(part) = now(split.next_segment()).unwrap() {
        found.push(part);
    }
    assert_eq!(found, [&b"a"[..], b"b", b"", b"c"]);
    // A separator at the end starts no new segment.
    let mut split = AsyncBufReadExt::split(&b"a,"[..], b',');
    assert_eq!(now(split.next_segment()).unwrap().unwrap(), b"a");
    assert_eq!(now(split.next_segment()).unwrap(), None);
}

#[test]
fn fill_buf_shows_and_consume_takes() {
    let mut source = BufReader::with_capacity(4, &b"abcdef"[..]);
    assert_eq!(now(source.fill_buf()).unwrap(), b"abcd");
    source.consume(1);
    assert_eq!(now(source.fill_buf()).unwrap(), b"bcd");
    source.consume(3);
    assert_eq!(now(source.fill_buf()).unwrap(), b"ef");
    source.consume(2);
    assert_eq!(now(source.fill_buf()).unwrap(), b"");
}

#[test]
fn a_cursor_seeks_as_that_of_std() {
    let mut cursor = Cursor::new(b"0123456789".to_vec());
    assert_eq!(now(cursor.seek(SeekFrom::End(-3))).unwrap(), 7);
    assert_eq!(now(cursor.read_u8()).unwrap(), b'7');
    assert_eq!(now(cursor.seek(SeekFrom::Current(-2))).unwrap(), 6);
    assert_eq!(now(cursor.stream_position()).unwrap(), 6);
    now(cursor.rewind()).unwrap();
    assert_eq!(now(cursor.read_u8()).unwrap(), b'0');
    assert!(now(cursor.seek(SeekFrom::Current(-100))).is_err());
    assert_eq!(now(cursor.seek(SeekFrom::Start(1000))).unwrap(), 1000);
    assert_eq!(now(cursor.read(&mut [0; 1])).unwrap(), 0);
}
