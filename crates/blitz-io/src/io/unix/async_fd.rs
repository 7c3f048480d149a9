//! `AsyncFd`: a value with a file descriptor, for which tasks can wait until it is ready.

use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    task::{Context, Poll, ready},
};

use super::{AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, raw};
use crate::{
    engine::driver::{Direction, Registration},
    io::Interest,
    runtime::context,
};

/// Registers a value that has a Unix file descriptor with the runtime, so that tasks can
/// wait until the descriptor is ready.
///
/// The descriptor should be in non-blocking mode. Wait for readiness, then try the
/// operation: readiness is a hint, and `WouldBlock` clears it. [`async_io`](Self::async_io)
/// does both in a loop; the guards of [`readable`](Self::readable) and
/// [`writable`](Self::writable) are for programs that write their own loop.
///
/// Any number of tasks may wait with the async methods. Each of `poll_read_ready` and
/// `poll_write_ready` wakes one task, the last that polled it.
///
/// The descriptor is deregistered from the driver before the value is dropped or returned.
/// A registration belongs to the runtime in which it was made. Once that runtime has shut
/// down, waiting is an error.
///
/// # Examples
///
/// ```
/// use std::{io::{Read, Write}, os::unix::net::UnixStream};
///
/// use blitz_io::io::{Interest, unix::AsyncFd};
///
/// # blitz_io::run(async {
/// let (one, mut other) = UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// // SAFETY: a stream owns its descriptor until it is dropped.
/// let one = unsafe { AsyncFd::register(one)? };
/// other.write_all(b"hello")?;
/// let mut buf = [0; 8];
/// let read = one.async_io(Interest::READABLE, |mut one| one.read(&mut buf)).await?;
/// assert_eq!(&buf[..read], b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct AsyncFd<T: AsRawFd> {
    registration: Registration,
    /// The value; `None` once it was dropped or returned to the caller.
    inner: Option<T>,
}

impl<T: AsRawFd> AsyncFd<T> {
    /// Registers the descriptor, relying on the promise that the caller of `register` made.
    #[track_caller]
    pub(super) fn attach(inner: T, interest: Interest) -> Result<Self, AsyncFdRegisterError<T>> {
        let driver = context::io_driver();
        match raw::borrow(&inner).and_then(|fd| driver.register(fd, interest)) {
            Ok(registration) => Ok(Self { registration, inner: Some(inner) }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }

    pub(super) fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Returns a reference to the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(UnixStream::pair()?.0)? };
    /// one.get_ref().set_nonblocking(true)?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[inline]
    pub fn get_ref(&self) -> &T {
        self.inner.as_ref().expect("the value is there until it is taken out")
    }

    /// Returns a mutable reference to the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Write, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let mut one = unsafe { AsyncFd::register(one)? };
    /// one.get_mut().write_all(b"x")?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("the value is there until it is taken out")
    }

    /// Deregisters the descriptor from the driver and takes the value out.
    fn detach(&mut self) -> Option<T> {
        let inner = self.inner.take()?;
        // An error means that the system has already removed the descriptor. If the value
        // no longer has a descriptor, dropping the registration removes the source.
        let _ = raw::borrow(&inner).and_then(|fd| self.registration.deregister(fd));
        Some(inner)
    }

