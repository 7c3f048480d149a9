//! Unsafe code for files: system calls that std does not have, memory that only the kernel has
//! initialised, and descriptors taken over by their number.

#[cfg(unix)]
use std::{
    ffi::{c_int, c_void},
    os::fd::{AsRawFd, FromRawFd, RawFd},
};
use std::{fs::File, io};

use crate::buf::OwnedBufMut;
#[cfg(target_os = "linux")]
use crate::io::ReadBuf;

/// Converts the return value of a system call: a count, or the system's last error if it is
/// negative.
#[cfg(unix)]
fn cvt(ret: impl TryInto<usize>) -> io::Result<usize> {
    ret.try_into().map_err(|_| io::Error::last_os_error())
}

/// An owned buffer and the number of bytes read into it, from its beginning. Only bytes that the
/// kernel has written count.
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

    /// Counts `count` more bytes as read; the kernel must have reported that it wrote them.
    fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.buf.bytes_total());
    }

    /// Returns the buffer, which begins with the bytes that were read; it is unchanged if the read
    /// failed before it read anything.
    pub(super) fn finish(mut self, failed: bool) -> B {
        if self.filled > 0 || !failed {
            // SAFETY: 1. the kernel has initialised the first `filled` bytes, one after the other,
            // and `filled` is at most the size of the buffer.
            unsafe { self.buf.set_init(self.filled) };
        }
        self.buf
    }

    /// Returns where the next bytes go.
    fn rest(&mut self) -> *mut u8 {
        self.buf.stable_mut_ptr().wrapping_add(self.filled)
    }

    /// Reads once at `offset` into the free part of the buffer. Blocks.
    #[cfg(unix)]
    pub(super) fn read_at(&mut self, file: &File, offset: u64) -> io::Result<usize> {
        let offset = position(offset)?;
        let (memory, room) = (self.rest(), self.room());
        // SAFETY: 1. the `room` bytes at `memory` belong to the buffer, initialised or not, and may
        // be written until the call has returned. The descriptor is open for as long as `file` is
        // borrowed.
        let count = cvt(unsafe { pread(file.as_raw_fd(), memory.cast(), room, offset) })?;
        self.advance(count);
        Ok(count)
    }

    /// Reads once at `offset` into the free part of the buffer. Blocks.
    #[cfg(windows)]
    pub(super) fn read_at(&mut self, file: &File, offset: u64) -> io::Result<usize> {
        let (memory, room) = (self.rest(), self.room());
        // SAFETY: the `room` bytes at `memory` belong to the buffer and may be written.
        unsafe { memory.write_bytes(0, room) };
        // SAFETY: the line above has initialised these bytes, and the buffer is borrowed mutably.
        let free = unsafe { std::slice::from_raw_parts_mut(memory, room) };
        let count = std::os::windows::fs::FileExt::seek_read(file, free, offset)?;
        self.advance(count);
        Ok(count)
    }

    /// Reads at `offset` what lies in the page cache, at most `limit` bytes of it.
    #[cfg(target_os = "linux")]
    pub(super) fn read_cached_at(
        &mut self,
        file: &File,
        offset: u64,
        limit: usize,
    ) -> io::Result<usize> {
        let offset = position(offset)?;
        let piece = libc::iovec { iov_base: self.rest().cast(), iov_len: self.room().min(limit) };
        // SAFETY: 1. the `iov_len` bytes there belong to the buffer, initialised or not, and may be
        // written until the call has returned.
        let count = unsafe { preadv2(file, &[piece], offset, libc::RWF_NOWAIT) }?;
        self.advance(count);
        Ok(count)
    }
}

/// Converts an offset to the system's signed type.
#[cfg(unix)]
fn position(offset: u64) -> io::Result<i64> {
    i64::try_from(offset).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "the offset is beyond the end of any file")
    })
}

/// Calls `pread` with a 64-bit offset, under whichever name the system has for it.
///
/// # Safety
/// 1. `length` bytes at `memory` may be written until the call has returned.
#[cfg(unix)]
unsafe fn pread(fd: c_int, memory: *mut c_void, length: usize, offset: i64) -> isize {
    #[cfg(target_os = "linux")]
    // SAFETY: our own obligation 1: `length` bytes at `memory` may be written during the call.
    return unsafe { libc::pread64(fd, memory, length, offset) };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: our own obligation 1: `length` bytes at `memory` may be written during the call.
    return unsafe { libc::pread(fd, memory, length, offset) };
}

