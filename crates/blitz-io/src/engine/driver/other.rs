//! Where there is no epoll: kqueue on macOS and BSD, completion ports on Windows, event
//! ports on illumos and Solaris, through the `polling` crate.
//!
//! Not all of these know edges, so all are used in one shot: an event silences its
//! descriptor, and an operation that finds nothing any more asks for the next one. What each
//! is *armed* for is kept in a table, as in `poll.rs`, with the same order: disarmed before
//! the records are told.
//!
//! # Protocol
//! ```text
//! who waits                                 who clears readiness, or registers
//! W1 locks, writes that somebody waits      C1 clears the bit in the record
//! W2 waits in the system                    C2 locks, arms and asks the system, and signals
//! W3 locks, disarms what was told              if somebody is between W1 and W3
//! W4 tells the records
//! ```
//! The signal is for Windows. There the crate hands what is asked for to the thread that
//! waits if it finds one, or else leaves it to the next that will; and one that begins to
//! wait between this look and the leaving does not learn of it. With the signal its wait
//! ends, and the next one begins with what was left.
//!
//! Closed ends are told apart from data only where the crate does: hardly on Windows, not
//! with kqueue. There they are readable and writable, and the operation finds out.
//!
//! # Invariants
//! A descriptor in the table is open: its owner removes it before it is closed, under the
//! lock of the table.
//!
//! # Checked by
//! `driver/tests.rs`, on Linux too, where the crate uses epoll; under Wine by
//! `cargo xtask platforms --run`.

#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, RawFd as Raw};
#[cfg(windows)]
use std::os::windows::io::{AsRawSocket, BorrowedSocket, RawSocket as Raw};
use std::{collections::HashMap, io, num::NonZeroUsize, time::Duration};

use polling::{Event, PollMode, Poller};

use super::{
    Fd,
    backend::{Events, Found},
    interest::Interest,
    ready::Ready,
    sources::Token,
};
use crate::engine::prim::bolt::Bolted;

/// Events of a turn at the most: half a megabyte at 32 bytes each; picked, not measured.
const MOST: usize = 1 << 14;

/// What the system writes into.
pub(super) struct Buffer(polling::Events);

impl Buffer {
    pub(super) fn new(limit: usize) -> Self {
        // The room is made at once, so it is not what somebody says who means 'all'.
        let limit = NonZeroUsize::new(limit.min(MOST)).unwrap_or(NonZeroUsize::MIN);
        Self(polling::Events::with_capacity(limit))
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
    /// Somebody is between W1 and W3.
    waiting: bool,
    /// What the system refused to watch any longer: the next turn tells it, so that whoever
    /// waits for it tries, and learns why.
    refused: Vec<Found>,
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
        let key = table.free_key();
        match self.watch(fd, asked(key, wanted)) {
            // Left over by a registration that ended without its descriptor.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists && !table.has(raw(fd)) => {
                self.poller.delete(fd)?;
                self.watch(fd, asked(key, wanted))?;
            }
            answer => answer?,
        }
        table.keys.insert(token, key);
        table.entries.insert(key, Entry { raw: raw(fd), token, wanted, armed: wanted });
        self.hand_over(&table);
        Ok(())
    }

    fn watch(&self, fd: Fd<'_>, asked: Event) -> io::Result<()> {
        // SAFETY: the owner removes it before it is closed (the module's invariant).
        unsafe { self.poller.add_with_mode(raw(fd), asked, PollMode::Oneshot) }
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
        let Table { entries, keys, refused, .. } = &mut *table;
        let Some(key) = keys.get(&token).copied() else { return };
        let Some(entry) = entries.get_mut(&key) else { return };
        entry.armed |= ready & entry.wanted;
        if self.ask(key, entry).is_err() {
            refused.push(entry.give_up());
            self.signal();
        }
        self.hand_over(&table);
    }

    /// The second half of C2; see the module.
    fn hand_over(&self, table: &Table) {
        if cfg!(windows) && table.waiting {
            self.signal();
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
        let timeout = {
            let mut table = self.table.lock();
            table.waiting = true;
            if table.refused.is_empty() { timeout } else { Some(Duration::ZERO) }
        };
        // It begins again by itself when a signal interrupts it.
        let answer = self.poller.wait(buffer, timeout);
        let mut table = self.table.lock();
        table.waiting = false;
        answer?;
        let Table { entries, refused, .. } = &mut *table;
        for event in buffer.iter() {
            let Some(entry) = entries.get_mut(&event.key) else { continue };
            let ready = ready(&event);
            entry.armed = entry.armed - ready;
            events.found.push(Found { token: entry.token, ready });
            // The one shot is fired for both directions.
            if !entry.armed.is_empty() && self.ask(event.key, entry).is_err() {
                events.found.push(entry.give_up());
            }
        }
        events.found.append(refused);
        Ok(())
    }
}

impl std::fmt::Debug for Other {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Other").field("poller", &self.poller).finish_non_exhaustive()
    }
}

impl Entry {
    /// It is not watched any more: what an operation finds out is told to everybody.
    fn give_up(&mut self) -> Found {
        self.armed = Ready::EMPTY;
        let ready = Ready::ERROR | Ready::READABLE | Ready::WRITABLE;
        Found { token: self.token, ready }
    }
}

impl Table {
    /// A key that nobody has, and not the crate's own, which is the last.
    fn free_key(&mut self) -> usize {
        loop {
            let key = self.next;
            self.next = self.next.wrapping_add(1);
            if key != usize::MAX && !self.entries.contains_key(&key) {
                return key;
            }
        }
    }

    fn has(&self, raw: Raw) -> bool {
        self.entries.values().any(|entry| entry.raw == raw)
    }

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
