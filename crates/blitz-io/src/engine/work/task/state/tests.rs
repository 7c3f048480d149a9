//! Models of the state word; see the protocol in `state.rs`.
//!
//! A mock task has a cell for its future and one for its join waker. Each is touched by the
//! thread that the word makes its owner, so the model checker sees it if there are two owners.

use super::{Detached, JoinWaker, Rested, State, Taken, Woken};
use crate::engine::prim::{
    Arc, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell, model, thread,
};

/// A task without a runtime: its queue is a count of entries.
struct MockTask {
    state: State,
    /// A value that wakers write before they wake, and polls read.
    news: AtomicUsize,
    /// 0 while it holds the future, 1 after the task ended, 2 after its output was dropped.
    stage: UnsafeCell<usize>,
    waker: UnsafeCell<usize>,
    entries: AtomicUsize,
    ends: AtomicUsize,
    frees: AtomicUsize,
    joins: AtomicUsize,
}

// SAFETY: the cells are touched by the owner that the state word names: that is
// what the models check.
unsafe impl Sync for MockTask {}
// SAFETY: the cells are plain data, touched by the owner that the state word names.
unsafe impl Send for MockTask {}

impl MockTask {
    /// Creates a task that was spawned; its entry is in the queue.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: State::at_spawn(),
            news: AtomicUsize::new(0),
            stage: UnsafeCell::new(0),
            waker: UnsafeCell::new(0),
            entries: AtomicUsize::new(1),
            ends: AtomicUsize::new(0),
            frees: AtomicUsize::new(0),
            joins: AtomicUsize::new(0),
        })
    }

    /// Creates a task that was polled once and is idle.
    fn idle() -> Arc<Self> {
        let mock = Self::new();
        assert!(mock.pop());
        assert_eq!(mock.state.take(), Taken::Poll);
        assert_eq!(mock.state.rest(), Rested::Idle);
        mock
    }

    fn wake(&self) {
        // Relaxed: the state word must order it.
        self.news.store(1, Relaxed);
        self.act_on(self.state.wake_by_ref());
    }

    fn act_on(&self, duty: Woken) {
        if duty == Woken::Schedule {
            // Release: publishes the entry, as a queue would. Pairs with the Acquire in `pop`.
            self.entries.fetch_add(1, Release);
        }
    }

    /// Takes the entry out of the queue; returns true if there was one.
    fn pop(&self) -> bool {
        // Acquire: sees the entry. Pairs with the Release in `act_on`.
        let taken = self.entries.compare_exchange(1, 0, Acquire, Relaxed);
        assert!(self.entries.load(Relaxed) <= 1, "two entries of one task");
        taken.is_ok()
    }

    /// Runs the entry as a worker does, with a poll that returns `Pending`. Returns the news that
    /// the poll saw.
    fn run_pending(&self) -> Option<usize> {
        match self.state.take() {
            Taken::Poll => {
                // SAFETY: we run the task.
                self.stage
                    .with_mut(|stage| unsafe { assert_eq!(*stage, 0, "polled a dropped future") });
                let seen = self.news.load(Relaxed);
                match self.state.rest() {
                    Rested::Idle => {}
                    // Release: publishes the entry. Pairs with the Acquire in `pop`.
                    Rested::Schedule => drop(self.entries.fetch_add(1, Release)),
                    Rested::Cancel => self.end(),
                }
                Some(seen)
            }
            Taken::Cancel => {
                self.end();
                None
            }
            Taken::Nothing => None,
            Taken::Free => {
                self.frees.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Drops the future, completes the task, and gives up the life reference.
    fn end(&self) {
        // SAFETY: we run the task.
        self.stage.with_mut(|stage| unsafe {
            assert_eq!(*stage, 0, "the future was dropped twice");
            *stage = 1;
        });
        self.ends.fetch_add(1, Relaxed);
        let completed = self.state.complete();
        if completed.drop_output {
            // SAFETY: no handle will read the output, so it is ours.
            self.stage.with_mut(|stage| unsafe { *stage += 1 });
        }
        if completed.wake_joiner {
            // SAFETY: JOIN_WAKER was set, so the waker is ours.
            self.waker.with_mut(|waker| unsafe {
                assert_eq!(*waker, 1, "woke a waker that is not there");
                *waker = 0;
            });
            self.joins.fetch_add(1, Relaxed);
        }
        self.unref();
    }

    fn unref(&self) {
        if self.state.unref() {
            self.frees.fetch_add(1, Relaxed);
        }
    }

    fn detach(&self) {
        match self.state.detach() {
            Detached::Gone => return,
            // SAFETY: the output is ours.
            Detached::DropOutput => self.stage.with_mut(|stage| unsafe { *stage += 1 }),
            // SAFETY: the waker is ours again.
            Detached::DropWaker => self.waker.with_mut(|waker| unsafe { *waker = 0 }),
        }
        self.unref();
    }

    /// Does what a `JoinHandle` does in a poll; returns true if it has the output.
    fn join_poll(&self) -> bool {
        if self.state.snapshot().is_complete() {
            // SAFETY: the output is ours.
            return self.stage.with(|stage| unsafe { *stage }) == 1;
        }
        // SAFETY: JOIN_WAKER is clear, so the waker is ours.
        self.waker.with_mut(|waker| unsafe { *waker = 1 });
        if self.state.set_join_waker() == JoinWaker::Changed {
            return false;
        }
        // SAFETY: the task completed while JOIN_WAKER was clear, so the waker stayed ours.
        self.waker.with_mut(|waker| unsafe { *waker = 0 });
        // SAFETY: the output is ours.
        self.stage.with(|stage| unsafe { *stage }) == 1
    }
}

/// Runs entries until there is none; returns the news that the last poll saw.
fn drain(mock: &MockTask) -> Option<usize> {
    let mut seen = None;
    while mock.pop() {
        seen = mock.run_pending().or(seen);
    }
    seen
}

#[test]
fn a_wake_that_finds_the_task_queued_is_seen_by_the_poll() {
    model(|| {
        let mock = MockTask::new();
        let waker = thread::spawn({
            let mock = mock.clone();
            move || mock.wake()
        });
        let mut seen = drain(&mock);
        waker.join().unwrap();
        seen = drain(&mock).or(seen);
        assert_eq!(seen, Some(1), "the last poll did not see what was written before the wake");
    });
}

#[test]
fn a_wake_during_the_poll_is_not_lost() {
    model(|| {
        let mock = MockTask::new();
        assert!(mock.pop());
        assert_eq!(mock.state.take(), Taken::Poll);
        let waker = thread::spawn({
            let mock = mock.clone();
            move || mock.wake()
        });
        let mut seen = mock.news.load(Relaxed);
        if mock.state.rest() == Rested::Schedule {
            mock.act_on(Woken::Schedule);
        }
        waker.join().unwrap();
        seen = drain(&mock).unwrap_or(seen);
        assert_eq!(seen, 1, "the wake was lost");
    });
}

#[test]
fn two_wakes_make_one_entry() {
    model(|| {
        let mock = MockTask::idle();
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let mock = mock.clone();
                thread::spawn(move || mock.wake())
            })
            .collect();
        let mut seen = drain(&mock);
        for waker in wakers {
            waker.join().unwrap();
        }
        seen = drain(&mock).or(seen);
        assert_eq!(seen, Some(1));
    });
}

