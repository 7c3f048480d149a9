//! A pool without threads of its own: the threads that call `block_on` run its tasks.
//!
//! # Protocol
//! There is one core. `block_on` takes it, runs tasks with it while it waits for its own future,
//! and puts it back. A second caller meanwhile only polls its own future, asleep on a parker of its
//! own; when the core comes back, one of the waiting callers is unparked, and takes the core if it
//! still waits.
//!
//! # Invariants
//! If a core is free and callers wait, one of them has a token or is awake, because a thread that
//! puts the core back, or leaves without having taken it, unparks the next waiter.
//!
//! # Checked by
//! `a_free_core_finds_a_waiter`, `a_waiter_that_comes_first_leaves_the_queue`,
//! `a_second_wake_of_a_block_on_is_not_lost`; weakened as `drive_passes_on`, `drive_first_leaves`,
//! `root_sees_second_wake`.

use std::{
    collections::VecDeque,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use super::{
    Pool,
    core::Core,
    held_core::{self, CoreGuard},
    park, poll_times,
    poller::{self, Maintenance},
    stop,
};
use crate::engine::{
    preempt::{WatchRecord, block_on::WatchedBlockOn},
    prim::{
        AtomicBool, Mutex,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        lock,
        parker::Parker,
        weakened,
    },
    work::{
        task::{
            arena,
            budget::{self, Budget},
        },
        thread_context::{CountingYields, LeaseGuard},
    },
};

/// The cores that no thread holds, and the wait queue of threads that need one.
pub(crate) struct FreeCores<C = Box<Core>> {
    state: Mutex<State<C>>,
}

struct State<C> {
    cores: Vec<C>,
    waiters: VecDeque<Arc<Parker>>,
}

impl<C> FreeCores<C> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { cores: Vec::new(), waiters: VecDeque::new() }) }
    }

    pub(crate) fn fill(&self, cores: impl Iterator<Item = C>) {
        // The first core must be taken first.
        let mut cores: Vec<_> = cores.collect();
        cores.reverse();
        lock(&self.state).cores = cores;
    }

    pub(crate) fn take(&self) -> Option<C> {
        lock(&self.state).cores.pop()
    }

    /// Takes a core, or enters the wait queue.
    fn take_or_wait(&self, parker: &Arc<Parker>) -> Option<C> {
        let mut state = lock(&self.state);
        let core = state.cores.pop();
        let is_same = |waiter: &Arc<Parker>| Arc::ptr_eq(waiter, parker);
        if core.is_none() && !state.waiters.iter().any(is_same) {
            state.waiters.push_back(parker.clone());
        }
        if core.is_some() && !weakened!("drive_first_leaves") {
            // A thread that comes before the one that was unparked must leave the wait queue.
            state.waiters.retain(|waiter| !is_same(waiter));
        }
        core
    }

    pub(crate) fn put_back(&self, core: C) {
        let mut state = lock(&self.state);
        state.cores.push(core);
        state.unpark_next();
    }

    /// Leaves the wait queue. If a core is free, the token for it may have gone to this thread, so
    /// the next waiter is unparked.
    fn leave(&self, parker: &Arc<Parker>) {
        let mut state = lock(&self.state);
        state.waiters.retain(|waiter| !Arc::ptr_eq(waiter, parker));
        if !state.cores.is_empty() && !weakened!("drive_passes_on") {
            state.unpark_next();
        }
    }
}

impl<C> State<C> {
    /// Unparks the first waiter. Parkers are the engine's own, so no user code runs.
    fn unpark_next(&mut self) {
        if let Some(parker) = self.waiters.pop_front() {
            parker.unpark();
        }
    }
}

/// The waker of a `block_on`: a flag, and the parker on which the thread may sleep.
struct RootWaker {
    woken: AtomicBool,
    parker: Arc<Parker>,
    /// The pool, if the thread may be parked with its core 0.
    pool: Option<Arc<Pool>>,
}

impl RootWaker {
    /// Returns true if the root future was woken since the last call, and clears the flag.
    fn take_woken(&self) -> bool {
        // Check without a write first, because most of the time the flag is clear.
        if !self.is_woken() {
            return false;
        }
        // AcqRel: what was done before the wake-up is seen by the poll. Pairs with the Release in
        // `wake_by_ref`.
        self.woken.swap(false, AcqRel)
    }

