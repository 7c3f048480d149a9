//! The end of a pool: every task is dropped once, every thread is joined.
//!
//! # Protocol
//! ```text
//! S1 `stopping` is set; every sleeper is unparked (a token is left if it is awake)
//! S2 each worker ends its poll, leaves its loop and gives up its core
//! S3 it stops the tasks of the core's home: an idle or queued one is dropped here,
//!    a running one ends at the end of its poll, wherever that is
//! S4 it drops the entries in its LIFO slot and ring: they find stopped tasks, or
//!    stop tasks whose home comes later
//! S5 the last core also refuses and stops the outside homes, closes the intake
//!    and drops what is in it
//! S6 the home of each core is closed; memory follows its last reference
//! S7 whoever asked for the stop waits for the last core, then joins the threads
//! ```
//! A wake-up that comes in between finds a task that is complete, or queues one
//! that S3 finds or S4 and S5 take out of a queue. An entry on its way to a queue
//! when S5 closes the intake is refused, and its task was stopped in S3 or S5.
//!
//! # Checked by
//! `shutdown_against_wake_drops_the_future_once`,
//! `shutdown_against_spawn_drops_the_future_once`;
//! weakened as `stop_outside_refuses`. Under load: the shutdown tests in tests/it.

use std::{ptr::NonNull, sync::Arc, time::Instant};

use super::{Pool, core::Core};
use crate::engine::{
    prim::{
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        futex::Futex,
        lock, weakened,
    },
    threads::Started,
    work::task::{cell::Header, home::Home, poll},
};

/// Counts the cores that have not ended.
pub(crate) struct Ended {
    left: Futex,
}

impl Ended {
    pub(crate) fn new(cores: usize) -> Self {
        let cores = u32::try_from(cores).expect("the builder bounds the workers");
        // One more: the last core is only ended when the outside is.
        Self { left: Futex::new(cores + 1) }
    }

    /// One core fewer; `true` for the last.
    fn count_down(&self) -> bool {
        // AcqRel: the last one sees what the others did. Pairs with itself.
        self.left.word().fetch_sub(1, AcqRel) == 2
    }

    fn ring(&self) {
        // Release: the end happens before whoever waited goes on. Pairs with the
        // Acquire in `wait_for`.
        self.left.word().store(0, Release);
        self.left.wake_all();
    }
}

/// Counts the threads that have not come to their end.
#[derive(Debug)]
pub(crate) struct Alive(Futex);

impl Alive {
    pub(crate) fn new() -> Self {
        Self(Futex::new(0))
    }

    pub(crate) fn add(&self) {
        // Relaxed: whoever waits was told of the thread in another way.
        self.0.word().fetch_add(1, Relaxed);
    }

    /// The last act of a thread.
    pub(crate) fn remove(&self) {
        // Release: pairs with the Acquire in `wait_for`.
        if self.0.word().fetch_sub(1, Release) <= 2 {
            // Who waits may be one of them, and then waits for all but itself.
            self.0.wake_all();
        }
    }

    /// Waits until no more than `rest` are left; `false` if the time is over first.
    pub(crate) fn wait(&self, rest: u32, deadline: Option<Instant>) -> bool {
        wait_for(&self.0, rest, deadline)
    }
}

