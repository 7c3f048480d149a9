//! A worker's jobs: private until somebody asks for them.
//!
//! # Protocol
//! Jobs have indices, which grow by one with each theft and are words of 64 bits everywhere: of
//! 32, they would be used up within the hour, while frames still know theirs. The *owner*
//! pushes and pops at `tail`; *thieves* take at `head`, under the lock. Jobs below `public`
//! may be taken; those from `public` to `tail` are the owner's own.
//!
//! ```text
//! word     written by                     read by
//! tail     the owner                      thieves (Acquire, after the barrier)
//! guard    whoever holds the lock         the owner, after the barrier
//! limit    thieves (0: an ask), the owner the owner, on each push
//! base     the owner, under the lock      the owner, and whoever holds the lock
//! head     whoever holds the lock         thieves, as a hint
//! ```
//!
//! *Push* writes the slot, then `tail`, then looks at `limit`: two stores, one load. *Pop*
//! sets `tail` to the index of the job, then looks at `guard`: if that is not above the index, the
//! job is the owner's, the last one too. No read-modify-write and no fence in either.
//!
//! ```text
//! The owner pops index t        A thief takes without being answered
//! O1 tail = t                   T1 locks, guard = s  (above the jobs it wants)
//! O2 light()                    T2 heavy()
//! O3 guard <= t: it is ours     T3 reads tail, public = min(s, tail)
//!    else: lock and look        T4 takes at head, if head < public
//! ```
//! One of O2 and T2 comes first (see `prim::barrier`). If O2, T3 sees the lower `tail` and
//! leaves index t alone. If T2, O3 sees the guard and waits for the lock, under which
//! `head` says who has the job.
//!
//! *Balance*: that pop does not look at `tail`, because a join that comes back to its job has
//! nothing above it, if all that ran meanwhile was joins. Jobs that no such pop will follow
//! are *loose*. They are pushed under the lock (`push_loose`), and `loose` there is above all of
//! them that are left; so is the guard. A pop of an index below goes to the lock, where it
//! is *settled* whether loose jobs lie above, and then `tail` is put back above the highest of
//! them: joins above that have come to their end, and their jobs are gone. Otherwise all is
//! in order, and `loose` comes down to the index.
//!
//! A join whose job was run by somebody who waited must know that and not pop: `tail` may be
//! below its index, and raising it would show thieves what is not there.
//!
//! *Ask*: a thief that finds no public job, or none at all, writes 0 into `limit`. The owner's next
//! push then `answer`s: it publishes half of its private jobs, and its caller wakes
//! somebody if that is due. A thief waits for the answer about as long as forcing took lately,
//! and then forces: so waiting in vain at most doubles the price. It waits less for an owner
//! that does not touch its stack meanwhile.
//! One who is about to sleep asks in the same way (`demand`). It is a swap, and so is the owner's
//! reset in `answer`: of two that meet, the later one sees what the earlier one did before, also
//! if others have asked in between.
//! So a push is seen by who goes to sleep, or sees the demand (the barrier stands between
//! `tail` and `limit`, too).
//!
//! *Growth*: slots are an array that is moved or doubled by the owner under the lock, which
//! every thief holds while it reads a slot. `base` points so that `base + index` is the
//! slot of an index: indices never change.
//!
//! *Fences*: where there is no asymmetric barrier, the light side of it must be a fence. Push
//! and pop do not know of that: in a stack that is *fenced* the words that they look at say for
//! ever that somebody asked and that a thief is about. So each push and pop comes to the
//! cold side, `answer` and `settle`. These begin with the fence and look at the true words
//! (`guard` and `limit` of `Fenced`) then. It is the same algorithm at the price of Chase-Lev.
//!
//! # Invariants
//! While the lock is free: `head <= public <= tail` and `loose <= tail`, but for an owner in the
//! middle of a pop; `guard` is the larger of `public` and `loose`, or `ALL` for ever in a
//! stack that is *shared*: there the owner locks for each pop, and thieves need neither asks
//! nor barriers. That is the mode of those who take the oldest job first.
//! The slot of `tail` exists.
//!
//! # Rejected
//! - Chase-Lev: a full fence in each pop costs more than the rest of a join together. Where that
//!   must be paid, this stack pays it as well, and needs no read-modify-write for the last
//!   job and no old arrays that thieves may still read.
//! - A flag that push and pop look at, to know whether the barrier is a fence: those who have a
//!   barrier would pay for those who have none.
//! - Publishing every other push: it costs those who have no thieves.
//! - A slot per depth with `head` lowered to it after a theft: jobs that are not balanced by
//!   a pop (spawned ones) would run off any array.
//!
//! # Checked by
//! `models.rs`: `a_job_is_popped_or_forced_once`, `two_jobs_go_to_owner_and_thief_once_each`,
//! `a_push_after_a_theft_is_seen_once`, `two_thieves_never_take_the_same_job`,
//! `jobs_that_move_while_a_thief_is_there_are_taken_once`, `an_answer_publishes_what_was_asked_for`,
//! `a_push_or_a_demand_sees_the_other`, `a_shared_stack_gives_each_job_once`,
//! `a_reset_limit_hides_no_demand`, `a_join_beside_loose_jobs_and_a_thief_loses_none`,
//! `a_job_that_a_wait_took_is_not_popped_again`, `loose_jobs_are_seen_while_a_join_comes_back`,
//! `a_fenced_stack_gives_each_job_once`, `a_fenced_push_or_a_demand_sees_the_other`,
//! `indices_go_on_where_a_word_of_32_bits_ends`,
//! `a_lock_that_a_panic_left_behind_is_no_reason_to_steal_no_more`; weakened as `stack_pop_light`,
//! `stack_settle_fence`, `stack_answer_fence`, `stack_sees_loose`,
//! `stack_force_heavy`, `stack_push_light`, `stack_tail_release`, `stack_demand_swap`, `stack_force_rereads`,
//! `stack_shared_pops`, `stack_theft_restores_tail`, `stack_loose_stays`, `stack_settle_above`.

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

