//! Charges one unit of the task's budget for each item of a stream, whichever crate produced it.
//!
//! The streams of this runtime take a unit for each item themselves. Foreign streams do not, and
//! one that is always ready would keep its worker forever. So every adapter that polls for items in
//! a loop, and `next`, which is usually called in one, polls through [`poll_item`].

use std::task::{Context, Poll, ready};

use crate::engine::work::task::budget;

/// Polls for an item. Returns `Pending` if no budget is left, after waking the task so that it is
/// polled again later; otherwise charges a unit for an item that has not cost one already.
#[inline]
pub(super) fn poll_item<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    ready!(budget::available(cx));
    let before = budget::remaining();
    let polled = poll(cx);
    if polled.is_ready()
        && budget::remaining() == before
        && let Some(unit) = budget::take()
    {
        unit.spend();
    }
    polled
}
