//! `Pipe`: a buffer from one end to the other in memory, on which duplex and simplex
//! streams are built.
//!
//! # Protocol
//! One lock guards the bytes, whether the pipe is closed, and one waker for each end. An
//! end that has to wait stores its waker under the same acquisition of the lock under which
//! it found nothing to do. A thread that changes what an end waits for (bytes for the
//! reader, room for the writer, the close for both) does so under the lock too, takes the
//! waker out, releases the lock, and wakes. So no change can be missed between the check
//! and the storing of the waker.
//!
//! # Invariants
//! No user code runs under the lock: a waker is cloned before the lock is acquired (the
//! first check finds that a waker is needed, the second stores it), and called or dropped
//! after the lock is released.
//!
//! # Checked by
//! `written_bytes_arrive_whole_and_in_order`, `a_full_pipe_wakes_its_writer`,
//! `the_end_of_a_writer_wakes_its_reader`, `the_end_of_a_reader_wakes_its_writer`,
//! `both_ends_end_at_once`, `an_end_that_moves_is_woken_where_it_is`; weakened as
//! `pipe_read_wakes`, `pipe_write_wakes`, `pipe_close_wakes`, `pipe_keeps_new_waker`.
//! Wakers that call back into the pipe: `tests/it/io/duplex.rs`.

use std::{
    collections::VecDeque,
    io,
    task::{Context, Poll, Waker, ready},
};

use super::ReadBuf;
use crate::engine::{
    prim::{Arc, Mutex, lock, weakened},
    work::task::budget,
};

/// A pipe in memory with one direction, shared by its two ends.
pub(super) struct Pipe {
    state: Mutex<State>,
}

struct State {
    bytes: VecDeque<u8>,
    /// The most bytes that the pipe holds.
    capacity: usize,
    closed: bool,
    /// The waker of the reader that waits for bytes.
    reader: Option<Waker>,
    /// The waker of the writer that waits for room.
    writer: Option<Waker>,
}

#[derive(Clone, Copy)]
enum End {
    Reader,
    Writer,
}

impl State {
    fn waker(&mut self, end: End) -> &mut Option<Waker> {
        match end {
            End::Reader => &mut self.reader,
            End::Writer => &mut self.writer,
        }
    }

    /// Moves bytes into `buf`; returns `None` if there are none yet.
    fn read(&mut self, buf: &mut ReadBuf<'_>) -> Option<Completed<()>> {
        let amount = self.bytes.len().min(buf.remaining());
        if amount > 0 {
            let (first, second) = self.bytes.as_slices();
            let from_first = amount.min(first.len());
            buf.put_slice(&first[..from_first]);
            buf.put_slice(&second[..amount - from_first]);
            self.bytes.drain(..amount);
            return Some(Completed { moved: !weakened!("pipe_read_wakes"), result: Ok(()) });
        }
        let ends = self.closed || buf.remaining() == 0;
        ends.then_some(Completed { moved: false, result: Ok(()) })
    }

    /// Moves as many bytes out of `slices` as there is room for; returns `None` if there is
    /// no room.
    fn write<'a>(
        &mut self,
        slices: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<Completed<usize>> {
        if self.closed {
            return Some(Completed { moved: false, result: Err(io::ErrorKind::BrokenPipe.into()) });
        }
        if slices.clone().all(<[u8]>::is_empty) {
            return Some(Completed { moved: false, result: Ok(0) });
        }
        let before = self.bytes.len();
        for slice in slices {
            let room = self.capacity - self.bytes.len();
            self.bytes.extend(&slice[..slice.len().min(room)]);
        }
        let amount = self.bytes.len() - before;
        let moved = !weakened!("pipe_write_wakes");
        (amount > 0).then_some(Completed { moved, result: Ok(amount) })
    }
}

/// The result of an attempt to read or write.
struct Completed<T> {
    /// True if the other end has to be woken.
    moved: bool,
    result: io::Result<T>,
}

