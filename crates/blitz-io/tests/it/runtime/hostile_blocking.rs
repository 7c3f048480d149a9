//! Tests where blocking jobs, `block_in_place` and the end of a runtime meet: whichever thread ends
//! a runtime, and wherever, no thread waits for itself and nothing is lost.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Handle, Preemption, Runtime, UnhandledPanic},
    task::{self, block_in_place},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    gate::Gate,
    runtimes::{one_thread, workers},
    watchdog,
};
#[cfg(target_os = "linux")]
use crate::support::{child, runtimes::on_every_worker, thread_limit::allow_threads};

/// A slot from which a thread takes the runtime that it must drop.
type Slot = Arc<Mutex<Option<Runtime>>>;

/// Takes the runtime out of the slot and drops it while no lock is held.
fn drop_from(slot: &Slot) {
    let rt = slot.lock().unwrap().take();
    drop(rt);
}

/// Makes the only worker lose its core and become a blocking thread.
fn employ_the_worker(rt: &Runtime) -> thread::ThreadId {
    let worker = rt.block_on(rt.spawn(async {
        block_in_place(|| blitz_io::spawn(async {}).blocking_join().unwrap());
        thread::current().id()
    }));
    watchdog::until(|| rt.metrics().num_idle_blocking_threads() == 1);
    worker.unwrap()
}

#[test]
fn a_worker_that_became_a_blocking_thread_may_drop_the_runtime() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let was = employ_the_worker(&rt);
    let handle = rt.handle().clone();
    let job = handle.spawn_blocking(move || {
        drop(rt);
        thread::current().id()
    });
    assert_eq!(job.blocking_join().unwrap(), was);
}

#[test]
fn the_first_act_of_a_blocking_thread_may_be_to_drop_the_runtime() {
    let _watch = watchdog::start();
    for _ in 0..300 {
        let rt = one_thread();
        let handle = rt.handle().clone();
        handle.spawn_blocking(move || drop(rt)).blocking_join().unwrap();
    }
}

