//! Fibers: tasks that have a stack of their own, so they can wait in the middle of a call.
//!
//! A fiber is a task like any other: a cell in an `Arena`, a state word, a `JoinHandle`. Its future
//! ([`future`]) switches to the fiber's stack when it is polled, and returns `Pending` when the
//! fiber switches back. What differs is where it is polled: on one thread, always the same
//! ([`queue`]). [`Fibers`] is all of that for one runtime: it starts *carriers*, the threads that
//! run fibers, when they are needed, and spreads fibers over them.
//!
//! Carriers hold no core. What the holder of a core may lose or must take care of (queues, timers,
//! driver, its place among the searchers) is not theirs: a carrier waits for tokens, and the thread
//! that polls the driver or a timer wheel wakes its fibers as it wakes any task.
//! docs/design/fibers.md gives the reasons.
//!
//! # Checked by
//! tests/fiber; `queue/models.rs`.

use std::{io, sync::Arc, time::Instant};

use self::{future::FiberFuture, queue::FiberQueue};
use super::{
    pool::{Pool, stop::Alive},
    preempt::carrier::WatchedCarrier,
    prim::{
        AtomicUsize, Mutex, OnceLock,
        Ordering::{Acquire, Relaxed, Release},
        lock,
        parker::Parker,
    },
    threads::{ThreadConfig, ThreadHandle, ThreadMain, ThreadWrapper},
    work::{
        task::{cell::Label, extra::Extra, handle::JoinHandle, trace},
        thread_context::{self, CountingYields},
    },
};

pub(crate) mod queue;
pub(crate) mod stack;
pub(crate) mod future;
mod overflow;

/// Configuration of the fibers of a runtime.
#[derive(Debug, Clone)]
pub(crate) struct FiberConfig {
    /// Maximum number of carriers.
    pub(crate) carriers: usize,
    pub(crate) stack_size: usize,
    pub(crate) thread_config: ThreadConfig,
}

/// The fibers of one runtime, and the carriers that run them.
pub(crate) struct Fibers {
    pool: Arc<Pool>,
    config: FiberConfig,
    /// The queues of the carriers that were started, in order.
    queues: Box<[OnceLock<Arc<FiberQueue>>]>,
    /// Number of carriers that were started.
    started: AtomicUsize,
    next: AtomicUsize,
    carrier_threads: Mutex<CarrierThreads>,
    /// Carriers that have not ended.
    alive: Arc<Alive>,
    around: OnceLock<ThreadWrapper>,
}

/// Threads of the carriers.
struct CarrierThreads {
    threads: Vec<(ThreadHandle, Arc<FiberQueue>)>,
    ended: bool,
}

impl Fibers {
    pub(crate) fn new(pool: Arc<Pool>, config: FiberConfig) -> Self {
        Self {
            pool,
            queues: (0..config.carriers).map(|_| OnceLock::new()).collect(),
            config,
            started: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            carrier_threads: Mutex::new(CarrierThreads { threads: Vec::new(), ended: false }),
            alive: Arc::new(Alive::new()),
            around: OnceLock::new(),
        }
    }

    /// Sets the wrapper around the life of each carrier.
    pub(crate) fn wrap_threads(&self, around: ThreadWrapper) {
        assert!(self.around.set(around).is_ok(), "`wrap_threads` is called once");
    }

    /// Creates a fiber and queues it. After the end of the runtime the fiber is cancelled at once.
    ///
    /// # Errors
    /// Returns an error if there is no memory for the stack, or no thread to run the fiber.
    pub(crate) fn spawn<F, R, X>(
        &self,
        f: F,
        stack_size: Option<usize>,
        label: Label<X>,
    ) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
        X: Extra,
    {
        overflow::install();
        let (queue, stack) = match self.choose()? {
            Some(queue) => {
                let stack = queue.stacks.take(stack_size)?;
                (queue.clone(), Some(stack))
            }
            None => (self.ended_queue(), None),
        };
        let future = FiberFuture::new(f, stack, queue.clone());
        let (future, label) = trace::trace(future, label, trace::TaskKind::Task);
        match queue.spawn(future, label) {
            Ok(handle) => Ok(handle),
            Err(refused) => Ok(refused.end()),
        }
    }

    /// Returns the queue for a new fiber; `None` after the end of the runtime.
    ///
    /// Two of the queues are picked, and the one with fewer fibers is chosen, which spreads fibers
    /// well without examining all queues. If the chosen queue has fibers, one more carrier is
    /// started, unless the limit is reached.
    fn choose(&self) -> io::Result<Option<&Arc<FiberQueue>>> {
        let queue = self.choose_started();
        if let Some((queue, is_last)) = queue
            && (is_last || queue.alive() == 0)
        {
            return Ok(Some(queue));
        }
        match self.start() {
            Ok(Some(new)) => Ok(Some(new)),
            // Either the runtime has ended, or other threads have started the last carriers since
            // the check above, which may have found none: then the fiber goes to those.
            Ok(None) => Ok(self.choose_started().map(|(queue, _)| queue)),
            // Other carriers run, so the fiber can wait for those.
            Err(error) => queue.map(|(queue, _)| Some(queue)).ok_or(error),
        }
    }

    /// Chooses among the carriers that were started, if any were. The second value is true if no
    /// more can be started.
    fn choose_started(&self) -> Option<(&Arc<FiberQueue>, bool)> {
        // Acquire: the carriers that are counted are in `queues`. Pairs with the Release in
        // `start`.
        let started = self.started.load(Acquire);
        (started > 0).then(|| (self.choose_of(started), started == self.queues.len()))
    }

