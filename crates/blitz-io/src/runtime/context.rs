//! The current runtime of a thread: how it is entered and left, and access to its driver and
//! timers.

#[cfg(feature = "time")]
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::{fmt, marker::PhantomData, sync::Arc};

#[cfg(feature = "time")]
use super::handle::Id;
#[cfg(all(target_os = "linux", feature = "net", feature = "fs"))]
use super::handle::RuntimeFlavor;
use super::handle::{Handle, Inner};
#[cfg(feature = "net")]
use crate::engine::driver::Driver;
#[cfg(feature = "test-util")]
use crate::engine::wheel::Clock;
#[cfg(feature = "time")]
use crate::engine::{
    pool::held_core::{core_index, current_wheel, holds_core_of},
    prim::Arc as ModelArc,
    wheel::{Timers, TimersRef},
    work::thread_context::{Inside, inside},
};
use crate::engine::{
    prim::is_panicking,
    work::thread_context::{
        erased::{Erased, ErasedKey},
        runtime::{self, EnteredRuntime, RuntimeKey},
    },
};

/// A guard that keeps a runtime the current one of this thread until it is dropped.
///
/// Returned by [`Runtime::enter`](super::Runtime::enter) and [`Handle::enter`]. While the guard
/// lives, [`Handle::current`] and [`spawn`](crate::spawn) on this thread use its runtime. Guards
/// must be dropped in the reverse order of entering.
///
/// # Examples
///
/// ```
/// let rt = blitz_io::runtime::Runtime::new()?;
/// let guard = rt.enter();
/// let handle = blitz_io::spawn(async { 7 });
/// drop(guard);
/// assert_eq!(rt.block_on(handle).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "Creating and dropping a guard does nothing"]
pub struct EnterGuard<'a> {
    entered: Entered,
    handle: PhantomData<&'a Handle>,
}

// SAFETY: a shared guard gives access to its depth only, which is never written. The drop, which
// uses the thread's state, needs the guard itself, and that is not `Send`: it stays on its thread.
unsafe impl Sync for EnterGuard<'_> {}

impl EnterGuard<'_> {
    pub(crate) fn new(inner: &Arc<Inner>) -> Self {
        Self { entered: Entered::new(inner.clone()), handle: PhantomData }
    }
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").field("depth", &self.entered.0.depth()).finish()
    }
}

/// Keeps a runtime the current one of this thread until it is dropped. If it is leaked instead, one
/// reference to the runtime is leaked with it, so the thread's pointer never dangles.
pub(crate) struct Entered(EnteredRuntime);

impl ErasedKey for RuntimeKey {
    type Target = Inner;
}

impl Entered {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self(EnteredRuntime::new(Erased::new(Arc::into_raw(inner))))
    }
}

impl Entered {
    /// Leaves this context and every context that was entered inside it and not left. Called at the
    /// end of a thread, where a guard that a task leaked must not cause a panic.
    pub(crate) fn leave_with_all_inside(self) {
        let this = std::mem::ManuallyDrop::new(self);
        if let Some(inner) = this.0.leave_with_all_inside() {
            // SAFETY: `new` made this pointer with `Arc::into_raw` and stored it at our depth, and
            // no context is inside ours, so it is our reference; it was replaced above, so it is
            // used once.
            drop(unsafe { Arc::from_raw(inner.get()) });
        }
    }
}

impl Drop for Entered {
    #[track_caller]
    fn drop(&mut self) {
        match self.0.leave() {
            Some(inner) if inner.is_null() => {}
            // SAFETY: `new` made this pointer with `Arc::into_raw` and stored it at our depth,
            // which was the innermost one, so it is our reference; it was replaced above, so it is
            // used once.
            Some(inner) => drop(unsafe { Arc::from_raw(inner.get()) }),
            None if is_panicking() => {}
            None => panic!(
                "`EnterGuard` values dropped out of order. Guards returned by \
                 `tokio::runtime::Handle::enter()` must be dropped in the reverse order as they \
                 were acquired. (The same holds for those of blitz_io.)"
            ),
        }
    }
}

