//! Tests what metrics count, measure and report.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{
        Builder, Handle, HistogramConfiguration, HistogramScale, InvalidHistogramConfiguration,
        LogHistogram, Preemption, Runtime, RuntimeMetrics,
    },
    sync::mpsc,
    task::yield_now,
};

use crate::support::{
    caught_panic::panic_of,
    gate::Gate,
    runtimes::{all_kinds, on_every_worker, one_thread, run_until, workers},
    watchdog,
};

const fn us(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// Creates one runtime of each flavour, with a change to its builder.
fn with(change: impl Fn(&mut Builder)) -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()].map(|mut builder| {
        change(builder.worker_threads(2));
        builder.build().unwrap()
    })
}

fn sum(metrics: &RuntimeMetrics, figure: impl Fn(usize) -> u64) -> u64 {
    (0..metrics.num_workers()).map(figure).sum()
}

/// Returns the total count of the histogram of poll times.
fn timed_polls(metrics: &RuntimeMetrics) -> u64 {
    let buckets = metrics.poll_time_histogram_num_buckets();
    sum(metrics, |worker| {
        (0..buckets).map(|bucket| metrics.poll_time_histogram_bucket_count(worker, bucket)).sum()
    })
}

/// Spins for at least `duration`, by the clock that the runtime reads.
fn spin(duration: Duration) {
    let began = Instant::now();
    while began.elapsed() < duration {
        std::hint::spin_loop();
    }
}

#[test]
fn histograms_are_off_unless_enabled() {
    let _watch = watchdog::start();
    let configured = with(|builder| {
        let three = HistogramConfiguration::linear(us(1), 3);
        builder
            .metrics_poll_time_histogram_configuration(three.clone())
            .metrics_schedule_latency_histogram_configuration(three);
    });
    for rt in all_kinds().into_iter().chain(configured) {
        rt.block_on(rt.spawn(async {})).unwrap();
        let metrics = rt.metrics();
        assert!(!metrics.poll_time_histogram_enabled());
        assert!(!metrics.schedule_latency_histogram_enabled());
        assert_eq!(metrics.poll_time_histogram_num_buckets(), 0);
        assert_eq!(metrics.schedule_latency_histogram_num_buckets(), 0);
        for bucket in [0, 9, usize::MAX] {
            let nothing = Duration::ZERO..Duration::ZERO;
            assert_eq!(metrics.poll_time_histogram_bucket_range(bucket), nothing);
            assert_eq!(metrics.schedule_latency_histogram_bucket_range(bucket), nothing);
            assert_eq!(metrics.poll_time_histogram_bucket_count(0, bucket), 0);
            assert_eq!(metrics.schedule_latency_histogram_bucket_count(0, bucket), 0);
        }
    }
}

