//! Tests sockets, pipes and name lookup.

mod cancel_safety;
mod failures;
mod fairness;
mod hostile_driver;
mod lookup;
#[cfg(windows)]
mod named_pipe;
#[cfg(unix)]
mod owned_buffers;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod queued_bytes;
mod shared_sockets;
mod shutdown;
mod stress;
mod tcp;
mod tcp_readiness;
mod tcp_socket;
mod tcp_split;
mod udp;
#[cfg(unix)]
mod unix_addresses;
#[cfg(unix)]
mod unix_datagram;
#[cfg(unix)]
mod unix_stream;
