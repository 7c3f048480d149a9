//! Operations that the kernel does by itself: it is given memory and says when it is done.
//!
//! One ring for each runtime, made when the first operation is begun. It stands beside the
//! driver, which tells what descriptors are ready for: a driver's tasks borrow memory and no
//! one else has it; a ring's operations own their memory, because the kernel works on it
//! whether anybody still waits or not.
//!
//! - [`op`]: one operation, and whose its memory is.
//! - [`flights`]: the operations that the kernel has, and their numbers.
//! - [`verb`]: what it can be asked for.
//! - [`system`]: Linux's io_uring; `without` where there is none.
//! - [`flight`]: an operation as its future sees it.
//!
//! # The walk of an operation
//! 1. [`Ring::submit`] puts the payload (the buffer) into an [`Op`](op::Op), numbers it, pushes
//!    it and enters the kernel: one system call, which does the operation at once if it can.
//! 2. It looks for answers. If its own is there, the future is ready at its first poll.
//! 3. Else the kernel watches the descriptor. When the operation is done it queues the
//!    answer and rings the bell, which is a descriptor that the driver watches: whoever
//!    takes the driver's turn reaps.
//! 4. The answer finds the future's task and wakes it; the future takes its payload back.
//! 5. A future that is dropped before asks for a cancel, and leaves: the payload is dropped
//!    with the answer, by whoever reaps it.
//!
//! # The rule of submission
//! An operation is with the kernel when `submit` returns. So nothing is ever slept on that
//! only a thread which computes could flush, and no descriptor is named after whoever
//! borrows it has gone: the kernel holds the file from then on. It costs one system call
//! for each operation; the readiness way costs that too, and one more if it had to wait.
//!
//! A thread that computes delays nobody's answer: the kernel interrupts it for the moment
//! that its own operations take to be completed. (What it interrupts may be a call that
//! waits, which then answers EINTR, as for a signal.) A thread that exits ends what it had
//! submitted and the kernel has not done: the answer is ECANCELED, at once or when there
//! would have been something to do. The future of such an operation begins it again, on
//! the thread that polls it, where the descriptor is borrowed; see [`flight`].
//!
//! # Locks
//! `submission` is held while one pushes and enters; `reaping` while one takes up to
//! [`AT_ONCE`] answers out of the queue, or tells the bell to be silent; `flights` inside of
//! either. Wakers and payloads are users': both are called and dropped under none of them.
//!
//! # The end
//! The driver's end wakes the one that waits for the bell, and so the ring learns of it.
//! ```text
//! who submits, under `submission`        who closes
//! B1 it is closed: refused               C1 closes it, under `submission`
//! B2 numbers and pushes, enters          C2 asks for a cancel of each number, enters
//!                                        C3 reaps, and waits, at most for `PATIENCE`
//!                                        C4 wakes whoever has no answer yet
//! ```
//! An operation came before C1, and C2 finds its number; or after, and is refused. Who is
//! answered ECANCELED begins again, and is refused too: with an error that says that the
//! runtime has ended, and with its payload.
//!
//! What the kernel has not answered by C4 (it should be something stuck in a disk, never a
//! socket) stays with the kernel. A future of it that is polled waits in the kernel itself,
//! since nobody else does any more: it cannot be ready without its payload. If there is no
//! future, the memory of those operations is leaked when the ring is dropped: it must not be
//! freed while the kernel may write to it, and nobody will hear when that is over.
//!
//! # When the kernel shuts the door
//! A program may forbid itself io_uring after its first operation (seccomp). Then the system
//! call that submits fails; the operation was never the kernel's, its payload comes back, and
//! it and all later ones are done by readiness. What was under way stays so and is answered
//! when it is done, but no cancel can be asked for: until then it keeps its payload and its
//! file, whether its future is there or not. Who puts up a sandbox does it first.
//!
//! # Rejected
//! - A ring for each worker, bound to its thread: its answers wait for a thread that
//!   computes, and its operations end with the thread.
//! - Pushing now and entering once a tick: it spares the greater part of 0.25 µs of some 1.6
//!   for an operation (docs/design/owned.md). But what is there already would need a wake-up
//!   and a second poll; a future that is polled once, or by a foreign executor inside of a
//!   task, would not get it at all. The entry would name a descriptor that may be closed
//!   until it is looked at, and each way out of a poll would have to flush, on threads of
//!   other runtimes too.
//! - Freeing a payload when its future is dropped, after a cancel that is waited for: a
//!   destructor would sleep in the kernel, and one that is leaked would not run.
//! - Keeping the descriptor alive by a count of owners: only the call that submits names it.
//!
//! # Checked by
//! `a_dropped_operation_against_its_answer_frees_its_payload_once`,
//! `an_operation_against_a_close_is_answered_or_refused`,
//! `an_answer_against_a_close_is_one_answer`,
//! `two_who_reap_give_each_answer_once`, `a_cancel_that_comes_late_ends_nobody_else`,
//! `two_who_find_no_room_both_begin`, `a_door_that_shuts_gives_every_payload_back`;
//! weakened as `ring_close_is_seen`, `ring_close_cancels`, `ring_minds_the_backlog`. With
//! the kernel: `ring/tests.rs` and `tests/net_time/owned.rs`.

