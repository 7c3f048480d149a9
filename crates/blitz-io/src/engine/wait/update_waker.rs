//! Renews the waker of a future in a wait queue when it is polled again, because its task may have
//! another waker by now.
//!
//! # Checked by
//! `a_new_waker_against_a_release_is_woken`, `a_new_waker_against_an_event_is_woken`,
//! `a_new_waker_against_a_notification_is_woken`,
//! `a_new_waker_against_the_last_to_arrive_is_woken`,
//! `a_new_waker_against_an_opening_is_woken`; weakened as `update_waker_renews`.

use std::{pin::Pin, task::Waker};

use super::wait_queue::{WaitQueue, Waiter, WaiterState};
use crate::engine::prim::{store_lock::StoreLock, weakened};

/// Makes sure that a queued waiter will be woken by `waker`, and returns whether it was already
/// dismissed from the queue.
///
/// The lock is taken twice if the waker is a different one, so that it is cloned and dropped
/// outside of the lock.
///
/// # Safety
/// 1. The caller owns the waiter. 2. If the waiter is in a queue, it is in the one that `queue_of`
///    finds behind this lock.
pub(crate) unsafe fn update_waker<L, D>(
    mutex: &StoreLock<L>,
    queue_of: impl Fn(&mut L) -> &mut WaitQueue<D>,
    waiter: Pin<&Waiter<D>>,
    waker: &Waker,
) -> bool {
    // SAFETY: 1. if the waiter is in a queue, it is in this one (our obligation 2).
    let same = unsafe { queue_of(&mut mutex.lock()).would_wake(waiter, waker) };
    if same == Some(false) && !weakened!("update_waker_renews") {
        let waker = waker.clone();
        // SAFETY: 1. if the waiter is in a queue, it is in this one (our obligation 2).
        let stale = unsafe { queue_of(&mut mutex.lock()).renew(waiter, waker) };
        // The lock was released at the end of the statement above.
        drop(stale);
    }
    waiter.state() == WaiterState::Dismissed
}
