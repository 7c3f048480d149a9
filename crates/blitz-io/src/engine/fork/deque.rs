//! A worker's deque of jobs, which is private until a thief requests jobs from it.
//!
//! # Protocol
//! Jobs have indices, which grow by one with each theft and are 64-bit words everywhere: words of
//! 32 bits would be used up within an hour, while frames still remember their indices. The *owner*
//! pushes and pops at `tail`; *thieves* take at `head`, under the lock. Jobs below `public` may be
//! stolen; those from `public` to `tail` are private to the owner.
//!
//! ```text
//! word     written by                        read by
//! tail     the owner                         thieves (Acquire, after the barrier)
//! guard    the holder of the lock            the owner, after the barrier
//! limit    thieves (0: a request), the owner the owner, on each push
//! base     the owner, under the lock         the owner, and the holder of the lock
//! head     the holder of the lock            thieves, as a hint
//! ```
//!
//! *Push* writes the slot, then `tail`, then reads `limit`: two stores and one load. *Pop* sets
//! `tail` to the index of the job, then reads `guard`: if that is not above the index, the job
//! belongs to the owner, even if it is the last one. Neither has a read-modify-write, nor a fence
//! where there is `membarrier` (`light` in O2 is then a fence for the compiler only).
//!
//! ```text
//! The owner pops index t        A thief takes without waiting for the owner
//! O1 tail = t                   T1 locks, guard = s  (above the jobs it wants)
//! O2 light()                    T2 heavy()
//! O3 guard <= t: it is ours     T3 reads tail, public = min(s, tail)
//!    else: lock and check       T4 takes at head, if head < public
//! ```
//! One of O2 and T2 comes first (see `prim::barrier`). If O2, T3 sees the lower `tail` and leaves
//! index t alone. If T2, O3 sees the guard and waits for the lock; under the lock, `head` decides
//! whether the owner or the thief has the job.
//!
//! *Balance*: a pop does not check `tail`, because a join that comes back to its job finds nothing
//! above it, if only joins ran meanwhile. Jobs that will not be popped by their index are *loose*.
//! They are pushed under the lock (`push_loose`); the field `loose` behind the lock is above all
//! loose jobs that are left, and so is the guard. A pop of an index below that takes the lock, and
//! `pop_at_slow` decides whether loose jobs lie above the index. If they do, `tail` is set back to
//! just above the highest of them: the joins above it have ended, and their jobs are gone. If not,
//! everything is in order, and `loose` is lowered to the index.
//!
//! If a wait of its own thread has run the job of a join, the join must know that and not pop:
//! `tail` may be below its index, and raising it would show thieves slots that hold no job.
//!
//! *Request*: a thief that finds no public job, or none at all, writes 0 into `limit`. The owner's
//! next push reports that, and the owner calls `publish`, which publishes half of its private jobs;
//! then it wakes a worker if that is due. A thief waits for the owner about as long as forcing has
//! taken lately, and then forces the jobs to be public itself; so waiting in vain at most doubles
//! the price. It waits less for an owner that does not touch its deque meanwhile.
//!
//! A worker that is about to sleep requests jobs in the same way (`request`). That is a swap, and
//! so is the owner's reset in `publish`: of two swaps that meet, the later one sees what was done
//! before the earlier one, even if other requests came in between. So either the worker that goes
//! to sleep sees the push, or the push sees the request (the barrier stands between `tail` and
//! `limit`, too).
//!
//! *Growth*: the slots are an array that the owner moves or doubles under the lock, which every
//! thief holds while it reads a slot. `base` points so that `base + index` is the slot of an index:
//! indices never change.
//!
//! *Fences*: where there is no asymmetric barrier, its light side must be a fence. Push and pop do
//! not know about that: in a *fenced* deque, the words that they read say permanently that a
//! request is pending and that a thief is active. So each push and each pop takes its cold path,
//! `publish` or `pop_at_slow`, which begins with the fence and then reads the true words (`guard`
//! and `limit` of `Fenced`). This is the same algorithm at the price of Chase-Lev.
//!
//! # Invariants
//! While the lock is free: `head <= public <= tail` and `loose <= tail`, except for an owner in the
//! middle of a pop. `guard` is the larger of `public` and `loose`, or permanently `ALL` in a
//! *shared* deque: there the owner locks for each pop, and thieves need neither requests nor
//! barriers. That mode is for pools that take the oldest job first. The slot of `tail` exists.
//!
//! # Rejected
//! - Chase-Lev: a full fence in each pop costs more than the rest of a join together. Where a fence
//!   must be paid, this deque pays it as well, but needs no read-modify-write for the last job and
//!   no old arrays that thieves may still read.
//! - A flag that push and pop read, to know whether the barrier is a fence: systems that have a
//!   barrier would pay for those that have none.
//! - Publishing every other push: it costs programs that have no thieves.
//! - A slot per depth with `head` lowered to it after a theft: jobs that are not balanced by a pop
//!   (spawned ones) would run off any array.
//!
//! # Checked by
//! `models.rs`: `a_job_is_popped_or_forced_once`, `two_jobs_go_to_owner_and_thief_once_each`,
//! `a_push_after_a_theft_is_seen_once`, `two_thieves_never_take_the_same_job`,
//! `jobs_that_move_while_a_thief_is_there_are_taken_once`,
//! `requested_jobs_are_published`, `a_push_or_a_request_sees_the_other`,
//! `a_shared_deque_gives_each_job_once`, `a_reset_limit_hides_no_request`,
//! `a_join_beside_loose_jobs_and_a_thief_loses_none`, `a_job_that_a_wait_took_is_not_popped_again`,
//! `loose_jobs_are_seen_while_a_join_comes_back`, `a_fenced_deque_gives_each_job_once`,
//! `a_fenced_push_or_a_request_sees_the_other`, `indices_go_on_where_a_word_of_32_bits_ends`,
//! `a_lock_that_a_panic_left_behind_is_no_reason_to_steal_no_more`; weakened as `deque_pop_light`,
//! `deque_settle_fence`, `deque_publish_fence`, `deque_sees_loose`, `deque_force_heavy`,
//! `deque_push_light`, `deque_tail_release`, `deque_request_swap`, `deque_force_rereads`,
//! `deque_shared_pops`, `deque_theft_restores_tail`, `deque_loose_stays`, `deque_settle_above`.

