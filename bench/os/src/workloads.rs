//! The rows, and the workload of each.

use std::time::Duration;

use harness::{Metric, Row};

/// The number of sequential children in a batch.
pub(crate) const CHILDREN: usize = 20;
/// The number of concurrent children.
pub(crate) const AT_ONCE: usize = 32;

pub(crate) const ROWS: [Row; 5] = [
    Row::new("spawn_wait", "/bin/true started and waited for, one after the other"),
    Row::new("spawn_wait_32", "the same, 32 at once"),
    Row::new("output", "/bin/echo started, its output collected"),
    Row::new(
        "signal_task",
        "from kill to the task that listens: a current-thread runtime on the main thread, asleep",
    )
    .with_own_threads(),
    Row::new("signal_worker", "the same, the task on a worker and the main thread in block_on"),
];

macro_rules! contender {
    ($run:ident, $module:ident, $runtime:ident) => {
        mod $module {
            use $runtime::process::Command;
            use $runtime::runtime::{Builder, Runtime};
            use $runtime::signal::unix::{SignalKind, signal};

            use super::*;
            use crate::sender;
            use harness::measure::per_op;

            fn build(workers: usize) -> Runtime {
                let mut builder = Builder::new_multi_thread();
                builder.worker_threads(workers).enable_all();
                builder.build().expect("cannot build the runtime")
            }

            pub(super) fn run(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
                Some(match row {
                    "spawn_wait" => on_a_worker(workers, budget, CHILDREN, || async {
                        for _ in 0..CHILDREN {
                            let status = Command::new("/bin/true").status().await;
                            assert!(status.expect("it starts").success());
                        }
                    }),
                    "spawn_wait_32" => on_a_worker(workers, budget, AT_ONCE, || async {
                        let start = |_| Command::new("/bin/true").spawn().expect("it starts");
                        for mut child in (0..AT_ONCE).map(start).collect::<Vec<_>>() {
                            assert!(child.wait().await.expect("it ends").success());
                        }
                    }),
                    "output" => on_a_worker(workers, budget, CHILDREN, || async {
                        for _ in 0..CHILDREN {
                            let output = Command::new("/bin/echo").arg("hello").output().await;
                            assert_eq!(output.expect("it starts").stdout, b"hello\n");
                        }
                    }),
                    "signal_task" => {
                        let mut builder = Builder::new_current_thread();
                        let runtime = builder.enable_all().build().expect("a runtime");
                        runtime.block_on(signals(budget))
                    }
                    "signal_worker" => {
                        let runtime = build(workers);
                        let task = runtime.spawn(signals(budget));
                        runtime.block_on(task).expect("a task of the workload panicked")
                    }
                    _ => return None,
                })
            }

            fn on_a_worker<F>(
                workers: usize,
                budget: Duration,
                ops: usize,
                work: impl Fn() -> F,
            ) -> Vec<Metric>
            where
                F: Future<Output = ()> + Send + 'static,
            {
                let runtime = build(workers);
                per_op(budget, ops, || {
                    let task = runtime.spawn(work());
                    runtime.block_on(task).expect("a task of the workload panicked");
                })
            }

            async fn signals(budget: Duration) -> Vec<Metric> {
                let mut signal = signal(SignalKind::from_raw(sender::SIGNAL)).expect("a listener");
                let sends = sender::begin(budget);
                loop {
                    let next = $runtime::time::timeout(Duration::from_millis(100), signal.recv());
                    match next.await {
                        Ok(event) => {
                            event.expect("it goes on");
                            sends.received();
                        }
                        Err(_) if sends.is_over() => return sends.figures(),
                        Err(_) => {}
                    }
                }
            }
        }

        /// Runs a row; `None` if there is no such row.
        pub(crate) fn $run(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
            $module::run(row, workers, budget)
        }
    };
}

contender!(on_tokio, tokio_rows, tokio);
#[cfg(feature = "blitz")]
contender!(on_blitz, blitz_rows, blitz_io);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_row_is_refused() {
        assert!(on_tokio("spawn_wait_2", 1, Duration::ZERO).is_none());
        assert!(crate::bare::run("spawn_wait_2", Duration::ZERO).is_none());
    }

    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&crate::COMPARISON);
    }
}
