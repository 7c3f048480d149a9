//! A contender for benchmarks: the deque of Chase and Lev, with the interface of `stack`.
//!
//! It is kept to be measured where barriers are fences: a fenced `stack` pays one fence for a pop as
//! well, and needs no exchange for the last job and no old arrays.
//!
//! # Protocol
//! Jobs have indices from `top` to `bottom`; the owner pushes and pops at `bottom`, thieves take at
//! `top`. The slots are a ring, and an index modulo its length is the slot of that index.
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
//! If two threads want the last job, the exchange decides. For any other job, one of O2 and T2
//! comes first. If O2, T3 sees the lower `bottom`. If T2, O3 sees at least the `top` that the thief
//! read, so `b` is above it, or the exchange decides.
//!
//! *Growth*: the owner copies the jobs into a ring of twice the size, and the old ring stays until
//! the deque is dropped, because a thief may be between T3 and T4. The old ring is no longer
//! written to, so its slot of `t` is as good. All old rings together are smaller than the last one.
//!
//! *Request*: a push ends with a fence and a load of `is_requested`, as in a fenced stack.
//!
//! # Checked by
//! `models.rs`: `an_owner_and_a_thief_take_each_job_once`, `the_last_job_has_one_taker`,
//! `two_thieves_take_different_jobs`, `a_ring_that_grows_under_a_thief_loses_nothing`,
//! `a_push_or_a_request_sees_the_other`; weakened as `chase_lev_pop_fence`,
//! `chase_lev_steal_fence`, `chase_lev_last`, `chase_lev_push_fence`. The Release of `bottom` has
//! no such control: the checker's fences guarantee more than the language does, and hide its lack.

use std::ptr::NonNull;

use crate::engine::{
    fork::deque::{Index, PushResult},
    prim::{
        AtomicBool, AtomicPtr, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        fence,
        pad::CachePadded,
        weakened,
    },
};

#[cfg(test)]
mod models;

/// The initial number of slots, as many as a `stack` has; a power of two, so that the remainder is
/// a mask.
const SLOTS: usize = if cfg!(blitz_loom) { 2 } else { 256 };

/// A deque of jobs: its owner pushes and pops at `bottom`, thieves take at `top`.
pub(crate) struct ChaseLevDeque<T> {
    bottom: CachePadded<AtomicU64>,
    top: CachePadded<AtomicU64>,
    ring: AtomicPtr<Ring<T>>,
    is_requested: AtomicBool,
}

struct Ring<T> {
    slots: Box<[AtomicPtr<T>]>,
    /// The ring before this one, or null.
    old: *mut Self,
}

/// The result of an attempt to steal.
pub(crate) enum Stolen<T> {
    Job(NonNull<T>),
    /// Another thread was quicker.
    Again,
    Nothing,
}

// SAFETY: 1. slots are atomics. 2. Rings are freed by the drop alone. 3. The deque hands out
// pointers and never dereferences them.
unsafe impl<T> Send for ChaseLevDeque<T> {}
// SAFETY: 1. threads share only atomics. 2. Rings are freed by the drop alone, when no thread shares
// them. 3. Pointers are never dereferenced here.
unsafe impl<T> Sync for ChaseLevDeque<T> {}

impl<T> ChaseLevDeque<T> {
    pub(crate) fn new() -> Self {
        let ring = Ring { slots: Ring::empty(SLOTS), old: std::ptr::null_mut() };
        Self {
            // Indices begin at 1, so that a pop of an empty deque does not wrap.
            bottom: CachePadded::new(AtomicU64::new(1)),
            top: CachePadded::new(AtomicU64::new(1)),
            ring: AtomicPtr::new(Box::into_raw(Box::new(ring))),
            is_requested: AtomicBool::new(false),
        }
    }