use std::{
    ptr::NonNull,
    time::{Duration, Instant},
};

use crate::engine::prim::{
    AtomicPtr, AtomicU32, AtomicU64, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    barrier, lock,
    pad::CachePadded,
    spin_loop, try_lock, weakened,
};

#[cfg(test)]
mod models;

type JobSlot<T> = AtomicPtr<T>;

/// The index of a job on a [`Deque`]; it never changes while the job is there.
pub(crate) type Index = u64;

/// The initial number of slots. Nested joins of balanced trees need some dozens; picked, not
/// measured.
const SLOTS: usize = if cfg!(blitz_loom) { 3 } else { 256 };

/// The number of pauses that a thief waits for the owner before it forces: the initial number, and
/// the number for an owner that does not touch its deque. It takes two to three microseconds, the
/// barrier's cost on bare metal, so that waiting in vain at most doubles that cost.
const MIN_PAUSES: u32 = if cfg!(blitz_loom) { 1 } else { 60 };

/// The largest number of pauses that a thief waits for the owner: some 25 microseconds, the cost of
/// interrupting another processor of a virtual machine.
const MAX_PAUSES: u32 = if cfg!(blitz_loom) { 1 } else { 600 };

/// Nanoseconds that one pause takes, together with the check between pauses.
const PAUSE_NS: u128 = 45;

/// The value of `limit` that is a request for jobs.
const REQUESTED: Index = 0;

/// The `guard` of a shared deque, and the value that a fenced deque always shows there.
const ALL: Index = Index::MAX;

