//! The table of records, and the tokens by which the kernel names them.
//!
//! A token is a slot in the table and the generation of the record there. The kernel returns it
//! with each event. The token of a registration that has ended names a past generation, so its
//! event is dropped, whichever registration has the slot now.
//!
//! Records are created on demand. They lie in blocks, each twice as large as the one before, and
//! stay there until the table is dropped. So an event finds its record by a few shifts, without a
//! lock or a reference count.
//!
//! # Invariants
//! 1. The first `made` records exist, and blocks stay where they are until the table is dropped.
//! 2. A slot in `free` has no registration, and every other existing slot has one.
//! 3. Tokens are created only in this file, from slots that exist.
//!
//! # Rejected
//! - An `Arc` for each record, with the pointer as the token: an event of a descriptor that was
//!   just closed would lead to freed memory, unless all closed records are kept until the thread
//!   that takes a turn has finished it.
//! - A lock for each event, or a lock for each part of the table: an event needs no lock as it is.
//!   A registration or its end takes the table's lock for a few instructions, which is little
//!   beside the kernel's own lock of the epoll instance, held for about a microsecond.
//! - Freeing memory when most registrations have ended: the table has 128 bytes for each of the
//!   largest number of descriptors that were ever open at once, so the process has needed that
//!   memory before.
//!
//! # Checked by
//! `a_slot_is_used_again_under_another_token`, `slots_are_found_again_in_every_block`,
//! `an_ended_token_reaches_no_registration`, `a_registration_against_a_shutdown_is_shut_down`;
//! weakened as `record_table_closed_is_seen`.

use std::{mem::MaybeUninit, ptr::NonNull};

use super::{readiness::Record, ready::Ready};
use crate::engine::{
    prim::{
        AtomicPtr,
        Ordering::{Acquire, Relaxed, Release},
        pad::CachePadded,
        store_lock::StoreLock,
        weakened,
    },
    wait::wake_list::WakeList,
};

/// The number of records in the first block: 8 KiB, enough for a small program. A model has one, so
/// that it reaches a second block.
const FIRST: u32 = if cfg!(blitz_loom) { 1 } else { 64 };

/// The number of blocks, chosen so that all slots fit into 32 bits, with one slot left over for
/// [`Token::NUDGE`].
const BLOCKS: usize = (u32::BITS - FIRST.ilog2()) as usize;

/// The 64-bit value by which the kernel names a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

impl Token {
    /// The token of the driver's own descriptor, by which a wait is ended; no registration has it.
    #[cfg(any(unix, test))]
    pub(crate) const NUDGE: Self = Self(u64::MAX);

    fn new(slot: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(slot))
    }

    /// Returns the token as the kernel stores it, where it can store 64 bits.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Restores a token that the kernel returned.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    fn slot(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

type Padded = CachePadded<Record>;

/// The table of all records of a driver.
pub(crate) struct RecordTable {
    blocks: [AtomicPtr<MaybeUninit<Padded>>; BLOCKS],
    slots: StoreLock<RecordSlots>,
}

struct RecordSlots {
    /// Slots that were used before and are free now. Its capacity covers every existing slot, so
    /// returning one never allocates.
    free: Vec<u32>,
    made: u32,
    /// Set when the driver has shut down; no registration is accepted any more.
    closed: bool,
}

/// A slot in the table that belongs to a registration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenRecord {
    pub(crate) token: Token,
    /// Points into the table, and is valid for as long as the table lives.
    pub(crate) record: NonNull<Record>,
}

/// The reason why no slot can be given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The driver has ended.
    Closed,
    /// About four thousand million descriptors are open.
    Full,
}

/// Returns the block of a slot, and the index within that block.
#[inline]
fn split(slot: u32) -> (usize, usize) {
    let number = slot + FIRST;
    let block = number.ilog2() - FIRST.ilog2();
    (block as usize, (number - (FIRST << block)) as usize)
}

/// Returns the number of records in a block.
fn size(block: usize) -> usize {
    (FIRST as usize) << block
}

impl RecordTable {
    pub(crate) fn new() -> Self {
        let slots = RecordSlots { free: Vec::new(), made: 0, closed: false };
        Self {
            blocks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            slots: StoreLock::new(slots),
        }
    }

