//! Reads and opens files inline, on the calling thread, where the kernel can do so from memory.
//!
//! A hop to another thread and back costs more than most reads of a file in the page cache. So
//! reads and opens are first tried on the calling thread, with system calls that return an error
//! instead of blocking:
//!
//! - `preadv2(RWF_NOWAIT)` reads what is cached, straight into the caller's buffer. With the offset
//!   -1 it reads at the file's cursor and moves it, as `read` does, so files that share a cursor
//!   (`try_clone`, `dup`, a child process) see each other's reads.
//! - `openat2(RESOLVE_CACHED)` opens a file if no component of its path has to be looked up on a
//!   disk.
//!
//! Any error of these calls, whatever it is, only means that a blocking thread repeats the
//! operation, and the thread's result is the one that is returned.
//!
//! # What must not wait, and what could
//! - **Direct files** (`O_DIRECT`): such a read waits for the device in spite of the flag, so it is
//!   not tried.
//! - **A cursor that is in use**: the kernel holds a lock on the cursor during a read, and another
//!   read at it sleeps until the lock is free. Clones made by `try_clone` know of each other
//!   (`file.rs`, 'Shared cursors'); a descriptor that was shared by other means is not known here.
//! - **Opening a pipe** waits for its other end, and with `O_NONBLOCK` the other end notices us.
//!   **Opening a file of a server** (FUSE, NFS) waits for the server, which may be this very
//!   program. So a path is first opened as a mere name (`O_PATH`), and opened for reading only if
//!   it is a regular file of a file system that is known to be local. If the path is replaced by
//!   another file between these two calls, the second call opens that other file, with
//!   `O_NONBLOCK`; it is then closed, and a blocking thread opens it anew.
//! - **The type of a file system** is determined on blocking threads: the first open of a file on
//!   each mount queries it there. The table has 16 slots and is never cleared, so a mount must be
//!   identified by a name that no other mount gets later (`raw::Mount`). Files of a mount that has
//!   no such name, or no slot in the table, are opened by blocking threads.
//! - **Writing** is never tried: ext4 refuses `RWF_NOWAIT` for it, and where it is not refused, a
//!   write still waits when too many pages are dirty.
//!
//! # Reads that fill
//! A read of a regular file fills the buffer unless it reaches the end of the file, as `read(2)`
//! does, because programs take a short read for the end. `RWF_NOWAIT` stops at the first page that
//! is not cached, so a short count is followed by another try, which returns zero at the end and
//! `EAGAIN` before a page that is missing. In the second case a blocking thread reads the rest. A
//! pipe returns what it has, in one call with the whole buffer: several calls would join messages,
//! and a call with a part of the buffer would cut one. Devices are left to blocking threads,
//! because some of them (`/dev/zero`) return less under `RWF_NOWAIT` than without it; and so are
//! sockets, because a call that reports a pending error (`ECONNRESET`) clears it, so a second call
//! by a thread would find the end of the stream, or wait.
//!
//! # Invariants
//! An inline read of a regular file takes at most [`MAX_INLINE_PER_POLL`] bytes, and each
//! [`budget`] piece of it takes a unit of the task's budget: so no poll reads more than about two
//! mebibytes.
//!
//! [`budget`]: crate::engine::work::task::budget

#![forbid(unsafe_code)]

use std::{fs::File, io, path::Path, sync::OnceLock};

use crate::io::ReadBuf;

/// Maximum number of bytes that are read in one step. Copying them takes about 17 µs, which is the
/// delay that other tasks may see.
pub(super) const MAX_INLINE: usize = 128 * 1024;

/// Length of the longest read of a regular file that is tried inline: as much as a full budget pays
/// for. A longer read goes to a blocking thread from its first byte, because it must be filled as a
/// whole.
const MAX_INLINE_PER_POLL: usize = 1024 * 1024;

/// Environment variable that overrides what is tried inline, for tests and for investigation.
const VARIABLE: &str = "BLITZ_FS_INLINE";

