//! Runs file operations on the blocking pool.

#![forbid(unsafe_code)]

use std::{
    io,
    path::{Path, PathBuf},
};

use super::error;
use crate::{runtime::context, task::spawn_blocking};

/// Runs `f` on a blocking thread, and returns its result.
///
/// # Panics
/// If there is no runtime on this thread.
pub(super) async fn asyncify<T: Send + 'static>(
    f: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(f).await.map_err(|_| error::job_failed())?
}

/// Runs `f` on a blocking thread with a copy of the path. Errors are returned unchanged: see
/// `error.rs`.
pub(super) async fn asyncify_path<T: Send + 'static>(
    path: impl AsRef<Path>,
    f: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path: PathBuf = path.as_ref().to_owned();
    asyncify(move || f(&path)).await
}

/// Runs `f` on a blocking thread with copies of two paths.
pub(super) async fn asyncify_paths<T: Send + 'static>(
    (from, to): (impl AsRef<Path>, impl AsRef<Path>),
    f: impl FnOnce(&Path, &Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (from, to): (PathBuf, PathBuf) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    asyncify(move || f(&from, &to)).await
}

/// Returns an error if the runtime is shutting down and accepts no more blocking work. Inline
/// operations call this too, so that their result does not depend on what is cached.
///
/// # Panics
/// If there is no runtime on this thread.
#[inline]
#[track_caller]
pub(super) fn need_runtime() -> io::Result<()> {
    match context::with_current(|inner| inner.blocking.is_stopping()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(error::job_failed()),
        Err(error) => panic!("{error}"),
    }
}
