//! A web server that computes: pictures on the fork-join pool, connections on the runtime.
//!
//! A handler that computes keeps its thread from serving other connections. Here it passes a
//! closure to `parallel::run` and awaits its result: the thread continues with the next connection,
//! and the closure joins on the threads of the fork-join pool. So this runtime needs no thread but
//! the main one, where a `join` in the handler itself would block all connections.
//!
//! A client that disconnects drops its handler, and a picture that was not begun by then is not
//! drawn at all. One that was begun is drawn to its end, and discarded.
//!
//! With an address (`render_server 127.0.0.1:7004`) it serves forever: look at
//! `http://127.0.0.1:7004/640x480`. Without one it requests a picture from itself, and meanwhile
//! the number of pictures that are being drawn.

#![forbid(unsafe_code)]

use std::{
    convert::Infallible,
    error::Error,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use blitz_io::{
    net::{TcpListener, TcpStream},
    parallel,
    sync::Semaphore,
    time::sleep,
};
use blitz_io_compat::{HyperIo, HyperTimer};
use blitz_io_examples::picture::Size;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
};

/// The time limit for a request head; a slower client is disconnected.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most pixels of a picture: some tenths of a second for a few threads. Picked.
const LARGEST: usize = 1 << 22;
/// The number of pictures that are drawn or wait for a thread; a further request waits in its
/// handler, where it takes hardly any memory. Picked.
const AT_ONCE: usize = 16;
/// The number of attempts of the check, if a picture is always complete before its progress could
/// be queried.
const TRIES: usize = 20;

/// The state that the handlers share.
struct Studio {
    permits: Arc<Semaphore>,
    /// The number of pictures that are being drawn right now.
    drawing: AtomicUsize,
}

#[blitz_io::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let bound = listener.local_addr()?;
    println!("render_server listens at http://{bound}/");
    if address.is_some() {
        return Ok(serve(listener).await?);
    }
    let server = blitz_io::spawn(serve(listener));
    check(bound).await?;
    server.abort();
    Ok(())
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let studio = Arc::new(Studio { permits, drawing: AtomicUsize::new(0) });
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let studio = studio.clone();
        blitz_io::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(HyperTimer::new()).header_read_timeout(PATIENCE);
            let service = service_fn(|request| handle(request, studio.clone()));
            let served = http.serve_connection(HyperIo::new(stream), service).await;
            match served {
                // A client that disconnects early is not an error of ours.
                Err(error) if !error.is_incomplete_message() => eprintln!("{client}: {error}"),
                _ => {}
            }
        });
    }
}

async fn handle(
    request: Request<Incoming>,
    studio: Arc<Studio>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let text = |status, text: String| respond(status, "text/plain", text.into());
    if request.method() != Method::GET {
        return Ok(text(StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n".into()));
    }
    Ok(match request.uri().path() {
        "/" => text(StatusCode::OK, "request a picture: /640x480; or /drawing\n".into()),
        // Relaxed: a number to be shown, which may have changed when it is read.
        "/drawing" => text(StatusCode::OK, format!("{}\n", studio.drawing.load(Relaxed))),
        path => match requested(path) {
            Ok(size) => render(size, studio).await,
            Err(complaint) => text(StatusCode::BAD_REQUEST, format!("{complaint}\n")),
        },
    })
}

fn requested(path: &str) -> Result<Size, String> {
    let size: Size = path.trim_start_matches('/').parse()?;
    if size.pixels() > LARGEST {
        return Err(format!("`{size}` is too large: use at most {LARGEST} pixels"));
    }
    Ok(size)
}

async fn render(size: Size, studio: Arc<Studio>) -> Response<Full<Bytes>> {
    let permit = studio.permits.clone().acquire_owned().await.expect("it is never closed");
    let drawn = parallel::run(move || {
        // The closure owns the permit, not the handler: a disconnect gives the permit back only if
        // the picture was not begun.
        let _permit = permit;
        // Relaxed: a number to be shown, which orders nothing.
        studio.drawing.fetch_add(1, Relaxed);
        let mut pixels = size.blank();
        draw(size, 0, &mut pixels);
        let file = size.encode(&pixels);
        studio.drawing.fetch_sub(1, Relaxed);
        file
    });
    match drawn.await {
        Ok(file) => respond(StatusCode::OK, "image/png", file.into()),
        Err(error) => {
            eprintln!("{size}: {error}");
            let sorry = "the picture could not be written; try another size\n";
            respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", sorry.into())
        }
    }
}

/// Draws these rows, of which the first is the row `y`: one half, joined with the other.
fn draw(size: Size, y: usize, rows: &mut [u8]) {
    let count = rows.len() / size.row_bytes();
    if count <= 1 {
        return size.draw_row(y, rows);
    }
    let (upper, lower) = rows.split_at_mut(count / 2 * size.row_bytes());
    parallel::join(|| draw(size, y, upper), || draw(size, y + count / 2, lower));
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

/// Requests pictures over one connection, and over another one the number that are being drawn,
/// until that is one: then the server replied while it drew the picture.
async fn check(server: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut client = connect(server).await?;
    for _ in 0..TRIES {
        let mut painter = connect(server).await?;
        let picture = blitz_io::spawn(async move {
            get(&mut painter, "/800x600").await.map_err(|error| error.to_string())
        });
        let (mut replies, mut meanwhile) = (0, 0);
        while !picture.is_finished() {
            let (status, body) = get(&mut client, "/drawing").await?;
            assert_eq!(status, StatusCode::OK);
            replies += 1;
            meanwhile += u32::from(body == "1\n");
        }
        let (status, file) = picture.await??;
        assert!(status == StatusCode::OK && file.starts_with(b"\x89PNG"), "{status}");
        if meanwhile > 0 {
            println!("{meanwhile} of {replies} replies came while a picture was drawn");
            return Ok(());
        }
    }
    Err("no reply came while a picture was drawn: give the drawing to parallel::run".into())
}

async fn connect(server: SocketAddr) -> Result<SendRequest<Empty<Bytes>>, Box<dyn Error>> {
    let stream = TcpStream::connect(server).await?;
    let (client, connection) = handshake(HyperIo::new(stream)).await?;
    // The connection ends with its client.
    blitz_io::spawn(connection);
    Ok(client)
}

async fn get(
    client: &mut SendRequest<Empty<Bytes>>,
    path: &str,
) -> Result<(StatusCode, Bytes), hyper::Error> {
    let request = Request::get(path).header("host", "localhost").body(Empty::new());
    client.ready().await?;
    let response = client.send_request(request.expect("path and header are well-formed")).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}
