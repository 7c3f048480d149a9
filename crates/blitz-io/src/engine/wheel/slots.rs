//! The timer wheel itself: entries ordered by deadline. It has no clock, no lock and no thread.
//!
//! Time is counted in granules of 2^14 ns (16.4 µs). The wheel stands at one granule, `elapsed`. It
//! has several levels, and a unit of each level is 64 units of the level below. An entry lies at
//! the lowest level at which it is less than 64 units ahead, in the slot that its granule names in
//! those units. The slots of a level are used in a circle, and one word says which are occupied. So
//! the level of an entry is found by counting leading zeros, and the next occupied slot by counting
//! trailing zeros:
//!
//! ```text
//! level   a slot is      the level reaches
//!   0      16.4 µs             1.05 ms
//!   1       1.05 ms           67 ms
//!   2      67 ms               4.3 s
//!   3       4.3 s              4.6 min
//!   4       4.6 min            4.9 h
//!   5       4.9 h             13 days
//! ```
//! Entries that are farther ahead lie in one list for all, `overflow`.
//!
//! As the wheel turns, it reaches the beginning of slots of the upper levels: their entries are
//! then put into lower levels (they cascade). Each entry does so at most once per level. The
//! overflow list is redistributed every 13 days.
//!
//! # Ahead of time
//! A hundred thousand timers within half a second are 13,000 in a slot of level 2. To cascade these
//! takes a millisecond, by which all timers that are due then are late. So whenever timers were
//! fired, a few entries of the *next* slot of each level are put down one level already
//! ([`AHEAD`]). To make room for them, a level has 128 slots, not 64: entries of the next slot
//! above lie behind those of the present one. Where timers are few, nothing is gained by this, and
//! little lost; where they are many, the slot is empty before the wheel reaches it.
//!
//! # Exact to the nanosecond, where that is cheap
//! Entries keep their deadline. Entries in the slot of the present granule are fired by deadline,
//! and the next time to advance is the deadline of the first entry, not the beginning of its slot:
//! a single timer of a second costs one wake-up, not one per level. Only where more than
//! [`SEARCHED`] entries share a slot, it is not searched; then a timer may be up to a granule late,
//! and never early. (With a paused clock it is exact, whatever that costs.)
//!
//! # Invariants
//! 1. The slot of an entry at level n, counted in units of that level, is not before that of
//!    `elapsed`, and less than 128 after it. So a slot has the entries of one unit, and the first
//!    set bit from the present slot on names the next occupied slot at that level. Levels overlap:
//!    the first entry of all may be at any level. If several slots begin at the same granule, the
//!    one of the upper level cascades before the lower one is fired.
//! 2. A bit is set exactly if its list has an entry.
//! 3. Entries in `MOVING` lay in one list and wait to be put into other slots. Until that list is
//!    empty nothing is fired. Its entries still name the list from which they came, which is only
//!    used to see whether that list is empty.
//! 4. Work during one hold of the lock is bounded: by [`STEPS`], and by the size of a wake list.
//!
//! # Rejected
//! - Levels by the highest digit in which the granule differs from `elapsed`: such levels do not
//!   overlap, which makes it easy to see what comes first; but then nothing can be put down before
//!   the wheel reaches it.
//! - Nine levels and no overflow: half as much memory again in each wheel, for timers that hardly
//!   any program has.
//! - A heap: log n at each cancellation, and most timers are cancelled.
//! - Firing by whole granules: a ticker of a millisecond would be 8 µs late on average, and tests
//!   with a paused clock see the difference.
//!
//! # Checked by
//! `a_wheel_behaves_as_a_sorted_map`, `a_far_jump_fires_everything_in_order`,
//! `timers_beyond_the_top_level_cascade_down`, `work_under_one_lock_is_bounded`,
//! `a_slot_cascaded_early_is_not_cascaded_again_when_it_is_due`.

use std::{pin::Pin, ptr::NonNull, task::Waker};

use super::timer_entry::{TimerEntry, TimerEntryState};
use crate::engine::{prim::weakened, wait::wake_list::WakeList};

/// The bits of a nanosecond count that a granule takes: 16.4 µs, less than the kernel's timers are
/// late by.
const GRANULE_BITS: u32 = 14;

/// The bits by which the unit of a level is larger than that of the level below.
const BITS: u32 = 6;

