//! Copies a file's content and permissions.
//!
//! On Linux the kernel copies, and the bytes do not pass through this process. First the kernel is
//! requested to share the blocks (a clone, which takes almost no time at any size), then to copy
//! ranges; whatever it refuses is read and written here. `BLITZ_FS_COPY` (`auto`, `clone`, `range`,
//! `plain`) selects where to begin in this order; the later methods stay available.

#![forbid(unsafe_code)]

use std::{io, path::Path};

use super::asyncify::asyncify_paths;

/// Copies the content and the permissions of one file to another, and returns the number of bytes
/// copied.
///
/// The target is created, or truncated if it exists. Only regular files can be copied. Files with
/// content that the kernel generates on read (such as those in `/proc`) count as regular files of
/// size zero; everything that can be read from them is copied.
///
/// # Errors
///
/// Returns an error if either file cannot be opened, `InvalidInput` if the source is not a regular
/// file or both paths name the same file, and any error of reading or writing. After an error the
/// target may exist with a part of the content.
///
/// # Cancel safety
///
/// If the future is dropped after the copy has started, the copy still completes.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let (from, to) = (dir.path().join("a"), dir.path().join("b"));
/// blitz_io::fs::write(&from, "hello").await?;
/// assert_eq!(blitz_io::fs::copy(&from, &to).await?, 5);
/// assert_eq!(blitz_io::fs::read(&to).await?, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64, io::Error> {
    asyncify_paths((from, to), system::copy).await
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{io, path::Path};

    pub(super) fn copy(from: &Path, to: &Path) -> io::Result<u64> {
        std::fs::copy(from, to)
    }
}

#[cfg(target_os = "linux")]
pub(super) mod system {
    use std::{
        fs::{File, OpenOptions},
        io::{self, Read, Write},
        os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
        path::Path,
        sync::OnceLock,
    };

    use crate::fs::raw;

    /// Environment variable that overrides where to begin, for tests and for investigation.
    const VARIABLE: &str = "BLITZ_FS_COPY";

    /// Number of bytes requested per range copy: as many as the kernel accepts.
    const MAX_RANGE: usize = 1 << 30;

    /// Number of bytes that are read and then written at a time, chosen so that they stay in the L2
    /// cache: twice as many took twice the time on a machine with 512 KiB of L2.
    const CHUNK_SIZE: usize = 128 * 1024;

