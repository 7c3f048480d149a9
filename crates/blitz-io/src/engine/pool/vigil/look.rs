//! Examines the polls of one pool and decides which of them are overdue.
//!
//! The monitor reads the number of the poll that the thread of a core is in, under the lock (the
//! door) of the thread's tenure; this does not wait for the thread. If the number is the same for a
//! slice, the poll may be overdue. If the thread is in the runtime's own code on behalf of its poll
//! just then, the monitor waits a moment for it to return to user code.
//!
//! # Whose fault it is
//! By the wall clock every poll is slow on an overloaded machine, and one thread more would make it
//! worse. So a thread that computes is overdue when it has *used* half a slice of processor time
//! (and a whole slice has passed); a thread that is blocked is overdue after a slice during which
//! the monitor has run; and a thread that is runnable but not scheduled is not overdue.
//!
//! # The monitor's own clock
//! In a process that was stopped (by a debugger, a suspended laptop, a control group out of quota)
//! all polls last long and none of them is to blame; the monitor did not run either. So the time in
//! which the monitor should have run and did not is not counted against any poll, except for the
//! processor time that the thread has used in it: the thread's own clock stood still if the process
//! did.
//!
//! # Storms
//! With many hogs at a cold start, each takes a slice to be found, one after the other on each
//! core, and tasks that are woken meanwhile are queued behind them. So for a while after a hand-off
//! the monitor runs more often and uses a shorter slice. A poll that it finds in this way loses its
//! core *quietly*: it is not reported, not added to the task's hog history, and does not prolong
//! the storm, until it has lasted for a whole slice.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Detached, Pool, Quiet, Stint, Watched, count,
    stall::{Bound, Kind, Place, Scene, Stall},
    stuck::Running,
};
use crate::engine::prim::{Ordering::Relaxed, cpu::CpuClock, lock};

/// How long a storm lasts after the last hand-off, and the slice that is used meanwhile; both
/// numbers are those of the prototype.
const STORM: Duration = Duration::from_millis(200);
const STORM_SLICE: Duration = Duration::from_millis(2);

/// Least time between two looks at a pool without busy threads, while other pools have some.
const RESTING: Duration = Duration::from_millis(1);

/// A thread that used less than one part in this many of the time counts as blocked, on systems
/// that do not report whether a thread is runnable. Picked.
const IDLE_SHARE: u32 = 20;

/// A poll that was marked may use one part in this many of a slice before it must have yielded.
const HEARS: u32 = 4;

/// Least time between two checks of whether a thread without a core is blocked or computes.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// State that the monitor keeps for the cores of a pool.
pub(super) struct Clocks {
    cores: Box<[Option<Seen>]>,
    storm_until: Option<Instant>,
}

/// A poll that the monitor has seen in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    stint: u64,
    poll: usize,
    began: Instant,
    /// Start of the poll, moved forward by the time in which the monitor did not run or the thread
    /// was runnable but not scheduled.
    since: Instant,
    /// Time since `began` in which the monitor should have run and did not.
    lost: Duration,
    /// Processor time that the thread had used at `began`.
    used: Option<Duration>,
    /// Processor time that the thread had used when the poll was marked as overdue; `None` before.
    marked: Option<Duration>,
    reported: bool,
    missed: bool,
}

impl Seen {
    fn forgive(&mut self, late: Duration, now: Instant) {
        self.since = (self.since + late).min(now);
        self.lost = (self.lost + late).min(now.saturating_duration_since(self.began));
    }

    /// Marks the poll as overdue, so that the runtime's primitives make it yield.
    fn mark(&mut self, stint: &Stint) {
        if let Some(mut visit) = stint.tenure.visit(self.poll) {
            visit.mark();
            self.marked = Some(stint.cpu.read().unwrap_or_default());
        }
    }

    /// Returns true if the poll was marked and its thread has since computed for long enough to
    /// have noticed. The monitor may be late, so elapsed time alone is no evidence.
    fn has_heard(&self, cpu: &CpuClock, slice: Duration) -> bool {
        let Some(marked) = self.marked else { return false };
        cpu.read().is_none_or(|used| used.saturating_sub(marked) * HEARS >= slice)
    }
}

