//! Moves a core from one thread to another: from a worker that is about to block, or, for the
//! monitor, from one that is stuck.
//!
//! # Protocol
//! ```text
//! H1 the worker gives its core up and leaves it in a `Handoff`
//! H2 it requests a thread from the layer above (`SpareThreads`), which comes for the core
//! H3 it blocks
//! H4 it takes the core back, if it is still there
//! ```
//! The lock of the `Handoff` decides between H4 and the thread of H2: one of them has the core. A
//! worker that comes too late ends its poll without one: tasks that it wakes or spawns go to the
//! injector like those of outside threads, and afterwards it is no longer a worker. The task in the
//! LIFO slot is in the ring by then, where others can steal it while no thread has the core.
//!
//! # Bounds
//! H2 finds a thread as long as fewer spare threads run cores that others left, or were requested
//! for that, than `max_blocking_threads` plus the number of cores (`blocking/core_threads.rs`). Past
//! that, or if the system has no thread, the core lies there until its worker comes back for it
//! (H4), or until another thread takes it that has lost its core, or came too late for one, if the
//! bound permits that by then. So of any number of tasks that block in place at once
//! at most `max_blocking_threads` plus twice the number of workers do at a time, besides stuck polls,
//! and the others wait for them (docs/design/bounds.md).
//!
//! A core that was taken from a thread that is stuck in a poll (`preempt`) is left in a `Handoff`
//! in the same way, by the thread that took it; H4 is done at the end of that poll.
//!
//! A core is also left in a `Handoff` for the thread that is started for it, and by user code that
//! blocks in place in a hook, where no thread is requested: the worker then takes it back, unless
//! the pool was stopped meanwhile.
//!
//! # Shutdown
//! The thread that has the core ends it. A core in a `Handoff` must not lie there while its worker
//! blocks, because its tasks may be what the worker waits for:
//! ```text
//! the worker                              the thread that stops the pool
//! H1 stores the `Handoff` in the core's   T1 sets `stopping`
//!    `Remote::handoff` (a lock)           T2 reads `Remote::handoff` (the same lock), and
//! H2 requests a thread; if there is none,    has the core ended on another thread
//!    it reads `stopping`, and if it is set
//!    has the core ended on another thread
//! ```
//! The lock of `Remote::handoff` orders H1 and T2. If H1 comes first, T2 finds the core; if T2
//! does, H2 sees `stopping`. Either may find that the other has taken the core out already.
//!
//! # Invariants
//! A core is in one place: held by a thread, or in one `Handoff`, or with the monitor between the
//! two.
//!
//! # Checked by
//! `a_stop_against_a_core_in_a_handoff_ends_it_once`; weakened as `handoff_sees_stop`.
//! tests/it/task/block_in_place.rs, tests/it/runtime/hostile_blocking.rs and
//! tests/it/runtime/shutdown_waits.rs.

use std::sync::{Arc, Weak};

use super::offload::Offloaded;
use crate::engine::pool::{
    Pool,
    core::Core,
    held_core::{self, CoreGuard},
    stop,
    worker::{self, End},
};
use crate::engine::{
    prim::{Mutex, lock, weakened},
    work::{
        task::budget::{self, Budget},
        thread_context::{self, blocking::BlockingPolicy},
    },
};

/// The layer above, which finds threads for cores and work for threads that lost their core.
pub(crate) trait SpareThreads: Send + Sync {
    /// Finds a thread that runs the core in `handoff`, if it is still there then. Returns false if
    /// there is none.
    #[must_use]
    fn request_for_core(self: Arc<Self>, handoff: Arc<Handoff>) -> bool;

    /// Finds a thread for the work, or returns the work if there is none. No user code runs, and
    /// the work does not wait for others.
    fn request_thread(self: Arc<Self>, spare_work: SpareWork) -> Result<(), SpareWork>;

    /// Gives the work to a thread that is idle already, or returns it if there is none.
    fn request_idle_thread(self: Arc<Self>, spare_work: SpareWork) -> Result<(), SpareWork>;

    /// Returns true if no thread can be found any more.
    fn is_ending(&self) -> bool;

    /// Lets threads that were workers end, because the worker pool has stopped although its runtime
    /// still has an owner. That owner may be a thread-local of such a thread.
    fn release_workers(&self);

    /// Makes the calling thread, which was a worker, a thread of this layer for as long as it is
    /// needed there. `start` is the `Handoff` in which it found its core.
    fn adopt_this_thread(self: Arc<Self>, start: &Handoff);
}

/// The work for which a thread without a core is requested.
#[derive(Clone)]
pub(crate) enum SpareWork {
    /// Runs a core, if it is still there then.
    Core(Arc<Handoff>),
    /// Polls a task, once.
    Poll(Arc<Offloaded>),
}

/// A core on its way from one thread to another.
pub(crate) struct Handoff {
    pool: Weak<Pool>,
    core: Mutex<Option<Box<Core>>>,
    /// True if the core's own thread is about to come for it, because it is starting or in a hook.
    pub(crate) is_reserved: bool,
}

