//! The unsafe code of descriptors: what a caller must promise of a descriptor, and what
//! follows.
//!
//! # Invariants
//! A descriptor is registered with the runtime's driver for as long as its `AsyncFd` holds
//! the value that it came with. If the promise was false, and the descriptor was closed or
//! reused by then, the driver's system call fails or affects an unrelated descriptor; it
//! does not access any memory.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use super::{AsyncFd, AsyncFdRegisterError};
use crate::io::Interest;

impl<T: AsRawFd> AsyncFd<T> {
    /// Creates an `AsyncFd` for reading and writing, and registers its descriptor with the
    /// runtime.
    ///
    /// The descriptor stays registered until the value is dropped or taken out.
    ///
    /// The descriptor should be in non-blocking mode: the runtime does not change it.
    ///
    /// # Safety
    ///
    /// 1. `as_raw_fd` must return an open descriptor, the same one for as long as `inner`
    ///    lives.
    /// 2. No code may close the descriptor before `inner` is dropped.
    ///
    /// # Errors
    ///
    /// Returns the system's error for a descriptor that it cannot wait for (a plain file,
    /// for example), together with the value.
    ///
    /// # Panics
    ///
    /// Panics if there is no runtime on this thread, or if I/O is not enabled in it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io::Write, os::unix::net::UnixStream};
    ///
    /// use blitz_io::io::unix::AsyncFd;
    ///
    /// # blitz_io::run(async {
    /// let (one, mut other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: 1. and 2. A stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register(one)? };
    /// other.write_all(b"x")?;
    /// assert!(one.readable().await?.ready().is_readable());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[inline]
    #[track_caller]
    pub unsafe fn register(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::attach(inner, Interest::READABLE | Interest::WRITABLE)
    }

    /// Creates an `AsyncFd` for the operations in `interest`; otherwise like
    /// [`register`](Self::register).
    ///
    /// # Safety
    ///
    /// The obligations are those of [`register`](Self::register).
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
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// use blitz_io::io::{Interest, unix::AsyncFd};
    ///
    /// # blitz_io::run(async {
    /// let (one, _other) = UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// // SAFETY: 1. and 2. A stream owns its descriptor until it is dropped.
    /// let one = unsafe { AsyncFd::register_with_interest(one, Interest::WRITABLE)? };
    /// assert!(one.writable().await?.ready().is_writable());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[inline]
    #[track_caller]
    pub unsafe fn register_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::attach(inner, interest)
    }
}

/// Borrows the descriptor of a value, for as long as the value is borrowed.
///
/// # Errors
/// Returns `EBADF` if the value reports that it has no descriptor (-1), because no
/// `BorrowedFd` can be -1.
pub(super) fn borrow<T: AsRawFd>(inner: &T) -> io::Result<BorrowedFd<'_>> {
    let fd = inner.as_raw_fd();
    if fd == -1 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the caller of `register` has promised (1. and 2.) that the descriptor is open
    // while `inner` lives; the constructors that require no promise are deprecated because
    // of that. The descriptor is not -1.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}
