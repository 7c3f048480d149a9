//! Opens and accepts sockets in non-blocking mode with one call, and has a flag with which each
//! send raises no signal. Platforms without these calls use
//! `nonblocking_portable.rs` instead.

#![forbid(unsafe_code)]

use std::{ffi::c_int, io};

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

/// Flag of each send that keeps it from raising a signal.
pub(super) const NO_SIGNAL: c_int = libc::MSG_NOSIGNAL;

pub(super) fn accept(listener: &SockRef<'_>) -> io::Result<(Socket, SockAddr)> {
    listener.accept4(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)
}

pub(super) fn open(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    Socket::new(domain, kind.nonblocking(), protocol)
}
