//! Which of many futures that one task polls were woken: a waker for each.
//!
//! Each future of a set has a place in it, and a waker of its own that puts the place
//! into a list of the woken and wakes the task. The task polls only what it finds in
//! the list. All wakers share one allocation for the set and one for its places: to
//! clone one is to count.
//!
//! # Protocol
//! The list is a stack that is taken whole and turned round, so that who was woken
//! first is polled first. A place is `queued` from the wake that puts it there until
//! the task is about to poll it:
//!
//! ```text
//! a waker                                   the task
//! W1 exchanges `queued` for true            T1 registers its own waker
//!    (it was true: nothing more to do)      T2 takes the list
//! W2 puts the place onto the list           T3 exchanges `queued` for false
//! W3 found it empty: wakes the task         T4 polls the future
//! ```
//! No wake-up is lost. If W1 finds true, T3 is still to come: it acquires what W1
//! released, and T4 sees what the waker tells of. Else W2 follows. If T2 is before W2
//! and the list was empty then, the first to put something there wakes the task (W3),
//! which has registered (T1); those who come second rely on it. If W2 is before T2,
//! T2 takes the place.
//!
//! A place whose future has ended stays queued for ever, so that late wakes find
//! nothing to do.
//!
//! # Invariants
//! 1. `next` belongs to who made `queued` true until W2, then to the task until T3.
//! 2. A waker points to its place, and counts as an owner of the set. `home` of a place
//!    is where the set lies; it is written once, before there is a waker.
//!
//! # Rejected
//! - A map of bits: a poll looks through all of it to find one that was woken.
//! - Everybody wakes the task, not only the first: an exchange more for each wake, to
//!   spare those who come second from relying on the first.
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

/// No place: the end of a list.
const NONE: usize = usize::MAX;

/// See the module.
pub(crate) struct Woken {
    task: WakerCell,
    /// The place that was put onto the list last.
    head: AtomicUsize,
    links: Box<[Link]>,
}

/// A place of the set.
struct Link {
    home: AtomicPtr<Woken>,
    place: usize,
    queued: AtomicBool,
    next: AtomicUsize,
}

/// Places that are the task's: taken off the list, or there from the beginning.
#[derive(Debug)]
pub(crate) struct Turns {
    first: usize,
    last: usize,
}

impl Woken {
    /// A set of so many places, and all of them to be polled, from `first` on.
    pub(crate) fn new(count: usize, first: usize) -> (Arc<Self>, Turns) {
        let link = |place| Link {
            home: AtomicPtr::new(null_mut()),
            place,
            queued: AtomicBool::new(true),
            next: AtomicUsize::new(NONE),
        };
        let woken = Arc::new(Self {
            task: WakerCell::new(),
            head: AtomicUsize::new(NONE),
            links: (0..count).map(link).collect(),
        });
        for link in &woken.links {
            // Relaxed: what hands a waker to another thread hands this on too.
            link.home.store(Arc::as_ptr(&woken).cast_mut(), Relaxed);
        }
        let mut turns = Turns { first: NONE, last: NONE };
        (first..count).chain(0..first).for_each(|place| woken.append(&mut turns, place));
        (woken, turns)
    }

    /// Sees that the task is woken when a place is, and takes those that were.
    pub(crate) fn register_and_take(&self, task: &Waker, turns: &mut Turns) {
        if weakened!("woken_registers_first") {
            self.take(turns);
            self.task.register(task);
            return;
        }
        self.task.register(task);
        self.take(turns);
    }

    fn take(&self, turns: &mut Turns) {
        // Acquire: sees every `next` of the list. Pairs with the Release of `push`,
        // also of those before the last: each exchange goes on from the one before.
        let mut place = self.head.swap(NONE, Acquire);
        // Who came last is on top: turned round, and then behind those that wait.
        let mut turned = NONE;
        while place != NONE {
            // Relaxed: invariant 1: they are the task's now.
            let next = self.links[place].next.load(Relaxed);
            self.links[place].next.store(turned, Relaxed);
            turned = std::mem::replace(&mut place, next);
        }
        while turned != NONE {
            // Relaxed: as above.
            let next = self.links[turned].next.load(Relaxed);
            self.append(turns, turned);
            turned = next;
        }
    }

    fn append(&self, turns: &mut Turns, place: usize) {
        // Relaxed: invariant 1: they are the task's.
        self.links[place].next.store(NONE, Relaxed);
        match turns.last {
            NONE => turns.first = place,
            last => self.links[last].next.store(place, Relaxed),
        }
        turns.last = place;
    }

    /// The next place to be polled; it is still queued.
    pub(crate) fn next(&self, turns: &mut Turns) -> Option<usize> {
        let place = turns.first;
        if place == NONE {
            return None;
        }
        // Relaxed: invariant 1: they are the task's.
        turns.first = self.links[place].next.load(Relaxed);
        if turns.first == NONE {
            turns.last = NONE;
        }
        Some(place)
    }

