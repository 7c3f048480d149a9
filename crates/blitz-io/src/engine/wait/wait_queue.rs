//! A wait queue in order of arrival, linked through the waiting futures themselves.
//!
//! A [`Waiter`] is a part of the waiting future, pinned with it; a [`WaitQueue`] is two pointers
//! behind the lock of whatever is waited for. Waiting allocates nothing, and a waiter that gives up
//! leaves from the middle of the queue in a few stores.
//!
//! # Protocol
//! ```text
//! the waiter's owner                      the thread that serves, under the lock
//! OUT  --join, under the lock-->     IN
//! IN   --remove, under the lock-->   OUT
//!                                    IN   --dismiss_first, dismiss_last--> DISMISSED: takes
//!                                         the waker, unlinks it, then stores that, and
//!                                         never touches it again
//! DISMISSED --settle-->              OUT
//! ```
//! `DISMISSED` is stored with Release as the last access and read with Acquire, so the owner may
//! read what it was given, and free the waiter, without the lock.
//!
//! # Invariants
//! - The shared part of a waiter (neighbours, waker, data) belongs to the holder of the lock while
//!   the waiter is IN, and to its owner otherwise.
//! - A waiter that is IN is alive: its owner must remove it before it ends. Its neighbours and its
//!   waker are initialized then, and only then.
//! - Only the owner joins, removes and settles, one at a time.
//!
//! # Rejected
//! - `queue/list.rs`: it has one end. A second one would cost each spawn a store that only wait
//!   queues need, and this list needs the waker and the state besides.
//! - A queue that can be detached as a whole, to wake many waiters at once: nodes would have to
//!   know which queue they are in. Code that wakes all dismisses from the front, one wake list at a
//!   time, and recognizes waiters that joined later by their data.
//!
//! # Checked by
//! `a_wait_queue_behaves_as_a_deque`, `the_owner_may_free_a_dismissed_waiter`,
//! `two_waiters_are_served_in_the_order_they_came`; weakened as
//! `waiter_dismissed_release`, `waiter_dismissed_acquire`, `wait_queue_joins_at_the_end`.

use std::{marker::PhantomPinned, mem::MaybeUninit, pin::Pin, ptr::NonNull, task::Waker};

use crate::engine::prim::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell, weakened,
};

const OUT: u32 = 0;
const IN: u32 = 1;
const DISMISSED: u32 = 2;

/// The state of a waiter, as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaiterState {
    /// In no queue.
    Out,
    /// In the queue, or dismissed since: certain only under the lock.
    In,
    /// Dismissed by the thread that served it.
    Dismissed,
}

/// A node of a wait queue; a part of the future that waits.
pub(crate) struct Waiter<D> {
    state: AtomicU32,
    shared: UnsafeCell<Shared<D>>,
    _pinned: PhantomPinned,
}

struct Shared<D> {
    /// The links and the waker: written by `join`, and initialized while the waiter is IN. Before
    /// that the memory is not even zeroed, because most futures never wait, and are created, moved
    /// and dropped without it. (Fields that are written one by one and then moved as a block cost
    /// more than a lock, because the processor cannot forward the stores.)
    links: MaybeUninit<WaiterLinks<D>>,
    data: D,
}

/// The position of a waiter in its queue, and its waker.
struct WaiterLinks<D> {
    /// Meaningless in the first waiter: a thread that serves the first one touches no neighbour,
    /// which would be a cache line of another task, under the lock.
    before: Option<NonNull<Waiter<D>>>,
    behind: Option<NonNull<Waiter<D>>>,
    waker: Waker,
}

// SAFETY: `shared` has one holder at a time (first invariant), and its contents may move between
// threads.
unsafe impl<D: Send> Send for Waiter<D> {}
// SAFETY: `shared` has one holder at a time (first invariant); a shared reference alone gives
// access to `state` only.
unsafe impl<D: Send> Sync for Waiter<D> {}

impl<D> Waiter<D> {
    #[inline]
    pub(crate) fn new(data: D) -> Self {
        let shared = Shared { links: MaybeUninit::uninit(), data };
        Self { state: AtomicU32::new(OUT), shared: UnsafeCell::new(shared), _pinned: PhantomPinned }
    }

    #[inline]
    pub(crate) fn state(&self) -> WaiterState {
        let order = if weakened!("waiter_dismissed_acquire") { Relaxed } else { Acquire };
        // Acquire: after DISMISSED the owner reads its data. Pairs with the Release in `dismiss`.
        match self.state.load(order) {
            OUT => WaiterState::Out,
            IN => WaiterState::In,
            _ => WaiterState::Dismissed,
        }
    }

