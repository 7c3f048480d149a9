//! The waker of a task: a pointer to the task's header that counts as a reference.

use std::{
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

use super::{
    arena::{self, Origin},
    cell::{Header, Task},
    poll,
    state::Woken,
    trace,
};
use crate::engine::work::thread_context::{self, Inside};

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

/// Creates a waker for the task.
///
/// # Safety
/// 1. The waker's drop gives up one reference: the caller has one to give, or
///    never drops the waker and keeps the task alive while it is used.
#[inline]
pub(crate) unsafe fn from_header(task: NonNull<Header>) -> Waker {
    // SAFETY: the functions of the table count references as `RawWaker` requires, and all
    // of them may be called on any thread, because they only use the state word.
    unsafe { Waker::from_raw(RawWaker::new(task.as_ptr().cast_const().cast(), &VTABLE)) }
}

/// Returns true if `waker` wakes the task that is being polled on this thread.
#[inline]
pub(crate) fn is_current(waker: &Waker) -> bool {
    let Some(task) = thread_context::task() else { return false };
    // A second copy of the table would only make this return false, which is correct but slower.
    std::ptr::eq(waker.data(), task.as_ptr().cast()) && std::ptr::eq(waker.vtable(), &VTABLE)
}

/// Returns the task of a waker.
///
/// # Safety
/// 1. `data` is that of a waker made by `from_header`.
#[inline]
unsafe fn header(data: *const ()) -> NonNull<Header> {
    // SAFETY: obligation 1: the pointer was made from a `NonNull`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// Clones a waker, and counts a reference for the clone.
///
/// # Safety
/// 1. The waker is alive.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: obligation 1: the waker is alive, and so keeps its task.
    let task = unsafe { header(data).as_ref() };
    trace::woken(task, "waker.clone");
    task.state.add_ref();
    RawWaker::new(data, &VTABLE)
}

/// Wakes the task and consumes the waker.
///
/// # Safety
/// 1. The waker is alive, and is given up.
unsafe fn wake(data: *const ()) {
    // SAFETY: 1. the waker was made by `from_header`.
    let task = unsafe { header(data) };
    // SAFETY: obligation 1: the waker is alive, and so keeps its task.
    trace::woken(unsafe { task.as_ref() }, "waker.wake");
    // SAFETY: 1. the waker is alive and given up by our caller, and one of the two functions is
    // called. (The second has a slower way in; it is a function of its own, so that the first needs
    // no stack frame.)
    unsafe {
        match thread_context::try_inside() {
            Some(inside) => wake_inside(task, inside),
            None => wake_slow(task),
        }
    }
}

/// Wakes the task when [`thread_context::try_inside`] returned `None`.
///
/// # Safety
/// 1. The waker is alive, and is given up.
#[cold]
unsafe fn wake_slow(task: NonNull<Header>) {
    // SAFETY: 1. the waker is alive, and is given up by our caller.
    unsafe { wake_inside(task, thread_context::inside()) };
}

/// Wakes the task while an [`Inside`] keeps the core pointers of this thread valid.
///
/// # Safety
/// 1. The waker is alive, and is given up.
#[inline(always)]
unsafe fn wake_inside(task: NonNull<Header>, inside: Inside) {
    if !arena::is_of_this_runtime(task) {
        ::std::mem::drop(inside);
        // SAFETY: 1. the waker is alive, and is given up by our caller.
        return unsafe { wake_outside(task) };
    }
    // SAFETY: obligation 1: the waker's reference keeps the task, and is given up in the same
    // step. Afterwards QUEUED keeps the memory, and this thread's core keeps the runtime.
    match unsafe { task.as_ref() }.state.wake_by_value() {
        // SAFETY: 1. our transition set QUEUED, and this is the one entry.
        Woken::Schedule => poll::schedule_inside(unsafe { Task::new(task) }, Origin::Woken, inside),
        Woken::Nothing => {}
        Woken::Free => {
            ::std::mem::drop(inside);
            // SAFETY: 1. the state returned `Free`, to us alone. 2. such a task is complete, and
            // its output and join waker are gone.
            unsafe { free(task) };
        }
    }
}

/// Frees a task for which this waker was the last reference. Apart, so that other wake-ups need no
/// stack frame.
///
/// # Safety
/// 1. A transition of the state required this of the caller, once. 2. The output was dropped or
///    taken, and so was the join waker.
#[inline(never)]
unsafe fn free(task: NonNull<Header>) {
    // SAFETY: 1. a transition required this of our caller, once. 2. Output and join waker are gone.
    unsafe { arena::free(task) };
}

/// Wakes a task of another runtime. The waker's reference is given up last, because it keeps
/// that runtime alive while the task is placed.
///
/// # Safety
/// 1. The waker is alive, and is given up.
#[inline(never)]
unsafe fn wake_outside(task: NonNull<Header>) {
    // SAFETY: obligation 1: the waker's reference keeps the task.
    match unsafe { task.as_ref() }.state.wake_by_ref() {
        // SAFETY: 1. our transition set QUEUED, and this is the one entry.
        Woken::Schedule => poll::schedule_remote(unsafe { Task::new(task) }),
        Woken::Nothing => {}
        Woken::Free => unreachable!("no reference was given up"),
    }
    // SAFETY: 1. the waker's reference is given up here.
    unsafe { unref(task) };
}

/// Wakes the task and keeps the waker.
///
/// # Safety
/// 1. The waker is alive.
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: 1. the waker was made by `from_header`.
    let task = unsafe { header(data) };
    // SAFETY: obligation 1: the waker is alive, and so keeps its task.
    trace::woken(unsafe { task.as_ref() }, "waker.wake_by_ref");
    // SAFETY: 1. the waker's reference is alive during the call.
    unsafe { wake_and_schedule(task) };
}

/// Wakes the task and schedules it as its runtime sees fit.
///
/// # Safety
/// 1. The caller has a reference to the task.
#[inline]
unsafe fn wake_and_schedule(task: NonNull<Header>) {
    // SAFETY: obligation 1: the caller's reference keeps the task.
    match unsafe { task.as_ref() }.state.wake_by_ref() {
        // SAFETY: 1. our transition set QUEUED, and this is the one entry.
        Woken::Schedule => poll::schedule(unsafe { Task::new(task) }, Origin::Woken),
        Woken::Nothing => {}
        Woken::Free => unreachable!("no reference was given up"),
    }
}

/// Drops a waker, and gives up its reference.
///
/// # Safety
/// 1. The waker is alive, and is given up.
unsafe fn drop(data: *const ()) {
    // SAFETY: 1. the waker was made by `from_header`.
    let task = unsafe { header(data) };
    // SAFETY: obligation 1: the waker is alive, and so keeps its task.
    trace::woken(unsafe { task.as_ref() }, "waker.drop");
    // SAFETY: 1. the waker's reference is given up here.
    unsafe { unref(task) };
}

/// Gives up a reference, and frees the task if it was the last.
///
/// # Safety
/// 1. The caller gives up a reference to the task.
#[inline]
unsafe fn unref(task: NonNull<Header>) {
    // SAFETY: obligation 1: the caller's reference keeps the task until `unref`.
    if unsafe { task.as_ref() }.state.unref() {
        // SAFETY: 1. `unref` returned true, to us alone. 2. such a task is complete, and its output
        // and join waker are gone.
        unsafe { arena::free(task) };
    }
}
