//! Tests the end of a runtime whose tasks wait: in polls, in destructors, and for each other.
//!
//! Every test here would hang without what the end of a runtime does for tasks whose threads are
//! stuck. The watchdog ends a test that hangs; no test depends on how long something takes.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Handle, Preemption, Runtime},
    task,
};

use crate::support::{gate::Gate, on_drop::OnDrop, runtimes::one_thread_with_drivers, watchdog};

/// The ways to end a runtime.
#[derive(Debug, Clone, Copy)]
enum How {
    Drop,
    Timeout,
    Background,
}

const ALL: [How; 3] = [How::Drop, How::Timeout, How::Background];

impl How {
    fn end(self, rt: Runtime) {
        match self {
            Self::Drop => drop(rt),
            Self::Timeout => rt.shutdown_timeout(Duration::from_secs(3600)),
            Self::Background => rt.shutdown_background(),
        }
    }
}

/// Creates the multi-thread runtimes that matter here: one worker and two, with preemption and
/// without.
fn multi_thread() -> Vec<Runtime> {
    let mut all = Vec::new();
    for workers in [1, 2] {
        for preemption in [true, false] {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers).enable_all();
            if !preemption {
                builder.preemption(Preemption::disabled());
            }
            all.push(builder.build().unwrap());
        }
    }
    all
}

/// Spawns a task that is pending for ever and runs `on_drop` when it is dropped. Another task
/// spawns it, so that it belongs to a worker. Returns when the task has been polled.
fn spawn_dropping(rt: &Runtime, on_drop: impl FnOnce() + Send + 'static) {
    let (polled, is_polled) = mpsc::channel();
    let spawner = rt.spawn(async move {
        blitz_io::spawn(async move {
            let _on_drop = OnDrop::new(on_drop);
            polled.send(()).unwrap();
            pending::<()>().await;
        })
    });
    match rt.handle().runtime_flavor() {
        blitz_io::runtime::RuntimeFlavor::CurrentThread => rt.block_on(async {
            spawner.await.unwrap();
            task::yield_now().await;
        }),
        _ => drop(spawner),
    }
    is_polled.recv().unwrap();
}

/// A wait in the destructor of a task, which returns a description of its result.
type Wait = fn() -> String;

fn spawned_task() -> String {
    let joined = Handle::current().block_on(async { blitz_io::spawn(async { 1 }).await });
    format!("cancelled {}", joined.unwrap_err().is_cancelled())
}

fn blocking_job() -> String {
    let joined = Handle::current().block_on(async { task::spawn_blocking(|| 1).await });
    format!("blocking {:?}", joined.map_err(|error| error.is_cancelled()))
}

#[cfg(feature = "time")]
fn sleep() -> String {
    let sleep = || Handle::current().block_on(blitz_io::time::sleep(Duration::from_millis(1)));
    format!("slept {}", catch_unwind(AssertUnwindSafe(sleep)).is_ok())
}

#[cfg(feature = "net")]
fn accept() -> String {
    let accepted = Handle::current().block_on(async {
        blitz_io::net::TcpListener::bind("127.0.0.1:0").await?.accept().await.map(drop)
    });
    format!("accepted {}", accepted.is_ok())
}

fn assert_gets(rt: Runtime, how: How, wait: Wait, expected: &[&str], in_place: bool) {
    let (sender, receiver) = mpsc::channel();
    spawn_dropping(&rt, move || {
        let got = if in_place { task::block_in_place(wait) } else { wait() };
        sender.send(got).unwrap();
    });
    how.end(rt);
    let got = receiver.recv().unwrap();
    assert!(expected.contains(&&*got), "{how:?}: {got}, not {expected:?}");
}

fn waits() -> Vec<(Wait, &'static [&'static str])> {
    vec![
        (spawned_task, &["cancelled true"]),
        // A blocking job is run for a destructor, unless the blocking pool has ended, which it
        // does at once if the end does not wait.
        (blocking_job, &["blocking Ok(1)", "blocking Err(true)"]),
        #[cfg(feature = "time")]
        (sleep, &["slept false", "slept true"]),
        #[cfg(feature = "net")]
        (accept, &["accepted false"]),
    ]
}

