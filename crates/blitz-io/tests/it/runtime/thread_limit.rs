//! Tests a system that refuses a worker thread: the build returns an error that says so and leaves
//! nothing behind.
#![cfg(target_os = "linux")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use blitz_io::runtime::{Builder, Preemption, Runtime};

use crate::support::{
    caught_panic::panic_of, child, drop_tally::Tally, runtimes::NO_STACK,
    thread_limit::allow_threads, watchdog,
};

fn counting(started: &Arc<AtomicUsize>, stopped: &Arc<AtomicUsize>) -> Builder {
    let (starts, stops) = (started.clone(), stopped.clone());
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(6)
        .on_thread_start(move || {
            starts.fetch_add(1, Relaxed);
        })
        .on_thread_stop(move || {
            stops.fetch_add(1, Relaxed);
        });
    builder
}

#[test]
fn a_refused_thread_makes_build_fail_and_leaves_none_behind() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let name =
            "runtime::thread_limit::a_refused_thread_makes_build_fail_and_leaves_none_behind";
        child::succeed(&mut child::command(name, "is refused"));
        return;
    }
    let before = child::threads();
    allow_threads(3);
    for _ in 0..3 {
        let (started, stopped) = (Arc::default(), Arc::default());
        let error = counting(&started, &stopped).build().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
        let text = error.to_string();
        assert!(text.contains("of 6 worker threads") && text.contains("worker_threads"), "{text}");
        // A thread that was joined disappears from the list a moment later.
        watchdog::until(|| child::threads() == before);
        assert!(started.load(Relaxed) <= 3);
        assert_eq!(started.load(Relaxed), stopped.load(Relaxed));
    }
    // The threads that were started are released.
    let rt = Builder::new_multi_thread().worker_threads(1).build();
    if let Ok(rt) = rt {
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
    }
    // A current-thread runtime needs no thread.
    let rt = Builder::new_current_thread().build().unwrap();
    assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn a_stack_that_does_not_fit_makes_build_fail() {
    let _watch = watchdog::start();
    for _ in 0..10 {
        let error = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(NO_STACK)
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("thread"), "{error}");
    }
}

fn lazy_without_threads() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(NO_STACK)
        .lazy_start()
        .build()
        .unwrap()
}

#[test]
fn a_refused_thread_of_a_lazy_start_panics_in_the_first_spawn() {
    let _watch = watchdog::start();
    let rt = lazy_without_threads();
    let tally = Tally::new();
    let token = tally.token();
    let future = async move { token.keep() };
    let caught = panic_of(|| rt.spawn(future));
    caught.says(&["thread", "use fewer"]);
    tally.assert_all_dropped(1);
    drop(rt);
}

#[test]
fn a_refused_thread_of_a_lazy_start_panics_at_the_line_of_the_spawn() {
    let _watch = watchdog::start();
    let rt = lazy_without_threads();
    panic_of(|| rt.spawn(async {})).at(file!(), line!());
    let _entered = rt.enter();
    panic_of(|| blitz_io::spawn(async {})).at(file!(), line!());
}

#[test]
fn a_spawn_after_a_refused_lazy_start_does_not_hang() {
    let _watch = watchdog::start();
    let rt = lazy_without_threads();
    let tally = Tally::new();
    for _ in 0..3 {
        let token = tally.token();
        // A spawn either panics or returns a handle that ends with its runtime.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            rt.spawn(async move { token.keep() })
        }));
    }
    drop(rt);
    tally.assert_all_dropped(3);
}

#[test]
fn a_lazy_start_starts_no_thread_before_the_first_spawn() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let name = "runtime::thread_limit::a_lazy_start_starts_no_thread_before_the_first_spawn";
        child::succeed(&mut child::command(name, "starts lazily"));
        return;
    }
    let before = child::threads();
    let named = Arc::new(AtomicUsize::new(0));
    let count = named.clone();
    let mut builder = Builder::new_multi_thread();
    // The monitor's thread would be counted as well.
    builder.preemption(Preemption::disabled());
    builder.worker_threads(3).thread_name_fn(move || {
        count.fetch_add(1, Relaxed);
        "lazy".to_owned()
    });
    let rt = builder.lazy_start().build().unwrap();
    rt.block_on(async {});
    let _entered = rt.enter();
    assert_eq!((child::threads(), named.load(Relaxed)), (before, 0));
    rt.block_on(rt.spawn(async {})).unwrap();
    assert!(named.load(Relaxed) >= 1);
    // All workers start, not only the first.
    assert_eq!(crate::support::runtimes::on_every_worker(&rt, || ()).len(), 3);
    assert_eq!(child::threads(), before + 3);
    drop(_entered);
    drop(rt);
    watchdog::until(|| child::threads() == before);
    // A runtime that never had work ends as well.
    let rt = Builder::new_multi_thread().worker_threads(3).lazy_start().build().unwrap();
    drop(rt);
    assert_eq!(child::threads(), before);
    // Without the option, the workers start at once.
    let rt = crate::support::runtimes::workers(3);
    assert_eq!(child::threads(), before + 3);
    drop(rt);
}

#[test]
fn a_thousand_runtimes_leave_no_thread_behind() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let name = "runtime::thread_limit::a_thousand_runtimes_leave_no_thread_behind";
        child::succeed(&mut child::command(name, "makes many"));
        return;
    }
    let before = child::threads();
    for round in 0..1_000 {
        let rt = crate::support::runtimes::workers(1 + round % 3);
        rt.spawn(std::future::pending::<()>());
        if round % 2 == 0 {
            rt.block_on(rt.spawn(async {})).unwrap();
        }
    }
    watchdog::until(|| child::threads() == before);
}
