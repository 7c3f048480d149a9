//! Models of cores that are taken, with a real pool that has no worker threads.

use std::{panic::Location, ptr::NonNull, sync::Arc as Plain, time::Duration};

use super::{CorelessThread, Settings, WatchRecord, offload::Offloaded, stack::StackCapture};
use crate::engine::{
    pool::{Pool, held_core, held_core::CoreGuard, stop, stop::tests::config},
    preempt::handoff::Handoff,
    prim::{
        ids::{ModelEnds, Tally},
        lock, model, model_deeper, thread,
    },
    work::{
        task::cell::{Header, Label},
        thread_context,
        thread_context::LeaseGuard,
    },
};

fn pool() -> Plain<Pool> {
    let settings = Settings {
        slice: Duration::from_millis(10),
        hands_off: true,
        max_computing: 1,
        max_blocked: 1,
        learns: true,
        on_stall: None,
        stacks: StackCapture::Off,
        carriers: 0,
    };
    Pool::new(crate::engine::pool::Config { preempt: Some(settings), ..config(1, true) })
}

/// A thread that takes the pool's core, if the pool was not stopped before, enters user code once
/// and leaves it. Returns `true` if the thread still has its core then, or has it again, and then
/// ends the core.
fn hog(pool: &Plain<Pool>, watch_record: &Plain<WatchRecord>) -> bool {
    hog_that(pool, watch_record, |_| ())
}

/// Runs [`hog`] with `does` as the user code.
fn hog_that(pool: &Plain<Pool>, watch_record: &Plain<WatchRecord>, does: fn(&Pool)) -> bool {
    let Some(core) = pool.free_cores.take() else { return false };
    // SAFETY: obligation 1: the watch record, which owns the lease, is borrowed for longer than the
    // guard.
    let _lease_guard = unsafe { LeaseGuard::new(Some(watch_record.lease())) };
    let guard = CoreGuard::new(core);
    // The task pointer is never read: the monitor of these models only takes cores.
    thread_context::enter_user_code(NonNull::<Header>::dangling());
    does(pool);
    thread_context::leave_user_code();
    if !held_core::holds_core_of(pool) {
        match watch_record.take_core_back(pool) {
            Some(core) => drop(CoreGuard::new(core)),
            None => return false,
        }
    }
    stop::end_core(guard.release());
    true
}

/// Enters the runtime's code, nested once more, and touches the core if the thread has it.
fn call_twice(pool: &Pool) {
    for _ in 0..2 {
        let outer = thread_context::try_inside().unwrap_or_else(thread_context::inside);
        if held_core::holds_core_of(pool) {
            drop((thread_context::inside(), thread_context::nested_inside()));
            // The models of `engine/lease` check that no other thread has the core at the same
            // time.
            held_core::with_core(|core| core.keep_up += 1);
        }
        drop(outer);
    }
}

/// The monitor: takes the core, if its thread is in user code.
fn take(pool: &Plain<Pool>, watch_record: &Plain<WatchRecord>) -> Option<Plain<Handoff>> {
    if pool.is_stopping() {
        return None;
    }
    let number = watch_record.lease.poll_number()?;
    let inspection = watch_record.lease.inspect(number)?;
    let coreless = CorelessThread::of_a_model(watch_record);
    Some(pool.take_core_of(watch_record, inspection, coreless))
}

fn end(handoff: &Handoff) -> bool {
    handoff.take().map(stop::end_core).is_some()
}

/// The core goes to another thread while its old thread leaves its poll.
#[test]
fn a_taken_core_has_one_owner() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model(move || {
        let pool = pool();
        let watch_record = WatchRecord::begin(&pool, 0).expect("it is watched");
        let first = thread::spawn({
            let (pool, watch_record) = (pool.clone(), watch_record.clone());
            move || hog(&pool, &watch_record)
        });
        let second = take(&pool, &watch_record).is_some_and(|handoff| end(&handoff));
        let first = first.join().unwrap();
        assert!(first != second, "the core has two owners, or none");
        assert!(pool.join(None));
        assert!(lock(&pool.watched.as_ref().unwrap().coreless).len() <= usize::from(!first));
        counted.count(second);
    });
    ends.assert_both_came();
}

#[test]
fn a_core_is_taken_from_a_poll_that_calls_the_runtime() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model(move || {
        let pool = pool();
        let watch_record = WatchRecord::begin(&pool, 0).expect("it is watched");
        let first = thread::spawn({
            let (pool, watch_record) = (pool.clone(), watch_record.clone());
            move || hog_that(&pool, &watch_record, call_twice)
        });
        let second = take(&pool, &watch_record).is_some_and(|handoff| end(&handoff));
        let first = first.join().unwrap();
        assert!(first != second, "the core has two owners, or none");
        assert!(pool.join(None));
        counted.count(second);
    });
    ends.assert_both_came();
}

