//! Sockets, files, children and signals.

use std::{io, process::Stdio, sync::atomic::Ordering::SeqCst};

use blitz_io::{
    fs,
    io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket, UnixStream},
    process::Command,
    signal::unix::{SignalKind, signal},
    time,
};

use super::{micros, tasks::judge};
use crate::{
    kernel,
    ledger::Kind,
    plan::{ChildPlan, Micros, Step},
    world::StepContext,
};

const LOOPBACK: &str = "127.0.0.1:0";

pub(super) async fn step(cx: &StepContext, step: &Step) {
    let (what, done) = match step {
        Step::Tcp { bytes, limit } => ("tcp", tcp(cx, *bytes, *limit).await),
        Step::Udp { datagrams } => ("udp", udp(cx, *datagrams).await),
        Step::Unix { bytes, limit } => ("unix", unix(cx, *bytes, *limit).await),
        Step::File { bytes } => ("file", file(cx, *bytes).await),
        Step::Child(plan) => ("child", child(cx, *plan).await),
        Step::Signal => ("signal", signalled(cx).await),
        _ => unreachable!("no step of this file"),
    };
    cx.check(what, done);
}

/// Returns bytes that differ from position to position and from step to step.
fn pattern(cx: &StepContext, count: u32) -> Vec<u8> {
    let number = cx.world.numbers.fetch_add(1, SeqCst);
    (0..u64::from(count)).map(|at| (at ^ (at >> 8) ^ number) as u8).collect()
}

/// Writes all bytes and, concurrently, reads as many; returns what was read.
async fn exchange(
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    bytes: &[u8],
    limit: Option<Micros>,
) -> io::Result<Vec<u8>> {
    let write = async {
        writer.write_all(bytes).await?;
        writer.shutdown().await
    };
    let read = async {
        let (mut got, mut filled) = (vec![0; bytes.len()], 0);
        while filled < got.len() {
            let read = reader.read(&mut got[filled..]);
            let count = match limit {
                None => read.await?,
                // A read that is dropped has consumed nothing.
                Some(limit) => match time::timeout(micros(limit.max(50)), read).await {
                    Ok(count) => count?,
                    Err(_) => continue,
                },
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += count;
        }
        Ok(got)
    };
    let ((), got) = blitz_io::try_join!(write, read)?;
    Ok(got)
}

async fn tcp(cx: &StepContext, bytes: u32, limit: Option<Micros>) -> io::Result<()> {
    let listener = TcpListener::bind(LOOPBACK).await?;
    let address = listener.local_addr()?;
    let token = cx.token(Kind::Task);
    let server = blitz_io::spawn(async move {
        let _token = token;
        let (stream, _) = listener.accept().await?;
        let (mut reader, mut writer) = stream.into_split();
        blitz_io::io::copy(&mut reader, &mut writer).await
    });
    let sent = pattern(cx, bytes);
    let (reader, writer) = TcpStream::connect(address).await?.into_split();
    let got = exchange(reader, writer, &sent, limit).await?;
    cx.ensure(got == sent, || "an echo by TCP differs".into());
    if let Some(copied) = judge(cx, server.await, false) {
        cx.check("the server", copied);
    }
    Ok(())
}

async fn udp(cx: &StepContext, datagrams: u32) -> io::Result<()> {
    let (left, right) = (UdpSocket::bind(LOOPBACK).await?, UdpSocket::bind(LOOPBACK).await?);
    let (to, from) = (right.local_addr()?, left.local_addr()?);
    for _ in 0..datagrams {
        let sent = pattern(cx, 500);
        left.send_to(&sent, to).await?;
        let mut got = [0; 600];
        let (count, peer) = right.recv_from(&mut got).await?;
        cx.ensure(got[..count] == sent && peer == from, || "a datagram differs".into());
    }
    Ok(())
}

async fn unix(cx: &StepContext, bytes: u32, limit: Option<Micros>) -> io::Result<()> {
    let (left, right) = UnixStream::pair()?;
    let sent = pattern(cx, bytes);
    let ((left_reader, left_writer), (right_reader, right_writer)) =
        (left.into_split(), right.into_split());
    let (one, other) = blitz_io::try_join!(
        exchange(left_reader, left_writer, &sent, limit),
        exchange(right_reader, right_writer, &sent, None),
    )?;
    cx.ensure(one == sent && other == sent, || "what a Unix socket carried differs".into());
    Ok(())
}

async fn file(cx: &StepContext, bytes: u32) -> io::Result<()> {
    let bytes = pattern(cx, bytes);
    let name = format!("file-{}", cx.world.numbers.fetch_add(1, SeqCst));
    let path = cx.world.folder.join(name);
    fs::write(&path, &bytes).await?;
    let mut file = fs::File::options().read(true).write(true).open(&path).await?;
    file.seek(io::SeekFrom::End(0)).await?;
    file.write_all(&bytes).await?;
    file.flush().await?;
    file.seek(io::SeekFrom::Start(0)).await?;
    let mut got = Vec::new();
    file.read_to_end(&mut got).await?;
    cx.ensure(got == [&bytes[..], &bytes[..]].concat(), || "a file differs".into());
    fs::remove_file(&path).await
}

async fn child(cx: &StepContext, plan: ChildPlan) -> io::Result<()> {
    let program = match plan {
        ChildPlan::Awaited | ChildPlan::Left => "true",
        ChildPlan::Killed(_) | ChildPlan::KilledByDrop(_) => "sleep",
        ChildPlan::Echo(_) => "cat",
    };
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A step may be dropped at any point, and no child may outlive the round for long.
    command.kill_on_drop(plan != ChildPlan::Left);
    match plan {
        ChildPlan::Left => drop(command.spawn()?),
        ChildPlan::Awaited => {
            let status = command.status().await?;
            cx.ensure(status.success(), || format!("`true` ended with {status}"));
        }
        ChildPlan::Killed(after) => {
            let mut child = command.arg("1000").spawn()?;
            time::sleep(micros(after)).await;
            child.kill().await?;
        }
        ChildPlan::KilledByDrop(after) => {
            let child = command.arg("1000").spawn()?;
            time::sleep(micros(after)).await;
            drop(child);
        }
        ChildPlan::Echo(bytes) => {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let sent = pattern(cx, bytes);
            let closed = || io::Error::other("a stream of the child is missing");
            let writer = child.stdin.take().ok_or_else(closed)?;
            let reader = child.stdout.take().ok_or_else(closed)?;
            let got = exchange(reader, writer, &sent, None).await?;
            cx.ensure(got == sent, || "what `cat` printed differs".into());
            let status = child.wait().await?;
            cx.ensure(status.success(), || format!("`cat` ended with {status}"));
        }
    }
    Ok(())
}

/// Checks that a listener that exists before the signal is sent receives it.
///
/// A listener whose runtime has ended receives nothing, and a job may wait for it outside of all
/// tasks. So the wait has a time limit: the timer panics when its runtime ends, which ends the
/// wait.
async fn signalled(cx: &StepContext) -> io::Result<()> {
    let mut listener = signal(SignalKind::user_defined1())?;
    kernel::raise(libc::SIGUSR1);
    let heard = time::timeout(cx.world.options.deadline / 2, listener.recv()).await;
    cx.ensure(heard == Ok(Some(())) || cx.is_ending(), || "a signal was not heard".into());
    Ok(())
}
