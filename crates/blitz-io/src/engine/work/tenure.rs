//! What a thread says of the core that it holds, so that the core can be taken from it
//! while it is stuck in a user's code.
//!
//! A thread with a core is either in the runtime's own code, which works on the core, or in
//! a user's: a poll, a drop, a hook of a task. User code may last for ever, and nothing can
//! end it. But it does not touch the core, except by calling the runtime, and so the core
//! can be had without the thread's help.
//!
//! # Protocol
//! The thread has a sign of three words ([`Sign`], in its thread-local). `seq` is the number of
//! its poll, and in the lower bits how deep in the runtime's own code it is: zero in a user's.
//! Only the thread writes it, by plain additions. `claim` says whose the core is. What a visitor
//! may know of a thread is behind its *door* ([`Tenure`]).
//!
//! ```text
//! the thread                              a visitor (one at a time, by the door)
//! enters user code                        V1 `claim` = CLAIMING
//! U1 `task`, then `seq` = next, depth 0   V2 heavy barrier
//! wants its core back, at the end of      V3 reads `seq`: the poll that it came for, at
//! the poll or for a moment in it             depth 0?
//! R1 `seq` + 1                            V4 if so it may read `task`, and then takes the
//! R2 light barrier                           core (`claim` = TAKEN), marks the poll as
//! R3 reads `claim`: HELD, and it has it      OVERDUE, or leaves it as it was
//! R4 else it goes through the door, and   V5 if not it leaves `claim` as it was
//!    does as `claim` says then            V6 lets the door go
//! goes back into user code
//! U2 `seq` - 1
//! ```
//! In the middle of a poll R4 is: `seq` - 1, the door, `seq` + 1
//! under it, and then `claim`. The thread has touched nothing since R1, so it may as well be in
//! the user's code still, and it says so before it waits: a visitor that is at V2 while it comes
//! would else wait at V3 for a thread that waits for it, and go away. V2 takes microseconds, so
//! whoever calls the runtime more often than that would never be visited. Who was in the runtime's
//! own code before R1 has its core since then, or knows that it has not, and asks nobody.
//!
//! One of R2 and V2 comes first. If R2, then V3 sees a depth, or a later number, and the
//! core stays where it is. If V2, then R3 sees CLAIMING, or what became of it, and R4 waits
//! at the door until V6: so the thread has its core, or knows that it has lost it, and what
//! the visitor read of the task was read before the thread went on.
//!
//! Where the light barrier is a fence, `claim` is never HELD alone but has a bit besides
//! (FENCES). So R3 fails, and R4 begins with the fence and another look at `claim`: who needs none
//! does not even ask. So it is of threads that look at a clock besides (CLOCK): those that poll a
//! task that was lent to them, which nobody visits once their runtime ends.
//!
//! A thread that gives its core up by itself says so at the door (RELEASED), and so it does
//! when it has one again. All that writes `claim` has the door, but for words that are nobody's:
//! those of a thread that is not watched are the same words, and what it says there nobody hears.
//! That is cheaper than to ask whether somebody listens.
//!
//! A thread in the middle of a poll may wait for another runtime, and be watched for that one's
//! sake (`block_in_place`, `block_on`). What it said for the first is kept behind that one's door
//! meanwhile ([`At::Suspended`]). It has no core then.
//!
//! # Invariants
//! 1. A core is touched by its thread while `seq` has a depth and R3 or R4 has said yes since, or
//!    by the visitor that made `claim` TAKEN, and then by whom that one gives it to.
//! 2. CLAIMING is seen by nobody who has the door: a claim is withdrawn, or made good, before
//!    the door is let go. Nobody who waits there can mistake a claim that is withdrawn for a
//!    core that is lost.
//! 3. A tenure that was TAKEN stays so, until its thread has a core again. The words are the
//!    thread's and not the core's: what the old holder writes is nothing to the new one.
//! 4. While a visitor has a visit, the task that it came for is not freed: who ended the poll
//!    is at R4.
//! 5. A thread's words are read by others behind the door of a tenure that they are attached to,
//!    and the thread detaches them before it ends.
//!
//! # Rejected
//! - An exchange in R4 instead of the door. A first version had it: who found CLAIMING and
//!   then failed to exchange it held its core for lost, though the claim had been withdrawn in
//!   between, and nobody had the core. A model found that; 3,400 hand-offs under load had not.
//!   With a second look it is right, but then the report of the task needs a lock anyway.
//! - `seq` in the core: the store of a thread that comes back late would hide the one that has
//!   the core now.
//! - The words beside the door, and a pointer to them in the thread-local: whoever uses them asks
//!   first whether there are any. With that, a bit for the runtime's code instead of a depth, and
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
//! `who_waits_with_what_it_keeps_is_marked`, `words_that_end_with_their_thread_against_a_visitor`; weakened
//! as `tenure_light`, `tenure_fence`, `tenure_heavy`,
//! `tenure_says_so`, `tenure_seq_publishes`, `tenure_looks_again`, `tenure_door`,
//! `tenure_withdraws`, `tenure_release_by_door`, `tenure_mark_is_cleared`, `tenure_detaches`.

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