    /// Deregisters the descriptor and returns the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(UnixStream::pair()?.0)? };
    /// let one: UnixStream = one.into_inner();
    /// # drop(one);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn into_inner(mut self) -> T {
        self.detach().expect("the value is there until it is taken out")
    }

    /// Polls until the descriptor is ready for reading.
    ///
    /// One task at a time can wait with this method and
    /// [`poll_read_ready_mut`](Self::poll_read_ready_mut): the last one that polled is
    /// woken.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// drop(other);
    /// assert!(poll_fn(|cx| one.poll_read_ready(cx)).await?.ready().is_read_closed());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn poll_read_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(cx, Direction::Read))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, event)))
    }

    /// Polls until the descriptor is ready for reading, and returns a guard with mutable
    /// access to the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like
    /// [`poll_read_ready`](Self::poll_read_ready).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{os::unix::net::UnixStream, task::{Context, Waker}};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let mut one = unsafe { AsyncFd::register(one)? };
    /// assert!(one.poll_read_ready_mut(&mut Context::from_waker(Waker::noop())).is_pending());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn poll_read_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(cx, Direction::Read))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard::new(self, event)))
    }

    /// Polls until the descriptor is ready for writing.
    ///
    /// One task at a time can wait with this method and
    /// [`poll_write_ready_mut`](Self::poll_write_ready_mut): the last one that polled is
    /// woken.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// assert!(poll_fn(|cx| one.poll_write_ready(cx)).await?.ready().is_writable());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn poll_write_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(cx, Direction::Write))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, event)))
    }

    /// Polls until the descriptor is ready for writing, and returns a guard with mutable
    /// access to the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like
    /// [`poll_write_ready`](Self::poll_write_ready).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Write, os::unix::net::UnixStream, task::{Context, Poll}};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// /// Writes when it can.
    /// fn poll_write(
    ///     fd: &mut AsyncFd<UnixStream>,
    ///     cx: &mut Context<'_>,
    ///     buf: &[u8],
    /// ) -> Poll<std::io::Result<usize>> {
    ///     loop {
    ///         let mut guard = std::task::ready!(fd.poll_write_ready_mut(cx))?;
    ///         if let Ok(result) = guard.try_io(|fd| fd.get_mut().write(buf)) {
    ///             return Poll::Ready(result);
    ///         }
    ///     }
    /// }
    /// # blitz_io::run(async {
    /// # let (one, _other) = UnixStream::pair()?;
    /// # one.set_nonblocking(true)?;
    /// # // SAFETY: a stream owns its descriptor until it is dropped.
    /// # let mut one = unsafe { AsyncFd::register(one)? };
    /// # assert_eq!(std::future::poll_fn(|cx| poll_write(&mut one, cx, b"abc")).await?, 3);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn poll_write_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = ready!(self.registration.poll_ready(cx, Direction::Write))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard::new(self, event)))
    }

    /// Waits until the descriptor is ready for at least one of the operations in
    /// `interest`.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: readiness stays until it is cleared.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::{Interest, unix::AsyncFd};
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// let guard = one.ready(Interest::READABLE | Interest::WRITABLE).await?;
    /// assert!(guard.ready().is_writable());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let event = self.registration.readiness(interest).await?;
        Ok(AsyncFdReadyGuard::new(self, event))
    }

    /// Waits until the descriptor is ready for at least one of the operations in
    /// `interest`, and returns a guard with mutable access to the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like [`ready`](Self::ready).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe, like [`ready`](Self::ready).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::{Interest, unix::AsyncFd};
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let mut one = unsafe { AsyncFd::register(one)? };
    /// assert!(one.ready_mut(Interest::WRITABLE).await?.ready().is_writable());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let event = self.registration.readiness(interest).await?;
        Ok(AsyncFdReadyMutGuard::new(self, event))
    }

    /// Waits until the descriptor is readable.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like [`ready`](Self::ready).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe, like [`ready`](Self::ready).
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyGuard`].
    #[allow(clippy::needless_lifetimes, reason = "it says what the guard borrows")]
    pub async fn readable<'a>(&'a self) -> io::Result<AsyncFdReadyGuard<'a, T>> {
        self.ready(Interest::READABLE).await
    }

    /// Waits until the descriptor is readable, and returns a guard with mutable access to
    /// the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like [`ready`](Self::ready).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe, like [`ready`](Self::ready).
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyMutGuard`].
    #[allow(clippy::needless_lifetimes, reason = "it says what the guard borrows")]
    pub async fn readable_mut<'a>(&'a mut self) -> io::Result<AsyncFdReadyMutGuard<'a, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until the descriptor is writable.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like [`ready`](Self::ready).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe, like [`ready`](Self::ready).
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyGuard::get_ref`].
    #[allow(clippy::needless_lifetimes, reason = "it says what the guard borrows")]
    pub async fn writable<'a>(&'a self) -> io::Result<AsyncFdReadyGuard<'a, T>> {
        self.ready(Interest::WRITABLE).await
    }

    /// Waits until the descriptor is writable, and returns a guard with mutable access to
    /// the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the runtime has shut down, like [`ready`](Self::ready).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe, like [`ready`](Self::ready).
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyMutGuard::clear_ready`].
    #[allow(clippy::needless_lifetimes, reason = "it says what the guard borrows")]
    pub async fn writable_mut<'a>(&'a mut self) -> io::Result<AsyncFdReadyMutGuard<'a, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    /// Runs an I/O operation on the value, and repeats it once the descriptor is ready
    /// again for as long as it returns `WouldBlock`.
    ///
    /// # Errors
    ///
    /// Returns the operation's error, or an error if the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before completion, every call of the operation so far
    /// returned `WouldBlock`.
    ///
    /// # Examples
    ///
    /// See [`AsyncFd`].
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_io(interest, || f(self.get_ref())).await
    }

    /// Runs an I/O operation with mutable access to the value; otherwise like
    /// [`async_io`](Self::async_io).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`async_io`](Self::async_io).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before completion, every call of the operation so far
    /// returned `WouldBlock`, as with [`async_io`](Self::async_io).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Write, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::{Interest, unix::AsyncFd};
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let mut one = unsafe { AsyncFd::register(one)? };
    /// assert_eq!(one.async_io_mut(Interest::WRITABLE, |one| one.write(b"abc")).await?, 3);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut f: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let Self { registration, inner } = self;
        let inner = inner.as_mut().expect("the value is there until it is taken out");
        registration.async_io(interest, || f(inner)).await
    }

    /// Tries an I/O operation on the value once, without waiting.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock`, without a call of the operation, if the descriptor is not
    /// known to be ready; otherwise the operation's error. A `WouldBlock` of the operation
    /// clears the readiness.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::{ErrorKind, Read}, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::{Interest, unix::AsyncFd};
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// let error = one.try_io(Interest::READABLE, |mut one| one.read(&mut [0])).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::WouldBlock);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_io(interest, || f(self.get_ref()))
    }

    /// Tries an I/O operation once with mutable access to the value; otherwise like
    /// [`try_io`](Self::try_io).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_io`](Self::try_io).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Write, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::{Interest, unix::AsyncFd};
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let mut one = unsafe { AsyncFd::register(one)? };
    /// one.writable().await?.retain_ready();
    /// assert_eq!(one.try_io_mut(Interest::WRITABLE, |one| one.write(b"abc"))?, 3);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        f: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let Self { registration, inner } = self;
        let inner = inner.as_mut().expect("the value is there until it is taken out");
        registration.try_io(interest, || f(inner))
    }
}

