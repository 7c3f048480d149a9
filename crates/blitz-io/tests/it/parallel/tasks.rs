//! Tests tasks and fork-join pools together: what is awaited, what blocks, and which tasks go on
//! meanwhile.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
};

use blitz_io::{
    parallel::{self, ThreadPoolBuilder},
    runtime::{Builder, Handle},
    task,
};

use crate::support::{
    gate::Gate,
    pools::{pool, reserve_temporary_worker},
    runtimes::workers_with_drivers,
    watchdog,
};

#[test]
fn the_result_or_panic_of_a_closure_reaches_the_awaiting_task() {
    let _watch = watchdog::start();
    workers_with_drivers(1).block_on(async {
        assert_eq!(parallel::run(|| 5).await, 5);
        let thread = task::spawn(async {
            let here = thread::current().id();
            (here, parallel::run(|| thread::current().id()).await)
        });
        let (here, there) = thread.await.unwrap();
        assert_ne!(here, there, "it runs on the pool");
        let thrown = task::spawn(parallel::run(|| panic!("thrown on purpose"))).await;
        let payload = thrown.unwrap_err().into_panic();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"thrown on purpose"));
    });
}

#[test]
fn every_closure_runs_once_and_completes_once() {
    const CLOSURES: usize = 20_000;
    let _watch = watchdog::start();
    let count = Arc::new(AtomicUsize::new(0));
    let sum = workers_with_drivers(2).block_on(async {
        let tasks = (0..CLOSURES).map(|number| {
            let count = count.clone();
            task::spawn(async move {
                parallel::run(move || {
                    count.fetch_add(1, SeqCst);
                    number
                })
                .await
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    assert_eq!((count.load(SeqCst), sum), (CLOSURES, CLOSURES * (CLOSURES - 1) / 2));
}

#[test]
fn a_closure_that_has_not_begun_does_not_run_for_a_future_that_is_gone() {
    let _watch = watchdog::start();
    let pool = pool(1);
    let (begun, gate) = (Gate::new(), Gate::new());
    pool.spawn({
        let (begun, gate) = (begun.clone(), gate.clone());
        move || {
            begun.open();
            gate.block();
        }
    });
    begun.block();
    let captured = Arc::new(());
    let ran = Arc::new(AtomicBool::new(false));
    let run = pool.run({
        let (captured, ran) = (captured.clone(), ran.clone());
        move || {
            let _captured = captured;
            ran.store(true, SeqCst);
        }
    });
    assert_eq!(format!("{run:?}"), "Run { state: \"waiting\" }");
    drop(run);
    assert_eq!(Arc::strong_count(&captured), 1, "the closure went with the future");
    gate.open();
    // First in, first out: the job of the dropped future has left the queue when this one runs.
    assert!(pool.install(|| !ran.load(SeqCst)));
}

#[test]
fn a_closure_that_has_begun_ends_though_its_future_is_gone() {
    let _watch = watchdog::start();
    let pool = pool(1);
    let (begun, gate) = (Gate::new(), Gate::new());
    let result = Arc::new(());
    let run = pool.run({
        let (begun, gate, result) = (begun.clone(), gate.clone(), result.clone());
        move || {
            begun.open();
            gate.block();
            result
        }
    });
    begun.block();
    assert_eq!(format!("{run:?}"), "Run { state: \"begun\" }");
    drop(run);
    gate.open();
    pool.install(|| ());
    assert_eq!(Arc::strong_count(&result), 1, "the result was not taken");
}

#[test]
fn a_panic_for_a_future_that_is_gone_ends_nothing() {
    let _watch = watchdog::start();
    let pool = pool(1);
    let (begun, gate) = (Gate::new(), Gate::new());
    let run = pool.run({
        let (begun, gate) = (begun.clone(), gate.clone());
        move || {
            begun.open();
            gate.block();
            panic!("on purpose");
        }
    });
    begun.block();
    drop(run);
    gate.open();
    assert_eq!(pool.install(|| 3), 3);
}

#[test]
fn a_pool_that_is_dropped_ends_what_is_awaited_first() {
    let _watch = watchdog::start();
    let pool = pool(2);
    let runs: Vec<_> = (0..100).map(|number| pool.run(move || number)).collect();
    drop(pool);
    let numbers = workers_with_drivers(1).block_on(async {
        let mut numbers = Vec::new();
        for run in runs {
            numbers.push(run.await);
        }
        numbers
    });
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn debug_of_a_finished_run_shows_that_it_is_over() {
    let _watch = watchdog::start();
    let mut run = Box::pin(parallel::run(|| 1));
    let mut context = Context::from_waker(Waker::noop());
    while run.as_mut().poll(&mut context).is_pending() {
        thread::yield_now();
    }
    assert_eq!(format!("{run:?}"), "Run { state: \"over\" }");
    let again = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)));
    assert!(again.is_err());
}

/// Asserts that the runtime's only worker can wait for something that only one of its tasks sends.
fn others_go_on_during(wait: impl FnOnce(mpsc::Receiver<()>) + Send + 'static) {
    let _watch = watchdog::start();
    let runtime = workers_with_drivers(1);
    let waits = runtime.spawn(async move {
        let (sender, receiver) = mpsc::channel();
        task::spawn(async move {
            // Through the driver and back, which shows that I/O goes on as well.
            let listener = blitz_io::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (stream, accepted) =
                blitz_io::join!(blitz_io::net::TcpStream::connect(address), listener.accept());
            stream.unwrap();
            accepted.unwrap();
            sender.send(()).unwrap();
        });
        wait(receiver);
        task::yield_now().await;
        Handle::try_current().is_ok()
    });
    assert!(runtime.block_on(waits).unwrap());
}

#[test]
fn a_join_inside_a_task_gives_up_the_core() {
    others_go_on_during(|receiver| {
        let (_, b) = parallel::join(move || receiver.recv().unwrap(), || 2);
        assert_eq!(b, 2);
    });
}

#[test]
fn a_scope_inside_a_task_gives_up_the_core() {
    others_go_on_during(|receiver| {
        let receiver = std::sync::Mutex::new(receiver);
        parallel::scope(|scope| {
            scope.spawn(|_| receiver.lock().unwrap().recv().unwrap());
        });
    });
}

#[test]
fn a_scope_in_place_inside_a_task_gives_up_the_core() {
    others_go_on_during(|receiver| {
        let receiver = std::sync::Mutex::new(receiver);
        parallel::in_place_scope(|scope| {
            scope.spawn(|_| receiver.lock().unwrap().recv().unwrap());
        });
    });
}

#[test]
fn an_install_inside_a_task_gives_up_the_core() {
    others_go_on_during(|receiver| pool(1).install(move || receiver.recv().unwrap()));
}

#[test]
fn a_broadcast_inside_a_task_gives_up_the_core() {
    others_go_on_during(|receiver| {
        let receiver = std::sync::Mutex::new(receiver);
        pool(1).broadcast(|_| receiver.lock().unwrap().recv().unwrap());
    });
}

#[test]
fn a_call_inside_a_task_gives_up_the_core() {
    let _reserved = reserve_temporary_worker();
    others_go_on_during(|receiver| {
        parallel::call(move |_| receiver.recv().unwrap());
    });
}

/// The worker belongs to a runtime and to a pool.
#[test]
fn a_wait_of_a_worker_that_also_belongs_to_a_pool_gives_up_the_core() {
    others_go_on_during(|receiver| {
        let builder = ThreadPoolBuilder::new().num_threads(2).use_current_thread();
        let pool = builder.build().unwrap();
        let (begun, taken) = (Gate::new(), Gate::new());
        let receiver = std::sync::Mutex::new(receiver);
        let first = || {
            begun.open();
            // Waits until the pool's other thread has taken the second half.
            taken.block();
        };
        let second = || {
            taken.open();
            receiver.lock().unwrap().recv().unwrap();
        };
        pool.join(first, second);
    });
}

/// The join blocks the thread, as documented, and nothing is stuck afterwards.
#[test]
fn a_join_on_a_current_thread_runtime_blocks_it_and_ends() {
    let _watch = watchdog::start();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let sum = runtime.block_on(async {
        let others = task::spawn(async { 4 });
        let (a, b) = parallel::join(|| 1, || 2);
        a + b + others.await.unwrap()
    });
    assert_eq!(sum, 7);
}

#[test]
fn a_closure_on_the_pool_may_block_on_the_runtime() {
    let _watch = watchdog::start();
    let runtime = workers_with_drivers(1);
    let handle = runtime.handle().clone();
    let output = runtime.block_on(parallel::run(move || {
        assert!(Handle::try_current().is_err(), "it has left the runtime");
        handle.block_on(async { task::spawn(async { 6 }).await.unwrap() })
    }));
    assert_eq!(output, 6);
}

/// Some tasks use joins, some await `run`, and some use neither, all at once.
#[test]
fn tasks_that_join_and_tasks_that_await_all_end() {
    const TASKS: usize = 300;
    let _watch = watchdog::start();
    fn sum(from: usize, to: usize) -> usize {
        match to - from {
            0 => 0,
            1 => from,
            count => {
                let middle = from + count / 2;
                let (a, b) = parallel::join(|| sum(from, middle), || sum(middle, to));
                a + b
            }
        }
    }
    let runtime = workers_with_drivers(2);
    let total: usize = runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                task::spawn(async move {
                    task::yield_now().await;
                    match number % 3 {
                        0 => sum(0, 100),
                        1 => parallel::run(|| sum(0, 100)).await,
                        _ => task::spawn_blocking(|| sum(0, 100)).await.unwrap(),
                    }
                })
            })
            .collect();
        let mut total = 0;
        for task in tasks {
            total += task.await.unwrap();
        }
        total
    });
    assert_eq!(total, TASKS * 4950);
}

