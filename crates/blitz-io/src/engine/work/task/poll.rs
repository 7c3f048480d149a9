//! One poll of a task, from taking its entry out of the queue to placing or ending the task.

use std::{
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    task::{Context, Poll},
};

use super::{
    arena::{self, Arena, Origin},
    budget::Budget,
    cell::{Header, Task},
    hooks::{self, Hooks},
    state::{Completed, Rested, Taken},
    waker,
};
use crate::engine::{
    prim::discard,
    work::thread_context::{self, CurrentTaskGuard, Inside, PollOutcome},
};

/// Polls the task once and performs the duty that its state then returns. Returns true if the
/// task is complete now. `now` is the time, as far as the caller knows it.
#[inline]
pub(crate) fn run(task: Task, now: u32) -> bool {
    run_as(task, now, PollCaller::Loop)
}

/// Polls the task as [`run`] does, for a set of tasks that is itself polled by other code.
#[inline]
pub(crate) fn run_within(task: Task, now: u32) -> bool {
    run_as(task, now, PollCaller::Within)
}

#[inline(always)]
fn run_as(task: Task, now: u32, caller: PollCaller) -> bool {
    let task = task.into_header();
    // SAFETY: the entry keeps the memory alive.
    unsafe { task.as_ref() }.since.set(now);
    // SAFETY: the entry keeps the memory alive until `take`, and running keeps it afterwards.
    match unsafe { task.as_ref() }.state.take() {
        // SAFETY: `take` made us the runner, and a task that was not complete still holds its
        // future.
        Taken::Poll if caller == PollCaller::Loop => unsafe { poll_in_loop(task) },
        // SAFETY: `take` made us the runner of a task that holds its future.
        Taken::Poll => unsafe { poll(task, caller) },
        Taken::Cancel => {
            // SAFETY: `take` made us the runner of a task that holds its future.
            unsafe { cancel(task, caller) };
            true
        }
        Taken::Nothing => false,
        Taken::Free => {
            // SAFETY: `take` returned `Free`, so nothing else keeps the memory, and shutdown has
            // dropped the output and the waker.
            unsafe { arena::free(task) };
            false
        }
    }
}

/// The kind of caller that polls a task or drops its future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PollCaller {
    /// A loop that runs tasks, and borrows nothing of its core: the core may be taken from its
    /// thread meanwhile.
    Loop,
    /// A set of tasks that is polled, by code that is unknown and may be in the middle of any
    /// operation. It enters user code only where no core is ever taken.
    Within,
    /// Any other code, perhaps in the middle of an operation that needs the core to stay.
    Elsewhere,
}

impl PollCaller {
    /// Marks the beginning of user code, if that is correct here; returns true if it did.
    #[inline(always)]
    fn enter_user_code(self, task: NonNull<Header>) -> bool {
        match self {
            Self::Loop => {
                thread_context::enter_user_code(task);
                true
            }
            Self::Within => thread_context::enter_user_code_in_place(task),
            Self::Elsewhere => false,
        }
    }

    /// Schedules the task that was just polled, behind other tasks.
    #[inline(always)]
    fn reschedule(self, task: Task, origin: Origin) {
        match self {
            Self::Loop => schedule_inside(task, origin, thread_context::nested_inside()),
            Self::Within | Self::Elsewhere => schedule(task, origin),
        }
    }
}

/// Ends the task of an entry that no queue will take, because its runtime is gone or ending.
/// Returns true if the future was dropped here.
#[cold]
pub(crate) fn end(task: Task) -> bool {
    let task = task.into_header();
    // SAFETY: the entry keeps the memory alive until `take`, and running keeps it afterwards.
    match unsafe { task.as_ref() }.state.take() {
        Taken::Poll | Taken::Cancel => {
            // SAFETY: `take` made us the runner of a task that holds its future.
            unsafe { cancel(task, PollCaller::Elsewhere) };
            true
        }
        Taken::Nothing => false,
        Taken::Free => {
            // SAFETY: `take` returned `Free`, so nothing else keeps the memory.
            unsafe { arena::free(task) };
            false
        }
    }
}

/// Claims the task of an entry that no queue will take, without running user code. The caller
/// then is its runner, and must [`drop_claimed`] it. Returns `None` if it was claimed before.
#[cold]
pub(crate) fn claim_entry(task: Task) -> Option<NonNull<Header>> {
    let task = task.into_header();
    // SAFETY: the entry keeps the memory alive until `take`, and running keeps it afterwards.
    match unsafe { task.as_ref() }.state.take() {
        Taken::Poll | Taken::Cancel => Some(task),
        Taken::Nothing => None,
        Taken::Free => {
            // SAFETY: `take` returned `Free`, so nothing else keeps the memory.
            unsafe { arena::free(task) };
            None
        }
    }
}

