//! From a buffered reader to a writer, without a buffer in between.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncBufRead, AsyncWrite};
use crate::engine::work::task::budget;

/// Copies the entire contents of a buffered reader into a writer.
///
/// As [`copy`](super::copy()), but what the reader has buffered is written directly: the
/// size of the reader's buffer is the size of the writes.
///
/// # Errors
///
/// The first that the reader or the writer answers with; `WriteZero` if the writer takes
/// nothing. What was not written by then is still in the reader.
///
/// # Cancel safety
///
/// Nothing is lost if the future is dropped: what was not written is still in the reader.
/// How many bytes were written is not told, though.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, BufReader};
///
/// # blitz_io::run(async {
/// let mut reader = BufReader::new(&b"hello"[..]);
/// let mut writer = Vec::new();
/// assert_eq!(io::copy_buf(&mut reader, &mut writer).await?, 5);
/// assert_eq!(writer, b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn copy_buf<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncBufRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut done = Done::default();
    std::future::poll_fn(|cx| done.poll(cx, reader, writer)).await
}

#[derive(Default)]
struct Done {
    /// Bytes written.
    total: u64,
    /// Some of them since the last flush.
    unflushed: bool,
}

impl Done {
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncBufRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        loop {
            let unit = ready!(budget::proceed(cx));
            let held = match Pin::new(&mut *reader).poll_fill_buf(cx) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(held) => {
                    unit.spend();
                    held?
                }
                Poll::Pending => {
                    // Whoever the reader waits for may wait for what the writer holds.
                    if self.unflushed {
                        ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                        unit.spend();
                        self.unflushed = false;
                    }
                    return Poll::Pending;
                }
            };
            if held.is_empty() {
                ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                return Poll::Ready(Ok(self.total));
            }
            match ready!(Pin::new(&mut *writer).poll_write(cx, held)) {
                Ok(0) => {
                    return Poll::Ready(Err(io::Error::new(
                        io::ErrorKind::WriteZero,
                        "write zero byte into writer: it takes nothing more",
                    )));
                }
                Ok(amount) => {
                    self.total += amount as u64;
                    self.unflushed = true;
                    Pin::new(&mut *reader).consume(amount);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
