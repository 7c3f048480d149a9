//! ENOSPC from `epoll_ctl`: a new socket must be refused with the system's error code, its
//! descriptor must be closed, and the registered sockets must continue to work.
//!
//! The real limit is one number for the whole machine, so a system call filter returns its error to
//! this process alone.

use std::{io, time::Duration};

use blitz_io::{
    net::{TcpListener, TcpStream, UdpSocket},
    time,
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel::{self, Refusal, Scope},
    outcome::{During, Outcome, Verdict, ensure},
};

const NO_SPACE: Refusal = Refusal {
    call: libc::SYS_epoll_ctl,
    second: Some(libc::EPOLL_CTL_ADD.cast_unsigned()),
    errno: libc::ENOSPC,
};

pub(super) fn run(flavour: Flavour) -> Verdict {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        let address = listener.local_addr().during("local_addr")?;
        let mut client = echo::connect(address).await?;
        let (stream, _) = listener.accept().await.during("accept")?;
        let server = blitz_io::spawn(echo::serve(stream));
        echo::exchange(&mut client, 1, 0).await?;
        let waiting = std::net::TcpStream::connect(address).during("connect")?;

        if let Err(why) = kernel::refuse(&NO_SPACE, Scope::Process) {
            return Ok(Outcome::Skipped(format!("no filter of system calls is allowed: {why}")));
        }
        let before = kernel::open_descriptors();
        for _ in 0..20 {
            refused("bind", TcpListener::bind(echo::LOOPBACK).await)?;
            refused("connect", TcpStream::connect(address).await)?;
            refused("bind of UDP", UdpSocket::bind(echo::LOOPBACK).await)?;
        }
        let accepted = time::timeout(PATIENCE, listener.accept()).await;
        refused("accept", accepted.map_err(|_| "accept waits instead of returning the error")?)?;
        let after = kernel::open_descriptors();
        ensure!(after <= before, "{after} descriptors after the refusals, {before} before");
        for number in 1..100 {
            echo::exchange(&mut client, 1, number).await?;
            time::sleep(Duration::from_micros(100)).await;
        }
        ensure!(!server.is_finished(), "the server of an old connection has ended");
        drop(waiting);
        Ok(Outcome::Passed("61 refusals, and the old connection goes on".into()))
    })
}

fn refused<T>(what: &str, result: io::Result<T>) -> Result<(), String> {
    match result {
        Err(why) if why.raw_os_error() == Some(libc::ENOSPC) => Ok(()),
        Err(why) => Err(format!("{what} returned another error: {why:?}")),
        Ok(_) => Err(format!("{what} succeeded although epoll refuses it")),
    }
}
