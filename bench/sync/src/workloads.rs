//! The rows, and the workload of each.

use std::time::Duration;

use harness::{Metric, Row};

use crate::by_hand::by_hand;
use crate::on_tasks::{mpmc_row, on_tasks};

pub(crate) const ROWS: [Row; 34] = [
    // Tasks on a runtime.
    Row::new(
        "ping_pong_oneshot",
        "one of 1000 pairs of tasks, spawned, that send each other a oneshot",
    ),
    Row::new("mpsc_bounded_spsc", "one message of 100,000 through mpsc(128), 1 producer"),
    Row::new("mpsc_bounded_4p", "the same, 4 producers"),
    Row::new("mpsc_unbounded_spsc", "one message of 100,000 without a bound, 1 producer")
        .lacked_by(&["go"]),
    Row::new("mpsc_unbounded_4p", "the same, 4 producers").lacked_by(&["go"]),
    Row::new("ring_mpsc_1000", "one hop of a token that 1000 tasks pass on through mpsc(1)"),
    Row::new("mutex_100", "one Mutex locked and unlocked, 100 tasks, each tenth time held over a yield"),
    Row::new("semaphore_100", "one of 10 permits, 100 tasks, each tenth time held over a yield")
        .lacked_by(&["go"]),
    Row::new("rwlock_100", "one RwLock, 100 tasks, each tenth time to write, each tenth held over a yield")
        .lacked_by(&["go"]),
    Row::new("notify_100", "one hand-over, 100 pairs of tasks that notify each other")
        .lacked_by(&["go"]),
    Row::new("watch_50", "one of 50 receivers that sees a value change").lacked_by(&["go"]),
    Row::new("broadcast_10", "one message that one of 10 receivers takes").lacked_by(&["go"]),
    // One thread, futures polled by hand.
    Row::new("mutex_by_hand", "lock and unlock, uncontended").lacked_by(&["go"]).with_own_threads(),
    Row::new("rwlock_read_by_hand", "the same to read").lacked_by(&["go"]).with_own_threads(),
    Row::new("rwlock_write_by_hand", "the same to write").lacked_by(&["go"]).with_own_threads(),
    Row::new("semaphore_by_hand", "a permit taken and given back")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("channel_send", "mpsc: one of 10,000 sends into room").lacked_by(&["go"]).with_own_threads(),
    Row::new("channel_recv", "mpsc: one of 10,000 receives of what is there")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("channel_round_trip", "mpsc(16): a send and its receive")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("channel_create", "mpsc(1): create, send, receive, drop")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("oneshot_by_hand", "create, send, receive, drop").lacked_by(&["go"]).with_own_threads(),
    Row::new("oneshot_slot", "the same; blitz-io's without allocation, Tokio's only one")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("broadcast_4", "broadcast(16): a send, and its receive by 4 receivers")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("watch_by_hand", "a send, changed, borrow_and_update")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("once_cell_get", "a look at a set cell").lacked_by(&["go"]).with_own_threads(),
    Row::new("once_cell_set", "create, set, drop").lacked_by(&["go"]).with_own_threads(),
    Row::new("barrier", "create a Barrier of one, wait, drop").lacked_by(&["go"]).with_own_threads(),
    Row::new("notify_by_hand", "notify_one, then notified").lacked_by(&["go"]).with_own_threads(),
    // As many workers as the row says.
    Row::new("mutex_4_threads", "lock, add, unlock: 4 tasks on 4 workers")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("rwlock_6_threads", "the same, 4 tasks that read and 2 that write on 6 workers")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new("semaphore_8_threads", "one of 2 permits, 8 tasks on 8 workers")
        .lacked_by(&["go"])
        .with_own_threads(),
    Row::new(
        "mpmc_8_threads",
        "one message from 4 producers to 4 consumers, room for 128, 8 workers (Tokio: a receiver behind its Mutex)",
    )
    .lacked_by(&["go"])
    .with_own_threads(),
    Row::new("mpmc_8_threads_others", "the same (Tokio: async-channel)")
        .lacked_by(&["go"])
        .with_own_threads(),
    // Memory.
    Row::new("heap", "what creating one takes: bytes, and blocks").lacked_by(&["go"]).with_own_threads(),
];

/// Defines a contender's module for a runtime crate and what is its own.
macro_rules! contender {
    ($run:ident, $module:ident, $runtime:ident, $own:ident) => {
        mod $module {
            use super::*;
            use crate::own::$own as own;

            on_tasks!($runtime);
            by_hand!($runtime);
        }

        /// Runs a row; `None` if there is no such row.
        pub(crate) fn $run(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
            $module::on_tasks(row, workers, budget).or_else(|| $module::by_hand(row, budget))
        }
    };
}

contender!(on_tokio, tokio_rows, tokio, tokio);
#[cfg(feature = "blitz")]
contender!(on_blitz, blitz_rows, blitz_io, blitz);

#[cfg(test)]
mod tests {
    use harness::check::every_row_ends;

    use super::*;
    use crate::heap::ONE_COUNTS;

    #[test]
    fn every_row_ends_on_tokio() {
        let _one = ONE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        every_row_ends(&ROWS, on_tokio);
    }

    #[cfg(feature = "blitz")]
    #[test]
    fn every_row_ends_on_blitz() {
        let _one = ONE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        every_row_ends(&ROWS, on_blitz);
    }

    #[test]
    fn a_oneshot_takes_a_block_from_the_heap_at_tokio() {
        let _one = ONE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let heap = on_tokio("heap", 1, Duration::ZERO).expect("there is such a row");
        let of = |name: &str| heap.iter().find(|metric| metric.name == name).map(|it| it.value);
        assert_eq!((of("oneshot"), of("oneshot_blocks")), (Some(72.0), Some(1.0)));
    }

    #[test]
    fn an_unknown_row_is_refused() {
        assert!(on_tokio("mutex_101", 1, Duration::ZERO).is_none());
    }

    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&crate::COMPARISON);
    }
}
