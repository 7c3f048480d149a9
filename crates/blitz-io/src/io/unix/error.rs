//! The errors of `AsyncFd` and its guards.

use std::{error::Error, fmt, io};

/// The error of [`AsyncFdReadyGuard::try_io`](super::AsyncFdReadyGuard::try_io): the
/// operation would have blocked, and the readiness was cleared.
///
/// # Examples
///
/// ```
/// use std::{io::Read, os::unix::net::UnixStream};
///
/// use blitz_io::io::unix::AsyncFd;
///
/// # blitz_io::run(async {
/// let (one, _other) = UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// // SAFETY: a stream owns its descriptor until it is dropped.
/// let one = unsafe { AsyncFd::register(one)? };
/// let mut guard = one.writable().await?;
/// assert!(guard.try_io(|one| one.get_ref().read(&mut [0])).is_err());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct TryIoError(pub(super) ());

/// The error of [`AsyncFd::register`](super::AsyncFd::register): contains the system's
/// error, and the value that could not be registered.
///
/// # Examples
///
/// ```
/// use blitz_io::io::unix::AsyncFd;
///
/// # blitz_io::run(async {
/// let file = std::fs::File::open("/proc/self/exe")?;
/// // SAFETY: a file owns its descriptor until it is dropped.
/// let error = unsafe { AsyncFd::register(file) }.unwrap_err();
/// let (_file, cause) = error.into_parts();
/// assert_eq!(cause.kind(), std::io::ErrorKind::PermissionDenied);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct AsyncFdRegisterError<T> {
    pub(super) inner: T,
    pub(super) cause: io::Error,
}

/// The former name of [`AsyncFdRegisterError`].
#[doc(hidden)]
#[deprecated(note = "use `AsyncFdRegisterError`")]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

impl<T> AsyncFdRegisterError<T> {
    /// Returns the value that could not be registered, and the system's error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let file = std::fs::File::open("/proc/self/exe")?;
    /// // SAFETY: a file owns its descriptor until it is dropped.
    /// let Err(error) = (unsafe { AsyncFd::register(file) }) else { return Ok(()) };
    /// let (file, _cause) = error.into_parts();
    /// assert!(file.metadata()?.is_file());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> Self {
        error.cause
    }
}