/// A watched poll of an offloaded task.
#[derive(Clone)]
pub(super) struct Listened {
    stint: Arc<Stint>,
    seen: Option<Seen>,
}

impl Listened {
    pub(super) fn new(stint: Arc<Stint>) -> Self {
        Self { stint, seen: None }
    }

    /// Returns true if the poll was reported, so that there is nothing left to do about it.
    fn is_told_of(&self) -> bool {
        self.seen.is_some_and(|seen| seen.reported)
    }
}

impl Clocks {
    pub(super) fn new(cores: usize) -> Self {
        Self { cores: vec![None; cores].into_boxed_slice(), storm_until: None }
    }

    /// Discounts time in which the monitor was late, or all that is known (`None`) after a long
    /// sleep.
    fn forgive(&mut self, late: Option<Duration>, now: Instant) {
        match late {
            Some(late) => self.cores.iter_mut().flatten().for_each(|seen| seen.forgive(late, now)),
            None => self.cores.fill(None),
        }
    }

    fn is_stormy(&self, now: Instant) -> bool {
        self.storm_until.is_some_and(|until| now < until)
    }
}

impl Pool {
    /// Returns true if there is something to watch.
    pub(super) fn is_at_work(&self) -> bool {
        let Some(watched) = &self.watched else { return false };
        // A pool that stops: reporting a hog is all that can be done, so a reported one is done
        // with.
        let stopping = self.is_stopping();
        let is_watched =
            |stint: &Arc<Stint>| stint.is_watched() && !(stopping && stint.is_told_of());
        watched.holders.iter().any(|holder| lock(holder).as_ref().is_some_and(is_watched))
            || !stopping
                && (lock(&watched.detached).iter().any(Detached::is_watched)
                    || watched.has_offers())
    }

    /// Examines all cores. Returns the time after which to do so again.
    pub(super) fn look(self: &Arc<Self>, now: Instant, late: Option<Duration>) -> Duration {
        let Some(watched) = &self.watched else { return Duration::MAX };
        if !self.is_at_work() {
            lock(&watched.clocks).cores.fill(None);
            // Soon enough for a pool that becomes busy, but less often than for one that is busy.
            return (watched.settings.slice / 2).max(RESTING);
        }
        // A worker with slow polls reads the clock after this poll, and then does its maintenance.
        self.tick.advance();
        count(&watched.figures.looks);
        let clocks = &mut *lock(&watched.clocks);
        clocks.forgive(late, now);
        let usual = watched.settings.slice;
        let slice = if clocks.is_stormy(now) { usual.min(STORM_SLICE) } else { usual };
        self.retry(watched, now);
        let mut found = watched.look_at_quiet(now, late);
        self.look_at_lent(watched, now, late);
        for index in 0..watched.holders.len() {
            found |= self.look_at(watched, index, clocks, now, slice);
        }
        if found {
            clocks.storm_until = Some(now + STORM);
        }
        (if clocks.is_stormy(now) { usual.min(STORM_SLICE) } else { usual }) / 2
    }

    /// Examines the thread of one core. Returns `true` if its core was handed off after a whole
    /// slice.
    fn look_at(
        self: &Arc<Self>,
        watched: &Watched,
        index: usize,
        clocks: &mut Clocks,
        now: Instant,
        slice: Duration,
    ) -> bool {
        let holder = lock(&watched.holders[index]).clone();
        let Some(stint) = holder.filter(|stint| stint.is_watched()) else {
            clocks.cores[index] = None;
            return false;
        };
        let place = match index.checked_sub(self.remotes.len()) {
            None => Place::Worker(index),
            Some(carrier) if carrier < watched.carriers() => Place::Fiber(carrier),
            Some(_) => Place::BlockOn,
        };
        self.look_at_poll(watched, place, &stint, &mut clocks.cores[index], now, slice)
    }

