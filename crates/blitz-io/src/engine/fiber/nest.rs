//! The fibers of one thread: who wakes them, who runs them, how they end.
//!
//! A *carrier* is a thread that runs fibers and nothing else, and its [`Nest`] is what other
//! threads reach of it. A fiber is a task whose future, once polled, must stay on its thread:
//! its stack may hold references to thread-locals, whose addresses compilers keep, and values
//! that are not `Send`. A nest knows nothing of stacks: it keeps its tasks where they are.
//!
//! # Protocol
//! An entry that the carrier itself places goes to `fifo`, which is the carrier's alone. One
//! that another thread places goes to `arrivals`.
//! ```text
//! A thread that wakes or spawns        The carrier
//! P1 pushes the entry to `arrivals`    W1 looks into both queues, finds nothing
//! P2 leaves a token                    W2 takes a token, or sleeps until there is one
//! ```
//! A token is never lost (`prim/parker.rs`): if W1 missed the entry, P2 comes after the last
//! token that W2 took, and so W2 finds it and W1 comes again. What P1 did is seen then: a
//! token is left with Release and taken with Acquire.
//!
//! A stop is a flag and a token, in this order. The end, all of it on the carrier:
//! ```text
//! E1 shut the door: spawning takes it, and from now on is refused
//! E2 stop every listed task: a fiber that was suspended is unwound here
//! E3 drop the entries in `fifo`
//! E4 close `arrivals`, drop what is in it
//! E5 close the home; memory follows its last reference
//! ```
//! A thread that made its task before E1 and has not pushed its entry finds `arrivals` open
//! before E4, and E4 drops the entry, or closed, and drops it itself. Either way E2 came
//! first, since the task was listed under the door's lock: it is complete, and dropping the
//! entry frees its memory at the most.
//!
//! # Invariants
//! - *One thread*: `fifo` is touched by the thread whose number is `owner`. Numbers are not
//!   used again.
//! - *Futures stay*: a future that was polled is polled again and dropped by that thread. Only
//!   it takes entries out before E4, and after E2 there is no future. One that was never
//!   polled is `Send`, and may be dropped by who was refused.
//!
//! # Rejected
//! - `local`'s set of tasks: its home belongs to its thread, and fibers are spawned from
//!   everywhere; and it is driven by a future, where here a thread is all there is.
//! - Threads that end when they have nothing to do: a spawner that has chosen such a nest
//!   would race with its end for what one idle thread costs, which is its memory.
//!
//! # Checked by
//! `models.rs`: `a_wake_against_a_sleep_is_not_lost`,
//! `a_wake_against_the_end_drops_the_future_on_its_thread`,
//! `an_abort_against_the_end_drops_the_future_on_its_thread`,
//! `pushes_against_the_end_leave_nothing_behind`,
//! `a_spawn_against_the_end_runs_or_is_refused`, `a_stop_against_a_sleep_is_seen`;
//! weakened as `nest_wake_unparks`, `nest_stop_unparks`, `nest_stops_first`,
//! `nest_closes`, `nest_shuts_the_door`, `nest_owner_check`.

use std::{future::Future, ptr::NonNull, sync::Arc, time::Duration};

use super::stack::Stacks;
use crate::engine::{
    pool::vigil::carrier::Carrier,
    prim::{
        AtomicBool, AtomicU64, AtomicUsize, Mutex,
        Ordering::{Acquire, Relaxed, Release},
        UnsafeCell,
        clock::Unit,
        lock,
        parker::Parker,
        weakened,
    },
    queue::{Chain, inject::Inject},
    work::{
        current::{self, Blocking},
        task::{
            cell::{Label, Task},
            extra::Extra,
            handle::JoinHandle,
            home::{Home, Origin, Schedule},
            hooks::{self, Hooks},
            poll,
        },
    },
};

#[cfg(test)]
mod models;

/// Of so many looks for the next entry one begins with what others sent, so that fibers that
/// wake each other shut nobody out. That of sets of local tasks.
const ARRIVALS_FIRST: u8 = 31;

/// Polls between two looks at what has to be done besides. Picked, not measured.
const POLLS_PER_TURN: usize = 64;

/// See the module.
pub(crate) struct Nest {
    /// The carrier's number; zero until it has begun.
    owner: AtomicU64,
    arrivals: Inject<Task>,
    fifo: UnsafeCell<Fifo>,
    parker: Parker,
    stopping: AtomicBool,
    /// Cells wait for their home's holder.
    sweep: AtomicBool,
    /// A stack was leaked whose frames may have lent out the carrier's thread-locals.
    abandoned: AtomicBool,
    /// Fibers that have not ended, for those who choose a nest.
    alive: AtomicUsize,
    door: Mutex<Door>,
    pub(crate) stacks: Stacks,
    /// The runtime that the fibers are of.
    above: Option<Arc<dyn Schedule>>,
    unit: Unit,
    /// How long a fiber may run while others wait.
    pub(crate) slice: Duration,
}

// SAFETY: `fifo` is touched by the carrier only (*one thread*); E3 leaves it empty, and a nest
// whose carrier never began has nothing in it.
unsafe impl Send for Nest {}
// SAFETY: as above.
unsafe impl Sync for Nest {}

