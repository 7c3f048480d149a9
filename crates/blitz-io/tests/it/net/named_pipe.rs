//! Tests named pipes, which only Windows has.

use std::{
    io::{ErrorKind, IoSlice},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::windows::named_pipe::{
        ClientOptions, NamedPipeClient, NamedPipeServer, PipeEnd, PipeMode, ServerOptions,
    },
};

use crate::support::{
    caught_panic::panic_of,
    manual_poll::waiting,
    runtimes::{on_all_kinds, on_one_thread, one_thread_with_drivers},
    watchdog,
};

/// `ERROR_PIPE_BUSY`: all instances have a client.
const BUSY: i32 = 231;

fn name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    format!(r"\\.\pipe\blitz-net-time-{}-{number}", std::process::id())
}

/// Returns a server and its client, connected.
async fn pair() -> (NamedPipeServer, NamedPipeClient) {
    let name = name();
    let server = ServerOptions::new().create(&name).unwrap();
    let client = ClientOptions::new().open(&name).unwrap();
    server.connect().await.unwrap();
    (server, client)
}

#[test]
fn each_end_reads_what_the_other_wrote() {
    on_all_kinds(|| async {
        let (mut server, mut client) = pair().await;
        for round in 0..50_u32 {
            client.write_u32(round).await.unwrap();
            assert_eq!(server.read_u32().await.unwrap(), round);
            server.write_u32(round + 1).await.unwrap();
            assert_eq!(client.read_u32().await.unwrap(), round + 1);
        }
    });
}

#[test]
fn much_goes_both_ways_at_once() {
    on_all_kinds(|| async {
        let (server, client) = pair().await;
        let (mut from_client, mut to_client) = blitz_io::io::split(server);
        let (mut from_server, mut to_server) = blitz_io::io::split(client);
        let much: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let sent = much.clone();
        let up =
            blitz_io::spawn(async move { to_server.write_all(&sent).await.map(|()| to_server) });
        let sent = much.clone();
        let down =
            blitz_io::spawn(async move { to_client.write_all(&sent).await.map(|()| to_client) });
        let (mut one, mut other) = (vec![0; much.len()], vec![0; much.len()]);
        let (a, b) =
            blitz_io::join!(from_client.read_exact(&mut one), from_server.read_exact(&mut other));
        a.unwrap();
        b.unwrap();
        assert!(one == much && other == much);
        up.await.unwrap().unwrap();
        down.await.unwrap().unwrap();
    });
}

#[test]
fn a_server_waits_for_its_client() {
    on_all_kinds(|| async {
        let name = name();
        let server = ServerOptions::new().first_pipe_instance(true).create(&name).unwrap();
        let mut connecting = waiting(server.connect());
        connecting.still_waits();
        drop(connecting);
        // The wait that was dropped is not lost.
        let connecting = server.connect();
        let client = ClientOptions::new().open(&name).unwrap();
        connecting.await.unwrap();
        drop(client);
    });
}

#[test]
fn an_instance_that_has_a_client_is_busy_and_a_name_without_one_is_not_found() {
    on_one_thread(async {
        let name = name();
        let error = ClientOptions::new().open(&name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let server = ServerOptions::new().create(&name).unwrap();
        let _client = ClientOptions::new().open(&name).unwrap();
        server.connect().await.unwrap();
        let error = ClientOptions::new().open(&name).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(BUSY));
        let _second = ServerOptions::new().create(&name).unwrap();
        ClientOptions::new().open(&name).unwrap();
    });
}

#[test]
fn the_end_comes_after_the_last_bytes() {
    on_all_kinds(|| async {
        let (mut server, mut client) = pair().await;
        client.write_all(b"last words").await.unwrap();
        drop(client);
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"last words");
        assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0, "an end stays one");
    });
}

