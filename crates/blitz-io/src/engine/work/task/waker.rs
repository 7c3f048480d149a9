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
use crate::engine::work::current::{self, Inside};

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
    // SAFETY: 1. twice: one of them is called. The second asks at more length; apart, so that the
    // first needs no frame.
    unsafe {
        match current::at_once_inside() {
            Some(inside) => wake_inside(task, inside),
            None => wake_at_length(task),
        }
    }
}

/// # Safety
/// 1. As `wake`.
#[cold]
unsafe fn wake_at_length(task: NonNull<Header>) {
    // SAFETY: 1.
    unsafe { wake_inside(task, current::inside()) };
}

/// # Safety
/// 1. As `wake`.
#[inline(always)]
unsafe fn wake_inside(task: NonNull<Header>, inside: Inside) {
    if !home::is_of_this_core(task) {
        ::std::mem::drop(inside);
        // SAFETY: 1.
        return unsafe { wake_outside(task) };
    }
    // SAFETY: 1.: our reference goes in the same step; QUEUED keeps the memory,
    // and the core that this thread holds keeps the runtime.
    match unsafe { task.as_ref() }.state.wake_by_value() {
        // SAFETY: we set QUEUED.
        Woken::Place => poll::place_inside(unsafe { Task::new(task) }, Origin::Woken, inside),
        Woken::Nothing => {}
        Woken::Free => {
            ::std::mem::drop(inside);
            // SAFETY: the state told us to.
            unsafe { free(task) };
        }
    }
}

/// A wake-up was the last that was known of a task. Apart, so that others need no frame.
///
/// # Safety
/// 1. and 2. As [`home::free`].
#[inline(never)]
unsafe fn free(task: NonNull<Header>) {
    // SAFETY: 1. and 2.
    unsafe { home::free(task) };
}

/// While the runtime places the task, our reference keeps the runtime.
///
/// # Safety
/// 1. As `wake`.
#[inline(never)]
unsafe fn wake_outside(task: NonNull<Header>) {
    // SAFETY: 1.
    match unsafe { task.as_ref() }.state.wake_by_ref() {
        // SAFETY: we set QUEUED.
        Woken::Place => poll::place_from_outside(unsafe { Task::new(task) }),
        Woken::Nothing => {}
        Woken::Free => unreachable!("no reference was given up"),
    }
    // SAFETY: 1.
    unsafe { unref(task) };
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
