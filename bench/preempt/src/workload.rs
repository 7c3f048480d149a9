//! The clock and the hogs, on each contender.

use std::{
    fs,
    future::Future,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use harness::Metric;
use harness::measure::percentile;

/// The interval of the clock.
const TICK: Duration = Duration::from_millis(1);

const WORKERS: usize = 2;

/// The load of a row.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// The clock, beside `hogs` tasks that run for `long` without yielding.
    Clock { hogs: usize, long: Duration, sleeps: bool },
    /// A task on the only worker blocks its thread until another one has run, which it spawned just
    /// before and which is next in its own queue. Each wait counts, up to [`LIMIT`].
    OwnSlot,
    /// `tasks` tasks in `thread::sleep`, once: measures the time until all are done.
    Sleepers { tasks: usize, long: Duration },
}

/// The longest time that a task waits for another task that needs its worker.
const LIMIT: Duration = Duration::from_secs(1);
/// The number of repetitions; fewer where each takes the limit.
const TIMES: usize = 41;

/// Returns the load of a row; `go/main.go` has the same.
pub(crate) fn load(row: &str) -> Option<Load> {
    let clock = |hogs, millis, sleeps| {
        let long = Duration::from_millis(millis);
        Load::Clock { hogs, long, sleeps }
    };
    Some(match row {
        "none" => clock(0, 100, false),
        "2x100" => clock(2, 100, false),
        "8x100" => clock(8, 100, false),
        "8x1000" => clock(8, 1000, false),
        "sleeps" => clock(8, 100, true),
        "own-slot" => Load::OwnSlot,
        "200-sleeps" => Load::Sleepers { tasks: 200, long: Duration::from_millis(500) },
        _ => return None,
    })
}

/// The state that the hogs share.
#[derive(Clone)]
struct Work {
    done: Arc<AtomicU64>,
    long: Duration,
    sleeps: bool,
    end: Instant,
}

impl Work {
    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Runs a hog once.
    fn turn(&self) {
        if self.sleeps {
            thread::sleep(self.long);
            self.done.fetch_add(1, Relaxed);
            return;
        }
        let began = Instant::now();
        let mut turns = 0;
        while began.elapsed() < self.long {
            black_box((0..1_000u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum)));
            turns += 1;
        }
        self.done.fetch_add(turns, Relaxed);
    }
}

/// Measures a load on a contender; a clock ticks for `budget`.
pub(crate) fn measure(contender: &str, load: Load, budget: Duration) -> Option<Vec<Metric>> {
    let over = Arc::new(AtomicBool::new(false));
    let threads = watch_threads(over.clone());
    let (late, work) = match load {
        Load::Clock { hogs, long, sleeps } => {
            let work = Work { done: Arc::default(), long, sleeps, end: Instant::now() + budget };
            let late = match contender {
                "threads" => on_threads(hogs, &work),
                "blitz" | "blitz-off" => on_blitz(hogs, &work, blitz(contender, WORKERS)),
                "tokio" => on_tokio(hogs, &work),
                _ => return None,
            };
            (late, work.done.load(Relaxed))
        }
        Load::OwnSlot => (own_slot(contender), 0),
        Load::Sleepers { tasks, long } => (vec![sleepers(tasks, long, contender)], 0),
    };
    over.store(true, Relaxed);
    Some(metrics(&late, work, threads.join().expect("it only counts")))
}

/// Returns lateness in milliseconds, the hogs' work in turns of their loop, and the maximum of
/// threads.
fn metrics(late: &[Duration], work: u64, threads: usize) -> Vec<Metric> {
    assert!(!late.is_empty(), "the clock has not ticked");
    let mut late: Vec<f64> = late.iter().map(|late| late.as_secs_f64() * 1e3).collect();
    let mut at = |name, percent| Metric::new(name, "ms", percentile(&mut late, percent), None);
    vec![
        at("p50", 50),
        at("p90", 90),
        at("p99", 99),
        at("max", 100),
        Metric::new("work", "turns", work as f64, None),
        Metric::new("threads", "threads", threads as f64, None),
    ]
}

fn blitz(contender: &str, workers: usize) -> blitz_io::runtime::Runtime {
    use blitz_io::runtime::{Builder, Preemption};
    let preemption = if contender == "blitz" { Preemption::new() } else { Preemption::disabled() };
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).preemption(preemption).enable_all();
    builder.build().expect("the system has threads and descriptors for a runtime")
}

