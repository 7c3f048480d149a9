//! The tasks of a `JoinSet`, and how the set learns of those that end.
//!
//! A task of a set carries a [`SetNode`] in its cell: its links in the set's list of members, its
//! link in the stack of tasks that ended, and a pointer to the set's shared part. So a member costs
//! no allocation besides its cell, and a spawn touches nothing that other threads write.
//!
//! # Which thread may touch what
//! 1. The *owner* is the code that has the [`Set`]: one thread at a time. The list of
//!    members, the chain `ready` and the counts beside them are the owner's alone.
//! 2. A node's `links` belong to the list of members.
//! 3. A node's `next` belongs to the thread that completes the task until it has
//!    pushed the task onto `done`, and then to the owner.
//! 4. The slot of the waker belongs to the owner, except from the exchange by which a completing
//!    thread replaces WAITING with its task until that thread has given the slot back.
//! 5. The output of a member that was taken from `done` is the owner's: the set has
//!    the rights of a `JoinHandle`.
//!
//! # Protocol
//! `done` is null, WAITING, the last task that ended, or CLOSED.
//! ```text
//! A task that ended                        The owner, with nothing in `ready`
//! T1 link = done, or null for WAITING      O1 takes all of `done`; if it held any: stops
//! T2 exchange done for the task            O2 takes the slot back if it is handed over
//! T3 if it was WAITING: take the waker     O3 writes its waker into the slot
//! T4 give the slot back                    O4 exchange null for WAITING; else O1
//! T5 wake
//! ```
//! T2 and O4 exchange the same word. If T2 comes first, O4 fails and O1 finds the
//! task; if O4 comes first, T2 finds WAITING and wakes the owner. Only one thread finds
//! WAITING. After T2 (after T4, if it found WAITING) a thread does not touch the set any more.
//!
//! The join waker of the task performs T1 to T5. The task is created with that waker, so that a
//! spawn needs no exchange for it, and the data of the waker is the task itself.
//!
//! The slot may still be handed over at O2, because T2 showed the owner its task before T4.
//! The owner then requests another poll: T3 and T4 are a few instructions.
//!
//! Closing (the set is dropped, or gives its members up), by the owner:
//! ```text
//! K1 remaining = members that were not seen to end + 1, and 1 more if the slot may be handed over
//! K2 exchange done for CLOSED; the tasks in it have ended
//! K3 detach the others; those that had not completed never reach T1
//! K4 remaining -= those of K2 and K3 + 1, and 1 if the slot is not handed over; at zero, free
//! ```
//! A task that finds CLOSED at T1 or T2 counts `remaining` down, and so does a thread that finds
//! at T4 that the owner has abandoned the slot. The last count frees the shared part.
//!
//! # Invariants
//! - The shared part lives as long as any task may reach T2 or T4.
//! - A cell in `done` or `ready` is kept by the set's reference; the cell of a task that is
//!   on its way to T2, by the life reference.
//!
//! # Rejected
//! - The queue's link of the header for `done`: shutdown completes tasks while their entry
//!   is still in a queue, and that entry uses the link. Eight bytes a task buy a rule
//!   with no exception.
//! - A count of the shared part in each task: two contended operations a task more.
//! - A waker cell beside the stack: one more exchange for each task that ends, and
//!   one more thing to keep alive after the push.
//! - Last in, first out: one walk less, but a set that is fed faster than it is
//!   joined would never return its oldest tasks.
//!
//! # Checked by
//! `an_end_against_a_waiting_owner_wakes_or_is_seen`, `two_ends_at_once_are_both_joined`,
//! `an_end_against_the_drop_of_the_set_frees_all_once`,
//! `two_ends_against_a_drop_with_a_waiter_free_all_once`,
//! `an_abort_of_all_against_an_end_joins_once`,
//! `giving_all_up_against_an_end_frees_all_once`,
//! `a_stop_of_a_queued_member_against_the_drop_of_the_set_frees_all_once`,
//! `a_waiter_that_changes_its_waker_against_an_end_is_sound`,
//! `sets_stress_exactly_once`; weakened as
//! `set_push_publishes`, `set_take_sees`, `set_wait_rechecks`, `set_wait_publishes`,
//! `set_slot_is_handed_over`, `set_late_end_counts`, `set_abandoned_slot_counts`.

use std::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{self, NonNull},
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker, ready},
};

