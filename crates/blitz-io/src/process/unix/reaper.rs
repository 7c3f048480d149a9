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
//! thread that drops a child            reaper thread
//! B1 queues it, under the lock         R1 takes what is queued, under the lock; if it has
//! B2 none is running: starts one          no child then: marks that none runs, and ends
//!    else: notifies                    R2 reaps its children that have ended
//!                                      R3 sleeps until it is notified
//! a child that ends                    R4 resets the notifier; fence; goes to R1
//! E1 has exited
//! E2 SIGCHLD: counts; fence; notifies
//!    a notifier that is idle
//! ```
//! A child is queued by the thread that drops it. B1 and R1 are under one lock: either the reaper
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
//! `two_drops_start_one_thread`; weakened as `reaper_checks_again`, `reaper_ends_locked`,
//! `reaper_push_unparks`.

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
pub(super) trait Reap {
    /// Reaps the child if it has exited, and returns true if so.
    fn reap(&mut self) -> bool;

    /// Reaps the children that have exited, and removes them from `children`.
    fn reap_exited(children: &mut Vec<Self>)
    where
        Self: Sized,
    {
        children.retain_mut(|child| !child.reap());
    }
}

/// The means by which the reaper thread sleeps and is woken.
pub(super) trait Park {
    /// Sleeps until woken, or until a child may have exited. An event before the return is visible
    /// to a check after it; a later event ends the next sleep.
    fn park(&self);

    fn unpark(&self);
}

/// Queue of dropped children, and the state of the thread that takes them.
pub(super) struct ReaperQueue<W, B> {
    state: Mutex<State<W, B>>,
}

struct State<W, B> {
    queue: Vec<W>,
    /// How to wake the running thread; `None` until it has taken its first child.
    parker: Option<B>,
    is_running: bool,
}

impl<W: Reap, B: Park + Clone> ReaperQueue<W, B> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { queue: Vec::new(), parker: None, is_running: false }) }
    }

    /// Queues a child (B1 and B2). Returns true if the caller must start a thread that calls `run`.
    #[must_use]
    pub(super) fn push(&self, child: W) -> bool {
        let mut state = lock(&self.state);
        state.queue.push(child);
        if !state.is_running {
            state.is_running = true;
            return true;
        }
        // A thread that has not stored its parker yet takes what is queued before it sleeps.
        let parker = state.parker.clone();
        drop(state);
        if let Some(parker) = parker
            && !weakened!("reaper_push_unparks")
        {
            parker.unpark();
        }
        false
    }

    /// Records that no thread could be started, and reaps queued children that have exited. The
    /// others stay queued until the next child is pushed.
    pub(super) fn start_failed(&self) {
        let mut state = lock(&self.state);
        state.is_running = false;
        state.queue.retain_mut(|child| !child.reap());
    }

    /// Runs the reaper thread: R1 to R4.
    pub(super) fn run(&self, parker: B) {
        let mut children = Vec::new();
        while self.take(&mut children, &parker) {
            // R2: reaps the children that have exited.
            W::reap_exited(&mut children);
            if !children.is_empty() {
                parker.park();
            }
        }
    }

    /// Takes the queued children (R1). Returns false if the thread must end.
    fn take(&self, children: &mut Vec<W>, parker: &B) -> bool {
        let mut state = lock(&self.state);
        children.append(&mut state.queue);
        if !children.is_empty() {
            if state.parker.is_none() {
                state.parker = Some(parker.clone());
            }
            return true;
        }
        if weakened!("reaper_ends_locked") {
            drop(state);
            state = lock(&self.state);
        }
        (state.is_running, state.parker) = (false, None);
        false
    }
}

impl Reap for StdChild {
    fn reap(&mut self) -> bool {
        // An error means that other code has already waited for it.
        !matches!(self.try_wait(), Ok(None))
    }

    fn reap_exited(children: &mut Vec<Self>) {
        loop {
            match raw::any_exited() {
                Ok(None) => return,
                Ok(Some(number)) => {
                    let ours = children.iter().position(|child| child.id() == number);
                    if let Some(at) = ours
                        && children[at].reap()
                    {
                        // `reap` above has waited for it.
                        drop(children.swap_remove(at));
                        continue;
                    }
                }
                // There are no children at all: other code has waited for each of ours.
                Err(_) => {}
            }
            return children.retain_mut(|child| !child.reap());
        }
    }
}

/// The notifier that the reaper thread sleeps on.
#[derive(Clone, Copy)]
struct NotifierPark(&'static SignalNotifier<WakePipe>);

impl Park for NotifierPark {
    fn park(&self) {
        let pipe = self.0.pipe();
        raw::wait_readable(pipe.reader());
        pipe.drain();
        // Resets the notifier, fences and dispatches the signals that came: if no runtime is left,
        // nothing else dispatches them.
        signals::registry().dispatch_for(self.0);
    }

    fn unpark(&self) {
        self.0.notify();
    }
}

/// Returns the queue of this process. A forked process makes its own, because the thread of its
/// parent does not exist in it.
#[cfg(not(blitz_loom))]
fn reaper_queue() -> &'static ReaperQueue<StdChild, NotifierPark> {
    static REAPER_QUEUE: PerProcess<ReaperQueue<StdChild, NotifierPark>> = PerProcess::new();
    REAPER_QUEUE.get(ReaperQueue::new)
}

/// Panics: models use children of their own.
#[cfg(blitz_loom)]
fn reaper_queue() -> &'static ReaperQueue<StdChild, NotifierPark> {
    unreachable!("no model drops a child of the system")
}

