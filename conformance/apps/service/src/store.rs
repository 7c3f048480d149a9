//! The notes, in SQLite.

use std::path::Path;

use sqlx::{
    Row,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions},
};

#[derive(Clone)]
pub struct Store(SqlitePool);

impl Store {
    pub async fn open(file: &Path) -> sqlx::Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await?;
        sqlx::query(
            "create table if not exists notes (id integer primary key, text text not null)",
        )
        .execute(&pool)
        .await?;
        Ok(Self(pool))
    }

    /// Adds notes, all or none.
    pub async fn add(&self, texts: &[String]) -> sqlx::Result<Vec<i64>> {
        let mut transaction = self.0.begin().await?;
        let mut ids = Vec::new();
        for text in texts {
            let done = sqlx::query("insert into notes (text) values (?)")
                .bind(text)
                .execute(&mut *transaction)
                .await?;
            ids.push(done.last_insert_rowid());
        }
        transaction.commit().await?;
        Ok(ids)
    }

    pub async fn get(&self, id: i64) -> sqlx::Result<Option<String>> {
        let row = sqlx::query("select text from notes where id = ?")
            .bind(id)
            .fetch_optional(&self.0)
            .await?;
        row.map(|row| row.try_get(0)).transpose()
    }

    pub async fn count(&self) -> sqlx::Result<i64> {
        sqlx::query("select count(*) from notes").fetch_one(&self.0).await?.try_get(0)
    }

    pub async fn close(&self) {
        self.0.close().await;
    }
}