    /// Examines the polls of offloaded tasks. They hold up no worker.
    fn look_at_lent(self: &Arc<Self>, watched: &Watched, now: Instant, late: Option<Duration>) {
        let take = |thread: &mut Detached| Some((thread.number, thread.listened.take()?));
        let mut polls: Vec<_> = lock(&watched.detached).iter_mut().filter_map(take).collect();
        for (_, Listened { stint, seen }) in &mut polls {
            seen.iter_mut().for_each(|seen| seen.forgive(late.unwrap_or(Duration::ZERO), now));
            self.look_at_poll(watched, Place::Lent, stint, seen, now, watched.settings.slice);
        }
        polls.retain(|(_, listened)| !listened.is_told_of());
        if polls.is_empty() {
            return;
        }
        // Polls that have ended meanwhile are not in `detached` any more.
        for thread in lock(&watched.detached).iter_mut() {
            if let Some(place) = polls.iter().position(|(number, _)| *number == thread.number) {
                thread.listened = Some(polls.swap_remove(place).1);
            }
        }
    }

    /// Examines one poll. Returns `true` if its core was handed off after a whole slice.
    fn look_at_poll(
        self: &Arc<Self>,
        watched: &Watched,
        place: Place,
        stint: &Arc<Stint>,
        seen: &mut Option<Seen>,
        now: Instant,
        slice: Duration,
    ) -> bool {
        let Some(poll) = stint.tenure.poll_number() else { return false };
        match seen {
            Some(seen) if seen.stint == stint.number && seen.poll == poll => {
                if now.saturating_duration_since(seen.began) >= slice {
                    return self.overdue(watched, place, stint, seen, now, slice);
                }
                // A poll that checks whether it should yield learns of it in time, and then neither
                // loses its core nor is reported.
                if now.saturating_duration_since(seen.since) >= slice / 2 && seen.marked.is_none() {
                    seen.mark(stint);
                }
                false
            }
            seen => {
                *seen = Some(Seen {
                    stint: stint.number,
                    poll,
                    began: now,
                    since: now,
                    lost: Duration::ZERO,
                    used: stint.cpu.read(),
                    marked: None,
                    reported: false,
                    missed: false,
                });
                false
            }
        }
    }

    /// Handles a poll that has lasted for a slice: marks it, reports it, and hands off its core.
    /// Returns `true` if the core was handed off after a whole slice.
    #[cold]
    fn overdue(
        self: &Arc<Self>,
        watched: &Watched,
        place: Place,
        stint: &Arc<Stint>,
        seen: &mut Seen,
        now: Instant,
        slice: Duration,
    ) -> bool {
        let wanted = stint.movable && !self.is_stopping();
        if seen.reported && !wanted {
            return false;
        }
        let evidence = Evidence::of(seen, &stint.cpu, now);
        // A poll is blamed only if it was marked in an earlier look.
        let is_told = seen.marked.is_some();
        if !is_told {
            seen.mark(stint);
        }
        let Some(kind) = evidence.kind(slice) else {
            if evidence.runs == Some(true) {
                // The machine is overloaded, so the poll is not to blame.
                seen.since = now;
            }
            return false;
        };
        if !is_told || kind != Kind::Blocked && !seen.has_heard(&stint.cpu, slice) {
            return false;
        }
        let is_long = evidence.kind(watched.settings.slice).is_some();
        let has_room = wanted && watched.has_room(kind, now);
        if !has_room && (seen.reported || !is_long) {
            return false;
        }
        let Some(mut visit) = stint.tenure.visit(seen.poll) else {
            if !std::mem::replace(&mut seen.missed, true) {
                count(&watched.figures.too_late);
            }
            return false;
        };
        visit.mark();
        // SAFETY: obligation 1: while the visit lives, the task is not freed (invariant 4 of
        // `work/tenure`).
        let mut stall = unsafe { Stall::look_at(visit.task(), place, evidence.wall, kind) };
        if is_long && watched.settings.learns && wanted {
            // SAFETY: the visit keeps the task from being freed.
            unsafe { visit.task().as_ref() }.conduct.caught();
        }
        stall.goes_on = has_room || place == Place::Lent;
        let (mut told, quiet) = if is_long {
            (Some(stall), None)
        } else {
            (None, Some(Quiet { seen: *seen, stint: stint.clone(), stall }))
        };
        let handoff = has_room.then(|| {
            // SAFETY: obligation 1: the visit keeps the task from being freed.
            let runs = unsafe { Running::of(visit.task(), seen.began, stint.cpu.thread()) };
            let asked = (now, stint.cpu.read());
            let detached = Detached {
                number: stint.number,
                kind,
                cpu: stint.cpu,
                asked,
                quiet,
                runs: Some(runs),
                is_lent: false,
                listened: None,
            };
            self.detach(stint, visit, detached)
        });
        *lock(&stint.told) = Some((seen.poll, seen.began));
        let was_taken = handoff.is_some();
        if let Some(handoff) = handoff {
            // Other workers may be idle.
            if self.has_visible_work() {
                self.wake_one();
            }
            if !self.offer(watched, handoff, now) {
                told.iter_mut().for_each(|stall| stall.goes_on = false);
                watched.nobody_comes_for(stint.number);
            }
        } else if wanted {
            watched.refuse(Bound::of(kind));
        }
        if let Some(stall) = told
            && !std::mem::replace(&mut seen.reported, true)
        {
            count(&watched.figures.stalls);
            stall.report(&watched.settings, Scene::new(watched.settings.stacks, stint, seen.poll));
        }
        was_taken && is_long
    }
}

