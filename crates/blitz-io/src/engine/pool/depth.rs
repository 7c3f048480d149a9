//! How many entries wait in the queues of a pool.
//!
//! A sum of lengths that are read one after the other while everybody else goes on:
//! advice, never a bound. An entry that moves between two queues meanwhile is
//! counted once, twice or not at all.

use super::{Pool, current};

impl Pool {
    /// The length of all queues: the intake, the rings and the LIFO slots; and the
    /// list of a pool without threads, if this thread holds its core, since nobody
    /// else can look into that.
    pub(crate) fn depth(&self) -> usize {
        let listed = if !self.config.threaded && current::holds_core_of(self) {
            current::with_core(|core| core.fifo.len())
        } else {
            0
        };
        let on_cores = self
            .remotes
            .iter()
            .map(|remote| remote.thief.len() as usize + usize::from(!remote.lifo.is_empty()));
        self.intake.len() + listed + on_cores.sum::<usize>()
    }
}
