//! Joining a wait queue under its lock with the current waker, as futures of channels do.

use std::{pin::Pin, task::Waker};

use crate::engine::wait::wait_queue::{WaitQueue, Waiter, WaiterState};

/// Makes sure that the waiter is in the wait queue and that `waker` is woken.
///
/// Returns `false` if a clone of the waker is needed first. Cloning runs user code, so the
/// caller must release the lock, put the clone into `spare`, and call this again.
///
/// A waker that is left in `spare` afterwards is no longer needed, and must be dropped after the
/// lock is released.
///
/// # Safety
/// 1. The caller owns the waiter, and calls `remove` before the waiter is dropped, unless it has
///    DISMISSED.
/// 2. If the waiter is in a wait queue, it is in this one.
#[must_use]
pub(super) unsafe fn enqueue<D>(
    waiters: &mut WaitQueue<D>,
    waiter: Pin<&Waiter<D>>,
    data: D,
    waker: &Waker,
    spare: &mut Option<Waker>,
) -> bool {
    // SAFETY: 1. of `would_wake`: by our obligation 2 the waiter is in no other wait queue.
    let same = unsafe { waiters.would_wake(waiter, waker) };
    if same == Some(true) {
        return true;
    }
    let Some(new) = spare.take() else { return false };
    if same == Some(false) {
        // SAFETY: 1. of `renew`: by our obligation 2 the waiter is in no other wait queue.
        *spare = Some(unsafe { waiters.renew(waiter, new) });
        return true;
    }
    if waiter.state() == WaiterState::Dismissed {
        waiter.settle();
    }
    // SAFETY: 1. of `with_data`: by our obligation 1 the caller owns the waiter, and it is OUT.
    // 2. The closure does not call `with_data`.
    unsafe { waiter.with_data(|old| *old = data) };
    // SAFETY: 1. of `join`: the caller owns the waiter, and it is OUT. 2. By our obligation 1
    // the caller removes it.
    unsafe { waiters.join(waiter, new) };
    true
}

/// Clones `waker` if the waiter is not in a wait queue; called before the lock is taken.
#[inline]
pub(super) fn spare_for<D>(waiter: &Waiter<D>, waker: &Waker) -> Option<Waker> {
    (waiter.state() != WaiterState::In).then(|| waker.clone())
}
