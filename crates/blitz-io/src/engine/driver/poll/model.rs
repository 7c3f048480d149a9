//! The kernel of a model: descriptors are numbers, and the model says what they are ready
//! for. A time-out is over at once.
//!
//! It minds what the real one does not: that nobody closes a descriptor while somebody waits
//! for it, and that nobody waits for one that is closed.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, RawFd},
    time::Duration,
};

use super::Fd;
use crate::engine::prim::{Condvar, Mutex, lock};

/// The kernel's own descriptor; those of a model are small.
const HEARD: RawFd = 1_000;

/// Told whether one asks or not.
const ALWAYS: libc::c_short = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;

/// See the module.
pub(crate) struct Kernel {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What is open, and what it is ready for.
    signs: HashMap<RawFd, libc::c_short>,
    /// What somebody waits for just now.
    waited_for: Vec<RawFd>,
}

impl Kernel {
    pub(super) fn new() -> io::Result<Self> {
        let state = State { signs: HashMap::from([(HEARD, 0)]), waited_for: Vec::new() };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// It is open, and ready for that from now on.
    pub(crate) fn set(&self, fd: RawFd, signs: libc::c_short) {
        lock(&self.state).signs.insert(fd, signs);
        self.changed.notify_all();
    }

    pub(super) fn heard(&self) -> RawFd {
        HEARD
    }

    pub(super) fn signal(&self) {
        self.set(HEARD, libc::POLLIN);
    }

    pub(super) fn hear(&self) {
        self.set(HEARD, 0);
    }

    pub(super) fn admit(&self, fd: Fd<'_>) -> io::Result<()> {
        assert!(lock(&self.state).signs.contains_key(&fd.as_raw_fd()), "it is open");
        Ok(())
    }

    pub(super) fn poll(
        &self,
        fds: &mut [libc::pollfd],
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.waited_for = fds.iter().map(|asked| asked.fd).collect();
        loop {
            let mut any = false;
            for asked in &mut *fds {
                let signs = state.signs.get(&asked.fd).expect("what is waited for is open");
                asked.revents = signs & (asked.events | ALWAYS);
                any |= asked.revents != 0;
            }
            if any || timeout.is_some() {
                break;
            }
            state = self.changed.wait(state).unwrap();
        }
        state.waited_for.clear();
        Ok(())
    }
}

/// What happens to descriptors.
#[cfg(test)]
impl Kernel {
    /// Takes the input that is there.
    pub(crate) fn read(&self, fd: RawFd) -> io::Result<()> {
        let mut state = lock(&self.state);
        let signs = state.signs.get_mut(&fd).expect("what is read is open");
        if *signs & libc::POLLIN == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *signs &= !libc::POLLIN;
        Ok(())
    }

    pub(crate) fn close(&self, fd: RawFd) {
        let mut state = lock(&self.state);
        assert!(!state.waited_for.contains(&fd), "it was closed while somebody waits for it");
        state.signs.remove(&fd).expect("it is open");
    }
}
