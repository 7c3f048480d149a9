//! Futures that hold a permit for as long as they live; this limits the number of spawned tasks.
//!
//! # Protocol
//! ```text
//! B1 a spawner takes a permit, or waits for one
//! B2 the permit moves into the future that is spawned: `PermitFuture`
//! B3 the task ends, in whatever way: its future is dropped, and then the permit
//!    goes to the spawner that has waited longest
//! ```
//! Every end of a task (completion, panic, abort, shutdown, a spawn that is refused) drops its
//! future once, so returning the permit needs no code of its own.
//!
//! # Invariants
//! - A permit is released after the user's future was dropped, also if that drop panics, because
//!   fields are dropped in the order in which they are declared.
//! - There are never more futures under a limit than permits.
//!
//! # Rejected
//! A permit in the task's header, released when the task completes: every task would pay for it,
//! limited or not.
//!
//! # Checked by
//! `the_end_of_a_task_against_the_drop_of_a_waiter_gives_the_permit_back_once`,
//! `the_end_of_a_task_lets_the_next_one_in`, `a_close_against_the_end_of_a_task_ends_the_wait`;
//! weakened as `task_limit_gives_back`, `task_limit_gives_back_once`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::permits::{Closed, NoPermits, Permits};
use crate::engine::prim::{Arc, weakened};

/// A limit on the number of futures that live at the same time.
#[derive(Clone)]
pub(crate) struct TaskLimit(Arc<Permits>);

/// The right to be one of the futures under a [`TaskLimit`].
pub(crate) struct TaskPermit(Arc<Permits>);

pin_project! {
    /// A future that holds its permit until it is dropped.
    pub(crate) struct PermitFuture<F> {
        // Before the permit, so that it is dropped first.
        #[pin]
        future: F,
        permit: TaskPermit,
    }
}

impl TaskLimit {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Permits::new(count)))
    }

    /// Takes a permit, if one is free and no spawner waits for it.
    pub(crate) fn try_take(&self) -> Result<TaskPermit, NoPermits> {
        self.0.try_acquire(1)?;
        Ok(TaskPermit(self.0.clone()))
    }

    /// Takes a permit when it is this caller's turn. Dropping the future gives up its place in the
    /// queue.
    pub(crate) async fn take(self) -> Result<TaskPermit, Closed> {
        self.0.acquire(1).await?;
        Ok(TaskPermit(self.0))
    }

    /// Closes the limit: spawners that wait, or come later, are refused.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Returns the number of free permits.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available()
    }
}

impl fmt::Debug for TaskLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TaskPermit {
    /// Performs B2: wraps the future so that it holds the permit.
    pub(crate) fn attach_to<F: Future>(self, future: F) -> PermitFuture<F> {
        PermitFuture { future, permit: self }
    }
}

impl Drop for TaskPermit {
    fn drop(&mut self) {
        if !weakened!("task_limit_gives_back") {
            self.0.release(1);
        }
        if weakened!("task_limit_gives_back_once") {
            self.0.release(1);
        }
    }
}

impl<F: Future> Future for PermitFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

#[cfg(test)]
mod models {
    use std::{future::Future, pin::Pin, task::Context, task::Waker};

    use super::{PermitFuture, TaskLimit};
    use crate::engine::{
        prim::{model, thread},
        wait::{permits::Closed, test_waker::block_on},
    };

    type ModelTask = PermitFuture<std::future::Ready<()>>;

    /// Creates a limit of one, and the task that has the permit.
    fn full() -> (TaskLimit, ModelTask) {
        let limit = TaskLimit::new(1);
        let permit = limit.try_take().expect("it is free");
        (limit, permit.attach_to(std::future::ready(())))
    }

    /// Runs a task to its end.
    fn run(task: ModelTask) -> thread::JoinHandle<()> {
        thread::spawn(move || block_on(task))
    }

    #[test]
    fn the_end_of_a_task_lets_the_next_one_in() {
        model(|| {
            let (limit, task) = full();
            let runner = run(task);
            let next = block_on(limit.clone().take()).expect("no thread closed it");
            drop(next.attach_to(std::future::ready(())));
            runner.join().unwrap();
            assert_eq!(limit.free(), 1);
        });
    }

    #[test]
    fn the_end_of_a_task_against_the_drop_of_a_waiter_gives_the_permit_back_once() {
        model(|| {
            let (limit, task) = full();
            let mut waiter = Box::pin(limit.clone().take());
            let first = waiter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            let runner = run(task);
            // The waiter may have been given the permit by now, without having been polled.
            drop(waiter);
            runner.join().unwrap();
            assert_eq!(limit.free(), 1);
        });
    }

    #[test]
    fn a_close_against_the_end_of_a_task_ends_the_wait() {
        model(|| {
            let (limit, task) = full();
            let mut waiter: Pin<Box<dyn Future<Output = _>>> = Box::pin(limit.clone().take());
            let first = waiter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            let runner = run(task);
            limit.close();
            drop(block_on(waiter));
            runner.join().unwrap();
            assert_eq!(limit.free(), 1);
            assert_eq!(block_on(limit.clone().take()).err(), Some(Closed));
        });
    }
}
