//! `AsyncBufRead`: a source with a buffer of its own that callers can look at.

use std::{
    io,
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

use super::AsyncRead;

/// Reads bytes through a buffer of the source's own.
///
/// This trait is the asynchronous counterpart of [`std::io::BufRead`]. Callers can look at
/// the buffered bytes before they take them, so such a source can be read up to a
/// delimiter, or line by line. Callers use the methods of `AsyncBufReadExt`.
///
/// # Examples
///
/// ```
/// use std::{pin::Pin, task::{Context, Poll, Waker}};
/// use blitz_io::io::AsyncBufRead;
///
/// fn first_byte<R: AsyncBufRead + Unpin>(mut source: R) -> Option<u8> {
///     let mut cx = Context::from_waker(Waker::noop());
///     match Pin::new(&mut source).poll_fill_buf(&mut cx) {
///         Poll::Ready(Ok(bytes)) => bytes.first().copied(),
///         _ => None,
///     }
/// }
///
/// assert_eq!(first_byte(&b"xyz"[..]), Some(b'x'));
/// assert_eq!(first_byte(&b""[..]), None);
/// ```
pub trait AsyncBufRead: AsyncRead {
    /// Returns the buffered bytes; if there are none, tries to read more first.
    ///
    /// - `Poll::Ready(Ok(bytes))`: the bytes that are buffered now. Later calls return them
    ///   again until they are [consumed](Self::consume). An empty slice is the end of the
    ///   source.
    /// - `Poll::Pending`: nothing is buffered; the task is woken when another attempt may
    ///   succeed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::Pin, task::{Context, Poll, Waker}};
    /// use blitz_io::io::AsyncBufRead;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut source = &b"abc"[..];
    /// for _ in 0..2 {
    ///     // Nothing has consumed it yet.
    ///     let shown = Pin::new(&mut source).poll_fill_buf(&mut cx);
    ///     assert!(matches!(shown, Poll::Ready(Ok(b"abc"))));
    /// }
    /// ```
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>>;

    /// Removes `amt` bytes, which the last [`poll_fill_buf`](Self::poll_fill_buf) returned,
    /// from the start of the buffer.
    ///
    /// # Panics
    ///
    /// An implementation may panic if `amt` is more than `poll_fill_buf` returned.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Cursor, pin::Pin};
    /// use blitz_io::io::AsyncBufRead;
    ///
    /// let mut source = Cursor::new("abc");
    /// Pin::new(&mut source).consume(2);
    /// assert_eq!(source.position(), 2);
    /// ```
    fn consume(self: Pin<&mut Self>, amt: usize);
}

/// Forwards the trait's methods through a pointer; `$inner` pins the pointer's target.
macro_rules! deref_impl {
    ($self:ident => $inner:expr) => {
        #[inline]
        fn poll_fill_buf($self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            $inner.poll_fill_buf(cx)
        }

        #[inline]
        fn consume($self: Pin<&mut Self>, amt: usize) {
            $inner.consume(amt);
        }
    };
}

impl<T: AsyncBufRead + Unpin + ?Sized> AsyncBufRead for &mut T {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncBufRead + Unpin + ?Sized> AsyncBufRead for Box<T> {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncBufRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncBufRead,
{
    deref_impl!(self => self.as_deref_mut());
}

/// Implements the methods for a type of std that is its own buffer, through std's own
/// trait, which does not block for it.
macro_rules! impl_like_std {
    () => {
        #[inline]
        fn poll_fill_buf(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            Poll::Ready(io::BufRead::fill_buf(self.get_mut()))
        }

        #[inline]
        fn consume(self: Pin<&mut Self>, amt: usize) {
            io::BufRead::consume(self.get_mut(), amt);
        }
    };
}

impl AsyncBufRead for &[u8] {
    impl_like_std!();
}

impl<T: AsRef<[u8]> + Unpin> AsyncBufRead for io::Cursor<T> {
    impl_like_std!();
}
