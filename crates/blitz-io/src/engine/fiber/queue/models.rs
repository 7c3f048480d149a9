//! Models of a fiber queue against other threads, under every interleaving. The futures are plain
//! ones, because what a queue promises does not depend on stacks.

use std::{
    future::{pending, poll_fn},
    panic::Location,
    sync::{Arc as Plain, Weak},
    task::{Poll, Waker},
    time::Duration,
};

use super::FiberQueue;
use crate::engine::{
    prim::{
        Arc, AtomicUsize, Mutex, Ordering::Relaxed, clock::TimestampUnit, ids::Tally, lock, model,
        thread,
    },
    work::task::{cell::Label, handle::JoinHandle},
};

/// Slot in which a task leaves its waker for another thread.
type FiberWakerSlot = Arc<Mutex<Option<Waker>>>;

/// Panics when dropped on another thread than its own.
struct FiberWitness {
    owner: Option<thread::ThreadId>,
    dropped: Plain<Tally>,
}

impl FiberWitness {
    /// Creates the witness of a future that belongs to this thread.
    fn on_this_thread(dropped: &Plain<Tally>) -> Self {
        Self { owner: Some(thread::current().id()), dropped: dropped.clone() }
    }

    /// Creates the witness of a future that was never polled, and may be dropped anywhere.
    fn anywhere(dropped: &Plain<Tally>) -> Self {
        Self { owner: None, dropped: dropped.clone() }
    }
}

impl Drop for FiberWitness {
    fn drop(&mut self) {
        let current = thread::current().id();
        assert!(self.owner.is_none_or(|owner| owner == current), "a future left its thread");
        self.dropped.add();
    }
}

fn queue() -> Plain<FiberQueue> {
    let queue = FiberQueue::new(None, 0, TimestampUnit::Millis, Duration::MAX);
    queue.begin();
    queue
}

fn spawn<F>(queue: &Plain<FiberQueue>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let label = Label::at(Location::caller());
    queue.spawn(future, label).unwrap_or_else(|refused| refused.end())
}

/// Spawns a task that leaves its waker and waits for ever, and polls it once.
fn parked(queue: &Plain<FiberQueue>, witness: FiberWitness) -> (JoinHandle<()>, Waker) {
    let slot = FiberWakerSlot::default();
    let handle = spawn(queue, {
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
    assert!(queue.turn(None), "it was queued");
    let waker = lock(&slot).take().expect("the task was polled");
    (handle, waker)
}

/// Asserts that the queue was freed, with its arena and all its cells.
#[track_caller]
fn assert_gone(queue: &Weak<FiberQueue>) {
    assert!(queue.upgrade().is_none(), "a cell or an entry was left behind");
}

#[test]
fn a_wake_against_a_sleep_is_not_lost() {
    model(|| {
        let (queue, flag, slot) =
            (queue(), Arc::new(AtomicUsize::new(0)), FiberWakerSlot::default());
        let handle = spawn(&queue, {
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
        assert!(queue.turn(None), "it was queued");
        let waker = lock(&slot).take().expect("the task was polled");
        let other = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        // The loop of `run`; a lost wake-up shows as a model that never ends.
        while !handle.is_finished() {
            if !queue.turn(None) {
                queue.parker.park();
            }
        }
        other.join().unwrap();
        queue.end();
    });
}

#[test]
fn a_wake_against_the_end_drops_the_future_on_its_thread() {
    model(|| {
        let (queue, dropped) = (queue(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&queue);
        let (handle, waker) = parked(&queue, FiberWitness::on_this_thread(&dropped));
        let other = thread::spawn(move || {
            waker.wake_by_ref();
            drop(waker);
            drop(handle);
        });
        queue.end();
        assert_eq!(dropped.get(), 1, "the end left the future, or another thread took it");
        drop(queue);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

#[test]
fn an_abort_against_the_end_drops_the_future_on_its_thread() {
    model(|| {
        let (queue, dropped) = (queue(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&queue);
        let (handle, waker) = parked(&queue, FiberWitness::on_this_thread(&dropped));
        drop(waker);
        let other = thread::spawn(move || handle.abort());
        queue.end();
        assert_eq!(dropped.get(), 1);
        drop(queue);
        other.join().unwrap();
        assert_gone(&gone);
    });
}

/// Two threads push while the queue ends: what comes before the close is taken out, what comes
/// after is refused, and neither leaks memory.
#[test]
fn pushes_against_the_end_leave_nothing_behind() {
    model(|| {
        let (queue, dropped) = (queue(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&queue);
        let wakers = [(); 2].map(|()| parked(&queue, FiberWitness::on_this_thread(&dropped)).1);
        let others = wakers.map(|waker| thread::spawn(move || waker.wake()));
        queue.end();
        assert_eq!(dropped.get(), 2);
        drop(queue);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_gone(&gone);
    });
}

#[test]
fn a_spawn_against_the_end_runs_or_is_refused() {
    model(|| {
        let (queue, dropped) = (queue(), Plain::new(Tally::default()));
        let gone = Plain::downgrade(&queue);
        let other = thread::spawn({
            let (queue, witness) = (queue.clone(), FiberWitness::anywhere(&dropped));
            move || {
                let task = async move {
                    let _witness = witness;
                    pending::<()>().await;
                };
                drop(spawn(&queue, task));
            }
        });
        queue.end();
        other.join().unwrap();
        assert_eq!(dropped.get(), 1, "a fiber outlived its carrier");
        drop(queue);
        assert_gone(&gone);
    });
}

#[test]
fn a_stop_against_a_sleep_is_seen() {
    model(|| {
        let queue = queue();
        let other = thread::spawn({
            let queue = queue.clone();
            move || queue.stop()
        });
        queue.run(None);
        other.join().unwrap();
    });
}
