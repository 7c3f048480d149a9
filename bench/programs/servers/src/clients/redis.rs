//! Redis by the crate `redis`.

use redis::aio::MultiplexedConnection;

use super::{Job, Span, repeat};
use crate::tally::Tally;

/// The number of requests in a pipeline.
const PIPELINE: usize = 100;

/// The number of connections that send pipelines.
const PIPELINE_CONNECTIONS: usize = 8;

const KEY: &str = "key";
const VALUE: &str = "0123456789abcdef";

/// Connects, and sets the key.
async fn connect(port: u16) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).expect("an address");
    let connected = client.get_multiplexed_async_connection().await;
    let mut connection = connected.expect("the database listens");
    let set = redis::cmd("SET").arg(KEY).arg(VALUE).query_async::<()>(&mut connection).await;
    set.expect("the database replies");
    connection
}

/// Measures `count` tasks with a connection each.
pub(super) async fn connections(port: u16, count: usize, span: Span, go: impl FnOnce()) -> Tally {
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(Get(connect(port).await));
    }
    repeat(jobs, 1, span, go).await
}

/// Measures `tasks` tasks that share one connection.
pub(super) async fn multiplexed(port: u16, tasks: usize, span: Span, go: impl FnOnce()) -> Tally {
    let connection = connect(port).await;
    repeat((0..tasks).map(|_| Get(connection.clone())).collect(), 1, span, go).await
}

struct Get(MultiplexedConnection);

impl Job for Get {
    async fn once(&mut self) {
        let value = redis::cmd("GET").arg(KEY).query_async::<String>(&mut self.0).await;
        assert_eq!(value.expect("the database replies"), VALUE, "another value came");
    }
}

/// Measures connections that each send pipelines of many requests.
pub(super) async fn pipelines(port: u16, span: Span, go: impl FnOnce()) -> Tally {
    let mut jobs = Vec::new();
    for _ in 0..PIPELINE_CONNECTIONS {
        jobs.push(Pipeline(connect(port).await));
    }
    repeat(jobs, PIPELINE, span, go).await
}

struct Pipeline(MultiplexedConnection);

impl Job for Pipeline {
    async fn once(&mut self) {
        let mut pipeline = redis::pipe();
        for _ in 0..PIPELINE {
            pipeline.cmd("GET").arg(KEY);
        }
        let values = pipeline.query_async::<Vec<String>>(&mut self.0).await;
        assert_eq!(values.expect("the database replies").len(), PIPELINE, "replies are missing");
    }
}