    fn choose_of(&self, started: usize) -> &Arc<FiberQueue> {
        // Relaxed: any number will do.
        let first = self.next.fetch_add(1, Relaxed) % started;
        let below = u32::try_from(started).expect("the builder bounds the carriers");
        let second = thread_context::random_below(below) as usize;
        let [first, second] =
            [first, second].map(|index| self.queues[index].get().expect("it was counted"));
        if second.alive() < first.alive() { second } else { first }
    }

    /// Starts one more carrier; returns `None` if there are enough of them, or after the end of the
    /// runtime. User code runs first: the function that names threads.
    #[cold]
    fn start(&self) -> io::Result<Option<&Arc<FiberQueue>>> {
        let names = self.config.thread_config.names(1)?;
        let name = names.into_iter().next().expect("one was requested");
        let mut carrier_threads = lock(&self.carrier_threads);
        // Relaxed: ordered by the lock.
        let index = self.started.load(Relaxed);
        if carrier_threads.ended || index == self.queues.len() {
            return Ok(None);
        }
        let queue = self.new_queue();
        self.alive.add();
        let thread = self.config.thread_config.start(name, self.around.get().cloned(), {
            let (queue, alive, pool) = (queue.clone(), self.alive.clone(), self.pool.clone());
            ThreadMain {
                before: || (),
                body: {
                    let alive = alive.clone();
                    move || run_carrier(&queue, index, &pool, &alive)
                },
                after: move || alive.remove(),
            }
        });
        match thread {
            Ok(thread) => carrier_threads.threads.push((thread, queue.clone())),
            Err(error) => {
                self.alive.remove();
                return Err(no_thread(&error));
            }
        }
        let queue = self.queues[index].get_or_init(|| queue);
        // Release: publishes the queue. Pairs with the Acquire in `choose_started`.
        self.started.store(index + 1, Release);
        Ok(Some(queue))
    }

    fn new_queue(&self) -> Arc<FiberQueue> {
        let unit = self.pool.config.unit();
        let watched = self.pool.watched.as_ref();
        let slice = watched.map_or(future::SLICE, |watched| watched.settings.slice);
        FiberQueue::new(Some(self.pool.clone()), self.config.stack_size, unit, slice)
    }

    /// Returns a queue that has ended, for a fiber that is spawned too late.
    #[cold]
    fn ended_queue(&self) -> Arc<FiberQueue> {
        let queue = self.new_queue();
        let none = queue.refuse_spawns();
        debug_assert!(none.is_none(), "a new queue is empty");
        queue
    }

    fn started_queues(&self) -> impl Iterator<Item = &Arc<FiberQueue>> {
        self.queues.iter().map_while(OnceLock::get)
    }

    /// Returns the number of fibers that have not ended, and that of the threads that run them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        // Relaxed: a counter, which orders nothing.
        let carriers = self.started.load(Relaxed);
        (self.started_queues().map(|queue| queue.alive()).sum(), carriers)
    }

    /// Stops all carriers: each unwinds its fibers, after the poll that it is in, and ends.
    pub(crate) fn stop(&self) {
        lock(&self.carrier_threads).ended = true;
        self.started_queues().for_each(|queue| queue.stop());
    }

    /// Waits for the carriers after a stop; returns `false` if the deadline passes first. May be
    /// called again.
    pub(crate) fn wait_for_end(&self, deadline: Option<Instant>) -> bool {
        // A fiber may get here inside `block_in_place`, and its carrier must not wait for itself.
        let own = u32::from(
            lock(&self.carrier_threads).threads.iter().any(|(thread, _)| thread.is_current()),
        );
        self.alive.wait(own, deadline)
    }

    /// Waits for the carriers as [`Self::wait_for_end`] does, and joins them.
    pub(crate) fn join(&self, deadline: Option<Instant>) -> bool {
        if !self.wait_for_end(deadline) {
            return false;
        }
        // Only destructors of thread-locals are left to run, which the deadline bounds too.
        let threads: Vec<_> = lock(&self.carrier_threads)
            .threads
            .extract_if(.., |(thread, _)| !thread.is_current())
            .collect();
        let ended = threads.into_iter().filter(|(_, queue)| !queue.has_abandoned());
        ended.for_each(|(thread, _)| thread.join_until(deadline));
        true
    }
}

/// Runs a carrier. If a stack had to be leaked, the carrier never ends, because the stack's frames
/// may have passed references to thread-locals to other threads, and the thread-locals would end
/// with the carrier.
fn run_carrier(queue: &FiberQueue, number: usize, pool: &Arc<Pool>, alive: &Alive) {
    let _alternate = overflow::Alternate::ensure();
    // SAFETY: obligation 1: the pool, which owns the counter, is borrowed for longer than the
    // guard.
    let _counting = unsafe { CountingYields::new(pool.outside_counters.forced_yields().word()) };
    let watched = WatchedCarrier::begin(pool, number);
    // SAFETY: obligation 1: `lease_guard` is dropped before `watched`, on this thread.
    let lease_guard = watched.as_ref().map(|watched| unsafe { watched.attach() });
    queue.run(watched.as_ref());
    drop(lease_guard);
    drop(watched);
    if queue.has_abandoned() {
        alive.remove();
        let parker = Parker::new();
        loop {
            // No other thread has the parker, so this thread is never woken.
            parker.park();
        }
    }
}

fn no_thread(error: &io::Error) -> io::Error {
    let text = format!(
        "cannot start a thread for fibers: {error}; raise the limit on threads, or spawn again \
         later"
    );
    io::Error::new(error.kind(), text)
}

impl std::fmt::Debug for Fibers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (alive, carriers) = self.counts();
        f.debug_struct("Fibers").field("alive", &alive).field("carriers", &carriers).finish()
    }
}