/// A dump reports which pool a task waits for.
#[test]
fn a_dump_names_the_pool_that_a_task_waits_for() {
    let _watch = watchdog::start();
    let runtime = workers_with_drivers(1);
    let gate = Gate::new();
    let waits = runtime.spawn({
        let gate = gate.clone();
        async move { parallel::run(move || gate.block()).await }
    });
    while !runtime.handle().dump_now().to_string().contains("fork-join pool") {
        thread::yield_now();
    }
    gate.open();
    runtime.block_on(waits).unwrap();
}

/// The pool has no other thread to run the future's closure.
#[test]
fn a_thread_of_the_pool_may_wait_for_a_future_of_its_own_pool() {
    let _watch = watchdog::start();
    let alone = pool(1);
    let output =
        alone.install(|| workers_with_drivers(1).block_on(async { parallel::run(|| 8).await }));
    assert_eq!(output, 8);
    thread::spawn(|| {
        let builder = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        let pool = builder.build().unwrap();
        let both = workers_with_drivers(1)
            .block_on(async { blitz_io::join!(pool.run(|| 4), pool.run(|| 5)) });
        assert_eq!(both, (4, 5));
        assert_eq!(pool.yield_now(), Some(parallel::Yield::Idle), "nothing is left to be run");
        drop(pool);
        // The thread belongs to the pool for ever, although the pool has ended.
        assert_eq!(workers_with_drivers(1).block_on(parallel::run(|| 10)), 10);
    })
    .join()
    .unwrap();
}

