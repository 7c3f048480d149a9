//! Tests fork-join scopes: no job outlives its scope, and the scope propagates panics.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use blitz_io::parallel::{
    Scope, current_thread_index, in_place_scope, in_place_scope_fifo, scope, scope_fifo,
};

use crate::support::{gate::Gate, pools::pool, watchdog};

#[test]
fn a_scope_returns_what_its_body_returns_after_all_jobs() {
    let _watch = watchdog::start();
    let ran = AtomicUsize::new(0);
    fn divide<'scope>(scope: &Scope<'scope>, ran: &'scope AtomicUsize, size: usize) {
        if size == 1 {
            ran.fetch_add(1, SeqCst);
            return;
        }
        scope.spawn(move |scope| divide(scope, ran, size / 2));
        scope.spawn(move |scope| divide(scope, ran, size / 2));
    }
    let output = scope(|scope| {
        divide(scope, &ran, 1024);
        42
    });
    assert_eq!((output, ran.into_inner()), (42, 1024));
}

#[test]
fn the_first_panic_of_a_scope_leaves_when_all_jobs_have_ended() {
    let _watch = watchdog::start();
    for threads in [1, 2] {
        for body_panics in [true, false] {
            let (pool, ran) = (pool(threads), AtomicUsize::new(0));
            let run = || {
                pool.scope(|scope| {
                    for number in 0..20 {
                        let ran = &ran;
                        scope.spawn(move |_| {
                            ran.fetch_add(1, SeqCst);
                            if number % 5 == 0 {
                                resume_unwind(Box::new("job"));
                            }
                        });
                    }
                    if body_panics {
                        resume_unwind(Box::new("body"));
                    }
                });
            };
            let payload = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
            assert!(payload.is::<&str>());
            assert_eq!(ran.load(SeqCst), 20, "a panic stops no other job");
        }
    }
}

#[test]
fn the_newest_job_runs_first_and_in_a_fifo_scope_the_oldest() {
    let _watch = watchdog::start();
    let (pool, order) = (pool(1), Mutex::new(Vec::new()));
    let note = |number: u32| order.lock().unwrap().push(number);
    pool.scope(|scope| (0..5).for_each(|n| scope.spawn(move |_| note(n))));
    assert_eq!(std::mem::take(&mut *order.lock().unwrap()), [4, 3, 2, 1, 0]);
    pool.scope_fifo(|scope| (0..5).for_each(|n| scope.spawn_fifo(move |_| note(n))));
    assert_eq!(std::mem::take(&mut *order.lock().unwrap()), [0, 1, 2, 3, 4]);
}

#[test]
fn an_in_place_scope_runs_its_body_here_and_its_jobs_there() {
    let _watch = watchdog::start();
    let (pool, gate) = (pool(1), Gate::new());
    // The body blocks until the job has run, so the caller does not run the job itself.
    pool.in_place_scope(|scope| {
        assert_eq!(current_thread_index(), None);
        scope.spawn(|_| {
            assert_eq!(current_thread_index(), Some(0));
            gate.open();
        });
        gate.block();
    });
    pool.in_place_scope_fifo(|scope| scope.spawn_fifo(|_| assert!(gate.is_open())));
    let (mut a, mut b) = (0, 0);
    in_place_scope(|scope| scope.spawn(|_| a = 1));
    in_place_scope_fifo(|scope| scope.spawn_fifo(|_| b = 2));
    assert_eq!((a, b), (1, 2));
}

#[test]
fn a_thread_of_one_pool_waits_for_a_scope_of_another() {
    let _watch = watchdog::start();
    let (one, two, ran) = (pool(1), pool(1), AtomicUsize::new(0));
    one.install(|| {
        two.in_place_scope(|scope| {
            // Back into the first pool, whose only thread waits and runs its pool's jobs meanwhile.
            scope.spawn(|_| one.install(|| _ = ran.fetch_add(1, SeqCst)));
        });
        two.scope(|scope| scope.spawn(|_| _ = ran.fetch_add(1, SeqCst)));
    });
    assert_eq!(ran.into_inner(), 2);
}

#[test]
fn a_broadcast_into_a_scope_is_waited_for() {
    let _watch = watchdog::start();
    let (pool, ran) = (pool(4), AtomicUsize::new(0));
    pool.scope(|scope| {
        scope.spawn_broadcast(|scope, context| {
            assert!(context.index() < 4);
            scope.spawn(|_| _ = ran.fetch_add(1, SeqCst));
        });
    });
    pool.scope_fifo(|scope| {
        scope.spawn_broadcast(|scope, _| scope.spawn_fifo(|_| _ = ran.fetch_add(1, SeqCst)));
    });
    assert_eq!(ran.load(SeqCst), 8);
    let panicking = || {
        pool.scope(|scope| scope.spawn_broadcast(|_, _| resume_unwind(Box::new(()))));
    };
    assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
}

#[test]
fn scopes_on_the_global_pool_take_results_by_reference() {
    let _watch = watchdog::start();
    let mut numbers = vec![1, 2, 3];
    let length = scope(|scope| {
        scope.spawn(|_| numbers.push(4));
        3
    });
    assert_eq!((length, numbers.len()), (3, 4));
    assert_eq!(scope_fifo(|_| "empty"), "empty");
}
