//! Tasks that one thread runs and drops: their futures need not be `Send`.
//!
//! [`Local`] is the owner's end of a set; it cannot leave its thread, and whoever
//! has one is therefore on it. [`Shared`] is what others reach, through wakers and
//! abort handles. The set has a home of its own, held by its thread.
//!
//! # Protocol
//! An entry that the set's own thread places goes to `fifo`, which is that thread's
//! alone. One that another thread places goes to `arrivals`, and the drivers are
//! called ([`bell`]). Only the set's thread takes entries out.
//!
//! The end, all of it on the set's thread:
//! ```text
//! E1 refuse new tasks
//! E2 stop every listed task: its future is dropped here
//! E3 drop the entries in `fifo`
//! E4 close `arrivals`, drop what is in it
//! E5 close the home; memory follows its last reference
//! ```
//! Another thread that has set QUEUED and not yet pushed its entry finds `arrivals`
//! open before E4, and the entry is dropped by E4; or closed, and drops it itself.
//! Either way E2 came first: the task is complete, and all that is left to do is to
//! free its memory. A destructor that E2 runs may wake tasks of the set, which go
//! to `fifo`, and spawn, which is refused: such a future is dropped at once, here.
//!
//! A set that is told to end when a task panics does so after the poll of that task;
//! whoever drives it is called and panics, then and in later polls. One of its tasks may be lower
//! on the stack, if it drives its own set: E2 only marks that one, and the end comes
//! a second time once its poll is over.
//!
//! # Invariants
//! - *One thread*: `held` is touched by the thread whose number is `owner`. Numbers
//!   are not used again, so a set that is leaked and outlives its thread has none.
//! - *Futures stay*: every future of the set is polled and dropped by that thread.
//!   Before E4 nobody else takes entries out, after E2 there is none.
//!
//! # Rejected
//! The pool's core with a mark on it: the set is driven by a future that any runtime
//! may poll, or none.
//!
//! # Checked by
//! `models.rs`: `a_wake_against_a_poll_is_seen_or_calls_again`,
//! `a_wake_against_completion_frees_once`,
//! `a_wake_against_the_end_drops_the_future_on_its_thread`,
//! `an_abort_against_the_end_drops_the_future_on_its_thread`,
//! `a_push_against_the_end_leaves_nothing_behind`; weakened as
//! `local_registers_first`, `local_stops_first`, `local_closes`, `local_owner_check`.

use std::{
    future::Future,
    marker::PhantomData,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll},
};

use self::bell::{Bell, Driver};
use super::{
    prim::{UnsafeCell, clock::Unit, weakened},
    queue::{Chain, inject::Inject},
    work::{
        current::{self, Blocking},
        task::{
            cell::{Label, Task},
            extra::Extra,
            handle::JoinHandle,
            home::{Home, Origin, Schedule},
            poll,
        },
    },
};

pub(crate) mod bell;
pub(crate) mod context;
#[cfg(test)]
mod models;

/// Polls of tasks in one poll of the set: Tokio's figure, so that what shares a
/// thread with a set waits no longer than it did there.
const POLLS_PER_TURN: usize = 61;

/// Of so many looks for the next entry one begins with what others sent: Tokio's
/// figure too.
const ARRIVALS_FIRST: u8 = 31;

/// The owner's end of a set.
#[derive(Clone)]
pub(crate) struct Local {
    shared: Arc<Shared>,
    /// It stays on its thread.
    here: PhantomData<*const ()>,
}

/// What other threads reach of a set.
struct Shared {
    /// The number of the set's thread.
    owner: u64,
    /// What others placed.
    arrivals: Inject<Task>,
    bell: Bell,
    held: UnsafeCell<Held>,
}

// SAFETY: `held` is touched on the set's thread only (`owner`); what is left in it
// when the last reference goes, on whatever thread, are plain words: E3 emptied the
// chain, and a set that was never ended keeps a reference to itself (its home).
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The part of the set's thread.
struct Held {
    /// What this thread placed.
    fifo: Chain<Task>,
    /// Made for the first task, gone with the end.
    home: Option<NonNull<Home>>,
    /// Tasks that have not completed.
    alive: usize,
    /// Counts the looks for an entry.
    looks: u8,
    /// Somebody takes entries out now, and will look again.
    running: bool,
    closed: bool,
    /// The policy: whether the panic of a task ends the set.
    ends_on_panic: bool,
    /// That has happened.
    failed: bool,
    /// Drivers that there were.
    drivers: u64,
}

/// What a turn left.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Entries: the driver must come again.
    Entries,
    /// Tasks that wait to be woken.
    Tasks,
    /// Nothing.
    Nothing,
}

