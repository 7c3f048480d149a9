//! Rows on a runtime, written once for every runtime crate with Tokio's names.
//!
//! A batch is one task that spawns the others and waits for all, timed from the main thread. Rows
//! also wait on the latch of the harness, which is the same for all.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of messages of a batch, shared out among its producers.
pub(crate) const MESSAGES: usize = 100_000;
/// The capacity of channels. Most programs use between 16 and 1000; picked, not measured.
pub(crate) const ROOM: usize = 128;
pub(crate) const PAIRS: usize = 1000;
pub(crate) const RING: usize = 1000;
/// The number of rounds: enough that creating the ring is little beside them.
pub(crate) const TOKEN_ROUNDS: usize = 50;
pub(crate) const LOCKERS: usize = 100;
pub(crate) const TURNS: usize = 200;
pub(crate) const PERMITS: usize = 10;
/// A lock is held over a yield every `HELD` turns, so that a wait queue forms behind it. If it were
/// held so in every turn, one task could run at a time, and the row would measure how a runtime
/// polls for I/O when a lone task yields.
pub(crate) const HELD: usize = 10;
pub(crate) const NOTIFY_PAIRS: usize = 100;
pub(crate) const ROUND_TRIPS: usize = 100;
pub(crate) const WATCHERS: usize = 50;
pub(crate) const CHANGES: usize = 200;
pub(crate) const LISTENERS: usize = 10;
pub(crate) const BROADCASTS: usize = 100;
pub(crate) const BROADCAST_ROUNDS: usize = 20;
/// The number of turns of each task in the rows with many workers.
pub(crate) const THREAD_TURNS: usize = 10_000;

/// Threads inside at once, and the most there ever were.
#[derive(Default)]
pub(crate) struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    // Relaxed, all of them: counts that stand alone, read after all tasks were joined.
    pub(crate) fn enter(&self) {
        self.most.fetch_max(self.now.fetch_add(1, Relaxed) + 1, Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(Relaxed)
    }
}

