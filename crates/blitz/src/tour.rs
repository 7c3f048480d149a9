//! `blitz tour`: real work on the runtime, with the runtime's own counters.
//!
//! Each step says what it will do, does it, and checks what it claims; below it are the workers'
//! counters for that step. A claim that does not hold makes the exit code 1, so the tour is also a
//! quick test of an installation.
//!
//! Counters are read when the workers have become idle, because a worker may keep its counts to
//! itself until it sleeps; afterwards they are exact.

use std::{
    fmt,
    future::poll_fn,
    io::Write,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Preemption, Runtime, RuntimeMetrics, machine},
    task::{self, JoinError, JoinHandle},
};

use crate::{hogs, joins, load, numbers, record};

const SPAWNED: u64 = 100_000;
const YIELDERS: u64 = 64;
const YIELDS: u64 = 1_000;
const ROUNDS: u64 = 100_000;
const PENDING: u64 = 1_000;

/// The number of connections, as in the benchmark's row of the same size.
const CONNECTIONS: usize = 50;
/// The duration of the load: long enough for a 99th percentile, and short enough to wait for.
/// Picked.
const LOADED: Duration = Duration::from_secs(2);

/// The time for which runtime and pool are left idle.
const IDLE: Duration = Duration::from_secs(1);
/// Processor time that an idle second may cost: a hundredth of a core, far above
/// what the one thread that waits here needs, far below what spinning costs.
const IDLE_COST: Duration = Duration::from_millis(10);
/// The time after which workers with unchanged counters are taken to sleep. Picked.
const QUIET: Duration = Duration::from_millis(20);
/// The time after which workers that are still busy though their work has ended are taken to spin.
/// Picked.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run() -> ExitCode {
    let start = Instant::now();
    let mut tour = match Tour::begin() {
        Ok(tour) => tour,
        Err(complaint) => {
            eprintln!("blitz: {complaint}");
            return ExitCode::FAILURE;
        }
    };
    tour.spawn_and_join();
    tour.yield_often();
    tour.ping_pong();
    tour.panic_and_abort();
    tour.shield();
    tour.serve();
    tour.tick_beside_hogs();
    tour.join_a_tree();
    tour.idle();
    tour.end(start)
}

struct Tour {
    runtime: Runtime,
    /// The counters at the end of the last step.
    seen: Counters,
    report: Report,
}

