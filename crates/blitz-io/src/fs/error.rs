//! Errors that say which operation failed, and on which path.
//!
//! The kernel's number alone ("no such file or directory") does not tell which of several
//! files is missing. So what takes a path names it, if the `ErrorKind` says what happened:
//! an error that has no kind is known by its number alone, and stays as it is. So does what
//! happens on an open file: programs look at its number, and they know which file they
//! asked.

#![forbid(unsafe_code)]

use std::{
    error, fmt, io,
    path::{Path, PathBuf},
};

use crate::task::JoinError;

/// What could not be done, on which path, and why. The kind of the `io::Error` around it is
/// the kind of `cause`.
#[derive(Debug)]
struct Failed {
    operation: &'static str,
    path: PathBuf,
    /// Where to, if it takes two.
    target: Option<PathBuf>,
    cause: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {:?}", self.operation, self.path)?;
        if let Some(target) = &self.target {
            write!(f, " to {target:?}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl error::Error for Failed {
    /// The system's error, with its number.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// `cause`, which happened to `operation` ('open') on `path`.
#[cold]
pub(super) fn at(operation: &'static str, path: &Path, cause: io::Error) -> io::Error {
    with(operation, path, None, cause)
}

/// `cause`, which happened to `operation` ('rename') from one path to another.
#[cold]
pub(super) fn between(
    operation: &'static str,
    path: &Path,
    target: &Path,
    cause: io::Error,
) -> io::Error {
    with(operation, path, Some(target.to_owned()), cause)
}

fn with(
    operation: &'static str,
    path: &Path,
    target: Option<PathBuf>,
    cause: io::Error,
) -> io::Error {
    let kind = cause.kind();
    if cause.raw_os_error().is_some() && !has_kind(kind) {
        return cause;
    }
    io::Error::new(kind, Failed { operation, path: path.to_owned(), target, cause })
}

/// Whether the kind says what happened. Those of the system's errors that have none of their
/// own share one that has no name.
fn has_kind(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        AlreadyExists, CrossesDevices, DirectoryNotEmpty, ExecutableFileBusy, FileTooLarge,
        InvalidData, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
        NotSeekable, OutOfMemory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem,
        ResourceBusy, StaleNetworkFileHandle, StorageFull, TooManyLinks, Unsupported, WriteZero,
    };
    matches!(
        kind,
        AlreadyExists
            | CrossesDevices
            | DirectoryNotEmpty
            | ExecutableFileBusy
            | FileTooLarge
            | InvalidData
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | NotSeekable
            | OutOfMemory
            | PermissionDenied
            | QuotaExceeded
            | ReadOnlyFilesystem
            | ResourceBusy
            | StaleNetworkFileHandle
            | StorageFull
            | TooManyLinks
            | Unsupported
            | WriteZero
    )
}

/// The thread for blocking work did not come to the end of its job.
#[cold]
pub(super) fn lost(why: &JoinError) -> io::Error {
    io::Error::other(if why.is_cancelled() {
        "the runtime has shut down before this file operation was done: do it on one that runs"
    } else {
        "a file operation panicked on its thread: what it has done is not known"
    })
}

/// The runtime takes no more work that blocks.
#[cold]
pub(super) fn ended() -> io::Error {
    io::Error::other("the runtime has shut down: write to the file on one that runs")
}

#[cfg(all(test, unix))]
mod tests {
    use std::{error::Error, io, path::Path};

    use super::{at, between};

    #[test]
    fn an_error_keeps_its_kind_and_the_number_behind_it() {
        let missing = || io::Error::from_raw_os_error(libc::ENOENT);
        let error = at("open", Path::new("/a b"), missing());
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("cannot open \"/a b\": "), "{error}");
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::ENOENT));
        let error = between("rename", Path::new("a"), Path::new("b"), missing());
        assert!(error.to_string().starts_with("cannot rename \"a\" to \"b\": "), "{error}");
    }

    #[test]
    fn an_error_without_a_kind_keeps_its_number() {
        let error = at("open", Path::new("a"), io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    }
}
