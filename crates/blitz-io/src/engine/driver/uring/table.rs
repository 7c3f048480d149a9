//! What a ring watches: which polls there are, which have to begin, and which to end.
//!
//! All of it is under the ring's lock.
//!
//! # Checked by
//! The models of `uring.rs`; weakened as `uring_calls`, `uring_reaper_calls`.

#![forbid(unsafe_code)]

use std::{
    collections::{HashMap, HashSet, VecDeque},
    os::fd::RawFd,
    time::Duration,
};

use super::super::{
    backend::{Events, Found},
    interest::Interest,
    poll::kernel::poll,
    signs::Signs,
    sources::Token,
};
use crate::engine::prim::{ThreadId, weakened};

/// See the module.
#[derive(Default)]
pub(super) struct Table {
    watched: HashMap<Token, Watched>,
    /// Their numbers: each is watched once, as with epoll.
    numbers: HashSet<RawFd>,
    /// Have no poll; and some that are watched no more.
    unarmed: VecDeque<Token>,
    /// Were removed, and somebody waits for the last completion of their polls.
    ending: Vec<Token>,
    armers: Armers,
    /// What was told, for who waits.
    kept: Vec<Found>,
    /// Somebody sleeps, or is about to, who does not know of a change.
    pub(super) waiting: bool,
    /// The wait has to end, or the next one.
    pub(super) nudged: bool,
}

struct Watched {
    fd: RawFd,
    /// What epoll would be asked for.
    asked: i32,
    /// There is a poll, or an entry that will be one.
    armed: bool,
}

/// Which threads have submitted polls, ever.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Armers {
    #[default]
    Nobody,
    One(ThreadId),
    Several,
}

/// What has become of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a poll has to be cancelled"]
pub(super) enum Removed {
    /// It had no poll.
    Unarmed,
    /// The calling thread has its poll.
    Own,
    /// Another thread may have it.
    Others,
}

/// What is told whether one asks or not, except that the peer writes no more: that is told
/// unasked here, and not by epoll.
const ALWAYS: i32 = libc::EPOLLERR | libc::EPOLLHUP;

/// A completion that says any of this is looked at twice.
const RARE: i32 = ALWAYS | URGENT | libc::EPOLLRDHUP;

/// The kernel does not let 'urgent' alone wake a poll, so one asks for what comes with it. A
/// socket's waker says 'urgent' with every byte; the other two say that this is the reason.
const URGENT: i32 = libc::EPOLLPRI | libc::EPOLLRDNORM | libc::EPOLLRDBAND;

fn asked_for(interest: Interest) -> i32 {
    let mut asked = 0;
    if interest.is_readable() {
        asked |= libc::EPOLLIN | libc::EPOLLRDHUP;
    }
    if interest.is_writable() {
        asked |= libc::EPOLLOUT;
    }
    if interest.is_priority() {
        asked |= libc::EPOLLPRI;
    }
    asked
}

fn signs(told: i32) -> Signs {
    Signs {
        input: told & libc::EPOLLIN != 0,
        output: told & libc::EPOLLOUT != 0,
        urgent: told & libc::EPOLLPRI != 0,
        end: told & libc::EPOLLRDHUP != 0,
        hung_up: told & libc::EPOLLHUP != 0,
        error: told & libc::EPOLLERR != 0,
    }
}

impl Table {
    /// `false` if the descriptor is watched already.
    pub(super) fn add(&mut self, fd: RawFd, token: Token, interest: Interest) -> bool {
        let fresh = self.numbers.insert(fd);
        if fresh {
            self.watched.insert(token, Watched { fd, asked: asked_for(interest), armed: false });
            self.unarmed.push_back(token);
        }
        fresh
    }

    /// Forgets it, and says whose poll has to be cancelled.
    pub(super) fn remove(&mut self, token: Token, caller: ThreadId) -> Removed {
        // The list of the unarmed may name it: who arms does not find it here.
        let Some(Watched { fd, armed, .. }) = self.watched.remove(&token) else {
            return Removed::Unarmed;
        };
        self.numbers.remove(&fd);
        match self.armers {
            _ if !armed => Removed::Unarmed,
            Armers::One(armer) if armer == caller => Removed::Own,
            _ => Removed::Others,
        }
    }

    /// Somebody waits for the end of its poll.
    pub(super) fn ends(&mut self, token: Token) {
        self.ending.push(token);
    }

    pub(super) fn is_ending(&self, token: Token) -> bool {
        self.ending.contains(&token)
    }