impl Pipe {
    /// Creates a pipe that holds at most `capacity` bytes.
    ///
    /// # Panics
    /// Panics if `capacity` is zero, because nothing could ever be written.
    #[track_caller]
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        assert!(capacity > 0, "`max_buf_size` must be greater than 0: give at least one byte");
        let bytes = VecDeque::new();
        let state = State { bytes, capacity, closed: false, reader: None, writer: None };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Makes an attempt; if it cannot proceed, stores the waker of `cx` for the other end
    /// to wake.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        (own, other): (End, End),
        mut attempt: impl FnMut(&mut State) -> Option<Completed<T>>,
    ) -> Poll<io::Result<T>> {
        let unit = ready!(budget::poll_proceed(cx));
        let mut new: Option<Waker> = None;
        loop {
            let mut state = lock(&self.state);
            if let Some(done) = attempt(&mut state) {
                let waker = if done.moved { state.waker(other).take() } else { None };
                drop(state);
                unit.spend();
                if let Some(waker) = waker {
                    waker.wake();
                }
                return Poll::Ready(done.result);
            }
            let kept = state.waker(own);
            if kept.as_ref().is_some_and(|kept| kept.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            if kept.is_some() && weakened!("pipe_keeps_new_waker") {
                return Poll::Pending;
            }
            if let Some(new) = new.take() {
                let old = kept.replace(new);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
            drop(state);
            new = Some(cx.waker().clone());
        }
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx, (End::Reader, End::Writer), |state| state.read(buf))
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let slices = std::iter::once(buf);
        self.poll(cx, (End::Writer, End::Reader), |state| state.write(slices.clone()))
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let slices = bufs.iter().map(|buf| &**buf);
        self.poll(cx, (End::Writer, End::Reader), |state| state.write(slices.clone()))
    }

    /// Closes the pipe: writes fail from now on, and the reader gets the bytes that are
    /// left, then the end. The waiting ends are woken when the returned [`PendingWakes`] is
    /// dropped.
    pub(super) fn close(&self) -> PendingWakes {
        let mut state = lock(&self.state);
        state.closed = true;
        let (reader, writer) = (state.reader.take(), state.writer.take());
        drop(state);
        if weakened!("pipe_close_wakes") {
            return PendingWakes { _reader: WakeOnDrop(None), _writer: WakeOnDrop(None) };
        }
        PendingWakes { _reader: WakeOnDrop(reader), _writer: WakeOnDrop(writer) }
    }

    /// Returns the number of bytes in the pipe, its capacity, and true if it is closed.
    pub(super) fn stats(&self) -> (usize, usize, bool) {
        let state = lock(&self.state);
        (state.bytes.len(), state.capacity, state.closed)
    }
}

/// Wakes the ends that waited on a closed pipe when it is dropped, so that the caller can
/// complete everything that belongs to the close first.
#[must_use = "the waiting end is woken when this is dropped"]
pub(super) struct PendingWakes {
    // Two separate fields, so that the second waker is called even if the first one panics.
    _reader: WakeOnDrop,
    _writer: WakeOnDrop,
}

struct WakeOnDrop(Option<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (buffered, capacity, closed) = self.stats();
        f.debug_struct("Pipe")
            .field("buffer", &format_args!("{buffered}/{capacity}"))
            .field("closed", &closed)
            .finish()
    }
}

/// An end of a pipe, which closes the pipe when it is dropped.
#[derive(Debug)]
pub(super) struct CloseOnDrop(Option<Arc<Pipe>>);

impl CloseOnDrop {
    pub(super) fn new(pipe: Arc<Pipe>) -> Self {
        Self(Some(pipe))
    }

    pub(super) fn pipe(&self) -> &Pipe {
        self.0.as_ref().expect("an end has its pipe until it is forgotten")
    }

    /// Drops this end without closing the pipe.
    pub(super) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(pipe) = self.0.take() {
            drop(pipe.close());
        }
    }
}

