//! Data that some tasks carry besides their future: a name, a node in a set.
//!
//! It lies between a cell's header and its future, so it costs no allocation of its own, and
//! nothing at all for the tasks that have none. It is written before the task is shared, read by
//! any thread that keeps the cell alive, and dropped after the arena has removed the cell from its
//! list.

use std::{ptr::NonNull, sync::Arc, task::Waker};

use super::cell::Header;

/// Data that a task's cell carries besides the future. It is read and dropped on any thread.
pub(crate) trait Extra: Send + Sync + 'static {
    /// True if the task is blocking work, which no worker polls.
    const IS_BLOCKING: bool = false;

    /// True if the spawner declared the task's polls to be long.
    const IS_LONG_RUNNING: bool = false;

    /// Returns the join waker that a task with this data is created with, if any. Such a task
    /// is also created with one more reference, for an `AbortHandle` ([`super::set`]).
    #[inline(always)]
    fn initial_join_waker(task: NonNull<Header>) -> Option<Waker> {
        let _ = task;
        None
    }

    /// Returns the name that the spawner gave the task.
    fn name(&self) -> Option<&Arc<str>> {
        None
    }
}

impl Extra for () {}

/// The mark of blocking work, around any other data.
#[repr(C)]
pub(crate) struct BlockingMark<X = ()>(pub(crate) X);

impl<X: Extra> Extra for BlockingMark<X> {
    const IS_BLOCKING: bool = true;

    #[inline(always)]
    fn initial_join_waker(task: NonNull<Header>) -> Option<Waker> {
        X::initial_join_waker(task)
    }

    fn name(&self) -> Option<&Arc<str>> {
        self.0.name()
    }
}

/// A task's name, after any other data.
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
    fn initial_join_waker(task: NonNull<Header>) -> Option<Waker> {
        X::initial_join_waker(task)
    }

    fn name(&self) -> Option<&Arc<str>> {
        Some(&self.name)
    }
}

/// The mark of a task that was declared by its spawner to have long polls.
#[repr(C)]
pub(crate) struct LongRunning;

impl Extra for LongRunning {
    const IS_LONG_RUNNING: bool = true;
}
