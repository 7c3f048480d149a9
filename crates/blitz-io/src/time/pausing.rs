//! A clock that stands still, for tests.

use std::time::Duration;

use crate::{engine::wheel::Clock, runtime::context, task::yield_now};

const OUTSIDE: &str = "time cannot be frozen from outside the Tokio runtime: call this inside \
                       `Runtime::block_on` or a spawned task";

fn on_clock(f: impl FnOnce(&Clock) -> Result<(), &'static str>) -> Result<(), &'static str> {
    context::with_clock(|clock| f(clock.ok_or(OUTSIDE)?))
}

/// Stops the clock of the current runtime.
///
/// [`Instant::now`](super::Instant::now) is then the time of this call, until the clock is
/// moved: by [`advance`], or by the runtime. When that has nothing to do but to wait it moves
/// the clock to the next timer, and fires it. So timers fire in their order, and at once.
/// `std`'s clock runs on.
///
/// While there is a [`spawn_blocking`](crate::task::spawn_blocking) at work the runtime does
/// not move the clock: wrap into one what must be waited for without time passing.
///
/// The runtime must be one of a single thread, as [`test`](macro@crate::test) makes it; with
/// `start_paused = true` its clock stands still from the beginning.
///
/// # Panics
///
/// If the clock stands still already, outside of a runtime, and if the runtime has more
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

/// Lets the clock of the current runtime run again, from where it stands.
///
/// # Panics
///
/// If the clock does not stand still, and outside of a runtime.
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

/// Moves the clock of the current runtime, which must stand still, by so much.
///
/// It jumps: what falls due in between does so all at once. Who waits for it is woken, but
/// may not have run yet when this is done. To see timers fire one after the other use
/// [`sleep`](super::sleep): the runtime moves the clock then, from timer to timer.
///
/// # Panics
///
/// If the clock does not stand still, outside of a runtime, and if an
/// [`Instant`](super::Instant) cannot be as late as that.
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
    // Who is woken here is queued before this task is again.
    context::with_timers(|timers| timers.map(|timers| timers.fire_all(timers.clock().now_ns())));
    yield_now().await;
}
