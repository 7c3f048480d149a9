//! Which version there is, and who waits for the next one.
//!
//! # Protocol
//! The word holds the version, a bit CLOSED, and a bit for each of a few lines: that
//! it is not empty. Every version is one addition to the word, whose answer tells who
//! waits: with nobody waiting, that is all.
//!
//! ```text
//! who publishes                             who waits, having seen version v
//! P1 adds a version to the word             W1 reads the word: not v, or CLOSED: done
//! P2 no line has its bit set: done          W2 locks a line
//! P3 locks each line that has               W3 sets its bit by an exchange that finds v
//! P4 dismisses those whose version is       W4 joins the line, saying v
//!    before the one it published
//! P5 the line is empty: clears its bit
//! ```
//! P1 and W3 change the same word, so one comes first. If P1, W3 does not find v. If
//! W3, P1 finds the bit, and P3 waits for the lock until W4 is done. If the bit is set
//! already at W3, it was set under that lock, or P5 would have cleared it: a version
//! added before that is seen by W3, and one added after finds the bit.
//!
//! Closing is as publishing, with the bit CLOSED for a version, and P4 dismisses all.
//!
//! Who waits chooses its line by the thread it is on, so that workers which wait at
//! the same time do so behind different locks.
//!
//! # Invariants
//! - A line has its bit set exactly if it is not empty, whenever its lock is free; the
//!   bit changes only under the lock.
//! - Versions in a line never fall back, so the first one that has seen what was
//!   published ends P4. So whoever comes again while a long line is served is left to
//!   who publishes next: P4 is as long as the line was, however quickly others publish.
//!
//! # Rejected
//! - One line: each worker would wait for the lock under which the sender dismisses.
//! - A version apart from the bits: publishing would need a fence between writing the
//!   one and reading the other, which costs as much as the addition.
//!
//! # Checked by
//! `publish_against_change_is_never_missed`,
//! `a_second_waiter_against_a_publish_is_never_missed`, `close_against_change_ends`,
//! `a_change_dropped_against_a_publish_leaves_no_mark`,
//! `two_publishes_against_change_show_the_last`,
//! `waiters_in_two_lines_are_all_woken`, `a_round_serves_those_who_waited_before_it`,
//! `a_full_batch_against_a_drop_wakes_the_rest`; weakened as
//! `watch_join_looks_again`, `watch_publish_wakes`, `watch_close_wakes`,
//! `watch_join_sees_closed`, `watch_leave_clears`, `watch_round_goes_on`,
//! `watch_every_line`. Versions that wrap: `versions_wrap`.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::error::RecvError;
use crate::{
    channel::standing::{spare_for, stand},
    engine::{
        prim::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
            bolt::{Bolted, Opened},
            thread_number, weakened,
        },
        wait::{
            batch::Batch,
            line::{Line, Place, Waiter},
        },
        work::{
            current,
            task::{budget, moment::Wait},
        },
    },
};

/// How many lines. Eight: Tokio's figure, not measured here. Two in a model.
const LINES: usize = if cfg!(blitz_loom) { 2 } else { 8 };

const CLOSED: u64 = 1;
const WAITING: u64 = ((1 << LINES) - 1) << 1;
const STEP: u64 = 1 << (LINES + 1);

/// The number of a value; it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u64);

impl Version {
    /// The one before.
    pub(super) fn before(self) -> Self {
        Self(self.0.wrapping_sub(STEP))
    }
}

/// The word, at some moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct State(u64);

impl State {
    #[inline]
    pub(super) fn version(self) -> Version {
        Version(self.0 & !(STEP - 1))
    }

    #[inline]
    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Whether one in line who has seen `version` has been waiting for this.
    #[inline]
    fn is_news_for(self, version: Version) -> bool {
        self.version().0.wrapping_sub(version.0).cast_signed() > 0 || self.is_closed()
    }
}

/// What remains to be done after a version was published: call [`Lines::wake`], after
/// the value was let go.
#[must_use]
pub(super) struct Duty(u64);

/// See the module.
pub(super) struct Lines {
    word: AtomicU64,
    lines: [Bolted<Line<Version>>; LINES],
}

/// The bit of a line.
#[inline]
fn bit(at: usize) -> u64 {
    2 << at
}