impl Detached {
    /// Returns true if the monitor has something to do about this thread.
    fn is_watched(&self) -> bool {
        self.quiet.is_some() || self.listened.is_some()
    }
}

impl Watched {
    /// Notes that there is no thread for the core of the thread with that number, for now.
    #[cold]
    fn nobody_comes_for(&self, number: u64) {
        let mut detached = lock(&self.detached);
        let thread = detached.iter_mut().find(|thread| thread.number == number);
        if let Some(quiet) = thread.and_then(|thread| thread.quiet.as_mut()) {
            quiet.stall.goes_on = false;
        }
    }

    /// Examines the threads that lost their core early. Returns `true` if a poll has lasted for a
    /// slice.
    fn look_at_quiet(&self, now: Instant, late: Option<Duration>) -> bool {
        let mut found = Vec::new();
        for thread in lock(&self.detached).iter_mut() {
            let Some(quiet) = &mut thread.quiet else { continue };
            quiet.seen.forgive(late.unwrap_or(Duration::ZERO), now);
            let evidence = Evidence::of(&quiet.seen, &thread.cpu, now);
            let Some(kind) = evidence.kind(self.settings.slice) else { continue };
            if self.settings.learns {
                // The thread is still in that poll, or has not yet begun another one.
                quiet.stint.tenure.remember();
            }
            thread.kind = kind;
            let quiet = thread.quiet.take();
            found.extend(quiet.map(|quiet| {
                let scene = Scene::new(self.settings.stacks, &quiet.stint, quiet.seen.poll);
                (quiet.stall.found(evidence.wall, kind), scene)
            }));
        }
        let any = !found.is_empty();
        for (stall, scene) in found {
            count(&self.figures.stalls);
            stall.report(&self.settings, scene);
        }
        any
    }

    /// Returns true if one more thread may run without a core.
    fn has_room(&self, kind: Kind, now: Instant) -> bool {
        self.see_what_they_do(now);
        let has_room = match kind {
            Kind::Blocked => self.blocked() < self.settings.max_blocked,
            _ => self.computing() < self.settings.max_computing,
        };
        has_room && lock(&self.detached).len() < self.most()
    }

    /// Returns true if there is room for the task that is about to be offloaded, which is counted
    /// in `lent` already. Whether its poll will compute or block is not known.
    pub(super) fn has_room_to_lend(&self, now: Instant) -> bool {
        self.see_what_they_do(now);
        self.computing() <= self.settings.max_computing
            && self.blocked() < self.settings.max_blocked
            && lock(&self.detached).len() < self.most()
    }

    /// Returns the maximum number of threads without a core; it holds also when blocked threads
    /// begin to compute and computing ones block.
    fn most(&self) -> usize {
        self.settings.max_computing.saturating_add(self.settings.max_blocked)
    }

    /// Checks again which threads compute and which are blocked, if a bound is met.
    fn see_what_they_do(&self, now: Instant) {
        if self.computing() >= self.settings.max_computing
            || self.blocked() >= self.settings.max_blocked
        {
            self.ask_again(now);
        }
    }

