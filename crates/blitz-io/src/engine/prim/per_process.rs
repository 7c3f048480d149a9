//! What there is one of in a process, and what a process that was forked makes anew.
//!
//! The child of a `fork` has a copy of everything but the other threads: a thread that is known
//! there is not there, and a lock may be held by one of those. So nothing of the parent's is
//! touched. What was made is leaked, once for each process.
//!
//! # Checked by
//! tests/preempt: `a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own`.

use std::ptr;

use super::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
    process::Process,
};

/// See the module.
pub(crate) struct PerProcess<T>(AtomicPtr<Made<T>>);

struct Made<T> {
    process: Process,
    value: T,
}

impl<T: Send + Sync + 'static> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// That of this process, which is made if there is none.
    pub(crate) fn get(&self, make: impl Fn() -> T) -> &'static T {
        let process = Process::this();
        // Acquire: what it was made of. Pairs with the AcqRel below.
        let mut known = self.0.load(Acquire);
        loop {
            // SAFETY: what was made is leaked, so what is known is there for ever.
            if let Some(made) = unsafe { known.as_ref() }
                && made.process == process
            {
                return &made.value;
            }
            let fresh = Box::into_raw(Box::new(Made { process, value: make() }));
            // AcqRel: publishes it, and sees one that came first. Pairs with itself.
            match self.0.compare_exchange(known, fresh, AcqRel, Acquire) {
                // SAFETY: as above.
                Ok(_) => return unsafe { &(*fresh).value },
                Err(other) => {
                    // SAFETY: nobody has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    known = other;
                }
            }
        }
    }
}
