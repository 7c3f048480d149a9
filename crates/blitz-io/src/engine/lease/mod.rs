//! The record that a thread keeps of the core it holds, so that the core can be taken from it while
//! it is stuck in user code.
//!
//! A thread with a core is either in the runtime's own code, which works on the core, or in user
//! code: a poll, a drop, a hook of a task. User code may last for ever, and nothing can end it. But
//! it does not touch the core, except by calling the runtime, and so the core can be taken without
//! the thread's help.
//!
//! # Protocol
//! The thread has a record of three words ([`PollRecord`], in its thread-local). `seq` is the
//! number of its poll, and in the lower bits how deep in the runtime's own code it is: zero in user
//! code. Only the thread writes it, by plain additions. `claim` says which thread the core belongs
//! to. The part that an inspector (another thread, such as the monitor) may read is protected by
//! the lock of the [`Lease`].
//!
//! ```text
//! the thread                              an inspector (one at a time, by the lock)
//! enters user code                        I1 `claim` = CLAIMING
//! U1 `task`, then `seq` = next, depth 0   I2 heavy barrier
//! needs its core, at the end of the       I3 reads `seq`: is it the poll that the inspector
//! poll or for a moment during it             came for, at depth 0?
//! R1 `seq` + 1                            I4 if so it may read `task`, and then takes the
//! R2 light barrier                           core (`claim` = TAKEN), marks the poll
//! R3 reads `claim`: if HELD, it has it       (`claim` = MARKED), or restores `claim`
//! R4 else it takes the lock, and does     I5 if not it restores `claim`
//!    as `claim` says then                 I6 releases the lock
//! returns to user code
//! U2 `seq` - 1
//! ```
//! During a poll R4 is: `seq` - 1, take the lock, `seq` + 1 under it, and then read `claim`. The
//! thread has touched nothing since R1, so it may count as still in user code, and `seq` shows that
//! before it waits. Otherwise an inspector that is at I2 meanwhile would wait at I3 for a thread
//! that waits for it, and give up. I2 takes microseconds, so a thread that calls the runtime more
//! often than that could never be inspected. A thread that was in the runtime's own code before R1
//! has had its core since then, or knows that it has not, and skips R4.
//!
//! One of R2 and I2 comes first. If R2, then I3 sees a depth, or a later number, and the core stays
//! where it is. If I2, then R3 sees CLAIMING, or a later value, and R4 waits at the lock until I6.
//! So the thread has its core, or knows that it has lost it, and what the inspector read of the
//! task was read before the thread went on.
//!
//! Where the light barrier must be a fence, `claim` is never HELD alone but has one more bit
//! (FENCES). So R3 fails, and R4 begins with the fence and a second read of `claim`; threads that
//! need no fence do not even check for it. The bit CLOCK works the same way for threads that check
//! a clock besides: those that poll an offloaded task, which no thread inspects once their runtime
//! ends.
//!
//! A thread that gives up its core by itself records that under the lock (RELEASED), and also when
//! it has a core again. Every write of `claim` is made under the lock, except on a thread that is
//! not watched: that thread uses its record in the same way, but no other thread reads it. This is
//! cheaper than checking whether the thread is watched.
//!
//! A thread in the middle of a poll may wait for another runtime, and be watched on behalf of that
//! one (`block_in_place`, `block_on`). Its record for the first runtime is kept under the first
//! one's lock meanwhile ([`Attachment::Suspended`]). The thread has given up the first one's core
//! by then, unless that core is never taken from it (`keeps_core`).
//!
//! # Invariants
//! 1. A core is touched by its thread while `seq` has a depth and R3 or R4 has succeeded since, or
//!    by the inspector that set `claim` to TAKEN, and then by the thread that receives it from
//!    there.
//! 2. No thread that holds the lock sees a CLAIMING of another inspection: a claim is withdrawn, or
//!    made good, before the lock is released. So a thread that waits there cannot mistake a claim
//!    that is withdrawn for a core that is lost.
//! 3. A `claim` that is TAKEN stays so until its thread has a core again. The record is the
//!    thread's and not the core's, so what the old holder writes does not affect the new one.
//! 4. While an inspector has an inspection, the task that it came for is not freed: a thread that
//!    ended the poll waits at R4.
//! 5. Other threads read a thread's record only under the lock of a lease that the record is
//!    attached to, and the thread detaches it before it ends.
//!
//! # Rejected
//! - An exchange in R4 instead of the lock. A first version had it: a thread that found CLAIMING
//!   and then failed to exchange it took its core for lost, though the claim had been withdrawn in
//!   between, and no thread had the core. A model found that; 3,400 hand-offs under load had not.
//!   With a second check it is right, but then the report of the task needs a lock anyway.
//! - `seq` in the core: the store of a thread that comes back late would hide that of the thread
//!   that has the core now.
//! - The record beside the lock, and a pointer to it in the thread-local: every use must first
//!   check whether there is one. With that, a bit for the runtime's code instead of a depth, and
//!   the choice of the barrier beside `claim`, a wake inside of a poll took 37 instructions more
//!   than without, and a poll 39 (docs/design/preemption.md).
//! - An exchange in R1 instead of the barrier: 9 ns a poll instead of 1.
//!
//! # Checked by
//! `a_core_is_taken_or_kept`, `a_wake_inside_a_poll_against_a_taker`, `two_polls_against_a_taker`,
//! `a_claim_that_comes_too_late_leaves_the_core`, `a_core_is_taken_twice_in_a_row`,
//! `a_core_that_is_given_up_is_not_taken`, `a_core_that_came_back_can_be_taken`,
//! `a_task_is_not_freed_under_a_report`, `a_mark_does_not_outlive_its_poll`,
//! `by_fences_two_polls_against_a_taker`, `by_fences_a_wake_inside_a_poll_against_a_taker`,
//! `words_of_two_runtimes_against_inspectors`, `a_thread_that_waits_and_keeps_its_core_is_marked`,
//! `words_that_end_with_their_thread_against_an_inspector`; weakened as `lease_light`,
//! `lease_fence`, `lease_heavy`, `lease_counts_depth`, `lease_seq_publishes`, `lease_rechecks`,
//! `lease_lock`, `lease_withdraws`, `lease_release_locked`, `lease_mark_is_cleared`,
//! `lease_detaches`.

