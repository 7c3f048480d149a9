//! `AsyncWrite`: a sink of bytes.

use std::{
    io::{self, IoSlice},
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// Writes bytes to a sink.
///
/// The counterpart of [`std::io::Write`] for tasks. It is implemented by sockets, pipes
/// and files, and by what is in memory: `Vec<u8>` and [`Cursor`](std::io::Cursor).
/// Callers use the methods of `AsyncWriteExt`.
///
/// # Examples
///
/// A sink that counts:
///
/// ```
/// use std::{io, pin::Pin, task::{Context, Poll, Waker}};
/// use blitz_io::io::AsyncWrite;
///
/// struct Tally(usize);
///
/// impl AsyncWrite for Tally {
///     fn poll_write(
///         mut self: Pin<&mut Self>,
///         _cx: &mut Context<'_>,
///         buf: &[u8],
///     ) -> Poll<io::Result<usize>> {
///         self.0 += buf.len();
///         Poll::Ready(Ok(buf.len()))
///     }
///
///     fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         Poll::Ready(Ok(()))
///     }
///
///     fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         Poll::Ready(Ok(()))
///     }
/// }
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut tally = Tally(0);
/// assert!(Pin::new(&mut tally).poll_write(&mut cx, b"12345").is_ready());
/// assert_eq!(tally.0, 5);
/// ```
pub trait AsyncWrite {
    /// Tries to write bytes of `buf`.
    ///
    /// - `Poll::Ready(Ok(n))`: the first `n` bytes were taken, and no more. Zero means
    ///   that `buf` is empty, or that the sink takes nothing any more.
    /// - `Poll::Pending`: nothing was taken; the task is woken when it is worth trying
    ///   again. Only the waker of the last call need be woken.
    /// - `Poll::Ready(Err(error))`: nothing was taken. `WouldBlock` and `Interrupted` are
    ///   not for callers: an implementation waits or tries again.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::Pin, task::{Context, Waker}};
    /// use blitz_io::io::AsyncWrite;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut sink = vec![1];
    /// assert!(Pin::new(&mut sink).poll_write(&mut cx, &[2, 3]).is_ready());
    /// assert_eq!(sink, [1, 2, 3]);
    /// ```
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>>;

    /// Tries to pass on whatever the sink still holds back.
    ///
    /// `Poll::Ready(Ok(()))` means that everything written before has reached its
    /// destination.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::Pin, task::{Context, Waker}};
    /// use blitz_io::io::AsyncWrite;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(Pin::new(&mut Vec::new()).poll_flush(&mut cx).is_ready());
    /// ```
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Tries to end the sink in good order: it flushes, says its farewell if its protocol
    /// has one, and tells the other side that nothing more comes.
    ///
    /// After it, writing is an error. A sink that is dropped without it may lose what it
    /// held back.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::Pin, task::{Context, Waker}};
    /// use blitz_io::io::AsyncWrite;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(Pin::new(&mut Vec::new()).poll_shutdown(&mut cx).is_ready());
    /// ```
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Like [`poll_write`](Self::poll_write), from several buffers in a row, as if they
    /// were one.
    ///
    /// The default writes from the first that is not empty; see
    /// [`is_write_vectored`](Self::is_write_vectored).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::IoSlice, pin::Pin, task::{Context, Waker}};
    /// use blitz_io::io::AsyncWrite;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut sink = Vec::new();
    /// let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
    /// assert!(Pin::new(&mut sink).poll_write_vectored(&mut cx, &parts).is_ready());
    /// assert_eq!(sink, b"one two");
    /// ```
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match bufs.iter().find(|buf| !buf.is_empty()) {
            Some(first) => self.poll_write(cx, first),
            None => self.poll_write(cx, &[]),
        }
    }

    /// Whether [`poll_write_vectored`](Self::poll_write_vectored) is worth calling: it
    /// takes from more than one buffer at a time.
    ///
    /// If not, a caller with many small pieces does better to join them.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWrite;
    ///
    /// assert!(Vec::new().is_write_vectored());
    /// ```
    fn is_write_vectored(&self) -> bool {
        false
    }
}

/// What is written through a pointer; `$inner` pins its target.
macro_rules! through_pointer {
    ($self:ident => $inner:expr) => {
        #[inline]
        fn poll_write(
            $self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            $inner.poll_write(cx, buf)
        }

        #[inline]
        fn poll_flush($self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            $inner.poll_flush(cx)
        }

        #[inline]
        fn poll_shutdown($self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            $inner.poll_shutdown(cx)
        }

        #[inline]
        fn poll_write_vectored(
            $self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            $inner.poll_write_vectored(cx, bufs)
        }

        #[inline]
        fn is_write_vectored(&self) -> bool {
            (**self).is_write_vectored()
        }
    };
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for &mut T {
    through_pointer!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for Box<T> {
    through_pointer!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncWrite for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncWrite,
{
    through_pointer!(self => self.as_deref_mut());
}

/// A type of std that is in memory: what std's trait does is already not blocking.
macro_rules! as_std_does {
    ($($sink:ty),*) => {$(
        impl AsyncWrite for $sink {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                _cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(io::Write::write(self.get_mut(), buf))
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(io::Write::flush(self.get_mut()))
            }

            #[inline]
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush(cx)
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                _cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(io::Write::write_vectored(self.get_mut(), bufs))
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                true
            }
        }
    )*};
}

as_std_does!(
    Vec<u8>,
    io::Cursor<&mut [u8]>,
    io::Cursor<&mut Vec<u8>>,
    io::Cursor<Vec<u8>>,
    io::Cursor<Box<[u8]>>
);
