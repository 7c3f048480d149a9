//! Errors of file operations that are not the system's.
//!
//! The system's errors are returned unchanged, with their number: programs match on
//! `raw_os_error()` (`ENOTEMPTY`, `EXDEV`, `ETXTBSY`), and an `io::Error` that holds a text of ours
//! has no number. `docs/design/errors.md` says what that costs.

#![forbid(unsafe_code)]

use std::io;

use crate::task::JoinError;

/// Returns the error for an operation on an open file or directory after its job was cancelled or
/// panicked.
#[cold]
pub(super) fn job_lost(why: &JoinError) -> io::Error {
    io::Error::other(if why.is_cancelled() {
        "the runtime has shut down before this file operation was done: do it on one that runs"
    } else {
        "a file operation panicked on its thread: what it has done is not known"
    })
}

/// Returns the error for an operation that could not start or finish because its runtime has shut
/// down. The text is Tokio's, because programs and Tokio's own tests compare with it.
#[cold]
pub(super) fn job_failed() -> io::Error {
    io::Error::other("background task failed")
}
