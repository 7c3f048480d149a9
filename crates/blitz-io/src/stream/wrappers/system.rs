//! Streams of signals and of directory entries.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::impl_inner_access;
#[cfg(feature = "fs")]
use crate::fs::{DirEntry, ReadDir};
#[cfg(all(feature = "signal", unix))]
use crate::signal::unix::Signal;

/// A stream of the deliveries of a signal, which never ends. Several deliveries may become one
/// item.
///
/// # Examples
///
/// ```
/// use blitz_io::{signal::unix::{signal, SignalKind}, stream::{StreamExt, wrappers::SignalStream}};
///
/// # blitz_io::run(async {
/// let mut user = SignalStream::new(signal(SignalKind::user_defined1())?);
/// # unsafe { libc::raise(libc::SIGUSR1) };
/// assert_eq!(user.next().await, Some(()));
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[cfg(all(feature = "signal", unix))]
#[derive(Debug)]
pub struct SignalStream {
    inner: Signal,
}

#[cfg(all(feature = "signal", unix))]
impl SignalStream {
    /// Creates a stream from a signal listener.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{signal::unix::{signal, SignalKind}, stream::wrappers::SignalStream};
    ///
    /// # blitz_io::run(async {
    /// let hangups = SignalStream::new(signal(SignalKind::hangup())?);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn new(signal: Signal) -> Self {
        Self { inner: signal }
    }

    /// Returns the signal listener.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{signal::unix::{signal, SignalKind}, stream::wrappers::SignalStream};
    ///
    /// # blitz_io::run(async {
    /// let hangups = SignalStream::new(signal(SignalKind::hangup())?);
    /// let signal = hangups.into_inner();
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn into_inner(self) -> Signal {
        self.inner
    }
}

#[cfg(all(feature = "signal", unix))]
impl Stream for SignalStream {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.inner.poll_recv(cx)
    }
}

#[cfg(all(feature = "signal", unix))]
impl_inner_access! {
    <> SignalStream: Signal;
}

/// A stream of the entries of a directory.
///
/// # Examples
///
/// ```
/// use blitz_io::{fs, stream::{StreamExt, wrappers::ReadDirStream}};
///
/// # blitz_io::run(async {
/// # let folder = tempfile::tempdir()?;
/// fs::write(folder.path().join("one"), "1").await?;
/// let mut entries = ReadDirStream::new(fs::read_dir(folder.path()).await?);
/// assert_eq!(entries.try_next().await?.unwrap().file_name(), "one");
/// assert!(entries.try_next().await?.is_none());
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[cfg(feature = "fs")]
#[derive(Debug)]
pub struct ReadDirStream {
    inner: ReadDir,
}

#[cfg(feature = "fs")]
impl ReadDirStream {
    /// Creates a stream from the result of [`read_dir`](crate::fs::read_dir).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{fs, stream::wrappers::ReadDirStream};
    ///
    /// # blitz_io::run(async {
    /// let entries = ReadDirStream::new(fs::read_dir(".").await?);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn new(directory: ReadDir) -> Self {
        Self { inner: directory }
    }

    /// Returns the wrapped `ReadDir`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{fs, stream::wrappers::ReadDirStream};
    ///
    /// # blitz_io::run(async {
    /// # let folder = tempfile::tempdir()?;
    /// let entries = ReadDirStream::new(fs::read_dir(folder.path()).await?);
    /// assert!(entries.into_inner().next_entry().await?.is_none());
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn into_inner(self) -> ReadDir {
        self.inner
    }
}

#[cfg(feature = "fs")]
impl Stream for ReadDirStream {
    type Item = std::io::Result<DirEntry>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.poll_next_entry(cx).map(Result::transpose)
    }
}

#[cfg(feature = "fs")]
impl_inner_access! {
    <> ReadDirStream: ReadDir;
}
