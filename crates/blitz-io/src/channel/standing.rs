//! To stand in line with the right waker: what every future of a channel does under
//! its lock.

use std::{pin::Pin, task::Waker};

use crate::engine::wait::line::{Line, Place, Waiter};

/// Sees that the waiter stands in the line and wakes `waker`. `false` if a clone of
/// it is needed first: that runs a user's code, so the caller lets the lock go, makes
/// `spare`, and comes back.
///
/// What is left in `spare` afterwards is not needed any more, and is dropped after
/// the lock was let go.
///
/// # Safety
/// 1. The caller owns the waiter, and calls `remove` before it ends, unless it has
///    LEFT.
/// 2. If the waiter is in a line, then in this one.
#[must_use]
pub(super) unsafe fn stand<D>(
    line: &mut Line<D>,
    waiter: Pin<&Waiter<D>>,
    data: D,
    waker: &Waker,
    spare: &mut Option<Waker>,
) -> bool {
    // SAFETY: 1. of `would_wake`: by 2.
    let same = unsafe { line.would_wake(waiter, waker) };
    if same == Some(true) {
        return true;
    }
    let Some(new) = spare.take() else { return false };
    if same == Some(false) {
        // SAFETY: 1. of `renew`: by 2.
        *spare = Some(unsafe { line.renew(waiter, new) });
        return true;
    }
    if waiter.place() == Place::Left {
        waiter.settle();
    }
    // SAFETY: 1. of `with_data`: we own it, and it is OUT. 2. It does not come back.
    unsafe { waiter.with_data(|old| *old = data) };
    // SAFETY: 1. of `join`: as above. 2. The caller does, by 1.
    unsafe { line.join(waiter, new) };
    true
}

/// A clone of `waker` for one that is not in line, to be made before the lock is taken.
#[inline]
pub(super) fn spare_for<D>(waiter: &Waiter<D>, waker: &Waker) -> Option<Waker> {
    (waiter.place() != Place::In).then(|| waker.clone())
}
