//! The rows, and what each starts.

use harness::Row;

/// A program that is not part of this repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Wrk,
    Postgres,
    Redis,
}

/// A measured program, and the load that is put on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A server of `servers/src`, under wrk.
    Http { server: &'static str, path: &'static str, connections: usize },
    /// The proxy, under wrk; its backend is the hyper server of stock Tokio.
    Proxy { connections: usize },
    /// The echo server, under the client of `bench/net`.
    Echo { connections: usize, one_core: bool },
    /// The tonic server, under its client on stock Tokio.
    Rpc { connections: usize, tasks: usize },
    /// The published dufs, under wrk.
    Files { path: &'static str, connections: usize },
    /// A client of a database, which measures itself.
    Client { name: &'static str, database: Tool },
}

impl Work {
    /// Returns the program that it needs, besides what is built here.
    pub(crate) fn needs(self) -> Option<Tool> {
        match self {
            Work::Http { .. } | Work::Proxy { .. } | Work::Files { .. } => Some(Tool::Wrk),
            Work::Echo { .. } | Work::Rpc { .. } => None,
            Work::Client { database, .. } => Some(database),
        }
    }
}

pub(crate) const ROWS: [Row; 26] = [
    Row::new("hyper_50", "a greeting by hyper's http1::Builder, 50 connections of wrk"),
    Row::new("hyper_500", "the same with 500 connections"),
    Row::new("axum_50", "a greeting by axum, 50 connections of wrk"),
    Row::new("axum_500", "the same with 500 connections"),
    Row::new("axum_blocking_50", "axum; the handler hashes for 50 us in spawn_blocking; 50 of wrk"),
    Row::new("axum_blocking_500", "the same with 500 connections"),
    Row::new("axum_sleep_50", "axum; the handler sleeps for 5 ms; 50 of wrk"),
    Row::new("axum_sleep_500", "the same with 500 connections"),
    Row::new(
        "proxy_50",
        "axum with hyper-util's client in front of a hyper server on stock Tokio, 50 of wrk",
    ),
    Row::new("proxy_500", "the same with 500 connections"),
    Row::new("echo_50", "64 bytes to a TCP echo and back, 50 connections of one epoll client"),
    Row::new("echo_500", "the same with 500 connections"),
    Row::new("echo_50_one_core", "50 connections; the server has one core, the client another"),
    Row::new("echo_500_one_core", "the same with 500 connections"),
    Row::new("tonic_50", "a unary call of tonic's health service, 50 connections of one task each"),
    Row::new("tonic_shared", "a unary call, 64 tasks of the client share one connection"),
    Row::new("sqlx_8", "sqlx: a row from PostgreSQL, 8 tasks share a pool of 8 connections"),
    Row::new("sqlx_16", "the same with 16 tasks"),
    Row::new("pg_pipelined", "tokio-postgres: a row, 4 tasks pipelined on one connection"),
    Row::new("pg_pool", "deadpool-postgres: a row, 16 tasks share a pool of 8 connections"),
    Row::new(
        "pg_transactions",
        "tokio-postgres: begin, update, commit, on 8 connections of one task each",
    ),
    Row::new("redis_50", "redis: a GET, 50 connections of one task each"),
    Row::new("redis_multiplexed", "redis: a GET, 64 tasks share one connection"),
    Row::new(
        "redis_pipelines",
        "redis: a GET of a pipeline of 100, on 8 connections; latencies are of pipelines",
    ),
    Row::new("dufs_small", "a file of 1 KiB from the published dufs, 50 connections of wrk"),
    Row::new("dufs_large", "a file of 10 MB from dufs, 8 connections of wrk"),
];

/// Returns what a row starts.
pub(crate) fn work(row: &Row) -> Work {
    let http = |server, path, connections| Work::Http { server, path, connections };
    let client = |database| Work::Client { name: row.name, database };
    match row.name {
        "hyper_50" => http("hyper", "/", 50),
        "hyper_500" => http("hyper", "/", 500),
        "axum_50" => http("axum", "/", 50),
        "axum_500" => http("axum", "/", 500),
        "axum_blocking_50" => http("axum", "/blocking", 50),
        "axum_blocking_500" => http("axum", "/blocking", 500),
        "axum_sleep_50" => http("axum", "/sleep", 50),
        "axum_sleep_500" => http("axum", "/sleep", 500),
        "proxy_50" => Work::Proxy { connections: 50 },
        "proxy_500" => Work::Proxy { connections: 500 },
        "echo_50" => Work::Echo { connections: 50, one_core: false },
        "echo_500" => Work::Echo { connections: 500, one_core: false },
        "echo_50_one_core" => Work::Echo { connections: 50, one_core: true },
        "echo_500_one_core" => Work::Echo { connections: 500, one_core: true },
        "tonic_50" => Work::Rpc { connections: 50, tasks: 1 },
        "tonic_shared" => Work::Rpc { connections: 1, tasks: 64 },
        "sqlx_8" | "sqlx_16" | "pg_pipelined" | "pg_pool" | "pg_transactions" => {
            client(Tool::Postgres)
        }
        "redis_50" | "redis_multiplexed" | "redis_pipelines" => client(Tool::Redis),
        "dufs_small" => Work::Files { path: "/small", connections: 50 },
        "dufs_large" => Work::Files { path: "/large", connections: 8 },
        other => panic!("{other} has no work: add it to `work`"),
    }
}