/// The number of slots of a level: twice its reach, for entries that are put down ahead of time.
const SLOTS: usize = 2 << BITS;

/// The number of levels; six reach 13 days.
const LEVELS: usize = 6;

/// The bits that all levels together cover.
const SPAN_BITS: u32 = BITS * LEVELS as u32;

/// The lists besides the slots.
const OVERFLOW: usize = LEVELS * SLOTS;
const MOVING: usize = OVERFLOW + 1;
const LISTS: usize = MOVING + 1;

/// The number of entries that are moved or examined during one hold of the lock: a few
/// microseconds. Picked, not measured.
const STEPS: usize = if cfg!(blitz_loom) { 4 } else { 256 };

/// The number of entries that are put down ahead of time whenever timers were fired. Picked: a slot
/// of level 2 with 13,000 entries is empty after 200 times, and there are more before the wheel
/// reaches it.
const AHEAD: usize = if cfg!(blitz_loom) { 1 } else { 64 };

/// The number of entries of one slot that are examined to be exact: about what a cascade of one
/// level costs. Picked, not measured.
const SEARCHED: usize = 16;

/// The latest deadline that is different from 'never'.
pub(super) const LATEST_NS: u64 = u64::MAX - 1;

/// A timer wheel: lists of entries by deadline, to be kept behind a lock.
pub(super) struct WheelSlots {
    /// The granule at which the wheel stands.
    elapsed: u64,
    /// The time up to which everything was fired; an earlier deadline is due at once.
    now_ns: u64,
    /// The number of entries.
    len: usize,
    occupied: [u128; LEVELS],
    first: [Option<NonNull<TimerEntry>>; LISTS],
    /// True once the wheel was shut down and takes no more entries.
    ended: bool,
}

// SAFETY: a wheel accesses the shared parts of its entries and nothing else, and these may move
// between threads.
unsafe impl Send for WheelSlots {}

/// The result of an attempt to insert an entry.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// The entry is IN.
    Waits,
    /// Its deadline has passed already.
    Due,
    /// The wheel was shut down.
    Ended,
}

/// The progress of a bounded step of work.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The caller must release the lock, wake the wake list, and call again.
    More,
    Done,
}

/// The next occupied slot of a level.
#[derive(Clone, Copy)]
struct NextSlot {
    list: usize,
    /// The level of the slot; [`LEVELS`] for the overflow.
    level: usize,
    /// The first granule that its entries may have.
    start: u64,
}

/// Returns the list of a slot that is counted in units of its level.
fn list(level: usize, slot: u64) -> usize {
    level * SLOTS + slot as usize % SLOTS
}

