//! `AsyncBufReadExt`: the methods of buffered sources.

use std::pin::Pin;

use super::{
    lines::Lines,
    read_until::{FillBuf, IntoText, ReadLine, ReadUntil},
    split::Split,
};
use crate::io::AsyncBufRead;

/// Methods of every type that implements [`AsyncBufRead`].
///
/// # Examples
///
/// ```
/// use blitz_io::io::AsyncBufReadExt;
///
/// # blitz_io::run(async {
/// let mut source = b"name: value\n".as_slice();
/// let mut name = Vec::new();
/// source.read_until(b':', &mut name).await?;
/// assert_eq!(name, b"name:");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub trait AsyncBufReadExt: AsyncBufRead {
    /// Reads up to and including the next `byte`, appends everything to `buf`, and returns
    /// how many bytes were read.
    ///
    /// Zero means the end of the source. If the source ends before the next `byte`, the
    /// rest is appended: the last byte shows which of the two happened. There is no limit:
    /// a source that never has the delimiter fills the memory.
    /// [`take`](super::AsyncReadExt::take) sets a limit.
    ///
    /// # Errors
    ///
    /// Returns the source's errors, except `Interrupted`; the bytes read until then are in
    /// `buf`.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: the bytes that were read are in `buf`, and another call
    /// continues after them.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut source = b"lorem-ipsum".as_slice();
    /// let mut buf = Vec::new();
    /// assert_eq!(source.read_until(b'-', &mut buf).await?, 6);
    /// assert_eq!(source.read_until(b'-', &mut buf).await?, 5);
    /// assert_eq!(source.read_until(b'-', &mut buf).await?, 0);
    /// assert_eq!(buf, b"lorem-ipsum");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read_until<'a>(&'a mut self, byte: u8, buf: &'a mut Vec<u8>) -> ReadUntil<'a, Self>
    where
        Self: Unpin,
    {
        let length = buf.len();
        ReadUntil::new(self, byte, buf, length)
    }

    /// Reads the next line, appends it to `buf` with its `\n` if it has one, and returns
    /// how many bytes were read.
    ///
    /// Zero means the end of the source. There is no limit to the length of a line;
    /// [`take`](super::AsyncReadExt::take) sets one.
    ///
    /// # Errors
    ///
    /// - Returns the source's errors, except `Interrupted`; the text read until then is in
    ///   `buf`, unless it is not UTF-8.
    /// - Returns `InvalidData` if the line is not UTF-8. `buf` then has its earlier
    ///   contents, and the line is lost.
    ///
    /// # Cancel safety
    ///
    /// This method is not cancel safe: if its future is dropped before completion, the
    /// bytes that were read are lost, and `buf` is left empty. [`Lines::next_line`] and
    /// [`read_until`](Self::read_until) lose nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut source = b"foo\nbar".as_slice();
    /// let mut line = String::new();
    /// assert_eq!(source.read_line(&mut line).await?, 4);
    /// assert_eq!(line, "foo\n");
    /// line.clear();
    /// assert_eq!(source.read_line(&mut line).await?, 3);
    /// assert_eq!(line, "bar");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read_line<'a>(&'a mut self, buf: &'a mut String) -> ReadLine<'a, Self>
    where
        Self: Unpin,
    {
        ReadLine::new(self, IntoText::taken(buf), buf)
    }

    /// Splits the source into segments at each `byte`.
    ///
    /// # Cancel safety
    ///
    /// The guarantee is that of [`Split::next_segment`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut fields = Cursor::new("a:b").split(b':');
    /// assert_eq!(fields.next_segment().await?, Some(b"a".to_vec()));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn split(self, byte: u8) -> Split<Self>
    where
        Self: Sized + Unpin,
    {
        Split::new(self, byte)
    }

    /// Returns the buffered bytes; waits for more if there are none. An empty slice is the
    /// end of the source.
    ///
    /// The bytes stay buffered until they are [consumed](Self::consume).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: the bytes that were read stay in the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut source = b"   text".as_slice();
    /// let spaces = source.fill_buf().await?.iter().take_while(|byte| **byte == b' ').count();
    /// source.consume(spaces);
    /// assert_eq!(source, b"text");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn fill_buf(&mut self) -> FillBuf<'_, Self>
    where
        Self: Unpin,
    {
        FillBuf::new(Some(self))
    }

    /// Removes `amt` bytes, which [`fill_buf`](Self::fill_buf) returned, from the start of
    /// the buffer.
    ///
    /// # Panics
    ///
    /// A source may panic if `amt` is more than `fill_buf` returned.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// let mut source = b"text".as_slice();
    /// source.consume(3);
    /// assert_eq!(source, b"t");
    /// ```
    fn consume(&mut self, amt: usize)
    where
        Self: Unpin,
    {
        Pin::new(self).consume(amt);
    }

    /// Splits the source into lines.
    ///
    /// # Cancel safety
    ///
    /// The guarantee is that of [`Lines::next_line`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncBufReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut lines = b"first\nsecond\n".as_slice().lines();
    /// assert_eq!(lines.next_line().await?.as_deref(), Some("first"));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn lines(self) -> Lines<Self>
    where
        Self: Sized,
    {
        Lines::new(self)
    }
}

impl<R: AsyncBufRead + ?Sized> AsyncBufReadExt for R {}
