//! Models of a core that changes hands while its thread is in user code.
//!
//! The core is a cell that the model checker watches, so that two threads that touch it at once are
//! found. Work of a thread that has lost its core goes elsewhere, into an injector that only
//! counts.

use std::{ptr::NonNull, sync::Arc as Plain};

use super::{Lease, PollRecord};
use crate::engine::prim::{
    Arc, AtomicUsize, Ordering::Relaxed, UnsafeCell, ids::ModelEnds, model, model_deeper, thread,
};

/// A core, two threads' leases and poll records, and a task.
struct LeaseWorld {
    leases: [Lease; 2],
    /// The threads' own poll records; dropped after the leases that they are attached to.
    records: [PollRecord; 2],
    core: UnsafeCell<u32>,
    /// The task, which is freed, by a write, by the thread that ends its poll.
    task: UnsafeCell<u32>,
    injector: AtomicUsize,
    /// Exchanged by the thread that enters and by the thread that comes to take the core, because
    /// loom explores a location too little that is only loaded.
    meeting: AtomicUsize,
}

// SAFETY: which thread touches which of the cells is what the models check.
unsafe impl Sync for LeaseWorld {}
// SAFETY: the world is plain data, and which thread touches it is what the models check.
unsafe impl Send for LeaseWorld {}

impl LeaseWorld {
    fn new() -> Arc<Self> {
        Self::with([Lease::new(false), Lease::new(false)])
    }

    /// Creates a world in which light barriers are fences.
    fn by_fences() -> Arc<Self> {
        Self::with([Lease::new(false).with_fences(), Lease::new(false).with_fences()])
    }

    fn with(leases: [Lease; 2]) -> Arc<Self> {
        let world = Arc::new(Self {
            leases,
            records: [PollRecord::new(), PollRecord::new()],
            core: UnsafeCell::new(0),
            task: UnsafeCell::new(7),
            injector: AtomicUsize::new(0),
            meeting: AtomicUsize::new(0),
        });
        for (lease, record) in world.leases.iter().zip(&world.records) {
            // SAFETY: 1. leases and poll records live in one world.
            unsafe { lease.attach(record) };
        }
        world.begin(0);
        world
    }

    /// Records that the thread has the core.
    fn begin(&self, index: usize) {
        self.leases[index].begin(&self.records[index], NonNull::dangling());
    }

    /// Records that the thread gives up the core.
    fn end(&self, index: usize) {
        self.leases[index].end(&self.records[index]);
    }

    /// Enters the runtime's code for a moment; returns true if the thread has the core.
    fn reclaim(&self, index: usize) -> bool {
        self.records[index].reclaim() || self.leases[index].reclaim(&self.records[index])
    }

    fn resume(&self, index: usize) {
        self.records[index].resume();
    }

    /// Works on the core.
    fn touch(&self) {
        // SAFETY: the model fails if another thread touches the core at the same time.
        self.core.with_mut(|core| unsafe { *core += 1 });
    }

    /// Begins a poll of a task that does not exist: a model's inspector never reads it.
    fn enter(&self, index: usize) {
        self.records[index].enter(NonNull::dangling());
        self.meet();
    }

    fn meet(&self) {
        // Relaxed: it must not order anything that the protocol does not order.
        self.meeting.fetch_add(1, Relaxed);
    }

    /// Wakes another task from user code.
    fn wake(&self, index: usize) {
        if self.reclaim(index) {
            self.touch();
        } else {
            // Relaxed: a count, read at the end.
            self.injector.fetch_add(1, Relaxed);
        }
        self.resume(index);
    }

    /// Ends a poll; returns true if the thread still has the core.
    fn leave(&self, index: usize) -> bool {
        let record = &self.records[index];
        let kept = record.reclaim() || self.leases[index].leave(record);
        if kept {
            self.touch();
        } else {
            // Relaxed: a count, read at the end.
            self.injector.fetch_add(1, Relaxed);
        }
        kept
    }

    /// Does what the monitor does; returns true if it has taken the core, and works with it then.
    fn take(&self, index: usize) -> bool {
        let lease = &self.leases[index];
        self.meet();
        let Some(number) = lease.poll_number() else { return false };
        let taken = match lease.inspect(number) {
            Some(mut inspection) => {
                inspection.take();
                true
            }
            None => false,
        };
        if taken {
            self.touch();
        }
        taken
    }
}

/// Runs a thread that polls `polls` times, with a wake-up in each if it `wakes`, while another
/// tries as often to take its core; returns true if it was taken.
fn polls_against_takes(world: Arc<LeaseWorld>, polls: usize, wakes: bool) -> bool {
    let hog = thread::spawn({
        let world = world.clone();
        move || {
            world.touch();
            for _ in 0..polls {
                world.enter(0);
                if wakes {
                    world.wake(0);
                }
                if !world.leave(0) {
                    return false;
                }
            }
            true
        }
    });
    let taken = (0..polls).any(|_| world.take(0));
    let kept = hog.join().unwrap();
    assert!(!(taken && kept), "the core has two owners");
    assert!(taken || kept, "the core is lost");
    // Relaxed: the thread was joined.
    assert!(kept || world.injector.load(Relaxed) > 0, "what was to run is nowhere");
    taken
}

