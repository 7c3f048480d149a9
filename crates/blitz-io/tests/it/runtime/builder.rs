//! Tests that each option of the builder has the documented effect.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use blitz_io::runtime::{self, Builder, Handle, Preemption, RuntimeFlavor};

use crate::support::{
    runtimes::{on_every_worker, one_thread, workers},
    watchdog,
};

/// The name of threads for which the builder sets none.
const UNNAMED: &str =
    if cfg!(feature = "tokio-names") { "tokio-rt-worker" } else { "blitz-worker" };

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn threads_have_the_name_they_were_given() {
    let _watch = watchdog::start();
    let rt = workers(2);
    assert_eq!(on_every_worker(&rt, thread_name), [UNNAMED; 2]);
    let rt = Builder::new_multi_thread().worker_threads(2).thread_name("mill").build().unwrap();
    assert_eq!(on_every_worker(&rt, thread_name), ["mill"; 2]);
}

#[test]
fn the_name_function_is_called_once_for_each_thread() {
    let _watch = watchdog::start();
    let named = Arc::new(AtomicUsize::new(0));
    let count = named.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(3)
        // Threads that replace a worker in a long poll are named by the runtime, so none may start.
        .preemption(Preemption::disabled())
        .thread_name_fn(move || format!("mill-{}", count.fetch_add(1, Relaxed)))
        .build()
        .unwrap();
    let names: HashSet<String> = on_every_worker(&rt, thread_name).into_iter().collect();
    assert_eq!(names, HashSet::from(["mill-0", "mill-1", "mill-2"].map(str::to_owned)));
    drop(rt);
    assert_eq!(named.load(Relaxed), 3);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn threads_have_the_stack_they_were_given() {
    let _watch = watchdog::start();
    fn stack_size() -> usize {
        // SAFETY: 1. `pthread_getattr_np` fills the zeroed attributes before they are read. 2. They
        // are destroyed once. 3. The thread queries itself, so it is alive.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &mut attributes), 0);
            let mut size = 0;
            assert_eq!(libc::pthread_attr_getstacksize(&attributes, &mut size), 0);
            libc::pthread_attr_destroy(&mut attributes);
            size
        }
    }
    for mebibytes in [1, 24] {
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(mebibytes << 20)
            .build()
            .unwrap();
        for size in on_every_worker(&rt, stack_size) {
            // The stack may be larger, because the C library reuses stacks of threads that ended.
            let slack = 64 << 10; // guard pages and thread-local storage
            assert!(size >= (mebibytes << 20) - slack, "{size}");
        }
    }
}

#[test]
fn a_runtime_has_the_workers_it_was_given_and_numbers_them_from_zero() {
    let _watch = watchdog::start();
    for count in [1, 2, 5, 70] {
        let rt = workers(count);
        assert_eq!(rt.metrics().num_workers(), count);
        let mut seen = on_every_worker(&rt, runtime::worker_index);
        seen.sort();
        assert_eq!(seen, (0..count).map(Some).collect::<Vec<_>>());
    }
}

#[test]
fn only_workers_have_an_index() {
    let _watch = watchdog::start();
    assert_eq!(runtime::worker_index(), None);
    let rt = workers(1);
    assert_eq!(rt.block_on(async { runtime::worker_index() }), None);
    assert_eq!(rt.handle().block_on(async { runtime::worker_index() }), None);
    let _entered = rt.enter();
    assert_eq!(runtime::worker_index(), None);

    let rt = one_thread();
    assert_eq!(rt.block_on(async { runtime::worker_index() }), Some(0));
    assert_eq!(rt.block_on(rt.spawn(async { runtime::worker_index() })).unwrap(), Some(0));
    assert_eq!(rt.handle().block_on(async { runtime::worker_index() }), None);
    assert_eq!(runtime::worker_index(), None);
}

#[test]
fn a_runtime_has_the_name_it_was_given() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread().worker_threads(1).name("indexer").build().unwrap();
    assert_eq!(rt.handle().name(), Some("indexer"));
    let seen = rt.block_on(rt.spawn(async { Handle::current().name().map(str::to_owned) }));
    assert_eq!(seen.unwrap().as_deref(), Some("indexer"));
    assert_eq!(one_thread().handle().name(), None);
}

#[test]
fn runtimes_have_their_flavour_and_an_id_of_their_own() {
    let _watch = watchdog::start();
    let (one, two, three) = (workers(1), workers(1), one_thread());
    let ids: HashSet<_> = [&one, &two, &three].map(|rt| rt.handle().id()).into();
    assert_eq!(ids.len(), 3);
    assert_eq!(one.handle().runtime_flavor(), RuntimeFlavor::MultiThread);
    assert_eq!(three.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
    let (id, flavor) = one
        .block_on(one.spawn(async { (Handle::current().id(), Handle::current().runtime_flavor()) }))
        .unwrap();
    assert_eq!((id, flavor), (one.handle().id(), RuntimeFlavor::MultiThread));
}

#[test]
fn a_current_thread_runtime_ignores_the_number_of_workers() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().worker_threads(7).build().unwrap();
    assert_eq!(rt.metrics().num_workers(), 1);
    let here = std::thread::current().id();
    assert_eq!(rt.block_on(rt.spawn(async { std::thread::current().id() })).unwrap(), here);
}

