//! Files with writes that were accepted and have not been made yet.
//!
//! A write returns as soon as its bytes are handed to a thread, so a file that is opened again
//! without a `flush` in between may lack them, as on Tokio. There the open is a job in the same
//! queue, behind the write, so such programs nearly always work. An inline open would overtake the
//! write, and such programs would nearly always fail. So while a file has such a write, every
//! operation that opens it or returns its length goes through the queue, too.
//!
//! Such an operation looks for a pending write first and reads the length afterwards, because a write
//! that is made in between would be missing from both.
//!
//! Files are identified by a few bits of their inode number. Two files that share those bits make a
//! fast open a slow one, and nothing else.
//!
//! There is no model, because nothing here depends on an order of two variables: a task that has
//! changed threads comes after its own increment, since the queues that it went through synchronise,
//! so coherence of the one counter shows it that increment or a later value; and the bytes that a
//! decrement stands for are the kernel's, which loom does not have.

#![forbid(unsafe_code)]

use crate::engine::prim::{
    AtomicUsize, OnceLock,
    Ordering::{Acquire, Relaxed, Release},
};

/// Number of counters. Picked: a server that writes to a dozen files at a time still opens four
/// files of five inline.
const COUNTERS: usize = 64;

static COUNTS: OnceLock<[AtomicUsize; COUNTERS]> = OnceLock::new();

/// Guard of one accepted write; dropped once the write is made.
#[derive(Debug)]
pub(super) struct PendingWrite(&'static AtomicUsize);

impl PendingWrite {
    /// Counts a write to the file with this inode number.
    pub(super) fn new(inode: u64) -> Self {
        let counts = COUNTS.get_or_init(|| std::array::from_fn(|_| AtomicUsize::new(0)));
        let count = &counts[index(inode)];
        // Relaxed: a task that opens the file after its own write has returned sees its own count,
        // whichever thread it runs on by then; no other task is promised anything.
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        // Release: the write was made before. Pairs with the Acquire in `has_pending_write`.
        self.0.fetch_sub(1, Release);
    }
}

/// Returns true if the file with this inode number may have a write that is not made yet.
pub(super) fn has_pending_write(inode: u64) -> bool {
    // Acquire: what the caller reads next, the kernel reads after the writes that are not counted any
    // more. Pairs with the Release in the drop of `PendingWrite`. That a task sees its own writes
    // takes no order; `PendingWrite::new` says why.
    COUNTS.get().is_some_and(|counts| counts[index(inode)].load(Acquire) > 0)
}

fn index(inode: u64) -> usize {
    // The remainder is less than the number of counters.
    (inode % COUNTERS as u64) as usize
}
