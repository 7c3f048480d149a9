//! `AsyncReadExt`: the methods of sources.

use bytes::BufMut;

use super::{
    chain::Chain,
    number::{Big, Little, ReadNumber},
    read_futures::{Read, ReadExact, ReadInto},
    read_to_end::{ReadToEnd, ReadToString, ReadToVec},
    take::Take,
};
use crate::io::{AsyncRead, ReadBuf};

/// Defines the methods that read a number. `$suffix` is the byte order in the names of
/// std's methods.
macro_rules! numbers {
    ($order:ident, $suffix:literal, $first:literal, $safe:literal;
     $($name:ident: $number:ident, $words:literal;)*) => {$(
        #[doc = concat!("Reads ", $words, $first, ".")]
        ///
        /// # Errors
        ///
        /// Returns `UnexpectedEof` if the source ends before the number's last byte;
        /// otherwise the source's errors, except `Interrupted`.
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

/// Methods of every type that implements [`AsyncRead`].
///
/// # Examples
///
/// ```
/// use blitz_io::io::AsyncReadExt;
///
/// # blitz_io::run(async {
/// // A length of two bytes, then that many bytes of text.
/// let mut packet = b"\x00\x05hello and more".as_slice();
/// let length = packet.read_u16().await?;
/// let mut text = String::new();
/// packet.take(length.into()).read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub trait AsyncReadExt: AsyncRead {
    /// Chains two sources: the result reads this one to its end, then `next`.
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

    /// Reads once, at most as many bytes as `buf` holds, and returns how many were read.
    ///
    /// Zero means the end of the source, or an empty `buf`. A read of fewer bytes than
    /// `buf` holds is not the end: more may come.
    ///
    /// # Errors
    ///
    /// Returns the source's errors; nothing was read in that case.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if its future is dropped before completion, nothing was
    /// read.
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

    /// Reads once, appends the bytes to `buf`, and returns how many were read.
    ///
    /// Zero means the end of the source, or a `buf` without room. A `Vec<u8>` or `BytesMut`
    /// always has room, because it grows.
    ///
    /// # Errors
    ///
    /// Returns the source's errors; nothing was read in that case.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if its future is dropped before completion, nothing was
    /// read.
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

    /// Reads until `buf` is full, and returns its length.
    ///
    /// # Errors
    ///
    /// Returns `UnexpectedEof` if the source ends before `buf` is full; otherwise the
    /// source's errors, except `Interrupted`. The bytes read until then are in `buf`, but
    /// their number remains unknown.
    ///
    /// # Cancel safety
    ///
    /// This method is not cancel safe: some bytes may have been read when its future is
    /// dropped, and there is no way to find out how many.
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

    /// Reads to the end of the source, appends all bytes to `buf`, and returns how many
    /// were read.
    ///
    /// A `buf` that has enough capacity from the start does not grow.
    ///
    /// # Errors
    ///
    /// Returns the source's errors, except `Interrupted`; `OutOfMemory` if `buf` cannot
    /// grow. The bytes read until then are in `buf`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before completion, the bytes read until then are in `buf`,
    /// and another call continues after them.
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
        ReadToEnd::new(self, ReadToVec::borrowed(buf))
    }

    /// Reads to the end of the source, appends the text to `dst`, and returns how many
    /// bytes were read.
    ///
    /// # Errors
    ///
    /// Returns the source's errors, except `Interrupted`; `InvalidData` if the bytes are
    /// not UTF-8. After an error `dst` has its earlier contents, and the bytes that were
    /// read are lost.
    ///
    /// # Cancel safety
    ///
    /// This method is not cancel safe: if its future is dropped before completion, the
    /// bytes that were read are lost, and `dst` is left empty.
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

    /// Creates a source that ends after `limit` bytes of this one.
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
