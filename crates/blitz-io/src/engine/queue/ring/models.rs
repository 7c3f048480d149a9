//! Models of the ring, under every interleaving: its owner, one or two thieves, few slots.
//!
//! Each model ends by counting: every item that went in came out once.

use super::{CAPACITY, Pushed, RingOwner, Stolen, Thief, ring, ring_from};
use crate::engine::{
    prim::{
        Arc, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence, model, thread,
    },
    queue::{
        Chain,
        test_node::{TestNode, values},
    },
};

/// Pushes an item and returns the values that overflowed.
fn push(owner: &mut RingOwner<TestNode>, value: u32) -> Vec<u32> {
    match owner.push(TestNode::new(value)) {
        Pushed::Kept => Vec::new(),
        Pushed::Overflow(chain) => values(chain),
    }
}

fn fill(owner: &mut RingOwner<TestNode>, range: std::ops::Range<u32>) {
    range.for_each(|value| assert!(push(owner, value).is_empty(), "no room"));
}

fn drain(owner: &mut RingOwner<TestNode>) -> Vec<u32> {
    std::iter::from_fn(|| owner.pop()).map(|item| item.value()).collect()
}

/// Returns the values that a steal brought and those that the thief's ring holds.
fn stolen_values(stolen: Stolen<TestNode>, mut target: RingOwner<TestNode>) -> Vec<u32> {
    let mut stolen_values: Vec<_> = stolen.first.into_iter().map(|item| item.value()).collect();
    stolen_values.extend(drain(&mut target));
    stolen_values
}

/// Steals once, with a ring of its own, and returns the values.
fn steal(victim: &Thief<TestNode>) -> Vec<u32> {
    let (mut target, _) = ring();
    let stolen = victim.steal_half_into(&mut target);
    stolen_values(stolen, target)
}

fn spawn_thief(victim: &Thief<TestNode>) -> thread::JoinHandle<Vec<u32>> {
    let victim = victim.clone();
    thread::spawn(move || steal(&victim))
}

#[track_caller]
fn assert_each_once(parts: &[&[u32]], range: std::ops::Range<u32>) {
    let mut all = parts.concat();
    all.sort_unstable();
    assert_eq!(all, range.collect::<Vec<_>>(), "parts: {parts:?}");
}

#[test]
fn a_pushed_item_is_taken_once() {
    model(|| {
        let (mut owner, victim) = ring();
        let thief = spawn_thief(&victim);
        fill(&mut owner, 0..2);
        let popped = drain(&mut owner);
        assert_each_once(&[&popped, &thief.join().unwrap()], 0..2);
    });
}

#[test]
fn the_last_item_goes_to_one_of_two() {
    model(|| {
        let (mut owner, victim) = ring();
        fill(&mut owner, 0..1);
        let thief = spawn_thief(&victim);
        let popped = drain(&mut owner);
        assert_each_once(&[&popped, &thief.join().unwrap()], 0..1);
    });
}

/// Fills a ring and pushes two more items while a thief steals.
fn overflow_under_a_thief(start: u32) {
    let (mut owner, victim) = ring_from(start);
    let thief = spawn_thief(&victim);
    fill(&mut owner, 0..CAPACITY);
    let mut spilt = Vec::new();
    for value in [CAPACITY, CAPACITY + 1] {
        spilt.extend(push(&mut owner, value));
    }
    let popped = drain(&mut owner);
    assert_each_once(&[&popped, &spilt, &thief.join().unwrap()], 0..CAPACITY + 2);
}

#[test]
fn overflow_during_a_steal_loses_nothing() {
    model(|| overflow_under_a_thief(u32::MAX - 1));
}

#[test]
fn counters_wrap_under_a_thief() {
    for start in [u32::MAX - 2, u32::MAX - 1, u32::MAX] {
        model(move || {
            let (mut owner, victim) = ring_from(start);
            fill(&mut owner, 0..3);
            let thief = spawn_thief(&victim);
            let mut popped: Vec<_> = owner.pop().iter().map(TestNode::value).collect();
            fill(&mut owner, 3..4);
            popped.extend(drain(&mut owner));
            assert_each_once(&[&popped, &thief.join().unwrap()], 0..4);
        });
    }
}

#[test]
fn two_thieves_take_each_item_once() {
    model(|| {
        let (mut owner, victim) = ring();
        fill(&mut owner, 0..CAPACITY);
        let thieves = [spawn_thief(&victim), spawn_thief(&victim)];
        // Pushes into the slots that are free as soon as a thief is done.
        let spilt = push(&mut owner, CAPACITY);
        let [a, b] = thieves.map(|thief| thief.join().unwrap());
        let popped = drain(&mut owner);
        assert_each_once(&[&popped, &spilt, &a, &b], 0..CAPACITY + 1);
    });
}

