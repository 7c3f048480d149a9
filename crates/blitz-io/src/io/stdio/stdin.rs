//! `Stdin`: the standard input of the process.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use super::{blocking::BlockingReader, handles::handles};
use crate::io::{AsyncRead, ReadBuf};

/// The standard input of the process; created by [`stdin`].
///
/// A read is a job on the blocking pool, and nothing can stop it: a runtime that is dropped
/// waits for it, until a line comes or the stream ends. For interactive programs a thread
/// of their own that reads and sends is the better choice. Bytes that a read returns after
/// its future was dropped are kept for the next read of this handle; two handles do not
/// share them.
///
/// # Examples
///
/// ```no_run
/// use blitz_io::io::{self, AsyncBufReadExt, BufReader};
///
/// # blitz_io::run(async {
/// let mut lines = BufReader::new(io::stdin()).lines();
/// while let Some(line) = lines.next_line().await? {
///     println!("{} bytes", line.len());
/// }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Stdin {
    inner: BlockingReader<io::Stdin>,
    std: io::Stdin,
}

/// Creates a handle to the standard input of the process.
///
/// # Examples
///
/// ```no_run
/// use blitz_io::io::AsyncReadExt;
///
/// # blitz_io::run(async {
/// let mut all = String::new();
/// blitz_io::io::stdin().read_to_string(&mut all).await?;
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn stdin() -> Stdin {
    Stdin { inner: BlockingReader::new(io::stdin()), std: io::stdin() }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

handles!(Stdin);
