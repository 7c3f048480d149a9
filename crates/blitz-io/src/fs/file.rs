//! An open file.
//!
//! Operations that the kernel can complete from memory run inline, on the calling thread
//! (`inline.rs`), and read straight into the caller's buffer. All others are jobs on the blocking
//! pool, one at a time for each file (`state.rs`).
//!
//! # Shared cursors
//! `try_clone` makes a second file with the same cursor, and the kernel locks the cursor of a file
//! during a read or a write. So an inline read could block behind a job of the clone. Both files
//! therefore share a [`CursorLock`]: a job holds it during its system call, and code that must not
//! block only tries to take it, and becomes a job itself if the lock is held. Only regular files
//! and directories have such a cursor. Files without one (terminals, pipes, sockets, devices) have
//! no such lock, so a read that waits for bytes does not keep a clone from writing.
//!
//! # Checked by
//! `clones_have_one_cursor`, `a_clone_writes_while_another_waits_in_a_read`,
//! `clones_that_write_at_once_lose_no_byte`,
//! `a_clone_whose_cursor_is_in_use_waits_without_its_worker`,
//! `a_read_that_was_given_up_loses_nothing`, `every_future_can_be_dropped_after_any_poll`; and
//! Tokio's own tests of files.

#![forbid(unsafe_code)]

use std::{
    fmt,
    fs::{File as StdFile, Metadata, Permissions},
    future::poll_fn,
    io::{self, IoSlice, SeekFrom},
    path::Path,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
    time::SystemTime,
};

use super::{
    FileTimes, OpenOptions,
    asyncify::{asyncify, need_runtime},
    inline::{self, Filled, InlineSupport},
    pending_writes,
    state::{CursorLock, Inner, JobResult},
};
use crate::{
    engine::work::task::budget,
    io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf},
    sync::Mutex,
};

/// Maximum number of bytes per job, the same as Tokio's. Bounds how much memory a file holds and
/// how long one job takes.
const DEFAULT_MAX_BUF_SIZE: usize = 2 * 1024 * 1024;

