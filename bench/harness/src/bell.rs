//! The two things a workload waits on: a `Bell`, which notifies one listener, and a `Latch`, which
//! rings its bell when the last of many has counted down.
//!
//! Every contender uses these same two, so that a row measures its scheduler and not its channels.
//! They cost two or three atomic operations a use. Their functions are `#[inline]` because they are
//! a part of what is measured, and would otherwise be calls into another crate.
//!
//! # Protocol
//! `state` says which thread may touch the waker:
//! ```text
//!            listener stores its waker              ringer claims the waker
//!   QUIET ─────────────────────────────▶ WAITING ─────────────────────────▶ RINGING
//!   (listener's)                         (unowned)                         (ringer's)
//!     ▲  ▲                                  │                                  │
//!     │  └──── listener takes it back ──────┘      ringer has taken the waker  │
//!     │                                            and wakes after this        │
//!     └─────────── listener sees it ───────── RUNG ◀────────────────────────────┘
//!                                             ▲
//!                     QUIET ── rung early ────┘
//! ```
//!
//! # Invariants
//! 1. The waker is written in QUIET by the listener only, and taken in RINGING by the one ringer
//!    whose exchange set that state.
//! 2. One task listens to a bell. A poll that finds RINGING may return `Pending` because the
//!    wake-up under way is for the same task.
//!
//! # Rejected
//! A `Mutex<Option<Waker>>`: more atomic operations for each notification, the same for all
//! contenders, which would pull every ratio towards one. How far was not measured.
//!
//! # Checked by
//! `no_ring_is_lost_between_two_threads`, `a_ring_before_the_first_poll_is_heard`,
//! `the_latch_opens_after_the_last_of_many_threads`

