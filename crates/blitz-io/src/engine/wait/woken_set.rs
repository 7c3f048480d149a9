//! Records which of many futures of one task were woken, with a waker for each.
//!
//! Each future of a set has a slot in it, and a waker of its own that puts the slot into a list
//! of the woken and wakes the task. The task polls only the futures that it finds in the list. All
//! wakers share one allocation for the set and one for its slots: cloning a waker only increments
//! a count.
//!
//! # Protocol
//! The list is a stack that is taken as a whole and reversed, so that the future that was woken
//! first is polled first. A slot is `queued` from the wake that puts it there until the task is
//! about to poll it:
//!
//! ```text
//! a waker                                   the task
//! W1 exchanges `queued` for true            T1 registers its own waker
//!    (it was true: nothing more to do)      T2 takes the list
//! W2 puts the slot onto the list           T3 exchanges `queued` for false
//! W3 found it empty: wakes the task         T4 polls the future
//! ```
//! No wake-up is lost. If W1 finds true, T3 is still to come: it acquires what W1 released, and T4
//! sees what the waker was called for. Otherwise W2 follows. If T2 comes before W2 and the list was
//! empty then, the first waker to put something there wakes the task (W3), which has registered
//! (T1); wakers that come second rely on it. If W2 comes before T2, T2 takes the slot.
//!
//! A slot stays queued for ever once its future has ended, so that late wakes find nothing to do.
//!
//! # Invariants
//! 1. `next` belongs to the thread that made `queued` true until W2, then to the task until T3.
//! 2. A waker points to its slot, and counts as an owner of the set. `set` of a slot is the
//!    address of the set; it is written once, before there is a waker.
//!
//! # Rejected
//! - A bitmap: a poll would scan all of it to find one future that was woken.
//! - Every waker wakes the task, not only the first: one more exchange for each wake, only so that
//!   wakers that come second need not rely on the first.
//!
//! # Checked by
//! `a_wake_against_a_poll_is_not_lost`, `two_wakes_against_a_poll_are_not_lost`,
//! `a_second_wake_against_a_poll_is_seen`, `a_late_waker_outlives_the_set`; weakened as
//! `woken_reset_before_poll`, `woken_reset_sees`, `woken_registers_first`,
//! `woken_push_publishes`, `woken_first_wakes`.

use std::{
    mem::ManuallyDrop,
    ptr::null_mut,
    task::{RawWaker, RawWakerVTable, Waker},
};

use super::waker_cell::WakerCell;
use crate::engine::prim::{
    Arc, AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    weakened,
};

/// The slot number that marks the end of a list.
const NONE: usize = usize::MAX;

/// A set of slots for the futures of one task, and the list of those that were woken.
pub(crate) struct WokenSet {
    task: WakerCell,
    /// The slot that was pushed last.
    head: AtomicUsize,
    links: Box<[WokenLink]>,
}

/// The state of one slot of the set.
struct WokenLink {
    set: AtomicPtr<WokenSet>,
    slot: usize,
    queued: AtomicBool,
    next: AtomicUsize,
}

/// A list of slots that belong to the task: taken off the shared list, or there from the
/// beginning.
#[derive(Debug)]
pub(crate) struct PollList {
    first: usize,
    last: usize,
}

impl WokenSet {
    /// Creates a set of `count` slots, all of which are to be polled, from `first` on.
    pub(crate) fn new(count: usize, first: usize) -> (Arc<Self>, PollList) {
        let link = |slot| WokenLink {
            set: AtomicPtr::new(null_mut()),
            slot,
            queued: AtomicBool::new(true),
            next: AtomicUsize::new(NONE),
        };
        let woken = Arc::new(Self {
            task: WakerCell::new(),
            head: AtomicUsize::new(NONE),
            links: (0..count).map(link).collect(),
        });
        for link in &woken.links {
            // Relaxed: whatever passes a waker to another thread publishes this too.
            link.set.store(Arc::as_ptr(&woken).cast_mut(), Relaxed);
        }
        let mut poll_list = PollList { first: NONE, last: NONE };
        (first..count).chain(0..first).for_each(|slot| woken.append(&mut poll_list, slot));
        (woken, poll_list)
    }

