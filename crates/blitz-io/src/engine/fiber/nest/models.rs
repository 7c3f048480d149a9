//! Models of a nest against other threads, under every interleaving. The futures are plain ones,
//! because what a nest promises does not depend on stacks.

use std::{
    future::{pending, poll_fn},
    panic::Location,
    sync::{Arc as Plain, Weak},
    task::{Poll, Waker},
    time::Duration,
};

use super::Nest;
use crate::engine::{
    prim::{
        Arc, AtomicUsize, Mutex, Ordering::Relaxed, clock::TimestampUnit, ids::Tally, lock, model,
        thread,
    },
    work::task::{cell::Label, handle::JoinHandle},
};

/// Slot in which a task leaves its waker for another thread.
type Slot = Arc<Mutex<Option<Waker>>>;

/// Panics when dropped on another thread than its own.
struct Witness {
    home: Option<thread::ThreadId>,
    dropped: Plain<Tally>,
}

impl Witness {
    /// Creates the witness of a future that belongs to this thread.
    fn here(dropped: &Plain<Tally>) -> Self {
        Self { home: Some(thread::current().id()), dropped: dropped.clone() }
    }

    /// Creates the witness of a future that was never polled, and may be dropped anywhere.
    fn anywhere(dropped: &Plain<Tally>) -> Self {
        Self { home: None, dropped: dropped.clone() }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let here = thread::current().id();
        assert!(self.home.is_none_or(|home| home == here), "a future left its thread");
        self.dropped.add();
    }
}

fn nest() -> Plain<Nest> {
    let nest = Nest::new(None, 0, TimestampUnit::Millis, Duration::MAX);
    nest.begin();
    nest
}

fn spawn<F>(nest: &Plain<Nest>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let label = Label::at(Location::caller());
    nest.spawn(future, label).unwrap_or_else(|refused| refused.end())
}

/// Spawns a task that leaves its waker and waits for ever, and polls it once.
fn parked(nest: &Plain<Nest>, witness: Witness) -> (JoinHandle<()>, Waker) {
    let slot = Slot::default();
    let handle = spawn(nest, {
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
    assert!(nest.turn(None), "it was queued");
    let waker = lock(&slot).take().expect("the task was polled");
    (handle, waker)
}

/// Asserts that the nest was freed, with its home and all its cells.
#[track_caller]
fn assert_gone(nest: &Weak<Nest>) {
    assert!(nest.upgrade().is_none(), "a cell or an entry was left behind");
}

#[test]
fn a_wake_against_a_sleep_is_not_lost() {
    model(|| {
        let (nest, flag, slot) = (nest(), Arc::new(AtomicUsize::new(0)), Slot::default());
        let handle = spawn(&nest, {
            let (flag, slot) = (flag.clone(), slot.clone());
            poll_fn(move |cx| {
                // Relaxed: ordered by the wake-up.
                if flag.load(Relaxed) == 1 {
                    return Poll::Ready(());
                }
                *lock(&slot) = Some(cx.waker().clone());
                Poll::Pending
            })
        });
        assert!(nest.turn(None), "it was queued");
        let waker = lock(&slot).take().expect("the task was polled");
        let other = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        // The loop of `live`; a lost wake-up shows as a model that never ends.
        while !handle.is_finished() {
            if !nest.turn(None) {
                nest.parker.park();
            }
        }
        other.join().unwrap();
        nest.end();
    });
}

#[test]
fn a_wake_against_the_end_drops_the_future_on_its_thread() {
    model(|| {
        let (nest, dropped) = (nest(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&nest);
        let (handle, waker) = parked(&nest, Witness::here(&dropped));
        let other = thread::spawn(move || {
            waker.wake_by_ref();
            drop(waker);
            drop(handle);
        });
        nest.end();
        assert_eq!(dropped.get(), 1, "the end left the future, or somebody else took it");
        drop(nest);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

#[test]
fn an_abort_against_the_end_drops_the_future_on_its_thread() {
    model(|| {
        let (nest, dropped) = (nest(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&nest);
        let (handle, waker) = parked(&nest, Witness::here(&dropped));
        drop(waker);
        let other = thread::spawn(move || handle.abort());
        nest.end();
        assert_eq!(dropped.get(), 1);
        drop(nest);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

/// Two threads push while the nest ends: what comes before the close is taken out, what comes after
/// is refused, and neither leaks memory.
#[test]
fn pushes_against_the_end_leave_nothing_behind() {
    model(|| {
        let (nest, dropped) = (nest(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&nest);
        let wakers = [(); 2].map(|()| parked(&nest, Witness::here(&dropped)).1);
        let others = wakers.map(|waker| thread::spawn(move || waker.wake()));
        nest.end();
        assert_eq!(dropped.get(), 2);
        drop(nest);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_gone(&gone);
    });
}

#[test]
fn a_spawn_against_the_end_runs_or_is_refused() {
    model(|| {
        let (nest, dropped) = (nest(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&nest);
        let other = thread::spawn({
            let (nest, witness) = (nest.clone(), Witness::anywhere(&dropped));
            move || {
                let task = async move {
                    let _witness = witness;
                    pending::<()>().await;
                };
                drop(spawn(&nest, task));
            }
        });
        nest.end();
        other.join().unwrap();
        assert_eq!(dropped.get(), 1, "a fiber outlived its carrier");
        drop(nest);
        assert_gone(&gone);
    });
}

#[test]
fn a_stop_against_a_sleep_is_seen() {
    model(|| {
        let nest = nest();
        let other = thread::spawn({
            let nest = nest.clone();
            move || nest.stop()
        });
        nest.live(None);
        other.join().unwrap();
    });
}