/// The words that the owner touches on each push and pop.
struct OwnerSide<T> {
    tail: AtomicU64,
    guard: AtomicU64,
    limit: AtomicU64,
    base: AtomicPtr<JobSlot<T>>,
    /// Used if the deque is fenced.
    fenced: Fenced,
}

/// The true values of `guard` and `limit` in a fenced deque, where the words of those names always
/// send the owner to the cold path.
struct Fenced {
    guard: AtomicU64,
    limit: AtomicU64,
}

/// The data behind the lock.
struct Shared<T> {
    head: Index,
    public: Index,
    /// An index above every loose job (one that is not a join's), as low as is known.
    loose: Index,
    slots: JobSlots<T>,
}

/// The array of slots, and the index of its first slot.
struct JobSlots<T> {
    memory: NonNull<[JobSlot<T>]>,
    first: Index,
}

/// A worker's jobs: its owner pushes and pops at one end, thieves take at the other.
pub(crate) struct Deque<T> {
    owner: CachePadded<OwnerSide<T>>,
    thieves: CachePadded<Thieves<T>>,
    /// True if the owner pops without the lock where it can.
    is_private: bool,
    /// True if barriers are fences, and `Fenced` holds the true words.
    is_fenced: bool,
}

struct Thieves<T> {
    /// A copy of `Shared::head`.
    head: AtomicU64,
    /// How long forcing has lately taken, in pauses.
    wait_pauses: AtomicU32,
    shared: Mutex<Shared<T>>,
}

// SAFETY: 1. slots are atomics, and only the owner changes the array's memory, under the lock. 2.
// The deque hands out pointers and never dereferences them; their users are responsible for what is
// behind them.
unsafe impl<T> Send for Deque<T> {}
// SAFETY: 1. threads share only atomics and the lock; the array is changed by the owner, under the
// lock. 2. The pointers are never dereferenced here.
unsafe impl<T> Sync for Deque<T> {}
// SAFETY: slots are atomics that hold pointers, which are never dereferenced, and the memory
// belongs to this value alone.
unsafe impl<T> Send for JobSlots<T> {}

/// The result of a push.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PushResult {
    /// The job's index.
    pub(crate) index: Index,
    /// True if jobs were requested or the slots are used up: [`Deque::publish`] must be called
    /// before the next push.
    pub(crate) is_requested: bool,
}

impl<T> Deque<T> {
    /// Creates a deque for an owner that takes the newest job first.
    pub(crate) fn new() -> Self {
        Self::with(true, needs_fences())
    }

    /// Creates a deque for an owner that locks for each pop, and so may take the oldest job as
    /// well.
    pub(crate) fn shared() -> Self {
        Self::with(false, needs_fences())
    }

    pub(super) fn with(is_private: bool, is_fenced: bool) -> Self {
        // Indices begin at 1, so that `REQUESTED` is below all of them.
        Self::starting_at(1, is_private, is_fenced)
    }

    fn starting_at(index: Index, is_private: bool, is_fenced: bool) -> Self {
        let slots = JobSlots::new(SLOTS, index - 1);
        let (guard, limit) = (if is_private { index } else { ALL }, slots.end());
        Self {
            owner: CachePadded::new(OwnerSide {
                tail: AtomicU64::new(index),
                guard: AtomicU64::new(if is_fenced { ALL } else { guard }),
                limit: AtomicU64::new(if is_fenced { REQUESTED } else { limit }),
                base: AtomicPtr::new(slots.base()),
                fenced: Fenced { guard: AtomicU64::new(guard), limit: AtomicU64::new(limit) },
            }),
            thieves: CachePadded::new(Thieves {
                head: AtomicU64::new(index),
                wait_pauses: AtomicU32::new(MIN_PAUSES),
                shared: Mutex::new(Shared { head: index, public: index, loose: index, slots }),
            }),
            is_private,
            is_fenced,
        }
    }

