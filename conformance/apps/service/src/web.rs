//! The HTTP side.

use std::{
    convert::Infallible,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
    routing::{get, post},
};
use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::{
    fs::OpenOptions,
    io::AsyncWriteExt,
    sync::{broadcast, mpsc, watch},
    time,
};
use tokio_stream::wrappers::BroadcastStream;

use crate::{rpc::Note, store::Store};

#[derive(Clone)]
pub struct Web {
    pub store: Store,
    pub added: broadcast::Sender<Note>,
    pub log: mpsc::Sender<String>,
    pub client: reqwest::Client,
    pub own: SocketAddr,
    /// Becomes `true` when shutdown is requested.
    pub stopped: watch::Receiver<bool>,
    /// The number of requests that wait for that.
    pub waiting: Arc<AtomicUsize>,
}

#[derive(Deserialize, Serialize)]
pub struct Add {
    pub texts: Vec<String>,
}

/// An error, as a response.
pub struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.0).into_response()
    }
}

pub fn router(web: Web) -> Router {
    Router::new()
        .route("/notes", post(add))
        .route("/notes/{id}", get(one))
        .route("/relay/{id}", get(relay))
        .route("/digest", post(digest))
        .route("/last", get(last))
        .route("/waiting", get(waiting))
        .route("/events", get(events))
        .with_state(web)
}

async fn add(State(web): State<Web>, Json(add): Json<Add>) -> Result<Json<Vec<i64>>, Failure> {
    let ids = web.store.add(&add.texts).await?;
    for (id, text) in ids.iter().zip(add.texts) {
        web.log.send(format!("{id} {text}\n")).await?;
        // An error means that there is no receiver, which is fine.
        let _ = web.added.send(Note { id: *id, text });
    }
    Ok(Json(ids))
}

async fn one(State(web): State<Web>, Path(id): Path<i64>) -> Result<Response, Failure> {
    Ok(match web.store.get(id).await? {
        Some(text) => text.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

/// Sends a request to this service by HTTP, as another service would.
async fn relay(State(web): State<Web>, Path(id): Path<i64>) -> Result<Response, Failure> {
    let address = format!("http://{}/notes/{id}", web.own);
    let response = time::timeout(Duration::from_secs(10), web.client.get(address).send()).await??;
    Ok((response.status(), response.text().await?).into_response())
}

/// Runs blocking work.
async fn digest(body: String) -> Result<String, Failure> {
    let sum = tokio::task::spawn_blocking(move || {
        body.bytes().fold(5381u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte))
    });
    Ok(sum.await?.to_string())
}

/// Responds only after shutdown was requested.
async fn last(State(mut web): State<Web>) -> Result<&'static str, Failure> {
    web.waiting.fetch_add(1, Ordering::Relaxed);
    web.stopped.wait_for(|stopped| *stopped).await?;
    time::sleep(Duration::from_millis(50)).await;
    Ok("done")
}

async fn waiting(State(web): State<Web>) -> String {
    web.waiting.load(Ordering::Relaxed).to_string()
}

async fn events(State(web): State<Web>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let notes = BroadcastStream::new(web.added.subscribe());
    let notes = notes.filter_map(|note| async { Some(Ok(Event::default().data(note.ok()?.text))) });
    Sse::new(notes).keep_alive(KeepAlive::default())
}

/// Writes lines to a file, until every sender is gone; returns their number.
pub async fn write_log(file: PathBuf, mut lines: mpsc::Receiver<String>) -> std::io::Result<u64> {
    let mut file = OpenOptions::new().create(true).append(true).open(file).await?;
    let mut written = 0;
    while let Some(line) = lines.recv().await {
        file.write_all(line.as_bytes()).await?;
        written += 1;
    }
    file.flush().await?;
    file.sync_all().await?;
    Ok(written)
}
