//! `Chain`: one source after another.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::io::{AsyncBufRead, AsyncRead, ReadBuf};

pin_project! {
    /// Two sources read as one; created by [`chain`](super::AsyncReadExt::chain).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut both = b"head ".as_slice().chain(b"tail".as_slice());
    /// let mut text = String::new();
    /// both.read_to_string(&mut text).await?;
    /// assert_eq!(text, "head tail");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    #[must_use = "a source does nothing unless it is read"]
    pub struct Chain<T, U> {
        #[pin]
        first: T,
        #[pin]
        second: U,
        first_ended: bool,
    }
}

impl<T: AsyncRead, U: AsyncRead> Chain<T, U> {
    pub(super) fn new(first: T, second: U) -> Self {
        Self { first, second, first_ended: false }
    }

    /// Returns references to both sources.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// let both = b"a".as_slice().chain(b"b".as_slice());
    /// assert_eq!(both.get_ref(), (&&b"a"[..], &&b"b"[..]));
    /// ```
    pub fn get_ref(&self) -> (&T, &U) {
        (&self.first, &self.second)
    }

    /// Returns mutable references to both sources.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// let mut both = b"a".as_slice().chain(b"b".as_slice());
    /// *both.get_mut().1 = b"c";
    /// assert_eq!(both.into_inner(), (&b"a"[..], &b"c"[..]));
    /// ```
    pub fn get_mut(&mut self) -> (&mut T, &mut U) {
        (&mut self.first, &mut self.second)
    }

    /// Returns pinned mutable references to both sources.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// let both = pin!(b"a".as_slice().chain(b"b".as_slice()));
    /// assert_eq!(*both.get_pin_mut().0, b"a");
    /// ```
    pub fn get_pin_mut(self: Pin<&mut Self>) -> (Pin<&mut T>, Pin<&mut U>) {
        let this = self.project();
        (this.first, this.second)
    }

    /// Consumes this `Chain` and returns both sources, with the bytes that were not read.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::AsyncReadExt;
    ///
    /// # blitz_io::run(async {
    /// let mut both = b"ab".as_slice().chain(b"c".as_slice());
    /// both.read_u8().await?;
    /// assert_eq!(both.into_inner(), (&b"b"[..], &b"c"[..]));
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn into_inner(self) -> (T, U) {
        (self.first, self.second)
    }
}

impl<T: fmt::Debug, U: fmt::Debug> fmt::Debug for Chain<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // std and Tokio print these field names.
        f.debug_struct("Chain").field("t", &self.first).field("u", &self.second).finish()
    }
}

impl<T: AsyncRead, U: AsyncRead> AsyncRead for Chain<T, U> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if !*this.first_ended {
            let before = buf.remaining();
            ready!(this.first.poll_read(cx, buf))?;
            // If the buffer had no room, a read of zero bytes is not the end.
            *this.first_ended = buf.remaining() == before && before > 0;
            if !*this.first_ended {
                return Poll::Ready(Ok(()));
            }
        }
        this.second.poll_read(cx, buf)
    }
}

impl<T: AsyncBufRead, U: AsyncBufRead> AsyncBufRead for Chain<T, U> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if !*this.first_ended {
            let shown = ready!(this.first.poll_fill_buf(cx))?;
            if !shown.is_empty() {
                return Poll::Ready(Ok(shown));
            }
            *this.first_ended = true;
        }
        this.second.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        if *this.first_ended {
            this.second.consume(amt);
        } else {
            this.first.consume(amt);
        }
    }
}
