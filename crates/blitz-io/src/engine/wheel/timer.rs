//! The owner's side of a timer: a part of the future that waits.
//!
//! A timer is armed when it is polled for the first time, not before. (A timeout polls its future
//! first, so with a future that is ready it never polls a timer.) It is armed in the wheel of the
//! core that polls it. If it is reset on another core, it moves to the wheel of that one: it is
//! removed from the old wheel under its lock, and then inserted into the new one under that one's
//! lock. In between it is in no wheel, and only its owner knows it.
//!
//! # Protocol
//! ```text
//! the owner polls                           another thread fires, under the lock
//! P1 the state is IN, and the waker is      F1 takes the waker out of the entry
//!    a different one than before            F2 stores FIRED
//! P2 under the lock: still IN? stores the   F3 releases the lock, wakes
//!    new waker there. Not IN: it has fired,
//!    and the poll is ready
//! ```
//! If P2 comes before F1, the new waker is woken. If after, P2 sees FIRED: the wake-up went to the
//! old waker, and the task of the new one is polling now, and gets `Ready`.
//!
//! The check for a different waker needs no lock: the owner keeps the identity of the waker that is
//! in the entry. As long as that waker lives there, no other waker has the same identity.
//!
//! # Checked by
//! `engine/wheel/models.rs`, `engine/wheel/tests.rs`.

use std::{
    cell::Cell,
    fmt,
    pin::Pin,
    ptr::NonNull,
    task::{Poll, RawWakerVTable, Waker},
};

use super::{
    Timers, TimersRef,
    slots::Inserted,
    timer_entry::{TimerEntry, TimerEntryState},
};
use crate::engine::prim::{Arc, weakened};

/// The error of a timer after its runtime was shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimerShutdown;

