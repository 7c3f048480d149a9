//! A TCP server that sends back what it receives, one task for each connection.
//!
//! With an address (`echo 127.0.0.1:7000`) it serves forever. Without one it serves itself: several
//! concurrent clients send it more than a socket holds, and check what comes back.

#![forbid(unsafe_code)]

use std::{io, net::SocketAddr, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

const CLIENTS: u8 = 8;
/// More than the buffers of both sockets hold, so that both directions must flow.
const BYTES: usize = 16 << 20;

#[blitz_io::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let bound = listener.local_addr()?;
    println!("echo listens at {bound}");
    if address.is_some() {
        return serve(listener).await;
    }
    let server = blitz_io::spawn(serve(listener));
    check(bound).await?;
    server.abort();
    println!("{CLIENTS} clients got back what they sent, {} MiB each", BYTES >> 20);
    Ok(())
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            // A client that gave up, or no descriptor left for now: the server continues with
            // others.
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        blitz_io::spawn(async move {
            if let Err(error) = echo(stream).await {
                eprintln!("{client}: {error}");
            }
        });
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    copy(&mut reader, &mut writer).await?;
    // The client has sent everything, and so have we now.
    writer.shutdown().await
}

async fn check(server: SocketAddr) -> io::Result<()> {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(client(server, number));
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}

/// Sends and receives concurrently, because a client that sends everything first would wait
/// forever, as would the server.
async fn client(server: SocketAddr, number: u8) -> io::Result<()> {
    let sent: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8 ^ number).collect();
    let (mut reader, mut writer) = TcpStream::connect(server).await?.into_split();
    let mut heard = Vec::with_capacity(BYTES);
    let send = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await
    };
    blitz_io::try_join!(send, reader.read_to_end(&mut heard))?;
    assert!(heard == sent, "client {number}: {} bytes came back, and not the same", heard.len());
    Ok(())
}
