//! Builds runtimes with every option set: hooks, names, metrics, dumps, seeds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, HistogramConfiguration, LogHistogram, RngSeed},
    task::{self, yield_now},
};

use crate::{
    ON_PURPOSE, Scenario,
    support::{
        gate::Gate,
        runtimes::{all_kinds, run_until},
    },
    tasks::for_ever,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("hooks of threads and of tasks", hooks),
    ("hooks that panic", hooks_that_panic),
    ("names of runtimes, threads and tasks", names),
    ("dumps", dumps),
    ("histograms", histograms),
    ("seeds", seeds),
    ("a builder that builds twice, fails or is dropped", builders),
];

fn both() -> [Builder; 2] {
    let mut two = Builder::new_multi_thread();
    two.worker_threads(2);
    [Builder::new_current_thread(), two]
}

fn hooks() {
    for mut builder in both() {
        let calls = Arc::new(AtomicUsize::new(0));
        let hook = || {
            let calls = calls.clone();
            move || {
                calls.fetch_add(1, Relaxed);
            }
        };
        builder.on_thread_start(hook()).on_thread_stop(hook());
        builder.on_thread_park(hook()).on_thread_unpark(hook());
        let (spawn, before, after, end) = (hook(), hook(), hook(), hook());
        builder.on_task_spawn(move |_| spawn()).on_before_task_poll(move |_| before());
        builder.on_after_task_poll(move |_| after()).on_task_terminate(move |_| end());
        let rt = builder.build().unwrap();
        rt.block_on(rt.spawn(yield_now())).unwrap();
        rt.block_on(rt.spawn_blocking(|| ())).unwrap();
        rt.spawn(for_ever());
        drop((rt, builder));
        assert!(calls.load(Relaxed) > 0);
    }
}

fn hooks_that_panic() {
    for mut builder in both() {
        let hook = || panic!("{ON_PURPOSE}");
        builder.on_thread_start(hook).on_thread_stop(hook);
        builder.on_thread_park(hook).on_thread_unpark(hook);
        builder.on_task_spawn(move |_| hook()).on_before_task_poll(move |_| hook());
        builder.on_after_task_poll(move |_| hook()).on_task_terminate(move |_| hook());
        let rt = builder.build().unwrap();
        rt.block_on(rt.spawn(yield_now())).unwrap();
        rt.block_on(rt.spawn_blocking(|| ())).unwrap();
        rt.spawn(for_ever());
    }
}

fn names() {
    for mut builder in both() {
        let count = AtomicUsize::new(0);
        builder.name("a runtime with a name");
        builder.thread_name_fn(move || format!("thread {}", count.fetch_add(1, Relaxed)));
        let rt = builder.build().unwrap();
        let named = |name: String| {
            let future = async { task::try_id().is_some() };
            task::Builder::new().name(&name).spawn_on(future, rt.handle()).unwrap()
        };
        for n in 0..5 {
            assert!(rt.block_on(named(format!("task {n}"))).unwrap());
        }
        drop(named("left".to_owned()));
        let large = [0_u8; 64 * 1024];
        let large = async move { large.len() };
        drop(task::Builder::new().name("large").spawn_on(large, rt.handle()));
        named("aborted".to_owned()).abort();
    }
}

fn dumps() {
    for rt in all_kinds() {
        let gate = Gate::new();
        for n in 0..10 {
            let name = format!("task {n}");
            drop(task::Builder::new().name(&name).spawn_on(gate.opened(), rt.handle()));
        }
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 10);
        let dump = rt.handle().dump_now();
        let later = rt.block_on(rt.handle().dump());
        gate.open();
        let handle = rt.handle().clone();
        run_until(&rt, move || handle.metrics().num_alive_tasks() == 1);
        drop(rt);
        // A dump does not depend on its runtime.
        assert!(dump.tasks().iter().count() >= 10 && later.tasks().iter().count() >= 10);
        assert!(format!("{dump:?}").contains("task 3"));
    }
}

fn histograms() {
    for mut builder in both() {
        let linear = HistogramConfiguration::linear(Duration::from_micros(50), 20);
        let log = HistogramConfiguration::log(LogHistogram::builder().build());
        builder.enable_metrics_poll_time_histogram().enable_metrics_schedule_latency_histogram();
        builder.metrics_poll_time_histogram_configuration(linear);
        builder.metrics_schedule_latency_histogram_configuration(log);
        let rt = builder.build().unwrap();
        rt.block_on(rt.spawn(yield_now())).unwrap();
        let metrics = rt.metrics();
        for bucket in 0..metrics.poll_time_histogram_num_buckets() {
            metrics.poll_time_histogram_bucket_count(0, bucket);
        }
        assert!(metrics.schedule_latency_histogram_num_buckets() > 1);
    }
}

fn seeds() {
    for mut builder in both() {
        let rt = builder.rng_seed(RngSeed::from_bytes(b"a seed")).build().unwrap();
        rt.block_on(async {
            for _ in 0..10 {
                blitz_io::select! {
                    () = yield_now() => {}
                    () = async {} => {}
                }
            }
        });
    }
}

fn builders() {
    for mut builder in both() {
        builder.thread_name("named").name("twice");
        drop((builder.build().unwrap(), builder.build().unwrap()));
        drop(builder);
    }
    let bad = Builder::new_multi_thread().worker_threads(2).thread_name("a\0b").build();
    assert!(bad.is_err());
}