type Slot<T> = AtomicPtr<T>;

/// See the module.
pub(crate) type Index = u64;

/// Slots at first. Nested joins of balanced trees need some dozens; picked, not measured.
const SLOTS: usize = if cfg!(blitz_loom) { 3 } else { 256 };

/// Pauses that a thief waits for an answer before it forces, at first, and of an owner that
/// does not touch its stack: two to three microseconds, the barrier's cost on bare metal,
/// so that waiting in vain at most doubles it.
const PATIENCE: u32 = if cfg!(blitz_loom) { 1 } else { 60 };

/// The same at the most: some 25 microseconds, what it costs to interrupt another processor
/// of a virtual machine.
const MOST_PATIENCE: u32 = if cfg!(blitz_loom) { 1 } else { 600 };

/// What a pause with its look takes here.
const PAUSE_NS: u128 = 45;

/// An ask, in `limit`.
const ASKED: Index = 0;

/// The `guard` of a shared stack, and what a fenced one shows.
const ALL: Index = Index::MAX;

/// What the owner touches on each push and pop.
struct Owner<T> {
    tail: AtomicU64,
    guard: AtomicU64,
    limit: AtomicU64,
    base: AtomicPtr<Slot<T>>,
    /// In use if the stack is fenced.
    fenced: Fenced,
}

/// What `guard` and `limit` are in truth, if those always send the owner to the cold side.
struct Fenced {
    guard: AtomicU64,
    limit: AtomicU64,
}

/// What the lock guards.
struct Shared<T> {
    head: Index,
    public: Index,
    /// Above every job that is not a join's; as low as is known.
    loose: Index,
    slots: Slots<T>,
}

/// The array, and the index of its first slot.
struct Slots<T> {
    memory: NonNull<[Slot<T>]>,
    first: Index,
}