/// Explores [`polls_against_takes`]; both ends, taken and kept, must occur.
fn explore_takes(world: fn() -> Arc<LeaseWorld>, polls: usize, wakes: bool, deeper: bool) {
    let ends = Plain::new(ModelEnds::default());
    let execute = {
        let ends = ends.clone();
        move || ends.count(polls_against_takes(world(), polls, wakes))
    };
    if deeper {
        model_deeper(execute)
    } else {
        model(execute)
    }
    ends.assert_both_came();
}

#[test]
fn a_core_is_taken_or_kept() {
    explore_takes(LeaseWorld::new, 1, false, true);
}

#[test]
fn a_wake_inside_a_poll_against_a_taker() {
    explore_takes(LeaseWorld::new, 1, true, false);
}

#[test]
fn two_polls_against_a_taker() {
    explore_takes(LeaseWorld::new, 2, false, false);
}

#[test]
fn by_fences_two_polls_against_a_taker() {
    explore_takes(LeaseWorld::by_fences, 2, false, false);
}

#[test]
fn by_fences_a_wake_inside_a_poll_against_a_taker() {
    explore_takes(LeaseWorld::by_fences, 1, true, false);
}

/// The inspector has the number of a poll that may be over; its thread is in the next one.
#[test]
fn a_claim_that_comes_too_late_leaves_the_core() {
    model_deeper(|| {
        let world = LeaseWorld::new();
        world.enter(0);
        let number = world.leases[0].poll_number().expect("it is in a poll");
        let inspector = thread::spawn({
            let world = world.clone();
            move || {
                let mut inspection = world.leases[0].inspect(number)?;
                inspection.mark();
                // SAFETY: the model fails if another thread writes the task at the same time.
                Some(world.task.with(|task| unsafe { *task }))
            }
        });
        // No inspector takes the core: every claim is withdrawn.
        assert!(world.leave(0), "a claim was withdrawn, and the core held for lost");
        // The task of the first poll is freed.
        // SAFETY: the model fails if the inspector still reads the task.
        world.task.with_mut(|task| unsafe { *task = 0 });
        world.enter(0);
        assert!(world.leave(0));
        if let Some(seen) = inspector.join().unwrap() {
            assert_eq!(seen, 7, "the inspector saw what was freed");
        }
        assert!(!world.records[0].should_yield(), "a mark has outlived its poll");
    });
}

/// The core goes from the first thread to the second, and from that to the monitor again, while the
/// first thread comes back.
#[test]
fn a_core_is_taken_twice_in_a_row() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model(move || {
        let world = LeaseWorld::new();
        world.enter(0);
        let first = thread::spawn({
            let world = world.clone();
            move || {
                world.wake(0);
                world.leave(0)
            }
        });
        if !world.take(0) {
            assert!(first.join().unwrap());
            return;
        }
        let second = thread::spawn({
            let world = world.clone();
            move || {
                world.begin(1);
                world.touch();
                world.enter(1);
                world.leave(1)
            }
        });
        let taken = world.take(1);
        let kept = second.join().unwrap();
        assert!(!first.join().unwrap(), "the thread that lost it has it again");
        assert!(taken != kept, "the core has two owners, or none");
        counted.count(taken);
    });
    ends.assert_both_came();
}

/// A thread gives up its core by itself, like code that blocks in place.
#[test]
fn a_core_that_is_given_up_is_not_taken() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model_deeper(move || {
        let world = LeaseWorld::new();
        world.enter(0);
        let hog = thread::spawn({
            let world = world.clone();
            move || {
                let given = world.reclaim(0);
                if given {
                    world.end(0);
                    world.touch();
                }
                world.resume(0);
                given
            }
        });
        let taken = world.take(0);
        let given = hog.join().unwrap();
        assert!(taken != given, "the core has two owners, or none");
        assert!(!world.take(0), "it was taken from a thread that has none");
        counted.count(taken);
    });
    ends.assert_both_came();
}

/// A thread gives up its core and gets it back: from then on it can be taken again.
#[test]
fn a_core_that_came_back_can_be_taken() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model(move || {
        let world = LeaseWorld::new();
        world.enter(0);
        let hog = thread::spawn({
            let world = world.clone();
            move || {
                if world.reclaim(0) {
                    world.end(0);
                    world.touch();
                    world.begin(0);
                }
                world.resume(0);
                world.leave(0)
            }
        });
        let taken = world.take(0) || world.take(0);
        let kept = hog.join().unwrap();
        assert!(taken != kept, "the core has two owners, or none");
        counted.count(taken);
    });
    ends.assert_both_came();
}