    fn is_woken(&self) -> bool {
        // Acquire: pairs with the Release in `wake_by_ref`, like `take_woken`.
        self.woken.load(Acquire)
    }
}

impl Wake for RootWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: publishes what was done before the wake-up. Pairs with `take_woken` and
        // `wait_for`.
        if self.woken.swap(true, Release) {
            return;
        }
        // The thread sleeps on one of two parkers; a token too many does no harm.
        self.parker.unpark();
        if let Some(pool) = &self.pool {
            pool.unpark(0);
        }
    }
}

/// Waits for `future` on this thread, which runs nothing else. Forced yields of the future are
/// counted for `pool`.
///
/// # Panics
/// If a task of `pool` panicked and that ends it.
#[track_caller]
pub(crate) fn wait_for<F: Future>(pool: Option<&Arc<Pool>>, future: F) -> F::Output {
    // SAFETY: obligation 1 of `counting`: `pool` is borrowed for longer than the value lives.
    let _counting = pool.map(|pool| unsafe { counting(pool) });
    let _hidden = LeaseGuard::hidden();
    let watched_block_on = pool.and_then(WatchedBlockOn::new);
    let _local_tasks_guard = watched_block_on.as_ref().map(WatchedBlockOn::attach);
    let root = Arc::new(RootWaker {
        woken: AtomicBool::new(false),
        parker: Arc::new(Parker::new()),
        pool: None,
    });
    let waker = Waker::from(root.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    let _caller = pool.and_then(|pool| pool.unhandled.register(&root.parker));
    loop {
        check(pool);
        if let Poll::Ready(output) = poll_root(future.as_mut(), &mut cx) {
            // The future may be ready because of the task that panicked.
            check(pool);
            return output;
        }
        watched_block_on.iter().for_each(WatchedBlockOn::set_idle);
        match pool {
            Some(pool) => park_in(pool, &root),
            None => root.parker.park(),
        }
        let order = if weakened!("root_sees_second_wake") { Relaxed } else { AcqRel };
        // AcqRel: a wake-up that found the flag set left no token, so what was done before it must
        // be seen by this poll. Pairs with `wake_by_ref`.
        root.woken.swap(false, order);
    }
}

/// Parks a `block_on` of a pool with tasks that other threads run. No thread maintains the driver
/// and the timers of a pool that is stopping, so everything that waits there is cancelled first (N4
/// of `stop`).
fn park_in(pool: &Pool, root: &RootWaker) {
    let _waiting = pool.wait_as_root();
    if pool.is_stopping() {
        pool.cancel_waits();
    }
    root.parker.park();
}

/// A `block_on` that is counted as waiting until this is dropped.
struct WaitingRoot<'a>(&'a Pool);

impl Drop for WaitingRoot<'_> {
    fn drop(&mut self) {
        // Relaxed: a thread that reads the count checks it again later.
        self.0.waiting_roots.fetch_sub(1, Relaxed);
    }
}

impl Pool {
    fn wait_as_root(&self) -> WaitingRoot<'_> {
        // Relaxed: a thread that reads the count checks it again later.
        self.waiting_roots.fetch_add(1, Relaxed);
        WaitingRoot(self)
    }

    /// Returns true if a `block_on` of this pool waits.
    pub(super) fn has_waiting_roots(&self) -> bool {
        // Relaxed: the caller checks again later.
        self.waiting_roots.load(Relaxed) > 0
    }
}

/// Waits for `future` and runs the pool's tasks meanwhile, when the core is free.
///
/// # Panics
/// If a task of `pool` panicked and that ends it, like [`wait_for`].
#[track_caller]
pub(crate) fn drive<F: Future>(pool: &Arc<Pool>, future: F) -> F::Output {
    // SAFETY: obligation 1 of `counting`: `pool` is borrowed for longer than the value lives.
    let _counting = unsafe { counting(pool) };
    let _hidden = LeaseGuard::hidden();
    pool.assert_owner_thread();
    let root = Arc::new(RootWaker {
        woken: AtomicBool::new(true),
        parker: Arc::new(Parker::new()),
        pool: Some(pool.clone()),
    });
    let waker = Waker::from(root.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    let _waiter = CoreWaiter { cores: &pool.free_cores, parker: &root.parker };
    let _caller = pool.unhandled.register(&root.parker);
    loop {
        pool.unhandled.check();
        if let Some(core) = pool.free_cores.take_or_wait(&root.parker) {
            let driven = DrivenCore::new(core);
            return driven.run(&root, future, &mut cx);
        }
        if root.take_woken()
            && let Poll::Ready(output) = poll_root(future.as_mut(), &mut cx)
        {
            // The future may be ready because of the task that panicked.
            pool.unhandled.check();
            return output;
        }
        if !root.is_woken() {
            root.parker.park();
        }
    }
}

/// A position in the wait queue for the core. The thread leaves the queue even if the future
/// panics.
struct CoreWaiter<'a> {
    cores: &'a FreeCores,
    parker: &'a Arc<Parker>,
}

