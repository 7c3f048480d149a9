//! The selector on `poll(2)`: the last resort, on any Unix.
//!
//! The system call keeps no state: each wait names every descriptor, and a ready descriptor ends
//! every wait until it has been read. So each entry has a set of events that it is *armed* for. An
//! event removes what it reports from the set, and an operation that would block puts it back. A
//! descriptor that is armed for nothing is not passed at all, because `poll` reports errors without
//! a request. Closed ends are armed from the beginning until they are reported, which happens once:
//! so a task that waits for readiness without reading learns of them too.
//!
//! # Protocol
//! ```text
//! the thread that waits                     a thread that clears readiness
//! W1 locks, copies what is armed            C1 clears the bit in the record
//! W2 waits in the kernel                    C2 locks, arms, and signals if a thread is in W2
//! W3 locks, disarms what was reported,
//!    counts the wait as ended
//! W4 notifies the records
//! ```
//! A bit that is clear in a record is armed, or will be, because W3 comes before W4. If C1 comes
//! before W4, then the bit had been set by another thread, and C2 arms what W4 reports, so it is
//! reported twice. If C1 comes after W4, C2 comes after W3.
//!
//! A wait in the kernel keeps the files of its descriptors open, and a copied number may belong to
//! another file by the time of the system call. So a removal returns only when the wait that may
//! have the descriptor is over, and a `close` that follows closes the file at once:
//! ```text
//! a thread that removes
//! R1 locks, removes the entry; if no thread is between W1 and W3: done
//! R2 notes how many waits have ended, and sets `awaited`
//! R3 signals as C2 does
//! R4 sleeps as long as that number is the same; W3 changes it, and wakes if R2 set `awaited`
//! ```
//! R1, R2 and W3 hold one lock, so W3 comes after R2 and sees `awaited`, and R4 sleeps on a word
//! that is unchanged, or is woken. A wait that begins later does not have the descriptor. From the
//! signal until W3 the waiting thread runs no user code, takes no lock but this one, and does not
//! sleep.
//!
//! # Rejected
//! Spinning until the wait is over: the other thread must first be woken and get a processor, which
//! may take long, perhaps on the only processor there is.
//!
//! # Checked by
//! `driver/tests.rs`, which runs all that a driver must do on each selector; and, with a kernel
//! made for models, `a_descriptor_is_closed_when_no_thread_waits_for_it`,
//! `two_removed_at_once_are_both_closed`, `a_refuted_end_is_armed_again`,
//! `an_event_against_a_read_that_would_block_is_not_lost`,
//! `an_event_of_a_closed_descriptor_does_not_reach_its_successor`,
//! `a_turn_goes_from_one_to_the_next_with_its_events`; weakened as `poll_remove_waits`,
//! `poll_remove_is_woken`, `poll_change_signals`, `poll_disarms_what_it_reports`.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, RawFd},
    time::{Duration, Instant},
};

use super::{
    Fd,
    backend::{Events, SelectorEvent},
    interest::Interest,
    poll_flags::{PollFlags, remaining},
    ready::Ready,
    record_table::Token,
};
use crate::engine::prim::{
    Ordering::{Acquire, Relaxed, Release},
    futex::Futex,
    store_lock::StoreLock,
    weakened,
};

#[cfg_attr(blitz_loom, allow(dead_code, reason = "models have a kernel of their own"))]
pub(super) mod kernel;
#[cfg(not(blitz_loom))]
use self::kernel::PollKernel;
#[cfg(blitz_loom)]
mod model;
#[cfg(blitz_loom)]
pub(crate) use self::model::PollKernel;

/// The `poll(2)` selector.
pub(super) struct Poll {
    table: StoreLock<PollTable>,
    /// The number of waits that have ended; changed under the lock.
    ended: Futex,
    kernel: PollKernel,
}

#[derive(Default)]
struct PollTable {
    entries: Vec<PollEntry>,
    /// The index in `entries` of each token.
    indices: HashMap<Token, usize>,
    /// Set while a thread waits in the kernel and has not been signalled since the last change.
    waiting: bool,
    /// Set while a thread is between W1 and W3.
    inside: bool,
    /// Set if a removal sleeps, or is about to sleep, until that thread has done W3.
    awaited: bool,
}

