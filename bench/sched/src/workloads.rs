//! The rows: each workload once, for any contender.
//!
//! A batch is timed from the main thread, which is never a worker. Where a row says 'from a
//! worker', the batch is one task that does the work and is waited for; its own spawn and join are
//! one in thousands of operations.
//!
//! go/main.go has the same rows with the same numbers, except for those that Go lacks.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, Instant};

use harness::Row;
use harness::measure::{
    Metric, Of, allowed_cores, cpu_ns, per_op, percentile, resident_bytes, stay_on,
    voluntary_switches, wait_until_others_sleep,
};
use harness::notifier::{Latch, Notifier, PaddedNotifier};

use crate::contender::Contender;

pub(crate) const ROWS: [Row; 16] = [
    Row::new("spawn_many_remote", "one of 30,000 empty tasks spawned from block_on; wait for all"),
    Row::new("spawn_many_local", "one of 30,000 empty tasks spawned from a worker; wait for all"),
    Row::new("spawn_join_local", "spawn(..).await, one at a time, from a worker"),
    Row::new("spawn_join_remote", "spawn(..).await, one at a time, from block_on"),
    Row::new("chained_spawn", "each task spawns the next, 10,000 deep"),
    Row::new(
        "join_set_10k",
        "one of 10,000 tasks spawned into a JoinSet from block_on, and taken out by join_next",
    )
    .lacked_by(&["smol", "go"]),
    Row::new("yield_many", "one yield of 200 tasks x 1000 yields"),
    Row::new(
        "ping_pong",
        "one hand-over, 1000 pairs of tasks that wake each other 100 times each way",
    ),
    Row::new("wake_storm", "one of 1000 parked tasks woken by an outside thread, and polled"),
    Row::new("spawn_heavy", "one of 64 tasks of about 200 us of work each, spawned from a worker"),
    Row::new(
        "spawn_blocking",
        "spawn_blocking(..).await, one at a time, from a worker (smol: unblock)",
    )
    .lacked_by(&["go"]),
    Row::new(
        "wake_idle",
        "from the wake call of an outside thread to the poll, all workers asleep before",
    ),
    Row::new("wake_same_core", "wake_idle with the whole process on one core").lacked_by(&["go"]),
    Row::new(
        "wake_cross_core",
        "wake_idle with the workers on one core and the waking thread on another",
    )
    .lacked_by(&["go"]),
    Row::new(
        "idle_1m",
        "one of a million parked tasks with 64 bytes of state: memory, spawn, wake and finish",
    )
    .slow(),
    Row::new("idle_cpu", "what the runtime's threads use in a second of idleness").slow(),
];

/// Runs a row on a runtime of its own. Returns `None` if there is no such row, or the contender
/// lacks what it measures.
pub(crate) fn run<C: Contender>(
    row: &str,
    workers: usize,
    budget: Duration,
) -> Option<Vec<Metric>> {
    // Before the runtime is built, because threads inherit the affinity of the thread that starts
    // them.
    let cores = Cores::of(row);
    let runtime = C::build(workers);
    Some(match row {
        "spawn_many_remote" => spawn_many_remote(&runtime, budget),
        "spawn_many_local" => spawn_many_local(&runtime, budget),
        "spawn_join_local" => spawn_join_local(&runtime, budget),
        "spawn_join_remote" => spawn_join_remote(&runtime, budget),
        "chained_spawn" => chained_spawn(&runtime, budget),
        "join_set_10k" => join_set_10k(&runtime, budget)?,
        "yield_many" => yield_many(&runtime, budget),
        "ping_pong" => ping_pong(&runtime, budget),
        "wake_storm" => wake_storm(&runtime, budget),
        "spawn_heavy" => spawn_heavy(&runtime, budget),
        "spawn_blocking" => spawn_blocking(&runtime, budget),
        "wake_idle" | "wake_same_core" | "wake_cross_core" => wake_idle(&runtime, cores, budget),
        "idle_1m" => idle_1m(&runtime, 1_000_000),
        "idle_cpu" => idle_cpu(&runtime, Duration::from_secs(1)),
        _ => return None,
    })
}

const SPAWNS: usize = 30_000;

async fn spawn_and_wait<C: Contender>(latch: &'static Latch) {
    latch.set(SPAWNS);
    for _ in 0..SPAWNS {
        C::detach(C::spawn(async move { latch.count_down() }));
    }
    latch.wait().await;
}

fn spawn_many_remote<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let latch = Latch::leaked();
    per_op(budget, SPAWNS, || runtime.block_on(spawn_and_wait::<C>(latch)))
}

