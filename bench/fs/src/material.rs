//! Files to read, in a folder that is removed with them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A folder below the temporary directory (`TMPDIR`), removed with all its contents when this is
/// dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("blitz-bench-fs-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files: set TMPDIR");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates this many files of that size, in the page cache.
    pub(crate) fn files(&self, count: usize, size: usize) -> Vec<PathBuf> {
        let file = |number: usize| {
            let path = self.0.join(format!("{number}"));
            fs::write(&path, vec![b'x'; size]).expect("room for a file: set TMPDIR");
            path
        };
        (0..count).map(file).collect()
    }

    /// Creates one large file, in the page cache.
    pub(crate) fn large(&self, size: usize) -> PathBuf {
        let path = self.0.join("large");
        let mut file = fs::File::create(&path).expect("a file");
        let piece: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
        for _ in 0..size >> 20 {
            file.write_all(&piece).expect("room for a large file: set TMPDIR");
        }
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error only leaves files in the temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Pseudo-random numbers, the same in each run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(2) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
