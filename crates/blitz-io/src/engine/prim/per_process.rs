//! A value that exists once per process and is created anew in a forked child.
//!
//! The child of a `fork` has a copy of all memory but only the thread that forked: a thread
//! recorded in that memory does not run in the child, and a lock may be held by such a thread for
//! ever. So the child never touches the parent's value. Each value is leaked, once per process.
//!
//! # Checked by
//! tests/preempt: `a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own`.

use std::ptr;

use super::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
    process::ProcessIdentity,
};

/// A value that is created once per process, and again in a forked child.
pub(crate) struct PerProcess<T>(AtomicPtr<ProcessValue<T>>);

struct ProcessValue<T> {
    process: ProcessIdentity,
    value: T,
}

impl<T: Send + Sync + 'static> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns the value of this process, creating it with `make` if there is none.
    pub(crate) fn get(&self, make: impl Fn() -> T) -> &'static T {
        let process = ProcessIdentity::current();
        // Acquire: sees the contents of the value. Pairs with the AcqRel below.
        let mut known = self.0.load(Acquire);
        loop {
            // SAFETY: a published value is leaked, so the pointer is null or valid for ever.
            if let Some(existing) = unsafe { known.as_ref() }
                && existing.process == process
            {
                return &existing.value;
            }
            let fresh = Box::into_raw(Box::new(ProcessValue { process, value: make() }));
            // AcqRel: publishes the fresh value, and sees the contents of one that was published
            // first. Pairs with itself.
            match self.0.compare_exchange(known, fresh, AcqRel, Acquire) {
                // SAFETY: the exchange published `fresh`, and published values are leaked, so it
                // stays valid.
                Ok(_) => return unsafe { &(*fresh).value },
                Err(other) => {
                    // SAFETY: `fresh` came from `Box::into_raw` above, and the failed exchange
                    // did not publish it, so no other thread has the pointer.
                    drop(unsafe { Box::from_raw(fresh) });
                    known = other;
                }
            }
        }
    }
}