/// The identity of a waker: its data and its vtable.
type Identity = (*const (), &'static RawWakerVTable);

fn identity(waker: &Waker) -> Identity {
    (waker.data(), waker.vtable())
}

/// A timer: the part of a future that waits for a deadline.
pub(crate) struct Timer {
    timers_ref: Arc<TimersRef>,
    /// The wheel in which the timer was armed last.
    wheel: Cell<usize>,
    /// The identity of the waker in the entry, while the entry is IN.
    known: Cell<Option<Identity>>,
    entry: TimerEntry,
}

// SAFETY: the fields besides the entry belong to the owner alone, and to no thread: the identity is
// only compared.
unsafe impl Send for Timer {}
// SAFETY: through a shared reference only the entry's state and the reference are read.
unsafe impl Sync for Timer {}

impl Timer {
    /// Creates a timer that is not armed.
    #[inline]
    pub(crate) fn new(timers_ref: Arc<TimersRef>) -> Self {
        Self { timers_ref, wheel: Cell::new(0), known: Cell::new(None), entry: TimerEntry::new() }
    }

    #[inline]
    pub(crate) fn timers(&self) -> &Timers {
        &self.timers_ref
    }

    /// Returns whether the timer has fired.
    #[inline]
    pub(crate) fn is_fired(&self) -> bool {
        self.entry.state() == TimerEntryState::Fired
    }

    /// Returns whether the next poll would arm the timer.
    #[inline]
    pub(crate) fn is_unarmed(&self) -> bool {
        self.entry.state() == TimerEntryState::Out
    }

    /// Marks the timer as fired, because the clock says that its deadline has passed, and wakes its
    /// task without waiting for the wheel.
    pub(crate) fn fire_now(self: Pin<&mut Self>) {
        let this = self.into_ref();
        let stays = weakened!("timer_fire_now_takes_out");
        let waker = if stays { None } else { this.take_out() };
        this.entry.settle_as(false);
        // The thread that took the entry out of the wheel wakes, and that may have been another
        // one.
        waker.into_iter().filter(|_| !weakened!("timer_fire_now_wakes")).for_each(Waker::wake);
    }

    /// Waits for the deadline, and arms the timer if it is not armed. `current_wheel` returns the
    /// wheel of the core that this thread holds, if it holds one of this runtime, and a guard that
    /// keeps the core here: no waker is cloned, called or dropped while the guard lives.
    #[inline]
    pub(crate) fn poll<K>(
        self: Pin<&mut Self>,
        waker: &Waker,
        deadline_ns: u64,
        current_wheel: impl FnOnce(&Timers) -> (Option<usize>, K),
    ) -> Poll<Result<(), TimerShutdown>> {
        let this = self.into_ref();
        match this.entry.state() {
            TimerEntryState::Out => {
                let (result, unused) = this.arm(waker.clone(), deadline_ns, current_wheel);
                drop(unused);
                result
            }
            TimerEntryState::In if this.known.get() == Some(identity(waker)) => Poll::Pending,
            TimerEntryState::In => this.poll_armed(waker),
            TimerEntryState::Fired => Poll::Ready(Ok(())),
            TimerEntryState::Ended => Poll::Ready(Err(TimerShutdown)),
        }
    }

    /// Changes the deadline. If the timer was armed, the task that waits for it is woken at the new
    /// deadline; if not, the timer is armed all the same, without a task to wake.
    pub(crate) fn reset<K>(
        self: Pin<&mut Self>,
        deadline_ns: u64,
        current_wheel: impl FnOnce(&Timers) -> (Option<usize>, K),
    ) {
        let this = self.into_ref();
        let waker = this.take_out();
        let waker = waker.filter(|_| !weakened!("timer_moves_its_waker"));
        let waker = waker.unwrap_or_else(|| Waker::noop().clone());
        let (_, unused) = this.arm(waker, deadline_ns, current_wheel);
        // The deadline has passed, or the wheel has ended, and the waiting task must see that.
        unused.into_iter().for_each(Waker::wake);
    }

    /// Disarms the timer; the next poll arms it again.
    #[inline]
    pub(crate) fn disarm(self: Pin<&mut Self>) {
        drop(self.into_ref().take_out());
    }

    fn entry(self: Pin<&Self>) -> Pin<&TimerEntry> {
        // SAFETY: the entry is pinned with the timer: nothing moves it out.
        unsafe { self.map_unchecked(|this| &this.entry) }
    }

    /// Inserts the entry, which is OUT, into the wheel of this thread. Returns the result of the
    /// poll, and the waker if it is not needed.
    fn arm<K>(
        self: Pin<&Self>,
        waker: Waker,
        deadline_ns: u64,
        current_wheel: impl FnOnce(&Timers) -> (Option<usize>, K),
    ) -> (Poll<Result<(), TimerShutdown>>, Option<Waker>) {
        let (current_wheel, _kept) = current_wheel(&self.timers_ref);
        let wheel = current_wheel.unwrap_or_else(|| self.timers_ref.outside());
        let node = NonNull::from(&self.entry);
        self.known.set(Some(identity(&waker)));
        self.wheel.set(wheel);
        // SAFETY: 1. the entry is OUT, so its shared part is ours. 2. The closure accesses nothing
        // else.
        unsafe { TimerEntry::shared(node, |shared| shared.waker = Some(waker)) };
        // SAFETY: 1. the entry is ours, OUT, and has a waker. 2. `take_out`, also called by `drop`,
        // removes it from the wheel that was noted.
        let inserted = unsafe {
            self.timers_ref.insert(wheel, current_wheel.is_some(), self.entry(), deadline_ns)
        };
        let result = match inserted {
            Inserted::Waits => return (Poll::Pending, None),
            Inserted::Due => Ok(()),
            Inserted::Ended => Err(TimerShutdown),
        };
        self.entry.settle_as(result.is_err());
        // SAFETY: 1. the entry is in no wheel, so its shared part is ours. 2. The closure accesses
        // nothing else.
        let unused = unsafe { TimerEntry::shared(node, |shared| shared.waker.take()) };
        (Poll::Ready(result), unused)
    }

    /// Performs P2: replaces the waker, unless the timer has fired.
    #[cold]
    fn poll_armed(self: Pin<&Self>, waker: &Waker) -> Poll<Result<(), TimerShutdown>> {
        let waker = waker.clone();
        self.known.set(Some(identity(&waker)));
        // SAFETY: 1. the entry is ours. 2. This is the wheel in which it was armed.
        let old = unsafe { self.timers_ref.renew(self.wheel.get(), self.entry(), waker) };
        drop(old);
        match self.entry.state() {
            TimerEntryState::Fired if !weakened!("timer_renew_checks_again") => Poll::Ready(Ok(())),
            TimerEntryState::Ended => Poll::Ready(Err(TimerShutdown)),
            _ => Poll::Pending,
        }
    }

    /// Removes the entry from its wheel, if it is in one, so that it is OUT. Returns its waker, for
    /// the caller to drop or use.
    #[inline]
    fn take_out(self: Pin<&Self>) -> Option<Waker> {
        let waker = match self.entry.state() {
            TimerEntryState::Out => return None,
            // SAFETY: 1. the entry is ours. 2. This is the wheel in which it was armed.
            TimerEntryState::In => unsafe {
                self.timers_ref.remove(self.wheel.get(), self.entry())
            },
            TimerEntryState::Fired | TimerEntryState::Ended => None,
        };
        self.entry.settle();
        waker
    }
}

impl Drop for Timer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the timer was pinned if it was ever armed, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        drop(this.take_out());
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("place", &self.entry.state()).finish_non_exhaustive()
    }
}
