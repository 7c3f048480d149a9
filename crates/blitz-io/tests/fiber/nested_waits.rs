//! Tests waits inside of futures that a fiber waits for, and what those futures may hold meanwhile.

use std::{
    cell::RefCell,
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, EnterGuard, Handle},
    sync::watch,
    task,
    time::sleep,
};

use crate::{
    basics::both,
    cancel::{Witness, spawn},
    fiber,
    support::watchdog,
};

/// All waits of a fiber share one waker, so a wake-up for the outer future wakes the inner one too.
#[test]
fn a_wake_up_for_the_outer_future_is_not_used_up_by_a_wait_inside_of_it() {
    let _watch = watchdog::start();
    both(|rt| {
        let waits = spawn(rt, || {
            fiber::wait(async {
                let short = sleep(Duration::from_millis(5));
                let long = sleep(Duration::from_millis(20));
                blitz_io::join!(short, async { fiber::wait(long) });
            });
            fiber::wait(async {
                blitz_io::join!(task::yield_now(), async { fiber::wait(task::yield_now()) });
            });
            // Every so often a wait yields to other fibers, whatever future it waits for.
            for _ in 0..100 {
                fiber::wait(async {
                    blitz_io::join!(task::yield_now(), async { fiber::wait(async {}) });
                });
            }
        });
        rt.block_on(waits).unwrap();
    });
}

#[test]
fn a_cancellation_that_is_caught_inside_of_a_future_comes_again() {
    let _watch = watchdog::start();
    both(|rt| {
        let (dropped, caught) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (began, begins) = mpsc::channel();
        let cleans_up = spawn(rt, {
            let (dropped, caught) = (dropped.clone(), caught.clone());
            move || {
                let _witness = Witness::new(&dropped);
                fiber::wait(async {
                    began.send(()).unwrap();
                    let wait = || fiber::wait(pending::<()>());
                    if catch_unwind(AssertUnwindSafe(wait)).is_err() {
                        caught.fetch_add(1, SeqCst);
                    }
                    sleep(Duration::from_secs(3600)).await;
                });
            }
        });
        let abort = cleans_up.abort_handle();
        let ends = std::thread::spawn(move || {
            begins.recv().unwrap();
            abort.abort();
        });
        assert!(rt.block_on(cleans_up).unwrap_err().is_cancelled());
        ends.join().unwrap();
        assert_eq!((dropped.load(SeqCst), caught.load(SeqCst)), (1, 1));
    });
}

#[test]
fn a_future_that_holds_a_lock_while_it_waits_is_refused() {
    let _watch = watchdog::start();
    both(|rt| {
        let (sender, receiver) = watch::channel(1);
        let panics = spawn(rt, move || {
            fiber::wait(poll_fn(|_| Poll::Ready(())));
            let mut holds = pin!(async {
                let value = receiver.borrow();
                pending::<()>().await;
                drop(value);
            });
            fiber::wait(poll_fn(|cx| holds.as_mut().poll(cx)));
        });
        let sends = spawn(rt, move || {
            // Sends only after the other fiber holds the value, or has let go of it.
            fiber::wait(task::yield_now());
            let _ = sender.send(2);
        });
        let panic = rt.block_on(panics).unwrap_err().into_panic();
        let text = panic.downcast::<String>().unwrap();
        assert!(text.contains("`watch::Ref`"), "{text}");
        rt.block_on(sends).unwrap();
    });
}

/// A waker whose drop waits.
struct WaitsWhenDropped(Arc<AtomicUsize>);

impl Wake for WaitsWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for WaitsWhenDropped {
    fn drop(&mut self) {
        fiber::wait(task::yield_now());
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn the_waker_of_a_timer_may_wait_when_it_is_dropped() {
    let _watch = watchdog::start();
    both(|rt| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let count = dropped.clone();
        let waits = spawn(rt, move || {
            let mut sleep = pin!(sleep(Duration::from_secs(3600)));
            for _ in 0..3 {
                let waker = Waker::from(Arc::new(WaitsWhenDropped(count.clone())));
                let pending = sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
                assert!(pending);
            }
            let pending = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
            assert!(pending);
            // The thread's state is intact for other fibers.
            fiber::wait(task::yield_now());
        });
        rt.block_on(waits).unwrap();
        rt.block_on(spawn(rt, || fiber::wait(task::yield_now()))).unwrap();
        assert_eq!(dropped.load(SeqCst), 3);
    });
}

/// A fiber starts inside the runtime that its carrier has entered, and owns no reference to it.
#[test]
fn guards_that_change_places_between_stacks_give_back_what_they_took() {
    static OTHERS: OnceLock<[Handle; 2]> = OnceLock::new();
    thread_local! {
        static GUARD: RefCell<Option<EnterGuard<'static>>> = const { RefCell::new(None) };
    }
    fn other(number: usize) -> &'static Handle {
        &OTHERS.get().unwrap()[number]
    }

    let _watch = watchdog::start();
    let runtimes = [0, 1].map(|_| Builder::new_current_thread().build().unwrap());
    OTHERS.set([0, 1].map(|number| runtimes[number].handle().clone())).unwrap();
    let token = Arc::new(());
    for runtime in &runtimes {
        let token = token.clone();
        runtime.spawn(async move {
            pending::<()>().await;
            drop(token);
        });
    }
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .fiber_threads(1)
        .on_thread_start(|| GUARD.set(Some(other(0).enter())))
        .build()
        .unwrap();
    for _ in 0..100 {
        let swaps = spawn(&rt, || {
            let old = GUARD.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(old)));
            GUARD.set(Some(other(1).enter()));
        });
        rt.block_on(swaps).unwrap();
    }
    // Handles are left, so both runtimes exist, with the tasks that were spawned on them.
    assert_eq!(Arc::strong_count(&token), 3);
    for number in [0, 1] {
        other(number).spawn(async {}).abort();
    }
    drop(rt);
    assert_eq!(Arc::strong_count(&token), 3);
    drop(runtimes);
    assert_eq!(Arc::strong_count(&token), 1);
}