/// Handle to an open file on the file system.
///
/// Files are read, written and sought through the traits [`AsyncRead`], [`AsyncWrite`] and
/// [`AsyncSeek`], mostly by the methods of their extension traits in [`io`](crate::io). The methods
/// that end in `_at_owned` read and write at an offset, with buffers that are passed by value.
///
/// A read of a regular file fills its buffer, up to [`max_buf_size`](Self::max_buf_size), unless it
/// reaches the end of the file. Bytes in the page cache are read inline (Linux, up to 1 MiB); bytes
/// that must be fetched are read by a blocking thread. A write hands its bytes to a blocking thread
/// and returns: the bytes are written in order, whether or not the file is dropped, and even if the
/// runtime shuts down. **The error of a write is returned by the next write or flush**, so call
/// [`flush`](crate::io::AsyncWriteExt::flush) after the last write: dropping a file reports
/// nothing, and does not wait. Neither a flush nor a drop forces the bytes to the disk:
/// [`sync_all`](Self::sync_all) does.
///
/// # Cancel safety
///
/// If the future of a read is dropped, nothing is lost: the bytes that it reads are returned by the
/// next read. If the future of a `write` is dropped before it completed, nothing is written; a
/// `write` that has completed is carried out. If the future of a `seek` is dropped, the cursor may
/// have moved.
///
/// # Examples
///
/// ```
/// use blitz_io::{fs::File, io::{AsyncReadExt, AsyncWriteExt}};
///
/// # blitz_io::run(async {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("notes");
/// let mut file = File::create(&path).await?;
/// file.write_all(b"hello").await?;
/// file.flush().await?;
///
/// let mut text = String::new();
/// File::open(&path).await?.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct File {
    std: Arc<StdFile>,
    inner: Mutex<Inner>,
    max_buf_size: usize,
    /// `Unknown` until the first read or seek.
    support: InlineSupport,
    /// The support found by methods that have only a shared reference, while `support` is
    /// `Unknown`.
    probed: OnceLock<InlineSupport>,
    /// The inode number, once `metadata` has needed it; `None` if the system does not report it.
    inode: OnceLock<Option<u64>>,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, may not be read, and so on. On Unix a directory
    /// can be opened, but reading it fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let missing = blitz_io::fs::File::open("/no/such/file").await.unwrap_err();
    /// assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    /// # #[cfg(unix)]
    /// assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    /// # });
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options().read(true).open(path).await
    }

    /// Opens a file for writing: creates it, or truncates it if it exists.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be created or opened.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the file may have been created and truncated already, or may be
    /// shortly after.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// assert_eq!(file.metadata().await?.len(), 0);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options().write(true).create(true).truncate(true).open(path).await
    }

    /// Creates a new file and opens it for reading and writing.
    ///
    /// # Errors
    ///
    /// Returns `AlreadyExists` if the file exists, and other errors of the system.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the file may have been created already, or may be shortly after.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("new");
    /// blitz_io::fs::File::create_new(&path).await?;
    /// let again = blitz_io::fs::File::create_new(&path).await.unwrap_err();
    /// assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn create_new<P: AsRef<Path>>(path: P) -> std::io::Result<File> {
        Self::options().read(true).write(true).create_new(true).open(path).await
    }

    /// Returns options for opening a file, none of them set.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("log");
    /// let _log = blitz_io::fs::File::options().append(true).create(true).open(&path).await?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Converts a [`std::fs::File`] into a file of this runtime.
    ///
    /// Operations on a file in non-blocking mode return `WouldBlock`, as they do in std, because
    /// files do not wait for readiness.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// # std::fs::write(&path, "x")?;
    /// let mut file = blitz_io::fs::File::from_std(std::fs::File::open(path)?);
    /// assert_eq!(file.read_u8().await?, b'x');
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn from_std(std: StdFile) -> File {
        Self::with_support(std, InlineSupport::Unknown)
    }

    pub(super) fn with_support(std: StdFile, support: InlineSupport) -> Self {
        Self {
            std: Arc::new(std),
            inner: Mutex::new(Inner::new(CursorLock::default())),
            max_buf_size: DEFAULT_MAX_BUF_SIZE,
            support,
            probed: OnceLock::new(),
            inode: OnceLock::new(),
        }
    }

    pub(super) fn std(&self) -> &Arc<StdFile> {
        &self.std
    }

    /// Returns the support for inline reads, and probes it first if it is not known yet.
    pub(super) fn probed_support(&self) -> InlineSupport {
        match self.support {
            InlineSupport::Unknown => *self.probed.get_or_init(|| inline::probe(&self.std)),
            support => support,
        }
    }

    /// Waits until no operation of this file is in progress. The error of a write is kept for
    /// later.
    async fn wait_idle(&self) {
        let mut inner = self.inner.lock().await;
        poll_fn(|cx| inner.poll_idle(cx)).await;
    }

    /// Waits for all writes so far, then has the system write content and metadata to the disk.
    ///
    /// The error of an earlier write is not returned here but by the next write or flush, so flush
    /// first.
    ///
    /// # Errors
    ///
    /// Returns the error that the system reports for the disk.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after the sync has started, the system still completes it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let mut file = blitz_io::fs::File::create(dir.path().join("precious")).await?;
    /// file.write_all(b"kept").await?;
    /// file.flush().await?;
    /// file.sync_all().await?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn sync_all(&self) -> io::Result<()> {
        self.wait_idle().await;
        let std = self.std.clone();
        asyncify(move || std.sync_all()).await
    }

    /// Waits for all writes so far, then has the system write the content to the disk. Unlike
    /// [`sync_all`](Self::sync_all), it writes only the metadata that is needed to read the content
    /// back.
    ///
    /// # Errors
    ///
    /// Returns the error that the system reports for the disk.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let mut file = blitz_io::fs::File::create(dir.path().join("precious")).await?;
    /// file.write_all(b"kept").await?;
    /// file.flush().await?;
    /// file.sync_data().await?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn sync_data(&self) -> io::Result<()> {
        self.wait_idle().await;
        let std = self.std.clone();
        asyncify(move || std.sync_data()).await
    }

    /// Truncates the file to `size`, or extends it with zeros. Waits first for writes that are in
    /// progress. The cursor does not move.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was not opened for writing, or the system refuses the size.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after the operation has started, the size is still changed.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("sparse")).await?;
    /// file.set_len(1 << 30).await?;
    /// assert_eq!(file.metadata().await?.len(), 1 << 30);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn set_len(&self, size: u64) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        poll_fn(|cx| inner.poll_idle(cx)).await;
        inner.begin_truncate(&self.std, size);
        match poll_fn(|cx| inner.poll_job(cx)).await? {
            Some(JobResult::Truncate(result)) => result,
            _ => unreachable!("we have the lock, and began to cut"),
        }
    }

    /// Returns the file's metadata. Does not wait for writes that are in progress.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// assert!(file.metadata().await?.is_file());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn metadata(&self) -> io::Result<Metadata> {
        if self.support == InlineSupport::Local {
            need_runtime()?;
            poll_fn(budget::poll_proceed).await.spend();
            // With an accepted write still pending, the query must go behind it: see
            // `pending_writes.rs`. A pending write is looked for before the query, because one that
            // is made in between would be missing from both.
            let inode = *self.inode.get_or_init(|| inline::inode(&self.std));
            if inode.is_some_and(|inode| !pending_writes::has_pending_write(inode)) {
                return self.std.metadata();
            }
        }
        let std = self.std.clone();
        asyncify(move || std.metadata()).await
    }

    /// Creates a second handle to the same open file, which shares its cursor. Waits first for the
    /// operation of this handle that is in progress.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has no free descriptor.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncReadExt, AsyncSeekExt};
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// blitz_io::fs::write(&path, "ab").await?;
    /// let mut one = blitz_io::fs::File::open(&path).await?;
    /// let mut two = one.try_clone().await?;
    /// assert_eq!(one.read_u8().await?, b'a');
    /// assert_eq!(two.read_u8().await?, b'b');
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn try_clone(&self) -> io::Result<File> {
        let mut inner = self.inner.lock().await;
        poll_fn(|cx| inner.poll_idle(cx)).await;
        need_runtime()?;
        let (std, has_cursor) =
            if self.support == InlineSupport::Local || inner.cursor_lock.is_shared() {
                (self.std.try_clone()?, true)
            } else {
                let std = self.std.clone();
                asyncify(move || Ok((std.try_clone()?, inline::has_cursor(&std)))).await?
            };
        let cursor_lock =
            if has_cursor { inner.cursor_lock.share() } else { CursorLock::default() };
        Ok(Self {
            std: Arc::new(std),
            inner: Mutex::new(Inner::new(cursor_lock)),
            max_buf_size: self.max_buf_size,
            support: self.support,
            probed: OnceLock::new(),
            inode: OnceLock::new(),
        })
    }

    /// Converts this file into a [`std::fs::File`], once no operation is in progress. The cursor is
    /// set to where this file's reader was.
    ///
    /// An error of a write that was not returned yet is lost, so flush first.
    ///
    /// # Panics
    ///
    /// If the future of another operation (`sync_all`, a read at an offset) was dropped while its
    /// thread is still using the file, and the process has no free descriptor for the duplicate
    /// that is needed then.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// let std: std::fs::File = file.into_std().await;
    /// assert_eq!(std.metadata()?.len(), 0);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn into_std(mut self) -> StdFile {
        let inner = self.inner.get_mut();
        poll_fn(|cx| inner.poll_idle(cx)).await;
        inner.restore_cursor(&self.std);
        Arc::try_unwrap(self.std).unwrap_or_else(|shared| {
            shared.try_clone().expect("a second number for a file that a thread is still using")
        })
    }

    /// Converts this file into a [`std::fs::File`], if no operation is in progress.
    ///
    /// # Errors
    ///
    /// Returns the file itself if an operation is in progress: await [`into_std`](Self::into_std),
    /// or flush.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// let std: std::fs::File = file.try_into_std().expect("nothing was begun");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[allow(clippy::result_large_err, reason = "Tokio's signature; the file is given back")]
    pub fn try_into_std(mut self) -> Result<StdFile, Self> {
        let inner = self.inner.get_mut();
        match Arc::try_unwrap(self.std) {
            Ok(std) => {
                inner.restore_cursor(&std);
                Ok(std)
            }
            Err(shared) => {
                self.std = shared;
                Err(self)
            }
        }
    }

    /// Changes the permissions of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the process may not change them.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// let mut permissions = file.metadata().await?.permissions();
    /// permissions.set_readonly(true);
    /// file.set_permissions(permissions).await?;
    /// assert!(file.metadata().await?.permissions().readonly());
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn set_permissions(&self, perm: Permissions) -> io::Result<()> {
        let std = self.std.clone();
        asyncify(move || std.set_permissions(perm)).await
    }

    /// Changes the timestamps of the file. Waits first for the operation that is in progress,
    /// because that operation would change them again.
    ///
    /// # Errors
    ///
    /// Returns an error if the process may not change them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("old")).await?;
    /// let then = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
    /// file.set_times(blitz_io::fs::FileTimes::new().set_modified(then)).await?;
    /// assert_eq!(file.metadata().await?.modified()?, then);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        self.wait_idle().await;
        let std = self.std.clone();
        asyncify(move || std.set_times(times.into_std())).await
    }

    /// Changes the time of the file's last modification.
    ///
    /// # Errors
    ///
    /// Returns an error if the process may not change it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("old")).await?;
    /// file.set_modified(std::time::SystemTime::UNIX_EPOCH).await?;
    /// assert_eq!(file.metadata().await?.modified()?, std::time::SystemTime::UNIX_EPOCH);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }

    /// Sets the maximum number of bytes that one read or write moves; the default is 2 MiB.
    ///
    /// # Panics
    ///
    /// If `max_buf_size` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncWriteExt;
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let mut file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// file.set_max_buf_size(2);
    /// assert_eq!(file.write(b"abc").await?, 2);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn set_max_buf_size(&mut self, max_buf_size: usize) {
        assert!(max_buf_size > 0, "`max_buf_size` must be greater than 0");
        self.max_buf_size = max_buf_size;
    }

    /// Returns the maximum number of bytes that one read or write moves.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// let file = blitz_io::fs::File::create(dir.path().join("new")).await?;
    /// assert_eq!(file.max_buf_size(), 2 * 1024 * 1024);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn max_buf_size(&self) -> usize {
        self.max_buf_size
    }

    /// Reads inline what lies in the page cache, and returns how far that went.
    #[inline]
    fn try_read_inline(&mut self, into: &mut ReadBuf<'_>, limit: usize) -> Filled {
        let (std, support) = (&self.std, &mut self.support);
        if *support == InlineSupport::Slow {
            return Filled::Nothing;
        }
        let cursor_lock = &self.inner.get_mut().cursor_lock;
        let start = into.filled().len();
        let read = || match inline::read(std, support, into, limit) {
            // A clone could read between this part and the rest, so the job must start over.
            Filled::Part if cursor_lock.is_shared() => undo_read(std, into, start),
            filled => filled,
        };
        cursor_lock.try_with(read).unwrap_or(Filled::Nothing)
    }

    fn poll_write_pieces<'a>(
        &mut self,
        cx: &mut Context<'_>,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Poll<io::Result<usize>> {
        let inner = self.inner.get_mut();
        if let Some(error) = inner.take_error() {
            return Poll::Ready(Err(error));
        }
        if let Some(JobResult::Write(Err(error))) = ready!(inner.poll_job(cx))? {
            return Poll::Ready(Err(error));
        }
        let unit = ready!(budget::poll_proceed(cx));
        let amount = inner.begin_write(&self.std, pieces, self.max_buf_size)?;
        unit.spend();
        Poll::Ready(Ok(amount))
    }
}

