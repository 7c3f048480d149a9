//! `AsyncWrite`: a sink of bytes.

use std::{
    io::{self, IoSlice},
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// Writes bytes to a sink.
///
/// This trait is the asynchronous counterpart of [`std::io::Write`]. Sockets, pipes and
/// files implement it, and so do two types in memory: `Vec<u8>` and
/// [`Cursor`](std::io::Cursor). Callers use the methods of `AsyncWriteExt`.
///
/// # Examples
///
/// A sink that counts the bytes written to it:
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
    /// Tries to write bytes from `buf`.
    ///
    /// - `Poll::Ready(Ok(n))`: the first `n` bytes were written, and no more. Zero means
    ///   that `buf` is empty, or that the sink accepts no more bytes.
    /// - `Poll::Pending`: nothing was written; the task is woken when another attempt may
    ///   succeed. Only the waker of the last call has to be woken.
    /// - `Poll::Ready(Err(error))`: nothing was written. An implementation must not return
    ///   `WouldBlock` or `Interrupted`: it waits or tries again instead.
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

    /// Tries to flush the bytes that the sink still buffers.
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

    /// Tries to shut the sink down cleanly.
    ///
    /// The sink flushes, sends its protocol's closing message if there is one, and informs
    /// the other side that no more bytes will come. Writing after a shutdown is an error. A
    /// sink that is dropped without a shutdown may lose the bytes that it buffers.
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

    /// Tries to write bytes from several buffers in order, as if they were one.
    ///
    /// The results are those of [`poll_write`](Self::poll_write). The default
    /// implementation writes from the first buffer that is not empty; see
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

    /// Returns true if [`poll_write_vectored`](Self::poll_write_vectored) writes from more
    /// than one buffer at a time.
    ///
    /// If it does not, a caller with many small pieces should join them into one buffer
    /// instead.
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

/// Forwards the trait's methods through a pointer; `$inner` pins the pointer's target.
macro_rules! deref_impl {
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
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for Box<T> {
    deref_impl!(self => Pin::new(&mut **self.get_mut()));
}

impl<P> AsyncWrite for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncWrite,
{
    deref_impl!(self => self.as_deref_mut());
}

/// Implements the trait for types of std that are in memory, through std's own trait, which
/// does not block for them.
macro_rules! impl_like_std {
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

impl_like_std!(
    Vec<u8>,
    io::Cursor<&mut [u8]>,
    io::Cursor<&mut Vec<u8>>,
    io::Cursor<Vec<u8>>,
    io::Cursor<Box<[u8]>>
);
