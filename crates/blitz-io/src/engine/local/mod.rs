//! Tasks that are run and dropped by one thread, so that their futures need not be `Send`.
//!
//! [`Local`] is the owner's handle of a set of such tasks. It cannot leave its thread, so code that
//! has one runs on that thread. [`Shared`] is the part that other threads reach, through wakers and
//! abort handles. The set has an [`Arena`] of its own, which allocates its task cells and is held
//! by its thread.
//!
//! # Protocol
//! An entry that the set's own thread schedules goes to `fifo`, which only that thread uses. An
//! entry that another thread schedules goes to `arrivals`, and the drivers are woken
//! ([`notifier`]). Only the set's thread takes entries out.
//!
//! The end of a set, all of it on the set's thread:
//! ```text
//! E1 refuse new tasks
//! E2 stop every listed task: its future is dropped here
//! E3 drop the entries in `fifo`
//! E4 close `arrivals`, drop what is in it
//! E5 close the arena; memory follows its last reference
//! ```
//! Another thread that has set QUEUED and not yet pushed its entry either finds `arrivals` open
//! before E4, and E4 drops the entry; or it finds `arrivals` closed, and drops the entry itself.
//! Either way E2 came first: the task is complete, and only its memory is left to free. A
//! destructor that E2 runs may wake tasks of the set, which go to `fifo`. It may also spawn, which
//! is refused: such a future is dropped at once, on this thread.
//!
//! A set that is configured to end when a task panics does so after the poll of that task. Its
//! drivers are woken and panic, in that poll and in later ones. One of its tasks may be lower on
//! the stack, if it drives its own set: E2 only marks that task, and the end runs a second time
//! once its poll is over.
//!
//! # Invariants
//! - *One thread*: `state` is accessed only by the thread with the number `owner`. Numbers are not
//!   reused, so a set that is leaked and outlives its thread is accessed by no thread.
//! - *Futures stay*: every future of the set is polled and dropped by that thread. Before E4 no
//!   other thread takes entries out; after E2 no future is left.
//!
//! # Rejected
//! The pool's core with a flag on it: the set is driven by a future that any runtime may poll, or
//! none.
//!
//! # Checked by
//! `models.rs`: `a_wake_against_a_poll_is_seen_or_calls_again`,
//! `a_wake_against_completion_frees_once`, `a_wake_against_the_end_drops_the_future_on_its_thread`,
//! `an_abort_against_the_end_drops_the_future_on_its_thread`,
//! `a_push_against_the_end_leaves_nothing_behind`; weakened as `local_registers_first`,
//! `local_stops_first`, `local_closes`, `local_owner_check`.

use std::{
    future::Future,
    marker::PhantomData,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll},
};

use self::notifier::{LocalNotifier, SetDriverId};
use super::{
    prim::{UnsafeCell, clock::TimestampUnit, weakened},
    queue::{Chain, injector::Injector},
    work::{
        task::{
            arena::{Arena, Origin, Schedule},
            cell::{Label, Task},
            extra::Extra,
            handle::JoinHandle,
            poll,
        },
        thread_context::{self, blocking::BlockingPolicy},
    },
};

pub(crate) mod notifier;
pub(crate) mod context;
#[cfg(test)]
mod models;

/// Maximum number of task polls in one poll of the set. Tokio's figure, so that other tasks on the
/// thread of a set wait no longer than they do there.
const POLLS_PER_TURN: usize = 61;

/// Every 31st search for the next entry begins with `arrivals`, so that a full `fifo` does not
/// starve it. Tokio's figure too.
const ARRIVALS_FIRST: u8 = 31;

/// The owner's handle of a set of local tasks.
#[derive(Clone)]
pub(crate) struct Local {
    shared: Arc<Shared>,
    /// Makes the handle `!Send`, because it must stay on its thread.
    _not_send: PhantomData<*const ()>,
}

/// The part of a set that other threads reach.
struct Shared {
    /// The number of the set's thread.
    owner: u64,
    /// Entries that other threads placed.
    arrivals: Injector<Task>,
    notifier: LocalNotifier,
    state: UnsafeCell<LocalState>,
}

