//! Requests for a stack trace to a thread that is stuck in user code.
//!
//! Only the thread itself can produce a trace, because its registers are its own. So it is sent a
//! signal, and writes the trace in the handler, which interrupts it wherever it is. A handler may
//! neither allocate nor wait for a lock, so everything that it needs is here before it runs. The
//! signal itself carries no information: a handler that runs too late, twice, or for another sender
//! finds that nothing is requested, and does nothing.
//!
//! # Protocol
//! ```text
//! the requester (one at a time, by a lock)  a handler, on the thread in question
//! A1 `state`, if it is not WRITING:         H1 `state` REQUESTED -> WRITING; else it does nothing
//!    becomes REQUESTED                      H2 writes the trace
//! A2 sends the signal                       H3 `state` = WRITTEN; wakes the requester
//! A3 waits until WRITTEN, with a limit
//! A4 WRITTEN: reads the trace
//! A5 else `state` REQUESTED -> IDLE; if it is
//!    WRITING by now it is left so
//! ```
//! Handlers may be nested, if a user's installation of them allows that: then each counts as a
//! handler here.
//!
//! # Invariants
//! 1. The trace is written between H1 and H3, by the one handler that set `state` to WRITING. Only
//!    that handler ends WRITING.
//! 2. The trace is read while `state` is WRITTEN, by the requester that has the lock; and only that
//!    requester ends WRITTEN.
//! 3. No thread waits for ever: a requester has a limit, and a handler waits for nothing. A trace
//!    that is never finished (the thread was stopped in the middle) makes later requests fail.
//!
//! # Rejected
//! - The address of the request in the signal: the signal may arrive when the request is gone.
//! - An unwinder in the handler: the existing ones call the dynamic linker, which takes a lock.
//!
//! # Checked by
//! `a_trace_is_read_whole`, `a_late_trace_is_left_alone`, `the_second_trace_follows_the_first`;
//! weakened as `stack_request_publishes`, `stack_request_reads`, `stack_request_claims`,
//! `stack_request_withdraws`, `stack_request_leaves_writers`, `stack_request_after_reading`,
//! `stack_request_after_a_late_one`.

use std::{ops::Range, time::Duration};

use crate::engine::prim::{
    Mutex, MutexGuard,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    UnsafeCell,
    futex::Futex,
    lock, weakened,
};

const IDLE: u32 = 0;
const REQUESTED: u32 = 1;
const WRITING: u32 = 2;
const WRITTEN: u32 = 3;

/// The most frames that are reported. Picked: the frames of interest are near the top.
pub(crate) const MAX_FRAMES: usize = 64;

/// A thread's side channel for stack traces: the request, the trace and their state.
pub(crate) struct StackRequest {
    state: Futex,
    trace: UnsafeCell<StackTrace>,
    requester: Mutex<()>,
    /// The bounds of the thread's stack.
    stack: Range<usize>,
}

// SAFETY: the trace is written by one handler and read by one requester, and never at the same
// time, by invariants 1 and 2.
unsafe impl Sync for StackRequest {}
// SAFETY: the trace and the lock may move between threads; the other fields are `Send`.
unsafe impl Send for StackRequest {}

/// The position of a thread: its poll and the return addresses on its stack.
#[derive(Debug, Clone)]
pub(crate) struct StackTrace {
    /// The number of the poll that the thread is in, from its `PollRecord`.
    pub(crate) poll: usize,
    count: usize,
    addresses: [usize; MAX_FRAMES],
}

impl StackTrace {
    const fn new() -> Self {
        Self { poll: 0, count: 0, addresses: [0; MAX_FRAMES] }
    }

    /// Adds a frame, from the innermost outwards; returns false if there is no room.
    pub(crate) fn push(&mut self, address: usize) -> bool {
        let Some(slot) = self.addresses.get_mut(self.count) else { return false };
        *slot = address;
        self.count += 1;
        true
    }

    pub(crate) fn addresses(&self) -> &[usize] {
        self.addresses.get(..self.count).unwrap_or_default()
    }
}

impl StackRequest {
    /// Creates the channel of a thread with that stack.
    pub(crate) fn new(stack: Range<usize>) -> Self {
        Self {
            state: Futex::new(IDLE),
            trace: UnsafeCell::new(StackTrace::new()),
            requester: Mutex::new(()),
            stack,
        }
    }

    pub(crate) fn stack(&self) -> Range<usize> {
        self.stack.clone()
    }

    /// Requests a stack trace: A1. Returns `None` if an earlier trace, for which the requester did
    /// not wait, is still being written.
    pub(crate) fn request(&self) -> Option<PendingRequest<'_>> {
        let requester = lock(&self.requester);
        let order = if weakened!("stack_request_after_a_late_one") { Relaxed } else { Acquire };
        // Acquire: an earlier trace, for which the requester did not wait, is written before the
        // next one is. Pairs with the Release in `respond`. The state cannot change in between,
        // because only a handler that finds REQUESTED changes it.
        let is_writing = self.state.word().load(order) == WRITING;
        if is_writing && !weakened!("stack_request_leaves_writers") {
            return None;
        }
        let order = if weakened!("stack_request_after_reading") { Relaxed } else { Release };
        // Release: the last trace has been read before the next is written. Pairs with the AcqRel
        // in `respond`.
        self.state.word().store(REQUESTED, order);
        Some(PendingRequest { stack_request: self, _requester: requester })
    }

    /// Writes the trace: H1 to H3. May run in a signal handler, and does nothing unless a stack
    /// trace is requested.
    pub(crate) fn respond(&self, write: impl FnOnce(&mut StackTrace)) {
        if weakened!("stack_request_claims") {
            // Acquire, Relaxed: the exchange below, in two steps.
            if self.state.word().load(Acquire) != REQUESTED {
                return;
            }
            self.state.word().store(WRITING, Relaxed);
        } else {
            // AcqRel: the requester has read the last trace. Pairs with the Release in `request`.
            // Relaxed on failure: there is nothing to do.
            let claim = self.state.word().compare_exchange(REQUESTED, WRITING, AcqRel, Relaxed);
            if claim.is_err() {
                return;
            }
        }
        // SAFETY: by invariant 1 no other handler writes, and by invariant 2 no requester reads.
        self.trace.with_mut(|trace| unsafe {
            *trace = StackTrace::new();
            write(&mut *trace);
        });
        let order = if weakened!("stack_request_publishes") { Relaxed } else { Release };
        // Release: publishes the trace. Pairs with the Acquire in `read`.
        self.state.word().store(WRITTEN, order);
        // On Linux, the one system that has such handlers, this is only a system call.
        self.state.wake_all();
    }
}

