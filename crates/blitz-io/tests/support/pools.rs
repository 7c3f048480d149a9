//! Creates fork-join pools.

use std::sync::{Mutex, MutexGuard, PoisonError};

use blitz_io::parallel::{ThreadPool, ThreadPoolBuilder};

/// Reserves the global pool's only temporary worker, for tests that rely on it.
pub(crate) fn reserve_temporary_worker() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a pool with this many threads.
pub(crate) fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}
