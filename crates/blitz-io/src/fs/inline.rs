//! What is done at once, without a thread: reads and opens that the kernel can answer from
//! its memory.
//!
//! A hop to another thread and back costs more than most reads of a file that lies in the
//! page cache. So they are tried where they are asked for, with calls that say 'not without
//! waiting' instead of waiting:
//!
//! - `preadv2(RWF_NOWAIT)` reads what is cached, straight into the caller's buffer. With the
//!   offset -1 it reads at the file's cursor and moves it, as `read` does, so files that
//!   share a cursor (`try_clone`, `dup`, a child process) see each other's reads.
//! - `openat2(RESOLVE_CACHED)` opens if no name has to be looked up on a disk.
//!
//! Any error of these calls, whatever it is, only means that a thread is asked: its answer
//! is the one that counts.
//!
//! # What must not wait, and what could
//! - **Direct files** (`O_DIRECT`): such a read waits for the device in spite of the flag.
//!   They are not tried.
//! - **A cursor that is in use**: the kernel holds a lock on it during a read, and another
//!   read of it sleeps for the lock. Clones by `try_clone` know of each other (`file.rs`,
//!   'Shared cursors'); of a descriptor that was shared by other means we do not know.
//! - **Opening a pipe** waits for its other end, and with `O_NONBLOCK` it is told of us.
//!   **Opening a file of a server** (FUSE, NFS) waits for the server, which may be this very
//!   program. So a path is first opened as a mere name (`O_PATH`), and opened for reading only
//!   if it is a regular file of a file system that is known to be local. If the path is
//!   exchanged for another between these two calls, the second open sees that other thing,
//!   with `O_NONBLOCK`; what it opened is then closed, and a thread opens it anew.
//! - **Which file systems** is learnt on threads: the first open of a file on each device
//!   asks there for its type. The table has 16 places and is never cleared; who does not find
//!   a place has its files opened by threads.
//! - **Writing** is never tried: ext4 refuses `RWF_NOWAIT` for it, and where it does not,
//!   a write still waits when too much is dirty.
//!
//! # Invariants
//! At most [`MOST`] bytes are read in one step, and each step takes a unit of the task's
//! budget, or more: so no poll reads more than about a mebibyte.

#![forbid(unsafe_code)]

use std::{fs::File, io, path::Path, sync::OnceLock};

use crate::io::ReadBuf;

/// Bytes that are read in one step at the most: they take about 17 µs to be copied, which is
/// what others may have to wait for.
pub(super) const MOST: usize = 128 * 1024;

/// What overrides the choice, for tests and for finding out.
const VARIABLE: &str = "BLITZ_FS_INLINE";

/// What is known of how a file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere all are `Slow`"))]
pub(super) enum Nature {
    /// Nobody has looked.
    Unknown,
    /// Only by a thread.
    Slow,
    /// A pipe, a socket or a device that may say what it has.
    Stream,
    /// The kernel says what of it lies in the cache.
    Cached,
    /// The same, and it is a regular file of a local file system: what is asked about it is
    /// answered without waiting too.
    Local,
}

/// What is to be tried, before a thread is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Whatever the cache has.
    Auto,
    /// The same, but reads at an offset are left to io_uring, cached or not.
    Ring,
    /// Nothing.
    Never,
}

/// What `BLITZ_FS_INLINE` says.
///
/// # Panics
/// If the variable has a value that means nothing.
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

/// Whether anything is tried at once.
pub(super) fn is_allowed() -> bool {
    wish() != Wish::Never
}

/// Reads at the file's cursor what lies in the cache, if the file can be asked for it.
/// `None`: a thread has to do it.
#[inline]
pub(super) fn read(
    file: &File,
    nature: &mut Nature,
    into: &mut ReadBuf<'_>,
    most: usize,
) -> Option<usize> {
    if *nature == Nature::Unknown {
        *nature = system::look_at(file);
    }
    if *nature == Nature::Slow {
        return None;
    }
    match system::read(file, into, most.min(MOST)) {
        Ok(count) => Some(count),
        Err(why) => {
            if system::is_refused(&why) {
                *nature = Nature::Slow;
            }
            None
        }
    }
}

/// Whether the cursor can be set without waiting.
pub(super) fn can_seek(file: &File, nature: &mut Nature, to: io::SeekFrom) -> bool {
    if *nature == Nature::Unknown {
        *nature = system::look_at(file);
    }
    match nature {
        Nature::Local => true,
        // The end may be for a server to say.
        Nature::Cached => !matches!(to, io::SeekFrom::End(_)),
        Nature::Unknown | Nature::Slow | Nature::Stream => false,
    }
}

/// A file that was opened, or why it was not.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere nothing is opened"))]
pub(super) enum Opened {
    /// A local regular file, and its size. It has `O_NONBLOCK`.
    File(File, u64),
    /// A thread has to open it.
    Not,
}

