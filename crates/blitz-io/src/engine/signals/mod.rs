//! Signals of the process: counted where they are delivered, and dispatched to all listeners.
//!
//! There is one [`Hall`] for the whole process. A signal may arrive on any thread, between any two
//! instructions, so its handler does next to nothing: it counts, and rings the bells. A *bell* is a
//! notifier: a pipe, or an eventfd, that a runtime's driver watches. Each runtime in which signals
//! were ever requested has one. The runtime that hears its bell wakes all listeners, in all
//! runtimes: so no listener depends on the runtime in which it was created, nor on one that is
//! busy.
//!
//! - [`listeners`]: the listeners of one kind of signal.
//! - `bells`: the list of bells, which the handler walks; `pipe`: the descriptor behind a bell.
//! - `station`: a bell and its registration with a driver.
//! - `handler`: installs the handler in the system.
//!
//! # Protocol
//! ```text
//! the handler, on any thread         a thread that hears a bell, or has just put one up
//! S1 counts the delivery             H1 makes the bell quiet
//! S2 fence(SeqCst)                   H2 fence(SeqCst)
//! S3 reads each bell: a quiet one    H3 reads the counts; the thread that raises `told` to
//!    it makes loud, and writes          a count wakes all listeners of that kind
//!    into its pipe
//! ```
//! One of S2 and H2 comes first. If S2, H3 sees the delivery. If H2, S3 sees the quiet bell and
//! rings it, or the bell has become loud since: then its pipe is written to, and H1 comes again.
//!
//! ```text
//! a listener                         a thread that dispatches (H3)
//! L1 the count is above `seen`: done T1 raises `told` to the count it has read
//! L2 registers its waker             T2 takes the waker of each listener
//! L3 as L1, else it waits
//! ```
//! L2 and T2 exchange one word (`waker_cell`): if T2 comes first, L3 sees the count that T1 has
//! read; if L2, the listener is woken. Two threads that hear bells raise `told` one after the
//! other: for each delivery one of them has the duty, and does not stop before all are woken.
//!
//! A listener that finds a delivery at L1 or L3 dispatches it too, unless that was done: a delivery
//! that one listener has seen is past for all listeners that come later.
//!
//! A listener begins with the count in `told`, not the one in `delivered`: a signal that came just
//! before, and that was not dispatched yet, is for the new listener too.
//!
//! # Invariants
//! 1. The handler takes no lock, frees and allocates nothing, and touches only words and bells,
//!    which are never freed.
//! 2. `told` is never above `delivered`, and neither falls.
//! 3. A listener that waits is woken after each delivery that it has not seen; many deliveries may
//!    be merged into one.
//!
//! # Rejected
//! - One pipe for all runtimes: with mechanisms that report states and not edges (poll, kqueue as
//!   it is used here), the first runtime that reads the pipe silences it for the others.
//! - A thread of our own that hears for all: one more switch of threads for each signal. A runtime
//!   that waits for events hears its own bell in the turn that the signal ends.
//! - signalfd: the signal must be blocked in every thread, also in those that we did not start, and
//!   in children.
//! - Our own chain of handlers: `signal-hook-registry` has one, and shares it with other users of
//!   that crate in the process.
//!
//! # Checked by
//! `a_delivery_against_a_new_bell_is_heard`, `a_delivery_against_a_bell_being_heard_is_heard`,
//! `a_delivery_against_a_new_listener_is_seen`, `two_who_hear_tell_everybody`,
//! `one_delivery_wakes_a_listener_once`,
//! `a_listener_that_leaves_against_a_delivery_is_let_go`,
//! `a_bell_that_is_given_on_is_heard_by_the_next`, `a_second_call_while_one_hears_is_heard`;
//! weakened as `signal_deliver_fence`, `signal_hear_fence`, `signal_listener_looks_again`,
//! `signal_listener_tells`,
//! `signal_hush_first`, `signal_told_once`, `signal_told_raises`, `wait_gate_again`.
//! `tests/os/signals.rs` tests real signals.

mod listeners;
#[cfg(any(unix, test))]
mod bells;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod station;
#[cfg_attr(windows, path = "console.rs")]
mod handler;

#[cfg(test)]
mod models;

#[cfg(windows)]
pub(crate) use self::handler::{Event, install};
pub(crate) use self::listeners::Listening;
#[cfg(unix)]
pub(crate) use self::{bells::Bell, handler::hall, handler::install, pipe::Pipe, station::Station};

use self::listeners::Listeners;
use crate::engine::prim::{
    AtomicU64, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    lock, weakened,
};
#[cfg(any(unix, test))]
use crate::engine::prim::{Ordering::SeqCst, fence};
use crate::engine::wait::batch::wake_each;

/// The number of kinds of signals, including number 0, which is none. Linux ends at 64, FreeBSD at
/// 126; Windows has events of the console, up to 6.
pub(crate) const KINDS: usize = if cfg!(blitz_loom) {
    2
} else if cfg!(target_os = "linux") {
    65
} else {
    128
};

