//! Creates runtimes, and has the few helpers that every test uses.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    thread::ThreadId,
};

use blitz_io::runtime::{Builder, Preemption, Runtime};

use super::{gate::Gate, watch};

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

pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// Creates one runtime of each kind, with all drivers enabled.
pub(crate) fn all_kinds_timed() -> Vec<Runtime> {
    let many = |count| Builder::new_multi_thread().worker_threads(count).enable_all().build();
    let one = Builder::new_current_thread().enable_all().build();
    [one, many(1), many(2), many(4)].map(|runtime| runtime.expect("a runtime")).into()
}

/// Creates one runtime of each kind, without preemption: for facts that must hold exactly, even if
/// other processes need the processors.
pub(crate) fn all_kinds_unwatched() -> Vec<Runtime> {
    vec![one_thread(), workers(1), workers(2), workers(4)]
}

/// Creates one runtime of each kind, for facts that hold on all.
pub(crate) fn all_kinds() -> Vec<Runtime> {
    let many = |count| Builder::new_multi_thread().worker_threads(count).build();
    let many = [many(1), many(2), many(4)].map(|runtime| runtime.expect("a runtime"));
    [one_thread()].into_iter().chain(many).collect()
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
    watch::until(|| threads.lock().unwrap().len() == count);
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

/// Polls `future` once with this waker.
pub(crate) fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls `future` once with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_with(future, Waker::noop())
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
    watch::until(|| {
        drop(rt.spawn(async {}));
        inside.load(Relaxed) == count
    });
    meeting.open();
    tasks.into_iter().map(|task| rt.block_on(task).expect("an answer")).collect()
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
