//! What files need and the compiler cannot check: system calls that std does not have,
//! memory that only the kernel has filled, and descriptors taken over by their number.

#[cfg(unix)]
use std::{
    ffi::{c_int, c_void},
    os::fd::{AsRawFd, FromRawFd, RawFd},
};
use std::{fs::File, io};

use crate::buf::OwnedBufMut;
#[cfg(target_os = "linux")]
use crate::io::ReadBuf;

/// A count, or what the system says.
#[cfg(unix)]
fn counted(answer: impl TryInto<usize>) -> io::Result<usize> {
    answer.try_into().map_err(|_| io::Error::last_os_error())
}

/// A buffer that is owned, and how much was read into it, from the beginning. Only what the
/// kernel has written counts.
#[derive(Debug)]
pub(super) struct Filling<B> {
    buf: B,
    filled: usize,
}

impl<B: OwnedBufMut> Filling<B> {
    pub(super) fn new(buf: B) -> Self {
        Self { buf, filled: 0 }
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    pub(super) fn room(&self) -> usize {
        self.buf.bytes_total() - self.filled
    }

    /// So many more were written, by the kernel's word.
    fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buf.bytes_total());
    }

    /// The buffer, which begins with what was read; as it was, if it failed before anything
    /// was.
    pub(super) fn finish(mut self, failed: bool) -> B {
        if self.filled > 0 || !failed {
            // SAFETY: 1. the kernel has written so many, one behind the other, and there are
            // as many.
            unsafe { self.buf.set_init(self.filled) };
        }
        self.buf
    }

    /// Where the next bytes go.
    fn rest(&mut self) -> *mut u8 {
        self.buf.stable_mut_ptr().wrapping_add(self.filled)
    }

    /// Reads once at `offset` into what is free, and waits for it.
    #[cfg(unix)]
    pub(super) fn read_at(&mut self, file: &File, offset: u64) -> io::Result<usize> {
        let offset = position(offset)?;
        let (memory, room) = (self.rest(), self.room());
        // SAFETY: so many bytes there are the buffer's, initialised or not, until the call has
        // returned; the descriptor is open for as long as `file` is borrowed.
        let count = counted(unsafe { pread(file.as_raw_fd(), memory.cast(), room, offset) })?;
        self.advance(count);
        Ok(count)
    }

    /// Reads once at `offset` into what is free, and waits for it.
    #[cfg(windows)]
    pub(super) fn read_at(&mut self, file: &File, offset: u64) -> io::Result<usize> {
        let (memory, room) = (self.rest(), self.room());
        // SAFETY: so many bytes there are the buffer's and may be written.
        unsafe { memory.write_bytes(0, room) };
        // SAFETY: they are initialised now, and borrowed with the buffer.
        let free = unsafe { std::slice::from_raw_parts_mut(memory, room) };
        let count = std::os::windows::fs::FileExt::seek_read(file, free, offset)?;
        self.advance(count);
        Ok(count)
    }

    /// Reads at `offset` what lies in the page cache, `most` bytes of it.
    #[cfg(target_os = "linux")]
    pub(super) fn read_cached_at(
        &mut self,
        file: &File,
        offset: u64,
        most: usize,
    ) -> io::Result<usize> {
        let offset = position(offset)?;
        let piece = libc::iovec { iov_base: self.rest().cast(), iov_len: self.room().min(most) };
        // SAFETY: 1. so many bytes there are the buffer's, initialised or not.
        let count = unsafe { preadv2(file, &[piece], offset, libc::RWF_NOWAIT) }?;
        self.advance(count);
        Ok(count)
    }
}

/// An offset as the system has it.
#[cfg(unix)]
fn position(offset: u64) -> io::Result<i64> {
    i64::try_from(offset).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "the offset is beyond the end of any file")
    })
}

/// `pread` with offsets of 64 bits, whatever the system calls it.
///
/// # Safety
/// 1. `length` bytes at `memory` may be written until the call has returned.
#[cfg(unix)]
unsafe fn pread(fd: c_int, memory: *mut c_void, length: usize, offset: i64) -> isize {
    #[cfg(target_os = "linux")]
    // SAFETY: 1.
    return unsafe { libc::pread64(fd, memory, length, offset) };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: 1.
    return unsafe { libc::pread(fd, memory, length, offset) };
}

/// `preadv2` at an offset, or where the file's cursor is (-1), which it then moves.
///
/// # Safety
/// 1. The memory of each piece may be written until the call has returned.
#[cfg(target_os = "linux")]
unsafe fn preadv2(
    file: &File,
    pieces: &[libc::iovec],
    offset: i64,
    flags: c_int,
) -> io::Result<usize> {
    // Two halves where a word has no room for it; the kernel ignores the second elsewhere.
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    // SAFETY: 1., and so many pieces are there. The descriptor is open for as long as `file`
    // is borrowed. The arguments are the kernel's, in its order.
    counted(unsafe {
        libc::syscall(
            libc::SYS_preadv2,
            file.as_raw_fd(),
            pieces.as_ptr(),
            pieces.len(),
            low,
            high,
            flags,
        )
    })
}

