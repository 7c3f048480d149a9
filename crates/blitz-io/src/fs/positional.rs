//! Reads and writes at an offset, with buffers that are passed by value.
//!
//! These operations do not use the file's cursor, so any number of them may be in progress at once,
//! through a shared reference. Cached bytes are read inline; otherwise the buffer goes to a
//! blocking thread and comes back.
//!
//! `BLITZ_FS_INLINE=uring` leaves the reads to io_uring, which was not better than threads where it
//! was measured (docs/design/files.md). If io_uring reports anything but a count, a blocking thread
//! repeats the read, and the thread's result is the one that is returned.

#![forbid(unsafe_code)]

use std::{
    fs::File as StdFile,
    future::poll_fn,
    io::{self, IoSlice},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    File,
    asyncify::need_runtime,
    error,
    inline::{self, InlineSupport},
    raw::Filling,
};
use crate::{
    buf::{OwnedBuf, OwnedBufMut},
    engine::work::task::budget,
    task::spawn_blocking,
};

/// Result of an operation, together with its buffer.
type BufResult<T, B> = (io::Result<T>, B);

/// Runs `f` on a blocking thread with the buffer, and returns the buffer with the result. The
/// buffer lies in an `Arc` that the caller and the job share, so it is returned even if the runtime
/// shuts down before the job ran.
async fn asyncify_with_buf<B: Send + 'static, T: Send + 'static>(
    buf: B,
    f: impl FnOnce(&mut B) -> io::Result<T> + Send + 'static,
) -> BufResult<T, B> {
    let slot = Arc::new(Mutex::new(Some(buf)));
    let job = {
        let slot = slot.clone();
        spawn_blocking(move || {
            let mut buf = take(&slot).expect("no other thread takes it");
            let result = f(&mut buf);
            drop(slot);
            (result, buf)
        })
    };
    match job.await {
        Ok(output) => output,
        // A user-defined buffer type has panicked.
        Err(why) if why.is_panic() => std::panic::resume_unwind(why.into_panic()),
        Err(why) => {
            let buf = take(&slot).expect("the job did not get its turn");
            (Err(error::job_lost(&why)), buf)
        }
    }
}