#[cfg(test)]
mod models {
    use std::{
        future::poll_fn,
        task::{Context, Poll},
    };

    use super::{CloseOnDrop, Pipe};
    use crate::{
        engine::{
            prim::{Arc, model, thread},
            wait::test_waker::{CountingWaker, block_on},
        },
        io::ReadBuf,
    };

    /// Reads to the end of the pipe, two bytes at a time.
    fn read_all(pipe: &Pipe) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut bytes = [0; 2];
            let mut buf = ReadBuf::new(&mut bytes);
            block_on(poll_fn(|cx| pipe.poll_read(cx, &mut buf))).unwrap();
            if buf.filled().is_empty() {
                return all;
            }
            all.extend_from_slice(buf.filled());
        }
    }

    fn write_all(pipe: &Pipe, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let amount = block_on(poll_fn(|cx| pipe.poll_write(cx, bytes)))?;
            bytes = &bytes[amount..];
        }
        Ok(())
    }

    fn pipe(capacity: usize) -> (Arc<Pipe>, CloseOnDrop) {
        let pipe = Pipe::new(capacity);
        (pipe.clone(), CloseOnDrop::new(pipe))
    }

    #[test]
    fn written_bytes_arrive_whole_and_in_order() {
        model(|| {
            let (reader, writer) = pipe(2);
            let other = thread::spawn(move || write_all(writer.pipe(), b"abc").unwrap());
            assert_eq!(read_all(&reader), b"abc");
            other.join().unwrap();
        });
    }

    #[test]
    fn a_full_pipe_wakes_its_writer() {
        model(|| {
            let (reader, writer) = pipe(1);
            write_all(&reader, b"a").unwrap();
            let other = thread::spawn(move || write_all(writer.pipe(), b"b").unwrap());
            assert_eq!(read_all(&reader), b"ab");
            other.join().unwrap();
        });
    }

    #[test]
    fn the_end_of_a_writer_wakes_its_reader() {
        model(|| {
            let (reader, writer) = pipe(1);
            let other = thread::spawn(move || drop(writer));
            assert_eq!(read_all(&reader), b"");
            other.join().unwrap();
        });
    }

    #[test]
    fn the_end_of_a_reader_wakes_its_writer() {
        model(|| {
            let (writer, reader) = pipe(1);
            let other = thread::spawn(move || drop(reader));
            let kind = write_all(&writer, b"abc").unwrap_err().kind();
            assert_eq!(kind, std::io::ErrorKind::BrokenPipe);
            other.join().unwrap();
        });
    }

    #[test]
    fn both_ends_end_at_once() {
        model(|| {
            let (shared, one) = pipe(1);
            let two = CloseOnDrop::new(shared.clone());
            let counter = CountingWaker::new();
            let waker = counter.waker();
            let mut bytes = [0; 1];
            let mut buf = ReadBuf::new(&mut bytes);
            let read = shared.poll_read(&mut Context::from_waker(&waker), &mut buf);
            assert!(read.is_pending());
            drop(waker);
            let other = thread::spawn(move || drop(one));
            drop(two);
            other.join().unwrap();
            drop(shared);
            let left = std::sync::Arc::strong_count(&counter);
            assert_eq!((counter.wake_count(), left), (1, 1), "woken once, and let go");
        });
    }

    /// Covers a task of an end that has moved to another thread, with another waker.
    #[test]
    fn an_end_that_moves_is_woken_where_it_is() {
        model(|| {
            let (reader, writer) = pipe(1);
            let (before, mut bytes) = (CountingWaker::new(), [0; 1]);
            let mut buf = ReadBuf::new(&mut bytes);
            let first = reader.poll_read(&mut Context::from_waker(&before.waker()), &mut buf);
            assert!(matches!(first, Poll::Pending));
            let other = thread::spawn(move || write_all(writer.pipe(), b"a").unwrap());
            assert_eq!(read_all(&reader), b"a");
            other.join().unwrap();
        });
    }
}
