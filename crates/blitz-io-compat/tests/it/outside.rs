//! A bridge as its user sees it, through the traits of any side.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use crate::script::Script;

/// The methods of a stream, through the traits of one side.
pub(crate) trait Outside {
    /// Creates the bridge on top of a script.
    fn on(script: Script) -> Self;
    fn script(&self) -> &Script;
    /// Reads into a buffer of `room` bytes, of which the first two are filled already if the side
    /// has such buffers; returns what was added.
    fn read(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<Vec<u8>>>;
    fn write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>>;
    fn gather(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;
    /// Returns whether writes are vectored; `None` if the traits have no such method.
    fn gathers(&self) -> Option<bool>;
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// Implements a side whose buffer records its filled part, and is passed by reference.
macro_rules! marked {
    ($buf:ty, $stream:expr, $cx:expr, $room:expr) => {{
        let mut memory = vec![std::mem::MaybeUninit::uninit(); 2 + $room];
        let mut buf = <$buf>::uninit(&mut memory);
        buf.put_slice(b"--");
        let result = $stream.poll_read($cx, &mut buf);
        let (before, added) = buf.filled().split_at(2);
        assert_eq!(before, b"--", "what was filled before was touched");
        let added = added.to_vec();
        assert!(matches!(result, Poll::Ready(Ok(()))) || added.is_empty(), "added, and no success");
        result.map_ok(|()| added)
    }};
}

/// Implements a side whose buffer is passed as a cursor.
macro_rules! cursor {
    ($buf:ty, $stream:expr, $cx:expr, $room:expr) => {{
        let mut memory = vec![std::mem::MaybeUninit::uninit(); 2 + $room];
        let mut buf = <$buf>::uninit(&mut memory);
        buf.unfilled().put_slice(b"--");
        let result = $stream.poll_read($cx, buf.unfilled());
        let (before, added) = buf.filled().split_at(2);
        assert_eq!(before, b"--", "what was filled before was touched");
        let added = added.to_vec();
        assert!(matches!(result, Poll::Ready(Ok(()))) || added.is_empty(), "added, and no success");
        result.map_ok(|()| added)
    }};
}

/// Implements a side that reads into plain bytes.
macro_rules! plain {
    ($buf:ty, $stream:expr, $cx:expr, $room:expr) => {{
        let mut bytes: $buf = vec![0; $room];
        $stream.poll_read($cx, &mut bytes).map_ok(|count| bytes[..count].to_vec())
    }};
}

macro_rules! outside {
    ($name:ident: $wrapper:ident by $read:path, $write:path, $end:ident,
     $how:ident $buf:ty, $gathers:expr) => {
        pub(crate) struct $name(blitz_io_compat::$wrapper<Script>);

        impl Outside for $name {
            fn on(script: Script) -> Self {
                Self(blitz_io_compat::$wrapper::new(script))
            }

            fn script(&self) -> &Script {
                self.0.get_ref()
            }

            fn read(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<Vec<u8>>> {
                use $read as Read;
                fn reader<R: Read>(reader: Pin<&mut R>) -> Pin<&mut impl Read> {
                    reader
                }
                $how!($buf, reader(Pin::new(&mut self.0)), cx, room)
            }

            fn write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                use $write as Write;
                Write::poll_write(Pin::new(&mut self.0), cx, buf)
            }

            fn gather(
                &mut self,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                use $write as Write;
                Write::poll_write_vectored(Pin::new(&mut self.0), cx, bufs)
            }

            fn gathers(&self) -> Option<bool> {
                let gathers: fn(&blitz_io_compat::$wrapper<Script>) -> Option<bool> = $gathers;
                gathers(&self.0)
            }

            fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                use $write as Write;
                Write::poll_flush(Pin::new(&mut self.0), cx)
            }

            fn end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                use $write as Write;
                Write::$end(Pin::new(&mut self.0), cx)
            }
        }
    };
}

outside!(TokioOutside: TokioIo by tokio::io::AsyncRead, tokio::io::AsyncWrite, poll_shutdown,
    marked tokio::io::ReadBuf<'_>, |it| Some(tokio::io::AsyncWrite::is_write_vectored(it)));
outside!(TokioInside: TokioIo by blitz_io::io::AsyncRead, blitz_io::io::AsyncWrite, poll_shutdown,
    marked blitz_io::io::ReadBuf<'_>, |it| Some(blitz_io::io::AsyncWrite::is_write_vectored(it)));
outside!(HyperOutside: HyperIo by hyper::rt::Read, hyper::rt::Write, poll_shutdown,
    cursor hyper::rt::ReadBuf<'_>, |it| Some(hyper::rt::Write::is_write_vectored(it)));
outside!(HyperInside: HyperIo by blitz_io::io::AsyncRead, blitz_io::io::AsyncWrite, poll_shutdown,
    marked blitz_io::io::ReadBuf<'_>, |it| Some(blitz_io::io::AsyncWrite::is_write_vectored(it)));
outside!(FuturesOutside: FuturesIo by futures_util::io::AsyncRead, futures_util::io::AsyncWrite,
    poll_close, plain Vec<u8>, |_| None);
// The inner traits have no such method, so the bridge returns `None` too.
outside!(FuturesInside: FuturesIo by blitz_io::io::AsyncRead, blitz_io::io::AsyncWrite,
    poll_shutdown, marked blitz_io::io::ReadBuf<'_>, |_| None);
