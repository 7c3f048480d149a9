//! Guards for readiness that was observed: a guard clears it once an operation would block.

use std::{fmt, io, os::fd::AsRawFd};

use super::{AsyncFd, TryIoError};
use crate::{engine::driver::readiness::ReadyEvent, io::Ready};

/// Readiness of a descriptor that was observed and is not cleared yet.
///
/// The runtime assumes that the descriptor stays ready until the readiness is cleared, by
/// [`clear_ready`](Self::clear_ready), or by a [`try_io`](Self::try_io) that would have
/// blocked. A guard does not clear readiness that was reported after the guard was created.
///
/// # Examples
///
/// ```
/// use std::{io::{Read, Write}, os::unix::net::UnixStream};
///
/// use blitz_io::io::unix::AsyncFd;
///
/// # blitz_io::run(async {
/// let (one, mut other) = UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// // SAFETY: a stream owns its descriptor until it is dropped.
/// let one = unsafe { AsyncFd::register(one)? };
/// other.write_all(b"abc")?;
/// let mut buf = [0; 8];
/// let read = loop {
///     let mut guard = one.readable().await?;
///     match guard.try_io(|one| one.get_ref().read(&mut buf)) {
///         Ok(result) => break result?,
///         Err(_would_block) => continue,
///     }
/// };
/// assert_eq!(&buf[..read], b"abc");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[must_use = "a guard says what becomes of the readiness: `try_io`, `clear_ready` or `retain_ready`"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd> {
    async_fd: &'a AsyncFd<T>,
    observed: ObservedReady,
}

/// Readiness of a descriptor that was observed and is not cleared yet, with mutable access
/// to the [`AsyncFd`]; otherwise like [`AsyncFdReadyGuard`].
///
/// # Examples
///
/// ```
/// use std::{io::{Read, Write}, os::unix::net::UnixStream};
///
/// use blitz_io::io::unix::AsyncFd;
///
/// # blitz_io::run(async {
/// let (one, mut other) = UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// // SAFETY: a stream owns its descriptor until it is dropped.
/// let mut one = unsafe { AsyncFd::register(one)? };
/// other.write_all(b"x")?;
/// let mut guard = one.readable_mut().await?;
/// guard.get_inner_mut().read_exact(&mut [0])?;
/// guard.clear_ready();
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[must_use = "a guard says what becomes of the readiness: `try_io`, `clear_ready` or `retain_ready`"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd> {
    async_fd: &'a mut AsyncFd<T>,
    observed: ObservedReady,
}

/// The readiness that was observed, less the part that this guard has cleared.
struct ObservedReady(Option<ReadyEvent>);

impl ObservedReady {
    fn ready(&self) -> Ready {
        self.0.as_ref().map_or(Ready::EMPTY, ReadyEvent::ready)
    }

    fn clear<T: AsRawFd>(&mut self, fd: &AsyncFd<T>) {
        if let Some(event) = self.0.take() {
            fd.registration().clear_readiness(event);
        }
    }

    fn clear_matching<T: AsRawFd>(&mut self, fd: &AsyncFd<T>, ready: Ready) {
        if let Some(event) = self.0.take() {
            fd.registration().clear_readiness(event.only(ready));
            let rest = event.only(event.ready() - ready);
            self.0 = (!rest.ready().is_empty()).then_some(rest);
        }
    }
}

/// Converts the result of an operation for `try_io`: `WouldBlock` becomes a `TryIoError`.
fn try_io_result<R>(result: io::Result<R>) -> Result<io::Result<R>, TryIoError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(TryIoError(())),
        result => Ok(result),
    }
}

