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
    work::current::{self, Entered, Inside, Verdict},
};

/// Polls the task once and does what its state then asks for; `true` if it is
/// complete now. `now` is the time, as far as the caller knows it.
#[inline]
pub(crate) fn run(task: Task, now: u32) -> bool {
    run_as(task, now, Caller::Loop)
}

/// The same for a set of tasks that is itself polled by somebody.
#[inline]
pub(crate) fn run_within(task: Task, now: u32) -> bool {
    run_as(task, now, Caller::Within)
}

#[inline(always)]
fn run_as(task: Task, now: u32, caller: Caller) -> bool {
    let task = task.into_header();
    // SAFETY: the entry keeps the memory alive.
    unsafe { task.as_ref() }.since.set(now);
    // SAFETY: the entry keeps the memory alive until `take`, and running after.
    match unsafe { task.as_ref() }.state.take() {
        // SAFETY: `take` made us the runner, and a task that was not complete
        // has its future.
        Taken::Poll if caller == Caller::Loop => unsafe { poll_in_loop(task) },
        // SAFETY: as above.
        Taken::Poll => unsafe { poll(task, caller) },
        Taken::Cancel => {
            // SAFETY: as above.
            unsafe { cancel(task, caller) };
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

/// Who has a task's future dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// Whoever runs tasks, with nothing of its core in its hands: the core may be taken from it
    /// meanwhile.
    Loop,
    /// A set of tasks that is polled: by whom, and in the middle of what, is not known. Where
    /// no core is ever taken it says what it runs.
    Within,
    /// Anybody, perhaps in the middle of something that needs the core to stay.
    Elsewhere,
}

impl Caller {
    /// Says that a user's code begins, if that is right here; whether it was said.
    #[inline(always)]
    fn enter_user_code(self, task: NonNull<Header>) -> bool {
        match self {
            Self::Loop => {
                current::enter_user_code(task);
                true
            }
            Self::Within => current::enter_user_code_in_place(task),
            Self::Elsewhere => false,
        }
    }

    /// Puts the entry of the task that was polled where others come first.
    #[inline(always)]
    fn place_again(self, task: Task) {
        match self {
            Self::Loop => place_inside(task, Origin::Yielded, current::deeper()),
            Self::Within | Self::Elsewhere => place(task, Origin::Yielded),
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
            unsafe { cancel(task, Caller::Elsewhere) };
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
        unsafe { cancel(task, Caller::Elsewhere) };
    }
    claimed
}

/// What workers do all the time: a function of its own, in which nothing is asked of the caller.
///
/// # Safety
/// 1. As `poll`.
#[inline(never)]
unsafe fn poll_in_loop(task: NonNull<Header>) -> bool {
    // SAFETY: 1.
    unsafe { poll(task, Caller::Loop) }
}

/// # Safety
/// 1. The caller runs the task, and the stage holds the future.
#[inline(always)]
unsafe fn poll(task: NonNull<Header>, caller: Caller) -> bool {
    // SAFETY: running keeps the memory alive.
    let header = unsafe { task.as_ref() };
    let user_code = caller.enter_user_code(task);
    // A slice is that of whoever said so.
    let is_part = caller == Caller::Within && !user_code;
    let budget = if is_part { Budget::timeless() } else { Budget::per_poll() };
    let entered = Entered::new(task, budget);
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
        // SAFETY: 1. and 2. we run the task, and its output is stored.
        unsafe {
            match caller {
                Caller::Loop => complete_in_loop(task),
                _ => complete_elsewhere(task, user_code),
            }
        }
        return true;
    }
    if user_code && current::leave_user_code() {
        header.conduct.caught();
    }
    if yielded {
        header.state.rest_yielded();
        // SAFETY: the task is queued now, by us.
        caller.place_again(unsafe { Task::new(task) });
        return false;
    }
    header.waiting.set(wait);
    match header.state.rest() {
        // The task may be running elsewhere or gone by now.
        Rested::Idle => false,
        Rested::Place => {
            // SAFETY: the task is queued now, by us.
            caller.place_again(unsafe { Task::new(task) });
            false
        }
        Rested::Cancel => {
            // SAFETY: we still run it, and the future is there.
            unsafe { cancel(task, caller) };
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
unsafe fn cancel(task: NonNull<Header>, caller: Caller) {
    let entered = Entered::new(task, Budget::unlimited());
    let user_code = caller.enter_user_code(task);
    // SAFETY: 1.
    unsafe { Header::cancel(task) };
    drop(entered);
    // SAFETY: 1. and 2. we run the task, and its output is stored.
    unsafe { complete_elsewhere(task, user_code) };
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

/// As `poll_in_loop`.
///
/// # Safety
/// 1. and 2. As `complete`.
#[inline(never)]
unsafe fn complete_in_loop(task: NonNull<Header>) {
    // SAFETY: 1. and 2.
    unsafe { complete(task, true) };
}

/// # Safety
/// 1. and 2. As `complete`.
#[inline(never)]
unsafe fn complete_elsewhere(task: NonNull<Header>, user_code: bool) {
    // SAFETY: 1. and 2.
    unsafe { complete(task, user_code) };
}

/// `user_code`: the thread has entered a user's code for it, and this is the end of that.
///
/// # Safety
/// 1. The caller runs the task. 2. The stage holds the output.
#[inline(always)]
unsafe fn complete(task: NonNull<Header>, user_code: bool) {
    // SAFETY: running keeps the memory alive.
    let header = unsafe { task.as_ref() };
    // SAFETY: a task keeps its home.
    if let Some(hooks) = unsafe { header.home.as_ref() }.hooks() {
        // SAFETY: 1.
        unsafe { terminate_hooked(hooks, task) };
    }
    let is_alone = header.state.is_alone();
    if is_alone {
        // SAFETY: nobody waits for the output, so it is ours.
        unsafe { Header::drop_output(task) };
    }
    if user_code {
        current::leave_user_code();
    }
    if is_alone {
        // The drop ran users' code, which may have taken a reference (a shield).
        if header.state.is_alone() {
            header.state.complete_alone();
            // SAFETY: life was the last reference, and it ends here.
            return unsafe { home::free(task) };
        }
    }
    let Completed { drop_output, wake_joiner } = header.state.complete();
    if drop_output {
        // Whoever was to have it has gone since. It is a user's code once more.
        if user_code {
            current::enter_user_code(task);
        }
        // SAFETY: nobody waited for the output when we completed.
        unsafe { Header::drop_output(task) };
        if user_code {
            current::leave_user_code();
        }
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
    let (task, home) = home_of(task);
    home.schedule().place(task, origin);
}

/// The same, by one who is inside and has nothing more to do there.
#[inline]
pub(crate) fn place_inside(task: Task, origin: Origin, inside: Inside) {
    let (task, home) = home_of(task);
    home.schedule().place_inside(task, origin, inside);
}

/// The same, by a thread that holds no core of that runtime.
#[inline]
pub(crate) fn place_from_outside(task: Task) {
    let (task, home) = home_of(task);
    home.schedule().place_from_outside(task);
}

/// The entry again, and the home of its task, which lives as long as it.
#[inline(always)]
fn home_of<'a>(task: Task) -> (Task, &'a Home) {
    let header = task.into_header();
    // SAFETY: the entry keeps the memory alive, and the memory its home, until the entry is
    // placed; `into_header` gave the entry to us, and we pass it on once.
    unsafe { (Task::new(header), header.as_ref().home.as_ref()) }
}
