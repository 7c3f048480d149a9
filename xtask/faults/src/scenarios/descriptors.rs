//! EMFILE in `accept`: `accept` returns the error, the runtime does not spin because of the client
//! that still waits, and it continues with the first descriptor that becomes free.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use blitz_io::{net::TcpListener, time};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

/// The limit of descriptors. More than the runtime needs, and few enough to be filled at once.
/// Picked.
const LIMIT: u64 = 128;
const CLIENTS: usize = 6;
/// The time during which the runtime is watched for spinning.
const WATCHED: Duration = Duration::from_millis(400);

pub(super) fn run(flavour: Flavour) -> Verdict {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        let address = listener.local_addr().during("local_addr")?;
        // The clients are connected before the server accepts them.
        let clients = clients(address).during("connect")?;
        let mut fill = fill().during("limit")?;
        for _ in 0..50 {
            refused(&listener).await?;
        }
        let spent = spent_while_waiting().await;
        ensure!(spent < WATCHED / 4, "{spent:?} of {WATCHED:?} were spent on waiting");
        // One free descriptor is enough for one client.
        for (number, client) in clients.iter().enumerate() {
            fill.pop();
            let accepted = time::timeout(PATIENCE, listener.accept()).await;
            let accepted = accepted.map_err(|_| format!("client {number} was not accepted"))?;
            let (stream, _) = accepted.during("accept with one free descriptor")?;
            blitz_io::spawn(echo::serve(stream));
            talk(client, number as u64).await?;
            if number + 1 < clients.len() {
                refused(&listener).await?;
            }
        }
        Ok(Outcome::Passed(format!("accept returned EMFILE, then {CLIENTS} clients were served")))
    })
}

fn clients(address: SocketAddr) -> io::Result<Vec<TcpStream>> {
    (0..CLIENTS).map(|_| TcpStream::connect(address)).collect()
}

/// Opens files until there is no descriptor left.
fn fill() -> io::Result<Vec<File>> {
    kernel::limit_descriptors(LIMIT)?;
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    Ok(files)
}

async fn refused(listener: &TcpListener) -> Result<(), String> {
    match time::timeout(PATIENCE, listener.accept()).await {
        Ok(Err(why)) if why.raw_os_error() == Some(libc::EMFILE) => Ok(()),
        Ok(Err(why)) => Err(format!("accept returned another error: {why:?}")),
        Ok(Ok(_)) => Err("accept found a descriptor where there is none".into()),
        Err(_) => Err("accept waits instead of returning the error".into()),
    }
}

/// Returns the processor time that a runtime uses which only sleeps.
async fn spent_while_waiting() -> Duration {
    let before = kernel::processor_time();
    time::sleep(WATCHED).await;
    kernel::processor_time() - before
}

/// Sends a message and verifies its echo, from a thread that may block.
async fn talk(client: &TcpStream, id: u64) -> Result<(), String> {
    client.set_nonblocking(true).during("set_nonblocking")?;
    let (sent, mut reply) = (echo::message(id, 0), [0; 16]);
    let mut client = client;
    client.write_all(&sent).during("a client's write")?;
    let start = std::time::Instant::now();
    while let Err(why) = client.read_exact(&mut reply) {
        ensure!(why.kind() == io::ErrorKind::WouldBlock, "a client's read: {why}");
        ensure!(start.elapsed() < PATIENCE, "client {id} got no reply");
        time::sleep(Duration::from_millis(1)).await;
    }
    ensure!(reply == sent, "client {id} got {reply:?}");
    Ok(())
}
