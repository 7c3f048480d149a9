//! Tasks that the end of a pool has claimed and that no thread has dropped yet.
//!
//! This is part of the protocol in [`stop`](super::stop). The list is shared by all threads that
//! drop, so a destructor that blocks its thread delays no other task.

use std::{ptr::NonNull, time::Instant};

use crate::engine::{
    preempt::running_polls::RunningPoll,
    prim::{Mutex, cpu::CpuClock, lock},
    work::task::cell::Header,
};

/// The list of claimed tasks.
pub(crate) struct ClaimedTasks(Mutex<State>);

struct State {
    claimed: Vec<NonNull<Header>>,
    /// Destructors that run now, by the number of their [`ClaimedTask`].
    dropping: Vec<(u64, RunningPoll)>,
    /// Number of threads that take tasks out of the list.
    droppers: usize,
    /// Number of tasks that were ever taken out.
    taken: u64,
}

// SAFETY: a claimed task may be dropped by any thread: its future is `Send`, or its pool belongs to
// one thread, and then no other thread takes part in its end.
unsafe impl Send for State {}

/// A snapshot of the list, for a thread that waits for the shutdown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimedSnapshot {
    /// Number of tasks in the list.
    pub(crate) waiting: usize,
    /// Number of threads that take tasks out of the list.
    pub(crate) droppers: usize,
    /// Number of tasks that were ever taken out.
    pub(crate) taken: u64,
}

/// A thread that takes tasks out of the list.
pub(crate) struct Dropper<'a> {
    list: &'a ClaimedTasks,
    thread: CpuClock,
}

/// A task that was taken out of the list. The thread that has it drops the future, then this value.
pub(crate) struct ClaimedTask<'a> {
    list: &'a ClaimedTasks,
    number: u64,
    pub(crate) task: NonNull<Header>,
}

impl ClaimedTasks {
    pub(crate) fn new() -> Self {
        let state = State { claimed: Vec::new(), dropping: Vec::new(), droppers: 0, taken: 0 };
        Self(Mutex::new(state))
    }

    /// Appends tasks that the caller has claimed, and leaves `claimed` empty.
    pub(crate) fn add(&self, claimed: &mut Vec<NonNull<Header>>) {
        if !claimed.is_empty() {
            lock(&self.0).claimed.append(claimed);
        }
    }

    /// Counts the calling thread among those that drop.
    pub(crate) fn dropper(&self) -> Dropper<'_> {
        lock(&self.0).droppers += 1;
        Dropper { list: self, thread: CpuClock::of_this_thread() }
    }

    pub(crate) fn snapshot(&self) -> ClaimedSnapshot {
        let state = lock(&self.0);
        ClaimedSnapshot {
            waiting: state.claimed.len(),
            droppers: state.droppers,
            taken: state.taken,
        }
    }

    /// Returns the destructors that run now.
    pub(crate) fn dropping(&self) -> Vec<RunningPoll> {
        lock(&self.0).dropping.iter().map(|(_, running)| running.clone()).collect()
    }
}

/// Polls that block in place, for reports.
pub(crate) struct BlockedPolls(Mutex<(u64, Vec<(u64, RunningPoll)>)>);

impl BlockedPolls {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((0, Vec::new())))
    }

    /// Adds the poll that the calling thread is in to the list, and returns the number of the
    /// entry.
    ///
    /// # Safety
    /// 1. The task is not freed during the call.
    pub(crate) unsafe fn add(&self, task: NonNull<Header>) -> u64 {
        let thread = CpuClock::of_this_thread().thread();
        // SAFETY: obligation 1: the caller keeps the task alive during this call.
        let running = unsafe { RunningPoll::of(task, Instant::now(), thread) };
        let mut polls = lock(&self.0);
        polls.0 += 1;
        let number = polls.0;
        polls.1.push((number, running));
        number
    }

    pub(crate) fn remove(&self, number: u64) {
        let mut polls = lock(&self.0);
        let index = polls.1.iter().position(|(listed, _)| *listed == number);
        let gone = index.map(|index| polls.1.swap_remove(index));
        drop(polls);
        // Not under the lock, for the reason given in the `Drop` of `ClaimedTask`.
        drop(gone);
    }

    pub(crate) fn all(&self) -> Vec<RunningPoll> {
        lock(&self.0).1.iter().map(|(_, running)| running.clone()).collect()
    }
}

impl<'a> Dropper<'a> {
    /// Takes a task out of the list, if there is one.
    pub(crate) fn take(&self) -> Option<ClaimedTask<'a>> {
        let since = Instant::now();
        let mut state = lock(&self.list.0);
        let task = state.claimed.pop()?;
        state.taken += 1;
        let number = state.taken;
        // SAFETY: obligation 1 of `RunningPoll::of`: a claimed task is in state RUNNING, which
        // keeps its memory until it is dropped.
        let running = unsafe { RunningPoll::of(task, since, self.thread.thread()) };
        state.dropping.push((number, running));
        Some(ClaimedTask { list: self.list, number, task })
    }
}

impl Drop for Dropper<'_> {
    fn drop(&mut self) {
        lock(&self.list.0).droppers -= 1;
    }
}

impl Drop for ClaimedTask<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.list.0);
        let index = state.dropping.iter().position(|(number, _)| *number == self.number);
        let gone = index.map(|index| state.dropping.swap_remove(index));
        drop(state);
        // Not under the lock: this may be the last reference to the task's name, and its memory may
        // be freed by a user's allocator.
        drop(gone);
    }
}
