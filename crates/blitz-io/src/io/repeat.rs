//! One byte without end.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncRead, ReadBuf};
use crate::engine::work::task::budget;

/// Bytes that are copied at a time: a few cache lines on the stack, picked, not measured.
const AT_ONCE: usize = 512;

/// An async reader which yields one byte over and over and over; made by
/// [`repeat`](repeat()).
///
/// # Examples
///
/// ```
/// let repeat: blitz_io::io::Repeat = blitz_io::io::repeat(1);
/// # drop(repeat);
/// ```
#[derive(Debug)]
pub struct Repeat {
    byte: u8,
}

/// Creates an instance of an async reader that infinitely repeats one byte.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt};
///
/// # blitz_io::run(async {
/// let mut buf = [0; 3];
/// io::repeat(7).read_exact(&mut buf).await?;
/// assert_eq!(buf, [7; 3]);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn repeat(byte: u8) -> Repeat {
    Repeat { byte }
}

impl AsyncRead for Repeat {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(budget::proceed(cx)).spend();
        let bytes = [self.byte; AT_ONCE];
        while buf.remaining() > 0 {
            buf.put_slice(&bytes[..buf.remaining().min(AT_ONCE)]);
        }
        Poll::Ready(Ok(()))
    }
}
