//! hyper on our runtime: over real sockets, with its time-outs, and upgraded.

use std::{
    convert::Infallible,
    net::SocketAddr,
    time::{Duration, Instant},
};

use blitz_io::{
    channel::oneshot,
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use blitz_io_compat::{HyperExecutor, HyperIo, HyperSleep, HyperTimer};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    rt::{Executor, Timer},
    service::service_fn,
};

type Reply = Result<Response<Full<Bytes>>, Infallible>;

/// Sends the body back, and the length of the path in a header.
async fn echo(request: Request<Incoming>) -> Reply {
    let path = request.uri().path().len();
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    let response = Response::builder().header("path-length", path);
    Ok(response.body(Full::new(body.unwrap_or_default())).expect("it is well-formed"))
}

/// Serves one connection, with this time limit for each request head.
async fn server(patience: Duration) -> (SocketAddr, JoinHandle<hyper::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of this machine");
    let address = listener.local_addr().expect("it is bound");
    let serving = blitz_io::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client comes");
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(HyperTimer::new()).header_read_timeout(patience);
        http.serve_connection(HyperIo::new(stream), service_fn(echo)).await
    });
    (address, serving)
}

#[blitz_io::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_all_sizes_come_back_over_one_connection() {
    let (address, serving) = server(Duration::from_secs(600)).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(HyperIo::new(stream)).await.unwrap();
    let connection = blitz_io::spawn(connection);
    // Around hyper's first buffer of 8 KiB, and far above what a socket takes at once.
    for size in [0, 1, 8191, 8192, 8193, 4 << 20] {
        let sent: Bytes = (0..size).map(|i: u32| (i % 251) as u8).collect();
        let request = Request::post("/echo").header("host", "here").body(Full::new(sent.clone()));
        client.ready().await.unwrap();
        let response = client.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["path-length"], "5");
        assert!(response.into_body().collect().await.unwrap().to_bytes() == sent, "{size} bytes");
    }
    // The client is dropped, and with it the connection, on both sides.
    drop(client);
    connection.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
}

#[blitz_io::test]
async fn a_client_that_sends_no_headers_is_cut_off_in_time() {
    let (address, serving) = server(Duration::from_millis(50)).await;
    let start = Instant::now();
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let error = serving.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(start.elapsed() >= Duration::from_millis(50), "{:?}", start.elapsed());
    let mut rest = Vec::new();
    // A response or a reset: in either case it ends.
    let _ = silent.read_to_end(&mut rest).await;
}

#[blitz_io::test]
async fn an_upgraded_connection_is_a_stream_of_ours() {
    let (near, far) = blitz_io::io::duplex(256);
    blitz_io::spawn(async move {
        let switch = async |request: Request<Incoming>| -> Result<_, Infallible> {
            blitz_io::spawn(async move {
                let upgraded = hyper::upgrade::on(request).await.expect("the client agrees");
                let mut stream = HyperIo::new(upgraded);
                let mut word = [0; 4];
                stream.read_exact(&mut word).await.expect("a word comes");
                word.reverse();
                stream.write_all(&word).await.expect("the client listens");
                stream.shutdown().await.expect("it can be shut down");
            });
            let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
            let response = response.header("upgrade", "words").header("connection", "upgrade");
            Ok(response.body(Empty::<Bytes>::new()).expect("it is well-formed"))
        };
        let http = hyper::server::conn::http1::Builder::new();
        http.serve_connection(HyperIo::new(far), service_fn(switch)).with_upgrades().await
    });
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(HyperIo::new(near)).await.unwrap();
    blitz_io::spawn(connection.with_upgrades());
    let request = Request::get("/").header("host", "pipe").header("connection", "upgrade");
    let request = request.header("upgrade", "words").body(Empty::<Bytes>::new()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut stream = HyperIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"abcd").await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert_eq!(reply, "dcba");
}

#[blitz_io::test]
async fn a_sleep_is_never_short() {
    let timer = HyperTimer::new();
    let start = Instant::now();
    timer.sleep(Duration::from_millis(20)).await;
    assert!(start.elapsed() >= Duration::from_millis(20));
    let deadline = timer.now() + Duration::from_millis(20);
    timer.sleep_until(deadline).await;
    assert!(timer.now() >= deadline);
}

#[blitz_io::test]
async fn a_sleep_is_reset_where_it_lies() {
    let timer = HyperTimer::new();
    let mut sleep = timer.sleep(Duration::from_secs(3600));
    let place = std::ptr::from_ref(&*sleep).cast::<u8>();
    timer.reset(&mut sleep, timer.now() + Duration::from_millis(5));
    assert_eq!(std::ptr::from_ref(&*sleep).cast::<u8>(), place, "no new one was made");
    assert!(sleep.is::<HyperSleep>());
    sleep.await;
}

/// A sleep of a timer other than ours.
struct Never;

impl Future for Never {
    type Output = ();

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        std::task::Poll::Pending
    }
}

impl hyper::rt::Sleep for Never {}

#[blitz_io::test]
async fn a_sleep_of_another_timer_is_replaced() {
    let timer = HyperTimer::new();
    let mut sleep: std::pin::Pin<Box<dyn hyper::rt::Sleep>> = Box::pin(Never);
    timer.reset(&mut sleep, timer.now());
    assert!(sleep.is::<HyperSleep>());
    sleep.await;
}

#[blitz_io::test]
async fn the_executor_spawns_a_task() {
    let (sender, receiver) = oneshot::channel();
    HyperExecutor::new().execute(async move {
        let _ = sender.send(blitz_io::task::try_id());
    });
    assert!(receiver.await.unwrap().is_some(), "it runs in a task");
}