impl WheelSlots {
    pub(super) fn new() -> Self {
        Self {
            elapsed: 0,
            now_ns: 0,
            len: 0,
            occupied: [0; LEVELS],
            first: [None; LISTS],
            ended: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether a level has no entries.
    #[cfg(all(test, not(blitz_loom)))]
    pub(super) fn is_bare(&self, level: usize) -> bool {
        self.occupied[level] == 0
    }

    /// Inserts an entry into the slot of its deadline. If it is not inserted, it keeps its waker.
    ///
    /// # Safety
    /// 1. The caller owns the entry, it is OUT, and has a waker.
    /// 2. The caller calls `remove` on this wheel before the entry ends, unless the entry has left.
    pub(super) unsafe fn insert(&mut self, entry: Pin<&TimerEntry>, deadline_ns: u64) -> Inserted {
        let deadline_ns = deadline_ns.min(LATEST_NS);
        if self.ended && !weakened!("wheel_ends") {
            return Inserted::Ended;
        }
        if deadline_ns <= self.now_ns || deadline_ns >> GRANULE_BITS < self.elapsed {
            return Inserted::Due;
        }
        let node = NonNull::from(entry.get_ref());
        // SAFETY: `shared` and `put`: the entry is the caller's to give, alive and in no list (our
        // obligation 1).
        unsafe {
            TimerEntry::shared(node, |shared| shared.deadline_ns = deadline_ns);
            self.put(node, None);
        }
        self.len += 1;
        entry.mark_in();
        Inserted::Waits
    }

    /// Removes an entry, and returns its waker, or `None` if it has left before.
    ///
    /// # Safety
    /// 1. The caller owns the entry. 2. If the entry is in a wheel, it is in this one.
    pub(super) unsafe fn remove(&mut self, entry: Pin<&TimerEntry>) -> Option<Waker> {
        if entry.state() != TimerEntryState::In {
            return None;
        }
        // SAFETY: 1. the entry is IN, as checked above under the lock, and so in this wheel (our
        // obligation 2).
        let waker = unsafe { self.unlink(NonNull::from(entry.get_ref())) };
        self.len -= 1;
        entry.settle();
        waker
    }

    /// Gives an entry another waker. Returns the one that is no longer needed, to be dropped after
    /// the lock was released: `waker` itself if the entry has left.
    ///
    /// # Safety
    /// 1. If the entry is in a wheel, it is in this one.
    pub(super) unsafe fn renew(&mut self, entry: Pin<&TimerEntry>, waker: Waker) -> Option<Waker> {
        if entry.state() != TimerEntryState::In {
            return Some(waker);
        }
        // SAFETY: 1. the entry is a member of this wheel, which we hold. 2. The closure accesses
        // nothing else.
        unsafe {
            TimerEntry::shared(NonNull::from(entry.get_ref()), |shared| shared.waker.replace(waker))
        }
    }

    /// Turns the wheel towards `now_ns` and collects the wakers of the entries that are due.
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        exact: bool,
        wake_list: &mut WakeList,
    ) -> Progress {
        let now = now_ns >> GRANULE_BITS;
        for _ in 0..STEPS {
            if wake_list.is_full() {
                return Progress::More;
            }
            if let Some(node) = self.first[MOVING] {
                // SAFETY: 1. the first of a list is a member of this wheel.
                unsafe { self.put_again(node, None) };
                continue;
            }
            let Some(next) = self.next().filter(|next| next.start <= now) else {
                return self.arrive(now_ns);
            };
            self.elapsed = self.elapsed.max(next.start);
            match next.level {
                0 if next.start == now => {
                    if self.dismiss_due(next.list, now_ns, exact, wake_list) == Progress::More {
                        return Progress::More;
                    }
                    return self.arrive(now_ns);
                }
                0 => {
                    while let Some(node) = self.first[next.list].filter(|_| !wake_list.is_full()) {
                        // SAFETY: 1. the first of a list is a member of this wheel, and the wake
                        // list is not full.
                        unsafe { self.dismiss(node, false, wake_list) };
                    }
                }
                _ => self.move_list(next.list),
            }
        }
        Progress::More
    }

    /// Completes a turn, after all that is due was fired.
    fn arrive(&mut self, now_ns: u64) -> Progress {
        self.now_ns = self.now_ns.max(now_ns);
        self.elapsed = self.elapsed.max(now_ns >> GRANULE_BITS);
        self.put_ahead();
        Progress::Done
    }

    /// Puts some entries of the next slot of each upper level down one level.
    fn put_ahead(&mut self) {
        let mut budget = AHEAD;
        for level in 1..LEVELS {
            // The present slot was emptied when the wheel reached it.
            let slot = (self.elapsed >> (level as u32 * BITS)) + 1;
            let list = list(level, slot);
            while let Some(node) = self.first[list] {
                if budget == 0 {
                    return;
                }
                budget -= 1;
                // SAFETY: 1. the first of a list is a member of this wheel.
                unsafe { self.put_again(node, Some(level - 1)) };
            }
        }
    }

    /// Shuts the wheel down: it takes no more entries, and those in it are dismissed.
    pub(super) fn end(&mut self, wake_list: &mut WakeList) -> Progress {
        self.ended = true;
        while !self.is_empty() {
            if wake_list.is_full() {
                return Progress::More;
            }
            let node = self.first[MOVING]
                .or_else(|| self.first[self.next()?.list])
                .expect("a wheel that is not empty has a list that is not");
            // SAFETY: 1. the first of a list is a member of this wheel, and the wake list is not
            // full.
            unsafe { self.dismiss(node, true, wake_list) };
        }
        Progress::Done
    }

    /// Returns when the wheel must be advanced again. That is not later than the first deadline,
    /// except by up to a granule where a slot has too many entries to be searched.
    pub(super) fn next_expiration(&self, exact: bool) -> Option<u64> {
        if self.first[MOVING].is_some() {
            // There is work left to do now.
            return Some(self.elapsed << GRANULE_BITS);
        }
        let mut soonest = None;
        for next in self.next_of_each() {
            let begin = next.start << GRANULE_BITS;
            // A slot that begins later holds no earlier deadline.
            if soonest.is_none_or(|soonest| begin < soonest) {
                let at = match self.first_deadline(next.list, exact) {
                    Some(deadline_ns) => deadline_ns,
                    None if next.level == 0 => (next.start + 1) << GRANULE_BITS,
                    None => begin,
                };
                soonest = Some(soonest.map_or(at, |soonest: u64| soonest.min(at)));
            }
        }
        soonest
    }

    /// Returns the first deadline in a list, or `None` if the list is too long to be searched.
    fn first_deadline(&self, list: usize, exact: bool) -> Option<u64> {
        let first = self.first[list]?;
        let (mut node, mut soonest) = (first, LATEST_NS);
        for examined in 0.. {
            if !exact && examined == SEARCHED {
                return None;
            }
            // SAFETY: 1. the node is a member, and the lock is held. 2. The closure accesses
            // nothing else.
            let (deadline_ns, behind) =
                unsafe { TimerEntry::shared(node, |shared| (shared.deadline_ns, shared.behind)) };
            soonest = soonest.min(deadline_ns);
            node = behind.expect("a member has neighbours");
            if node == first {
                break;
            }
        }
        Some(soonest)
    }

    /// Returns the slot that begins first; by invariant 1, if several begin together, the highest.
    fn next(&self) -> Option<NextSlot> {
        self.next_of_each().min_by_key(|next| (next.start, LEVELS - next.level))
    }

    fn next_of_each(&self) -> impl Iterator<Item = NextSlot> {
        let levels = self.occupied.iter().enumerate().filter(|(_, bits)| **bits != 0);
        let levels = levels.map(|(level, bits)| {
            let unit = level as u32 * BITS;
            let present = self.elapsed >> unit;
            let ahead = bits.rotate_right(present as u32 % SLOTS as u32).trailing_zeros();
            let slot = present + u64::from(ahead);
            NextSlot { list: list(level, slot), level, start: slot << unit }
        });
        let overflow = self.first[OVERFLOW].map(|_| {
            let start = ((self.elapsed >> SPAN_BITS) + 1) << SPAN_BITS;
            NextSlot { list: OVERFLOW, level: LEVELS, start }
        });
        levels.chain(overflow)
    }

    /// Fires the entries of the present granule's slot that are due.
    fn dismiss_due(
        &mut self,
        list: usize,
        now_ns: u64,
        exact: bool,
        wake_list: &mut WakeList,
    ) -> Progress {
        let first = self.first[list].expect("a bit is set for a list with entries");
        // SAFETY: 1. the first of a list is a member, and the lock is held. 2. The closure accesses
        // nothing else.
        let last = unsafe { TimerEntry::shared(first, |shared| shared.before) };
        let mut node = first;
        for examined in 0.. {
            if wake_list.is_full() {
                return Progress::More;
            }
            if !exact && examined == SEARCHED {
                break;
            }
            // SAFETY: 1. the node is a member, because we have not come past the last one. 2. The
            // closure accesses nothing else.
            let (due, behind) = unsafe {
                TimerEntry::shared(node, |shared| (shared.deadline_ns <= now_ns, shared.behind))
            };
            let is_last = Some(node) == last;
            if due {
                // SAFETY: 1. the node is a member of this wheel, and the wake list is not full.
                unsafe { self.dismiss(node, false, wake_list) };
            }
            if is_last {
                break;
            }
            node = behind.expect("a member has neighbours");
        }
        Progress::Done
    }

    /// Moves all entries of a list to `MOVING`, where they wait to be put into other slots.
    fn move_list(&mut self, list: usize) {
        debug_assert!(self.first[MOVING].is_none(), "one list at a time");
        self.first[MOVING] = self.first[list].take();
        self.clear_bit(list);
    }

    /// Moves an entry to the slot that its deadline has now, at `level` if one is given.
    ///
    /// # Safety
    /// 1. The entry is a member of this wheel.
    unsafe fn put_again(&mut self, node: NonNull<TimerEntry>, level: Option<usize>) {
        // SAFETY: `unlink`: the entry is a member (our obligation 1). `shared` and `put`: it is in
        // no list in between, and still alive.
        unsafe {
            let waker = self.unlink(node);
            TimerEntry::shared(node, |shared| shared.waker = waker);
            self.put(node, level);
        }
    }

    /// Appends an entry to the list of its deadline, at `level` if one is given.
    ///
    /// # Safety
    /// 1. The entry is alive, its shared part belongs to the caller, and it is in no list.
    unsafe fn put(&mut self, node: NonNull<TimerEntry>, level: Option<usize>) {
        // SAFETY: 1. the shared part belongs to the caller (our obligation 1). 2. The closure
        // accesses nothing else.
        let deadline_ns = unsafe { TimerEntry::shared(node, |shared| shared.deadline_ns) };
        let list = self.list_of(deadline_ns, level);
        let first = self.first[list];
        // SAFETY: `shared`: the entry's part belongs to the caller (our obligation 1); members are
        // alive, and their parts are ours, because the lock is held.
        unsafe {
            let (before, behind) = match first {
                None => (node, node),
                Some(first) => {
                    let last = TimerEntry::shared(first, |shared| shared.before.replace(node))
                        .expect("a member has neighbours");
                    TimerEntry::shared(last, |shared| shared.behind = Some(node));
                    (last, first)
                }
            };
            TimerEntry::shared(node, |shared| {
                (shared.before, shared.behind) = (Some(before), Some(behind));
                shared.list = list;
            });
        }
        if first.is_none() {
            self.first[list] = Some(node);
            if list < OVERFLOW {
                self.occupied[list / SLOTS] |= 1 << (list % SLOTS);
            }
        }
    }

    fn list_of(&self, deadline_ns: u64, level: Option<usize>) -> usize {
        let granule = (deadline_ns >> GRANULE_BITS).max(self.elapsed);
        let ahead = granule - self.elapsed;
        if ahead >> SPAN_BITS != 0 {
            return OVERFLOW;
        }
        let level = level.unwrap_or_else(|| {
            // All bits of the lowest level are set, so the highest bit is at least in that level.
            let highest = u64::BITS - 1 - (ahead | ((1 << BITS) - 1)).leading_zeros();
            (highest / BITS) as usize
        });
        let slot = granule >> (level as u32 * BITS);
        debug_assert!(slot - (self.elapsed >> (level as u32 * BITS)) < SLOTS as u64);
        list(level, slot)
    }

    /// Removes an entry, because its deadline has passed or the wheel has ended, and keeps its
    /// waker in the wake list.
    ///
    /// # Safety
    /// 1. The entry is a member of this wheel. The wake list is not full.
    unsafe fn dismiss(&mut self, node: NonNull<TimerEntry>, ended: bool, wake_list: &mut WakeList) {
        // SAFETY: 1. the entry is a member of this wheel (our obligation 1).
        let waker = unsafe { self.unlink(node) };
        self.len -= 1;
        wake_list.push(waker.expect("an entry in a wheel has a waker"));
        // SAFETY: a member is alive until this call.
        unsafe { node.as_ref() }.mark_dismissed(ended);
    }

    /// Unlinks an entry from its list, and returns its waker.
    ///
    /// # Safety
    /// 1. The entry is a member of this wheel.
    unsafe fn unlink(&mut self, node: NonNull<TimerEntry>) -> Option<Waker> {
        // SAFETY: `shared`: the entry is a member (our obligation 1), and neighbours of a member
        // are members.
        let (list, behind, waker) = unsafe {
            let (before, behind, list, waker) = TimerEntry::shared(node, |shared| {
                let before = shared.before.take().expect("a member has neighbours");
                let behind = shared.behind.take().expect("a member has neighbours");
                (before, behind, shared.list, shared.waker.take())
            });
            if behind != node {
                TimerEntry::shared(before, |shared| shared.behind = Some(behind));
                TimerEntry::shared(behind, |shared| shared.before = Some(before));
            }
            (list, behind, waker)
        };
        let rest = (behind != node).then_some(behind);
        if self.first[MOVING] == Some(node) {
            self.first[MOVING] = rest;
        } else if self.first[list] == Some(node) {
            self.first[list] = rest;
        }
        if self.first[list].is_none() {
            self.clear_bit(list);
        }
        waker
    }

    fn clear_bit(&mut self, list: usize) {
        if list < OVERFLOW {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }
}