    /// It has ended, or nobody waits for that any more.
    pub(super) fn ended(&mut self, token: Token) {
        self.ending.retain(|other| *other != token);
    }

    /// A2: whether somebody sleeps, or is about to, whom nobody has called.
    #[must_use = "it has to be called"]
    pub(super) fn takes_call(&mut self) -> bool {
        std::mem::take(&mut self.waiting) && !weakened!("uring_calls")
    }

    /// The thread submits polls.
    pub(super) fn is_armed_by(&mut self, thread: ThreadId) {
        self.armers = match self.armers {
            Armers::Nobody => Armers::One(thread),
            Armers::One(other) if other == thread => Armers::One(other),
            _ => Armers::Several,
        };
    }

    /// The next that needs a poll, which the caller pushes: its descriptor, and the events.
    pub(super) fn next_unarmed(&mut self) -> Option<(Token, RawFd, u32)> {
        loop {
            let token = self.unarmed.pop_front()?;
            if let Some(watched) = self.watched.get_mut(&token) {
                watched.armed = true;
                let urgent = if watched.asked & libc::EPOLLPRI != 0 { URGENT } else { 0 };
                return Some((token, watched.fd, (watched.asked | urgent) as u32));
            }
        }
    }

    /// It has no poll, and needs one.
    pub(super) fn is_unarmed(&mut self, token: Token) {
        if let Some(watched) = self.watched.get_mut(&token)
            && watched.armed
        {
            watched.armed = false;
            self.unarmed.push_back(token);
        }
    }

    pub(super) fn has_unarmed(&self) -> bool {
        !self.unarmed.is_empty()
    }

    /// Whether who waits has something to do: to tell, to arm, or to end.
    pub(super) fn has_work(&self) -> bool {
        if weakened!("uring_reaper_calls") {
            return false;
        }
        self.has_kept() || self.has_unarmed() || self.nudged
    }

    pub(super) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// As many as a turn takes.
    pub(super) fn hand_out(&mut self, events: &mut Events) {
        let count = self.kept.len().min(events.limit);
        events.found.extend(self.kept.drain(..count));
    }

    /// All that have a poll.
    pub(super) fn armed(&self) -> Vec<Token> {
        let armed = self.watched.iter().filter(|(_, watched)| watched.armed);
        armed.map(|(token, _)| *token).collect()
    }

    /// What a completion says.
    #[inline]
    pub(super) fn told(&mut self, token: Token, result: i32, more: bool) {
        if more && result & RARE == 0 {
            self.kept.push(Found { token, ready: signs(result).ready() });
        } else {
            self.told_more(token, result, more);
        }
    }

    /// One that is the last of its poll, says something rare, or is an error: those have all
    /// the higher bits.
    #[cold]
    fn told_more(&mut self, token: Token, result: i32, more: bool) {
        let Some(watched) = self.watched.get(&token) else {
            if !more {
                // A removal waits for it, or it was a call, or of a registration that is over.
                self.ended(token);
            }
            return;
        };
        let told = match -result {
            ..=0 => watched.all_told(result),
            // It was cancelled: its thread has ended, or `renew`.
            libc::ECANCELED | libc::ENOENT => 0,
            // There will be memory, if not at once: this ends the turn.
            libc::ENOMEM | libc::EAGAIN => {
                self.nudged = true;
                0
            }
            // The descriptor was closed before it was removed, or cannot be polled: who uses
            // it is told, and there is no poll again.
            _ => {
                let ready = signs(ALWAYS).ready();
                return self.kept.push(Found { token, ready });
            }
        };
        if !more {
            self.is_unarmed(token);
        }
        if told != 0 {
            self.kept.push(Found { token, ready: signs(told).ready() });
        }
    }
}

impl Watched {
    /// All that epoll would say, where a waker said something rare.
    fn all_told(&self, told: i32) -> i32 {
        let unsure = libc::EPOLLPRI | ALWAYS;
        let now = if told & unsure != 0 { self.all_now() } else { 0 };
        ((told & !libc::EPOLLPRI) | now) & (self.asked | ALWAYS)
    }

    /// What is true now. The descriptor is open: `remove` waits for the lock.
    fn all_now(&self) -> i32 {
        let mut all = [libc::pollfd { fd: self.fd, events: self.asked as i16, revents: 0 }];
        match poll(&mut all, Some(Duration::ZERO)) {
            Ok(()) => all[0].revents.into(),
            Err(_) => 0,
        }
    }
}