use std::cell::UnsafeCell;
use std::future::{Future, poll_fn};
use std::sync::atomic::{
    AtomicU8, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::task::{Context, Poll, Waker};

const QUIET: u8 = 0;
const WAITING: u8 = 1;
const RINGING: u8 = 2;
const RUNG: u8 = 3;

/// A notifier that wakes one listener. A ring without a listener is kept; two rings before the
/// listener sees the first are one.
pub struct Bell {
    state: AtomicU8,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is accessed by one thread at a time: `state` gives it to the listener or to one
// ringer (invariant 1), with Release and Acquire at each change.
unsafe impl Sync for Bell {}

impl Bell {
    #[inline]
    pub const fn new() -> Bell {
        Bell { state: AtomicU8::new(QUIET), waker: UnsafeCell::new(None) }
    }

    /// Wakes the listener, now or when it next listens.
    #[inline]
    pub fn ring(&self) {
        loop {
            // Relaxed: only a guess for the exchanges below, which check it.
            match self.state.load(Relaxed) {
                QUIET => {
                    // Release: publishes what the ringer did before to the listener. Pairs with the
                    // Acquire loads of RUNG in `poll`.
                    if self.state.compare_exchange(QUIET, RUNG, Release, Relaxed).is_ok() {
                        return;
                    }
                }
                WAITING => {
                    // Acquire: sees the waker. Pairs with the Release in `poll`.
                    if self.state.compare_exchange(WAITING, RINGING, Acquire, Relaxed).is_ok() {
                        return self.wake();
                    }
                }
                // Another ring is under way or not yet seen, and this one merges with it.
                _ => return,
            }
        }
    }

    /// Wakes the listener after `ring` has claimed the waker: this thread set `state` to RINGING.
    #[inline]
    fn wake(&self) {
        // SAFETY: RINGING gives the waker to the ringer that set it (invariant 1), which is this
        // thread.
        let waker = unsafe { (*self.waker.get()).take() };
        // Release: gives the waker cell back. Pairs with the Acquire loads in `poll`.
        self.state.store(RUNG, Release);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    #[inline]
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Acquire: RUNG gives us the waker cell back. Pairs with the Release in `wake`.
        match self.state.load(Acquire) {
            RUNG => return self.heard(),
            RINGING => return Poll::Pending,
            WAITING => {
                // A spurious poll: take the waker cell back to renew the waker. Acquire on failure:
                // RUNG gives us the waker cell back, as for the load above. Pairs with the Release
                // in `wake`.
                match self.state.compare_exchange(WAITING, QUIET, Relaxed, Acquire) {
                    Ok(_) => {}
                    Err(RUNG) => return self.heard(),
                    Err(_) => return Poll::Pending,
                }
            }
            _ => {}
        }
        // SAFETY: QUIET gives the waker to the listener (invariant 1), which is the task that
        // polls.
        unsafe { *self.waker.get() = Some(cx.waker().clone()) };
        // Release: publishes the waker. Pairs with the Acquire exchange in `ring`.
        // Acquire on failure: the ring came first; pairs with the Release in `ring`.
        match self.state.compare_exchange(QUIET, WAITING, Release, Acquire) {
            Ok(_) => Poll::Pending,
            Err(_) => self.heard(),
        }
    }

    #[inline]
    fn heard(&self) -> Poll<()> {
        // Relaxed: a ringer that finds QUIET touches nothing but the state.
        self.state.store(QUIET, Relaxed);
        Poll::Ready(())
    }

    /// Waits for the next ring.
    #[inline]
    pub fn wait(&self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|cx| self.poll(cx))
    }
}

/// Bells on cache lines of their own (two, for the adjacent-line prefetcher), for
/// rows where neighbours are rung by different threads.
#[repr(align(128))]
pub struct PaddedBell(pub Bell);

/// A reusable latch: set to a number, counted down to zero and waited for.
pub struct Latch {
    left: AtomicUsize,
    bell: Bell,
}

impl Latch {
    /// Returns a latch that lives as long as the process: a task then captures eight bytes and
    /// touches no reference count that the row would measure.
    pub fn leaked() -> &'static Latch {
        Box::leak(Box::new(Latch { left: AtomicUsize::new(0), bell: Bell::new() }))
    }

    /// Sets the number still to come. No thread may be counting down.
    #[inline]
    pub fn set(&self, count: usize) {
        // Relaxed: the spawns and rings that follow publish it.
        self.left.store(count, Relaxed);
    }

    #[inline]
    pub fn count_down(&self) {
        // AcqRel: the last one sees what all others did before they counted down, and passes it on
        // by the bell. Pairs with the same operation on the other threads.
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.bell.ring();
        }
    }

    /// Waits until the count has reached zero.
    #[inline]
    pub fn wait(&self) -> impl Future<Output = ()> + Send + '_ {
        self.bell.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Wake;
    use std::thread;

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn a_ring_before_the_first_poll_is_heard() {
        let bell = Bell::new();
        bell.ring();
        block_on(bell.wait());
    }

    #[test]
    fn a_ring_is_heard_once() {
        let bell = Bell::new();
        bell.ring();
        bell.ring();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(bell.poll(&mut cx).is_ready());
        assert!(bell.poll(&mut cx).is_pending());
    }

    #[test]
    fn a_second_poll_renews_the_waker() {
        let bell = Bell::new();
        assert!(bell.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        thread::scope(|scope| {
            let listener = scope.spawn(|| block_on(bell.wait()));
            bell.ring();
            listener.join().expect("the listener hears the ring");
        });
    }

    #[test]
    fn no_ring_is_lost_between_two_threads() {
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let (ping, pong) = (Bell::new(), Bell::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    block_on(ping.wait());
                    pong.ring();
                }
            });
            for _ in 0..rounds {
                ping.ring();
                block_on(pong.wait());
            }
        });
    }

    #[test]
    fn the_latch_opens_after_the_last_of_many_threads() {
        let latch = Latch::leaked();
        let done = AtomicUsize::new(0);
        for _ in 0..100 {
            latch.set(4);
            done.store(0, Relaxed);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        // Relaxed: the latch provides the ordering.
                        done.fetch_add(1, Relaxed);
                        latch.count_down();
                    });
                }
                block_on(latch.wait());
                assert_eq!(done.load(Relaxed), 4);
            });
        }
    }
}
