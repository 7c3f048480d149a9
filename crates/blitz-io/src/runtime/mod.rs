//! The runtime: it runs tasks on its threads, and owns the I/O driver and the timers.
//!
//! A [`Runtime`] owns a scheduler and its threads, and a [`Builder`] configures and creates one.
//! A [`Handle`] refers to a runtime and can be cloned and sent to other threads; code that runs
//! inside a runtime gets one from [`Handle::current`].
//!
//! There are two flavors:
//!
//! - *multi-thread* ([`Builder::new_multi_thread`], [`Runtime::new`]): worker threads run the
//!   tasks and steal from each other; [`Runtime::block_on`] runs its future on the calling
//!   thread. Use it for servers and for anything that should use several processors.
//! - *current-thread* ([`Builder::new_current_thread`]): there are no worker threads, and tasks
//!   run inside [`Runtime::block_on`], in the order in which they became ready. Use it for tests,
//!   small tools, and where threads are not wanted. A [`LocalRuntime`] is such a runtime that
//!   stays on its thread, so its tasks need not be [`Send`].
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
    preempt::{
        stack::StackFrame,
        stall::{StallKind, StallReport},
        system_call::SystemCall,
    },
    work::task::hooks::TaskMeta,
};

/// Returns true if an I/O error was caused by the shutdown of the resource's runtime.
///
/// The error is recognized by its kind and its text, as on Tokio, so a copy of it that another
/// library made is recognized, too.
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
    err.kind() == std::io::ErrorKind::Other
        && err.get_ref().is_some_and(|inner| {
            inner.source().is_none() && inner.to_string() == crate::engine::driver::SHUT_DOWN
        })
}

/// Returns the index of the worker that the calling code runs on, if it runs on one.
///
/// The workers of a runtime are numbered from zero; on a current-thread runtime the thread inside
/// [`Runtime::block_on`] is worker 0. Code that runs on no worker gets `None`: the future of
/// `block_on` on a multi-thread runtime, the future of [`Handle::block_on`], a poll whose worker
/// was handed off to another thread because it lasted for longer than a slice, and the later polls
/// of such a task, which run on spare threads ([`Preemption`]). The index may change in the middle
/// of a poll.
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
    crate::engine::pool::held_core::core_index()
}
