//! Traits and types for asynchronous I/O.
//!
//! The traits have the shapes of those in `std::io`, with one difference: where a method of
//! std would block the thread or return `WouldBlock`, a method here returns
//! [`Poll::Pending`](std::task::Poll::Pending) and wakes the task later.
//!
//! - [`AsyncRead`] reads bytes from a source into a [`ReadBuf`];
//! - [`AsyncBufRead`] is a source with a buffer of its own that callers can look at;
//! - [`AsyncWrite`] writes bytes to a sink;
//! - [`AsyncSeek`] moves the position in a source or sink that has one.
//!
//! Programs call them through the extension traits (feature `io-util`). The methods of the
//! extension traits return futures.
//!
//! # Unsafe code
//!
//! Unsafe code is in `read_buf.rs`, which tracks how much of a buffer is initialised, and
//! in `raw.rs` and `unix/raw.rs`. A test refuses it anywhere else in this folder.

mod async_read;
mod async_buf_read;
mod async_write;
mod async_seek;
mod read_buf;
#[cfg(feature = "io-util")]
mod raw;
#[cfg(feature = "io-util")]
mod ext;

#[cfg(any(feature = "io-util", feature = "io-std"))]
#[cfg_attr(not(feature = "io-util"), allow(dead_code, reason = "standard streams need less"))]
mod window;
#[cfg(feature = "io-util")]
mod buf_reader;
#[cfg(feature = "io-util")]
mod buf_writer;
#[cfg(feature = "io-util")]
mod buf_stream;
#[cfg(feature = "io-util")]
mod copy;
#[cfg(feature = "io-util")]
mod copy_buf;
#[cfg(feature = "io-util")]
mod copy_bidirectional;
#[cfg(feature = "io-util")]
mod pipe;
#[cfg(feature = "io-util")]
mod split;
#[cfg(feature = "io-util")]
mod duplex;
#[cfg(feature = "io-util")]
mod simplex;
#[cfg(feature = "io-util")]
mod join;
#[cfg(feature = "io-util")]
mod sink;
#[cfg(feature = "io-util")]
mod empty;
#[cfg(feature = "io-util")]
mod repeat;
#[cfg(feature = "io-std")]
pub(crate) mod stdio;
#[cfg(all(unix, feature = "net", feature = "rt"))]
pub mod unix;

#[cfg(feature = "io-util")]
pub use self::ext::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, Chain, Lines, Split, Take,
};
pub use self::{
    async_buf_read::AsyncBufRead, async_read::AsyncRead, async_seek::AsyncSeek,
    async_write::AsyncWrite, read_buf::ReadBuf,
};

#[cfg(feature = "net")]
pub use crate::engine::driver::{interest::Interest, ready::Ready};

#[cfg(feature = "io-util")]
pub use self::{
    buf_reader::BufReader,
    buf_stream::BufStream,
    buf_writer::BufWriter,
    copy::copy,
    copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes},
    copy_buf::copy_buf,
    duplex::{DuplexStream, duplex},
    empty::{Empty, empty},
    join::{Join, join},
    repeat::{Repeat, repeat},
    simplex::{SimplexStream, simplex},
    sink::{Sink, sink},
    split::{ReadHalf, WriteHalf, split},
};

#[cfg(feature = "io-std")]
pub use self::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

// Re-exported so that a program that imports this module need not import `std::io` too.
#[doc(no_inline)]
pub use std::io::{Error, ErrorKind, Result, SeekFrom};
