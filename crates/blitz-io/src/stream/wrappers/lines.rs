//! Streams of lines, and of pieces between delimiter bytes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::io::{AsyncBufRead, Lines, Split};

pin_project! {
    /// A stream of the lines of a reader, without line endings, which ends with the reader.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{io::AsyncBufReadExt, stream::{StreamExt, wrappers::LinesStream}};
    ///
    /// # blitz_io::run(async {
    /// let mut lines = LinesStream::new(b"one\ntwo\n".as_slice().lines());
    /// assert_eq!(lines.try_next().await?.as_deref(), Some("one"));
    /// assert_eq!(lines.try_next().await?.as_deref(), Some("two"));
    /// assert_eq!(lines.try_next().await?, None);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[derive(Debug)]
    pub struct LinesStream<R> {
        #[pin]
        inner: Lines<R>,
    }
}

pin_project! {
    /// A stream of the pieces of a reader between delimiter bytes, which ends with the reader.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::io::{AsyncBufReadExt, BufReader};
    /// use blitz_io::stream::{StreamExt, wrappers::SplitStream};
    ///
    /// # blitz_io::run(async {
    /// let mut pieces = SplitStream::new(BufReader::new(b"one,two".as_slice()).split(b','));
    /// assert_eq!(pieces.try_next().await?.as_deref(), Some(b"one".as_slice()));
    /// assert_eq!(pieces.try_next().await?.as_deref(), Some(b"two".as_slice()));
    /// assert_eq!(pieces.try_next().await?, None);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[derive(Debug)]
    pub struct SplitStream<R> {
        #[pin]
        inner: Split<R>,
    }
}

macro_rules! pieces {
    ($($name:ident, $pieces:ident, $item:ty, $poll:ident, $make:literal;)*) => {$(
        impl<R> $name<R> {
            /// Creates a stream from the given reader of lines or pieces.
            ///
            /// # Examples
            ///
            /// ```
            /// use blitz_io::{io::{AsyncBufReadExt, BufReader}, stream::wrappers::*};
            ///
            #[doc = concat!("let stream = ", stringify!($name), "::new(BufReader::new(b\"\".as_slice()).", $make, ");")]
            /// ```
            pub fn new(inner: $pieces<R>) -> Self {
                Self { inner }
            }

            /// Returns the wrapped reader of lines or pieces.
            ///
            /// # Examples
            ///
            /// ```
            /// use blitz_io::{io::{AsyncBufReadExt, BufReader}, stream::wrappers::*};
            ///
            #[doc = concat!("let stream = ", stringify!($name), "::new(BufReader::new(b\"\".as_slice()).", $make, ");")]
            /// let inner = stream.into_inner();
            /// ```
            pub fn into_inner(self) -> $pieces<R> {
                self.inner
            }

            /// Returns a pinned mutable reference to the wrapped reader of lines or pieces.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::pin::pin;
            /// use blitz_io::{io::{AsyncBufReadExt, BufReader}, stream::wrappers::*};
            ///
            #[doc = concat!("let mut stream = pin!(", stringify!($name), "::new(BufReader::new(b\"\".as_slice()).", $make, "));")]
            /// let inner = stream.as_mut().as_pin_mut();
            /// ```
            pub fn as_pin_mut(self: Pin<&mut Self>) -> Pin<&mut $pieces<R>> {
                self.project().inner
            }
        }

        impl<R: AsyncBufRead> Stream for $name<R> {
            type Item = io::Result<$item>;

            fn poll_next(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<Option<io::Result<$item>>> {
                self.project().inner.$poll(cx).map(Result::transpose)
            }
        }

        impl<R> AsRef<$pieces<R>> for $name<R> {
            fn as_ref(&self) -> &$pieces<R> {
                &self.inner
            }
        }

        impl<R> AsMut<$pieces<R>> for $name<R> {
            fn as_mut(&mut self) -> &mut $pieces<R> {
                &mut self.inner
            }
        }
    )*};
}

pieces! {
    LinesStream, Lines, String, poll_next_line, "lines()";
    SplitStream, Split, Vec<u8>, poll_next_segment, "split(b',')";
}
