//! Models of the injector, under every interleaving.

use super::Injector;
use crate::engine::{
    prim::{
        Arc, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence, model, thread, weakened,
    },
    queue::{
        ring::ring,
        test_node::{TestNode, values},
    },
};

/// Closes and then empties the injector, as a shutdown does. The lock that `close` takes shows it
/// every push that came before, so the drain is never late.
fn close_and_drain(injector: &Injector<TestNode>) -> Vec<u32> {
    assert!(injector.close());
    values(injector.pop_batch(usize::MAX))
}

#[test]
fn a_push_that_races_a_close_is_refused_or_popped() {
    model(|| {
        let injector = Arc::new(Injector::new());
        let pusher = thread::spawn({
            let injector = injector.clone();
            move || injector.push(TestNode::new(7)).is_err()
        });
        let popped = close_and_drain(&injector);
        let refused = pusher.join().unwrap();
        assert_eq!(
            popped.len() + usize::from(refused),
            1,
            "refused: {refused}, popped: {popped:?}"
        );
        assert!(injector.is_empty(), "nothing comes after the drain of a closed injector");
    });
}

#[test]
fn a_chain_that_races_a_close_is_refused_whole_or_popped_whole() {
    model(|| {
        let injector = Arc::new(Injector::new());
        injector.push(TestNode::new(0)).ok().unwrap();
        let pusher = thread::spawn({
            let injector = injector.clone();
            move || injector.push_chain((1..3).map(TestNode::new).collect()).map_err(values)
        });
        let popped = close_and_drain(&injector);
        match pusher.join().unwrap() {
            Ok(()) => assert_eq!(popped, [0, 1, 2]),
            Err(refused) => assert_eq!((popped, refused), (vec![0], vec![1, 2])),
        }
        assert!(injector.is_empty(), "nothing comes after the drain of a closed injector");
    });
}

#[test]
fn a_producer_or_a_sleeper_sees_the_other() {
    model(|| {
        let shared = Arc::new((Injector::new(), AtomicUsize::new(0)));
        let sleeper = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Relaxed);
                if !weakened!("inject_sleeper_fence") {
                    // SeqCst: step W2 of the protocol in injector.rs, pairs with P2 below.
                    fence(SeqCst);
                }
                !shared.0.is_empty()
            }
        });
        shared.0.push(TestNode::new(0)).ok().unwrap();
        if !weakened!("inject_producer_fence") {
            // SeqCst: step P2 of the protocol in injector.rs, pairs with W2 above.
            fence(SeqCst);
        }
        let seen = shared.1.load(Relaxed) == 1;
        assert!(sleeper.join().unwrap() || seen, "the item and the sleeper missed each other");
    });
}

#[test]
fn two_takers_share_a_batch() {
    model(|| {
        let injector = Arc::new(Injector::new());
        injector.push_chain((0..3).map(TestNode::new).collect()).unwrap();
        let taker = thread::spawn({
            let injector = injector.clone();
            move || values(injector.pop_batch(2))
        });
        let mut taken = values(injector.pop_batch(2));
        taken.extend(taker.join().unwrap());
        assert!(injector.is_empty());
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
    });
}

#[test]
fn the_length_is_right_once_the_lock_is_free() {
    model(|| {
        let injector = Arc::new(Injector::new());
        injector.push(TestNode::new(0)).ok().unwrap();
        let pusher = thread::spawn({
            let injector = injector.clone();
            move || injector.push(TestNode::new(1)).ok().unwrap()
        });
        let popped = injector.pop().map(|item| item.value());
        pusher.join().unwrap();
        assert_eq!((popped, injector.len()), (Some(0), 1));
        assert_eq!(injector.pop().map(|item| item.value()), Some(1));
    });
}

/// A worker fetches two items, keeps one and puts the other into its ring, while another worker
/// checks for the last time: first the injector, then the ring.
#[test]
fn a_batch_on_its_way_to_a_ring_is_never_out_of_sight() {
    model(|| {
        let injector = Arc::new(Injector::new());
        injector.push_chain((0..2).map(TestNode::new).collect()).unwrap();
        let (mut owner, thief) = ring();
        let worker = thread::spawn({
            let injector = injector.clone();
            move || {
                let first = injector.pop_batch_into(2, |mut batch| {
                    let first = batch.pop_front();
                    owner.push_chain(&mut batch);
                    first
                });
                (owner, first)
            }
        });
        assert!(!injector.is_empty() || !thief.is_empty(), "one item was in neither place");
        drop(worker.join().unwrap());
    });
}
