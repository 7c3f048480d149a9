//! A scripted stream that records the calls made to it.
//!
//! It implements the traits of all sides, so that each bridge can be built on it.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

/// The result of the next call.
#[derive(Debug)]
pub(crate) enum Step {
    /// These bytes are available to read.
    Bytes(&'static [u8]),
    /// A write accepts this many bytes.
    Takes(usize),
    /// The call returns `Pending`; the waker is woken at once.
    Pending,
    /// The call fails.
    Fails(io::ErrorKind),
}

/// A stream that follows a script. Without a step left it is at its end, and accepts every write.
#[derive(Debug, Default)]
pub(crate) struct Script {
    steps: VecDeque<Step>,
    /// The value that `is_write_vectored` returns.
    pub(crate) gathers: bool,
    /// The bytes that were written.
    pub(crate) written: Vec<u8>,
    /// The calls, in order.
    pub(crate) calls: Vec<&'static str>,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }

    fn step(&mut self, call: &'static str, cx: &mut Context<'_>) -> Poll<io::Result<Option<Step>>> {
        self.calls.push(call);
        match self.steps.pop_front() {
            Some(Step::Pending) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Step::Fails(kind)) => Poll::Ready(Err(kind.into())),
            other => Poll::Ready(Ok(other)),
        }
    }

    /// Returns the bytes available to read, at most `room`; the rest is available at the next call.
    fn read(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<&'static [u8]>> {
        self.step("read", cx).map_ok(|step| match step {
            Some(Step::Bytes(bytes)) => {
                let (now, later) = bytes.split_at(bytes.len().min(room));
                if !later.is_empty() {
                    self.steps.push_front(Step::Bytes(later));
                }
                now
            }
            _ => &[],
        })
    }

    fn write(
        &mut self,
        call: &'static str,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.step(call, cx).map_ok(|step| {
            let mut bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            if let Some(Step::Takes(most)) = step {
                bytes.truncate(most);
            }
            self.written.extend(&bytes);
            bytes.len()
        })
    }

    fn other(&mut self, call: &'static str, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.step(call, cx).map_ok(drop)
    }
}

impl futures_util::io::AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().read(cx, buf.len()).map_ok(|bytes| {
            buf[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        })
    }
}

macro_rules! reads {
    ($trait:path, $buf:ty) => {
        impl $trait for Script {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                #[allow(unused_mut, reason = "one is passed by value")] mut buf: $buf,
            ) -> Poll<io::Result<()>> {
                let room = buf.remaining();
                self.get_mut().read(cx, room).map_ok(|bytes| buf.put_slice(bytes))
            }
        }
    };
}

reads!(blitz_io::io::AsyncRead, &mut blitz_io::io::ReadBuf<'_>);
reads!(tokio::io::AsyncRead, &mut tokio::io::ReadBuf<'_>);
reads!(hyper::rt::Read, hyper::rt::ReadBufCursor<'_>);

macro_rules! writes {
    ($trait:path, $end:ident $(, $is_write_vectored:ident)?) => {
        impl $trait for Script {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.get_mut().write("write", cx, &[IoSlice::new(buf)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.get_mut().write("write_vectored", cx, bufs)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.get_mut().other("flush", cx)
            }

            fn $end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.get_mut().other("end", cx)
            }

            $(fn $is_write_vectored(&self) -> bool {
                self.gathers
            })?
        }
    };
}

writes!(blitz_io::io::AsyncWrite, poll_shutdown, is_write_vectored);
writes!(tokio::io::AsyncWrite, poll_shutdown, is_write_vectored);
writes!(hyper::rt::Write, poll_shutdown, is_write_vectored);
writes!(futures_util::io::AsyncWrite, poll_close);
