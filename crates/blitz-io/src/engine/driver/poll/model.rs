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
const WAKE_FD: RawFd = 1_000;

/// The flags that `poll` reports without a request.
const ALWAYS: libc::c_short = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;

/// The kernel of a model, with the same methods as the real one.
pub(crate) struct PollKernel {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The open descriptors, and the flags that they are ready for.
    flags: HashMap<RawFd, libc::c_short>,
    /// The descriptors of the wait that is under way.
    waited_for: Vec<RawFd>,
}

impl PollKernel {
    pub(super) fn new() -> io::Result<Self> {
        let state = State { flags: HashMap::from([(WAKE_FD, 0)]), waited_for: Vec::new() };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Opens a descriptor if needed, and sets its flags.
    pub(crate) fn set(&self, fd: RawFd, flags: libc::c_short) {
        lock(&self.state).flags.insert(fd, flags);
        self.changed.notify_all();
    }

    pub(super) fn wake_fd(&self) -> RawFd {
        WAKE_FD
    }

    pub(super) fn signal(&self) {
        self.set(WAKE_FD, libc::POLLIN);
    }

    pub(super) fn drain_signals(&self) {
        self.set(WAKE_FD, 0);
    }

    pub(super) fn admit(&self, fd: Fd<'_>) -> io::Result<()> {
        assert!(lock(&self.state).flags.contains_key(&fd.as_raw_fd()), "it is open");
        Ok(())
    }

    pub(super) fn poll(
        &self,
        fds: &mut [libc::pollfd],
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.waited_for = fds.iter().map(|polled| polled.fd).collect();
        loop {
            let mut any = false;
            for polled in &mut *fds {
                let flags = state.flags.get(&polled.fd).expect("what is waited for is open");
                polled.revents = flags & (polled.events | ALWAYS);
                any |= polled.revents != 0;
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
impl PollKernel {
    /// Consumes the pending input.
    pub(crate) fn read(&self, fd: RawFd) -> io::Result<()> {
        let mut state = lock(&self.state);
        let flags = state.flags.get_mut(&fd).expect("what is read is open");
        if *flags & libc::POLLIN == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *flags &= !libc::POLLIN;
        Ok(())
    }

    pub(crate) fn close(&self, fd: RawFd) {
        let mut state = lock(&self.state);
        assert!(!state.waited_for.contains(&fd), "it was closed while a thread waits for it");
        state.flags.remove(&fd).expect("it is open");
    }
}
