//! `BufReader`, `BufWriter`, `BufStream`: fewer calls, and the same bytes.

use std::io::{Cursor, SeekFrom};

use blitz_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufStream, BufWriter,
    duplex,
};

use crate::{
    io::read_slow::Parts,
    io::write_slow::Slow,
    polled::{by_hand, now},
};

#[test]
fn a_reader_reads_ahead_and_shows_what_it_has() {
    let mut reader = BufReader::with_capacity(4, &b"abcdefgh"[..]);
    assert_eq!(reader.buffer(), b"");
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    assert_eq!(reader.buffer(), b"bcd");
    assert_eq!(*reader.get_ref(), b"efgh");
    let mut rest = Vec::new();
    now(reader.read_to_end(&mut rest)).unwrap();
    assert_eq!(rest, b"bcdefgh");
}

#[test]
fn a_large_read_goes_past_the_buffer() {
    let mut reader = BufReader::with_capacity(4, &b"abcdefgh"[..]);
    let mut all = [0; 8];
    assert_eq!(now(reader.read(&mut all)).unwrap(), 8);
    assert_eq!(reader.buffer(), b"");
}

#[test]
fn an_inner_reader_is_given_back_without_what_was_read_ahead() {
    let mut reader = BufReader::with_capacity(4, &b"abcdefgh"[..]);
    now(reader.read_u8()).unwrap();
    assert_eq!(reader.into_inner(), b"efgh");
}

#[test]
fn seeking_a_reader_counts_from_where_the_user_is() {
    let mut reader = BufReader::with_capacity(4, Cursor::new(b"0123456789".to_vec()));
    assert_eq!(now(reader.read_u8()).unwrap(), b'0');
    assert_eq!(now(reader.seek(SeekFrom::Current(1))).unwrap(), 2);
    assert_eq!(now(reader.read_u8()).unwrap(), b'2');
    assert_eq!(now(reader.stream_position()).unwrap(), 3);
    assert_eq!(now(reader.read_u8()).unwrap(), b'3');
    assert_eq!(now(reader.seek(SeekFrom::End(-1))).unwrap(), 9);
    assert_eq!(now(reader.read_u8()).unwrap(), b'9');
}

#[test]
fn a_writer_keeps_bytes_until_it_is_full_or_flushed() {
    let mut writer = BufWriter::with_capacity(4, Slow::new(100, 100));
    now(writer.write_all(b"abc")).unwrap();
    assert_eq!((writer.buffer(), &writer.get_ref().taken[..]), (&b"abc"[..], &b""[..]));
    now(writer.write_all(b"de")).unwrap();
    assert_eq!((writer.buffer(), &writer.get_ref().taken[..]), (&b"de"[..], &b"abc"[..]));
    now(writer.flush()).unwrap();
    assert_eq!((writer.buffer(), &writer.get_ref().taken[..]), (&b""[..], &b"abcde"[..]));
    assert_eq!(writer.get_ref().flushed, 1);
    now(writer.write_all(b"a long one")).unwrap();
    assert_eq!((writer.buffer(), writer.get_ref().taken.len()), (&b""[..], 15));
}

#[test]
fn a_writer_flushes_before_it_shuts_down() {
    let mut writer = BufWriter::new(Slow::new(1, 100));
    now(writer.write_all(b"abc")).unwrap();
    now(writer.shutdown()).unwrap();
    assert_eq!((writer.get_ref().taken.as_slice(), writer.get_ref().shut), (&b"abc"[..], 1));
}

#[test]
fn a_writer_that_is_dropped_writes_nothing() {
    let mut slow = Slow::new(100, 100);
    now(BufWriter::new(&mut slow).write_all(b"abc")).unwrap();
    assert_eq!(slow.taken, b"");
}

#[test]
fn a_flush_that_is_dropped_loses_no_byte_and_repeats_none() {
    let (near, mut far) = duplex(2);
    let mut writer = BufWriter::new(near);
    now(writer.write_all(b"abcdef")).unwrap();
    let mut got = Vec::new();
    // Two bytes at a time get through; each flush is dropped while it is pending.
    for _ in 0..3 {
        assert!(got.len() == 6 || by_hand(writer.flush()).poll().is_pending() || got.len() == 4);
        let mut part = [0; 2];
        now(far.read_exact(&mut part)).unwrap();
        got.extend(part);
    }
    now(writer.flush()).unwrap();
    assert_eq!(got, b"abcdef");
}

#[test]
fn a_writer_of_vectors_joins_what_is_small() {
    let mut writer = BufWriter::with_capacity(16, Slow::new(100, 100));
    let parts = [b"ab".as_slice(), b"", b"cde"].map(std::io::IoSlice::new);
    assert_eq!(now(writer.write_vectored(&parts)).unwrap(), 5);
    assert_eq!(writer.buffer(), b"abcde");
}

#[test]
fn seeking_a_writer_writes_first() {
    let mut writer = BufWriter::new(Cursor::new(Vec::new()));
    now(writer.write_all(b"hello")).unwrap();
    assert_eq!(now(writer.seek(SeekFrom::Start(1))).unwrap(), 1);
    now(writer.write_all(b"E")).unwrap();
    now(writer.flush()).unwrap();
    assert_eq!(writer.into_inner().into_inner(), b"hEllo");
}

#[test]
fn a_stream_buffers_both_ways() {
    let (near, mut far) = duplex(64);
    let mut stream = BufStream::with_capacity(8, 8, near);
    now(far.write_all(b"one\ntwo\n")).unwrap();
    let mut line = String::new();
    now(stream.read_line(&mut line)).unwrap();
    assert_eq!(line, "one\n");
    now(stream.write_all(b"abc")).unwrap();
    assert!(by_hand(far.read_u8()).poll().is_pending(), "it is not flushed");
    now(stream.flush()).unwrap();
    let mut three = [0; 3];
    now(far.read_exact(&mut three)).unwrap();
    assert_eq!(&three, b"abc");
    now(stream.read_line(&mut line)).unwrap();
    assert_eq!(line, "one\ntwo\n");
}

#[test]
fn errors_of_the_source_come_through_and_reading_goes_on() {
    let parts = Parts::new(&[Ok(b"a"), Err(std::io::ErrorKind::TimedOut), Ok(b"b\n")]);
    let mut reader = BufReader::new(parts);
    let mut line = String::new();
    let error = now(reader.read_line(&mut line)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    now(reader.read_line(&mut line)).unwrap();
    assert!(line.ends_with("b\n"), "{line:?}");
}
