//! Tests streams.

#[cfg(all(feature = "sync", feature = "time"))]
mod combinators;
#[cfg(all(feature = "sync", feature = "net", feature = "io-util"))]
mod wrappers;
