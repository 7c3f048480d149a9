//! Models of the thread set under every interleaving; the protocol is in `thread_set.rs`.
//!
//! The queue is a count of jobs with a mark for 'closed': it stands for shards, where a lock puts
//! pushes, pops and the close in one order. A thread's time-out is a park that returns `TimedOut`
//! at once; loom explores whether a wake-up comes before.

use super::{AfterFailedStart, AfterPush, ParkResult, SleepResult, ThreadSet};
use crate::engine::prim::{
    Arc, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    model,
    parker::Parker,
    thread, weakened,
};

const CLOSED: usize = 1 << 8;

/// A thread set, its queue, and counts of the jobs that were run and dropped.
struct ThreadSetWorld {
    thread_set: ThreadSet<u32, ()>,
    jobs: AtomicUsize,
    done: AtomicUsize,
    dropped: AtomicUsize,
    started: std::sync::Mutex<Vec<thread::JoinHandle<()>>>,
}

/// Returns a function that sleeps until it is woken, without a time-out.
fn patient() -> impl FnMut(&Parker) -> ParkResult {
    |parker| {
        parker.park();
        ParkResult::Unparked
    }
}

/// Returns a function that times out at once; if the thread may not leave, it is being woken, and
/// sleeps once.
fn impatient() -> impl FnMut(&Parker) -> ParkResult {
    let mut over = false;
    move |parker| {
        over = !over;
        if over {
            return ParkResult::TimedOut;
        }
        parker.park();
        ParkResult::Unparked
    }
}

impl ThreadSetWorld {
    /// Creates a thread set that has `threads` threads already.
    fn new(cap: usize, threads: usize) -> Arc<Self> {
        let thread_set = ThreadSet::new(cap, 4);
        thread_set.idle_slots.allocate(0);
        (0..threads).for_each(|_| assert!(thread_set.join()));
        Arc::new(Self {
            thread_set,
            jobs: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            started: std::sync::Mutex::default(),
        })
    }

    fn push(&self) -> bool {
        // Release: pairs with the Acquire in `pop`. A closed queue refuses the push.
        self.jobs.fetch_update(Release, Relaxed, |now| (now < CLOSED).then_some(now + 1)).is_ok()
    }

    fn pop(&self) -> bool {
        // AcqRel: pairs with the Release in `push` and, as a queue's length, with `queued`.
        self.jobs.fetch_update(AcqRel, Relaxed, |now| (now % CLOSED > 0).then(|| now - 1)).is_ok()
    }

    /// Returns true if a job is queued, without taking it.
    fn has_job(&self) -> bool {
        // Relaxed: ordered by the fences in `ThreadSet`.
        self.jobs.load(Relaxed) & (CLOSED - 1) > 0
    }

    fn queued(&self) -> usize {
        // Acquire: pairs with the Release in `pop`.
        self.jobs.load(Acquire) % CLOSED
    }

    /// Finds a thread for a pushed job: steps P2 and P3.
    fn call(&self) -> AfterPush {
        self.thread_set.find_thread(|| true, || self.queued())
    }

    /// Pushes a job: steps P1 to P3, with a system that grants every thread that is requested.
    fn spawn(world: &Arc<Self>, slot: usize) {
        assert!(world.push());
        Self::call_or_start(world, slot);
    }

    fn call_or_start(world: &Arc<Self>, slot: usize) {
        let call = world.call();
        if call == AfterPush::TakeBack && world.pop() {
            world.dropped.fetch_add(1, Relaxed);
        }
        if call == AfterPush::Start {
            world.thread_set.add_coming();
            let thread = thread::spawn({
                let world = world.clone();
                move || {
                    world.thread_set.subtract_coming();
                    world.serve(slot, impatient());
                }
            });
            world.thread_set.start_succeeded();
            world.started.lock().unwrap().push(thread);
        }
    }

    /// Pushes a job: steps P1 to P3 and F1 to F3, with a system that grants no thread.
    fn spawn_in_vain(&self) {
        assert!(self.push());
        if self.call() == AfterPush::Start
            && self.thread_set.start_failed() == AfterFailedStart::TakeBack
        {
            // This may be another spawner's job, which looks the same: then that spawner takes
            // ours.
            self.pop();
        }
    }

