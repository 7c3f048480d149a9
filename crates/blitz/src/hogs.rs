//! Measures how late a clock ticks beside tasks that compute for long, here and on Tokio.

use std::{
    hint::black_box,
    io, thread,
    time::{Duration, Instant},
};

use blitz_io::runtime::{Builder, Preemption, machine};

/// The number of tasks that compute, on two workers.
pub(crate) const HOGS: usize = 8;
const WORKERS: usize = 2;
/// The time that each computes without a break.
pub(crate) const LONG: Duration = Duration::from_millis(100);
/// The interval of the clock, and below for how long it ticks. Picked: long enough for each hog to
/// have several turns.
const TICK: Duration = Duration::from_millis(1);
const ALL: Duration = Duration::from_secs(1);

/// How late the clock was.
pub(crate) struct Lateness {
    pub(crate) median: Duration,
    pub(crate) most: Duration,
}

impl Lateness {
    fn of(mut late: Vec<Duration>) -> Self {
        late.sort_unstable();
        let median = late.get(late.len() / 2).copied().unwrap_or_default();
        Self { median, most: late.last().copied().unwrap_or_default() }
    }
}

/// The lateness of a clock beside hogs with preemption, and the processor time that this program
/// had meanwhile.
pub(crate) struct Undisturbed {
    pub(crate) clock: Lateness,
    /// The number of times a core was handed off to another thread.
    pub(crate) handoffs: u64,
    /// The program's share of the processor time, of as many processors as there are workers. The
    /// hogs take all that they can get, so the rest went to other programs.
    pub(crate) share: f64,
}

/// A smaller share means that other programs kept the processors. Picked: two workers beside one
/// other busy program on two processors have more.
const ENOUGH: f64 = 0.75;

impl Undisturbed {
    /// Returns true if the clock can be judged: it was in time, or late though the processors were
    /// available.
    pub(crate) fn is_judged(&self) -> bool {
        self.clock.most < LONG || self.share >= ENOUGH
    }
}

/// The number of measurements. Other programs that need the processors for a tenth of a second make
/// the clock late, whatever the runtime does about hogs.
const TRIES: usize = 8;

/// Measures with preemption, and again if a tick was as late as a hog is long; returns the best
/// attempt.
pub(crate) fn tick_undisturbed(preemption: &Preemption) -> io::Result<Undisturbed> {
    let mut best = tick_and_share(preemption)?;
    for _ in 1..TRIES {
        if best.clock.most < LONG {
            break;
        }
        let next = tick_and_share(preemption)?;
        if next.clock.most < best.clock.most {
            best = next;
        }
    }
    Ok(best)
}

fn tick_and_share(preemption: &Preemption) -> io::Result<Undisturbed> {
    let (start, before) = (Instant::now(), machine::processor_time());
    let (clock, handoffs) = tick(preemption.clone())?;
    let used = machine::processor_time().zip(before).map(|(now, then)| now - then);
    let processors = thread::available_parallelism().map_or(1, usize::from).min(WORKERS);
    let had = start.elapsed().as_secs_f64() * processors as f64;
    // Where the system does not report processor time, the clock is judged.
    let share = used.map_or(1.0, |used| used.as_secs_f64() / had);
    Ok(Undisturbed { clock, handoffs, share })
}

/// Measures the clock beside hogs on a runtime of two workers.
pub(crate) fn tick(preemption: Preemption) -> io::Result<(Lateness, u64)> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .preemption(preemption)
        // The stalls are intended, so they are not reported.
        .on_task_stall(|_| ())
        .enable_time()
        .build()?;
    let end = Instant::now() + ALL;
    let hog = || hog(end, blitz_io::task::yield_now);
    let hogs: Vec<_> = (0..HOGS).map(|_| runtime.spawn(hog())).collect();
    let clock = clock(end, |due| blitz_io::time::sleep_until(due.into()));
    let late = runtime.block_on(runtime.spawn(clock)).map_err(io::Error::other)?;
    for hog in hogs {
        runtime.block_on(hog).map_err(io::Error::other)?;
    }
    Ok((Lateness::of(late), runtime.metrics().preemption_handoff_count()))
}

/// Measures the clock beside hogs on a Tokio runtime of two workers.
pub(crate) fn tick_on_tokio() -> io::Result<Lateness> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(WORKERS).enable_time().build()?;
    let end = Instant::now() + ALL;
    let hog = || hog(end, tokio::task::yield_now);
    let hogs: Vec<_> = (0..HOGS).map(|_| runtime.spawn(hog())).collect();
    let clock = clock(end, |due| tokio::time::sleep_until(due.into()));
    let late = runtime.block_on(runtime.spawn(clock)).map_err(io::Error::other)?;
    for hog in hogs {
        runtime.block_on(hog).map_err(io::Error::other)?;
    }
    Ok(Lateness::of(late))
}

/// Ticks on a fixed schedule and returns how late each tick was. Every deadline counts, also those
/// that pass while it is late.
async fn clock<S: Future>(end: Instant, sleep_until: impl Fn(Instant) -> S) -> Vec<Duration> {
    let mut late = Vec::new();
    let mut due = Instant::now() + TICK;
    while due < end {
        sleep_until(due).await;
        let now = Instant::now();
        while due <= now && due < end {
            late.push(now - due);
            due += TICK;
        }
    }
    late
}

async fn hog<Y: Future>(end: Instant, yield_now: impl Fn() -> Y) {
    while Instant::now() < end {
        let began = Instant::now();
        while began.elapsed() < LONG {
            black_box((0..1_000u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum)));
        }
        yield_now().await;
    }
}
