//! Runs many tasks on many threads: every message, permit and turn is seen exactly once.
//!
//! The short runs are part of the suite. The long ones are the same with more turns.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use blitz_io::{
    runtime::Runtime,
    sync::{
        Mutex, Notify, OnceCell, RwLock, Semaphore, broadcast, mpsc, oneshot, watch as watching,
    },
    task::{JoinHandle, yield_now},
};

use crate::support::{drop_tally::Tally, manual_poll::once, runtimes::workers, watchdog};

/// The turns of a short run: a debug build on two busy cores does any of these in a second.
const SHORT: usize = 2_000;
/// The turns of a long run: a release build takes some seconds each.
const LONG: usize = 1_000_000;
/// The limit of a long run. Chosen: more than it takes in a debug build.
const LONG_LIMIT: Duration = Duration::from_secs(600);

/// Defines a short test, and a long one that is ignored by default.
macro_rules! short_and_long {
    ($($short:ident, $long:ident: $run:path;)+) => { $(
        #[test]
        fn $short() {
            let _watch = watchdog::start();
            $run(SHORT);
        }

        #[test]
        #[ignore = "long: cargo xtask stress"]
        fn $long() {
            let _watch = watchdog::start_for(LONG_LIMIT);
            $run(LONG);
        }
    )+ };
}

short_and_long! {
    bounded_messages_arrive_exactly_once_and_in_order,
    a_million_bounded_messages_arrive_exactly_once_and_in_order: bounded;
    unbounded_messages_arrive_exactly_once_and_in_order,
    a_million_unbounded_messages_arrive_exactly_once_and_in_order: unbounded;
    given_up_sends_deliver_all_or_nothing,
    a_million_given_up_sends_deliver_all_or_nothing: given_up_sends;
    values_of_channels_that_close_under_load_are_dropped_once,
    values_of_many_channels_that_close_under_load_are_dropped_once: closing;
    a_mutex_excludes_under_load,
    a_mutex_excludes_under_long_load: mutex;
    an_rwlock_excludes_under_load,
    an_rwlock_excludes_under_long_load: rwlock;
    permits_are_conserved_under_load,
    permits_are_conserved_under_long_load: semaphore;
    every_notification_of_a_ping_pong_arrives,
    every_notification_of_a_long_ping_pong_arrives: notify;
    oneshots_that_race_with_their_end_lose_no_value,
    a_million_oneshots_that_race_with_their_end_lose_no_value: oneshots;
    broadcast_receivers_see_every_message_or_its_loss,
    broadcast_receivers_see_a_million_messages_or_their_loss: broadcasts;
    an_upgrade_that_races_with_the_end_is_whole_or_refused,
    a_million_upgrades_that_race_with_the_end_are_whole_or_refused: upgrades;
    cells_are_filled_once_although_initialisers_give_up,
    a_million_cells_are_filled_once_although_initialisers_give_up: cells;
    a_close_under_load_loses_no_permit,
    many_closes_under_load_lose_no_permit: closing_semaphores;
    watchers_see_values_grow_and_the_last_one,
    watchers_see_a_million_values_grow_and_the_last_one: watches;
}

fn all(rt: &Runtime, tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        rt.block_on(task).expect("a task of the test panicked");
    }
}

const PRODUCERS: usize = 4;

/// Checks that every producer's numbers come in order without a gap.
struct Expected([usize; PRODUCERS]);

impl Expected {
    fn take(&mut self, (producer, n): (usize, usize)) {
        assert_eq!(n, self.0[producer], "from producer {producer}");
        self.0[producer] += 1;
    }

    fn assert_all(&self, turns: usize) {
        assert_eq!(self.0, [turns; PRODUCERS]);
    }
}

