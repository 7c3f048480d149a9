//! The table of records, and the tokens by which the kernel names them.
//!
//! A token is a place in the table and the generation of the record there. The kernel
//! gives it back with each event; that of a registration which has ended names a
//! generation that is over, and reaches nobody, whoever has the place now.
//!
//! Records are made as they are needed, lie in blocks of which each is twice as large as
//! the one before, and stay until the table ends. So an event finds its record by a few
//! shifts, without a lock or a count of owners.
//!
//! # Invariants
//! 1. The first `made` records exist, and blocks stay where they are until the table ends.
//! 2. A place that is in `free` has no registration, and one that is not has one.
//! 3. Tokens are only made here, from places that exist.
//!
//! # Rejected
//! - An `Arc` for each record, and the pointer as the token: an event of a descriptor that
//!   was closed a moment ago follows it to freed memory, unless all that were closed are
//!   kept until the poller has come round.
//! - A lock for each event, or a lock for each part of the table: an event needs none as it
//!   is, and who registers or ends takes ours for a few instructions beside the kernel's own
//!   lock of the epoll instance, which it holds for about a microsecond.
//! - Giving memory back when most have ended: 128 bytes for each of the most descriptors
//!   that were ever open at once are what the process has needed before.
//!
//! # Checked by
//! `a_place_is_used_again_under_another_token`, `places_are_found_again_in_every_block`,
//! `a_token_of_the_past_reaches_nobody`, `a_registration_against_a_shutdown_is_shut_down`;
//! weakened as `sources_closed_is_seen`.

use std::{mem::MaybeUninit, ptr::NonNull};

use super::{readiness::Record, ready::Ready};
use crate::engine::{
    prim::{
        AtomicPtr,
        Ordering::{Acquire, Relaxed, Release},
        bolt::Bolted,
        pad::CachePadded,
        weakened,
    },
    wait::batch::Batch,
};

/// Records in the first block: 8 KiB, enough for a small program. In a model so few that
/// it gets to see a second one.
const FIRST: u32 = if cfg!(blitz_loom) { 1 } else { 64 };

/// As many as fit into 32 bits, with one place to spare for [`Token::NUDGE`].
const BLOCKS: usize = (u32::BITS - FIRST.ilog2()) as usize;

/// How the kernel names a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

impl Token {
    /// No registration: the driver's own descriptor, by which it is woken.
    #[cfg(any(unix, test))]
    pub(crate) const NUDGE: Self = Self(u64::MAX);

    fn new(place: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(place))
    }

    /// As the kernel keeps it, where it can keep 64 bits.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Back from the kernel.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    fn place(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

type Padded = CachePadded<Record>;

/// See the module.
pub(crate) struct Sources {
    blocks: [AtomicPtr<MaybeUninit<Padded>>; BLOCKS],
    places: Bolted<Places>,
}

struct Places {
    /// Used before, and free. It has room for all that were made, so that to give one
    /// back never allocates.
    free: Vec<u32>,
    made: u32,
    /// Nobody registers any more.
    closed: bool,
}

/// A place that was given out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) token: Token,
    /// Lives as long as the table.
    pub(crate) record: NonNull<Record>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// The driver has ended.
    Closed,
    /// Four thousand million descriptors are open.
    Full,
}

/// The block of a place, and where in it.
#[inline]
fn split(place: u32) -> (usize, usize) {
    let number = place + FIRST;
    let block = number.ilog2() - FIRST.ilog2();
    (block as usize, (number - (FIRST << block)) as usize)
}

/// How many there are in a block.
fn size(block: usize) -> usize {
    (FIRST as usize) << block
}

impl Sources {
    pub(crate) fn new() -> Self {
        let places = Places { free: Vec::new(), made: 0, closed: false };
        Self {
            blocks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            places: Bolted::new(places),
        }
    }

