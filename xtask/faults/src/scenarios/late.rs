//! Sockets that outlive their runtime: each operation that would wait must return an error, from
//! whatever runtime it is called; nothing may hang or panic; and the descriptor can be registered
//! with another runtime.

use std::{io, net::SocketAddr};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
    time,
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

/// The sockets that are left of a runtime.
struct LeftSockets {
    listener: TcpListener,
    address: SocketAddr,
    stream: TcpStream,
    client: TcpStream,
    udp: UdpSocket,
}

async fn make() -> Result<LeftSockets, String> {
    let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
    let address = listener.local_addr().during("local_addr")?;
    let client = echo::connect(address).await?;
    let (stream, _) = listener.accept().await.during("accept")?;
    let udp = UdpSocket::bind(echo::LOOPBACK).await.during("bind")?;
    Ok(LeftSockets { listener, address, stream, client, udp })
}

pub(super) fn run(flavour: Flavour) -> Verdict {
    let before = kernel::open_descriptors();
    for round in 0..10 {
        let first = flavour.runtime()?;
        let left = first.block_on(make())?;
        first.shutdown_timeout(PATIENCE);
        if round == 0 {
            // Dropped where there is no runtime at all.
            drop(left);
            continue;
        }
        let second = flavour.runtime()?;
        second.block_on(async move {
            let (listener, address, stream) = check_errors(left).await?;
            again(listener, address, stream).await
        })?;
    }
    let after = kernel::open_descriptors();
    ensure!(after <= before, "{after} descriptors are open at the end, {before} were at first");
    Ok(Outcome::Passed(
        "each use returns an error, and the descriptors live on in another runtime".into(),
    ))
}

/// Waits for events that will never come; each wait must return an error.
async fn check_errors(
    mut left: LeftSockets,
) -> Result<(TcpListener, SocketAddr, TcpStream), String> {
    ended("accept", time::timeout(PATIENCE, left.listener.accept()).await)?;
    ended("read", time::timeout(PATIENCE, left.stream.read(&mut [0; 1])).await)?;
    ended("readable", time::timeout(PATIENCE, left.stream.readable()).await)?;
    ended("recv_from", time::timeout(PATIENCE, left.udp.recv_from(&mut [0; 1])).await)?;
    let much = vec![0; 32 << 20];
    ended("write_all", time::timeout(PATIENCE, left.client.write_all(&much)).await)?;
    let address = left.stream.local_addr().during("local_addr after the end")?;
    ensure!(address == left.address, "the address has changed to {address}");
    Ok((left.listener, left.address, left.stream))
}

fn ended<T>(what: &str, result: Result<io::Result<T>, time::error::Elapsed>) -> Result<(), String> {
    match result {
        Ok(Err(why)) if why.to_string().contains("shutdown") => Ok(()),
        Ok(Err(why)) => Err(format!("{what} after the end returned another error: {why}")),
        Ok(Ok(_)) => Err(format!("{what} after the end succeeded")),
        Err(_) => Err(format!("{what} after the end waits for ever")),
    }
}

/// Checks that the descriptors themselves still work.
async fn again(
    listener: TcpListener,
    address: SocketAddr,
    stream: TcpStream,
) -> Result<(), String> {
    drop(stream.into_std().during("into_std after the end")?);
    let listener = listener.into_std().during("into_std after the end")?;
    let listener = TcpListener::from_std(listener).during("from_std")?;
    let mut client = echo::connect(address).await?;
    let accepted = time::timeout(PATIENCE, listener.accept()).await;
    let (stream, _) = accepted.during("a client")?.during("accept")?;
    blitz_io::spawn(echo::serve(stream));
    echo::exchange(&mut client, 3, 0).await
}
