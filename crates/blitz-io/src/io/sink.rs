//! `sink`: a writer that discards everything.

use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::AsyncWrite;
use crate::engine::work::task::budget;

/// A writer that discards all bytes written to it; created by [`sink`](sink()).
///
/// # Examples
///
/// ```
/// assert_eq!(format!("{:?}", blitz_io::io::sink()), "Sink { .. }");
/// ```
pub struct Sink {
    _private: (),
}

/// Creates a writer that accepts all bytes and discards them.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// assert_eq!(io::sink().write(&[1, 2, 3]).await?, 3);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn sink() -> Sink {
    Sink { _private: () }
}

/// Defines the methods of an `AsyncWrite` that accepts all bytes and discards them.
macro_rules! taken {
    () => {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            ready!(budget::poll_proceed(cx)).spend();
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            ready!(budget::poll_proceed(cx)).spend();
            Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            ready!(budget::poll_proceed(cx)).spend();
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            ready!(budget::poll_proceed(cx)).spend();
            Poll::Ready(Ok(()))
        }
    };
}
pub(super) use taken;

impl AsyncWrite for Sink {
    taken!();
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Sink { .. }")
    }
}
