//! `AsyncWriteExt`, on sinks that accept little at a time.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{AsyncWrite, AsyncWriteExt, sink};

use crate::polled::now;

/// A sink that accepts at most `at_once` bytes in a call, and a limited number in all.
#[derive(Default)]
pub(crate) struct Slow {
    pub(crate) taken: Vec<u8>,
    pub(crate) at_once: usize,
    pub(crate) room: usize,
    pub(crate) flushed: usize,
    pub(crate) shut: usize,
    pub(crate) vectored: bool,
}

impl Slow {
    pub(crate) fn new(at_once: usize, room: usize) -> Self {
        Self { at_once, room, ..Self::default() }
    }
}

impl AsyncWrite for Slow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(self.at_once).min(self.room - self.taken.len());
        self.taken.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushed += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        self.as_mut().poll_write(cx, &all)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }
}

#[test]
fn write_may_take_less_and_write_all_does_not() {
    let mut slow = Slow::new(2, 100);
    assert_eq!(now(slow.write(b"hello")).unwrap(), 2);
    now(slow.write_all(b"world")).unwrap();
    assert_eq!(slow.taken, b"heworld");
    now(slow.write_all(b"")).unwrap();
}

#[test]
fn a_sink_that_takes_nothing_more_is_an_error() {
    let mut slow = Slow::new(2, 3);
    let error = now(slow.write_all(b"hello")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!(slow.taken, b"hel");
    let error = now(slow.write_all_buf(&mut &b"x"[..])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!(now(slow.write_u32(1)).unwrap_err().kind(), ErrorKind::WriteZero);
}

#[test]
fn write_buf_moves_the_buffer_on_by_what_was_taken() {
    let mut slow = Slow::new(2, 100);
    let mut bytes = &b"hello"[..];
    assert_eq!(now(slow.write_buf(&mut bytes)).unwrap(), 2);
    assert_eq!(bytes, b"llo");
    now(slow.write_all_buf(&mut bytes)).unwrap();
    assert_eq!((bytes, &slow.taken[..]), (&b""[..], &b"hello"[..]));
    assert_eq!(now(slow.write_buf(&mut bytes)).unwrap(), 0);
}

#[test]
fn write_vectored_passes_the_parts_on() {
    let mut slow = Slow::new(4, 100);
    let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cdef")];
    assert_eq!(now(slow.write_vectored(&parts)).unwrap(), 4);
    assert_eq!(slow.taken, b"abcd");
    let mut all = Vec::new();
    assert_eq!(now(AsyncWriteExt::write_vectored(&mut all, &parts)).unwrap(), 6);
    assert_eq!(all, b"abcdef");
}

macro_rules! numbers {
    ($($write:ident $write_le:ident $kind:ty),* $(,)?) => {$(
        let bytes: Vec<u8> = (0x81..).take(size_of::<$kind>()).collect();
        let bytes: [u8; size_of::<$kind>()] = bytes.try_into().unwrap();
        let mut slow = Slow::new(3, 100);
        now(slow.$write(<$kind>::from_be_bytes(bytes))).unwrap();
        now(slow.$write_le(<$kind>::from_le_bytes(bytes))).unwrap();
        assert_eq!(slow.taken, [bytes, bytes].concat(), stringify!($write));
    )*};
}

#[test]
fn numbers_are_written_in_both_orders_even_bit_by_bit() {
    numbers!(
        write_u16 write_u16_le u16, write_u32 write_u32_le u32, write_u64 write_u64_le u64,
        write_u128 write_u128_le u128, write_i16 write_i16_le i16, write_i32 write_i32_le i32,
        write_i64 write_i64_le i64, write_i128 write_i128_le i128, write_f32 write_f32_le f32,
        write_f64 write_f64_le f64,
    );
    let mut all: Vec<u8> = Vec::new();
    now(all.write_u8(1)).unwrap();
    now(all.write_i8(-1)).unwrap();
    assert_eq!(all, [1, 255]);
}

#[test]
fn flush_and_shutdown_reach_the_sink() {
    let mut slow = Slow::new(2, 100);
    now(slow.flush()).unwrap();
    now(slow.shutdown()).unwrap();
    now((&mut &mut slow).flush()).unwrap();
    now(Box::new(&mut slow).shutdown()).unwrap();
    assert_eq!((slow.flushed, slow.shut), (2, 2));
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
