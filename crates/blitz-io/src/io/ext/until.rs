//! Futures that read up to a delimiter, and what makes text of bytes.

use std::{
    io::{self, BufRead, ErrorKind},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::uninterrupted;
use crate::io::{AsyncBufRead, raw};

future! {
    /// Future of [`fill_buf`](super::AsyncBufReadExt::fill_buf).
    FillBuf<'a, R> { reader: Option<&'a mut R> }
}

impl<'a, R: AsyncBufRead + Unpin + ?Sized> Future for FillBuf<'a, R> {
    type Output = io::Result<&'a [u8]>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&'a [u8]>> {
        raw::show(self.project().reader, cx)
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

/// Appends what comes up to the delimiter, with it, or up to the end of the source. What
/// came before an error or a wait is in `buf`.
pub(super) fn poll_until<R: AsyncBufRead + ?Sized>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    buf: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    loop {
        let attempt = || {
            let mut shown = ready!(reader.as_mut().poll_fill_buf(cx))?;
            // A slice of bytes is a source of std's, which has a quick search for a byte.
            let n = shown.read_until(delimiter, buf)?;
            Poll::Ready(Ok(n))
        };
        let n = ready!(uninterrupted(attempt))?;
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
        // What came before an error stays, if it is text.
        let finished = mem::take(this.text).finish(this.output);
        Poll::Ready(read.and(finished))
    }
}

/// Bytes that were text, and to which others have been added.
#[derive(Debug, Default)]
pub(super) struct IntoText {
    pub(super) bytes: Vec<u8>,
    /// How many were text.
    pub(super) length: usize,
}

impl IntoText {
    /// Takes the bytes of a string, which is empty until they are put back.
    pub(super) fn taken(output: &mut String) -> Self {
        let bytes = mem::take(output).into_bytes();
        Self { length: bytes.len(), bytes }
    }

    /// Puts all of them into `output`; answers how many were added. If those are no text,
    /// they are dropped.
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

    /// Puts those that were text into `output`.
    pub(super) fn undo(mut self, output: &mut String) {
        self.bytes.truncate(self.length);
        *output = String::from_utf8(self.bytes).expect("what was a string before is text");
    }
}
