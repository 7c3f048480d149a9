//! Pausing and moving the clock, for tests.

use std::time::Duration;

use crate::{engine::wheel::Clock, runtime::context, task::yield_now};

const OUTSIDE: &str = "time cannot be frozen from outside the Tokio runtime: call this inside \
                       `Runtime::block_on` or a spawned task";

fn on_clock(f: impl FnOnce(&Clock) -> Result<(), &'static str>) -> Result<(), &'static str> {
    context::with_clock(|clock| f(clock.ok_or(OUTSIDE)?))
}

/// Pauses the clock of the current runtime.
///
/// [`Instant::now`](super::Instant::now) then returns the time of this call until the clock is
/// moved: by [`advance`], or by the runtime. When the runtime has no work left but to wait, it
/// moves the clock to the next timer and fires it. So timers fire in their order, and without
/// delay. `std`'s clock is not affected.
///
/// While a [`spawn_blocking`](crate::task::spawn_blocking) closure runs, the runtime does not
/// move the clock: use one for work during which no time must pass.
///
/// The runtime must be single-threaded, like that of [`test`](macro@crate::test); with
/// `start_paused = true` its clock is paused from the beginning.
///
/// # Panics
///
/// Panics if the clock is paused already, outside of a runtime, and if the runtime has more
/// than one thread.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{self, Duration, Instant};
///
/// # let runtime = blitz_io::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// time::pause();
/// let start = Instant::now();
/// time::sleep(Duration::from_secs(3600)).await;
/// assert_eq!(start.elapsed(), Duration::from_secs(3600));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn pause() {
    if let Err(reason) = on_clock(Clock::pause) {
        panic!("{reason}");
    }
}

/// Resumes the clock of the current runtime, from the time at which it was paused.
///
/// # Panics
///
/// Panics if the clock is not paused, and outside of a runtime.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{self, Duration, Instant};
///
/// # let runtime = blitz_io::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// time::pause();
/// time::advance(Duration::from_secs(3600)).await;
/// let before = Instant::now();
/// time::resume();
/// assert!(Instant::now() >= before);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn resume() {
    if let Err(reason) = on_clock(Clock::resume) {
        panic!("{reason}");
    }
}

/// Advances the clock of the current runtime, which must be paused, by `duration`.
///
/// The clock jumps: all timers that expire in between fire at once. Tasks that wait for them
/// are woken, but may not have run yet when this returns. To see timers fire one after the
/// other use [`sleep`](super::sleep), for which the runtime moves the clock from timer to
/// timer.
///
/// # Panics
///
/// Panics if the clock is not paused, outside of a runtime, and if the new time cannot be
/// represented as an [`Instant`](super::Instant).
///
/// # Examples
///
/// ```
/// use blitz_io::time::{self, Duration, Instant};
///
/// # let runtime = blitz_io::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// time::pause();
/// let start = Instant::now();
/// time::advance(Duration::from_millis(1500)).await;
/// assert_eq!(start.elapsed(), Duration::from_millis(1500));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn advance(duration: Duration) {
    if let Err(reason) = on_clock(|clock| clock.advance(duration)) {
        panic!("{reason}");
    }
    // The tasks that are woken here are queued before this task is queued again.
    context::with_timers(|timers| timers.map(|timers| timers.fire_all(timers.clock().now_ns())));
    yield_now().await;
}
