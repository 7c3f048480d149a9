//! RST storms: clients, then the server, end their connections by a reset, with data in flight and
//! before they are accepted. Every task that reads or writes must get an error and end; one steady
//! client must notice nothing; no descriptor may be left behind.

use std::{
    io::{ErrorKind, Write},
    net::SocketAddr,
    thread,
    time::Duration,
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time,
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    kernel,
    outcome::{During, Outcome, Verdict, ensure},
};

const THREADS: usize = 4;
const EACH: usize = 150;
const ALL: usize = THREADS * EACH;
const STEADY: u64 = 400;

pub(super) fn run(flavour: Flavour) -> Verdict {
    let runtime = flavour.runtime()?;
    let before = kernel::open_descriptors();
    runtime.block_on(async {
        let by_clients = by_clients().await?;
        by_server().await?;
        let left = settle(before).await;
        ensure!(left <= before, "{left} descriptors are open, {before} were at first");
        Ok(Outcome::Passed(format!(
            "{ALL} resets by clients ({by_clients} reported as such), {EACH} by the server"
        )))
    })
}

/// Waits until at most `wanted` descriptors are open; returns how many are.
async fn settle(wanted: usize) -> usize {
    let start = time::Instant::now();
    loop {
        let open = kernel::open_descriptors();
        if open <= wanted || start.elapsed() > PATIENCE {
            return open;
        }
        time::sleep(Duration::from_millis(5)).await;
    }
}

/// Starts threads that connect, send something and reset.
fn attack(address: SocketAddr) -> Vec<thread::JoinHandle<std::io::Result<()>>> {
    let one = move |number: usize| {
        let mut client = std::net::TcpStream::connect(address)?;
        kernel::end_with_reset(&client)?;
        // Every third sends nothing, so that some are reset before they are accepted.
        if !number.is_multiple_of(3) {
            client.write_all(&[7; 1000])?;
        }
        Ok(())
    };
    (0..THREADS).map(|_| thread::spawn(move || (0..EACH).try_for_each(one))).collect()
}

/// Lets clients reset; returns how many of the server's tasks got an error for a reset.
async fn by_clients() -> Result<usize, String> {
    let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
    let address = listener.local_addr().during("local_addr")?;
    let threads = attack(address);
    let steady = blitz_io::spawn(async move {
        let mut stream = echo::connect(address).await?;
        for number in 0..STEADY {
            echo::exchange(&mut stream, u64::MAX, number).await?;
        }
        Ok::<_, String>(())
    });
    let mut tasks = JoinSet::new();
    for number in 0..=ALL {
        let accepted = time::timeout(PATIENCE, listener.accept()).await;
        let accepted = accepted.map_err(|_| format!("only {number} were accepted"))?;
        tasks.spawn(echo::serve(accepted.during("accept")?.0));
    }
    let mut reported = 0;
    while let Some(ended) = time::timeout(PATIENCE, tasks.join_next())
        .await
        .map_err(|_| format!("{} tasks of reset connections never end", tasks.len()))?
    {
        match ended.during("a task")? {
            Ok(()) => {}
            Err(why)
                if matches!(why.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) =>
            {
                reported += 1;
            }
            Err(why) => return Err(format!("a reset was reported as {why:?}")),
        }
    }
    steady.await.during("the steady client")??;
    for thread in threads {
        thread.join().map_err(|_| "a client panicked".to_owned())?.during("a client")?;
    }
    ensure!(reported > 0, "no task got the error of a reset");
    Ok(reported)
}

/// Lets the server reset while its clients wait for a reply.
async fn by_server() -> Result<(), String> {
    let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
    let address = listener.local_addr().during("local_addr")?;
    for number in 0..EACH {
        let client = blitz_io::spawn(async move {
            let mut client = TcpStream::connect(address).await?;
            client.write_all(&[7; 100]).await?;
            client.read(&mut [0; 100]).await
        });
        let accepted = time::timeout(PATIENCE, listener.accept()).await;
        let (mut stream, _) = accepted.during("a client")?.during("accept")?;
        let read = time::timeout(PATIENCE, stream.read(&mut [0; 10])).await;
        read.during("a client's message")?.during("read")?;
        kernel::end_with_reset(&stream).during("linger")?;
        drop(stream);
        let result = time::timeout(PATIENCE, client).await;
        let result = result.map_err(|_| format!("client {number} never heard of the reset"))?;
        let result = result.during("a client's task")?;
        let reset = result.as_ref().is_err_and(|why| why.kind() == ErrorKind::ConnectionReset);
        ensure!(reset, "client {number} got {result:?}");
    }
    Ok(())
}
