//! One operation: the memory that the kernel works on, and whose it is just now.
//!
//! An operation has two ends. The ring holds one from the moment before it is submitted
//! until the kernel has answered; the future holds the other. Both are an `Arc`, so the
//! memory goes with whichever end comes last, and never before the kernel's answer: not
//! when the future is dropped, nor when it is leaked.
//!
//! # Protocol
//! ```text
//! the ring has the kernel's answer          the future
//! A1 exchanges the word for ANSWERED        F1 looks: ANSWERED, the payload is its own
//!    and the result                         F2 registers its waker
//! A2 it was PENDING: takes the waker        F3 looks again: as F1
//!    it was ABANDONED: nobody to tell       F4 sleeps
//!                                           and its drop
//!                                           D1 exchanges the word for ABANDONED
//!                                           D2 it was PENDING: asks for a cancel
//! ```
//! F2 and A2 exchange the cell of the waker, so one comes first. If A2, F3 sees A1; if F2,
//! A2 finds the waker. D1 and A1 exchange the word. If A1 is first there is nothing to
//! cancel; if D1 is, the kernel is asked to hurry, and its answer finds nobody.
//!
//! # Invariants
//! 1. PENDING and ABANDONED: the payload is the kernel's, and nobody looks at it.
//!    ANSWERED: it is the future's.
//! 2. The word becomes ANSWERED at most once.
//! 3. The payload of an operation that was abandoned is dropped with the memory.
//!
//! # Rejected
//! - A state 'cancelled': only a future that goes away cancels. If one that is there is
//!   answered ECANCELED, the kernel did it (the thread that submitted has exited), or the
//!   ring ends; either way the future submits again, and is told.
//! - Operations that are begun again in the same cell: that is one more state, for what
//!   happens once in the life of a thread.
//! - Freeing by the word instead of by counts: an `Arc` more is 5 ns, beside a system call.
//!
//! # Checked by
//! `an_answer_against_a_poll_is_not_lost`, `an_answer_hands_over_what_the_kernel_wrote`,
//! `an_answer_against_a_drop_frees_the_payload_once`; weakened as `op_answer_publishes`,
//! `op_answer_wakes`, `op_poll_looks_again`, `op_abandon_cancels`.

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
const ANSWERED: u64 = 1;
const ABANDONED: u64 = 2;
/// What the word is, below the result.
const STATE: u64 = 3;
const RESULT_SHIFT: u32 = 32;

/// See the module.
pub(crate) struct Op<P> {
    word: AtomicU64,
    waker: WakerCell,
    payload: UnsafeCell<Option<P>>,
}

// SAFETY: the payload has one owner at a time (first invariant), and may move between
// threads.
unsafe impl<P: Send> Send for Op<P> {}
// SAFETY: as above.
unsafe impl<P: Send> Sync for Op<P> {}

/// What a future owes that goes away.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The kernel has it still: ask for a cancel.
    Cancel,
    Nothing,
}

/// The ring's end of an operation, whatever its payload is.
pub(crate) trait Answer: Send + Sync {
    /// The kernel's only answer, by whoever took it out of the queue. The waker is the
    /// caller's to wake, under no lock.
    #[must_use]
    fn answer(&self, result: i32) -> Option<Waker>;

    /// The task that waits for it, if one does. It is to be polled, though there is no answer.
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

    /// Looks at the payload where it will stay, before it is submitted.
    ///
    /// # Safety
    /// 1. Nobody else has the operation.
    pub(crate) unsafe fn before<R>(&self, f: impl FnOnce(&mut P) -> R) -> R {
        self.payload.with_mut(|payload| {
            // SAFETY: 1.
            f(unsafe { &mut *payload }.as_mut().expect("it was made with a payload"))
        })
    }

    /// The result, if there is one.
    #[inline]
    pub(crate) fn look(&self) -> Option<i32> {
        let order = if weakened!("op_answer_publishes") { Relaxed } else { Acquire };
        // Acquire: what the kernel wrote is seen with its answer. Pairs with the AcqRel in
        // `answer`.
        let word = self.word.load(order);
        (word & STATE == ANSWERED).then_some((word >> RESULT_SHIFT) as u32 as i32)
    }

    /// F1 to F4, for the future: the result. The payload is the caller's from then on.
    #[inline]
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<i32> {
        if let Some(result) = self.look() {
            return Poll::Ready(result);
        }
        self.waker.register(cx.waker());
        match self.look() {
            Some(result) if !weakened!("op_poll_looks_again") => Poll::Ready(result),
            _ => Poll::Pending,
        }
    }

    /// The payload, for the future.
    ///
    /// # Safety
    /// 1. The caller is the future, and has seen the answer; or the kernel never got the
    ///    operation, and nobody else has it.
    /// 2. It is called once.
    pub(crate) unsafe fn take(&self) -> P {
        // SAFETY: 1., and so it is ours by the first invariant.
        let payload = self.payload.with_mut(|payload| unsafe { (*payload).take() });
        payload.expect("a payload is taken once")
    }

