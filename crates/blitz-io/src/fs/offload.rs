//! How a file operation gets onto a thread for blocking work.

#![forbid(unsafe_code)]

use std::{
    io,
    path::{Path, PathBuf},
};

use super::error;
use crate::{runtime::context, task::spawn_blocking};

/// Runs `f` on a thread where it may block.
///
/// # Panics
/// Without a runtime on this thread.
pub(super) async fn offload<T: Send + 'static>(
    f: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(f).await.map_err(|why| error::lost(&why))?
}

/// The same for an operation on a path, which its error names.
pub(super) async fn on_path<T: Send + 'static>(
    operation: &'static str,
    path: impl AsRef<Path>,
    f: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path: PathBuf = path.as_ref().to_owned();
    offload(move || f(&path).map_err(|why| error::at(operation, &path, why))).await
}

/// The same for an operation on two.
pub(super) async fn on_paths<T: Send + 'static>(
    operation: &'static str,
    (from, to): (impl AsRef<Path>, impl AsRef<Path>),
    f: impl FnOnce(&Path, &Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (from, to): (PathBuf, PathBuf) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    offload(move || f(&from, &to).map_err(|why| error::between(operation, &from, &to, why))).await
}

/// What can be done without a thread panics without a runtime too, so that it does not depend
/// on what lies in the cache.
///
/// # Panics
/// Without a runtime on this thread.
#[track_caller]
pub(super) fn need_runtime() {
    if let Err(error) = context::with_current(|_| ()) {
        panic!("{error}");
    }
}

/// Whether the runtime of this thread has begun to end, and takes no more work that blocks.
pub(super) fn is_runtime_ending() -> bool {
    context::with_current(|inner| inner.blocking.is_stopping()).unwrap_or(false)
}
