//! A pool that belongs to one thread, for tasks with futures that are not `Send`.
//!
//! Such a pool has no threads of its own and one core. Its *local* tasks are created in the `Arena`
//! of that core, and nowhere else. They are polled by the thread that holds the core and takes
//! their entry out, and dropped by that thread or by the end of the core. So this must be shown:
//! only the owner's thread ever holds the core.
//!
//! # Invariants
//! *One thread*: the core is among the free cores, or held by the thread with the number `number`.
//! The ways to get it out of the free cores are
//!
//! 1. `drive`, which `LocalRuntime::block_on` calls. That runtime is not `Send`; and
//!    `Handle::block_on`, which may be called anywhere, only waits for its future. A panic that
//!    ends the runtime makes `drive` end the core, on the thread that holds it.
//! 2. `stop`, which the runtime's shutdown and drop call, on the same thread.
//! 3. `spawn_local` below, which checks the number.
//! 4. starting threads, which this pool does not do.
//!
//! 1 and 2 check the number too ([`Pool::assert_owner_thread`]), so another way, if one is added,
//! fails before a future is touched. The core is not handed off to another thread while its own
//! blocks: only pools with threads do that.
//!
//! Other threads do hold *entries* of local tasks, of those they have woken or aborted. They put
//! them into the injector. The thread that takes them out there holds the core, or ends the last
//! one, which is the same thread; and a thread that finds the injector closed drops an entry of a
//! task that was stopped before: S3 to S5 of `stop`, in that order, on one thread.
//!
//! Outside arenas hold tasks that are `Send`, because `spawn` requires it, also here.
//!
//! # Checked by
//! `a_wake_against_the_end_of_an_owned_pool_drops_the_future_on_its_thread`; weakened as
//! `owned_stops_first`.

use std::{future::Future, sync::Arc};

use super::{Pool, held_core};
use crate::engine::{
    prim::OnceLock,
    work::{
        task::{
            arena::{Arena, Origin},
            cell::Label,
            extra::Extra,
            handle::JoinHandle,
        },
        thread_context::thread,
    },
};

/// The thread that a pool belongs to, if it belongs to one.
#[derive(Debug, Default)]
pub(crate) struct OwnerThread {
    number: OnceLock<u64>,
}

impl OwnerThread {
    pub(super) fn none() -> Self {
        Self { number: OnceLock::new() }
    }
}

/// A future that was not spawned because the pool has ended.
pub(crate) struct RefusedLocal<F, X = ()> {
    future: F,
    label: Label<X>,
    pool: Arc<Pool>,
}

impl<F: Future + 'static, X: Extra> RefusedLocal<F, X> {
    /// Returns the handle of a task that was cancelled before its first poll. Drops the future
    /// here, so user code runs, and nothing may be borrowed.
    #[cold]
    pub(crate) fn end(self) -> JoinHandle<F::Output> {
        let header = self.pool.make_ended(self.future, self.label);
        // SAFETY: `make_ended` returned the join reference of a new task with this output.
        unsafe { JoinHandle::new(header) }
    }
}

impl Pool {
    /// Makes the calling thread the owner of the pool.
    pub(crate) fn set_owner_thread(&self) {
        assert!(!self.config.threaded, "a pool with threads has no owner");
        let set = self.owner_thread.number.set(thread());
        assert!(set.is_ok(), "a pool belongs to one thread");
    }

    /// Returns true if the pool accepts local tasks, which must come from its own thread.
    pub(crate) fn is_local(&self) -> bool {
        self.owner_thread.number.get().is_some()
    }

    /// Returns true if the pool belongs to the calling thread.
    pub(crate) fn is_owner_thread(&self) -> bool {
        self.owner_thread.number.get().is_some_and(|number| *number == thread())
    }

    /// Asserts that the core, which is about to be taken, is not taken by another thread than the
    /// pool's own.
    pub(super) fn assert_owner_thread(&self) {
        assert!(!self.is_local() || self.is_owner_thread(), "another thread took a local core");
    }

