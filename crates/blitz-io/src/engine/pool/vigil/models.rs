//! Models of cores that are taken, with a real pool that no thread works for.

use std::{panic::Location, ptr::NonNull, sync::Arc as Plain, time::Duration};

use super::{Detached, Settings, Stint, lend::Lent, stack::Stacks};
use crate::engine::{
    pool::{Pool, current, current::Held, handoff::Handoff, stop, stop::tests::config},
    prim::{
        ids::{Ends, Tally},
        lock, model, model_deeper, thread,
    },
    work::{
        current as words,
        current::Tenured,
        task::cell::{Header, Label},
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
        stacks: Stacks::Nobodys,
        carriers: 0,
    };
    Pool::new(crate::engine::pool::Config { vigil: Some(settings), ..config(1, true) })
}

/// A thread that runs the pool's core, if nobody has stopped that before; enters a user's code
/// once and comes out. `true` if it has its core then, or again; and then it ends it.
fn hog(pool: &Plain<Pool>, stint: &Plain<Stint>) -> bool {
    hog_that(pool, stint, |_| ())
}

/// The same, with what that code does.
fn hog_that(pool: &Plain<Pool>, stint: &Plain<Stint>, does: fn(&Pool)) -> bool {
    let Some(core) = pool.free_cores.take() else { return false };
    // SAFETY: 1. the stint is borrowed for longer.
    let _tenured = unsafe { Tenured::new(Some(stint.tenure())) };
    let held = Held::new(core);
    // Nobody looks at the task: the monitor of these models only takes.
    words::enter_user_code(NonNull::<Header>::dangling());
    does(pool);
    words::leave_user_code();
    if !current::holds_core_of(pool) {
        match stint.come_back(pool) {
            Some(core) => drop(Held::new(core)),
            None => return false,
        }
    }
    stop::end_core(held.release());
    true
}

/// Calls the runtime, which calls itself there, and touches the core if the thread has it.
fn call_twice(pool: &Pool) {
    for _ in 0..2 {
        let outer = words::at_once_inside().unwrap_or_else(words::inside);
        if current::holds_core_of(pool) {
            drop((words::inside(), words::deeper()));
            // Whether somebody else has it at the same time is asked in `tenure`'s models.
            current::with_core(|core| core.keep_up += 1);
        }
        drop(outer);
    }
}

/// The monitor: takes the core, if its thread is in a user's code.
fn take(pool: &Plain<Pool>, stint: &Plain<Stint>) -> Option<Plain<Handoff>> {
    if pool.is_stopping() {
        return None;
    }
    let number = stint.tenure.poll_number()?;
    let visit = stint.tenure.visit(number)?;
    let detached = Detached::of_a_model(stint);
    Some(pool.detach(stint, visit, detached))
}

fn end(handoff: &Handoff) -> bool {
    handoff.take().map(stop::end_core).is_some()
}

/// The core goes to another thread, while the one that it was taken from comes back.
#[test]
fn a_core_that_was_taken_is_had_by_one() {
    let ends = Plain::new(Ends::default());
    let counted = ends.clone();
    model(move || {
        let pool = pool();
        let stint = Stint::begin(&pool, 0).expect("it is watched");
        let first = thread::spawn({
            let (pool, stint) = (pool.clone(), stint.clone());
            move || hog(&pool, &stint)
        });
        let second = take(&pool, &stint).is_some_and(|handoff| end(&handoff));
        let first = first.join().unwrap();
        assert!(first != second, "the core has two owners, or none");
        assert!(pool.join(None));
        assert!(lock(&pool.watched.as_ref().unwrap().detached).len() <= usize::from(!first));
        counted.count(second);
    });
    ends.assert_both_came();
}

#[test]
fn a_core_is_taken_from_a_poll_that_calls_the_runtime() {
    let ends = Plain::new(Ends::default());
    let counted = ends.clone();
    model(move || {
        let pool = pool();
        let stint = Stint::begin(&pool, 0).expect("it is watched");
        let first = thread::spawn({
            let (pool, stint) = (pool.clone(), stint.clone());
            move || hog_that(&pool, &stint, call_twice)
        });
        let second = take(&pool, &stint).is_some_and(|handoff| end(&handoff));
        let first = first.join().unwrap();
        assert!(first != second, "the core has two owners, or none");
        assert!(pool.join(None));
        counted.count(second);
    });
    ends.assert_both_came();
}

