//! The kinds of operations, independent of the system interface that performs them.
//!
//! An `OpKind` names memory and a descriptor by address and number. Creating one has no effect; the
//! code that submits it must keep both alive. Whatever it points to lies in the payload of its
//! operation.

use std::os::fd::RawFd;

/// The maximum number of bytes of one operation: Linux's `MAX_RW_COUNT` for pages of 4 KiB, which
/// is the limit of `read` and `write` too.
const MOST: usize = 0x7fff_f000;

/// The offset of an operation on a stream: a file that has a position uses that.
pub(crate) const CURRENT_POSITION: u64 = u64::MAX;

/// An operation to submit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OpKind {
    /// Receives from a socket.
    Recv { fd: RawFd, memory: *mut u8, length: u32 },
    /// Sends to a socket, without SIGPIPE.
    Send { fd: RawFd, memory: *const u8, length: u32 },
    /// Reads from any other descriptor, at an offset or [`CURRENT_POSITION`].
    Read { fd: RawFd, memory: *mut u8, length: u32, offset: u64 },
    /// Writes to any other descriptor, at an offset or [`CURRENT_POSITION`].
    Write { fd: RawFd, memory: *const u8, length: u32, offset: u64 },
}

/// Returns how many of the wanted bytes one operation moves.
pub(crate) fn length(wanted: usize) -> u32 {
    wanted.min(MOST) as u32
}
