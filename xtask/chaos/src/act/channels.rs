//! Channels, with sends and receives that are cancelled.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use blitz_io::{
    channel::{
        broadcast::{self, error::RecvError},
        mpmc, mpsc, oneshot, watch,
    },
    task, time,
};

use super::{
    burden::{Value, drop_quietly},
    micros,
    tasks::judge,
};
use crate::{
    ledger::Kind,
    plan::{Burden, Micros, Step, Traffic},
    world::StepContext,
};

pub(super) async fn step(cx: &StepContext, step: &Step) {
    match step {
        Step::Mpsc(traffic) if traffic.capacity.is_none() => unbounded(cx, *traffic).await,
        Step::Mpsc(traffic) => bounded(cx, *traffic).await,
        Step::Mpmc(traffic, receivers) => many(cx, *traffic, *receivers).await,
        Step::Oneshot { after, limit, burden } => {
            single(cx, *after, *limit, *burden).await;
        }
        Step::Broadcast { receivers, each } => broadcast(cx, *receivers, *each).await,
        Step::Watch { receivers, each } => watch(cx, *receivers, *each).await,
        _ => unreachable!("no step of this file"),
    }
}

fn message(cx: &StepContext, traffic: Traffic) -> Value {
    Value::of_kind(cx, traffic.burden, Kind::Message)
}

/// The number of times a receive is cancelled before it is awaited to its end.
const TRIES: u32 = 3;

/// Awaits a future that `make` creates, after dropping some unfinished ones.
async fn after_some_tries<F: Future>(
    limit: Option<Micros>,
    mut make: impl FnMut() -> F,
) -> F::Output {
    if let Some(limit) = limit {
        for _ in 0..TRIES {
            if let Ok(ready) = time::timeout(micros(limit), make()).await {
                return ready;
            }
        }
    }
    make().await
}

/// Compares the number of messages sent with that received. The counts are final once a receive has
/// returned `None`: all senders are gone, and each counted before it was dropped.
fn compare(cx: &StepContext, left: bool, sent: &AtomicU64, received: u64) {
    let sent = sent.load(SeqCst);
    cx.ensure(left || sent == received, || {
        format!("{sent} messages were sent and {received} received")
    });
}

async fn bounded(cx: &StepContext, traffic: Traffic) {
    let (sender, mut receiver) = mpsc::channel(traffic.capacity.unwrap_or(1) as usize);
    let sent = Arc::new(AtomicU64::new(0));
    for _ in 0..traffic.senders {
        let (cx, sender, sent) = (cx.clone(), sender.clone(), sent.clone());
        let task = cx.token(Kind::Task);
        drop(blitz_io::spawn(async move {
            let _task = task;
            for _ in 0..traffic.each {
                let reserved = after_some_tries(traffic.limit, || sender.reserve()).await;
                let Ok(permit) = reserved else { return };
                permit.send(message(&cx, traffic));
                sent.fetch_add(1, SeqCst);
            }
        }));
    }
    drop(sender);
    let (mut received, mut left) = (0, false);
    loop {
        if traffic.leaves == Some(received as u32) {
            left = true;
            break;
        }
        // Two `recv` futures cannot exist at once, so the attempts are written out.
        let next = match traffic.limit {
            Some(limit) => match time::timeout(micros(limit), receiver.recv()).await {
                Ok(next) => next,
                Err(_) => receiver.recv().await,
            },
            None => receiver.recv().await,
        };
        let Some(value) = next else { break };
        value.arrived();
        received += 1;
        drop_quietly(value);
    }
    compare(cx, left, &sent, received);
    drop(receiver);
}

async fn unbounded(cx: &StepContext, traffic: Traffic) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let sent = Arc::new(AtomicU64::new(0));
    for _ in 0..traffic.senders {
        let (cx, sender, sent) = (cx.clone(), sender.clone(), sent.clone());
        let task = cx.token(Kind::Task);
        drop(blitz_io::spawn(async move {
            let _task = task;
            for _ in 0..traffic.each {
                match sender.send(message(&cx, traffic)) {
                    Ok(()) => sent.fetch_add(1, SeqCst),
                    Err(error) => return drop_quietly(error),
                };
                task::yield_now().await;
            }
        }));
    }
    drop(sender);
    let (mut received, mut left) = (0, false);
    loop {
        if traffic.leaves == Some(received as u32) {
            left = true;
            break;
        }
        let Some(value) = receiver.recv().await else { break };
        value.arrived();
        received += 1;
        drop_quietly(value);
    }
    compare(cx, left, &sent, received);
    drop(receiver);
}

