//! Tests the implementations of the traits of `io` for pointers, slices and cursors.
#![allow(clippy::needless_borrows_for_generic_args, reason = "that a borrow does is tested")]

use std::{
    io::{Cursor, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use blitz_io::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt,
};

use crate::support::{
    manual_poll::now,
    scripted_io::{Sink, Source, Step},
};

#[test]
fn a_pointer_to_a_source_is_a_source() {
    fn both<R: AsyncRead + AsyncBufRead + Unpin>(mut reader: R) {
        let mut bytes = [0; 2];
        assert_eq!(now(reader.read(&mut bytes)).unwrap(), 2);
        assert_eq!((bytes, now(reader.fill_buf()).unwrap()), (*b"ab", &b"cd"[..]));
        reader.consume(1);
        assert_eq!(now(reader.read_u8()).unwrap(), b'd');
    }
    let text = || Cursor::new("abcd");
    both(text());
    both(&mut text());
    both(Box::new(text()));
    both(Pin::new(&mut text()));
    both(Box::pin(text()));
    both(Box::new(text()) as Box<dyn AsyncBufRead + Unpin + Send>);
    both(Box::pin(Source::new([Step::Bytes(b"abcd")])) as Pin<Box<dyn AsyncBufRead + Send>>);
    both(&b"abcd"[..]);
}

#[test]
fn a_pointer_to_a_sink_is_a_sink() {
    fn all<W: AsyncWrite + Unpin>(mut writer: W) {
        assert!(writer.is_write_vectored());
        now(writer.write_all(b"a")).unwrap();
        let parts = [IoSlice::new(b"b"), IoSlice::new(b"c")];
        assert_eq!(now(writer.write_vectored(&parts)).unwrap(), 2);
        now(writer.flush()).unwrap();
        now(writer.shutdown()).unwrap();
    }
    let mut vec = Vec::new();
    all(&mut vec);
    all(Box::new(&mut vec));
    all(Pin::new(&mut vec));
    all(Box::new(&mut vec) as Box<dyn AsyncWrite + Unpin + '_>);
    assert_eq!(vec, b"abcabcabcabc");
    let mut scripted = Sink::new([]);
    scripted.vectored = true;
    all(Box::pin(&mut scripted));
    assert_eq!((&scripted.taken[..], scripted.flushed, scripted.shut), (&b"abc"[..], 2, 1));
    assert_eq!(scripted.buffers, [0, 2]);
}

#[test]
fn a_pointer_to_a_position_is_a_position() {
    fn move_it<S: AsyncSeek + Unpin>(mut seek: S) {
        assert_eq!(now(seek.seek(SeekFrom::End(-1))).unwrap(), 3);
    }
    let text = || Cursor::new("abcd");
    move_it(text());
    move_it(&mut text());
    move_it(Box::new(text()));
    move_it(Box::pin(text()));
    move_it(Box::new(text()) as Box<dyn AsyncSeek + Unpin>);
}

#[test]
fn a_cursor_behind_its_end_is_at_its_end() {
    for position in [4, 5, u64::MAX] {
        let mut cursor = Cursor::new("abcd");
        cursor.set_position(position);
        assert_eq!(now(cursor.read(&mut [0; 9])).unwrap(), 0);
        assert_eq!(now(cursor.fill_buf()).unwrap(), b"");
        assert_eq!(cursor.position(), position);
    }
}

#[test]
fn cursors_write_over_what_is_there() {
    let mut bytes = *b"abcd";
    assert_eq!(now(Cursor::new(&mut bytes[..]).write(b"xy")).unwrap(), 2);
    assert_eq!(&bytes, b"xycd");

    let mut vec = b"ab".to_vec();
    let mut cursor = Cursor::new(&mut vec);
    cursor.set_position(1);
    now(cursor.write_all(b"xyz")).unwrap();
    assert_eq!(vec, b"axyz");

    let mut cursor = Cursor::new(vec![1]);
    now(cursor.write_all(&[2, 3])).unwrap();
    assert_eq!(cursor.into_inner(), [2, 3]);

    let mut cursor = Cursor::new(Box::<[u8]>::from([0; 2]));
    assert_eq!(now(cursor.write(b"abc")).unwrap(), 2);
    assert_eq!(now(cursor.write(b"c")).unwrap(), 0);
}

/// A sink with only the required methods.
struct Plain(Vec<u8>);

impl AsyncWrite for Plain {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.get_mut().0.extend(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_vectored_write_is_by_default_one_of_the_first_buffer_that_is_not_empty() {
    let mut plain = Plain(Vec::new());
    assert!(!plain.is_write_vectored());
    let parts = [b"".as_slice(), b"ab", b"cd"].map(IoSlice::new);
    assert_eq!(now(plain.write_vectored(&parts)).unwrap(), 2);
    assert_eq!(now(plain.write_vectored(&[])).unwrap(), 0);
    assert_eq!(plain.0, b"ab");
}

#[test]
fn a_move_to_before_the_start_is_refused() {
    let mut cursor = Cursor::new("abc");
    let refused = Pin::new(&mut cursor).start_seek(SeekFrom::Current(-1));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let mut cx = Context::from_waker(Waker::noop());
    let polled = Pin::new(&mut cursor).poll_complete(&mut cx);
    assert!(matches!(polled, Poll::Ready(Ok(0))), "{polled:?}");
}
