//! Creates runtimes of every kind, and runs tests on them.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::ThreadId,
};

use blitz_io::runtime::{Builder, Preemption, Runtime};

use super::{gate::Gate, watchdog};

/// A stack of three quarters of the address space. There is never room for it, so a thread with
/// this stack size cannot be started.
pub(crate) const NO_STACK: usize = 3 << (usize::BITS - 2);

/// Creates a runtime without preemption, so that workers stay in the polls of their tasks, for
/// tests that block workers, count them or identify them by their threads.
pub(crate) fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(count)
        .preemption(Preemption::disabled())
        .build()
        .expect("a runtime")
}

/// Creates a multi-thread runtime with all drivers enabled.
pub(crate) fn workers_with_drivers(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_all().build().expect("a runtime")
}

/// Creates a multi-thread runtime with all drivers enabled and without preemption, whose blocking
/// threads run only blocking jobs: none of them replaces a worker that is in a long poll.
pub(crate) fn unpreempted_workers_with_drivers(count: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(count)
        .enable_all()
        .preemption(Preemption::disabled())
        .build()
        .expect("a runtime")
}

/// Creates a current-thread runtime.
pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// Creates a current-thread runtime with all drivers enabled.
pub(crate) fn one_thread_with_drivers() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Creates a current-thread runtime with one blocking thread.
pub(crate) fn one_blocking_thread() -> Runtime {
    Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime")
}

/// Creates one runtime of each kind, with all drivers enabled.
pub(crate) fn all_kinds_with_drivers() -> Vec<Runtime> {
    let many = [1, 2, 4].map(workers_with_drivers);
    [one_thread_with_drivers()].into_iter().chain(many).collect()
}

/// Creates one runtime of each kind, without preemption: for facts that must hold exactly, even if
/// other processes need the processors.
pub(crate) fn all_kinds_unpreempted() -> Vec<Runtime> {
    [one_thread()].into_iter().chain([1, 2, 4].map(workers)).collect()
}

/// Creates one runtime of each kind, for facts that hold on all.
pub(crate) fn all_kinds() -> Vec<Runtime> {
    let many = |count| Builder::new_multi_thread().worker_threads(count).build();
    let many = [many(1), many(2), many(4)].map(|runtime| runtime.expect("a runtime"));
    [one_thread()].into_iter().chain(many).collect()
}

/// Runs the test on every kind of runtime, as the future of `block_on` and as a task.
pub(crate) fn on_all_kinds<F>(test: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        rt.block_on(test());
        rt.block_on(rt.spawn(test())).expect("the test does not panic");
    }
}

/// Runs the test on a current-thread runtime.
pub(crate) fn on_one_thread<F: Future>(test: F) -> F::Output {
    let _watch = watchdog::start();
    one_thread_with_drivers().block_on(test)
}

/// Lets every other task of a runtime with one thread run until it waits; a hundred turns are more
/// than any test here has tasks in a row.
pub(crate) async fn others_wait() {
    for _ in 0..100 {
        blitz_io::task::yield_now().await;
    }
}

/// Creates a runtime, and returns it with the threads of its workers.
pub(crate) fn workers_and_threads(count: usize) -> (Runtime, Vec<ThreadId>) {
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let seen = threads.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(count)
        .preemption(Preemption::disabled())
        .on_thread_start(move || seen.lock().unwrap().push(std::thread::current().id()))
        .build()
        .expect("a runtime");
    watchdog::until(|| threads.lock().unwrap().len() == count);
    let threads = threads.lock().unwrap().clone();
    (rt, threads)
}

/// Runs tasks until `fact` holds, by a task that checks it and yields.
pub(crate) fn run_until(rt: &Runtime, fact: impl Fn() -> bool + Send + 'static) {
    rt.block_on(rt.spawn(async move {
        while !fact() {
            blitz_io::task::yield_now().await;
        }
    }))
    .expect("a fact does not panic");
}

/// Brings every worker of `rt` into a poll at the same time, calls `f` on each, and returns the
/// results.
///
/// Spawns until all workers are in a poll, so that it does not depend on which of them sleep.
pub(crate) fn on_every_worker<T: Send + 'static>(
    rt: &Runtime,
    f: impl Fn() -> T + Send + Sync + 'static,
) -> Vec<T> {
    let count = rt.metrics().num_workers();
    let (f, meeting, inside) = (Arc::new(f), Gate::new(), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let (f, meeting, inside) = (f.clone(), meeting.clone(), inside.clone());
            rt.spawn(async move {
                inside.fetch_add(1, Relaxed);
                meeting.block();
                f()
            })
        })
        .collect();
    watchdog::until(|| {
        drop(rt.spawn(async {}));
        inside.load(Relaxed) == count
    });
    meeting.open();
    tasks.into_iter().map(|task| rt.block_on(task).expect("an output")).collect()
}

/// Creates a current-thread runtime with the I/O driver.
#[cfg(all(unix, feature = "net"))]
pub(crate) fn one_thread_with_io() -> Runtime {
    Builder::new_current_thread().enable_io().build().expect("a runtime")
}

/// Creates a multi-thread runtime with the I/O driver.
#[cfg(all(unix, feature = "net"))]
pub(crate) fn workers_with_io(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_io().build().expect("a runtime")
}
