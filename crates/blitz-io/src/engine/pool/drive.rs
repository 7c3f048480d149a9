//! A pool without threads: whoever calls `block_on` lends its thread.
//!
//! # Protocol
//! There is one core. `block_on` takes it, runs tasks with it while it waits for
//! its own future, and puts it back. A second caller meanwhile only polls its own
//! future, asleep on a parker of its own; when the core comes back, one of those
//! who wait is unparked, and takes the core if it still waits.
//!
//! # Invariants
//! If a core is free and somebody waits, somebody who waits has a token or is
//! awake: whoever puts the core back, or leaves without having taken it, calls
//! the next.
//!
//! # Checked by
//! `a_free_core_finds_a_waiter`, `a_waiter_that_comes_first_leaves_the_line`,
//! `a_second_wake_of_a_block_on_is_not_lost`; weakened as `drive_passes_on`,
//! `drive_first_leaves`, `root_sees_second_wake`.

use std::{
    collections::VecDeque,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use super::{
    Pool,
    core::Core,
    current,
    current::Held,
    duty, park, stop, timing,
    vigil::{Stint, guest::Guest},
};
use crate::engine::{
    prim::{
        AtomicBool, Mutex,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        lock,
        parker::Parker,
        weakened,
    },
    work::{
        current as words,
        current::{Blocking, CountingYields, Tenured},
        task::{
            budget::{self, Budget},
            home,
        },
    },
};

/// Cores that no thread holds, and threads that would like one.
pub(crate) struct FreeCores<C = Box<Core>> {
    state: Mutex<State<C>>,
}

struct State<C> {
    cores: Vec<C>,
    waiters: VecDeque<Arc<Parker>>,
}

impl<C> FreeCores<C> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { cores: Vec::new(), waiters: VecDeque::new() }) }
    }

    pub(crate) fn fill(&self, cores: impl Iterator<Item = C>) {
        // The first is taken first.
        let mut cores: Vec<_> = cores.collect();
        cores.reverse();
        lock(&self.state).cores = cores;
    }

    pub(crate) fn take(&self) -> Option<C> {
        lock(&self.state).cores.pop()
    }

    /// Takes a core, or a place in the line.
    fn take_or_wait(&self, parker: &Arc<Parker>) -> Option<C> {
        let mut state = lock(&self.state);
        let core = state.cores.pop();
        let stands = |waiter: &Arc<Parker>| Arc::ptr_eq(waiter, parker);
        if core.is_none() && !state.waiters.iter().any(stands) {
            state.waiters.push_back(parker.clone());
        }
        if core.is_some() && !weakened!("drive_first_leaves") {
            // Whoever comes first without having been called is in line no more.
            state.waiters.retain(|waiter| !stands(waiter));
        }
        core
    }

    pub(crate) fn put_back(&self, core: C) {
        let mut state = lock(&self.state);
        state.cores.push(core);
        state.call_next();
    }

    /// Leaves the line; if a core is free it may have been meant for us.
    fn leave(&self, parker: &Arc<Parker>) {
        let mut state = lock(&self.state);
        state.waiters.retain(|waiter| !Arc::ptr_eq(waiter, parker));
        if !state.cores.is_empty() && !weakened!("drive_passes_on") {
            state.call_next();
        }
    }
}

impl<C> State<C> {
    /// Unparks the first in the line. Parkers are ours: no user code runs.
    fn call_next(&mut self) {
        if let Some(parker) = self.waiters.pop_front() {
            parker.unpark();
        }
    }
}

/// Wakes a `block_on`: a flag, and the bed of whoever waits.
struct Root {
    woken: AtomicBool,
    parker: Arc<Parker>,
    /// The pool whose core 0 the thread may be parked with.
    pool: Option<Arc<Pool>>,
}

