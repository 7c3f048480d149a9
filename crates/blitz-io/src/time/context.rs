//! The timers and the clock of the current runtime.

use super::Instant;
use crate::engine::{
    prim::{Arc, clock::CoarseInstant},
    wheel::{Timers, TimersRef},
};

/// Returns this core's handle ([`TimersRef`]) of the timers of the current runtime.
///
/// # Panics
/// Panics if there is no current runtime on this thread, or it has no timers.
#[inline]
#[track_caller]
pub(super) fn timers_ref() -> Arc<TimersRef> {
    #[cfg(feature = "rt")]
    return crate::runtime::context::timers_ref();
    #[cfg(not(feature = "rt"))]
    panic!(
        "there is no reactor running, must be called from the context of a Tokio 1.x runtime: \
         switch on the feature `rt`, and make the timer inside a runtime"
    );
}

/// Records the current time, and the ID of the current runtime, so that a timer can be
/// created later. Returns `None` if a clock was ever paused: then the exact time is needed.
///
/// # Panics
/// Panics if there is no current runtime on this thread, or it has no timers.
#[inline]
#[track_caller]
pub(super) fn record_creation() -> Option<Creation> {
    #[cfg(feature = "test-util")]
    if crate::engine::wheel::any_was_paused() {
        return None;
    }
    #[cfg(feature = "rt")]
    return Some(Creation {
        runtime: crate::runtime::context::runtime_with_timers(),
        mark: CoarseInstant::now(),
    });
    #[cfg(not(feature = "rt"))]
    {
        drop(timers_ref());
        None
    }
}

/// A point in time, and the runtime that was current then.
#[derive(Debug)]
pub(super) struct Creation {
    #[cfg(feature = "rt")]
    runtime: crate::runtime::Id,
    mark: CoarseInstant,
}

impl Creation {
    /// Returns the recorded time, or up to a tenth of a second later, but not later than `now`.
    pub(super) fn time(&self, now: Instant) -> Instant {
        Instant::from_std(self.mark.latest_instant(now.into_std()))
    }

    /// Returns a handle of the timers of that runtime; `None` if it has ended.
    pub(super) fn timers_ref(&self) -> Option<Arc<TimersRef>> {
        #[cfg(feature = "rt")]
        return crate::runtime::context::timers_ref_of(self.runtime);
        #[cfg(not(feature = "rt"))]
        None
    }
}

/// Returns the wheel of the core that this thread holds, if that core belongs to the runtime
/// of `timers`, and a guard that keeps the core on this thread until it is dropped.
#[inline]
pub(super) fn wheel_of(timers: &Timers) -> (Option<usize>, impl Sized + use<>) {
    #[cfg(feature = "rt")]
    return crate::runtime::context::wheel_of(timers);
    #[cfg(not(feature = "rt"))]
    {
        let _ = timers;
        (None, ())
    }
}

/// Returns the time on the clock of the current runtime, or else on the system's.
#[inline]
pub(super) fn now() -> std::time::Instant {
    #[cfg(feature = "test-util")]
    if crate::engine::wheel::any_was_paused() {
        let now = crate::runtime::context::with_clock(|clock| clock.map(|clock| clock.now()));
        return now.unwrap_or_else(std::time::Instant::now);
    }
    std::time::Instant::now()
}
