//! The unsafe code of the extension methods: memory that a reader fills before it is
//! initialised.
//!
//! Everything here is safe to call. A reader is foreign code: it gets a [`ReadBuf`], and
//! `ReadBuf::with_limit` counts only the bytes filled in that one.
//!
//! # Checked by
//! The tests below: `bytes_initialised_by_one_read_are_known_to_the_next`,
//! `to_reserve_room_forgets_what_is_known`, `a_swapped_buffer_adds_nothing_to_a_vector`,
//! `bytes_shown_outlive_the_future`.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::BufMut;

use super::{AsyncBufRead, ReadBuf};

/// A vector that is read into after its end, where it has spare capacity.
///
/// The type records how much of the spare capacity is initialised, so that a reader that
/// needs zeroed memory does not zero it again for each read.
#[derive(Debug)]
pub(super) struct VecReader<'a> {
    vec: VecSlot<'a>,
    /// The number of bytes from the start of the vector's allocation that are initialised.
    initialized: usize,
}

/// A vector that is borrowed from the caller, or owned by the future.
#[derive(Debug)]
enum VecSlot<'a> {
    Borrowed(&'a mut Vec<u8>),
    Owned(Vec<u8>),
}

impl<'a> VecReader<'a> {
    pub(super) fn borrowed(vec: &'a mut Vec<u8>) -> Self {
        Self { vec: VecSlot::Borrowed(vec), initialized: 0 }
    }

    pub(super) fn owned(vec: Vec<u8>) -> Self {
        Self { vec: VecSlot::Owned(vec), initialized: 0 }
    }

    pub(super) fn get(&self) -> &Vec<u8> {
        match &self.vec {
            VecSlot::Borrowed(vec) => vec,
            VecSlot::Owned(vec) => vec,
        }
    }

    /// Returns the vector for modification. The caller may move it to another allocation,
    /// so none of its spare capacity counts as initialised afterwards.
    pub(super) fn get_mut(&mut self) -> &mut Vec<u8> {
        self.initialized = 0;
        self.vec_mut()
    }

    fn vec_mut(&mut self) -> &mut Vec<u8> {
        match &mut self.vec {
            VecSlot::Borrowed(vec) => vec,
            VecSlot::Owned(vec) => vec,
        }
    }

