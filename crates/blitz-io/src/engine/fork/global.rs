//! The global pool, for callers that name none, and the default way to start a pool's threads.

use std::{io, str::FromStr, sync::Arc};

use super::{
    registry::{PoolBuildError, Registry, RegistryConfig, UnstartedWorker},
    worker,
};
use crate::engine::prim::{OnceLock, ThreadId, thread, thread_id};

static GLOBAL: OnceLock<Arc<Registry>> = OnceLock::new();

/// The lock that is held while the global pool is created. It is std's, because models do not get
/// here.
static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The thread that holds [`MAKING`]. It calls the user's functions that name and start threads,
/// which would deadlock if they used the global pool.
static MAKER: std::sync::Mutex<Option<ThreadId>> = std::sync::Mutex::new(None);

/// Sets [`MAKER`] to this thread, and back to `None` when dropped.
struct Maker(());

impl Maker {
    fn now() -> Option<ThreadId> {
        *MAKER.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn set(maker: Option<ThreadId>) {
        *MAKER.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = maker;
    }

    fn begin() -> Self {
        Self::set(Some(thread_id()));
        Self(())
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        Self::set(None);
    }
}

/// Returns the global pool, which is started on the first call.
pub(crate) fn registry() -> &'static Arc<Registry> {
    GLOBAL.get().unwrap_or_else(start_on_first_use)
}

#[cold]
fn start_on_first_use() -> &'static Arc<Registry> {
    match init(start_default) {
        Ok(registry) => registry,
        Err(GlobalPoolError::Exists(registry)) => registry,
        Err(GlobalPoolError::Build(error)) => panic!(
            "The global thread pool has not been initialized: {error:?}; \
             set RAYON_NUM_THREADS to fewer threads, or build a pool of your own"
        ),
    }
}

/// The reason why no new global pool was created.
pub(crate) enum GlobalPoolError {
    /// There is one already, and nothing was created.
    Exists(&'static Arc<Registry>),
    /// The pool could not be created; a later call may try again.
    Build(PoolBuildError),
}

/// Creates the global pool.
pub(crate) fn init(
    make: impl FnOnce() -> Result<Arc<Registry>, PoolBuildError>,
) -> Result<&'static Arc<Registry>, GlobalPoolError> {
    assert!(
        Maker::now() != Some(thread_id()),
        "this thread is making the global pool: what names or starts its threads cannot use it"
    );
    let _making = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(registry) = GLOBAL.get() {
        return Err(GlobalPoolError::Exists(registry));
    }
    let maker = Maker::begin();
    let registry = make().map_err(GlobalPoolError::Build)?;
    drop(maker);
    Ok(GLOBAL.get_or_init(|| registry))
}

fn start_default() -> Result<Arc<Registry>, PoolBuildError> {
    let config = || RegistryConfig { threads: default_threads(), ..RegistryConfig::default() };
    match Registry::start(config(), |unstarted| start_thread(None, None, unstarted)) {
        // Where the system has no threads at all, the calling thread is the pool.
        Err(PoolBuildError::NoThread(error))
            if error.kind() == io::ErrorKind::Unsupported && worker::current().is_null() =>
        {
            let alone = RegistryConfig {
                threads: 1,
                use_current_thread: true,
                ..RegistryConfig::default()
            };
            Registry::start(alone, |_| Ok(()))
        }
        outcome => outcome,
    }
}

/// Starts a thread that is a worker until its pool ends.
pub(crate) fn start_thread(
    name: Option<String>,
    stack_size: Option<usize>,
    unstarted: UnstartedWorker,
) -> io::Result<()> {
    let mut builder = thread::Builder::new();
    if let Some(name) = name {
        builder = builder.name(name);
    }
    if let Some(size) = stack_size {
        builder = builder.stack_size(size);
    }
    builder.spawn(move || unstarted.run()).map(drop)
}

/// Returns the number of threads that the environment sets, or else the number of processors.
pub(crate) fn default_threads() -> usize {
    let read = |name| std::env::var(name).ok().and_then(|text| usize::from_str(&text).ok());
    match read("RAYON_NUM_THREADS") {
        Some(0) => processors(),
        Some(count) => count,
        // The older name of the variable.
        None => read("RAYON_RS_NUM_CPUS").filter(|count| *count > 0).unwrap_or_else(processors),
    }
}

#[cfg(not(blitz_loom))]
fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(blitz_loom)]
fn processors() -> usize {
    2
}

/// Calls `f` with this thread's pool, or the global one.
#[inline]
pub(crate) fn with_registry<R>(f: impl FnOnce(&Registry) -> R) -> R {
    // SAFETY: the pointer is not null, so it is the worker of this thread, which holds its pool.
    match unsafe { worker::current().as_ref() } {
        Some(worker) => f(worker.registry()),
        None => f(registry()),
    }
}

/// Returns a counted reference to this thread's pool, or to the global one.
pub(crate) fn shared_registry() -> Arc<Registry> {
    // SAFETY: the pointer is not null, so it is the worker of this thread, which holds its pool.
    match unsafe { worker::current().as_ref() } {
        Some(worker) => worker.shared(),
        None => registry().clone(),
    }
}