fn take<B>(slot: &Mutex<Option<B>>) -> Option<B> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn retry_interrupted<T>(mut f: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match f() {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn write_at(file: &StdFile, bytes: &[u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_at(file, bytes, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_write(file, bytes, offset);
}

/// Reads into several buffers at an offset. With `nowait`, only what is cached is read; otherwise
/// the call blocks.
#[cfg(target_os = "linux")]
fn readv_at<B: OwnedBufMut>(
    file: &StdFile,
    bufs: &mut [B],
    offset: u64,
    nowait: bool,
) -> io::Result<usize> {
    super::raw::readv_at(file, bufs, offset, nowait)
}

/// Reads into one buffer after the other at an offset, until one is not filled.
#[cfg(not(target_os = "linux"))]
fn readv_at<B: OwnedBufMut>(
    file: &StdFile,
    bufs: &mut Vec<B>,
    offset: u64,
    nowait: bool,
) -> io::Result<usize> {
    if nowait {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let (mut read, mut over, mut error) = (0, false, None);
    for buf in std::mem::take(bufs) {
        let mut filling = Filling::new(buf);
        if !over && filling.room() > 0 {
            match filling.read_at(file, offset + read as u64) {
                Ok(count) => read += count,
                // Returned only if nothing was read before.
                Err(why) => error = Some(why),
            }
            over = filling.room() > 0;
        }
        bufs.push(filling.finish(error.is_some() && read == 0));
    }
    match error {
        Some(error) if read == 0 => Err(error),
        _ => Ok(read),
    }
}

/// Writes from several buffers at an offset, and returns the number of bytes written.
fn writev_at<B: OwnedBuf>(file: &StdFile, bufs: &[B], offset: u64) -> io::Result<usize> {
    let pieces: Vec<_> = bufs.iter().map(|buf| IoSlice::new(buf.as_slice())).collect();
    #[cfg(target_os = "linux")]
    return super::raw::writev_at(file, &pieces, offset);
    #[cfg(not(target_os = "linux"))]
    {
        let mut written = 0;
        for piece in pieces {
            match write_at(file, &piece, offset + written as u64) {
                Ok(count) => {
                    written += count;
                    if count < piece.len() {
                        break;
                    }
                }
                Err(why) if written == 0 => return Err(why),
                Err(_) => break,
            }
        }
        Ok(written)
    }
}

/// Reads and writes at an offset.
///
/// These methods take their buffers by value and return them with the result ([`buf`](crate::buf)),
/// do not use the cursor (on Windows they move it), and wait neither for each other nor for writes
/// at the cursor that are in progress: flush those first. If the file was opened with `append`,
/// Linux writes to the end of the file, whatever the offset.
impl File {
    /// Tries a read at an offset inline. Returns `None` if a blocking thread must do it.
    async fn read_inline<T>(
        &self,
        read: impl FnOnce(&StdFile) -> io::Result<T>,
        amount: impl FnOnce(&T) -> usize,
    ) -> Option<T> {
        need_runtime().ok()?;
        let unit = poll_fn(budget::poll_proceed).await;
        let support = self.probed_support();
        if !matches!(support, InlineSupport::Local | InlineSupport::Cached) {
            return None;
        }
        let done = read(self.std()).ok()?;
        unit.spend();
        budget::charge(amount(&done));
        Some(done)
    }

    async fn read_step<B: OwnedBufMut>(
        &self,
        filling: Filling<B>,
        offset: u64,
    ) -> BufResult<usize, Filling<B>> {
        #[cfg(target_os = "linux")]
        let mut filling = filling;
        #[cfg(target_os = "linux")]
        {
            let read = |file: &StdFile| match inline::inline_mode() {
                inline::InlineMode::Uring => Err(io::ErrorKind::WouldBlock.into()),
                _ => filling.read_cached_at(file, offset, inline::MAX_INLINE),
            };
            // A count of zero may not be the end of the file: a blocking thread must find out.
            if let Some(count) = self.read_inline(read, |count| *count).await
                && count > 0
            {
                return (Ok(count), filling);
            }
            #[cfg(feature = "net")]
            if inline::inline_mode() == inline::InlineMode::Uring
                && self.probed_support() == InlineSupport::Local
            {
                let (count, back) = super::raw::read_by_uring(self.std(), filling, offset).await;
                if let Some(count) = count {
                    return (Ok(count), back);
                }
                filling = back;
            }
        }
        let std = self.std().clone();
        asyncify_with_buf(filling, move |filling| {
            retry_interrupted(|| filling.read_at(&std, offset))
        })
        .await
    }

    /// Reads once at an offset into a buffer passed by value, and returns the number of bytes read
    /// together with the buffer. Zero means the end of the file, unless the buffer has no room.
    ///
    /// The bytes go to the beginning of the buffer, over what is there: a `Vec` offers its whole
    /// capacity, and its length afterwards is the number of bytes read. At most 128 KiB are read if
    /// they lie in the page cache.
    ///
    /// # Errors
    ///
    /// Returns the system's error; the buffer is unchanged then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, only the buffer is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// blitz_io::fs::write(&path, "hello").await?;
    /// let file = blitz_io::fs::File::open(&path).await?;
    /// let (result, buf) = file.read_at_owned(Vec::with_capacity(16), 1).await;
    /// assert_eq!(result?, 4);
    /// assert_eq!(buf, b"ello");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn read_at_owned<B: OwnedBufMut>(
        &self,
        buf: B,
        offset: u64,
    ) -> (io::Result<usize>, B) {
        let filling = Filling::new(buf);
        if filling.room() == 0 {
            poll_fn(budget::poll_proceed).await.spend();
            return (Ok(0), filling.finish(true));
        }
        let (result, filling) = self.read_step(filling, offset).await;
        let failed = result.is_err();
        (result, filling.finish(failed))
    }

    /// Reads at an offset until the buffer is full, and returns the number of bytes read together
    /// with the buffer.
    ///
    /// A `Vec` is full when its whole capacity is filled; to read a certain number of bytes, pass a
    /// [`slice`](OwnedBuf::slice).
    ///
    /// # Errors
    ///
    /// Returns `UnexpectedEof` if the file ends first, and other errors of the system. Bytes that
    /// were read before an error are in the buffer.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, only the buffer is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::buf::OwnedBuf;
    ///
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// blitz_io::fs::write(&path, "hello").await?;
    /// let file = blitz_io::fs::File::open(&path).await?;
    /// let (result, buf) = file.read_exact_at_owned(vec![0; 8].slice(..2), 2).await;
    /// assert_eq!(result?, 2);
    /// assert_eq!(buf.as_slice(), b"ll");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn read_exact_at_owned<B: OwnedBufMut>(
        &self,
        buf: B,
        offset: u64,
    ) -> (io::Result<usize>, B) {
        let mut filling = Filling::new(buf);
        let result = loop {
            if filling.room() == 0 {
                break Ok(filling.filled());
            }
            let at = offset.saturating_add(filling.filled() as u64);
            let (result, back) = self.read_step(filling, at).await;
            filling = back;
            match result {
                Ok(0) => break Err(io::Error::new(io::ErrorKind::UnexpectedEof, "early eof")),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        let failed = result.is_err();
        (result, filling.finish(failed))
    }

    /// Reads once at an offset into several buffers, one after the other, and returns the number of
    /// bytes read together with the buffers.
    ///
    /// Linux uses at most 1024 buffers per call.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, only the buffers are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// blitz_io::fs::write(&path, "hello").await?;
    /// let file = blitz_io::fs::File::open(&path).await?;
    /// let bufs = vec![vec![0; 2].into_boxed_slice(), vec![0; 3].into_boxed_slice()];
    /// let (result, bufs) = file.read_vectored_at_owned(bufs, 0).await;
    /// assert_eq!(result?, 5);
    /// assert_eq!((&*bufs[0], &*bufs[1]), (&b"he"[..], &b"llo"[..]));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn read_vectored_at_owned<B: OwnedBufMut>(
        &self,
        mut bufs: Vec<B>,
        offset: u64,
    ) -> (io::Result<usize>, Vec<B>) {
        // At most what one step may read; more than that is left to a blocking thread.
        let wanted = bufs.iter().fold(0, |sum: usize, buf| sum.saturating_add(buf.bytes_total()));
        if wanted <= inline::MAX_INLINE {
            let read = |file: &StdFile| match readv_at(file, &mut bufs, offset, true) {
                // Zero may not be the end of the file: a blocking thread must find out.
                Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
                result => result,
            };
            if let Some(count) = self.read_inline(read, |count| *count).await {
                return (Ok(count), bufs);
            }
        }
        let std = self.std().clone();
        asyncify_with_buf(bufs, move |bufs| {
            retry_interrupted(|| readv_at(&std, bufs, offset, false))
        })
        .await
    }

    /// Writes a buffer passed by value at an offset, or a part of it, and returns the number of
    /// bytes written together with the buffer. The bytes are written by the time the future
    /// completes.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after the write has started, the buffer is still written.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// let file = blitz_io::fs::File::create(&path).await?;
    /// let (result, _buf) = file.write_at_owned("hello", 3).await;
    /// assert_eq!(result?, 5);
    /// assert_eq!(blitz_io::fs::read(&path).await?, b"\0\0\0hello");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn write_at_owned<B: OwnedBuf>(&self, buf: B, offset: u64) -> (io::Result<usize>, B) {
        let std = self.std().clone();
        asyncify_with_buf(buf, move |buf| {
            retry_interrupted(|| write_at(&std, buf.as_slice(), offset))
        })
        .await
    }

    /// Writes all of a buffer passed by value at an offset, and returns the buffer. The bytes are
    /// written by the time the future completes.
    ///
    /// # Errors
    ///
    /// Returns the system's error; a part may have been written then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after the write has started, the buffer is still written.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// let file = blitz_io::fs::File::create(&path).await?;
    /// let (left, right) = blitz_io::join!(
    ///     file.write_all_at_owned("hello ", 0),
    ///     file.write_all_at_owned("world", 6),
    /// );
    /// left.0.and(right.0)?;
    /// assert_eq!(blitz_io::fs::read(&path).await?, b"hello world");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn write_all_at_owned<B: OwnedBuf>(
        &self,
        buf: B,
        offset: u64,
    ) -> (io::Result<()>, B) {
        let std = self.std().clone();
        asyncify_with_buf(buf, move |buf| {
            let (mut rest, mut at) = (buf.as_slice(), offset);
            while !rest.is_empty() {
                let count = retry_interrupted(|| write_at(&std, rest, at))?;
                if count == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                rest = &rest[count..];
                at += count as u64;
            }
            Ok(())
        })
        .await
    }

    /// Writes once at an offset from several buffers, one after the other, and returns the number
    /// of bytes written together with the buffers.
    ///
    /// Linux uses at most 1024 buffers per call.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after the write has started, the buffers are still written.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("file");
    /// let file = blitz_io::fs::File::create(&path).await?;
    /// let (result, _bufs) = file.write_vectored_at_owned(vec!["hello ", "world"], 0).await;
    /// assert_eq!(result?, 11);
    /// assert_eq!(blitz_io::fs::read(&path).await?, b"hello world");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn write_vectored_at_owned<B: OwnedBuf>(
        &self,
        bufs: Vec<B>,
        offset: u64,
    ) -> (io::Result<usize>, Vec<B>) {
        let std = self.std().clone();
        asyncify_with_buf(bufs, move |bufs| retry_interrupted(|| writev_at(&std, bufs, offset)))
            .await
    }
}
