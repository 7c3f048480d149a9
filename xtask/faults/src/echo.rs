//! An echo server, and clients that verify its replies.
//!
//! A message carries the ID of its sender and a sequence number, so a reply that belongs to another
//! client, or to another time, is detected.

use std::{io, net::SocketAddr, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time,
};

use crate::outcome::During;

/// The time that a client waits for a reply that must come. Far above what a loaded machine needs,
/// below every limit of a scenario, so that a hang is reported with its place.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Any port on the loopback interface.
pub(crate) const LOOPBACK: (&str, u16) = ("127.0.0.1", 0);

pub(crate) fn message(id: u64, number: u64) -> [u8; 16] {
    let mut message = [0; 16];
    message[..8].copy_from_slice(&id.to_le_bytes());
    message[8..].copy_from_slice(&number.to_le_bytes());
    message
}

/// Echoes everything until the other side ends.
pub(crate) async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

/// Starts a server on the current runtime; it ends with its task.
pub(crate) async fn server() -> Result<(SocketAddr, JoinHandle<String>), String> {
    let listener = TcpListener::bind(LOOPBACK).await.during("bind")?;
    let address = listener.local_addr().during("local_addr")?;
    let task = blitz_io::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(blitz_io::spawn(serve(stream))),
                Err(why) => return format!("accept: {why}"),
            }
        }
    });
    Ok((address, task))
}

pub(crate) async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    time::timeout(PATIENCE, TcpStream::connect(address))
        .await
        .map_err(|_| "a connection was not made in time".to_owned())?
        .during("connect")
}

/// Sends one message and verifies its echo.
pub(crate) async fn exchange(stream: &mut TcpStream, id: u64, number: u64) -> Result<(), String> {
    let sent = message(id, number);
    let mut reply = [0; 16];
    let both = async {
        stream.write_all(&sent).await?;
        stream.read_exact(&mut reply).await.map(drop)
    };
    time::timeout(PATIENCE, both)
        .await
        .map_err(|_| format!("client {id} got no reply to message {number} in time"))?
        .during("an exchange")?;
    if reply != sent {
        return Err(format!("client {id} sent {sent:?} and got {reply:?}"));
    }
    Ok(())
}

/// Awaits all tasks; returns the first failure.
pub(crate) async fn all(tasks: Vec<JoinHandle<Result<(), String>>>) -> Result<(), String> {
    for task in tasks {
        task.await.during("a task")??;
    }
    Ok(())
}
