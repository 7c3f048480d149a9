//! Random packet loss: streams must lose nothing, whatever the time-outs and retries, and datagrams
//! are requested again.
//!
//! The packets are dropped by a filter on each socket, so neither a namespace nor network tools are
//! needed.

use std::{net::SocketAddr, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, UdpSocket},
    time::{self, Instant},
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

/// The share of packets that is lost: enough that every run loses some, few enough that the
/// kernel's own waits, which double with each loss, stay within the time.
const PERCENT: u32 = 5;
const CLIENTS: u64 = 24;
const ROUNDS: u64 = 15;

pub(super) fn run(flavour: Flavour) -> Verdict {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        if let Err(why) = kernel::lose_packets(&listener, PERCENT) {
            return Ok(Outcome::Skipped(format!("no filter of packets is allowed: {why}")));
        }
        let address = listener.local_addr().during("local_addr")?;
        blitz_io::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                blitz_io::spawn(echo::serve(stream));
            }
        });
        let streams: Vec<_> = (0..CLIENTS).map(|id| blitz_io::spawn(stream(address, id))).collect();
        let requests = datagrams().await?;
        let mut again = 0;
        for task in streams {
            again += task.await.during("a client")??;
        }
        ensure!(again > 0 && requests > ROUNDS * 4, "nothing was lost, so nothing was tried");
        Ok(Outcome::Passed(format!(
            "{} exchanges with {again} segments sent again; {} replies to {requests} datagrams",
            CLIENTS * ROUNDS,
            ROUNDS * 4
        )))
    })
}

/// Reads with short time-outs, each of which may cancel a read; no byte may be lost by that.
async fn stream(address: SocketAddr, id: u64) -> Result<u32, String> {
    let socket = TcpSocket::new_v4().during("socket")?;
    kernel::lose_packets(&socket, PERCENT).during("filter")?;
    // A lost SYN is retransmitted only after a second, then after two more.
    let connected = time::timeout(2 * PATIENCE, socket.connect(address)).await;
    let mut stream = connected.during("a connection")?.during("connect")?;
    for number in 0..ROUNDS {
        let sent = echo::message(id, number);
        stream.write_all(&sent).await.during("write")?;
        let (mut got, mut filled, start) = ([0; 16], 0, Instant::now());
        while filled < got.len() {
            ensure!(start.elapsed() < 2 * PATIENCE, "client {id} got no reply to {number}");
            let read = stream.read(&mut got[filled..]);
            match time::timeout(Duration::from_millis(20), read).await {
                Ok(Ok(0)) => return Err(format!("client {id} was left at {number}")),
                Ok(Ok(count)) => filled += count,
                Ok(Err(why)) => return Err(format!("client {id} at {number}: {why}")),
                Err(_) => {}
            }
        }
        ensure!(got == sent, "client {id} sent {sent:?} and got {got:?}");
    }
    kernel::sent_again(&stream).during("TCP_INFO")
}

/// Sends requests until each has a reply; returns the number of requests sent.
async fn datagrams() -> Result<u64, String> {
    let (near, far) = (udp().await?, udp().await?);
    let address = far.local_addr().during("local_addr")?;
    // Five percent would lose too few of so few datagrams; here a quarter is lost.
    kernel::lose_packets(&near, 25).during("filter")?;
    let server = blitz_io::spawn(async move {
        let mut message = [0; 16];
        while let Ok((count, from)) = far.recv_from(&mut message).await {
            let _ = far.send_to(&message[..count], from).await;
        }
    });
    let mut requests = 0;
    for number in 0..ROUNDS * 4 {
        let sent = echo::message(requests, number);
        let mut got = [0; 16];
        let start = Instant::now();
        // Replies to earlier requests are skipped by their number.
        while got[8..] != sent[8..] {
            ensure!(start.elapsed() < PATIENCE, "datagram {number} never got a reply");
            near.send_to(&sent, address).await.during("send_to")?;
            requests += 1;
            if let Ok(received) =
                time::timeout(Duration::from_millis(20), near.recv_from(&mut got)).await
            {
                received.during("recv_from")?;
            }
        }
    }
    server.abort();
    Ok(requests)
}

async fn udp() -> Result<UdpSocket, String> {
    UdpSocket::bind(echo::LOOPBACK).await.during("bind")
}
