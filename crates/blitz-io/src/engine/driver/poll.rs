//! `poll(2)`: the last resort, on any Unix.
//!
//! It has no memory: each wait names every descriptor, and a descriptor that is ready ends
//! every wait until somebody has read it. So each has a set of what it is *armed* for. An
//! event takes what it tells out of the set, and an operation that finds it no more puts it
//! back. A descriptor that is armed for nothing is not named at all, because `poll` tells
//! errors whether one asks or not. Closed ends are armed from the beginning until they are
//! told, which is once: who asks what a socket is ready for, and reads nothing, learns of
//! them.
//!
//! # Protocol
//! ```text
//! who waits                                 who clears readiness
//! W1 locks, copies what is armed            C1 clears the bit in the record
//! W2 waits in the kernel                    C2 locks, arms, and signals if somebody is in W2
//! W3 locks, disarms what was told
//! W4 tells the records
//! ```
//! A bit that is clear in a record is armed, or will be: W3 comes before W4. If C1 comes
//! before W4, then the bit was set by somebody else, and C2 arms what W4 tells: it is told
//! twice. If after, C2 is after W3.
//!
//! A wait in the kernel keeps its descriptors open, so `remove` signals too, and returns when
//! that wait is over: what is closed next is closed at once.
//!
//! # Checked by
//! `driver/tests.rs`, which runs all that a driver must do on each mechanism.

