//! Who waits, in the order they came: a line through the waiting futures themselves.
//!
//! A [`Waiter`] is a part of the future that waits, pinned with it; a [`Line`] is
//! two pointers behind the lock of whatever is waited for. To wait allocates
//! nothing, and one who gives up leaves from the middle in a few stores.
//!
//! # Protocol
//! ```text
//! the waiter's owner                      whoever serves, under the lock
//! OUT  --join, under the lock-->     IN
//! IN   --remove, under the lock-->   OUT
//!                                    IN   --dismiss_first, dismiss_last--> LEFT: takes
//!                                         the waker, unlinks it, then stores LEFT, and
//!                                         never touches it again
//! LEFT --settle-->                   OUT
//! ```
//! `LEFT` is stored with Release as the last access and read with Acquire, so the
//! owner may read what it was given, and free the waiter, without the lock.
//!
//! # Invariants
//! - What is shared of a waiter (neighbours, waker, data) belongs to the holder of
//!   the lock while it is IN, and else to its owner.
//! - A waiter that is IN is alive: its owner removes it before it ends. Its neighbours and
//!   its waker are there then, and only then.
//! - Only the owner joins, removes and settles, one at a time.
//!
//! # Rejected
//! - `queue/list.rs`: it has one end. A second one would cost each spawn a store
//!   that only lines need, and this list needs the waker and the state besides.
//! - A line that can be taken off whole, to wake many at once: nodes would have to
//!   know which line they are in. Whoever wakes all dismisses from the front,
//!   batch by batch, and tells later comers by what their data says.
//!
//! # Checked by
//! `a_line_behaves_as_a_queue`, `the_owner_may_free_a_waiter_that_has_left`,
//! `two_waiters_are_served_in_the_order_they_came`; weakened as
//! `waiter_left_release`, `waiter_left_acquire`, `line_joins_at_the_end`.

use std::{marker::PhantomPinned, mem::MaybeUninit, pin::Pin, ptr::NonNull, task::Waker};

use crate::engine::prim::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell, weakened,
};

const OUT: u32 = 0;
const IN: u32 = 1;
const LEFT: u32 = 2;

/// Where a waiter is, as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In no line.
    Out,
    /// In the line, or dismissed a moment ago: only the lock can tell.
    In,
    /// Dismissed by whoever served it.
    Left,
}

/// One who waits; a part of its future.
pub(crate) struct Waiter<D> {
    place: AtomicU32,
    shared: UnsafeCell<Shared<D>>,
    _pinned: PhantomPinned,
}

struct Shared<D> {
    /// Written by `join`, and there while it is IN. Before that it is not even zero:
    /// most futures never wait, and are made, moved and dropped for nothing. (Fields that
    /// are written one by one and then moved as a block cost more than a lock: the
    /// processor cannot forward them.)
    place_in_line: MaybeUninit<InLine<D>>,
    data: D,
}

/// Where in the line a waiter stands.
struct InLine<D> {
    /// Means nothing in the first of a line: whoever serves it touches no neighbour,
    /// which would be a cache line of another task, under the lock.
    before: Option<NonNull<Waiter<D>>>,
    behind: Option<NonNull<Waiter<D>>>,
    waker: Waker,
}

// SAFETY: `shared` has one holder at a time (first invariant), and what is in it
// may move between threads.
unsafe impl<D: Send> Send for Waiter<D> {}
// SAFETY: as above; a shared reference alone gives access to `place` only.
unsafe impl<D: Send> Sync for Waiter<D> {}

impl<D> Waiter<D> {
    #[inline]
    pub(crate) fn new(data: D) -> Self {
        let shared = Shared { place_in_line: MaybeUninit::uninit(), data };
        Self { place: AtomicU32::new(OUT), shared: UnsafeCell::new(shared), _pinned: PhantomPinned }
    }

    #[inline]
    pub(crate) fn place(&self) -> Place {
        let order = if weakened!("waiter_left_acquire") { Relaxed } else { Acquire };
        // Acquire: after LEFT the owner reads its data. Pairs with the Release in
        // `dismiss`.
        match self.place.load(order) {
            OUT => Place::Out,
            IN => Place::In,
            _ => Place::Left,
        }
    }

