//! Sources and sinks that follow a script, one step for each call.

use std::{
    collections::VecDeque,
    fmt, io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use blitz_io::io::{AsyncBufRead, AsyncRead, AsyncWrite, ErrorKind, ReadBuf};

/// The next step of a source. After the last step the source is at its end.
pub(crate) enum Give {
    /// Provides these bytes; those that do not fit into the buffer are left for the next call.
    Bytes(&'static [u8]),
    /// Returns `Pending`.
    Wait,
    Fail(ErrorKind),
}

pub(crate) struct Source {
    steps: VecDeque<Give>,
    /// The remaining capacity of the buffer of each read.
    pub(crate) rooms: Vec<usize>,
}

pub(crate) fn source(steps: impl IntoIterator<Item = Give>) -> Source {
    Source { steps: steps.into_iter().collect(), rooms: Vec::new() }
}

impl Source {
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
            Some(Give::Wait) => Poll::Pending,
            Some(Give::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Give::Bytes(bytes)) => {
                let (now, later) = bytes.split_at(bytes.len().min(buf.remaining()));
                buf.put_slice(now);
                if !later.is_empty() {
                    this.steps.push_front(Give::Bytes(later));
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncBufRead for Source {
    fn poll_fill_buf(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        match this.steps.front() {
            None => Poll::Ready(Ok(&[])),
            Some(Give::Bytes(bytes)) => Poll::Ready(Ok(bytes)),
            Some(Give::Wait) => {
                this.steps.pop_front();
                Poll::Pending
            }
            Some(Give::Fail(kind)) => {
                let error = (*kind).into();
                this.steps.pop_front();
                Poll::Ready(Err(error))
            }
        }
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let steps = &mut self.get_mut().steps;
        match steps.pop_front() {
            Some(Give::Bytes(bytes)) if amt < bytes.len() => {
                steps.push_front(Give::Bytes(&bytes[amt..]));
            }
            Some(Give::Bytes(bytes)) => assert_eq!(amt, bytes.len(), "more than was shown"),
            step => {
                assert_eq!(amt, 0, "nothing was shown");
                steps.extend(step);
                steps.rotate_right(usize::from(!steps.is_empty()));
            }
        }
    }
}

/// The next step of a sink. After the last step the sink accepts everything.
pub(crate) enum Take {
    /// Accepts at most this many bytes.
    Most(usize),
    Wait,
    Fail(ErrorKind),
}

#[derive(Default)]
pub(crate) struct Sink {
    steps: VecDeque<Take>,
    pub(crate) taken: Vec<u8>,
    /// True if the sink accepts vectored writes.
    pub(crate) vectored: bool,
    /// The number of buffers of each write; 0 for a write that was not vectored.
    pub(crate) buffers: Vec<usize>,
    pub(crate) flushed: usize,
    pub(crate) ended: bool,
}

pub(crate) fn sink(steps: impl IntoIterator<Item = Take>) -> Sink {
    Sink { steps: steps.into_iter().collect(), ..Sink::default() }
}

impl Sink {
    fn take(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let n = match self.steps.pop_front() {
            Some(Take::Wait) => return Poll::Pending,
            Some(Take::Fail(kind)) => return Poll::Ready(Err(kind.into())),
            Some(Take::Most(most)) => bytes.len().min(most),
            None => bytes.len(),
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
            Some(Take::Wait) => Poll::Pending,
            Some(Take::Fail(kind)) => Poll::Ready(Err(kind.into())),
            _ => {
                this.flushed += 1;
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.as_mut().poll_flush(cx);
        self.ended = flushed.is_ready();
        flushed
    }
}

/// Polls `future` once.
pub(crate) fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls until the future completes; returns its output and the number of polls that were pending.
pub(crate) fn finish_after<F: Future>(future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    for waits in 0..1_000 {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return (output, waits);
        }
    }
    panic!("a thousand polls, and not done")
}

/// Returns the output of a future that must complete at its first poll.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    let (output, waits) = finish_after(future);
    assert_eq!(waits, 0, "it waited");
    output
}

/// Polls a future once, which must be pending, and drops it.
#[track_caller]
pub(crate) fn give_up<F: Future>(future: F)
where
    F::Output: fmt::Debug,
{
    let polled = poll(pin!(future));
    assert!(polled.is_pending(), "{polled:?}");
}

/// Returns the kind of an error that must have occurred.
#[track_caller]
pub(crate) fn kind<T: fmt::Debug>(result: io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}
