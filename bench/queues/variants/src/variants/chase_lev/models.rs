//! Models of the contender: each job goes to one taker, which sees the job's contents.

use std::ptr::NonNull;

use super::{ChaseLevDeque, Stolen};
use crate::engine::prim::{Arc, Ordering::Relaxed, UnsafeCell, barrier, model, thread};

/// A job with content that its taker reads and changes.
struct TestNode(UnsafeCell<usize>);

// SAFETY: the thread that takes a node has it alone; the model checks that.
unsafe impl Sync for TestNode {}

/// A deque of nodes that live as long as it does.
struct World {
    deque: ChaseLevDeque<TestNode>,
    nodes: Vec<TestNode>,
}

impl World {
    fn new(nodes: usize) -> Arc<Self> {
        let nodes = (0..nodes).map(|_| TestNode(UnsafeCell::new(0))).collect();
        Arc::new(Self { deque: ChaseLevDeque::new(), nodes })
    }

    fn push(&self, number: usize) -> u64 {
        let node = &self.nodes[number];
        // SAFETY: no other thread has the node yet; the model checks that.
        node.0.with_mut(|value| unsafe { *value = 10 });
        // SAFETY: 1. each model has one thread that pushes and pops.
        unsafe { self.deque.push(NonNull::from(node)) }.index
    }

    fn pop(&self) -> usize {
        // SAFETY: 1. each model has one thread that pushes and pops.
        unsafe { self.deque.pop() }.map_or(0, taken)
    }

    /// Tries to steal once; a thief that was too late gets nothing.
    fn steal(&self) -> usize {
        match self.deque.steal() {
            Stolen::Job(node) => taken(node),
            Stolen::Again | Stolen::Nothing => 0,
        }
    }

    fn assert_each_taken_once(&self) {
        for node in &self.nodes {
            // SAFETY: all threads are joined, so no other thread touches the node.
            node.0.with(|value| assert_eq!(unsafe { *value }, 11, "taken once"));
        }
    }
}

fn taken(node: NonNull<TestNode>) -> usize {
    // SAFETY: 1. nodes live as long as the world. 2. The thread that takes one has it alone; the
    // model checks that.
    unsafe {
        node.as_ref().0.with_mut(|value| {
            assert_eq!(*value, 10, "made, and not taken before");
            *value = 11;
        });
    }
    1
}

#[test]
fn the_last_job_has_one_taker() {
    model(|| {
        let world = World::new(1);
        let thief = thread::spawn({
            let world = world.clone();
            move || world.steal()
        });
        let index = world.push(0);
        // SAFETY: 1. this thread is the owner.
        let popped = unsafe { world.deque.pop_at(index) };
        if popped {
            taken(NonNull::from(&world.nodes[0]));
        }
        assert_eq!(usize::from(popped) + thief.join().unwrap(), 1);
        assert!(!world.deque.has_jobs());
        world.assert_each_taken_once();
    });
}

#[test]
fn an_owner_and_a_thief_take_each_job_once() {
    model(|| {
        let world = World::new(2);
        world.push(0);
        world.push(1);
        let thief = thread::spawn({
            let world = world.clone();
            move || world.steal() + world.steal()
        });
        let popped = world.pop() + world.pop();
        let rest = thief.join().unwrap() + world.pop();
        assert_eq!(popped + rest, 2);
        world.assert_each_taken_once();
    });
}

#[test]
fn two_thieves_take_different_jobs() {
    model(|| {
        let world = World::new(2);
        world.push(0);
        world.push(1);
        let thieves = [(); 2].map(|()| {
            let world = world.clone();
            thread::spawn(move || world.steal())
        });
        let mut count = world.pop();
        for thief in thieves {
            count += thief.join().unwrap();
        }
        count += world.pop() + world.pop();
        assert_eq!(count, 2);
        world.assert_each_taken_once();
    });
}

#[test]
fn a_ring_that_grows_under_a_thief_loses_nothing() {
    model(|| {
        // In a model the ring has two slots initially.
        let world = World::new(3);
        world.push(0);
        let thief = thread::spawn({
            let world = world.clone();
            move || world.steal()
        });
        world.push(1);
        world.push(2);
        let popped: usize = (0..3).map(|_| world.pop()).sum();
        assert_eq!(popped + thief.join().unwrap(), 3);
        world.assert_each_taken_once();
    });
}

#[test]
fn a_push_or_a_request_sees_the_other() {
    model(|| {
        let world = World::new(1);
        let sleeper = thread::spawn({
            let world = world.clone();
            move || {
                world.deque.request();
                barrier::heavy();
                // Relaxed: the barrier orders it.
                world.deque.bottom.load(Relaxed) > 1
            }
        });
        // SAFETY: 1. this thread is the owner.
        let pushed = unsafe { world.deque.push(NonNull::from(&world.nodes[0])) };
        let published = pushed.is_requested && world.deque.publish();
        assert!(sleeper.join().unwrap() || published, "neither saw the other");
    });
}

#[cfg(not(blitz_loom))]
#[test]
fn many_thieves_and_an_owner_take_each_job_of_a_deque_once() {
    use crate::engine::prim::{AtomicUsize, Ordering::SeqCst};

    const JOBS: usize = 100_000;
    let deque = ChaseLevDeque::new();
    let jobs: Vec<AtomicUsize> = (0..JOBS).map(|_| AtomicUsize::new(0)).collect();
    let take = |job: NonNull<AtomicUsize>| {
        // SAFETY: jobs live as long as the threads.
        unsafe { job.as_ref() }.fetch_add(1, SeqCst)
    };
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while done.load(SeqCst) == 0 {
                    match deque.steal() {
                        Stolen::Job(job) => _ = take(job),
                        Stolen::Again => {}
                        Stolen::Nothing => thread::yield_now(),
                    }
                }
            });
        }
        // These are more jobs than a ring holds initially, and nearly all of them are popped again.
        for some in jobs.chunks(700) {
            for job in some {
                // SAFETY: 1. this thread is the owner.
                let _ = unsafe { deque.push(NonNull::from(job)) };
            }
            // SAFETY: 1. this thread is the owner.
            while let Some(job) = unsafe { deque.pop() } {
                take(job);
            }
        }
        done.store(1, SeqCst);
    });
    assert!(jobs.iter().all(|job| job.load(SeqCst) == 1), "each was taken once");
}
