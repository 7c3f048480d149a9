//! Files with writes that were accepted and have not been made yet.
//!
//! A write returns as soon as its bytes are handed to a thread, so a file that is opened again
//! without a `flush` in between may lack them, as on Tokio. There the open is a job in the same
//! queue, behind the write, so such programs nearly always work. An inline open would overtake the
//! write, and such programs would nearly always fail. So while a file has such a write, every
//! operation that opens it or returns its length goes through the queue, too.
//!
//! Files are identified by a few bits of their inode number. Two files that share those bits make a
//! fast open a slow one, and nothing else.

#![forbid(unsafe_code)]

use crate::engine::prim::{AtomicUsize, OnceLock, Ordering::Relaxed};

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
        // Relaxed: the file's content is the kernel's to publish.
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Returns true if the file with this inode number may have a write that is not made yet.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere nothing is opened"))]
pub(super) fn has_pending_write(inode: u64) -> bool {
    // Relaxed: a task only has to see its own writes; `PendingWrite::new` says why it does.
    COUNTS.get().is_some_and(|counts| counts[index(inode)].load(Relaxed) > 0)
}

fn index(inode: u64) -> usize {
    // The remainder is less than the number of counters.
    (inode % COUNTERS as u64) as usize
}
