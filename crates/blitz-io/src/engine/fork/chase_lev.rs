//! A contender: the deque of Chase and Lev, with what `stack` offers.
//!
//! It is kept to be measured where barriers are fences, and is no part of a normal build: a
//! fenced `stack` pays one fence for a pop as well, and needs no exchange for the last
//! job and no old arrays. Tests build it, so that it does not rot; `--cfg blitz_variants` does for
//! bench/queues.
//!
//! # Protocol
//! Jobs have indices from `top` to `bottom`; the owner pushes and pops at `bottom`, thieves
//! take at `top`. Slots are a ring, and the slot of an index is that of its remainder.
//!
//! ```text
//! The owner pops                       A thief takes
//! O1 bottom = b, one less              T1 reads top: t
//! O2 fence(SeqCst)                     T2 fence(SeqCst)
//! O3 reads top: t                      T3 reads bottom; at or below t: nothing
//! O4 t < b: b is ours                  T4 reads the slot of t
//!    t = b: ours if the exchange of    T5 t is ours if the exchange of top, from t to
//!    top succeeds, from t to t + 1        t + 1, succeeds
//!    and bottom goes back in any case
//! ```
//! Of two that want the last job the exchange decides. For any other job: of O2 and T2 one
//! comes first. If O2, T3 sees the lower `bottom`. If T2, O3 sees at least the `top` that the thief
//! read, so that `b` is above it, or the exchange decides.
//!
//! *Growth*: the owner copies the jobs into a ring of twice the size, and the old one stays until
//! the deque goes: a thief may be between T3 and T4. It is not written to any more, so
//! the slot of `t` there is as good. All old rings together are smaller than the last one.
//!
//! *Demand*: a push ends with a fence and a look at `is_asked`, as in a fenced stack.
//!
//! # Checked by
//! `models.rs`: `an_owner_and_a_thief_take_each_job_once`, `the_last_job_has_one_taker`,
//! `two_thieves_take_different_jobs`, `a_ring_that_grows_under_a_thief_loses_nothing`,
//! `a_push_or_a_demand_sees_the_other`; weakened as `chase_lev_pop_fence`,
//! `chase_lev_steal_fence`, `chase_lev_last`, `chase_lev_push_fence`. The Release of
//! `bottom` has no control: the checker's fences give more than the language does, and hide it.

use std::ptr::NonNull;

use super::stack::{Index, Pushed};
use crate::engine::prim::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
    pad::CachePadded,
    weakened,
};

#[cfg(test)]
mod models;

/// Slots at first; a power of two, so that a remainder is a mask. As many as a `stack` has.
const SLOTS: usize = if cfg!(blitz_loom) { 2 } else { 256 };

/// See the module.
pub(super) struct Deque<T> {
    bottom: CachePadded<AtomicU64>,
    top: CachePadded<AtomicU64>,
    ring: AtomicPtr<Ring<T>>,
    is_asked: AtomicBool,
}

struct Ring<T> {
    slots: Box<[AtomicPtr<T>]>,
    /// The one before it, or null.
    old: *mut Self,
}

/// What a thief came to.
pub(super) enum Stolen<T> {
    Job(NonNull<T>),
    /// Somebody else was quicker.
    Again,
    Nothing,
}

// SAFETY: 1. slots are atomics. 2. Rings are freed by the drop alone. 3. The deque hands out
// pointers and reads none of them.
unsafe impl<T> Send for Deque<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Deque<T> {}

impl<T> Deque<T> {
    pub(super) fn new() -> Self {
        let ring = Ring { slots: Ring::empty(SLOTS), old: std::ptr::null_mut() };
        Self {
            // From 1 on, so that a pop of none does not wrap.
            bottom: CachePadded::new(AtomicU64::new(1)),
            top: CachePadded::new(AtomicU64::new(1)),
            ring: AtomicPtr::new(Box::into_raw(Box::new(ring))),
            is_asked: AtomicBool::new(false),
        }
    }

    /// Puts a job on top.
    ///
    /// # Safety
    /// 1. The caller is the owner.
    pub(super) unsafe fn push(&self, job: NonNull<T>) -> Pushed {
        // Relaxed: only the owner writes it.
        let index = self.bottom.load(Relaxed);
        // Acquire: who took what lay in the slot has read it. Pairs with the exchange in
        // `steal`.
        let top = self.top.load(Acquire);
        let mut ring = self.own_ring();
        if (index - top) as usize >= ring.slots.len() {
            ring = self.grow(ring, top, index);
        }
        // Relaxed: `bottom` publishes it.
        ring.slot(index).store(job.as_ptr(), Relaxed);
        self.set_bottom(index + 1);
        if !weakened!("chase_lev_push_fence") {
            // SeqCst: pairs with the barrier of who goes to sleep after its `demand`.
            fence(SeqCst);
        }
        // Relaxed: the fence orders it.
        Pushed { index, is_asked: self.is_asked.load(Relaxed) }
    }

