//! HTTP/1.1: hyper on this runtime, through `blitz-io-compat`.
//!
//! hyper implements the protocol; the sockets, the tasks and the timers are ours. With an address
//! (`http 127.0.0.1:7002`) it serves forever: try `curl` on it. Without one, a client of hyper's
//! sends it requests, over one connection, and checks the responses.

#![forbid(unsafe_code)]

use std::{convert::Infallible, error::Error, io, net::SocketAddr, time::Duration};

use blitz_io::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use blitz_io_compat::{HyperIo, HyperTimer};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    server::conn::http1,
    service::service_fn,
};

/// The time limit for a request head; a slower client is disconnected.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest body that is accepted, so that a client cannot fill our memory.
const LARGEST: usize = 1 << 20;

#[blitz_io::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let bound = listener.local_addr()?;
    println!("http listens at http://{bound}/");
    if address.is_some() {
        return Ok(serve(listener).await?);
    }
    let server = blitz_io::spawn(serve(listener));
    check(bound).await?;
    server.abort();
    println!("four requests were served over one connection, as they should be");
    Ok(())
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        // A response that is ready must not wait to be coalesced with more data.
        stream.set_nodelay(true)?;
        blitz_io::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(HyperTimer::new()).header_read_timeout(PATIENCE);
            let served = http.serve_connection(HyperIo::new(stream), service_fn(route)).await;
            if let Err(error) = served {
                eprintln!("{client}: {error}");
            }
        });
    }
}

async fn route(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => (StatusCode::OK, Bytes::from("hello from blitz-io\n")),
        (&Method::POST, "/echo") => match Limited::new(request, LARGEST).collect().await {
            Ok(body) => (StatusCode::OK, body.to_bytes()),
            Err(_) => (StatusCode::PAYLOAD_TOO_LARGE, Bytes::from("at most 1 MiB\n")),
        },
        _ => (StatusCode::NOT_FOUND, Bytes::from("try GET / or POST /echo\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    Ok(response)
}

async fn check(server: SocketAddr) -> Result<(), Box<dyn Error>> {
    let stream = TcpStream::connect(server).await?;
    let (mut client, connection) = handshake(HyperIo::new(stream)).await?;
    let connection = blitz_io::spawn(connection);

    let (status, body) = fetch(&mut client, Method::GET, "/", Bytes::new()).await?;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"hello from blitz-io\n"[..]));
    let long: Bytes = (0..LARGEST).map(|i| (i % 251) as u8).collect();
    let (status, body) = fetch(&mut client, Method::POST, "/echo", long.clone()).await?;
    assert!(status == StatusCode::OK && body == long, "{status}: {} bytes", body.len());
    let (status, _) = fetch(&mut client, Method::GET, "/nowhere", Bytes::new()).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, body) = fetch(&mut client, Method::POST, "/echo", Bytes::from("again")).await?;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"again"[..]));

    // The connection ends with its client.
    drop(client);
    Ok(connection.await??)
}

async fn fetch(
    client: &mut SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<(StatusCode, Bytes), Box<dyn Error>> {
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    client.ready().await?;
    let response = client.send_request(request.body(Full::new(body))?).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}
