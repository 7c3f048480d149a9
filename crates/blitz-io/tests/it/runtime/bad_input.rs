//! Tests that bad input causes a clear error, or a panic that names the caller's line and says what
//! to do next.

use std::io;

use blitz_io::{
    runtime::{Builder, Handle},
    task,
};

use crate::support::{
    caught_panic::panic_of,
    child,
    drop_tally::Tally,
    runtimes::{all_kinds, workers},
    watchdog,
};

#[test]
fn zero_of_anything_that_must_be_some_panics_at_the_caller() {
    let _watch = watchdog::start();
    let mut builder = Builder::new_multi_thread();
    panic_of(|| drop(builder.worker_threads(0).build()))
        .says(&["Worker threads cannot be set to 0", "unset"])
        .at(file!(), line!() - 2);
    panic_of(|| drop(builder.max_blocking_threads(0).build()))
        .says(&["cannot be set to 0"])
        .at(file!(), line!() - 2);
    panic_of(|| drop(builder.global_queue_interval(0).build()))
        .says(&["greater than 0"])
        .at(file!(), line!() - 2);
    panic_of(|| drop(builder.event_interval(0).build()))
        .says(&["greater than 0"])
        .at(file!(), line!() - 2);
    panic_of(|| drop(builder.name(" \t").build())).says(&["empty"]).at(file!(), line!());
    drop(builder.worker_threads(1).build().unwrap()); // the failed build left nothing
}

#[test]
fn absurd_worker_counts_are_an_error_that_names_them() {
    let _watch = watchdog::start();
    for count in [32_769, isize::MAX as usize, usize::MAX] {
        let error = Builder::new_multi_thread().worker_threads(count).build().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(&count.to_string()) && text.contains("processor"), "{text}");
    }
    // A number of blocking threads that is too large is limited to the maximum.
    let most = Builder::new_multi_thread().max_blocking_threads(usize::MAX).build().unwrap();
    assert_eq!(most.block_on(most.spawn_blocking(|| 1)).unwrap(), 1);
    // A current-thread runtime starts no worker, whatever number is set.
    Builder::new_current_thread().worker_threads(usize::MAX).build().unwrap();
}

/// Guards against a build that waits for threads that it never started.
#[test]
fn a_name_that_no_thread_can_have_ends_the_build() {
    let _watch = watchdog::start();
    let build =
        || Builder::new_multi_thread().worker_threads(2).thread_name("a\0b").build().map(drop);
    let built = std::panic::catch_unwind(build);
    assert!(!matches!(built, Ok(Ok(()))), "no thread has such a name");
}

#[test]
fn block_on_inside_block_on_panics_at_the_caller_and_says_to_await() {
    let _watch = watchdog::start();
    let other = workers(1);
    for rt in all_kinds() {
        let (own, foreign) = (rt.handle().clone(), other.handle().clone());
        let nests = async move {
            let words = ["Cannot start a runtime from within a runtime", "await"];
            panic_of(|| own.block_on(async {})).says(&words).at(file!(), line!());
            panic_of(|| foreign.block_on(async {})).says(&words).at(file!(), line!());
            panic_of(|| blitz_io::run(async {}));
            Handle::current().id()
        };
        let id = rt.handle().id();
        let also = {
            let (own, foreign) = (rt.handle().clone(), other.handle().clone());
            async move {
                panic_of(|| own.block_on(async {})).says(&["await"]);
                panic_of(|| foreign.block_on(async {})).says(&["await"]);
            }
        };
        assert_eq!(rt.block_on(nests), id, "the context is as it was");
        rt.block_on(rt.spawn(also)).unwrap();
        panic_of(|| rt.block_on(async { rt.block_on(async {}) })).at(file!(), line!());
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
        assert!(Handle::try_current().is_err(), "a panic left its context behind");
    }
}

#[test]
fn spawning_outside_a_runtime_panics_at_the_caller_and_drops_the_future() {
    let _watch = watchdog::start();
    let tally = Tally::new();
    let token = tally.token();
    let future = async move { token.keep() };
    panic_of(|| blitz_io::spawn(future))
        .says(&["no runtime on this thread", "block_on"])
        .at(file!(), line!() - 2);
    tally.assert_all_dropped(1);
    panic_of(|| task::spawn(async {})).at(file!(), line!());
    panic_of(|| Handle::current()).says(&["block_on"]).at(file!(), line!());
}

#[test]
fn a_worker_that_does_not_exist_has_no_metrics() {
    let _watch = watchdog::start();
    let metrics = workers(2).metrics();
    panic_of(|| metrics.worker_poll_count(2)).says(&["no worker 2", "2"]).at(file!(), line!());
    panic_of(|| metrics.worker_park_unpark_count(usize::MAX)).at(file!(), line!());
    panic_of(|| metrics.worker_local_queue_depth(9)).at(file!(), line!());
}

/// Returns the number of workers of a runtime that a child with these variables builds, or the
/// message of its panic.
fn workers_with(variables: &[(&str, &str)]) -> Result<usize, String> {
    let name = "runtime::bad_input::the_number_of_workers_comes_from_the_environment";
    let mut command = child::command(name, "counts workers");
    command.envs(variables.iter().copied());
    let text = child::succeed(&mut command);
    let (_, count) = text.split_once("<<").expect("a count");
    let (count, _) = count.split_once(">>").expect("the count's end");
    count.parse().map_err(|_| count.to_owned())
}

fn count_workers() {
    // Without a setting the environment decides, and the number is never zero.
    let built = std::panic::catch_unwind(|| Builder::new_multi_thread().build().unwrap());
    match built {
        Ok(rt) => println!("<<{}>>", rt.metrics().num_workers()),
        Err(payload) => println!("<<panic: {}>>", crate::support::caught_panic::message(&*payload)),
    }
    // A number that is set in the program takes precedence over the environment.
    assert_eq!(workers(3).metrics().num_workers(), 3);
    Builder::new_current_thread().build().unwrap();
}

#[test]
fn the_number_of_workers_comes_from_the_environment() {
    let _watch = watchdog::start();
    if child::role().is_some() {
        return count_workers();
    }
    let (blitz, tokio) = ("BLITZ_WORKER_THREADS", "TOKIO_WORKER_THREADS");
    assert_eq!(workers_with(&[(blitz, "5")]), Ok(5));
    assert_eq!(workers_with(&[(tokio, "6")]), Ok(6));
    assert_eq!(workers_with(&[(blitz, "2"), (tokio, "7")]), Ok(2));
    assert!(workers_with(&[]).unwrap() >= 1);
    let bad = ["0", "", "many", "-1", "1.5", "99999999999999999999999", "32769", "4 workers"];
    for (variable, value) in bad.map(|value| (blitz, value)).into_iter().chain([(tokio, "0")]) {
        let said = workers_with(&[(variable, value)]).unwrap_err();
        assert!(said.starts_with("panic: ") && said.contains(variable), "{value:?}: {said}");
        assert!(said.contains(value), "{value:?} is not named: {said}");
    }
}
