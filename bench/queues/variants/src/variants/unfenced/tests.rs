//! Tests of the unfenced ring: models first, then a comparison with a deque, and a load test.

use super::{UnfencedOwner, UnfencedThief, unfenced};
use crate::engine::{
    prim::{model, thread},
    queue::{
        ring::{CAPACITY, Pushed},
        test_node::{TestNode, values},
    },
};

fn push(owner: &mut UnfencedOwner<TestNode>, value: u32) -> Vec<u32> {
    match owner.push(TestNode::new(value)) {
        Pushed::Kept => Vec::new(),
        Pushed::Overflow(chain) => values(chain),
    }
}

fn drain(owner: &mut UnfencedOwner<TestNode>) -> Vec<u32> {
    std::iter::from_fn(|| owner.pop()).map(|item| item.value()).collect()
}

fn spawn_thief(victim: &UnfencedThief<TestNode>) -> thread::JoinHandle<Vec<u32>> {
    let victim = victim.clone();
    thread::spawn(move || {
        let (mut target, _) = unfenced(0);
        let stolen = victim.steal_half_into(&mut target);
        let mut loot: Vec<_> = stolen.first.into_iter().map(|item| item.value()).collect();
        loot.extend(drain(&mut target));
        loot
    })
}

#[track_caller]
fn assert_each_once(parts: &[&[u32]], range: std::ops::Range<u32>) {
    let mut all = parts.concat();
    all.sort_unstable();
    assert_eq!(all, range.collect::<Vec<_>>(), "parts: {parts:?}");
}

/// Runs an owner against thieves: `before` items are there when the thieves come and `after` more
/// are pushed. The owner pops `pops` items before that push and the rest after it.
fn owner_against_thieves<const THIEVES: usize>(start: u32, before: u32, pops: u32, after: u32) {
    model(move || {
        let (mut owner, victim) = unfenced(start);
        for value in 0..before {
            assert!(push(&mut owner, value).is_empty());
        }
        let thieves: [_; THIEVES] = std::array::from_fn(|_| spawn_thief(&victim));
        let mut popped = Vec::new();
        for _ in 0..pops {
            popped.extend(owner.pop().map(|item| item.value()));
        }
        let mut spilt = Vec::new();
        for value in before..before + after {
            spilt.extend(push(&mut owner, value));
        }
        popped.extend(drain(&mut owner));
        let loot = thieves.map(|thief| thief.join().unwrap()).concat();
        assert_each_once(&[&popped, &spilt, &loot], 0..before + after);
    });
}

#[test]
fn an_unfenced_pop_and_a_claim_never_meet() {
    owner_against_thieves::<1>(0, 1, 0, 0);
    owner_against_thieves::<1>(0, 3, 1, 0);
    owner_against_thieves::<1>(0, 0, 0, 2);
}

#[test]
fn an_unfenced_ring_overflows_under_a_thief() {
    owner_against_thieves::<1>(0, CAPACITY, 0, 2);
    owner_against_thieves::<1>(0, CAPACITY - 1, 0, 3);
}

#[test]
fn two_thieves_of_an_unfenced_ring_take_each_item_once() {
    owner_against_thieves::<2>(0, 3, 1, 0);
}

#[test]
fn an_unfenced_slot_is_not_overwritten_before_it_is_copied() {
    owner_against_thieves::<1>(0, CAPACITY, 1, 2);
    owner_against_thieves::<1>(0, CAPACITY, 1, 3);
}

#[test]
fn an_unfenced_ring_wraps() {
    owner_against_thieves::<1>(u32::MAX, CAPACITY, 1, 2);
    owner_against_thieves::<1>(u32::MAX - 2, 3, 1, 2);
}

#[cfg(not(blitz_loom))]
mod real {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{super::HALF, drain, push, unfenced};
    use crate::engine::{
        prim::{
            Arc, AtomicBool, AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
            thread,
        },
        queue::{
            ring::{CAPACITY, Pushed},
            test_node::TestNode,
        },
    };

    proptest! {
        /// Positive steps push that many, negative ones pop, zero loses half to a thief.
        #[test]
        fn an_unfenced_ring_behaves_as_a_deque(
            start in prop_oneof![Just(0), u32::MAX - 600..=u32::MAX],
            steps in prop::collection::vec(-150i32..200, 0..40),
        ) {
            let (mut owner, thief) = unfenced(start);
            let (mut deque, mut next) = (VecDeque::new(), 0);
            for step in steps {
                for _ in 0..step.max(0) {
                    let spilt = push(&mut owner, next);
                    let full = deque.len() == CAPACITY as usize;
                    let expected: Vec<u32> = deque.drain(..if full { HALF } else { 0 } as usize).collect();
                    prop_assert_eq!(spilt, expected);
                    deque.push_back(next);
                    next += 1;
                }
                for _ in step..0 {
                    prop_assert_eq!(owner.pop().map(|item| item.value()), deque.pop_front());
                }
                if step == 0 {
                    let (mut target, _) = unfenced(7);
                    let stolen = thief.steal_half_into(&mut target);
                    let mut loot: Vec<_> = stolen.first.iter().map(TestNode::value).collect();
                    loot.extend(drain(&mut target));
                    let half = deque.len().div_ceil(2);
                    prop_assert_eq!(loot, deque.drain(..half).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_million_items_pass_an_unfenced_ring_once() {
        const ITEMS: u32 = 1_000_000;
        // Relaxed, here and below: counters; `join` orders the final check.
        let seen: Arc<[AtomicU32]> = (0..ITEMS).map(|_| AtomicU32::new(0)).collect();
        let done = Arc::new(AtomicBool::new(false));
        let (mut owner, victim) = unfenced::<TestNode>(u32::MAX - 1000);
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let (victim, seen, done) = (victim.clone(), seen.clone(), done.clone());
                thread::spawn(move || {
                    let (mut target, _) = unfenced(0);
                    // Acquire: pairs with the Release below.
                    while !done.load(Acquire) {
                        let stolen = victim.steal_half_into(&mut target);
                        for item in
                            stolen.first.into_iter().chain(std::iter::from_fn(|| target.pop()))
                        {
                            seen[item.value() as usize].fetch_add(1, Relaxed);
                        }
                    }
                })
            })
            .collect();
        for value in 0..ITEMS {
            if let Pushed::Overflow(mut chain) = owner.push(TestNode::new(value)) {
                while let Some(item) = chain.pop_front() {
                    seen[item.value() as usize].fetch_add(1, Relaxed);
                }
            }
            if value % 2 == 0 {
                owner.pop().iter().for_each(|item| {
                    seen[item.value() as usize].fetch_add(1, Relaxed);
                });
            }
        }
        while let Some(item) = owner.pop() {
            seen[item.value() as usize].fetch_add(1, Relaxed);
        }
        // Release: pairs with the Acquire above.
        done.store(true, Release);
        thieves.into_iter().for_each(|thief| thief.join().unwrap());
        let wrong = seen.iter().filter(|count| count.load(Relaxed) != 1).count();
        assert_eq!(wrong, 0, "items lost or taken twice");
    }
}
