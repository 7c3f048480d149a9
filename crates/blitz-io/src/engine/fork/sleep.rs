//! Decides which workers of a pool sleep, and how each kind of event wakes them.
//!
//! # Protocol
//! `engine::pool::idle` decides which workers search, which ones sleep and which one a producer
//! must wake; its P and W steps and its proof are used here as they are. These events are special
//! to jobs:
//!
//! ```text
//! event              made by                guarded by
//! injected job       any thread             idle: P1 queue, P2 fence, P3 | W2 fence, W3 check
//! a broadcast's job  any thread             the parker's token: always unparked
//! latch, terminate   the thread ending it   the latch's word (ASLEEP), then the token
//! push of a job      the deque's owner      the request in its limit word, and the barrier
//! ```
//!
//! A push costs nothing for the sake of sleepers. A worker that goes to sleep puts a *request* into
//! every deque; the owner's next push sees it, publishes jobs and wakes a worker. Between the
//! request and a push stands the asymmetric barrier:
//!
//! ```text
//! W1 idle.fall_asleep        (its fence is W2)
//! W2' leaves a request in every deque
//! W3 checks everything once more; if there is work: wakes itself
//! W4 dozes: parks for a millisecond at most
//! W5 barrier::heavy(), checks again
//! W6 parks
//! ```
//! Until W5, a push that is still in the store buffer of its processor may be missed. It is not
//! lost, because its owner comes to it. The doze spares workers that are woken again soon the
//! barrier, which interrupts every other running thread.
//!
//! Work may be late in one more way: the first push that sees a request takes it away, and wakes
//! one worker. That worker is a searcher; when it has found a job and was the last searcher, it
//! puts the request back for the workers that still sleep, and checks for work (`stop_searching`).
//! That check has no barrier: it is advice, and what it misses is covered by the next push.
//!
//! # Checked by
//! `an_injected_job_and_a_sleeper_never_miss_each_other`,
//! `a_push_and_a_sleeper_never_miss_each_other`, `a_broadcast_wakes_a_worker_that_falls_asleep`,
//! `a_latch_wakes_a_worker_that_falls_asleep`, `terminate_and_inject_leave_no_worker_asleep`,
//! `a_latch_wakes_its_sleeper_whichever_worker_is_woken`,
//! `a_temporary_worker_lets_no_more_workers_search`; weakened as `sleep_looks_again`,
//! `sleep_deep_barrier`, `sleep_requests`, `sleep_broadcast_token`, `sleep_latch`, `sleep_insists`.

use std::time::Duration;

use super::latch::Latch;
use crate::engine::{
    pool::idle::{Idle, SelfWoken},
    prim::{barrier, pad::CachePadded, parker::Parker, thread, weakened},
};

/// How long a worker dozes before it pays for the barrier. Some fifty times the barrier's cost in a
/// virtual machine with another thread running; picked, not measured.
const DOZE: Duration = Duration::from_millis(1);

/// The sleeping side of a pool: which workers sleep or search, and a parker for each.
pub(crate) struct Sleep {
    pub(crate) idle: Idle,
    parkers: Box<[CachePadded<Parker>]>,
}

/// The sources of work that a worker checks before it sleeps.
pub(crate) trait WorkSources {
    /// Leaves a request in every deque, so that the next push of its owner publishes jobs.
    fn request(&self);
    /// Returns whether there is a job that the worker could run.
    fn has_work(&self) -> bool;
}

/// How a worker woke up.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WakeKind {
    /// The worker counts as searching.
    Searching,
    /// The worker was woken for another reason than work, or woke by itself.
    Alone,
}

impl Sleep {
    pub(crate) fn new(workers: usize, temporary: usize) -> Self {
        Self {
            idle: Idle::with_temporary(workers, temporary),
            parkers: (0..workers + temporary).map(|_| CachePadded::new(Parker::new())).collect(),
        }
    }

    /// Performs P2 and P3: wakes a worker, if that is due, for work that was put where all workers
    /// look.
    pub(crate) fn wake_one(&self) {
        if let Some(worker) = self.idle.reserve_for_work(None) {
            self.parkers[worker].unpark();
        }
    }

    /// Wakes a worker for a push, if that seems due. This is advice: the first check has no fence.
    pub(crate) fn wake_one_if_worthwhile(&self) {
        if self.idle.is_worth_waking() {
            self.wake_one();
        }
    }

