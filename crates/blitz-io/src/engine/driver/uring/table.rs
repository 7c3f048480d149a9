//! The descriptors that the io_uring selector watches: which have polls, which need one, and which
//! polls must end.
//!
//! The whole table is protected by the selector's lock.
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
    backend::{Events, SelectorEvent},
    interest::Interest,
    poll::kernel::poll,
    poll_flags::PollFlags,
    record_table::Token,
};
use crate::engine::prim::{ThreadId, weakened};

/// The state of the io_uring selector, behind its lock.
#[derive(Default)]
pub(super) struct UringTable {
    watched: HashMap<Token, WatchedFd>,
    /// The watched descriptors; each is watched at most once, as with epoll.
    numbers: HashSet<RawFd>,
    /// Tokens that have no poll; some of them may no longer be watched.
    unarmed: VecDeque<Token>,
    /// Removed tokens for which a removal waits for the last completion of the poll.
    ending: Vec<Token>,
    armers: Armers,
    /// Events that were reported, kept for the thread that waits.
    kept: Vec<SelectorEvent>,
    /// Set while a thread sleeps, or is about to.
    waiting: bool,
    /// Set if that thread was called and has not returned: there is a completion that ends its
    /// sleep.
    called: bool,
    /// Set if this wait, or the next one, must end.
    pub(super) nudged: bool,
}

struct WatchedFd {
    fd: RawFd,
    /// The flags that would be requested from epoll.
    events: i32,
    /// Set if there is a poll, or a pushed SQE that will be one.
    armed: bool,
}

/// The set of threads that have ever submitted polls.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Armers {
    #[default]
    NoThread,
    One(ThreadId),
    Several,
}

/// The state of a token's poll at its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a poll has to be cancelled"]
pub(super) enum Removed {
    /// There was no poll.
    Unarmed,
    /// The poll belongs to the calling thread.
    Own,
    /// The poll may belong to another thread.
    Others,
}

/// The flags that are reported without a request. (A peer that writes no more is reported without a
/// request by a poll too, but not by epoll, so it is not included.)
const ALWAYS: i32 = libc::EPOLLERR | libc::EPOLLHUP;

/// The flags for which a completion takes the slow path.
const RARE: i32 = ALWAYS | URGENT | libc::EPOLLRDHUP;

/// The flags to request for urgent data. In the kernel 'urgent' alone does not wake a poll, so the
/// flags that come with it are requested too. A socket's wake-up says 'urgent' with every byte; the
/// other two flags show that this is the reason.
const URGENT: i32 = libc::EPOLLPRI | libc::EPOLLRDNORM | libc::EPOLLRDBAND;

fn epoll_events(interest: Interest) -> i32 {
    let mut events = 0;
    if interest.is_readable() {
        events |= libc::EPOLLIN | libc::EPOLLRDHUP;
    }
    if interest.is_writable() {
        events |= libc::EPOLLOUT;
    }
    if interest.is_priority() {
        events |= libc::EPOLLPRI;
    }
    events
}

fn flags_of(bits: i32) -> PollFlags {
    PollFlags {
        input: bits & libc::EPOLLIN != 0,
        output: bits & libc::EPOLLOUT != 0,
        urgent: bits & libc::EPOLLPRI != 0,
        end: bits & libc::EPOLLRDHUP != 0,
        hung_up: bits & libc::EPOLLHUP != 0,
        error: bits & libc::EPOLLERR != 0,
    }
}

impl UringTable {
    /// Adds a descriptor; returns false if it is watched already.
    pub(super) fn add(&mut self, fd: RawFd, token: Token, interest: Interest) -> bool {
        let fresh = self.numbers.insert(fd);
        if fresh {
            self.watched
                .insert(token, WatchedFd { fd, events: epoll_events(interest), armed: false });
            self.unarmed.push_back(token);
        }
        fresh
    }

    /// Forgets a token, and returns which thread's poll must be cancelled.
    pub(super) fn remove(&mut self, token: Token, caller: ThreadId) -> Removed {
        // The unarmed list may still name the token: `next_unarmed` does not find it here and skips
        // it.
        let Some(WatchedFd { fd, armed, .. }) = self.watched.remove(&token) else {
            return Removed::Unarmed;
        };
        self.numbers.remove(&fd);
        match self.armers {
            _ if !armed => Removed::Unarmed,
            Armers::One(armer) if armer == caller => Removed::Own,
            _ => Removed::Others,
        }
    }

    /// Records that a removal waits for the end of the token's poll.
    pub(super) fn begin_ending(&mut self, token: Token) {
        self.ending.push(token);
    }

    pub(super) fn is_ending(&self, token: Token) -> bool {
        self.ending.contains(&token)
    }

    /// Records that the poll has ended, or that the removal has stopped waiting for it.
    pub(super) fn finish_ending(&mut self, token: Token) {
        self.ending.retain(|other| *other != token);
    }

