//! What comes into the process.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use super::{blocking::Reading, handles::handles};
use crate::io::{AsyncRead, ReadBuf};

/// A handle to the standard input stream of a process; made by [`stdin`].
///
/// A read is a job of the threads for blocking work, and nothing can stop it: a runtime
/// that is dropped waits for it, until a line comes or the stream ends. Programs that
/// talk with a person do better with a thread of their own that reads and sends. What a
/// read brings after its future was dropped is kept for the next read of this handle;
/// two handles do not share it.
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
    reading: Reading<io::Stdin>,
    std: io::Stdin,
}

/// Constructs a new handle to the standard input of the current process.
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
    Stdin { reading: Reading::new(io::stdin()), std: io::stdin() }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reading).poll_read(cx, buf)
    }
}

handles!(Stdin);