/// See the module.
pub(crate) struct Stack<T> {
    owner: CachePadded<Owner<T>>,
    thieves: CachePadded<Thieves<T>>,
    /// The owner pops without the lock if it can.
    is_private: bool,
    /// Barriers are fences, and `Fenced` has the true words.
    is_fenced: bool,
}

struct Thieves<T> {
    /// A copy of `Shared::head`.
    head: AtomicU64,
    /// As long, in pauses, as forcing has lately taken.
    patience: AtomicU32,
    shared: Mutex<Shared<T>>,
}

// SAFETY: 1. slots are atomics, and the array's memory is changed only under the lock by
// the owner. 2. The stack hands out pointers and reads none of them: what is behind them is
// their users' affair.
unsafe impl<T> Send for Stack<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Stack<T> {}
// SAFETY: as above; the memory belongs to whoever has the value.
unsafe impl<T> Send for Slots<T> {}

/// What a push found.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pushed {
    /// The job's index.
    pub(crate) index: Index,
    /// Somebody asked, or the slots are used up: [`Stack::answer`] is due before the next
    /// push.
    pub(crate) is_asked: bool,
}

impl<T> Stack<T> {
    /// A stack whose owner takes the newest job first.
    pub(crate) fn new() -> Self {
        Self::with(true, needs_fences())
    }

    /// A stack whose owner locks for each pop, and so may take the oldest job as well.
    pub(crate) fn shared() -> Self {
        Self::with(false, needs_fences())
    }

    pub(super) fn with(is_private: bool, is_fenced: bool) -> Self {
        // Indices begin at 1, so that `ASKED` is below all of them.
        Self::starting_at(1, is_private, is_fenced)
    }

    fn starting_at(index: Index, is_private: bool, is_fenced: bool) -> Self {
        let slots = Slots::new(SLOTS, index - 1);
        let (guard, limit) = (if is_private { index } else { ALL }, slots.end());
        Self {
            owner: CachePadded::new(Owner {
                tail: AtomicU64::new(index),
                guard: AtomicU64::new(if is_fenced { ALL } else { guard }),
                limit: AtomicU64::new(if is_fenced { ASKED } else { limit }),
                base: AtomicPtr::new(slots.base()),
                fenced: Fenced { guard: AtomicU64::new(guard), limit: AtomicU64::new(limit) },
            }),
            thieves: CachePadded::new(Thieves {
                head: AtomicU64::new(index),
                patience: AtomicU32::new(PATIENCE),
                shared: Mutex::new(Shared { head: index, public: index, loose: index, slots }),
            }),
            is_private,
            is_fenced,
        }
    }

    /// The true guard, for all but `pop_at`.
    fn guard(&self) -> &AtomicU64 {
        if self.is_fenced { &self.owner.fenced.guard } else { &self.owner.guard }
    }

    /// The true limit, for all but `push`.
    fn limit(&self) -> &AtomicU64 {
        if self.is_fenced { &self.owner.fenced.limit } else { &self.owner.limit }
    }

    /// The owner's side of the barrier, on the hot path. A fenced stack has its fence on the
    /// cold one.
    #[inline(always)]
    fn light(&self) {
        // Models know fences only, and must not be helped by one that is not there.
        if !(cfg!(blitz_loom) && self.is_fenced) {
            barrier::light_as(false);
        }
    }

    /// Puts a job on top.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. If the last push was asked, it has answered.
    pub(crate) unsafe fn push(&self, job: NonNull<T>) -> Pushed {
        let index = self.top();
        // SAFETY: 1. and 2. as here. 3. Just asked.
        Pushed { index, is_asked: unsafe { self.push_at(job, index) } }
    }

    /// Where the next job of the owner goes.
    #[inline(always)]
    pub(crate) fn top(&self) -> Index {
        // Relaxed: only the owner writes it, and who asks is the owner.
        self.owner.tail.load(Relaxed)
    }

