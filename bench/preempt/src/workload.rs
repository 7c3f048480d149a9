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

use crate::figures::Figures;

/// The time for which the clock ticks, and below its interval.
const ALL: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(1);

pub(crate) const WORKERS: usize = 2;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    load: Load,
}

/// The load of a row.
enum Load {
    /// The clock, beside `hogs` tasks that run for `long` without yielding.
    Clock { hogs: usize, long: Duration, sleeps: bool },
    /// A task on the only worker blocks its thread until another one has run, which it spawned just
    /// before and which is next in its own queue. Each wait counts, up to [`LIMIT`].
    OwnSlot,
    /// `tasks` tasks in `thread::sleep`, once: measures the time until all are done.
    Sleepers { tasks: usize, long: Duration },
}

const fn clock(hogs: usize, millis: u64, sleeps: bool) -> Load {
    Load::Clock { hogs, long: Duration::from_millis(millis), sleeps }
}

/// The longest time that a task waits for another task that needs its worker.
const LIMIT: Duration = Duration::from_secs(1);
/// The number of repetitions; fewer where each takes the limit.
const TIMES: usize = 41;

pub(crate) const ROWS: [Row; 7] = [
    Row {
        name: "none",
        what: "no hogs: what the clock alone is late by",
        load: clock(0, 100, false),
    },
    Row {
        name: "2x100",
        what: "2 tasks that compute for 100 ms at a time",
        load: clock(2, 100, false),
    },
    Row {
        name: "8x100",
        what: "8 tasks that compute for 100 ms at a time",
        load: clock(8, 100, false),
    },
    Row {
        name: "8x1000",
        what: "8 tasks that compute for a second at a time",
        load: clock(8, 1000, false),
    },
    Row {
        name: "sleeps",
        what: "8 tasks in std::thread::sleep for 100 ms at a time",
        load: clock(8, 100, true),
    },
    Row {
        name: "own-slot",
        what: "a task blocks on one that is next in the queue of its only worker; up to a second",
        load: Load::OwnSlot,
    },
    Row {
        name: "200-sleeps",
        what: "200 tasks in std::thread::sleep for 500 ms: until all are through",
        load: Load::Sleepers { tasks: 200, long: Duration::from_millis(500) },
    },
];

/// All contenders.
pub(crate) const CONTENDERS: [&str; 5] = ["threads", "blitz", "blitz-off", "tokio", GO];

/// The program in `go/`, if there is a `go` on PATH. Its hogs' work is not counted, because its
/// loop is another compiler's.
pub(crate) const GO: &str = "go";

impl Row {
    /// Returns the arguments for the program in `go/`, if it has this row.
    pub(crate) fn words_for_go(&self) -> Option<[String; 4]> {
        let Load::Clock { hogs, long, sleeps } = self.load else { return None };
        let does = if sleeps { "sleeps" } else { "computes" };
        let (long, all) = (long.as_millis().to_string(), ALL.as_millis().to_string());
        Some([hogs.to_string(), long, does.to_owned(), all])
    }

    /// Returns true if the contender takes part here. Without preemption 200 sleeps take 50 s, one
    /// after the other on two workers, which is known without measuring it.
    pub(crate) fn has(&self, contender: &str) -> bool {
        match self.load {
            Load::Clock { .. } => true,
            Load::OwnSlot => !matches!(contender, "threads" | GO),
            Load::Sleepers { .. } => matches!(contender, "threads" | "blitz"),
        }
    }
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

pub(crate) fn measure(row: &Row, contender: &str) -> Result<Figures, String> {
    let over = Arc::new(AtomicBool::new(false));
    let threads = watch_threads(over.clone());
    let (late, work) = match row.load {
        Load::Clock { hogs, long, sleeps } => {
            let work = Work { done: Arc::default(), long, sleeps, end: Instant::now() + ALL };
            let late = match contender {
                "threads" => on_threads(hogs, &work),
                "blitz" | "blitz-off" => on_blitz(hogs, &work, blitz(contender, WORKERS)?)?,
                "tokio" => on_tokio(hogs, &work)?,
                other => return Err(format!("there is no contender `{other}`")),
            };
            (late, work.done.load(Relaxed))
        }
        Load::OwnSlot => (own_slot(contender)?, 0),
        Load::Sleepers { tasks, long } => (vec![sleepers(tasks, long, contender)?], 0),
    };
    over.store(true, Relaxed);
    Figures::new(late, work, threads.join().map_err(|_| "cannot count threads")?)
}

fn blitz(contender: &str, workers: usize) -> Result<blitz_io::runtime::Runtime, String> {
    use blitz_io::runtime::{Builder, Preemption};
    let preemption = if contender == "blitz" { Preemption::new() } else { Preemption::disabled() };
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).preemption(preemption).enable_all();
    builder.build().map_err(|error| error.to_string())
}

