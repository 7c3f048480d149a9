//! Single operations on one thread: futures polled by hand, no runtime around them.
//!
//! There is no contention for the lock or the channel, so each is ready at its first poll. What a
//! row needs beforehand is prepared outside of the measured time, and what it leaves is dropped
//! there.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use harness::measure::{Metric, median};

use crate::heap::taken_by;

/// The number of operations in a batch: enough that the two readings of the clock, 22 ns each where
/// the first table was made, are negligible.
pub(crate) const OPS: usize = 10_000;

/// Returns the output of a future that must be ready at its first poll.
#[inline]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("there is nothing to wait for: check the workload"),
    }
}

/// Measures time and bytes of an operation; `batch` does `OPS` of them. Like `measure::per_op`,
/// with preparations.
pub(crate) fn figures<P, R>(
    budget: Duration,
    mut prepare: impl FnMut() -> P,
    mut batch: impl FnMut(P) -> R,
) -> Vec<Metric> {
    for _ in 0..2 {
        drop(black_box(batch(prepare())));
    }
    let mut walls = Vec::new();
    let start = Instant::now();
    while walls.len() < 3 || start.elapsed() < budget {
        let prepared = prepare();
        let start = Instant::now();
        let left = black_box(batch(prepared));
        walls.push(start.elapsed().as_nanos() as f64 / OPS as f64);
        drop(left);
    }
    let prepared = prepare();
    let (taken, left) = taken_by(|| batch(prepared));
    drop(left);
    vec![
        Metric::new("", "ns", median(&mut walls), None),
        Metric::new("bytes", "B", taken.bytes as f64 / OPS as f64, None),
    ]
}

/// Measures bytes and blocks that creating something takes.
pub(crate) fn heap_of<T>(name: &str, create: impl Fn() -> T) -> [Metric; 2] {
    // The minimum of a few, because one-time allocations, and those of other threads meanwhile,
    // must not count.
    let taken = || {
        let (taken, created) = taken_by(|| black_box(create()));
        drop(created);
        taken
    };
    let taken = (0..5).map(|_| taken()).min_by_key(|taken| taken.bytes).expect("five are some");
    [
        Metric::new(name, "B", taken.bytes as f64, None),
        Metric::new(&format!("{name}_blocks"), "count", taken.blocks as f64, None),
    ]
}

