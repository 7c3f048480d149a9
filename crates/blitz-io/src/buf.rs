//! Owned buffers, which an operation takes by value and returns with its result.
//!
//! An operation that the kernel carries out by itself works on memory while no task waits
//! for it, and perhaps after the task that requested it has ended. So the operation takes
//! its buffer by value, and returns the result and the buffer. Operations write from an
//! [`OwnedBuf`] and read into an [`OwnedBufMut`]; a [`Slice`] is a part of either.
//!
//! The methods that take owned buffers end in `_owned`, such as [`TcpStream::read_owned`].
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
/// The trait is implemented for vectors, boxed slices, strings and `'static` slices, and
/// with the feature `io-util` for `Bytes` and `BytesMut`.
///
/// # Safety
///
/// 1. As long as the buffer is not changed through a mutable reference,
///    [`stable_ptr`](Self::stable_ptr) must return the same address, also after the buffer
///    was moved; the [`bytes_total`](Self::bytes_total) bytes there must belong to the
///    buffer.
/// 2. The first [`bytes_init`](Self::bytes_init) of them must be initialised; that must not
///    be more than the total.
/// 3. No other code may write to them.
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
    /// Returns the address at which the buffer's memory begins.
    fn stable_ptr(&self) -> *const u8;

    /// Returns the number of initialised bytes, counted from the beginning.
    fn bytes_init(&self) -> usize;

    /// Returns the number of bytes in the buffer, initialised or not.
    fn bytes_total(&self) -> usize {
        self.bytes_init()
    }

    /// Returns the initialised part of the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// assert_eq!(OwnedBuf::as_slice(&"hello"), b"hello");
    /// ```
    fn as_slice(&self) -> &[u8] {
        // SAFETY: by the trait's obligations 1. and 2. this many bytes are there and
        // initialised, and by 3. no other code writes to them while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.stable_ptr(), self.bytes_init()) }
    }

    /// Restricts the buffer to a part of it, by position among all bytes, initialised or not.
    ///
    /// # Panics
    ///
    /// Panics if the range is not within the buffer. Panics if the range begins after the
    /// initialised bytes, because the bytes read there could not be reached.
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
/// A read fills the buffer from its beginning, and may use all of its memory, initialised
/// or not: an empty `Vec` offers its whole capacity.
///
/// # Safety
///
/// 1. [`stable_mut_ptr`](Self::stable_mut_ptr) must be the address of
///    [`stable_ptr`](OwnedBuf::stable_ptr), for writing. Writing to the bytes there through
///    it must be allowed until the buffer is next borrowed or used.
/// 2. No other code may read them.
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
    /// Returns the address at which the buffer's memory begins, for writing.
    fn stable_mut_ptr(&mut self) -> *mut u8;

    /// Records that the first `count` bytes were read into the buffer.
    ///
    /// A buffer that has a length of its own gets this length: a `Vec` that was longer is
    /// truncated.
    ///
    /// # Safety
    ///
    /// 1. The first `count` bytes must be initialised.
    unsafe fn set_init(&mut self, count: usize);
}

// SAFETY: 1. to 3. the memory is on the heap, is owned by the vector alone, and holds `len`
// initialised bytes.
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

// SAFETY: 1. and 2. both pointers are to the heap memory that the vector alone owns.
unsafe impl OwnedBufMut for Vec<u8> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        // SAFETY: by our obligation 1. the first `count` bytes are initialised, and they
        // are within the capacity.
        unsafe { self.set_len(count) };
    }
}

// SAFETY: 1. to 3. the memory is on the heap, is owned by the box alone, and is all
// initialised.
unsafe impl OwnedBuf for Box<[u8]> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. and 2. both pointers are to the heap memory that the box alone owns.
unsafe impl OwnedBufMut for Box<[u8]> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, _count: usize) {}
}

// SAFETY: 1. to 3. the slice lives for ever, and is only read.
unsafe impl OwnedBuf for &'static [u8] {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. the array lives for ever, and is only read.
unsafe impl<const N: usize> OwnedBuf for &'static [u8; N] {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        N
    }
}

// SAFETY: 1. to 3. the text lives for ever, and is only read.
unsafe impl OwnedBuf for &'static str {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. a string is a vector, with its memory on the heap and owned by it alone.
// It is no `OwnedBufMut`, because the bytes that are read may be no text.
unsafe impl OwnedBuf for String {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. the memory is shared and reference-counted, does not move with the
// handle, and is only read.
#[cfg(feature = "io-util")]
unsafe impl OwnedBuf for bytes::Bytes {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }
}

// SAFETY: 1. to 3. this handle is the only one for its part of the memory, which does not
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

// SAFETY: 1. and 2. both pointers are to the part of the memory that this handle alone has.
#[cfg(feature = "io-util")]
unsafe impl OwnedBufMut for bytes::BytesMut {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        // SAFETY: by our obligation 1. the first `count` bytes are initialised, and they
        // are within the capacity.
        unsafe { self.set_len(count) };
    }
}

/// A part of a buffer; created by [`OwnedBuf::slice`].
///
/// Reading into a part makes its buffer longer if necessary, and never shorter: the bytes
/// after the part stay.
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
// Not `Clone`, because a clone of a vector may have less capacity than the part needs.
#[derive(Debug)]
pub struct Slice<B> {
    buf: B,
    begin: usize,
    end: usize,
}

impl<B> Slice<B> {
    /// Returns the position in the buffer at which the part begins.
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

    /// Returns the position in the buffer at which the part ends.
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

    /// Returns a reference to the whole buffer.
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

    /// Consumes the part and returns the whole buffer.
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

// SAFETY: 1. to 3. hold for the underlying buffer, and the part is its bytes from `begin`
// to `end`: `slice` has checked that the buffer has them, and only this type can have
// changed the buffer since.
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

// SAFETY: 1. and 2. hold for the underlying buffer, and the part is a range of its bytes.
unsafe impl<B: OwnedBufMut> OwnedBufMut for Slice<B> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.buf.stable_mut_ptr().wrapping_add(self.begin)
    }

    unsafe fn set_init(&mut self, count: usize) {
        if self.begin + count > self.buf.bytes_init() {
            // SAFETY: 1. the bytes before the part are initialised (`slice` has checked
            // that), and by our own obligation 1. so are the first `count` bytes of the
            // part.
            unsafe { self.buf.set_init(self.begin + count) };
        }
    }
}
