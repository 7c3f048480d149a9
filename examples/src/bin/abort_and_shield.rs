//! Aborts a task, but not in the middle of a write.
//!
//! An aborted task is dropped at its next await. That is right for waiting and wrong for a change
//! in two parts: `task::shield` makes the abort wait until the change is complete.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex};

use blitz_io::task;

/// Two balances whose sum never changes, except inside of a transfer.
type Accounts = Arc<Mutex<(i64, i64)>>;

#[blitz_io::main]
async fn main() {
    let accounts: Accounts = Arc::new(Mutex::new((1_000_000, 0)));
    let worker = task::spawn(transfer_for_ever(accounts.clone()));

    // Waits for some transfers, then aborts the task wherever it is.
    while accounts.lock().unwrap().1 < 100 {
        task::yield_now().await;
    }
    worker.abort();
    let error = worker.await.expect_err("the task has no end of its own");
    assert!(error.is_cancelled());

    let (left, right) = *accounts.lock().unwrap();
    println!("{right} coins were moved when the task was stopped: {error}");
    assert_eq!(left + right, 1_000_000, "a coin was lost between the accounts");
}

async fn transfer_for_ever(accounts: Accounts) {
    loop {
        task::shield(transfer(&accounts, 1)).await;
        task::yield_now().await;
    }
}

/// Withdraws from one account and then deposits to the other, with a pause between in which an
/// abort would lose the money.
async fn transfer(accounts: &Accounts, coins: i64) {
    accounts.lock().unwrap().0 -= coins;
    task::yield_now().await;
    accounts.lock().unwrap().1 += coins;
}
