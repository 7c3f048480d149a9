//! `AsyncRead`: a source of bytes.

use std::{
    io,
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

use super::ReadBuf;

/// Reads bytes from a source.
///
/// This trait is the asynchronous counterpart of [`std::io::Read`]. Sockets, pipes and
/// files implement it, and so do two types in memory: `&[u8]` and
/// [`Cursor`](std::io::Cursor). Callers use the methods of `AsyncReadExt`.
///
/// # Examples
///
/// A source of ascending bytes, with an end:
///
/// ```
/// use std::{io, pin::Pin, task::{Context, Poll, Waker}};
/// use blitz_io::io::{AsyncRead, ReadBuf};
///
/// struct Count(u8);
///
/// impl AsyncRead for Count {
///     fn poll_read(
///         mut self: Pin<&mut Self>,
///         _cx: &mut Context<'_>,
///         buf: &mut ReadBuf<'_>,
///     ) -> Poll<io::Result<()>> {
///         while self.0 < 5 && buf.remaining() > 0 {
///             buf.put_slice(&[self.0]);
///             self.0 += 1;
///         }
///         Poll::Ready(Ok(()))
///     }
/// }
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut bytes = [0; 8];
/// let mut buf = ReadBuf::new(&mut bytes);
/// assert!(Pin::new(&mut Count(2)).poll_read(&mut cx, &mut buf).is_ready());
/// assert_eq!(buf.filled(), [2, 3, 4]);
/// ```
pub trait AsyncRead {
    /// Tries to read bytes into the unfilled part of `buf`.
    ///
    /// - `Poll::Ready(Ok(()))`: the bytes that were read have been added to the filled
    ///   part. If none were added, the source is at its end, or `buf` had no room.
    /// - `Poll::Pending`: nothing was added; the task is woken when another attempt may
    ///   succeed. Only the waker of the last call has to be woken.
    /// - `Poll::Ready(Err(error))`: nothing was added. An implementation must not return
    ///   `WouldBlock` or `Interrupted`: it waits or tries again instead.
    ///
    /// An implementation must never shrink the filled part.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::Pin, task::{Context, Waker}};
    /// use blitz_io::io::{AsyncRead, ReadBuf};
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut source = &b"hello"[..];
    /// let mut bytes = [0; 4];
    /// let mut buf = ReadBuf::new(&mut bytes);
    /// assert!(Pin::new(&mut source).poll_read(&mut cx, &mut buf).is_ready());
    /// assert_eq!(buf.filled(), b"hell");
    /// assert_eq!(source, b"o");
    /// ```
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;
}

/// Forwards the trait's methods through a pointer; `$inner` pins the pointer's target.
macro_rules! deref_impl {
    ($self:ident => $inner:expr) => {
        #[inline]
        fn poll_read(
            $self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            $inner.poll_read(cx, buf)
        }
    };
}

impl<T: AsyncRead + Unpin + ?Sized> AsyncRead for &mut T {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncRead + Unpin + ?Sized> AsyncRead for Box<T> {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncRead,
{
    deref_impl!(self => self.as_deref_mut());
}

impl AsyncRead for &[u8] {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let source = self.get_mut();
        let (taken, rest) = source.split_at(source.len().min(buf.remaining()));
        buf.put_slice(taken);
        *source = rest;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncRead for io::Cursor<T> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let cursor = self.get_mut();
        // The position may be past the end; there is nothing to read there.
        let rest = usize::try_from(cursor.position()).ok();
        let rest =
            rest.and_then(|start| cursor.get_ref().as_ref().get(start..)).unwrap_or_default();
        let taken = &rest[..rest.len().min(buf.remaining())];
        buf.put_slice(taken);
        let taken = taken.len() as u64;
        cursor.set_position(cursor.position() + taken);
        Poll::Ready(Ok(()))
    }
}