    /// Returns a record for a new registration, which must [`close`](Self::close) it.
    pub(crate) fn open(&self) -> Result<OpenRecord, OpenError> {
        loop {
            let mut slots = self.slots.lock();
            if slots.closed && !weakened!("record_table_closed_is_seen") {
                return Err(OpenError::Closed);
            }
            if let Some(slot) = slots.free.pop() {
                drop(slots);
                return Ok(self.open_record(slot));
            }
            let slot = slots.made;
            if slot >= u32::MAX - FIRST {
                return Err(OpenError::Full);
            }
            let (block, offset) = split(slot);
            // Relaxed: written only under the lock, which we hold.
            let Some(block) = NonNull::new(self.blocks[block].load(Relaxed)) else {
                // The allocator may be a user's, so it must not be called under the lock.
                drop(slots);
                self.grow(block);
                continue;
            };
            // SAFETY: 1. the index is within the block, by `split`. 2. No other thread writes this
            // record: we hold the lock, and `made` counts it below.
            unsafe { block.add(offset).write(MaybeUninit::new(Padded::new(Record::new()))) };
            slots.made += 1;
            let made = slots.made as usize;
            slots.free.reserve(made);
            drop(slots);
            return Ok(self.open_record(slot));
        }
    }

    /// Allocates a block, unless another thread has done so.
    #[cold]
    fn grow(&self, block: usize) {
        let fresh = Box::<[Padded]>::new_uninit_slice(size(block));
        let fresh = Box::into_raw(fresh);
        let slots = self.slots.lock();
        // Relaxed: written under the lock only.
        let spare = if self.blocks[block].load(Relaxed).is_null() {
            // Release: a thread that finds the block sees what the allocator wrote. Pairs with the
            // Acquire in `record`.
            self.blocks[block].store(fresh.cast(), Release);
            None
        } else {
            Some(fresh)
        };
        drop(slots);
        if let Some(spare) = spare {
            // SAFETY: this is the box from above, and it was not published, so no other thread has
            // it.
            drop(unsafe { Box::from_raw(spare) });
        }
    }

    fn open_record(&self, slot: u32) -> OpenRecord {
        // SAFETY: 1. the caller got the slot from `free` or has just created it.
        let record = unsafe { self.record(slot) };
        OpenRecord { token: Token::new(slot, record.generation()), record: NonNull::from(record) }
    }

    /// Returns the record at a slot.
    ///
    /// # Safety
    /// 1. The slot has been created (it is below `made`).
    #[inline]
    unsafe fn record(&self, slot: u32) -> &Record {
        if cfg!(blitz_sanitize) {
            // An event follows its registration through the kernel, which ThreadSanitizer does not
            // see: taking the lock under which the record was created shows it the order.
            drop(self.slots.lock());
        }
        let (block, offset) = split(slot);
        // Acquire: pairs with the Release in `grow`.
        let block = self.blocks[block].load(Acquire);
        // SAFETY: the slot exists by obligation 1, so by the first invariant its record is
        // initialised and stays there; only shared references to records are handed out.
        unsafe { (*block.add(offset)).assume_init_ref() }
    }

    /// Dispatches an event of the kernel to the registration with that token. Returns false if that
    /// registration has ended.
    #[inline]
    pub(crate) fn dispatch(&self, token: Token, ready: Ready, wake_list: &mut WakeList) -> bool {
        // SAFETY: 1. by the third invariant tokens name only slots that exist.
        let record = unsafe { self.record(token.slot()) };
        record.set(token.generation(), ready, wake_list)
    }

    /// Ends a registration; from now on its token names none.
    pub(crate) fn close(&self, open_record: OpenRecord) {
        // SAFETY: the table lives, and records live as long as it does.
        let record = unsafe { open_record.record.as_ref() };
        debug_assert_eq!(record.generation(), open_record.token.generation(), "it ended before");
        let wakers = record.end();
        self.slots.lock().free.push(open_record.token.slot());
        // The lock was released at the end of the statement above.
        drop(wakers);
    }

    /// Refuses new registrations, and wakes every waiter with the shutdown error.
    pub(crate) fn shut_down(&self) {
        let mut slots = self.slots.lock();
        slots.closed = true;
        let made = slots.made;
        drop(slots);
        let mut wake_list = WakeList::new();
        for slot in 0..made {
            // SAFETY: 1. the slot is below `made`, which was read under the lock.
            unsafe { self.record(slot) }.shut_down(&mut wake_list);
        }
        wake_list.wake_all();
    }
}

impl Drop for RecordTable {
    fn drop(&mut self) {
        let made = self.slots.lock().made;
        for slot in 0..made {
            let (block, offset) = split(slot);
            // Relaxed: `&mut self` means that no other thread has access.
            let block = self.blocks[block].load(Relaxed);
            // SAFETY: the first `made` records are initialised, and `&mut self` means that no
            // reference to them is left.
            unsafe { (*block.add(offset)).assume_init_drop() };
        }
        for (block, pointer) in self.blocks.iter().enumerate() {
            // Relaxed: `&mut self` means that no other thread has access.
            let pointer = pointer.load(Relaxed);
            if !pointer.is_null() {
                let slice = std::ptr::slice_from_raw_parts_mut(pointer, size(block));
                // SAFETY: it is a box of `size(block)` records, from `grow`; its contents have been
                // dropped.
                drop(unsafe { Box::from_raw(slice) });
            }
        }
    }
}

