//! The run queues of one carrier: how its fibers are woken, polled and ended.
//!
//! A *carrier* is a thread that runs fibers and nothing else, and its [`FiberQueue`] is the part of
//! it that other threads reach. A fiber is a task with a future that, once polled, must stay on its
//! thread, because its stack may hold values that are not `Send`, and references to thread-locals,
//! of which compilers keep the addresses. A queue does not depend on stacks: it keeps its tasks on
//! their thread.
//!
//! # Protocol
//! A queue entry that the carrier itself places goes to `fifo`, which only the carrier touches. An
//! entry that another thread places goes to `arrivals`.
//! ```text
//! A thread that wakes or spawns        The carrier
//! P1 pushes the entry to `arrivals`    W1 checks both queues, finds nothing
//! P2 leaves a token                    W2 takes a token, or sleeps until there is one
//! ```
//! A token is never lost (`prim/parker.rs`): if W1 missed the entry, P2 comes after the last token
//! that W2 took, and so W2 finds it and W1 comes again. W1 then sees what P1 did, because a token
//! is left with Release and taken with Acquire.
//!
//! A stop is a flag and a token, in this order. The steps of the end, all of them on the carrier:
//! ```text
//! E1 refuse spawns: spawning takes the lock of `spawn_state`, and is refused from now on
//! E2 stop every listed task: a fiber that was suspended is unwound here
//! E3 drop the entries in `fifo`
//! E4 close `arrivals`, drop the entries in it
//! E5 close the arena; its memory is freed with its last reference
//! ```
//! A thread that created its task before E1 and has not pushed its entry yet finds `arrivals` open,
//! and then E4 drops the entry, or closed, and then drops the entry itself. Either way E2 came
//! first, because the task was listed under that lock: the task is complete, and dropping the
//! entry at most frees its memory.
//!
//! # Invariants
//! - *One thread*: `fifo` is touched only by the thread with the number `owner`. Numbers are not
//!   reused.
//! - *Futures stay*: a future that was polled is polled again and dropped by that thread. Only that
//!   thread takes entries out before E4, and after E2 there is no future. A future that was never
//!   polled is `Send`, and may be dropped by the thread that tried to spawn it and was refused.
//!
//! # Rejected
//! - `local`'s set of tasks: its arena belongs to its thread, but fibers are spawned from all
//!   threads; and it is driven by a future, while a carrier has only its thread.
//! - Threads that end when they have nothing to do: a spawner that has chosen such a queue would
//!   race with its end, to save the cost of one idle thread, which is its memory.
//!
//! # Checked by
//! `models.rs`: `a_wake_against_a_sleep_is_not_lost`,
//! `a_wake_against_the_end_drops_the_future_on_its_thread`,
//! `an_abort_against_the_end_drops_the_future_on_its_thread`,
//! `pushes_against_the_end_leave_nothing_behind`,
//! `a_spawn_against_the_end_runs_or_is_refused`, `a_stop_against_a_sleep_is_seen`;
//! weakened as `fiber_queue_wake_unparks`, `fiber_queue_stop_unparks`, `fiber_queue_stops_first`,
//! `fiber_queue_closes`, `fiber_queue_refuses_spawns`, `fiber_queue_owner_check`.

use std::{future::Future, ptr::NonNull, sync::Arc, time::Duration};

use super::stack::StackCache;
use crate::engine::{
    preempt::carrier::WatchedCarrier,
    prim::{
        AtomicBool, AtomicU64, AtomicUsize, Mutex,
        Ordering::{Acquire, Relaxed, Release},
        UnsafeCell,
        clock::TimestampUnit,
        lock,
        parker::Parker,
        weakened,
    },
    queue::{Chain, injector::Injector},
    work::{
        task::{
            arena::{Arena, Origin, Schedule},
            cell::{Label, Task},
            extra::Extra,
            handle::JoinHandle,
            hooks::{self, Hooks},
            poll,
        },
        thread_context::{self, blocking::BlockingPolicy},
    },
};

#[cfg(test)]
mod models;

/// One in this many searches for the next entry begins with `arrivals`, so that fibers that wake
/// each other do not starve the others. The number is that of sets of local tasks.
const ARRIVALS_FIRST: u8 = 31;

/// Polls between two checks for other duties. Picked, not measured.
const POLLS_PER_TURN: usize = 64;

