//! A TCP echo server and its clients, in one runtime, for a while.
//!
//! Each client sends a request, waits for the reply, checks it and repeats, so there are as many
//! requests under way as there are connections. Both ends are tasks of the same runtime, so this
//! measures the cost of a request on both sides together.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The size of a request: small, as most are. Picked.
const BYTES: usize = 64;
/// The size of a read buffer: more than a request, as in real programs. A read that fills less than
/// its buffer has emptied the socket, so no further read is tried in vain.
const ROOM: usize = 1024;

/// The result of the load.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub(crate) took: Duration,
    /// The number of replies that did not match their request.
    pub(crate) wrong: u64,
    /// The number of reads and writes that moved bytes, or saw the end, on both sides.
    pub(crate) moves: u64,
    /// The time of each request, sorted.
    times: Vec<Duration>,
}

impl Load {
    /// Adds another client's result.
    fn add(&mut self, mut other: Self) {
        self.wrong += other.wrong;
        self.moves += other.moves;
        self.times.append(&mut other.times);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.times.len() as u64
    }

    /// Returns the time within which this percentage of the requests had a reply.
    pub(crate) fn percentile(&self, of_hundred: usize) -> Duration {
        let rank = (self.times.len() * of_hundred).div_ceil(100).max(1);
        self.times.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Serves and loads for this time. All sockets are closed when it returns.
pub(crate) async fn run(connections: usize, time: Duration) -> io::Result<Load> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    let serving = blitz_io::spawn(serve(listener, connections));
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..connections {
        clients.spawn(client(server, number as u64, start + time));
    }
    let mut load = Load::default();
    while let Some(ended) = clients.join_next().await {
        load.add(ended??);
    }
    load.took = start.elapsed();
    load.moves += serving.await??;
    load.times.sort_unstable();
    Ok(load)
}

/// Accepts this many clients, and serves until the last has disconnected. Returns the number of
/// reads and writes.
async fn serve(listener: TcpListener, connections: usize) -> io::Result<u64> {
    let mut echoes = JoinSet::new();
    for _ in 0..connections {
        let (stream, _) = listener.accept().await?;
        echoes.spawn(echo(stream));
    }
    let mut moves = 0;
    while let Some(ended) = echoes.join_next().await {
        moves += ended??;
    }
    Ok(moves)
}

async fn echo(mut stream: TcpStream) -> io::Result<u64> {
    stream.set_nodelay(true)?;
    let mut buf = [0; ROOM];
    let mut moves = 0;
    loop {
        let count = stream.read(&mut buf).await?;
        moves += 1;
        if count == 0 {
            return Ok(moves);
        }
        moves += write(&mut stream, &buf[..count]).await?;
    }
}

/// Writes all bytes, and returns the number of calls.
async fn write(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<u64> {
    let mut moves = 0;
    while !bytes.is_empty() {
        let count = stream.write(bytes).await?;
        bytes = &bytes[count..];
        moves += 1;
    }
    Ok(moves)
}

/// Sends requests until the deadline, at least one.
async fn client(server: SocketAddr, number: u64, deadline: Instant) -> io::Result<Load> {
    let mut stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let mut load = Load::default();
    let mut sent = Instant::now();
    while sent < deadline || load.times.is_empty() {
        let mut question = [number as u8; BYTES];
        // No two requests are equal, so a reply cannot pass for another.
        question[..8].copy_from_slice(&number.to_le_bytes());
        question[8..16].copy_from_slice(&load.requests().to_le_bytes());
        load.moves += write(&mut stream, &question).await?;
        let mut heard = [0; ROOM];
        let mut filled = 0;
        while filled < BYTES {
            match stream.read(&mut heard[filled..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
            load.moves += 1;
        }
        load.wrong += u64::from(heard[..filled] != question);
        let now = Instant::now();
        load.times.push(now - sent);
        sent = now;
    }
    Ok(load)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Load, run};

    #[test]
    fn percentiles_are_times_that_occurred() {
        let ms = Duration::from_millis;
        let load = Load { times: (1..=200).map(ms).collect(), ..Load::default() };
        let found = [0, 50, 99, 100].map(|of_hundred| load.percentile(of_hundred));
        assert_eq!(found, [ms(1), ms(100), ms(198), ms(200)]);
        assert_eq!(Load::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn a_short_load_serves_every_client_and_ends() {
        let load = blitz_io::run(run(3, Duration::from_millis(50))).unwrap();
        assert!(load.requests() >= 3, "each client had time for one: {load:?}");
        assert_eq!(load.wrong, 0);
        // A request and a reply, each written and read, and three reads that saw the end.
        assert!(load.moves >= 4 * load.requests() + 3, "{load:?}");
        assert!(load.times.is_sorted());
        assert!(load.took >= Duration::from_millis(50));
    }
}