use std::{
    collections::HashMap,
    fs::{File, FileType},
    io::{self, Read, Write},
    mem::ManuallyDrop,
    os::{
        fd::{AsRawFd, FromRawFd, RawFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use super::{
    Fd,
    backend::{Events, Found, Signs, rest},
    interest::Interest,
    ready::Ready,
    sources::Token,
};
use crate::engine::prim::{bolt::Bolted, thread};

/// See the module.
pub(super) struct Poll {
    table: Bolted<Table>,
    /// A byte that is written here ends a wait.
    bell: UnixStream,
    /// And comes out here.
    heard: UnixStream,
}

#[derive(Default)]
struct Table {
    entries: Vec<Entry>,
    /// Where in `entries`.
    places: HashMap<Token, usize>,
    /// Somebody waits in the kernel who does not know of a change.
    waiting: bool,
    /// Somebody is between W1 and W3.
    inside: bool,
    /// How many waits have ended.
    ended: u64,
}

struct Entry {
    fd: RawFd,
    token: Token,
    wanted: Ready,
    armed: Ready,
}

/// What a wait asks for, and for whom.
#[derive(Default)]
pub(super) struct Asked {
    fds: Vec<libc::pollfd>,
    tokens: Vec<Token>,
}

impl Asked {
    fn push(&mut self, fd: RawFd, armed: Ready, token: Token) {
        self.fds.push(libc::pollfd { fd, events: events_of(armed), revents: 0 });
        self.tokens.push(token);
    }
}

/// What a descriptor is. No copy of it is made, because there may be no number left for one:
/// whoever has accepted a socket with the last one must be able to use it.
pub(super) fn kind_of(fd: Fd<'_>) -> io::Result<FileType> {
    // SAFETY: the descriptor is open as long as it is borrowed, and this never closes it.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd.as_raw_fd()) });
    Ok(file.metadata()?.file_type())
}

/// The end of the other side, where it is told apart.
#[cfg(target_os = "linux")]
const END: libc::c_short = libc::POLLRDHUP;
#[cfg(not(target_os = "linux"))]
const END: libc::c_short = 0;

/// A closed end has a bit of its own (`Ready::READ_CLOSED`; not `is_read_closed`, which other
/// bits may answer), because it is waited for also while data is there that nobody reads.
/// That the other direction is closed is told unasked.
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

fn signs(told: libc::c_short) -> Signs {
    Signs {
        input: told & libc::POLLIN != 0,
        output: told & libc::POLLOUT != 0,
        urgent: told & libc::POLLPRI != 0,
        end: told & END != 0,
        // A descriptor that was closed before it was removed: who uses it is told.
        hung_up: told & (libc::POLLHUP | libc::POLLNVAL) != 0,
        error: told & (libc::POLLERR | libc::POLLNVAL) != 0,
    }
}

impl Poll {
    pub(super) fn new() -> io::Result<Self> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Self { table: Bolted::new(Table::default()), bell, heard })
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        // `poll` takes files and says that they are ready. Others refuse them, and so do we.
        let kind = kind_of(fd)?;
        if kind.is_file() || kind.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let (fd, wanted) = (fd.as_raw_fd(), interest.mask());
        self.change(|table| {
            if table.entries.iter().any(|entry| entry.fd == fd) {
                return Err(io::Error::from_raw_os_error(libc::EEXIST));
            }
            table.places.insert(token, table.entries.len());
            table.entries.push(Entry { fd, token, wanted, armed: wanted });
            Ok(())
        })
    }

    pub(super) fn remove(&self, _: Fd<'_>, token: Token) -> io::Result<()> {
        // Who waits calls nobody before W3, so this is a matter of microseconds. A wait that
        // begins later does not have the descriptor, and nobody waits for its end.
        if let Some(ended) = self.take_out(token) {
            while self.table.lock().ended == ended {
                thread::yield_now();
            }
        }
        Ok(())
    }

    pub(super) fn forget(&self, token: Token) {
        self.take_out(token);
    }

    /// If a wait is under way that may have it, and was told to end: how many ended before.
    fn take_out(&self, token: Token) -> Option<u64> {
        self.change(|table| {
            let place = table.places.remove(&token)?;
            table.entries.swap_remove(place);
            if let Some(moved) = table.entries.get(place) {
                table.places.insert(moved.token, place);
            }
            table.inside.then_some(table.ended)
        })
    }

    /// C2.
    pub(super) fn rearm(&self, token: Token, ready: Ready) {
        self.change(|table| {
            if let Some(entry) = table.entry(token) {
                entry.armed |= ready & entry.wanted;
            }
        });
    }

    /// Changes the table, and sees that who waits looks at it again.
    fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        let mut table = self.table.lock();
        let result = change(&mut table);
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        if waiting {
            self.signal();
        }
        result
    }

    pub(super) fn signal(&self) {
        // A full buffer ends the wait as well.
        let _ = (&self.bell).write(&[1]);
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        let asked = &mut events.poll;
        self.ask(asked, timeout != Some(Duration::ZERO));
        let begun = timeout.filter(|timeout| !timeout.is_zero()).map(|_| Instant::now());
        let mut left = timeout;
        let answer = loop {
            match poll(&mut asked.fds, left) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => left = rest(timeout, begun),
                answer => break answer,
            }
        };
        self.answer(asked, &mut events.found);
        answer
    }

    /// W1.
    fn ask(&self, asked: &mut Asked, waits: bool) {
        asked.fds.clear();
        asked.tokens.clear();
        asked.push(self.heard.as_raw_fd(), Ready::READABLE, Token::NUDGE);
        let mut table = self.table.lock();
        for entry in table.entries.iter().filter(|entry| !entry.armed.is_empty()) {
            asked.push(entry.fd, entry.armed, entry.token);
        }
        table.waiting = waits;
        table.inside = true;
    }

    /// W3.
    fn answer(&self, asked: &Asked, found: &mut Vec<Found>) {
        let mut table = self.table.lock();
        table.waiting = false;
        table.inside = false;
        table.ended += 1;
        let told = asked.fds.iter().zip(&asked.tokens).filter(|(fd, _)| fd.revents != 0);
        for (fd, token) in told {
            if *token == Token::NUDGE {
                self.hear();
            } else if let Some(entry) = table.entry(*token) {
                let ready = entry.disarm(fd.revents);
                found.push(Found { token: *token, ready });
            }
        }
    }

    /// Takes the bytes of all signals.
    fn hear(&self) {
        let mut bytes = [0; 64];
        while (&self.heard).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

impl Table {
    fn entry(&mut self, token: Token) -> Option<&mut Entry> {
        let place = *self.places.get(&token)?;
        self.entries.get_mut(place)
    }
}

impl Entry {
    /// Takes out what was told; answers with what it is ready for.
    fn disarm(&mut self, told: libc::c_short) -> Ready {
        let always = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        if told & always != 0 {
            // It would be told again and again whatever it is armed for, so what else there
            // is to tell is told now.
            self.armed = Ready::EMPTY;
            return signs(told | self.all_now()).ready();
        }
        // An end alone says nothing without the data before it, which may be there unasked.
        let told = if told & END != 0 { told | self.all_now() } else { told };
        let ready = signs(told).ready();
        self.armed = self.armed - ready;
        if told & END != 0 {
            self.armed = self.armed - Ready::READ_CLOSED;
        }
        ready
    }

    /// All that could be told now. The descriptor is open: `remove` waits for the lock.
    fn all_now(&self) -> libc::c_short {
        let mut full = [libc::pollfd { fd: self.fd, events: events_of(self.wanted), revents: 0 }];
        match poll(&mut full, Some(Duration::ZERO)) {
            Ok(()) => full[0].revents,
            Err(_) => 0,
        }
    }
}

/// Waits until one of them is ready, with as exact a time as the system can.
#[cfg(target_os = "linux")]
pub(super) fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice is as long as we say and is ours during the call; the time is null,
    // or a local that outlives the call. No signal mask is given.
    let answer = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until one of them is ready, in milliseconds.
#[cfg(not(target_os = "linux"))]
pub(super) fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map_or(-1, super::backend::rounded_up);
    // SAFETY: the slice is as long as we say and is ours during the call.
    let answer = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poll").finish_non_exhaustive()
    }
}