// SAFETY: `state` is accessed on the set's thread only (`owner`). The last reference may be dropped
// on any thread, but then `state` has only plain words left: E3 emptied the chain, and a set that
// was never ended keeps a reference to itself through its arena.
unsafe impl Send for Shared {}
// SAFETY: `state` is accessed on the set's thread only (`owner`); locks guard `arrivals` and
// `notifier`.
unsafe impl Sync for Shared {}

/// The part of a set that only its thread accesses.
struct LocalState {
    /// Entries that this thread placed.
    fifo: Chain<Task>,
    /// The arena of the tasks: created for the first task, closed when the set ends.
    arena: Option<NonNull<Arena>>,
    /// Number of tasks that have not completed.
    alive: usize,
    /// Counts the searches for an entry.
    searches: u8,
    /// True while a caller on this thread takes entries out, and will check again for more.
    running: bool,
    /// Set when the set has ended, or is ending: new tasks are refused.
    closed: bool,
    /// The policy: true if the panic of a task ends the set.
    ends_on_panic: bool,
    /// Set once a task has panicked under that policy.
    failed: bool,
    /// Number of drivers created so far.
    drivers: u64,
}

/// The work that is left after a turn.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// Entries are left: the driver must be polled again.
    Entries,
    /// Only tasks that wait to be woken are left.
    Tasks,
    /// All tasks have completed.
    Nothing,
}

impl Local {
    /// Creates a set for the calling thread.
    pub(crate) fn new() -> Self {
        let state = LocalState {
            fifo: Chain::new(),
            arena: None,
            alive: 0,
            searches: 0,
            running: false,
            closed: false,
            ends_on_panic: false,
            failed: false,
            drivers: 0,
        };
        let shared = Arc::new(Shared {
            owner: thread_context::thread(),
            arrivals: Injector::new(),
            notifier: LocalNotifier::new(),
            state: UnsafeCell::new(state),
        });
        Self { shared, _not_send: PhantomData }
    }