use std::{ops::Range, ptr::NonNull};

use self::stack_request::{StackRequest, StackTrace};
use crate::engine::prim::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Mutex, MutexGuard,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    barrier::{Mechanism, light_as, mechanism, try_heavy},
    const_unless_loom, fence, lock, spin_loop, weakened,
};

pub(crate) mod hog_history;
#[allow(dead_code, reason = "some systems capture no stacks")]
pub(crate) mod stack_request;
/// The thread has the core; or the thread is not watched.
const HELD: u32 = 0;
/// The thread has the core, and its poll is marked: it should let others run.
const MARKED: u32 = 1;
/// An inspector is trying to take the core or to mark the poll.
const CLAIMING: u32 = 2;
/// An inspector has taken the core.
const TAKEN: u32 = 3;
/// The thread has given up the core, or has had none yet.
const RELEASED: u32 = 4;
/// The thread never had a core: it polls an offloaded task, and is not watched.
const OFFLOADED: u32 = 5;
/// A bit in addition to one of these values: the light barrier is a fence.
const FENCES: u32 = 1 << 8;
/// A bit in addition to one of these values: the thread also checks a clock to find out whether its
/// poll should let others run.
const CLOCK: u32 = 1 << 9;

/// The part of `seq` that says how deep in the runtime's code the thread is. Calls in there nest
/// only a handful of times.
const DEPTH: usize = 0xff;

/// The number of times that I3 is tried: as long as the runtime's code takes for a call from a
/// poll.
const TRIES: usize = if cfg!(blitz_loom) { 2 } else { 200 };

/// A thread's record of its poll and its core, for other threads to read.
pub(crate) struct PollRecord {
    seq: AtomicUsize,
    claim: AtomicU32,
    task: AtomicPtr<()>,
}

/// The content of a thread's [`PollRecord`] from before it began to wait inside of a poll.
#[derive(Clone, Copy)]
pub(super) struct SavedPoll {
    seq: usize,
    claim: u32,
    task: *mut (),
}