struct PollEntry {
    fd: RawFd,
    token: Token,
    wanted: Ready,
    armed: Ready,
}

/// The arguments of one wait: the descriptors, and the token of each.
#[derive(Default)]
pub(super) struct PollArgs {
    fds: Vec<libc::pollfd>,
    tokens: Vec<Token>,
}

impl PollArgs {
    fn push(&mut self, fd: RawFd, armed: Ready, token: Token) {
        self.fds.push(libc::pollfd { fd, events: events_of(armed), revents: 0 });
        self.tokens.push(token);
    }
}

/// The flag for a peer that has shut down its writing side, on systems that have one.
#[cfg(target_os = "linux")]
const END: libc::c_short = libc::POLLRDHUP;
#[cfg(not(target_os = "linux"))]
const END: libc::c_short = 0;

/// Returns the flags to request. A closed read half has a flag of its own (`Ready::READ_CLOSED`;
/// not `is_read_closed`, which other bits can satisfy), because it is waited for even while unread
/// data is pending. A closed write half is reported without a request.
fn events_of(armed: Ready) -> libc::c_short {
    let mut events = 0;
    if armed.meets(Ready::READABLE) {
        events |= libc::POLLIN;
    }
    if armed.meets(Ready::READ_CLOSED) {
        events |= END;
    }
    if armed.meets(Ready::WRITABLE) {
        events |= libc::POLLOUT;
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if armed.is_priority() {
        events |= libc::POLLPRI;
    }
    events
}

fn flags_of(revents: libc::c_short) -> PollFlags {
    PollFlags {
        input: revents & libc::POLLIN != 0,
        output: revents & libc::POLLOUT != 0,
        urgent: revents & libc::POLLPRI != 0,
        end: revents & END != 0,
        // POLLNVAL: the descriptor was closed before it was removed, so its users must get an
        // error.
        hung_up: revents & (libc::POLLHUP | libc::POLLNVAL) != 0,
        error: revents & (libc::POLLERR | libc::POLLNVAL) != 0,
    }
}

impl Poll {
    pub(super) fn new() -> io::Result<Self> {
        let (table, ended) = (StoreLock::new(PollTable::default()), Futex::new(0));
        Ok(Self { table, ended, kernel: PollKernel::new()? })
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        self.kernel.admit(fd)?;
        let (fd, wanted) = (fd.as_raw_fd(), interest.mask());
        self.change(|table| {
            if table.entries.iter().any(|entry| entry.fd == fd) {
                return Err(io::Error::from_raw_os_error(libc::EEXIST));
            }
            table.indices.insert(token, table.entries.len());
            table.entries.push(PollEntry { fd, token, wanted, armed: wanted });
            Ok(())
        })
    }

    /// Removes a descriptor, and waits until no wait in the kernel has it (R1 to R4).
    pub(super) fn remove(&self, _: Fd<'_>, token: Token) -> io::Result<()> {
        let ended = self.change(|table| {
            table.take_out(token);
            table.awaited |= table.inside;
            // Relaxed: changes only under the lock, which we hold.
            table.inside.then(|| self.ended.word().load(Relaxed))
        });
        if let Some(ended) = ended.filter(|_| !weakened!("poll_remove_waits")) {
            // Acquire: the kernel's work for that wait happened before. Pairs with the Release in
            // `end_wait`.
            while self.ended.word().load(Acquire) == ended {
                self.ended.wait(ended, None);
            }
        }
        Ok(())
    }

    pub(super) fn forget(&self, token: Token) {
        self.change(|table| table.take_out(token));
    }

    /// Arms a descriptor for what was just cleared (C2).
    pub(super) fn rearm(&self, token: Token, ready: Ready) {
        self.change(|table| {
            if let Some(entry) = table.entry(token) {
                entry.armed |= ready & entry.wanted;
            }
        });
    }

    /// Changes the table, and signals a waiting thread so that it reads the table again.
    fn change<R>(&self, change: impl FnOnce(&mut PollTable) -> R) -> R {
        let mut table = self.table.lock();
        let result = change(&mut table);
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        if waiting && !weakened!("poll_change_signals") {
            self.signal();
        }
        result
    }

    pub(super) fn signal(&self) {
        self.kernel.signal();
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let args = &mut events.poll;
        self.begin_wait(args, timeout != Some(Duration::ZERO));
        let begun = timeout.filter(|timeout| !timeout.is_zero()).map(|_| Instant::now());
        let mut time_left = timeout;
        let result = loop {
            match self.kernel.poll(&mut args.fds, time_left) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {
                    time_left = remaining(timeout, begun)
                }
                result => break result,
            }
        };
        self.end_wait(args, &mut events.found);
        result
    }

    /// Collects the armed descriptors (W1).
    fn begin_wait(&self, args: &mut PollArgs, waits: bool) {
        args.fds.clear();
        args.tokens.clear();
        args.push(self.kernel.wake_fd(), Ready::READABLE, Token::NUDGE);
        let mut table = self.table.lock();
        for entry in table.entries.iter().filter(|entry| !entry.armed.is_empty()) {
            args.push(entry.fd, entry.armed, entry.token);
        }
        table.waiting = waits;
        table.inside = true;
    }

    /// Disarms and collects what was reported, and ends the wait (W3).
    fn end_wait(&self, args: &PollArgs, found: &mut Vec<SelectorEvent>) {
        let mut table = self.table.lock();
        table.waiting = false;
        table.inside = false;
        // Release: the wait has released its descriptors. Pairs with the Acquire in `remove`.
        self.ended.word().fetch_add(1, Release);
        let revents = args.fds.iter().zip(&args.tokens).filter(|(fd, _)| fd.revents != 0);
        for (fd, token) in revents {
            if *token == Token::NUDGE {
                self.kernel.drain_signals();
            } else if let Some(entry) = table.entry(*token) {
                let ready = entry.disarm(fd.revents, &self.kernel);
                found.push(SelectorEvent { token: *token, ready });
            }
        }
        let awaited = std::mem::take(&mut table.awaited);
        drop(table);
        if awaited && !weakened!("poll_remove_is_woken") {
            self.ended.wake_all();
        }
    }
}

