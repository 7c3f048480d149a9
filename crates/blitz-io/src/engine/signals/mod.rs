//! Signals of the process: counted where they are delivered, and dispatched to all listeners.
//!
//! There is one [`SignalRegistry`] for the whole process. A signal may arrive on any thread,
//! between any two instructions, so its handler does next to nothing: it counts, and notifies. A
//! *notifier* is a descriptor (a pipe, or an eventfd) that a runtime's driver watches. Each runtime
//! in which signals were ever requested has one. The runtime that is notified wakes all listeners,
//! in all runtimes: so no listener depends on the runtime in which it was created, nor on one that
//! is busy.
//!
//! - [`listeners`]: the listeners of one kind of signal.
//! - `notifiers`: the list of notifiers, which the handler walks; `pipe`: the descriptor behind a
//!   notifier.
//! - `source`: a notifier and its registration with a driver.
//! - `handler`: installs the handler in the system.
//!
//! # Protocol
//! ```text
//! the handler, on any thread         a thread that was notified, or has just acquired a notifier
//! S1 counts the delivery             H1 resets the notifier
//! S2 fence(SeqCst)                   H2 fence(SeqCst)
//! S3 reads each notifier: an idle    H3 reads the counts; the thread that raises `dispatched`
//!    one it notifies, and writes        to a count wakes all listeners of that kind
//!    into its pipe
//! ```
//! One of S2 and H2 comes first. If S2, H3 sees the delivery. If H2, S3 sees the idle notifier and
//! notifies it, or it was notified since: then its pipe is written to, and H1 comes again.
//!
//! ```text
//! a listener                         a thread that dispatches (H3)
//! L1 the count is above `seen`: done T1 raises `dispatched` to the count it has read
//! L2 registers its waker             T2 takes the waker of each listener
//! L3 as L1, else it waits
//! ```
//! L2 and T2 exchange one word (`waker_cell`): if T2 comes first, L3 sees the count that T1 has
//! read; if L2, the listener is woken. Two threads that are notified raise `dispatched` one after
//! the other: for each delivery one of them must wake the listeners, and does not stop before all
//! are woken.
//!
//! A listener that finds a delivery at L1 or L3 dispatches it too, unless that was done: a delivery
//! that one listener has seen is past for all listeners that come later.
//!
//! A listener begins with the count in `dispatched`, not the one in `delivered`: a signal that came
//! just before, and that was not dispatched yet, is for the new listener too.
//!
//! # Invariants
//! 1. The handler takes no lock, frees and allocates nothing, and touches only words and notifiers,
//!    which are never freed.
//! 2. `dispatched` is never above `delivered`, and neither falls.
//! 3. A listener that waits is woken after each delivery that it has not seen; many deliveries may
//!    be merged into one.
//!
//! # Rejected
//! - One pipe for all runtimes: with mechanisms that report states and not edges (poll, kqueue as
//!   it is used here), the first runtime that reads the pipe silences it for the others.
//! - A thread of our own that dispatches for all: one more switch of threads for each signal. A
//!   runtime that waits for events sees its own notifier in the turn that the signal ends.
//! - signalfd: the signal must be blocked in every thread, also in those that we did not start, and
//!   in children.
//! - Our own chain of handlers: `signal-hook-registry` has one, and shares it with other users of
//!   that crate in the process.
//!
//! # Checked by
//! `a_delivery_against_a_new_notifier_is_dispatched`, `a_delivery_against_a_reset_is_dispatched`,
//! `a_delivery_against_a_new_listener_is_seen`, `two_dispatchers_wake_every_listener`,
//! `one_delivery_wakes_a_listener_once`, `a_listener_that_leaves_against_a_delivery_is_dropped`,
//! `a_notifier_that_is_reused_notifies_its_next_owner`, `a_second_call_while_one_runs_is_served`;
//! weakened as `signal_deliver_fence`, `signal_dispatch_fence`, `signal_listener_checks_again`,
//! `signal_listener_dispatches`, `signal_reset_first`, `signal_dispatched_once`,
//! `signal_dispatched_raises`, `coalescer_again`.
//! `tests/os/signals.rs` tests real signals.

mod listeners;
#[cfg(any(unix, test))]
mod notifiers;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod source;
#[cfg_attr(windows, path = "console.rs")]
mod handler;

#[cfg(test)]
mod models;

#[cfg(windows)]
pub(crate) use self::handler::{ConsoleEvent, install};
pub(crate) use self::listeners::SignalListener;
#[cfg(unix)]
pub(crate) use self::{
    handler::install, handler::registry, notifiers::SignalNotifier, pipe::WakePipe,
    source::SignalSource,
};

use self::listeners::Listeners;
use crate::engine::prim::{
    AtomicU64, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    lock, weakened,
};
#[cfg(any(unix, test))]
use crate::engine::prim::{Ordering::SeqCst, fence};
use crate::engine::wait::wake_list::wake_each;

/// The number of kinds of signals, including number 0, which is none. Linux ends at 64, FreeBSD at
/// 126; Windows has events of the console, up to 6.
pub(crate) const KINDS: usize = if cfg!(blitz_loom) {
    2
} else if cfg!(target_os = "linux") {
    65
} else {
    128
};

