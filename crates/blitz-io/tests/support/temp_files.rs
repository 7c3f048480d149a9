//! Creates folders, files, pipes and paths that are removed at the end of a test.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use tempfile::TempDir;

use super::{
    runtimes::{one_thread, workers_with_drivers},
    watchdog,
};

/// Runs the test on each kind of runtime, each time in a new folder.
pub(crate) fn on_all_kinds_in_folder<F>(test: impl Fn(PathBuf) -> F)
where
    F: Future<Output = std::io::Result<()>>,
{
    let _watch = watchdog::start();
    for runtime in [one_thread(), workers_with_drivers(1), workers_with_drivers(2)] {
        let dir = folder();
        let path = dir.path().to_owned();
        runtime.block_on(test(path)).unwrap();
    }
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns bytes that differ from their neighbours.
pub(crate) fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

/// Creates a file with `content(size)`, which is then in the page cache.
pub(crate) fn file(dir: &Path, size: usize) -> PathBuf {
    let path = dir.join(format!("file-{size}"));
    std::fs::write(&path, content(size)).expect("a file");
    assert_eq!(std::fs::read(&path).expect("a file").len(), size);
    path
}

/// A path at which no file exists; a file or socket that is created there is removed on drop.
pub(crate) struct UnusedPath(PathBuf);

pub(crate) fn unused_path() -> UnusedPath {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let name = format!("blitz-test-{}-{number}", std::process::id());
    UnusedPath(std::env::temp_dir().join(name))
}

impl AsRef<Path> for UnusedPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for UnusedPath {
    fn drop(&mut self) {
        // There is nothing to remove if the test created nothing.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Creates a named pipe.
#[cfg(unix)]
pub(crate) fn make_fifo(path: &Path) {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("a path without zeros");
    // SAFETY: `path` ends with a zero byte and lives through the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}
