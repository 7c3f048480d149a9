//! Shuts a pool down: every task is dropped exactly once, then every thread is joined.
//!
//! A task that the shutdown has *claimed* is in state RUNNING and owned by the shutdown. Claimed
//! tasks lie in one list ([`ClaimedTasks`](super::claimed_tasks::ClaimedTasks)), and threads take
//! them out and drop them one at a time. So a destructor that blocks delays its own thread, not the
//! tasks behind it.
//!
//! # Protocol
//! ```text
//! S1 the outside arenas refuse tasks, and their tasks are claimed
//! S2 `stopping` is set, and every worker is unparked (one that is awake finds a token later);
//!    from now on a spawn is refused: its future is dropped, its handle says 'cancelled'
//! S3 a core that no thread holds ends: one that is free on this thread, one that lies in a
//!    `Handoff` on a spare thread or a helper, or here if the system has none. A core that is
//!    reserved for a thread that is about to begin, or is in a hook, is left to that thread
//! S4 each worker ends its poll, leaves its loop and ends its core: the core's arena refuses
//!    tasks, those that live are claimed, and so are entries in its LIFO slot and its ring
//! S5 the last core also closes the injector and claims what is in it
//! S6 the worker drops claimed tasks until there are none
//! S7 the last participant (core or helper) shuts driver and timers down, then `participants` is
//!    zero
//! S8 the thread that requested the shutdown waits for that, then joins the threads
//! ```
//! A task that is running when it is claimed is only marked: it ends at the end of its poll,
//! wherever that is. A wake-up that comes in between finds a task that is complete, or queues one
//! that S4 or S5 take out of a queue. An entry on its way to the injector when S5 closes it is
//! refused, and its task was claimed before.
//!
//! # Help
//! S4 waits for a poll that may itself wait: for a lock that another task holds, for a message that
//! another task sends, for a task that no worker runs any more. And S6 may meet a destructor that
//! waits for the next one in the list. So the thread at S8 helps after a millisecond, and then
//! again after twice the time ([`Pool::help`]), in this order:
//! ```text
//! N1 cores that were left in a `Handoff` after S3 are ended as in S3; after some checks also those
//!    that are reserved for a thread that has not come
//! N2 tasks in the arenas of cores that have not ended are claimed, on behalf of the threads that
//!    hold the cores
//! N3 if claimed tasks wait and no thread has dropped one since the last check, a helper thread
//!    is started that does S6
//! N4 if there is nothing to drop and a `block_on` of this runtime still waits, or the end has
//!    taken some seconds, driver and timers are shut down: no worker maintains them any more,
//!    so every wait there can only end with an error
//! ```
//! A `block_on` that is about to park in a pool that is stopping does N4 itself, whether or not
//! there is something to drop, and for all waits of the runtime.
//!
//! # Invariants
//! - *Claimed once*: the exchange that sets RUNNING or takes the entry decides which thread claims.
//!   An arena's tasks are claimed by the holder of its core after `open` is cleared, or by a helper
//!   that holds the lock of `open` and finds it set; both push what they claimed before they let
//!   go, so that the thread that ends the core finds it in the list at S6.
//! - *No drop outlives the end*: a thread that drops is a participant: its core is counted until S6
//!   is done, and a helper counts itself before it takes a task, unless the count is over.
//! - Blocking jobs are not claimed: they belong to the blocking pool, which runs them or ends them.
//!
//! # Rejected
//! - Each core stops the tasks of its own arena only: a poll that blocks on a channel never ends if
//!   the sender is a task of the same core.
//! - Dropping all tasks on the thread that requested the shutdown: `shutdown_timeout` could not
//!   return in time, and a destructor that blocks would keep all others from running.
//! - Taking the core from a thread that is stuck, as the monitor does: it needs preemption, and a
//!   thread in a short poll would be interrupted for nothing.
//!
//! # Checked by
//! `shutdown_against_wake_drops_the_future_once`, `shutdown_against_spawn_drops_the_future_once`,
//! `a_stop_against_a_core_in_a_handoff_ends_it_once`,
//! `a_helper_against_the_end_of_a_core_drops_each_task_once`, `a_block_on_against_a_stop_ends`;
//! weakened as `stop_outside_refuses`, `handoff_sees_stop`, `help_pushes_inside`,
//! `stop_counts_helpers`. Under load: tests/it/runtime/shutdown_waits.rs and the shutdown tests in
//! tests/it.

