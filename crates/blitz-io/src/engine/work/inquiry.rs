//! What a thread is asked that is stuck in a user's code: where it is.
//!
//! Nobody else can know: its registers are its own. So it is sent a signal, and answers in the
//! handler, which interrupts it wherever it is. A handler may neither allocate nor wait for a
//! lock, so all that it needs is here before it runs. Nothing else is told by the signal: one
//! that comes too late, twice, or from somebody else finds that nothing is asked, and does
//! nothing.
//!
//! # Protocol
//! ```text
//! who asks (one at a time, by a lock)       a handler, on the thread that is asked
//! A1 `state`, if it is not WRITING:         H1 `state` ASKED -> WRITING; else it does nothing
//!    becomes ASKED                          H2 writes the answer
//! A2 sends the signal                       H3 `state` = ANSWERED; wakes who asks
//! A3 waits until ANSWERED, with a limit
//! A4 ANSWERED: reads the answer
//! A5 else `state` ASKED -> IDLE; if it is
//!    WRITING by now it is left so
//! ```
//! Handlers may be nested, if a user's installation of them allows that: they are counted as
//! several here.
//!
//! # Invariants
//! 1. The answer is written between H1 and H3, by the one handler that made `state` WRITING.
//!    Only that one ends WRITING.
//! 2. It is read while `state` is ANSWERED, by who has the lock; and only that one ends
//!    ANSWERED.
//! 3. Nobody waits for ever: an asker has a limit, a handler waits for nothing. An answer that
//!    is never finished (the thread was stopped in the middle) costs later askers theirs.
//!
//! # Rejected
//! - The address of the words in the signal: it may arrive when they are gone.
//! - An unwinder in the handler: those that there are ask the dynamic linker, which has a lock.
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

/// Frames that are told, at the most. Picked: what is of interest is near the top.
pub(crate) const DEEPEST: usize = 64;

/// See the module.
pub(crate) struct Inquiry {
    state: Futex,
    answer: UnsafeCell<Answer>,
    asker: Mutex<()>,
    /// The thread's stack.
    stack: Range<usize>,
}

// SAFETY: the answer is written by one handler and read by one asker, and not at once:
// invariants 1 and 2.
unsafe impl Sync for Inquiry {}
// SAFETY: as above; the rest is `Send`.
unsafe impl Send for Inquiry {}

/// Where a thread is.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The number of the poll that it is in, as its tenure says.
    pub(crate) poll: usize,
    count: usize,
    addresses: [usize; DEEPEST],
}

impl Answer {
    const fn new() -> Self {
        Self { poll: 0, count: 0, addresses: [0; DEEPEST] }
    }

    /// One frame more, from the innermost one outwards; `false` if there is no room.
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
    /// Of a thread whose stack that is.
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

    /// A1: `None` if an answer is being written that nobody waited for.
    pub(crate) fn ask(&self) -> Option<Asked<'_>> {
        let asker = lock(&self.asker);
        let order = if weakened!("inquiry_after_a_late_one") { Relaxed } else { Acquire };
        // Acquire: an answer that nobody waited for is written, before the next one is. Pairs
        // with the Release in `answer`. Only a handler that finds ASKED changes it, and it is
        // not that.
        let is_writing = self.state.word().load(order) == WRITING;
        if is_writing && !weakened!("inquiry_leaves_writers") {
            return None;
        }
        let order = if weakened!("inquiry_asks_after_reading") { Relaxed } else { Release };
        // Release: what was read of the last answer has been read. Pairs with the AcqRel in
        // `answer`.
        self.state.word().store(ASKED, order);
        Some(Asked { inquiry: self, _asker: asker })
    }

    /// H1 to H3. May run in a handler of signals, and does nothing unless something is asked.
    pub(crate) fn answer(&self, write: impl FnOnce(&mut Answer)) {
        if weakened!("inquiry_claims") {
            // Acquire, Relaxed: as below, in two steps.
            if self.state.word().load(Acquire) != ASKED {
                return;
            }
            self.state.word().store(WRITING, Relaxed);
        } else {
            // AcqRel: the asker has read what it wanted to; pairs with the Release in `ask`.
            // Relaxed on failure: there is nothing to do.
            let claim = self.state.word().compare_exchange(ASKED, WRITING, AcqRel, Relaxed);
            if claim.is_err() {
                return;
            }
        }
        // SAFETY: by invariant 1 nobody else writes, and by 2 nobody reads.
        self.answer.with_mut(|answer| unsafe {
            *answer = Answer::new();
            write(&mut *answer);
        });
        let order = if weakened!("inquiry_publishes") { Relaxed } else { Release };
        // Release: publishes the answer. Pairs with the Acquire in `read`.
        self.state.word().store(ANSWERED, order);
        // On Linux, the one system that has such handlers, this is a system call and no more.
        self.state.wake_all();
    }
}

/// A question that was asked. When it is dropped it is withdrawn.
pub(crate) struct Asked<'a> {
    inquiry: &'a Inquiry,
    _asker: MutexGuard<'a, ()>,
}

impl Asked<'_> {
    /// A3: sleeps until there is an answer, or for about `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        let began = std::time::Instant::now();
        let state = &self.inquiry.state;
        loop {
            // Relaxed: `read` looks again.
            let now = state.word().load(Relaxed);
            let left = limit.saturating_sub(began.elapsed());
            if now == ANSWERED || left.is_zero() {
                return;
            }
            state.wait(now, Some(left));
        }
    }

    /// A4.
    pub(crate) fn read(&self) -> Option<Answer> {
        let order = if weakened!("inquiry_reads") { Relaxed } else { Acquire };
        // Acquire: what was written. Pairs with the Release in `answer`.
        let is_answered = self.inquiry.state.word().load(order) == ANSWERED;
        // SAFETY: by invariant 2 it is ours to read while we have the lock.
        is_answered.then(|| self.inquiry.answer.with(|answer| unsafe { (*answer).clone() }))
    }
}

impl Drop for Asked<'_> {
    /// A5.
    fn drop(&mut self) {
        let word = self.inquiry.state.word();
        if weakened!("inquiry_withdraws") {
            // Relaxed: as below.
            word.store(IDLE, Relaxed);
            return;
        }
        // Relaxed: who asks next has the lock, and publishes then.
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

    /// A handler that tells one frame, of its own.
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
            // Two signals at once: one of them is not ours, or its handler interrupts the other.
            let handlers = [handler(&inquiry, 7), handler(&inquiry, 8)];
            if let Some(answer) = asked.read() {
                assert!(is_whole(&answer), "{answer:?}");
            }
            drop(asked);
            handlers.into_iter().for_each(|handler| handler.join().unwrap());
        });
    }

    /// The limit is over while the answer is being written; the next one is asked meanwhile.
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
