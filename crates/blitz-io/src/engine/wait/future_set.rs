//! A set of futures that one task polls, of which only those that were woken are polled.
//!
//! `future::join_all` and similar functions are built on it. A future is dropped as soon as it has
//! ended, and a slot that is empty is not polled again.
//!
//! # Budget
//! Each future that ends takes a unit, as an operation of a channel does. When none is left, the
//! rest wait for their turn where they are: if they were polled without budget, they would all
//! refuse, and a thousand would be polled for a hundred that make progress.
//!
//! # Invariants
//! 1. The futures stay where they are until they are dropped: they lie in a box, and are accessed
//!    only through a pin.
//!
//! # Rejected
//! A box for each future, so that this file needs no unsafe code: one allocation for each, where
//! one is enough for all.
//!
//! # Checked by
//! The models of the woken set, which poll through this type.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::woken_set::{PollList, WokenSet};
use crate::engine::{prim::Arc, work::task::budget};

pin_project! {
    /// A future until it ends.
    // With C's layout the tag has memory of its own. Otherwise it may lie in a niche of the future,
    // and reading it would access the future's memory from outside while the future keeps pointers
    // into itself.
    #[repr(C)]
    #[project = Projected]
    enum Child<F> {
        Running { #[pin] future: F },
        Done,
    }
}

/// A set of futures, of which only the woken ones are polled.
pub(crate) struct FutureSet<F> {
    children: Pin<Box<[Child<F>]>>,
    woken: Arc<WokenSet>,
    poll_list: PollList,
    /// The number of futures that have not ended.
    running: usize,
    /// True if a future panicked while it was polled, so that its state is unknown.
    broken: bool,
}

impl<F: Future> FutureSet<F> {
    /// Creates a set of the futures. `first` receives their number and returns the index to be
    /// polled first, which must be below that number; it is not called if there are none.
    pub(crate) fn new(
        futures: impl Iterator<Item = F>,
        first: impl FnOnce(usize) -> usize,
    ) -> Self {
        let children: Box<[_]> = futures.map(|future| Child::Running { future }).collect();
        let running = children.len();
        let first = if running == 0 { 0 } else { first(running) };
        let (woken, poll_list) = WokenSet::new(running, first);
        Self { children: Box::into_pin(children), woken, poll_list, running, broken: false }
    }

    /// Returns the number of futures that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// Polls for a future that ends, and returns its slot and output, or `None` when all have
    /// ended.
    ///
    /// # Panics
    /// If a future panics, and at every call after that.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        assert!(!self.broken, "polled after one of the futures panicked: drop them all instead");
        if self.running == 0 {
            return Poll::Ready(None);
        }
        let mut taken = false;
        loop {
            if budget::available(cx).is_pending() {
                return Poll::Pending;
            }
            match self.woken.next(&mut self.poll_list) {
                Some(slot) => {
                    if let Some(output) = self.poll_child(slot) {
                        spend(cx);
                        return Poll::Ready(Some((slot, output)));
                    }
                }
                // Futures that were woken since the list was taken have woken the task.
                None if taken => return Poll::Pending,
                None => {
                    self.woken.register_and_take(cx.waker(), &mut self.poll_list);
                    taken = true;
                }
            }
        }
    }

    /// Polls a future, and returns its output if it ends now. Its slot is empty then.
    fn poll_child(&mut self, slot: usize) -> Option<F::Output> {
        // SAFETY: the reference is only narrowed to one child, which stays in its slot (invariant
        // 1).
        let child = unsafe { self.children.as_mut().map_unchecked_mut(|all| &mut all[slot]) };
        let mut child = child;
        let Projected::Running { future } = child.as_mut().project() else {
            // The future was woken again during its last poll.
            return None;
        };
        self.broken = true;
        let polled = self.woken.polling(slot, |waker| future.poll(&mut Context::from_waker(waker)));
        let output = match polled {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        };
        if output.is_some() {
            self.woken.retire(slot);
            self.running -= 1;
            child.set(Child::Done);
        }
        self.broken = false;
        output
    }

    /// Drops the futures that have not ended, in the order in which they were given.
    pub(crate) fn clear(&mut self) {
        self.woken.clear_task();
        self.running = 0;
        self.children = Box::into_pin(Box::default());
    }
}

