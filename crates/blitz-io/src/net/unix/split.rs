//! Read and write halves of a [`UnixStream`].

#![forbid(unsafe_code)]

use std::os::unix::net;

use super::{SocketAddr, stream::UnixStream};

halves!(UnixStream, net::UnixStream, SocketAddr, unix_pair!("mut stream"));
