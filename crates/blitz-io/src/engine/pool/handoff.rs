//! A worker that is about to block gives its core to another thread.
//!
//! # Protocol
//! ```text
//! H1 the worker takes its core out of its hands and leaves it in a `Handoff`
//! H2 it asks the layer above for a thread (`Relief`), which looks there
//! H3 it blocks
//! H4 it takes the core back, if it is still there
//! ```
//! The lock of the `Handoff` decides between H4 and the thread of H2: one of them has
//! the core. A worker that comes too late ends its poll without one: what it wakes or
//! spawns goes the way of outside threads, and then it is no worker any more. What was
//! in the LIFO slot is in the ring by then, where others can steal it while nobody has
//! the core. If there is no thread to be had, nobody takes it, and H4 does.
//!
//! A core that was taken from a thread that is stuck in a poll (`vigil`) is left in a `Handoff`
//! in the same way, by who took it; H4 is done at the end of that poll.
//!
//! A core is also left in a `Handoff` for the thread that is started for it, and by
//! user code that blocks in place in a hook, where nobody is asked for a thread: the
//! worker has it back then, unless the pool was stopped meanwhile.
//!
//! Shutdown: whoever has the core ends it. One that lies in a `Handoff` is ended by who
//! stops the pool, who may be the one that would come back for it: a task that blocks
//! in place may drop its own runtime, and a hook may that runs before the worker does.
//! One that is left later finds its worker at H4, which ends it then.
//!
//! # Invariants
//! A core is in one place: in a thread's hands, or in one `Handoff`.
//!
//! # Checked by
//! tests/it/in_place.rs and tests/it/hostile_blocking.rs.

use std::sync::{Arc, Weak};

use super::{
    Pool,
    core::Core,
    current::{self, Held},
    vigil::lend::Lent,
    worker::{self, End},
};
use crate::engine::{
    prim::{Mutex, lock},
    work::{current as words, current::Blocking, task::budget::Budget},
};

/// What the layer above does for cores and threads that have lost each other.
pub(crate) trait Relief: Send + Sync {
    /// Finds a thread that runs the core in `handoff`, if it is still there then.
    fn relieve(self: Arc<Self>, handoff: Arc<Handoff>);

    /// Finds a thread for the errand; or gives it back, if there is none. No code of users
    /// runs, and the errand does not wait for others.
    fn stand_in(self: Arc<Self>, errand: Errand) -> Result<(), Errand>;

    /// The same, by a thread that is there and has nothing to do.
    fn stand_in_if_idle(self: Arc<Self>, errand: Errand) -> Result<(), Errand>;

    /// Whether it finds nobody any more.
    fn is_ending(&self) -> bool;

    /// Employs the calling thread, which was a worker, for as long as it likes.
    fn employ(self: Arc<Self>);
}

/// What a thread without a core is wanted for.
#[derive(Clone)]
pub(crate) enum Errand {
    /// To run a core, if it is still there then.
    Core(Arc<Handoff>),
    /// To poll a task, once.
    Poll(Arc<Lent>),
}

impl Errand {
    pub(crate) fn run(&self) {
        match self {
            Self::Core(handoff) => handoff.run(),
            Self::Poll(lent) => lent.run(),
        }
    }
}

/// A core between two threads.
pub(crate) struct Handoff(Mutex<Option<Box<Core>>>);

impl Handoff {
    /// Leaves the core where whoever stops the pool finds it, too.
    pub(crate) fn new(core: Box<Core>) -> Arc<Self> {
        let (pool, index) = (core.pool.clone(), core.index);
        let handoff = Arc::new(Self(Mutex::new(Some(core))));
        *lock(&pool.remotes[index].lies) = Arc::downgrade(&handoff);
        handoff
    }

    /// Takes the core, if nobody has.
    pub(crate) fn take(&self) -> Option<Box<Core>> {
        let mut core = lock(&self.0).take()?;
        // The time in between was nobody's work.
        core.clock.restart(&core.pool.tick);
        // Nor did anybody look after what is this core's.
        core.look_is_due = true;
        Some(core)
    }

    /// Whether it is still there.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Runs the core on this thread, if nobody has taken it, until it is ended or lost.
    pub(crate) fn run(&self) {
        if let Some(core) = self.take() {
            // Lost or ended, the thread has none afterwards.
            let (End::Stopped | End::CoreLost) = worker::run(core);
        }
    }
}

