//! State of an open file: at most one job in progress, and the results that jobs leave behind.
//!
//! A job reads, writes, seeks or truncates on a blocking thread, with a buffer of its own, because
//! the future may be dropped at any time and the caller's memory with it. The next operation waits
//! for the job in progress, whichever operation started it, and takes over what the job leaves:
//! bytes that were read for a dropped future are returned next, and the error of a write is
//! returned once.
//!
//! # Protocol
//! There are no atomics of our own here. The state may be accessed only with the file by mutable
//! reference (`poll_read` and similar) or with its lock held (`set_len` and other methods that take
//! a shared reference); the job owns its buffer and an `Arc` of the file, and returns the buffer
//! through its join handle. That one exchange between a task and a thread is the one that every
//! task makes (`engine/work/task/state.rs`), and the models there cover it.
//!
//! - **Dropped file**: the join handle is detached. The bytes of a read are lost, a write is made.
//! - **Runtime that shuts down**: a job that no thread can be had for is dropped. For a read, its
//!   `Arc` of the file goes with it, and the next operation gets an error that says so. A write
//!   that was already reported as accepted to its caller is made by the thread that drops the job
//!   ([`WriteJob`]), and the next operation gets its result. If the job is dropped before
//!   its bytes were reported as accepted, because no thread can be started or the runtime shuts
//!   down, the write is not made: the caller gets an error instead.
//!
//! # Invariants
//! 1. While a job is in progress nothing else uses the file's cursor through this file.
//! 2. `unread` bytes were read beyond what was returned to callers, so the cursor is that many
//!    bytes ahead; a write or a seek must go back first.
//!
//! # Rejected
//! - Writing from several jobs at once: the bytes would have no order.
//! - Keeping only the kind of a write's error, as Tokio does: only the number distinguishes a full
//!   disk from a full quota.

#![forbid(unsafe_code)]

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    task::{Context, Poll, ready},
};

use super::{asyncify, error, inline, pending_writes::PendingWrite};
use crate::{
    io::ReadBuf,
    task::{JoinHandle, blocking::try_spawn_blocking, spawn_blocking, write_state::WriteState},
};

/// Lock that lets one operation at a time use a cursor that several files share. Threads that may
/// block hold it for one system call; a poll only tries to take it.
///
/// Used only for files with a cursor that the kernel locks, too (`inline::has_cursor`). A pipe, a
/// socket or a terminal has no such cursor, and a read that waits there must not keep a clone from
/// writing.
#[derive(Debug, Clone, Default)]
pub(super) struct CursorLock(Option<Arc<Mutex<()>>>);

impl CursorLock {
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Marks the cursor as shared, and returns the lock for the clone.
    pub(super) fn share(&mut self) -> Self {
        self.0.get_or_insert_default();
        self.clone()
    }

    fn lock(&self) -> Option<MutexGuard<'_, ()>> {
        // The lock guards no data, so a panic cannot have left any inconsistent.
        self.0
            .as_ref()
            .map(|cursor_lock| cursor_lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `f` if no other operation is using the cursor; returns `None` otherwise.
    #[inline]
    pub(super) fn try_with<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let Some(cursor_lock) = &self.0 else { return Some(f()) };
        let _guard = match cursor_lock.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(f())
    }
}

/// Buffer owned by the file: bytes that were read and not returned yet, or that are to be written.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Returns the number of bytes that were read and not returned yet.
    fn unread(&self) -> usize {
        self.end - self.start
    }

    fn copy_unread(&mut self, into: &mut ReadBuf<'_>) {
        let amount = self.unread().min(into.remaining());
        into.put_slice(&self.bytes[self.start..self.start + amount]);
        self.start += amount;
    }

    /// Discards the unread bytes, and returns the seek that moves the cursor back to the caller's
    /// position.
    fn rewind(&mut self) -> Option<SeekFrom> {
        let unread = self.unread();
        (self.start, self.end) = (0, 0);
        // A buffer has less than `i64::MAX` bytes.
        (unread > 0).then(|| SeekFrom::Current(-(unread as i64)))
    }

    /// Replaces the content with these bytes, all of them unread.
    fn set_unread(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// Reads once, appending to the unread bytes; at most `limit` bytes are unread afterwards.
    fn read(&mut self, mut file: &File, limit: usize) -> io::Result<()> {
        if self.bytes.len() < limit {
            self.bytes.resize(limit, 0);
        }
        loop {
            match file.read(&mut self.bytes[self.end..limit]) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                // Like the kernel, return what was read before an error; the next read meets the
                // error again.
                Err(_) if self.unread() > 0 => return Ok(()),
                result => return result.map(|count| self.end += count),
            }
        }
    }
}