/// Methods for the thread that the record belongs to. No other thread calls them.
impl PollRecord {
    const_unless_loom! {
        /// Creates the record of a thread that is in the runtime's code.
        pub(super) fn new() -> Self {
            Self {
                seq: AtomicUsize::new(1),
                claim: AtomicU32::new(HELD),
                task: AtomicPtr::new(std::ptr::null_mut()),
            }
        }
    }

    /// Returns `seq`. Relaxed: only this thread writes it.
    #[inline(always)]
    fn seq(&self) -> usize {
        self.seq.load(Relaxed)
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.seq() & DEPTH
    }

    /// Returns true if the thread is in user code.
    #[inline(always)]
    pub(super) fn is_in_user_code(&self) -> bool {
        self.depth() == 0
    }

    /// Begins a poll of `task`: U1. The thread is in the runtime's code, at the depth of a loop
    /// that runs tasks. `task` must point to a task's `Header`, which this layer cannot name:
    /// `preempt::scan::header_of` relies on it.
    #[inline(always)]
    pub(super) fn enter(&self, task: NonNull<()>) {
        // Relaxed: published by the store below.
        self.task.store(task.as_ptr(), Relaxed);
        debug_assert_eq!(self.depth(), 1, "a poll must be entered from depth 1");
        let order = if weakened!("lease_seq_publishes") { Relaxed } else { Release };
        // Release: publishes what this thread did to the core, to a thread that takes it; and
        // `task`, which is the task of this number. Pairs with the Acquire in I3.
        self.seq.store(self.seq().wrapping_add(DEPTH), order);
    }

    /// Enters the runtime's code: R1 to R3. Returns true if the thread certainly has its core; if
    /// not, [`Lease::reclaim`] or [`Lease::leave`] finds out.
    #[inline(always)]
    pub(super) fn reclaim(&self) -> bool {
        if !weakened!("lease_counts_depth") {
            // Relaxed: only this thread writes it, and the barrier orders it.
            self.seq.store(self.seq().wrapping_add(1), Relaxed);
        }
        debug_assert!(self.depth() != 0, "the runtime calls itself too often");
        self.pass_light_barrier();
        // Acquire: an inspector that withdrew has finished its reads. Pairs with the Release in
        // `Inspection::drop`.
        self.claim.load(Acquire) == HELD
    }

    /// Goes one level deeper, on a thread that is in the runtime's code already.
    #[inline(always)]
    pub(super) fn go_deeper(&self) {
        debug_assert!(!self.is_in_user_code(), "the depth is not zero in user code");
        // Relaxed: only this thread writes it, and no other thread distinguishes one depth from
        // another.
        self.seq.store(self.seq().wrapping_add(1), Relaxed);
    }

    /// Passes the light barrier: R2, in its cheap form.
    #[inline(always)]
    fn pass_light_barrier(&self) {
        // A model has no kernel, so there this is a fence, unless the model tests FENCES.
        // Relaxed: a bit that does not change.
        let is_fenced = cfg!(blitz_loom) && self.claim.load(Relaxed) & FENCES != 0;
        if !weakened!("lease_light") && !is_fenced {
            light_as(false);
        }
    }

    /// Returns true if R1 was done inside of another R1, or in the code that runs tasks.
    pub(super) fn was_inside(&self) -> bool {
        self.depth() > 1
    }

    /// Returns to user code, or one level up: U2.
    #[inline(always)]
    pub(super) fn resume(&self) {
        if weakened!("lease_counts_depth") {
            return;
        }
        let order = if weakened!("lease_seq_publishes") { Relaxed } else { Release };
        // Release: publishes what this thread did to the core. Pairs with the Acquire in I3.
        self.seq.store(self.seq().wrapping_sub(1), order);
    }

    /// Returns `claim` without the bits FENCES and CLOCK.
    #[inline(always)]
    fn claim(&self) -> u32 {
        // Relaxed: advice, or read under the lock.
        self.claim.load(Relaxed) & !(FENCES | CLOCK)
    }

    /// Returns true if there is no mark, so that [`Self::should_yield`] need not be called.
    #[inline(always)]
    pub(super) fn is_unmarked(&self) -> bool {
        // Relaxed: advice.
        self.claim.load(Relaxed) == HELD
    }

