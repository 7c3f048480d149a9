//! The tasks of a set, and how those that end come back to it.
//!
//! A task of a set carries a [`Node`] in its cell: its links in the set's list of
//! members, its link in the stack of those that ended, and the way to the set's
//! shared part. So a member costs no allocation besides its cell, and a spawn
//! touches nothing that others write.
//!
//! # Who may touch what
//! 1. The *owner* is whoever has the [`Set`]: one thread at a time. The list of
//!    members, the chain `ready` and the counts beside them are its alone.
//! 2. A node's `links` belong to the list of members.
//! 3. A node's `next` belongs to the thread that completes the task until it has
//!    pushed it onto `done`, and then to the owner.
//! 4. The waker's slot belongs to the owner, except from the moment at which a
//!    completing thread has exchanged WAITING for its task until that thread has
//!    given the slot back.
//! 5. The output of a member that was taken from `done` is the owner's: the set has
//!    the rights of a `JoinHandle`.
//!
//! # Protocol
//! `done` is null, WAITING, the last task that ended, or CLOSED.
//! ```text
//! A task that ended                        The owner, with nothing in `ready`
//! T1 link = done, or null for WAITING      O1 takes `done` whole; if there is something: done
//! T2 exchange done for the task            O2 takes the slot back if it is lent
//! T3 if it was WAITING: take the waker     O3 writes its waker into the slot
//! T4 give the slot back                    O4 exchange null for WAITING; else O1
//! T5 wake
//! ```
//! T2 and O4 exchange the same word. If T2 comes first O4 fails and O1 finds the
//! task; if O4 does, T2 finds WAITING and wakes. Only one thread finds it, and after
//! T2 (after T4, if it found it) it touches nothing of the set any more.
//!
//! T1 to T5 are the join waker of the task: it is there from birth, so that a spawn
//! needs no exchange for it, and its data is the task itself.
//!
//! The slot may still be lent at O2, since T2 showed the owner its task before T4.
//! The owner then asks to be polled again: T3 and T4 are a few instructions.
//!
//! Closing (the set is dropped, or gives its members up), by the owner:
//! ```text
//! K1 left = members that were not seen to end + 1, and 1 more if the slot may be lent
//! K2 exchange done for CLOSED; who was in it has ended
//! K3 detach the others; those that had not completed never reach T1
//! K4 left -= those of K2 and K3 + 1, and 1 if the slot is not lent; at zero, free
//! ```
//! A task that finds CLOSED at T1 or T2 counts `left` down; so does at T4 who finds
//! that the owner has abandoned the slot. The last one frees the shared part.
//!
//! # Invariants
//! - The shared part lives as long as any task may reach T2 or T4.
//! - A cell in `done` or `ready` is kept by the set's reference; one whose task is on
//!   its way to T2, by life's.
//!
//! # Rejected
//! - The queue's link of the header for `done`: shutdown completes tasks whose entry
//!   is still in a queue, and that entry uses the link. Eight bytes a task buy a rule
//!   with no exception.
//! - A count of the shared part in each task: two contended operations a task more.
//! - A waker cell beside the stack: one more exchange for each task that ends, and
//!   something to keep alive after the push.
//! - Last in, first out: one walk less, but a set that is fed faster than it is
//!   joined would never come to its oldest.
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
//! `set_slot_is_lent`, `set_late_end_counts`, `set_abandoned_slot_counts`.

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
    moment,
    state::Detached,
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
    work::current,
};

/// What a task of a set carries.
#[repr(C)]
pub(crate) struct Node {
    links: Links<Header>,
    next: Link<Header>,
    shared: NonNull<Shared>,
}

// SAFETY: rules 2 and 3 say who touches the links; the shared part is for all.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Extra for Node {
    #[inline]
    fn born_waker(task: NonNull<Header>) -> Option<Waker> {
        // SAFETY: the table keeps `RawWaker`'s rules for the one place that has it, the
        // join waker of a task: it is woken or dropped once, on any thread, and the
        // waker holds nothing.
        Some(unsafe { Waker::from_raw(RawWaker::new(task.as_ptr().cast(), &VTABLE)) })
    }
}

// A node must be found in a cell whether or not the task has a name.
const _: () = assert!(align_of::<Named<Node>>() == align_of::<Node>());

