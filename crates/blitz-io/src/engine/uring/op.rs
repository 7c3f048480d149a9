//! One operation: the payload that the kernel works on, and its current owner.
//!
//! An operation has two owners. The uring holds a reference from just before it is submitted until
//! the kernel has completed it; the future holds the other. Both are an `Arc`, so the memory is
//! freed with the last of them, and never before the kernel's completion: not when the future is
//! dropped, nor when it is leaked.
//!
//! # Protocol
//! ```text
//! the uring has the kernel's result         the future
//! A1 exchanges PENDING for COMPLETED and    F1 loads the word: COMPLETED, it owns the payload
//!    the result; if it was ABANDONED,       F2 registers its waker
//!    no task waits: done                    F3 loads the word again: as F1
//! A2 takes the waker                        F4 sleeps
//!                                           and its drop
//!                                           D1 exchanges PENDING for ABANDONED
//!                                           D2 if it was PENDING: requests a cancel
//! ```
//! F2 and A2 exchange the cell of the waker, so one comes first. If A2, F3 sees A1; if F2, A2 finds
//! the waker. D1 and A1 exchange the word. If A1 is first there is nothing to cancel; if D1 is, the
//! kernel gets a cancel request, and its completion wakes no task.
//!
//! # Invariants
//! 1. PENDING and ABANDONED: the kernel owns the payload, and no thread accesses it until the
//!    kernel has completed the operation. COMPLETED: the future owns it.
//! 2. The word becomes COMPLETED at most once.
//! 3. The payload of an abandoned operation is dropped with the memory, after its completion.
//!
//! # Rejected
//! - A state 'cancelled': only the drop of a future cancels. If a future that still waits gets
//!   ECANCELED, the kernel did it (the thread that submitted has exited), or the uring closes;
//!   either way the future submits again, and gets the outcome of that.
//! - Submitting an operation again in the same cell: that needs one more state, for what happens
//!   once in the life of a thread.
//! - Freeing by the word instead of by reference counts: one more `Arc` costs 5 ns, beside a system
//!   call.
//!
//! # Checked by
//! `a_completion_against_a_poll_is_not_lost`, `a_completion_hands_over_what_the_kernel_wrote`,
//! `a_completion_against_a_drop_frees_the_payload_once`; weakened as `op_complete_publishes`,
//! `op_complete_wakes`, `op_poll_checks_again`, `op_abandon_cancels`.

use std::task::{Context, Poll, Waker};

use crate::engine::{
    prim::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
        UnsafeCell, weakened,
    },
    wait::waker_cell::WakerCell,
};

const PENDING: u64 = 0;
const COMPLETED: u64 = 1;
const ABANDONED: u64 = 2;
/// The bits of the word that hold the state; the result is in the upper half.
const STATE: u64 = 3;
const RESULT_SHIFT: u32 = 32;

/// An operation: its state, the waker of its future, and its payload.
pub(crate) struct Op<P> {
    word: AtomicU64,
    waker: WakerCell,
    payload: UnsafeCell<Option<P>>,
}

// SAFETY: the payload has one owner at a time (first invariant), and `P: Send` lets it move between
// threads.
unsafe impl<P: Send> Send for Op<P> {}
// SAFETY: only the payload's one owner accesses it (first invariant), and `P: Send` lets the owner
// be on any thread.
unsafe impl<P: Send> Sync for Op<P> {}

/// The duty of a future that is dropped.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AbandonDuty {
    /// The kernel still has the operation, so a cancel must be requested.
    Cancel,
    Nothing,
}

/// The uring's view of an operation, independent of the payload's type.
pub(crate) trait CompleteOp: Send + Sync {
    /// Stores the kernel's only result; called by the thread that took it out of the queue. The
    /// caller must wake the returned waker, while it holds no lock.
    #[must_use]
    fn complete(&self, result: i32) -> Option<Waker>;

    /// Takes the waker of the task that waits, if any, so that the task is polled although there is
    /// no result.
    fn waker(&self) -> Option<Waker>;
}

impl<P> Op<P> {
    pub(crate) fn new(payload: P) -> Self {
        Self {
            word: AtomicU64::new(PENDING),
            waker: WakerCell::new(),
            payload: UnsafeCell::new(Some(payload)),
        }
    }

    /// Calls `f` with the payload at its final address, before the operation is submitted.
    ///
    /// # Safety
    /// 1. There is no other reference to the operation.
    pub(crate) unsafe fn before<R>(&self, f: impl FnOnce(&mut P) -> R) -> R {
        self.payload.with_mut(|payload| {
            // SAFETY: by obligation 1 there is no other reference to the operation, so none to its
            // payload.
            f(unsafe { &mut *payload }.as_mut().expect("it was made with a payload"))
        })
    }

    /// Returns the result if the operation is complete.
    #[inline]
    pub(crate) fn result(&self) -> Option<i32> {
        let order = if weakened!("op_complete_publishes") { Relaxed } else { Acquire };
        // Acquire: what the kernel wrote is visible with its result. Pairs with the AcqRel in
        // `complete`.
        let word = self.word.load(order);
        (word & STATE == COMPLETED).then_some((word >> RESULT_SHIFT) as u32 as i32)
    }

    /// Polls for the result (F1 to F4). When it is ready, the caller owns the payload.
    #[inline]
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<i32> {
        if let Some(result) = self.result() {
            return Poll::Ready(result);
        }
        self.waker.register(cx.waker());
        match self.result() {
            Some(result) if !weakened!("op_poll_checks_again") => Poll::Ready(result),
            _ => Poll::Pending,
        }
    }

