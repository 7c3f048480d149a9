//! A TCP proxy: forwards what a client sends to another server, and the replies back.
//!
//! Two time-outs keep it from being held up: one on connecting to the server, one on connections
//! that are idle in both directions.
//!
//! With two addresses (`proxy 127.0.0.1:7003 example.org:80`: where to listen, and where to
//! connect) it serves forever. Without any it stands between clients and servers of its own, and
//! checks that bytes pass, that an idle connection is closed, and that an unreachable server is
//! reported by closing.

#![forbid(unsafe_code)]

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use blitz_io::{
    channel::watch,
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy, copy_bidirectional},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

/// The time-outs of a proxy.
#[derive(Clone, Copy)]
struct Patience {
    connect: Duration,
    idle: Duration,
}

/// Time-outs for ordinary use. Picked.
const ORDINARY: Patience =
    Patience { connect: Duration::from_secs(5), idle: Duration::from_secs(300) };

#[blitz_io::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(listen), Some(server)) => {
            let listener = TcpListener::bind(&listen).await?;
            println!("proxy listens at {} for {server}", listener.local_addr()?);
            serve(listener, server, ORDINARY).await
        }
        (None, _) => check().await,
        (Some(_), None) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the address of the server is missing: `proxy <listen> <server>`",
        )),
    }
}

async fn serve(listener: TcpListener, server: String, patience: Patience) -> io::Result<()> {
    loop {
        let (client, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let server = server.clone();
        blitz_io::spawn(async move {
            match carry(client, &server, patience).await {
                Ok((up, down)) => println!("{address}: {up} bytes up, {down} bytes down"),
                Err(error) => println!("{address}: {error}"),
            }
        });
    }
}

/// Forwards one connection, until both sides have ended it, or it is idle for too long.
async fn carry(client: TcpStream, server: &str, patience: Patience) -> io::Result<(u64, u64)> {
    let late = |what: &str| io::Error::new(io::ErrorKind::TimedOut, what.to_owned());
    let mut server = timeout(patience.connect, TcpStream::connect(server))
        .await
        .map_err(|_| late("the server does not respond"))??;
    let (moved, mut watched) = watch::channel(());
    let mut client = Watched { stream: client, moved };
    let idle = async {
        // Each byte that moves restarts the time-out.
        while let Ok(Ok(())) = timeout(patience.idle, watched.changed()).await {}
    };
    blitz_io::select! {
        carried = copy_bidirectional(&mut client, &mut server) => carried,
        () = idle => Err(late("nothing moved for too long")),
    }
}

/// A stream that notifies a channel when bytes move, in either direction.
struct Watched {
    stream: TcpStream,
    moved: watch::Sender<()>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.moved.send_replace(());
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if written.is_ready() {
            self.moved.send_replace(());
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Starts a proxy in front of a server; returns the address where it listens.
async fn proxy(server: String, patience: Patience) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    blitz_io::spawn(serve(listener, server, patience));
    Ok(address)
}

async fn check() -> io::Result<()> {
    let echo = TcpListener::bind("127.0.0.1:0").await?;
    let server = echo.local_addr()?.to_string();
    blitz_io::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            blitz_io::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });

    let through = proxy(server.clone(), ORDINARY).await?;
    let (mut reader, mut writer) = TcpStream::connect(through).await?.into_split();
    let sent: Vec<u8> = (0..4 << 20).map(|i: u32| (i % 251) as u8).collect();
    let mut heard = Vec::new();
    let send = async {
        writer.write_all(&sent).await?;
        // Half-closed: the server sees the end, and what it still sends comes back.
        writer.shutdown().await
    };
    blitz_io::try_join!(send, reader.read_to_end(&mut heard))?;
    assert!(heard == sent, "{} bytes came back", heard.len());
    println!("4 MiB went there and back, and the end too");

    let hasty = Patience { idle: Duration::from_secs(2), ..ORDINARY };
    let mut idle = TcpStream::connect(proxy(server, hasty).await?).await?;
    idle.write_all(b"x").await?;
    assert_eq!(idle.read_u8().await?, b'x');
    assert_eq!(idle.read(&mut [0; 8]).await?, 0, "a connection that is idle is closed");
    println!("an idle connection was cut");

    // Bound and never listening: no other program takes this port, and connections are refused.
    let unused = blitz_io::net::TcpSocket::new_v4()?;
    unused.bind("127.0.0.1:0".parse().expect("it is an address"))?;
    let missing = proxy(unused.local_addr()?.to_string(), ORDINARY).await?;
    let mut refused = TcpStream::connect(missing).await?;
    assert_eq!(refused.read(&mut [0; 8]).await?, 0, "it is closed when there is no server");
    println!("a server that is not there was reported by closing");
    Ok(())
}
