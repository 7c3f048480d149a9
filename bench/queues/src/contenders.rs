//! The rings, behind one trait.

use queue_variants::queues::{Item, Ring, RingThief, Unfenced, UnfencedRobber};

/// A queue with an owner's and a thief's end, of at least 256 items.
pub(crate) trait Contender: Sized + Send + 'static {
    type Thief: Send + 'static;
    fn pair() -> (Self, Self::Thief);
    /// Pushes to a queue that no thief steals from and that is not full.
    fn push(&mut self, item: Item);
    /// Pushes; items that find no room go to `spilt`.
    fn push_or_spill(&mut self, item: Item, spilt: &mut Vec<Item>);
    fn pop(&mut self) -> Option<Item>;
    /// Moves half to `target`, except the one that is returned; also returns how many were taken in
    /// all.
    fn steal_half(thief: &Self::Thief, target: &mut Self) -> Option<(Item, u32)>;
}

pub(crate) struct Ours(Ring);

impl Contender for Ours {
    type Thief = RingThief;

    fn pair() -> (Self, RingThief) {
        let (ring, thief) = Ring::pair();
        (Self(ring), thief)
    }

    #[inline(always)]
    fn push(&mut self, item: Item) {
        assert!(self.0.push(item).is_none(), "the loops never fill a ring");
    }

    #[inline(always)]
    fn push_or_spill(&mut self, item: Item, spilt: &mut Vec<Item>) {
        if let Some(mut overflow) = self.0.push(item) {
            spilt.extend(std::iter::from_fn(|| overflow.pop()));
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }

    #[inline(always)]
    fn steal_half(thief: &Self::Thief, target: &mut Self) -> Option<(Item, u32)> {
        thief.steal_half(&mut target.0).map(|(item, moved)| (item, moved + 1))
    }
}

pub(crate) struct FenceFree(Unfenced);

impl Contender for FenceFree {
    type Thief = UnfencedRobber;

    fn pair() -> (Self, UnfencedRobber) {
        let (ring, thief) = Unfenced::pair();
        (Self(ring), thief)
    }

    #[inline(always)]
    fn push(&mut self, item: Item) {
        assert!(self.0.push(item).is_none(), "the loops never fill a ring");
    }

    #[inline(always)]
    fn push_or_spill(&mut self, item: Item, spilt: &mut Vec<Item>) {
        if let Some(mut overflow) = self.0.push(item) {
            spilt.extend(std::iter::from_fn(|| overflow.pop()));
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }

    #[inline(always)]
    fn steal_half(thief: &Self::Thief, target: &mut Self) -> Option<(Item, u32)> {
        thief.steal_half(&mut target.0).map(|(item, moved)| (item, moved + 1))
    }
}

pub(crate) struct Crossbeam(crossbeam_deque::Worker<Item>);

impl Contender for Crossbeam {
    type Thief = crossbeam_deque::Stealer<Item>;

    fn pair() -> (Self, Self::Thief) {
        let worker = crossbeam_deque::Worker::new_fifo();
        let stealer = worker.stealer();
        (Self(worker), stealer)
    }

    #[inline(always)]
    fn push(&mut self, item: Item) {
        self.0.push(item);
    }

    #[inline(always)]
    fn push_or_spill(&mut self, item: Item, _: &mut Vec<Item>) {
        self.0.push(item);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }

    #[inline(always)]
    fn steal_half(thief: &Self::Thief, target: &mut Self) -> Option<(Item, u32)> {
        let before = target.0.len();
        // Its own limit is 32; half of our ring is 128.
        let stolen = thief.steal_batch_with_limit_and_pop(&target.0, 128).success()?;
        Some((stolen, (target.0.len() - before) as u32 + 1))
    }
}

pub(crate) struct St3(st3::fifo::Worker<Item>);

impl Contender for St3 {
    type Thief = st3::fifo::Stealer<Item>;

    fn pair() -> (Self, Self::Thief) {
        let worker = st3::fifo::Worker::new(256);
        let stealer = worker.stealer();
        (Self(worker), stealer)
    }

    #[inline(always)]
    fn push(&mut self, item: Item) {
        assert!(self.0.push(item).is_ok(), "the loops never fill a ring");
    }

    #[inline(always)]
    fn push_or_spill(&mut self, item: Item, spilt: &mut Vec<Item>) {
        spilt.extend(self.0.push(item).err());
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Item> {
        self.0.pop()
    }

    #[inline(always)]
    fn steal_half(thief: &Self::Thief, target: &mut Self) -> Option<(Item, u32)> {
        let half = |count| count - count / 2;
        thief.steal_and_pop(&target.0, half).ok().map(|(item, moved)| (item, moved as u32 + 1))
    }
}
