//! A task's waker: a pointer to its header that counts as a reference.

use std::{
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

use super::{
    cell::{Header, Task},
    home::{self, Origin},
    poll,
    state::Woken,
    trace,
};
use crate::engine::work::current;

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

/// # Safety
/// 1. The waker's drop gives up one reference: the caller has one to give, or
///    never drops it and keeps the task alive while it is used.
#[inline]
pub(crate) unsafe fn from_header(task: NonNull<Header>) -> Waker {
    // SAFETY: the functions of the table count as `RawWaker` asks for, and all
    // of them may be called on any thread: they only use the state word.
    unsafe { Waker::from_raw(RawWaker::new(task.as_ptr().cast_const().cast(), &VTABLE)) }
}

/// Whether `waker` wakes the task that is being polled on this thread.
#[inline]
pub(crate) fn is_current(waker: &Waker) -> bool {
    let Some(task) = current::task() else { return false };
    // A second copy of the table would only cost the short cut.
    std::ptr::eq(waker.data(), task.as_ptr().cast()) && std::ptr::eq(waker.vtable(), &VTABLE)
}

/// # Safety
/// 1. `data` is that of a waker made by `from_header`.
#[inline]
unsafe fn header(data: *const ()) -> NonNull<Header> {
    // SAFETY: 1.: it was a `NonNull`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// # Safety
/// 1. The waker is alive.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: 1.
    let task = unsafe { header(data).as_ref() };
    trace::woken(task, "waker.clone");
    task.state.add_ref();
    RawWaker::new(data, &VTABLE)
}

/// # Safety
/// 1. The waker is alive, and is given up.
unsafe fn wake(data: *const ()) {
    // SAFETY: 1.
    let task = unsafe { header(data) };
    // SAFETY: 1.
    trace::woken(unsafe { task.as_ref() }, "waker.wake");
    if !home::is_of_this_core(task) {
        // While the runtime places the task, our reference keeps the runtime.
        // SAFETY: 1., for both.
        return unsafe {
            wake_here(task);
            unref(task);
        };
    }
    // SAFETY: 1.: our reference goes in the same step; QUEUED keeps the memory,
    // and the core that this thread holds keeps the runtime.
    match unsafe { task.as_ref() }.state.wake_by_value() {
        // SAFETY: we set QUEUED.
        Woken::Place => poll::place(unsafe { Task::new(task) }, Origin::Woken),
        Woken::Nothing => {}
        // SAFETY: the state told us to.
        Woken::Free => unsafe { home::free(task) },
    }
}

/// # Safety
/// 1. The waker is alive.
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: 1.
    let task = unsafe { header(data) };
    // SAFETY: 1.
    trace::woken(unsafe { task.as_ref() }, "waker.wake_by_ref");
    // SAFETY: 1.
    unsafe { wake_here(task) };
}

/// # Safety
/// 1. The caller has a reference to the task.
#[inline]
unsafe fn wake_here(task: NonNull<Header>) {
    // SAFETY: 1.
    match unsafe { task.as_ref() }.state.wake_by_ref() {
        // SAFETY: we set QUEUED.
        Woken::Place => poll::place(unsafe { Task::new(task) }, Origin::Woken),
        Woken::Nothing => {}
        Woken::Free => unreachable!("no reference was given up"),
    }
}

/// # Safety
/// 1. The waker is alive, and is given up.
unsafe fn drop(data: *const ()) {
    // SAFETY: 1.
    let task = unsafe { header(data) };
    // SAFETY: 1.
    trace::woken(unsafe { task.as_ref() }, "waker.drop");
    // SAFETY: 1.
    unsafe { unref(task) };
}

/// # Safety
/// 1. The caller gives up a reference to the task.
#[inline]
unsafe fn unref(task: NonNull<Header>) {
    // SAFETY: 1.
    if unsafe { task.as_ref() }.state.unref() {
        // SAFETY: the state told us to.
        unsafe { home::free(task) };
    }
}
