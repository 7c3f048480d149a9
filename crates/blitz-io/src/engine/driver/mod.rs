//! The driver: what the system tells of descriptors, and who waits to hear it.
//!
//! One for each runtime. A descriptor is registered once and then used directly: an
//! operation is tried, and only if it would block does its task wait until the system says
//! that it can go on. Nothing of a task's memory is ever with the kernel, so tasks may be
//! dropped, moved and aborted at any moment.
//!
//! - [`interest`], [`ready`]: what is waited for, and what is known.
//! - [`readiness`]: the record of one descriptor, and who waits for it.
//! - [`sources`]: the table of records, and the tokens by which the kernel names them.
//! - [`registration`]: a descriptor as its owner sees it.
//! - [`habit`], [`postponed`]: calls that would likely find nothing, and when they are made
//!   all the same.
//! - `teller`, `overlapped`: events that come another way, and pipes, of which they do
//!   (Windows).
//! - [`role`]: who may ask the kernel; one at a time, and nobody waits for it.
//! - [`nudge`]: how others end its wait.
//! - [`backend`]: the mechanisms and the choice: `epoll`, `uring`, `poll`, and `other` where
//!   there is no epoll. `signs`: what Unix has of them all.
//!
//! # The contract
//! 1. Whoever holds the [`Role`] takes turns. A turn waits for events, as long as it was
//!    told, then sets what they say in the records, and wakes the tasks, under no lock.
//! 2. An event of a registration that has ended reaches nobody, whoever has its place or
//!    its number now.
//! 3. [`Driver::wake`] ends a turn that waits, or the next one that would. A turn that does
//!    not wait leaves it to the next that does.
//! 4. After [`Driver::shutdown`] nobody waits any more: all get an error that says so.
//! 5. A turn may end early with nothing. It does not end with an error for a signal.
//!
//! # Checked by
//! `driver/tests.rs`, on each mechanism; the models are with the parts.

#[cfg(unix)]
use std::os::fd::BorrowedFd;
#[cfg(windows)]
use std::os::windows::io::BorrowedSocket;
use std::{any::Any, io, sync::Arc, time::Duration};

pub(crate) mod interest;
pub(crate) mod ready;
pub(crate) mod readiness;
pub(crate) mod sources;
pub(crate) mod registration;
mod habit;
pub(crate) mod postponed;
#[cfg(windows)]
mod teller;
#[cfg(windows)]
pub(crate) mod overlapped;
mod role;
mod nudge;
pub(crate) mod backend;
#[cfg(unix)]
mod signs;
#[cfg(target_os = "linux")]
mod epoll;
// Those that the crate knows by which it is reached; so says the manifest.
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "loongarch64",
        target_arch = "powerpc64"
    )),
    path = "no_uring.rs"
)]
#[cfg(target_os = "linux")]
mod uring;
#[cfg(unix)]
mod poll;
// In tests of Linux too, where it does the same.
#[cfg(any(test, not(target_os = "linux")))]
mod other;

#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub(crate) use self::{backend::IoBackend, readiness::Direction, registration::Registration};

use self::{
    backend::{Events, Selector},
    interest::Interest,
    nudge::Nudge,
    postponed::{Postponed, Which},
    role::{Held, Seat},
    sources::{NoPlace, Source, Sources},
};
use crate::engine::{
    prim::{AtomicU64, OnceLock, Ordering::Relaxed},
    wait::batch::Batch,
};

/// What can be registered.
#[cfg(unix)]
pub(crate) type Fd<'a> = BorrowedFd<'a>;
/// What can be registered.
#[cfg(windows)]
pub(crate) type Fd<'a> = BorrowedSocket<'a>;

/// How a driver is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DriverConfig {
    /// `None`: what suits best.
    pub(crate) backend: Option<IoBackend>,
    /// How many events a turn takes at most.
    pub(crate) events_per_turn: usize,
}