impl Root {
    /// Whether it was woken since the last time; forgets it.
    fn take_woken(&self) -> bool {
        // Relaxed: most of the time there is nothing to see.
        if !self.is_woken() {
            return false;
        }
        // AcqRel: what was done before the wake-up is seen by the poll. Pairs with
        // the Release in `wake_by_ref`.
        self.woken.swap(false, AcqRel)
    }

    fn is_woken(&self) -> bool {
        // Acquire: as in `take_woken`.
        self.woken.load(Acquire)
    }
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: pairs with `take_woken` and `wait_for`.
        if self.woken.swap(true, Release) {
            return;
        }
        // The thread sleeps in one of two beds; a token too many does no harm.
        self.parker.unpark();
        if let Some(pool) = &self.pool {
            pool.unpark(0);
        }
    }
}

/// Waits for `future` on this thread, which runs nothing else. What it does counts
/// as done for `pool`.
///
/// # Panics
/// If a task of `pool` panicked and that ends it.
#[track_caller]
pub(crate) fn wait_for<F: Future>(pool: Option<&Arc<Pool>>, future: F) -> F::Output {
    // SAFETY: 1. `pool` is borrowed for longer.
    let _counting = pool.map(|pool| unsafe { counting(pool) });
    let _hidden = Tenured::hidden();
    let guest = pool.and_then(Guest::new);
    let _listening = guest.as_ref().map(Guest::listen);
    let root = Arc::new(Root {
        woken: AtomicBool::new(false),
        parker: Arc::new(Parker::new()),
        pool: None,
    });
    let waker = Waker::from(root.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    let _caller = pool.and_then(|pool| pool.unhandled.call(&root.parker));
    loop {
        check(pool);
        if let Poll::Ready(output) = poll_root(future.as_mut(), &mut cx) {
            // It may be ready because of the task that panicked.
            check(pool);
            return output;
        }
        guest.iter().for_each(Guest::rest);
        root.parker.park();
        let order = if weakened!("root_sees_second_wake") { Relaxed } else { AcqRel };
        // AcqRel: a wake-up that found the flag set left no token, so what was done
        // before it must be seen by this poll. Pairs with `wake_by_ref`.
        root.woken.swap(false, order);
    }
}

/// Waits for `future` and runs the pool's tasks meanwhile, when the core is free.
///
/// # Panics
/// As [`wait_for`].
#[track_caller]
pub(crate) fn drive<F: Future>(pool: &Arc<Pool>, future: F) -> F::Output {
    // SAFETY: 1. `pool` is borrowed for longer.
    let _counting = unsafe { counting(pool) };
    let _hidden = Tenured::hidden();
    pool.assert_here();
    let root = Arc::new(Root {
        woken: AtomicBool::new(true),
        parker: Arc::new(Parker::new()),
        pool: Some(pool.clone()),
    });
    let waker = Waker::from(root.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    let _line = Line { cores: &pool.free_cores, parker: &root.parker };
    let _caller = pool.unhandled.call(&root.parker);
    loop {
        pool.unhandled.check();
        if let Some(core) = pool.free_cores.take_or_wait(&root.parker) {
            let driven = Driven::new(core);
            return driven.run(&root, future, &mut cx);
        }
        if root.take_woken()
            && let Poll::Ready(output) = poll_root(future.as_mut(), &mut cx)
        {
            // As in `wait_for`.
            pool.unhandled.check();
            return output;
        }
        if !root.is_woken() {
            root.parker.park();
        }
    }
}

/// A place in the line, which is left even if the future panics.
struct Line<'a> {
    cores: &'a FreeCores,
    parker: &'a Arc<Parker>,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.cores.leave(self.parker);
    }
}

/// # Safety
/// 1. `pool` lives until the answer is dropped, on this thread and in order.
unsafe fn counting(pool: &Pool) -> CountingYields {
    // SAFETY: 1.
    unsafe { CountingYields::new(pool.outside_counters.forced_yields().word()) }
}

/// B2 of `unhandled`.
#[track_caller]
fn check(pool: Option<&Arc<Pool>>) {
    if let Some(pool) = pool {
        pool.unhandled.check();
    }
}

