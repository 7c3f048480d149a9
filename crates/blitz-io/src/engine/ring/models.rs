//! Models of the ring, with a kernel that the model checker can explore.

use std::{sync::Arc, time::Duration};

use super::{InFlight, Kernel, NoRing, Number, Refused, Request, Ring, verb::Verb};
use crate::engine::{
    prim::{Mutex, ids::Tally, lock, model, thread},
    wait::bell::block_on,
};

/// A kernel that completes operations when the model says so.
struct Fake(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    /// The pushed numbers, each with true for an operation and false for a cancel.
    pushed: Vec<(Number, bool)>,
    flying: Vec<Number>,
    answers: Vec<(Number, i32)>,
    /// The errors of the next calls of `enter`, last first; when they are used up, calls succeed.
    refused: Vec<Refused>,
    /// Ignores cancels, like a stuck disk.
    stuck: bool,
}

impl Kernel for Fake {
    unsafe fn push(&self, request: Request) -> bool {
        lock(&self.0).pushed.push(match request {
            Request::Begin(number, _) => (number, true),
            Request::Cancel(number) => (number, false),
        });
        true
    }

    unsafe fn backlog(&self) -> usize {
        lock(&self.0).pushed.len()
    }

    unsafe fn enter(&self) -> Result<(), Refused> {
        let mut inside = lock(&self.0);
        if let Some(refused) = inside.refused.pop() {
            return Err(refused);
        }
        for (number, begins) in std::mem::take(&mut inside.pushed) {
            if begins {
                inside.flying.push(number);
            } else if !inside.stuck {
                inside.answer(Some(number), -libc::ECANCELED);
            }
        }
        Ok(())
    }

    // No thread of a model sleeps for the bell.
    unsafe fn muffle(&self) {}

    unsafe fn unmuffle(&self) {}

    unsafe fn take(&self, mut each: impl FnMut(Number, i32), most: usize) -> (usize, bool) {
        let mut inside = lock(&self.0);
        let count = inside.answers.len().min(most);
        inside.answers.drain(..count).for_each(|(number, result)| each(number, result));
        (count, false)
    }

    fn fetch(&self) {}

    fn wait(&self, _: Duration) {
        thread::yield_now();
    }
}

impl Inside {
    /// Completes the operation with that number, or the first one, if it is under way.
    fn answer(&mut self, number: Option<Number>, result: i32) {
        let wanted = |flying: &Number| number.is_none_or(|number| number == *flying);
        if let Some(at) = self.flying.iter().position(wanted) {
            let number = self.flying.remove(at);
            self.answers.push((number, result));
        }
    }
}

fn ring() -> Arc<Ring<Fake>> {
    Arc::new(Ring::new(Fake(Mutex::new(Inside::default()))))
}

/// Completes the first operation under way, and reaps, as a driver's turn does.
fn complete(ring: &Ring<Fake>) {
    lock(&ring.kernel.0).answer(None, 7);
    ring.reap();
}

fn begin<P: Send + 'static>(
    ring: &Ring<Fake>,
    payload: P,
) -> Result<InFlight<'_, P, Fake>, NoRing> {
    let verb = |_: &mut P| Verb::Recv { fd: -1, memory: std::ptr::null_mut(), length: 0 };
    // SAFETY: the kernel is a model, which accesses neither the memory nor the descriptor.
    unsafe { ring.submit(payload, verb) }.map_err(|(why, _)| why)
}

