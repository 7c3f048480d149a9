//! The stack and its contender, opened up for bench/queues and nothing else.
//!
//! Thin, inlined doors over one concrete type of job that is never run, so that the benchmark's
//! own code stays free of unsafe. A push and the pop of its index are one call: a join keeps
//! the index in a register, and a door that must be right for any index could not.

use std::ptr::NonNull;

use super::chase_lev::{Deque, Stolen};
use super::stack::{Pushed, Stack};

/// A job's place; nothing reads what is there.
#[derive(Debug, Clone, Copy)]
pub struct Job(NonNull<u64>);

// SAFETY: nobody reads what is behind it, and it lives for ever.
unsafe impl Send for Job {}

impl Job {
    /// Jobs with a place of their own each.
    pub fn many(count: usize) -> Vec<Self> {
        let places: &'static mut [u64] = vec![0; count].leak();
        places.iter_mut().map(|place| Self(NonNull::from(place))).collect()
    }
}

/// A worker's stack. Its owner is whoever may change it.
pub struct JobStack(Stack<u64>);

impl std::fmt::Debug for JobStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobStack").finish_non_exhaustive()
    }
}

impl JobStack {
    /// As workers have it, with the barrier that the system offers.
    pub fn new() -> Self {
        Self(Stack::new())
    }

    /// With fences for barriers.
    pub fn fenced() -> Self {
        Self(Stack::with(true, true))
    }

    /// Pushes a job, and answers who asked.
    #[inline]
    pub fn push(&mut self, job: Job) -> bool {
        self.put(job).is_asked
    }

    #[inline(always)]
    fn put(&mut self, job: Job) -> Pushed {
        // SAFETY: 1. we are borrowed for change. 2. Two lines below.
        let pushed = unsafe { self.0.push(job.0) };
        if pushed.is_asked {
            // SAFETY: as above.
            unsafe { self.0.answer() };
        }
        pushed
    }

    /// What a join does if nobody steals: pushes a job and takes it back by its index.
    #[inline]
    pub fn push_pop(&mut self, job: Job) -> bool {
        let index = self.put(job).index;
        // SAFETY: 1. we are borrowed for change. 2. and 3. There was nothing since.
        unsafe { self.0.pop_at(index) }
    }

    /// Takes the newest job.
    pub fn pop(&mut self) -> Option<Job> {
        // SAFETY: we are borrowed for change.
        unsafe { self.0.pop() }.map(Job)
    }

    /// Asks for jobs; the next push publishes half of them.
    pub fn demand(&self) {
        self.0.demand();
    }

    /// Takes the oldest job.
    #[inline]
    pub fn steal(&self) -> Option<Job> {
        self.0.steal().map(Job)
    }
}

impl Default for JobStack {
    fn default() -> Self {
        Self::new()
    }
}

/// The deque of Chase and Lev. Its owner is whoever may change it.
pub struct ChaseLev(Deque<u64>);

impl std::fmt::Debug for ChaseLev {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChaseLev").finish_non_exhaustive()
    }
}

impl ChaseLev {
    /// An empty one.
    pub fn new() -> Self {
        Self(Deque::new())
    }

    /// Pushes a job; nobody asks here.
    #[inline]
    pub fn push(&mut self, job: Job) -> bool {
        // SAFETY: 1. we are borrowed for change.
        unsafe { self.0.push(job.0) }.is_asked
    }

    /// Pushes a job and takes it back by its index.
    #[inline]
    pub fn push_pop(&mut self, job: Job) -> bool {
        // SAFETY: 1. as above; it was not taken since.
        unsafe {
            let index = self.0.push(job.0).index;
            self.0.pop_at(index)
        }
    }

    /// Takes the newest job.
    pub fn pop(&mut self) -> Option<Job> {
        // SAFETY: 1. as above.
        unsafe { self.0.pop() }.map(Job)
    }

    /// Takes the oldest job; none also if somebody else was quicker.
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
