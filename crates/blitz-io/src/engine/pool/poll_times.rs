//! Times each poll, and the wait of each task before it, for runtimes with a histogram.
//!
//! Each poll then begins and ends with a reading of the clock, 45 ns in all, so this is off unless
//! the builder enables it. While it is off, it costs one branch in [`run`], on a word that never
//! changes and is beside words that every poll reads.

use std::time::Instant;

use super::{Pool, core::Core, held_core};
use crate::engine::{
    prim::clock::TimestampUnit,
    work::{
        task::{cell::Task, poll},
        thread_context,
    },
};

/// Polls the task with [`poll::run`], timed if the pool is configured to.
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
    if unit == TimestampUnit::Micros {
        let waited = unit.elapsed(now, task.since());
        if held_core::holds_core_of(pool) {
            let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
            held_core::with_core(|core| core.record_latency(waited_ns));
        }
        thread_context::set_latency(Some(waited));
    }
    let began = Instant::now();
    let completed = poll::run(task, now);
    // The latency is left over if the task was cancelled instead of being polled.
    thread_context::set_latency(None);
    let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    // Only the holder of a core writes to its histograms; a poll that handed its core off has
    // none to write to, and is left out.
    if held_core::holds_core_of(pool) {
        held_core::with_core(|core| core.record_poll(took_ns));
    }
    completed
}

/// Polls a task without a core with [`poll::run`]. Such polls are in no histogram, because only the
/// holder of a core writes to it.
pub(crate) fn run_without_core(pool: &Pool, task: Task) -> bool {
    let unit = pool.config.unit();
    let now = unit.now();
    if unit == TimestampUnit::Micros {
        thread_context::set_latency(Some(unit.elapsed(now, task.since())));
    }
    let completed = poll::run(task, now);
    thread_context::set_latency(None);
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
