//! Buffers that are given away and come back.
//!
//! An operation that the kernel does by itself works on memory while nobody waits for it,
//! and perhaps after whoever asked for it has gone. So it takes its buffer by value, and
//! answers with the result and the buffer. [`OwnedBuf`] is what can be written from and
//! [`OwnedBufMut`] what can be read into; [`Slice`] is a part of either.
//!
//! The methods that take them end in `_owned`: [`TcpStream::read_owned`] and its like.
//!
//! [`TcpStream::read_owned`]: crate::net::TcpStream::read_owned
//!
//! # Examples
//!
//! ```
//! use blitz_io::{buf::OwnedBuf, net::{TcpListener, TcpStream}};
//!
//! # blitz_io::run(async {
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let client = TcpStream::connect(listener.local_addr()?).await?;
//! let (server, _) = listener.accept().await?;
//!
//! let (result, _) = client.write_all_owned("hello").await;
//! result?;
//!
//! // At most four bytes of the buffer.
//! let buf = vec![0; 1024].slice(..4);
//! let (result, buf) = server.read_exact_owned(buf).await;
//! result?;
//! assert_eq!(buf.as_slice(), b"hell");
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

use std::ops::{Bound, RangeBounds};

/// A buffer that can be written from.
///
/// Implemented for vectors, boxed slices, strings and what lives for ever, and with the
/// feature `io-util` for `Bytes` and `BytesMut`.
///
/// # Safety
///
/// 1. As long as the buffer is not changed through a mutable reference,
///    [`stable_ptr`](Self::stable_ptr) answers with the same address, also after the buffer
///    was moved; [`bytes_total`](Self::bytes_total) bytes there are the buffer's.
/// 2. The first [`bytes_init`](Self::bytes_init) of them are initialised; that is no more
///    than there are in total.
/// 3. Nobody else writes to them.
///
/// # Examples
///
/// ```
/// use blitz_io::buf::OwnedBuf;
///
/// let buf = Vec::from(b"hello");
/// assert_eq!(buf.bytes_init(), 5);
/// assert_eq!(buf.slice(1..4).as_slice(), b"ell");
/// ```
pub unsafe trait OwnedBuf: Send + 'static {
    /// Where its memory begins.
    fn stable_ptr(&self) -> *const u8;

    /// How many bytes are initialised, from the beginning.
    fn bytes_init(&self) -> usize;

    /// How many bytes it has, initialised or not.
    fn bytes_total(&self) -> usize {
        self.bytes_init()
    }

    /// The part that is initialised.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// assert_eq!(OwnedBuf::as_slice(&"hello"), b"hello");
    /// ```
    fn as_slice(&self) -> &[u8] {
        // SAFETY: so many are there and initialised, and nobody writes to them while we are
        // borrowed: the trait's 1. to 3.
        unsafe { std::slice::from_raw_parts(self.stable_ptr(), self.bytes_init()) }
    }

    /// A part of it, by its place among all bytes, initialised or not.
    ///
    /// # Panics
    ///
    /// If the range is not within the buffer, or begins behind what is initialised: what is
    /// read there could not be reached.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// let slice = Vec::from(b"hello").slice(1..3);
    /// assert_eq!(slice.as_slice(), b"el");
    /// assert_eq!(slice.into_inner(), b"hello");
    /// ```
    #[track_caller]
    fn slice(self, range: impl RangeBounds<usize>) -> Slice<Self>
    where
        Self: Sized,
    {
        let total = self.bytes_total();
        let begin = match range.start_bound() {
            Bound::Included(&at) => at,
            Bound::Excluded(&at) => at.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&at) => at.saturating_add(1),
            Bound::Excluded(&at) => at,
            Bound::Unbounded => total,
        };
        assert!(
            begin <= end && end <= total,
            "the range {begin}..{end} is not within the buffer: it has {total} bytes"
        );
        assert!(
            begin <= self.bytes_init(),
            "the range {begin}..{end} begins behind the {} bytes that are initialised: fill them \
             first",
            self.bytes_init()
        );
        Slice { buf: self, begin, end }
    }
}

/// A buffer that can be read into.
///
/// What is read goes to its beginning, and to as much of it as there is, initialised or not:
/// a `Vec` of no length offers what it has reserved.
///
/// # Safety
///
/// 1. [`stable_mut_ptr`](Self::stable_mut_ptr) is the address of
///    [`stable_ptr`](OwnedBuf::stable_ptr), for writing. The bytes there may be written
///    through it until the buffer is next borrowed or used.
/// 2. Nobody else reads them.
///
/// # Examples
///
/// ```
/// use blitz_io::buf::{OwnedBuf, OwnedBufMut};
///
/// let mut buf = Vec::with_capacity(16);
/// assert!(buf.bytes_total() >= 16);
/// unsafe {
///     buf.stable_mut_ptr().write(b'x');
///     buf.set_init(1);
/// }
/// assert_eq!(buf, b"x");
/// ```
pub unsafe trait OwnedBufMut: OwnedBuf {
    /// Where its memory begins, to be written.
    fn stable_mut_ptr(&mut self) -> *mut u8;

