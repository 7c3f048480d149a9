//! `AsyncBufRead`: a source that shows what it has read ahead.

use std::{
    io,
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

use super::AsyncRead;

/// Reads bytes through a buffer of the source's own.
///
/// The counterpart of [`std::io::BufRead`] for tasks. Because what is buffered can be
/// looked at before it is taken, such a source can be read up to a delimiter, line by
/// line. Callers use the methods of `AsyncBufReadExt`.
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
    /// Shows what is buffered; if nothing is, tries to read more first.
    ///
    /// - `Poll::Ready(Ok(bytes))`: what is there now, and will be there again until it is
    ///   [consumed](Self::consume). Empty at the end of the source.
    /// - `Poll::Pending`: nothing is there; the task is woken when it is worth trying
    ///   again.
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
    ///     // Nobody has taken it yet.
    ///     let shown = Pin::new(&mut source).poll_fill_buf(&mut cx);
    ///     assert!(matches!(shown, Poll::Ready(Ok(b"abc"))));
    /// }
    /// ```
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>>;

    /// Takes `amt` bytes of what the last [`poll_fill_buf`](Self::poll_fill_buf) showed
    /// out of the buffer.
    ///
    /// # Panics
    ///
    /// An implementation may panic if that is more than was shown.
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

/// What is read through a pointer; `$inner` pins its target.
macro_rules! through_pointer {
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
    through_pointer!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncBufRead + Unpin + ?Sized> AsyncBufRead for Box<T> {
    through_pointer!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncBufRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncBufRead,
{
    through_pointer!(self => self.as_deref_mut());
}

/// A type of std that is its own buffer: what std's trait does is already not blocking.
macro_rules! as_std_does {
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
    as_std_does!();
}

impl<T: AsRef<[u8]> + Unpin> AsyncBufRead for io::Cursor<T> {
    as_std_does!();
}