    /// Creates a task and queues it. If the set has ended, the task is cancelled at once.
    pub(crate) fn spawn<F: Future + 'static, X: Extra>(
        &self,
        future: F,
        label: Label<X>,
    ) -> JoinHandle<F::Output> {
        if self.state(|state| state.closed) {
            return self.spawn_ended(future, label);
        }
        // SAFETY: the set's thread holds the arena, this is that thread, and nothing of the arena
        // is borrowed.
        let (task, header) = unsafe { Arena::spawn(self.arena(), future, label) };
        self.state(|state| state.alive += 1);
        self.schedule(task);
        // SAFETY: `header` carries the join reference of a new task with that output type.
        unsafe { JoinHandle::new(header) }
    }

    /// Creates a task that is cancelled before its first poll, in an arena of its own. Users' code
    /// (the future's destructor) runs here, so nothing may be borrowed.
    #[cold]
    fn spawn_ended<F: Future + 'static, X: Extra>(
        &self,
        future: F,
        label: Label<X>,
    ) -> JoinHandle<F::Output> {
        let arena = Arena::new(self.shared.clone());
        // SAFETY: this function creates the arena and holds it until it is closed, and the task
        // keeps its memory until the `JoinHandle` is gone. Dropping the entry cancels the task, on
        // this thread.
        unsafe {
            let (task, header) = Arena::spawn(arena, future, label);
            arena.as_ref().refuse();
            drop(task);
            while arena.as_ref().next_to_stop().is_some() {}
            Arena::close(arena);
            JoinHandle::new(header)
        }
    }

    /// Returns an identifier for one more driver.
    pub(crate) fn driver(&self) -> SetDriverId {
        self.state(|state| {
            state.drivers += 1;
            SetDriverId(state.drivers)
        })
    }

    /// Polls a driver once: `root` first, if it has one, then tasks.
    pub(crate) fn poll<T>(
        &self,
        driver: SetDriverId,
        cx: &mut Context<'_>,
        root: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Remaining> {
        self.inside(|| {
            if !weakened!("local_registers_first") {
                self.shared.notifier.register(driver, cx.waker());
            }
            if let Poll::Ready(output) = root(cx) {
                return Ok(output);
            }
            let remaining = self.run();
            if weakened!("local_registers_first") {
                self.shared.notifier.register(driver, cx.waker());
            }
            Err(remaining)
        })
    }

    /// Removes a driver. If entries are left, the other drivers are woken for them.
    pub(crate) fn leave(&self, driver: SetDriverId) {
        self.shared.notifier.unregister(driver);
        if self.has_entries() {
            self.shared.notifier.notify();
        }
    }

    /// Sets whether, from now on, the panic of a task ends the set.
    pub(crate) fn end_on_panic(&self, ends: bool) {
        self.state(|state| state.ends_on_panic = ends);
    }

    /// Runs at most as many tasks as one turn allows.
    ///
    /// # Panics
    /// If a task panicked and the policy is that this ends the set.
    fn run(&self) -> Remaining {
        self.check();
        let now = TimestampUnit::Millis.now();
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = self.next() else { break };
            let completed = poll::run_within(task, now);
            // Saturating, because a set that ended meanwhile has reset the count to zero.
            self.state(|state| state.alive = state.alive.saturating_sub(usize::from(completed)));
            self.check();
        }
        self.sweep();
        if self.has_entries() {
            return Remaining::Entries;
        }
        let alive = self.state(|state| state.alive);
        if alive > 0 { Remaining::Tasks } else { Remaining::Nothing }
    }

    /// Panics if a task has panicked and that ends the set.
    #[inline]
    fn check(&self) {
        if self.state(|state| state.failed) {
            self.fail();
        }
    }

    /// Ends the set and panics.
    #[cold]
    fn fail(&self) -> ! {
        // The drivers are woken before the end, because the end removes their wakers and each of
        // them must panic too.
        self.shared.notifier.notify();
        self.end();
        panic!(
            "a spawned task panicked and the LocalSet is configured to shutdown on unhandled \
             panic: find the first panic above, or let the set go on with \
             `UnhandledPanic::Ignore`"
        );
    }

    /// Takes the next entry to run.
    fn next(&self) -> Option<Task> {
        let arrivals_first = self.state(|state| {
            state.searches = state.searches.wrapping_add(1);
            state.searches.is_multiple_of(ARRIVALS_FIRST)
        });
        let own = || self.state(|state| state.fifo.pop_front());
        let sent = || self.shared.arrivals.pop();
        if arrivals_first { sent().or_else(own) } else { own().or_else(sent) }
    }

    /// Returns true if there are entries to run.
    fn has_entries(&self) -> bool {
        self.state(|state| !state.fifo.is_empty()) || !self.shared.arrivals.is_empty()
    }

    /// Reclaims the memory of tasks that other threads released last.
    fn sweep(&self) {
        if let Some(arena) = self.state(|state| state.arena) {
            // SAFETY: the set's thread holds the arena, this is that thread, and nothing of the
            // arena is borrowed.
            unsafe { Arena::sweep(arena) };
        }
    }

    /// Ends the set: steps E1 to E5. Called a second time for a task that was running during the
    /// first.
    pub(crate) fn end(&self) {
        self.inside(|| {
            let arena = self.state(|state| {
                state.closed = true;
                state.arena.take()
            });
            if weakened!("local_stops_first") {
                self.empty_queues();
            }
            if let Some(arena) = arena {
                // SAFETY: the set's thread holds the arena, this is that thread, and nothing of the
                // arena is borrowed. An arena that refuses tasks keeps its cells until it is
                // closed, so `task` stays valid.
                unsafe {
                    arena.as_ref().refuse();
                    while let Some(task) = arena.as_ref().next_to_stop() {
                        poll::stop(task);
                    }
                }
            }
            self.state(|state| state.alive = 0);
            self.empty_queues();
            if let Some(arena) = arena {
                // SAFETY: this thread holds the arena, nothing of it is borrowed, and `take` above
                // removed it from `state`, so it is closed once and not used again.
                unsafe { Arena::close(arena) };
            }
        });
        self.shared.notifier.clear();
    }

    /// Empties both queues: steps E3 and E4. All entries are of stopped tasks, so dropping them at
    /// most frees memory, or, on this thread, drops the future of a task that was running.
    fn empty_queues(&self) {
        while let Some(task) = self.state(|state| state.fifo.pop_front()) {
            drop(task);
        }
        if !weakened!("local_closes") {
            self.shared.arrivals.close();
        }
        while let Some(task) = self.shared.arrivals.pop() {
            drop(task);
        }
    }

    /// Calls `f` inside the set, and marks the set as running: the caller checks for entries
    /// afterwards, so no driver is woken for what this thread schedules meanwhile. Where plain
    /// blocking is not allowed, blocking in place is forbidden too, because the other tasks of the
    /// set would wait.
    fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        struct RestoreRunning<'a> {
            set: &'a Local,
            running: bool,
            blocking: BlockingPolicy,
        }
        impl Drop for RestoreRunning<'_> {
            fn drop(&mut self) {
                self.set.state(|state| state.running = self.running);
                thread_context::blocking::set_policy(self.blocking);
            }
        }
        let running = self.state(|state| std::mem::replace(&mut state.running, true));
        let blocking = thread_context::blocking::policy();
        let _restore = RestoreRunning { set: self, running, blocking };
        if blocking != BlockingPolicy::Allowed {
            thread_context::blocking::set_policy(BlockingPolicy::Forbidden);
        }
        context::within(self, f)
    }

    /// Queues an entry from the set's thread.
    fn schedule(&self, task: Task) {
        // SAFETY: a `Local` does not leave its thread, so this is the set's thread.
        unsafe { self.shared.push_own(task) };
    }

    /// Returns the arena of the set's tasks, creating it for the first one.
    fn arena(&self) -> NonNull<Arena> {
        if let Some(arena) = self.state(|state| state.arena) {
            return arena;
        }
        let arena = Arena::new(self.shared.clone());
        self.state(|state| *state.arena.insert(arena))
    }

    /// Calls `f` with the part that only the set's thread accesses.
    #[inline]
    fn state<R>(&self, f: impl FnOnce(&mut LocalState) -> R) -> R {
        // SAFETY: 1. A `Local` does not leave its thread, so this is the set's thread. 2. Every
        // closure passed here only accesses fields of `state`.
        unsafe { self.shared.state(f) }
    }
}

