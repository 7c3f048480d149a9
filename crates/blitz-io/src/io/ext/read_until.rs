//! Futures that read up to a delimiter, and the conversion of bytes to text.

use std::{
    io::{self, BufRead, ErrorKind},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::retry_interrupted;
use crate::io::{AsyncBufRead, raw};

future! {
    /// Future of [`fill_buf`](super::AsyncBufReadExt::fill_buf).
    FillBuf<'a, R> { reader: Option<&'a mut R> }
}

impl<'a, R: AsyncBufRead + Unpin + ?Sized> Future for FillBuf<'a, R> {
    type Output = io::Result<&'a [u8]>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&'a [u8]>> {
        raw::poll_fill_buf_ref(self.project().reader, cx)
    }
}

future! {
    /// Future of [`read_until`](super::AsyncBufReadExt::read_until).
    ReadUntil<'a, R> { reader: &'a mut R, delimiter: u8, buf: &'a mut Vec<u8>, length: usize }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadUntil<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        ready!(poll_until(reader, cx, *this.delimiter, this.buf))?;
        Poll::Ready(Ok(this.buf.len() - *this.length))
    }
}

/// Reads up to and including the delimiter, or to the end of the source, and appends to
/// `buf`. Bytes read before an error or a wait are in `buf`.
pub(super) fn poll_until<R: AsyncBufRead + ?Sized>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    buf: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    loop {
        let attempt = || {
            let mut shown = ready!(reader.as_mut().poll_fill_buf(cx))?;
            // A byte slice is a `BufRead` of std, and std searches it for the byte with
            // `memchr`.
            let n = shown.read_until(delimiter, buf)?;
            Poll::Ready(Ok(n))
        };
        let n = ready!(retry_interrupted(attempt))?;
        reader.as_mut().consume(n);
        if n == 0 || buf.last() == Some(&delimiter) {
            return Poll::Ready(Ok(()));
        }
    }
}

future! {
    /// Future of [`read_line`](super::AsyncBufReadExt::read_line).
    ReadLine<'a, R> { reader: &'a mut R, text: IntoText, output: &'a mut String }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadLine<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        let read = ready!(poll_until(reader, cx, b'\n', &mut this.text.bytes));
        // Bytes read before an error are kept if they are text.
        let finished = mem::take(this.text).finish(this.output);
        Poll::Ready(read.and(finished))
    }
}

/// The bytes of a string, to which other bytes have been appended.
#[derive(Debug, Default)]
pub(super) struct IntoText {
    pub(super) bytes: Vec<u8>,
    /// The number of bytes that came from the string, and so are text.
    pub(super) length: usize,
}

impl IntoText {
    /// Takes the bytes out of a string, which is empty until they are put back.
    pub(super) fn taken(output: &mut String) -> Self {
        let bytes = mem::take(output).into_bytes();
        Self { length: bytes.len(), bytes }
    }

    /// Puts all bytes into `output`, and returns how many were appended to the original
    /// ones. If the bytes are not UTF-8, the appended ones are dropped.
    pub(super) fn finish(self, output: &mut String) -> io::Result<usize> {
        let length = self.length;
        match String::from_utf8(self.bytes) {
            Ok(text) => {
                *output = text;
                Ok(output.len() - length)
            }
            Err(error) => {
                let why = error.utf8_error();
                Self { bytes: error.into_bytes(), length }.undo(output);
                Err(io::Error::new(ErrorKind::InvalidData, why))
            }
        }
    }

    /// Puts the original bytes, which are text, back into `output`.
    pub(super) fn undo(mut self, output: &mut String) {
        self.bytes.truncate(self.length);
        *output = String::from_utf8(self.bytes).expect("what was a string before is text");
    }
}
