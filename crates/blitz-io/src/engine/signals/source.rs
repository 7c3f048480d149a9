//! A notifier and its registration with a driver: how a runtime learns of signals.
//!
//! A source is created when signals are first requested in a runtime, and closed when the driver
//! ends. The thread that takes the driver's turn dispatches the signals, through a waker that is
//! called in place of a task's.

use std::{
    io,
    sync::{Arc, Mutex as StaticMutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Wake, Waker},
};

use super::{SignalNotifier, SignalRegistry, WakePipe, registry};
use crate::engine::{
    driver::{Direction, Driver, Registration, interest::Interest, shut_down_error},
    prim::{AtomicBool, Mutex, Ordering::Relaxed, lock},
    wait::coalescer::Coalescer,
};

/// A runtime's source of signals: a notifier that its driver watches.
pub(crate) struct SignalSource {
    registry: &'static SignalRegistry<WakePipe>,
    driver: *const Driver,
    /// The notifier and its registration; `None` once the driver has ended.
    registered: Mutex<Option<Registered>>,
    open: AtomicBool,
    coalescer: Coalescer,
}

#[derive(Clone)]
struct Registered {
    notifier: &'static SignalNotifier<WakePipe>,
    /// Keeps the driver, so that no other driver has its address while the source is open.
    registration: Arc<Registration>,
}

// SAFETY: `driver` is compared, never dereferenced.
unsafe impl Send for SignalSource {}
// SAFETY: `driver` is compared, never dereferenced.
unsafe impl Sync for SignalSource {}

/// All open sources. The lock is std's, because no model has sources.
static SOURCES: StaticMutex<Vec<Arc<SignalSource>>> = StaticMutex::new(Vec::new());

fn sources() -> MutexGuard<'static, Vec<Arc<SignalSource>>> {
    // No code that panics runs under the lock, so a poisoned state is still valid.
    SOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SignalSource {
    /// Returns the source of the driver, and creates it if there is none.
    ///
    /// # Errors
    /// If the driver has ended, or the system could not create or register the notifier.
    pub(crate) fn of(driver: &Arc<Driver>) -> io::Result<Arc<Self>> {
        Self::with(driver, || Ok(())).map(|(source, ())| source)
    }

    /// Returns the source of the driver, and what `prepare` returns. `prepare` is called when the
    /// source is sure to exist, and before signals that came earlier are dispatched by a source
    /// that is created here, so a listener that `prepare` registers sees those, too.
    ///
    /// # Errors
    /// If the driver has ended, or the system could not create or register the notifier: then
    /// `prepare` was not called. And the errors of `prepare`.
    pub(crate) fn with<T>(
        driver: &Arc<Driver>,
        prepare: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<(Arc<Self>, T)> {
        let mut sources = sources();
        if let Some(source) = sources.iter().find(|source| source.serves(driver)).cloned() {
            drop(sources);
            return prepare().map(|prepared| (source, prepared));
        }
        let source = Self::begin(driver)?;
        sources.push(source.clone());
        drop(sources);
        let prepared = prepare();
        // The notifier is watched from now on; signals that came before are dispatched here. This
        // calls users' wakers, so no lock is held.
        SourceWaker::call(&source);
        if source.serves(driver) { Ok((source, prepared?)) } else { Err(shut_down_error()) }
    }

    fn begin(driver: &Arc<Driver>) -> io::Result<Arc<Self>> {
        let registry = registry();
        let notifier = registry.acquire(WakePipe::new)?;
        let registration = match driver.register(notifier.pipe().reader(), Interest::READABLE) {
            Ok(registration) => Arc::new(registration),
            Err(why) => {
                registry.release(notifier);
                return Err(why);
            }
        };
        Ok(Arc::new(Self {
            registry,
            driver: Arc::as_ptr(driver),
            registered: Mutex::new(Some(Registered { notifier, registration })),
            open: AtomicBool::new(true),
            coalescer: Coalescer::new(),
        }))
    }

    /// Returns whether the source is open and serves that driver's runtime.
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

    /// Registers `source_waker` to be called at the next notification, and dispatches the signals
    /// that were delivered. Must be called by one thread at a time.
    fn dispatch_for(&self, source_waker: &Waker) {
        let Some(Registered { notifier, registration }) = lock(&self.registered).clone() else {
            return;
        };
        let mut cx = Context::from_waker(source_waker);
        while let Poll::Ready(event) = registration.poll_record(&mut cx, Direction::Read) {
            if event.is_shutdown() {
                self.close(notifier);
                return;
            }
            notifier.pipe().drain();
            registration.clear_readiness(event);
        }
        self.registry.dispatch_for(notifier);
    }

    /// Closes the source, because the driver has ended. Listeners are not woken: each poll of a
    /// listener finds the source of its own runtime.
    #[cold]
    fn close(&self, notifier: &'static SignalNotifier<WakePipe>) {
        // Relaxed: no other memory depends on it; `is_open` says why.
        self.open.store(false, Relaxed);
        let registered = lock(&self.registered).take();
        if let Some(registered) = &registered {
            // No thread watches the notifier from now on, whatever the result is.
            let _ = registered.registration.deregister(notifier.pipe().reader());
        }
        let closed = {
            let mut sources = sources();
            let at = sources.iter().position(|source| std::ptr::eq(&raw const **source, self));
            at.map(|at| sources.swap_remove(at))
        };
        self.registry.release(notifier);
        // Signals that came meanwhile are dispatched by other sources, or when the next notifier is
        // acquired.
        drop((registered, closed));
    }
}

/// The waker that is called in a task's place when the notifier is notified.
struct SourceWaker(Weak<SignalSource>);

impl SourceWaker {
    fn call(source: &Arc<SignalSource>) {
        Arc::new(Self(Arc::downgrade(source))).wake();
    }
}

impl Wake for SourceWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(source) = self.0.upgrade() else { return };
        let source_waker = Waker::from(self.clone());
        source.coalescer.run(|| source.dispatch_for(&source_waker));
    }
}

impl std::fmt::Debug for SignalSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalSource").field("open", &self.is_open()).finish_non_exhaustive()
    }
}