use std::{
    cell::Cell,
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Pool, core::Core};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        futex::Futex,
        lock, weakened,
    },
    threads::{ThreadHandle, ThreadMain},
    work::task::{arena::Arena, cell::Header, poll},
};

/// The time that S8 waits before it first checks whether it must help. A worker that is awake ends
/// within some microseconds; a loaded system may take longer, and then a check does no harm.
const FIRST_CHECK: Duration = Duration::from_millis(1);

/// The time that a helper has before the next check: a system that is not loaded starts a thread in
/// a hundredth of that.
const HELPER_TIME: Duration = Duration::from_millis(4);

/// The time between two checks from which on the shutdown no longer relies on a thread that has not
/// begun, or that is in a hook: some tens of milliseconds have gone by.
const START_GRACE: Duration = Duration::from_millis(16);

/// The longest time between two checks.
const LONGEST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The most helper threads of one shutdown. Each was started because all others were stuck in a
/// destructor: a chain of this many destructors that wait for each other is a bug of the program.
const MAX_HELPERS: usize = 64;

/// The name of a helper thread.
const HELPER_NAME: &str = "blitz-end";

/// Counters of the cores and helpers that have not ended.
pub(crate) struct ShutdownCounts {
    /// Number of cores that may still queue tasks.
    cores: AtomicUsize,
    /// Number of cores and helpers that may still drop tasks, and one more for S7.
    participants: Futex,
    /// Number of helper threads that drop tasks.
    helpers: AtomicUsize,
}

impl ShutdownCounts {
    pub(crate) fn new(cores: usize) -> Self {
        let participants = u32::try_from(cores).expect("the builder bounds the workers") + 1;
        Self {
            cores: AtomicUsize::new(cores),
            participants: Futex::new(participants),
            helpers: AtomicUsize::new(0),
        }
    }

    /// Counts a core as ended once all its tasks are claimed; returns true for the last core.
    #[must_use]
    fn close_core(&self) -> bool {
        // AcqRel: the last core sees what the others did. Pairs with itself.
        self.cores.fetch_sub(1, AcqRel) == 1
    }

    /// Counts one more participant; returns false if the end is over, or in its last step.
    #[must_use]
    fn participate(&self) -> bool {
        if weakened!("stop_counts_helpers") {
            return true;
        }
        let step = |count| (count > 1).then(|| count + 1);
        // AcqRel: the participant that counts down last sees this one. Pairs with `count_down`.
        // Relaxed on failure: nothing is read then.
        self.participants.word().fetch_update(AcqRel, Relaxed, step).is_ok()
    }

    /// Counts a participant down; returns true for the last participant.
    #[must_use]
    fn count_down(&self) -> bool {
        // AcqRel: the last participant sees what the others did. Pairs with itself.
        self.participants.word().fetch_sub(1, AcqRel) == 2
    }

    fn finish(&self) {
        // Release: the end happens before the waiting thread goes on. Pairs with the Acquire in
        // `wait_for`.
        self.participants.word().store(0, Release);
        self.participants.wake_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in `finish`.
        self.participants.word().load(Acquire) == 0
    }
}

/// The number of threads that have not ended yet.
#[derive(Debug)]
pub(crate) struct Alive(Futex);

impl Alive {
    pub(crate) fn new() -> Self {
        Self(Futex::new(0))
    }

    pub(crate) fn add(&self) {
        // Relaxed: the waiting thread learns of the new thread in another way.
        self.0.word().fetch_add(1, Relaxed);
    }

    /// Subtracts the calling thread, as its last act.
    pub(crate) fn remove(&self) {
        // Release: pairs with the Acquire in `wait_for`.
        if self.0.word().fetch_sub(1, Release) <= 2 {
            // The waiting thread may be one of them, and then waits for all but itself.
            self.0.wake_all();
        }
    }

    /// Waits until at most `rest` threads are left; returns false if the deadline passes first.
    pub(crate) fn wait(&self, rest: u32, deadline: Option<Instant>) -> bool {
        wait_for(&self.0, rest, deadline)
    }
}

/// Waits until the count is at most `rest`; returns false if the deadline passes first.
fn wait_for(count: &Futex, rest: u32, deadline: Option<Instant>) -> bool {
    loop {
        // Acquire: pairs with the Release of the threads that count down.
        let now = count.word().load(Acquire);
        if now <= rest {
            return true;
        }
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if remaining.is_some_and(|remaining| remaining.is_zero()) {
            return false;
        }
        count.wait(now, remaining);
    }
}

