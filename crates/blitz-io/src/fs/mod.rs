//! Files and directories, with Tokio's interface.
//!
//! Systems offer little to wait for a file with: a disk is never 'ready'. So operations on
//! files are made by threads for blocking work, as many as
//! [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads) allows, but for what
//! the system can answer from its memory without waiting (Linux): reads from the page cache,
//! opening a local file for reading, and reading a small file whole. That is tried where it is
//! asked for, and a thread is asked only if it fails.
//!
//! - [`File`] and [`OpenOptions`]: an open file, and how it is opened;
//! - [`read`], [`read_to_string`], [`write()`], [`copy`]: whole files;
//! - [`read_dir`], [`DirBuilder`]: directories;
//! - [`metadata`], [`rename`], [`remove_file`] and so on: what is done by a path.
//!
//! # Errors
//!
//! What takes a path has errors that name the operation and the path. Their
//! [`kind`](std::io::Error::kind) is that of the system's error, which is their
//! [`source`](std::error::Error::source); one that is known only by its number is passed on as it
//! is. Errors of an open file are the system's own.
//!
//! # Dropped futures and shutdown
//!
//! A thread that has begun an operation ends it: to drop the future only means that nobody
//! hears of the result. What may be left behind is said under *Cancel safety*. A runtime that
//! is dropped waits for such threads; operations that did not get their turn fail, but writes
//! that a [`File`] has taken are made. After the end of the runtime operations fail with an
//! error that says so.
//!
//! Without a runtime on the thread all of them panic.
//!
//! # Finding out
//!
//! `BLITZ_FS_INLINE=never` has all done by threads, `ring` leaves reads at an offset to io_uring;
//! `BLITZ_FS_COPY` (`clone`, `range`, `plain`) says how [`copy`] begins. Both are for tests and
//! for finding out.
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
//! assert!(error.to_string().starts_with("cannot read "));
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```
//!
//! # Unsafe code
//!
//! It is in `raw.rs`. A test refuses it anywhere else in this folder.

mod error;
mod raw;
mod inline;
mod offload;
mod state;
mod file;
mod positional;
mod open_options;
mod file_times;
mod whole;
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
    whole::{read, read_to_string, write},
};
