//! Runs a plan.

mod burden;
mod channels;
mod fork;
mod locks;
mod runtimes;
mod system;
mod tasks;
mod wakers;

use std::{
    hint::black_box,
    pin::Pin,
    thread,
    time::{Duration, Instant},
};

use blitz_io::{task, time};

use crate::{
    ledger::Kind,
    plan::{Micros, Step, Steps},
    world::StepContext,
};

pub(crate) use self::runtimes::run_here;

/// Returns a duration of `count` microseconds.
fn micros(count: Micros) -> Duration {
    Duration::from_micros(u64::from(count))
}

/// Runs steps one after the other.
fn run(cx: StepContext, steps: Steps) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let token = cx.token(Kind::Steps);
    Box::pin(async move {
        token.ran();
        for at in 0..steps.len() {
            step(&cx, &steps[at]).await;
        }
        drop(token);
    })
}

async fn step(cx: &StepContext, step: &Step) {
    match step {
        Step::Yield(times) => {
            for _ in 0..*times {
                task::yield_now().await;
            }
        }
        Step::Sleep(time) => time::sleep(micros(*time)).await,
        Step::Hog(time) => compute(micros(*time)),
        Step::Block(time) => thread::sleep(micros(*time)),
        Step::InPlace(time) => task::block_in_place(|| thread::sleep(micros(*time))),
        Step::InPlaceWait(steps) => {
            let work = run(cx.clone(), steps.clone());
            task::block_in_place(|| blitz_io::runtime::Handle::current().block_on(work));
        }
        Step::Timeout(limit, steps) => {
            let work = run(cx.clone(), steps.clone());
            // Both outcomes are fine.
            let _ = time::timeout(micros(*limit), work).await;
        }
        Step::Race(left, right) => {
            let (left, right) = (run(cx.clone(), left.clone()), run(cx.clone(), right.clone()));
            blitz_io::select! {
                () = left => {}
                () = right => {}
            }
        }
        Step::Both(left, right) => {
            let (left, right) = (run(cx.clone(), left.clone()), run(cx.clone(), right.clone()));
            blitz_io::join!(left, right);
        }
        Step::Forever => std::future::pending().await,
        Step::Receive { .. }
        | Step::Spawn(_)
        | Step::Set { .. }
        | Step::Job { .. }
        | Step::JobWait(_)
        | Step::Panic(_)
        | Step::LocalSet(_)
        | Step::Fiber { .. } => tasks::step(cx, step).await,
        Step::Runtime(plan) => runtimes::step(cx, plan).await,
        Step::Fork { .. } | Step::ForkPool { .. } => fork::step(cx, step).await,
        Step::Mpsc(_)
        | Step::Mpmc(..)
        | Step::Oneshot { .. }
        | Step::Broadcast { .. }
        | Step::Watch { .. } => channels::step(cx, step).await,
        Step::Mutex { .. } | Step::RwLock { .. } | Step::Semaphore { .. } | Step::Notify { .. } => {
            locks::step(cx, step).await
        }
        Step::Tcp { .. }
        | Step::Udp { .. }
        | Step::Unix { .. }
        | Step::File { .. }
        | Step::Child(_)
        | Step::Signal => system::step(cx, step).await,
        Step::PanicWaker(wakes) => wakers::step(cx, *wakes).await,
    }
    cx.world.count(name(step));
}

/// Computes for a given wall-clock time.
fn compute(time: Duration) {
    let start = Instant::now();
    let mut number = 1u64;
    while start.elapsed() < time {
        for _ in 0..1000 {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// Returns the name of a step in the statistics.
fn name(step: &Step) -> &'static str {
    match step {
        Step::Yield(_) => "yields",
        Step::Sleep(_) => "sleeps",
        Step::Hog(_) => "hogs",
        Step::Block(_) => "blocked polls",
        Step::InPlace(_) | Step::InPlaceWait(_) => "blocks in place",
        Step::Receive { .. } => "blocking receives",
        Step::Spawn(_) => "tasks",
        Step::Set { .. } => "sets",
        Step::Job { .. } | Step::JobWait(_) => "jobs",
        Step::Fork { .. } | Step::ForkPool { .. } => "forks",
        Step::Timeout(..) | Step::Race(..) => "cancellations",
        Step::Both(..) => "joins",
        Step::Mpsc(_)
        | Step::Mpmc(..)
        | Step::Oneshot { .. }
        | Step::Broadcast { .. }
        | Step::Watch { .. } => "channels",
        Step::Mutex { .. } | Step::RwLock { .. } | Step::Semaphore { .. } | Step::Notify { .. } => {
            "locks"
        }
        Step::Tcp { .. } | Step::Udp { .. } | Step::Unix { .. } => "sockets",
        Step::File { .. } => "files",
        Step::Child(_) => "children",
        Step::Signal => "signals",
        Step::Panic(_) => "panics",
        Step::PanicWaker(_) => "panicking wakers",
        Step::Runtime(_) => "runtimes",
        Step::LocalSet(_) => "local sets",
        Step::Fiber { .. } => "fibers",
        Step::Forever => "endless",
    }
}