/// The life of a worker's thread: after its core it serves elsewhere.
pub(crate) fn live(start: &Handoff) {
    // The pool may have been stopped in the hook at the thread's start.
    let Some(core) = start.take() else { return };
    let pool = core.pool.clone();
    if worker::run(core) == End::CoreLost
        && let Some(relief) = pool.relief()
    {
        relief.employ();
    }
}

impl Pool {
    /// Says who helps; once.
    pub(crate) fn relieve_by(&self, relief: Weak<dyn Relief>) {
        assert!(self.relief.set(relief).is_ok(), "a pool is relieved by one");
    }

    pub(super) fn relief(&self) -> Option<Arc<dyn Relief>> {
        self.relief.get().and_then(Weak::upgrade)
    }

    /// Takes a core that lies between two threads, if there is one.
    pub(super) fn take_lying_core(&self) -> Option<Box<Core>> {
        self.remotes.iter().find_map(|remote| {
            let handoff = lock(&remote.lies).upgrade();
            handoff.and_then(|handoff| handoff.take())
        })
    }
}

/// Whether and how `block_in_place` may block this thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InPlace {
    /// It may block as it is.
    Free,
    /// It may, while a [`Blocked`] lives.
    Marked,
    /// It may not.
    Refused,
}

pub(crate) fn in_place() -> InPlace {
    match words::with(|current| current.blocking.get()) {
        Blocking::Allowed => InPlace::Free,
        Blocking::InPlace => InPlace::Marked,
        Blocking::Forbidden => InPlace::Refused,
    }
}

/// Whether others count on this thread, and it may give its core away.
#[cfg(feature = "parallel")]
pub(crate) fn is_worker() -> bool {
    in_place() == InPlace::Marked
}

/// While it lives this thread may block, without a budget, and has no core.
pub(crate) struct Blocked {
    budget: Budget,
    handoff: Option<Arc<Handoff>>,
}

impl Blocked {
    /// For code that blocks without having been asked to: if this is a thread that others
    /// count on and that may give its core away, it does. A thread that may not just blocks.
    #[cfg(feature = "parallel")]
    pub(crate) fn if_worker() -> Option<Self> {
        is_worker().then(Self::new)
    }

    /// H1 and H2, if this thread holds a core. Users' code runs: the function that
    /// names threads.
    pub(crate) fn new() -> Self {
        let budget = words::with(|current| {
            current.blocking.set(Blocking::Allowed);
            current.budget.replace(Budget::unlimited())
        });
        let mut blocked = Self { budget, handoff: None };
        if let Some(core) = current::take_core() {
            if words::task().is_some() {
                blocked.hand_off(core);
            } else {
                // Outside of a poll (a hook) the worker counts on its core, until the
                // pool stops; but the code that blocks may hold another one meanwhile.
                blocked.handoff = Some(Handoff::new(core));
            }
        }
        blocked
    }

    fn hand_off(&mut self, mut core: Box<Core>) {
        core.empty_lifo();
        let pool = core.pool.clone();
        let handoff = Handoff::new(core);
        self.handoff = Some(handoff.clone());
        // Asked only now: until the core was in its place nobody could steal from it.
        if pool.has_visible_work() {
            pool.wake_one();
        }
        if !pool.is_stopping()
            && let Some(relief) = pool.relief()
        {
            relief.relieve(handoff);
        }
    }
}

impl Drop for Blocked {
    /// H4.
    fn drop(&mut self) {
        let _inside = current::inside();
        if let Some(core) = self.handoff.take().and_then(|handoff| handoff.take()) {
            let pool = core.pool.clone();
            // The worker's own `Held`, which is empty, stands for it again.
            let Held { .. } = Held::new(core);
            pool.is_watched_again();
        }
        words::with(|current| {
            current.budget.set(self.budget);
            current.blocking.set(Blocking::InPlace);
        });
    }
}

impl Core {
    /// Puts what is in the LIFO slot where others can steal it.
    pub(super) fn empty_lifo(&mut self) {
        if let Some(task) = self.remote().lifo.take() {
            self.push_ring(task);
        }
    }
}