/// Calls `preadv2` at an offset, or at the file's cursor (offset -1), which the call then moves.
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
    // Two halves for words of 32 bits; on 64 bits the kernel ignores the second.
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    // SAFETY: our own obligation 1: the memory of each piece may be written during the call.
    // `pieces` has as many entries as its length says. The descriptor is open for as long as `file`
    // is borrowed. The arguments are those of the system call, in its order.
    cvt(unsafe {
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

/// The `offset` of [`preadv2`] that means the file's cursor.
#[cfg(target_os = "linux")]
const CURSOR: i64 = -1;

/// Reads at the cursor what lies in the page cache, at most `limit` bytes of it.
#[cfg(target_os = "linux")]
pub(super) fn read_cached(file: &File, into: &mut ReadBuf<'_>, limit: usize) -> io::Result<usize> {
    // SAFETY: initialised bytes stay initialised, because the kernel only writes to them.
    let free = unsafe { into.unfilled_mut() };
    let piece = libc::iovec { iov_base: free.as_mut_ptr().cast(), iov_len: free.len().min(limit) };
    // SAFETY: 1. the `iov_len` bytes there are the unfilled part of `into`, which is borrowed
    // mutably until the call has returned.
    let count = unsafe { preadv2(file, &[piece], CURSOR, libc::RWF_NOWAIT) }?;
    // SAFETY: the kernel has written `count` bytes from the start of the unfilled part.
    unsafe { into.assume_init(count) };
    into.advance(count);
    Ok(count)
}

/// Reads at the cursor what lies in the page cache, as many bytes as the vector has room for.
#[cfg(target_os = "linux")]
pub(super) fn read_cached_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
    let free = into.spare_capacity_mut();
    let piece = libc::iovec { iov_base: free.as_mut_ptr().cast(), iov_len: free.len() };
    // SAFETY: 1. the `iov_len` bytes there are the spare capacity of `into`, which is borrowed
    // mutably until the call has returned.
    let count = unsafe { preadv2(file, &[piece], CURSOR, libc::RWF_NOWAIT) }?;
    // SAFETY: the kernel has written `count` bytes after the old length, within the capacity.
    unsafe { into.set_len(into.len() + count) };
    Ok(count)
}

/// Returns true if the file supports `RWF_NOWAIT`. Tries it by reading the first byte, which moves
/// no cursor.
#[cfg(target_os = "linux")]
pub(super) fn supports_nowait(file: &File) -> bool {
    let mut byte = 0u8;
    let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: 1. the piece is one byte, a local variable of ours.
    match unsafe { preadv2(file, &[piece], 0, libc::RWF_NOWAIT) } {
        Ok(_) => true,
        Err(why) => why.raw_os_error() == Some(libc::EAGAIN),
    }
}

/// Reads once at `offset` into several buffers, one after the other, and returns the total number
/// of bytes; each buffer's length is set to its part. With `nowait`, only what is cached is read;
/// otherwise the call blocks.
#[cfg(target_os = "linux")]
pub(super) fn readv_at<B: OwnedBufMut>(
    file: &File,
    bufs: &mut [B],
    offset: u64,
    nowait: bool,
) -> io::Result<usize> {
    let offset = position(offset)?;
    let pieces: Vec<_> = bufs
        .iter_mut()
        .take(MAX_IOVECS)
        .map(|buf| libc::iovec {
            iov_base: buf.stable_mut_ptr().cast(),
            iov_len: buf.bytes_total(),
        })
        .collect();
    // SAFETY: 1. each piece is memory of a buffer, which stays where it is, and the buffers are
    // borrowed mutably until the call has returned.
    let count = unsafe {
        if nowait {
            preadv2(file, &pieces, offset, libc::RWF_NOWAIT)
        } else {
            preadv(file, &pieces, offset)
        }
    }?;
    let mut left = count;
    for buf in bufs {
        let part = left.min(buf.bytes_total());
        // SAFETY: 1. the kernel has filled the pieces in their order, and the first `part` bytes of
        // this one.
        unsafe { buf.set_init(part) };
        left -= part;
    }
    Ok(count)
}

/// Calls `preadv` at an offset.
///
/// # Safety
/// 1. The memory of each piece may be written until the call has returned.
#[cfg(target_os = "linux")]
unsafe fn preadv(file: &File, pieces: &[libc::iovec], offset: i64) -> io::Result<usize> {
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    // SAFETY: our own obligation 1: the memory of each piece may be written during the call.
    // `pieces` has as many entries as its length says, and the descriptor is open for as long as
    // `file` is borrowed. The arguments are those of the system call, in its order.
    cvt(unsafe {
        libc::syscall(libc::SYS_preadv, file.as_raw_fd(), pieces.as_ptr(), pieces.len(), low, high)
    })
}

/// Writes once at `offset` from several buffers, one after the other.
#[cfg(target_os = "linux")]
pub(super) fn writev_at(file: &File, pieces: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
    let offset = position(offset)?;
    let (low, high) = (offset as libc::c_long, (offset >> 32) as libc::c_long);
    let count = pieces.len().min(MAX_IOVECS);
    // SAFETY: an `IoSlice` has the layout of an `iovec`, and its bytes are borrowed until the call
    // has returned, as is the file. The arguments are those of the system call, in its order.
    cvt(unsafe {
        libc::syscall(libc::SYS_pwritev, file.as_raw_fd(), pieces.as_ptr(), count, low, high)
    })
}

/// Maximum number of pieces that the kernel takes per call: `UIO_MAXIOV`.
#[cfg(target_os = "linux")]
pub(super) const MAX_IOVECS: usize = 1024;

/// Metadata of a file that the kernel knows without involving a server.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
pub(super) struct FileStat {
    /// File type: `S_IFREG` and so on.
    pub(super) kind: libc::mode_t,
    pub(super) size: u64,
    pub(super) inode: u64,
    /// Mount of the file, if it has a name that is never given to another mount.
    pub(super) mount: Option<Mount>,
}

/// Name of a mounted file system, never given to another.
///
/// Device numbers are reused: the file system of a server (FUSE, NFS) gets one of those without a
/// block device (major 0), which another mount may have had before. So the mount's unique ID is
/// used, which Linux 6.8 and later never assign twice. Before that, only the number of a block
/// device is a name. A FUSE server may mount such a device as well, after it was unmounted from a
/// local file system: then a file is opened on a worker that should have been opened by a blocking
/// thread.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mount {
    Unique(u64),
    Device { major: u32, minor: u32 },
}