    /// [`push`](Self::push) for one who must know the index before; whether somebody asked.
    ///
    /// # Safety
    /// 1. and 2. as there. 3. `index` is what [`top`](Self::top) says.
    #[inline(always)]
    pub(crate) unsafe fn push_at(&self, job: NonNull<T>, index: Index) -> bool {
        let owner = &*self.owner;
        // Relaxed: only the owner writes `base`, and we are the owner.
        let base = owner.base.load(Relaxed);
        // SAFETY: the slot of `tail` exists (an invariant, 2.), and only the owner moves
        // the slots (1.).
        let slot = unsafe { &*base.wrapping_add(index as usize) };
        // Relaxed: `tail` publishes it.
        slot.store(job.as_ptr(), Relaxed);
        self.set_tail(index + 1);
        if !weakened!("stack_push_light") {
            // Pairs with the heavy barrier of who goes to sleep after its `demand`.
            self.light();
        }
        // Relaxed: the barrier is what orders it.
        index + 1 >= owner.limit.load(Relaxed)
    }

    /// Puts a job on top that is not taken back by a pop of its index.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. If the last push was asked, it has answered.
    pub(crate) unsafe fn push_loose(&self, job: NonNull<T>) -> Pushed {
        let mut shared = lock(&self.thieves.shared);
        // SAFETY: 1. and 2.
        let pushed = unsafe { self.push(job) };
        shared.loose = pushed.index + 1;
        // The lock is paid for: nobody needs to ask for this one.
        shared.public = pushed.index + 1;
        self.set_guard(&shared);
        pushed
    }

    /// Takes the job off that was pushed at `index`, the last join's; `false` if a thief has it
    /// or if others lie above it.
    ///
    /// # Safety
    /// 1. The caller is the owner. 2. Every join after that push has come to its end. 3. The owner
    ///    itself has not taken the job otherwise.
    #[inline(always)]
    pub(crate) unsafe fn pop_at(&self, index: Index) -> bool {
        self.set_tail(index);
        if !weakened!("stack_pop_light") {
            // O2. Pairs with T2 in `force`. A shared stack needs none: its guard never changes.
            self.light();
        }
        // Relaxed: O3; the barrier orders it, and the lock orders what follows if it is
        // high.
        self.owner.guard.load(Relaxed) <= index || self.settle(index)
    }

    #[inline(always)]
    fn set_tail(&self, tail: Index) {
        let order = if weakened!("stack_tail_release") { Relaxed } else { Release };
        // Release: the slots below, and what lies behind their pointers. Pairs with the
        // Acquire in `force`.
        self.owner.tail.store(tail, order);
    }

    /// The owner has set `tail` to an index that the guard covers: is the job its own, and on
    /// top?
    #[cold]
    #[inline(never)]
    fn settle(&self, index: Index) -> bool {
        if weakened!("stack_shared_pops") && !self.is_private {
            return true;
        }
        if self.is_fenced && self.is_private {
            if !weakened!("stack_settle_fence") {
                // O2, as in `pop_at`.
                barrier::light_as(true);
            }
            // Relaxed: O3, as there.
            if self.guard().load(Relaxed) <= index {
                return true;
            }
        }
        let mut shared = lock(&self.thieves.shared);
        let is_top = shared.loose <= index + 1 || weakened!("stack_settle_above");
        if shared.head > index || !is_top {
            // Where it was: all below `head` is gone, and nothing lies above `loose`.
            if !weakened!("stack_theft_restores_tail") {
                self.set_tail(shared.head.max(shared.loose));
            }
            return false;
        }
        shared.reclaim(index);
        self.set_guard(&shared);
        true
    }