    /// Returns the true guard, for every reader and writer but `pop_at`.
    fn guard(&self) -> &AtomicU64 {
        if self.is_fenced { &self.owner.fenced.guard } else { &self.owner.guard }
    }

    /// Returns the true limit, for every reader and writer but `push`.
    fn limit(&self) -> &AtomicU64 {
        if self.is_fenced { &self.owner.fenced.limit } else { &self.owner.limit }
    }

    /// Performs the owner's side of the barrier on the hot path. A fenced deque has its fence on
    /// the cold path instead.
    #[inline(always)]
    fn light(&self) {
        // Models know fences only, and must not be helped by one that does not exist in a real
        // build.
        if !(cfg!(blitz_loom) && self.is_fenced) {
            barrier::light_as(false);
        }
    }

    /// Pushes a job on top.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. If the last push returned a request, the caller has called
    ///    `publish`.
    pub(crate) unsafe fn push(&self, job: NonNull<T>) -> PushResult {
        let index = self.top();
        // SAFETY: 1. our caller is the owner. 2. It has called `publish` if the last push required
        // that. 3. `index` was just read from `top`.
        PushResult { index, is_requested: unsafe { self.push_at(job, index) } }
    }

    /// Returns the index at which the owner's next job will be pushed.
    #[inline(always)]
    pub(crate) fn top(&self) -> Index {
        // Relaxed: only the owner writes it, and the caller is the owner.
        self.owner.tail.load(Relaxed)
    }

    /// Pushes a job at an index that the caller had to know before, and returns whether jobs were
    /// requested.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. If the last push returned a request, the caller has called
    ///    `publish`. 3. `index` is what [`top`](Self::top) returned.
    #[inline(always)]
    pub(crate) unsafe fn push_at(&self, job: NonNull<T>, index: Index) -> bool {
        let owner = &*self.owner;
        // Relaxed: only the owner writes `base`, and we are the owner.
        let base = owner.base.load(Relaxed);
        // SAFETY: the slot of `tail` exists (an invariant, kept by obligation 2), and only the
        // owner, which we are (1), moves the slots.
        let slot = unsafe { &*base.wrapping_add(index as usize) };
        // Relaxed: the store of `tail` below publishes it.
        slot.store(job.as_ptr(), Relaxed);
        self.set_tail(index + 1);
        if !weakened!("deque_push_light") {
            // Pairs with the heavy barrier of a worker that goes to sleep after its `request`.
            self.light();
        }
        // Relaxed: the barrier orders it.
        index + 1 >= owner.limit.load(Relaxed)
    }

    /// Pushes a job that will not be taken back by a pop of its index.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. If the last push returned a request, the caller has called
    ///    `publish`.
    pub(crate) unsafe fn push_loose(&self, job: NonNull<T>) -> PushResult {
        let mut shared = lock(&self.thieves.shared);
        // SAFETY: 1. our caller is the owner. 2. It has called `publish` if the last push required
        // that.
        let pushed = unsafe { self.push(job) };
        shared.loose = pushed.index + 1;
        // The lock is paid for already, so the job is made public: no thief needs to request it.
        shared.public = pushed.index + 1;
        self.set_guard(&shared);
        pushed
    }

    /// Pops the job that was pushed at `index`, which is the newest join's. Returns `false` if a
    /// thief has the job or if other jobs lie above it.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. Every join that began after that push has ended. 3. The owner
    ///    itself has not taken the job in another way.
    #[inline(always)]
    pub(crate) unsafe fn pop_at(&self, index: Index) -> bool {
        self.set_tail(index);
        if !weakened!("deque_pop_light") {
            // O2. Pairs with T2 in `force`. A shared deque needs none: its guard never changes.
            self.light();
        }
        // Relaxed: O3; the barrier orders it, and if the guard is high, the lock orders what
        // follows.
        self.owner.guard.load(Relaxed) <= index || self.pop_at_slow(index)
    }

