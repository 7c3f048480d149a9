//! Asynchronous I/O with any Unix file descriptor.
//!
//! [`AsyncFd`] is for descriptors that the runtime has no type for: those of a C library,
//! of a device, or of a socket family that the runtime does not know.

mod async_fd;
mod guard;
mod error;
mod raw;

#[allow(deprecated, reason = "programs may still name it")]
pub use self::error::AsyncFdTryNewError;
pub use self::{
    async_fd::AsyncFd,
    error::{AsyncFdRegisterError, TryIoError},
    guard::{AsyncFdReadyGuard, AsyncFdReadyMutGuard},
};