/// The thread has the core; or nobody asks.
const HELD: u32 = 0;
/// It has, and has been in one poll for longer than it should.
const OVERDUE: u32 = 1;
/// A visitor is at it.
const CLAIMING: u32 = 2;
/// A visitor has taken the core.
const TAKEN: u32 = 3;
/// The thread has given the core up, or had none yet.
const RELEASED: u32 = 4;
/// The thread never had one: it polls a task that was lent to it, and nobody visits.
const LENT: u32 = 5;
/// Besides one of these: the light barrier is a fence.
const FENCES: u32 = 1 << 8;
/// The same: the thread looks at a clock, too, when it asks whether its poll is overdue.
const CLOCK: u32 = 1 << 9;

/// The part of `seq` that says how deep in the runtime's code the thread is. What calls itself in
/// there does so a handful of times.
const DEPTH: usize = 0xff;

/// How often V3 is done: as long as the runtime's code takes for what a poll asks of it.
const LOOKS: usize = if cfg!(blitz_loom) { 2 } else { 200 };

/// What a thread says, for others to read.
pub(crate) struct Sign {
    seq: AtomicUsize,
    claim: AtomicU32,
    task: AtomicPtr<Header>,
}

/// What a thread has said before it began to wait inside of a poll.
#[derive(Clone, Copy)]
pub(super) struct Said {
    seq: usize,
    claim: u32,
    task: *mut Header,
}

/// The thread's side. Nobody else calls these.
impl Sign {
    made_in_constants! {
        /// Of a thread in the runtime's code.
        pub(super) fn new() -> Self {
            Self {
                seq: AtomicUsize::new(1),
                claim: AtomicU32::new(HELD),
                task: AtomicPtr::new(std::ptr::null_mut()),
            }
        }
    }

    /// Relaxed: only this thread writes it.
    #[inline(always)]
    fn seq(&self) -> usize {
        self.seq.load(Relaxed)
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.seq() & DEPTH
    }

    /// Whether the thread is in a user's code.
    #[inline(always)]
    pub(super) fn is_in_user_code(&self) -> bool {
        self.depth() == 0
    }

    /// U1: the thread begins with a poll of `task`. It is in the runtime's code, not deeper than
    /// whoever runs tasks is.
    #[inline(always)]
    pub(super) fn enter(&self, task: NonNull<Header>) {
        // Relaxed: published by the store below.
        self.task.store(task.as_ptr(), Relaxed);
        debug_assert_eq!(self.depth(), 1, "a poll begins in the middle of something");
        let order = if weakened!("tenure_seq_publishes") { Relaxed } else { Release };
        // Release: what was done to the core is done, for who takes it; and `task` is the one
        // of this number. Pairs with the Acquire in V3.
        self.seq.store(self.seq().wrapping_add(DEPTH), order);
    }

    /// R1 to R3: `true` if all is as it was. If not, [`Tenure::reclaim`] or [`Tenure::leave`]
    /// tells.
    #[inline(always)]
    pub(super) fn reclaim(&self) -> bool {
        if !weakened!("tenure_says_so") {
            // Relaxed: only this thread writes it, and the barrier orders it.
            self.seq.store(self.seq().wrapping_add(1), Relaxed);
        }
        debug_assert!(self.depth() != 0, "the runtime calls itself too often");
        self.pass();
        // Acquire: a visitor that withdrew has read all that it wanted to read. Pairs with the
        // Release in `Visit::drop`.
        self.claim.load(Acquire) == HELD
    }