    /// Takes the job off that was pushed at `index`; `false` if a thief has it or if others lie
    /// above it.
    ///
    /// # Safety
    /// 1. The caller is the owner, and has not taken the job otherwise.
    pub(super) unsafe fn pop_at(&self, index: Index) -> bool {
        // Relaxed: only the owner writes it.
        // SAFETY: 1.
        self.bottom.load(Relaxed) == index + 1 && unsafe { self.pop() }.is_some()
    }

    /// Takes the newest job.
    ///
    /// # Safety
    /// 1. The caller is the owner.
    pub(super) unsafe fn pop(&self) -> Option<NonNull<T>> {
        // Relaxed: only the owner writes it.
        let index = self.bottom.load(Relaxed) - 1;
        // O1.
        self.set_bottom(index);
        if !weakened!("chase_lev_pop_fence") {
            // SeqCst: O2. Pairs with T2 in `steal`.
            fence(SeqCst);
        }
        // Relaxed: O3; the fence orders it.
        let top = self.top.load(Relaxed);
        if top > index {
            self.set_bottom(index + 1);
            return None;
        }
        // Relaxed: our own writing.
        let job = NonNull::new(self.own_ring().slot(index).load(Relaxed));
        if top < index {
            return job;
        }
        // SeqCst: O4; in one order with the exchanges of thieves. Relaxed if one of them came
        // first: it has the job.
        let exchanged = self.top.compare_exchange(top, top + 1, SeqCst, Relaxed);
        self.set_bottom(index + 1);
        if exchanged.is_ok() || weakened!("chase_lev_last") { job } else { None }
    }

    fn set_bottom(&self, bottom: Index) {
        // Release: the slots below, and what lies behind their pointers. Also where it goes
        // back: a thief that reads that one relies on it too. Pairs with the Acquire in `steal`.
        self.bottom.store(bottom, Release);
    }

    /// Takes the oldest job.
    pub(super) fn steal(&self) -> Stolen<T> {
        // Acquire: T1; what the last who took something saw. Pairs with the exchanges.
        let top = self.top.load(Acquire);
        if !weakened!("chase_lev_steal_fence") {
            // SeqCst: T2. Pairs with O2 in `pop`.
            fence(SeqCst);
        }
        // Acquire: T3. Pairs with the Release in `set_bottom`.
        if self.bottom.load(Acquire) <= top {
            return Stolen::Nothing;
        }
        // Acquire: the slots. Pairs with the Release in `grow`.
        let ring = self.ring.load(Acquire);
        // SAFETY: rings stay until the deque goes.
        let job = unsafe { &*ring }.slot(top).load(Relaxed);
        // SeqCst: T5, as in `pop`; shows `push` that we have read the slot. Relaxed if another
        // one came first.
        match self.top.compare_exchange(top, top + 1, SeqCst, Relaxed) {
            Ok(_) => NonNull::new(job).map_or(Stolen::Nothing, Stolen::Job),
            Err(_) => Stolen::Again,
        }
    }

    /// Whether there seems to be a job.
    fn has_jobs(&self) -> bool {
        // Relaxed: as the caller's barriers have it.
        self.bottom.load(Relaxed) > self.top.load(Relaxed)
    }

    /// Asks the owner to look up at its next push.
    fn demand(&self) {
        // AcqRel: of this and the swap in `answer` the later one sees what was done before
        // the other.
        self.is_asked.swap(true, AcqRel);
    }

    /// Whether somebody has asked; all that there is is public anyway.
    fn answer(&self) -> bool {
        // AcqRel: pairs with the swap in `demand`.
        self.is_asked.swap(false, AcqRel)
    }

    /// The ring, for its owner.
    fn own_ring(&self) -> &Ring<T> {
        // Relaxed: only the owner writes it.
        // SAFETY: rings stay until the deque goes.
        unsafe { &*self.ring.load(Relaxed) }
    }

    #[cold]
    fn grow(&self, old: &Ring<T>, top: Index, bottom: Index) -> &Ring<T> {
        let slots = Ring::empty(2 * old.slots.len());
        let ring = Ring { slots, old: std::ptr::from_ref(old).cast_mut() };
        for index in top..bottom {
            // Relaxed: our own writing, which the store below publishes.
            ring.slot(index).store(old.slot(index).load(Relaxed), Relaxed);
        }
        let ring = Box::into_raw(Box::new(ring));
        // Release: pairs with the Acquire in `steal`.
        self.ring.store(ring, Release);
        // SAFETY: as in `own_ring`.
        unsafe { &*ring }
    }
}

impl<T> Ring<T> {
    fn empty(count: usize) -> Box<[AtomicPtr<T>]> {
        (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect()
    }

    fn slot(&self, index: Index) -> &AtomicPtr<T> {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }
}

impl<T> Drop for Deque<T> {
    fn drop(&mut self) {
        // Relaxed: we are alone.
        let mut ring = self.ring.load(Relaxed);
        while !ring.is_null() {
            // SAFETY: it was a box, and each is in the chain once.
            ring = unsafe { Box::from_raw(ring) }.old;
        }
    }
}
