//! Permits one step at a time against a simple reference, then under load.

use std::{
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
};

use proptest::prelude::*;

use super::{AcquireFuture, Closed, MAX, NoPermits, Permits};
use crate::engine::{
    wait::test_waker::{CountingWaker, block_on},
    work::task::budget::{self, Budget},
};

fn poll(future: Pin<&mut AcquireFuture<'_>>, waker: &Waker) -> Poll<Result<(), Closed>> {
    future.poll(&mut Context::from_waker(waker))
}

fn poll_idly(future: Pin<&mut AcquireFuture<'_>>) -> Poll<Result<(), Closed>> {
    poll(future, Waker::noop())
}

#[test]
fn permits_are_small() {
    assert!(size_of::<Permits>() <= 40, "{}", size_of::<Permits>());
    assert!(size_of::<AcquireFuture<'_>>() <= 72, "{}", size_of::<AcquireFuture<'_>>());
}

#[test]
fn zero_permits_can_always_be_acquired() {
    let permits = Permits::new(0);
    let mut waiting = pin!(permits.acquire(1));
    assert!(poll_idly(waiting.as_mut()).is_pending());
    assert_eq!(block_on(permits.acquire(0)), Ok(()));
    assert_eq!(permits.try_acquire(0), Ok(()));
    permits.close();
    assert_eq!(permits.try_acquire(0), Err(NoPermits::Closed));
}

#[test]
fn a_large_request_is_not_starved_by_small_ones() {
    let permits = Permits::new(3);
    let mut large = pin!(permits.acquire(5));
    assert!(poll_idly(large.as_mut()).is_pending());
    assert_eq!(permits.try_acquire(1), Err(NoPermits::TooFew));
    let mut small = pin!(permits.acquire(1));
    assert!(poll_idly(small.as_mut()).is_pending());
    permits.release(1);
    assert!(poll_idly(large.as_mut()).is_pending());
    assert!(poll_idly(small.as_mut()).is_pending());
    permits.release(2);
    assert_eq!(poll_idly(large.as_mut()), Poll::Ready(Ok(())));
    assert_eq!(poll_idly(small.as_mut()), Poll::Ready(Ok(())));
    assert_eq!(permits.available(), 0);
}

#[test]
fn a_finished_acquire_can_be_dropped_and_keeps_its_permits() {
    let permits = Permits::new(1);
    {
        let mut wish = pin!(permits.acquire(1));
        assert!(poll_idly(wish.as_mut()).is_ready());
    }
    assert_eq!(permits.available(), 0);
}

#[test]
fn a_close_refuses_current_and_later_waiters_and_takes_permits_back() {
    let permits = Permits::new(2);
    assert_eq!(permits.try_acquire(1), Ok(()));
    let counter = CountingWaker::new();
    let mut waiting = pin!(permits.acquire(2));
    assert!(poll(waiting.as_mut(), &counter.waker()).is_pending());
    permits.close();
    assert_eq!(counter.wake_count(), 1);
    assert_eq!(permits.available(), 1, "what the waiting one was given");
    assert_eq!(poll_idly(waiting.as_mut()), Poll::Ready(Err(Closed)));
    assert_eq!(block_on(permits.acquire(1)), Err(Closed));
    permits.release(1);
    assert_eq!(permits.available(), 2);
    assert!(permits.is_closed());
    permits.close();
}

#[test]
fn forgotten_permits_are_gone() {
    let permits = Permits::new(3);
    assert_eq!((permits.forget(2), permits.available()), (2, 1));
    assert_eq!((permits.forget(2), permits.available()), (1, 0));
    assert_eq!(permits.forget(1), 0);
}

