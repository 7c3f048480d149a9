//! Tests that a loop over operations of `sync` that are always ready lets other tasks run.
//!
//! Every operation that completes takes a unit of budget, which Tokio does not guarantee.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use blitz_io::sync::{
    Barrier, CancellationToken, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast,
    mpsc, oneshot, watch as watching,
};

use crate::support::{
    budget::{BUDGET, forever, yields},
    runtimes::one_thread,
    watchdog,
};

#[test]
fn locking_a_free_mutex_yields() {
    let mutex = Arc::new(Mutex::new(()));
    let same = mutex.clone();
    yields(|done| forever!(done, drop(mutex.lock().await)));
    yields(|done| forever!(done, drop(same.clone().lock_owned().await)));
}

#[test]
fn locking_a_free_rwlock_yields() {
    let lock = Arc::new(RwLock::new(()));
    let [one, two, three] = [lock.clone(), lock.clone(), lock.clone()];
    yields(|done| forever!(done, drop(lock.read().await)));
    yields(|done| forever!(done, drop(one.write().await)));
    yields(|done| forever!(done, drop(two.clone().read_owned().await)));
    yields(|done| forever!(done, drop(three.clone().write_owned().await)));
}

#[test]
fn acquiring_free_permits_yields() {
    let semaphore = Arc::new(Semaphore::new(3));
    let same = semaphore.clone();
    yields(|done| forever!(done, drop(semaphore.acquire().await)));
    yields(|done| forever!(done, drop(same.clone().acquire_many_owned(2).await)));
}

#[test]
fn sending_and_receiving_messages_yields() {
    let (tx, mut rx) = mpsc::channel(1);
    yields(|done| {
        forever!(done, {
            tx.send(1).await.unwrap();
            assert!(rx.try_recv().is_ok());
        })
    });
    let (tx, mut rx) = mpsc::channel(1);
    yields(|done| {
        forever!(done, {
            tx.try_send(1).unwrap();
            rx.recv().await.unwrap();
        })
    });
    let (tx, mut rx) = mpsc::unbounded_channel();
    yields(|done| {
        forever!(done, {
            tx.send(1).unwrap();
            rx.recv().await.unwrap();
        })
    });
}

#[test]
fn receiving_many_messages_yields() {
    let (tx, mut rx) = mpsc::channel(1);
    yields(|done| {
        forever!(done, {
            tx.try_send(1).unwrap();
            assert_eq!(rx.recv_many(&mut Vec::new(), 9).await, 1);
        })
    });
}

#[test]
fn receiving_the_end_of_a_channel_yields() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    drop(tx);
    yields(|done| forever!(done, assert!(rx.recv().await.is_none())));
}

#[test]
fn reserving_room_yields() {
    let (tx, _rx) = mpsc::channel::<u8>(1);
    yields(|done| forever!(done, drop(tx.reserve().await)));
}

#[test]
fn receiving_from_oneshots_yields() {
    yields(|done| {
        forever!(done, {
            let (tx, rx) = oneshot::channel();
            tx.send(1).unwrap();
            rx.await.unwrap();
        })
    });
}

#[test]
fn waiting_for_oneshots_that_are_closed_yields() {
    yields(|done| {
        forever!(done, {
            let (mut tx, rx) = oneshot::channel::<u8>();
            drop(rx);
            tx.closed().await;
        })
    });
}

#[test]
fn receiving_broadcasts_yields() {
    let (tx, mut rx) = broadcast::channel(1);
    yields(|done| {
        forever!(done, {
            tx.send(1).unwrap();
            rx.recv().await.unwrap();
        })
    });
}

#[test]
fn watching_changes_yields() {
    let (tx, mut rx) = watching::channel(0);
    yields(|done| {
        forever!(done, {
            tx.send(1).unwrap();
            rx.changed().await.unwrap();
        })
    });
    let (tx, mut rx) = watching::channel(0);
    yields(|done| forever!(done, drop(rx.wait_for(|_| true).await.unwrap())));
    drop(tx);
}

#[test]
fn a_gone_watcher_seen_again_and_again_yields() {
    let (tx, rx) = watching::channel(0);
    drop(rx);
    yields(|done| forever!(done, tx.closed().await));
}

#[test]
fn receiving_kept_notifications_yields() {
    let notify = Arc::new(Notify::new());
    yields(|done| {
        forever!(done, {
            notify.notify_one();
            notify.notified().await;
        })
    });
}

#[test]
fn passing_a_barrier_of_one_yields() {
    let barrier = Arc::new(Barrier::new(1));
    yields(|done| forever!(done, barrier.wait().await));
}

#[test]
fn awaiting_full_cells_yields() {
    let (cell, once) = (OnceCell::from(1), SetOnce::from(1));
    yields(|done| {
        forever!(done, {
            cell.get_or_init(|| async { 2 }).await;
        })
    });
    yields(|done| {
        forever!(done, {
            once.wait().await;
        })
    });
}

#[test]
fn awaiting_a_cancelled_token_yields() {
    let token = CancellationToken::new();
    token.cancel();
    yields(|done| forever!(done, token.cancelled().await));
}

#[test]
fn an_operation_outside_a_task_is_not_limited() {
    let mutex = Mutex::new(0);
    crate::support::manual_poll::now(async {
        for _ in 0..10 * BUDGET {
            *mutex.lock().await += 1;
        }
    });
    assert_eq!(*mutex.try_lock().unwrap(), 10 * BUDGET);
}

