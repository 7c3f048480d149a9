//! The counted operations, written once for every runtime with Tokio's names.
//!
//! Each benchmark does one operation a thousand times on a warm current-thread runtime, so that a
//! count divided by a thousand is the cost of one and the entry into `block_on` is negligible.
//! Creating the runtime and dropping it are not counted.
//!
//! Only operations of the public interface are here.

pub mod sync;

/// Defines the benchmarks of one runtime crate; the file that calls it is a bench target.
#[macro_export]
macro_rules! count_on {
    ($runtime:ident) => {
        $crate::count_on!($runtime, |builder| builder);
    };
    ($runtime:ident, |$builder:ident| $set_up:expr) => {
        use std::future::{pending, poll_fn};
        use std::hint::black_box;
        use std::sync::{Arc, Mutex};
        use std::task::{Poll, Waker};

        use gungraun::prelude::*;
        use $runtime::runtime::{Builder, Runtime};
        use $runtime::task::{JoinSet, spawn, yield_now};

        const OPERATIONS: usize = 1000;

        /// Returns a runtime whose pools and queues have grown to what a benchmark needs.
        fn warm() -> Runtime {
            let mut builder = Builder::new_current_thread();
            let $builder = builder.enable_all();
            let runtime = $set_up.build();
            let runtime = runtime.expect("cannot build the runtime");
            for _ in 0..2 {
                runtime.block_on(async {
                    let tasks: Vec<_> = (0..OPERATIONS).map(|_| spawn(async {})).collect();
                    for task in tasks {
                        task.await.expect("an empty task cannot fail");
                    }
                });
            }
            runtime
        }

        async fn fill_and_empty_a_set() {
            let mut set = JoinSet::new();
            for _ in 0..OPERATIONS {
                drop(black_box(set.spawn(async {})));
            }
            while let Some(ended) = set.join_next().await {
                black_box(ended).expect("an empty task cannot fail");
            }
        }

        /// Returns a runtime that is warm for sets too: a member of a set may have another size
        /// than a task alone, so that the pools of `warm` would not serve it.
        fn warm_with_sets() -> Runtime {
            let runtime = warm();
            for _ in 0..2 {
                runtime.block_on(fill_and_empty_a_set());
            }
            runtime
        }

        /// Returns a runtime with parked tasks, and their wakers.
        fn with_parked_tasks() -> (Runtime, Vec<Waker>) {
            let runtime = warm();
            let wakers = Arc::new(Mutex::new(Vec::new()));
            runtime.block_on(async {
                for _ in 0..OPERATIONS {
                    let wakers = wakers.clone();
                    spawn(async move {
                        poll_fn(|cx| {
                            wakers.lock().expect("no task panics").push(cx.waker().clone());
                            Poll::Ready(())
                        })
                        .await;
                        pending::<()>().await;
                    });
                }
                while wakers.lock().expect("no task panics").len() < OPERATIONS {
                    yield_now().await;
                }
            });
            let wakers = std::mem::take(&mut *wakers.lock().expect("no task panics"));
            (runtime, wakers)
        }

        // Spawn alone: the tasks stay in their queue and are dropped with the runtime.
        #[library_benchmark]
        #[bench::thousand(warm())]
        fn spawn_only(runtime: Runtime) -> Runtime {
            runtime.block_on(async {
                for _ in 0..OPERATIONS {
                    drop(black_box(spawn(async {})));
                }
            });
            runtime
        }

        // Spawn, poll, finish and join.
        #[library_benchmark]
        #[bench::thousand(warm())]
        fn spawn_and_join(runtime: Runtime) -> Runtime {
            runtime.block_on(async {
                for _ in 0..OPERATIONS {
                    black_box(spawn(async {}).await).expect("an empty task cannot fail");
                }
            });
            runtime
        }

        // Spawn, poll, finish and join of a thousand tasks in one set: all are spawned before the
        // first is joined.
        #[library_benchmark]
        #[bench::thousand(warm_with_sets())]
        fn spawn_and_join_in_a_set(runtime: Runtime) -> Runtime {
            runtime.block_on(fill_and_empty_a_set());
            runtime
        }

        // A poll of a task that yields: dequeued, polled, queued again.
        #[library_benchmark]
        #[bench::thousand(warm())]
        fn poll_of_a_yielder(runtime: Runtime) -> Runtime {
            runtime.block_on(async {
                let yielder = spawn(async {
                    for _ in 0..OPERATIONS {
                        yield_now().await;
                    }
                });
                yielder.await.expect("a yielder cannot fail");
            });
            runtime
        }

        // A wake from inside the runtime, by value, without the poll that follows.
        #[library_benchmark]
        #[bench::thousand(with_parked_tasks())]
        fn wake_from_inside((runtime, wakers): (Runtime, Vec<Waker>)) -> Runtime {
            runtime.block_on(async { wakers.into_iter().for_each(Waker::wake) });
            runtime
        }

        // A wake in the poll of a task, by value.
        #[library_benchmark]
        #[bench::thousand(with_parked_tasks())]
        fn wake_from_a_task((runtime, wakers): (Runtime, Vec<Waker>)) -> Runtime {
            runtime.block_on(async {
                let task = spawn(async { wakers.into_iter().for_each(Waker::wake) });
                task.await.expect("it wakes");
            });
            runtime
        }

        // A wake from a thread that is not in the runtime, by value.
        #[library_benchmark]
        #[bench::thousand(with_parked_tasks())]
        fn wake_from_outside((runtime, wakers): (Runtime, Vec<Waker>)) -> Runtime {
            wakers.into_iter().for_each(Waker::wake);
            runtime
        }

        library_benchmark_group!(
            name = tasks,
            benchmarks = [
                spawn_only,
                spawn_and_join,
                spawn_and_join_in_a_set,
                poll_of_a_yielder,
                wake_from_inside,
                wake_from_a_task,
                wake_from_outside
            ]
        );

        main!(library_benchmark_groups = tasks);
    };
}
