//! Polls that are timed one by one, and the time that tasks wait for them, for those
//! who asked for a histogram.
//!
//! A poll begins and ends with a reading of the clock then, 45 ns in all, so this
//! is off unless the builder enables it. While it is off, what it costs is the one
//! branch in [`run`], on a word that never changes and is beside words that every
//! poll reads.

use std::time::Instant;

use super::{Pool, core::Core, current};
use crate::engine::{
    prim::clock::Unit,
    work::task::{cell::Task, poll},
};

/// [`poll::run`], timed if the pool wants it.
#[inline(always)]
pub(crate) fn run(pool: &Pool, task: Task, now: u32) -> bool {
    if pool.timed {
        return run_timed(pool, task);
    }
    poll::run(task, now)
}

#[inline(never)]
fn run_timed(pool: &Pool, task: Task) -> bool {
    let unit = pool.config.unit();
    let now = unit.now();
    if unit == Unit::Micros && current::holds_core_of(pool) {
        let waited = unit.elapsed(now, task.since()).as_nanos();
        let waited_ns = u64::try_from(waited).unwrap_or(u64::MAX);
        current::with_core(|core| core.record_latency(waited_ns));
    }
    let began = Instant::now();
    let completed = poll::run(task, now);
    let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    // Only who holds a core writes to its figures; a poll that gave its core away
    // has none to write to, and is left out.
    if current::holds_core_of(pool) {
        current::with_core(|core| core.record_poll(took_ns));
    }
    completed
}

impl Core {
    fn record_poll(&self, took_ns: u64) {
        if let Some(histogram) = &self.remote().poll_times {
            histogram.record(took_ns);
        }
    }

    /// Counts how long a task waited from being queued to being polled.
    fn record_latency(&self, waited_ns: u64) {
        if let Some(histogram) = &self.remote().latencies {
            histogram.record(waited_ns);
        }
    }
}