    /// Calls `f` with the data, for the waiter's owner.
    ///
    /// # Safety
    /// 1. The caller owns the waiter, and it is not IN.
    /// 2. `f` does not call this method.
    #[inline]
    pub(crate) unsafe fn with_data<R>(&self, f: impl FnOnce(&mut D) -> R) -> R {
        // SAFETY: 1. the first invariant gives the data to the owner. 2. There is no other
        // reference.
        self.shared.with_mut(|shared| f(unsafe { &mut (*shared).data }))
    }

    /// Resets a waiter that is DISMISSED, so that it may wait again. Only for its owner.
    #[inline]
    pub(crate) fn settle(&self) {
        debug_assert_eq!(self.state(), WaiterState::Dismissed, "settled too early");
        // Relaxed: only the owner reads it until it joins again, under the lock.
        self.state.store(OUT, Relaxed);
    }
}

impl<D> Drop for Waiter<D> {
    fn drop(&mut self) {
        debug_assert_ne!(self.state(), WaiterState::In, "a waiter ended in its wait queue");
    }
}

/// The first and the last waiter.
type FirstAndLast<D> = (NonNull<Waiter<D>>, NonNull<Waiter<D>>);

/// A wait queue, first come, first served; must be kept behind a lock.
pub(crate) struct WaitQueue<D> {
    ends: Option<FirstAndLast<D>>,
}

// SAFETY: a queue accesses the shared parts of its waiters and nothing else, and these may move
// between threads.
unsafe impl<D: Send> Send for WaitQueue<D> {}

