//! The thread that waits for children whom no runtime watches.
//!
//! It is started for the first of them, sleeps until one of their descriptors is readable or
//! its bell rings, and ends with the last. The bell is one of those that signals ring
//! (`engine/signals`), for children that have no descriptor; who brings a child rings it too.
//!
//! # Protocol
//! ```text
//! who brings a child                   the thread
//! B1 queues it, under the lock         R1 takes what is queued, under the lock; if that is
//! B2 nobody runs: RUNS, starts one        nothing and it has none: not RUNS any more, ends
//!    else: rings the bell              R2 asks each of its children
//!                                      R3 sleeps: bell, descriptors
//! a child that ends                    R4 makes the bell quiet; fence; goes to R1
//! E1 has ended
//! E2 SIGCHLD: counts; fence; rings
//!    a bell that is quiet
//! ```
//! B1 and R1 are under one lock: a child is taken by the thread, or finds that nobody runs.
//! An end before R2 is seen by it. An end after: E2 finds the bell quiet and rings it, which
//! ends R3; or it is loud, and then its pipe has a byte already, or R4 follows with its
//! fence, after which R2 asks again (the proof of `engine/signals`).
//!
//! # Invariants
//! 1. Each child is asked by its number, never 'any child': others' are left alone.
//! 2. There is one thread at most, and none when there is nothing to wait for.
//!
//! # Rejected
//! - A thread that stays: nothing is to be paid for what is over.
//! - Telling by `SIGCHLD` for all: each signal would ask each child.
//!
//! # Checked by
//! `an_end_against_the_sleep_is_seen`, `a_child_against_the_end_of_the_thread_is_taken`,
//! `two_who_bring_start_one_thread`; weakened as `reaper_looks_again`, `reaper_ends_locked`,
//! `reaper_bring_rings`.

#![forbid(unsafe_code)]

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::Child as StdChild,
};

use crate::{
    engine::{
        prim::{Mutex, OnceLock, lock, thread, weakened},
        signals::{self, Bell, Pipe},
    },
    process::raw,
};

/// One that somebody is responsible for.
pub(super) trait Ward {
    /// Whether it has ended, and was waited for.
    fn reap(&mut self) -> bool;
}

/// What the thread sleeps by.
pub(super) trait Bed<W> {
    /// Sleeps until it is woken, or one of them may have ended. What comes before the return
    /// is seen by who looks after it; what comes later ends the next sleep.
    fn sleep(&self, wards: &[W]);

    fn wake(&self);
}

/// Those who were brought, and whether somebody runs.
pub(super) struct Nursery<W, B> {
    state: Mutex<State<W, B>>,
}

struct State<W, B> {
    queue: Vec<W>,
    /// That of the thread that runs.
    bed: Option<B>,
    runs: bool,
}

impl<W: Ward, B: Bed<W> + Clone> Nursery<W, B> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { queue: Vec::new(), bed: None, runs: false }) }
    }

    /// B1 and B2. Whether the caller has to start a thread, which calls `run`.
    #[must_use]
    pub(super) fn bring(&self, ward: W) -> bool {
        let mut state = lock(&self.state);
        state.queue.push(ward);
        if !state.runs {
            state.runs = true;
            return true;
        }
        // One that has no bed yet takes what is queued before it lies down.
        let bed = state.bed.clone();
        drop(state);
        if let Some(bed) = bed
            && !weakened!("reaper_bring_rings")
        {
            bed.wake();
        }
        false
    }

    /// There is no thread after all. What is queued waits for the next who brings one, and
    /// those that have ended are let go.
    pub(super) fn give_up(&self) {
        let mut state = lock(&self.state);
        state.runs = false;
        state.queue.retain_mut(|ward| !ward.reap());
    }

    /// The thread: R1 to R4.
    pub(super) fn run(&self, bed: B) {
        let mut wards = Vec::new();
        while self.take(&mut wards, &bed) {
            // R2.
            wards.retain_mut(|ward: &mut W| !ward.reap());
            if !wards.is_empty() {
                bed.sleep(&wards);
            }
        }
    }

    /// R1.
    fn take(&self, wards: &mut Vec<W>, bed: &B) -> bool {
        let mut state = lock(&self.state);
        wards.append(&mut state.queue);
        if !wards.is_empty() {
            if state.bed.is_none() {
                state.bed = Some(bed.clone());
            }
            return true;
        }
        if weakened!("reaper_ends_locked") {
            drop(state);
            state = lock(&self.state);
        }
        (state.runs, state.bed) = (false, None);
        false
    }
}

