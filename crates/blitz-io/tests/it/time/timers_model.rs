//! Compares random timers with a list that is too simple to be wrong.

use blitz_io::time::{self, Instant, Sleep, sleep_until};
use proptest::{collection::vec, prelude::*};

use crate::support::{
    clock::{ms, paused},
    manual_poll::{Polled, by_hand},
    runtimes::others_wait,
};

#[derive(Debug, Clone)]
enum Step {
    /// Arms a timer this many milliseconds from now.
    Arm(u64),
    /// Creates a timer without polling it.
    Make(u64),
    /// Drops the timer at this index, if there is one.
    Drop(usize),
    /// Resets the timer at this index to another deadline.
    Reset(usize, u64),
    /// Advances the clock.
    Advance(u64),
}

fn durations() -> impl Strategy<Value = u64> {
    // All levels of a wheel of 64 slots, from a millisecond to weeks.
    prop_oneof![
        0..4_u64,
        4..300_u64,
        300..70_000_u64,
        70_000..20_000_000_u64,
        20_000_000..2_000_000_000_u64,
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => durations().prop_map(Step::Arm),
        1 => durations().prop_map(Step::Make),
        2 => any::<prop::sample::Index>().prop_map(|at| Step::Drop(at.index(64))),
        2 => (any::<prop::sample::Index>(), durations())
            .prop_map(|(at, when)| Step::Reset(at.index(64), when)),
        3 => durations().prop_map(Step::Advance),
    ]
}

struct Armed {
    sleep: Polled<Sleep>,
    due: Instant,
    polled: bool,
}

impl Armed {
    /// Asserts that a timer that is due is ready and, if it had been polled, was woken, and that
    /// any other timer is not.
    fn check(&mut self, now: Instant) -> bool {
        // A timer may be late by a millisecond, which is Tokio's tick, and never early.
        if self.due + ms(1) <= now {
            assert!(self.sleep.woken() || !self.polled, "it was not woken");
            self.sleep.ready();
            return false;
        }
        if self.due > now && self.polled {
            self.sleep.still_waits();
        }
        true
    }
}

async fn run(steps: Vec<Step>) {
    let mut timers: Vec<Armed> = Vec::new();
    for step in steps {
        let now = Instant::now();
        match step {
            Step::Arm(after) | Step::Make(after) => {
                let due = now + ms(after);
                let mut sleep = by_hand(sleep_until(due));
                let polled = matches!(step, Step::Arm(_));
                if !polled || sleep.poll().is_pending() {
                    timers.push(Armed { sleep, due, polled });
                }
            }
            Step::Drop(at) => {
                if at < timers.len() {
                    timers.swap_remove(at);
                }
            }
            Step::Reset(at, after) => {
                if let Some(timer) = timers.get_mut(at) {
                    timer.due = now + ms(after);
                    timer.sleep.pin().reset(timer.due);
                    // The new deadline may have passed already, and then the timer may be ready.
                    if timer.sleep.poll().is_ready() {
                        assert!(timer.due <= now);
                        timers.swap_remove(at);
                    } else {
                        timers[at].polled = true;
                    }
                }
            }
            Step::Advance(by) => {
                time::advance(ms(by)).await;
                others_wait().await;
                let now = Instant::now();
                timers.retain_mut(|timer| timer.check(now));
            }
        }
    }
    // The timers that are left fire in the order of their deadlines.
    timers.sort_by_key(|timer| timer.due);
    for timer in &mut timers {
        timer.sleep.pin().await;
        assert!(Instant::now() >= timer.due, "it is early");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn timers_fire_at_the_times_that_a_list_of_deadlines_predicts(steps in vec(steps(), 1..60)) {
        paused(run(steps));
    }
}
