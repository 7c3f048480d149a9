//! More adversarial tests: large futures, leaked guards, builds that fail, and shutdown against
//! everything at once.

use std::{
    cell::RefCell,
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
};

use blitz_io::{
    runtime::{Builder, EnterGuard, Handle},
    task,
};

use crate::{make::NO_STACK, watch};

#[test]
fn a_large_future_can_be_spawned_from_a_worker() {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let out = rt.block_on(rt.spawn(async {
        let inner = async {
            let pad = [1u8; 400 << 10];
            task::yield_now().await;
            std::hint::black_box(&pad).len()
        };
        blitz_io::spawn(inner).await.unwrap()
    }));
    assert_eq!(out.unwrap(), 400 << 10);
}

#[test]
fn a_leaked_enter_guard_in_a_task_does_not_make_the_drop_of_the_runtime_panic() {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    rt.block_on(rt.spawn(async { std::mem::forget(Handle::current().enter()) })).unwrap();
    assert!(
        catch_unwind(AssertUnwindSafe(|| drop(rt))).is_ok(),
        "the drop of the runtime panicked"
    );
}

#[test]
fn a_build_that_fails_inside_a_task_is_an_error() {
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(async {
        let built = catch_unwind(|| {
            Builder::new_multi_thread().worker_threads(2).thread_stack_size(NO_STACK).build()
        });
        assert!(matches!(built, Ok(Err(_))), "it panicked instead");
    });
}

#[test]
fn a_name_fn_of_a_lazy_runtime_may_spawn() {
    let _watch = crate::watch::begin();
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        let rt = Builder::new_multi_thread()
            .worker_threads(1)
            .lazy_start()
            .thread_name_fn(|| {
                if let Ok(handle) = Handle::try_current() {
                    drop(handle.spawn(async {}));
                }
                "named".to_owned()
            })
            .build()
            .unwrap();
        let guard = rt.enter();
        drop(blitz_io::spawn(async {}));
        drop(guard);
        drop(rt);
        tx.send(()).unwrap();
    });
    rx.recv().unwrap();
}

struct Spawner(Arc<AtomicUsize>, usize);
impl Drop for Spawner {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        if self.1 > 0 {
            let next = Spawner(self.0.clone(), self.1 - 1);
            drop(blitz_io::spawn(async move {
                let _next = next;
                pending::<()>().await
            }));
        }
    }
}

#[test]
fn spawns_from_drops_during_shutdown_are_dropped_too() {
    for lazy in [false, true] {
        for workers in 1..4 {
            let count = Arc::new(AtomicUsize::new(0));
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers);
            if lazy {
                builder.lazy_start();
            }
            let rt = builder.build().unwrap();
            for _ in 0..50 {
                let spawner = Spawner(count.clone(), 20);
                rt.spawn(async move {
                    let _spawner = spawner;
                    pending::<()>().await
                });
            }
            drop(rt);
            assert_eq!(count.load(SeqCst), 50 * 21);
            assert_eq!(Arc::strong_count(&count), 1);
        }
    }
}

/// Stress test of every kind of handle against shutdown.
#[test]
fn shutdown_against_everything() {
    for round in 0..300 {
        let live = Arc::new(());
        let rt = Builder::new_multi_thread().worker_threads(1 + round % 3).build().unwrap();
        let wakers: Arc<Mutex<Vec<Waker>>> = Arc::default();
        let handles: Vec<_> = (0..40)
            .map(|n| {
                let (wakers, live) = (wakers.clone(), live.clone());
                rt.spawn(async move {
                    let _live = live.clone();
                    let shielded = task::shield(poll_fn({
                        let wakers = wakers.clone();
                        move |cx| {
                            wakers.lock().unwrap().push(cx.waker().clone());
                            Poll::<()>::Pending
                        }
                    }));
                    if n % 3 == 0 {
                        shielded.await;
                    } else if n % 3 == 1 {
                        let child = blitz_io::spawn(async move {
                            let _live = live;
                            loop {
                                task::yield_now().await
                            }
                        });
                        let _: Result<(), _> = child.await;
                    } else {
                        poll_fn(move |cx| {
                            wakers.lock().unwrap().push(cx.waker().clone());
                            Poll::<()>::Pending
                        })
                        .await
                    }
                })
            })
            .collect();
        let aborts: Vec<_> = handles.iter().map(|handle| handle.abort_handle()).collect();
        let waking = thread::spawn({
            let wakers = wakers.clone();
            move || {
                for _ in 0..20 {
                    let taken = std::mem::take(&mut *wakers.lock().unwrap());
                    taken.into_iter().for_each(Waker::wake);
                    thread::yield_now();
                }
            }
        });
        let aborting = thread::spawn(move || aborts.iter().for_each(|abort| abort.abort()));
        let joining = thread::spawn(move || {
            for handle in handles {
                let mut handle = std::pin::pin!(handle);
                let _ = handle.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
            }
        });
        if round % 2 == 0 {
            thread::yield_now();
        }
        drop(rt);
        waking.join().unwrap();
        aborting.join().unwrap();
        joining.join().unwrap();
        wakers.lock().unwrap().clear();
        assert_eq!(Arc::strong_count(&live), 1, "round {round}");
    }
}

#[test]
fn a_runtime_built_inside_a_name_fn_has_threads() {
    let _watch = watch::begin();
    let other = Arc::new(Mutex::new(None));
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name_fn({
            let other = other.clone();
            move || {
                let inner = Builder::new_multi_thread().worker_threads(1).build().unwrap();
                *other.lock().unwrap() = Some(inner);
                "outer".to_owned()
            }
        })
        .build()
        .unwrap();
    let other = other.lock().unwrap().take().unwrap();
    assert_eq!(other.block_on(other.spawn(async { 7 })).unwrap(), 7);
    drop(rt);
}

#[test]
fn a_lazy_runtime_that_anothers_name_fn_spawns_on_starts() {
    let _watch = watch::begin();
    let (tx, rx) = mpsc::channel();
    let lazy = Builder::new_multi_thread().worker_threads(1).lazy_start().build().unwrap();
    let handle = lazy.handle().clone();
    let _rt = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name_fn(move || {
            let tx = tx.clone();
            handle.spawn(async move { tx.send(7).unwrap() });
            "other".to_owned()
        })
        .build()
        .unwrap();
    assert_eq!(rx.recv().unwrap(), 7);
}

thread_local! {
    static GUARD: RefCell<Option<EnterGuard<'static>>> = const { RefCell::new(None) };
}

#[test]
fn a_guard_that_ends_with_its_thread_aborts_nothing() {
    let _watch = watch::begin();
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle: &'static Handle = Box::leak(Box::new(rt.handle().clone()));
    let keep = async move { GUARD.with(|guard| *guard.borrow_mut() = Some(handle.enter())) };
    rt.block_on(rt.spawn(keep)).unwrap();
    drop(rt);
}
