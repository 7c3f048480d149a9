//! Stands in for `system.rs` on architectures that the `io-uring` crate does not support: there is
//! no uring.

use std::{io, os::fd::BorrowedFd, time::Duration};

use super::{EnterError, Request, UringKernel, op_table::OpId};

/// The features of io_uring: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UringFeatures {}

/// A uring that is never created, because `new` always fails.
#[derive(Debug)]
pub(crate) struct SystemUring(());

/// The panic message of methods that cannot be reached.
const NONE: &str = "a uring that cannot be made was used";

/// Reports that no uring can be created here.
///
/// # Errors
/// Always returns `Unsupported`.
pub(crate) fn probe() -> io::Result<UringFeatures> {
    let why = "io_uring is not supported on this machine: readiness is used instead";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

impl SystemUring {
    pub(crate) fn new() -> io::Result<Self> {
        Err(probe().expect_err("there is none"))
    }

    #[cfg(test)]
    pub(super) fn with_completions(_: u32) -> io::Result<Self> {
        Self::new()
    }

    pub(crate) fn eventfd(&self) -> BorrowedFd<'_> {
        unreachable!("{NONE}")
    }
}

impl UringKernel for SystemUring {
    unsafe fn push(&self, _: Request) -> bool {
        unreachable!("{NONE}")
    }

    unsafe fn backlog(&self) -> usize {
        unreachable!("{NONE}")
    }

    unsafe fn enter(&self) -> Result<(), EnterError> {
        unreachable!("{NONE}")
    }

    unsafe fn disable_eventfd(&self) {
        unreachable!("{NONE}")
    }

    unsafe fn enable_eventfd(&self) {
        unreachable!("{NONE}")
    }

    unsafe fn take(&self, _: impl FnMut(OpId, i32), _: usize) -> (usize, bool) {
        unreachable!("{NONE}")
    }

    fn fetch(&self) {
        unreachable!("{NONE}")
    }

    fn wait(&self, _: Duration) {
        unreachable!("{NONE}")
    }
}