impl PollTable {
    fn entry(&mut self, token: Token) -> Option<&mut PollEntry> {
        let index = *self.indices.get(&token)?;
        self.entries.get_mut(index)
    }

    fn take_out(&mut self, token: Token) {
        let Some(index) = self.indices.remove(&token) else { return };
        self.entries.swap_remove(index);
        if let Some(moved) = self.entries.get(index) {
            self.indices.insert(moved.token, index);
        }
    }
}

impl PollEntry {
    /// Removes what was reported from the armed set; returns the readiness to report.
    fn disarm(&mut self, revents: libc::c_short, kernel: &PollKernel) -> Ready {
        let always = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        if revents & always != 0 {
            // The kernel would report these flags again and again, whatever is armed, so everything
            // else that is true now is reported with them.
            self.armed = Ready::EMPTY;
            return flags_of(revents | self.all_now(kernel)).ready();
        }
        // A closed end must be reported together with the data before it, which may be unrequested.
        let revents = if revents & END != 0 { revents | self.all_now(kernel) } else { revents };
        let ready = flags_of(revents).ready();
        if !weakened!("poll_disarms_what_it_reports") {
            self.armed = self.armed - ready;
        }
        if revents & END != 0 {
            self.armed = self.armed - Ready::READ_CLOSED;
        }
        ready
    }

    /// Returns every flag that is true now. The descriptor is open, because a removal waits for the
    /// lock.
    fn all_now(&self, kernel: &PollKernel) -> libc::c_short {
        let mut full = [libc::pollfd { fd: self.fd, events: events_of(self.wanted), revents: 0 }];
        match kernel.poll(&mut full, Some(Duration::ZERO)) {
            Ok(()) => full[0].revents,
            Err(_) => 0,
        }
    }
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poll").finish_non_exhaustive()
    }
}

#[cfg(all(test, blitz_loom))]
mod models;