/// Waits for the count to come down to `rest`; `false` if the time is over first.
fn wait_for(count: &Futex, rest: u32, deadline: Option<Instant>) -> bool {
    loop {
        // Acquire: pairs with the Release of those who count down.
        let now = count.word().load(Acquire);
        if now <= rest {
            return true;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        count.wait(now, left);
    }
}

impl Pool {
    /// The half of S1 that runs no code of users: who holds a core ends it.
    pub(crate) fn call_stop(&self) {
        // Release: pairs with the Acquire in `is_stopping`.
        self.stopping.store(true, Release);
        for index in 0..self.remotes.len() {
            self.unpark(index);
        }
    }

    /// S1. Cores that no thread holds end on this one.
    pub(crate) fn stop(self: &Arc<Self>) {
        self.assert_here();
        self.call_stop();
        // A pool that was never started must not start any more.
        self.started.get_or_init(|| Ok(()));
        while let Some(core) = self.free_cores.take().or_else(|| self.take_lying_core()) {
            end_core(core);
        }
    }

    /// The first half of S7, the wait; `false` if the time was over first.
    pub(crate) fn wait_for_end(&self, deadline: Option<Instant>) -> bool {
        // A worker may get here inside `block_in_place`: it does not wait for itself.
        let own = u32::from(lock(&self.threads).iter().any(Started::is_current));
        wait_for(&self.ended.left, 0, deadline) && self.alive.wait(own, deadline)
    }

    /// S7; `false` if the time was over first: the threads are left to themselves.
    pub(crate) fn join(&self, deadline: Option<Instant>) -> bool {
        if !self.wait_for_end(deadline) {
            return false;
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        if deadline.is_none() {
            // What is left of them are destructors of thread-locals, which nobody
            // can bound: only who waits for ever waits for those.
            threads.into_iter().for_each(|thread| thread.join());
        }
        true
    }
}

/// S3 to S6 for one core, which no thread holds any more.
#[allow(clippy::boxed_local, reason = "cores live in boxes, and this one ends here")]
pub(crate) fn end_core(mut core: Box<Core>) {
    core.before_end();
    let Core { pool, index, mut ring, fifo, home, .. } = *core;
    // Whoever is looking at the home finishes first, and nobody begins.
    *lock(&pool.remotes[index].open) = false;
    if weakened!("owned_stops_first") {
        pool.intake.close();
    }
    // SAFETY: we have the core, and so hold its home.
    unsafe { home.as_ref().refuse() };
    // SAFETY: as above; a home that refuses keeps cells until it is closed.
    while let Some(task) = unsafe { home.as_ref().next_to_stop() } {
        // SAFETY: the home keeps it.
        let stopped = unsafe { stop_counted(task) };
        pool.remotes[index].counters.completed.add(stopped);
    }
    let mut entries = fifo;
    pool.remotes[index].lifo.take().into_iter().for_each(|task| entries.push_back(task));
    while let Some(task) = ring.pop() {
        entries.push_back(task);
    }
    while let Some(task) = entries.pop_front() {
        pool.remotes[index].counters.completed.add(u64::from(poll::end(task)));
    }
    if pool.ended.count_down() {
        pool.strike_off();
        pool.end_outside();
        // Tasks that waited are gone; what is left are waits of other threads.
        pool.duties.shut_down();
        // SAFETY: as above; we give the home up.
        unsafe { Home::close(home) };
        pool.ended.ring();
        return;
    }
    // SAFETY: as above; we give the home up.
    unsafe { Home::close(home) };
}

/// [`poll::stop`]; answers with how many tasks ended: none for blocking work, which was
/// not counted as a task when it came.
///
/// # Safety
/// 1. As [`poll::stop`].
unsafe fn stop_counted(task: NonNull<Header>) -> u64 {
    // SAFETY: 1.
    let is_task = !unsafe { task.as_ref() }.is_blocking();
    // SAFETY: 1.
    u64::from(unsafe { poll::stop(task) } && is_task)
}

impl Pool {
    /// S5, and S6 for the outside homes.
    fn end_outside(&self) {
        let homes: Vec<NonNull<Home>> =
            self.outside.iter().filter_map(|outside| lock(outside).shut()).collect();
        for home in &homes {
            // SAFETY: a shut home is ours alone.
            while let Some(task) = unsafe { home.as_ref().next_to_stop() } {
                // SAFETY: the home keeps it.
                let stopped = unsafe { stop_counted(task) };
                self.outside_counters.stopped(stopped);
            }
        }
        self.intake.close();
        while let Some(task) = self.intake.pop() {
            self.outside_counters.stopped(u64::from(poll::end(task)));
        }
        for home in homes {
            // SAFETY: as above; we give the home up.
            unsafe { Home::close(home) };
        }
    }
}

impl super::Outside {
    /// Refuses tasks from now on; the home is then the caller's alone.
    fn shut(&mut self) -> Option<NonNull<Home>> {
        self.closed = !weakened!("stop_outside_refuses");
        let home = self.home.take()?;
        // SAFETY: the lock is the right to hold, and nobody will hold it again.
        unsafe { home.as_ref().refuse() };
        Some(home)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::{panic::Location, sync::Arc as Plain};

    use crate::engine::{
        pool::{Config, Pool},
        prim::{Arc, model, thread},
        threads::Recipe,
        work::task::cell::Label,
    };

    /// A pool that no thread works for.
    pub(in crate::engine::pool) fn config(workers: usize, threaded: bool) -> Config {
        let recipe = Recipe {
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
            intake_interval: None,
            tick_polls: 128,
            recipe,
            on_park: None,
            on_unpark: None,
            hooks: None,
            poll_times: None,
            latencies: None,
            seed: None,
            ends_on_panic: false,
            vigil: None,
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
            assert_eq!(Plain::strong_count(&pool), 1, "a home outlived its last task");
        });
    }
}
