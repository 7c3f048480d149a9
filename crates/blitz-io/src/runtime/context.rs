//! Which runtime the code on this thread belongs to.

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
    pool::current::{Inside, core_index, holds_core_of, inside, wheel_here},
    prim::Arc as ModelArc,
    wheel::{Seat, Timers},
};
use crate::engine::{prim::is_panicking, work::current};

/// Runtime context guard.
///
/// Returned by [`Runtime::enter`](super::Runtime::enter) and [`Handle::enter`].
/// While it lives, [`Handle::current`] and [`spawn`](crate::spawn) on this thread
/// mean its runtime. Guards must be dropped in the reverse order of entering.
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

// SAFETY: through a shared guard only its depth is read; what counts, its drop,
// needs the guard itself, and that does not leave its thread.
unsafe impl Sync for EnterGuard<'_> {}

impl EnterGuard<'_> {
    pub(crate) fn new(inner: &Arc<Inner>) -> Self {
        Self { entered: Entered::new(inner.clone()), handle: PhantomData }
    }
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").field("depth", &self.entered.depth).finish()
    }
}

/// The runtime is this thread's current one until this is dropped. If it is
/// leaked instead, so is one reference to the runtime: nothing dangles.
pub(crate) struct Entered {
    before: *const (),
    depth: usize,
}

impl Entered {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        current::with(|current| {
            let depth = current.depth.get() + 1;
            current.depth.set(depth);
            Self { before: current.entered.replace(Arc::into_raw(inner).cast()), depth }
        })
    }
}

impl Entered {
    /// Leaves whatever was entered since and never left: the thread is at its end,
    /// and a guard that a task leaked is no reason to fail.
    pub(crate) fn leave_with_all_inside(self) {
        let this = std::mem::ManuallyDrop::new(self);
        let inner = current::with(|current| {
            let inside = current.depth.replace(this.depth - 1) != this.depth;
            let inner = current.entered.replace(this.before);
            // What lies in between keeps its references: they are leaked, as the
            // guards were.
            (!inside).then_some(inner)
        });
        if let Some(inner) = inner {
            // SAFETY: `new` made it with `into_raw`, and it was in our place.
            drop(unsafe { Arc::from_raw(inner.cast::<Inner>()) });
        }
    }
}

impl Drop for Entered {
    #[track_caller]
    fn drop(&mut self) {
        let left = current::with(|current| {
            if current.depth.get() < self.depth {
                // Whoever entered before us has left with all inside: the thread is at
                // its end, and this guard outlived it in a thread-local.
                return Some(std::ptr::null());
            }
            if current.depth.get() != self.depth {
                return None;
            }
            current.depth.set(self.depth - 1);
            Some(current.entered.replace(self.before))
        });
        match left {
            Some(inner) if inner.is_null() => {}
            // SAFETY: `new` made it with `into_raw`, and it was in our place.
            Some(inner) => drop(unsafe { Arc::from_raw(inner.cast::<Inner>()) }),
            None if is_panicking() => {}
            None => panic!(
                "`EnterGuard` values dropped out of order: guards returned by `Handle::enter` \
                 must be dropped in the reverse order in which they were acquired"
            ),
        }
    }
}

/// The driver of this thread's runtime.
///
/// # Panics
/// If there is none.
#[cfg(feature = "net")]
#[track_caller]
pub(crate) fn io_driver() -> Arc<Driver> {
    match with_current(|inner| {
        inner.pool.start_if_lazy();
        inner.pool.duties.driver().cloned()
    }) {
        Ok(Some(driver)) => driver,
        Ok(None) => panic!(
            "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the runtime \
             builder to enable IO."
        ),
        Err(error) => panic!("{error}"),
    }
}

/// The driver of this thread's runtime, if it has one whose turns are taken whatever its callers
/// do: that of a current-thread runtime stands still when nobody is in its `block_on`.
#[cfg(all(target_os = "linux", feature = "net", feature = "fs"))]
pub(crate) fn steady_io_driver() -> Option<Arc<Driver>> {
    with_current(|inner| {
        if inner.flavor != RuntimeFlavor::MultiThread {
            return None;
        }
        inner.pool.start_if_lazy();
        inner.pool.duties.driver().cloned()
    })
    .ok()
    .flatten()
}

/// Calls `f` with the driver of this thread's runtime, if there is one.
#[cfg(all(unix, feature = "signal"))]
#[inline]
pub(crate) fn with_io_driver<R>(f: impl FnOnce(&Arc<Driver>) -> R) -> Option<R> {
    with_current(|inner| inner.pool.duties.driver().map(f)).ok().flatten()
}

/// A seat at the timers of this thread's runtime: that of its core, or of nobody.
///
/// # Panics
/// If there are none.
#[cfg(feature = "time")]
#[inline]
#[track_caller]
pub(crate) fn seat() -> ModelArc<Seat> {
    with_timers_of(seat_in)
}