    /// The thread is in the runtime's code, and so it will be.
    #[inline(always)]
    pub(super) fn go_deeper(&self) {
        debug_assert!(!self.is_in_user_code(), "a user's code goes deeper into the runtime's");
        // Relaxed: only this thread writes it, and nobody else tells one depth from another.
        self.seq.store(self.seq().wrapping_add(1), Relaxed);
    }

    /// R2, as the kernel does it.
    #[inline(always)]
    fn pass(&self) {
        // A model has no kernel: there it is a fence, unless that is what is asked.
        // Relaxed: a bit that does not change.
        let is_fenced = cfg!(blitz_loom) && self.claim.load(Relaxed) & FENCES != 0;
        if !weakened!("tenure_light") && !is_fenced {
            light_as(false);
        }
    }

    /// Whether R1 was said inside of another one, or of the code that runs tasks.
    pub(super) fn was_inside(&self) -> bool {
        self.depth() > 1
    }

    /// U2.
    #[inline(always)]
    pub(super) fn resume(&self) {
        if weakened!("tenure_says_so") {
            return;
        }
        let order = if weakened!("tenure_seq_publishes") { Relaxed } else { Release };
        // Release: as in `enter`.
        self.seq.store(self.seq().wrapping_sub(1), order);
    }

    /// What is said of the core, without how.
    #[inline(always)]
    fn claim(&self) -> u32 {
        // Relaxed: advice, or behind the door.
        self.claim.load(Relaxed) & !(FENCES | CLOCK)
    }

    /// Whether nobody has said anything that one should look at ([`Self::is_overdue`]).
    #[inline(always)]
    pub(super) fn is_quiet(&self) -> bool {
        // Relaxed: advice.
        self.claim.load(Relaxed) == HELD
    }

    /// Whether the poll has lasted for so long that it should let others run. A core that was
    /// taken is a mark, too: the poll is overdue all the more.
    pub(super) fn is_overdue(&self) -> bool {
        matches!(self.claim(), OVERDUE | CLAIMING | TAKEN)
    }

    /// It does from now on, or does not any more. Nobody listens.
    pub(super) fn set_lent(&self, lent: bool) {
        // Relaxed: only this thread reads it.
        self.claim.store(if lent { LENT } else { HELD }, Relaxed);
    }

    /// The thread waits inside of a poll, perhaps, and begins anew: from now on nobody listens.
    pub(super) fn begin_anew(&self) -> Said {
        // Relaxed, four times: nobody but this thread reads them, or the door is held.
        let (claim, task) = (self.claim(), self.task.load(Relaxed));
        let said = Said { seq: self.seq(), claim, task };
        self.seq.store((said.seq | DEPTH).wrapping_add(2), Relaxed);
        self.claim.store(HELD, Relaxed);
        said
    }

    /// It goes on; `claim` is the one that was said, as it is to be written.
    fn go_on_with(&self, said: Said, claim: u32) {
        // Relaxed, twice: as in `begin_anew`.
        self.task.store(said.task, Relaxed);
        self.claim.store(claim, Relaxed);
        // Release: as in `enter`.
        self.seq.store(said.seq, Release);
    }

    /// It goes on, and nobody listens.
    pub(super) fn go_on(&self, said: Said) {
        self.go_on_with(said, said.claim);
    }
}

/// See the module.
pub(crate) struct Tenure {
    door: Mutex<Behind>,
    fences: bool,
    keeps: bool,
    has_clock: bool,
    /// The poll that cost the thread its core is one to be remembered. Written by who visits,
    /// a figure that orders nothing.
    hog: AtomicBool,
    /// What the thread is asked by a signal, if it may be.
    inquiry: Option<Box<Inquiry>>,
}

/// What is behind the door.
struct Behind {
    at: At,
    core: *mut (),
}

// SAFETY: the pointers are used by whoever has the door, by invariants 1, 4 and 5.
unsafe impl Send for Behind {}

/// Where a thread says what it does with its core.
#[derive(Clone, Copy)]
enum At {
    /// Nowhere yet, or not any more.
    Nowhere,
    /// There. They live until they are detached.
    Here(NonNull<Sign>),
    /// It waits inside of a poll, and may be somebody else's meanwhile.
    Suspended(Said),
}

impl Behind {
    /// The thread's sign, if that is what it is to be asked.
    fn sign(&self) -> Option<&Sign> {
        match self.at {
            // SAFETY: obligation 1 of `attach`, and who detaches it has the door.
            At::Here(sign) => Some(unsafe { sign.as_ref() }),
            _ => None,
        }
    }