    /// So many bytes were read into it. A buffer that has a length of its own has this one
    /// then: a `Vec` that was longer is cut off there.
    ///
    /// # Safety
    ///
    /// 1. So many are initialised, from the beginning.
    unsafe fn set_init(&mut self, count: usize);
}

// SAFETY: 1. to 3. the memory is on the heap and the vector's own.
unsafe impl OwnedBuf for Vec<u8> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }

    fn bytes_total(&self) -> usize {
        self.capacity()
    }
}

// SAFETY: 1. and 2. as above.
unsafe impl OwnedBufMut for Vec<u8> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        // SAFETY: 1., and no more than there are.
        unsafe { self.set_len(count) };
    }
}

// SAFETY: 1. to 3. the memory is on the heap and the box's own.
unsafe impl OwnedBuf for Box<[u8]> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. and 2. as above.
unsafe impl OwnedBufMut for Box<[u8]> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, _count: usize) {}
}

// SAFETY: 1. to 3. it lives for ever, and is only read.
unsafe impl OwnedBuf for &'static [u8] {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. as above.
unsafe impl<const N: usize> OwnedBuf for &'static [u8; N] {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        N
    }
}

// SAFETY: 1. to 3. as above.
unsafe impl OwnedBuf for &'static str {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. as the vector that it is. It is no `OwnedBufMut`: what is read may be no
// text.
unsafe impl OwnedBuf for String {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. the memory is shared and counted, does not move with the handle, and is
// only read.
#[cfg(feature = "io-util")]
unsafe impl OwnedBuf for bytes::Bytes {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. the part of the memory that this handle has is its alone, and does not
// move with it.
#[cfg(feature = "io-util")]
unsafe impl OwnedBuf for bytes::BytesMut {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }

    fn bytes_total(&self) -> usize {
        self.capacity()
    }
}

// SAFETY: 1. and 2. as above.
#[cfg(feature = "io-util")]
unsafe impl OwnedBufMut for bytes::BytesMut {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        // SAFETY: 1., and no more than there are.
        unsafe { self.set_len(count) };
    }
}

/// A part of a buffer, by [`OwnedBuf::slice`].
///
/// Reading into a part makes its buffer longer if it must be, and never shorter: what is
/// behind the part stays.
///
/// # Examples
///
/// ```
/// use blitz_io::buf::OwnedBuf;
///
/// let slice = Vec::from(b"hello").slice(3..);
/// assert_eq!((slice.begin(), slice.end()), (3, 5));
/// assert_eq!(slice.as_slice(), b"lo");
/// assert_eq!(slice.get_ref(), b"hello");
/// ```
// Not `Clone`: a clone of a vector may have less memory than the part needs.
#[derive(Debug)]
pub struct Slice<B> {
    buf: B,
    begin: usize,
    end: usize,
}

impl<B> Slice<B> {
    /// Where it begins in its buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// assert_eq!("hello".slice(2..).begin(), 2);
    /// ```
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// Where it ends in its buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// assert_eq!("hello".slice(..=2).end(), 3);
    /// ```
    pub fn end(&self) -> usize {
        self.end
    }

    /// The buffer that it is a part of.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// assert_eq!(*"hello".slice(2..).get_ref(), "hello");
    /// ```
    pub fn get_ref(&self) -> &B {
        &self.buf
    }

    /// The buffer that it is a part of, back.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// assert_eq!("hello".slice(2..).into_inner(), "hello");
    /// ```
    pub fn into_inner(self) -> B {
        self.buf
    }
}

// SAFETY: 1. to 3. as its buffer, of which it has the bytes from `begin` to `end`: `slice`
// has looked at how many there are, and nobody but us can change the buffer since.
unsafe impl<B: OwnedBuf> OwnedBuf for Slice<B> {
    fn stable_ptr(&self) -> *const u8 {
        self.buf.stable_ptr().wrapping_add(self.begin)
    }

    fn bytes_init(&self) -> usize {
        self.buf.bytes_init().min(self.end).saturating_sub(self.begin)
    }

    fn bytes_total(&self) -> usize {
        self.end - self.begin
    }
}

// SAFETY: 1. and 2. as above.
unsafe impl<B: OwnedBufMut> OwnedBufMut for Slice<B> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.buf.stable_mut_ptr().wrapping_add(self.begin)
    }

    unsafe fn set_init(&mut self, count: usize) {
        if self.begin + count > self.buf.bytes_init() {
            // SAFETY: 1.: what is before the part is initialised (`slice` has looked), and so
            // many of it are.
            unsafe { self.buf.set_init(self.begin + count) };
        }
    }
}
