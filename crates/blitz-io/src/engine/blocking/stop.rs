//! Shutdown of the blocking pool: waits for its threads, and reports what it waits for. Waits for
//! other threads of the runtime are reported here too.
//!
//! # Protocol
//! ```text
//! S1 the pool stops: its threads run what is queued, and leave when they find no job
//! S2 the queue is closed
//! S3 the thread that requested the shutdown waits for the jobs, up to its deadline. If all
//!    threads are stuck in jobs while others are queued, which may be what they wait for, it starts
//!    one more
//! S4 the threads are joined
//! ```
//! A job that was queued before S1 is run if a thread for it could be started (Tokio may cancel
//! it). A job that was queued between S1 and S2 is run, or taken back by its spawner and ended as
//! cancelled (`thread_set.rs`, 'A spawn against a stop'). A job that comes later is refused, and
//! its spawner ends it.
//!
//! # Checked by
//! `a_stop_against_a_spawn_runs_or_drops_the_job_once`, `a_job_queued_before_a_stop_is_run`,
//! `a_stop_against_a_thread_that_falls_asleep_ends_it`.

use std::{
    cell::Cell,
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{BlockingPool, CallerKind, RunningPoll};
use crate::engine::{pool::Pool, preempt::stall::write_lines, prim::lock};

/// When a wait is reported: after a second, when a person begins to wonder; after ten; then once a
/// minute.
const REPORTS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];

/// How long running jobs have to let a thread take another job before S3 starts a helper. Picked: a
/// person notices a shutdown that waits for longer in any case.
const HELP_INTERVAL: Duration = Duration::from_millis(50);

/// The number of threads beyond the cap that one shutdown starts for queued jobs: as many as it
/// starts for destructors. Picked, not measured.
const MAX_HELPERS: u32 = 64;

impl BlockingPool {
    /// Stops the pool: steps S1 and S2.
    pub(crate) fn stop(&self) {
        self.thread_set.stop();
        self.queue.close();
    }

    /// Waits for the threads: steps S3 and S4. Returns `false` if the deadline passes first; then
    /// the threads are left running.
    pub(crate) fn join(self: &Arc<Self>, pool: &Pool, deadline: Option<Instant>) -> bool {
        // A job or a hook may shut down its own runtime, so it must not wait for itself.
        let caller = self.caller_kind();
        let own = u32::from(caller == CallerKind::Inside);
        let (jobs, helpers) = (Cell::new(usize::MAX), Cell::new(0));
        let wait = |until| self.wait_and_help(&jobs, &helpers, own, until);
        if !self.wait_and_report(pool, deadline, wait) {
            return false;
        }
        let threads = self.registry.take_all();
        if caller != CallerKind::AtEnd {
            // Only destructors of thread-locals are left to run, which the deadline bounds too. A
            // caller in such a destructor does not wait, because one of the threads may be about to
            // join the caller.
            threads.into_iter().for_each(|thread| thread.join_until(deadline));
        }
        true
    }

