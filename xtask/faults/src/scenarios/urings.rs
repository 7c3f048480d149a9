//! Runtimes with urings are created and dropped, with sockets registered when they end: each must
//! close its descriptors, and the ports must be free again.

use blitz_io::{net::TcpListener, runtime::machine::Machine};

use crate::{
    echo,
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

const RUNTIMES: usize = 200;

pub(super) fn run(flavour: Flavour) -> Verdict {
    match Machine::probe().io_backend {
        Ok(in_force) if in_force == "io_uring" => {}
        Ok(other) | Err(other) => return Ok(Outcome::Skipped(other)),
    }
    // The first run opens what a process opens only once, such as the system's random numbers.
    one(flavour, 0)?;
    let before = kernel::open_descriptors();
    for number in 1..=RUNTIMES {
        one(flavour, number)?;
        let now = kernel::open_descriptors();
        ensure!(now == before, "{now} descriptors are open after {number}, {before} before");
    }
    Ok(Outcome::Passed(format!("{RUNTIMES} runtimes left no descriptor")))
}

fn one(flavour: Flavour, number: usize) -> Result<(), String> {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        let address = listener.local_addr().during("local_addr")?;
        drop(listener);
        let again = TcpListener::bind(address).await.during("bind to a port that was let go")?;
        drop(again);
        let (address, _server) = echo::server().await?;
        let mut stream = echo::connect(address).await?;
        echo::exchange(&mut stream, 1, number as u64).await.during("an exchange")?;
        Ok(())
    })
}