/// Spends a unit of budget if there is one; without one the output is returned all the same.
fn spend(cx: &mut Context<'_>) {
    if budget::has_remaining()
        && let Poll::Ready(unit) = budget::poll_proceed(cx)
    {
        unit.spend();
    }
}

impl<F> Drop for FutureSet<F> {
    fn drop(&mut self) {
        self.woken.clear_task();
    }
}

impl<F> std::fmt::Debug for FutureSet<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FutureSet").field("running", &self.running).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models {
    use std::{
        future::poll_fn,
        task::{Context, Poll, Waker},
    };

    use super::FutureSet;
    use crate::engine::{
        prim::{Arc, AtomicUsize, Mutex, Ordering::Relaxed, lock, model, thread},
        wait::test_waker::CountingWaker,
    };

    /// An event that can be waited for: how often it happened, and the waker of its waiter.
    #[derive(Clone)]
    struct TestEvent(Arc<(AtomicUsize, Mutex<Option<Waker>>)>);

    impl TestEvent {
        fn new() -> Self {
            Self(Arc::new((AtomicUsize::new(0), Mutex::new(None))))
        }

        /// Returns a future that keeps its waker, and ends when the event has happened `wanted`
        /// times. The waker is kept once, so that only the set provides the ordering.
        fn times(&self, wanted: usize) -> impl Future<Output = ()> + use<> {
            let event = self.clone();
            poll_fn(move |cx| {
                let mut waker = lock(&event.0.1);
                if waker.is_none() {
                    *waker = Some(cx.waker().clone());
                }
                drop(waker);
                // Relaxed: the wake orders it.
                if event.0.0.load(Relaxed) >= wanted { Poll::Ready(()) } else { Poll::Pending }
            })
        }

        /// Returns the waker, once the future has kept one.
        fn waker(&self) -> Waker {
            lock(&self.0.1).clone().expect("the future was polled")
        }

        /// Lets the event happen once, and wakes.
        fn happen(&self, waker: &Waker) {
            self.0.0.fetch_add(1, Relaxed);
            waker.wake_by_ref();
        }
    }

    /// Polls until all have ended, and sleeps in between.
    fn finish(mut set: FutureSet<impl Future<Output = ()>>) {
        let counter = CountingWaker::new();
        let waker = counter.waker();
        loop {
            match set.poll_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(None) => return,
                Poll::Ready(Some(_)) => {}
                Poll::Pending => {
                    counter.wait();
                    // A task that registers while another thread takes its waker wakes itself,
                    // until the other thread has gone on.
                    thread::yield_now();
                }
            }
        }
    }

    /// Creates a set that was polled once, so that every event has a waker.
    fn polled<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) -> FutureSet<F> {
        let mut set = FutureSet::new(futures, |_| 0);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(set.poll_next(&mut cx).is_pending());
        set
    }

    #[test]
    fn a_wake_against_a_poll_is_not_lost() {
        model(|| {
            let event = TestEvent::new();
            let set = polled(std::iter::once(event.times(1)));
            let waker = event.waker();
            let other = thread::spawn(move || event.happen(&waker));
            finish(set);
            other.join().unwrap();
        });
    }

    #[test]
    fn two_wakes_against_a_poll_are_not_lost() {
        model(|| {
            let events = [TestEvent::new(), TestEvent::new()];
            let set = polled(events.iter().map(|event| event.times(1)));
            let others = events.map(|event| {
                let waker = event.waker();
                thread::spawn(move || event.happen(&waker))
            });
            finish(set);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }

    #[test]
    fn a_second_wake_against_a_poll_is_seen() {
        model(|| {
            let event = TestEvent::new();
            let set = polled(std::iter::once(event.times(2)));
            let others = [event.clone(), event].map(|event| {
                let waker = event.waker();
                thread::spawn(move || event.happen(&waker))
            });
            finish(set);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }

    #[test]
    fn a_late_waker_outlives_the_set() {
        model(|| {
            let event = TestEvent::new();
            let set = polled(std::iter::once(event.times(1)));
            let waker = lock(&event.0.1).take().expect("the future was polled");
            let other = thread::spawn(move || {
                let another = waker.clone();
                waker.wake();
                drop(another);
            });
            drop(set);
            other.join().unwrap();
        });
    }
}
