//! HTTP servers: hyper alone, axum, and a proxy of axum with hyper-util's client.

use std::convert::Infallible;
use std::hash::Hasher as _;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// The bytes that a blocking handler hashes: some 50 µs with the hasher of std, which took 9.4 µs
/// for 64 KiB.
static HASHED: [u8; 320 * 1024] = [7; 320 * 1024];

/// The time that a handler sleeps.
const PAUSE: Duration = Duration::from_millis(5);

/// Serves a greeting with hyper alone.
pub(crate) async fn hyper(listener: TcpListener) -> Result<(), String> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            let service = service_fn(greeting);
            // Any error of the client ends the connection.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn greeting(
    _: hyper::Request<hyper::body::Incoming>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    Ok(hyper::Response::new(Full::new(Bytes::from_static(b"Hello, world!"))))
}

/// Serves with axum: a greeting, one after a call of `spawn_blocking`, one after a sleep.
pub(crate) async fn axum(listener: TcpListener) -> Result<(), String> {
    let app = Router::new()
        .route("/", get(async || "Hello, world!"))
        .route("/blocking", get(blocking))
        .route("/sleep", get(sleep));
    axum::serve(listener, app).await.map_err(|error| error.to_string())
}

async fn blocking() -> Result<String, StatusCode> {
    let hash = tokio::task::spawn_blocking(|| {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(&HASHED);
        hasher.finish()
    });
    hash.await.map(|hash| hash.to_string()).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn sleep() -> &'static str {
    tokio::time::sleep(PAUSE).await;
    "Hello, world!"
}

type Client = hyper_util::client::legacy::Client<HttpConnector, Body>;

/// Forwards each request to the server at the port, over connections that are kept.
pub(crate) async fn proxy(listener: TcpListener, port: u16) -> Result<(), String> {
    let client: Client =
        hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
    let app = Router::new().fallback(forward).with_state((client, port));
    axum::serve(listener, app).await.map_err(|error| error.to_string())
}

async fn forward(
    State((client, port)): State<(Client, u16)>,
    mut request: Request,
) -> Result<Response, StatusCode> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("http://127.0.0.1:{port}{path}");
    *request.uri_mut() = Uri::try_from(uri).map_err(|_| StatusCode::BAD_REQUEST)?;
    let reply = client.request(request).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(reply.into_response())
}
