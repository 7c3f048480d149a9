//! The two things a workload waits on: a `Notifier`, which wakes one listener, and a `Latch`, which
//! notifies its listener when the last of many has counted down.
//!
//! Every contender uses these same two, so that a row measures its scheduler and not its channels.
//! They cost two or three atomic operations a use. Their functions are `#[inline]` because they are
//! a part of what is measured, and would otherwise be calls into another crate.
//!
//! # Protocol
//! `state` says which thread may touch the waker:
//! ```text
//!            listener stores its waker              notify claims the waker
//!   EMPTY ─────────────────────────────▶ WAITING ─────────────────────────▶ NOTIFYING
//!   (listener's)                         (unowned)                          (notify's)
//!     ▲  ▲                                  │                                   │
//!     │  └──── listener takes it back ──────┘      notify has taken the waker   │
//!     │                                            and wakes after this         │
//!     └─────────── listener sees it ───────── NOTIFIED ◀────────────────────────┘
//!                                               ▲
//!                   EMPTY ── notified early ────┘
//! ```
//!
//! # Invariants
//! 1. The waker is written in EMPTY by the listener only, and taken in NOTIFYING by the one
//!    thread whose exchange set that state.
//! 2. One task listens to a notifier. A poll that finds NOTIFYING may return `Pending` because the
//!    wake-up under way is for the same task.
//!
//! # Rejected
//! A `Mutex<Option<Waker>>`: more atomic operations for each notification, the same for all
//! contenders, which would pull every ratio towards one. How far was not measured.
//!
//! # Checked by
//! `no_notification_is_lost_between_two_threads`, `a_notification_before_the_first_poll_is_seen`,
//! `the_latch_opens_after_the_last_of_many_threads`

