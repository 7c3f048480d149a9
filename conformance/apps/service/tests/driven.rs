//! The service as its users see it: a process that gets concurrent requests by HTTP and gRPC, and
//! is stopped while requests are under way.

#[path = "../src/rpc.rs"]
#[allow(dead_code, reason = "the server's half")]
mod rpc;
#[path = "../src/store.rs"]
#[allow(dead_code, reason = "the server's half has a field of it")]
mod store;

use std::{path::Path, process::Stdio, time::Duration};

use futures_util::{StreamExt, future::join_all};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use tonic::transport::Channel;

/// Long compared with everything here, so that only a hang reaches it.
const LIMIT: Duration = Duration::from_secs(60);

struct Service {
    process: Child,
    says: Lines<BufReader<ChildStdout>>,
    http: String,
    grpc: String,
}

impl Service {
    async fn start(folder: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_service"))
            .arg(folder)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut says = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = async |name: &str| {
            let line = timeout(LIMIT, says.next_line()).await.unwrap().unwrap();
            let line = line.expect("the service ended before it listened");
            format!("http://{}", line.strip_prefix(name).unwrap().trim())
        };
        let (http, grpc) = (address("http").await, address("grpc").await);
        Self { process, says, http, grpc }
    }

    async fn rpc(&self) -> rpc::Client {
        let endpoint = Channel::from_shared(self.grpc.clone()).unwrap();
        rpc::Client::new(timeout(LIMIT, endpoint.connect()).await.unwrap().unwrap())
    }

    /// Sends a signal that requests shutdown, as a supervisor would.
    async fn signal(&self, signal: &str) {
        let id = self.process.id().unwrap().to_string();
        let status = Command::new("kill").args([signal, &id]).status().await.unwrap();
        assert!(status.success());
    }

    /// Returns its last line of output; it must have exited successfully.
    async fn end(mut self) -> String {
        let line = timeout(LIMIT, self.says.next_line()).await.unwrap().unwrap();
        let status = timeout(LIMIT, self.process.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}: {line:?}");
        line.unwrap_or_default()
    }
}

async fn add(client: &reqwest::Client, http: &str, texts: &[String]) -> Vec<i64> {
    let request = client.post(format!("{http}/notes")).json(&json!({ "texts": texts }));
    let response = timeout(LIMIT, request.send()).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

async fn get(client: &reqwest::Client, address: String) -> (u16, String) {
    let response = timeout(LIMIT, client.get(address).send()).await.unwrap().unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_does_its_work_and_loses_nothing_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path()).await;
    let (http, client) = (&service.http, reqwest::Client::new());
    let http = http.as_str();

    // Two clients subscribe before anything is added: one by gRPC, one by server-sent events.
    let mut rpc = service.rpc().await;
    let mut watched = timeout(LIMIT, rpc.watch(320)).await.unwrap().unwrap();
    let events = client.get(format!("{http}/events")).send().await.unwrap();
    let mut events = EventLines { response: events, rest: String::new() };

    // Thirty-two clients add ten notes each, in pairs, and read them back, half of them through the
    // service's own client.
    let client = &client;
    let one = |number: usize| async move {
        let mut seen = Vec::new();
        for pair in 0..5 {
            let texts = [0, 1].map(|half| format!("note {number}.{pair}.{half}"));
            for (id, text) in add(client, http, &texts).await.into_iter().zip(texts) {
                let way = if number.is_multiple_of(2) { "notes" } else { "relay" };
                assert_eq!(get(client, format!("{http}/{way}/{id}")).await, (200, text.clone()));
                seen.push((id, text));
            }
        }
        seen
    };
    let mut added: Vec<(i64, String)> =
        join_all((0..32).map(one)).await.into_iter().flatten().collect();
    added.sort();
    assert_eq!(added.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=320).collect::<Vec<_>>());

    // Both subscribers received every note.
    let mut heard = Vec::new();
    while let Some(note) = timeout(LIMIT, watched.next()).await.unwrap() {
        let note = note.unwrap();
        heard.push((note.id, note.text));
    }
    heard.sort();
    assert_eq!(heard, added);
    for _ in 0..320 {
        assert!(timeout(LIMIT, events.next()).await.unwrap().starts_with("data: note "));
    }
    drop(events);

    assert_eq!(timeout(LIMIT, rpc.count(LIMIT)).await.unwrap().unwrap(), 320);
    assert_eq!(get(client, format!("{http}/notes/321")).await.0, 404);
    let body = "x".repeat(1 << 20);
    let digest = client.post(format!("{http}/digest")).body(body).send().await.unwrap();
    assert!(digest.text().await.unwrap().parse::<u64>().is_ok());

    // Requests that are under way when shutdown is requested get their responses.
    let last = join_all((0..8).map(|_| get(client, format!("{http}/last"))));
    let stop = async {
        let waiting = || get(client, format!("{http}/waiting"));
        while waiting().await != (200, "8".into()) {
            tokio::task::yield_now().await;
        }
        service.signal("-TERM").await;
    };
    let (last, ()) = timeout(LIMIT, async { tokio::join!(last, stop) }).await.unwrap();
    assert!(last.iter().all(|response| *response == (200, "done".into())), "{last:?}");
    drop((rpc, watched));
    assert_eq!(service.end().await, "stopped by terminate, 320 kept, 320 logged");
    let log = tokio::fs::read_to_string(folder.path().join("notes.log")).await.unwrap();
    let mut lines: Vec<_> = log.lines().map(str::to_owned).collect();
    lines.sort();
    let mut wanted: Vec<_> = added.iter().map(|(id, text)| format!("{id} {text}")).collect();
    wanted.sort();
    assert_eq!(lines, wanted);
}

#[tokio::test]
async fn what_was_kept_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let service = Service::start(folder.path()).await;
        let client = reqwest::Client::new();
        let ids = add(&client, &service.http, &["again".into()]).await;
        assert_eq!(ids, [round + 1]);
        let mut rpc = service.rpc().await;
        assert_eq!(rpc.count(LIMIT).await.unwrap(), round + 1);
        drop((rpc, client));
        service.signal("-INT").await;
        let kept = round + 1;
        assert_eq!(service.end().await, format!("stopped by interrupt, {kept} kept, 1 logged"));
    }
}

/// The lines of a response as they arrive.
struct EventLines {
    response: reqwest::Response,
    rest: String,
}

impl EventLines {
    /// Returns the next line with content.
    async fn next(&mut self) -> String {
        loop {
            while let Some((line, rest)) = self.rest.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.rest = rest;
                // A comment line only keeps the connection alive.
                if !line.is_empty() && !line.starts_with(':') {
                    return line;
                }
            }
            let chunk = self.response.chunk().await.unwrap().expect("the events ended");
            self.rest += std::str::from_utf8(&chunk).unwrap();
        }
    }
}