/// The carrier's own queue.
struct Fifo {
    entries: Chain<Task>,
    looks: u8,
}

/// Where new tasks come in.
struct Door {
    /// Made for the first task. Whoever has the lock holds it.
    home: Option<NonNull<Home>>,
    shut: bool,
}

// SAFETY: whoever has the lock holds the home; a home may change hands.
unsafe impl Send for Door {}

/// A future that was not taken: its nest has ended.
pub(crate) struct Refused<F, X> {
    future: F,
    label: Label<X>,
    nest: Arc<Nest>,
}

impl<F: Future + Send + 'static, X: Extra> Refused<F, X> {
    /// Ends the future here: a task that was cancelled before it began. Users' code runs, and
    /// nothing is borrowed.
    #[cold]
    pub(crate) fn end(self) -> JoinHandle<F::Output> {
        let home = Home::new(self.nest);
        // SAFETY: we made the home, and hold it until it is closed; the task keeps its
        // memory until the `JoinHandle` is gone. Dropping the entry cancels, here.
        unsafe {
            let (task, header) = Home::spawn(home, self.future, self.label);
            home.as_ref().refuse();
            drop(task);
            while home.as_ref().next_to_stop().is_some() {}
            Home::close(home);
            JoinHandle::new(header)
        }
    }
}

