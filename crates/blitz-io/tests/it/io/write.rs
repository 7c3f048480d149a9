//! Tests `write`, `write_vectored`, `write_buf`, `write_all`, `write_all_buf`, `flush` and
//! `shutdown`.

use std::io::IoSlice;

use blitz_io::io::{AsyncWrite, AsyncWriteExt, ErrorKind, sink};
use bytes::Buf;

use crate::support::{
    manual_io::kind,
    manual_poll::{finish_after, give_up, now},
    scripted_io::{
        Sink,
        Step::{Fail, Most, Wait},
    },
};

#[test]
fn write_is_one_write() {
    let mut writer = Sink::new([Most(2), Wait, Most(0), Fail(ErrorKind::Interrupted)]);
    assert_eq!(now(writer.write(b"abc")).unwrap(), 2);
    assert_eq!(finish_after(writer.write(b"abc")).0.unwrap(), 0);
    assert_eq!(kind(now(writer.write(b"abc"))), ErrorKind::Interrupted);
    assert_eq!(now(writer.write(b"")).unwrap(), 0);
    assert_eq!(writer.taken, b"ab");
}

#[test]
fn write_vectored_is_one_write_of_all() {
    let mut writer = Sink::new([Wait, Most(3)]);
    let parts = [b"ab".as_slice(), b"", b"cd"].map(IoSlice::new);
    assert_eq!(finish_after(writer.write_vectored(&parts)).0.unwrap(), 3);
    assert_eq!((&writer.taken[..], &writer.buffers[..]), (&b"abc"[..], &[3, 3][..]));
}

#[test]
fn write_all_writes_on_until_nothing_is_left() {
    let mut writer = Sink::new([Most(1), Wait, Fail(ErrorKind::Interrupted), Most(1)]);
    let (written, waits) = finish_after(writer.write_all(b"abcd"));
    written.unwrap();
    assert_eq!((&writer.taken[..], waits), (&b"abcd"[..], 1));
}

#[test]
fn an_empty_write_does_not_poll_the_writer() {
    let mut writer = Sink::new([Fail(ErrorKind::Other)]);
    now(writer.write_all(b"")).unwrap();
    now(writer.write_all_buf(&mut b"".as_slice())).unwrap();
    assert_eq!(now(writer.write_buf(&mut b"".as_slice())).unwrap(), 0);
    assert!(writer.buffers.is_empty());
}

#[test]
fn write_all_to_a_sink_that_takes_nothing_is_an_error() {
    let mut writer = Sink::new([Most(1), Most(0)]);
    assert_eq!(kind(now(writer.write_all(b"ab"))), ErrorKind::WriteZero);
    let mut rest = b"ab".as_slice();
    let mut writer = Sink::new([Most(1), Most(0)]);
    assert_eq!(kind(now(writer.write_all_buf(&mut rest))), ErrorKind::WriteZero);
    assert_eq!(rest, b"b");
}

#[test]
fn write_buf_moves_on_by_what_was_taken() {
    let mut writer = Sink::new([Wait, Most(2), Fail(ErrorKind::Interrupted)]);
    let mut rest = b"abc".as_slice();
    assert_eq!(finish_after(writer.write_buf(&mut rest)).0.unwrap(), 2);
    assert_eq!(kind(now(writer.write_buf(&mut rest))), ErrorKind::Interrupted);
    assert_eq!(rest, b"c");
}

#[test]
fn chunks_are_written_together_where_the_sink_can() {
    let text = || b"ab".as_slice().chain(b"cd".as_slice());
    let mut plain = Sink::new([]);
    let mut rest = text();
    assert_eq!(now(plain.write_buf(&mut rest)).unwrap(), 2);
    assert_eq!((rest.remaining(), &plain.buffers[..]), (2, &[0][..]));
    let mut vectored = Sink::new([]);
    vectored.vectored = true;
    let mut rest = text();
    assert_eq!(now(vectored.write_buf(&mut rest)).unwrap(), 4);
    assert_eq!((rest.remaining(), &vectored.buffers[..]), (0, &[2][..]));
    let mut slow = Sink::new([Most(1), Wait, Most(2)]);
    slow.vectored = true;
    finish_after(slow.write_all_buf(&mut text())).0.unwrap();
    assert_eq!((&slow.taken[..], &slow.buffers[..]), (&b"abcd"[..], &[2, 2, 2, 1][..]));
}

#[test]
fn write_all_buf_leaves_the_rest_in_the_buffer() {
    let mut writer = Sink::new([Most(1), Fail(ErrorKind::Interrupted), Most(1), Wait, Most(1)]);
    let mut rest = b"abcdef".as_slice();
    give_up(writer.write_all_buf(&mut rest));
    assert_eq!((&writer.taken[..], rest), (&b"ab"[..], &b"cdef"[..]));
    now(writer.write_all_buf(&mut rest)).unwrap();
    assert_eq!((&writer.taken[..], rest), (&b"abcdef"[..], &b""[..]));
    let mut writer = Sink::new([Most(1), Fail(ErrorKind::BrokenPipe)]);
    let mut rest = b"ab".as_slice();
    assert_eq!(kind(now(writer.write_all_buf(&mut rest))), ErrorKind::BrokenPipe);
    assert_eq!(rest, b"b");
}