fn tokio(workers: usize) -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(workers).enable_all().build().map_err(|error| error.to_string())
}

/// Returns how long the task was blocked, each time.
fn own_slot(contender: &str) -> Result<Vec<Duration>, String> {
    macro_rules! once {
        ($runtime:ident, $on:expr) => {{
            let task = $on.spawn(async {
                let (tell, told) = mpsc::channel();
                $runtime::spawn(async move {
                    let _ = tell.send(());
                });
                let began = Instant::now();
                // Whether the message has come or not, this is how long the task waited for it.
                let _ = told.recv_timeout(LIMIT);
                began.elapsed()
            });
            $on.block_on(task).map_err(|error| error.to_string())
        }};
    }
    let times = if contender == "blitz" { TIMES } else { 3 };
    if contender == "tokio" {
        let runtime = tokio(1)?;
        return (0..times).map(|_| once!(tokio, runtime)).collect();
    }
    // A new runtime for each, because a runtime remembers a task that was caught.
    (0..times).map(|_| blitz(contender, 1).and_then(|runtime| once!(blitz_io, runtime))).collect()
}

fn sleepers(tasks: usize, long: Duration, contender: &str) -> Result<Duration, String> {
    let began = Instant::now();
    if contender == "threads" {
        let threads: Vec<_> =
            (0..tasks).map(|_| thread::spawn(move || thread::sleep(long))).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it sleeps"));
        return Ok(began.elapsed());
    }
    let runtime = blitz(contender, WORKERS)?;
    let tasks: Vec<_> =
        (0..tasks).map(|_| runtime.spawn(async move { thread::sleep(long) })).collect();
    for task in tasks {
        runtime.block_on(task).map_err(|error| error.to_string())?;
    }
    Ok(began.elapsed())
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

fn on_blitz(
    hogs: usize,
    work: &Work,
    runtime: blitz_io::runtime::Runtime,
) -> Result<Vec<Duration>, String> {
    let hogs: Vec<_> =
        (0..hogs).map(|_| runtime.spawn(hog(work.clone(), blitz_io::task::yield_now))).collect();
    let end = work.end;
    let clock = runtime.spawn(async move {
        let mut clock = Clock::new(end);
        while let Some(due) = clock.next() {
            blitz_io::time::sleep_until(due.into()).await;
        }
        clock.late
    });
    runtime.block_on(async {
        for hog in hogs {
            hog.await.map_err(|error| error.to_string())?;
        }
        clock.await.map_err(|error| error.to_string())
    })
}

fn on_tokio(hogs: usize, work: &Work) -> Result<Vec<Duration>, String> {
    let runtime = tokio(WORKERS)?;
    let hogs: Vec<_> =
        (0..hogs).map(|_| runtime.spawn(hog(work.clone(), tokio::task::yield_now))).collect();
    let end = work.end;
    let clock = runtime.spawn(async move {
        let mut clock = Clock::new(end);
        while let Some(due) = clock.next() {
            tokio::time::sleep_until(due.into()).await;
        }
        clock.late
    });
    runtime.block_on(async {
        for hog in hogs {
            hog.await.map_err(|error| error.to_string())?;
        }
        clock.await.map_err(|error| error.to_string())
    })
}
