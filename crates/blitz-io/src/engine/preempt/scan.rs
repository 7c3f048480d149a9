//! Examines the polls of one pool and decides which of them are overdue.
//!
//! The monitor reads the number of the poll that the thread of a core is in, under the lock of the
//! thread's lease; this does not wait for the thread. If the number is the same for a slice, the
//! poll may be overdue. If the thread is in the runtime's own code on behalf of its poll just then,
//! the monitor waits a moment for it to return to user code.
//!
//! # Which thread is to blame
//! By the wall clock every poll is slow on an overloaded machine, and one thread more would make it
//! worse. So a thread that computes is overdue when it has *used* half a slice of processor time
//! (and a whole slice has passed); a thread that is blocked is overdue after a slice during which
//! the monitor has run; and a thread that is runnable is not overdue until it has used half a slice.
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
//! core *early*: it is not reported, not added to the task's hog history, and does not prolong the
//! storm, until it has lasted for a whole slice.

use std::{
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CorelessThread, EarlyHandoff, Pool, WatchRecord, WatchedPool, count,
    handoff::Handoff,
    running_polls::RunningPoll,
    stall::{HandoffBound, PendingReport, PollSite, StallKind, StalledPoll},
};
use crate::engine::{
    lease::Inspection,
    prim::{Ordering::Relaxed, cpu::CpuClock, lock},
    work::task::cell::Header,
};

/// How long a storm lasts after the last hand-off, and the slice that is used meanwhile; both
/// numbers are those of the prototype.
const STORM: Duration = Duration::from_millis(200);
const STORM_SLICE: Duration = Duration::from_millis(2);

/// Least time between two scans of a pool without busy threads, while other pools have some.
const IDLE_INTERVAL: Duration = Duration::from_millis(1);

/// A thread that used less than one part in this many of the time counts as blocked, on systems
/// that do not report whether a thread is runnable. Picked.
const IDLE_SHARE: u32 = 20;

/// A poll that was marked may use one part in this many of a slice before it must have yielded.
const YIELD_SHARE: u32 = 4;

/// Least time between two checks of whether a thread without a core is blocked or computes.
const RECHECK_INTERVAL: Duration = Duration::from_millis(100);

/// State that the monitor keeps for the cores of a pool.
pub(super) struct ScanState {
    cores: Box<[Option<SeenPoll>]>,
    storm_until: Option<Instant>,
}

/// A poll that the monitor has seen in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenPoll {
    watch_record: u64,
    poll: usize,
    began: Instant,
    /// Start of the poll, moved forward by the time in which the monitor did not run or the thread
    /// was runnable but not scheduled.
    since: Instant,
    /// Time since `began` in which the monitor should have run and did not.
    lost: Duration,
    /// Processor time that the thread had used at `began`.
    used: Option<Duration>,
    /// Processor time that the thread had used when the poll was marked; `None` before.
    marked: Option<Duration>,
    reported: bool,
    missed: bool,
}

impl SeenPoll {
    /// Creates the state of a poll that is seen for the first time.
    fn new(watch_record: &WatchRecord, poll: usize, now: Instant) -> Self {
        Self {
            watch_record: watch_record.number,
            poll,
            began: now,
            since: now,
            lost: Duration::ZERO,
            used: watch_record.cpu.read(),
            marked: None,
            reported: false,
            missed: false,
        }
    }

    fn discount(&mut self, late: Duration, now: Instant) {
        self.since = (self.since + late).min(now);
        self.lost = (self.lost + late).min(now.saturating_duration_since(self.began));
    }

    /// Marks the poll, so that the runtime's primitives make it yield.
    fn mark(&mut self, watch_record: &WatchRecord) {
        if let Some(mut inspection) = watch_record.lease.inspect(self.poll) {
            inspection.mark();
            self.marked = Some(watch_record.cpu.read().unwrap_or_default());
        }
    }