async fn many(cx: &StepContext, traffic: Traffic, receivers: u32) {
    let (sender, receiver) = mpmc::channel(traffic.capacity.unwrap_or(4) as usize);
    let (sent, received) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    for _ in 0..traffic.senders {
        let (cx, sender, sent) = (cx.clone(), sender.clone(), sent.clone());
        let task = cx.token(Kind::Task);
        drop(blitz_io::spawn(async move {
            let _task = task;
            for _ in 0..traffic.each {
                match sender.send(message(&cx, traffic)).await {
                    Ok(()) => sent.fetch_add(1, SeqCst),
                    Err(error) => return drop_quietly(error),
                };
            }
        }));
    }
    drop(sender);
    let tasks: Vec<_> = (0..receivers)
        .map(|_| {
            let (receiver, received) = (receiver.clone(), received.clone());
            let task = cx.token(Kind::Task);
            blitz_io::spawn(async move {
                let _task = task;
                while let Some(value) = after_some_tries(traffic.limit, || receiver.recv()).await {
                    value.arrived();
                    received.fetch_add(1, SeqCst);
                    drop_quietly(value);
                }
            })
        })
        .collect();
    drop(receiver);
    let mut all = true;
    for task in tasks {
        all &= judge(cx, task.await, false).is_some();
    }
    compare(cx, !all, &sent, received.load(SeqCst));
}

async fn single(cx: &StepContext, after: Micros, limit: Option<Micros>, burden: Burden) {
    let (sender, mut receiver) = oneshot::channel();
    let value = Value::of_kind(cx, burden, Kind::Message);
    let task = cx.token(Kind::Task);
    drop(blitz_io::spawn(async move {
        let _task = task;
        time::sleep(micros(after)).await;
        if let Err(value) = sender.send(value) {
            drop_quietly(value);
        }
    }));
    let received = match limit {
        None => Some(receiver.await),
        Some(limit) => time::timeout(micros(limit), &mut receiver).await.ok(),
    };
    match received {
        Some(Ok(value)) => {
            value.arrived();
            drop_quietly(value);
        }
        Some(Err(_)) => {
            cx.ensure(cx.is_ending(), || "a sender was dropped while its runtime was alive".into())
        }
        // The receiver is dropped, and the value with it or with the sender.
        None => {}
    }
}

async fn broadcast(cx: &StepContext, receivers: u32, each: u32) {
    const ROOM: usize = 16;
    let (sender, _) = broadcast::channel(ROOM);
    let tasks: Vec<_> = (0..receivers)
        .map(|_| {
            let (mut receiver, task) = (sender.subscribe(), cx.token(Kind::Task));
            blitz_io::spawn(async move {
                let _task = task;
                let mut seen = 0;
                loop {
                    match receiver.recv().await {
                        Ok(_) => seen += 1,
                        Err(RecvError::Lagged(missed)) => seen += missed,
                        Err(RecvError::Closed) => return seen,
                    }
                }
            })
        })
        .collect();
    for _ in 0..each {
        // Messages are shared, so the token is dropped with the last of them.
        let _ = sender.send(Arc::new(cx.token(Kind::Message)));
        task::yield_now().await;
    }
    drop(sender);
    for task in tasks {
        if let Some(seen) = judge(cx, task.await, false) {
            cx.ensure(seen == u64::from(each), || {
                format!("a receiver saw or missed {seen} of {each} messages")
            });
        }
    }
}

async fn watch(cx: &StepContext, receivers: u32, each: u32) {
    let (sender, receiver) = watch::channel(0);
    let tasks: Vec<_> = (0..receivers)
        .map(|_| {
            let (mut receiver, task) = (receiver.clone(), cx.token(Kind::Task));
            blitz_io::spawn(async move {
                let _task = task;
                while receiver.changed().await.is_ok() {
                    receiver.borrow_and_update();
                }
                receiver.borrow().to_owned()
            })
        })
        .collect();
    drop(receiver);
    for number in 1..=each {
        sender.send_replace(number);
        task::yield_now().await;
    }
    drop(sender);
    for task in tasks {
        if let Some(last) = judge(cx, task.await, false) {
            cx.ensure(last == each, || format!("a watcher ended with {last} of {each}"));
        }
    }
}