    #[inline(always)]
    fn set_tail(&self, tail: Index) {
        let order = if weakened!("deque_tail_release") { Relaxed } else { Release };
        // Release: publishes the slots below, and what lies behind their pointers. Pairs with the
        // Acquire in `force`.
        self.owner.tail.store(tail, order);
    }

    /// Decides whether the owner gets the job at `index`, to which it has set `tail`, where the
    /// guard covers that index: returns true if the job is still there and on top.
    #[cold]
    #[inline(never)]
    fn pop_at_slow(&self, index: Index) -> bool {
        if weakened!("deque_shared_pops") && !self.is_private {
            return true;
        }
        if self.is_fenced && self.is_private {
            if !weakened!("deque_settle_fence") {
                // O2, as in `pop_at`. Pairs with T2 in `force`.
                barrier::light_as(true);
            }
            // Relaxed: O3; the fence above orders it.
            if self.guard().load(Relaxed) <= index {
                return true;
            }
        }
        let mut shared = lock(&self.thieves.shared);
        let is_top = shared.loose <= index + 1 || weakened!("deque_settle_above");
        if shared.head > index || !is_top {
            // Puts `tail` back: all jobs below `head` are gone, and nothing lies above `loose`.
            if !weakened!("deque_theft_restores_tail") {
                self.set_tail(shared.head.max(shared.loose));
            }
            return false;
        }
        shared.lower_public(index);
        self.set_guard(&shared);
        true
    }

    /// Pops the newest job, be it a join's or a loose one.
    ///
    /// # Safety
    /// The caller is the owner.
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<T>> {
        let mut shared = lock(&self.thieves.shared);
        // Relaxed: only the owner writes it.
        let tail = self.owner.tail.load(Relaxed);
        if shared.head >= tail {
            return None;
        }
        let index = tail - 1;
        self.set_tail(index);
        shared.lower_public(index);
        self.set_guard(&shared);
        NonNull::new(shared.slots.slot(index).load(Relaxed))
    }

    /// Takes the oldest job of a shared deque.
    ///
    /// # Safety
    /// The caller is the owner.
    pub(crate) unsafe fn pop_oldest(&self) -> Option<NonNull<T>> {
        debug_assert!(!self.is_private, "a private deque gives its oldest job to thieves");
        self.take_oldest(&mut lock(&self.thieves.shared))
    }

    /// Returns whether there seems to be a job, private or public. The result is exact for the
    /// owner; for other threads it is as recent as their last barrier.
    pub(crate) fn has_jobs(&self) -> bool {
        let shared = lock(&self.thieves.shared);
        // Relaxed: it is as recent as the caller's barriers make it.
        let tail = self.owner.tail.load(Relaxed);
        // A join that comes back may have lowered `tail` below jobs that are left; it will put
        // `tail` back under the lock.
        let remaining =
            if weakened!("deque_sees_loose") { 0 } else { shared.public.max(shared.loose) };
        tail.max(remaining) > shared.head
    }

    /// Returns whether jobs were requested since the last call of `publish`.
    pub(crate) fn is_requested(&self) -> bool {
        // Relaxed: the result is advice.
        self.limit().load(Relaxed) == REQUESTED
    }