    /// The methods of copying, best first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum CopyMethod {
        Clone,
        Range,
        Plain,
    }

    /// Returns the first method to try, from the environment variable.
    ///
    /// # Panics
    /// If the variable has a value that is not one of the documented ones.
    fn first_method() -> CopyMethod {
        static FIRST: OnceLock<CopyMethod> = OnceLock::new();
        *FIRST.get_or_init(|| {
            let value = std::env::var_os(VARIABLE).unwrap_or_default();
            match value.to_str() {
                Some("" | "auto" | "clone") => CopyMethod::Clone,
                Some("range") => CopyMethod::Range,
                Some("plain") => CopyMethod::Plain,
                _ => panic!(
                    "the environment variable {VARIABLE} is {value:?}: it may be `auto`, `clone`, \
                     `range` or `plain`"
                ),
            }
        })
    }

    pub(super) fn copy(from: &Path, to: &Path) -> io::Result<u64> {
        copy_by(first_method(), from, to)
    }

    fn copy_by(first: CopyMethod, from: &Path, to: &Path) -> io::Result<u64> {
        let source = File::open(from)?;
        let source_metadata = source.metadata()?;
        if !source_metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the source is no regular file: read it and write what it says",
            ));
        }
        // Not truncated yet, because the target may turn out to be the source.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(source_metadata.mode());
        let target = options.open(to)?;
        let target_metadata = target.metadata()?;
        if (target_metadata.dev(), target_metadata.ino())
            == (source_metadata.dev(), source_metadata.ino())
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "both are the same file: nothing was changed",
            ));
        }
        if target_metadata.is_file() {
            // A newly created target is not truncated, because ext4 takes a truncation to zero for
            // a replacement of the content and writes all of it to the disk on close. If the source
            // is empty, nothing will be written, but the modification time must change all the
            // same.
            if target_metadata.len() > 0 || source_metadata.len() == 0 {
                target.set_len(0)?;
            }
            // An existing target may have other permissions, and a new one lacks those that the
            // umask removed.
            target.set_permissions(PermissionsExt::from_mode(source_metadata.mode() & 0o7777))?;
        }
        move_content(first, &source, &target, source_metadata.len())
    }

    /// Tries the methods in order, starting with `first`, and returns the number of bytes copied. A
    /// clone copies everything or nothing; each later method continues where the previous one
    /// stopped, because all of them move the cursors.
    fn move_content(first: CopyMethod, source: &File, target: &File, size: u64) -> io::Result<u64> {
        if first <= CopyMethod::Clone && size > 0 && raw::clone_blocks(source, target).is_ok() {
            return Ok(size);
        }
        let mut copied = 0;
        // Files with content that is generated on read report a size of zero.
        if first <= CopyMethod::Range && size > 0 {
            copied = copy_ranges(source, target)?;
        }
        // The range copy may have stopped before the end of the file.
        Ok(copied + copy_plain(source, target)?)
    }

    /// Has the kernel copy ranges until it reports the end or refuses, and returns the number of
    /// bytes copied.
    fn copy_ranges(source: &File, target: &File) -> io::Result<u64> {
        let mut copied = 0;
        loop {
            match raw::copy_range(source, target, MAX_RANGE) {
                Ok(0) => return Ok(copied),
                Ok(count) => copied += count as u64,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if is_real(&why) => return Err(why),
                Err(_) => return Ok(copied),
            }
        }
    }

    /// Returns true if reading and writing would fail with this error too. Any other error only
    /// means that these two files cannot be copied by ranges (different file systems, an
    /// unsupported kind of file, a locked file, a sandbox); if the problem is more than that, the
    /// next method reports it.
    fn is_real(why: &io::Error) -> bool {
        matches!(why.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EIO | libc::EFBIG))
    }

    fn copy_plain(mut source: &File, mut target: &File) -> io::Result<u64> {
        let mut piece = vec![0; CHUNK_SIZE];
        let mut copied = 0;
        loop {
            match source.read(&mut piece) {
                Ok(0) => return Ok(copied),
                Ok(count) => {
                    target.write_all(&piece[..count])?;
                    copied += count as u64;
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
    }

    #[cfg(all(test, not(blitz_loom)))]
    mod tests {
        use std::{fs, os::unix::fs::PermissionsExt, path::Path};

        use super::{CHUNK_SIZE, CopyMethod, copy_by};

        const WAYS: [CopyMethod; 3] = [CopyMethod::Clone, CopyMethod::Range, CopyMethod::Plain];

        fn content(size: usize) -> Vec<u8> {
            (0..size).map(|at| (at % 251) as u8).collect()
        }

        #[test]
        fn every_way_copies_all_and_the_permissions() {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            for size in [0, 1, 4096, CHUNK_SIZE, 3 * CHUNK_SIZE + 5] {
                fs::write(&from, content(size)).unwrap();
                fs::set_permissions(&from, PermissionsExt::from_mode(0o640)).unwrap();
                for way in WAYS {
                    fs::write(&to, vec![7; 2 * size + 3]).unwrap();
                    fs::set_permissions(&to, PermissionsExt::from_mode(0o600)).unwrap();
                    assert_eq!(copy_by(way, &from, &to).unwrap(), size as u64, "{way:?}");
                    assert!(fs::read(&to).unwrap() == content(size), "{way:?} {size}");
                    let mode = fs::metadata(&to).unwrap().permissions().mode();
                    assert_eq!(mode & 0o7777, 0o640, "{way:?}");
                }
            }
        }

        #[test]
        fn every_way_copies_what_is_made_up_when_it_is_read() {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (Path::new("/proc/sys/kernel/ostype"), dir.path().join("to"));
            for way in WAYS {
                assert_eq!(copy_by(way, from, &to).unwrap(), 6, "{way:?}");
                assert_eq!(fs::read(&to).unwrap(), b"Linux\n", "{way:?}");
                fs::remove_file(&to).unwrap();
            }
        }

        #[test]
        fn every_way_copies_to_another_file_system() {
            let (Ok(here), Ok(target_metadata)) =
                (tempfile::tempdir(), tempfile::tempdir_in("/dev/shm"))
            else {
                println!("skipped: there is no second file system at /dev/shm");
                return;
            };
            let (from, to) = (here.path().join("from"), target_metadata.path().join("to"));
            fs::write(&from, content(CHUNK_SIZE + 1)).unwrap();
            // Containers often limit it to 64 KiB.
            let room = fs::write(target_metadata.path().join("room"), content(CHUNK_SIZE + 1));
            if room.is_err_and(|why| why.kind() == std::io::ErrorKind::StorageFull) {
                println!("skipped: /dev/shm has no room for {} bytes", CHUNK_SIZE + 1);
                return;
            }
            fs::remove_file(target_metadata.path().join("room")).unwrap();
            for way in WAYS {
                assert_eq!(copy_by(way, &from, &to).unwrap(), CHUNK_SIZE as u64 + 1, "{way:?}");
                assert!(fs::read(&to).unwrap() == content(CHUNK_SIZE + 1), "{way:?}");
            }
        }

        #[test]
        fn a_file_is_not_copied_onto_itself() {
            let dir = tempfile::tempdir().unwrap();
            let (one, two) = (dir.path().join("one"), dir.path().join("two"));
            fs::write(&one, "kept").unwrap();
            fs::hard_link(&one, &two).unwrap();
            for way in WAYS {
                for to in [&one, &two] {
                    let error = copy_by(way, &one, to).unwrap_err();
                    assert!(error.to_string().contains("same file"), "{error}");
                    assert_eq!(fs::read(&one).unwrap(), b"kept");
                }
            }
        }

        #[test]
        fn only_files_are_copied() {
            let dir = tempfile::tempdir().unwrap();
            for way in WAYS {
                let error = copy_by(way, dir.path(), &dir.path().join("to")).unwrap_err();
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
                assert!(!dir.path().join("to").exists());
            }
        }
    }
}
