//! `AsyncSeek`: a position that can be moved.

use std::{
    io::{self, SeekFrom},
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// Moves the position in a source or sink.
///
/// This trait is the asynchronous counterpart of [`std::io::Seek`], in two steps: one that
/// starts the seek, and one that waits for it. Callers use the methods of `AsyncSeekExt`.
///
/// # Examples
///
/// ```
/// use std::{io::Cursor, pin::Pin, task::{Context, Poll, Waker}};
/// use blitz_io::io::{AsyncSeek, SeekFrom};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut file = Cursor::new("0123456789");
/// Pin::new(&mut file).start_seek(SeekFrom::End(-3))?;
/// let position = Pin::new(&mut file).poll_complete(&mut cx);
/// assert!(matches!(position, Poll::Ready(Ok(7))));
/// # std::io::Result::Ok(())
/// ```
pub trait AsyncSeek {
    /// Starts to move the position.
    ///
    /// The seek is complete when [`poll_complete`](Self::poll_complete) is ready: it
    /// returns the new position, or the error. A position past the end is valid, one before
    /// the start is not.
    ///
    /// # Errors
    ///
    /// An implementation may return an error while an earlier seek is in progress: call
    /// `poll_complete` first.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Cursor, pin::Pin};
    /// use blitz_io::io::{AsyncSeek, ErrorKind, SeekFrom};
    ///
    /// let refused = Pin::new(&mut Cursor::new("abc")).start_seek(SeekFrom::Current(-1));
    /// assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    /// ```
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()>;

    /// Waits for the seek in progress and returns the new position, counted from the start.
    ///
    /// If no seek is in progress, it is ready at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Cursor, pin::Pin, task::{Context, Poll, Waker}};
    /// use blitz_io::io::AsyncSeek;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let position = Pin::new(&mut Cursor::new("abc")).poll_complete(&mut cx);
    /// assert!(matches!(position, Poll::Ready(Ok(0))));
    /// ```
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>>;
}

/// Forwards the trait's methods through a pointer; `$inner` pins the pointer's target.
macro_rules! deref_impl {
    ($self:ident => $inner:expr) => {
        #[inline]
        fn start_seek($self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
            $inner.start_seek(position)
        }

        #[inline]
        fn poll_complete($self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
            $inner.poll_complete(cx)
        }
    };
}

impl<T: AsyncSeek + Unpin + ?Sized> AsyncSeek for &mut T {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncSeek + Unpin + ?Sized> AsyncSeek for Box<T> {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncSeek for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncSeek,
{
    deref_impl!(self => self.as_deref_mut());
}

impl<T: AsRef<[u8]> + Unpin> AsyncSeek for io::Cursor<T> {
    #[inline]
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        io::Seek::seek(self.get_mut(), position).map(|_| ())
    }

    #[inline]
    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position()))
    }
}
