//! The runtime: what runs tasks.
//!
//! A [`Runtime`] owns a scheduler and its threads. [`Builder`] makes one,
//! [`Handle`] is a reference to one that can be cloned and sent anywhere, and
//! code that runs inside one finds it by [`Handle::current`].
//!
//! Two flavours:
//!
//! - *multi-thread* ([`Builder::new_multi_thread`], [`Runtime::new`]): workers
//!   that share their tasks by stealing; [`Runtime::block_on`] runs its future on
//!   the caller's thread.
//! - *current-thread* ([`Builder::new_current_thread`]): no threads; tasks run
//!   inside [`Runtime::block_on`], in the order in which they became ready.
//!   As a [`LocalRuntime`] it belongs to its thread, and takes futures that are not
//!   [`Send`].
//!
//! # Examples
//!
//! ```
//! use blitz_io::runtime::Runtime;
//!
//! let rt = Runtime::new()?;
//! let sum = rt.block_on(async {
//!     let parts: Vec<_> = (0..4).map(|n| blitz_io::spawn(async move { n * n })).collect();
//!     let mut sum = 0;
//!     for part in parts {
//!         sum += part.await.unwrap();
//!     }
//!     sum
//! });
//! assert_eq!(sum, 14);
//! # Ok::<(), std::io::Error>(())
//! ```

mod admission;
mod builder;
pub(crate) mod context;
pub mod dump;
mod handle;
mod histogram;
mod local;
#[doc(hidden)]
pub mod machine;
mod metrics;
#[allow(clippy::module_inception, reason = "the runtime's own file")]
mod runtime;

pub use self::{
    builder::{Builder, Preemption, RngSeed, UnhandledPanic},
    context::{EnterGuard, TryCurrentError},
    dump::Dump,
    handle::{Handle, Id, RuntimeFlavor},
    histogram::{
        HistogramConfiguration, HistogramScale, InvalidHistogramConfiguration, LogHistogram,
        LogHistogramBuilder,
    },
    local::{LocalOptions, LocalRuntime},
    metrics::RuntimeMetrics,
    runtime::Runtime,
};
#[cfg(feature = "net")]
pub use crate::engine::driver::backend::IoBackend;
pub use crate::engine::{
    pool::vigil::{
        stack::StackFrame,
        stall::{StallKind, StallReport},
        waits::SystemCall,
    },
    work::task::hooks::TaskMeta,
};

/// Whether an error of an I/O resource says that its runtime has ended.
///
/// # Examples
///
/// ```
/// use blitz_io::{net::TcpListener, runtime::Runtime};
///
/// let gone = Runtime::new()?;
/// let listener = gone.block_on(TcpListener::bind("127.0.0.1:0"))?;
/// drop(gone);
///
/// let error = Runtime::new()?.block_on(listener.accept()).unwrap_err();
/// assert!(blitz_io::runtime::is_rt_shutdown_err(&error));
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(feature = "net")]
#[cfg_attr(docsrs, doc(cfg(feature = "net")))]
pub fn is_rt_shutdown_err(err: &std::io::Error) -> bool {
    err.get_ref().is_some_and(|inner| inner.is::<crate::engine::driver::ShutDown>())
}

/// Returns the index of the worker that the calling code runs on, if it runs on one.
///
/// Workers of a runtime are numbered from zero; on a current-thread runtime the
/// thread inside [`Runtime::block_on`] is worker 0. Everywhere else the answer is
/// `None`: on the caller's thread of a multi-thread `block_on`, in
/// [`Handle::block_on`], and in a poll that has lost its worker or has none: one that lasts
/// for longer than a slice, and those of tasks that were caught in such a poll before
/// ([`Preemption`]). It may change in the middle of a poll.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime;
///
/// assert_eq!(runtime::worker_index(), None);
/// blitz_io::run(async {
///     let index = blitz_io::spawn(async { runtime::worker_index() }).await.unwrap();
///     assert!(index.is_some());
/// });
/// ```
pub fn worker_index() -> Option<usize> {
    crate::engine::pool::current::core_index()
}
