//! Streams polled by hand.

use std::{
    collections::VecDeque,
    io::{ErrorKind, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

use blitz_io::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A waker that counts its calls.
#[derive(Default)]
pub(crate) struct Calls(AtomicUsize);

impl Calls {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        self.clone().into()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A waker for polls whose wake-up does not matter.
pub(crate) const NOOP: &Waker = Waker::noop();

/// Polls a read of up to `N` bytes once.
pub(crate) fn read<const N: usize>(
    reader: &mut (impl AsyncRead + Unpin),
    waker: &Waker,
) -> Poll<std::io::Result<Vec<u8>>> {
    let mut bytes = [0; N];
    let mut buf = ReadBuf::new(&mut bytes);
    let read = Pin::new(reader).poll_read(&mut Context::from_waker(waker), &mut buf);
    read.map_ok(|()| buf.filled().to_vec())
}

pub(crate) fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    waker: &Waker,
    bytes: &[u8],
) -> Poll<std::io::Result<usize>> {
    Pin::new(writer).poll_write(&mut Context::from_waker(waker), bytes)
}

pub(crate) fn shut(writer: &mut (impl AsyncWrite + Unpin)) {
    let shut = Pin::new(writer).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(shut, Poll::Ready(Ok(()))));
}

#[track_caller]
pub(crate) fn ready<T>(poll: Poll<std::io::Result<T>>) -> T {
    match poll {
        Poll::Ready(result) => result.expect("no error"),
        Poll::Pending => panic!("it has to wait"),
    }
}

#[track_caller]
pub(crate) fn error<T: std::fmt::Debug>(poll: Poll<std::io::Result<T>>) -> ErrorKind {
    match poll {
        Poll::Ready(result) => result.expect_err("an error").kind(),
        Poll::Pending => panic!("it has to wait"),
    }
}

/// The action of a scripted stream when it is polled.
#[derive(Debug)]
pub(crate) enum Step {
    /// Reads these bytes, as far as there is room; the rest stays.
    Bytes(Vec<u8>),
    /// Accepts at most this many bytes of a write.
    Takes(usize),
    /// Returns `Pending`, and wakes no task.
    Waits,
    Fails(ErrorKind),
}

/// A stream that follows one script for its reads and one for its writes and flushes. After the
/// last read step it is at its end; after the last write step it accepts everything.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) reads: VecDeque<Step>,
    pub(crate) writes: VecDeque<Step>,
    /// The bytes that were written to the stream.
    pub(crate) taken: Vec<u8>,
    /// The sizes of the buffers that the stream was requested to fill.
    pub(crate) asked: Vec<usize>,
    pub(crate) flushed: usize,
    pub(crate) shut: bool,
    /// True if vectored writes are passed on as they are.
    pub(crate) vectored: bool,
    /// The number of slices of each write.
    pub(crate) slices: Vec<usize>,
}

impl Scripted {
    pub(crate) fn reads(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { reads: steps.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn writes(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { writes: steps.into_iter().collect(), ..Self::default() }
    }

    fn take(&mut self, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let amount = match self.writes.pop_front() {
            None => bytes.len(),
            Some(Step::Takes(most)) => most.min(bytes.len()),
            Some(Step::Waits) => return Poll::Pending,
            Some(Step::Fails(kind)) => return Poll::Ready(Err(kind.into())),
            Some(step) => panic!("no step of a write: {step:?}"),
        };
        self.taken.extend_from_slice(&bytes[..amount]);
        Poll::Ready(Ok(amount))
    }
}

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.asked.push(buf.remaining());
        match self.reads.pop_front() {
            None => Poll::Ready(Ok(())),
            Some(Step::Bytes(mut bytes)) => {
                let rest = bytes.split_off(buf.remaining().min(bytes.len()));
                buf.put_slice(&bytes);
                if !rest.is_empty() {
                    self.reads.push_front(Step::Bytes(rest));
                }
                Poll::Ready(Ok(()))
            }
            Some(Step::Waits) => Poll::Pending,
            Some(Step::Fails(kind)) => Poll::Ready(Err(kind.into())),
            Some(step) => panic!("no step of a read: {step:?}"),
        }
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.slices.push(1);
        self.take(buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.slices.push(bufs.len());
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.take(&all)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.flushed += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.shut = true;
        Poll::Ready(Ok(()))
    }
}