    /// Waits until no more than `own` threads are left. If none of the queued jobs was taken since
    /// the last check, the running jobs may wait for them, so a thread beyond the cap runs the
    /// queue; there are at most [`MAX_HELPERS`]. Returns false if the time is over first.
    fn wait_and_help(
        self: &Arc<Self>,
        jobs: &Cell<usize>,
        helpers: &Cell<u32>,
        own: u32,
        until: Option<Instant>,
    ) -> bool {
        loop {
            let check_at = Instant::now() + HELP_INTERVAL;
            if self.alive.wait(own, Some(until.map_or(check_at, |until| until.min(check_at)))) {
                return true;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
            let queued = self.queue.len();
            let is_stuck = queued > 0 && jobs.replace(queued) == queued;
            if is_stuck && helpers.get() < MAX_HELPERS {
                helpers.set(helpers.get() + 1);
                self.start_helper();
            }
        }
    }

    /// Waits by calling `wait`, which returns `false` if the time that it is given is over first,
    /// and reports what it waits for. Also used for waits for threads other than those of the pool.
    pub(crate) fn wait_and_report(
        &self,
        pool: &Pool,
        deadline: Option<Instant>,
        wait: impl Fn(Option<Instant>) -> bool,
    ) -> bool {
        let begun = Instant::now();
        let mut reports = Reports::new();
        loop {
            let report_at = begun.checked_add(reports.next_after());
            let until = [deadline, report_at].into_iter().flatten().min();
            if wait(until) {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            reports.made();
            self.report(pool, begun.elapsed());
        }
    }

    /// Reports on standard error which jobs, polls and destructors the shutdown waits for.
    #[cold]
    fn report(&self, pool: &Pool, waited: Duration) {
        let jobs: Vec<RunningPoll> = self
            .thread_set
            .idle_slots
            .allocated()
            .filter_map(|slot| lock(&slot.running).clone())
            .collect();
        let (mut polls, drops) = (pool.running_polls(), pool.claimed.dropping());
        // A job is a task too, and so is a task that is in its destructor.
        let is_other =
            |poll: &RunningPoll| !jobs.iter().chain(&drops).any(|other| other.id == poll.id);
        polls.retain(is_other);
        let text = describe(waited, &jobs, &polls, &drops, Instant::now());
        // Not written by this thread, because a poll that it waits for may hold the lock of
        // standard error, and the time that this thread may wait is bounded.
        write_lines(text);
    }
}

/// Schedule of reports, counted from the beginning of the wait.
struct Reports {
    made: usize,
}

impl Reports {
    fn new() -> Self {
        Self { made: 0 }
    }

    fn next_after(&self) -> Duration {
        match REPORTS.get(self.made) {
            Some(after) => *after,
            None => REPORTS[2] * u32::try_from(self.made - 1).unwrap_or(u32::MAX),
        }
    }

    fn made(&mut self) {
        self.made += 1;
    }
}

/// Returns the text of a report.
fn describe(
    waited: Duration,
    jobs: &[RunningPoll],
    polls: &[RunningPoll],
    drops: &[RunningPoll],
    now: Instant,
) -> String {
    let mut text = format!("blitz-io: the shutdown of a runtime has waited {waited:.1?} for ");
    let count = |number: usize, one: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(match one.split_once(' ') {
            Some(("destructor", rest)) => format!("{number} destructors {rest}"),
            _ => format!("{number} {one}s"),
        }),
    };
    let what = [
        count(jobs.len(), "blocking task"),
        count(polls.len(), "poll"),
        count(drops.len(), "destructor of a task"),
    ];
    let what: Vec<_> = what.into_iter().flatten().collect();
    if what.is_empty() {
        text.push_str("threads that begin, or that are about to end in a hook or a thread-local\n");
        return text;
    }
    let _ = writeln!(
        text,
        "{}, which cannot be aborted: let them end, or use `shutdown_timeout`",
        what.join(" and ")
    );
    let does =
        [(jobs, "has run"), (polls, "has been in one poll"), (drops, "has been in its destructor")];
    for (runs, does) in does.iter().flat_map(|(all, does)| all.iter().map(move |runs| (runs, does)))
    {
        let RunningPoll { id, name, spawned_at, since, .. } = runs;
        let time = now.saturating_duration_since(*since);
        let _ = write!(text, "  task {id}");
        if let Some(name) = name {
            let _ = write!(text, " {name:?}");
        }
        let _ = write!(text, ", spawned at {spawned_at}, {does} for {time:.1?}");
        if let Some(call) = runs.waits_in() {
            let _ = write!(text, " and {call}");
        }
        text.push('\n');
    }
    text
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::Reports;

    #[test]
    fn a_wait_is_reported_after_a_second_then_ten_then_every_minute() {
        let mut reports = Reports::new();
        let mut due = Vec::new();
        for _ in 0..5 {
            due.push(reports.next_after().as_secs());
            reports.made();
        }
        assert_eq!(due, [1, 10, 60, 120, 180]);
    }
}
