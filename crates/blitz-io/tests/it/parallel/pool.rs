//! Tests pools: how they are created, what their threads are, and how they end.

use std::{
    error::Error,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
};

use blitz_io::parallel::{
    ThreadPoolBuilder, Yield, current_num_threads, current_thread_has_pending_tasks,
    current_thread_index, join, max_num_threads, spawn, spawn_fifo, yield_local, yield_now,
};

use crate::support::{child, gate::Gate, pools::pool, watchdog};

#[test]
fn install_runs_on_a_thread_of_the_pool_and_returns_what_it_got() {
    let _watch = watchdog::start();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .thread_name(|index| format!("cruncher {index}"))
        .build()
        .unwrap();
    let name = pool.install(|| {
        assert_eq!((current_num_threads(), pool.current_num_threads()), (2, 2));
        assert_eq!(current_thread_index(), pool.current_thread_index());
        std::thread::current().name().map(str::to_owned)
    });
    assert!(name.unwrap().starts_with("cruncher "));
    let panics = || pool.install::<_, ()>(|| resume_unwind(Box::new(5)));
    let payload = catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    assert!(payload.is::<i32>());
}

#[test]
fn threads_end_when_the_pool_is_dropped_and_its_jobs_are_done() {
    let _watch = watchdog::start();
    let (sender, ended) = mpsc::channel();
    let gate = Gate::new();
    let pool = ThreadPoolBuilder::new()
        .num_threads(3)
        .exit_handler(move |index| sender.send(index).unwrap())
        .build()
        .unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    pool.spawn({
        let (gate, done) = (gate.clone(), done.clone());
        move || {
            gate.block();
            // A job of a pool that was dropped may spawn another one.
            spawn(move || done.store(7, SeqCst));
        }
    });
    drop(pool);
    assert!(ended.try_recv().is_err(), "a job is running");
    gate.open();
    let mut all: Vec<usize> = ended.into_iter().collect();
    all.sort_unstable();
    assert_eq!((all, done.load(SeqCst)), (vec![0, 1, 2], 7));
}

#[test]
fn a_pool_may_be_dropped_by_one_of_its_own_threads() {
    let _watch = watchdog::start();
    let (sender, ended) = mpsc::channel();
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .exit_handler(move |_| sender.send(()).unwrap())
        .build()
        .unwrap();
    let pool = Arc::new(pool);
    let gate = Gate::new();
    let (inside, opened) = (pool.clone(), gate.clone());
    pool.spawn(move || {
        opened.block();
        drop(inside);
    });
    drop(pool);
    gate.open();
    assert!(ended.recv().is_ok());
}

#[test]
fn pools_wait_for_each_other_without_a_deadlock() {
    let _watch = watchdog::start();
    let (one, two) = (pool(1), pool(1));
    let depth = one.install(|| two.install(|| one.install(|| two.install(|| 4))));
    assert_eq!(depth, 4);
}

#[test]
fn a_thread_that_could_not_be_started_fails_the_pool_and_ends_the_others() {
    let _watch = watchdog::start();
    let (sender, ended) = mpsc::channel();
    let mut started = 0;
    let error = ThreadPoolBuilder::new()
        .num_threads(4)
        .exit_handler(move |index| sender.send(index).unwrap())
        .spawn_handler(|thread| {
            started += 1;
            if started == 3 {
                return Err(io::Error::other("no more"));
            }
            std::thread::spawn(|| thread.run());
            Ok(())
        })
        .build()
        .unwrap_err();
    assert_eq!(error.to_string(), "no more");
    assert!(error.source().is_some());
    let mut all: Vec<usize> = ended.into_iter().collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1]);
}

#[test]
fn a_thread_name_that_panics_ends_the_threads_that_were_started() {
    let _watch = watchdog::start();
    let (sender, ended) = mpsc::channel();
    let builder = ThreadPoolBuilder::new()
        .num_threads(3)
        .exit_handler(move |index| sender.send(index).unwrap())
        .thread_name(|index| match index {
            2 => resume_unwind(Box::new(())),
            index => index.to_string(),
        });
    assert!(catch_unwind(AssertUnwindSafe(|| builder.build())).is_err());
    assert_eq!(ended.into_iter().count(), 2);
}

