//! A chat server: each line that one guest sends goes to all the others.
//!
//! One broadcast channel, and two loops for each guest: lines from the socket go into the channel,
//! and lines of other guests come out of it. A guest who reads too slowly gets a note of how many
//! lines were missed; the other guests do not wait for it.
//!
//! With an address (`chat 127.0.0.1:7001`) it serves forever: talk to it with `nc`. Without one,
//! three guests talk to each other and check what they receive.

#![forbid(unsafe_code)]

use std::{io, net::SocketAddr, time::Duration};

use blitz_io::{
    channel::broadcast::{self, error::RecvError},
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::sleep,
};

/// The number of messages that are kept for a guest that lags behind.
const KEPT: usize = 256;
/// The longest line that is read, so that a client cannot fill our memory.
const LONGEST: u64 = 4096;

/// A line that a guest sent.
#[derive(Clone, Debug)]
struct Said {
    by: SocketAddr,
    line: String,
}

#[blitz_io::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let bound = listener.local_addr()?;
    println!("chat listens at {bound}");
    if address.is_some() {
        return serve(listener).await;
    }
    let server = blitz_io::spawn(serve(listener));
    check(bound).await?;
    server.abort();
    println!("three guests heard each other, and not themselves");
    Ok(())
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let (room, _) = broadcast::channel(KEPT);
    loop {
        let (stream, guest) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let room = room.clone();
        blitz_io::spawn(async move {
            if let Err(error) = attend(stream, guest, room).await {
                eprintln!("{guest}: {error}");
            }
        });
    }
}

/// Serves one guest, from the greeting to the end.
async fn attend(
    stream: TcpStream,
    guest: SocketAddr,
    room: broadcast::Sender<Said>,
) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let heard = room.subscribe();
    // A guest that has received this line misses nothing that is sent from now on.
    writer.write_all(b"welcome\n").await?;
    // Whichever loop ends first ends the other: a guest who is gone neither sends nor receives.
    blitz_io::select! {
        ended = speak(reader, guest, &room) => ended,
        ended = hear(heard, guest, writer) => ended,
    }
}

async fn speak(
    reader: OwnedReadHalf,
    by: SocketAddr,
    room: &broadcast::Sender<Said>,
) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = String::new();
        if (&mut reader).take(LONGEST).read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if !line.ends_with('\n') && line.len() as u64 == LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
        }
        let line = line.trim_end().to_owned();
        // An error means that there is no receiver, which is not a failure.
        let _ = room.send(Said { by, line });
    }
}

async fn hear(
    mut heard: broadcast::Receiver<Said>,
    guest: SocketAddr,
    mut writer: OwnedWriteHalf,
) -> io::Result<()> {
    loop {
        let text = match heard.recv().await {
            Ok(said) if said.by == guest => continue,
            Ok(said) => format!("{}\n", said.line),
            Err(RecvError::Lagged(missed)) => format!("({missed} lines missed)\n"),
            Err(RecvError::Closed) => return Ok(()),
        };
        writer.write_all(text.as_bytes()).await?;
    }
}

/// A guest for the check.
struct Guest {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Guest {
    async fn enter(room: SocketAddr) -> io::Result<Self> {
        let (reader, writer) = TcpStream::connect(room).await?.into_split();
        let mut guest = Self { lines: BufReader::new(reader).lines(), writer };
        assert_eq!(guest.heard().await?, "welcome");
        Ok(guest)
    }

    async fn say(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(format!("{line}\n").as_bytes()).await
    }

    async fn heard(&mut self) -> io::Result<String> {
        self.lines.next_line().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

async fn check(room: SocketAddr) -> io::Result<()> {
    let mut ann = Guest::enter(room).await?;
    let mut bob = Guest::enter(room).await?;
    let mut eve = Guest::enter(room).await?;
    ann.say("good evening").await?;
    for guest in [&mut bob, &mut eve] {
        assert_eq!(guest.heard().await?, "good evening");
    }
    bob.say("hello, Ann").await?;
    // Ann did not receive her own line in between.
    for guest in [&mut ann, &mut eve] {
        assert_eq!(guest.heard().await?, "hello, Ann");
    }
    // One guest leaves; the others continue.
    drop(eve);
    ann.say("has Eve gone?").await?;
    assert_eq!(bob.heard().await?, "has Eve gone?");
    Ok(())
}
