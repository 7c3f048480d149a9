//! Requests for a stack trace to a thread that is stuck in user code.
//!
//! Only the thread itself can produce one, because its registers are its own. So it is sent a
//! signal, and writes the trace in the handler, which interrupts it wherever it is. A handler
//! may neither allocate nor wait for a lock, so everything that it needs is here before it runs.
//! The signal itself carries no information: a handler that runs too late, twice, or for
//! another sender finds that nothing is requested, and does nothing.
//!
//! # Protocol
//! ```text
//! the requester (one at a time, by a lock)  a handler, on the thread in question
//! A1 `state`, if it is not WRITING:         H1 `state` ASKED -> WRITING; else it does nothing
//!    becomes ASKED                          H2 writes the trace
//! A2 sends the signal                       H3 `state` = ANSWERED; wakes the requester
//! A3 waits until ANSWERED, with a limit
//! A4 ANSWERED: reads the trace
//! A5 else `state` ASKED -> IDLE; if it is
//!    WRITING by now it is left so
//! ```
//! Handlers may be nested, if a user's installation of them allows that: then each counts as a
//! handler here.
//!
//! # Invariants
//! 1. The trace is written between H1 and H3, by the one handler that set `state` to WRITING.
//!    Only that handler ends WRITING.
//! 2. The trace is read while `state` is ANSWERED, by the requester that has the lock; and only
//!    that requester ends ANSWERED.
//! 3. No thread waits for ever: a requester has a limit, and a handler waits for nothing. A
//!    trace that is never finished (the thread was stopped in the middle) makes later requests
//!    fail.
//!
//! # Rejected
//! - The address of the words in the signal: the signal may arrive when they are gone.
//! - An unwinder in the handler: the existing ones call the dynamic linker, which takes a lock.
//!
//! # Checked by
//! `an_answer_is_read_whole`, `an_answer_that_is_late_is_left_alone`,
//! `the_second_answer_follows_the_first`; weakened as `inquiry_publishes`, `inquiry_reads`,
//! `inquiry_claims`, `inquiry_withdraws`, `inquiry_leaves_writers`, `inquiry_asks_after_reading`,
//! `inquiry_after_a_late_one`.

use std::{ops::Range, time::Duration};

use crate::engine::prim::{
    Mutex, MutexGuard,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    UnsafeCell,
    futex::Futex,
    lock, weakened,
};

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const WRITING: u32 = 2;
const ANSWERED: u32 = 3;

/// The most frames that are reported. Picked: the frames of interest are near the top.
pub(crate) const DEEPEST: usize = 64;

/// A thread's side channel for stack traces: the request, the trace and their state.
pub(crate) struct Inquiry {
    state: Futex,
    answer: UnsafeCell<Answer>,
    asker: Mutex<()>,
    /// The bounds of the thread's stack.
    stack: Range<usize>,
}

// SAFETY: the trace is written by one handler and read by one requester, and never at the same
// time, by invariants 1 and 2.
unsafe impl Sync for Inquiry {}
// SAFETY: the trace and the lock may move between threads; the other fields are `Send`.
unsafe impl Send for Inquiry {}

/// The position of a thread: its poll and the return addresses on its stack.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The number of the poll that the thread is in, from its `Sign`.
    pub(crate) poll: usize,
    count: usize,
    addresses: [usize; DEEPEST],
}

impl Answer {
    const fn new() -> Self {
        Self { poll: 0, count: 0, addresses: [0; DEEPEST] }
    }

    /// Adds a frame, from the innermost outwards; returns false if there is no room.
    pub(crate) fn push(&mut self, address: usize) -> bool {
        let Some(place) = self.addresses.get_mut(self.count) else { return false };
        *place = address;
        self.count += 1;
        true
    }

    pub(crate) fn addresses(&self) -> &[usize] {
        self.addresses.get(..self.count).unwrap_or_default()
    }
}

impl Inquiry {
    /// Creates the channel of a thread with that stack.
    pub(crate) fn new(stack: Range<usize>) -> Self {
        Self {
            state: Futex::new(IDLE),
            answer: UnsafeCell::new(Answer::new()),
            asker: Mutex::new(()),
            stack,
        }
    }

    pub(crate) fn stack(&self) -> Range<usize> {
        self.stack.clone()
    }

    /// Requests a stack trace: A1. Returns `None` if an earlier trace, for which the requester did
    /// not wait, is still being written.
    pub(crate) fn ask(&self) -> Option<Asked<'_>> {
        let asker = lock(&self.asker);
        let order = if weakened!("inquiry_after_a_late_one") { Relaxed } else { Acquire };
        // Acquire: an earlier trace, for which the requester did not wait, is written before the
        // next one is. Pairs with the Release in `answer`. The state cannot change in between,
        // because only a handler that finds ASKED changes it.
        let is_writing = self.state.word().load(order) == WRITING;
        if is_writing && !weakened!("inquiry_leaves_writers") {
            return None;
        }
        let order = if weakened!("inquiry_asks_after_reading") { Relaxed } else { Release };
        // Release: the last trace has been read before the next is written. Pairs with the AcqRel
        // in `answer`.
        self.state.word().store(ASKED, order);
        Some(Asked { inquiry: self, _asker: asker })
    }

    /// Writes the trace: H1 to H3. May run in a signal handler, and does nothing unless a stack
    /// trace is requested.
    pub(crate) fn answer(&self, write: impl FnOnce(&mut Answer)) {
        if weakened!("inquiry_claims") {
            // Acquire, Relaxed: the exchange below, in two steps.
            if self.state.word().load(Acquire) != ASKED {
                return;
            }
            self.state.word().store(WRITING, Relaxed);
        } else {
            // AcqRel: the requester has read the last trace. Pairs with the Release in `ask`.
            // Relaxed on failure: there is nothing to do.
            let claim = self.state.word().compare_exchange(ASKED, WRITING, AcqRel, Relaxed);
            if claim.is_err() {
                return;
            }
        }
        // SAFETY: by invariant 1 no other handler writes, and by invariant 2 no requester reads.
        self.answer.with_mut(|answer| unsafe {
            *answer = Answer::new();
            write(&mut *answer);
        });
        let order = if weakened!("inquiry_publishes") { Relaxed } else { Release };
        // Release: publishes the trace. Pairs with the Acquire in `read`.
        self.state.word().store(ANSWERED, order);
        // On Linux, the one system that has such handlers, this is only a system call.
        self.state.wake_all();
    }
}

