//! Tasks that were caught are polled by threads without a core, until they behave.
//!
//! To find a hog takes a slice, and each time it is found a core changes hands. A task that was
//! caught will likely hog again. So whoever finds it in its queue does not poll it but *lends*
//! it to a thread of the crew, which has no core: the poll holds up nobody, and whatever the
//! task wakes or spawns goes the way of outside threads. If it was pending, it comes back by
//! the intake. After a few polls in a row that were short it is trusted again.
//!
//! A task that says so itself (`task::Builder::long_running`) is lent from its first poll, and
//! is never trusted.
//!
//! The monitor looks at these polls as it does at those of a `block_on` ([`guest`](super::guest)):
//! they are marked, told of and counted, and nothing is taken. Not at those of tasks that have
//! said so, and at none once the runtime ends: so they look at a clock, too, when they ask whether
//! their slice is over.
//!
//! A thread for it is idle, or is started, or there is none: then the task is polled with the
//! core after all, and nobody is asked for a while. It is never queued behind jobs: one of those
//! may wait for it.
//!
//! # Checked by
//! `models.rs`: `a_task_that_is_lent_against_a_stop_is_dropped_once`,
//! `a_task_that_nobody_polls_against_a_stop_is_dropped_once`,
//! `a_task_that_is_given_back_is_had_by_one`; weakened as `lend_lets_go`, `lend_gives_back`.

use std::{
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Detached, Pool, Stint, Watched, count, look::Listened, stall::Kind, stuck::Running};
use crate::engine::{
    pool::{handoff::Errand, timing},
    prim::{
        Mutex,
        Ordering::Relaxed,
        cpu::{CpuClock, Usage},
        ids, lock, weakened,
    },
    work::{
        current as words,
        current::{Blocking, Borrowing, CountingYields, Tenured},
        task::{
            cell::{Header, Task},
            home::{self, Origin},
            poll,
        },
    },
};

/// A poll that is shorter than a slice by this factor is a good one.
const SHORT: u32 = 2;

/// How often a system that has no thread for a task is asked for one, at the most. Picked: to be
/// refused takes some tens of microseconds.
const ASK_AGAIN: Duration = Duration::from_millis(100);

impl Pool {
    /// Gives a task that was caught to a thread without a core; or gives it back, if there is
    /// none.
    #[cold]
    pub(crate) fn lend(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        let Some(watched) = self.watched.as_ref().filter(|watched| watched.settings.hands_off)
        else {
            return Err(task);
        };
        if watched.has_refused() {
            return Err(task);
        }
        // Relaxed: a bound that is passed by a few does no harm.
        watched.lent.fetch_add(1, Relaxed);
        let has_room = watched.has_room_to_lend(Instant::now());
        let relief = self.relief().filter(|_| has_room);
        let Some(relief) = relief.filter(|_| !self.is_stopping()) else {
            self.take_back();
            return Err(task);
        };
        let lent = Lent::new(self, task);
        watched.register(&lent);
        match relief.stand_in(Errand::Poll(lent)) {
            Ok(()) => {
                count(&watched.figures.lent);
                Ok(())
            }
            Err(errand) => {
                *lock(&watched.refused_at) = Some(Instant::now());
                match errand {
                    // Nobody else has it.
                    Errand::Poll(lent) => lent.take().map_or(Ok(()), Err),
                    Errand::Core(_) => unreachable!("a task was lent"),
                }
            }
        }
    }

    /// Polls a task that was caught with the core: there is no thread for it. So it may be trusted
    /// again, too.
    #[cold]
    pub(crate) fn poll_doubtful(&self, task: Task, now: u32) -> bool {
        let Some(watched) = &self.watched else { return timing::run(self, task, now) };
        let (header, began) = (task.into_header(), Began::now());
        // SAFETY: the entry keeps it; the reference keeps it until we are through with it.
        unsafe { header.as_ref() }.state.add_ref();
        // SAFETY: `into_header` gave the entry to us, and it is made once.
        let completed = timing::run(self, unsafe { Task::new(header) }, now);
        // SAFETY: the reference is ours to give up.
        unsafe { began.learn(header, watched.settings.slice) };
        completed
    }