impl Default for DriverConfig {
    fn default() -> Self {
        // Tokio's figure, which its users have tuned to.
        Self { backend: None, events_per_turn: 1024 }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Driver {
    selector: Selector,
    sources: Sources,
    postponed: Postponed,
    seat: Seat<Events>,
    nudge: Nudge,
    counters: Counters,
    /// Neither the program nor the environment wants another mechanism than io_uring.
    rings: bool,
    beside: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Driver {
    /// # Errors
    /// What the system says, or that the mechanism is not supported here.
    pub(crate) fn new(config: DriverConfig) -> io::Result<Arc<Self>> {
        let rings =
            matches!(IoBackend::chosen(config.backend)?, IoBackend::Auto | IoBackend::Uring);
        Ok(Self::with(Selector::new(config.backend)?, config.events_per_turn, rings))
    }

    fn with(selector: Selector, events_per_turn: usize, rings: bool) -> Arc<Self> {
        Arc::new(Self {
            selector,
            sources: Sources::new(),
            postponed: Postponed::new(),
            seat: Seat::new(Events::new(events_per_turn)),
            nudge: Nudge::new(),
            counters: Counters::default(),
            rings,
            beside: OnceLock::new(),
        })
    }

    /// Watches a descriptor, which does not block, until the registration ends.
    ///
    /// # Errors
    /// What the system says, or that the driver has ended.
    pub(crate) fn register(
        self: &Arc<Self>,
        fd: Fd<'_>,
        interest: Interest,
    ) -> io::Result<Registration> {
        let source = self.open()?;
        if let Err(why) = self.selector.add(fd, source.token, interest) {
            self.sources.close(source);
            return Err(why);
        }
        self.counters.registered();
        Ok(Registration::new(self.clone(), source))
    }

    /// A registration of nothing that the mechanism knows: its events are told by hand.
    ///
    /// # Errors
    /// That the driver has ended.
    #[cfg(windows)]
    pub(crate) fn register_apart(self: &Arc<Self>) -> io::Result<(Registration, teller::Teller)> {
        let source = self.open()?;
        self.counters.registered();
        let teller = teller::Teller::new(self.clone(), source.token);
        Ok((Registration::new(self.clone(), source), teller))
    }

    fn open(&self) -> io::Result<Source> {
        self.sources.open().map_err(|why| match why {
            NoPlace::Closed => shut_down_error(),
            NoPlace::Full => io::Error::other("too many descriptors are registered: close some"),
        })
    }

    /// The right to take turns; `None` if somebody has it.
    #[inline]
    pub(crate) fn try_hold(&self) -> Option<Role<'_>> {
        self.seat.try_hold().map(|events| Role { driver: self, events })
    }

    /// Whether worker `index` has postponed something.
    #[inline]
    pub(crate) fn has_postponed(&self, index: usize) -> bool {
        !self.postponed.is_empty(index)
    }

    /// Takes back what worker `index` has postponed, and wakes the tasks: users' code runs.
    pub(crate) fn take_back(&self, index: usize, which: Which) {
        let taken = self.postponed.take(index, which);
        if taken.capacity() == 0 {
            return;
        }
        let mut batch = Batch::new();
        for &token in &taken {
            self.sources.take_back(token, &mut batch);
        }
        self.postponed.recycle(index, taken);
        batch.wake_all();
    }

    /// Ends a turn that waits, or the next one that would. Many at once are one.
    #[inline]
    pub(crate) fn wake(&self) {
        self.nudge.nudge(|| self.selector.signal());
    }

    /// Everybody who waits is woken, and nobody waits any more.
    pub(crate) fn shutdown(&self) {
        self.sources.shut_down();
        self.wake();
    }

    /// How many descriptors were ever registered.
    pub(crate) fn registered_count(&self) -> u64 {
        // Relaxed: a figure.
        self.counters.registered.load(Relaxed)
    }

    /// How many of them are no more.
    pub(crate) fn deregistered_count(&self) -> u64 {
        // Relaxed: a figure.
        self.counters.deregistered.load(Relaxed)
    }

    /// How many events there were.
    pub(crate) fn ready_count(&self) -> u64 {
        // Relaxed: a figure.
        self.counters.ready.load(Relaxed)
    }

    /// How many turns were taken: each is a system call that asks for events.
    pub(crate) fn turn_count(&self) -> u64 {
        // Relaxed: a figure.
        self.counters.turns.load(Relaxed)
    }
}

/// For the layer above that has rings.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has rings"))]
impl Driver {
    /// Whether the runtime may use io_uring for operations, whatever tells it of events.
    #[inline]
    pub(crate) fn allows_rings(&self) -> bool {
        self.rings
    }

    /// What a layer above keeps with the driver: made by who asks first, and dropped with
    /// the driver. It may be registered with the driver, if it ends that at the shutdown.
    ///
    /// # Panics
    /// If two types are asked for.
    #[inline]
    pub(crate) fn beside<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let kept = self.beside.get_or_init(|| Box::new(make()));
        kept.downcast_ref().expect("one layer keeps one thing")
    }
}

/// Figures for metrics.
#[derive(Debug, Default)]
struct Counters {
    registered: AtomicU64,
    deregistered: AtomicU64,
    ready: AtomicU64,
    turns: AtomicU64,
}

// Relaxed throughout: figures, which order nothing.
impl Counters {
    fn registered(&self) {
        self.registered.fetch_add(1, Relaxed);
    }