/// Returns the I/O driver of this thread's runtime.
///
/// # Panics
/// If no runtime is current on this thread, or its I/O driver is not enabled.
#[cfg(feature = "net")]
#[track_caller]
pub(crate) fn io_driver() -> Arc<Driver> {
    match with_current(|inner| {
        inner.pool.start_if_lazy();
        inner.pool.drivers.driver().cloned()
    }) {
        Ok(Some(driver)) => driver,
        Ok(None) => panic!(
            "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the runtime \
             builder to enable IO."
        ),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the I/O driver of this thread's runtime if the runtime polls it independently of its
/// callers. A current-thread runtime polls its driver only while a thread is inside its `block_on`,
/// so for such a runtime this is `None`.
#[cfg(all(target_os = "linux", feature = "net", feature = "fs"))]
pub(crate) fn steady_io_driver() -> Option<Arc<Driver>> {
    with_current(|inner| {
        if inner.flavor != RuntimeFlavor::MultiThread {
            return None;
        }
        inner.pool.start_if_lazy();
        inner.pool.drivers.driver().cloned()
    })
    .ok()
    .flatten()
}

/// Calls `f` with the I/O driver of this thread's runtime, if it has one.
#[cfg(all(unix, feature = "signal"))]
#[inline]
pub(crate) fn with_io_driver<R>(f: impl FnOnce(&Arc<Driver>) -> R) -> Option<R> {
    with_current(|inner| inner.pool.drivers.driver().map(f)).ok().flatten()
}

/// Returns a [`TimersRef`], a counted reference to the timers of this thread's runtime: the one of
/// the core that this thread holds, or the one for threads without a core.
///
/// # Panics
/// If no runtime is current on this thread, or its timers are not enabled.
#[cfg(feature = "time")]
#[inline]
#[track_caller]
pub(crate) fn timers_ref() -> ModelArc<TimersRef> {
    with_timers_of(timers_ref_in)
}

/// Returns the ID of this thread's runtime, after checking that its timers are enabled.
///
/// # Panics
/// If no runtime is current on this thread, or its timers are not enabled.
#[cfg(feature = "time")]
#[inline]
#[track_caller]
pub(crate) fn runtime_with_timers() -> Id {
    with_timers_of(|inner| inner.pool.drivers.has_timers().then_some(inner.id))
}

/// Returns a [`TimersRef`], a counted reference to the timers of the given runtime; `None` if the
/// runtime has ended.
#[cfg(feature = "time")]
pub(crate) fn timers_ref_of(runtime: Id) -> Option<ModelArc<TimersRef>> {
    let of_current = with_current(|inner| (inner.id == runtime).then(|| timers_ref_in(inner)));
    if let Ok(Some(timers_ref)) = of_current {
        return timers_ref;
    }
    let known = runtimes().iter().find(|known| known.0 == runtime)?.1.upgrade();
    // The lock was released at the end of the statement above. It must not be held here, because
    // `known` may be the last reference to the runtime, and dropping that takes the lock.
    timers_ref_in(&known?)
}

#[cfg(feature = "time")]
#[inline]
fn timers_ref_in(inner: &Arc<Inner>) -> Option<ModelArc<TimersRef>> {
    inner.pool.start_if_lazy();
    let core = {
        let _inside = inside();
        holds_core_of(&inner.pool).then(core_index).flatten()
    };
    inner.pool.drivers.timers_ref(core).cloned()
}

/// All runtimes that exist, so that code that has kept only the ID of a runtime can find it.
#[cfg(feature = "time")]
static RUNTIMES: Mutex<Vec<(Id, Weak<Inner>)>> = Mutex::new(Vec::new());

#[cfg(feature = "time")]
fn runtimes() -> MutexGuard<'static, Vec<(Id, Weak<Inner>)>> {
    // No code that can panic runs under the lock.
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a new runtime in [`RUNTIMES`].
#[cfg(feature = "time")]
pub(super) fn know(inner: &Arc<Inner>) {
    runtimes().push((inner.id, Arc::downgrade(inner)));
}

/// Removes a runtime from [`RUNTIMES`]; called when the last reference to it is dropped.
#[cfg(feature = "time")]
pub(super) fn forget(runtime: Id) {
    let mut known = runtimes();
    let index = known.iter().position(|known| known.0 == runtime);
    // Dropping it here runs no user code, because the runtime has ended.
    drop(index.map(|index| known.swap_remove(index)));
    if known.is_empty() {
        *known = Vec::new();
    }
}

/// Calls `f` with this thread's runtime; `f` returns `None` if the runtime has no timers.
///
/// # Panics
/// If no runtime is current on this thread, or its timers are not enabled.
#[cfg(feature = "time")]
#[inline]
#[track_caller]
fn with_timers_of<R>(f: impl FnOnce(&Arc<Inner>) -> Option<R>) -> R {
    match with_current(f) {
        Ok(Some(value)) => value,
        Ok(None) => panic!(
            "A Tokio 1.x context was found, but timers are disabled. Call `enable_time` on the \
             runtime builder to enable timers."
        ),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the index of the timer wheel of the core that this thread holds, if the core belongs to
/// these timers. While the returned [`Inside`] lives, the core is not handed off to another thread.
#[cfg(feature = "time")]
#[inline]
pub(crate) fn wheel_of(timers: &Timers) -> (Option<usize>, Inside) {
    let inside = inside();
    (current_wheel(timers), inside)
}

/// Calls `f` with the timers of this thread's runtime, if it has any.
#[cfg(feature = "test-util")]
pub(crate) fn with_timers<R>(f: impl FnOnce(Option<&ModelArc<Timers>>) -> R) -> R {
    let timers = with_current(|inner| inner.pool.drivers.timers().cloned());
    f(timers.ok().flatten().as_ref())
}

/// Calls `f` with the clock of this thread's runtime, if it has one.
#[cfg(feature = "test-util")]
pub(crate) fn with_clock<R>(f: impl FnOnce(Option<&Clock>) -> R) -> R {
    with_timers(|timers| f(timers.map(|timers| timers.clock())))
}

/// Calls `f` with the runtime that is current on this thread.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&Arc<Inner>) -> R) -> Result<R, TryCurrentError> {
    let entered = runtime::entered().get();
    if entered.is_null() {
        return Err(TryCurrentError(()));
    }
    // SAFETY: the pointer came from `Arc::into_raw` in `Entered::new`, whose context keeps that
    // reference until it is left, on this thread. `ManuallyDrop` because the reference belongs to
    // the context and not to us.
    let inner = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(entered) });
    // `f` runs on this thread and could leave that context. It must not do that while it borrows
    // `inner`; it has to clone the reference if it needs one for longer.
    Ok(f(&inner))
}

/// The error of [`Handle::try_current`] when no runtime is current on this thread.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Handle;
///
/// let error = Handle::try_current().unwrap_err();
/// assert!(error.is_missing_context());
/// ```
pub struct TryCurrentError(());

impl TryCurrentError {
    /// Returns true if the call failed because no runtime is current on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::runtime::Handle;
    /// assert!(Handle::try_current().unwrap_err().is_missing_context());
    /// ```
    pub fn is_missing_context(&self) -> bool {
        true
    }

    /// Returns true if the call failed because this thread's context has been destroyed.
    ///
    /// This is always false, because the context needs no destructor and exists until the very end
    /// of the thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::runtime::Handle;
    /// assert!(!Handle::try_current().unwrap_err().is_thread_local_destroyed());
    /// ```
    pub fn is_thread_local_destroyed(&self) -> bool {
        false
    }
}

impl fmt::Debug for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TryCurrentError(NoContext)")
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first half is Tokio's text, because tests and searches rely on it.
        f.write_str(
            "there is no reactor running, must be called from the context of a Tokio 1.x runtime \
             (no runtime on this thread: call this inside `Runtime::block_on` or a spawned task, \
             or after `Handle::enter`)",
        )
    }
}

impl std::error::Error for TryCurrentError {}