    /// Takes the payload.
    ///
    /// # Safety
    /// 1. The caller is the future, and has seen the result; or the kernel never got the operation,
    ///    and there is no other reference to it.
    /// 2. It is called once.
    pub(crate) unsafe fn take(&self) -> P {
        // SAFETY: by obligation 1 the caller has seen COMPLETED, so by the first invariant it owns
        // the payload; or the kernel never had it, and the caller has the only reference.
        let payload = self.payload.with_mut(|payload| unsafe { (*payload).take() });
        payload.expect("a payload is taken once")
    }

    /// Gives the operation up; called when the future is dropped (D1).
    pub(crate) fn abandon(&self) -> AbandonDuty {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STATE != PENDING {
                return AbandonDuty::Nothing;
            }
            // AcqRel: comes before or after the exchange in `complete`, with which it pairs.
            match self.word.compare_exchange_weak(now, ABANDONED, AcqRel, Relaxed) {
                Ok(_) if weakened!("op_abandon_cancels") => return AbandonDuty::Nothing,
                Ok(_) => return AbandonDuty::Cancel,
                Err(seen) => now = seen,
            }
        }
    }
}

impl<P: Send> CompleteOp for Op<P> {
    fn complete(&self, result: i32) -> Option<Waker> {
        let completed = u64::from(result as u32) << RESULT_SHIFT | COMPLETED;
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            debug_assert_ne!(now & STATE, COMPLETED, "an operation completes once");
            if now & STATE != PENDING {
                return None;
            }
            let order = if weakened!("op_complete_publishes") { Relaxed } else { AcqRel };
            // AcqRel: publishes what the kernel wrote. Pairs with the Acquire in `result`, and with
            // the exchange in `abandon`.
            match self.word.compare_exchange_weak(now, completed, order, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if weakened!("op_complete_wakes") { None } else { self.waker.take() }
    }

    fn waker(&self) -> Option<Waker> {
        self.waker.take()
    }
}

impl<P> std::fmt::Debug for Op<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a snapshot for debugging.
        let state = match self.word.load(Relaxed) & STATE {
            PENDING => "pending",
            COMPLETED => "completed",
            _ => "abandoned",
        };
        f.debug_struct("Op").field("state", &state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models {
    use std::{
        sync::Arc as Plain,
        task::{Context, Poll, Waker},
    };

    use super::{AbandonDuty, CompleteOp, Op};
    use crate::engine::{
        prim::{Arc, UnsafeCell, ids::Tally, model, thread},
        wait::test_waker::CountingWaker,
    };

    /// A buffer that the kernel writes into.
    struct Page(UnsafeCell<u32>);

    // SAFETY: only the owner of the payload, the kernel or the future, accesses the page.
    unsafe impl Sync for Page {}

    /// Creates a buffer; returns it and the address of it that the kernel gets.
    fn page() -> (Arc<Page>, Arc<Page>) {
        let page = Arc::new(Page(UnsafeCell::new(0)));
        (page.clone(), page)
    }

    /// Writes into the page and stores the result, as a uring does.
    fn kernel(op: &Arc<Op<Arc<Page>>>, page: Arc<Page>) -> thread::JoinHandle<()> {
        let op = op.clone();
        thread::spawn(move || {
            // SAFETY: the kernel owns the page until it has stored the result.
            page.0.with_mut(|value| unsafe { *value = 7 });
            drop(page);
            op.complete(4).into_iter().for_each(Waker::wake);
        })
    }

    /// Returns the content of a page that came back.
    fn read(page: &Page) -> u32 {
        // SAFETY: the page came back, so the future owns it.
        page.0.with(|value| unsafe { *value })
    }

    #[test]
    fn a_completion_against_a_poll_is_not_lost() {
        model(|| {
            let ((payload, page), counter) = (page(), CountingWaker::new());
            let op = Arc::new(Op::new(payload));
            let kernel = kernel(&op, page);
            let result = loop {
                let waker = counter.waker();
                match op.poll(&Context::from_waker(&waker)) {
                    Poll::Ready(result) => break result,
                    Poll::Pending => counter.wait(),
                }
            };
            assert_eq!(result, 4);
            // SAFETY: 1. the poll above has seen the result. 2. It is called once, after the loop.
            let payload = unsafe { op.take() };
            assert_eq!(read(&payload), 7);
            kernel.join().unwrap();
        });
    }

    /// A future that is polled once, and takes its payload only if there is a result.
    #[test]
    fn a_completion_hands_over_what_the_kernel_wrote() {
        model(|| {
            let (payload, page) = page();
            let op = Arc::new(Op::new(payload));
            let kernel = kernel(&op, page);
            let polled = op.poll(&Context::from_waker(Waker::noop()));
            if polled.is_ready() {
                // SAFETY: 1. the poll has seen the result. 2. It is called once.
                let payload = unsafe { op.take() };
                assert_eq!(read(&payload), 7);
            }
            kernel.join().unwrap();
        });
    }

    /// Counts how often it is dropped.
    struct CountedPayload(Plain<Tally>);

    impl Drop for CountedPayload {
        fn drop(&mut self) {
            self.0.add();
        }
    }

    #[test]
    fn a_completion_against_a_drop_frees_the_payload_once() {
        model(|| {
            let dropped = Plain::new(Tally::default());
            let op = Arc::new(Op::new(CountedPayload(dropped.clone())));
            let kernel = thread::spawn({
                let op = op.clone();
                move || op.complete(0).into_iter().for_each(Waker::wake)
            });
            let duty = op.abandon();
            let completed = op.result().is_some();
            assert!(
                duty == AbandonDuty::Cancel || completed,
                "it has completed, or a cancel is due"
            );
            drop(op);
            kernel.join().unwrap();
            assert_eq!(dropped.get(), 1);
        });
    }
}
