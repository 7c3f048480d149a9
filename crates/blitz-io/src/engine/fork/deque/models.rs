//! Models of the deque: each job goes to one taker, which sees the job's contents.

use std::ptr::NonNull;

use super::{Deque, Index};
use crate::engine::prim::{
    Arc, AtomicUsize, Ordering::Relaxed, UnsafeCell, barrier, lock, model, thread,
};

/// A job with content that its taker reads and changes.
struct DequeTestJob(UnsafeCell<usize>, AtomicUsize);

// SAFETY: the thread that takes a job has it alone; the model checks that.
unsafe impl Sync for DequeTestJob {}

/// A deque of jobs that live as long as it does.
struct DequeWorld {
    deque: Deque<DequeTestJob>,
    jobs: Vec<DequeTestJob>,
}

impl DequeWorld {
    fn new(deque: Deque<DequeTestJob>, jobs: usize) -> Arc<Self> {
        let jobs =
            (0..jobs).map(|_| DequeTestJob(UnsafeCell::new(0), AtomicUsize::new(0))).collect();
        Arc::new(Self { deque, jobs })
    }

    /// Fills a job, pushes it and returns its index. Called by the owner.
    fn push(&self, number: usize) -> Index {
        let job = &self.jobs[number];
        // SAFETY: no other thread has the job yet; the model checks that.
        job.0.with_mut(|value| unsafe { *value = 10 });
        // SAFETY: 1. each model has one thread that pushes and pops. 2. `publish` follows every
        // push, below.
        let pushed = unsafe { self.deque.push(NonNull::from(job)) };
        if pushed.is_requested {
            // SAFETY: each model has one thread that pushes and pops.
            unsafe { self.deque.publish() };
        }
        pushed.index
    }

    /// Pops the job that was pushed at `index`, which is on top. Returns whether it was there.
    fn pop_at(&self, index: Index, number: usize) -> bool {
        // SAFETY: 1. each model has one thread that pushes and pops. 2. The caller has popped all
        // joins above it. 3. It was not taken in another way.
        let is_ours = unsafe { self.deque.pop_at(index) };
        if is_ours {
            self.jobs[number].take();
        }
        is_ours
    }

    /// Pops the newest job, as a waiting worker does.
    fn pop(&self) -> bool {
        // SAFETY: each model has one thread that pushes and pops.
        let job = unsafe { self.deque.pop() };
        job.map(take_while_waiting).is_some()
    }

    /// Pushes a job that no `pop_at` will take back.
    fn push_loose(&self, number: usize) {
        let job = &self.jobs[number];
        // SAFETY: no other thread has the job yet; the model checks that.
        job.0.with_mut(|value| unsafe { *value = 10 });
        // SAFETY: 1. each model has one thread that pushes and pops. 2. `publish` follows every
        // push.
        let pushed = unsafe { self.deque.push_loose(NonNull::from(job)) };
        if pushed.is_requested {
            // SAFETY: each model has one thread that pushes and pops.
            unsafe { self.deque.publish() };
        }
    }

    /// Does what a join does when it comes back: takes its own job, or first the jobs above it.
    /// Returns the number of jobs it took.
    fn come_back(&self, index: Index, number: usize) -> usize {
        let own = &self.jobs[number];
        if !own.is_taken_while_waiting() && self.pop_at(index, number) {
            return 1;
        }
        let mut count = 0;
        while !own.is_taken_while_waiting() {
            // SAFETY: each model has one thread that pushes and pops.
            match unsafe { self.deque.pop() } {
                None => return count,
                Some(job) if job == NonNull::from(own) => {
                    own.take();
                    return count + 1;
                }
                Some(other) => take_while_waiting(other),
            }
            count += 1;
        }
        count
    }

    /// Takes the oldest job without the check for jobs: the hints that it reads are no events to
    /// the model.
    fn steal(&self) -> bool {
        self.deque.take_oldest(&mut lock(&self.deque.thieves.shared)).map(taken).is_some()
    }