/// A child, and its descriptor if it has one.
struct Left {
    child: StdChild,
    pidfd: Option<OwnedFd>,
}

impl Ward for Left {
    fn reap(&mut self) -> bool {
        // An error says that somebody else has waited for it.
        !matches!(self.child.try_wait(), Ok(None))
    }
}

/// The bell of the thread.
#[derive(Clone, Copy)]
struct Asleep(&'static Bell<Pipe>);

impl Bed<Left> for Asleep {
    fn sleep(&self, wards: &[Left]) {
        let pipe = self.0.pipe();
        let of_wards = wards.iter().filter_map(|ward| ward.pidfd.as_ref()).map(AsFd::as_fd);
        let fds: Vec<BorrowedFd<'_>> = std::iter::once(pipe.reader()).chain(of_wards).collect();
        raw::wait_readable(&fds);
        pipe.drain();
        // Quiet, fence, and what signals there were: with no runtime left nobody else tells.
        signals::hall().hear(self.0);
    }

    fn wake(&self) {
        self.0.ring();
    }
}

fn nursery() -> &'static Nursery<Left, Asleep> {
    static NURSERY: OnceLock<Nursery<Left, Asleep>> = OnceLock::new();
    NURSERY.get_or_init(Nursery::new)
}

/// Has a child waited for that was dropped.
pub(super) fn adopt(child: StdChild, pidfd: Option<OwnedFd>) {
    if pidfd.is_none() {
        // Installed before the child is asked. Should a sandbox refuse it, whatever else
        // wakes the thread has the child asked.
        let _ = signals::install(libc::SIGCHLD);
    }
    if nursery().bring(Left { child, pidfd }) && start().is_err() {
        nursery().give_up();
    }
}

/// Starts the thread.
///
/// # Errors
/// That there are no threads or no descriptors left.
fn start() -> std::io::Result<()> {
    let bell = signals::hall().put_up(Pipe::new)?;
    let started = thread::Builder::new().name("blitz-reaper".to_owned()).spawn(move || {
        nursery().run(Asleep(bell));
        signals::hall().take_down(bell);
    });
    if started.is_err() {
        signals::hall().take_down(bell);
    }
    started.map(drop)
}

#[cfg(test)]
mod models {
    //! Children that end and are brought, against the thread that waits for them.

    use super::{Bed, Nursery, Ward};
    use crate::engine::prim::{
        Arc, AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence, model,
        parker::Parker,
        thread, weakened,
    };

    /// A child of a model: whether it has ended, and how often it was waited for.
    #[derive(Clone)]
    struct Doll(Arc<(AtomicBool, AtomicUsize)>);

    impl Doll {
        fn new() -> Self {
            Self(Arc::new((AtomicBool::new(false), AtomicUsize::new(0))))
        }

        fn reaped(&self) -> usize {
            // Relaxed: after the thread's end.
            self.0.1.load(Relaxed)
        }
    }

    impl Ward for Doll {
        fn reap(&mut self) -> bool {
            // Relaxed: the kernel's own order is that of the fences here.
            let ended = self.0.0.load(Relaxed);
            if ended {
                self.0.1.fetch_add(1, Relaxed);
            }
            ended
        }
    }

    /// A bell as `engine/signals` has them: loud or quiet, with a pipe to sleep by.
    #[derive(Clone)]
    struct Cot(Arc<(AtomicBool, Parker)>);

    impl Cot {
        fn new() -> Self {
            Self(Arc::new((AtomicBool::new(false), Parker::new())))
        }

