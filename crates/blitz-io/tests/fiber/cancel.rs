//! Tests that fibers that end early are unwound, on their own threads.

use std::{
    future::poll_fn,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
    thread::{self, ThreadId},
    time::Duration,
};

use blitz_io::{
    channel::oneshot,
    runtime::{Builder, Runtime},
    task::{self, JoinHandle},
    time::sleep,
};

use crate::{basics::both, fiber, support::on_drop::OnDrop};

/// Counts its drops, and panics if it is dropped on another thread than the one that created it.
pub(crate) struct Witness(ThreadId, Arc<AtomicUsize>);

impl Witness {
    pub(crate) fn new(dropped: &Arc<AtomicUsize>) -> Self {
        Self(thread::current().id(), dropped.clone())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        assert_eq!(thread::current().id(), self.0, "unwound on another thread");
        self.1.fetch_add(1, SeqCst);
    }
}

pub(crate) fn spawn<R: Send + 'static>(
    rt: &Runtime,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()
}

/// Spawns a fiber that has started and waits for ever with a witness on its stack.
pub(crate) fn suspended(rt: &Runtime, dropped: &Arc<AtomicUsize>) -> JoinHandle<()> {
    let (dropped, (began, begins)) = (dropped.clone(), mpsc::channel());
    let handle = spawn(rt, move || {
        let _witness = Witness::new(&dropped);
        began.send(()).unwrap();
        fiber::wait(std::future::pending::<()>());
        unreachable!("nothing wakes it");
    });
    begins.recv().unwrap();
    handle
}

#[test]
fn an_abort_while_suspended_unwinds_the_stack() {
    both(|rt| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let handle = suspended(rt, &dropped);
        assert_eq!(dropped.load(SeqCst), 0);
        handle.abort();
        assert!(rt.block_on(handle).unwrap_err().is_cancelled());
        assert_eq!(dropped.load(SeqCst), 1);
    });
}

#[test]
fn an_abort_before_the_first_run_drops_the_closure() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let (hold, held) = mpsc::channel::<()>();
    let (began, begins) = mpsc::channel();
    // Occupies the only thread.
    let hog = spawn(&rt, move || {
        began.send(()).unwrap();
        held.recv().unwrap_err();
    });
    begins.recv().unwrap();
    let flag = Arc::new(());
    let never = {
        let flag = flag.clone();
        spawn(&rt, move || drop(flag))
    };
    never.abort();
    drop(hold);
    assert!(rt.block_on(never).unwrap_err().is_cancelled());
    assert_eq!(Arc::strong_count(&flag), 1);
    rt.block_on(hog).unwrap();
}

