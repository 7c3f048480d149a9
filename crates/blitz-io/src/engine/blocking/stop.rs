//! The end of the crew, which waits, and says for whom; and who waits for other threads of the
//! runtime says so here, too.
//!
//! # Protocol
//! ```text
//! S1 the crew is told to stop: its threads leave when they find no job
//! S2 the queue is closed, and what waits in it ends as cancelled, under no lock
//! S3 whoever asked waits for the jobs that run, for as long as it likes
//! S4 the threads are joined
//! ```
//! A spawner that pushed before S2 has its job ended by it, or run; one that comes later
//! is refused and ends its job itself.
//!
//! # Checked by
//! `a_stop_against_a_spawn_runs_or_drops_the_job_once`,
//! `a_stop_against_a_thread_that_falls_asleep_ends_it`.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use super::{Blocking, Place, Running};
use crate::engine::{
    pool::{Pool, vigil::stall::tell_lines},
    prim::lock,
    work::task::poll,
};

/// When a wait is reported: after a second, when a person begins to wonder; after ten;
/// then once a minute.
const REPORTS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_secs(60)];

impl Blocking {
    /// S1 and S2.
    pub(crate) fn stop(&self) {
        self.crew.stop();
        let mut queued = self.queue.close();
        while let Some(job) = queued.pop_front() {
            poll::end(job);
        }
    }

    /// S3 and S4; `false` if the time was over first: the threads are left to
    /// themselves.
    pub(crate) fn join(&self, pool: &Pool, deadline: Option<Instant>) -> bool {
        // A job or a hook may shut its own runtime down: it does not wait for itself.
        let place = self.place_of_caller();
        let own = u32::from(place == Place::Inside);
        if !self.wait_and_say(pool, deadline, |until| self.alive.wait(own, until)) {
            return false;
        }
        let threads = self.roster.take_all();
        if deadline.is_none() && place != Place::Left {
            // What is left of them are destructors of thread-locals, which nobody can
            // bound: only who waits for ever waits for those. Not who is in such a
            // destructor itself: one of them may be about to join the caller.
            threads.into_iter().for_each(|thread| thread.join());
        }
        true
    }

    /// Waits by `wait`, which is `false` if the time that it is given was over first, and says
    /// for whom: also where it is not for threads of the crew.
    pub(crate) fn wait_and_say(
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

    /// Says on standard error for whom the shutdown waits.
    #[cold]
    fn report(&self, pool: &Pool, waited: Duration) {
        let jobs: Vec<Running> =
            self.crew.beds.made().filter_map(|bed| lock(&bed.running).clone()).collect();
        let text = describe(waited, &jobs, &pool.in_polls(), Instant::now());
        // Not by this thread: a poll that it waits for may hold the lock of standard error, and
        // the time that it may wait for is bounded.
        tell_lines(text);
    }
}

/// When the next report is due, counted from the beginning of the wait.
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

/// The text of a report.
fn describe(waited: Duration, jobs: &[Running], polls: &[Running], now: Instant) -> String {
    let mut text = format!("blitz-io: the shutdown of a runtime has waited {waited:.1?} for ");
    let count = |number: usize, one: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{number} {one}s")),
    };
    let whom = [count(jobs.len(), "blocking task"), count(polls.len(), "poll")];
    let whom: Vec<_> = whom.into_iter().flatten().collect();
    if whom.is_empty() {
        text.push_str(
            "threads that begin, are in a poll, or are about to end; `Builder::on_task_stall` has \
             polls named\n",
        );
        return text;
    }
    let _ = writeln!(
        text,
        "{}, which cannot be aborted: let them end, or use `shutdown_timeout`",
        whom.join(" and ")
    );
    let does = [(jobs, "has run"), (polls, "has been in one poll")];
    for (runs, does) in does.iter().flat_map(|(all, does)| all.iter().map(move |runs| (runs, does)))
    {
        let Running { id, name, spawned_at, since } = runs;
        let time = now.saturating_duration_since(*since);
        let _ = write!(text, "  task {id}");
        if let Some(name) = name {
            let _ = write!(text, " {name:?}");
        }
        let _ = writeln!(text, ", spawned at {spawned_at}, {does} for {time:.1?}");
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
