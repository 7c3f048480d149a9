//! The record that a thread keeps of the core it holds, so that the core can be taken from it
//! while it is stuck in user code.
//!
//! A thread with a core is either in the runtime's own code, which works on the core, or in
//! user code: a poll, a drop, a hook of a task. User code may last for ever, and nothing can
//! end it. But it does not touch the core, except by calling the runtime, and so the core
//! can be taken without the thread's help.
//!
//! # Protocol
//! The thread has a record of three words ([`Sign`], in its thread-local). `seq` is the number of
//! its poll, and in the lower bits how deep in the runtime's own code it is: zero in user code.
//! Only the thread writes it, by plain additions. `claim` says which thread the core belongs to.
//! The part that a visitor (another thread, such as the monitor) may read is protected by a lock,
//! the *door* ([`Tenure`]).
//!
//! ```text
//! the thread                              a visitor (one at a time, by the door)
//! enters user code                        V1 `claim` = CLAIMING
//! U1 `task`, then `seq` = next, depth 0   V2 heavy barrier
//! needs its core, at the end of the       V3 reads `seq`: is it the poll that the visitor
//! poll or for a moment during it             came for, at depth 0?
//! R1 `seq` + 1                            V4 if so it may read `task`, and then takes the
//! R2 light barrier                           core (`claim` = TAKEN), marks the poll as
//! R3 reads `claim`: if HELD, it has it       OVERDUE, or restores `claim`
//! R4 else it locks the door, and does     V5 if not it restores `claim`
//!    as `claim` says then                 V6 unlocks the door
//! returns to user code
//! U2 `seq` - 1
//! ```
//! During a poll R4 is: `seq` - 1, lock the door, `seq` + 1 under it, and then read `claim`. The
//! thread has touched nothing since R1, so it may count as still in user code, and `seq` shows that
//! before it waits. Otherwise a visitor that is at V2 meanwhile would wait at V3 for a thread that
//! waits for it, and give up. V2 takes microseconds, so a thread that calls the runtime more often
//! than that could never be visited. A thread that was in the runtime's own code before R1 has
//! had its core since then, or knows that it has not, and skips R4.
//!
//! One of R2 and V2 comes first. If R2, then V3 sees a depth, or a later number, and the
//! core stays where it is. If V2, then R3 sees CLAIMING, or a later value, and R4 waits
//! at the door until V6. So the thread has its core, or knows that it has lost it, and what
//! the visitor read of the task was read before the thread went on.
//!
//! Where the light barrier must be a fence, `claim` is never HELD alone but has one more bit
//! (FENCES). So R3 fails, and R4 begins with the fence and a second read of `claim`; threads that
//! need no fence do not even check for it. The bit CLOCK works the same way for threads that check
//! a clock besides: those that poll an offloaded task, which no thread visits once their runtime
//! ends.
//!
//! A thread that gives up its core by itself records that under the door (RELEASED), and also when
//! it has a core again. Every write of `claim` is made under the door, except on a thread that is
//! not watched: that thread uses the same words, but no other thread reads them. This is
//! cheaper than checking whether the thread is watched.
//!
//! A thread in the middle of a poll may wait for another runtime, and be watched on behalf of that
//! one (`block_in_place`, `block_on`). Its record for the first runtime is kept behind the first
//! one's door meanwhile ([`At::Suspended`]). The thread has given up the first one's core by then,
//! unless that core is never taken from it (`keeps`).
//!
//! # Invariants
//! 1. A core is touched by its thread while `seq` has a depth and R3 or R4 has succeeded since, or
//!    by the visitor that set `claim` to TAKEN, and then by the thread that receives it from there.
//! 2. No thread that holds the door sees a CLAIMING of another visit: a claim is withdrawn, or
//!    made good, before the door is unlocked. So a thread that waits there cannot mistake a claim
//!    that is withdrawn for a core that is lost.
//! 3. A `claim` that is TAKEN stays so until its thread has a core again. The words are the
//!    thread's and not the core's, so what the old holder writes does not affect the new one.
//! 4. While a visitor has a visit, the task that it came for is not freed: a thread that ended
//!    the poll waits at R4.
//! 5. Other threads read a thread's words only behind the door of a tenure that the words are
//!    attached to, and the thread detaches them before it ends.
//!
//! # Rejected
//! - An exchange in R4 instead of the door. A first version had it: a thread that found CLAIMING
//!   and then failed to exchange it took its core for lost, though the claim had been withdrawn
//!   in between, and no thread had the core. A model found that; 3,400 hand-offs under load had
//!   not. With a second look it is right, but then the report of the task needs a lock anyway.
//! - `seq` in the core: the store of a thread that comes back late would hide that of the thread
//!   that has the core now.
//! - The words beside the door, and a pointer to them in the thread-local: every use must first
//!   check whether there are any. With that, a bit for the runtime's code instead of a depth, and
//!   the choice of the barrier beside `claim`, a wake inside of a poll took 37 instructions more
//!   than without, and a poll 39 (docs/design/preemption.md).
//! - An exchange in R1 instead of the barrier: 9 ns a poll instead of 1.
//!
//! # Checked by
//! `a_core_is_taken_or_kept`, `a_wake_inside_a_poll_against_a_taker`,
//! `two_polls_against_a_taker`, `a_claim_that_comes_too_late_leaves_the_core`,
//! `a_core_is_taken_twice_in_a_row`, `a_core_that_is_given_up_is_not_taken`,
//! `a_core_that_came_back_can_be_taken`, `a_task_is_not_freed_under_a_report`,
//! `a_mark_does_not_outlive_its_poll`, `by_fences_two_polls_against_a_taker`,
//! `by_fences_a_wake_inside_a_poll_against_a_taker`, `words_of_two_runtimes_against_visitors`,
//! `who_waits_with_what_it_keeps_is_marked`,
//! `words_that_end_with_their_thread_against_a_visitor`; weakened as `tenure_light`,
//! `tenure_fence`, `tenure_heavy`, `tenure_says_so`, `tenure_seq_publishes`,
//! `tenure_looks_again`, `tenure_door`, `tenure_withdraws`, `tenure_release_by_door`,
//! `tenure_mark_is_cleared`, `tenure_detaches`.