    /// Makes room for the next push, and publishes half of the private jobs if they were requested.
    /// Returns whether they were.
    ///
    /// # Safety
    /// The caller is the owner.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn publish(&self) -> bool {
        // Relaxed: only the owner writes it.
        let tail = self.owner.tail.load(Relaxed);
        if self.is_fenced {
            if !weakened!("deque_publish_fence") {
                // The fence that `push` leaves out in a fenced deque, where each push ends here.
                // Pairs with the heavy barrier of a worker that goes to sleep after its `request`.
                barrier::light_as(true);
            }
            // Relaxed: the barrier orders it.
            if tail < self.limit().load(Relaxed) {
                return false;
            }
        }
        let mut shared = lock(&self.thieves.shared);
        if tail >= shared.slots.end() {
            self.make_room(&mut shared, tail);
        }
        // AcqRel: sees what was done before the request that this swap takes away, and shows our
        // push to a request that comes later. Pairs with the swap in `request`.
        let is_requested = self.limit().swap(shared.slots.end(), AcqRel) == REQUESTED;
        if is_requested && tail > shared.public {
            shared.public += (tail - shared.public).div_ceil(2);
            self.set_guard(&shared);
        }
        is_requested
    }

    /// Moves the jobs to the start of the array, or into one of twice the size.
    fn make_room(&self, shared: &mut Shared<T>, tail: Index) {
        let count = (tail - shared.head) as usize;
        let old = &shared.slots;
        let size = if 2 * count > old.len() { 2 * old.len() } else { old.len() };
        let moved = JobSlots::new(size, shared.head);
        for index in shared.head..tail {
            // Relaxed: the lock orders it for thieves, and the owner is this thread.
            moved.slot(index).store(old.slot(index).load(Relaxed), Relaxed);
        }
        // Relaxed: the lock orders it for thieves, and the owner is this thread.
        self.owner.base.store(moved.base(), Relaxed);
        shared.slots = moved;
    }

    /// Requests that the owner's next push publishes jobs; for workers that are about to sleep.
    pub(crate) fn request(&self) {
        let limit = self.limit();
        if weakened!("deque_request_swap") {
            limit.store(REQUESTED, Relaxed);
            return;
        }
        // AcqRel: shows the owner what was done before this request, or sees the owner's push.
        // Pairs with the swap in `publish`.
        limit.swap(REQUESTED, AcqRel);
    }

    /// Steals the oldest job, if there is one: a public job, or a private one after a request to
    /// which the owner did not respond.
    pub(crate) fn steal(&self) -> Option<NonNull<T>> {
        if !self.is_worth_locking() {
            return None;
        }
        // If the lock is taken, another thread is about to get the job.
        let mut shared = try_lock(&self.thieves.shared)?;
        self.take_oldest(&mut shared)
    }

    /// Waits a little for the owner if there are only private jobs. Returns `false` if there are no
    /// jobs.
    fn is_worth_locking(&self) -> bool {
        let owner = &*self.owner;
        // Where barriers are fences, forcing costs no more than waiting. Relaxed: a guess.
        let wait_pauses = if self.is_fenced { 0 } else { self.thieves.wait_pauses.load(Relaxed) };
        let first = owner.tail.load(Relaxed);
        let mut has_moved = false;
        for step in 0..=wait_pauses {
            // Relaxed, here and below: hints; the lock decides.
            let head = self.thieves.head.load(Relaxed);
            let tail = owner.tail.load(Relaxed);
            let is_empty = tail <= head;
            has_moved |= tail != first;
            if step >= MIN_PAUSES && !has_moved {
                // The owner is in a long closure, and will not push soon.
                return true;
            }
            if !is_empty && self.guard().load(Relaxed) > head {
                return true;
            }
            // The request is made even if the deque is empty: then the first job that comes is
            // public at once, and need not be forced from an owner that pushes no other.
            if step == 0 && !self.is_requested() {
                self.request();
            }
            if is_empty {
                return false;
            }
            spin_loop();
        }
        true
    }

    fn take_oldest(&self, shared: &mut Shared<T>) -> Option<NonNull<T>> {
        if shared.head >= shared.public {
            self.force(shared);
        }
        if shared.head >= shared.public {
            return None;
        }
        let job = shared.slots.slot(shared.head).load(Relaxed);
        shared.head += 1;
        // Relaxed: a hint.
        self.thieves.head.store(shared.head, Relaxed);
        if self.is_private && shared.head == shared.public {
            // The request is made on behalf of the next thief.
            self.request();
        }
        NonNull::new(job)
    }

    /// Performs T1 to T3: publishes half of the private jobs without the owner's help.
    fn force(&self, shared: &mut Shared<T>) {
        let owner = &*self.owner;
        // Acquire: the slots of a shared deque, from which its owner pops under the lock. Pairs
        // with the Release in `set_tail`. For a private deque the value is only a guess.
        let tail = owner.tail.load(Acquire);
        if tail <= shared.public {
            return;
        }
        if !self.is_private {
            shared.public = tail;
            return;
        }
        let public = shared.public;
        let wanted = public + (tail - public).div_ceil(2);
        shared.public = wanted;
        self.set_guard(shared);
        let start = Instant::now();
        if !weakened!("deque_force_heavy") {
            // T2. Pairs with O2 in `pop_at`.
            barrier::heavy();
        }
        self.record_force_cost(start.elapsed());
        // Acquire: T3; the slots below `tail`, and the contents of their jobs. Pairs with the
        // Release in `set_tail`.
        let now = owner.tail.load(Acquire);
        let reached = if weakened!("deque_force_rereads") { wanted } else { wanted.min(now) };
        // An owner that waits for the lock in `pop_at_slow` may have lowered `tail` below what is
        // public: the order in which the lock is taken decides about that job.
        shared.public = public.max(reached);
        self.set_guard(shared);
    }

    /// Records how long forcing took: the next thief waits that long for the owner.
    fn record_force_cost(&self, cost: Duration) {
        let pauses = u32::try_from(cost.as_nanos() / PAUSE_NS).unwrap_or(u32::MAX);
        let pauses = pauses.clamp(MIN_PAUSES, MAX_PAUSES);
        // Relaxed, both: a guess, and the caller has the lock.
        let before = self.thieves.wait_pauses.load(Relaxed);
        // It moves half of the way, because a single thief that was preempted meanwhile is no rule.
        self.thieves.wait_pauses.store(before.midpoint(pauses), Relaxed);
    }

    /// Writes the guard that follows from `shared`; the caller holds the lock.
    fn set_guard(&self, shared: &Shared<T>) {
        if self.is_private {
            // Relaxed: ordered by the barrier in `force`; otherwise it is only a hint to the owner
            // to take the lock.
            self.guard().store(shared.public.max(shared.loose), Relaxed);
        }
    }
}