    fn take_back(&self) {
        if let Some(watched) = &self.watched {
            // Relaxed: a count, which orders nothing.
            watched.lent.fetch_sub(1, Relaxed);
        }
    }
}

impl Watched {
    /// Whether the system had no thread a moment ago.
    fn has_refused(&self) -> bool {
        lock(&self.refused_at).is_some_and(|at| at.elapsed() < ASK_AGAIN)
    }

    /// So that the monitor sees whether somebody comes for it.
    fn register(&self, lent: &Arc<Lent>) {
        let mut lents = lock(&self.lents);
        if lents.len() >= self.settings.max_computing.saturating_mul(2) {
            // About as many are alive, at the most.
            lents.retain(|lent| lent.strong_count() > 0);
        }
        lents.push(Arc::downgrade(lent));
    }
}

/// A task that is to be polled by a thread without a core.
pub(crate) struct Lent {
    pool: Arc<Pool>,
    /// Taken by who polls it.
    task: Mutex<Option<Task>>,
    /// When it was lent.
    since: Instant,
    /// What is polled, while it is.
    runs: Mutex<Option<Running>>,
}

impl Lent {
    fn new(pool: &Arc<Pool>, task: Task) -> Arc<Self> {
        Arc::new(Self {
            pool: pool.clone(),
            task: Mutex::new(Some(task)),
            since: Instant::now(),
            runs: Mutex::new(None),
        })
    }

    #[cfg(test)]
    pub(super) fn of_a_model(pool: &Arc<Pool>, task: Task) -> Arc<Self> {
        let watched = pool.watched.as_ref().expect("only such pools lend");
        // Relaxed: as in `lend`.
        watched.lent.fetch_add(1, Relaxed);
        Self::new(pool, task)
    }

    fn take(&self) -> Option<Task> {
        lock(&self.task).take()
    }

    /// For how long it waits for a thread, if it does.
    pub(super) fn waits_since(&self, now: Instant) -> Option<Duration> {
        lock(&self.task).is_some().then(|| now.saturating_duration_since(self.since))
    }

    /// The thread does not come: back to the queue, if that is so.
    pub(super) fn give_back(&self) -> bool {
        let Some(task) = self.take() else { return false };
        if weakened!("lend_gives_back") {
            std::mem::forget(task);
        } else {
            poll::place(task, Origin::Yielded);
        }
        true
    }

    /// What is polled, if it is.
    pub(super) fn runs(&self) -> Option<Running> {
        lock(&self.runs).clone()
    }

    /// Polls it, once.
    pub(crate) fn run(&self) {
        let Some(task) = self.take() else { return };
        let Some(watched) = &self.pool.watched else { return poll::place(task, Origin::Yielded) };
        let slice = watched.settings.slice;
        let header = task.into_header();
        // SAFETY: the entry keeps it; the reference keeps it until we are through with it.
        unsafe { header.as_ref() }.state.add_ref();
        // SAFETY: as above.
        let is_known = unsafe { header.as_ref() }.conduct.is_for_ever();
        let began = Began::now();
        let here = Here::new(&self.pool, watched, &began, is_known);
        // SAFETY: 1. the pool is kept by this.
        let counting =
            unsafe { CountingYields::new(self.pool.outside_counters.forced_yields().word()) };
        // SAFETY: 1. as above.
        *lock(&self.runs) = Some(unsafe { Running::of(header, began.at) });
        // SAFETY: `into_header` gave the entry to us, and it is made once.
        let completed = poll::run(unsafe { Task::new(header) }, self.pool.config.unit().now());
        drop(counting);
        drop(here);
        let over = lock(&self.runs).take();
        // Not under the lock: the name may be the last of its kind.
        drop(over);
        // SAFETY: the reference is ours to give up.
        unsafe { began.learn(header, slice) };
        self.pool.outside_counters.stopped(u64::from(completed));
    }
}