impl Shared {
    /// Calls `f` with the part that only the set's thread accesses.
    ///
    /// # Safety
    /// 1. The caller is on the set's thread.
    /// 2. `f` runs no code but ours, and does not call this function again.
    #[inline]
    unsafe fn state<R>(&self, f: impl FnOnce(&mut LocalState) -> R) -> R {
        // SAFETY: no other thread has a reference (obligation 1), and no caller up the stack has
        // one (obligation 2).
        self.state.with_mut(|state| f(unsafe { &mut *state }))
    }

    /// Queues an entry that the set's own thread schedules.
    ///
    /// # Safety
    /// 1. The caller is on the set's thread.
    unsafe fn push_own(&self, task: Task) {
        // SAFETY: 1. Our own obligation 1: the caller is on the set's thread. 2. `push_back` only
        // links the entry into our chain.
        let running = unsafe {
            self.state(|state| {
                state.fifo.push_back(task);
                state.running
            })
        };
        if !running {
            self.notifier.notify();
        }
    }

    /// Returns true if the calling thread is the set's thread.
    fn is_owner_thread(&self) -> bool {
        self.owner == thread_context::thread() || weakened!("local_owner_check")
    }
}

impl Schedule for Shared {
    fn schedule(&self, task: Task, _origin: Origin) {
        if self.is_owner_thread() {
            // SAFETY: `is_owner_thread` has just returned true, so this is the set's thread.
            return unsafe { self.push_own(task) };
        }
        match self.arrivals.push(task) {
            Ok(()) => self.notifier.notify(),
            // The set has ended and all its tasks are complete, so this entry is the last that is
            // left of one. Dropping it frees the memory.
            Err(task) => drop(task),
        }
    }

    fn cells_wait(&self, _arena: NonNull<Arena>) {
        // Wakes the drivers, because every turn sweeps, also one that finds no entry.
        self.notifier.notify();
    }

    fn task_panicked(&self) {
        // Always true, because futures are polled on the set's thread only.
        if self.is_owner_thread() {
            // SAFETY: 1. `is_owner_thread` has just returned true. 2. The closure only writes a
            // flag.
            unsafe { self.state(|state| state.failed |= state.ends_on_panic) };
        }
    }
}