    #[cold]
    fn ask_again(&self, now: Instant) {
        let mut found = Vec::new();
        for thread in lock(&self.detached).iter_mut() {
            let (before, used) = thread.asked;
            let time = now.saturating_duration_since(before);
            if time >= ASK_AGAIN {
                // Set first, so that no other thread does the same check meanwhile.
                thread.asked.0 = now;
                found.push((thread.number, thread.cpu, time, used));
            }
        }
        // Not under the lock, because this reads files of the operating system.
        let found: Vec<_> = found
            .into_iter()
            .map(|(number, cpu, time, used)| {
                let after = cpu.read();
                let kind = used.zip(after).map(|(used, after)| {
                    let is_idle = after.saturating_sub(used) * IDLE_SHARE < time
                        && cpu.would_run() != Some(true);
                    if is_idle { Kind::Blocked } else { Kind::Computing }
                });
                (number, after, kind)
            })
            .collect();
        for thread in lock(&self.detached).iter_mut() {
            let Some(seen) = found.iter().find(|seen| seen.0 == thread.number) else { continue };
            thread.asked.1 = seen.1;
            thread.kind = seen.2.unwrap_or(thread.kind);
        }
    }

    /// Returns the number of threads without a core that are not blocked, as far as is known, plus
    /// the offloaded tasks that wait for a thread.
    fn computing(&self) -> usize {
        let detached = lock(&self.detached);
        let (mut own, mut idle) = (0, 0);
        for thread in detached.iter() {
            match (thread.is_lent, thread.kind) {
                (true, Kind::Blocked) => idle += 1,
                (false, Kind::Computing | Kind::Unknown) => own += 1,
                _ => {}
            }
        }
        drop(detached);
        // Relaxed: a bound that is passed by a few does no harm.
        own + self.lent.load(Relaxed).saturating_sub(idle)
    }

    fn blocked(&self) -> usize {
        lock(&self.detached).iter().filter(|thread| thread.kind == Kind::Blocked).count()
    }

    /// Counts a core that stays with its stuck thread because of `bound`, and reports the bound
    /// once. From then on the pool's tasks must cooperate, as in any other runtime.
    pub(super) fn refuse(&self, bound: Bound) {
        count(&self.figures.refused);
        // Relaxed: a flag that orders nothing.
        if !self.told_of_bound[bound as usize].swap(true, Relaxed) {
            super::stall::tell_of_bound(bound, lock(&self.detached).len());
        }
    }
}

/// Measurements of a poll that has lasted long.
#[derive(Debug, Clone, Copy)]
struct Evidence {
    /// Wall-clock time of the poll, without the time in which the monitor did not run, and at least
    /// the processor time that its thread has used.
    wall: Duration,
    /// Time of the poll in which the monitor ran and the thread was not kept waiting for a
    /// processor.
    watched: Duration,
    /// Processor time that the thread has used in the poll.
    used: Option<Duration>,
    /// True if the thread runs or is runnable; read only where it matters.
    runs: Option<bool>,
}

impl Evidence {
    fn of(seen: &Seen, cpu: &CpuClock, now: Instant) -> Self {
        Self::from(seen, cpu.read(), now, || cpu.would_run())
    }

    fn from(
        seen: &Seen,
        clock: Option<Duration>,
        now: Instant,
        would_run: impl FnOnce() -> Option<bool>,
    ) -> Self {
        let used = seen.used.zip(clock).map(|(before, now)| now.saturating_sub(before));
        let wall = now.saturating_duration_since(seen.began).saturating_sub(seen.lost);
        let wall = wall.max(used.unwrap_or_default());
        // A thread that has run for most of the time computes, so the system call is not needed.
        let is_clear = used.is_none_or(|used| used * 2 >= wall);
        let runs = if is_clear { None } else { would_run() };
        Self { wall, watched: now.saturating_duration_since(seen.since), used, runs }
    }