use super::{
    budget,
    cell::{Header, Id},
    error::JoinError,
    extra::{Extra, Named},
    handle::{AbortHandle, JoinHandle, TaskRef},
    state::Detached,
    timestamp,
};
use crate::engine::{
    prim::{
        AtomicPtr, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        UnsafeCell, discard, weakened,
    },
    queue::{
        Link,
        list::{Links, List, Listed},
    },
    work::thread_context,
};

/// The data that a task of a set carries: its links, and the set's shared part.
#[repr(C)]
pub(crate) struct SetNode {
    links: Links<Header>,
    next: Link<Header>,
    shared: NonNull<Shared>,
}

// SAFETY: rules 2 and 3 of the module say which thread touches the links; the shared part may
// be used by all.
unsafe impl Send for SetNode {}
// SAFETY: through a shared node the links are touched by one thread at a time, by rules 2 and 3
// of the module, and the shared part may be used by all.
unsafe impl Sync for SetNode {}

impl Extra for SetNode {
    #[inline]
    fn initial_join_waker(task: NonNull<Header>) -> Option<Waker> {
        // SAFETY: the table keeps `RawWaker`'s rules for its one use, as the join waker of a task:
        // it is woken or dropped once, on any thread, and the waker owns nothing.
        Some(unsafe { Waker::from_raw(RawWaker::new(task.as_ptr().cast(), &VTABLE)) })
    }
}

// A node must be at the same offset in a cell whether or not the task has a name.
const _: () = assert!(align_of::<Named<SetNode>>() == align_of::<SetNode>());

/// Returns the node of a task.
///
/// # Safety
/// 1. The task is of a set: its cell has a `SetNode` or a `Named<SetNode>`. 2. The task is alive
///    during `'a`.
#[inline]
unsafe fn node<'a>(task: NonNull<Header>) -> &'a SetNode {
    // SAFETY: 1. in both types the node comes first, and at the same offset. 2. by our obligation 2
    // the task is alive.
    unsafe { Header::extra::<SetNode>(task) }
}

/// The table of the join waker of a set's tasks.
static VTABLE: RawWakerVTable = RawWakerVTable::new(never_cloned, ended, ended, forget);

/// Panics, because join wakers of this kind are never cloned.
///
/// # Safety
/// None: it is not called.
unsafe fn never_cloned(_: *const ()) -> RawWaker {
    unreachable!("only the thread that completes a task of a set has its join waker")
}

/// Drops the waker, which owns nothing.
///
/// # Safety
/// None: the waker owns nothing.
unsafe fn forget(_: *const ()) {}

/// Adds a task that ended to its set, and wakes the owner if that waits: T1 to T5.
///
/// # Safety
/// 1. `data` is a task of a set, complete, and the caller has the life reference. 2. It
///    is called once.
unsafe fn ended(data: *const ()) {
    // SAFETY: obligation 1: the pointer was made from a `NonNull`.
    let task = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<Header>()) };
    // SAFETY: 1. by obligation 1 it is a task of a set. 2. the life reference keeps it alive.
    let node = unsafe { node(task) };
    // SAFETY: a task that the owner has not seen to end is counted in `remaining`, which keeps the
    // shared part alive.
    let shared = unsafe { node.shared.as_ref() };
    // Acquire: CLOSED publishes `remaining`. Pairs with the AcqRel in `close`.
    let mut top = shared.done.load(Acquire);
    loop {
        if top == CLOSED {
            // SAFETY: 1. we are a task of this set that found CLOSED, once by obligation 2.
            return unsafe { Shared::count_late_end(node.shared) };
        }
        let below = if top == WAITING { None } else { NonNull::new(top) };
        // SAFETY: by rule 3 the link is ours until the exchange succeeds.
        unsafe { node.next.set(below) };
        let order = if weakened!("set_push_publishes") { Acquire } else { AcqRel };
        // AcqRel: publishes the output and the link. Pairs with the Acquire in `take_done` and
        // the AcqRel in `close`. And sees the owner's waker. Pairs with the Release in `wait`.
        // Acquire on failure: CLOSED publishes `remaining`. Pairs with the AcqRel in `close`.
        match shared.done.compare_exchange_weak(top, task.as_ptr(), order, Acquire) {
            Ok(_) => break,
            Err(seen) => top = seen,
        }
    }
    if top == WAITING {
        // SAFETY: 1. we exchanged WAITING for our task, once.
        unsafe { Shared::wake_owner(node.shared) };
    }
}