    /// Registers the task to be woken when a slot is, and takes the slots that were woken.
    pub(crate) fn register_and_take(&self, task: &Waker, poll_list: &mut PollList) {
        if weakened!("woken_registers_first") {
            self.take(poll_list);
            self.task.register(task);
            return;
        }
        self.task.register(task);
        self.take(poll_list);
    }

    fn take(&self, poll_list: &mut PollList) {
        // Acquire: sees every `next` of the list. Pairs with the Release of every `push`, not only
        // the last: each exchange continues the release sequence of the one before.
        let mut slot = self.head.swap(NONE, Acquire);
        // The last slot that was woken is on top, so the list is reversed, and then appended to
        // the poll list.
        let mut reversed = NONE;
        while slot != NONE {
            // Relaxed: these slots belong to the task now (invariant 1).
            let next = self.links[slot].next.load(Relaxed);
            self.links[slot].next.store(reversed, Relaxed);
            reversed = std::mem::replace(&mut slot, next);
        }
        while reversed != NONE {
            // Relaxed: these slots belong to the task now (invariant 1).
            let next = self.links[reversed].next.load(Relaxed);
            self.append(poll_list, reversed);
            reversed = next;
        }
    }

    fn append(&self, poll_list: &mut PollList, slot: usize) {
        // Relaxed: these slots belong to the task (invariant 1).
        self.links[slot].next.store(NONE, Relaxed);
        match poll_list.last {
            NONE => poll_list.first = slot,
            last => self.links[last].next.store(slot, Relaxed),
        }
        poll_list.last = slot;
    }

    /// Takes the next slot to be polled, which is still queued.
    pub(crate) fn next(&self, poll_list: &mut PollList) -> Option<usize> {
        let slot = poll_list.first;
        if slot == NONE {
            return None;
        }
        // Relaxed: these slots belong to the task (invariant 1).
        poll_list.first = self.links[slot].next.load(Relaxed);
        if poll_list.first == NONE {
            poll_list.last = NONE;
        }
        Some(slot)
    }

    /// Calls `poll` with the waker of a slot, which may be woken again from then on.
    pub(crate) fn polling<R>(&self, slot: usize, poll: impl FnOnce(&Waker) -> R) -> R {
        let late = weakened!("woken_reset_before_poll");
        if !late {
            self.reset(slot);
        }
        let waker = self.borrowed_waker(slot);
        let result = poll(&waker);
        if late {
            self.reset(slot);
        }
        result
    }

    fn reset(&self, slot: usize) {
        let order = if weakened!("woken_reset_sees") { Relaxed } else { AcqRel };
        // AcqRel: sees what the wakers did that found it queued, and shows a waker that finds it
        // not queued that `next` is free. Pairs with the exchange in `wake_by_ref`.
        self.links[slot].queued.swap(false, order);
    }

    /// Marks a slot after its future has ended, so that its wakers do nothing any more.
    pub(crate) fn retire(&self, slot: usize) {
        // Relaxed: no other memory is read because of it. If the slot is queued already, the task
        // finds it in its poll list once more.
        self.links[slot].queued.swap(true, Relaxed);
    }

    /// Drops the task's waker, because no wake-up is of interest any more.
    pub(crate) fn clear_task(&self) {
        drop(self.task.take());
    }

