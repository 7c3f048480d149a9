//! A clock that ticks beside tasks that do not yield.
//!
//! Two workers, four tasks that compute without an `await`, one that blocks its thread in a sleep,
//! and a task that wants to run every millisecond. With preemption the cores are handed off to
//! other threads, and the clock ticks; the runtime reports which tasks those were. Without, the
//! clock waits for them, as it does on Tokio, where the same code runs last. `bench/preempt`
//! measures it properly.

#![forbid(unsafe_code)]

use std::{
    hint::black_box,
    io,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use blitz_io::runtime::{Preemption, StallReport};

/// How long the hogs run.
const LONG: Duration = Duration::from_secs(1);

/// Returns the longest wait of a task that sleeps for a millisecond at a time, beside hogs, on the
/// runtime with that name and builder. `spawn` names a task, where that is supported.
macro_rules! tick_beside_hogs {
    ($runtime:ident, $builder:expr, $spawn:path) => {{
        use $runtime::{task, time};

        let runtime = $builder.worker_threads(2).enable_time().build()?;
        let late = runtime.block_on(async {
            let mut hogs = vec![$spawn("sleeps", async { thread::sleep(LONG) })?];
            for _ in 0..4 {
                hogs.push($spawn("computes", async { compute() })?);
            }
            let spawned = Instant::now();
            let clock = task::spawn(async move {
                // The first poll may be late already.
                let mut latest = spawned.elapsed();
                while hogs.iter().any(|hog| !hog.is_finished()) {
                    let due = Instant::now() + Duration::from_millis(1);
                    time::sleep(Duration::from_millis(1)).await;
                    latest = latest.max(due.elapsed());
                }
                latest
            });
            clock.await.map_err(io::Error::other)
        })?;
        drop(runtime);
        late
    }};
}

fn main() -> io::Result<()> {
    let (on, stalls) = on_blitz(Preemption::new())?;
    let (off, _) = on_blitz(Preemption::disabled())?;
    let tokio = on_tokio()?;
    println!("the clock was late by, at the most:");
    println!("  with preemption     {on:?}");
    println!("  without             {off:?}");
    println!("  on Tokio            {tokio:?}");
    let mut names: Vec<_> = stalls.iter().filter_map(StallReport::name).collect();
    names.sort_unstable();
    names.dedup();
    for stall in stalls.iter().take(2) {
        println!("reported: {stall}");
    }
    assert_eq!(names, ["computes", "sleeps"], "both kinds are named");
    assert!(on < LONG, "a task has waited for the hogs");
    assert!(off >= LONG / 2, "without preemption no task runs beside them");
    assert!(tokio >= LONG / 2, "nor on Tokio");
    Ok(())
}

/// Measures on blitz-io; also returns the stall reports.
fn on_blitz(preemption: Preemption) -> io::Result<(Duration, Vec<StallReport>)> {
    #[track_caller]
    fn spawn(
        name: &str,
        hog: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<blitz_io::task::JoinHandle<()>> {
        blitz_io::task::Builder::new().name(name).spawn(hog)
    }
    let (sender, receiver) = mpsc::channel();
    let mut builder = blitz_io::runtime::Builder::new_multi_thread();
    builder.preemption(preemption).on_task_stall(move |stall| drop(sender.send(stall.clone())));
    let late = tick_beside_hogs!(blitz_io, builder, spawn);
    Ok((late, receiver.try_iter().collect()))
}

fn on_tokio() -> io::Result<Duration> {
    fn spawn(
        _name: &str,
        hog: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<tokio::task::JoinHandle<()>> {
        Ok(tokio::spawn(hog))
    }
    let late = tick_beside_hogs!(tokio, tokio::runtime::Builder::new_multi_thread(), spawn);
    Ok(late)
}

/// Keeps a processor busy for a while without yielding.
fn compute() {
    let began = Instant::now();
    while began.elapsed() < LONG {
        black_box((0..1_000u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum)));
    }
}
