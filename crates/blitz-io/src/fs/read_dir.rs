//! Reads the entries of a directory in batches.
//!
//! One job on the blocking pool opens the directory and reads the first batch of entries; each
//! further job reads another batch. So a directory with few files costs one hop to another thread,
//! not one for each entry. The type of an entry comes with its name where the system supplies it,
//! and is queried in the same job where it does not.

#![forbid(unsafe_code)]

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::{FileType, Metadata, ReadDir as StdReadDir},
    future::poll_fn,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    asyncify::{asyncify, asyncify_path},
    error,
};
use crate::{
    engine::work::task::budget,
    task::{JoinHandle, spawn_blocking},
};

/// Number of entries that one job reads: a few pages of names. Picked, not measured.
const BATCH: usize = 256;

/// Returns a stream of the entries of a directory, in the system's order, without `.` and `..`.
///
/// # Errors
///
/// Returns `NotFound`, `NotADirectory`, `PermissionDenied` and other errors of the system.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::write(dir.path().join("one"), "").await?;
/// let mut entries = blitz_io::fs::read_dir(dir.path()).await?;
/// while let Some(entry) = entries.next_entry().await? {
///     assert_eq!(entry.file_name(), "one");
/// }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    asyncify_path(path, |path| {
        let batch = Batch::new(std::fs::read_dir(path)?);
        Ok(ReadDir { state: State::Idle(batch) })
    })
    .await
}

/// Entries that were read but not returned yet, and the source of further ones.
#[derive(Debug)]
struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    /// `None` once the end was reached.
    source: Option<StdReadDir>,
}

impl Batch {
    fn new(source: StdReadDir) -> Self {
        let mut batch = Self { entries: VecDeque::new(), source: Some(source) };
        batch.fill();
        batch
    }

    /// Reads the next batch of entries, if there are more. An error counts as an entry, because
    /// others may follow it.
    fn fill(&mut self) {
        let Some(source) = &mut self.source else { return };
        for _ in 0..BATCH {
            match source.next() {
                Some(entry) => self.entries.push_back(entry.map(DirEntry::new)),
                None => {
                    self.source = None;
                    return;
                }
            }
        }
    }
}

#[derive(Debug)]
enum State {
    Idle(Batch),
    Busy(JoinHandle<Batch>),
    /// The job was cancelled or panicked, and the batch was lost with it.
    Over,
}

/// Stream of the entries of a directory, created by [`read_dir`].
///
/// Entries are read ahead, 256 at a time, so entries that are created or removed meanwhile may or
/// may not be included.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// let mut entries = blitz_io::fs::read_dir(dir.path()).await?;
/// assert!(entries.next_entry().await?.is_none());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "entries are read only on request"]
pub struct ReadDir {
    state: State,
}

impl ReadDir {
    /// Returns the next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns the system's error; the entries after it can still be read.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no entry is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// blitz_io::fs::create_dir(dir.path().join("sub")).await?;
    /// let mut entries = blitz_io::fs::read_dir(dir.path()).await?;
    /// let entry = entries.next_entry().await?.expect("there is one");
    /// assert!(entry.file_type().await?.is_dir());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    /// Polls for the next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`next_entry`](Self::next_entry).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let mut entries = blitz_io::fs::read_dir(dir.path()).await?;
    /// let none = std::future::poll_fn(|cx| entries.poll_next_entry(cx)).await?;
    /// assert!(none.is_none());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            match &mut self.state {
                State::Idle(batch) => {
                    if let Some(entry) = batch.entries.pop_front() {
                        let unit = match budget::poll_proceed(cx) {
                            Poll::Ready(unit) => unit,
                            Poll::Pending => {
                                batch.entries.push_front(entry);
                                return Poll::Pending;
                            }
                        };
                        unit.spend();
                        return Poll::Ready(entry.map(Some));
                    }
                    if batch.source.is_none() {
                        return Poll::Ready(Ok(None));
                    }
                    super::asyncify::need_runtime()?;
                    let mut batch =
                        std::mem::replace(batch, Batch { entries: VecDeque::new(), source: None });
                    self.state = State::Busy(spawn_blocking(move || {
                        batch.fill();
                        batch
                    }));
                }
                State::Busy(job) => {
                    let ended = ready!(Pin::new(job).poll(cx));
                    self.state = State::Over;
                    self.state = State::Idle(ended.map_err(|why| error::job_lost(&why))?);
                }
                State::Over => {
                    return Poll::Ready(Err(io::Error::other(
                        "an earlier job of this directory was lost: call `read_dir` again",
                    )));
                }
            }
        }
    }
}

