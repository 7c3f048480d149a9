//! Futures that read and write numbers as bytes, in both byte orders.
//!
//! One future serves all number types; they differ only in the [`Encoding`], a type without
//! values.

use std::{
    io::{self, ErrorKind},
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{
    read_futures::{Reached, poll_fill},
    write_futures::poll_write_all,
};
use crate::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The layout of a number in bytes.
pub trait Encoding {
    /// The type of the number.
    type Number;
    /// An array with as many bytes as the number has.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Default;

    /// Returns the bytes of a number.
    fn encode(number: Self::Number) -> Self::Bytes;

    /// Returns the number that the bytes stand for.
    fn decode(bytes: &Self::Bytes) -> Self::Number;
}

/// Big-endian order: the most significant byte first, as on the network.
#[derive(Debug)]
pub struct Big<N>(N);

/// Little-endian order: the least significant byte first, as in the memory of most
/// machines.
#[derive(Debug)]
pub struct Little<N>(N);

macro_rules! encodings {
    ($($order:ident<$number:ty>: $encode:ident, $decode:ident;)*) => {$(
        impl Encoding for $order<$number> {
            type Number = $number;
            type Bytes = [u8; size_of::<$number>()];

            #[inline]
            fn encode(number: $number) -> Self::Bytes {
                number.$encode()
            }

            #[inline]
            fn decode(bytes: &Self::Bytes) -> $number {
                <$number>::$decode(*bytes)
            }
        }
    )*};
    ($($number:ty),*) => {
        $(encodings! {
            Big<$number>: to_be_bytes, from_be_bytes;
            Little<$number>: to_le_bytes, from_le_bytes;
        })*
    };
}

encodings!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

pin_project! {
    /// Future of [`read_u32`](super::AsyncReadExt::read_u32) and the other number reads.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct ReadNumber<R, E: Encoding> {
        reader: R,
        bytes: E::Bytes,
        done: usize,
        #[pin]
        pinned: PhantomPinned,
    }
}

impl<R, E: Encoding> ReadNumber<R, E> {
    #[inline]
    pub(super) fn new(reader: R) -> Self {
        Self { reader, bytes: E::Bytes::default(), done: 0, pinned: PhantomPinned }
    }
}

impl<R: AsyncRead + Unpin, E: Encoding> Future for ReadNumber<R, E> {
    type Output = io::Result<E::Number>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut buf = ReadBuf::new(&mut this.bytes.as_mut()[*this.done..]);
        let polled = poll_fill(this.reader, cx, &mut buf);
        *this.done += buf.filled().len();
        Poll::Ready(match ready!(polled)? {
            Reached::Full => Ok(E::decode(this.bytes)),
            Reached::End => Err(ErrorKind::UnexpectedEof.into()),
        })
    }
}

pin_project! {
    /// Future of [`write_u32`](super::AsyncWriteExt::write_u32) and the other number
    /// writes.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct WriteNumber<W, E: Encoding> {
        writer: W,
        bytes: E::Bytes,
        done: usize,
        #[pin]
        pinned: PhantomPinned,
    }
}

impl<W, E: Encoding> WriteNumber<W, E> {
    #[inline]
    pub(super) fn new(writer: W, number: E::Number) -> Self {
        Self { writer, bytes: E::encode(number), done: 0, pinned: PhantomPinned }
    }
}

impl<W: AsyncWrite + Unpin, E: Encoding> Future for WriteNumber<W, E> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let bytes = this.bytes.as_ref();
        let mut rest = &bytes[*this.done..];
        let polled = poll_write_all(this.writer, cx, &mut rest);
        *this.done = bytes.len() - rest.len();
        polled
    }
}