    /// Wakes this worker, for something that only it can do.
    pub(crate) fn wake(&self, worker: usize) {
        if !weakened!("sleep_broadcast_token") {
            self.parkers[worker].unpark();
        }
    }

    /// Performs W1 to W6, for a worker that waits for `latch`.
    pub(crate) fn sleep(
        &self,
        worker: usize,
        was_searching: bool,
        latch: &Latch,
        sources: &impl WorkSources,
    ) -> WakeKind {
        let has_work = || !weakened!("sleep_looks_again") && sources.has_work();
        self.idle.fall_asleep(worker, was_searching);
        if !weakened!("sleep_requests") {
            sources.request();
        }
        if has_work() {
            return self.become_awake(worker, true);
        }
        if !latch.fall_asleep() && !weakened!("sleep_latch") {
            return self.become_awake(worker, false);
        }
        let parker = &self.parkers[worker];
        let mut works = false;
        // In a model no time passes, so the doze ends at once.
        if cfg!(blitz_loom) || !parker.park_timeout(DOZE) {
            if !weakened!("sleep_deep_barrier") {
                // Pairs with the light barrier in `Deque::push_at`.
                barrier::heavy();
            }
            works = has_work();
            if !works {
                parker.park();
            }
        }
        latch.wake_up();
        self.become_awake(worker, works)
    }

    /// Makes the worker awake again, by another thread's reservation or by its own.
    fn become_awake(&self, worker: usize, works: bool) -> WakeKind {
        while self.idle.is_asleep(worker) {
            let woken = match works {
                true => self.idle.wake_self_for_work(worker),
                false => self.idle.wake_self_not_searching(worker),
            };
            if woken == SelfWoken::Awake {
                return if works { WakeKind::Searching } else { WakeKind::Alone };
            }
            // All sleepers are reserved, perhaps by a worker that wakes itself and finds that its
            // bit was taken by another thread: it gives the reservation back, and then no thread
            // wakes us. So one refusal is not final, and there is no token to wait for.
            if weakened!("sleep_insists") {
                self.parkers[worker].park();
            }
            thread::yield_now();
        }
        // Another thread has reserved us and taken our bit. Its token may be consumed by a later
        // sleep, which then ends early.
        WakeKind::Searching
    }
}

#[cfg(test)]
mod models {
    use std::{ptr::NonNull, sync::Arc as StdArc};

    use super::{Sleep, WakeKind, WorkSources};
    use crate::engine::{
        fork::{deque::Deque, latch::Latch},
        prim::{Arc, AtomicUsize, Mutex, Ordering::Relaxed, lock, model, thread},
    };

    /// A pool of one worker that sleeps, and the work that other threads may give it.
    struct SleepWorld {
        sleep: Sleep,
        injected: Mutex<usize>,
        broadcast: AtomicUsize,
        deque: Deque<u32>,
        latch: Latch,
    }

