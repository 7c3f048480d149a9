//! The crew under every interleaving; see the story of `crew.rs`.
//!
//! The queue is a count of jobs with a mark for 'closed': it stands for shards whose
//! locks put pushes, pops and the close in one order. The end of a thread's patience
//! is a nap that says `Over` at once: whether a call comes before is what loom explores.

use super::{Call, Crew, Failed, Nap, Rested};
use crate::engine::prim::{
    Arc, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    model,
    parker::Parker,
    thread,
};

const CLOSED: usize = 1 << 8;

/// A crew, its queue, and what came of the jobs.
struct World {
    crew: Crew<u32, ()>,
    jobs: AtomicUsize,
    done: AtomicUsize,
    started: std::sync::Mutex<Vec<thread::JoinHandle<()>>>,
}

/// Sleeps for ever.
fn patient() -> impl FnMut(&Parker) -> Nap {
    |parker| {
        parker.park();
        Nap::Disturbed
    }
}

/// Does not sleep, and leaves; if it may not, it is being called, and sleeps once.
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
    /// A crew that has `threads` already.
    fn new(cap: usize, threads: usize) -> Arc<Self> {
        let crew = Crew::new(cap, 4);
        crew.beds.make(0);
        (0..threads).for_each(|_| assert!(crew.join()));
        Arc::new(Self {
            crew,
            jobs: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            started: std::sync::Mutex::default(),
        })
    }

    fn push(&self) -> bool {
        // Release: pairs with the Acquire in `pop`. A closed queue refuses.
        self.jobs.fetch_update(Release, Relaxed, |now| (now < CLOSED).then_some(now + 1)).is_ok()
    }

    fn pop(&self) -> bool {
        // Acquire: pairs with the Release in `push`.
        self.jobs.fetch_update(Acquire, Relaxed, |now| (now % CLOSED > 0).then(|| now - 1)).is_ok()
    }

    /// Pops without trying if a look says that there is nothing.
    fn has_job(&self) -> bool {
        // Relaxed: the fences are the crew's.
        self.jobs.load(Relaxed) & (CLOSED - 1) > 0
    }

    /// P1 to P3, with a system that gives every thread that is asked for.
    fn spawn(world: &Arc<Self>, bed: usize) {
        assert!(world.push());
        Self::call_or_start(world, bed);
    }

    fn call_or_start(world: &Arc<Self>, bed: usize) {
        if world.crew.call(|| true) == Call::Start {
            let thread = serving(world, bed, impatient());
            world.crew.started();
            world.started.lock().unwrap().push(thread);
        }
    }

    /// P1 to P3 and F1 to F3, with a system that gives none.
    fn spawn_in_vain(&self) {
        assert!(self.push());
        if self.crew.call(|| true) == Call::Start && self.crew.failed() == Failed::Alone {
            // Its own, or another's that looks the same: then that one takes ours.
            self.pop();
        }
    }

    /// The life of a thread.
    fn serve(&self, bed: usize, mut nap: impl FnMut(&Parker) -> Nap) {
        loop {
            while self.pop() {
                self.done.fetch_add(1, Relaxed);
            }
            match self.crew.rest(bed, || self.has_job(), &mut nap) {
                Rested::Look => {}
                Rested::Called => {
                    let errand = self.crew.beds.bed(bed).errand.lock().unwrap().take();
                    if errand.is_some() && self.crew.is_free_to_go(|| self.has_job()) {
                        return;
                    }
                }
                Rested::Gone => return,
            }
        }
    }

    fn join_started(&self) {
        loop {
            let Some(thread) = self.started.lock().unwrap().pop() else { return };
            thread.join().unwrap();
        }
    }

    /// Nothing waits, nobody is left, and so many were run.
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

/// Runs one job, then says that the crew stops: ends a thread that sleeps for ever.
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
                Rested::Look | Rested::Called => {}
                Rested::Gone => return,
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
        // With both awake nobody is called, and both look; with one gone a third may
        // be asked for, which the system refuses: the other has the job or will look.
        if world.crew.call(|| true) == Call::Start && world.crew.failed() == Failed::Alone {
            assert!(!world.pop(), "one of them sleeps for ever, and so was alive");
        }
        leaves.join().unwrap();
        // Relaxed: who left may have run it; then the other sleeps on.
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

/// A thread lives, and leaves when there is nothing to do; a spawner wants a second
/// one and does not get it.
#[test]
fn a_failed_start_beside_a_living_thread_waits_for_it() {
    model(|| {
        let world = World::new(2, 1);
        let thread = serving(&world, 0, impatient());
        assert!(world.push());
        if world.crew.call(|| true) == Call::Start && world.crew.failed() == Failed::Alone {
            // Taken back, or run by the thread before it left.
            world.done.fetch_add(usize::from(world.pop()), Relaxed);
        }
        thread.join().unwrap();
        world.assert_over(1);
    });
}

/// The cap is one, and the one is being started in vain while another spawner comes.
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
        // AcqRel: closes the queue and takes what is in it, as the locks of the shards
        // do. Pairs with `push` and `pop`.
        let drained = world.jobs.swap(CLOSED, AcqRel);
        let taken = spawner.join().unwrap();
        thread.join().unwrap();
        world.join_started();
        let run = world.done.load(Relaxed);
        assert_eq!(run + drained, usize::from(taken), "run {run}, dropped {drained}");
        world.assert_over(run);
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
                            let errand = world.crew.beds.bed(0).errand.lock().unwrap().take();
                            if errand.is_some() {
                                return errand;
                            }
                        }
                        Rested::Gone => return None,
                    }
                }
            }
        });
        let recruiter = thread::spawn({
            let world = world.clone();
            move || {
                let bed = world.crew.recruit();
                if let Some(bed) = bed {
                    *world.crew.beds.bed(bed).errand.lock().unwrap() = Some(7);
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

/// The crew's only thread falls asleep while a job comes, for which nobody else may be
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
                    *world.crew.beds.bed(bed).errand.lock().unwrap() = Some(7);
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