impl Drop for CoreWaiter<'_> {
    fn drop(&mut self) {
        self.cores.leave(self.parker);
    }
}

/// Counts forced yields of this thread for the pool, until the returned value is dropped.
///
/// # Safety
/// 1. `pool` lives until the returned value is dropped, on this thread and in order.
unsafe fn counting(pool: &Pool) -> CountingYields {
    // SAFETY: obligation 1: the caller keeps `pool`, and so the counter in it, alive.
    unsafe { CountingYields::new(pool.outside_counters.forced_yields().word()) }
}

/// Panics if a task of the pool panicked and that ends the pool (B2 of `unhandled_panic`).
#[track_caller]
fn check(pool: Option<&Arc<Pool>>) {
    if let Some(pool) = pool {
        pool.unhandled.check();
    }
}

fn poll_root<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    budget::with_budget(Budget::untimed(), || future.poll(cx))
}

/// A core held by a `block_on`; it is put back even if the future panics.
struct DrivenCore {
    pool: Arc<Pool>,
    guard: Option<CoreGuard>,
    /// Sets the thread-local state of another runtime aside, because a `block_on` may run inside a
    /// task of it.
    _lease_guard: LeaseGuard,
    /// Dropped after `_lease_guard`.
    watch_record: Option<Arc<WatchRecord>>,
    /// True if the monitor was notified that there is something to run.
    busy: bool,
}

impl DrivenCore {
    fn new(core: Box<Core>) -> Self {
        let pool = core.pool.clone();
        let watch_record = WatchRecord::begin(&pool, core.index);
        // SAFETY: obligation 1 of `LeaseGuard::new`: the watch record, which owns the lease, is a
        // field that is declared after `_lease_guard` and so is dropped after it.
        let _lease_guard = unsafe {
            LeaseGuard::new(watch_record.as_ref().map(|watch_record| watch_record.lease()))
        };
        Self { guard: Some(CoreGuard::new(core)), pool, _lease_guard, watch_record, busy: false }
    }

    #[track_caller]
    fn run<F: Future>(
        mut self,
        root: &Arc<RootWaker>,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> F::Output {
        loop {
            // A fiber panics on a thread of its own, so this is checked in each round.
            #[cfg(feature = "fiber")]
            if self.pool.unhandled.has_happened() {
                self.end();
                self.pool.unhandled.check();
            }
            if root.take_woken() {
                // The root's own time is not limited; but the root may poll a set of tasks, which
                // is watched.
                self.set_busy();
                if let Poll::Ready(output) = poll_root(future.as_mut(), cx) {
                    return output;
                }
                // A root that wakes itself all the time must not starve events and timers.
                self.maintain_if(Core::count_root_poll);
            }
            // A woken root has its turn when nothing is queued but tasks that have yielded, and
            // after a tick at the latest. So it sees the effects of the tasks that were woken
            // together with it, as on Tokio, and tasks that yield do not starve it.
            let mut ran = 0;
            while ran < self.pool.config.tick_polls {
                let next = held_core::with_core(|core| {
                    let next = core.next().or_else(|| core.next_deferred(root.is_woken()));
                    Some((next?, core.clock.now_ms()))
                });
                let Some((task, now)) = next else { break };
                self.set_busy();
                if poll_times::run(&self.pool, task, now) {
                    held_core::with_core(|core| core.counters().completed.add(1));
                    // A task that panicked has completed, so this is checked only then.
                    if self.pool.unhandled.has_happened() {
                        self.end();
                        self.pool.unhandled.check();
                    }
                }
                ran += 1;
                self.maintain_if(Core::take_maintenance_due);
            }
            held_core::with_core(Core::undefer);
            if held_core::with_core(Core::take_tick) {
                arena::sweep_held_arena();
            }
            if ran == 0 && root.is_woken() {
                // The root has yielded and there is no task to run, so it can only have yielded to
                // events and timers.
                self.maintain_if(|_| true);
            } else if ran < self.pool.config.tick_polls && !root.is_woken() {
                self.set_idle();
                park::park(&self.pool, 0, || root.is_woken());
                // A worker that was reserved for work counts as searching; there is no other
                // worker to wake.
                held_core::with_core(|core| {
                    if std::mem::take(&mut core.searching) {
                        let _ = core.pool.idle.stop_searching();
                    }
                });
            }
        }
    }
}

impl DrivenCore {
    /// Polls the driver and fires timers, if `is_due` returns true.
    fn maintain_if(&self, is_due: impl FnOnce(&mut Core) -> bool) {
        if held_core::with_core(is_due) {
            poller::maintain(&self.pool, 0, Maintenance::BetweenTasks);
        }
    }

