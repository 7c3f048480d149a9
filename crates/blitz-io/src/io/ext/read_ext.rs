//! `AsyncReadExt`: methods of sources.

use bytes::BufMut;

use super::{
    chain::Chain,
    number::{Big, Little, ReadNumber},
    reading::{Read, ReadExact, ReadInto},
    take::Take,
    to_end::{Collecting, ReadToEnd, ReadToString},
};
use crate::io::{AsyncRead, ReadBuf};

/// The methods that read a number. `$suffix` is the order of its bytes in the names of std.
macro_rules! numbers {
    ($order:ident, $suffix:literal, $first:literal, $safe:literal;
     $($name:ident: $number:ident, $words:literal;)*) => {$(
        #[doc = concat!("Reads ", $words, $first, ".")]
        ///
        /// # Errors
        ///
        /// `UnexpectedEof` if the source ends before the last byte of it; else those of the
        /// source, except `Interrupted`.
        ///
        /// # Cancel safety
        ///
        #[doc = $safe]
        ///
        /// # Examples
        ///
        /// ```
        /// use blitz_io::io::AsyncReadExt;
        ///
        /// # blitz_io::run(async {
        #[doc = concat!("let bytes = 42", stringify!($number), ".to_", $suffix, "_bytes();")]
        #[doc = concat!("assert_eq!(bytes.as_slice().", stringify!($name), "().await?, 42", stringify!($number), ");")]
        /// # std::io::Result::Ok(()) }).unwrap();
        /// ```
        fn $name(&mut self) -> ReadNumber<&mut Self, $order<$number>>
        where
            Self: Unpin,
        {
            ReadNumber::new(self)
        }
    )*};
}

