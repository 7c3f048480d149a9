//! A kernel for models: descriptors are numbers, and the model sets what they are ready for. A wait
//! with a timeout returns at once.
//!
//! It checks what the real kernel does not: that no descriptor is closed while a thread waits for
//! it, and that no thread waits for a closed descriptor.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, RawFd},
    time::Duration,
};

use super::Fd;
use crate::engine::prim::{Condvar, Mutex, lock};

/// The kernel's own descriptor, by which a wait is ended; those of a model are small numbers.
const HEARD: RawFd = 1_000;

/// The flags that `poll` reports without a request.
const ALWAYS: libc::c_short = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;

/// The kernel of a model, with the same methods as the real one.
pub(crate) struct Kernel {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The open descriptors, and the flags that they are ready for.
    signs: HashMap<RawFd, libc::c_short>,
    /// The descriptors of the wait that is under way.
    waited_for: Vec<RawFd>,
}

impl Kernel {
    pub(super) fn new() -> io::Result<Self> {
        let state = State { signs: HashMap::from([(HEARD, 0)]), waited_for: Vec::new() };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Opens a descriptor if needed, and sets its flags.
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

/// The operations on descriptors that a model performs.
#[cfg(test)]
impl Kernel {
    /// Consumes the pending input.
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
