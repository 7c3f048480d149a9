//! `write`, `write_vectored`, `write_buf`, `write_all`, `write_all_buf`, `flush`, `shutdown`.

use std::io::IoSlice;

use blitz_io::io::{AsyncWriteExt, ErrorKind};
use bytes::Buf;

use crate::io::script::{
    Take::{Fail, Most, Wait},
    finish_after, give_up, kind, now, sink,
};

#[test]
fn write_is_one_write() {
    let mut writer = sink([Most(2), Wait, Most(0), Fail(ErrorKind::Interrupted)]);
    assert_eq!(now(writer.write(b"abc")).unwrap(), 2);
    assert_eq!(finish_after(writer.write(b"abc")).0.unwrap(), 0);
    assert_eq!(kind(now(writer.write(b"abc"))), ErrorKind::Interrupted);
    assert_eq!(now(writer.write(b"")).unwrap(), 0);
    assert_eq!(writer.taken, b"ab");
}

#[test]
fn write_vectored_is_one_write_of_all() {
    let mut writer = sink([Wait, Most(3)]);
    let parts = [b"ab".as_slice(), b"", b"cd"].map(IoSlice::new);
    assert_eq!(finish_after(writer.write_vectored(&parts)).0.unwrap(), 3);
    assert_eq!((&writer.taken[..], &writer.buffers[..]), (&b"abc"[..], &[3, 3][..]));
}

#[test]
fn write_all_writes_on_until_nothing_is_left() {
    let mut writer = sink([Most(1), Wait, Fail(ErrorKind::Interrupted), Most(1)]);
    let (written, waits) = finish_after(writer.write_all(b"abcd"));
    written.unwrap();
    assert_eq!((&writer.taken[..], waits), (&b"abcd"[..], 1));
}

#[test]
fn an_empty_write_does_not_poll_the_writer() {
    let mut writer = sink([Fail(ErrorKind::Other)]);
    now(writer.write_all(b"")).unwrap();
    now(writer.write_all_buf(&mut b"".as_slice())).unwrap();
    assert_eq!(now(writer.write_buf(&mut b"".as_slice())).unwrap(), 0);
    assert!(writer.buffers.is_empty());
}

#[test]
fn write_all_to_a_sink_that_takes_nothing_is_an_error() {
    let mut writer = sink([Most(1), Most(0)]);
    assert_eq!(kind(now(writer.write_all(b"ab"))), ErrorKind::WriteZero);
    let mut rest = b"ab".as_slice();
    let mut writer = sink([Most(1), Most(0)]);
    assert_eq!(kind(now(writer.write_all_buf(&mut rest))), ErrorKind::WriteZero);
    assert_eq!(rest, b"b");
}

#[test]
fn write_buf_moves_on_by_what_was_taken() {
    let mut writer = sink([Wait, Most(2), Fail(ErrorKind::Interrupted)]);
    let mut rest = b"abc".as_slice();
    assert_eq!(finish_after(writer.write_buf(&mut rest)).0.unwrap(), 2);
    assert_eq!(kind(now(writer.write_buf(&mut rest))), ErrorKind::Interrupted);
    assert_eq!(rest, b"c");
}

#[test]
fn chunks_are_written_together_where_the_sink_can() {
    let text = || b"ab".as_slice().chain(b"cd".as_slice());
    let mut plain = sink([]);
    let mut rest = text();
    assert_eq!(now(plain.write_buf(&mut rest)).unwrap(), 2);
    assert_eq!((rest.remaining(), &plain.buffers[..]), (2, &[0][..]));
    let mut vectored = sink([]);
    vectored.vectored = true;
    let mut rest = text();
    assert_eq!(now(vectored.write_buf(&mut rest)).unwrap(), 4);
    assert_eq!((rest.remaining(), &vectored.buffers[..]), (0, &[2][..]));
    let mut slow = sink([Most(1), Wait, Most(2)]);
    slow.vectored = true;
    finish_after(slow.write_all_buf(&mut text())).0.unwrap();
    assert_eq!((&slow.taken[..], &slow.buffers[..]), (&b"abcd"[..], &[2, 2, 2, 1][..]));
}

#[test]
fn write_all_buf_leaves_the_rest_in_the_buffer() {
    let mut writer = sink([Most(1), Fail(ErrorKind::Interrupted), Most(1), Wait, Most(1)]);
    let mut rest = b"abcdef".as_slice();
    give_up(writer.write_all_buf(&mut rest));
    assert_eq!((&writer.taken[..], rest), (&b"ab"[..], &b"cdef"[..]));
    now(writer.write_all_buf(&mut rest)).unwrap();
    assert_eq!((&writer.taken[..], rest), (&b"abcdef"[..], &b""[..]));
    let mut writer = sink([Most(1), Fail(ErrorKind::BrokenPipe)]);
    let mut rest = b"ab".as_slice();
    assert_eq!(kind(now(writer.write_all_buf(&mut rest))), ErrorKind::BrokenPipe);
    assert_eq!(rest, b"b");
}

#[test]
fn flush_and_shutdown_wait_and_fail_as_the_sink_does() {
    let mut writer = sink([Wait, Fail(ErrorKind::BrokenPipe), Most(0), Wait]);
    let (flushed, waits) = finish_after(writer.flush());
    assert_eq!((kind(flushed), waits), (ErrorKind::BrokenPipe, 1));
    now(writer.flush()).unwrap();
    let (ended, waits) = finish_after(writer.shutdown());
    ended.unwrap();
    assert_eq!((waits, writer.flushed, writer.ended), (1, 2, true));
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
        let mut writer = blitz_io::io::BufWriter::with_capacity(8, sink(steps));
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
