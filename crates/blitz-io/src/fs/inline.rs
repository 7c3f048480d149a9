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
//!   each mount queries it there. The table has 16 places and is never cleared, so a mount must be
//!   identified by a name that no other mount gets later (`raw::Mount`). Files of a mount that has
//!   no such name, or no place in the table, are opened by blocking threads.
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
//! An inline read of a regular file takes at most [`MOST_IN_A_POLL`] bytes, and each [`budget`]
//! piece of it takes a unit of the task's budget: so no poll reads more than about two mebibytes.
//!
//! [`budget`]: crate::engine::work::task::budget

#![forbid(unsafe_code)]

use std::{
    fs::{File, Metadata},
    io,
    path::Path,
    sync::OnceLock,
};

use crate::io::ReadBuf;

/// Maximum number of bytes that are read in one step. Copying them takes about 17 µs, which is the
/// delay that other tasks may see.
pub(super) const MOST: usize = 128 * 1024;

/// Length of the longest read of a regular file that is tried inline: as much as a full budget pays
/// for. A longer read goes to a blocking thread from its first byte, because it must be filled as a
/// whole.
const MOST_IN_A_POLL: usize = 1024 * 1024;

/// Environment variable that overrides what is tried inline, for tests and for investigation.
const VARIABLE: &str = "BLITZ_FS_INLINE";

