//! `ReadBuf`: a buffer that tracks how many of its bytes are filled and how many
//! initialised.
//!
//! # Invariants
//!
//! ```text
//! |<-- filled -->|                              |
//! |<------- initialized ------->|               |
//! |<------------------ bytes ------------------>|
//! ```
//!
//! I1. `filled <= initialized <= bytes.len()`.
//! I2. The first `initialized` bytes are initialised.
//! I3. No byte is ever made uninitialised, not even past `initialized`, because the memory
//!     may have been borrowed from its owner as `&mut [u8]`.
//!
//! # Checked by
//! The tests below: `borrowed_bytes_that_were_filled_are_counted`,
//! `a_reader_that_swaps_its_buffer_is_found_out`.

use std::{fmt, mem::MaybeUninit};

/// A buffer to read into, which may be uninitialised, and is filled from its start.
///
/// The buffer has two marks. The bytes before the first mark are *filled*: they were read.
/// The bytes before the second mark are *initialised*: they were written at least once, so
/// they can be passed on as `&mut [u8]` without being zeroed again. The first mark never
/// passes the second.
///
/// # Examples
///
/// ```
/// use std::mem::MaybeUninit;
/// use blitz_io::io::ReadBuf;
///
/// let mut memory = [MaybeUninit::uninit(); 16];
/// let mut buf = ReadBuf::uninit(&mut memory);
/// buf.put_slice(b"abc");
/// assert_eq!(buf.filled(), b"abc");
/// assert_eq!(buf.remaining(), 13);
/// ```
pub struct ReadBuf<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    filled: usize,
    initialized: usize,
}

impl<'a> ReadBuf<'a> {
    /// Creates a buffer over bytes that are all initialised; none of them are filled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::ReadBuf;
    ///
    /// let mut bytes = [7; 4];
    /// let buf = ReadBuf::new(&mut bytes);
    /// assert_eq!(buf.initialized(), [7; 4]);
    /// assert!(buf.filled().is_empty());
    /// ```
    #[inline]
    pub fn new(buf: &'a mut [u8]) -> Self {
        let (start, len) = (buf.as_mut_ptr().cast(), buf.len());
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`; the borrow is moved into the
        // new slice for all of `'a`; nothing in this file makes a byte uninitialised again
        // (I3).
        let bytes = unsafe { std::slice::from_raw_parts_mut(start, len) };
        Self { bytes, filled: 0, initialized: len }
    }

    /// Creates a buffer over bytes that may be uninitialised; none of them are filled.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::ReadBuf;
    ///
    /// let mut vec = Vec::with_capacity(100);
    /// let buf = ReadBuf::uninit(vec.spare_capacity_mut());
    /// assert!(buf.remaining() >= 100);
    /// assert!(buf.initialized().is_empty());
    /// ```
    #[inline]
    pub fn uninit(buf: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { bytes: buf, filled: 0, initialized: 0 }
    }

