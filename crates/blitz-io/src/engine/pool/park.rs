//! Sleeping: steps W1 to W4 of `idle`, without a time-out.

use super::{Pool, current, idle::SelfWoken};
use crate::engine::threads::run_hook;

/// Sleeps until there may be something to do. This thread holds core `index`.
///
/// `called` says whether something else than work wants the thread awake; it is
/// asked after W2, so whoever makes it true and then unparks is never missed.
pub(crate) fn park(pool: &Pool, index: usize, called: impl Fn() -> bool) {
    let was_searching = current::with_core(|core| {
        // SAFETY: whoever borrows the core holds its home. Foreign cells must not
        // wait here for as long as we sleep.
        unsafe { core.home.as_ref().sweep() };
        core.before_park();
        std::mem::take(&mut core.searching)
    });
    run_hook(pool.config.on_park.as_ref());
    let woken = sleep(pool, index, was_searching, called);
    run_hook(pool.config.on_unpark.as_ref());
    current::with_core(|core| {
        core.searching = woken == Woken::ForWork;
        core.after_park();
    });
}

#[derive(PartialEq, Eq)]
enum Woken {
    /// Somebody reserved this worker: it counts as searching.
    ForWork,
    /// It woke by itself.
    Alone,
}

fn sleep(pool: &Pool, index: usize, was_searching: bool, called: impl Fn() -> bool) -> Woken {
    let wanted = || called() || pool.is_stopping();
    pool.idle.fall_asleep(index, was_searching);
    let parker = &pool.remotes[index].parker;
    let useless = pool.has_visible_work() || wanted();
    if useless && pool.idle.wake_self(index) == SelfWoken::Awake {
        return Woken::Alone;
    }
    let counters = &pool.remotes[index].counters;
    counters.parked.add(1);
    let woken = loop {
        parker.park();
        if !pool.idle.is_asleep(index) {
            break Woken::ForWork;
        }
        // Not reserved: called, or a token that was left over.
        if wanted() && pool.idle.wake_self(index) == SelfWoken::Awake {
            break Woken::Alone;
        }
    };
    counters.unparked.add(1);
    woken
}
