//! Tests many fibers: alive at once, one after the other, and more than memory allows.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use blitz_io::{channel::broadcast, runtime::Builder, sync::Semaphore, task};

use crate::{fiber, support::child};

#[test]
fn thirty_thousand_are_alive_at_once() {
    const FIBERS: usize = 30_000;
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .fiber_threads(2)
        .fiber_stack_size(64 << 10)
        .build()
        .unwrap();
    let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    rt.block_on(async {
        let fibers: Vec<_> = (0..FIBERS)
            .map(|number| {
                let (begun, go) = (begun.clone(), go.clone());
                fiber::spawn(move || {
                    begun.add_permits(1);
                    fiber::wait(go.acquire()).unwrap().forget();
                    number
                })
            })
            .collect();
        begun.acquire_many(FIBERS as u32).await.unwrap().forget();
        go.add_permits(FIBERS);
        for (number, fiber) in fibers.into_iter().enumerate() {
            assert_eq!(fiber.await.unwrap(), number);
        }
    });
}

/// Spawns and joins `count` fibers, and asserts that each ran once.
fn spawn_and_join(count: usize) {
    let rt = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let spawners: Vec<_> = (0..2)
        .map(|_| {
            let ran = ran.clone();
            rt.spawn(async move {
                for number in 0..count / 2 {
                    let ran = ran.clone();
                    let fiber = fiber::spawn(move || {
                        if number % 8 == 0 {
                            fiber::wait(task::yield_now());
                        }
                        ran.fetch_add(1, SeqCst);
                        number
                    });
                    assert_eq!(fiber.await.unwrap(), number);
                }
            })
        })
        .collect();
    rt.block_on(async {
        for spawner in spawners {
            spawner.await.unwrap();
        }
    });
    assert_eq!(ran.load(SeqCst), count / 2 * 2);
}

#[test]
fn each_fiber_runs_exactly_once() {
    spawn_and_join(20_000);
}

#[test]
#[ignore = "a million: `cargo xtask stress` runs it"]
fn a_million_fibers_run_exactly_once() {
    spawn_and_join(1_000_000);
}

#[test]
fn fibers_that_wake_each_other_receive_every_message() {
    const FIBERS: usize = 100;
    const ROUNDS: usize = 100;
    let rt = Builder::new_multi_thread().worker_threads(2).fiber_threads(2).build().unwrap();
    let (sender, _) = broadcast::channel(ROUNDS);
    let fibers: Vec<_> = (0..FIBERS)
        .map(|_| {
            let mut receiver = sender.subscribe();
            let f =
                move || (0..ROUNDS).map(|_| fiber::wait(receiver.recv()).unwrap()).sum::<usize>();
            fiber::Builder::new().spawn_on(f, rt.handle()).unwrap()
        })
        .collect();
    let speaker = thread::spawn(move || {
        for round in 0..ROUNDS {
            sender.send(round).unwrap();
        }
    });
    speaker.join().unwrap();
    rt.block_on(async {
        for fiber in fibers {
            assert_eq!(fiber.await.unwrap(), ROUNDS * (ROUNDS - 1) / 2);
        }
    });
}

/// In a process with a small address space, a spawn that gets no stack returns an error that says
/// what to do, and the fibers that exist go on.
#[test]
fn without_memory_for_a_stack_there_is_an_error_and_the_others_go_on() {
    const NAME: &str = "many::without_memory_for_a_stack_there_is_an_error_and_the_others_go_on";
    if child::role().is_none() {
        child::succeed(&mut child::command(NAME, "child"));
        return;
    }
    let rt = Builder::new_multi_thread().worker_threads(1).fiber_threads(1).build().unwrap();
    let first = rt.block_on(fiber::Builder::new().spawn_on(|| 1, rt.handle()).unwrap());
    assert_eq!(first.unwrap(), 1);
    let limit = libc_limit(4 << 30);
    let go = Arc::new(Semaphore::new(0));
    let mut fibers = Vec::new();
    let error = loop {
        let go = go.clone();
        let f = move || fiber::wait(go.acquire()).unwrap().forget();
        let spawned = fiber::Builder::new().stack_size(256 << 20).spawn_on(f, rt.handle());
        match spawned {
            Ok(fiber) => fibers.push(fiber),
            Err(error) => break error,
        }
        assert!(fibers.len() < 100, "the limit of {limit} bytes does not hold");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
    let text = error.to_string();
    assert!(text.contains("fewer fibers"), "{text}");
    go.add_permits(fibers.len());
    assert!(!fibers.is_empty());
    rt.block_on(async {
        for fiber in fibers {
            fiber.await.unwrap();
        }
    });
}

/// Limits this process's address space.
fn libc_limit(bytes: libc::rlim_t) -> libc::rlim_t {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `limit` is a valid `rlimit` that outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    bytes
}

/// Several threads spawn the first fibers of a runtime at once, and only some of them can start a
/// carrier thread; the other fibers must go to the carriers that were started meanwhile. Before the
/// spawner checked for those a second time, a fiber was cancelled in about one of thirty rounds.
#[test]
fn the_first_fibers_of_several_threads_all_run() {
    const THREADS: usize = 4;
    for _ in 0..300 {
        let runtime = Builder::new_current_thread().fiber_threads(1).build().unwrap();
        let together = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let _entered = runtime.enter();
                    together.wait();
                    let ended = fiber::spawn(|| 7).blocking_join();
                    assert_eq!(ended.unwrap(), 7);
                });
            }
        });
    }
}