/// # Safety
/// 1. The task is of a set: its cell has a `Node` or a `Named<Node>`. 2. It is alive
///    during `'a`.
#[inline]
unsafe fn node<'a>(task: NonNull<Header>) -> &'a Node {
    // SAFETY: 1.: in both the node comes first, and at the same place. 2.
    unsafe { Header::extra::<Node>(task) }
}

/// The join waker of a set's tasks.
static VTABLE: RawWakerVTable = RawWakerVTable::new(never_cloned, ended, ended, forget);

/// # Safety
/// None: it is not called.
unsafe fn never_cloned(_: *const ()) -> RawWaker {
    unreachable!("only the thread that completes a task of a set has its join waker")
}

/// # Safety
/// None: the waker holds nothing.
unsafe fn forget(_: *const ()) {}

/// T1 to T5.
///
/// # Safety
/// 1. `data` is a task of a set, complete, and the caller has life's reference. 2. It
///    is called once.
unsafe fn ended(data: *const ()) {
    // SAFETY: 1.: it was a `NonNull`.
    let task = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<Header>()) };
    // SAFETY: 1.
    let node = unsafe { node(task) };
    // SAFETY: a task that was not seen to end is counted in `left`.
    let shared = unsafe { node.shared.as_ref() };
    // Acquire: CLOSED publishes `left`. Pairs with the AcqRel in `close`.
    let mut top = shared.done.load(Acquire);
    loop {
        if top == CLOSED {
            // SAFETY: we are one of those that are counted, and go once by 2.
            return unsafe { Shared::count_late_end(node.shared) };
        }
        let below = if top == WAITING { None } else { NonNull::new(top) };
        // SAFETY: rule 3: the link is ours until the exchange succeeds.
        unsafe { node.next.set(below) };
        let order = if weakened!("set_push_publishes") { Acquire } else { AcqRel };
        // AcqRel: publishes the output and the link; pairs with the Acquire in
        // `take_done` and the AcqRel in `close`. And sees the owner's waker; pairs with
        // the Release in `wait`. Acquire on failure: as the load above.
        match shared.done.compare_exchange_weak(top, task.as_ptr(), order, Acquire) {
            Ok(_) => break,
            Err(seen) => top = seen,
        }
    }
    if top == WAITING {
        // SAFETY: we exchanged WAITING, once.
        unsafe { Shared::wake_owner(node.shared) };
    }
}

/// Addresses that no cell has.
static MARKS: [u8; 2] = [0; 2];
/// In `done`: nothing has ended, and the owner waits.
const WAITING: *mut Header = (&raw const MARKS[0]).cast_mut().cast();
/// In `done`: the owner is gone.
const CLOSED: *mut Header = (&raw const MARKS[1]).cast_mut().cast();

/// What the owner shares with the tasks of its set.
struct Shared {
    /// Members that ended since the owner looked, the last first; or a mark.
    done: AtomicPtr<Header>,
    /// OWN, LENT or ABANDONED.
    slot: AtomicUsize,
    /// After closing: who may still come.
    left: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
    #[cfg(test)]
    gone: Option<std::sync::Arc<crate::engine::prim::ids::Tally>>,
}

/// The slot is the owner's.
const OWN: usize = 0;
/// The slot is, or will be, the one's that finds WAITING.
const LENT: usize = 1;
/// It is still lent, and the owner is gone.
const ABANDONED: usize = 2;

impl Shared {
    fn new() -> NonNull<Self> {
        let shared = Self {
            done: AtomicPtr::new(ptr::null_mut()),
            slot: AtomicUsize::new(OWN),
            left: AtomicUsize::new(0),
            waker: UnsafeCell::new(None),
            #[cfg(test)]
            gone: None,
        };
        NonNull::from(Box::leak(Box::new(shared)))
    }

