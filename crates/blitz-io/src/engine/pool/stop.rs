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

use std::{
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Pool, core::Core};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Release},
        futex::Futex,
        lock, weakened,
    },
    work::task::{home::Home, poll},
};

/// Counts the cores that have not ended.
pub(crate) struct Ended {
    left: AtomicUsize,
    done: Futex,
}

impl Ended {
    pub(crate) fn new(cores: usize) -> Self {
        Self { left: AtomicUsize::new(cores), done: Futex::new(0) }
    }

    /// One core fewer; `true` for the last.
    fn count_down(&self) -> bool {
        // AcqRel: the last one sees what the others did. Pairs with itself.
        self.left.fetch_sub(1, AcqRel) == 1
    }

    fn ring(&self) {
        // Release: the end happens before whoever waited goes on. Pairs with the
        // Acquire in `wait`.
        self.done.word().store(1, Release);
        self.done.wake_all();
    }

    /// Waits for the last core; `false` if the time is over first.
    fn wait(&self, timeout: Option<Duration>) -> bool {
        // A deadline beyond the clock's end is no deadline.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // Acquire: pairs with the Release in `ring`.
        while self.done.word().load(Acquire) == 0 {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            self.done.wait(0, left);
        }
        true
    }
}

impl Pool {
    /// S1. Cores that no thread holds end on this one.
    pub(crate) fn stop(self: &Arc<Self>) {
        // Release: pairs with the Acquire in `is_stopping`.
        self.stopping.store(true, Release);
        // A pool that was never started must not start any more.
        self.started.get_or_init(|| ());
        for remote in &self.remotes {
            remote.parker.unpark();
        }
        while let Some(core) = self.free_cores.take() {
            end_core(core);
        }
    }

    /// S7; `false` if the time was over first: the threads are left to themselves.
    pub(crate) fn join(&self, timeout: Option<Duration>) -> bool {
        if !self.ended.wait(timeout) {
            return false;
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        threads.into_iter().for_each(|thread| thread.join());
        true
    }
}

/// S3 to S6 for one core, which no thread holds any more.
#[allow(clippy::boxed_local, reason = "cores live in boxes, and this one ends here")]
pub(crate) fn end_core(core: Box<Core>) {
    let Core { pool, index, ring, fifo, home, .. } = *core;
    // SAFETY: we have the core, and so hold its home.
    unsafe { home.as_ref().refuse() };
    // SAFETY: as above; a home that refuses keeps cells until it is closed.
    while let Some(task) = unsafe { home.as_ref().next_to_stop() } {
        // SAFETY: the home keeps it.
        let stopped = unsafe { poll::stop(task) };
        pool.remotes[index].counters.completed.add(u64::from(stopped));
    }
    drop(pool.remotes[index].lifo.take());
    drop(ring);
    drop(fifo);
    if pool.ended.count_down() {
        pool.end_outside();
        // SAFETY: as above; we give the home up.
        unsafe { Home::close(home) };
        pool.ended.ring();
        return;
    }
    // SAFETY: as above; we give the home up.
    unsafe { Home::close(home) };
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
                let stopped = unsafe { poll::stop(task) };
                self.outside_counters.stopped(u64::from(stopped));
            }
        }
        self.intake.close();
        while let Some(task) = self.intake.pop() {
            drop(task);
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
mod tests {
    use std::{panic::Location, sync::Arc as Plain};

    use crate::engine::{
        pool::{Config, Pool},
        prim::{Arc, model, thread},
        threads::Recipe,
    };

    fn pool() -> Plain<Pool> {
        let recipe = Recipe {
            name: Plain::new(String::new),
            stack_size: None,
            on_start: None,
            on_stop: None,
        };
        Pool::new(Config {
            workers: 1,
            threaded: false,
            lazy: false,
            lifo_slot: true,
            intake_interval: None,
            tick_polls: 128,
            recipe,
            on_park: None,
            on_unpark: None,
        })
    }

    #[test]
    fn shutdown_against_spawn_drops_the_future_once() {
        model(|| {
            let pool = pool();
            let alive = Arc::new(());
            let spawner = thread::spawn({
                let (pool, alive) = (pool.clone(), alive.clone());
                move || {
                    let task = async move {
                        let _alive = alive;
                        std::future::pending::<()>().await;
                    };
                    drop(pool.spawn(task, Location::caller()));
                }
            });
            pool.stop();
            spawner.join().unwrap();
            assert_eq!(Arc::strong_count(&alive), 1, "a task outlived its runtime");
            assert_eq!(Plain::strong_count(&pool), 1, "a home outlived its last task");
        });
    }
}
