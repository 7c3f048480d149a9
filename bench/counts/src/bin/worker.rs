//! Operations inside of a worker, for `workers` to count: `worker <operation> <times>`.
//!
//! Runs on a runtime with one worker, otherwise the default. The count is the difference between
//! two runs with different `times`, so the runtime's start and end cancel out.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    spawn,
    task::yield_now,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(operation), Some(times)) = (arguments.next(), arguments.next()) else {
        panic!("say what to do, and how often: `worker poll 1000`");
    };
    let times: usize = times.parse().expect("how often is a number");
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let task = match &*operation {
            "poll" => spawn(poll(times)),
            "spawn" => spawn(spawn_and_join(times)),
            "wake" => spawn(wake(times)),
            "echo" => spawn(echo(times)),
            other => panic!("`{other}` is none of poll, spawn, wake and echo"),
        };
        task.await.expect("nothing panics");
    });
}

/// Polls a task that yields.
async fn poll(times: usize) {
    for _ in 0..times {
        yield_now().await;
    }
}

/// Spawns a task that ends at once, and joins it.
async fn spawn_and_join(times: usize) {
    for _ in 0..times {
        spawn(async {}).await.expect("it ends");
    }
}

/// Wakes tasks that wait, by value and all in one poll; then they are polled.
async fn wake(times: usize) {
    const TASKS: usize = 64;
    let wakers = Arc::new(Mutex::new(Vec::<Waker>::with_capacity(TASKS)));
    for _ in 0..TASKS {
        let wakers = wakers.clone();
        spawn(poll_fn(move |cx| {
            wakers.lock().expect("no panic").push(cx.waker().clone());
            Poll::<()>::Pending
        }));
    }
    let mut woken = Vec::with_capacity(TASKS);
    for _ in 0..times.div_ceil(TASKS) {
        while wakers.lock().expect("no panic").len() < TASKS {
            yield_now().await;
        }
        std::mem::swap(&mut woken, &mut *wakers.lock().expect("no panic"));
        woken.drain(..).for_each(Waker::wake);
    }
}

/// Sends a message of a byte back and forth between two tasks.
async fn echo(times: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client connects");
        let mut byte = [0];
        while let Ok(1) = stream.read(&mut byte).await {
            stream.write_all(&byte).await.expect("it is taken");
        }
    });
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let mut byte = [7];
    for _ in 0..times {
        stream.write_all(&byte).await.expect("it is taken");
        stream.read_exact(&mut byte).await.expect("it comes back");
    }
}