#[test]
fn flush_and_shutdown_wait_and_fail_as_the_sink_does() {
    let mut writer = Sink::new([Wait, Fail(ErrorKind::BrokenPipe), Most(0), Wait]);
    let (flushed, waits) = finish_after(writer.flush());
    assert_eq!((kind(flushed), waits), (ErrorKind::BrokenPipe, 1));
    now(writer.flush()).unwrap();
    let (ended, waits) = finish_after(writer.shutdown());
    ended.unwrap();
    assert_eq!((waits, writer.flushed, writer.shut), (1, 2, 1));
}

#[test]
#[should_panic]
fn a_sink_that_claims_more_than_it_was_given_is_found_out() {
    struct Liar;
    impl blitz_io::io::AsyncWrite for Liar {
        fn poll_write(
            self: std::pin::Pin<&mut Self>,
            _cx: &mut std::task::Context<'_>,
            buf: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            std::task::Poll::Ready(Ok(buf.len() + 1))
        }

        fn poll_flush(
            self: std::pin::Pin<&mut Self>,
            _cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn poll_shutdown(
            self: std::pin::Pin<&mut Self>,
            _cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }
    }
    let _ = now(Liar.write_all(b"abc"));
}

/// A flush that is dropped at any point loses nothing and writes nothing twice, even if more is
/// written before the next flush.
#[test]
fn a_flush_of_a_buffered_writer_that_is_given_up_goes_on_where_it_was() {
    for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)] {
        let steps = [Most(first), Wait, Most(second), Wait];
        let mut writer = blitz_io::io::BufWriter::with_capacity(8, Sink::new(steps));
        now(writer.write_all(b"abcd")).unwrap();
        for (more, taken) in [(b"ef", first), (b"gh", first + second)] {
            let held = writer.get_ref().taken.len() + writer.buffer().len();
            give_up(writer.flush());
            assert_eq!(writer.get_ref().taken, b"abcdefgh"[..taken]);
            assert_eq!(writer.buffer(), &b"abcdefgh"[taken..held], "what the writer has not got");
            now(writer.write_all(more)).unwrap();
        }
        now(writer.flush()).unwrap();
        assert_eq!((&writer.get_ref().taken[..], writer.buffer()), (&b"abcdefgh"[..], &b""[..]));
    }
}

#[test]
fn write_may_take_less_and_write_all_does_not() {
    let mut slow = Sink::limited(2, 100);
    assert_eq!(now(slow.write(b"hello")).unwrap(), 2);
    now(slow.write_all(b"world")).unwrap();
    assert_eq!(slow.taken, b"heworld");
    now(slow.write_all(b"")).unwrap();
}

#[test]
fn a_sink_that_takes_nothing_more_is_an_error() {
    let mut slow = Sink::limited(2, 3);
    let error = now(slow.write_all(b"hello")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!(slow.taken, b"hel");
    let error = now(slow.write_all_buf(&mut &b"x"[..])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!(now(slow.write_u32(1)).unwrap_err().kind(), ErrorKind::WriteZero);
}

#[test]
fn write_buf_moves_the_buffer_on_by_what_was_taken() {
    let mut slow = Sink::limited(2, 100);
    let mut bytes = &b"hello"[..];
    assert_eq!(now(slow.write_buf(&mut bytes)).unwrap(), 2);
    assert_eq!(bytes, b"llo");
    now(slow.write_all_buf(&mut bytes)).unwrap();
    assert_eq!((bytes, &slow.taken[..]), (&b""[..], &b"hello"[..]));
    assert_eq!(now(slow.write_buf(&mut bytes)).unwrap(), 0);
}

#[test]
fn write_vectored_passes_the_parts_on() {
    let mut slow = Sink::limited(4, 100);
    let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cdef")];
    assert_eq!(now(slow.write_vectored(&parts)).unwrap(), 4);
    assert_eq!(slow.taken, b"abcd");
    let mut all = Vec::new();
    assert_eq!(now(AsyncWriteExt::write_vectored(&mut all, &parts)).unwrap(), 6);
    assert_eq!(all, b"abcdef");
}

#[test]
fn flush_and_shutdown_reach_the_sink() {
    let mut slow = Sink::limited(2, 100);
    now(slow.flush()).unwrap();
    now(slow.shutdown()).unwrap();
    now((&mut &mut slow).flush()).unwrap();
    now(Box::new(&mut slow).shutdown()).unwrap();
    assert_eq!((slow.flushed, slow.shut), (4, 2));
}

#[test]
fn a_slice_takes_what_fits() {
    let mut room = [0; 4];
    let mut cursor = std::io::Cursor::new(&mut room[..]);
    assert_eq!(now(AsyncWriteExt::write(&mut cursor, b"abc")).unwrap(), 3);
    assert_eq!(now(AsyncWriteExt::write(&mut cursor, b"def")).unwrap(), 1);
    assert_eq!(now(AsyncWriteExt::write(&mut cursor, b"g")).unwrap(), 0);
    assert_eq!(&room, b"abcd");
}

#[test]
fn sink_takes_everything() {
    now(sink().write_all(&[0; 1 << 20])).unwrap();
    assert!(sink().is_write_vectored());
    now(sink().shutdown()).unwrap();
    now(sink().write_all(b"still")).unwrap();
}
