//! Bridges between blitz-io and libraries that use other I/O traits.
//!
//! A library that requires hyper's, futures-io's or Tokio's traits accepts a socket of blitz-io in
//! a wrapper, and the other way round. A wrapper adds no cost to the value: each call is forwarded
//! as one call, nothing is buffered, and no operation waits that would not have waited without it.
//!
//! | feature | for | wrapper |
//! |---|---|---|
//! | `hyper` | `hyper::rt::{Read, Write}`, both ways | `HyperIo` |
//! | | `hyper::rt::{Timer, Sleep}` | `HyperTimer`, `HyperSleep` |
//! | | `hyper::rt::Executor` | `HyperExecutor` |
//! | `futures-io` | `AsyncRead`, `AsyncBufRead`, `AsyncWrite`, `AsyncSeek`, both ways | `FuturesIo` |
//! | `tokio` | the same four traits of the real Tokio, both ways | `TokioIo` |
//!
//! No feature is enabled by default. `tokio` builds the real Tokio for its traits alone. It is of
//! no use in a program where a patch replaces Tokio by blitz-io: there, both have the same traits
//! already.
//!
//! # Unsafe code
//!
//! There is one place, which passes a buffer of hyper's without zeroing it first; see
//! `for_hyper/io.rs`.
//!
//! # Examples
//!
//! ```
//! use blitz_io::io::{AsyncReadExt, AsyncWriteExt};
//! use blitz_io_compat::FuturesIo;
//!
//! # blitz_io::run(async {
//! // Code that knows only futures-io's traits writes into a pipe of ours.
//! let (near, mut far) = blitz_io::io::duplex(64);
//! let mut near = FuturesIo::new(near);
//! futures_util::AsyncWriteExt::write_all(&mut near, b"hello").await?;
//! drop(near);
//!
//! let mut heard = String::new();
//! far.read_to_string(&mut heard).await?;
//! assert_eq!(heard, "hello");
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(any(feature = "hyper", feature = "futures-io", feature = "tokio"))]
#[macro_use]
mod wrapper;
#[cfg(feature = "hyper")]
mod for_hyper;
#[cfg(feature = "futures-io")]
mod for_futures;
#[cfg(feature = "tokio")]
mod for_tokio;

#[cfg(feature = "futures-io")]
pub use self::for_futures::FuturesIo;
#[cfg(feature = "hyper")]
pub use self::for_hyper::{HyperExecutor, HyperIo, HyperSleep, HyperTimer};
#[cfg(feature = "tokio")]
pub use self::for_tokio::TokioIo;
