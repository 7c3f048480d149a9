//! The timers that code on this thread means.

use crate::engine::{
    prim::Arc,
    wheel::{Seat, Timers},
};

/// A share in the timers of the current runtime.
///
/// # Panics
/// If there is no runtime on this thread, or it has no timers.
#[inline]
#[track_caller]
pub(super) fn seat() -> Arc<Seat> {
    #[cfg(feature = "rt")]
    return crate::runtime::context::seat();
    #[cfg(not(feature = "rt"))]
    panic!(
        "there is no reactor running, must be called from the context of a Tokio 1.x runtime: \
         switch on the feature `rt`, and make the timer inside a runtime"
    );
}

/// The wheel of the core that this thread holds, if it holds one of the runtime that these
/// timers are of.
#[inline]
pub(super) fn wheel_of(timers: &Timers) -> Option<usize> {
    #[cfg(feature = "rt")]
    return crate::runtime::context::wheel_of(timers);
    #[cfg(not(feature = "rt"))]
    {
        let _ = timers;
        None
    }
}

/// The time on the clock of the current runtime, else the system's.
#[inline]
pub(super) fn now() -> std::time::Instant {
    #[cfg(feature = "test-util")]
    if crate::engine::wheel::any_was_paused() {
        let now = crate::runtime::context::with_clock(|clock| clock.map(|clock| clock.now()));
        return now.unwrap_or_else(std::time::Instant::now);
    }
    std::time::Instant::now()
}
