//! Tests graceful shutdown.

#[cfg(all(feature = "sync", feature = "time"))]
mod graceful;
