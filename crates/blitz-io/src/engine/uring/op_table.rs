//! The table of operations under way, by the IDs that the kernel knows them by.
//!
//! An ID is a slot in the table and a count of how often that slot was freed before. The
//! kernel returns it with the completion. A cancel names one too, and may come after the
//! completion: then the ID matches no operation, whichever one has the slot now.
//!
//! # Checked by
//! `a_slot_is_reused_under_another_id`, `all_operations_are_listed`; the uring's models.
//! Weakened as `op_table_new_id`.

use crate::engine::prim::weakened;

/// The ID of an operation under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OpId(u64);

impl OpId {
    /// The ID of the uring's own requests; their completions are ignored.
    pub(crate) const NONE_ID: Self = Self(u64::MAX);

    fn new(slot: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(slot))
    }

    /// Returns the ID as the kernel stores it.
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Restores an ID that the kernel returned.
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A slab of operations with generation-checked IDs.
pub(crate) struct OpTable<T> {
    slots: Vec<OpSlot<T>>,
    /// The first free slot; the free slots form a linked list.
    free: u32,
    count: usize,
}

struct OpSlot<T> {
    /// How often the slot was freed.
    generation: u32,
    content: SlotContent<T>,
}

enum SlotContent<T> {
    Op(T),
    /// A free slot, with the index of the next free one.
    Free(u32),
}

/// The end of the free list. No slot has this index, so `OpId::NONE_ID` matches none.
const LAST: u32 = u32::MAX;

impl<T> OpTable<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: LAST, count: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds an operation and returns its ID.
    ///
    /// # Panics
    /// Panics if about four thousand million operations are under way.
    pub(crate) fn insert(&mut self, op: T) -> OpId {
        self.count += 1;
        if self.free == LAST {
            let slot = u32::try_from(self.slots.len()).ok().filter(|slot| *slot != LAST);
            let slot = slot.expect("the kernel has memory for fewer");
            self.slots.push(OpSlot { generation: 0, content: SlotContent::Op(op) });
            return OpId::new(slot, 0);
        }
        let at = self.free;
        let slot = &mut self.slots[at as usize];
        if let SlotContent::Free(next) = std::mem::replace(&mut slot.content, SlotContent::Op(op)) {
            self.free = next;
        }
        OpId::new(at, slot.generation)
    }

    /// Removes the operation with that ID; returns `None` if it was removed before.
    pub(crate) fn remove(&mut self, id: OpId) -> Option<T> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.generation != id.generation() || matches!(slot.content, SlotContent::Free(_)) {
            return None;
        }
        let SlotContent::Op(op) =
            std::mem::replace(&mut slot.content, SlotContent::Free(self.free))
        else {
            return None;
        };
        if !weakened!("op_table_new_id") {
            slot.generation = slot.generation.wrapping_add(1);
        }
        self.free = id.slot() as u32;
        self.count -= 1;
        Some(op)
    }

    /// Returns the IDs of all operations.
    pub(crate) fn ids(&self) -> Vec<OpId> {
        self.each().map(|(id, _)| id).collect()
    }

    /// Returns an iterator over all operations with their IDs.
    pub(crate) fn each(&self) -> impl Iterator<Item = (OpId, &T)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| match &slot.content {
            SlotContent::Op(op) => Some((OpId::new(at as u32, slot.generation), op)),
            SlotContent::Free(_) => None,
        })
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{OpId, OpTable};

    #[test]
    fn a_slot_is_reused_under_another_id() {
        let mut ops = OpTable::new();
        let first = ops.insert('a');
        assert_eq!((ops.remove(first), ops.remove(first)), (Some('a'), None));
        let second = ops.insert('b');
        assert_eq!(first.slot(), second.slot(), "the slot is used again");
        assert_eq!(ops.remove(first), None, "the first has ended");
        assert_eq!(ops.remove(OpId::NONE_ID), None);
        assert_eq!((ops.remove(second), ops.len()), (Some('b'), 0));
    }

    #[test]
    fn all_operations_are_listed() {
        let mut ops = OpTable::new();
        let ids: Vec<OpId> = (0..10).map(|id| ops.insert(id)).collect();
        for id in &ids[3..7] {
            ops.remove(*id);
        }
        let again: Vec<OpId> = (0..2).map(|id| ops.insert(id)).collect();
        let mut listed = ops.ids();
        listed.sort_by_key(|id| id.bits());
        let mut wanted: Vec<OpId> =
            ids[..3].iter().chain(&ids[7..]).chain(&again).copied().collect();
        wanted.sort_by_key(|id| id.bits());
        assert_eq!((listed, ops.len()), (wanted, 8));
    }
}
