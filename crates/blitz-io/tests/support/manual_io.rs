//! Polls byte streams by hand, without a runtime.

use std::{
    fmt::Debug,
    io::{self, ErrorKind},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use blitz_io::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A waker for polls whose wake-up does not matter.
pub(crate) const NOOP: &Waker = Waker::noop();

/// Polls a read of up to `N` bytes once.
pub(crate) fn read<const N: usize>(
    reader: &mut (impl AsyncRead + Unpin),
    waker: &Waker,
) -> Poll<io::Result<Vec<u8>>> {
    let mut bytes = [0; N];
    let mut buf = ReadBuf::new(&mut bytes);
    let read = Pin::new(reader).poll_read(&mut Context::from_waker(waker), &mut buf);
    read.map_ok(|()| buf.filled().to_vec())
}

/// Polls a write once.
pub(crate) fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    waker: &Waker,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    Pin::new(writer).poll_write(&mut Context::from_waker(waker), bytes)
}

/// Shuts a writer down, which must not wait.
pub(crate) fn shut(writer: &mut (impl AsyncWrite + Unpin)) {
    let shut = Pin::new(writer).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(shut, Poll::Ready(Ok(()))));
}

/// Returns the value of a poll that must have succeeded.
#[track_caller]
pub(crate) fn ready<T>(poll: Poll<io::Result<T>>) -> T {
    match poll {
        Poll::Ready(result) => result.expect("no error"),
        Poll::Pending => panic!("it has to wait"),
    }
}

/// Returns the kind of the error of a poll that must have failed.
#[track_caller]
pub(crate) fn error<T: Debug>(poll: Poll<io::Result<T>>) -> ErrorKind {
    match poll {
        Poll::Ready(result) => result.expect_err("an error").kind(),
        Poll::Pending => panic!("it has to wait"),
    }
}

/// Returns the kind of an error that must have occurred.
#[track_caller]
pub(crate) fn kind<T: Debug>(result: io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}