use std::{
    io,
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

pub(crate) mod op;
mod flights;
pub(crate) mod verb;
pub(crate) mod flight;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
))]
mod system;
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
)))]
#[path = "without.rs"]
mod system;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub(crate) use self::{
    flight::InFlight,
    system::{Features, System, probe},
};
use self::{
    flights::{Flights, Number},
    op::{Answer, Op},
    verb::Verb,
};
use super::{
    driver::{Direction, Driver, Registration, interest::Interest},
    prim::{
        AtomicBool, Mutex, MutexGuard, Ordering::Relaxed, bolt::Bolted, discard, lock,
        thread::yield_now, weakened,
    },
    wait::{batch::Batch, gate::Gate},
};

/// How many answers are taken out of the queue at a time: as many as a batch of wakers has.
/// Two in a model, so that it gets to see a second time.
const AT_ONCE: usize = if cfg!(blitz_loom) { 2 } else { 32 };

/// How long the end waits for the kernel. Sockets and pipes answer a cancel within
/// microseconds; picked, not measured.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long one wait of the end is: another may have reaped what it waits for.
const GLANCE: Duration = Duration::from_millis(5);

/// What is pushed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    Begin(Number, Verb),
    /// End the one of that number soon.
    Cancel(Number),
}

/// Why the kernel does not take what was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has no room until answers are taken.
    NotNow,
    /// The error number: a sandbox has been put up since, as a rule.
    Never(i32),
}

/// Why an operation was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRing {
    /// The runtime has ended.
    Closed,
    /// There is none any more: do it another way.
    Unusable,
}

/// The two queues and the system call; what a model replaces.
///
/// Callers of `push`, `backlog` and `enter` have the lock `submission`; those of `take`,
/// `muffle` and `unmuffle` have `reaping`. What a pushed verb points to lives until its
/// answer was taken, or for ever.
pub(crate) trait Kernel {
    /// `false` if there is no room.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn push(&self, request: Request) -> bool;

    /// How many were pushed and not taken by the kernel.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn backlog(&self) -> usize;

    /// Gives all that was pushed to the kernel.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn enter(&self) -> Result<(), Refused>;

    /// No bell for answers, until `unmuffle`; then the caller looks for answers.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn muffle(&self);

    /// # Safety
    /// As the trait says.
    unsafe fn unmuffle(&self);

    /// Takes at most so many answers; how many there were, and whether the kernel may have
    /// kept more for want of room.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn take(&self, each: impl FnMut(Number, i32), most: usize) -> (usize, bool);

    /// Has the kernel queue what it kept.
    fn fetch(&self);

    /// Waits for an answer, for at most so long. It may end early.
    fn wait(&self, timeout: Duration);
}

/// Operations under way are the ring's end of them.
type Flight = Arc<dyn Answer>;