    /// Returns true if the poll was marked and its thread has since computed for long enough to
    /// have noticed. The monitor may be late, so elapsed time alone is no evidence.
    fn had_time_to_yield(&self, cpu: &CpuClock, slice: Duration) -> bool {
        let Some(marked) = self.marked else { return false };
        cpu.read().is_none_or(|used| used.saturating_sub(marked) * YIELD_SHARE >= slice)
    }
}

/// A watched poll of an offloaded task.
#[derive(Clone)]
pub(super) struct WatchedOffload {
    watch_record: Arc<WatchRecord>,
    seen: Option<SeenPoll>,
}

impl WatchedOffload {
    pub(super) fn new(watch_record: Arc<WatchRecord>) -> Self {
        Self { watch_record, seen: None }
    }

    /// Returns true if the poll was reported, so that there is nothing left to do about it.
    fn is_reported(&self) -> bool {
        self.seen.is_some_and(|seen| seen.reported)
    }
}

impl ScanState {
    pub(super) fn new(cores: usize) -> Self {
        Self { cores: vec![None; cores].into_boxed_slice(), storm_until: None }
    }

    /// Discounts time in which the monitor was late, or all that is known (`None`) after a long
    /// sleep.
    fn discount(&mut self, late: Option<Duration>, now: Instant) {
        match late {
            Some(late) => self.cores.iter_mut().flatten().for_each(|seen| seen.discount(late, now)),
            None => self.cores.fill(None),
        }
    }

    /// Returns the slice to be used now: a shorter one than `usual` in a storm.
    fn slice(&self, usual: Duration, now: Instant) -> Duration {
        let is_stormy = self.storm_until.is_some_and(|until| now < until);
        if is_stormy { usual.min(STORM_SLICE) } else { usual }
    }
}

impl Pool {
    /// Returns true if there is something to watch.
    pub(super) fn needs_watching(&self) -> bool {
        let Some(watched) = &self.watched else { return false };
        // A pool that stops: reporting a hog is all that can be done, so a reported one is done
        // with.
        let stopping = self.is_stopping();
        let is_watched = |watch_record: &Arc<WatchRecord>| {
            watch_record.is_watched() && !(stopping && watch_record.is_reported())
        };
        watched.holders.iter().any(|holder| lock(holder).as_ref().is_some_and(is_watched))
            || !stopping
                && (lock(&watched.coreless).iter().any(CorelessThread::is_watched)
                    || watched.has_unclaimed())
    }

    /// Examines all cores. Returns the time after which to do so again.
    pub(super) fn scan(self: &Arc<Self>, now: Instant, late: Option<Duration>) -> Duration {
        let Some(watched) = &self.watched else { return Duration::MAX };
        if !self.needs_watching() {
            lock(&watched.scan_state).cores.fill(None);
            // Soon enough for a pool that becomes busy, but less often than for one that is busy.
            return (watched.settings.slice / 2).max(IDLE_INTERVAL);
        }
        // A worker with slow polls reads the clock after this poll, and then does its maintenance.
        self.scan_count.advance();
        count(&watched.counters.scans);
        let state = &mut *lock(&watched.scan_state);
        state.discount(late, now);
        self.retry(watched, now);
        let mut found = watched.scan_early_handoffs(now, late);
        let usual = watched.settings.slice;
        Scan { pool: self, watched, now, slice: usual }.offloaded(late);
        let scan = Scan { pool: self, watched, now, slice: state.slice(usual, now) };
        for (index, seen) in state.cores.iter_mut().enumerate() {
            found |= scan.thread(index, seen);
        }
        if found {
            state.storm_until = Some(now + STORM);
        }
        state.slice(usual, now) / 2
    }
}

/// One round of the monitor over the polls of one pool.
struct Scan<'a> {
    pool: &'a Arc<Pool>,
    watched: &'a WatchedPool,
    now: Instant,
    /// The slice of this round, which is shorter in a storm.
    slice: Duration,
}

