//! Compares random operations on a `Semaphore` with a model.
//!
//! The model is a count and a wait queue, with the permits that each waiter has so far. Permits go
//! to the first waiter, as far as they suffice, before any other.

use std::{collections::VecDeque, future::Future};

use blitz_io::sync::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};
use proptest::prelude::*;

use crate::support::manual_poll::{Polled, by_hand};

#[derive(Clone, Copy, Debug)]
enum Op {
    TryAcquire(u32),
    /// Starts an acquire, and polls it once.
    Acquire(u32),
    Add(usize),
    Forget(usize),
    /// Releases the held permit at this index of the list (modulo its length).
    Release(usize),
    /// Drops the waiter at this index.
    GiveUp(usize),
    /// Polls the waiter at this index.
    Poll(usize),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..4u32).prop_map(Op::TryAcquire),
        6 => (1..4u32).prop_map(Op::Acquire),
        3 => (0..3usize).prop_map(Op::Add),
        1 => (0..3usize).prop_map(Op::Forget),
        5 => any::<usize>().prop_map(Op::Release),
        3 => any::<usize>().prop_map(Op::GiveUp),
        6 => any::<usize>().prop_map(Op::Poll),
        1 => Just(Op::Close),
    ]
}

#[derive(Default)]
struct Model {
    free: usize,
    closed: bool,
    /// The name of each waiter, the number of permits it wants, and the number it has.
    line: VecDeque<(usize, usize, usize)>,
    /// Waiters that have all their permits but were not polled since.
    served: Vec<(usize, usize)>,
}

impl Model {
    fn add(&mut self, mut count: usize) {
        while count > 0 {
            let Some((name, wants, has)) = self.line.front_mut() else { break };
            let part = count.min(*wants - *has);
            (*has, count) = (*has + part, count - part);
            if has < wants {
                break;
            }
            self.served.push((*name, *wants));
            self.line.pop_front();
        }
        self.free += count;
    }

    fn give_up(&mut self, name: usize) {
        if let Some(at) = self.line.iter().position(|waiter| waiter.0 == name) {
            let (_, _, has) = self.line.remove(at).unwrap();
            self.add(has);
        } else if let Some(at) = self.served.iter().position(|waiter| waiter.0 == name) {
            let (_, wants) = self.served.remove(at);
            self.add(wants);
        }
    }
}

/// Runs the operations on the semaphore and the model. Whether a waiter that was granted its
/// permits before a close gets them is not promised, so a sequence ends with its close.
fn run(start: usize, ops: &[Op]) {
    let semaphore = Semaphore::new(start);
    let mut model = Model { free: start, ..Model::default() };
    let mut held: Vec<SemaphorePermit<'_>> = Vec::new();
    type Waits<F> = Vec<(usize, Polled<F>)>;
    let mut waits: Waits<_> = Vec::new();
    for (name, op) in ops.iter().enumerate() {
        match *op {
            Op::TryAcquire(count) => match semaphore.try_acquire_many(count) {
                Ok(permit) => {
                    assert!(model.free >= count as usize, "{op:?}: there were not enough");
                    model.free -= count as usize;
                    held.push(permit);
                }
                Err(error) => {
                    assert_eq!(error, TryAcquireError::NoPermits);
                    assert!(model.free < count as usize, "{op:?}: there were enough");
                }
            },
            Op::Acquire(count) => {
                let mut wait = by_hand(semaphore.acquire_many(count));
                let wants = count as usize;
                let at_once = model.line.is_empty() && model.free >= wants;
                match wait.poll() {
                    std::task::Poll::Ready(permit) => {
                        assert!(at_once, "{op:?}: it had to wait");
                        model.free -= wants;
                        held.push(permit.unwrap());
                    }
                    std::task::Poll::Pending => {
                        assert!(!at_once, "{op:?}: it had not to wait");
                        // The free permits go to the waiter; if others are queued there are none.
                        let part = std::mem::take(&mut model.free);
                        model.line.push_back((name, wants, part));
                        waits.push((name, wait));
                    }
                }
            }
            Op::Add(count) => {
                semaphore.add_permits(count);
                model.add(count);
            }
            Op::Forget(count) => {
                let forgotten = semaphore.forget_permits(count);
                assert_eq!(forgotten, count.min(model.free));
                model.free -= forgotten;
            }
            Op::Release(at) if !held.is_empty() => {
                let permit = held.swap_remove(at % held.len());
                model.add(permit.num_permits());
            }
            Op::GiveUp(at) if !waits.is_empty() => {
                let (name, wait) = waits.swap_remove(at % waits.len());
                drop(wait);
                model.give_up(name);
            }
            Op::Poll(at) if !waits.is_empty() => {
                let at = at % waits.len();
                let served = model.served.iter().position(|waiter| waiter.0 == waits[at].0);
                match served {
                    Some(place) => {
                        let wanted = model.served.remove(place).1;
                        let permit = waits.swap_remove(at).1.woken_and_ready().unwrap();
                        assert_eq!(permit.num_permits(), wanted);
                        held.push(permit);
                    }
                    None => waits[at].1.still_waits(),
                }
            }
            Op::Close => {
                close(&semaphore, &mut waits, &mut model);
                break;
            }
            Op::Release(_) | Op::GiveUp(_) | Op::Poll(_) => {}
        }
        assert_eq!(semaphore.available_permits(), model.free, "after {op:?}");
        for (name, wait) in &waits {
            let served = model.served.iter().any(|waiter| waiter.0 == *name);
            assert_eq!(wait.woken(), served, "a served waiter is woken, after {op:?}");
        }
    }
    conserved(&semaphore, held, waits, &model);
}

/// Closes the semaphore; every queued waiter must be refused.
fn close<'a, F>(semaphore: &Semaphore, waits: &mut [(usize, Polled<F>)], model: &mut Model)
where
    F: Future<Output = Result<SemaphorePermit<'a>, AcquireError>>,
{
    semaphore.close();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    for (name, wait) in waits {
        if model.line.iter().any(|waiter| waiter.0 == *name) {
            assert!(wait.woken_and_ready().is_err());
        }
    }
    model.closed = true;
}

/// Asserts that every permit is back once no waiter and no guard is left.
fn conserved<W>(semaphore: &Semaphore, held: Vec<SemaphorePermit<'_>>, waits: W, model: &Model) {
    let out: usize = held.iter().map(SemaphorePermit::num_permits).sum();
    let line: usize = model.line.iter().map(|waiter| waiter.2).sum();
    let served: usize = model.served.iter().map(|waiter| waiter.1).sum();
    drop(held);
    drop(waits);
    assert_eq!(semaphore.available_permits(), model.free + out + line + served);
}

proptest! {
    #[test]
    fn a_semaphore_does_what_its_model_does(
        start in 0..4usize,
        ops in prop::collection::vec(op(), 1..60),
    ) {
        run(start, &ops);
    }
}