#[test]
fn a_task_that_yields_for_its_budget_loses_nothing() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let (tx, mut rx) = mpsc::channel(1000);
    (0..1000).for_each(|n| tx.try_send(n).unwrap());
    drop(tx);
    let got = rt.block_on(rt.spawn(async move {
        let mut got = Vec::new();
        while let Some(n) = rx.recv().await {
            got.push(n);
        }
        got
    }));
    assert_eq!(got.unwrap(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn cells_and_tokens_that_are_ready_end_at_once_even_without_budget() {
    let _watch = watchdog::start();
    let rt = one_thread();
    // Each takes budget, as tested above; here, only the completion is tested.
    rt.block_on(rt.spawn(async {
        let (cell, once) = (OnceCell::from(1), SetOnce::from(2));
        let token = CancellationToken::new();
        token.cancel();
        for _ in 0..10 * BUDGET {
            assert_eq!(*cell.get_or_init(|| async { 3 }).await, 1);
            assert_eq!(*once.wait().await, 2);
            token.cancelled().await;
        }
    }))
    .unwrap();
}

/// Uses up the budget of every poll, for ever.
async fn busy() {
    let mutex = Mutex::new(());
    loop {
        drop(mutex.lock().await);
    }
}

/// Asserts that a task completes a wait that it polls after a future that leaves no budget. `end`
/// ends the wait, before its first poll or between two polls.
fn ends_beside_a_busy_future<F, E>(wait: impl Fn() -> (F, E))
where
    F: Future + Send + 'static,
    E: FnOnce() + Send + 'static,
{
    for turn in [1, 3] {
        let _watch = watchdog::start();
        let rt = one_thread();
        let (wait, end) = wait();
        let polled = rt.spawn(async move {
            let (mut busy, mut wait) = (pin!(busy()), pin!(wait));
            let (mut polls, mut end) = (0, Some(end));
            poll_fn(|cx| {
                assert!(busy.as_mut().poll(cx).is_pending(), "it goes on for ever");
                polls += 1;
                assert!(polls < turn + 3, "it is put off for ever, ended at poll {turn}");
                if polls == turn {
                    end.take().expect("it is ended once")();
                }
                wait.as_mut().poll(cx).map(drop)
            })
            .await;
        });
        rt.block_on(polled).unwrap();
    }
}

#[test]
fn a_cancellation_is_seen_beside_a_busy_future() {
    ends_beside_a_busy_future(|| {
        let token = CancellationToken::new();
        (token.clone().cancelled_owned(), move || token.cancel())
    });
}

#[test]
fn a_notification_is_seen_beside_a_busy_future() {
    for how in [Notify::notify_one, Notify::notify_last, Notify::notify_waiters] {
        ends_beside_a_busy_future(|| {
            let notify = Arc::new(Notify::new());
            (notify.clone().notified_owned(), move || how(&notify))
        });
    }
}

#[test]
fn a_value_is_seen_beside_a_busy_future() {
    ends_beside_a_busy_future(|| {
        let cell = Arc::new(SetOnce::new());
        let same = cell.clone();
        (async move { assert_eq!(*same.wait().await, 1) }, move || cell.set(1).unwrap())
    });
    ends_beside_a_busy_future(|| {
        let cell = Arc::new(OnceCell::from(1));
        (async move { assert_eq!(*cell.get_or_init(|| async { 2 }).await, 1) }, || ())
    });
}

#[test]
fn a_round_ends_beside_a_busy_future() {
    ends_beside_a_busy_future(|| {
        let barrier = Arc::new(Barrier::new(1));
        (async move { barrier.wait().await }, || ())
    });
    ends_beside_a_busy_future(|| {
        let barrier = Arc::new(Barrier::new(2));
        let mut other = Box::pin({
            let barrier = barrier.clone();
            async move { barrier.wait().await }
        });
        let arrive = move || {
            let _ = other.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        };
        (async move { barrier.wait().await }, arrive)
    });
}

/// If the task did not take the lock that it was granted, no other task could get it.
#[test]
fn a_lock_that_was_given_is_taken_beside_a_busy_future() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.clone().try_lock_owned().unwrap();
    let waits = rt.spawn({
        let mutex = mutex.clone();
        async move {
            let (mut busy, mut lock) = (pin!(busy()), pin!(mutex.lock()));
            let mut polls = 0;
            poll_fn(|cx| {
                assert!(busy.as_mut().poll(cx).is_pending(), "it goes on for ever");
                polls += 1;
                assert!(polls < 100, "it never takes the lock that it was given");
                lock.as_mut().poll(cx).map(drop)
            })
            .await;
        }
    });
    rt.block_on(rt.spawn(async move {
        blitz_io::task::yield_now().await;
        drop(guard);
        drop(mutex.lock().await);
    }))
    .unwrap();
    rt.block_on(waits).unwrap();
}

#[test]
fn a_future_that_is_always_busy_is_cancelled() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let token = CancellationToken::new();
    let work = async {
        let mutex = Mutex::new(());
        for _ in 0..100 * BUDGET {
            drop(mutex.lock().await);
        }
    };
    let done = rt.spawn(token.clone().run_until_cancelled_owned(work));
    rt.spawn(async move { token.cancel() });
    assert_eq!(rt.block_on(done).unwrap(), None, "it ran to its end");
}