    /// Returns true if the poll has lasted so long that it should let others run. A core that is
    /// taken is a mark, too, because that poll has lasted even longer.
    pub(super) fn should_yield(&self) -> bool {
        matches!(self.claim(), MARKED | CLAIMING | TAKEN)
    }

    /// Records the beginning or the end of the poll of an offloaded task, on a thread that is not
    /// watched.
    pub(super) fn set_offloaded(&self, offloaded: bool) {
        // Relaxed: only this thread reads it.
        self.claim.store(if offloaded { OFFLOADED } else { HELD }, Relaxed);
    }

    /// Starts a new record for a thread that may be about to wait inside of a poll, and returns the
    /// old one. From now on the record is not watched.
    pub(super) fn save(&self) -> SavedPoll {
        // Relaxed, four times: only this thread uses the record, or the lock is held.
        let (claim, task) = (self.claim(), self.task.load(Relaxed));
        let saved = SavedPoll { seq: self.seq(), claim, task };
        self.seq.store((saved.seq | DEPTH).wrapping_add(2), Relaxed);
        self.claim.store(HELD, Relaxed);
        saved
    }

    /// Restores a record; `claim` is its claim with the bits that it is to be written with.
    fn restore_with(&self, saved: SavedPoll, claim: u32) {
        // Relaxed, twice: only this thread uses the record, or the lock is held.
        self.task.store(saved.task, Relaxed);
        self.claim.store(claim, Relaxed);
        // Release: publishes `task`, which is the task of this number. Pairs with the Acquire in
        // I3.
        self.seq.store(saved.seq, Release);
    }

    /// Restores the record of a thread that is not watched.
    pub(super) fn restore(&self, saved: SavedPoll) {
        self.restore_with(saved, saved.claim);
    }
}

/// The watched side of a thread: the lock through which other threads read its [`PollRecord`] and
/// may take its core.
pub(crate) struct Lease {
    state: Mutex<LeaseState>,
    fences: bool,
    keeps_core: bool,
    has_clock: bool,
    /// True if the task should be remembered as a hog, because the core was taken during its poll.
    /// Written by the inspector, a figure that orders nothing.
    hog: AtomicBool,
    /// The channel through which the thread can be sent a request for its stack trace.
    stack_request: Option<Box<StackRequest>>,
}

/// The state under the lock.
struct LeaseState {
    attachment: Attachment,
    core: *mut (),
}

// SAFETY: the pointers are used only by the thread that holds the lock, by invariants 1, 4 and 5.
unsafe impl Send for LeaseState {}

/// The slot of a watched thread's record.
#[derive(Clone, Copy)]
enum Attachment {
    /// No record is attached yet, or any more.
    Unattached,
    /// The thread's own record. It lives until it is detached.
    Attached(NonNull<PollRecord>),
    /// A copy: the thread waits inside of a poll, and its own record may serve another runtime
    /// meanwhile.
    Suspended(SavedPoll),
}

impl LeaseState {
    /// Returns the thread's own record, if it is attached.
    fn record(&self) -> Option<&PollRecord> {
        match self.attachment {
            // SAFETY: obligation 1 of `attach`: the record lives until `detach`, which takes the
            // lock; and it is held now.
            Attachment::Attached(record) => Some(unsafe { record.as_ref() }),
            _ => None,
        }
    }

    /// Returns the thread's `claim` and `seq`, as last recorded.
    fn claim_and_seq(&self) -> Option<(u32, usize)> {
        match self.attachment {
            // Acquire: sees what the thread recorded before, for readers from outside. Pairs with
            // the Release in `enter` and `resume`.
            Attachment::Attached(_) => {
                self.record().map(|record| (record.claim(), record.seq.load(Acquire)))
            }
            Attachment::Suspended(saved) => Some((saved.claim, saved.seq)),
            Attachment::Unattached => None,
        }
    }
}