#[test]
fn handlers_run_on_their_threads_and_their_panics_go_to_the_panic_handler() {
    let _watch = watchdog::start();
    let (sender, panics) = mpsc::channel();
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .panic_handler(move |payload| sender.send(*payload.downcast::<&str>().unwrap()).unwrap())
        .start_handler(|_| resume_unwind(Box::new("start")))
        .exit_handler(|_| resume_unwind(Box::new("exit")))
        .build()
        .unwrap();
    pool.spawn(|| resume_unwind(Box::new("job")));
    pool.install(|| ());
    drop(pool);
    let mut all: Vec<_> = panics.into_iter().collect();
    all.sort_unstable();
    assert_eq!(all, ["exit", "exit", "job", "start", "start"]);
}

#[test]
fn a_detached_panic_without_a_handler_aborts() {
    let _watch = watchdog::start();
    const NAME: &str = "parallel::pool::a_detached_panic_without_a_handler_aborts";
    match child::role().as_deref() {
        Some(role) => {
            let mut builder = ThreadPoolBuilder::new();
            if role == "handler panics" {
                builder = builder.panic_handler(|_| resume_unwind(Box::new(())));
            }
            let pool = builder.build().unwrap();
            pool.spawn(|| panic!("on purpose"));
            // The process ends before this returns.
            Gate::new().block();
        }
        None => {
            for role in ["no handler", "handler panics"] {
                let output = child::output(&mut child::command(NAME, role)).unwrap();
                assert!(!output.status.success(), "{role}");
                assert!(child::text(&output).contains("aborting"), "{}", child::text(&output));
            }
        }
    }
}

#[test]
fn the_number_of_threads_comes_from_the_builder_or_the_environment() {
    let _watch = watchdog::start();
    const NAME: &str =
        "parallel::pool::the_number_of_threads_comes_from_the_builder_or_the_environment";
    if let Some(role) = child::role() {
        let expected = role.parse().unwrap();
        let default = std::thread::available_parallelism().map_or(1, usize::from);
        let expected = if expected == 0 { default } else { expected };
        assert_eq!(current_num_threads(), expected);
        assert_eq!(pool(2).current_num_threads(), 2);
        return;
    }
    for (variables, expected) in [
        (&[][..], "0"),
        (&[("RAYON_NUM_THREADS", "3")], "3"),
        (&[("RAYON_NUM_THREADS", "0"), ("RAYON_RS_NUM_CPUS", "3")], "0"),
        (&[("RAYON_NUM_THREADS", "many"), ("RAYON_RS_NUM_CPUS", "5")], "5"),
    ] {
        let mut command = child::command(NAME, expected);
        command.env_remove("RAYON_NUM_THREADS").env_remove("RAYON_RS_NUM_CPUS");
        child::succeed(command.envs(variables.iter().copied()));
    }
}

#[test]
fn too_many_threads_are_fewer() {
    let _watch = watchdog::start();
    let error = ThreadPoolBuilder::new()
        .num_threads(100_000)
        .spawn_handler(|thread| {
            assert!(thread.index() < max_num_threads());
            match thread.index() {
                index if index + 1 == max_num_threads() => Err(io::Error::other("the last")),
                _ => Ok(()),
            }
        })
        .build()
        .unwrap_err();
    assert_eq!(error.to_string(), "the last");
}

#[test]
fn the_calling_thread_may_be_the_first_of_a_pool() {
    let _watch = watchdog::start();
    std::thread::spawn(|| {
        let build = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        let pool = build().unwrap();
        assert_eq!(current_thread_index(), Some(0));
        assert_eq!(pool.install(current_thread_index), Some(0));
        let (sender, receiver) = mpsc::channel();
        spawn(move || sender.send(()).unwrap());
        assert!(receiver.try_recv().is_err(), "it runs jobs only when it is called");
        assert_eq!(yield_now(), Some(Yield::Executed));
        assert!(receiver.recv().is_ok());
        let error = build().unwrap_err();
        assert!(error.to_string().contains("already part of another thread pool"));
    })
    .join()
    .unwrap();
}

