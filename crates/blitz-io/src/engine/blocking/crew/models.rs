//! Models of the crew under every interleaving; the protocol is in `crew.rs`.
//!
//! The queue is a count of jobs with a mark for 'closed': it stands for shards whose locks put
//! pushes, pops and the close in one order. A thread's time-out is a nap that returns `Over` at
//! once; loom explores whether a wake-up comes before.

use super::{Call, Crew, Failed, Nap, Rested};
use crate::engine::prim::{
    Arc, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    model,
    parker::Parker,
    thread, weakened,
};

const CLOSED: usize = 1 << 8;

/// A crew, its queue, and counts of the jobs that were run and dropped.
struct World {
    crew: Crew<u32, ()>,
    jobs: AtomicUsize,
    done: AtomicUsize,
    dropped: AtomicUsize,
    started: std::sync::Mutex<Vec<thread::JoinHandle<()>>>,
}

/// Returns a nap that sleeps until it is woken, without a time-out.
fn patient() -> impl FnMut(&Parker) -> Nap {
    |parker| {
        parker.park();
        Nap::Disturbed
    }
}

/// Returns a nap that times out at once; if the thread may not leave, it is being woken, and sleeps
/// once.
fn impatient() -> impl FnMut(&Parker) -> Nap {
    let mut over = false;
    move |parker| {
        over = !over;
        if over {
            return Nap::Over;
        }
        parker.park();
        Nap::Disturbed
    }
}

impl World {
    /// Creates a crew that has `threads` threads already.
    fn new(cap: usize, threads: usize) -> Arc<Self> {
        let crew = Crew::new(cap, 4);
        crew.beds.make(0);
        (0..threads).for_each(|_| assert!(crew.join()));
        Arc::new(Self {
            crew,
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
        // Relaxed: ordered by the fences in `Crew`.
        self.jobs.load(Relaxed) & (CLOSED - 1) > 0
    }

    fn queued(&self) -> usize {
        // Acquire: pairs with the Release in `pop`.
        self.jobs.load(Acquire) % CLOSED
    }

    /// Finds a thread for a pushed job: steps P2 and P3.
    fn call(&self) -> Call {
        self.crew.call(|| true, || self.queued())
    }

    /// Pushes a job: steps P1 to P3, with a system that grants every thread that is requested.
    fn spawn(world: &Arc<Self>, bed: usize) {
        assert!(world.push());
        Self::call_or_start(world, bed);
    }

    fn call_or_start(world: &Arc<Self>, bed: usize) {
        let call = world.call();
        if call == Call::TakeBack && world.pop() {
            world.dropped.fetch_add(1, Relaxed);
        }
        if call == Call::Start {
            world.crew.expect();
            let thread = thread::spawn({
                let world = world.clone();
                move || {
                    world.crew.came();
                    world.serve(bed, impatient());
                }
            });
            world.crew.started();
            world.started.lock().unwrap().push(thread);
        }
    }

    /// Pushes a job: steps P1 to P3 and F1 to F3, with a system that grants no thread.
    fn spawn_in_vain(&self) {
        assert!(self.push());
        if self.call() == Call::Start && self.crew.failed() == Failed::Alone {
            // This may be another spawner's job, which looks the same: then that spawner takes
            // ours.
            self.pop();
        }
    }

    /// Runs a thread of the crew until it leaves.
    fn serve(&self, bed: usize, mut nap: impl FnMut(&Parker) -> Nap) {
        loop {
            while self.pop() {
                self.done.fetch_add(1, Relaxed);
            }
            match self.crew.rest(bed, || self.has_job(), &mut nap) {
                Rested::Look => {}
                Rested::Called => {
                    let spare_work = self.crew.beds.bed(bed).spare_work.lock().unwrap().take();
                    if spare_work.is_none() {
                        self.crew.came();
                    }
                    if spare_work.is_some() && self.crew.is_free_to_go(|| self.has_job()) {
                        return;
                    }
                }
                Rested::Gone => return,
                Rested::Leaving => return self.leave(),
            }
        }
    }

    /// Runs what is queued.
    fn leave(&self) {
        while !weakened!("crew_leaving_looks") && self.pop() {
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
        let counts = self.crew.counts();
        assert_eq!((counts.threads, counts.starting, counts.idle), (0, 0, 0));
        for bed in 0..3 {
            assert!(!self.crew.beds.is_marked(bed), "a mark is left at bed {bed}");
        }
    }
}

fn serving(
    world: &Arc<World>,
    bed: usize,
    nap: impl FnMut(&Parker) -> Nap + Send + 'static,
) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || world.serve(bed, nap))
}

/// Starts a thread that stops the crew after `jobs` jobs, because it sleeps without a time-out.
fn serving_until(world: &Arc<World>, bed: usize, jobs: usize) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || {
        loop {
            while world.pop() {
                // Relaxed: only compared with the number of jobs.
                if world.done.fetch_add(1, Relaxed) + 1 == jobs {
                    world.crew.stop();
                }
            }
            match world.crew.rest(bed, || world.has_job(), patient()) {
                Rested::Look => {}
                Rested::Called => world.crew.came(),
                Rested::Gone => return,
                Rested::Leaving => return world.leave(),
            }
        }
    })
}