    impl SleepWorld {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                sleep: Sleep::new(1, 0),
                injected: Mutex::new(0),
                broadcast: AtomicUsize::new(0),
                deque: Deque::new(),
                latch: Latch::new(),
            })
        }

        /// Sleeps until `done` returns true.
        fn sleep_until(&self, done: impl Fn() -> bool) {
            while !done() {
                let searching = self.sleep.idle.start_searching();
                let woken = self.sleep.sleep(0, searching, &self.latch, self);
                if woken == WakeKind::Searching {
                    let _ = self.sleep.idle.stop_searching();
                }
            }
        }
    }

    impl WorkSources for SleepWorld {
        fn request(&self) {
            self.deque.request();
        }

        fn has_work(&self) -> bool {
            // Relaxed: the thread that added to it leaves a token.
            *lock(&self.injected) > 0 || self.broadcast.load(Relaxed) > 0 || self.deque.has_jobs()
        }
    }

    #[test]
    fn an_injected_job_and_a_sleeper_never_miss_each_other() {
        model(|| {
            let world = SleepWorld::new();
            let producer = thread::spawn({
                let world = world.clone();
                move || {
                    *lock(&world.injected) += 1;
                    world.sleep.wake_one();
                }
            });
            world.sleep_until(|| *lock(&world.injected) > 0);
            producer.join().unwrap();
        });
    }

    #[test]
    fn a_push_and_a_sleeper_never_miss_each_other() {
        model(|| {
            let world = SleepWorld::new();
            let job = StdArc::new(0u32);
            let owner = thread::spawn({
                let (world, job) = (world.clone(), job.clone());
                move || {
                    // SAFETY: 1. only this thread pushes. 2. There is one push, and `publish`
                    // follows.
                    let pushed = unsafe { world.deque.push(NonNull::from(&*job)) };
                    // SAFETY: this thread is the owner, because only it pushes.
                    if pushed.is_requested && unsafe { world.deque.publish() } {
                        world.sleep.wake_one_if_worthwhile();
                    }
                }
            });
            world.sleep_until(|| world.deque.has_jobs());
            owner.join().unwrap();
        });
    }

    #[test]
    fn a_broadcast_wakes_a_worker_that_falls_asleep() {
        model(|| {
            let world = SleepWorld::new();
            let other = thread::spawn({
                let world = world.clone();
                move || {
                    // Relaxed: the token publishes it.
                    world.broadcast.fetch_add(1, Relaxed);
                    world.sleep.wake(0);
                }
            });
            world.sleep_until(|| world.broadcast.load(Relaxed) > 0);
            other.join().unwrap();
        });
    }

    #[test]
    fn a_latch_wakes_a_worker_that_falls_asleep() {
        model(|| {
            let world = SleepWorld::new();
            let other = thread::spawn({
                let world = world.clone();
                move || {
                    // SAFETY: 1. the latch exists, because both threads hold it.
                    if unsafe { Latch::set(&raw const world.latch) } {
                        world.sleep.wake(0);
                    }
                }
            });
            world.sleep_until(|| world.latch.is_set());
            other.join().unwrap();
        });
    }

    #[test]
    fn terminate_and_inject_leave_no_worker_asleep() {
        model(|| {
            let world = SleepWorld::new();
            let others = [true, false].map(|terminates| {
                let world = world.clone();
                thread::spawn(move || {
                    if terminates {
                        // SAFETY: 1. the latch exists, because all threads hold it.
                        if unsafe { Latch::set(&raw const world.latch) } {
                            world.sleep.wake(0);
                        }
                    } else {
                        *lock(&world.injected) += 1;
                        world.sleep.wake_one();
                    }
                })
            });
            world.sleep_until(|| {
                // An injected job is run as soon as it is seen.
                *lock(&world.injected) = 0;
                world.latch.is_set()
            });
            for other in others {
                other.join().unwrap();
            }
            world.sleep.idle.assert_all_awake(0);
        });
    }

    /// A source of work that never has any.
    struct Nothing;

    impl WorkSources for Nothing {
        fn request(&self) {}

        fn has_work(&self) -> bool {
            false
        }
    }

    /// Two workers wake themselves while a third thread reserves one of them.
    #[test]
    fn a_latch_wakes_its_sleeper_whichever_worker_is_woken() {
        model(|| {
            let sleep = Arc::new(Sleep::new(2, 0));
            let is_done = Arc::new(AtomicUsize::new(0));
            let wait = |worker: usize| {
                let (sleep, is_done) = (sleep.clone(), is_done.clone());
                move || {
                    let latch = Latch::new();
                    // SAFETY: 1. the latch is in this frame. No thread sleeps yet, so there is none
                    // to unpark.
                    assert!(!unsafe { Latch::set(&raw const latch) });
                    let woken = sleep.sleep(worker, false, &latch, &Nothing);
                    if woken == WakeKind::Searching {
                        let _ = sleep.idle.stop_searching();
                    }
                    // Relaxed: both threads count, and the value is read after the joins.
                    is_done.fetch_add(1, Relaxed);
                }
            };
            let other = thread::spawn(wait(1));
            let producer = thread::spawn({
                let sleep = sleep.clone();
                move || sleep.wake_one()
            });
            wait(0)();
            other.join().unwrap();
            producer.join().unwrap();
            assert_eq!(is_done.load(Relaxed), 2);
            sleep.idle.assert_all_awake(0);
        });
    }

    /// On two processors, a second searcher would keep a caller off the processor that it needs.
    #[test]
    fn a_temporary_worker_lets_no_more_workers_search() {
        model(|| {
            let sleep = Sleep::new(2, 1);
            assert!(sleep.idle.start_searching(), "half of two");
            assert!(!sleep.idle.start_searching(), "not half of three");
            assert!(sleep.idle.stop_searching());
        });
    }
}