    /// Returns the kind of stall if the poll is too long for that slice, else `None`.
    fn kind(&self, slice: Duration) -> Option<Kind> {
        let is_due = self.watched >= slice;
        let Some(used) = self.used else { return is_due.then_some(Kind::Unknown) };
        let has_computed = used * 2 >= slice;
        if used * 2 >= self.wall {
            return (self.wall >= slice && has_computed).then_some(Kind::Computing);
        }
        match self.runs {
            Some(false) => is_due.then_some(Kind::Blocked),
            None if used * IDLE_SHARE < self.wall => is_due.then_some(Kind::Blocked),
            // The thread runs or is runnable: it does not get its share of a processor.
            _ => (self.wall >= slice && has_computed).then_some(Kind::Computing),
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Clocks, Evidence, Kind, Seen};

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Returns the kind of a poll after `wall` ms, of which `watched` were watched and `used` used.
    fn kind(wall: u64, watched: u64, used: Option<u64>, runs: Option<bool>) -> Option<Kind> {
        let used = used.map(millis);
        let evidence = Evidence { wall: millis(wall), watched: millis(watched), used, runs };
        evidence.kind(millis(10))
    }

    #[test]
    fn who_has_used_its_slice_is_overdue_and_who_was_not_let_run_is_not() {
        assert_eq!(kind(10, 10, Some(10), None), Some(Kind::Computing));
        assert_eq!(kind(10, 10, Some(5), None), Some(Kind::Computing));
        assert_eq!(kind(9, 9, Some(9), None), None);
        // On an overloaded machine.
        assert_eq!(kind(10, 10, Some(2), Some(true)), None);
        assert_eq!(kind(30, 10, Some(4), Some(true)), None);
        assert_eq!(kind(30, 0, Some(6), Some(true)), Some(Kind::Computing));
        // The monitor was late, and the poll did compute.
        assert_eq!(kind(40, 0, Some(40), None), Some(Kind::Computing));
        // The process was stopped.
        assert_eq!(kind(1000, 4, Some(4), Some(true)), None);
        assert_eq!(kind(1000, 4, Some(1), Some(false)), None);
    }

    #[test]
    fn who_waits_for_a_slice_is_overdue() {
        assert_eq!(kind(10, 10, Some(0), Some(false)), Some(Kind::Blocked));
        assert_eq!(kind(10, 10, Some(3), Some(false)), Some(Kind::Blocked));
        assert_eq!(kind(10, 10, Some(0), None), Some(Kind::Blocked));
        assert_eq!(kind(10, 9, Some(0), Some(false)), None);
        assert_eq!(kind(10, 10, None, None), Some(Kind::Unknown));
        assert_eq!(kind(40, 9, None, None), None);
    }

    fn seen(began: Instant) -> Seen {
        Seen {
            stint: 1,
            poll: 2,
            began,
            since: began,
            lost: Duration::ZERO,
            used: Some(Duration::ZERO),
            marked: None,
            reported: false,
            missed: false,
        }
    }

    /// The stopped time is not counted for computing polls either, as long as they have not used up
    /// their slice.
    #[test]
    fn a_poll_during_which_the_process_was_stopped_has_lasted_for_the_rest() {
        let began = Instant::now();
        let now = began + millis(1_008);
        let after_stop = |used: u64, runs| {
            let mut seen = seen(began);
            seen.forgive(millis(1_000), now);
            let evidence = Evidence::from(&seen, Some(millis(used)), now, || Some(runs));
            (evidence.wall, evidence.kind(millis(10)))
        };
        assert_eq!(after_stop(8, true), (millis(8), None));
        assert_eq!(after_stop(0, false), (millis(8), None));
        // The monitor was late, and the thread ran all the same.
        assert_eq!(after_stop(40, true), (millis(40), Some(Kind::Computing)));
        // Without a stop the poll would be to blame.
        let evidence = Evidence::from(&seen(began), Some(millis(8)), now, || Some(true));
        assert_eq!(
            (evidence.wall, evidence.kind(millis(10))),
            (millis(1_008), Some(Kind::Computing))
        );
    }

    #[test]
    fn time_in_which_the_monitor_did_not_run_is_forgiven() {
        let now = Instant::now();
        let mut clocks = Clocks::new(2);
        clocks.cores[0] = Some(seen(now));
        clocks.forgive(Some(millis(3)), now + millis(5));
        assert_eq!(clocks.cores[0].unwrap().since, now + millis(3));
        clocks.forgive(Some(millis(300)), now + millis(305));
        assert_eq!(clocks.cores[0].unwrap().since, now + millis(303));
        clocks.forgive(Some(millis(300)), now + millis(306));
        assert_eq!(clocks.cores[0].unwrap().since, now + millis(306), "not in the future");
        clocks.forgive(None, now);
        assert!(clocks.cores[0].is_none(), "the monitor has slept for ever");
    }
}