/// See the module.
pub(crate) struct Ring<K = System> {
    kernel: K,
    submission: Mutex<Submission>,
    reaping: Bolted<()>,
    flights: Bolted<Flights<Flight>>,
    /// Its place at the driver, until the end.
    registration: Bolted<Option<Arc<Registration>>>,
    /// The kernel lets nobody in any more.
    unusable: AtomicBool,
    /// Nobody reaps any more but who waits: C4.
    over: AtomicBool,
}

struct Submission {
    /// How many were ever pushed.
    pushed: u64,
    closed: bool,
    figures: Figures,
}

/// What a ring has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// System calls that submit.
    pub(crate) entered: u64,
    /// Operations.
    pub(crate) begun: u64,
    /// Cancels that were asked for, by futures that went away.
    pub(crate) cancelled: u64,
}

impl Ring {
    /// The ring of a driver's runtime; `None` if io_uring is not to be used there, is not
    /// had here, or has been taken away.
    #[inline]
    pub(crate) fn of(driver: &Arc<Driver>) -> Option<&Self> {
        if !driver.allows_rings() {
            return None;
        }
        let ring: &Arc<Self> = driver.beside(|| Self::begin(driver)).as_ref()?;
        // Relaxed: whoever does not see it finds out.
        (!ring.unusable.load(Relaxed)).then_some(ring)
    }

    /// Makes the ring of a driver, and has the driver watch its bell.
    #[cold]
    fn begin(driver: &Arc<Driver>) -> Option<Arc<Self>> {
        let kernel = System::new().ok()?;
        let registration = driver.register(kernel.bell(), Interest::READABLE).ok()?;
        let ring = Arc::new(Self::new(kernel));
        *ring.registration.lock() = Some(Arc::new(registration));
        Arc::new(Reaper { ring: Arc::downgrade(&ring), gate: Gate::new() }).wake();
        Some(ring)
    }

    /// Sees that the next event of the bell wakes the reaper; the end, if that is what the
    /// driver says.
    fn listen(&self, reaper: &Waker) {
        let Some(registration) = self.registration.lock().clone() else { return };
        let mut cx = Context::from_waker(reaper);
        while let Poll::Ready(event) = registration.poll_record(&mut cx, Direction::Read) {
            if event.is_shutdown() {
                // Nobody hears the bell from now on, whatever the answer is.
                let _ = registration.deregister(self.kernel.bell());
                self.close();
                return;
            }
            registration.clear_readiness(event);
        }
    }
}

/// What waits for the bell in a task's place: whoever takes the driver's turn reaps.
struct Reaper {
    ring: Weak<Ring>,
    /// Whoever is woken while it listens (the cell was contended) is heard by who listens:
    /// else each would call itself from within.
    gate: Gate,
}

impl Wake for Reaper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(ring) = self.ring.upgrade() else { return };
        let reaper = Waker::from(self.clone());
        self.gate.pass(|| {
            // First: a bell during the reaping is heard again.
            ring.listen(&reaper);
            ring.reap();
        });
    }
}

impl<K: Kernel> Ring<K> {
    pub(crate) fn new(kernel: K) -> Self {
        Self {
            kernel,
            submission: Mutex::new(Submission {
                pushed: 0,
                closed: false,
                figures: Figures::default(),
            }),
            reaping: Bolted::new(()),
            flights: Bolted::new(Flights::new()),
            registration: Bolted::new(None),
            unusable: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Begins an operation, which owns the payload until it is answered. `verb` is told
    /// where the payload lies, and says what to do with it.
    ///
    /// # Errors
    /// There is no ring, and the payload comes back.
    ///
    /// # Safety
    /// 1. What the verb points to is the payload's, stays where it is when the payload is
    ///    moved, and is not touched through anything but the payload.
    /// 2. The descriptor is open during the call.
    pub(crate) unsafe fn submit<P: Send + 'static>(
        &self,
        payload: P,
        verb: impl FnOnce(&mut P) -> Verb,
    ) -> Result<InFlight<'_, P, K>, (NoRing, P)> {
        let op = Arc::new(Op::new(payload));
        // SAFETY: 1. it was made a line ago.
        let verb = unsafe { op.before(verb) };
        // SAFETY: 1. and 2. The operation keeps the payload until it is answered, as long as
        // the ring's end is in `flights`.
        match unsafe { self.give(op.clone(), verb) } {
            Ok(number) => Ok(InFlight::new(self, op, number)),
            // SAFETY: 1. the kernel has not seen it, and its other end is gone. 2. Once.
            Err(why) => Err((why, unsafe { op.take() })),
        }
    }