/// Drops the future of a claimed task and completes it as cancelled.
///
/// # Safety
/// 1. The caller runs the task (`State::stop` or [`claim_entry`] made it the runner), and the
///    stage holds the future.
#[cold]
pub(crate) unsafe fn drop_claimed(task: NonNull<Header>) {
    // SAFETY: 1. our caller runs the task, and the stage holds the future.
    unsafe { cancel(task, PollCaller::Elsewhere) };
}

/// Ends a task for shutdown, which reaches it through its arena's list and not through a queue.
/// Returns true if the future was dropped here.
///
/// # Safety
/// 1. The arena of `task` keeps its memory until this returns.
pub(crate) unsafe fn stop(task: NonNull<Header>) -> bool {
    // SAFETY: obligation 1: the arena keeps the memory.
    let claimed = unsafe { task.as_ref() }.state.stop();
    if claimed {
        // SAFETY: `stop` made us the runner of a task that was not complete.
        unsafe { cancel(task, PollCaller::Elsewhere) };
    }
    claimed
}

/// Polls a task for a worker's loop. This is the hot path: a function of its own, in which
/// `caller` is a constant.
///
/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[inline(never)]
unsafe fn poll_in_loop(task: NonNull<Header>) -> bool {
    // SAFETY: 1. our caller runs the task, and the stage holds the future.
    unsafe { poll(task, PollCaller::Loop) }
}

/// Polls a task once; then the task is queued, idle, complete or cancelled. Returns true if it is
/// complete now.
///
/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[inline(always)]
unsafe fn poll(task: NonNull<Header>, caller: PollCaller) -> bool {
    // SAFETY: running keeps the memory alive.
    let header = unsafe { task.as_ref() };
    let user_code = caller.enter_user_code(task);
    // The time slice belongs to the poll that entered user code, so a part of it has none.
    let is_part = caller == PollCaller::Within && !user_code;
    let budget = if is_part { Budget::untimed() } else { Budget::per_poll() };
    let entered = CurrentTaskGuard::new(task, budget);
    // SAFETY: the waker borrows our right to the task and is not dropped; clones that the
    // future makes have references of their own.
    let waker = ManuallyDrop::new(unsafe { waker::from_header(task) });
    let mut cx = Context::from_waker(&waker);
    // SAFETY: a task keeps its arena.
    let polled = match unsafe { header.arena.as_ref() }.hooks() {
        // SAFETY: 1. our caller runs the task, and the stage holds the future.
        Some(hooks) if !header.vtable.is_blocking => unsafe { poll_hooked(hooks, task, &mut cx) },
        // SAFETY: 1. we set RUNNING, and the stage holds the future.
        _ => unsafe { Header::poll(task, &mut cx) },
    };
    let PollOutcome { yielded, wait } = thread_context::take_poll_outcome();
    drop(entered);

    if polled.is_ready() {
        // SAFETY: 1. and 2. we run the task, and its output is stored.
        unsafe {
            match caller {
                PollCaller::Loop => complete_in_loop(task),
                _ => complete_elsewhere(task, user_code),
            }
        }
        return true;
    }
    if user_code && thread_context::leave_user_code() {
        header.hog_history.record_hog();
    }
    if yielded {
        header.state.rest_yielded();
        // SAFETY: 1. our transition set QUEUED, and this is the one entry.
        caller.reschedule(unsafe { Task::new(task) }, Origin::Yielded);
        return false;
    }
    header.waiting.set(wait);
    match header.state.rest() {
        // The task may be running elsewhere or gone by now.
        Rested::Idle => false,
        Rested::Schedule => {
            // SAFETY: 1. our transition set QUEUED, and this is the one entry.
            caller.reschedule(unsafe { Task::new(task) }, Origin::WokenInPoll);
            false
        }
        Rested::Cancel => {
            // SAFETY: 1. we still run the task, and the stage holds the future.
            unsafe { cancel(task, caller) };
            true
        }
    }
}

/// Polls the future with the user's hooks around it.
///
/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[cold]
unsafe fn poll_hooked(hooks: &Hooks, task: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    let latency = thread_context::take_latency();
    // SAFETY: running keeps the memory alive.
    unsafe { hooks::call_with_latency(hooks.before_poll.as_ref(), task, latency) };
    // SAFETY: 1. we set RUNNING, and the stage holds the future.
    let polled = unsafe { Header::poll(task, cx) };
    // SAFETY: running keeps the memory alive.
    unsafe { hooks::call_with_latency(hooks.after_poll.as_ref(), task, latency) };
    polled
}

/// Drops the future and completes the task as cancelled.
///
/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[cold]
unsafe fn cancel(task: NonNull<Header>, caller: PollCaller) {
    let entered = CurrentTaskGuard::new(task, Budget::unlimited());
    let user_code = caller.enter_user_code(task);
    // SAFETY: 1. we set RUNNING, and the stage holds the future.
    unsafe { Header::cancel(task) };
    drop(entered);
    // SAFETY: 1. and 2. we run the task, and its output is stored.
    unsafe { complete_elsewhere(task, user_code) };
}

