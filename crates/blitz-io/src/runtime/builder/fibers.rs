//! What a runtime's fibers are like.

use std::sync::Arc;

use super::{Builder, machine};
use crate::engine::{
    fiber::{self, Fibers, stack},
    pool::Pool,
    threads::Recipe,
};

/// What the builder was told.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    threads: Option<usize>,
    stack_size: Option<usize>,
}

impl Choice {
    /// The most threads that run fibers.
    pub(super) fn carriers(&self, workers: usize) -> usize {
        self.threads.unwrap_or(workers)
    }

    pub(super) fn make(&self, pool: &Arc<Pool>, recipe: &Recipe, workers: usize) -> Fibers {
        let config = fiber::Config {
            carriers: self.carriers(workers),
            stack_size: self.stack_size.unwrap_or(stack::DEFAULT_SIZE),
            recipe: recipe.clone(),
        };
        Fibers::new(pool.clone(), config)
    }
}

impl Builder {
    /// Sets the most threads on which the runtime's [fibers](crate::fiber) run.
    ///
    /// They are started when there are fibers for them, and stay until the runtime ends: a
    /// fiber does not change its thread. Unset, there may be as many as there are workers, and
    /// one on a current-thread runtime.
    ///
    /// # Panics
    ///
    /// If `val` is 0, or more than 32,768.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{fiber, runtime::Builder};
    ///
    /// let rt = Builder::new_multi_thread().fiber_threads(1).build()?;
    /// let threads = rt.block_on(async {
    ///     let here = || std::thread::current().id();
    ///     [fiber::spawn(here).await.unwrap(), fiber::spawn(here).await.unwrap()]
    /// });
    /// assert_eq!(threads[0], threads[1]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "fiber")))]
    #[track_caller]
    pub fn fiber_threads(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "fiber_threads cannot be set to 0: fibers need a thread");
        assert!(
            val <= machine::MAX_WORKERS,
            "fiber_threads cannot be more than {}: ask for about one per processor",
            machine::MAX_WORKERS
        );
        self.fibers.threads = Some(val);
        self
    }

    /// Sets how many bytes the stacks of the runtime's [fibers](crate::fiber) have that do not
    /// ask for another size.
    ///
    /// It is rounded up to whole pages, and to 64 KiB at least. Pages that are never touched
    /// cost no memory. Unset, stacks have 256 KiB. A size that cannot be had is told to each
    /// fiber that is to have it, when it is spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{fiber, runtime::Builder};
    ///
    /// let rt = Builder::new_current_thread().fiber_stack_size(4 << 20).build()?;
    /// let sum = rt.block_on(fiber_with_a_large_frame());
    /// assert_eq!(sum, 1 << 18);
    ///
    /// async fn fiber_with_a_large_frame() -> usize {
    ///     let f = || std::hint::black_box([1u8; 1 << 18]).iter().map(|one| *one as usize).sum();
    ///     fiber::spawn(f).await.unwrap()
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "fiber")))]
    pub fn fiber_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.fibers.stack_size = Some(bytes);
        self
    }
}
