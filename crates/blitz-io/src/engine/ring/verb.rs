//! What the kernel can be asked to do, without the words of any one mechanism.
//!
//! A verb names memory and a descriptor by address and number: making one does nothing, and
//! submitting one is for those who keep both alive. Whatever a verb points to lies in the
//! payload of its operation.

use std::os::fd::RawFd;

/// The most that one operation moves: Linux's `MAX_RW_COUNT` for pages of 4 KiB, which is
/// what `read` and `write` stop at.
const MOST: usize = 0x7fff_f000;

/// Where an operation on a stream is: a file that has a position uses its own.
pub(crate) const HERE: u64 = u64::MAX;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    /// From a socket.
    Recv { fd: RawFd, memory: *mut u8, length: u32 },
    /// To a socket, without SIGPIPE.
    Send { fd: RawFd, memory: *const u8, length: u32 },
    /// From anything else, at an offset or [`HERE`].
    Read { fd: RawFd, memory: *mut u8, length: u32, offset: u64 },
    /// To anything else, at an offset or [`HERE`].
    Write { fd: RawFd, memory: *const u8, length: u32, offset: u64 },
}

/// What one operation moves of so many bytes.
pub(crate) fn length(wanted: usize) -> u32 {
    wanted.min(MOST) as u32
}