fn bounded(turns: usize) {
    let rt = workers(4);
    for capacity in [1, 7, 64] {
        let (tx, mut rx) = mpsc::channel(capacity);
        let mut tasks: Vec<_> = (0..PRODUCERS)
            .map(|me| {
                let tx = tx.clone();
                rt.spawn(async move {
                    for n in 0..turns {
                        match n % 3 {
                            0 => tx.send((me, n)).await.unwrap(),
                            1 => tx.reserve().await.unwrap().send((me, n)),
                            _ => {
                                tx.reserve_many(1).await.unwrap().for_each(|p| p.send((me, n)));
                            }
                        }
                    }
                })
            })
            .collect();
        drop(tx);
        tasks.push(rt.spawn(async move {
            let (mut expected, mut many) = (Expected([0; PRODUCERS]), Vec::new());
            while let Some(message) = rx.recv().await {
                expected.take(message);
                if rx.recv_many(&mut many, 5).await == 0 {
                    break;
                }
                many.drain(..).for_each(|message| expected.take(message));
            }
            expected.assert_all(turns);
        }));
        all(&rt, tasks);
    }
}

fn unbounded(turns: usize) {
    let rt = workers(4);
    let (tx, mut rx) = mpsc::unbounded_channel();
    let mut tasks: Vec<_> = (0..PRODUCERS)
        .map(|me| {
            let tx = tx.clone();
            rt.spawn(async move {
                for n in 0..turns {
                    tx.send((me, n)).unwrap();
                    if n % 64 == 0 {
                        yield_now().await;
                    }
                }
            })
        })
        .collect();
    drop(tx);
    tasks.push(rt.spawn(async move {
        let mut expected = Expected([0; PRODUCERS]);
        while let Some(message) = rx.recv().await {
            expected.take(message);
        }
        expected.assert_all(turns);
    }));
    all(&rt, tasks);
}

fn given_up_sends(turns: usize) {
    let rt = workers(4);
    let tally = Tally::new();
    let (tx, mut rx) = mpsc::channel(2);
    let delivered = Arc::new(AtomicUsize::new(0));
    let mut tasks: Vec<_> = (0..PRODUCERS)
        .map(|me| {
            let (tx, tally, delivered) = (tx.clone(), tally.clone(), delivered.clone());
            rt.spawn(async move {
                for n in 0..turns {
                    let sent = if (n + me) % 2 == 0 {
                        once(tx.send(tally.token())).is_ready()
                    } else {
                        tx.send(tally.token()).await.is_ok()
                    };
                    delivered.fetch_add(usize::from(sent), Relaxed);
                }
            })
        })
        .collect();
    drop(tx);
    let expected = delivered.clone();
    tasks.push(rt.spawn(async move {
        let mut got = 0;
        loop {
            // A receive is polled once, and dropped if it is pending.
            let _ = once(rx.recv()).map(|message| got += usize::from(message.is_some()));
            match rx.recv().await {
                Some(_) => got += 1,
                None => break,
            }
        }
        assert_eq!(got, expected.load(Relaxed));
    }));
    all(&rt, tasks);
    tally.assert_all_dropped(PRODUCERS * turns);
}

fn closing(turns: usize) {
    let rt = workers(4);
    let tally = Tally::new();
    for round in 0..turns / 100 {
        let (tx, mut rx) = mpsc::channel(3);
        let (utx, mut urx) = mpsc::unbounded_channel();
        let mut tasks: Vec<_> = (0..3)
            .map(|_| {
                let (tx, utx, tally) = (tx.clone(), utx.clone(), tally.clone());
                rt.spawn(async move {
                    while tx.send(tally.token()).await.is_ok() {
                        let _ = utx.send(tally.token());
                    }
                    while utx.send(tally.token()).is_ok() {
                        yield_now().await;
                    }
                })
            })
            .collect();
        drop((tx, utx));
        tasks.push(rt.spawn(async move {
            for _ in 0..round % 7 {
                drop(rx.recv().await);
            }
            if round % 2 == 0 {
                rx.close();
                urx.close();
                while rx.recv().await.is_some() {}
                while urx.recv().await.is_some() {}
            }
        }));
        all(&rt, tasks);
        let made = tally.made();
        tally.assert_all_dropped(made);
    }
}

fn mutex(turns: usize) {
    let rt = workers(4);
    // Two counters that are equal whenever the lock is free.
    let pair = Arc::new(Mutex::new((0usize, 0usize)));
    let tasks = (0..6)
        .map(|me| {
            let pair = pair.clone();
            rt.spawn(async move {
                for n in 0..turns {
                    if (n + me) % 5 == 0 {
                        // A lock future that is dropped, granted or not.
                        drop(once(pair.lock()));
                    }
                    let mut guard = pair.lock().await;
                    assert_eq!(guard.0, guard.1);
                    guard.0 += 1;
                    if n % 16 == 0 {
                        yield_now().await;
                    }
                    guard.1 += 1;
                }
            })
        })
        .collect();
    all(&rt, tasks);
    assert_eq!(*pair.try_lock().unwrap(), (6 * turns, 6 * turns));
}

