//! `repeat`: a reader that repeats one byte without end.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncRead, ReadBuf};
use crate::engine::work::task::budget;

/// The number of bytes copied at a time: a few cache lines on the stack; chosen, not
/// measured.
const AT_ONCE: usize = 512;

/// A reader that repeats one byte without end; created by [`repeat`](repeat()).
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

/// Creates a reader that repeats `byte` without end.
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
        ready!(budget::poll_proceed(cx)).spend();
        let bytes = [self.byte; AT_ONCE];
        while buf.remaining() > 0 {
            buf.put_slice(&bytes[..buf.remaining().min(AT_ONCE)]);
        }
        Poll::Ready(Ok(()))
    }
}
