//! A socket that two runtimes use: registered with one and polled by tasks of the other, in halves
//! by both, and twice, as two descriptors of one connection. When the first runtime ends, tasks of
//! the second that wait for its driver must get an error.

use std::{thread, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Handle, Runtime},
    sync::oneshot,
    task::JoinHandle,
    time,
};

use crate::{
    echo::{self, PATIENCE},
    flavour::Flavour,
    outcome::{During, Outcome, Verdict, ensure},
};

const ROUNDS: u64 = 300;

pub(super) fn run(flavour: Flavour) -> Verdict {
    let first = First::begin(flavour)?;
    let second = flavour.runtime()?;
    let handle = first.handle.clone();
    let (client, server) = second.block_on(async {
        // Both ends are registered with the first runtime; tasks of the second use them.
        let (client, server) = within(handle.spawn(pair())).await??;
        let (client, server) = halves(&handle, client, server).await?;
        twice(&handle, client, server).await
    })?;
    let waiting = second.spawn(async move {
        let mut client = client;
        let read = time::timeout(PATIENCE, client.read(&mut [0; 1])).await;
        drop(server);
        read
    });
    second.block_on(async {
        // By now the read waits, or it will fail at once.
        time::sleep(Duration::from_millis(20)).await;
        first.end()?;
        let result = within(waiting).await?;
        let result = result.map_err(|_| "a read at a driver that has ended waits for ever")?;
        match result {
            Err(why) if why.to_string().contains("shutdown") => {}
            other => return Err(format!("a read at a driver that has ended returned {other:?}")),
        }
        Ok(Outcome::Passed(format!("{} messages across two runtimes", 2 * ROUNDS)))
    })
}

/// Returns a task's output, or an error if it does not end in time.
async fn within<T>(task: JoinHandle<T>) -> Result<T, String> {
    time::timeout(PATIENCE, task).await.during("a task of another runtime")?.during("a task")
}

/// A runtime that runs on a thread of its own.
struct First {
    handle: Handle,
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl First {
    fn begin(flavour: Flavour) -> Result<Self, String> {
        let runtime: Runtime = flavour.runtime()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = thread::spawn(move || {
            let _ = runtime.block_on(ended);
        });
        Ok(Self { handle, end, thread })
    }

    fn end(self) -> Result<(), String> {
        let _ = self.end.send(());
        self.thread.join().map_err(|_| "the first runtime panicked".into())
    }
}

async fn pair() -> Result<(TcpStream, TcpStream), String> {
    let listener = TcpListener::bind(echo::LOOPBACK).await.during("bind")?;
    let client = echo::connect(listener.local_addr().during("local_addr")?).await?;
    let (server, _) = listener.accept().await.during("accept")?;
    Ok((client, server))
}

/// Puts the server's reader on one runtime, its writer on the other, and the client here.
async fn halves(
    first: &Handle,
    mut client: TcpStream,
    server: TcpStream,
) -> Result<(TcpStream, TcpStream), String> {
    let (mut reader, mut writer) = server.into_split();
    let (send, mut receive) = blitz_io::sync::mpsc::channel::<[u8; 16]>(4);
    let reading = first.spawn(async move {
        for _ in 0..ROUNDS {
            let mut message = [0; 16];
            reader.read_exact(&mut message).await.during("read in the first")?;
            send.send(message).await.during("send")?;
        }
        Ok::<_, String>(reader)
    });
    let writing = blitz_io::spawn(async move {
        while let Some(message) = receive.recv().await {
            writer.write_all(&message).await.during("write in the second")?;
        }
        Ok::<_, String>(writer)
    });
    for number in 0..ROUNDS {
        echo::exchange(&mut client, 1, number).await?;
    }
    let (reader, writer) = (within(reading).await??, within(writing).await??);
    Ok((client, reader.reunite(writer).during("reunite")?))
}

/// Registers a second descriptor of the server's end with the second runtime.
async fn twice(
    first: &Handle,
    mut client: TcpStream,
    server: TcpStream,
) -> Result<(TcpStream, TcpStream), String> {
    let std = server.into_std().during("into_std")?;
    let copy = std.try_clone().during("try_clone")?;
    let guard = first.enter();
    let ours = TcpStream::from_std(std).during("from_std in the first")?;
    drop(guard);
    let mut theirs = TcpStream::from_std(copy).during("from_std in the second")?;
    let mut ours = ours;
    for number in 0..ROUNDS {
        // In turn, one of the two reads and the other replies; both get each event.
        let (reader, writer) =
            if number % 2 == 0 { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
        let reply = async {
            let mut message = [0; 16];
            let read = time::timeout(PATIENCE, reader.read_exact(&mut message)).await;
            read.map_err(|_| format!("message {number} did not arrive"))?.during("read")?;
            writer.write_all(&message).await.during("write")
        };
        let (sent, replied) = blitz_io::join!(echo::exchange(&mut client, 2, number), reply);
        sent?;
        replied?;
    }
    let left = theirs.try_read(&mut [0; 1]);
    let empty = left.as_ref().is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock);
    ensure!(empty, "a message came twice: {left:?}");
    Ok((client, ours))
}