/// How a file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere all are `Slow`"))]
pub(super) enum InlineSupport {
    /// Not determined yet.
    Unknown,
    /// Can be read only by a blocking thread.
    Slow,
    /// A pipe: a read returns what it has.
    Stream,
    /// A file that supports `RWF_NOWAIT`: the kernel reports which parts of it are cached.
    Cached,
    /// A regular file on a local file system, which supports `RWF_NOWAIT`. Queries of its metadata
    /// do not block either.
    Local,
}

/// Which operations are tried inline before a blocking thread is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InlineMode {
    /// Everything that the kernel has cached.
    Auto,
    /// Everything that is cached, except that reads at an offset are left to io_uring.
    Uring,
    /// Nothing: blocking threads do everything.
    Never,
}

/// Returns the value of `BLITZ_FS_INLINE`.
///
/// # Panics
/// If the variable has a value that is not one of the documented ones.
pub(super) fn inline_mode() -> InlineMode {
    static MODE: OnceLock<InlineMode> = OnceLock::new();
    *MODE.get_or_init(|| {
        let value = std::env::var_os(VARIABLE).unwrap_or_default();
        match value.to_str() {
            _ if !cfg!(target_os = "linux") => InlineMode::Never,
            Some("" | "auto") => InlineMode::Auto,
            Some("uring") => InlineMode::Uring,
            Some("never") => InlineMode::Never,
            _ => panic!(
                "the environment variable {VARIABLE} is {value:?}: it may be `auto` (reads and \
                 opens are tried at once), `uring` (the same, but reads at an offset are left to \
                 io_uring) or `never` (threads do all)"
            ),
        }
    })
}

/// Returns true if operations are tried inline: on Linux, unless `BLITZ_FS_INLINE` is `never`.
pub(super) fn is_allowed() -> bool {
    inline_mode() != InlineMode::Never
}

/// How far an inline read came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// The read is complete: it came as far as `read(2)` would have.
    Whole,
    /// Some bytes were read, and a blocking thread must read the rest before any of them is
    /// returned.
    Part,
    /// Nothing was read: a blocking thread must do it.
    Nothing,
}

/// Reads at most `limit` bytes at the file's cursor, if that needs no blocking.
#[inline]
pub(super) fn read(
    file: &File,
    support: &mut InlineSupport,
    into: &mut ReadBuf<'_>,
    limit: usize,
) -> Filled {
    if *support == InlineSupport::Unknown {
        *support = system::probe(file);
    }
    let is_stream = *support == InlineSupport::Stream;
    if *support == InlineSupport::Slow || (limit > MAX_INLINE_PER_POLL && !is_stream) {
        return Filled::Nothing;
    }
    let mut done = 0;
    loop {
        match system::read(file, into, limit - done) {
            Ok(count) => {
                done += count;
                if count == 0 || done == limit || is_stream {
                    return Filled::Whole;
                }
            }
            Err(_) if done > 0 => return Filled::Part,
            Err(why) => {
                if system::is_refused(&why) {
                    *support = InlineSupport::Slow;
                }
                return Filled::Nothing;
            }
        }
    }
}

/// Returns true if the kernel lets only one read or write at a time use the file's cursor: for
/// regular files and directories that can seek. May block on the cursor, so it must run on a
/// blocking thread.
pub(super) fn has_cursor(mut file: &File) -> bool {
    system::is_file_or_directory(file) && io::Seek::stream_position(&mut file).is_ok()
}

/// Returns true if the cursor can be moved to `to` without blocking.
pub(super) fn can_seek(file: &File, support: &mut InlineSupport, to: io::SeekFrom) -> bool {
    if *support == InlineSupport::Unknown {
        *support = system::probe(file);
    }
    match support {
        InlineSupport::Local => true,
        // The end of the file may have to be queried from a server.
        InlineSupport::Cached => !matches!(to, io::SeekFrom::End(_)),
        InlineSupport::Unknown | InlineSupport::Slow | InlineSupport::Stream => false,
    }
}

/// The result of an inline open.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere nothing is opened"))]
pub(super) enum Opened {
    /// A local regular file, and its size. The file is in non-blocking mode (`O_NONBLOCK`).
    File(File, u64),
    /// A blocking thread must open the file.
    NotInline,
}

/// Opens a file for reading, if that needs no blocking.
pub(super) fn open(path: &Path) -> Opened {
    if is_allowed() { system::open(path) } else { Opened::NotInline }
}

