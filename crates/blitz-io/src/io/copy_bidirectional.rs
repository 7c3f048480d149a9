//! `copy_bidirectional`: copies both ways at once between two streams, as a proxy does.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{AsyncRead, AsyncWrite, copy::Transfer};
use crate::engine::work::task::budget;

/// Copies bytes in both directions between `a` and `b`.
///
/// When one stream ends, all its bytes are written and flushed to the other, which is then
/// shut down for writing; the other direction goes on until it ends as well. Returns the
/// number of bytes copied from `a` to `b` and from `b` to `a`. Operations that return
/// `Interrupted` are tried again.
///
/// Each direction has a buffer of 8 KiB. Once 8 MiB were copied it has 64 KiB while reads
/// fill it.
///
/// # Errors
///
/// Returns the first error of any read or write of either stream, which ends both
/// directions; the number of bytes copied is not available then.
///
/// # Cancel safety
///
/// This function is not cancel safe: bytes that were read and not written are lost with the
/// future.
///
/// # Examples
///
/// ```
/// use blitz_io::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # blitz_io::run(async {
/// let (mut client, mut a) = io::duplex(64);
/// let (mut b, mut server) = io::duplex(64);
/// let proxy = blitz_io::spawn(async move { io::copy_bidirectional(&mut a, &mut b).await });
///
/// client.write_all(b"ping").await?;
/// client.shutdown().await?;
/// let mut request = String::new();
/// server.read_to_string(&mut request).await?;
/// server.write_all(b"hello").await?;
/// server.shutdown().await?;
/// assert_eq!((request.as_str(), proxy.await.unwrap()?), ("ping", (4, 5)));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn copy_bidirectional<A, B>(a: &mut A, b: &mut B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    copy_both_ways(a, b, Transfer::adaptive(), Transfer::adaptive()).await
}

/// Copies bytes in both directions between `a` and `b`, with buffers of the given sizes.
///
/// This function works like [`copy_bidirectional`], with buffers that do not change their
/// size.
///
/// # Panics
///
/// Panics when awaited, if either size is zero.
///
/// # Examples
///
/// ```
/// use blitz_io::io;
///
/// # blitz_io::run(async {
/// let (mut a, _) = io::duplex(64);
/// let (mut b, _) = io::duplex(64);
/// let copied = io::copy_bidirectional_with_sizes(&mut a, &mut b, 16, 1024).await?;
/// assert_eq!(copied, (0, 0));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub async fn copy_bidirectional_with_sizes<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    assert!(a_to_b_buf_size > 0, "`a_to_b_buf_size` must be greater than 0");
    assert!(b_to_a_buf_size > 0, "`b_to_a_buf_size` must be greater than 0");
    copy_both_ways(a, b, Transfer::with_size(a_to_b_buf_size), Transfer::with_size(b_to_a_buf_size))
        .await
}

async fn copy_both_ways<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b: Transfer,
    b_to_a: Transfer,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let (mut a_to_b, mut b_to_a) = (TransferState::Copying(a_to_b), TransferState::Copying(b_to_a));
    // The direction that is polled first may use up the budget in every poll, and the other
    // one would never move. So the other one is polled first the next time.
    let mut b_first = false;
    std::future::poll_fn(|cx| {
        let (there, back);
        if b_first {
            back = b_to_a.poll(cx, b, a)?;
            b_first = budget::has_remaining();
            there = a_to_b.poll(cx, a, b)?;
        } else {
            there = a_to_b.poll(cx, a, b)?;
            b_first = !budget::has_remaining();
            back = b_to_a.poll(cx, b, a)?;
        }
        Poll::Ready(Ok((ready!(there), ready!(back))))
    })
    .await
}

/// The state of one of the two directions.
enum TransferState {
    Copying(Transfer),
    /// The reader has ended, after this many bytes, and all of them are flushed.
    Closing(u64),
    /// The writer is shut down, after this many bytes.
    Closed(u64),
}

impl TransferState {
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        if let Self::Copying(transfer) = self {
            let total = ready!(transfer.poll(cx, Pin::new(reader), Pin::new(&mut *writer)))?;
            *self = Self::Closing(total);
        }
        if let Self::Closing(total) = *self {
            ready!(Pin::new(writer).poll_shutdown(cx))?;
            *self = Self::Closed(total);
        }
        let Self::Closed(total) = *self else {
            unreachable!("a transfer shuts its writer down before it is closed")
        };
        Poll::Ready(Ok(total))
    }
}
