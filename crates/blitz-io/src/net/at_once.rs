//! Sockets that are opened and accepted in non-blocking mode by one call, and told with each
//! send to raise no signal. Where that is not had, `in_steps.rs` takes the place of this file.

#![forbid(unsafe_code)]

use std::{ffi::c_int, io};

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

/// A flag of each send.
pub(super) const NO_SIGNAL: c_int = libc::MSG_NOSIGNAL;

pub(super) fn accept(listener: &SockRef<'_>) -> io::Result<(Socket, SockAddr)> {
    listener.accept4(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)
}

pub(super) fn open(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    Socket::new(domain, kind.nonblocking(), protocol)
}
