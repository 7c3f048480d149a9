//! PostgreSQL by sqlx, tokio-postgres and deadpool-postgres.

use deadpool_postgres::{Manager, Pool};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio_postgres::{Client, NoTls, Statement};

use super::{Job, Span, repeat};
use crate::tally::Tally;

/// The number of connections of a pool.
const POOL: usize = 8;

/// The number of tasks that share the pool of deadpool-postgres: twice as many as connections, so
/// that some wait.
const POOL_TASKS: usize = 16;

/// The number of tasks that share one connection, on which their requests are pipelined.
const PIPELINED_TASKS: usize = 4;

/// The query of all rows without a transaction.
const QUERY: &str = "select id, name from small where id = $1";

/// A table of a few rows.
const TABLE: &str = "
    create table if not exists small (id int4 primary key, name text not null, count int8 not null);
    insert into small select n, 'row ' || n, 0 from generate_series(1, 64) as n on conflict do nothing;
";

/// Returns the address of the database, whose user is the one that `initdb` was given.
fn address(port: u16) -> String {
    format!("postgres://bench@127.0.0.1:{port}/postgres")
}

/// Connects, and spawns the task that drives the connection.
async fn connect(port: u16) -> Client {
    let connected = tokio_postgres::connect(&address(port), NoTls).await;
    let (client, connection) = connected.expect("the database listens");
    tokio::spawn(async move { connection.await.expect("the database stays") });
    client
}

async fn make_table(port: u16) {
    connect(port).await.batch_execute(TABLE).await.expect("the table is made");
}

/// Measures `tasks` tasks that share a pool of sqlx.
pub(super) async fn sqlx_pool(port: u16, tasks: usize, span: Span, go: impl FnOnce()) -> Tally {
    make_table(port).await;
    let pool = PgPoolOptions::new().max_connections(POOL as u32).min_connections(POOL as u32);
    let pool = pool.connect(&address(port)).await.expect("the database listens");
    repeat((0..tasks).map(|_| BySqlx(pool.clone())).collect(), 1, span, go).await
}

struct BySqlx(PgPool);

impl Job for BySqlx {
    async fn once(&mut self) {
        let query = sqlx::query_as::<_, (i32, String)>(QUERY).bind(7);
        let row = query.fetch_one(&self.0).await.expect("the database replies");
        assert_eq!(row, (7, "row 7".into()), "another row came");
    }
}

/// Measures tasks that share one connection of tokio-postgres.
pub(super) async fn pipelined(port: u16, span: Span, go: impl FnOnce()) -> Tally {
    make_table(port).await;
    let client = std::sync::Arc::new(connect(port).await);
    let statement = client.prepare(QUERY).await.expect("the query is right");
    let job = |_| Pipelined { client: client.clone(), statement: statement.clone() };
    repeat((0..PIPELINED_TASKS).map(job).collect(), 1, span, go).await
}

struct Pipelined {
    client: std::sync::Arc<Client>,
    statement: Statement,
}

impl Job for Pipelined {
    async fn once(&mut self) {
        let row = self.client.query_one(&self.statement, &[&7]).await;
        let row = row.expect("the database replies");
        assert_eq!(row.get::<_, &str>(1), "row 7", "another row came");
    }
}

/// Measures tasks that share a pool of deadpool-postgres.
pub(super) async fn pooled(port: u16, span: Span, go: impl FnOnce()) -> Tally {
    make_table(port).await;
    let config = address(port).parse().expect("an address");
    let pool = Pool::builder(Manager::new(config, NoTls)).max_size(POOL).build();
    let pool = pool.expect("a pool without time-outs needs no runtime");
    repeat((0..POOL_TASKS).map(|_| Pooled(pool.clone())).collect(), 1, span, go).await
}

struct Pooled(Pool);

impl Job for Pooled {
    async fn once(&mut self) {
        let client = self.0.get().await.expect("the database listens");
        let statement = client.prepare_cached(QUERY).await.expect("the query is right");
        let row = client.query_one(&statement, &[&7]).await.expect("the database replies");
        assert_eq!(row.get::<_, &str>(1), "row 7", "another row came");
    }
}

/// Measures connections of tokio-postgres that each change a row of their own in transactions.
pub(super) async fn transactions(port: u16, span: Span, go: impl FnOnce()) -> Tally {
    make_table(port).await;
    let mut jobs = Vec::new();
    for id in 1..=POOL as i32 {
        let client = connect(port).await;
        let update = "update small set count = count + 1 where id = $1";
        let statement = client.prepare(update).await.expect("the query is right");
        jobs.push(Transaction { client, statement, id });
    }
    repeat(jobs, 1, span, go).await
}

struct Transaction {
    client: Client,
    statement: Statement,
    id: i32,
}

impl Job for Transaction {
    async fn once(&mut self) {
        let transaction = self.client.transaction().await.expect("the database replies");
        let changed = transaction.execute(&self.statement, &[&self.id]).await;
        assert_eq!(changed.expect("the database replies"), 1, "there is no such row");
        transaction.commit().await.expect("the database replies");
    }
}