    /// Lends the data to its owner.
    ///
    /// # Safety
    /// 1. The caller owns the waiter, and it is not IN.
    /// 2. `f` does not come back here.
    #[inline]
    pub(crate) unsafe fn with_data<R>(&self, f: impl FnOnce(&mut D) -> R) -> R {
        // SAFETY: 1.: the first invariant. 2. There is no other reference.
        self.shared.with_mut(|shared| f(unsafe { &mut (*shared).data }))
    }

    /// The owner has seen that the waiter left: it may wait again.
    #[inline]
    pub(crate) fn settle(&self) {
        debug_assert_eq!(self.place(), Place::Left, "settled too early");
        // Relaxed: only the owner looks until it joins again, under the lock.
        self.place.store(OUT, Relaxed);
    }
}

impl<D> Drop for Waiter<D> {
    fn drop(&mut self) {
        debug_assert_ne!(self.place(), Place::In, "a waiter ended in its line");
    }
}

/// The first and the last.
type Ends<D> = (NonNull<Waiter<D>>, NonNull<Waiter<D>>);

/// Waiters, first come, first served; to be kept behind a lock.
pub(crate) struct Line<D> {
    ends: Option<Ends<D>>,
}

// SAFETY: a line reaches its waiters' shared parts and nothing else, and these may
// move between threads.
unsafe impl<D: Send> Send for Line<D> {}

