//! Models of the uring, with a kernel that the model checker can explore.

use std::{sync::Arc, time::Duration};

use super::{
    EnterError, OpFuture, OpId, Request, SubmitError, Uring, UringKernel, op_kind::OpKind,
};
use crate::engine::{
    prim::{Mutex, ids::Tally, lock, model, thread},
    wait::test_waker::block_on,
};

/// A kernel that completes operations when the model says so.
struct FakeKernel(Mutex<FakeState>);

#[derive(Default)]
struct FakeState {
    /// The pushed IDs, each with true for an operation and false for a cancel.
    pushed: Vec<(OpId, bool)>,
    under_way: Vec<OpId>,
    completions: Vec<(OpId, i32)>,
    /// The errors of the next calls of `enter`, last first; when they are used up, calls succeed.
    refused: Vec<EnterError>,
    /// Ignores cancels, like a stuck disk.
    stuck: bool,
}

impl UringKernel for FakeKernel {
    unsafe fn push(&self, request: Request) -> bool {
        lock(&self.0).pushed.push(match request {
            Request::Begin(id, _) => (id, true),
            Request::Cancel(id) => (id, false),
        });
        true
    }

    unsafe fn backlog(&self) -> usize {
        lock(&self.0).pushed.len()
    }

    unsafe fn enter(&self) -> Result<(), EnterError> {
        let mut state = lock(&self.0);
        if let Some(refused) = state.refused.pop() {
            return Err(refused);
        }
        for (id, begins) in std::mem::take(&mut state.pushed) {
            if begins {
                state.under_way.push(id);
            } else if !state.stuck {
                state.complete(Some(id), -libc::ECANCELED);
            }
        }
        Ok(())
    }

    // No thread of a model sleeps for the eventfd.
    unsafe fn disable_eventfd(&self) {}

    unsafe fn enable_eventfd(&self) {}

    unsafe fn take(&self, mut each: impl FnMut(OpId, i32), most: usize) -> (usize, bool) {
        let mut state = lock(&self.0);
        let count = state.completions.len().min(most);
        state.completions.drain(..count).for_each(|(id, result)| each(id, result));
        (count, false)
    }

    fn fetch(&self) {}

    fn wait(&self, _: Duration) {
        thread::yield_now();
    }
}

impl FakeState {
    /// Completes the operation with that ID, or the first one, if it is under way.
    fn complete(&mut self, id: Option<OpId>, result: i32) {
        let wanted = |under_way: &OpId| id.is_none_or(|id| id == *under_way);
        if let Some(at) = self.under_way.iter().position(wanted) {
            let id = self.under_way.remove(at);
            self.completions.push((id, result));
        }
    }
}

fn uring() -> Arc<Uring<FakeKernel>> {
    Arc::new(Uring::new(FakeKernel(Mutex::new(FakeState::default()))))
}

/// Completes the first operation under way, and reaps, as a driver's turn does.
fn complete(uring: &Uring<FakeKernel>) {
    lock(&uring.kernel.0).complete(None, 7);
    uring.reap();
}

fn begin<P: Send + 'static>(
    uring: &Uring<FakeKernel>,
    payload: P,
) -> Result<OpFuture<'_, P, FakeKernel>, SubmitError> {
    let kind = |_: &mut P| OpKind::Recv { fd: -1, memory: std::ptr::null_mut(), length: 0 };
    // SAFETY: the kernel is a model, which accesses neither the memory nor the descriptor.
    unsafe { uring.submit(payload, kind) }.map_err(|(why, _)| why)
}

/// Counts how often it is dropped.
struct ModelPayload(Arc<Tally>);

