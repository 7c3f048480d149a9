//! Builder options for fibers: the number of their threads, and the size of their stacks.

use std::sync::Arc;

use super::{Builder, machine};
use crate::engine::{
    fiber::{self, Fibers, stack},
    pool::Pool,
    threads::ThreadConfig,
};

/// The fiber options of a builder; `None` means the default.
#[derive(Debug, Clone, Default)]
pub(super) struct FiberOptions {
    threads: Option<usize>,
    stack_size: Option<usize>,
}

impl FiberOptions {
    /// Returns the maximum number of threads that run fibers.
    pub(super) fn carriers(&self, workers: usize) -> usize {
        self.threads.unwrap_or(workers)
    }

    pub(super) fn make(
        &self,
        pool: &Arc<Pool>,
        thread_config: &ThreadConfig,
        workers: usize,
    ) -> Fibers {
        let config = fiber::FiberConfig {
            carriers: self.carriers(workers),
            stack_size: self.stack_size.unwrap_or(stack::DEFAULT_SIZE),
            thread_config: thread_config.clone(),
        };
        Fibers::new(pool.clone(), config)
    }
}

impl Builder {
    /// Sets the maximum number of threads on which the runtime's [fibers](crate::fiber) run.
    ///
    /// The threads are started when there are fibers for them, and stay until the runtime ends,
    /// because a fiber never changes its thread. The default is the number of workers, which is one
    /// on a current-thread runtime.
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
    ///     // SAFETY: the closures wait nowhere, so they wait neither 1. in the initializer of a
    ///     // thread-local nor 2. in the scope of one.
    ///     let [one, two] = unsafe { [fiber::spawn(here), fiber::spawn(here)] };
    ///     [one.await.unwrap(), two.await.unwrap()]
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
            "fiber_threads cannot be more than {}: use about one per processor",
            machine::MAX_WORKERS
        );
        self.fibers.threads = Some(val);
        self
    }

    /// Sets the default stack size, in bytes, of the runtime's [fibers](crate::fiber).
    ///
    /// The size is rounded up to whole pages, and is at least 64 KiB. Pages that are never touched
    /// cost no memory. The default is 256 KiB. If a stack of that size cannot be allocated,
    /// spawning the fiber fails; this method does not check the size.
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
    ///     // SAFETY: the closure waits nowhere, so it waits neither 1. in the initializer of a
    ///     // thread-local nor 2. in the scope of one.
    ///     let fiber = unsafe { fiber::spawn(f) };
    ///     fiber.await.unwrap()
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "fiber")))]
    pub fn fiber_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.fibers.stack_size = Some(bytes);
        self
    }
}