#[test]
fn a_ring_may_be_stolen_from_while_it_receives() {
    model(|| {
        let (mut source, victim) = ring();
        let (mut target, second_victim) = ring();
        fill(&mut source, 0..CAPACITY);
        fill(&mut target, CAPACITY..CAPACITY + 2);
        let second_thief = spawn_thief(&second_victim);
        let stolen = victim.steal_half_into(&mut target);
        let first = stolen_values(stolen, target);
        let rest = drain(&mut source);
        assert_each_once(&[&first, &rest, &second_thief.join().unwrap()], 0..CAPACITY + 2);
    });
}

#[test]
fn the_owner_pops_while_a_thief_copies() {
    model(|| {
        let (mut owner, victim) = ring();
        fill(&mut owner, 0..CAPACITY);
        let thief = spawn_thief(&victim);
        let mut popped = Vec::new();
        popped.extend(owner.pop().map(|item| item.value()));
        popped.extend(owner.pop().map(|item| item.value()));
        let spilt = push(&mut owner, CAPACITY);
        popped.extend(drain(&mut owner));
        assert!(popped.is_sorted(), "the owner takes the oldest first: {popped:?}");
        assert_each_once(&[&popped, &spilt, &thief.join().unwrap()], 0..CAPACITY + 1);
    });
}

#[test]
fn a_slot_is_not_overwritten_before_it_is_copied() {
    model(|| {
        let (mut owner, victim) = ring();
        fill(&mut owner, 0..CAPACITY);
        let thief = spawn_thief(&victim);
        let mut spilt = push(&mut owner, CAPACITY);
        spilt.extend(push(&mut owner, CAPACITY + 1));
        let stolen_values = thief.join().unwrap();
        assert!(stolen_values.is_sorted(), "a thief takes in order: {stolen_values:?}");
        let popped = drain(&mut owner);
        assert_each_once(&[&popped, &spilt, &stolen_values], 0..CAPACITY + 2);
    });
}

#[test]
fn a_pushed_chain_is_taken_once() {
    model(|| {
        let (mut owner, victim) = ring();
        fill(&mut owner, 0..2);
        let thief = spawn_thief(&victim);
        let mut chain: Chain<_> = (2..2 + CAPACITY).map(TestNode::new).collect();
        let moved = owner.push_chain(&mut chain);
        assert_eq!(moved as usize + chain.len(), CAPACITY as usize);
        let rest = values(chain);
        let popped = drain(&mut owner);
        assert_each_once(&[&popped, &rest, &thief.join().unwrap()], 0..CAPACITY + 2);
    });
}

#[test]
fn a_full_thief_takes_what_fits() {
    model(|| {
        let (mut owner, victim) = ring();
        let (mut target, _) = ring();
        fill(&mut owner, 0..CAPACITY);
        fill(&mut target, CAPACITY..2 * CAPACITY);
        let stolen = victim.steal_half_into(&mut target);
        assert_eq!(stolen.moved, 0, "only what is handed out fits");
        let stolen_values = stolen_values(stolen, target);
        assert_each_once(&[&stolen_values, &drain(&mut owner)], 0..2 * CAPACITY);
    });
}

#[test]
fn a_thief_after_a_thief_sees_what_the_owner_popped() {
    model(|| {
        let (mut owner, victim) = ring();
        let thieves = [spawn_thief(&victim), spawn_thief(&victim)];
        fill(&mut owner, 0..2);
        let popped = drain(&mut owner);
        let [a, b] = thieves.map(|thief| thief.join().unwrap());
        assert_each_once(&[&popped, &a, &b], 0..2);
    });
}

#[test]
fn a_thief_that_lost_a_race_sees_what_was_pushed() {
    model(|| {
        let (mut owner, victim) = ring();
        let thief = spawn_thief(&victim);
        fill(&mut owner, 0..3);
        let popped = drain(&mut owner);
        assert_each_once(&[&popped, &thief.join().unwrap()], 0..3);
    });
}

#[test]
fn a_length_is_one_that_the_ring_once_had() {
    model(|| {
        let (mut owner, victim) = ring();
        let onlooker = thread::spawn(move || victim.len());
        fill(&mut owner, 0..1);
        assert_eq!(drain(&mut owner), [0]);
        assert!(onlooker.join().unwrap() <= 1, "there was never more than one item");
    });
}

/// Checks the ring's part of the idle protocol (pool/idle.rs): a push before a fence is seen
/// after one.
#[test]
fn an_item_pushed_before_a_fence_is_seen_after_one() {
    model(|| {
        let (mut owner, victim) = ring();
        let sleeping = Arc::new(AtomicUsize::new(0));
        let sleeper = thread::spawn({
            let sleeping = sleeping.clone();
            move || {
                sleeping.store(1, Relaxed);
                // SeqCst: pairs with the fence below.
                fence(SeqCst);
                !victim.is_empty()
            }
        });
        fill(&mut owner, 0..1);
        // SeqCst: pairs with the fence above.
        fence(SeqCst);
        let seen = sleeping.load(Relaxed) == 1;
        assert!(sleeper.join().unwrap() || seen, "the item and the sleeper missed each other");
    });
}
