//! Peers that are only half there: one that never writes, one that never reads, one that never
//! replies to a connection attempt. A time-out must end the wait, neither early nor much too late,
//! and the socket must remain usable.

use std::{
    io::Write,
    net::SocketAddr,
    time::{Duration, Instant},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time,
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

const PEERS: u64 = 64;
const WAIT: Duration = Duration::from_millis(60);
/// Later than this is a lost timer, even on a busy machine.
const LATE: Duration = Duration::from_secs(3);

pub(super) fn run(flavour: Flavour) -> Verdict {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        let address = listener.local_addr().during("local_addr")?;
        let mut tasks = Vec::new();
        for id in 0..PEERS {
            let peer = std::net::TcpStream::connect(address).during("connect")?;
            let accepted = time::timeout(PATIENCE, listener.accept()).await;
            let (stream, _) = accepted.during("a peer")?.during("accept")?;
            tasks.push(blitz_io::spawn(silent(stream, peer, id)));
        }
        let deaf = std::net::TcpStream::connect(address).during("connect")?;
        let (stream, _) = listener.accept().await.during("accept")?;
        tasks.push(blitz_io::spawn(never_reads(stream)));
        echo::all(tasks).await?;
        drop(deaf);
        never_replies(&listener, address).await?;
        Ok(Outcome::Passed(format!("{PEERS} silent peers, a deaf one and 16 that do not reply")))
    })
}

fn on_time(start: Instant) -> Result<(), String> {
    let took = start.elapsed();
    ensure!(took >= WAIT, "a time-out of {WAIT:?} came after {took:?}");
    ensure!(took < LATE, "a time-out of {WAIT:?} came only after {took:?}");
    Ok(())
}

/// Tests a peer that writes nothing for longer than the time-out; what it writes afterwards must
/// arrive.
async fn silent(
    mut stream: TcpStream,
    mut peer: std::net::TcpStream,
    id: u64,
) -> Result<(), String> {
    let mut got = [0; 16];
    let start = Instant::now();
    let read = time::timeout(WAIT, stream.read(&mut got)).await;
    ensure!(read.is_err(), "a silent peer was heard: {read:?}");
    on_time(start)?;
    peer.write_all(&echo::message(id, 1)).during("a peer's write")?;
    let read = time::timeout(PATIENCE, stream.read_exact(&mut got)).await;
    read.map_err(|_| format!("peer {id} is not heard after a time-out"))?.during("read")?;
    ensure!(got == echo::message(id, 1), "peer {id} said {got:?}");
    Ok(())
}

/// Tests a peer that never reads: the buffers of both kernels fill up, and the rest of the write
/// waits.
async fn never_reads(mut stream: TcpStream) -> Result<(), String> {
    // More than the buffers of a loopback connection hold.
    let much = vec![1; 32 << 20];
    let start = Instant::now();
    let written = time::timeout(WAIT, stream.write_all(&much)).await;
    ensure!(written.is_err(), "a peer that does not read took all: {written:?}");
    on_time(start)
}

/// Tests a listener whose packets are lost, so a connection is neither established nor refused.
async fn never_replies(listener: &TcpListener, address: SocketAddr) -> Result<(), String> {
    kernel::lose_all_packets(listener).during("filter")?;
    let before = kernel::open_descriptors();
    let attempts = (0..16).map(|_| {
        blitz_io::spawn(async move {
            let start = Instant::now();
            let made = time::timeout(WAIT, TcpStream::connect(address)).await;
            ensure!(made.is_err(), "a connection attempt ended: {made:?}");
            on_time(start)
        })
    });
    echo::all(attempts.collect()).await?;
    let after = kernel::open_descriptors();
    ensure!(after <= before, "{after} descriptors after the attempts, {before} before");
    Ok(())
}
