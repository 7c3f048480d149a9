//! Tests byte streams: the traits of `io`, their methods, and everything that is made of them.

#[cfg(unix)]
#[allow(deprecated, reason = "programs use deprecated functions, too")]
mod async_fd;
mod auto_traits;
mod buffered;
mod chain_take;
mod copy;
mod duplex;
mod duplex_model;
mod compared_with_std;
mod numbers;
mod read;
mod read_buf;
mod read_to_end;
mod read_until;
mod seek;
mod split;
#[cfg(all(unix, feature = "io-std"))]
mod stdio;
mod trait_impls;
mod write;
