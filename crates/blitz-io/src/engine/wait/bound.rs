//! Futures that hold a permit for as long as they live; this limits the number of spawned tasks.
//!
//! # Protocol
//! ```text
//! B1 a spawner takes a permit, or waits for one
//! B2 the permit moves into the future that is spawned: `Held`
//! B3 the task ends, in whatever way: its future is dropped, and then the permit
//!    goes to the spawner that has waited longest
//! ```
//! Every end of a task (completion, panic, abort, shutdown, a spawn that is refused) drops its
//! future once, so returning the permit needs no code of its own.
//!
//! # Invariants
//! - A permit is released after the user's future was dropped, also if that drop panics, because
//!   fields are dropped in the order in which they are declared.
//! - There are never more futures under a bound than permits.
//!
//! # Rejected
//! A permit in the task's header, released when the task completes: every task would pay for it,
//! bounded or not.
//!
//! # Checked by
//! `the_end_of_a_task_against_the_drop_of_a_waiter_gives_the_permit_back_once`,
//! `the_end_of_a_task_lets_the_next_one_in`,
//! `a_close_against_the_end_of_a_task_ends_the_wait`; weakened as `bound_gives_back`,
//! `bound_gives_back_once`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::permits::{Closed, NotNow, Permits};
use crate::engine::prim::{Arc, weakened};

/// A limit on the number of futures that live at the same time.
#[derive(Clone)]
pub(crate) struct Bound(Arc<Permits>);

/// The right to be one of the futures under a [`Bound`].
pub(crate) struct Seat(Arc<Permits>);

pin_project! {
    /// A future that holds a seat until it is dropped.
    pub(crate) struct Held<F> {
        // Before the seat, so that it is dropped first.
        #[pin]
        future: F,
        seat: Seat,
    }
}

impl Bound {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Permits::new(count)))
    }

    /// Takes a seat, if one is free and no spawner waits for it.
    pub(crate) fn try_take(&self) -> Result<Seat, NotNow> {
        self.0.try_acquire(1)?;
        Ok(Seat(self.0.clone()))
    }

    /// Takes a seat when it is this caller's turn. Dropping the future gives up its place in the
    /// queue.
    pub(crate) async fn take(self) -> Result<Seat, Closed> {
        self.0.acquire(1).await?;
        Ok(Seat(self.0))
    }

    /// Closes the bound: spawners that wait, or come later, are refused.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Returns the number of free seats.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available()
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Seat {
    /// Performs B2: wraps the future so that it holds the seat.
    pub(crate) fn hold<F: Future>(self, future: F) -> Held<F> {
        Held { future, seat: self }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !weakened!("bound_gives_back") {
            self.0.release(1);
        }
        if weakened!("bound_gives_back_once") {
            self.0.release(1);
        }
    }
}

impl<F: Future> Future for Held<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

#[cfg(test)]
mod models {
    use std::{future::Future, pin::Pin, task::Context, task::Waker};

    use super::{Bound, Held};
    use crate::engine::{
        prim::{model, thread},
        wait::{bell::block_on, permits::Closed},
    };

    type Task = Held<std::future::Ready<()>>;

    /// Creates a bound of one, and the task that has the seat.
    fn full() -> (Bound, Task) {
        let bound = Bound::new(1);
        let seat = bound.try_take().expect("it is free");
        (bound, seat.hold(std::future::ready(())))
    }

    /// Runs a task to its end.
    fn run(task: Task) -> thread::JoinHandle<()> {
        thread::spawn(move || block_on(task))
    }

    #[test]
    fn the_end_of_a_task_lets_the_next_one_in() {
        model(|| {
            let (bound, task) = full();
            let runner = run(task);
            let next = block_on(bound.clone().take()).expect("nobody closed it");
            drop(next.hold(std::future::ready(())));
            runner.join().unwrap();
            assert_eq!(bound.free(), 1);
        });
    }

    #[test]
    fn the_end_of_a_task_against_the_drop_of_a_waiter_gives_the_permit_back_once() {
        model(|| {
            let (bound, task) = full();
            let mut waiter = Box::pin(bound.clone().take());
            let first = waiter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            let runner = run(task);
            // The waiter may have been given the seat by now, without having been polled.
            drop(waiter);
            runner.join().unwrap();
            assert_eq!(bound.free(), 1);
        });
    }

    #[test]
    fn a_close_against_the_end_of_a_task_ends_the_wait() {
        model(|| {
            let (bound, task) = full();
            let mut waiter: Pin<Box<dyn Future<Output = _>>> = Box::pin(bound.clone().take());
            let first = waiter.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending());
            let runner = run(task);
            bound.close();
            drop(block_on(waiter));
            runner.join().unwrap();
            assert_eq!(bound.free(), 1);
            assert_eq!(block_on(bound.clone().take()).err(), Some(Closed));
        });
    }
}
