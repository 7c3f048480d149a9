//! Descriptor numbers that are reused at once: many tasks and threads open and close while events
//! are under way. No event and no byte may reach another socket: each message carries the ID of its
//! client, and sockets to which no peer writes must never be ready.

use std::{
    io::Write,
    net::SocketAddr,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use blitz_io::{
    io::{AsyncWriteExt, Interest, unix::AsyncFd},
    time,
};

use crate::{
    echo,
    flavour::Flavour,
    outcome::{During, Outcome, Verdict, ensure},
};

const CLIENTS: u64 = 16;
const ROUNDS: u64 = 120;
const QUIET: usize = 8;

pub(super) fn run(flavour: Flavour) -> Verdict {
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2).map(|_| opening(over.clone())).collect();
    let found = flavour.runtime()?.block_on(async {
        let (address, _server) = echo::server().await?;
        let quiet: Vec<_> = (0..QUIET).map(|_| blitz_io::spawn(quiet(over.clone()))).collect();
        let noise: Vec<_> = (0..2).map(|_| blitz_io::spawn(noisy(over.clone()))).collect();
        let clients = (0..CLIENTS).map(|id| blitz_io::spawn(client(address, id)));
        let found = echo::all(clients.collect()).await;
        // Relaxed: a flag that publishes nothing.
        over.store(true, Relaxed);
        found?;
        echo::all(noise).await?;
        echo::all(quiet).await
    });
    // Relaxed: a flag that publishes nothing. Set here too for the case that the runtime was not
    // created.
    over.store(true, Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked".to_owned())?;
    }
    found?;
    Ok(Outcome::Passed(format!("{} connections, each with its own messages", CLIENTS * ROUNDS)))
}

/// Starts a thread that opens and closes sockets, which get numbers that tasks just had.
fn opening(over: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        // Relaxed: a flag that publishes nothing.
        while !over.load(Relaxed) {
            let pairs: Vec<_> = (0..4).filter_map(|_| UnixStream::pair().ok()).collect();
            for (near, _) in &pairs {
                let _ = (&*near).write(&[1]);
            }
            drop(pairs);
            thread::yield_now();
        }
    })
}

/// Runs a client that leaves while replies are on the way to it.
async fn client(address: SocketAddr, id: u64) -> Result<(), String> {
    for round in 0..ROUNDS {
        let mut stream = echo::connect(address).await?;
        for number in 0..3 {
            echo::exchange(&mut stream, id, round * 10 + number).await?;
        }
        for number in 3..9 {
            stream.write_all(&echo::message(id, round * 10 + number)).await.during("write")?;
        }
        if round % 2 == 0 {
            blitz_io::task::yield_now().await;
        }
    }
    Ok(())
}

fn watched(stream: UnixStream) -> Result<AsyncFd<UnixStream>, String> {
    stream.set_nonblocking(true).during("set_nonblocking")?;
    // SAFETY: the stream owns its descriptor, and no code here takes it out of it.
    let watched = unsafe { AsyncFd::register_with_interest(stream, Interest::READABLE) };
    watched.during("register")
}

/// Registers a socket, causes an event, and closes the socket before the event is dispatched.
async fn noisy(over: Arc<AtomicBool>) -> Result<(), String> {
    // Relaxed: a flag that publishes nothing.
    while !over.load(Relaxed) {
        for _ in 0..8 {
            let (near, mut far) = UnixStream::pair().during("pair")?;
            let near = watched(near)?;
            far.write_all(&[1]).during("write")?;
            drop(near);
        }
        blitz_io::task::yield_now().await;
    }
    Ok(())
}

/// Watches a socket to which no peer writes and which no peer closes, so it must not become ready,
/// whatever number it has.
async fn quiet(over: Arc<AtomicBool>) -> Result<(), String> {
    // Relaxed: a flag that publishes nothing.
    while !over.load(Relaxed) {
        let (near, _far) = UnixStream::pair().during("pair")?;
        let near = watched(near)?;
        let ready = time::timeout(Duration::from_micros(500), near.readable()).await;
        ensure!(ready.is_err(), "an event reached a socket without a write to it");
    }
    Ok(())
}