    /// Calls `poll` with the waker of a place, which may be woken anew from then on.
    pub(crate) fn polling<R>(&self, place: usize, poll: impl FnOnce(&Waker) -> R) -> R {
        let late = weakened!("woken_reset_before_poll");
        if !late {
            self.reset(place);
        }
        let waker = self.borrowed_waker(place);
        let result = poll(&waker);
        if late {
            self.reset(place);
        }
        result
    }

    fn reset(&self, place: usize) {
        let order = if weakened!("woken_reset_sees") { Relaxed } else { AcqRel };
        // AcqRel: sees what those did who found it queued, and whoever finds it not
        // queued sees that `next` is free. Pairs with the exchange in `wake`.
        self.links[place].queued.swap(false, order);
    }

    /// The future of a place has ended: its wakers have nothing to do any more.
    pub(crate) fn retire(&self, place: usize) {
        // Relaxed: nobody reads anything because of it. If it is queued already, the
        // task finds it among its turns once more.
        self.links[place].queued.swap(true, Relaxed);
    }

    /// No wake-up is of interest any more: the task's waker is let go.
    pub(crate) fn forget_the_task(&self) {
        drop(self.task.take());
    }

    fn push(&self, link: &Link) {
        // Relaxed: a guess; the exchange below confirms it.
        let mut head = self.head.load(Relaxed);
        loop {
            // Relaxed: invariant 1: it is ours. The exchange publishes it.
            link.next.store(head, Relaxed);
            let order = if weakened!("woken_push_publishes") { Relaxed } else { Release };
            // Release: publishes `next` and what the waker tells of. Pairs with the
            // Acquire in `take`. Relaxed on failure: a better guess.
            match self.head.compare_exchange_weak(head, link.place, order, Relaxed) {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        if head == NONE && !weakened!("woken_first_wakes") {
            self.task.wake();
        }
    }

    /// A waker that is no owner: it lives only as long as `self` is borrowed.
    fn borrowed_waker(&self, place: usize) -> ManuallyDrop<Waker> {
        let link = std::ptr::from_ref(&self.links[place]);
        // SAFETY: the table's functions ask for 1. a pointer to a link of a living set,
        // which the borrow keeps alive, and 2. an owner to give up: it is not dropped.
        ManuallyDrop::new(unsafe { Waker::new(link.cast(), &TABLE) })
    }
}

impl std::fmt::Debug for Woken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Woken").field("places", &self.links.len()).finish_non_exhaustive()
    }
}

/// A static: a constant would have an address for each place that names it, and wakers of
/// one place would not be seen to be the same.
static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, let_go);

/// # Safety
/// 1. `link` is of a set that lives.
unsafe fn clone(link: *const ()) -> RawWaker {
    // SAFETY: 1. it lives, and `home` is where (invariant 2).
    unsafe { Arc::increment_strong_count(home(link)) };
    RawWaker::new(link, &TABLE)
}

/// # Safety
/// 1. `link` is of a set that lives.
/// 2. The waker is an owner of it, and is one no longer.
unsafe fn wake(link: *const ()) {
    // SAFETY: 1. and 2. are the caller's.
    let owner = unsafe { owner(link) };
    // SAFETY: 1. `owner` lives.
    unsafe { wake_by_ref(link) };
    drop(owner);
}

/// # Safety
/// 1. `link` is of a set that lives.
unsafe fn wake_by_ref(link: *const ()) {
    // SAFETY: 1. links live as long as their set, and are only shared.
    let link = unsafe { &*link.cast::<Link>() };
    // AcqRel: if it was queued, releases what the waker tells of; if not, sees that the
    // task is done with `next`. Pairs with the exchange in `reset`.
    if !link.queued.swap(true, AcqRel) {
        // SAFETY: 1. the set lives (invariant 2).
        unsafe { &*home(std::ptr::from_ref(link).cast()) }.push(link);
    }
}

/// # Safety
/// 1. `link` is of a set that lives.
/// 2. The waker is an owner of it, and is one no longer.
unsafe fn let_go(link: *const ()) {
    // SAFETY: 1. and 2. are the caller's.
    drop(unsafe { owner(link) });
}

/// # Safety
/// 1. `link` is of a set that lives.
/// 2. The caller gives up one of its owners.
unsafe fn owner(link: *const ()) -> Arc<Woken> {
    // SAFETY: 1. `home` is where an `Arc` keeps the set. 2. its count is ours now.
    unsafe { Arc::from_raw(home(link)) }
}

/// # Safety
/// 1. `link` is of a set that lives.
unsafe fn home(link: *const ()) -> *const Woken {
    // SAFETY: 1.
    let link = unsafe { &*link.cast::<Link>() };
    // Relaxed: written before there was a waker, and what handed the waker over handed
    // that over too.
    link.home.load(Relaxed)
}