/// The process's state of signals: counts of deliveries, listeners, and the bells to ring.
pub(crate) struct Hall<P> {
    /// The number of deliveries of each kind. They are next to each other, because a thread that
    /// hears a bell reads them all.
    delivered: [AtomicU64; KINDS],
    /// The last delivery of each kind that was dispatched to all listeners.
    told: [AtomicU64; KINDS],
    listeners: [Mutex<Listeners>; KINDS],
    #[cfg(any(unix, test))]
    bells: bells::Bells<P>,
    #[cfg(not(any(unix, test)))]
    bells: std::marker::PhantomData<P>,
}

impl<P> Hall<P> {
    pub(crate) fn new() -> Self {
        Self {
            delivered: std::array::from_fn(|_| AtomicU64::new(0)),
            told: std::array::from_fn(|_| AtomicU64::new(0)),
            listeners: std::array::from_fn(|_| Mutex::new(Listeners::new())),
            #[cfg(any(unix, test))]
            bells: bells::Bells::new(),
            #[cfg(not(any(unix, test)))]
            bells: std::marker::PhantomData,
        }
    }

    /// Performs S1: counts a delivery.
    fn count(&self, kind: usize) {
        // Release: a thread that reads the count sees what came before the signal. Pairs with the
        // Acquire in `delivered`. Fences order it with the bells.
        self.delivered[kind].fetch_add(1, Release);
    }

    fn delivered(&self, kind: usize) -> u64 {
        // Acquire: sees what came before the signal. Pairs with the Release in `count`.
        self.delivered[kind].load(Acquire)
    }

    /// Performs T1 and T2: wakes all listeners of that kind, unless another thread has or does.
    /// This runs user code.
    fn tell(&self, kind: usize) {
        let delivered = self.delivered(kind);
        // Relaxed: a guess; the exchange below decides.
        if self.told[kind].load(Relaxed) >= delivered && !weakened!("signal_told_once") {
            return;
        }
        // AcqRel: a listener that begins with this number finds no older count. Pairs with the
        // Acquire in `listen`.
        let before = if weakened!("signal_told_raises") {
            self.told[kind].swap(delivered, AcqRel)
        } else {
            self.told[kind].fetch_max(delivered, AcqRel)
        };
        if before >= delivered && !weakened!("signal_told_once") {
            return;
        }
        let listeners = || lock(&self.listeners[kind]);
        let mut seat = 0;
        wake_each(listeners(), listeners, |held| held.take_from(&mut seat));
    }

    /// Creates a listener for a kind, which sees deliveries from now on.
    pub(crate) fn listen(&self, kind: usize) -> Listening<'_, P> {
        let mut listeners = lock(&self.listeners[kind]);
        // Acquire: no older count is found after this number. Pairs with the AcqRel in `tell`.
        let seen = self.told[kind].load(Acquire);
        let (seat, cell) = listeners.add();
        drop(listeners);
        Listening::new(self, kind, seat, cell, seen)
    }
}

#[cfg(any(windows, test))]
impl<P> Hall<P> {
    /// Returns whether that kind has a listener.
    pub(crate) fn is_listened_to(&self, kind: usize) -> bool {
        lock(&self.listeners[kind]).count() > 0
    }
}

#[cfg(any(unix, test))]
impl<P: bells::Rings> Hall<P> {
    /// Handles a delivery, in the signal handler: S1 to S3.
    pub(crate) fn deliver(&self, kind: usize) {
        self.count(kind);
        if !weakened!("signal_deliver_fence") {
            // SeqCst: S2. Pairs with the fence in `tell_all`.
            fence(SeqCst);
        }
        self.bells.ring();
    }

    /// Returns a bell that rings with every signal until it is given back. When the caller can hear
    /// it, it must call `tell_all`, for signals that came before.
    ///
    /// # Errors
    /// If no spare bell was left and the system could not create another.
    pub(crate) fn put_up(
        &self,
        make: impl FnOnce() -> std::io::Result<P>,
    ) -> std::io::Result<&bells::Bell<P>> {
        self.bells.put_up(make)
    }

    /// Gives a bell back; the caller must not touch it any more.
    pub(crate) fn take_down<'a>(&'a self, bell: &'a bells::Bell<P>) {
        self.bells.take_down(bell);
    }

    /// Performs H1 to H3: makes the bell quiet and dispatches what was delivered. This runs user
    /// code.
    pub(crate) fn hear(&self, bell: &bells::Bell<P>) {
        let late = weakened!("signal_hush_first");
        if !late {
            bell.hush();
        }
        self.tell_all();
        if late {
            bell.hush();
        }
    }

    /// Performs H2 and H3, after a bell was made quiet or put up.
    pub(crate) fn tell_all(&self) {
        if !weakened!("signal_hear_fence") {
            // SeqCst: H2. Pairs with the fence in `deliver`.
            fence(SeqCst);
        }
        (0..KINDS).for_each(|kind| self.tell(kind));
    }
}

impl<P> std::fmt::Debug for Hall<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hall").finish_non_exhaustive()
    }
}
