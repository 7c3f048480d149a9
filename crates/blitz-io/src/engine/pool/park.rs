//! Puts a worker to sleep (steps W1 to W4 of `idle`), until there is work or something to look
//! after.
//!
//! # Checked by
//! `a_stop_wakes_every_sleeper_whatever_producers_do`,
//! `the_counts_are_right_after_sleeping`,
//! `the_counts_are_right_after_searching_and_sleeping`,
//! `work_is_left_to_another_searcher_only_if_there_is_one`; weakened as `park_insists`,
//! `park_leaves_it_to_a_searcher`.

use super::{
    Pool,
    core::Remote,
    held_core,
    idle::SelfWoken,
    keep_up,
    poller::{self, Maintenance, WakeReason},
};
use crate::engine::{
    prim::{thread, weakened},
    threads::run_hook,
    work::task::arena,
};

/// Sleeps until there may be something to do. This thread holds core `index`.
///
/// `is_wanted` returns true if something other than work wants the thread awake. It is called after
/// W2 of `idle`, so a thread that makes it true and then unparks this one is never missed.
///
/// The thread holds no core afterwards if a hook has stopped the pool.
pub(crate) fn park(pool: &Pool, index: usize, is_wanted: impl Fn() -> bool) {
    // Cells of this core that other threads have freed must not wait for as long as we sleep.
    arena::sweep_held_arena();
    if !held_core::holds_core_of(pool) {
        return;
    }
    if slept_shortly(pool, index) {
        return;
    }
    run_hook(pool.config.on_park.as_ref());
    if !held_core::holds_core_of(pool) {
        return;
    }
    // The hook and the values that the sweep dropped are user code, which may have placed a task
    // on this core, where no other worker will look.
    let was_searching = held_core::with_core(|core| {
        core.before_park();
        if core.has_own_tasks() {
            return None;
        }
        let others_keep_up = core.keep_up != 0;
        Some((std::mem::take(&mut core.searching), others_keep_up))
    });
    let woken = was_searching.map(|(searching, others_keep_up)| {
        let (woken, reason) = sleep(pool, index, searching, others_keep_up, is_wanted);
        if let Some(reason) = reason {
            poller::maintain(pool, index, Maintenance::AfterSleep(reason));
        }
        woken
    });
    run_hook(pool.config.on_unpark.as_ref());
    if !held_core::holds_core_of(pool) {
        return;
    }
    held_core::with_core(|core| {
        core.searching |= woken == Some(WokenFor::Work);
        core.after_park();
    });
}

/// Takes a short sleep instead of falling asleep, and returns true, if this is the only searcher
/// and it found only cores that keep up with their queues.
fn slept_shortly(pool: &Pool, index: usize) -> bool {
    let is_due = held_core::with_core(|core| {
        let is_due = core.searching && core.keep_up != 0 && !pool.idle.has_other_searchers();
        // A value that the sweep dropped may have placed a task here.
        is_due && !core.has_own_tasks()
    });
    if is_due {
        held_core::with_core(|core| core.before_park());
        keep_up::sleep_shortly(pool, index);
        held_core::with_core(|core| core.after_park());
    }
    is_due
}

#[derive(PartialEq, Eq)]
enum WokenFor {
    /// There is work, or was: the worker counts as searching.
    Work,
    /// Something other than work woke the worker.
    Other,
}

fn sleep(
    pool: &Pool,
    index: usize,
    was_searching: bool,
    others_keep_up: bool,
    is_wanted: impl Fn() -> bool,
) -> (WokenFor, Option<WakeReason<'_>>) {
    let wanted = || is_wanted() || pool.is_stopping() || arena::held_arena_needs_sweep();
    pool.idle.fall_asleep(index, was_searching);
    // Work that its owners keep up with is left to another searcher, if there is one: that
    // searcher leaves by W1 or S1 of `idle` after this, and looks.
    let left_to_others =
        others_keep_up && (pool.idle.has_searchers() || weakened!("park_leaves_it_to_a_searcher"));
    if !left_to_others
        && pool.has_visible_work()
        && pool.idle.wake_self_for_work(index) == SelfWoken::Awake
    {
        return (WokenFor::Work, None);
    }
    if wanted() && pool.idle.wake_self_not_searching(index) == SelfWoken::Awake {
        return (WokenFor::Other, None);
    }
    let Remote { counters, parker, poller_usefulness, .. } = &pool.remotes[index];
    counters.parked.add(1);
    let mut last_polls = None;
    let woken = loop {
        let now = pool.drivers.driver_polls();
        // Leave the driver to the awake workers only as long as one has polled it since last
        // time.
        let spared = poller_usefulness.is_doubtful()
            && !pool.idle.all_sleep()
            && last_polls.replace(now) != Some(now);
        let reason = match pool.drivers.sleep(parker, index, spared) {
            WakeReason::Unparked => None,
            reason => Some(reason),
        };
        #[cfg(feature = "net")]
        if let Some(WakeReason::Events(_)) = &reason {
            poller_usefulness
                .learn(pool.idle.no_worker_runs() && pool.drivers.any_worker_can_take_events());
        }
        if !pool.idle.is_asleep(index) {
            break (WokenFor::Work, reason);
        }
        // Not reserved: there is something to look after, the worker was called, or the token was
        // left over.
        if reason.is_some() || wanted() {
            break (wake_self_now(pool, index), reason);
        }
    };
    counters.unparked.add(1);
    woken
}