/// Clears `O_NONBLOCK` on a file that was opened inline, so that it is like any other file.
pub(super) fn clear_flags(file: &File) -> io::Result<()> {
    system::clear_flags(file)
}

/// Probes the support for inline reads of a file that a blocking thread has opened. May block.
pub(super) fn probe_mount(file: &File) -> InlineSupport {
    if is_allowed() { system::probe_mount(file) } else { InlineSupport::Slow }
}

/// Reads cached bytes at the cursor, as many as the vector has room for.
pub(super) fn read_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
    system::read_to_vec(file, into)
}

/// Returns the file's inode number, if the system reports it without blocking.
pub(super) fn inode(file: &File) -> Option<u64> {
    system::inode(file)
}

/// Probes the support for inline reads of a file that was opened elsewhere. Does not block.
pub(super) fn probe(file: &File) -> InlineSupport {
    system::probe(file)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{ffi::CStr, fs::File, io, os::unix::ffi::OsStrExt, path::Path, sync::OnceLock};

    use super::{InlineSupport, MAX_INLINE, Opened, is_allowed};
    use crate::{
        fs::{
            pending_writes,
            raw::{self, Mount},
        },
        io::ReadBuf,
    };

    pub(super) use raw::clear_flags;

    /// Returns true if an inline read of this file will be refused every time. After `EAGAIN` the
    /// bytes may be cached by the next read, and errors such as those of a directory or a closed
    /// pipe are for a blocking thread to report.
    pub(super) fn is_refused(why: &io::Error) -> bool {
        // Unsupported for this kind of file; an argument that the kernel does not know; a system
        // call that it does not have, or that a sandbox forbids.
        matches!(
            why.raw_os_error(),
            Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS | libc::EPERM)
        )
    }

    /// Probes the support for inline reads of a file that was opened elsewhere.
    #[cold]
    pub(super) fn probe(file: &File) -> InlineSupport {
        if !is_allowed() || raw::flags(file).is_ok_and(|flags| flags & libc::O_DIRECT != 0) {
            return InlineSupport::Slow;
        }
        let Ok(stat) = raw::stat(file) else { return InlineSupport::Slow };
        match stat.kind {
            libc::S_IFREG if is_local(stat.mount) == Some(true) => InlineSupport::Local,
            // The read itself reports whether it is supported.
            libc::S_IFIFO => InlineSupport::Stream,
            libc::S_IFREG | libc::S_IFBLK if raw::supports_nowait(file) => InlineSupport::Cached,
            _ => InlineSupport::Slow,
        }
    }

    pub(super) fn inode(file: &File) -> Option<u64> {
        raw::stat(file).ok().map(|stat| stat.inode)
    }

    pub(super) fn is_file_or_directory(file: &File) -> bool {
        raw::stat(file).is_ok_and(|stat| matches!(stat.kind, libc::S_IFREG | libc::S_IFDIR))
    }

    #[inline]
    pub(super) fn read(file: &File, into: &mut ReadBuf<'_>, limit: usize) -> io::Result<usize> {
        check_eof(raw::read_cached(file, into, limit)?)
    }

    pub(super) fn read_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
        debug_assert!(into.capacity() - into.len() <= 2 * MAX_INLINE, "more than one step");
        check_eof(raw::read_cached_to_vec(file, into)?)
    }

    /// Returns `EAGAIN` in place of a zero count on kernels 5.9 and 5.10, which report the end of
    /// the file where a page is not cached.
    #[inline]
    fn check_eof(count: usize) -> io::Result<usize> {
        if count == 0 && is_eof_unreliable() {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        Ok(count)
    }

    #[cold]
    fn is_eof_unreliable() -> bool {
        static UNRELIABLE: OnceLock<bool> = OnceLock::new();
        *UNRELIABLE.get_or_init(|| {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
            // An unknown release counts as doubtful.
            release.map_or(true, |release| has_early_eof_bug(&release))
        })
    }

    pub(super) fn has_early_eof_bug(release: &str) -> bool {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        matches!((numbers.next(), numbers.next()), (Some("5"), Some("9" | "10")))
    }

    /// Size of the buffer for a path and its terminating zero; longer paths go to a blocking
    /// thread.
    const PATH_BUF_SIZE: usize = 512;

    /// Calls `f` with the path as a C string. Returns `None` if the path is too long or contains a
    /// zero byte.
    fn with_path<T>(path: &Path, f: impl FnOnce(&CStr) -> T) -> Option<T> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() >= PATH_BUF_SIZE {
            return None;
        }
        let mut whole = [0; PATH_BUF_SIZE];
        whole[..bytes.len()].copy_from_slice(bytes);
        CStr::from_bytes_with_nul(&whole[..=bytes.len()]).ok().map(f)
    }

    pub(super) fn open(path: &Path) -> Opened {
        with_path(path, try_open).and_then(io::Result::ok).unwrap_or(Opened::NotInline)
    }

    fn try_open(path: &CStr) -> io::Result<Opened> {
        let name = raw::stat(&raw::open_cached(path, libc::O_PATH)?)?;
        // A pending write is looked for before the size is read: one that is made in between would
        // be missing from both.
        if name.kind != libc::S_IFREG
            || is_local(name.mount) != Some(true)
            || pending_writes::has_pending_write(name.inode)
        {
            return Ok(Opened::NotInline);
        }
        let file = raw::open_cached(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
        let stat = raw::stat(&file)?;
        // The path may lead to another file by now.
        if (stat.kind, stat.mount, stat.inode) != (name.kind, name.mount, name.inode) {
            return Ok(Opened::NotInline);
        }
        Ok(Opened::File(file, stat.size))
    }

    /// Magic numbers of the file systems on which opens, metadata queries and cached reads wait for
    /// no server: ext2 to ext4, XFS, Btrfs, F2FS.
    const LOCAL: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

    /// Table of mounts that were seen, with true for those with a file system in [`LOCAL`].
    static MOUNTS: [OnceLock<(Mount, bool)>; 16] = [const { OnceLock::new() }; 16];

    /// Returns true if the mount's file system is local, and `None` if that is not known.
    fn is_local(mount: Option<Mount>) -> Option<bool> {
        let mount = mount?;
        let mounts = MOUNTS.iter().map_while(OnceLock::get);
        mounts.into_iter().find(|entry| entry.0 == mount).map(|entry| entry.1)
    }

    #[cold]
    fn record_mount(mount: Mount, local: bool) {
        for slot in &MOUNTS {
            // The first thread to initialise a slot owns it; others go on to the next slot.
            if slot.get_or_init(|| (mount, local)).0 == mount {
                return;
            }
        }
    }

    pub(super) fn probe_mount(file: &File) -> InlineSupport {
        if let Ok(stat) = raw::stat(file)
            && let Some(mount) = stat.mount
            && is_local(Some(mount)).is_none()
            && let Ok(kind) = raw::file_system(file)
        {
            record_mount(mount, LOCAL.contains(&kind));
        }
        probe(file)
    }

    #[cfg(test)]
    mod tests {
        use super::has_early_eof_bug;

        #[test]
        fn two_kernels_have_an_early_eof() {
            for release in ["5.9.0", "5.10.12-generic", "5.10"] {
                assert!(has_early_eof_bug(release), "{release}");
            }
            for release in ["5.8.1", "5.11.0", "6.10.3", "6.9", "4.19.5", "15.10.1", "5.100.0"] {
                assert!(!has_early_eof_bug(release), "{release}");
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{fs::File, io, path::Path};

    use super::{InlineSupport, Opened};
    use crate::io::ReadBuf;

    pub(super) fn is_refused(_: &io::Error) -> bool {
        true
    }

    pub(super) fn probe(_: &File) -> InlineSupport {
        InlineSupport::Slow
    }

    pub(super) fn is_file_or_directory(file: &File) -> bool {
        file.metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir())
    }

    pub(super) fn read(_: &File, _: &mut ReadBuf<'_>, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn read_to_vec(_: &File, _: &mut Vec<u8>) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn open(_: &Path) -> Opened {
        Opened::NotInline
    }

    pub(super) fn clear_flags(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn inode(_: &File) -> Option<u64> {
        None
    }

    pub(super) fn probe_mount(_: &File) -> InlineSupport {
        InlineSupport::Slow
    }
}
