//! The owner's side of a timer: a part of the future that waits.
//!
//! It is armed when it is polled for the first time, not before: a timeout whose future is
//! ready never touches a wheel. It is armed in the wheel of the core that polls it. If it is
//! reset on another core it moves to the wheel of that one: taken out of the one under its
//! lock, then put into the other under that one's. In between it is in none, and nobody but
//! its owner knows it.
//!
//! # Protocol
//! ```text
//! the owner polls                           somebody fires, under the lock
//! P1 the place is IN, and the waker is      F1 takes the waker out of the entry
//!    another than before                    F2 stores FIRED
//! P2 under the lock: still IN? puts the     F3 lets the lock go, wakes
//!    new waker there. Not IN: it has fired,
//!    and the poll is ready
//! ```
//! If P2 comes before F1, the new waker is woken. If after, P2 sees FIRED: the wake-up went
//! to the old waker, and the new one's task is here, and ready.
//!
//! That the waker is another one is seen without the lock: the owner keeps what identifies
//! the one that is in the entry. As long as that one lives there, nobody else has its
//! address.
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
    Seat, Timers,
    entry::{Entry, Place},
    slots::Inserted,
};
use crate::engine::prim::{Arc, weakened};

/// The runtime's timers were shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

/// What identifies a waker.
type Identity = (*const (), &'static RawWakerVTable);

fn identity(waker: &Waker) -> Identity {
    (waker.data(), waker.vtable())
}

/// See the module.
pub(crate) struct Timer {
    seat: Arc<Seat>,
    /// The wheel that it was armed in last.
    wheel: Cell<usize>,
    /// Of the waker in the entry, while that is IN.
    known: Cell<Option<Identity>>,
    entry: Entry,
}

// SAFETY: what it has besides an entry is its owner's alone, and belongs to no thread: the
// identity is only compared.
unsafe impl Send for Timer {}
// SAFETY: through a shared reference only the entry's place and the seat are read.
unsafe impl Sync for Timer {}

impl Timer {
    /// A timer that is not armed.
    #[inline]
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self { seat, wheel: Cell::new(0), known: Cell::new(None), entry: Entry::new() }
    }

    #[inline]
    pub(crate) fn timers(&self) -> &Timers {
        &self.seat
    }

    /// Whether its time has come, as far as somebody has looked.
    #[inline]
    pub(crate) fn is_fired(&self) -> bool {
        self.entry.place() == Place::Fired
    }

    /// Whether the next poll would arm it.
    #[inline]
    pub(crate) fn is_unarmed(&self) -> bool {
        self.entry.place() == Place::Out
    }

    /// Its time has come, as the clock says: who waits for it is woken, without the wheel.
    pub(crate) fn fire_now(self: Pin<&mut Self>) {
        let this = self.into_ref();
        let stays = weakened!("timer_fire_now_takes_out");
        let waker = if stays { None } else { this.take_out() };
        this.entry.settle_as(false);
        // Whoever took it out of the wheel wakes, and that may have been another.
        waker.into_iter().filter(|_| !weakened!("timer_fire_now_wakes")).for_each(Waker::wake);
    }

    /// Waits for its deadline; arms it if it is not armed. `here` answers with the wheel of the
    /// core that this thread holds, if it holds one of this runtime, and with what keeps the core
    /// here: no waker is cloned, called or dropped while that lives.
    #[inline]
    pub(crate) fn poll<K>(
        self: Pin<&mut Self>,
        waker: &Waker,
        deadline_ns: u64,
        here: impl FnOnce(&Timers) -> (Option<usize>, K),
    ) -> Poll<Result<(), Ended>> {
        let this = self.into_ref();
        match this.entry.place() {
            Place::Out => {
                let (answer, back) = this.arm(waker.clone(), deadline_ns, here);
                drop(back);
                answer
            }
            Place::In if this.known.get() == Some(identity(waker)) => Poll::Pending,
            Place::In => this.go_on(waker),
            Place::Fired => Poll::Ready(Ok(())),
            Place::Ended => Poll::Ready(Err(Ended)),
        }
    }

    /// Waits for another deadline from now on. If it was armed, whoever waits for it is
    /// woken then; if not, it is armed all the same, and nobody is.
    pub(crate) fn reset<K>(
        self: Pin<&mut Self>,
        deadline_ns: u64,
        here: impl FnOnce(&Timers) -> (Option<usize>, K),
    ) {
        let this = self.into_ref();
        let waker = this.take_out();
        let waker = waker.filter(|_| !weakened!("timer_moves_its_waker"));
        let waker = waker.unwrap_or_else(|| Waker::noop().clone());
        let (_, back) = this.arm(waker, deadline_ns, here);
        // Its time has come, or the wheel has ended: who waits for it is to see that.
        back.into_iter().for_each(Waker::wake);
    }

    /// Waits for nothing; the next poll arms it anew.
    #[inline]
    pub(crate) fn disarm(self: Pin<&mut Self>) {
        drop(self.into_ref().take_out());
    }

    fn entry(self: Pin<&Self>) -> Pin<&Entry> {
        // SAFETY: the entry is pinned with the timer: nothing moves it out.
        unsafe { self.map_unchecked(|this| &this.entry) }
    }

    /// Puts the entry, which is OUT, into the wheel of this thread. With the answer comes
    /// the waker, if it is not needed.
    fn arm<K>(
        self: Pin<&Self>,
        waker: Waker,
        deadline_ns: u64,
        here: impl FnOnce(&Timers) -> (Option<usize>, K),
    ) -> (Poll<Result<(), Ended>>, Option<Waker>) {
        let (here, _kept) = here(&self.seat);
        let wheel = here.unwrap_or_else(|| self.seat.outside());
        let node = NonNull::from(&self.entry);
        self.known.set(Some(identity(&waker)));
        self.wheel.set(wheel);
        // SAFETY: 1. of `shared`: it is OUT, so it is ours.
        unsafe { Entry::shared(node, |shared| shared.waker = Some(waker)) };
        // SAFETY: 1. it is ours, OUT, and has a waker. 2. `take_out` does, with the wheel
        // that was noted, also in `drop`.
        let inserted =
            unsafe { self.seat.insert(wheel, here.is_some(), self.entry(), deadline_ns) };
        let answer = match inserted {
            Inserted::Waits => return (Poll::Pending, None),
            Inserted::Due => Ok(()),
            Inserted::Ended => Err(Ended),
        };
        self.entry.settle_as(answer.is_err());
        // SAFETY: 1. of `shared`: it is in no wheel, so it is ours.
        let back = unsafe { Entry::shared(node, |shared| shared.waker.take()) };
        (Poll::Ready(answer), back)
    }

    /// P2.
    #[cold]
    fn go_on(self: Pin<&Self>, waker: &Waker) -> Poll<Result<(), Ended>> {
        let waker = waker.clone();
        self.known.set(Some(identity(&waker)));
        // SAFETY: 1. it is ours. 2. This is the wheel that it was armed in.
        let old = unsafe { self.seat.renew(self.wheel.get(), self.entry(), waker) };
        drop(old);
        match self.entry.place() {
            Place::Fired if !weakened!("timer_renew_looks_again") => Poll::Ready(Ok(())),
            Place::Ended => Poll::Ready(Err(Ended)),
            _ => Poll::Pending,
        }
    }

    /// Takes the entry out of its wheel, if it is in one; it is OUT then. Its waker is to be
    /// dropped, or used, by the caller.
    #[inline]
    fn take_out(self: Pin<&Self>) -> Option<Waker> {
        let waker = match self.entry.place() {
            Place::Out => return None,
            // SAFETY: 1. it is ours. 2. This is the wheel that it was armed in.
            Place::In => unsafe { self.seat.remove(self.wheel.get(), self.entry()) },
            Place::Fired | Place::Ended => None,
        };
        self.entry.settle();
        waker
    }
}

impl Drop for Timer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was pinned if it was ever armed, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        drop(this.take_out());
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("place", &self.entry.place()).finish_non_exhaustive()
    }
}
