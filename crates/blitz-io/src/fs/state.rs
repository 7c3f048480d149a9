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
//! - **Runtime that shuts down**: a job that no thread can be had for is dropped. For a read, its `Arc` of
//!   the file goes with it, and the next operation gets an error that says so. A write that was
//!   already reported as accepted to its caller is made by the thread that drops the job
//!   ([`Chunk`]), and the next operation gets its result. If the job is dropped before
//!   its bytes were reported as accepted, because no thread can be started or the runtime shuts
//!   down, the write is not made: the caller gets an error instead.
//!
//! # Invariants
//! 1. While a job is in progress nothing else uses the file's cursor through this file.
//! 2. `held` bytes were read beyond what was returned to callers, so the cursor is that many bytes
//!    ahead; a write or a seek must go back first.
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

use super::{error, inline, offload, unwritten::Unwritten};
use crate::{
    io::ReadBuf,
    task::{JoinHandle, blocking::try_spawn_blocking, spawn_blocking},
};

/// Lock that lets one operation at a time use a cursor that several files share. Threads that may
/// block hold it for one system call; a poll only tries to take it.
///
/// Used only for files with a cursor that the kernel locks, too (`inline::has_cursor`). A pipe, a
/// socket or a terminal has no such cursor, and a read that waits there must not keep a clone from
/// writing.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Option<Arc<Mutex<()>>>);

impl Gate {
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Marks the cursor as shared, and returns the gate for the clone.
    pub(super) fn share(&mut self) -> Self {
        self.0.get_or_insert_default();
        self.clone()
    }

    fn wait(&self) -> Option<MutexGuard<'_, ()>> {
        // The lock guards no data, so a panic cannot have left any inconsistent.
        self.0.as_ref().map(|gate| gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `f` if no other operation is using the cursor; returns `None` otherwise.
    #[inline]
    pub(super) fn if_free<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let Some(gate) = &self.0 else { return Some(f()) };
        let _held = match gate.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
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
    fn held(&self) -> usize {
        self.end - self.start
    }

    fn hand_out(&mut self, into: &mut ReadBuf<'_>) {
        let amount = self.held().min(into.remaining());
        into.put_slice(&self.bytes[self.start..self.start + amount]);
        self.start += amount;
    }

    /// Discards the held bytes, and returns the seek that moves the cursor back to the caller's
    /// position.
    fn rewind(&mut self) -> Option<SeekFrom> {
        let held = self.held();
        (self.start, self.end) = (0, 0);
        // A buffer has less than `i64::MAX` bytes.
        (held > 0).then(|| SeekFrom::Current(-(held as i64)))
    }

    /// Replaces the content with these bytes, all of them held.
    fn hold(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// Reads once, appending to the held bytes; at most `most` bytes are held afterwards.
    fn read(&mut self, mut file: &File, most: usize) -> io::Result<()> {
        if self.bytes.len() < most {
            self.bytes.resize(most, 0);
        }
        loop {
            match file.read(&mut self.bytes[self.end..most]) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                // Like the kernel, return what was read before an error; the next read meets the
                // error again.
                Err(_) if self.held() > 0 => return Ok(()),
                result => return result.map(|count| self.end += count),
            }
        }
    }
}

/// The result of a job, by the kind of operation.
#[derive(Debug)]
pub(super) enum Outcome {
    Read(io::Result<()>),
    Wrote(io::Result<()>),
    Sought(io::Result<u64>),
    Cut(io::Result<()>),
}

#[derive(Debug)]
enum State {
    Idle(Buffer),
    Busy(JoinHandle<(Outcome, Buffer)>),
}

/// The file that a job works on, and the gate of its cursor.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) file: Arc<File>,
    gate: Gate,
}

impl Target {
    /// Waits until no other operation is using the cursor, then calls `f` with the file.
    fn at_cursor<T>(&self, f: impl FnOnce(&File) -> T) -> T {
        let _held = self.gate.wait();
        f(&self.file)
    }
}

/// Moves the cursor back to the caller's position, if it is ahead.
fn go_back(mut file: &File, back: Option<SeekFrom>) -> io::Result<()> {
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
    sought: Option<io::Result<u64>>,
    /// Fate of the current write; created by the first write.
    late: Option<Late>,
    /// The file's inode number, determined by the first write.
    inode: Option<u64>,
    pub(super) gate: Gate,
}

impl Inner {
    pub(super) fn new(gate: Gate) -> Self {
        Self {
            state: State::Idle(Buffer::default()),
            error: None,
            position: 0,
            sought: None,
            late: None,
            inode: None,
            gate,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy(_))
    }

    /// Copies held bytes into `into`, and returns true if there were any.
    pub(super) fn hand_out(&mut self, into: &mut ReadBuf<'_>) -> bool {
        match &mut self.state {
            State::Idle(buffer) if buffer.held() > 0 => {
                buffer.hand_out(into);
                true
            }
            _ => false,
        }
    }

