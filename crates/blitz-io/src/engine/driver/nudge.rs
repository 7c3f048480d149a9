//! Ends a wait in the kernel, or the next wait that begins.
//!
//! # Protocol
//! ```text
//! a thread that waits for events            a thread that nudges
//! W1 exchanges the word for WAITING:        N1 exchanges the word for NUDGED:
//!    if it was NUDGED: does not wait           if it was WAITING: signals the kernel
//! W2 waits in the kernel                       else: done
//! W3 exchanges the word for IDLE
//! ```
//! W1 and N1 exchange the word, so one comes first. If N1, W1 finds NUDGED; if W1, N1 finds
//! WAITING, unless the wait is over (W3), and signals: the kernel ends this wait, or, if this wait
//! ended for another reason, the next one, which then is a turn for nothing.
//!
//! Only a wait consumes the nudge. A turn that polls for events without waiting leaves it, because
//! the nudge may be meant for a thread that is about to wait.
//!
//! Many nudges count as one, and a nudge that finds no thread waiting makes no system call.
//!
//! # Checked by
//! `a_nudge_against_a_wait_ends_it`, `writes_before_a_nudge_are_seen_after_the_wait`,
//! `two_nudges_are_at_most_one_signal_for_a_wait`,
//! `a_nudge_that_comes_late_ends_the_next_wait_at_worst`; weakened as `nudge_is_left`,
//! `nudge_signals`, `nudge_orders`, `nudge_coalesces`.

use crate::engine::prim::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed},
    weakened,
};

const IDLE: u32 = 0;
const WAITING: u32 = 1;
const NUDGED: u32 = 2;

/// The state that decides whether a nudge must signal the kernel.
#[derive(Debug)]
pub(crate) struct Nudge(AtomicU32);

impl Nudge {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }

    /// Calls `wait`, passing false if a nudge has come and it must not block (W1 to W3).
    pub(crate) fn wait<R>(&self, wait: impl FnOnce(bool) -> R) -> R {
        let found = self.exchange(WAITING);
        let result = wait(found != NUDGED || weakened!("nudge_is_left"));
        self.exchange(IDLE);
        result
    }

    /// Calls `signal` if a thread waits that has not been nudged yet (N1).
    #[inline]
    pub(crate) fn nudge(&self, signal: impl FnOnce()) {
        let found = self.exchange(NUDGED);
        let is_silent = found != WAITING && !weakened!("nudge_coalesces");
        if !is_silent && !weakened!("nudge_signals") {
            signal();
        }
    }

    #[inline]
    fn exchange(&self, to: u32) -> u32 {
        let order = if weakened!("nudge_orders") { Relaxed } else { AcqRel };
        // AcqRel: the end of a wait sees what was done before the nudges that it consumes. Each
        // exchange pairs with the one before it.
        self.0.swap(to, order)
    }
}

#[cfg(test)]
mod models {
    use super::Nudge;
    use crate::engine::prim::{
        Arc, AtomicUsize, Ordering::Relaxed, ids::Tally, model, parker::Parker, thread,
    };

    /// A model of the kernel: a parker, which keeps a signal that comes before the wait.
    struct NudgeKernel {
        nudge: Nudge,
        parker: Parker,
        work: AtomicUsize,
        signals: Tally,
    }

    fn kernel() -> Arc<NudgeKernel> {
        let (nudge, parker) = (Nudge::new(), Parker::new());
        Arc::new(NudgeKernel {
            nudge,
            parker,
            work: AtomicUsize::new(0),
            signals: Tally::default(),
        })
    }

    impl NudgeKernel {
        fn work_and_nudge(&self) {
            // Relaxed: the nudge must provide the ordering.
            self.work.fetch_add(1, Relaxed);
            self.nudge.nudge(|| {
                self.signals.add();
                self.parker.unpark();
            });
        }

        fn turn(&self) {
            self.nudge.wait(|may_wait| {
                if may_wait {
                    self.parker.park();
                }
            });
        }
    }

    fn worker(kernel: &Arc<NudgeKernel>) -> thread::JoinHandle<()> {
        let kernel = kernel.clone();
        thread::spawn(move || kernel.work_and_nudge())
    }

    #[test]
    fn a_nudge_against_a_wait_ends_it() {
        model(|| {
            let kernel = kernel();
            let worker = worker(&kernel);
            kernel.turn();
            worker.join().unwrap();
        });
    }

    #[test]
    fn writes_before_a_nudge_are_seen_after_the_wait() {
        model(|| {
            let kernel = kernel();
            let workers = [worker(&kernel), worker(&kernel)];
            // Like a worker that sleeps only in turns.
            while kernel.work.load(Relaxed) < 2 {
                kernel.turn();
            }
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }

    #[test]
    fn two_nudges_are_at_most_one_signal_for_a_wait() {
        model(|| {
            let kernel = kernel();
            let workers = [worker(&kernel), worker(&kernel)];
            kernel.turn();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert!(kernel.signals.get() <= 1, "a second nudge does not signal again");
        });
    }

    /// An event ends the wait too, and the signal of the nudge comes late.
    #[test]
    fn a_nudge_that_comes_late_ends_the_next_wait_at_worst() {
        model(|| {
            let kernel = kernel();
            let event = thread::spawn({
                let kernel = kernel.clone();
                move || kernel.parker.unpark()
            });
            let worker = worker(&kernel);
            kernel.turn();
            if kernel.work.load(Relaxed) == 0 {
                // The work was not seen, so the nudge, or even its work, is still to come.
                kernel.turn();
            }
            worker.join().unwrap();
            event.join().unwrap();
        });
    }
}