#[test]
fn an_abort_while_running_takes_effect_at_the_next_wait_or_checkpoint() {
    both(|rt| {
        for checks in [false, true] {
            let aborted = Arc::new(AtomicBool::new(false));
            let (began, begins) = mpsc::channel();
            let handle = spawn(rt, {
                let aborted = aborted.clone();
                move || {
                    began.send(()).unwrap();
                    while !aborted.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                    if checks {
                        fiber::checkpoint();
                    } else {
                        fiber::wait(task::yield_now());
                    }
                    unreachable!("it was aborted");
                }
            });
            begins.recv().unwrap();
            handle.abort();
            aborted.store(true, SeqCst);
            assert!(rt.block_on(handle).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn a_fiber_that_ends_before_it_waits_again_is_not_cancelled() {
    both(|rt| {
        let (began, begins) = mpsc::channel();
        let (hold, held) = mpsc::channel::<()>();
        let handle = spawn(rt, move || {
            began.send(()).unwrap();
            held.recv().unwrap_err();
            7
        });
        begins.recv().unwrap();
        handle.abort();
        drop(hold);
        assert_eq!(rt.block_on(handle).unwrap(), 7);
    });
}

#[test]
fn a_fiber_that_catches_the_unwinding_and_returns_is_cancelled_all_the_same() {
    both(|rt| {
        let (began, begins) = mpsc::channel();
        let handle = spawn(rt, move || {
            let caught = catch_unwind(|| {
                began.send(()).unwrap();
                fiber::wait(std::future::pending::<()>());
            });
            assert!(caught.is_err());
            assert!(!thread::panicking());
            7
        });
        begins.recv().unwrap();
        handle.abort();
        assert!(rt.block_on(handle).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_fiber_that_catches_the_unwinding_and_panics_has_panicked() {
    both(|rt| {
        let (began, begins) = mpsc::channel();
        let handle: JoinHandle<()> = spawn(rt, move || {
            let caught = catch_unwind(|| {
                began.send(()).unwrap();
                fiber::wait(std::future::pending::<()>());
            });
            drop(caught);
            resume_unwind(Box::new("its own"));
        });
        begins.recv().unwrap();
        handle.abort();
        let error = rt.block_on(handle).unwrap_err();
        assert_eq!(error.into_panic().downcast_ref(), Some(&"its own"));
    });
}

#[test]
fn a_fiber_that_always_catches_the_unwinding_is_given_up_after_a_while() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let (began, begins) = mpsc::channel();
    let caught = Arc::new(AtomicUsize::new(0));
    let handle: JoinHandle<()> = spawn(&rt, {
        let caught = caught.clone();
        move || {
            began.send(()).unwrap();
            loop {
                // A server that survives panics of its handlers does this.
                let turn = || fiber::wait(std::future::pending::<()>());
                if catch_unwind(AssertUnwindSafe(turn)).is_err() {
                    caught.fetch_add(1, SeqCst);
                }
            }
        }
    });
    begins.recv().unwrap();
    handle.abort();
    let error = rt.block_on(handle).unwrap_err();
    assert!(error.is_cancelled());
    assert_eq!(caught.load(SeqCst), 64);
    // The thread can still run other fibers.
    assert_eq!(rt.block_on(spawn(&rt, || fiber::wait(async { 3 }))).unwrap(), 3);
}

/// Abandoning a fiber leaks its stack and nothing else, so whatever a poll lends to others, such
/// as its waker, must lie on that stack.
#[test]
fn the_waker_of_a_poll_lies_on_the_fibers_own_stack() {
    both(|rt| {
        let (here, waker) = rt
            .block_on(spawn(rt, || {
                let local = 0u8;
                let here = ptr::from_ref(&local).addr();
                fiber::wait(poll_fn(move |cx| {
                    Poll::Ready((here, ptr::from_ref(cx.waker()).addr()))
                }))
            }))
            .unwrap();
        // Stacks grow downwards, so the waker is above `here` or in the same frame.
        let stack = here - 4096..here + (256 << 10);
        assert!(stack.contains(&waker), "{waker:x} is not on the stack {stack:x?}");
    });
}

#[test]
fn a_waker_of_an_abandoned_fiber_outlives_the_fiber() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (began, begins) = mpsc::channel();
    let (woke, wakes) = mpsc::channel();
    let mut ends = Some((released, woke));
    let handle = spawn(&rt, move || {
        fiber::wait(poll_fn(move |cx| -> Poll<()> {
            let (released, woke) = ends.take().expect("it is polled once");
            let waker = cx.waker();
            thread::scope(|scope| {
                scope.spawn(move || {
                    released.recv().unwrap();
                    waker.wake_by_ref();
                    woke.send(()).unwrap();
                });
                began.send(()).unwrap();
                loop {
                    let turn = || fiber::wait(std::future::pending::<()>());
                    drop(catch_unwind(AssertUnwindSafe(turn)));
                }
            })
        }));
    });
    begins.recv().unwrap();
    handle.abort();
    assert!(rt.block_on(handle).unwrap_err().is_cancelled());
    // Reuses, and overwrites, any memory of the abandoned fiber that was freed.
    for _ in 0..100 {
        rt.block_on(spawn(&rt, || fiber::wait(async { [u64::MAX; 16] }))).unwrap();
    }
    release.send(()).unwrap();
    wakes.recv().unwrap();
}

/// Creates a runtime with one thread for fibers, and a fiber that calls `turn` for ever.
fn endless(turn: impl Fn() + Send + 'static) -> (ManuallyDrop<Runtime>, JoinHandle<()>) {
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .fiber_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (began, begins) = mpsc::channel();
    let handle = spawn(&rt, move || {
        began.send(()).unwrap();
        loop {
            turn();
        }
    });
    begins.recv().unwrap();
    // A test that fails must not hang on this fiber in addition, so the runtime is not dropped.
    (ManuallyDrop::new(rt), handle)
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_loop_of_waits_that_are_ready_can_be_aborted() {
    let (rt, handle) = endless(|| fiber::wait(std::future::ready(())));
    handle.abort();
    let ended = rt.block_on(async { blitz_io::time::timeout(LONG, handle).await });
    assert!(ended.expect("it goes on").unwrap_err().is_cancelled());
    drop(ManuallyDrop::into_inner(rt));
}

#[test]
fn a_loop_of_waits_that_are_ready_ends_with_its_runtime() {
    let (rt, handle) = endless(|| fiber::wait(std::future::ready(())));
    let (ended, ends) = mpsc::channel();
    thread::spawn(move || {
        drop(ManuallyDrop::into_inner(rt));
        ended.send(()).unwrap();
    });
    ends.recv_timeout(LONG).expect("the runtime's drop waits for ever");
    drop(handle);
}

#[test]
fn a_loop_of_waits_that_are_ready_lets_the_others_run() {
    let (rt, handle) = endless(|| fiber::wait(std::future::ready(())));
    let other = spawn(&rt, || 3);
    let got = rt.block_on(async { blitz_io::time::timeout(LONG, other).await });
    assert_eq!(got.expect("it keeps the others waiting").unwrap(), 3);
    drop(ManuallyDrop::into_inner(rt));
    drop(handle);
}

#[test]
fn a_wait_while_the_thread_unwinds_blocks_it_and_does_not_switch() {
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .fiber_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for cancelled in [false, true] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let (began, begins) = mpsc::channel();
        let first: JoinHandle<()> = spawn(&rt, {
            let log = log.clone();
            move || {
                let _waits = OnDrop::new(|| {
                    assert!(thread::panicking());
                    log.lock().unwrap().push("waits");
                    fiber::checkpoint();
                    fiber::wait(sleep(Duration::from_millis(20)));
                    fiber::wait(blitz_io::spawn(async { task::yield_now().await })).unwrap();
                    log.lock().unwrap().push("has waited");
                });
                began.send(()).unwrap();
                if cancelled {
                    fiber::wait(std::future::pending::<()>());
                }
                resume_unwind(Box::new("a panic"));
            }
        });
        begins.recv().unwrap();
        if cancelled {
            first.abort();
        }
        let second = spawn(&rt, {
            let log = log.clone();
            move || {
                assert!(!thread::panicking());
                log.lock().unwrap().push("another");
            }
        });
        let error = rt.block_on(first).unwrap_err();
        assert_eq!(error.is_cancelled(), cancelled);
        rt.block_on(second).unwrap();
        let log = log.lock().unwrap();
        let at = log.iter().position(|what| *what == "waits").unwrap();
        assert_eq!(log[at + 1], "has waited", "another fiber ran in between: {log:?}");
    }
}

#[test]
fn a_destructor_that_panics_and_catches_it_does_no_harm() {
    both(|rt| {
        let (began, begins) = mpsc::channel();
        let handle = spawn(rt, move || {
            let _catches = OnDrop::new(|| {
                let caught = catch_unwind(|| resume_unwind(Box::new("inner")));
                assert!(caught.is_err());
            });
            began.send(()).unwrap();
            fiber::wait(std::future::pending::<()>());
        });
        begins.recv().unwrap();
        handle.abort();
        assert!(rt.block_on(handle).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_value_dropped_with_an_output_may_panic() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            if !thread::panicking() {
                resume_unwind(Box::new("in drop"));
            }
        }
    }
    both(|rt| {
        // The output of a fiber whose join handle was dropped.
        let (done, dones) = mpsc::channel();
        drop(spawn(rt, move || {
            done.send(()).unwrap();
            Panics
        }));
        dones.recv().unwrap();
        // A closure that is never called.
        let rt2 = Builder::new_current_thread().build().unwrap();
        let handle = rt2.handle().clone();
        drop(rt2);
        let panics = Panics;
        let handle = fiber::Builder::new().spawn_on(move || drop(panics), &handle).unwrap();
        let error = rt.block_on(handle).unwrap_err();
        assert!(error.is_panic());
        assert_eq!(rt.block_on(spawn(rt, || 1)).unwrap(), 1);
    });
}

#[test]
fn an_abort_waits_for_a_shield() {
    both(|rt| {
        let (release, released) = oneshot::channel::<()>();
        let (began, begins) = mpsc::channel();
        let through = Arc::new(AtomicBool::new(false));
        let handle = spawn(rt, {
            let through = through.clone();
            move || {
                fiber::wait(task::shield(async move {
                    began.send(()).unwrap();
                    released.await.unwrap();
                    through.store(true, SeqCst);
                }));
                fiber::wait(std::future::pending::<()>());
            }
        });
        begins.recv().unwrap();
        handle.abort();
        release.send(()).unwrap();
        assert!(rt.block_on(handle).unwrap_err().is_cancelled());
        assert!(through.load(SeqCst));
    });
}

#[test]
fn a_handle_that_is_dropped_or_forgotten_leaves_its_fiber_alone() {
    both(|rt| {
        let (done, dones) = mpsc::channel();
        for forget in [false, true] {
            let done = done.clone();
            let handle = spawn(rt, move || {
                fiber::wait(task::yield_now());
                done.send(()).unwrap();
            });
            if forget {
                std::mem::forget(handle)
            } else {
                drop(handle)
            }
            dones.recv().unwrap();
        }
    });
}

#[test]
fn a_time_out_drops_the_wait_and_not_the_fiber() {
    both(|rt| {
        let late = rt.block_on(async {
            fiber::spawn(|| {
                let never = std::future::pending::<()>();
                fiber::wait(blitz_io::time::timeout(Duration::from_millis(2), never)).is_err()
            })
            .await
            .unwrap()
        });
        assert!(late);
    });
}
