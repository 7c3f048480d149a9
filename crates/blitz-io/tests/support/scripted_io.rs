//! Provides byte streams that follow a script, one step for each call.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use blitz_io::io::{AsyncBufRead, AsyncRead, AsyncWrite, ErrorKind, ReadBuf};

/// The action of a scripted stream when it is polled.
#[derive(Debug)]
pub(crate) enum Step {
    /// Provides these bytes; those that do not fit into the buffer are left for the next read.
    Bytes(&'static [u8]),
    /// Accepts at most this many bytes of a write.
    Most(usize),
    /// Returns `Pending`, and wakes no task.
    Wait,
    /// Returns an error.
    Fail(ErrorKind),
}

/// A reader that follows a script. After the last step it is at its end.
#[derive(Default)]
pub(crate) struct Source {
    steps: VecDeque<Step>,
    /// The remaining capacity of the buffer of each read.
    pub(crate) rooms: Vec<usize>,
}

impl Source {
    /// Creates a source that follows this script.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), rooms: Vec::new() }
    }

    /// Creates a source that provides each byte alone.
    pub(crate) fn byte_by_byte(bytes: &'static [u8]) -> Self {
        Self::new(bytes.chunks(1).map(Step::Bytes))
    }

    /// Returns true if no step is left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.steps.is_empty()
    }
}

impl AsyncRead for Source {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.rooms.push(buf.remaining());
        match this.steps.pop_front() {
            None => Poll::Ready(Ok(())),
            Some(Step::Wait) => Poll::Pending,
            Some(Step::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Step::Bytes(bytes)) => {
                let (now, later) = bytes.split_at(bytes.len().min(buf.remaining()));
                buf.put_slice(now);
                if !later.is_empty() {
                    this.steps.push_front(Step::Bytes(later));
                }
                Poll::Ready(Ok(()))
            }
            Some(step) => panic!("no step of a read: {step:?}"),
        }
    }
}

impl AsyncBufRead for Source {
    fn poll_fill_buf(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        match this.steps.front() {
            None => Poll::Ready(Ok(&[])),
            Some(Step::Bytes(bytes)) => Poll::Ready(Ok(bytes)),
            Some(Step::Wait) => {
                this.steps.pop_front();
                Poll::Pending
            }
            Some(Step::Fail(kind)) => {
                let error = (*kind).into();
                this.steps.pop_front();
                Poll::Ready(Err(error))
            }
            Some(step) => panic!("no step of a read: {step:?}"),
        }
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let steps = &mut self.get_mut().steps;
        match steps.pop_front() {
            Some(Step::Bytes(bytes)) if amt < bytes.len() => {
                steps.push_front(Step::Bytes(&bytes[amt..]));
            }
            Some(Step::Bytes(bytes)) => assert_eq!(amt, bytes.len(), "more than was shown"),
            step => {
                assert_eq!(amt, 0, "nothing was shown");
                steps.extend(step);
                steps.rotate_right(usize::from(!steps.is_empty()));
            }
        }
    }
}

/// A writer that follows a script. After the last step it accepts as much as its limits allow.
pub(crate) struct Sink {
    steps: VecDeque<Step>,
    /// The number of bytes that one write accepts at most.
    at_once: usize,
    /// The number of bytes that all writes accept at most.
    room: usize,
    /// The bytes that were written.
    pub(crate) taken: Vec<u8>,
    /// True if the sink accepts vectored writes.
    pub(crate) vectored: bool,
    /// The number of buffers of each write; 0 for a write that was not vectored.
    pub(crate) buffers: Vec<usize>,
    /// The number of flushes.
    pub(crate) flushed: usize,
    /// The number of shutdowns.
    pub(crate) shut: usize,
}

impl Default for Sink {
    fn default() -> Self {
        Self::new([])
    }
}

impl Sink {
    /// Creates a sink that follows this script, without limits afterwards.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::limited(usize::MAX, usize::MAX) }
    }

    /// Creates a sink that accepts at most `at_once` bytes in a call, and `room` bytes in all.
    pub(crate) fn limited(at_once: usize, room: usize) -> Self {
        Self {
            steps: VecDeque::new(),
            at_once,
            room,
            taken: Vec::new(),
            vectored: false,
            buffers: Vec::new(),
            flushed: 0,
            shut: 0,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let n = match self.steps.pop_front() {
            Some(Step::Wait) => return Poll::Pending,
            Some(Step::Fail(kind)) => return Poll::Ready(Err(kind.into())),
            Some(Step::Most(most)) => bytes.len().min(most),
            Some(step) => panic!("no step of a write: {step:?}"),
            None => bytes.len().min(self.at_once).min(self.room - self.taken.len()),
        };
        self.taken.extend(&bytes[..n]);
        Poll::Ready(Ok(n))
    }
}

impl AsyncWrite for Sink {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.buffers.push(0);
        this.take(buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.buffers.push(bufs.len());
        let joined: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        this.take(&joined)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.steps.pop_front() {
            Some(Step::Wait) => Poll::Pending,
            Some(Step::Fail(kind)) => Poll::Ready(Err(kind.into())),
            _ => {
                this.flushed += 1;
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.as_mut().poll_flush(cx);
        self.shut += usize::from(flushed.is_ready());
        flushed
    }
}

/// A stream that reads from a scripted source and writes to a scripted sink.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) source: Source,
    pub(crate) sink: Sink,
}

impl Scripted {
    /// Creates a stream whose reads follow this script.
    pub(crate) fn reads(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { source: Source::new(steps), sink: Sink::default() }
    }

    /// Creates a stream whose writes follow this script.
    pub(crate) fn writes(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { source: Source::default(), sink: Sink::new(steps) }
    }

    /// Makes the stream accept vectored writes.
    pub(crate) fn vectored(mut self) -> Self {
        self.sink.vectored = true;
        self
    }
}

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.source).poll_read(cx, buf)
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.sink).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.sink).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.sink.vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.sink).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.sink).poll_shutdown(cx)
    }
}
