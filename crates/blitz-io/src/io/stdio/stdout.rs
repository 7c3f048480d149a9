//! `Stdout` and `Stderr`: the standard output and the standard error of the process.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    blocking::{BlockingWriter, DEFAULT_MAX_BUF_SIZE},
    handles::handles,
};
use crate::io::AsyncWrite;

/// The standard output of the process; created by [`stdout`].
///
/// A write hands its bytes over and returns. A thread of the blocking pool writes them, in
/// the order of this handle's writes, and in one piece as far as they fit into 2 MiB. The
/// next write or flush returns the error, if there was one. Two handles have no order
/// between them, and neither have this handle and `println!`.
///
/// Call [`flush`](crate::io::AsyncWriteExt::flush) to wait until everything is written.
/// Bytes that a write has accepted are written even if the runtime shuts down first, but
/// std's own buffer of an unfinished line is only flushed by that call, or at the end of
/// the process.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let mut stdout = io::stdout();
/// stdout.write_all(b"hello\n").await?;
/// stdout.flush().await?;
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Stdout {
    inner: BlockingWriter<io::Stdout>,
    std: io::Stdout,
}

/// Creates a handle to the standard output of the process.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// io::copy(&mut &b"copied\n"[..], &mut io::stdout()).await?;
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn stdout() -> Stdout {
    Stdout { inner: BlockingWriter::new(io::stdout()), std: io::stdout() }
}

/// The standard error of the process; created by [`stderr`].
///
/// This handle behaves like [`Stdout`], but std does not buffer the stream.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let mut stderr = io::stderr();
/// stderr.write_all(b"that went wrong\n").await?;
/// stderr.flush().await?;
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Stderr {
    inner: BlockingWriter<io::Stderr>,
    std: io::Stderr,
}

/// Creates a handle to the standard error of the process.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// io::stderr().write_all(b"that too\n").await?;
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn stderr() -> Stderr {
    Stderr { inner: BlockingWriter::new(io::stderr()), std: io::stderr() }
}

handles!(Stdout);
handles!(Stderr);

/// Implements `AsyncWrite` for a handle that has a field `inner`.
macro_rules! writes {
    ($name:ident) => {
        impl AsyncWrite for $name {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                let buf = if cfg!(windows) {
                    cut_at_char_boundary(buf, DEFAULT_MAX_BUF_SIZE)
                } else {
                    buf
                };
                Pin::new(&mut self.inner).poll_write(cx, buf)
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.inner).poll_flush(cx)
            }

            fn poll_shutdown(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.inner).poll_shutdown(cx)
            }
        }
    };
}
writes!(Stdout);
writes!(Stderr);

/// The number of bytes at the start that decide whether the bytes are text: enough that
/// other bytes hardly pass by chance; chosen, not measured.
const UTF8_PROBE: usize = 32;

/// Returns as much of `bytes` as one write may take.
///
/// Text is not cut inside a character, because a Windows console refuses bytes that are not
/// UTF-8.
fn cut_at_char_boundary(bytes: &[u8], limit: usize) -> &[u8] {
    if bytes.len() <= limit {
        return bytes;
    }
    let first = &bytes[..limit.min(UTF8_PROBE)];
    // An error without a length means a character that continues after these bytes.
    if std::str::from_utf8(first).is_err_and(|error| error.error_len().is_some()) {
        return &bytes[..limit];
    }
    // A character has at most four bytes, and all but the first begin with the bits 10.
    let is_start = |at: &usize| bytes[*at] & 0b1100_0000 != 0b1000_0000;
    let cut = (limit.saturating_sub(3)..=limit).rev().find(is_start);
    &bytes[..cut.filter(|cut| *cut > 0).unwrap_or(limit)]
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::cut_at_char_boundary;

    #[test]
    fn text_is_cut_between_characters() {
        let text = "aé€😀".repeat(20);
        for limit in 4..text.len() {
            let cut = cut_at_char_boundary(text.as_bytes(), limit);
            assert!(std::str::from_utf8(cut).is_ok(), "cut at {limit}");
            assert!(cut.len() <= limit && cut.len() + 3 >= limit, "no shorter than needed");
        }
        assert_eq!(cut_at_char_boundary(b"abc", 3), b"abc");
    }

    #[test]
    fn other_bytes_are_cut_anywhere() {
        let bytes = [0xFF; 100];
        assert_eq!(cut_at_char_boundary(&bytes, 64).len(), 64);
        let stray = [0x80; 100];
        assert_eq!(cut_at_char_boundary(&stray, 1).len(), 1);
        // Text first, then bytes of which none begins a character.
        let mixed = [[b'a'; 40], [0x80; 40]].concat();
        assert_eq!(cut_at_char_boundary(&mixed, 60).len(), 60);
    }
}