#[test]
fn writing_without_a_reader_ends_with_an_error() {
    on_all_kinds(|| async {
        let (server, mut client) = pair().await;
        drop(server);
        let error = loop {
            if let Err(error) = client.write_all(&[0; 4096]).await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn one_client_after_the_other_is_served_by_one_instance() {
    on_all_kinds(|| async {
        let name = name();
        let mut server = ServerOptions::new().create(&name).unwrap();
        for round in 0..10_u8 {
            // A client finds the pipe only while the server waits.
            let mut connecting = waiting(server.connect());
            let mut client = ClientOptions::new().open(&name).unwrap();
            connecting.pin().await.unwrap();
            drop(connecting);
            client.write_all(&[round, round]).await.unwrap();
            // One byte is left unread, and does not go to the next client.
            assert_eq!(server.read_u8().await.unwrap(), round);
            server.disconnect().unwrap();
            drop(client);
        }
    });
}

#[test]
fn operations_that_are_not_ready_would_block() {
    on_one_thread(async {
        let (server, client) = pair().await;
        let mut byte = [0; 1];
        assert_eq!(server.try_read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut readable = waiting(server.readable());
        readable.still_waits();
        client.writable().await.unwrap();
        assert_eq!(
            client.try_write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"b")]).unwrap(),
            2
        );
        readable.pin().await.unwrap();
        let ready = server.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_readable());
        assert_eq!(server.try_read(&mut byte).unwrap(), 1);
        assert_eq!(server.try_read(&mut byte).unwrap(), 1);
        assert_eq!(&byte, b"b");
        assert_eq!(server.try_read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn messages_are_kept_apart() {
    on_one_thread(async {
        let name = name();
        let mut server = ServerOptions::new().pipe_mode(PipeMode::Message).create(&name).unwrap();
        let mut client = ClientOptions::new().pipe_mode(PipeMode::Message).open(&name).unwrap();
        server.connect().await.unwrap();
        assert_eq!(client.info().unwrap().mode, PipeMode::Message);
        assert_eq!(client.info().unwrap().end, PipeEnd::Client);
        assert_eq!(server.info().unwrap().end, PipeEnd::Server);
        client.write_all(b"one").await.unwrap();
        client.write_all(b"another").await.unwrap();
        let mut bytes = [0; 64];
        assert_eq!(server.read(&mut bytes).await.unwrap(), 3);
        assert_eq!(server.read(&mut bytes).await.unwrap(), 7);
        // Longer than one read: it comes in parts, and nothing is lost.
        let long: Vec<u8> = (0..20_000_u32).map(|number| number as u8).collect();
        client.write_all(&long).await.unwrap();
        let mut all = vec![0; long.len()];
        server.read_exact(&mut all).await.unwrap();
        assert!(all == long);
    });
}

#[test]
fn a_read_that_was_given_up_loses_nothing() {
    on_all_kinds(|| async {
        let (mut server, mut client) = pair().await;
        for number in 0..20_u8 {
            let mut byte = [0; 1];
            let mut reading = waiting(server.read(&mut byte));
            reading.still_waits();
            drop(reading);
            client.write_all(&[number]).await.unwrap();
            assert_eq!(server.read_u8().await.unwrap(), number);
        }
    });
}

#[test]
fn a_pipe_that_is_dropped_with_everything_under_way_leaves_nothing() {
    on_all_kinds(|| async {
        for _ in 0..50 {
            let (server, mut client) = pair().await;
            client.write_all(&[1; 100]).await.unwrap();
            drop(client);
            drop(server);
            let lonely = ServerOptions::new().create(name()).unwrap();
            waiting(lonely.connect()).still_waits();
        }
    });
}

#[test]
fn a_wait_after_the_end_of_its_runtime_returns_an_error() {
    let _watch = watchdog::start();
    let first = one_thread_with_drivers();
    let (server, _client) = first.block_on(pair());
    drop(first);
    let error = one_thread_with_drivers().block_on(server.readable()).unwrap_err();
    assert!(error.to_string().contains("is being shutdown"), "{error}");
}

#[test]
fn a_pipe_without_a_runtime_panics() {
    let _watch = watchdog::start();
    panic_of(|| ServerOptions::new().create(name())).says(&["there is no reactor running"]);
    panic_of(|| ServerOptions::new().max_instances(255).clone())
        .says(&["cannot specify more than 254 instances"]);
}