/// A request that is under way. Dropping it withdraws the request.
pub(crate) struct Asked<'a> {
    inquiry: &'a Inquiry,
    _asker: MutexGuard<'a, ()>,
}

impl Asked<'_> {
    /// Sleeps until there is a trace, or for about `limit`: A3.
    pub(crate) fn wait(&self, limit: Duration) {
        let began = std::time::Instant::now();
        let state = &self.inquiry.state;
        loop {
            // Relaxed: `read` loads it again.
            let now = state.word().load(Relaxed);
            let left = limit.saturating_sub(began.elapsed());
            if now == ANSWERED || left.is_zero() {
                return;
            }
            state.wait(now, Some(left));
        }
    }

    /// Returns the trace, if there is one: A4.
    pub(crate) fn read(&self) -> Option<Answer> {
        let order = if weakened!("inquiry_reads") { Relaxed } else { Acquire };
        // Acquire: sees the trace. Pairs with the Release in `answer`.
        let is_answered = self.inquiry.state.word().load(order) == ANSWERED;
        // SAFETY: by invariant 2 the trace is ours to read while we have the lock.
        is_answered.then(|| self.inquiry.answer.with(|answer| unsafe { (*answer).clone() }))
    }
}

impl Drop for Asked<'_> {
    /// Withdraws the request, unless a handler is writing: A5.
    fn drop(&mut self) {
        let word = self.inquiry.state.word();
        if weakened!("inquiry_withdraws") {
            // Relaxed: the next requester has the lock, and publishes then.
            word.store(IDLE, Relaxed);
            return;
        }
        // Relaxed: the next requester has the lock, and publishes then.
        let _ = word.compare_exchange(ASKED, IDLE, Relaxed, Relaxed);
    }
}

impl std::fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquiry").field("stack", &self.stack).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, DEEPEST, Inquiry};
    use crate::engine::prim::{Arc, model, model_deeper, thread};

    /// Starts a thread as a handler, which reports its poll and the same number as its one frame.
    fn handler(inquiry: &Arc<Inquiry>, of: usize) -> thread::JoinHandle<()> {
        let inquiry = inquiry.clone();
        thread::spawn(move || {
            inquiry.answer(|answer| {
                answer.poll = of;
                answer.push(of);
            });
        })
    }

    fn is_whole(answer: &Answer) -> bool {
        answer.addresses() == [answer.poll]
    }

    #[test]
    fn an_answer_is_read_whole() {
        model(|| {
            let inquiry = Arc::new(Inquiry::new(0..0));
            let asked = inquiry.ask().expect("nobody writes");
            // Two signals at once: one is from another sender, or its handler interrupts the other.
            let handlers = [handler(&inquiry, 7), handler(&inquiry, 8)];
            if let Some(answer) = asked.read() {
                assert!(is_whole(&answer), "{answer:?}");
            }
            drop(asked);
            handlers.into_iter().for_each(|handler| handler.join().unwrap());
        });
    }

    /// The limit is over while the trace is being written; the next request is made meanwhile.
    #[test]
    fn an_answer_that_is_late_is_left_alone() {
        model_deeper(|| {
            let inquiry = Arc::new(Inquiry::new(0..0));
            let asked = inquiry.ask().expect("nobody writes");
            let first = handler(&inquiry, 7);
            drop(asked);
            let Some(asked) = inquiry.ask() else { return first.join().unwrap() };
            let second = handler(&inquiry, 8);
            if let Some(answer) = asked.read() {
                assert!(is_whole(&answer), "{answer:?}");
            }
            drop(asked);
            first.join().unwrap();
            second.join().unwrap();
        });
    }

    #[test]
    fn the_second_answer_follows_the_first() {
        model_deeper(|| {
            let inquiry = Arc::new(Inquiry::new(0..0));
            let second = {
                let asked = inquiry.ask().expect("nobody writes");
                handler(&inquiry, 7).join().unwrap();
                let second = handler(&inquiry, 8);
                assert_eq!(asked.read().expect("it was answered").poll, 7);
                second
            };
            if let Some(asked) = inquiry.ask()
                && let Some(answer) = asked.read()
            {
                assert_eq!((answer.poll, is_whole(&answer)), (8, true));
            }
            second.join().unwrap();
        });
    }

    #[test]
    fn frames_beyond_the_last_place_are_left_out() {
        let mut answer = Answer::new();
        assert!((0..DEEPEST).all(|address| answer.push(address)));
        assert!(!answer.push(DEEPEST));
        assert_eq!(answer.addresses().len(), DEEPEST);
    }
}