    /// Pushes a job on top.
    ///
    /// # Safety
    /// 1. The caller is the owner.
    pub(crate) unsafe fn push(&self, job: NonNull<T>) -> PushResult {
        // Relaxed: only the owner writes it.
        let index = self.bottom.load(Relaxed);
        // Acquire: the thief that took the slot's last job has read it. Pairs with the exchange in
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
            // SeqCst: pairs with the barrier of a worker that goes to sleep after its `request`.
            fence(SeqCst);
        }
        // Relaxed: the fence orders it.
        PushResult { index, is_requested: self.is_requested.load(Relaxed) }
    }

    /// Pops the job that was pushed at `index`. Returns `false` if a thief has it or if other jobs
    /// lie above it.
    ///
    /// # Safety
    /// 1. The caller is the owner, and has not taken the job in another way.
    pub(crate) unsafe fn pop_at(&self, index: Index) -> bool {
        // Relaxed: only the owner writes it.
        // SAFETY: 1. the caller is the owner.
        self.bottom.load(Relaxed) == index + 1 && unsafe { self.pop() }.is_some()
    }

    /// Pops the newest job.
    ///
    /// # Safety
    /// 1. The caller is the owner.
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<T>> {
        // Relaxed: only the owner writes it.
        let index = self.bottom.load(Relaxed) - 1;
        // O1: lowers `bottom`, so that thieves that come later leave the job alone.
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
        // Relaxed: this thread wrote it.
        let job = NonNull::new(self.own_ring().slot(index).load(Relaxed));
        if top < index {
            return job;
        }
        // SeqCst: O4; in one order with the exchanges of thieves. Relaxed on failure: a thief has
        // the job.
        let exchanged = self.top.compare_exchange(top, top + 1, SeqCst, Relaxed);
        self.set_bottom(index + 1);
        if exchanged.is_ok() || weakened!("chase_lev_last") { job } else { None }
    }

    fn set_bottom(&self, bottom: Index) {
        // Release: publishes the slots below, and what lies behind their pointers. It is needed
        // also where `bottom` is raised again, because a thief that reads that value relies on it
        // too. Pairs with the Acquire in `steal`.
        self.bottom.store(bottom, Release);
    }

    /// Steals the oldest job.
    pub(crate) fn steal(&self) -> Stolen<T> {
        // Acquire: T1; sees what the last taker saw. Pairs with the exchanges of `top`.
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
        // SAFETY: rings stay until the deque is dropped.
        let job = unsafe { &*ring }.slot(top).load(Relaxed);
        // SeqCst: T5, in one order with the exchange in `pop`; shows `push` that we have read the
        // slot. Relaxed on failure: another thread has the job.
        match self.top.compare_exchange(top, top + 1, SeqCst, Relaxed) {
            Ok(_) => NonNull::new(job).map_or(Stolen::Nothing, Stolen::Job),
            Err(_) => Stolen::Again,
        }
    }

    /// Returns whether there seems to be a job.
    #[cfg_attr(not(test), allow(dead_code, reason = "only models call it"))]
    fn has_jobs(&self) -> bool {
        // Relaxed: they are as recent as the caller's barriers make them.
        self.bottom.load(Relaxed) > self.top.load(Relaxed)
    }

    /// Requests that the owner calls `publish` after its next push.
    #[cfg_attr(not(test), allow(dead_code, reason = "only models call it"))]
    fn request(&self) {
        // AcqRel: of this swap and the one in `publish`, the later one sees what was done before the
        // other.
        self.is_requested.swap(true, AcqRel);
    }

    /// Takes the request away, and returns whether there was one. All jobs are public anyway.
    #[cfg_attr(not(test), allow(dead_code, reason = "only models call it"))]
    fn publish(&self) -> bool {
        // AcqRel: sees what was done before the request. Pairs with the swap in `request`.
        self.is_requested.swap(false, AcqRel)
    }

    /// Returns the ring; only for the owner.
    fn own_ring(&self) -> &Ring<T> {
        // Relaxed: only the owner writes it.
        // SAFETY: rings stay until the deque is dropped.
        unsafe { &*self.ring.load(Relaxed) }
    }

    #[cold]
    fn grow(&self, old: &Ring<T>, top: Index, bottom: Index) -> &Ring<T> {
        let slots = Ring::empty(2 * old.slots.len());
        let ring = Ring { slots, old: std::ptr::from_ref(old).cast_mut() };
        for index in top..bottom {
            // Relaxed: this thread wrote it, and the store below publishes it.
            ring.slot(index).store(old.slot(index).load(Relaxed), Relaxed);
        }
        let ring = Box::into_raw(Box::new(ring));
        // Release: publishes the slots. Pairs with the Acquire in `steal`.
        self.ring.store(ring, Release);
        // SAFETY: rings stay until the deque is dropped.
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

impl<T> Drop for ChaseLevDeque<T> {
    fn drop(&mut self) {
        // Relaxed: no other thread has the deque any more.
        let mut ring = self.ring.load(Relaxed);
        while !ring.is_null() {
            // SAFETY: each ring came from a box, and is in the chain once.
            ring = unsafe { Box::from_raw(ring) }.old;
        }
    }
}