/// The number of this thread's runtime, which has timers.
///
/// # Panics
/// As [`seat`].
#[cfg(feature = "time")]
#[inline]
#[track_caller]
pub(crate) fn runtime_with_timers() -> Id {
    with_timers_of(|inner| inner.pool.duties.has_timers().then_some(inner.id))
}

/// A share in the timers of that runtime; `None` if it has ended.
#[cfg(feature = "time")]
pub(crate) fn seat_of(runtime: Id) -> Option<ModelArc<Seat>> {
    let here = with_current(|inner| (inner.id == runtime).then(|| seat_in(inner)));
    if let Ok(Some(seat)) = here {
        return seat;
    }
    let known = runtimes().iter().find(|known| known.0 == runtime)?.1.upgrade();
    // The lock was let go at the end of the statement above: this may be the last one who
    // has it, and then its end takes the lock.
    seat_in(&known?)
}

#[cfg(feature = "time")]
#[inline]
fn seat_in(inner: &Arc<Inner>) -> Option<ModelArc<Seat>> {
    inner.pool.start_if_lazy();
    let core = {
        let _inside = inside();
        holds_core_of(&inner.pool).then(core_index).flatten()
    };
    inner.pool.duties.seat(core).cloned()
}

/// All runtimes that are there, for those who kept no more than the number of one.
#[cfg(feature = "time")]
static RUNTIMES: Mutex<Vec<(Id, Weak<Inner>)>> = Mutex::new(Vec::new());

#[cfg(feature = "time")]
fn runtimes() -> MutexGuard<'static, Vec<(Id, Weak<Inner>)>> {
    // Nothing that panics runs under the lock.
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A runtime has begun.
#[cfg(feature = "time")]
pub(super) fn know(inner: &Arc<Inner>) {
    runtimes().push((inner.id, Arc::downgrade(inner)));
}

/// A runtime has ended: the last who had it lets it go.
#[cfg(feature = "time")]
pub(super) fn forget(runtime: Id) {
    let mut known = runtimes();
    let place = known.iter().position(|known| known.0 == runtime);
    // No code of users' runs when it is dropped: what it points to has ended.
    drop(place.map(|place| known.swap_remove(place)));
    if known.is_empty() {
        *known = Vec::new();
    }
}

/// Calls `f` with this thread's runtime, which answers if it has timers.
///
/// # Panics
/// If there is none, or it has none.
#[cfg(feature = "time")]
#[inline]
#[track_caller]
fn with_timers_of<R>(f: impl FnOnce(&Arc<Inner>) -> Option<R>) -> R {
    match with_current(f) {
        Ok(Some(answer)) => answer,
        Ok(None) => panic!(
            "A Tokio 1.x context was found, but timers are disabled. Call `enable_time` on the \
             runtime builder to enable timers."
        ),
        Err(error) => panic!("{error}"),
    }
}

/// The wheel of the core that this thread holds, if it is one of these timers. The core is not
/// taken away before the other half of the answer is dropped.
#[cfg(feature = "time")]
#[inline]
pub(crate) fn wheel_of(timers: &Timers) -> (Option<usize>, Inside) {
    let inside = inside();
    (wheel_here(timers), inside)
}

/// Calls `f` with the timers of this thread's runtime, if it has any.
#[cfg(feature = "test-util")]
pub(crate) fn with_timers<R>(f: impl FnOnce(Option<&ModelArc<Timers>>) -> R) -> R {
    let timers = with_current(|inner| inner.pool.duties.timers().cloned());
    f(timers.ok().flatten().as_ref())
}

/// Calls `f` with the clock of this thread's runtime, if it has one.
#[cfg(feature = "test-util")]
pub(crate) fn with_clock<R>(f: impl FnOnce(Option<&Clock>) -> R) -> R {
    with_timers(|timers| f(timers.map(|timers| timers.clock())))
}

/// Calls `f` with the runtime of this thread.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&Arc<Inner>) -> R) -> Result<R, TryCurrentError> {
    let entered = current::with(|current| current.entered.get()).cast::<Inner>();
    if entered.is_null() {
        return Err(TryCurrentError(()));
    }
    // SAFETY: it came from `Arc::into_raw`, and whoever entered keeps it until it
    // leaves, on this thread. `ManuallyDrop`: the reference is not ours.
    let inner = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(entered) });
    // `f` may leave that context (it runs on this thread), so it gets its own
    // reference only where it clones one; it must not leave while borrowing.
    Ok(f(&inner))
}

/// Error returned by [`Handle::try_current`] when no runtime has been started.
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
    /// Returns true if the call failed because there is no runtime on this thread.
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

    /// Returns true if the call failed because this thread's context is gone.
    ///
    /// That never happens here: the context needs no destructor and is there until
    /// the thread's very end.
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
        // The second half is what Tokio says, for those who search for it.
        f.write_str(
            "no runtime on this thread: call this inside `Runtime::block_on` or a spawned task, \
             or after `Handle::enter` (there is no reactor running, must be called from the \
             context of a Tokio 1.x runtime)",
        )
    }
}

impl std::error::Error for TryCurrentError {}