impl Handoff {
    /// Leaves the core where any thread may come for it.
    pub(crate) fn new(core: Box<Core>) -> Arc<Self> {
        Self::with_core(core, false)
    }

    /// Leaves the core where only its worker comes for it, or a shutdown that has waited for that.
    pub(crate) fn reserved(core: Box<Core>) -> Arc<Self> {
        Self::with_core(core, true)
    }

    fn with_core(core: Box<Core>, is_reserved: bool) -> Arc<Self> {
        let (pool, index) = (core.pool.clone(), core.index);
        let handoff = Arc::new(Self {
            pool: Arc::downgrade(&pool),
            core: Mutex::new(Some(core)),
            is_reserved,
        });
        *lock(&pool.remotes[index].handoff) = Arc::downgrade(&handoff);
        handoff
    }

    /// Takes the core, if no other thread has.
    pub(crate) fn take(&self) -> Option<Box<Core>> {
        let mut core = lock(&self.core).take()?;
        // The time in between counts towards no poll.
        core.clock.restart(&core.pool.scan_count);
        // No thread has fired the timers of this core's wheel meanwhile.
        core.maintenance_is_due = true;
        Some(core)
    }

    /// Returns true if the core is still there.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.core).is_some()
    }

    /// Ends the core on this thread, if no other thread has taken it. User code runs.
    fn end(&self) {
        if let Some(core) = self.take() {
            stop::end_core(core);
        }
    }

    /// Runs the core on this thread, if no other thread has taken it, until it is ended or lost.
    pub(crate) fn run(&self) {
        if let Some(core) = self.take() {
            run_left_core(core);
        }
    }

    /// Returns true if a core of the same pool waits for a thread in any `Handoff`.
    pub(crate) fn core_waits(&self) -> bool {
        let is_free = |handoff: Arc<Self>| !handoff.is_reserved;
        self.pool.upgrade().is_some_and(|pool| pool.waiting_cores().any(is_free))
    }

    /// Takes a core of the same pool that waits in any `Handoff`.
    pub(crate) fn take_waiting_core(&self) -> Option<Box<Core>> {
        self.pool.upgrade()?.take_waiting_core()
    }
}

/// Runs a core that its worker has left on this thread, until it is ended or lost.
pub(crate) fn run_left_core(core: Box<Core>) {
    // In both cases the thread has no core afterwards.
    let (End::Stopped | End::CoreLost) = worker::run(core);
}

/// The body of a worker's thread. If the thread loses its core, it becomes a thread of the layer
/// above, which also runs cores that no thread was found for.
pub(crate) fn run_worker(start: &Handoff) {
    // The pool may have been stopped in the hook at the thread's start.
    let Some(core) = start.take() else { return };
    let pool = core.pool.clone();
    if worker::run(core) == End::CoreLost
        && let Some(spare_threads) = pool.spare_threads()
    {
        spare_threads.adopt_this_thread(start);
    }
}

impl Pool {
    /// Sets the layer that finds threads for cores; must be called at most once.
    pub(crate) fn set_spare_threads(&self, spare_threads: Weak<dyn SpareThreads>) {
        assert!(
            self.spare_threads.set(spare_threads).is_ok(),
            "the spare threads of a pool are set once"
        );
    }

    pub(crate) fn spare_threads(&self) -> Option<Arc<dyn SpareThreads>> {
        self.spare_threads.get().and_then(Weak::upgrade)
    }

    /// Has a core that was left in `handoff`, and that no thread comes for, ended on another thread
    /// if the pool is stopping (the end of H2).
    fn end_if_stopping(self: &Arc<Self>, handoff: Arc<Handoff>) {
        if self.is_stopping() && !weakened!("handoff_sees_stop") {
            // Never on this thread, because its poll may hold a lock that a destructor needs. If
            // there is no other thread, the worker takes the core back when it has blocked (H4),
            // and ends it after its poll.
            self.end_waiting_core(handoff, false);
        }
    }

    /// Ends a core that was left in `handoff`, if no thread has come for it, on another thread: one
    /// of the spare threads, or a helper. If the system has none, the core ends on this thread if
    /// `may_end_here` is true, and stays where it is otherwise.
    pub(crate) fn end_waiting_core(self: &Arc<Self>, handoff: Arc<Handoff>, may_end_here: bool) {
        // A model has no spare threads and starts no helpers: its own threads end the core.
        if !cfg!(blitz_loom) {
            if !handoff.is_full()
                || self
                    .spare_threads()
                    .is_some_and(|spare_threads| spare_threads.request_for_core(handoff.clone()))
            {
                return;
            }
            let there = handoff.clone();
            if self.start_helper(move || there.end()) {
                return;
            }
        }
        if may_end_here || cfg!(blitz_loom) {
            handoff.end();
        }
    }

