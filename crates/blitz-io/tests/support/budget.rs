//! Checks how many operations a task completes before it must yield.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use super::{runtimes::one_thread, watchdog};

/// The number of operations that one poll may complete.
pub(crate) const BUDGET: usize = 128;

/// Completes operations for ever as a task, and asserts that a poll ends after at most [`BUDGET`]
/// of them; the waker must have been called, because otherwise the task would never go on.
pub(crate) fn yields<F>(forever: impl FnOnce(Arc<AtomicUsize>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let _watch = watchdog::start();
    let rt = one_thread();
    let done = Arc::new(AtomicUsize::new(0));
    let operations = forever(done.clone());
    rt.block_on(rt.spawn(async move {
        let mut operations = pin!(operations);
        let mut polls = 0;
        poll_fn(|cx| {
            let before = done.load(Relaxed);
            assert!(operations.as_mut().poll(cx).is_pending(), "it goes on for ever");
            let completed = done.load(Relaxed) - before;
            assert!((1..=BUDGET).contains(&completed), "{completed} operations in one poll");
            polls += 1;
            if polls == 5 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }))
    .unwrap();
}

#[allow(unused_macros, reason = "no program uses all of them")]
/// Expands to a loop that counts after each turn. If a turn took no budget, the loop would hang;
/// the limit makes that a failure.
macro_rules! forever {
    ($done:ident, $turn:expr) => {
        async move {
            loop {
                $turn;
                let turns = $done.fetch_add(1, ::std::sync::atomic::Ordering::Relaxed);
                assert!(turns < 100 * $crate::support::budget::BUDGET, "it never yields");
            }
        }
    };
}

#[allow(unused_imports, reason = "no program uses all of them")]
pub(crate) use forever;

/// Returns how many of these futures a task can complete before it must yield.
pub(crate) fn completed_in_one_poll<F: Future>(mut make: impl FnMut() -> F) -> usize {
    let mut count = 0;
    let polls = poll_fn(|cx| {
        // A limit of twice the expected number ends a test in which the budget does not.
        while count < 256 && pin!(make()).poll(cx).is_ready() {
            count += 1;
        }
        Poll::Ready(())
    });
    let local = blitz_io::task::LocalSet::new();
    // A task's budget is reset with each poll; `block_on` has a budget too.
    one_thread().block_on(local.run_until(polls));
    count
}