#[test]
fn a_destructor_that_waits_completes_on_a_multi_thread_runtime() {
    let _watch = watchdog::start();
    for how in ALL {
        for (wait, expected) in waits() {
            for rt in multi_thread() {
                assert_gets(rt, how, wait, expected, true);
            }
        }
    }
}

#[test]
fn a_destructor_that_waits_completes_on_a_current_thread_runtime() {
    let _watch = watchdog::start();
    for how in ALL {
        for (wait, expected) in waits() {
            assert_gets(one_thread_with_drivers(), how, wait, expected, false);
        }
    }
}

#[test]
fn a_blocking_job_is_run_for_a_destructor_while_the_runtime_is_dropped() {
    let _watch = watchdog::start();
    for rt in multi_thread() {
        assert_gets(rt, How::Drop, blocking_job, &["blocking Ok(1)"], true);
    }
    assert_gets(one_thread_with_drivers(), How::Drop, blocking_job, &["blocking Ok(1)"], false);
}

/// The task that owns the sender belongs to the worker whose poll waits for it, or was spawned from
/// outside.
#[test]
fn a_poll_that_waits_for_what_a_task_holds_does_not_keep_the_end() {
    let _watch = watchdog::start();
    for how in ALL {
        for rt in multi_thread() {
            let (sender, receiver) = mpsc::channel::<()>();
            spawn_dropping(&rt, move || drop(sender));
            let (begun, has_begun) = mpsc::channel();
            let (done, is_done) = mpsc::channel();
            rt.spawn(async move {
                begun.send(()).unwrap();
                done.send(receiver.recv()).unwrap();
            });
            has_begun.recv().unwrap();
            how.end(rt);
            assert!(is_done.recv().unwrap().is_err(), "a value came from nowhere");
        }
    }
}

#[test]
fn a_task_that_blocks_in_place_for_what_another_holds_does_not_keep_the_end() {
    let _watch = watchdog::start_for(Duration::from_secs(120));
    for round in 0..100 {
        let how = ALL[round % ALL.len()];
        for rt in multi_thread() {
            let (sender, receiver) = mpsc::channel::<()>();
            rt.spawn(async move {
                let _sender = sender;
                pending::<()>().await;
            });
            let (done, is_done) = mpsc::channel();
            rt.spawn(async move {
                let received = task::block_in_place(|| receiver.recv());
                done.send(received).unwrap();
            });
            how.end(rt);
            // Nothing is sent if the task was dropped before its first poll.
            let all: Vec<_> = is_done.iter().collect();
            assert!(all.len() <= 1 && all.iter().all(Result::is_err), "{all:?}");
        }
    }
}

#[test]
fn tasks_that_block_in_place_for_their_own_tasks_end_with_the_runtime() {
    let _watch = watchdog::start_for(Duration::from_secs(120));
    for round in 0..200 {
        let how = ALL[round % ALL.len()];
        for rt in multi_thread() {
            let ended = Arc::new(AtomicUsize::new(0));
            let (last, is_last) = mpsc::channel::<()>();
            for _ in 0..4 {
                let (ended, last) = (ended.clone(), last.clone());
                let count = OnDrop::new(move || {
                    ended.fetch_add(1, SeqCst);
                    drop(last);
                });
                rt.spawn(async move {
                    let _count = count;
                    loop {
                        task::block_in_place(|| {
                            let task = blitz_io::spawn(async { 1 });
                            let _ = Handle::current().block_on(task);
                        });
                        task::yield_now().await;
                    }
                });
            }
            drop(last);
            (0..round * 8).for_each(|_| std::thread::yield_now());
            how.end(rt);
            // Returns when all four senders have been dropped.
            assert!(is_last.recv().is_err());
            assert_eq!(ended.load(SeqCst), 4);
        }
    }
}

