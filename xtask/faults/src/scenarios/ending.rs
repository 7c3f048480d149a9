//! The runtime ends in the middle of work: messages, timers, connections and resets under way, with
//! each way to end it. It must end soon, every task must be dropped, no descriptor may stay open,
//! and outside clients must see the end of their connections.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use blitz_io::{io::AsyncReadExt, net::TcpStream, runtime::Runtime, time};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

const ROUNDS: u64 = 24;
/// The time limit for the end: nothing that runs here occupies a worker for long.
const SOON: Duration = Duration::from_secs(5);

pub(super) fn run(flavour: Flavour) -> Verdict {
    let before = kernel::open_descriptors();
    for round in 0..ROUNDS {
        let alive = Arc::new(AtomicUsize::new(0));
        let runtime = flavour.runtime()?;
        let address = runtime.block_on(begin(alive.clone()))?;
        let outside: Vec<_> = (0..2).map(|_| thread::spawn(move || outsider(address))).collect();
        // A `current_thread` runtime works only in here; each round has a different delay.
        let delay = Duration::from_micros(500 + 1_700 * (round % 12));
        runtime.block_on(async { time::sleep(delay).await });
        let start = Instant::now();
        end(runtime, round);
        let took = start.elapsed();
        ensure!(took < SOON, "round {round}: the runtime took {took:?} to end");
        for thread in outside {
            let result = thread.join().map_err(|_| "a client panicked".to_owned())?;
            result.during(&format!("round {round}: a client outside"))?;
        }
        wait(&format!("round {round}: tasks are not dropped"), || {
            // SeqCst: pairs with the guards' increments and decrements, so that none is missed;
            // speed does not matter.
            alive.load(SeqCst) == 0
        })?;
        wait(&format!("round {round}: descriptors stay open"), || {
            kernel::open_descriptors() <= before
        })?;
    }
    Ok(Outcome::Passed(format!("{ROUNDS} runtimes ended in the middle of their work")))
}

/// Ends a runtime, in turn, by a drop, by a shutdown with a time limit, and by one that does not
/// wait.
fn end(runtime: Runtime, round: u64) {
    match round % 3 {
        0 => drop(runtime),
        1 => runtime.shutdown_timeout(SOON),
        _ => runtime.shutdown_background(),
    }
}

/// Waits until a condition holds that follows the end asynchronously.
fn wait(otherwise: &str, mut holds: impl FnMut() -> bool) -> Result<(), String> {
    let start = Instant::now();
    while !holds() {
        ensure!(start.elapsed() < PATIENCE, "{otherwise}");
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A guard that is counted as long as it lives.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        // SeqCst: pairs with the load in `run`.
        count.fetch_add(1, SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // SeqCst: pairs with the load in `run`.
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Starts one of everything, none of which ends by itself.
async fn begin(alive: Arc<AtomicUsize>) -> Result<SocketAddr, String> {
    let (address, _server) = echo::server().await?;
    for id in 0..12u64 {
        let guard = Alive::new(&alive);
        blitz_io::spawn(async move {
            let _guard = guard;
            let mut stream = echo::connect(address).await?;
            for number in 0.. {
                echo::exchange(&mut stream, id, number).await?;
            }
            Ok::<_, String>(())
        });
        let guard = Alive::new(&alive);
        blitz_io::spawn(async move {
            let _guard = guard;
            loop {
                // Some connections are reset, some end in order, some are cancelled in the middle.
                let _ = time::timeout(Duration::from_micros(300), brief(address, id)).await;
            }
        });
        let guard = Alive::new(&alive);
        blitz_io::spawn(async move {
            let _guard = guard;
            time::sleep(Duration::from_secs(3600)).await;
        });
    }
    Ok(address)
}

async fn brief(address: SocketAddr, id: u64) -> Result<(), String> {
    let mut stream = TcpStream::connect(address).await.during("connect")?;
    if id.is_multiple_of(2) {
        kernel::end_with_reset(&stream).during("linger")?;
    }
    echo::exchange(&mut stream, id, 0).await?;
    stream.read(&mut [0; 1]).await.during("read").map(drop)
}

/// Exchanges messages until the server is gone; returns an error if a read times out instead.
fn outsider(address: SocketAddr) -> std::io::Result<()> {
    // The server may be gone already.
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return Ok(()) };
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reply = [0; 16];
    loop {
        if stream.write_all(&echo::message(99, 1)).is_err() {
            return Ok(());
        }
        match stream.read_exact(&mut reply) {
            Ok(()) => {}
            // The error of a read that timed out.
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => return Err(why),
            Err(_) => return Ok(()),
        }
    }
}