fn spawn_many_local<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let latch = Latch::leaked();
    per_op(budget, SPAWNS, || runtime.on_a_worker(spawn_and_wait::<C>(latch)))
}

/// The number of joins: large enough that the batch's own spawn is negligible, small enough that a
/// slow contender still does several batches in a budget.
const JOINS_LOCAL: usize = 10_000;
/// The number of joins from outside. Fewer, because with sleeping workers one of these may cost
/// tens of microseconds.
const JOINS_REMOTE: usize = 1_000;

async fn spawn_and_join<C: Contender>(joins: usize) {
    for number in 0..joins {
        black_box(C::join(C::spawn(async move { number })).await);
    }
}

fn spawn_join_local<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    per_op(budget, JOINS_LOCAL, || runtime.on_a_worker(spawn_and_join::<C>(JOINS_LOCAL)))
}

fn spawn_join_remote<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    per_op(budget, JOINS_REMOTE, || runtime.block_on(spawn_and_join::<C>(JOINS_REMOTE)))
}

const DEPTH: usize = 10_000;

fn chain<C: Contender>(left: usize, end: &'static Latch) {
    C::detach(C::spawn(async move {
        match left {
            0 => end.count_down(),
            _ => chain::<C>(left - 1, end),
        }
    }));
}

fn chained_spawn<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let end = Latch::leaked();
    per_op(budget, DEPTH, || {
        runtime.on_a_worker(async move {
            end.set(1);
            chain::<C>(DEPTH, end);
            end.wait().await;
        });
    })
}

const MEMBERS: usize = 10_000;

fn join_set_10k<C: Contender>(runtime: &C, budget: Duration) -> Option<Vec<Metric>> {
    // Checked once, outside of the batches: a contender has sets or it has none.
    C::set()?;
    Some(per_op(budget, MEMBERS, || {
        let sum = runtime.block_on(async {
            let mut set = C::set().expect("it had sets a moment ago");
            for number in 0..MEMBERS {
                C::spawn_in(&mut set, async move { number });
            }
            let mut sum = 0;
            while let Some(number) = C::join_next(&mut set).await {
                sum += number;
            }
            sum
        });
        assert_eq!(sum, MEMBERS * (MEMBERS - 1) / 2, "a member came out twice or not at all");
    }))
}

const YIELDERS: usize = 200;
const YIELDS: usize = 1000;

fn yield_many<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let latch = Latch::leaked();
    per_op(budget, YIELDERS * YIELDS, || {
        runtime.on_a_worker(async move {
            latch.set(YIELDERS);
            for _ in 0..YIELDERS {
                C::detach(C::spawn(async move {
                    for _ in 0..YIELDS {
                        C::yield_now().await;
                    }
                    latch.count_down();
                }));
            }
            latch.wait().await;
        });
    })
}

const PAIRS: usize = 1000;
/// The number of round trips: enough that the pair's two spawns are two in two hundred operations.
const ROUND_TRIPS: usize = 100;

fn padded_notifiers(count: usize) -> &'static [PaddedNotifier] {
    Vec::leak((0..count).map(|_| PaddedNotifier(Notifier::new())).collect())
}

fn ping_pong<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let latch = Latch::leaked();
    let notifiers = padded_notifiers(2 * PAIRS);
    per_op(budget, PAIRS * ROUND_TRIPS * 2, || {
        runtime.on_a_worker(async move {
            latch.set(2 * PAIRS);
            for pair in notifiers.chunks_exact(2) {
                let (ping, pong) = (&pair[0].0, &pair[1].0);
                C::detach(C::spawn(async move {
                    for _ in 0..ROUND_TRIPS {
                        ping.notify();
                        pong.wait().await;
                    }
                    latch.count_down();
                }));
                C::detach(C::spawn(async move {
                    for _ in 0..ROUND_TRIPS {
                        ping.wait().await;
                        pong.notify();
                    }
                    latch.count_down();
                }));
            }
            latch.wait().await;
        });
    })
}

const SLEEPERS: usize = 1000;
/// The number of storms in a batch, so that a batch is ten thousand wakes.
const STORMS: usize = 10;