/// The state that a thread that waits for a shutdown keeps from one check to the next.
#[derive(Debug)]
pub(crate) struct HelpSchedule {
    /// The time of the next check, and the wait that led to it.
    next: Cell<(Instant, Duration)>,
    /// Number of tasks that had been taken out of the list at the last check.
    taken: Cell<Option<u64>>,
    /// True if this thread may drop tasks itself when no other can, because it has no deadline.
    pub(crate) may_drop_here: bool,
}

impl HelpSchedule {
    pub(crate) fn new(may_drop_here: bool) -> Self {
        let next = (Instant::now() + FIRST_CHECK, FIRST_CHECK);
        Self { next: Cell::new(next), taken: Cell::new(None), may_drop_here }
    }

    /// Schedules the next check. `has_helped` is true if there is a new helper, which may soon be
    /// stuck like the last one.
    fn schedule_next(&self, has_helped: bool) {
        let (_, wait) = self.next.get();
        let wait = if has_helped { HELPER_TIME } else { (wait * 2).min(LONGEST_CHECK_INTERVAL) };
        self.next.set((Instant::now() + wait, wait));
    }
}

impl Pool {
    /// Sets `stopping` and unparks every worker, so that each thread that holds a core ends it: the
    /// part of S2 that runs no user code.
    pub(crate) fn set_stopping(&self) {
        // Release: pairs with the Acquire in `is_stopping`.
        self.stopping.store(true, Release);
        for index in 0..self.remotes.len() {
            self.unpark(index);
        }
    }

    /// Begins the shutdown (S1 to S3).
    pub(crate) fn stop(self: &Arc<Self>) {
        self.assert_owner_thread();
        self.claim_outside();
        self.set_stopping();
        // A pool that was never started must not start any more.
        self.started.get_or_init(|| Ok(()));
        while let Some(core) = self.free_cores.take() {
            end_core(core);
        }
        self.end_waiting_cores(true, cfg!(blitz_loom));
    }

    /// Ends the cores that lie between two threads (S3 and N1). If the shutdown `has_waited` long
    /// enough, this includes those that are reserved for a worker that is about to come for them.
    fn end_waiting_cores(self: &Arc<Self>, may_end_here: bool, has_waited: bool) {
        let cores = self.waiting_cores().filter(|handoff| has_waited || !handoff.is_reserved);
        cores.for_each(|handoff| self.end_waiting_core(handoff, may_end_here));
    }

    /// Waits until every task that no poll runs is dropped, and helps where that does not happen by
    /// itself (the first part of S8). Returns false if the deadline passes first.
    pub(crate) fn wait_until_dropped(
        self: &Arc<Self>,
        helping: &HelpSchedule,
        deadline: Option<Instant>,
    ) -> bool {
        loop {
            let (check_at, _) = helping.next.get();
            let until = deadline.map_or(check_at, |deadline| deadline.min(check_at));
            if wait_for(&self.shutdown.participants, 0, Some(until)) {
                return true;
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return false;
            }
            if now >= check_at {
                helping.schedule_next(self.help(helping));
            }
        }
    }

    /// Waits for the last act of every thread (the second part of S8). Returns false if the
    /// deadline passes first.
    pub(crate) fn wait_for_end(&self, deadline: Option<Instant>) -> bool {
        // A worker may get here inside `block_in_place`, and must not wait for itself.
        let own = u32::from(lock(&self.threads).iter().any(ThreadHandle::is_current));
        wait_for(&self.shutdown.participants, 0, deadline) && self.alive.wait(own, deadline)
    }

