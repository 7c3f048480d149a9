//! `AsyncWriteExt`: the methods of sinks.

use std::io::IoSlice;

use bytes::Buf;

use super::{
    number::{Big, Little, WriteNumber},
    write_futures::{Flush, Shutdown, Write, WriteAll, WriteAllBuf, WriteBuf, WriteVectored},
};
use crate::io::AsyncWrite;

/// Defines the methods that write a number. `$suffix` is the byte order in the names of
/// std's methods.
macro_rules! numbers {
    ($order:ident, $suffix:literal, $first:literal, $safe:literal;
     $($name:ident: $number:ident, $words:literal;)*) => {$(
        #[doc = concat!("Writes ", $words, $first, ".")]
        ///
        /// # Errors
        ///
        /// Returns `WriteZero` if the sink accepts no more bytes; otherwise the sink's
        /// errors, except `Interrupted`.
        ///
        /// # Cancel safety
        ///
        #[doc = $safe]
        ///
        /// # Examples
        ///
        /// ```
        /// use blitz_io::io::AsyncWriteExt;
        ///
        /// # blitz_io::run(async {
        /// let mut sink = Vec::new();
        #[doc = concat!("sink.", stringify!($name), "(42", stringify!($number), ").await?;")]
        #[doc = concat!("assert_eq!(sink, 42", stringify!($number), ".to_", $suffix, "_bytes());")]
        /// # std::io::Result::Ok(()) }).unwrap();
        /// ```
        fn $name(&mut self, n: $number) -> WriteNumber<&mut Self, $order<$number>>
        where
            Self: Unpin,
        {
            WriteNumber::new(self, n)
        }
    )*};
}

