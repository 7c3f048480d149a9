//! A file's content and permissions, copied.
//!
//! On Linux the kernel copies, without the bytes coming to us: first it is asked to share the
//! blocks (a clone, which takes no time whatever the size), then to copy ranges, and what it
//! refuses is read and written. `BLITZ_FS_COPY` (`auto`, `clone`, `range`, `plain`) says
//! where to begin in this order; all that follow remain.

#![forbid(unsafe_code)]

use std::{io, path::Path};

use super::offload::on_paths;

/// Copies the content of one file to another, which is created or cut off first, and its
/// permissions. Answers how many bytes it was.
///
/// Only regular files are copied. A file in which the system makes up what is read (`/proc`)
/// is one, of no size; what is read from it is copied.
///
/// # Errors
///
/// If one cannot be opened, `InvalidInput` if the source is no regular file or both are the
/// same file, or whatever reading and writing say; the error names both paths. After an error
/// the target may be there with a part of the content.
///
/// # Cancel safety
///
/// If it is dropped once begun, the copy is still made.
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
    on_paths("copy", (from, to), system::copy).await
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

    /// What overrides where to begin, for tests and for finding out.
    const VARIABLE: &str = "BLITZ_FS_COPY";

    /// Bytes that the kernel is asked to copy at once: as many as it takes.
    const RANGE: usize = 1 << 30;

    /// Bytes that are read and written at once: they stay in the second-level cache. Twice as
    /// many took twice the time where that cache has 512 KiB.
    const PIECE: usize = 128 * 1024;

    /// The ways to copy, the best first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Way {
        Clone,
        Range,
        Plain,
    }

    /// # Panics
    /// If the variable has a value that means nothing.
    fn first_way() -> Way {
        static FIRST: OnceLock<Way> = OnceLock::new();
        *FIRST.get_or_init(|| {
            let wish = std::env::var_os(VARIABLE).unwrap_or_default();
            match wish.to_str() {
                Some("" | "auto" | "clone") => Way::Clone,
                Some("range") => Way::Range,
                Some("plain") => Way::Plain,
                _ => panic!(
                    "the environment variable {VARIABLE} is {wish:?}: it may be `auto`, `clone`, \
                     `range` or `plain`"
                ),
            }
        })
    }

    pub(super) fn copy(from: &Path, to: &Path) -> io::Result<u64> {
        copy_by(first_way(), from, to)
    }

    fn copy_by(first: Way, from: &Path, to: &Path) -> io::Result<u64> {
        let source = File::open(from)?;
        let known = source.metadata()?;
        if !known.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the source is no regular file: read it and write what it says",
            ));
        }
        // Not cut off before it is known to be another.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(known.mode());
        let target = options.open(to)?;
        let there = target.metadata()?;
        if (there.dev(), there.ino()) == (known.dev(), known.ino()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "both are the same file: nothing was changed",
            ));
        }
        if there.is_file() {
            // Not a file that has just been made: ext4 takes a cut to nothing for the
            // replacement of a file's content, and writes all of it out when it is closed.
            if there.len() > 0 {
                target.set_len(0)?;
            }
            // Made by others with less, or by us with what the mask has left.
            target.set_permissions(PermissionsExt::from_mode(known.mode() & 0o7777))?;
        }
        move_content(first, &source, &target, known.len())
    }

    /// Goes through the ways, from the first on. A clone is all or nothing; the others begin
    /// where the one before has stopped, since all move the cursors.
    fn move_content(first: Way, source: &File, target: &File, size: u64) -> io::Result<u64> {
        if first <= Way::Clone && size > 0 && raw::clone_blocks(source, target).is_ok() {
            return Ok(size);
        }
        let mut copied = 0;
        // A size of nothing is what files say that are made up when they are read.
        if first <= Way::Range && size > 0 {
            copied = copy_ranges(source, target)?;
        }
        // What it stopped at may not have been the end.
        Ok(copied + copy_plain(source, target)?)
    }

    /// Has the kernel copy until it says that there is no more, or that it will not.
    fn copy_ranges(source: &File, target: &File) -> io::Result<u64> {
        let mut copied = 0;
        loop {
            match raw::copy_range(source, target, RANGE) {
                Ok(0) => return Ok(copied),
                Ok(count) => copied += count as u64,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if is_real(&why) => return Err(why),
                Err(_) => return Ok(copied),
            }
        }
    }

    /// Whether reading and writing would fail too. All other errors mean that these two files
    /// cannot be copied in this way (of different file systems, of a kind, locked in, a
    /// sandbox), and if they mean more, the next way says so.
    fn is_real(why: &io::Error) -> bool {
        matches!(why.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EIO | libc::EFBIG))
    }

    fn copy_plain(mut source: &File, mut target: &File) -> io::Result<u64> {
        let mut piece = vec![0; PIECE];
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

        use super::{PIECE, Way, copy_by};

        const WAYS: [Way; 3] = [Way::Clone, Way::Range, Way::Plain];

        fn content(size: usize) -> Vec<u8> {
            (0..size).map(|at| (at % 251) as u8).collect()
        }

        #[test]
        fn every_way_copies_all_and_the_permissions() {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            for size in [0, 1, 4096, PIECE, 3 * PIECE + 5] {
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
            let (Ok(here), Ok(there)) = (tempfile::tempdir(), tempfile::tempdir_in("/dev/shm"))
            else {
                println!("skipped: there is no second file system at /dev/shm");
                return;
            };
            let (from, to) = (here.path().join("from"), there.path().join("to"));
            fs::write(&from, content(PIECE + 1)).unwrap();
            for way in WAYS {
                assert_eq!(copy_by(way, &from, &to).unwrap(), PIECE as u64 + 1, "{way:?}");
                assert!(fs::read(&to).unwrap() == content(PIECE + 1), "{way:?}");
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
        fn what_is_no_file_is_refused() {
            let dir = tempfile::tempdir().unwrap();
            for way in WAYS {
                let error = copy_by(way, dir.path(), &dir.path().join("to")).unwrap_err();
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
                assert!(!dir.path().join("to").exists());
            }
        }
    }
}