fn poll_root<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    budget::under(Budget::timeless(), || future.poll(cx))
}

/// A core in the hands of a `block_on`; it goes back even if the future panics.
struct Driven {
    pool: Arc<Pool>,
    held: Option<Held>,
    /// A `block_on` may be inside of a task of another runtime, whose words rest meanwhile.
    _tenured: Tenured,
    /// Dropped after `_tenured`.
    stint: Option<Arc<Stint>>,
    /// The monitor knows that there is something to run.
    busy: bool,
}

impl Driven {
    fn new(core: Box<Core>) -> Self {
        let pool = core.pool.clone();
        let stint = Stint::begin(&pool, core.index);
        // SAFETY: 1. the stint is dropped after it, with this.
        let _tenured = unsafe { Tenured::new(stint.as_ref().map(|stint| stint.tenure())) };
        Self { held: Some(Held::new(core)), pool, _tenured, stint, busy: false }
    }

    #[track_caller]
    fn run<F: Future>(
        mut self,
        root: &Arc<Root>,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> F::Output {
        loop {
            // A fiber panics on a thread of its own.
            #[cfg(feature = "fiber")]
            if self.pool.unhandled.has_happened() {
                self.end();
                self.pool.unhandled.check();
            }
            if root.take_woken() {
                // Its own time is its own; but it may poll a set of tasks.
                self.rise();
                if let Poll::Ready(output) = poll_root(future.as_mut(), cx) {
                    return output;
                }
                // One that wakes itself all the time must not shut out what comes from
                // elsewhere.
                self.attend(Core::count_root);
            }
            // A root that is woken has its turn after a tick at the latest, and one
            // that wakes itself does not have all of them.
            let mut ran = 0;
            while ran < self.pool.config.tick_polls {
                let next = current::with_core(|core| Some((core.next()?, core.clock.now_ms())));
                let Some((task, now)) = next else { break };
                self.rise();
                if timing::run(&self.pool, task, now) {
                    current::with_core(|core| core.counters().completed.add(1));
                    // A task that panicked has completed: only then it is asked.
                    if self.pool.unhandled.has_happened() {
                        self.end();
                        self.pool.unhandled.check();
                    }
                }
                ran += 1;
                self.attend(Core::take_look);
            }
            if current::with_core(Core::take_tick) {
                home::sweep_held();
            }
            if ran == 0 && root.is_woken() {
                // It has yielded, and there is nobody else to run: whom else but what comes
                // from the system has it yielded to?
                self.attend(|_| true);
            } else if ran < self.pool.config.tick_polls && !root.is_woken() {
                self.rest();
                park::park(&self.pool, 0, || root.is_woken());
                // Reserved for work it counts as searching; there is nobody to call.
                current::with_core(|core| {
                    if std::mem::take(&mut core.searching) {
                        let _ = core.pool.idle.stop_searching();
                    }
                });
            }
        }
    }
}

impl Driven {
    /// Looks after driver and timers, if it is time to.
    fn attend(&self, is_due: impl FnOnce(&mut Core) -> bool) {
        if current::with_core(is_due) {
            duty::attend(&self.pool, 0, duty::Look::Between);
        }
    }

    /// A task is about to run: somebody may want to know how long it takes.
    #[inline]
    fn rise(&mut self) {
        if let Some(stint) = self.stint.as_ref().filter(|_| !self.busy) {
            stint.rise(&self.pool);
            self.busy = true;
        }
    }

    fn rest(&mut self) {
        if let Some(stint) = &self.stint {
            stint.rest();
            self.busy = false;
        }
    }

    /// Ends the core, and with it every task, here.
    #[cold]
    fn end(&mut self) {
        let held = self.held.take().expect("a core is ended once");
        stop::end_core(held.release());
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.pool.free_cores.put_back(held.release());
        }
    }
}