impl Nest {
    /// A nest without a carrier.
    pub(crate) fn new(
        above: Option<Arc<dyn Schedule>>,
        stack_size: usize,
        unit: Unit,
        slice: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            owner: AtomicU64::new(0),
            arrivals: Inject::new(),
            fifo: UnsafeCell::new(Fifo { entries: Chain::new(), looks: 0 }),
            parker: Parker::new(),
            stopping: AtomicBool::new(false),
            sweep: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            alive: AtomicUsize::new(0),
            door: Mutex::new(Door { home: None, shut: false }),
            stacks: Stacks::new(stack_size),
            above,
            unit,
            slice,
        })
    }

    /// Makes a task and queues it, or gives the future back if the nest has ended.
    pub(crate) fn spawn<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, Refused<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let (task, header) = {
            let mut door = lock(&self.door);
            if door.shut {
                drop(door);
                return Err(Refused { future, label, nest: self.clone() });
            }
            let home = *door.home.get_or_insert_with(|| Home::new(self.clone()));
            // SAFETY: the lock is the right to hold; it is held until the end.
            unsafe { Home::spawn(home, future, label) }
        };
        // Relaxed: a figure, by which nests are chosen.
        self.alive.fetch_add(1, Relaxed);
        // SAFETY: a new task's join reference, of that output.
        let handle = unsafe { JoinHandle::new(header) };
        let task = self.tell_hook(task);
        self.place(task, Origin::Spawned);
        Ok(handle)
    }

    /// Tells the hook of a new task. A user's code runs, and nothing is borrowed.
    fn tell_hook(&self, task: Task) -> Task {
        let hooks = self.hooks();
        let Some(hook) = hooks.as_ref().and_then(|hooks| hooks.on_spawn.as_ref()) else {
            return task;
        };
        let header = task.into_header();
        // SAFETY: the entry, which is ours, keeps it.
        unsafe { hooks::call(Some(hook), header) };
        // SAFETY: `into_header` gave the entry to us, and it is made once.
        unsafe { Task::new(header) }
    }

    /// Fibers that have not ended, roughly.
    pub(crate) fn alive(&self) -> usize {
        // Relaxed: a figure.
        self.alive.load(Relaxed)
    }

    /// Asks the carrier to end all that is here and itself.
    pub(crate) fn stop(&self) {
        // Release: pairs with the Acquire in `is_stopping`.
        self.stopping.store(true, Release);
        if !weakened!("nest_stop_unparks") {
            self.parker.unpark();
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        // Acquire: what was done before the stop is seen by the end. Pairs with `stop`.
        self.stopping.load(Acquire)
    }

    /// The life of the carrier: the calling thread, from now on.
    pub(crate) fn live(&self, watched: Option<&Carrier>) {
        self.begin();
        // Whatever blocks here has the other fibers wait: not by `block_on`, but in place.
        current::with(|current| current.blocking.set(Blocking::InPlace));
        while !self.is_stopping() {
            if !self.turn(watched) {
                // Nobody may call for a long time.
                self.sweep_home();
                watched.into_iter().for_each(Carrier::rest);
                self.parker.park();
            }
        }
        watched.into_iter().for_each(Carrier::rest);
        self.end();
        current::with(|current| current.blocking.set(Blocking::Allowed));
    }

    /// A stack of this nest is leaked: the carrier must not end.
    #[cold]
    pub(crate) fn abandon(&self) {
        // Relaxed: what tells others that the carrier is done comes later, and orders it.
        self.abandoned.store(true, Relaxed);
    }

    /// Whether the carrier, which is done, sleeps for ever.
    pub(crate) fn has_abandoned(&self) -> bool {
        // Relaxed: as above.
        self.abandoned.load(Relaxed)
    }

    fn begin(&self) {
        // Relaxed: other threads only find that it is not their number.
        self.owner.store(current::thread(), Relaxed);
    }

    /// Polls some of those who are queued; `false` if there was nobody.
    fn turn(&self, watched: Option<&Carrier>) -> bool {
        // Relaxed: a hint; the token that came with it orders more than is needed.
        if self.sweep.load(Relaxed) {
            self.sweep_home();
        }
        for polls in 0..POLLS_PER_TURN {
            if self.is_stopping() {
                return true;
            }
            let Some(task) = self.next() else { return polls > 0 };
            watched.into_iter().for_each(Carrier::rise);
            if poll::run(task, self.unit.now()) {
                // Relaxed: a figure.
                self.alive.fetch_sub(1, Relaxed);
            }
        }
        true
    }

    /// The entry that is to run now.
    fn next(&self) -> Option<Task> {
        let arrivals_first = self.held(|fifo| {
            fifo.looks = fifo.looks.wrapping_add(1);
            fifo.looks.is_multiple_of(ARRIVALS_FIRST)
        });
        let own = || self.held(|fifo| fifo.entries.pop_front());
        let sent = || self.arrivals.pop();
        if arrivals_first { sent().or_else(own) } else { own().or_else(sent) }
    }

    /// Before somebody who yields is queued: those whom others have sent were there first. Were
    /// they left where they are, it would run again before them.
    fn gather(&self) {
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = self.arrivals.pop() else { break };
            self.held(|fifo| fifo.entries.push_back(task));
        }
    }

    fn sweep_home(&self) {
        // Relaxed: as in `turn`.
        self.sweep.store(false, Relaxed);
        if let Some(home) = lock(&self.door).home {
            // SAFETY: the lock, which is held until the end of the statement, is the right
            // to hold.
            unsafe { Home::sweep(home) };
        }
    }

    /// E1 to E5.
    fn end(&self) {
        if weakened!("nest_stops_first") {
            self.empty_queues();
        }
        if let Some(home) = self.shut() {
            // SAFETY: a shut home is ours alone; one that refuses keeps cells until it is
            // closed.
            while let Some(task) = unsafe { home.as_ref().next_to_stop() } {
                // SAFETY: the home keeps it.
                unsafe { poll::stop(task) };
            }
            self.empty_queues();
            // SAFETY: as above; we give the home up.
            unsafe { Home::close(home) };
        }
        self.empty_queues();
        // Relaxed: a figure.
        self.alive.store(0, Relaxed);
        self.stacks.close();
    }

    /// E1: refuses tasks from now on; the home is then the caller's alone.
    pub(crate) fn shut(&self) -> Option<NonNull<Home>> {
        let mut door = lock(&self.door);
        door.shut = !weakened!("nest_shuts_the_door");
        let home = door.home.take()?;
        // SAFETY: the lock is the right to hold, and nobody will hold it again.
        unsafe { home.as_ref().refuse() };
        Some(home)
    }

    /// E3 and E4. Entries of stopped tasks are all there is.
    fn empty_queues(&self) {
        while let Some(task) = self.held(|fifo| fifo.entries.pop_front()) {
            drop(task);
        }
        if !weakened!("nest_closes") {
            self.arrivals.close();
        }
        while let Some(task) = self.arrivals.pop() {
            drop(task);
        }
    }

    fn is_here(&self) -> bool {
        // Relaxed: the carrier wrote it, and for all others any other number will do.
        self.owner.load(Relaxed) == current::thread() || weakened!("nest_owner_check")
    }

    /// Lends the carrier's queue to `f`, which runs no code but ours.
    #[inline]
    fn held<R>(&self, f: impl FnOnce(&mut Fifo) -> R) -> R {
        debug_assert!(self.is_here(), "another thread took a carrier's queue");
        // SAFETY: *one thread*: callers are the carrier, or have looked; and `f` does not
        // come back here.
        self.fifo.with_mut(|fifo| f(unsafe { &mut *fifo }))
    }
}

impl Schedule for Nest {
    fn place(&self, task: Task, origin: Origin) {
        if self.is_here() {
            if origin == Origin::Yielded {
                self.gather();
            }
            // The carrier looks again before it sleeps.
            return self.held(|fifo| fifo.entries.push_back(task));
        }
        match self.arrivals.push(task) {
            Ok(()) if weakened!("nest_wake_unparks") => {}
            Ok(()) => self.parker.unpark(),
            // The carrier has ended, and with it every fiber: this entry is what was left of
            // one, and dropping it frees it.
            Err(task) => drop(task),
        }
    }

    fn cells_wait(&self, _home: NonNull<Home>) {
        // Relaxed: the token orders it.
        self.sweep.store(true, Relaxed);
        self.parker.unpark();
    }

    fn hooks(&self) -> Option<Arc<Hooks>> {
        self.above.as_ref().and_then(|above| above.hooks())
    }

    fn task_panicked(&self) {
        if let Some(above) = &self.above {
            above.task_panicked();
        }
    }
}

impl std::fmt::Debug for Nest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nest").field("alive", &self.alive()).finish_non_exhaustive()
    }
}