/// Methods for the thread that the lease belongs to.
impl Lease {
    /// Creates the lease of a thread that has no core yet. If `keeps_core` is true, the core is
    /// never taken from the thread.
    pub(crate) fn new(keeps_core: bool) -> Self {
        Self {
            state: Mutex::new(LeaseState {
                attachment: Attachment::Unattached,
                core: std::ptr::null_mut(),
            }),
            // A model that needs fences uses `with_fences`.
            fences: cfg!(not(blitz_loom)) && mechanism() == Mechanism::Fences,
            keeps_core,
            has_clock: false,
            hog: AtomicBool::new(false),
            stack_request: None,
        }
    }

    #[cfg(test)]
    fn with_fences(self) -> Self {
        Self { fences: true, ..self }
    }

    /// Sets whether the thread checks a clock itself, in case it is not inspected.
    pub(crate) fn with_clock(self, has_clock: bool) -> Self {
        Self { has_clock, ..self }
    }

    /// Returns true if the core is never taken from the thread.
    pub(crate) fn keeps_core(&self) -> bool {
        self.keeps_core
    }

    /// Returns true if the task polled when the core was taken should be remembered as a hog.
    pub(crate) fn is_hog(&self) -> bool {
        // Relaxed: a figure.
        self.hog.load(Relaxed)
    }

    /// Sets the channel for requests of the thread's stack trace.
    pub(crate) fn with_stack_request(self, stack_request: Option<StackRequest>) -> Self {
        Self { stack_request: stack_request.map(Box::new), ..self }
    }

    /// Writes the thread's stack trace and the number of its poll, if that is requested: H1 to H3
    /// of [`StackRequest`], on this thread.
    #[allow(dead_code, reason = "some systems capture no stacks")]
    pub(super) fn respond(
        &self,
        record: &PollRecord,
        write: impl FnOnce(&mut StackTrace, Range<usize>),
    ) {
        let Some(stack_request) = &self.stack_request else { return };
        stack_request.respond(|trace| {
            trace.poll = record.seq();
            write(trace, stack_request.stack());
        });
    }

    /// Returns `claim` with the bits that it is to be written with.
    fn with_flags(&self, claim: u32) -> u32 {
        let fences = if self.fences { FENCES } else { 0 };
        let clock = if self.has_clock { CLOCK } else { 0 };
        claim | fences | clock
    }

    /// Attaches the thread's record, which is watched from now on. The thread has no core.
    ///
    /// # Safety
    /// 1. The record lives until [`detach`](Self::detach) is called.
    pub(super) unsafe fn attach(&self, record: &PollRecord) {
        let mut state = lock(&self.state);
        // Relaxed: the lock orders it.
        record.claim.store(self.with_flags(RELEASED), Relaxed);
        state.attachment = Attachment::Attached(NonNull::from_ref(record));
    }

    /// Detaches the thread's record, which is not watched any more.
    pub(super) fn detach(&self, record: &PollRecord) {
        let mut state = lock(&self.state);
        if !weakened!("lease_detaches") {
            state.attachment = Attachment::Unattached;
        }
        drop(state);
        // Relaxed: no other thread reads it any more.
        record.claim.store(HELD, Relaxed);
    }

    /// Keeps a copy of the record of a thread that waits inside of a poll, so that the record
    /// itself is free for other use meanwhile.
    pub(super) fn suspend(&self, record: &PollRecord) {
        let mut state = lock(&self.state);
        let has_core = matches!(record.claim(), HELD | MARKED);
        debug_assert!(!has_core || self.keeps_core, "a thread that waits has no core");
        state.attachment = Attachment::Suspended(record.save());
    }

    /// Attaches the record again and restores it from the copy: the thread goes on with its poll.
    ///
    /// # Safety
    /// 1. The record lives until [`detach`](Self::detach) is called.
    pub(super) unsafe fn reattach(&self, record: &PollRecord) {
        let mut state = lock(&self.state);
        if let Attachment::Suspended(saved) = state.attachment {
            record.restore_with(saved, self.with_flags(saved.claim));
        }
        state.attachment = Attachment::Attached(NonNull::from_ref(record));
    }

    /// Passes the fence, where the light barrier is one, and repeats R3.
    fn recheck(&self, record: &PollRecord) -> bool {
        if self.fences && !weakened!("lease_fence") {
            // SeqCst: R2. Pairs with the fence in I2.
            fence(SeqCst);
        }
        // Acquire: an inspector that withdrew has finished its reads. Pairs with the Release in
        // `Inspection::drop`.
        record.claim.load(Acquire) == self.with_flags(HELD)
    }

