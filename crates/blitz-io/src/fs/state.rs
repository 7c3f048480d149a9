//! What is under way for a file: one job at the most, and what it leaves.
//!
//! A job reads, writes, seeks or cuts on a thread for blocking work, with a buffer of its
//! own: its future may be dropped at any moment, and the caller's memory with it. The next
//! operation waits for the job that is under way, whoever began it, and takes up what it
//! leaves: bytes that were read for somebody who has gone are handed out next, a write that
//! failed is told of once.
//!
//! # Protocol
//! There are no atomics of our own here. The state belongs to whoever has the file mutably
//! (`poll_read` and its like) or holds its lock (`set_len` and other methods by reference);
//! the job owns its buffer and a share of the file, and gives the buffer back through its
//! join handle. That one exchange, task against thread, is the one of every task
//! (`engine/work/task/state.rs`), and its models are the models of this.
//!
//! - **Dropped file**: the handle is detached. A read's bytes are lost, a write is made.
//! - **Runtime that ends**: a job that did not get its turn is dropped. A read's share of the
//!   file goes with it; a write is made by whoever drops it ([`Chunk`]): its caller was told
//!   that the bytes are taken. The next operation gets an error that says so.
//!
//! # Invariants
//! 1. While a job is under way nothing else uses the file's cursor through this file.
//! 2. `held` bytes were read past what was handed out, so the cursor is that much ahead; a
//!    write or a seek goes back first.
//!
//! # Rejected
//! - Writing from several jobs at once: the bytes would have no order.
//! - Keeping only the kind of a write's error, as Tokio does: the number is what tells a full
//!   disk from a full quota.

#![forbid(unsafe_code)]

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    task::{Context, Poll, ready},
};

use super::{error, offload};
use crate::{
    io::ReadBuf,
    task::{JoinHandle, spawn_blocking},
};

/// Who may use a cursor that several files share. Held for one system call, by threads that
/// may wait for it; who may not wait only tries.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Option<Arc<Mutex<()>>>);

impl Gate {
    /// The cursor is shared from now on.
    pub(super) fn share(&mut self) -> Self {
        self.0.get_or_insert_default();
        self.clone()
    }

    fn wait(&self) -> Option<MutexGuard<'_, ()>> {
        // There is nothing behind it that a panic could have left undone.
        self.0.as_ref().map(|gate| gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `f` if nobody else is at the cursor.
    #[inline]
    pub(super) fn if_free<T>(&self, f: impl FnOnce() -> Option<T>) -> Option<T> {
        let Some(gate) = &self.0 else { return f() };
        let _held = match gate.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        f()
    }
}

/// A buffer of the file's own: bytes that were read and not handed out, or are to be written.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// How many bytes were read and not handed out.
    fn held(&self) -> usize {
        self.end - self.start
    }

    fn hand_out(&mut self, into: &mut ReadBuf<'_>) {
        let amount = self.held().min(into.remaining());
        into.put_slice(&self.bytes[self.start..self.start + amount]);
        self.start += amount;
    }

    /// Forgets what is held. The answer is how to go back to where the caller is.
    fn rewind(&mut self) -> Option<SeekFrom> {
        let held = self.held();
        (self.start, self.end) = (0, 0);
        // A buffer has less than `i64` counts.
        (held > 0).then(|| SeekFrom::Current(-(held as i64)))
    }

    /// Reads once, `most` bytes.
    fn read(&mut self, mut file: &File, most: usize) -> io::Result<()> {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() < most {
            self.bytes.resize(most, 0);
        }
        loop {
            match file.read(&mut self.bytes[..most]) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(|count| self.end = count),
            }
        }
    }
}

/// What came of a job.
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

/// What a job works with besides its buffer.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) file: Arc<File>,
    gate: Gate,
}

impl Target {
    /// Calls `f` with the file, when nobody else is at its cursor.
    fn at_cursor<T>(&self, f: impl FnOnce(&File) -> T) -> T {
        let _held = self.gate.wait();
        f(&self.file)
    }
}

/// Goes where the caller is, if the cursor is ahead of it.
fn go_back(mut file: &File, back: Option<SeekFrom>) -> io::Result<()> {
    back.map_or(Ok(()), |back| file.seek(back).map(drop))
}

/// The state of a file.
#[derive(Debug)]
pub(super) struct Inner {
    state: State,
    /// Of a write, to be told to whoever writes or flushes next.
    error: Option<io::Error>,
    /// Where the last seek led to.
    pub(super) position: u64,
    /// A seek that was made at once, to be told of.
    sought: Option<io::Result<u64>>,
    pub(super) gate: Gate,
}

