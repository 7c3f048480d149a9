//! `AsyncBufReadExt`: methods of sources that are buffered.

use std::pin::Pin;

use super::{
    lines::Lines,
    split::Split,
    until::{FillBuf, IntoText, ReadLine, ReadUntil},
};
use crate::io::AsyncBufRead;

/// Methods of everything that implements [`AsyncBufRead`].
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
    /// Appends everything up to the next `byte` to `buf`, with it, and answers how much
    /// that was. Zero is the end of the source.
    ///
    /// If the end comes before `byte`, what is before the end is appended: look at the last
    /// byte to know. There is no limit: a source that never has the delimiter fills the
    /// memory. [`take`](super::AsyncReadExt::take) sets one.
    ///
    /// # Errors
    ///
    /// Those of the source, except `Interrupted`; what was read before is in `buf`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: what was read is in `buf`, and another call goes on behind it.
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

    /// Appends the next line to `buf`, with its `\n` if it has one, and answers how many
    /// bytes that were. Zero is the end of the source.
    ///
    /// There is no limit to the length of a line;
    /// [`take`](super::AsyncReadExt::take) sets one.
    ///
    /// # Errors
    ///
    /// - Those of the source, except `Interrupted`; what was read before is in `buf`, unless
    ///   it is not UTF-8.
    /// - `InvalidData` if the line is not UTF-8. `buf` is as it was, and the line is gone.
    ///
    /// # Cancel safety
    ///
    /// Not safe: what was read is lost if this is dropped before it is done, and `buf` is
    /// left empty. [`Lines::next_line`] and [`read_until`](Self::read_until) lose nothing.
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

    /// Cuts the source into segments at each `byte`.
    ///
    /// # Cancel safety
    ///
    /// See [`Split::next_segment`].
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

    /// Shows what is buffered; waits for more if nothing is. Empty is the end of the source.
    ///
    /// What is shown stays until it is [consumed](Self::consume).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: what was read stays in the buffer.
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

    /// Takes `amt` bytes of what [`fill_buf`](Self::fill_buf) showed out of the buffer.
    ///
    /// # Panics
    ///
    /// A source may panic if that is more than was shown.
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

    /// Cuts the source into lines.
    ///
    /// # Cancel safety
    ///
    /// See [`Lines::next_line`].
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