/// No thread is available for the core, so its old thread takes it back.
#[test]
fn an_unclaimed_core_is_taken_back() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    // The thread must enter its poll, the monitor run up to its last step, and the thread leave its
    // poll again: three context switches.
    model_deeper(move || {
        let pool = pool();
        let watch_record = WatchRecord::begin(&pool, 0).expect("it is watched");
        let hog = thread::spawn({
            let (pool, watch_record) = (pool.clone(), watch_record.clone());
            move || hog(&pool, &watch_record)
        });
        counted.count(take(&pool, &watch_record).is_some());
        assert!(hog.join().unwrap(), "the core is lost");
        assert!(pool.join(None));
        assert_eq!(pool.watched.as_ref().unwrap().detached_threads(), 0);
    });
    ends.assert_both_came();
}

/// A third thread stops the pool meanwhile.
#[test]
fn a_stop_against_a_taken_core_ends_it_once() {
    let ends = Plain::new(ModelEnds::default());
    let counted = ends.clone();
    model(move || {
        let pool = pool();
        let watch_record = WatchRecord::begin(&pool, 0).expect("it is watched");
        let hog = thread::spawn({
            let (pool, watch_record) = (pool.clone(), watch_record.clone());
            move || hog(&pool, &watch_record)
        });
        let monitor = thread::spawn({
            let (pool, watch_record) = (pool.clone(), watch_record.clone());
            move || take(&pool, &watch_record).is_some()
        });
        pool.stop();
        hog.join().unwrap();
        counted.count(monitor.join().unwrap());
        // If no thread ended the core, this would wait for ever; if two did, it would fail.
        assert!(pool.join(None));
    });
    ends.assert_both_came();
}

struct OffloadWitness(Plain<Tally>);

impl Drop for OffloadWitness {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Offloads a task that waits for ever, before a thread has taken it. Returns it with the number of
/// times that its future was dropped.
fn offload(pool: &Plain<Pool>) -> (Plain<Offloaded>, Plain<Tally>) {
    let dropped = Plain::new(Tally::default());
    let witness = OffloadWitness(dropped.clone());
    let task = async move {
        let _witness = witness;
        std::future::pending::<()>().await;
    };
    let handle = pool.spawn(task, Label::at(Location::caller()));
    drop(handle.unwrap_or_else(|refused| refused.end()));
    let task = pool.injector.pop().expect("it was spawned from outside");
    (Offloaded::of_a_model(pool, task), dropped)
}

/// The requested thread is late and the monitor requeues the task, while that thread arrives after
/// all and the pool ends.
#[test]
fn a_requeued_task_has_one_owner() {
    model(|| {
        let pool = pool();
        let (offloaded, dropped) = offload(&pool);
        let gives = offloaded.clone();
        let polls = thread::spawn(move || offloaded.run());
        let given = gives.requeue();
        drop(gives);
        polls.join().unwrap();
        assert_eq!(usize::from(given), pool.injector.len(), "it is queued, or it was polled");
        pool.stop();
        assert_eq!(dropped.get(), 1, "the future was left, or dropped twice");
        assert_eq!(Plain::strong_count(&pool), 1, "an arena outlived its last task");
    });
}

/// No thread polls the task: it goes back to its queue, or its memory back to its `Arena`.
#[test]
fn a_task_that_no_thread_polls_against_a_stop_is_dropped_once() {
    model(|| {
        let pool = pool();
        let (offloaded, dropped) = offload(&pool);
        let drops = thread::spawn(move || drop(offloaded));
        pool.stop();
        drops.join().unwrap();
        assert_eq!(dropped.get(), 1, "the future was left, or dropped twice");
        assert_eq!(Plain::strong_count(&pool), 1, "an arena outlived its last task");
    });
}

/// An offloaded task waits for its thread when the pool ends: its future is dropped once, by that
/// thread or by the stop.
#[test]
fn an_offloaded_task_against_a_stop_is_dropped_once() {
    model(|| {
        let pool = pool();
        let (offloaded, dropped) = offload(&pool);
        let polls = thread::spawn(move || offloaded.run());
        pool.stop();
        polls.join().unwrap();
        assert_eq!(dropped.get(), 1, "the future was left, or dropped twice");
        assert_eq!(Plain::strong_count(&pool), 1, "an arena outlived its last task");
    });
}
