//! Tasks that communicate: a pipeline with a bound at each step, and an end that loses nothing.
//!
//! Producers send numbers into a channel from which several workers receive. A worker holds a
//! permit while it computes, adds its sum to a shared total, and publishes the progress. When
//! enough is done a token stops the producers; the queued numbers are still processed, because a
//! channel is closed only when its senders are gone.

#![forbid(unsafe_code)]

use std::sync::Arc;

use blitz_io::{
    channel::{mpmc, oneshot, watch},
    sync::{CancellationToken, Mutex, Semaphore},
    task::JoinSet,
};

const PRODUCERS: u64 = 3;
const WORKERS: usize = 4;
/// The number of workers that may compute at a time.
const AT_A_TIME: usize = 2;
/// The number of results after which the producers are stopped.
const ENOUGH: u64 = 1_000;

#[derive(Default)]
struct Account {
    numbers: u64,
    sum: u64,
}

#[blitz_io::main]
async fn main() {
    let account = Arc::new(Mutex::new(Account::default()));
    let permits = Arc::new(Semaphore::new(AT_A_TIME));
    let stop = CancellationToken::new();
    // At most eight numbers are queued: producers wait for the workers instead of using more
    // memory.
    let (numbers, jobs) = mpmc::channel(8);
    let (progress, mut watched) = watch::channel(0);

    let mut producers = JoinSet::new();
    for _ in 0..PRODUCERS {
        producers.spawn(produce(numbers.clone(), stop.clone()));
    }
    drop(numbers);

    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (jobs, permits) = (jobs.clone(), permits.clone());
        let (account, progress) = (account.clone(), progress.clone());
        workers.spawn(async move {
            while let Some(number) = jobs.recv().await {
                let permit = permits.acquire().await.expect("it is never closed");
                let square = number * number;
                drop(permit);
                let mut account = account.lock().await;
                account.numbers += 1;
                account.sum += square;
                progress.send_replace(account.numbers);
            }
        });
    }
    drop((jobs, progress));

    // Only the newest value is read; no worker waits for us to read it.
    watched.wait_for(|done| *done >= ENOUGH).await.expect("the workers are at it");
    stop.cancel();

    let sent: Vec<(u64, u64)> = producers.join_all().await;
    workers.join_all().await;
    let account = account.lock().await;
    assert_eq!(account.numbers, sent.iter().map(|(count, _)| count).sum::<u64>(), "none is lost");
    assert_eq!(account.sum, sent.iter().map(|(_, sum)| sum).sum::<u64>(), "nor counted twice");
    println!("{} numbers, squares that sum to {}", account.numbers, account.sum);

    // One reply to one request.
    let (sender, receiver) = oneshot::channel();
    blitz_io::spawn(async move { sender.send(6 * 7) });
    assert_eq!(receiver.await, Ok(42));
}

/// Sends 1, 2, 3, … until it is cancelled. Returns how many, and the sum of their squares.
async fn produce(numbers: mpmc::Sender<u64>, stop: CancellationToken) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    while !stop.is_cancelled() {
        let number = count + 1;
        numbers.send(number).await.expect("the workers stay until we are gone");
        count = number;
        sum += number * number;
    }
    (count, sum)
}
