//! Tracks which set of local tasks the code on this thread belongs to.
//!
//! The sets that were entered form a chain, innermost first. A guard may outlive what was entered
//! before or after it, and guards may be dropped in any order: the guard's link is removed from the
//! middle of the chain, and the current set is the one that was entered last and not left yet. A
//! guard that is leaked stays in the chain together with the set that it owns, so nothing dangles.

use std::{cell::Cell, marker::PhantomData, ptr};

use super::Local;
use crate::engine::work::thread_context::{
    erased::{Erased, ErasedKey},
    local::{self, SetLinkKey},
};

/// One entered set, and the link to the set that was entered before it.
pub(crate) struct SetLink {
    set: *const Local,
    outer: Cell<*const SetLink>,
}

impl ErasedKey for SetLinkKey {
    type Target = SetLink;
}

/// Returns the set that was entered last on this thread.
pub(crate) fn entered() -> Option<Local> {
    let link = innermost();
    // SAFETY: links are removed from the chain before they are dropped, and a set outlives its
    // links, because a guard owns its set and `within` borrows it.
    unsafe { link.as_ref().map(|link| Local::clone(&*link.set)) }
}

/// Calls `f` inside the set.
pub(super) fn within<R>(set: &Local, f: impl FnOnce() -> R) -> R {
    let link = SetLink { set, outer: Cell::new(innermost()) };
    // SAFETY: obligation 1 of `enter`: `UnlinkOnDrop` removes the link before this frame ends, and
    // the frame keeps `set` borrowed.
    unsafe { enter(&raw const link) };
    let _unlink = UnlinkOnDrop(&raw const link);
    f()
}

/// Guard that keeps this thread inside a set until it is dropped.
pub(crate) struct EnteredSet {
    link: *const SetLink,
    /// Makes the guard `!Send`, because its link is in a chain of this thread.
    _not_send: PhantomData<*const ()>,
}

impl EnteredSet {
    /// Enters the set on this thread.
    pub(crate) fn new(set: &Local) -> Self {
        let set = Box::into_raw(Box::new(set.clone()));
        let link = Box::into_raw(Box::new(SetLink { set, outer: Cell::new(innermost()) }));
        // SAFETY: obligation 1 of `enter`: `drop` removes the link before the link and the set are
        // freed.
        unsafe { enter(link) };
        Self { link, _not_send: PhantomData }
    }
}

impl Drop for EnteredSet {
    fn drop(&mut self) {
        drop(UnlinkOnDrop(self.link));
        // SAFETY: `new` made both pointers with `Box::into_raw`, and the link is out of the chain.
        let set = unsafe {
            let link = Box::from_raw(self.link.cast_mut());
            Box::from_raw(link.set.cast_mut())
        };
        drop(set);
    }
}

/// Returns the innermost link of this thread, or null.
fn innermost() -> *const SetLink {
    local::innermost().get()
}

/// Puts a link in front of the chain of this thread.
///
/// # Safety
/// 1. The link stays where it is, and its set alive, until `UnlinkOnDrop` has removed it.
unsafe fn enter(link: *const SetLink) {
    local::set_innermost(Erased::new(link));
}

/// Guard that removes a link from the chain, wherever it is by now.
struct UnlinkOnDrop(*const SetLink);

impl Drop for UnlinkOnDrop {
    fn drop(&mut self) {
        // SAFETY: the owner of the link creates `UnlinkOnDrop` and frees the link only after this,
        // so it is alive.
        let outer = unsafe { &*self.0 }.outer.get();
        if ptr::eq(innermost(), self.0) {
            local::set_innermost(Erased::new(outer));
            return;
        }
        let mut link = innermost();
        // SAFETY: links in the chain are alive, because they are removed before they are freed.
        while let Some(inner) = unsafe { link.as_ref() } {
            if ptr::eq(inner.outer.get(), self.0) {
                inner.outer.set(outer);
                return;
            }
            link = inner.outer.get();
        }
    }
}