/// When a poll began.
struct Began {
    at: Instant,
    usage: Option<Usage>,
}

impl Began {
    fn now() -> Self {
        Self { at: Instant::now(), usage: Usage::of_this_thread() }
    }

    /// The poll is over: remembers whether it was a good one, and lets the task go.
    ///
    /// # Safety
    /// 1. A reference to the task is the caller's, which it gives up.
    unsafe fn learn(&self, header: NonNull<Header>, slice: Duration) {
        // SAFETY: the reference keeps it.
        unsafe { header.as_ref() }.conduct.learn(self.was_short(slice / SHORT));
        // SAFETY: obligation 1.
        if !weakened!("lend_lets_go") && unsafe { header.as_ref() }.state.unref() {
            // SAFETY: `unref` told us to.
            unsafe { home::free(header) };
        }
    }

    /// Whether it has taken less than that; the time in which this thread was not let run does
    /// not count, that in which it has waited for something does.
    fn was_short(&self, limit: Duration) -> bool {
        if self.at.elapsed() < limit {
            return true;
        }
        let (Some(before), Some(after)) = (self.usage, Usage::of_this_thread()) else {
            return false;
        };
        after.waits == before.waits && after.time.saturating_sub(before.time) < limit
    }
}

/// While it lives, this thread polls a task that was lent to it.
struct Here<'a> {
    watched: &'a Watched,
    number: u64,
    blocking: Blocking,
    _borrowing: Borrowing,
    _heard: Option<Heard>,
}

/// The monitor hears of it. (Dropped in this order.)
struct Heard {
    _tenured: Tenured,
    stint: Arc<Stint>,
}

impl Heard {
    fn new(watched: &Watched) -> Self {
        let stint = Stint::new(watched, false, true);
        // SAFETY: 1. the two are dropped together, in order, on this thread.
        let tenured = unsafe { Tenured::new(Some(stint.tenure())) };
        // Nobody takes it, since it is not movable.
        words::began_with_core(NonNull::dangling());
        Self { _tenured: tenured, stint }
    }
}

impl<'a> Here<'a> {
    /// `is_known`: it has said that its polls are long.
    fn new(pool: &Pool, watched: &'a Watched, began: &Began, is_known: bool) -> Self {
        let cpu = CpuClock::of_this_thread();
        let number = ids::take(1);
        // Models have enough to do.
        let heard = (!is_known && !cfg!(blitz_loom)).then(|| Heard::new(watched));
        let listened = heard.as_ref().map(|heard| Listened::new(heard.stint.clone()));
        let borrowing = Borrowing::until(began.at.checked_add(watched.settings.slice));
        lock(&watched.detached).push(Detached {
            number,
            kind: Kind::Computing,
            cpu,
            asked: (began.at, cpu.read()),
            quiet: None,
            is_lent: true,
            listened,
            runs: None,
        });
        if heard.is_some() {
            // It may sleep by now: the last one at work was who lent the task.
            pool.is_watched_again();
        }
        let blocking = words::with(|current| current.blocking.replace(Blocking::InPlace));
        Self { watched, number, blocking, _borrowing: borrowing, _heard: heard }
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        words::with(|current| current.blocking.set(self.blocking));
        let mut detached = lock(&self.watched.detached);
        let place = detached.iter().position(|thread| thread.number == self.number);
        let gone = place.map(|place| detached.swap_remove(place));
        drop(detached);
        drop(gone);
    }
}

impl Drop for Lent {
    /// Also if nobody has polled it: then it goes back to its queue, or to its end.
    fn drop(&mut self) {
        self.pool.take_back();
        self.give_back();
    }
}
