//! Linux on machines for which no bindings to io_uring are kept: there is no ring.

use std::{io, os::fd::BorrowedFd, time::Duration};

use super::{Kernel, Refused, Request, flights::Number};

/// None.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {}

/// Nobody has one: `new` refuses.
#[derive(Debug)]
pub(crate) struct System(());

/// Why nothing here is ever called.
const NONE: &str = "a ring that cannot be made was used";

/// Whether a ring for operations can be made here.
///
/// # Errors
/// `Unsupported`.
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