use std::cell::UnsafeCell;
use std::future::{Future, poll_fn};
use std::sync::atomic::{
    AtomicU8, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::task::{Context, Poll, Waker};

const EMPTY: u8 = 0;
const WAITING: u8 = 1;
const NOTIFYING: u8 = 2;
const NOTIFIED: u8 = 3;

/// A notifier that wakes one listener. A notification without a listener is kept; two of them
/// before the listener sees the first are one.
pub struct Notifier {
    state: AtomicU8,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is accessed by one thread at a time: `state` gives it to the listener or to one
// notifying thread (invariant 1), with Release and Acquire at each change.
unsafe impl Sync for Notifier {}

impl Notifier {
    #[inline]
    pub const fn new() -> Notifier {
        Notifier { state: AtomicU8::new(EMPTY), waker: UnsafeCell::new(None) }
    }

    /// Wakes the listener, now or when it next listens.
    #[inline]
    pub fn notify(&self) {
        loop {
            // Relaxed: only a guess for the exchanges below, which check it.
            match self.state.load(Relaxed) {
                EMPTY => {
                    // Release: publishes what the thread did before to the listener. Pairs with the
                    // Acquire loads of NOTIFIED in `poll`.
                    if self.state.compare_exchange(EMPTY, NOTIFIED, Release, Relaxed).is_ok() {
                        return;
                    }
                }
                WAITING => {
                    // Acquire: sees the waker. Pairs with the Release in `poll`.
                    if self.state.compare_exchange(WAITING, NOTIFYING, Acquire, Relaxed).is_ok() {
                        return self.wake();
                    }
                }
                // Another notification is under way or not yet seen, and this one merges with it.
                _ => return,
            }
        }
    }

    /// Wakes the listener after `notify` has claimed the waker: this thread set `state` to NOTIFYING.
    #[inline]
    fn wake(&self) {
        // SAFETY: NOTIFYING gives the waker to the thread that set it (invariant 1), which is this
        // thread.
        let waker = unsafe { (*self.waker.get()).take() };
        // Release: gives the waker cell back. Pairs with the Acquire loads in `poll`.
        self.state.store(NOTIFIED, Release);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    #[inline]
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Acquire: NOTIFIED gives us the waker cell back. Pairs with the Release in `wake`.
        match self.state.load(Acquire) {
            NOTIFIED => return self.heard(),
            NOTIFYING => return Poll::Pending,
            WAITING => {
                // A spurious poll: take the waker cell back to renew the waker. Acquire on failure:
                // NOTIFIED gives us the waker cell back, as for the load above. Pairs with the Release
                // in `wake`.
                match self.state.compare_exchange(WAITING, EMPTY, Relaxed, Acquire) {
                    Ok(_) => {}
                    Err(NOTIFIED) => return self.heard(),
                    Err(_) => return Poll::Pending,
                }
            }
            _ => {}
        }
        // SAFETY: EMPTY gives the waker to the listener (invariant 1), which is the task that
        // polls.
        unsafe { *self.waker.get() = Some(cx.waker().clone()) };
        // Release: publishes the waker. Pairs with the Acquire exchange in `notify`.
        // Acquire on failure: the notification came first; pairs with the Release in `notify`.
        match self.state.compare_exchange(EMPTY, WAITING, Release, Acquire) {
            Ok(_) => Poll::Pending,
            Err(_) => self.heard(),
        }
    }

    #[inline]
    fn heard(&self) -> Poll<()> {
        // Relaxed: a notifier thread that finds EMPTY touches nothing but the state.
        self.state.store(EMPTY, Relaxed);
        Poll::Ready(())
    }

    /// Waits for the next notification.
    #[inline]
    pub fn wait(&self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|cx| self.poll(cx))
    }
}

/// Notifiers on cache lines of their own (two, for the adjacent-line prefetcher), for
/// rows where neighbours are notified by different threads.
#[repr(align(128))]
pub struct PaddedNotifier(pub Notifier);

/// A reusable latch: set to a number, counted down to zero and waited for.
pub struct Latch {
    left: AtomicUsize,
    notifier: Notifier,
}

impl Latch {
    /// Returns a latch that lives as long as the process: a task then captures eight bytes and
    /// touches no reference count that the row would measure.
    pub fn leaked() -> &'static Latch {
        Box::leak(Box::new(Latch { left: AtomicUsize::new(0), notifier: Notifier::new() }))
    }

    /// Sets the number still to come. No thread may be counting down.
    #[inline]
    pub fn set(&self, count: usize) {
        // Relaxed: the spawns and notifications that follow publish it.
        self.left.store(count, Relaxed);
    }

    #[inline]
    pub fn count_down(&self) {
        // AcqRel: the last one sees what all others did before they counted down, and passes it on
        // by the notifier. Pairs with the same operation on the other threads.
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.notifier.notify();
        }
    }

    /// Waits until the count has reached zero.
    #[inline]
    pub fn wait(&self) -> impl Future<Output = ()> + Send + '_ {
        self.notifier.wait()
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
    fn a_notification_before_the_first_poll_is_seen() {
        let notifier = Notifier::new();
        notifier.notify();
        block_on(notifier.wait());
    }

    #[test]
    fn a_notification_is_seen_once() {
        let notifier = Notifier::new();
        notifier.notify();
        notifier.notify();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(notifier.poll(&mut cx).is_ready());
        assert!(notifier.poll(&mut cx).is_pending());
    }

    #[test]
    fn a_second_poll_renews_the_waker() {
        let notifier = Notifier::new();
        assert!(notifier.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        thread::scope(|scope| {
            let listener = scope.spawn(|| block_on(notifier.wait()));
            notifier.notify();
            listener.join().expect("the listener sees the notification");
        });
    }

    #[test]
    fn no_notification_is_lost_between_two_threads() {
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let (ping, pong) = (Notifier::new(), Notifier::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    block_on(ping.wait());
                    pong.notify();
                }
            });
            for _ in 0..rounds {
                ping.notify();
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