    /// Waits for the end and joins the threads (S8). Returns false if the deadline passes first;
    /// the threads are then left to themselves.
    pub(crate) fn join(&self, deadline: Option<Instant>) -> bool {
        if !self.wait_for_end(deadline) {
            return false;
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        // The threads may still run destructors of thread-locals, which the deadline bounds, too.
        threads.into_iter().for_each(|thread| thread.join_until(deadline));
        true
    }

    /// Starts a thread that helps the shutdown, so that the caller need not wait. Does nothing if
    /// the system has no thread: then tasks that only a helper could drop live until the polls that
    /// delay them have ended.
    pub(crate) fn help_in_background(self: &Arc<Self>) {
        if !self.config.threaded || self.shutdown.is_over() || self.is_quiet() {
            return;
        }
        let pool = self.clone();
        let _ = self.start_helper(move || {
            let helping = HelpSchedule::new(true);
            while !pool.shutdown.is_over() {
                let (check_at, _) = helping.next.get();
                if !wait_for(&pool.shutdown.participants, 0, Some(check_at)) {
                    helping.schedule_next(pool.help(&helping));
                }
            }
        });
    }

    /// Returns true if as many tasks have ended as were spawned, so that the shutdown needs no
    /// help.
    fn is_quiet(&self) -> bool {
        let completed: u64 = self.counters().map(|counters| counters.completed.get()).sum();
        let spawned: u64 = self.counters().map(|counters| counters.spawned.get()).sum();
        spawned + self.outside_counters.spawned() == completed + self.outside_counters.completed()
    }

    /// Helps the shutdown (N1 to N4); returns true if a helper was started.
    #[cold]
    fn help(self: &Arc<Self>, helping: &HelpSchedule) -> bool {
        if !self.config.threaded {
            return false;
        }
        let (_, wait) = helping.next.get();
        self.end_waiting_cores(helping.may_drop_here, wait >= START_GRACE);
        self.claim_of_live_cores();
        let snapshot = self.claimed.snapshot();
        let is_stuck = snapshot.waiting > 0
            && (snapshot.droppers == 0 || helping.taken.get() == Some(snapshot.taken));
        helping.taken.set(Some(snapshot.taken));
        if is_stuck {
            // Relaxed: exceeding the limit by a few does no harm.
            let has_room = self.shutdown.helpers.fetch_add(1, Relaxed) < MAX_HELPERS;
            let pool = self.clone();
            let started = has_room
                && self.start_helper(move || {
                    pool.drop_as_helper();
                    // Relaxed: only a limit, which may be exceeded by a few.
                    pool.shutdown.helpers.fetch_sub(1, Relaxed);
                });
            if !started && helping.may_drop_here {
                self.drop_as_helper();
            }
            return started;
        }
        // A `block_on` of another executor is not counted, so after a while assume that one waits.
        if snapshot.waiting == 0 && (self.has_waiting_roots() || wait >= LONGEST_CHECK_INTERVAL) {
            self.cancel_waits();
        }
        false
    }

    /// Starts a thread that takes part in the shutdown; returns false if the system has none.
    pub(crate) fn start_helper(self: &Arc<Self>, body: impl FnOnce() + Send + 'static) -> bool {
        self.alive.add();
        let pool = self.clone();
        let thread_main = ThreadMain { before: || (), body, after: move || pool.alive.remove() };
        let around = self.around.get().cloned();
        match self.config.thread_config.start(HELPER_NAME.to_owned(), around, thread_main) {
            Ok(thread) => {
                lock(&self.threads).push(thread);
                true
            }
            Err(_) => {
                self.alive.remove();
                false
            }
        }
    }

    /// Drops claimed tasks on a thread that has no core (S6), unless the shutdown is over.
    fn drop_as_helper(&self) {
        if self.shutdown.participate() {
            self.drop_claimed();
            self.count_down();
        }
    }

    /// Drops claimed tasks until there are none (S6). User code runs.
    fn drop_claimed(&self) {
        let dropper = self.claimed.dropper();
        while let Some(claim) = dropper.take() {
            // SAFETY: obligation 1 of `poll::drop_claimed`: the task was claimed, so its stage
            // holds the future, and this thread alone took it out of the list.
            unsafe { poll::drop_claimed(claim.task) };
            self.outside_counters.stopped(1);
        }
    }

    /// Counts this participant down; the last one does S7. User wakers are called.
    fn count_down(&self) {
        if self.shutdown.count_down() {
            // The tasks that waited are gone; waits of other threads are left.
            self.drivers.shut_down();
            self.shutdown.finish();
        }
    }

    /// Makes everything that waits for an event or a time return an error (N4).
    #[cold]
    pub(crate) fn cancel_waits(&self) {
        self.drivers.shut_down();
    }

    /// Claims the tasks in the arenas of all cores that have not ended (N2).
    fn claim_of_live_cores(&self) {
        for remote in &self.remotes {
            let mut claimed = Vec::new();
            loop {
                let open = lock(&remote.open);
                if !*open {
                    break;
                }
                // Relaxed: written before the pool was shared.
                let arena = remote.arena.load(Relaxed);
                let mut omitted = 0;
                // No allocator is called during a read, because the holder may wait for its end.
                // SAFETY: obligations 1 and 2 of `Arena::read_tasks`: `open` is locked and true, so
                // the core has not ended, its arena is not closed, and this thread is the only
                // reader.
                let was_read = unsafe {
                    (*arena).read_tasks(|task| {
                        if claimed.len() == claimed.capacity() {
                            omitted += 1;
                        } else if claim(task) {
                            claimed.push(task);
                        }
                    })
                };
                let is_whole = !was_read || omitted == 0;
                if weakened!("help_pushes_inside") {
                    drop(open);
                    self.claimed.add(&mut claimed);
                } else {
                    // Under the lock of `open`: the holder that ends its core finds them.
                    self.claimed.add(&mut claimed);
                    drop(open);
                }
                if is_whole {
                    break;
                }
                claimed.reserve(omitted + omitted / 4);
            }
        }
    }

    /// Claims the tasks of the outside arenas (S1). No user code runs.
    fn claim_outside(&self) {
        for outside in &self.outside {
            let mut outside = lock(outside);
            outside.refuses = !weakened!("stop_outside_refuses");
            let Some(arena) = outside.arena else { continue };
            let mut claimed = Vec::new();
            // SAFETY: the lock makes this thread the holder of the arena, which is open; the
            // closure does not use the arena.
            unsafe {
                arena.as_ref().for_each_task(|task| {
                    if claim(task) {
                        claimed.push(task);
                    }
                });
            }
            // Under the lock, so that the last core finds the tasks in the list, or in the arena.
            self.claimed.add(&mut claimed);
        }
    }

    /// Closes the outside arenas and the injector, and claims their tasks (S5). No user code runs.
    fn end_outside(&self) {
        self.claim_outside();
        let arenas: Vec<NonNull<Arena>> =
            self.outside.iter().filter_map(|outside| lock(outside).shut()).collect();
        let mut claimed = Vec::new();
        for arena in &arenas {
            // SAFETY: `shut` took the arena out of its lock and made it refuse, so it is ours
            // alone.
            while let Some(task) = unsafe { arena.as_ref().next_to_stop() } {
                if claim(task) {
                    claimed.push(task);
                }
            }
        }
        self.injector.close();
        while let Some(task) = self.injector.pop() {
            claimed.extend(poll::claim_entry(task));
        }
        self.claimed.add(&mut claimed);
        for arena in arenas {
            // SAFETY: the arena is ours alone, no task is left in it, and we give it up.
            unsafe { Arena::close(arena) };
        }
    }
}

/// Claims a task of an arena for the shutdown, unless it is a blocking job. A task that is running
/// is marked, and ends with its poll.
fn claim(task: NonNull<Header>) -> bool {
    // SAFETY: the arena lists the task and is held or read by the caller, so its memory stays.
    let header = unsafe { task.as_ref() };
    !header.is_blocking() && header.state.stop()
}

/// Ends one core, which no thread holds any more (S4 to S7). User code runs.
#[allow(clippy::boxed_local, reason = "cores live in boxes, and this one ends here")]
pub(crate) fn end_core(mut core: Box<Core>) {
    core.before_end();
    let Core { pool, index, mut ring, fifo, deferred, arena, .. } = *core;
    // A thread that reads the arena finishes first, and no other begins.
    *lock(&pool.remotes[index].open) = false;
    if weakened!("owned_stops_first") {
        pool.injector.close();
    }
    // SAFETY: we have the core, so we are the holder of its arena.
    unsafe { arena.as_ref().refuse() };
    let mut claimed = Vec::new();
    // SAFETY: we hold the arena, and an arena that refuses tasks keeps its cells until it is
    // closed.
    while let Some(task) = unsafe { arena.as_ref().next_to_stop() } {
        if claim(task) {
            claimed.push(task);
        }
    }
    let mut entries = fifo;
    entries.append(deferred);
    pool.remotes[index].lifo.take().into_iter().for_each(|task| entries.push_back(task));
    while let Some(task) = ring.pop() {
        entries.push_back(task);
    }
    while let Some(task) = entries.pop_front() {
        claimed.extend(poll::claim_entry(task));
    }
    pool.claimed.add(&mut claimed);
    if pool.shutdown.close_core() {
        pool.unregister_pool();
        pool.end_outside();
    }
    // SAFETY: we hold the arena, no task is left in it, and we give it up.
    unsafe { Arena::close(arena) };
    pool.drop_claimed();
    pool.count_down();
}

impl super::OutsideArena {
    /// Returns true once a task spawned into this arena would never be run. The caller holds the
    /// lock, so a spawn either finds the arena open, and the shutdown claims its task, or is
    /// refused.
    pub(super) fn refuses_spawns(&self, pool: &Pool) -> bool {
        let stopping = pool.is_stopping() && !weakened!("stop_outside_refuses");
        self.refuses || self.closed || stopping
    }