impl Scan<'_> {
    /// Examines the thread of one core. Returns `true` if its core was handed off after a whole
    /// slice.
    fn thread(&self, index: usize, seen: &mut Option<SeenPoll>) -> bool {
        let holder = lock(&self.watched.holders[index]).clone();
        let Some(watch_record) = holder.filter(|holder| holder.is_watched()) else {
            *seen = None;
            return false;
        };
        let site = match index.checked_sub(self.pool.remotes.len()) {
            None => PollSite::Worker(index),
            Some(carrier) if carrier < self.watched.carriers() => PollSite::Fiber(carrier),
            Some(_) => PollSite::BlockOn,
        };
        self.poll(site, &watch_record, seen)
    }

    /// Examines the polls of offloaded tasks. They hold up no worker.
    fn offloaded(&self, late: Option<Duration>) {
        let take =
            |thread: &mut CorelessThread| Some((thread.number, thread.watched_offload.take()?));
        let mut polls: Vec<_> = lock(&self.watched.coreless).iter_mut().filter_map(take).collect();
        for (_, WatchedOffload { watch_record, seen }) in &mut polls {
            let late = late.unwrap_or(Duration::ZERO);
            seen.iter_mut().for_each(|seen| seen.discount(late, self.now));
            self.poll(PollSite::Offloaded, watch_record, seen);
        }
        polls.retain(|(_, watched_offload)| !watched_offload.is_reported());
        if polls.is_empty() {
            return;
        }
        // Polls that have ended meanwhile are not in `coreless` any more.
        for thread in lock(&self.watched.coreless).iter_mut() {
            if let Some(index) = polls.iter().position(|(number, _)| *number == thread.number) {
                thread.watched_offload = Some(polls.swap_remove(index).1);
            }
        }
    }

    /// Examines one poll. Returns `true` if its core was handed off after a whole slice.
    fn poll(
        &self,
        site: PollSite,
        watch_record: &Arc<WatchRecord>,
        seen: &mut Option<SeenPoll>,
    ) -> bool {
        let Some(poll) = watch_record.lease.poll_number() else { return false };
        match seen {
            Some(seen) if seen.watch_record == watch_record.number && seen.poll == poll => {
                if self.now.saturating_duration_since(seen.began) >= self.slice {
                    return self.overdue(site, watch_record, seen);
                }
                // A poll that checks whether it should yield learns of it in time, and then neither
                // loses its core nor is reported.
                let watched_for = self.now.saturating_duration_since(seen.since);
                if watched_for >= self.slice / 2 && seen.marked.is_none() {
                    seen.mark(watch_record);
                }
                false
            }
            seen => {
                *seen = Some(SeenPoll::new(watch_record, poll, self.now));
                false
            }
        }
    }

    /// Handles a poll that has lasted for a slice: decides what to do about it, stops its thread
    /// from leaving the poll meanwhile, takes the core, finds a thread for the core, and reports
    /// the task. Returns `true` if the core was handed off after a whole slice.
    #[cold]
    fn overdue(
        &self,
        site: PollSite,
        watch_record: &Arc<WatchRecord>,
        seen: &mut SeenPoll,
    ) -> bool {
        let Some(decision) = self.decide(watch_record, seen) else { return false };
        let Some(mut inspection) = watch_record.lease.inspect(seen.poll) else {
            // The poll has ended, or its thread was in the runtime's code at each try.
            if !std::mem::replace(&mut seen.missed, true) {
                count(&self.watched.counters.too_late);
            }
            return false;
        };
        inspection.mark();
        if decision.is_long && decision.may_take {
            self.remember_hog(&inspection);
        }
        let report = decision.report(&inspection, site);
        // A poll that is not long by the usual slice is reported when it is. Its report moves to
        // the `CorelessThread`, so that the monitor is never the last owner of a task's name.
        let (mut report, early) = if decision.is_long {
            (Some(report), None)
        } else {
            let watch_record = watch_record.clone();
            (None, Some(EarlyHandoff { seen: *seen, watch_record, stall: report }))
        };
        let handoff = decision.takes_core.then(|| {
            let mut coreless = self.coreless(watch_record, &inspection, seen, decision.kind);
            coreless.early = early;
            self.pool.take_core_of(watch_record, inspection, coreless)
        });
        *lock(&watch_record.reported_poll) = Some((seen.poll, seen.began));
        if let Some(handoff) = handoff {
            if !self.find_thread(handoff) {
                if let Some(report) = &mut report {
                    report.others_continue = false;
                }
                self.watched.no_thread_for(watch_record.number);
            }
        } else if decision.may_take {
            self.watched.refuse(HandoffBound::of(decision.kind));
        }
        if let Some(report) = report {
            self.report(report, watch_record, seen);
        }
        decision.takes_core && decision.is_long
    }

    /// Decides what to do about a poll that has lasted for a slice; `None` if nothing, because the
    /// poll is not to blame, or because all was done before. Marks the poll.
    fn decide(&self, watch_record: &WatchRecord, seen: &mut SeenPoll) -> Option<Decision> {
        let may_take = watch_record.movable && !self.pool.is_stopping();
        if seen.reported && !may_take {
            return None;
        }
        let evidence = Evidence::of(seen, &watch_record.cpu, self.now);
        let was_marked = seen.marked.is_some();
        if !was_marked {
            seen.mark(watch_record);
        }
        let Some(kind) = evidence.kind(self.slice) else {
            if evidence.runs == Some(true) {
                // The machine is overloaded, so the poll is not to blame.
                seen.since = self.now;
            }
            return None;
        };
        // A poll is blamed only if it was marked in an earlier scan, and did not yield although it
        // could.
        let could_yield =
            || kind == StallKind::Blocked || seen.had_time_to_yield(&watch_record.cpu, self.slice);
        if !was_marked || !could_yield() {
            return None;
        }
        let is_long = evidence.kind(self.watched.settings.slice).is_some();
        let takes_core = may_take && self.watched.has_room(kind, self.now);
        let is_useful = takes_core || is_long && !seen.reported;
        is_useful.then_some(Decision { kind, wall: evidence.wall, is_long, may_take, takes_core })
    }

    /// Notes in the history of the inspected task that it hogged, if the pool learns.
    fn remember_hog(&self, inspection: &Inspection<'_>) {
        if self.watched.settings.learns {
            // SAFETY: the inspection keeps the task from being freed.
            unsafe { header_of(inspection).as_ref() }.hog_history.record_hog();
        }
    }

    /// Creates the record of a thread that is about to lose its core.
    fn coreless(
        &self,
        watch_record: &WatchRecord,
        inspection: &Inspection<'_>,
        seen: &SeenPoll,
        kind: StallKind,
    ) -> CorelessThread {
        let cpu = watch_record.cpu;
        // SAFETY: obligation 1: the inspection keeps the task from being freed.
        let running = unsafe { RunningPoll::of(header_of(inspection), seen.began, cpu.thread()) };
        CorelessThread {
            number: watch_record.number,
            kind,
            cpu,
            checked: (self.now, cpu.read()),
            early: None,
            running: Some(running),
            is_offloaded: false,
            watched_offload: None,
        }
    }

    /// Finds a thread for a core that was taken. Returns `false` if there is none for now.
    fn find_thread(&self, handoff: Arc<Handoff>) -> bool {
        // Until that thread arrives, idle workers can steal the core's tasks.
        if self.pool.has_visible_work() {
            self.pool.wake_one();
        }
        self.pool.offer_core(self.watched, handoff, self.now)
    }

    /// Counts and reports a poll, once.
    fn report(&self, report: PendingReport, watch_record: &Arc<WatchRecord>, seen: &mut SeenPoll) {
        if std::mem::replace(&mut seen.reported, true) {
            return;
        }
        count(&self.watched.counters.stalls);
        let settings = &self.watched.settings;
        report.report(settings, StalledPoll::new(settings.stacks, watch_record, seen.poll));
    }
}

