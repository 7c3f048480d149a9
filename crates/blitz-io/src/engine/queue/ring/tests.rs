//! Tests of the ring on real threads: against a deque, under load, and when it is dropped.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::{CAPACITY, HALF, Pushed, RingOwner, Thief, ring, ring_from};
use crate::engine::{
    prim::{
        Arc, AtomicBool, AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
        thread,
    },
    queue::{
        Chain,
        test_node::{DropCounter, TestNode, values},
    },
};

const fn may_be_sent<T: Send>() {}
const fn may_be_shared<T: Sync>() {}
const _: () = {
    may_be_sent::<RingOwner<TestNode>>();
    may_be_sent::<Thief<TestNode>>();
    may_be_shared::<Thief<TestNode>>();
};

#[derive(Debug, Clone)]
enum RingStep {
    Push(usize),
    Pop(usize),
    PushChain(usize),
    /// Steals half of a second ring that has this many items.
    Receive(usize),
    /// Loses half to a third ring, which is then emptied.
    LoseHalf,
}

fn step() -> impl Strategy<Value = RingStep> {
    prop_oneof![
        4 => (1usize..200).prop_map(RingStep::Push),
        4 => (1usize..200).prop_map(RingStep::Pop),
        2 => (0usize..400).prop_map(RingStep::PushChain),
        1 => (0usize..=CAPACITY as usize).prop_map(RingStep::Receive),
        1 => Just(RingStep::LoseHalf),
    ]
}

/// The ring, the deque that predicts its contents, and the next value.
struct Pair {
    owner: RingOwner<TestNode>,
    thief: Thief<TestNode>,
    deque: VecDeque<u32>,
    next: u32,
}

impl Pair {
    fn new(start: u32) -> Self {
        let (owner, thief) = ring_from(start);
        Self { owner, thief, deque: VecDeque::new(), next: 0 }
    }

    fn values(&mut self, count: usize) -> Vec<u32> {
        let first = self.next;
        self.next += count as u32;
        (first..self.next).collect()
    }

    fn run(&mut self, step: &RingStep) {
        match *step {
            RingStep::Push(count) => {
                self.values(count).into_iter().for_each(|value| self.push(value))
            }
            RingStep::Pop(count) => (0..count).for_each(|_| {
                assert_eq!(self.owner.pop().map(|item| item.value()), self.deque.pop_front());
            }),
            RingStep::PushChain(count) => self.push_chain(count),
            RingStep::Receive(count) => self.receive(count),
            RingStep::LoseHalf => self.lose_half(),
        }
        assert_eq!(self.owner.len() as usize, self.deque.len());
        assert_eq!(self.thief.len() as usize, self.deque.len());
        assert_eq!(self.owner.room() as usize, CAPACITY as usize - self.deque.len());
        assert_eq!(self.owner.is_empty(), self.deque.is_empty());
        assert_eq!(self.thief.is_empty(), self.deque.is_empty());
    }

    fn push(&mut self, value: u32) {
        let full = self.deque.len() == CAPACITY as usize;
        let spilt = match self.owner.push(TestNode::new(value)) {
            Pushed::Kept => {
                assert!(!full);
                return self.deque.push_back(value);
            }
            Pushed::Overflow(chain) => values(chain),
        };
        assert!(full);
        self.deque.push_back(value);
        assert_eq!(spilt, self.deque.drain(HALF as usize..).collect::<Vec<_>>());
    }

    fn push_chain(&mut self, count: usize) {
        let room = CAPACITY as usize - self.deque.len();
        let new = self.values(count);
        let mut chain: Chain<_> = new.iter().copied().map(TestNode::new).collect();
        let moved = self.owner.push_chain(&mut chain) as usize;
        assert_eq!(moved, room.min(count));
        self.deque.extend(&new[..moved]);
        assert_eq!(values(chain), new[moved..]);
    }

    fn receive(&mut self, count: usize) {
        let (mut other, victim) = ring_from(self.next.wrapping_mul(0x9e37_79b9));
        let new = self.values(count);
        let mut chain: Chain<_> = new.iter().copied().map(TestNode::new).collect();
        assert_eq!(other.push_chain(&mut chain) as usize, count);
        let room = CAPACITY as usize - self.deque.len();
        let stolen = victim.steal_half_into(&mut self.owner);
        let taken = count.div_ceil(2).min(room + 1);
        assert!(!stolen.busy);
        assert_eq!(stolen.moved as usize, taken.saturating_sub(1));
        assert_eq!(stolen.first.map(|item| item.value()), new.first().copied());
        self.deque.extend(&new[taken.min(1)..taken]);
        assert_eq!(other.pop().map(|item| item.value()), new.get(taken).copied());
    }