    /// Returns the length of the whole buffer, filled or not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// assert_eq!(ReadBuf::new(&mut [0; 9]).capacity(), 9);
    /// ```
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the filled bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 9];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"xy");
    /// assert_eq!(buf.filled(), b"xy");
    /// ```
    #[inline]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: the filled bytes lie within the initialised ones (I1), which are
        // initialised (I2).
        unsafe { self.bytes[..self.filled].assume_init_ref() }
    }

    /// Returns the filled bytes for modification.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 9];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"xy");
    /// buf.filled_mut().make_ascii_uppercase();
    /// assert_eq!(buf.filled(), b"XY");
    /// ```
    #[inline]
    pub fn filled_mut(&mut self) -> &mut [u8] {
        // SAFETY: the filled bytes lie within the initialised ones (I1), which are
        // initialised (I2). Anything written through a `&mut [u8]` is initialised, so I3
        // holds.
        unsafe { self.bytes[..self.filled].assume_init_mut() }
    }

    /// Creates a new buffer over the first `n` unfilled bytes, or over all of them if there
    /// are fewer.
    ///
    /// The new buffer treats its bytes as uninitialised. Bytes that are filled in it do not
    /// become filled in this one: the caller has to mark them afterwards, with
    /// [`assume_init`](Self::assume_init) and [`advance`](Self::advance).
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 9];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// let mut part = buf.take(4);
    /// part.put_slice(b"abc");
    /// assert_eq!(part.remaining(), 1);
    /// assert_eq!(buf.remaining(), 9);
    /// ```
    #[inline]
    pub fn take(&mut self, n: usize) -> ReadBuf<'_> {
        let n = n.min(self.remaining());
        ReadBuf::uninit(&mut self.bytes[self.filled..][..n])
    }

    /// Returns the initialised bytes, which begin with the filled ones.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [5; 3];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.put_slice(&[1]);
    /// assert_eq!(buf.initialized(), [1, 5, 5]);
    /// ```
    #[inline]
    pub fn initialized(&self) -> &[u8] {
        // SAFETY: the first `initialized` bytes are initialised (I2).
        unsafe { self.bytes[..self.initialized].assume_init_ref() }
    }

    /// Returns the initialised bytes for modification.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [5; 3];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.initialized_mut()[0] = 9;
    /// buf.set_filled(1);
    /// assert_eq!(buf.filled(), [9]);
    /// ```
    #[inline]
    pub fn initialized_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `initialized` bytes are initialised (I2). Anything written
        // through a `&mut [u8]` is initialised, so I3 holds.
        unsafe { self.bytes[..self.initialized].assume_init_mut() }
    }

    /// Returns the whole buffer, initialised or not.
    ///
    /// # Safety
    ///
    /// 1. The caller must not make any byte uninitialised, not even one that this buffer
    ///    treats as uninitialised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [5; 3];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// // SAFETY: 1. Writing a byte does not make it uninitialised.
    /// unsafe { buf.inner_mut()[2].write(6) };
    /// assert_eq!(buf.initialized(), [5, 5, 6]);
    /// ```
    #[inline]
    pub unsafe fn inner_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        self.bytes
    }

    /// Returns the unfilled bytes, initialised or not.
    ///
    /// # Safety
    ///
    /// 1. The caller must not make any byte uninitialised, not even one that this buffer
    ///    treats as uninitialised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// let mut vec = Vec::with_capacity(8);
    /// let mut buf = ReadBuf::uninit(vec.spare_capacity_mut());
    /// // SAFETY: 1. Writing bytes does not make them uninitialised.
    /// unsafe { buf.unfilled_mut()[..2].write_copy_of_slice(b"ok") };
    /// // SAFETY: 1. The two bytes were written above.
    /// unsafe { buf.assume_init(2) };
    /// buf.advance(2);
    /// assert_eq!(buf.filled(), b"ok");
    /// ```
    #[inline]
    pub unsafe fn unfilled_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.bytes[self.filled..]
    }

    /// Returns the unfilled bytes; those not yet initialised are zeroed, once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// let mut vec = Vec::with_capacity(8);
    /// let mut buf = ReadBuf::uninit(vec.spare_capacity_mut());
    /// let n = std::io::Read::read(&mut &b"abc"[..], buf.initialize_unfilled())?;
    /// buf.advance(n);
    /// assert_eq!(buf.filled(), b"abc");
    /// # std::io::Result::Ok(())
    /// ```
    #[inline]
    pub fn initialize_unfilled(&mut self) -> &mut [u8] {
        self.initialize_unfilled_to(self.remaining())
    }

    /// Returns the first `n` unfilled bytes; those not yet initialised are zeroed, once.
    ///
    /// # Panics
    ///
    /// Panics if fewer than `n` bytes are unfilled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// let mut vec = Vec::with_capacity(8);
    /// let mut buf = ReadBuf::uninit(vec.spare_capacity_mut());
    /// assert_eq!(buf.initialize_unfilled_to(3), [0; 3]);
    /// assert_eq!(buf.initialized().len(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn initialize_unfilled_to(&mut self, n: usize) -> &mut [u8] {
        let remaining = self.remaining();
        assert!(n <= remaining, "n overflows remaining: {n} bytes wanted, {remaining} are there");
        let end = self.filled + n;
        if self.initialized < end {
            self.bytes[self.initialized..end].fill(MaybeUninit::new(0));
            self.initialized = end;
        }
        // SAFETY: the first `initialized` bytes are initialised (I2), and `end` is no
        // longer past `initialized`.
        unsafe { self.bytes[self.filled..end].assume_init_mut() }
    }

    /// Returns the number of bytes that are not filled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 3];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.advance(1);
    /// assert_eq!(buf.remaining(), 2);
    /// ```
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Marks all bytes as unfilled. Initialised bytes stay initialised and keep their
    /// contents.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 3];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"abc");
    /// buf.clear();
    /// assert!(buf.filled().is_empty());
    /// assert_eq!(buf.initialized(), b"abc");
    /// ```
    #[inline]
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Marks the next `n` bytes, which must be initialised, as filled.
    ///
    /// # Panics
    ///
    /// Panics if they are not all initialised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 3];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.initialize_unfilled()[0] = 1;
    /// buf.advance(1);
    /// assert_eq!(buf.filled(), [1]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn advance(&mut self, n: usize) {
        let Some(filled) = self.filled.checked_add(n) else {
            panic!("filled overflow: {n} bytes more than {} are no number", self.filled);
        };
        self.set_filled(filled);
    }

    /// Sets the number of filled bytes to `n`, which may be fewer than before.
    ///
    /// # Panics
    ///
    /// Panics if the first `n` bytes are not all initialised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 8];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"line\n");
    /// buf.set_filled(4);
    /// assert_eq!(buf.filled(), b"line");
    /// ```
    #[inline]
    #[track_caller]
    pub fn set_filled(&mut self, n: usize) {
        let initialized = self.initialized;
        assert!(
            n <= initialized,
            "filled must not become larger than initialized: {n} bytes filled, {initialized} initialised"
        );
        self.filled = n;
    }

    /// Marks the first `n` unfilled bytes as initialised.
    ///
    /// # Safety
    ///
    /// 1. These bytes must be initialised; in particular, the buffer must have at least `n`
    ///    unfilled bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// let mut vec = Vec::with_capacity(8);
    /// let mut buf = ReadBuf::uninit(vec.spare_capacity_mut());
    /// buf.take(8).put_slice(b"abc");
    /// // SAFETY: 1. `put_slice` wrote these three bytes.
    /// unsafe { buf.assume_init(3) };
    /// assert_eq!(buf.initialized(), b"abc");
    /// ```
    #[inline]
    pub unsafe fn assume_init(&mut self, n: usize) {
        self.initialized = self.initialized.max(self.filled + n);
    }

    /// Appends bytes to the filled ones.
    ///
    /// # Panics
    ///
    /// Panics if there is no room for them.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::io::ReadBuf;
    /// # let mut bytes = [0; 8];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// buf.put_slice(b"ab");
    /// buf.put_slice(b"cd");
    /// assert_eq!(buf.filled(), b"abcd");
    /// ```
    #[inline]
    #[track_caller]
    pub fn put_slice(&mut self, buf: &[u8]) {
        let (len, remaining) = (buf.len(), self.remaining());
        assert!(
            len <= remaining,
            "buf.len() must fit in remaining(); buf.len() = {len}, remaining() = {remaining}"
        );
        let end = self.filled + len;
        self.bytes[self.filled..end].write_copy_of_slice(buf);
        self.filled = end;
        self.initialized = self.initialized.max(end);
    }

    /// Passes at most `limit` of the unfilled bytes to `reader`, as a buffer of their own.
    ///
    /// Bytes that `reader` fills become filled in this buffer too. Returns the result of
    /// `reader` and the number of bytes that it filled.
    ///
    /// # Panics
    ///
    /// Panics if `reader` replaced the buffer that it was given by another.
    #[cfg(feature = "io-util")]
    #[track_caller]
    pub(crate) fn with_limit<R>(
        &mut self,
        limit: usize,
        reader: impl FnOnce(&mut ReadBuf<'_>) -> R,
    ) -> (R, usize) {
        let limit_len = limit.min(self.remaining());
        let known = self.initialized.saturating_sub(self.filled).min(limit_len);
        let bytes = &mut self.bytes[self.filled..][..limit_len];
        let start = bytes.as_ptr();
        let mut part = ReadBuf { bytes, filled: 0, initialized: known };
        let result = reader(&mut part);
        let (filled, initialized) = (part.filled, part.initialized);
        // A `ReadBuf` can be swapped for any other, so the marks are meaningful only if the
        // buffer is still ours. Two buffers that are not empty never begin at the same
        // address; an empty one may begin where another ends.
        let same = part.bytes.as_ptr() == start && part.bytes.len() == limit_len;
        assert!(same, "a reader swapped its buffer: it must fill the one that it was given");
        self.initialized = self.initialized.max(self.filled + initialized);
        self.filled += filled;
        (result, filled)
    }
}