/// The result of a job, by the kind of operation.
#[derive(Debug)]
pub(super) enum JobResult {
    Read(io::Result<()>),
    Write(io::Result<()>),
    Seek(io::Result<u64>),
    Truncate(io::Result<()>),
}

#[derive(Debug)]
enum State {
    Idle(Buffer),
    Busy(JoinHandle<(JobResult, Buffer)>),
}

/// The file that a job works on, and the lock of its cursor.
#[derive(Debug, Clone)]
pub(super) struct JobFile {
    pub(super) file: Arc<File>,
    cursor_lock: CursorLock,
}

impl JobFile {
    /// Waits until no other operation is using the cursor, then calls `f` with the file.
    fn with_cursor<T>(&self, f: impl FnOnce(&File) -> T) -> T {
        let _guard = self.cursor_lock.lock();
        f(&self.file)
    }
}

/// Moves the cursor back to the caller's position, if it is ahead.
fn seek_back(mut file: &File, back: Option<SeekFrom>) -> io::Result<()> {
    back.map_or(Ok(()), |back| file.seek(back).map(drop))
}

/// The state of a file.
#[derive(Debug)]
pub(super) struct Inner {
    state: State,
    /// Error of a write, to be returned by the next write or flush.
    error: Option<io::Error>,
    /// Position after the last seek.
    pub(super) position: u64,
    /// Result of an inline seek, to be returned by `poll_complete`.
    seek_result: Option<io::Result<u64>>,
    /// State of the current write. Each write has one of its own, because the job of an earlier one
    /// may still be queued if a user's hook panicked.
    write_state: Option<Arc<WriteState<io::Result<()>>>>,
    /// The file's inode number, determined by the first write.
    inode: Option<u64>,
    pub(super) cursor_lock: CursorLock,
}

impl Inner {
    pub(super) fn new(cursor_lock: CursorLock) -> Self {
        Self {
            state: State::Idle(Buffer::default()),
            error: None,
            position: 0,
            seek_result: None,
            write_state: None,
            inode: None,
            cursor_lock,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy(_))
    }

    /// Copies unread bytes into `into`, and returns true if there were any.
    pub(super) fn copy_unread(&mut self, into: &mut ReadBuf<'_>) -> bool {
        match &mut self.state {
            State::Idle(buffer) if buffer.unread() > 0 => {
                buffer.copy_unread(into);
                true
            }
            _ => false,
        }
    }

