//! Builder options for the I/O driver, the timers and the clock.

use std::io;
#[cfg(feature = "time")]
use std::sync::Arc;

use super::Builder;
#[cfg(feature = "test-util")]
use crate::engine::blocking::BlockingPool;
#[cfg(feature = "net")]
use crate::engine::driver::{Driver, DriverConfig, IoBackend};
use crate::engine::pool::poller::PoolDrivers;
#[cfg(feature = "time")]
use crate::engine::{
    pool::Pool,
    prim::Arc as ModelArc,
    wheel::{Clock, Timers},
};

/// The driver options of a builder.
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

    /// Raises the number of events that are taken in one poll of the driver to at least `events`.
    pub(super) fn raise_events(&mut self, events: usize) {
        self.events = Some(self.events.unwrap_or(0).max(events));
    }

    pub(super) fn build(&self, workers: usize, threaded: bool) -> io::Result<PoolDrivers> {
        let drivers = PoolDrivers::none();
        #[cfg(feature = "net")]
        let drivers =
            if self.io { drivers.with_driver(Driver::new(self.driver_config())?) } else { drivers };
        #[cfg(feature = "time")]
        let drivers =
            if self.time { drivers.with_timers(self.timers(workers, threaded)) } else { drivers };
        let _ = (self.io, self.time, self.events, workers, threaded);
        Ok(drivers)
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

/// Makes the timers wake the pool's threads when a timer is armed by another thread than that of
/// its core, because the core may have to wake up earlier than it planned.
#[cfg(feature = "time")]
pub(super) fn alarm(pool: &Arc<Pool>) {
    if let Some(timers) = pool.drivers.timers() {
        let pool = Arc::downgrade(pool);
        timers.set_alarm(Box::new(move |wheel| {
            if let Some(pool) = pool.upgrade() {
                pool.alarm(wheel);
            }
        }));
    }
}

/// Stops a paused clock from advancing by itself while blocking work is running, because its
/// duration in the time of a paused clock is unknown.
#[cfg(feature = "test-util")]
pub(super) fn hold_clock(pool: &Arc<Pool>, blocking: &BlockingPool) {
    let Some(timers) = pool.drivers.timers().filter(|_| !pool.config.threaded) else { return };
    let (timers, pool) = (timers.clone(), Arc::downgrade(pool));
    blocking.hold_clock(Box::new(move || {
        timers.clock().allow_auto_advance();
        if let Some(pool) = pool.upgrade() {
            // The thread of the runtime may be asleep because the clock was held.
            pool.unpark(0);
        }
    }));
}

impl Builder {
    /// Enables both the I/O driver and the timers.
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

    /// Enables the I/O driver, which sockets, pipes and other descriptors that can be awaited need.
    ///
    /// Without it, creating one of these panics. The driver uses a few file descriptors of the
    /// process.
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

    /// Enables the timers, which sleeps, time-outs and intervals need.
    ///
    /// Without them, creating one of these panics.
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

    /// Enables the timers, as [`enable_time`](Self::enable_time) does.
    ///
    /// On Tokio this selects timers with one wheel for each worker. The timers of this runtime are
    /// always built that way.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().enable_alt_timer().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_alt_timer(&mut self) -> &mut Self {
        self.enable_time()
    }

    /// Enables the I/O driver, as [`enable_io`](Self::enable_io) does.
    ///
    /// On Tokio this lets files use io_uring. This runtime uses io_uring for operations that own
    /// their buffers wherever the kernel allows it, whether or not this method is called; the
    /// methods of `fs::File` that Tokio has, too, do not use it. Call `io_backend` (feature `net`)
    /// to wait for events by io_uring as well.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().enable_io_uring().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_io_uring(&mut self) -> &mut Self {
        self.enable_io()
    }

    /// Does nothing; the method exists because Tokio has it.
    ///
    /// On Tokio, a worker that begins to poll tasks then passes the drivers on to another worker.
    /// Here every worker polls the drivers and the timers when they are due, and a worker that is
    /// stuck in a poll is handed off to another thread; see [`preemption`](Self::preemption).
    ///
    /// # Examples
    ///
    /// ```
    /// let mut builder = blitz_io::runtime::Builder::new_multi_thread();
    /// let rt = builder.enable_eager_driver_handoff().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_eager_driver_handoff(&mut self) -> &mut Self {
        self
    }

    /// Does nothing; the method exists because Tokio has it.
    ///
    /// The queue of `spawn_blocking` always consists of several parts with a lock each.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut builder = blitz_io::runtime::Builder::new_multi_thread();
    /// let rt = builder.enable_sharded_blocking_queue().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enable_sharded_blocking_queue(&mut self) -> &mut Self {
        self
    }

    /// Selects the system interface through which the runtime receives I/O events.
    ///
    /// By default, and with [`IoBackend::Auto`], it is the one that measured best on this system.
    /// The environment variable `BLITZ_IO_BACKEND` overrides this setting.
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

    /// Sets whether the runtime's clock starts paused.
    ///
    /// A paused clock moves when a task calls [`time::advance`](crate::time::advance), and by
    /// itself to the next timer when there is nothing else to do. Only a current-thread runtime can
    /// have one; for a multi-thread runtime [`build`](Self::build) panics.
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

    /// Sets how many I/O events are taken in one poll of the driver.
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