impl fmt::Debug for ReadBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuf")
            .field("filled", &self.filled)
            .field("initialized", &self.initialized)
            .field("capacity", &self.capacity())
            .finish()
    }
}

// SAFETY: `chunk_mut` returns the unfilled bytes, `remaining_mut` their number, and
// `advance_mut` advances by the bytes that were written to them.
#[cfg(feature = "io-util")]
unsafe impl bytes::BufMut for ReadBuf<'_> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        self.remaining()
    }

    #[inline]
    unsafe fn advance_mut(&mut self, cnt: usize) {
        // SAFETY: 1. The contract of this function requires that the caller has written
        // these bytes.
        unsafe { self.assume_init(cnt) };
        self.advance(cnt);
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut bytes::buf::UninitSlice {
        // An `UninitSlice` cannot make a byte uninitialised (I3), except through unsafe
        // code, which must promise not to.
        bytes::buf::UninitSlice::uninit(&mut self.bytes[self.filled..])
    }
}

#[cfg(all(test, feature = "io-util", not(blitz_loom)))]
mod tests {
    use std::mem::MaybeUninit;

    use super::ReadBuf;

    #[test]
    fn borrowed_bytes_that_were_filled_are_counted() {
        let mut memory = [MaybeUninit::uninit(); 8];
        let mut buf = ReadBuf::uninit(&mut memory);
        buf.put_slice(b"a");
        let ((), n) = buf.with_limit(3, |part| {
            assert_eq!((part.capacity(), part.initialized().len()), (3, 0));
            part.initialize_unfilled();
            part.put_slice(b"bc");
        });
        assert_eq!((n, buf.filled(), buf.initialized()), (2, &b"abc"[..], &b"abc\0"[..]));
        // The bytes that are known to be initialised stay known.
        let (known, n) = buf.with_limit(usize::MAX, |part| part.initialized().len());
        assert_eq!((known, n, buf.remaining()), (1, 0, 5));
    }

    #[test]
    #[should_panic(expected = "a reader swapped its buffer")]
    fn a_reader_that_swaps_its_buffer_is_found_out() {
        let mut memory = [MaybeUninit::uninit(); 8];
        ReadBuf::uninit(&mut memory).with_limit(8, |part| {
            let mut other = ReadBuf::new(Box::leak(Box::new([1; 8])));
            other.advance(8);
            *part = other;
        });
    }

    #[test]
    #[should_panic(expected = "a reader swapped its buffer")]
    fn an_empty_buffer_is_not_swapped_either() {
        ReadBuf::new(&mut []).with_limit(8, |part| {
            let mut other = ReadBuf::new(Box::leak(Box::new([1; 8])));
            other.advance(8);
            *part = other;
        });
    }
}