impl Tour {
    /// Runs step 1: starts a runtime.
    fn begin() -> Result<Self, String> {
        let workers = machine::workers().map_err(|error| error.to_string())?;
        let start = Instant::now();
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("the runtime does not start: {error}; try `blitz doctor`"))?;
        let took = start.elapsed();
        let seen = Counters::read(&runtime.metrics());
        let mut tour = Self { runtime, seen, report: Report::default() };
        tour.report.title("a runtime starts", &format!("in {}", numbers::time(took)));
        tour.report.note(&format!("workers {workers}"));
        let started = tour.runtime.metrics().num_workers();
        tour.report.claim(started == workers.count, &format!("{started} workers are there"));
        Ok(tour)
    }

    fn spawn_and_join(&mut self) {
        let start = Instant::now();
        let sum = self.runtime.block_on(async {
            let handles: Vec<_> = (0..SPAWNED).map(|i| task::spawn(async move { i })).collect();
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.unwrap_or(0);
            }
            sum
        });
        let took = start.elapsed();
        self.report.title(
            &format!("{} tasks are spawned and joined", numbers::count(SPAWNED)),
            &format!("{} a task", numbers::time_each(took, SPAWNED)),
        );
        let claim = format!("what they returned adds up to {}", numbers::count(sum));
        self.report.claim(sum == (0..SPAWNED).sum(), &claim);
        let counted = self.counters();
        self.report.claim(counted.total(POLLED) == SPAWNED, "each was polled once");
    }

    /// Measures a clock beside hogs, on runtimes of their own with two workers each.
    fn tick_beside_hogs(&mut self) {
        let measured = hogs::tick_undisturbed(&Preemption::new())
            .and_then(|on| Ok((on, hogs::tick(Preemption::disabled())?.0, hogs::tick_on_tokio()?)));
        let (on, off, tokio) = match measured {
            Ok(all) => all,
            Err(error) => {
                self.report.title("a clock ticks beside hogs", "not measured");
                self.report.claim(false, &format!("a runtime starts ({error})"));
                return;
            }
        };
        let shown = |late: &hogs::Lateness| {
            format!(
                "late by {}, at the most {}",
                numbers::time(late.median),
                numbers::time(late.most)
            )
        };
        self.report.title(
            &format!("a clock ticks beside {} tasks that never wait", hogs::HOGS),
            &shown(&on.clock),
        );
        self.report.note(&format!("without preemption it is {}", shown(&off)));
        self.report.note(&format!("on Tokio it is {}", shown(&tokio)));
        let claim = "no tick waited for one of them to end";
        if on.is_judged() {
            self.report.claim(on.clock.most < hogs::LONG, claim);
        } else {
            self.report.leave_open(claim, on.share);
        }
        let handoffs = on.handoffs;
        self.report.claim(handoffs > 0, &format!("{handoffs} times a worker changed threads"));
        let _ = self.counters();
    }

    fn yield_often(&mut self) {
        let start = Instant::now();
        let ended = self.runtime.block_on(async {
            let yielder = || async {
                for _ in 0..YIELDS {
                    task::yield_now().await;
                }
            };
            let handles: Vec<_> = (0..YIELDERS).map(|_| task::spawn(yielder())).collect();
            let mut ended = 0;
            for handle in handles {
                ended += u64::from(handle.await.is_ok());
            }
            ended
        });
        let took = start.elapsed();
        self.report.title(
            &format!("{YIELDERS} tasks yield {} times each", numbers::count(YIELDS)),
            &format!("{} a yield", numbers::time_each(took, YIELDERS * YIELDS)),
        );
        self.report.claim(ended == YIELDERS, &format!("all {ended} came to their end"));
        let counted = self.counters();
        let polls = YIELDERS * (YIELDS + 1);
        self.report.claim(
            counted.total(POLLED) == polls,
            &format!("a poll per yield and one to end: {}", numbers::count(polls)),
        );
    }

    fn ping_pong(&mut self) {
        let (ping, pong) = (Arc::new(Signal::default()), Arc::new(Signal::default()));
        let start = Instant::now();
        let returned = self.runtime.block_on(async {
            let server = task::spawn({
                let (ping, pong) = (ping.clone(), pong.clone());
                async move {
                    for _ in 0..ROUNDS {
                        ping.receive().await;
                        pong.send();
                    }
                }
            });
            let client = task::spawn(async move {
                for _ in 0..ROUNDS {
                    ping.send();
                    pong.receive().await;
                }
                ROUNDS
            });
            let returned = client.await.unwrap_or(0);
            if server.await.is_ok() { returned } else { 0 }
        });
        let took = start.elapsed();
        self.report.title(
            &format!("two tasks wake each other, {} rounds", numbers::count(ROUNDS)),
            &format!("{} a round", numbers::time_each(took, ROUNDS)),
        );
        let claim = format!("{} pings came back as pongs", numbers::count(returned));
        self.report.claim(returned == ROUNDS, &claim);
        self.counters();
    }

    fn panic_and_abort(&mut self) {
        self.report.title("one task panics, one is aborted", "");
        // The panic is intended, so its report must not appear on the terminal.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let handle: JoinHandle<()> = self.runtime.spawn(async { panic!("on purpose") });
        let panicked = self.runtime.block_on(handle);
        std::panic::set_hook(hook);
        let (holds, text) = join_result(panicked, |error| error.is_panic());
        self.report.claim(holds, &format!("joining the first returned: {text}"));

        let started = Arc::new(Signal::default());
        let dropped_on = Arc::new(Mutex::new(None));
        let aborted = self.runtime.block_on(async {
            let witness = Witness(dropped_on.clone());
            let handle = task::spawn({
                let started = started.clone();
                async move {
                    let _witness = witness;
                    started.send();
                    std::future::pending::<()>().await;
                }
            });
            started.receive().await;
            handle.abort();
            handle.await
        });
        let (holds, text) = join_result(aborted, |error| error.is_cancelled());
        self.report.claim(holds, &format!("joining the second returned: {text}"));
        let dropper = lock(&dropped_on).take();
        let ours = thread::current().id();
        self.report.claim(
            dropper.is_some_and(|dropper| dropper != ours),
            "its future was dropped by a worker, not by the thread that aborted it",
        );
        self.counters();
    }

    fn shield(&mut self) {
        self.report.title("a shielded task is aborted", "");
        let (inside, release) = (Arc::new(Signal::default()), Arc::new(Signal::default()));
        let saved = Arc::new(Mutex::new(false));
        let after = Arc::new(Mutex::new(false));
        let joined = self.runtime.block_on(async {
            let handle = task::spawn({
                let (inside, release) = (inside.clone(), release.clone());
                let (saved, after) = (saved.clone(), after.clone());
                async move {
                    task::shield(async move {
                        inside.send();
                        release.receive().await;
                        *lock(&saved) = true;
                    })
                    .await;
                    // The pending abort takes effect here at the latest.
                    task::yield_now().await;
                    *lock(&after) = true;
                }
            });
            inside.receive().await;
            handle.abort();
            // From here on an unshielded task would not be polled again.
            release.send();
            handle.await
        });
        let saved = *lock(&saved);
        self.report.claim(saved, "what the shield covers ran to its end after the abort");
        let (holds, text) = join_result(joined, |error| error.is_cancelled());
        let stopped = !*lock(&after);
        self.report
            .claim(holds && stopped, &format!("what follows it did not; joining returned: {text}"));
        self.counters();
    }

    fn serve(&mut self) {
        let metrics = self.runtime.metrics();
        let before = Driver::read(&metrics);
        let loaded = self.runtime.block_on(load::run(CONNECTIONS, LOADED));
        let counted = Driver::read(&metrics).since(before);
        let what = format!("a TCP server gets requests over {CONNECTIONS} connections");
        let load = match loaded {
            Ok(load) => load,
            Err(error) => {
                self.report.title(&what, "");
                self.report.claim(false, &format!("sockets work here: {error}"));
                return;
            }
        };
        let rate = load.requests() as f64 / load.took.as_secs_f64();
        self.report.title(&what, &format!("{} requests a second", numbers::count(rate as u64)));
        self.report.note(&format!(
            "a request took {} at the median, {} at the 99th percentile; client and server share the workers",
            numbers::time(load.percentile(50)),
            numbers::time(load.percentile(99)),
        ));
        let each = |count: u64| count as f64 / load.requests().max(1) as f64;
        self.report.note(&format!(
            "system calls a request, on both sides: {:.2} that moved bytes, {:.2} that waited for events and returned {:.2}",
            each(load.moves),
            each(counted.turns),
            each(counted.events),
        ));
        let claim = format!("{} replies were correct", numbers::count(load.requests()));
        self.report.claim(load.requests() > 0 && load.wrong == 0, &claim);
        // The listener, and both ends of each connection.
        let sockets = 1 + 2 * CONNECTIONS as u64;
        self.report.claim(
            (counted.opened, counted.closed) == (sockets, sockets),
            &format!("{} sockets were watched, and none still is", counted.opened),
        );
        self.counters();
    }

    /// Measures joins. Fork-join has threads of its own, so the workers of the runtime count
    /// nothing here.
    fn join_a_tree(&mut self) {
        let count = joins::count();
        let what = format!("a tree of {} joins is summed up", numbers::count(count));
        let joins = match joins::run(PATIENCE) {
            Ok(joins) => joins,
            Err(complaint) => {
                self.report.title(&what, "");
                self.report.claim(false, &format!("a pool starts here: {complaint}"));
                return;
            }
        };
        let joined = numbers::time_each(joins.joined, count);
        self.report.title(&what, &format!("{joined} a join"));
        self.report.note(&format!(
            "fibonacci({}) without a cut-off, threads {}; by plain calls, one after the other: {} each",
            joins::N,
            joins.threads,
            numbers::time_each(joins.called, count),
        ));
        self.report.note(&recorded(joins.threads));
        let (result, expected) = joins.results;
        let claim = format!("the sum is {}, as by plain calls", numbers::count(result));
        self.report.claim(result == expected, &claim);
        if let Some(shared) = joins.shared {
            let claim = "a half that is not come back to is taken by another thread";
            self.report.claim(shared, claim);
        }
    }

    fn idle(&mut self) {
        let asleep = self.wait_for_quiet().is_some();
        self.seen = Counters::read(&self.runtime.metrics());
        let cost_before = machine::processor_time();
        thread::sleep(IDLE);
        let cost = machine::processor_time().zip(cost_before).map(|(now, then)| now - then);
        self.report.title(
            "runtime and pool are left alone for a second",
            &cost
                .map_or(String::new(), |cost| format!("{} of processor time", numbers::time(cost))),
        );
        self.report.claim(asleep, "the workers had gone to sleep");
        if let Some(cost) = cost {
            let claim =
                format!("less than {} of processor time was used", numbers::time(IDLE_COST));
            self.report.claim(cost < IDLE_COST, &claim);
        }
        let counted = self.counters();
        let still = counted.total(PARKED) == 0 && counted.total(POLLED) == 0;
        self.report.claim(still, "no worker woke up: no poll, no park");
    }

    /// Runs the last step: the runtime ends while tasks run that would never end.
    fn end(self, start: Instant) -> ExitCode {
        let dropped = Arc::new(Mutex::new(0));
        for _ in 0..PENDING {
            let guard = Counted(dropped.clone());
            self.runtime.spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
        }
        let Self { runtime, mut report, .. } = self;
        let stop = Instant::now();
        drop(runtime);
        let took = stop.elapsed();
        report.title("the runtime shuts down", &format!("in {}", numbers::time(took)));
        let dropped = *lock(&dropped);
        let claim = format!("{} pending tasks were dropped, each once", numbers::count(dropped));
        report.claim(dropped == PENDING, &claim);
        report.close(start.elapsed())
    }

    /// Prints what the workers counted since the last step.
    fn counters(&mut self) -> Counters {
        let Some(now) = self.wait_for_quiet() else {
            let claim = format!("the workers go to sleep within {}", numbers::time(PATIENCE));
            self.report.claim(false, &claim);
            return Counters(Vec::new());
        };
        let counted = now.since(&self.seen);
        self.seen = now;
        self.report.table(&counted);
        counted
    }

    /// Waits until the counters no longer change; `None` if they always do.
    fn wait_for_quiet(&self) -> Option<Counters> {
        let metrics = self.runtime.metrics();
        let start = Instant::now();
        let (mut last, mut since) = (Counters::read(&metrics), Instant::now());
        while since.elapsed() < QUIET {
            if start.elapsed() > PATIENCE {
                return None;
            }
            thread::sleep(QUIET / 20);
            let now = Counters::read(&metrics);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Some(last)
    }
}

