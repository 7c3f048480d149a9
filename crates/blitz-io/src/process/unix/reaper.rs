//! The reaper thread, which waits for children that were dropped.
//!
//! The thread is started for the first dropped child, sleeps until its [`SignalNotifier`] is
//! notified, and ends with the last. A notifier is the wake-up mechanism of `engine/signals`, here
//! used for `SIGCHLD`; a thread that drops a child notifies it too. So any number of children costs
//! one descriptor (two where a notifier is a pipe and not an eventfd).
//!
//! A signal does not say which child has exited. On Linux the system names some child that has
//! exited, without reaping it (`waitid` with `WNOWAIT`). If that child is one of ours, it is reaped
//! and the system is queried again; if there is none, nothing is left to do. Only if the child is
//! not ours is each of ours checked, because one of ours may come after it.
//!
//! # Protocol
//! ```text
//! who brings a child                   the thread
//! B1 queues it, under the lock         R1 takes what is queued, under the lock; if that is
//! B2 nobody runs: RUNS, starts one        nothing and it has none: not RUNS any more, ends
//!    else: notifies                    R2 waits for its children that have ended
//!                                      R3 sleeps until it is notified
//! a child that ends                    R4 resets the notifier; fence; goes to R1
//! E1 has ended
//! E2 SIGCHLD: counts; fence; notifies
//!    a notifier that is idle
//! ```
//! A child is brought by the thread that drops it. B1 and R1 are under one lock: either the reaper
//! thread takes the child, or B2 finds that no thread runs. An exit before R2 is seen by R2. After
//! an exit later than R2, either E2 finds the notifier idle and notifies it, which ends R3; or the
//! notifier is NOTIFIED, and then its pipe has a byte already, or R4 follows with its fence, after
//! which R2 checks again (the proof of `engine/signals`).
//!
//! # Invariants
//! 1. Each child is checked by its process ID, never by 'any child', so that children of other code
//!    are left alone.
//! 2. There is one thread at most, and none when there is no child to wait for.
//!
//! # Rejected
//! - A thread that stays: a program must not pay for children that have exited.
//! - A descriptor for each child, as a `Child` has one: a program that starts and drops many would
//!   run out of descriptors, for children that it has no interest in.
//! - Leaving dropped children to the drivers of runtimes, as Tokio does: without a runtime that is
//!   being driven they stay zombies.
//!
//! # Checked by
//! `an_end_against_the_sleep_is_seen`, `a_child_against_the_end_of_the_thread_is_taken`,
//! `two_who_bring_start_one_thread`; weakened as `reaper_looks_again`, `reaper_ends_locked`,
//! `reaper_bring_rings`.

#![forbid(unsafe_code)]

use std::process::Child as StdChild;

#[cfg(not(blitz_loom))]
use crate::engine::prim::per_process::PerProcess;
use crate::{
    engine::{
        prim::{Mutex, lock, weakened},
        signals::{self, SignalNotifier, WakePipe},
        threads::service,
    },
    process::raw,
};

/// A child that the reaper is responsible for.
pub(super) trait Ward {
    /// Reaps the child if it has exited, and returns true if so.
    fn reap(&mut self) -> bool;

    /// Reaps the children that have exited, and removes them from `wards`.
    fn reap_ended(wards: &mut Vec<Self>)
    where
        Self: Sized,
    {
        wards.retain_mut(|ward| !ward.reap());
    }
}

/// The means by which the reaper thread sleeps and is woken.
pub(super) trait Bed {
    /// Sleeps until woken, or until a child may have exited. An event before the return is visible
    /// to a check after it; a later event ends the next sleep.
    fn sleep(&self);

    fn wake(&self);
}

/// Queue of dropped children, and the state of the thread that takes them.
pub(super) struct Nursery<W, B> {
    state: Mutex<State<W, B>>,
}

struct State<W, B> {
    queue: Vec<W>,
    /// How to wake the running thread; `None` until it has taken its first child.
    bed: Option<B>,
    runs: bool,
}

impl<W: Ward, B: Bed + Clone> Nursery<W, B> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { queue: Vec::new(), bed: None, runs: false }) }
    }

    /// Queues a child (B1 and B2). Returns true if the caller must start a thread that calls `run`.
    #[must_use]
    pub(super) fn bring(&self, ward: W) -> bool {
        let mut state = lock(&self.state);
        state.queue.push(ward);
        if !state.runs {
            state.runs = true;
            return true;
        }
        // A thread without a bed here takes what is queued before it sleeps.
        let bed = state.bed.clone();
        drop(state);
        if let Some(bed) = bed
            && !weakened!("reaper_bring_rings")
        {
            bed.wake();
        }
        false
    }

    /// Records that no thread could be started, and reaps queued children that have exited. The
    /// others stay queued until the next child is brought.
    pub(super) fn give_up(&self) {
        let mut state = lock(&self.state);
        state.runs = false;
        state.queue.retain_mut(|ward| !ward.reap());
    }

    /// Runs the reaper thread: R1 to R4.
    pub(super) fn run(&self, bed: B) {
        let mut wards = Vec::new();
        while self.take(&mut wards, &bed) {
            // R2: reaps the children that have exited.
            W::reap_ended(&mut wards);
            if !wards.is_empty() {
                bed.sleep();
            }
        }
    }

    /// Takes the queued children (R1). Returns false if the thread must end.
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

