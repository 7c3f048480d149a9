//! Sockets, pipes and name lookup.

#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod cancel_safety;
#[cfg(all(feature = "net", feature = "io-util"))]
mod connected;
#[cfg(all(feature = "net", feature = "io-util"))]
mod failures;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod fairness;
mod hostile_driver;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod lookup;
#[cfg(all(
    windows,
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod named_pipe;
#[cfg(all(
    unix,
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod owned;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
pub(crate) mod pairs;
#[cfg(all(
    unix,
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod pipe;
#[cfg(all(
    unix,
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod queued_bytes;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod shared;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod shutdown;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod stress;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod tcp;
#[cfg(all(feature = "net", feature = "io-util"))]
mod tcp_basics;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod tcp_socket;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod tcp_split;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod udp;
#[cfg(all(feature = "net", feature = "io-util"))]
mod udp_basics;
#[cfg(all(unix, feature = "net", feature = "io-util"))]
mod unix_basics;
#[cfg(all(
    unix,
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod unix_datagram;
#[cfg(all(
    unix,
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod unix_stream;
