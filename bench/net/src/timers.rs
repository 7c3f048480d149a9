//! Rows of timers, written once for every runtime crate with Tokio's names.

/// The number of tasks that arm time-outs concurrently, and how many each.
pub(crate) const ARMING: usize = 100;
pub(crate) const TIMEOUTS: usize = 200;
/// The number of time-outs around a future that is ready.
pub(crate) const READY_TIMEOUTS: usize = 10_000;
/// The number of concurrent sleeps.
pub(crate) const SLEEPS: usize = 100_000;
/// The number of tasks that yield beside the ticker.
pub(crate) const YIELDERS: usize = 64;

macro_rules! timers {
    ($runtime:ident) => {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
        use std::time::Instant;

        use $runtime::runtime::{Builder, Runtime};
        use $runtime::spawn;
        use $runtime::task::yield_now;
        use $runtime::time::{self, sleep, sleep_until, timeout};

        use crate::lateness::{figures, late_ns, wants_more};
        use crate::timers::*;
        use harness::measure::per_op;

        fn build(workers: usize) -> Runtime {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers).enable_all();
            builder.build().expect("cannot build the runtime")
        }

        /// Spawns `work` and waits for it, so that all it does is done by a worker.
        fn on_a_worker<F>(runtime: &Runtime, work: F) -> F::Output
        where
            F: Future<Output: Send + 'static> + Send + 'static,
        {
            let task = runtime.spawn(work);
            runtime.block_on(task).expect("a task of the workload panicked")
        }

        /// Runs the row if it is one of these.
        pub(crate) fn on_timers(
            row: &str,
            workers: usize,
            budget: Duration,
        ) -> Option<Vec<Metric>> {
            let runtime = build(workers);
            Some(match row {
                "timeout_ready" => {
                    per_op(budget, READY_TIMEOUTS, || on_a_worker(&runtime, timeout_ready()))
                }
                "timeout_cancel" => {
                    per_op(budget, ARMING * TIMEOUTS, || on_a_worker(&runtime, timeout_cancel()))
                }
                "sleep_100us" => figures(on_a_worker(&runtime, sleep_100us(budget))),
                "sleep_100k" => figures(on_a_worker(&runtime, sleep_100k())),
                "ticker_yielders" => on_a_worker(&runtime, ticker_yielders(budget)),
                _ => return None,
            })
        }

        async fn timeout_ready() {
            for _ in 0..READY_TIMEOUTS {
                let inside = std::future::ready(std::hint::black_box(1));
                let found = timeout(Duration::from_secs(10), inside).await;
                assert_eq!(found.ok(), Some(1), "what is ready is not late");
            }
        }

        async fn timeout_cancel() {
            let arm = |_| {
                spawn(async {
                    for _ in 0..TIMEOUTS {
                        let ended = timeout(Duration::from_secs(10), yield_now()).await;
                        assert!(ended.is_ok(), "ten seconds are long");
                    }
                })
            };
            for task in (0..ARMING).map(arm).collect::<Vec<_>>() {
                task.await.expect("a task of the workload panicked");
            }
        }

        async fn sleep_100us(budget: Duration) -> Vec<f64> {
            const LONG: Duration = Duration::from_micros(100);
            let (start, mut late) = (Instant::now(), Vec::new());
            while wants_more(late.len(), start, budget) {
                let deadline = Instant::now() + LONG;
                sleep(LONG).await;
                late.push(late_ns(deadline));
            }
            late
        }

        /// Sleeps to deadlines spread over half a second that begins when all tasks exist.
        async fn sleep_100k() -> Vec<f64> {
            const SPAN_NS: u64 = 500_000_000;
            // Spawning them takes a tenth of a second or two.
            let begin = Instant::now() + Duration::from_millis(400);
            let sleeper = |number: usize| {
                // Deadlines in scattered order, so that no contender profits from their order.
                let offset = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % SPAN_NS;
                let deadline = begin + Duration::from_nanos(offset);
                spawn(async move {
                    sleep_until(time::Instant::from_std(deadline)).await;
                    late_ns(deadline)
                })
            };
            let tasks: Vec<_> = (0..SLEEPS).map(sleeper).collect();
            assert!(Instant::now() < begin, "the machine is too slow for this row");
            let mut late = Vec::with_capacity(SLEEPS);
            for task in tasks {
                late.push(task.await.expect("a sleeper panicked"));
            }
            late
        }

        async fn ticker_yielders(budget: Duration) -> Vec<Metric> {
            const PERIOD: Duration = Duration::from_millis(1);
            let stop = Arc::new(AtomicBool::new(false));
            let yields = Arc::new(AtomicU64::new(0));
            // Relaxed, all of them: a flag and a sum that stand alone.
            let yielder = |_| {
                let (stop, yields) = (stop.clone(), yields.clone());
                spawn(async move {
                    let mut own = 0;
                    while !stop.load(Relaxed) {
                        yield_now().await;
                        own += 1;
                    }
                    yields.fetch_add(own, Relaxed);
                })
            };
            let start = Instant::now();
            let tasks: Vec<_> = (0..YIELDERS).map(yielder).collect();
            let ticker = spawn(async move {
                let mut late = Vec::new();
                while wants_more(late.len(), start, budget) {
                    let deadline = Instant::now() + PERIOD;
                    sleep_until(time::Instant::from_std(deadline)).await;
                    late.push(late_ns(deadline));
                }
                late
            });
            let late = ticker.await.expect("the ticker panicked");
            stop.store(true, Relaxed);
            for task in tasks {
                task.await.expect("a yielder panicked");
            }
            let each = start.elapsed().as_nanos() as f64 / yields.load(Relaxed) as f64;
            let mut metrics = figures(late);
            metrics.push(Metric::new("yield", "ns", each, None));
            metrics
        }
    };
}

pub(crate) use timers;