/// Calls the hook for the end of a task, which is still the current task meanwhile, so that
/// a hook that blocks in place hands off its core as it would in a poll.
///
/// # Safety
/// 1. The caller runs the task.
#[cold]
unsafe fn terminate_hooked(hooks: &Hooks, task: NonNull<Header>) {
    let _entered = CurrentTaskGuard::new(task, Budget::unlimited());
    // SAFETY: running keeps the memory alive.
    unsafe { hooks::call(hooks.on_terminate.as_ref(), task) };
}

/// Completes a task for a worker's loop, in a function of its own because this is the hot path.
///
/// # Safety
/// 1. The caller runs the task. 2. The stage holds the output.
#[inline(never)]
unsafe fn complete_in_loop(task: NonNull<Header>) {
    // SAFETY: 1. our caller runs the task. 2. The stage holds the output.
    unsafe { complete(task, true) };
}

/// Completes a task that was not polled by a worker's loop.
///
/// # Safety
/// 1. The caller runs the task. 2. The stage holds the output.
#[inline(never)]
unsafe fn complete_elsewhere(task: NonNull<Header>, user_code: bool) {
    // SAFETY: 1. our caller runs the task. 2. The stage holds the output.
    unsafe { complete(task, user_code) };
}

/// Publishes a task's completion, wakes the joiner and gives up the life reference. If
/// `user_code` is true, the thread has entered user code for the task and leaves it here.
///
/// # Safety
/// 1. The caller runs the task. 2. The stage holds the output.
#[inline(always)]
unsafe fn complete(task: NonNull<Header>, user_code: bool) {
    // SAFETY: running keeps the memory alive.
    let header = unsafe { task.as_ref() };
    // SAFETY: a task keeps its arena.
    if let Some(hooks) = unsafe { header.arena.as_ref() }.hooks() {
        // SAFETY: 1. we run the task.
        unsafe { terminate_hooked(hooks, task) };
    }
    let is_alone = header.state.is_alone();
    if is_alone {
        // SAFETY: 1. no handle is left that could read the output, so it is ours.
        unsafe { Header::drop_output(task) };
    }
    if user_code {
        thread_context::leave_user_code();
    }
    if is_alone {
        // The destructor is user code, which may have taken a reference (a shield).
        if header.state.is_alone() {
            header.state.complete_alone();
            // SAFETY: 1. life was the last reference, and it ends here. 2. the output was dropped,
            // and without a handle there is no join waker.
            return unsafe { arena::free(task) };
        }
    }
    let Completed { drop_output, wake_joiner } = header.state.complete();
    if drop_output {
        // The task is detached but was not alone: a waker or an abort handle is left, or the
        // `JoinHandle` was dropped only since. The output's destructor is user code once more.
        if user_code {
            thread_context::enter_user_code(task);
        }
        // SAFETY: 1. JOIN_INTEREST was clear when we completed: by rule 3 of the module `task` the
        // output is ours.
        unsafe { Header::drop_output(task) };
        if user_code {
            thread_context::leave_user_code();
        }
    }
    if wake_joiner {
        // SAFETY: JOIN_WAKER was set when we completed: by rule 4 of the module `task` the
        // waker is ours.
        let waker = header.join_waker.with_mut(|waker| unsafe { (*waker).take() });
        if let Some(waker) = waker {
            // A panic of a foreign waker must not take the worker with it. The
            // panic hook has reported it.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                discard(payload);
            }
        }
    }
    if header.state.unref() {
        // SAFETY: 1. `unref` returned true. 2. the output was dropped above or taken by the
        // handle, and so was the waker.
        unsafe { arena::free(task) };
    }
}

/// Hands the entry to the runtime of its task.
#[inline]
pub(crate) fn schedule(task: Task, origin: Origin) {
    let (task, arena) = arena_of(task);
    arena.scheduler().schedule(task, origin);
}

/// Hands the entry to its runtime, for a caller that holds an [`Inside`] and is done with it.
#[inline]
pub(crate) fn schedule_inside(task: Task, origin: Origin, inside: Inside) {
    let (task, arena) = arena_of(task);
    arena.scheduler().schedule_inside(task, origin, inside);
}

/// Hands the entry to its runtime, from a thread that holds no core of that runtime.
#[inline]
pub(crate) fn schedule_remote(task: Task) {
    let (task, arena) = arena_of(task);
    arena.scheduler().schedule_remote(task);
}

/// Returns the entry and the arena of its task, which lives as long as the task.
#[inline(always)]
fn arena_of<'a>(task: Task) -> (Task, &'a Arena) {
    let header = task.into_header();
    // SAFETY: the entry keeps the memory alive, and the memory its arena, until the entry is
    // scheduled; `into_header` gave the entry to us, and we pass it on once.
    unsafe { (Task::new(header), header.as_ref().arena.as_ref()) }
}