#[test]
fn more_permits_than_can_be_counted_are_refused() {
    let panics = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
    assert!(panics(&|| assert_eq!(Permits::new(MAX + 1).available(), 0)));
    let permits = Permits::new(MAX);
    assert!(panics(&|| permits.release(1)));
    assert!(panics(&|| permits.release(usize::MAX)));
    assert!(panics(&|| drop(permits.acquire(MAX + 1))));
    assert!(panics(&|| assert!(permits.try_acquire(MAX + 1).is_err())));
    assert_eq!(permits.available(), MAX, "a refused release changes nothing");
    assert_eq!(permits.try_acquire(MAX), Ok(()));
    let mut all = pin!(permits.acquire(MAX));
    assert!(poll_idly(all.as_mut()).is_pending());
    permits.release(MAX);
    assert!(poll_idly(all.as_mut()).is_ready());
}

#[test]
fn waiting_takes_of_the_budget_when_it_ends() {
    let permits = Permits::new(1_000);
    budget::set(Budget::per_poll());
    let taken = (0..1_000).take_while(|_| poll_idly(pin!(permits.acquire(1))).is_ready()).count();
    budget::set(Budget::unlimited());
    assert_eq!((taken, permits.available()), (128, 872));
}

#[test]
fn each_served_waiter_is_woken_once() {
    let permits = Permits::new(0);
    let counters: Vec<_> = (0..100).map(|_| CountingWaker::new()).collect();
    let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(permits.acquire(1))).collect();
    for (counter, waiting) in counters.iter().zip(&mut waiting) {
        assert!(poll(waiting.as_mut(), &counter.waker()).is_pending());
    }
    permits.release(70);
    let wake_count: Vec<_> = counters.iter().map(|counter| counter.wake_count()).collect();
    assert_eq!(wake_count, [[1; 70].as_slice(), &[0; 30]].concat());
    // Half of the waiters that were served are dropped before they are polled: their permits go to
    // the others.
    waiting.drain(..35);
    assert!(counters.iter().all(|counter| counter.wake_count() == 1));
    drop(waiting);
    assert_eq!(permits.available(), 70);
}

/// The data of a waker that checks whether the lock is free whenever it is cloned, called or
/// dropped.
struct LockWitness {
    permits: Permits,
    looks: AtomicUsize,
    locked: AtomicUsize,
}

impl LockWitness {
    fn new(count: usize) -> &'static Self {
        let (looks, locked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Box::leak(Box::new(Self { permits: Permits::new(count), looks, locked }))
    }

    fn waker(&'static self) -> Waker {
        // SAFETY: the data is a reference that is never given up, and may be shared.
        unsafe { Waker::from_raw(Self::raw(std::ptr::from_ref(self).cast())) }
    }

    const fn raw(this: *const ()) -> RawWaker {
        RawWaker::new(this, &RawWakerVTable::new(Self::cloned, Self::look, Self::look, Self::look))
    }

    /// Checks the lock when the waker is cloned.
    ///
    /// # Safety
    /// 1. `this` points to a leaked `LockWitness`.
    unsafe fn cloned(this: *const ()) -> RawWaker {
        // SAFETY: 1. `this` points to a leaked `LockWitness`.
        unsafe { Self::look(this) };
        Self::raw(this)
    }

    /// # Safety
    /// 1. `this` points to a leaked `LockWitness`.
    unsafe fn look(this: *const ()) {
        // SAFETY: 1. `this` points to a leaked `LockWitness`, which lives for ever.
        let this = unsafe { &*this.cast::<Self>() };
        this.looks.fetch_add(1, Relaxed);
        this.locked.fetch_add(usize::from(this.permits.waiters.is_locked()), Relaxed);
    }

    #[track_caller]
    fn looked(&self, times: usize) {
        let (looks, locked) = (self.looks.swap(0, Relaxed), self.locked.load(Relaxed));
        assert_eq!((looks, locked), (times, 0), "(looks, of these under the lock)");
    }
}

#[test]
fn wakers_are_cloned_called_and_dropped_outside_of_the_lock() {
    let witness = LockWitness::new(0);
    let permits = &witness.permits;
    let (waker, other) = (witness.waker(), Waker::noop());
    let mut wishes: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire(1))).collect();
    for wish in &mut wishes {
        assert!(poll(wish.as_mut(), &waker).is_pending());
        witness.looked(1); // cloned
        assert!(poll(wish.as_mut(), &waker).is_pending());
        witness.looked(0); // the same waker
    }
    assert!(poll(wishes[1].as_mut(), other).is_pending());
    witness.looked(1); // dropped for another
    permits.release(1);
    witness.looked(1); // called by the release
    drop(wishes.pop());
    witness.looked(1); // dropped with its future
    assert!(poll(wishes[1].as_mut(), &waker).is_pending());
    witness.looked(1); // cloned
    permits.close();
    witness.looked(1); // called by the close
}