/// Hands a dropped child to the reaper thread, and starts the thread if none runs.
pub(super) fn reap_in_background(child: StdChild) {
    // The handler must be installed before the child is checked. If a sandbox refuses the handler,
    // the child is checked whenever something else wakes the thread.
    let _ = signals::install(libc::SIGCHLD);
    if reaper_queue().push(child) && start().is_err() {
        reaper_queue().start_failed();
    }
}

/// Starts the reaper thread.
///
/// # Errors
/// If there are no threads or no descriptors left.
fn start() -> std::io::Result<()> {
    let notifier = signals::registry().acquire(WakePipe::new)?;
    let started = service::start("blitz-reaper", move || {
        reaper_queue().run(NotifierPark(notifier));
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

    use super::{Park, Reap, ReaperQueue};
    use crate::engine::prim::{
        Arc, AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence, model,
        parker::Parker,
        thread, weakened,
    };

    /// A model's child: whether it has exited, and how often it was reaped.
    #[derive(Clone)]
    struct TestChild(Arc<(AtomicBool, AtomicUsize)>);

    impl TestChild {
        fn new() -> Self {
            Self(Arc::new((AtomicBool::new(false), AtomicUsize::new(0))))
        }

        fn reaped(&self) -> usize {
            // Relaxed: read after the thread's end, which orders it.
            self.0.1.load(Relaxed)
        }
    }

    impl Reap for TestChild {
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
    struct TestPark(Arc<(AtomicBool, Parker)>);

    impl TestPark {
        fn new() -> Self {
            Self(Arc::new((AtomicBool::new(false), Parker::new())))
        }

        /// Delivers the signal (E2).
        fn signal(&self) {
            // SeqCst: S2 of `engine/signals`. Pairs with the fence in `park`.
            fence(SeqCst);
            // Relaxed: the fences order it.
            if self.0.0.compare_exchange(false, true, Relaxed, Relaxed).is_ok() {
                self.0.1.unpark();
            }
        }
    }

    impl Park for TestPark {
        fn park(&self) {
            self.0.1.park();
            if !weakened!("reaper_checks_again") {
                // Relaxed: the fences order it.
                self.0.0.store(false, Relaxed);
                // SeqCst: R4, which is H2 of `engine/signals`. Pairs with the fence in `signal`.
                fence(SeqCst);
            }
        }

        fn unpark(&self) {
            self.0.1.unpark();
        }
    }

    type Shared = Arc<ReaperQueue<TestChild, TestPark>>;

    /// Lets a child exit on a thread of its own.
    fn end(child: &TestChild, parker: &TestPark) -> thread::JoinHandle<()> {
        let (child, parker) = (child.clone(), parker.clone());
        thread::spawn(move || {
            // Relaxed: the fence in `signal` orders it.
            child.0.0.store(true, Relaxed);
            parker.signal();
        })
    }

    #[test]
    fn an_end_against_the_sleep_is_seen() {
        model(|| {
            let reaper_queue: Shared = Arc::new(ReaperQueue::new());
            let (parker, children) = (TestPark::new(), [TestChild::new(), TestChild::new()]);
            assert!(reaper_queue.push(children[0].clone()));
            assert!(!reaper_queue.push(children[1].clone()));
            let ends = children.each_ref().map(|child| end(child, &parker));
            reaper_queue.run(parker);
            ends.into_iter().for_each(|end| end.join().unwrap());
            assert_eq!(children.map(|child| child.reaped()), [1, 1]);
        });
    }

    /// Queues a child that has exited already, and runs the reaper here if no thread does. Returns
    /// true if it ran here.
    fn push(reaper_queue: &Shared, parker: &TestPark, child: &TestChild) -> bool {
        child.0.0.store(true, Relaxed); // Relaxed: the lock of the queue orders it.
        let starts = reaper_queue.push(child.clone());
        if starts {
            reaper_queue.run(parker.clone());
        }
        starts
    }

    #[test]
    fn a_child_against_the_end_of_the_thread_is_taken() {
        model(|| {
            let reaper_queue: Shared = Arc::new(ReaperQueue::new());
            let (parker, children) = (TestPark::new(), [TestChild::new(), TestChild::new()]);
            let other = thread::spawn({
                let (reaper_queue, parker, child) =
                    (reaper_queue.clone(), parker.clone(), children[1].clone());
                move || push(&reaper_queue, &parker, &child)
            });
            let mine = push(&reaper_queue, &parker, &children[0]);
            assert!(mine | other.join().unwrap());
            assert_eq!(children.map(|child| child.reaped()), [1, 1]);
        });
    }

    #[test]
    fn two_drops_start_one_thread() {
        model(|| {
            let reaper_queue: Shared = Arc::new(ReaperQueue::new());
            let (parker, first, second) = (TestPark::new(), TestChild::new(), TestChild::new());
            assert!(reaper_queue.push(first.clone()));
            let reaper = thread::spawn({
                let (reaper_queue, parker) = (reaper_queue.clone(), parker.clone());
                move || reaper_queue.run(parker)
            });
            // The thread sleeps with the first child, which exits only after the second was reaped.
            second.0.0.store(true, Relaxed); // Relaxed: the lock of the queue orders it.
            assert!(!reaper_queue.push(second.clone()), "one is running");
            let watch = thread::spawn({
                let (first, second, parker) = (first.clone(), second.clone(), parker.clone());
                move || {
                    while second.reaped() == 0 {
                        thread::yield_now();
                    }
                    // Relaxed: the fence in `signal` orders it.
                    first.0.0.store(true, Relaxed);
                    parker.signal();
                }
            });
            reaper.join().unwrap();
            watch.join().unwrap();
            assert_eq!((first.reaped(), second.reaped()), (1, 1));
        });
    }
}