/// The flag `STATX_MNT_ID_UNIQUE`, which older versions of libc do not have.
#[cfg(target_os = "linux")]
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

#[cfg(target_os = "linux")]
impl Mount {
    fn of(found: &libc::statx) -> Option<Self> {
        if found.stx_mask & STATX_MNT_ID_UNIQUE != 0 {
            return Some(Self::Unique(found.stx_mnt_id));
        }
        let (major, minor) = (found.stx_dev_major, found.stx_dev_minor);
        (major != 0).then_some(Self::Device { major, minor })
    }
}

/// Queries the metadata of a descriptor without involving a server. Works with `O_PATH`.
#[cfg(target_os = "linux")]
pub(super) fn stat(file: &File) -> io::Result<FileStat> {
    const NO_SYNC: c_int = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: all bytes zero is a valid `statx`, which consists of integers.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the empty name ends with its zero, `found` has room for what is written, and the
    // descriptor is open for as long as `file` is borrowed.
    cvt(unsafe {
        libc::syscall(
            libc::SYS_statx,
            file.as_raw_fd(),
            c"".as_ptr(),
            NO_SYNC,
            libc::STATX_TYPE | libc::STATX_SIZE | libc::STATX_INO | STATX_MNT_ID_UNIQUE,
            &raw mut found,
        )
    })?;
    Ok(FileStat {
        kind: libc::mode_t::from(found.stx_mode) & libc::S_IFMT,
        size: found.stx_size,
        inode: found.stx_ino,
        mount: Mount::of(&found),
    })
}

/// Reads once at `offset` into the free part of the buffer by io_uring, so that no thread of ours
/// blocks. Returns `None`, with nothing read, if there is no io_uring instance or it reports
/// anything but a count.
#[cfg(all(target_os = "linux", feature = "net"))]
pub(super) async fn read_by_uring<B: OwnedBufMut>(
    file: &File,
    mut filling: Filling<B>,
    offset: u64,
) -> (Option<usize>, Filling<B>) {
    use crate::{
        engine::uring::{
            Uring,
            op_future::must_resubmit,
            op_kind::{OpKind, length},
        },
        runtime::context,
    };

    let (Some(driver), Ok(_)) = (context::steady_io_driver(), position(offset)) else {
        return (None, filling);
    };
    while let Some(uring) = Uring::of(&driver) {
        let op_kind = |filling: &mut Filling<B>| OpKind::Read {
            fd: file.as_raw_fd(),
            memory: filling.rest(),
            length: length(filling.room()),
            offset,
        };
        // SAFETY: 1. the memory belongs to the buffer and stays where it is when the buffer is
        // moved, by the contract of `OwnedBuf`, and may be written through that pointer, by the
        // contract of `OwnedBufMut`; only the payload accesses it. 2. `file` is borrowed, so its
        // descriptor is open.
        let begun = unsafe { uring.submit(filling, op_kind) };
        let (result, back) = match begun {
            Ok(op) => op.await,
            Err((_, back)) => return (None, back),
        };
        filling = back;
        if let Ok(count) = usize::try_from(result) {
            filling.advance(count);
            return (Some(count), filling);
        }
        if !must_resubmit(result) {
            break;
        }
    }
    (None, filling)
}