    /// # Safety
    /// 1. What the verb points to lives as long as the flight, or until its answer.
    /// 2. The descriptor is open during the call.
    unsafe fn give(&self, flight: Flight, verb: Verb) -> Result<Number, NoRing> {
        let mut submission = lock(&self.submission);
        if submission.closed && !weakened!("ring_close_is_seen") {
            return Err(NoRing::Closed);
        }
        submission.figures.begun += 1;
        let number = self.flights.lock().insert(flight);
        let (given, submission) = self.push(submission, Request::Begin(number, verb));
        drop(submission);
        if given.is_err() {
            // The kernel has not seen it, and will not: nobody enters any more.
            let flight = self.flights.lock().remove(number);
            // The lock was let go at the end of the statement above.
            drop(flight);
        }
        // Also then: no bell has rung for what was answered meanwhile.
        self.reap();
        given.map(|()| number).map_err(|_| NoRing::Unusable)
    }

    /// Asks the kernel to end an operation soon. It may have ended.
    fn cancel(&self, number: Number) {
        let mut submission = lock(&self.submission);
        if submission.closed {
            // All are asked to end.
            return;
        }
        submission.figures.cancelled += 1;
        // If the kernel lets nobody in, there is nobody to ask.
        let (_, submission) = self.push(submission, Request::Cancel(number));
        drop(submission);
        self.reap();
    }