fn rwlock(turns: usize) {
    let rt = workers(4);
    let pair = Arc::new(RwLock::new((0usize, 0usize)));
    let tasks = (0..6)
        .map(|me| {
            let pair = pair.clone();
            rt.spawn(async move {
                for n in 0..turns {
                    if (n + me) % 3 == 0 {
                        let mut guard = pair.write().await;
                        guard.0 += 1;
                        if n % 16 == 0 {
                            yield_now().await;
                        }
                        guard.1 += 1;
                        let guard = guard.downgrade();
                        assert_eq!(guard.0, guard.1);
                    } else {
                        drop(once(pair.write()));
                        let guard = pair.read().await;
                        assert_eq!(guard.0, guard.1);
                    }
                }
            })
        })
        .collect();
    all(&rt, tasks);
    let guard = pair.try_write().expect("no task holds it");
    assert_eq!(guard.0, guard.1);
}

fn semaphore(turns: usize) {
    const PERMITS: usize = 5;
    let rt = workers(4);
    let semaphore = Arc::new(Semaphore::new(PERMITS));
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks = (0..6)
        .map(|me| {
            let (semaphore, inside) = (semaphore.clone(), inside.clone());
            rt.spawn(async move {
                for n in 0..turns {
                    let count = 1 + (n + me) % 4;
                    if n % 3 == 0 {
                        drop(once(semaphore.acquire_many(count as u32)));
                    }
                    let permit = semaphore.acquire_many(count as u32).await.unwrap();
                    let now = inside.fetch_add(count, Relaxed) + count;
                    assert!(now <= PERMITS, "{now} are inside");
                    if n % 16 == 0 {
                        yield_now().await;
                    }
                    inside.fetch_sub(count, Relaxed);
                    drop(permit);
                }
            })
        })
        .collect();
    all(&rt, tasks);
    assert_eq!(semaphore.available_permits(), PERMITS);
}

fn notify(turns: usize) {
    let rt = workers(4);
    let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (a, b) = (ping.clone(), pong.clone());
    let tasks = vec![
        rt.spawn(async move {
            for n in 0..turns {
                a.notify_one();
                // Dropped now and then: its notification stays for the next wait.
                if n % 5 == 0 && once(b.notified()).is_ready() {
                    continue;
                }
                b.notified().await;
            }
        }),
        rt.spawn(async move {
            for _ in 0..turns {
                let mut notified = std::pin::pin!(ping.notified());
                notified.as_mut().enable();
                notified.await;
                pong.notify_one();
            }
        }),
    ];
    all(&rt, tasks);
}

fn oneshots(turns: usize) {
    let rt = workers(4);
    let tally = Tally::new();
    let received = Arc::new(AtomicUsize::new(0));
    let sent = Arc::new(AtomicUsize::new(0));
    for n in 0..turns {
        let (tx, mut rx) = oneshot::channel();
        let (token, sent, received) = (tally.token(), sent.clone(), received.clone());
        let sender = rt.spawn(async move {
            if n % 7 != 0 {
                sent.fetch_add(usize::from(tx.send(token).is_ok()), Relaxed);
            }
        });
        let receiver = rt.spawn(async move {
            let got = match n % 4 {
                // The receiver waits to the end.
                0 | 1 => rx.await.is_ok(),
                // The receiver closes; a value that was sent before still counts.
                2 => {
                    rx.close();
                    rx.try_recv().is_ok()
                }
                _ => {
                    let first = once(&mut rx);
                    rx.close();
                    matches!(first, std::task::Poll::Ready(Ok(_))) || rx.try_recv().is_ok()
                }
            };
            received.fetch_add(usize::from(got), Relaxed);
        });
        all(&rt, vec![sender, receiver]);
    }
    assert_eq!(received.load(Relaxed), sent.load(Relaxed));
    tally.assert_all_dropped(turns);
}

