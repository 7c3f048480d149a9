//! 9,000 connections at once (2,000 with `poll`): all must be served, they must cost nothing while
//! they are silent, and all must be closed at the end.

use std::{net::SocketAddr, time::Duration};

use blitz_io::{
    net::TcpStream,
    task::JoinSet,
    time::{self, Instant},
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

const WANTED: usize = 9_000;
/// The number of connections with `poll(2)`, which is passed every descriptor at each wait, so its
/// time grows with the square: on one thread 9,000 take minutes.
const WANTED_OF_POLL: usize = 2_000;
/// A generous bound on the other open descriptors.
const OTHERS: u64 = 200;
/// The number of concurrent connection attempts: fewer than the listener's queue holds.
const AT_ONCE: usize = 200;
const SILENCE: Duration = Duration::from_secs(1);

pub(super) fn run(flavour: Flavour) -> Verdict {
    let by_poll = std::env::var("BLITZ_IO_BACKEND").is_ok_and(|name| name == "poll");
    let wanted = if by_poll { WANTED_OF_POLL } else { WANTED };
    let (now, most) = kernel::descriptor_limits().during("getrlimit")?;
    let needed = 2 * wanted as u64 + OTHERS;
    let limit = needed.min(most).max(now);
    kernel::limit_descriptors(limit).during("setrlimit")?;
    let count = wanted.min((limit.saturating_sub(OTHERS) / 2) as usize);
    let before = kernel::open_descriptors();
    let runtime = flavour.runtime()?;
    let spent = runtime.block_on(all(count))?;
    drop(runtime);
    let after = kernel::open_descriptors();
    ensure!(after <= before, "{after} descriptors are open at the end, {before} were at first");
    let fewer = match count {
        WANTED => "",
        _ if count < wanted => " (the limit of descriptors allows no more)",
        _ => " (9,000 take poll minutes)",
    };
    Ok(Outcome::Passed(format!(
        "{count} connections{fewer}, {spent:?} of processor a silent second"
    )))
}

/// Connects all clients; returns the processor time of a second in which no client sends.
async fn all(count: usize) -> Result<Duration, String> {
    let (address, server) = echo::server().await?;
    let mut streams = Vec::with_capacity(count);
    while streams.len() < count {
        let some = AT_ONCE.min(count - streams.len());
        streams.extend(connect(address, streams.len(), some).await?);
    }
    let streams = exchange(streams, 1).await?;
    let before = kernel::processor_time();
    time::sleep(SILENCE).await;
    let spent = kernel::processor_time() - before;
    ensure!(spent < SILENCE / 10, "{spent:?} of processor were spent on silent connections");
    let streams = exchange(streams, 2).await?;
    drop(streams);
    ensure!(!server.is_finished(), "the server gave up: {}", server.await.during("server")?);
    server.abort();
    let ended = Instant::now();
    while blitz_io::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
        ensure!(ended.elapsed() < PATIENCE, "tasks of closed connections do not end");
        time::sleep(Duration::from_millis(5)).await;
    }
    Ok(spent)
}

async fn connect(
    address: SocketAddr,
    first: usize,
    some: usize,
) -> Result<Vec<(u64, TcpStream)>, String> {
    let mut tasks = JoinSet::new();
    for id in first..first + some {
        tasks.spawn(async move {
            let mut stream = echo::connect(address).await?;
            echo::exchange(&mut stream, id as u64, 0).await?;
            Ok::<_, String>((id as u64, stream))
        });
    }
    tasks.join_all().await.into_iter().collect()
}

/// Exchanges a message on all connections at once.
async fn exchange(
    streams: Vec<(u64, TcpStream)>,
    number: u64,
) -> Result<Vec<(u64, TcpStream)>, String> {
    let mut tasks = JoinSet::new();
    for (id, mut stream) in streams {
        tasks.spawn(async move {
            echo::exchange(&mut stream, id, number).await?;
            Ok::<_, String>((id, stream))
        });
    }
    tasks.join_all().await.into_iter().collect()
}
