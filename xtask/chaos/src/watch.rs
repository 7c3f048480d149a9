//! The thread that ends the process when a round does not end.
//!
//! It belongs to no runtime and shares nothing with one, so it works when all of them hang.

use std::{
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::{
    kernel,
    world::{World, lock},
};

/// The time limit for a dump of runtimes: they may hang while holding a lock that it needs.
const DUMP: Duration = Duration::from_secs(5);

/// The exit code of a process with a round that did not end.
pub(crate) const HUNG: i32 = 3;

/// The round that is watched.
struct Watched {
    until: Instant,
    what: String,
    world: Arc<World>,
}

/// The watch of a process.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<(Mutex<Option<Watched>>, Condvar)>);

impl Watch {
    /// Starts the thread.
    pub(crate) fn start() -> Self {
        let watch = Self::default();
        let own = watch.clone();
        let thread = thread::Builder::new().name("watch".into());
        thread.spawn(move || own.run()).expect("the watch needs a thread");
        watch
    }

    /// Begins to watch a round; `what` says how to repeat it.
    pub(crate) fn begin(&self, what: String, world: Arc<World>) {
        let until = Instant::now() + world.options.deadline;
        *lock(&self.0.0) = Some(Watched { until, what, world });
        self.0.1.notify_all();
    }

    pub(crate) fn end(&self) {
        let ended = lock(&self.0.0).take();
        drop(ended);
    }

    fn run(&self) {
        let (mutex, changed) = &*self.0;
        let mut watched = lock(mutex);
        loop {
            let now = Instant::now();
            let wait = match &*watched {
                None => Duration::from_secs(3600),
                Some(round) if round.until <= now => {
                    hung(&round.what, &round.world);
                }
                Some(round) => round.until - now,
            };
            watched = match changed.wait_timeout(watched, wait) {
                Ok((guard, _)) => guard,
                Err(poison) => poison.into_inner().0,
            };
        }
    }
}

/// Prints what hangs, and ends the process.
fn hung(what: &str, world: &Arc<World>) -> ! {
    eprintln!("chaos: HANG: {what}: no end after {:?}", world.options.deadline);
    eprintln!("not dropped: {:?}", world.ledger.left());
    print_all(world);
    eprintln!("chaos: HANG: {what}");
    kernel::exit_now(HUNG)
}

/// Prints the state of all threads and all runtimes, unless the options say otherwise.
pub(crate) fn print_all(world: &Arc<World>) {
    if !world.options.brief {
        kernel::print_threads(&world.folder);
        print_dumps(world);
    }
}

/// Prints the tasks of all runtimes of the round, on a thread of its own, because a runtime that
/// hangs may hold a lock that a dump needs.
fn print_dumps(world: &Arc<World>) {
    let world = world.clone();
    let dump = thread::spawn(move || {
        for (name, handle) in world.runtimes() {
            eprintln!("runtime {name}: {:#?}", handle.dump_now());
        }
    });
    let start = Instant::now();
    while !dump.is_finished() && start.elapsed() < DUMP {
        thread::sleep(Duration::from_millis(10));
    }
    if !dump.is_finished() {
        eprintln!("the dump of the runtimes hangs, too");
    }
}