    fn assert_each_taken_once(&self) {
        for job in &self.jobs {
            // SAFETY: all threads are joined, so no other thread touches the job.
            job.0.with(|value| assert_eq!(unsafe { *value }, 11, "taken once"));
        }
    }
}

impl DequeTestJob {
    /// Returns whether the owner has taken the job while it waited for something else.
    fn is_taken_while_waiting(&self) -> bool {
        // Relaxed: only the owner's thread writes it.
        self.1.load(Relaxed) == 1
    }

    fn take(&self) {
        // SAFETY: the thread that takes a job has it alone; the model checks that.
        self.0.with_mut(|value| unsafe {
            assert_eq!(*value, 10, "made, and not taken before");
            *value = 11;
        });
    }
}

fn take_while_waiting(job: NonNull<DequeTestJob>) {
    // SAFETY: jobs live as long as the `DequeWorld`, which all threads hold.
    let job = unsafe { job.as_ref() };
    // Relaxed: only the owner's thread touches it.
    job.1.store(1, Relaxed);
    job.take();
}

fn taken(job: NonNull<DequeTestJob>) {
    // SAFETY: jobs live as long as the `DequeWorld`, which all threads hold.
    unsafe { job.as_ref() }.take();
}

#[test]
fn a_job_is_popped_or_forced_once() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 1);
        let thief = thread::spawn({
            let world = world.clone();
            move || world.steal()
        });
        let index = world.push(0);
        let popped = world.pop_at(index, 0);
        let stolen = thief.join().unwrap();
        assert!(popped != stolen, "popped: {popped}, stolen: {stolen}");
        world.assert_each_taken_once();
    });
}

#[test]
fn two_jobs_go_to_owner_and_thief_once_each() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 2);
        let outer = world.push(0);
        let inner = world.push(1);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal()) + usize::from(world.steal())
        });
        let popped = usize::from(world.pop_at(inner, 1));
        // The one below is on top now, or both are gone.
        let popped = popped + usize::from(popped == 1 && world.pop_at(outer, 0));
        assert_eq!(popped + thief.join().unwrap(), 2);
        world.assert_each_taken_once();
    });
}

#[test]
fn a_push_after_a_theft_is_seen_once() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 2);
        let first = world.push(0);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal()) + usize::from(world.steal())
        });
        let popped = usize::from(world.pop_at(first, 0));
        let second = world.push(1);
        let popped = popped + usize::from(world.pop_at(second, 1));
        assert_eq!(popped + thief.join().unwrap(), 2);
        assert!(!world.pop(), "nothing is left");
        world.assert_each_taken_once();
    });
}

#[test]
fn two_thieves_never_take_the_same_job() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 2);
        world.push(0);
        world.push(1);
        let thieves = [(); 2].map(|()| {
            let world = world.clone();
            thread::spawn(move || usize::from(world.steal()))
        });
        let mut taken = usize::from(world.pop());
        for thief in thieves {
            taken += thief.join().unwrap();
        }
        taken += usize::from(world.pop());
        assert_eq!(taken, 2);
        world.assert_each_taken_once();
    });
}

#[test]
fn jobs_that_move_while_a_thief_is_there_are_taken_once() {
    model(|| {
        // The array has three slots, and index 0 is never used, so the second push moves it.
        let world = DequeWorld::new(Deque::with(true, false), 3);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal())
        });
        for number in 0..3 {
            world.push(number);
        }
        let popped = std::iter::from_fn(|| world.pop().then_some(())).count();
        assert_eq!(popped + thief.join().unwrap(), 3);
        world.assert_each_taken_once();
    });
}

#[test]
fn requested_jobs_are_published() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 2);
        // The request is there before the push.
        world.deque.request();
        let outer = world.push(0);
        let thief = thread::spawn({
            let world = world.clone();
            move || {
                let is_public = lock(&world.deque.thieves.shared).public > 1;
                (is_public, world.steal())
            }
        });
        let inner = world.push(1);
        let popped = [world.pop_at(inner, 1), world.pop_at(outer, 0)];
        let (was_public, stolen) = thief.join().unwrap();
        assert!(was_public || !popped[0] || !popped[1] || !stolen);
        assert_eq!(popped.iter().filter(|popped| **popped).count() + usize::from(stolen), 2);
        world.assert_each_taken_once();
    });
}

