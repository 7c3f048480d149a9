//! What a future that stands in line does when it is polled again: its task may have another
//! waker by now.
//!
//! # Checked by
//! `a_new_waker_against_a_release_is_woken`, `a_new_waker_against_an_event_is_woken`,
//! `a_new_waker_against_a_notification_is_woken`,
//! `a_new_waker_against_the_last_to_arrive_is_woken`,
//! `a_new_waker_against_an_opening_is_woken`; weakened as `keep_renews_the_waker`.

use std::{pin::Pin, task::Waker};

use super::line::{Line, Place, Waiter};
use crate::engine::prim::{bolt::Bolted, weakened};

/// Sees that one who stands in line is woken by `waker`, and says whether it has left.
///
/// Two turns at the lock if the waker is another one: it is cloned and dropped outside.
///
/// # Safety
/// 1. The caller owns the waiter. 2. If it is in a line, then in the one that `line_of`
///    finds behind this lock.
pub(crate) unsafe fn keep_waker<L, D>(
    mutex: &Bolted<L>,
    line_of: impl Fn(&mut L) -> &mut Line<D>,
    waiter: Pin<&Waiter<D>>,
    waker: &Waker,
) -> bool {
    // SAFETY: 1. by 2.
    let same = unsafe { line_of(&mut mutex.lock()).would_wake(waiter, waker) };
    if same == Some(false) && !weakened!("keep_renews_the_waker") {
        let waker = waker.clone();
        // SAFETY: 1. by 2.
        let stale = unsafe { line_of(&mut mutex.lock()).renew(waiter, waker) };
        // The lock was let go at the end of the statement above.
        drop(stale);
    }
    waiter.place() == Place::Left
}