    /// Waits for the job in progress and returns its outcome; `None` if there is no job.
    pub(super) fn poll_outcome(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Outcome>>> {
        let State::Busy(job) = &mut self.state else { return Poll::Ready(Ok(None)) };
        let ended = ready!(Pin::new(job).poll(cx));
        self.state = State::Idle(Buffer::default());
        let (outcome, buffer) = match ended {
            Ok(done) => done,
            Err(why) => {
                let late = self.late.as_ref().and_then(Fate::take_result);
                let result = late.ok_or_else(|| error::lost(&why))?;
                (Outcome::Wrote(result), Buffer::default())
            }
        };
        self.state = State::Idle(buffer);
        if let Outcome::Sought(Ok(position)) = outcome {
            self.position = position;
        }
        Poll::Ready(Ok(Some(outcome)))
    }

    /// Waits until no write is in progress; returns its error, or that of an earlier write.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sought = None;
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        match ready!(self.poll_outcome(cx))? {
            Some(Outcome::Wrote(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Waits until no job is in progress. An error is kept for the next write or flush.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_busy()
            && let Err(error) = ready!(self.poll_wrote(cx))
        {
            self.error.get_or_insert(error);
        }
        Poll::Ready(())
    }

    fn poll_wrote(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match ready!(self.poll_outcome(cx))? {
            Some(Outcome::Wrote(result)) => result,
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
    pub(super) fn take_sought(&mut self) -> Option<io::Result<u64>> {
        self.sought.take()
    }

    /// Returns true if there is the result of an inline seek that was not returned yet.
    pub(super) fn has_sought(&self) -> bool {
        self.sought.is_some()
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
        job: impl FnOnce(Target, Buffer) -> JoinHandle<(Outcome, Buffer)>,
    ) {
        // Only for the panic: a runtime that shuts down drops the job, which becomes an error
        // later.
        let _ = offload::need_runtime();
        self.sought = None;
        let target = Target { file: file.clone(), gate: self.gate.clone() };
        let buffer = std::mem::take(self.idle());
        self.state = State::Busy(job(target, buffer));
    }

    /// Starts a job that reads up to `most` bytes in all, of which `first` were already read from
    /// the page cache.
    pub(super) fn begin_read(&mut self, file: &Arc<File>, first: &[u8], most: usize) {
        self.begin(file, |target, mut buffer| {
            buffer.hold(first);
            let fetch = Fetch(Some((target, buffer)));
            spawn_blocking(move || fetch.read(most))
        });
    }

    /// Starts a job that writes the first `most` bytes of `pieces`, and returns the number of bytes
    /// accepted.
    ///
    /// # Errors
    /// If the runtime has shut down, or no thread can be started: nothing is written then.
    pub(super) fn begin_write<'a>(
        &mut self,
        file: &Arc<File>,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        most: usize,
    ) -> io::Result<usize> {
        offload::need_runtime()?;
        self.sought = None;
        let late = self.late.get_or_insert_default().clone();
        *lock(&late) = Fate::Offered;
        if self.inode.is_none() {
            self.inode = inline::inode(file);
        }
        let unwritten = self.inode.map(Unwritten::new);
        let target = Target { file: file.clone(), gate: self.gate.clone() };
        let mut buffer = std::mem::take(self.idle());
        let back = buffer.rewind();
        buffer.bytes.clear();
        for piece in pieces {
            let piece = &piece[..piece.len().min(most - buffer.bytes.len())];
            buffer.bytes.extend_from_slice(piece);
        }
        let amount = buffer.bytes.len();
        let chunk = Chunk {
            parts: Some((target, buffer, back)),
            late: late.clone(),
            _unwritten: unwritten,
        };
        match try_spawn_blocking(move || chunk.write()) {
            Some(job) if Fate::accept(&late) => {
                self.state = State::Busy(job);
                Ok(amount)
            }
            _ => Err(error::ended()),
        }
    }

    pub(super) fn begin_seek(&mut self, file: &Arc<File>, to: SeekFrom) {
        self.begin(file, |target, mut buffer| {
            let back = back_before(buffer.rewind(), to);
            spawn_blocking(move || {
                let result =
                    target.at_cursor(|mut file| go_back(file, back).and_then(|()| file.seek(to)));
                (Outcome::Sought(result), buffer)
            })
        });
    }

    /// Seeks inline; the next `poll_complete` returns the result. Returns false, with nothing
    /// changed, if another operation is using the cursor.
    pub(super) fn seek_at_once(&mut self, file: &File, to: SeekFrom) -> bool {
        let gate = self.gate.clone();
        let result = gate.if_free(|| {
            let back = back_before(self.idle().rewind(), to);
            let mut cursor = file;
            go_back(file, back).and_then(|()| cursor.seek(to))
        });
        if let Some(Ok(position)) = result {
            self.position = position;
        }
        let done = result.is_some();
        self.sought = result;
        done
    }

    pub(super) fn begin_cut(&mut self, file: &Arc<File>, size: u64) {
        self.begin(file, |target, mut buffer| {
            let back = buffer.rewind();
            spawn_blocking(move || {
                let returned =
                    back.map_or(Ok(()), |back| target.at_cursor(|file| go_back(file, Some(back))));
                // Truncation does not use the cursor.
                let result = returned.and_then(|()| target.file.set_len(size));
                (Outcome::Cut(result), buffer)
            })
        });
    }

    /// Moves the cursor back to the caller's position. Bytes read from a pipe cannot be given back.
    pub(super) fn settle_cursor(&mut self, file: &File) {
        if let State::Idle(buffer) = &mut self.state {
            // A file that cannot seek has no cursor to set.
            let _ = go_back(file, buffer.rewind());
        }
    }
}

/// Returns the seek that must precede a seek to `to`: only a relative seek depends on the current
/// position.
fn back_before(back: Option<SeekFrom>, to: SeekFrom) -> Option<SeekFrom> {
    back.filter(|_| matches!(to, SeekFrom::Current(_)))
}

/// Read to be made by a blocking thread. If its job is dropped before it ran, the cursor goes back
/// to before the bytes that were read from the cache, because no caller has got them.
struct Fetch(Option<(Target, Buffer)>);

impl Fetch {
    fn read(mut self, most: usize) -> (Outcome, Buffer) {
        let (target, mut buffer) = self.0.take().expect("a fetch reads once");
        let result = target.at_cursor(|file| buffer.read(file, most));
        (Outcome::Read(result), buffer)
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if let Some((target, mut buffer)) = self.0.take() {
            // A regular file that was read can seek; the operation fails in any case.
            let _ = go_back(&target.file, buffer.rewind());
        }
    }
}

/// State of a write, which decides what happens if its job is dropped before it ran. The lock
/// orders the caller, which is about to report the bytes as accepted, and the thread that drops the
/// job.
#[derive(Debug, Default)]
enum Fate {
    /// Nothing was reported to the caller yet: a job that is dropped writes nothing.
    #[default]
    Offered,
    /// The job was dropped while `Offered`: the caller gets an error.
    Refused,
    /// The bytes were reported as accepted: a job that is dropped writes them.
    Accepted,
    /// A job that was dropped has written the bytes, with this result.
    Done(io::Result<()>),
}

type Late = Arc<Mutex<Fate>>;

fn lock(late: &Late) -> MutexGuard<'_, Fate> {
    // A panic leaves a fate as it was before or after one step, so it is consistent.
    late.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fate {
    /// Accepts the write, so that its bytes are written in any case from now on. Returns false if
    /// the job was already dropped.
    #[must_use]
    fn accept(late: &Late) -> bool {
        let mut fate = lock(late);
        let accepted = !matches!(*fate, Self::Refused);
        if accepted {
            *fate = Self::Accepted;
        }
        accepted
    }

    fn take_result(late: &Late) -> Option<io::Result<()>> {
        match std::mem::take(&mut *lock(late)) {
            Self::Done(result) => Some(result),
            _ => None,
        }
    }
}

/// Bytes to be written by a job. Once they were reported as accepted they are written, even if the
/// runtime shuts down before the job ran: the thread that drops the job writes them.
struct Chunk {
    parts: Option<(Target, Buffer, Option<SeekFrom>)>,
    late: Late,
    /// Counts the write as pending until its bytes are written.
    _unwritten: Option<Unwritten>,
}

impl Chunk {
    fn write(mut self) -> (Outcome, Buffer) {
        let (target, mut buffer, back) = self.parts.take().expect("a chunk is written once");
        let result = write(&target, &buffer, back);
        (buffer.start, buffer.end) = (0, 0);
        (Outcome::Wrote(result), buffer)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Some((target, buffer, back)) = self.parts.take() else { return };
        {
            let mut fate = lock(&self.late);
            if matches!(*fate, Fate::Offered) {
                *fate = Fate::Refused;
                // Bytes that were read ahead are no longer held, so the cursor goes back to before
                // them. A file that cannot seek has no cursor to set.
                let _ = go_back(&target.file, back);
                return;
            }
        }
        let result = write(&target, &buffer, back);
        // The job ends after this, so the next operation finds the result.
        *lock(&self.late) = Fate::Done(result);
    }
}

fn write(target: &Target, buffer: &Buffer, back: Option<SeekFrom>) -> io::Result<()> {
    target.at_cursor(|mut file| {
        go_back(file, back)?;
        file.write_all(&buffer.bytes)
    })
}
