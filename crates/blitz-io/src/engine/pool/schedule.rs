//! Chooses the queue for a runnable task, and decides whether a worker is woken for it.
//!
//! Tasks that are woken in one round of maintenance (events and timers, see `poller`) are a
//! *batch*: they go behind all tasks that wait already, and a worker is woken for them once.

use std::ptr::NonNull;

use super::{Pool, core::Core, keep_up::LONG};
use crate::engine::{
    prim::{Ordering::Relaxed, clock::TimestampUnit, lock},
    queue::{Chain, ring::Pushed},
    work::task::{
        arena::{Arena, Origin},
        cell::Task,
    },
};

impl Core {
    /// Puts an entry into a queue where this core, or a core that helps it, will find it.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, task: Task, origin: Origin) {
        if self.fifo_only {
            self.schedule_fifo(task, origin);
        } else {
            self.push_by_origin(task, origin);
        }
    }

    /// Queues an entry like [`schedule`](Self::schedule), and then drops `guard`, which keeps the
    /// core on this thread. Nothing is left to do after that, so the caller needs no stack frame.
    ///
    /// # Safety
    /// 1. The core is this thread's until `guard` is dropped, and nothing of it is borrowed.
    #[inline(always)]
    pub(crate) unsafe fn schedule_then<G>(
        mut core: NonNull<Self>,
        task: Task,
        origin: Origin,
        guard: G,
    ) {
        // SAFETY: obligation 1: the core is ours while `guard` lives, and this borrow ends before
        // it.
        let this = unsafe { core.as_mut() };
        if this.fifo_only {
            this.schedule_fifo(task, origin);
            drop(guard);
        } else {
            // SAFETY: obligation 1 is passed on: `guard` still lives, and `this` is not used again.
            unsafe { Self::push_by_origin_then(core, task, origin, guard) };
        }
    }

    /// Queues an entry by its origin, and then drops `guard`.
    ///
    /// # Safety
    /// 1. The core is this thread's until `guard` is dropped, and nothing of it is borrowed.
    #[inline(never)]
    unsafe fn push_by_origin_then<G>(
        mut core: NonNull<Self>,
        task: Task,
        origin: Origin,
        guard: G,
    ) {
        // SAFETY: obligation 1: the core is ours while `guard` lives. `core` is a pointer because
        // an argument that is a reference would be borrowed until the function returns, and another
        // thread may have the core as soon as the guard is gone.
        unsafe { core.as_mut() }.push_by_origin(task, origin);
        drop(guard);
    }

    #[inline(always)]
    fn schedule_fifo(&mut self, task: Task, origin: Origin) {
        self.counters().placed.add(1);
        task.stamp(self.clock.now_ms());
        self.push_fifo(task, origin);
    }

    #[inline(always)]
    fn push_fifo(&mut self, task: Task, origin: Origin) {
        let list = if origin == Origin::Yielded { &mut self.deferred } else { &mut self.fifo };
        list.push_back(task);
    }

    #[inline(always)]
    fn push_by_origin(&mut self, task: Task, origin: Origin) {
        self.counters().placed.add(1);
        task.stamp(self.now());
        if !self.pool.config.threaded {
            self.push_fifo(task, origin);
            return;
        }
        if self.batch {
            self.push_batch(task);
            return;
        }
        if origin.is_after_poll() || !self.pool.config.lifo_slot {
            self.push_ring(task);
            self.wake_worker_if_useful();
            return;
        }
        // SAFETY: this thread holds the core, so it is the only one that puts into the slot.
        if let Some(replaced) = unsafe { self.remote().lifo.put(task) } {
            self.push_ring(replaced);
            self.wake_worker_if_useful();
        }
    }

    /// Begins a batch: entries that are scheduled from now on belong to it.
    ///
    /// They go behind everything that waits already. If that is more than fits into the ring, so
    /// that part of it lies in the injector, the batch goes into the injector as well. Otherwise
    /// each batch would overtake that part again, because the injector is checked seldom while the
    /// ring is full.
    pub(crate) fn begin_batch(&mut self) {
        self.batch = true;
        self.batch_overflows = !self.pool.injector.is_empty();
    }

    fn push_batch(&mut self, task: Task) {
        self.batch_overflows |= self.ring.room() == 0;
        if self.batch_overflows {
            self.batch_overflow.push_back(task);
        } else {
            self.push_ring(task);
        }
    }

    /// Moves the entries of a batch that were held back to the injector. Must be called as well if
    /// the core moves to another thread in the middle of a batch.
    pub(crate) fn flush_batch(&mut self) {
        self.batch = false;
        if !self.batch_overflow.is_empty() {
            let batch_overflow = std::mem::take(&mut self.batch_overflow);
            // The injector is open while a core exists, as explained in `overflow`.
            drop(self.pool.injector.push_chain(batch_overflow));
        }
    }

    /// Ends a batch, and wakes a worker to help if there is more than this core takes next.
    pub(crate) fn end_batch(&mut self) {
        let is_long = !self.batch_overflow.is_empty() || self.ring.len() > 1;
        self.flush_batch();
        self.since_maintenance_ns = 0;
        // The flag may stem from before this core slept; the core has done its maintenance since.
        self.maintenance_is_due = false;
        if self.pool.config.threaded && is_long {
            self.wake_worker_if_useful();
        }
    }

    /// Returns the time, in microseconds if latencies are measured, else in milliseconds of the
    /// coarse clock.
    #[inline(always)]
    fn now(&self) -> u32 {
        if self.exact { TimestampUnit::Micros.now() } else { self.clock.now_ms() }
    }

    /// Puts an entry into the ring; half of a full ring goes to the injector.
    #[inline]
    pub(crate) fn push_ring(&mut self, task: Task) {
        self.counters().pushed.add(1);
        if let Pushed::Overflow(chain) = self.ring.push(task) {
            self.overflow(chain);
        }
    }

    #[cold]
    fn overflow(&mut self, chain: Chain<Task>) {
        self.counters().overflows.add(1);
        // The injector is closed only after every core has ended, so it is open here; if it were
        // not, dropping the chain would cancel the tasks.
        drop(self.pool.injector.push_chain(chain));
    }

    /// Wakes a sleeping worker for the tasks in the ring, if that is worth its cost.
    ///
    /// This is only a hint, because this core will come to its ring by itself. So the check needs
    /// no fence, and nothing is lost if it reads an old value.
    #[inline]
    fn wake_worker_if_useful(&mut self) {
        if self.pool.idle.is_worth_waking() || self.ring.is_long(LONG) {
            self.wake_worker();
        }
    }

    /// Wakes a worker if no worker searches (P2 and P3 of `idle`).
    #[cold]
    pub(crate) fn wake_worker(&mut self) {
        if self.pool.wake_one() {
            self.counters().wakeups_sent.add(1);
        }
    }

    /// Leaves the searching state because this core found work. The last searcher wakes the next
    /// worker if there is more to do.
    #[cold]
    pub(crate) fn stop_searching(&mut self) {
        self.searching = false;
        if self.pool.idle.stop_searching() && self.pool.has_visible_work() && self.pool.wake_one() {
            self.counters().wakeups_sent.add(1);
        }
    }
}