fn wake_storm<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let latch = Latch::leaked();
    let notifiers = padded_notifiers(SLEEPERS);
    let stop = Arc::new(AtomicBool::new(false));
    runtime.block_on(async {
        for notifier in notifiers {
            let stop = stop.clone();
            C::detach(C::spawn(async move {
                loop {
                    notifier.0.wait().await;
                    // Relaxed: the notification that follows the store provides the ordering.
                    if stop.load(Relaxed) {
                        return;
                    }
                    latch.count_down();
                }
            }));
        }
    });
    let storm = || {
        latch.set(SLEEPERS);
        // Outside of `block_on`, so that the thread is not part of the runtime here.
        notifiers.iter().for_each(|notifier| notifier.0.notify());
        runtime.block_on(latch.wait());
    };
    let metrics = per_op(budget, SLEEPERS * STORMS, || (0..STORMS).for_each(|_| storm()));
    // Relaxed: the notification that follows provides the ordering. This storm is not counted: it
    // only ends the tasks.
    stop.store(true, Relaxed);
    notifiers.iter().for_each(|notifier| notifier.0.notify());
    metrics
}

const HEAVY_TASKS: usize = 64;
/// The steps of a chain of multiplications and additions, calculated at 200 us and measured at 200
/// to 250 us where the table was made. A fixed count and not a clock, so that a task that shares
/// its core with another does not come out shorter.
const HEAVY_STEPS: u64 = 150_000;

fn burn() -> u64 {
    // An odd multiplier of full period; any would do, as long as it cannot be folded.
    (0..HEAVY_STEPS).fold(black_box(1), |sum: u64, step| {
        black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step))
    })
}

fn spawn_heavy<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let latch = Latch::leaked();
    per_op(budget, HEAVY_TASKS, || {
        runtime.on_a_worker(async move {
            latch.set(HEAVY_TASKS);
            for _ in 0..HEAVY_TASKS {
                C::detach(C::spawn(async move {
                    burn();
                    latch.count_down();
                }));
            }
            latch.wait().await;
        });
    })
}

/// The number of blocking calls, as many as `JOINS_REMOTE`, and for its reason: each wakes a
/// sleeping thread and may wake a sleeping worker.
const BLOCKING_TRIPS: usize = 1_000;

/// Measures `spawn_blocking` from a worker, as programs use it: from `block_on` no worker would
/// take part, and the rows with one and two workers would be the same.
fn spawn_blocking<C: Contender>(runtime: &C, budget: Duration) -> Vec<Metric> {
    let metrics = per_op(budget, BLOCKING_TRIPS, || {
        runtime.on_a_worker(async {
            for _ in 0..BLOCKING_TRIPS {
                C::join(C::spawn_blocking(|| ())).await;
            }
        });
    });
    metrics.into_iter().map(Metric::in_us).collect()
}

/// The pause between two wakes. Picked, not measured: each time it is checked that the workers
/// really sleep by then.
const PAUSE: Duration = Duration::from_millis(2);

/// One sleeping task and the times at which it was polled, on a clock that starts
/// with the row.
struct Sleeper {
    notifier: Notifier,
    polled_at_ns: AtomicU64,
    stop: AtomicBool,
}

/// The cores of the wake rows. By default, the kernel places the woken worker on the same core or
/// on another, at several times the cost; these rows separate the two cases.
struct Cores {
    /// The core of the main thread once the runtime has started its threads.
    waker: Option<usize>,
}

impl Cores {
    fn of(row: &str) -> Cores {
        match row {
            "wake_same_core" => Cores::one(),
            "wake_cross_core" => Cores::two(),
            _ => Cores::any(),
        }
    }

    fn any() -> Cores {
        Cores { waker: None }
    }

    fn one() -> Cores {
        stay_on(allowed_cores()[0]);
        Cores { waker: None }
    }

    fn two() -> Cores {
        let cores = allowed_cores();
        assert!(cores.len() > 1, "this row needs two cores: leave it out with --only");
        stay_on(cores[1]);
        Cores { waker: Some(cores[0]) }
    }
}

fn wake_idle<C: Contender>(runtime: &C, cores: Cores, budget: Duration) -> Vec<Metric> {
    let clock = Instant::now();
    let now_ns = move || clock.elapsed().as_nanos() as u64;
    let sleeper: &'static Sleeper = Box::leak(Box::new(Sleeper {
        notifier: Notifier::new(),
        polled_at_ns: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    }));
    runtime.block_on(async {
        C::detach(C::spawn(async move {
            // Relaxed, all of them: the numbers stand alone, and the main thread reads them again
            // until they change.
            loop {
                sleeper.notifier.wait().await;
                sleeper.polled_at_ns.store(now_ns(), Relaxed);
                if sleeper.stop.load(Relaxed) {
                    return;
                }
            }
        }));
    });

    // Also starts the threads that a contender starts lazily.
    runtime.on_a_worker(spawn_and_wait::<C>(Latch::leaked()));
    measure_wakes(cores, budget, sleeper, now_ns, || sleeper.notifier.notify())
}