    /// The thread's `claim` and `seq`, as far as it has said.
    fn said(&self) -> Option<(u32, usize)> {
        match self.at {
            // Acquire: what the thread has said before, for who looks at it from outside. Pairs
            // with the Release in `enter` and `resume`.
            At::Here(_) => self.sign().map(|sign| (sign.claim(), sign.seq.load(Acquire))),
            At::Suspended(said) => Some((said.claim, said.seq)),
            At::Nowhere => None,
        }
    }
}

/// The thread's side.
impl Tenure {
    /// Of a thread that has no core yet.
    pub(crate) fn new(keeps: bool) -> Self {
        Self {
            door: Mutex::new(Behind { at: At::Nowhere, core: std::ptr::null_mut() }),
            // A model that wants it says so.
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

    /// The same of a thread that looks at a clock itself, should nobody visit.
    pub(crate) fn with_clock(self, has_clock: bool) -> Self {
        Self { has_clock, ..self }
    }

    /// Whether the core stays, whatever its thread does.
    pub(crate) fn keeps_its_core(&self) -> bool {
        self.keeps
    }

    /// Whether the poll that cost the thread its core is one to be remembered.
    pub(crate) fn is_hog(&self) -> bool {
        // Relaxed: a figure.
        self.hog.load(Relaxed)
    }

    /// The same, of a thread that answers.
    pub(crate) fn with_inquiry(self, inquiry: Option<Inquiry>) -> Self {
        Self { inquiry: inquiry.map(Box::new), ..self }
    }

    /// H1 to H3 of [`Inquiry`], on this thread: says which poll it is in, too.
    #[allow(dead_code, reason = "there are systems on which nobody is asked")]
    pub(super) fn answer(&self, sign: &Sign, write: impl FnOnce(&mut Answer, Range<usize>)) {
        let Some(inquiry) = &self.inquiry else { return };
        inquiry.answer(|answer| {
            answer.poll = sign.seq();
            write(answer, inquiry.stack());
        });
    }

    /// `claim` as it is to be written.
    fn as_claim(&self, claim: u32) -> u32 {
        let fences = if self.fences { FENCES } else { 0 };
        let clock = if self.has_clock { CLOCK } else { 0 };
        claim | fences | clock
    }

    /// The thread says there what it does, from now on. It has no core.
    ///
    /// # Safety
    /// 1. They live until [`detach`](Self::detach) is called.
    pub(super) unsafe fn attach(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        // Relaxed: the door orders it.
        sign.claim.store(self.as_claim(RELEASED), Relaxed);
        behind.at = At::Here(NonNull::from_ref(sign));
    }

    pub(super) fn detach(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        if !weakened!("tenure_detaches") {
            behind.at = At::Nowhere;
        }
        drop(behind);
        // Relaxed: nobody listens any more.
        sign.claim.store(HELD, Relaxed);
    }

    /// The thread waits inside of a poll, and its words say something else meanwhile.
    pub(super) fn suspend(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        let has_core = matches!(sign.claim(), HELD | OVERDUE);
        debug_assert!(!has_core || self.keeps, "who waits has no core");
        behind.at = At::Suspended(sign.begin_anew());
    }

    /// It goes on with that poll.
    ///
    /// # Safety
    /// 1. As `attach`.
    pub(super) unsafe fn go_on(&self, sign: &Sign) {
        let mut behind = lock(&self.door);
        if let At::Suspended(said) = behind.at {
            sign.go_on_with(said, self.as_claim(said.claim));
        }
        behind.at = At::Here(NonNull::from_ref(sign));
    }

    /// The rest of R3: the fence, where it is one.
    fn look_again(&self, sign: &Sign) -> bool {
        if self.fences && !weakened!("tenure_fence") {
            // SeqCst: R2. Pairs with the fence in V2.
            fence(SeqCst);
        }
        // Acquire: as in `Sign::reclaim`.
        sign.claim.load(Acquire) == self.as_claim(HELD)
    }

    /// After [`Sign::reclaim`] has said no, in the middle of a poll: `true` if the thread has
    /// its core.
    #[cold]
    pub(super) fn reclaim(&self, sign: &Sign) -> bool {
        if self.look_again(sign) {
            return true;
        }
        // Release: as in `enter`; nothing was done since.
        sign.seq.store(sign.seq().wrapping_sub(1), Release);
        let _door = (!weakened!("tenure_door")).then(|| lock(&self.door));
        // Relaxed: the door orders it.
        sign.seq.store(sign.seq().wrapping_add(1), Relaxed);
        matches!(sign.claim(), HELD | OVERDUE)
    }

    /// The same at the end of a poll.
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

    /// The thread has that core from now on. It is in the runtime's code.
    pub(super) fn begin(&self, sign: &Sign, core: NonNull<()>) {
        let mut behind = lock(&self.door);
        debug_assert!(!sign.is_in_user_code(), "a core came to a thread in a user's code");
        // A number that nobody has seen: what a visitor has seen of this thread before was with
        // another core.
        // Relaxed, three times: the door orders them.
        sign.seq.store(sign.seq().wrapping_add(DEPTH + 1), Relaxed);
        self.hog.store(false, Relaxed);
        behind.core = core.as_ptr();
        sign.claim.store(self.as_claim(HELD), Relaxed);
    }

    /// The thread gives the core up by itself. It is in the runtime's code, and has it.
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
    /// The number of the poll that the thread is in, or was in last, if it has a core. A guess;
    /// `visit` looks again.
    pub(crate) fn poll_number(&self) -> Option<usize> {
        let (claim, seq) = lock(&self.door).said()?;
        matches!(claim, HELD | OVERDUE).then_some(seq & !DEPTH)
    }

    /// The poll that cost the thread its core is one to be remembered.
    pub(crate) fn remember(&self) {
        // Relaxed: a figure.
        self.hog.store(true, Relaxed);
    }

    /// Whether the thread is in a user's code, in that poll, with its core or without.
    pub(crate) fn is_in(&self, number: usize) -> bool {
        lock(&self.door).said().is_some_and(|(_, seq)| seq == number)
    }

    /// What it is asked, if it may be.
    #[allow(dead_code, reason = "there are systems on which nobody is asked")]
    pub(crate) fn inquiry(&self) -> Option<&Inquiry> {
        self.inquiry.as_deref()
    }

    /// Whether the thread has a core, as far as it has said.
    pub(crate) fn has_core(&self) -> bool {
        lock(&self.door).said().is_some_and(|(claim, _)| matches!(claim, HELD | OVERDUE))
    }

    /// V1 to V3: `None` if the thread is not in that poll any more, or has no core, or the
    /// system refuses the barrier.
    ///
    /// A thread that is in the runtime's code on behalf of that poll is out of it soon: V3 is
    /// done a few times. That is as right as once: if any of them sees depth 0, then
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
    /// V3.
    fn is_in_poll(&self, number: usize) -> bool {
        let order = if weakened!("tenure_seq_publishes") { Relaxed } else { Acquire };
        for _ in 0..LOOKS {
            // Acquire: what the thread did to its core before it went into the user's code.
            // Pairs with the Release in `enter` and `resume`.
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

/// A thread that is in a user's code, and does not get out before this is dropped. See V4.
pub(crate) struct Visit<'a> {
    tenure: &'a Tenure,
    /// What `claim` will be.
    after: u32,
    door: MutexGuard<'a, Behind>,
}

impl Visit<'_> {
    /// V1 to V3.
    fn claim(&mut self, number: usize) -> bool {
        let sign = match &self.door.at {
            // It cannot go on without the door.
            At::Suspended(said) => return said.seq == number,
            _ => self.door.sign(),
        };
        let Some(sign) = sign else { return false };
        // One that is in the runtime's code for long is left alone. Nothing hangs on it, and
        // models have enough to do.
        if !cfg!(blitz_loom) && !sign.is_in_poll(number) {
            return false;
        }
        // Relaxed: the barrier orders it before V3, and the door everything else.
        sign.claim.store(self.tenure.as_claim(CLAIMING), Relaxed);
        (weakened!("tenure_heavy") || try_heavy()) && sign.is_in_poll(number)
    }

    /// The task that is being polled or dropped. It lives as long as the visit.
    pub(crate) fn task(&self) -> NonNull<Header> {
        let task = match self.door.at {
            At::Suspended(said) => said.task,
            // Relaxed: V3 saw the number that it was written with.
            _ => self.door.sign().map_or(std::ptr::null_mut(), |sign| sign.task.load(Relaxed)),
        };
        NonNull::new(task).expect("a poll has a task")
    }

    /// Marks the poll as overdue; `true` if it was not marked before.
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
                // SAFETY: as in `Behind::sign`.
                // Release: what was read of the task has been read. Pairs with the Acquire in
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
