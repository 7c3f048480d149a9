//! Linux on machines for which no bindings to io_uring are kept: there is no ring.

use std::{io, os::fd::BorrowedFd, time::Duration};

use super::{Kernel, Refused, Request, flights::Number};

/// None.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {}

/// Nobody has one.
#[derive(Debug)]
pub(crate) enum System {}

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

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

impl Kernel for System {
    unsafe fn push(&self, _: Request) -> bool {
        match *self {}
    }

    unsafe fn backlog(&self) -> usize {
        match *self {}
    }

    unsafe fn enter(&self) -> Result<(), Refused> {
        match *self {}
    }

    unsafe fn muffle(&self) {
        match *self {}
    }

    unsafe fn unmuffle(&self) {
        match *self {}
    }

    unsafe fn take(&self, _: impl FnMut(Number, i32), _: usize) -> (usize, bool) {
        match *self {}
    }

    fn fetch(&self) {
        match *self {}
    }

    fn wait(&self, _: Duration) {
        match *self {}
    }
}
