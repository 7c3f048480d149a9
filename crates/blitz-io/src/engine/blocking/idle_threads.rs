//! Idle threads of the blocking pool: each has a slot to sleep in, and each slot has a mark.
//!
//! Slots are numbered from zero and are allocated in blocks of 64, when the first thread needs one
//! of them: most runtimes never have a second block. A block has its marks in one word. A spawner
//! takes the lowest mark, so that the same few threads stay warm, and the others are left alone
//! until their time-out.
//!
//! # Invariants
//! A slot belongs to one thread at a time (`registry` assigns them). Its `woken` is set once for
//! each mark that another thread took, after that mark was taken, and is cleared by the thread of
//! the slot; a token in the parker alone means nothing.
//!
//! # Checked by
//! The models of the thread set.

use crate::engine::prim::{
    AtomicBool, AtomicU64, Mutex, OnceLock,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    backoff::Backoff,
    pad::CachePadded,
    parker::Parker,
    thread, weakened,
};

/// Number of slots in a block: the bits of a word.
const BLOCK: usize = u64::BITS as usize;

/// A slot in which one thread sleeps, with the state that it shares with other threads.
pub(crate) struct IdleSlot<E, R> {
    pub(crate) parker: Parker,
    /// Set after another thread took the mark and left its spare work, if it has one.
    woken: AtomicBool,
    /// The spare work that the thread is woken for; `None` if it is woken for a job.
    pub(crate) spare_work: Mutex<Option<E>>,
    /// The job that the thread runs.
    pub(crate) running: Mutex<Option<R>>,
}

struct SlotBlock<E, R> {
    /// One bit for each slot, set while the thread of the slot may be woken.
    marks: CachePadded<AtomicU64>,
    slots: Box<[CachePadded<IdleSlot<E, R>>]>,
}

/// All slots of a blocking pool, in blocks of 64.
pub(crate) struct IdleThreads<E, R> {
    blocks: Box<[OnceLock<SlotBlock<E, R>>]>,
}

impl<E, R> IdleThreads<E, R> {
    /// Creates at least `count` slots.
    pub(crate) fn new(count: usize) -> Self {
        Self { blocks: (0..count.div_ceil(BLOCK)).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the number of slots, allocated or not.
    pub(crate) fn count(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    /// Allocates the block of the slot, if that was not done before.
    pub(crate) fn allocate(&self, slot: usize) {
        self.blocks[slot / BLOCK].get_or_init(SlotBlock::new);
    }

    pub(crate) fn slot(&self, slot: usize) -> &IdleSlot<E, R> {
        &self.block(slot).slots[slot % BLOCK]
    }

    /// Returns all slots that were allocated.
    pub(crate) fn allocated(&self) -> impl Iterator<Item = &IdleSlot<E, R>> {
        let blocks = self.blocks.iter().filter_map(|block| block.get());
        blocks.flat_map(|block| block.slots.iter().map(|slot| &**slot))
    }

    /// Marks the slot: from now on its thread may be woken.
    pub(crate) fn mark(&self, slot: usize) {
        // AcqRel: each time the mark is set it has one taker, which sees what the thread did
        // before. Pairs with `take_mark`.
        self.block(slot).marks.fetch_or(bit(slot), AcqRel);
    }

    /// Takes the mark of the slot; returns `false` if another thread has taken it.
    pub(crate) fn take_mark(&self, slot: usize) -> bool {
        take(&self.block(slot).marks, bit(slot))
    }

    /// Returns true if no thread has taken the mark of the slot.
    pub(crate) fn is_marked(&self, slot: usize) -> bool {
        // Acquire: pairs with `take_mark`; the taker will most likely wake the thread.
        self.block(slot).marks.load(Acquire) & bit(slot) != 0
    }

    /// Takes the lowest mark. The caller knows that there is one for it: now, or once threads that
    /// hold their own mark put it back.
    pub(crate) fn take_any_mark(&self) -> usize {
        let mut backoff = Backoff::default();
        loop {
            for (index, block) in self.blocks.iter().enumerate() {
                let Some(block) = block.get() else { continue };
                // Relaxed: a guess; `take` decides.
                let mut marks = block.marks.load(Relaxed);
                while marks != 0 {
                    let lowest = marks & marks.wrapping_neg();
                    if take(&block.marks, lowest) {
                        return index * BLOCK + lowest.trailing_zeros() as usize;
                    }
                    marks &= !lowest;
                }
            }
            if !backoff.spin() {
                thread::yield_now();
            }
        }
    }

    /// Wakes the thread of the slot; the caller must have taken its mark.
    pub(crate) fn wake(&self, slot: usize) {
        let slot = self.slot(slot);
        if weakened!("blocking_marks_before_it_unparks") {
            slot.parker.unpark();
            // Relaxed: the weakened order is wrong in any case.
            slot.woken.swap(true, Relaxed);
            return;
        }
        // Release: publishes the spare work and all else that the caller did. Pairs with
        // `wait_for_wake`. An exchange, as there, because loom keeps only exchanges in one order.
        slot.woken.swap(true, Release);
        slot.parker.unpark();
    }

    /// Waits for the wake-up by the thread that took our mark.
    pub(crate) fn wait_for_wake(&self, slot: usize) {
        let slot = self.slot(slot);
        // AcqRel: pairs with the Release in `wake`.
        while !slot.woken.swap(false, AcqRel) {
            slot.parker.park();
        }
    }

    fn block(&self, slot: usize) -> &SlotBlock<E, R> {
        self.blocks[slot / BLOCK].get().expect("a slot is allocated before it is used")
    }
}

impl<E, R> SlotBlock<E, R> {
    fn new() -> Self {
        // Models have few threads, and every atomic makes them slower.
        let count = if cfg!(blitz_loom) { 4 } else { BLOCK };
        let slot = || IdleSlot {
            parker: Parker::new(),
            woken: AtomicBool::new(false),
            spare_work: Mutex::new(None),
            running: Mutex::new(None),
        };
        Self {
            marks: CachePadded::new(AtomicU64::new(0)),
            slots: (0..count).map(|_| CachePadded::new(slot())).collect(),
        }
    }
}

fn bit(slot: usize) -> u64 {
    1 << (slot % BLOCK)
}

fn take(marks: &AtomicU64, bit: u64) -> bool {
    // AcqRel: each mark has one taker, which sees what its thread did before. Pairs with `mark`.
    marks.fetch_and(!bit, AcqRel) & bit != 0
}