/// Bytes at addresses that no cell has.
static MARKS: [u8; 2] = [0; 2];
/// The value of `done` while no task has ended and the owner waits.
const WAITING: *mut Header = (&raw const MARKS[0]).cast_mut().cast();
/// The value of `done` after the owner has closed the set.
const CLOSED: *mut Header = (&raw const MARKS[1]).cast_mut().cast();

/// The part of a set that the owner shares with the tasks.
struct Shared {
    /// The members that ended since the owner last took them, the last one first; or a mark.
    done: AtomicPtr<Header>,
    /// OWN, HANDED_OVER or ABANDONED.
    slot: AtomicUsize,
    /// The number of tasks and slots that may still use this, after closing.
    remaining: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
    #[cfg(test)]
    gone: Option<std::sync::Arc<crate::engine::prim::ids::Tally>>,
}

/// The slot is the owner's.
const OWN: usize = 0;
/// The slot belongs to the thread that finds, or has found, WAITING.
const HANDED_OVER: usize = 1;
/// The slot is still handed over, and the owner is gone.
const ABANDONED: usize = 2;

impl Shared {
    fn new() -> NonNull<Self> {
        let shared = Self {
            done: AtomicPtr::new(ptr::null_mut()),
            slot: AtomicUsize::new(OWN),
            remaining: AtomicUsize::new(0),
            waker: UnsafeCell::new(None),
            #[cfg(test)]
            gone: None,
        };
        NonNull::from(Box::leak(Box::new(shared)))
    }

