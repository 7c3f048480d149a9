//! An open file.
//!
//! What the kernel can answer from its memory is done where it is asked for (`inline.rs`),
//! straight into the caller's buffer. The rest are jobs on threads for blocking work, one at
//! a time for each file (`state.rs`).
//!
//! # Shared cursors
//! `try_clone` makes a second file with the same cursor, and the kernel locks the cursor of
//! a file during a read or a write. So a read that is tried at once could sleep behind a
//! job of the clone. Both therefore share a gate: a job holds it during its system call, and
//! who may not wait only tries it, and becomes a job if it is shut.
//!
//! # Checked by
//! `clones_have_one_cursor`, `clones_that_write_at_once_lose_no_byte`,
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
    inline::{self, Nature},
    offload::{need_runtime, offload},
    state::{Gate, Inner, Outcome},
};
use crate::{
    engine::work::task::budget,
    io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf},
    sync::Mutex,
};

/// Bytes per job at most: Tokio's figure. It bounds what a file holds, and how long one job
/// takes.
const MOST: usize = 2 * 1024 * 1024;

/// A reference to an open file on the file system.
///
/// Reading, writing and seeking are by the traits [`AsyncRead`], [`AsyncWrite`] and
/// [`AsyncSeek`], and mostly through their extensions in [`io`](crate::io). Reads and writes
/// at an offset, with buffers that are given away, are the methods that end in `_at_owned`.
///
/// A read takes what lies in the page cache at once (Linux), at most 128 KiB of it; what has
/// to be fetched is read by a thread for blocking work. A write hands its bytes to such a
/// thread and answers: they are written in their order, whether or not the file is dropped,
/// and also if the runtime ends. **An error of a write is told to the next write or flush**, so
/// call [`flush`](crate::io::AsyncWriteExt::flush) after the last: dropping a file says
/// nothing, and does not wait. Neither writes to the disk: that is
/// [`sync_all`](Self::sync_all).
///
/// # Cancel safety
///
/// A read whose future is dropped loses nothing: what it brings is given to the next read. A
/// `write` whose future is dropped before it was ready has written nothing; one that was ready
/// goes on. A `seek` that is dropped may have been made.
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
    /// `Unknown` until somebody reads or seeks.
    nature: Nature,
    /// What it is then for those who have it only by reference.
    looked: OnceLock<Nature>,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// If it does not exist, may not be read, and so on; the error names the path. A directory
    /// can be opened, and fails to be read, on Unix.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let missing = blitz_io::fs::File::open("/no/such/file").await.unwrap_err();
    /// assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    /// assert!(missing.to_string().contains("/no/such/file"));
    /// # });
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options().read(true).open(path).await
    }

    /// Opens a file for writing: a new one, or one whose content is cut off.
    ///
    /// # Errors
    ///
    /// If that is not possible; the error names the path.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the file may have been created and cut off, or may be in a moment.
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

    /// Opens a new file for reading and writing.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is one; and others. The error names the path.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the file may have been created, or may be in a moment.
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

    /// Options for opening a file; none is set.
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

    /// Takes over a file of std's.
    ///
    /// A file in non-blocking mode answers `WouldBlock` as it would to std: this does not wait
    /// for readiness.
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
        Self::with_nature(std, Nature::Unknown)
    }

    pub(super) fn with_nature(std: StdFile, nature: Nature) -> Self {
        Self {
            std: Arc::new(std),
            inner: Mutex::new(Inner::new(Gate::default())),
            max_buf_size: MOST,
            nature,
            looked: OnceLock::new(),
        }
    }

    pub(super) fn std(&self) -> &Arc<StdFile> {
        &self.std
    }

    /// What it is; somebody looks if nobody has.
    pub(super) fn settled_nature(&self) -> Nature {
        match self.nature {
            Nature::Unknown => *self.looked.get_or_init(|| inline::look_at(&self.std)),
            known => known,
        }
    }

    /// Waits until no operation of this file is under way. An error of a write is kept.
    async fn settle(&self) {
        let mut inner = self.inner.lock().await;
        poll_fn(|cx| inner.poll_idle(cx)).await;
    }

    /// Waits until all writes so far are done, and has the system write content and metadata
    /// to the disk.
    ///
    /// An error of a write is not told here but by the next write or flush: flush first.
    ///
    /// # Errors
    ///
    /// What the disk says.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped once begun, the system goes on with it.
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
        self.settle().await;
        let std = self.std.clone();
        offload(move || std.sync_all()).await
    }

    /// As [`sync_all`](Self::sync_all), but of the metadata only what is needed to read the
    /// content again.
    ///
    /// # Errors
    ///
    /// What the disk says.
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
        self.settle().await;
        let std = self.std.clone();
        offload(move || std.sync_data()).await
    }

    /// Cuts the file off at `size`, or makes it as long, with zeros. Waits for writes that are
    /// under way first. The cursor stays where it is.
    ///
    /// # Errors
    ///
    /// If the file was not opened for writing, or the size is refused.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped once begun, the file is still cut.
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
        inner.begin_cut(&self.std, size);
        match poll_fn(|cx| inner.poll_outcome(cx)).await? {
            Some(Outcome::Cut(result)) => result,
            _ => unreachable!("we have the lock, and began to cut"),
        }
    }

    /// What the system knows about the file. Writes that are under way are not waited for.
    ///
    /// # Errors
    ///
    /// What the system says.
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
        if self.nature == Nature::Local {
            need_runtime();
            poll_fn(budget::proceed).await.spend();
            return self.std.metadata();
        }
        let std = self.std.clone();
        offload(move || std.metadata()).await
    }

    /// A second file with the same descriptor underneath: both have one cursor. Waits for what
    /// is under way here first.
    ///
    /// # Errors
    ///
    /// If the process has no descriptor left.
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
        // A number for the same file: nobody is waited for.
        let std = self.std.try_clone()?;
        Ok(Self {
            std: Arc::new(std),
            inner: Mutex::new(Inner::new(inner.gate.share())),
            max_buf_size: self.max_buf_size,
            nature: self.nature,
            looked: OnceLock::new(),
        })
    }

    /// Gives the file to std, when nothing is under way any more. Its cursor is where this
    /// file's reader was.
    ///
    /// An error of a write that was not told is lost: flush first.
    ///
    /// # Panics
    ///
    /// If a future of another operation (`sync_all`, a read at an offset) was dropped, its
    /// thread is still at it, and the process has no descriptor left for a second number of
    /// the file.
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
        inner.settle_cursor(&self.std);
        Arc::try_unwrap(self.std).unwrap_or_else(|shared| {
            shared.try_clone().expect("a second number for a file that a thread is still using")
        })
    }

    /// Gives the file to std, if nothing is under way.
    ///
    /// # Errors
    ///
    /// The file itself, if an operation is under way: await [`into_std`](Self::into_std), or
    /// flush.
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
                inner.settle_cursor(&std);
                Ok(std)
            }
            Err(shared) => {
                self.std = shared;
                Err(self)
            }
        }
    }

    /// Changes who may do what with the file.
    ///
    /// # Errors
    ///
    /// If it is not ours to change.
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
        offload(move || std.set_permissions(perm)).await
    }

    /// Changes when the file was last read and written. Waits for what is under way, so that
    /// it does not change them again.
    ///
    /// # Errors
    ///
    /// If they are not ours to change.
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
        self.settle().await;
        let std = self.std.clone();
        offload(move || std.set_times(times.into_std())).await
    }

    /// Changes when the file was last written.
    ///
    /// # Errors
    ///
    /// If it is not ours to change.
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

    /// Sets how many bytes a read or a write moves at the most; 2 MiB unless set.
    ///
    /// # Panics
    ///
    /// If it is zero.
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

    /// How many bytes a read or a write moves at the most.
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

    /// Takes what lies in the cache.
    #[inline]
    fn read_at_once(&mut self, into: &mut ReadBuf<'_>) -> Option<usize> {
        let (std, nature, most) = (&self.std, &mut self.nature, self.max_buf_size);
        if *nature == Nature::Slow {
            return None;
        }
        self.inner.get_mut().gate.if_free(|| inline::read(std, nature, into, most))
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
        if let Some(Outcome::Wrote(Err(error))) = ready!(inner.poll_outcome(cx))? {
            return Poll::Ready(Err(error));
        }
        let unit = ready!(budget::proceed(cx));
        let amount = inner.begin_write(&self.std, pieces, self.max_buf_size)?;
        unit.spend();
        Poll::Ready(Ok(amount))
    }
}