/// Formats a join result, and returns whether it is the one that the step expects.
fn join_result<T>(
    joined: Result<T, JoinError>,
    expected: fn(&JoinError) -> bool,
) -> (bool, String) {
    match joined {
        Ok(_) => (false, "no error".to_owned()),
        Err(error) => (expected(&error), error.to_string()),
    }
}

/// Returns Rayon's recorded time for the same tree.
fn recorded(threads: usize) -> String {
    let Some(it) = record::newest(threads) else {
        return "what Rayon takes for it is not recorded yet: see bench/fork".to_owned();
    };
    let [rayon, blitz, plain] = [it.rayon, it.blitz, it.sequential].map(numbers::time_ns);
    let here = if cfg!(debug_assertions) { "; this build is not optimised" } else { "" };
    format!(
        "not measured now but recorded on {} ({}, threads {}): Rayon {rayon}, blitz-io {blitz}, plain calls {plain}{here}",
        it.day, it.processor, it.threads
    )
}

/// Counts signals sent, and wakes the one task that waits for the next.
///
/// The smallest type with a waker, so that all wake-ups that the tour shows are the runtime's own
/// work.
#[derive(Default)]
struct Signal(Mutex<(u64, Option<Waker>)>);

impl Signal {
    fn send(&self) {
        let waiting = {
            let mut state = lock(&self.0);
            state.0 += 1;
            state.1.take()
        };
        // Called outside of the lock, because the task may run on another worker at once.
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    async fn receive(&self) {
        poll_fn(|context| {
            let mut state = lock(&self.0);
            if state.0 > 0 {
                state.0 -= 1;
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A value that records the thread that drops it.
struct Witness(Arc<Mutex<Option<thread::ThreadId>>>);

impl Drop for Witness {
    fn drop(&mut self) {
        *lock(&self.0) = Some(thread::current().id());
    }
}

/// A value that counts its drops.
struct Counted(Arc<Mutex<u64>>);

impl Drop for Counted {
    fn drop(&mut self) {
        *lock(&self.0) += 1;
    }
}

/// Locks a mutex; poisoning is ignored, because a panic elsewhere leaves no value of ours
/// half-written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The counters of the I/O driver.
#[derive(Debug, Clone, Copy)]
struct Driver {
    opened: u64,
    closed: u64,
    events: u64,
    turns: u64,
}

impl Driver {
    fn read(metrics: &RuntimeMetrics) -> Self {
        Self {
            opened: metrics.io_driver_fd_registered_count(),
            closed: metrics.io_driver_fd_deregistered_count(),
            events: metrics.io_driver_ready_count(),
            turns: metrics.io_driver_turn_count(),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            opened: self.opened - before.opened,
            closed: self.closed - before.closed,
            events: self.events - before.events,
            turns: self.turns - before.turns,
        }
    }
}

/// A function that reads one counter of a worker, in the order of the table.
type Reader = fn(&RuntimeMetrics, usize) -> u64;
const COLUMNS: [(&str, Reader); 9] = [
    ("polled", RuntimeMetrics::worker_poll_count),
    ("pushed", RuntimeMetrics::worker_push_count),
    ("popped", RuntimeMetrics::worker_pop_count),
    ("LIFO hits", RuntimeMetrics::worker_lifo_hit_count),
    ("stolen", RuntimeMetrics::worker_steal_count),
    ("batches", RuntimeMetrics::worker_batch_fetch_count),
    ("overflows", RuntimeMetrics::worker_overflow_count),
    ("wake-ups", RuntimeMetrics::worker_wakeup_count),
    ("parked", RuntimeMetrics::worker_park_count),
];
const POLLED: usize = 0;
const PARKED: usize = COLUMNS.len() - 1;

/// The largest number of workers that get a row each; more are shown as one row of sums.
const ROWS: usize = 4;

/// A row of counts per worker.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counters(Vec<[u64; COLUMNS.len()]>);

impl Counters {
    fn read(metrics: &RuntimeMetrics) -> Self {
        let row = |worker| COLUMNS.map(|(_, read)| read(metrics, worker));
        Self((0..metrics.num_workers()).map(row).collect())
    }

    fn since(&self, before: &Self) -> Self {
        let rows = self.0.iter().zip(&before.0);
        let less = |(now, then): (&[u64; _], &[u64; _])| {
            std::array::from_fn(|column| now[column].wrapping_sub(then[column]))
        };
        Self(rows.map(less).collect())
    }

    fn total(&self, column: usize) -> u64 {
        self.0.iter().map(|row| row[column]).sum()
    }

    /// Returns the rows to show, each with its name.
    fn rows(&self) -> Vec<(String, [u64; COLUMNS.len()])> {
        if self.0.len() > ROWS {
            let sums = std::array::from_fn(|column| self.total(column));
            return vec![(format!("{} workers", self.0.len()), sums)];
        }
        let named = |(i, row): (usize, &[u64; _])| (format!("worker {i}"), *row);
        self.0.iter().enumerate().map(named).collect()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "     {:<12}", "counted")?;
        for (name, _) in COLUMNS {
            write!(f, "{name:>10}")?;
        }
        for (name, row) in self.rows() {
            write!(f, "\n     {name:<12}")?;
            for number in row {
                // A dot, because a page full of zeros hides what did happen.
                let text = if number == 0 { "·".to_owned() } else { numbers::count(number) };
                write!(f, "{text:>10}")?;
            }
        }
        Ok(())
    }
}

/// The output as the tour proceeds, and the number of claims that held.
#[derive(Debug, Default)]
struct Report {
    step: u32,
    claims: u32,
    broken: u32,
    /// The number of claims that could not be judged, because other programs had the processors.
    open: u32,
}

impl Report {
    fn title(&mut self, what: &str, figure: &str) {
        self.step += 1;
        let title = format!("\n{:>2}.  {what:<50} {figure}", self.step);
        self.line(format_args!("{}", title.trim_end()));
    }

    fn note(&self, text: &str) {
        self.line(format_args!("     {text}"));
    }

    fn claim(&mut self, holds: bool, text: &str) {
        self.claims += 1;
        self.broken += u32::from(!holds);
        let verdict = if holds { "ok " } else { "NOT SO:" };
        self.line(format_args!("     {verdict} {text}"));
    }

    /// Prints a claim that cannot be judged, because other programs left only this part of the
    /// processors' time.
    fn leave_open(&mut self, text: &str, share: f64) {
        self.open += 1;
        let percent = share * 100.0;
        self.line(format_args!(
            "     not judged: {text} (other programs left it {percent:.0} % of the processors)"
        ));
    }

    fn table(&self, counted: &Counters) {
        self.line(format_args!("{counted}"));
    }

    fn close(&self, took: Duration) -> ExitCode {
        let (claims, took) = (self.claims, numbers::time(took));
        if self.broken == 0 {
            match self.open {
                0 => self.line(format_args!("\nAll {claims} claims held, in {took}.")),
                open => self.line(format_args!(
                    "\nAll {claims} claims held, and {open} could not be judged, in {took}."
                )),
            }
            return ExitCode::SUCCESS;
        }
        self.line(format_args!(
            "\n{} of {claims} claims did not hold, in {took}: please report this page with that of `blitz doctor`.",
            self.broken
        ));
        ExitCode::FAILURE
    }

    fn line(&self, line: fmt::Arguments<'_>) {
        // A closed pipe does not stop the checks.
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Counters, PARKED, POLLED, ROWS, Report};

    #[test]
    fn the_columns_that_are_claimed_about_are_where_the_names_say() {
        assert_eq!(COLUMNS[POLLED].0, "polled");
        assert_eq!(COLUMNS[PARKED].0, "parked");
    }

    #[test]
    fn few_workers_get_a_row_each_and_many_share_one() {
        let few = Counters(vec![[1; COLUMNS.len()]; ROWS]);
        assert_eq!(few.rows().len(), ROWS);
        let many = Counters(vec![[1_000; COLUMNS.len()]; ROWS + 1]);
        let rows = many.rows();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0], ("5 workers".to_owned(), [5_000; COLUMNS.len()]));
        assert!(many.to_string().ends_with("     5,000     5,000"));
    }

    #[test]
    fn a_step_counts_the_difference() {
        let before = Counters(vec![[2; COLUMNS.len()], [7; COLUMNS.len()]]);
        let after = Counters(vec![[5; COLUMNS.len()], [7; COLUMNS.len()]]);
        assert_eq!(after.since(&before).total(POLLED), 3);
    }

    #[test]
    fn one_broken_claim_is_a_failure() {
        let mut report = Report::default();
        report.claim(true, "this holds");
        let code = |report: &Report| format!("{:?}", report.close(std::time::Duration::ZERO));
        assert_eq!(code(&report), format!("{:?}", std::process::ExitCode::SUCCESS));
        report.claim(false, "this does not, and the test wants it so");
        assert_eq!(code(&report), format!("{:?}", std::process::ExitCode::FAILURE));
    }
}