impl<D> WaitQueue<D> {
    pub(crate) const fn new() -> Self {
        Self { ends: None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Appends a waiter to the queue.
    ///
    /// # Safety
    /// 1. The caller owns the waiter, and it is OUT.
    /// 2. The caller calls `remove` on this queue before the waiter ends, unless it is DISMISSED.
    pub(crate) unsafe fn join(&mut self, waiter: Pin<&Waiter<D>>, waker: Waker) {
        let node = NonNull::from(waiter.get_ref());
        let at_the_end = !weakened!("wait_queue_joins_at_the_end");
        let (first, last) = self.ends.unwrap_or((node, node));
        let neighbour = if at_the_end { last } else { first };
        let neighbour = self.ends.map(|_| neighbour);
        // SAFETY: the waiter's shared part is ours to write, by our obligation 1. Obligations 1 and
        // 2 of `with_links`: members are alive, by our obligation 2 and the pin, and the neighbour
        // is a member; the closure touches only it.
        unsafe {
            let (before, behind) = if at_the_end { (neighbour, None) } else { (None, neighbour) };
            node.as_ref().shared.with_mut(|shared| {
                (*shared).links.write(WaiterLinks { before, behind, waker });
            });
            if let Some(neighbour) = neighbour {
                Self::with_links(neighbour, |neighbour| {
                    let side =
                        if at_the_end { &mut neighbour.behind } else { &mut neighbour.before };
                    *side = Some(node);
                });
            }
        }
        self.ends = Some(if at_the_end { (first, node) } else { (node, last) });
        // Relaxed: other threads read it under the lock.
        waiter.state.store(IN, Relaxed);
    }

    /// Returns the data of the first waiter.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<&mut D> {
        let (first, _) = self.ends?;
        // SAFETY: a member is alive, and its shared part is ours as long as the queue is borrowed:
        // the returned reference does not outlive that.
        unsafe { Some(&mut *first.as_ref().shared.with_mut(|shared| &raw mut (*shared).data)) }
    }

    /// Returns the data of the last waiter.
    #[inline]
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "`Notify` serves the last"))]
    pub(crate) fn last(&mut self) -> Option<&mut D> {
        let (_, last) = self.ends?;
        // SAFETY: a member is alive, and its shared part is ours as long as the queue is borrowed.
        unsafe { Some(&mut *last.as_ref().shared.with_mut(|shared| &raw mut (*shared).data)) }
    }

    /// Removes the first waiter, which was served, and returns its waker. The caller must wake it
    /// after the lock was released.
    ///
    /// # Panics
    /// If the queue is empty: callers must check that.
    pub(crate) fn dismiss_first(&mut self) -> Waker {
        let (first, _) = self.ends.expect("callers check that a task waits");
        // SAFETY: 1. the first waiter is a member of this queue.
        unsafe { self.dismiss(first) }
    }

    /// Removes the last waiter, which was served, and returns its waker, as
    /// [`dismiss_first`](Self::dismiss_first) does.
    ///
    /// # Panics
    /// If the queue is empty: callers must check that.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "as `last`"))]
    pub(crate) fn dismiss_last(&mut self) -> Waker {
        let (_, last) = self.ends.expect("callers check that a task waits");
        // SAFETY: 1. the last waiter is a member of this queue.
        unsafe { self.dismiss(last) }
    }

    /// Removes a waiter that was served, and returns its waker.
    ///
    /// # Safety
    /// 1. The waiter is a member of this queue.
    #[inline]
    unsafe fn dismiss(&mut self, node: NonNull<Waiter<D>>) -> Waker {
        // SAFETY: obligations 1 and 2 of `unlink`: it is a member (our obligation 1), and members
        // are alive.
        let waker = unsafe { self.unlink(node) };
        let order = if weakened!("waiter_dismissed_release") { Relaxed } else { Release };
        // Release: the owner, which may free the waiter now, reads its data. Pairs with the Acquire
        // in `state`.
        // SAFETY: a member is alive until this store.
        unsafe { node.as_ref() }.state.store(DISMISSED, order);
        waker
    }

    /// Removes a waiter from any position, and returns its waker; returns `None` if it was
    /// dismissed before.
    ///
    /// # Safety
    /// 1. The caller owns the waiter. 2. If it is in a queue, it is in this one.
    pub(crate) unsafe fn remove(&mut self, waiter: Pin<&Waiter<D>>) -> Option<Waker> {
        if waiter.state() != WaiterState::In {
            return None;
        }
        // SAFETY: 1. the caller owns it, so it is alive. 2. It is IN, as checked above under the
        // lock, and so in this queue.
        let waker = unsafe { self.unlink(NonNull::from(waiter.get_ref())) };
        // Relaxed: the waiter belongs to its owner again, which is the caller.
        waiter.state.store(OUT, Relaxed);
        Some(waker)
    }

    /// Returns whether the waiter's waker wakes the same task as `waker`, or `None` if it was
    /// dismissed.
    ///
    /// # Safety
    /// 1. If the waiter is in a queue, it is in this one.
    pub(crate) unsafe fn would_wake(&self, waiter: Pin<&Waiter<D>>, waker: &Waker) -> Option<bool> {
        if waiter.state() != WaiterState::In {
            return None;
        }
        // SAFETY: 1. it is a member of this queue, which we hold. 2. The closure touches no other
        // waiter.
        let same = unsafe {
            Self::with_links(NonNull::from(waiter.get_ref()), |member| {
                member.waker.will_wake(waker)
            })
        };
        Some(same)
    }

    /// Gives the waiter another waker. Returns the one that is no longer needed, to be dropped
    /// after the lock was released: `waker` itself if the waiter was dismissed.
    ///
    /// # Safety
    /// 1. If the waiter is in a queue, it is in this one.
    pub(crate) unsafe fn renew(&mut self, waiter: Pin<&Waiter<D>>, waker: Waker) -> Waker {
        if waiter.state() != WaiterState::In {
            return waker;
        }
        // SAFETY: 1. it is a member of this queue, which we hold. 2. The closure touches no other
        // waiter.
        unsafe {
            Self::with_links(NonNull::from(waiter.get_ref()), |member| {
                std::mem::replace(&mut member.waker, waker)
            })
        }
    }

    /// Unlinks a waiter, and returns its waker. The caller must set its state.
    ///
    /// # Safety
    /// 1. The waiter is alive. 2. It is a member of this queue.
    unsafe fn unlink(&mut self, node: NonNull<Waiter<D>>) -> Waker {
        let (first, last) = self.ends.expect("a wait queue with a member has ends");
        // SAFETY: `with_links`: the waiter is a member (our obligation 2), and neighbours of a
        // member are members. The links and the waker are read out once, because callers set the
        // state to OUT or DISMISSED.
        unsafe {
            let WaiterLinks { before, behind, waker } =
                node.as_ref().shared.with_mut(|shared| (*shared).links.assume_init_read());
            if node == first {
                // The next waiter is the first now; no code reads the `before` of a first waiter.
                self.ends = behind.map(|behind| (behind, last));
            } else {
                let before = before.expect("only the first has no waiter before it");
                Self::with_links(before, |member| member.behind = behind);
                match behind {
                    Some(behind) => Self::with_links(behind, |member| member.before = Some(before)),
                    None => self.ends = Some((first, before)),
                }
            }
            waker
        }
    }

    /// Calls `f` with the links and the waker of a queued waiter.
    ///
    /// # Safety
    /// 1. The waiter is a member of a queue, which the caller holds.
    /// 2. `f` reaches no other waiter.
    #[inline]
    unsafe fn with_links<R>(
        node: NonNull<Waiter<D>>,
        f: impl FnOnce(&mut WaiterLinks<D>) -> R,
    ) -> R {
        // SAFETY: 1. members are alive, and `join` has initialized that part. By 1. and 2. there is
        // no other reference to it.
        unsafe { node.as_ref().shared.with_mut(|shared| f((*shared).links.assume_init_mut())) }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{collections::VecDeque, pin::Pin, sync::Arc, task::Waker};

    use proptest::prelude::*;

    use super::{WaitQueue, Waiter, WaiterState};
    use crate::engine::wait::test_waker::CountingWaker;

    /// Dismisses the first waiter, wakes it, and returns its data.
    fn dismiss(queue: &mut WaitQueue<usize>) -> Option<usize> {
        let value = *queue.first()?;
        queue.dismiss_first().wake();
        Some(value)
    }

    #[test]
    fn a_waker_is_renewed_only_in_the_queue() {
        let (old, new) = (CountingWaker::new(), CountingWaker::new());
        let (mut queue, waiter) = (WaitQueue::new(), Box::pin(Waiter::new(0)));
        // SAFETY: 1. the waiter is ours and OUT. 2. It is dismissed below.
        unsafe { queue.join(waiter.as_ref(), old.waker()) };
        // SAFETY: 1. this is the waiter's queue.
        unsafe {
            assert_eq!(queue.would_wake(waiter.as_ref(), &old.waker()), Some(true));
            assert_eq!(queue.would_wake(waiter.as_ref(), &new.waker()), Some(false));
            drop(queue.renew(waiter.as_ref(), new.waker()));
        }
        assert_eq!(Arc::strong_count(&old), 1, "the old one is given up");
        assert_eq!(dismiss(&mut queue), Some(0));
        assert_eq!((old.wake_count(), new.wake_count()), (0, 1));
        // SAFETY: 1. the waiter is in no queue now. `remove`: we own it.
        unsafe {
            assert_eq!(queue.would_wake(waiter.as_ref(), &new.waker()), None);
            assert!(queue.renew(waiter.as_ref(), old.waker()).will_wake(&old.waker()));
            assert!(queue.remove(waiter.as_ref()).is_none());
        }
        assert_eq!(waiter.state(), WaiterState::Dismissed);
        waiter.settle();
        assert_eq!(waiter.state(), WaiterState::Out);
    }

    proptest! {
        /// `choices` says for each step: a waiter joins, the first or the last is dismissed, or one
        /// gives up.
        #[test]
        fn a_wait_queue_behaves_as_a_deque(choices in prop::collection::vec(0usize..12, 0..200)) {
            let mut queue = WaitQueue::new();
            let mut members: VecDeque<(usize, Pin<Box<Waiter<usize>>>)> = VecDeque::new();
            for (value, choice) in choices.into_iter().enumerate() {
                match choice {
                    0 => {
                        let last = members.pop_back();
                        let data = queue.last().copied();
                        prop_assert_eq!(data, last.as_ref().map(|last| last.0));
                        data.into_iter().for_each(|_| queue.dismiss_last().wake());
                        prop_assert!(last.is_none_or(|last| last.1.state() == WaiterState::Dismissed));
                    }
                    1..=2 => {
                        let first = members.pop_front();
                        prop_assert_eq!(dismiss(&mut queue), first.as_ref().map(|first| first.0));
                        prop_assert!(first.is_none_or(|first| first.1.state() == WaiterState::Dismissed));
                    }
                    3..=8 => {
                        let waiter = Box::pin(Waiter::new(value));
                        // SAFETY: 1. the waiter is ours and OUT. 2. Members leave the queue before
                        // they are dropped.
                        unsafe { queue.join(waiter.as_ref(), Waker::noop().clone()) };
                        members.push_back((value, waiter));
                    }
                    _ if members.is_empty() => prop_assert!(queue.is_empty()),
                    _ => {
                        let at = choice * value % members.len();
                        let (_, waiter) = members.remove(at).expect("it is a member");
                        // SAFETY: 1. the waiter is ours. 2. It is in this queue.
                        let waker = unsafe { queue.remove(waiter.as_ref()) };
                        prop_assert!(waker.is_some());
                        prop_assert_eq!(waiter.state(), WaiterState::Out);
                    }
                }
                prop_assert_eq!(queue.is_empty(), members.is_empty());
            }
            while let Some((value, _waiter)) = members.pop_front() {
                prop_assert_eq!(dismiss(&mut queue), Some(value));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