    /// Calls `reader` with all the spare capacity, and appends the bytes that it fills.
    /// Returns the result of `reader` and the number of bytes.
    pub(super) fn append<R>(&mut self, reader: impl FnOnce(&mut ReadBuf<'_>) -> R) -> (R, usize) {
        let initialized = self.initialized;
        let vec = self.vec_mut();
        let len = vec.len();
        let mut room = ReadBuf::uninit(vec.spare_capacity_mut());
        // SAFETY: 1. the first `initialized` bytes of the allocation are initialised: the vector
        // and its allocation are the same as when `initialized` was set below, because `get_mut`,
        // the only way to change them, sets it to 0. Bytes of spare capacity do not become
        // uninitialised.
        unsafe { room.assume_init(initialized.saturating_sub(len)) };
        let (result, n) = room.with_limit(usize::MAX, reader);
        let initialized = len + room.initialized().len();
        // SAFETY: `with_limit` has counted `n` filled bytes after the length, so they are
        // initialised and within the capacity.
        unsafe { vec.set_len(len + n) };
        self.initialized = initialized;
        (result, n)
    }
}

/// Calls `reader` with the next chunk of `buf`, and appends the bytes that it fills.
/// Returns the result of `reader` and the number of bytes.
pub(super) fn fill<B: BufMut + ?Sized, R>(
    buf: &mut B,
    reader: impl FnOnce(&mut ReadBuf<'_>) -> R,
) -> (R, usize) {
    // SAFETY: a `ReadBuf` makes no byte uninitialised, except through unsafe code, which
    // must promise not to.
    let chunk = unsafe { buf.chunk_mut().as_uninit_slice_mut() };
    let (result, n) = ReadBuf::uninit(chunk).with_limit(usize::MAX, reader);
    // SAFETY: `with_limit` has counted `n` filled bytes in the chunk, so they are initialised and
    // not more than the chunk has.
    unsafe { buf.advance_mut(n) };
    (result, n)
}

/// Returns the buffered bytes of a source, for as long as the source itself is borrowed.
///
/// The reference is taken out of `source`, and put back if nothing is buffered yet.
///
/// # Panics
///
/// Panics if `source` is `None`.
pub(super) fn poll_fill_buf_ref<'a, R: AsyncBufRead + Unpin + ?Sized>(
    source: &mut Option<&'a mut R>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<&'a [u8]>> {
    let Some(taken) = source.take() else {
        panic!("Polled after completion. Drop a future that has returned its output.");
    };
    let taken: *mut R = taken;
    // SAFETY: `taken` was a `&'a mut R`, and no other reference to the source is in use
    // now. This borrow lasts as long as the bytes that `poll_fill_buf` returns.
    match Pin::new(unsafe { &mut *taken }).poll_fill_buf(cx) {
        Poll::Ready(shown) => Poll::Ready(shown),
        Poll::Pending => {
            // SAFETY: `taken` was a `&'a mut R`, and `Pending` contains no borrow, so the
            // first reborrow has ended. (The compiler assumes that it lasts for all of `'a`
            // in both arms.)
            *source = Some(unsafe { &mut *taken });
            Poll::Pending
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        io,
        panic::{AssertUnwindSafe, catch_unwind},
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    use super::{VecReader, fill, poll_fill_buf_ref};
    use crate::io::{AsyncBufRead, AsyncRead, ReadBuf};

    #[test]
    fn bytes_initialised_by_one_read_are_known_to_the_next() {
        let mut vec = Vec::with_capacity(8);
        vec.push(1);
        let room = vec.capacity() - 1;
        let mut vec_reader = VecReader::borrowed(&mut vec);
        let ((), n) = vec_reader.append(|buf| {
            assert!(buf.initialized().is_empty());
            buf.initialize_unfilled_to(5)[0] = 2;
            buf.advance(1);
        });
        assert_eq!(n, 1);
        let (initialized, n) = vec_reader.append(|buf| {
            assert_eq!(buf.capacity(), room - 1);
            buf.initialized().len()
        });
        assert_eq!((initialized, n), (4, 0));
        assert_eq!(vec, [1, 2]);
    }

    #[test]
    fn to_reserve_room_forgets_what_is_known() {
        let mut vec_reader = VecReader::owned(Vec::with_capacity(8));
        vec_reader.append(|buf| buf.initialize_unfilled().len());
        vec_reader.get_mut().reserve(100);
        let (initialized, _) = vec_reader.append(|buf| buf.initialized().len());
        assert_eq!(initialized, 0);
    }

    #[test]
    fn a_swapped_buffer_adds_nothing_to_a_vector() {
        let swap = |buf: &mut ReadBuf<'_>| {
            let mut other = ReadBuf::new(Box::leak(Box::new([7; 64])));
            other.advance(64);
            *buf = other;
        };
        let mut vec = Vec::with_capacity(64);
        let mut vec_reader = VecReader::borrowed(&mut vec);
        assert!(catch_unwind(AssertUnwindSafe(|| vec_reader.append(swap))).is_err());
        assert!(vec.is_empty());
        assert!(catch_unwind(AssertUnwindSafe(|| fill(&mut vec, swap))).is_err());
        assert!(vec.is_empty());
    }

    /// A source that has nothing at first, then three bytes.
    struct Late(bool, Vec<u8>);

    impl AsyncRead for Late {
        fn poll_read(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            _buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            unreachable!("it is never read")
        }
    }

    impl AsyncBufRead for Late {
        fn poll_fill_buf(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            let this = self.get_mut();
            if std::mem::replace(&mut this.0, true) {
                this.1.extend(b"abc");
                Poll::Ready(Ok(&this.1))
            } else {
                Poll::Pending
            }
        }

        fn consume(self: Pin<&mut Self>, amt: usize) {
            self.get_mut().1.drain(..amt);
        }
    }

    #[test]
    fn bytes_shown_outlive_the_future() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut late = Late(false, Vec::new());
        let shown = {
            let mut source = Some(&mut late);
            assert!(poll_fill_buf_ref(&mut source, &mut cx).is_pending());
            let Poll::Ready(Ok(shown)) = poll_fill_buf_ref(&mut source, &mut cx) else {
                panic!("not shown")
            };
            assert!(source.is_none());
            shown
        };
        assert_eq!(shown, b"abc");
        Pin::new(&mut late).consume(3);
        assert!(late.1.is_empty());
    }
}
