//! Runtimes with their drivers, and functions that run a test on them.

use std::{future::Future, time::Duration};

use blitz_io::runtime::{Builder, Runtime};

use super::watch;

pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_all().build().expect("a runtime")
}

/// Creates one runtime of each kind.
pub(crate) fn all_kinds() -> Vec<Runtime> {
    vec![one_thread(), workers(1), workers(2)]
}

/// Runs the test on every kind of runtime, as the future of `block_on` and as a task.
pub(crate) fn each<F>(test: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let _watch = watch::begin();
    for rt in all_kinds() {
        rt.block_on(test());
        rt.block_on(rt.spawn(test())).expect("the test does not panic");
    }
}

/// Runs the test on a current-thread runtime with a paused clock.
pub(crate) fn paused<F: Future>(test: F) -> F::Output {
    let _watch = watch::begin();
    let rt = Builder::new_current_thread().enable_all().start_paused(true).build();
    rt.expect("a runtime").block_on(test)
}

/// Runs the test on a current-thread runtime.
pub(crate) fn one<F: Future>(test: F) -> F::Output {
    let _watch = watch::begin();
    one_thread().block_on(test)
}

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Lets every other task of a runtime with one thread run until it waits; a hundred turns are more
/// than any test here has tasks in a row.
pub(crate) async fn others_wait() {
    for _ in 0..100 {
        blitz_io::task::yield_now().await;
    }
}