/// Queues and state of one carrier, shared with the threads that wake or spawn its fibers.
pub(crate) struct FiberQueue {
    /// The carrier's thread number; zero until it has begun.
    owner: AtomicU64,
    arrivals: Injector<Task>,
    fifo: UnsafeCell<Fifo>,
    parker: Parker,
    stopping: AtomicBool,
    /// Set while freed cells wait for the holder of their arena to collect them.
    sweep: AtomicBool,
    /// Set if a stack was leaked, because its frames may have passed references to the carrier's
    /// thread-locals to other threads.
    abandoned: AtomicBool,
    /// Number of fibers that have not ended, by which a queue is chosen.
    alive: AtomicUsize,
    spawn_state: Mutex<SpawnState>,
    pub(crate) stacks: StackCache,
    /// The runtime that the fibers belong to.
    runtime: Option<Arc<dyn Schedule>>,
    unit: TimestampUnit,
    /// How long a fiber may run while other fibers wait.
    pub(crate) slice: Duration,
}

// SAFETY: `fifo` is touched by the carrier only (invariant *one thread*); E3 leaves it empty, and a
// queue with a carrier that never began has nothing in it.
unsafe impl Send for FiberQueue {}
// SAFETY: through shared references `fifo` is reached by `with_fifo` only, on the carrier
// (invariant *one thread*).
unsafe impl Sync for FiberQueue {}

/// The carrier's own queue.
struct Fifo {
    entries: Chain<Task>,
    searches: u8,
}

/// The state that a spawn uses, under a lock.
struct SpawnState {
    /// Created for the first task. The holder of the lock holds the arena.
    arena: Option<NonNull<Arena>>,
    closed: bool,
}

// SAFETY: the holder of the lock holds the arena, and an arena may be passed between threads.
unsafe impl Send for SpawnState {}

/// A future that was not accepted, because its queue has ended.
pub(crate) struct RefusedFiber<F, X> {
    future: F,
    label: Label<X>,
    queue: Arc<FiberQueue>,
}

impl<F: Future + Send + 'static, X: Extra> RefusedFiber<F, X> {
    /// Ends the future here, as a task that was cancelled before it began. User code runs, and
    /// nothing is borrowed.
    #[cold]
    pub(crate) fn end(self) -> JoinHandle<F::Output> {
        let arena = Arena::new(self.queue);
        // SAFETY: we created the arena, and hold it until it is closed; the task keeps its memory
        // until the `JoinHandle` is gone. Dropping the entry cancels the task, on this thread.
        unsafe {
            let (task, header) = Arena::spawn(arena, self.future, self.label);
            arena.as_ref().refuse();
            drop(task);
            while arena.as_ref().next_to_stop().is_some() {}
            Arena::close(arena);
            JoinHandle::new(header)
        }
    }
}