/// A sleeper requests and then checks for jobs; an owner pushes and then checks for a request.
fn push_and_request(is_fenced: bool) {
    model(move || {
        let world = DequeWorld::new(Deque::with(true, is_fenced), 1);
        let sleeper = thread::spawn({
            let world = world.clone();
            move || {
                world.deque.request();
                barrier::heavy();
                // Relaxed: the barrier orders it; SeqCst would hide its lack.
                world.deque.owner.tail.load(Relaxed) > 1
            }
        });
        let job = NonNull::from(&world.jobs[0]);
        // SAFETY: 1. this thread is the owner. 2. There is one push, and `publish` follows.
        let pushed = unsafe { world.deque.push(job) };
        // SAFETY: this thread is the owner.
        let was_requested = pushed.is_requested && unsafe { world.deque.publish() };
        let seen = sleeper.join().unwrap();
        assert!(was_requested || seen, "the push saw no request and the sleeper no push");
    });
}

#[test]
fn a_push_or_a_request_sees_the_other() {
    push_and_request(false);
}

#[test]
fn a_fenced_push_or_a_request_sees_the_other() {
    push_and_request(true);
}

/// A sleeper checks for jobs while the owner has lowered `tail` below a job that it left behind.
#[test]
fn loose_jobs_are_seen_while_a_join_comes_back() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 2);
        let join = world.push(0);
        world.push_loose(1);
        let sleeper = thread::spawn({
            let world = world.clone();
            move || {
                world.deque.request();
                barrier::heavy();
                world.deque.has_jobs()
            }
        });
        assert!(!world.pop_at(join, 0), "there is a job above it");
        assert!(sleeper.join().unwrap(), "both jobs are there all the time");
        assert!(world.pop() && world.pop() && !world.pop());
    });
}

#[test]
fn a_fenced_deque_gives_each_job_once() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, true), 2);
        let outer = world.push(0);
        let inner = world.push(1);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal()) + usize::from(world.steal())
        });
        let popped = usize::from(world.pop_at(inner, 1));
        let popped = popped + usize::from(popped == 1 && world.pop_at(outer, 0));
        assert_eq!(popped + thief.join().unwrap(), 2);
        world.assert_each_taken_once();
    });
}

#[test]
fn a_reset_limit_hides_no_request() {
    // The push calls `publish` for want of room, whether or not there is a request meanwhile.
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 2);
        world.push(1);
        let slept = Arc::new(AtomicUsize::new(0));
        let sleeper = thread::spawn({
            let (world, slept) = (world.clone(), slept.clone());
            move || {
                // Relaxed: the swap of the limit orders it.
                slept.store(1, Relaxed);
                world.deque.request();
                world.deque.owner.tail.load(Relaxed) > 2
            }
        });
        let job = NonNull::from(&world.jobs[0]);
        // SAFETY: 1. this thread is the owner. 2. `publish` follows this push, and followed the
        // last one.
        let pushed = unsafe { world.deque.push(job) };
        // A model has three slots, and the first is never used, so `publish` is due in any case.
        assert!(pushed.is_requested || !cfg!(blitz_loom));
        // SAFETY: this thread is the owner.
        let was_requested = unsafe { world.deque.publish() };
        if was_requested {
            assert_eq!(slept.load(Relaxed), 1, "the owner sees what the sleeper did before");
        }
        assert!(sleeper.join().unwrap() || was_requested);
    });
}

#[test]
fn a_join_beside_loose_jobs_and_a_thief_loses_none() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 4);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal())
        });
        let outermost = world.push(3);
        let outer = world.push(0);
        // Inside of that join, one loose job is left behind, and a join comes and goes above it.
        world.push_loose(1);
        let inner = world.push(2);
        let taken = world.come_back(inner, 2);
        let taken = taken + world.come_back(outer, 0);
        // The loose job has been run by now, and this join must not find it again.
        let taken = taken + world.come_back(outermost, 3);
        assert_eq!(taken + thief.join().unwrap(), 4);
        assert!(!world.pop(), "nothing is left");
        world.assert_each_taken_once();
    });
}