/// All tasks belong to one worker, so one thread alone would drop them one after the other.
#[test]
fn destructors_that_wait_for_each_other_end() {
    const CHAIN: usize = 20;
    let _watch = watchdog::start();
    for how in ALL {
        for (rt, is_reversed) in multi_thread().into_iter().zip([false, true, true, false]) {
            let mut links: Vec<_> = (0..=CHAIN).map(|_| mpsc::channel::<()>()).collect();
            if is_reversed {
                links.reverse();
            }
            let (senders, receivers): (Vec<_>, Vec<_>) = links.into_iter().unzip();
            let (done, is_done) = mpsc::channel::<()>();
            let pairs: Vec<_> = senders.into_iter().zip(receivers.into_iter().skip(1)).collect();
            let (spawned, is_spawned) = mpsc::channel();
            rt.spawn(async move {
                for (sender, receiver) in pairs {
                    let done = done.clone();
                    blitz_io::spawn(async move {
                        let _on_drop = OnDrop::new(move || {
                            // Returns when the next task in the chain drops its sender.
                            let _ = receiver.recv();
                            drop((sender, done));
                        });
                        pending::<()>().await;
                    });
                }
                spawned.send(()).unwrap();
            });
            is_spawned.recv().unwrap();
            how.end(rt);
            assert!(is_done.recv().is_err());
        }
    }
}

#[test]
fn a_spawn_during_and_after_the_end_is_cancelled_and_dropped() {
    let _watch = watchdog::start();
    for how in ALL {
        for rt in multi_thread().into_iter().chain([one_thread_with_drivers()]) {
            let handle = rt.handle().clone();
            let (dropped, is_dropped) = mpsc::channel();
            let in_drop = dropped.clone();
            spawn_dropping(&rt, move || {
                let late = blitz_io::spawn(async move {
                    let _on_drop = OnDrop::new(move || in_drop.send("during").unwrap());
                    pending::<()>().await;
                });
                drop(late);
            });
            how.end(rt);
            let late = handle.spawn(async move {
                let _on_drop = OnDrop::new(move || dropped.send("after").unwrap());
                pending::<()>().await;
            });
            assert!(late.is_finished());
            // The destructors inside futures that were never polled do not run, because the values
            // were never created. What the futures own is dropped even so.
            assert!(is_dropped.recv().is_err());
        }
    }
}

#[test]
fn blocking_jobs_that_were_queued_before_the_end_are_run() {
    const JOBS: usize = 8;
    let _watch = watchdog::start();
    for how in ALL {
        for threads in [1, 2, 64] {
            let mut builder = Builder::new_multi_thread();
            let rt = builder.worker_threads(1).max_blocking_threads(threads).build().unwrap();
            let (done, is_done) = mpsc::channel();
            for _ in 0..JOBS {
                let done = done.clone();
                rt.spawn_blocking(move || done.send(()).unwrap());
            }
            drop(done);
            how.end(rt);
            assert_eq!(is_done.iter().count(), JOBS, "{how:?} with {threads} threads");
        }
    }
}

/// With all blocking threads in use, a job waits for one that is queued behind it: Tokio hangs.
#[test]
fn a_job_that_waits_for_a_queued_one_does_not_keep_the_end() {
    let _watch = watchdog::start();
    for how in [How::Drop, How::Timeout] {
        let mut builder = Builder::new_multi_thread();
        let rt = builder.worker_threads(1).max_blocking_threads(1).build().unwrap();
        let job = rt.spawn_blocking(|| {
            let inner = task::spawn_blocking(|| 7);
            Handle::current().block_on(inner)
        });
        how.end(rt);
        // The queued job is cancelled if the end came first.
        let got = job.blocking_join().unwrap().map_err(|error| error.is_cancelled());
        assert!(matches!(got, Ok(7) | Err(true)), "{got:?}");
    }
}

/// The jobs block until all of the threads that may run them do. It takes 50 ms for each helper.
#[test]
fn helpers_for_queued_jobs_at_the_end_are_bounded() {
    const HELPERS: usize = 64;
    let _watch = watchdog::start_for(Duration::from_secs(60));
    let mut builder = Builder::new_multi_thread();
    let rt = builder.worker_threads(1).max_blocking_threads(1).build().unwrap();
    let (gate, running) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..2 * HELPERS {
        let (gate, running) = (gate.clone(), running.clone());
        rt.spawn_blocking(move || {
            running.fetch_add(1, SeqCst);
            gate.block();
        });
    }
    let ends = std::thread::spawn(move || drop(rt));
    watchdog::until(|| running.load(SeqCst) > HELPERS);
    // Time in which six more helpers would be started.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.load(SeqCst), 1 + HELPERS, "the thread of the pool, and the helpers");
    gate.open();
    ends.join().unwrap();
    assert_eq!(running.load(SeqCst), 2 * HELPERS, "all jobs were run");
}

