//! A bell and its registration with a driver: how a runtime hears of signals.
//!
//! A station is created when signals are first requested in a runtime, and closed when the driver
//! ends. The thread that takes the driver's turn hears the bell, through a waker that is called in
//! place of a task's.

use std::{
    io,
    sync::{Arc, Mutex as StaticMutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Wake, Waker},
};

use super::{Bell, Hall, Pipe, hall};
use crate::engine::{
    driver::{Direction, Driver, Registration, interest::Interest, shut_down_error},
    prim::{AtomicBool, Mutex, Ordering::Relaxed, lock},
    wait::gate::Gate,
};

/// A runtime's source of signals: a bell that its driver watches.
pub(crate) struct Station {
    hall: &'static Hall<Pipe>,
    driver: *const Driver,
    /// The bell and its registration; `None` once the driver has ended.
    place: Mutex<Option<Place>>,
    open: AtomicBool,
    gate: Gate,
}

#[derive(Clone)]
struct Place {
    bell: &'static Bell<Pipe>,
    /// Keeps the driver, so that no other driver has its address while the station is open.
    registration: Arc<Registration>,
}

// SAFETY: `driver` is compared, never dereferenced.
unsafe impl Send for Station {}
// SAFETY: `driver` is compared, never dereferenced.
unsafe impl Sync for Station {}

/// All open stations. The lock is std's, because no model has stations.
static STATIONS: StaticMutex<Vec<Arc<Station>>> = StaticMutex::new(Vec::new());

fn stations() -> MutexGuard<'static, Vec<Arc<Station>>> {
    // No code that panics runs under the lock, so a poisoned state is still valid.
    STATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Station {
    /// Returns the station of the driver, and creates it if there is none.
    ///
    /// # Errors
    /// If the driver has ended, or the system could not create or register the bell.
    pub(crate) fn of(driver: &Arc<Driver>) -> io::Result<Arc<Self>> {
        Self::with(driver, || Ok(())).map(|(station, ())| station)
    }

    /// Returns the station of the driver, and what `prepare` returns. `prepare` is called when the
    /// station is sure to be had, and before signals that came earlier are dispatched by a station
    /// that is created here, so a listener that `prepare` registers hears of those, too.
    ///
    /// # Errors
    /// If the driver has ended, or the system could not create or register the bell: then `prepare`
    /// was not called. And the errors of `prepare`.
    pub(crate) fn with<T>(
        driver: &Arc<Driver>,
        prepare: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<(Arc<Self>, T)> {
        let mut stations = stations();
        if let Some(station) = stations.iter().find(|station| station.serves(driver)).cloned() {
            drop(stations);
            return prepare().map(|prepared| (station, prepared));
        }
        let station = Self::begin(driver)?;
        stations.push(station.clone());
        drop(stations);
        let prepared = prepare();
        // The bell can be heard from now on; signals that came before are dispatched here. This
        // calls users' wakers, so no lock is held.
        Ear::call(&station);
        if station.serves(driver) { Ok((station, prepared?)) } else { Err(shut_down_error()) }
    }

    fn begin(driver: &Arc<Driver>) -> io::Result<Arc<Self>> {
        let hall = hall();
        let bell = hall.put_up(Pipe::new)?;
        let registration = match driver.register(bell.pipe().reader(), Interest::READABLE) {
            Ok(registration) => Arc::new(registration),
            Err(why) => {
                hall.take_down(bell);
                return Err(why);
            }
        };
        Ok(Arc::new(Self {
            hall,
            driver: Arc::as_ptr(driver),
            place: Mutex::new(Some(Place { bell, registration })),
            open: AtomicBool::new(true),
            gate: Gate::new(),
        }))
    }

    /// Returns whether the station is open and serves that driver's runtime.
    #[inline]
    pub(crate) fn serves(&self, driver: &Arc<Driver>) -> bool {
        std::ptr::eq(self.driver, Arc::as_ptr(driver)) && self.is_open()
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: a thread that has a reference to the driver, and finds its address here, sees
        // what was stored before that address could become the driver's.
        self.open.load(Relaxed)
    }

    /// Registers `ear` to be called at the next ring, and dispatches the signals that were
    /// delivered. Must be called by one thread at a time.
    fn hear(&self, ear: &Waker) {
        let Some(Place { bell, registration }) = lock(&self.place).clone() else { return };
        let mut cx = Context::from_waker(ear);
        while let Poll::Ready(event) = registration.poll_record(&mut cx, Direction::Read) {
            if event.is_shutdown() {
                self.close(bell);
                return;
            }
            bell.pipe().drain();
            registration.clear_readiness(event);
        }
        self.hall.hear(bell);
    }

    /// Closes the station, because the driver has ended. Listeners are not woken: each poll of one
    /// looks for the station of its own runtime.
    #[cold]
    fn close(&self, bell: &'static Bell<Pipe>) {
        // Relaxed: no other memory depends on it; `is_open` says why.
        self.open.store(false, Relaxed);
        let place = lock(&self.place).take();
        if let Some(place) = &place {
            // No thread hears the bell from now on, whatever the result is.
            let _ = place.registration.deregister(bell.pipe().reader());
        }
        let closed = {
            let mut stations = stations();
            let at = stations.iter().position(|station| std::ptr::eq(&raw const **station, self));
            at.map(|at| stations.swap_remove(at))
        };
        self.hall.take_down(bell);
        // Signals that came meanwhile are dispatched by other stations, or when the next bell is
        // put up.
        drop((place, closed));
    }
}

/// The waker that is called in a task's place when the bell rings.
struct Ear(Weak<Station>);

impl Ear {
    fn call(station: &Arc<Station>) {
        Arc::new(Self(Arc::downgrade(station))).wake();
    }
}

impl Wake for Ear {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(station) = self.0.upgrade() else { return };
        let ear = Waker::from(self.clone());
        station.gate.pass(|| station.hear(&ear));
    }
}

impl std::fmt::Debug for Station {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Station").field("open", &self.is_open()).finish_non_exhaustive()
    }
}
