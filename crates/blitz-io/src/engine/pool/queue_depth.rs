//! The number of entries that wait in the queues of a pool.
//!
//! It is a sum of lengths that are read one after the other while other threads go on, so it is a
//! hint, never a bound. An entry that moves between two queues meanwhile is counted once, twice or
//! not at all.

use super::{Pool, held_core};

impl Pool {
    /// Returns the length of all queues: the injector, the rings and the LIFO slots; and the list
    /// of a pool without threads, if this thread holds its core, because no other thread can read
    /// that.
    pub(crate) fn depth(&self) -> usize {
        let listed = if !self.config.threaded && held_core::holds_core_of(self) {
            held_core::with_core(|core| core.fifo.len() + core.deferred.len())
        } else {
            0
        };
        let on_cores = self
            .remotes
            .iter()
            .map(|remote| remote.thief.len() as usize + usize::from(!remote.lifo.is_empty()));
        self.injector.len() + listed + on_cores.sum::<usize>()
    }
}