    fn deregistered(&self) {
        self.deregistered.fetch_add(1, Relaxed);
    }

    fn ready(&self, count: usize) {
        if count > 0 {
            self.ready.fetch_add(count as u64, Relaxed);
        }
    }

    /// Only for who holds the role, so that no locked instruction is paid for.
    fn turn(&self) {
        self.turns.store(self.turns.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The right to take turns, until this is dropped.
pub(crate) struct Role<'a> {
    driver: &'a Driver,
    events: Held<'a, Events>,
}

impl Role<'_> {
    /// [`wait`](Self::wait) and [`tell`](Self::tell).
    #[cfg(test)]
    pub(crate) fn turn(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let found = self.wait(timeout)?;
        self.tell();
        Ok(found)
    }

    /// Waits for events for at most so long (`None`: for ever; zero: not at all). Answers how
    /// many there are, which have to be told.
    ///
    /// # Errors
    /// What the system says of the wait; the next one may be tried.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let Self { driver, events } = self;
        let events = &mut **events;
        driver.counters.turn();
        if timeout == Some(Duration::ZERO) {
            driver.selector.wait(events, timeout)?;
        } else {
            driver.nudge.wait(|may_wait| {
                let timeout = if may_wait { timeout } else { Some(Duration::ZERO) };
                driver.selector.wait(events, timeout)
            })?;
        }
        Ok(self.events.found.len())
    }

    /// Tells the events to the records, and wakes the tasks: users' code runs.
    /// Answers with how many there were.
    pub(crate) fn tell(&mut self) -> usize {
        let mut batch = Batch::new();
        for event in &self.events.found {
            self.driver.sources.tell(event.token, event.ready, &mut batch);
        }
        batch.wake_all();
        self.driver.counters.ready(self.events.found.len());
        self.events.found.len()
    }
}

impl std::fmt::Debug for Role<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Role").finish_non_exhaustive()
    }
}

/// The runtime of an I/O resource has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShutDown;

impl std::fmt::Display for ShutDown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The beginning is Tokio's.
        f.write_str(
            "A Tokio 1.x context was found, but it is being shutdown. (The runtime of this I/O \
             resource has ended: use it inside a runtime that runs.)",
        )
    }
}

impl std::error::Error for ShutDown {}

/// What everybody gets after the end.
#[cold]
pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other(ShutDown)
}
