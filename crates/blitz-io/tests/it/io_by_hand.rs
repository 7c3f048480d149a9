//! Streams polled by hand.

use std::{
    io::ErrorKind,
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

/// For polls whose wake-up does not matter.
pub(crate) const NOBODY: &Waker = Waker::noop();

/// Reads up to `N` bytes, once.
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
