//! Tests user code in every place where it can run, starts and ends that fail half-way, large
//! futures, and guards that are leaked.

use std::{
    cell::RefCell,
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, EnterGuard, Handle},
    task,
};

use crate::support::{child, runtimes::NO_STACK, watchdog};

/// Runs `f` on a thread of its own; the watchdog ends the test if it hangs.
fn within<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let _watch = watchdog::start();
    thread::spawn(f).join().unwrap()
}

#[test]
fn a_lazy_start_that_failed_is_reported_to_each_spawn() {
    within(|| {
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(NO_STACK)
            .lazy_start()
            .build()
            .unwrap();
        let first =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(rt.spawn(async {}))));
        assert!(first.is_err());
        // The second spawn must fail as well: if it returned a handle whose task never ran, this
        // would hang.
        if let Ok(handle) =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rt.spawn(async { 1 })))
        {
            let _ = rt.block_on(handle);
        }
    });
}

#[test]
fn a_shutdown_timeout_is_kept_when_a_stop_hook_is_slow() {
    let _watch = crate::support::watchdog::start();
    let gate = crate::support::gate::Gate::new();
    let opened = gate.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_stop(move || opened.block())
        .build()
        .unwrap();
    rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    // If the shutdown waited for the hook, this would hang.
    rt.shutdown_timeout(Duration::from_millis(100));
    gate.open();
}

/// B panics while it is queued for the core; C is queued behind it and must get the core when A is
/// done.
#[test]
fn a_waiter_behind_one_that_panicked_gets_the_core() {
    within(|| {
        let rt = Arc::new(Builder::new_current_thread().build().unwrap());
        let (a_in, a_is_in) = mpsc::channel();
        let release: Arc<Mutex<(bool, Option<Waker>)>> = Arc::default();
        let a = thread::spawn({
            let (rt, release) = (rt.clone(), release.clone());
            move || {
                rt.block_on(poll_fn(|cx| {
                    let mut state = release.lock().unwrap();
                    if state.0 {
                        return Poll::Ready(());
                    }
                    state.1 = Some(cx.waker().clone());
                    let _ = a_in.send(());
                    Poll::Pending
                }))
            }
        });
        a_is_in.recv().unwrap();
        // A holds the core. B enters the wait queue, then panics.
        let b = thread::spawn({
            let rt = rt.clone();
            move || {
                let mut polls = 0;
                rt.block_on(poll_fn(|cx| -> Poll<()> {
                    polls += 1;
                    if polls == 2 {
                        panic!("B gives up");
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }))
            }
        });
        assert!(b.join().is_err());
        // C is queued behind B, and needs a task that is woken only when A has gone.
        let go: Arc<Mutex<(bool, Option<Waker>)>> = Arc::default();
        let task = rt.spawn({
            let go = go.clone();
            poll_fn(move |cx| {
                let mut state = go.lock().unwrap();
                if state.0 {
                    return Poll::Ready(());
                }
                state.1 = Some(cx.waker().clone());
                Poll::Pending
            })
        });
        let (c_in, c_is_in) = mpsc::channel();
        let c = thread::spawn({
            let rt = rt.clone();
            move || {
                let mut task = std::pin::pin!(task);
                rt.block_on(poll_fn(|cx| {
                    let polled = task.as_mut().poll(cx).map(|r| r.unwrap());
                    let _ = c_in.send(());
                    polled
                }))
            }
        });
        c_is_in.recv().unwrap();
        let (waker, task_waker) = {
            let mut state = release.lock().unwrap();
            state.0 = true;
            while go.lock().unwrap().1.is_none() {
                thread::yield_now();
            }
            (state.1.take().unwrap(), go.lock().unwrap().1.take().unwrap())
        };
        waker.wake();
        a.join().unwrap();
        go.lock().unwrap().0 = true;
        task_waker.wake();
        c.join().unwrap();
    });
}

struct Stash;
static STASH: Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>> = Mutex::new(Vec::new());
impl Drop for Stash {
    fn drop(&mut self) {
        let mut shield: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(task::shield(pending::<()>()));
        let _ = shield.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        STASH.lock().unwrap().push(shield);
    }
}

/// Safe code only: the drop of a task's output takes a shield of its own task and keeps it.
#[test]
fn a_shield_taken_in_the_drop_of_an_output_keeps_its_task() {
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(async {
        drop(blitz_io::spawn(async { Stash }));
        task_turn().await;
        assert_eq!(STASH.lock().unwrap().len(), 1);
        // A new task in the same memory.
        let other = blitz_io::spawn(async { 7 });
        // Drops a shield and a reference: of the first task or, if that was freed too early, of
        // `other`.
        STASH.lock().unwrap().clear();
        assert_eq!(other.await.unwrap(), 7);
    });
}

/// Lets all tasks run once, without `yield_now`.
async fn task_turn() {
    blitz_io::spawn(async {}).await.unwrap();
}

/// Runs in a process of its own, so that the memory of other tests is not counted.
#[test]
fn cells_that_come_back_during_a_long_poll_are_used_again() {
    if child::role().is_none() {
        let name = "runtime::hostile::cells_that_come_back_during_a_long_poll_are_used_again";
        child::succeed(&mut child::command(name, "alone"));
        return;
    }
    fn rss_kib() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
    }
    let rt = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let grown = rt.block_on(async {
        blitz_io::spawn(async {
            let done = Arc::new(AtomicUsize::new(0));
            let before = rss_kib();
            for round in 1..=300_000usize {
                let done2 = done.clone();
                drop(blitz_io::spawn(async move {
                    let pad = [0u8; 512];
                    std::hint::black_box(&pad);
                    pending_once().await;
                    std::hint::black_box(&pad);
                    done2.fetch_add(1, SeqCst);
                }));
                // At most 64 tasks are alive at once.
                while round - done.load(SeqCst) > 64 {
                    std::hint::spin_loop();
                }
            }
            rss_kib().saturating_sub(before)
        })
        .await
        .unwrap()
    });
    assert!(grown < 20_000, "64 live tasks of 0.7 KiB took {grown} KiB");
}

