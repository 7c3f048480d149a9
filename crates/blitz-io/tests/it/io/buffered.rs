//! Tests `BufReader`, `BufWriter` and `BufStream`: fewer calls, and the same bytes.

use std::{
    io::{Cursor, ErrorKind, IoSlice, SeekFrom},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use blitz_io::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt,
    BufReader, BufStream, BufWriter, ReadBuf, duplex,
};

use crate::support::{
    caught_panic::panic_of,
    manual_io::{NOOP, error, read, ready, shut, write},
    manual_poll::{by_hand, now},
    scripted_io::{
        Scripted, Sink, Source,
        Step::{Bytes, Fail, Most, Wait},
    },
};

fn flush(writer: &mut (impl AsyncWrite + Unpin)) -> Poll<std::io::Result<()>> {
    Pin::new(writer).poll_flush(&mut Context::from_waker(NOOP))
}

fn slices(writer: &mut (impl AsyncWrite + Unpin), all: &[&[u8]]) -> Poll<std::io::Result<usize>> {
    let all: Vec<_> = all.iter().map(|slice| IoSlice::new(slice)).collect();
    Pin::new(writer).poll_write_vectored(&mut Context::from_waker(NOOP), &all)
}

#[test]
fn small_reads_are_served_from_one_large_one() {
    let source = Scripted::reads([Bytes(b"abcde"), Bytes(b"f")]);
    let mut reader = BufReader::with_capacity(4, source);
    assert_eq!(ready(read::<1>(&mut reader, NOOP)), b"a");
    assert_eq!(ready(read::<2>(&mut reader, NOOP)), b"bc");
    assert_eq!(reader.buffer(), b"d");
    assert_eq!(ready(read::<9>(&mut reader, NOOP)), b"d", "no more than is there");
    assert_eq!(reader.get_ref().source.rooms, [4]);
    assert_eq!(ready(read::<3>(&mut reader, NOOP)), b"e");
}

#[test]
fn a_read_as_large_as_the_buffer_passes_it_by() {
    let source = Scripted::reads([Bytes(b"abcdefgh"), Bytes(b"ij")]);
    let mut reader = BufReader::with_capacity(4, source);
    assert_eq!(ready(read::<6>(&mut reader, NOOP)), b"abcdef");
    assert_eq!(ready(read::<1>(&mut reader, NOOP)), b"g");
    assert_eq!(ready(read::<6>(&mut reader, NOOP)), b"h", "what is held comes first");
    assert_eq!(reader.get_ref().source.rooms, [6, 4]);
}

#[test]
fn a_reader_that_waits_or_fails_is_polled_again() {
    let source = Scripted::reads([Wait, Fail(ErrorKind::TimedOut), Bytes(b"a")]);
    let mut reader = BufReader::new(source);
    assert!(read::<1>(&mut reader, NOOP).is_pending());
    assert_eq!(error(read::<1>(&mut reader, NOOP)), ErrorKind::TimedOut);
    assert_eq!(ready(read::<1>(&mut reader, NOOP)), b"a");
    assert_eq!(ready(read::<1>(&mut reader, NOOP)), b"");
}

#[test]
fn more_than_is_held_cannot_be_consumed() {
    let mut reader = BufReader::with_capacity(2, &b"abc"[..]);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"ab");
    reader.consume(7);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"c");
    reader.consume(1);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"");
}

#[test]
fn a_buffered_reader_without_a_buffer_is_refused() {
    let caught = panic_of(|| BufReader::with_capacity(0, &b""[..]));
    assert!(caught.message.starts_with("capacity must be greater than zero"));
    assert_eq!(caught.file, file!());
}

