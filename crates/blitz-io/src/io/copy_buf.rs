//! `copy_buf`: copies from a buffered reader to a writer, without a buffer in between.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncBufRead, AsyncWrite};
use crate::engine::work::task::budget;

/// Copies everything from a buffered reader to a writer.
///
/// This function works like [`copy`](super::copy()), but writes directly from the reader's
/// buffer, so the size of that buffer is the size of the writes.
///
/// # Errors
///
/// Returns the first error of the reader or the writer; `WriteZero` if the writer accepts
/// no more bytes. Bytes that were not written by then are still in the reader.
///
/// # Cancel safety
///
/// No bytes are lost if the future is dropped: those that were not written are still in the
/// reader. The number of bytes written is not available, though.
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
    let mut done = CopyProgress::default();
    std::future::poll_fn(|cx| done.poll(cx, reader, writer)).await
}

#[derive(Default)]
struct CopyProgress {
    /// The number of bytes written.
    total: u64,
    /// True if bytes were written since the last flush.
    unflushed: bool,
}

impl CopyProgress {
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
            let unit = ready!(budget::poll_proceed(cx));
            let buffered = match Pin::new(&mut *reader).poll_fill_buf(cx) {
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(buffered) => {
                    unit.spend();
                    buffered?
                }
                Poll::Pending => {
                    // The peer that the reader waits for may wait for bytes that the writer
                    // buffers.
                    if self.unflushed {
                        ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                        unit.spend();
                        self.unflushed = false;
                    }
                    return Poll::Pending;
                }
            };
            if buffered.is_empty() {
                ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                return Poll::Ready(Ok(self.total));
            }
            match ready!(Pin::new(&mut *writer).poll_write(cx, buffered)) {
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