impl std::fmt::Debug for RecordTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordTable").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models {
    use std::task::{Context, Poll, Waker};

    use super::{OpenError, RecordTable};
    use crate::engine::{
        driver::{readiness::Direction, ready::Ready},
        prim::{Arc, model, thread},
        wait::wake_list::WakeList,
    };

    /// A registration that races with a shutdown is refused, or sees the shutdown.
    #[test]
    fn a_registration_against_a_shutdown_is_shut_down() {
        model(|| {
            let table = Arc::new(RecordTable::new());
            let other = thread::spawn({
                let table = table.clone();
                move || table.shut_down()
            });
            let opened = table.open();
            other.join().unwrap();
            match opened {
                Err(why) => assert_eq!(why, OpenError::Closed),
                Ok(open_record) => {
                    // SAFETY: the table lives, so its record does.
                    let record = unsafe { open_record.record.as_ref() };
                    let cx = Context::from_waker(Waker::noop());
                    let polled = record.poll(&cx, Direction::Read);
                    assert!(matches!(polled, Poll::Ready(event) if event.is_shutdown()));
                    table.close(open_record);
                }
            }
            assert!(table.open().is_err());
        });
    }

    /// A descriptor is closed and its slot used again while the thread that takes a turn still
    /// holds an event of the first registration.
    #[test]
    fn an_ended_token_reaches_no_registration() {
        model(|| {
            let table = Arc::new(RecordTable::new());
            let first = table.open().expect("it is open");
            let poller = thread::spawn({
                let (table, token) = (table.clone(), first.token);
                move || table.dispatch(token, Ready::READABLE, &mut WakeList::new())
            });
            table.close(first);
            let second = table.open().expect("it is open");
            assert_eq!(second.token.slot(), first.token.slot());
            poller.join().unwrap();
            // SAFETY: the table lives, so its record does.
            let ready = unsafe { second.record.as_ref() }.snapshot(Ready::ALL).ready();
            assert!(ready.is_empty(), "the second got the event of the first");
            table.close(second);
        });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::collections::HashSet;

    use super::{FIRST, RecordTable, Token, size, split};
    use crate::engine::{driver::ready::Ready, wait::wake_list::WakeList};

    #[test]
    fn slots_are_found_again_in_every_block() {
        assert_eq!(split(0), (0, 0));
        assert_eq!(split(FIRST - 1), (0, FIRST as usize - 1));
        assert_eq!(split(FIRST), (1, 0));
        let (block, offset) = split(u32::MAX - FIRST);
        assert!(block < super::BLOCKS && offset < size(block));
        let (table, mut wake_list) = (RecordTable::new(), WakeList::new());
        let all: Vec<_> = (0..1_000).map(|_| table.open().unwrap()).collect();
        let tokens: HashSet<Token> = all.iter().map(|open_record| open_record.token).collect();
        assert_eq!(tokens.len(), all.len());
        assert!(!tokens.contains(&Token::NUDGE));
        for open_record in &all {
            assert!(table.dispatch(open_record.token, Ready::WRITABLE, &mut wake_list));
            // SAFETY: the table lives, so its record does.
            let ready = unsafe { open_record.record.as_ref() }.snapshot(Ready::ALL).ready();
            assert_eq!(ready, Ready::WRITABLE);
        }
        all.into_iter().for_each(|open_record| table.close(open_record));
    }

    #[test]
    fn a_slot_is_used_again_under_another_token() {
        let (table, mut wake_list) = (RecordTable::new(), WakeList::new());
        let first = table.open().unwrap();
        assert!(table.dispatch(first.token, Ready::READABLE, &mut wake_list));
        table.close(first);
        let second = table.open().unwrap();
        assert_eq!(first.record, second.record, "the memory is used again");
        assert_ne!(first.token, second.token);
        assert!(!table.dispatch(first.token, Ready::READABLE, &mut wake_list));
        assert!(table.dispatch(second.token, Ready::WRITABLE, &mut wake_list));
        table.close(second);
    }

    #[test]
    fn a_record_is_two_cache_lines() {
        assert!(size_of::<super::Padded>() <= 128, "{}", size_of::<super::Padded>());
    }
}