#[test]
fn every_poll_of_a_task_is_in_the_histogram_once() {
    let _watch = watchdog::start();
    let enabled = with(|builder| {
        builder.enable_metrics_poll_time_histogram();
    });
    for rt in enabled {
        let metrics = rt.metrics();
        assert!(metrics.poll_time_histogram_enabled());
        assert_eq!(metrics.poll_time_histogram_num_buckets(), 10);
        rt.block_on(async {
            let tasks: Vec<_> = (0..50)
                .map(|n| {
                    blitz_io::spawn(async move {
                        for _ in 0..n {
                            yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        drop(rt);
        let polls = sum(&metrics, |worker| metrics.worker_poll_count(worker));
        assert_eq!(polls, (1..=50).sum());
        assert_eq!(timed_polls(&metrics), polls);
    }
}

#[test]
fn a_poll_is_counted_in_the_bucket_of_its_duration_or_above() {
    let _watch = watchdog::start();
    let enabled = with(|builder| {
        builder.enable_metrics_poll_time_histogram().metrics_poll_time_histogram_configuration(
            HistogramConfiguration::linear(Duration::from_millis(1), 3),
        );
    });
    for rt in enabled {
        rt.block_on(rt.spawn(async { spin(Duration::from_millis(2)) })).unwrap();
        let metrics = rt.metrics();
        drop(rt);
        let in_bucket = |bucket| {
            sum(&metrics, |worker| metrics.poll_time_histogram_bucket_count(worker, bucket))
        };
        assert_eq!([in_bucket(0), in_bucket(1), in_bucket(2)], [0, 0, 1]);
    }
}

#[test]
fn a_poll_that_panics_is_timed_too() {
    let _watch = watchdog::start();
    for rt in with(|builder| {
        builder.enable_metrics_poll_time_histogram();
    }) {
        let task = rt.spawn(async { std::panic::resume_unwind(Box::new(())) });
        let _: Result<(), _> = rt.block_on(task);
        let metrics = rt.metrics();
        drop(rt);
        assert_eq!(timed_polls(&metrics), 1);
    }
}

#[test]
fn buckets_are_as_they_were_configured() {
    let _watch = watchdog::start();
    let end = Duration::from_nanos(u64::MAX);
    let ranges = |metrics: &RuntimeMetrics| -> Vec<_> {
        (0..metrics.poll_time_histogram_num_buckets())
            .map(|bucket| metrics.poll_time_histogram_bucket_range(bucket))
            .collect()
    };
    for rt in with(|builder| {
        builder
            .enable_metrics_poll_time_histogram()
            .metrics_poll_time_histogram_configuration(HistogramConfiguration::linear(us(50), 3))
            .enable_metrics_schedule_latency_histogram()
            .metrics_schedule_latency_histogram_configuration(HistogramConfiguration::linear(
                us(7),
                2,
            ));
    }) {
        let metrics = rt.metrics();
        assert_eq!(ranges(&metrics), [us(0)..us(50), us(50)..us(100), us(100)..end]);
        assert!(metrics.schedule_latency_histogram_enabled());
        assert_eq!(metrics.schedule_latency_histogram_num_buckets(), 2);
        assert_eq!(metrics.schedule_latency_histogram_bucket_range(1), us(7)..end);
    }
    for rt in with(|builder| {
        builder.enable_metrics_poll_time_histogram().metrics_poll_time_histogram_configuration(
            HistogramConfiguration::log(
                LogHistogram::builder()
                    .max_value(Duration::from_millis(4))
                    .min_value(us(20))
                    .precision_exact(0),
            ),
        );
    }) {
        let ranges = ranges(&rt.metrics());
        assert_eq!(ranges.len(), 10);
        for (bucket, range) in ranges[1..9].iter().enumerate() {
            assert_eq!(range.end - range.start, Duration::from_nanos(16_384 << bucket));
        }
    }
}

#[test]
fn a_log_histogram_has_the_configured_precision() {
    let buckets = |histogram| {
        let rt = Builder::new_current_thread()
            .enable_metrics_poll_time_histogram()
            .metrics_poll_time_histogram_configuration(HistogramConfiguration::log(histogram))
            .build()
            .unwrap();
        rt.metrics().poll_time_histogram_num_buckets()
    };
    assert_eq!(buckets(LogHistogram::default()), 119);
    assert_eq!(buckets(LogHistogram::builder().max_error(0.25).build()), 119);
    assert_eq!(buckets(LogHistogram::builder().max_error(0.9).build()), 119);
    assert_eq!(buckets(LogHistogram::builder().max_error(0.001).build()), 27_291);
    let finest = LogHistogram::builder().precision_exact(10).build();
    assert_eq!(LogHistogram::builder().max_error(0.000_01).build(), finest);
    let InvalidHistogramConfiguration::TooManyBuckets { required_bucket_count } =
        LogHistogram::builder().max_error(0.001).max_buckets(5).unwrap_err();
    assert_eq!(required_bucket_count, 27_291);
    assert_eq!(LogHistogram::builder().max_buckets(119).unwrap(), LogHistogram::default());
}

#[test]
fn histograms_that_make_no_sense_are_refused() {
    let _watch = watchdog::start();
    panic_of(|| HistogramConfiguration::linear(Duration::ZERO, 1)).says(&["wider than zero"]);
    panic_of(|| HistogramConfiguration::linear(us(1), 0)).says(&["needs a bucket"]);
    panic_of(|| LogHistogram::builder().max_error(0.0)).says(&["max_error must be greater than 0"]);
    panic_of(|| LogHistogram::builder().max_error(1.0)).says(&["max_error must be less than 1"]);
    panic_of(|| LogHistogram::builder().max_error(f64::NAN)).says(&["max_error must be"]);
    panic_of(|| LogHistogram::builder().precision_exact(11)).says(&["precision must be <= 10"]);
    panic_of(|| LogHistogram::builder().max_value(Duration::ZERO))
        .says(&["max value must be greater than 0"]);
    // The minimum is above the maximum: two buckets are left.
    let odd = LogHistogram::builder().min_value(us(10)).max_value(us(1)).max_buckets(2).unwrap();
    assert!(odd.max_value() > 1_000);
}

#[test]
#[allow(deprecated)]
fn the_older_names_work_and_win() {
    let _watch = watchdog::start();
    for rt in with(|builder| {
        builder
            .enable_metrics_poll_count_histogram()
            .metrics_poll_count_histogram_scale(HistogramScale::Log)
            .metrics_poll_count_histogram_buckets(3)
            .metrics_poll_count_histogram_resolution(us(50))
            .metrics_poll_time_histogram_configuration(HistogramConfiguration::linear(us(1), 7));
    }) {
        let metrics = rt.metrics();
        assert!(metrics.poll_count_histogram_enabled());
        assert_eq!(metrics.poll_count_histogram_num_buckets(), 3);
        let first = Duration::from_nanos(65_536);
        assert_eq!(metrics.poll_count_histogram_bucket_range(1), first..2 * first);
        rt.block_on(rt.spawn(async {})).unwrap();
        // The end of the task is counted when the worker looks for its next task.
        watchdog::until(|| metrics.num_alive_tasks() == 0);
        assert_eq!(metrics.active_tasks_count(), metrics.num_alive_tasks());
        assert_eq!(metrics.injection_queue_depth(), 0);
        drop(rt);
        let counts: u64 = sum(&metrics, |worker| {
            (0..3).map(|bucket| metrics.poll_count_histogram_bucket_count(worker, bucket)).sum()
        });
        assert_eq!(counts, 1);
    }
    let mut builder = Builder::new_current_thread();
    panic_of(|| drop(builder.metrics_poll_count_histogram_buckets(0).build()));
    let over = Duration::from_millis(1_001);
    panic_of(|| drop(builder.metrics_poll_count_histogram_resolution(Duration::ZERO).build()));
    panic_of(|| drop(builder.metrics_poll_count_histogram_resolution(over).build()));
}

#[test]
fn workers_and_buckets_that_are_not_there_are_named() {
    let _watch = watchdog::start();
    for rt in with(|builder| {
        builder.enable_metrics_poll_time_histogram();
    }) {
        let metrics = rt.metrics();
        let next = metrics.num_workers();
        let no_worker = format!("there is no worker {next}");
        let file = file!();
        panic_of(|| metrics.worker_thread_id(next)).says(&[&no_worker]).at(file, line!());
        panic_of(|| metrics.worker_mean_poll_time(next)).says(&[&no_worker]).at(file, line!());
        panic_of(|| metrics.poll_time_histogram_bucket_count(next, 0)).says(&[&no_worker]);
        panic_of(|| metrics.schedule_latency_histogram_bucket_count(next, 0)).says(&[&no_worker]);
        let no_bucket = ["there is no bucket 10", "has 10"];
        let range = panic_of(|| metrics.poll_time_histogram_bucket_range(10));
        range.says(&no_bucket).at(file, line!() - 1);
        panic_of(|| metrics.poll_time_histogram_bucket_count(0, 10)).says(&no_bucket);
        assert!(catch_unwind(AssertUnwindSafe(|| metrics.worker_local_queue_depth(next))).is_err());
    }
}

#[test]
fn a_worker_knows_its_thread() {
    let _watch = watchdog::start();
    let rt = workers(3);
    let metrics = rt.metrics();
    let seen = on_every_worker(&rt, || {
        (blitz_io::runtime::worker_index().unwrap(), std::thread::current().id())
    });
    for (worker, thread) in seen {
        assert_eq!(metrics.worker_thread_id(worker), Some(thread));
    }
}

#[test]
fn the_worker_of_a_current_thread_runtime_goes_with_block_on() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let metrics = rt.metrics();
    assert_eq!(metrics.worker_thread_id(0), None);
    rt.block_on(async {});
    assert_eq!(metrics.worker_thread_id(0), Some(std::thread::current().id()));
    let other = std::thread::scope(|scope| {
        let thread = scope.spawn(|| rt.block_on(async { std::thread::current().id() }));
        thread.join().unwrap()
    });
    assert_eq!(metrics.worker_thread_id(0), Some(other));
    rt.block_on(async {});
    assert_eq!(metrics.worker_thread_id(0), Some(std::thread::current().id()));
}

#[test]
fn the_mean_poll_time_is_zero_first_and_then_about_right() {
    let _watch = watchdog::start();
    for rt in [one_thread(), workers(1)] {
        let metrics = rt.metrics();
        assert_eq!(metrics.worker_mean_poll_time(0), Duration::ZERO);
        rt.block_on(rt.spawn(async {
            for _ in 0..20 {
                spin(us(300));
                yield_now().await;
            }
        }))
        .unwrap();
        let looks = metrics.clone();
        run_until(&rt, move || looks.worker_mean_poll_time(0) > Duration::ZERO);
        // Each reading covers one poll of 300 µs; the polls before and after lower the mean, and a
        // busy machine raises it.
        let mean = metrics.worker_mean_poll_time(0);
        assert!(mean > us(30), "{mean:?}");
    }
}

#[test]
fn tasks_in_a_local_queue_are_counted() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let metrics = rt.metrics();
    let outside: Vec<_> = (0..100).map(|_| rt.spawn(async {})).collect();
    assert_eq!((metrics.global_queue_depth(), metrics.worker_local_queue_depth(0)), (100, 0));
    rt.block_on(async {
        for task in outside {
            task.await.unwrap();
        }
        assert_eq!((metrics.global_queue_depth(), metrics.worker_local_queue_depth(0)), (0, 0));
        for _ in 0..100 {
            blitz_io::spawn(async {});
        }
        assert_eq!(metrics.worker_local_queue_depth(0), 100);
        assert_eq!(Handle::current().metrics().global_queue_depth(), 0);
    });
    drop(rt);
    assert_eq!(metrics.worker_local_queue_depth(0), 0);

    let rt = workers(1);
    let metrics = rt.metrics();
    rt.block_on(rt.spawn(async move {
        for _ in 0..100 {
            blitz_io::spawn(async {});
        }
        // The last task is in the LIFO slot, which Tokio does not count either.
        assert_eq!(metrics.worker_local_queue_depth(0), 99);
    }))
    .unwrap();
}

/// Runs two tasks that wake each other on one worker, so that each is woken into its LIFO slot.
fn woken_in_turn(rt: &Runtime) {
    let metrics = rt.metrics();
    rt.block_on(rt.spawn(async move {
        let (there, mut inbox) = mpsc::channel(1);
        let (back, mut outbox) = mpsc::channel(1);
        blitz_io::spawn(async move {
            while let Some(n) = inbox.recv().await {
                back.send(n).await.unwrap();
            }
        });
        for n in 0..10 {
            there.send(n).await.unwrap();
            assert_eq!(metrics.worker_local_queue_depth(0), 0, "the LIFO slot is not the queue");
            assert_eq!(outbox.recv().await, Some(n));
        }
    }))
    .unwrap();
}

#[test]
fn tasks_from_the_lifo_slot_are_counted() {
    let _watch = watchdog::start();
    let rt = workers(1);
    woken_in_turn(&rt);
    let hits = rt.metrics().worker_lifo_hit_count(0);
    assert!((5..=40).contains(&hits), "{hits} of about 20 wake-ups");

    let rt = Builder::new_multi_thread().worker_threads(1).disable_lifo_slot().build().unwrap();
    rt.block_on(rt.spawn(async { blitz_io::spawn(async {}).await.unwrap() })).unwrap();
    assert_eq!(rt.metrics().worker_lifo_hit_count(0), 0);
}

#[test]
fn batches_from_the_injector_are_counted() {
    let _watch = watchdog::start();
    for rt in with(|builder| {
        builder.worker_threads(1);
    }) {
        let metrics = rt.metrics();
        let before = metrics.worker_batch_fetch_count(0);
        for n in 1..=3 {
            // Each task comes alone, after the one before has run.
            rt.block_on(rt.spawn(async {})).unwrap();
            assert_eq!(metrics.worker_batch_fetch_count(0), before + n);
        }
        // A task that a worker spawns does not come through the injector.
        rt.block_on(rt.spawn(async { blitz_io::spawn(async {}).await.unwrap() })).unwrap();
        assert_eq!(metrics.worker_batch_fetch_count(0), before + 4);
    }
}

#[test]
fn a_worker_that_finds_nothing_to_do_is_counted() {
    let _watch = watchdog::start();
    for rt in with(|builder| {
        builder.enable_time();
    }) {
        rt.block_on(async { blitz_io::time::sleep(Duration::from_millis(1)).await });
        let metrics = rt.metrics();
        for worker in 0..metrics.num_workers() {
            watchdog::until(|| metrics.worker_noop_count(worker) > 0);
        }
    }
}

#[test]
fn half_of_a_full_queue_overflows_once() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let metrics = rt.metrics();
    rt.block_on(rt.spawn(async {
        for _ in 0..300 {
            blitz_io::spawn(async {});
        }
    }))
    .unwrap();
    assert_eq!(metrics.worker_overflow_count(0), 1);
}

#[test]
fn stolen_tasks_are_counted() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::disabled())
        .disable_lifo_slot()
        .build()
        .unwrap();
    let metrics = rt.metrics();
    rt.block_on(rt.spawn(async {
        // This worker stays here until the other worker runs the task that this one spawns.
        let inside = Gate::new();
        let entered = inside.clone();
        let task = blitz_io::spawn(async move { entered.open() });
        inside.block();
        task.await.unwrap();
    }))
    .unwrap();
    drop(rt);
    assert!(sum(&metrics, |worker| metrics.worker_steal_count(worker)) >= 1);
    assert!(sum(&metrics, |worker| metrics.worker_steal_operations(worker)) >= 1);
}

#[test]
fn without_an_io_driver_it_counts_nothing() {
    let _watch = watchdog::start();
    for rt in with(|_| {}) {
        let metrics = rt.metrics();
        let figures = [
            metrics.io_driver_fd_registered_count(),
            metrics.io_driver_fd_deregistered_count(),
            metrics.io_driver_ready_count(),
            metrics.io_driver_turn_count(),
        ];
        assert_eq!(figures, [0; 4]);
    }
}

#[test]
fn the_io_driver_counts_descriptors_events_and_turns() {
    let _watch = watchdog::start();
    for rt in with(|builder| _ = builder.enable_io()) {
        let metrics = rt.metrics();
        rt.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            assert_eq!(metrics.io_driver_fd_registered_count(), 1);
            let address = listener.local_addr().unwrap();
            let client = blitz_io::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.read_u8().await.unwrap()
            });
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_u8(7).await.unwrap();
            assert_eq!(client.await.unwrap(), 7);
            assert_eq!(metrics.io_driver_fd_registered_count(), 3);
        });
        assert_eq!(metrics.io_driver_fd_deregistered_count(), 3);
        assert!(metrics.io_driver_ready_count() >= 1);
        assert!(metrics.io_driver_turn_count() >= 1);
    }
}

