//! The part of `local`: the sets of local tasks that were entered on this thread.

use std::cell::Cell;

use super::{erased::Erased, with};

/// The key of a link in the chain of entered sets.
pub(crate) enum SetLinkKey {}

/// The words of `local` in the thread's context.
pub(super) struct LocalPart {
    /// The sets that were entered, innermost first.
    innermost: Cell<Erased<SetLinkKey>>,
}

impl LocalPart {
    pub(super) const fn new() -> Self {
        Self { innermost: Cell::new(Erased::null()) }
    }

    /// Returns true if this thread is inside a set.
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    pub(super) fn is_inside_set(&self) -> bool {
        !self.innermost.get().is_null()
    }
}

/// Returns the set that was entered last and not left, or null.
#[inline]
pub(crate) fn innermost() -> Erased<SetLinkKey> {
    with(|context| context.local.innermost.get())
}

/// Makes `link` the set that was entered last.
#[inline]
pub(crate) fn set_innermost(link: Erased<SetLinkKey>) {
    with(|context| context.local.innermost.set(link));
}