#[test]
fn one_builder_builds_many_runtimes() {
    let _watch = watchdog::start();
    let mut builder = Builder::new_multi_thread();
    // Preemption is off, so that the same two threads run all tasks to the end.
    builder.worker_threads(2).thread_name("twin").preemption(Preemption::disabled());
    let (one, two) = (builder.build().unwrap(), builder.build().unwrap());
    assert_ne!(one.handle().id(), two.handle().id());
    for rt in [one, two] {
        assert_eq!(on_every_worker(&rt, thread_name), ["twin"; 2]);
    }
}

#[test]
fn every_knob_at_once_makes_a_runtime_that_works() {
    let _watch = watchdog::start();
    let build = |mut builder: Builder, interval: u32| {
        builder
            .enable_all()
            .enable_io()
            .enable_time()
            .worker_threads(2)
            .max_blocking_threads(1)
            .thread_keep_alive(Duration::ZERO)
            .name("all")
            .thread_name("all")
            .thread_stack_size(1 << 20)
            .on_thread_start(|| {})
            .on_thread_stop(|| {})
            .on_thread_park(|| {})
            .on_thread_unpark(|| {})
            .global_queue_interval(interval)
            .event_interval(interval)
            .max_io_events_per_tick(1)
            .disable_lifo_slot()
            .lazy_start()
            .build()
            .unwrap()
    };
    for interval in [1, 2, 61, u32::MAX] {
        for builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
            let rt = build(builder, interval);
            let seen: Arc<Mutex<HashSet<u32>>> = Arc::default();
            let all = seen.clone();
            rt.block_on(rt.spawn(async move {
                let tasks: Vec<_> = (0..1_000)
                    .map(|n| {
                        let seen = all.clone();
                        blitz_io::spawn(async move {
                            blitz_io::task::yield_now().await;
                            seen.lock().unwrap().insert(n);
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
            }))
            .unwrap();
            assert_eq!(seen.lock().unwrap().len(), 1_000);
        }
    }
}

#[test]
fn metrics_count_what_happened() {
    let _watch = watchdog::start();
    for rt in [one_thread(), workers(1), workers(3)] {
        let metrics = rt.metrics();
        assert_eq!((metrics.num_alive_tasks(), metrics.spawned_tasks_count()), (0, 0));
        let forever = rt.spawn(std::future::pending::<()>());
        let tasks: Vec<_> =
            (0..50).map(|_| rt.spawn(async { blitz_io::task::yield_now().await })).collect();
        assert_eq!(metrics.spawned_tasks_count(), 51);
        for task in tasks {
            rt.block_on(task).unwrap();
        }
        crate::support::runtimes::run_until(&rt, {
            let metrics = metrics.clone();
            move || metrics.num_alive_tasks() == 2 // that task, and the one that checks this
        });
        assert_eq!(metrics.remote_schedule_count(), 52);
        let polls = |metrics: &runtime::RuntimeMetrics| -> u64 {
            (0..metrics.num_workers()).map(|worker| metrics.worker_poll_count(worker)).sum()
        };
        assert!(polls(&metrics) > 1 + 50 * 2, "{}", polls(&metrics));
        forever.abort();
        assert!(rt.block_on(forever).unwrap_err().is_cancelled());
        drop(rt);
        assert_eq!((metrics.num_alive_tasks(), metrics.spawned_tasks_count()), (0, 52));
        assert_eq!(metrics.global_queue_depth(), 0);
    }
}

/// With more than 64 workers, the words that hold a bit for each worker are several, or shared.
#[test]
fn many_workers_all_take_part() {
    let _watch = watchdog::start();
    for count in [64, 65, 256] {
        let rt = workers(count);
        // Each worker is needed, because the tasks wait for one another.
        let threads: HashSet<_> =
            on_every_worker(&rt, || std::thread::current().id()).into_iter().collect();
        assert_eq!(threads.len(), count);
        // Once more after they have slept, with work that is stolen.
        let finished = rt.block_on(rt.spawn(async {
            let tasks: Vec<_> = (0..4_096_u64)
                .map(|n| {
                    blitz_io::spawn(async move {
                        blitz_io::task::yield_now().await;
                        n
                    })
                })
                .collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        }));
        assert_eq!(finished.unwrap(), 4_096 * 4_095 / 2);
        let threads: HashSet<_> =
            on_every_worker(&rt, || std::thread::current().id()).into_iter().collect();
        assert_eq!(threads.len(), count);
    }
}