/// Returns whether the owner's side of a barrier must be a fence. In models that side is always
/// one.
fn needs_fences() -> bool {
    barrier::mechanism() == barrier::Mechanism::Fences && !cfg!(blitz_loom)
}

impl<T> Shared<T> {
    /// Lowers `public` and `loose` after the owner has taken `index`. Half of the rest stays
    /// public, so that the next pops need no lock.
    fn lower_public(&mut self, index: Index) {
        let rest = index - self.head;
        self.public = self.public.min(self.head + rest.div_ceil(2));
        if !weakened!("deque_loose_stays") {
            self.loose = self.loose.min(index);
        }
    }
}

impl<T> JobSlots<T> {
    /// Creates `count` empty slots, the first of which has index `first`.
    fn new(count: usize, first: Index) -> Self {
        let memory: Box<[JobSlot<T>]> =
            (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        // SAFETY: a box is not null.
        let memory = unsafe { NonNull::new_unchecked(Box::into_raw(memory)) };
        Self { memory, first }
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns the first index that has no slot.
    fn end(&self) -> Index {
        self.first + self.len() as Index
    }

    /// Returns the address at which the slot of index 0 would be. The subtraction may wrap, and
    /// wraps back when an index is added.
    fn base(&self) -> *mut JobSlot<T> {
        self.memory.as_ptr().cast::<JobSlot<T>>().wrapping_sub(self.first as usize)
    }

    fn slot(&self, index: Index) -> &JobSlot<T> {
        // SAFETY: the memory is ours until we are dropped, and slots are atomics.
        unsafe { &self.memory.as_ref()[(index - self.first) as usize] }
    }
}

impl<T> Drop for JobSlots<T> {
    fn drop(&mut self) {
        // SAFETY: the memory came from a box, and is freed once.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
    }
}