/// Marks this thread as one that must not block, until it is dropped.
///
/// Nor may it leave its stack, if that is a fiber's: whoever blocks runs others' tasks, or
/// has them wait for it.
pub(crate) struct NoBlocking {
    before: Blocking,
    #[cfg(feature = "fiber")]
    fiber: *const (),
}

impl NoBlocking {
    /// `None` if it is marked already. `kind` says what `block_in_place` may do.
    pub(crate) fn enter(kind: Blocking) -> Option<Self> {
        words::with(|current| {
            if current.blocking.get() != Blocking::Allowed {
                return None;
            }
            Some(Self {
                before: current.blocking.replace(kind),
                #[cfg(feature = "fiber")]
                fiber: current.fiber.replace(std::ptr::null()),
            })
        })
    }

    /// Whether this thread may block now.
    pub(crate) fn is_allowed_to_block() -> bool {
        words::with(|current| current.blocking.get() == Blocking::Allowed)
    }
}

impl Drop for NoBlocking {
    fn drop(&mut self) {
        words::with(|current| {
            current.blocking.set(self.before);
            #[cfg(feature = "fiber")]
            current.fiber.set(self.fiber);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc as Plain, task::Poll};

    use super::FreeCores;
    use crate::engine::prim::{
        Arc, AtomicUsize,
        Ordering::{Acquire, Release},
        model, model_deeper,
        parker::Parker,
        thread,
    };

    /// One waits for the core whatever it takes, the other gives up at once; the
    /// core comes back while both stand in line.
    #[test]
    fn a_free_core_finds_a_waiter() {
        model(|| {
            let cores = Arc::new(FreeCores::new());
            let impatient = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    match cores.take_or_wait(&parker) {
                        Some(core) => cores.put_back(core),
                        None => cores.leave(&parker),
                    }
                }
            });
            let patient = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    loop {
                        if let Some(core) = cores.take_or_wait(&parker) {
                            return cores.put_back(core);
                        }
                        parker.park();
                    }
                }
            });
            cores.put_back(7);
            impatient.join().unwrap();
            patient.join().unwrap();
            assert_eq!(cores.take(), Some(7));
        });
    }

    /// Two sources wake one `block_on`. The second may find the flag still set and
    /// leave no token: then what came before it must be seen.
    #[test]
    fn a_second_wake_of_a_block_on_is_not_lost() {
        model(|| {
            let flags = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let mut threads = Vec::new();
            super::wait_for(
                None,
                std::future::poll_fn(|cx| {
                    if threads.is_empty() {
                        threads.extend((0..2).map(|index| {
                            let (flags, waker) = (flags.clone(), cx.waker().clone());
                            thread::spawn(move || {
                                // Release: pairs with the Acquire below.
                                flags[index].store(1, Release);
                                waker.wake();
                            })
                        }));
                    }
                    // Acquire: pairs with the Release above.
                    let all = flags.iter().all(|flag| flag.load(Acquire) == 1);
                    if all { Poll::Ready(()) } else { Poll::Pending }
                }),
            );
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    /// One that waits is woken by its own future, finds the core before the one
    /// that was called does, uses it and goes.
    #[test]
    fn a_waiter_that_comes_first_leaves_the_line() {
        model_deeper(|| {
            let cores = Arc::new(FreeCores::new());
            let first = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    for _ in 0..2 {
                        if let Some(core) = cores.take_or_wait(&parker) {
                            return cores.put_back(core);
                        }
                    }
                    cores.leave(&parker);
                }
            });
            let patient = thread::spawn({
                let cores = cores.clone();
                move || {
                    let parker = Plain::new(Parker::new());
                    loop {
                        if let Some(core) = cores.take_or_wait(&parker) {
                            return cores.put_back(core);
                        }
                        parker.park();
                    }
                }
            });
            cores.put_back(7);
            first.join().unwrap();
            patient.join().unwrap();
            assert_eq!(cores.take(), Some(7));
        });
    }
}
