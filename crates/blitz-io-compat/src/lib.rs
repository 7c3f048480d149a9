//! Bridges between blitz-io and what was written for other traits.
//!
//! A library that asks for hyper's, futures-io's or Tokio's traits takes a socket of
//! blitz-io in a wrapper, and the other way round. A wrapper holds the value and nothing
//! else that costs: each call is handed on as one call, nothing is buffered, and nothing
//! waits that would not have waited without it.
//!
//! | feature | for | wrapper |
//! |---|---|---|
//! | `hyper` | `hyper::rt::{Read, Write}`, both ways | `HyperIo` |
//! | | `hyper::rt::{Timer, Sleep}` | `HyperTimer`, `HyperSleep` |
//! | | `hyper::rt::Executor` | `HyperExecutor` |
//! | `futures-io` | `AsyncRead`, `AsyncBufRead`, `AsyncWrite`, `AsyncSeek`, both ways | `FuturesIo` |
//! | `tokio` | the same four traits of the real Tokio, both ways | `TokioIo` |
//!
//! None is on by default. `tokio` builds the real Tokio for its traits alone. It has no
//! place in a program where blitz-io stands in for Tokio by a patch: there, the traits are
//! the same ones already.
//!
//! # Unsafe code
//!
//! There is one place, which lends a buffer of hyper's without zeroing it first; see
//! `for_hyper/io.rs`.
//!
//! # Examples
//!
//! ```
//! use blitz_io::io::{AsyncReadExt, AsyncWriteExt};
//! use blitz_io_compat::FuturesIo;
//!
//! # blitz_io::run(async {
//! // What only knows futures-io's traits writes into a pipe of ours.
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