#[test]
fn a_seek_counts_from_what_was_handed_out() {
    let mut reader = BufReader::with_capacity(4, Cursor::new(b"0123456789".to_vec()));
    assert_eq!(now(reader.read_u8()).unwrap(), b'0');
    assert_eq!(now(reader.seek(SeekFrom::Current(0))).unwrap(), 1);
    assert_eq!(reader.buffer(), b"", "a seek forgets what is held");
    assert_eq!(now(reader.read_u8()).unwrap(), b'1');
    assert_eq!(now(reader.seek(SeekFrom::Current(-2))).unwrap(), 0);
    assert_eq!(now(reader.read_u8()).unwrap(), b'0');
    assert_eq!(now(reader.seek(SeekFrom::Current(2))).unwrap(), 3);
    assert_eq!(now(reader.read_u8()).unwrap(), b'3');
    assert_eq!(now(reader.seek(SeekFrom::End(-1))).unwrap(), 9);
    assert_eq!(now(reader.read_u8()).unwrap(), b'9');
    assert_eq!(now(reader.seek(SeekFrom::Start(5))).unwrap(), 5);
    assert_eq!(now(reader.read_u8()).unwrap(), b'5');
}

/// Records its seeks; every other poll of a seek is pending.
#[derive(Default)]
struct Seeker {
    seeks: Vec<SeekFrom>,
    waits: bool,
    refuses: bool,
}

