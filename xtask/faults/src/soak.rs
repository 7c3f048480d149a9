//! The soak: echo traffic for minutes, with connections, ends, time-outs and cancellations at
//! random. Every frame must arrive exactly once, no connection may stall for a second, and neither
//! memory nor descriptors may grow.
//!
//! A frame has a length, the number of its connection, its own number, and bytes that follow from
//! both. The server checks the numbers as well as the client: a frame that is lost, duplicated or
//! another connection's is detected by the receiver of the next one.
//!
//! Stalled clients are reported by a thread outside of the runtime, because a thread of the runtime
//! would stall with them.
//!
//! # Checked by
//! `a_client_that_stands_still_is_reported`, `a_frame_that_comes_twice_is_seen`

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    time,
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

/// The number of concurrent clients. Picked: more than workers, few enough for two cores.
const CLIENTS: usize = 48;
/// The time without progress that counts as a stall.
const STALL: Duration = Duration::from_secs(1);
/// The interval at which the watch thread checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// If the watch thread itself is this late, the machine was held up and a stall proves nothing.
const HELD_UP: Duration = Duration::from_millis(400);
/// The growth of memory that is allowed in the last third: allocators keep a little more now and
/// then. A leak of 100 bytes a frame would be many times this.
const MORE_MEMORY: u64 = 8 << 20;
/// The frame that requests the server to close the connection.
const LEAVE: u64 = u64::MAX;
const HEAD: usize = 18;
const LONGEST: usize = 6000;

pub(crate) fn soak(length: Duration, flavour: Flavour) -> Verdict {
    ensure!(length >= Duration::from_secs(3), "a soak shorter than 3 s shows nothing");
    let runtime = flavour.runtime()?;
    let before = kernel::open_descriptors();
    let shared = Arc::new(Shared::new());
    let watch = {
        let shared = shared.clone();
        thread::spawn(move || watch(&shared, length))
    };
    let ended = runtime.block_on(clients(shared.clone(), Instant::now() + length));
    // Relaxed: a flag that publishes nothing.
    shared.over.store(true, Relaxed);
    let watched = watch.join().map_err(|_| "the watch panicked".to_owned())?;
    ended?;
    let watched = watched?;
    settled(&runtime, before)?;
    if let Some(why) = shared.wrong() {
        return Err(why);
    }
    ensure!(shared.figures.all_happened(), "some kind of event never came: {}", shared.figures);
    Ok(Outcome::Passed(format!("{}; {watched}", shared.figures)))
}

/// The state that all tasks and the watch thread share.
struct Shared {
    over: AtomicBool,
    /// The number of steps that each client has made.
    steps: Vec<AtomicU64>,
    figures: Figures,
    /// The first thing that went wrong.
    wrong: Mutex<Option<String>>,
}

impl Shared {
    fn new() -> Self {
        Self {
            over: AtomicBool::new(false),
            steps: (0..CLIENTS).map(|_| AtomicU64::new(0)).collect(),
            figures: Figures::default(),
            wrong: Mutex::new(None),
        }
    }

    fn complain(&self, why: String) {
        let mut wrong = self.wrong.lock().unwrap_or_else(|poison| poison.into_inner());
        wrong.get_or_insert(why);
        // Relaxed: a flag that publishes nothing.
        self.over.store(true, Relaxed);
    }

    fn wrong(&self) -> Option<String> {
        self.wrong.lock().unwrap_or_else(|poison| poison.into_inner()).clone()
    }

    fn is_over(&self) -> bool {
        // Relaxed: a flag that publishes nothing.
        self.over.load(Relaxed)
    }
}

/// Statistics of events. Relaxed throughout: figures, which order nothing.
#[derive(Default)]
struct Figures {
    frames: AtomicU64,
    connections: AtomicU64,
    time_outs: AtomicU64,
    cancelled: AtomicU64,
    resets: AtomicU64,
    left: AtomicU64,
}

impl Figures {
    fn all(&self) -> [(u64, &'static str); 6] {
        [
            (self.frames.load(Relaxed), "frames"),
            (self.connections.load(Relaxed), "connections"),
            (self.time_outs.load(Relaxed), "time-outs"),
            (self.cancelled.load(Relaxed), "cancellations"),
            (self.resets.load(Relaxed), "resets"),
            (self.left.load(Relaxed), "ends by the server"),
        ]
    }

    fn all_happened(&self) -> bool {
        self.all().iter().all(|(count, _)| *count > 0)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all().map(|(count, what)| format!("{count} {what}"));
        f.write_str(&all.join(", "))
    }
}

fn bump(figure: &AtomicU64) {
    // Relaxed: a statistic that orders nothing.
    figure.fetch_add(1, Relaxed);
}

/// Marsaglia's xorshift: a random generator whose numbers follow from its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Runs the clients until the time is over, and waits for them.
async fn clients(shared: Arc<Shared>, until: Instant) -> Result<(), String> {
    let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
    let address = listener.local_addr().during("local_addr")?;
    let seen = shared.clone();
    let server = blitz_io::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(blitz_io::spawn(serve(stream, seen.clone()))),
                Err(why) => seen.complain(format!("accept: {why}")),
            }
        }
    });
    let tasks = (0..CLIENTS).map(|slot| {
        let shared = shared.clone();
        blitz_io::spawn(async move {
            // Any odd number; another for each client.
            let mut chance = Chance(0x9e37_79b9 * (2 * slot as u64 + 1));
            while Instant::now() < until && !shared.is_over() {
                if let Err(why) = connection(address, slot, &shared, &mut chance).await {
                    shared.complain(format!("client {slot}: {why}"));
                }
            }
            // A finished client makes no progress, and must not count as stalled.
            shared.steps[slot].store(u64::MAX, Relaxed);
            Ok(())
        })
    });
    echo::all(tasks.collect()).await?;
    server.abort();
    match server.await {
        Err(why) if why.is_cancelled() => Ok(()),
        _ => Err("the server ended too early".into()),
    }
}

