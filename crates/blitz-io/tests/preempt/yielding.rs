//! Tests that operations of the runtime yield when the slice of their poll is over, even if they
//! are ready.

use std::{pin::Pin, task::Poll, time::Duration};

use blitz_io::{
    channel::mpmc,
    fs,
    io::{AsyncReadExt, AsyncWriteExt},
    net::UdpSocket,
    runtime::{Builder, Handle, Preemption},
    stream::{StreamExt, wrappers::ReceiverStream},
    sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch},
    task::{self, JoinSet},
    time,
};

use crate::support::{manual_poll::once, sockets::tcp_pair, watchdog};

/// Spins in one poll until the poll is marked, and then awaits the operation. Returns how often the
/// operation was forced to yield.
async fn forced<T>(operation: impl Future<Output = T>) -> u64 {
    let metrics = Handle::current().metrics();
    watchdog::until(task::should_yield);
    let before = metrics.budget_forced_yield_count();
    operation.await;
    metrics.budget_forced_yield_count() - before
}

type Forced = Pin<Box<dyn Future<Output = u64> + Send>>;

macro_rules! operations {
    ($($name:literal: $setup:block => $held:pat => $operation:expr;)+) => {
        [$(($name, Box::pin(async move {
            let $held = $setup;
            forced($operation).await
        }) as Forced)),+]
    };
}

#[test]
fn every_operation_yields_when_the_slice_is_over() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        // The poll keeps its core, and is marked even so.
        .preemption(Preemption::disabled())
        .on_task_stall(|_| ())
        .enable_all()
        .build()
        .unwrap();
    let operations = operations! {
        "a semaphore": { Semaphore::new(1) } => semaphore => semaphore.acquire();
        "a mutex": { Mutex::new(()) } => mutex => mutex.lock();
        "a lock for readers": { RwLock::new(()) } => lock => lock.read();
        "a lock for writers": { RwLock::new(()) } => lock => lock.write();
        "a notification": {
            let notify = Notify::new();
            notify.notify_one();
            notify
        } => notify => notify.notified();
        "a message": {
            let (sender, receiver) = mpsc::channel(1);
            sender.send(()).await.unwrap();
            (sender, receiver)
        } => (_sender, mut receiver) => receiver.recv();
        "room for a message": { mpsc::channel(1) } => (sender, _receiver) => sender.send(());
        "a message of an unbounded channel": {
            let (sender, receiver) = mpsc::unbounded_channel();
            sender.send(()).unwrap();
            (sender, receiver)
        } => (_sender, mut receiver) => receiver.recv();
        "a message for one of many": {
            let (sender, receiver) = mpmc::channel(1);
            sender.send(()).await.unwrap();
            (sender, receiver)
        } => (_sender, receiver) => receiver.recv();
        "a reply": {
            let (sender, receiver) = oneshot::channel();
            sender.send(()).unwrap();
            receiver
        } => receiver => receiver;
        "a broadcast": {
            let (sender, receiver) = broadcast::channel(1);
            sender.send(()).unwrap();
            (sender, receiver)
        } => (_sender, mut receiver) => receiver.recv();
        "a change": {
            let (sender, receiver) = watch::channel(0);
            sender.send(1).unwrap();
            (sender, receiver)
        } => (_sender, mut receiver) => receiver.changed();
        "a task that has ended": {
            let task = blitz_io::spawn(async {});
            while !task.is_finished() {
                task::yield_now().await;
            }
            task
        } => task => task;
        "a task of a set": {
            let mut set = JoinSet::new();
            let task = set.spawn(async {});
            while !task.is_finished() {
                task::yield_now().await;
            }
            set
        } => mut set => set.join_next();
        "a sleep that is over": { Duration::ZERO } => zero => time::sleep(zero);
        "a tick": { time::interval(Duration::from_secs(3600)) } => mut interval => interval.tick();
        "a byte of a socket": {
            let (mut here, there) = tcp_pair().await;
            here.write_all(b"x").await.unwrap();
            there.readable().await.unwrap();
            (here, there)
        } => (_here, mut there) => there.read_u8();
        "room in a socket": { tcp_pair().await } => (mut here, _there) => here.write_all(b"x");
        "a datagram": {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.send_to(b"x", socket.local_addr().unwrap()).await.unwrap();
            socket.readable().await.unwrap();
            socket
        } => socket => async move { socket.recv(&mut [0; 8]).await };
        "a file": {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            fs::write(&path, "x").await.unwrap();
            (fs::File::open(&path).await.unwrap(), dir)
        } => (mut file, _dir) => file.read_u8();
        "a whole file": {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            fs::write(&path, "x").await.unwrap();
            (path, dir)
        } => (path, _dir) => fs::read(path);
        "an item of a stream": {
            let (sender, receiver) = mpsc::channel(1);
            sender.send(()).await.unwrap();
            (sender, ReceiverStream::new(receiver))
        } => (_sender, mut stream) => stream.next();
    };
    for (name, operation) in operations {
        assert!(rt.block_on(rt.spawn(operation)).unwrap() >= 1, "{name}");
    }
}

#[test]
fn a_single_poll_finds_what_is_ready_though_the_slice_is_over() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::disabled())
        .on_task_stall(|_| ())
        .build()
        .unwrap();
    rt.block_on(rt.spawn(async {
        let (sender, mut receiver) = mpsc::channel(3);
        for n in 0..3 {
            sender.try_send(n).unwrap();
        }
        watchdog::until(task::should_yield);
        assert_eq!(once(receiver.recv()), Poll::Ready(Some(0)));
        assert!(once(Mutex::new(()).lock()).is_ready());
        assert!(once(RwLock::new(()).read()).is_ready());
        assert!(once(Semaphore::new(1).acquire()).is_ready());
        let notify = Notify::new();
        notify.notify_one();
        assert!(once(notify.notified()).is_ready());
        // An operation that can wait yields, and a single poll after that is right as well.
        let metrics = Handle::current().metrics();
        let before = metrics.budget_forced_yield_count();
        assert_eq!(receiver.recv().await, Some(1));
        assert_eq!(metrics.budget_forced_yield_count(), before + 1);
        watchdog::until(task::should_yield);
        assert_eq!(once(receiver.recv()), Poll::Ready(Some(2)));
    }))
    .unwrap();
}