    /// Takes a core that waits for a thread.
    fn take_waiting_core(&self) -> Option<Box<Core>> {
        self.waiting_cores()
            .filter(|handoff| !handoff.is_reserved)
            .find_map(|handoff| handoff.take())
    }

    /// Iterates over the cores that lie in a `Handoff`.
    pub(crate) fn waiting_cores(&self) -> impl Iterator<Item = Arc<Handoff>> {
        let handoffs = self.remotes.iter().filter_map(|remote| lock(&remote.handoff).upgrade());
        handoffs.filter(|handoff| handoff.is_full())
    }
}

/// Returns true if this thread is one that other tasks depend on and that may hand its core off.
#[cfg(feature = "parallel")]
pub(crate) fn is_worker() -> bool {
    thread_context::blocking::policy() == BlockingPolicy::InPlaceOnly
}

/// A guard that lets this thread block, without a budget and without a core, while it lives.
pub(crate) struct Blocked {
    budget: Budget,
    handoff: Option<Arc<Handoff>>,
    /// For reports: the pool of the core, and the key of this thread in `Pool::blocked`.
    listed: Option<(Arc<Pool>, u64)>,
}

impl Blocked {
    /// Hands the core of this thread off if other tasks depend on the thread and it may do so, for
    /// code that blocks without `block_in_place`. A thread that may not hand off just blocks.
    #[cfg(feature = "parallel")]
    pub(crate) fn if_worker() -> Option<Self> {
        is_worker().then(Self::new)
    }

    /// Hands the core off (H1 and H2), if this thread holds one. User code runs: the function that
    /// names threads.
    pub(crate) fn new() -> Self {
        let budget = budget::replace(Budget::unlimited());
        thread_context::blocking::set_policy(BlockingPolicy::Allowed);
        let mut blocked = Self { budget, handoff: None, listed: None };
        if let Some(core) = held_core::take_core() {
            blocked.listed = thread_context::task().map(|task| {
                // SAFETY: obligation 1 of `add`: this thread runs the task, which keeps it
                // alive.
                let number = unsafe { core.pool.blocked.add(task) };
                (core.pool.clone(), number)
            });
            if thread_context::task().is_some() {
                blocked.hand_off(core);
            } else {
                // Outside of a poll (in a hook) the worker relies on its core, until the pool
                // stops; but the code that blocks may hold another core meanwhile.
                let pool = core.pool.clone();
                let handoff = Handoff::reserved(core);
                blocked.handoff = Some(handoff.clone());
                pool.end_if_stopping(handoff);
            }
        }
        blocked
    }

    fn hand_off(&mut self, mut core: Box<Core>) {
        core.empty_lifo();
        let pool = core.pool.clone();
        let handoff = Handoff::new(core);
        self.handoff = Some(handoff.clone());
        // Checked only now, because no thread could steal from the core before it was left.
        if pool.has_visible_work() {
            pool.wake_one();
        }
        let is_requested = pool
            .spare_threads()
            .is_some_and(|spare_threads| spare_threads.request_for_core(handoff.clone()));
        if !is_requested {
            pool.end_if_stopping(handoff);
        }
    }
}

impl Drop for Blocked {
    /// Takes the core back, if it is still there (H4).
    fn drop(&mut self) {
        if let Some((pool, number)) = self.listed.take() {
            pool.blocked.remove(number);
        }
        let _inside = thread_context::inside();
        if let Some(core) = self.handoff.take().and_then(|handoff| handoff.take()) {
            let pool = core.pool.clone();
            // `CoreGuard::new` installs the core in this thread; the worker's own `CoreGuard`,
            // which is empty, stands for it again.
            let CoreGuard { .. } = CoreGuard::new(core);
            pool.notify_monitor();
        }
        budget::set(self.budget);
        thread_context::blocking::set_policy(BlockingPolicy::InPlaceOnly);
    }
}

impl Core {
    /// Moves the task in the LIFO slot to the ring, where others can steal it.
    pub(crate) fn empty_lifo(&mut self) {
        if let Some(task) = self.remote().lifo.take() {
            self.push_ring(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Handoff;
    use crate::engine::{
        pool::{Pool, stop::tests::config},
        prim::{model, thread},
    };

    /// A worker leaves its core and then waits for the end of the pool, like a task that blocks in
    /// place for another task of it.
    #[test]
    fn a_stop_against_a_core_in_a_handoff_ends_it_once() {
        model(|| {
            let pool = Pool::new(config(1, true));
            let core = pool.free_cores.take().expect("no thread has it");
            let worker = thread::spawn({
                let pool = pool.clone();
                move || {
                    let handoff = Handoff::new(core);
                    pool.end_if_stopping(handoff.clone());
                    assert!(pool.join(None));
                    // The core is gone by now, so the worker does not find it again.
                    assert!(handoff.take().is_none());
                }
            });
            pool.stop();
            worker.join().unwrap();
        });
    }
}