    /// Creates a local task and queues it, or returns the future if the pool has ended. No user
    /// code runs and no user value is dropped inside, as in `spawn`.
    pub(crate) fn spawn_local<F: Future + 'static, X: Extra>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, RefusedLocal<F, X>> {
        assert!(self.is_owner_thread(), "a local task was spawned on another thread");
        let header = if held_core::holds_core_of(self) {
            // SAFETY: this thread holds the core, and so its arena.
            let (task, header) = unsafe { Arena::spawn(held_core::arena(), future, label) };
            held_core::with_core(|core| core.counters().spawned.add(1));
            self.schedule_new(task);
            header
        } else {
            // No thread runs tasks now: the core is free, or gone for good.
            let Some(mut core) = self.free_cores.take() else {
                return Err(RefusedLocal { future, label, pool: self.clone() });
            };
            // SAFETY: we have the core, so we are the holder of its arena.
            let (task, header) = unsafe { Arena::spawn(core.arena, future, label) };
            core.counters().spawned.add(1);
            if self.config.hooks.is_none() {
                core.schedule(task, Origin::Spawned);
                self.free_cores.put_back(core);
            } else {
                self.free_cores.put_back(core);
                self.clone().schedule_hooked(task);
            }
            header
        };
        // SAFETY: `header` is the join reference of a new task with this output.
        Ok(unsafe { JoinHandle::new(header) })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        future::{pending, poll_fn},
        panic::Location,
        rc::Rc,
        sync::Arc as Plain,
        task::{Poll, Waker},
    };

    use crate::engine::{
        pool::{Pool, stop::tests::config},
        prim::{ids::Tally, model, thread},
        work::task::cell::Label,
        work::task::poll,
    };

    /// A value that panics when it is dropped on another thread than its own.
    struct OwnerWitness(thread::ThreadId, Plain<Tally>);

    impl Drop for OwnerWitness {
        fn drop(&mut self) {
            assert_eq!(thread::current().id(), self.0, "a future left its thread");
            self.1.add();
        }
    }

    #[test]
    fn a_wake_against_the_end_of_an_owned_pool_drops_the_future_on_its_thread() {
        model(|| {
            let (pool, dropped) = (Pool::new(config(1, false)), Plain::new(Tally::default()));
            pool.set_owner_thread();
            let slot = Rc::new(RefCell::new(None::<Waker>));
            let task = {
                let witness = OwnerWitness(thread::current().id(), dropped.clone());
                let slot = slot.clone();
                async move {
                    let _witness = witness;
                    poll_fn(|cx| {
                        *slot.borrow_mut() = Some(cx.waker().clone());
                        Poll::Ready(())
                    })
                    .await;
                    pending::<()>().await;
                }
            };
            let handle =
                pool.spawn_local(task, Label::at(Location::caller())).ok().expect("it is open");
            drop(handle);
            // Not polled by `drive`, which reads the clock, because a model must repeat itself.
            let mut core = pool.free_cores.take().expect("no thread holds it");
            assert!(!poll::run(core.fifo.pop_front().expect("it was spawned"), 0));
            pool.free_cores.put_back(core);
            let waker = slot.take().expect("the task was polled");
            let other = thread::spawn(move || waker.wake());
            pool.stop();
            assert_eq!(dropped.get(), 1, "the end left the future, or another thread took it");
            other.join().unwrap();
            assert_eq!(Plain::strong_count(&pool), 1, "an arena outlived its last task");
        });
    }

    #[cfg(not(blitz_loom))]
    #[test]
    #[should_panic = "another thread took a local core"]
    fn no_other_thread_gets_the_core() {
        let pool = Pool::new(config(1, false));
        pool.set_owner_thread();
        let there = pool.clone();
        let panic = thread::spawn(move || {
            crate::engine::pool::drive::drive(&there, std::future::ready(()))
        })
        .join();
        pool.stop();
        std::panic::resume_unwind(panic.unwrap_err());
    }
}