    /// T3 to T5. After T4 a user's waker runs, and nothing of the set is used.
    ///
    /// # Safety
    /// 1. The caller exchanged WAITING for its task, and this is called once for that.
    #[cold]
    unsafe fn wake_owner(this: NonNull<Self>) {
        // SAFETY: a slot that is lent keeps the shared part.
        let shared = unsafe { this.as_ref() };
        // SAFETY: rule 4, by 1.
        let waker = shared.waker.with_mut(|slot| unsafe { (*slot).take() });
        // AcqRel: gives the slot back; pairs with the Acquire in `has_slot`. Sees what
        // the owner did before it abandoned the slot; pairs with the AcqRel in `close`.
        let before = shared.slot.swap(OWN, AcqRel);
        if before == ABANDONED && !weakened!("set_abandoned_slot_counts") {
            // SAFETY: the owner counted the slot.
            unsafe { Self::count_down(this, 1) };
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// # Safety
    /// 1. The caller is a task of this set that found CLOSED.
    #[cold]
    unsafe fn count_late_end(this: NonNull<Self>) {
        if weakened!("set_late_end_counts") {
            return;
        }
        // SAFETY: 1.
        unsafe { Self::count_down(this, 1) };
    }

    /// # Safety
    /// 1. The set is closing, and the caller stands for `count` of those it counted.
    unsafe fn count_down(this: NonNull<Self>, count: usize) {
        // SAFETY: the count keeps it alive.
        let left = unsafe { &this.as_ref().left };
        // AcqRel: everyone's last touch happens before it is freed. Pairs with itself.
        if left.fetch_sub(count, AcqRel) == count {
            // With it goes a user's waker, if one was left in the slot.
            // SAFETY: nobody is left; it came from `Box::leak`.
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

/// A task as the list of its set knows it: kept by the set's reference, which the list
/// does not give up.
#[derive(Debug, Clone, Copy)]
struct Entry(NonNull<Header>);

// SAFETY: the pointer is the owner; a cell stays where it is, and the set keeps it
// while it is a member. Only this list touches the links (rule 2).
unsafe impl Listed for Entry {
    type Node = Header;

    #[inline]
    fn into_ptr(self) -> NonNull<Header> {
        self.0
    }

    /// # Safety
    /// 1. and 2. As the trait says.
    #[inline]
    unsafe fn from_ptr(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    /// # Safety
    /// 1. As the trait says.
    #[inline]
    unsafe fn links(ptr: NonNull<Header>) -> NonNull<Links<Header>> {
        // SAFETY: 1.; members are tasks of a set.
        NonNull::from(&unsafe { node(ptr) }.links)
    }
}

/// The tasks of a set with outputs `T`. Dropping it aborts them.
pub(crate) struct Set<T> {
    /// Those that were not joined.
    members: List<Entry>,
    /// Of these, those that were seen to end, the first first.
    ready: Option<NonNull<Header>>,
    /// How many were not.
    running: usize,
    /// Made with the first member.
    shared: Option<NonNull<Shared>>,
    /// The slot may be lent.
    lent: bool,
    outputs: PhantomData<T>,
}

// SAFETY: a set hands out outputs by value, or drops them, on the thread that has it,
// and lends none: whoever has a `&Set` can ask for its length.
unsafe impl<T: Send> Send for Set<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Set<T> {}

impl<T> Unpin for Set<T> {}

/// How an attempt to wait ended.
#[must_use]
enum Wait {
    /// The next end wakes.
    Waiting,
    /// Something ended meanwhile: look again.
    Look,
    /// The last end has the slot for a few more instructions: come again.
    Again,
}

/// A member that ended: who it was, and what came out.
pub(crate) type Ended<T> = (Id, Result<T, JoinError>);

impl<T> Set<T> {
    pub(crate) const fn new() -> Self {
        Self {
            members: List::new(),
            ready: None,
            running: 0,
            shared: None,
            lent: false,
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

    /// What a new task of this set must carry. Unless it is spawned, and then adopted,
    /// it means nothing. A spawn may panic before it has made the task, not after: the
    /// task would tell the set of its end, which does not count it.
    #[inline]
    pub(crate) fn node(&mut self) -> Node {
        let shared = *self.shared.get_or_insert_with(Shared::new);
        Node { links: Links::new(), next: Link::new(), shared }
    }

    /// Makes a task a member.
    ///
    /// # Safety
    /// 1. It is a new task that was made with a node of this set, named or not, and
    ///    nothing else was done with the set since that node was made.
    #[inline]
    pub(crate) unsafe fn adopt(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let task = task.into_header();
        self.members.push_front(Entry(task));
        self.running += 1;
        // SAFETY: a task with a node is born with a reference for this.
        AbortHandle::new(unsafe { TaskRef::from_counted(task) })
    }

    /// The next member that ended, or `None` once there is none; registers the waker
    /// otherwise.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ended<T>>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        let unit = ready!(budget::proceed(cx));
        loop {
            if let Some(ended) = self.try_next() {
                unit.spend();
                return Poll::Ready(Some(ended));
            }
            match self.wait(cx.waker()) {
                Wait::Waiting => {
                    current::waits_for(moment::Wait::Set);
                    return Poll::Pending;
                }
                Wait::Look => {}
                Wait::Again => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    /// The next member that ended, if one has; disturbs nobody who waits.
    #[inline]
    pub(crate) fn try_next(&mut self) -> Option<Ended<T>> {
        if self.ready.is_none() {
            self.take_done();
        }
        let task = self.pop_ready()?;
        // SAFETY: the set's reference keeps it.
        let id = unsafe { task.as_ref() }.id;
        let mut output = Poll::Pending;
        // SAFETY: 1. it is complete, and the output is ours by rule 5; a ready member
        // was not read before. 2. `adopt` saw that `T` is its output.
        unsafe { Header::read_output(task, (&raw mut output).cast()) };
        // SAFETY: the set's reference, given up: it is no member any more.
        drop(unsafe { TaskRef::from_counted(task) });
        match output {
            Poll::Ready(output) => Some((id, output)),
            Poll::Pending => unreachable!("a task that ended has an output"),
        }
    }

    /// Aborts all members; they stay, and end as cancelled.
    pub(crate) fn abort_all(&mut self) {
        self.members.for_each(|task| {
            // SAFETY: the set's reference, borrowed.
            ManuallyDrop::new(unsafe { TaskRef::from_counted(task) }).abort();
        });
    }

    /// Gives up all members, which go on.
    pub(crate) fn detach_all(&mut self) {
        if let Some(waker) = self.close(|_| {}) {
            // Whoever waited learns that nothing is left to wait for.
            waker.wake();
        }
    }

    /// O1, without the end of a wait.
    #[inline]
    fn take_done(&mut self) {
        let Some(shared) = self.shared else { return };
        // SAFETY: it lives until the set is closed.
        let shared = unsafe { shared.as_ref() };
        // Relaxed: a look; the exchange below orders.
        let top = shared.done.load(Relaxed);
        if top.is_null() || top == WAITING {
            return;
        }
        let order = if weakened!("set_take_sees") { Relaxed } else { Acquire };
        // Acquire: sees the outputs and the links. Pairs with the AcqRel in `ended`.
        // Only we put WAITING there, so the stack is still one.
        let top = shared.done.swap(ptr::null_mut(), order);
        self.keep_ready(top);
    }

    /// Puts the stack from `top` behind the chain `ready`, which is empty, or is of
    /// those that ended before; answers with their number.
    fn keep_ready(&mut self, top: *mut Header) -> usize {
        let mut count = 0;
        let mut first = None;
        let mut next = NonNull::new(top);
        while let Some(task) = next {
            // SAFETY: the stack was taken whole: rule 3 gives the links to us, and the
            // set's references keep the cells.
            let link = unsafe { &node(task).next };
            // SAFETY: as above.
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

    /// The first of `ready`, which is a member no longer.
    #[inline]
    fn pop_ready(&mut self) -> Option<NonNull<Header>> {
        let task = self.ready?;
        // SAFETY: rule 3; the set's reference keeps the cell.
        self.ready = unsafe { node(task).next.get() };
        // SAFETY: 1. as above. 2. It is a member of this set.
        unsafe { self.members.remove(task) };
        Some(task)
    }

    /// O2 to O4.
    fn wait(&mut self, waker: &Waker) -> Wait {
        let Some(shared) = self.shared else { unreachable!("a set with members has it") };
        // SAFETY: it lives until the set is closed.
        let shared = unsafe { shared.as_ref() };
        if !self.has_slot(shared) {
            return Wait::Again;
        }
        // SAFETY: rule 4: O2 made the slot ours.
        let old = shared.waker.with_mut(|slot| unsafe { (*slot).take() });
        // What is replaced is dropped when this returns, after O4: its drop is a user's code,
        // and may run the very task that is waited for.
        let (new, _replaced) = match old {
            Some(old) if old.will_wake(waker) => (old, None),
            old => (waker.clone(), old),
        };
        // O3.
        // SAFETY: as above.
        shared.waker.with_mut(|slot| unsafe { *slot = Some(new) });
        // Relaxed: published by O4.
        shared.slot.store(LENT, Relaxed);
        if weakened!("set_wait_rechecks") {
            // As if nothing could have ended since O1. AcqRel: stronger than O4, so that
            // only the missing look is at fault.
            shared.done.swap(WAITING, AcqRel);
            self.lent = true;
            return Wait::Waiting;
        }
        let order = if weakened!("set_wait_publishes") { Relaxed } else { Release };
        // O4. Release: publishes the waker. Pairs with the AcqRel in `ended`. Relaxed on
        // failure: O1 looks again.
        match shared.done.compare_exchange(ptr::null_mut(), WAITING, order, Relaxed) {
            Ok(_) => {
                self.lent = true;
                Wait::Waiting
            }
            Err(_) => {
                // Relaxed: nobody saw WAITING, so nobody looks at the slot.
                shared.slot.store(OWN, Relaxed);
                Wait::Look
            }
        }
    }

    /// O2: whether the slot is the owner's now; ends a wait that is still on.
    fn has_slot(&mut self, shared: &Shared) -> bool {
        if !self.lent {
            return true;
        }
        // Relaxed: what the slot holds is what we wrote.
        let unwaited = shared.done.compare_exchange(WAITING, ptr::null_mut(), Relaxed, Relaxed);
        // Acquire: whoever had the slot has left it. Pairs with the AcqRel in
        // `wake_owner`.
        let is_back = unwaited.is_ok() || shared.slot.load(Acquire) == OWN;
        self.lent = !is_back && !weakened!("set_slot_is_lent");
        !self.lent
    }

    /// K1 to K4: gives up all members. `end` is told of those that may still run.
    /// Answers with the waker of whoever waits.
    fn close(&mut self, end: impl Fn(&TaskRef)) -> Option<Waker> {
        let this = self.shared.take()?;
        // SAFETY: it lives until K4, since we are counted.
        let shared = unsafe { this.as_ref() };
        let lent = std::mem::take(&mut self.lent);
        // K1. Relaxed: published by K2.
        shared.left.store(self.running + 1 + usize::from(lent), Relaxed);
        // K2. AcqRel: publishes `left` to those who find CLOSED, and sees what those
        // left who were here before. Pairs with `ended`, both ways.
        let top = shared.done.swap(CLOSED, AcqRel);
        let mut counted = 1;
        let mut waker = None;
        self.drop_ready();
        if top == WAITING {
            // SAFETY: rule 4: nobody found WAITING, and nobody will.
            waker = shared.waker.with_mut(|slot| unsafe { (*slot).take() });
            counted += 1;
        } else {
            counted += self.keep_ready(top);
            // AcqRel: the slot was given back, or whoever has it counts for itself. Pairs
            // with the AcqRel in `wake_owner`, both ways.
            if lent && shared.slot.swap(ABANDONED, AcqRel) == OWN {
                counted += 1;
            }
        }
        self.drop_ready();
        // K3.
        while let Some(Entry(task)) = self.members.pop_front() {
            // SAFETY: the set's reference, which it gives up.
            let task = unsafe { TaskRef::from_counted(task) };
            end(&task);
            // SAFETY: it was a member until now, and is not read again.
            counted += usize::from(unsafe { leave(&task) });
        }
        self.running = 0;
        // K4.
        // SAFETY: these will not come, and the owner goes.
        unsafe { Shared::count_down(this, counted) };
        waker
    }

    /// Drops the outputs of those that were seen to end, and gives them up.
    fn drop_ready(&mut self) {
        while let Some(task) = self.pop_ready() {
            // SAFETY: 1. rule 5: it ended, and its output was not read.
            unsafe { Header::drop_output(task) };
            // SAFETY: the set's reference, given up: it is no member any more.
            drop(unsafe { TaskRef::from_counted(task) });
        }
    }
}

/// Gives up the set's interest in a task that was not seen to end; `true` if that is
/// now certain never to be told.
///
/// # Safety
/// 1. The task was a member, and the set has not read its output.
unsafe fn leave(task: &TaskRef) -> bool {
    let header = task.header();
    match header.state.detach() {
        Detached::DropWaker => {
            // SAFETY: JOIN_WAKER was taken back before completion.
            drop(header.join_waker.with_mut(|field| unsafe { (*field).take() }));
            true
        }
        Detached::DropOutput => {
            // SAFETY: 1. it completed while the set was interested: the output is ours.
            unsafe { Header::drop_output(task.as_ptr()) };
            false
        }
        Detached::Gone => unreachable!("a task of a set has its join waker until it completes"),
    }
}

impl<T> Drop for Set<T> {
    fn drop(&mut self) {
        // A user's waker: its panic has nobody to go to.
        discard(self.close(TaskRef::abort));
    }
}

#[cfg(test)]
mod tests;
