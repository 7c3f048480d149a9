//! Builder options for what a runtime looks after beside tasks: events and time.

use std::io;
#[cfg(feature = "time")]
use std::sync::Arc;

use super::Builder;
#[cfg(feature = "test-util")]
use crate::engine::blocking::Blocking;
#[cfg(feature = "net")]
use crate::engine::driver::{Driver, DriverConfig, IoBackend};
use crate::engine::pool::duty::Duties;
#[cfg(feature = "time")]
use crate::engine::{
    pool::Pool,
    prim::Arc as ModelArc,
    wheel::{Clock, Timers},
};

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) struct Drivers {
    io: bool,
    time: bool,
    #[cfg(feature = "test-util")]
    paused: bool,
    #[cfg(feature = "net")]
    backend: IoBackend,
    events: Option<usize>,
}

impl Drivers {
    pub(super) fn none() -> Self {
        Self {
            io: false,
            time: false,
            #[cfg(feature = "test-util")]
            paused: false,
            #[cfg(feature = "net")]
            backend: IoBackend::Auto,
            events: None,
        }
    }

    /// At least so many events in one look.
    pub(super) fn raise_events(&mut self, events: usize) {
        self.events = Some(self.events.unwrap_or(0).max(events));
    }

    pub(super) fn duties(&self, workers: usize, threaded: bool) -> io::Result<Duties> {
        let duties = Duties::none();
        #[cfg(feature = "net")]
        let duties =
            if self.io { duties.with_driver(Driver::new(self.driver_config())?) } else { duties };
        #[cfg(feature = "time")]
        let duties =
            if self.time { duties.with_timers(self.timers(workers, threaded)) } else { duties };
        let _ = (self.io, self.time, self.events, workers, threaded);
        Ok(duties)
    }
}

#[cfg(feature = "net")]
impl Drivers {
    fn driver_config(&self) -> DriverConfig {
        let mut config = DriverConfig { backend: Some(self.backend), ..DriverConfig::default() };
        if let Some(events) = self.events {
            config.events_per_turn = events;
        }
        config
    }
}

#[cfg(feature = "time")]
impl Drivers {
    #[track_caller]
    fn timers(&self, workers: usize, threaded: bool) -> ModelArc<Timers> {
        let clock = Clock::new(!threaded);
        #[cfg(feature = "test-util")]
        if self.paused
            && let Err(error) = clock.pause()
        {
            panic!("{error}");
        }
        Timers::new(workers, clock)
    }
}

/// Timers that somebody else than their core's thread arms call its pool.
#[cfg(feature = "time")]
pub(super) fn alarm(pool: &Arc<Pool>) {
    if let Some(timers) = pool.duties.timers() {
        let pool = Arc::downgrade(pool);
        timers.set_alarm(Box::new(move |wheel| {
            if let Some(pool) = pool.upgrade() {
                pool.alarm(wheel);
            }
        }));
    }
}

/// A clock that can be paused stands still while blocking work is under way: nobody knows
/// how long that takes in such a time.
#[cfg(feature = "test-util")]
pub(super) fn hold_clock(pool: &Arc<Pool>, blocking: &Blocking) {
    let Some(timers) = pool.duties.timers().filter(|_| !pool.config.threaded) else { return };
    let (timers, pool) = (timers.clone(), Arc::downgrade(pool));
    blocking.hold_clock(Box::new(move || {
        timers.clock().allow_auto_advance();
        if let Some(pool) = pool.upgrade() {
            // Whoever sleeps because it was held may go on.
            pool.unpark(0);
        }
    }));
}

impl Builder {
    /// Enables both I/O and time drivers.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().enable_all().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_all(&mut self) -> &mut Self {
        self.enable_io();
        self.enable_time()
    }

    /// Enables the I/O driver: sockets, pipes, and file descriptors that can be waited
    /// for.
    ///
    /// Without it, making one panics. It takes a few file descriptors of the process.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().enable_io().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_io(&mut self) -> &mut Self {
        self.drivers.io = true;
        self
    }

    /// Enables the time driver: sleeps, time-outs and intervals.
    ///
    /// Without it, making one panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().enable_time().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_time(&mut self) -> &mut Self {
        self.drivers.time = true;
        self
    }

    /// Chooses how the system is asked for events.
    ///
    /// Unset, or [`IoBackend::Auto`], it is what was measured best on this system. The
    /// environment variable `BLITZ_IO_BACKEND` overrides both.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, IoBackend};
    ///
    /// let rt = Builder::new_current_thread().io_backend(IoBackend::Auto).enable_io().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "net")]
    #[cfg_attr(docsrs, doc(cfg(feature = "net")))]
    pub fn io_backend(&mut self, backend: IoBackend) -> &mut Self {
        self.drivers.backend = backend;
        self
    }

    /// Controls if the runtime's clock starts paused or advancing.
    ///
    /// A paused clock moves when somebody calls [`time::advance`](crate::time::advance),
    /// and by itself to the next timer when there is nothing else to do. Only a
    /// current-thread runtime can have one.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let rt =
    ///     blitz_io::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    /// let begun = std::time::Instant::now();
    /// rt.block_on(async { blitz_io::time::sleep(Duration::from_secs(3600)).await });
    /// assert!(begun.elapsed() < Duration::from_secs(3600));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "test-util")]
    #[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
    pub fn start_paused(&mut self, start_paused: bool) -> &mut Self {
        self.drivers.paused = start_paused;
        self
    }

    /// Sets how many I/O events are taken in one look at the driver.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_io_events_per_tick(256).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn max_io_events_per_tick(&mut self, capacity: usize) -> &mut Self {
        assert!(capacity > 0, "max_io_events_per_tick must be non-zero: leave it unset");
        self.drivers.events = Some(capacity);
        self
    }
}