/// Creates a waker that panics when it is cloned.
fn unclonable() -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |_| panic!("this waker panics, as the test wants"),
        |_| {},
        |_| {},
        |_| {},
    );
    // SAFETY: there is no data, and nothing is done with it.
    unsafe { Waker::new(std::ptr::null(), &TABLE) }
}

#[test]
fn a_waker_that_cannot_be_cloned_leaves_the_permits_usable() {
    let permits = Permits::new(0);
    let mut wish = pin!(permits.acquire(1));
    let bad = unclonable();
    assert!(catch_unwind(AssertUnwindSafe(|| poll(wish.as_mut(), &bad))).is_err());
    let counter = CountingWaker::new();
    assert!(poll(wish.as_mut(), &counter.waker()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| poll(wish.as_mut(), &bad))).is_err());
    permits.release(1);
    assert_eq!(counter.wake_count(), 1, "the waker before is still there");
    assert_eq!(poll_idly(wish.as_mut()), Poll::Ready(Ok(())));
}

/// A reference model of permits, without threads: a number and a queue.
#[derive(Default)]
struct ReferencePermits {
    free: usize,
    closed: bool,
    /// The waiter's number, and the permits that it wants and was given.
    queue: VecDeque<(usize, usize, usize)>,
    served: Vec<usize>,
    refused: Vec<usize>,
}

impl ReferencePermits {
    fn settle(&mut self) {
        while let Some((number, wanted, given)) = self.queue.front_mut() {
            let part = self.free.min(*wanted - *given);
            *given += part;
            self.free -= part;
            if given < wanted {
                return;
            }
            self.served.push(*number);
            self.queue.pop_front();
        }
    }

    fn take(&mut self, wanted: usize) -> Result<(), NoPermits> {
        match () {
            () if self.closed => Err(NoPermits::Closed),
            () if self.free < wanted => Err(NoPermits::TooFew),
            () => {
                self.free -= wanted;
                Ok(())
            }
        }
    }

    fn join(&mut self, number: usize, wanted: usize) -> Poll<Result<(), Closed>> {
        match self.take(wanted) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(NoPermits::Closed) => return Poll::Ready(Err(Closed)),
            Err(NoPermits::TooFew) => {}
        }
        self.queue.push_back((number, wanted, 0));
        self.settle();
        Poll::Pending
    }

    fn poll(&mut self, number: usize) -> Poll<Result<(), Closed>> {
        let taken = |list: &mut Vec<usize>| {
            list.iter().position(|&one| one == number).map(|at| list.remove(at)).is_some()
        };
        if taken(&mut self.served) {
            return Poll::Ready(Ok(()));
        }
        if taken(&mut self.refused) { Poll::Ready(Err(Closed)) } else { Poll::Pending }
    }

    fn leave(&mut self, number: usize, wanted: usize) {
        match self.poll(number) {
            Poll::Ready(Ok(())) => self.free += wanted,
            Poll::Ready(Err(Closed)) => {}
            Poll::Pending => {
                let at = self.queue.iter().position(|one| one.0 == number);
                self.free += self.queue.remove(at.expect("it waits")).expect("it waits").2;
            }
        }
        self.settle();
    }

    fn close(&mut self) {
        self.closed = true;
        for (number, _, given) in self.queue.drain(..) {
            self.free += given;
            self.refused.push(number);
        }
    }
}

#[derive(Debug, Clone)]
enum PermitStep {
    Want(usize),
    Poll(usize),
    Drop(usize),
    Add(usize),
    Try(usize),
    Forget(usize),
    Close,
}

