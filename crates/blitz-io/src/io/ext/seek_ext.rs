//! `AsyncSeekExt` and its future.

use std::{
    io::{self, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::io::AsyncSeek;

/// Methods of every type that implements [`AsyncSeek`].
///
/// # Examples
///
/// ```
/// use std::io::Cursor;
/// use blitz_io::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};
///
/// # blitz_io::run(async {
/// let mut file = Cursor::new("0123456789");
/// file.seek(SeekFrom::Start(6)).await?;
/// assert_eq!(file.read_u8().await?, b'6');
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub trait AsyncSeekExt: AsyncSeek {
    /// Moves the position, and returns the new one, counted from the start.
    ///
    /// If an earlier seek is still in progress, this method waits for it first.
    ///
    /// # Errors
    ///
    /// Returns an error if the position would be before the start, or if the source has no
    /// position.
    ///
    /// # Cancel safety
    ///
    /// A seek that has begun goes on if the future is dropped; the position is then unknown
    /// until the next call.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::{AsyncSeekExt, SeekFrom};
    ///
    /// # blitz_io::run(async {
    /// let mut file = Cursor::new("0123456789");
    /// assert_eq!(file.seek(SeekFrom::End(-2)).await?, 8);
    /// assert_eq!(file.seek(SeekFrom::Current(1)).await?, 9);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn seek(&mut self, pos: SeekFrom) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        Seek::new(self, Some(pos))
    }

    /// Moves the position to the start.
    ///
    /// # Cancel safety
    ///
    /// A seek that has begun goes on if the future is dropped, as with
    /// [`seek`](Self::seek).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::{AsyncReadExt, AsyncSeekExt};
    ///
    /// # blitz_io::run(async {
    /// let mut file = Cursor::new("xyz");
    /// file.read_exact(&mut [0; 3]).await?;
    /// file.rewind().await?;
    /// assert_eq!(file.read_u8().await?, b'x');
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn rewind(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Start(0))
    }

    /// Returns the position, counted from the start.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: nothing is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    /// use blitz_io::io::{AsyncReadExt, AsyncSeekExt};
    ///
    /// # blitz_io::run(async {
    /// let mut file = Cursor::new("xyz");
    /// file.read_u8().await?;
    /// assert_eq!(file.stream_position().await?, 1);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    fn stream_position(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Current(0))
    }
}

impl<S: AsyncSeek + ?Sized> AsyncSeekExt for S {}

future! {
    /// Future of [`seek`](AsyncSeekExt::seek). `position` is `None` once the seek has
    /// begun.
    Seek<'a, S> { source: &'a mut S, position: Option<SeekFrom> }
}

impl<S: AsyncSeek + Unpin + ?Sized> Future for Seek<'_, S> {
    type Output = io::Result<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.project();
        let mut source = Pin::new(&mut **this.source);
        if let Some(position) = *this.position {
            ready!(source.as_mut().poll_complete(cx))?;
            source.as_mut().start_seek(position)?;
            *this.position = None;
        }
        source.poll_complete(cx)
    }
}