impl Drop for ModelPayload {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[test]
fn a_dropped_operation_against_its_completion_frees_its_payload_once() {
    model(|| {
        let (uring, dropped) = (uring(), Arc::new(Tally::default()));
        let op = begin(&uring, ModelPayload(dropped.clone())).unwrap();
        let kernel = thread::spawn({
            let uring = uring.clone();
            move || complete(&uring)
        });
        drop(op);
        kernel.join().unwrap();
        assert_eq!((uring.in_flight(), dropped.get()), (0, 1));
    });
}

/// The operation is refused, or it completes: no task waits for ever.
#[test]
fn an_operation_against_a_close_completes_or_is_refused() {
    model(|| {
        let (uring, dropped) = (uring(), Arc::new(Tally::default()));
        let end = thread::spawn({
            let uring = uring.clone();
            move || uring.close()
        });
        match begin(&uring, ModelPayload(dropped.clone())) {
            Err(why) => assert_eq!(why, SubmitError::Closed),
            Ok(op) => assert_eq!(block_on(op).0, -libc::ECANCELED),
        }
        end.join().unwrap();
        assert_eq!((uring.in_flight(), dropped.get()), (0, 1));
        assert!(begin(&uring, ()).is_err(), "it is closed");
    });
}

/// The close cancels an operation that another thread is completing.
#[test]
fn a_completion_against_a_close_is_one_completion() {
    model(|| {
        let uring = uring();
        let op = begin(&uring, ()).unwrap();
        let kernel = thread::spawn({
            let uring = uring.clone();
            move || complete(&uring)
        });
        uring.close();
        let (result, ()) = block_on(op);
        assert!([7, -libc::ECANCELED].contains(&result), "{result}");
        kernel.join().unwrap();
        assert_eq!(uring.in_flight(), 0);
    });
}

#[test]
fn two_threads_that_reap_deliver_each_completion_once() {
    model(|| {
        let uring = uring();
        let ops = [begin(&uring, 'a').unwrap(), begin(&uring, 'b').unwrap()];
        let other = thread::spawn({
            let uring = uring.clone();
            move || complete(&uring)
        });
        complete(&uring);
        let completions = ops.map(block_on);
        assert_eq!(completions, [(7, 'a'), (7, 'b')]);
        other.join().unwrap();
        assert_eq!(uring.in_flight(), 0);
    });
}

/// A future is dropped while its operation completes, and the slot of the operation is given to
/// another one before the cancel reaches the kernel.
#[test]
fn a_late_cancel_ends_no_other_operation() {
    model(|| {
        let uring = uring();
        let first = begin(&uring, ()).unwrap();
        let other = thread::spawn({
            let uring = uring.clone();
            move || {
                complete(&uring);
                // The operation stays under way until the end of the model.
                std::mem::forget(begin(&uring, ()).unwrap());
            }
        });
        drop(first);
        other.join().unwrap();
        assert_eq!(uring.in_flight(), 1, "the second was ended by a cancel of the first");
        complete(&uring);
        assert_eq!(uring.in_flight(), 0);
    });
}

/// The first thread that enters finds no room, and lets the other one pass.
#[test]
fn two_threads_that_find_no_room_both_begin() {
    model(|| {
        let uring = uring();
        lock(&uring.kernel.0).refused.push(EnterError::NoRoom);
        let other = thread::spawn({
            let uring = uring.clone();
            move || std::mem::forget(begin(&uring, 'a').unwrap())
        });
        let mine = begin(&uring, 'b').unwrap();
        other.join().unwrap();
        let state = lock(&uring.kernel.0);
        assert_eq!((state.pushed.len(), state.under_way.len()), (0, 2));
        drop(state);
        complete(&uring);
        complete(&uring);
        assert_eq!((block_on(mine), uring.in_flight()), ((7, 'b'), 0));
    });
}

/// One thread has found no room yet when the other finds that the kernel refuses the call for good.
#[test]
fn a_kernel_that_refuses_gives_every_payload_back() {
    model(|| {
        let (uring, dropped) = (uring(), Arc::new(Tally::default()));
        lock(&uring.kernel.0).refused.extend([EnterError::Never(libc::EPERM), EnterError::NoRoom]);
        let other = thread::spawn({
            let (uring, dropped) = (uring.clone(), dropped.clone());
            move || begin(&uring, ModelPayload(dropped)).map(drop)
        });
        let mine = begin(&uring, ModelPayload(dropped.clone())).map(drop);
        assert_eq!(mine, Err(SubmitError::Unusable));
        assert_eq!(other.join().unwrap(), Err(SubmitError::Unusable));
        assert_eq!((uring.in_flight(), dropped.get()), (0, 2));
        assert!(lock(&uring.kernel.0).under_way.is_empty());
    });
}

/// Memory that the kernel keeps is never freed, because it may still be written to; and the close
/// returns.
#[cfg(not(blitz_loom))]
#[test]
fn an_end_leaves_to_the_kernel_what_it_does_not_complete() {
    let (uring, dropped) = (uring(), Arc::new(Tally::default()));
    lock(&uring.kernel.0).stuck = true;
    let op = begin(&uring, ModelPayload(dropped.clone())).unwrap();
    drop(begin(&uring, ModelPayload(dropped.clone())).unwrap());
    let begun = std::time::Instant::now();
    uring.close();
    assert!(begun.elapsed() >= super::CLOSE_TIMEOUT, "it was patient");
    assert_eq!((uring.in_flight(), dropped.get()), (2, 0));
    // If the future is still polled, the polling thread waits for the completion.
    let kernel = std::thread::spawn({
        let uring = uring.clone();
        move || lock(&uring.kernel.0).complete(None, 7)
    });
    let (result, payload) = block_on(op);
    assert_eq!((result, dropped.get()), (7, 0));
    kernel.join().unwrap();
    drop(payload);
    assert_eq!((uring.in_flight(), dropped.get()), (1, 1));
    drop(uring);
    assert_eq!(dropped.get(), 1, "freed under the kernel's hands");
}
