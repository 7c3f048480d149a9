//! Decides what happens to the bytes of a write if its job is dropped before it ran.
//!
//! Files and standard streams write on a blocking thread, and report bytes as accepted as soon as
//! they are handed over. If the runtime shuts down, or no thread can be started, the job is dropped
//! by some thread, at the same time as the caller may be about to report. The lock decides which of
//! the two was first:
//!
//! ```text
//!            the caller                        the thread that drops the job
//! OFFERED  --accept--> ACCEPTED  --it writes the bytes itself--> WRITTEN
//! OFFERED  ----------------------refuse----> REFUSED: the caller returns an error
//! ```
//! So bytes that were reported as accepted are written, and bytes that were not are not.
//!
//! # Checked by
//! `bytes_are_written_if_and_only_if_they_were_accepted`.

#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of one write, shared by the caller and the job. `T` is what a job that was
/// dropped leaves when it has written the bytes.
#[derive(Debug)]
pub(crate) struct WriteState<T>(Mutex<WritePhase<T>>);

#[derive(Debug)]
enum WritePhase<T> {
    Offered,
    Refused,
    Accepted,
    Written(T),
}

impl<T> WriteState<T> {
    /// Creates the state of a write that is offered.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(WritePhase::Offered))
    }

    /// Accepts the write, so that its bytes are written in any case from now on. Returns false if
    /// the job was dropped before.
    #[must_use]
    pub(crate) fn accept(&self) -> bool {
        let mut phase = self.lock();
        let accepted = !matches!(*phase, WritePhase::Refused);
        if accepted {
            *phase = WritePhase::Accepted;
        }
        accepted
    }

    /// Refuses the write because its job is dropped, unless it was accepted. Returns true if it is
    /// refused. `undo` is called before the caller can see that, under the lock, so it may take a
    /// system call's time but must not wait for the caller.
    #[must_use = "bytes that were accepted must be written"]
    pub(crate) fn refuse(&self, undo: impl FnOnce()) -> bool {
        let mut phase = self.lock();
        let refused = matches!(*phase, WritePhase::Offered);
        if refused {
            *phase = WritePhase::Refused;
            undo();
        }
        refused
    }

    /// Leaves the result of accepted bytes that the thread which drops the job has written.
    pub(crate) fn finish(&self, result: T) {
        *self.lock() = WritePhase::Written(result);
    }

    /// Takes the result that a dropped job has left.
    pub(crate) fn take(&self) -> Option<T> {
        match std::mem::replace(&mut *self.lock(), WritePhase::Accepted) {
            WritePhase::Written(result) => Some(result),
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, WritePhase<T>> {
        // A panic leaves the phase as it was before or after one step, so it is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::WriteState;

    /// A caller accepts while another thread drops the job; which one is first is left to chance.
    /// The other tests have a fixed order.
    #[test]
    fn bytes_are_written_if_and_only_if_they_were_accepted() {
        for _ in 0..1_000 {
            let (state, begin) = (Arc::new(WriteState::new()), Arc::new(Barrier::new(2)));
            let (job, at_once) = (state.clone(), begin.clone());
            let dropping = std::thread::spawn(move || {
                at_once.wait();
                if !job.refuse(|| ()) {
                    job.finish(7);
                }
            });
            begin.wait();
            let accepted = state.accept();
            dropping.join().unwrap();
            assert_eq!(state.take(), accepted.then_some(7));
        }
    }

    #[test]
    fn a_refused_write_is_undone_and_an_accepted_one_is_not() {
        let (state, mut undone) = (WriteState::<u8>::new(), 0);
        assert!(state.refuse(|| undone += 1));
        assert!(!state.accept());
        let state = WriteState::<u8>::new();
        assert!(state.accept());
        assert!(!state.refuse(|| undone += 1));
        assert_eq!((undone, state.take()), (1, None));
        state.finish(7);
        assert_eq!(state.take(), Some(7));
    }
}