impl Local {
    /// A set for the calling thread.
    pub(crate) fn new() -> Self {
        let held = Held {
            fifo: Chain::new(),
            home: None,
            alive: 0,
            looks: 0,
            running: false,
            closed: false,
            ends_on_panic: false,
            failed: false,
            drivers: 0,
        };
        let shared = Arc::new(Shared {
            owner: current::thread(),
            arrivals: Inject::new(),
            bell: Bell::new(),
            held: UnsafeCell::new(held),
        });
        Self { shared, here: PhantomData }
    }

    /// Makes a task and queues it; of a set that has ended, one that is cancelled.
    pub(crate) fn spawn<F: Future + 'static, X: Extra>(
        &self,
        future: F,
        label: Label<X>,
    ) -> JoinHandle<F::Output> {
        if self.held(|held| held.closed) {
            return self.spawn_ended(future, label);
        }
        // SAFETY: this thread holds the home, and nothing of it is borrowed.
        let (task, header) = unsafe { Home::spawn(self.home(), future, label) };
        self.held(|held| held.alive += 1);
        self.place(task);
        // SAFETY: a new task's join reference, of that output.
        unsafe { JoinHandle::new(header) }
    }

    /// A task that was cancelled before its first poll, in a home of its own. Users'
    /// code runs, and nothing is borrowed.
    #[cold]
    fn spawn_ended<F: Future + 'static, X: Extra>(
        &self,
        future: F,
        label: Label<X>,
    ) -> JoinHandle<F::Output> {
        let home = Home::new(self.shared.clone());
        // SAFETY: we made the home, and hold it until it is closed; the task keeps its
        // memory until the `JoinHandle` is gone. Dropping the entry cancels, here.
        unsafe {
            let (task, header) = Home::spawn(home, future, label);
            home.as_ref().refuse();
            drop(task);
            while home.as_ref().next_to_stop().is_some() {}
            Home::close(home);
            JoinHandle::new(header)
        }
    }

    /// A name for one more driver.
    pub(crate) fn driver(&self) -> Driver {
        self.held(|held| {
            held.drivers += 1;
            Driver(held.drivers)
        })
    }

    /// One poll of a driver: `root` first, if it has one, then tasks.
    pub(crate) fn poll<T>(
        &self,
        driver: Driver,
        cx: &mut Context<'_>,
        root: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Left> {
        self.inside(|| {
            if !weakened!("local_registers_first") {
                self.shared.bell.leave(driver, cx.waker());
            }
            if let Poll::Ready(output) = root(cx) {
                return Ok(output);
            }
            let left = self.run();
            if weakened!("local_registers_first") {
                self.shared.bell.leave(driver, cx.waker());
            }
            Err(left)
        })
    }

    /// A driver goes; should there be something to do, the others must come.
    pub(crate) fn leave(&self, driver: Driver) {
        self.shared.bell.forget(driver);
        if self.has_entries() {
            self.shared.bell.ring();
        }
    }

    /// Says whether the panic of a task ends the set, from now on.
    pub(crate) fn end_on_panic(&self, ends: bool) {
        self.held(|held| held.ends_on_panic = ends);
    }

    /// Runs tasks, as many as one turn may.
    ///
    /// # Panics
    /// If a task panicked and that ends the set.
    fn run(&self) -> Left {
        self.check();
        let now = Unit::Millis.now();
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = self.next() else { break };
            let completed = poll::run_within(task, now);
            // Saturating: a set that ended meanwhile counts none.
            self.held(|held| held.alive = held.alive.saturating_sub(usize::from(completed)));
            self.check();
        }
        self.sweep();
        if self.has_entries() {
            return Left::Entries;
        }
        let alive = self.held(|held| held.alive);
        if alive > 0 { Left::Tasks } else { Left::Nothing }
    }

    #[inline]
    fn check(&self) {
        if self.held(|held| held.failed) {
            self.fail();
        }
    }

    #[cold]
    fn fail(&self) -> ! {
        // The end forgets the other drivers, and each of them is to panic too.
        self.shared.bell.ring();
        self.end();
        panic!(
            "a spawned task panicked and the LocalSet is configured to shutdown on unhandled \
             panic: find the first panic above, or let the set go on with \
             `UnhandledPanic::Ignore`"
        );
    }

    /// The entry that is to run now.
    fn next(&self) -> Option<Task> {
        let arrivals_first = self.held(|held| {
            held.looks = held.looks.wrapping_add(1);
            held.looks.is_multiple_of(ARRIVALS_FIRST)
        });
        let own = || self.held(|held| held.fifo.pop_front());
        let sent = || self.shared.arrivals.pop();
        if arrivals_first { sent().or_else(own) } else { own().or_else(sent) }
    }

    fn has_entries(&self) -> bool {
        self.held(|held| !held.fifo.is_empty()) || !self.shared.arrivals.is_empty()
    }

    /// Takes back the memory of tasks that others let go of.
    fn sweep(&self) {
        if let Some(home) = self.held(|held| held.home) {
            // SAFETY: this thread holds the home, and nothing of it is borrowed.
            unsafe { Home::sweep(home) };
        }
    }

    /// E1 to E5; a second time, for what a task left behind that was running.
    pub(crate) fn end(&self) {
        self.inside(|| {
            let home = self.held(|held| {
                held.closed = true;
                held.home.take()
            });
            if weakened!("local_stops_first") {
                self.empty_queues();
            }
            if let Some(home) = home {
                // SAFETY: this thread holds the home, and nothing of it is borrowed; a
                // home that refuses keeps cells until it is closed.
                unsafe {
                    home.as_ref().refuse();
                    while let Some(task) = home.as_ref().next_to_stop() {
                        poll::stop(task);
                    }
                }
            }
            self.held(|held| held.alive = 0);
            self.empty_queues();
            if let Some(home) = home {
                // SAFETY: as above; we give the home up.
                unsafe { Home::close(home) };
            }
        });
        self.shared.bell.forget_all();
    }

    /// E3 and E4. Entries of stopped tasks are all there is: dropping them frees
    /// memory at the most, or, on this thread, the future of one that was running.
    fn empty_queues(&self) {
        while let Some(task) = self.held(|held| held.fifo.pop_front()) {
            drop(task);
        }
        if !weakened!("local_closes") {
            self.shared.arrivals.close();
        }
        while let Some(task) = self.shared.arrivals.pop() {
            drop(task);
        }
    }

    /// Calls `f` inside the set, which looks for entries afterwards: nobody has to be
    /// called for what this thread places meanwhile. Where blocking is not allowed as
    /// it is, it is not in place either: the other tasks of the set would wait.
    fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore<'a> {
            set: &'a Local,
            running: bool,
            blocking: Blocking,
        }
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.set.held(|held| held.running = self.running);
                current::with(|current| current.blocking.set(self.blocking));
            }
        }
        let running = self.held(|held| std::mem::replace(&mut held.running, true));
        let blocking = current::with(|current| current.blocking.get());
        let _restore = Restore { set: self, running, blocking };
        if blocking != Blocking::Allowed {
            current::with(|current| current.blocking.set(Blocking::Forbidden));
        }
        context::within(self, f)
    }

    fn place(&self, task: Task) {
        // SAFETY: we are on the set's thread.
        unsafe { self.shared.place_here(task) };
    }

    fn home(&self) -> NonNull<Home> {
        if let Some(home) = self.held(|held| held.home) {
            return home;
        }
        let home = Home::new(self.shared.clone());
        self.held(|held| *held.home.insert(home))
    }

    #[inline]
    fn held<R>(&self, f: impl FnOnce(&mut Held) -> R) -> R {
        // SAFETY: a `Local` does not leave its thread.
        unsafe { self.shared.held(f) }
    }
}

