//! Unsafe code of descriptors: what a caller has to promise of one, and what follows.
//!
//! # Invariants
//! A descriptor is registered with the runtime's driver for as long as its `AsyncFd`
//! holds the value it came with. If the value promised wrongly and the descriptor is
//! closed or another by then, the driver's system call fails or names a stranger's
//! descriptor; no memory is touched by it.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::{AsyncFd, AsyncFdRegisterError};
use crate::io::Interest;

impl<T: AsRawFd> AsyncFd<T> {
    /// Creates an `AsyncFd` for reading and writing; the value takes part in the
    /// runtime's events until it is dropped or taken out.
    ///
    /// The descriptor should be in non-blocking mode: the runtime does not change it.
    ///
    /// # Safety
    ///
    /// 1. What `as_raw_fd` answers with is an open descriptor, the same one for as long
    ///    as `inner` lives.
    /// 2. Nobody closes it before that.
    ///
    /// # Errors
    ///
    /// The system's, for a descriptor that it cannot wait for (a plain file, say); the
    /// value comes back with it.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, or its I/O is not enabled.
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
    /// // SAFETY: 1. and 2. a stream owns its descriptor until it is dropped.
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

    /// Creates an `AsyncFd` for what `interest` says; otherwise as
    /// [`register`](Self::register).
    ///
    /// # Safety
    ///
    /// As [`register`](Self::register).
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    ///
    /// # Panics
    ///
    /// As [`register`](Self::register).
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
    /// // SAFETY: 1. and 2. a stream owns its descriptor until it is dropped.
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

/// The descriptor of a value, for as long as the value is borrowed.
pub(super) fn borrow<T: AsRawFd>(inner: &T) -> BorrowedFd<'_> {
    // SAFETY: that it is open while `inner` lives is what the caller of `register` has
    // promised (1. and 2.); the constructors that ask for no promise are deprecated for
    // that.
    unsafe { BorrowedFd::borrow_raw(inner.as_raw_fd()) }
}