/// Methods of every type that implements [`AsyncWrite`].
///
/// # Examples
///
/// ```
/// use blitz_io::io::AsyncWriteExt;
///
/// # blitz_io::run(async {
/// let mut packet = Vec::new();
/// packet.write_u16(5).await?;
/// packet.write_all(b"hello").await?;
/// packet.flush().await?;
/// assert_eq!(packet, b"\x00\x05hello");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub trait AsyncWriteExt: AsyncWrite {
    /// Writes once from `src`, and returns how many bytes were written.
    ///
    /// Zero means that `src` is empty, or that the sink accepts no more bytes. To write
    /// everything, use [`write_all`](Self::write_all).
    ///
    /// # Errors
    ///
    /// Returns the sink's errors; nothing was written in that case.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if its future is dropped before completion, nothing was
    /// written.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// let mut bytes = [0; 3];
    /// let n = Cursor::new(&mut bytes[..]).write(b"abcdef").await?;
    /// assert_eq!((n, bytes), (3, *b"abc"));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn write<'a>(&'a mut self, src: &'a [u8]) -> Write<'a, Self>
    where
        Self: Unpin,
    {
        Write::new(self, src)
    }

    /// Writes once from several buffers in order, as if they were one, and returns how many
    /// bytes were written.
    ///
    /// # Errors
    ///
    /// Returns the sink's errors; nothing was written in that case.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if its future is dropped before completion, nothing was
    /// written.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::IoSlice;
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// let mut sink = Vec::new();
    /// let parts = [IoSlice::new(b"head "), IoSlice::new(b"body")];
    /// assert_eq!(sink.write_vectored(&parts).await?, 9);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn write_vectored<'a, 'b>(&'a mut self, bufs: &'a [IoSlice<'b>]) -> WriteVectored<'a, 'b, Self>
    where
        Self: Unpin,
    {
        WriteVectored::new(self, bufs)
    }

    /// Writes once from `src`, advances `src` by the bytes written, and returns how many
    /// there were.
    ///
    /// If `src` has several chunks and the sink supports vectored writes, one write takes
    /// from several of them.
    ///
    /// # Errors
    ///
    /// Returns the sink's errors; nothing was written in that case.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if its future is dropped before completion, nothing was
    /// written.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// let mut bytes = [0; 4];
    /// let mut rest = b"abcdef".as_slice();
    /// Cursor::new(&mut bytes[..]).write_buf(&mut rest).await?;
    /// assert_eq!(rest, b"ef");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn write_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteBuf::new(self, src)
    }

    /// Writes all bytes of `src`, which is empty afterwards.
    ///
    /// # Errors
    ///
    /// Returns `WriteZero` if the sink accepts no more bytes; otherwise the sink's errors,
    /// except `Interrupted`. The bytes left in `src` were not written.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before completion, the bytes left in `src` were not
    /// written, and another call continues with them.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// let mut sink = Vec::new();
    /// let mut rest = b"all of it".as_slice();
    /// sink.write_all_buf(&mut rest).await?;
    /// assert!(rest.is_empty());
    /// assert_eq!(sink, b"all of it");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn write_all_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteAllBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteAllBuf::new(self, src)
    }

    /// Writes all of `src`.
    ///
    /// # Errors
    ///
    /// Returns `WriteZero` if the sink accepts no more bytes; otherwise the sink's errors,
    /// except `Interrupted`. The number of bytes written until then is unknown.
    ///
    /// # Cancel safety
    ///
    /// This method is not cancel safe: some bytes may have been written when its future is
    /// dropped, and there is no way to find out how many.
    /// [`write_all_buf`](Self::write_all_buf) shows this in its `src`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::{AsyncWriteExt, ErrorKind};
    ///
    /// # blitz_io::run(async {
    /// let mut bytes = [0; 3];
    /// let mut sink = Cursor::new(&mut bytes[..]);
    /// sink.write_all(b"ab").await?;
    /// let full = sink.write_all(b"cd").await;
    /// assert_eq!(full.unwrap_err().kind(), ErrorKind::WriteZero);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn write_all<'a>(&'a mut self, src: &'a [u8]) -> WriteAll<'a, Self>
    where
        Self: Unpin,
    {
        WriteAll::new(self, src)
    }

    numbers! {
        Big, "be", "",
        "Nothing is lost: if this is dropped before it is done, nothing was written.";
        write_u8: u8, "an unsigned byte";
        write_i8: i8, "a signed byte";
    }

    numbers! {
        Big, "be", ", the highest byte first",
        "Not safe: some bytes may have been written when this is dropped before it is done.";
        write_u16: u16, "an unsigned number of 16 bits";
        write_i16: i16, "a signed number of 16 bits";
        write_u32: u32, "an unsigned number of 32 bits";
        write_i32: i32, "a signed number of 32 bits";
        write_u64: u64, "an unsigned number of 64 bits";
        write_i64: i64, "a signed number of 64 bits";
        write_u128: u128, "an unsigned number of 128 bits";
        write_i128: i128, "a signed number of 128 bits";
        write_f32: f32, "a floating-point number of 32 bits";
        write_f64: f64, "a floating-point number of 64 bits";
    }

    numbers! {
        Little, "le", ", the lowest byte first",
        "Not safe: some bytes may have been written when this is dropped before it is done.";
        write_u16_le: u16, "an unsigned number of 16 bits";
        write_i16_le: i16, "a signed number of 16 bits";
        write_u32_le: u32, "an unsigned number of 32 bits";
        write_i32_le: i32, "a signed number of 32 bits";
        write_u64_le: u64, "an unsigned number of 64 bits";
        write_i64_le: i64, "a signed number of 64 bits";
        write_u128_le: u128, "an unsigned number of 128 bits";
        write_i128_le: i128, "a signed number of 128 bits";
        write_f32_le: f32, "a floating-point number of 32 bits";
        write_f64_le: f64, "a floating-point number of 64 bits";
    }

    /// Flushes the bytes that the sink still buffers, and waits until they reach their
    /// destination.
    ///
    /// # Errors
    ///
    /// Returns the sink's errors.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: bytes that were not flushed stay buffered, and another
    /// call continues with them.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// let mut sink = Vec::new();
    /// sink.write_all(b"text").await?;
    /// sink.flush().await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn flush(&mut self) -> Flush<'_, Self>
    where
        Self: Unpin,
    {
        Flush::new(self)
    }

    /// Shuts the sink down cleanly: flushes it, and informs the other side that no more
    /// bytes will come.
    ///
    /// # Errors
    ///
    /// Returns the sink's errors.
    ///
    /// # Cancel safety
    ///
    /// The shutdown may or may not have begun when the future is dropped; another call
    /// continues it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// let mut sink = Vec::new();
    /// sink.write_all(b"the end").await?;
    /// sink.shutdown().await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn shutdown(&mut self) -> Shutdown<'_, Self>
    where
        Self: Unpin,
    {
        Shutdown::new(self)
    }
}

impl<W: AsyncWrite + ?Sized> AsyncWriteExt for W {}