#[test]
fn a_job_that_a_wait_took_is_not_popped_again() {
    model(|| {
        let world = DequeWorld::new(Deque::with(true, false), 3);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal())
        });
        let outer = world.push(0);
        let inner = world.push(1);
        // Inside of the inner join, the thread waits and takes both jobs. A join that comes and
        // goes where the outer one lay must not hide that.
        let mut taken = usize::from(world.pop()) + usize::from(world.pop());
        let another = world.push(2);
        taken += world.come_back(another, 2);
        taken += world.come_back(inner, 1);
        taken += world.come_back(outer, 0);
        assert_eq!(taken + thief.join().unwrap(), 3);
        assert!(!world.pop(), "nothing is left");
        world.assert_each_taken_once();
    });
}

#[test]
fn a_shared_deque_gives_each_job_once() {
    model(|| {
        let world = DequeWorld::new(Deque::with(false, false), 2);
        let thief = thread::spawn({
            let world = world.clone();
            move || usize::from(world.steal())
        });
        let outer = world.push(0);
        let inner = world.push(1);
        let popped = usize::from(world.pop_at(inner, 1));
        let popped = popped + usize::from(popped == 1 && world.pop_at(outer, 0));
        let stolen = thief.join().unwrap();
        assert_eq!(popped + stolen + usize::from(world.pop()), 2);
        world.assert_each_taken_once();
    });
}

#[cfg(not(blitz_loom))]
mod plain {
    use super::*;
    use crate::engine::prim::Ordering::SeqCst;

    #[test]
    fn the_newest_is_popped_and_the_oldest_stolen() {
        let kinds = [(true, false), (false, false), (true, true), (false, true)];
        for deque in kinds.map(|(is_private, is_fenced)| Deque::with(is_private, is_fenced)) {
            let jobs: Vec<u32> = (0..1000).collect();
            for job in &jobs {
                // SAFETY: 1. there is one thread. 2. `publish` follows every push.
                let pushed = unsafe { deque.push(NonNull::from(job)) };
                if pushed.is_requested {
                    // SAFETY: there is one thread, so it is the owner.
                    assert!(!unsafe { deque.publish() }, "no thread has requested jobs");
                }
            }
            let value = |job: Option<NonNull<u32>>| {
                job.map(|job| {
                    // SAFETY: the jobs live as long as the deque.
                    unsafe { *job.as_ref() }
                })
            };
            for round in 0..500 {
                assert_eq!(value(deque.steal()), Some(round));
                // SAFETY: there is one thread, so it is the owner.
                assert_eq!(value(unsafe { deque.pop() }), Some(999 - round));
            }
            // SAFETY: there is one thread, so it is the owner.
            assert!(unsafe { deque.pop() }.is_none() && deque.steal().is_none());
            assert!(!deque.has_jobs());
        }
    }

    #[test]
    fn indices_go_on_where_a_word_of_32_bits_ends() {
        const FIRST: Index = u32::MAX as Index - 3;
        for (is_private, is_fenced) in [(true, false), (false, false), (true, true)] {
            let deque = Deque::starting_at(FIRST, is_private, is_fenced);
            let jobs: Vec<u32> = (0..8).collect();
            let push = |number: usize| {
                // SAFETY: 1. there is one thread. 2. `publish` follows every push.
                let pushed = unsafe { deque.push(NonNull::from(&jobs[number])) };
                if pushed.is_requested {
                    // SAFETY: there is one thread, so it is the owner.
                    unsafe { deque.publish() };
                }
                pushed.index
            };
            let indices: Vec<Index> = (0..8).map(push).collect();
            assert!(indices.iter().copied().eq(FIRST..FIRST + 8));
            // Thieves take the jobs below the end of a 32-bit word, and one above it.
            for job in &jobs[..5] {
                assert_eq!(deque.steal(), Some(NonNull::from(job)));
            }
            // SAFETY: 1. there is one thread. 2. and 3. Each of these two is on top when it is
            // popped.
            assert!(unsafe { deque.pop_at(indices[7]) && deque.pop_at(indices[6]) });
            // SAFETY: there is one thread, so it is the owner.
            assert_eq!(unsafe { deque.pop() }, Some(NonNull::from(&jobs[5])));
            // A join that has lost its job to a thief, at an index below the end of a 32-bit word.
            // SAFETY: 1. there is one thread. 2. Every join above has ended. 3. A thief has the
            // job, not the owner.
            assert!(!unsafe { deque.pop_at(indices[0]) });
            assert!(!deque.has_jobs());
        }
    }