    /// Records that the waiting thread is awake (W1).
    pub(super) fn set_awake(&mut self) {
        (self.waiting, self.called) = (false, false);
    }

    /// Records that the waiting thread sleeps from now on (W3).
    pub(super) fn set_asleep(&mut self) {
        (self.waiting, self.called) = (true, false);
    }

    /// Returns true if a thread sleeps, or is about to, and has not been called; records the call
    /// (A2).
    #[must_use = "it has to be called"]
    pub(super) fn take_call(&mut self) -> bool {
        let is_due = self.waiting && !self.called && !weakened!("uring_calls");
        self.called |= self.waiting;
        is_due
    }

    /// Returns true if a thread other than the waiting one may reap (R3). It must not while a call
    /// is on its way, because the call's completion is meant to end the sleep, and cannot if it is
    /// gone.
    pub(super) fn may_be_reaped(&self) -> bool {
        !self.called || weakened!("uring_leaves_calls")
    }

    /// Records that a thread submits polls.
    pub(super) fn add_armer(&mut self, thread: ThreadId) {
        self.armers = match self.armers {
            Armers::NoThread => Armers::One(thread),
            Armers::One(other) if other == thread => Armers::One(other),
            _ => Armers::Several,
        };
    }

    /// Returns the next token that needs a poll, its descriptor and its flags; the caller must push
    /// the poll.
    pub(super) fn next_unarmed(&mut self) -> Option<(Token, RawFd, u32)> {
        loop {
            let token = self.unarmed.pop_front()?;
            if let Some(watched) = self.watched.get_mut(&token) {
                watched.armed = true;
                let urgent = if watched.events & libc::EPOLLPRI != 0 { URGENT } else { 0 };
                return Some((token, watched.fd, (watched.events | urgent) as u32));
            }
        }
    }

    /// Records that a token has lost its poll and needs a new one.
    pub(super) fn set_unarmed(&mut self, token: Token) {
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

    /// Returns true if the waiting thread has something to do: events to report, polls to push, or
    /// a wait to end.
    pub(super) fn has_work(&self) -> bool {
        if weakened!("uring_reaper_calls") {
            return false;
        }
        self.has_kept() || self.has_unarmed() || self.nudged
    }

    pub(super) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Moves kept events to `events`, up to the limit of a turn.
    pub(super) fn hand_out(&mut self, events: &mut Events) {
        let count = self.kept.len().min(events.limit);
        events.found.extend(self.kept.drain(..count));
    }

    /// Returns all tokens that have a poll.
    pub(super) fn armed(&self) -> Vec<Token> {
        let armed = self.watched.iter().filter(|(_, watched)| watched.armed);
        armed.map(|(token, _)| *token).collect()
    }

    /// Handles a completion.
    #[inline]
    pub(super) fn complete(&mut self, token: Token, result: i32, more: bool) {
        if more && result & RARE == 0 {
            self.kept.push(SelectorEvent { token, ready: flags_of(result).ready() });
        } else {
            self.complete_rare(token, result, more);
        }
    }

    /// Handles a completion that is the last of its poll, has a rare flag, or is an error, which is
    /// negative and so has all the higher bits set.
    #[cold]
    fn complete_rare(&mut self, token: Token, result: i32, more: bool) {
        let Some(watched) = self.watched.get(&token) else {
            if !more {
                // A removal waits for it, or it was a call, or its registration has ended.
                self.finish_ending(token);
            }
            return;
        };
        let bits = match -result {
            ..=0 => watched.all_flags(result),
            // The poll was cancelled, because its thread has exited or by `renew`.
            libc::ECANCELED | libc::ENOENT => 0,
            // There will be memory later, if not at once, so the turn ends here.
            libc::ENOMEM | libc::EAGAIN => {
                self.nudged = true;
                0
            }
            // The descriptor was closed before it was removed, or cannot be polled: its users must
            // get an error, and the poll is not restarted.
            _ => {
                let ready = flags_of(ALWAYS).ready();
                return self.kept.push(SelectorEvent { token, ready });
            }
        };
        if !more {
            self.set_unarmed(token);
        }
        if bits != 0 {
            self.kept.push(SelectorEvent { token, ready: flags_of(bits).ready() });
        }
    }
}

impl WatchedFd {
    /// Returns all flags that epoll would report, for a wake-up that reported a rare one.
    fn all_flags(&self, bits: i32) -> i32 {
        let unsure = libc::EPOLLPRI | ALWAYS;
        let now = if bits & unsure != 0 { self.all_now() } else { 0 };
        ((bits & !libc::EPOLLPRI) | now) & (self.events | ALWAYS)
    }

    /// Returns the flags that are true now. The descriptor is open, because `remove` waits for the
    /// lock.
    fn all_now(&self) -> i32 {
        let mut all = [libc::pollfd { fd: self.fd, events: self.events as i16, revents: 0 }];
        match poll(&mut all, Some(Duration::ZERO)) {
            Ok(()) => all[0].revents.into(),
            Err(_) => 0,
        }
    }
}
