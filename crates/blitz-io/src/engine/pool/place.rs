//! Where a task that is to run is put, and whether somebody is woken for it.

use std::ptr::NonNull;

use super::{Pool, core::Core, watch::LONG};
use crate::engine::{
    prim::{Ordering::Relaxed, clock::Unit, lock},
    queue::{Chain, ring::Pushed},
    work::task::{
        cell::Task,
        home::{Home, Origin},
    },
};

impl Core {
    /// Puts an entry where this core, or one that helps it, will find it.
    #[inline(always)]
    pub(crate) fn place(&mut self, task: Task, origin: Origin) {
        if self.is_plain { self.place_last(task) } else { self.place_by_origin(task, origin) }
    }

    /// The same, and then drops `guard`, which keeps the core here: so that nothing is left to do
    /// after it, and whoever calls needs no frame.
    ///
    /// # Safety
    /// 1. The core is this thread's until `guard` is dropped, and nothing of it is borrowed.
    #[inline(always)]
    pub(crate) unsafe fn place_and_end<G>(
        mut core: NonNull<Self>,
        task: Task,
        origin: Origin,
        guard: G,
    ) {
        // SAFETY: 1. The borrow ends before the guard does.
        let this = unsafe { core.as_mut() };
        if this.is_plain {
            this.place_last(task);
            drop(guard);
        } else {
            // SAFETY: 1.
            unsafe { Self::place_by_origin_and_end(core, task, origin, guard) };
        }
    }

    /// # Safety
    /// 1. As `place_and_end`.
    #[inline(never)]
    unsafe fn place_by_origin_and_end<G>(
        mut core: NonNull<Self>,
        task: Task,
        origin: Origin,
        guard: G,
    ) {
        // SAFETY: 1. A pointer, and no argument that is a reference: that would be borrowed until
        // the function returns, and somebody else may have the core when the guard is gone.
        unsafe { core.as_mut() }.place_by_origin(task, origin);
        drop(guard);
    }

    #[inline(always)]
    fn place_last(&mut self, task: Task) {
        self.counters().placed.add(1);
        task.stamp(self.clock.now_ms());
        self.fifo.push_back(task);
    }

    #[inline(always)]
    fn place_by_origin(&mut self, task: Task, origin: Origin) {
        self.counters().placed.add(1);
        task.stamp(self.now());
        if !self.pool.config.threaded {
            self.fifo.push_back(task);
            return;
        }
        if self.batch {
            self.push_batch(task);
            return;
        }
        if origin == Origin::Yielded || !self.pool.config.lifo_slot {
            self.push_ring(task);
            self.call_help();
            return;
        }
        // SAFETY: this thread holds the core.
        if let Some(replaced) = unsafe { self.remote().lifo.put(task) } {
            self.push_ring(replaced);
            self.call_help();
        }
    }

    /// From now on entries come in a batch.
    ///
    /// They go behind all that waits already. If that is more than fits into the ring, and
    /// so part of it lies in the intake, the batch goes there as well: what comes next would
    /// overtake it again and again, and the intake is asked seldom while the ring is full.
    pub(crate) fn begin_batch(&mut self) {
        self.batch = true;
        self.holds_back = !self.pool.intake.is_empty();
    }

    fn push_batch(&mut self, task: Task) {
        self.holds_back |= self.ring.room() == 0;
        if self.holds_back {
            self.held_back.push_back(task);
        } else {
            self.push_ring(task);
        }
    }

    /// Gives what was held back of a batch to the intake; also if the core changes hands in
    /// the middle of one.
    pub(crate) fn give_batch(&mut self) {
        self.batch = false;
        if !self.held_back.is_empty() {
            let held_back = std::mem::take(&mut self.held_back);
            // As in `overflow`.
            drop(self.pool.intake.push_chain(held_back));
        }
    }

    /// Calls for help once, if there is more than this core takes next.
    pub(crate) fn end_batch(&mut self) {
        let is_long = !self.held_back.is_empty() || self.ring.len() > 1;
        self.give_batch();
        self.since_look_ns = 0;
        // Noted before this core slept, say: it has looked.
        self.look_is_due = false;
        if self.pool.config.threaded && is_long {
            self.call_help();
        }
    }

    /// The time, as exactly as somebody wants to know it.
    #[inline(always)]
    fn now(&self) -> u32 {
        if self.exact { Unit::Micros.now() } else { self.clock.now_ms() }
    }

    /// Puts an entry into the ring; half of a full ring goes to the intake.
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
        // The intake is closed only after every core has gone, so this one is
        // open; were it not, dropping the chain ends the tasks.
        drop(self.pool.intake.push_chain(chain));
    }

    /// Wakes a sleeping worker for what waits in the ring, if that is worth it.
    ///
    /// Advice only: this core will come to its ring by itself. So it looks without
    /// a fence, and nothing is lost if it sees the past.
    #[inline]
    fn call_help(&mut self) {
        if self.pool.idle.is_worth_waking() || self.ring.is_long(LONG) {
            self.wake_helper();
        }
    }

    #[cold]
    fn wake_helper(&mut self) {
        if self.pool.wake_one() {
            self.counters().wakeups_sent.add(1);
        }
    }

    /// This core found work while it searched: the last searcher calls the next
    /// one, if there is more to do.
    #[cold]
    pub(crate) fn stop_searching(&mut self) {
        self.searching = false;
        if self.pool.idle.stop_searching() && self.pool.has_visible_work() && self.pool.wake_one() {
            self.counters().wakeups_sent.add(1);
        }
    }
}

impl Pool {
    /// Puts an entry into the intake and sees that somebody comes for it.
    #[inline(never)]
    pub(crate) fn place_outside(&self, task: Task) {
        task.stamp(self.config.unit().now());
        match self.intake.push(task) {
            Ok(()) => {
                self.wake_one();
            }
            // The pool is gone and with it all tasks: this entry is what was left
            // of one, and dropping it frees it.
            Err(task) => drop(task),
        }
    }

    /// P2 and P3 of `idle`: wakes a worker if nobody searches, or the one that naps (I2
    /// and I3 of `watch`); `true` if it did.
    pub(crate) fn wake_one(&self) -> bool {
        if let Some(worker) =
            self.idle.reserve_for_work(self.duties.on_duty()).or_else(|| self.napper.take())
        {
            self.unpark(worker);
            return true;
        }
        false
    }

    /// Whether there is work that a searcher could find.
    pub(crate) fn has_visible_work(&self) -> bool {
        !self.intake.is_empty() || self.remotes.iter().any(|remote| !remote.thief.is_empty())
    }

    /// Many cells wait for the holder of `home`: if it sleeps it is called, and if it
    /// is one of the outside homes, this thread does it.
    pub(crate) fn sweep_for(&self, home: NonNull<Home>) {
        for outside in &self.outside {
            let outside = lock(outside);
            if outside.home == Some(home) && !outside.closed {
                // SAFETY: the lock is the right to hold; an open home is alive.
                unsafe { Home::sweep(home) };
                return;
            }
        }
        for (index, remote) in self.remotes.iter().enumerate() {
            // Relaxed: written before the pool was shared.
            if remote.home.load(Relaxed) == home.as_ptr() {
                // A token for one who is awake does no harm.
                self.unpark(index);
            }
        }
    }
}