impl AsyncRead for File {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match ready!(this.inner.get_mut().poll_outcome(cx))? {
                Some(Outcome::Read(Err(error))) => return Poll::Ready(Err(error)),
                Some(Outcome::Read(Ok(()))) => {
                    // Nothing is the end, also if it was another who asked.
                    this.inner.get_mut().hand_out(buf);
                    return Poll::Ready(Ok(()));
                }
                // Whoever writes or flushes next is told.
                Some(Outcome::Wrote(Err(error))) => this.inner.get_mut().keep_error(error),
                _ => {}
            }
            if buf.remaining() == 0 || this.inner.get_mut().hand_out(buf) {
                return Poll::Ready(Ok(()));
            }
            let unit = ready!(budget::proceed(cx));
            need_runtime();
            if let Some(count) = this.read_at_once(buf) {
                // What a seek said before it is past.
                drop(this.inner.get_mut().take_sought());
                unit.spend();
                budget::charge(count);
                return Poll::Ready(Ok(()));
            }
            let most = buf.remaining().min(this.max_buf_size);
            this.inner.get_mut().begin_read(&this.std, most);
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
        need_runtime();
        let at_once = inline::can_seek(&this.std, &mut this.nature, position)
            && inner.seek_at_once(&this.std, position);
        if !at_once {
            inner.begin_seek(&this.std, position);
        }
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let inner = self.get_mut().inner.get_mut();
        if inner.has_sought() {
            ready!(budget::proceed(cx)).spend();
        }
        if let Some(result) = inner.take_sought() {
            return Poll::Ready(result);
        }
        match ready!(inner.poll_outcome(cx))? {
            Some(Outcome::Sought(result)) => return Poll::Ready(result),
            Some(Outcome::Wrote(Err(error))) => inner.keep_error(error),
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

    /// Waits until the last write is done, and tells of its error.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.get_mut().inner.get_mut().poll_flush(cx)
    }

    /// Flushes: a file is closed by dropping it.
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
        // Tokio's name: its tests read it.
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