/// Opens a path if everything that has to be looked up for it lies in the kernel's memory.
#[cfg(target_os = "linux")]
pub(super) fn open_cached(path: &std::ffi::CStr, flags: c_int) -> io::Result<File> {
    // SAFETY: all bytes zero is a valid `open_how`, which consists of integers.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the path ends with a zero, and `how` has the size that is passed.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    let fd = RawFd::try_from(cvt(fd)?).map_err(io::Error::other)?;
    // SAFETY: the descriptor was opened above, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Returns the type of the file system that a file lies in. May block on a server.
#[cfg(target_os = "linux")]
pub(super) fn file_system(file: &File) -> io::Result<u64> {
    // SAFETY: all bytes zero is a valid `statfs`, which consists of integers.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `found` has room for what is written, and the descriptor is open for as long as
    // `file` is borrowed.
    cvt(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) })?;
    // The field is signed, unsigned, or half as wide, depending on the architecture.
    #[allow(clippy::unnecessary_cast, reason = "it is as wide here")]
    Ok(found.f_type as u32 as u64)
}

/// Returns the flags that a descriptor was opened with: `O_DIRECT` and so on.
#[cfg(target_os = "linux")]
pub(super) fn flags(file: &File) -> io::Result<c_int> {
    // SAFETY: only reads the flags of a descriptor that is open for as long as `file` is borrowed.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    cvt(flags)?;
    Ok(flags)
}

/// Clears `O_NONBLOCK` on a file that was opened with that flag and for reading only.
#[cfg(target_os = "linux")]
pub(super) fn clear_flags(file: &File) -> io::Result<()> {
    // SAFETY: sets flags of a descriptor that is open for as long as `file` is borrowed.
    cvt(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) }).map(drop)
}

/// Makes `to` share the blocks of `from`, if the file system supports it.
#[cfg(target_os = "linux")]
pub(super) fn clone_blocks(from: &File, to: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open for as long as they are borrowed; no memory is passed.
    cvt(unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) }).map(drop)
}

/// Has the kernel copy up to `limit` bytes from one cursor to the other, and returns how many it
/// copied.
#[cfg(target_os = "linux")]
pub(super) fn copy_range(from: &File, to: &File, limit: usize) -> io::Result<usize> {
    let cursor = std::ptr::null_mut::<i64>();
    // SAFETY: both descriptors are open for as long as they are borrowed, and no memory is passed:
    // with null offsets the kernel uses each file's cursor.
    cvt(unsafe {
        libc::syscall(
            libc::SYS_copy_file_range,
            from.as_raw_fd(),
            cursor,
            to.as_raw_fd(),
            cursor,
            limit,
            0u32,
        )
    })
}

#[cfg(unix)]
impl FromRawFd for super::File {
    /// Takes ownership of an open file by its descriptor.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: our caller promises what is required here: `fd` is open, and ours to own.
        Self::from_std(unsafe { File::from_raw_fd(fd) })
    }
}

#[cfg(windows)]
impl std::os::windows::io::FromRawHandle for super::File {
    /// Takes ownership of an open file by its handle.
    unsafe fn from_raw_handle(handle: std::os::windows::io::RawHandle) -> Self {
        // SAFETY: our caller promises what is required here: `handle` is an open file, and ours to
        // own.
        Self::from_std(unsafe { std::os::windows::io::FromRawHandle::from_raw_handle(handle) })
    }
}

/// Contents of a file, owned so that they can be moved into a job.
pub(super) enum Contents {
    Vec(Vec<u8>),
    #[cfg(feature = "io-util")]
    Bytes(bytes::Bytes),
}

