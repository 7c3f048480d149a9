//! One poll of a task, from the entry out of the queue to what follows.

use std::{
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    task::{Context, Poll},
};

use super::{
    budget::Budget,
    cell::{Header, Task},
    home::{self, Home, Origin},
    hooks::{self, Hooks},
    state::{Completed, Rested, Taken},
    waker,
};
use crate::engine::{
    prim::discard,
    work::current::{self, Entered, Verdict},
};

/// Polls the task once and does what its state then asks for; `true` if it is
/// complete now. `now` is the time, as far as the caller knows it.
#[inline]
pub(crate) fn run(task: Task, now: u32) -> bool {
    let task = task.into_header();
    // SAFETY: the entry keeps the memory alive.
    unsafe { task.as_ref() }.since.set(now);
    // SAFETY: the entry keeps the memory alive until `take`, and running after.
    match unsafe { task.as_ref() }.state.take() {
        // SAFETY: `take` made us the runner, and a task that was not complete
        // has its future.
        Taken::Poll => unsafe { poll(task) },
        Taken::Cancel => {
            // SAFETY: as above.
            unsafe { cancel(task) };
            true
        }
        Taken::Nothing => false,
        Taken::Free => {
            // SAFETY: `take` told us to.
            unsafe { home::free(task) };
            false
        }
    }
}

/// Ends a task whose entry no queue will take: its runtime is gone or going.
/// `true` if it was dropped here.
#[cold]
pub(crate) fn end(task: Task) -> bool {
    let task = task.into_header();
    // SAFETY: as in `run`.
    match unsafe { task.as_ref() }.state.take() {
        Taken::Poll | Taken::Cancel => {
            // SAFETY: as in `run`.
            unsafe { cancel(task) };
            true
        }
        Taken::Nothing => false,
        Taken::Free => {
            // SAFETY: `take` told us to.
            unsafe { home::free(task) };
            false
        }
    }
}

/// Shutdown's way to a task: through the home's list, not through a queue.
/// `true` if it was dropped here.
///
/// # Safety
/// 1. The home of `task` keeps its memory until this returns.
pub(crate) unsafe fn stop(task: NonNull<Header>) -> bool {
    // SAFETY: 1.
    let claimed = unsafe { task.as_ref() }.state.stop();
    if claimed {
        // SAFETY: `stop` made us the runner of a task that was not complete.
        unsafe { cancel(task) };
    }
    claimed
}

/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[inline]
unsafe fn poll(task: NonNull<Header>) -> bool {
    // SAFETY: running keeps the memory alive.
    let header = unsafe { task.as_ref() };
    let entered = Entered::new(task, Budget::per_poll());
    // SAFETY: the waker borrows our right to the task and is not dropped; clones
    // that the future makes count for themselves.
    let waker = ManuallyDrop::new(unsafe { waker::from_header(task) });
    let mut cx = Context::from_waker(&waker);
    // SAFETY: a task keeps its home.
    let polled = match unsafe { header.home.as_ref() }.hooks() {
        // SAFETY: 1.
        Some(hooks) if !header.vtable.is_blocking => unsafe { poll_hooked(hooks, task, &mut cx) },
        // SAFETY: 1.
        _ => unsafe { Header::poll(task, &mut cx) },
    };
    let Verdict { yielded, wait } = current::take_verdict();
    drop(entered);

    if polled.is_ready() {
        // SAFETY: we run the task, and its output is stored.
        unsafe { complete(task) };
        return true;
    }
    if yielded {
        header.state.rest_yielded();
        // SAFETY: the task is queued now, by us.
        place(unsafe { Task::new(task) }, Origin::Yielded);
        return false;
    }
    header.waiting.set(wait);
    match header.state.rest() {
        // The task may be running elsewhere or gone by now.
        Rested::Idle => false,
        Rested::Place => {
            // SAFETY: the task is queued now, by us.
            place(unsafe { Task::new(task) }, Origin::Yielded);
            false
        }
        Rested::Cancel => {
            // SAFETY: we still run it, and the future is there.
            unsafe { cancel(task) };
            true
        }
    }
}

/// # Safety
/// 1. As `poll`.
#[cold]
unsafe fn poll_hooked(hooks: &Hooks, task: NonNull<Header>, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: running keeps the memory alive.
    unsafe { hooks::call(hooks.before_poll.as_ref(), task) };
    // SAFETY: 1.
    let polled = unsafe { Header::poll(task, cx) };
    // SAFETY: as above.
    unsafe { hooks::call(hooks.after_poll.as_ref(), task) };
    polled
}

/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[cold]
unsafe fn cancel(task: NonNull<Header>) {
    let entered = Entered::new(task, Budget::unlimited());
    // SAFETY: 1.
    unsafe { Header::cancel(task) };
    drop(entered);
    // SAFETY: we run the task, and its output is stored.
    unsafe { complete(task) };
}

/// Tells the hook, for which the task is still the current one: code that blocks in
/// place hands its core off as it does in a poll.
///
/// # Safety
/// 1. The caller runs the task.
#[cold]
unsafe fn terminate_hooked(hooks: &Hooks, task: NonNull<Header>) {
    let _entered = Entered::new(task, Budget::unlimited());
    // SAFETY: running keeps the memory alive.
    unsafe { hooks::call(hooks.on_terminate.as_ref(), task) };
}

/// # Safety
/// 1. The caller runs the task. 2. The stage holds the output.
#[inline]
unsafe fn complete(task: NonNull<Header>) {
    // SAFETY: running keeps the memory alive.
    let header = unsafe { task.as_ref() };
    // SAFETY: a task keeps its home.
    if let Some(hooks) = unsafe { header.home.as_ref() }.hooks() {
        // SAFETY: 1.
        unsafe { terminate_hooked(hooks, task) };
    }
    if header.state.is_alone() {
        // SAFETY: nobody waits for the output, so it is ours.
        unsafe { Header::drop_output(task) };
        // The drop ran users' code, which may have taken a reference (a shield).
        if header.state.is_alone() {
            header.state.complete_alone();
            // SAFETY: life was the last reference, and it ends here.
            return unsafe { home::free(task) };
        }
    }
    let Completed { drop_output, wake_joiner } = header.state.complete();
    if drop_output {
        // SAFETY: nobody waited for the output when we completed.
        unsafe { Header::drop_output(task) };
    }
    if wake_joiner {
        // SAFETY: JOIN_WAKER was set when we completed: rule 4 gives it to us.
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
        // SAFETY: `unref` told us to.
        unsafe { home::free(task) };
    }
}

/// Hands the entry to the runtime of its task.
#[inline]
pub(crate) fn place(task: Task, origin: Origin) {
    let header = task.into_header();
    // SAFETY: the entry keeps the memory alive, and the memory its home.
    let home: &Home = unsafe { header.as_ref().home.as_ref() };
    // SAFETY: `into_header` gave the entry to us, and we pass it on once.
    home.schedule().place(unsafe { Task::new(header) }, origin);
}