#[test]
fn the_time_from_queueing_to_polling_is_counted_once_a_poll() {
    let _watch = watchdog::start();
    let mut two = Builder::new_multi_thread();
    two.worker_threads(2);
    for mut builder in [Builder::new_current_thread(), two] {
        let ms = Duration::from_millis;
        let rt = builder
            .enable_metrics_schedule_latency_histogram()
            .metrics_schedule_latency_histogram_configuration(HistogramConfiguration::linear(
                ms(5),
                2,
            ))
            .build()
            .unwrap();
        let metrics = rt.metrics();
        let counted = |bucket| -> u64 {
            let workers = 0..metrics.num_workers();
            workers.map(|w| metrics.schedule_latency_histogram_bucket_count(w, bucket)).sum()
        };
        let polls = || -> u64 {
            (0..metrics.num_workers()).map(|worker| metrics.worker_poll_count(worker)).sum()
        };
        rt.block_on(async {
            for _ in 0..100 {
                blitz_io::spawn(blitz_io::task::yield_now()).await.unwrap();
            }
        });
        watchdog::until(|| counted(0) + counted(1) == polls());
        assert!(polls() >= 200);
        if metrics.num_workers() > 1 {
            // Another worker would take the task.
            continue;
        }
        let slow = counted(1);
        rt.block_on(async {
            let waits = blitz_io::spawn(async {});
            let begun = std::time::Instant::now();
            while begun.elapsed() < ms(6) {
                std::hint::spin_loop();
            }
            waits.await.unwrap();
        });
        assert!(counted(1) > slow, "it waited for six milliseconds");
    }
}

/// A worker counts as busy even if it was stopped before it had gone to sleep, or had started.
#[test]
fn every_worker_has_been_busy() {
    for _ in 0..200 {
        let rt = Builder::new_multi_thread().worker_threads(4).build().unwrap();
        let metrics = rt.metrics();
        drop(rt);
        for worker in 0..4 {
            assert!(metrics.worker_total_busy_duration(worker) > Duration::ZERO, "{worker}");
        }
    }
}

/// Guards against a count that is lost when a task ends during the shutdown.
#[test]
fn no_task_is_alive_after_the_end() {
    let _watch = watchdog::start();
    for round in 0..300 {
        let rt = workers(8);
        let metrics = rt.metrics();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for n in 0..200 {
                        let task = rt.spawn(async move {
                            blitz_io::spawn(async move {
                                for _ in 0..n % 4 {
                                    yield_now().await;
                                }
                            })
                        });
                        if n % 8 == 0 {
                            task.abort();
                        }
                        if n % 3 == 0 {
                            drop(rt.block_on(task));
                        }
                    }
                });
            }
        });
        drop(rt);
        assert_eq!(metrics.num_alive_tasks(), 0, "round {round}");
    }
}
