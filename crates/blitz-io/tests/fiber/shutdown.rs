//! Tests that the end of a runtime unwinds its fibers, whichever thread ends it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use blitz_io::{
    channel::oneshot,
    runtime::{Builder, Runtime},
    task,
};

use crate::{
    cancel::{Witness, spawn, suspended},
    fiber,
    support::runtimes::{one_thread_with_drivers, workers_with_drivers},
};

fn runtimes() -> [Runtime; 2] {
    [workers_with_drivers(2), one_thread_with_drivers()]
}

#[test]
fn a_drop_from_another_thread_unwinds_suspended_fibers_on_theirs() {
    for rt in runtimes() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..50).map(|_| suspended(&rt, &dropped)).collect();
        thread::spawn(move || drop(rt)).join().unwrap();
        assert_eq!(dropped.load(SeqCst), 50);
        let waiting = Builder::new_current_thread().build().unwrap();
        for handle in handles {
            assert!(waiting.block_on(handle).unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn a_shutdown_in_the_background_unwinds_them_soon() {
    for rt in runtimes() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..10).map(|_| suspended(&rt, &dropped)).collect();
        rt.shutdown_background();
        let waiting = Builder::new_current_thread().build().unwrap();
        for handle in handles {
            assert!(waiting.block_on(handle).unwrap_err().is_cancelled());
        }
        assert_eq!(dropped.load(SeqCst), 10);
    }
}

#[test]
fn a_shutdown_with_a_time_out_leaves_a_fiber_that_runs_to_itself() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let (began, begins) = mpsc::channel();
    let (hold, held) = mpsc::channel::<()>();
    let handle = spawn(&rt, move || {
        began.send(()).unwrap();
        held.recv().unwrap_err();
        fiber::wait(task::yield_now());
    });
    begins.recv().unwrap();
    rt.shutdown_timeout(Duration::from_millis(10));
    drop(hold);
    let waiting = Builder::new_current_thread().build().unwrap();
    assert!(waiting.block_on(handle).unwrap_err().is_cancelled());
}

