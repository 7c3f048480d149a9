//! Stands in for `system.rs` on architectures that the `io-uring` crate does not support: there is
//! no ring.

use std::{io, os::fd::BorrowedFd, time::Duration};

use super::{Kernel, Refused, Request, flights::Number};

/// The features of io_uring: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {}

/// A ring that is never created, because `new` always fails.
#[derive(Debug)]
pub(crate) struct System(());

/// The panic message of methods that cannot be reached.
const NONE: &str = "a ring that cannot be made was used";

/// Reports that no ring can be created here.
///
/// # Errors
/// Always returns `Unsupported`.
pub(crate) fn probe() -> io::Result<Features> {
    let why = "io_uring is not supported on this machine: readiness is used instead";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

impl System {
    pub(crate) fn new() -> io::Result<Self> {
        Err(probe().expect_err("there is none"))
    }

    #[cfg(test)]
    pub(super) fn with_answers(_: u32) -> io::Result<Self> {
        Self::new()
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        unreachable!("{NONE}")
    }
}

impl Kernel for System {
    unsafe fn push(&self, _: Request) -> bool {
        unreachable!("{NONE}")
    }

    unsafe fn backlog(&self) -> usize {
        unreachable!("{NONE}")
    }

    unsafe fn enter(&self) -> Result<(), Refused> {
        unreachable!("{NONE}")
    }

    unsafe fn muffle(&self) {
        unreachable!("{NONE}")
    }

    unsafe fn unmuffle(&self) {
        unreachable!("{NONE}")
    }

    unsafe fn take(&self, _: impl FnMut(Number, i32), _: usize) -> (usize, bool) {
        unreachable!("{NONE}")
    }

    fn fetch(&self) {
        unreachable!("{NONE}")
    }

    fn wait(&self, _: Duration) {
        unreachable!("{NONE}")
    }
}