/// The closure is in the injector, where a thread that waits for a future does not search.
#[test]
fn a_thread_of_the_pool_may_wait_for_a_future_that_came_from_outside() {
    let _watch = watchdog::start();
    let pool = pool(1);
    let (begun, output) = (Gate::new(), mpsc::channel());
    let (runs, run) = mpsc::channel::<parallel::Run<u8>>();
    pool.spawn({
        let begun = begun.clone();
        move || {
            begun.open();
            let run = run.recv().unwrap();
            output.0.send(workers_with_drivers(1).block_on(run)).unwrap();
        }
    });
    begun.block();
    runs.send(pool.run(|| 4)).unwrap();
    assert_eq!(output.1.recv(), Ok(4));
}

/// If the thread ran another job, that job would call `block_on` inside of a `block_on`, and panic.
#[test]
fn a_thread_of_the_pool_that_waits_for_a_future_runs_no_other_job() {
    let _watch = watchdog::start();
    let runtime = workers_with_drivers(1);
    let (begun, gate) = (Gate::new(), Gate::new());
    let has_run = AtomicBool::new(false);
    pool(2).scope(|scope| {
        let mut run = parallel::run({
            let (begun, gate) = (begun.clone(), gate.clone());
            move || {
                begun.open();
                gate.block();
            }
        });
        // The pool's other thread runs this job, and takes nothing else before the gate is open.
        begun.block();
        scope.spawn(|_| {
            runtime.block_on(async {});
            has_run.store(true, SeqCst);
        });
        runtime.block_on(async {
            let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut run).poll(context))).await;
            assert!(polled.is_pending());
            assert!(!has_run.load(SeqCst));
            gate.open();
            run.await;
        });
    });
    assert!(has_run.into_inner());
}

/// The thread that awaits the closure runs it, inside of `block_on`, and it may block as well.
#[test]
fn a_closure_that_its_own_pool_awaits_may_block_on_the_runtime() {
    let _watch = watchdog::start();
    let runtime = workers_with_drivers(1);
    let handle = runtime.handle().clone();
    let output = pool(1).install(|| {
        runtime.block_on(parallel::run(move || {
            handle.block_on(async { task::spawn(async { 6 }).await })
        }))
    });
    assert_eq!(output.unwrap(), 6);
}

#[test]
fn a_future_that_is_gone_keeps_no_waker() {
    let _watch = watchdog::start();
    let pool = pool(1);
    let (begun, gate) = (Gate::new(), Gate::new());
    let mut run = Box::pin(pool.run({
        let (begun, gate) = (begun.clone(), gate.clone());
        move || {
            begun.open();
            gate.block();
        }
    }));
    begun.block();
    let noting = Arc::new(Noting);
    let waker = Waker::from(noting.clone());
    assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&noting), 2);
    drop(run);
    assert_eq!(Arc::strong_count(&noting), 1);
    gate.open();
}

struct Noting;

impl std::task::Wake for Noting {
    fn wake(self: Arc<Self>) {}
}
