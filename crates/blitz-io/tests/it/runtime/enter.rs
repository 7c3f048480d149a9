//! Tests which runtime is the current one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use blitz_io::runtime::{Handle, Id};

use crate::support::{
    caught_panic::panic_of,
    manual_poll::poll_once,
    runtimes::{all_kinds, one_thread, workers},
    watchdog,
};

fn current() -> Option<Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

#[test]
fn guards_nest_and_each_gives_back_the_one_before() {
    let _watch = watchdog::start();
    let (one, two) = (workers(1), one_thread());
    assert_eq!(current(), None);
    let outer = one.enter();
    assert_eq!(current(), Some(one.handle().id()));
    let inner = two.enter();
    assert_eq!(current(), Some(two.handle().id()));
    let again = one.handle().enter();
    assert_eq!(current(), Some(one.handle().id()));
    drop(again);
    assert_eq!(current(), Some(two.handle().id()));
    drop(inner);
    assert_eq!(current(), Some(one.handle().id()));
    drop(outer);
    assert_eq!(current(), None);
}

#[test]
fn spawn_means_the_entered_runtime() {
    let _watch = watchdog::start();
    let (one, two) = (workers(1), workers(1));
    let _outer = one.enter();
    let on_one = blitz_io::spawn(async { current() });
    let inner = two.enter();
    let on_two = blitz_io::spawn(async { current() });
    drop(inner);
    assert_eq!(one.block_on(on_one).unwrap(), Some(one.handle().id()));
    assert_eq!(one.block_on(on_two).unwrap(), Some(two.handle().id()));
}

#[test]
fn block_on_and_tasks_are_inside_their_runtime_whatever_was_entered() {
    let _watch = watchdog::start();
    let other = workers(1);
    let _entered = other.enter();
    for rt in all_kinds() {
        let id = Some(rt.handle().id());
        assert_eq!(rt.block_on(async { current() }), id);
        assert_eq!(rt.handle().block_on(async { current() }), id);
        assert_eq!(rt.block_on(rt.spawn(async { current() })).unwrap(), id);
        assert_eq!(current(), Some(other.handle().id()));
    }
}

#[test]
fn entering_another_runtime_inside_a_task_is_over_with_the_guard() {
    let _watch = watchdog::start();
    let (rt, other) = (workers(1), workers(1));
    let (id, handle) = (rt.handle().id(), other.handle().clone());
    let (during, after) = rt
        .block_on(rt.spawn(async move {
            let during = {
                let _entered = handle.enter();
                current()
            };
            (during, current())
        }))
        .unwrap();
    assert_eq!((during, after), (Some(other.handle().id()), Some(id)));
}

#[test]
fn a_guard_dropped_out_of_order_panics_and_nothing_dangles() {
    let _watch = watchdog::start();
    std::thread::spawn(|| {
        let (one, two) = (workers(1), workers(1));
        let (first, second) = (one.enter(), two.enter());
        panic_of(|| drop(first)).says(&["EnterGuard", "out of order", "reverse order"]);
        assert_eq!(current(), Some(two.handle().id()), "the inner one is still entered");
        drop(second);
        // If a runtime is current now, it is one that exists.
        if let Ok(handle) = Handle::try_current() {
            assert_eq!(handle.id(), one.handle().id());
            assert_eq!(one.block_on(handle.spawn(async { 1 })).unwrap(), 1);
        }
        drop((one, two));
        if Handle::try_current().is_ok() {
            let mut task = blitz_io::spawn(async {});
            assert!(matches!(
                poll_once(&mut task),
                std::task::Poll::Ready(Err(error)) if error.is_cancelled()
            ));
        }
    })
    .join()
    .unwrap();
}

#[test]
fn guards_dropped_out_of_order_by_a_panic_do_not_abort() {
    let _watch = watchdog::start();
    std::thread::spawn(|| {
        let (one, two) = (workers(1), workers(1));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let (first, second) = (one.enter(), two.enter());
            // Tuple fields are dropped in order, so the outer guard goes first.
            let _pair = (first, second);
            panic!("unwinding");
        }));
        assert_eq!(crate::support::caught_panic::message(&*caught.unwrap_err()), "unwinding");
    })
    .join()
    .unwrap();
}

#[test]
fn a_forgotten_guard_keeps_its_runtime_current_and_nothing_dangles() {
    let _watch = watchdog::start();
    std::thread::spawn(|| {
        let rt = workers(1);
        let id = rt.handle().id();
        std::mem::forget(rt.enter());
        assert_eq!(current(), Some(id));
        let other = workers(1);
        assert_eq!(other.block_on(async { current() }), Some(other.handle().id()));
        assert_eq!(current(), Some(id));
        drop(rt);
        assert_eq!(current(), Some(id), "the handle outlives its runtime");
        let mut task = blitz_io::spawn(async {});
        assert!(matches!(
            poll_once(&mut task),
            std::task::Poll::Ready(Err(error)) if error.is_cancelled()
        ));
    })
    .join()
    .unwrap();
}

#[test]
fn a_guard_outlives_its_runtime() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let handle = rt.handle().clone();
    let guard = handle.enter();
    drop(rt);
    assert_eq!(current(), Some(handle.id()));
    let mut task = blitz_io::spawn(async { unreachable!("after the end") });
    assert!(poll_once(&mut task).is_ready());
    drop(guard);
    assert_eq!(current(), None);
}

#[test]
fn other_threads_are_in_no_runtime() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let _guard = rt.enter();
    let seen = std::thread::spawn(|| (current(), Handle::try_current().map(|_| ()).unwrap_err()));
    let (seen, error) = seen.join().unwrap();
    assert_eq!(seen, None);
    assert!(error.is_missing_context() && !error.is_thread_local_destroyed());
    assert!(error.to_string().contains("block_on"), "no next step in: {error}");
}

#[test]
fn the_current_runtime_can_be_queried_while_a_thread_exits() {
    let _watch = watchdog::start();
    struct QueriesLast;
    impl Drop for QueriesLast {
        fn drop(&mut self) {
            let _ = Handle::try_current();
            assert!(catch_unwind(|| blitz_io::spawn(async {})).is_err());
            assert_eq!(blitz_io::task::try_id(), None);
        }
    }
    thread_local!(static LAST: QueriesLast = const { QueriesLast });
    std::thread::spawn(|| {
        LAST.with(|_| ());
        let rt = workers(1);
        rt.block_on(async {});
    })
    .join()
    .unwrap();
}