#[test]
fn a_scoped_pool_is_gone_when_its_scope_returns() {
    let _watch = watchdog::start();
    let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let sum = ThreadPoolBuilder::new()
        .num_threads(3)
        .build_scoped(
            |thread| {
                started.fetch_add(1, SeqCst);
                thread.run();
                ended.fetch_add(1, SeqCst);
            },
            |pool| pool.install(|| join(|| 1, || 2)),
        )
        .unwrap();
    assert_eq!((sum, started.into_inner(), ended.into_inner()), ((1, 2), 3, 3));
}

#[test]
fn spawned_jobs_are_pending_until_they_run() {
    let _watch = watchdog::start();
    assert_eq!(current_thread_has_pending_tasks(), None);
    assert_eq!((yield_now(), yield_local()), (None, None));
    let pool = pool(1);
    let (sender, order) = mpsc::channel();
    pool.install(|| {
        for number in 0..3 {
            let sender = sender.clone();
            spawn_fifo(move || sender.send(number).unwrap());
        }
        assert_eq!(current_thread_has_pending_tasks(), Some(true));
        while yield_local() == Some(Yield::Executed) {}
        assert_eq!(pool.current_thread_has_pending_tasks(), Some(false));
    });
    drop(sender);
    assert_eq!(order.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
#[allow(deprecated, reason = "kept for programs that still use it")]
fn a_breadth_first_pool_runs_the_oldest_job_first() {
    let _watch = watchdog::start();
    let pool = ThreadPoolBuilder::new().num_threads(1).breadth_first().build().unwrap();
    let (sender, order) = mpsc::channel();
    pool.install(|| {
        for number in 0..4 {
            let sender = sender.clone();
            spawn(move || sender.send(number).unwrap());
        }
        assert_eq!(join(|| 1, || 2), (1, 2));
    });
    drop(sender);
    assert_eq!(order.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn injected_jobs_are_found_beside_a_load_from_within() {
    let _watch = watchdog::start();
    let pool = pool(1);
    let gate = Gate::new();
    fn forever(gate: Arc<Gate>) {
        if !gate.is_open() {
            spawn(move || forever(gate));
        }
    }
    // Each job spawns another one, so there is always one on the stack.
    pool.spawn({
        let gate = gate.clone();
        move || forever(gate)
    });
    assert_eq!(pool.install(|| 42), 42);
    gate.open();
}

#[test]
fn a_broadcast_runs_once_on_each_thread_and_keeps_their_order() {
    let _watch = watchdog::start();
    let (pool, all) = (pool(5), Barrier::new(5));
    let run = || {
        pool.broadcast(|context| {
            all.wait();
            assert_eq!(Some(context.index()), current_thread_index());
            assert_eq!(context.num_threads(), 5);
            context.index()
        })
    };
    assert_eq!(run(), [0, 1, 2, 3, 4]);
    assert_eq!(pool.install(run), [0, 1, 2, 3, 4], "from within too");
    let (sender, receiver) = mpsc::channel();
    pool.spawn_broadcast(move |context| sender.send(context.index()).unwrap());
    let mut indices: Vec<_> = receiver.into_iter().collect();
    indices.sort_unstable();
    assert_eq!(indices, [0, 1, 2, 3, 4]);
    let ran = AtomicUsize::new(0);
    let panics = || {
        pool.broadcast(|context| {
            ran.fetch_add(1, SeqCst);
            if context.index() == 3 {
                resume_unwind(Box::new(()));
            }
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(ran.into_inner(), 5);
}

#[test]
fn broadcasts_of_two_pools_to_each_other_end() {
    let _watch = watchdog::start();
    let (one, two, ran) = (pool(3), pool(7), AtomicUsize::new(0));
    one.install(|| {
        two.broadcast(|_| {
            one.broadcast(|_| ran.fetch_add(1, SeqCst));
        })
    });
    assert_eq!(ran.into_inner(), 21);
}

#[test]
fn many_callers_from_outside_are_all_served() {
    let _watch = watchdog::start();
    let (pool, sum) = (pool(3), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let (a, b) = pool.join(|| 1, || 2);
                    sum.fetch_add(a + b, SeqCst);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 8 * 200 * 3);
}
