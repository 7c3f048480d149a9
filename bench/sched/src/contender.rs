//! The operations that a workload requires of a runtime, and each contender's implementation.
//!
//! The trait is as small as the rows allow. A contender is always used the way its own
//! documentation shows; there is no tuning on either side.

use std::convert::Infallible;
use std::future::Future;

/// A runtime under test. One is built in each child process.
pub(crate) trait Contender: Sized + 'static {
    /// The handle that `spawn` returns.
    type Task<T: Send + 'static>: Send + 'static;

    /// A set of tasks that are joined as they end.
    type Set;

    fn build(workers: usize) -> Self;

    /// Runs a future on the calling thread, which is not one of the workers.
    fn block_on<F: Future>(&self, future: F) -> F::Output;

    /// Spawns onto the runtime around the caller: inside `block_on` this is a spawn
    /// from outside the pool, inside a task it is one from a worker.
    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    fn join<T: Send + 'static>(task: Self::Task<T>) -> impl Future<Output = T> + Send;

    /// Detaches the task.
    fn detach<T: Send + 'static>(task: Self::Task<T>);

    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Runs `work` on a thread that may block.
    fn spawn_blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self::Task<T>;

    /// Returns an empty set, or `None` if the contender has no sets.
    fn set() -> Option<Self::Set>;

    /// Spawns into the set.
    fn spawn_in(set: &mut Self::Set, future: impl Future<Output = usize> + Send + 'static);

    /// Returns the output of a task of the set that has ended; `None` when the set is empty.
    fn join_next(set: &mut Self::Set) -> impl Future<Output = Option<usize>> + Send;

    /// Spawns `work` and waits for it, so that a worker does all of it.
    fn on_a_worker<F>(&self, work: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.block_on(async { Self::join(Self::spawn(work)).await })
    }
}

/// Implements the adapter for both: blitz-io has Tokio's names.
macro_rules! with_tokios_names {
    ($contender:ident, $runtime:ident $(, $drivers:ident)?) => {
        pub(crate) struct $contender(::$runtime::runtime::Runtime);

        impl Contender for $contender {
            type Task<T: Send + 'static> = ::$runtime::task::JoinHandle<T>;
            type Set = ::$runtime::task::JoinSet<usize>;

            fn build(workers: usize) -> Self {
                let mut builder = ::$runtime::runtime::Builder::new_multi_thread();
                builder.worker_threads(workers);
                $(builder.$drivers();)?
                Self(builder.build().expect("cannot build the runtime"))
            }

            fn block_on<F: Future>(&self, future: F) -> F::Output {
                self.0.block_on(future)
            }

            fn spawn<F>(future: F) -> Self::Task<F::Output>
            where
                F: Future<Output: Send + 'static> + Send + 'static,
            {
                ::$runtime::spawn(future)
            }

            async fn join<T: Send + 'static>(task: Self::Task<T>) -> T {
                task.await.expect("a task of the workload panicked")
            }

            fn detach<T: Send + 'static>(task: Self::Task<T>) {
                drop(task);
            }

            fn yield_now() -> impl Future<Output = ()> + Send {
                ::$runtime::task::yield_now()
            }

            fn spawn_blocking<T: Send + 'static>(
                work: impl FnOnce() -> T + Send + 'static,
            ) -> Self::Task<T> {
                ::$runtime::task::spawn_blocking(work)
            }

            fn set() -> Option<Self::Set> {
                Some(Self::Set::new())
            }

            fn spawn_in(set: &mut Self::Set, future: impl Future<Output = usize> + Send + 'static) {
                set.spawn(future);
            }

            async fn join_next(set: &mut Self::Set) -> Option<usize> {
                let ended = set.join_next().await?;
                Some(ended.expect("a task of the workload panicked"))
            }
        }
    };
}

// As `#[tokio::main]` builds it: with the I/O and time drivers.
with_tokios_names!(Tokio, tokio, enable_all);
// Without drivers: its last worker to sleep then waits on a condition variable, not in epoll.
with_tokios_names!(TokioBare, tokio);
#[cfg(feature = "blitz")]
with_tokios_names!(Blitz, blitz_io, enable_all);

/// smol's executor: one queue that any thread may run. As in smol's own `spawn`, the executor is a
/// static and each thread blocks on running it.
pub(crate) struct Smol {
    stop: smol::channel::Sender<()>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

static SMOL: smol::Executor<'static> = smol::Executor::new();

impl Contender for Smol {
    type Task<T: Send + 'static> = smol::Task<T>;
    /// smol has no sets: its users keep a `Vec` of tasks, or use another crate's stream.
    type Set = Infallible;

    fn build(workers: usize) -> Self {
        let (stop, stopped) = smol::channel::bounded::<()>(1);
        let threads = (0..workers)
            .map(|_| {
                let stopped = stopped.clone();
                std::thread::spawn(move || {
                    // The channel closes when `stop` is dropped, which is its only event.
                    let _ = smol::block_on(SMOL.run(stopped.recv()));
                })
            })
            .collect();
        Smol { stop, threads }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        smol::block_on(future)
    }

    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        SMOL.spawn(future)
    }

    async fn join<T: Send + 'static>(task: Self::Task<T>) -> T {
        task.await
    }

    fn detach<T: Send + 'static>(task: Self::Task<T>) {
        task.detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        smol::future::yield_now()
    }

    fn spawn_blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self::Task<T> {
        smol::unblock(work)
    }

    fn set() -> Option<Self::Set> {
        None
    }

    fn spawn_in(set: &mut Self::Set, _: impl Future<Output = usize> + Send + 'static) {
        match *set {}
    }

    async fn join_next(set: &mut Self::Set) -> Option<usize> {
        match *set {}
    }
}

impl Drop for Smol {
    fn drop(&mut self) {
        self.stop.close();
        for thread in self.threads.drain(..) {
            // A worker that panicked has failed its row already.
            let _ = thread.join();
        }
    }
}
