//! Which set of local tasks the code on this thread belongs to.
//!
//! The sets that were entered form a chain, innermost first. A guard may be kept
//! for longer than what was entered before or after it, and be dropped in any
//! order: its link is taken out of the middle, and whatever was entered last and
//! not left counts. A guard that is leaked stays in the chain with the set it
//! holds; nothing dangles.

use std::{cell::Cell, marker::PhantomData, ptr};

use super::Local;
use crate::engine::work::current;

struct Link {
    set: *const Local,
    outer: Cell<*const Link>,
}

/// The set that was entered last on this thread.
pub(crate) fn entered() -> Option<Local> {
    let link = innermost();
    // SAFETY: links leave the chain before they are dropped, and a set outlives its
    // links: a guard owns it, and `within` borrows it.
    unsafe { link.as_ref().map(|link| Local::clone(&*link.set)) }
}

/// Calls `f` inside the set.
pub(super) fn within<R>(set: &Local, f: impl FnOnce() -> R) -> R {
    let link = Link { set, outer: Cell::new(innermost()) };
    // SAFETY: `Leave` takes the link out before this frame ends, and the frame keeps
    // `set` borrowed.
    unsafe { enter(&raw const link) };
    let _leave = Leave(&raw const link);
    f()
}

/// This thread is inside a set until this is dropped.
pub(crate) struct Inside {
    link: *const Link,
    /// The guard belongs to its thread.
    here: PhantomData<*const ()>,
}

impl Inside {
    pub(crate) fn new(set: &Local) -> Self {
        let set = Box::into_raw(Box::new(set.clone()));
        let link = Box::into_raw(Box::new(Link { set, outer: Cell::new(innermost()) }));
        // SAFETY: `drop` takes the link out before it and the set are freed.
        unsafe { enter(link) };
        Self { link, here: PhantomData }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        drop(Leave(self.link));
        // SAFETY: `new` made both of boxes, and the link is out of the chain.
        let set = unsafe {
            let link = Box::from_raw(self.link.cast_mut());
            Box::from_raw(link.set.cast_mut())
        };
        drop(set);
    }
}

fn innermost() -> *const Link {
    current::with(|current| current.local.get()).cast()
}

/// # Safety
/// 1. The link stays where it is, and its set alive, until `Leave` has taken it out.
unsafe fn enter(link: *const Link) {
    current::with(|current| current.local.set(link.cast()));
}

/// Takes a link out of the chain, wherever it is by now.
struct Leave(*const Link);

impl Drop for Leave {
    fn drop(&mut self) {
        // SAFETY: whoever leaves owns its link.
        let outer = unsafe { &*self.0 }.outer.get();
        if ptr::eq(innermost(), self.0) {
            current::with(|current| current.local.set(outer.cast()));
            return;
        }
        let mut link = innermost();
        // SAFETY: links in the chain are alive.
        while let Some(inner) = unsafe { link.as_ref() } {
            if ptr::eq(inner.outer.get(), self.0) {
                inner.outer.set(outer);
                return;
            }
            link = inner.outer.get();
        }
    }
}
