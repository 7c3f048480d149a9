//! Models of a local set against other threads, under every interleaving.

use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    panic::Location,
    sync::Weak,
    task::{Context, Poll, Wake, Waker},
};

use super::{Local, Remaining, Shared};
use crate::engine::{
    prim::{Arc, AtomicUsize, Mutex, Ordering::Relaxed, ids::Tally, lock, model, thread},
    work::task::handle::JoinHandle,
};

/// A cell in which a task leaves its waker for another thread.
type WakerSlot = Arc<Mutex<Option<Waker>>>;

/// Records on which thread it was dropped.
struct DropWitness {
    owner_thread: thread::ThreadId,
    dropped: std::sync::Arc<Tally>,
}

impl DropWitness {
    fn new(dropped: &std::sync::Arc<Tally>) -> Self {
        Self { owner_thread: thread::current().id(), dropped: dropped.clone() }
    }
}

impl Drop for DropWitness {
    fn drop(&mut self) {
        assert_eq!(thread::current().id(), self.owner_thread, "a future left its thread");
        self.dropped.add();
    }
}

/// Counts how often the driver was woken.
#[derive(Default)]
struct WakeCount(Tally);

impl Wake for WakeCount {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.add();
    }
}

fn spawn<F: Future + 'static>(set: &Local, future: F) -> JoinHandle<F::Output> {
    set.spawn(future, crate::engine::work::task::cell::Label::at(Location::caller()))
}

/// Runs one turn of the set, for a driver without a future of its own.
fn turn(set: &Local, calls: &std::sync::Arc<WakeCount>) -> Remaining {
    let waker = Waker::from(calls.clone());
    let mut cx = Context::from_waker(&waker);
    let Err(remaining) =
        set.poll(super::SetDriverId::first(), &mut cx, |_| Poll::<Infallible>::Pending);
    remaining
}

/// Spawns a task that leaves its waker and waits for ever, and polls it once.
fn parked(set: &Local, witness: DropWitness) -> (JoinHandle<()>, Waker) {
    let slot = WakerSlot::default();
    let handle = spawn(set, {
        let slot = slot.clone();
        async move {
            let _witness = witness;
            poll_fn(|cx| {
                *lock(&slot) = Some(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
            pending::<()>().await;
        }
    });
    assert_eq!(turn(set, &std::sync::Arc::default()), Remaining::Tasks);
    let waker = lock(&slot).take().expect("the task was polled");
    (handle, waker)
}

/// Asserts that the set is freed, with its arena and all its cells.
#[track_caller]
fn assert_gone(set: &Weak<Shared>) {
    assert!(set.upgrade().is_none(), "a cell or an entry was left behind");
}

#[test]
fn a_wake_against_a_poll_is_seen_or_calls_again() {
    model(|| {
        let (set, calls) = (Local::new(), std::sync::Arc::new(WakeCount::default()));
        let flag = Arc::new(AtomicUsize::new(0));
        let slot = WakerSlot::default();
        let handle = spawn(&set, {
            let (flag, slot) = (flag.clone(), slot.clone());
            poll_fn(move |cx| {
                // Relaxed: the wake-up orders it.
                if flag.load(Relaxed) == 1 {
                    return Poll::Ready(());
                }
                *lock(&slot) = Some(cx.waker().clone());
                Poll::Pending
            })
        });
        // One turn and one wake-up in vain, so that no waker is registered when the race begins.
        assert_eq!(turn(&set, &calls), Remaining::Tasks);
        set.shared.notifier.notify();
        let before = calls.0.get();
        let waker = lock(&slot).take().expect("the task was polled");
        let other = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        let seen = turn(&set, &calls) == Remaining::Nothing;
        other.join().unwrap();
        if !seen {
            assert!(calls.0.get() > before, "no thread would come for the task");
            assert_eq!(turn(&set, &calls), Remaining::Nothing);
        }
        assert!(handle.is_finished());
        set.end();
    });
}

#[test]
fn a_wake_against_completion_frees_once() {
    model(|| {
        let (set, dropped) = (Local::new(), std::sync::Arc::new(Tally::default()));
        let gone = std::sync::Arc::downgrade(&set.shared);
        let slot = WakerSlot::default();
        let handle = spawn(&set, {
            let (witness, slot) = (DropWitness::new(&dropped), slot.clone());
            let mut polled = false;
            poll_fn(move |cx| {
                let _witness = &witness;
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(());
                }
                *lock(&slot) = Some(cx.waker().clone());
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        });
        drop(handle);
        let calls = std::sync::Arc::new(WakeCount::default());
        let task = set.next().expect("it was spawned");
        assert!(!crate::engine::work::task::poll::run(task, 0));
        let waker = lock(&slot).take().expect("the task was polled");
        let other = thread::spawn(move || waker.wake());
        assert_eq!(turn(&set, &calls), Remaining::Nothing);
        assert_eq!(dropped.get(), 1);
        set.end();
        drop(set);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

#[test]
fn a_wake_against_the_end_drops_the_future_on_its_thread() {
    model(|| {
        let (set, dropped) = (Local::new(), std::sync::Arc::new(Tally::default()));
        let gone = std::sync::Arc::downgrade(&set.shared);
        let (handle, waker) = parked(&set, DropWitness::new(&dropped));
        let other = thread::spawn(move || {
            waker.wake_by_ref();
            drop(waker);
            drop(handle);
        });
        set.end();
        assert_eq!(dropped.get(), 1, "the end left the future, or another thread took it");
        drop(set);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

#[test]
fn an_abort_against_the_end_drops_the_future_on_its_thread() {
    model(|| {
        let (set, dropped) = (Local::new(), std::sync::Arc::new(Tally::default()));
        let gone = std::sync::Arc::downgrade(&set.shared);
        let handle = spawn(&set, {
            let witness = DropWitness::new(&dropped);
            async move {
                let _witness = witness;
                pending::<()>().await;
            }
        });
        assert_eq!(turn(&set, &std::sync::Arc::default()), Remaining::Tasks);
        let abort = handle.abort_handle();
        drop(handle);
        let other = thread::spawn(move || abort.abort());
        set.end();
        assert_eq!(dropped.get(), 1);
        drop(set);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

/// Two threads push while the set ends. Entries that come before the close are taken out, those
/// that come after are refused, and neither keeps memory.
#[test]
fn a_push_against_the_end_leaves_nothing_behind() {
    model(|| {
        let (set, dropped) = (Local::new(), std::sync::Arc::new(Tally::default()));
        let gone = std::sync::Arc::downgrade(&set.shared);
        let wakers = [(); 2].map(|()| parked(&set, DropWitness::new(&dropped)).1);
        let others = wakers.map(|waker| thread::spawn(move || waker.wake()));
        set.end();
        assert_eq!(dropped.get(), 2);
        drop(set);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_gone(&gone);
    });
}