#[test]
fn after_the_end_a_fiber_is_cancelled_at_once() {
    for used in [false, true] {
        for rt in runtimes() {
            if used {
                rt.block_on(spawn(&rt, || ())).unwrap();
            }
            let handle = rt.handle().clone();
            drop(rt);
            let kept = Arc::new(());
            let fiber = {
                let kept = kept.clone();
                fiber::Builder::new().spawn_on(move || drop(kept), &handle).unwrap()
            };
            assert_eq!(Arc::strong_count(&kept), 1, "the closure is dropped at once");
            let waiting = Builder::new_current_thread().build().unwrap();
            assert!(waiting.block_on(fiber).unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn destructors_that_spawn_while_their_runtime_ends_are_refused() {
    struct Spawns(Arc<AtomicUsize>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let witness = Witness::new(&self.0);
            let handle = fiber::spawn(|| ());
            drop(handle);
            drop(witness);
            drop(blitz_io::spawn(async {}));
        }
    }
    for rt in runtimes() {
        let (began, begins) = mpsc::channel();
        let dropped = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let (began, dropped) = (began.clone(), dropped.clone());
            drop(spawn(&rt, move || {
                let _spawns = Spawns(dropped);
                began.send(()).unwrap();
                fiber::wait(std::future::pending::<()>());
            }));
        }
        (0..10).for_each(|_| begins.recv().unwrap());
        drop(rt);
        assert_eq!(dropped.load(SeqCst), 10);
    }
}

#[test]
fn destructors_find_their_runtime_at_work_while_it_is_dropped() {
    struct Waits(Arc<AtomicUsize>);
    impl Drop for Waits {
        fn drop(&mut self) {
            fiber::wait(blitz_io::time::sleep(Duration::from_millis(5)));
            let task = blitz_io::spawn(async { 1 });
            self.0.fetch_add(fiber::wait(task).unwrap(), SeqCst);
        }
    }
    let rt = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (began, begins) = mpsc::channel();
    let waited = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let (began, waited) = (began.clone(), waited.clone());
        drop(spawn(&rt, move || {
            let _waits = Waits(waited);
            began.send(()).unwrap();
            fiber::wait(std::future::pending::<()>());
        }));
    }
    (0..3).for_each(|_| begins.recv().unwrap());
    drop(rt);
    assert_eq!(waited.load(SeqCst), 3);
}

#[test]
fn fibers_that_wake_each_other_while_they_end_do_no_harm() {
    struct Sends(Option<oneshot::Sender<()>>);
    impl Drop for Sends {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    for rt in runtimes() {
        let (began, begins) = mpsc::channel();
        let mut next = None;
        for _ in 0..40 {
            let (sender, receiver) = oneshot::channel();
            let (began, before) = (began.clone(), next.replace(sender));
            drop(spawn(&rt, move || {
                let _sends = before.map(|before| Sends(Some(before)));
                began.send(()).unwrap();
                let _ = fiber::wait(receiver);
                fiber::wait(std::future::pending::<()>());
            }));
        }
        (0..40).for_each(|_| begins.recv().unwrap());
        drop((next, rt));
    }
}

#[test]
fn a_runtime_may_be_dropped_by_its_own_fiber_in_place() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(2).build().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let others: Vec<_> = (0..8).map(|_| suspended(&rt, &dropped)).collect();
    let handle = rt.handle().clone();
    let ends =
        fiber::Builder::new().spawn_on(move || task::block_in_place(|| drop(rt)), &handle).unwrap();
    let waiting = Builder::new_current_thread().build().unwrap();
    waiting.block_on(ends).unwrap();
    for other in others {
        assert!(waiting.block_on(other).unwrap_err().is_cancelled());
    }
    assert_eq!(dropped.load(SeqCst), 8);
}

#[test]
fn a_runtime_dropped_on_its_own_fiber_panics_as_in_a_task() {
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let handle = rt.handle().clone();
    let fiber = fiber::Builder::new().spawn_on(move || drop(rt), &handle).unwrap();
    let waiting = Builder::new_current_thread().build().unwrap();
    let error = waiting.block_on(fiber).unwrap_err();
    let text = *error.into_panic().downcast::<&str>().unwrap();
    assert!(text.contains("Cannot drop a runtime"), "{text}");
}

#[test]
fn a_panic_that_ends_the_runtime_ends_it_for_a_fiber_too() {
    let rt = Builder::new_current_thread()
        .unhandled_panic(blitz_io::runtime::UnhandledPanic::ShutdownRuntime)
        .build()
        .unwrap();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rt.block_on(async {
            let fiber = fiber::spawn(|| std::panic::resume_unwind(Box::new("a panic")));
            drop::<task::JoinHandle<()>>(fiber);
            std::future::pending::<()>().await;
        });
    }));
    assert!(ended.is_err());
}

#[test]
fn spawns_from_many_threads_against_the_end_end_exactly_once() {
    for round in 0..20 {
        let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(2).build().unwrap();
        let (made, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        struct Counts(Arc<AtomicUsize>);
        impl Drop for Counts {
            fn drop(&mut self) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let spawners: Vec<_> = (0..3)
            .map(|_| {
                let (handle, made, ended) = (rt.handle().clone(), made.clone(), ended.clone());
                thread::spawn(move || {
                    for _ in 0..100 {
                        let counts = Counts(ended.clone());
                        made.fetch_add(1, SeqCst);
                        let f = move || {
                            let _counts = counts;
                            fiber::wait(task::yield_now());
                        };
                        drop(fiber::Builder::new().spawn_on(f, &handle).unwrap());
                    }
                })
            })
            .collect();
        if round % 2 == 0 {
            thread::yield_now();
        }
        drop(rt);
        spawners.into_iter().for_each(|spawner| spawner.join().unwrap());
        assert_eq!(made.load(SeqCst), ended.load(SeqCst));
    }
}