    /// Pushes a request, and sees that the kernel takes it. The lock is let go on the way if
    /// the kernel has no room.
    fn push<'a>(
        &'a self,
        mut submission: MutexGuard<'a, Submission>,
        request: Request,
    ) -> (Result<(), i32>, MutexGuard<'a, Submission>) {
        // Relaxed: written under the lock, which we have.
        if self.unusable.load(Relaxed) {
            return (Err(0), submission);
        }
        // SAFETY: we have the lock. What a verb points to lives: `give`'s first obligation.
        while !unsafe { self.kernel.push(request) } {
            let (entered, again) = self.enter(submission, u64::MAX);
            submission = again;
            if entered.is_err() {
                return (entered, submission);
            }
        }
        submission.pushed += 1;
        let mine = submission.pushed;
        self.enter(submission, mine)
    }

    /// Gives the kernel what was pushed, up to the one of that count.
    fn enter<'a>(
        &'a self,
        mut submission: MutexGuard<'a, Submission>,
        mine: u64,
    ) -> (Result<(), i32>, MutexGuard<'a, Submission>) {
        loop {
            // Relaxed: written under the lock, which we have.
            if self.unusable.load(Relaxed) {
                return (Err(0), submission);
            }
            submission.figures.entered += 1;
            match self.enter_once() {
                Ok(()) => return (Ok(()), submission),
                Err(Refused::Never(code)) => {
                    // Relaxed: as above.
                    self.unusable.store(true, Relaxed);
                    return (Err(code), submission);
                }
                Err(Refused::NotNow) => {}
            }
            drop(submission);
            self.reap();
            yield_now();
            submission = lock(&self.submission);
            // SAFETY: we have the lock.
            let taken = submission.pushed - unsafe { self.kernel.backlog() } as u64;
            if taken >= mine || weakened!("ring_minds_the_backlog") {
                return (Ok(()), submission);
            }
        }
    }

    /// One entrance, without a bell for what is done by the time it returns: the caller
    /// looks. We have the lock `submission`.
    fn enter_once(&self) -> Result<(), Refused> {
        let reaping = self.reaping.lock();
        // SAFETY: we have the lock.
        unsafe { self.kernel.muffle() };
        drop(reaping);
        // SAFETY: we have the lock `submission`.
        let entered = unsafe { self.kernel.enter() };
        let reaping = self.reaping.lock();
        // SAFETY: we have the lock.
        unsafe { self.kernel.unmuffle() };
        drop(reaping);
        entered
    }

    /// Takes all answers that are there, and tells those who wait: users' code runs.
    pub(crate) fn reap(&self) {
        let mut batch = Batch::new();
        let mut kept = false;
        loop {
            let mut answers: [Option<(Flight, i32)>; AT_ONCE] = [const { None }; AT_ONCE];
            let (taken, full) = self.take(&mut answers);
            kept |= full;
            if taken == 0 {
                if !std::mem::take(&mut kept) {
                    break;
                }
                self.kernel.fetch();
            }
            for (flight, result) in answers.into_iter().flatten() {
                if let Some(waker) = flight.answer(result) {
                    if batch.is_full() {
                        batch.wake_all();
                    }
                    batch.push(waker);
                }
                // Perhaps the last end, and then the payload, which is a user's.
                discard(flight);
            }
        }
        batch.wake_all();
    }

    fn take(&self, answers: &mut [Option<(Flight, i32)>; AT_ONCE]) -> (usize, bool) {
        let _reaping = self.reaping.lock();
        let mut flights = self.flights.lock();
        let mut places = answers.iter_mut();
        let each = |number, result| {
            // `None`: a cancel's answer.
            if let Some(flight) = flights.remove(number)
                && let Some(place) = places.next()
            {
                *place = Some((flight, result));
            }
        };
        // SAFETY: we have the lock.
        unsafe { self.kernel.take(each, AT_ONCE) }
    }

    /// C1 to C4.
    #[cold]
    pub(crate) fn close(&self) {
        let mut submission = lock(&self.submission);
        if std::mem::replace(&mut submission.closed, true) {
            return;
        }
        let numbers = self.flights.lock().numbers();
        for number in numbers.into_iter().filter(|_| !weakened!("ring_close_cancels")) {
            let (asked, again) = self.push(submission, Request::Cancel(number));
            submission = again;
            if asked.is_err() {
                break;
            }
        }
        drop(submission);
        self.reap();
        self.wait_for_all();
        // Relaxed: who waits registers its waker and then looks; `call_all` takes the waker
        // after this. Both exchange the cell of the waker, which orders them.
        self.over.store(true, Relaxed);
        self.call_all();
        let registration = self.registration.lock().take();
        // The lock was let go at the end of the statement above.
        drop(registration);
    }

    /// C3.
    fn wait_for_all(&self) {
        let begun = Instant::now();
        while self.flights.lock().len() > 0 && begun.elapsed() < PATIENCE {
            self.kernel.wait(GLANCE);
            self.reap();
        }
    }

    /// C4: whoever waits looks for itself.
    fn call_all(&self) {
        let rest: Vec<Flight> =
            self.flights.lock().each().map(|(_, flight)| flight.clone()).collect();
        let mut batch = Batch::new();
        for flight in rest {
            if let Some(waker) = flight.waker() {
                if batch.is_full() {
                    batch.wake_all();
                }
                batch.push(waker);
            }
            discard(flight);
        }
        batch.wake_all();
    }

    /// Whether nobody reaps but who waits.
    fn is_over(&self) -> bool {
        // Relaxed: see `close`.
        self.over.load(Relaxed)
    }

    /// Waits for answers a moment, and reaps them.
    #[cold]
    fn glance(&self) {
        self.kernel.wait(GLANCE);
        self.reap();
    }

    /// How many operations the kernel has.
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.lock().len()
    }

    pub(crate) fn figures(&self) -> Figures {
        lock(&self.submission).figures
    }
}

impl<K> Drop for Ring<K> {
    fn drop(&mut self) {
        let flights = std::mem::replace(&mut *self.flights.lock(), Flights::new());
        if flights.len() > 0 {
            // The kernel may write to their memory at any time: see 'The end'.
            std::mem::forget(flights);
        }
    }
}

impl<K> std::fmt::Debug for Ring<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

/// What who begins an operation after the end is told.
pub(crate) fn closed_error() -> io::Error {
    super::driver::shut_down_error()
}