use std::{ops::Range, ptr::NonNull};

use super::{
    inquiry::{Answer, Inquiry},
    task::cell::Header,
};
use crate::engine::prim::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Mutex, MutexGuard,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    barrier::{Mechanism, light_as, mechanism, try_heavy},
    fence, lock, made_in_constants, spin_loop, weakened,
};

/// The thread has the core; or the thread is not watched.
const HELD: u32 = 0;
/// The thread has the core, and has been in one poll for longer than it should.
const OVERDUE: u32 = 1;
/// A visitor is trying to take the core or to mark the poll.
const CLAIMING: u32 = 2;
/// A visitor has taken the core.
const TAKEN: u32 = 3;
/// The thread has given up the core, or has had none yet.
const RELEASED: u32 = 4;
/// The thread never had a core: it polls an offloaded task, and is not watched.
const LENT: u32 = 5;
/// A bit besides one of these values: the light barrier is a fence.
const FENCES: u32 = 1 << 8;
/// A bit besides one of these values: the thread also checks a clock to find out whether its
/// poll is overdue.
const CLOCK: u32 = 1 << 9;

/// The part of `seq` that says how deep in the runtime's code the thread is. Calls in there nest
/// only a handful of times.
const DEPTH: usize = 0xff;

/// The number of times that V3 is tried: as long as the runtime's code takes for a call from a
/// poll.
const LOOKS: usize = if cfg!(blitz_loom) { 2 } else { 200 };

/// A thread's record of its poll and its core, for other threads to read.
pub(crate) struct Sign {
    seq: AtomicUsize,
    claim: AtomicU32,
    task: AtomicPtr<Header>,
}

/// The content of a thread's [`Sign`] from before it began to wait inside of a poll.
#[derive(Clone, Copy)]
pub(super) struct Said {
    seq: usize,
    claim: u32,
    task: *mut Header,
}