    /// Waits for the job in progress and returns its outcome; `None` if there is no job.
    pub(super) fn poll_job(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<JobResult>>> {
        let State::Busy(job) = &mut self.state else { return Poll::Ready(Ok(None)) };
        let ended = ready!(Pin::new(job).poll(cx));
        self.state = State::Idle(Buffer::default());
        let (result, buffer) = match ended {
            Ok(done) => done,
            Err(why) => {
                let write_state = self.write_state.as_ref().and_then(|state| state.take());
                let written = write_state.ok_or_else(|| error::job_lost(&why))?;
                (JobResult::Write(written), Buffer::default())
            }
        };
        self.state = State::Idle(buffer);
        if let JobResult::Seek(Ok(position)) = result {
            self.position = position;
        }
        Poll::Ready(Ok(Some(result)))
    }

    /// Waits until no write is in progress; returns its error, or that of an earlier write.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.seek_result = None;
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        match ready!(self.poll_job(cx))? {
            Some(JobResult::Write(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Waits until no job is in progress. An error is kept for the next write or flush.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_busy()
            && let Err(error) = ready!(self.poll_write_result(cx))
        {
            self.error.get_or_insert(error);
        }
        Poll::Ready(())
    }

    fn poll_write_result(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match ready!(self.poll_job(cx))? {
            Some(JobResult::Write(result)) => result,
            _ => Ok(()),
        })
    }

    /// Takes the error of an earlier write that was not returned yet.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    pub(super) fn keep_error(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// Takes the result of an inline seek that was not returned yet.
    pub(super) fn take_seek_result(&mut self) -> Option<io::Result<u64>> {
        self.seek_result.take()
    }

    /// Returns true if there is the result of an inline seek that was not returned yet.
    pub(super) fn has_seek_result(&self) -> bool {
        self.seek_result.is_some()
    }

    /// Returns the buffer, which must be here: the caller has made sure that no job is in progress.
    fn idle(&mut self) -> &mut Buffer {
        let State::Idle(buffer) = &mut self.state else {
            unreachable!("a job is waited for before the next")
        };
        buffer
    }

    /// Starts a job. No job may be in progress.
    ///
    /// # Panics
    /// If there is no runtime on this thread; nothing has changed then.
    #[track_caller]
    fn begin(
        &mut self,
        file: &Arc<File>,
        job: impl FnOnce(JobFile, Buffer) -> JoinHandle<(JobResult, Buffer)>,
    ) {
        // Only for the panic: a runtime that shuts down drops the job, which becomes an error
        // later.
        let _ = asyncify::need_runtime();
        self.seek_result = None;
        let target = JobFile { file: file.clone(), cursor_lock: self.cursor_lock.clone() };
        let buffer = std::mem::take(self.idle());
        self.state = State::Busy(job(target, buffer));
    }

    /// Starts a job that reads up to `limit` bytes in all, of which `first` were already read from
    /// the page cache.
    pub(super) fn begin_read(&mut self, file: &Arc<File>, first: &[u8], limit: usize) {
        self.begin(file, |target, mut buffer| {
            buffer.set_unread(first);
            let read_job = ReadJob(Some((target, buffer)));
            spawn_blocking(move || read_job.read(limit))
        });
    }

    /// Starts a job that writes the first `limit` bytes of `pieces`, and returns the number of
    /// bytes accepted.
    ///
    /// # Errors
    /// If the runtime has shut down, or no thread can be started: nothing is written then.
    pub(super) fn begin_write<'a>(
        &mut self,
        file: &Arc<File>,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        limit: usize,
    ) -> io::Result<usize> {
        asyncify::need_runtime()?;
        self.seek_result = None;
        let write_state = Arc::new(WriteState::new());
        self.write_state = Some(write_state.clone());
        if self.inode.is_none() {
            self.inode = inline::inode(file);
        }
        let pending_write = self.inode.map(PendingWrite::new);
        let target = JobFile { file: file.clone(), cursor_lock: self.cursor_lock.clone() };
        let mut buffer = std::mem::take(self.idle());
        let back = buffer.rewind();
        buffer.bytes.clear();
        for piece in pieces {
            let piece = &piece[..piece.len().min(limit - buffer.bytes.len())];
            buffer.bytes.extend_from_slice(piece);
        }
        let amount = buffer.bytes.len();
        let write_job = WriteJob {
            parts: Some((target, buffer, back)),
            write_state: write_state.clone(),
            _pending_write: pending_write,
        };
        match try_spawn_blocking(move || write_job.write()) {
            Some(job) if write_state.accept() => {
                self.state = State::Busy(job);
                Ok(amount)
            }
            _ => Err(error::job_failed()),
        }
    }

    pub(super) fn begin_seek(&mut self, file: &Arc<File>, to: SeekFrom) {
        self.begin(file, |target, mut buffer| {
            let back = seek_back_before(buffer.rewind(), to);
            spawn_blocking(move || {
                let result = target
                    .with_cursor(|mut file| seek_back(file, back).and_then(|()| file.seek(to)));
                (JobResult::Seek(result), buffer)
            })
        });
    }

    /// Seeks inline; the next `poll_complete` returns the result. Returns false, with nothing
    /// changed, if another operation is using the cursor.
    pub(super) fn seek_inline(&mut self, file: &File, to: SeekFrom) -> bool {
        let cursor_lock = self.cursor_lock.clone();
        let result = cursor_lock.try_with(|| {
            let back = seek_back_before(self.idle().rewind(), to);
            let mut cursor = file;
            seek_back(file, back).and_then(|()| cursor.seek(to))
        });
        if let Some(Ok(position)) = result {
            self.position = position;
        }
        let done = result.is_some();
        self.seek_result = result;
        done
    }

    pub(super) fn begin_truncate(&mut self, file: &Arc<File>, size: u64) {
        self.begin(file, |target, mut buffer| {
            let back = buffer.rewind();
            spawn_blocking(move || {
                let returned = back
                    .map_or(Ok(()), |back| target.with_cursor(|file| seek_back(file, Some(back))));
                // Truncation does not use the cursor.
                let result = returned.and_then(|()| target.file.set_len(size));
                (JobResult::Truncate(result), buffer)
            })
        });
    }

    /// Moves the cursor back to the caller's position. Bytes read from a pipe cannot be given back.
    pub(super) fn restore_cursor(&mut self, file: &File) {
        if let State::Idle(buffer) = &mut self.state {
            // A file that cannot seek has no cursor to set.
            let _ = seek_back(file, buffer.rewind());
        }
    }
}

/// Returns the seek that must precede a seek to `to`: only a relative seek depends on the current
/// position.
fn seek_back_before(back: Option<SeekFrom>, to: SeekFrom) -> Option<SeekFrom> {
    back.filter(|_| matches!(to, SeekFrom::Current(_)))
}

/// Read to be made by a blocking thread. If its job is dropped before it ran, the cursor goes back
/// to before the bytes that were read from the cache, because no caller has got them.
struct ReadJob(Option<(JobFile, Buffer)>);

impl ReadJob {
    fn read(mut self, limit: usize) -> (JobResult, Buffer) {
        let (target, mut buffer) = self.0.take().expect("a read job runs once");
        let result = target.with_cursor(|file| buffer.read(file, limit));
        (JobResult::Read(result), buffer)
    }
}

impl Drop for ReadJob {
    fn drop(&mut self) {
        if let Some((target, mut buffer)) = self.0.take() {
            // A regular file that was read can seek; the operation fails in any case.
            let _ = seek_back(&target.file, buffer.rewind());
        }
    }
}

/// Bytes to be written by a job. Once they were reported as accepted they are written, even if the
/// runtime shuts down before the job ran: the thread that drops the job writes them.
struct WriteJob {
    parts: Option<(JobFile, Buffer, Option<SeekFrom>)>,
    write_state: Arc<WriteState<io::Result<()>>>,
    /// Counts the write as pending until its bytes are written.
    _pending_write: Option<PendingWrite>,
}

impl WriteJob {
    fn write(mut self) -> (JobResult, Buffer) {
        let (target, mut buffer, back) = self.parts.take().expect("a write job runs once");
        let result = write(&target, &buffer, back);
        (buffer.start, buffer.end) = (0, 0);
        (JobResult::Write(result), buffer)
    }
}

impl Drop for WriteJob {
    fn drop(&mut self) {
        let Some((target, buffer, back)) = self.parts.take() else { return };
        // Bytes that were read ahead are discarded, so the cursor goes back to before them. A file
        // that cannot seek has no cursor to set.
        let undo = || drop(seek_back(&target.file, back));
        if !self.write_state.refuse(undo) {
            // The job ends after this, so the next operation finds the result.
            self.write_state.finish(write(&target, &buffer, back));
        }
    }
}

fn write(target: &JobFile, buffer: &Buffer, back: Option<SeekFrom>) -> io::Result<()> {
    target.with_cursor(|mut file| {
        seek_back(file, back)?;
        file.write_all(&buffer.bytes)
    })
}