    fn push(&self, link: &WokenLink) {
        // Relaxed: a guess; the exchange below confirms it.
        let mut head = self.head.load(Relaxed);
        loop {
            // Relaxed: `next` is ours (invariant 1). The exchange publishes it.
            link.next.store(head, Relaxed);
            let order = if weakened!("woken_push_publishes") { Relaxed } else { Release };
            // Release: publishes `next`, and what the waker was called for. Pairs with the Acquire
            // in `take`. Relaxed on failure: a better guess.
            match self.head.compare_exchange_weak(head, link.slot, order, Relaxed) {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        if head == NONE && !weakened!("woken_first_wakes") {
            self.task.wake();
        }
    }

    /// Creates a waker that is not counted as an owner, and lives only as long as `self` is
    /// borrowed.
    fn borrowed_waker(&self, slot: usize) -> ManuallyDrop<Waker> {
        let link = std::ptr::from_ref(&self.links[slot]);
        // SAFETY: the table's functions require 1. a pointer to a link of a living set, which the
        // borrow keeps alive, and 2. an owner to give up, which is never needed, because this waker
        // is not dropped.
        ManuallyDrop::new(unsafe { Waker::new(link.cast(), &TABLE) })
    }
}

impl std::fmt::Debug for WokenSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WokenSet").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

/// The functions of the wakers. A static, because a constant may have a different address at each
/// use, and then two wakers of one slot would not compare as equal.
static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// Clones a waker, which becomes an owner of the set.
///
/// # Safety
/// 1. `link` belongs to a living set.
unsafe fn clone(link: *const ()) -> RawWaker {
    // SAFETY: 1. the set lives, and `set` is the address in its `Arc` (invariant 2).
    unsafe { Arc::increment_strong_count(set_of(link)) };
    RawWaker::new(link, &TABLE)
}

/// Wakes, and gives up the waker.
///
/// # Safety
/// 1. `link` belongs to a living set.
/// 2. The waker is an owner of the set, and is not used as one afterwards.
unsafe fn wake(link: *const ()) {
    // SAFETY: 1. the set lives, our caller says. 2. The waker is given up here, so it is an owner
    // that is not used again.
    let owner = unsafe { owner(link) };
    // SAFETY: 1. `owner` keeps the set alive.
    unsafe { wake_by_ref(link) };
    drop(owner);
}

/// Puts the slot on the list, unless it is queued already.
///
/// # Safety
/// 1. `link` belongs to a living set.
unsafe fn wake_by_ref(link: *const ()) {
    // SAFETY: 1. links live as long as their set, and are only accessed by shared references.
    let link = unsafe { &*link.cast::<WokenLink>() };
    // AcqRel: if it was queued, releases what the waker was called for; if not, sees that the task
    // is done with `next`. Pairs with the exchange in `reset`.
    if !link.queued.swap(true, AcqRel) {
        // SAFETY: 1. the set lives, and `set` points to it (invariant 2).
        unsafe { &*set_of(std::ptr::from_ref(link).cast()) }.push(link);
    }
}

/// Drops a waker.
///
/// # Safety
/// 1. `link` belongs to a living set.
/// 2. The waker is an owner of the set, and is not used as one afterwards.
unsafe fn drop_waker(link: *const ()) {
    // SAFETY: 1. the set lives, our caller says. 2. The waker is given up here, so it is an owner
    // that is not used again.
    drop(unsafe { owner(link) });
}

/// Returns the ownership that a waker had.
///
/// # Safety
/// 1. `link` belongs to a living set.
/// 2. The caller gives up one of its owners.
unsafe fn owner(link: *const ()) -> Arc<WokenSet> {
    // SAFETY: 1. `set` is the address of the set in its `Arc`. 2. The count that the caller gives
    // up is now that of the returned `Arc`.
    unsafe { Arc::from_raw(set_of(link)) }
}

/// Returns the address of the set that a link belongs to.
///
/// # Safety
/// 1. `link` belongs to a living set.
unsafe fn set_of(link: *const ()) -> *const WokenSet {
    // SAFETY: 1. the set lives, and so do its links.
    let link = unsafe { &*link.cast::<WokenLink>() };
    // Relaxed: it was written before there was a waker, and whatever passed the waker to this
    // thread published it too.
    link.set.load(Relaxed)
}