impl Pool {
    /// Wakes a worker if no worker searches (steps P2 and P3 of `idle`), or else the one that takes
    /// a short sleep (I2 and I3 of `keep_up`). Returns true if it woke one.
    pub(crate) fn wake_one(&self) -> bool {
        if let Some(worker) =
            self.idle.reserve_for_work(self.drivers.poller()).or_else(|| self.short_sleeper.take())
        {
            self.unpark(worker);
            return true;
        }
        false
    }

    /// Returns true if there is work that a searcher could find.
    pub(crate) fn has_visible_work(&self) -> bool {
        !self.injector.is_empty() || self.remotes.iter().any(|remote| !remote.thief.is_empty())
    }

    /// Makes the holder of `arena` collect the many cells that wait for it: a sleeping worker is
    /// unparked, and an outside arena is swept by this thread.
    pub(crate) fn sweep_for(&self, arena: NonNull<Arena>) {
        for outside in &self.outside {
            let outside = lock(outside);
            if outside.arena == Some(arena) && !outside.closed {
                // SAFETY: the lock makes this thread the holder of the arena, and an open arena is
                // alive.
                unsafe { Arena::sweep(arena) };
                return;
            }
        }
        for (index, remote) in self.remotes.iter().enumerate() {
            // Relaxed: written before the pool was shared.
            if remote.arena.load(Relaxed) == arena.as_ptr() {
                // A token does no harm to a worker that is awake.
                self.unpark(index);
            }
        }
    }
}
