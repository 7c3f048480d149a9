//! How tasks of a `LocalSet` are watched that the `block_on` of a runtime with workers polls.
//!
//! The thread of such a `block_on` holds no core, and those tasks cannot go anywhere else: as with
//! fibers ([`carrier`](super::carrier)) they are marked, told of and counted, and nothing is taken.
//!
//! Most futures that are waited for poll no such set, and pay nothing: the thread takes a *seat* in
//! the monitor's list, behind the workers and the threads of fibers, when a set is about to run
//! tasks, and gives it up when the `block_on` ends. There are a few seats. Who finds none is not
//! watched.

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

/// Seats. A program has one thread that runs a `LocalSet`, or one for each core; picked.
/// (Models have enough to do.)
pub(super) const SEATS: usize = if cfg!(blitz_loom) { 0 } else { 8 };

/// A `block_on`.
pub(crate) struct Guest<'a> {
    pool: &'a Arc<Pool>,
    seat: RefCell<Option<Seat>>,
    /// The monitor knows that there is something to run.
    busy: Cell<bool>,
}

struct Seat {
    /// Dropped before what it listens for.
    _tenured: Tenured,
    stint: Arc<Stint>,
    number: usize,
}

impl<'a> Guest<'a> {
    /// If anybody watches that pool.
    pub(crate) fn new(pool: &'a Arc<Pool>) -> Option<Self> {
        pool.watched.as_ref()?;
        Some(Self { pool, seat: RefCell::new(None), busy: Cell::new(false) })
    }

    /// From now on sets of tasks that are polled on this thread tell it.
    pub(crate) fn listen(&self) -> Listening<'_, 'a> {
        let here = std::ptr::from_ref(self).cast();
        Listening { before: words::with(|current| current.guest.replace(here)), guest: self }
    }

    /// A set is about to run tasks.
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

    /// The thread is about to sleep.
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
        // SAFETY: 1. it is dropped with the seat, before the stint, when `Listening` is: on this
        // thread, and after all that began later.
        let tenured = unsafe { Tenured::new(Some(stint.tenure())) };
        // Nobody takes it, since it is not movable.
        words::began_with_core(NonNull::dangling());
        // It is still this one that is told.
        words::with(|current| current.guest.set(here));
        Some(Seat { _tenured: tenured, stint, number })
    }
}

/// While it lives, a [`Guest`] is told.
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

/// A set of tasks is about to run some on this thread.
#[inline]
pub(crate) fn local_tasks_run() {
    let guest = words::with(|current| current.guest.get()).cast::<Guest<'_>>();
    // SAFETY: `Listening` takes the word away before its guest is gone.
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

    /// The most threads that run fibers.
    pub(super) fn carriers(&self) -> usize {
        self.settings.carriers
    }
}
