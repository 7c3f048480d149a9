//! `AsyncSeek`: a position that can be moved.

use std::{
    io::{self, SeekFrom},
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// Moves the position in a source or sink.
///
/// The counterpart of [`std::io::Seek`] for tasks, in two steps: one that starts, and one
/// that waits. Callers use the methods of `AsyncSeekExt`.
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
    /// Begins to move the position.
    ///
    /// The move is done when [`poll_complete`](Self::poll_complete) has said so; it says
    /// where to, or why not. Behind the end is a valid position, before the start is not.
    ///
    /// # Errors
    ///
    /// An implementation may refuse while an earlier move is under way: call
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

    /// Waits for the move under way and answers with the new position, counted from the
    /// start. Without one it answers at once.
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

/// What is moved through a pointer; `$inner` pins its target.
macro_rules! through_pointer {
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
    through_pointer!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncSeek + Unpin + ?Sized> AsyncSeek for Box<T> {
    through_pointer!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncSeek for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncSeek,
{
    through_pointer!(self => self.as_deref_mut());
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
