//! A server that ends without losing a request: `shutdown` in practice.
//!
//! A request is a line with a number, its reply a line with the square of it. When shutdown begins
//! the server accepts no more connections, and sends `bye` on those it has. It continues to reply
//! to requests until the client has closed its side, which a client does when it reads the `bye`:
//! so every request that was sent gets a reply. Connections that are not closed in time are cut
//! off, and named.
//!
//! With an address (`graceful 127.0.0.1:7005`) it serves until Ctrl-C or `SIGTERM`, drains for ten
//! seconds, and reports; a second signal ends it at once. Without one it does so under load of its
//! own: clients count requests and replies, which must be equal; one that keeps its connection open
//! must be named.

#![forbid(unsafe_code)]

use std::{io, net::SocketAddr, time::Duration};

use blitz_io::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter},
    net::{TcpListener, TcpStream},
    shutdown::{Phase, Report, Shutdown},
    stream::{StreamExt, wrappers::LinesStream},
    sync::CancellationToken,
    task::JoinSet,
    time::sleep,
};

#[blitz_io::main]
async fn main() -> io::Result<()> {
    let Some(address) = std::env::args().nth(1) else { return check().await };
    let listener = TcpListener::bind(&address).await?;
    println!("graceful listens at {}", listener.local_addr()?);
    let shutdown = Shutdown::new();
    serve(&shutdown, listener);
    // The first Ctrl-C or `kill` begins the shutdown, the second ends the process at once.
    shutdown.on_signal()?;
    shutdown.begun().await;
    let report = drain(&shutdown, Duration::from_secs(10)).await;
    println!("{report}");
    Ok(())
}

/// Accepts connections until shutdown begins.
fn serve(shutdown: &Shutdown, listener: TcpListener) {
    let connections = shutdown.clone();
    shutdown.spawn_with(async move |token| {
        while let Some(accepted) = token.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, client)) => {
                    let token = connections.token();
                    let name = format!("connection of {client}");
                    connections.spawn_named(&name, async move {
                        if let Err(error) = reply(stream, token).await {
                            println!("{client}: {error}");
                        }
                    });
                }
                Err(error) => {
                    eprintln!("cannot accept: {error}");
                    sleep(Duration::from_millis(10)).await;
                }
            }
        }
    });
}

/// Serves one connection, until the client has closed it.
async fn reply(stream: TcpStream, token: CancellationToken) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let mut requests = LinesStream::new(BufReader::new(reader).lines());
    let mut replies = BufWriter::new(writer);
    let mut said_bye = false;
    loop {
        // Waiting for the token and for a request are both cancel safe, so the `select!` loses
        // nothing.
        let request = blitz_io::select! {
            () = token.cancelled(), if !said_bye => {
                said_bye = true;
                replies.write_all(b"bye\n").await?;
                replies.flush().await?;
                continue;
            }
            request = requests.try_next() => request?,
        };
        let Some(request) = request else { return replies.shutdown().await };
        let number: u64 = request.parse().map_err(io::Error::other)?;
        replies.write_all(format!("{}\n", number * number).as_bytes()).await?;
        replies.flush().await?;
    }
}

/// Drains, and prints the progress.
async fn drain(shutdown: &Shutdown, limit: Duration) -> Report {
    let mut progress = shutdown.progress();
    let shows = blitz_io::spawn(async move {
        while progress.changed().await.is_ok() {
            let now = *progress.borrow_and_update();
            println!("{now}");
            if now.phase == Phase::Over {
                break;
            }
        }
    });
    let report = shutdown.drain(limit).await;
    shows.await.expect("it only prints");
    report
}

/// The number of clients that send without a pause: enough to have requests under way at any time.
const CLIENTS: u64 = 20;

/// The number of replies after which shutdown begins.
const WARM: u64 = 5_000;

/// Sends requests until the server sends `bye`, and then reads the remaining replies. Requests may
/// be ahead of replies by the size of the window. `on_reply` is called for each reply with the
/// number so far. Returns the number of requests sent; each had its reply, in order.
async fn request(address: SocketAddr, client: u64, on_reply: impl Fn(u64)) -> io::Result<u64> {
    const WINDOW: u64 = 8;
    let (reader, mut writer) = TcpStream::connect(address).await?.into_split();
    let mut lines = BufReader::new(reader).lines();
    let (mut sent, mut heard, mut bye) = (0, 0, false);
    while !bye || heard < sent {
        while !bye && sent < heard + WINDOW {
            writer.write_all(format!("{}\n", client + sent).as_bytes()).await?;
            sent += 1;
        }
        match lines.next_line().await? {
            Some(line) if line == "bye" => bye = true,
            Some(line) => {
                assert_eq!(line, ((client + heard) * (client + heard)).to_string());
                heard += 1;
                on_reply(heard);
            }
            None => break,
        }
    }
    writer.shutdown().await?;
    assert_eq!(heard, sent, "requests were lost");
    assert_eq!(lines.next_line().await?, None, "a reply without a request");
    Ok(sent)
}

async fn check() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let shutdown = Shutdown::new();
    serve(&shutdown, listener);

    // The number of replies, and of clients that have one: a client that is not accepted yet is
    // refused, as it should be.
    let (replied, mut count) = blitz_io::channel::watch::channel((0, 0));
    let replied = std::sync::Arc::new(replied);
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let replied = replied.clone();
        clients.spawn(request(address, client, move |heard| {
            replied.send_modify(|(all, served)| {
                *all += 1;
                *served += u64::from(heard == 1);
            });
        }));
    }
    let warm = count.wait_for(|(all, served)| *all >= WARM && *served == CLIENTS).await;
    drop(warm.expect("clients do not give up"));

    let report = drain(&shutdown, Duration::from_secs(30)).await;
    let mut sent = 0;
    while let Some(client) = clients.join_next().await {
        sent += client.expect("no client panics")?;
    }
    assert_eq!(count.borrow().0, sent);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.finished as u64, CLIENTS + 1, "the connections, and the listener");
    println!("{sent} requests were sent and {sent} got a reply; {report}");
    let refused = TcpStream::connect(address).await.expect_err("the listener is closed");
    println!("a client that came later heard: {refused}");

    // A client that neither sends anything nor closes its connection.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let shutdown = Shutdown::new();
    serve(&shutdown, listener);
    let mut silent = TcpStream::connect(address).await?;
    silent.write_all(b"3\n").await?;
    let mut reply = [0; 2];
    silent.read_exact(&mut reply).await?;
    assert_eq!(&reply, b"9\n");
    let report = drain(&shutdown, Duration::from_secs(2)).await;
    assert_eq!(report.aborted.len(), 1, "{report}");
    let name = format!("connection of {}", silent.local_addr()?);
    assert_eq!(report.aborted[0].name(), Some(name.as_str()));
    println!("{report}");
    let mut rest = String::new();
    silent.read_to_string(&mut rest).await?;
    assert_eq!(rest, "bye\n", "it was notified, and then cut off");
    Ok(())
}