/// `offset` of [`preadv2`] that means the cursor.
#[cfg(target_os = "linux")]
const CURSOR: i64 = -1;

/// Reads at the cursor what lies in the page cache, `most` bytes of it.
#[cfg(target_os = "linux")]
pub(super) fn read_cached(file: &File, into: &mut ReadBuf<'_>, most: usize) -> io::Result<usize> {
    // SAFETY: what is initialised stays so: the kernel only writes to it.
    let free = unsafe { into.unfilled_mut() };
    let piece = libc::iovec { iov_base: free.as_mut_ptr().cast(), iov_len: free.len().min(most) };
    // SAFETY: 1. so many bytes there are the buffer's.
    let count = unsafe { preadv2(file, &[piece], CURSOR, libc::RWF_NOWAIT) }?;
    // SAFETY: the kernel has written so many, from the start of the unfilled part.
    unsafe { into.assume_init(count) };
    into.advance(count);
    Ok(count)
}

/// Reads at the cursor what lies in the page cache, as much as the vector has room for.
#[cfg(target_os = "linux")]
pub(super) fn read_cached_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
    let free = into.spare_capacity_mut();
    let piece = libc::iovec { iov_base: free.as_mut_ptr().cast(), iov_len: free.len() };
    // SAFETY: 1. so many bytes there are the vector's.
    let count = unsafe { preadv2(file, &[piece], CURSOR, libc::RWF_NOWAIT) }?;
    // SAFETY: the kernel has written so many behind what was there, and there was room.
    unsafe { into.set_len(into.len() + count) };
    Ok(count)
}

/// Whether the file can be asked for what lies in the cache. Reads a byte at its beginning
/// for it, which moves no cursor.
#[cfg(target_os = "linux")]
pub(super) fn knows_nowait(file: &File) -> bool {
    let mut byte = 0u8;
    let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: 1. one byte, ours.
    match unsafe { preadv2(file, &[piece], 0, libc::RWF_NOWAIT) } {
        Ok(_) => true,
        Err(why) => why.raw_os_error() == Some(libc::EAGAIN),
    }
}

/// Reads once at `offset` into several buffers, one behind the other: what is cached, if `now`,
/// and else waits for it. The answer says how much it was; each buffer has its part.
#[cfg(target_os = "linux")]
pub(super) fn readv_at<B: OwnedBufMut>(
    file: &File,
    bufs: &mut [B],
    offset: u64,
    now: bool,
) -> io::Result<usize> {
    let offset = position(offset)?;
    let pieces: Vec<_> = bufs
        .iter_mut()
        .take(MOST_PIECES)
        .map(|buf| libc::iovec {
            iov_base: buf.stable_mut_ptr().cast(),
            iov_len: buf.bytes_total(),
        })
        .collect();
    // SAFETY: 1. each piece is a buffer's own memory, which stays where it is.
    let count = unsafe {
        if now {
            preadv2(file, &pieces, offset, libc::RWF_NOWAIT)
        } else {
            preadv(file, &pieces, offset)
        }
    }?;
    let mut left = count;
    for buf in bufs {
        let part = left.min(buf.bytes_total());
        // SAFETY: 1. the kernel has filled the pieces in their order, and this one so far.
        unsafe { buf.set_init(part) };
        left -= part;
    }
    Ok(count)
}

/// `preadv` at an offset.
///
/// # Safety
/// 1. The memory of each piece may be written until the call has returned.
#[cfg(target_os = "linux")]
unsafe fn preadv(file: &File, pieces: &[libc::iovec], offset: i64) -> io::Result<usize> {
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    // SAFETY: 1., and as in `preadv2`.
    counted(unsafe {
        libc::syscall(libc::SYS_preadv, file.as_raw_fd(), pieces.as_ptr(), pieces.len(), low, high)
    })
}

/// Writes once at `offset` from several buffers, one behind the other.
#[cfg(target_os = "linux")]
pub(super) fn writev_at(file: &File, pieces: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
    let offset = position(offset)?;
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    let count = pieces.len().min(MOST_PIECES);
    // SAFETY: an `IoSlice` has the layout of an `iovec`, and what it names is borrowed until
    // the call has returned, as is the file. The arguments are the kernel's, in its order.
    counted(unsafe {
        libc::syscall(libc::SYS_pwritev, file.as_raw_fd(), pieces.as_ptr(), count, low, high)
    })
}

/// Pieces that the kernel takes at once: `UIO_MAXIOV`.
#[cfg(target_os = "linux")]
pub(super) const MOST_PIECES: usize = 1024;

/// What the kernel knows of a file without asking anybody.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) is_regular: bool,
    pub(super) size: u64,
    /// Its file system.
    pub(super) device: u64,
}

/// Asks what a descriptor is, and has no server asked for it. Works with `O_PATH`.
#[cfg(target_os = "linux")]
pub(super) fn know(file: &File) -> io::Result<Known> {
    const NO_SERVER: c_int = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: any bytes make a `statx`.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the empty name ends with its zero, `found` has room for what is written, and the
    // descriptor is open for as long as `file` is borrowed.
    counted(unsafe {
        libc::syscall(
            libc::SYS_statx,
            file.as_raw_fd(),
            c"".as_ptr(),
            NO_SERVER,
            libc::STATX_TYPE | libc::STATX_SIZE,
            &raw mut found,
        )
    })?;
    Ok(Known {
        is_regular: u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG,
        size: found.stx_size,
        device: u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor),
    })
}