    #[test]
    fn a_lock_that_a_panic_left_behind_is_no_reason_to_steal_no_more() {
        let (deque, job) = (Deque::with(true, false), 7u32);
        // SAFETY: 1. there is one thread. 2. It is the first push, and there is room.
        let _ = unsafe { deque.push(NonNull::from(&job)) };
        let panics = std::panic::AssertUnwindSafe(|| {
            let _shared = lock(&deque.thieves.shared);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(deque.thieves.shared.is_poisoned());
        assert_eq!(deque.steal(), Some(NonNull::from(&job)));
    }

    #[test]
    fn a_producer_whose_jobs_are_all_taken_needs_no_more_room() {
        let deque = Deque::new();
        let job = 7u32;
        for _ in 0..100 * super::super::SLOTS {
            // SAFETY: 1. there is one thread. 2. `publish` follows every push.
            if unsafe { deque.push(NonNull::from(&job)) }.is_requested {
                // SAFETY: there is one thread, so it is the owner.
                unsafe { deque.publish() };
            }
            assert!(deque.steal().is_some());
        }
        assert_eq!(lock(&deque.thieves.shared).slots.len(), super::super::SLOTS);
    }

    #[test]
    fn many_thieves_and_an_owner_take_each_job_once() {
        const JOBS: usize = 200_000;
        for is_fenced in [false, true] {
            give_and_take::<JOBS>(Deque::with(true, is_fenced));
        }
    }

    fn give_and_take<const JOBS: usize>(deque: Deque<AtomicUsize>) {
        let world: Arc<(Deque<AtomicUsize>, Vec<AtomicUsize>)> =
            Arc::new((deque, (0..JOBS).map(|_| AtomicUsize::new(0)).collect()));
        let done = Arc::new(AtomicUsize::new(0));
        let take = |job: NonNull<AtomicUsize>| {
            // SAFETY: the jobs live as long as the `DequeWorld`.
            unsafe { job.as_ref() }.fetch_add(1, SeqCst);
        };
        let thieves: Vec<_> = (0..3)
            .map(|_| {
                let (world, done) = (world.clone(), done.clone());
                thread::spawn(move || {
                    while done.load(SeqCst) == 0 {
                        if let Some(job) = world.0.steal() {
                            take(job);
                        } else {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut next = 0;
        while next < JOBS {
            let count = (next % 7 + 1).min(JOBS - next);
            for job in &world.1[next..next + count] {
                // SAFETY: 1. this thread is the owner. 2. `publish` follows every push.
                if unsafe { world.0.push(NonNull::from(job)) }.is_requested {
                    // SAFETY: this thread is the owner.
                    unsafe { world.0.publish() };
                }
            }
            next += count;
            for _ in 0..count {
                // SAFETY: this thread is the owner.
                unsafe { world.0.pop() }.map(take);
            }
        }
        // SAFETY: this thread is the owner.
        while let Some(job) = unsafe { world.0.pop() } {
            take(job);
        }
        done.store(1, SeqCst);
        for thief in thieves {
            thief.join().unwrap();
        }
        assert!(world.1.iter().all(|job| job.load(SeqCst) == 1), "each was taken once");
    }
}
