//! EINTR everywhere: signals to every thread, thousands a second, while connections are
//! made, messages exchanged and timers run.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use blitz_io::{net::UdpSocket, task, time};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

const CLIENTS: u64 = 8;
const ROUNDS: u64 = 40;
/// The least number of signals for a storm; ten times as many come in the time of the rounds.
const ENOUGH: u64 = 500;
const EVERY: Duration = Duration::from_micros(200);

pub(super) fn run(flavour: Flavour) -> Verdict {
    kernel::count_signal(libc::SIGALRM).during("sigaction")?;
    kernel::count_signal(libc::SIGUSR1).during("sigaction")?;
    let runtime = flavour.runtime()?;
    kernel::alarm_every(EVERY).during("setitimer")?;
    let storm = Storm::begin();
    let rounds = runtime.block_on(rounds());
    drop(storm);
    kernel::alarm_every(Duration::ZERO).during("setitimer")?;
    rounds?;
    let handled = kernel::signals_handled();
    ensure!(handled >= ENOUGH, "only {handled} signals came: that is no storm");
    Ok(Outcome::Passed(format!("{} exchanges during {handled} signals", CLIENTS * ROUNDS * 8)))
}

/// A thread that sends signals to all others.
struct Storm {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Storm {
    fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = thread::spawn(move || {
            // Relaxed: a flag that publishes nothing.
            while !seen.load(Relaxed) {
                kernel::signal_other_threads(libc::SIGUSR1);
                thread::sleep(EVERY);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // Relaxed: a flag that publishes nothing.
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn rounds() -> Result<(), String> {
    let (address, server) = echo::server().await?;
    let mut tasks = Vec::new();
    for id in 0..CLIENTS {
        tasks.push(blitz_io::spawn(streams(address, id)));
        tasks.push(blitz_io::spawn(datagrams(id)));
        tasks.push(blitz_io::spawn(timers()));
    }
    echo::all(tasks).await?;
    ensure!(!server.is_finished(), "the server gave up: {}", server.await.during("server")?);
    Ok(())
}

async fn streams(address: SocketAddr, id: u64) -> Result<(), String> {
    for round in 0..ROUNDS {
        let mut stream = echo::connect(address).await?;
        for number in 0..8 {
            echo::exchange(&mut stream, id, round * 8 + number).await?;
        }
    }
    Ok(())
}

async fn datagrams(id: u64) -> Result<(), String> {
    let near = UdpSocket::bind(echo::LOOPBACK).await.during("bind")?;
    let far = UdpSocket::bind(echo::LOOPBACK).await.during("bind")?;
    let address = far.local_addr().during("local_addr")?;
    for number in 0..ROUNDS {
        let (sent, mut got) = (echo::message(id, number), [0; 16]);
        near.send_to(&sent, address).await.during("send_to")?;
        let received = time::timeout(PATIENCE, far.recv_from(&mut got)).await;
        received.during("a datagram")?.during("recv_from")?;
        ensure!(got == sent, "{sent:?} was sent and {got:?} received");
    }
    Ok(())
}

/// Checks that no signal shortens a sleep or makes a blocking job fail.
async fn timers() -> Result<(), String> {
    for round in 0..ROUNDS {
        let (start, wanted) = (Instant::now(), Duration::from_micros(300 * (round % 10)));
        time::sleep(wanted).await;
        let slept = start.elapsed();
        ensure!(slept >= wanted, "a sleep of {wanted:?} took {slept:?}");
        ensure!(slept < PATIENCE, "a sleep of {wanted:?} took {slept:?}");
        let result = task::spawn_blocking(move || round).await.during("spawn_blocking")?;
        ensure!(result == round, "a thread returned {result} for {round}");
    }
    Ok(())
}