    /// Finds out, in the middle of a poll, whether the thread has its core, after
    /// [`PollRecord::reclaim`] returned false: R4. Returns true if it has.
    #[cold]
    pub(super) fn reclaim(&self, record: &PollRecord) -> bool {
        if self.recheck(record) {
            return true;
        }
        // Release: publishes what `enter` or `resume` published; nothing was done since. Pairs with
        // the Acquire in I3.
        record.seq.store(record.seq().wrapping_sub(1), Release);
        let _state = (!weakened!("lease_lock")).then(|| lock(&self.state));
        // Relaxed: the lock orders it.
        record.seq.store(record.seq().wrapping_add(1), Relaxed);
        matches!(record.claim(), HELD | MARKED)
    }

    /// Finds out, at the end of a poll, whether the thread has its core, after
    /// [`PollRecord::reclaim`] returned false: R4. Returns true if it has, and clears the mark of
    /// the poll.
    #[cold]
    pub(super) fn leave(&self, record: &PollRecord) -> bool {
        if self.recheck(record) {
            return true;
        }
        let _state = (!weakened!("lease_lock")).then(|| lock(&self.state));
        match record.claim() {
            HELD => true,
            MARKED => {
                if !weakened!("lease_mark_is_cleared") {
                    // Relaxed: the lock orders it.
                    record.claim.store(self.with_flags(HELD), Relaxed);
                }
                true
            }
            _ => false,
        }
    }

    /// Records that the thread, which is in the runtime's code, has that core from now on.
    pub(super) fn begin(&self, record: &PollRecord, core: NonNull<()>) {
        let mut state = lock(&self.state);
        debug_assert!(!record.is_in_user_code(), "a core begins outside of user code");
        // A fresh number, because an inspector may remember the last one, which belonged to another
        // core.
        // Relaxed, three times: the lock orders them.
        record.seq.store(record.seq().wrapping_add(DEPTH + 1), Relaxed);
        self.hog.store(false, Relaxed);
        state.core = core.as_ptr();
        record.claim.store(self.with_flags(HELD), Relaxed);
    }

    /// Records that the thread, which is in the runtime's code and has the core, gives it up.
    pub(super) fn end(&self, record: &PollRecord) {
        let state = (!weakened!("lease_release_locked")).then(|| lock(&self.state));
        // Relaxed: the lock orders it.
        record.claim.store(self.with_flags(RELEASED), Relaxed);
        if let Some(mut state) = state {
            state.core = std::ptr::null_mut();
        }
    }
}

/// Methods for other threads, which inspect the thread that the lease belongs to.
impl Lease {
    /// Returns the number of the poll that the thread is in, or was in last, if it has a core. This
    /// is a guess; `inspect` checks it again.
    pub(crate) fn poll_number(&self) -> Option<usize> {
        let (claim, seq) = lock(&self.state).claim_and_seq()?;
        matches!(claim, HELD | MARKED).then_some(seq & !DEPTH)
    }

    /// Records that the task polled when the core was taken should be remembered as a hog.
    pub(crate) fn remember(&self) {
        // Relaxed: a figure.
        self.hog.store(true, Relaxed);
    }

    /// Returns true if the thread is in user code, in that poll, with its core or without.
    pub(crate) fn is_in(&self, number: usize) -> bool {
        lock(&self.state).claim_and_seq().is_some_and(|(_, seq)| seq == number)
    }

    /// Returns the channel for requests of the thread's stack trace, if there is one.
    #[allow(dead_code, reason = "some systems capture no stacks")]
    pub(crate) fn stack_request(&self) -> Option<&StackRequest> {
        self.stack_request.as_deref()
    }

    /// Returns true if the thread has a core, as last recorded.
    pub(crate) fn has_core(&self) -> bool {
        lock(&self.state).claim_and_seq().is_some_and(|(claim, _)| matches!(claim, HELD | MARKED))
    }