#[test]
fn abort_against_poll_drops_the_future_once() {
    model(|| {
        let mock = MockTask::new();
        let aborter = thread::spawn({
            let mock = mock.clone();
            move || mock.act_on(mock.state.cancel())
        });
        drain(&mock);
        aborter.join().unwrap();
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 1, "an aborted task must end");
    });
}

#[test]
fn abort_of_an_idle_task_against_a_wake_queues_once() {
    model(|| {
        let mock = MockTask::idle();
        let aborter = thread::spawn({
            let mock = mock.clone();
            move || mock.act_on(mock.state.cancel())
        });
        mock.wake();
        drain(&mock);
        aborter.join().unwrap();
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 1);
    });
}

#[test]
fn abort_against_abort_ends_the_task_once() {
    model(|| {
        let mock = MockTask::idle();
        let aborters: Vec<_> = (0..2)
            .map(|_| {
                let mock = mock.clone();
                thread::spawn(move || mock.act_on(mock.state.cancel()))
            })
            .collect();
        drain(&mock);
        for aborter in aborters {
            aborter.join().unwrap();
        }
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 1);
    });
}

#[test]
fn stop_against_take_runs_once() {
    model(|| {
        let mock = MockTask::new();
        let worker = thread::spawn({
            let mock = mock.clone();
            move || drain(&mock)
        });
        if mock.state.stop() {
            mock.end();
        }
        worker.join().unwrap();
        assert_eq!(mock.ends.load(Relaxed), 1);
    });
}

#[test]
fn stop_against_wake_ends_the_task_once() {
    model(|| {
        let mock = MockTask::idle();
        let waker = thread::spawn({
            let mock = mock.clone();
            move || mock.wake()
        });
        if mock.state.stop() {
            mock.end();
        }
        waker.join().unwrap();
        // The last step of shutdown: entries that were still on their way.
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 1);
    });
}

#[test]
fn stop_against_abort_ends_the_task_once() {
    model(|| {
        let mock = MockTask::idle();
        let aborter = thread::spawn({
            let mock = mock.clone();
            move || mock.act_on(mock.state.cancel())
        });
        if mock.state.stop() {
            mock.end();
        }
        aborter.join().unwrap();
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 1);
    });
}

#[test]
fn the_last_reference_against_take_frees_once() {
    model(|| {
        let mock = MockTask::new();
        // Shutdown ends a task while its entry is still in a queue.
        assert!(mock.state.stop());
        let dropper = thread::spawn({
            let mock = mock.clone();
            move || mock.detach()
        });
        mock.end();
        drain(&mock);
        dropper.join().unwrap();
        assert_eq!(mock.frees.load(Relaxed), 1, "freed exactly once, after the entry is out");
    });
}