impl Shared {
    /// # Safety
    /// 1. The caller is on the set's thread. 2. `f` runs no code but ours, and does
    ///    not come back here.
    #[inline]
    unsafe fn held<R>(&self, f: impl FnOnce(&mut Held) -> R) -> R {
        // SAFETY: 1. and 2.: there is no other reference.
        self.held.with_mut(|held| f(unsafe { &mut *held }))
    }

    /// # Safety
    /// 1. The caller is on the set's thread.
    unsafe fn place_here(&self, task: Task) {
        // SAFETY: 1. is the caller's. 2. A chain is ours.
        let running = unsafe {
            self.held(|held| {
                held.fifo.push_back(task);
                held.running
            })
        };
        if !running {
            self.bell.ring();
        }
    }

    fn is_here(&self) -> bool {
        self.owner == current::thread() || weakened!("local_owner_check")
    }
}

impl Schedule for Shared {
    fn place(&self, task: Task, _origin: Origin) {
        if self.is_here() {
            // SAFETY: we have just looked.
            return unsafe { self.place_here(task) };
        }
        match self.arrivals.push(task) {
            Ok(()) => self.bell.ring(),
            // The set is gone and with it all its tasks: this entry is what was left of
            // one, and dropping it frees it.
            Err(task) => drop(task),
        }
    }

    fn cells_wait(&self, _home: NonNull<Home>) {
        // A turn sweeps, whether or not it finds an entry.
        self.bell.ring();
    }

    fn task_panicked(&self) {
        // Futures stay: this is always so.
        if self.is_here() {
            // SAFETY: 1. we have just looked. 2. Only words are touched.
            unsafe { self.held(|held| held.failed |= held.ends_on_panic) };
        }
    }
}