    /// Takes the newest job, whosever it is.
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
        shared.reclaim(index);
        self.set_guard(&shared);
        NonNull::new(shared.slots.slot(index).load(Relaxed))
    }

    /// Takes the oldest job of a shared stack.
    ///
    /// # Safety
    /// The caller is the owner.
    pub(crate) unsafe fn pop_oldest(&self) -> Option<NonNull<T>> {
        debug_assert!(!self.is_private, "a private stack gives its oldest job to thieves");
        self.take_oldest(&mut lock(&self.thieves.shared))
    }

    /// Whether there seems to be a job, private ones too. Exact for the owner; for others as
    /// of their last barrier.
    pub(crate) fn has_jobs(&self) -> bool {
        let shared = lock(&self.thieves.shared);
        // Relaxed: as the caller's barriers have it.
        let tail = self.owner.tail.load(Relaxed);
        // A join that comes back may have lowered `tail` below jobs that are left: it puts it
        // back under the lock.
        let left = if weakened!("stack_sees_loose") { 0 } else { shared.public.max(shared.loose) };
        tail.max(left) > shared.head
    }

    /// Whether somebody has asked since the last answer.
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: advice.
        self.limit().load(Relaxed) == ASKED
    }

    /// Makes room, and publishes half of the private jobs if somebody asked; `true` if so.
    ///
    /// # Safety
    /// The caller is the owner.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn answer(&self) -> bool {
        // Relaxed: only the owner writes it.
        let tail = self.owner.tail.load(Relaxed);
        if self.is_fenced {
            if !weakened!("stack_answer_fence") {
                // As in `push`, which always comes here.
                barrier::light_as(true);
            }
            // Relaxed: the barrier is what orders it.
            if tail < self.limit().load(Relaxed) {
                return false;
            }
        }
        let mut shared = lock(&self.thieves.shared);
        if tail >= shared.slots.end() {
            self.make_room(&mut shared, tail);
        }
        // AcqRel: sees what was done before the demand that it takes away, and shows our
        // push to one that comes later. Pairs with the swap in `demand`.
        let is_asked = self.limit().swap(shared.slots.end(), AcqRel) == ASKED;
        if is_asked && tail > shared.public {
            shared.public += (tail - shared.public).div_ceil(2);
            self.set_guard(&shared);
        }
        is_asked
    }

    /// Moves the jobs to the start of the array, or into one of twice the size.
    fn make_room(&self, shared: &mut Shared<T>, tail: Index) {
        let count = (tail - shared.head) as usize;
        let old = &shared.slots;
        let size = if 2 * count > old.len() { 2 * old.len() } else { old.len() };
        let moved = Slots::new(size, shared.head);
        for index in shared.head..tail {
            // Relaxed: the lock orders it for thieves, and the owner is this thread.
            moved.slot(index).store(old.slot(index).load(Relaxed), Relaxed);
        }
        // Relaxed: as above.
        self.owner.base.store(moved.base(), Relaxed);
        shared.slots = moved;
    }

    /// Asks the owner to answer its next push; for those who are about to sleep.
    pub(crate) fn demand(&self) {
        let limit = self.limit();
        if weakened!("stack_demand_swap") {
            limit.store(ASKED, Relaxed);
            return;
        }
        // AcqRel: as in `answer`, with which it pairs.
        limit.swap(ASKED, AcqRel);
    }

    /// Takes the oldest job, if there is one: a public one, or after a vain ask a private one.
    pub(crate) fn steal(&self) -> Option<NonNull<T>> {
        if !self.is_worth_locking() {
            return None;
        }
        // If it is taken, somebody else is about to get what there is.
        let mut shared = try_lock(&self.thieves.shared)?;
        self.take_oldest(&mut shared)
    }

    /// Waits a little for an answer if there are only private jobs; `false` if there is none.
    fn is_worth_locking(&self) -> bool {
        let owner = &*self.owner;
        // Where barriers are fences, to force costs no more than to wait. Relaxed: a guess.
        let patience = if self.is_fenced { 0 } else { self.thieves.patience.load(Relaxed) };
        let first = owner.tail.load(Relaxed);
        let mut has_moved = false;
        for step in 0..=patience {
            // Relaxed, here and below: hints; the lock decides.
            let head = self.thieves.head.load(Relaxed);
            let tail = owner.tail.load(Relaxed);
            let is_empty = tail <= head;
            has_moved |= tail != first;
            if step >= PATIENCE && !has_moved {
                // It is in a long closure, and will not answer soon.
                return true;
            }
            if !is_empty && self.guard().load(Relaxed) > head {
                return true;
            }
            // Also if there is nothing yet: then the first job that comes is public at once,
            // and need not be forced from an owner that pushes no other.
            if step == 0 && !self.is_asked() {
                self.demand();
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
            // On behalf of the next thief.
            self.demand();
        }
        NonNull::new(job)
    }

    /// T1 to T3: publishes half of the private jobs without their owner.
    fn force(&self, shared: &mut Shared<T>) {
        let owner = &*self.owner;
        // Acquire: the slots of a shared stack, whose owner pops under the lock. Pairs with
        // the Release in `set_tail`. For a private one only a guess.
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
        if !weakened!("stack_force_heavy") {
            // T2. Pairs with O2 in `pop_at`.
            barrier::heavy();
        }
        self.learn_patience(start.elapsed());
        // Acquire: T3; the slots below `tail` and what their jobs consist of. Pairs with
        // the Release in `set_tail`.
        let now = owner.tail.load(Acquire);
        let reached = if weakened!("stack_force_rereads") { wanted } else { wanted.min(now) };
        // An owner that waits for the lock in `settle` may have lowered `tail` below what
        // is public: the lock's order decides about that one.
        shared.public = public.max(reached);
        self.set_guard(shared);
    }

    /// Forcing took so long: the next thief waits as long for an answer.
    fn learn_patience(&self, cost: Duration) {
        let pauses = u32::try_from(cost.as_nanos() / PAUSE_NS).unwrap_or(u32::MAX);
        let pauses = pauses.clamp(PATIENCE, MOST_PATIENCE);
        // Relaxed, both: a guess, and the caller has the lock.
        let before = self.thieves.patience.load(Relaxed);
        // Half of the way: one that was preempted meanwhile is no rule.
        self.thieves.patience.store(before.midpoint(pauses), Relaxed);
    }

    /// Called with the lock.
    fn set_guard(&self, shared: &Shared<T>) {
        if self.is_private {
            // Relaxed: ordered by the barrier in `force`, and otherwise only the owner's
            // hint to take the lock.
            self.guard().store(shared.public.max(shared.loose), Relaxed);
        }
    }
}