/// An entry of a directory.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// blitz_io::fs::write(dir.path().join("one"), "1").await?;
/// let mut entries = blitz_io::fs::read_dir(dir.path()).await?;
/// let entry = entries.next_entry().await?.expect("there is one");
/// assert_eq!(entry.path(), dir.path().join("one"));
/// assert_eq!(entry.metadata().await?.len(), 1);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct DirEntry {
    std: Arc<std::fs::DirEntry>,
    /// The entry's type, if it was available along with the entry.
    file_type: Option<FileType>,
}

impl DirEntry {
    fn new(std: std::fs::DirEntry) -> Self {
        // The file may have been removed meanwhile: `file_type` then returns the error.
        let file_type = std.file_type().ok();
        Self { std: Arc::new(std), file_type }
    }

    /// Returns the full path: the directory's path as it was passed to [`read_dir`], joined with
    /// the entry's name.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// blitz_io::fs::write(dir.path().join("one"), "1").await?;
    /// let entry = blitz_io::fs::read_dir(dir.path()).await?.next_entry().await?.unwrap();
    /// assert_eq!(entry.path(), dir.path().join("one"));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn path(&self) -> PathBuf {
        self.std.path()
    }

    /// Returns the entry's name in its directory.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// blitz_io::fs::write(dir.path().join("one"), "1").await?;
    /// let entry = blitz_io::fs::read_dir(dir.path()).await?.next_entry().await?.unwrap();
    /// assert_eq!(entry.file_name(), "one");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn file_name(&self) -> OsString {
        self.std.file_name()
    }

    /// Returns the entry's metadata. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// Returns `NotFound` if the entry was removed, and other errors of the system.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// blitz_io::fs::write(dir.path().join("one"), "1").await?;
    /// let entry = blitz_io::fs::read_dir(dir.path()).await?.next_entry().await?.unwrap();
    /// assert_eq!(entry.metadata().await?.len(), 1);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let std = self.std.clone();
        asyncify(move || std.metadata()).await
    }

    /// Returns the entry's type: file, directory, symbolic link or something else. The type mostly
    /// came with the entry; otherwise a blocking thread queries it.
    ///
    /// # Errors
    ///
    /// Returns `NotFound` if the entry was removed before its type was queried.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// blitz_io::fs::write(dir.path().join("one"), "1").await?;
    /// let entry = blitz_io::fs::read_dir(dir.path()).await?.next_entry().await?.unwrap();
    /// assert!(entry.file_type().await?.is_file());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn file_type(&self) -> io::Result<FileType> {
        if let Some(known) = self.file_type {
            return Ok(known);
        }
        let std = self.std.clone();
        asyncify(move || std.file_type()).await
    }

    /// Returns the entry's inode number.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::fs::MetadataExt;
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// blitz_io::fs::write(dir.path().join("one"), "1").await?;
    /// let entry = blitz_io::fs::read_dir(dir.path()).await?.next_entry().await?.unwrap();
    /// assert_eq!(entry.ino(), entry.metadata().await?.ino());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[cfg(unix)]
    pub fn ino(&self) -> u64 {
        std::os::unix::fs::DirEntryExt::ino(&*self.std)
    }
}