/// There is no thread for it: its old one has it again.
#[test]
fn a_core_nobody_came_for_is_taken_back() {
    let ends = Plain::new(Ends::default());
    let counted = ends.clone();
    // The thread must get into its poll, the monitor up to its last step, and the thread out of
    // its poll again: three changes.
    model_deeper(move || {
        let pool = pool();
        let stint = Stint::begin(&pool, 0).expect("it is watched");
        let hog = thread::spawn({
            let (pool, stint) = (pool.clone(), stint.clone());
            move || hog(&pool, &stint)
        });
        counted.count(take(&pool, &stint).is_some());
        assert!(hog.join().unwrap(), "the core is lost");
        assert!(pool.join(None));
        assert_eq!(pool.watched.as_ref().unwrap().detached(), 0);
    });
    ends.assert_both_came();
}

/// The pool is stopped meanwhile, by a third.
#[test]
fn a_stop_against_a_taken_core_ends_it_once() {
    let ends = Plain::new(Ends::default());
    let counted = ends.clone();
    model(move || {
        let pool = pool();
        let stint = Stint::begin(&pool, 0).expect("it is watched");
        let hog = thread::spawn({
            let (pool, stint) = (pool.clone(), stint.clone());
            move || hog(&pool, &stint)
        });
        let monitor = thread::spawn({
            let (pool, stint) = (pool.clone(), stint.clone());
            move || take(&pool, &stint).is_some()
        });
        pool.stop();
        hog.join().unwrap();
        counted.count(monitor.join().unwrap());
        // Were it left to nobody, this would wait for ever; were it ended twice, it would fail.
        assert!(pool.join(None));
    });
    ends.assert_both_came();
}

struct Witness(Plain<Tally>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// A task that waits for ever, on its way to a thread without a core; and how often its future
/// was dropped.
fn lend(pool: &Plain<Pool>) -> (Plain<Lent>, Plain<Tally>) {
    let dropped = Plain::new(Tally::default());
    let witness = Witness(dropped.clone());
    let task = async move {
        let _witness = witness;
        std::future::pending::<()>().await;
    };
    let handle = pool.spawn(task, Label::at(Location::caller()));
    drop(handle.unwrap_or_else(|refused| refused.end()));
    let task = pool.intake.pop().expect("it was spawned from outside");
    (Lent::of_a_model(pool, task), dropped)
}

/// The thread that was asked for it does not come, and the monitor gives it back, while that
/// thread comes after all, and the pool ends.
#[test]
fn a_task_that_is_given_back_is_had_by_one() {
    model(|| {
        let pool = pool();
        let (lent, dropped) = lend(&pool);
        let gives = lent.clone();
        let polls = thread::spawn(move || lent.run());
        let given = gives.give_back();
        drop(gives);
        polls.join().unwrap();
        assert_eq!(usize::from(given), pool.intake.len(), "it is queued, or it was polled");
        pool.stop();
        assert_eq!(dropped.get(), 1, "the future was left, or dropped twice");
        assert_eq!(Plain::strong_count(&pool), 1, "a home outlived its last task");
    });
}

/// Nobody polls it: it goes back to its queue, or its memory to its home.
#[test]
fn a_task_that_nobody_polls_against_a_stop_is_dropped_once() {
    model(|| {
        let pool = pool();
        let (lent, dropped) = lend(&pool);
        let drops = thread::spawn(move || drop(lent));
        pool.stop();
        drops.join().unwrap();
        assert_eq!(dropped.get(), 1, "the future was left, or dropped twice");
        assert_eq!(Plain::strong_count(&pool), 1, "a home outlived its last task");
    });
}

/// A task that was caught is on its way to a thread without a core when the pool ends: its
/// future is dropped once, by the one or the other.
#[test]
fn a_task_that_is_lent_against_a_stop_is_dropped_once() {
    model(|| {
        let pool = pool();
        let (lent, dropped) = lend(&pool);
        let polls = thread::spawn(move || lent.run());
        pool.stop();
        polls.join().unwrap();
        assert_eq!(dropped.get(), 1, "the future was left, or dropped twice");
        assert_eq!(Plain::strong_count(&pool), 1, "a home outlived its last task");
    });
}