#[test]
fn a_task_is_not_freed_under_a_report() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model_deeper(move || {
        let world = LeaseWorld::new();
        world.enter(0);
        let reporter = thread::spawn({
            let world = world.clone();
            move || {
                let number = world.leases[0].poll_number()?;
                let _inspection = world.leases[0].inspect(number)?;
                // SAFETY: the model fails if another thread writes the task at the same time.
                Some(world.task.with(|task| unsafe { *task }))
            }
        });
        assert!(world.leave(0));
        // SAFETY: the model fails if the reporter still reads the task.
        world.task.with_mut(|task| unsafe { *task = 0 });
        let seen = reporter.join().unwrap();
        counted.count(seen.is_some());
        assert!(seen.is_none_or(|seen| seen == 7));
    });
    ends.assert_both_came();
}

#[test]
fn a_mark_does_not_outlive_its_poll() {
    model_deeper(|| {
        let world = LeaseWorld::new();
        world.enter(0);
        let inspector = thread::spawn({
            let world = world.clone();
            move || {
                let Some(number) = world.leases[0].poll_number() else { return };
                if let Some(mut inspection) = world.leases[0].inspect(number) {
                    inspection.mark();
                }
            }
        });
        world.wake(0);
        assert!(world.leave(0));
        inspector.join().unwrap();
        assert!(!world.records[0].should_yield());
    });
}

/// In the middle of a poll for which the core was given up, the thread is watched on behalf of
/// another runtime, polls there, and goes on. Inspectors of the first runtime find the poll that
/// they came for, or none; inspectors of the second see nothing of the first.
#[test]
fn words_of_two_runtimes_against_inspectors() {
    model(|| {
        let world = LeaseWorld::new();
        let first = &world.leases[0];
        let record = &world.records[0];
        world.enter(0);
        let number = first.poll_number().expect("it is in a poll");
        assert!(world.reclaim(0));
        world.end(0);
        world.resume(0);
        let inspector = thread::spawn({
            let world = world.clone();
            move || {
                assert!(!world.take(0), "it was taken from a thread that has none");
                assert!(world.leases[0].is_in(number), "the poll that waits is another one");
                let second = world.leases[1].poll_number();
                let inspection = second.and_then(|number| world.leases[1].inspect(number))?;
                assert_ne!(inspection.task(), NonNull::dangling(), "that is the first one's");
                drop(inspection);
                second
            }
        });
        first.suspend(record);
        // SAFETY: 1. the record is detached below.
        unsafe { world.leases[1].attach(record) };
        world.leases[1].begin(record, NonNull::dangling());
        let task = std::ptr::without_provenance_mut(0x100);
        record.enter(NonNull::new(task).expect("it is not null"));
        let kept = record.reclaim() || world.leases[1].leave(record);
        assert!(kept, "no thread takes it");
        world.leases[1].end(record);
        world.leases[1].detach(record);
        // SAFETY: 1. the record lives in the world, as the lease does.
        unsafe { first.reattach(record) };
        let seen = inspector.join().unwrap();
        assert_ne!(
            seen,
            Some(number),
            "one runtime's inspector read what was recorded for the other"
        );
        assert!(first.is_in(number));
        assert!(!world.leave(0), "it has given its core up");
    });
}

/// A thread waits with a core that is never taken from it, like a fiber that blocks its thread. It
/// is marked while it waits, and sees the mark when it goes on. Afterwards the mark is gone.
#[test]
fn a_thread_that_waits_and_keeps_its_core_is_marked() {
    model(|| {
        let leases = [Lease::new(true), Lease::new(true)];
        let world = LeaseWorld::with(leases);
        let (lease, record) = (&world.leases[0], &world.records[0]);
        world.enter(0);
        let number = lease.poll_number().expect("it is in a poll");
        let inspector = thread::spawn({
            let world = world.clone();
            move || {
                let Some(mut inspection) = world.leases[0].inspect(number) else { return false };
                assert_eq!(inspection.task(), NonNull::dangling(), "that is another poll's");
                inspection.mark()
            }
        });
        lease.suspend(record);
        // The thread polls another task while it waits.
        record.enter(NonNull::new(std::ptr::without_provenance_mut(0x100)).expect("not null"));
        assert!(record.reclaim(), "no inspector watches");
        // SAFETY: 1. the record lives in the world, as the lease does.
        unsafe { lease.reattach(record) };
        let marked = inspector.join().unwrap();
        assert!(marked, "it was in that poll all the time");
        assert!(record.should_yield(), "it does not see the mark");
        assert!(world.leave(0) && !record.should_yield());
    });
}

/// A thread ends, and its poll record with it, while an inspector inspects it.
#[test]
fn words_that_end_with_their_thread_against_an_inspector() {
    model(|| {
        let lease = Arc::new(Lease::new(false));
        let inspector = thread::spawn({
            let lease = lease.clone();
            move || {
                let number = lease.poll_number()?;
                let _ = lease.is_in(number);
                lease.inspect(number).map(|_| ())
            }
        });
        let record = Box::new(PollRecord::new());
        // SAFETY: 1. the record is detached below.
        unsafe { lease.attach(&record) };
        lease.begin(&record, NonNull::dangling());
        record.enter(NonNull::dangling());
        assert!(record.reclaim() || lease.leave(&record));
        lease.end(&record);
        lease.detach(&record);
        drop(record);
        inspector.join().unwrap();
    });
}