    /// Wakes the owner: T3 to T5. After T4 a user's waker runs, and nothing of the set is used.
    ///
    /// # Safety
    /// 1. The caller exchanged WAITING for its task, and this is called once for that.
    #[cold]
    unsafe fn wake_owner(this: NonNull<Self>) {
        // SAFETY: a slot that is handed over keeps the shared part alive.
        let shared = unsafe { this.as_ref() };
        // SAFETY: by obligation 1 we exchanged WAITING, so by rule 4 the slot is ours.
        let waker = shared.waker.with_mut(|slot| unsafe { (*slot).take() });
        // AcqRel: gives the slot back. Pairs with the Acquire in `has_slot`. And sees what the
        // owner did before it abandoned the slot. Pairs with the AcqRel in `close`.
        let before = shared.slot.swap(OWN, AcqRel);
        if before == ABANDONED && !weakened!("set_abandoned_slot_counts") {
            // SAFETY: 1. the owner counted the slot, for which we stand.
            unsafe { Self::count_down(this, 1) };
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Counts a task that ended after the set was closed.
    ///
    /// # Safety
    /// 1. The caller is a task of this set that found CLOSED.
    #[cold]
    unsafe fn count_late_end(this: NonNull<Self>) {
        if weakened!("set_late_end_counts") {
            return;
        }
        // SAFETY: 1. the caller's task is one of those that the owner counted.
        unsafe { Self::count_down(this, 1) };
    }

    /// Counts `remaining` down, and frees the shared part at zero.
    ///
    /// # Safety
    /// 1. The set is closing, and the caller stands for `count` of the uses that it counted.
    unsafe fn count_down(this: NonNull<Self>, count: usize) {
        // SAFETY: by obligation 1 `remaining` is not zero yet, so the shared part is alive.
        let remaining = unsafe { &this.as_ref().remaining };
        // AcqRel: every thread's last use happens before it is freed. Pairs with itself.
        if remaining.fetch_sub(count, AcqRel) == count {
            // A user's waker is dropped too, if one was left in the slot.
            // SAFETY: no user is left; the pointer came from `Box::leak`.
            discard(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }
}

#[cfg(test)]
impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(gone) = &self.gone {
            gone.add();
        }
    }
}

/// A task as a member of its set's list. The set's reference keeps it; the list does not give
/// that up.
#[derive(Debug, Clone, Copy)]
struct SetMember(NonNull<Header>);

// SAFETY: the pointer is the owner; a cell stays where it is, and the set keeps it
// while it is a member. Only this list touches the links (rule 2 of the module).
unsafe impl Listed for SetMember {
    type Node = Header;

    #[inline]
    fn into_ptr(self) -> NonNull<Header> {
        self.0
    }

    /// Makes a member from its pointer.
    ///
    /// # Safety
    /// 1. and 2. The obligations of [`Listed::from_ptr`].
    #[inline]
    unsafe fn from_ptr(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    /// Returns the links of a member.
    ///
    /// # Safety
    /// 1. The obligation of [`Listed::links`].
    #[inline]
    unsafe fn links(ptr: NonNull<Header>) -> NonNull<Links<Header>> {
        // SAFETY: 1. members are tasks of a set. 2. by our obligation the node is alive.
        NonNull::from(&unsafe { node(ptr) }.links)
    }
}

/// The tasks of a set with outputs `T`. Dropping it aborts them.
pub(crate) struct Set<T> {
    /// The tasks that were not joined yet.
    members: List<SetMember>,
    /// The first of those members that were seen to end, in the order of their ends.
    ready: Option<NonNull<Header>>,
    /// The number of members that were not seen to end.
    running: usize,
    /// The shared part, which is created with the first member.
    shared: Option<NonNull<Shared>>,
    /// True if the slot may be handed over.
    handed_over: bool,
    outputs: PhantomData<T>,
}

// SAFETY: a set returns outputs by value, or drops them, on the thread that has it, and gives out
// no reference to one: through a `&Set` only its length can be read.
unsafe impl<T: Send> Send for Set<T> {}
// SAFETY: through a `&Set` only its length can be read, and no reference to an output is given out.
unsafe impl<T: Send> Sync for Set<T> {}

impl<T> Unpin for Set<T> {}

/// The result of an attempt to wait.
#[must_use]
enum WaitOutcome {
    /// The owner waits, and the next task that ends will wake it.
    Waiting,
    /// A task ended meanwhile, so the owner must check again.
    Retry,
    /// The thread that completed the last task has the slot for a few more instructions, so the
    /// owner must be polled again.
    Again,
}

/// A member that ended: its ID and its result.
pub(crate) type EndedMember<T> = (Id, Result<T, JoinError>);

impl<T> Set<T> {
    pub(crate) const fn new() -> Self {
        Self {
            members: List::new(),
            ready: None,
            running: 0,
            shared: None,
            handed_over: false,
            outputs: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Creates the node that a new task of this set must carry. The task must be spawned and then
    /// adopted. The spawn may panic before it has made the task, but not after, because the
    /// task would report its end to a set that does not count it.
    #[inline]
    pub(crate) fn node(&mut self) -> SetNode {
        let shared = *self.shared.get_or_insert_with(Shared::new);
        SetNode { links: Links::new(), next: Link::new(), shared }
    }

    /// Adds a task to the set as a member.
    ///
    /// # Safety
    /// 1. The task is new and was made with a node of this set, named or not, and nothing else
    ///    was done with the set since that node was made.
    #[inline]
    pub(crate) unsafe fn adopt(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let task = task.into_header();
        self.members.push_front(SetMember(task));
        self.running += 1;
        // SAFETY: 1. a task with a node is created with a reference for this handle.
        AbortHandle::new(unsafe { TaskRef::from_counted(task) })
    }

    /// Returns the next member that ended, or `None` if the set is empty; registers the waker
    /// otherwise.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<EndedMember<T>>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        let unit = ready!(budget::poll_proceed(cx));
        loop {
            if let Some(ended) = self.try_next() {
                unit.spend();
                return Poll::Ready(Some(ended));
            }
            match self.wait(cx.waker()) {
                WaitOutcome::Waiting => {
                    thread_context::waits_for(timestamp::WaitReason::Set);
                    return Poll::Pending;
                }
                WaitOutcome::Retry => {}
                WaitOutcome::Again => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    /// Returns the next member that ended, if one has, and leaves a registered waker alone.
    #[inline]
    pub(crate) fn try_next(&mut self) -> Option<EndedMember<T>> {
        if self.ready.is_none() {
            self.take_done();
        }
        let task = self.pop_ready()?;
        // SAFETY: the set's reference keeps the task alive.
        let id = unsafe { task.as_ref() }.id;
        let mut output = Poll::Pending;
        // SAFETY: 1. the task is complete, and the output is ours by rule 5; a ready member
        // was not read before. 2. `adopt` took a handle for `T`, so `T` is its output.
        unsafe { Header::read_output(task, (&raw mut output).cast()) };
        // SAFETY: 1. the set's reference is given up, because the task is no member any more.
        drop(unsafe { TaskRef::from_counted(task) });
        match output {
            Poll::Ready(output) => Some((id, output)),
            Poll::Pending => unreachable!("a task that ended has an output"),
        }
    }

    /// Aborts all members; they stay in the set, and end as cancelled.
    pub(crate) fn abort_all(&mut self) {
        self.members.for_each(|task| {
            // SAFETY: 1. the set's reference, which is only borrowed, because it is not dropped.
            ManuallyDrop::new(unsafe { TaskRef::from_counted(task) }).abort();
        });
    }

    /// Detaches all members, which continue to run.
    pub(crate) fn detach_all(&mut self) {
        if let Some(waker) = self.close(|_| {}) {
            // Wakes a task that waits for the set, because nothing is left to wait for.
            waker.wake();
        }
    }

    /// Takes all tasks that ended from `done`: O1, without ending a wait.
    #[inline]
    fn take_done(&mut self) {
        let Some(shared) = self.shared else { return };
        // SAFETY: the shared part lives until the set is closed.
        let shared = unsafe { shared.as_ref() };
        // Relaxed: a first check; the exchange below orders.
        let top = shared.done.load(Relaxed);
        if top.is_null() || top == WAITING {
            return;
        }
        let order = if weakened!("set_take_sees") { Relaxed } else { Acquire };
        // Acquire: sees the outputs and the links. Pairs with the AcqRel in `ended`. It cannot
        // return WAITING, because only the owner writes that.
        let top = shared.done.swap(ptr::null_mut(), order);
        self.keep_ready(top);
    }

    /// Makes the stack from `top` the chain `ready`, which must be empty, in the order of the
    /// tasks' ends; returns their number.
    fn keep_ready(&mut self, top: *mut Header) -> usize {
        let mut count = 0;
        let mut first = None;
        let mut next = NonNull::new(top);
        while let Some(task) = next {
            // SAFETY: the stack was taken whole, so by rule 3 the links are ours, and the set's
            // references keep the cells.
            let link = unsafe { &node(task).next };
            // SAFETY: by rule 3 the link is ours, because the stack was taken whole.
            unsafe {
                next = link.get();
                link.set(first);
            }
            first = Some(task);
            count += 1;
        }
        self.running -= count;
        debug_assert!(self.ready.is_none(), "the chain of those that ended is joined first");
        self.ready = first;
        count
    }

    /// Takes the first of `ready` out of the set.
    #[inline]
    fn pop_ready(&mut self) -> Option<NonNull<Header>> {
        let task = self.ready?;
        // SAFETY: by rule 3 the link is ours; the set's reference keeps the cell.
        self.ready = unsafe { node(task).next.get() };
        // SAFETY: 1. the set's reference keeps the cell. 2. the task is a member of this set.
        unsafe { self.members.remove(task) };
        Some(task)
    }

    /// Registers the waker: O2 to O4.
    fn wait(&mut self, waker: &Waker) -> WaitOutcome {
        let Some(shared) = self.shared else { unreachable!("a set with members has it") };
        // SAFETY: the shared part lives until the set is closed.
        let shared = unsafe { shared.as_ref() };
        if !self.has_slot(shared) {
            return WaitOutcome::Again;
        }
        // SAFETY: O2 made the slot ours, by rule 4.
        let old = shared.waker.with_mut(|slot| unsafe { (*slot).take() });
        // A replaced waker is dropped when this returns, after O4: its drop is user code, and may
        // run the very task that is waited for.
        let (new, _replaced) = match old {
            Some(old) if old.will_wake(waker) => (old, None),
            old => (waker.clone(), old),
        };
        // O3.
        // SAFETY: O2 made the slot ours, by rule 4.
        shared.waker.with_mut(|slot| unsafe { *slot = Some(new) });
        // Relaxed: published by O4.
        shared.slot.store(HANDED_OVER, Relaxed);
        if weakened!("set_wait_rechecks") {
            // Assumes that nothing could have ended since O1. AcqRel: stronger than O4, so that
            // only the missing check is at fault.
            shared.done.swap(WAITING, AcqRel);
            self.handed_over = true;
            return WaitOutcome::Waiting;
        }
        let order = if weakened!("set_wait_publishes") { Relaxed } else { Release };
        // O4. Release: publishes the waker. Pairs with the AcqRel in `ended`. Relaxed on failure:
        // O1 checks again.
        match shared.done.compare_exchange(ptr::null_mut(), WAITING, order, Relaxed) {
            Ok(_) => {
                self.handed_over = true;
                WaitOutcome::Waiting
            }
            Err(_) => {
                // Relaxed: no thread saw WAITING, so none accesses the slot.
                shared.slot.store(OWN, Relaxed);
                WaitOutcome::Retry
            }
        }
    }

    /// Returns true if the slot is the owner's now; ends a wait that is still on: O2.
    fn has_slot(&mut self, shared: &Shared) -> bool {
        if !self.handed_over {
            return true;
        }
        // Relaxed: the slot holds what this thread wrote.
        let unwaited = shared.done.compare_exchange(WAITING, ptr::null_mut(), Relaxed, Relaxed);
        // Acquire: the thread that had the slot has left it. Pairs with the AcqRel in
        // `wake_owner`.
        let is_back = unwaited.is_ok() || shared.slot.load(Acquire) == OWN;
        self.handed_over = !is_back && !weakened!("set_slot_is_handed_over");
        !self.handed_over
    }

    /// Gives up all members: K1 to K4. Calls `end` with those that may still run. Returns the
    /// waker of the task that waits, if one does.
    fn close(&mut self, end: impl Fn(&TaskRef)) -> Option<Waker> {
        let this = self.shared.take()?;
        // SAFETY: the shared part lives until K4, because the owner is counted.
        let shared = unsafe { this.as_ref() };
        let handed_over = std::mem::take(&mut self.handed_over);
        // K1. Relaxed: published by K2.
        shared.remaining.store(self.running + 1 + usize::from(handed_over), Relaxed);
        // K2. AcqRel: publishes `remaining` to tasks that find CLOSED, and sees what tasks
        // published that ended before. Pairs with `ended`, both ways.
        let top = shared.done.swap(CLOSED, AcqRel);
        let mut counted = 1;
        let mut waker = None;
        self.drop_ready();
        if top == WAITING {
            // SAFETY: no thread found WAITING, and none will, so by rule 4 the slot is ours.
            waker = shared.waker.with_mut(|slot| unsafe { (*slot).take() });
            counted += 1;
        } else {
            counted += self.keep_ready(top);
            // AcqRel: the slot was given back, or the thread that has it counts for itself. Pairs
            // with the AcqRel in `wake_owner`, both ways.
            if handed_over && shared.slot.swap(ABANDONED, AcqRel) == OWN {
                counted += 1;
            }
        }
        self.drop_ready();
        // K3.
        while let Some(SetMember(task)) = self.members.pop_front() {
            // SAFETY: 1. the set's reference, which it gives up.
            let task = unsafe { TaskRef::from_counted(task) };
            end(&task);
            // SAFETY: 1. the task was a member until now, and its output is not read again.
            counted += usize::from(unsafe { leave(&task) });
        }
        self.running = 0;
        // K4.
        // SAFETY: 1. the counted tasks will not come, and the owner is done.
        unsafe { Shared::count_down(this, counted) };
        waker
    }

    /// Drops the outputs of the tasks that were seen to end, and gives up these tasks.
    fn drop_ready(&mut self) {
        while let Some(task) = self.pop_ready() {
            // SAFETY: 1. the task ended, so by rule 5 the output is ours; it was not read.
            unsafe { Header::drop_output(task) };
            // SAFETY: 1. the set's reference is given up, because the task is no member any more.
            drop(unsafe { TaskRef::from_counted(task) });
        }
    }
}

/// Gives up the set's interest in a task that was not seen to end. Returns true if the task
/// now will never report its end.
///
/// # Safety
/// 1. The task was a member, and the set has not read its output.
unsafe fn leave(task: &TaskRef) -> bool {
    let header = task.header();
    match header.state.detach() {
        Detached::DropWaker => {
            // SAFETY: JOIN_WAKER was cleared before completion, so by rule 4 of the module `task`
            // the waker is ours.
            drop(header.join_waker.with_mut(|field| unsafe { (*field).take() }));
            true
        }
        Detached::DropOutput => {
            // SAFETY: 1. the task completed while the set was interested, so the output is ours.
            unsafe { Header::drop_output(task.as_ptr()) };
            false
        }
        Detached::Gone => unreachable!("a task of a set has its join waker until it completes"),
    }
}

impl<T> Drop for Set<T> {
    fn drop(&mut self) {
        // The waker is a user's, and its panic could be reported to no caller.
        discard(self.close(TaskRef::abort));
    }
}

#[cfg(test)]
mod tests;