/// A request that is under way. Dropping it withdraws the request.
pub(crate) struct PendingRequest<'a> {
    stack_request: &'a StackRequest,
    _requester: MutexGuard<'a, ()>,
}

impl PendingRequest<'_> {
    /// Sleeps until there is a trace, or for about `limit`: A3.
    pub(crate) fn wait(&self, limit: Duration) {
        let began = std::time::Instant::now();
        let state = &self.stack_request.state;
        loop {
            // Relaxed: `read` loads it again.
            let now = state.word().load(Relaxed);
            let left = limit.saturating_sub(began.elapsed());
            if now == WRITTEN || left.is_zero() {
                return;
            }
            state.wait(now, Some(left));
        }
    }

    /// Returns the trace, if there is one: A4.
    pub(crate) fn read(&self) -> Option<StackTrace> {
        let order = if weakened!("stack_request_reads") { Relaxed } else { Acquire };
        // Acquire: sees the trace. Pairs with the Release in `respond`.
        let is_written = self.stack_request.state.word().load(order) == WRITTEN;
        // SAFETY: by invariant 2 the trace is ours to read while we have the lock.
        is_written.then(|| self.stack_request.trace.with(|trace| unsafe { (*trace).clone() }))
    }
}

impl Drop for PendingRequest<'_> {
    /// Withdraws the request, unless a handler is writing: A5.
    fn drop(&mut self) {
        let word = self.stack_request.state.word();
        if weakened!("stack_request_withdraws") {
            // Relaxed: the next requester has the lock, and publishes then.
            word.store(IDLE, Relaxed);
            return;
        }
        // Relaxed: the next requester has the lock, and publishes then.
        let _ = word.compare_exchange(REQUESTED, IDLE, Relaxed, Relaxed);
    }
}

impl std::fmt::Debug for StackRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackRequest").field("stack", &self.stack).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_FRAMES, StackRequest, StackTrace};
    use crate::engine::prim::{Arc, model, model_deeper, thread};

    /// Starts a thread as a handler, which reports its poll and the same number as its one frame.
    fn handler(stack_request: &Arc<StackRequest>, of: usize) -> thread::JoinHandle<()> {
        let stack_request = stack_request.clone();
        thread::spawn(move || {
            stack_request.respond(|trace| {
                trace.poll = of;
                trace.push(of);
            });
        })
    }

    fn is_whole(trace: &StackTrace) -> bool {
        trace.addresses() == [trace.poll]
    }

    #[test]
    fn a_trace_is_read_whole() {
        model(|| {
            let stack_request = Arc::new(StackRequest::new(0..0));
            let pending = stack_request.request().expect("no handler writes");
            // Two signals at once: one is from another sender, or its handler interrupts the other.
            let handlers = [handler(&stack_request, 7), handler(&stack_request, 8)];
            if let Some(trace) = pending.read() {
                assert!(is_whole(&trace), "{trace:?}");
            }
            drop(pending);
            handlers.into_iter().for_each(|handler| handler.join().unwrap());
        });
    }

    /// The limit is over while the trace is being written; the next request is made meanwhile.
    #[test]
    fn a_late_trace_is_left_alone() {
        model_deeper(|| {
            let stack_request = Arc::new(StackRequest::new(0..0));
            let pending = stack_request.request().expect("no handler writes");
            let first = handler(&stack_request, 7);
            drop(pending);
            let Some(pending) = stack_request.request() else { return first.join().unwrap() };
            let second = handler(&stack_request, 8);
            if let Some(trace) = pending.read() {
                assert!(is_whole(&trace), "{trace:?}");
            }
            drop(pending);
            first.join().unwrap();
            second.join().unwrap();
        });
    }

    #[test]
    fn the_second_trace_follows_the_first() {
        model_deeper(|| {
            let stack_request = Arc::new(StackRequest::new(0..0));
            let second = {
                let pending = stack_request.request().expect("no handler writes");
                handler(&stack_request, 7).join().unwrap();
                let second = handler(&stack_request, 8);
                assert_eq!(pending.read().expect("the trace was written").poll, 7);
                second
            };
            if let Some(pending) = stack_request.request()
                && let Some(trace) = pending.read()
            {
                assert_eq!((trace.poll, is_whole(&trace)), (8, true));
            }
            second.join().unwrap();
        });
    }

    #[test]
    fn frames_beyond_the_last_slot_are_left_out() {
        let mut trace = StackTrace::new();
        assert!((0..MAX_FRAMES).all(|address| trace.push(address)));
        assert!(!trace.push(MAX_FRAMES));
        assert_eq!(trace.addresses().len(), MAX_FRAMES);
    }
}
