//! The selector for systems without epoll: kqueue on macOS and BSD, completion ports on Windows,
//! event ports on illumos and Solaris, through the `polling` crate.
//!
//! Not all of these support edge-triggered events, so all are used in one-shot mode: an event
//! disables its descriptor, and an operation that would block requests the next event. A table has
//! the events that each descriptor is *armed* for, as in `poll.rs`, with the same order: an entry
//! is disarmed before its record is notified.
//!
//! # Protocol
//! ```text
//! the thread that waits                     a thread that clears readiness, or registers
//! W1 locks, sets `waiting`                  C1 clears the bit in the record
//! W2 waits in the system                    C2 locks, arms and requests the event from the
//! W3 locks, disarms what was reported          system, and signals if another thread is
//! W4 notifies the records                      between W1 and W3
//! ```
//! The signal is for Windows. There the crate hands the request to the thread that waits if it
//! finds one, and otherwise queues it for the next wait; a thread that begins to wait between that
//! check and the queueing does not see the request. The signal ends its wait, and the next wait
//! begins with the queued requests.
//!
//! Closed ends are distinguished from data only where the crate does so: hardly on Windows, not
//! with kqueue. There a closed end is reported as readable and writable, and the operation finds
//! out.
//!
//! # Invariants
//! A descriptor in the table is open: its owner removes it before closing it, under the lock of the
//! table.
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
    backend::{Events, SelectorEvent},
    interest::Interest,
    ready::Ready,
    record_table::Token,
};
use crate::engine::prim::store_lock::StoreLock;

/// The maximum number of events in a turn: half a megabyte at 32 bytes each; picked, not measured.
const MOST: usize = 1 << 14;

/// The buffer that the system writes events into.
pub(super) struct Buffer(polling::Events);

impl Buffer {
    pub(super) fn new(limit: usize) -> Self {
        // The buffer is allocated at once, so a huge limit that means 'all' must be capped.
        let limit = NonZeroUsize::new(limit.min(MOST)).unwrap_or(NonZeroUsize::MIN);
        Self(polling::Events::with_capacity(limit))
    }
}

/// The selector of the `polling` crate.
pub(super) struct PollingSelector {
    poller: Poller,
    table: StoreLock<PollingTable>,
}

#[derive(Default)]
struct PollingTable {
    entries: HashMap<usize, PollingEntry>,
    /// The key by which the crate's `Poller` knows each token.
    keys: HashMap<Token, usize>,
    next: usize,
    /// Set while a thread is between W1 and W3.
    waiting: bool,
    /// Descriptors that the system refused to watch any longer. The next turn reports them as
    /// ready, so that their waiters try an operation and get the error.
    refused: Vec<SelectorEvent>,
}

struct PollingEntry {
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

/// Borrows a descriptor by its number.
///
/// # Safety
/// 1. The descriptor is open for as long as the returned value is used.
unsafe fn borrow<'a>(raw: Raw) -> Fd<'a> {
    // SAFETY: by obligation 1 the descriptor is open for as long as the returned value is used.
    #[cfg(unix)]
    return unsafe { BorrowedFd::borrow_raw(raw) };
    // SAFETY: by obligation 1 the socket is open for as long as the returned value is used.
    #[cfg(windows)]
    return unsafe { BorrowedSocket::borrow_raw(raw) };
}

fn polling_event(key: usize, armed: Ready) -> Event {
    Event::new(key, armed.is_readable(), armed.is_writable())
}

impl PollingSelector {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()?, table: StoreLock::new(PollingTable::default()) })
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        let mut wanted = interest.mask() & (Ready::READABLE | Ready::WRITABLE);
        if wanted.is_empty() {
            // Errors are reported with either direction; only reading is sure to be supported.
            wanted = Ready::READABLE;
        }
        let mut table = self.table.lock();
        let key = table.free_key();
        match self.watch(fd, polling_event(key, wanted)) {
            // A leftover of a registration that ended without removing its descriptor.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists && !table.has(raw(fd)) => {
                self.poller.delete(fd)?;
                self.watch(fd, polling_event(key, wanted))?;
            }
            result => result?,
        }
        table.keys.insert(token, key);
        table.entries.insert(key, PollingEntry { raw: raw(fd), token, wanted, armed: wanted });
        self.hand_over(&table);
        Ok(())
    }

    fn watch(&self, fd: Fd<'_>, polling_event: Event) -> io::Result<()> {
        // SAFETY: the owner removes the descriptor before it is closed (the module's invariant).
        unsafe { self.poller.add_with_mode(raw(fd), polling_event, PollMode::Oneshot) }
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
        let PollingTable { entries, keys, refused, .. } = &mut *table;
        let Some(key) = keys.get(&token).copied() else { return };
        let Some(entry) = entries.get_mut(&key) else { return };
        entry.armed |= ready & entry.wanted;
        if self.request(key, entry).is_err() {
            refused.push(entry.give_up());
            self.signal();
        }
        self.hand_over(&table);
    }

    /// Signals the waiting thread, so that it takes the new request (the end of C2).
    fn hand_over(&self, table: &PollingTable) {
        if cfg!(windows) && table.waiting {
            self.signal();
        }
    }

    fn request(&self, key: usize, entry: &PollingEntry) -> io::Result<()> {
        // SAFETY: 1. a descriptor in the table is open, and cannot be removed while we hold the
        // lock.
        let fd = unsafe { borrow(entry.raw) };
        self.poller.modify_with_mode(fd, polling_event(key, entry.armed), PollMode::Oneshot)
    }

    pub(super) fn signal(&self) {
        // This can fail only if the crate's `Poller` is broken, and then the wait fails too.
        let _ = self.poller.notify();
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let Buffer(buffer) = &mut events.polling;
        buffer.clear();
        let timeout = {
            let mut table = self.table.lock();
            table.waiting = true;
            if table.refused.is_empty() { timeout } else { Some(Duration::ZERO) }
        };
        // The crate restarts a wait that a signal interrupts.
        let result = self.poller.wait(buffer, timeout);
        let mut table = self.table.lock();
        table.waiting = false;
        result?;
        let PollingTable { entries, refused, .. } = &mut *table;
        for event in buffer.iter() {
            let Some(entry) = entries.get_mut(&event.key) else { continue };
            let ready = ready(&event);
            entry.armed = entry.armed - ready;
            events.found.push(SelectorEvent { token: entry.token, ready });
            // The one shot disabled both directions, so the other one must be requested again.
            if !entry.armed.is_empty() && self.request(event.key, entry).is_err() {
                events.found.push(entry.give_up());
            }
        }
        events.found.append(refused);
        Ok(())
    }
}

impl std::fmt::Debug for PollingSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PollingSelector").field("poller", &self.poller).finish_non_exhaustive()
    }
}

impl PollingEntry {
    /// Disarms the entry, which the system no longer watches, and reports it as ready for
    /// everything, so that operations get the error.
    fn give_up(&mut self) -> SelectorEvent {
        self.armed = Ready::EMPTY;
        let ready = Ready::ERROR | Ready::READABLE | Ready::WRITABLE;
        SelectorEvent { token: self.token, ready }
    }
}

impl PollingTable {
    /// Returns a key that is not in use and is not the last one, which the crate reserves for
    /// itself.
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

/// Converts an event. Not every system distinguishes closed ends from data; an operation finds out.
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
