//! Stands in for `uring.rs` on architectures that the `io-uring` crate does not support: the
//! backend cannot be chosen there, and `Auto` uses epoll as it does elsewhere.

#![forbid(unsafe_code)]

use std::{io, time::Duration};

use super::{Fd, backend::Events, interest::Interest, ready::Ready, record_table::Token};

/// The uninhabited io_uring selector.
#[derive(Debug)]
pub(super) enum UringSelector {}

impl UringSelector {
    /// Refuses to create a selector.
    ///
    /// # Errors
    /// Always returns an error.
    pub(super) fn new() -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "io_uring is not supported on this architecture",
        ))
    }

    pub(super) fn add(&self, _: Fd<'_>, _: Token, _: Interest) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn remove(&self, _: Fd<'_>, _: Token) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn forget(&self, _: Token) {
        match *self {}
    }

    pub(super) fn rearm(&self, _: Token, _: Ready) {
        match *self {}
    }

    pub(super) fn signal(&self) {
        match *self {}
    }

    pub(super) fn wait(&self, _: &mut Events, _: Option<Duration>) -> io::Result<()> {
        match *self {}
    }
}