/// Wakes this worker, which must not sleep on, because the token that called it is consumed.
///
/// Another worker that wakes itself may hold this worker's reservation for a moment and then give
/// it back, so one refusal does not mean that this worker will be unparked.
fn wake_self_now(pool: &Pool, index: usize) -> WokenFor {
    loop {
        if pool.idle.wake_self_not_searching(index) == SelfWoken::Awake {
            return WokenFor::Other;
        }
        if !pool.idle.is_asleep(index) {
            // Another thread has reserved it, and its token comes: one too many does no harm.
            return WokenFor::Work;
        }
        if weakened!("park_insists") {
            pool.remotes[index].parker.park();
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::{WokenFor, sleep};
    use crate::engine::{
        pool::{Pool, stop::tests::config},
        prim::{Ordering::Release, model, thread},
        work::task::cell::Label,
    };

    /// Two workers sleep, and a producer reserves one of them while the pool stops.
    #[test]
    fn a_stop_wakes_every_sleeper_whatever_producers_do() {
        model(|| {
            let pool = Pool::new(config(2, true));
            let sleeper = thread::spawn({
                let pool = pool.clone();
                move || {
                    sleep(&pool, 1, false, false, || false);
                }
            });
            let producer = thread::spawn({
                let pool = pool.clone();
                move || {
                    pool.wake_one();
                }
            });
            // Release: like the store in `stop`.
            pool.stopping.store(true, Release);
            pool.remotes.iter().for_each(|remote| remote.parker.unpark());
            sleep(&pool, 0, false, false, || false);
            sleeper.join().unwrap();
            producer.join().unwrap();
            pool.stop();
        });
    }

    /// Two of three workers sleep, a task comes from outside, then the pool stops: a worker that
    /// woke for work must count as searching, and no other worker may be counted at all.
    fn books_balance(searching_first: bool) {
        let pool = Pool::new(config(3, true));
        let worker = |index: usize| {
            let pool = pool.clone();
            move || {
                let was_searching = searching_first && pool.idle.start_searching();
                u64::from(sleep(&pool, index, was_searching, false, || false).0 == WokenFor::Work)
            }
        };
        let (one, two) = (thread::spawn(worker(0)), thread::spawn(worker(1)));
        let at = Location::caller();
        drop(pool.spawn(async {}, Label::at(at)).unwrap_or_else(|refused| refused.end()));
        // Release: like the store in `stop`.
        pool.stopping.store(true, Release);
        pool.remotes.iter().for_each(|remote| remote.parker.unpark());
        let woken_for_work = one.join().unwrap() + two.join().unwrap();
        pool.idle.assert_all_awake(woken_for_work);
        pool.stop();
    }

    /// Two searchers, of which the second found that the others keep up with their queues, and a
    /// producer: one of the two must come, whichever sleeps first.
    #[test]
    fn work_is_left_to_another_searcher_only_if_there_is_one() {
        model(|| {
            let pool = Pool::new(config(4, true));
            assert!(pool.idle.start_searching() && pool.idle.start_searching());
            let searcher = |index: usize, others_keep_up: bool| {
                let pool = pool.clone();
                move || {
                    if sleep(&pool, index, true, others_keep_up, || false).0 == WokenFor::Work {
                        // Release: like the store in `stop`, so that the other searcher ends,
                        // too.
                        pool.stopping.store(true, Release);
                        pool.remotes.iter().for_each(|remote| remote.parker.unpark());
                    }
                }
            };
            let one = thread::spawn(searcher(0, false));
            let two = thread::spawn(searcher(1, true));
            let at = Location::caller();
            drop(pool.spawn(async {}, Label::at(at)).unwrap_or_else(|refused| refused.end()));
            one.join().unwrap();
            two.join().unwrap();
            pool.stop();
        });
    }

    #[test]
    fn the_counts_are_right_after_sleeping() {
        model(|| books_balance(false));
    }

    #[test]
    fn the_counts_are_right_after_searching_and_sleeping() {
        model(|| books_balance(true));
    }
}