/// Returns the inspected task. Leases hold tasks as opaque pointers, and
/// `work::thread_context::lease`, the only caller of `PollRecord::enter` outside of tests, enters
/// with the pointer of a `Header`.
pub(super) fn header_of(inspection: &Inspection<'_>) -> NonNull<Header> {
    inspection.task().cast()
}

/// The steps that the monitor takes about a poll that is to blame.
struct Decision {
    kind: StallKind,
    /// How long the poll has lasted.
    wall: Duration,
    /// True if the poll is too long by the usual slice too, and not only in a storm.
    is_long: bool,
    /// True if the thread may lose its core at all.
    may_take: bool,
    /// True if the thread does lose its core: one more thread may run without one.
    takes_core: bool,
}

impl Decision {
    /// Creates the report of the inspected task.
    fn report(&self, inspection: &Inspection<'_>, site: PollSite) -> PendingReport {
        // SAFETY: obligation 1: while the inspection lives, the task is not freed (invariant 4 of
        // `engine/lease`).
        let mut report =
            unsafe { PendingReport::new(header_of(inspection), site, self.wall, self.kind) };
        report.others_continue = self.takes_core || site == PollSite::Offloaded;
        report
    }
}

impl CorelessThread {
    /// Returns true if the monitor has something to do about this thread.
    fn is_watched(&self) -> bool {
        self.early.is_some() || self.watched_offload.is_some()
    }
}

