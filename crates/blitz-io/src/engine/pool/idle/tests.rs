//! Models of sleeping and waking; the protocol is in the header of `idle.rs`.

use super::{Idle, SelfWoken};
use crate::engine::prim::{
    Arc, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    model,
    parker::Parker,
    thread,
};

/// Workers with a parker each and one queue, which is only a count of items.
struct IdleWorld {
    idle: Idle,
    parkers: Vec<Parker>,
    items: AtomicUsize,
    done: AtomicUsize,
}

impl IdleWorld {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            items: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        })
    }

    fn take(&self) -> bool {
        // Acquire and Relaxed: as in a real queue; the fences are those of `Idle`.
        let mut now = self.items.load(Relaxed);
        while now > 0 {
            match self.items.compare_exchange(now, now - 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
        false
    }

    /// Adds an item and wakes a worker (P1 to P3).
    fn produce(&self) {
        // Release: pairs with the Acquire in `take`.
        self.items.fetch_add(1, Release);
        self.wake_one();
    }

    fn wake_one(&self) {
        if let Some(worker) = self.idle.reserve_for_work(None) {
            self.parkers[worker].unpark();
        }
    }

    /// Runs items as a worker until it has run `quota` of them.
    fn work(&self, worker: usize, quota: usize) {
        self.work_from(worker, quota, false);
    }

    fn work_from(&self, worker: usize, quota: usize, mut searching: bool) {
        let mut ran = 0;
        while ran < quota {
            if self.take() {
                if searching {
                    searching = false;
                    // Relaxed: the fence is in `stop_searching`.
                    if self.idle.stop_searching() && self.items.load(Relaxed) > 0 {
                        self.wake_one();
                    }
                }
                ran += 1;
                self.done.fetch_add(1, Relaxed);
                continue;
            }
            self.idle.fall_asleep(worker, searching);
            // Relaxed: the fence is in `fall_asleep`.
            let work = self.items.load(Relaxed) > 0;
            if !work || self.idle.wake_self_for_work(worker) == SelfWoken::BeingWoken {
                self.parkers[worker].park();
            }
            searching = true;
        }
        if searching {
            let _ = self.idle.stop_searching();
        }
    }
}

#[test]
fn work_and_sleeper_never_miss_each_other() {
    model(|| {
        let world = IdleWorld::new(1);
        let worker = thread::spawn({
            let world = world.clone();
            move || world.work(0, 1)
        });
        world.produce();
        worker.join().unwrap();
    });
}

#[test]
fn two_producers_wake_for_both_items() {
    model(|| {
        let world = IdleWorld::new(1);
        let worker = thread::spawn({
            let world = world.clone();
            move || world.work(0, 2)
        });
        let producer = thread::spawn({
            let world = world.clone();
            move || world.produce()
        });
        world.produce();
        producer.join().unwrap();
        worker.join().unwrap();
    });
}

/// Two workers, one item each: the second worker must be reached although the producer of the
/// second item may have seen a searcher.
#[test]
fn the_last_searcher_hands_on() {
    model(|| {
        let world = IdleWorld::new(2);
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let world = world.clone();
                thread::spawn(move || world.work(worker, 1))
            })
            .collect();
        world.produce();
        world.produce();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(world.done.load(Relaxed), 2);
    });
}

/// One worker searches when both items come, so no worker is woken for them, and it finds them only
/// when it is about to sleep. The other worker must still be reached.
#[test]
fn a_worker_that_wakes_itself_hands_on() {
    model(|| {
        let world = IdleWorld::new(2);
        assert!(world.idle.start_searching());
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let world = world.clone();
                thread::spawn(move || world.work_from(worker, 1, worker == 0))
            })
            .collect();
        world.produce();
        world.produce();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_worker_that_wakes_itself_is_counted_once() {
    model(|| {
        let world = IdleWorld::new(2);
        world.idle.fall_asleep(1, false);
        let producer = thread::spawn({
            let world = world.clone();
            move || world.produce()
        });
        world.idle.fall_asleep(0, false);
        if world.idle.wake_self_not_searching(0) == SelfWoken::BeingWoken {
            world.parkers[0].park();
        }
        producer.join().unwrap();
        // Worker 0 is awake. Worker 1 sleeps, unless the producer woke it.
        let expected = usize::from(world.idle.is_asleep(1));
        assert_eq!(world.idle.sleeping(), expected);
        assert!(!world.idle.is_asleep(0));
    });
}

#[test]
fn every_reservation_finds_a_bit() {
    model(|| {
        let idle = Arc::new(Idle::new(2));
        let sleeper = thread::spawn({
            let idle = idle.clone();
            move || idle.fall_asleep(0, false)
        });
        // The reservation searches until it finds a bit: without one it would never end.
        if let Some(worker) = idle.reserve_for_work(None) {
            assert_eq!(worker, 0);
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn the_last_worker_that_falls_asleep_sees_that_all_sleep() {
    model(|| {
        let idle = Arc::new(Idle::new(2));
        let sleeper = thread::spawn({
            let idle = idle.clone();
            move || {
                idle.fall_asleep(0, false);
                idle.all_sleep()
            }
        });
        idle.fall_asleep(1, false);
        let seen = idle.all_sleep();
        assert!(sleeper.join().unwrap() || seen, "both rely on the other");
    });
}

#[cfg(not(blitz_loom))]
#[test]
fn more_than_64_workers_sleep_and_are_found() {
    let idle = Idle::new(200);
    for worker in 0..200 {
        idle.fall_asleep(worker, false);
    }
    assert_eq!(idle.sleeping(), 200);
    let mut woken = Vec::new();
    while let Some(worker) = idle.reserve_for_work(None) {
        woken.push(worker);
        let _ = idle.stop_searching();
    }
    woken.sort_unstable();
    assert_eq!(woken, (0..200).collect::<Vec<_>>());
}

#[cfg(not(blitz_loom))]
#[test]
fn at_most_half_of_the_workers_search() {
    let idle = Idle::new(5);
    assert_eq!((0..5).filter(|_| idle.start_searching()).count(), 3);
    let idle = Idle::new(1);
    assert!(idle.start_searching());
}
