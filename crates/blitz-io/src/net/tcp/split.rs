//! Read and write halves of a [`TcpStream`].

#![forbid(unsafe_code)]

use std::{
    future::poll_fn,
    io, net,
    task::{Context, Poll},
};

use super::stream::TcpStream;
use crate::io::ReadBuf;

halves!(TcpStream, net::TcpStream, net::SocketAddr, tcp_pair!("mut stream"));

/// Defines `peek` and `poll_peek` of the read half.
macro_rules! peeking_methods {
    ($begin:expr) => {
        /// Polls to read without removing the bytes from the stream, and returns their number.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse std::future::poll_fn;\nuse blitz_io::io::ReadBuf;\n", $begin)]
        /// peer.writable().await?;
        /// peer.try_write(b"hello")?;
        ///
        /// let mut memory = [0; 16];
        /// let mut buf = ReadBuf::new(&mut memory);
        /// assert_eq!(poll_fn(|cx| reader.poll_peek(cx, &mut buf)).await?, 5);
        #[doc = example_end!()]
        pub fn poll_peek(
            &mut self,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<usize>> {
            self.as_ref().poll_peek(cx, buf)
        }

        /// Reads without removing the bytes from the stream, and returns their number.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost if the future is dropped.
        ///
        /// # Examples
        ///
        #[doc = concat!("```\n", $begin)]
        /// peer.writable().await?;
        /// peer.try_write(b"hello")?;
        ///
        /// let mut buf = [0; 16];
        /// assert_eq!(reader.peek(&mut buf).await?, 5);
        /// assert_eq!(reader.peek(&mut buf).await?, 5);
        #[doc = example_end!()]
        pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let mut buf = ReadBuf::new(buf);
            poll_fn(|cx| self.poll_peek(cx, &mut buf)).await
        }
    };
}

impl ReadHalf<'_> {
    peeking_methods!(concat!(
        tcp_pair!("mut stream"),
        "\nlet (mut reader, _writer) = stream.split();"
    ));
}

impl OwnedReadHalf {
    peeking_methods!(concat!(
        tcp_pair!("stream"),
        "\nlet (mut reader, _writer) = stream.into_split();"
    ));
}