    /// Closes the arena, which is then the caller's alone.
    fn shut(&mut self) -> Option<NonNull<Arena>> {
        self.closed = !weakened!("stop_outside_refuses");
        let arena = self.arena.take()?;
        // SAFETY: the lock makes this thread the holder, and no thread will hold the arena again.
        unsafe { arena.as_ref().refuse() };
        Some(arena)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{panic::Location, sync::Arc as Plain};

    use crate::engine::{
        pool::{Config, Pool, drive, held_core::CoreGuard},
        prim::{Arc, ids::Tally, model, thread},
        threads::ThreadConfig,
        work::task::cell::Label,
    };

    /// Returns the settings of a pool that no thread works for.
    pub(crate) fn config(workers: usize, threaded: bool) -> Config {
        let thread_config = ThreadConfig {
            one_name: None,
            name: Plain::new(String::new),
            stack_size: None,
            on_start: None,
            on_stop: None,
        };
        Config {
            workers,
            threaded,
            lazy: false,
            lifo_slot: true,
            global_queue_interval: None,
            tick_polls: 128,
            thread_config,
            on_park: None,
            on_unpark: None,
            hooks: None,
            poll_times: None,
            latencies: None,
            seed: None,
            ends_on_panic: false,
            preempt: None,
        }
    }

    #[test]
    fn shutdown_against_spawn_drops_the_future_once() {
        model(|| {
            let pool = Pool::new(config(1, false));
            let alive = Arc::new(());
            let spawner = thread::spawn({
                let (pool, alive) = (pool.clone(), alive.clone());
                move || {
                    let task = async move {
                        let _alive = alive;
                        std::future::pending::<()>().await;
                    };
                    let at = Location::caller();
                    drop(pool.spawn(task, Label::at(at)).unwrap_or_else(|refused| refused.end()));
                }
            });
            pool.stop();
            spawner.join().unwrap();
            assert_eq!(Arc::strong_count(&alive), 1, "a task outlived its runtime");
            assert_eq!(Plain::strong_count(&pool), 1, "an arena outlived its last task");
        });
    }

    /// The task is never polled, so its handle can only report that it was cancelled.
    #[test]
    fn a_block_on_against_a_stop_ends() {
        model(|| {
            let pool = Pool::new(config(1, false));
            let waiter = thread::spawn({
                let pool = pool.clone();
                move || {
                    let task = std::future::pending::<()>();
                    let spawned = pool.spawn(task, Label::at(Location::caller()));
                    let handle = spawned.unwrap_or_else(|refused| refused.end());
                    drive::wait_for(Some(&pool), handle).is_err_and(|error| error.is_cancelled())
                }
            });
            pool.stop();
            assert!(waiter.join().unwrap(), "a task ran that no thread polls");
        });
    }

    /// A helper claims the task of a core on behalf of its holder, which ends the core at the same
    /// time. A thread that waits for the end must find the task dropped.
    #[test]
    fn a_helper_against_the_end_of_a_core_drops_each_task_once() {
        model(|| {
            let pool = Pool::new(config(1, true));
            let dropped = Plain::new(Tally::default());
            let core = pool.free_cores.take().expect("no thread has it");
            #[cfg(blitz_loom)]
            // SAFETY: the core is ours, so we hold its arena.
            unsafe { core.arena.as_ref() }.readers.add();
            let guard = CoreGuard::new(core);
            let witness = OnDrop(dropped.clone());
            let task = async move {
                let _witness = witness;
                std::future::pending::<()>().await;
            };
            let spawned = pool.spawn(task, Label::at(Location::caller()));
            drop(spawned.ok().expect("the pool is open"));
            let core = guard.release();
            let helper = thread::spawn({
                let pool = pool.clone();
                move || {
                    pool.claim_of_live_cores();
                    pool.drop_as_helper();
                }
            });
            pool.set_stopping();
            super::end_core(core);
            assert!(pool.wait_for_end(None));
            assert_eq!(dropped.get(), 1, "the end came before the destructor was through");
            helper.join().unwrap();
        });
    }

    struct OnDrop(Plain<Tally>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.add();
        }
    }
}