#[test]
fn a_waker_against_the_end_frees_once() {
    model(|| {
        let mock = MockTask::idle();
        mock.state.add_ref();
        mock.detach();
        let waker = thread::spawn({
            let mock = mock.clone();
            move || {
                let duty = mock.state.wake_by_value();
                if duty == Woken::Free {
                    mock.frees.fetch_add(1, Relaxed);
                }
                mock.act_on(duty);
            }
        });
        if mock.state.stop() {
            mock.end();
        }
        waker.join().unwrap();
        drain(&mock);
        assert_eq!(mock.frees.load(Relaxed), 1);
    });
}

#[test]
fn completion_against_join_poll_wakes_or_is_seen() {
    model(|| {
        let mock = MockTask::new();
        let worker = thread::spawn({
            let mock = mock.clone();
            move || {
                assert!(mock.pop());
                assert_eq!(mock.state.take(), Taken::Poll);
                mock.end();
            }
        });
        let seen = mock.join_poll();
        worker.join().unwrap();
        let woken = mock.joins.load(Relaxed) == 1;
        assert!(seen != woken, "the joiner was neither woken nor saw the output, or both");
        mock.detach();
        assert_eq!(mock.frees.load(Relaxed), 1);
    });
}

#[test]
fn a_replaced_join_waker_against_completion_is_sound() {
    model(|| {
        let mock = MockTask::new();
        assert!(!mock.join_poll());
        let worker = thread::spawn({
            let mock = mock.clone();
            move || {
                assert!(mock.pop());
                assert_eq!(mock.state.take(), Taken::Poll);
                mock.end();
            }
        });
        let seen = mock.state.unset_join_waker() == JoinWaker::Complete || mock.join_poll();
        worker.join().unwrap();
        assert!(seen || mock.joins.load(Relaxed) == 1);
        mock.detach();
        assert_eq!(mock.frees.load(Relaxed), 1);
    });
}

#[test]
fn completion_against_handle_drop_drops_the_output_once() {
    model(|| {
        let mock = MockTask::new();
        let worker = thread::spawn({
            let mock = mock.clone();
            move || {
                assert!(mock.pop());
                assert_eq!(mock.state.take(), Taken::Poll);
                mock.end();
            }
        });
        mock.detach();
        worker.join().unwrap();
        // SAFETY: the other thread is gone.
        assert_eq!(mock.stage.with(|stage| unsafe { *stage }), 2, "dropped exactly once");
        assert_eq!(mock.frees.load(Relaxed), 1);
    });
}

#[test]
fn a_handle_with_a_waker_against_completion_leaves_none_behind() {
    model(|| {
        let mock = MockTask::new();
        assert!(!mock.join_poll());
        let worker = thread::spawn({
            let mock = mock.clone();
            move || {
                assert!(mock.pop());
                assert_eq!(mock.state.take(), Taken::Poll);
                mock.end();
            }
        });
        mock.detach();
        worker.join().unwrap();
        // SAFETY: the other thread is gone.
        assert_eq!(mock.waker.with(|waker| unsafe { *waker }), 0, "the waker was leaked");
        assert_eq!(mock.frees.load(Relaxed), 1);
    });
}

#[test]
fn shield_against_abort_defers_and_delivers() {
    model(|| {
        let mock = MockTask::idle();
        mock.state.shield().unwrap();
        let aborter = thread::spawn({
            let mock = mock.clone();
            move || mock.act_on(mock.state.cancel())
        });
        mock.act_on(mock.state.unshield());
        aborter.join().unwrap();
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 1, "the abort was lost with the shield");
    });
}

#[test]
fn an_abort_under_a_shield_leaves_the_task_alone() {
    model(|| {
        let mock = MockTask::idle();
        mock.state.shield().unwrap();
        let aborter = thread::spawn({
            let mock = mock.clone();
            move || mock.act_on(mock.state.cancel())
        });
        mock.wake();
        drain(&mock);
        aborter.join().unwrap();
        drain(&mock);
        assert_eq!(mock.ends.load(Relaxed), 0, "aborted under a shield");
        assert!(mock.state.stop(), "shutdown takes it all the same");
    });
}

#[test]
fn a_yield_against_a_wake_makes_one_entry() {
    model(|| {
        let mock = MockTask::new();
        assert!(mock.pop());
        assert_eq!(mock.state.take(), Taken::Poll);
        let waker = thread::spawn({
            let mock = mock.clone();
            move || mock.wake()
        });
        mock.state.rest_yielded();
        mock.act_on(Woken::Schedule);
        let mut seen = drain(&mock);
        waker.join().unwrap();
        seen = drain(&mock).or(seen);
        assert_eq!(seen, Some(1));
    });
}

#[cfg(not(blitz_loom))]
#[test]
fn the_shield_depth_saturates() {
    let state = State::at_spawn();
    for _ in 0..255 {
        state.shield().unwrap();
    }
    assert_eq!(state.shield(), Err(super::TooManyShields));
    for _ in 0..255 {
        assert_eq!(state.unshield(), Woken::Nothing);
    }
    assert!(format!("{state:?}").contains("shields: 0"));
}