    /// Runs a thread of the set until it leaves.
    fn serve(&self, slot: usize, mut park_once: impl FnMut(&Parker) -> ParkResult) {
        loop {
            while self.pop() {
                self.done.fetch_add(1, Relaxed);
            }
            match self.thread_set.sleep(slot, || self.has_job(), &mut park_once) {
                SleepResult::CheckQueue => {}
                SleepResult::Woken => {
                    let spare_work =
                        self.thread_set.idle_slots.slot(slot).spare_work.lock().unwrap().take();
                    if spare_work.is_none() {
                        self.thread_set.subtract_coming();
                    }
                    if spare_work.is_some() && self.thread_set.may_leave(|| self.has_job()) {
                        return;
                    }
                }
                SleepResult::OutOfSet => return,
                SleepResult::Leaving => return self.leave(),
            }
        }
    }

    /// Runs what is queued.
    fn leave(&self) {
        while !weakened!("blocking_leaving_checks") && self.pop() {
            self.done.fetch_add(1, Relaxed);
        }
    }

    fn join_started(&self) {
        loop {
            let Some(thread) = self.started.lock().unwrap().pop() else { return };
            thread.join().unwrap();
        }
    }

    /// Asserts that no job is queued, no thread is left, and `done` jobs were run.
    fn assert_over(&self, done: usize) {
        // Relaxed: all threads have been joined.
        assert_eq!((self.jobs.load(Relaxed) % CLOSED, self.done.load(Relaxed)), (0, done));
        let counts = self.thread_set.counts();
        assert_eq!((counts.threads, counts.starting, counts.idle), (0, 0, 0));
        for slot in 0..3 {
            assert!(!self.thread_set.idle_slots.is_marked(slot), "a mark is left at slot {slot}");
        }
    }
}

fn serving(
    world: &Arc<ThreadSetWorld>,
    slot: usize,
    park_once: impl FnMut(&Parker) -> ParkResult + Send + 'static,
) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || world.serve(slot, park_once))
}

/// Starts a thread that stops the set after `jobs` jobs, because it sleeps without a time-out.
fn serving_until(world: &Arc<ThreadSetWorld>, slot: usize, jobs: usize) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || {
        loop {
            while world.pop() {
                // Relaxed: only compared with the number of jobs.
                if world.done.fetch_add(1, Relaxed) + 1 == jobs {
                    world.thread_set.stop();
                }
            }
            match world.thread_set.sleep(slot, || world.has_job(), patient()) {
                SleepResult::CheckQueue => {}
                SleepResult::Woken => world.thread_set.subtract_coming(),
                SleepResult::OutOfSet => return,
                SleepResult::Leaving => return world.leave(),
            }
        }
    })
}

#[test]
fn a_job_and_a_thread_that_falls_asleep_never_miss_each_other() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let thread = serving_until(&world, 0, 1);
        ThreadSetWorld::spawn(&world, 1);
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// The job is run by the thread that wanted to leave, or by one that is started.
#[test]
fn a_job_and_a_thread_that_leaves_never_miss_each_other() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let thread = serving(&world, 0, impatient());
        ThreadSetWorld::spawn(&world, 1);
        thread.join().unwrap();
        world.join_started();
        world.assert_over(1);
    });
}

#[test]
fn two_jobs_at_the_cap_are_both_run() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let thread = serving_until(&world, 0, 2);
        let other = thread::spawn({
            let world = world.clone();
            move || ThreadSetWorld::spawn(&world, 1)
        });
        ThreadSetWorld::spawn(&world, 2);
        other.join().unwrap();
        thread.join().unwrap();
        world.assert_over(2);
    });
}

/// Two threads, one of which leaves at once; a claim may find the mark of either.
#[test]
fn a_claim_against_a_thread_that_leaves_finds_the_other() {
    model(|| {
        let world = ThreadSetWorld::new(2, 2);
        let leaves = serving(&world, 0, impatient());
        let stays = serving_until(&world, 1, 1);
        assert!(world.push());
        // With both threads awake none is woken, and both check for jobs. With one gone a third may
        // be requested, which the system refuses: the other thread has the job or will check.
        if world.call() == AfterPush::Start
            && world.thread_set.start_failed() == AfterFailedStart::TakeBack
        {
            assert!(!world.pop(), "one of them sleeps for ever, and so was alive");
        }
        leaves.join().unwrap();
        // Relaxed: the thread that left may have run the job; then the other one sleeps on.
        if world.done.load(Relaxed) == 1 {
            world.thread_set.stop();
        }
        stays.join().unwrap();
        world.assert_over(1);
    });
}

#[test]
fn two_spawners_that_fail_at_once_take_back_their_own() {
    model(|| {
        let world = ThreadSetWorld::new(2, 0);
        let other = thread::spawn({
            let world = world.clone();
            move || world.spawn_in_vain()
        });
        world.spawn_in_vain();
        other.join().unwrap();
        world.assert_over(0);
    });
}