impl AsyncRead for Seeker {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        buf.put_slice(b"abc");
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for Seeker {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> std::io::Result<()> {
        if std::mem::take(&mut self.refuses) {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.seeks.push(position);
        self.waits = true;
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<u64>> {
        if std::mem::take(&mut self.waits) { Poll::Pending } else { Poll::Ready(Ok(7)) }
    }
}

#[test]
fn a_seek_too_far_back_for_one_step_takes_two() {
    let mut reader = pin!(BufReader::with_capacity(3, Seeker::default()));
    let mut cx = Context::from_waker(NOOP);
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    reader.as_mut().start_seek(SeekFrom::Current(i64::MIN)).unwrap();
    assert!(reader.as_mut().poll_complete(&mut cx).is_pending());
    assert_eq!(reader.get_ref().seeks, [SeekFrom::Current(-2)]);
    assert_eq!(reader.buffer(), b"bc", "kept until the source has moved");
    assert!(reader.as_mut().poll_complete(&mut cx).is_pending());
    assert_eq!(reader.buffer(), b"");
    assert_eq!(ready(reader.as_mut().poll_complete(&mut cx)), 7);
    assert_eq!(reader.get_ref().seeks[1..], [SeekFrom::Current(i64::MIN)]);
}

#[test]
fn a_seek_that_is_refused_leaves_the_reader_as_it_was() {
    let source = Seeker { refuses: true, ..Seeker::default() };
    let mut reader = pin!(BufReader::with_capacity(3, source));
    let mut cx = Context::from_waker(NOOP);
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    reader.as_mut().start_seek(SeekFrom::Start(1)).unwrap();
    assert_eq!(error(reader.as_mut().poll_complete(&mut cx)), ErrorKind::InvalidInput);
    assert_eq!(reader.buffer(), b"bc");
    assert_eq!(ready(reader.as_mut().poll_complete(&mut cx)), 7, "no seek is left behind");
    assert!(reader.get_ref().seeks.is_empty());
}

#[test]
fn small_writes_are_gathered_and_large_ones_pass() {
    let mut writer = BufWriter::with_capacity(4, Scripted::default());
    assert_eq!(ready(write(&mut writer, NOOP, b"ab")), 2);
    assert_eq!(ready(write(&mut writer, NOOP, b"cd")), 2, "it fits exactly");
    assert_eq!((writer.buffer(), writer.get_ref().sink.buffers.len()), (&b"abcd"[..], 0));
    assert_eq!(ready(write(&mut writer, NOOP, b"e")), 1);
    assert_eq!((writer.buffer(), &writer.get_ref().sink.taken[..]), (&b"e"[..], &b"abcd"[..]));
    assert_eq!(ready(write(&mut writer, NOOP, b"fghij")), 5);
    assert_eq!((writer.buffer(), &writer.get_ref().sink.taken[..]), (&b""[..], &b"abcdefghij"[..]));
    assert_eq!(writer.get_ref().sink.buffers.len(), 3);
}

#[test]
fn a_flush_that_has_to_wait_goes_on_where_it_was() {
    let target = Scripted::writes([Most(1), Wait, Fail(ErrorKind::Interrupted), Most(9)]);
    let mut writer = BufWriter::new(target);
    assert_eq!(ready(write(&mut writer, NOOP, b"abc")), 3);
    assert!(flush(&mut writer).is_pending());
    assert_eq!(ready(write(&mut writer, NOOP, b"d")), 1);
    ready(flush(&mut writer));
    assert_eq!(
        (&writer.get_ref().sink.taken[..], writer.get_ref().sink.flushed),
        (&b"abcd"[..], 1)
    );
    assert_eq!(writer.buffer(), b"");
}

#[test]
fn bytes_left_by_an_error_are_still_buffered() {
    let target = Scripted::writes([Most(1), Fail(ErrorKind::TimedOut), Most(0)]);
    let mut writer = BufWriter::new(target);
    assert_eq!(ready(write(&mut writer, NOOP, b"abc")), 3);
    assert_eq!(error(flush(&mut writer)), ErrorKind::TimedOut);
    assert_eq!(writer.buffer(), b"bc");
    assert_eq!(error(flush(&mut writer)), ErrorKind::WriteZero);
    assert_eq!(writer.buffer(), b"bc");
    shut(&mut writer);
    assert_eq!(writer.get_ref().sink.shut, 1);
    assert_eq!(writer.get_ref().sink.taken, b"abc", "a shutdown writes first");
}

#[test]
fn a_writer_without_a_buffer_passes_everything() {
    let mut writer = BufWriter::with_capacity(0, Scripted::default());
    assert_eq!(ready(write(&mut writer, NOOP, b"a")), 1);
    assert_eq!(ready(slices(&mut writer, &[b"b", b"c"])), 1);
    assert_eq!(writer.get_ref().sink.taken, b"ab");
}

#[test]
fn slices_are_gathered_all_or_passed_on() {
    let target = Scripted::default().vectored();
    let mut writer = BufWriter::with_capacity(4, target);
    assert!(writer.is_write_vectored());
    assert_eq!(ready(slices(&mut writer, &[b"a", b"", b"b"])), 2);
    assert_eq!(writer.buffer(), b"ab");
    assert_eq!(ready(slices(&mut writer, &[b"cd", b"e"])), 3, "what was held goes first");
    assert_eq!((writer.buffer(), &writer.get_ref().sink.taken[..]), (&b"cde"[..], &b"ab"[..]));
    assert_eq!(ready(slices(&mut writer, &[b"fg", b"hi"])), 4);
    assert_eq!(writer.get_ref().sink.taken, b"abcdefghi");
    assert_eq!(writer.get_ref().sink.buffers, [0, 0, 2]);
}

#[test]
fn slices_for_a_writer_without_them_are_gathered_as_far_as_they_fit() {
    let mut writer = BufWriter::with_capacity(4, Scripted::default());
    assert!(writer.is_write_vectored());
    assert_eq!(ready(slices(&mut writer, &[b"", b""])), 0);
    assert_eq!(ready(slices(&mut writer, &[b"", b"ab", b"", b"c", b"de", b"f"])), 3);
    assert_eq!(writer.buffer(), b"abc");
    assert_eq!(ready(slices(&mut writer, &[b"defgh", b"i"])), 5, "a large one goes alone");
    assert_eq!((writer.buffer(), &writer.get_ref().sink.taken[..]), (&b""[..], &b"abcdefgh"[..]));
}

#[test]
fn a_seek_of_a_writer_writes_first() {
    let mut writer = BufWriter::new(Cursor::new(b"0123456789".to_vec()));
    now(writer.write_all(b"ab")).unwrap();
    assert_eq!(now(writer.seek(SeekFrom::Start(8))).unwrap(), 8);
    now(writer.write_all(b"yz")).unwrap();
    now(writer.flush()).unwrap();
    assert_eq!(writer.into_inner().into_inner(), b"ab234567yz");
}

#[test]
fn reads_pass_a_buffered_writer_and_writes_a_buffered_reader() {
    let inner = Scripted::reads([Bytes(b"ab\n")]);
    let mut writer = BufWriter::new(BufReader::new(inner));
    let mut line = String::new();
    assert_eq!(now(writer.read_line(&mut line)).unwrap(), 3);
    assert_eq!(line, "ab\n");
    let mut reader = BufReader::new(Scripted::default());
    assert_eq!(ready(write(&mut reader, NOOP, b"ab")), 2);
    assert_eq!(ready(slices(&mut reader, &[b"c", b"d"])), 2);
    shut(&mut reader);
    assert_eq!((reader.get_ref().sink.shut, &reader.get_ref().sink.taken[..]), (1, &b"abcd"[..]));
}

#[test]
fn a_buffered_stream_buffers_both_ways() {
    let inner = Scripted::reads([Bytes(b"abc")]);
    let mut stream = BufStream::with_capacity(8, 8, inner);
    assert_eq!(ready(read::<1>(&mut stream, NOOP)), b"a");
    assert_eq!(ready(write(&mut stream, NOOP, b"xy")), 2);
    assert_eq!(stream.get_ref().sink.taken, b"");
    ready(flush(&mut stream));
    assert_eq!(stream.get_ref().sink.taken, b"xy");
    assert_eq!(ready(read::<9>(&mut stream, NOOP)), b"bc");
    assert_eq!(stream.get_ref().source.rooms, [8]);
}

#[test]
fn a_stream_made_of_both_keeps_what_they_hold() {
    let inner = Scripted::reads([Bytes(b"abc")]);
    let mut outer = BufWriter::new(BufReader::new(inner));
    assert_eq!(ready(read::<1>(&mut outer, NOOP)), b"a");
    assert_eq!(ready(write(&mut outer, NOOP, b"xy")), 2);
    let mut stream = BufStream::from(outer);
    assert_eq!(ready(read::<9>(&mut stream, NOOP)), b"bc");
    ready(flush(&mut stream));
    assert_eq!(stream.into_inner().sink.taken, b"xy");

    let inner = Scripted::reads([Bytes(b"abc")]);
    let mut outer = BufReader::new(BufWriter::new(inner));
    assert_eq!(ready(read::<1>(&mut outer, NOOP)), b"a");
    let mut stream = BufStream::from(outer);
    assert_eq!(ready(read::<9>(&mut stream, NOOP)), b"bc");
}

#[test]
fn a_seek_of_a_stream_writes_what_is_held_and_forgets_what_was_read() {
    let mut stream = BufStream::new(Cursor::new(b"0123456789".to_vec()));
    assert_eq!(now(stream.read_u8()).unwrap(), b'0');
    assert_eq!(now(stream.seek(SeekFrom::Current(1))).unwrap(), 2);
    now(stream.write_all(b"ab")).unwrap();
    assert_eq!(now(stream.seek(SeekFrom::Start(0))).unwrap(), 0);
    let mut all = String::new();
    now(stream.read_to_string(&mut all)).unwrap();
    assert_eq!(all, "01ab456789");
}

#[test]
fn debug_of_a_buffer_shows_how_full_it_is() {
    let mut reader = BufReader::with_capacity(8, &b"abc"[..]);
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    let text = format!("{reader:?}");
    assert!(text.starts_with("BufReader { reader: ") && text.ends_with("buffer: 2/8 }"), "{text}");
    let mut writer = BufWriter::with_capacity(8, Vec::new());
    now(writer.write_all(b"ab")).unwrap();
    let text = format!("{writer:?}");
    assert_eq!(text, "BufWriter { writer: [], buffer: 2/8, written: 0 }");
}

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
    let mut writer = BufWriter::with_capacity(4, Sink::limited(100, 100));
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
    let mut writer = BufWriter::new(Sink::limited(1, 100));
    now(writer.write_all(b"abc")).unwrap();
    now(writer.shutdown()).unwrap();
    assert_eq!((writer.get_ref().taken.as_slice(), writer.get_ref().shut), (&b"abc"[..], 1));
}

#[test]
fn a_writer_that_is_dropped_writes_nothing() {
    let mut slow = Sink::limited(100, 100);
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
    let mut writer = BufWriter::with_capacity(16, Sink::limited(100, 100));
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
    let parts = Source::new([Bytes(b"a"), Fail(std::io::ErrorKind::TimedOut), Bytes(b"b\n")]);
    let mut reader = BufReader::new(parts);
    let mut line = String::new();
    let error = now(reader.read_line(&mut line)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    now(reader.read_line(&mut line)).unwrap();
    assert!(line.ends_with("b\n"), "{line:?}");
}
