//! Files and directories, with Tokio's interface.
//!
//! Operating systems offer no readiness for files: a disk is never 'ready'. So file operations run
//! on the blocking pool, on at most
//! [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads) threads. The exceptions
//! (Linux) are operations that the kernel can complete from memory without blocking: reads from the
//! page cache, opening a local file for reading, and reading a small file whole. These are tried
//! inline, on the calling thread, and go to the blocking pool only if the attempt fails.
//!
//! - [`File`] and [`OpenOptions`]: an open file, and how it is opened;
//! - [`read`], [`read_to_string`], [`write()`], [`copy`]: whole files;
//! - [`read_dir`], [`DirBuilder`]: directories;
//! - [`metadata`], [`rename`], [`remove_file`] and so on: operations on a path.
//!
//! # Errors
//!
//! Errors are the operating system's own, with [`kind`](std::io::Error::kind) and
//! [`raw_os_error`](std::io::Error::raw_os_error), as on Tokio. Their text does not name the path,
//! because an `io::Error` holds either an error number or a text: add the path where you know it.
//!
//! # Dropped futures and shutdown
//!
//! Once a blocking thread has started an operation, the operation runs to its end; dropping the
//! future only discards the result. The *Cancel safety* sections say what may be left behind.
//! Dropping a runtime waits for the threads that are running operations. Operations still in the
//! queue fail, except for writes that a [`File`] has already accepted: these are made. After the
//! runtime has shut down, operations fail with `background task failed`, as on Tokio.
//!
//! All operations panic on a thread that has no runtime.
//!
//! # Finding out
//!
//! `BLITZ_FS_INLINE=never` runs every operation on the blocking pool, and `uring` leaves reads at
//! an offset to io_uring; `BLITZ_FS_COPY` (`clone`, `range`, `plain`) selects the first method that
//! [`copy`] tries. Both variables are meant for tests and for investigation.
//!
//! # Examples
//!
//! ```
//! use blitz_io::fs;
//!
//! # blitz_io::run(async {
//! # let dir = tempfile::tempdir()?;
//! let path = dir.path().join("greeting");
//! fs::write(&path, "hello").await?;
//! assert_eq!(fs::read_to_string(&path).await?, "hello");
//!
//! let error = fs::read(dir.path().join("missing")).await.unwrap_err();
//! assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
//! #[cfg(unix)]
//! assert_eq!(error.raw_os_error(), Some(2), "the system's number, as on Tokio");
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! # Unsafe code
//!
//! All unsafe code is in `raw.rs`. A test rejects it anywhere else in this folder.

mod error;
mod raw;
mod inline;
mod asyncify;
mod pending_writes;
mod state;
mod file;
mod positional;
mod open_options;
mod file_times;
mod whole_file;
mod copy;
mod paths;
mod dir_builder;
mod read_dir;

#[cfg(unix)]
pub use self::paths::symlink;
#[cfg(windows)]
pub use self::paths::{symlink_dir, symlink_file};
pub use self::{
    copy::copy,
    dir_builder::DirBuilder,
    file::File,
    file_times::FileTimes,
    open_options::OpenOptions,
    paths::{
        canonicalize, create_dir, create_dir_all, hard_link, metadata, read_link, remove_dir,
        remove_dir_all, remove_file, rename, set_permissions, symlink_metadata, try_exists,
    },
    read_dir::{DirEntry, ReadDir, read_dir},
    whole_file::{read, read_to_string, write},
};