/// Measures the cost of waking without a runtime: a thread that sleeps on a futex.
pub(crate) fn run_bare_thread(row: &str, budget: Duration) -> Option<Vec<Metric>> {
    if !row.starts_with("wake_") || row == "wake_storm" {
        return None;
    }
    let cores = Cores::of(row);
    let clock = Instant::now();
    let now_ns = move || clock.elapsed().as_nanos() as u64;
    let sleeper: &'static Sleeper = Box::leak(Box::new(Sleeper {
        notifier: Notifier::new(),
        polled_at_ns: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    }));
    let parked = thread::spawn(move || {
        // Relaxed: the flag and the numbers stand alone, as in `wake_idle`.
        while !sleeper.stop.load(Relaxed) {
            thread::park();
            sleeper.polled_at_ns.store(now_ns(), Relaxed);
        }
    });
    let thread = parked.thread().clone();
    let metrics = measure_wakes(cores, budget, sleeper, now_ns, move || thread.unpark());
    parked.join().expect("it only sleeps and notes the time");
    Some(metrics)
}

fn measure_wakes(
    cores: Cores,
    budget: Duration,
    sleeper: &Sleeper,
    now_ns: impl Fn() -> u64,
    wake: impl Fn(),
) -> Vec<Metric> {
    if let Some(core) = cores.waker {
        stay_on(core);
    }

    // At least fifty, so that the 99th percentile is not the largest of a handful.
    let samples = (budget.as_millis() / PAUSE.as_millis()).max(50) as usize;
    // The first ones start threads and touch memory.
    let warm_up = 5;
    let (mut latencies_us, mut cpu) = (Vec::new(), 0);
    for sample in 0..samples + warm_up {
        thread::sleep(PAUSE);
        wait_until_others_sleep();
        let cpu_before = cpu_ns(Of::Process);
        let woken_at_ns = now_ns();
        wake();
        let polled_at_ns = wait_for_the_poll(sleeper, woken_at_ns);
        if sample >= warm_up {
            cpu += cpu_ns(Of::Process) - cpu_before;
            latencies_us.push((polled_at_ns - woken_at_ns) as f64 / 1e3);
        }
    }
    // Relaxed: the flag stands alone, as in `wake_idle`.
    sleeper.stop.store(true, Relaxed);
    wake();

    let cpu = cpu as f64 / samples as f64;
    vec![
        Metric::new("p50", "us", percentile(&mut latencies_us, 50), Some(cpu)),
        Metric::new("p99", "us", percentile(&mut latencies_us, 99), None),
    ]
}

/// Waits for the poll by sleeping, and never spins, because with as many workers as cores a
/// spinning main thread would compete with the worker it has woken.
fn wait_for_the_poll(sleeper: &Sleeper, woken_at_ns: u64) -> u64 {
    // Picked, not measured: a thousand pauses are far below the driver's time-out.
    for _ in 0..1000 {
        thread::sleep(PAUSE);
        // Relaxed: the number stands alone, as in `wake_idle`.
        let polled_at_ns = sleeper.polled_at_ns.load(Relaxed);
        if polled_at_ns >= woken_at_ns {
            return polled_at_ns;
        }
    }
    panic!("the task was woken and not polled: look for a lost wake-up");
}

/// A connection that waits: a notifier, two latches and 32 bytes of its own.
struct Parked {
    notifier: &'static Notifier,
    all_parked: &'static Latch,
    all_done: &'static Latch,
    state: [u64; 4],
    parked: bool,
}

impl Future for Parked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let notified = self.notifier.poll(cx);
        if !self.parked {
            self.parked = true;
            self.all_parked.count_down();
        }
        ready!(notified);
        black_box(&self.state);
        self.all_done.count_down();
        Poll::Ready(())
    }
}

/// The number of spawns after which the spawner yields, as an accept loop does; otherwise a runtime
/// with one worker would first queue the whole million.
const SPAWNS_A_TURN: usize = 64;

