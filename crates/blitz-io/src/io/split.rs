//! `split`: one stream in two halves, for two tasks.
//!
//! The halves share the stream behind a lock, which is held while the stream is polled: by
//! one task at a time, and never while a task waits. The halves of a
//! [`simplex`](super::simplex()) use its pipe directly and bypass the lock, so none of our
//! wakers is called under it.

use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    AsyncRead, AsyncWrite, ReadBuf,
    pipe::{CloseOnDrop, Pipe},
};
use crate::engine::{
    prim::{self, pinned::PinLockHalf},
    work::thread_context::LockHeldGuard,
};

/// The readable half of a stream; created by [`split`](split()).
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (one, mut other) = io::duplex(64);
/// let (mut reader, _writer) = io::split(one);
/// other.write_all(b"x").await?;
/// assert_eq!(reader.read_u8().await?, b'x');
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct ReadHalf<T> {
    shared: PinLockHalf<T>,
    /// The pipe, if the stream is a simplex stream. Dropping the half closes it.
    pipe: Option<CloseOnDrop>,
}

/// The writable half of a stream; created by [`split`](split()).
///
/// Dropping this half does not shut the stream down: the stream lives until both halves are
/// dropped. The half of a [`simplex`](super::simplex()) is an exception: dropping it ends the
/// pipe.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (one, mut other) = io::duplex(64);
/// let (_reader, mut writer) = io::split(one);
/// writer.write_all(b"x").await?;
/// assert_eq!(other.read_u8().await?, b'x');
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct WriteHalf<T> {
    shared: PinLockHalf<T>,
    is_write_vectored: bool,
    /// The pipe, if the stream is a simplex stream. Dropping the half closes it.
    pipe: Option<CloseOnDrop>,
}

/// Splits a stream into a half that reads and a half that writes.
///
/// Two tasks may use the halves at the same time; only one of them polls the stream at a
/// time. Streams that can be shared without a lock (sockets) have halves of their own. The
/// halves are put together again with [`ReadHalf::unsplit`].
///
/// # Panics
///
/// A half panics when it is used after a poll of the stream through the other half
/// panicked.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (client, server) = io::duplex(64);
/// blitz_io::spawn(async move {
///     let (mut reader, mut writer) = io::split(server);
///     io::copy(&mut reader, &mut writer).await
/// });
/// let (mut reader, mut writer) = io::split(client);
/// writer.write_all(b"echo").await?;
/// let mut buf = [0; 4];
/// reader.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"echo");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn split<T>(stream: T) -> (ReadHalf<T>, WriteHalf<T>)
where
    T: AsyncRead + AsyncWrite,
{
    halves(stream, || None)
}

/// Creates the halves of a stream that consists of this pipe and nothing else.
pub(super) fn of_pipe<T>(stream: T, pipe: prim::Arc<Pipe>) -> (ReadHalf<T>, WriteHalf<T>)
where
    T: AsyncRead + AsyncWrite,
{
    halves(stream, || Some(CloseOnDrop::new(pipe.clone())))
}

fn halves<T: AsyncWrite>(
    stream: T,
    pipe: impl Fn() -> Option<CloseOnDrop>,
) -> (ReadHalf<T>, WriteHalf<T>) {
    let is_write_vectored = stream.is_write_vectored();
    let (reader, shared) = PinLockHalf::pair(stream);
    let writer = WriteHalf { shared, is_write_vectored, pipe: pipe() };
    (ReadHalf { shared: reader, pipe: pipe() }, writer)
}

impl<T> ReadHalf<T> {
    /// Returns true if this half and `other` were split from the same stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io;
    ///
    /// let (one, other) = io::duplex(64);
    /// let (reader, writer) = io::split(one);
    /// let (_, stranger) = io::split(other);
    /// assert!(reader.is_pair_of(&writer) && !reader.is_pair_of(&stranger));
    /// ```
    pub fn is_pair_of(&self, other: &WriteHalf<T>) -> bool {
        other.is_pair_of(self)
    }

    /// Puts this half and its `WriteHalf` together again, and returns the stream.
    ///
    /// # Panics
    ///
    /// Panics if the two halves were not split from the same stream: call
    /// [`is_pair_of`](Self::is_pair_of) first where that is not known.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io;
    ///
    /// let (reader, writer) = io::split(std::io::Cursor::new(vec![1]));
    /// assert_eq!(reader.unsplit(writer).into_inner(), [1]);
    /// ```
    #[track_caller]
    pub fn unsplit(self, wr: WriteHalf<T>) -> T
    where
        T: Unpin,
    {
        assert!(
            self.is_pair_of(&wr),
            "Unrelated `split::Write` passed to `split::Read::unsplit`. Check `is_pair_of` first"
        );
        // The pipe of a simplex stream must stay open.
        [self.pipe, wr.pipe].into_iter().flatten().for_each(CloseOnDrop::forget);
        let stream = self.shared.reunite(wr.shared);
        stream.expect("there are two halves, and both are here")
    }
}

impl<T> WriteHalf<T> {
    /// Returns true if this half and `other` were split from the same stream.
    ///
    /// # Examples
    ///
    /// ```
    /// let (reader, writer) = blitz_io::io::simplex(64);
    /// assert!(writer.is_pair_of(&reader));
    /// ```
    pub fn is_pair_of(&self, other: &ReadHalf<T>) -> bool {
        self.shared.is_pair_of(&other.shared)
    }
}

/// Calls `f` with the stream, under the lock.
#[inline]
fn with_lock<T, R>(shared: &mut PinLockHalf<T>, f: impl FnOnce(Pin<&mut T>) -> R) -> R {
    let _holding = LockHeldGuard::lock();
    shared.with(f)
}

impl<T: AsyncRead> AsyncRead for ReadHalf<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &self.pipe {
            Some(end) => end.pipe().poll_read(cx, buf),
            None => with_lock(&mut self.shared, |stream| stream.poll_read(cx, buf)),
        }
    }
}

impl<T: AsyncWrite> AsyncWrite for WriteHalf<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &self.pipe {
            Some(end) => end.pipe().poll_write(cx, buf),
            None => with_lock(&mut self.shared, |stream| stream.poll_write(cx, buf)),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &self.pipe {
            Some(end) => end.pipe().poll_write_vectored(cx, bufs),
            None => with_lock(&mut self.shared, |stream| stream.poll_write_vectored(cx, bufs)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.is_write_vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.pipe {
            Some(_) => Poll::Ready(Ok(())),
            None => with_lock(&mut self.shared, |stream| stream.poll_flush(cx)),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.pipe {
            Some(end) => {
                drop(end.pipe().close());
                Poll::Ready(Ok(()))
            }
            None => with_lock(&mut self.shared, |stream| stream.poll_shutdown(cx)),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("split::ReadHalf").finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("split::WriteHalf").finish()
    }
}
