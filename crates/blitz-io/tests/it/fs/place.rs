//! Helpers: runtimes, folders and files.

use std::{
    future::Future,
    path::{Path, PathBuf},
};

use blitz_io::runtime::{Builder, Preemption, Runtime};
use tempfile::TempDir;

use crate::watch;

pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

pub(crate) fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_all().build().expect("a runtime")
}

/// Creates a runtime whose blocking threads run only blocking jobs: none of them replaces a worker
/// that is in a long poll.
#[allow(dead_code, reason = "only some systems read at once")]
pub(crate) fn workers_as_they_are(count: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(count)
        .enable_all()
        .preemption(Preemption::disabled())
        .build()
        .expect("a runtime")
}

/// Creates a current-thread runtime with one blocking thread.
pub(crate) fn one_for_blocking() -> Runtime {
    Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime")
}

/// Runs the test on each kind of runtime, each time in a new folder.
pub(crate) fn on_all<F: Future<Output = std::io::Result<()>>>(test: impl Fn(PathBuf) -> F) {
    let _watch = watch::begin();
    for runtime in [one_thread(), workers(1), workers(2)] {
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