#[test]
fn a_stop_hook_may_drop_the_runtime() {
    let _watch = watchdog::start();
    for multi in [false, true] {
        let (slot, gone) = (Slot::default(), Gate::new());
        let (found, dropped) = (slot.clone(), gone.clone());
        let mut builder =
            if multi { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let rt = builder
            .worker_threads(2)
            .thread_keep_alive(Duration::from_millis(1))
            .on_thread_stop(move || {
                drop_from(&found);
                dropped.open();
            })
            .build()
            .unwrap();
        let handle = rt.handle().clone();
        *slot.lock().unwrap() = Some(rt);
        drop(handle.spawn_blocking(|| ()));
        gone.block();
        assert!(slot.lock().unwrap().is_none());
        assert!(handle.spawn(async {}).blocking_join().unwrap_err().is_cancelled());
    }
}

#[test]
fn a_start_hook_may_drop_the_runtime() {
    let _watch = watchdog::start();
    // Dropped by a worker, and by a blocking thread.
    for multi in [true, false] {
        let (slot, filled, gone) = (Slot::default(), Gate::new(), Gate::new());
        let (found, wait, dropped) = (slot.clone(), filled.clone(), gone.clone());
        let mut builder =
            if multi { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let rt = builder
            .worker_threads(2)
            .on_thread_start(move || {
                wait.block();
                drop_from(&found);
                dropped.open();
            })
            .build()
            .unwrap();
        let tally = Tally::new();
        let token = tally.token();
        let task = rt.spawn(async move {
            token.keep();
            std::future::pending::<()>().await;
        });
        let handle = rt.handle().clone();
        if !multi {
            drop(handle.spawn_blocking(|| ()));
        }
        *slot.lock().unwrap() = Some(rt);
        filled.open();
        gone.block();
        watchdog::until(|| task.is_finished());
        assert!(task.blocking_join().unwrap_err().is_cancelled());
        tally.assert_all_dropped(1);
    }
}

#[test]
fn a_hook_that_blocks_in_place_may_drop_the_runtime() {
    let _watch = watchdog::start();
    for hook in 0..3 {
        let (slot, gone) = (Slot::default(), Gate::new());
        let (found, dropped) = (slot.clone(), gone.clone());
        let visit = move || {
            if found.lock().unwrap().is_some() {
                block_in_place(|| drop_from(&found));
                dropped.open();
            }
        };
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2);
        match hook {
            0 => builder.on_thread_park(visit),
            1 => builder.on_thread_unpark(visit),
            _ => builder.on_task_terminate(move |_| visit()),
        };
        let rt = builder.build().unwrap();
        let handle = rt.handle().clone();
        *slot.lock().unwrap() = Some(rt);
        // Each spawn wakes a worker, which goes to sleep again, unless the runtime is gone.
        while !gone.is_open() {
            let _ = handle.spawn(async {}).blocking_join();
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn without_a_thread_to_be_had_a_task_that_blocks_in_place_may_drop_its_own_runtime() {
    let name = "runtime::hostile_blocking::\
                without_a_thread_to_be_had_a_task_that_blocks_in_place_may_drop_its_own_runtime";
    let _watch = watchdog::start();
    if child::role().is_none() {
        child::succeed(&mut child::command(name, "is refused"));
        return;
    }
    let rt = workers(2);
    assert_eq!(on_every_worker(&rt, || 1).len(), 2, "all workers are there");
    allow_threads(0);
    let (handle, tally) = (rt.handle().clone(), Tally::new());
    let token = tally.token();
    let waits = handle.spawn(async move {
        token.keep();
        std::future::pending::<()>().await;
    });
    let task = handle.spawn(async move { block_in_place(|| drop(rt)) });
    task.blocking_join().unwrap();
    assert!(waits.blocking_join().unwrap_err().is_cancelled());
    tally.assert_all_dropped(1);
}

/// Opens the first gate when it is dropped, then drops the runtime.
struct Last(Arc<Gate>, Option<Runtime>, Arc<Gate>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.open();
        drop(self.1.take());
        self.2.open();
    }
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[test]
fn a_thread_local_of_a_blocking_thread_may_drop_the_runtime_while_another_leaves() {
    let _watch = watchdog::start();
    for _ in 0..5 {
        let rt = Builder::new_current_thread()
            .thread_keep_alive(Duration::from_millis(1))
            .build()
            .unwrap();
        let handle = rt.handle().clone();
        let (inside, go_on, gone) = (Gate::new(), Gate::new(), Gate::new());
        let (entered, wait) = (inside.clone(), go_on.clone());
        let other = handle.spawn_blocking(move || {
            entered.open();
            wait.block();
        });
        inside.block();
        let last = Last(go_on, Some(rt), gone.clone());
        handle
            .spawn_blocking(move || LAST.with(|here| *here.borrow_mut() = Some(last)))
            .blocking_join()
            .unwrap();
        gone.block();
        other.blocking_join().unwrap();
    }
}

/// Windows runs the destructors of a thread under a lock that other threads need in order to end,
/// so a destructor cannot wait for threads there.
#[cfg(unix)]
#[test]
fn a_thread_local_of_a_worker_may_drop_the_runtime() {
    let _watch = watchdog::start();
    let rt = strict(2);
    let (gone, handle) = (Gate::new(), rt.handle().clone());
    let last = Last(Gate::new(), Some(rt), gone.clone());
    // Only a panic ends a worker while its runtime has an owner.
    let task = handle.spawn(async move {
        LAST.with(|here| *here.borrow_mut() = Some(last));
        panic!("boom");
    });
    gone.block();
    assert!(task.blocking_join().unwrap_err().is_panic());
}

/// Runs a task that loses its core to another one, which blocks until the gate opens and panics if
/// `other_panics`; then a thread-local of the first task's thread owns the runtime, and the first
/// task panics unless the other one does. Returns when the runtime was dropped.
#[cfg(unix)]
fn drop_by_a_worker_without_a_core(other_panics: bool) {
    // Without preemption, which would take the core from the second task while that task blocks, and
    // could give the core back to the first task's thread.
    let rt = strict_with(1, Preemption::disabled());
    let (gone, handle) = (Gate::new(), rt.handle().clone());
    let last = Last(Gate::new(), Some(rt), gone.clone());
    let (inside, go_on) = (Gate::new(), Gate::new());
    let (begun, wait, spawner) = (inside.clone(), go_on.clone(), handle.clone());
    let task = handle.spawn(async move {
        block_in_place(|| {
            // It has the core from now on, on another thread, until `go_on` is open.
            spawner.spawn(async move {
                begun.open();
                wait.block();
                assert!(!other_panics, "boom");
            });
            inside.block();
        });
        LAST.with(|here| *here.borrow_mut() = Some(last));
        assert!(other_panics, "boom");
    });
    watchdog::until(|| task.is_finished());
    if other_panics {
        // The worker that lost its core is an idle thread of the blocking pool now.
        watchdog::until(|| handle.metrics().num_idle_blocking_threads() == 1);
    }
    go_on.open();
    gone.block();
    assert_eq!(task.blocking_join().is_ok(), other_panics);
}

/// The thread has lost its core when its task panics: it must not become idle until the runtime is
/// dropped, because it owns the runtime.
#[cfg(unix)]
#[test]
fn a_thread_local_of_a_worker_without_a_core_may_drop_the_runtime() {
    let _watch = watchdog::start();
    drop_by_a_worker_without_a_core(false);
}

/// The thread is idle in the blocking pool when another task panics.
#[cfg(unix)]
#[test]
fn a_thread_local_of_an_idle_worker_without_a_core_may_drop_the_runtime() {
    let _watch = watchdog::start();
    drop_by_a_worker_without_a_core(true);
}

fn strict(workers: usize) -> Runtime {
    strict_with(workers, Preemption::default())
}

fn strict_with(workers: usize, preemption: Preemption) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .preemption(preemption)
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .build()
        .unwrap()
}

#[test]
fn a_runtime_that_a_panic_ends_may_be_dropped_by_a_task_that_blocks_in_place() {
    let _watch = watchdog::start();
    let rt = strict(2);
    let slot = Slot::default();
    let (found, inside, go_on) = (slot.clone(), Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let task = rt.spawn(async move {
        entered.open();
        wait.block();
        block_in_place(|| drop_from(&found));
        1
    });
    inside.block();
    let boom = rt.spawn(async { panic!("boom") });
    watchdog::until(|| boom.is_finished());
    *slot.lock().unwrap() = Some(rt);
    go_on.open();
    assert_eq!(task.blocking_join().unwrap(), 1);
    assert!(boom.blocking_join().unwrap_err().is_panic());
}

#[test]
fn a_task_that_blocks_in_place_may_drop_its_own_runtime() {
    let _watch = watchdog::start();
    for round in 0..40 {
        let rt = workers(1 + round % 3);
        let slot = Slot::default();
        let (handle, found) = (rt.handle().clone(), slot.clone());
        *slot.lock().unwrap() = Some(rt);
        let task = handle.spawn(async move {
            block_in_place(|| drop_from(&found));
            block_in_place(|| 5)
        });
        assert_eq!(task.blocking_join().unwrap(), 5);
    }
}

#[test]
fn a_panic_that_ends_a_runtime_counts_no_blocking_work_as_tasks() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        // Without preemption, the stuck worker keeps its core.
        .preemption(Preemption::disabled())
        .max_blocking_threads(1)
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .build()
        .unwrap();
    let (inside, go_on) = (Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let runs = rt.spawn_blocking(move || {
        entered.open();
        wait.block();
        7
    });
    inside.block();
    let (inside, filled, wait) = (Gate::new(), Gate::new(), go_on.clone());
    let open = inside.clone();
    let stays = rt.spawn(async move {
        open.open();
        wait.block();
    });
    inside.block();
    let jobs = Arc::new(Mutex::new(Vec::new()));
    let put = jobs.clone();
    let open = filled.clone();
    let ends = rt.spawn(async move {
        put.lock().unwrap().extend((0..10).map(|_| task::spawn_blocking(|| ())));
        open.open();
        panic!("boom");
    });
    filled.block();
    let jobs = std::mem::take(&mut *jobs.lock().unwrap());
    // The worker whose task panicked counts the task after the handle reports its end.
    watchdog::until(|| ends.is_finished() && rt.metrics().num_alive_tasks() == 1);
    assert_eq!(rt.metrics().spawned_tasks_count(), 2);
    assert_eq!(rt.metrics().num_alive_tasks(), 1, "one is inside its poll");
    go_on.open();
    assert_eq!(runs.blocking_join().unwrap(), 7, "what runs is left alone");
    assert!(ends.blocking_join().unwrap_err().is_panic());
    stays.blocking_join().unwrap();
    for job in jobs {
        job.blocking_join().unwrap();
    }
}

#[test]
fn a_hook_that_blocks_in_place_may_run_another_runtime() {
    let _watch = watchdog::start();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let visit = move || {
        block_in_place(|| {
            let other = one_thread();
            other.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
            counted.fetch_add(1, Relaxed);
        });
    };
    let (park, unpark, end) = (visit.clone(), visit.clone(), visit);
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_park(park)
        .on_thread_unpark(unpark)
        .on_task_terminate(move |_| end())
        .build()
        .unwrap();
    for _ in 0..20 {
        rt.block_on(rt.spawn(async {})).unwrap();
    }
    drop(rt);
    assert!(count.load(Relaxed) >= 20, "each task ends at least: {count:?}");
}

#[test]
fn a_terminate_hook_that_blocks_in_place_lets_the_other_tasks_go_on() {
    let _watch = watchdog::start();
    let gate = Gate::new();
    let (wait, first) = (gate.clone(), AtomicUsize::new(0));
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_task_terminate(move |_| {
            if first.fetch_add(1, Relaxed) == 0 {
                block_in_place(|| wait.block());
            }
        })
        .build()
        .unwrap();
    let task = rt.spawn(async move {
        // Queued behind the task that ends, on the same core.
        blitz_io::spawn(async move { gate.open() });
    });
    rt.block_on(task).unwrap();
}

/// An output whose destructor blocks in place until another task has run.
struct Blocks(Arc<Gate>);

impl Drop for Blocks {
    fn drop(&mut self) {
        block_in_place(|| self.0.block());
    }
}

#[test]
fn a_destructor_that_blocks_in_place_lets_the_other_tasks_go_on() {
    let _watch = watchdog::start();
    for keep in [false, true] {
        let rt = workers(1);
        let (gate, done) = (Gate::new(), Gate::new());
        let (open, finish) = (gate.clone(), done.clone());
        let task = rt.spawn(async move {
            blitz_io::spawn(async move {
                open.open();
                finish.open();
            });
            Blocks(gate)
        });
        if keep {
            // The handle drops the output, on this thread.
            let output = rt.block_on(task).unwrap();
            drop(output);
        } else {
            drop(task);
        }
        done.block();
    }
}

#[test]
fn a_hook_at_the_end_of_a_thread_may_spawn_and_block() {
    let _watch = watchdog::start();
    let log: Arc<Mutex<Vec<Result<u32, bool>>>> = Arc::default();
    let seen = log.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_stop(move || {
            let handle = Handle::current();
            let value = handle.block_on(async { 7 });
            let spawned = task::spawn_blocking(move || value).blocking_join();
            let also = blitz_io::spawn(async move { value }).blocking_join();
            assert_eq!(block_in_place(|| 1), 1);
            let mut seen = seen.lock().unwrap();
            seen.push(spawned.map_err(|error| error.is_cancelled()));
            seen.push(also.map_err(|error| error.is_cancelled()));
        })
        .build()
        .unwrap();
    rt.block_on(rt.spawn_blocking(|| ())).unwrap();
    drop(rt);
    // Two workers and one blocking thread; more threads, if the hook of a worker spawns while the
    // blocking pool still accepts jobs. A runtime that ends cancels tasks, and runs or cancels
    // jobs.
    let log = log.lock().unwrap();
    assert!(log.len() >= 6 && log.len().is_multiple_of(2), "{log:?}");
    assert!(log.iter().all(|result| matches!(result, Err(true) | Ok(7))), "{log:?}");
}

#[test]
fn panics_at_every_depth_of_blocking_leave_the_worker_as_it_was() {
    let _watch = watchdog::start();
    let rt = workers(1);
    for _ in 0..20 {
        let task = rt.spawn(async {
            let deep = panic_of(|| {
                block_in_place(|| {
                    Handle::current().block_on(async {
                        block_in_place(|| {
                            let other = one_thread();
                            other.block_on(async {
                                panic_of(|| block_in_place(|| ())).says(&["can call blocking"]);
                            });
                            blitz_io::spawn(async {}).blocking_join().unwrap();
                            Handle::current().block_on(async { panic!("deep down") })
                        })
                    })
                })
            });
            deep.says(&["deep down"]);
            panic_of(|| Handle::current().block_on(async {}))
                .says(&["Cannot start a runtime from within a runtime"]);
            task::yield_now().await;
            panic_of(|| Handle::current().block_on(async {}))
                .says(&["Cannot start a runtime from within a runtime"]);
        });
        rt.block_on(task).unwrap();
    }
    // A worker counts the task that it ran when it looks for the next one.
    watchdog::until(|| rt.metrics().num_alive_tasks() == 0);
}
