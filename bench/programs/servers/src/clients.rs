//! Database clients: tasks that make the next request when the reply to the last has arrived.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::tally::Tally;
use crate::{RUNTIME, say};

mod postgres;
mod redis;

/// The time that a load runs.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// The time at the beginning that is not counted.
    pub(crate) warm: Duration,
    pub(crate) counted: Duration,
}

/// The work of one task.
pub(crate) trait Job: Send + 'static {
    /// Makes one request, or one batch of requests, and waits for the reply.
    fn once(&mut self) -> impl Future<Output = ()> + Send;
}

/// Runs a client on the database at the port; prints `go` when it begins to count, then its tally,
/// and waits until it is killed, so that the driver can read its memory.
pub(crate) async fn run(name: &str, port: u16, span: Span) -> Result<(), String> {
    let go = || say(&format!("go {RUNTIME}")).expect("the driver reads");
    let tally = match name {
        "sqlx_8" => postgres::sqlx_pool(port, 8, span, go).await,
        "sqlx_16" => postgres::sqlx_pool(port, 16, span, go).await,
        "pg_pipelined" => postgres::pipelined(port, span, go).await,
        "pg_pool" => postgres::pooled(port, span, go).await,
        "pg_transactions" => postgres::transactions(port, span, go).await,
        "redis_50" => redis::connections(port, 50, span, go).await,
        "redis_multiplexed" => redis::multiplexed(port, 64, span, go).await,
        "redis_pipelines" => redis::pipelines(port, span, go).await,
        _ => return Err(format!("no client is {name}")),
    };
    say(&tally.line())?;
    std::future::pending().await
}

/// Repeats each job on a task of its own, for the span, and calls `go` when the warm-up is over.
/// Counts the calls that began and ended after that; each is of `batch` requests.
pub(crate) async fn repeat<J: Job>(
    jobs: Vec<J>,
    batch: usize,
    span: Span,
    go: impl FnOnce(),
) -> Tally {
    let begin = Instant::now() + span.warm;
    let end = begin + span.counted;
    let started = jobs.into_iter().map(|job| tokio::spawn(repeat_one(job, begin, end)));
    let started: Vec<_> = started.collect();
    tokio::time::sleep_until(begin.into()).await;
    go();
    let mut latencies = Vec::new();
    for task in started {
        latencies.extend(task.await.expect("no job panics"));
    }
    Tally::of(latencies, batch, span.counted.as_micros() as f64)
}

/// Returns the latencies, in nanoseconds.
async fn repeat_one<J: Job>(mut job: J, begin: Instant, end: Instant) -> Vec<u32> {
    let mut latencies = Vec::new();
    let mut sent = Instant::now();
    while sent < end {
        job.once().await;
        let replied = Instant::now();
        if sent >= begin && replied <= end {
            let took = replied.duration_since(sent).as_nanos();
            latencies.push(u32::try_from(took).unwrap_or(u32::MAX));
        }
        sent = replied;
    }
    latencies
}