#[test]
fn a_job_and_a_thread_that_falls_asleep_never_miss_each_other() {
    model(|| {
        let world = World::new(1, 1);
        let thread = serving_until(&world, 0, 1);
        World::spawn(&world, 1);
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// The job is run by the thread that wanted to leave, or by one that is started.
#[test]
fn a_job_and_a_thread_that_leaves_never_miss_each_other() {
    model(|| {
        let world = World::new(1, 1);
        let thread = serving(&world, 0, impatient());
        World::spawn(&world, 1);
        thread.join().unwrap();
        world.join_started();
        world.assert_over(1);
    });
}

#[test]
fn two_jobs_at_the_cap_are_both_run() {
    model(|| {
        let world = World::new(1, 1);
        let thread = serving_until(&world, 0, 2);
        let other = thread::spawn({
            let world = world.clone();
            move || World::spawn(&world, 1)
        });
        World::spawn(&world, 2);
        other.join().unwrap();
        thread.join().unwrap();
        world.assert_over(2);
    });
}

/// Two threads, one of which leaves at once; a claim may find the mark of either.
#[test]
fn a_claim_against_one_who_leaves_finds_the_other() {
    model(|| {
        let world = World::new(2, 2);
        let leaves = serving(&world, 0, impatient());
        let stays = serving_until(&world, 1, 1);
        assert!(world.push());
        // With both threads awake none is woken, and both check for jobs. With one gone a third may
        // be requested, which the system refuses: the other thread has the job or will check.
        if world.call() == Call::Start && world.crew.failed() == Failed::Alone {
            assert!(!world.pop(), "one of them sleeps for ever, and so was alive");
        }
        leaves.join().unwrap();
        // Relaxed: the thread that left may have run the job; then the other one sleeps on.
        if world.done.load(Relaxed) == 1 {
            world.crew.stop();
        }
        stays.join().unwrap();
        world.assert_over(1);
    });
}

#[test]
fn two_spawners_that_fail_at_once_take_back_their_own() {
    model(|| {
        let world = World::new(2, 0);
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
        let world = World::new(2, 1);
        let thread = serving(&world, 0, impatient());
        assert!(world.push());
        if world.call() == Call::Start && world.crew.failed() == Failed::Alone {
            // Taken back, or run by the thread before it left.
            world.done.fetch_add(usize::from(world.pop()), Relaxed);
        }
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// The cap is one, and the start of that one thread is failing while another spawner arrives.
#[test]
fn nobody_relies_on_a_thread_that_may_never_come() {
    model(|| {
        let world = World::new(1, 0);
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
        let world = World::new(2, 2);
        let threads = [serving(&world, 0, patient()), serving(&world, 1, patient())];
        world.crew.stop();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.assert_over(0);
    });
}

#[test]
fn a_stop_against_a_spawn_runs_or_drops_the_job_once() {
    model(|| {
        let world = World::new(2, 1);
        let thread = serving(&world, 0, patient());
        let spawner = thread::spawn({
            let world = world.clone();
            move || {
                let taken = world.push();
                if taken {
                    World::call_or_start(&world, 1);
                }
                taken
            }
        });
        world.crew.stop();
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

/// The only thread of a crew at its cap falls asleep while a job is queued, and then the crew
/// stops: the job was taken, so it is run.
#[test]
fn a_job_queued_before_a_stop_is_run() {
    model(|| {
        let world = World::new(1, 1);
        let thread = serving(&world, 0, patient());
        assert!(world.push());
        assert_eq!(world.call(), Call::Nothing, "the crew is at its cap");
        world.crew.stop();
        // AcqRel: closes the queue, as the locks of the shards do. Pairs with `push` and `pop`.
        world.jobs.fetch_or(CLOSED, AcqRel);
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// A worker recruits an idle thread while the crew stops.
#[test]
fn a_recruit_against_a_stop_is_answered_once() {
    model(|| {
        let world = World::new(1, 1);
        let thread = thread::spawn({
            let world = world.clone();
            move || {
                loop {
                    while world.pop() {
                        world.done.fetch_add(1, Relaxed);
                    }
                    match world.crew.rest(0, || world.has_job(), patient()) {
                        Rested::Look => {}
                        Rested::Called => {
                            let spare_work =
                                world.crew.beds.bed(0).spare_work.lock().unwrap().take();
                            if spare_work.is_some() {
                                return spare_work;
                            }
                        }
                        Rested::Gone => return None,
                        Rested::Leaving => {
                            world.leave();
                            return None;
                        }
                    }
                }
            }
        });
        let recruiter = thread::spawn({
            let world = world.clone();
            move || {
                let bed = world.crew.recruit();
                if let Some(bed) = bed {
                    *world.crew.beds.bed(bed).spare_work.lock().unwrap() = Some(7);
                    world.crew.beds.call(bed);
                }
                bed
            }
        });
        world.crew.stop();
        let recruited = recruiter.join().unwrap();
        assert_eq!(thread.join().unwrap(), recruited.map(|_| 7));
        world.assert_over(0);
    });
}

/// The crew's only thread falls asleep while a job arrives, for which no other thread may be
/// started, and a worker recruits it.
#[test]
fn a_recruit_against_a_job_at_the_cap_strands_nothing() {
    model(|| {
        let world = World::new(1, 1);
        let thread = serving(&world, 0, impatient());
        let recruiter = thread::spawn({
            let world = world.clone();
            move || {
                if let Some(bed) = world.crew.recruit() {
                    *world.crew.beds.bed(bed).spare_work.lock().unwrap() = Some(7);
                    world.crew.beds.call(bed);
                }
            }
        });
        World::spawn(&world, 1);
        recruiter.join().unwrap();
        thread.join().unwrap();
        world.join_started();
        world.assert_over(1);
    });
}

/// A thread is coming for a job that ends only after the next job has run, which is queued
/// meanwhile: the second job gets a thread of its own, or the first thread has not come yet and
/// is counted against both.
#[test]
fn a_job_that_waits_for_the_next_one_never_takes_its_thread() {
    model(|| {
        let world = World::new(2, 1);
        let second = Arc::new(Parker::new());
        assert!(world.push());
        world.crew.expect();
        let first = thread::spawn({
            let (world, second) = (world.clone(), second.clone());
            move || {
                let late = weakened!("crew_comes_before_it_looks");
                if !late {
                    world.crew.came();
                }
                assert!(world.pop(), "two jobs and at most one other thread");
                if late {
                    world.crew.came();
                }
                second.park();
            }
        });
        assert!(world.push());
        match world.call() {
            Call::Start => {
                assert!(world.pop(), "each of two threads finds one of two jobs");
                second.unpark();
            }
            Call::Nothing => {}
            Call::TakeBack => unreachable!("the crew does not stop"),
        }
        first.join().unwrap();
        assert_eq!(world.queued(), 0);
    });
}

/// The only living thread is in a job that waits for the one that is spawned here, while the crew
/// stops: the spawned job is run by a new thread, or ends.
#[test]
fn a_job_spawned_against_a_stop_needs_no_thread_that_lives() {
    model(|| {
        let world = World::new(2, 1);
        let spawner = thread::spawn({
            let world = world.clone();
            move || {
                let taken = world.push();
                if taken {
                    World::call_or_start(&world, 1);
                }
                taken
            }
        });
        world.crew.stop();
        // AcqRel: closes the queue, as the locks of the shards do. Pairs with `push` and `pop`.
        world.jobs.fetch_or(CLOSED, AcqRel);
        let taken = spawner.join().unwrap();
        world.join_started();
        // Relaxed: all threads have been joined.
        let ended = world.done.load(Relaxed) + world.dropped.load(Relaxed);
        assert_eq!(ended, usize::from(taken), "the job waits for a thread that is stuck");
    });
}
