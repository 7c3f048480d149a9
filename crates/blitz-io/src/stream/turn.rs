//! One unit of the budget for each item, whoever made it.
//!
//! The sources of this runtime take a unit for each item themselves. Those from elsewhere do
//! not, and one that is always ready would keep its worker for ever. So whatever asks for items
//! in a loop, and `next`, which is asked in one, asks through [`item`].

use std::task::{Context, Poll, ready};

use crate::engine::work::task::budget;

/// Polls for an item. `Pending`, to be polled again after the others, if there is no budget
/// left; else an item that has cost nothing costs a unit.
#[inline]
pub(super) fn item<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    ready!(budget::available(cx));
    let before = budget::left();
    let polled = poll(cx);
    if polled.is_ready()
        && budget::left() == before
        && let Some(unit) = budget::take()
    {
        unit.spend();
    }
    polled
}