/// Whether the owner's side of a barrier must be a fence. In models that side is one anyway.
fn needs_fences() -> bool {
    barrier::mechanism() == barrier::Mechanism::Fences && !cfg!(blitz_loom)
}

impl<T> Shared<T> {
    /// The owner has taken `index`. Half of what is left stays public, so that the next pops need no
    /// lock.
    fn reclaim(&mut self, index: Index) {
        let rest = index - self.head;
        self.public = self.public.min(self.head + rest.div_ceil(2));
        if !weakened!("stack_loose_stays") {
            self.loose = self.loose.min(index);
        }
    }
}

impl<T> Slots<T> {
    /// `count` empty slots, the first of which has index `first`.
    fn new(count: usize, first: Index) -> Self {
        let memory: Box<[Slot<T>]> =
            (0..count).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        // SAFETY: a box is not null.
        let memory = unsafe { NonNull::new_unchecked(Box::into_raw(memory)) };
        Self { memory, first }
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    /// The first index that has no slot.
    fn end(&self) -> Index {
        self.first + self.len() as Index
    }

    /// Where the slot of index 0 would be, as far as a pointer can say: it wraps, and wraps
    /// back when an index is added.
    fn base(&self) -> *mut Slot<T> {
        self.memory.as_ptr().cast::<Slot<T>>().wrapping_sub(self.first as usize)
    }

    fn slot(&self, index: Index) -> &Slot<T> {
        // SAFETY: the memory is ours until we are dropped, and slots are atomics.
        unsafe { &self.memory.as_ref()[(index - self.first) as usize] }
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        // SAFETY: it was a box, and is dropped once.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
    }
}