/// Has the kernel read once at `offset` into what is free, without a thread of ours that waits.
/// `None` if it says anything but a count, or if there is no ring: then nothing was read.
#[cfg(all(target_os = "linux", feature = "net"))]
pub(super) async fn read_by_ring<B: OwnedBufMut>(
    file: &File,
    mut filling: Filling<B>,
    offset: u64,
) -> (Option<usize>, Filling<B>) {
    use crate::{
        engine::ring::{
            Ring,
            flight::must_begin_again,
            verb::{Verb, length},
        },
        runtime::context,
    };

    let (Some(driver), Ok(_)) = (context::steady_io_driver(), position(offset)) else {
        return (None, filling);
    };
    while let Some(ring) = Ring::of(&driver) {
        let verb = |filling: &mut Filling<B>| Verb::Read {
            fd: file.as_raw_fd(),
            memory: filling.rest(),
            length: length(filling.room()),
            offset,
        };
        // SAFETY: 1. so much memory is the buffer's and stays where it is, by the promise of
        // `OwnedBuf`; it may be written through that pointer, by the one of `OwnedBufMut`. 2. It
        // is borrowed.
        let begun = unsafe { ring.submit(filling, verb) };
        let (result, back) = match begun {
            Ok(flight) => flight.await,
            Err((_, back)) => return (None, back),
        };
        filling = back;
        if let Ok(count) = usize::try_from(result) {
            filling.advance(count);
            return (Some(count), filling);
        }
        if !must_begin_again(result) {
            break;
        }
    }
    (None, filling)
}

/// Opens a path if all that has to be looked up for it lies in the kernel's memory.
#[cfg(target_os = "linux")]
pub(super) fn open_cached(path: &std::ffi::CStr, flags: c_int) -> io::Result<File> {
    // SAFETY: any bytes make an `open_how`.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the path ends with a zero, and `how` has the size that is given.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    let fd = RawFd::try_from(counted(fd)?).map_err(io::Error::other)?;
    // SAFETY: it was opened above, for us alone.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The type of the file system that a file lies in. May ask a server.
#[cfg(target_os = "linux")]
pub(super) fn file_system(file: &File) -> io::Result<u64> {
    // SAFETY: any bytes make a `statfs`.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `found` has room for what is written, and the descriptor is open for as long as
    // `file` is borrowed.
    counted(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) })?;
    // Its type is signed, unsigned, or half as wide, by the architecture.
    #[allow(clippy::unnecessary_cast, reason = "it is as wide here")]
    Ok(found.f_type as u32 as u64)
}

/// How a descriptor was opened: `O_DIRECT` and so on.
#[cfg(target_os = "linux")]
pub(super) fn flags(file: &File) -> io::Result<c_int> {
    // SAFETY: asks about a descriptor that is open for as long as `file` is borrowed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    counted(flags)?;
    Ok(flags)
}

/// Takes `O_NONBLOCK` off a file that was opened with that and for reading only.
#[cfg(target_os = "linux")]
pub(super) fn make_plain(file: &File) -> io::Result<()> {
    // SAFETY: sets flags of a descriptor that is open for as long as `file` is borrowed.
    counted(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) }).map(drop)
}

/// Makes `to` share the blocks of `from`, where the file system can.
#[cfg(target_os = "linux")]
pub(super) fn clone_blocks(from: &File, to: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open for as long as they are borrowed; no memory is given.
    counted(unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) }).map(drop)
}

/// Has the kernel copy `most` bytes from one cursor to the other.
#[cfg(target_os = "linux")]
pub(super) fn copy_range(from: &File, to: &File, most: usize) -> io::Result<usize> {
    let cursor = std::ptr::null_mut::<i64>();
    // SAFETY: both descriptors are open for as long as they are borrowed, and no memory is
    // given: without an offset each file's cursor is used.
    counted(unsafe {
        libc::syscall(
            libc::SYS_copy_file_range,
            from.as_raw_fd(),
            cursor,
            to.as_raw_fd(),
            cursor,
            most,
            0u32,
        )
    })
}

#[cfg(unix)]
impl FromRawFd for super::File {
    /// Takes over a file by its number.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: our caller's promise is the one that is asked for: `fd` is open, and now
        // ours.
        Self::from_std(unsafe { File::from_raw_fd(fd) })
    }
}

#[cfg(windows)]
impl std::os::windows::io::FromRawHandle for super::File {
    /// Takes over a file by its handle.
    unsafe fn from_raw_handle(handle: std::os::windows::io::RawHandle) -> Self {
        // SAFETY: our caller's promise is the one that is asked for: an open file, and now
        // ours.
        Self::from_std(unsafe { std::os::windows::io::FromRawHandle::from_raw_handle(handle) })
    }
}