fn tokio(workers: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(workers).enable_all().build();
    runtime.expect("the system has threads and descriptors for a runtime")
}

/// Returns how long the task was blocked, each time.
fn own_slot(contender: &str) -> Vec<Duration> {
    macro_rules! once {
        ($runtime:ident, $on:expr) => {{
            let task = $on.spawn(async {
                let (sender, receiver) = mpsc::channel();
                $runtime::spawn(async move {
                    let _ = sender.send(());
                });
                let began = Instant::now();
                // Whether the message has come or not, this is how long the task waited for it.
                let _ = receiver.recv_timeout(LIMIT);
                began.elapsed()
            });
            $on.block_on(task).expect("the task does not panic")
        }};
    }
    let times = if contender == "blitz" { TIMES } else { 3 };
    if contender == "tokio" {
        let runtime = tokio(1);
        return (0..times).map(|_| once!(tokio, runtime)).collect();
    }
    // A new runtime for each, because a runtime remembers a task that was caught.
    let on_blitz = |_| {
        let runtime = blitz(contender, 1);
        once!(blitz_io, runtime)
    };
    (0..times).map(on_blitz).collect()
}

fn sleepers(tasks: usize, long: Duration, contender: &str) -> Duration {
    let began = Instant::now();
    if contender == "threads" {
        let threads: Vec<_> =
            (0..tasks).map(|_| thread::spawn(move || thread::sleep(long))).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it sleeps"));
        return began.elapsed();
    }
    let runtime = blitz(contender, WORKERS);
    let tasks: Vec<_> =
        (0..tasks).map(|_| runtime.spawn(async move { thread::sleep(long) })).collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).expect("it sleeps"));
    began.elapsed()
}

/// Samples the number of threads of the process, and returns the maximum.
fn watch_threads(over: Arc<AtomicBool>) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let mut most = 0;
        while !over.load(Relaxed) {
            most = most.max(fs::read_dir("/proc/self/task").map_or(0, Iterator::count));
            thread::sleep(Duration::from_millis(50));
        }
        most
    })
}

/// Records each deadline that has passed.
struct Clock {
    due: Instant,
    end: Instant,
    late: Vec<Duration>,
}

impl Clock {
    fn new(end: Instant) -> Self {
        Self { due: Instant::now() + TICK, end, late: Vec::with_capacity(4096) }
    }

    fn next(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while self.due <= now && self.due < self.end {
            self.late.push(now - self.due);
            self.due += TICK;
        }
        (self.due < self.end).then_some(self.due)
    }
}

fn on_threads(hogs: usize, work: &Work) -> Vec<Duration> {
    let threads: Vec<_> = (0..hogs)
        .map(|_| {
            let work = work.clone();
            thread::spawn(move || {
                while !work.is_over() {
                    work.turn();
                }
            })
        })
        .collect();
    let mut clock = Clock::new(work.end);
    while let Some(due) = clock.next() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("hogs do not panic"));
    clock.late
}

async fn hog<Y: Future<Output = ()>>(work: Work, yields: fn() -> Y) {
    while !work.is_over() {
        work.turn();
        yields().await;
    }
}

/// Runs the hogs and the clock on `$on`, a runtime of the crate `$runtime`, and returns how late each
/// tick was.
macro_rules! on_runtime {
    ($runtime:ident, $on:expr, $hogs:expr, $work:expr) => {{
        let (runtime, work) = ($on, $work);
        let hogs: Vec<_> = (0..$hogs)
            .map(|_| runtime.spawn(hog(work.clone(), $runtime::task::yield_now)))
            .collect();
        let end = work.end;
        let clock = runtime.spawn(async move {
            let mut clock = Clock::new(end);
            while let Some(due) = clock.next() {
                $runtime::time::sleep_until(due.into()).await;
            }
            clock.late
        });
        runtime.block_on(async {
            for hog in hogs {
                hog.await.expect("hogs do not panic");
            }
            clock.await.expect("the clock does not panic")
        })
    }};
}

fn on_blitz(hogs: usize, work: &Work, runtime: blitz_io::runtime::Runtime) -> Vec<Duration> {
    on_runtime!(blitz_io, runtime, hogs, work)
}

fn on_tokio(hogs: usize, work: &Work) -> Vec<Duration> {
    on_runtime!(tokio, tokio(WORKERS), hogs, work)
}