impl AsRef<[u8]> for Contents {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Vec(bytes) => bytes,
            #[cfg(feature = "io-util")]
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Converts contents to an owned form: moves those that own their bytes already, and copies others.
pub(super) fn into_owned<C: AsRef<[u8]>>(contents: C) -> Contents {
    let contents = match into_same::<C, Vec<u8>>(contents) {
        Ok(bytes) => return Contents::Vec(bytes),
        Err(contents) => contents,
    };
    let contents = match into_same::<C, String>(contents) {
        Ok(text) => return Contents::Vec(text.into_bytes()),
        Err(contents) => contents,
    };
    #[cfg(feature = "io-util")]
    let contents = match into_same::<C, bytes::Bytes>(contents) {
        Ok(bytes) => return Contents::Bytes(bytes),
        Err(contents) => contents,
    };
    Contents::Vec(contents.as_ref().to_owned())
}

/// Returns the value as a `U` if `T` is `U`, and unchanged as an error otherwise.
fn into_same<T, U: 'static>(value: T) -> Result<U, T> {
    if id_of::<T>() != std::any::TypeId::of::<U>() {
        return Err(value);
    }
    let value = std::mem::ManuallyDrop::new(value);
    // SAFETY: both are one type: `U` has no lifetimes in it, so a `T` that differs from it does so
    // by more than lifetimes, and has another `TypeId`. The value is read once, and not dropped
    // here.
    Ok(unsafe { (&raw const *value).cast::<U>().read() })
}

/// Returns the `TypeId` of a type, which is the same for all lifetimes in it.
fn id_of<T>() -> std::any::TypeId {
    use std::{any::TypeId, marker::PhantomData, mem::transmute};

    trait HasTypeId {
        fn number(&self) -> TypeId
        where
            Self: 'static;
    }

    impl<T> HasTypeId for PhantomData<T> {
        fn number(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }

    let empty = PhantomData::<T>;
    let short: &dyn HasTypeId = &empty;
    // SAFETY: only the lifetime bound on the trait object is extended; the value is empty and
    // `number` reads nothing that a lifetime could end.
    let long = unsafe { transmute::<&dyn HasTypeId, &(dyn HasTypeId + 'static)>(short) };
    long.number()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use super::{Mount, STATX_MNT_ID_UNIQUE, into_owned, stat};

    /// Contents that own their bytes are moved; borrowed contents are copied.
    #[test]
    fn contents_that_are_owned_are_not_copied() {
        let vec = b"one".to_vec();
        let at = vec.as_ptr();
        assert_eq!(into_owned(vec).as_ref().as_ptr(), at);
        let text = String::from("two");
        let at = text.as_ptr();
        assert_eq!(into_owned(text).as_ref().as_ptr(), at);
        let local = String::from("three");
        assert_eq!(into_owned(local.as_str()).as_ref(), b"three");
        assert_eq!(into_owned(&local).as_ref(), b"three");
        assert_ne!(into_owned(&local).as_ref().as_ptr(), local.as_ptr());
        assert_eq!(into_owned([1_u8, 2]).as_ref(), [1, 2]);
        let cow = std::borrow::Cow::Borrowed(local.as_bytes());
        assert_eq!(into_owned(cow).as_ref(), b"three");
    }

    #[cfg(feature = "io-util")]
    #[test]
    fn bytes_are_not_copied() {
        let bytes = bytes::Bytes::from(vec![1, 2, 3]);
        let at = bytes.as_ptr();
        assert_eq!(into_owned(bytes).as_ref().as_ptr(), at);
    }

    fn statx(mask: u32, major: u32) -> libc::statx {
        // SAFETY: all bytes zero is a valid `statx`, which consists of integers.
        let mut found: libc::statx = unsafe { std::mem::zeroed() };
        (found.stx_mask, found.stx_mnt_id) = (mask, 7);
        (found.stx_dev_major, found.stx_dev_minor) = (major, 3);
        found
    }

    #[test]
    fn a_number_that_others_may_get_later_names_no_file_system() {
        assert_eq!(Mount::of(&statx(STATX_MNT_ID_UNIQUE, 0)), Some(Mount::Unique(7)));
        assert_eq!(Mount::of(&statx(STATX_MNT_ID_UNIQUE, 8)), Some(Mount::Unique(7)));
        // An older kernel, which reports no mount ID, or one that is reused.
        let device = Mount::Device { major: 8, minor: 3 };
        assert_eq!(Mount::of(&statx(libc::STATX_MNT_ID, 8)), Some(device));
        assert_eq!(Mount::of(&statx(libc::STATX_MNT_ID, 0)), None);
    }

    #[test]
    fn two_file_systems_have_two_names() {
        let name = |path: &Path| stat(&std::fs::File::open(path).unwrap()).unwrap().mount;
        let made_up = name(Path::new("/proc/self/status"));
        assert_eq!(made_up, name(Path::new("/proc/self/maps")));
        let program = name(&std::env::current_exe().unwrap());
        assert!(program.is_none() || program != made_up);
    }
}