/// The process's state of signals: counts of deliveries, listeners, and notifiers.
pub(crate) struct SignalRegistry<P> {
    /// The number of deliveries of each kind. They are next to each other, because a thread that
    /// was notified reads them all.
    delivered: [AtomicU64; KINDS],
    /// The last delivery of each kind that was dispatched to all listeners.
    dispatched: [AtomicU64; KINDS],
    listeners: [Mutex<Listeners>; KINDS],
    #[cfg(any(unix, test))]
    notifiers: notifiers::Notifiers<P>,
    #[cfg(not(any(unix, test)))]
    notifiers: std::marker::PhantomData<P>,
}

impl<P> SignalRegistry<P> {
    pub(crate) fn new() -> Self {
        Self {
            delivered: std::array::from_fn(|_| AtomicU64::new(0)),
            dispatched: std::array::from_fn(|_| AtomicU64::new(0)),
            listeners: std::array::from_fn(|_| Mutex::new(Listeners::new())),
            #[cfg(any(unix, test))]
            notifiers: notifiers::Notifiers::new(),
            #[cfg(not(any(unix, test)))]
            notifiers: std::marker::PhantomData,
        }
    }

    /// Performs S1: counts a delivery.
    fn count(&self, kind: usize) {
        // Release: a thread that reads the count sees what came before the signal. Pairs with the
        // Acquire in `delivered`. Fences order it with the notifiers.
        self.delivered[kind].fetch_add(1, Release);
    }

    fn delivered(&self, kind: usize) -> u64 {
        // Acquire: sees what came before the signal. Pairs with the Release in `count`.
        self.delivered[kind].load(Acquire)
    }

    /// Performs T1 and T2: wakes all listeners of that kind, unless another thread has or does.
    /// This runs user code.
    fn dispatch(&self, kind: usize) {
        let delivered = self.delivered(kind);
        // Relaxed: a guess; the exchange below decides.
        if self.dispatched[kind].load(Relaxed) >= delivered && !weakened!("signal_dispatched_once")
        {
            return;
        }
        // AcqRel: a listener that begins with this number finds no older count. Pairs with the
        // Acquire in `listen`.
        let before = if weakened!("signal_dispatched_raises") {
            self.dispatched[kind].swap(delivered, AcqRel)
        } else {
            self.dispatched[kind].fetch_max(delivered, AcqRel)
        };
        if before >= delivered && !weakened!("signal_dispatched_once") {
            return;
        }
        let listeners = || lock(&self.listeners[kind]);
        let mut slot = 0;
        wake_each(listeners(), listeners, |listeners| listeners.take_from(&mut slot));
    }

    /// Creates a listener for a kind, which sees deliveries from now on.
    pub(crate) fn listen(&self, kind: usize) -> SignalListener<'_, P> {
        let mut listeners = lock(&self.listeners[kind]);
        // Acquire: no older count is found after this number. Pairs with the AcqRel in `dispatch`.
        let seen = self.dispatched[kind].load(Acquire);
        let (slot, cell) = listeners.add();
        drop(listeners);
        SignalListener::new(self, kind, slot, cell, seen)
    }
}

#[cfg(any(windows, test))]
impl<P> SignalRegistry<P> {
    /// Returns whether that kind has a listener.
    pub(crate) fn is_listened_to(&self, kind: usize) -> bool {
        lock(&self.listeners[kind]).count() > 0
    }
}

#[cfg(any(unix, test))]
impl<P: notifiers::Notifies> SignalRegistry<P> {
    /// Handles a delivery, in the signal handler: S1 to S3.
    pub(crate) fn deliver(&self, kind: usize) {
        self.count(kind);
        if !weakened!("signal_deliver_fence") {
            // SeqCst: S2. Pairs with the fence in `dispatch_all`.
            fence(SeqCst);
        }
        self.notifiers.notify();
    }

    /// Returns a notifier that is notified of every signal until it is given back. Once the caller
    /// watches it, the caller must call `dispatch_all`, for signals that came before.
    ///
    /// # Errors
    /// If no spare notifier was left and the system could not create another.
    pub(crate) fn acquire(
        &self,
        make: impl FnOnce() -> std::io::Result<P>,
    ) -> std::io::Result<&notifiers::SignalNotifier<P>> {
        self.notifiers.acquire(make)
    }

    /// Gives a notifier back; the caller must not touch it any more.
    pub(crate) fn release<'a>(&'a self, notifier: &'a notifiers::SignalNotifier<P>) {
        self.notifiers.release(notifier);
    }

    /// Performs H1 to H3: resets the notifier and dispatches what was delivered. This runs user
    /// code.
    pub(crate) fn dispatch_for(&self, notifier: &notifiers::SignalNotifier<P>) {
        let late = weakened!("signal_reset_first");
        if !late {
            notifier.reset();
        }
        self.dispatch_all();
        if late {
            notifier.reset();
        }
    }

    /// Performs H2 and H3, after a notifier was reset or acquired.
    pub(crate) fn dispatch_all(&self) {
        if !weakened!("signal_dispatch_fence") {
            // SeqCst: H2. Pairs with the fence in `deliver`.
            fence(SeqCst);
        }
        (0..KINDS).for_each(|kind| self.dispatch(kind));
    }
}

impl<P> std::fmt::Debug for SignalRegistry<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalRegistry").finish_non_exhaustive()
    }
}