    /// A record for a new registration, which [`close`](Self::close)s it.
    pub(crate) fn open(&self) -> Result<Source, NoPlace> {
        loop {
            let mut places = self.places.lock();
            if places.closed && !weakened!("sources_closed_is_seen") {
                return Err(NoPlace::Closed);
            }
            if let Some(place) = places.free.pop() {
                drop(places);
                return Ok(self.source(place));
            }
            let place = places.made;
            if place >= u32::MAX - FIRST {
                return Err(NoPlace::Full);
            }
            let (block, offset) = split(place);
            // Relaxed: written under the lock only, which we have.
            let Some(block) = NonNull::new(self.blocks[block].load(Relaxed)) else {
                // The allocator may be a user's, and so not under the lock.
                drop(places);
                self.grow(block);
                continue;
            };
            // SAFETY: 1. the block has so many (`split`). 2. Nobody else makes this one: we
            // have the lock, and it is counted below.
            unsafe { block.add(offset).write(MaybeUninit::new(Padded::new(Record::new()))) };
            places.made += 1;
            let made = places.made as usize;
            places.free.reserve(made);
            drop(places);
            return Ok(self.source(place));
        }
    }

    /// Makes a block, unless another did.
    #[cold]
    fn grow(&self, block: usize) {
        let fresh = Box::<[Padded]>::new_uninit_slice(size(block));
        let fresh = Box::into_raw(fresh);
        let places = self.places.lock();
        // Relaxed: written under the lock only.
        let spare = if self.blocks[block].load(Relaxed).is_null() {
            // Release: who finds the block finds what the allocator wrote. Pairs with the
            // Acquire in `record`.
            self.blocks[block].store(fresh.cast(), Release);
            None
        } else {
            Some(fresh)
        };
        drop(places);
        if let Some(spare) = spare {
            // SAFETY: it is the box from above, and nobody else has it.
            drop(unsafe { Box::from_raw(spare) });
        }
    }

    fn source(&self, place: u32) -> Source {
        // SAFETY: 1. it was made.
        let record = unsafe { self.record(place) };
        Source { token: Token::new(place, record.generation()), record: NonNull::from(record) }
    }

    /// # Safety
    /// 1. The place was made.
    #[inline]
    unsafe fn record(&self, place: u32) -> &Record {
        let (block, offset) = split(place);
        // Acquire: pairs with the Release in `grow`.
        let block = self.blocks[block].load(Acquire);
        // SAFETY: 1.: by the first invariant it is there, and stays; records are only
        // shared.
        unsafe { (*block.add(offset)).assume_init_ref() }
    }

    /// An event of the kernel's, for whoever has the token. `false` if nobody has.
    #[inline]
    pub(crate) fn tell(&self, token: Token, ready: Ready, batch: &mut Batch) -> bool {
        // SAFETY: 1. by the third invariant.
        let record = unsafe { self.record(token.place()) };
        record.set(token.generation(), ready, batch)
    }

    /// A read of that registration was postponed, and is to be tried now.
    pub(crate) fn take_back(&self, token: Token, batch: &mut Batch) {
        // SAFETY: 1. by the third invariant: a place that was told once is there for good.
        let record = unsafe { self.record(token.place()) };
        record.take_back(token.generation(), batch);
    }

    /// The registration ends, and its token means nothing any more.
    pub(crate) fn close(&self, source: Source) {
        // SAFETY: the table lives, so the record does.
        let record = unsafe { source.record.as_ref() };
        debug_assert_eq!(record.generation(), source.token.generation(), "it ended before");
        let wakers = record.end();
        self.places.lock().free.push(source.token.place());
        // The lock was let go at the end of the statement above.
        drop(wakers);
    }