/// Removes the bytes that were read from `into` and moves the cursor back to before them.
#[cold]
fn undo_read(mut std: &StdFile, into: &mut ReadBuf<'_>, start: usize) -> Filled {
    // A buffer has less than `i64::MAX` bytes.
    let count = (into.filled().len() - start) as i64;
    if io::Seek::seek(&mut std, SeekFrom::Current(-count)).is_err() {
        // The cursor stays behind these bytes, so they must be kept.
        return Filled::Part;
    }
    into.set_filled(start);
    Filled::Nothing
}

impl AsyncRead for File {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match ready!(this.inner.get_mut().poll_job(cx))? {
                Some(JobResult::Read(Err(error))) => return Poll::Ready(Err(error)),
                Some(JobResult::Read(Ok(()))) => {
                    // Zero bytes mean the end of the file, even if an earlier, dropped future
                    // started the read.
                    this.inner.get_mut().copy_unread(buf);
                    return Poll::Ready(Ok(()));
                }
                // The next write or flush returns it.
                Some(JobResult::Write(Err(error))) => this.inner.get_mut().keep_error(error),
                _ => {}
            }
            if buf.remaining() == 0 || this.inner.get_mut().copy_unread(buf) {
                return Poll::Ready(Ok(()));
            }
            let unit = ready!(budget::poll_proceed(cx));
            need_runtime()?;
            let limit = buf.remaining().min(this.max_buf_size);
            let start = buf.filled().len();
            if this.try_read_inline(buf, limit) == Filled::Whole {
                // The result of an earlier seek is outdated by this read.
                drop(this.inner.get_mut().take_seek_result());
                unit.spend();
                budget::charge(buf.filled().len() - start);
                return Poll::Ready(Ok(()));
            }
            // A part must not be in the caller's buffer when this returns `Pending`, because the
            // caller may drop its future: the file keeps the part, in front of what the job reads.
            this.inner.get_mut().begin_read(&this.std, &buf.filled()[start..], limit);
            buf.set_filled(start);
        }
    }
}

