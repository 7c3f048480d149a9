//! Where there is no epoll: kqueue on macOS and BSD, completion ports on Windows, event
//! ports on illumos and Solaris, through the `polling` crate.
//!
//! Not all of these know edges, so all are used in one shot: an event silences its
//! descriptor, and an operation that finds nothing any more asks for the next one. What each
//! is *armed* for is kept in a table, as in `poll.rs`, with the same order: disarmed before
//! the records are told.
//!
//! # Invariants
//! A descriptor in the table is open: its owner removes it before it is closed, under the
//! lock of the table.

#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, RawFd as Raw};
#[cfg(windows)]
use std::os::windows::io::{AsRawSocket, BorrowedSocket, RawSocket as Raw};
use std::{collections::HashMap, io, time::Duration};

use polling::{Event, PollMode, Poller};

use super::{
    Fd,
    backend::{Events, Found},
    interest::Interest,
    ready::Ready,
    sources::Token,
};
use crate::engine::prim::bolt::Bolted;

/// What the system writes into.
pub(super) struct Buffer(polling::Events);

impl Buffer {
    pub(super) fn new() -> Self {
        Self(polling::Events::new())
    }
}

/// See the module.
pub(super) struct Other {
    poller: Poller,
    table: Bolted<Table>,
}

#[derive(Default)]
struct Table {
    entries: HashMap<usize, Entry>,
    /// By which key the poller knows it.
    keys: HashMap<Token, usize>,
    next: usize,
}

struct Entry {
    raw: Raw,
    token: Token,
    wanted: Ready,
    armed: Ready,
}

#[cfg(unix)]
fn raw(fd: Fd<'_>) -> Raw {
    fd.as_raw_fd()
}

#[cfg(windows)]
fn raw(fd: Fd<'_>) -> Raw {
    fd.as_raw_socket()
}

/// # Safety
/// 1. The descriptor is open for as long as the answer is used.
unsafe fn borrow<'a>(raw: Raw) -> Fd<'a> {
    // SAFETY: 1.
    #[cfg(unix)]
    return unsafe { BorrowedFd::borrow_raw(raw) };
    // SAFETY: 1.
    #[cfg(windows)]
    return unsafe { BorrowedSocket::borrow_raw(raw) };
}

fn asked(key: usize, armed: Ready) -> Event {
    Event::new(key, armed.is_readable(), armed.is_writable())
}

impl Other {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()?, table: Bolted::new(Table::default()) })
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        let mut wanted = interest.mask() & (Ready::READABLE | Ready::WRITABLE);
        if wanted.is_empty() {
            // Errors come with either; only reading is sure to be possible.
            wanted = Ready::READABLE;
        }
        let mut table = self.table.lock();
        let key = table.next;
        // SAFETY: the owner removes it before it is closed (the module's invariant).
        unsafe {
            self.poller.add_with_mode(raw(fd), asked(key, wanted), PollMode::Oneshot)?;
        }
        table.next += 1;
        table.keys.insert(token, key);
        table.entries.insert(key, Entry { raw: raw(fd), token, wanted, armed: wanted });
        Ok(())
    }

    pub(super) fn remove(&self, fd: Fd<'_>, token: Token) -> io::Result<()> {
        let mut table = self.table.lock();
        table.take(token);
        self.poller.delete(fd)
    }

    pub(super) fn forget(&self, token: Token) {
        self.table.lock().take(token);
    }

    pub(super) fn rearm(&self, token: Token, ready: Ready) {
        let mut table = self.table.lock();
        let Some(key) = table.keys.get(&token).copied() else { return };
        if let Some(entry) = table.entries.get_mut(&key) {
            entry.armed |= ready & entry.wanted;
            // It was asked for before, so there is no reason to refuse it; were it refused,
            // the next operation would say why.
            let _ = self.ask(key, entry);
        }
    }

    fn ask(&self, key: usize, entry: &Entry) -> io::Result<()> {
        // SAFETY: 1. an entry of the table is open, and we have the lock.
        let fd = unsafe { borrow(entry.raw) };
        self.poller.modify_with_mode(fd, asked(key, entry.armed), PollMode::Oneshot)
    }

    pub(super) fn signal(&self) {
        // It can fail only if the poller is broken, and then so does the wait.
        let _ = self.poller.notify();
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let Buffer(buffer) = &mut events.other;
        buffer.clear();
        match self.poller.wait(buffer, timeout) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => return Ok(()),
            answer => drop(answer?),
        }
        let mut table = self.table.lock();
        for event in buffer.iter() {
            let Some(entry) = table.entries.get_mut(&event.key) else { continue };
            let ready = ready(&event);
            entry.armed = entry.armed - ready;
            // The one shot is fired for both directions.
            if !entry.armed.is_empty() {
                self.ask(event.key, entry)?;
            }
            events.found.push(Found { token: entry.token, ready });
        }
        Ok(())
    }
}

impl std::fmt::Debug for Other {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Other").field("poller", &self.poller).finish_non_exhaustive()
    }
}

impl Table {
    fn take(&mut self, token: Token) {
        if let Some(key) = self.keys.remove(&token) {
            self.entries.remove(&key);
        }
    }
}

/// Ends are not told apart from data everywhere; an operation finds out.
fn ready(event: &Event) -> Ready {
    let mut ready = Ready::EMPTY;
    if event.readable {
        ready |= Ready::READABLE;
    }
    if event.writable {
        ready |= Ready::WRITABLE;
    }
    if event.is_interrupt() {
        ready |= Ready::READ_CLOSED | Ready::WRITE_CLOSED;
    }
    if event.is_err() == Some(true) {
        ready |= Ready::ERROR | Ready::READABLE | Ready::WRITABLE;
    }
    ready
}