    /// Stops the thread from leaving user code, if it is in that poll: I1 to I3. Returns `None` if
    /// the thread is not in that poll any more, or has no core, or the system refuses the barrier.
    ///
    /// A thread that is in the runtime's code on behalf of that poll is out of it soon, so I3 is
    /// tried several times. That is as correct as once: if any try sees depth 0, then each R1 that
    /// came before I2 was over by then, and each that comes later sees CLAIMING.
    pub(crate) fn inspect(&self, number: usize) -> Option<Inspection<'_>> {
        let state = lock(&self.state);
        let (before, _) = state.claim_and_seq()?;
        if !matches!(before, HELD | MARKED) {
            return None;
        }
        let mut inspection = Inspection { lease: self, after: before, state };
        (inspection.claim(number) || weakened!("lease_rechecks")).then_some(inspection)
    }
}

impl PollRecord {
    /// Returns true if the thread is in user code, in that poll: I3.
    fn is_in_poll(&self, number: usize) -> bool {
        let order = if weakened!("lease_seq_publishes") { Relaxed } else { Acquire };
        for _ in 0..TRIES {
            // Acquire: sees what the thread did to its core before it went into user code. Pairs
            // with the Release in `enter` and `resume`.
            let seq = self.seq.load(order);
            if seq & !DEPTH != number {
                return false;
            }
            if seq == number {
                return true;
            }
            spin_loop();
        }
        false
    }
}

/// A thread that is in user code, and cannot leave it before this is dropped: I4.
pub(crate) struct Inspection<'a> {
    lease: &'a Lease,
    /// The `claim` to be written at the end of the inspection.
    after: u32,
    state: MutexGuard<'a, LeaseState>,
}

impl Inspection<'_> {
    /// Claims the core: I1 to I3. Returns true if the thread is in that poll, in user code.
    fn claim(&mut self, number: usize) -> bool {
        let record = match &self.state.attachment {
            // The thread cannot go on without the lock.
            Attachment::Suspended(saved) => return saved.seq == number,
            _ => self.state.record(),
        };
        let Some(record) = record else { return false };
        // A thread that is in the runtime's code for long is left alone. Correctness does not
        // depend on this check, and models skip it to have fewer steps.
        if !cfg!(blitz_loom) && !record.is_in_poll(number) {
            return false;
        }
        // Relaxed: the barrier orders it before I3, and the lock everything else.
        record.claim.store(self.lease.with_flags(CLAIMING), Relaxed);
        (weakened!("lease_heavy") || try_heavy()) && record.is_in_poll(number)
    }

    /// Returns the task that is being polled or dropped. It lives as long as the inspection. The
    /// pointer is opaque here: `work` stores that of a `Header`.
    pub(crate) fn task(&self) -> NonNull<()> {
        let task = match self.state.attachment {
            Attachment::Suspended(saved) => saved.task,
            // Relaxed: I3 saw the number that the task was written with.
            _ => {
                self.state.record().map_or(std::ptr::null_mut(), |record| record.task.load(Relaxed))
            }
        };
        NonNull::new(task).expect("a poll has a task")
    }

    /// Marks the poll, so that it lets others run; returns true if it was not marked before.
    pub(crate) fn mark(&mut self) -> bool {
        std::mem::replace(&mut self.after, MARKED) != MARKED
    }

    /// Takes the core, which is the caller's from now on.
    pub(crate) fn take(&mut self) -> NonNull<()> {
        self.after = TAKEN;
        let core = std::mem::replace(&mut self.state.core, std::ptr::null_mut());
        NonNull::new(core).expect("the holder of a core records it")
    }
}

impl Drop for Inspection<'_> {
    fn drop(&mut self) {
        if weakened!("lease_withdraws") && self.after == HELD {
            return;
        }
        match &mut self.state.attachment {
            Attachment::Suspended(saved) => saved.claim = self.after,
            Attachment::Attached(record) => {
                let claim = self.lease.with_flags(self.after);
                // SAFETY: obligation 1 of `attach`: the record lives until `detach`, which takes
                // the lock, and we hold it.
                // Release: our reads of the task are over. Pairs with the Acquire in
                // `PollRecord::reclaim` and `Lease::recheck`.
                unsafe { record.as_ref() }.claim.store(claim, Release);
            }
            Attachment::Unattached => {}
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models;
