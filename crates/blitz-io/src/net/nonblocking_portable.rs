//! Opens and accepts sockets, then makes them non-blocking with a second call, on platforms without
//! the calls of `nonblocking.rs`.

#![forbid(unsafe_code)]

use std::{ffi::c_int, io};

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

/// No flag, because on these platforms the sockets themselves raise no signal.
pub(super) const NO_SIGNAL: c_int = 0;

pub(super) fn accept(listener: &SockRef<'_>) -> io::Result<(Socket, SockAddr)> {
    let (socket, address) = listener.accept()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

pub(super) fn open(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    let socket = Socket::new(domain, kind, protocol)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