impl WatchedPool {
    /// Notes that there is no thread for the core of the thread with that number, for now.
    #[cold]
    fn no_thread_for(&self, number: u64) {
        let mut coreless = lock(&self.coreless);
        let thread = coreless.iter_mut().find(|thread| thread.number == number);
        if let Some(early) = thread.and_then(|thread| thread.early.as_mut()) {
            early.stall.others_continue = false;
        }
    }

    /// Examines the threads that lost their core early. Returns `true` if a poll has lasted for a
    /// slice.
    fn scan_early_handoffs(&self, now: Instant, late: Option<Duration>) -> bool {
        let mut found = Vec::new();
        for thread in lock(&self.coreless).iter_mut() {
            let Some(early) = &mut thread.early else { continue };
            early.seen.discount(late.unwrap_or(Duration::ZERO), now);
            let evidence = Evidence::of(&early.seen, &thread.cpu, now);
            let Some(kind) = evidence.kind(self.settings.slice) else { continue };
            if self.settings.learns {
                // The thread is still in that poll, or has not yet begun another one.
                early.watch_record.lease.remember();
            }
            thread.kind = kind;
            let early = thread.early.take();
            found.extend(early.map(|early| {
                let stalled_poll =
                    StalledPoll::new(self.settings.stacks, &early.watch_record, early.seen.poll);
                (early.stall.update(evidence.wall, kind), stalled_poll)
            }));
        }
        let any = !found.is_empty();
        for (stall, stalled_poll) in found {
            count(&self.counters.stalls);
            stall.report(&self.settings, stalled_poll);
        }
        any
    }

    /// Returns true if one more thread may run without a core.
    fn has_room(&self, kind: StallKind, now: Instant) -> bool {
        self.update_kinds(now);
        let has_room = match kind {
            StallKind::Blocked => self.blocked() < self.settings.max_blocked,
            _ => self.computing() < self.settings.max_computing,
        };
        has_room && lock(&self.coreless).len() < self.max_coreless()
    }

    /// Returns true if there is room for the task that is about to be offloaded, which is counted
    /// in `offloaded` already. Whether its poll will compute or block is not known.
    pub(super) fn has_room_to_offload(&self, now: Instant) -> bool {
        self.update_kinds(now);
        self.computing() <= self.settings.max_computing
            && self.blocked() < self.settings.max_blocked
            && lock(&self.coreless).len() < self.max_coreless()
    }

    /// Returns the maximum number of threads without a core; it holds also when blocked threads
    /// begin to compute and computing ones block.
    fn max_coreless(&self) -> usize {
        self.settings.max_computing.saturating_add(self.settings.max_blocked)
    }