/// How a file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere all are `Slow`"))]
pub(super) enum Nature {
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
pub(super) enum Wish {
    /// Everything that the kernel has cached.
    Auto,
    /// Everything that is cached, except that reads at an offset are left to io_uring.
    Ring,
    /// Nothing: blocking threads do everything.
    Never,
}

/// Returns the value of `BLITZ_FS_INLINE`.
///
/// # Panics
/// If the variable has a value that is not one of the documented ones.
pub(super) fn wish() -> Wish {
    static WISH: OnceLock<Wish> = OnceLock::new();
    *WISH.get_or_init(|| {
        let wish = std::env::var_os(VARIABLE).unwrap_or_default();
        match wish.to_str() {
            _ if !cfg!(target_os = "linux") => Wish::Never,
            Some("" | "auto") => Wish::Auto,
            Some("ring") => Wish::Ring,
            Some("never") => Wish::Never,
            _ => panic!(
                "the environment variable {VARIABLE} is {wish:?}: it may be `auto` (reads and \
                 opens are tried at once), `ring` (the same, but reads at an offset are left to \
                 io_uring) or `never` (threads do all)"
            ),
        }
    })
}

/// Returns true if operations are tried inline: on Linux, unless `BLITZ_FS_INLINE` is `never`.
pub(super) fn is_allowed() -> bool {
    wish() != Wish::Never
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

/// Reads at most `most` bytes at the file's cursor, if that needs no blocking.
#[inline]
pub(super) fn read(
    file: &File,
    nature: &mut Nature,
    into: &mut ReadBuf<'_>,
    most: usize,
) -> Filled {
    if *nature == Nature::Unknown {
        *nature = system::look_at(file);
    }
    let is_stream = *nature == Nature::Stream;
    if *nature == Nature::Slow || (most > MOST_IN_A_POLL && !is_stream) {
        return Filled::Nothing;
    }
    let mut done = 0;
    loop {
        match system::read(file, into, most - done) {
            Ok(count) => {
                done += count;
                if count == 0 || done == most || is_stream {
                    return Filled::Whole;
                }
            }
            Err(_) if done > 0 => return Filled::Part,
            Err(why) => {
                if system::is_refused(&why) {
                    *nature = Nature::Slow;
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
pub(super) fn can_seek(file: &File, nature: &mut Nature, to: io::SeekFrom) -> bool {
    if *nature == Nature::Unknown {
        *nature = system::look_at(file);
    }
    match nature {
        Nature::Local => true,
        // The end of the file may have to be queried from a server.
        Nature::Cached => !matches!(to, io::SeekFrom::End(_)),
        Nature::Unknown | Nature::Slow | Nature::Stream => false,
    }
}

/// The result of an inline open.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere nothing is opened"))]
pub(super) enum Opened {
    /// A local regular file, and its size. The file is in non-blocking mode (`O_NONBLOCK`).
    File(File, u64),
    /// A blocking thread must open the file.
    Not,
}

/// Opens a file for reading, if that needs no blocking.
pub(super) fn open(path: &Path) -> Opened {
    if is_allowed() { system::open(path) } else { Opened::Not }
}

/// Clears `O_NONBLOCK` on a file that was opened inline, so that it is like any other file.
pub(super) fn make_plain(file: &File) -> io::Result<()> {
    system::make_plain(file)
}

/// Determines the nature of a file that a blocking thread has opened. May block.
pub(super) fn learn(file: &File) -> Nature {
    if is_allowed() { system::learn(file) } else { Nature::Slow }
}

/// Reads cached bytes at the cursor, as many as the vector has room for.
pub(super) fn read_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
    system::read_to_vec(file, into)
}

/// Returns true if the file with this metadata may have an accepted write that is not made yet.
pub(super) fn is_awaited(known: &Metadata) -> bool {
    system::is_awaited(known)
}

/// Returns the file's inode number, if the system reports it without blocking.
pub(super) fn inode(file: &File) -> Option<u64> {
    system::inode(file)
}

/// Determines the nature of a file that was opened elsewhere. Does not block.
pub(super) fn look_at(file: &File) -> Nature {
    system::look_at(file)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        ffi::CStr,
        fs::{File, Metadata},
        io,
        os::unix::{ffi::OsStrExt, fs::MetadataExt},
        path::Path,
        sync::OnceLock,
    };

    use super::{MOST, Nature, Opened, is_allowed};
    use crate::{
        fs::{
            raw::{self, Mount},
            unwritten,
        },
        io::ReadBuf,
    };

    pub(super) use raw::make_plain;

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

    /// Determines the nature of a file that was opened elsewhere.
    #[cold]
    pub(super) fn look_at(file: &File) -> Nature {
        if !is_allowed() || raw::flags(file).is_ok_and(|flags| flags & libc::O_DIRECT != 0) {
            return Nature::Slow;
        }
        let Ok(known) = raw::know(file) else { return Nature::Slow };
        match known.kind {
            libc::S_IFREG if is_local(known.mount) == Some(true) => Nature::Local,
            // The read itself reports whether it is supported.
            libc::S_IFIFO => Nature::Stream,
            libc::S_IFREG | libc::S_IFBLK if raw::knows_nowait(file) => Nature::Cached,
            _ => Nature::Slow,
        }
    }

    pub(super) fn is_awaited(known: &Metadata) -> bool {
        unwritten::is_awaited(known.ino())
    }

    pub(super) fn inode(file: &File) -> Option<u64> {
        raw::know(file).ok().map(|known| known.inode)
    }

    pub(super) fn is_file_or_directory(file: &File) -> bool {
        raw::know(file).is_ok_and(|known| matches!(known.kind, libc::S_IFREG | libc::S_IFDIR))
    }

    #[inline]
    pub(super) fn read(file: &File, into: &mut ReadBuf<'_>, most: usize) -> io::Result<usize> {
        believe(raw::read_cached(file, into, most)?)
    }

    pub(super) fn read_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
        debug_assert!(into.capacity() - into.len() <= 2 * MOST, "more than one step");
        believe(raw::read_cached_to_vec(file, into)?)
    }

    /// Returns `EAGAIN` in place of a zero count on kernels 5.9 and 5.10, which report the end of
    /// the file where a page is not cached.
    #[inline]
    fn believe(count: usize) -> io::Result<usize> {
        if count == 0 && is_end_doubtful() {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        Ok(count)
    }

    #[cold]
    fn is_end_doubtful() -> bool {
        static DOUBTFUL: OnceLock<bool> = OnceLock::new();
        *DOUBTFUL.get_or_init(|| {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
            // An unknown release counts as doubtful.
            release.map_or(true, |release| says_end_too_early(&release))
        })
    }

    pub(super) fn says_end_too_early(release: &str) -> bool {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        matches!((numbers.next(), numbers.next()), (Some("5"), Some("9" | "10")))
    }

    /// Size of the buffer for a path and its terminating zero; longer paths go to a blocking
    /// thread.
    const LONGEST: usize = 512;

    /// Calls `f` with the path as a C string. Returns `None` if the path is too long or contains a
    /// zero byte.
    fn with_path<T>(path: &Path, f: impl FnOnce(&CStr) -> T) -> Option<T> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() >= LONGEST {
            return None;
        }
        let mut whole = [0; LONGEST];
        whole[..bytes.len()].copy_from_slice(bytes);
        CStr::from_bytes_with_nul(&whole[..=bytes.len()]).ok().map(f)
    }

    pub(super) fn open(path: &Path) -> Opened {
        with_path(path, try_open).and_then(io::Result::ok).unwrap_or(Opened::Not)
    }

    fn try_open(path: &CStr) -> io::Result<Opened> {
        let name = raw::know(&raw::open_cached(path, libc::O_PATH)?)?;
        if name.kind != libc::S_IFREG || is_local(name.mount) != Some(true) {
            return Ok(Opened::Not);
        }
        let file = raw::open_cached(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
        let known = raw::know(&file)?;
        if known.kind != libc::S_IFREG
            || is_local(known.mount) != Some(true)
            || unwritten::is_awaited(known.inode)
        {
            return Ok(Opened::Not);
        }
        Ok(Opened::File(file, known.size))
    }

    /// Magic numbers of the file systems on which opens, metadata queries and cached reads wait for
    /// no server: ext2 to ext4, XFS, Btrfs, F2FS.
    const LOCAL: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

    /// Table of mounts that were seen, with true for those with a file system in [`LOCAL`].
    static MOUNTS: [OnceLock<(Mount, bool)>; 16] = [const { OnceLock::new() }; 16];

    /// Returns true if the mount's file system is local, and `None` if that is not known.
    fn is_local(mount: Option<Mount>) -> Option<bool> {
        let mount = mount?;
        let known = MOUNTS.iter().map_while(OnceLock::get);
        known.into_iter().find(|known| known.0 == mount).map(|known| known.1)
    }

    #[cold]
    fn note(mount: Mount, local: bool) {
        for place in &MOUNTS {
            // The first thread to initialise a place owns it; others go on to the next place.
            if place.get_or_init(|| (mount, local)).0 == mount {
                return;
            }
        }
    }

    pub(super) fn learn(file: &File) -> Nature {
        if let Ok(known) = raw::know(file)
            && let Some(mount) = known.mount
            && is_local(Some(mount)).is_none()
            && let Ok(kind) = raw::file_system(file)
        {
            note(mount, LOCAL.contains(&kind));
        }
        look_at(file)
    }

    #[cfg(test)]
    mod tests {
        use super::says_end_too_early;

        #[test]
        fn two_kernels_are_not_believed() {
            for release in ["5.9.0", "5.10.12-generic", "5.10"] {
                assert!(says_end_too_early(release), "{release}");
            }
            for release in ["5.8.1", "5.11.0", "6.10.3", "6.9", "4.19.5", "15.10.1", "5.100.0"] {
                assert!(!says_end_too_early(release), "{release}");
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{
        fs::{File, Metadata},
        io,
        path::Path,
    };

    use super::{Nature, Opened};
    use crate::io::ReadBuf;

    pub(super) fn is_refused(_: &io::Error) -> bool {
        true
    }

    pub(super) fn look_at(_: &File) -> Nature {
        Nature::Slow
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
        Opened::Not
    }

    pub(super) fn make_plain(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn is_awaited(_: &Metadata) -> bool {
        false
    }

    pub(super) fn inode(_: &File) -> Option<u64> {
        None
    }

    pub(super) fn learn(_: &File) -> Nature {
        Nature::Slow
    }
}
