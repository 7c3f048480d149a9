//! The workloads, on fibers, tasks and threads.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    fiber,
    runtime::{Builder, Handle, Runtime},
    sync::{mpsc as channel, oneshot},
    task,
};
use harness::Metric;
use harness::measure::resident_bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contender {
    Fiber,
    Task,
    Thread,
}

const MANY: usize = 10_000;

/// Measures a row on a contender.
pub(crate) fn measure(contender: &str, row: &str) -> Option<Vec<Metric>> {
    let contender = match contender {
        "fiber" => Contender::Fiber,
        "task" => Contender::Task,
        "thread" => Contender::Thread,
        _ => return None,
    };
    // One worker, and one thread that runs fibers.
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).fiber_threads(1).enable_all();
    let runtime = builder.build().expect("the system has threads and descriptors for a runtime");
    let (unit, figure) = match row {
        "yield" => ("ns", yields(contender, &runtime)),
        "hand-over" => ("ns", hands_over(contender, &runtime)),
        "start" => ("ns", starts(contender, &runtime)),
        "many" => ("ns", many(contender, &runtime)),
        "bytes" => ("B", bytes(contender, &runtime)),
        _ => return None,
    };
    Some(vec![Metric::new("", unit, figure, None)])
}

/// Returns the nanoseconds of one of `count` operations.
fn each(began: Instant, count: usize) -> f64 {
    began.elapsed().as_nanos() as f64 / count as f64
}

fn yields(contender: Contender, runtime: &Runtime) -> f64 {
    const COUNT: usize = 200_000;
    let on_fiber = || {
        let began = Instant::now();
        for _ in 0..COUNT {
            fiber::wait(task::yield_now());
        }
        each(began, COUNT)
    };
    let on_task = async {
        let began = Instant::now();
        for _ in 0..COUNT {
            task::yield_now().await;
        }
        each(began, COUNT)
    };
    match contender {
        Contender::Fiber => on_fibers(runtime, on_fiber),
        Contender::Task => runtime.block_on(runtime.spawn(on_task)).expect("it ends"),
        Contender::Thread => {
            let began = Instant::now();
            (0..COUNT).for_each(|_| thread::yield_now());
            each(began, COUNT)
        }
    }
}

/// Starts a fiber. Private to this file, whose closures all keep the promise below.
fn start<R: Send + 'static>(
    f: impl FnOnce() -> R + Send + 'static,
    handle: &Handle,
) -> task::JoinHandle<R> {
    // SAFETY: obligations 1 and 2 are not to wait in an initialiser or in a scope of a
    // thread-local. No closure of this file does; `start` is private to it.
    unsafe { fiber::Builder::new().spawn_on(f, handle) }.expect("a stack")
}

fn on_fibers<R: Send + 'static>(runtime: &Runtime, f: impl FnOnce() -> R + Send + 'static) -> R {
    runtime.block_on(start(f, runtime.handle())).expect("it ends")
}

fn hands_over(contender: Contender, runtime: &Runtime) -> f64 {
    const COUNT: usize = 50_000;
    let ((to, mut there), (back, mut here)) = (channel::channel(1), channel::channel(1));
    match contender {
        Contender::Fiber => on_fibers(runtime, move || {
            let echo = move || {
                while let Some(n) = fiber::wait(there.recv()) {
                    fiber::wait(back.send(n)).expect("the first fiber receives");
                }
            };
            let other = start(echo, &Handle::current());
            let began = Instant::now();
            for n in 0..COUNT {
                fiber::wait(to.send(n)).expect("it is there");
                assert_eq!(fiber::wait(here.recv()), Some(n));
            }
            let took = each(began, COUNT);
            drop(to);
            fiber::wait(other).expect("it ends");
            took
        }),
        Contender::Task => {
            let task = runtime.spawn(async move {
                let other = task::spawn(async move {
                    while let Some(n) = there.recv().await {
                        back.send(n).await.expect("the receiver waits for it");
                    }
                });
                let began = Instant::now();
                for n in 0..COUNT {
                    to.send(n).await.expect("it is there");
                    assert_eq!(here.recv().await, Some(n));
                }
                let took = each(began, COUNT);
                drop(to);
                other.await.expect("it ends");
                took
            });
            runtime.block_on(task).expect("it ends")
        }
        Contender::Thread => {
            let ((to, there), (back, here)) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
            let other = thread::spawn(move || {
                there.into_iter().for_each(|n| back.send(n).expect("the receiver waits for it"));
            });
            let began = Instant::now();
            for n in 0..COUNT / 10 {
                to.send(n).expect("it is there");
                assert_eq!(here.recv(), Ok(n));
            }
            let took = each(began, COUNT / 10);
            drop(to);
            other.join().expect("it ends");
            took
        }
    }
}

fn starts(contender: Contender, runtime: &Runtime) -> f64 {
    const COUNT: usize = 20_000;
    match contender {
        Contender::Fiber => on_fibers(runtime, || {
            let began = Instant::now();
            for n in 0..COUNT {
                let fiber = start(move || n, &Handle::current());
                assert_eq!(fiber::wait(fiber).expect("it ends"), n);
            }
            each(began, COUNT)
        }),
        Contender::Task => {
            let task = runtime.spawn(async {
                let began = Instant::now();
                for n in 0..COUNT {
                    assert_eq!(task::spawn(async move { n }).await.expect("it ends"), n);
                }
                each(began, COUNT)
            });
            runtime.block_on(task).expect("it ends")
        }
        Contender::Thread => {
            let began = Instant::now();
            for n in 0..COUNT / 10 {
                assert_eq!(thread::spawn(move || n).join().expect("it ends"), n);
            }
            each(began, COUNT / 10)
        }
    }
}

/// Lets `MANY` tasks or fibers wait, calls `then`, and wakes them. Returns the result of `then`
/// and the nanoseconds for each of them, from the first spawn to the last end.
fn waiting<R>(contender: Contender, runtime: &Runtime, then: impl FnOnce() -> R) -> (R, f64) {
    let began = Instant::now();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..MANY).map(|_| oneshot::channel::<()>()).unzip();
    let (started, starts) = mpsc::channel();
    let tasks: Vec<_> = receivers
        .into_iter()
        .map(|receiver| {
            let started = started.clone();
            match contender {
                Contender::Fiber => {
                    let waits = move || {
                        started.send(()).expect("it is counted");
                        fiber::wait(receiver).expect("it is woken");
                    };
                    start(waits, runtime.handle())
                }
                _ => runtime.spawn(async move {
                    started.send(()).expect("it is counted");
                    receiver.await.expect("it is woken");
                }),
            }
        })
        .collect();
    (0..MANY).for_each(|_| starts.recv().expect("each begins"));
    let seen = then();
    senders.into_iter().for_each(|sender| sender.send(()).expect("it waits"));
    tasks.into_iter().for_each(|task| runtime.block_on(task).expect("it ends"));
    (seen, each(began, MANY))
}

fn many(contender: Contender, runtime: &Runtime) -> f64 {
    waiting(contender, runtime, || ()).1
}

fn bytes(contender: Contender, runtime: &Runtime) -> f64 {
    let before = resident_bytes() as f64;
    // The last one may be about to wait; that does not matter here.
    let settle = || thread::sleep(Duration::from_millis(20));
    let (after, _) = waiting(contender, runtime, || {
        settle();
        resident_bytes() as f64
    });
    (after - before) / MANY as f64
}