/// Deprecated constructors, which require no promise about the descriptor.
impl<T: AsRawFd> AsyncFd<T> {
    /// Creates an `AsyncFd` for reading and writing.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`register`](Self::register).
    ///
    /// # Panics
    ///
    /// Panics where [`register`](Self::register) does.
    ///
    /// # Examples
    ///
    /// See [`register`](Self::register).
    #[inline]
    #[track_caller]
    #[deprecated(note = "nothing says that the descriptor stays open: use `AsyncFd::register`")]
    pub fn new(inner: T) -> io::Result<Self> {
        Ok(Self::attach(inner, Interest::READABLE | Interest::WRITABLE)?)
    }

    /// Creates an `AsyncFd` for the operations in `interest`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`register`](Self::register).
    ///
    /// # Panics
    ///
    /// Panics where [`register`](Self::register) does.
    ///
    /// # Examples
    ///
    /// See [`register_with_interest`](Self::register_with_interest).
    #[inline]
    #[track_caller]
    #[deprecated(
        note = "nothing says that the descriptor stays open: use `AsyncFd::register_with_interest`"
    )]
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<Self> {
        Ok(Self::attach(inner, interest)?)
    }

    /// Creates an `AsyncFd` for reading and writing, like [`new`](Self::new); after an
    /// error it returns the value with the error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`register`](Self::register).
    ///
    /// # Panics
    ///
    /// Panics where [`register`](Self::register) does.
    ///
    /// # Examples
    ///
    /// See [`register`](Self::register).
    #[inline]
    #[track_caller]
    #[deprecated(note = "nothing says that the descriptor stays open: use `AsyncFd::register`")]
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::attach(inner, Interest::READABLE | Interest::WRITABLE)
    }

    /// Creates an `AsyncFd` for the operations in `interest`, like
    /// [`with_interest`](Self::with_interest); after an error it returns the value with the
    /// error.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`register`](Self::register).
    ///
    /// # Panics
    ///
    /// Panics where [`register`](Self::register) does.
    ///
    /// # Examples
    ///
    /// See [`register_with_interest`](Self::register_with_interest).
    #[inline]
    #[track_caller]
    #[deprecated(
        note = "nothing says that the descriptor stays open: use `AsyncFd::register_with_interest`"
    )]
    pub fn try_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::attach(inner, interest)
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.get_ref().as_raw_fd()
    }
}

impl<T: AsRawFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        raw::borrow(self.get_ref()).expect("a value that was registered has a descriptor")
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd").field("inner", &self.inner).finish()
    }
}

impl<T: AsRawFd> Drop for AsyncFd<T> {
    fn drop(&mut self) {
        drop(self.detach());
    }
}