impl Lines {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        Self::starting_at(0)
    }

    /// `versions` have been published.
    pub(super) fn starting_at(versions: u64) -> Self {
        let lines = std::array::from_fn(|_| Bolted::new(Line::new()));
        Self { word: AtomicU64::new(versions.wrapping_mul(STEP)), lines }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        // Acquire: who sees a version, or CLOSED, sees what was done before. Pairs with
        // the AcqRel in `publish` and `close`.
        State(self.word.load(Acquire))
    }

    /// P1, while the value is locked for writing.
    #[inline]
    pub(super) fn publish(&self) -> Duty {
        // Release: pairs with the Acquire in `state`. Of those who wait the lock of their
        // line tells.
        Duty(self.word.fetch_add(STEP, Release))
    }

    /// P2 to P5.
    #[inline]
    pub(super) fn wake(&self, duty: Duty) {
        if duty.0 & WAITING != 0 && !weakened!("watch_publish_wakes") {
            self.wake_lines(duty.0, State(duty.0.wrapping_add(STEP)));
        }
    }

    /// The last sender has gone.
    pub(super) fn close(&self) {
        // Release: as in `publish`; pairs with the Acquire in `state`.
        let before = self.word.fetch_or(CLOSED, Release);
        if !weakened!("watch_close_wakes") {
            self.wake_lines(before, State(before | CLOSED));
        }
    }

    /// P3 to P5 for the lines that have a bit in `marked`, with what was published.
    #[cold]
    fn wake_lines(&self, marked: u64, news: State) {
        let mut batch = Batch::new();
        for at in (0..LINES).filter(|at| marked & bit(*at) != 0) {
            while !self.wake_line(at, news, &mut batch) {
                batch.wake_all();
                if weakened!("watch_round_goes_on") {
                    break;
                }
            }
            if weakened!("watch_every_line") {
                break;
            }
        }
        batch.wake_all();
    }

    /// Locks a line.
    #[inline]
    fn line(&self, at: usize) -> Opened<'_, Line<Version>> {
        self.lines[at].lock()
    }

    /// P3 to P5; `false` if the batch was full before the end.
    fn wake_line(&self, at: usize, news: State, batch: &mut Batch) -> bool {
        let mut line = self.line(at);
        while let Some(seen) = line.first() {
            if !news.is_news_for(*seen) {
                return true;
            }
            if batch.is_full() {
                return false;
            }
            batch.push(line.dismiss_first());
        }
        self.clear_if_empty(at, &line);
        true
    }

    /// P5, under the lock of the line.
    fn clear_if_empty(&self, at: usize, line: &Line<Version>) {
        if line.is_empty() {
            // Relaxed: the bit says only whether the lock is worth taking, and an exchange
            // keeps what others published.
            self.word.fetch_and(!bit(at), Relaxed);
        }
    }

    /// W2 and W3: the line, marked, if there is nothing new yet.
    fn enter(&self, at: usize, seen: Version) -> Option<Opened<'_, Line<Version>>> {
        let line = self.line(at);
        // Relaxed: a guess, or under the mark as good as an exchange (the protocol).
        let mut now = self.word.load(Relaxed);
        loop {
            let closed = State(now).is_closed() && !weakened!("watch_join_sees_closed");
            let changed = State(now).version() != seen && !weakened!("watch_join_looks_again");
            if closed || changed {
                return None;
            }
            if now & bit(at) != 0 {
                return Some(line);
            }
            // Relaxed: who finds the bit locks the line next. The value is not looked at.
            match self.word.compare_exchange_weak(now, now | bit(at), Relaxed, Relaxed) {
                Ok(_) => return Some(line),
                Err(found) => now = found,
            }
        }
    }

    /// Which line a thread waits in.
    #[inline]
    fn mine() -> usize {
        thread_number() % LINES
    }

    #[cfg(test)]
    pub(super) fn is_waited_for(&self) -> bool {
        self.word.load(Relaxed) & WAITING != 0
    }
}

#[cfg(test)]
impl AsRef<Lines> for Lines {
    fn as_ref(&self) -> &Lines {
        self
    }
}

/// Waits for another version than the one that was seen, and marks it as seen.
///
/// `W` is what the lines are a part of.
pub(super) struct Change<'a, W: AsRef<Lines>> {
    whole: &'a W,
    seen: &'a mut Version,
    /// The line it is in, if it is in one.
    at: usize,
    waiter: Waiter<Version>,
}

impl<'a, W: AsRef<Lines>> Change<'a, W> {
    #[inline]
    pub(super) fn new(whole: &'a W, seen: &'a mut Version) -> Self {
        let waiter = Waiter::new(*seen);
        Self { whole, seen, at: 0, waiter }
    }

    /// W1: `None` if there is nothing new.
    #[inline]
    fn look(&mut self) -> Option<Result<(), RecvError>> {
        let now = self.whole.as_ref().state();
        if now.version() != *self.seen {
            *self.seen = now.version();
            return Some(Ok(()));
        }
        now.is_closed().then_some(Err(RecvError(())))
    }

    /// W2 to W4; `false` if there is something new after all.
    #[cold]
    fn wait(&mut self, cx: &Context<'_>, at: impl FnOnce() -> usize) -> bool {
        let mut spare = spare_for(&self.waiter, cx.waker());
        if self.waiter.place() != Place::In {
            self.at = at();
        }
        let lines = self.whole.as_ref();
        loop {
            let Some(mut line) = lines.enter(self.at, *self.seen) else { return false };
            // SAFETY: the future is pinned, as `poll` is told, and nothing moves the waiter.
            let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
            // SAFETY: 1. we own it, and `Drop` removes it. 2. `at` changes only while it
            // is in none.
            if unsafe { stand(&mut line, waiter, *self.seen, cx.waker(), &mut spare) } {
                return true;
            }
            lines.clear_if_empty(self.at, &line);
            drop(line);
            spare = Some(cx.waker().clone());
        }
    }

    /// As `poll`, with the line to wait in.
    #[inline]
    pub(super) fn poll_at(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        at: impl Fn() -> usize,
    ) -> Poll<Result<(), RecvError>> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let unit = ready!(budget::proceed(cx));
        loop {
            if let Some(outcome) = this.look() {
                unit.spend();
                return Poll::Ready(outcome);
            }
            if this.wait(cx, &at) {
                current::waits_for(Wait::Message);
                return Poll::Pending;
            }
        }
    }

    /// Leaves the line.
    #[cold]
    fn leave(&mut self) {
        let lines = self.whole.as_ref();
        let mut line = lines.line(self.at);
        // SAFETY: it was pinned if it was ever polled, and is not moved from here on.
        let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
        // SAFETY: 1. we own the waiter. 2. This is the line it joined.
        let waker = unsafe { line.remove(waiter) };
        if !weakened!("watch_leave_clears") {
            lines.clear_if_empty(self.at, &line);
        }
        drop(line);
        // Last: dropping it is a user's code.
        drop(waker);
    }
}

impl<W: AsRef<Lines>> Future for Change<'_, W> {
    type Output = Result<(), RecvError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_at(cx, Lines::mine)
    }
}

impl<W: AsRef<Lines>> Drop for Change<'_, W> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.place() == Place::In {
            self.leave();
        }
    }
}