#[test]
fn destructors_that_lock_send_and_panic_leave_nothing_behind() {
    let _watch = watchdog::start();
    for how in ALL {
        for rt in multi_thread() {
            let shared = Arc::new(Mutex::new(0_u32));
            let (sender, mut receiver) = blitz_io::sync::mpsc::unbounded_channel();
            for number in 0..50 {
                let (shared, sender) = (shared.clone(), sender.clone());
                spawn_dropping(&rt, move || {
                    *shared.lock().unwrap() += 1;
                    sender.send(number).unwrap();
                    if number % 10 == 0 {
                        std::panic::resume_unwind(Box::new("in a destructor"));
                    }
                });
            }
            drop(sender);
            how.end(rt);
            let mut got = Vec::new();
            while let Some(number) = receiver.blocking_recv() {
                got.push(number);
            }
            got.sort_unstable();
            assert_eq!(got, (0..50).collect::<Vec<_>>());
            assert_eq!(*shared.lock().unwrap(), 50);
        }
    }
}

/// A task of one runtime ends another runtime inside of `block_in_place`.
#[test]
fn a_runtime_ends_from_inside_of_a_task_of_another() {
    let _watch = watchdog::start();
    for how in ALL {
        for outer in multi_thread() {
            for inner in multi_thread() {
                let (sender, receiver) = mpsc::channel();
                spawn_dropping(&inner, move || {
                    sender.send(task::block_in_place(spawned_task)).unwrap();
                });
                let task = outer.spawn(async move { task::block_in_place(|| how.end(inner)) });
                outer.block_on(task).unwrap();
                assert_eq!(receiver.recv().unwrap(), "cancelled true");
            }
        }
    }
}

/// A task waits for fork-join work, whose job waits for a value that another task holds.
#[cfg(feature = "parallel")]
#[test]
fn fork_join_below_a_task_does_not_keep_the_end() {
    let _watch = watchdog::start();
    for rt in multi_thread() {
        let (sender, receiver) = mpsc::channel::<()>();
        spawn_dropping(&rt, move || drop(sender));
        let (begun, has_begun) = mpsc::channel();
        let receiver = Mutex::new(receiver);
        rt.spawn(async move {
            let wait = || {
                begun.send(()).unwrap();
                receiver.lock().unwrap().recv().is_err()
            };
            let (left, ()) = blitz_io::parallel::join(wait, || ());
            assert!(left);
        });
        has_begun.recv().unwrap();
        drop(rt);
    }
}

/// An end that waits, with a limit or without, has joined the threads, so the destructors of their
/// thread-locals have run. The sleep makes a missing join visible; no assertion depends on it.
#[test]
fn thread_locals_of_all_threads_are_dropped_when_an_end_returns() {
    struct Slow(Arc<AtomicUsize>);
    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(20));
            self.0.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static SLOW: std::cell::RefCell<Option<Slow>> = const { std::cell::RefCell::new(None) };
    }
    let _watch = watchdog::start();
    for how in [How::Drop, How::Timeout] {
        for rt in multi_thread().into_iter().chain([one_thread_with_drivers()]) {
            let dropped = Arc::new(AtomicUsize::new(0));
            let set = |dropped: Arc<AtomicUsize>| {
                SLOW.with(|slow| *slow.borrow_mut() = Some(Slow(dropped)));
            };
            let is_threaded =
                rt.handle().runtime_flavor() == blitz_io::runtime::RuntimeFlavor::MultiThread;
            let (one, other) = (dropped.clone(), dropped.clone());
            if is_threaded {
                rt.block_on(rt.spawn(async move { set(one) })).unwrap();
            }
            rt.block_on(rt.spawn_blocking(move || set(other))).unwrap();
            how.end(rt);
            let expected = if is_threaded { 2 } else { 1 };
            assert_eq!(dropped.load(SeqCst), expected, "{how:?}");
        }
    }
}
