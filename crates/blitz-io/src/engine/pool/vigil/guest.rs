//! Watches tasks of a `LocalSet` that are polled by a `block_on` of a multi-thread runtime.
//!
//! The thread of such a `block_on` holds no core, and the tasks cannot run on another thread. So,
//! as with fibers ([`carrier`](super::carrier)), they are marked, reported and counted, and nothing
//! is taken.
//!
//! Most futures in a `block_on` poll no such set, and pay nothing: the thread takes a *seat* in the
//! monitor's list, after the workers and the threads that run fibers, when a set is about to run
//! tasks, and leaves it when the `block_on` ends. The number of seats is small. A thread that finds
//! none free is not watched.

use std::{
    cell::{Cell, RefCell},
    ptr::NonNull,
    sync::Arc,
};

use super::{Pool, Stint, Watched};
use crate::engine::{
    prim::lock,
    work::current::{self as words, Tenured},
};

/// Number of seats. A program has one thread that runs a `LocalSet`, or one for each core; picked.
/// (Models have none, because they have enough to explore.)
pub(super) const SEATS: usize = if cfg!(blitz_loom) { 0 } else { 8 };

/// A `block_on` that the monitor watches once it polls a set of local tasks.
pub(crate) struct Guest<'a> {
    pool: &'a Arc<Pool>,
    seat: RefCell<Option<Seat>>,
    /// Set while the monitor knows that there is something to run.
    busy: Cell<bool>,
}

struct Seat {
    /// Must be dropped before `stint`, whose tenure it refers to.
    _tenured: Tenured,
    stint: Arc<Stint>,
    number: usize,
}

impl<'a> Guest<'a> {
    /// Creates the guest. Returns `None` if the pool is not watched.
    pub(crate) fn new(pool: &'a Arc<Pool>) -> Option<Self> {
        pool.watched.as_ref()?;
        Some(Self { pool, seat: RefCell::new(None), busy: Cell::new(false) })
    }

    /// Makes this the guest that sets of local tasks on this thread notify, until the returned
    /// guard is dropped.
    pub(crate) fn listen(&self) -> Listening<'_, 'a> {
        let here = std::ptr::from_ref(self).cast();
        Listening { before: words::with(|current| current.guest.replace(here)), guest: self }
    }

    /// Marks the thread as busy and takes a seat if needed: a set is about to run tasks.
    fn rise(&self) {
        if self.busy.get() {
            return;
        }
        let mut seat = self.seat.borrow_mut();
        if seat.is_none() {
            *seat = self.take_seat();
        }
        if let Some(seat) = &*seat {
            self.busy.set(true);
            seat.stint.rise(self.pool);
        }
    }

    /// Marks the thread as idle: it is about to sleep.
    pub(crate) fn rest(&self) {
        if self.busy.replace(false)
            && let Some(seat) = &*self.seat.borrow()
        {
            seat.stint.rest();
        }
    }

    #[cold]
    fn take_seat(&self) -> Option<Seat> {
        let watched = self.pool.watched.as_ref()?;
        let number = watched.take_seat()?;
        let stint =
            Stint::put(watched, self.pool.remotes.len() + watched.carriers() + number, false);
        let here = words::with(|current| current.guest.get());
        // SAFETY: obligation 1: the guard is dropped with the seat, before the stint that owns the
        // tenure, when `Listening` is dropped: on this thread, and after all guards that were
        // created later.
        let tenured = unsafe { Tenured::new(Some(stint.tenure())) };
        // The pointer is never used, because a core that is not movable is not taken.
        words::began_with_core(NonNull::dangling());
        // Restores the word, so that sets of local tasks still notify this guest.
        words::with(|current| current.guest.set(here));
        Some(Seat { _tenured: tenured, stint, number })
    }
}

/// Guard: while it lives, sets of local tasks on this thread notify its [`Guest`].
pub(crate) struct Listening<'a, 'b> {
    before: *const (),
    guest: &'a Guest<'b>,
}

impl Drop for Listening<'_, '_> {
    fn drop(&mut self) {
        self.guest.rest();
        if let Some(seat) = self.guest.seat.take() {
            let number = seat.number;
            drop(seat);
            if let Some(watched) = &self.guest.pool.watched {
                watched.leave_seat(self.guest.pool.remotes.len(), number);
            }
        }
        words::with(|current| current.guest.set(self.before));
    }
}

/// Notifies the guest of this thread, if any, that a set of local tasks is about to run some.
#[inline]
pub(crate) fn local_tasks_run() {
    let guest = words::with(|current| current.guest.get()).cast::<Guest<'_>>();
    // SAFETY: `Listening` borrows its guest and restores the word when dropped, so the guest
    // outlives the pointer in the word.
    if let Some(guest) = unsafe { guest.as_ref() } {
        guest.rise();
    }
}

impl Watched {
    fn take_seat(&self) -> Option<usize> {
        let mut taken = lock(&self.seats);
        let free = taken.iter().position(|taken| !taken)?;
        taken[free] = true;
        Some(free)
    }

    fn leave_seat(&self, workers: usize, number: usize) {
        let gone = lock(&self.holders[workers + self.carriers() + number]).take();
        drop(gone);
        lock(&self.seats)[number] = false;
    }

    /// Returns the maximum number of threads that run fibers.
    pub(super) fn carriers(&self) -> usize {
        self.settings.carriers
    }
}
