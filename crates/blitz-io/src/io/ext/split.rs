//! `Split`: reads a source from delimiter to delimiter.

use std::{
    future::poll_fn,
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::read_until::poll_until;
use crate::io::AsyncBufRead;

pin_project! {
    /// The segments of a source; created by [`split`](super::AsyncBufReadExt::split).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut fields = AsyncBufReadExt::split(&b"a,bb,,c"[..], b',');
    /// let mut lengths = Vec::new();
    /// while let Some(field) = fields.next_segment().await? {
    ///     lengths.push(field.len());
    /// }
    /// assert_eq!(lengths, [1, 2, 0, 1]);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    #[must_use = "segments are read only on request"]
    #[derive(Debug)]
    pub struct Split<R> {
        #[pin]
        reader: R,
        // The part of the next segment that was read so far.
        bytes: Vec<u8>,
        delimiter: u8,
    }
}

impl<R> Split<R> {
    pub(super) fn new(reader: R, delimiter: u8) -> Self {
        Self { reader, bytes: Vec::new(), delimiter }
    }
}

impl<R: AsyncBufRead + Unpin> Split<R> {
    /// Returns the next segment, without its delimiter; `None` at the end of the source.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: the bytes that were read become part of the segment that
    /// the next call returns.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut words = AsyncBufReadExt::split(&b"to be"[..], b' ');
    /// assert_eq!(words.next_segment().await?, Some(b"to".to_vec()));
    /// assert_eq!(words.next_segment().await?, Some(b"be".to_vec()));
    /// assert_eq!(words.next_segment().await?, None);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub async fn next_segment(&mut self) -> io::Result<Option<Vec<u8>>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_segment(cx)).await
    }
}

impl<R: AsyncBufRead> Split<R> {
    /// Polls for the next segment; see [`next_segment`](Self::next_segment).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, pin::pin};
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut words = pin!(AsyncBufReadExt::split(&b"to be"[..], b' '));
    /// let word = poll_fn(|cx| words.as_mut().poll_next_segment(cx)).await?;
    /// assert_eq!(word, Some(b"to".to_vec()));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn poll_next_segment(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        let this = self.project();
        ready!(poll_until(this.reader, cx, *this.delimiter, this.bytes))?;
        let mut segment = mem::take(this.bytes);
        if segment.is_empty() {
            return Poll::Ready(Ok(None));
        }
        segment.pop_if(|last| last == this.delimiter);
        Poll::Ready(Ok(Some(segment)))
    }
}
