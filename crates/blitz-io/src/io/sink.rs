//! Where bytes go that nobody wants.

use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::AsyncWrite;
use crate::engine::work::task::budget;

/// An async writer which will move data into the void; made by [`sink`](sink()).
///
/// # Examples
///
/// ```
/// assert_eq!(format!("{:?}", blitz_io::io::sink()), "Sink { .. }");
/// ```
pub struct Sink {
    _private: (),
}

/// Creates an instance of an async writer which will successfully consume all data.
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

/// The methods of an `AsyncWrite` that takes everything and keeps nothing.
macro_rules! taken {
    () => {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            ready!(budget::proceed(cx)).spend();
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            ready!(budget::proceed(cx)).spend();
            Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            ready!(budget::proceed(cx)).spend();
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            ready!(budget::proceed(cx)).spend();
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
