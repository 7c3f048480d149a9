//! `Lines`: reads a source line by line.

use std::{
    future::poll_fn,
    io::{self, ErrorKind},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::read_until::poll_until;
use crate::io::AsyncBufRead;

pin_project! {
    /// The lines of a source; created by [`lines`](super::AsyncBufReadExt::lines).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut lines = b"one\r\ntwo\n\nlast".as_slice().lines();
    /// let mut all = Vec::new();
    /// while let Some(line) = lines.next_line().await? {
    ///     all.push(line);
    /// }
    /// assert_eq!(all, ["one", "two", "", "last"]);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    #[must_use = "lines are read only on request"]
    #[derive(Debug)]
    pub struct Lines<R> {
        #[pin]
        reader: R,
        // The part of the next line that was read so far.
        bytes: Vec<u8>,
    }
}

impl<R> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, bytes: Vec::new() }
    }
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Returns the next line, without its end (`\n` or `\r\n`); `None` at the end of the
    /// source.
    ///
    /// # Errors
    ///
    /// Returns the source's errors; `InvalidData` if the line is not UTF-8. Such a line is
    /// lost, and the next call returns the one after it.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: the bytes that were read become part of the line that
    /// the next call returns.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut lines = b"only\n".as_slice().lines();
    /// assert_eq!(lines.next_line().await?.as_deref(), Some("only"));
    /// assert_eq!(lines.next_line().await?, None);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub async fn next_line(&mut self) -> io::Result<Option<String>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_line(cx)).await
    }

    /// Returns a mutable reference to the source. An incomplete line that was already read
    /// is no longer in it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// let mut lines = b"a\nb\n".as_slice().lines();
    /// *lines.get_mut() = b"c\n";
    /// assert_eq!(lines.into_inner(), b"c\n");
    /// ```
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns a reference to the source.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// let mut lines = b"a\nb\n".as_slice().lines();
    /// assert_eq!(*lines.get_ref(), b"a\nb\n");
    /// ```
    // Takes `&mut self` because Tokio's method does.
    pub fn get_ref(&mut self) -> &R {
        &self.reader
    }

    /// Consumes this `Lines` and returns the source, without an incomplete line that was
    /// already read.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut lines = b"head\nbody".as_slice().lines();
    /// lines.next_line().await?;
    /// assert_eq!(lines.into_inner(), b"body");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn into_inner(self) -> R {
        self.reader
    }
}

impl<R: AsyncBufRead> Lines<R> {
    /// Polls for the next line; see [`next_line`](Self::next_line).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, pin::pin};
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut lines = pin!(b"a\nb\n".as_slice().lines());
    /// let line = poll_fn(|cx| lines.as_mut().poll_next_line(cx)).await?;
    /// assert_eq!(line.as_deref(), Some("a"));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn poll_next_line(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<String>>> {
        let this = self.project();
        ready!(poll_until(this.reader, cx, b'\n', this.bytes))?;
        let mut line = mem::take(this.bytes);
        if line.is_empty() {
            return Poll::Ready(Ok(None));
        }
        // A `\r` is part of the end only if the `\n` is there.
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
        }
        let text = String::from_utf8(line);
        Poll::Ready(text.map(Some).map_err(|error| io::Error::new(ErrorKind::InvalidData, error)))
    }
}