    /// D1, by the future.
    pub(crate) fn abandon(&self) -> Left {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STATE != PENDING {
                return Left::Nothing;
            }
            // AcqRel: comes before or after the exchange in `answer`, with which it pairs.
            match self.word.compare_exchange_weak(now, ABANDONED, AcqRel, Relaxed) {
                Ok(_) if weakened!("op_abandon_cancels") => return Left::Nothing,
                Ok(_) => return Left::Cancel,
                Err(seen) => now = seen,
            }
        }
    }
}

impl<P: Send> Answer for Op<P> {
    fn answer(&self, result: i32) -> Option<Waker> {
        let answered = u64::from(result as u32) << RESULT_SHIFT | ANSWERED;
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            debug_assert_ne!(now & STATE, ANSWERED, "an operation is answered once");
            if now & STATE != PENDING {
                return None;
            }
            let order = if weakened!("op_answer_publishes") { Relaxed } else { AcqRel };
            // AcqRel: publishes what the kernel wrote. Pairs with the Acquire in `look`, and
            // with the exchange in `abandon`.
            match self.word.compare_exchange_weak(now, answered, order, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if weakened!("op_answer_wakes") { None } else { self.waker.take() }
    }

    fn waker(&self) -> Option<Waker> {
        self.waker.take()
    }
}

impl<P> std::fmt::Debug for Op<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a look.
        let state = match self.word.load(Relaxed) & STATE {
            PENDING => "pending",
            ANSWERED => "answered",
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

    use super::{Answer, Left, Op};
    use crate::engine::{
        prim::{Arc, UnsafeCell, ids::Tally, model, thread},
        wait::bell::Bell,
    };

    /// What the kernel writes into.
    struct Page(UnsafeCell<u32>);

    // SAFETY: whoever has the payload, the kernel or the future, is alone with it.
    unsafe impl Sync for Page {}

    /// A buffer, and the address of it that the kernel was told.
    fn page() -> (Arc<Page>, Arc<Page>) {
        let page = Arc::new(Page(UnsafeCell::new(0)));
        (page.clone(), page)
    }

    /// Writes into the page, and answers, as a ring does.
    fn kernel(op: &Arc<Op<Arc<Page>>>, page: Arc<Page>) -> thread::JoinHandle<()> {
        let op = op.clone();
        thread::spawn(move || {
            // SAFETY: the kernel has the page until it answers.
            page.0.with_mut(|value| unsafe { *value = 7 });
            drop(page);
            op.answer(4).into_iter().for_each(Waker::wake);
        })
    }

    /// What is in a page that came back.
    fn read(page: &Page) -> u32 {
        // SAFETY: it is the future's.
        page.0.with(|value| unsafe { *value })
    }

    #[test]
    fn an_answer_against_a_poll_is_not_lost() {
        model(|| {
            let ((payload, page), bell) = (page(), Bell::new());
            let op = Arc::new(Op::new(payload));
            let kernel = kernel(&op, page);
            let result = loop {
                let waker = bell.waker();
                match op.poll(&Context::from_waker(&waker)) {
                    Poll::Ready(result) => break result,
                    Poll::Pending => bell.listen(),
                }
            };
            assert_eq!(result, 4);
            // SAFETY: 1. the poll above has seen it. 2. Once.
            let payload = unsafe { op.take() };
            assert_eq!(read(&payload), 7);
            kernel.join().unwrap();
        });
    }

    /// A future that is polled once, and takes its payload only if there is an answer.
    #[test]
    fn an_answer_hands_over_what_the_kernel_wrote() {
        model(|| {
            let (payload, page) = page();
            let op = Arc::new(Op::new(payload));
            let kernel = kernel(&op, page);
            let polled = op.poll(&Context::from_waker(Waker::noop()));
            if polled.is_ready() {
                // SAFETY: 1. the poll has seen it. 2. Once.
                let payload = unsafe { op.take() };
                assert_eq!(read(&payload), 7);
            }
            kernel.join().unwrap();
        });
    }

    /// Counts its end.
    struct Counted(Plain<Tally>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add();
        }
    }

    #[test]
    fn an_answer_against_a_drop_frees_the_payload_once() {
        model(|| {
            let dropped = Plain::new(Tally::default());
            let op = Arc::new(Op::new(Counted(dropped.clone())));
            let kernel = thread::spawn({
                let op = op.clone();
                move || op.answer(0).into_iter().for_each(Waker::wake)
            });
            let left = op.abandon();
            let answered = op.look().is_some();
            assert!(left == Left::Cancel || answered, "it was answered, or a cancel is due");
            drop(op);
            kernel.join().unwrap();
            assert_eq!(dropped.get(), 1);
        });
    }
}