    /// Refuses new registrations, and wakes everybody who waits, for good.
    pub(crate) fn shut_down(&self) {
        let mut places = self.places.lock();
        places.closed = true;
        let made = places.made;
        drop(places);
        let mut batch = Batch::new();
        for place in 0..made {
            // SAFETY: 1. the first `made` are there.
            unsafe { self.record(place) }.shut_down(&mut batch);
        }
        batch.wake_all();
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        let made = self.places.lock().made;
        for place in 0..made {
            let (block, offset) = split(place);
            // Relaxed: we are alone.
            let block = self.blocks[block].load(Relaxed);
            // SAFETY: the first `made` are there, and nobody has a reference.
            unsafe { (*block.add(offset)).assume_init_drop() };
        }
        for (block, pointer) in self.blocks.iter().enumerate() {
            // Relaxed: we are alone.
            let pointer = pointer.load(Relaxed);
            if !pointer.is_null() {
                let slice = std::ptr::slice_from_raw_parts_mut(pointer, size(block));
                // SAFETY: it is a box of so many, from `grow`; what was in it is dropped.
                drop(unsafe { Box::from_raw(slice) });
            }
        }
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models {
    use std::task::{Context, Poll, Waker};

    use super::{NoPlace, Sources};
    use crate::engine::{
        driver::{readiness::Direction, ready::Ready},
        prim::{Arc, model, thread},
        wait::batch::Batch,
    };

    /// Either it is refused, or it learns of the end.
    #[test]
    fn a_registration_against_a_shutdown_is_shut_down() {
        model(|| {
            let sources = Arc::new(Sources::new());
            let other = thread::spawn({
                let sources = sources.clone();
                move || sources.shut_down()
            });
            let opened = sources.open();
            other.join().unwrap();
            match opened {
                Err(why) => assert_eq!(why, NoPlace::Closed),
                Ok(source) => {
                    // SAFETY: the table lives.
                    let record = unsafe { source.record.as_ref() };
                    let cx = Context::from_waker(Waker::noop());
                    let polled = record.poll(&cx, Direction::Read);
                    assert!(matches!(polled, Poll::Ready(event) if event.is_shutdown()));
                    sources.close(source);
                }
            }
            assert!(sources.open().is_err());
        });
    }

    /// A descriptor is closed and its number used again while the poller has an event of
    /// the first in its hands.
    #[test]
    fn a_token_of_the_past_reaches_nobody() {
        model(|| {
            let sources = Arc::new(Sources::new());
            let first = sources.open().expect("it is open");
            let poller = thread::spawn({
                let (sources, token) = (sources.clone(), first.token);
                move || sources.tell(token, Ready::READABLE, &mut Batch::new())
            });
            sources.close(first);
            let second = sources.open().expect("it is open");
            assert_eq!(second.token.place(), first.token.place());
            poller.join().unwrap();
            // SAFETY: the table lives.
            let ready = unsafe { second.record.as_ref() }.look(Ready::ALL).ready();
            assert!(ready.is_empty(), "the second was told what was meant for the first");
            sources.close(second);
        });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::collections::HashSet;

    use super::{FIRST, Sources, Token, size, split};
    use crate::engine::{driver::ready::Ready, wait::batch::Batch};

    #[test]
    fn places_are_found_again_in_every_block() {
        assert_eq!(split(0), (0, 0));
        assert_eq!(split(FIRST - 1), (0, FIRST as usize - 1));
        assert_eq!(split(FIRST), (1, 0));
        let (block, offset) = split(u32::MAX - FIRST);
        assert!(block < super::BLOCKS && offset < size(block));
        let (sources, mut batch) = (Sources::new(), Batch::new());
        let all: Vec<_> = (0..1_000).map(|_| sources.open().unwrap()).collect();
        let tokens: HashSet<Token> = all.iter().map(|source| source.token).collect();
        assert_eq!(tokens.len(), all.len());
        assert!(!tokens.contains(&Token::NUDGE));
        for source in &all {
            assert!(sources.tell(source.token, Ready::WRITABLE, &mut batch));
            // SAFETY: the table lives.
            let ready = unsafe { source.record.as_ref() }.look(Ready::ALL).ready();
            assert_eq!(ready, Ready::WRITABLE);
        }
        all.into_iter().for_each(|source| sources.close(source));
    }

    #[test]
    fn a_place_is_used_again_under_another_token() {
        let (sources, mut batch) = (Sources::new(), Batch::new());
        let first = sources.open().unwrap();
        assert!(sources.tell(first.token, Ready::READABLE, &mut batch));
        sources.close(first);
        let second = sources.open().unwrap();
        assert_eq!(first.record, second.record, "the memory is used again");
        assert_ne!(first.token, second.token);
        assert!(!sources.tell(first.token, Ready::READABLE, &mut batch));
        assert!(sources.tell(second.token, Ready::WRITABLE, &mut batch));
        sources.close(second);
    }

    #[test]
    fn a_record_is_two_cache_lines() {
        assert!(size_of::<super::Padded>() <= 128, "{}", size_of::<super::Padded>());
    }
}
