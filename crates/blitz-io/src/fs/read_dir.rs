//! The entries of a directory, in batches.
//!
//! One job on a thread for blocking work opens the directory and takes the first entries; each
//! further job takes as many again. So a directory of a few files is one hop, not one for
//! each entry. The kind of an entry comes with its name where the system tells it, and is
//! asked for in the same job where it does not.

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
    error,
    offload::{offload, on_path},
};
use crate::{
    engine::work::task::budget,
    task::{JoinHandle, spawn_blocking},
};

/// Entries that one job takes: a few pages of names. Picked, not measured.
const BATCH: usize = 256;

/// Reads the entries of a directory, in an order that is the system's; `.` and `..` are not
/// among them.
///
/// # Errors
///
/// `NotFound`, `NotADirectory`, `PermissionDenied` and others; they name the path.
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
    on_path("read the directory", path, |path| {
        let batch = Batch::new(std::fs::read_dir(path)?);
        Ok(ReadDir { state: State::Idle(batch) })
    })
    .await
}

/// Entries that were taken, and where the others come from.
#[derive(Debug)]
struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    /// `None` at the end.
    source: Option<StdReadDir>,
}

impl Batch {
    fn new(source: StdReadDir) -> Self {
        let mut batch = Self { entries: VecDeque::new(), source: Some(source) };
        batch.fill();
        batch
    }

    /// Takes more entries, if there are more. An error is an entry too: after it others may
    /// come.
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
    /// The job was lost.
    Over,
}

/// The entries of a directory; made by [`read_dir`].
///
/// It reads 256 at a time ahead of who asks: what is created or removed meanwhile may be
/// among them or not.
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
#[must_use = "entries are read only when they are asked for"]
pub struct ReadDir {
    state: State,
}

impl ReadDir {
    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// What the system says; the entries after it may be asked for.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, no entry is lost.
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

    /// The next entry, for code that polls by hand.
    ///
    /// # Errors
    ///
    /// As [`next_entry`](Self::next_entry).
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
                        let unit = match budget::proceed(cx) {
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
                    super::offload::need_runtime();
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
                    self.state = State::Idle(ended.map_err(|why| error::lost(&why))?);
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
    /// If it could be told with the entry.
    file_type: Option<FileType>,
}

impl DirEntry {
    fn new(std: std::fs::DirEntry) -> Self {
        // It may have vanished meanwhile: whoever asks is told then.
        let file_type = std.file_type().ok();
        Self { std: Arc::new(std), file_type }
    }

    /// The path of the directory as it was given, and the name in it.
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

    /// The name in the directory.
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

    /// What the system knows about it; of a symbolic link, about the link.
    ///
    /// # Errors
    ///
    /// `NotFound` if it was removed, and others; they name the path.
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
        offload(move || std.metadata().map_err(|why| error::at("look at", &std.path(), why))).await
    }

    /// Whether it is a file, a directory, a link or something else. Mostly known with the
    /// entry; else it is asked for.
    ///
    /// # Errors
    ///
    /// `NotFound` if it was removed before anybody could tell; the error names the path.
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
        offload(move || std.file_type().map_err(|why| error::at("look at", &std.path(), why))).await
    }

    /// The number of its inode.
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