/// The thread's side. No other thread calls these.
impl Sign {
    made_in_constants! {
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
    /// that runs tasks.
    #[inline(always)]
    pub(super) fn enter(&self, task: NonNull<Header>) {
        // Relaxed: published by the store below.
        self.task.store(task.as_ptr(), Relaxed);
        debug_assert_eq!(self.depth(), 1, "a poll begins in the middle of something");
        let order = if weakened!("tenure_seq_publishes") { Relaxed } else { Release };
        // Release: publishes what this thread did to the core, to a thread that takes it; and
        // `task`, which is the task of this number. Pairs with the Acquire in V3.
        self.seq.store(self.seq().wrapping_add(DEPTH), order);
    }

    /// Enters the runtime's code: R1 to R3. Returns true if the thread certainly has its core; if
    /// not, [`Tenure::reclaim`] or [`Tenure::leave`] finds out.
    #[inline(always)]
    pub(super) fn reclaim(&self) -> bool {
        if !weakened!("tenure_says_so") {
            // Relaxed: only this thread writes it, and the barrier orders it.
            self.seq.store(self.seq().wrapping_add(1), Relaxed);
        }
        debug_assert!(self.depth() != 0, "the runtime calls itself too often");
        self.pass();
        // Acquire: a visitor that withdrew has finished its reads. Pairs with the Release in
        // `Visit::drop`.
        self.claim.load(Acquire) == HELD
    }

    /// Goes one level deeper, on a thread that is in the runtime's code already.
    #[inline(always)]
    pub(super) fn go_deeper(&self) {
        debug_assert!(!self.is_in_user_code(), "a user's code goes deeper into the runtime's");
        // Relaxed: only this thread writes it, and no other thread distinguishes one depth from
        // another.
        self.seq.store(self.seq().wrapping_add(1), Relaxed);
    }

    /// Passes the light barrier: R2, in its cheap form.
    #[inline(always)]
    fn pass(&self) {
        // A model has no kernel, so there this is a fence, unless the model tests FENCES.
        // Relaxed: a bit that does not change.
        let is_fenced = cfg!(blitz_loom) && self.claim.load(Relaxed) & FENCES != 0;
        if !weakened!("tenure_light") && !is_fenced {
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
        if weakened!("tenure_says_so") {
            return;
        }
        let order = if weakened!("tenure_seq_publishes") { Relaxed } else { Release };
        // Release: publishes what this thread did to the core. Pairs with the Acquire in V3.
        self.seq.store(self.seq().wrapping_sub(1), order);
    }

    /// Returns `claim` without the bits FENCES and CLOCK.
    #[inline(always)]
    fn claim(&self) -> u32 {
        // Relaxed: advice, or read behind the door.
        self.claim.load(Relaxed) & !(FENCES | CLOCK)
    }

    /// Returns true if there is no mark, so that [`Self::is_overdue`] need not be called.
    #[inline(always)]
    pub(super) fn is_quiet(&self) -> bool {
        // Relaxed: advice.
        self.claim.load(Relaxed) == HELD
    }

    /// Returns true if the poll has lasted so long that it should let others run. A core that is
    /// taken is a mark, too, because then the poll is overdue all the more.
    pub(super) fn is_overdue(&self) -> bool {
        matches!(self.claim(), OVERDUE | CLAIMING | TAKEN)
    }

    /// Records the beginning or the end of the poll of an offloaded task, on a thread that is not
    /// watched.
    pub(super) fn set_lent(&self, lent: bool) {
        // Relaxed: only this thread reads it.
        self.claim.store(if lent { LENT } else { HELD }, Relaxed);
    }

    /// Starts a new record for a thread that may be about to wait inside of a poll, and returns the
    /// old one. From now on the record is not watched.
    pub(super) fn begin_anew(&self) -> Said {
        // Relaxed, four times: only this thread uses the words, or the door is held.
        let (claim, task) = (self.claim(), self.task.load(Relaxed));
        let said = Said { seq: self.seq(), claim, task };
        self.seq.store((said.seq | DEPTH).wrapping_add(2), Relaxed);
        self.claim.store(HELD, Relaxed);
        said
    }

    /// Restores a record; `claim` is its claim with the bits that it is to be written with.
    fn go_on_with(&self, said: Said, claim: u32) {
        // Relaxed, twice: only this thread uses the words, or the door is held.
        self.task.store(said.task, Relaxed);
        self.claim.store(claim, Relaxed);
        // Release: publishes `task`, which is the task of this number. Pairs with the Acquire in
        // V3.
        self.seq.store(said.seq, Release);
    }

    /// Restores the record of a thread that is not watched.
    pub(super) fn go_on(&self, said: Said) {
        self.go_on_with(said, said.claim);
    }
}

/// The watched side of a thread: the lock (*door*) through which other threads read its
/// [`Sign`] and may take its core.
pub(crate) struct Tenure {
    door: Mutex<Behind>,
    fences: bool,
    keeps: bool,
    has_clock: bool,
    /// True if the task should be remembered as a hog, because the core was taken during its poll.
    /// Written by the visitor, a figure that orders nothing.
    hog: AtomicBool,
    /// The channel through which the thread can be sent a request for its stack trace.
    inquiry: Option<Box<Inquiry>>,
}

/// The state behind the door.
struct Behind {
    at: At,
    core: *mut (),
}

// SAFETY: the pointers are used only by the thread that holds the door, by invariants 1, 4 and
// 5.
unsafe impl Send for Behind {}

/// The place of a watched thread's record.
#[derive(Clone, Copy)]
enum At {
    /// No record is attached yet, or any more.
    Nowhere,
    /// The thread's own words. They live until they are detached.
    Here(NonNull<Sign>),
    /// A copy: the thread waits inside of a poll, and its words may be another runtime's meanwhile.
    Suspended(Said),
}

impl Behind {
    /// Returns the thread's own words, if they are attached.
    fn sign(&self) -> Option<&Sign> {
        match self.at {
            // SAFETY: obligation 1 of `attach`: the words live until `detach`, which locks the
            // door; and it is locked now.
            At::Here(sign) => Some(unsafe { sign.as_ref() }),
            _ => None,
        }
    }

    /// Returns the thread's `claim` and `seq`, as last recorded.
    fn said(&self) -> Option<(u32, usize)> {
        match self.at {
            // Acquire: sees what the thread recorded before, for readers from outside. Pairs with
            // the Release in `enter` and `resume`.
            At::Here(_) => self.sign().map(|sign| (sign.claim(), sign.seq.load(Acquire))),
            At::Suspended(said) => Some((said.claim, said.seq)),
            At::Nowhere => None,
        }
    }
}

/// The thread's side.
impl Tenure {
    /// Creates the tenure of a thread that has no core yet. If `keeps` is true, the core is never
    /// taken from the thread.
    pub(crate) fn new(keeps: bool) -> Self {
        Self {
            door: Mutex::new(Behind { at: At::Nowhere, core: std::ptr::null_mut() }),
            // A model that needs fences uses `with_fences`.
            fences: cfg!(not(blitz_loom)) && mechanism() == Mechanism::Fences,
            keeps,
            has_clock: false,
            hog: AtomicBool::new(false),
            inquiry: None,
        }
    }

    #[cfg(test)]
    fn with_fences(self) -> Self {
        Self { fences: true, ..self }
    }

    /// Sets whether the thread checks a clock itself, in case it is not visited.
    pub(crate) fn with_clock(self, has_clock: bool) -> Self {
        Self { has_clock, ..self }
    }

    /// Returns true if the core is never taken from the thread.
    pub(crate) fn keeps_its_core(&self) -> bool {
        self.keeps
    }

    /// Returns true if the task polled when the core was taken should be remembered as a hog.
    pub(crate) fn is_hog(&self) -> bool {
        // Relaxed: a figure.
        self.hog.load(Relaxed)
    }

    /// Sets the channel for requests of the thread's stack trace.
    pub(crate) fn with_inquiry(self, inquiry: Option<Inquiry>) -> Self {
        Self { inquiry: inquiry.map(Box::new), ..self }
    }

    /// Writes the thread's stack trace and the number of its poll, if that is requested: H1 to H3
    /// of [`Inquiry`], on this thread.
    #[allow(dead_code, reason = "there are systems on which nobody is asked")]
    pub(super) fn answer(&self, sign: &Sign, write: impl FnOnce(&mut Answer, Range<usize>)) {
        let Some(inquiry) = &self.inquiry else { return };
        inquiry.answer(|answer| {
            answer.poll = sign.seq();
            write(answer, inquiry.stack());
        });
    }

    /// Returns `claim` with the bits that it is to be written with.
    fn as_claim(&self, claim: u32) -> u32 {
        let fences = if self.fences { FENCES } else { 0 };
        let clock = if self.has_clock { CLOCK } else { 0 };
        claim | fences | clock
    }

    /// Attaches the thread's words, which are watched from now on. The thread has no core.
    ///
    /// # Safety
    /// 1. The words live until [`detach`](Self::detach) is called.
    pub(super) unsafe fn attach(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        // Relaxed: the door orders it.
        sign.claim.store(self.as_claim(RELEASED), Relaxed);
        behind.at = At::Here(NonNull::from_ref(sign));
    }

    /// Detaches the thread's words, which are not watched any more.
    pub(super) fn detach(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        if !weakened!("tenure_detaches") {
            behind.at = At::Nowhere;
        }
        drop(behind);
        // Relaxed: no other thread reads it any more.
        sign.claim.store(HELD, Relaxed);
    }

    /// Keeps a copy of the record of a thread that waits inside of a poll, so that its words are
    /// free for other use meanwhile.
    pub(super) fn suspend(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        let has_core = matches!(sign.claim(), HELD | OVERDUE);
        debug_assert!(!has_core || self.keeps, "who waits has no core");
        behind.at = At::Suspended(sign.begin_anew());
    }

    /// Attaches the words again and restores their record: the thread goes on with its poll.
    ///
    /// # Safety
    /// 1. The words live until [`detach`](Self::detach) is called.
    pub(super) unsafe fn go_on(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        if let At::Suspended(said) = behind.at {
            sign.go_on_with(said, self.as_claim(said.claim));
        }
        behind.at = At::Here(NonNull::from_ref(sign));
    }

    /// Passes the fence, where the light barrier is one, and repeats R3.
    fn look_again(&self, sign: &Sign) -> bool {
        if self.fences && !weakened!("tenure_fence") {
            // SeqCst: R2. Pairs with the fence in V2.
            fence(SeqCst);
        }
        // Acquire: a visitor that withdrew has finished its reads. Pairs with the Release in
        // `Visit::drop`.
        sign.claim.load(Acquire) == self.as_claim(HELD)
    }

    /// Finds out, in the middle of a poll, whether the thread has its core, after
    /// [`Sign::reclaim`] returned false: R4. Returns true if it has.
    #[cold]
    pub(super) fn reclaim(&self, sign: &Sign) -> bool {
        if self.look_again(sign) {
            return true;
        }
        // Release: publishes what `enter` or `resume` published; nothing was done since. Pairs with
        // the Acquire in V3.
        sign.seq.store(sign.seq().wrapping_sub(1), Release);
        let _door = (!weakened!("tenure_door")).then(|| lock(&self.door));
        // Relaxed: the door orders it.
        sign.seq.store(sign.seq().wrapping_add(1), Relaxed);
        matches!(sign.claim(), HELD | OVERDUE)
    }

    /// Finds out, at the end of a poll, whether the thread has its core, after [`Sign::reclaim`]
    /// returned false: R4. Returns true if it has, and clears the mark of an overdue poll.
    #[cold]
    pub(super) fn leave(&self, sign: &Sign) -> bool {
        if self.look_again(sign) {
            return true;
        }
        let _door = (!weakened!("tenure_door")).then(|| lock(&self.door));
        match sign.claim() {
            HELD => true,
            OVERDUE => {
                if !weakened!("tenure_mark_is_cleared") {
                    // Relaxed: the door orders it.
                    sign.claim.store(self.as_claim(HELD), Relaxed);
                }
                true
            }
            _ => false,
        }
    }

    /// Records that the thread, which is in the runtime's code, has that core from now on.
    pub(super) fn begin(&self, sign: &Sign, core: NonNull<()>) {
        let mut behind = lock(&self.door);
        debug_assert!(!sign.is_in_user_code(), "a core came to a thread in a user's code");
        // A number that no visitor has seen: what a visitor has seen of this thread before was
        // with another core.
        // Relaxed, three times: the door orders them.
        sign.seq.store(sign.seq().wrapping_add(DEPTH + 1), Relaxed);
        self.hog.store(false, Relaxed);
        behind.core = core.as_ptr();
        sign.claim.store(self.as_claim(HELD), Relaxed);
    }

    /// Records that the thread, which is in the runtime's code and has the core, gives it up.
    pub(super) fn end(&self, sign: &Sign) {
        let door = (!weakened!("tenure_release_by_door")).then(|| lock(&self.door));
        // Relaxed: the door orders it.
        sign.claim.store(self.as_claim(RELEASED), Relaxed);
        if let Some(mut behind) = door {
            behind.core = std::ptr::null_mut();
        }
    }
}

/// The visitor's side.
impl Tenure {
    /// Returns the number of the poll that the thread is in, or was in last, if it has a core. This
    /// is a guess; `visit` checks it again.
    pub(crate) fn poll_number(&self) -> Option<usize> {
        let (claim, seq) = lock(&self.door).said()?;
        matches!(claim, HELD | OVERDUE).then_some(seq & !DEPTH)
    }

    /// Records that the task polled when the core was taken should be remembered as a hog.
    pub(crate) fn remember(&self) {
        // Relaxed: a figure.
        self.hog.store(true, Relaxed);
    }

    /// Returns true if the thread is in user code, in that poll, with its core or without.
    pub(crate) fn is_in(&self, number: usize) -> bool {
        lock(&self.door).said().is_some_and(|(_, seq)| seq == number)
    }

    /// Returns the channel for requests of the thread's stack trace, if there is one.
    #[allow(dead_code, reason = "there are systems on which nobody is asked")]
    pub(crate) fn inquiry(&self) -> Option<&Inquiry> {
        self.inquiry.as_deref()
    }

    /// Returns true if the thread has a core, as last recorded.
    pub(crate) fn has_core(&self) -> bool {
        lock(&self.door).said().is_some_and(|(claim, _)| matches!(claim, HELD | OVERDUE))
    }

    /// Stops the thread from leaving user code, if it is in that poll: V1 to V3. Returns `None` if
    /// the thread is not in that poll any more, or has no core, or the system refuses the barrier.
    ///
    /// A thread that is in the runtime's code on behalf of that poll is out of it soon, so V3 is
    /// tried several times. That is as correct as once: if any try sees depth 0, then
    /// each R1 that came before V2 was over by then, and each that comes later sees CLAIMING.
    pub(crate) fn visit(&self, number: usize) -> Option<Visit<'_>> {
        let door = lock(&self.door);
        let (before, _) = door.said()?;
        if !matches!(before, HELD | OVERDUE) {
            return None;
        }
        let mut visit = Visit { tenure: self, after: before, door };
        (visit.claim(number) || weakened!("tenure_looks_again")).then_some(visit)
    }
}

impl Sign {
    /// Returns true if the thread is in user code, in that poll: V3.
    fn is_in_poll(&self, number: usize) -> bool {
        let order = if weakened!("tenure_seq_publishes") { Relaxed } else { Acquire };
        for _ in 0..LOOKS {
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

/// A thread that is in user code, and cannot leave it before this is dropped: V4.
pub(crate) struct Visit<'a> {
    tenure: &'a Tenure,
    /// The `claim` to be written at the end of the visit.
    after: u32,
    door: MutexGuard<'a, Behind>,
}

impl Visit<'_> {
    /// Claims the core: V1 to V3. Returns true if the thread is in that poll, in user code.
    fn claim(&mut self, number: usize) -> bool {
        let sign = match &self.door.at {
            // The thread cannot go on without the door.
            At::Suspended(said) => return said.seq == number,
            _ => self.door.sign(),
        };
        let Some(sign) = sign else { return false };
        // A thread that is in the runtime's code for long is left alone. Correctness does not
        // depend on this check, and models skip it to have fewer steps.
        if !cfg!(blitz_loom) && !sign.is_in_poll(number) {
            return false;
        }
        // Relaxed: the barrier orders it before V3, and the door everything else.
        sign.claim.store(self.tenure.as_claim(CLAIMING), Relaxed);
        (weakened!("tenure_heavy") || try_heavy()) && sign.is_in_poll(number)
    }

    /// Returns the task that is being polled or dropped. It lives as long as the visit.
    pub(crate) fn task(&self) -> NonNull<Header> {
        let task = match self.door.at {
            At::Suspended(said) => said.task,
            // Relaxed: V3 saw the number that the task was written with.
            _ => self.door.sign().map_or(std::ptr::null_mut(), |sign| sign.task.load(Relaxed)),
        };
        NonNull::new(task).expect("a poll has a task")
    }

    /// Marks the poll as overdue; returns true if it was not marked before.
    pub(crate) fn mark(&mut self) -> bool {
        std::mem::replace(&mut self.after, OVERDUE) != OVERDUE
    }

    /// Takes the core, which is the caller's from now on.
    pub(crate) fn take(&mut self) -> NonNull<()> {
        self.after = TAKEN;
        let core = std::mem::replace(&mut self.door.core, std::ptr::null_mut());
        NonNull::new(core).expect("who holds a core says which")
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if weakened!("tenure_withdraws") && self.after == HELD {
            return;
        }
        match &mut self.door.at {
            At::Suspended(said) => said.claim = self.after,
            At::Here(sign) => {
                let claim = self.tenure.as_claim(self.after);
                // SAFETY: obligation 1 of `attach`: the words live until `detach`, which takes the
                // door, and we hold it.
                // Release: our reads of the task are over. Pairs with the Acquire in
                // `Sign::reclaim` and `Tenure::look_again`.
                unsafe { sign.as_ref() }.claim.store(claim, Release);
            }
            At::Nowhere => {}
        }
    }
}

impl std::fmt::Debug for Tenure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenure").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models;