/// Defines the methods that both guards have.
macro_rules! common {
    () => {
        /// Marks the descriptor as not ready, for everything that this guard has observed.
        ///
        /// Call this method only after an operation has returned `WouldBlock`: the runtime
        /// then waits for the next event, which may not come for a long time.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::os::unix::net::UnixStream;
        ///
        /// use blitz_io::io::{Ready, unix::AsyncFd};
        ///
        /// # blitz_io::run(async {
        /// let (one, _other) = UnixStream::pair()?;
        /// one.set_nonblocking(true)?;
        /// // SAFETY: a stream owns its descriptor until it is dropped.
        /// let mut one = unsafe { AsyncFd::register(one)? };
        /// let mut guard = one.writable_mut().await?;
        /// guard.clear_ready();
        /// assert_eq!(guard.ready(), Ready::EMPTY);
        /// # std::io::Result::Ok(())
        /// # }).unwrap();
        /// ```
        pub fn clear_ready(&mut self) {
            self.observed.clear(&*self.async_fd);
        }

        /// Marks the descriptor as not ready, for the part of the readiness that is in
        /// `ready`; the rest stays.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::os::unix::net::UnixStream;
        ///
        /// use blitz_io::io::{Ready, unix::AsyncFd};
        ///
        /// # blitz_io::run(async {
        /// let (one, _other) = UnixStream::pair()?;
        /// one.set_nonblocking(true)?;
        /// // SAFETY: a stream owns its descriptor until it is dropped.
        /// let mut one = unsafe { AsyncFd::register(one)? };
        /// let mut guard = one.writable_mut().await?;
        /// guard.clear_ready_matching(Ready::READABLE);
        /// assert!(guard.ready().is_writable());
        /// # std::io::Result::Ok(())
        /// # }).unwrap();
        /// ```
        pub fn clear_ready_matching(&mut self, ready: Ready) {
            self.observed.clear_matching(&*self.async_fd, ready);
        }

        /// Keeps the readiness. Dropping the guard has the same effect; this method states
        /// it explicitly.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::os::unix::net::UnixStream;
        ///
        /// use blitz_io::io::unix::AsyncFd;
        ///
        /// # blitz_io::run(async {
        /// let (one, _other) = UnixStream::pair()?;
        /// one.set_nonblocking(true)?;
        /// // SAFETY: a stream owns its descriptor until it is dropped.
        /// let mut one = unsafe { AsyncFd::register(one)? };
        /// one.writable_mut().await?.retain_ready();
        /// assert!(one.writable().await?.ready().is_writable());
        /// # std::io::Result::Ok(())
        /// # }).unwrap();
        /// ```
        pub fn retain_ready(&mut self) {}

        /// Returns the readiness that was observed, less the part that this guard has
        /// cleared.
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
        /// assert!(guard.ready().is_writable() && !guard.ready().is_readable());
        /// # std::io::Result::Ok(())
        /// # }).unwrap();
        /// ```
        pub fn ready(&self) -> Ready {
            self.observed.ready()
        }
    };
}

impl<'a, Inner: AsRawFd> AsyncFdReadyGuard<'a, Inner> {
    pub(super) fn new(async_fd: &'a AsyncFd<Inner>, event: ReadyEvent) -> Self {
        Self { async_fd, observed: ObservedReady(Some(event)) }
    }

    common!();

    /// Runs an I/O operation, and clears the readiness if the operation would block.
    ///
    /// # Errors
    ///
    /// Returns `Err(TryIoError)` if the operation returned `WouldBlock`: the readiness was
    /// cleared, so wait again. Any other result of the operation, error or not, is in the
    /// `Ok`.
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyGuard`].
    pub fn try_io<R>(
        &mut self,
        f: impl FnOnce(&'a AsyncFd<Inner>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        try_io_result(f(self.async_fd)).inspect_err(|_| self.clear_ready())
    }

    /// Returns a reference to the [`AsyncFd`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// assert!(std::ptr::eq(one.writable().await?.get_ref(), &one));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn get_ref(&self) -> &'a AsyncFd<Inner> {
        self.async_fd
    }

    /// Returns a reference to the value of the [`AsyncFd`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// assert!(std::ptr::eq(one.writable().await?.get_inner(), one.get_ref()));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn get_inner(&self) -> &'a Inner {
        self.async_fd.get_ref()
    }
}

impl<'a, Inner: AsRawFd> AsyncFdReadyMutGuard<'a, Inner> {
    pub(super) fn new(async_fd: &'a mut AsyncFd<Inner>, event: ReadyEvent) -> Self {
        Self { async_fd, observed: ObservedReady(Some(event)) }
    }

    common!();

    /// Runs an I/O operation, and clears the readiness if the operation would block.
    ///
    /// # Errors
    ///
    /// Returns `Err(TryIoError)` if the operation returned `WouldBlock`, like
    /// [`AsyncFdReadyGuard::try_io`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Read, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: a stream owns its descriptor until it is dropped.
    /// let mut one = unsafe { AsyncFd::register(one)? };
    /// drop(other);
    /// let mut guard = one.readable_mut().await?;
    /// let end = guard.try_io(|one| one.get_mut().read(&mut [0; 8]));
    /// assert_eq!(end.unwrap()?, 0);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn try_io<R>(
        &mut self,
        f: impl FnOnce(&mut AsyncFd<Inner>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        try_io_result(f(self.async_fd)).inspect_err(|_| self.clear_ready())
    }

    /// Returns a reference to the [`AsyncFd`].
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyMutGuard`].
    pub fn get_ref(&self) -> &AsyncFd<Inner> {
        self.async_fd
    }

    /// Returns a mutable reference to the [`AsyncFd`].
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyMutGuard`].
    pub fn get_mut(&mut self) -> &mut AsyncFd<Inner> {
        self.async_fd
    }

    /// Returns a reference to the value of the [`AsyncFd`].
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyMutGuard`].
    pub fn get_inner(&self) -> &Inner {
        self.async_fd.get_ref()
    }

    /// Returns a mutable reference to the value of the [`AsyncFd`].
    ///
    /// # Examples
    ///
    /// See [`AsyncFdReadyMutGuard`].
    pub fn get_inner_mut(&mut self) -> &mut Inner {
        self.async_fd.get_mut()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyGuard").field("async_fd", &self.async_fd).finish()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyMutGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutReadyGuard").field("async_fd", &self.async_fd).finish()
    }
}