/// Counts how often it is dropped.
struct Counted(Arc<Tally>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[test]
fn a_dropped_operation_against_its_answer_frees_its_payload_once() {
    model(|| {
        let (ring, dropped) = (ring(), Arc::new(Tally::default()));
        let flight = begin(&ring, Counted(dropped.clone())).unwrap();
        let kernel = thread::spawn({
            let ring = ring.clone();
            move || complete(&ring)
        });
        drop(flight);
        kernel.join().unwrap();
        assert_eq!((ring.in_flight(), dropped.get()), (0, 1));
    });
}

/// The operation is refused, or it completes: no task waits for ever.
#[test]
fn an_operation_against_a_close_is_answered_or_refused() {
    model(|| {
        let (ring, dropped) = (ring(), Arc::new(Tally::default()));
        let end = thread::spawn({
            let ring = ring.clone();
            move || ring.close()
        });
        match begin(&ring, Counted(dropped.clone())) {
            Err(why) => assert_eq!(why, NoRing::Closed),
            Ok(flight) => assert_eq!(block_on(flight).0, -libc::ECANCELED),
        }
        end.join().unwrap();
        assert_eq!((ring.in_flight(), dropped.get()), (0, 1));
        assert!(begin(&ring, ()).is_err(), "it is closed");
    });
}

/// The close cancels an operation that another thread is completing.
#[test]
fn an_answer_against_a_close_is_one_answer() {
    model(|| {
        let ring = ring();
        let flight = begin(&ring, ()).unwrap();
        let kernel = thread::spawn({
            let ring = ring.clone();
            move || complete(&ring)
        });
        ring.close();
        let (result, ()) = block_on(flight);
        assert!([7, -libc::ECANCELED].contains(&result), "{result}");
        kernel.join().unwrap();
        assert_eq!(ring.in_flight(), 0);
    });
}

#[test]
fn two_who_reap_give_each_answer_once() {
    model(|| {
        let ring = ring();
        let flights = [begin(&ring, 'a').unwrap(), begin(&ring, 'b').unwrap()];
        let other = thread::spawn({
            let ring = ring.clone();
            move || complete(&ring)
        });
        complete(&ring);
        let answers = flights.map(block_on);
        assert_eq!(answers, [(7, 'a'), (7, 'b')]);
        other.join().unwrap();
        assert_eq!(ring.in_flight(), 0);
    });
}

/// A future is dropped while its operation completes, and the place of the operation is given to
/// another one before the cancel reaches the kernel.
#[test]
fn a_cancel_that_comes_late_ends_nobody_else() {
    model(|| {
        let ring = ring();
        let first = begin(&ring, ()).unwrap();
        let other = thread::spawn({
            let ring = ring.clone();
            move || {
                complete(&ring);
                // The operation stays under way until the end of the model.
                std::mem::forget(begin(&ring, ()).unwrap());
            }
        });
        drop(first);
        other.join().unwrap();
        assert_eq!(ring.in_flight(), 1, "the second was ended by a cancel of the first");
        complete(&ring);
        assert_eq!(ring.in_flight(), 0);
    });
}

/// The first thread that enters finds no room, and lets the other one pass.
#[test]
fn two_who_find_no_room_both_begin() {
    model(|| {
        let ring = ring();
        lock(&ring.kernel.0).refused.push(Refused::NotNow);
        let other = thread::spawn({
            let ring = ring.clone();
            move || std::mem::forget(begin(&ring, 'a').unwrap())
        });
        let mine = begin(&ring, 'b').unwrap();
        other.join().unwrap();
        let inside = lock(&ring.kernel.0);
        assert_eq!((inside.pushed.len(), inside.flying.len()), (0, 2));
        drop(inside);
        complete(&ring);
        complete(&ring);
        assert_eq!((block_on(mine), ring.in_flight()), ((7, 'b'), 0));
    });
}

/// One thread has found no room yet when the other finds that the kernel refuses the call for good.
#[test]
fn a_door_that_shuts_gives_every_payload_back() {
    model(|| {
        let (ring, dropped) = (ring(), Arc::new(Tally::default()));
        lock(&ring.kernel.0).refused.extend([Refused::Never(libc::EPERM), Refused::NotNow]);
        let other = thread::spawn({
            let (ring, dropped) = (ring.clone(), dropped.clone());
            move || begin(&ring, Counted(dropped)).map(drop)
        });
        let mine = begin(&ring, Counted(dropped.clone())).map(drop);
        assert_eq!(mine, Err(NoRing::Unusable));
        assert_eq!(other.join().unwrap(), Err(NoRing::Unusable));
        assert_eq!((ring.in_flight(), dropped.get()), (0, 2));
        assert!(lock(&ring.kernel.0).flying.is_empty());
    });
}

/// Memory that the kernel keeps is never freed, because it may still be written to; and the close
/// returns.
#[cfg(not(blitz_loom))]
#[test]
fn an_end_leaves_to_the_kernel_what_it_does_not_answer() {
    let (ring, dropped) = (ring(), Arc::new(Tally::default()));
    lock(&ring.kernel.0).stuck = true;
    let flight = begin(&ring, Counted(dropped.clone())).unwrap();
    drop(begin(&ring, Counted(dropped.clone())).unwrap());
    let begun = std::time::Instant::now();
    ring.close();
    assert!(begun.elapsed() >= super::PATIENCE, "it was patient");
    assert_eq!((ring.in_flight(), dropped.get()), (2, 0));
    // If the future is still polled, the polling thread waits for the completion.
    let kernel = std::thread::spawn({
        let ring = ring.clone();
        move || lock(&ring.kernel.0).answer(None, 7)
    });
    let (result, payload) = block_on(flight);
    assert_eq!((result, dropped.get()), (7, 0));
    kernel.join().unwrap();
    drop(payload);
    assert_eq!((ring.in_flight(), dropped.get()), (1, 1));
    drop(ring);
    assert_eq!(dropped.get(), 1, "freed under the kernel's hands");
}
