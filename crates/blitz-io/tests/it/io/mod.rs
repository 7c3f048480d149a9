//! Byte streams: the traits of `io`, their methods, and everything that is made of them.

#[cfg(all(unix, feature = "net"))]
mod async_fd;
#[cfg(all(unix, feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
#[allow(deprecated, reason = "what programs have is tested too")]
mod async_fd_readiness;
mod auto_traits;
mod buffered;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod buffered_calls;
mod by_hand;
mod chain_take;
mod copy;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod copy_streams;
mod duplex;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod duplex_model;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod in_memory;
mod like_std;
mod numbers;
mod read;
mod read_buf;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod read_buf_bytes;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod read_slow;
mod read_to_end;
mod read_until;
mod script;
mod seek;
mod split;
#[cfg(all(unix, feature = "io-std"))]
mod stdio;
mod traits;
mod write;
#[cfg(all(feature = "macros", feature = "net", feature = "sync", feature = "test-util"))]
mod write_slow;