    /// Notifies the monitor that a task is about to run, so that it watches the poll.
    #[inline]
    fn set_busy(&mut self) {
        if let Some(watch_record) = self.watch_record.as_ref().filter(|_| !self.busy) {
            watch_record.set_busy(&self.pool);
            self.busy = true;
        }
    }

    fn set_idle(&mut self) {
        if let Some(watch_record) = &self.watch_record {
            watch_record.set_idle();
            self.busy = false;
        }
    }

    /// Ends the core, and with it every task, on this thread.
    #[cold]
    fn end(&mut self) {
        let guard = self.guard.take().expect("a core is ended once");
        stop::end_core(guard.release());
    }
}

impl Drop for DrivenCore {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            self.pool.free_cores.put_back(guard.release());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc as Plain, task::Poll};

    use super::FreeCores;
    use crate::engine::prim::{
        Arc, AtomicUsize,
        Ordering::{Acquire, Release},
        model, model_deeper,
        parker::Parker,
        thread,
    };

    /// One thread waits for the core until it gets it, the other gives up at once; the core comes
    /// back while both are in the wait queue.
    #[test]
    fn a_free_core_finds_a_waiter() {
        model(|| {
            let cores = Arc::new(FreeCores::new());
            let impatient = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    match cores.take_or_wait(&parker) {
                        Some(core) => cores.put_back(core),
                        None => cores.leave(&parker),
                    }
                }
            });
            let patient = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    loop {
                        if let Some(core) = cores.take_or_wait(&parker) {
                            return cores.put_back(core);
                        }
                        parker.park();
                    }
                }
            });
            cores.put_back(7);
            impatient.join().unwrap();
            patient.join().unwrap();
            assert_eq!(cores.take(), Some(7));
        });
    }

    /// Two sources wake one `block_on`. The second may find the flag still set and leave no token:
    /// then what came before it must be seen.
    #[test]
    fn a_second_wake_of_a_block_on_is_not_lost() {
        model(|| {
            let flags = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let mut threads = Vec::new();
            super::wait_for(
                None,
                std::future::poll_fn(|cx| {
                    if threads.is_empty() {
                        threads.extend((0..2).map(|index| {
                            let (flags, waker) = (flags.clone(), cx.waker().clone());
                            thread::spawn(move || {
                                // Release: pairs with the Acquire below.
                                flags[index].store(1, Release);
                                waker.wake();
                            })
                        }));
                    }
                    // Acquire: pairs with the Release above.
                    let all = flags.iter().all(|flag| flag.load(Acquire) == 1);
                    if all { Poll::Ready(()) } else { Poll::Pending }
                }),
            );
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    /// One waiter is woken by its own future, takes the core before the waiter that was unparked,
    /// uses it and leaves.
    #[test]
    fn a_waiter_that_comes_first_leaves_the_queue() {
        model_deeper(|| {
            let cores = Arc::new(FreeCores::new());
            let first = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    for _ in 0..2 {
                        if let Some(core) = cores.take_or_wait(&parker) {
                            return cores.put_back(core);
                        }
                    }
                    cores.leave(&parker);
                }
            });
            let patient = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    loop {
                        if let Some(core) = cores.take_or_wait(&parker) {
                            return cores.put_back(core);
                        }
                        parker.park();
                    }
                }
            });
            cores.put_back(7);
            first.join().unwrap();
            patient.join().unwrap();
            assert_eq!(cores.take(), Some(7));
        });
    }
}