    fn lose_half(&mut self) {
        let count = self.deque.len().div_ceil(2);
        let (mut target, _) = ring();
        let stolen = self.thief.steal_half_into(&mut target);
        let mut stolen_values: Vec<_> = stolen.first.into_iter().map(|item| item.value()).collect();
        stolen_values.extend(std::iter::from_fn(|| target.pop()).map(|item| item.value()));
        assert_eq!(stolen_values, self.deque.drain(..count).collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn a_ring_behaves_as_a_deque(
        start in prop_oneof![Just(0), u32::MAX - 600..=u32::MAX, any::<u32>()],
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut pair = Pair::new(start);
        steps.iter().for_each(|step| pair.run(step));
    }
}

#[test]
fn stealing_from_oneself_loses_nothing() {
    let (mut owner, thief) = ring();
    for value in 0..10 {
        assert!(matches!(owner.push(TestNode::new(value)), Pushed::Kept));
    }
    let stolen = thief.steal_half_into(&mut owner);
    assert_eq!((stolen.moved, stolen.first.map(|item| item.value())), (4, Some(0)));
    let left: Vec<_> = std::iter::from_fn(|| owner.pop()).map(|item| item.value()).collect();
    assert_eq!(left, [5, 6, 7, 8, 9, 1, 2, 3, 4]);
}

#[test]
fn an_owner_drops_what_is_left_once() {
    let counter = DropCounter::new(3 * CAPACITY);
    let (mut owner, thief) = ring_from(u32::MAX - 5);
    let mut spilt = Chain::new();
    for value in 0..3 * CAPACITY {
        if let Pushed::Overflow(chain) = owner.push(TestNode::counted(value, &counter)) {
            spilt.append(chain);
        }
    }
    let (mut target, _) = ring();
    let stolen = thief.steal_half_into(&mut target);
    drop((stolen, target, owner));
    assert_eq!(thief.len(), 0, "a thief outlives the ring's owner and finds nothing");
    drop(spilt);
    counter.assert_each_dropped_once();
}

#[test]
fn a_panic_in_one_drop_does_not_leak_what_is_left() {
    let counter = DropCounter::new(4);
    let (mut owner, _) = ring();
    for value in 0..4 {
        let item = if value == 1 {
            TestNode::that_panics(value, &counter)
        } else {
            TestNode::counted(value, &counter)
        };
        assert!(matches!(owner.push(item), Pushed::Kept));
    }
    let owner = std::panic::AssertUnwindSafe(owner);
    assert!(std::panic::catch_unwind(move || drop({ owner }.0)).is_err());
    counter.assert_each_dropped_once();
}

/// Sends `items` items through a ring with two thieves, which also steal from each other, and
/// counts every item.
fn exactly_once(items: u32) {
    let seen: Arc<[AtomicU32]> = (0..items.div_ceil(32)).map(|_| AtomicU32::new(0)).collect();
    // Relaxed: a set of flags; `join` orders the final check.
    let see = move |item: TestNode| {
        let (word, bit) = (item.value() / 32, 1 << (item.value() % 32));
        assert_eq!(seen[word as usize].fetch_or(bit, Relaxed) & bit, 0, "{} twice", item.value());
    };
    let done = Arc::new(AtomicBool::new(false));
    let (mut owner, victim) = ring_from(u32::MAX - 1000);
    let (a, b) = (ring(), ring_from(u32::MAX - 300));
    let victims = [vec![victim.clone(), b.1], vec![victim, a.1]];
    let thieves: Vec<_> = [a.0, b.0]
        .into_iter()
        .zip(victims)
        .map(|(target, victims)| {
            let (see, done) = (see.clone(), done.clone());
            thread::spawn(move || rob(target, &victims, &see, &done))
        })
        .collect();
    let mut seen_here = 0u64;
    for value in 0..items {
        if let Pushed::Overflow(mut chain) = owner.push(TestNode::new(value)) {
            while let Some(item) = chain.pop_front() {
                see(item);
                seen_here += 1;
            }
        }
        if value % 3 == 0 {
            owner.pop().into_iter().for_each(|item| {
                see(item);
                seen_here += 1;
            });
        }
    }
    while let Some(item) = owner.pop() {
        see(item);
        seen_here += 1;
    }
    // Release: the ring is empty for good. Pairs with the Acquire in `rob`.
    done.store(true, Release);
    let seen_there: u64 = thieves.into_iter().map(|thief| thief.join().unwrap()).sum();
    assert_eq!(seen_here + seen_there, u64::from(items));
}

/// Steals until `done`, and then until there is nothing left. Returns how many items it saw.
fn rob(
    mut target: RingOwner<TestNode>,
    victims: &[Thief<TestNode>],
    see: &impl Fn(TestNode),
    done: &AtomicBool,
) -> u64 {
    let mut count = 0;
    loop {
        // Acquire: pairs with the Release in `exactly_once`.
        let last = done.load(Acquire);
        for victim in victims {
            count += victim.steal_half_into(&mut target).first.into_iter().map(see).count() as u64;
        }
        // Pops only a part, so that the other thief finds something.
        for _ in 0..if last { CAPACITY } else { CAPACITY / 8 } {
            count += target.pop().into_iter().map(see).count() as u64;
        }
        // The owner of a ring must finish what is in it, and this thread has just done so.
        if last && target.is_empty() {
            return count;
        }
    }
}

#[test]
fn a_million_items_arrive_exactly_once() {
    exactly_once(1_000_000);
}

/// Runs the exactly-once test at the size that the design requires.
#[test]
#[ignore = "a minute: cargo test --release -p blitz-io --lib ten_to -- --ignored"]
fn ten_to_the_eighth_items_arrive_exactly_once() {
    exactly_once(100_000_000);
}