/// A thread is alive, and leaves when there is nothing to do; a spawner requests a second one and
/// does not get it.
#[test]
fn a_failed_start_beside_a_living_thread_waits_for_it() {
    model(|| {
        let world = ThreadSetWorld::new(2, 1);
        let thread = serving(&world, 0, impatient());
        assert!(world.push());
        if world.call() == AfterPush::Start
            && world.thread_set.start_failed() == AfterFailedStart::TakeBack
        {
            // Taken back, or run by the thread before it left.
            world.done.fetch_add(usize::from(world.pop()), Relaxed);
        }
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// The cap is one, and the start of that one thread is failing while another spawner arrives.
#[test]
fn no_spawner_relies_on_a_thread_that_may_never_come() {
    model(|| {
        let world = ThreadSetWorld::new(1, 0);
        let other = thread::spawn({
            let world = world.clone();
            move || world.spawn_in_vain()
        });
        world.spawn_in_vain();
        other.join().unwrap();
        world.assert_over(0);
    });
}

#[test]
fn a_stop_against_a_thread_that_falls_asleep_ends_it() {
    model(|| {
        let world = ThreadSetWorld::new(2, 2);
        let threads = [serving(&world, 0, patient()), serving(&world, 1, patient())];
        world.thread_set.stop();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.assert_over(0);
    });
}

/// Returns a function that sleeps without a time-out until workers are released.
fn released(world: &Arc<ThreadSetWorld>) -> impl FnMut(&Parker) -> ParkResult + Send + 'static {
    let world = world.clone();
    move |parker| {
        world.thread_set.check_release().unwrap_or_else(|| {
            parker.park();
            ParkResult::Unparked
        })
    }
}

#[test]
fn a_release_against_a_worker_that_falls_asleep_ends_it() {
    model(|| {
        let world = ThreadSetWorld::new(2, 2);
        let threads = [serving(&world, 0, released(&world)), serving(&world, 1, released(&world))];
        world.thread_set.release_workers();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.assert_over(0);
    });
}

/// A job comes while the only thread, a released worker, may be leaving: it is run by that thread,
/// or by one that is started for it.
#[test]
fn a_release_against_a_job_runs_it_and_ends_the_worker() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let worker = serving(&world, 0, released(&world));
        let spawner = thread::spawn({
            let world = world.clone();
            move || ThreadSetWorld::spawn(&world, 1)
        });
        world.thread_set.release_workers();
        spawner.join().unwrap();
        worker.join().unwrap();
        world.join_started();
        world.assert_over(1);
    });
}

/// An idle thread is claimed for spare work while two released workers leave: if the claim counted
/// one of them, that one is woken and takes the work.
#[test]
fn a_release_against_a_claim_serves_it_once() {
    model(|| {
        let world = ThreadSetWorld::new(2, 2);
        let threads = [serving(&world, 0, released(&world)), serving(&world, 1, released(&world))];
        let claimer = thread::spawn({
            let world = world.clone();
            move || {
                if let Some(slot) = world.thread_set.claim_idle() {
                    let idle_slots = &world.thread_set.idle_slots;
                    *idle_slots.slot(slot).spare_work.lock().unwrap() = Some(7);
                    idle_slots.wake(slot);
                }
            }
        });
        world.thread_set.release_workers();
        claimer.join().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.assert_over(0);
        for slot in 0..2 {
            let slot = world.thread_set.idle_slots.slot(slot);
            assert_eq!(*slot.spare_work.lock().unwrap(), None, "spare work was left behind");
        }
    });
}

#[test]
fn a_stop_against_a_spawn_runs_or_drops_the_job_once() {
    model(|| {
        let world = ThreadSetWorld::new(2, 1);
        let thread = serving(&world, 0, patient());
        let spawner = thread::spawn({
            let world = world.clone();
            move || {
                let taken = world.push();
                if taken {
                    ThreadSetWorld::call_or_start(&world, 1);
                }
                taken
            }
        });
        world.thread_set.stop();
        // AcqRel: closes the queue, as the locks of the shards do. Pairs with `push` and `pop`.
        world.jobs.fetch_or(CLOSED, AcqRel);
        let taken = spawner.join().unwrap();
        thread.join().unwrap();
        world.join_started();
        // Relaxed: all threads have been joined.
        let (run, dropped) = (world.done.load(Relaxed), world.dropped.load(Relaxed));
        assert_eq!(run + dropped, usize::from(taken), "run {run}, dropped {dropped}");
        world.assert_over(run);
    });
}