macro_rules! by_hand {
    ($runtime:ident) => {
        use std::hint::black_box;

        use $runtime::sync::{Barrier, OnceCell};

        use crate::by_hand::{OPS, figures, heap_of, now};

        /// Runs the row if it is one of these.
        pub(crate) fn by_hand(row: &str, budget: Duration) -> Option<Vec<Metric>> {
            Some(match row {
                "mutex_by_hand" => each(budget, || Mutex::new(0_u64), |it| *now(it.lock()) += 1),
                "rwlock_read_by_hand" => {
                    each(budget, || RwLock::new(0_u64), |it| drop(black_box(now(it.read()))))
                }
                "rwlock_write_by_hand" => {
                    each(budget, || RwLock::new(0_u64), |it| *now(it.write()) += 1)
                }
                "semaphore_by_hand" => each(
                    budget,
                    || Semaphore::new(1),
                    |it| drop(black_box(now(it.acquire()).expect("it is never closed"))),
                ),
                "channel_send" => channel_send(budget),
                "channel_recv" => channel_recv(budget),
                "channel_round_trip" => each(
                    budget,
                    || mpsc::channel(16),
                    |(sender, receiver)| {
                        now(sender.send(1_u64)).expect("the receiver is there");
                        black_box(now(receiver.recv()));
                    },
                ),
                "channel_create" => each(
                    budget,
                    || (),
                    |()| {
                        let (sender, mut receiver) = mpsc::channel(1);
                        now(sender.send(1_u64)).expect("the receiver is there");
                        black_box(now(receiver.recv()));
                    },
                ),
                "oneshot_by_hand" => each(
                    budget,
                    || (),
                    |()| {
                        let (sender, receiver) = oneshot::channel();
                        sender.send(black_box(1_u64)).expect("the receiver is there");
                        black_box(now(receiver)).expect("it was sent");
                    },
                ),
                "oneshot_slot" => each(
                    budget,
                    || (),
                    |()| {
                        black_box(own::oneshot_without_allocation(black_box(1)));
                    },
                ),
                "broadcast_4" => broadcast_4(budget),
                "watch_by_hand" => each(
                    budget,
                    || watch::channel(0_u64),
                    |(sender, receiver)| {
                        sender.send(black_box(1)).expect("the receiver is there");
                        now(receiver.changed()).expect("the sender is there");
                        black_box(*receiver.borrow_and_update());
                    },
                ),
                "once_cell_get" => each(
                    budget,
                    || OnceCell::new_with(Some(1_u64)),
                    |it| {
                        black_box(black_box(&*it).get());
                    },
                ),
                "once_cell_set" => each(
                    budget,
                    || (),
                    |()| {
                        let cell = OnceCell::new();
                        cell.set(black_box(1_u64)).expect("it is empty");
                        drop(black_box(cell));
                    },
                ),
                "barrier" => each(
                    budget,
                    || (),
                    |()| {
                        let barrier = Barrier::new(1);
                        assert!(now(black_box(&barrier).wait()).is_leader());
                    },
                ),
                "notify_by_hand" => each(budget, Notify::new, |it| {
                    it.notify_one();
                    now(it.notified());
                }),
                "heap" => heap(),
                _ => return None,
            })
        }

        /// Runs an operation `OPS` times with what was prepared.
        fn each<P>(
            budget: Duration,
            prepare: impl FnMut() -> P,
            mut operation: impl FnMut(&mut P),
        ) -> Vec<Metric> {
            figures(budget, prepare, |mut prepared| {
                for _ in 0..OPS {
                    operation(&mut prepared);
                }
                prepared
            })
        }

        type Ends = (mpsc::Sender<u64>, mpsc::Receiver<u64>);

        fn filled((sender, receiver): Ends) -> Ends {
            for number in 0..OPS as u64 {
                now(sender.send(number)).expect("the receiver is there");
            }
            (sender, receiver)
        }

        fn channel_send(budget: Duration) -> Vec<Metric> {
            figures(budget, || mpsc::channel(OPS), filled)
        }

        fn channel_recv(budget: Duration) -> Vec<Metric> {
            figures(
                budget,
                || filled(mpsc::channel(OPS)),
                |(sender, mut receiver)| {
                    for number in 0..OPS as u64 {
                        assert_eq!(now(receiver.recv()), Some(number));
                    }
                    (sender, receiver)
                },
            )
        }

        fn broadcast_4(budget: Duration) -> Vec<Metric> {
            let prepare = || {
                let (sender, first) = broadcast::channel(16);
                let others = [first.resubscribe(), first.resubscribe(), first.resubscribe()];
                (sender, first, others)
            };
            each(budget, prepare, |(sender, first, others)| {
                sender.send(black_box(1_u64)).expect("the receivers are there");
                black_box(now(first.recv())).expect("it was sent");
                for other in others {
                    black_box(now(other.recv())).expect("it was sent");
                }
            })
        }

        fn heap() -> Vec<Metric> {
            [
                heap_of("mpsc_1", || mpsc::channel::<u64>(1)),
                heap_of("mpsc_128", || mpsc::channel::<u64>(128)),
                heap_of("mpsc_unbounded", mpsc::unbounded_channel::<u64>),
                heap_of("oneshot", oneshot::channel::<u64>),
                heap_of("watch", || watch::channel(0_u64)),
                heap_of("broadcast_16", || broadcast::channel::<u64>(16)),
            ]
            .concat()
        }
    };
}

pub(crate) use by_hand;