async fn pending_once() {
    let mut once = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut once, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

struct SpawnsOnDrop(Arc<AtomicUsize>, bool);
impl Drop for SpawnsOnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        if self.1 {
            panic!("drop of a hook's capture");
        }
        if let Ok(handle) = Handle::try_current() {
            drop(handle.spawn(async {}));
        }
    }
}

fn foreign_pool_dies_on_a_core(panics: bool) {
    let count = Arc::new(AtomicUsize::new(0));
    let y = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let x = {
        let capture = SpawnsOnDrop(count.clone(), panics);
        Builder::new_current_thread()
            .on_thread_unpark(move || {
                let _ = &capture;
            })
            .build()
            .unwrap()
    };
    let handle = x.block_on(async {
        let handle = blitz_io::spawn(async {});
        task_turn().await;
        handle
    });
    drop(x);
    y.block_on(y.spawn(async move { drop(handle) })).unwrap();
    // The next park or tick returns the cell to its arena, which is closed.
    for _ in 0..300 {
        y.block_on(async { blitz_io::spawn(async { task::yield_now().await }).await.unwrap() });
    }
    assert_eq!(count.load(SeqCst), 1, "the hooks of x are gone");
    drop(y);
}

#[test]
fn hooks_of_a_dead_runtime_may_spawn_when_they_are_dropped() {
    within(|| foreign_pool_dies_on_a_core(false));
}

#[test]
fn hooks_of_a_dead_runtime_may_panic_when_they_are_dropped() {
    within(|| foreign_pool_dies_on_a_core(true));
}

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

/// Guards against a build that waits for threads that it never started.
#[test]
fn a_name_function_that_panics_is_reported_and_leaves_nothing_behind() {
    let _watch = watchdog::start();
    let started = Arc::new(AtomicUsize::new(0));
    let stopped = Arc::new(AtomicUsize::new(0));
    let (starts, stops, named) = (started.clone(), stopped.clone(), AtomicUsize::new(0));
    let built = catch_unwind(AssertUnwindSafe(|| {
        Builder::new_multi_thread()
            .worker_threads(3)
            .thread_name_fn(move || {
                assert_eq!(named.fetch_add(1, SeqCst), 0, "no second name");
                "only".to_owned()
            })
            .on_thread_start(move || {
                starts.fetch_add(1, SeqCst);
            })
            .on_thread_stop(move || {
                stops.fetch_add(1, SeqCst);
            })
            .build()
            .map(drop)
    }));
    assert!(!matches!(built, Ok(Ok(()))), "two threads without a name");
    watchdog::until(|| started.load(SeqCst) == stopped.load(SeqCst));
}

#[test]
fn a_name_fn_of_a_lazy_runtime_may_spawn() {
    let _watch = crate::support::watchdog::start();
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
    let _watch = watchdog::start();
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
    let _watch = watchdog::start();
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
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle: &'static Handle = Box::leak(Box::new(rt.handle().clone()));
    let keep = async move { GUARD.with(|guard| *guard.borrow_mut() = Some(handle.enter())) };
    rt.block_on(rt.spawn(keep)).unwrap();
    drop(rt);
}