fn upgrades(turns: usize) {
    let rt = workers(4);
    for n in 0..turns / 4 {
        let (tx, mut rx) = mpsc::channel(1);
        let weak = tx.downgrade();
        let last = rt.spawn(async move { drop(tx) });
        let racer = rt.spawn(async move {
            let Some(tx) = weak.upgrade() else { return 0 };
            tx.send(n).await.expect("it is open as long as it has a sender");
            1
        });
        let got = rt.block_on(rt.spawn(async move {
            let mut got = 0;
            while let Some(value) = rx.recv().await {
                assert_eq!(value, n);
                got += 1;
            }
            got
        }));
        rt.block_on(last).unwrap();
        assert_eq!(got.unwrap(), rt.block_on(racer).unwrap());
    }
}

fn cells(turns: usize) {
    let rt = workers(4);
    for _ in 0..turns / 10 {
        let (cell, filled) = (Arc::new(OnceCell::new()), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..4)
            .map(|me| {
                let (cell, filled) = (cell.clone(), filled.clone());
                rt.spawn(async move {
                    let make = || async {
                        yield_now().await;
                        filled.fetch_add(1, Relaxed);
                        me
                    };
                    // An initialiser that takes two polls is polled once and dropped.
                    let _ = once(cell.get_or_init(make)).map(|value| *value);
                    cell.get_or_init(make).await;
                })
            })
            .collect();
        all(&rt, tasks);
        assert_eq!(filled.load(Relaxed), 1);
    }
}

fn closing_semaphores(turns: usize) {
    let rt = workers(4);
    for n in 0..turns / 10 {
        let semaphore = Arc::new(Semaphore::new(2));
        let mut tasks: Vec<_> = (1..4)
            .map(|count| {
                let semaphore = semaphore.clone();
                rt.spawn(async move {
                    while let Ok(permit) = semaphore.acquire_many(1 + count % 2).await {
                        yield_now().await;
                        drop(permit);
                    }
                })
            })
            .collect();
        let same = semaphore.clone();
        tasks.push(rt.spawn(async move {
            for _ in 0..n % 5 {
                yield_now().await;
            }
            same.close();
        }));
        all(&rt, tasks);
        assert_eq!(semaphore.available_permits(), 2);
    }
}

fn broadcasts(turns: usize) {
    let rt = workers(4);
    let (tx, rx) = broadcast::channel(16);
    let receivers: Vec<_> = (0..4).map(|_| rx.resubscribe()).collect();
    drop(rx);
    let mut tasks: Vec<_> = receivers
        .into_iter()
        .map(|mut rx| {
            rt.spawn(async move {
                let mut next = 0;
                loop {
                    match rx.recv().await {
                        Ok(n) => {
                            assert_eq!(n, next);
                            next += 1;
                        }
                        Err(broadcast::error::RecvError::Lagged(missed)) => {
                            next += missed as usize;
                        }
                        Err(broadcast::error::RecvError::Closed) => break,
                    }
                }
                assert_eq!(next, turns, "seen and missed together are all");
            })
        })
        .collect();
    tasks.push(rt.spawn(async move {
        for n in 0..turns {
            assert_eq!(tx.send(n).unwrap(), 4);
            if n % 8 == 0 {
                yield_now().await;
            }
        }
    }));
    all(&rt, tasks);
}

fn watches(turns: usize) {
    let rt = workers(4);
    let (tx, rx) = watching::channel(0);
    let ended = Arc::new(AtomicBool::new(false));
    let mut tasks: Vec<_> = (0..4)
        .map(|me| {
            let (mut rx, ended) = (rx.clone(), ended.clone());
            rt.spawn(async move {
                let mut last = 0;
                while rx.changed().await.is_ok() {
                    if me == 0 {
                        drop(once(rx.changed()));
                    }
                    let value = *rx.borrow_and_update();
                    assert!(value >= last, "values grow");
                    last = value;
                }
                assert!(ended.load(Relaxed));
                assert_eq!(*rx.borrow(), turns, "the last one is seen");
            })
        })
        .collect();
    drop(rx);
    tasks.push(rt.spawn(async move {
        for n in 1..=turns {
            tx.send_replace(n);
            if n % 8 == 0 {
                yield_now().await;
            }
        }
        ended.store(true, Relaxed);
    }));
    all(&rt, tasks);
}
