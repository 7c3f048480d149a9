//! Runtimes with rings come and go, with sockets that are watched when they end: each takes
//! its descriptors with it, and the ports are free again.

use blitz_io::{net::TcpListener, runtime::machine::Machine};

use crate::{
    echo,
    flavour::Flavour,
    kernel,
    told::{Told, Verdict, While, ensure},
};

const RUNTIMES: usize = 200;

pub(super) fn run(flavour: Flavour) -> Verdict {
    let in_force = Machine::probe().io_backend?;
    if in_force != "io_uring" {
        return Ok(Told::Skipped(in_force));
    }
    // What is opened once for all, such as the random numbers of the system, is open then.
    one(flavour, 0)?;
    let before = kernel::open_descriptors();
    for number in 1..=RUNTIMES {
        one(flavour, number)?;
        let now = kernel::open_descriptors();
        ensure!(now == before, "{now} descriptors are open after {number}, {before} before");
    }
    Ok(Told::Passed(format!("{RUNTIMES} runtimes left no descriptor")))
}

fn one(flavour: Flavour, number: usize) -> Result<(), String> {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::HERE).await.during("bind")?;
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