fn frame(id: u64, number: u64, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD + length);
    frame.extend((length as u16).to_le_bytes());
    frame.extend(id.to_le_bytes());
    frame.extend(number.to_le_bytes());
    frame.extend((0..length).map(|at| (id ^ number).wrapping_add(at as u64) as u8));
    frame
}

/// Reads a frame; the future may be dropped between any two bytes, because `filled` records the
/// progress. Returns nothing if the stream ends before the first byte.
async fn read_into(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    filled: &mut usize,
) -> io::Result<bool> {
    while *filled < buffer.len() {
        match stream.read(&mut buffer[*filled..]).await? {
            0 if *filled == 0 => return Ok(false),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => *filled += count,
        }
    }
    Ok(true)
}

/// Echoes frames, and checks their numbers. Clients may leave at any point.
async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut expected = 0;
    let mut known = None;
    loop {
        let mut head = [0; HEAD];
        if !matches!(read_into(&mut stream, &mut head, &mut 0).await, Ok(true)) {
            return;
        }
        let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let id = u64::from_le_bytes(head[2..10].try_into().unwrap_or_default());
        let number = u64::from_le_bytes(head[10..].try_into().unwrap_or_default());
        if number == LEAVE {
            return;
        }
        if number != expected || *known.get_or_insert(id) != id || length > LONGEST {
            return shared.complain(format!(
                "the server of {known:?} wanted frame {expected} and got {number} of {id}"
            ));
        }
        expected += 1;
        let mut reply = frame(id, number, length);
        let mut body = vec![0; length];
        if length > 0 && !matches!(read_into(&mut stream, &mut body, &mut 0).await, Ok(true)) {
            return;
        }
        if body != reply[HEAD..] {
            return shared.complain(format!("frame {number} of {id} has other bytes"));
        }
        reply.truncate(HEAD);
        reply.extend(body);
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Runs one connection of a random kind from beginning to end.
async fn connection(
    address: SocketAddr,
    slot: usize,
    shared: &Arc<Shared>,
    chance: &mut Chance,
) -> Result<(), String> {
    let mut stream = echo::connect(address).await?;
    bump(&shared.figures.connections);
    bump(&shared.steps[slot]);
    let id = chance.below(u64::MAX);
    let frames = 1 + chance.below(60);
    for number in 0..frames {
        exchange(&mut stream, id, number, shared, chance).await?;
        bump(&shared.figures.frames);
        bump(&shared.steps[slot]);
        if chance.below(20) == 0 {
            time::sleep(Duration::from_micros(chance.below(3000))).await;
        }
    }
    match chance.below(5) {
        0 => leave(stream, id, shared).await,
        1 => finish(stream).await,
        2 => cancel(stream, id, frames, shared, chance).await,
        3 => {
            kernel::end_with_reset(&stream).during("linger")?;
            bump(&shared.figures.resets);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Exchanges a frame, by reads that are cancelled at random.
async fn exchange(
    stream: &mut TcpStream,
    id: u64,
    number: u64,
    shared: &Shared,
    chance: &mut Chance,
) -> Result<(), String> {
    let sent = frame(id, number, chance.below(LONGEST as u64) as usize);
    stream.write_all(&sent).await.during("write")?;
    let (mut got, mut filled) = (vec![0; sent.len()], 0);
    while filled < got.len() {
        let read = read_into(stream, &mut got, &mut filled);
        if chance.below(4) == 0 {
            let limit = Duration::from_micros(chance.below(200));
            match time::timeout(limit, read).await {
                Ok(read) => ensure!(read.during("read")?, "the server left before frame {number}"),
                Err(_) => bump(&shared.figures.time_outs),
            }
        } else {
            ensure!(read.await.during("read")?, "the server left before frame {number}");
        }
    }
    ensure!(got == sent, "the reply to frame {number} of {id} differs");
    Ok(())
}

/// Requests the server to close, and checks that the connection ends.
async fn leave(mut stream: TcpStream, id: u64, shared: &Shared) -> Result<(), String> {
    stream.write_all(&frame(id, LEAVE, 0)).await.during("write")?;
    let read = stream.read(&mut [0; 1]).await.during("the server's end")?;
    ensure!(read == 0, "the server said something as it left");
    bump(&shared.figures.left);
    Ok(())
}

/// Shuts down our side first; the server's end must follow.
async fn finish(mut stream: TcpStream) -> Result<(), String> {
    stream.shutdown().await.during("shutdown")?;
    let read = stream.read(&mut [0; 1]).await.during("the server's end")?;
    ensure!(read == 0, "the server said something after our end");
    Ok(())
}

/// Aborts a task that exchanges frames forever at some point, with its connection.
async fn cancel(
    mut stream: TcpStream,
    id: u64,
    first: u64,
    shared: &Arc<Shared>,
    chance: &mut Chance,
) -> Result<(), String> {
    let (seen, mut own) = (shared.clone(), Chance(chance.below(u64::MAX - 1) + 1));
    let task = blitz_io::spawn(async move {
        for number in first.. {
            if let Err(why) = exchange(&mut stream, id, number, &seen, &mut own).await {
                return why;
            }
        }
        String::new()
    });
    time::sleep(Duration::from_micros(chance.below(2000))).await;
    task.abort();
    match task.await {
        Err(why) if why.is_cancelled() => {
            bump(&shared.figures.cancelled);
            Ok(())
        }
        Err(why) => Err(format!("an aborted client: {why}")),
        Ok(why) => Err(format!("a client that was to be aborted: {why}")),
    }
}

/// The most memory and descriptors that the watch thread has seen.
#[derive(Default, Clone, Copy)]
struct Most {
    memory: u64,
    descriptors: usize,
}

/// Watches the clients until the end; returns a summary.
fn watch(shared: &Shared, length: Duration) -> Result<String, String> {
    let begun = Instant::now();
    let mut moved: Vec<(u64, Instant)> = vec![(0, begun); CLIENTS];
    let (mut early, mut late) = (Most::default(), Most::default());
    let (mut longest, mut looked) = (Duration::ZERO, Instant::now());
    while !shared.is_over() {
        thread::sleep(CHECK_INTERVAL);
        let held_up = looked.elapsed() > HELD_UP;
        looked = Instant::now();
        for (slot, (steps, at)) in moved.iter_mut().enumerate() {
            // Relaxed: a statistic that orders nothing.
            let now = shared.steps[slot].load(Relaxed);
            if now != *steps || now == u64::MAX || held_up {
                (*steps, *at) = (now, looked);
                continue;
            }
            let still = at.elapsed();
            longest = longest.max(still);
            if still > STALL {
                let why = format!("client {slot} stood still for {still:?} after {now} steps");
                shared.complain(why.clone());
                return Err(why);
            }
        }
        // The maximum of the first two thirds, which warm up, is compared with that of the last.
        let most = if begun.elapsed() < length * 2 / 3 { &mut early } else { &mut late };
        most.memory = most.memory.max(kernel::resident_bytes());
        most.descriptors = most.descriptors.max(kernel::open_descriptors());
    }
    let grown = late.memory.saturating_sub(early.memory);
    ensure!(grown <= MORE_MEMORY, "memory grew by {} KiB in the last third", grown >> 10);
    // Each client has two ends, and for each there may be one that is not closed yet.
    let more = late.descriptors.saturating_sub(early.descriptors);
    ensure!(more <= 2 * CLIENTS, "{more} descriptors more in the last third");
    Ok(format!(
        "no client stood still for more than {longest:?}, {} MiB, {} descriptors at most",
        late.memory.max(early.memory) >> 20,
        late.descriptors.max(early.descriptors)
    ))
}

/// Checks that everything that was opened is closed, and every task has ended.
fn settled(runtime: &Runtime, before: usize) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let (open, tasks) = (kernel::open_descriptors(), runtime.metrics().num_alive_tasks());
        if open <= before && tasks == 0 {
            return Ok(());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "at the end there are {tasks} tasks, and {open} descriptors where {before} were"
        );
        // A `current_thread` runtime works only in here.
        runtime.block_on(time::sleep(Duration::from_millis(5)));
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use blitz_io::{io::AsyncWriteExt, net::TcpListener};

    use super::{Shared, frame, serve, watch};
    use crate::{echo, flavour::Flavour};

    #[test]
    fn a_client_that_stands_still_is_reported() {
        let shared = Shared::new();
        let why = watch(&shared, Duration::from_secs(60)).unwrap_err();
        assert!(why.contains("stood still"), "{why}");
        assert!(shared.is_over(), "the clients are to end");
    }

    #[test]
    fn a_frame_that_comes_twice_is_seen() {
        let shared = Arc::new(Shared::new());
        Flavour::OneThread.runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(echo::LOOPBACK).await.unwrap();
            let mut client = echo::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            client.write_all(&frame(5, 0, 100)).await.unwrap();
            client.write_all(&frame(5, 0, 100)).await.unwrap();
            serve(stream, shared.clone()).await;
        });
        let why = shared.wrong().unwrap();
        assert!(why.contains("wanted frame 1 and got 0"), "{why}");
    }
}