/// Opens a file for reading, if that needs no waiting.
pub(super) fn open(path: &Path) -> Opened {
    if is_allowed() { system::open(path) } else { Opened::Not }
}

/// Makes a file that was opened here like any other.
pub(super) fn make_plain(file: &File) -> io::Result<()> {
    system::make_plain(file)
}

/// What a file is that a thread has opened. May wait: for threads.
pub(super) fn learn(file: &File) -> Nature {
    if is_allowed() { system::learn(file) } else { Nature::Slow }
}

/// Reads on at the cursor, as much as the vector has room for, from the cache.
pub(super) fn read_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
    system::read_to_vec(file, into)
}

/// What a file is that somebody else has opened. Does not wait.
pub(super) fn look_at(file: &File) -> Nature {
    system::look_at(file)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{ffi::CStr, fs::File, io, os::unix::ffi::OsStrExt, path::Path, sync::OnceLock};

    use super::{MOST, Nature, Opened, is_allowed};
    use crate::{fs::raw, io::ReadBuf};

    pub(super) use raw::make_plain;

    /// Whether the file will refuse it the next time too. What is not cached (`EAGAIN`) may
    /// be by then; a directory or a closed pipe is for a thread to tell of.
    pub(super) fn is_refused(why: &io::Error) -> bool {
        // Not of this kind of file; an argument that the kernel does not know; a call that it
        // does not have, or that a sandbox forbids.
        matches!(
            why.raw_os_error(),
            Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS | libc::EPERM)
        )
    }

    /// Looks at a file that somebody else has opened.
    #[cold]
    pub(super) fn look_at(file: &File) -> Nature {
        if !is_allowed() || raw::flags(file).is_ok_and(|flags| flags & libc::O_DIRECT != 0) {
            return Nature::Slow;
        }
        match raw::know(file) {
            Ok(known) if known.is_regular && is_local(known.device) == Some(true) => Nature::Local,
            // It says by itself whether it can be asked.
            Ok(known) if !known.is_regular => Nature::Stream,
            _ if raw::knows_nowait(file) => Nature::Cached,
            _ => Nature::Slow,
        }
    }

    #[inline]
    pub(super) fn read(file: &File, into: &mut ReadBuf<'_>, most: usize) -> io::Result<usize> {
        believe(raw::read_cached(file, into, most)?)
    }

    pub(super) fn read_to_vec(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
        debug_assert!(into.capacity() - into.len() <= 2 * MOST, "more than one step");
        believe(raw::read_cached_to_vec(file, into)?)
    }

    /// 5.9 and 5.10 say 'the end' of what is not cached.
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
            // Unknown is doubtful.
            release.map_or(true, |release| says_end_too_early(&release))
        })
    }

    pub(super) fn says_end_too_early(release: &str) -> bool {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        matches!((numbers.next(), numbers.next()), (Some("5"), Some("9" | "10")))
    }

    /// Room for a path and its zero; who has a longer one pays a thread.
    const LONGEST: usize = 512;

    /// Calls `f` with the path as the kernel wants it. `None` if it is too long, or has a
    /// zero in it.
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
        if !name.is_regular || is_local(name.device) != Some(true) {
            return Ok(Opened::Not);
        }
        let file = raw::open_cached(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
        let known = raw::know(&file)?;
        if !known.is_regular || is_local(known.device) != Some(true) {
            return Ok(Opened::Not);
        }
        Ok(Opened::File(file, known.size))
    }

    /// File systems whose files are opened, asked about and read from the cache without
    /// anybody being waited for: ext2 to ext4, XFS, Btrfs, F2FS.
    const LOCAL: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

    /// Devices, and whether what is on them is one of these.
    static DEVICES: [OnceLock<(u64, bool)>; 16] = [const { OnceLock::new() }; 16];

    /// Whether a device's file system is local, if that is known.
    fn is_local(device: u64) -> Option<bool> {
        let known = DEVICES.iter().map_while(OnceLock::get);
        known.into_iter().find(|known| known.0 == device).map(|known| known.1)
    }

    #[cold]
    fn note(device: u64, local: bool) {
        for place in &DEVICES {
            // Whoever comes first has the place; the others go on to the next.
            if place.get_or_init(|| (device, local)).0 == device {
                return;
            }
        }
    }

    pub(super) fn learn(file: &File) -> Nature {
        if let Ok(known) = raw::know(file)
            && is_local(known.device).is_none()
            && let Ok(kind) = raw::file_system(file)
        {
            note(known.device, LOCAL.contains(&kind));
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
    use std::{fs::File, io, path::Path};

    use super::{Nature, Opened};
    use crate::io::ReadBuf;

    pub(super) fn is_refused(_: &io::Error) -> bool {
        true
    }

    pub(super) fn look_at(_: &File) -> Nature {
        Nature::Slow
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

    pub(super) fn learn(_: &File) -> Nature {
        Nature::Slow
    }
}