fn idle_1m<C: Contender>(runtime: &C, tasks: usize) -> Vec<Metric> {
    let (all_parked, all_done) = (Latch::leaked(), Latch::leaked());
    // Written, and therefore resident, before the first measurement.
    let notifiers: &'static [Notifier] = Vec::leak((0..tasks).map(|_| Notifier::new()).collect());
    runtime.on_a_worker(spawn_and_wait::<C>(Latch::leaked()));
    all_parked.set(tasks);
    all_done.set(tasks);
    let per_task = |total: u64| total as f64 / tasks as f64;

    let bytes = resident_bytes();
    let (start, cpu) = (Instant::now(), cpu_ns(Of::Process));
    runtime.on_a_worker(async move {
        for (number, notifier) in notifiers.iter().enumerate() {
            let state = [number as u64; 4];
            C::detach(C::spawn(Parked { notifier, all_parked, all_done, state, parked: false }));
            if number % SPAWNS_A_TURN == SPAWNS_A_TURN - 1 {
                C::yield_now().await;
            }
        }
        all_parked.wait().await;
    });
    let spawn_ns = per_task(start.elapsed().as_nanos() as u64);
    let spawn_cpu_ns = per_task(cpu_ns(Of::Process) - cpu);
    let bytes = per_task(resident_bytes().saturating_sub(bytes));

    let (start, cpu) = (Instant::now(), cpu_ns(Of::Process));
    notifiers.iter().for_each(Notifier::notify);
    runtime.block_on(all_done.wait());
    let wake_ns = per_task(start.elapsed().as_nanos() as u64);
    let wake_cpu_ns = per_task(cpu_ns(Of::Process) - cpu);

    vec![
        Metric::new("bytes", "B", bytes, None),
        Metric::new("spawn", "ns", spawn_ns, Some(spawn_cpu_ns)),
        Metric::new("wake", "ns", wake_ns, Some(wake_cpu_ns)),
    ]
}

/// The uncertainty of reading the two clocks of `idle_cpu` one after the other. With nothing
/// running, the difference came out at about a microsecond; twice that is still nothing.
const READING_NS: i64 = 2_000;

fn idle_cpu<C: Contender>(runtime: &C, span: Duration) -> Vec<Metric> {
    // A runtime that has worked, not one that was never used.
    runtime.on_a_worker(spawn_and_wait::<C>(Latch::leaked()));
    // Picked, not measured: a contender may finish what it does before it sleeps.
    thread::sleep(Duration::from_millis(100));
    // The main thread's own sleep is not work of the runtime. Signed: see `READING_NS`.
    let others = |reading: fn(Of) -> u64| {
        let main_thread = reading(Of::ThisThread) as i64;
        reading(Of::Process) as i64 - main_thread
    };
    let (cpu, switches) = (others(cpu_ns), others(voluntary_switches));
    thread::sleep(span);
    let (cpu, switches) = (others(cpu_ns) - cpu, others(voluntary_switches) - switches);
    vec![
        Metric::new("cpu", "us", if cpu < READING_NS { 0.0 } else { cpu as f64 / 1e3 }, None),
        Metric::new("switches", "count", switches.max(0) as f64, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{Smol, Tokio, TokioBare};

    /// Checks that every row that has a budget, with the smallest one, ends on its own and gives
    /// plausible figures. A row that the contender `name` lacks, and no other, has none.
    fn every_short_row_ends<C: Contender>(name: &str) {
        // The wake rows inspect all threads of the process, and so those of the other tests.
        let alone = ["wake_idle", "wake_same_core", "wake_cross_core"];
        for row in ROWS.iter().filter(|row| !row.slow && !alone.contains(&row.name)) {
            for workers in [1, 2] {
                let metrics = run::<C>(row.name, workers, Duration::ZERO);
                assert_eq!(metrics.is_none(), row.lacks.contains(&name), "{}", row.name);
                for metric in metrics.unwrap_or_default() {
                    assert!(metric.value > 0.0, "{}: {metric:?}", row.name);
                    assert!(metric.cpu_ns > Some(0.0), "{}: {metric:?}", row.name);
                }
            }
        }
    }

    #[test]
    fn every_short_row_ends_on_tokio() {
        every_short_row_ends::<Tokio>("tokio");
    }

    #[test]
    fn every_short_row_ends_on_tokio_without_drivers() {
        every_short_row_ends::<TokioBare>("tokio-bare");
    }

    #[test]
    fn every_short_row_ends_on_smol() {
        every_short_row_ends::<Smol>("smol");
    }

    #[cfg(feature = "blitz")]
    #[test]
    fn every_short_row_ends_on_blitz() {
        every_short_row_ends::<crate::contender::Blitz>("blitz");
    }

    #[test]
    fn parked_tasks_are_counted_in_bytes_and_all_finish() {
        let metrics = idle_1m(&Tokio::build(2), 20_000);
        assert_eq!(metrics.len(), 3);
        assert!(metrics.iter().all(|metric| metric.value.is_finite()));
    }

    #[test]
    fn a_parked_task_has_64_bytes_of_state() {
        assert_eq!(size_of::<Parked>(), 64);
    }

    #[test]
    fn an_unknown_row_is_refused() {
        assert!(run::<TokioBare>("spawn_few", 1, Duration::ZERO).is_none());
    }

    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&crate::COMPARISON);
    }
}
