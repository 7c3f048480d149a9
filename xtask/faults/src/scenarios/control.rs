//! Controls: scenarios that must fail or hang, because a check that cannot fail shows nothing.

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    echo,
    flavour::Flavour,
    outcome::{During, Outcome, Verdict},
};

/// Runs a server that sends back something else.
pub(super) fn wrong(flavour: Flavour) -> Verdict {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        let mut client = TcpStream::connect(listener.local_addr().during("local_addr")?)
            .await
            .during("connect")?;
        let (mut stream, _) = listener.accept().await.during("accept")?;
        stream.write_all(&echo::message(1, 8)).await.during("write")?;
        echo::exchange(&mut client, 1, 7).await?;
        Ok(Outcome::Passed("no check has noticed".into()))
    })
}

/// Waits for a read to which no peer writes.
pub(super) fn hang(flavour: Flavour) -> Verdict {
    flavour.runtime()?.block_on(async {
        let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
        let client = TcpStream::connect(listener.local_addr().during("local_addr")?);
        let mut client = client.await.during("connect")?;
        let read = client.read(&mut [0; 1]).await.during("read")?;
        Ok(Outcome::Passed(format!("{read} bytes came without a sender")))
    })
}
