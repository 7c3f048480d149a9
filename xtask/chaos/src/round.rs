//! One round: runs a plan, and checks that nothing is left of it.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use crate::{
    act, kernel,
    options::Options,
    plan::RuntimePlan,
    watch::{self, Watch},
    world::{PERMITS, World},
};

/// The end of a round may take the deadline divided by this: threads that were shut down in the
/// background, and children that were left, end by themselves. A third, because the watch reports
/// less about what is left.
const SETTLES: u32 = 3;

/// The threads and descriptors that exist while no round runs.
pub(crate) struct Base {
    threads: Vec<String>,
    descriptors: Vec<String>,
}

impl Base {
    pub(crate) fn now() -> Self {
        Self { threads: kernel::thread_names(), descriptors: kernel::descriptors() }
    }
}

/// The statistics of a round.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) tokens: usize,
    pub(crate) steps: BTreeMap<&'static str, u64>,
}

/// Runs a plan; an error says what went wrong.
pub(crate) fn run(
    options: &Options,
    plan: &RuntimePlan,
    folder: &Path,
    base: &Base,
    watch: &Watch,
    name: &str,
) -> Result<Figures, String> {
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let world = World::new(options, folder.to_owned());
    crate::command::watch_panics(&world);
    watch.begin(name.to_owned(), world.clone());
    act::run_here(&world, plan, options.plant);
    settle(&world, base, watch);
    let faults = world.faults();
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    Ok(Figures { tokens: world.ledger.count(), steps: world.figures() })
}

/// Waits until all that the round has created is gone, and records what stays.
fn settle(world: &Arc<World>, base: &Base, watch: &Watch) {
    let patience = match world.options.plant {
        // A planted defect stays, however long we wait.
        Some(_) => Duration::from_secs(1),
        None => world.options.deadline / SETTLES,
    };
    let until = Instant::now() + patience;
    let mut left = wait_until_empty(until, || left(world, base));
    // From here on every wait is bounded, and a debugger may be slow.
    watch.end();
    if !left.is_empty() {
        watch::print_all(world);
    }
    // A handle keeps the descriptors of its runtime open.
    world.forget_runtimes();
    left.extend(wait_until_empty(until, || {
        let more = difference(kernel::descriptors(), &base.descriptors);
        if more.is_empty() { vec![] } else { vec![format!("descriptors: {more:?}")] }
    }));
    left.into_iter().for_each(|what| world.fault(format!("left at the end: {what}")));
    let doubled = world.ledger.doubled();
    if !doubled.is_empty() {
        world.fault(format!("more than once: {doubled:?}"));
    }
    check_locks(world);
}

/// Polls `check` until it returns nothing, or the time is over; returns what is left.
fn wait_until_empty(until: Instant, check: impl Fn() -> Vec<String>) -> Vec<String> {
    let mut pause = Duration::from_micros(100);
    loop {
        let left = check();
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Returns what is left of a round, except descriptors.
fn left(world: &Arc<World>, base: &Base) -> Vec<String> {
    // Messages of destructors are dropped here, and counted.
    let got = world.empty_mailbox();
    world.mailed.fetch_sub(got, SeqCst);
    let mut found = Vec::new();
    let tokens = world.ledger.left();
    if !tokens.is_empty() {
        found.push(format!("not dropped: {tokens:?}"));
    }
    let mailed = world.mailed.load(SeqCst);
    if mailed != 0 {
        found.push(format!("{mailed} messages of destructors were not received"));
    }
    let more = difference(kernel::thread_names(), &base.threads);
    if !more.is_empty() {
        found.push(format!("threads: {more:?}"));
    }
    if kernel::has_children() {
        found.push("a child process".into());
    }
    found
}

/// Returns the elements of `now` that `before` has not, with their number.
fn difference(now: Vec<String>, before: &[String]) -> Vec<String> {
    let mut before = before.to_vec();
    let mut more = now;
    more.retain(|name| match before.iter().position(|known| known == name) {
        Some(at) => {
            before.swap_remove(at);
            false
        }
        None => true,
    });
    more
}

/// Checks that no lock is held any more, and that the mutex has the right count.
fn check_locks(world: &World) {
    match world.mutex.try_lock() {
        Ok(number) => {
            let raised = world.raised.load(SeqCst);
            if *number != raised {
                world.fault(format!("the mutex has {} of {raised}", *number));
            }
        }
        Err(_) => world.fault("the mutex is held at the end"),
    }
    if world.rw_lock.try_write().is_err() {
        world.fault("the lock for readers and writers is held at the end");
    }
    let permits = world.semaphore.available_permits();
    if permits != PERMITS as usize {
        world.fault(format!("{permits} permits of {PERMITS} are left at the end"));
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_counts_equal_names() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(difference(names("a b b c"), &names("b a")), ["b", "c"]);
        assert!(difference(names("a"), &names("a b")).is_empty());
    }
}