fn step() -> impl Strategy<Value = PermitStep> {
    prop_oneof![
        8 => (0usize..5).prop_map(PermitStep::Want),
        6 => any::<usize>().prop_map(PermitStep::Poll),
        4 => any::<usize>().prop_map(PermitStep::Drop),
        6 => (0usize..6).prop_map(PermitStep::Add),
        2 => (0usize..4).prop_map(PermitStep::Try),
        1 => (0usize..3).prop_map(PermitStep::Forget),
        1 => Just(PermitStep::Close),
    ]
}

proptest! {
    #[test]
    fn permits_behave_as_a_simple_model(
        start in 0usize..4,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let permits = Permits::new(start);
        let mut model = ReferencePermits { free: start, ..ReferencePermits::default() };
        let mut waiting = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                PermitStep::Want(wanted) => {
                    let mut wish = Box::pin(permits.acquire(wanted));
                    let polled = poll_idly(wish.as_mut());
                    prop_assert_eq!(polled, model.join(number, wanted));
                    if polled.is_pending() {
                        waiting.push((number, wanted, wish));
                    }
                }
                PermitStep::Poll(pick) if !waiting.is_empty() => {
                    let at = pick % waiting.len();
                    let (number, _, wish) = &mut waiting[at];
                    let polled = poll_idly(wish.as_mut());
                    prop_assert_eq!(polled, model.poll(*number));
                    if polled.is_ready() {
                        drop(waiting.remove(at));
                    }
                }
                PermitStep::Drop(pick) if !waiting.is_empty() => {
                    let (number, wanted, wish) = waiting.remove(pick % waiting.len());
                    drop(wish);
                    model.leave(number, wanted);
                }
                PermitStep::Poll(_) | PermitStep::Drop(_) => {}
                PermitStep::Add(count) => {
                    permits.release(count);
                    model.free += count;
                    model.settle();
                }
                PermitStep::Try(count) => {
                    prop_assert_eq!(permits.try_acquire(count), model.take(count));
                }
                PermitStep::Forget(count) => {
                    let gone = count.min(model.free);
                    model.free -= gone;
                    prop_assert_eq!(permits.forget(count), gone);
                }
                PermitStep::Close => {
                    permits.close();
                    model.close();
                }
            }
            prop_assert_eq!(permits.available(), model.free);
            prop_assert_eq!(permits.is_closed(), model.closed);
        }
        // A waiter that is dropped from the front passes its permits on to the next.
        for (number, wanted, wish) in waiting {
            drop(wish);
            model.leave(number, wanted);
            prop_assert_eq!(permits.available(), model.free);
        }
    }
}

/// Threads take one to three permits, try, and give up in the middle; at the end all permits must
/// be free.
fn storm(threads: usize, rounds: usize) {
    const PERMITS: usize = 4;
    let (permits, inside) = (Permits::new(PERMITS), AtomicUsize::new(0));
    let enter = |count: usize| {
        let now = inside.fetch_add(count, Relaxed) + count;
        assert!(now <= PERMITS, "{now} permits were out");
        inside.fetch_sub(count, Relaxed);
        permits.release(count);
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (permits, enter) = (&permits, &enter);
            scope.spawn(move || {
                for round in 0..rounds {
                    let count = 1 + (round + thread) % 3;
                    match (round * 7 + thread) % 4 {
                        0 if permits.try_acquire(count).is_ok() => enter(count),
                        1 => {
                            let mut wish = pin!(permits.acquire(count));
                            if poll_idly(wish.as_mut()).is_ready() {
                                enter(count);
                            }
                        }
                        _ => {
                            assert_eq!(block_on(permits.acquire(count)), Ok(()));
                            enter(count);
                        }
                    }
                }
            });
        }
    });
    assert_eq!((permits.available(), inside.into_inner()), (PERMITS, 0));
}

#[test]
fn no_permit_is_lost_or_made() {
    storm(4, 2_000);
}

#[test]
#[ignore = "long: run by `cargo xtask stress`"]
fn no_permit_is_lost_or_made_for_long() {
    storm(8, 200_000);
}