/// Methods of everything that implements [`AsyncRead`].
///
/// # Examples
///
/// ```
/// use blitz_io::io::AsyncReadExt;
///
/// # blitz_io::run(async {
/// // A length of two bytes, and so many bytes of text.
/// let mut packet = b"\x00\x05hello and more".as_slice();
/// let length = packet.read_u16().await?;
/// let mut text = String::new();
/// packet.take(length.into()).read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub trait AsyncReadExt: AsyncRead {
    /// One source after another: reads this one to its end, then `next`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut bytes = Vec::new();
    /// b"ab".as_slice().chain(b"cd".as_slice()).read_to_end(&mut bytes).await?;
    /// assert_eq!(bytes, b"abcd");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn chain<R>(self, next: R) -> Chain<Self, R>
    where
        Self: Sized,
        R: AsyncRead,
    {
        Chain::new(self, next)
    }

    /// Reads once, at most as much as `buf` holds, and answers how much that was.
    ///
    /// Zero is the end of the source, or an empty `buf`. Fewer bytes than `buf` holds mean
    /// nothing: more may come.
    ///
    /// # Errors
    ///
    /// Those of the source; nothing was read then.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: if this is dropped before it is done, nothing was read.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut source = b"12345".as_slice();
    /// let mut buf = [0; 3];
    /// assert_eq!(source.read(&mut buf).await?, 3);
    /// assert_eq!(source.read(&mut buf).await?, 2);
    /// assert_eq!(source.read(&mut buf).await?, 0);
    /// assert_eq!(buf, *b"453");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> Read<'a, Self>
    where
        Self: Unpin,
    {
        Read::new(self, buf)
    }

    /// Reads once, appends what was read to `buf`, and answers how much that was.
    ///
    /// Zero is the end of the source, or a `buf` without room. A `Vec<u8>` or `BytesMut` is
    /// never without: it grows.
    ///
    /// # Errors
    ///
    /// Those of the source; nothing was read then.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: if this is dropped before it is done, nothing was read.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut buf = b"have ".to_vec();
    /// assert_eq!(b"more".as_slice().read_buf(&mut buf).await?, 4);
    /// assert_eq!(buf, b"have more");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read_buf<'a, B>(&'a mut self, buf: &'a mut B) -> ReadInto<'a, Self, B>
    where
        Self: Unpin,
        B: BufMut + ?Sized,
    {
        ReadInto::new(self, buf)
    }

    /// Reads until `buf` is full; answers with its length.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the source ends before; else those of the source, except
    /// `Interrupted`. What was read before is in `buf`, but how much that is remains
    /// unknown.
    ///
    /// # Cancel safety
    ///
    /// Not safe: some bytes may have been read when this is dropped, and nobody knows how
    /// many.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncReadExt, ErrorKind};
    ///
    /// # blitz_io::run(async {
    /// let mut source = b"12345".as_slice();
    /// let mut buf = [0; 4];
    /// source.read_exact(&mut buf).await?;
    /// assert_eq!(buf, *b"1234");
    /// let short = source.read_exact(&mut buf).await;
    /// assert_eq!(short.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> ReadExact<'a, Self>
    where
        Self: Unpin,
    {
        ReadExact::new(self, ReadBuf::new(buf))
    }

    numbers! {
        Big, "be", "",
        "Nothing is lost: if this is dropped before it is done, nothing was read.";
        read_u8: u8, "an unsigned byte";
        read_i8: i8, "a signed byte";
    }

    numbers! {
        Big, "be", ", the highest byte first",
        "Not safe: bytes that were read are lost if this is dropped before it is done.";
        read_u16: u16, "an unsigned number of 16 bits";
        read_i16: i16, "a signed number of 16 bits";
        read_u32: u32, "an unsigned number of 32 bits";
        read_i32: i32, "a signed number of 32 bits";
        read_u64: u64, "an unsigned number of 64 bits";
        read_i64: i64, "a signed number of 64 bits";
        read_u128: u128, "an unsigned number of 128 bits";
        read_i128: i128, "a signed number of 128 bits";
        read_f32: f32, "a floating-point number of 32 bits";
        read_f64: f64, "a floating-point number of 64 bits";
    }

    numbers! {
        Little, "le", ", the lowest byte first",
        "Not safe: bytes that were read are lost if this is dropped before it is done.";
        read_u16_le: u16, "an unsigned number of 16 bits";
        read_i16_le: i16, "a signed number of 16 bits";
        read_u32_le: u32, "an unsigned number of 32 bits";
        read_i32_le: i32, "a signed number of 32 bits";
        read_u64_le: u64, "an unsigned number of 64 bits";
        read_i64_le: i64, "a signed number of 64 bits";
        read_u128_le: u128, "an unsigned number of 128 bits";
        read_i128_le: i128, "a signed number of 128 bits";
        read_f32_le: f32, "a floating-point number of 32 bits";
        read_f64_le: f64, "a floating-point number of 64 bits";
    }

    /// Reads to the end of the source, appends everything to `buf`, and answers how much
    /// that was.
    ///
    /// A `buf` that came with enough room does not grow.
    ///
    /// # Errors
    ///
    /// Those of the source, except `Interrupted`; `OutOfMemory` if `buf` cannot grow. What
    /// was read before is in `buf`.
    ///
    /// # Cancel safety
    ///
    /// What was read is in `buf` if this is dropped before it is done, and another call goes
    /// on behind it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut buf = vec![0];
    /// assert_eq!([1, 2, 3].as_slice().read_to_end(&mut buf).await?, 3);
    /// assert_eq!(buf, [0, 1, 2, 3]);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read_to_end<'a>(&'a mut self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, Self>
    where
        Self: Unpin,
    {
        ReadToEnd::new(self, Collecting::lent(buf))
    }

    /// Reads to the end of the source, appends everything to `dst`, and answers how many
    /// bytes that were.
    ///
    /// # Errors
    ///
    /// Those of the source, except `Interrupted`; `InvalidData` if it is not UTF-8. `dst` is
    /// as it was, and what was read is gone.
    ///
    /// # Cancel safety
    ///
    /// Not safe: what was read is lost if this is dropped before it is done, and `dst` is
    /// left empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncReadExt, ErrorKind};
    ///
    /// # blitz_io::run(async {
    /// let mut text = "déjà ".to_owned();
    /// assert_eq!("vu".as_bytes().read_to_string(&mut text).await?, 2);
    /// let error = b"\xff".as_slice().read_to_string(&mut text).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidData);
    /// assert_eq!(text, "déjà vu");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn read_to_string<'a>(&'a mut self, dst: &'a mut String) -> ReadToString<'a, Self>
    where
        Self: Unpin,
    {
        ReadToString::of(self, dst)
    }

    /// A source that ends after `limit` bytes of this one.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut buf = [0; 8];
    /// assert_eq!(b"abcdef".as_slice().take(3).read(&mut buf).await?, 3);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn take(self, limit: u64) -> Take<Self>
    where
        Self: Sized,
    {
        Take::new(self, limit)
    }
}

impl<R: AsyncRead + ?Sized> AsyncReadExt for R {}