impl<D> Line<D> {
    pub(crate) const fn new() -> Self {
        Self { ends: None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Puts a waiter at the end of the line.
    ///
    /// # Safety
    /// 1. The caller owns the waiter, and it is OUT.
    /// 2. It calls `remove` on this line before the waiter ends, unless it has LEFT.
    pub(crate) unsafe fn join(&mut self, waiter: Pin<&Waiter<D>>, waker: Waker) {
        let node = NonNull::from(waiter.get_ref());
        let at_the_end = !weakened!("line_joins_at_the_end");
        let (first, last) = self.ends.unwrap_or((node, node));
        let neighbour = if at_the_end { last } else { first };
        let neighbour = self.ends.map(|_| neighbour);
        // SAFETY: the waiter is ours to give, by 1. 1. and 2. of `in_line`: members are
        // alive, by 2. and the pin, and the neighbour is one.
        unsafe {
            let (before, behind) = if at_the_end { (neighbour, None) } else { (None, neighbour) };
            node.as_ref().shared.with_mut(|shared| {
                (*shared).place_in_line.write(InLine { before, behind, waker });
            });
            if let Some(neighbour) = neighbour {
                Self::in_line(neighbour, |neighbour| {
                    let side =
                        if at_the_end { &mut neighbour.behind } else { &mut neighbour.before };
                    *side = Some(node);
                });
            }
        }
        self.ends = Some(if at_the_end { (first, node) } else { (node, last) });
        // Relaxed: others come to it through the lock.
        waiter.place.store(IN, Relaxed);
    }

    /// What the first one in line waits for.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<&mut D> {
        let (first, _) = self.ends?;
        // SAFETY: a member is alive, and its shared part is ours as long as the
        // line is borrowed: the reference does not outlive that.
        unsafe { Some(&mut *first.as_ref().shared.with_mut(|shared| &raw mut (*shared).data)) }
    }

    /// What the last one in line waits for.
    #[inline]
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "`Notify` serves the last"))]
    pub(crate) fn last(&mut self) -> Option<&mut D> {
        let (_, last) = self.ends?;
        // SAFETY: as in `first`.
        unsafe { Some(&mut *last.as_ref().shared.with_mut(|shared| &raw mut (*shared).data)) }
    }

    /// The first one leaves, served. Its waker is the caller's, to be woken after
    /// the lock was let go.
    ///
    /// # Panics
    /// If the line is empty: callers look.
    pub(crate) fn dismiss_first(&mut self) -> Waker {
        let (first, _) = self.ends.expect("callers look whether somebody waits");
        // SAFETY: 1. it is a member of this line.
        unsafe { self.dismiss(first) }
    }

    /// The last one leaves, served; otherwise as [`dismiss_first`](Self::dismiss_first).
    ///
    /// # Panics
    /// If the line is empty: callers look.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "as `last`"))]
    pub(crate) fn dismiss_last(&mut self) -> Waker {
        let (_, last) = self.ends.expect("callers look whether somebody waits");
        // SAFETY: 1. it is a member of this line.
        unsafe { self.dismiss(last) }
    }

    /// # Safety
    /// 1. The waiter is a member of this line.
    #[inline]
    unsafe fn dismiss(&mut self, node: NonNull<Waiter<D>>) -> Waker {
        // SAFETY: 1. and 2. of `unlink`: by 1., and members are alive.
        let waker = unsafe { self.unlink(node) };
        let order = if weakened!("waiter_left_release") { Relaxed } else { Release };
        // Release: the owner, which may free the waiter now, reads its data. Pairs
        // with the Acquire in `place`.
        // SAFETY: a member is alive until this store.
        unsafe { node.as_ref() }.place.store(LEFT, order);
        waker
    }

    /// Takes a waiter out, from wherever it stands, with its waker; `None` if it has
    /// left before.
    ///
    /// # Safety
    /// 1. The caller owns the waiter. 2. If it is in a line, then in this one.
    pub(crate) unsafe fn remove(&mut self, waiter: Pin<&Waiter<D>>) -> Option<Waker> {
        if waiter.place() != Place::In {
            return None;
        }
        // SAFETY: 1. and 2. of `unlink`: by 2. and the look above, under the lock.
        let waker = unsafe { self.unlink(NonNull::from(waiter.get_ref())) };
        // Relaxed: it is the owner's again, who is the caller.
        waiter.place.store(OUT, Relaxed);
        Some(waker)
    }

    /// Whether the waiter's waker wakes the same task as `waker`; `None` if it has
    /// left.
    ///
    /// # Safety
    /// 1. As `remove`: if it is in a line, then in this one.
    pub(crate) unsafe fn would_wake(&self, waiter: Pin<&Waiter<D>>, waker: &Waker) -> Option<bool> {
        if waiter.place() != Place::In {
            return None;
        }
        // SAFETY: 1. of `in_line`: it is a member of this line, which we hold.
        let same = unsafe {
            Self::in_line(NonNull::from(waiter.get_ref()), |member| member.waker.will_wake(waker))
        };
        Some(same)
    }

    /// Gives the waiter another waker. Answers with the one that is not needed any
    /// more, to be dropped after the lock was let go: `waker` itself if it has left.
    ///
    /// # Safety
    /// 1. As `remove`: if it is in a line, then in this one.
    pub(crate) unsafe fn renew(&mut self, waiter: Pin<&Waiter<D>>, waker: Waker) -> Waker {
        if waiter.place() != Place::In {
            return waker;
        }
        // SAFETY: 1. of `in_line`: it is a member of this line, which we hold.
        unsafe {
            Self::in_line(NonNull::from(waiter.get_ref()), |member| {
                std::mem::replace(&mut member.waker, waker)
            })
        }
    }

    /// # Safety
    /// 1. The waiter is alive. 2. It is a member of this line.
    unsafe fn unlink(&mut self, node: NonNull<Waiter<D>>) -> Waker {
        let (first, last) = self.ends.expect("a line with a member has ends");
        // SAFETY: 1. of `in_line`: by 2., and neighbours of a member are members. The
        // member's part is read out once: whoever calls this says that it is OUT or LEFT.
        unsafe {
            let InLine { before, behind, waker } =
                node.as_ref().shared.with_mut(|shared| (*shared).place_in_line.assume_init_read());
            if node == first {
                // The next one is the first now; what it says is before it nobody reads.
                self.ends = behind.map(|behind| (behind, last));
            } else {
                let before = before.expect("only the first has nobody before it");
                Self::in_line(before, |member| member.behind = behind);
                match behind {
                    Some(behind) => Self::in_line(behind, |member| member.before = Some(before)),
                    None => self.ends = Some((first, before)),
                }
            }
            waker
        }
    }

    /// # Safety
    /// 1. The waiter is a member of a line, which the caller holds.
    /// 2. `f` reaches no other waiter.
    #[inline]
    unsafe fn in_line<R>(node: NonNull<Waiter<D>>, f: impl FnOnce(&mut InLine<D>) -> R) -> R {
        // SAFETY: 1.: members are alive, and `join` has written it. 1. and 2.: nobody else
        // has a reference.
        unsafe {
            node.as_ref().shared.with_mut(|shared| f((*shared).place_in_line.assume_init_mut()))
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{collections::VecDeque, pin::Pin, sync::Arc, task::Waker};

    use proptest::prelude::*;

    use super::{Line, Place, Waiter};
    use crate::engine::wait::bell::Bell;

    /// The data of the one who is dismissed, who must have that waker.
    fn dismiss(line: &mut Line<usize>) -> Option<usize> {
        let value = *line.first()?;
        line.dismiss_first().wake();
        Some(value)
    }

    #[test]
    fn a_waker_is_renewed_only_in_line() {
        let (old, new) = (Bell::new(), Bell::new());
        let (mut line, waiter) = (Line::new(), Box::pin(Waiter::new(0)));
        // SAFETY: 1. it is ours and OUT. 2. It leaves below.
        unsafe { line.join(waiter.as_ref(), old.waker()) };
        // SAFETY: 1. this is its line.
        unsafe {
            assert_eq!(line.would_wake(waiter.as_ref(), &old.waker()), Some(true));
            assert_eq!(line.would_wake(waiter.as_ref(), &new.waker()), Some(false));
            drop(line.renew(waiter.as_ref(), new.waker()));
        }
        assert_eq!(Arc::strong_count(&old), 1, "the old one is given up");
        assert_eq!(dismiss(&mut line), Some(0));
        assert_eq!((old.rung(), new.rung()), (0, 1));
        // SAFETY: as above; it is in no line.
        unsafe {
            assert_eq!(line.would_wake(waiter.as_ref(), &new.waker()), None);
            assert!(line.renew(waiter.as_ref(), old.waker()).will_wake(&old.waker()));
            assert!(line.remove(waiter.as_ref()).is_none());
        }
        assert_eq!(waiter.place(), Place::Left);
        waiter.settle();
        assert_eq!(waiter.place(), Place::Out);
    }

    proptest! {
        /// `choices` says per step: join, who is first or last leaves, or who gives up.
        #[test]
        fn a_line_behaves_as_a_queue(choices in prop::collection::vec(0usize..12, 0..200)) {
            let mut line = Line::new();
            let mut members: VecDeque<(usize, Pin<Box<Waiter<usize>>>)> = VecDeque::new();
            for (value, choice) in choices.into_iter().enumerate() {
                match choice {
                    0 => {
                        let last = members.pop_back();
                        let data = line.last().copied();
                        prop_assert_eq!(data, last.as_ref().map(|last| last.0));
                        data.into_iter().for_each(|_| line.dismiss_last().wake());
                        prop_assert!(last.is_none_or(|last| last.1.place() == Place::Left));
                    }
                    1..=2 => {
                        let first = members.pop_front();
                        prop_assert_eq!(dismiss(&mut line), first.as_ref().map(|first| first.0));
                        prop_assert!(first.is_none_or(|first| first.1.place() == Place::Left));
                    }
                    3..=8 => {
                        let waiter = Box::pin(Waiter::new(value));
                        // SAFETY: 1. it is ours and OUT. 2. Members leave before they
                        // are dropped.
                        unsafe { line.join(waiter.as_ref(), Waker::noop().clone()) };
                        members.push_back((value, waiter));
                    }
                    _ if members.is_empty() => prop_assert!(line.is_empty()),
                    _ => {
                        let at = choice * value % members.len();
                        let (_, waiter) = members.remove(at).expect("it is a member");
                        // SAFETY: 1. it is ours. 2. It is in this line.
                        let waker = unsafe { line.remove(waiter.as_ref()) };
                        prop_assert!(waker.is_some());
                        prop_assert_eq!(waiter.place(), Place::Out);
                    }
                }
                prop_assert_eq!(line.is_empty(), members.is_empty());
            }
            while let Some((value, _waiter)) = members.pop_front() {
                prop_assert_eq!(dismiss(&mut line), Some(value));
            }
            prop_assert!(line.is_empty());
        }
    }
}
