//! A dropped child that its runtime's driver still watches.
//!
//! Whoever takes the driver's turn waits for it, in a task's place. Nobody else has it: the
//! waker that lies with the driver keeps it alive, and the child and its descriptor are taken
//! out by one at a time (`gate`). It ends with the child, or moves to the thread when the
//! driver ends.

#![forbid(unsafe_code)]

use std::{
    process::Child as StdChild,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use super::{pidfd::Pidfd, reaper};
use crate::engine::{
    driver::Direction,
    prim::{Mutex, lock},
    wait::gate::Gate,
};

struct Orphan {
    gate: Gate,
    /// Out while somebody looks after it, and for good when it has ended.
    kept: Mutex<Option<(StdChild, Pidfd)>>,
}

/// Leaves a child that runs to the driver.
pub(super) fn leave(child: StdChild, pidfd: Pidfd) {
    Arc::new(Orphan { gate: Gate::new(), kept: Mutex::new(Some((child, pidfd))) }).wake();
}

impl Wake for Orphan {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        self.gate.pass(|| self.look_after(&mut Context::from_waker(&waker)));
    }
}

impl Orphan {
    /// By one at a time. Puts it back if it goes on; a call that comes before that comes
    /// again, by the gate.
    fn look_after(&self, cx: &mut Context<'_>) {
        let kept = lock(&self.kept).take();
        let Some((mut child, pidfd)) = kept else { return };
        while let Poll::Ready(event) = pidfd.registration().poll_record(cx, Direction::Read) {
            // First: it may have ended before the driver did. An error says that somebody
            // else has waited for it.
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            if event.is_shutdown() {
                return reaper::adopt(child, Some(pidfd.into_fd()));
            }
            pidfd.registration().clear_readiness(event);
        }
        *lock(&self.kept) = Some((child, pidfd));
    }
}