impl Inner {
    pub(super) fn new(gate: Gate) -> Self {
        Self { state: State::Idle(Buffer::default()), error: None, position: 0, sought: None, gate }
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy(_))
    }

    /// Bytes that were read before are handed out, if there are any.
    pub(super) fn hand_out(&mut self, into: &mut ReadBuf<'_>) -> bool {
        match &mut self.state {
            State::Idle(buffer) if buffer.held() > 0 => {
                buffer.hand_out(into);
                true
            }
            _ => false,
        }
    }

    /// Waits for the job that is under way. `None` if none is.
    pub(super) fn poll_outcome(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Outcome>>> {
        let State::Busy(job) = &mut self.state else { return Poll::Ready(Ok(None)) };
        let ended = ready!(Pin::new(job).poll(cx));
        self.state = State::Idle(Buffer::default());
        let (outcome, buffer) = ended.map_err(|why| error::lost(&why))?;
        self.state = State::Idle(buffer);
        if let Outcome::Sought(Ok(position)) = outcome {
            self.position = position;
        }
        Poll::Ready(Ok(Some(outcome)))
    }

    /// Waits until no write is under way; answers with its error, or that of an earlier one.
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

    /// Waits until nothing is under way. An error is kept for the next write or flush.
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

    /// The error of an earlier write, if it was not told.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    pub(super) fn keep_error(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// The answer of a seek that was made at once.
    pub(super) fn take_sought(&mut self) -> Option<io::Result<u64>> {
        self.sought.take()
    }

    /// Whether a seek was made at once that was not told of.
    pub(super) fn has_sought(&self) -> bool {
        self.sought.is_some()
    }

    /// The buffer, which is there: nothing is under way.
    fn idle(&mut self) -> &mut Buffer {
        let State::Idle(buffer) = &mut self.state else {
            unreachable!("a job is waited for before the next")
        };
        buffer
    }

    /// Begins a job, when nothing is under way.
    ///
    /// # Panics
    /// Without a runtime on this thread, and then nothing has changed.
    #[track_caller]
    fn begin(
        &mut self,
        file: &Arc<File>,
        job: impl FnOnce(Target, Buffer) -> JoinHandle<(Outcome, Buffer)>,
    ) {
        offload::need_runtime();
        self.sought = None;
        let target = Target { file: file.clone(), gate: self.gate.clone() };
        let buffer = std::mem::take(self.idle());
        self.state = State::Busy(job(target, buffer));
    }

    pub(super) fn begin_read(&mut self, file: &Arc<File>, most: usize) {
        self.begin(file, |target, mut buffer| {
            spawn_blocking(move || {
                let result = target.at_cursor(|file| buffer.read(file, most));
                (Outcome::Read(result), buffer)
            })
        });
    }

    /// Begins to write the beginning of `pieces`, `most` bytes; answers how many.
    ///
    /// # Errors
    /// If the runtime has shut down: nothing is written then.
    pub(super) fn begin_write<'a>(
        &mut self,
        file: &Arc<File>,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        most: usize,
    ) -> io::Result<usize> {
        offload::need_runtime();
        if offload::is_runtime_ending() {
            return Err(error::ended());
        }
        let mut amount = 0;
        self.begin(file, |target, mut buffer| {
            let back = buffer.rewind();
            buffer.bytes.clear();
            for piece in pieces {
                let piece = &piece[..piece.len().min(most - buffer.bytes.len())];
                buffer.bytes.extend_from_slice(piece);
            }
            amount = buffer.bytes.len();
            let chunk = Chunk(Some((target, buffer, back)));
            spawn_blocking(move || chunk.write())
        });
        Ok(amount)
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

    /// Seeks here and now; the answer is told by the next `poll_complete`. `false` if somebody
    /// else is at the cursor, and then nothing has changed.
    pub(super) fn seek_at_once(&mut self, file: &File, to: SeekFrom) -> bool {
        let gate = self.gate.clone();
        let result = gate.if_free(|| {
            let back = back_before(self.idle().rewind(), to);
            let mut cursor = file;
            Some(go_back(file, back).and_then(|()| cursor.seek(to)))
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
                let result =
                    target.at_cursor(|file| go_back(file, back).and_then(|()| file.set_len(size)));
                (Outcome::Cut(result), buffer)
            })
        });
    }

    /// Sets the cursor to where the caller is. A pipe's bytes cannot be given back.
    pub(super) fn settle_cursor(&mut self, file: &File) {
        if let State::Idle(buffer) = &mut self.state {
            // What cannot seek has no cursor to be set.
            let _ = go_back(file, buffer.rewind());
        }
    }
}

/// How to go back before a seek: only one that begins here cares.
fn back_before(back: Option<SeekFrom>, to: SeekFrom) -> Option<SeekFrom> {
    back.filter(|_| matches!(to, SeekFrom::Current(_)))
}

/// Bytes that the caller was told are taken. They are written, also if the runtime ends
/// before their job had its turn: whoever drops the job writes them.
struct Chunk(Option<(Target, Buffer, Option<SeekFrom>)>);

impl Chunk {
    fn write(mut self) -> (Outcome, Buffer) {
        let (target, mut buffer, back) = self.0.take().expect("a chunk is written once");
        let result = write(&target, &buffer, back);
        (buffer.start, buffer.end) = (0, 0);
        (Outcome::Wrote(result), buffer)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some((target, buffer, back)) = self.0.take() {
            // Nobody is left to be told; the next operation says that its end is not known.
            let _ = write(&target, &buffer, back);
        }
    }
}

fn write(target: &Target, buffer: &Buffer, back: Option<SeekFrom>) -> io::Result<()> {
    target.at_cursor(|mut file| {
        go_back(file, back)?;
        file.write_all(&buffer.bytes)
    })
}