        /// E2.
        fn signal(&self) {
            // SeqCst: S2 of `engine/signals`. Pairs with that in `sleep`.
            fence(SeqCst);
            // Relaxed: the fences order it.
            if self.0.0.compare_exchange(false, true, Relaxed, Relaxed).is_ok() {
                self.0.1.unpark();
            }
        }
    }

    impl Bed<Doll> for Cot {
        fn sleep(&self, _wards: &[Doll]) {
            self.0.1.park();
            if !weakened!("reaper_looks_again") {
                // Relaxed: the fences order it.
                self.0.0.store(false, Relaxed);
                // SeqCst: R4, which is H2 of `engine/signals`. Pairs with that in `signal`.
                fence(SeqCst);
            }
        }

        fn wake(&self) {
            self.0.1.unpark();
        }
    }

    type Shared = Arc<Nursery<Doll, Cot>>;

    /// A child that ends on a thread of its own.
    fn end(doll: &Doll, cot: &Cot) -> thread::JoinHandle<()> {
        let (doll, cot) = (doll.clone(), cot.clone());
        thread::spawn(move || {
            // Relaxed: the fence in `signal` orders it.
            doll.0.0.store(true, Relaxed);
            cot.signal();
        })
    }

    #[test]
    fn an_end_against_the_sleep_is_seen() {
        model(|| {
            let nursery: Shared = Arc::new(Nursery::new());
            let (cot, dolls) = (Cot::new(), [Doll::new(), Doll::new()]);
            assert!(nursery.bring(dolls[0].clone()));
            assert!(!nursery.bring(dolls[1].clone()));
            let ends = dolls.each_ref().map(|doll| end(doll, &cot));
            nursery.run(cot);
            ends.into_iter().for_each(|end| end.join().unwrap());
            assert_eq!(dolls.map(|doll| doll.reaped()), [1, 1]);
        });
    }

    /// Brings a child that has ended already, and runs if nobody does.
    fn bring(nursery: &Shared, cot: &Cot, doll: &Doll) -> bool {
        doll.0.0.store(true, Relaxed); // Relaxed: the lock of the queue orders it.
        let starts = nursery.bring(doll.clone());
        if starts {
            nursery.run(cot.clone());
        }
        starts
    }

    #[test]
    fn a_child_against_the_end_of_the_thread_is_taken() {
        model(|| {
            let nursery: Shared = Arc::new(Nursery::new());
            let (cot, dolls) = (Cot::new(), [Doll::new(), Doll::new()]);
            let other = thread::spawn({
                let (nursery, cot, doll) = (nursery.clone(), cot.clone(), dolls[1].clone());
                move || bring(&nursery, &cot, &doll)
            });
            let mine = bring(&nursery, &cot, &dolls[0]);
            assert!(mine | other.join().unwrap());
            assert_eq!(dolls.map(|doll| doll.reaped()), [1, 1]);
        });
    }

    #[test]
    fn two_who_bring_start_one_thread() {
        model(|| {
            let nursery: Shared = Arc::new(Nursery::new());
            let (cot, first, second) = (Cot::new(), Doll::new(), Doll::new());
            assert!(nursery.bring(first.clone()));
            let runs = thread::spawn({
                let (nursery, cot) = (nursery.clone(), cot.clone());
                move || nursery.run(cot)
            });
            // It lies there with the first, which ends only after the second was taken.
            second.0.0.store(true, Relaxed); // Relaxed: the lock of the queue orders it.
            assert!(!nursery.bring(second.clone()), "one runs");
            let watch = thread::spawn({
                let (first, second, cot) = (first.clone(), second.clone(), cot.clone());
                move || {
                    while second.reaped() == 0 {
                        thread::yield_now();
                    }
                    // Relaxed: the fence in `signal` orders it.
                    first.0.0.store(true, Relaxed);
                    cot.signal();
                }
            });
            runs.join().unwrap();
            watch.join().unwrap();
            assert_eq!((first.reaped(), second.reaped()), (1, 1));
        });
    }
}