impl AsyncSeek for File {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        let inner = this.inner.get_mut();
        if inner.is_busy() {
            return Err(io::Error::other(
                "another operation of this file is under way: call `poll_complete` until it is \
                 ready, then `start_seek`",
            ));
        }
        need_runtime()?;
        let is_done = inline::can_seek(&this.std, &mut this.support, position)
            && inner.seek_inline(&this.std, position);
        if !is_done {
            inner.begin_seek(&this.std, position);
        }
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let inner = self.get_mut().inner.get_mut();
        if inner.has_seek_result() {
            ready!(budget::poll_proceed(cx)).spend();
        }
        if let Some(result) = inner.take_seek_result() {
            return Poll::Ready(result);
        }
        match ready!(inner.poll_job(cx))? {
            Some(JobResult::Seek(result)) => return Poll::Ready(result),
            Some(JobResult::Write(Err(error))) => inner.keep_error(error),
            _ => {}
        }
        Poll::Ready(Ok(inner.position))
    }
}

impl AsyncWrite for File {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_pieces(cx, [buf])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize, io::Error>> {
        self.get_mut().poll_write_pieces(cx, bufs.iter().map(|buf| &**buf))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Waits until the last write is done, and returns the error of a write that was not returned
    /// yet.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.get_mut().inner.get_mut().poll_flush(cx)
    }

    /// Flushes the file, which is closed by dropping it.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.poll_flush(cx)
    }
}

impl From<StdFile> for File {
    fn from(std: StdFile) -> Self {
        Self::from_std(std)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokio's type name, because Tokio's tests compare this output.
        f.debug_struct("tokio::fs::File").field("std", &self.std).finish()
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

    use super::{File, StdFile};

    impl From<OwnedFd> for File {
        fn from(fd: OwnedFd) -> Self {
            Self::from_std(StdFile::from(fd))
        }
    }

    impl AsRawFd for File {
        fn as_raw_fd(&self) -> RawFd {
            self.std.as_raw_fd()
        }
    }

    impl AsFd for File {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.std.as_fd()
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle, RawHandle};

    use super::{File, StdFile};

    impl From<OwnedHandle> for File {
        fn from(handle: OwnedHandle) -> Self {
            Self::from_std(StdFile::from(handle))
        }
    }

    impl AsRawHandle for File {
        fn as_raw_handle(&self) -> RawHandle {
            self.std.as_raw_handle()
        }
    }

    impl AsHandle for File {
        fn as_handle(&self) -> BorrowedHandle<'_> {
            self.std.as_handle()
        }
    }
}