impl FiberQueue {
    /// Creates a queue without a carrier.
    pub(crate) fn new(
        runtime: Option<Arc<dyn Schedule>>,
        stack_size: usize,
        unit: TimestampUnit,
        slice: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            owner: AtomicU64::new(0),
            arrivals: Injector::new(),
            fifo: UnsafeCell::new(Fifo { entries: Chain::new(), searches: 0 }),
            parker: Parker::new(),
            stopping: AtomicBool::new(false),
            sweep: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            alive: AtomicUsize::new(0),
            spawn_state: Mutex::new(SpawnState { arena: None, closed: false }),
            stacks: StackCache::new(stack_size),
            runtime,
            unit,
            slice,
        })
    }

    /// Creates a task and queues it, or returns the future if the queue has ended.
    pub(crate) fn spawn<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, RefusedFiber<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let (task, header) = {
            let mut spawn_state = lock(&self.spawn_state);
            if spawn_state.closed {
                drop(spawn_state);
                return Err(RefusedFiber { future, label, queue: self.clone() });
            }
            let arena = *spawn_state.arena.get_or_insert_with(|| Arena::new(self.clone()));
            // SAFETY: the lock is the right to hold the arena, and is held until the end of the
            // block.
            unsafe { Arena::spawn(arena, future, label) }
        };
        // Relaxed: a counter, by which queues are chosen.
        self.alive.fetch_add(1, Relaxed);
        // SAFETY: this is the join reference of a new task with that output.
        let handle = unsafe { JoinHandle::new(header) };
        let task = self.call_spawn_hook(task);
        self.schedule(task, Origin::Spawned);
        Ok(handle)
    }

    /// Calls the user's hook for a new task. User code runs, and nothing is borrowed.
    fn call_spawn_hook(&self, task: Task) -> Task {
        let hooks = self.hooks();
        let Some(hook) = hooks.as_ref().and_then(|hooks| hooks.on_spawn.as_ref()) else {
            return task;
        };
        let header = task.into_header();
        // SAFETY: the queue entry is ours, and keeps the task alive.
        unsafe { hooks::call(Some(hook), header) };
        // SAFETY: `into_header` passed the entry to us, and only one `Task` is made of it.
        unsafe { Task::new(header) }
    }

    /// Returns the approximate number of fibers that have not ended.
    pub(crate) fn alive(&self) -> usize {
        // Relaxed: a counter, which orders nothing.
        self.alive.load(Relaxed)
    }

    /// Requests the carrier to end all its fibers and itself.
    pub(crate) fn stop(&self) {
        // Release: publishes what was done before the stop. Pairs with the Acquire in
        // `is_stopping`.
        self.stopping.store(true, Release);
        if !weakened!("fiber_queue_stop_unparks") {
            self.parker.unpark();
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        // Acquire: the end sees what was done before the stop. Pairs with the Release in `stop`.
        self.stopping.load(Acquire)
    }

    /// Runs the carrier on the calling thread, until it is stopped.
    pub(crate) fn run(&self, watched: Option<&WatchedCarrier>) {
        self.begin();
        // A fiber that blocks makes the other fibers wait, so it may not `block_on`, only block in
        // place.
        thread_context::blocking::set_policy(BlockingPolicy::InPlaceOnly);
        while !self.is_stopping() {
            if !self.turn(watched) {
                // The thread may sleep for a long time, so freed cells are collected first.
                self.sweep_arena();
                watched.into_iter().for_each(WatchedCarrier::set_idle);
                self.parker.park();
            }
        }
        watched.into_iter().for_each(WatchedCarrier::set_idle);
        self.end();
        thread_context::blocking::set_policy(BlockingPolicy::Allowed);
    }

    /// Notes that a stack of this queue is leaked, so that the carrier must not end.
    #[cold]
    pub(crate) fn abandon(&self) {
        // Relaxed: ordered by the later step that reports to others that the carrier is done.
        self.abandoned.store(true, Relaxed);
    }

    /// Returns true if the carrier, which is done, sleeps for ever.
    pub(crate) fn has_abandoned(&self) -> bool {
        // Relaxed: ordered by the step that reported that the carrier is done.
        self.abandoned.load(Relaxed)
    }

    fn begin(&self) {
        // Relaxed: other threads only find that it is not their number.
        self.owner.store(thread_context::thread(), Relaxed);
    }

    /// Polls some of the queued tasks; returns `false` if there were none.
    fn turn(&self, watched: Option<&WatchedCarrier>) -> bool {
        // Relaxed: a hint; the token that came with it orders more than is needed.
        if self.sweep.load(Relaxed) {
            self.sweep_arena();
        }
        for polls in 0..POLLS_PER_TURN {
            if self.is_stopping() {
                return true;
            }
            let Some(task) = self.next() else { return polls > 0 };
            watched.into_iter().for_each(WatchedCarrier::set_busy);
            if poll::run(task, self.unit.now()) {
                // Relaxed: a counter, which orders nothing.
                self.alive.fetch_sub(1, Relaxed);
            }
        }
        true
    }

    /// Takes the entry to run next.
    fn next(&self) -> Option<Task> {
        let arrivals_first = self.with_fifo(|fifo| {
            fifo.searches = fifo.searches.wrapping_add(1);
            fifo.searches.is_multiple_of(ARRIVALS_FIRST)
        });
        let own = || self.with_fifo(|fifo| fifo.entries.pop_front());
        let sent = || self.arrivals.pop();
        if arrivals_first { sent().or_else(own) } else { own().or_else(sent) }
    }

    /// Moves entries from `arrivals` to `fifo`, before a task that yields is queued, because they
    /// were there first. If they stayed in `arrivals`, the yielding task would run again before
    /// them.
    fn move_arrivals(&self) {
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = self.arrivals.pop() else { break };
            self.with_fifo(|fifo| fifo.entries.push_back(task));
        }
    }

    fn sweep_arena(&self) {
        // Relaxed: a hint; the token that came with it orders more than is needed.
        self.sweep.store(false, Relaxed);
        if let Some(arena) = lock(&self.spawn_state).arena {
            // SAFETY: the lock, which is held until the end of the statement, is the right to hold
            // the arena.
            unsafe { Arena::sweep(arena) };
        }
    }

    /// Ends the queue: steps E1 to E5.
    fn end(&self) {
        if weakened!("fiber_queue_stops_first") {
            self.empty_queues();
        }
        if let Some(arena) = self.refuse_spawns() {
            // SAFETY: after E1 the arena is ours alone; an arena that refuses keeps its cells
            // until it is closed.
            while let Some(task) = unsafe { arena.as_ref().next_to_stop() } {
                // SAFETY: the arena keeps the task's cell.
                unsafe { poll::stop(task) };
            }
            self.empty_queues();
            // SAFETY: after E1 the arena is ours alone; we give it up here.
            unsafe { Arena::close(arena) };
        }
        self.empty_queues();
        // Relaxed: a counter, which orders nothing.
        self.alive.store(0, Relaxed);
        self.stacks.close();
    }

    /// Refuses tasks from now on (step E1). The returned arena belongs to the caller alone.
    pub(crate) fn refuse_spawns(&self) -> Option<NonNull<Arena>> {
        let mut spawn_state = lock(&self.spawn_state);
        spawn_state.closed = !weakened!("fiber_queue_refuses_spawns");
        let arena = spawn_state.arena.take()?;
        // SAFETY: the lock is the right to hold the arena, and no thread will hold it through the
        // lock again.
        unsafe { arena.as_ref().refuse() };
        Some(arena)
    }

    /// Empties the queues: steps E3 and E4. Only entries of stopped tasks are left in them.
    fn empty_queues(&self) {
        while let Some(task) = self.with_fifo(|fifo| fifo.entries.pop_front()) {
            drop(task);
        }
        if !weakened!("fiber_queue_closes") {
            self.arrivals.close();
        }
        while let Some(task) = self.arrivals.pop() {
            drop(task);
        }
    }

    fn is_carrier(&self) -> bool {
        // Relaxed: the carrier itself wrote the number, and for all other threads any other number
        // will do.
        self.owner.load(Relaxed) == thread_context::thread() || weakened!("fiber_queue_owner_check")
    }

    /// Calls `f` with the carrier's queue; `f` must not call user code.
    #[inline]
    fn with_fifo<R>(&self, f: impl FnOnce(&mut Fifo) -> R) -> R {
        debug_assert!(self.is_carrier(), "another thread took a carrier's queue");
        // SAFETY: *one thread*: the callers are the carrier, or have checked that they are; and `f`
        // does not call `with_fifo` again.
        self.fifo.with_mut(|fifo| f(unsafe { &mut *fifo }))
    }
}

impl Schedule for FiberQueue {
    fn schedule(&self, task: Task, origin: Origin) {
        if self.is_carrier() {
            if origin.is_after_poll() {
                self.move_arrivals();
            }
            // The carrier checks the queue again before it sleeps.
            return self.with_fifo(|fifo| fifo.entries.push_back(task));
        }
        match self.arrivals.push(task) {
            Ok(()) if weakened!("fiber_queue_wake_unparks") => {}
            Ok(()) => self.parker.unpark(),
            // The carrier has ended, and with it every fiber: this entry is all that is left of
            // one, and dropping it frees its memory.
            Err(task) => drop(task),
        }
    }

    fn cells_wait(&self, _arena: NonNull<Arena>) {
        // Relaxed: ordered by the token.
        self.sweep.store(true, Relaxed);
        self.parker.unpark();
    }

    fn hooks(&self) -> Option<Arc<Hooks>> {
        self.runtime.as_ref().and_then(|runtime| runtime.hooks())
    }

    fn task_panicked(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.task_panicked();
        }
    }
}

impl std::fmt::Debug for FiberQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FiberQueue").field("alive", &self.alive()).finish_non_exhaustive()
    }
}