/// The only thread of a thread set at its cap falls asleep while a job is queued, and then the set
/// stops: the job was taken, so it is run.
#[test]
fn a_job_queued_before_a_stop_is_run() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let thread = serving(&world, 0, patient());
        assert!(world.push());
        assert_eq!(world.call(), AfterPush::Nothing, "the set is at its cap");
        world.thread_set.stop();
        // AcqRel: closes the queue, as the locks of the shards do. Pairs with `push` and `pop`.
        world.jobs.fetch_or(CLOSED, AcqRel);
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// A worker claims an idle thread while the set stops.
#[test]
fn a_claim_against_a_stop_is_served_once() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let thread = thread::spawn({
            let world = world.clone();
            move || {
                loop {
                    while world.pop() {
                        world.done.fetch_add(1, Relaxed);
                    }
                    match world.thread_set.sleep(0, || world.has_job(), patient()) {
                        SleepResult::CheckQueue => {}
                        SleepResult::Woken => {
                            let spare_work = world
                                .thread_set
                                .idle_slots
                                .slot(0)
                                .spare_work
                                .lock()
                                .unwrap()
                                .take();
                            if spare_work.is_some() {
                                return spare_work;
                            }
                        }
                        SleepResult::OutOfSet => return None,
                        SleepResult::Leaving => {
                            world.leave();
                            return None;
                        }
                    }
                }
            }
        });
        let claimer = thread::spawn({
            let world = world.clone();
            move || {
                let slot = world.thread_set.claim_idle();
                if let Some(slot) = slot {
                    *world.thread_set.idle_slots.slot(slot).spare_work.lock().unwrap() = Some(7);
                    world.thread_set.idle_slots.wake(slot);
                }
                slot
            }
        });
        world.thread_set.stop();
        let claimed = claimer.join().unwrap();
        assert_eq!(thread.join().unwrap(), claimed.map(|_| 7));
        world.assert_over(0);
    });
}

/// The set's only thread falls asleep while a job arrives, for which no other thread may be
/// started, and a worker claims it.
#[test]
fn a_claim_against_a_job_at_the_cap_strands_nothing() {
    model(|| {
        let world = ThreadSetWorld::new(1, 1);
        let thread = serving(&world, 0, impatient());
        let claimer = thread::spawn({
            let world = world.clone();
            move || {
                if let Some(slot) = world.thread_set.claim_idle() {
                    *world.thread_set.idle_slots.slot(slot).spare_work.lock().unwrap() = Some(7);
                    world.thread_set.idle_slots.wake(slot);
                }
            }
        });
        ThreadSetWorld::spawn(&world, 1);
        claimer.join().unwrap();
        thread.join().unwrap();
        world.join_started();
        world.assert_over(1);
    });
}

/// A thread is coming for a job that ends only after the next job has run, which is queued
/// meanwhile: the second job gets a thread of its own, or the first thread has not come yet and is
/// counted against both.
#[test]
fn a_job_that_waits_for_the_next_one_never_takes_its_thread() {
    model(|| {
        let world = ThreadSetWorld::new(2, 1);
        let second = Arc::new(Parker::new());
        assert!(world.push());
        world.thread_set.add_coming();
        let first = thread::spawn({
            let (world, second) = (world.clone(), second.clone());
            move || {
                let late = weakened!("blocking_comes_before_it_checks");
                if !late {
                    world.thread_set.subtract_coming();
                }
                assert!(world.pop(), "two jobs and at most one other thread");
                if late {
                    world.thread_set.subtract_coming();
                }
                second.park();
            }
        });
        assert!(world.push());
        match world.call() {
            AfterPush::Start => {
                assert!(world.pop(), "each of two threads finds one of two jobs");
                second.unpark();
            }
            AfterPush::Nothing => {}
            AfterPush::TakeBack => unreachable!("the set does not stop"),
        }
        first.join().unwrap();
        assert_eq!(world.queued(), 0);
    });
}

/// The only living thread is in a job that waits for the one that is spawned here, while the set
/// stops: the spawned job is run by a new thread, or ends.
#[test]
fn a_job_spawned_against_a_stop_needs_no_thread_that_lives() {
    model(|| {
        let world = ThreadSetWorld::new(2, 1);
        let spawner = thread::spawn({
            let world = world.clone();
            move || {
                let taken = world.push();
                if taken {
                    ThreadSetWorld::call_or_start(&world, 1);
                }
                taken
            }
        });
        world.thread_set.stop();
        // AcqRel: closes the queue, as the locks of the shards do. Pairs with `push` and `pop`.
        world.jobs.fetch_or(CLOSED, AcqRel);
        let taken = spawner.join().unwrap();
        world.join_started();
        // Relaxed: all threads have been joined.
        let ended = world.done.load(Relaxed) + world.dropped.load(Relaxed);
        assert_eq!(ended, usize::from(taken), "the job waits for a thread that is stuck");
    });
}
