//! A clock beside tasks that compute for long: how late it ticks, here and on Tokio.

use std::{
    hint::black_box,
    io,
    time::{Duration, Instant},
};

use blitz_io::runtime::{Builder, Preemption};

/// Tasks that compute, on two workers.
pub(crate) const HOGS: usize = 8;
/// For how long at a time.
pub(crate) const LONG: Duration = Duration::from_millis(100);
/// How often the clock ticks, and for how long in all. Picked: long enough for each hog to have
/// several turns.
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

/// How often it is measured. Others who need the processors for a tenth of a second make the clock
/// late, whatever is done about hogs.
const TRIES: usize = 8;

/// The same, once more if a tick was as late as a hog is long; and how often a worker went on with
/// another thread.
pub(crate) fn tick_undisturbed(preemption: &Preemption) -> io::Result<(Lateness, u64)> {
    let mut best = tick(preemption.clone())?;
    for _ in 1..TRIES {
        if best.0.most < LONG {
            break;
        }
        let next = tick(preemption.clone())?;
        if next.0.most < best.0.most {
            best = next;
        }
    }
    Ok(best)
}

/// Ticks beside hogs on a runtime of two workers.
pub(crate) fn tick(preemption: Preemption) -> io::Result<(Lateness, u64)> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(preemption)
        // Nobody is to read of what is done here on purpose.
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

/// The same on Tokio.
pub(crate) fn tick_on_tokio() -> io::Result<Lateness> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_time().build()?;
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

/// Every deadline of a fixed schedule counts, also those that pass while it is late.
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
