//! The deque of a fork-join worker against other deques, from which thieves take the oldest job.
//!
//! All on one thread: the cost of a join that is not stolen from, and of a theft by itself. Our
//! deque is private until a thief requests a job; so there are two thefts, one of jobs that the
//! owner has published and one against an owner that does not respond and must be forced.
//!
//! *With fences* is the deque where the system has no asymmetric barrier. Here it has one, and a
//! thief that forces calls it all the same; `BLITZ_BARRIER=fences` in the environment shows what it
//! costs without, and makes the first contender the second.

use std::hint::black_box;

use harness::Case;
use queue_variants::jobs::{ChaseLev, Job, JobDeque};

use crate::ns_per;

/// A deque with an owner's and a thief's end, both on this thread.
trait Jobs: Sized + 'static {
    fn new() -> Self;
    fn push(&mut self, job: Job);
    /// Pushes and pops a job: a join that no thief disturbs.
    fn push_pop(&mut self, job: Job) -> bool;
    fn pop(&mut self) -> Option<Job>;
    fn steal(&self) -> Option<Job>;
    /// Publishes as many jobs as possible: at least half.
    fn publish(&mut self, _another: Job) {}
}

struct Asymmetric(JobDeque);
struct Fenced(JobDeque);

/// Implements our two stacks, which differ in how they are created.
macro_rules! ours {
    ($contender:ident, $new:path) => {
        impl Jobs for $contender {
            fn new() -> Self {
                Self($new())
            }

            #[inline(always)]
            fn push(&mut self, job: Job) {
                self.0.push(job);
            }

            #[inline(always)]
            fn push_pop(&mut self, job: Job) -> bool {
                self.0.push_pop(job)
            }

            fn pop(&mut self) -> Option<Job> {
                self.0.pop()
            }

            #[inline(always)]
            fn steal(&self) -> Option<Job> {
                self.0.steal()
            }

            fn publish(&mut self, another: Job) {
                self.0.request();
                assert!(self.0.push(another), "the push saw no request");
            }
        }
    };
}

ours!(Asymmetric, JobDeque::new);
ours!(Fenced, JobDeque::fenced);

impl Jobs for ChaseLev {
    fn new() -> Self {
        Self::new()
    }

    #[inline(always)]
    fn push(&mut self, job: Job) {
        self.push(job);
    }

    #[inline(always)]
    fn push_pop(&mut self, job: Job) -> bool {
        self.push_pop(job)
    }

    fn pop(&mut self) -> Option<Job> {
        self.pop()
    }

    #[inline(always)]
    fn steal(&self) -> Option<Job> {
        self.steal()
    }
}

struct Crossbeam(crossbeam_deque::Worker<Job>, crossbeam_deque::Stealer<Job>);

impl Jobs for Crossbeam {
    fn new() -> Self {
        let worker = crossbeam_deque::Worker::new_lifo();
        let stealer = worker.stealer();
        Self(worker, stealer)
    }

    #[inline(always)]
    fn push(&mut self, job: Job) {
        self.0.push(job);
    }

    #[inline(always)]
    fn push_pop(&mut self, job: Job) -> bool {
        self.0.push(job);
        self.0.pop().is_some()
    }

    fn pop(&mut self) -> Option<Job> {
        self.0.pop()
    }

    #[inline(always)]
    fn steal(&self) -> Option<Job> {
        self.1.steal().success()
    }
}

/// The contender st3. A thief of st3 steals into a worker of its own, even a single job.
struct St3 {
    worker: st3::lifo::Worker<Job>,
    stealer: st3::lifo::Stealer<Job>,
    target: st3::lifo::Worker<Job>,
}

impl Jobs for St3 {
    fn new() -> Self {
        let worker = st3::lifo::Worker::new(512);
        let stealer = worker.stealer();
        Self { worker, stealer, target: st3::lifo::Worker::new(512) }
    }

    #[inline(always)]
    fn push(&mut self, job: Job) {
        assert!(self.worker.push(job).is_ok(), "the loops never fill a deque");
    }

    #[inline(always)]
    fn push_pop(&mut self, job: Job) -> bool {
        self.push(job);
        self.worker.pop().is_some()
    }

    fn pop(&mut self) -> Option<Job> {
        self.worker.pop()
    }

    #[inline(always)]
    fn steal(&self) -> Option<Job> {
        self.stealer.steal_and_pop(&self.target, |_| 1).ok().map(|(job, _)| job)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(push_pop("jobs_push_pop", 0));
    cases.extend(push_pop("jobs_push_pop_64", 64));
    cases.extend(steal("jobs_steal", true));
    cases.extend(steal("jobs_steal_silent", false));
    cases
}

/// Creates the contenders of a row: `$loop` is generic over the contender.
macro_rules! contenders {
    ($row:expr, $loop:ident, $argument:expr) => {
        [
            Case::new($row, "ours (asymmetric)", $loop::<Asymmetric>($argument)),
            Case::new($row, "ours (asymmetric) again", $loop::<Asymmetric>($argument)),
            Case::new($row, "ours (with fences)", $loop::<Fenced>($argument)),
            Case::new($row, "ours (Chase-Lev)", $loop::<ChaseLev>($argument)),
            Case::new($row, "crossbeam-deque LIFO", $loop::<Crossbeam>($argument)),
            Case::new($row, "st3 LIFO", $loop::<St3>($argument)),
        ]
    };
}

fn push_pop(row: &'static str, depth: usize) -> [Case; 6] {
    contenders!(row, push_pop_loop, depth)
}

fn push_pop_loop<C: Jobs>(depth: usize) -> impl FnMut() -> f64 {
    const PAIRS: u64 = 100_000;
    let mut deque = C::new();
    Job::many(depth).into_iter().for_each(|job| deque.push(job));
    let job = Job::many(1)[0];
    move || {
        let mut popped = 0;
        let time = ns_per(PAIRS, || {
            for _ in 0..PAIRS {
                popped += u64::from(deque.push_pop(black_box(job)));
            }
        });
        assert_eq!(popped, PAIRS, "a contender lost jobs");
        time
    }
}

fn steal(row: &'static str, is_public: bool) -> [Case; 6] {
    contenders!(row, steal_loop, is_public)
}

fn steal_loop<C: Jobs>(is_public: bool) -> impl FnMut() -> f64 {
    const REPEATS: usize = 200;
    const JOBS: usize = 256;
    let mut deque = C::new();
    let jobs = Job::many(JOBS);
    // At least half of them are public.
    let wanted = if is_public { JOBS / 2 } else { JOBS };
    move || {
        let mut time = 0.0;
        for _ in 0..REPEATS {
            jobs[1..].iter().for_each(|job| deque.push(*job));
            if is_public {
                deque.publish(jobs[0]);
            } else {
                deque.push(jobs[0]);
            }
            let mut stolen = 0;
            time += ns_per(1, || {
                while stolen < wanted && black_box(deque.steal()).is_some() {
                    stolen += 1;
                }
            });
            assert_eq!(stolen, wanted, "a thief found nothing");
            while deque.pop().is_some() {}
        }
        time / (REPEATS * wanted) as f64
    }
}
