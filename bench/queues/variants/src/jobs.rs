//! Exports the deque and its contender for the benchmarks.
//!
//! These are thin, inlined wrappers over one concrete type of job that is never run, so that the
//! benchmark's own code needs no unsafe code. A push and the pop of its index are one call, as in a
//! join: a wrapper that must be right for any index would have to check it.

use std::ptr::NonNull;

use crate::{
    engine::fork::{
        deque::{Deque, PushResult},
        fenced,
    },
    variants::chase_lev::{ChaseLevDeque, Stolen},
};

/// A job that is never run; nothing reads the memory that it points to.
#[derive(Debug, Clone, Copy)]
pub struct Job(NonNull<u64>);

// SAFETY: nothing reads the memory behind the pointer, and it is never freed.
unsafe impl Send for Job {}

impl Job {
    /// Creates `count` jobs, each with an address of its own.
    pub fn many(count: usize) -> Vec<Self> {
        let places: &'static mut [u64] = vec![0; count].leak();
        places.iter_mut().map(|place| Self(NonNull::from(place))).collect()
    }
}

/// A worker's deque. Its owner is the holder of the mutable reference.
pub struct JobDeque(Deque<u64>);

impl std::fmt::Debug for JobDeque {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobDeque").finish_non_exhaustive()
    }
}

impl JobDeque {
    /// Creates a deque as workers have it, with the barrier that the system offers.
    pub fn new() -> Self {
        Self(Deque::new())
    }

    /// Creates a deque with fences for barriers.
    pub fn fenced() -> Self {
        Self(fenced())
    }

    /// Pushes a job, and publishes jobs if they were requested. Returns whether they were.
    #[inline]
    pub fn push(&mut self, job: Job) -> bool {
        self.put(job).is_requested
    }

    #[inline(always)]
    fn put(&mut self, job: Job) -> PushResult {
        // SAFETY: 1. we have a mutable reference, so we are the owner. 2. Every push is followed by
        // `publish`, below.
        let pushed = unsafe { self.0.push(job.0) };
        if pushed.is_requested {
            // SAFETY: we have a mutable reference, so we are the owner.
            unsafe { self.0.publish() };
        }
        pushed
    }

    /// Pushes a job and pops it by its index, as a join does from which no thread steals.
    #[inline]
    pub fn push_pop(&mut self, job: Job) -> bool {
        let index = self.put(job).index;
        // SAFETY: 1. we have a mutable reference, so we are the owner. 2. and 3. Nothing was pushed
        // or popped since the push.
        unsafe { self.0.pop_at(index) }
    }

    /// Takes the newest job.
    pub fn pop(&mut self) -> Option<Job> {
        // SAFETY: we have a mutable reference, so we are the owner.
        unsafe { self.0.pop() }.map(Job)
    }

    /// Requests jobs; the next push publishes half of them.
    pub fn request(&self) {
        self.0.request();
    }

    /// Takes the oldest job.
    #[inline]
    pub fn steal(&self) -> Option<Job> {
        self.0.steal().map(Job)
    }
}

impl Default for JobDeque {
    fn default() -> Self {
        Self::new()
    }
}

/// The deque of Chase and Lev. Its owner is the holder of the mutable reference.
pub struct ChaseLev(ChaseLevDeque<u64>);

impl std::fmt::Debug for ChaseLev {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChaseLev").finish_non_exhaustive()
    }
}

impl ChaseLev {
    /// Creates an empty deque.
    pub fn new() -> Self {
        Self(ChaseLevDeque::new())
    }

    /// Pushes a job. Returns whether jobs were requested, which never happens here.
    #[inline]
    pub fn push(&mut self, job: Job) -> bool {
        // SAFETY: 1. we have a mutable reference, so we are the owner.
        unsafe { self.0.push(job.0) }.is_requested
    }

    /// Pushes a job and takes it back by its index.
    #[inline]
    pub fn push_pop(&mut self, job: Job) -> bool {
        // SAFETY: 1. we have a mutable reference, so we are the owner, and the job was not popped
        // since.
        unsafe {
            let index = self.0.push(job.0).index;
            self.0.pop_at(index)
        }
    }

    /// Takes the newest job.
    pub fn pop(&mut self) -> Option<Job> {
        // SAFETY: 1. we have a mutable reference, so we are the owner.
        unsafe { self.0.pop() }.map(Job)
    }

    /// Takes the oldest job. Returns `None` also if another thread was quicker.
    #[inline]
    pub fn steal(&self) -> Option<Job> {
        match self.0.steal() {
            Stolen::Job(job) => Some(Job(job)),
            Stolen::Again | Stolen::Nothing => None,
        }
    }
}

impl Default for ChaseLev {
    fn default() -> Self {
        Self::new()
    }
}