    /// Checks again which threads compute and which are blocked, if a bound is met.
    fn update_kinds(&self, now: Instant) {
        if self.computing() >= self.settings.max_computing
            || self.blocked() >= self.settings.max_blocked
        {
            self.recheck_kinds(now);
        }
    }

    #[cold]
    fn recheck_kinds(&self, now: Instant) {
        let mut found = Vec::new();
        for thread in lock(&self.coreless).iter_mut() {
            let (before, used) = thread.checked;
            let time = now.saturating_duration_since(before);
            if time >= RECHECK_INTERVAL {
                // Set first, so that no other thread does the same check meanwhile.
                thread.checked.0 = now;
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
                        && cpu.is_runnable() != Some(true);
                    if is_idle { StallKind::Blocked } else { StallKind::Computing }
                });
                (number, after, kind)
            })
            .collect();
        for thread in lock(&self.coreless).iter_mut() {
            let Some(seen) = found.iter().find(|seen| seen.0 == thread.number) else { continue };
            thread.checked.1 = seen.1;
            thread.kind = seen.2.unwrap_or(thread.kind);
        }
    }

    /// Returns the number of threads without a core that are not blocked, as far as is known, plus
    /// the offloaded tasks that wait for a thread.
    fn computing(&self) -> usize {
        let coreless = lock(&self.coreless);
        let (mut own, mut idle) = (0, 0);
        for thread in coreless.iter() {
            match (thread.is_offloaded, thread.kind) {
                (true, StallKind::Blocked) => idle += 1,
                (false, StallKind::Computing | StallKind::Unknown) => own += 1,
                _ => {}
            }
        }
        drop(coreless);
        // Relaxed: a bound that is passed by a few does no harm.
        own + self.offloaded.load(Relaxed).saturating_sub(idle)
    }

    fn blocked(&self) -> usize {
        lock(&self.coreless).iter().filter(|thread| thread.kind == StallKind::Blocked).count()
    }

    /// Counts a core that is not handed off because of `bound`, and reports the bound once: the
    /// core stays with its stuck thread, or, if the system has no thread, waits in its `Handoff`.
    /// From then on the pool's tasks must cooperate, as in any other runtime.
    pub(super) fn refuse(&self, bound: HandoffBound) {
        count(&self.counters.refused);
        // Relaxed: a flag that orders nothing.
        if !self.reported_bounds[bound as usize].swap(true, Relaxed) {
            super::stall::report_bound(bound, lock(&self.coreless).len());
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
    fn of(seen: &SeenPoll, cpu: &CpuClock, now: Instant) -> Self {
        Self::from(seen, cpu.read(), now, || cpu.is_runnable())
    }

    fn from(
        seen: &SeenPoll,
        clock: Option<Duration>,
        now: Instant,
        is_runnable: impl FnOnce() -> Option<bool>,
    ) -> Self {
        let used = seen.used.zip(clock).map(|(before, now)| now.saturating_sub(before));
        let wall = now.saturating_duration_since(seen.began).saturating_sub(seen.lost);
        let wall = wall.max(used.unwrap_or_default());
        // A thread that has run for most of the time computes, so the system call is not needed.
        let is_clear = used.is_none_or(|used| used * 2 >= wall);
        let runs = if is_clear { None } else { is_runnable() };
        Self { wall, watched: now.saturating_duration_since(seen.since), used, runs }
    }

    /// Returns the kind of stall if the poll is too long for that slice, else `None`.
    fn kind(&self, slice: Duration) -> Option<StallKind> {
        let is_due = self.watched >= slice;
        let Some(used) = self.used else { return is_due.then_some(StallKind::Unknown) };
        let has_computed = used * 2 >= slice;
        if used * 2 >= self.wall {
            return (self.wall >= slice && has_computed).then_some(StallKind::Computing);
        }
        match self.runs {
            Some(false) => is_due.then_some(StallKind::Blocked),
            None if used * IDLE_SHARE < self.wall => is_due.then_some(StallKind::Blocked),
            // The thread runs or is runnable: it does not get its share of a processor.
            _ => (self.wall >= slice && has_computed).then_some(StallKind::Computing),
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Evidence, ScanState, SeenPoll, StallKind};

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Returns the kind of a poll after `wall` ms, of which `watched` were watched and `used` used.
    fn kind(wall: u64, watched: u64, used: Option<u64>, runs: Option<bool>) -> Option<StallKind> {
        let used = used.map(millis);
        let evidence = Evidence { wall: millis(wall), watched: millis(watched), used, runs };
        evidence.kind(millis(10))
    }

    #[test]
    fn a_thread_that_used_its_slice_is_overdue_and_one_that_was_not_scheduled_is_not() {
        assert_eq!(kind(10, 10, Some(10), None), Some(StallKind::Computing));
        assert_eq!(kind(10, 10, Some(5), None), Some(StallKind::Computing));
        assert_eq!(kind(9, 9, Some(9), None), None);
        // On an overloaded machine.
        assert_eq!(kind(10, 10, Some(2), Some(true)), None);
        assert_eq!(kind(30, 10, Some(4), Some(true)), None);
        assert_eq!(kind(30, 0, Some(6), Some(true)), Some(StallKind::Computing));
        // The monitor was late, and the poll did compute.
        assert_eq!(kind(40, 0, Some(40), None), Some(StallKind::Computing));
        // The process was stopped.
        assert_eq!(kind(1000, 4, Some(4), Some(true)), None);
        assert_eq!(kind(1000, 4, Some(1), Some(false)), None);
    }

    #[test]
    fn a_thread_that_is_blocked_for_a_slice_is_overdue() {
        assert_eq!(kind(10, 10, Some(0), Some(false)), Some(StallKind::Blocked));
        assert_eq!(kind(10, 10, Some(3), Some(false)), Some(StallKind::Blocked));
        assert_eq!(kind(10, 10, Some(0), None), Some(StallKind::Blocked));
        assert_eq!(kind(10, 9, Some(0), Some(false)), None);
        assert_eq!(kind(10, 10, None, None), Some(StallKind::Unknown));
        assert_eq!(kind(40, 9, None, None), None);
    }

    fn seen(began: Instant) -> SeenPoll {
        SeenPoll {
            watch_record: 1,
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
            seen.discount(millis(1_000), now);
            let evidence = Evidence::from(&seen, Some(millis(used)), now, || Some(runs));
            (evidence.wall, evidence.kind(millis(10)))
        };
        assert_eq!(after_stop(8, true), (millis(8), None));
        assert_eq!(after_stop(0, false), (millis(8), None));
        // The monitor was late, and the thread ran all the same.
        assert_eq!(after_stop(40, true), (millis(40), Some(StallKind::Computing)));
        // Without a stop the poll would be to blame.
        let evidence = Evidence::from(&seen(began), Some(millis(8)), now, || Some(true));
        assert_eq!(
            (evidence.wall, evidence.kind(millis(10))),
            (millis(1_008), Some(StallKind::Computing))
        );
    }

    #[test]
    fn time_in_which_the_monitor_did_not_run_is_not_counted() {
        let now = Instant::now();
        let mut scan_state = ScanState::new(2);
        scan_state.cores[0] = Some(seen(now));
        scan_state.discount(Some(millis(3)), now + millis(5));
        assert_eq!(scan_state.cores[0].unwrap().since, now + millis(3));
        scan_state.discount(Some(millis(300)), now + millis(305));
        assert_eq!(scan_state.cores[0].unwrap().since, now + millis(303));
        scan_state.discount(Some(millis(300)), now + millis(306));
        assert_eq!(scan_state.cores[0].unwrap().since, now + millis(306), "not in the future");
        scan_state.discount(None, now);
        assert!(scan_state.cores[0].is_none(), "the monitor has slept for ever");
    }
}
