//! A bell and its place at a driver: how a runtime hears of signals.
//!
//! Made when a runtime is first asked for signals, and given up when its driver ends.
//! Whoever takes the driver's turn hears the bell, in place of a task.

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

/// See the module.
pub(crate) struct Station {
    hall: &'static Hall<Pipe>,
    driver: *const Driver,
    /// Until the driver ends.
    place: Mutex<Option<Place>>,
    open: AtomicBool,
    gate: Gate,
}

#[derive(Clone)]
struct Place {
    bell: &'static Bell<Pipe>,
    /// Keeps the driver, so that no other has its address while this is open.
    registration: Arc<Registration>,
}

// SAFETY: `driver` is compared, never followed.
unsafe impl Send for Station {}
// SAFETY: as above.
unsafe impl Sync for Station {}

/// All that are open. Std's lock: no model has stations.
static STATIONS: StaticMutex<Vec<Arc<Station>>> = StaticMutex::new(Vec::new());

fn stations() -> MutexGuard<'static, Vec<Arc<Station>>> {
    // Nothing that panics runs under the lock.
    STATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Station {
    /// That of the driver, which is made if there is none.
    ///
    /// # Errors
    /// That the driver has ended, or what the system says.
    pub(crate) fn of(driver: &Arc<Driver>) -> io::Result<Arc<Self>> {
        let mut stations = stations();
        if let Some(station) = stations.iter().find(|station| station.serves(driver)) {
            return Ok(station.clone());
        }
        let station = Self::begin(driver)?;
        stations.push(station.clone());
        drop(stations);
        // Now it can be heard; what came before is told here. Users' wakers: no lock is held.
        Ear::call(&station);
        if station.serves(driver) { Ok(station) } else { Err(shut_down_error()) }
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

    /// Whether it hears for that driver's runtime.
    #[inline]
    pub(crate) fn serves(&self, driver: &Arc<Driver>) -> bool {
        std::ptr::eq(self.driver, Arc::as_ptr(driver)) && self.is_open()
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: who has the driver in its hands, and finds its address here, sees what
        // was stored before that address could become the driver's.
        self.open.load(Relaxed)
    }

    /// Sees that the next ring calls the ear, and hears what is there. By one at a time.
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

    /// The driver has ended. Those who listen are not told: each poll of one looks for the
    /// station of its own runtime.
    #[cold]
    fn close(&self, bell: &'static Bell<Pipe>) {
        // Relaxed: as in `is_open`.
        self.open.store(false, Relaxed);
        let place = lock(&self.place).take();
        if let Some(place) = &place {
            // Nobody hears it from now on, whatever the answer is.
            let _ = place.registration.deregister(bell.pipe().reader());
        }
        let closed = {
            let mut stations = stations();
            let at = stations.iter().position(|station| std::ptr::eq(&raw const **station, self));
            at.map(|at| stations.swap_remove(at))
        };
        self.hall.take_down(bell);
        // What rang meanwhile is told by the others, or by the next who puts a bell up.
        drop((place, closed));
    }
}

/// What is called in a task's place.
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