impl Ward for StdChild {
    fn reap(&mut self) -> bool {
        // An error means that other code has already waited for it.
        !matches!(self.try_wait(), Ok(None))
    }

    fn reap_ended(wards: &mut Vec<Self>) {
        loop {
            match raw::any_ended() {
                Ok(None) => return,
                Ok(Some(number)) => {
                    let ours = wards.iter().position(|child| child.id() == number);
                    if let Some(at) = ours
                        && wards[at].reap()
                    {
                        // `reap` above has waited for it.
                        drop(wards.swap_remove(at));
                        continue;
                    }
                }
                // There are no children at all: other code has waited for each of ours.
                Err(_) => {}
            }
            return wards.retain_mut(|child| !child.reap());
        }
    }
}

/// The notifier that the reaper thread sleeps on.
#[derive(Clone, Copy)]
struct Asleep(&'static SignalNotifier<WakePipe>);

impl Bed for Asleep {
    fn sleep(&self) {
        let pipe = self.0.pipe();
        raw::wait_readable(pipe.reader());
        pipe.drain();
        // Resets the notifier, fences and dispatches the signals that came: if no runtime is left,
        // nothing else dispatches them.
        signals::registry().dispatch_for(self.0);
    }

    fn wake(&self) {
        self.0.notify();
    }
}

/// Returns the nursery of this process. A forked process makes its own, because the thread of its
/// parent does not exist in it.
#[cfg(not(blitz_loom))]
fn nursery() -> &'static Nursery<StdChild, Asleep> {
    static NURSERY: PerProcess<Nursery<StdChild, Asleep>> = PerProcess::new();
    NURSERY.get(Nursery::new)
}

/// Panics: models use children of their own.
#[cfg(blitz_loom)]
fn nursery() -> &'static Nursery<StdChild, Asleep> {
    unreachable!("no model drops a child of the system")
}

/// Hands a dropped child to the reaper thread, and starts the thread if none runs.
pub(super) fn adopt(child: StdChild) {
    // The handler must be installed before the child is checked. If a sandbox refuses the handler,
    // the child is checked whenever something else wakes the thread.
    let _ = signals::install(libc::SIGCHLD);
    if nursery().bring(child) && start().is_err() {
        nursery().give_up();
    }
}

/// Starts the reaper thread.
///
/// # Errors
/// If there are no threads or no descriptors left.
fn start() -> std::io::Result<()> {
    let notifier = signals::registry().acquire(WakePipe::new)?;
    let started = service::start("blitz-reaper", move || {
        nursery().run(Asleep(notifier));
        signals::registry().release(notifier);
    });
    if started.is_err() {
        signals::registry().release(notifier);
    }
    started
}

#[cfg(test)]
mod models {
    //! Children that exit and children that are dropped, against the reaper thread.

    use super::{Bed, Nursery, Ward};
    use crate::engine::prim::{
        Arc, AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence, model,
        parker::Parker,
        thread, weakened,
    };

    /// A model's child: whether it has exited, and how often it was reaped.
    #[derive(Clone)]
    struct Doll(Arc<(AtomicBool, AtomicUsize)>);

    impl Doll {
        fn new() -> Self {
            Self(Arc::new((AtomicBool::new(false), AtomicUsize::new(0))))
        }

        fn reaped(&self) -> usize {
            // Relaxed: read after the thread's end, which orders it.
            self.0.1.load(Relaxed)
        }
    }

    impl Ward for Doll {
        fn reap(&mut self) -> bool {
            // Relaxed: the fences of the model stand for the kernel's own ordering.
            let ended = self.0.0.load(Relaxed);
            if ended {
                self.0.1.fetch_add(1, Relaxed);
            }
            ended
        }
    }

    /// A model of a notifier of `engine/signals`: notified or idle, with a parker in place of a
    /// pipe.
    #[derive(Clone)]
    struct Cot(Arc<(AtomicBool, Parker)>);

    impl Cot {
        fn new() -> Self {
            Self(Arc::new((AtomicBool::new(false), Parker::new())))
        }

        /// Delivers the signal (E2).
        fn signal(&self) {
            // SeqCst: S2 of `engine/signals`. Pairs with the fence in `sleep`.
            fence(SeqCst);
            // Relaxed: the fences order it.
            if self.0.0.compare_exchange(false, true, Relaxed, Relaxed).is_ok() {
                self.0.1.unpark();
            }
        }
    }

    impl Bed for Cot {
        fn sleep(&self) {
            self.0.1.park();
            if !weakened!("reaper_looks_again") {
                // Relaxed: the fences order it.
                self.0.0.store(false, Relaxed);
                // SeqCst: R4, which is H2 of `engine/signals`. Pairs with the fence in `signal`.
                fence(SeqCst);
            }
        }

        fn wake(&self) {
            self.0.1.unpark();
        }
    }

    type Shared = Arc<Nursery<Doll, Cot>>;

    /// Lets a child exit on a thread of its own.
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

    /// Brings a child that has exited already, and runs the reaper here if no thread does. Returns
    /// true if it ran here.
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
            // The thread sleeps with the first child, which exits only after the second was reaped.
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