macro_rules! on_tasks {
    ($runtime:ident) => {
        use std::sync::Arc;

        use $runtime::runtime::{Builder, Runtime};
        use $runtime::spawn;
        use $runtime::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
        use $runtime::task::{JoinHandle, yield_now};

        use crate::heap::taken_by;
        use crate::on_tasks::*;
        use harness::measure::per_op;
        use harness::notifier::Latch;

        fn build(workers: usize) -> Runtime {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers).enable_all();
            builder.build().expect("cannot build the runtime")
        }

        /// Runs the row if it is one of these.
        pub(crate) fn on_tasks(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
            let latch = Latch::leaked();
            Some(match row {
                "ping_pong_oneshot" => timed(workers, budget, PAIRS, ping_pong_oneshot),
                "mpsc_bounded_spsc" => timed(workers, budget, MESSAGES, || mpsc_bounded(1)),
                "mpsc_bounded_4p" => timed(workers, budget, MESSAGES, || mpsc_bounded(4)),
                "mpsc_unbounded_spsc" => timed(workers, budget, MESSAGES, || mpsc_unbounded(1)),
                "mpsc_unbounded_4p" => timed(workers, budget, MESSAGES, || mpsc_unbounded(4)),
                "ring_mpsc_1000" => timed(workers, budget, RING * TOKEN_ROUNDS, ring_mpsc),
                "mutex_100" => timed(workers, budget, LOCKERS * TURNS, mutex_100),
                "semaphore_100" => timed(workers, budget, LOCKERS * TURNS, semaphore_100),
                "rwlock_100" => timed(workers, budget, LOCKERS * TURNS, rwlock_100),
                "notify_100" => timed(workers, budget, NOTIFY_PAIRS * ROUND_TRIPS * 2, notify_100),
                "watch_50" => timed(workers, budget, WATCHERS * CHANGES, || watch_50(latch)),
                "broadcast_10" => {
                    let received = LISTENERS * BROADCASTS * BROADCAST_ROUNDS;
                    timed(workers, budget, received, || broadcast_10(latch))
                }
                "mutex_4_threads" => counted(4, budget, 4 * THREAD_TURNS, mutex_4_threads),
                "rwlock_6_threads" => counted(6, budget, 6 * THREAD_TURNS, rwlock_6_threads),
                "semaphore_8_threads" => counted(8, budget, 8 * THREAD_TURNS, semaphore_8_threads),
                "mpmc_8_threads" => counted(8, budget, MESSAGES, mpmc_8_threads),
                "mpmc_8_threads_others" => counted(8, budget, MESSAGES, mpmc_8_threads_others),
                _ => return None,
            })
        }

        fn timed<F: Future<Output = ()> + Send + 'static>(
            workers: usize,
            budget: Duration,
            ops: usize,
            batch: impl Fn() -> F,
        ) -> Vec<Metric> {
            let runtime = build(workers);
            per_op(budget, ops, || on_a_worker(&runtime, batch()))
        }

        /// Measures a batch, and counts its bytes by one more.
        fn counted<F: Future<Output = ()> + Send + 'static>(
            workers: usize,
            budget: Duration,
            ops: usize,
            batch: impl Fn() -> F,
        ) -> Vec<Metric> {
            let runtime = build(workers);
            let mut metrics = per_op(budget, ops, || on_a_worker(&runtime, batch()));
            let (taken, ()) = taken_by(|| on_a_worker(&runtime, batch()));
            metrics.push(Metric::new("bytes", "B", taken.bytes as f64 / ops as f64, None));
            metrics
        }

        fn on_a_worker(runtime: &Runtime, batch: impl Future<Output = ()> + Send + 'static) {
            runtime.block_on(async { spawn(batch).await.expect("a batch panicked") });
        }

        async fn all_end(tasks: Vec<JoinHandle<()>>) {
            for task in tasks {
                task.await.expect("a task of the workload panicked");
            }
        }

        async fn ping_pong_oneshot() {
            let pair = |_| {
                spawn(async {
                    let (ping, pinged) = oneshot::channel();
                    let (pong, ponged) = oneshot::channel();
                    spawn(async move {
                        let value: u64 = pinged.await.expect("it is sent");
                        pong.send(value + 1).expect("the other waits");
                    });
                    ping.send(1).expect("the other waits");
                    assert_eq!(ponged.await, Ok(2));
                })
            };
            all_end((0..PAIRS).map(pair).collect()).await;
        }

        async fn mpsc_bounded(producers: usize) {
            let (sender, mut receiver) = mpsc::channel(ROOM);
            for _ in 0..producers {
                let sender = sender.clone();
                spawn(async move {
                    for number in 0..MESSAGES / producers {
                        sender.send(number).await.expect("the receiver is there");
                    }
                });
            }
            drop(sender);
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            assert_eq!(received, MESSAGES, "messages were lost");
        }

        async fn mpsc_unbounded(producers: usize) {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            for _ in 0..producers {
                let sender = sender.clone();
                spawn(async move {
                    for number in 0..MESSAGES / producers {
                        sender.send(number).expect("the receiver is there");
                    }
                });
            }
            drop(sender);
            let mut received = 0;
            while receiver.recv().await.is_some() {
                received += 1;
            }
            assert_eq!(received, MESSAGES, "messages were lost");
        }

        async fn ring_mpsc() {
            let (first, mut receiver) = mpsc::channel::<usize>(1);
            let mut tasks = Vec::with_capacity(RING);
            for index in 0..RING {
                // The last one passes the token on to the first.
                let (next, following) = mpsc::channel(1);
                let next = if index + 1 == RING { first.clone() } else { next };
                let mut mine = std::mem::replace(&mut receiver, following);
                tasks.push(spawn(async move {
                    for _ in 0..TOKEN_ROUNDS {
                        let token = mine.recv().await.expect("the token comes round");
                        // In the last round the first one may be gone.
                        let _ = next.send(token + 1).await;
                    }
                }));
            }
            first.send(0).await.expect("the first one waits");
            all_end(tasks).await;
        }

        async fn mutex_100() {
            let mutex = Arc::new(Mutex::new(0));
            let locker = |_| {
                let mutex = mutex.clone();
                spawn(async move {
                    for turn in 0..TURNS {
                        let mut count = mutex.lock().await;
                        *count += 1;
                        if turn % HELD == 0 {
                            yield_now().await;
                        }
                    }
                })
            };
            all_end((0..LOCKERS).map(locker).collect()).await;
            assert_eq!(*mutex.lock().await, LOCKERS * TURNS, "the lock let two in");
        }

        async fn semaphore_100() {
            let shared = Arc::new((Semaphore::new(PERMITS), Inside::default()));
            let taker = |_| {
                let shared = shared.clone();
                spawn(async move {
                    for turn in 0..TURNS {
                        let permit = shared.0.acquire().await.expect("it is never closed");
                        // Counted now and then, because the count is a shared word itself.
                        if turn % HELD == 0 {
                            shared.1.enter();
                            yield_now().await;
                            shared.1.leave();
                        }
                        drop(permit);
                    }
                })
            };
            all_end((0..LOCKERS).map(taker).collect()).await;
            assert!(shared.1.most() <= PERMITS, "the semaphore let too many in");
        }

        async fn rwlock_100() {
            let lock = Arc::new(RwLock::new(0));
            let locker = |_| {
                let lock = lock.clone();
                spawn(async move {
                    for turn in 0..TURNS {
                        if turn % HELD == HELD - 1 {
                            *lock.write().await += 1;
                            continue;
                        }
                        let guard = lock.read().await;
                        let before = *guard;
                        if turn % HELD == 0 {
                            yield_now().await;
                        }
                        assert_eq!(*guard, before, "a writer came between");
                    }
                })
            };
            all_end((0..LOCKERS).map(locker).collect()).await;
            assert_eq!(*lock.read().await, LOCKERS * TURNS / HELD, "the lock let two writers in");
        }

        async fn notify_100() {
            let mut tasks = Vec::new();
            for _ in 0..NOTIFY_PAIRS {
                let notifiers = Arc::new((Notify::new(), Notify::new()));
                let here = notifiers.clone();
                tasks.push(spawn(async move {
                    for _ in 0..ROUND_TRIPS {
                        here.0.notify_one();
                        here.1.notified().await;
                    }
                }));
                tasks.push(spawn(async move {
                    for _ in 0..ROUND_TRIPS {
                        notifiers.0.notified().await;
                        notifiers.1.notify_one();
                    }
                }));
            }
            all_end(tasks).await;
        }

        async fn watch_50(all_saw_it: &'static Latch) {
            let (sender, receiver) = watch::channel(0);
            let watcher = |_| {
                let mut receiver = receiver.clone();
                spawn(async move {
                    for change in 1..=CHANGES {
                        receiver.changed().await.expect("the sender is there");
                        assert_eq!(*receiver.borrow_and_update(), change, "a change was missed");
                        all_saw_it.count_down();
                    }
                })
            };
            let tasks = (0..WATCHERS).map(watcher).collect();
            for change in 1..=CHANGES {
                all_saw_it.set(WATCHERS);
                sender.send(change).expect("the receivers are there");
                all_saw_it.wait().await;
            }
            all_end(tasks).await;
        }

        async fn broadcast_10(all_got_them: &'static Latch) {
            let (sender, receiver) = broadcast::channel(ROOM);
            let listener = |_| {
                let mut receiver = receiver.resubscribe();
                spawn(async move {
                    for _ in 0..BROADCAST_ROUNDS {
                        for number in 0..BROADCASTS {
                            assert_eq!(receiver.recv().await, Ok(number));
                        }
                        all_got_them.count_down();
                    }
                })
            };
            let tasks = (0..LISTENERS).map(listener).collect();
            drop(receiver);
            for _ in 0..BROADCAST_ROUNDS {
                all_got_them.set(LISTENERS);
                for number in 0..BROADCASTS {
                    sender.send(number).expect("the receivers are there");
                }
                all_got_them.wait().await;
            }
            all_end(tasks).await;
        }

        async fn mutex_4_threads() {
            let mutex = Arc::new(Mutex::new(0));
            let locker = |_| {
                let mutex = mutex.clone();
                spawn(async move {
                    for _ in 0..THREAD_TURNS {
                        *mutex.lock().await += 1;
                    }
                })
            };
            all_end((0..4).map(locker).collect()).await;
            assert_eq!(*mutex.lock().await, 4 * THREAD_TURNS, "the lock let two in");
        }

        async fn rwlock_6_threads() {
            let lock = Arc::new(RwLock::new(0));
            let mut tasks = Vec::new();
            for _ in 0..4 {
                let lock = lock.clone();
                tasks.push(spawn(async move {
                    for _ in 0..THREAD_TURNS {
                        std::hint::black_box(*lock.read().await);
                    }
                }));
            }
            for _ in 0..2 {
                let lock = lock.clone();
                tasks.push(spawn(async move {
                    for _ in 0..THREAD_TURNS {
                        *lock.write().await += 1;
                    }
                }));
            }
            all_end(tasks).await;
            assert_eq!(*lock.read().await, 2 * THREAD_TURNS, "the lock let two writers in");
        }

        async fn semaphore_8_threads() {
            let shared = Arc::new((Semaphore::new(2), Inside::default()));
            let taker = |_| {
                let shared = shared.clone();
                spawn(async move {
                    for _ in 0..THREAD_TURNS {
                        let permit = shared.0.acquire().await.expect("it is never closed");
                        shared.1.enter();
                        shared.1.leave();
                        drop(permit);
                    }
                })
            };
            all_end((0..8).map(taker).collect()).await;
            assert!(shared.1.most() <= 2, "the semaphore let too many in");
        }

        mpmc_row!(mpmc_8_threads, own);
        mpmc_row!(mpmc_8_threads_others, own::mpmc_of_others);
    };
}

/// Measures four producers and four consumers of a channel.
macro_rules! mpmc_row {
    ($name:ident, $($channel:ident)::+) => {
        async fn $name() {
            use $($channel)::+::{mpmc, recv, send};
            let (sender, receiver) = mpmc(ROOM);
            for _ in 0..4 {
                let sender = sender.clone();
                spawn(async move {
                    for number in 0..MESSAGES / 4 {
                        send(&sender, number as u64).await;
                    }
                });
            }
            drop(sender);
            let consumer = |_| {
                let receiver = receiver.clone();
                spawn(async move {
                    let mut received = 0;
                    while recv(&receiver).await.is_some() {
                        received += 1;
                    }
                    received
                })
            };
            let consumers: Vec<JoinHandle<usize>> = (0..4).map(consumer).collect();
            drop(receiver);
            let mut received = 0;
            for consumer in consumers {
                received += consumer.await.expect("a consumer panicked");
            }
            assert_eq!(received, MESSAGES, "messages were lost");
        }
    };
}

pub(crate) use {mpmc_row, on_tasks};
