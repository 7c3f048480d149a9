//! What some tasks carry besides their future: a name, a place in a set.
//!
//! It lies between a cell's header and its future, so that it costs no allocation
//! of its own, and nothing at all for the tasks that have none. It is written
//! before the task is shared, read by whoever keeps the cell, and dropped when the
//! home has taken the cell off its list.

use std::{ptr::NonNull, sync::Arc, task::Waker};

use super::cell::Header;

/// See the module. Read and dropped on any thread.
pub(crate) trait Extra: Send + Sync + 'static {
    /// Whether the task is blocking work: no worker polls it.
    const IS_BLOCKING: bool = false;

    /// Whether its spawner says that its polls are long.
    const IS_LONG_RUNNING: bool = false;

    /// The join waker that a task with this is born with, if any. Such a task is born
    /// with one more reference, for an `AbortHandle` ([`super::set`]).
    #[inline(always)]
    fn born_waker(task: NonNull<Header>) -> Option<Waker> {
        let _ = task;
        None
    }

    /// The name that the spawner gave the task.
    fn name(&self) -> Option<&Arc<str>> {
        None
    }
}

impl Extra for () {}

/// The mark of blocking work, which may carry something else.
#[repr(C)]
pub(crate) struct Blocks<X = ()>(pub(crate) X);

impl<X: Extra> Extra for Blocks<X> {
    const IS_BLOCKING: bool = true;

    #[inline(always)]
    fn born_waker(task: NonNull<Header>) -> Option<Waker> {
        X::born_waker(task)
    }

    fn name(&self) -> Option<&Arc<str>> {
        self.0.name()
    }
}

/// A name, in front of which may be something else.
#[repr(C)]
pub(crate) struct Named<X = ()> {
    inner: X,
    name: Arc<str>,
}

impl<X> Named<X> {
    pub(crate) fn new(inner: X, name: &str) -> Self {
        Self { inner, name: name.into() }
    }
}

impl<X: Extra> Extra for Named<X> {
    const IS_BLOCKING: bool = X::IS_BLOCKING;
    const IS_LONG_RUNNING: bool = X::IS_LONG_RUNNING;

    #[inline(always)]
    fn born_waker(task: NonNull<Header>) -> Option<Waker> {
        X::born_waker(task)
    }

    fn name(&self) -> Option<&Arc<str>> {
        Some(&self.name)
    }
}

/// The mark of a task whose polls are long, as its spawner says.
#[repr(C)]
pub(crate) struct Long;

impl Extra for Long {
    const IS_LONG_RUNNING: bool = true;
}
